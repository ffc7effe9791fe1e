"""Parquet and Arrow files, and the tables and datasets of pyarrow: columns as record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.source import BATCH, Array, Stream
from kreinlearn.data.table import Columns, Kind
from kreinlearn.data.tiles import library

BUFFER = 2**20  # bytes of a column that are read at a time
Schema = Any  # pyarrow is optional, and has no types
RecordBatch = Any


class Piece(NamedTuple):
    """Rows that can be read without those before them: a row group, a part of a table."""

    n: int  # the number of rows
    read: Callable[[list[str]], Iterator[RecordBatch]]  # columns by name


class ArrowColumns(Columns):
    """Columns that come in record batches, a piece at a time."""

    def __init__(self, origin: str, schema: Schema, pieces: Sequence[Piece]) -> None:
        self.origin, self.schema, self.names = origin, schema, list(schema.names)
        self.pieces = pieces
        self.starts = np.cumsum([0, *(piece.n for piece in pieces)])  # and the end of the last one
        self.n = int(self.starts[-1])

    def _piece(self, row: int) -> int:
        return max(0, int(np.searchsorted(self.starts, row, "right")) - 1)

    def begin(self, start: int) -> int:
        """Return the row at or before ``start`` from which batches can begin."""
        return int(self.starts[self._piece(start)])

    def batches(self, names: Sequence[str], begin: int) -> Iterator[RecordBatch]:
        """Read record batches of some columns from row ``begin`` on, in order."""
        for piece in self.pieces[self._piece(begin) :]:
            yield from piece.read(list(names))

    def kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        types = {name: self.schema.field(name).type for name in names}
        return {name: Kind(_kind(one), str(one)) for name, one in types.items()}

    def numbers(self, names: Sequence[str]) -> Stream:
        rows = partial(self._rows, names, _numbers_of)
        return Stream((self.n, len(names)), np.float64, rows, self.begin)

    def objects(self, name: str) -> Stream:
        return Stream((self.n,), object, partial(self._rows, [name], _objects_of), self.begin)

    def _rows(
        self, names: Sequence[str], decode: Callable[[RecordBatch], Array], begin: int
    ) -> Iterator[Array]:
        return map(decode, self.batches(names, begin))

    def blocks(self, names: Sequence[str]) -> Iterator[list[list[Any]]]:
        for batch in self.batches(names, 0):
            yield [column.to_pylist() for column in batch.columns]

    def frame(self, names: Sequence[str], require: Callable[[int], None]) -> Any:
        batches, size = [], 0
        for batch in self.batches(names, 0):
            size += batch.nbytes
            require(2 * size)
            batches.append(batch)
        pa = library("pyarrow")
        return pa.Table.from_batches(batches, pa.schema([self.schema.field(one) for one in names]))


def _kind(one: Any) -> str:
    types = library("pyarrow").types
    if any(is_it(one) for is_it in (types.is_floating, types.is_integer, types.is_boolean,
                                    types.is_decimal)):  # fmt: skip
        return "number"
    if types.is_temporal(one):
        return "date"
    return "category" if types.is_dictionary(one) else "text"


def _numbers_of(batch: RecordBatch) -> Array:
    """Return the (b, d) numbers of a record batch, with NaN where one is missing."""
    pa = library("pyarrow")
    rows = np.empty((batch.num_rows, batch.num_columns))
    for j, column in enumerate(batch.columns):
        if column.null_count or pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, j] = column.to_numpy(zero_copy_only=False)
    return rows


def _objects_of(batch: RecordBatch) -> Array:
    return np.fromiter(batch.column(0).to_pylist(), dtype=object, count=batch.num_rows)


# Where batches come from


def columns_of(table: Any, origin: str) -> ArrowColumns:
    """Return the columns of a table in Arrow's memory, which may be that of a mapped file."""
    batches = table.to_batches(max_chunksize=BATCH)
    pieces = [Piece(batch.num_rows, partial(_of_batch, batch)) for batch in batches]
    return ArrowColumns(origin, table.schema, pieces)


def _of_batch(batch: RecordBatch, names: list[str]) -> Iterator[RecordBatch]:
    yield batch.select(names)


def dataset_of(dataset: Any, origin: str) -> ArrowColumns:
    """Return the columns of a dataset; that of whole Parquet files is read by row groups."""
    pieces = [Piece(int(dataset.count_rows()), partial(_scanned, dataset))]
    kind = getattr(getattr(dataset, "format", None), "default_extname", "")
    if kind == "parquet":
        try:
            fragments = list(dataset.get_fragments())
        except ValueError:  # it is filtered
            pass
        else:
            pieces = [one for part in fragments for one in _row_groups(dataset, part)]
    return ArrowColumns(origin, dataset.schema, pieces)


def _scanned(dataset: Any, names: list[str]) -> Iterator[RecordBatch]:
    yield from dataset.scanner(
        columns=names, batch_size=BATCH, batch_readahead=1, fragment_readahead=1, use_threads=False
    ).to_batches()


def _row_groups(dataset: Any, fragment: Any) -> list[Piece]:
    """Return the row groups of a file, whose folders may say more, such as year=2020."""
    keys = library("pyarrow.dataset").get_partition_keys(fragment.partition_expression)
    there = {field.name: field.type for field in fragment.physical_schema}
    for field in dataset.schema:
        found = there.get(field.name, "missing")
        if field.name not in keys and found != field.type:
            raise ValueError(
                f"column {field.name!r} is {field.type} in the first file and {found} in "
                f"{fragment.path}; write the files alike"
            )
    return [
        Piece(group.num_rows, partial(_of_row_group, dataset, fragment, group.id, keys))
        for group in fragment.row_groups
    ]


def _of_row_group(
    dataset: Any, fragment: Any, number: int, keys: dict[str, Any], names: list[str]
) -> Iterator[RecordBatch]:
    """Decode a row group one batch at a time, whatever its size."""
    pa, pq = library("pyarrow"), library("pyarrow.parquet")
    inside = [name for name in names if name not in keys]
    with dataset.filesystem.open_input_file(fragment.path) as file:
        whole = pq.ParquetFile(
            file, metadata=fragment.metadata, pre_buffer=False, buffer_size=BUFFER
        )
        for batch in whole.iter_batches(BATCH, [number], inside, use_threads=False):
            for name in keys.keys() & set(names):
                field = dataset.schema.field(name)
                batch = batch.append_column(field, pa.array([keys[name]] * len(batch), field.type))
            yield batch.select(names)


def parquet_at(path: Path) -> ArrowColumns:
    """Open a Parquet file, or a folder of them."""
    pa, ds = library("pyarrow"), library("pyarrow.dataset")
    try:
        return dataset_of(ds.dataset(str(path), format="parquet", partitioning="hive"), str(path))
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error


def arrow_at(path: Path) -> ArrowColumns:
    """Map an Arrow or Feather file."""
    pa = library("pyarrow")
    try:
        whole = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return columns_of(whole, str(path))
