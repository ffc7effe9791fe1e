"""Rows of data frames and structured arrays, for kernels that compare rows of a table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from kreinlearn.data.source import require_some
from kreinlearn.data.tiles import objects_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Category:
    """A number that names a category: equal to that number, but not compared by difference."""

    value: Hashable

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Category) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def is_number(t: type) -> bool:
    """Whether values of a type are numbers; booleans are categories."""
    return issubclass(t, Real | Decimal) and not issubclass(t, bool)


def is_missing(x: object) -> bool:
    """Whether a value is None, NaN, or what pandas uses for them."""
    if isinstance(x, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(x != x)
    return x is None or type(x).__name__ in ("NAType", "NaTType")


def is_sequence(row: object) -> bool:
    """Whether a row is a sequence with one value per column; texts are not."""
    if isinstance(row, np.ndarray):
        return row.ndim == 1
    return isinstance(row, Sequence) and not isinstance(row, str | bytes)


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a data frame or structured array, if all of them are texts."""
    if hasattr(X, "columns"):
        names = getattr(X, "column_names", X.columns)  # the former is pyarrow's
    else:
        names = getattr(getattr(X, "dtype", None), "names", None) or [None]
    return list(names) if all(isinstance(name, str) for name in names) else None


def rows_of_frame(X: Any) -> list[tuple[Any, ...]]:
    """The rows of a frame of pandas, polars or pyarrow as tuples."""
    require_some(X.shape, "the table")
    return list(zip(*(values_of_column(X, f) for f in range(X.shape[1])), strict=True))


def values_of_column(X: Any, place: int) -> Sequence[Any]:
    """The values of a column of a frame, numbers as categories if that is what its type says."""
    if hasattr(X, "iloc"):
        column = X.iloc[:, place]
    else:
        column = X.to_series(place) if hasattr(X, "to_series") else X.column(place)
    values = objects_of(column)
    kind = str(column.dtype if hasattr(column, "dtype") else column.type)
    if kind.startswith(("category", "dictionary")):  # pandas, pyarrow
        return [Category(x) if is_number(type(x)) and x == x else x for x in values]
    return values


def named_rows(rows: Sequence[Any], names: Sequence[Hashable]) -> list[Any]:
    """Rows as dicts by column name; a row of another length is left as it is, for an error."""
    if len(set(names)) < len(names):
        raise ValueError(f"columns are {list(names)}; give each a name of its own")

    def named(row: Any) -> Any:
        is_row = is_sequence(row) or isinstance(row, np.void)
        good = is_row and len(row) == len(names)
        return dict(zip(names, row, strict=True)) if good else row

    return list(map(named, rows))
