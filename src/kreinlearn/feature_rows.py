"""Features of all rows for solvers that look at single rows: held in memory, or evaluated again."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from kreinlearn.blocks import rows, take, tiles
from kreinlearn.columns import LandmarkColumns
from kreinlearn.kernels._base import Array, Objects
from kreinlearn.moments import Moments, Terms
from kreinlearn.progress import Progress
from kreinlearn.reduce import map_blocks, sum_over_blocks
from kreinlearn.rows import evaluate, over


@dataclass(frozen=True)
class FeatureRows:
    """phi(x) = (k(x, Z) W / unit, 1): what is summed is k(x, Z), and W is applied to the sums."""

    X: Objects
    columns: LandmarkColumns
    landmarks: Array
    unit: float
    W: Array  # (m, r)
    n: int
    intercept: bool
    held: Array | None = None  # (n, m): k(x, Z) / unit of all rows
    workers: int = 1
    progress: Progress = field(default_factory=Progress)

    @property
    def p(self) -> int:
        return self.W.shape[1] + self.intercept

    def with_map(self, W: Array) -> FeatureRows:
        return replace(self, W=W)

    def decision(self, Z: Array) -> Array:  # (p, q) -> (n, q)
        r = self.W.shape[1]
        dual, constant = self.W @ Z[:r], Z[r] if self.intercept else 0.0
        out = np.empty((self.n, Z.shape[1]))

        def one_tile(span: tuple[int, int]) -> None:
            here = slice(*span)
            if self.held is not None:
                C = self.held[here]
            else:
                C = self._evaluate(rows(self.X, *span), np.arange(*span))
            np.matmul(C, dual, out=out[here])
            out[here] += constant

        with self._step(self.n):
            map_blocks(one_tile, tiles(self.n), workers=self.workers)
        return out

    def terms(self, numbers: Array, weights: Array, targets: Array) -> tuple[Array, Array]:
        """sum w phi phi' and sum w t phi over sorted row numbers."""
        Y = targets.reshape(len(numbers), -1)
        few = len(numbers) <= self.p  # rows are mapped then, and sums otherwise
        with self._step(len(numbers)):
            found = (self._terms_of_few if few else self._sums)(numbers, weights, Y)
        A, b = with_constant(found, self.intercept)
        return A, b.reshape(self.p, *targets.shape[1:])

    def _terms_of_few(self, numbers: Array, weights: Array, Y: Array) -> Terms:
        return Terms.of_rows(self._columns_of(numbers) @ self.W, Y, weights)

    def _sums(self, numbers: Array, weights: Array, Y: Array) -> Terms:
        def add(total: Moments, span: tuple[int, int]) -> None:
            part = slice(*span)
            total.add(self._columns_of(numbers[part]), Y[part], weights[part])

        def zero() -> Moments:
            return Moments.zeros(len(self.W), Y.shape[1])

        parts = tiles(len(numbers))
        return sum_over_blocks(add, parts, zero, len(numbers), workers=self.workers).terms(self.W)

    def _columns_of(self, numbers: Array) -> Array:
        if self.held is not None:
            return np.take(self.held, numbers, axis=0)
        return self._evaluate(take(self.X, numbers), numbers)

    def _step(self, n: int) -> AbstractContextManager[None]:
        """Progress of rows that are evaluated again."""
        held = self.held is not None
        return nullcontext() if held else self.progress.step("rows again", n, n * len(self.W))

    def _evaluate(self, A: Objects, numbers: Array) -> Array:
        C = evaluate(partial(self.columns.of_rows, numbers), A, numbers, self.landmarks)
        self.progress.add(len(C), C.size)
        return np.asarray(over(C, self.unit), dtype=np.float64)


def with_constant(terms: Terms, intercept: bool) -> tuple[Array, Array]:
    """Gram matrix and cross terms of features with a constant beside them, if there is one."""
    if not intercept:
        return terms.G, terms.B
    A = np.block([[terms.G, terms.s[:, None]], [terms.s, np.array([[terms.n]])]])
    return A, np.vstack([terms.B, terms.t])
