"""Dask collections at the border of an estimator: the one place where they are told from data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length

from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import length
from kreinlearn.data.validation import (
    Border,
    checked_weights,
    list_of_objects,
    numbers_as_array,
    require_numbers,
)
from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.pairs.rows import Rows

if TYPE_CHECKING:
    from kreinlearn.distributed.rows import DaskRows

HERE = 8192  # rows up to which a collection is small enough to be computed


def is_dask(X: Any) -> bool:
    """A dask collection, a delayed block or a list of them; dask is not imported to say so."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    return hasattr(first, "__dask_graph__") and type(first).__module__.startswith("dask")


def receive_on_workers(X: Any, kernel: Kernel, border: Border, refuse: Callable[..., None]) -> Rows:
    """The rows of a dask collection; in memory if they are few.

    ``refuse(what)`` raises the error of the first option that does not go with ``what``.
    """
    from kreinlearn.distributed.blocks import require_sendable
    from kreinlearn.distributed.rows import like
    from kreinlearn.distributed.worker_rows import WorkerRows

    require_sendable(kernel)
    refuse("a dask collection", kernel=kernel)
    rows = _vectors(X, border) if _are_vectors(X, kernel) else _objects(X)
    n = len(rows)
    if not n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    frame = like(X)
    border.check_names(rows if frame is None else frame, reset=True)
    if rows.ndim == 2:
        border.check_count(rows, reset=True)
    if n <= HERE:
        return Rows(kernel.domain.validate(rows.take(np.arange(n)), border, reset=True))
    refuse("rows on workers")
    return WorkerRows(rows)


def _are_vectors(X: Any, kernel: Kernel) -> bool:
    from kreinlearn.distributed.rows import like

    if kernel.domain.is_vectors or kernel.domain.is_objects:
        return kernel.domain.is_vectors
    return like(X) is not None or (getattr(X, "ndim", 1) == 2 and X.dtype.kind in "fiub")


def _vectors(X: Any, border: Border) -> DaskRows:
    from kreinlearn.distributed.rows import like, rows_of

    frame, dtypes = like(X), list(border.dtypes)
    require_numbers(X if frame is None else frame)
    rows = rows_of(X, partial(vectors, dtypes=dtypes))
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead: X is {X!r}")
    dtype = rows.dtype if rows.dtype in dtypes else dtypes[0]
    return rows.mapped(partial(np.asarray, dtype=dtype), dtype, rows.shape[1])


def vectors(block: Any, dtypes: list[Any]) -> Array:
    """A block of rows as an array of numbers."""
    block = block if hasattr(block, "__len__") else list(block)
    return np.asarray(check_array(block, dtype=dtypes, ensure_min_samples=0, input_name="X"))


def _objects(X: Any) -> DaskRows:
    from kreinlearn.distributed.rows import rows_of

    return rows_of(X, objects).mapped(list, object, None)


def objects(block: Any) -> list[Any]:
    """A block as a list of objects."""
    block = block if hasattr(block, "__len__") else list(block)
    return list_of_objects(numbers_as_array(block)) if length(block) else []


# Targets and weights


def column_of(values: Any, rows: Rows, check: Callable[..., Array], name: str) -> Any:
    """Targets or weights beside the rows: on workers, or checked and in memory."""
    if type(rows) is not Rows:
        from kreinlearn.distributed.targets import column_of as column_on_workers

        return column_on_workers(values, rows.X, partial(check, block=True), name)
    if is_dask(values):
        values = _column_here(values, partial(check, block=True), name)
    if name == "y":
        check_consistent_length(rows, values)
    return check(values)


def _column_here(values: Any, check: Callable[[Any], Array], name: str) -> Any:
    """Targets or weights of rows in memory, if they are few."""
    from kreinlearn.distributed.rows import rows_of

    rows = rows_of(values, check)
    if len(rows) > HERE:
        raise TypeError(
            f"{name} is a dask collection and X is in memory; pass both as dask collections, or "
            f"{name}.compute()"
        )
    return rows.take(np.arange(len(rows)))


def require_in_memory(X: Any, remedy: str) -> None:
    """Raise TypeError for a dask collection where only parts in memory are taken."""
    if is_dask(X):
        raise TypeError(remedy)


# Fitted estimators


def blockwise(estimator: BaseEstimator, name: str, X: Any, method: Callable[[Any], Array]) -> Any:
    """``method(X)``; of a dask collection, a lazy array of ``estimator.name`` of every block."""
    if not is_dask(X):
        return method(X)
    from kreinlearn.distributed.using import mapped

    return mapped(estimator, name, X)


def results_in_parts(
    method: Callable[[Any], Any], X: Any, room: int, here: Callable[[], Iterator[Array]]
) -> Iterator[Array]:
    """``method(X)`` in parts that have room in memory; ``here()`` yields those of rows in memory.

    Of a dask collection a few blocks are computed at a time, by its workers.
    """
    if not is_dask(X):
        return here()
    from kreinlearn.distributed.using import parts

    return parts(method(X), room)


def scored(
    estimator: Any, X: Any, y: Any, sample_weight: Any, name: str, here: Callable[..., float]
) -> float:
    """The score of rows on workers ("accuracy" or "r2"), or that of scikit-learn here."""
    check = partial(estimator._coding().check, estimator=type(estimator).__name__, block=True)
    if is_dask(X):
        from kreinlearn.distributed import using

        score = {"accuracy": using.accuracy, "r2": using.r_squared}[name]
        return float(score(estimator, X, (y, check), (sample_weight, checked_weights)))
    if is_dask(y):
        y = _column_here(y, check, "y")
    if is_dask(sample_weight):
        sample_weight = _column_here(sample_weight, checked_weights, "sample_weight")
    return float(here(*with_target(X, y), sample_weight=sample_weight))
