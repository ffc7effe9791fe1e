"""Kernel values of some rows, which Newton's method for the squared hinge loss keeps in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kreinlearn.data.tiles import TILE, among
from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.core import row_keys

COPIED = 16  # rows that are copied at a time, for which the budget has no room of its own


class Sampled(NamedTuple):
    """Rows that the first pass did not evaluate because they were in the sample."""

    numbers: Array  # sorted
    values: Array  # (len(numbers), m): k(x, Z) / unit


def ranks(n: int, sampled: Array, order: Callable[[Array], Array]) -> Array:  # (n,)
    """The place of each row in its tile: as the first pass evaluates them, then sampled ones."""
    rank = np.empty(n, dtype=np.int16)
    for start in range(0, n, TILE):
        numbers = np.arange(start, min(start + TILE, n))
        inside = among(numbers, sampled)
        rank[order(numbers[~inside])] = np.arange(np.count_nonzero(~inside))
        rank[numbers[inside]] = np.arange(np.count_nonzero(~inside), len(numbers))
    return rank


def by_rank(numbers: Array, rank: Array) -> Array:
    """The places of rows among all rows, if those of each tile have the order of their ranks."""
    return np.asarray(numbers - numbers % TILE + rank[numbers])


class InTiles(NamedTuple):
    """Kernel values of all rows, in which the rows of a tile have the order of their ranks."""

    values: Array  # (n, m)
    rank: Array  # (n,)

    def __setitem__(self, numbers: Array, values: Array) -> None:
        self.values[by_rank(numbers, self.rank)] = values


class KeptRows:
    """k(x, Z) / unit of a share of the rows: of a sample, and then of those asked for next.

    Newton's method begins with a sample. From its first pass on, the rows that each tile keeps are
    those near the margin.
    """

    def __init__(self, n: int = 0, share: float = 0.0) -> None:
        self.room = int(share * TILE)  # rows of a whole tile
        self.count = n // TILE * self.room + int(share * (n % TILE))
        self.share, self.drawn, self.known = share, False, False
        self.numbers, self.values = np.empty(0, dtype=np.intp), np.empty((0, 0))

    @classmethod
    def sample(cls, n: int, m: int, share: float, most: int) -> KeptRows:
        """So many rows at most, one by chance of as many neighbours each; values come by number.

        With m = 0 these are only numbers of rows whose values are kept elsewhere.
        """
        kept = cls(n, share)
        kept.clear(m)
        count = min(kept.count, most)
        place, step = np.arange(count), n // max(count, 1)
        kept.numbers = step * place + (row_keys(place, 0) % np.uint64(step)).astype(np.intp)
        kept.drawn = kept.known = True
        return kept

    @property
    def held(self) -> int:
        """Bytes of the values, and of what is copied on the way to them."""
        return self.values.nbytes * 9 // 8

    def __setitem__(self, numbers: Array, values: Array) -> None:
        """Take the values of those rows that are in the sample; any thread may call this."""
        mine = np.flatnonzero(among(numbers, self.numbers))
        places = np.searchsorted(self.numbers, numbers[mine])
        for start in range(0, len(mine), COPIED):
            part = slice(start, start + COPIED)
            self.values[places[part]] = values[mine[part]]

    def clear(self, m: int) -> None:
        """Forget all rows, and take others, with m values each."""
        self.drawn = self.known = False
        if len(self.numbers) != self.count:
            self.numbers = np.empty(self.count, np.intp)
        if self.values.shape != (self.count, m):
            self.values = np.empty((self.count, m))

    def add(
        self, first: int, C: Array, nearest: Callable[[int], Array], place: Callable[[Array], Array]
    ) -> None:
        """Take rows of the tile that begins with row ``first``; any thread may call this."""
        room, at = int(self.share * len(C)), first // TILE * self.room
        if not room:
            return
        numbers = self.numbers[at : at + room] = nearest(room) + first
        if self.values.shape[1]:
            np.take(C, place(numbers), axis=0, out=self.values[at : at + room], mode="clip")

    def split(self, numbers: Array) -> tuple[Array, Array]:
        """Which of these sorted numbers are known (k,) bool, and where those are that are."""
        if not (self.known and self.count):
            return np.zeros(len(numbers), dtype=bool), np.empty(0, dtype=np.intp)
        known = among(numbers, self.numbers)
        return known, np.searchsorted(self.numbers, numbers[known])
