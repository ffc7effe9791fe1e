"""Sets of labels, several per object: an indicator matrix, or a list of labels for each object."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from kreinlearn.data.validation import checked_labels, require_unmasked

Array = NDArray[Any]


def label_names(y: Any, classes: ArrayLike | None = None) -> Array | None:
    """The labels in their order: all ``classes``, if these are known, or those in lists of labels.

    The columns of an indicator matrix have no names.
    """
    if classes is not None:
        return np.unique(classes)
    if _has_columns(y) or _matrix_of(y) is not None:
        return None
    rows = _label_lists(y)
    every = {label for labels in rows for label in labels}
    if not every:
        raise ValueError(f"none of {len(rows)} objects has a label: all entries of y are empty")
    names = np.unique(checked_labels(list(every), "y"))
    _require_several(len(names), repr(names.tolist()[0]))
    return names


def checked_indicator(y: Any, names: Array | None) -> Array:  # (n, L), of 0 and 1
    """Which object has which label; ``names`` are those of the columns, if they have any."""
    matrix = _matrix_of(y)
    if matrix is None:
        if names is None:
            raise ValueError("y must be an indicator matrix with one column per label")
        return _from_lists(_label_lists(y), names)
    n_labels = matrix.shape[1]
    _require_several(n_labels, "its only column")
    if names is not None and len(names) != n_labels:
        raise ValueError(
            f"y has {n_labels} columns, and there are {len(names)} labels; pass one column of 0 "
            "and 1 for each of them, or a set of labels for each object"
        )
    bad = np.argwhere(~_are_flags(matrix))
    if len(bad):
        i, j = bad[0]
        nan = matrix[i, j] != matrix[i, j]
        raise ValueError(
            f"{'Input y contains NaN: ' if nan else ''}y has several columns, and is "
            f"{matrix[i, j]!s:.40} at row {i}, column {j}; a classifier takes one column of "
            "classes, or several columns of 0 and 1, one for each label"
        )
    return np.ascontiguousarray(matrix, dtype=np.int8)


def _has_columns(y: Any) -> bool:
    return len(getattr(y, "shape", ())) == 2


def _matrix_of(y: Any) -> Array | None:
    """Targets in two dimensions, or lists of zeros and ones that are as long; else None."""
    require_unmasked(y, "y")
    if sp.issparse(y):
        return np.asarray(y.toarray())
    if _has_columns(y):
        return np.asarray(y)
    rows = list(y)
    if not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return None
    if len({len(row) for row in rows}) > 1 or not len(rows[0]):
        return None
    matrix = np.asarray(rows)
    good = matrix.ndim == 2 and matrix.dtype.kind in "biuf" and bool(_are_flags(matrix).all())
    return matrix if good else None


def _are_flags(matrix: Array) -> Array:
    return np.asarray((matrix == 0) | (matrix == 1))


def _label_lists(y: Any) -> list[Any]:
    """One list or set of labels for each object."""
    rows = list(y)
    for i, row in enumerate(rows):
        good = isinstance(row, Set | Sequence | np.ndarray) and not isinstance(row, str | bytes)
        if not good or (isinstance(row, np.ndarray) and row.ndim != 1):
            raise ValueError(
                f"y is {row!s:.60} at row {i}, and objects may have any number of labels here; "
                "pass a list or a set of labels for every object, as in [[7], [], [7, 8]]"
            )
        if any(label is None or label != label for label in row):
            raise ValueError(
                f"Input y contains NaN: a label of row {i} is missing; leave it out, and pass an "
                "empty list if an object has no label"
            )
    return rows


def _from_lists(rows: Sequence[Any], names: Array) -> Array:
    column = {name: j for j, name in enumerate(names.tolist())}
    matrix = np.zeros((len(rows), len(names)), dtype=np.int8)
    for i, labels in enumerate(rows):
        for label in labels:
            if label not in column:
                raise ValueError(
                    f"row {i} of y has the label {label!r}, which is not among those of the model: "
                    f"{names}; leave it out, or give all labels to fit, or to partial_fit as "
                    "classes"
                )
            matrix[i, column[label]] = 1
    return matrix


def _require_several(n_labels: int, which: str) -> None:
    if n_labels < 2:
        raise ValueError(
            f"y has one label only, {which}; whether an object has it is a problem of two classes: "
            "pass one value per object, such as 0 or 1"
        )
