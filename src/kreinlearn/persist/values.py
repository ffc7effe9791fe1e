"""Values as JSON and arrays: plain values stand for themselves, all others say what they are.

What JSON does not know is an object ``{"type": ..., "of": ...}`` of its parts, which are values
themselves. The bytes of arrays are kept apart, in the order in which the JSON mentions them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from importlib import import_module
from io import BufferedReader
from math import isfinite, prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from kreinlearn import kernels
from kreinlearn.data.tiles import library
from kreinlearn.kernels.base import REGISTRY, Array, Kernel
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.kernels.several import Several
from kreinlearn.persist.errors import GivenError, NotDataError, require

Own = Callable[[Any], Any] | None  # from and to objects of the user's own classes
DTYPE = re.compile(r"\|[biu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,8}|<[mM]8(\[\d*[a-zA-Z]+\])?")
BROADEST = 2**24  # columns of sparse rows: empty ones take no byte of a file, but room in products
LONGEST_EMPTY = 2**20  # rows or columns of an array without entries, which takes no byte of a file
ALIKE = 100  # different values with the same hash, which no honest file has
NETWORKS = ("Graph", "DiGraph", "MultiGraph", "MultiDiGraph")
# The classes that are made of their fields, by module; no other class is ever made.
MADE_OF_FIELDS = {
    "data.frames": "Category", "data.memory": "Resources", "datasets": "Graph",
    "kernels.dissimilarity":
        "Centring Exponential SquaredExponential LocalScaling Inverse RankScaling Blend",
    "learn.fit": "Sums FitSums", "learn.neighbours": "NeighbourScores LabelNeighbours",
    "nystrom.core": "FeatureMap", "nystrom.error": "ErrorEstimate",
    "nystrom.landmarks": "Landmarks", "solvers.conformal": "LeftOut",
    "solvers.novelty": "LocalDistances", "sums.moments": "Gram Moments",
    "solvers.probabilities": "Sigmoids Temperature LabelSigmoids",
}  # fmt: skip
RECORDS = {name: room for room, names in MADE_OF_FIELDS.items() for name in names.split()}
# Kernels that are not in the registry, because they are made of others or of parameters.
CLASSES = [cls for cls in (*vars(kernels).values(), Several) if isinstance(cls, type)]
UNNAMED = {cls.__name__: cls for cls in CLASSES if issubclass(cls, Kernel)}


# The parts of objects, and objects of their parts


def _is_shape(shape: Any, size: int = 1) -> bool:
    """Whether an array may have this shape, whose entries are of so many bytes."""
    good = type(shape) is list and all(type(n) is int and n >= 0 for n in shape)
    return good and bool(prod(shape) * size or max(shape, default=0) <= LONGEST_EMPTY)


def _objects_from(shape: Any, items: Any) -> Array:
    good = _is_shape(shape) and type(items) is list and prod(shape) == len(items)
    require(good, f"it has objects of the shape {shape!r:.80}, which are not in the file")
    flat = np.empty(len(items), object)
    flat[:] = items
    return flat.reshape(shape)


def _range(*ends: int) -> range:
    require(len(range(*ends)) <= LONGEST_EMPTY, f"it has a range of {ends!r:.80}")
    return range(*ends)


def _parts_of_sparse(x: Any) -> list[object]:
    if x.shape[1] > BROADEST:
        raise NotDataError(f"sparse rows of {x.shape[1]} columns ({BROADEST} are allowed)")
    return [[x.data, x.indices, x.indptr], [*x.shape]]


def _sparse_from(cls: Any, parts: Any) -> Any:
    (data, indices, indptr), shape = parts
    require(_is_shape(shape) and max(shape) <= BROADEST, f"it has sparse rows of shape {shape}")
    rows = cls((data, indices, indptr), shape=tuple(shape))
    rows.check_format(full_check=True)  # a ValueError says what is wrong
    return rows


def _generator_from(cls: Any, state: Any) -> Any:
    kind = getattr(np.random, state["bit_generator"])
    require(issubclass(kind, np.random.BitGenerator), f"it has random numbers by {kind!r:.80}")
    bits = kind()
    bits.state = state
    return cls(bits)


def _fields_of(cls: Any) -> list[str]:
    return [*getattr(cls, "_fields", ())] or [field.name for field in fields(cls)]


def _record_from(name: str, values: dict[str, Any]) -> Any:
    require(name in RECORDS, f"it has an object of the class {name!r:.80}")
    cls = getattr(import_module(f"kreinlearn.{RECORDS[name]}"), name)
    require([*values] == _fields_of(cls), f"a {name} in it has other fields than it should")
    return cls(**values)


def _parts_of_network(x: Any) -> list[object]:
    """The class, the data, the nodes and the edges (with keys) of a graph, and their data."""
    edges = x.edges(data=True, keys=True) if x.is_multigraph() else x.edges(data=True)
    return [type(x).__name__, x.graph, [*map(list, x.nodes(data=True))], [*map(list, edges)]]


def _network_from(name: str, about: Any, nodes: Any, edges: Any) -> Any:
    require(name in NETWORKS, f"it has a graph of the class {name!r:.80}")
    require(type(nodes) is type(edges) is list, "its graphs have no lists of nodes and edges")
    graph = getattr(library("networkx", "graphs"), name)()
    graph.graph.update(about)
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


def _parts_of_kernel(kernel: Kernel) -> list[object]:
    for name, kind in {**REGISTRY, **UNNAMED}.items():
        if kind is type(kernel):
            return [name, kernel.get_params(deep=False)]
    what = kernel.func if isinstance(kernel, CallableKernel) else kernel
    raise NotDataError(f"kernel {what!r:.200} has no name that a later process could find")


def _kernel_from(name: str, parameters: dict[str, Any]) -> Kernel:
    return UNNAMED[name](**parameters) if name in UNNAMED else kernels.resolve(name, parameters)


# From an object to its parts, which are a value, and back. First those of these types and not of a
# subclass; JSON has numbers that are finite, and dicts whose keys are texts.
Kind = tuple[Callable[[Any], object], Callable[[Any], object]]
BY_TYPE: dict[type, Kind] = {
    float: (np.array, float),
    bytes: (bytes.hex, bytes.fromhex),
    dict: (lambda x: [*map(list, x.items())], dict),
    range: (lambda x: [x.start, x.stop, x.step], lambda of: _range(*of)),
    timedelta: (lambda x: [x.days, x.seconds, x.microseconds], lambda of: timedelta(*of)),
    **{cls: (list, cls) for cls in (tuple, set, frozenset)},
    **{cls: (str, cls) for cls in (np.str_, Decimal)},
    **{cls: (cls.isoformat, cls.fromisoformat) for cls in (date, datetime, time)},
    **{x: (_parts_of_sparse, partial(_sparse_from, x)) for x in (sp.csr_array, sp.csr_matrix)},
    np.random.Generator: (
        lambda x: x.bit_generator.state, partial(_generator_from, np.random.Generator),
    ),
    np.random.RandomState: (
        lambda x: x._bit_generator.state, partial(_generator_from, np.random.RandomState),
    ),
}  # fmt: skip
KINDS: dict[str, Kind] = {
    **{cls.__name__: kind for cls, kind in BY_TYPE.items()},
    "scalar": (np.asarray, lambda x: x.reshape(())[()]),
    "objects": (lambda x: [[*x.shape], x.ravel().tolist()], lambda of: _objects_from(*of)),
    "kernel": (_parts_of_kernel, lambda of: _kernel_from(*of)),
    "network": (_parts_of_network, lambda of: _network_from(*of)),
    "record": (
        lambda x: [type(x).__name__, {name: getattr(x, name) for name in _fields_of(type(x))}],
        lambda of: _record_from(*of),
    ),
}
BASES = {datetime: "datetime", Kernel: "kernel", np.generic: "scalar", np.ndarray: "objects"}
HASHED = ("tuple", "frozenset", "Decimal", "timedelta")  # by rules that anybody can compute


def kind_of(x: object) -> str | None:
    """The name of the kind of an object that JSON does not know; None if it is not data."""
    cls = type(x)
    room, name = cls.__module__, cls.__name__
    if cls in BY_TYPE:
        return name
    if room == f"kreinlearn.{RECORDS.get(name)}":
        return "record"
    if room.startswith("networkx.classes.") and name in NETWORKS:
        return "network"
    return next((name for base, name in BASES.items() if isinstance(x, base)), None)


def _returned(function: Callable[[Any], Any], x: Any, name: str, does: str) -> Any:
    """What a function of the user makes of an object; a GivenError if it fails."""
    try:
        return function(x)
    except Exception as error:
        why = f"{name} raised {type(error).__name__} ({error!s:.200}) for {x!r:.80}"
        raise GivenError(f"{why}; pass a function that {does}") from error


class Writer:
    """Turns values into JSON and the bytes of arrays; NotDataError for what is not data."""

    def __init__(self, encode: Own, where: str = "", arrays: list[Any] | None = None) -> None:
        self.encode, self.where = encode, where
        self.arrays: list[memoryview] = [] if arrays is None else arrays

    def value(self, x: Any) -> Any:
        """The JSON of a value."""
        cls = type(x)
        if x is None or cls.__name__ in ("NAType", "NaTType"):  # missing, also in pandas
            return None
        if cls in (bool, int, str) or (cls is float and isfinite(x)):
            return x
        if cls is list:
            return [self.value(item) for item in x]
        if cls is dict and "type" not in x and all(type(key) is str for key in x):
            return {key: self.value(item) for key, item in x.items()}
        if isinstance(x, np.ndarray) and x.dtype != object:
            return {"type": "array", "of": self._array(x)}
        if (kind := kind_of(x)) is not None:
            return {"type": kind, "of": self.value(KINDS[kind][0](x))}
        if self.encode is None:
            raise NotDataError(f"a {cls.__module__}.{cls.__qualname__}{self.where}")
        plain = Writer(None, f" in what encode returned for a {cls.__qualname__}", self.arrays)
        data = _returned(self.encode, x, "encode", "makes numbers, texts, lists or arrays of it")
        return {"type": "encoded", "of": [cls.__qualname__, plain.value(data)]}

    def _array(self, x: Array) -> list[Any]:
        """The type, shape and order of an array; one in Fortran order stays in that order."""
        x = np.asarray(x, x.dtype.newbyteorder("<"))
        if not DTYPE.fullmatch(x.dtype.str):
            raise NotDataError(f"an array of the type {x.dtype}")
        order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(x.T if order == "F" else x).reshape(-1)
        self.arrays.append(flat.view(np.uint8).data)
        return [x.dtype.str, [*x.shape], order]


class Reader:
    """Turns JSON into values; an error for whatever ``Writer`` does not write.

    The arrays are read from a file that has so many bytes left for them.
    """

    def __init__(self, file: BufferedReader, left: int, decode: Own = None) -> None:
        self.file, self.left, self.decode = file, left, decode
        self.alike: dict[int, list[object]] = {}  # different values by their hash

    def value(self, node: Any) -> Any:
        """The value of a part of the JSON; parts must be read in the order of the file."""
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            require(type(node) is not float or isfinite(node), f"it has the number {node}")
            return self._spread(node) if type(node) is int else node
        if "type" not in node:
            return {key: self.value(item) for key, item in node.items()}
        kind, of = node["type"], node["of"]
        good = len(node) == 2 and kind in ("array", "encoded", *KINDS)
        require(good, f"it has a value of the type {kind!r:.80}, which is not allowed")
        if kind == "array":
            return self._array(*of)
        if kind == "encoded" and self.decode is not None:
            return _returned(self.decode, self.value(of[1]), "decode", "reverses that of save")
        if kind == "encoded":
            what = f"it has objects of the class {of[0]!s:.80}, made data of by save(..., encode=f)"
            raise GivenError(f"{what}; pass the reverse of f: load(path, decode=...)")
        parts = self.value(of)
        require(type(parts) in (str, list, dict, np.ndarray), f"it has a {kind} of {parts!r:.80}")
        made = KINDS[kind][1](parts)
        return self._spread(made) if kind in HASHED else made

    def _spread(self, value: Any) -> Any:
        """Refuse many different values of one hash: a set of them takes the square of its size."""
        if type(value) is not int or abs(value) >= sys.hash_info.modulus:
            with suppress(TypeError):  # a tuple of lists has no hash
                same = self.alike.setdefault(hash(value), [value])
                same += [] if value in same else [value]
                require(len(same) < ALIKE, f"it has {ALIKE} different values that have one hash")
        return value

    def _array(self, name: str, shape: list[int], order: str) -> Array:
        """The next array; no memory is allocated for what is not in the file."""
        good = DTYPE.fullmatch(name) and order in ("C", "F")
        require(good, f"it has an array of the type {name!r:.80}, which is not allowed")
        dtype = np.dtype(name)
        good = _is_shape(shape, dtype.itemsize) and prod(shape) * dtype.itemsize <= self.left
        require(good, f"it has an array of the shape {shape!r:.80}, which is not in the file")
        data = bytearray(prod(shape) * dtype.itemsize)
        self.left -= len(data)
        require(self.file.readinto(data) == len(data), "the file ended while it was read")
        if dtype.kind in "bU":  # a bool is 0 or 1, and a character has a number
            limit, unit = (1, "u1") if dtype.kind == "b" else (sys.maxunicode, "<u4")
            good = np.frombuffer(data, unit).max(initial=0) <= limit
            require(good, f"an array in it is not of the type {name!r}")
        array = np.ndarray(shape[::-1] if order == "F" else shape, dtype, data)
        return array.T if order == "F" else array
