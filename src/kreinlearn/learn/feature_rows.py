"""Features of all rows, for solvers that look at single rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE, Part, among, row_blocks, take
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.task import Features, Task, weighted
from kreinlearn.pairs.evaluate import LandmarkColumns, evaluate, scaled
from kreinlearn.progress import Progress
from kreinlearn.solvers.margins import Margins, RowMargins
from kreinlearn.sums.moments import FeatureMoments, Moments
from kreinlearn.sums.parallel import map_blocks, sum_over_blocks

MOVING = 0.125  # share of the budget for kernel values of rows on the move, where not all are kept
ROW_NUMBERS = 6  # numbers per row and output: targets, weights, decisions, margins
Wanted = Callable[[slice, Array], Array]  # rows and their decision values -> which of them: (k,)


class Sampled(NamedTuple):
    """Rows that the first pass did not evaluate because they were in the sample."""

    numbers: Array  # sorted
    values: Array  # (len(numbers), m): k(x, Z) / unit
    order: Callable[[Array], Array] | None = None  # how the first pass ordered the rows of a tile


class MovingRows:
    """k(x, Z) / unit of the rows that will be asked for next, as many as there is room for."""

    def __init__(self, most: int) -> None:
        self.most, self._lock = most, threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.numbers, self.values = np.empty(0, dtype=np.intp), np.empty((0, 0))
        self._parts: dict[int, tuple[Array, Array]] = {}
        self._count = 0

    def add(self, numbers: Array, C: Array) -> None:
        """Take rows of a tile; any thread may call this."""
        with self._lock:
            if not len(numbers) or self._count + len(numbers) > self.most:
                return
            self._count += len(numbers)
        self._parts[int(numbers[0])] = numbers, C

    def close(self) -> None:
        """The pass has ended: sort what was taken."""
        parts, self._parts = [self._parts[first] for first in sorted(self._parts)], {}
        if parts:
            self.numbers = np.concatenate([numbers for numbers, _ in parts])
            self.values = np.concatenate([C for _, C in parts])


@dataclass(frozen=True)
class ValuesHere:
    """Kernel values of all rows in this process: kept if the budget allows, or evaluated again."""

    target: Array | None  # (n, m), which the first pass fills; None: there is no room for it
    sampled: Array | None = None  # numbers of the rows that the first pass does not evaluate
    by_fold: bool = False

    @classmethod
    def for_rows(cls, n: int, m: int, n_bytes: int, budget: int) -> ValuesHere:
        return cls(np.empty((n, m)) if n_bytes <= budget else None)

    def before(self, task: Task, *, by_fold: bool) -> ValuesHere:
        """Remember how the first pass will see the rows."""
        return replace(self, sampled=task.numbers, by_fold=by_fold)

    def margins(self, task: Task, features: Features, W: Array, total: float) -> Margins:
        """The rows as Newton's method sees them, with features C W."""
        return RowMargins(self.rows(task, features).with_map(W), *weighted(task.Y, task.weights))

    def rows(self, task: Task, features: Features) -> FeatureRows:
        """The features of all rows."""
        sample, session, n, m = task.sample, task.pairs.session, task.n, len(features.map.W)
        sampled = moving = None
        if self.target is None:
            assert self.sampled is not None
            left = max(session.budget - 8 * ROW_NUMBERS * task.Y.size, 0)
            moving = MovingRows(int(MOVING * left / (8 * m)))
            values = sample.scaled[sample.positions(self.sampled)]
            sampled = Sampled(self.sampled, values, task.targets(by_fold=self.by_fold).by_group)
        return FeatureRows(
            task.rows.X, features.columns, sample.landmarks, features.unit, features.map.W, n,
            task.intercept, self.target, sampled, task.pairs.in_place, moving,
            task.pairs.workers, session.progress,
        )  # fmt: skip


