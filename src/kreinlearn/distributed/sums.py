"""Sums over all rows on workers, and kernel values that stay there if there is room for them.

Sums are over fixed spans of whole tiles by row number, in a fixed tree. Chunks and workers only
decide where the rows of a span are joined: the sums have the same bits. Kernel values for which
the workers have no room are evaluated again whenever they are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kreinlearn.data.tiles import Scratch, length, row_blocks, tiles, tiles_without
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Delayed
from kreinlearn.distributed.rows import DaskRows
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.task import Features, Task, weighted
from kreinlearn.nystrom.core import RowWork, SweepTotal
from kreinlearn.pairs.evaluate import naming, scaled
from kreinlearn.solvers.margins import Margins
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import COLUMN_SPANS, serial_blas, spans_of

ROOM = 0.5  # share of a worker's memory for kernel values: beyond 0.6 dask writes to disk
WeightedTargets = tuple[Array, Array]  # targets (k, q) and weights (k,) of the rows of a span


def sum_rows(
    X: DaskRows, work: RowWork, targets: Targets, left_out: Array, keep: ValuesOnWorkers | None
) -> SweepTotal:
    """The sums of a pass over all rows that are not left out; only the total is sent here.

    ``keep``, if given, may leave the kernel values of the pass on the workers.
    """
    shared_work, groups = delayed.constant(work), delayed.constant(targets.groups)
    totals = []
    for start, stop in spans_of(len(X)):
        without = left_out[np.searchsorted(left_out, start) : np.searchsorted(left_out, stop)]
        if len(without) < stop - start:
            Y, w = (_piece(column, start, stop) for column in (targets.Y, targets.weights))
            span = (shared_work, X.piece(start, stop), Y, w, groups, start, without)
            total = None if keep is None else keep.total_of_span(*span)
            totals.append(delayed.task(span_total)(*span) if total is None else total)
    return (delayed if keep is None else keep).compute(delayed.merged(totals))


def _piece(column: DaskRows | Array | None, start: int, stop: int) -> Delayed | Array | None:
    """The rows start..stop of a column."""
    if isinstance(column, DaskRows):
        return column.piece(start, stop)
    return None if column is None else column[start:stop]


def span_total(
    work: RowWork, A: Objects, Y: Array, w: Array | None, groups: Array | None, start: int,
    left_out: Array,
) -> SweepTotal:  # fmt: skip
    """The sums of a span of rows A that begins at row ``start``."""
    targets = targets_of_span(work, Y, w, groups, start)
    blocks = row_blocks(aligned(A), left_out - start, order_of(targets))
    return total_of_blocks(work, blocks, targets)


def aligned(A: Objects) -> Objects:
    """Objects as they are; an array is copied if its memory is not aligned.

    An array from another process may begin at any address, and would be multiplied in another
    order.
    """
    return np.require(A, requirements="A") if isinstance(A, np.ndarray) else A


def targets_of_span(
    work: RowWork, Y: Array, w: Array | None, groups: Array | None, start: int
) -> Targets:
    """The targets of the rows from ``start`` on, with the groups of these rows."""
    numbers = np.arange(start, start + len(Y))
    of_rows = None if groups is None else np.asarray(groups[numbers])
    return Targets(Y, w, of_rows, work.n_groups, first=start)


def order_of(targets: Targets) -> Callable[[Array], Array] | None:
    """Sorts the places of a tile so that the rows of a group stand together; None: no groups."""
    first = targets.first
    return None if targets.groups is None else lambda at: targets.by_group(at + first) - first


def total_of_blocks(
    work: RowWork, blocks: Iterable[tuple[Array, Objects]], targets: Targets
) -> SweepTotal:
    """The sums of blocks, each of which comes with the places of its rows in the span."""
    total, scratch = work.zero(), Scratch(work.buffered)
    with serial_blas():
        for places, block in blocks:
            work.add(total, places + targets.first, block, targets, scratch)
    return total


def total_of_columns(function: Callable[..., Any], *columns: DaskRows | None) -> Any:
    """The sum of ``function`` over fixed spans of rows of columns that belong together."""
    assert columns[0] is not None
    results = [
        delayed.task(function)(*(_piece(column, *span) for column in columns))
        for span in spans_of(len(columns[0]), *COLUMN_SPANS)
    ]
    return delayed.compute(delayed.merged(results))


# Kernel values


@dataclass
class ValuesOnWorkers:
    """k(x, Z) of all rows for the steps of a solver: of some rows here, of the others on workers.

    Rows on workers are divided into spans of tiles. With ``keep`` their kernel values stay on the
    workers; without, they are evaluated again at every step.
    """

    keep: bool
    numbers: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # rows that are here
    here: Array = field(default_factory=lambda: np.empty((0, 0)))  # and their kernel values
    work: Delayed = None
    spans: list[Delayed] = field(default_factory=list)  # the tiles of each span on workers
    targets: list[Delayed] = field(default_factory=list)  # the WeightedTargets of each span

    @property
    def target(self) -> ValuesOnWorkers:
        """The object to which the first pass gives its kernel values."""
        return self

    def before(self, task: Task, *, by_fold: bool) -> ValuesOnWorkers:
        """The object to use for a pass; there is nothing to prepare."""
        return self

    def margins(self, task: Task, features: Features, W: Array, total: float) -> Margins:
        """The rows as Newton's method sees them, with features C W."""
        from kreinlearn.distributed.hinge import DaskMargins

        Y, w = weighted(*Targets(task.Y, task.weights).of(self.numbers))
        return DaskMargins(self, Y, w, W, task.intercept, [total] * task.Y.shape[1])

    def __setitem__(self, numbers: Array, values: Array) -> None:
        """Store the kernel values of rows that were evaluated in this process."""
        self.numbers, self.here = numbers, values

    @property
    def tiles(self) -> list[Array]:
        """The kernel values that are here, one tile at a time."""
        return [self.here[slice(*span)] for span in tiles(len(self.here))]

    def total_of_span(
        self, work: Delayed, A: Delayed, Y: Delayed, w: Delayed, groups: Delayed, start: int,
        left_out: Array,
    ) -> Delayed | None:  # fmt: skip
        """The delayed sums of a span; None if its kernel values do not stay on the workers."""
        self.work = work
        place = groups, start, left_out
        self.targets.append(delayed.task(weighted_targets_of_span)(work, Y, w, *place))
        self.spans.append(delayed.task(evaluated if self.keep else SpanTiles)(work, A, *place))
        if not self.keep:
            return None
        return delayed.task(total_of_tiles)(work, self.spans[-1], Y, w, *place)

    def compute(self, total: Delayed) -> SweepTotal:
        """The value of the total; targets, weights and kernel values to keep stay on workers."""
        n = len(self.spans) if self.keep else 0
        results, value = delayed.persist([*self.spans[:n], *self.targets], total)
        self.spans[:n], self.targets = results[:n], results[n:]
        return value


