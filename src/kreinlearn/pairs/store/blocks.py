"""The blocks of a store: values are written once, in checksummed chunks of a zarr array."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from kreinlearn._system import sync
from kreinlearn._warnings import warn
from kreinlearn.data.tiles import library
from kreinlearn.kernels.base import Array
from kreinlearn.kernels.missing import block_at
from kreinlearn.pairs.rows import STORED
from kreinlearn.pairs.store.folder import Entry, Folder
from kreinlearn.pairs.store.index import Block, Index, Numbers, as_spans, from_spans

CHUNK = 2**17  # values in a chunk: a tile of 2,048 rows x 64 columns
WAIT = (2.0, 60.0)  # the least and the most seconds between two commits
WAIT_SHARE = 0.01  # of the time since the store was opened: how long a commit waits in between
OWN = -(2**62)  # the number of a column that holds k(x, x)
MOST_PENDING = 2**23  # so many values in memory are committed at once
CONFIG = {"write_empty_chunks": True}


class StoredBlocks:
    """Kernel values by pairs of row numbers; new ones are committed to disk from time to time.

    A block is named in the log only after its chunks have reached the disk, and a chunk that the
    log names is never written again.
    """

    def __init__(self, folder: Folder, entries: list[Entry]) -> None:
        self.folder = folder
        self._index, self._pending = Index(), list[Block]()
        self._sets: dict[bytes, tuple[int, Numbers]] = {}  # sets of columns, which blocks share
        self._named: set[int] = set()  # numbers of the sets that are in the log
        self._lost: set[int] = set()  # chunks that could not be read
        self._lock, self._writing = threading.Lock(), threading.Lock()
        chunk, number = self._read_log(entries)
        self._chunks, self._set_numbers = count(chunk), count(number)
        self._array = self._opened()
        self._chunk = int(self._array.chunks[0])
        self._opened_at = self._committed_at = time.monotonic()
        self._failed = False

    # Reading

    def read(self, rows: Array, columns: Array, *, mirror: bool) -> Array | None:
        """The stored values of all pairs, NaN for those that are not stored; None if none is.

        With ``mirror`` the value of (z, x) is also that of (x, z).
        """
        with self._lock:
            overlaps = self._index.overlaps(rows, columns, mirror)
        if not overlaps:
            return None
        K = np.full((len(rows), len(columns)), np.nan)
        for block, wanted, here, mirrored in overlaps:
            missing = np.isnan(K[block_at(*wanted)])
            if missing.any():
                part = self._part(block, *here)
                part = part.T if mirrored else part
                K[block_at(*wanted)] = np.where(missing, part, K[block_at(*wanted)])
        return None if np.isnan(K).all() else K

    def _part(self, block: Block, i: Array, j: Array) -> Array:
        """Rows i and columns j of a block, from memory or from the disk."""
        if (values := block.values) is not None:  # a commit may clear it meanwhile
            return np.asarray(values[block_at(i, j)])
        first, last = int(i.min()), int(i.max()) + 1
        return np.asarray(self._read(block, first, last)[block_at(i - first, j)])

    def _read(self, block: Block, first: int, last: int) -> Array:
        """Rows first..last of a block; NaN where a chunk is damaged."""
        width = len(block.columns)
        start = block.chunk * self._chunk + first * width
        stop = start + (last - first) * width
        values = None
        with suppress(Exception):  # whatever zarr or a codec may raise
            values = np.asarray(self._array[start:stop])
        if values is None or np.isnan(values.sum()):
            values = np.full(stop - start, np.nan)
            for chunk in range(start // self._chunk, -(-stop // self._chunk)):
                low, high = max(start, chunk * self._chunk), min(stop, (chunk + 1) * self._chunk)
                values[low - start : high - start] = self._read_chunk(chunk, low, high)
        return values.reshape(last - first, width)

    def _read_chunk(self, chunk: int, start: int, stop: int) -> Array | float:
        """Values start..stop of one chunk.

        If the chunk is damaged they are NaN, and a warning is issued the first time.
        """
        if chunk in self._lost:
            return np.nan
        with suppress(Exception):
            values = np.asarray(self._array[start:stop])
            if not np.isnan(values).any():
                return values
        with self._lock:
            self._lost.add(chunk)
        with self._writing:
            self.folder.append([{"lost": chunk}])
        warn(
            f"block {chunk} of the store {str(self.folder.path)!r} is damaged or gone; its kernel "
            "values will be evaluated again"
        )
        return np.nan

    def sample(self, n: int, outside: Array) -> Iterator[tuple[int, int, float]]:
        """About n pairs with their values, from blocks that are far apart.

        They are pairs of rows of X and of the objects from outside X that have these numbers.
        """
        with self._lock:
            blocks = list(self._index.blocks)
        each = ((b, _known(b.rows, outside), _known(b.columns, outside)) for b in blocks)
        known = [(b, rows, columns) for b, rows, columns in each if len(rows) and len(columns)]
        for k in np.linspace(0, len(known) - 1, n if known else 0).astype(int):
            (block, rows, columns), share = known[k], (k + 1) / (len(known) + 1)
            i, j = rows[int(len(rows) * share)], columns[int(len(columns) * share)]
            value = self._part(block, np.array([i]), np.array([j]))[0, 0]
            if not np.isnan(value):
                yield int(block.rows.numbers[i]), int(block.columns.numbers[j]), float(value)

    @property
    def greatest(self) -> int:
        """The greatest number of a row or column; -1 if no value is stored."""
        return max([-1, *(max(b.rows.span[1], b.columns.span[1]) for b in self._index.blocks)])

    @property
    def least(self) -> int:
        """The least number of a row or column, at most 0."""
        spans = (min(b.rows.span[0], b.columns.span[0]) for b in self._index.blocks)
        return min([0, *(number for number in spans if number != OWN)])

    # Writing

    def add(self, rows: Array, columns: Array, K: Array) -> None:
        """Store values at the next commit; if some are NaN, none is stored."""
        if np.isnan(K.sum()) and np.isnan(K).any():
            return
        values = np.array(K, dtype=np.float64)
        with self._lock:
            block = Block(Numbers(rows), self._set(columns)[1], values)
            self._index.add(block)
            self._pending.append(block)
            pending, now = sum(block.size for block in self._pending), time.monotonic()
            wait = np.clip(WAIT_SHARE * (now - self._opened_at), *WAIT)
            due = pending >= MOST_PENDING or now - self._committed_at >= wait
        if due:
            self.commit()

    def commit(self) -> None:
        """Write all pending values; they are on the disk and in the log when this returns."""
        with self._writing:
            with self._lock:
                pending, self._pending = self._pending, []
                self._committed_at = time.monotonic()
            if not pending or self._failed:
                return
            try:
                self._write(pending)
            except OSError as error:
                self._failed = True  # the disk is full; what is in the log stays valid
                setattr(error, STORED, True)
                error.filename = error.filename or str(self.folder.path)
                error.add_note(
                    f"what was written before is kept in the store {str(self.folder.path)!r}; free "
                    "some disk space and fit again with this store to continue from there"
                )
                raise
            except BaseException:
                with self._lock:
                    self._pending = pending + self._pending
                raise

    def _write(self, pending: list[Block]) -> None:
        """Write blocks to the disk first, and name them in the log after that."""
        merged = _merged(pending)
        named: set[int] = set()
        entries = [entry for block in merged for entry in self._written(block, named)]
        sync(self.folder.path / "values" / "c")
        self.folder.append(entries)
        self._named |= named
        with self._lock:
            self._index.replace(pending, merged)
        for block in merged:
            block.values = None

    def _written(self, block: Block, named: set[int]) -> Iterator[Entry]:
        """Write a block to new chunks, and return the entries of the log that name it."""
        assert block.values is not None
        chunks = [next(self._chunks) for _ in range(-(-block.size // self._chunk))]
        block.chunk = chunks[0]
        whole = np.full(len(chunks) * self._chunk, np.nan)  # zarr would read old values first
        whole[: block.size] = block.values.ravel()
        start = block.chunk * self._chunk
        self._array[start : start + len(whole)] = whole
        for chunk in chunks:
            sync(self.folder.path / "values" / "c" / str(chunk))
        number, columns = self._set(block.columns.numbers)
        if number not in self._named | named:
            named.add(number)
            yield {"columns": number, "numbers": as_spans(columns.numbers)}
        yield {
            "block": block.chunk, "chunks": len(chunks), "columns": number,
            "rows": as_spans(block.rows.numbers),
        }  # fmt: skip

    def close(self) -> None:
        """Commit what is pending, and release the folder."""
        try:
            self.commit()
        finally:
            self.folder.close()

    # Opening

    def _set(self, columns: Array) -> tuple[int, Numbers]:
        """The number of a set of columns, and the set."""
        key = np.asarray(columns, dtype=np.int64).tobytes()
        if key not in self._sets:
            self._sets[key] = next(self._set_numbers), Numbers(columns)
        return self._sets[key]

    def _read_log(self, entries: list[Entry]) -> tuple[int, int]:
        """Index what the log names; return the first free chunk and the first free set number."""
        by_number: dict[int, Numbers] = {}
        free = number = 0
        for entry in entries:
            number = max(number, entry.get("columns", -1) + 1)
            if "lost" in entry:
                self._lost.add(entry["lost"])
            elif "numbers" in entry:
                numbers = from_spans(entry["numbers"])
                by_number[entry["columns"]] = columns = Numbers(numbers)
                self._sets[numbers.tobytes()] = entry["columns"], columns
                self._named.add(entry["columns"])
            elif "block" in entry:
                free = max(free, entry["block"] + entry["chunks"])
                if entry["columns"] in by_number:  # otherwise that line of the log is damaged
                    rows = Numbers(from_spans(entry["rows"]))
                    columns = by_number[entry["columns"]]
                    self._index.add(Block(rows, columns, None, entry["block"]))
        return free, number

    def _opened(self) -> Any:
        """The zarr array; its description is written anew if it is missing or incomplete."""
        zarr = library("zarr")
        path = self.folder.path / "values"
        (path / "c").mkdir(parents=True, exist_ok=True)
        for partial in path.glob("**/*.partial"):  # left by a process that was killed
            partial.unlink(missing_ok=True)
        with suppress(Exception):
            return zarr.open_array(str(path), mode="r+", zarr_format=3, config=CONFIG)
        (path / "zarr.json").unlink(missing_ok=True)
        fast = zarr.codecs.BloscCodec(cname="lz4", clevel=1, shuffle="shuffle")
        return zarr.create_array(  # a very long one: chunks take no disk space until written
            str(path), shape=(CHUNK * 2**40,), chunks=(CHUNK,), dtype="float64", fill_value=np.nan,
            zarr_format=3, compressors=[fast, zarr.codecs.Crc32cCodec()], config=CONFIG,
        )  # fmt: skip


def _known(numbers: Numbers, outside: Array) -> Array:
    """The places of the rows of X, and of objects from outside X that have the given numbers."""
    if numbers.span[0] >= 0:
        return np.arange(len(numbers))
    return np.flatnonzero((numbers.numbers >= 0) | np.isin(numbers.numbers, outside))


def _merged(pending: list[Block]) -> list[Block]:
    """The same values in fewer blocks: those with the same columns are joined."""
    groups: dict[int, list[Block]] = {}
    for block in pending:
        groups.setdefault(id(block.columns), []).append(block)
    return [
        Block(
            Numbers(np.concatenate([block.rows.numbers for block in group])),
            group[0].columns,
            np.concatenate([block.values for block in group if block.values is not None]),
        )
        for group in groups.values()
    ]
