"""CSV and TSV files: fields between delimiters, and errors that name the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from kreinlearn.data.errors import OptionError
from kreinlearn.data.fields import have_decimal_commas, is_number, with_point
from kreinlearn.data.text import TextFile, TextTable

LONGEST_FIELD = 2**24  # characters; a longer field is a quote that was never closed


MARKS = (",", ";", "\t", "|")  # which may stand between fields
LOOKED_AT = 20  # rows by which the mark between fields is found


def detected(path: Path, usual: str, encoding: str | None = None) -> str:
    """Find the character between the fields of a file.

    It is the ``usual`` one if that is in the first line, and otherwise the one that divides the
    first rows into as many fields, and into most of them.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    if max(_widths(path, usual, encoding, 1), default=0) > 1:
        return usual
    widths = {mark: set(_widths(path, mark, encoding, LOOKED_AT)) for mark in MARKS}
    even = {mark: min(found) for mark, found in widths.items() if len(found) == 1}
    best = max(even, key=lambda mark: even[mark], default=usual)
    return best if even.get(best, 0) > 1 else usual


def _widths(path: Path, mark: str, encoding: str | None, rows: int) -> list[int]:
    """Count the fields of each of the first rows; none if quotes are not as they should be."""
    reader = csv.reader(TextFile(path, encoding).lines(), delimiter=mark, strict=True)
    try:
        return [len(fields) for fields in islice(filter(None, reader), rows)]
    except (csv.Error, ValueError):  # the reader will say where
        return []


class Delimited(TextTable):
    """A table of fields between delimiters, all of them text; every row has the same length.

    Numbers with decimal commas get points, in columns that hold nothing else.

    Parameters
    ----------
    path : Path
        The file, which may be compressed with gzip.
    encoding : str, default=None
        The encoding. None stands for UTF-8, unless a byte order mark names another encoding.
    delimiter : str, default=","
        The character between fields.
    header : bool, default=True
        Whether the first line holds the names of the columns. Columns without names are called
        "1", "2", and so on. None: it does, unless it holds nothing but numbers.
    """

    typed = False

    def __init__(
        self,
        path: Path,
        *,
        encoding: str | None = None,
        delimiter: str = ",",
        header: bool | None = True,
    ) -> None:
        super().__init__(path, encoding)
        self.delimiter = delimiter
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        _, first = next(self._lines(), (0, []))
        if not first:
            raise ValueError(f"{path} is empty: it has blank lines only")
        points = first if delimiter == "," else map(with_point, first)
        numbers_only = all(map(is_number, points))
        if header and numbers_only:
            problem = f"the first line of {path} holds numbers, not names of columns"
            raise OptionError(problem, "if there are no names, say so", "header", False)
        self.header = not numbers_only if header is None else header
        self.names = first if self.header else [str(j) for j in range(1, len(first) + 1)]

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Read all rows with the line they begin on; blank lines are left out."""
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

    def records(self) -> Iterator[tuple[int, list[str]]]:
        lines = self._lines()
        if self.header:
            next(lines)
        width = len(self.names)
        for line, fields in lines:
            if len(fields) != width:
                raise self._ragged(line, len(fields))
            yield line, fields

    @cached_property
    def decimal_commas(self) -> list[str]:
        """The columns of numbers with decimal commas, judged by the first rows."""
        if self.delimiter == ",":
            return []
        first = next(super().blocks(self.names), None)
        pairs = [] if first is None else zip(self.names, first, strict=True)
        return [name for name, values in pairs if have_decimal_commas(values)]

    def blocks(self, names: Sequence[str]) -> Iterator[list[list[Any]]]:
        changed = [j for j, name in enumerate(names) if name in self.decimal_commas]
        for columns in super().blocks(names):
            for j in changed:
                columns[j] = list(map(with_point, columns[j]))
            yield columns

    def keys(self, names: Sequence[str]) -> list[int]:
        return [self.names.index(name) for name in names]

    def _ragged(self, line: int, n: int) -> ValueError:
        first = "the header names" if self.header else "the first line has"
        fields = f"{n} field{'s' * (n != 1)}"
        problem = f"{self.path}, line {line}: {fields}, but {first} {len(self.names)}"
        if n > len(self.names):
            return ValueError(f"{problem}; is a delimiter inside a text not quoted?")
        return OptionError(problem, "is one missing, or the delimiter another", "delimiter", ";")
