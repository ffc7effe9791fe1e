"""Rows from a reader, checked as they are read; and readers that can only go forward."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import TILE, Source, first_not_finite

Array = NDArray[Any]
BATCH = 4 * TILE  # rows decoded at a time
BEHIND = 8 * TILE  # rows kept behind the latest: workers ask a little out of order
SCATTERED = 2 * TILE  # numbers that span more rows are a sample, and are held
HELD_BYTES = 64 * 10**6  # of sampled rows that are held, if there is no budget
NUMBERS = "fiub"  # kinds of types
OBJECT_BYTES = 200  # a guess: of an object in memory


class Reader(Protocol):
    """Rows as they are stored, not checked: an (n, d) array of numbers, or (n,) of objects."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    forward: bool  # a row costs the rows before it
    window: int  # rows in memory at a time

    def read(self, start: int, stop: int) -> Array: ...

    def pick(self, numbers: Array) -> Array: ...  # sorted, distinct


def stored_as(dtype: Any) -> np.dtype[Any]:
    """Numbers as they are; texts as objects."""
    return np.dtype(dtype if np.dtype(dtype).kind in NUMBERS else object)


def by_tile(numbers: Array) -> list[Array]:
    """Places of sorted row numbers, those of one tile together."""
    ends = np.flatnonzero(np.diff(numbers // TILE)) + 1
    return np.split(np.arange(len(numbers)), ends) if len(numbers) else []


def require_some(shape: tuple[int, ...], origin: str) -> None:
    if 0 in shape:
        what = "sample" if shape[0] == 0 else "feature"
        raise ValueError(
            f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required: "
            f"{origin}"
        )


def library(module: str) -> Any:
    """A module of the extra "scale", imported when it is needed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f'this input needs {package}, which is not installed: pip install "kreinlearn[scale]"',
            name=package,
        ) from error


class Checked(Source):
    """Rows of a reader in one type; an error names the row and where it comes from."""

    def __init__(
        self, reader: Reader, origin: str, names: list[str] | None = None, dtype: Any = None
    ) -> None:
        self.reader, self.origin, self.names = reader, origin, names
        self.shape = reader.shape
        single = reader.dtype == np.float32
        self.dtype = np.dtype(dtype or (np.float32 if single else np.float64))
        if self.ndim == 1:
            self.dtype = np.dtype(object)
        self.budget: int | None = None
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._numbers = np.empty(0, dtype=np.intp)  # of rows that are held, sorted
        self._rows = np.empty((0, *self.shape[1:]), self.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_lock", "_numbers", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())
        self._forget()

    def within(self, budget: int | None, dtype: Any = None) -> Checked:
        """The same rows in another type; MemoryError if a few tiles of them exceed the budget."""
        same = Checked(self.reader, self.origin, self.names, dtype or self.dtype)
        same.budget = budget
        if budget is not None:
            require_memory(
                self.reader.window * self.row_bytes, budget,
                f"reading {self.reader.window} rows of {self.origin} at a time",
                "raise memory_budget, or name fewer columns",
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
        numbers = np.asarray(numbers, dtype=np.intp)
        wanted, order = np.unique(numbers, return_inverse=True)
        found = self._held(wanted) if self._worth_holding(wanted) else self._picked(wanted)
        block = found if np.array_equal(wanted, numbers) else found[order]
        return block.tolist() if self.ndim == 1 else block

    def _picked(self, numbers: Array) -> Array:
        return self._checked(lambda: self.reader.pick(numbers), numbers)

    def _worth_holding(self, wanted: Array) -> bool:
        return self.reader.forward and len(wanted) > 0 and wanted[-1] - wanted[0] > SCATTERED

    def _held(self, wanted: Array) -> Array:
        """Sampled rows are held as far as there is room: they are asked for again and again."""
        with self._lock:
            new = wanted[~np.isin(wanted, self._numbers)]
            rows = self._picked(new)
            numbers = np.concatenate([self._numbers, new])
            found = np.concatenate([self._rows, rows]) if len(new) else self._rows
            order = np.argsort(numbers)
            numbers, found = numbers[order], found[order]
            room = HELD_BYTES if self.budget is None else self.budget // 8
            if len(numbers) * self.row_bytes <= room:
                self._numbers, self._rows = numbers, found
        return np.asarray(found[np.searchsorted(numbers, wanted)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All rows at once, for the few kernels that want them, if the budget has room."""
        if self.budget is not None:
            require_memory(
                len(self) * self.row_bytes, self.budget, f"holding all rows of {self.origin}",
                "raise memory_budget, or choose a kernel that takes rows a block at a time",
            )  # fmt: skip
        return np.array(self[: len(self)], dtype or self.dtype)

    def whole(self) -> Array:
        """All rows as an array, one that is mapped if the file is one."""
        mapped = getattr(self.reader, "mapped", None)
        return np.asarray(self) if mapped is None else mapped()

    # Checks

    def _checked(self, read: Callable[[], Array], numbers: Array) -> Array:
        try:
            block = read()
        except EOFError:
            raise ValueError(
                f"{self.origin} ended early: it has changed since it was opened"
            ) from None
        return self._objects(block, numbers) if self.ndim == 1 else self._floats(block, numbers)

    def _objects(self, block: Array, numbers: Array) -> Array:
        for i, x in enumerate(block):
            if x is None:
                raise ValueError(f"Input X contains NaN: {self._place(numbers[i])} is missing")
        return block

    def _floats(self, block: Array, numbers: Array) -> Array:
        with np.errstate(over="ignore"):
            A = np.ascontiguousarray(block, dtype=self.dtype)
        bad = first_not_finite(A)
        if bad is not None:
            i, j, kind = bad
            what = f"infinity or a value too large for {self.dtype!r}"
            raise ValueError(
                f"Input X contains {'NaN' if kind == 'NaN' else what}: "
                f"{self._place(numbers[i], j)}; leave the row out or mend it"
            )
        return A

    def _place(self, row: int, column: int = 0) -> str:
        name = column if self.names is None else repr(self.names[column])
        return f"row {row}, column {name} of {self.origin}"


class RowObjects(Source):
    """Rows of numbers as objects: series of equal lengths, say."""

    def __init__(self, source: Source) -> None:
        self.source, self.shape, self.dtype = source, source.shape[:1], np.dtype(object)

    def __getitem__(self, span: slice) -> Any:
        return list(self.source[span])

    def take(self, numbers: Any) -> Any:
        return list(self.source.take(numbers))


class Stream:
    """Rows that come in order: a window of the latest is kept, an earlier row starts anew.

    A subclass gives ``pieces`` and, where it need not begin at row 0, ``begin``.
    """

    forward = True
    window = 2 * BATCH + BEHIND

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, stored_as(dtype)
        self._lock = threading.Lock()
        self._restart(0)

    def begin(self, start: int) -> int:
        """The row at or before ``start`` from which reading can begin."""
        return 0

    def pieces(self, begin: int) -> Iterator[Array]:
        raise NotImplementedError

    def _restart(self, begin: int) -> None:
        self._window: deque[tuple[int, Array]] = deque()
        self._end, self._iterator = begin, None if begin < 0 else self.pieces(begin)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_window", "_end", "_iterator")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())
        self._restart(0)

    def read(self, start: int, stop: int) -> Array:
        with self._lock:
            try:
                return self._read(start, stop)
            except BaseException:
                self._restart(0)  # an iterator that has raised is at its end
                raise

    def _read(self, start: int, stop: int) -> Array:
        first = self._window[0][0] if self._window else self._end
        if start < first or self.begin(start) > self._end:
            self._restart(self.begin(start))
        while self._end < stop:
            piece = next(self._iterator, None)  # type: ignore[arg-type]
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
        found = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        if len(numbers) and numbers[-1] - numbers[0] <= SCATTERED:
            start = int(numbers[0])
            return self.read(start, int(numbers[-1]) + 1)[numbers - start]
        for places in by_tile(numbers):
            start, stop = int(numbers[places[0]]), int(numbers[places[-1]]) + 1
            found[places] = self.read(start, stop)[numbers[places] - start]
        return found
