"""Objects that are left out together: groups that are given, or objects that are equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.data.tiles import Source
from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.kernels.keys import keys_of
from kreinlearn.pairs.rows import Rows

MOST_LOOKED_AT = 20_000  # objects that are compared to find equal ones
COPIES = 4  # of an object on average, up to which equal objects are copies; of more they are usual
LEAST_GROUPS = 3  # so that two are left where one is left out
READ = 1024  # objects that are looked at at once
LONG_RECORD = 4  # fields, from which on records are not equal by chance


def groups_for(
    groups: ArrayLike | None, rows: Rows, kernel: Kernel
) -> tuple[Array | None, Array | None]:
    """The groups that are given; otherwise equal objects, as groups only if these are copies."""
    if groups is not None:
        return group_numbers(groups, rows), None
    equal = equal_objects(rows, kernel)
    return (equal if equal is not None and are_copies(rows, equal) else None), equal


def group_numbers(groups: ArrayLike, rows: Rows) -> Array:
    """The group of each row by number, from whatever names the groups."""
    if not rows.here:
        raise ValueError("groups belong to objects in memory; pass X as an array or a list")
    given = np.asarray(groups)
    if given.shape != (len(rows),):
        raise ValueError(
            f"groups has shape {given.shape}, and there are {len(rows)} objects; pass one name or "
            "number of a group for each object"
        )
    names, numbers = np.unique(given, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"all objects are of one group, {names[0]}, so that none can be left out; pass at "
            "least two groups"
        )
    return np.asarray(numbers)


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


def are_copies(rows: Rows, numbers: Array) -> bool:
    """Whether equal objects are copies, and not equal by chance, as short records often are."""
    (first,) = rows.X[:1]
    is_short = isinstance(first, Mapping | tuple) and 2 != len(first) < LONG_RECORD
    distinct = int(numbers.max()) + 1
    return not is_short and distinct >= LEAST_GROUPS and len(numbers) <= COPIES * distinct


def n_equal(numbers: Array) -> int:
    """How many objects are equal to another one, from the numbers of distinct objects."""
    counts = np.unique(numbers, return_counts=True)[1]
    return int(counts[counts > 1].sum())
