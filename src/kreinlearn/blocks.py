"""Row blocks of any input: arrays, sparse matrices, memory maps, lists of objects."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

TILE = 2048  # rows; fixed, by global row number, so that sums do not depend on memory or threads
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class Source:
    """Rows read when they are wanted, by any thread: numbers (n, d), or objects (n,).

    A slice or numbers of rows give an array of ``dtype``, or a list of objects.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # object, if rows are objects

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, span: slice) -> Any:
        raise NotImplementedError

    def take(self, numbers: Any) -> Any:
        raise NotImplementedError


class Part(Source):
    """Neighbouring rows of whatever has been validated as a whole."""

    def __init__(self, X: Any, start: int, stop: int) -> None:
        self.X, self.start = X, start
        self.shape = (stop - start, *getattr(X, "shape", (0,))[1:])
        self.dtype = getattr(X, "dtype", np.dtype(object))

    def __getitem__(self, span: slice) -> Any:
        start, stop, _ = span.indices(len(self))
        return rows(self.X, self.start + start, self.start + stop)

    def take(self, numbers: Any) -> Any:
        return take(self.X, self.start + np.asarray(numbers))


def length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(X: Any, indices: Any) -> Any:
    """Rows of X by number, in the given order; a list of objects stays a list."""
    if isinstance(X, Source):
        return X.take(indices)
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[np.asarray(indices)]
    return [X[int(i)] for i in indices]


def row_bytes(X: Any) -> int:
    """Of a row that is copied when it is read: nothing of an array or list in memory."""
    if not isinstance(X, Source):
        return 0
    return X.dtype.itemsize * int(np.prod(X.shape[1:]))


def rows(X: Any, start: int, stop: int) -> Any:
    return X[start:stop]


def among(numbers: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which numbers are in a sorted array."""
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.asarray(known[at] == numbers)


def tiles(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def tiles_without(n: int, known: np.ndarray) -> Iterator[np.ndarray]:
    """Global row numbers of each fixed tile of 0..n, less those in the sorted array ``known``."""
    for start, stop in tiles(n):
        inside = known[np.searchsorted(known, start) : np.searchsorted(known, stop)]
        keep = np.ones(stop - start, dtype=bool)
        keep[inside - start] = False
        if keep.any():
            yield np.flatnonzero(keep) + start


Read = Callable[[], Any]  # the objects of a block


def row_blocks(
    X: Any, known: np.ndarray, order: Callable[[np.ndarray], np.ndarray] | None = None
) -> Iterator[tuple[np.ndarray, Any]]:
    """Numbers and objects of each fixed tile of X, without the rows in ``known``."""
    return ((numbers, read()) for numbers, read in blocks_to_read(X, known, order))


def blocks_to_read(
    X: Any, known: np.ndarray, order: Callable[[np.ndarray], np.ndarray] | None = None
) -> Iterator[tuple[np.ndarray, Read]]:
    """The same, objects being taken when ``read()`` is called; those of a source are read now."""
    for numbers in tiles_without(length(X), known):
        ordered = numbers if order is None else order(numbers)
        read = partial(_objects_at, X, ordered)
        yield ordered, partial(_given, read()) if isinstance(X, Source) else read


def _objects_at(X: Any, numbers: np.ndarray) -> Any:
    neighbours = len(numbers) == numbers[-1] - numbers[0] + 1 and (np.diff(numbers) == 1).all()
    return rows(X, int(numbers[0]), int(numbers[-1]) + 1) if neighbours else take(X, numbers)


def _given(block: Any) -> Any:
    return block


class Scratch(threading.local):
    """A buffer a worker for the kernel values of a tile, where the kernel can write to one."""

    def __init__(self, useful: bool) -> None:
        self.useful = useful
        self.buffer: np.ndarray | None = None

    def get(self, A: Any, n_columns: int) -> np.ndarray | None:
        dtype = getattr(A, "dtype", None)
        if not self.useful or dtype not in (np.float32, np.float64):
            return None
        if self.buffer is None or self.buffer.dtype != dtype or self.buffer.shape[1] != n_columns:
            self.buffer = np.empty((TILE, n_columns), dtype)
        return self.buffer


def objects_of(X: Any) -> Sequence[Any]:
    """A sequence of objects as a list, without coercion to two dimensions."""
    if isinstance(X, list):
        return X
    for name in ("to_list", "to_pylist"):  # a pandas or polars column, a pyarrow array
        if hasattr(X, name):
            return list(getattr(X, name)())
    return list(X)


def first_not_finite(K: Any) -> tuple[int, int, str] | None:
    """Row, column and kind ("NaN" or "inf") of the first such entry of a matrix, if any."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(K.sum()):
            return None
    finite = np.isfinite(K)
    if finite.all():  # the sum overflowed
        return None
    i, j = np.unravel_index(int(np.argmin(finite)), K.shape)
    return int(i), int(j), "NaN" if np.isnan(K[i, j]) else "inf"


def as_generator(random_state: Any) -> np.random.Generator:
    """One Generator from None, an int, a RandomState or a Generator (used as it is)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def free_memory() -> int:
    """Bytes this process may still take without swapping, within its container's limit."""
    free = _system_memory()
    if free is None:
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, OSError, ValueError):
            free = 4 * 2**30
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())  # "max": no limit
        return max(0, min(free, limit - int((group / "memory.current").read_text())))
    except (OSError, ValueError):
        return free


def _system_memory() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"MemAvailable:\s+(\d+)", text)
    return int(found[1]) * 1024 if found else None


def budget_bytes(memory_budget: int | float | str | None) -> int:
    """Bytes from a number, a text such as "200MB" or "4GiB", or None: a quarter of what is free."""
    if memory_budget is None:
        return free_memory() // 4
    if isinstance(memory_budget, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]i?)?b?\s*", memory_budget, re.I)
        if not match:
            raise ValueError(
                f"memory_budget={memory_budget!r} is not understood; "
                'pass bytes, or a text such as "200MB" or "4GiB"'
            )
        return int(float(match[1]) * _UNITS[(match[2] or "").lower()])
    return int(memory_budget)


def in_words(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:  # rounds to three digits
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def require_memory(needed: int, budget: int, what: str, remedy: str) -> None:
    """MemoryError before an allocation that would not fit, never after it."""
    if needed > budget:
        raise MemoryError(
            f"{what} needs {in_words(needed)} but memory_budget is {in_words(budget)}; {remedy}"
        )
