"""Dissimilarities of shapes: point sets (Chamfer, earth mover's) and closed contours."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import fft
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.utils import check_scalar

from kreinlearn.kernels._base import Array, Objects, register
from kreinlearn.kernels._objects import ObjectKernel, library
from kreinlearn.kernels.objects import Hausdorff, PointSets, dimension_of, pack

PIVOTS = 10**7  # of the network simplex at most; it needs far fewer
STRIP = 128  # rows of a symmetric matrix evaluated at a time
CURVES = 512  # columns correlated at a time: they stay in the cache
CLOSE = 1e-3  # of the squared norms: nearer curves are subtracted, not correlated
TIE = 1e-14  # of the squared norms: shifts as good as the best one


# Point sets


class Chamfer(Hausdorff):
    """mean_a min_b |a - b| + mean_b min_a |a - b| of point sets (k, p), k free.

    >>> from kreinlearn.kernels.shapes import Chamfer
    >>> Chamfer()([[[0.0, 0.0], [4.0, 0.0]]], [[[0.0, 3.0]], [[4.0, 0.0]]])
    array([[7., 2.]])
    """

    _mean = True
    _both = True


class EarthMover(ObjectKernel):
    """min_T sum_ab T_ab |a - b| over T >= 0 with row sums 1/k and column sums 1/l, sets (k, p).

    Sets of one size are matched point by point (scipy); unequal ones are transported by POT.

    >>> from kreinlearn.kernels.shapes import EarthMover
    >>> EarthMover()([[[0.0, 0.0], [4.0, 0.0]]], [[[0.0, 3.0], [4.0, 1.0]], [[4.0, 0.0]]])
    array([[2., 2.]])
    """

    is_dissimilarity = True
    threads = False

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> PointSets:
        return pack(X, dimension=dimension_of(like), first=first, n=n)

    def values(self, A: PointSets, Z: PointSets) -> Array:
        D = np.empty((len(A.start) - 1, len(Z.start) - 1))
        for i in range(len(D) if D.size else 0):
            costs = cdist(A.points[A.start[i] : A.start[i + 1]], Z.points)
            for j, cost in enumerate(np.split(costs, Z.start[1:-1], axis=1)[: D.shape[1]]):
                D[i, j] = _transport(cost)
        return D


def _transport(cost: Array) -> float:  # (k, l)
    """Of uniform weights; the smaller set first and sums in order: the same for (l, k)."""
    k, l = cost.shape
    if k == l:
        return float(np.sort(cost[linear_sum_assignment(cost)]).sum() / k)
    if k > l:
        return _transport(cost.T)
    if k == 1:
        return float(cost.sum() / l)
    a, b = np.full(k, 1 / k), np.full(l, 1 / l)
    settings = {"numItermax": PIVOTS, "center_dual": False, "check_marginals": False}
    return float(library("ot", "shapes").emd2(a, b, cost, **settings))


# Closed contours


class Curves(NamedTuple):
    """A function on each closed curve at equal steps of arc length, and what is drawn from it."""

    f: Array  # (n, n_points) complex
    spectrum: Array  # (n, n_points): its Fourier coefficients
    square: Array  # (n,): |f|^2

    def part(self, start: int, stop: int | None) -> Curves:
        return Curves(*(array[start:stop] for array in self))


def _curves(f: Array) -> Curves:
    return Curves(f, fft.fft(f, axis=1), _squared_norms(f))


def _squared_norms(f: Array) -> Array:
    return np.asarray((np.square(f.real) + np.square(f.imag)).sum(axis=1))


class _Contour(ObjectKernel):
    """min over shifts s of |f_x - f_z(. + s)|: one FFT a pair gives the inner products of all s.

    A subclass gives the function f of a curve, how inner products score, and |f_x - f_z|^2.
    """

    is_dissimilarity = True
    _mirror: float  # the mirror image of f has the Fourier coefficients _mirror * conj(spectrum)

    def __init__(self, n_points: int = 128, reflect: bool = False) -> None:
        self.n_points = n_points
        self.reflect = reflect

    def _function(self, curve: Array) -> Array:  # (n_points,) -> (n_points,)
        raise NotImplementedError

    def _score(self, products: Array) -> Array:
        raise NotImplementedError

    def _gap(self, f: Array, g: Array) -> Array:  # (b, n_points), (n_points,) -> (b,)
        raise NotImplementedError

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Curves:
        check_scalar(self.n_points, "n_points", Integral, min_val=3)
        points, start = pack(X, first=first, n=n)
        total = n or len(start) - 1
        if points.shape[1] != 2 and total:
            raise ValueError(
                f"object {first} (of {total}) has points of {points.shape[1]} coordinates; a "
                "contour is a curve in the plane, an array of shape (number of points, 2)"
            )
        f = np.empty((len(start) - 1, self.n_points), dtype=np.complex128)
        for i in range(len(f)):
            own = points[start[i] : start[i + 1]]
            if (own == own[0]).all():
                raise ValueError(
                    f"object {first + i} (of {total}) is the single point {own[0]}; a contour "
                    "has at least two different points, leave such objects out"
                )
            f[i] = self._function(_resampled(own, self.n_points))
        return _curves(f)

    def values(self, A: Curves, Z: Curves) -> Array:
        D = self._nearest(A, Z)
        if self.reflect:
            mirrored = _curves(fft.ifft(self._mirror * np.conj(Z.spectrum), axis=1))
            np.minimum(D, self._nearest(A, mirrored), out=D)
        return D

    def _nearest(self, A: Curves, Z: Curves) -> Array:
        D = np.empty((len(A.f), len(Z.f)))
        for lo in range(0, len(Z.f), CURVES):
            part = Z.part(lo, lo + CURVES)
            for i in range(len(D)):
                D[i, lo : lo + CURVES] = self._to_one(part, A.f[i], A.spectrum[i], A.square[i])
        return D

    def _to_one(self, Z: Curves, f: Array, spectrum: Array, square: float) -> Array:
        products = fft.ifft(Z.spectrum * np.conj(spectrum), axis=1, overwrite_x=True)
        scores, squares = self._score(products), Z.square + square
        best = scores.max(axis=1)
        d2 = squares - 2 * best
        near = np.flatnonzero(d2 <= CLOSE * squares)  # few: where this difference loses digits
        if len(near):
            shift = np.argmax(scores[near] >= (best - TIE * squares)[near, None], axis=1)
            at = (np.arange(len(f)) + shift[:, None]) % len(f)
            d2[near] = self._gap(Z.f[near[:, None], at], f)
        return np.asarray(np.sqrt(d2))

    def symmetric(self, Z: Objects) -> Array:
        """Every pair once, as in the base class; the curves are resampled once."""
        curves = self.packed(Z)
        m = len(curves.f)
        D = np.empty((m, m))
        for start in range(0, m, STRIP):
            stop = min(start + STRIP, m)
            D[start:stop, start:] = self.values(curves.part(start, stop), curves.part(start, None))
        return np.triu(D) + np.triu(D, 1).T


def _resampled(points: Array, n: int) -> Array:  # (k, 2) -> (n,) complex
    """n points at equal steps along a closed curve, which is turned to run anticlockwise."""
    moved = points - points[0]
    z = (moved / np.abs(moved).max()).view(np.complex128).ravel()
    z = np.append(z, z[0])
    if np.imag(np.conj(z[:-1]) * z[1:]).sum() < 0:
        z = z[::-1]
    reached = np.cumsum(np.append(0.0, np.abs(np.diff(z))))
    return np.asarray(np.interp(np.arange(n) * (reached[-1] / n), reached, z))


class Procrustes(_Contour):
    """min over shifts s and angles t of |x - exp(it) z(. + s)|, curves as complex functions.

    A contour is a closed curve (k, 2), run through either way, its last point the first one or not.
    It is resampled to ``n_points`` at equal steps along it, centred and scaled to norm 1: place,
    size, rotation and start point do not count, with ``reflect`` neither does a mirror image.

    >>> from kreinlearn.kernels.shapes import Procrustes
    >>> square, oblong = [[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 0], [0, 2], [1, 2], [1, 0]]
    >>> Procrustes()([square], [square, oblong]).round(3)
    array([[0.   , 0.281]])
    """

    _mirror = 1.0

    def _function(self, curve: Array) -> Array:
        centred = curve - curve.mean()
        return np.asarray(centred / np.linalg.norm(centred))

    def _score(self, products: Array) -> Array:
        return np.abs(products)

    def _gap(self, f: Array, g: Array) -> Array:
        real = (f.real * g.real).sum(axis=1) + (f.imag * g.imag).sum(axis=1)
        imaginary = (f.imag * g.real).sum(axis=1) - (f.real * g.imag).sum(axis=1)
        turn = real + 1j * imaginary  # exactly real if f = g
        return _squared_norms(f - (turn / np.abs(turn))[:, None] * g)


class Turning(_Contour):
    """min over shifts s and angles t of the rms of x(.) - z(. + s) - t, x(.) the tangent's angle.

    Contours as in Procrustes; the angle in radians, at ``n_points`` equal steps along the curve,
    less its mean growth to 2 pi (Arkin et al. 1991).

    >>> from kreinlearn.kernels.shapes import Turning
    >>> square, oblong = [[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 0], [0, 2], [1, 2], [1, 0]]
    >>> Turning()([square], [square, oblong]).round(3)
    array([[0.   , 0.579]])
    """

    _mirror = -1.0

    def _function(self, curve: Array) -> Array:
        edges = np.roll(curve, -1) - curve
        turns = np.angle(edges * np.conj(np.roll(edges, 1)))
        angle = np.cumsum(turns - turns.mean())
        return np.asarray((angle - angle.mean()) / np.sqrt(len(curve)))

    def _score(self, products: Array) -> Array:
        return np.asarray(products.real)

    def _gap(self, f: Array, g: Array) -> Array:
        return _squared_norms(f - g)


register("chamfer", Chamfer, replace=True)
register("earth_mover", EarthMover, replace=True)
register("emd", EarthMover, replace=True)
register("procrustes", Procrustes, replace=True)
register("turning", Turning, replace=True)
