"""Columns of a table as what a kernel takes: rows of numbers, objects, records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.reading.numbers import as_number, is_missing, is_numeric, numbers_of
from kreinlearn.data.reading.sheets import Block, Sheet
from kreinlearn.data.reading.text import text_of

Array = NDArray[Any]
Convert = Callable[[Block], Any]  # the first columns of a block to what a kernel takes
Parts = Callable[[], Iterator[Any]]  # blocks of rows, from the first one each time
NO_ROW = "has names of columns, but no row"


class Kinds(NamedTuple):
    """Names of columns, by what their first rows hold; each name once."""

    numbers: list[str]
    others: list[str]


def kinds_of(sheet: Sheet, besides: Sequence[str | None] = ()) -> Kinds:
    names = [name for name in dict.fromkeys(sheet.names) if name not in besides]
    unique = [name for name in names if sheet.names.count(name) == 1]
    first = next(sheet.blocks(unique), Block((), [()] * len(unique)))
    numeric = {name for name, col in zip(unique, first.columns, strict=True) if is_numeric(col)}
    return Kinds([n for n in names if n in numeric], [n for n in names if n not in numeric])


def where(sheet: Sheet, name: str) -> str:
    """How an error names a value of a column, the place to be filled in."""
    path = str(sheet.path).replace("{", "{{").replace("}", "}}")
    column = name.replace("{", "{{").replace("}", "}}")
    return f"{path}, {sheet.unit} {{}}: {column}"


def column(sheet: Sheet, name: str) -> tuple[list[Any], list[int]]:
    """All values of a column and their places."""
    values, places = list[Any](), list[int]()
    for block in sheet.blocks([name]):
        values.extend(block.columns[0])
        places.extend(block.places)
    if not values:
        raise ValueError(f"{sheet.path} {NO_ROW}")
    return values, places


def number_rows(sheet: Sheet, names: Sequence[str]) -> Convert:
    """Blocks (b, d) of numbers."""
    spots = [where(sheet, name) for name in names]

    def convert(block: Block) -> Array:
        found = np.empty((len(block.places), len(names)))
        for j, spot in enumerate(spots):
            found[:, j] = numbers_of(block.columns[j], spot, block.places)
        return found

    return convert


def objects(sheet: Sheet, name: str) -> Convert:
    """Lists of texts, or of whatever the file holds; none may be missing."""
    spot = where(sheet, name)

    def convert(block: Block) -> list[Any]:
        values = list(block.columns[0])
        if None in values:
            raise ValueError(f"{spot.format(block.places[values.index(None)])} is missing")
        return values

    return convert


def records(sheet: Sheet, names: Sequence[str], numeric: Collection[str]) -> Convert:
    """Rows as dicts, None where a value is missing."""

    def convert(block: Block) -> list[dict[str, Any]]:
        columns = []
        for name, values in zip(names, block.columns, strict=False):
            cell = _number_cell(where(sheet, name)) if name in numeric else _text_cell
            columns.append(list(map(cell, values, block.places)))
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    return convert


def _text_cell(value: Any, place: int) -> Any:
    return None if value == "" else value


def _number_cell(spot: str) -> Callable[[Any, int], float | None]:
    def cell(value: Any, place: int) -> float | None:
        if is_missing(value):
            return None
        if (number := as_number(value)) is None:
            raise ValueError(f"{spot.format(place)} is {text_of(value)}, no finite number")
        return number

    return cell


def parts(sheet: Sheet, names: Sequence[str], convert: Convert) -> Parts:
    """Blocks of rows, converted as they are read."""
    return lambda: map(convert, sheet.blocks(names))


def whole(parts: Parts, sheet: Sheet) -> Any:
    """All rows in memory: an array of numbers, or a list."""
    found = list(parts())
    if not found:
        raise ValueError(f"{sheet.path} {NO_ROW}")
    return np.concatenate(found) if isinstance(found[0], np.ndarray) else list(chain(*found))
