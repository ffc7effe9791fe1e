"""Graphs as arrays, checked and joined end to end, and counts of their parts."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import length, library, objects_of
from kreinlearn.kernels._counts import BITS, Counts, owner_of, text_code
from kreinlearn.kernels.base import Array, Objects, given

# From objects to arrays


class Graphs(NamedTuple):
    """Graphs end to end: nodes ``start[i]:start[i + 1]`` are those of graph i."""

    start: Array  # (n + 1,)
    labels: Array  # (N,) uint64
    edge: Array  # (N + 1,)
    neighbours: Array  # those of node v are neighbours[edge[v]:edge[v + 1]]

    @property
    def owner(self) -> Array:  # (N,): the graph of a node
        return owner_of(self.start)


def join(X: Objects, first: int = 0, n: int = 0) -> Graphs:
    """Check graphs and join them end to end; an error names object ``first + i`` of ``n``."""
    n = n or length(X)
    parts = [_pair(x, f"object {first + i} (of {n})") for i, x in enumerate(objects_of(X))]
    start = np.cumsum([0, *(len(labels) for labels, _ in parts)])
    labels = np.concatenate([np.empty(0, np.uint64), *(labels for labels, _ in parts)])
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


def _pair(x: object, which: str) -> tuple[Array, Array]:
    """Codes of labels (k,) uint64, and edges (e, 2) int64."""
    if hasattr(x, "nodes") and hasattr(x, "edges") and not isinstance(x, tuple):
        x = _from_networkx(x, which)
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
    return _codes(labels, which), edges.astype(np.int64, copy=False)


def _from_networkx(graph: Any, which: str) -> tuple[list[Any], list[tuple[int, int]]]:
    """Labels and edges of a networkx graph."""
    if not isinstance(graph, library("networkx", "graphs").Graph) or graph.is_directed():
        raise ValueError(
            f"{which} is {given(graph)}; a graph is an undirected networkx graph or a pair "
            "(node_labels, edges): networkx makes one of the other by to_undirected()"
        )
    place = {node: i for i, node in enumerate(graph)}
    labels = [label for _, label in graph.nodes(data="label")]
    if all(label is None for label in labels):
        labels = [0] * len(labels)
    return labels, [(place[u], place[v]) for u, v in graph.edges()]


def _codes(labels: Any, which: str) -> Array:  # -> (k,) uint64
    """Labels as 64-bit codes."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub" and labels.ndim == 1:
        return labels.astype(np.int64).view(np.uint64)
    if isinstance(labels, str | bytes | dict | set) or not hasattr(labels, "__len__"):
        raise ValueError(
            f"{which} has as node labels {given(labels)}; pass a list or an array, one integer "
            "or text a node, in the order of their numbers"
        )
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    for i, label in enumerate(values):
        if not isinstance(label, Integral | np.bool_ | str):
            raise ValueError(
                f"{which} has at node {i} the label {given(label)}; a label is an integer or a "
                "text: give every node one, and sort real numbers into bins"
            )
    codes = [text_code(v) if isinstance(v, str) else int(v) & BITS for v in values]
    return np.array(codes, dtype=np.uint64)


# Counts of parts


def counted(owner: Array, part: Array, times: Array, n: int) -> Counts:
    """The sums of ``times`` over equal parts of each of n graphs."""
    order = np.lexsort((part, owner))
    owner, part, times = owner[order], part[order], times[order]
    new = np.flatnonzero(np.diff(owner, prepend=-1) | (part != np.roll(part, 1)))
    total = np.add.reduceat(times, new) if len(new) else times
    return Counts(np.searchsorted(owner[new], np.arange(n + 1)), part[new], total)
