"""Arrays as .npy members: numbers of allowed types only, each with its sha256."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from hashlib import sha256
from io import BufferedReader
from math import prod
from typing import Any

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.persist.container import Buffer, Content, Member
from kreinlearn.persist.errors import ModelFormatError, require

DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n"
)
LONGEST_HEADER = 512
MOST_DIMENSIONS = 8
LONGEST_EMPTY = 2**20  # rows or columns of an array of no entries: it takes no byte of a file


class Arrays:
    """The arrays of a model that is being written, by the names of their members."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[Buffer]] = {}

    def add(self, path: str, array: Array) -> str:
        """The name of its member, made of the place where the array is used."""
        clean = re.sub(r"[^A-Za-z0-9_.]", "_", path)[-150:].lstrip(".")
        name, number = f"{clean}.npy", 2
        while name in self._arrays:
            name, number = f"{clean}.{number}.npy", number + 1
        self._arrays[name] = as_npy(array)
        return name

    def mark(self) -> int:
        """How many there are, to come ``back_to``."""
        return len(self._arrays)

    def back_to(self, mark: int) -> None:
        self._arrays = dict(list(self._arrays.items())[:mark])

    def members(self) -> list[tuple[str, list[Buffer]]]:
        return list(self._arrays.items())

    def hashes(self) -> dict[str, str]:
        return {name: _sha256(parts) for name, parts in self._arrays.items()}


def _sha256(parts: list[Buffer]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def as_npy(array: Array) -> list[Buffer]:
    """The bytes of a .npy file, in two parts; the order of a Fortran array is kept."""
    array = np.asarray(array, array.dtype.newbyteorder("<"))
    assert array.dtype.str in DTYPES, array.dtype
    if not array.flags.f_contiguous:
        array = np.ascontiguousarray(array)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    across = array if array.flags.c_contiguous else array.T
    return [head.getvalue(), across.reshape(-1).view(np.uint8)]


class Stored:
    """The arrays of a model that is being read: each is wanted exactly once."""

    def __init__(self, file: BufferedReader, members: dict[str, Member], hashes: Any) -> None:
        require(
            isinstance(hashes, dict) and hashes.keys() == members.keys(),
            "its members are not those that its header names",
        )
        self._file, self._left, self._hashes = file, dict(members), hashes

    def take(self, name: Any) -> Array:
        known = isinstance(name, str) and name in self._left
        require(known, f"its header refers to the array {name!r:.80}, which is not there")
        content = Content(self._file, self._left.pop(name))
        digest = sha256()
        content.seen = digest.update
        array = from_npy(content)
        require(
            digest.hexdigest() == self._hashes[name],
            f"member {name!r} is not the one that was written: its sha256 is another",
        )
        return array

    def require_all_taken(self) -> None:
        for name in self._left:
            require(False, f"it has a member {name!r} that nothing refers to")


def from_npy(content: Content) -> Array:
    """An array of an allowed type; nothing is allocated that is not in the file."""
    name = content.member.name
    no_array = f"member {name!r} is no array that save writes"
    require(content.left >= 10, no_array)
    start = content.read(10)
    length = int.from_bytes(start[8:], "little")
    require(start[:8] == MAGIC and length <= min(content.left, LONGEST_HEADER), no_array)
    found = HEADER.fullmatch(content.read(length))
    if found is None or found[1].decode() not in DTYPES:
        raise ModelFormatError(f"{no_array}: its type is not allowed")
    dtype, fortran = np.dtype(found[1].decode()), found[2] == b"True"
    shape = tuple(_dimensions(found[3], no_array))
    good = is_shape(shape) and prod(shape) * dtype.itemsize == content.left
    require(good, f"{no_array}: its size is another")
    array = np.empty(shape[::-1] if fortran else shape, dtype)
    text = array.reshape(-1).view(np.uint8)
    content.fill(text)
    require(dtype.kind != "b" or text.max(initial=0) <= 1, no_array)
    return array.T if fortran else array


def is_shape(shape: tuple[int, ...]) -> bool:
    """Whether an array may have it; its entries are counted elsewhere."""
    low, high = min(shape, default=0), max(shape, default=0)
    return low > 0 or (low == 0 and high <= LONGEST_EMPTY)


def _dimensions(text: bytes, no_array: str) -> Iterator[int]:
    parts = [part.strip() for part in text.split(b",")]
    if parts[-1] == b"":
        parts.pop()
    require(len(parts) <= MOST_DIMENSIONS, no_array)
    for part in parts:
        require(part.isdigit() and len(part) <= 12, no_array)
        yield int(part)
