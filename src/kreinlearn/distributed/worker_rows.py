"""The rows of a fit on other machines: they answer the same questions as ``pairs.rows.Rows``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Check, ColumnLike, Delayed
from kreinlearn.distributed.hinge import ValuesOnWorkers, room
from kreinlearn.distributed.rows import DaskRows, rows_of, spread
from kreinlearn.distributed.sums import Span
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.vector_columns import evenly
from kreinlearn.pairs.rows import Rows, Session, Work
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import COLUMN_SPANS, ColumnSums, Tally, spans_of


class WorkerRows(Rows):
    """Rows of a dask collection, which stay on the workers with their targets and weights."""

    here = False
    X: DaskRows

    def fetch(self, numbers: Array) -> None:
        self.X.take(numbers[numbers >= 0])

    def fit_kernel(self, kernel: Kernel, n_jobs: int | None, rng: np.random.Generator) -> Kernel:
        """Fit kernels on objects to a sample of them; every object is checked on its worker."""
        if not kernel.domain.is_objects:
            return kernel.fit(self.X, rng)
        return kernel.fit(self.X.take(evenly(len(self))), rng)

    def sum(
        self, work: Work, targets: Targets, left_out: Array, *, workers: int = 1,
        keep: ValuesOnWorkers | None = None, seen: Callable[[Array, Array], None] | None = None,
    ) -> Any:  # fmt: skip
        """The sum of ``work`` over all rows that are not left out; only the total is sent here.

        ``keep``, if given, may leave the kernel values of the pass on the workers.
        """
        shared_work, groups = delayed.constant(work), delayed.constant(targets.groups)
        total_of = delayed.task(Span.total) if keep is None else keep.total_of_span
        totals = []
        for start, stop in spans_of(len(self)):
            without = left_out[slice(*np.searchsorted(left_out, [start, stop]))]
            if len(without) < stop - start:
                columns = (self.X, targets.Y, targets.weights)
                pieces = (_piece(column, start, stop) for column in columns)
                totals.append(total_of(Span(shared_work, start, stop, without, groups, *pieces)))
        return (delayed if keep is None else keep).compute(delayed.merged(totals))

    def column(  # type: ignore[override]
        self, values: ColumnLike, check: Callable[..., Array], name: str
    ) -> DaskRows:
        return column_on_workers(values, self.X, partial(check, block=True), name)

    def mapped(  # type: ignore[override]
        self, column: DaskRows, function: Callable[[Array], Array], dtype: DTypeLike,
        width: int | None,
    ) -> DaskRows:  # fmt: skip
        return column.mapped(function, dtype, width)

    def require_memory(self, n_bytes: int, budget: float, what: str, remedy: str) -> None:
        """Nothing is required here, as targets stay on the workers too."""

    def require_weight(self, without: int) -> None:
        if without:
            raise ValueError(
                f"{without} rows of a dask collection have no weight; leave them out before fit"
            )

    def tally(self, labels: DaskRows, weights: DaskRows | None) -> Tally:  # type: ignore[override]
        return _total_of_columns(Tally.of, labels, weights)

    def column_sums(  # type: ignore[override]
        self, column: DaskRows, weights: DaskRows | None
    ) -> ColumnSums:
        return _total_of_columns(ColumnSums.of, column, weights)

    def weights_by_class(  # type: ignore[override]
        self, labels: DaskRows, weights: DaskRows | None, classes: Array, of_classes: Array
    ) -> DaskRows:
        given = [None] * len(labels.blocks) if weights is None else weights.blocks
        of_block = delayed.task(Rows([]).weights_by_class)
        pairs = zip(labels.blocks, given, strict=True)
        blocks = [of_block(y, w, classes, of_classes) for y, w in pairs]
        return DaskRows(blocks, labels.lengths, labels.shape[:1], np.float64)

    def weighted_rows(self, weights: DaskRows | None) -> None:  # type: ignore[override]
        """Return None, as all rows have a positive weight."""

    def value_store(self, n_bytes: int, session: Session) -> ValuesOnWorkers:
        return ValuesOnWorkers(keep=n_bytes <= room(session.budget, given=session.budget_given))


def column_on_workers(values: ColumnLike, X: DaskRows, check: Check, name: str) -> DaskRows:
    """Targets or weights, given as a dask collection or in memory, in the blocks of X."""
    from kreinlearn.distributed.entrance import is_dask

    column = rows_of(values, partial(_checked, check=check)) if is_dask(values) else check(values)
    if len(column) != len(X):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[len(X), len(column)]}, of X and {name}"
        )
    return column.with_blocks_of(X) if isinstance(column, DaskRows) else spread(column, X)


def _checked(block: Objects, check: Check) -> Array:
    """A block of targets or weights; an empty block needs no check."""
    block = delayed.with_length(block)
    return check(block) if len(block) else np.asarray(block)


def _piece(column: DaskRows | Array | None, start: int, stop: int) -> Delayed | Array | None:
    """The rows start..stop of a column."""
    if isinstance(column, DaskRows):
        return column.piece(start, stop)
    return None if column is None else column[start:stop]


def _total_of_columns(function: Callable[..., Any], y: DaskRows, w: DaskRows | None) -> Any:
    """The sum of ``function`` over fixed spans of rows of targets and their weights."""
    of_span = delayed.task(function)
    spans = spans_of(len(y), *COLUMN_SPANS)
    results = [of_span(y.piece(*span), _piece(w, *span)) for span in spans]
    return delayed.compute(delayed.merged(results))
