"""Hausdorff distances of point sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import length, objects_of
from kreinlearn.kernels._compiled import compiled
from kreinlearn.kernels.base import Array, ObjectKernel, Objects, given

LANES = 128  # sets per pass of the inner loops: enough for SIMD, and they fit in the cache


class PointSets(NamedTuple):
    """Point sets end to end: set i is ``points[start[i]:start[i + 1]]``."""

    points: Array  # (N, p) float64
    start: Array  # (n + 1,)

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])


class PointSlots(NamedTuple):
    """Point sets side by side: first the first points of all sets, then the second ones, and so on.

    The largest sets come first. ``points[:, slot[b]:slot[b + 1]]`` belong to the first
    ``slot[b + 1] - slot[b]`` sets of ``order``.
    """

    points: Array  # (p, N)
    slot: Array  # (largest size + 1,)
    order: Array  # (m,)
    size: Array  # (m,), in that order

    @property
    def dimension(self) -> int:
        return len(self.points)


def pack(
    X: Objects, first: int = 0, n: int = 0, like: PointSets | PointSlots | None = None
) -> PointSets:
    """Check point sets and join them end to end; an error names object ``first + i`` of ``n``.

    Points must have as many coordinates as those of ``like``, if that has any points.
    """
    sets = [_point_set(x, first + i, n or length(X)) for i, x in enumerate(objects_of(X))]
    p = sets[0].shape[1] if sets else 1
    if like is not None and like.points.size:
        p = like.dimension
    for i, points in enumerate(sets):
        if points.shape[1] != p:
            raise ValueError(
                f"object {first + i} (of {n or len(sets)}) has points of {points.shape[1]} "
                f"coordinates, the others have {p}; all points must have the same number"
            )
    joined = np.concatenate([np.empty((0, p)), *sets])
    start = np.cumsum([0, *map(len, sets)])
    if not np.isfinite(joined).all():
        bad = int(np.flatnonzero(~np.isfinite(joined).all(axis=1))[0])
        at = int(np.searchsorted(start, bad, side="right")) - 1
        raise ValueError(
            f"object {first + at} (of {n or len(sets)}) contains NaN or infinity in point "
            f"{bad - start[at]}: {joined[bad]}; coordinates must be finite, remove such points"
        )
    return PointSets(joined, start)


def _point_set(x: object, i: int, n: int) -> Array:
    """One point set as an array of shape (points, coordinates)."""
    try:
        points = np.asarray(x)
    except ValueError:  # rows of unequal length
        points = np.empty(0, dtype=object)
    if points.ndim != 2 or points.dtype.kind not in "fiub" or 0 in points.shape:
        raise ValueError(
            f"object {i} (of {n}) is {given(x)}; a point set is an array of numbers, one row per "
            "point, of shape (at least 1 point, at least 1 coordinate)"
        )
    return points


def across(sets: PointSets) -> PointSlots:
    """Point sets side by side, for loops over many sets at once."""
    size = np.diff(sets.start)
    order = np.argsort(-size, kind="stable")
    size = size[order]
    holders = [int(np.sum(size > b)) for b in range(int(size.max(initial=0)))]
    index = [sets.start[order[:count]] + b for b, count in enumerate(holders)]
    points = sets.points[np.concatenate([np.empty(0, dtype=np.intp), *index])]
    return PointSlots(np.ascontiguousarray(points.T), np.cumsum([0, *holders]), order, size)


@compiled
def _nearer(a: Array, Z: Array, lo: int, w: int, d2: Array, near_a: Array, near_b: Array) -> None:
    """|a - z_j|^2 for w points of Z from ``lo`` on, and both running minima.

    Adding 0.0 keeps the compiler from masked stores, which are slow.
    """
    d2[:w] = 0.0
    for c in range(len(a)):
        x, z_c = a[c], Z[c, lo : lo + w]
        for j in range(w):
            u = x - z_c[j]
            d2[j] += u * u
    for j in range(w):
        d, old_a, old_b = d2[j], near_a[j], near_b[j]
        near_a[j] = (d if d < old_a else old_a) + 0.0
        near_b[j] = (d if d < old_b else old_b) + 0.0


@compiled
def _gather(near: Array, w: int, mean: bool, total: Array) -> None:
    """Add roots of minima for a mean of distances, or take the maximum for the largest square."""
    if mean:
        for j in range(w):
            total[j] += np.sqrt(near[j])
    else:
        for j in range(w):
            d, old = near[j], total[j]
            total[j] = (d if d > old else old) + 0.0


@compiled
def _hausdorff(
    A: Array, start: Array, Z: Array, slot: Array, order: Array, size: Array, mean: bool,
    both: bool, out: Array,
) -> None:  # fmt: skip
    """Write distances into ``out`` (n, m), from sets A end to end and sets Z side by side.

    ``mean`` takes the mean of the minima, not the largest; ``both`` adds the two directions.
    """
    m, largest = len(order), len(slot) - 1
    d2, near_a = np.empty(LANES), np.empty(LANES)
    total_a, total_b = np.empty(LANES), np.empty(LANES)
    near_b = np.empty((largest, LANES))
    for lo in range(0, m, LANES):
        w = min(LANES, m - lo)
        for i in range(len(start) - 1):
            near_b[: size[lo]] = np.inf
            total_a[:], total_b[:] = 0.0, 0.0
            for a in range(start[i], start[i + 1]):
                near_a[:] = np.inf
                for b in range(size[lo]):
                    w_b = min(w, slot[b + 1] - slot[b] - lo)
                    _nearer(A[a], Z, slot[b] + lo, w_b, d2, near_a, near_b[b])
                _gather(near_a, w, mean, total_a)
            for b in range(size[lo]):
                _gather(near_b[b], min(w, slot[b + 1] - slot[b] - lo), mean, total_b)
            k_i = start[i + 1] - start[i]
            for j in range(w):
                to_b, to_a = total_a[j], total_b[j]
                if mean:
                    to_b, to_a = to_b / k_i, to_a / size[lo + j]
                    out[i, order[lo + j]] = to_b + to_a if both else max(to_b, to_a)
                else:
                    out[i, order[lo + j]] = np.sqrt(max(to_b, to_a))


class Hausdorff(ObjectKernel, names=["hausdorff"]):
    """The Hausdorff distance max(max_a min_b |a - b|, max_b min_a |a - b|) of two point sets.

    A point set is an array of shape (points, coordinates). The number of points may differ.

    Examples
    --------
    >>> from kreinlearn.kernels.objects import Hausdorff
    >>> Hausdorff()([[[0.0, 0.0], [1.0, 0.0]]], [[[0.0, 3.0]], [[1.0, 0.0], [5.0, 0.0]]]).round(3)
    array([[3.162, 4.   ]])
    """

    is_dissimilarity = True
    _mean = False  # take the mean of the minima instead of the largest
    _both = False  # add the two directions instead of taking the larger one

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> PointSets:
        return pack(X, first, n, like)

    def packed_columns(self, Z: Objects) -> PointSlots:
        return across(pack(Z))

    def values(self, A: PointSets, Z: PointSlots) -> Array:
        D = np.empty((len(A.start) - 1, len(Z.order)))
        _hausdorff(*A, *Z, self._mean, self._both, D)
        return D


class ModifiedHausdorff(Hausdorff, names=["modified_hausdorff"]):
    """max(mean_a min_b |a - b|, mean_b min_a |a - b|) of two point sets (Dubuisson & Jain 1994).

    A point set is an array of shape (points, coordinates). The number of points may differ.

    Examples
    --------
    >>> from kreinlearn.kernels.objects import ModifiedHausdorff
    >>> ModifiedHausdorff()([[[0.0, 0.0], [4.0, 0.0]]], [[[0.0, 3.0]], [[4.0, 0.0]]])
    array([[4., 2.]])
    """

    _mean = True
