"""From a few arrays to the many objects of a column, as ``columns`` wrote them.

What is read takes no more than a few times the bytes that are in the file, whatever these say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import prod
from typing import Any

import numpy as np

from kreinlearn.data.frames import Category
from kreinlearn.kernels.base import Array
from kreinlearn.persist.columns import BROADEST, SPARSE, Json, is_roomy
from kreinlearn.persist.errors import ModelFormatError, require
from kreinlearn.persist.graphs import graphs_of, networks_of
from kreinlearn.persist.members import DTYPES, Stored, is_shape

TEXT_DTYPE, TIME_DTYPE = re.compile(r"<U\d{1,9}"), re.compile(r"<[mM]8(\[\d*[a-zA-Z]+\])?")
MORE = {**dict.fromkeys(("array", "texts", "wide", "times", "objects", "scalar"), 2)}
MORE |= {"sparse": 1, "network": 1}
LAST = 0x10FFFF  # number of a character
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip


class Column:
    """One column of a file that is being read: its kind, its arrays and the columns within."""

    def __init__(self, stored: Stored, node: Json) -> None:
        good = isinstance(node, dict) and isinstance(node.get("kind"), list) and node["kind"]
        require(good and isinstance(node["kind"][0], str), "its header has no column of objects")
        self.stored, self.kind = stored, tuple(node["kind"])
        self.rest = {name: value for name, value in node.items() if name != "kind"}

    def wrong(self) -> ModelFormatError:
        return ModelFormatError(f"its objects of the kind {self.kind!r:.80} do not fit together")

    def require(self, condition: object) -> None:
        if not condition:
            raise self.wrong()

    def array(self, name: str, dtype: Any, ndim: int = 1) -> Array:
        self.require(name in self.rest)
        found = self.stored.take(self.rest.pop(name))
        self.require(found.dtype == dtype and found.ndim == ndim)
        return found

    def items(self, name: str) -> list[Any]:
        self.require(name in self.rest)
        return read_column(self.stored, self.rest.pop(name))

    def sizes(self, total: int) -> list[int]:
        """Sizes of parts that together are ``total``."""
        sizes: list[int] = self.array("size", np.int64).tolist()
        self.require(min(sizes, default=0) >= 0 and sum(sizes) == total)
        return sizes

    def shapes(self, total: int, ndim: Any) -> list[tuple[int, ...]]:
        """Shapes of arrays that together have ``total`` entries."""
        shapes = self.array("shape", np.int64, 2)
        good = type(ndim) is int and 0 <= ndim <= 8
        self.require(good and (shapes.shape[1] == ndim or not len(shapes)))
        self.require(ndim > 0 or len(shapes) == total)  # of no dimension they take no byte
        found = [tuple(shape) for shape in shapes.tolist()]
        self.require(all(map(is_shape, found)))
        self.require(sum(map(prod, found)) == total)
        return found


def read_column(stored: Stored, node: Json) -> list[Any]:
    """The objects; ModelFormatError for whatever ``write_column`` does not write."""
    column = Column(stored, node)
    name, *more = column.kind
    if name == "mixed":
        found = _read_mixed(column)
    else:
        column.require(name in READ and len(more) == MORE.get(name, 0))
        found = READ[name](column, *more)
    column.require(not column.rest)
    return found


def _read_mixed(column: Column) -> list[Any]:
    which = column.array("which", np.int32)
    nodes = column.rest.pop("columns", None)
    column.require(isinstance(nodes, list) and len(column.kind) == 1)
    parts = [read_column(column.stored, node) for node in nodes]
    counts = [len(part) for part in parts]
    column.require(((which >= 0) & (which < len(parts))).all())
    column.require(np.bincount(which, minlength=len(parts)).tolist() == counts)
    rest = [iter(part) for part in parts]
    return [next(rest[i]) for i in which.tolist()]


def _read_bytes(column: Column) -> list[bytes]:
    text = column.array("text", np.uint8).tobytes()
    return list(_cut(text, column.sizes(len(text))))


def _read_texts(column: Column) -> list[str]:
    parts = _read_bytes(column)
    try:
        return [part.decode("utf8", "surrogatepass") for part in parts]
    except UnicodeDecodeError:
        raise column.wrong() from None


def _cut(whole: Any, sizes: Iterable[int]) -> Iterator[Any]:
    at = 0
    for size in sizes:
        yield whole[at : at + size]
        at += size


def _read_numbers(dtype: Any) -> Callable[[Column], list[Any]]:
    return lambda column: list(column.array("values", dtype).tolist())


def _read_nothing(column: Column) -> list[None]:
    return [None] * len(column.array("values", np.uint8))


def _read_by(make: Callable[[str], Any]) -> Callable[[Column], list[Any]]:
    """From texts; what cannot be made of them was not written so."""

    def read(column: Column) -> list[Any]:
        try:
            return [make(text) for text in _read_texts(column)]
        except (ValueError, ArithmeticError):
            raise column.wrong() from None

    return read


def _read_arrays(column: Column, name: Any, ndim: Any) -> list[Array]:
    column.require(isinstance(name, str) and name in DTYPES)
    return _apart(column, column.array("values", np.dtype(name)), ndim)


def _apart(column: Column, values: Array, ndim: Any) -> list[Array]:
    shapes = column.shapes(len(values), ndim)
    parts = _cut(values, map(prod, shapes))
    return [part.reshape(shape).copy() for part, shape in zip(parts, shapes, strict=True)]


def _read_times(column: Column, name: Any, ndim: Any) -> list[Array]:
    column.require(isinstance(name, str) and TIME_DTYPE.fullmatch(name))
    return [part.view(_dtype(column, name)) for part in _read_arrays(column, "<i8", ndim)]


def _read_object_arrays(column: Column, name: Any, ndim: Any) -> list[Array]:
    items = column.items("items")
    shapes = column.shapes(len(items), ndim)
    found = []
    for part, shape in zip(_cut(items, map(prod, shapes)), shapes, strict=True):
        array = np.empty(len(part), object)
        array[:] = part
        found.append(array.reshape(shape))
    return found


def _read_text_arrays(column: Column, name: Any, ndim: Any) -> list[Array]:
    column.require(isinstance(name, str) and TEXT_DTYPE.fullmatch(name))
    found = _read_object_arrays(column, name, ndim)
    column.require(all(type(x) is str for array in found for x in array.flat))
    dtype = _dtype(column, name)
    for array in found:
        n_bytes = sum(map(len, array.flat)) + 8 * array.size
        column.require(not is_roomy(dtype, array.size, n_bytes))
    return [array.astype(dtype) for array in found]


def _read_wide(column: Column, name: Any, ndim: Any) -> list[Array]:
    column.require(isinstance(name, str) and TEXT_DTYPE.fullmatch(name))
    values, width = column.array("values", np.uint32), int(name[2:])
    column.require(values.max(initial=0) <= LAST and width and len(values) % width == 0)
    return _apart(column, values.view(_dtype(column, name)), ndim)


def _dtype(column: Column, name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        raise column.wrong() from None


def _read_scalars(column: Column, kind: Any, name: Any) -> list[Any]:
    found = column.items("arrays")
    column.require(all(isinstance(x, np.ndarray) and x.ndim == 0 for x in found))
    column.require(all(x.dtype.str == name for x in found))
    return [x[()] for x in found]


def _read_joined(column: Column) -> list[Any]:
    items = column.items("items")
    make = CONTAINERS[column.kind[0]]
    return [make(part) for part in _cut(items, column.sizes(len(items)))]


def _read_dicts(column: Column) -> list[dict[Any, Any]]:
    keys, values = column.items("keys"), column.items("values")
    column.require(len(keys) == len(values))
    sizes = column.sizes(len(keys))
    pairs = zip(_cut(keys, sizes), _cut(values, sizes), strict=True)
    return [dict(zip(*pair, strict=True)) for pair in pairs]


def _read_sparse(column: Column, name: Any) -> list[Any]:
    column.require(isinstance(name, str) and name in SPARSE)
    parts = [column.items(part) for part in ("data", "indices", "indptr")]
    sizes = column.array("shape", np.int64, 2)
    column.require({len(part) for part in parts} == {len(sizes)} and sizes.shape[1] == 2)
    column.require(sizes.max(initial=0) <= BROADEST)
    shapes = sizes.tolist()
    found = []
    for data, indices, indptr, shape in zip(*parts, shapes, strict=True):
        good = all(isinstance(x, np.ndarray) and x.ndim == 1 for x in (data, indices, indptr))
        column.require(good and indices.dtype.kind == indptr.dtype.kind == "i")
        matrix = SPARSE[name]((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)  # a ValueError says what is wrong
        found.append(matrix)
    return found


def _read_categories(column: Column) -> list[Category]:
    return [Category(value) for value in column.items("items")]


def _read_timedeltas(column: Column) -> list[timedelta]:
    items = column.items("items")
    column.require(all(type(x) is tuple and [type(i) for i in x] == [int] * 3 for x in items))
    return [timedelta(*x) for x in items]


READ: dict[str, Callable[..., list[Any]]] = {
    "str": _read_texts,
    "np.str_": _read_by(np.str_),
    "bytes": _read_bytes,
    "bool": _read_numbers(np.bool_),
    "int": _read_numbers(np.int64),
    "bigint": _read_by(lambda text: int(text, 16)),
    "float": _read_numbers(np.float64),
    "none": _read_nothing,
    "missing": _read_nothing,
    "scalar": _read_scalars,
    "array": _read_arrays,
    "texts": _read_text_arrays,
    "wide": _read_wide,
    "times": _read_times,
    "objects": _read_object_arrays,
    **dict.fromkeys(CONTAINERS, _read_joined),
    "dict": _read_dicts,
    "sparse": _read_sparse,
    "category": _read_categories,
    "decimal": _read_by(Decimal),
    "date": _read_by(date.fromisoformat),
    "datetime": _read_by(datetime.fromisoformat),
    "time": _read_by(time.fromisoformat),
    "timedelta": _read_timedeltas,
    "graph": graphs_of,
    "network": networks_of,
}
