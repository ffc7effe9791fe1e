"""Rows of any input by number, in tiles: arrays, sparse matrices, memory maps, lists of objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

TILE = 2048  # rows; fixed, by global row number, so that sums do not depend on memory or threads
MOST_TILES = 8  # that are evaluated at once, where rows have few columns and kernel values
AT_ONCE = 128  # numbers in a row, times tiles: 2 MB, which fit in cache


class Source:
    """Rows that are read when they are wanted, by any thread: numbers (n, d), or objects (n,).

    A slice, or row numbers, give an array of ``dtype`` or a list of objects.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # object, if rows are objects
    anywhere = False  # whether several threads can read at once, each at a place of its own

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
    """Consecutive rows of an input that has been validated as a whole."""

    def __init__(self, X: Any, start: int, stop: int) -> None:
        self.X, self.start = X, start
        self.shape = (stop - start, *getattr(X, "shape", (0,))[1:])
        self.anywhere = getattr(X, "anywhere", True)
        self.dtype = getattr(X, "dtype", np.dtype(object))

    def __getitem__(self, span: slice) -> Any:
        start, stop, _ = span.indices(len(self))
        return self.X[self.start + start : self.start + stop]

    def take(self, numbers: Any) -> Any:
        return take(self.X, self.start + np.asarray(numbers))


def in_turn(X: Any) -> bool:
    """Whether rows can only be read from beginning to end, by one thread at a time."""
    return isinstance(X, Source) and not X.anywhere


def length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(X: Any, indices: Any) -> Any:
    """Return rows of X by number, in the given order; a list of objects stays a list."""
    if isinstance(X, Source):
        return X.take(indices)
    if isinstance(X, np.ndarray) and is_everything(indices, len(X)):
        return np.ascontiguousarray(X)  # X itself, unless it is laid out in another order
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[np.asarray(indices)]
    return [X[int(i)] for i in indices]


def is_everything(numbers: Any, n: int) -> bool:
    """Whether numbers of rows or columns are 0, 1, ..., n - 1: nothing needs to be copied then."""
    return len(numbers) == n and bool(np.array_equal(numbers, np.arange(n)))


def row_bytes(X: Any) -> int:
    """Return the bytes that reading a row copies: none for an array or list in memory."""
    if not isinstance(X, Source):
        return 0
    return X.dtype.itemsize * int(np.prod(X.shape[1:]))


def among(numbers: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Tell which of some numbers are in a sorted array."""
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.asarray(known[at] == numbers)


def block_rows(*widths: int) -> int:
    """How many rows are evaluated at once: several tiles, if these need no more room than one.

    ``widths`` are the numbers of columns, of kernel values and of targets of a row. If they are
    small, most of the time would be spent between one tile and the next.
    """
    return TILE * min(max(AT_ONCE // max(widths), 1), MOST_TILES)


def tiles_without(
    start: int, stop: int, known: np.ndarray, size: int = TILE
) -> Iterator[np.ndarray]:
    """Give the row numbers of each tile of start..stop that are not in the sorted ``known``.

    With another ``size``, which is that of several tiles, these are taken together.
    """
    for first in range(start, stop, size):
        last = min(first + size, stop)
        inside = known[slice(*np.searchsorted(known, [first, last]))]
        if not len(inside):
            yield np.arange(first, last)
        elif len(inside) < last - first:
            yield np.delete(np.arange(first, last), inside - first)


Order = Callable[[np.ndarray], np.ndarray]  # sorts the row numbers of a tile
Read = Callable[[], tuple[np.ndarray, Any]]  # the numbers of a block, in order, and its objects


def row_blocks(
    X: Any, known: np.ndarray, order: Order | None = None, first: int = 0, size: int = TILE
) -> Iterator[tuple[np.ndarray, Any]]:
    """Give the numbers and the objects of each fixed tile of X, without the rows in ``known``.

    The first row of X, which begins a tile, has the number ``first``.
    """
    return (read() for _, read in blocks_to_read(X, known, order, first, size))


def blocks_to_read(
    X: Any, known: np.ndarray, order: Order | None = None, first: int = 0, size: int = TILE
) -> Iterator[tuple[int, Read]]:
    """Give the first row number of each block, and ``read``, by which any thread gets the block.

    What can only be read from beginning to end is read here, and sorted when ``read`` is called.
    """
    for numbers in tiles_without(first, first + length(X), known, size):
        start, rows, begin = int(numbers[0]), X, first
        if in_turn(X):
            rows, begin = X[start - first : int(numbers[-1]) + 1 - first], start
        yield start, partial(_in_order, rows, begin, numbers, order)


def _in_order(
    X: Any, first: int, numbers: np.ndarray, order: Order | None
) -> tuple[np.ndarray, Any]:
    ordered = numbers if order is None else order(numbers)
    return ordered, _objects_at(X, ordered - first)


def _objects_at(X: Any, places: np.ndarray) -> Any:
    neighbours = len(places) == places[-1] - places[0] + 1 and (np.diff(places) == 1).all()
    return X[int(places[0]) : int(places[-1]) + 1] if neighbours else take(X, places)


class Scratch(threading.local):
    """One buffer per worker for the kernel values of a block, if the kernel can write to one."""

    def __init__(self, useful: bool, n_rows: int = TILE) -> None:
        self.useful, self.n_rows = useful, n_rows
        self.buffer: np.ndarray | None = None

    def get(self, A: Any, n_columns: int) -> np.ndarray | None:
        if not self.useful or getattr(A, "dtype", None) != np.float64:
            return None
        if self.buffer is None or self.buffer.shape[1] != n_columns:
            self.buffer = np.empty((self.n_rows, n_columns))
        return self.buffer


def objects_of(X: Any) -> Sequence[Any]:
    """Return a sequence of objects as a list, without making an array of two dimensions."""
    if isinstance(X, list):
        return X
    for name in ("to_list", "to_pylist"):  # a pandas or polars column, a pyarrow array
        if hasattr(X, name):
            return list(getattr(X, name)())
    return list(X)


def first_not_finite(K: Any) -> tuple[int, int, str] | None:
    """Return the row, column and kind ("NaN" or "inf") of the first such entry, if there is one."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(K.sum()):
            return None
    finite = np.isfinite(K)
    if finite.all():  # the sum overflowed
        return None
    i, j = np.unravel_index(int(np.argmin(finite)), K.shape)
    return int(i), int(j), "NaN" if np.isnan(K[i, j]) else "inf"


def library(module: str, extra: str = "scale", package: str = "") -> Any:
    """Import a module of an optional package; an ImportError names the extra that installs it.

    ``package`` is the name by which it is installed, if that is not the name of the module.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        missing = package or name
        raise ImportError(
            f"this needs {missing}, which is not installed: install {missing}, or the extra "
            f'"{extra}" of kreinlearn, as by pip install "kreinlearn[{extra}]"',
            name=name,
        ) from error
