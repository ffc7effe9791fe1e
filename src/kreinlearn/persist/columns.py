"""Many objects as a few arrays: a column of one kind, or of several and which is which.

Objects that hold objects (lists, sets, dicts, graphs) are joined end to end: one column of all
that is in them, and how much belongs to each. What is read takes no more than a few times the
bytes that are in the file, whatever these say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from math import prod
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp

from kreinlearn.kernels._base import Array
from kreinlearn.kernels._frames import Category
from kreinlearn.persist.errors import ModelFormatError, require
from kreinlearn.persist.graphs import (
    GRAPHS,
    graph_parts,
    graphs_of,
    is_network,
    network_parts,
    networks_of,
)
from kreinlearn.persist.members import DTYPES, Arrays, Stored

Json = Any
Kind = tuple[Any, ...]  # a name, and what goes with it: a type of numbers, a number of dimensions
INT64 = range(-(2**63), 2**63)
TEXT_DTYPE, TIME_DTYPE = re.compile(r"<U\d{1,9}"), re.compile(r"<[mM]8(\[\d*[a-zA-Z]+\])?")
BY_TYPE: dict[type, str] = {
    str: "str", bytes: "bytes", bool: "bool", float: "float", NoneType: "none", list: "list",
    tuple: "tuple", set: "set", frozenset: "frozenset", dict: "dict", Category: "category",
    np.str_: "np.str_", Decimal: "decimal", date: "date", datetime: "datetime", time: "time",
    timedelta: "timedelta",
}  # fmt: skip
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip
SPARSE = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}


class NotData(TypeError):
    """An object that a file of data cannot hold."""


def kind_of(x: Any) -> Kind:
    kind = type(x)
    if kind in BY_TYPE:
        return (BY_TYPE[kind],)
    if kind is int:
        return ("int",) if x in INT64 else ("bigint",)
    if isinstance(x, np.ndarray):
        return _array_kind(x)
    if isinstance(x, np.generic):
        return ("scalar", *_array_kind(np.asarray(x))[:2])
    if kind.__name__ in SPARSE and sp.issparse(x):
        return "sparse", kind.__name__
    if kind.__name__ in ("NAType", "NaTType"):
        return ("missing",)
    if (kind.__module__, kind.__qualname__) == GRAPHS:
        return ("graph",)
    if is_network(x):
        return "network", kind.__name__
    raise NotData(f"a {kind.__module__}.{kind.__qualname__}")


def _array_kind(x: Array) -> Kind:
    if x.dtype.kind in "biuf" and x.dtype.newbyteorder("<").str in DTYPES:
        return "array", x.dtype.newbyteorder("<").str, x.ndim
    if x.dtype.kind in "UmM":
        return "texts" if x.dtype.kind == "U" else "times", x.dtype.newbyteorder("<").str, x.ndim
    if x.dtype == object:
        return "objects", "|O", x.ndim
    raise NotData(f"an array of the type {x.dtype}")


# Writing


def write_column(arrays: Arrays, xs: Sequence[Any], path: str) -> Json:
    """Objects by their kinds; the arrays are named by ``path``."""
    kinds = [kind_of(x) for x in xs]
    distinct = list(dict.fromkeys(kinds)) or [("none",)]
    if len(distinct) == 1:
        return _write_kind(arrays, distinct[0], xs, path)
    number = {kind: i for i, kind in enumerate(distinct)}
    which = np.array([number[kind] for kind in kinds], dtype=np.int32)
    parts = [[x for x, own in zip(xs, kinds, strict=True) if own == kind] for kind in distinct]
    nodes = [
        _write_kind(arrays, kind, part, f"{path}.{kind[0]}{i}")
        for i, (kind, part) in enumerate(zip(distinct, parts, strict=True))
    ]
    return {"kind": ["mixed"], "which": arrays.add(f"{path}.which", which), "columns": nodes}


def _write_kind(arrays: Arrays, kind: Kind, xs: Sequence[Any], path: str) -> Json:
    parts = WRITE[kind[0]](xs)
    node: dict[str, Any] = {"kind": list(kind)}
    for name, part in parts.items():
        if isinstance(part, list):
            node[name] = write_column(arrays, part, f"{path}.{name}")
        else:
            node[name] = arrays.add(f"{path}.{name}", part)
    return node


Parts = dict[str, Any]  # arrays, and lists of objects that are columns themselves


def _texts(xs: Iterable[str]) -> Parts:
    return _bytes([x.encode("utf8", "surrogatepass") for x in xs])


def _bytes(xs: Sequence[bytes]) -> Parts:
    return {"text": np.frombuffer(b"".join(xs), dtype=np.uint8), "size": _sizes(xs)}


def _sizes(xs: Iterable[Any]) -> Array:
    return np.array([len(x) for x in xs], dtype=np.int64)


def _joined(xs: Sequence[Any]) -> Parts:
    return {"size": _sizes(xs), "items": list(chain.from_iterable(xs))}


def _arrays(xs: Sequence[Array]) -> Parts:
    dtype = xs[0].dtype.newbyteorder("<")
    flat = [np.empty(0, dtype), *(x.reshape(-1) for x in xs)]
    return {"values": np.concatenate(flat).astype(dtype, copy=False), **_shapes(xs)}


def _times(xs: Sequence[Array]) -> Parts:
    return {**_arrays([x.astype(x.dtype.newbyteorder("<")).view(np.int64) for x in xs])}


def _shapes(xs: Sequence[Any]) -> Parts:
    return {"shape": np.array([x.shape for x in xs], dtype=np.int64).reshape(len(xs), -1)}


def _object_arrays(xs: Sequence[Array]) -> Parts:
    return {"items": [item for x in xs for item in x.reshape(-1).tolist()], **_shapes(xs)}


def _sparse(xs: Sequence[Any]) -> Parts:
    parts = {name: [getattr(x, name) for x in xs] for name in ("data", "indices", "indptr")}
    return {**parts, **_shapes(xs)}


def _dicts(xs: Sequence[dict[Any, Any]]) -> Parts:
    keys, values = ([item for x in xs for item in part(x)] for part in (dict.keys, dict.values))
    return {"size": _sizes(xs), "keys": keys, "values": values}


def _numbers(dtype: Any) -> Callable[[Sequence[Any]], Parts]:
    return lambda xs: {"values": np.array(xs, dtype=dtype)}


WRITE: dict[str, Callable[[Sequence[Any]], Parts]] = {
    "str": _texts,
    "np.str_": lambda xs: _texts(map(str, xs)),
    "bytes": _bytes,
    "bool": _numbers(np.bool_),
    "int": _numbers(np.int64),
    "bigint": lambda xs: _texts(map(hex, xs)),
    "float": _numbers(np.float64),
    "none": lambda xs: {"values": np.zeros(len(xs), np.uint8)},
    "missing": lambda xs: {"values": np.zeros(len(xs), np.uint8)},
    "scalar": lambda xs: {"arrays": [np.asarray(x) for x in xs]},
    "array": _arrays,
    "texts": _object_arrays,
    "times": _times,
    "objects": _object_arrays,
    **dict.fromkeys(("list", "tuple", "set", "frozenset"), _joined),
    "dict": _dicts,
    "sparse": _sparse,
    "category": lambda xs: {"items": [x.value for x in xs]},
    "decimal": lambda xs: _texts(map(str, xs)),
    **dict.fromkeys(("date", "datetime", "time"), lambda xs: _texts(x.isoformat() for x in xs)),
    "timedelta": lambda xs: {"items": [(x.days, x.seconds, x.microseconds) for x in xs]},
    "graph": graph_parts,
    "network": network_parts,
}


# Reading


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
        sizes = self.array("size", np.int64)
        self.require((sizes >= 0).all() and (sizes <= total).all() and sizes.sum() == total)
        return list(sizes.tolist())

    def shapes(self, total: int, ndim: Any) -> list[tuple[int, ...]]:
        """Shapes of arrays that together have ``total`` entries."""
        shapes = self.array("shape", np.int64, 2)
        good = type(ndim) is int and 0 <= ndim <= 8
        self.require(good and (shapes.shape[1] == ndim or not len(shapes)))
        found = [tuple(shape) for shape in shapes.tolist()]
        self.require(all(0 <= d < 2**40 for shape in found for d in shape))
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
    values = column.array("values", np.dtype(name))
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
    widest = max((len(x) for array in found for x in array.flat), default=0)
    column.require(int(name[2:]) <= 8 * widest + 64)  # no more room than texts explain
    return [array.astype(_dtype(column, name)) for array in found]


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
    shapes = column.array("shape", np.int64, 2).tolist()
    column.require({len(part) for part in parts} <= {len(shapes)})
    found = []
    for data, indices, indptr, shape in zip(*parts, shapes, strict=True):
        good = all(isinstance(x, np.ndarray) and x.ndim == 1 for x in (data, indices, indptr))
        column.require(good and len(shape) == 2 and indices.dtype.kind == indptr.dtype.kind == "i")
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


MORE = {"array": 2, "texts": 2, "times": 2, "objects": 2, "scalar": 2, "sparse": 1, "network": 1}
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
