"""Fitted estimators on dask collections: their methods are applied lazily, block by block."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from kreinlearn.data.tiles import length, take
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Collection, DelayedBlocks
from kreinlearn.distributed.rows import Check, ColumnLike, column_on_workers, empty_frame, rows_of
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.pairs.rows import joined

# attributes that prediction does not need, and that are not sent to workers
LEFT_HERE = ("folds_", "cv_trials_", "choices_", "_sums", "_skl_callbacks")
MOST_BLOCKS = 64  # blocks whose results are computed at a time
DaskArray = Any  # a dask array, whose type cannot be imported without dask


class Result(NamedTuple):
    """The shape and the type of what a method returns for one object."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def mapped(estimator: BaseEstimator, name: str, X: Collection) -> DaskArray:
    """``estimator.name(block)`` of every block, as a dask array; nothing is computed yet."""
    import dask.array as da

    check_is_fitted(estimator)
    given = delayed.blocks_of(X)
    _check_columns(estimator, X, given)
    result = _result_of(estimator, name, given)
    model, lengths = delayed.constant(for_workers(estimator)), given.lengths
    blocks = [
        da.from_delayed(
            delayed.task(applied)(model, name, result, block),
            (np.nan if lengths is None else lengths[i], *result.shape), result.dtype,
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


def parts(results: DaskArray, room: int) -> Iterator[Array]:
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
    return model


def applied(model: BaseEstimator, name: str, result: Result, block: Objects) -> Array:
    """``model.name(block)``; an empty array for an empty block."""
    block = delayed.with_length(block)
    if not length(block):
        return np.empty((0, *result.shape), result.dtype)
    return np.asarray(getattr(model, name)(block)).astype(result.dtype, copy=False)


def _result_of(estimator: BaseEstimator, name: str, given: DelayedBlocks) -> Result:
    """What a method returns, by applying it to one object of the type of the blocks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the object has no names of columns
        value = np.asarray(getattr(for_workers(estimator), name)(_some_object(estimator, given)))
    return Result(value.shape[1:], value.dtype)


def _some_object(estimator: BaseEstimator, given: DelayedBlocks) -> Objects:
    """The first landmark; with a precomputed matrix, a row of zeros."""
    if estimator.kernel_.domain.is_matrix:
        return np.zeros((1, estimator.n_features_in_), given.dtype)
    one = take(estimator.landmarks_, [0])
    numbers = hasattr(one, "dtype") and one.dtype.kind == "f"
    single = given.dtype == np.float32
    return one.astype(np.float32 if single else np.float64) if numbers else one


# Scores

Column = tuple[ColumnLike, Check]  # targets or weights, and what validates a block


def accuracy(estimator: BaseEstimator, X: Collection, y: Column, w: Column) -> float:
    """The share of the weight whose class is predicted."""
    right, weight = _sums(accuracy_terms, estimator, X, y, w)
    return float(right / weight)


def accuracy_terms(model: BaseEstimator, block: Objects, y: Array, w: Array | None) -> Array:
    """The weight of the rows of a block whose class is predicted, and of all its rows."""
    w = np.ones(len(y)) if w is None else w
    return np.array([w[model.predict(block) == y].sum(), w.sum()])


def r_squared(
    estimator: BaseEstimator, X: Collection, y: Column, w: Column, shift: Array | float
) -> float:
    """The mean over outputs of 1 - residual / total sum of squares, as in scikit-learn."""
    terms = partial(r_squared_terms, shift=shift)
    weight, first, second, residual = _sums(terms, estimator, X, y, w)
    total = second - first**2 / weight
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(total > 0, 1 - residual / total, np.where(residual == 0, 1.0, 0.0))
    return float(np.mean(scores))


def r_squared_terms(
    model: BaseEstimator, block: Objects, y: Array, w: Array | None, shift: Array | float
) -> Array:
    """Sums over a block of w, w y, w y^2 and w (y - f)^2, for each output: (4, q)."""
    n, w = len(y), np.ones(len(y)) if w is None else w
    f, Y = np.reshape(model.predict(block), (n, -1)), np.reshape(y, (n, -1))
    centred = Y - shift  # a mean far from zero would cancel the digits of its square
    return np.array([w @ np.ones_like(Y), w @ centred, w @ centred**2, w @ (Y - f) ** 2])


def _sums(
    terms: Callable[..., Array], estimator: BaseEstimator, X: Collection, y: Column, w: Column
) -> Array:
    """The sum of ``terms(model, block, y, w)`` over all blocks of rows."""
    check_is_fitted(estimator)
    rows = rows_of(X, delayed.with_length)
    model, of_block = delayed.constant(for_workers(estimator)), delayed.task(terms)
    labels = column_on_workers(y[0], rows, y[1], "y").blocks
    weights = [None] * len(labels)
    if w[0] is not None:
        weights = column_on_workers(w[0], rows, w[1], "sample_weight").blocks
    each = zip(rows.blocks, labels, weights, strict=True)
    return delayed.compute(delayed.merged([of_block(model, *one) for one in each]))
