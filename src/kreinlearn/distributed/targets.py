"""Targets and weights on workers, divided into blocks as the rows are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Collection
from kreinlearn.distributed.rows import DaskRows, rows_of, spread
from kreinlearn.kernels.base import Array, Objects

ColumnLike = Collection | ArrayLike  # targets or weights, as given to an estimator
Check = Callable[[Objects], Array]  # validates a block of targets or weights as it was given


def column_on_workers(values: ColumnLike, X: DaskRows, check: Check, name: str) -> DaskRows:
    """Targets or weights, given as a dask collection or in memory, in the blocks of X."""
    from kreinlearn.distributed.entrance import is_dask

    column = rows_of(values, partial(_checked, check=check)) if is_dask(values) else check(values)
    if len(column) != len(X):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[len(X), len(column)]}, of X and {name}"
        )
    return column.with_blocks_of(X) if isinstance(column, DaskRows) else spread(column, X)


def _checked(block: Objects, check: Check) -> Array:
    """A block of targets or weights; an empty block needs no check."""
    block = delayed.with_length(block)
    return check(block) if len(block) else np.asarray(block)


def weighted_by_class(
    labels: DaskRows, weights: DaskRows | None, classes: Array, of_classes: Array
) -> DaskRows:
    """The weight of each row times that of its class."""
    given = [None] * len(labels.blocks) if weights is None else weights.blocks
    times = delayed.task(partial(_times, classes=classes, of_classes=of_classes))
    blocks = [times(y, w) for y, w in zip(labels.blocks, given, strict=True)]
    return DaskRows(blocks, labels.lengths, labels.shape[:1], np.float64)


def _times(y: Array, w: Array | None, classes: Array, of_classes: Array) -> Array:
    by_class = of_classes[np.searchsorted(classes, y)]
    return by_class if w is None else by_class * w
