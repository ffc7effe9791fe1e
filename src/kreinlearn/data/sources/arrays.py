"""Arrays on disk: .npy files, memory maps, zarr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.data.sources.base import (
    BATCH,
    BEHIND,
    NUMBERS,
    Array,
    Checked,
    Stream,
    by_tile,
    library,
    require_some,
    stored_as,
)  # fmt: skip
from kreinlearn.data.tiles import TILE


class Mapped:
    """A .npy file, mapped anew for every block: what is mapped does not grow with the file."""

    forward, window = False, TILE

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                self.shape, self.fortran, self.dtype = header_of(file)
            except ValueError as error:
                raise ValueError(f"{path} is no .npy file: {error}") from error
            self.offset = file.tell()
        needed = self.offset + self.dtype.itemsize * int(np.prod(self.shape))
        if (size := path.stat().st_size) < needed:
            raise ValueError(
                f"{path} is cut short: {size} bytes of {needed} are there; write it again"
            )

    def mapped(self) -> Array:
        order: Any = "F" if self.fortran else "C"
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)

    def read(self, start: int, stop: int) -> Array:
        return plain(self.mapped()[start:stop])

    def pick(self, numbers: Array) -> Array:
        """A tile at a time: a row makes its neighbours resident, while they are mapped."""
        found = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        for places in by_tile(numbers):
            found[places] = self.mapped()[numbers[places]]
        return plain(found)


def header_of(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran's order, and type; ValueError if it is none of numpy's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an old or damaged one
            if np.lib.format.read_magic(file) == (1, 0):
                found = np.lib.format.read_array_header_1_0(file)
            else:
                found = np.lib.format.read_array_header_2_0(file)
    except OSError:
        raise
    except Exception as error:  # of any kind, where bytes are damaged
        raise ValueError(f"its header is damaged ({error})") from error
    if any(size < 0 for size in found[0]):
        raise ValueError(f"its header is damaged: a shape of {found[0]}")
    return found


class Given:
    """A memory map that somebody else opened."""

    forward, window = False, TILE

    def __init__(self, X: Array) -> None:
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def mapped(self) -> Array:
        return self.X

    def read(self, start: int, stop: int) -> Array:
        return plain(self.X[start:stop])

    def pick(self, numbers: Array) -> Array:
        return plain(self.X[numbers])


class Zarr(Stream):
    """A zarr array: a chunk is decoded once while it is in the window, whatever its size."""

    def __init__(self, array: Any) -> None:
        self.array, self.step = array, max(int(array.chunks[0]), 1)
        self.most = -(-BATCH // self.step) * self.step  # whole chunks, about a batch
        self.window = 2 * self.most + BEHIND
        super().__init__(array.shape, array.dtype)

    def begin(self, start: int) -> int:
        return start - start % self.step

    def pieces(self, begin: int) -> Iterator[Array]:
        for start in range(begin, self.shape[0], self.most):
            yield plain(np.asarray(self.array[start : start + self.most]))


def plain(block: Array) -> Array:
    return block.astype(stored_as(block.dtype), copy=False)


def npy(path: Path) -> Checked:
    reader = Mapped(path)
    if reader.dtype.hasobject:
        raise ValueError(f"{path} holds pickled objects, which are not read; save numbers or texts")
    return source_of(reader, reader.dtype, str(path))


def memory_map(X: Array) -> Checked:
    return source_of(Given(X), X.dtype, f"the memory map {getattr(X, 'filename', None) or 'X'}")


def zarr_array(array: Any, origin: str) -> Checked:
    if not array.shape:
        raise ValueError(f"Expected 2D array, got scalar array instead: {origin}")
    return source_of(Zarr(array), array.dtype, origin)


def zarr_path(path: Path) -> Checked:
    found = library("zarr").open(str(path), mode="r")
    if not hasattr(found, "chunks"):
        names = sorted(name for name, _ in found.arrays())
        raise ValueError(
            f"{path} is a group of zarr arrays, {names}; pass one of them, zarr.open(path)[name]"
        )
    return zarr_array(found, str(path))


def source_of(reader: Any, dtype: np.dtype[Any], origin: str) -> Checked:
    """Numbers in two dimensions or texts in one; anything else is refused."""
    kind, shape = dtype.kind, reader.shape
    if kind in "mM":
        raise TypeError(f"X must hold numbers, {origin} holds dates ({dtype}); convert them first")
    if kind == "c":
        raise ValueError(f"Complex data not supported: {origin} holds {dtype}")
    if kind not in NUMBERS and (kind not in "UTO" or len(shape) != 1):
        raise ValueError(
            f"{origin} holds {dtype}, of shape {shape}; pass numbers in two dimensions, or texts "
            "in one"
        )
    if kind in NUMBERS and len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: {origin} is of shape {shape}"
        )
    require_some(shape, origin)
    return Checked(reader, origin)
