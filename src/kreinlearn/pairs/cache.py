"""The pairs that one fit has evaluated already, beside the columns of its sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array


class Square(NamedTuple):
    """The kernel values among some rows."""

    numbers: Array  # (k,) sorted
    values: Array  # (k, k)


class KnownPairs:
    """Kernel values among sets of rows: a pair is known if one of the sets contains both rows.

    The membership of a row is a number whose bits say which sets contain it, so that two rows
    form a known pair exactly if their memberships have a bit in common.
    """

    def __init__(self) -> None:
        self.squares: list[Square] = []
        self.own = dict[int, float]()  # k(x, x) by row number

    def add(self, numbers: Array, values: Array) -> None:
        order = np.argsort(numbers)
        self.squares.append(Square(numbers[order], values[np.ix_(order, order)]))

    def memberships(self, numbers: Array) -> Array:
        bits = np.zeros(len(numbers), dtype=np.int64)
        for i, square in enumerate(self.squares):
            bits |= np.isin(numbers, square.numbers).astype(np.int64) << i
        return bits

    def between(self, A: Array, B: Array, shared: int) -> Array:
        """The values of A x B, whose memberships all contain one of the ``shared`` bits."""
        square = self.squares[(shared & -shared).bit_length() - 1]
        at = np.ix_(np.searchsorted(square.numbers, A), np.searchsorted(square.numbers, B))
        return np.asarray(square.values[at])

    def self_similarities(self, numbers: Array) -> Array:
        """k(x, x) of each row, NaN where it is not known."""
        return np.array([self.own.get(i, np.nan) for i in numbers.tolist()])
