"""Numbered objects whose values are read from a matrix, with every evaluated pair counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.kernels import pairwise
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests import oracles

Array = NDArray[Any]
RNG = np.random.default_rng(5)
N = 60
POINTS = RNG.normal(size=(N, 3))
D = np.sqrt(((POINTS[:, None] - POINTS[None]) ** 2).sum(2))
D = np.maximum(D, D.T)
K = RNG.normal(size=(N, N))
K = K + K.T
ROWS = np.sort(RNG.choice(50, 30, replace=False))  # objects 50..59 are used from outside


class Counted:
    """A function of two numbered objects, read from a matrix; keeps count of unordered pairs."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.pairs: Counter[tuple[int, int]] = Counter()

    def __call__(self, a: int, b: int) -> float:
        self.pairs[min(a, b), max(a, b)] += 1
        return float(self.matrix[a, b])


def counted_pairs(
    matrix: Array = K, outside: list[int] | None = None, *, metric: bool = False
) -> tuple[Pairs, Counter[tuple[int, int]]]:
    """Pairs of the objects 0..49, and how often each of them was evaluated."""
    counted = Counted(matrix)
    kernel = pairwise(counted).set_params(is_dissimilarity=metric)
    return Pairs(kernel, Rows(list(range(50)), outside), Session()), counted.pairs


def unordered(rows: Iterable[Any], columns: Iterable[Any]) -> set[tuple[int, int]]:
    """All pairs of two sets of numbers."""
    return {(min(a, b), max(a, b)) for a in map(int, rows) for b in map(int, columns)}


def centred(numbers: Any, columns: Any, reference: Any) -> Array:
    """-1/2 (d^2(x, z) - mean over R of d^2(x, .) - mean of d^2(., z) + mean over R x R)."""
    squares = D**2
    a = squares[:, reference].mean(axis=1)
    c = squares[np.ix_(reference, reference)].mean()
    return np.asarray(-0.5 * (squares - a[:, None] - a[None, :] + c)[np.ix_(numbers, columns)])


def exponential(name: str, numbers: Any, columns: Any, reference: Any) -> Array:
    """exp(-d / median), or exp(-d^2 / (sigma(x) sigma(z))) with sigma to the k-th neighbour.

    By ranks, exp(-(rank_x(z) rank_z(x))^1/2 / 3).
    """
    d = D[np.ix_(numbers, columns)]
    among = D[np.ix_(reference, reference)]
    median = float(np.median(among[np.triu_indices(len(reference), 1)]))
    if name == "exp":
        return np.asarray(np.exp(-d / median))

    def rank(i: int, j: int) -> float:
        return oracles.rank(D[i, j], D[i, reference], 1e-6 * median)

    if name == "rank3":
        squares = [[rank(i, j) * rank(j, i) for j in columns] for i in numbers]
        return np.asarray(np.exp(-np.sqrt(squares) / 3))

    def sigma(i: int) -> float:
        return float(sorted(D[i, r] for r in reference if r != i)[int(name[5:]) - 1])

    widths = np.outer([sigma(i) for i in numbers], [sigma(j) for j in columns])
    return np.asarray(np.exp(-(d**2) / widths))
