"""Rows in which an object or a target is missing: found, counted, and left out if that is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kreinlearn.data.fields import is_missing
from kreinlearn.data.source import Array
from kreinlearn.data.table import Block, Columns, Kind, Table

NAMED = 5  # rows or lines that a message names


def is_blank(value: Any) -> bool:
    """Tell whether there is no object or no label: nothing, NaN, or a text of blanks."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and value != value)


def gaps_in(table: Table, names: Sequence[str], *, whole: bool = False) -> dict[str, list[int]]:
    """Find the rows of a table in which columns are empty, by the name of the column.

    With ``whole`` a row counts only if all of its columns are empty, as for records.
    """
    found: dict[str, list[int]] = {name: [] for name in names}
    for block in table.blocks(names):
        for name, rows in gaps_of_block(table, names, block, whole=whole).items():
            found[name] += rows
    return {name: rows for name, rows in found.items() if rows}


def gaps_of_block(
    table: Table, names: Sequence[str], block: Block, *, whole: bool = False
) -> dict[str, list[int]]:
    """Do the same for a block of rows of these columns."""
    found = {}
    for name, values in zip(names, block.columns, strict=False):
        number = name in table.kinds and table.kinds[name].what == "number"
        missing = is_missing if number else is_blank
        found[name] = [block.first + i for i, value in enumerate(values) if missing(value)]
    if whole:
        common = set.intersection(*map(set, found.values()))
        return {names[0]: sorted(common)} if common else {}
    return {name: rows for name, rows in found.items() if rows}


def rows_of(gaps: dict[str, list[int]]) -> Array:
    """Return the numbers of all rows with a gap, in order."""
    return np.unique(np.concatenate([np.array(rows, dtype=np.intp) for rows in gaps.values()]))


def gaps_in_words(gaps: dict[str, list[int]], table: Table) -> str:
    """Say which columns are empty, in how many rows, and where the first of them are."""
    found = gaps.items()
    return ", ".join(f"{name} is empty in {_rows_in_words(rows, table)}" for name, rows in found)


def _rows_in_words(rows: list[int], table: Table) -> str:
    count = "one row" if len(rows) == 1 else f"{len(rows):,} rows"
    lines = [table.stored.line(row) for row in rows[:NAMED]]
    what, numbers = ("row", rows[:NAMED]) if None in lines else ("line", lines)
    listed = ", ".join(map(str, numbers)) + ", ..." * (len(rows) > NAMED)
    return f"{count} ({what}{'s' * (len(rows) > 1)} {listed})"


class Complete(Columns):
    """The columns of a table without some of its rows.

    Parameters
    ----------
    stored : Columns
        All rows.
    left_out : ndarray of shape (n_left_out,)
        The numbers of the rows that are left out, in order.
    """

    def __init__(self, stored: Columns, left_out: Array) -> None:
        self.stored, self.left_out = stored, left_out
        self.origin, self.names = stored.origin, stored.names
        self.typed, self.header, self.decimal = stored.typed, stored.header, stored.decimal
        self.n = stored.n - len(left_out)

    def kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        return self.stored.kinds(names)

    def blocks(self, names: Sequence[str]) -> Iterator[list[list[Any]]]:
        first = 0
        for columns in self.stored.blocks(names):
            n = len(columns[0])
            kept = np.flatnonzero(~np.isin(np.arange(first, first + n), self.left_out)).tolist()
            first += n
            if kept:
                yield [[column[i] for i in kept] for column in columns]

    def line(self, row: int) -> int | None:
        return self.stored.line(self._row(row))

    def place(self, row: int, name: str) -> str:
        return self.stored.place(self._row(row), name)

    def _row(self, row: int) -> int:
        """Return the number that a row has among all rows."""
        for one in self.left_out.tolist():
            row += one <= row
        return row
