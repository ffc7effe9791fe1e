"""Many objects as a few arrays: a column of one kind, or of several and which is which.

Objects that hold objects (lists, sets, dicts, graphs) are joined end to end: one column of all
that is in them, and how much belongs to each. ``objects`` reads them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp

from kreinlearn.data.frames import Category
from kreinlearn.kernels.base import Array
from kreinlearn.persist.graphs import GRAPHS, graph_parts, is_network, network_parts
from kreinlearn.persist.members import DTYPES, Arrays

Json = Any
Kind = tuple[Any, ...]  # a name, and what goes with it: a type of numbers, a number of dimensions
INT64 = range(-(2**63), 2**63)
BY_TYPE: dict[type, str] = {
    str: "str", bytes: "bytes", bool: "bool", float: "float", NoneType: "none", list: "list",
    tuple: "tuple", set: "set", frozenset: "frozenset", dict: "dict", Category: "category",
    np.str_: "np.str_", Decimal: "decimal", date: "date", datetime: "datetime", time: "time",
    timedelta: "timedelta",
}  # fmt: skip
BROADEST = 2**24  # columns of sparse rows: a file says nothing of empty ones, products need room
ROOM = 64  # bytes that texts of one width may take for each byte that is stored of them
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
        if x.shape[1] > BROADEST:
            raise NotData(f"sparse rows of {x.shape[1]} columns ({BROADEST} are allowed)")
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
        return _name_of(x), x.dtype.newbyteorder("<").str, x.ndim
    if x.dtype == object:
        return "objects", "|O", x.ndim
    raise NotData(f"an array of the type {x.dtype}")


def _name_of(x: Array) -> str:
    if x.dtype.kind != "U":
        return "times"
    n_bytes = int(np.char.str_len(x).sum()) + 8 * x.size  # texts and their sizes
    return "wide" if is_roomy(x.dtype, x.size, n_bytes) else "texts"


def is_roomy(dtype: np.dtype[Any], count: int, n_bytes: int) -> bool:
    """Whether texts of one width take many times the bytes that would be stored of them."""
    return dtype.itemsize * count > ROOM * n_bytes


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


def _wide(xs: Sequence[Array]) -> Parts:
    """The numbers of all characters, so that a file is as large as what is read from it."""
    flat = [np.empty(0, np.uint32)]
    flat += [x.astype(x.dtype.newbyteorder("<")).reshape(-1).view(np.uint32) for x in xs]
    return {"values": np.concatenate(flat), **_shapes(xs)}


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
    "wide": _wide,
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
