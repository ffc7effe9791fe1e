"""Kernels that count which pairs of objects a fit evaluates, in a table of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kreinlearn.kernels import Kernel
from kreinlearn.kernels.domains import Objects

Array = NDArray[Any]


class Tally:
    """How often each ordered pair of n objects was evaluated; clones of an estimator share it."""

    def __init__(self, n: int) -> None:
        self.evaluations = np.zeros((n, n), dtype=np.uint16)

    def __sklearn_clone__(self) -> Self:
        return self

    def mark(self, rows: Array, columns: Array) -> None:
        self.evaluations[np.ix_(rows, columns)] += 1

    def mark_among(self, rows: Array) -> None:
        i, j = np.triu_indices(len(rows))
        self.evaluations[rows[i], rows[j]] += 1

    def mark_self(self, rows: Array) -> None:
        self.evaluations[rows, rows] += 1

    def _unordered(self) -> Array:
        both = self.evaluations.astype(np.int64)
        both += np.tril(both, -1).T
        return both[np.triu_indices(len(both))]

    @property
    def pairs(self) -> int:
        """The number of distinct unordered pairs, including those of an object with itself."""
        return int(np.count_nonzero(self._unordered()))

    @property
    def repeated(self) -> int:
        """The number of unordered pairs of two objects that were evaluated more than once."""
        off = self._unordered()[np.not_equal(*np.triu_indices(len(self.evaluations)))]
        return int(np.count_nonzero(off > 1))

    @property
    def share(self) -> float:
        n = len(self.evaluations)
        return self.pairs / (n * (n + 1) / 2)


class CountedVectors(Kernel):
    """A kernel on vectors that counts pairs of rows of X, which it recognises by their bytes."""

    def __init__(self, kernel: Kernel, tally: Tally) -> None:
        self.kernel = kernel
        self.tally = tally

    def fit(self, X: Array, rng: np.random.Generator) -> Self:
        self.kernel_ = clone(self.kernel).fit(X, rng)
        self.numbers_ = {row.tobytes(): i for i, row in enumerate(X)}
        if len(self.numbers_) < len(X):
            raise ValueError("pairs of rows that occur twice cannot be counted; drop duplicates")
        return self

    def _rows(self, A: Array) -> Array:
        return np.array([self.numbers_[row.tobytes()] for row in A], dtype=np.intp)

    def columns(self, Z: Array) -> Any:
        inner, columns = self.kernel_.columns(Z), self._rows(Z)

        def counted(A: Array, out: Array | None = None) -> Array:
            self.tally.mark(self._rows(A), columns)
            return inner(A, out)

        return counted

    def diagonal(self, A: Array) -> Array:
        self.tally.mark_self(self._rows(A))
        return self.kernel_.diagonal(A)

    def symmetric(self, Z: Array, own: Array | None = None) -> Array:
        self.tally.mark_among(self._rows(Z))
        return self.kernel_.symmetric(Z)


class CountedObjects(Kernel):
    """A similarity matrix as a kernel on row numbers that counts its pairs."""

    domain = Objects()

    def __init__(self, matrix: Array, tally: Tally) -> None:
        self.matrix = matrix
        self.tally = tally

    def columns(self, Z: Sequence[int]) -> Any:
        columns = np.asarray(Z, dtype=np.intp)

        def counted(A: Sequence[int], out: Array | None = None) -> Array:
            rows = np.asarray(A, dtype=np.intp)
            self.tally.mark(rows, columns)
            return self.matrix[np.ix_(rows, columns)]

        return counted

    def diagonal(self, A: Sequence[int]) -> Array:
        rows = np.asarray(A, dtype=np.intp)
        self.tally.mark_self(rows)
        return np.diagonal(self.matrix)[rows]

    def symmetric(self, Z: Sequence[int], own: Array | None = None) -> Array:
        rows = np.asarray(Z, dtype=np.intp)
        self.tally.mark_among(rows)
        return self.matrix[np.ix_(rows, rows)]
