"""Tables with named columns, read a block of rows at a time: CSV, JSON lines, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from kreinlearn.data.reading.columns import require_column
from kreinlearn.data.reading.numbers import is_number
from kreinlearn.data.reading.text import TextFile, text_of
from kreinlearn.data.sources import Table
from kreinlearn.data.tiles import TILE

ROWS = 4 * TILE  # in a block
LONGEST_FIELD = 2**24  # characters; one that is longer is a quote that was never closed


@dataclass(frozen=True)
class Block:
    """Rows of some columns; ``places`` are their lines, or numbers of rows."""

    places: Sequence[int]
    columns: Sequence[Sequence[Any]]


class Sheet(Protocol):
    """Named columns, which may be read as often as need be."""

    path: Path
    names: list[str]
    unit: str  # of places: "line" or "row"

    def blocks(self, names: Sequence[str]) -> Iterator[Block]: ...


class CsvSheet:
    """Fields separated by a delimiter, all of them text; every row as long as the first."""

    unit = "line"

    def __init__(
        self, path: Path, *, encoding: str | None = None, delimiter: str = ",", header: bool = True
    ) -> None:
        self.path, self.header, self.delimiter = path, header, delimiter
        self.text = TextFile(path, encoding)
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        _, first = next(self._records(), (0, []))
        if not first:
            raise ValueError(f"{path} is empty: it has blank lines only")
        self.width = len(first)
        self.numbered = all(map(is_number, first))  # the first line holds no names
        self.names = first if header else [str(j) for j in range(1, len(first) + 1)]

    def without_header(self) -> CsvSheet:
        options: Any = {"encoding": self.text.encoding, "delimiter": self.delimiter}
        return CsvSheet(self.path, header=False, **options)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows with the line they begin on; blank lines are left out."""
        reader = csv.reader(self.text.lines(), delimiter=self.delimiter, strict=True)
        begin = 1
        try:
            for fields in reader:
                if fields:
                    yield begin, fields
                begin = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{self.path}, line {begin}: {error}; a quote inside a field is written twice, "
                "and one that is opened must be closed"
            ) from None

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        wanted = [require_column(name, self.names, self.path) for name in names]
        rows = self._records()
        if self.header:
            next(rows)
        lines, columns = list[int](), [list[str]() for _ in wanted]
        for line, fields in rows:  # which are let go at once: keeping them costs twice the time
            if len(fields) != self.width:
                raise ValueError(self._ragged(line, len(fields)))
            lines.append(line)
            for column, j in zip(columns, wanted, strict=True):
                column.append(fields[j])
            if len(lines) == ROWS:
                yield Block(lines, columns)
                lines, columns = [], [[] for _ in wanted]
        if lines:
            yield Block(lines, columns)

    def _ragged(self, line: int, n: int) -> str:
        cause = (
            "is a delimiter inside a text not quoted?"
            if n > self.width
            else "is one missing, or is the delimiter another (--delimiter)?"
        )
        first = "the header names" if self.header else "the first line has"
        fields = f"{n} field{'s' * (n != 1)}"
        return f"{self.path}, line {line}: {fields}, but {first} {self.width}; {cause}"


class JsonSheet:
    """One object a line; the keys of the first are the columns."""

    unit = "line"

    def __init__(self, path: Path, *, encoding: str | None = None) -> None:
        self.path, self.text = path, TextFile(path, encoding)
        _, first = next(self._records(), (0, {}))
        if not first:
            raise ValueError(f"{path} is empty: it has no object with a key")
        self.names = list(first)

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(self.text.lines(), 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(f"{self.path}, line {number}: no JSON: {error}") from None
            if not isinstance(found, dict):
                raise ValueError(
                    f"{self.path}, line {number}: {text_of(found)}, but a line must be an object, "
                    '{"column": value, ...}'
                )
            yield number, found

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        for name in names:
            require_column(name, self.names, self.path)
        rows = self._records()
        while block := list(islice(rows, ROWS)):
            for line, found in block:
                if missing := [name for name in names if name not in found]:
                    raise ValueError(f"{self.path}, line {line}: there is no key {missing[0]!r}")
            columns = [[found[name] for _, found in block] for name in names]
            yield Block([line for line, _ in block], columns)


class ArrowSheet:
    """Columns of a Parquet or Arrow file, or of a folder of Parquet files."""

    unit = "row"

    def __init__(self, path: Path, table: Table) -> None:
        self.path, self.table, self.names = path, table, list(table.names)

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        for name in names:
            require_column(name, self.names, self.path)
        first = 0
        for batch in self.table.stored.batches(names, 0):
            n = batch.num_rows
            columns = [column.to_pylist() for column in batch.columns]
            yield Block(range(first, first + n), columns)
            first += n
