"""Numbered rows of a fit: their objects, runs of them, kernel values that name them in errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kreinlearn.data.tiles import first_not_finite, take
from kreinlearn.kernels.base import Array, Objects

NOTHING_KEPT = "; nothing of this fit was kept, which store=path would do"


class Rows(NamedTuple):
    """The objects of a fit by row number; numbers below zero are objects from outside X."""

    X: Objects
    outside: Objects | None = None

    def hold(self, numbers: Array) -> None:
        """Fetch rows that are elsewhere before they are asked for a few at a time."""
        if hasattr(self.X, "hold"):
            self.X.hold(numbers[numbers >= 0])

    def take(self, numbers: Array) -> Objects:
        """Objects in the order of the numbers, of which those below zero come first."""
        if self.outside is None or numbers.min(initial=0) >= 0:
            return take(self.X, numbers)
        away = numbers < 0
        return _concatenate(take(self.outside, numbers[away]), take(self.X, numbers[~away]))


def _concatenate(A: Objects, B: Objects) -> Objects:
    if sp.issparse(A):
        return sp.vstack([A, B], format="csr")
    return np.concatenate([A, B]) if isinstance(A, np.ndarray) else [*A, *B]


def places_of(numbers: Array, columns: Array) -> Array:
    """Where each number stands in an unsorted array that holds it."""
    sorter = np.argsort(columns)
    return np.asarray(sorter[np.searchsorted(columns, numbers, sorter=sorter)])


def runs(places: Array, longest: int) -> list[tuple[int, int]]:
    """Spans of neighbouring numbers in a sorted array, cut where they get too long."""
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    return [
        (int(run[lo]), int(run[min(lo + longest, len(run)) - 1]) + 1)
        for run in np.split(places, ends)
        for lo in range(0, len(run), longest)
    ]


class KnownSquares:
    """Kernel values among sets of rows: a pair is known if some set holds both its rows."""

    def __init__(self) -> None:
        self.sets: list[tuple[Array, Array]] = []  # sorted numbers, raw values among them

    def add(self, numbers: Array, raw: Array) -> None:
        order = np.argsort(numbers)
        self.sets.append((numbers[order], raw[np.ix_(order, order)]))

    def memberships(self, numbers: Array) -> Array:
        """A bit a set: two rows with a bit in common are a known pair."""
        bits = np.zeros(len(numbers), dtype=np.int64)
        for i, (held, _) in enumerate(self.sets):
            bits |= np.isin(numbers, held).astype(np.int64) << i
        return bits

    def between(self, A: Array, B: Array, bits: int) -> Array:
        """Values of A x B, whose rows all are in a set of ``bits``."""
        held, raw = self.sets[(bits & -bits).bit_length() - 1]
        return np.asarray(raw[np.ix_(np.searchsorted(held, A), np.searchsorted(held, B))])


def over(C: Array, unit: float) -> Array:
    """C / unit, without a copy where the unit is 1."""
    return C if unit == 1.0 else C / unit


@contextmanager
def naming(numbers: Array, n_landmarks: int) -> Iterator[None]:
    """An error on the way gets a note that names the rows."""
    try:
        yield
    except Exception as error:
        kept = any("is kept in the store" in note for note in getattr(error, "__notes__", ()))
        error.add_note(
            f"while evaluating the kernel on rows {numbers.min()}..{numbers.max()} "
            f"against {n_landmarks} landmarks{'' if kept else NOTHING_KEPT}"
        )
        raise


def evaluate(
    function: Any, objects: Objects, numbers: Array, against: Array, out: Array | None = None
) -> Array:
    """Kernel values of numbered rows; errors and non-finite values name the rows."""
    with naming(numbers, len(against)):
        K = function(objects) if out is None else function(objects, out)
    require_finite(K, numbers, against)
    return np.asarray(K)


def require_finite(K: Array, numbers: Array, against: Array) -> None:
    """ValueError that names the first row and landmark whose value is NaN or infinite."""
    bad = first_not_finite(K)
    if bad is None:
        return
    i, j, what = bad
    raise ValueError(
        f"kernel produced {what} for row {numbers[i]} (block {numbers.min()}..{numbers.max()}) and "
        f"landmark row {against[j]}; scale the data or mend the kernel"
    )
