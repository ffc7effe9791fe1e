"""Graphs against plain definitions, GraKeL and networkx, pair by pair."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from kreinlearn import KreinRidgeClassifier
from kreinlearn.datasets import Graph
from kreinlearn.kernels import graphs as module
from kreinlearn.kernels._counts import hashed
from kreinlearn.kernels.base import resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.graphs import (
    GraphEdit,
    ShortestPath,
    WeisfeilerLehman,
    WLAssignment,
    WLDistance,
)
from tests.unit.kernels.object_checks import check_pieces

KERNELS: list[Any] = [
    WeisfeilerLehman(),
    WeisfeilerLehman(h=2, normalized=False),
    WLAssignment(),
    WLAssignment(h=0, normalized=False),
    ShortestPath(),
    ShortestPath(normalized=False),
    WLDistance(),
    WLDistance(h=2, metric="l1"),
    WLDistance(h=2, metric="bray_curtis"),
    GraphEdit(),
    GraphEdit(0.7, 0.3, 2.1),
]
FEW = settings(max_examples=25, deadline=None, derandomize=True)


def random_graph(rng: np.random.Generator, largest: int = 8, density: float = 0.35) -> Graph:
    k = int(rng.integers(2, largest + 1))
    lo, hi = np.triu_indices(k, 1)
    chosen = rng.random(len(lo)) < density
    return Graph(rng.integers(0, 3, k), np.column_stack([lo, hi])[chosen])


def random_graphs(n: int, seed: int = 0, **shape: Any) -> list[Graph]:
    rng = np.random.default_rng(seed)
    return [random_graph(rng, **shape) for _ in range(n)]


def connected_graphs(n: int, seed: int = 0) -> list[Graph]:
    """Each node hangs on an earlier one: GraKeL passes over nodes without edges."""
    rng = np.random.default_rng(seed)
    made = []
    for graph in random_graphs(n, seed, density=0.2):
        k = len(graph.node_labels)
        tree = {(int(rng.integers(v)), v) for v in range(1, k)}
        edges = sorted(tree | {(int(i), int(j)) for i, j in graph.edges})
        made.append(Graph(graph.node_labels, np.array(edges)))
    return made


@st.composite
def small_graphs(draw: Any) -> tuple[list[int], list[tuple[int, int]]]:
    labels = draw(st.lists(st.integers(0, 2), max_size=5))
    pairs = [(i, j) for j in range(len(labels)) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return labels, edges


# Definitions


def around(graph: Any) -> list[list[int]]:
    near: list[set[int]] = [set() for _ in graph[0]]
    for i, j in graph[1]:
        near[i].add(int(j))
        near[j].add(int(i))
    return [sorted(one) for one in near]


def rounds(graph: Any, h: int) -> list[list[Any]]:
    """The labels of all nodes after 0..h rounds, as nested tuples: nothing is hashed."""
    near, labels = around(graph), [("label", int(label)) for label in graph[0]]
    levels = [labels]
    for _ in range(h):
        labels = [(own, tuple(sorted(labels[v] for v in near[i]))) for i, own in enumerate(labels)]
        levels.append(labels)
    return levels


def label_counts(graph: Any, h: int) -> Counter[Any]:
    return Counter((t, label) for t, labels in enumerate(rounds(graph, h)) for label in labels)


def distances(graph: Any) -> np.ndarray:
    """Floyd and Warshall."""
    k = len(graph[0])
    D = np.full((k, k), np.inf)
    for i, near in enumerate(around(graph)):
        D[i, near] = 1
        D[i, i] = 0
    for v in range(k):
        D = np.minimum(D, D[:, [v]] + D[v])
    return D


def path_counts(graph: Any) -> Counter[Any]:
    D, labels = distances(graph), [int(label) for label in graph[0]]
    pairs = [(i, j) for i in range(len(D)) for j in range(len(D)) if i != j and D[i, j] < np.inf]
    return Counter((labels[i], labels[j], D[i, j]) for i, j in pairs)


def product(a: Counter[Any], b: Counter[Any]) -> int:
    return sum(a[key] * b[key] for key in a)


def assignment(x: Any, z: Any, h: int) -> int:
    """The best matching of nodes, each pair worth the rounds in which their labels agree."""
    X, Z = rounds(x, h), rounds(z, h)
    worth = np.array(
        [
            [sum(X[t][u] == Z[t][v] for t in range(h + 1)) for v in range(len(z[0]))]
            for u in range(len(x[0]))
        ]
    ).reshape(len(x[0]), len(z[0]))
    return int(worth[linear_sum_assignment(worth, maximize=True)].sum())


def edit(x: Any, z: Any, node: float, edge: float, relabel: float) -> float:
    """Riesen and Bunke's whole matrix: substitutions, deletions, insertions and nothing."""
    k, l = len(x[0]), len(z[0])
    dx, dz = [len(near) for near in around(x)], [len(near) for near in around(z)]
    C = np.full((k + l, k + l), 1e9)
    C[k:, l:] = 0
    for u in range(k):
        C[u, l + u] = node + edge * dx[u] / 2
        for v in range(l):
            C[u, v] = relabel * (x[0][u] != z[0][v]) + edge * abs(dx[u] - dz[v]) / 2
    for v in range(l):
        C[k + v, v] = node + edge * dz[v] / 2
    return float(C[linear_sum_assignment(C)].sum())


