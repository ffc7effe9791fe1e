"""Dask collections at the border of an estimator: the one place that tells them from data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import length
from kreinlearn.data.validation import (
    Border,
    checked_weights,
    list_of_objects,
    numbers_as_array,
    require_numbers,
)
from kreinlearn.distributed import delayed, using
from kreinlearn.distributed.delayed import Collection
from kreinlearn.distributed.rows import (
    Check,
    ColumnLike,
    DaskRows,
    empty_frame,
    rows_of,
)
from kreinlearn.distributed.worker_rows import WorkerRows
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.pairs.rows import Rows

HERE = 8192  # a collection of at most so many rows is computed, and fitted in memory


def is_dask(X: object) -> bool:
    """Whether X is a dask collection, a delayed block or a list of them.

    Dask itself is not imported to find out.
    """
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    return hasattr(first, "__dask_graph__") and type(first).__module__.startswith("dask")


def receive(
    X: Objects, y: Any, sample_weight: Any, kernel: Kernel, border: Border,
    refuse: Callable[..., None],
) -> tuple[Rows, Any, Any]:  # fmt: skip
    """Validated rows, and the targets and weights that belong to them.

    Of a dask collection a few rows are brought into memory, and many stay on workers.
    ``refuse(what)`` raises an error for the first option that does not go with ``what``.
    """
    if is_dask(X):
        rows = _receive_on_workers(X, kernel, border, refuse)
    else:
        rows = Rows(kernel.domain.validate(X, border, reset=True))
    if not rows.here:
        return rows, y, sample_weight
    return rows, _in_memory(y, "y"), _in_memory(sample_weight, "sample_weight")


def _receive_on_workers(
    X: Collection, kernel: Kernel, border: Border, refuse: Callable[..., None]
) -> Rows:
    delayed.require_sendable(kernel)
    refuse("a dask collection", kernel=kernel)
    rows = _vectors(X, border) if _are_vectors(X, kernel) else _objects(X)
    n = len(rows)
    if not n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    frame = empty_frame(X)
    border.check_names(rows if frame is None else frame, reset=True)
    if rows.ndim == 2:
        border.check_count(rows, reset=True)
    if n <= HERE:
        return Rows(kernel.domain.validate(rows.take(np.arange(n)), border, reset=True))
    refuse("rows on workers")
    return WorkerRows(rows)


def _are_vectors(X: Collection, kernel: Kernel) -> bool:
    """Whether the kernel sees the rows of X as vectors; if it takes both, X decides."""
    if kernel.domain.is_vectors or kernel.domain.is_objects:
        return kernel.domain.is_vectors
    return empty_frame(X) is not None or (getattr(X, "ndim", 1) == 2 and X.dtype.kind in "fiub")


def _vectors(X: Collection, border: Border) -> DaskRows:
    frame, dtypes = empty_frame(X), list(border.dtypes)
    require_numbers(X if frame is None else frame)
    rows = rows_of(X, partial(_vectors_of_block, dtypes=dtypes))
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead: X is {X!r}")
    dtype = rows.dtype if rows.dtype in dtypes else dtypes[0]
    return rows.mapped(partial(np.asarray, dtype=dtype), dtype, rows.shape[1])


def _vectors_of_block(block: Objects, dtypes: list[DTypeLike]) -> Array:
    """A block of rows as an array of numbers."""
    block = delayed.with_length(block)
    return np.asarray(check_array(block, dtype=dtypes, ensure_min_samples=0, input_name="X"))


def _objects(X: Collection) -> DaskRows:
    return rows_of(X, _objects_of_block).mapped(list, object, None)


def _objects_of_block(block: Objects) -> list[Any]:
    """A block of rows as a list of objects."""
    block = delayed.with_length(block)
    return list_of_objects(numbers_as_array(block)) if length(block) else []


# Targets and weights


def _in_memory(values: ColumnLike | None, name: str, check: Check = np.asarray) -> Any:
    """Targets or weights for rows in memory: a dask collection may have a few rows only."""
    if not is_dask(values):
        return values
    rows = rows_of(values, check)
    if len(rows) > HERE:
        raise TypeError(
            f"{name} is a dask collection and X is in memory; pass both as dask collections, or "
            f"{name}.compute()"
        )
    return rows.take(np.arange(len(rows)))


def require_in_memory(X: Objects, remedy: str) -> None:
    """Raise TypeError with the given text if X is a dask collection."""
    if is_dask(X):
        raise TypeError(remedy)


# Fitted estimators


def lazy_result(estimator: BaseEstimator, name: str, X: Objects) -> Any:
    """A lazy array of ``estimator.name`` of each block of a dask collection; None for other X."""
    return using.mapped(estimator, name, X) if is_dask(X) else None


def results_in_parts(
    method: Callable[[Objects], Any], X: Objects, room: int, here: Callable[[], Iterator[Array]]
) -> Iterator[Array]:
    """``method(X)`` in parts of at most ``room`` bytes.

    For a dask collection the workers compute a few blocks at a time. For rows in memory ``here()``
    yields the parts.
    """
    return using.parts(method(X), room) if is_dask(X) else here()


def scored(
    estimator: BaseEstimator, X: Objects, y: ColumnLike, sample_weight: ColumnLike,
    check: Callable[[Any], Array], here: Callable[..., float], shift: Array | float | None = None,
) -> float:  # fmt: skip
    """The score of an estimator, summed on workers if X is a dask collection.

    It is the accuracy, or R^2 of targets near ``shift`` if that is given. ``check`` checks the
    targets of a block. For rows in memory ``here``, the method of scikit-learn, computes the score.
    """
    if is_dask(X):
        columns = (y, check), (sample_weight, checked_weights)
        if shift is None:
            return using.accuracy(estimator, X, *columns)
        return using.r_squared(estimator, X, *columns, shift)
    y = _in_memory(y, "y", check)
    sample_weight = _in_memory(sample_weight, "sample_weight", checked_weights)
    return float(here(*with_target(X, y), sample_weight=sample_weight))
