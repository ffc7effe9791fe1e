"""Objects that are left out together: groups that are given, or objects that are equal."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.data.frames import is_missing
from kreinlearn.data.tiles import Source
from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.kernels.candidates import are_records, columns_of
from kreinlearn.kernels.keys import keys_of
from kreinlearn.pairs.rows import Rows

MOST_LOOKED_AT = 20_000  # objects that are compared to find equal ones
COPIES = 3.5  # of an object on average, up to which equal objects are copies; of more, usual
SOME_EQUAL = 0.05  # share of the objects that are equal to others, from which on it matters
BY_CHANCE = 2.0  # times as many records as by chance have to be equal to be copies
LEAST_GROUPS = 3  # so that two are left where one is left out
READ = 1024  # objects that are looked at at once


def groups_for(
    groups: ArrayLike | None, rows: Rows, kernel: Kernel, weighted: Array | None = None
) -> tuple[Array | None, Array | None]:
    """The groups that are given; otherwise equal objects, as groups only if these are copies.

    ``weighted`` are the rows of positive weight; None stands for all.
    """
    if groups is not None:
        return group_numbers(groups, rows, weighted), None
    equal = equal_objects(rows, kernel)
    return (equal if equal is not None and are_copies(rows, equal, kernel) else None), equal


def group_numbers(groups: ArrayLike, rows: Rows, weighted: Array | None = None) -> Array:
    """The group of each row by number, from whatever names the groups."""
    if not rows.here:
        raise ValueError("groups belong to objects in memory; pass X as an array or a list")
    given = np.asarray(groups)
    if given.shape != (len(rows),):
        raise ValueError(
            f"groups has shape {given.shape}, and there are {len(rows)} objects; pass one name or "
            "number of a group for each object"
        )
    names: list[Any] = given.tolist()
    missing = [i for i, name in enumerate(names) if is_missing(name)]
    if missing:
        raise ValueError(
            f"groups has no name for object {missing[0]}, and for {len(missing)} objects in all; "
            "give objects that belong to nobody else a name of their own"
        )
    known = dict[Any, int]()
    numbers = np.array([known.setdefault(name, len(known)) for name in names])
    if len(np.unique(numbers if weighted is None else numbers[weighted])) < 2:
        raise ValueError(
            f"all objects that count are of one group, {names[0]}, so that none can be left out; "
            "pass at least two groups"
        )
    return numbers


def of_part(groups: Array | None, rows: Array) -> Array | None:
    """The groups of some rows; None if they are all of one group, which nothing can be left of."""
    if groups is None or np.ptp(groups[rows]) == 0:
        return None
    return np.asarray(groups[rows])


def equal_objects(rows: Rows, kernel: Kernel) -> Array | None:
    """The number of a distinct object for each row, if any objects are equal.

    Objects are texts, series, graphs, sets and records; equal vectors are not looked for, and
    nothing is in a Dask collection.
    """
    X = rows.X if rows.here else None
    if kernel.domain.is_matrix or X is None or not 2 <= len(rows) <= MOST_LOOKED_AT:
        return None
    if isinstance(X, np.ndarray | Source) and (X.ndim != 1 or X.dtype.kind != "O"):
        return None
    if not isinstance(X, np.ndarray | Source | list | tuple):
        return None
    numbers, found = dict[Any, int](), list[int]()
    for start in range(0, len(rows), READ):
        found += [numbers.setdefault(key, len(numbers)) for key in keys_of(X[start : start + READ])]
    return np.array(found) if len(numbers) < len(found) else None


def are_copies(rows: Rows, numbers: Array, kernel: Kernel) -> bool:
    """Whether some objects are copies of others, and not equal by chance or as a rule."""
    n, distinct = len(numbers), int(numbers.max()) + 1
    if distinct < LEAST_GROUPS or n > COPIES * distinct or n_equal(numbers) < SOME_EQUAL * n:
        return False
    X = list(rows.X[:])
    by_fields = kernel.domain.is_records or are_records(X)
    return not by_fields or n_equal(numbers) > BY_CHANCE * n_equal_by_chance(X)


def n_equal_by_chance(records: list[Any]) -> float:
    """How many records would be equal to another one if their fields were independent."""
    n, alike = len(records), 1.0  # the probability that two records are equal
    for values in columns_of(records).values():
        counts = np.array(list(Counter(keys_of(values)).values()))
        alike *= float(np.square(counts / n).sum())
    return float(n * (1 - (1 - alike) ** (n - 1)))


def equal_in_words(numbers: Array) -> str:
    """How many objects are equal to others."""
    return f"{n_equal(numbers)} of {len(numbers)} objects are equal to others"


def n_equal(numbers: Array) -> int:
    """How many objects are equal to another one, from the numbers of distinct objects."""
    counts = np.unique(numbers, return_counts=True)[1]
    return int(counts[counts > 1].sum())
