"""Parquet and Arrow files, and the tables and datasets of pyarrow: columns as record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from kreinlearn.data.source import BATCH, Array, Stream
from kreinlearn.data.table import Columns, Kind
from kreinlearn.data.tiles import library

BUFFER = 2**20  # bytes of a column that are read at a time
Schema = Any  # pyarrow is optional, and has no types
RecordBatch = Any


class ArrowColumns(Columns):
    """Columns that come in record batches; a subclass gives ``batches`` and where they begin."""

    def __init__(self, origin: str, schema: Schema) -> None:
        self.origin, self.schema, self.names = origin, schema, list(schema.names)

    def begin(self, start: int) -> int:
        """Return the row at or before ``start`` from which batches can begin."""
        return 0

    def batches(self, names: Sequence[str], begin: int) -> Iterator[RecordBatch]:
        """Read record batches of some columns from row ``begin`` on, in order."""
        raise NotImplementedError

    def kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        types = {name: self.schema.field(name).type for name in names}
        return {name: Kind(_kind(one), str(one)) for name, one in types.items()}

    def numbers(self, names: Sequence[str]) -> Stream:
        pa = library("pyarrow")
        single = all(pa.types.is_float32(self.schema.field(name).type) for name in names)
        dtype = np.dtype(np.float32 if single else np.float64)
        pieces = partial(self._pieces, names, partial(_numbers_of, dtype=dtype))
        return Stream((self.n, len(names)), dtype, pieces, self.begin)

    def objects(self, name: str) -> Stream:
        pieces = partial(self._pieces, [name], _objects_of)
        return Stream((self.n,), object, pieces, self.begin)

    def _pieces(
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
        schema = library("pyarrow").schema([self.schema.field(name) for name in names])
        return library("pyarrow").Table.from_batches(batches, schema)


def _kind(one: Any) -> str:
    types = library("pyarrow").types
    if any(is_it(one) for is_it in (types.is_floating, types.is_integer, types.is_boolean,
                                    types.is_decimal)):  # fmt: skip
        return "number"
    if types.is_temporal(one):
        return "date"
    return "category" if types.is_dictionary(one) else "text"


def _numbers_of(batch: RecordBatch, dtype: DTypeLike) -> Array:
    """Return the (b, d) numbers of a record batch, with NaN where one is missing."""
    pa = library("pyarrow")
    rows = np.empty((batch.num_rows, batch.num_columns), dtype)
    for j, column in enumerate(batch.columns):
        if column.null_count or pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, j] = column.to_numpy(zero_copy_only=False)
    return rows


def _objects_of(batch: RecordBatch) -> Array:
    return np.fromiter(batch.column(0).to_pylist(), dtype=object, count=batch.num_rows)


class ArrowTable(ArrowColumns):
    """A table in Arrow's memory, which may be that of a mapped file."""

    def __init__(self, table: Any, origin: str) -> None:
        super().__init__(origin, table.schema)
        self.table, self.n = table, int(table.num_rows)

    def begin(self, start: int) -> int:
        return start

    def batches(self, names: Sequence[str], begin: int) -> Iterator[RecordBatch]:
        yield from self.table.select(list(names)).slice(begin).to_reader(max_chunksize=BATCH)


class Dataset(ArrowColumns):
    """A dataset that is not plain Parquet: Arrow reads it, always from its first row."""

    def __init__(self, dataset: Any, origin: str) -> None:
        super().__init__(origin, dataset.schema)
        self.dataset, self.n = dataset, int(dataset.count_rows())

    def batches(self, names: Sequence[str], begin: int) -> Iterator[RecordBatch]:
        scanner = self.dataset.scanner(
            columns=list(names), batch_size=BATCH, batch_readahead=1, fragment_readahead=1,
            use_threads=False,
        )  # fmt: skip
        yield from scanner.to_batches()


class RowGroup(NamedTuple):
    """A row group of a file, and what the names of its folders say, such as year=2020."""

    path: str
    number: int
    keys: dict[str, Any]
    n: int  # the number of its rows


