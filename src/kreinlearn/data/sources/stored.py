"""Record batches of Parquet files, of datasets, and of tables in Arrow's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.sources.base import BATCH, library

BUFFER = 2**20  # bytes read of a column at a time


class ArrowTable:
    """A table in Arrow's memory, which may be that of a mapped file."""

    forward = False

    def __init__(self, table: Any) -> None:
        self.table, self.schema, self.n = table, table.schema, table.num_rows

    def begin(self, start: int) -> int:
        return start

    def batches(self, names: Sequence[str], begin: int) -> Iterator[Any]:
        yield from self.table.select(list(names)).slice(begin).to_reader(max_chunksize=BATCH)


class Dataset:
    """A dataset that is not plain Parquet: whatever Arrow makes of it, from its first row."""

    forward = True

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.schema, self.n = dataset, dataset.schema, dataset.count_rows()

    def begin(self, start: int) -> int:
        return 0

    def batches(self, names: Sequence[str], begin: int) -> Iterator[Any]:
        scanner = self.dataset.scanner(
            columns=list(names), batch_size=BATCH, batch_readahead=1, fragment_readahead=1,
            use_threads=False,
        )  # fmt: skip
        yield from scanner.to_batches()


class Group(NamedTuple):
    """A row group of a file, and what the names of its folders say: year=2020."""

    path: str
    number: int
    keys: dict[str, Any]


class RowGroups:
    """Reading begins at any row group, which is decoded a batch at a time, however large it is."""

    forward = True
    starts: Any  # of the groups, and the end of the last

    @property
    def n(self) -> int:
        return int(self.starts[-1])

    def begin(self, start: int) -> int:
        return int(self.starts[self._group(start)])

    def _group(self, row: int) -> int:
        last = len(self.starts) - 1
        return max(0, min(int(np.searchsorted(self.starts, row, "right")) - 1, last))


class OpenParquet(RowGroups):
    """A file that somebody else has opened, and will close."""

    def __init__(self, file: Any) -> None:
        self.file, self.schema, metadata = file, file.schema_arrow, file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.starts = np.cumsum([0, *sizes])

    def batches(self, names: Sequence[str], begin: int) -> Iterator[Any]:
        groups = list(range(self._group(begin), len(self.starts) - 1))
        for batch in self.file.iter_batches(BATCH, groups, list(names), use_threads=False):
            yield batch.select(list(names))


class ParquetFiles(RowGroups):
    """Files of one dataset, in its order."""

    def __init__(self, dataset: Any) -> None:
        self.filesystem, self.schema = dataset.filesystem, dataset.schema
        ds, self.groups, sizes = library("pyarrow.dataset"), [], [0]
        for fragment in dataset.get_fragments():
            keys = ds.get_partition_keys(fragment.partition_expression)
            file = self._open(fragment.path)
            self._require_same(fragment.path, file.schema_arrow, keys)
            for number in range(file.metadata.num_row_groups):
                self.groups.append(Group(fragment.path, number, keys))
                sizes.append(file.metadata.row_group(number).num_rows)
            file.close()
        self.starts = np.cumsum(sizes)

    def _open(self, path: str) -> Any:
        file = self.filesystem.open_input_file(path)
        pq = library("pyarrow.parquet")
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)

    def _require_same(self, path: str, schema: Any, keys: dict[str, Any]) -> None:
        for field in self.schema:
            if field.name in keys:
                continue
            there = schema.field(field.name).type if field.name in schema.names else "missing"
            if there != field.type:
                raise ValueError(
                    f"column {field.name!r} is {field.type} in the first file and {there} in "
                    f"{path}; write the files alike"
                )

    def batches(self, names: Sequence[str], begin: int) -> Iterator[Any]:
        groups = self.groups[self._group(begin) :]
        for path in dict.fromkeys(group.path for group in groups):
            mine = [group for group in groups if group.path == path]
            file = self._open(path)
            try:
                inside = [name for name in names if name not in mine[0].keys]
                numbers = [group.number for group in mine]
                for batch in file.iter_batches(BATCH, numbers, inside, use_threads=False):
                    yield self._with_keys(batch, names, mine[0].keys)
            finally:
                file.close()

    def _with_keys(self, batch: Any, names: Sequence[str], keys: dict[str, Any]) -> Any:
        if batch.schema.names == list(names):
            return batch
        pa = library("pyarrow")
        columns = [
            pa.array([keys[name]] * batch.num_rows, self.schema.field(name).type)
            if name in keys
            else batch.column(name)
            for name in names
        ]
        return pa.record_batch(columns, names=list(names))


def dataset_of(dataset: Any) -> Any:
    """A dataset as batches; one of Parquet files that is not filtered, by their row groups."""
    ds = library("pyarrow.dataset")
    files = isinstance(dataset, ds.FileSystemDataset)
    if files and dataset.format.default_extname == "parquet" and _is_whole(dataset):
        return ParquetFiles(dataset)
    return Dataset(dataset)


def _is_whole(dataset: Any) -> bool:
    try:
        dataset.get_fragments()
    except ValueError:  # it is filtered
        return False
    return True


def parquet(path: Path) -> ParquetFiles:
    """A Parquet file, or a folder of them."""
    pa, ds = library("pyarrow"), library("pyarrow.dataset")
    try:
        dataset = ds.dataset(str(path), format="parquet", partitioning="hive")
        found = ParquetFiles(dataset)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    if not found.groups and path.is_dir():
        raise ValueError(f"the folder {path} holds no rows: it has no Parquet files, or empty ones")
    return found