def matrix(f: Any, A: Any, B: Any, *args: Any) -> np.ndarray:
    return np.array([[f(a, b, *args) for b in B] for a in A], dtype=np.float64)


def count_matrices(f: Any, X: Any, *args: Any) -> tuple[Any, list[Counter[Any]]]:
    counts = [f(x, *args) for x in X]
    return matrix(product, counts, counts), counts


# Against the definitions


@FEW
@given(st.lists(small_graphs(), min_size=1, max_size=4), st.integers(0, 4))
def test_weisfeiler_lehman_and_its_distances(X: Any, h: int) -> None:
    K, counts = count_matrices(label_counts, X, h)
    np.testing.assert_array_equal(WeisfeilerLehman(h, normalized=False)(X), K)
    own = np.diag(K)
    scale = np.sqrt(np.outer(own, own))
    normal = np.divide(K, scale, out=np.zeros_like(K), where=scale > 0)
    np.testing.assert_allclose(WeisfeilerLehman(h)(X), normal, rtol=1e-15)
    apart = np.sqrt(own[:, None] + own - 2 * K)
    np.testing.assert_allclose(WLDistance(h)(X), apart, rtol=1e-15)
    absolute = matrix(lambda a, b: ((a - b) + (b - a)).total(), counts, counts)
    np.testing.assert_array_equal(WLDistance(h, metric="l1")(X), absolute)
    total = matrix(lambda a, b: (a + b).total(), counts, counts)
    share = np.divide(absolute, total, out=np.zeros_like(K), where=total > 0)
    np.testing.assert_allclose(WLDistance(h, metric="bray_curtis")(X), share, rtol=1e-15)


@FEW
@given(small_graphs(), small_graphs(), st.integers(0, 4))
def test_wl_assignment_is_the_best_matching_of_nodes(x: Any, z: Any, h: int) -> None:
    assert WLAssignment(h, normalized=False)([x], [z])[0, 0] == assignment(x, z, h)
    own = (h + 1) * np.sqrt(len(x[0]) * len(z[0]))
    expected = assignment(x, z, h) / own if own else 0.0
    assert WLAssignment(h)([x], [z])[0, 0] == pytest.approx(expected, rel=1e-14)


@FEW
@given(st.lists(small_graphs(), min_size=1, max_size=4))
def test_shortest_path_counts_triples(X: Any) -> None:
    K, _ = count_matrices(path_counts, X)
    np.testing.assert_array_equal(ShortestPath(normalized=False)(X), K)


def test_sources_in_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = random_graphs(6, seed=1)
    whole = ShortestPath(normalized=False)(X)
    monkeypatch.setattr(module, "SOURCES", 3)
    np.testing.assert_array_equal(ShortestPath(normalized=False)(X), whole)


COSTS = st.tuples(*[st.sampled_from([0.0, 0.3, 1.0, 2.5])] * 3)


@FEW
@given(small_graphs(), small_graphs(), COSTS)
def test_graph_edit_is_the_best_assignment_of_the_whole_matrix(x: Any, z: Any, costs: Any) -> None:
    assert GraphEdit(*costs)([x], [z])[0, 0] == pytest.approx(edit(x, z, *costs), abs=1e-12)


def as_networkx(graph: Any, labelled: bool = True) -> Any:
    made = nx.Graph()
    for i, label in enumerate(graph[0]):
        made.add_node(f"node {i}", **({"label": int(label)} if labelled else {}))
    made.add_edges_from((f"node {i}", f"node {j}") for i, j in graph[1])
    return made


