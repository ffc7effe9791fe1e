"""Bytes to lines of text: encodings and their marks, compression, files that are no text."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

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
LONGEST = 2**26  # characters of a line
BY_BYTES = ("utf-8", "ascii", "iso8859", "cp", "gb", "big5", "euc", "shift", "koi8", "mac")


class TextFile:
    """A file of text, plain or compressed with gzip, that can be read again and again."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = path
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty")
        with self._open() as file:
            start = self._read(file, 8)
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

    def _read(self, file: IO[bytes], n: int) -> bytes:
        try:
            return file.read(n)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(self._damaged(error)) from None

    def _damaged(self, error: Exception) -> str:
        return f"{self.path} is damaged: it cannot be unpacked ({error})"

    def lines(self) -> Iterator[str]:
        """Lines with their ends; the mark of an encoding is left out."""
        with self._open() as file, io.TextIOWrapper(file, self.encoding, newline="") as text:
            number = 0
            while line := self._line(text, number + 1):
                number += 1
                yield line.removeprefix("\ufeff") if number == 1 else line

    def _line(self, text: io.TextIOWrapper, number: int) -> str:
        try:
            line = text.readline(LONGEST)
        except UnicodeError as error:
            raise ValueError(self._undecodable(error)) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(self._damaged(error)) from None
        if "\0" in line:
            raise ValueError(
                f"{self.path}, line {number}: there is a NUL byte; it is no text, or in another "
                "encoding: give --encoding utf-16-le, say"
            )
        if len(line) == LONGEST:
            raise ValueError(f"{self.path}, line {number}: longer than {LONGEST:,} characters")
        return line

    def _undecodable(self, error: UnicodeError) -> str:
        """Names the first line that is not in the encoding; found by reading again."""
        remedy = "name its encoding: --encoding latin-1, cp1252 or utf-16, say"
        if self.encoding.startswith(BY_BYTES):
            with self._open() as file:
                for number, line in enumerate(file, 1):
                    if (bad := _first_bad(line, self.encoding)) is not None:
                        return (
                            f"{self.path}, line {number}: the byte 0x{bad:02x} is not in "
                            f"{self.encoding}; {remedy}"
                        )
        return f"{self.path} is not in {self.encoding} ({error}); {remedy}"


def _first_bad(line: bytes, encoding: str) -> int | None:
    try:
        line.decode(encoding)
    except UnicodeDecodeError as error:
        return line[error.start]
    return None


def text_of(value: Any) -> str:
    """A value as an error shows it, not at length."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:36]}...'"
