"""Features of all rows for solvers that look at single rows: held in memory, or evaluated again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kreinlearn.data.tiles import TILE, Part, among, row_blocks, take, tiles
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.pairs.columns import LandmarkColumns
from kreinlearn.pairs.evaluate import evaluate, over
from kreinlearn.progress import Progress
from kreinlearn.sums.moments import Moments, Terms
from kreinlearn.sums.parallel import map_blocks, sum_over_blocks

Wanted = Callable[[slice, Array], Array]  # rows, their decision values -> which: (k,)


class Known(NamedTuple):
    """Rows that the first pass did not evaluate, as they were known, and how it ordered others."""

    numbers: Array  # sorted
    values: Array  # (len(numbers), m): k(x, Z) / unit
    order: Callable[[Array], Array] | None = None  # of the row numbers of a tile


class Kept:
    """k(x, Z) / unit of the rows of a pass that will be asked for, as many as there is room for."""

    def __init__(self, most: int) -> None:
        self.most, self._lock = most, threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.numbers, self.values = np.empty(0, dtype=np.intp), np.empty((0, 0))
        self._parts: dict[int, tuple[Array, Array]] = {}
        self._count = 0

    def add(self, numbers: Array, C: Array) -> None:
        """Of a tile, by any thread."""
        with self._lock:
            if not len(numbers) or self._count + len(numbers) > self.most:
                return
            self._count += len(numbers)
        self._parts[int(numbers[0])] = numbers, C

    def close(self) -> None:
        parts, self._parts = [self._parts[first] for first in sorted(self._parts)], {}
        if parts:
            self.numbers = np.concatenate([numbers for numbers, _ in parts])
            self.values = np.concatenate([C for _, C in parts])


@dataclass(frozen=True)
class FeatureRows:
    """phi(x) = (k(x, Z) W / unit, 1): what is summed is k(x, Z), and W is applied to the sums.

    A tile is evaluated as in the first pass, so that its values are those that were held.
    """

    X: Objects
    columns: LandmarkColumns
    landmarks: Array
    unit: float
    W: Array  # (m, r)
    n: int
    intercept: bool
    held: Array | None = None  # (n, m): k(x, Z) / unit of all rows
    known: Known | None = None
    whole: bool = True  # a row's values depend on the tile they are evaluated in, by rounding
    kept: Kept | None = None
    workers: int = 1
    progress: Progress = field(default_factory=Progress)

    @property
    def p(self) -> int:
        return self.W.shape[1] + self.intercept

    def with_map(self, W: Array) -> FeatureRows:
        return replace(self, W=W)

    def decision(self, Z: Array, wanted: Wanted | None = None) -> Array:  # (p, q) -> (n, q)
        """Values of the rows that are ``wanted`` next are kept, if they are not held anyway."""
        r, kept = self.W.shape[1], self.kept
        dual, constant = self.W @ Z[:r], Z[r] if self.intercept else 0.0
        out = np.empty((self.n, Z.shape[1]))

        def one_tile(span: tuple[int, int]) -> None:
            here, C = slice(*span), self._tile(*span)
            np.matmul(C, dual, out=out[here])
            out[here] += constant
            if kept is not None and wanted is not None:
                places = np.flatnonzero(wanted(here, out[here]))
                kept.add(places + here.start, C[places])

        if kept is not None:
            kept.clear()
        with self._step(self.n):
            map_blocks(one_tile, tiles(self.n), workers=self.workers)
        if kept is not None:
            kept.close()
        return out

    def terms(self, numbers: Array, weights: Array, targets: Array) -> tuple[Array, Array]:
        """sum w phi phi' and sum w t phi over sorted row numbers."""
        Y = targets.reshape(len(numbers), -1)
        few = len(numbers) <= self.p  # rows are mapped then, and sums otherwise
        with self._step(self._evaluated(numbers)):
            found = (self._terms_of_few if few else self._sums)(numbers, weights, Y)
        A, b = with_constant(found, self.intercept)
        return A, b.reshape(self.p, *targets.shape[1:])

    def _terms_of_few(self, numbers: Array, weights: Array, Y: Array) -> Terms:
        return Terms.of_rows(self._columns_of(numbers, self.workers) @ self.W, Y, weights)

    def _sums(self, numbers: Array, weights: Array, Y: Array) -> Terms:
        parts, m = tiles(len(numbers)), len(self.W)
        many = len(parts) >= self.workers  # threads take parts, or else tiles of a part

        def add(total: Moments, span: tuple[int, int]) -> None:
            part = slice(*span)
            C = self._columns_of(numbers[part], 1 if many else self.workers)
            total.add(C, Y[part], weights[part])

        def zero() -> Moments:
            return Moments.zeros(m, Y.shape[1])

        workers = self.workers if many else 1
        return sum_over_blocks(add, parts, zero, len(numbers), workers=workers).terms(self.W)

    def _columns_of(self, numbers: Array, workers: int) -> Array:
        """k(x, Z) / unit of sorted row numbers."""
        if self.held is not None:
            return np.take(self.held, numbers, axis=0)
        out, left = np.empty((len(numbers), len(self.W))), np.ones(len(numbers), dtype=bool)
        if self.kept is not None and len(self.kept.numbers):
            left = ~among(numbers, self.kept.numbers)
            out[~left] = self.kept.values[np.searchsorted(self.kept.numbers, numbers[~left])]
        if left.any():
            out[left] = self._again(numbers[left], workers)
        return out

    def _again(self, numbers: Array, workers: int) -> Array:
        if not self.whole:
            return self._evaluate(take(self.X, numbers), numbers)
        out = np.empty((len(numbers), len(self.W)))

        def one_tile(start: int) -> None:
            here = slice(*np.searchsorted(numbers, [start, start + TILE]))
            C = self._tile(start, min(start + TILE, self.n))
            np.take(C, numbers[here] - start, axis=0, out=out[here], mode="clip")

        map_blocks(one_tile, (TILE * np.unique(numbers // TILE)).tolist(), workers=workers)
        return out

    def _tile(self, start: int, stop: int) -> Array:
        if self.held is not None:
            return np.asarray(self.held[start:stop])
        if self.known is None:
            return self._evaluate(self.X[start:stop], np.arange(start, stop))
        C, order = np.empty((stop - start, len(self.W))), self.known.order
        among = slice(*np.searchsorted(self.known.numbers, [start, stop]))
        inside = self.known.numbers[among] - start
        C[inside] = self.known.values[among]

        def ordered(places: Array) -> Array:
            return places if order is None else order(places + start) - start

        for places, block in row_blocks(Part(self.X, start, stop), inside, ordered):
            C[places] = self._evaluate(block, places + start)
        return C

    def _evaluated(self, numbers: Array) -> int:
        """Rows that these take to evaluate, about."""
        if self.kept is not None:
            numbers = numbers[~among(numbers, self.kept.numbers)]
        return TILE * len(np.unique(numbers // TILE)) if self.whole else len(numbers)

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
