"""Where the kernel values are that Newton's method for the squared hinge loss looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kreinlearn.data.tiles import TILE, in_turn, take
from kreinlearn.kernels.base import Array
from kreinlearn.learn.left_out import LeftOut
from kreinlearn.learn.losses.feature_rows import (
    DENSE,
    GATHERED_BYTES,
    MAPPED,
    SUM_BYTES,
    FeatureRows,
    sums_at_once,
)
from kreinlearn.learn.losses.kept_rows import InTiles, KeptRows, Sampled, ranks
from kreinlearn.learn.task import Features, Linear, Task, weighted
from kreinlearn.solvers.margins import NEAR_OF_ONE, Margins, RowMargins
from kreinlearn.sums.parallel import SPARE, depth_of

NEAR = 1 / 8  # share of the rows whose kernel values are kept because they are near the margin
ENOUGH_SAMPLED = 100  # rows per coefficient that tell where to start
ENOUGH_OF_MANY = 300  # the same for many outputs, some of which have few rows of their own
MANY_OUTPUTS = 3  # of which rows near the margin are twice as many
GATHERED_COPIES = 4  # of rows that are gathered: evaluated, put together, mapped, of one choice
CHEAP_COLUMNS = 64  # of vectors whose kernel values are evaluated in no more time than stored
CHEAP_BYTES = 2**27  # of such values that are kept nevertheless
NEAR_BUDGET = 0.5  # share of the budget for them, where not all kernel values are kept
TILE_COPIES, SAMPLE_COPIES = 4, 3  # of the kernel values of a tile, and of those of the sample
ROW_NUMBERS = 6  # numbers per row and output: targets, weights, decisions, margins
MATRICES = 4  # of every output: its sums before and after, and those of rows to either side


def kept_values(task: Task, *, by_fold: bool, often: bool) -> Any:
    """Kernel values of all rows are kept where the budget has room for them.

    Many values that cost little are not: new memory takes as long as to evaluate them again.
    ``often`` says that all rows will be looked at many times.
    """
    n, m, q = task.n, len(task.sample.landmarks), task.Y.shape[1]
    n_bytes, session = 8 * n * (m + ROW_NUMBERS * q), task.pairs.session
    kept = task.rows.value_store(n_bytes, session)
    if kept is None:
        tiles = 8 * m * TILE * task.pairs.workers  # one for each of them
        often = often or q > sums_at_once(m) or not cheap_to_evaluate(task)
        room = session.budget if often else min(CHEAP_BYTES, session.budget)
        beside = tiles + _matrices(m, q) + _gathered(n, m, choices=2 * q)
        kept = ValuesHere.for_rows(n, m, n_bytes + beside, room)
    return kept.before(task, by_fold=by_fold)


@dataclass(frozen=True)
class ValuesHere:
    """Kernel values in this process: of all rows, if the budget allows, or else of some rows."""

    values: Array | None  # (n, m), which the first pass fills; None: there is no room for it
    sampled: Array | None = None  # numbers of the rows that the first pass does not evaluate
    rank: Array | None = None  # (n,), the places of rows in their tiles
    some: KeptRows | None = None  # a sample, which the first pass fills where not all are kept

    @classmethod
    def for_rows(cls, n: int, m: int, n_bytes: int, budget: int) -> ValuesHere:
        return cls(np.empty((n, m)) if n_bytes <= budget else None)

    def before(self, task: Task, *, by_fold: bool) -> ValuesHere:
        """Remember how the first pass will see the rows, and make room for some of them."""
        some = None
        if self.values is None:
            n, m, groups = task.n, len(task.sample.landmarks), task.n_folds + 1 if by_fold else 1
            sums = 8 * m * m * groups * (depth_of(n) + 1)  # of the first pass
            q = task.Y.shape[1]
            left, share = max(_left_for_values(task) - sums, 0), near_share(q)
            while share * 8 * n * m > NEAR_BUDGET * left:
                share = share / 2 if share * TILE > 1 else 0.0
            some = KeptRows.sample(n, m, share, enough_sampled(m, q))
        rank = ranks(task.n, task.numbers, task.targets(by_fold=by_fold).by_group)
        return replace(self, sampled=task.numbers, rank=rank, some=some)

    @property
    def target(self) -> Any:
        """The object to which the first pass gives its kernel values."""
        if self.values is None:
            return self.some
        assert self.rank is not None
        return InTiles(self.values, self.rank)

    @property
    def has_all(self) -> bool:
        """Whether the kernel values of all rows are kept."""
        return self.values is not None

    def margins(self, task: Task, features: Features, W: Array, total: float) -> Margins:
        """The rows as Newton's method sees them, with features C W."""
        return RowMargins(self.rows(task, features).with_map(W), *weighted(task.Y, task.weights))

    def outputs(
        self, task: Task, features: Features, W: Array, total: float
    ) -> list[tuple[FeatureRows, Array, Array]]:
        """The same for each output alone: rows with features C W, their targets and weights."""
        Y, w = weighted(task.Y, task.weights)
        rows = self.rows(task, features).with_map(W)
        return [(rows, y, w) for y in Y.T]

    def without_fold(self, task: Task, k: int) -> tuple[Task, ValuesHere]:
        """The problem of all rows but those of a fold, whose targets are zero."""
        here = np.asarray(task.folds) == k
        return replace(task, Y=np.where(here[:, None], 0, np.asarray(task.Y))), self

    def scores_of_fold(self, task: Task, features: Features, model: Linear, k: int) -> LeftOut:
        """What a model says of the rows of a fold."""
        Z = np.vstack([model.coef, model.intercept]) if task.intercept else model.coef
        numbers = np.flatnonzero(np.asarray(task.folds) == k)
        return LeftOut(numbers, self.rows(task, features).decision(Z)[numbers])

    def rows(self, task: Task, features: Features) -> FeatureRows:
        """The features of all rows."""
        sample, session, n, m = task.sample, task.pairs.session, task.n, len(features.map.W)
        sampled, some, workers = None, self.some, task.pairs.workers
        q = task.Y.shape[1]
        if self.values is not None:
            some = KeptRows.sample(n, 0, near_share(q), enough_sampled(m, q))
            each = 8 * m * TILE
            held = self.values.nbytes
        else:
            assert self.sampled is not None
            assert some is not None
            each = 8 * m * TILE_COPIES * TILE  # of a worker: rows of a tile
            held = int(
                8 * m * ((1 + copied_share(q)) * some.count + SAMPLE_COPIES * len(self.sampled))
            )
            left = _left_for_values(task) - held
            workers = max(1, min(workers, int(left // (each + 2 * 8 * m * m))))
            sampled = Sampled(self.sampled, take(sample.scaled, sample.positions(self.sampled)))
        left = _left_for_values(task) - held - workers * each - _gathered(n, m, choices=1)
        sum_bytes = min(SUM_BYTES, max(int(left // (workers + SPARE + depth_of(n))), 0))
        return FeatureRows(
            task.rows.X, features.columns, sample.landmarks, features.unit, features.map.W, n,
            task.intercept, self.values, sampled, task.pairs.in_place, some, workers,
            session.progress, task.pairs.scratch(), sum_bytes=sum_bytes, rank=self.rank,
        )  # fmt: skip


def near_share(q: int) -> float:
    """The share of the rows that are kept, if there is room for them."""
    return NEAR if q < MANY_OUTPUTS else 2 * NEAR


def enough_sampled(m: int, q: int) -> int:
    """How many rows tell where to start, with m features and a constant, for q outputs."""
    return (ENOUGH_SAMPLED if q < MANY_OUTPUTS else ENOUGH_OF_MANY) * (m + 1)


def copied_share(q: int) -> float:
    """The share of the kept rows that are copied for one output, where outputs look at a part."""
    return NEAR_OF_ONE / q if q > NEAR_OF_ONE else 0.0


def cheap_to_evaluate(task: Task) -> bool:
    """Whether kernel values cost little: those of vectors with few columns that are at hand."""
    X, kernel = task.rows.X, task.pairs.kernel
    return kernel.cheap and not in_turn(X) and X.shape[1] <= CHEAP_COLUMNS


def _left_for_values(task: Task) -> int:
    """Bytes of the budget beside what belongs to each row and to each output."""
    matrices = _matrices(len(task.sample.landmarks), task.Y.shape[1])
    return max(task.pairs.session.budget - 8 * ROW_NUMBERS * task.Y.size - matrices, 0)


def _gathered(n: int, m: int, choices: int) -> int:
    """Bytes of the rows that are gathered at a time for so many choices of different rows.

    Each output has two, to either side, and they often share rows. So one choice is counted where
    room is short, and all of them where it is decided what is kept.
    """
    most = choices * int(max(DENSE * n, MAPPED * m))
    rows = min(n, max(TILE, GATHERED_BYTES // (8 * m)), most)
    return 8 * m * GATHERED_COPIES * rows


def _matrices(m: int, q: int) -> int:
    """Bytes of the sums of q outputs that are in memory at a time."""
    return 8 * MATRICES * q * m**2
