"""Graphs as arrays, checked and joined end to end, and counts of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import length, library, objects_of
from kreinlearn.kernels._counts import BITS, Counts, owner_of, text_code
from kreinlearn.kernels.base import Array, Objects, given

LABEL, PLACE = "label", "pos"  # attributes of the nodes of networkx; its generators write "pos"
LARGEST = 1e150  # of attributes: their squares are finite
Read = Callable[[Any, str], Array]  # labels of one graph, and which graph it is, for an error

# From objects to arrays


class Graphs(NamedTuple):
    """Graphs end to end: nodes ``start[i]:start[i + 1]`` are those of graph i."""

    start: Array  # (n + 1,)
    labels: Array  # (N,) uint64, or (N, d) float64
    edge: Array  # (N + 1,)
    neighbours: Array  # those of node v are neighbours[edge[v]:edge[v + 1]]

    @property
    def owner(self) -> Array:  # (N,): the graph of a node
        return owner_of(self.start)


def join(X: Objects, first: int = 0, n: int = 0, read: Read | None = None) -> Graphs:
    """Check graphs and join them end to end; an error names object ``first + i`` of ``n``.

    Labels become what ``read`` makes of them: ``codes`` (the default), ``alike`` or ``numbers``.
    """
    n, read = n or length(X), read or codes
    parts = [_pair(x, f"object {first + i} (of {n})", read) for i, x in enumerate(objects_of(X))]
    start = np.cumsum([0, *(len(labels) for labels, _ in parts)])
    labels = np.concatenate([labels for labels, _ in parts] or [read([], "")])  # (N,) or (N, d)
    ends = np.concatenate([np.empty((0, 2), np.int64), *(edges for _, edges in parts)])
    owner = np.repeat(np.arange(len(parts)), [len(edges) for _, edges in parts])
    size = np.diff(start)[owner]
    bad = np.flatnonzero(((ends < 0) | (ends >= size[:, None])).any(axis=1))
    if len(bad):
        e = bad[0]
        raise ValueError(
            f"object {first + owner[e]} (of {n}) has the edge {tuple(ends[e].tolist())} but "
            f"{size[e]} nodes; edges name nodes by their number, from 0, within the graph"
        )
    return Graphs(start, labels, *_adjacency(ends + start[owner, None], len(labels)))


def _adjacency(ends: Array, N: int) -> tuple[Array, Array]:
    """The neighbours of every node, each once, in both directions.

    An edge from a node to itself makes it its own neighbour.
    """
    ways = np.concatenate([ends, ends[:, ::-1]])
    node, other = np.divmod(np.unique(ways[:, 0] * N + ways[:, 1]), max(N, 1))
    return np.searchsorted(node, np.arange(N + 1)), other


def _pair(x: object, which: str, read: Read) -> tuple[Array, Array]:
    """Labels as they are read, one entry or row per node, and edges (e, 2) int64."""
    if _is_networkx(x):
        x = _from_networkx(x, which, (LABEL,) if read is codes else (LABEL, PLACE))
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise ValueError(
            f"{which} is {given(x)}; a graph is a pair (node_labels, edges) or a networkx graph"
        )
    labels, edges = x
    try:
        edges = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
    except (TypeError, ValueError):  # no sequence, or not of pairs
        edges = np.empty((1, 0))
    if not len(edges):
        edges = np.empty((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{which} has as edges {given(x[1])}; edges are pairs of node numbers, an array of "
            "integers of shape (number of edges, 2)"
        )
    return read(labels, which), edges.astype(np.int64, copy=False)


def _is_networkx(x: object) -> bool:
    return hasattr(x, "nodes") and hasattr(x, "edges") and not isinstance(x, tuple)


def _from_networkx(
    graph: Any, which: str, names: Sequence[str]
) -> tuple[list[Any], list[tuple[int, int]]]:
    """Labels and edges of a networkx graph."""
    if not isinstance(graph, library("networkx", "graphs").Graph) or graph.is_directed():
        raise ValueError(
            f"{which} is {given(graph)}; a graph is an undirected networkx graph or a pair "
            "(node_labels, edges): networkx makes one of the other by to_undirected()"
        )
    place = {node: i for i, node in enumerate(graph)}
    return _labels_of(graph, names), [(place[u], place[v]) for u, v in graph.edges()]


def _labels_of(graph: Any, names: Sequence[str]) -> list[Any]:
    """The first of some attributes of nodes that any node has; zeros if there is none."""
    for name in names:
        labels = [label for _, label in graph.nodes(data=name)]
        if any(label is not None for label in labels):
            return labels
    return [0] * len(graph)


def is_attributed(x: Any) -> bool:
    """Whether the labels of a graph are vectors, or one of them is a number that is not whole."""
    labels = _labels_of(x, (LABEL, PLACE)) if _is_networkx(x) else x[0]
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "fiub":
        return labels.ndim > 1 or labels.dtype.kind == "f"
    return any(_is_attribute(label) for label in labels)


def _is_attribute(label: Any) -> bool:
    if isinstance(label, Real):
        return not isinstance(label, Integral)
    return isinstance(label, list | tuple | np.ndarray)


# Labels of one graph


def codes(labels: Any, which: str) -> Array:  # -> (k,) uint64
    """Labels as 64-bit codes."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub" and labels.ndim == 1:
        return labels.astype(np.int64).view(np.uint64)
    for i, label in enumerate(values := _listed(labels, which)):
        if not isinstance(label, Integral | np.bool_ | str):
            raise ValueError(
                f"{which} has at node {i} the label {given(label)}; a label is an integer or a "
                'text: give every node one, and compare numbers by "sliced_wl" or sort them into '
                "bins"
            )
    found = [text_code(v) if isinstance(v, str) else int(v) & BITS for v in values]
    return np.array(found, dtype=np.uint64)


