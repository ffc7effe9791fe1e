"""The values of a store: blocks that are written once, in checksummed chunks of a zarr array."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.writing import sync
from kreinlearn.kernels._base import Array
from kreinlearn.kernels._missing import block_at
from kreinlearn.kernels._objects import library
from kreinlearn.pairs.store.folder import Entry, Folder, write_whole
from kreinlearn.pairs.store.index import Block, Index, Numbers, as_runs, from_runs

CHUNK = 2**17  # values: a tile of 2,048 rows x 64 columns
WAIT = (2.0, 60.0)  # seconds between commits: at least, at most
WAIT_SHARE = 0.01  # of the time since the store was opened
OWN = -(2**62)  # the column of k(x, x)
HELD = 2**23  # values that wait in memory for the next commit


class Values:
    """Kernel values by pairs of row numbers; what is new is kept, and committed from time to time.

    A block is in the log when its chunks are on the disk. Nothing is ever written again to a
    chunk that the log names.
    """

    def __init__(self, folder: Folder, entries: list[Entry]) -> None:
        self.folder = folder
        self._index, self._pending = Index(), list[Block]()
        self._sets: dict[bytes, tuple[int, Numbers]] = {}  # of columns
        self._named: set[int] = set()  # sets that are in the log
        self._lost: set[int] = set()  # chunks
        self._lock, self._writing = threading.Lock(), threading.Lock()
        chunk, number = self._read_log(entries)
        self._chunks, self._set_numbers = count(chunk), count(number)
        self._array = self._opened()
        self._chunk = int(self._array.chunks[0])
        self._opened_at = self._committed_at = time.monotonic()
        self._failed = False

    # What is there

    def known(self, rows: Array, columns: Array, *, mirror: bool) -> tuple[Array, str] | None:
        """Values with NaN where there is none, and their type; None if nothing is known."""
        with self._lock:
            overlaps = self._index.overlaps(rows, columns, mirror)
        if not overlaps:
            return None
        K, kinds = np.full((len(rows), len(columns)), np.nan), set[str]()
        for block, wanted, here, mirrored in overlaps:
            missing = np.isnan(K[block_at(*wanted)]) if kinds else np.True_
            if missing.any():
                part = self._part(block, *here)
                part = part.T if mirrored else part
                K[block_at(*wanted)] = np.where(missing, part, K[block_at(*wanted)])
                kinds.add(block.kind)
        return None if np.isnan(K).all() else (K, max(kinds))

    def _part(self, block: Block, i: Array, j: Array) -> Array:
        values = block.values
        if values is not None:
            return np.asarray(values[block_at(i, j)])
        first, last = int(i.min()), int(i.max()) + 1
        return np.asarray(self._read(block, first, last)[block_at(i - first, j)])

    def _read(self, block: Block, first: int, last: int) -> Array:
        """Rows first..last of a block; NaN where a chunk is damaged."""
        width = len(block.columns)
        start = block.chunk * self._chunk + first * width
        stop = start + (last - first) * width
        chunks = range(start // self._chunk, -(-stop // self._chunk))
        found = None
        if self._lost.isdisjoint(chunks):
            with suppress(Exception):  # whatever zarr or a codec finds wrong
                found = np.asarray(self._array[start:stop])
        if found is None or np.isnan(found.sum()):
            found = np.full(stop - start, np.nan)
            for chunk in chunks:
                lo, hi = max(start, chunk * self._chunk), min(stop, (chunk + 1) * self._chunk)
                found[lo - start : hi - start] = self._read_chunk(chunk, lo, hi)
        return found.reshape(last - first, width)

    def _read_chunk(self, chunk: int, start: int, stop: int) -> Any:
        if chunk in self._lost:
            return np.nan
        with suppress(Exception):
            found = np.asarray(self._array[start:stop])
            if not np.isnan(found).any():
                return found
        with self._lock:
            self._lost.add(chunk)
        with self._writing:
            self.folder.append([{"lost": chunk}])
        warn(
            f"block {chunk} of the store {str(self.folder.path)!r} is damaged or gone; its kernel "
            "values are evaluated again"
        )
        return np.nan

    def sample(self, n: int) -> Iterator[tuple[int, int, float]]:
        """Some pairs of rows, and their values: from blocks far apart."""
        held = [b for b in self._index.blocks if b.rows.span[0] >= 0 and b.columns.span[0] >= 0]
        for k in np.linspace(0, len(held) - 1, n if held else 0).astype(int):
            block = held[k]
            i, j = (len(part) * (k + 1) // (len(held) + 1) for part in (block.rows, block.columns))
            value = self._part(block, np.array([i]), np.array([j]))[0, 0]
            if not np.isnan(value):
                yield int(block.rows.numbers[i]), int(block.columns.numbers[j]), float(value)

    @property
    def greatest(self) -> int:
        """The greatest number of a row or column, -1 if there is none."""
        return max([-1, *(max(b.rows.span[1], b.columns.span[1]) for b in self._index.blocks)])

    @property
    def least(self) -> int:
        spans = (min(b.rows.span[0], b.columns.span[0]) for b in self._index.blocks)
        return min([0, *(number for number in spans if number != OWN)])

    # What is new

    def keep(self, rows: Array, columns: Array, K: Array) -> None:
        """Values to be written; NaN would say that there is none, and is left to its caller."""
        if np.isnan(K.sum()) and np.isnan(K).any():
            return
        kind = "f4" if K.dtype == np.float32 else "f8"
        values = np.array(K, dtype=np.float64)
        with self._lock:
            block = Block(Numbers(rows), self._set(columns)[1], kind, values)
            self._index.add(block)
            self._pending.append(block)
            held = sum(block.size for block in self._pending)
            now = time.monotonic()
            wait = np.clip(WAIT_SHARE * (now - self._opened_at), *WAIT)
            due = held >= HELD or now - self._committed_at >= wait
        if due:
            self.commit()

    def commit(self) -> None:
        """What is pending is on the disk, and in the log, when this returns."""
        with self._writing:
            with self._lock:
                pending, self._pending = self._pending, []
                self._committed_at = time.monotonic()
            if not pending or self._failed:
                return
            try:
                self._write(pending)
            except OSError as error:
                self._failed = True  # a full disk: what is in the log stays
                error.add_note(
                    f"what was written before is kept in the store {str(self.folder.path)!r}; make "
                    "room, and fit again with it to go on from there"
                )
                raise
            except BaseException:
                with self._lock:
                    self._pending = pending + self._pending
                raise

    def _write(self, pending: list[Block]) -> None:
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
        """Writes a block to chunks of its own; what the log says of it."""
        assert block.values is not None
        chunks = [next(self._chunks) for _ in range(-(-block.size // self._chunk))]
        block.chunk = chunks[0]
        whole = np.full(len(chunks) * self._chunk, np.nan)  # or zarr would read what was there
        whole[: block.size] = block.values.ravel()
        start = block.chunk * self._chunk
        self._array[start : start + len(whole)] = whole
        for chunk in chunks:
            sync(self.folder.path / "values" / "c" / str(chunk))
        number, columns = self._set(block.columns.numbers)
        if number not in self._named | named:
            named.add(number)
            yield {"columns": number, "numbers": as_runs(columns.numbers)}
        yield {
            "block": block.chunk, "chunks": len(chunks), "type": block.kind,
            "columns": number, "rows": as_runs(block.rows.numbers),
        }  # fmt: skip

    def close(self) -> None:
        try:
            self.commit()
        finally:
            self.folder.close()

    # Opening

    def _set(self, columns: Array) -> tuple[int, Numbers]:
        """A set of columns by its number; blocks share it."""
        key = np.asarray(columns, dtype=np.int64).tobytes()
        if key not in self._sets:
            self._sets[key] = next(self._set_numbers), Numbers(columns)
        return self._sets[key]

    def _read_log(self, entries: list[Entry]) -> tuple[int, int]:
        """Takes in what the log names; the first chunk and the first number of a set to come."""
        by_number: dict[int, Numbers] = {}
        free = number = 0
        for entry in entries:
            number = max(number, entry.get("columns", -1) + 1)
            if "lost" in entry:
                self._lost.add(entry["lost"])
            elif "numbers" in entry:
                numbers = from_runs(entry["numbers"])
                by_number[entry["columns"]] = columns = Numbers(numbers)
                self._sets[numbers.tobytes()] = entry["columns"], columns
                self._named.add(entry["columns"])
            elif "block" in entry:
                free = max(free, entry["block"] + entry["chunks"])
                if entry["columns"] in by_number:  # else that line is damaged
                    rows = Numbers(from_runs(entry["rows"]))
                    columns = by_number[entry["columns"]]
                    self._index.add(Block(rows, columns, entry["type"], None, entry["block"]))
        return free, number

    def _opened(self) -> Any:
        """The zarr array; its description is written anew if a kill came before it was whole."""
        zarr = library("zarr", "scale")
        path = self.folder.path / "values"
        (path / "c").mkdir(parents=True, exist_ok=True)
        for partial in path.glob("**/*.partial"):  # of a write that was killed
            partial.unlink(missing_ok=True)
        with suppress(Exception):
            return zarr.open_array(str(path), mode="r+", zarr_format=3, config=CONFIG)
        write_whole(path / "zarr.json", _array_description(zarr))
        return zarr.open_array(str(path), mode="r+", zarr_format=3, config=CONFIG)


CONFIG = {"write_empty_chunks": True}


def _array_description(zarr: Any) -> str:
    """As long as need be: chunks that are not written take no room."""
    codecs, found = zarr.codecs, dict[str, Any]()
    fast = codecs.BloscCodec(cname="lz4", clevel=1, shuffle="shuffle")
    zarr.create_array(
        zarr.storage.MemoryStore(found), shape=(CHUNK * 2**40,), chunks=(CHUNK,), dtype="float64",
        fill_value=np.nan, zarr_format=3, compressors=[fast, codecs.Crc32cCodec()],
    )  # fmt: skip
    return str(found["zarr.json"].to_bytes().decode())


def _merged(pending: list[Block]) -> list[Block]:
    """Blocks of the same columns as one."""
    groups: dict[tuple[int, str], list[Block]] = {}
    for block in pending:
        groups.setdefault((id(block.columns), block.kind), []).append(block)
    return [
        Block(
            Numbers(np.concatenate([block.rows.numbers for block in group])),
            group[0].columns,
            group[0].kind,
            np.concatenate([block.values for block in group if block.values is not None]),
        )
        for group in groups.values()
    ]
