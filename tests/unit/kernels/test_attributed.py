"""Graphs whose nodes carry numbers, against plain definitions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.exceptions import NotFittedError

from kreinlearn import KreinClassifier, KreinRidgeClassifier, load
from kreinlearn.datasets import Graph
from kreinlearn.kernels import SlicedWL, WassersteinWL, WeisfeilerLehman, WLDistance, candidates
from kreinlearn.kernels._graphs import is_attributed
from kreinlearn.kernels.base import resolve
from kreinlearn.kernels.candidates import candidates_for
from kreinlearn.kernels.vector_columns import evenly
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

KINDS = [SlicedWL, WassersteinWL]
every = pytest.mark.parametrize("kind", KINDS)
RNG = np.random.default_rng(0)


def graph(rng: np.random.Generator, d: int = 2) -> Graph:
    """A graph of 1 to 7 nodes, some of them without neighbours."""
    k = int(rng.integers(1, 8))
    pairs = np.column_stack(np.triu_indices(k, 1))
    return Graph(rng.normal(3.0, 2.0, (k, d)), pairs[rng.random(len(pairs)) < 0.3])


def some(n: int, seed: int = 0, d: int = 2) -> list[Graph]:
    rng = np.random.default_rng(seed)
    return [graph(rng, d) for _ in range(n)]


def rings(n: int, seed: int = 0) -> tuple[list[Graph], Any]:
    """Rings whose nodes lie on a circle, in the order of the ring (class 0) or in any (class 1)."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(n) % 2
    for shuffled in y:
        k = int(rng.integers(8, 13))
        angle = 2 * np.pi * np.arange(k) / k + rng.uniform(0, 6)
        place = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(k, 2))
        place = rng.permutation(place) if shuffled else place
        edges = np.column_stack([np.arange(k), (np.arange(k) + 1) % k])
        new = rng.permutation(k)
        X.append(Graph(place[np.argsort(new)], new[edges]))
    return X, y


def fitted(kernel: Any, X: Any) -> Any:
    return kernel.fit(X, np.random.default_rng(0))


# Definitions


def nodes(kernel: Any, x: Any) -> list[Any]:
    """The vector of each node: what it carries after 0..h rounds."""
    k = len(x[0])
    near: list[set[int]] = [set() for _ in range(k)]
    for a, b in x[1]:
        near[a].add(int(b))
        near[b].add(int(a))
    now = [(np.asarray(x[0][v], float) - kernel.mean_) / kernel.scale_ for v in range(k)]
    levels = [now]
    for _ in range(kernel.h):
        around = [
            sum(now[u] for u in near[v]) / len(near[v]) if near[v] else now[v] for v in range(k)
        ]
        now = [0.5 * (own + other) for own, other in zip(now, around, strict=True)]
        levels.append(now)
    return [np.concatenate([level[v] for level in levels]) for v in range(k)]


def sliced(kernel: Any, x: Any, z: Any) -> float:
    X, Z = nodes(kernel, x), nodes(kernel, z)
    levels, total = [(i + 0.5) / 16 for i in range(16)], 0.0
    for u in kernel.directions_.T:
        q, r = np.quantile([a @ u for a in X], levels), np.quantile([b @ u for b in Z], levels)
        total += np.abs(q - r).mean()
    return float(total / kernel.directions_.shape[1])


def wasserstein(kernel: Any, x: Any, z: Any) -> float:
    """By a linear program for the plan."""
    X, Z = nodes(kernel, x), nodes(kernel, z)
    k, l = len(X), len(Z)
    cost = [np.linalg.norm(a - b) for a in X for b in Z]
    rows, columns = np.kron(np.eye(k), np.ones(l)), np.kron(np.ones(k), np.eye(l))
    sums = np.concatenate([np.full(k, 1 / k), np.full(l, 1 / l)])
    return float(linprog(cost, A_eq=np.vstack([rows, columns]), b_eq=sums).fun)


