"""CSV files, converted once to a file of Arrow's that has no name and goes away by itself."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from kreinlearn.data.sources.base import library
from kreinlearn.data.sources.stored import ArrowTable


class CsvFile:
    """The columns of a CSV file; those in ``texts`` are read as texts, whatever they look like."""

    forward = False

    def __init__(
        self, path: Path, columns: Sequence[str] | None = None, texts: Sequence[str] = (), *,
        delimiter: str = ",", encoding: str = "utf8", header: bool = True,
    ) -> None:  # fmt: skip
        self.path, self.columns, self.encoding = path, columns, encoding
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty: it has no line with the names of columns")
        csv = library("pyarrow.csv")
        self._options = {
            "read_options": csv.ReadOptions(
                encoding=encoding, use_threads=False, autogenerate_column_names=not header
            ),
            "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        }
        pa = library("pyarrow")
        with self._open(dict.fromkeys(texts, pa.string())) as reader:
            fields = list(reader.schema)
        self.schema = pa.schema(
            [f.with_type(pa.float64()) if pa.types.is_null(f.type) else f for f in fields]
        )
        if header and all(_is_float(name) for name in self.schema.names):
            raise ValueError(
                f"the first line of {path} holds numbers, not names of columns; if there are no "
                "names pass table(path, header=False)"
            )

    @cached_property
    def _table(self) -> ArrowTable:
        known = self.schema.names
        return self._converted([n for n in self.columns or known if n in known])

    @property
    def n(self) -> int:
        return self._table.n

    def begin(self, start: int) -> int:
        return start

    def batches(self, names: Sequence[str], begin: int) -> Iterator[Any]:
        there = set(names) <= set(self._table.schema.names)
        return (self._table if there else self._converted(names)).batches(names, begin)

    def _converted(self, names: Sequence[str]) -> ArrowTable:
        """Columns by the types of the first lines; integers may turn out to be other numbers."""
        pa = library("pyarrow")
        types = {name: self.schema.field(name).type for name in names}
        try:
            return ArrowTable(self._written(names, types))
        except ValueError as error:
            if "conversion error to int64" not in str(error):
                raise
        whole = {name: pa.float64() for name, t in types.items() if pa.types.is_integer(t)}
        return ArrowTable(self._written(names, types | whole))

    @contextmanager
    def _open(self, types: Any, include: Sequence[str] = ()) -> Iterator[Any]:
        """Batches as they are parsed; errors name the file."""
        pa, csv = library("pyarrow"), library("pyarrow.csv")
        convert = csv.ConvertOptions(column_types=types, include_columns=list(include))
        try:
            with csv.open_csv(self.path, convert_options=convert, **self._options) as reader:
                yield reader
        except (UnicodeError, pa.ArrowInvalid) as error:
            if isinstance(error, UnicodeError) or "UTF8" in str(error):
                raise ValueError(
                    f"{self.path} is not in {self.encoding} ({error}); name its encoding, "
                    'table(path, encoding="latin-1") say'
                ) from error
            raise ValueError(f"{self.path} cannot be read: {error}") from error

    def _written(self, names: Sequence[str], types: Any) -> Any:
        pa = library("pyarrow")
        with tempfile.TemporaryFile(prefix="kreinlearn-") as file:
            with self._open(types, names) as reader, pa.ipc.new_file(file, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).read_all()


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
