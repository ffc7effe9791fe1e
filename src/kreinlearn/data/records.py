"""Fields of records: dicts, tuples, rows of data frames and of structured arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from kreinlearn.data.frames import column_names, is_sequence, values_of_column
from kreinlearn.data.source import require_some
from kreinlearn.data.table import require_column
from kreinlearn.data.validation import list_of_objects

A_RECORD = (
    "a record is a dict {field: value}, a tuple, list or 1-D array with one value per field, or a "
    'row of a data frame or structured array; df.to_dict("records") (pandas) or df.to_dicts() '
    "(polars) make dicts of a frame"
)
NO_NAMES = (
    "fields of tuples and the like have no names; name the field by its place, Field(0, ...), or "
    "pass dicts or a data frame"
)


def records_of(X: Any, names: Sequence[Hashable]) -> list[dict[Hashable, Any]]:
    """Records as dicts that hold the named fields and nothing else.

    Parameters
    ----------
    X : data frame, structured array or sequence of records
        A frame is one of pandas, polars or pyarrow.
    names : sequence of str or int
        The names of fields, or their places in tuples; columns of a frame have both.
    """
    if hasattr(X, "columns"):
        columns = [frame_column(X, name) for name in names]
    else:
        rows = list_of_objects(X)
        for name in names:
            require_known(rows, name)
        columns = [field_values(rows, name) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def frame_column(X: Any, name: Hashable) -> list[Any]:
    """The values of one column of a frame, by its name or place."""
    require_some(X.shape, "the table")
    known = column_names(X)
    if isinstance(name, str) and known is not None:
        require_column(name, known, "the table", "field")
        place = known.index(name)
    else:
        place = _place(name, X.shape[1])
    return list(values_of_column(X, place))


def field_values(rows: Sequence[Any], name: Hashable) -> list[Any]:
    """The value of one field in every record, None for dicts that lack it."""
    if all(type(row) is dict for row in rows):
        return [row.get(name) for row in rows]
    return [_value(row, name, i, len(rows)) for i, row in enumerate(rows)]


def _value(row: Any, name: Hashable, i: int, n: int) -> Any:
    """A field of one record; None if a dict lacks it."""
    if isinstance(row, Mapping):
        return row.get(name)
    named = row.dtype.names if isinstance(row, np.void) else getattr(row, "_fields", None)
    if not (is_sequence(row) or named):
        raise ValueError(f"row {i} (of {n}) is {type(row).__name__} {row!r:.40}; {A_RECORD}")
    if isinstance(name, str) and named:
        require_column(name, list(named), f"row {i} (of {n})", "field")
        return row[list(named).index(name)]
    try:
        return row[_place(name, len(row))]
    except ValueError as error:
        raise ValueError(f"row {i} (of {n}) is {row!r:.40}: {error}") from None


def _place(name: Hashable, n_fields: int) -> int:
    """The place of a field in a tuple of so many."""
    if isinstance(name, bool) or not isinstance(name, int | np.integer):
        raise ValueError(f"there is no field {name!r}; {NO_NAMES}")
    if not 0 <= name < n_fields:
        raise ValueError(
            f"there is no field {name}; there are {n_fields}, at the places 0 to {n_fields - 1}"
        )
    return int(name)


def require_known(rows: Sequence[Any], name: Hashable) -> None:
    """Raise a ValueError if no dict has a field of this name; it lists the fields there are."""
    if not all(isinstance(row, Mapping) and name not in row for row in rows):
        return
    known = list(dict.fromkeys(key for row in rows for key in row))
    if isinstance(name, str):
        require_column(name, [str(key) for key in known], "the records", "field")
    raise ValueError(f"there is no field {name!r} in the records; fields are {known!r:.200}")
