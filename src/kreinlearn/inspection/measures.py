"""The figures of an inspection, each computed by its definition."""

from __future__ import annotations

import numpy as np

from kreinlearn.inspection.arguments import Array
from kreinlearn.solvers.spectrum import Spectrum, indefiniteness_of, power_of_two_scale

TRIANGLES = 200_000  # triples of objects that are drawn
ROUNDING = 1e-9  # differences up to this share of the largest value count as none
ERROR = 0.05  # share of |K| that an approximation may miss
SHUFFLES = 99  # of labels: true labels exceed all of them by chance once in a hundred
NEIGHBOURS = 5  # by which the target of an object is predicted
CLOSER = 1e-6  # by which the vote of a neighbour counts more than that of the next one


def nested_sizes(s: int) -> list[int]:
    """A quarter, a half and all of a sample of s objects; parts below 20 objects are left out."""
    return sorted({n for n in (s // 4, s // 2, s) if n >= min(s, 20)})


def effective_rank(D: Array, error: float = ERROR) -> int:  # D by decreasing magnitude
    """The smallest k such that the norm of all but the first k eigenvalues is at most ``error``.

    The norm is relative to that of all eigenvalues.
    """
    tails = np.sqrt(np.append(np.cumsum(np.square(D[::-1]))[::-1], 0.0))
    return int(np.argmax(tails <= error * tails[0]))


def triangle_violations(D: Array, rng: np.random.Generator) -> float:
    """The share of random triples of distinct objects with d(x, z) > d(x, y) + d(y, z)."""
    n = len(D)
    if n < 3:
        return 0.0
    x, y, z = rng.integers(n, size=(3, TRIANGLES))
    apart = (x != y) & (y != z) & (x != z)
    x, y, z = x[apart], y[apart], z[apart]
    return float(np.mean(D[x, z] - D[x, y] - D[y, z] > ROUNDING * D.max(initial=0.0)))


def squared_distances(K: Array) -> Array:
    """k(x, x) + k(z, z) - 2 k(x, z), which may be negative."""
    own = np.diagonal(K)
    return np.asarray(own[:, None] + own - 2 * K)


def negative_squares(K: Array) -> float:
    """The share of pairs of objects whose squared distance is negative."""
    pairs = squared_distances(K)[np.triu_indices(len(K), 1)]
    return float(np.mean(pairs < -ROUNDING * np.abs(K).max(initial=0.0))) if len(pairs) else 0.0


def duplicates(K: Array) -> int:
    """The number of pairs of objects that have the same similarities to all objects."""
    limit = ROUNDING * np.abs(K).max(initial=0.0)
    close = np.triu(np.abs(squared_distances(K)) <= limit, 1)
    pairs = ((K[a], K[close[a]]) for a in np.flatnonzero(close.any(axis=1)))
    return sum(int(np.all(np.abs(rows - row) <= limit, axis=1).sum()) for row, rows in pairs)


def label_signal(spectrum: Spectrum, y: Array) -> float:
    """The share of the negative part of K in y'|K|y, where y is centred."""
    projected = np.square(spectrum.U.T @ _centred(y)).sum(axis=1)
    return indefiniteness_of(spectrum.D * projected)


def label_excess(spectrum: Spectrum, y: Array, rng: np.random.Generator) -> float:
    """|K- y| divided by the largest such norm of several shuffles of y.

    K- is the negative part of K. A value above 1 says that the labels use it.
    """
    negative, Y = spectrum.D < 0, _centred(y)
    UD = (spectrum.U * (spectrum.D / power_of_two_scale(spectrum.D)))[:, negative]

    def size(Y: Array) -> float:
        return float(np.linalg.norm(UD.T @ Y))

    most = max(size(Y[rng.permutation(len(Y))]) for _ in range(SHUFFLES))
    return size(Y) / most if most else 0.0


def by_neighbours(distances: Array, y: Array) -> Array:  # (s, s), (s, outputs) -> (s, outputs)
    """The mean target of the nearest other objects; of two that are as near, either may count."""
    apart = np.array(distances, dtype=np.float64)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(apart) - 1)]
    votes = 1 + CLOSER * np.arange(nearest.shape[1])[::-1]
    return sum(vote * y[nearest[:, j]] for j, vote in enumerate(votes)) / votes.sum()


def accuracy(predicted: Array, y: Array) -> float:
    """The share of objects for which the largest prediction is that of their class."""
    return float(np.mean(np.argmax(predicted, axis=1) == np.argmax(y, axis=1)))


def r_squared(predicted: Array, y: Array) -> float:
    """The share of the variance that is explained, the mean over outputs that vary at all."""
    unit = power_of_two_scale(y)
    errors, gaps = (predicted - y) / unit, _centred(y / unit)
    variance = np.square(gaps).sum(axis=0)
    varies = variance > 0
    if not varies.any():
        return 0.0
    return float(np.mean(1 - np.square(errors).sum(axis=0)[varies] / variance[varies]))


def _centred(y: Array) -> Array:  # (n,) or (n, outputs) -> (n, outputs)
    Y = y.reshape(len(y), -1).astype(np.float64)
    return np.asarray(Y - Y.mean(axis=0))
