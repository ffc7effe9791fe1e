"""Features of the objects of a fit, which kernels of features evaluate once for each object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kreinlearn.kernels.base import Array, ObjectKernel, Objects
from kreinlearn.kernels.features import Packed
from kreinlearn.pairs.evaluate import places_of, spans_of
from kreinlearn.pairs.rows import Rows
from kreinlearn.sums.parallel import map_blocks

BLOCK = 256  # objects that are packed at once
SHARE = 0.25  # of the memory budget, which features may take


class PackedRows:
    """The features of rows that are evaluated against columns more than once.

    They are kept where a share of the budget has room for them. Otherwise each block of kernel
    values evaluates those of its rows.
    """

    def __init__(self, kernels: Sequence[ObjectKernel], rows: Rows, room: float) -> None:
        self.kernels = {id(kernel): kernel for kernel in kernels}
        self.rows, self.room = rows, room
        self.numbers = np.empty(0, dtype=np.intp)
        self.blocks: list[dict[int, Any]] = []  # features by kernel, for consecutive numbers
        self.start = np.zeros(1, dtype=np.intp)  # of each block among the numbers, and the end

    def add(self, numbers: Array, workers: int) -> None:
        """Pack the rows that are not packed yet, if there is room for all of them."""
        new = numbers[~np.isin(numbers, self.numbers)] if self.kernels else numbers[:0]
        if not len(new):
            return
        spans = spans_of(len(new), BLOCK)
        blocks, taken = dict[int, dict[int, Any]](), dict[int, int]()

        def one_block(i: int) -> None:
            if sum(taken.copy().values()) <= self.room:
                objects = self.rows.take(new[slice(*spans[i])])
                blocks[i] = {key: one.packed(objects) for key, one in self.kernels.items()}
                taken[i] = sum(each.n_bytes for each in blocks[i].values())

        map_blocks(one_block, range(len(spans)), workers=min(workers, len(spans)))
        if sum(taken.values()) <= self.room:
            self.room -= sum(taken.values())
            self._append(new, [blocks[i] for i in range(len(spans))], [b - a for a, b in spans])

    def _append(self, numbers: Array, blocks: list[dict[int, Any]], sizes: list[int]) -> None:
        self.numbers = np.concatenate([self.numbers, numbers])
        self.blocks = self.blocks + blocks
        self.start = np.concatenate([self.start, self.start[-1] + np.cumsum(sizes, dtype=np.intp)])

    def of(self, numbers: Array, objects: Objects) -> Objects:
        """The objects of rows, with their features if these are known."""
        if not self.blocks or not np.isin(numbers, self.numbers).all():
            return objects
        at = places_of(numbers, self.numbers)
        return Packed(objects, {key: self._features(key, at) for key in self.kernels})

    def _features(self, key: int, at: Array) -> Any:
        order = np.argsort(at, kind="stable")
        block = np.searchsorted(self.start, at, side="right") - 1
        parts = [
            self.blocks[b][key].take(np.sort(at[block == b]) - self.start[b])
            for b in np.unique(block)
        ]
        features = parts[0] if len(parts) == 1 else type(parts[0]).joined(parts)
        return features if (np.diff(order) == 1).all() else features.take(np.argsort(order))

    def keep(self, numbers: Array) -> None:
        """Forget the features of all other rows."""
        numbers = numbers[np.isin(numbers, self.numbers)]
        at = places_of(numbers, self.numbers)
        blocks = [{key: self._features(key, at) for key in self.kernels}] if len(numbers) else []
        self.numbers, self.blocks, self.start = self.numbers[:0], [], self.start[:1]
        self._append(numbers, blocks, [len(numbers)][: len(blocks)])
