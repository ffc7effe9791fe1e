"""Files that hold arrays by name: .npy (one of them), .npz and .mat; nothing is unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.data.memory import budget_bytes, require_memory
from kreinlearn.data.reading.columns import require_column
from kreinlearn.data.sources.arrays import Mapped, header_of

HDF5 = b"MATLAB 7.3"
PICKLED = "holds pickled objects, which are not read; save numbers or texts"


class Variables:
    """The arrays of a file: their shapes are known at once, their values when asked for."""

    def __init__(self, path: Path, memory: int | str | None = None) -> None:
        self.path, self.budget = path, budget_bytes(memory)
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty")
        self.kind = path.suffix.lower()
        self.shapes = SHAPES[self.kind](path)
        if not self.shapes:
            raise ValueError(f"{path} holds no array")

    @property
    def names(self) -> list[str]:
        return list(self.shapes)

    def get(self, name: str) -> Any:
        """Numbers as an array (that of a .npy file is mapped), texts as a list."""
        require_column(name, self.names, self.path, "array")
        if self.kind != ".npy":
            size = 8 * int(np.prod(self.shapes[name], dtype=float))
            require_memory(size, self.budget, f"the array {name!r} of {self.path}",
                           "raise memory_budget, or save it as a .npy file")  # fmt: skip
        return _plain(GET[self.kind](self.path, name), f"{name!r} of {self.path}")

    def described(self, names: Sequence[str]) -> str:
        """ "D (600 x 600), y (600)"."""
        sizes = (" x ".join(map(str, self.shapes[name])) or "one value" for name in names)
        return ", ".join(f"{name} ({size})" for name, size in zip(names, sizes, strict=True))


def _plain(array: Any, what: str) -> Any:
    """Texts, cells of MATLAB and single columns or rows of them as lists."""
    if not isinstance(array, np.ndarray) or array.dtype.kind in "fiub":
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"{what} holds complex numbers, which are not supported")
    if array.dtype.kind not in "UTSO" or (array.ndim > 1 and max(array.shape) != array.size):
        raise ValueError(
            f"{what} is of type {array.dtype}; it must hold numbers, or texts in a row"
        )
    return [_cell(value, what) for value in array.ravel().tolist()]


def _cell(value: Any, what: str) -> Any:
    """What a cell holds: a text, or numbers."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "UT" and value.size <= 1:
            return str(value.item()) if value.size else ""
        if value.dtype.kind in "fiub":
            return value.ravel() if 1 in value.shape else value
        raise ValueError(f"{what} has a cell of type {value.dtype}; texts and numbers are read")
    if isinstance(value, bytes):
        return value.decode()
    return value.rstrip() if isinstance(value, str) else value


# .npy


def _npy_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    reader = Mapped(path)
    if reader.dtype.hasobject:
        raise ValueError(f"{path} {PICKLED}")
    return {path.stem: reader.shape}


def _npy(path: Path, name: str) -> Any:
    return Mapped(path).mapped()


# .npz


def _npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if twice := [name for name, k in Counter(members).items() if k > 1]:
                raise ValueError(f"two arrays are named {twice[0]!r}")
            return {name.removesuffix(".npy"): _member_shape(archive, name) for name in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise ValueError(f"{path} is no .npz file, or damaged: {error}") from None


def _member_shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        shape, _, dtype = header_of(file)
    if dtype.hasobject:
        raise ValueError(f"{name} {PICKLED}")
    return shape


def _npz(path: Path, name: str) -> Any:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


# .mat


def _mat_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    from scipy.io import whosmat

    with path.open("rb") as file:
        if file.read(len(HDF5)) == HDF5:
            raise ValueError(f"{path} is of MATLAB 7.3; save it again: save(name, '-v7')")
    return {name: shape for name, shape, _ in _as_mat(path, lambda: whosmat(path))}


def _mat(path: Path, name: str) -> Any:
    from scipy.io import loadmat

    return _as_mat(path, lambda: loadmat(path, variable_names=[name])[name])


def _as_mat(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception as error:  # of any kind, where bytes are damaged
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(f"{path} is no .mat file, or damaged: {error}") from None


SHAPES = {".npy": _npy_shapes, ".npz": _npz_shapes, ".mat": _mat_shapes}
GET = {".npy": _npy, ".npz": _npz, ".mat": _mat}
