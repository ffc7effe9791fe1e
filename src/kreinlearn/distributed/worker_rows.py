"""The rows of a fit on other machines: they answer the same questions as ``pairs.rows.Rows``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kreinlearn.data.tiles import TILE
from kreinlearn.distributed.rows import (
    ColumnLike,
    DaskRows,
    column_on_workers,
    weighted_by_class,
)
from kreinlearn.distributed.sums import ValuesOnWorkers, room, sum_rows, total_of_columns
from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.learn.folds import TileFolds
from kreinlearn.pairs.rows import Rows, Session, Work
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import ColumnSums, Tally


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
        return kernel.fit(self.X.take(np.linspace(0, len(self) - 1, TILE).astype(np.intp)), rng)

    def sum(
        self, work: Work, targets: Targets, left_out: Array, *, workers: int = 1,
        keep: ValuesOnWorkers | None = None, seen: Callable[[Array, Array], None] | None = None,
    ) -> Any:  # fmt: skip
        return sum_rows(self.X, work, targets, left_out, keep)  # type: ignore[arg-type]

    def column(  # type: ignore[override]
        self, values: ColumnLike, check: Callable[..., Array], name: str
    ) -> DaskRows:
        return column_on_workers(values, self.X, partial(check, block=True), name)

    def mapped(  # type: ignore[override]
        self, column: DaskRows, function: Callable[[Array], Array], dtype: DTypeLike,
        width: int | None,
    ) -> DaskRows:  # fmt: skip
        return column.mapped(function, dtype, width)

    def require_weight(self, without: int) -> None:
        if without:
            raise ValueError(
                f"{without} rows of a dask collection have no weight; leave them out before fit"
            )

    def tally(self, labels: DaskRows, weights: DaskRows | None) -> Tally:  # type: ignore[override]
        return total_of_columns(Tally.of, labels, weights)

    def column_sums(  # type: ignore[override]
        self, column: DaskRows, weights: DaskRows | None
    ) -> ColumnSums:
        return total_of_columns(ColumnSums.of, column, weights)

    def weights_by_class(  # type: ignore[override]
        self, labels: DaskRows, weights: DaskRows | None, classes: Array, of_classes: Array
    ) -> DaskRows:
        return weighted_by_class(labels, weights, classes, of_classes)

    def weighted_rows(self, weights: DaskRows | None) -> None:  # type: ignore[override]
        """Return None, as all rows have a positive weight."""

    def fold_numbers(self, folds: TileFolds) -> TileFolds:
        return folds

    def value_store(self, n_bytes: int, session: Session) -> ValuesOnWorkers:
        return ValuesOnWorkers(keep=n_bytes <= room(session.budget, given=session.budget_given))