@every
@pytest.mark.parametrize("h", [0, 1, 3])
def test_the_distance_is_that_of_the_definition(kind: Any, h: int) -> None:
    if kind is WassersteinWL:
        pytest.importorskip("ot")
    X, new = some(8), some(5, seed=1)
    kernel = fitted(kind(h), X)
    by_definition = sliced if kind is SlicedWL else wasserstein
    expected = matrix(lambda a, b: by_definition(kernel, a, b), new, X)
    assert_allclose(kernel(new, X), expected, rtol=1e-9, atol=1e-12)


def test_numbers_are_standardised_by_the_nodes_of_an_even_sample() -> None:
    X = some(2500)
    kernel = fitted(SlicedWL(), X)
    values = np.concatenate([X[i].node_labels for i in evenly(2500)])
    assert_allclose(kernel.mean_, values.mean(axis=0), rtol=1e-12)
    assert_allclose(kernel.scale_, values.std(axis=0), rtol=1e-12)
    assert kernel.directions_.shape == (6, 64)
    assert_allclose(np.linalg.norm(kernel.directions_, axis=0), 1, rtol=1e-12)


@every
def test_what_is_constant_in_the_fit_does_not_count(kind: Any) -> None:
    X = [(np.column_stack([labels, np.full(len(labels), 0.1)]), edges) for labels, edges in some(6)]
    kernel = fitted(kind(), X)
    assert kernel.scale_[2] == 0
    more = np.array([0.0, 0.0, 5.0])
    other = [(labels + more, edges) for labels, edges in X]
    assert_array_equal(kernel(other, X), kernel(X, X))


@every
def test_units_do_not_count(kind: Any) -> None:
    if kind is WassersteinWL:
        pytest.importorskip("ot")
    X = some(9)
    other = [(labels * [1e6, -1e-6] + [5.0, 0.0], edges) for labels, edges in X]
    same = [(labels * [1, -1], edges) for labels, edges in X]
    assert_allclose(fitted(kind(), other)(other), fitted(kind(), same)(same), rtol=1e-6, atol=1e-9)


# What holds for every kernel on objects


@every
def test_kernels_on_objects(kind: Any) -> None:
    if kind is WassersteinWL:
        pytest.importorskip("ot")
    X, new = some(40), some(30, seed=1)
    kernel = fitted(kind(), X)
    check_symmetry(kernel, X)
    check_pieces(kernel, new, X)
    check_copies(kernel, new, X)
    for few in (X[:1], X[:0]):
        assert_array_equal(kernel(few), np.zeros((len(few), len(few))))


