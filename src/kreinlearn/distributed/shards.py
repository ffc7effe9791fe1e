"""Kernel values of rows on workers in a store: one shard for each span, written where its rows are.

A store of a dask collection is a folder that all workers see. The folder ``here`` in it has the
values that the client evaluates, and ``rows-0-4096`` those of such rows and any landmarks. Each is
a store by itself, with a lock, a log and checksums, so that a run that is killed as a whole goes on
from what is there. Rows of a shard are known by their number and fingerprint, landmarks and all
rows that come to the client by their fingerprint alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Array, Columns, Kernel, Objects
from kreinlearn.pairs.rows import Rows
from kreinlearn.pairs.store.blocks import StoredBlocks
from kreinlearn.pairs.store.evaluation import Stored, StoredColumns
from kreinlearn.pairs.store.fingerprints import description
from kreinlearn.pairs.store.folder import StoreInUse
from kreinlearn.pairs.store.opening import (
    OutsideNames,
    opened_blocks,
    require_same_values,
    stored,
)

HERE = "here"  # the folder of what the client evaluates
LEFT_HERE = ("stored", "_columns")  # what is not sent to workers


@contextmanager
def store_of(path: str | PathLike[str], kernel: Kernel, rows: Rows) -> Iterator[StoredInShards]:
    """The store of a dask collection."""
    folder = Path(path).absolute()  # workers may run in another folder
    if (folder / "run.json").exists():
        raise ValueError(
            f"store={str(folder)!r} was written by a fit of rows in memory or in a file, and rows "
            "of a dask collection have a store of another form; pass another path"
        )
    with opened_blocks(folder / HERE, kernel, []) as (blocks, names):
        yield StoredInShards(folder, blocks, kernel, rows, names)


class StoredInShards(Stored):
    """What the client evaluates, stored by objects; what workers evaluate goes to shards."""

    def __init__(
        self, folder: Path, blocks: StoredBlocks, kernel: Kernel, rows: Rows, known: OutsideNames
    ) -> None:
        super().__init__(blocks, kernel, np.empty(0, dtype=np.int64))
        self.folder, self.rows, self.known = folder, rows, known
        self.described = description(kernel)
        self._names, self._naming = dict[int, int](), threading.Lock()
        self._doubted = blocks.least < 0  # values of an earlier fit, of which none was looked at

    def names(self, numbers: Array) -> Array:
        with self._naming:  # threads ask for names
            new = np.array([i for i in np.unique(numbers).tolist() if i not in self._names], int)
            if len(new):
                names = self.known.of(self.rows.take(new)).tolist()
                self._names.update(zip(new.tolist(), names, strict=True))
                self._look_at_values()
            return np.array([self._names[i] for i in numbers.tolist()], dtype=np.int64)

    def _look_at_values(self) -> None:
        """Refuse the store if a user's function has changed, once it has values of named rows."""
        if self._doubted:
            numbers = np.sort(np.array(list(self._names)))
            names = np.array([self._names[i] for i in numbers.tolist()])
            Z = self.rows.take(numbers)
            self._doubted = not require_same_values(self.blocks, self.kernel, [], names, Z)

    def columns(self, columns: Columns, Z: Objects, numbers: Array) -> ShardedColumns:
        return ShardedColumns(self, columns, Z, numbers)


class ShardedColumns(StoredColumns):
    """From numbered rows to k(A, Z): here by way of the client's store, on workers of a shard."""

    def __init__(
        self, stored: StoredInShards, columns: Columns, Z: Objects, numbers: Array
    ) -> None:
        super().__init__(stored, columns, Z, stored.names(numbers))
        self.folder, self.described = stored.folder, stored.described
        self.kernel, self.columns = stored.kernel, columns

    def __getstate__(self) -> dict[str, Any]:
        """What workers need: the client's files stay where they are."""
        return {name: value for name, value in vars(self).items() if name not in LEFT_HERE}

    @contextmanager
    def shard(self, start: int, A: Objects) -> Iterator[Callable[..., Array] | None]:
        """The same for the rows A of a span; None if another process holds its shard."""
        stop, m = start + length(A), length(self.Z)
        path = self.folder / f"rows-{start}-{stop}"
        with ExitStack() as stack:
            columns = None
            with suppress(StoreInUse):  # a worker that is thought to be lost may still be at work
                opened = stack.enter_context(stored(path, self.kernel, A, self.Z, self.described))
                columns = opened.columns(self.columns, self.Z, np.arange(-m, 0))
            yield None if columns is None else partial(_of_span, columns, start)


def _of_span(
    columns: StoredColumns, start: int, numbers: Array, A: Objects, out: Array | None = None
) -> Array:
    """The values of rows that are numbered from the first row of a span on."""
    return columns(numbers - start, A, out)
