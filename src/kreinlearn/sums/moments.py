"""Sums over rows that learning needs: Gram matrix, cross terms and means; they add and subtract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.tiles import tiles
from kreinlearn.sums.gram import Gram
from kreinlearn.sums.parallel import sum_over_blocks
from kreinlearn.sums.tree import SPARE

Array = NDArray[Any]

SUM_BYTES = 200 * 2**20  # of the sums that are held; beyond it workers wait for one another


@dataclass(frozen=True)
class Targets:
    """What is to be learned of every row: targets, weights, and the group it is summed in."""

    Y: Array  # (n, q); +-1 of classes may be small integers
    weights: Array | None = None  # (n,)
    groups: Array | None = None  # (n,), 0 .. n_groups - 1
    n_groups: int = 1
    first: int = 0  # number of the first row

    @classmethod
    def none(cls, n: int) -> Self:
        return cls(np.empty((n, 0)))

    def by_group(self, numbers: Array) -> Array:
        """The same row numbers, those of one group together."""
        if self.groups is None:
            return numbers
        return np.asarray(numbers[np.argsort(self.groups[numbers - self.first], kind="stable")])

    def spans(self, numbers: Array) -> list[tuple[int, slice]]:
        """Groups and their places among row numbers that are ordered by group."""
        if self.groups is None:
            return [(0, slice(0, len(numbers)))]
        groups = self.groups[numbers - self.first]
        ends = np.searchsorted(groups, np.arange(self.n_groups + 1))
        return [
            (g, slice(int(ends[g]), int(ends[g + 1])))
            for g in range(self.n_groups)
            if ends[g] < ends[g + 1]
        ]

    def of(self, numbers: Array) -> tuple[Array, Array | None]:
        at = numbers - self.first
        Y = np.asarray(self.Y[at], dtype=np.float64)
        return Y, None if self.weights is None else self.weights[at]


@dataclass
class Moments:
    """C'wC, C'w1, C'wY, 1'wY, Y'wY and 1'w of row blocks C with targets Y and weights w."""

    gram: Gram
    cross: Array  # (m, q)
    y_sums: Array  # (q,)
    y_squares: Array  # (q,)
    weight: float = 0.0

    @classmethod
    def zeros(cls, m: int, q: int, *, single: bool = False) -> Self:
        return cls(Gram.zeros(m, single=single), np.zeros((m, q)), np.zeros(q), np.zeros(q))

    def add(self, C: Array, Y: Array, w: Array | None) -> None:
        if not self.gram.single:
            C = np.asarray(C, dtype=np.float64)
        self.gram.add(C, w)
        wY = Y if w is None else w[:, None] * Y
        if Y.shape[1]:
            self.cross += C.T @ wY.astype(C.dtype, copy=False)
            self.y_sums += wY.sum(axis=0)
            self.y_squares += np.einsum("iq,iq->q", wY, Y)
        self.weight += float(len(C) if w is None else w.sum())

    def __iadd__(self, other: Self) -> Self:
        self.gram += other.gram
        self.cross += other.cross
        self.y_sums += other.y_sums
        self.y_squares += other.y_squares
        self.weight += other.weight
        return self

    def __isub__(self, other: Self) -> Self:
        self.gram -= other.gram
        self.cross -= other.cross
        self.y_sums -= other.y_sums
        self.y_squares -= other.y_squares
        self.weight -= other.weight
        return self

    def clear(self) -> None:
        self.gram.clear()
        for sums in (self.cross, self.y_sums, self.y_squares):
            sums[...] = 0.0
        self.weight = 0.0

    def terms(self, W: Array) -> Terms:  # (m, r)
        """The same sums of features Phi = C W."""
        return Terms(
            symmetric_product(W, self.gram.matrix),
            W.T @ self.gram.sums,
            W.T @ self.cross,
            self.y_sums,
            self.y_squares,
            self.weight,
        )


class Terms(NamedTuple):
    """Moments of features: dense, small, and free to be subtracted from one another."""

    G: Array  # (r, r)
    s: Array  # (r,)
    B: Array  # (r, q)
    t: Array  # (q,)
    yy: Array  # (q,)
    n: float

    def plus(self, other: Terms) -> Terms:
        return self._combined(other, 1.0)

    def minus(self, other: Terms) -> Terms:
        return self._combined(other, -1.0)

    def _combined(self, other: Terms, sign: float) -> Terms:
        return Terms(
            self.G + sign * other.G,
            self.s + sign * other.s,
            self.B + sign * other.B,
            self.t + sign * other.t,
            self.yy + sign * other.yy,
            self.n + sign * other.n,
        )

    def rescaled(self, scale: Array) -> Terms:  # (r,)
        """Of features times ``scale``."""
        G, B = scale[:, None] * self.G * scale, scale[:, None] * self.B
        return self._replace(G=G, s=scale * self.s, B=B)

    def centred(self, *, intercept: bool) -> Centred:
        """Features and targets less their means, or as they are without an intercept."""
        if not intercept:
            return Centred(self.G, self.B, self.yy, self.n, np.zeros_like(self.s), 0 * self.t)
        mean, ybar = self.s / self.n, self.t / self.n
        G = self.G - self.n * np.outer(mean, mean)
        B = self.B - self.n * np.outer(mean, ybar)
        return Centred(G, B, self.yy - self.n * ybar**2, self.n, mean, ybar)

    @classmethod
    def of_rows(cls, Phi: Array, Y: Array, w: Array | None) -> Terms:
        if w is None:
            n, yy = float(len(Phi)), np.einsum("iq,iq->q", Y, Y)
            return cls(Phi.T @ Phi, Phi.sum(axis=0), Phi.T @ Y, Y.sum(axis=0), yy, n)
        wY, root = w[:, None] * Y, np.sqrt(w)[:, None] * Phi
        yy = np.einsum("iq,iq->q", wY, Y)
        return cls(root.T @ root, w @ Phi, Phi.T @ wY, wY.sum(axis=0), yy, float(w.sum()))


class Centred(NamedTuple):
    """Least-squares terms about the means, which give the intercept back."""

    G: Array  # (r, r)
    B: Array  # (r, q)
    yy: Array  # (q,)
    n: float
    mean: Array  # (r,)
    ybar: Array  # (q,)

    def intercept(self, Z: Array) -> Array:  # (r, q) -> (q,)
        return np.asarray(self.ybar - self.mean @ Z)


def total_terms(terms: Sequence[Terms]) -> Terms:
    total = terms[0]
    for term in terms[1:]:
        total = total.plus(term)
    return total


def symmetric_product(W: Array, G: Array) -> Array:
    """W' G W, exactly symmetric."""
    P = W.T @ G @ W
    return np.asarray(0.5 * (P + P.T))


