"""Graphs as arrays, checked and joined end to end, and counts of their parts."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import length, library, objects_of
from kreinlearn.kernels._compiled import compiled
from kreinlearn.kernels.base import Array, Objects, given

BITS = 2**64 - 1


# From objects to arrays


def owner_of(start: Array) -> Array:
    """The number of the graph that each node, or part, belongs to."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


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
    codes = [_text_code(v) if isinstance(v, str) else int(v) & BITS for v in values]
    return np.array(codes, dtype=np.uint64)


@lru_cache(maxsize=2**16)
def _text_code(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def hashed(x: Array, salt: int) -> Array:
    """Splitmix64 of uint64: numbers as good as random, the same in every block and process."""
    x = x + np.uint64(salt * 0x9E3779B97F4A7C15 & BITS)
    x = (x ^ (x >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> 31))


# Counts of parts


class Counts(NamedTuple):
    """How often parts occur: ``part[start[i]:start[i + 1]]`` are those of graph i."""

    start: Array  # (n + 1,)
    part: Array  # uint64, ascending within a graph
    times: Array  # float64, whole numbers

    def total(self, weights: Array) -> Array:  # (n,)
        total = np.bincount(owner_of(self.start), weights, len(self.start) - 1)
        return total.astype(np.float64)  # integers, if there are no parts


class Index(NamedTuple):
    """Counts by part: ``column[start[p]:start[p + 1]]`` are the graphs that hold ``part[p]``."""

    part: Array  # ascending
    start: Array
    column: Array
    times: Array


def counted(owner: Array, part: Array, times: Array, n: int) -> Counts:
    """The sums of ``times`` over equal parts of each of n graphs."""
    order = np.lexsort((part, owner))
    owner, part, times = owner[order], part[order], times[order]
    new = np.flatnonzero(np.diff(owner, prepend=-1) | (part != np.roll(part, 1)))
    total = np.add.reduceat(times, new) if len(new) else times
    return Counts(np.searchsorted(owner[new], np.arange(n + 1)), part[new], total)


def by_part(Z: Counts) -> Index:
    """Counts sorted by part."""
    part, which = np.unique(Z.part, return_inverse=True)
    order = np.argsort(which, kind="stable")
    start = np.searchsorted(which[order], np.arange(len(part) + 1))
    return Index(part, start, owner_of(Z.start)[order], Z.times[order])


def overlap(A: Counts, Z: Index, m: int, smaller: bool) -> Array:  # (n, m)
    """The sum over parts of a z, or of min(a, z): whole numbers, so exact in any order."""
    S = np.zeros((len(A.start) - 1, m))
    known = np.isin(A.part, Z.part)
    start = np.append(0, np.cumsum(known))[A.start]
    at = np.searchsorted(Z.part, A.part[known])
    _overlap(start, at, A.times[known], Z.start, Z.column, Z.times, smaller, S)
    return S


@compiled
def _overlap(
    start: Array,
    at: Array,
    times: Array,
    z_start: Array,
    column: Array,
    z_times: Array,
    smaller: bool,
    S: Array,
) -> None:
    for i in range(len(start) - 1):
        for s in range(start[i], start[i + 1]):
            for t in range(z_start[at[s]], z_start[at[s] + 1]):
                a, z = times[s], z_times[t]
                S[i, column[t]] += min(a, z) if smaller else a * z
