"""Tables in text files, CSV, TSV and JSON lines: texts as they were written, errors by line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from kreinlearn.data.errors import OptionError
from kreinlearn.data.fields import is_number, shown
from kreinlearn.data.source import BATCH
from kreinlearn.data.table import Columns

GZIP = b"\x1f\x8b"
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NO_TEXT = (
    (b"PK\x03\x04", "a ZIP archive, a spreadsheet perhaps: save the table as CSV"),
    (b"PAR1", "a Parquet file: its name must end in .parquet"),
)
LONGEST = 2**26  # characters in a line
LONGEST_FIELD = 2**24  # characters; a longer field is a quote that was never closed
BY_BYTES = ("utf-8", "ascii", "iso8859", "cp", "gb", "big5", "euc", "shift", "koi8", "mac")
SEPARATORS = (",", ";", "\t", "|")  # which may stand between fields
LOOKED_AT = 20  # rows by which the separator is found


# Lines


def _unpacked(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP
    return gzip.open(path) if zipped else path.open("rb")  # type: ignore[return-value]


def lines_of(path: Path, encoding: str | None) -> Iterator[str]:
    """Read the lines of a file, plain or compressed with gzip, with their ends.

    Without an encoding the byte order mark decides, which is left out; a file that has none is
    UTF-8.
    """
    known = codecs.lookup(encoding or "utf-8").name
    try:
        with _unpacked(path) as file:
            start = file.read(8)
            _require_text(path, start)
            if encoding is None:
                known = next((name for mark, name in MARKS if start.startswith(mark)), known)
            file.seek(0)
            text = io.TextIOWrapper(file, known, newline="")
            for number, line in enumerate(iter(partial(text.readline, LONGEST), ""), 1):
                if "\0" in line:
                    problem = f"{path}, line {number}: there is a NUL byte"
                    remedy = "it is no text, or in another encoding"
                    raise OptionError(problem, remedy, "encoding", "utf-16-le")
                if len(line) == LONGEST:
                    raise ValueError(f"{path}, line {number}: longer than {LONGEST:,} characters")
                yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        remedy = "name its encoding, latin-1, cp1252 or utf-16 perhaps"
        problem = _undecodable(path, known, error)
        raise OptionError(problem, remedy, "encoding", "latin-1") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged: it cannot be unpacked ({error})") from None


def _require_text(path: Path, start: bytes) -> None:
    if not start:
        raise ValueError(f"{path} is empty")
    for magic, what in NO_TEXT:
        if start.startswith(magic):
            raise ValueError(f"{path} is no text but {what}")


def _undecodable(path: Path, encoding: str, error: UnicodeError) -> str:
    """Name the first line that is not in the encoding; the file is read again to find it."""
    if encoding.startswith(BY_BYTES):
        with _unpacked(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as bad:
                    byte = f"the byte 0x{line[bad.start]:02x}"
                    return f"{path}, line {number}: {byte} is not in {encoding}"
    return f"{path} is not in {encoding} ({error})"


# Tables


class TextTable(Columns):
    """Columns of a text file that has one row per record, which is found again by its line.

    A subclass gives the ``names`` of the columns and the ``records``.
    """

    def __init__(self, path: Path, encoding: str | None, decimal: str) -> None:
        self.path, self.origin, self.decimal = path, str(path), decimal
        self.lines: Callable[[], Iterator[str]] = partial(lines_of, path, encoding)

    def records(self) -> Iterator[tuple[int, Any]]:
        """Read the rows, each with the line that it begins on."""
        raise NotImplementedError

    def keys(self, names: Sequence[str]) -> Sequence[Any]:
        """Return what finds the fields of these columns in a record."""
        return names

    def blocks(self, names: Sequence[str]) -> Iterator[list[list[Any]]]:
        columns, n, before = [list[Any]() for _ in names], 0, 0
        wanted = list(zip(self.keys(names), range(len(names)), strict=True))
        for line, record in self.records():  # not kept: that would take twice the time
            try:
                for key, j in wanted:
                    columns[j].append(record[key])
            except KeyError as error:
                raise ValueError(f"{self.path}, line {line}: there is no key {error}") from None
            n += 1
            if n == BATCH:
                yield columns
                columns, n, before = [[] for _ in names], 0, before + n
        self.n = before + n  # which need not be counted any more
        if n:
            yield columns

    @cached_property
    def n(self) -> int:  # type: ignore[override]
        return sum(1 for _ in self.records())

    def line(self, row: int) -> int:
        """Find the line of a row by reading the file again, for an error message."""
        return next(islice(self.records(), row, None))[0]


def separator_of(path: Path, usual: str, encoding: str | None = None) -> str:
    """Find the character between the fields of a file.

    It is the ``usual`` one if that is in the first line, and otherwise the one that divides the
    first rows into as many fields, and into most of them.
    """
    if max(_widths(path, usual, encoding, 1), default=0) > 1:
        return usual
    widths = {mark: set(_widths(path, mark, encoding, LOOKED_AT)) for mark in SEPARATORS}
    even = {mark: min(found) for mark, found in widths.items() if len(found) == 1}
    best = max(even, key=lambda mark: even[mark], default=usual)
    return best if even.get(best, 0) > 1 else usual


def _widths(path: Path, mark: str, encoding: str | None, rows: int) -> list[int]:
    """Count the fields of each of the first rows; none if quotes are not as they should be."""
    reader = _reader(lines_of(path, encoding), mark)
    try:
        return [len(fields) for fields in islice(filter(None, reader), rows)]
    except (csv.Error, ValueError):  # the table will say where
        return []


def _reader(lines: Iterator[str], delimiter: str) -> Any:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    return csv.reader(lines, delimiter=delimiter, strict=True)


class Delimited(TextTable):
    """A table of fields between delimiters, all of them text; every row has the same length.

    Parameters
    ----------
    path : Path
        The file, which may be compressed with gzip.
    encoding : str, default=None
        The encoding. None stands for UTF-8, unless a byte order mark names another encoding.
    delimiter : str, default=","
        The character between fields.
    decimal : {".", ","}, default="."
        The mark before the fraction of a number.
    header : bool, default=True
        Whether the first line holds the names of the columns. Columns without names are called
        "1", "2", and so on. None: it does, unless it holds nothing but numbers.
    """

    typed = False

    def __init__(
        self, path: Path, *, encoding: str | None = None, delimiter: str = ",",
        decimal: str = ".", header: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__(path, encoding, decimal)
        self.delimiter = delimiter
        _, first = next(self._rows(0), (0, []))
        if not first:
            raise ValueError(f"{path} is empty: it has blank lines only")
        numbers_only = all(is_number(field) or is_number(field, ",") for field in first)
        if header and numbers_only:
            problem = f"the first line of {path} holds numbers, not names of columns"
            raise OptionError(problem, "if there are no names, say so", "header", False)
        self.header = not numbers_only if header is None else header
        self.names = first if self.header else [str(j) for j in range(1, len(first) + 1)]

    def _rows(self, width: int) -> Iterator[tuple[int, list[str]]]:
        """Read all rows with the line they begin on, a header too; blank lines are left out.

        A row must have ``width`` fields, unless that is 0.
        """
        reader, begin = _reader(self.lines(), self.delimiter), 1
        try:
            for fields in reader:
                if fields:
                    if width and len(fields) != width:
                        raise self._ragged(begin, len(fields))
                    yield begin, fields
                begin = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{self.path}, line {begin}: {error}; a quote inside a field is written twice, "
                "and one that is opened must be closed"
            ) from None

    def records(self) -> Iterator[tuple[int, list[str]]]:
        return islice(self._rows(len(self.names)), int(self.header), None)

    def keys(self, names: Sequence[str]) -> list[int]:
        return [self.names.index(name) for name in names]

    def _ragged(self, line: int, n: int) -> ValueError:
        first = "the header names" if self.header else "the first line has"
        fields = f"{n} field{'s' * (n != 1)}"
        problem = f"{self.path}, line {line}: {fields}, but {first} {len(self.names)}"
        if n > len(self.names):
            return ValueError(f"{problem}; is a delimiter inside a text not quoted?")
        return OptionError(problem, "is one missing, or the delimiter another", "delimiter", ";")


class JsonLines(TextTable):
    """A table whose rows are JSON objects; the keys of the first one name the columns."""

    def __init__(self, path: Path, *, encoding: str | None = None) -> None:
        super().__init__(path, encoding, ".")
        _, first = next(self.records(), (0, {}))
        if not first:
            raise ValueError(f"{path} is empty: it has no object with a key")
        self.names = list(first)

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(self.lines(), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_unique)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{self.path}, line {number}: {_why(error)}") from None
            if not isinstance(record, dict):
                raise ValueError(
                    f"{self.path}, line {number}: {shown(record)}, but a line must be an object, "
                    '{"column": value, ...}'
                )
            yield number, record


class _RepeatedKeyError(ValueError):
    """A key that an object of JSON has twice."""


def _why(error: Exception) -> str:
    """Why a line cannot be read: it is no JSON, or Python refuses what it holds."""
    if isinstance(error, json.JSONDecodeError | _RepeatedKeyError):
        return f"no JSON: {error}"
    if isinstance(error, RecursionError):
        return "lists or objects are nested too deeply"
    most = sys.get_int_max_str_digits()
    return f"an integer has more than {most:,} digits; write it as a text, or with an exponent"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, none of whose keys is there twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _RepeatedKeyError(f"the key {shown(twice)} is there twice; write every key once")
    return fields
