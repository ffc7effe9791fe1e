"""Scores of classes by the distances to their nearest training objects.

The score of class c for an object x is -log(d + floor), where d is the mean distance from x to the
k nearest training objects of class c. There is one array of scores for each number k. A factor of
such a score acts like a dimension: among p-dimensional vectors, the density of a class at x is
roughly proportional to d to the power -p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from kreinlearn.kernels.base import Array

NEIGHBOURS = (1, 3, 10)  # the numbers k of neighbours, one array of scores each
FLOOR = 1e-3  # added to distances, in units of the median distance
MEDIAN_ROWS = 1024  # training objects whose distances give the median, at the most
BLOCK = 512  # rows whose distances are copied at once
NOBODY = -1  # in place of a class: the object is nobody's neighbour; in place of an object: none


@dataclass(frozen=True)
class NeighbourScores:
    """What is kept of the training objects to score new ones by their nearest neighbours.

    Objects of weight zero are nobody's neighbours, and a value that is not finite is no distance.
    Where a class has no neighbours for an object, for instance because the object itself is left
    out and was the only one of its class, the distance to that class is the largest among the
    distances of the object to the other classes. If no class has neighbours, all distances are
    ``default``.
    """

    labels: Array  # (n,), the class of each training object, or NOBODY
    counts: Array  # (n_classes,), the number of possible neighbours in each class
    floor: float  # added to distances before the logarithm
    default: float  # the distance to a class if nothing is known about any class
    top: float | None = None  # the largest training similarity; None if values are distances

    @classmethod
    def fit(
        cls,
        D: Array,
        labels: Array,
        n_classes: int,
        weights: Array | None = None,
        *,
        similarities: bool = False,
    ) -> Self:
        """Look at the (n, n) distances, or similarities, among training objects."""
        labels = np.array(labels if weights is None else np.where(weights > 0, labels, NOBODY))
        counted = np.flatnonzero(labels != NOBODY)
        counts = np.bincount(labels[counted], minlength=n_classes)
        top = largest(D, counted) if similarities else None
        median = median_distance(D, counted, top)
        return cls(labels, counts, FLOOR * median, median, top)

    def left_out(self, D: Array) -> Array:  # (n, n) -> (K, n, n_classes)
        """Scores of the training objects, of which none is a neighbour of itself."""
        return self.of(D, np.arange(len(D)))

    def of(self, D: Array, own: Array | None = None) -> Array:  # (b, n), (b,) -> (K, b, n_classes)
        """Scores of objects from their distances, or similarities, to training objects.

        Objects are new, or ``own`` says for each of them which training object it is itself, or
        NOBODY if it is none of them. None of them is a neighbour of itself.
        """
        by_class = np.argsort(self.labels, kind="stable")[np.sum(self.labels == NOBODY) :]
        place = np.full(len(self.labels), NOBODY)  # of a training object among the columns by class
        place[by_class] = np.arange(len(by_class))
        means = np.empty((len(NEIGHBOURS), len(D), len(self.counts)))
        for start in range(0, len(D), BLOCK):
            rows = slice(start, start + BLOCK)
            block = distances(D[rows][:, by_class], self.top)
            if own is not None:
                column = np.where(own[rows] == NOBODY, NOBODY, place[own[rows]])
                known = np.flatnonzero(column != NOBODY)
                block[known, column[known]] = np.inf
            means[:, rows] = self._means(block)
        means += self.floor
        return np.negative(np.log(means, out=means), out=means)

    def _means(self, block: Array) -> Array:  # (b, counted objects by class) -> (K, b, n_classes)
        """Mean distances to the nearest of each class; the block is partly sorted in place."""
        means = np.full((len(NEIGHBOURS), len(block), len(self.counts)), np.nan)
        ends = np.cumsum(self.counts)
        for c in np.flatnonzero(self.counts):
            means[:, :, c] = nearest_means(block[:, ends[c] - self.counts[c] : ends[c]])
        worst = np.fmax.reduce(means, axis=2, keepdims=True)
        return np.where(np.isnan(means), np.where(np.isnan(worst), self.default, worst), means)


@dataclass(frozen=True)
class LabelNeighbours:
    """The same for labels, of which an object may have any number.

    The score of a label is that of the training objects that have it, minus that of those without
    it: a logarithm of odds.
    """

    labels: Array  # (n, L), whether each training object has each label, or NOBODY
    floor: float  # as for classes
    default: float
    top: float | None = None

    @classmethod
    def fit(
        cls, D: Array, Y: Array, weights: Array, *, similarities: bool = False
    ) -> Self:  # fmt: skip
        """Look at the (n, n) distances, or similarities, among objects with targets Y (n, L)."""
        labels = np.where(weights[:, None] > 0, Y > 0, NOBODY).astype(np.int8)
        one = NeighbourScores.fit(D, labels[:, 0].astype(np.intp), 2, weights,
                                  similarities=similarities)  # fmt: skip
        return cls(labels, one.floor, one.default, one.top)

    @property
    def counts(self) -> Array:  # (L, 2)
        """The number of possible neighbours without and with each label."""
        return np.stack([(self.labels == 0).sum(axis=0), (self.labels == 1).sum(axis=0)], axis=1)

    def of(self, D: Array, own: Array | None = None) -> Array:  # (b, n), (b,) -> (K, b, L)
        """Scores of objects from their distances, or similarities, to training objects."""
        odds = np.empty((len(NEIGHBOURS), len(D), self.labels.shape[1]))
        for j, counts in enumerate(self.counts):
            labels = self.labels[:, j].astype(np.intp)
            one = NeighbourScores(labels, counts, self.floor, self.default, self.top)
            scores = one.of(D, own)
            odds[:, :, j] = scores[:, :, 1] - scores[:, :, 0]
        return odds


def nearest_means(D: Array) -> Array:  # (b, m) -> (K, b)
    """Mean of the k smallest finite values of each row, for each k of NEIGHBOURS; D is reordered.

    It is the mean of all finite values where there are fewer than k, and nan where there are none.
    Running sums add the values in increasing order, whatever the number of rows.
    """
    most = min(max(NEIGHBOURS), D.shape[1])
    D.partition(most - 1, axis=1)
    nearest = np.sort(D[:, :most], axis=1)
    finite = np.isfinite(nearest)
    sums = np.cumsum(np.where(finite, np.maximum(nearest, 0.0), 0.0), axis=1)
    numbers = np.cumsum(finite, axis=1)
    last = np.minimum(NEIGHBOURS, most) - 1
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[:, last] / numbers[:, last]).T


def without_mates(values: Array, rows: Array, columns: Array, *, similarities: bool) -> Array:
    """Values of objects and landmarks, of which those of one group are nobody's neighbours."""
    far = -np.inf if similarities else np.inf
    return np.where(rows[:, None] == columns, far, values)


