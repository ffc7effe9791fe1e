"""The rows of a fit on other machines: the same questions as ``pairs.rows.Rows``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kreinlearn.data.tiles import TILE
from kreinlearn.distributed.kernel_values import ValuesOnWorkers, room
from kreinlearn.distributed.rows import DaskRows
from kreinlearn.distributed.sums import sum_rows, total_of
from kreinlearn.distributed.targets import weighted_by_class
from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.pairs.rows import ColumnSums, Rows, Session, Tally, Work
from kreinlearn.sums.moments import Targets


class WorkerRows(Rows):
    """Rows of a dask collection, which stay on the workers with their targets and weights."""

    X: DaskRows

    def fetch(self, numbers: Array) -> None:
        self.X.take(numbers[numbers >= 0])

    def fit_kernel(self, kernel: Kernel, jobs: int, rng: np.random.Generator) -> Kernel:
        """Objects are checked on a sample here, and all of them where they are."""
        if not kernel.domain.is_objects:
            return kernel.fit(self.X, rng)
        return kernel.fit(self.X.take(np.linspace(0, len(self) - 1, TILE).astype(np.intp)), rng)

    def sum(
        self, work: Work, targets: Targets, left_out: Array, *, workers: int = 1,
        keep: Any = None, seen: Callable[[Array, Array], None] | None = None,
    ) -> Any:  # fmt: skip
        return sum_rows(self.X, work, targets, left_out, keep)  # type: ignore[arg-type]

    def mapped(
        self, column: Any, function: Callable[[Array], Array], dtype: Any, width: int | None
    ) -> Any:
        return column.mapped(function, dtype, width)

    def require_weight(self, without: int) -> None:
        if without:
            raise ValueError(
                f"{without} rows of a dask collection have no weight; leave them out before fit"
            )

    def tally(self, labels: Any, weights: Any) -> Tally:
        total: Tally = total_of(Tally.of, labels, weights)
        return total

    def column_sums(self, column: Any, weights: Any) -> ColumnSums:
        total: ColumnSums = total_of(ColumnSums.of, column, weights)
        return total

    def weights_by_class(self, labels: Any, weights: Any, classes: Array, of_classes: Array) -> Any:
        return weighted_by_class(labels, weights, classes, of_classes)

    def weighted_rows(self, weights: Any) -> None:
        """All rows have a positive weight."""

    def fold_numbers(self, folds: Any) -> Any:
        return folds

    def value_store(self, here: Callable[[], Any], n_bytes: int, session: Session) -> Any:
        return ValuesOnWorkers(keep=n_bytes <= room(session.budget, given=session.budget_given))
