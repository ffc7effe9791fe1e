"""Dask collections at the border of an estimator: the one place that tells them from data."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    check_is_fitted,
)

from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import length, take
from kreinlearn.data.validation import (
    Border,
    checked_weights,
    list_of_objects,
    numbers_as_array,
    require_numbers,
)
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import (
    Check,
    Collection,
    ColumnLike,
    Delayed,
    DelayedBlocks,
)
from kreinlearn.distributed.rows import DaskRows, empty_frame, rows_of
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.pairs.rows import Rows, joined

HERE = 8192  # a collection of at most so many rows is computed, and fitted in memory
# attributes that prediction does not need, and that are not sent to workers
LEFT_HERE = ("folds_", "cv_trials_", "choices_", "_sums", "_fit_sums", "_skl_callbacks")
ROWS_SHARE = 0.5  # of the room on workers, for rows; the rest is for kernel values
MOST_BLOCKS = 64  # blocks whose results are computed at a time
DaskArray = Any  # a dask array, whose type cannot be imported without dask


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
        y, sample_weight = _as_blocks(y), _as_blocks(sample_weight)
        along = [each for each in (y, sample_weight) if isinstance(each, list) and is_dask(each)]
        rows = _receive_on_workers(X, kernel, border, refuse, along)
    else:
        rows = Rows(kernel.domain.validate(X, border, reset=True))
    if not rows.here:
        return rows, y, sample_weight
    return rows, _in_memory(y, "y"), _in_memory(sample_weight, "sample_weight")


def _as_blocks(values: ColumnLike | None) -> Any:
    """A list of delayed blocks, if values are a dask collection whose rows are not counted."""
    if not is_dask(values) or (given := delayed.blocks_of(values)).lengths is not None:
        return values
    return list(map(delayed.task(delayed.with_length), given.blocks))


def _receive_on_workers(
    X: Collection, kernel: Kernel, border: Border, refuse: Callable[..., None],
    along: list[list[Delayed]],
) -> Rows:  # fmt: skip
    """The rows of X; a pass that has to count them reads targets and weights ``along`` with it."""
    delayed.require_sendable(kernel)
    refuse("a dask collection", kernel=kernel)
    rows = _vectors(X, border, along) if _are_vectors(X, kernel) else _objects(X, along)
    n = len(rows)
    if not n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    frame = empty_frame(X)
    border.check_names(rows if frame is None else frame, reset=True)
    if rows.ndim == 2:
        border.check_count(rows, reset=True)
    if n <= HERE:
        here = Rows(kernel.domain.validate(rows.take(np.arange(n)), border, reset=True))
        if frame is not None:  # the rows themselves have lost the names
            border.check_names(frame, reset=True)
        return here
    refuse("rows on workers")
    from kreinlearn.distributed.hinge import room
    from kreinlearn.distributed.worker_rows import WorkerRows

    most = ROWS_SHARE * room(border.budget, given=border.memory_budget is not None)
    fit = rows.n_bytes is not None and rows.n_bytes <= most
    return WorkerRows(rows.persisted() if fit else rows)


def _are_vectors(X: Collection, kernel: Kernel) -> bool:
    """Whether the kernel sees the rows of X as vectors; if it takes both, X decides."""
    if kernel.domain.is_vectors or kernel.domain.is_objects:
        return kernel.domain.is_vectors
    return empty_frame(X) is not None or (getattr(X, "ndim", 1) == 2 and X.dtype.kind in "fiub")


def _vectors(X: Collection, border: Border, along: list[list[Delayed]]) -> DaskRows:
    frame = empty_frame(X)
    require_numbers(X if frame is None else frame)
    rows = rows_of(X, _vectors_of_block, along=along)
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead: X is {X!r}")
    return rows.mapped(np.asarray, np.float64, rows.shape[1])


def _vectors_of_block(block: Objects) -> Array:
    """A block of rows as an array of numbers."""
    block = delayed.with_length(block)
    return np.asarray(check_array(block, dtype=np.float64, ensure_min_samples=0, input_name="X"))


def _objects(X: Collection, along: list[list[Delayed]]) -> DaskRows:
    return rows_of(X, _objects_of_block, along=along).mapped(list, object, None)


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


# Fitted estimators


def require_in_memory(X: Objects, remedy: str) -> None:
    """Raise TypeError with the given text if X is a dask collection."""
    if is_dask(X):
        raise TypeError(remedy)


def lazy_result(estimator: BaseEstimator, name: str, X: Objects, **more: Any) -> DaskArray | None:
    """``estimator.name(block, **more)`` of every block of a dask collection; None for any other X.

    The result is a dask array, of which nothing is computed yet.
    """
    if not is_dask(X):
        return None
    import dask.array as da

    check_is_fitted(estimator)
    given = delayed.blocks_of(X)
    _check_columns(estimator, X, given)
    no_rows = _of_no_rows(estimator, name, more)
    model, lengths = delayed.constant(for_workers(estimator)), given.lengths
    blocks = [
        da.from_delayed(
            delayed.task(applied)(model, name, no_rows, block, **more),
            (np.nan if lengths is None else lengths[i], *no_rows.shape[1:]), no_rows.dtype,
        )
        for i, block in enumerate(given.blocks)
    ]  # fmt: skip
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _check_columns(estimator: BaseEstimator, X: Collection, given: DelayedBlocks) -> None:
    """Raise ValueError now, and not when a block is computed, if X tells of other columns."""
    frame = empty_frame(X)
    if frame is not None:
        _check_feature_names(estimator, frame, reset=False)
    if frame is not None or given.width is not None:
        no_rows = np.empty((0, given.width or 0)) if frame is None else frame
        _check_n_features(estimator, no_rows, reset=False)


def results_in_parts(
    method: Callable[[Objects], Any], X: Objects, room: int, here: Callable[[], Iterator[Array]]
) -> Iterator[Array]:
    """``method(X)`` in parts of at most ``room`` bytes.

    For a dask collection the workers compute a few blocks at a time. For rows in memory ``here()``
    yields the parts.
    """
    return _parts(method(X), room) if is_dask(X) else here()


def _parts(results: DaskArray, room: int) -> Iterator[Array]:
    """The values of a lazy array, as many blocks at a time as have room; the first one alone."""
    waiting, few, largest = results.to_delayed().ravel().tolist(), 1, 1
    while waiting:
        now, waiting = waiting[:few], waiting[few:]
        values = delayed.compute(delayed.task(joined)(now))
        largest = max(largest, values.nbytes // len(now))
        few = max(1, min(room // largest, MOST_BLOCKS))
        if len(values):
            yield values


def for_workers(estimator: BaseEstimator) -> BaseEstimator:
    """A copy of a model to send to workers: one thread, no output, nothing that grows with n."""
    model = copy.copy(estimator)
    for name in LEFT_HERE:
        vars(model).pop(name, None)
    model.n_jobs, model.verbose = 1, 0
    found = vars(model).get("_conformal")
    if found is not None:
        model._conformal = replace(found, models=tuple(map(for_workers, found.models)))
    return model


def applied(model: BaseEstimator, name: str, no_rows: Array, block: Objects, **more: Any) -> Array:
    """``model.name(block, **more)`` in the type of ``no_rows``.

    That is the result for an empty block.
    """
    block = delayed.with_length(block)
    if not length(block):
        return no_rows
    return np.asarray(getattr(model, name)(block, **more)).astype(no_rows.dtype, copy=False)


def _of_no_rows(estimator: BaseEstimator, name: str, more: dict[str, Any]) -> Array:
    """The result of a method without rows, found by applying it to one object like those of X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the object has no names of columns
        value = getattr(for_workers(estimator), name)(_some_object(estimator), **more)
    return np.asarray(value)[:0]


