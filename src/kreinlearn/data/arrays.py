"""Files of arrays (.npy, .npz, .mat, .zarr) and memory maps; nothing is ever unpickled."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple
from zipfile import ZipFile

import numpy as np
import scipy  # which imports scipy.io when that is used

from kreinlearn.data.memory import budget_bytes, require_memory
from kreinlearn.data.source import (
    BATCH,
    BEHIND,
    NUMBERS,
    Array,
    Checked,
    Reader,
    Stream,
    by_tile,
    require_some,
    stored_as,
)
from kreinlearn.data.table import require_column
from kreinlearn.data.tiles import TILE, library

HDF5 = b"MATLAB 7.3"
READ = 2**16  # bytes that are read in the time that another call of the system takes
PICKLED = "holds pickled objects, which are not read; save numbers or texts"


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


def plain(block: Array) -> Array:
    """Return numbers as they are, and texts as objects."""
    return block.astype(stored_as(block.dtype), copy=False)


def memory_map(X: Array) -> Checked:
    return rows_of(ArrayReader(X), X.dtype, f"the memory map {getattr(X, 'filename', None) or 'X'}")


def zarr_array(array: Any, origin: str) -> Checked:
    """Return the rows of a zarr array; a chunk is decoded once while it is in the window."""
    if not array.shape:
        raise ValueError(f"Expected 2D array, got scalar array instead: {origin}")
    step = max(int(array.chunks[0]), 1)
    most = -(-BATCH // step) * step  # whole chunks, about a batch
    pieces, begin = partial(_chunks, array, most), partial(_begin_of_chunk, step)
    reader = Stream(array.shape, array.dtype, pieces, begin, window=2 * most + BEHIND)
    return rows_of(reader, array.dtype, origin)


def _chunks(array: Any, most: int, begin: int) -> Iterator[Array]:
    for start in range(begin, array.shape[0], most):
        yield plain(np.asarray(array[start : start + most]))


def _begin_of_chunk(step: int, start: int) -> int:
    return start - start % step


def array_in(file: ArrayFile) -> Checked:
    """Return the rows of the array in a file, which must hold just one array."""
    path, origin = file.path, str(file.path)
    if file.kind == ".npy":
        reader = MappedFile(path)
        return rows_of(reader, reader.dtype, origin)
    if file.kind == ".zarr":
        array = library("zarr").open(origin, mode="r")
        if hasattr(array, "chunks"):
            return zarr_array(array, origin)
    if file.kind == ".zarr" or len(file.names) > 1:
        what, load = SEVERAL[file.kind]
        raise ValueError(f"{path} is {what}, {file.names}; pass one of them, {load}(path)[name]")
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
        self.stored = KINDS[self.kind](path)
        if not self.stored:
            raise ValueError(f"{path} holds no array")
        self.names = list(self.stored)
        self.shapes = {name: one.shape for name, one in self.stored.items()}

    def get(self, name: str) -> Any:
        """Return numbers as an array (that of a .npy file is mapped), and texts as a list."""
        require_column(name, self.names, self.path, "array")
        if self.kind != ".npy":
            size = 8 * int(np.prod(self.shapes[name], dtype=float))
            what, remedy = f"the array {name!r} of {self.path}", "or save it as a .npy file"
            require_memory(size, self.budget, what, f"raise Resources(memory_budget=...), {remedy}")
        with intact(self.path):
            array = self.stored[name].load()
        return _plain(array, f"{name!r} of {self.path}")

    def column(self, name: str) -> list[Any]:
        """Return all values of an array as a list."""
        values: list[Any] = np.asarray(self.get(name)).ravel().tolist()
        return values

    def described(self, names: Sequence[str]) -> str:
        """Return names and shapes as a message shows them: "D (600 x 600), y (600)"."""
        sizes = (" x ".join(map(str, self.shapes[name])) or "one value" for name in names)
        return ", ".join(f"{name} ({size})" for name, size in zip(names, sizes, strict=True))


def _plain(array: Any, what: str) -> Any:
    """Return texts and cells of MATLAB as a list, from one row or one column of them."""
    if not isinstance(array, np.ndarray) or array.dtype.kind in NUMBERS:
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"{what} holds complex numbers, which are not supported")
    if array.dtype.kind not in "UTSO" or (array.ndim > 1 and max(array.shape) != array.size):
        raise ValueError(
            f"{what} is of type {array.dtype}; it must hold numbers, or texts in a row"
        )
    return [_cell(value, what) for value in array.ravel().tolist()]


def _cell(value: Any, what: str) -> Any:
    """Return what a cell holds: a text, or numbers."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "UT" and value.size <= 1:
            return str(value.item()) if value.size else ""
        if value.dtype.kind in NUMBERS:
            return value.ravel() if 1 in value.shape else value
        raise ValueError(f"{what} has a cell of type {value.dtype}; texts and numbers are read")
    if isinstance(value, bytes):
        return value.decode()
    return value.rstrip() if isinstance(value, str) else value


class Stored(NamedTuple):
    """An array in a file: its shape, and a function that reads it."""

    shape: tuple[int, ...]
    load: Callable[[], Any]


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


def _npy(path: Path) -> dict[str, Stored]:
    file = MappedFile(path)
    return {path.stem: Stored(file.shape, file.mapped)}


def _npz(path: Path) -> dict[str, Stored]:
    with intact(path), ZipFile(path) as archive:
        members = archive.namelist()
        if twice := [name for name, k in Counter(members).items() if k > 1]:
            raise ValueError(f"two arrays are named {twice[0]!r}")
        shapes = {name: _member_shape(archive, name) for name in members}
    return {
        name.removesuffix(".npy"): Stored(shape, partial(_member, path, name))
        for name, shape in shapes.items()
    }


def _member_shape(archive: ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        shape, _, dtype = header_of(file)
    if dtype.hasobject:
        raise ValueError(f"{name} {PICKLED}")
    return shape


def _member(path: Path, name: str) -> Array:
    with ZipFile(path) as archive, archive.open(name) as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _mat(path: Path) -> dict[str, Stored]:
    with path.open("rb") as file:
        if file.read(len(HDF5)) == HDF5:
            raise ValueError(f"{path} is of MATLAB 7.3; save it again: save(name, '-v7')")
    with intact(path):
        variables = scipy.io.whosmat(path)
    return {name: Stored(shape, partial(_mat_variable, path, name)) for name, shape, _ in variables}


def _mat_variable(path: Path, name: str) -> Any:
    return scipy.io.loadmat(path, variable_names=[name])[name]


def _zarr(path: Path) -> dict[str, Stored]:
    stored = library("zarr").open(str(path), mode="r")
    arrays = {path.stem: stored} if hasattr(stored, "chunks") else dict(sorted(stored.arrays()))
    return {name: Stored(one.shape, partial(one.__getitem__, ...)) for name, one in arrays.items()}


KINDS = {".npy": _npy, ".npz": _npz, ".mat": _mat, ".zarr": _zarr}
SEVERAL = {
    ".npz": ("a file of several arrays", "np.load"),
    ".mat": ("a file of several arrays", "scipy.io.loadmat"),
    ".zarr": ("a group of zarr arrays", "zarr.open"),
}