class ParquetColumns(ArrowColumns):
    """Reading begins at any row group, which is decoded one batch at a time, whatever its size."""

    def __init__(self, origin: str, schema: Schema, groups: Sequence[RowGroup]) -> None:
        super().__init__(origin, schema)
        self.groups = groups
        self.starts = np.cumsum([0, *(group.n for group in groups)])  # and the end of the last one
        self.n = int(self.starts[-1])

    def open(self, path: str) -> AbstractContextManager[Any]:
        """Open a file, which is closed at the end of the ``with`` block."""
        raise NotImplementedError

    def begin(self, start: int) -> int:
        return int(self.starts[self._group(start)])

    def _group(self, row: int) -> int:
        return max(0, min(int(np.searchsorted(self.starts, row, "right")) - 1, len(self.groups)))

    def batches(self, names: Sequence[str], begin: int) -> Iterator[RecordBatch]:
        groups = self.groups[self._group(begin) :]
        for path, of_file in groupby(groups, attrgetter("path")):
            mine = list(of_file)
            keys, numbers = mine[0].keys, [group.number for group in mine]
            inside = [name for name in names if name not in keys]
            with self.open(path) as file:
                for batch in file.iter_batches(BATCH, numbers, inside, use_threads=False):
                    for name in keys.keys() & set(names):
                        field = self.schema.field(name)
                        values = library("pyarrow").array([keys[name]] * len(batch), field.type)
                        batch = batch.append_column(field, values)
                    yield batch.select(list(names))


class OpenParquet(ParquetColumns):
    """A Parquet file that somebody else has opened, and will close."""

    def __init__(self, file: Any, origin: str) -> None:
        self.file, metadata = file, file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        groups = [RowGroup("", i, {}, size) for i, size in enumerate(sizes)]
        super().__init__(origin, file.schema_arrow, groups)

    def open(self, path: str) -> AbstractContextManager[Any]:
        return nullcontext(self.file)


class ParquetFiles(ParquetColumns):
    """The Parquet files of one dataset, in its order."""

    def __init__(self, dataset: Any, origin: str) -> None:
        self.filesystem, groups = dataset.filesystem, list[RowGroup]()
        ds = library("pyarrow.dataset")
        for fragment in dataset.get_fragments():
            path, keys = fragment.path, ds.get_partition_keys(fragment.partition_expression)
            _require_same(dataset.schema, path, fragment.physical_schema, keys)
            groups += [RowGroup(path, one.id, keys, one.num_rows) for one in fragment.row_groups]
        super().__init__(origin, dataset.schema, groups)

    def open(self, path: str) -> AbstractContextManager[Any]:
        file = self.filesystem.open_input_file(path)
        pq = library("pyarrow.parquet")
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)


def _require_same(first: Schema, path: str, schema: Schema, keys: dict[str, Any]) -> None:
    """Raise a ValueError unless a file has the columns of the first one."""
    for field in first:
        there = schema.field(field.name).type if field.name in schema.names else "missing"
        if field.name not in keys and there != field.type:
            raise ValueError(
                f"column {field.name!r} is {field.type} in the first file and {there} in "
                f"{path}; write the files alike"
            )


def dataset_of(dataset: Any, origin: str) -> ArrowColumns:
    """Return the columns of a dataset; that of whole Parquet files is read by row groups."""
    ds = library("pyarrow.dataset")
    files = isinstance(dataset, ds.FileSystemDataset)
    if files and dataset.format.default_extname == "parquet" and _is_whole(dataset):
        return ParquetFiles(dataset, origin)
    return Dataset(dataset, origin)


def _is_whole(dataset: Any) -> bool:
    try:
        dataset.get_fragments()
    except ValueError:  # it is filtered
        return False
    return True


def parquet_at(path: Path) -> ParquetFiles:
    """Open a Parquet file, or a folder of them."""
    pa, ds = library("pyarrow"), library("pyarrow.dataset")
    try:
        dataset = ds.dataset(str(path), format="parquet", partitioning="hive")
        return ParquetFiles(dataset, str(path))
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error


def arrow_at(path: Path) -> ArrowTable:
    """Map an Arrow or Feather file."""
    pa = library("pyarrow")
    try:
        whole = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return ArrowTable(whole, str(path))