def as_distances(K: Array, top: float) -> Array:
    """Similarities as distances from the largest training similarity.

    New objects may be more similar than any two training objects. Their distances are negative,
    and scores take them as zero.
    """
    return np.asarray(top - K)


def distances(values: Array, top: float | None) -> Array:
    """Training values, or those of new rows, as distances in double precision."""
    values = values.astype(np.float64, copy=False)
    return values if top is None else as_distances(values, top)


def largest(K: Array, counted: Array) -> float:
    """The largest finite similarity among the objects that count."""
    tops = [np.max(B, where=np.isfinite(B), initial=-np.inf) for B in row_blocks(K, counted)]
    top = max(tops, default=-np.inf)
    return float(top) if np.isfinite(top) else 0.0


def row_blocks(D: Array, counted: Array) -> Iterator[Array]:
    """Values among the objects that count, a block of rows at a time."""
    for start in range(0, len(counted), BLOCK):
        yield D[np.ix_(counted[start : start + BLOCK], counted)]


def median_distance(D: Array, counted: Array, top: float | None) -> float:
    """The median of the distances between two different objects; always positive.

    Of many objects it is the median of the distances from ``MEDIAN_ROWS`` of them, evenly spaced.
    If most distances are zero it is the mean of the positive ones, and 1 if there are none.
    """
    m = len(counted)
    chosen = np.linspace(0, m - 1, min(m, MEDIAN_ROWS)).astype(np.intp)
    others = chosen[:, None] != np.arange(m)
    values = distances(D[np.ix_(counted[chosen], counted)][others], top)
    values = np.maximum(values[np.isfinite(values)], 0.0)
    median = float(np.median(values)) if len(values) else 0.0
    if median > 0:
        return median
    positive = values[values > 0]
    return float(positive.mean()) if len(positive) else 1.0
