"""How objects that JSON does not know are written by their parts, and made of them again.

The parts of an object are values that can be written themselves: a list, a text or an array.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kreinlearn.data.frames import Category
from kreinlearn.data.tiles import library
from kreinlearn.kernels import Kernel
from kreinlearn.persist.errors import NotDataError, require
from kreinlearn.persist.kernels import kernel_from, parts_of_kernel

if TYPE_CHECKING:
    from networkx import Graph as Network

BROADEST = 2**24  # columns of sparse rows: empty ones take no byte of a file, but room in products
LONGEST_EMPTY = 2**20  # rows or columns of an array without entries, which takes no byte of a file
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
NETWORKS = ("Graph", "DiGraph", "MultiGraph", "MultiDiGraph")
# The classes of records, which are made of their fields, by module; no other class is ever made.
MADE_OF_FIELDS = {
    "kreinlearn.kernels.dissimilarity": (
        "Centring Exponential SquaredExponential LocalScaling Inverse RankScaling Blend"
    ),
    "kreinlearn.data.memory": "Resources",
    "kreinlearn.nystrom.landmarks": "Landmarks",
    "kreinlearn.nystrom.error": "ErrorEstimate",
    "kreinlearn.nystrom.core": "FeatureMap",
    "kreinlearn.sums.moments": "Gram Moments",
    "kreinlearn.learn.fit": "Sums FitSums",
    "kreinlearn.learn.neighbours": "NeighbourScores LabelNeighbours",
    "kreinlearn.solvers.novelty": "LocalDistances",
    "kreinlearn.solvers.conformal": "LeftOut",
}
RECORDS = {name: module for module, names in MADE_OF_FIELDS.items() for name in names.split()}


class Kind(NamedTuple):
    """How objects of a kind are taken apart and made, and the type of what they are made of."""

    parts: Callable[[Any], object]
    make: Callable[[Any], object]
    of: type = list


def is_shape(shape: object, n_bytes_each: int = 1) -> bool:
    """Whether an array may have this shape; the bytes of its entries must be in the file."""
    if type(shape) is not list or any(type(n) is not int or n < 0 for n in shape):
        return False
    return bool(prod(shape) * n_bytes_each) or max(shape, default=0) <= LONGEST_EMPTY


def _by_text(text: Callable[[Any], str], make: Callable[[str], object]) -> Kind:
    return Kind(text, make, str)


def _made_of_parts(parts: Callable[[Any], Iterable[object]], make: Callable[..., object]) -> Kind:
    """Objects whose class is called with their parts."""
    return Kind(lambda x: list(parts(x)), lambda values: make(*values))


def _dict_from(keys: list[object], values: list[object]) -> dict[object, object]:
    require(type(keys) is type(values) is list, "it has a dict without keys or values")
    return dict(zip(keys, values, strict=True))


def _scalar_from(x: Any) -> np.generic:
    require(x.ndim == 0, "it has several numbers where one belongs")
    scalar: np.generic = x[()]
    return scalar


def _objects_from(shape: list[int], items: list[object]) -> Any:
    """An array of objects."""
    good = is_shape(shape) and type(items) is list and prod(shape) == len(items)
    require(good, "it has objects of an impossible shape")
    flat = np.empty(len(items), object)
    flat[:] = items
    return flat.reshape(shape)


def _parts_of_sparse(x: sp.csr_array) -> list[object]:
    if x.shape[1] > BROADEST:
        raise NotDataError(f"sparse rows of {x.shape[1]} columns ({BROADEST} are allowed)")
    return [x.data, x.indices, x.indptr, list(x.shape)]


def _sparse_from(make: type[Any], parts: list[Any]) -> Any:
    data, indices, indptr, shape = parts
    good = all(isinstance(x, np.ndarray) and x.ndim == 1 for x in (data, indices, indptr))
    good = good and indices.dtype.kind == indptr.dtype.kind == "i" and len(shape) == 2
    require(good and max(shape) <= BROADEST, "its sparse rows do not fit together")
    matrix = make((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)  # a ValueError says what is wrong
    return matrix


def _by_random_state(generator: type[Any], attribute: str) -> Kind:
    """Generators of random numbers, whose bits come from what they have as this attribute."""

    def state_of(x: object) -> object:
        bits = getattr(x, attribute)
        if type(bits).__name__ not in BIT_GENERATORS:
            raise NotDataError(f"a generator of random numbers of the type {type(bits).__name__}")
        return bits.state

    def make(state: dict[str, Any]) -> object:
        name = state["bit_generator"]
        require(name in BIT_GENERATORS, f"it has random numbers of the unknown kind {name!r:.80}")
        bits = getattr(np.random, name)()
        bits.state = state
        return generator(bits)

    return Kind(state_of, make, dict)


def _dtype_from(name: str) -> np.dtype[Any]:
    require(name in ("<f4", "<f8"), f"{name!r:.80} is no type of numbers")
    return np.dtype(name)


# Records


def field_types(cls: Any) -> dict[str, str]:
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
        return isinstance(value, list) and all(is_a(x, wanted[5:-1]) for x in value)
    if wanted.startswith("tuple["):  # of any length
        inside = wanted.removeprefix("tuple[").removesuffix(", ...]")
        return isinstance(value, tuple) and all(is_a(x, inside) for x in value)
    plain = value.item() if isinstance(value, np.integer | np.floating) else value
    kind = type(plain).__name__
    known = {"ndarray": "Array", "Generator": "np.random.Generator", "NoneType": "None"}
    bases = [base.__name__ for base in type(value).__mro__] if kind in RECORDS else []
    return wanted in ("Any", "Objects", kind, known.get(kind), *bases)


def _parts_of_record(x: object) -> list[object]:
    return [type(x).__name__, {name: getattr(x, name) for name in field_types(type(x))}]


def _record_from(of: str, values: dict[str, object]) -> Any:
    require(of in RECORDS, f"it has an object of type {of!r:.80}")
    cls = getattr(import_module(RECORDS[of]), of)
    types = field_types(cls)
    require(values.keys() == types.keys(), f"a {of} in it has other fields than it should")
    for name, value in values.items():
        require(is_a(value, types[name]), f"{name} of a {of} in it is {value!r:.80}")
    return cls(**values)


# Graphs


def _graph_from(node_labels: object, edges: object) -> Any:
    return import_module("kreinlearn.datasets").Graph(node_labels, edges)


def _parts_of_network(x: Network) -> list[object]:
    """The type, the data, the nodes and the edges (with keys) of a graph, and the data of these."""
    more = {"keys": True} if x.is_multigraph() else {}
    nodes = [[node, dict(data)] for node, data in x.nodes(data=True)]
    edges = [[*edge[:-1], dict(edge[-1])] for edge in x.edges(data=True, **more)]
    return [type(x).__name__, dict(x.graph), nodes, edges]


def _network_from(name: str, about: dict[str, Any], nodes: Any, edges: Any) -> Network:
    require(name in NETWORKS, f"it has a graph of type {name!r:.80}")
    length = 4 if "Multi" in name else 3
    good = all(type(one[-1]) is dict for one in (*nodes, *edges))
    require(good and all(len(edge) == length for edge in edges), "its graphs are damaged")
    graph: Network = getattr(library("networkx", "graphs"), name)()
    graph.graph.update(about)
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    whole = len(graph) == len(nodes) and graph.number_of_edges() == len(edges)
    require(whole, "its graphs have nodes or edges twice")
    return graph


# All kinds

# The kinds of objects of a type, and not of a subclass; they are named after the type.
BY_TYPE: dict[type, Kind] = {
    int: _by_text(hex, lambda text: int(text, 16)),
    float: _by_text(  # that is not finite
        lambda x: struct.pack("<d", x).hex(),
        lambda text: struct.unpack("<d", bytes.fromhex(text))[0],
    ),
    str: _by_text(  # with halves of characters, of which JSON would join two
        lambda x: x.encode("utf8", "surrogatepass").hex(),
        lambda text: bytes.fromhex(text).decode("utf8", "surrogatepass"),
    ),
    np.str_: _by_text(str, np.str_),
    bytes: _by_text(bytes.hex, bytes.fromhex),
    tuple: Kind(list, tuple),
    set: Kind(list, set),
    frozenset: Kind(list, frozenset),
    dict: _made_of_parts(lambda x: [list(x), list(x.values())], _dict_from),
    range: _made_of_parts(lambda x: [x.start, x.stop, x.step], range),
    Category: _made_of_parts(lambda x: [x.value], Category),
    Decimal: _by_text(str, Decimal),
    date: _by_text(date.isoformat, date.fromisoformat),
    datetime: _by_text(datetime.isoformat, datetime.fromisoformat),
    time: _by_text(time.isoformat, time.fromisoformat),
    timedelta: _made_of_parts(lambda x: [x.days, x.seconds, x.microseconds], timedelta),
    sp.csr_array: Kind(_parts_of_sparse, partial(_sparse_from, sp.csr_array)),
    sp.csr_matrix: Kind(_parts_of_sparse, partial(_sparse_from, sp.csr_matrix)),
    np.random.Generator: _by_random_state(np.random.Generator, "bit_generator"),
    np.random.RandomState: _by_random_state(np.random.RandomState, "_bit_generator"),
}
KINDS: dict[str, Kind] = {
    **{cls.__name__: kind for cls, kind in BY_TYPE.items()},
    "scalar": Kind(np.asarray, _scalar_from, np.ndarray),
    "objects": _made_of_parts(lambda x: [list(x.shape), x.ravel().tolist()], _objects_from),
    "dtype": _by_text(lambda x: str(x.str), _dtype_from),
    "kernel": _made_of_parts(parts_of_kernel, kernel_from),
    "record": _made_of_parts(_parts_of_record, _record_from),
    "graph": _made_of_parts(list, _graph_from),
    "network": _made_of_parts(_parts_of_network, _network_from),
}
INSTANCES = {Kernel: "kernel", np.generic: "scalar", np.ndarray: "objects", np.dtype: "dtype"}


def kind_of(x: object) -> str:
    """The name of the kind of an object; NotDataError if it is not data."""
    cls = type(x)
    if cls in BY_TYPE:
        return cls.__name__
    if RECORDS.get(cls.__name__) == cls.__module__:
        return "record"
    if (cls.__module__, cls.__name__) == ("kreinlearn.datasets", "Graph"):
        return "graph"
    if isinstance(x, datetime):  # of pandas
        return "datetime"
    if cls.__module__.startswith("networkx.classes.") and cls.__name__ in NETWORKS:
        return "network"
    for base, name in INSTANCES.items():
        if isinstance(x, base):
            return name
    raise NotDataError(f"a {cls.__module__}.{cls.__qualname__}")


def is_data(x: object) -> bool:
    """Whether an object is of a kind that a file may contain."""
    try:
        kind_of(x)
    except NotDataError:
        return False
    return True
