"""Targets and weights as an estimator takes them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_array

from kreinlearn.data.tiles import length

Array = NDArray[Any]
LARGEST = 1e150  # of a target, whose square is summed


def checked_numbers(y: Any, estimator: str) -> Array:
    """Targets of a regression."""
    if np.asarray(y).dtype.kind in "mM":  # scikit-learn would take them as numbers
        raise TypeError("y must hold numbers, got dates; convert them first")
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=estimator)
    size = np.max(np.abs(y), initial=0.0)
    if size > LARGEST:
        raise ValueError(f"y is as large as {size:.3g}, too large to be squared; divide it")
    return np.asarray(y)


def checked_labels(y: Any, estimator: str) -> Array:
    """Targets of a classification."""
    y = _check_y(y, estimator=estimator)
    check_classification_targets(y)
    return np.asarray(y)


def labels_of_block(y: Any, estimator: str) -> Array:
    """The same of a few rows, which may well have as many classes as rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return checked_labels(y, estimator)


def checked_weights(
    w: Any, *, n: int | None = None, all_zero: bool = True, block: bool = True
) -> Array:
    """One weight for each of n rows, none of them negative; of a block, all may be zero."""
    rows = np.empty((length(w) if block or n is None else n, 1))
    return np.asarray(
        _check_sample_weight(
            w, rows, dtype=np.float64, ensure_non_negative=True,
            allow_all_zero_weights=all_zero or block,
        )
    )  # fmt: skip
