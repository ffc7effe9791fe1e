"""The sums over rows that learning needs: Gram matrix, products with targets, and means.

``Moments`` are those of kernel values and are summed over the data. ``FeatureMoments`` are those of
features, follow from them, and are small enough to be added and subtracted freely.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn._native import add_gram
from kreinlearn.data.tiles import TILE
from kreinlearn.sums import Array
from kreinlearn.sums.parallel import SPARE, map_in_threads, sum_over_blocks

SUM_BYTES = 200 * 2**20  # memory for sums; where it is full, workers wait for one another
TARGETS = 2**19  # of a block, that are multiplied at a time: those of very many classes in parts


@dataclass(frozen=True)
class Targets:
    """What belongs to each row: its targets, its weight, and the group in which it is summed."""

    Y: Array  # (n, q); targets +-1 of classes may be small integers
    weights: Array | None = None  # (n,)
    groups: Any = None  # (n,), 0 .. n_groups - 1; an array, or folds that are drawn when asked for
    n_groups: int = 1
    first: int = 0  # number of the first row

    @classmethod
    def none(cls, n: int) -> Self:
        """No targets, for n rows whose Gram matrix is all that is wanted."""
        return cls(np.empty((n, 0)))

    def between(self, start: int, stop: int) -> Targets:
        """The targets of consecutive rows, whose groups are drawn once and not for every tile."""
        here = slice(start - self.first, stop - self.first)
        numbers = np.arange(here.start, here.stop)
        return replace(
            self, Y=self.Y[here], first=start,
            weights=None if self.weights is None else self.weights[here],
            groups=None if self.groups is None else np.asarray(self.groups[numbers]),
        )  # fmt: skip

    def by_group(self, numbers: Array) -> Array:
        """The same row numbers, sorted by group."""
        if self.groups is None:
            return numbers
        return np.asarray(numbers[self.order_of(self.groups[numbers - self.first])])

    def order_of(self, groups: Array) -> Array:
        """A stable sort of group numbers; numpy counts small integers, which takes linear time."""
        few = self.n_groups <= np.iinfo(np.int16).max
        return np.argsort(groups.astype(np.int16) if few else groups, kind="stable")

    def spans(self, numbers: Array) -> list[tuple[int, slice]]:
        """Each group that has rows, and its places among row numbers that are sorted by group."""
        if self.groups is None:
            return [(0, slice(0, len(numbers)))]
        groups = self.groups[numbers - self.first]
        ends = np.searchsorted(groups, np.arange(self.n_groups + 1)).tolist()
        return [(g, slice(a, b)) for g, (a, b) in enumerate(pairwise(ends)) if a < b]

    def of(self, numbers: Array) -> tuple[Array, Array | None]:
        """Targets and weights of the rows with these numbers."""
        Y, w = self.stored(numbers)
        return np.asarray(Y, dtype=np.float64), w

    def stored(self, numbers: Array) -> tuple[Array, Array | None]:
        """The same, with the targets in the type in which they are stored."""
        at = numbers - self.first
        return np.asarray(self.Y[at]), None if self.weights is None else self.weights[at]


@dataclass
class Moments:
    """C'wC, C'w1, C'wY, 1'wY, Y'wY and 1'w of blocks C of rows with targets Y and weights w."""

    gram: Gram
    cross: Array  # (m, q)
    y_sums: Array  # (q,)
    y_squares: Array  # (q,)
    weight: float = 0.0

    @classmethod
    def zeros(cls, m: int, q: int) -> Self:
        return cls(Gram.zeros(m), np.zeros((m, q)), np.zeros(q), np.zeros(q))

    def add(self, C: Array, Y: Array, w: Array | None) -> None:
        """Add a block of rows (b, m) with targets (b, q) and weights (b,)."""
        C = np.asarray(C, dtype=np.float64)
        self.gram.add_products(C, w)
        rows = max(1, TARGETS // max(1, Y.shape[1]))
        for part in (slice(i, i + rows) for i in range(0, len(C), rows)):
            self._add_targets(C[part], Y[part], None if w is None else w[part])
        self.weight += float(len(C) if w is None else w.sum())

    def _add_targets(self, C: Array, Y: Array, w: Array | None) -> None:
        Y = np.asarray(Y, dtype=np.float64)
        V = np.empty((len(C), 1 + Y.shape[1]))  # (b, 1 + q): w1 and wY
        V[:, 0], V[:, 1:] = 1.0 if w is None else w, Y
        if w is not None:
            V[:, 1:] *= w[:, None]
        products = V.T @ C  # (1 + q, m)
        self.gram.sums += products[0]
        self.cross += products[1:].T
        self.y_sums += V[:, 0] @ Y
        self.y_squares += np.einsum("iq,iq->q", V[:, 1:], Y)

    def __iadd__(self, other: Self) -> Self:
        return self._combine(other, operator.iadd)

    def __isub__(self, other: Self) -> Self:
        return self._combine(other, operator.isub)

    def _combine(self, other: Self, operation: Callable[..., Any]) -> Self:
        for name in ("gram", "cross", "y_sums", "y_squares", "weight"):
            setattr(self, name, operation(getattr(self, name), getattr(other, name)))
        return self

    def clear(self) -> None:
        """Set all sums to zero, to be used again."""
        self.gram.clear()
        for sums in (self.cross, self.y_sums, self.y_squares):
            sums[...] = 0.0
        self.weight = 0.0

    def terms(self, W: Array) -> FeatureMoments:  # (m, r)
        """The moments of features Phi = C W."""
        G, s, B = symmetric_product(W, self.gram.matrix), W.T @ self.gram.sums, W.T @ self.cross
        return FeatureMoments(G, s, B, self.y_sums, self.y_squares, self.weight)


class FeatureMoments(NamedTuple):
    """The same sums of features Phi: a small value that is never changed in place."""

    G: Array  # (r, r): Phi' w Phi
    s: Array  # (r,): Phi' w 1
    B: Array  # (r, q): Phi' w Y
    t: Array  # (q,): 1' w Y
    yy: Array  # (q,): Y' w Y
    n: float  # sum of the weights

    def plus(self, other: FeatureMoments) -> FeatureMoments:
        return FeatureMoments(*map(operator.add, self, other))

    def minus(self, other: FeatureMoments) -> FeatureMoments:
        return FeatureMoments(*map(operator.sub, self, other))

    def rescaled(self, scale: Array) -> FeatureMoments:  # (r,)
        """The moments of features that are multiplied by ``scale``."""
        G, B = scale[:, None] * self.G * scale, scale[:, None] * self.B
        return self._replace(G=G, s=scale * self.s, B=B)

    def centred(self, *, intercept: bool) -> Centred:
        """The moments about the means; or, without an intercept, about zero."""
        if not intercept:
            return Centred(self.G, self.B, self.yy, self.n, np.zeros_like(self.s), 0 * self.t)
        mean, ybar = self.s / self.n, self.t / self.n
        G = self.G - self.n * np.outer(mean, mean)
        B = self.B - self.n * np.outer(mean, ybar)
        return Centred(G, B, self.yy - self.n * ybar**2, self.n, mean, ybar)

    def with_constant(self, *, intercept: bool) -> tuple[Array, Array]:
        """G and B of features with a constant beside them, if there is an intercept."""
        if not intercept:
            return self.G, self.B
        A = np.block([[self.G, self.s[:, None]], [self.s, np.array([[self.n]])]])
        return A, np.vstack([self.B, self.t])

    @classmethod
    def of_rows(cls, Phi: Array, Y: Array, w: Array | None) -> FeatureMoments:
        """The moments of features (n, r) in memory, with targets (n, q) and weights (n,)."""
        if w is None:
            n, yy = float(len(Phi)), np.einsum("iq,iq->q", Y, Y)
            return cls(Phi.T @ Phi, Phi.sum(axis=0), Phi.T @ Y, Y.sum(axis=0), yy, n)
        wY, root = w[:, None] * Y, np.sqrt(w)[:, None] * Phi
        yy = np.einsum("iq,iq->q", wY, Y)
        return cls(root.T @ root, w @ Phi, Phi.T @ wY, wY.sum(axis=0), yy, float(w.sum()))


class Centred(NamedTuple):
    """Moments about the means, for least squares; the means then give the intercept."""

    G: Array  # (r, r)
    B: Array  # (r, q)
    yy: Array  # (q,)
    n: float
    mean: Array  # (r,)
    ybar: Array  # (q,)

    def intercept(self, Z: Array) -> Array:  # (r, q) -> (q,)
        """The intercept that belongs to coefficients Z."""
        return np.asarray(self.ybar - self.mean @ Z)


def total_moments(parts: Sequence[FeatureMoments]) -> FeatureMoments:
    """The moments of all rows from those of their parts."""
    return reduce(FeatureMoments.plus, parts)


def total_gram(groups: Sequence[Moments]) -> Gram:
    """The Gram matrix of all groups of rows together."""
    if len(groups) == 1:
        return groups[0].gram
    total = Gram.zeros(len(groups[0].gram.sums))
    for group in groups:
        total += group.gram
    return total


def symmetric_product(W: Array, G: Array) -> Array:
    """The product W' G W, made exactly symmetric."""
    P = W.T @ G @ W
    return np.asarray(0.5 * (P + P.T))