@every
def test_a_square_evaluates_every_pair_once(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ot")
    X = some(40)
    kernel, pairs = fitted(kind(), X), []
    values = kind.values

    def counted(self: Any, A: Any, Z: Any) -> Any:
        D = values(self, A, Z)
        pairs.append(D.size)
        return D

    monkeypatch.setattr(kind, "values", counted)
    kernel(X)
    assert sum(pairs) <= 40 * 41 / 2 + 40 * 8  # small squares evaluate both triangles


@every
def test_the_order_of_nodes_and_the_direction_of_edges_do_not_count(kind: Any) -> None:
    if kind is WassersteinWL:
        pytest.importorskip("ot")
    X, rng = some(12), np.random.default_rng(6)
    kernel = fitted(kind(), X)
    turned = []
    for labels, edges in X:
        new = rng.permutation(len(labels))
        both = np.vstack([edges, edges[:, ::-1]])
        turned.append(Graph(labels[np.argsort(new)], rng.permutation(new[both])))
    assert_allclose(kernel(turned), kernel(X), rtol=1e-12, atol=1e-13)
    assert_allclose(kernel(turned, X).diagonal(), 0, atol=1e-13)


def as_networkx(x: Any, name: str = "label") -> Any:
    made = nx.Graph()
    made.add_nodes_from((f"n{i}", {name: one}) for i, one in enumerate(x[0]))
    made.add_edges_from((f"n{i}", f"n{j}") for i, j in x[1])
    return made


def test_the_forms_of_a_graph_are_one() -> None:
    X = some(8)
    kernel = fitted(SlicedWL(), X)
    expected = kernel(X)
    forms = {
        "lists": [(labels.tolist(), [tuple(e) for e in edges.tolist()]) for labels, edges in X],
        "list of arrays": [[list(labels), edges] for labels, edges in X],
        "frames": [(pd.DataFrame(labels), edges) for labels, edges in X],
        "networkx": [as_networkx(x) for x in X],
        "geometric": [as_networkx((x[0].tolist(), x[1]), "pos") for x in X],
    }
    for form, Y in forms.items():
        assert_array_equal(kernel(Y), expected, err_msg=form)
        assert form == "frames" or all(map(is_attributed, Y))


def test_one_number_per_node() -> None:
    X = some(8, d=1)
    flat = [(labels[:, 0], edges) for labels, edges in X]
    kernel = fitted(SlicedWL(), X)
    assert_array_equal(kernel(flat), kernel(X))
    assert_array_equal(kernel([(labels.tolist(), edges) for labels, edges in flat]), kernel(X))
    whole = [([1, 2, 3], [(0, 1)]), (np.array([2.5, 1.0]), [])]
    assert fitted(SlicedWL(), whole)(whole)[0, 1] > 0


@pytest.mark.parametrize(
    ("x", "attributed"),
    [
        (([0.5, 1], []), True),
        (([1, 2], []), False),
        ((np.array([1, 2]), []), False),
        ((np.array([1.0, 2.0]), []), True),
        ((np.array([[1], [2]]), []), True),
        (([(1, 2), (3, 4)], []), True),
        ((["C", "O"], []), False),
        ((np.array(["C", "O"]), []), False),
        (nx.path_graph(3), False),
        (nx.random_geometric_graph(4, 0.5, seed=0), True),
        (([], []), False),
    ],
)
def test_which_graphs_have_attributes(x: Any, attributed: bool) -> None:
    assert is_attributed(x) == attributed


def test_without_labels_a_graph_is_its_edges() -> None:
    X = some(20)
    bare = [([0] * len(labels), edges) for labels, edges in X]
    for kind in ("wl_distance", "weisfeiler_lehman", "wl_assignment", "shortest_path"):
        assert_array_equal(resolve(kind, {"labelled": False})(X), resolve(kind)(bare))
    fitted(WLDistance(labelled=False), X)
    with pytest.raises(ValueError, match=r"has at node 0 the label list .* \"sliced_wl\""):
        WeisfeilerLehman()(X)


def test_labels_of_networkx_come_before_places() -> None:
    x = as_networkx((["C", "O"], [(0, 1)]))
    nx.set_node_attributes(x, {"n0": (0.0, 1.0), "n1": (1.0, 1.0)}, "pos")
    assert not is_attributed(x)
    assert WeisfeilerLehman()([x], [(["C", "O"], [(0, 1)])])[0, 0] == 1


# What is refused

GOOD: Any = [([[0.0, 1.0], [1.0, 3.0]], [(0, 1)]), ([[2.0, 0.0]], [])]


@every
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (([[0.0, np.nan]], []), r"has at node 0 the numbers \[ ?0. nan\]; they must be finite"),
        (([[0.0, 1.0], [np.inf, 1.0]], []), r"has at node 1 the numbers \[inf +1.\]"),
        (([[0.0, 1e200]], []), r"has at node 0 the numbers .* at most 1e\+150"),
        (([[0.0, 1.0, 2.0]], []), r"has 3 numbers at each node, the others have 2; all nodes"),
        (([0.5, 1.5], []), r"has 1 numbers at each node, the others have 2"),
        (([[0.0, 1.0], [1.0]], []), r"has at node 1 the label list \[1.0\]; this kernel compares"),
        (([[0.0, 1.0], None], []), r"has at node 1 the label NoneType None; this kernel"),
        ((["C", "O"], [(0, 1)]), r"has at node 0 the label str 'C'; this kernel compares numbers"),
        (([], []), r"is a graph without nodes, .* leave it out"),
        (([[0.0, 1.0]], [(0, 1)]), r"has the edge \(0, 1\) but 1 nodes"),
        ((np.zeros((2, 2, 2)), []), r"has at node 0 the label an array of shape \(2, 2\)"),
        ("CO", r"is str 'CO'; a graph is a pair"),
    ],
)
def test_bad_input_119_numbers_of_nodes(kind: Any, bad: Any, message: str) -> None:
    check_bad_object(fitted(kind(), GOOD), GOOD, bad, message)