def test_graph_edit_is_at_most_networkxs_exact_distance() -> None:
    X = random_graphs(6, seed=2, largest=5)
    ours = GraphEdit()(X)
    exact = matrix(
        lambda a, b: nx.graph_edit_distance(a, b, node_match=lambda u, v: u == v),
        [as_networkx(x) for x in X],
        [as_networkx(x) for x in X],
    )
    assert (ours <= exact).all()
    assert ours.sum() > 0.8 * exact.sum()


# Against GraKeL


def for_grakel(graph: Any) -> Any:
    edges = [(int(i), int(j)) for i, j in graph.edges]
    labels = {i: int(label) for i, label in enumerate(graph.node_labels)}
    return {*edges, *((j, i) for i, j in edges)}, labels


@pytest.mark.parametrize("normalized", [False, True])
def test_the_numbers_are_grakels(normalized: bool) -> None:
    grakel = pytest.importorskip("grakel", exc_type=ImportError)  # not for every Python or numpy
    X, new = connected_graphs(20, seed=3), connected_graphs(7, seed=4)
    pairs = [
        (WeisfeilerLehman(3, normalized), grakel.WeisfeilerLehman(n_iter=3, normalize=normalized)),
        (
            WLAssignment(3, normalized),
            grakel.WeisfeilerLehmanOptimalAssignment(n_iter=3, normalize=normalized),
        ),
        (ShortestPath(normalized), grakel.ShortestPath(normalize=normalized)),
    ]
    for ours, theirs in pairs:
        K = theirs.fit_transform([for_grakel(x) for x in X])
        np.testing.assert_allclose(ours(X), K, rtol=1e-14)
        K_new = theirs.transform([for_grakel(x) for x in new])
        np.testing.assert_allclose(ours(new, X), K_new, rtol=1e-14)


# What a graph may be


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_forms_of_a_graph_are_one(kernel: Any) -> None:
    X = random_graphs(6, seed=5)
    expected = kernel(X)
    forms = {
        "tuples": [(x.node_labels.tolist(), [tuple(e) for e in x.edges.tolist()]) for x in X],
        "lists": [[x.node_labels.astype(np.int16), x.edges.astype(np.int32)] for x in X],
        "networkx": [as_networkx(x) for x in X],
        "both ways": [(x.node_labels, np.vstack([x.edges, x.edges[:, ::-1]])) for x in X],
        "texts": [([f"atom {v}" for v in x.node_labels], x.edges) for x in X],
        "text arrays": [(np.array([f"atom {v}" for v in x.node_labels]), x.edges) for x in X],
        "columns": [(pd.Series(x.node_labels), x.edges) for x in X],
    }
    for form, Y in forms.items():
        np.testing.assert_allclose(kernel(Y), expected, rtol=1e-14, err_msg=form)
    others = [name for name in forms if not name.startswith("text")]
    for form in others:
        np.testing.assert_allclose(kernel(X, forms[form]), expected, rtol=1e-14, err_msg=form)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_order_of_nodes_does_not_count(kernel: Any) -> None:
    rng = np.random.default_rng(6)
    X = random_graphs(8, seed=7)
    turned = []
    for x in X:
        new = rng.permutation(len(x.node_labels))
        turned.append(Graph(x.node_labels[np.argsort(new)], rng.permutation(new[x.edges])))
    np.testing.assert_allclose(kernel(turned), kernel(X), rtol=1e-14, atol=1e-15)


def test_numbers_and_texts_and_negative_numbers_are_different_labels() -> None:
    labels = [[1], ["1"], [-1], [2**63], [True], [np.int8(1)]]
    K = WeisfeilerLehman(h=0)([(one, []) for one in labels])
    expected = np.eye(6)
    expected[[0, 0, 4, 4, 5, 5], [4, 5, 0, 5, 0, 4]] = 1  # True is 1
    np.testing.assert_array_equal(K, expected)


def test_networkx_graphs_without_labels_have_one() -> None:
    X = random_graphs(5, seed=8)
    bare = [as_networkx(x, labelled=False) for x in X]
    same = [Graph(np.zeros(len(x.node_labels), int), x.edges) for x in X]
    np.testing.assert_array_equal(WeisfeilerLehman()(bare, same), WeisfeilerLehman()(same))


