"""Dask collections at the border of an estimator: what is taken, how their blocks are checked."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    _check_y,
    check_array,
)

from kreinlearn.data.sources import with_target
from kreinlearn.data.tiles import TILE, length
from kreinlearn.distributed import (
    DaskRows,
    Tally,
    column_of,
    is_dask,
    like,
    rows_of,
    sums,
)
from kreinlearn.estimators._validation import _as_array, _as_list, require_numbers
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.object_kernel import ObjectKernel
from kreinlearn.nystrom.landmarks import WHOLE_SAMPLE
from kreinlearn.pairs.panel import POOL_ROWS

LARGEST = 1e150  # targets, whose squares are summed


class Labels(NamedTuple):
    """Labels that are on workers, and what is known of them here."""

    y: DaskRows
    tally: Tally


def rows_on_workers(estimator: Any, X: Any, kernel: Kernel, *, reset: bool) -> Any:
    """The rows of a dask collection; in memory if they are no more than a sample of many."""
    name = type(estimator).__name__
    if not reset:
        raise TypeError(
            f"{name} takes rows in memory here, got a dask collection; compute it first"
        )
    if not estimator._takes_dask:
        raise TypeError(f"{name} looks at single rows, and takes no dask collection; compute it")
    if kernel.takes in ("precomputed", "records"):
        raise TypeError(
            f"kernel={estimator.kernel!r} looks at all rows at once, and takes no dask collection; "
            "compute it, or choose another kernel"
        )
    if getattr(estimator, "store", None) is not None:
        raise ValueError(
            f"store={str(estimator.store)!r} keeps the values that one process evaluates, and rows "
            "of a dask collection are evaluated by many; pass store=None"
        )
    rows = _vectors(estimator, X) if _are_vectors(X, kernel) else _objects(X)
    n = len(rows)
    if not n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    frame = like(X)
    _check_feature_names(estimator, rows if frame is None else frame, reset=True)
    if rows.ndim == 2:
        _check_n_features(estimator, rows, reset=True)
    if n <= POOL_ROWS:
        return rows.take(np.arange(n))
    _require_sums(estimator)
    return rows


def _require_sums(estimator: Any) -> None:
    """ValueError for what holds something of every row in this process."""
    scheme = estimator.landmarks if isinstance(estimator.landmarks, str) else "given"
    if scheme in WHOLE_SAMPLE:
        raise ValueError(
            f"landmarks={scheme!r} holds a sketch of all rows, which stay on workers; pass "
            'landmarks="auto", which looks at a sample of them'
        )
    if getattr(estimator, "penalty", "l2") != "l2":
        raise ValueError(
            f"penalty={estimator.penalty!r} looks at single rows on the way to a few landmarks, "
            'and those of a dask collection are only summed; pass penalty="l2"'
        )
    if getattr(estimator, "method", "gram") != "gram":
        raise ValueError(
            f"method={estimator.method!r} holds all kernel values, those of a dask collection are "
            'only summed; pass method="gram"'
        )


def _are_vectors(X: Any, kernel: Kernel) -> bool:
    if kernel.takes != "any":
        return kernel.takes == "vectors"
    if like(X) is not None:
        return True
    return getattr(X, "ndim", 1) == 2 and X.dtype.kind in "fiub"


def _vectors(estimator: Any, X: Any) -> DaskRows:
    frame, dtypes = like(X), estimator._dtypes
    require_numbers(X if frame is None else frame)
    rows = rows_of(X, partial(vectors, dtypes=dtypes))
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead: X is {X!r}")
    dtype = rows.dtype if rows.dtype in dtypes else dtypes[0]
    return rows.mapped(partial(np.asarray, dtype=dtype), dtype, rows.shape[1])


def vectors(block: Any, dtypes: list[Any]) -> Any:
    block = block if hasattr(block, "__len__") else list(block)
    return check_array(block, dtype=dtypes, ensure_min_samples=0, input_name="X")


def _objects(X: Any) -> DaskRows:
    return rows_of(X, objects).mapped(list, object, None)


def objects(block: Any) -> Any:
    """A list of objects; vectors of a kernel on anything, if the block is a table of numbers."""
    block = block if hasattr(block, "__len__") else list(block)
    return _as_list(_as_array(block)) if length(block) else []


def to_fit_on(kernel: Kernel, X: Any) -> Any:
    """Rows for a kernel's ``fit``: a sample of objects on workers, which are checked there too."""
    if not isinstance(X, DaskRows) or not isinstance(kernel, ObjectKernel):
        return X
    return X.take(np.linspace(0, len(X) - 1, TILE).astype(np.intp))


