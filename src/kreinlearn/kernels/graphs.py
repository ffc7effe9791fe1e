"""Similarities and dissimilarities of graphs with discrete node labels.

A graph is a pair (node_labels, edges), such as ``kreinlearn.datasets.Graph``: one integer or text
per node, and pairs of node numbers. Or it is an undirected networkx graph, in which all nodes have
the attribute "label" or none has. Edges have no direction and count once.

GraKeL numbers labels in the order in which it meets them, so that its values depend on the state of
a fit. Here labels are hashed to 64 bits instead, and a value depends on its two graphs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from sklearn.utils import check_scalar

from kreinlearn.kernels._compiled import compiled
from kreinlearn.kernels._counts import CountKernel, Counts, hashed
from kreinlearn.kernels._graphs import Graphs, alike, codes, counted, join
from kreinlearn.kernels.base import Array, ObjectKernel, Objects
from kreinlearn.kernels.processes import SlowKernel
from kreinlearn.kernels.vector_columns import not_negative

WL_METRICS = ("euclidean", "l1", "bray_curtis")
SOURCES = 256  # nodes whose paths are sought at a time


class _GraphKernel(ObjectKernel):
    """A kernel on graphs."""

    labelled = True  # whether labels of nodes count

    def check(self, X: Objects, first: int, n: int, like: object) -> Graphs:
        return self._joined(X, first, n)

    def _joined(self, X: Objects, first: int = 0, n: int = 0) -> Graphs:
        return join(X, first, n, codes if self.labelled else alike)


class _CountKernel(CountKernel, _GraphKernel):
    """A function of the counts of the parts of two graphs, which a subclass gives."""

    def _counts(self, graphs: Graphs) -> Counts:
        raise NotImplementedError

    def features(self, X: Objects, first: int = 0, n: int = 0, like: object = None) -> Counts:
        return self._counts(self._joined(X, first, n))


class _CountSimilarity(_CountKernel):
    """S itself, or S / (S(x, x) S(z, z))^1/2 if ``normalized``."""

    normalized: bool

    @property
    def _divided(self) -> bool:  # type: ignore[override]
        return self.normalized


def _subtrees(graphs: Graphs, h: int) -> Counts:
    """Counts of the labels of all nodes after 0..h rounds.

    In each round a node gets a new label, made of its own label and those of its neighbours.
    """
    check_scalar(h, "h", Integral, min_val=0)
    labels = hashed(graphs.labels, 1)
    levels = [labels]
    for _ in range(h):
        total = np.cumsum(np.append(np.uint64(0), hashed(labels, 2)[graphs.neighbours]))
        around = total[graphs.edge[1:]] - total[graphs.edge[:-1]]  # modulo 2^64, in any order
        labels = hashed(hashed(labels, 3) + around, 4)
        levels.append(labels)
    owner = np.tile(graphs.owner, len(levels))
    return counted(owner, np.concatenate(levels), np.ones(len(owner)), len(graphs.start) - 1)


class WeisfeilerLehman(_CountSimilarity, names=["weisfeiler_lehman"]):
    """The Weisfeiler-Lehman subtree kernel (Shervashidze et al. 2011).

    In every round a node gets a new label for its own label and those of its neighbours. k(x, z) is
    the sum, over rounds 0..h and labels, of the product of their counts in x and in z.

    Parameters
    ----------
    h : int, default=5
        The number of rounds.
    normalized : bool, default=True
        Whether k is divided by (k(x, x) k(z, z))^1/2. It is 0 for a graph without nodes.
    labelled : bool, default=True
        Whether the labels of nodes count. If not, all nodes have the same label, and those that are
        given may be anything, numbers and vectors too.

    Examples
    --------
    >>> from kreinlearn.kernels.graphs import WeisfeilerLehman
    >>> path, ring = (["C", "C", "O"], [(0, 1), (1, 2)]), (["C"] * 3, [(0, 1), (1, 2), (0, 2)])
    >>> WeisfeilerLehman(h=1, normalized=False)([path, ring])
    array([[ 8.,  6.],
           [ 6., 18.]])
    """

    def __init__(self, h: int = 5, normalized: bool = True, labelled: bool = True) -> None:
        self.h = h
        self.normalized = normalized
        self.labelled = labelled

    def _counts(self, graphs: Graphs) -> Counts:
        return _subtrees(graphs, self.h)


class WLAssignment(WeisfeilerLehman, names=["wl_assignment"]):
    """The Weisfeiler-Lehman optimal assignment kernel (Kriege et al. 2016).

    k(x, z) is the sum, over rounds 0..h and labels, of the smaller of their counts in x and in z.
    This is the value of the best assignment of nodes, where a pair of nodes is worth the number of
    rounds in which their labels agree.

    Parameters
    ----------
    h : int, default=5
        The number of rounds.
    normalized : bool, default=True
        Whether k is divided by (k(x, x) k(z, z))^1/2. It is 0 for a graph without nodes.
    labelled : bool, default=True
        Whether the labels of nodes count. If not, all nodes have the same label, and those that are
        given may be anything, numbers and vectors too.

    Examples
    --------
    >>> from kreinlearn.kernels.graphs import WLAssignment
    >>> path, ring = (["C", "C", "O"], [(0, 1), (1, 2)]), (["C"] * 3, [(0, 1), (1, 2), (0, 2)])
    >>> WLAssignment(h=1, normalized=False)([path, ring])
    array([[6., 2.],
           [2., 6.]])
    """

    _smaller = True


class WLDistance(_CountKernel, names=["wl_distance"]):
    """A distance between the counts a and z of labels that the kernel WeisfeilerLehman compares.

    Parameters
    ----------
    h : int, default=5
        The number of rounds.
    metric : {"euclidean", "l1", "bray_curtis"}, default="euclidean"
        (sum (a - z)^2)^1/2, sum |a - z|, or sum |a - z| / sum (a + z). The last one lies between 0
        and 1; the others are largest between graphs of different size.
    labelled : bool, default=True
        Whether the labels of nodes count. If not, all nodes have the same label, and those that are
        given may be anything, numbers and vectors too.

    Examples
    --------
    >>> from kreinlearn.kernels.graphs import WLDistance
    >>> path, ring = (["C", "C", "O"], [(0, 1), (1, 2)]), (["C"] * 3, [(0, 1), (1, 2), (0, 2)])
    >>> WLDistance(h=1, metric="l1")([path], [path, ring])
    array([[0., 8.]])
    >>> WLDistance(h=1, metric="bray_curtis")([path], [path, ring]).round(3)
    array([[0.   , 0.667]])
    """

    is_dissimilarity = True

    def __init__(self, h: int = 5, metric: str = "euclidean", labelled: bool = True) -> None:
        self.h = h
        self.metric = metric
        self.labelled = labelled

    def _counts(self, graphs: Graphs) -> Counts:
        if self.metric not in WL_METRICS:
            raise ValueError(f"metric={self.metric!r} is unknown; pass one of {WL_METRICS}")
        return _subtrees(graphs, self.h)

    @property
    def _smaller(self) -> bool:  # type: ignore[override]
        return self.metric != "euclidean"

    def _value(self, S: Array, S_x: Array, S_z: Array) -> Array:
        total = S_x[:, None] + S_z
        D = total - 2 * S
        if self.metric == "bray_curtis":
            return np.asarray(D / np.maximum(total, 1))  # of graphs without nodes: 0
        return D if self.metric == "l1" else np.asarray(np.sqrt(D))


class ShortestPath(_CountSimilarity, names=["shortest_path"]):
    """The shortest-path kernel (Borgwardt & Kriegel 2005).

    k(x, z) is the sum over triples of the product of their counts in x and in z. A triple consists
    of the labels of two nodes, in order, and the number of edges between them.

    Parameters
    ----------
    normalized : bool, default=True
        Whether k is divided by (k(x, x) k(z, z))^1/2. It is 0 for a graph without paths.
    labelled : bool, default=True
        Whether the labels of nodes count. If not, all nodes have the same label, and those that are
        given may be anything, numbers and vectors too.

    Examples
    --------
    >>> from kreinlearn.kernels.graphs import ShortestPath
    >>> path, ring = (["C", "C", "O"], [(0, 1), (1, 2)]), (["C"] * 3, [(0, 1), (1, 2), (0, 2)])
    >>> ShortestPath(normalized=False)([path, ring])
    array([[ 8., 12.],
           [12., 36.]])
    """

    def __init__(self, normalized: bool = True, labelled: bool = True) -> None:
        self.normalized = normalized
        self.labelled = labelled

    def _counts(self, graphs: Graphs) -> Counts:
        n = len(graphs.start) - 1
        found = [(i, *part) for i in range(n) for part in _path_counts(graphs, i)]
        owner = np.repeat([i for i, _, _ in found], [len(part) for _, part, _ in found])
        parts = np.concatenate([np.empty(0, np.uint64), *(part for _, part, _ in found)])
        counts = np.concatenate([np.empty(0), *(count for _, _, count in found)])
        return counted(owner.astype(np.intp), parts, counts, n)


def _path_counts(graphs: Graphs, i: int) -> Iterator[tuple[Array, Array]]:
    """Triples of graph i and their counts, for some nodes as sources at a time."""
    lo, hi = graphs.start[i], graphs.start[i + 1]
    edge = graphs.edge[lo : hi + 1]
    other = (graphs.neighbours[edge[0] : edge[-1]] - lo).astype(np.int32)  # scipy before 1.15
    begin = (edge - edge[0]).astype(np.int32)  # finds paths for these numbers only
    adjacency = csr_array((np.ones(len(other)), other, begin), (hi - lo, hi - lo))
    labels, label = np.unique(hashed(graphs.labels[lo:hi], 1), return_inverse=True)
    for start in range(0, hi - lo, SOURCES):
        sources = np.arange(start, min(start + SOURCES, hi - lo))
        steps = dijkstra(adjacency, indices=sources, unweighted=True)
        u, v = np.nonzero((steps > 0) & (steps < np.inf))
        code = (steps[u, v].astype(np.intp) * len(labels) + label[sources[u]]) * len(labels)
        triple, count = np.unique(code + label[v], return_counts=True)
        ends, last = np.divmod(triple, len(labels))
        length_, first = np.divmod(ends, len(labels))
        pair = hashed(hashed(labels[first], 2) + labels[last], 3)
        yield hashed(pair + length_.astype(np.uint64), 4), count.astype(np.float64)


# Edit distance


class Nodes(NamedTuple):
    """Nodes of graphs end to end, ordered by their labels, then by their degrees."""

    start: Array  # (n + 1,)
    label: Array  # (N,) uint64
    degree: Array  # (N,) float64


@compiled
def _rest(
    label: Array, degree: Array, z_label: Array, z_degree: Array, costs: tuple[float, float, float]
) -> tuple[float, Array]:
    """The cost to insert all nodes that are left, and what each substitution costs more, (k, l).

    Equal nodes of two ordered lists cancel; of the rest, the k nodes of the shorter list are
    assigned to the l nodes of the longer one.
    """
    k, l = len(label), len(z_label)
    keep, z_keep = np.ones(k, dtype=np.bool_), np.ones(l, dtype=np.bool_)
    u, v = 0, 0
    while u < k and v < l:
        if label[u] == z_label[v] and degree[u] == z_degree[v]:
            keep[u], z_keep[v] = False, False
            u, v = u + 1, v + 1
        elif label[u] < z_label[v] or (label[u] == z_label[v] and degree[u] < z_degree[v]):
            u += 1
        else:
            v += 1
    label, degree, z_label, z_degree = label[keep], degree[keep], z_label[z_keep], z_degree[z_keep]
    if len(label) > len(z_label):
        label, degree, z_label, z_degree = z_label, z_degree, label, degree
    node, relabel, edge = costs
    insert = node + 0.5 * edge * z_degree
    more = np.empty((len(label), len(z_label)))
    for i in range(len(label)):
        delete = node + 0.5 * edge * degree[i]
        for j in range(len(z_label)):
            substitute = 0.5 * edge * abs(degree[i] - z_degree[j])
            if label[i] != z_label[j]:
                substitute += relabel
            more[i, j] = min(substitute - insert[j], delete)
    return insert.sum(), more


class GraphEdit(SlowKernel, _GraphKernel, names=["graph_edit"]):
    """A graph edit distance: the least sum of node costs over all assignments of nodes.

    A node is deleted or inserted at node_cost + 1/2 edge_cost degree. It is substituted at
    label_cost, if the labels differ, plus 1/2 edge_cost |difference of degrees|. This is the cost
    of the best bipartite assignment (Riesen & Bunke 2009), with half of the cost of an edge at each
    of its ends, and at most the edit distance. The cost of the edit path that it suggests would
    depend on the order of nodes; this one does not, and is symmetric.

    Parameters
    ----------
    node_cost : float, default=1.0
        The cost of inserting or deleting a node, 0 or more.
    edge_cost : float, default=1.0
        The cost of inserting or deleting an edge, 0 or more.
    label_cost : float, default=1.0
        The cost of changing a label, 0 or more.

    Examples
    --------
    >>> from kreinlearn.kernels.graphs import GraphEdit
    >>> path, ring = (["C", "C", "O"], [(0, 1), (1, 2)]), (["C"] * 3, [(0, 1), (1, 2), (0, 2)])
    >>> GraphEdit()([path], [path, ring])
    array([[0., 2.]])
    """

    is_dissimilarity = True

    def __init__(
        self, node_cost: float = 1.0, edge_cost: float = 1.0, label_cost: float = 1.0
    ) -> None:
        self.node_cost = node_cost
        self.edge_cost = edge_cost
        self.label_cost = label_cost

    def _costs(self) -> tuple[float, float, float]:
        node = not_negative(self.node_cost, "node_cost")
        label = not_negative(self.label_cost, "label_cost")
        return node, label, not_negative(self.edge_cost, "edge_cost")

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: object = None) -> Nodes:
        graphs = self._joined(X, first, n)
        degree = np.diff(graphs.edge)
        order = np.lexsort((degree, graphs.labels, graphs.owner))
        return Nodes(graphs.start, graphs.labels[order], degree[order].astype(np.float64))

    def values(self, A: Nodes, Z: Nodes) -> Array:
        costs = self._costs()
        D = np.empty((len(A.start) - 1, len(Z.start) - 1))
        z_parts = [slice(*span) for span in zip(Z.start[:-1], Z.start[1:], strict=True)]
        z_nodes = [(Z.label[part], Z.degree[part]) for part in z_parts]
        for i in range(len(D)):
            part = slice(A.start[i], A.start[i + 1])
            label, degree = A.label[part], A.degree[part]
            for j, other in enumerate(z_nodes):
                insert, more = _rest(label, degree, *other, costs)
                D[i, j] = insert + more[linear_sum_assignment(more)].sum() if len(more) else insert
        return np.maximum(D, 0.0)
