"""Single values as JSON: plain values stand for themselves, all others say their type.

Arrays go to members of the file, and sequences of many objects to columns of arrays (``columns``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from math import isfinite
from typing import Any

import numpy as np

from kreinlearn.kernels import Kernel
from kreinlearn.persist.arrays import DTYPES, Array, Arrays, Stored
from kreinlearn.persist.columns import read_column, write_column
from kreinlearn.persist.errors import ModelFormatError, NotDataError, require
from kreinlearn.persist.kernels import kernel_of, spec_of
from kreinlearn.persist.kinds import TEXT_DTYPE, is_roomy

Node = dict[str, Any]  # of the JSON header
LONE = re.compile("[\ud800-\udfff]")  # halves of characters, of which JSON would join two
SHORT = 16  # items of a sequence that stands in the header itself
MOST = 2**15  # characters of labels that stand in the header itself
# The classes of records, which are made of their fields, by module; no other class is ever made.
MADE_OF_FIELDS = {
    "kreinlearn.kernels.dissimilarity": (
        "Centring Exponential SquaredExponential LocalScaling Inverse RankScaling"
    ),
    "kreinlearn.data.memory": "Resources",
    "kreinlearn.nystrom.landmarks": "Landmarks",
    "kreinlearn.nystrom.error": "ErrorEstimate",
    "kreinlearn.nystrom.core": "FeatureMap",
    "kreinlearn.sums.moments": "Gram Moments",
    "kreinlearn.learn.incremental": "Sums",
    "kreinlearn.learn.neighbours": "NeighbourScores",
}
RECORDS = {name: module for module, names in MADE_OF_FIELDS.items() for name in names.split()}
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
GENERATORS = {"Generator": np.random.Generator, "RandomState": np.random.RandomState}
# The types of labels, by the letter of the dtype.
LABELS: dict[str, tuple[type, ...]] = {
    "U": (str,), "b": (bool,), "i": (int,), "u": (int,), "f": (float,),
    "O": (str, bool, int, float, type(None)),
}  # fmt: skip


class Writer:
    """Turns values into JSON; NotDataError for what is not data."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def value(self, x: Any, path: str) -> Any:
        """The JSON of a value; its arrays are named after ``path``."""
        kind = type(x)
        if x is None or kind in (bool, int) or (kind is float and isfinite(x)):
            return x
        if kind is str and not LONE.search(x):
            return x
        if RECORDS.get(kind.__name__) == kind.__module__:
            return self._record(x, path)
        for allowed, write in WRITERS:
            if isinstance(x, allowed):
                return write(self, x, path)
        return self._column([x], path)

    def _column(self, xs: Sequence[object], path: str, kind: str = "object") -> Node:
        return {"type": kind, "column": write_column(self.arrays, xs, path)}

    def sequence(self, x: Sequence[object], path: str) -> Node:
        short = len(x) <= SHORT or any(isinstance(item, Kernel) for item in x)
        if type(x) not in (list, tuple) or not short:
            return self.objects(x, path)
        items = [self.value(item, f"{path}.{i}") for i, item in enumerate(x)]
        return {"type": type(x).__name__, "items": items}

    def objects(self, x: object, path: str) -> Node:
        """The objects of a sequence as a column, however few they are; an array as it is."""
        if isinstance(x, np.ndarray):
            return self.array(x, path)
        if isinstance(x, list | tuple) and type(x) in (list, tuple):
            return self._column(list(x), path, type(x).__name__)
        return self._column([x], path)

    def mapping(self, x: dict[object, object], path: str) -> Node:
        keys = [self.value(key, f"{path}.key") for key in x]
        values = [self.value(value, f"{path}.{key}") for key, value in x.items()]
        return {"type": "dict", "keys": keys, "values": values}

    def array(self, x: Array, path: str) -> Node:
        if x.dtype.kind in "biuf" and x.dtype.itemsize <= 8:
            return {"type": "array", "member": self.arrays.add(path, x)}
        return self._column([x], path)

    def scalar(self, x: np.generic, path: str) -> Node:
        if x.dtype.str in DTYPES:
            return {"type": "scalar", "dtype": x.dtype.str, "item": self.value(x.item(), path)}
        return self._column([x], path)

    def labels(self, x: Array, path: str) -> Node:
        """A short array of classes or names, which a person can read in the header."""
        name, n_bytes = x.dtype.newbyteorder("<").str, _n_bytes(x.tolist())
        if n_bytes > MOST or not _is_dtype(name) or is_roomy(x.dtype, len(x), n_bytes):
            return self.array(x, path)
        items = [self.value(item, f"{path}.{i}") for i, item in enumerate(x.tolist())]
        return {"type": "labels", "dtype": name, "items": items}

    def generator(self, x: np.random.Generator | np.random.RandomState, path: str) -> Node:
        bits = x.bit_generator if isinstance(x, np.random.Generator) else x._bit_generator
        if type(bits).__name__ not in BIT_GENERATORS:
            raise NotDataError(f"a generator of random numbers of the type {type(bits).__name__}")
        state = self.value(bits.state, path)
        return {"type": "generator", "of": type(x).__name__, "state": state}

    def kernel(self, x: Kernel, path: str) -> Node:
        return {"type": "kernel", **spec_of(x, self.value, path)}

    def _record(self, x: object, path: str) -> Node:
        names = _field_types(type(x))
        values = {name: self.value(getattr(x, name), f"{path}.{name}") for name in names}
        return {"type": "record", "of": type(x).__name__, "fields": values}