def alike(labels: Any, which: str) -> Array:  # -> (k,) uint64
    """The same code for every label, whatever it is."""
    return np.zeros(len(_listed(labels, which)), dtype=np.uint64)


def numbers(labels: Any, which: str, width: int = 0) -> Array:  # -> (k, width)
    """Labels as vectors of ``width`` finite numbers; of any number of them if that is 0."""
    values = np.asarray(labels) if hasattr(labels, "__array__") else labels
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        values = _listed(values, which)
    if not len(values):
        return np.empty((0, width))
    try:
        found = np.asarray(values)
    except ValueError:  # vectors of unequal length
        found = np.empty(0, dtype=object)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or found.dtype.kind not in "fiub" or not found.size:
        raise ValueError(_not_numbers(values, which))
    if width and found.shape[1] != width:
        raise ValueError(
            f"{which} has {found.shape[1]} numbers at each node, the others have {width}; all "
            "nodes of all graphs must have as many"
        )
    found = found.astype(np.float64)
    if not (np.abs(found) <= LARGEST).all():
        i = int(np.argmin((np.abs(found) <= LARGEST).all(axis=1)))
        raise ValueError(
            f"{which} has at node {i} the numbers {found[i]!s:.60}; they must be finite and at "
            f"most {LARGEST:.0e}: correct them, or leave the graph out"
        )
    return found


def _not_numbers(values: Any, which: str) -> str:
    """What is wrong with labels that are no numbers: the first node that differs, if one does."""
    sizes = [np.size(v) if _is_attribute(v) or isinstance(v, Real) else -1 for v in values]
    i = next((i for i, size in enumerate(sizes) if size < 1 or size != sizes[0]), 0)
    return (
        f"{which} has at node {i} the label {given(values[i])}; this kernel compares numbers: "
        "give every node a number, or a vector of as many numbers as all others have"
    )


def _listed(labels: Any, which: str) -> list[Any]:
    if isinstance(labels, str | bytes | dict | set) or not hasattr(labels, "__len__"):
        raise ValueError(
            f"{which} has as node labels {given(labels)}; pass a list or an array, one integer "
            "or text a node, in the order of their numbers"
        )
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


# Counts of parts


def counted(owner: Array, part: Array, times: Array, n: int) -> Counts:
    """The sums of ``times`` over equal parts of each of n graphs."""
    order = np.lexsort((part, owner))
    owner, part, times = owner[order], part[order], times[order]
    new = np.flatnonzero(np.diff(owner, prepend=-1) | (part != np.roll(part, 1)))
    total = np.add.reduceat(times, new) if len(new) else times
    return Counts(np.searchsorted(owner[new], np.arange(n + 1)), part[new], total)
