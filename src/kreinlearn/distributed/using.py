"""Fitted estimators on dask collections: a method of an estimator, lazily, a block at a time."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from kreinlearn.data.tiles import length, take
from kreinlearn.distributed import blocks as b
from kreinlearn.distributed.rows import like, rows_of
from kreinlearn.distributed.targets import column_of
from kreinlearn.kernels.base import Array

# what prediction has no use for
LEFT_HERE = ("folds_", "cv_trials_", "choices_", "_sums", "_skl_callbacks")
MOST_BLOCKS = 64  # whose results come here at a time
Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """A method of one argument X that gives a lazy dask array if X is a dask collection."""

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        return mapped(self, method.__name__, X) if b.is_dask(X) else method(self, X)

    return either  # type: ignore[return-value]


class Result(NamedTuple):
    """What a method gives of one object."""

    shape: tuple[int, ...]
    dtype: Any


def mapped(estimator: Any, name: str, X: Any) -> Any:
    """``estimator.name(block)`` of every block, as a dask array; nothing is computed yet."""
    import dask.array as da

    check_is_fitted(estimator)
    found = b.blocks_of(X)
    _require_known_columns(estimator, X, found)
    result = _result_of(estimator, name, found)
    model, lengths = b.constant(for_workers(estimator)), found.lengths
    blocks = [
        da.from_delayed(
            b.task(applied)(model, name, result, block),
            (np.nan if lengths is None else lengths[i], *result.shape), result.dtype,
        )
        for i, block in enumerate(found.blocks)
    ]  # fmt: skip
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _require_known_columns(estimator: Any, X: Any, found: b.Blocks) -> None:
    """ValueError now, not when it is computed, if columns are known to be others."""
    frame = like(X)
    if frame is not None:
        _check_feature_names(estimator, frame, reset=False)
    if frame is not None or found.width is not None:
        some = np.empty((0, found.width or 0)) if frame is None else frame
        _check_n_features(estimator, some, reset=False)


def parts(results: Any, room: int) -> Iterator[Array]:
    """A lazy array a few blocks at a time, as many as there is room for here; one to begin with."""
    waiting, few, largest = results.to_delayed().ravel().tolist(), 1, 1
    while waiting:
        now, waiting = waiting[:few], waiting[few:]
        values = b.computed(b.task(b.joined)(now))
        largest = max(largest, values.nbytes // len(now))
        few = max(1, min(room // largest, MOST_BLOCKS))
        if len(values):
            yield values


def for_workers(estimator: Any) -> Any:
    """The same model for a task: one thread, no words, and nothing that grows with the rows."""
    model = copy.copy(estimator)
    for name in LEFT_HERE:
        vars(model).pop(name, None)
    model.n_jobs, model.verbose = 1, 0
    return model


def applied(model: Any, name: str, result: Result, block: Any) -> Any:
    block = as_given(block)
    if not length(block):
        return np.empty((0, *result.shape), result.dtype)
    return np.asarray(getattr(model, name)(block)).astype(result.dtype, copy=False)


def _result_of(estimator: Any, name: str, found: b.Blocks) -> Result:
    """By one object that the estimator knows, in the type of the blocks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has no names of columns
        value = np.asarray(getattr(for_workers(estimator), name)(_known_object(estimator, found)))
    return Result(value.shape[1:], value.dtype)


def _known_object(estimator: Any, found: b.Blocks) -> Any:
    if estimator.kernel_.domain.is_matrix:
        return np.zeros((1, estimator.n_features_in_), found.dtype)
    one = take(estimator.landmarks_, [0])
    numbers = hasattr(one, "dtype") and one.dtype.kind == "f"
    single = found.dtype == np.float32
    return one.astype(np.float32 if single else np.float64) if numbers else one


# Scores


@dataclass
class Terms:
    """Sums over rows that a score is made of."""

    sums: Any

    def __iadd__(self, other: Self) -> Self:
        self.sums = self.sums + other.sums
        return self


Column = tuple[Any, Callable[[Any], Any]]  # targets or weights, and the check of a block


def accuracy(estimator: Any, X: Any, y: Column, w: Column) -> float:
    """Share of the weight whose class is found."""
    right, weight = _sums(right_terms, estimator, X, y, w)
    return float(right / weight)


def right_terms(model: Any, block: Any, y: Any, w: Any) -> Terms:
    w = np.ones(len(y)) if w is None else w
    return Terms(np.array([w[model.predict(block) == y].sum(), w.sum()]))


def r_squared(estimator: Any, X: Any, y: Column, w: Column) -> float:
    """The mean over outputs of 1 - residual / total sum of squares, as scikit-learn has it."""
    weight, first, second, residual = _sums(square_terms, estimator, X, y, w)
    total = second - first**2 / weight
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(total > 0, 1 - residual / total, np.where(residual == 0, 1.0, 0.0))
    return float(np.mean(found))


def square_terms(model: Any, block: Any, y: Any, w: Any) -> Terms:
    n, w = len(y), np.ones(len(y)) if w is None else w
    f, Y = np.reshape(model.predict(block), (n, -1)), np.reshape(y, (n, -1))
    centred = Y - model._shift  # near the mean, which would drown the rest when it is squared
    sums = [w @ np.ones_like(Y), w @ centred, w @ centred**2, w @ (Y - f) ** 2]
    return Terms(np.array(sums))


def _sums(terms: Any, estimator: Any, X: Any, y: Column, w: Column) -> Any:
    check_is_fitted(estimator)
    rows = rows_of(X, as_given)
    model, of_block = b.constant(for_workers(estimator)), b.task(terms)
    labels = column_of(y[0], rows, y[1], "y").blocks
    weights = [None] * len(labels) if w[0] is None else column_of(w[0], rows, w[1], "w").blocks
    each = zip(rows.blocks, labels, weights, strict=True)
    total: Terms = b.computed(b.tree([of_block(model, *one) for one in each], b.added))
    return total.sums


def as_given(block: Any) -> Any:
    return block if hasattr(block, "__len__") else list(block)
