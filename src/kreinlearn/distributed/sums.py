"""Sums over all rows on workers: fixed spans of whole tiles by row number, in a fixed tree.

Chunks and workers only decide where the rows of a span are joined: the sums have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.data.tiles import Scratch, row_blocks
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Delayed
from kreinlearn.distributed.rows import DaskRows
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.sweep import RowWork, SweepTotal
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import COLUMN_SPANS, serial_blas, spans_of

if TYPE_CHECKING:
    from kreinlearn.distributed.kernel_values import ValuesOnWorkers


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
