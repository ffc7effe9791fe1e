"""The arrays of a model as .npy members: numbers of allowed types only, each with its sha256."""

from __future__ import annotations

import io
import re
from hashlib import sha256
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kreinlearn.persist.container import Buffer, Content, Member
from kreinlearn.persist.errors import ModelFormatError, require

Array = NDArray[Any]
DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': (True|False), "
    rb"'shape': \((|\d{1,12},|\d{1,12}(?:, \d{1,12}){1,7})\), \} *\n"
)
LONGEST_HEADER = 512
LONGEST_EMPTY = 2**20  # rows or columns of an array without entries, which takes no byte of a file


class Arrays:
    """The arrays of a model that is being written, by the names of their members."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[Buffer]] = {}

    def add(self, path: str, array: Array) -> str:
        """Add an array, and return the name of its member, made of the place where it is used."""
        clean = re.sub(r"[^A-Za-z0-9_.]", "_", path)[-150:].lstrip(".")
        name, number = f"{clean}.npy", 2
        while name in self._arrays:
            name, number = f"{clean}.{number}.npy", number + 1
        self._arrays[name] = as_npy(array)
        return name

    def mark(self) -> int:
        """The number of arrays so far, for ``back_to``."""
        return len(self._arrays)

    def back_to(self, mark: int) -> None:
        """Drop the arrays that were added after the mark."""
        self._arrays = dict(self.members()[:mark])

    def members(self) -> list[tuple[str, list[Buffer]]]:
        return list(self._arrays.items())

    def hashes(self) -> dict[str, str]:
        """The sha256 of each member."""
        digests = {name: sha256() for name in self._arrays}
        for name, parts in self._arrays.items():
            for part in parts:
                digests[name].update(part)
        return {name: digest.hexdigest() for name, digest in digests.items()}


def as_npy(array: Array) -> list[Buffer]:
    """The bytes of a .npy file in two parts; an array in Fortran order stays in that order."""
    array = np.asarray(array, array.dtype.newbyteorder("<"))
    assert array.dtype.str in DTYPES, array.dtype
    if not array.flags.f_contiguous:
        array = np.ascontiguousarray(array)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    return [head.getvalue(), array.ravel(order="K").view(np.uint8).data]


class Stored:
    """The arrays of a model that is being read, each of which must be used exactly once."""

    def __init__(self, file: BinaryIO, members: dict[str, Member], hashes: object) -> None:
        if not isinstance(hashes, dict) or hashes.keys() != members.keys():
            raise ModelFormatError("its members are not those that its header names")
        self._file, self._left, self._hashes = file, dict(members), hashes

    def take(self, name: object) -> Array:
        """Read the array of this name."""
        if not isinstance(name, str) or name not in self._left:
            raise ModelFormatError(
                f"its header refers to the array {name!r:.80}, which is not there"
            )
        content = Content(self._file, self._left.pop(name))
        array = from_npy(content)
        same = content.sha256.hexdigest() == self._hashes[name]
        require(same, f"member {name!r} is not the one that was written: its sha256 is another")
        return array

    def require_all_taken(self) -> None:
        for name in self._left:
            require(False, f"it has a member {name!r} that nothing refers to")


def from_npy(content: Content) -> Array:
    """Read an array of an allowed type; no memory is allocated for what is not in the file."""
    wrong = f"member {content.name!r} is no array that save writes"
    require(content.left >= 10, wrong)
    start = content.read(10)
    length = int.from_bytes(start[8:], "little")
    require(start[:8] == MAGIC and length <= min(content.left, LONGEST_HEADER), wrong)
    header = HEADER.fullmatch(content.read(length))
    if header is None or header[1].decode() not in DTYPES:
        raise ModelFormatError(f"{wrong}: its type is not allowed")
    dtype, fortran = np.dtype(header[1].decode()), header[2] == b"True"
    shape = tuple(map(int, re.findall(rb"\d+", header[3])))
    good = is_shape(shape) and prod(shape) * dtype.itemsize == content.left
    require(good, f"{wrong}: its size is another")
    array = np.empty(shape[::-1] if fortran else shape, dtype)
    text = array.reshape(-1).view(np.uint8)
    content.fill(text.data)
    require(dtype.kind != "b" or text.max(initial=0) <= 1, wrong)
    return array.T if fortran else array


def is_shape(shape: tuple[int, ...]) -> bool:
    """Whether an array may have this shape; the number of its entries is checked elsewhere."""
    low, high = min(shape, default=0), max(shape, default=0)
    return low > 0 or (low == 0 and high <= LONGEST_EMPTY)