WRITERS: tuple[tuple[Any, Callable[[Writer, Any, str], Node]], ...] = (
    (Kernel, Writer.kernel),
    (np.ndarray, Writer.array),
    (np.generic, Writer.scalar),
    (dict, Writer.mapping),
    (np.dtype, lambda writer, x, path: {"type": "dtype", "is": x.str}),
    ((np.random.Generator, np.random.RandomState), Writer.generator),
    ((list, tuple), Writer.sequence),
)


def _field_types(cls: Any) -> dict[str, str]:
    """The fields of a dataclass or NamedTuple, and their types as they are written in the code."""
    if is_dataclass(cls):
        return {field.name: str(field.type) for field in fields(cls)}
    types = {name: cls.__annotations__[name] for name in cls._fields}
    return {name: getattr(one, "__forward_arg__", one) for name, one in types.items()}


def is_a(value: object, wanted: str) -> bool:
    """Whether a value is of the type of a field, which is given as it is written in the code."""
    if " | " in wanted:
        return any(is_a(value, one) for one in wanted.split(" | "))
    if wanted.startswith("list["):
        return isinstance(value, list) and all(type(x).__name__ == wanted[5:-1] for x in value)
    plain = value.item() if isinstance(value, np.integer | np.floating) else value
    kind = type(plain).__name__
    known = {"ndarray": "Array", "Generator": "np.random.Generator"}
    return wanted in ("Any", "Objects", kind, known.get(kind)) or (
        plain is None and wanted == "None"
    )


class Reader:
    """Turns JSON into values; ModelFormatError for whatever ``Writer`` does not write."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored

    def value(self, node: object) -> Any:
        if not isinstance(node, dict):
            require(not isinstance(node, list), "its header has a list where none belongs")
            return node
        kind = node.get("type")
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise ModelFormatError(f"its header has a value of the unknown type {kind!r:.80}")
        return read(self, node)

    def values(self, nodes: object) -> dict[str, Any]:
        """The values of a part of the header, by name."""
        if not isinstance(nodes, dict):
            raise ModelFormatError("a part of its header is missing")
        return {key: self.value(node) for key, node in nodes.items()}

    def items(self, nodes: object) -> list[Any]:
        if not isinstance(nodes, list):
            raise ModelFormatError("its header has no list where one belongs")
        return [self.value(node) for node in nodes]

    def sequence(self, node: Node) -> Any:
        if "items" in node:
            items = self.items(_only(node, "items")[0])
        else:
            items = read_column(self.stored, _only(node, "column")[0])
        return items if node["type"] == "list" else tuple(items)

    def mapping(self, node: Node) -> dict[Any, Any]:
        keys, values = map(self.items, _only(node, "keys", "values"))
        require(len(keys) == len(values), "its header has a dict whose keys and values differ")
        return dict(zip(keys, values, strict=True))

    def one(self, node: Node) -> Any:
        objects = read_column(self.stored, _only(node, "column")[0])
        require(len(objects) == 1, "its header has not one object where one belongs")
        return objects[0]

    def labels(self, node: Node) -> Array:
        name, nodes = _only(node, "dtype", "items")
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

    def scalar(self, node: Node) -> np.generic:
        name, item = _only(node, "dtype", "item")
        item = self.value(item)
        kind = LABELS.get(name[1:2]) if isinstance(name, str) and name in DTYPES else None
        require(kind is not None and type(item) in kind, "it has a number of another type")
        return np.dtype(name).type(item)

    def generator(self, node: Node) -> np.random.Generator | np.random.RandomState:
        of, state = _only(node, "of", "state")
        state = self.value(state)
        name = state.get("bit_generator") if isinstance(state, dict) else None
        require(name in BIT_GENERATORS, f"it has random numbers of the unknown kind {name!r:.80}")
        require(of in GENERATORS, "it has random numbers of no known kind")
        bits = getattr(np.random, str(name))()
        bits.state = state
        return GENERATORS[of](bits)

    def dtype(self, node: Node) -> np.dtype[Any]:
        (name,) = _only(node, "is")
        require(name in ("<f4", "<f8"), f"{name!r:.80} is no type of numbers")
        return np.dtype(name)

    def record(self, node: Node) -> Any:
        of, nodes = _only(node, "of", "fields")
        require(isinstance(of, str) and of in RECORDS, f"it has an object of type {of!r:.80}")
        cls = getattr(import_module(RECORDS[of]), of)
        types = _field_types(cls)
        same = isinstance(nodes, dict) and nodes.keys() == types.keys()
        require(same, f"a {of} in it has other fields than it should")
        values = {name: self.value(nodes[name]) for name in types}
        for name, value in values.items():
            require(is_a(value, types[name]), f"{name} of a {of} in it is {value!r:.80}")
        return cls(**values)


READERS: Mapping[str, Callable[[Reader, Node], Any]] = {
    "list": Reader.sequence,
    "tuple": Reader.sequence,
    "dict": Reader.mapping,
    "object": Reader.one,
    "labels": Reader.labels,
    "scalar": Reader.scalar,
    "generator": Reader.generator,
    "record": Reader.record,
    "dtype": Reader.dtype,
    "array": lambda reader, node: reader.stored.take(_only(node, "member")[0]),
    "kernel": lambda reader, node: kernel_of(node, reader.value),
}


def _is_dtype(name: str) -> bool:
    return name in DTYPES or name == "|O" or TEXT_DTYPE.fullmatch(name) is not None


def _n_bytes(labels: list[object]) -> int:
    """The least number of bytes that labels take in a header."""
    return sum(len(str(label)) + 3 for label in labels)


def _only(node: Node, *names: str) -> list[Any]:
    """The values of these fields, which must be the only ones beside the type."""
    if node.keys() != {"type", *names}:
        raise ModelFormatError(f"a {node['type']!r:.80} in its header has fields {sorted(node)}")
    return [node[name] for name in names]
