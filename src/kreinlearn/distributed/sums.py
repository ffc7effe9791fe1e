"""Sums over all rows on workers: fixed runs of whole tiles by global row number, a fixed tree.

Chunks and workers decide only where a run is put together: the sums are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kreinlearn.data.tiles import Scratch, row_blocks
from kreinlearn.distributed import blocks as b
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.sweep import RowWork, SweepTotal
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import COLUMN_SPANS, serial_blas, spans_of


def sum_rows(X: Any, work: RowWork, targets: Targets, known: Array, hold: Any = None) -> SweepTotal:
    """The sums of a pass over all rows but the known ones; only their total comes here.

    ``hold``, if given, keeps kernel values on the workers.
    """
    do, groups = b.constant(work), b.constant(targets.groups)
    totals = []
    for start, stop in spans_of(len(X)):
        here = known[np.searchsorted(known, start) : np.searchsorted(known, stop)]
        if len(here) < stop - start:
            Y, w = (_piece(values, start, stop) for values in (targets.Y, targets.weights))
            run = (do, X.piece(start, stop), Y, w, groups, start, here)
            held = None if hold is None else hold.total_of_run(*run)
            totals.append(b.task(run_total)(*run) if held is None else held)
    total: SweepTotal = (b if hold is None else hold).computed(b.tree(totals, b.added))
    return total


def _piece(values: Any, start: int, stop: int) -> Any:
    if values is None or isinstance(values, np.ndarray):
        return values if values is None else values[start:stop]
    return values.piece(start, stop)


def run_total(
    work: RowWork, A: Objects, Y: Array, w: Array | None, groups: Any, start: int, known: Array
) -> SweepTotal:
    """The sums of a run of tiles that begins at row ``start``."""
    targets = targets_of_run(work, Y, w, groups, start)
    blocks = row_blocks(aligned(A), known - start, order_of(targets))
    return total_of_blocks(work, blocks, targets)


def aligned(A: Any) -> Any:
    """An array from another process may begin anywhere, and be multiplied in another order."""
    return np.require(A, requirements="A") if isinstance(A, np.ndarray) else A


def targets_of_run(work: RowWork, Y: Array, w: Array | None, groups: Any, start: int) -> Targets:
    numbers = np.arange(start, start + len(Y))
    of_rows = None if groups is None else np.asarray(groups[numbers])
    return Targets(Y, w, of_rows, work.n_groups, first=start)


def order_of(targets: Targets) -> Callable[[Array], Array] | None:
    """Of the places of a tile: rows of one group together."""
    first = targets.first
    return None if targets.groups is None else lambda at: targets.by_group(at + first) - first


def total_of_blocks(
    work: RowWork, blocks: Iterable[tuple[Array, Any]], targets: Targets
) -> SweepTotal:
    """The sums of blocks, each with the places of its rows in the run."""
    total, scratch = work.zero(), Scratch(work.buffered)
    with serial_blas():
        for places, block in blocks:
            work.add(total, places + targets.first, block, targets, scratch)
    return total


def total_of(function: Callable[..., Any], *columns: Any) -> Any:
    """Sum of ``function(rows, ...)`` over the runs of columns that belong together."""
    results = [
        b.task(function)(*(_piece(column, *run) for column in columns))
        for run in spans_of(len(columns[0]), *COLUMN_SPANS)
    ]
    return b.computed(b.tree(results, b.added))