def room(budget: int, *, given: bool) -> int:
    """The bytes of kernel values that fit into the memory of all workers.

    They are half the memory of each worker, and at most ``budget`` per worker if the user has given
    a budget. If not, the workers without a memory limit on one host share the budget. Without a
    cluster the workers are threads, and the budget is that of this process.
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
class SpanTiles:
    """Evaluates the kernel, one tile after the other, on a span that begins at row ``start``."""

    work: RowWork
    A: Objects
    groups: Array | None
    start: int
    left_out: Array  # rows of the span that are not evaluated

    def __iter__(self) -> Iterator[Array]:
        no_targets = np.empty((length(self.A), 0))
        targets = targets_of_span(self.work, no_targets, None, self.groups, self.start)
        left_out = self.left_out - self.start
        for places, block in row_blocks(aligned(self.A), left_out, order_of(targets)):
            numbers = places + self.start
            with naming(numbers, len(self.work.landmarks)):
                raw = self.work.columns.raw_of_rows(numbers, block)
            yield raw


def evaluated(
    work: RowWork, A: Objects, groups: Array | None, start: int, left_out: Array
) -> list[Array]:
    """The kernel values of all tiles of a span."""
    with serial_blas():
        return list(SpanTiles(work, A, groups, start, left_out))


def weighted_targets_of_span(
    work: RowWork, Y: Array, w: Array | None, groups: Array | None, start: int, left_out: Array
) -> WeightedTargets:
    """Targets and weights in the order in which the rows of the span are evaluated."""
    targets = targets_of_span(work, Y, w, groups, start)
    places = np.concatenate(places_by_tile(targets, left_out))
    return np.asfortranarray(Y[places]), np.ones(len(places)) if w is None else w[places]


def places_by_tile(targets: Targets, left_out: Array) -> list[Array]:
    """The places of the rows of each tile, in the order in which they are evaluated."""
    order = order_of(targets)
    places = tiles_without(len(targets.Y), left_out - targets.first)
    return [part if order is None else order(part) for part in places]


def total_of_tiles(
    work: RowWork, values: Iterable[Array], Y: Array, w: Array | None, groups: Array | None,
    start: int, left_out: Array,
) -> SweepTotal:  # fmt: skip
    """The sums of a span whose kernel values have been evaluated."""
    targets = targets_of_span(work, Y, w, groups, start)
    columns = replace(work.columns, stored=_as_evaluated)
    blocks = zip(places_by_tile(targets, left_out), values, strict=True)
    return total_of_blocks(replace(work, columns=columns, buffered=False), blocks, targets)


def _as_evaluated(numbers: Array, values: Array, out: Array | None) -> Array:
    """Kernel values in the place of objects, for a pass that would evaluate these."""
    return np.asarray(aligned(values))


def similarities(work: RowWork | None, values: Array) -> Array:
    """k(x, Z) / unit of a tile on a worker; without ``work`` the values are so already."""
    if work is not None:
        values = scaled(work.columns.transformed(aligned(values)), work.unit)
    return np.asarray(values, dtype=np.float64)
