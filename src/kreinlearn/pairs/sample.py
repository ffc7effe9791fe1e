"""The frozen value that the phases of a fit hand on: kernel values of a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import is_everything
from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.kernels.dissimilarity import TRANSFORMS, Transform
from kreinlearn.pairs.evaluate import places_of

SAFE_EXPONENT = 100  # kernels within 4^+-50 need no scaling before they are squared
EPS = float(np.finfo(np.float64).eps)
NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Sample:
    """Kernel values of some rows to some columns, and which of the columns are landmarks.

    ``raw`` holds what the kernel gives, ``C`` the similarities of the rows to the landmarks. A
    dissimilarity is transformed by its reference set, which are the first ``n_reference`` columns.
    Every column is also one of the rows, so that K_ZZ can be read off.
    """

    rows: Array  # (r,) sorted row numbers; those below zero are landmarks from outside X
    pool: Array  # row numbers: a uniform sample of all rows
    columns: Array  # (c,) row numbers of all evaluated columns
    raw: Array  # (r, c)
    landmarks: Array  # (m,) row numbers, in the order of the columns
    transform: Transform | None = None
    eps: float = EPS  # the unit roundoff of the kernel values
    streams: bool = False  # landmarks are chosen among all rows, which are evaluated as a stream

    @classmethod
    def empty(cls, rows: Array, pool: Array | None = None) -> Sample:
        """These rows, and no column yet."""
        return cls(rows, rows if pool is None else pool, NONE, np.empty((len(rows), 0)), NONE)

    # Values

    @cached_property
    def offsets(self) -> Array | None:
        """a(x) of every row, which a transform needs beside the distance."""
        return None if self.transform is None else self.transform.offsets(self.raw)

    @cached_property
    def C(self) -> Array:  # (r, m)
        """Similarities of the rows to the landmarks."""
        picked = self.raw
        if not np.array_equal(self.landmarks, self.columns):
            picked = self.raw[:, places_of(self.landmarks, self.columns)]
        if self.transform is None:
            return picked
        a = self.offsets
        assert a is not None
        return self.transform.similarity(picked, a, a[self.positions(self.landmarks)])

    @property
    def K_ZZ(self) -> Array:  # (m, m)
        return symmetrised(self.C[self.positions(self.landmarks)])

    @cached_property
    def unit(self) -> float:
        """A power of four near the size of C, and 1 unless squares might over- or underflow."""
        return unit_of(self.C)

    @property
    def is_square(self) -> bool:
        """Whether the rows, the columns and the landmarks are the same objects in one order."""
        same = np.array_equal(self.rows, self.columns)
        return same and np.array_equal(self.columns, self.landmarks)

    def positions(self, numbers: Array) -> Array:
        """The positions in ``rows`` of rows with the given numbers."""
        return np.searchsorted(self.rows, numbers)

    @property
    def inside(self) -> Array:
        """Positions of the rows that belong to X."""
        return np.flatnonzero(self.rows >= 0)

    @cached_property
    def used(self) -> Array:  # (c,) bool
        """The columns that a prediction needs: the landmarks and a reference set."""
        used = np.isin(self.columns, self.landmarks)
        if self.transform is not None:
            used[: self.transform.n_reference] = True
        return used

    # Other samples made of this one

    def with_landmarks(self, landmarks: Array) -> Sample:
        """The same values with other landmarks, all of which are evaluated columns."""
        return replace(self, landmarks=self.columns[np.isin(self.columns, landmarks)])

    def with_columns(self, columns: Array, raw: Array, dtype: np.dtype[Any]) -> Sample:
        """Other columns, whose values were evaluated in numbers of this type."""
        eps = float(np.finfo(np.float32).eps) if dtype == np.float32 else self.eps
        return replace(self, columns=columns, raw=raw, eps=eps)

    def referring_to_all(self, name: str = "squared") -> Sample:
        """A dissimilarity transformed by all columns evaluated so far."""
        return replace(self, transform=TRANSFORMS[name](self._among_columns(len(self.columns))))

    def using(self, name: str) -> Sample:
        """Another similarity of the same distances, by the same reference set."""
        assert self.transform is not None, "only a dissimilarity has transformations"
        D_RR = self._among_columns(self.transform.n_reference)
        return replace(self, transform=TRANSFORMS[name](D_RR))

    def _among_columns(self, n: int) -> Array:
        """Values among the first n columns: a view if they are also the first rows."""
        at = self.positions(self.columns[:n])
        return self.raw[:n, :n] if is_everything(at, n) else self.raw[at, :n]

    def restricted(self, rows: Array) -> Sample:
        """Fewer rows."""
        return replace(self, rows=rows, raw=self.raw[self.positions(rows)])

    def with_rows(self, numbers: Array, raw: Array) -> Sample:
        """More rows, whose values to the used columns were evaluated elsewhere."""
        order = np.argsort(numbers)
        at = self.positions(numbers[order])
        return replace(
            self,
            rows=np.insert(self.rows, at, numbers[order]),
            raw=np.insert(self.raw[:, self.used], at, raw[order], axis=0),
            columns=self.columns[self.used],
        )


def unit_of(C: Array) -> float:
    """A power of four near the largest magnitude, and 1 unless squares might over- or underflow."""
    exponent = int(np.frexp(max(np.max(C, initial=0.0), -np.min(C, initial=0.0)))[1])
    return 1.0 if abs(exponent) <= SAFE_EXPONENT else 2.0 ** (2 * (exponent // 2))


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
