"""Text files: encodings and compression, and tables whose rows are lines of text."""

from __future__ import annotations

import codecs
import gzip
import io
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from kreinlearn.data.arrays import ArrayReader
from kreinlearn.data.errors import OptionError
from kreinlearn.data.fields import kind_of
from kreinlearn.data.source import BATCH, Array, Stream
from kreinlearn.data.table import Columns, Kind

GZIP = b"\x1f\x8b"
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
KINDS = (
    (b"PK\x03\x04", "a ZIP archive, a spreadsheet perhaps: save the table as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet: save the table as CSV"),
    (b"PAR1", "a Parquet file: its name must end in .parquet"),
    (b"\x93NUMPY", "an array of numpy: its name must end in .npy"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF: save the table as CSV"),
    (b"BZh", "compressed with bzip2: unpack it first"),
    (b"\xfd7zXZ", "compressed with xz: unpack it first"),
    (b"(\xb5/\xfd", "compressed with zstandard: unpack it first"),
)
LONGEST = 2**26  # characters in a line
BY_BYTES = ("utf-8", "ascii", "iso8859", "cp", "gb", "big5", "euc", "shift", "koi8", "mac")
REMEDY = "name its encoding, latin-1, cp1252 or utf-16 perhaps"
UNPACKING = (EOFError, gzip.BadGzipFile, zlib.error)


class TextFile:
    """A text file, plain or compressed with gzip, that can be read again and again.

    Without an ``encoding`` its byte order mark decides, and a file that has none is UTF-8.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = path
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty")
        try:
            with self._open() as file:
                start = file.read(8)
        except UNPACKING as error:
            raise ValueError(self._damaged(error)) from None
        if not start:
            raise ValueError(f"{path} is empty once it is unpacked")
        for magic, what in KINDS:
            if start.startswith(magic):
                raise ValueError(f"{path} is no text but {what}")
        marked = next((name for mark, name in MARKS if start.startswith(mark)), "utf-8")
        self.encoding = codecs.lookup(encoding or marked).name

    def _open(self) -> IO[bytes]:
        with self.path.open("rb") as file:
            zipped = file.read(2) == GZIP
        return gzip.open(self.path) if zipped else self.path.open("rb")  # type: ignore[return-value]

    def _damaged(self, error: Exception) -> str:
        return f"{self.path} is damaged: it cannot be unpacked ({error})"

    def lines(self) -> Iterator[str]:
        """Read the lines with their ends; a byte order mark is left out."""
        with self._open() as file, io.TextIOWrapper(file, self.encoding, newline="") as text:
            number = 0
            while line := self._line(text, number + 1):
                number += 1
                yield line.removeprefix("\ufeff") if number == 1 else line

    def _line(self, text: io.TextIOWrapper, number: int) -> str:
        try:
            line = text.readline(LONGEST)
        except UnicodeError as error:
            problem = self._undecodable(error)
            raise OptionError(problem, REMEDY, "encoding", "latin-1") from None
        except UNPACKING as error:
            raise ValueError(self._damaged(error)) from None
        if "\0" in line:
            problem = f"{self.path}, line {number}: there is a NUL byte"
            remedy = "it is no text, or in another encoding"
            raise OptionError(problem, remedy, "encoding", "utf-16-le")
        if len(line) == LONGEST:
            raise ValueError(f"{self.path}, line {number}: longer than {LONGEST:,} characters")
        return line

    def _undecodable(self, error: UnicodeError) -> str:
        """Name the first line that is not in the encoding; the file is read again to find it."""
        if self.encoding.startswith(BY_BYTES):
            with self._open() as file:
                for number, line in enumerate(file, 1):
                    try:
                        line.decode(self.encoding)
                    except UnicodeDecodeError as bad:
                        byte = f"the byte 0x{line[bad.start]:02x}"
                        return f"{self.path}, line {number}: {byte} is not in {self.encoding}"
        return f"{self.path} is not in {self.encoding} ({error})"


class TextTable(Columns):
    """Columns of a text file that has one row per record; fields are typed by their first rows.

    A subclass gives the ``names`` of the columns and the ``records``.
    """

    def __init__(self, path: Path, encoding: str | None) -> None:
        self.path, self.origin, self.text = path, str(path), TextFile(path, encoding)

    def records(self) -> Iterator[tuple[int, Any]]:
        """Read the rows, each with the line that it begins on."""
        raise NotImplementedError

    def keys(self, names: Sequence[str]) -> Sequence[Any]:
        """Return what finds the fields of these columns in a record."""
        return names

    def blocks(self, names: Sequence[str]) -> Iterator[list[list[Any]]]:
        columns, n = [list[Any]() for _ in names], 0
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
                columns, n = [[] for _ in names], 0
        if n:
            yield columns

    @cached_property
    def n(self) -> int:  # type: ignore[override]
        return sum(1 for _ in self.records())

    def line(self, row: int) -> int:
        """Find the line of a row by reading the file again, for an error message."""
        return next(islice(self.records(), row, None))[0]

    def kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        empty: list[list[Any]] = [[] for _ in names]
        first = next(self.blocks(names), empty)
        kinds = (kind_of(column, typed=self.typed) for column in first)
        return {name: Kind(kind, kind) for name, kind in zip(names, kinds, strict=True)}

    def numbers(self, names: Sequence[str]) -> ArrayReader:
        """Convert columns once, to a temporary file that has no name and goes away by itself."""
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

    def objects(self, name: str) -> Stream:
        """Give the objects in one column; the file is read again for every pass."""
        return Stream((self.n,), object, partial(self._objects, name))

    def _objects(self, name: str, begin: int) -> Iterator[Array]:
        for (column,) in self.blocks([name]):
            yield np.fromiter(column, dtype=object, count=len(column))
