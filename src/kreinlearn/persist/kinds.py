"""How objects of each kind are written as arrays and read again.

A function that writes takes objects of one kind and returns arrays, and lists of objects that
become columns themselves. A function that reads takes a ``Column`` and what goes with the kind,
such as a type of numbers and a number of dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from math import prod
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from kreinlearn.data.frames import Category
from kreinlearn.persist.arrays import DTYPES, Array
from kreinlearn.persist.graphs import read_graphs, read_networks, write_graphs, write_networks

if TYPE_CHECKING:
    from kreinlearn.persist.columns import Column

Parts = dict[str, Any]  # arrays, and lists of objects that are columns themselves
INT64 = range(-(2**63), 2**63)
TEXT_DTYPE, TIME_DTYPE = re.compile(r"<U\d{1,9}"), re.compile(r"<[mM]8(\[\d*[a-zA-Z]+\])?")
BROADEST = 2**24  # columns of sparse rows: empty ones take no byte of a file, but room in products
ROOM = 64  # bytes that texts of one width may take for each byte that is stored of them
LAST = 0x10FFFF  # the number of the last character
SPARSE = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}
CONTAINERS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip
BY_TYPE: dict[type, str] = {
    str: "str", bytes: "bytes", bool: "bool", float: "float", NoneType: "none", list: "list",
    tuple: "tuple", set: "set", frozenset: "frozenset", dict: "dict", range: "range",
    Category: "category", np.str_: "np.str_", Decimal: "decimal", date: "date",
    datetime: "datetime", time: "time", timedelta: "timedelta",
}  # fmt: skip


class Kind(NamedTuple):
    """How objects of a kind are written and read; ``n_details`` is what goes with its name."""

    write: Callable[[Sequence[Any]], Parts]
    read: Callable[..., list[Any]]
    n_details: int = 0


def is_roomy(dtype: np.dtype[Any], count: int, n_bytes: int) -> bool:
    """Whether texts of one width take many times the bytes that would be stored of them."""
    return dtype.itemsize * count > ROOM * n_bytes


# Texts


def _write_bytes(xs: Sequence[bytes]) -> Parts:
    return {"text": np.frombuffer(b"".join(xs), dtype=np.uint8), "size": _sizes(xs)}


def _read_bytes(column: Column) -> list[bytes]:
    text = column.array("text", np.uint8).tobytes()
    return list(_cut(text, column.sizes(len(text))))


def _by_text(text: Callable[[Any], str], make: Callable[[str], object]) -> Kind:
    """Objects that are made of a text, and can be written as one."""

    def write(xs: Sequence[object]) -> Parts:
        return _write_bytes([text(x).encode("utf8", "surrogatepass") for x in xs])

    def read(column: Column) -> list[object]:
        try:
            return [make(part.decode("utf8", "surrogatepass")) for part in _read_bytes(column)]
        except (ValueError, ArithmeticError):
            raise column.wrong() from None

    return Kind(write, read)


# Numbers


def _by_number(dtype: DTypeLike) -> Kind:
    return Kind(
        lambda xs: {"values": np.array(xs, dtype=dtype)},
        lambda column: list(column.array("values", dtype).tolist()),
    )


NOTHING = Kind(
    lambda xs: {"values": np.zeros(len(xs), np.uint8)},
    lambda column: [None] * len(column.array("values", np.uint8)),
)


def _read_scalars(column: Column, kind: object, dtype: object) -> list[np.generic]:
    arrays = column.items("arrays")
    column.require(all(isinstance(x, np.ndarray) and x.ndim == 0 for x in arrays))
    column.require(all(x.dtype.str == dtype for x in arrays))
    return [x[()] for x in arrays]


# Arrays


def _flat(xs: Sequence[Array], dtype: DTypeLike) -> Parts:
    """All entries one after the other as a type of the same size, and the shapes."""
    little = (np.ascontiguousarray(x, x.dtype.newbyteorder("<")) for x in xs)
    flat = [x.reshape(-1).view(dtype) for x in little]
    return {"values": np.concatenate([np.empty(0, dtype), *flat]), **_shapes(xs)}


def _write_arrays(xs: Sequence[Array]) -> Parts:
    return _flat(xs, xs[0].dtype.newbyteorder("<"))


def _read_arrays(column: Column, dtype: object, ndim: object) -> list[Array]:
    column.require(isinstance(dtype, str) and dtype in DTYPES)
    return _apart(column, column.array("values", str(dtype)), ndim)


def _apart(column: Column, values: Array, ndim: object) -> list[Array]:
    shapes = column.shapes(len(values), ndim)
    parts = _cut(values, map(prod, shapes))
    return [part.reshape(shape).copy() for part, shape in zip(parts, shapes, strict=True)]


def _read_times(column: Column, name: object, ndim: object) -> list[Array]:
    dtype = _dtype(column, name, TIME_DTYPE)
    return [part.view(dtype) for part in _read_arrays(column, "<i8", ndim)]


def _read_wide(column: Column, name: object, ndim: object) -> list[Array]:
    """Texts by the numbers of all their characters: a file is as large as what is read from it."""
    dtype = _dtype(column, name, TEXT_DTYPE)
    values, width = column.array("values", np.uint32), dtype.itemsize // 4
    column.require(values.max(initial=0) <= LAST and width and len(values) % width == 0)
    return _apart(column, values.view(dtype), ndim)


def _dtype(column: Column, name: object, pattern: re.Pattern[str]) -> np.dtype[Any]:
    column.require(isinstance(name, str) and pattern.fullmatch(name))
    try:
        return np.dtype(str(name))
    except TypeError:
        raise column.wrong() from None


def _write_object_arrays(xs: Sequence[Array]) -> Parts:
    return {"items": [item for x in xs for item in x.reshape(-1).tolist()], **_shapes(xs)}


def _read_object_arrays(column: Column, name: object, ndim: object) -> list[Array]:
    items = column.items("items")
    flat = np.empty(len(items), object)
    flat[:] = items
    return _apart(column, flat, ndim)


def _read_text_arrays(column: Column, name: object, ndim: object) -> list[Array]:
    dtype, arrays = _dtype(column, name, TEXT_DTYPE), _read_object_arrays(column, name, ndim)
    column.require(all(type(x) is str for array in arrays for x in array.flat))
    for array in arrays:
        n_bytes = sum(map(len, array.flat)) + 8 * array.size
        column.require(not is_roomy(dtype, array.size, n_bytes))
    return [array.astype(dtype) for array in arrays]


def _write_sparse(xs: Sequence[sp.csr_array]) -> Parts:
    parts = {name: [getattr(x, name) for x in xs] for name in ("data", "indices", "indptr")}
    return {**parts, **_shapes(xs)}


def _read_sparse(column: Column, name: object) -> list[sp.csr_array]:
    column.require(isinstance(name, str) and name in SPARSE)
    parts = [column.items(part) for part in ("data", "indices", "indptr")]
    sizes = column.array("shape", np.int64, 2)
    column.require({len(part) for part in parts} == {len(sizes)} and sizes.shape[1] == 2)
    column.require(sizes.max(initial=0) <= BROADEST)
    matrices = []
    for data, indices, indptr, shape in zip(*parts, sizes.tolist(), strict=True):
        good = all(isinstance(x, np.ndarray) and x.ndim == 1 for x in (data, indices, indptr))
        column.require(good and indices.dtype.kind == indptr.dtype.kind == "i")
        matrix = SPARSE[str(name)]((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)  # a ValueError says what is wrong
        matrices.append(matrix)
    return matrices


# Containers


def _sizes(xs: Iterable[Any]) -> Array:
    return np.array([len(x) for x in xs], dtype=np.int64)


def _shapes(xs: Sequence[Any]) -> Parts:
    return {"shape": np.array([x.shape for x in xs], dtype=np.int64).reshape(len(xs), -1)}


def _cut(whole: Any, sizes: Iterable[int]) -> Iterator[Any]:
    """Consecutive parts of these sizes."""
    at = 0
    for size in sizes:
        yield whole[at : at + size]
        at += size


def _write_joined(xs: Sequence[Any]) -> Parts:
    return {"size": _sizes(xs), "items": list(chain.from_iterable(xs))}


def _read_joined(column: Column) -> list[Any]:
    items, make = column.items("items"), CONTAINERS[column.kind[0]]
    return [make(part) for part in _cut(items, column.sizes(len(items)))]


def _write_dicts(xs: Sequence[dict[Any, Any]]) -> Parts:
    keys, values = ([item for x in xs for item in part(x)] for part in (dict.keys, dict.values))
    return {"size": _sizes(xs), "keys": keys, "values": values}


def _read_dicts(column: Column) -> list[dict[Any, Any]]:
    keys, values = column.items("keys"), column.items("values")
    column.require(len(keys) == len(values))
    pairs = list(zip(keys, values, strict=True))
    return [dict(part) for part in _cut(pairs, column.sizes(len(pairs)))]


def _by_triple(triple: Callable[[Any], tuple[int, int, int]], make: Callable[..., object]) -> Kind:
    """Objects that are made of three integers."""

    def read(column: Column) -> list[object]:
        items = column.items("items")
        column.require(all(type(x) is tuple and [type(i) for i in x] == [int] * 3 for x in items))
        return [make(*x) for x in items]

    return Kind(lambda xs: {"items": [triple(x) for x in xs]}, read)


KINDS: dict[str, Kind] = {
    "str": _by_text(str, str),
    "np.str_": _by_text(str, np.str_),
    "bytes": Kind(_write_bytes, _read_bytes),
    "bool": _by_number(np.bool_),
    "int": _by_number(np.int64),
    "bigint": _by_text(hex, lambda text: int(text, 16)),
    "float": _by_number(np.float64),
    "none": NOTHING,
    "missing": NOTHING,
    "scalar": Kind(lambda xs: {"arrays": [np.asarray(x) for x in xs]}, _read_scalars, 2),
    "array": Kind(_write_arrays, _read_arrays, 2),
    "texts": Kind(_write_object_arrays, _read_text_arrays, 2),
    "wide": Kind(lambda xs: _flat(xs, np.uint32), _read_wide, 2),
    "times": Kind(lambda xs: _flat(xs, np.int64), _read_times, 2),
    "objects": Kind(_write_object_arrays, _read_object_arrays, 2),
    **dict.fromkeys(CONTAINERS, Kind(_write_joined, _read_joined)),
    "dict": Kind(_write_dicts, _read_dicts),
    "sparse": Kind(_write_sparse, _read_sparse, 1),
    "category": Kind(
        lambda xs: {"items": [x.value for x in xs]},
        lambda column: [Category(value) for value in column.items("items")],
    ),
    "decimal": _by_text(str, Decimal),
    "date": _by_text(date.isoformat, date.fromisoformat),
    "datetime": _by_text(datetime.isoformat, datetime.fromisoformat),
    "time": _by_text(time.isoformat, time.fromisoformat),
    "timedelta": _by_triple(lambda x: (x.days, x.seconds, x.microseconds), timedelta),
    "range": _by_triple(lambda x: (x.start, x.stop, x.step), range),
    "graph": Kind(write_graphs, read_graphs),
    "network": Kind(write_networks, read_networks, 1),
}
