"""Targets and weights that stay beside the rows: classes and means by sums over blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kreinlearn.distributed import blocks as b
from kreinlearn.distributed.entrance import is_dask
from kreinlearn.distributed.rows import DaskRows, rows_of, spread
from kreinlearn.kernels.base import Array

Check = Callable[[Any], Array]  # a block of targets or weights, as it comes


def column_of(y: Any, X: DaskRows, check: Check, name: str) -> DaskRows:
    """Targets or weights in the blocks of X; in memory or not."""
    y = rows_of(y, partial(checked, check=check)) if is_dask(y) else spread_checked(y, X, check)
    if len(y) != len(X):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[len(X), len(y)]}, of X and {name}"
        )
    return y.with_blocks_of(X)


def spread_checked(y: Any, X: DaskRows, check: Check) -> DaskRows:
    y = check(y)
    return spread(y, X) if len(y) == len(X) else DaskRows([], [], y.shape, y.dtype)


def checked(block: Any, check: Check) -> Array:
    """An empty block is as good as any other."""
    block = block if hasattr(block, "__len__") else list(block)
    return check(block) if len(block) else np.asarray(block)


def weighted_by_class(y: DaskRows, w: DaskRows | None, classes: Array, of: Array) -> DaskRows:
    """Weights of the rows times those of their classes."""
    blocks = [None] * len(y.blocks) if w is None else w.blocks
    times = b.task(partial(_times, classes=classes, of=of))
    found = [times(*both) for both in zip(y.blocks, blocks, strict=True)]
    return DaskRows(found, y.lengths, y.shape[:1], np.float64)


def _times(y: Array, w: Array | None, classes: Array, of: Array) -> Array:
    by_class = of[np.searchsorted(classes, y)]
    return by_class if w is None else by_class * w
