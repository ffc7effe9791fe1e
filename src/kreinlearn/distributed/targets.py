"""Targets and weights that stay beside the rows: classes and means by sums over blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from kreinlearn.distributed import blocks as b
from kreinlearn.distributed.rows import DaskRows, rows_of, spread
from kreinlearn.distributed.sums import total_of
from kreinlearn.kernels.base import Array
from kreinlearn.sums.tree import COLUMN_RUNS, Tree, runs_of

Check = Callable[[Any], Array]  # a block of targets or weights, as it comes


def column_of(y: Any, X: DaskRows, check: Check, name: str) -> DaskRows:
    """Targets or weights in the blocks of X; in memory or not."""
    y = rows_of(y, partial(checked, check=check)) if b.is_dask(y) else spread_checked(y, X, check)
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


@dataclass
class Tally:
    """Labels, how often each is there, and their weight."""

    labels: Array
    counts: Array
    weights: Array

    @classmethod
    def of(cls, y: Array, w: Array | None = None) -> Self:
        labels, places, counts = np.unique(y, return_inverse=True, return_counts=True)
        return cls(labels, counts, np.bincount(places, w, len(labels)))

    def __iadd__(self, other: Self) -> Self:
        labels, places = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        counts = np.concatenate([self.counts, other.counts])
        weights = np.concatenate([self.weights, other.weights])
        self.counts = np.bincount(places, counts, len(labels)).astype(counts.dtype)
        self.weights = np.bincount(places, weights, len(labels))
        self.labels = labels
        return self


@dataclass
class Sums:
    """Of weights, weighted targets, and of rows without weight."""

    weight: Any
    targets: Any
    without: int

    @classmethod
    def of(cls, y: Array, w: Array | None = None) -> Self:
        w = np.ones(len(y)) if w is None else w
        return cls(w.sum(), w @ y, int(np.count_nonzero(w == 0)))

    def __iadd__(self, other: Self) -> Self:
        self.weight += other.weight
        self.targets = self.targets + other.targets
        self.without += other.without
        return self


def tally(y: DaskRows, w: DaskRows | None) -> Tally:
    found: Tally = total_of(Tally.of, y, w)
    return found


def sums(y: Any, w: Any) -> Sums:
    """On workers or here: the same numbers, bit for bit."""
    found: Sums = (total_of if isinstance(y, DaskRows) else total_here)(Sums.of, y, w)
    return found


def class_totals(labels: Array, w: Array | None, n_classes: int) -> Array:
    """Weight of each class, labels being numbers of classes; as ``tally`` has it."""
    totals: Array = total_here(partial(np.bincount, minlength=n_classes), labels, w)
    return totals


def total_here(function: Callable[..., Any], *columns: Array | None) -> Any:
    """As ``total_of``, of columns in memory."""
    assert columns[0] is not None
    tree: Tree[Any] = Tree(1)
    for i, run in enumerate(runs_of(len(columns[0]), *COLUMN_RUNS)):
        here = slice(*run)
        tree.put(i, function(*(None if column is None else column[here] for column in columns)))
    return tree.total(lambda: function(*columns))


def weighted_by_class(y: DaskRows, w: DaskRows | None, classes: Array, of: Array) -> DaskRows:
    """Weights of the rows times those of their classes."""
    blocks = [None] * len(y.blocks) if w is None else w.blocks
    times = b.task(partial(_times, classes=classes, of=of))
    found = [times(*both) for both in zip(y.blocks, blocks, strict=True)]
    return DaskRows(found, y.lengths, y.shape[:1], np.float64)


def _times(y: Array, w: Array | None, classes: Array, of: Array) -> Array:
    by_class = of[np.searchsorted(classes, y)]
    return by_class if w is None else by_class * w
