"""Rows that are not in memory, as a kernel takes them and as a fitted estimator knows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features

from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.opening import as_path, opened
from kreinlearn.data.source import Checked, RowObjects
from kreinlearn.data.table import Table
from kreinlearn.data.tiles import Part, Source
from kreinlearn.kernels import Kernel


def rows_for(estimator: Any, X: Any, kernel: Kernel, *, reset: bool) -> Any:
    """A validated source of rows; X itself if it is in memory, or what is read into memory."""
    if isinstance(X, Part):
        return X
    X = as_path(X) if kernel.takes == "vectors" else X
    data = opened(X, None if reset else getattr(estimator, "_column", None))
    if data is None or (isinstance(X, np.memmap) and kernel.takes not in ("vectors", "any")):
        return X
    budget = budget_bytes(estimator.memory_budget)
    if kernel.takes == "precomputed":
        return _numbers_of(estimator, data, reset=reset).within(budget).whole()
    if isinstance(data, Table):
        if kernel.takes == "records":
            return data.load(budget)
        data = _with_known_names(estimator, data, reset=reset)
    source = _source_for(estimator, data, kernel, reset=reset)
    if not isinstance(source, Checked):
        return source
    source = source.within(budget, estimator._dtype)
    return RowObjects(source) if kernel.takes == "objects" and source.ndim == 2 else source


def in_memory(X: Any) -> Any:
    """A matrix that is given as a whole: that of a file is mapped or read."""
    data = opened(X)
    if data is None:
        return X
    source: Any = data.numbers() if isinstance(data, Table) else data
    return source.within(budget_bytes(None)).whole() if source.ndim == 2 else X


def _with_known_names(estimator: Any, data: Table, *, reset: bool) -> Table:
    """Of a file, the columns that a model was fitted on, wherever they are."""
    names = getattr(estimator, "feature_names_in_", None)
    if getattr(estimator, "_column", None) is not None:
        names = [estimator._column]
    if reset or names is None or not data.by_name or data.chosen is not None:
        return data
    return data.pick(list(names)) if set(names) <= set(data.names) else data


def _source_for(estimator: Any, data: Any, kernel: Kernel, *, reset: bool) -> Source:
    numbers = kernel.takes == "vectors" or data_is_numeric(data)
    if kernel.takes == "any" and not reset:
        numbers = hasattr(estimator, "n_features_in_")
    if numbers and (kernel.takes != "objects" or isinstance(data, Table)):
        return _numbers_of(estimator, data, reset=reset)
    if isinstance(data, Table):
        data = data.objects()
        if reset:
            (estimator._column,) = data.names
    return data


def data_is_numeric(data: Any) -> bool:
    return data.holds_numbers() if isinstance(data, Table) else data.ndim == 2


def _numbers_of(estimator: Any, data: Any, *, reset: bool) -> Any:
    """A source of numbers whose columns are counted, and compared by name."""
    source = data.numbers() if isinstance(data, Table) else data
    if source.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {source.origin} holds objects, and this "
            "kernel takes vectors"
        )
    _check_feature_names(estimator, data.empty if isinstance(data, Table) else source, reset=reset)
    _check_n_features(estimator, source, reset=reset)
    return source