def spare_for(m: int, n_groups: int, workers: int) -> int:
    """Sums that may wait for those of earlier rows: none where they are large."""
    room = SUM_BYTES // max(n_groups * 8 * m * m, 1)
    return int(np.clip(room - workers - 2, 0, SPARE)) if workers > 1 else 0


def moments_of(
    C: Array, targets: Targets, numbers: Array, workers: int = 1, *, single: bool = False
) -> list[Moments]:
    """Moments of every group of a matrix in memory whose rows have these numbers."""
    grouped = targets.groups
    order = None if grouped is None else np.argsort(grouped[numbers], kind="stable")
    m, q = C.shape[1], targets.Y.shape[1]
    found = [Moments.zeros(m, q, single=single) for _ in range(targets.n_groups)]
    Y, w = targets.of(numbers)
    for g, span in targets.spans(numbers if order is None else numbers[order]):
        here = span if order is None else order[span]
        found[g] = _moments(C[here], Y[here], None if w is None else w[here], workers)
    return found


def _moments(C: Array, Y: Array, w: Array | None, workers: int) -> Moments:
    def add(total: Moments, span: tuple[int, int]) -> None:
        here = slice(*span)
        total.add(C[here], Y[here], None if w is None else w[here])

    m, q = C.shape[1], Y.shape[1]
    zero, spare = lambda: Moments.zeros(m, q), spare_for(m, 1, workers)
    return sum_over_blocks(add, tiles(len(C)), zero, len(C), workers=workers, spare=spare)
