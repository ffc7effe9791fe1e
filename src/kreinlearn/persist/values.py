"""Single values as JSON: what is plain stands for itself, all else says its type.

Arrays go to members, sequences of many objects to columns of arrays (``columns``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from importlib import import_module
from math import isfinite
from typing import Any

import numpy as np

from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.persist.columns import NotData, is_roomy, write_column
from kreinlearn.persist.errors import ModelFormatError, require
from kreinlearn.persist.kernels import kernel_of, spec_of
from kreinlearn.persist.members import DTYPES, Arrays, Stored
from kreinlearn.persist.objects import TEXT_DTYPE, read_column

Json = Any
LONE = re.compile("[\ud800-\udfff]")  # halves of characters, of which JSON would join two
SHORT = 16  # items of a sequence that the header holds itself
MOST = 2**15  # characters of all labels that the header holds itself
NOT_FINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
# What is made of fields, by the module of its class; no other class is ever made.
RECORDS = {
    **dict.fromkeys(
        ("Centring", "Exponential", "LocalScaling", "Inverse"), "kreinlearn.kernels.dissimilarity"
    ),
    "ErrorEstimate": "kreinlearn.nystrom.approximation",
    "FeatureMap": "kreinlearn.nystrom.core",
    "Gram": "kreinlearn.sums.moments",
    "Moments": "kreinlearn.sums.moments",
    "Sums": "kreinlearn.estimators._incremental",
}
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class Writer:
    """From values to JSON; ``external`` kernels are left to be given again."""

    def __init__(self, arrays: Arrays, *, external: bool = False) -> None:
        self.arrays, self.external = arrays, external

    def value(self, x: Any, path: str) -> Json:
        """TypeError (``NotData``) for what is not data."""
        kind = type(x)
        if x is None or kind in (bool, int) or (kind is float and isfinite(x)):
            return x
        if kind is str and not LONE.search(x):
            return x
        if kind is float:
            return {"type": "float", "is": str(x)}
        if RECORDS.get(kind.__name__) == kind.__module__:
            return self._record(x, path)
        for allowed, write in WRITERS:
            if isinstance(x, allowed):
                return write(self, x, path)
        return {"type": "object", "column": write_column(self.arrays, [x], path)}

    def sequence(self, x: Any, path: str) -> Json:
        short = len(x) <= SHORT or any(isinstance(item, Kernel) for item in x)
        if type(x) not in (list, tuple) or not short:
            return self.objects(x, path)
        items = [self.value(item, f"{path}.{i}") for i, item in enumerate(x)]
        return {"type": type(x).__name__, "items": items}

    def objects(self, x: Any, path: str) -> Json:
        """As columns, however few; an array as it is."""
        if isinstance(x, np.ndarray):
            return self.array(x, path)
        if type(x) in (list, tuple):
            return {"type": type(x).__name__, "column": write_column(self.arrays, list(x), path)}
        return {"type": "object", "column": write_column(self.arrays, [x], path)}

    def mapping(self, x: dict[Any, Any], path: str) -> Json:
        keys = [self.value(key, f"{path}.key") for key in x]
        values = [self.value(value, f"{path}.{key}") for key, value in x.items()]
        return {"type": "dict", "keys": keys, "values": values}

    def array(self, x: Array, path: str) -> Json:
        if x.dtype.kind in "biuf" and x.dtype.itemsize <= 8:
            return {"type": "array", "member": self.arrays.add(path, x)}
        return {"type": "object", "column": write_column(self.arrays, [x], path)}

    def scalar(self, x: np.generic, path: str) -> Json:
        if x.dtype.kind in "biuf" and x.dtype.itemsize <= 8:
            return {"type": "scalar", "dtype": x.dtype.str, "item": self.value(x.item(), path)}
        return {"type": "object", "column": write_column(self.arrays, [x], path)}

    def labels(self, x: Array, path: str) -> Json:
        """A short array of classes or names, where a person can read it."""
        name, n_bytes = x.dtype.newbyteorder("<").str, _n_bytes(x.tolist())
        if n_bytes > MOST or not _is_dtype(name) or is_roomy(x.dtype, len(x), n_bytes):
            return self.array(x, path)
        items = [self.value(item, f"{path}.{i}") for i, item in enumerate(x.tolist())]
        return {"type": "labels", "dtype": name, "items": items}

    def generator(self, x: Any, path: str) -> Json:
        bits = x.bit_generator if isinstance(x, np.random.Generator) else x._bit_generator
        if type(bits).__name__ not in GENERATORS:
            raise NotData(f"a generator of random numbers of the type {type(bits).__name__}")
        state = self.value(bits.state, path)
        return {"type": "generator", "of": type(x).__name__, "state": state}

    def kernel(self, x: Kernel, path: str) -> Json:
        return {"type": "kernel", **spec_of(x, self.value, path)}

    def _record(self, x: Any, path: str) -> Json:
        values = {name: getattr(x, name) for name in _field_types(type(x))}
        held = {name: self.value(value, f"{path}.{name}") for name, value in values.items()}
        return {"type": "record", "of": type(x).__name__, "fields": held}


WRITERS: tuple[tuple[Any, Callable[[Writer, Any, str], Json]], ...] = (
    (Kernel, Writer.kernel),
    (np.ndarray, Writer.array),
    (np.generic, Writer.scalar),
    (dict, Writer.mapping),
    (range, lambda writer, x, path: {"type": "range", "items": [x.start, x.stop, x.step]}),
    (np.dtype, lambda writer, x, path: {"type": "dtype", "is": x.str}),
    ((np.random.Generator, np.random.RandomState), Writer.generator),
    ((list, tuple), Writer.sequence),
)


def _field_types(cls: Any) -> dict[str, str]:
    """Fields of a dataclass or NamedTuple, and their types in words."""
    names = [field.name for field in fields_of(cls)] if is_dataclass(cls) else cls._fields
    given = [cls.__annotations__[name] for name in names]
    words = [getattr(one, "__forward_arg__", one) for one in given]  # of a NamedTuple
    return dict(zip(names, words, strict=True))


def _is_a(value: Any, wanted: str) -> bool:
    """Whether a value is of the type of a field, which is given in words."""
    if wanted.startswith("list["):
        return type(value) is list and all(type(one).__name__ == wanted[5:-1] for one in value)
    kind = type(value).__name__
    known = {"ndarray": "Array", "Generator": "np.random.Generator", "float64": "float"}
    return wanted in ("Any", kind, known.get(kind))


class Reader:
    """From JSON back to values; ModelFormatError for whatever ``Writer`` does not write."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored

    def value(self, node: Json) -> Any:
        if not isinstance(node, dict):
            require(not isinstance(node, list), "its header has a list where none belongs")
            return node
        kind = node.get("type")
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise ModelFormatError(f"its header has a value of the unknown type {kind!r:.80}")
        return read(self, node)

    def items(self, nodes: Any) -> list[Any]:
        require(isinstance(nodes, list), "its header has no list where one belongs")
        return [self.value(node) for node in nodes]

    def sequence(self, node: Json) -> Any:
        if "items" in node:
            found = self.items(fields(node, "items")[0])
        else:
            found = read_column(self.stored, fields(node, "column")[0])
        return found if node["type"] == "list" else tuple(found)

    def mapping(self, node: Json) -> dict[Any, Any]:
        keys, values = map(self.items, fields(node, "keys", "values"))
        require(len(keys) == len(values), "its header has a dict whose keys and values differ")
        return dict(zip(keys, values, strict=True))

    def one(self, node: Json) -> Any:
        found = read_column(self.stored, fields(node, "column")[0])
        require(len(found) == 1, "its header has not one object where one belongs")
        return found[0]

    def labels(self, node: Json) -> Array:
        name, nodes = fields(node, "dtype", "items")
        items = self.items(nodes)
        kind = LABELS.get(name[1:2]) if isinstance(name, str) and _is_dtype(name) else None
        good = kind is not None and all(type(item) in kind for item in items)
        require(good, "its classes or names are not of the type that it says")
        dtype = np.dtype(name)
        require(not is_roomy(dtype, len(items), _n_bytes(items)), "its labels are wide")
        array = np.empty(len(items), dtype)
        array[:] = items
        require(name[1:2] == "O" or array.tolist() == items, "its classes do not fit their type")
        return array

    def scalar(self, node: Json) -> Any:
        name, item = fields(node, "dtype", "item")
        item = self.value(item)
        kind = LABELS.get(name[1:2]) if isinstance(name, str) and name in DTYPES else None
        require(kind is not None and type(item) in kind, "it has a number of another type")
        return np.dtype(name).type(item)

    def generator(self, node: Json) -> Any:
        of, state = fields(node, "of", "state")
        state = self.value(state)
        name = state.get("bit_generator") if isinstance(state, dict) else None
        require(name in GENERATORS, f"it has random numbers of the unknown kind {name!r:.80}")
        bits = getattr(np.random, str(name))()
        bits.state = state
        makers = {"Generator": np.random.Generator, "RandomState": np.random.RandomState}
        require(of in makers, "it has random numbers of no known kind")
        return makers[of](bits)

    def record(self, node: Json) -> Any:
        of, held = fields(node, "of", "fields")
        require(isinstance(of, str) and of in RECORDS, f"it has an object of type {of!r:.80}")
        cls = getattr(import_module(RECORDS[of]), of)
        types = _field_types(cls)
        same = isinstance(held, dict) and held.keys() == types.keys()
        require(same, f"a {of} in it has other fields than it should")
        values = {name: self.value(held[name]) for name in types}
        for name, value in values.items():
            if not _is_a(value, types[name]):
                raise ModelFormatError(f"{name} of a {of} in it is {value!r:.80}")
        return cls(**values)