@dataclass(frozen=True)
class FeatureRows:
    """phi(x) = (k(x, Z) W / unit, 1): what is summed is k(x, Z), and W is applied to the sums.

    A tile is evaluated as in the first pass, so that its values are those of the first pass.
    """

    X: Objects
    columns: LandmarkColumns
    landmarks: Array
    unit: float
    W: Array  # (m, r)
    n: int
    intercept: bool
    values: Array | None = None  # (n, m): k(x, Z) / unit of all rows
    sampled: Sampled | None = None
    by_tile: bool = True  # a row's values depend on the tile that it is evaluated in, by rounding
    moving: MovingRows | None = None
    workers: int = 1
    progress: Progress = field(default_factory=Progress)

    @property
    def p(self) -> int:
        return self.W.shape[1] + self.intercept

    def with_map(self, W: Array) -> FeatureRows:
        return replace(self, W=W)

    def decision(self, Z: Array, wanted: Wanted | None = None) -> Array:  # (p, q) -> (n, q)
        """Decision values of all rows; kernel values of rows that are ``wanted`` next are kept."""
        r, moving = self.W.shape[1], self.moving
        dual, constant = self.W @ Z[:r], Z[r] if self.intercept else 0.0
        out = np.empty((self.n, Z.shape[1]))

        def one_tile(here: slice) -> None:
            C = self._tile(here.start, here.stop)
            np.matmul(C, dual, out=out[here])
            out[here] += constant
            if moving is not None and wanted is not None:
                places = np.flatnonzero(wanted(here, out[here]))
                moving.add(places + here.start, C[places])

        if moving is not None:
            moving.clear()
        with self._step(self.n):
            map_blocks(one_tile, gen_batches(self.n, TILE), workers=self.workers)
        if moving is not None:
            moving.close()
        return out

    def terms(self, numbers: Array, weights: Array, targets: Array) -> tuple[Array, Array]:
        """sum w phi phi' and sum w t phi over sorted row numbers."""
        Y = targets.reshape(len(numbers), -1)
        few = len(numbers) <= self.p  # rows are mapped then, and sums otherwise
        with self._step(self._evaluated(numbers)):
            terms = (self._terms_of_few if few else self._sums)(numbers, weights, Y)
        A, b = with_constant(terms, self.intercept)
        return A, b.reshape(self.p, *targets.shape[1:])

    def _terms_of_few(self, numbers: Array, weights: Array, Y: Array) -> FeatureMoments:
        return FeatureMoments.of_rows(self._columns_of(numbers, self.workers) @ self.W, Y, weights)

    def _sums(self, numbers: Array, weights: Array, Y: Array) -> FeatureMoments:
        parts, m = list(gen_batches(len(numbers), TILE)), len(self.W)
        many = len(parts) >= self.workers  # threads take parts, or else tiles of a part

        def add(total: Moments, part: slice) -> None:
            C = self._columns_of(numbers[part], 1 if many else self.workers)
            total.add(C, Y[part], weights[part])

        def zero() -> Moments:
            return Moments.zeros(m, Y.shape[1])

        workers = self.workers if many else 1
        return sum_over_blocks(add, parts, zero, len(numbers), workers=workers).terms(self.W)

    def _columns_of(self, numbers: Array, workers: int) -> Array:
        """k(x, Z) / unit of sorted row numbers."""
        if self.values is not None:
            return np.take(self.values, numbers, axis=0)
        out, left = np.empty((len(numbers), len(self.W))), np.ones(len(numbers), dtype=bool)
        if self.moving is not None and len(self.moving.numbers):
            left = ~among(numbers, self.moving.numbers)
            out[~left] = self.moving.values[np.searchsorted(self.moving.numbers, numbers[~left])]
        if left.any():
            out[left] = self._again(numbers[left], workers)
        return out

    def _again(self, numbers: Array, workers: int) -> Array:
        if not self.by_tile:
            return self._evaluate(take(self.X, numbers), numbers)
        out = np.empty((len(numbers), len(self.W)))

        def one_tile(start: int) -> None:
            here = slice(*np.searchsorted(numbers, [start, start + TILE]))
            C = self._tile(start, min(start + TILE, self.n))
            np.take(C, numbers[here] - start, axis=0, out=out[here], mode="clip")

        map_blocks(one_tile, (TILE * np.unique(numbers // TILE)).tolist(), workers=workers)
        return out

    def _tile(self, start: int, stop: int) -> Array:
        if self.values is not None:
            return np.asarray(self.values[start:stop])
        if self.sampled is None:
            return self._evaluate(self.X[start:stop], np.arange(start, stop))
        C, order = np.empty((stop - start, len(self.W))), self.sampled.order
        among = slice(*np.searchsorted(self.sampled.numbers, [start, stop]))
        inside = self.sampled.numbers[among] - start
        C[inside] = self.sampled.values[among]

        def ordered(places: Array) -> Array:
            return places if order is None else order(places + start) - start

        for places, block in row_blocks(Part(self.X, start, stop), inside, ordered):
            C[places] = self._evaluate(block, places + start)
        return C

    def _evaluated(self, numbers: Array) -> int:
        """About how many rows have to be evaluated for these."""
        if self.moving is not None:
            numbers = numbers[~among(numbers, self.moving.numbers)]
        return TILE * len(np.unique(numbers // TILE)) if self.by_tile else len(numbers)

    def _step(self, n: int) -> AbstractContextManager[None]:
        """A step of the progress bar for rows that are evaluated again."""
        kept = self.values is not None
        return nullcontext() if kept else self.progress.step("rows again", n, n * len(self.W))

    def _evaluate(self, A: Objects, numbers: Array) -> Array:
        C = evaluate(partial(self.columns.of_rows, numbers), A, numbers, self.landmarks)
        self.progress.add(len(C), C.size)
        return np.asarray(scaled(C, self.unit), dtype=np.float64)


def with_constant(terms: FeatureMoments, intercept: bool) -> tuple[Array, Array]:
    """Gram matrix and cross terms of features with a constant beside them, if there is one."""
    if not intercept:
        return terms.G, terms.B
    A = np.block([[terms.G, terms.s[:, None]], [terms.s, np.array([[terms.n]])]])
    return A, np.vstack([terms.B, terms.t])
