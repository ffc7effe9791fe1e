"""Values as JSON and arrays: plain values stand for themselves, all others say their type.

What JSON does not know is an object ``{"type": ..., "of": ...}``. The bytes of arrays are kept
apart, one array after the other in the order in which the JSON mentions them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from io import BufferedReader
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.persist.errors import GivenError, NotDataError, require
from kreinlearn.persist.kinds import KINDS, is_data, is_shape, kind_of

Array = NDArray[Any]
INT64 = range(-(2**63), 2**63)
HALVES = re.compile("[\ud800-\udfff]")  # of characters: texts of UTF-8 have none
DTYPE = re.compile(r"\|[biu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,8}|<[mM]8(\[\d*[a-zA-Z]+\])?")
HASHED = {"int", "tuple", "frozenset", "Decimal", "Category", "timedelta"}  # by known rules
ENCODED = "encoded"  # the type of what a function of the user has made data of
ALIKE = 100  # different values with the same hash, which no honest file has
LAST = 0x10FFFF  # the number of the last character


def _is_text(x: object) -> bool:
    return type(x) is str and not HALVES.search(x)


class Writer:
    """Turns values into JSON and the bytes of arrays; NotDataError for what is not data."""

    def __init__(self, encode: Callable[[Any], Any] | None = None) -> None:
        self.encode = encode  # makes data of objects of the user's own classes
        self.arrays: list[memoryview] = []  # of their bytes

    def value(self, x: Any) -> Any:
        """The JSON of a value."""
        cls = type(x)
        if x is None or cls.__name__ in ("NAType", "NaTType"):  # missing, also in pandas
            return None
        if cls is bool or (cls is int and x in INT64) or (cls is float and isfinite(x)):
            return x
        if _is_text(x):
            return x
        if cls is list:
            return [self.value(item) for item in x]
        if cls is dict and all(map(_is_text, x)) and "type" not in x:
            return {key: self.value(item) for key, item in x.items()}
        if isinstance(x, np.ndarray) and x.dtype != object:
            return {"type": "array", "of": self._array(x)}
        if self.encode is not None and not is_data(x):
            return {"type": ENCODED, "of": [cls.__qualname__, self._encoded(x, self.encode)]}
        kind = kind_of(x)
        return {"type": kind, "of": self.value(KINDS[kind].parts(x))}

    def _encoded(self, x: Any, encode: Callable[[Any], Any]) -> Any:
        """What the user's function makes of an object; NotDataError if that is no data."""
        try:
            data = encode(x)
        except Exception as error:
            raise ValueError(
                f"encode raised {type(error).__name__} ({error!s:.200}) for {x!r:.80}; pass a "
                "function that makes numbers, texts, lists, dicts or arrays of it"
            ) from error
        plain = copy(self)  # with the same list of arrays
        plain.encode = None
        try:
            return plain.value(data)
        except NotDataError as error:
            raise NotDataError(
                f"{error} in what encode returned for a {type(x).__qualname__}"
            ) from error

    def _array(self, x: Array) -> list[Any]:
        """The type, shape and order of an array; one in Fortran order stays in that order."""
        x = np.asarray(x, x.dtype.newbyteorder("<"))
        if not DTYPE.fullmatch(x.dtype.str):
            raise NotDataError(f"an array of the type {x.dtype}")
        order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(x.T if order == "F" else x).reshape(-1)
        self.arrays.append(flat.view(np.uint8).data)
        return [x.dtype.str, list(x.shape), order]


class Reader:
    """Turns JSON into values; ModelFormatError for whatever ``Writer`` does not write.

    The arrays are read from a file that has so many bytes left for them. ``decode`` makes objects
    of the user's own classes from data.
    """

    def __init__(
        self, file: BufferedReader, left: int, decode: Callable[[Any], Any] | None = None
    ) -> None:
        self.file, self.left, self.decode = file, left, decode
        self.first: dict[int, object] = {}  # a value of each hash
        self.others: dict[int, list[object]] = {}  # different values of the same hash

    def value(self, node: Any) -> Any:
        """The value of a part of the JSON; parts must be read in the order of the file."""
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "type" not in node:
            return {key: self.value(item) for key, item in node.items()}
        name = node["type"]
        require(node.keys() == {"type", "of"}, f"a {name!r:.80} in it has fields {[*node]!r:.80}")
        if name == "array":
            return self._array(*node["of"])
        if name == ENCODED:
            return self._decoded(*node["of"])
        require(isinstance(name, str) and name in KINDS, f"it has a value of type {name!r:.80}")
        parts = self.value(node["of"])
        require(type(parts) is KINDS[name].of, f"it has a {name!r:.80} of {parts!r:.80}")
        made = KINDS[name].make(parts)
        if name in HASHED:
            self._require_spread(made)
        return made

    def _decoded(self, name: object, parts: Any) -> Any:
        """An object of a class of the user, by the function that was given."""
        if self.decode is None:
            raise GivenError(
                f"the model has objects of the class {name!s:.80}, which were saved as data by "
                "save(..., encode=...); pass the function that makes an object of such data: "
                "load(path, decode=...)"
            )
        data = self.value(parts)
        try:
            return self.decode(data)
        except Exception as error:
            raise GivenError(
                f"decode raised {type(error).__name__} ({error!s:.200}) for {data!r:.80}, which "
                f"encode made of a {name!s:.80}; pass a function that reverses it"
            ) from error

    def _require_spread(self, value: object) -> None:
        """Refuse many different values of one hash: a set of them takes the square of its size."""
        try:
            key = hash(value)
        except TypeError:  # a tuple of lists
            return
        if self.first.setdefault(key, value) != value:
            others = self.others.setdefault(key, [])
            if value not in others:
                others.append(value)
            require(len(others) < ALIKE, f"it has {ALIKE} different values that have one hash")

    def _array(self, name: object, shape: Any, order: object) -> Array:
        """The next array; no memory is allocated for what is not in the file."""
        good = isinstance(name, str) and DTYPE.fullmatch(name) and order in ("C", "F")
        require(good, f"it has an array of the type {name!r:.80}, which is not allowed")
        dtype = np.dtype(str(name))
        good = is_shape(shape, dtype.itemsize) and prod(shape) * dtype.itemsize <= self.left
        require(good, f"it has an array of the shape {shape!r:.80}, which is not in the file")
        data = bytearray(prod(shape) * dtype.itemsize)
        self.left -= len(data)
        require(self.file.readinto(data) == len(data), "the file ended while it was read")
        if dtype.kind in "bU":
            entries = np.frombuffer(data, np.uint8 if dtype.kind == "b" else np.uint32)
            limit = 1 if dtype.kind == "b" else LAST
            require(entries.max(initial=0) <= limit, f"an array in it is not of the type {name!r}")
        array = np.ndarray(shape[::-1] if order == "F" else shape, dtype, data)
        return array.T if order == "F" else array
