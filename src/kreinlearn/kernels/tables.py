"""Gower's distance between rows of a table, whose columns may be numbers or categories."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from itertools import repeat
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.dates import date_order, in_days
from kreinlearn.data.frames import is_missing, is_number, is_sequence
from kreinlearn.data.tiles import TILE, objects_of
from kreinlearn.kernels._compiled import compiled
from kreinlearn.kernels.base import Array, ObjectKernel, Objects, given
from kreinlearn.kernels.domains import Records
from kreinlearn.kernels.strings import flaw

A_ROW = (
    "a row is a tuple, list or 1-D array of one value a column, or a dict {column: value}; of a "
    'data frame pass df.to_dict("records") (pandas) or df.to_dicts() (polars); estimators take '
    "the frame itself"
)
DATES = (date, np.datetime64)
TIMES = (*DATES, time, timedelta, np.timedelta64)
MISSING, UNSEEN = -1, -2  # codes of categories
Names = range | list[Hashable]  # places in tuples, or keys of dicts


class Cells(NamedTuple):
    """The numeric columns of a table, with NaN for missing, and the others, with None for
    missing.
    """

    numbers: Array  # (n, p)
    categories: list[list[Hashable]]  # q lists of n


class CellsAcross(NamedTuple):
    """The same with one row per column of the table, and with codes of categories."""

    numbers: Array  # (p, m)
    codes: Array  # (q, m)
    code_of: list[dict[Hashable, int]]


class Gower(ObjectKernel, names=["gower"]):
    """Gower's distance: the mean of d_f over the columns f that both rows know, 1 if there is none.

    For numbers d_f = min(1, |x_f - z_f| / range_f), where range_f is that of the training rows; a
    constant column gives 0. Dates are numbers of days: those of Python, numpy and pandas, and texts
    such as 2024-03-31 or 31.3.2024 12:30. For categories d_f is 1 if they differ, and 0 otherwise.
    None, NaN and the absent key of a dict are missing values. Columns of numbers are numeric unless
    they are named in ``categorical``. Estimators accept data frames too: their columns have names,
    and a column of pandas' type "category" holds categories even if these are numbers.

    Parameters
    ----------
    categorical : sequence, default=()
        Names of columns of numbers that are categories; in tuples, their places.

    Attributes
    ----------
    columns_ : list or range
        The names, or places, of the columns.
    numeric_ : list of bool
        Whether each column holds numbers.
    ranges_ : array
        The ranges of the columns of numbers.
    dates_ : dict
        For each column of dates "day" or "month": what comes first in texts such as 1/3/2024.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels.tables import Gower
    >>> X = [(20, "red", 1.5), (40, "blue", None), (30, "red", 2.5)]
    >>> Gower().fit(X, np.random.default_rng(0))(X)
    array([[0.  , 1.  , 0.5 ],
           [1.  , 0.  , 0.75],
           [0.5 , 0.75, 0.  ]])
    """

    domain = Records()
    is_dissimilarity = True

    def __init__(self, categorical: Sequence[Hashable] = ()) -> None:
        self.categorical = categorical

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        X = objects_of(X)
        self.columns_ = columns_of(X)
        absent = [name for name in self.categorical if name not in self.columns_]
        if absent:
            raise ValueError(
                f"categorical={self.categorical!r}: there is no column {absent[0]!r}; "
                f"columns are {list(self.columns_)}"
            )
        types: list[set[type]] = [set() for _ in self.columns_]
        for tile in gen_batches(len(X), TILE):
            cells = turned(X[tile], self.columns_, tile.start, len(X))
            for known, column in zip(types, cells, strict=True):
                known.update(type(x) for x in column if not is_missing(x))
        self.dates_ = {
            name: order
            for name, kinds in zip(self.columns_, types, strict=True)
            if name not in self.categorical and all(issubclass(t, (str, *DATES)) for t in kinds)
            if (order := date_order(one_column(X, name), name)) is not None
        }
        self.numeric_ = [self._is_numeric(*one) for one in zip(self.columns_, types, strict=True)]
        self.ranges_ = self._ranges(X)
        return self

    def _is_numeric(self, name: Hashable, types: set[type]) -> bool:
        """Whether a column holds numbers or dates; an error if it holds times, or numbers and
        other values.
        """
        if name in self.categorical or name in self.dates_:
            return name in self.dates_
        numbers = {t for t in types if is_number(t)}
        times = any(issubclass(t, TIMES) for t in types)
        if times or (numbers and types - numbers):
            found = sorted(t.__name__ for t in types)
            raise ValueError(
                f"column {name!r} holds {', '.join(found)}; a column is of numbers or of "
                f"categories: convert it, or pass categorical=[{name!r}] to compare for equality"
            )
        return bool(numbers)

    def _ranges(self, X: Sequence[Any]) -> Array:
        """The ranges of the columns of numbers."""
        lowest = np.full(sum(self.numeric_), np.inf)
        highest = -lowest
        for tile in gen_batches(len(X), TILE):
            numbers = self.packed(X[tile], tile.start, len(X)).numbers
            lowest = np.fmin(lowest, np.fmin.reduce(numbers, axis=0))
            highest = np.fmax(highest, np.fmax.reduce(numbers, axis=0))
        ranges = np.zeros_like(lowest)
        with np.errstate(over="ignore"):
            np.subtract(highest, lowest, out=ranges, where=highest > lowest)
        bad = np.isinf(ranges) | ((ranges > 0) & (ranges < np.finfo(np.float64).tiny))
        if bad.any():
            f = int(np.argmax(bad))
            raise ValueError(
                f"a column of numbers runs from {lowest[f]:.3g} to {highest[f]:.3g}: the "
                "difference is out of floating range; multiply the column by a constant"
            )
        return ranges

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: object = None) -> Cells:
        check_is_fitted(self, "numeric_")
        n = n or len(X)
        numbers, categories = np.empty((len(X), sum(self.numeric_))), []
        place = 0
        cells = turned(X, self.columns_, first, n)
        for name, numeric, column in zip(self.columns_, self.numeric_, cells, strict=True):
            if numeric:
                if name in self.dates_:
                    column = in_days(column, self.dates_[name])
                numbers[:, place] = as_numbers(column, name, first, n)
                place += 1
            else:
                categories.append(as_categories(column, name, first, n))
        for i in np.flatnonzero(np.isnan(numbers).all(axis=1)):
            if all(column[i] is None for column in categories):
                raise ValueError(
                    f"object {first + i} (of {n}) is {given(X[i])}, a row of missing values only; "
                    "leave it out"
                )
        return Cells(numbers, categories)

    def packed_columns(self, Z: Objects) -> CellsAcross:
        cells = self.packed(Z)
        code_of = [{x: i for i, x in enumerate(dict.fromkeys(c))} for c in cells.categories]
        for one in code_of:
            one[None] = MISSING
        codes = coded(cells.categories, code_of, len(Z))
        return CellsAcross(np.ascontiguousarray(cells.numbers.T), codes.T.copy(), code_of)

    def values(self, A: Cells, Z: CellsAcross) -> Array:
        n, m = len(A.numbers), Z.numbers.shape[1]
        scale = np.zeros_like(self.ranges_)
        np.divide(1.0, self.ranges_, out=scale, where=self.ranges_ > 0)
        D = np.empty((n, m))
        _gower(A.numbers, coded(A.categories, Z.code_of, n), Z.numbers, Z.codes, scale, D)
        return D


@compiled
def _gower(A: Array, a: Array, Z: Array, z: Array, scale: Array, out: Array) -> None:
    """Write distances into ``out`` (n, m).

    Numbers are A (n, p) and Z (p, m), with NaN for missing; codes are a (n, q) and z (q, m).
    """
    m = out.shape[1]
    total, count = np.empty(m), np.empty(m)
    for i in range(len(out)):
        total[:], count[:] = 0.0, 0.0
        for f in range(len(Z)):
            x, s, z_f = A[i, f], scale[f], Z[f]
            for j in range(m):
                d = abs(x - z_f[j]) * s
                total[j] += (d if d < 1.0 else 1.0) if d == d else 0.0
                count[j] += 1.0 if d == d else 0.0
        for f in range(len(z)):
            code, codes = a[i, f], z[f]
            for j in range(m):
                known = code != MISSING and codes[j] != MISSING
                total[j] += 1.0 if known and code != codes[j] else 0.0
                count[j] += 1.0 if known else 0.0
        for j in range(m):
            out[i, j] = total[j] / count[j] if count[j] > 0 else 1.0


# Rows and cells


def columns_of(X: Sequence[Any]) -> Names:
    """The places in the first row if that is a tuple or the like, otherwise all keys of all
    dicts.
    """
    if not isinstance(X[0], Mapping):
        return range(len(X[0]) if is_sequence(X[0]) else 0)
    return list(dict.fromkeys(key for row in X if isinstance(row, Mapping) for key in row))


def one_column(X: Sequence[Any], name: Any) -> Iterator[Any]:
    """The values of one column, None where a dict lacks it."""
    return (row.get(name) if isinstance(row, Mapping) else row[name] for row in X)


def turned(X: Sequence[Any], names: Names, first: int, n: int) -> list[Sequence[Any]]:
    """The values of each column; an error names row ``first + i`` of n."""
    named = isinstance(names, list)
    for i, row in enumerate(X):
        if not (isinstance(row, Mapping) if named else is_sequence(row)):
            raise ValueError(f"object {first + i} (of {n}) is {given(row)}; {A_ROW}")
        if set(row) - set(names) if named else len(row) != len(names):
            raise ValueError(
                f"object {first + i} (of {n}) is {given(row)}, but columns are {list(names)}"
            )
    if named:
        return [[row.get(name) for row in X] for name in names]
    return list(zip(*X, strict=True)) if len(X) else [()] * len(names)


def as_numbers(column: Sequence[Any], name: Hashable, first: int, n: int) -> Array:
    """Numbers, with NaN for missing; an error names the row whose value is not a finite number."""
    cells: Sequence[Any] = column
    if not all(t is type(None) or is_number(t) for t in set(map(type, column))):
        cells = [None if is_missing(x) else x for x in column]
    for i, x in enumerate(cells if cells is not column else ()):
        if x is not None and not is_number(type(x)):
            raise ValueError(
                f"object {first + i} (of {n}) has {given(x)} in column {name!r}, which held "
                "numbers or dates when fitted; pass one of these, or None if it is missing"
            )
    numbers = np.array(cells, dtype=np.float64)
    if np.isinf(numbers).any():
        i = int(np.argmax(np.isinf(numbers)))
        raise ValueError(
            f"object {first + i} (of {n}) has infinity in column {name!r}; numbers must be "
            "finite, pass None for a missing one"
        )
    return numbers


def as_categories(column: Sequence[Any], name: Hashable, first: int, n: int) -> list[Hashable]:
    """Categories, with None for missing; an error names the row whose value is not hashable."""
    cells = [None if is_missing(x) else x for x in column]
    try:
        set(cells)
    except TypeError:
        i, why = next((i, flaw(x)) for i, x in enumerate(cells) if flaw(x))
        raise ValueError(
            f"object {first + i} (of {n}) has in column {name!r} {why}; categories are strings, "
            "numbers or the like"
        ) from None
    return cells


def coded(
    categories: Sequence[Sequence[Hashable]], code_of: Sequence[Mapping[Hashable, int]], n: int
) -> Array:  # (n, q)
    """Codes of categories; a category that no column has gets the code UNSEEN."""
    codes = np.empty((n, len(categories)), dtype=np.int64)
    for f, (column, one) in enumerate(zip(categories, code_of, strict=True)):
        codes[:, f] = np.fromiter(map(one.get, column, repeat(UNSEEN)), dtype=np.int64, count=n)
    return codes