@every
def test_bad_parameters_and_no_fit(kind: Any) -> None:
    with pytest.raises(NotFittedError, match="numbers are standardised: fit the kernel first"):
        kind()(GOOD)
    with pytest.raises(ValueError, match="h == -1, must be >= 0"):
        fitted(kind(h=-1), GOOD)(GOOD)


def test_without_pot_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ot")
    X = [([0.5], []), ([1.5, 2.0], []), ([1.0, 2.5, 0.0], [])]
    kernel = fitted(WassersteinWL(), X)
    for module in [name for name in sys.modules if name.partition(".")[0] == "ot"]:
        monkeypatch.setitem(sys.modules, module, None)
    assert kernel([X[0], ([2.5], [])])[0, 1] > 0  # of one size
    with pytest.raises(ImportError, match=r'^this needs POT, .*"kreinlearn\[shapes\]"$'):
        kernel(X)
    monkeypatch.setattr(candidates, "find_spec", lambda name: None)
    assert [type(one) for one in candidates_for(X)] == [SlicedWL, WLDistance]


# Learning


def test_by_the_kernel_as_by_its_matrix() -> None:
    pytest.importorskip("ot")
    X, y = rings(40)
    check_estimator(WassersteinWL(), X, y, rings(9, seed=1)[0], [[as_networkx(x) for x in X]])


def test_directions_come_from_random_state() -> None:
    X, y = rings(40)
    fits = [KreinRidgeClassifier("sliced_wl", random_state=s).fit(X, y) for s in (0, 0, 1)]
    f = [fit.decision_function(rings(9, seed=1)[0]) for fit in fits]
    assert_array_equal(f[0], f[1])
    assert (f[0] != f[2]).all()


def test_what_is_compared_without_a_kernel() -> None:
    def names(X: Any) -> list[str]:
        return [str(kernel) for kernel in candidates_for(X)]

    structure = "WLDistance(labelled=False, metric='bray_curtis')"
    assert names(some(20))[:2] == ["SlicedWL()", structure]
    geometric = [nx.random_geometric_graph(5, 0.5, seed=i) for i in range(4)]
    assert names(geometric) == names(some(20))
    assert "WeisfeilerLehman()" in names([nx.path_graph(3)] * 4)
    mixed = [([1, 2], []), ([1, 2.5], [])]  # some labels happen to be whole
    assert names(mixed) == names(some(20))


def test_numbers_of_nodes_help_and_models_are_saved(tmp_path: Path) -> None:
    X, y = rings(120)
    bare = [([0] * len(labels), edges) for labels, edges in X]
    model = KreinClassifier(random_state=0).fit(X[:60], y[:60])
    score = model.score(X[60:], y[60:])
    assert score > 0.9
    assert score > KreinClassifier(random_state=0).fit(bare[:60], y[:60]).score(bare[60:], y[60:])
    model.save(tmp_path / "rings.krein")
    again = load(tmp_path / "rings.krein")
    assert_array_equal(again.decision_function(X[60:]), model.decision_function(X[60:]))


def test_edges_count_where_numbers_say_nothing() -> None:
    rng = np.random.default_rng(3)
    y = np.arange(80) % 2
    X = []
    for ring in y:
        edges = [(i, i + 1) for i in range(7)] + ([(7, 0)] if ring else [(3, 5)])
        X.append((rng.normal(size=8), edges))
    assert KreinClassifier(random_state=0).fit(X[:40], y[:40]).score(X[40:], y[40:]) > 0.95


def test_processes_give_the_same_bits() -> None:
    pytest.importorskip("ot")
    X, y = rings(40)
    fits = [
        KreinRidgeClassifier("wasserstein_wl", n_jobs=n, random_state=0).fit(X, y) for n in (1, 2)
    ]
    assert_array_equal(*(fit.decision_function(X) for fit in fits))
