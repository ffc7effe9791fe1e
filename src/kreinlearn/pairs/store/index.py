"""Which block of a store holds which pair of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array


class Numbers:
    """Row numbers in a given order, which can be looked up."""

    def __init__(self, numbers: Array) -> None:
        self.numbers = np.asarray(numbers, dtype=np.int64)
        rising = bool((np.diff(self.numbers) > 0).all())
        self._order = None if rising else np.argsort(self.numbers, kind="stable")
        self._sorted = self.numbers if self._order is None else self.numbers[self._order]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def span(self) -> tuple[int, int]:
        return int(self._sorted[0]), int(self._sorted[-1])

    def find(self, wanted: Array) -> tuple[Array, Array]:
        """The places in ``wanted`` of numbers that are here, and their places here."""
        if not len(self) or not len(wanted):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        places = np.flatnonzero(self._sorted[at] == wanted)
        here = at[places]
        return places, here if self._order is None else self._order[here]


class Block:
    """Values of rows x columns: in memory at first, later on the disk, from ``chunk`` on."""

    def __init__(
        self, rows: Numbers, columns: Numbers, kind: str, values: Array | None, chunk: int = -1
    ) -> None:
        self.rows, self.columns, self.kind = rows, columns, kind
        self.values, self.chunk = values, chunk

    @property
    def size(self) -> int:
        return len(self.rows) * len(self.columns)


class Overlap(NamedTuple):
    """The part of a block that is among the rows and columns that are asked for.

    If it is mirrored, the rows that are asked for are columns of the block.
    """

    block: Block
    wanted: tuple[Array, Array]  # places in the rows and columns asked for
    here: tuple[Array, Array]  # places in the block
    mirrored: bool


class Index:
    """All blocks of a store."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._spans: Array | None = None  # (blocks, 2): least and greatest row
        self._as_column: Numbers | None = None  # all numbers that are a column of some block

    def add(self, block: Block) -> None:
        self.blocks.append(block)
        self._spans = self._as_column = None

    def replace(self, old: list[Block], new: list[Block]) -> None:
        gone = set(map(id, old))
        self.blocks = [block for block in self.blocks if id(block) not in gone] + new
        self._spans = self._as_column = None

    def overlaps(self, rows: Array, columns: Array, mirror: bool) -> list[Overlap]:
        """Blocks that hold some of the pairs rows x columns; the mirrored ones last."""
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
        seen: dict[int, tuple[Array, Array]] = {}  # blocks share their columns
        for block in self._near(rows):
            key = id(block.columns)
            if key not in seen:
                seen[key] = block.columns.find(columns)
            j, block_j = seen[key]
            if not len(j):
                continue
            i, block_i = block.rows.find(rows)
            if len(i):
                wanted = (j, i) if mirrored else (i, j)
                yield Overlap(block, wanted, (block_i, block_j), mirrored)

    def _near(self, rows: Array) -> list[Block]:
        """Blocks whose rows lie between the least and the greatest of these numbers."""
        if not len(rows) or not self.blocks:
            return []
        if self._spans is None:
            self._spans = np.array([block.rows.span for block in self.blocks])
        near = (self._spans[:, 0] <= rows.max()) & (self._spans[:, 1] >= rows.min())
        return [self.blocks[k] for k in np.flatnonzero(near)]


def as_runs(numbers: Array) -> list[Any]:
    """Numbers for JSON: [first, last + 1] for a run of neighbours, a single number as it is."""
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [
        int(run[0]) if len(run) == 1 else [int(run[0]), int(run[-1]) + 1]
        for run in np.split(numbers, ends)
    ]


def from_runs(runs: list[Any]) -> Array:
    """The numbers that ``as_runs`` was given."""
    parts = [np.arange(*run) if isinstance(run, list) else np.array([run]) for run in runs]
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
