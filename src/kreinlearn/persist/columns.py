"""Many objects as a few arrays: a column of one kind, or of several kinds.

How the objects of each kind are written and read is in ``kinds``. Objects that contain objects
(lists, sets, dicts, graphs) are joined end to end into one column, together with their sizes. What
is read takes no more than a few times the bytes that are in the file, whatever these say.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from kreinlearn.persist.arrays import DTYPES, Array, Arrays, Stored, is_shape
from kreinlearn.persist.errors import ModelFormatError, NotDataError, require
from kreinlearn.persist.graphs import GRAPHS, is_network
from kreinlearn.persist.kinds import BROADEST, BY_TYPE, INT64, KINDS, SPARSE, is_roomy

Name = tuple[Any, ...]  # of a kind, and what goes with it: a type of numbers, dimensions


def kind_of(x: Any) -> Name:
    """The kind of an object; NotDataError if it is not data."""
    kind = type(x)
    if kind in BY_TYPE:
        return (BY_TYPE[kind],)
    if kind is int:
        return ("int",) if x in INT64 else ("bigint",)
    if isinstance(x, np.ndarray):
        return _array_kind(x)
    if isinstance(x, np.generic):
        return ("scalar", *_array_kind(np.asarray(x))[:2])
    if sp.issparse(x) and kind.__name__ in SPARSE:
        if x.shape[1] > BROADEST:
            raise NotDataError(f"sparse rows of {x.shape[1]} columns ({BROADEST} are allowed)")
        return "sparse", kind.__name__
    if kind.__name__ in ("NAType", "NaTType"):
        return ("missing",)
    if (kind.__module__, kind.__qualname__) == GRAPHS:
        return ("graph",)
    if is_network(x):
        return "network", kind.__name__
    raise NotDataError(f"a {kind.__module__}.{kind.__qualname__}")


def _array_kind(x: Array) -> Name:
    letter, dtype = x.dtype.kind, x.dtype.newbyteorder("<").str
    if letter in "biuf" and dtype in DTYPES:
        return "array", dtype, x.ndim
    if letter in "mM":
        return "times", dtype, x.ndim
    if letter == "U":
        n_bytes = int(np.char.str_len(x).sum()) + 8 * x.size  # the texts and their sizes
        return "wide" if is_roomy(x.dtype, x.size, n_bytes) else "texts", dtype, x.ndim
    if letter == "O":
        return "objects", "|O", x.ndim
    raise NotDataError(f"an array of the type {x.dtype}")


def write_column(arrays: Arrays, xs: Sequence[object], path: str) -> dict[str, Any]:
    """Write objects by their kinds; the arrays are named after ``path``."""
    kinds = [kind_of(x) for x in xs]
    distinct = list(dict.fromkeys(kinds)) or [("none",)]
    if len(distinct) == 1:
        return _write_kind(arrays, distinct[0], xs, path)
    number = {kind: i for i, kind in enumerate(distinct)}
    which = np.array([number[kind] for kind in kinds], dtype=np.int32)
    columns = []
    for kind, i in number.items():
        own = [xs[j] for j in np.flatnonzero(which == i)]
        columns.append(_write_kind(arrays, kind, own, f"{path}.{kind[0]}{i}"))
    return {"kind": ["mixed"], "which": arrays.add(f"{path}.which", which), "columns": columns}


def _write_kind(arrays: Arrays, kind: Name, xs: Sequence[object], path: str) -> dict[str, Any]:
    node: dict[str, Any] = {"kind": list(kind)}
    for name, part in KINDS[kind[0]].write(xs).items():
        if isinstance(part, list):
            node[name] = write_column(arrays, part, f"{path}.{name}")
        else:
            node[name] = arrays.add(f"{path}.{name}", part)
    return node


class Column:
    """One column of a file that is being read: its kind, its arrays and the columns in it."""

    def __init__(self, stored: Stored, node: object) -> None:
        self.stored, self.rest = stored, dict(node) if isinstance(node, dict) else {}
        kind = self.rest.pop("kind", None)
        good = isinstance(kind, list) and kind and isinstance(kind[0], str)
        require(good, "its header has no column of objects")
        self.kind: Name = tuple(kind)

    def wrong(self) -> ModelFormatError:
        return ModelFormatError(f"its objects of the kind {self.kind!r:.80} do not fit together")

    def require(self, condition: object) -> None:
        if not condition:
            raise self.wrong()

    def array(self, name: str, dtype: DTypeLike, ndim: int = 1) -> Array:
        """The array of this name, which must have this type and number of dimensions."""
        self.require(name in self.rest)
        array = self.stored.take(self.rest.pop(name))
        self.require(array.dtype == dtype and array.ndim == ndim)
        return array

    def items(self, name: str) -> list[Any]:
        """The objects of the column of this name."""
        self.require(name in self.rest)
        return read_column(self.stored, self.rest.pop(name))

    def sizes(self, total: int) -> list[int]:
        """The sizes of parts, which must add up to ``total``."""
        sizes: list[int] = self.array("size", np.int64).tolist()
        self.require(min(sizes, default=0) >= 0 and sum(sizes) == total)
        return sizes

    def shapes(self, total: int, ndim: object) -> list[tuple[int, ...]]:
        """The shapes of arrays, which must have ``total`` entries together."""
        rows = self.array("shape", np.int64, 2)
        self.require(type(ndim) is int and 0 <= ndim <= 8)
        self.require(rows.shape[1] == ndim or not len(rows))
        self.require(ndim or len(rows) == total)  # without dimensions they take no byte
        shapes = [tuple(row) for row in rows.tolist()]
        self.require(all(map(is_shape, shapes)) and sum(map(prod, shapes)) == total)
        return shapes


def read_column(stored: Stored, node: object) -> list[Any]:
    """Read objects; ModelFormatError for whatever ``write_column`` does not write."""
    column = Column(stored, node)
    name, *details = column.kind
    if name == "mixed":
        objects = _read_mixed(column)
    else:
        column.require(name in KINDS and len(details) == KINDS[name].n_details)
        objects = KINDS[name].read(column, *details)
    column.require(not column.rest)
    return objects


def _read_mixed(column: Column) -> list[Any]:
    which = column.array("which", np.int32)
    nodes = column.rest.pop("columns", None)
    column.require(isinstance(nodes, list) and len(column.kind) == 1)
    parts = [read_column(column.stored, node) for node in nodes]
    column.require(((which >= 0) & (which < len(parts))).all())
    column.require(np.bincount(which, minlength=len(parts)).tolist() == [*map(len, parts)])
    rest = [iter(part) for part in parts]
    return [next(rest[i]) for i in which.tolist()]