def test_a_loop_makes_a_node_its_own_neighbour() -> None:
    """As in GraKeL; a round tells the loop from none."""
    loop, none = ([0, 0], [(0, 1), (1, 1)]), ([0, 0], [(0, 1)])
    assert WeisfeilerLehman(1, False)([loop], [loop, none]).tolist() == [[6.0, 6.0]]
    assert WeisfeilerLehman(1, False)([none], [none]).tolist() == [[8.0]]
    assert ShortestPath(False)([loop], [loop, none]).tolist() == [[4.0, 4.0]]


def test_a_graph_without_nodes_is_like_nothing() -> None:
    nothing, one = ([], []), ([0], [])
    for kind in (WeisfeilerLehman, WLAssignment, ShortestPath):
        assert kind()([nothing, one], [nothing, one])[0].tolist() == [0.0, 0.0]
        assert kind().diagonal([nothing])[0] == 0.0
    assert WLDistance(h=1)([nothing], [nothing, one]).tolist() == [[0.0, np.sqrt(2)]]
    assert GraphEdit()([nothing], [nothing, one]).tolist() == [[0.0, 1.0]]


def test_the_hash_is_splitmix64() -> None:
    def by_definition(x: int, salt: int) -> int:
        x = (x + salt * 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    values = [0, 1, 2**63, 2**64 - 1]
    for salt in (1, 4):
        found = hashed(np.array(values, dtype=np.uint64), salt)
        assert found.tolist() == [by_definition(x, salt) for x in values]


# All kernels


@pytest.mark.parametrize("kernel", KERNELS)
def test_symmetric_and_the_diagonal(kernel: Any) -> None:
    X = random_graphs(60, seed=9)
    K, S = kernel(X, X), kernel(X)
    assert K.dtype == S.dtype == np.float64
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_allclose(K, S, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(K))
    if kernel.is_dissimilarity:
        assert not np.diag(K).any()
        assert (K >= 0).all()
    elif kernel.normalized and not isinstance(kernel, ShortestPath):
        assert (np.diag(K) == 1).all()  # a graph without edges has no paths


@pytest.mark.parametrize("kernel", KERNELS)
def test_chunks_and_threads_change_no_bit(kernel: Any) -> None:
    A, Z = random_graphs(40, seed=10), random_graphs(30, seed=11)
    check_pieces(kernel, A, Z)


@pytest.mark.parametrize("kernel", KERNELS)
def test_pickled_columns_and_clones_give_the_same(kernel: Any) -> None:
    A, Z = random_graphs(4, seed=13), random_graphs(5, seed=14)
    expected = kernel(A, Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel.columns(Z)))(A), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(A, Z), expected)
    np.testing.assert_array_equal(clone(kernel)(A, Z), expected)
    assert kernel([], Z).shape == (0, 5)
    assert kernel(A, []).shape == (4, 0)


def test_names_know_what_they_are() -> None:
    kinds = {
        "weisfeiler_lehman": (WeisfeilerLehman, False),
        "wl_assignment": (WLAssignment, False),
        "shortest_path": (ShortestPath, False),
        "wl_distance": (WLDistance, True),
        "graph_edit": (GraphEdit, True),
    }
    for name, (kind, dissimilarity) in kinds.items():
        kernel = resolve(name)
        assert type(kernel) is kind
        assert (kernel.domain, kernel.is_dissimilarity) == (Objects(), dissimilarity)
    assert resolve("wl_distance", {"h": 2, "metric": "l1"}).metric == "l1"


def column(X: list[Any], kind: str) -> Any:
    array = np.empty(len(X), dtype=object)
    for i, x in enumerate(X):
        array[i] = x
    made = {"list": X, "array": array, "pandas": pd.Series(array)}
    return made[kind] if kind in made else pl.Series("x", X, dtype=pl.Object)


@pytest.mark.parametrize("kind", ["list", "array", "pandas", "polars"])
@pytest.mark.parametrize(
    "kernel", ["weisfeiler_lehman", "wl_assignment", "shortest_path", "wl_distance", "graph_edit"]
)
def test_an_estimator_takes_columns_of_graphs_and_equals_the_matrix(kernel: str, kind: str) -> None:
    X, new = random_graphs(24, seed=15), [as_networkx(x) for x in random_graphs(5, seed=16)]
    y = np.arange(24) % 2
    resolved = resolve(kernel)
    fixed: dict[str, Any] = {"lambda_plus": 0.1, "lambda_minus": 0.1}
    matrices = "precomputed"
    if resolved.is_dissimilarity:
        fixed["similarity"], matrices = "squared", "precomputed_dissimilarity"
    model = KreinRidgeClassifier(kernel=kernel, **fixed).fit(column(X, kind), y)
    given = KreinRidgeClassifier(kernel=matrices, **fixed).fit(resolved(X), y)
    np.testing.assert_allclose(
        model.decision_function(column(new, kind)),
        given.decision_function(resolved(new, X)),
        rtol=0,
        atol=1e-12,
    )


