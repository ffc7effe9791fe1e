"""Rows that are read when they are wanted: checked as they are read, from readers of any kind."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kreinlearn.data.errors import EmptyError
from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import MOST_TILES, TILE, Source, among, first_not_finite

Array = NDArray[Any]
Line = Callable[[int], int | None]  # the line of a text file that holds a row
BATCH = 4 * TILE  # rows decoded at a time
BEHIND = 8 * TILE  # rows that stay in the window: workers ask for rows a little out of order
WINDOW = 2 * BATCH + BEHIND  # rows of a stream in memory
SCATTERED = 2 * TILE  # row numbers that span more rows than this are a sample
SAMPLE_BYTES = 64 * 10**6  # room for sampled rows, if there is no budget
NUMBERS = "fiub"  # kinds of numpy types
OBJECT_BYTES = 200  # a guess at the size of an object in memory


class Reader(Protocol):
    """Rows as they are stored, not checked: numbers of shape (n, d), or objects of shape (n,)."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    window: int  # the number of rows in memory at a time
    anywhere: bool  # whether several threads can read at once, each at a place of its own

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from ``start`` to ``stop``."""

    def pick(self, numbers: Array) -> Array:
        """Return the rows with these numbers, which are sorted and distinct."""


def stored_as(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type of rows: numbers keep theirs, and texts become objects."""
    given = np.dtype(dtype)
    return given if given.kind in NUMBERS else np.dtype(object)


def plain(block: Array) -> Array:
    """Return numbers as they are, and texts as objects."""
    return block.astype(stored_as(block.dtype), copy=False)