# Targets and weights


def beside(X: Any, values: Any, check: Any, name: str) -> Any:
    """Targets or weights where the rows are: on workers, or in memory."""
    if isinstance(X, DaskRows) and values is not None:
        return column_of(values, X, check, name)
    return column_here(values, check, name)


def column_here(values: Any, check: Any, name: str) -> Any:
    """Targets or weights of rows in memory, beside them if they are few."""
    if not is_dask(values):
        return values
    rows = rows_of(values, check)
    if len(rows) > POOL_ROWS:
        raise TypeError(
            f"{name} is a dask collection and X is in memory; pass both as dask collections, or "
            f"{name}.compute()"
        )
    return rows.take(np.arange(len(rows)))


def scored(estimator: Any, X: Any, y: Any, sample_weight: Any, on_workers: Any, here: Any) -> float:
    """A score of rows on workers, or that of scikit-learn here; columns are as in ``fit``."""
    check = partial(estimator._check_targets, estimator=type(estimator).__name__)
    if is_dask(X):
        return float(on_workers(estimator, X, (y, check), (sample_weight, checked_weights)))
    w = column_here(sample_weight, checked_weights, "sample_weight")
    return float(here(*with_target(X, column_here(y, check, "y")), sample_weight=w))


def checked_numbers(y: Any, estimator: str) -> Any:
    """Targets of a regression."""
    if np.asarray(y).dtype.kind in "mM":  # scikit-learn would take them as numbers
        raise TypeError("y must hold numbers, got dates; convert them first")
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=estimator)
    size = np.max(np.abs(y), initial=0.0)
    if size > LARGEST:
        raise ValueError(f"y is as large as {size:.3g}, too large to be squared; divide it")
    return y


def as_columns(y: Any) -> Any:  # (n,) or (n, q) -> (n, q)
    if not isinstance(y, DaskRows):
        return y.reshape(len(y), -1)
    return y if y.ndim == 2 else y.mapped(as_columns, y.dtype, 1)


def mean_of(Y: Any, w: Any) -> Any:
    found = sums(Y, w)
    return found.targets / found.weight


def less(Y: Any, shift: Any) -> Any:
    if not isinstance(Y, DaskRows):
        return Y - shift
    return Y.mapped(partial(less, shift=shift), Y.dtype, Y.shape[1])


def checked_labels(y: Any, estimator: str) -> Any:
    """Targets of a classification."""
    y = _check_y(y, estimator=estimator)
    check_classification_targets(y)
    return y


def labels_of_block(y: Any, estimator: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many classes in a short block
        return checked_labels(y, estimator)


def checked_weights(w: Any) -> Any:
    return _check_sample_weight(
        w, np.empty((length(w), 1)), dtype=np.float64, ensure_non_negative=True,
        allow_all_zero_weights=True,
    )  # fmt: skip


def class_counts(labels: Any) -> Any:
    """Rows of each class; None without classes."""
    if labels is None:
        return None
    return labels.tally.counts if isinstance(labels, Labels) else np.bincount(labels)


def require_weight(without: int) -> None:
    """ValueError for rows that weigh nothing: no landmark may be one of them."""
    if without:
        raise ValueError(
            f"{without} rows of a dask collection have no weight; leave them out before fit"
        )