# What is refused


GOOD: Any = ([0, 1], [(0, 1)])


@pytest.mark.parametrize("kernel", [WeisfeilerLehman(), ShortestPath(), GraphEdit()])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("CCO", r"object 1 \(of 3\) is str 'CCO'; a graph is a pair \(node_labels, edges\) or"),
        (None, r"object 1 .* is NoneType None"),
        (np.eye(2), r"object 1 .* is an array of shape \(2, 2\)"),
        (([0], [], []), r"object 1 .* is tuple"),
        (([0, 1], 7), r"object 1 .* has as edges int 7; edges are pairs of node numbers"),
        (([0, 1], [(0, 1, 2)]), r"has as edges list .* of shape \(number of edges, 2\)"),
        (([0, 1], [(0,), (0, 1)]), r"has as edges list"),
        (([0, 1], [(0.0, 1.0)]), r"has as edges list .* integers"),
        (([0, 1], np.eye(3)), r"has as edges an array of shape \(3, 3\)"),
        (([0, 1], [(0, 2)]), r"object 1 \(of 3\) has the edge \(0, 2\) but 2 nodes; .* from 0"),
        (([0, 1], [(0, 1), (-1, 0)]), r"has the edge \(-1, 0\) but 2 nodes"),
        (("CO", [(0, 1)]), r"has as node labels str 'CO'; pass a list or an array, one integer"),
        (({0: "C"}, []), r"has as node labels dict"),
        ((5, []), r"has as node labels int 5"),
        (([0, 0.5], [(0, 1)]), r"has at node 1 the label float 0.5; .* into bins"),
        ((np.array([0.5]), []), r"has at node 0 the label float 0.5"),
        (([0, None], []), r"has at node 1 the label NoneType None; .* give every node one"),
        ((np.zeros((2, 2), int), []), r"has at node 0 the label list"),
        (nx.DiGraph([(0, 1)]), r"object 1 .* is DiGraph .*to_undirected\(\)"),
    ],
)
def test_a_bad_graph_is_named(kernel: Any, bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel([GOOD], [GOOD, bad, GOOD])
    with pytest.raises(ValueError, match=message):
        kernel([GOOD, bad, GOOD], [GOOD])
    with pytest.raises(ValueError, match=message):
        kernel.fit([GOOD, bad, GOOD], np.random.default_rng(0))


def test_a_networkx_graph_labels_all_of_its_nodes_or_none() -> None:
    half = nx.path_graph(3)
    half.nodes[0]["label"] = "C"
    with pytest.raises(ValueError, match=r"object 0 \(of 1\) has at node 1 the label NoneType"):
        WeisfeilerLehman()([half])


def test_fit_names_the_graph_by_its_number_in_the_whole_sequence() -> None:
    X = [GOOD] * 2100
    X[2075] = ([0], [(0, 1)])
    with pytest.raises(ValueError, match=r"object 2075 \(of 2100\) has the edge \(0, 1\) but 1"):
        GraphEdit().fit(X, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (WeisfeilerLehman(h=-1), r"h == -1, must be >= 0"),
        (WLDistance(metric="cosine"), r"metric='cosine' is unknown; pass one of \('euclidean'"),
        (GraphEdit(edge_cost=-1), r"edge_cost=-1 is not allowed; pass a finite number, 0 or more"),
        (GraphEdit(node_cost=np.nan), r"node_cost=nan is not allowed; pass a finite number"),
        (GraphEdit(label_cost="1"), r"label_cost='1' is not allowed"),
    ],
)
def test_a_bad_parameter_is_named(kernel: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel([GOOD])


def test_a_round_is_whole() -> None:
    with pytest.raises(TypeError, match=r"h must be an instance of .*, not float"):
        WLAssignment(h=1.5)([GOOD])


def test_without_networkx_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.path_graph(2)
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert WeisfeilerLehman()([GOOD], [GOOD]).tolist() == [[1.0]]
    with pytest.raises(ImportError, match=r'^this needs networkx, .*kreinlearn\[graphs\]"$'):
        WeisfeilerLehman()([graph])
