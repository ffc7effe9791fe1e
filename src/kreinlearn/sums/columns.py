"""Sums of targets, labels and weights, which do not depend on where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kreinlearn.sums.tree import COLUMN_SPANS, Tree, spans_of

Array = NDArray[Any]


@dataclass
class Tally:
    """The labels that occur, how often each does, and their weight."""

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
class ColumnSums:
    """The sum of the weights, of the weighted targets, and the number of rows without weight."""

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


def total_of_columns(function: Callable[..., Any], *columns: Array | None) -> Any:
    """The sum of ``function`` over fixed spans of rows of columns that belong together."""
    assert columns[0] is not None
    tree: Tree[Any] = Tree(1)
    for i, span in enumerate(spans_of(len(columns[0]), *COLUMN_SPANS)):
        here = slice(*span)
        tree.put(i, function(*(None if column is None else column[here] for column in columns)))
    return tree.total(lambda: function(*columns))