LABELS: dict[str, tuple[type, ...]] = {
    "U": (str,), "b": (bool,), "i": (int,), "u": (int,), "f": (float,),
    "O": (str, bool, int, float, type(None)),
}  # fmt: skip


def _is_dtype(name: str) -> bool:
    return name in DTYPES or name == "|O" or TEXT_DTYPE.fullmatch(name) is not None


def _n_bytes(labels: list[Any]) -> int:
    """That a header takes for them, at the least."""
    return sum(len(str(label)) + 3 for label in labels)


def fields(node: dict[str, Any], *names: str) -> list[Any]:
    """The values of exactly these fields, beside the type."""
    if node.keys() != {"type", *names}:
        raise ModelFormatError(f"a {node['type']!r:.80} in its header has fields {sorted(node)}")
    return [node[name] for name in names]


def _float(node: Json) -> float:
    (name,) = fields(node, "is")
    require(isinstance(name, str) and name in NOT_FINITE, f"{name!r:.80} is no number")
    return float(NOT_FINITE[name])


def _range(node: Json) -> range:
    (items,) = fields(node, "items")
    good = isinstance(items, list) and len(items) == 3 and all(type(i) is int for i in items)
    require(good, "its header has a range of no three numbers")
    return range(*items)


def _dtype(node: Json) -> np.dtype[Any]:
    (name,) = fields(node, "is")
    require(name in ("<f4", "<f8"), f"{name!r:.80} is no type of numbers")
    return np.dtype(name)


READERS: dict[str, Callable[[Reader, Json], Any]] = {
    "list": Reader.sequence,
    "tuple": Reader.sequence,
    "dict": Reader.mapping,
    "object": Reader.one,
    "labels": Reader.labels,
    "scalar": Reader.scalar,
    "generator": Reader.generator,
    "record": Reader.record,
    "array": lambda reader, node: reader.stored.take(fields(node, "member")[0]),
    "kernel": lambda reader, node: kernel_of(node, reader.value),
    "float": lambda reader, node: _float(node),
    "range": lambda reader, node: _range(node),
    "dtype": lambda reader, node: _dtype(node),
}
