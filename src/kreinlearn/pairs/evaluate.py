"""Evaluating a block of kernel values, with errors that name the rows they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kreinlearn.data.tiles import first_not_finite
from kreinlearn.kernels.base import Array, Objects

NOTHING_KEPT = "; nothing of this fit was kept, which Resources(store=path) would do"


@contextmanager
def naming(numbers: Array, n_landmarks: int) -> Iterator[None]:
    """Add a note with the row numbers to any error that is raised inside."""
    try:
        yield
    except Exception as error:
        stored = any("is kept in the store" in note for note in getattr(error, "__notes__", ()))
        error.add_note(
            f"while evaluating the kernel on rows {numbers.min()}..{numbers.max()} "
            f"against {n_landmarks} landmarks{'' if stored else NOTHING_KEPT}"
        )
        raise


def evaluate(
    function: Callable[..., Array], objects: Objects, numbers: Array, against: Array,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """The values that ``function`` gives for numbered rows, checked to be finite."""
    with naming(numbers, len(against)):
        K = function(objects) if out is None else function(objects, out)
    require_finite(K, numbers, against)
    return np.asarray(K)


def require_finite(K: Array, numbers: Array, against: Array) -> None:
    """Raise ValueError naming the first row and landmark whose value is NaN or infinite."""
    bad = first_not_finite(K)
    if bad is not None:
        i, j, what = bad
        raise ValueError(
            f"kernel produced {what} for row {numbers[i]} "
            f"(block {numbers.min()}..{numbers.max()}) and landmark row {against[j]}; "
            "scale the data or mend the kernel"
        )


def scaled(C: Array, unit: float) -> Array:
    """C / unit, without a copy where the unit is 1."""
    return C if unit == 1.0 else C / unit


def places_of(numbers: Array, columns: Array) -> Array:
    """The position of each number in an unsorted array that contains it."""
    sorter = np.argsort(columns)
    return np.asarray(sorter[np.searchsorted(columns, numbers, sorter=sorter)])


def neighbouring_spans(places: Array, longest: int) -> list[tuple[int, int]]:
    """The spans of consecutive numbers in a sorted array, none longer than ``longest``."""
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    return [
        (int(span[low]), int(span[min(low + longest, len(span)) - 1]) + 1)
        for span in np.split(places, ends)
        for low in range(0, len(span), longest)
    ]