def target_bytes(rows: int, q: int, stored: int) -> int:
    """Bytes of the targets of a block while it is summed, beside all targets.

    These are the targets as they are ``stored``, in so many bytes each, then a part of them as
    numbers, unless they are stored so, and times their weights.
    """
    copies = 1 if stored == 8 else 2
    return stored * rows * q + copies * 8 * min(rows * q, TARGETS)


def spare_for(m: int, n_groups: int, workers: int) -> int:
    """How many sums may wait for those of earlier rows: none where sums are large."""
    room = SUM_BYTES // max(n_groups * 8 * m * m, 1)
    return int(np.clip(room - workers - 2, 0, SPARE)) if workers > 1 else 0


def moments_of(C: Array, targets: Targets, numbers: Array, workers: int = 1) -> list[Moments]:
    """The moments of each group of a matrix in memory, whose rows have these numbers."""
    if targets.groups is None:
        return [_moments(C, targets, numbers, workers)]
    order = targets.order_of(targets.groups[numbers])
    places = dict(targets.spans(numbers[order]))

    def of_group(g: int) -> Moments:
        if g not in places:
            return Moments.zeros(C.shape[1], targets.Y.shape[1])
        here = order[places[g]]
        return _moments(C[here], targets, numbers[here], 1)

    return map_in_threads(of_group, range(targets.n_groups), workers)


