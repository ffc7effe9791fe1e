"""Kernel values of runs of rows: kept on workers if they have room, or evaluated again."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kreinlearn.data.tiles import length, row_blocks, tiles, tiles_without
from kreinlearn.distributed import blocks as b
from kreinlearn.distributed.sums import aligned, order_of, targets_of_run, total_of_blocks
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.task import Features, Task, weighted
from kreinlearn.nystrom.sweep import RowWork, SweepTotal
from kreinlearn.pairs.evaluate import naming
from kreinlearn.pairs.evaluate import scaled as divided
from kreinlearn.solvers.margins import Margins
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import serial_blas

ROOM = 0.5  # of a worker's memory, for what is kept: beyond 0.6 dask writes to disk
Sides = tuple[Array, Array]  # targets (k, q) and weights (k,) of the rows of a run


@dataclass
class ValuesOnWorkers:
    """k(x, Z) of all rows for the steps of a solver: of some rows here, of the others on workers.

    Rows on workers are divided into spans of tiles. With ``keep`` their kernel values stay on the
    workers; without, they are evaluated again at every step.
    """

    keep: bool
    numbers: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    here: Array = field(default_factory=lambda: np.empty((0, 0)))
    work: Any = None  # delayed
    runs: list[Any] = field(default_factory=list)  # delayed: the tiles of each
    sides: list[Any] = field(default_factory=list)  # delayed, in the same order

    @property
    def target(self) -> ValuesOnWorkers:
        """What takes the values of the first pass."""
        return self

    def before(self, task: Task, *, by_fold: bool) -> ValuesOnWorkers:
        return self

    def margins(self, task: Task, features: Features, W: Array, total: float) -> Margins:
        """The rows as Newton's method sees them, with features C W."""
        from kreinlearn.distributed.hinge import DaskMargins

        Y, w = weighted(*Targets(task.Y, task.weights).of(self.numbers))
        return DaskMargins(self, Y, w, W, task.intercept, [total] * task.Y.shape[1])

    def __setitem__(self, numbers: Array, values: Array) -> None:
        """Take in rows that are known here."""
        self.numbers, self.here = numbers, values

    @property
    def tiles(self) -> list[Array]:
        return [self.here[slice(*span)] for span in tiles(len(self.here))]

    def total_of_run(
        self, work: Any, A: Any, Y: Any, w: Any, groups: Any, start: int, known: Array
    ) -> Any:
        """The delayed sums of a run; None if its kernel values are not kept for them."""
        self.work = work
        place = groups, start, known
        self.sides.append(b.task(run_sides)(work, Y, w, *place))
        if not self.keep:
            self.runs.append(b.task(RunTiles)(work, A, *place))
            return None
        self.runs.append(b.task(evaluated)(work, A, *place))
        return b.task(total_of_tiles)(work, self.runs[-1], Y, w, *place)

    def computed(self, total: Any) -> SweepTotal:
        """The total of a pass; what is to be kept is kept."""
        n = len(self.runs) if self.keep else 0
        found, value = kept([*self.runs[:n], *self.sides], total)
        self.runs[:n], self.sides = found[:n], found[n:]
        result: SweepTotal = value
        return result


def kept(results: Sequence[Any], total: Any) -> tuple[list[Any], Any]:
    """Delayed results held where they are computed, and a value of the same graph."""
    import dask

    with warnings.catch_warnings(), serial_blas():
        warnings.filterwarnings("ignore", message="Sending large graph")
        *found, total = dask.persist(*results, total, traverse=False, optimize_graph=True)
        return found, dask.compute(total, traverse=False)[0]


def room(budget: int, *, given: bool) -> int:
    """Bytes that may be kept: half the memory of each worker, at most ``budget`` in each, if given.

    Workers of one host that have no limit share the budget, if it is not given; without a cluster
    the workers are threads, and the budget is that of this process.
    """
    import dask.base

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is None:
        return budget
    workers = list(client.scheduler_info()["workers"].values())
    unlimited = Counter(one["host"] for one in workers if not one["memory_limit"])
    limits = [ROOM * one["memory_limit"] or budget / unlimited[one["host"]] for one in workers]
    return int(sum(min(limit, budget) if given else limit for limit in limits))


# Tasks


@dataclass(frozen=True)
class RunTiles:
    """What the kernel gives of the tiles of a run that begins at row ``start``, in their order."""

    work: RowWork
    A: Objects
    groups: Any
    start: int
    known: Array  # rows of the run that are left out

    def __iter__(self) -> Iterator[Array]:
        nothing = np.empty((length(self.A), 0))
        targets = targets_of_run(self.work, nothing, None, self.groups, self.start)
        for places, block in row_blocks(
            aligned(self.A), self.known - self.start, order_of(targets)
        ):
            numbers = places + self.start
            with naming(numbers, len(self.work.landmarks)):
                raw = self.work.columns.raw_of_rows(numbers, block)
            yield raw


def evaluated(*run: Any) -> list[Array]:
    with serial_blas():
        return list(RunTiles(*run))


def run_sides(
    work: RowWork, Y: Array, w: Array | None, groups: Any, start: int, known: Array
) -> Sides:
    places = np.concatenate(places_of_run(targets_of_run(work, Y, w, groups, start), known))
    return np.asfortranarray(Y[places]), np.ones(len(places)) if w is None else w[places]


def places_of_run(targets: Targets, known: Array) -> list[Array]:
    """Of the rows of each tile, in the order in which they are evaluated."""
    order = order_of(targets)
    places = tiles_without(len(targets.Y), known - targets.first)
    return [part if order is None else order(part) for part in places]


def total_of_tiles(
    work: RowWork, values: Iterable[Array], Y: Array, w: Array | None, groups: Any, start: int,
    known: Array,
) -> SweepTotal:  # fmt: skip
    """The sums of a run whose kernel values are known."""
    targets = targets_of_run(work, Y, w, groups, start)
    columns = replace(work.columns, stored=as_they_are)
    blocks = zip(places_of_run(targets, known), values, strict=True)
    return total_of_blocks(replace(work, columns=columns, buffered=False), blocks, targets)


def as_they_are(numbers: Array, values: Array, out: Array | None) -> Array:
    return np.asarray(aligned(values))


def scaled(work: RowWork | None, values: Array) -> Array:
    """k(x, Z) / unit of a tile; values that are here are so already."""
    if work is not None:
        values = divided(work.columns.transformed(aligned(values)), work.unit)
    return np.asarray(values, dtype=np.float64)