def _some_object(estimator: BaseEstimator) -> Objects:
    """The first landmark; with a precomputed matrix, a row of zeros."""
    if estimator.kernel_.domain.is_matrix:
        return np.zeros((1, estimator.n_features_in_))
    return take(estimator.landmarks_, [0])


# Scores


def scored(
    estimator: BaseEstimator, X: Objects, y: ColumnLike, sample_weight: ColumnLike,
    check: Callable[[Any], Array], here: Callable[..., float], shift: Array | float | None = None,
) -> float:  # fmt: skip
    """The score of an estimator, summed on workers if X is a dask collection.

    It is the accuracy, or R^2 of targets near ``shift`` if that is given. ``check`` checks the
    targets of a block. For rows in memory ``here``, the method of scikit-learn, computes the score.
    """
    if not is_dask(X):
        y = _in_memory(y, "y", check)
        sample_weight = _in_memory(sample_weight, "sample_weight", checked_weights)
        return float(here(*with_target(X, y), sample_weight=sample_weight))
    from kreinlearn.distributed.worker_rows import column_on_workers

    check_is_fitted(estimator)
    rows = rows_of(X, delayed.with_length)
    labels = column_on_workers(y, rows, check, "y").blocks
    weights = [None] * len(labels)
    if sample_weight is not None:
        weights = column_on_workers(sample_weight, rows, checked_weights, "sample_weight").blocks
    terms = accuracy_terms if shift is None else partial(r_squared_terms, shift=shift)
    model, of_block = delayed.constant(for_workers(estimator)), delayed.task(terms)
    each = zip(rows.blocks, labels, weights, strict=True)
    sums = delayed.compute(delayed.merged([of_block(model, *one) for one in each]))
    return float(sums[0] / sums[1]) if shift is None else r_squared(*sums)


def accuracy_terms(model: BaseEstimator, block: Objects, y: Array, w: Array | None) -> Array:
    """The weight of the rows of a block whose class is predicted, and of all its rows."""
    w = np.ones(len(y)) if w is None else w
    right = np.reshape(model.predict(block) == y, (len(y), -1)).all(axis=1)
    return np.array([w[right].sum(), w.sum()])


def r_squared_terms(
    model: BaseEstimator, block: Objects, y: Array, w: Array | None, shift: Array | float
) -> Array:
    """Sums over a block of w, w y, w y^2 and w (y - f)^2, for each output: (4, q)."""
    n, w = len(y), np.ones(len(y)) if w is None else w
    f, Y = np.reshape(model.predict(block), (n, -1)), np.reshape(y, (n, -1))
    centred = Y - shift  # a mean far from zero would cancel the digits of its square
    return np.array([w @ np.ones_like(Y), w @ centred, w @ centred**2, w @ (Y - f) ** 2])


def r_squared(weight: Array, first: Array, second: Array, residual: Array) -> float:
    """The mean over outputs of 1 - residual / total sum of squares, as in scikit-learn."""
    total = second - first**2 / weight
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(total > 0, 1 - residual / total, np.where(residual == 0, 1.0, 0.0))
    return float(np.mean(scores))