def _moments(C: Array, targets: Targets, numbers: Array, workers: int) -> Moments:
    def add(total: Moments, here: slice) -> None:
        total.add(C[here], *targets.stored(numbers[here]))

    m, tiles = C.shape[1], gen_batches(len(C), TILE)
    zero, spare = partial(Moments.zeros, m, targets.Y.shape[1]), spare_for(m, 1, workers)
    return sum_over_blocks(add, tiles, zero, len(C), workers=workers, spare=spare)


def column_sums(C: Array) -> Array:  # (b, m) -> (m,)
    """The sum of each column; BLAS adds rows several times faster than numpy."""
    return np.asarray(np.ones(len(C)) @ C)


STRIP = 128  # columns of a triangle that are added at once


@dataclass
class Gram:
    """C'wC and the weighted column sums of blocks C of rows.

    Only the upper triangle of ``triangle`` is used, in Fortran order; ``matrix`` is all of it.
    """

    triangle: Array  # (m, m)
    sums: Array  # (m,)

    @classmethod
    def zeros(cls, m: int) -> Self:
        return cls(np.zeros((m, m), order="F"), np.zeros(m))

    def add(self, C: Array, w: Array | None = None) -> None:
        """Add a block of rows (b, m) with weights (b,)."""
        self.sums += column_sums(C) if w is None else w @ C
        self.add_products(C, w)

    def add_products(self, C: Array, w: Array | None) -> None:
        """Add C'wC alone; whoever calls this has added the column sums."""
        if w is not None:
            C = np.sqrt(w)[:, None] * C
        add_gram(C, self.triangle)

    def __iadd__(self, other: Self) -> Self:
        return self._combine(other, np.add)

    def __isub__(self, other: Self) -> Self:
        return self._combine(other, np.subtract)

    def _combine(self, other: Self, operation: Callable[..., Array]) -> Self:
        for strip in self._strips():
            operation(self.triangle[strip], other.triangle[strip], out=self.triangle[strip])
        operation(self.sums, other.sums, out=self.sums)
        return self

    def clear(self) -> None:
        """Set all sums to zero, to be used again."""
        for strip in self._strips():
            self.triangle[strip] = 0.0
        self.sums[:] = 0.0

    def _strips(self) -> Iterator[tuple[slice, slice]]:
        """Strips of columns that cover the upper triangle and little else."""
        m = len(self.sums)
        for j in range(0, m, STRIP):
            yield slice(0, min(j + STRIP, m)), slice(j, j + STRIP)

    @property
    def matrix(self) -> Array:  # (m, m)
        upper = np.triu(self.triangle)
        return np.asarray(upper + np.triu(upper, 1).T)


def gram_of(C: Array, workers: int = 1) -> Gram:
    """C'C and the column sums of a matrix in memory, summed in the fixed tiles."""

    def add(total: Gram, here: slice) -> None:
        total.add(C[here])

    zero, tiles = partial(Gram.zeros, C.shape[1]), gen_batches(len(C), TILE)
    return sum_over_blocks(add, tiles, zero, len(C), workers=workers)
