"""Tables: which columns are wanted, and their rows as numbers, objects, records or a target."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.errors import OptionError
from kreinlearn.data.fields import floats_of, hold_lists, kind_of, lists_of
from kreinlearn.data.memory import require_memory
from kreinlearn.data.source import (
    Array,
    ArrayReader,
    Checked,
    Reader,
    Stream,
    place,
    require_finite,
    require_some,
)
from kreinlearn.data.targets import require_targets, with_types
from kreinlearn.data.tiles import library

LISTED = 12  # names in an error message
DELIMITER = re.compile("[;\t|,]")
MARKS = {".": "decimal points", ",": "decimal commas"}
FIELD_BYTES = 100  # a guess at the size of a field of a record in memory


class Kind(NamedTuple):
    """What a column holds."""

    what: str  # "number", "date", "category" or "text", which stands for all other objects
    shown: str  # how an error message names it
    decimal: str = ""  # the mark by which texts would be numbers


class Columns:
    """Named columns where they are stored: in a text file, in Parquet files, in Arrow's memory.

    A subclass gives ``blocks``; what else it knows better, it overrides.
    """

    origin: str  # what error messages call the table
    names: list[str]
    n: int  # the number of rows
    typed: bool = True  # whether a text that looks like a number is known to be a text
    header: bool = True  # whether the columns have names of their own
    decimal: str = "."  # the mark before the fraction of a number in a text

    def blocks(self, names: Sequence[str]) -> Iterator[list[list[Any]]]:
        """Read the values of some columns, a block of rows at a time: one list per column."""
        raise NotImplementedError

    def kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        """Return what some columns hold, by name: judged by their first rows."""
        empty: list[list[Any]] = [[] for _ in names]
        first = next(self.blocks(names), empty)
        return {name: self._kind(values) for name, values in zip(names, first, strict=True)}

    def _kind(self, values: Sequence[Any]) -> Kind:
        what = kind_of(values, typed=self.typed, decimal=self.decimal)
        other = "," if self.decimal == "." else "."
        if what == "text" and kind_of(values, typed=self.typed, decimal=other) == "number":
            return Kind(what, f"numbers with {MARKS[other]}", other)
        return Kind(what, what)

    def numbers(self, names: Sequence[str]) -> Reader:
        """Return columns of numbers, (n, d), with NaN where one is missing.

        They are converted once, to a temporary file that has no name and goes away by itself.
        """
        first = 0
        with tempfile.TemporaryFile(prefix="kreinlearn-") as file:
            for block in self.blocks(names):
                rows = self.floats(block, names, first)
                file.write(rows.data)
                first += len(rows)
            if not first:
                return ArrayReader(np.empty((0, len(names))))
            file.flush()
            return ArrayReader(np.memmap(file, np.float64, "r", shape=(first, len(names))))

    def objects(self, name: str) -> Reader:
        """Return the objects in one column, (n,), with None where one is missing.

        They are read again for every pass.
        """
        return Stream((self.n,), object, partial(self._objects, name))

    def _objects(self, name: str, begin: int) -> Iterator[Array]:
        for (column,) in self.blocks([name]):
            yield np.fromiter(column, dtype=object, count=len(column))

    def frame(self, names: Sequence[str], require: Callable[[int], None]) -> Any:
        """Return columns in memory as a data frame, if there is one; ``require`` so many bytes."""
        return None

    def line(self, row: int) -> int | None:
        """Return the line of a text file that holds a row."""
        return None

    def place(self, row: int, name: str) -> str:
        """Say where a value is: "row 3, column 'b' of x.csv (line 5)"."""
        return place(row, name, self.origin, self.line)

    def floats(self, columns: Sequence[Sequence[Any]], names: Sequence[str], first: int) -> Array:
        """Return the columns of a block as numbers, (b, d); its first row has number ``first``."""
        rows = np.empty((len(columns[0]), len(names)))
        for j, name in enumerate(names):
            rows[:, j] = floats_of(columns[j], partial(self.place_after, first, name), self.decimal)
        return rows

    def place_after(self, first: int, name: str, i: int) -> str:
        """Say where a value of a block is whose first row has number ``first``."""
        return self.place(first + i, name)


class Block(NamedTuple):
    """Some rows of a table: the number of the first one, and one list of values per column."""

    first: int
    columns: list[list[Any]]

    def without(self, places: Array) -> Block:
        """Leave out the rows at some places."""
        left_out = set(places.tolist())
        kept = [i for i in range(len(self.columns[0])) if i not in left_out]
        return Block(self.first, [[column[i] for i in kept] for column in self.columns])


def require_column(
    name: str, names: Sequence[str], origin: str | Path, what: str = "column"
) -> None:
    """Raise a ValueError unless there is exactly one column of this name."""
    count = names.count(name)
    if count > 1:
        places = [j + 1 for j, other in enumerate(names) if other == name]
        raise ValueError(
            f"there is more than one {what} {name!r} in {origin}, at places {places}; rename all "
            "but one"
        )
    if not count:
        problem = f"there is no {what} {name!r}{_meant(name, names)} in {origin}; {what}s are "
        problem += listed(names)
        if len(names) == 1 and (mark := DELIMITER.search(names[0])):
            remedy = "if another character separates the columns, name it"
            raise OptionError(problem, remedy, "delimiter", mark[0])
        raise ValueError(problem)


def listed(names: Sequence[str]) -> str:
    """Return the first names in a row, and how many there are besides."""
    more = f" and {len(names) - LISTED} more" * (len(names) > LISTED)
    return ", ".join(name if name.strip() else repr(name) for name in names[:LISTED]) + more


def _meant(name: str, names: Sequence[str]) -> str:
    same = {other.strip().lower(): other for other in reversed(names)}
    close = get_close_matches(name.strip().lower(), same, n=1)
    return f" (did you mean {same[close[0]]!r}?)" if close else ""


@dataclass(frozen=True)
class Table:
    """A table of which a kernel has not yet said what it takes: numbers, or one object per row.

    Parameters
    ----------
    stored : Columns
        Where the columns are.
    chosen : tuple of str, default=None
        The names of the columns that the user asked for. None stands for all of them.
    by_name : bool, default=False
        Whether a fitted model looks for its columns by name, and leaves others alone.
    text : str, default=None
        The column of a text file whose fields are objects, even if they look like numbers.
    """

    stored: Columns
    chosen: tuple[str, ...] | None = None
    by_name: bool = False
    text: str | None = None

    def __len__(self) -> int:
        return self.stored.n

    def pick(self, names: str | Sequence[str]) -> Table:
        """Choose columns: one name for a column of objects, a list of names for numbers."""
        chosen = (names,) if isinstance(names, str) else tuple(names)
        for name in chosen:
            require_column(name, self.stored.names, self.origin)
        return replace(self, chosen=chosen, text=names if isinstance(names, str) else self.text)

    def without(self, name: str) -> Table:
        """Leave out one column."""
        require_column(name, self.stored.names, self.origin)
        return self.pick([other for other in self.names if other != name])

    @property
    def origin(self) -> str:
        return self.stored.origin

    @property
    def names(self) -> list[str]:
        return list(self.stored.names if self.chosen is None else self.chosen)

    @property
    def empty(self) -> Any:
        """The columns without rows, from which scikit-learn reads the names of features."""
        try:
            pa = library("pyarrow")
        except ImportError:
            return np.empty((0, len(self.names)))
        return pa.schema([(name, pa.float64()) for name in self.names]).empty_table()

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """What each column holds; columns that share their name are left out."""
        names = [name for name in self.names if self.names.count(name) == 1]
        kinds = self.stored.kinds(names)
        if self.text in kinds and not self.stored.typed:
            kinds[self.text] = Kind("text", "text")
        if texts := [name for name, kind in kinds.items() if kind.decimal]:
            first = kinds[texts[0]]
            warn(
                f"{self.origin}: read as texts, although they look like {first.shown}: "
                f"{listed(texts)}; decimal={first.decimal!r} reads numbers"
            )
        return kinds

    def split(self, besides: Collection[Hashable] = ()) -> tuple[list[str], list[str]]:
        """Return the names of the columns of numbers, and those of the others; each name once."""
        names = [name for name in dict.fromkeys(self.names) if name not in besides]
        numbers = [n for n in names if n in self.kinds and self.kinds[n].what == "number"]
        return numbers, [name for name in names if name not in numbers]

    # What a kernel may take

    def numbers(self) -> Checked:
        """Return rows of numbers; an error names a column that holds something else."""
        names = self.pick(self.names).names
        if not (names and self.holds_numbers()):
            require_some((len(self), len(names)), self.origin)  # no rows: nothing tells the kinds
            for name in names:
                _require_number(name, self.kinds[name], self.origin)
        return self._checked(self.stored.numbers(names), names)

    def objects(self) -> Checked:
        """Return the objects of the one column that holds them."""
        name = self.object_column()
        return self._checked(self.stored.objects(name), [name])

    def _checked(self, reader: Reader, names: list[str]) -> Checked:
        require_some(reader.shape, self.origin)
        return Checked(reader, self.origin, names, line=self.stored.line)

    def holds_numbers(self) -> bool:
        self.pick(self.names)  # each name once
        return all(kind.what == "number" for kind in self.kinds.values())

    def object_column(self) -> str:
        """Find the one column of texts or lists; the only column may be of any type."""
        names = self.pick(self.names).names
        if len(names) > 1:
            _, names = self.split()
        if len(names) != 1:
            there = f"{len(names)} columns of texts or lists, {names[:LISTED]}"
            problem = f"{self.origin} has {there}, and one is wanted"
            raise OptionError(problem, "name it", "columns", "name")
        return names[0]

    def column(self, name: str) -> list[Any]:
        """Return all values of one column."""
        require_column(name, self.stored.names, self.origin)
        return list(chain.from_iterable(column for (column,) in self.stored.blocks([name])))

    def target(self, name: str) -> Array:
        """Return all values of one column as a target: none may be missing."""
        require_column(name, self.stored.names, self.origin)
        parts, first = [], 0
        for (values,) in self.stored.blocks([name]):
            require_targets(values, partial(self.stored.place_after, first, name))
            parts.append(np.array(values))
            first += len(values)
        require_some((first,), self.origin)
        stored = self.stored
        return with_types(np.concatenate(parts), typed=stored.typed, decimal=stored.decimal)

    # A block of rows at a time

    def blocks(self, names: Sequence[str] | None = None) -> Iterator[Block]:
        """Read rows of the chosen columns, or of those named, a block at a time."""
        first = 0
        for columns in self.stored.blocks(self.pick(names or self.names).names):
            yield Block(first, columns)
            first += len(columns[0])

    def as_numbers(self, block: Block) -> Array:
        """Return the chosen columns of a block as numbers, (b, d), all of them finite."""
        names = self.names
        rows = self.stored.floats(block.columns, names, block.first)
        require_finite(rows, lambda i, j: self.stored.place(block.first + i, names[j]))
        return rows

    def as_objects(self, block: Block) -> list[Any]:
        """Return the objects of a block; none may be missing."""
        for i in (i for i, value in enumerate(block.columns[0]) if value is None):
            where = self.stored.place(block.first + i, self.names[0])
            raise ValueError(f"Input X contains NaN: {where} is missing")
        return block.columns[0]

    def as_records(
        self, block: Block, numeric: Collection[str], lists: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the rows of a block as dicts, with None where a value is missing.

        Fields of columns that are ``numeric`` are read as numbers, those of ``lists`` as JSON.
        """
        columns = []
        for j, name in enumerate(self.names):
            values: list[Any] = block.columns[j]
            if name in numeric:
                floats = self.stored.floats([values], [name], block.first)[:, 0]
                values = [None if x != x else x for x in floats.tolist()]
            elif name in lists:
                values = lists_of(values, partial(self.stored.place_after, block.first, name))
            columns.append([None if _is_empty(value) else value for value in values])
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def list_columns(self) -> list[str]:
        """Return the columns of a text file whose fields are lists, judged by its first rows."""
        first = None if self.stored.typed else next(self.blocks(), None)
        each = [] if first is None else zip(self.names, first.columns, strict=True)
        return [name for name, values in each if hold_lists(values)]

    def load(self, budget: int) -> Any:
        """Return the rows in memory, as kernels on records take them, if the budget allows it."""
        return self._loaded(budget, self.split()[0], ())

    def load_fields(self, budget: int, objects: Collection[Hashable]) -> Any:
        """Do the same for kernels on single fields, which may hold lists.

        The fields of ``objects`` stay texts even if they look like numbers.
        """
        return self._loaded(budget, self.split(objects)[0], self.list_columns())

    def _loaded(self, budget: int, numeric: Collection[str], lists: Collection[str]) -> Any:
        def require(size: int) -> None:
            require_memory(
                size, budget, f"holding {self.origin}",
                "raise Resources(memory_budget=...): kernels on records take all rows at once",
            )  # fmt: skip

        frame = self.stored.frame(self.names, require)
        if frame is not None:
            return frame
        rows: list[dict[str, Any]] = []
        for block in self.blocks():
            rows += self.as_records(block, numeric, lists)
            require(FIELD_BYTES * len(rows) * len(self.names))
        return rows


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and not value


def _require_number(name: str, kind: Kind, origin: str) -> None:
    if kind.what == "number":
        return
    where = f"column {name!r} of {origin}"
    if kind.what == "date":
        raise TypeError(
            f"X must hold numbers, got dates ({kind.shown}) in {where}; convert them first"
        )
    if kind.what == "category":
        raise ValueError(f"X must hold numbers, got categories in {where}; encode them first")
    problem = f"could not convert string to float: {where} holds {kind.shown}"
    if kind.decimal:
        raise OptionError(problem, "name the decimal mark", "decimal", kind.decimal)
    raise OptionError(problem, "name the columns of numbers", "columns", ["a", "b"])