def by_tile(numbers: Array) -> list[Array]:
    """Return the places of sorted row numbers, one array per tile."""
    ends = np.flatnonzero(np.diff(numbers // TILE)) + 1
    return np.split(np.arange(len(numbers)), ends) if len(numbers) else []


def require_some(shape: tuple[int, ...], origin: str) -> None:
    """Raise an EmptyError if there are no rows or no columns."""
    if 0 in shape:
        raise EmptyError(shape, origin)


def place(row: int, column: str | int, origin: str, line: Line | None = None) -> str:
    """Say where a value is: "row 3, column 'b' of x.csv (line 5)"."""
    number = None if line is None else line(row)
    name = column if isinstance(column, int) else repr(column)
    return f"row {row}, column {name} of {origin}" + f" (line {number})" * (number is not None)


class ArrayReader:
    """An array in memory, or a memory map that somebody else opened."""

    window, anywhere = TILE, True

    def __init__(self, X: Array) -> None:
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def mapped(self) -> Array:
        return self.X

    def read(self, start: int, stop: int) -> Array:
        return plain(self.mapped()[start:stop])

    def pick(self, numbers: Array) -> Array:
        return plain(self.X[numbers])


class StartsAnew:
    """An object whose private attributes, a lock among them, are not copied to other processes."""

    def _start(self) -> None:
        """Set the private attributes."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()


class Checked(StartsAnew, Source):
    """The rows of a reader, numbers in float64; an error names the row, the column and the file.

    Parameters
    ----------
    reader : Reader
        Where the rows come from.
    origin : str
        What error messages call the input: the path of a file, for example.
    names : list of str, default=None
        The names of the columns.
    line : callable, default=None
        Finds the line of a text file that holds a row, for error messages.
    """

    def __init__(
        self,
        reader: Reader,
        origin: str,
        names: list[str] | None = None,
        line: Line | None = None,
    ) -> None:
        self.reader, self.origin, self.names, self.line = reader, origin, names, line
        self.shape, self.anywhere = reader.shape, reader.anywhere
        self.dtype = np.dtype(object if self.ndim == 1 else np.float64)
        self.budget: int | None = None
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._numbers = np.empty(0, dtype=np.intp)  # of the sampled rows in memory, sorted
        self._rows = np.empty((0, *self.shape[1:]), self.dtype)

    def within(self, budget: int | None) -> Checked:
        """Return the same rows; MemoryError if the budget is too small for them."""
        same = Checked(self.reader, self.origin, self.names, self.line)
        same.budget = budget
        if budget is not None:
            require_memory(
                self.reader.window * self.row_bytes, budget,
                f"reading {self.reader.window} rows of {self.origin} at a time",
                "raise Resources(memory_budget=...), or name fewer columns",
            )  # fmt: skip
        return same

    @property
    def row_bytes(self) -> int:
        return OBJECT_BYTES if self.ndim == 1 else self.dtype.itemsize * self.shape[1]

    def __getitem__(self, span: slice) -> Any:
        start, stop, _ = span.indices(len(self))
        block = self._checked(lambda: self.reader.read(start, stop), np.arange(start, stop))
        return block.tolist() if self.ndim == 1 else block

    def take(self, numbers: Any) -> Any:
        """Return rows by number, in the given order; they are read for this."""
        numbers = np.asarray(numbers, dtype=np.intp)
        if len(numbers) and np.ptp(numbers) < 2 * min(len(numbers), MOST_TILES * TILE):
            block = self._neighbours(numbers)
            return block.tolist() if self.ndim == 1 else block
        wanted, order = np.unique(numbers, return_inverse=True)
        scattered = len(wanted) > 0 and wanted[-1] - wanted[0] > SCATTERED
        block = self._sampled(wanted) if scattered else self._picked(wanted)
        block = block if np.array_equal(wanted, numbers) else block[order]
        return block.tolist() if self.ndim == 1 else block

    def _neighbours(self, numbers: Array) -> Array:
        """Most rows of a block, in any order: the span is read, and nothing has to be sorted."""
        start, stop = int(numbers.min()), int(numbers.max()) + 1
        places = numbers - start
        return self._checked(lambda: self.reader.read(start, stop).take(places, axis=0), numbers)

    def _picked(self, numbers: Array) -> Array:
        return self._checked(lambda: self.reader.pick(numbers), numbers)

    def _sampled(self, wanted: Array) -> Array:
        """Keep sampled rows in memory while there is room: they are asked for many times."""
        with self._lock:
            new = wanted[~among(wanted, self._numbers)]
            if not len(new):
                return np.asarray(self._rows[np.searchsorted(self._numbers, wanted)])
            numbers = np.concatenate([self._numbers, new])
            rows = np.concatenate([self._rows, self._picked(new)])
            order = np.argsort(numbers)
            numbers, rows = numbers[order], rows[order]
            room = SAMPLE_BYTES if self.budget is None else self.budget // 8
            if len(numbers) * self.row_bytes <= room:
                self._numbers, self._rows = numbers, rows
        return np.asarray(rows[np.searchsorted(numbers, wanted)])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Read all rows at once, for the few kernels that need them, if the budget allows it."""
        if self.budget is not None:
            require_memory(
                len(self) * self.row_bytes, self.budget, f"holding all rows of {self.origin}",
                "raise Resources(memory_budget=...), or choose a kernel that takes rows in blocks",
            )  # fmt: skip
        return np.array(self[: len(self)], dtype or self.dtype)

    def whole(self) -> Array:
        """Return all rows as an array: a memory map of the file where that is possible."""
        mapped = getattr(self.reader, "mapped", None)
        return np.asarray(self) if mapped is None else mapped()

    def _checked(self, read: Callable[[], Array], numbers: Array) -> Array:
        try:
            block = read()
        except EOFError:
            raise ValueError(
                f"{self.origin} ended early: it has changed since it was opened"
            ) from None
        if self.ndim == 2:
            with np.errstate(over="ignore"):
                block = np.ascontiguousarray(block, dtype=self.dtype)
            require_finite(block, lambda i, j: self._place(int(numbers[i]), j))
        else:
            for i in (i for i, x in enumerate(block) if x is None):
                raise ValueError(f"Input X contains NaN: {self._place(int(numbers[i]))} is missing")
        return block

    def _place(self, row: int, column: int = 0) -> str:
        name = column if self.names is None else self.names[column]
        return place(row, name, self.origin, self.line)


def require_finite(A: Array, place: Callable[[int, int], str]) -> None:
    """Raise a ValueError that names the first value that is missing or infinite."""
    bad = first_not_finite(A)
    if bad is not None:
        i, j, kind = bad
        what = "NaN" if kind == "NaN" else f"infinity or a value too large for {A.dtype!r}"
        raise ValueError(f"Input X contains {what}: {place(i, j)}; leave the row out or correct it")


class RowObjects(Source):
    """Rows of numbers as objects: time series of equal lengths, for example."""

    def __init__(self, source: Source) -> None:
        self.source, self.shape, self.dtype = source, source.shape[:1], np.dtype(object)
        self.anywhere = source.anywhere

    def __getitem__(self, span: slice) -> Any:
        return list(self.source[span])

    def take(self, numbers: Any) -> Any:
        return list(self.source.take(numbers))


def from_first_row(start: int) -> int:
    """The row at which reading begins if it can only begin at the first one."""
    return 0


class Stream(StartsAnew):
    """Rows that come in order: the latest ones stay in a window, an earlier one starts anew.

    Parameters
    ----------
    shape, dtype
        Those of all rows.
    pieces : callable
        ``pieces(begin)`` reads the rows from ``begin`` on, in pieces of any length.
    begin : callable, default=from_first_row
        ``begin(start)`` is the row at or before ``start`` from which reading can begin.
    """

    window, anywhere = WINDOW, False

    def __init__(
        self, shape: tuple[int, ...], dtype: DTypeLike, pieces: Callable[[int], Iterator[Array]],
        begin: Callable[[int], int] = from_first_row,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.pieces, self.begin = shape, stored_as(dtype), pieces, begin
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._restart(0)

    def _restart(self, begin: int) -> None:
        self._window: deque[tuple[int, Array]] = deque()  # the first row of a piece, its rows
        self._end, self._iterator = begin, self.pieces(begin)

    def read(self, start: int, stop: int) -> Array:
        with self._lock:
            try:
                return self._read(start, stop)
            except BaseException:
                self._restart(0)  # an iterator that has raised cannot go on
                raise

    def _read(self, start: int, stop: int) -> Array:
        first = self._window[0][0] if self._window else self._end
        if start < first or self.begin(start) > self._end:
            self._restart(self.begin(start))
        while self._end < stop:
            piece = next(self._iterator, None)
            if piece is None:
                raise EOFError
            self._window.append((self._end, piece))
            self._end += len(piece)
            while self._window and self._window[0][0] + len(self._window[0][1]) <= start - BEHIND:
                self._window.popleft()
        parts = [
            piece[max(start - at, 0) : max(stop - at, 0)]
            for at, piece in self._window
            if at < stop and start < at + len(piece)
        ]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def pick(self, numbers: Array) -> Array:
        near = len(numbers) > 0 and numbers[-1] - numbers[0] <= SCATTERED
        rows = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        for places in [np.arange(len(numbers))] if near else by_tile(numbers):
            start, stop = int(numbers[places[0]]), int(numbers[places[-1]]) + 1
            rows[places] = self.read(start, stop)[numbers[places] - start]
        return rows
