"""Files of arrays (.npy, .npz) and memory maps; nothing is ever unpickled."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import IO, Any, Literal
from zipfile import ZipFile

import numpy as np

from kreinlearn.data.memory import budget_bytes, require_memory
from kreinlearn.data.source import (
    NUMBERS,
    Array,
    ArrayReader,
    Checked,
    Reader,
    by_tile,
    plain,
    require_some,
)
from kreinlearn.data.table import require_column

READ = 2**16  # bytes that are read in the time that another call of the system takes
PICKLED = "holds pickled objects, which are not read; save numbers or texts"


class MappedFile(ArrayReader):
    """A .npy file, of which rows are read when they are wanted: no page of it stays in memory.

    Columns that are stored one after the other (Fortran's order) are mapped anew for every block.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with intact(path), path.open("rb") as file:
            self.shape, self.fortran, self.dtype = header_of(file)
            self.offset = file.tell()
        if self.dtype.hasobject:
            raise ValueError(f"{path} {PICKLED}")
        needed = self.offset + self.dtype.itemsize * int(np.prod(self.shape))
        if (size := path.stat().st_size) < needed:
            raise ValueError(
                f"{path} is cut short: {size} bytes of {needed} are there; write it again"
            )

    def mapped(self) -> Array:
        order: Literal["F", "C"] = "F" if self.fortran else "C"
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)

    def read(self, start: int, stop: int) -> Array:
        if self.fortran:
            return super().read(start, stop)
        rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
        with self.path.open("rb", buffering=0) as file:
            self._fill(file, rows, start)
        return plain(rows)

    def _fill(self, file: FileIO, rows: Array, start: int) -> None:
        """Read rows from ``start`` on into an array, as long as a system call gives some."""
        left = rows.reshape(-1).view(np.uint8).data
        file.seek(self.offset + start * self.dtype.itemsize * math.prod(self.shape[1:]))
        while len(left):
            if not (some := file.readinto(left)):
                raise EOFError
            left = left[some:]

    def pick(self, numbers: Array) -> Array:
        """Read one tile at a time, or one row at a time where few are wanted."""
        rows = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        with self.path.open("rb", buffering=0) as file:
            for places in by_tile(numbers):
                first, last = int(numbers[places[0]]), int(numbers[places[-1]])
                if self.fortran:
                    rows[places] = self.mapped()[numbers[places]]
                elif len(places) * READ > (last - first) * rows[:1].nbytes:
                    rows[places] = self.read(first, last + 1)[numbers[places] - first]
                else:
                    for place in places.tolist():
                        self._fill(file, rows[place : place + 1], int(numbers[place]))
        return plain(rows)


def header_of(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, whether the order is Fortran's, and the type; any error if damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an old or damaged header
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    if any(size < 0 for size in header[0]):
        raise ValueError(f"a shape of {header[0]}")
    return header


def memory_map(X: Array) -> Checked:
    return rows_of(ArrayReader(X), X.dtype, f"the memory map {getattr(X, 'filename', None) or 'X'}")


def array_in(file: ArrayFile) -> Checked:
    """Return the rows of the array in a file, which must hold just one array."""
    path, origin = file.path, str(file.path)
    if file.kind == ".npy":
        reader = MappedFile(path)
        return rows_of(reader, reader.dtype, origin)
    if len(file.names) > 1:
        raise ValueError(
            f"{path} is a file of several arrays, {file.names}; pass one of them, "
            "np.load(path)[name]"
        )
    values = file.get(file.names[0])
    if isinstance(values, list):
        values = np.fromiter(values, dtype=object, count=len(values))
    return rows_of(ArrayReader(values), values.dtype, origin)


def rows_of(reader: Reader, dtype: np.dtype[Any], origin: str) -> Checked:
    """Return rows of numbers in two dimensions or of texts in one; refuse anything else."""
    shape = reader.shape
    if dtype.kind in "mM":
        raise TypeError(f"X must hold numbers, {origin} holds dates ({dtype}); convert them first")
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {origin} holds {dtype}")
    if dtype.kind not in NUMBERS and (dtype.kind not in "UTO" or len(shape) != 1):
        raise ValueError(
            f"{origin} holds {dtype}, of shape {shape}; pass numbers in two dimensions, or texts "
            "in one"
        )
    if dtype.kind in NUMBERS and len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: {origin} is of shape {shape}"
        )
    require_some(shape, origin)
    return Checked(reader, origin)


class ArrayFile:
    """The arrays of a file by name: their shapes are read at once, their values when asked for."""

    def __init__(self, path: Path, memory_budget: int | str | None = None) -> None:
        self.path, self.budget, self.kind = path, budget_bytes(memory_budget), path.suffix.lower()
        if path.is_file() and not path.stat().st_size:
            raise ValueError(f"{path} is empty")
        if self.kind == ".npy":
            self.shapes = {path.stem: MappedFile(path).shape}
        else:
            self.shapes = _shapes_in(path)
        if not self.shapes:
            raise ValueError(f"{path} holds no array")
        self.names = list(self.shapes)

    def get(self, name: str) -> Any:
        """Return numbers as an array (that of a .npy file is mapped), and texts as a list."""
        require_column(name, self.names, self.path, "array")
        what = f"{name!r} of {self.path}"
        if self.kind == ".npy":
            return _plain(MappedFile(self.path).mapped(), what)
        size = 8 * int(np.prod(self.shapes[name], dtype=float))
        remedy = "raise Resources(memory_budget=...), or save it as a .npy file"
        require_memory(size, self.budget, f"the array {what}", remedy)
        with intact(self.path), ZipFile(self.path) as archive, archive.open(f"{name}.npy") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return _plain(array, what)

    def column(self, name: str) -> list[Any]:
        """Return all values of an array as a list."""
        values: list[Any] = np.asarray(self.get(name)).ravel().tolist()
        return values

    def described(self, names: Sequence[str]) -> str:
        """Return names and shapes as a message shows them: "D (600 x 600), y (600)"."""
        sizes = (" x ".join(map(str, self.shapes[name])) or "one value" for name in names)
        return ", ".join(f"{name} ({size})" for name, size in zip(names, sizes, strict=True))


def _plain(array: Any, what: str) -> Any:
    """Return texts as a list, from one row or one column of them."""
    if array.dtype.kind in NUMBERS:
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"{what} holds complex numbers, which are not supported")
    if array.dtype.kind not in "UTS" or (array.ndim > 1 and max(array.shape) != array.size):
        raise ValueError(
            f"{what} is of type {array.dtype}; it must hold numbers, or texts in a row"
        )
    texts = array.ravel().tolist()
    return [text.decode() if isinstance(text, bytes) else text for text in texts]


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Turn an error that damaged bytes lead to, of whatever kind, into a ValueError."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(f"{path} is no {path.suffix} file, or damaged: {error}") from None


def _shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays in a .npz file, by name."""
    shapes = {}
    with intact(path), ZipFile(path) as archive:
        names = archive.namelist()
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"two arrays are named {twice[0]!r}")
        for name in names:
            with archive.open(name) as file:
                shape, _, dtype = header_of(file)
            if dtype.hasobject:
                raise ValueError(f"{name} {PICKLED}")
            shapes[name.removesuffix(".npy")] = shape
    return shapes
