"""Which block of a store holds which pair of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array


class Numbers:
    """Row numbers in a given order, with a fast way to find the place of a number."""

    def __init__(self, numbers: Array) -> None:
        self.numbers = np.asarray(numbers, dtype=np.int64)
        rising = bool((np.diff(self.numbers) > 0).all())
        self._order = None if rising else np.argsort(self.numbers, kind="stable")
        self._sorted = self.numbers if self._order is None else self.numbers[self._order]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def span(self) -> tuple[int, int]:
        """The least and the greatest number."""
        return int(self._sorted[0]), int(self._sorted[-1])

    def find(self, wanted: Array) -> tuple[Array, Array]:
        """The places in ``wanted`` of the numbers that occur here, and their places here."""
        if not len(self) or not len(wanted):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        places = np.flatnonzero(self._sorted[at] == wanted)
        here = at[places]
        return places, here if self._order is None else self._order[here]


@dataclass(eq=False)
class Block:
    """The values of rows x columns: first in memory, then on the disk, beginning at ``chunk``."""

    rows: Numbers
    columns: Numbers
    values: Array | None  # None once they are on the disk
    chunk: int = -1

    @property
    def size(self) -> int:
        return len(self.rows) * len(self.columns)


class Overlap(NamedTuple):
    """The part of a block that lies in the rows and columns of a query.

    If it is mirrored, the rows of the query are columns of the block.
    """

    block: Block
    wanted: tuple[Array, Array]  # places in the rows and columns of the query
    here: tuple[Array, Array]  # places in the block
    mirrored: bool


class Index:
    """All blocks of a store, with a fast way to find those that have some of the wanted pairs."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._spans: Array | None = None  # (blocks, 2): least and greatest row
        self._as_column: Numbers | None = None  # all numbers of columns, of any block

    def add(self, block: Block) -> None:
        self.blocks.append(block)
        self._spans = self._as_column = None

    def replace(self, old: list[Block], new: list[Block]) -> None:
        gone = set(map(id, old))
        self.blocks = [block for block in self.blocks if id(block) not in gone] + new
        self._spans = self._as_column = None

    def overlaps(self, rows: Array, columns: Array, mirror: bool) -> list[Overlap]:
        """The blocks that have some of the pairs rows x columns; mirrored ones come last."""
        overlaps = list(self._of(rows, columns, mirrored=False))
        if mirror and self.blocks:
            if self._as_column is None:
                parts = {id(block.columns): block.columns.numbers for block in self.blocks}
                self._as_column = Numbers(np.unique(np.concatenate(list(parts.values()))))
            places, _ = self._as_column.find(rows)
            for part in self._of(columns, rows[places], mirrored=True) if len(places) else ():
                overlaps.append(part._replace(wanted=(places[part.wanted[0]], part.wanted[1])))
        return overlaps

    def _of(self, rows: Array, columns: Array, *, mirrored: bool) -> Iterator[Overlap]:
        places: dict[int, tuple[Array, Array]] = {}  # blocks share their sets of columns
        for block in self._near(rows):
            key = id(block.columns)
            if key not in places:
                places[key] = block.columns.find(columns)
            j, block_j = places[key]
            if not len(j):
                continue
            i, block_i = block.rows.find(rows)
            if len(i):
                wanted = (j, i) if mirrored else (i, j)
                yield Overlap(block, wanted, (block_i, block_j), mirrored)

    def _near(self, rows: Array) -> list[Block]:
        """The blocks whose range of rows overlaps that of the given rows."""
        if not len(rows) or not self.blocks:
            return []
        if self._spans is None:
            self._spans = np.array([block.rows.span for block in self.blocks])
        near = (self._spans[:, 0] <= rows.max()) & (self._spans[:, 1] >= rows.min())
        return [self.blocks[k] for k in np.flatnonzero(near)]


def as_spans(numbers: Array) -> list[Any]:
    """Numbers for JSON: [first, last + 1] for consecutive numbers, a single number as it is."""
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [
        int(span[0]) if len(span) == 1 else [int(span[0]), int(span[-1]) + 1]
        for span in np.split(numbers, ends)
    ]


def from_spans(spans: list[Any]) -> Array:
    """The numbers from which ``as_spans`` made these spans."""
    parts = [np.arange(*span) if isinstance(span, list) else np.array([span]) for span in spans]
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
