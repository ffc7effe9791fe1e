"""What the object benchmark compares with: features and kernels by another route."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks import alternatives
from kreinlearn.datasets import Graph, make_graphs, make_noisy_strings

RNG = np.random.default_rng(3)
BLOB = np.cumsum(RNG.normal(size=(12, 2)), axis=0)


@pytest.mark.parametrize("moved", [
    BLOB + np.array([3.0, -7.0]),
    2.5 * BLOB,
    BLOB @ np.array([[0.6, -0.8], [0.8, 0.6]]),
    BLOB * np.array([-1.0, 1.0]),  # the mirror image
    np.roll(BLOB[::-1], 1, axis=0),  # from the same point the other way round
])  # fmt: skip
def test_descriptors_see_the_shape_alone(moved: Any) -> None:
    a, b = alternatives.descriptors([BLOB, moved])
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert a.shape == (2 * alternatives.N_FREQUENCIES,)


def test_descriptors_from_another_point_differ_by_the_sampling_alone() -> None:
    a, b = alternatives.descriptors([BLOB, np.roll(BLOB, 5, axis=0)])
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-3)  # 128 points on an outline of 12 corners


def test_descriptors_of_a_circle_have_one_frequency() -> None:
    t = 2 * np.pi * np.arange(256) / 256
    circle, ellipse = (np.column_stack([np.cos(t), height * np.sin(t)]) for height in (1.0, 0.5))
    round_, flat = alternatives.descriptors([circle, ellipse])
    expected = np.zeros(2 * alternatives.N_FREQUENCIES)
    expected[0] = 1
    np.testing.assert_allclose(round_, expected, atol=1e-3)  # a polygon of 256 sides
    assert flat[-1] > 0.2  # the ellipse turns the other way, too


@pytest.mark.parametrize("library", ["GraKeLKernel", "OwnKernel"])
def test_graphs_are_compared_by_their_subtrees(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library == "OwnKernel":
        monkeypatch.setitem(sys.modules, "grakel.kernels", None)  # cannot be imported
    else:
        pytest.importorskip("grakel", exc_type=ImportError)
    X, y = make_graphs(40, random_state=0)
    X[0] = Graph(np.array([0, 1, 2]), np.array([[0, 1]]))  # the third node stands alone
    train, test = slice(0, 30), slice(30, 40)
    model = alternatives.alternative("graphs", y[train]).fit(X[train], y[train])
    counts = [subtree_counts(x, 5) for x in X]
    K = np.array([[sum(a[c] * b[c] for c in a) for b in counts] for a in counts], dtype=float)
    K /= np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    np.testing.assert_allclose(model.kernel_(X[test]), K[test, train], rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.kernel_.among, K[train, train], rtol=0, atol=1e-12)
    own = SVC(kernel="precomputed", C=model.best_params_["C"]).fit(K[train, train], y[train])
    np.testing.assert_array_equal(model.predict(X[test]), own.predict(K[test, train]))
    assert model.best_params_["kernel"] == library


def subtree_counts(graph: Graph, rounds: int) -> Counter[Any]:
    """How often each label of each round comes; a label is spelt out, with its neighbours."""
    labels: list[Any] = graph.node_labels.tolist()
    counts = Counter((0, label) for label in labels)
    for k in range(1, rounds + 1):
        around: list[list[Any]] = [[] for _ in labels]
        for i, j in graph.edges.tolist():
            around[i].append(labels[j])
            around[j].append(labels[i])
        labels = [
            repr((own, sorted(near, key=repr))) for own, near in zip(labels, around, strict=True)
        ]
        counts.update((k, label) for label in labels)
    return counts


def test_series_of_unequal_length_are_filled_up_with_zeros_or_cut() -> None:
    pytest.importorskip("aeon")
    model = alternatives.PaddedRocket()
    model.length_ = 3
    given = [np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])]
    np.testing.assert_array_equal(model._padded(given), [[[1, 2, 0]], [[1, 2, 3]]])
    wide = [np.array([[1.0, 5.0], [2.0, 6.0]])]  # two steps of two channels
    np.testing.assert_array_equal(model._padded(wide), [[[1, 2, 0], [5, 6, 0]]])


def lobes(n_samples: int, random_state: int) -> tuple[list[Any], Any]:
    """Outlines with three or four lobes, turned and scaled at random."""
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_samples) % 2)
    t = 2 * np.pi * np.arange(60) / 60
    sizes, turns = rng.uniform(1, 9, n_samples), rng.uniform(0, 7, n_samples)
    radii = [1 + 0.3 * np.cos((3 + k) * t) + rng.normal(0, 0.1, 60) for k in y]
    z = [s * r * np.exp(1j * (t + a)) for s, r, a in zip(sizes, radii, turns, strict=True)]
    return [np.column_stack([x.real, x.imag]) for x in z], y


@pytest.mark.parametrize(("kind", "make"), [("strings", make_noisy_strings), ("contours", lobes)])
def test_alternatives_learn(kind: str, make: Any) -> None:
    X, y = make(160, random_state=1)
    model = alternatives.alternative(kind, y[:80]).fit(X[:80], y[:80])
    assert np.mean(model.predict(X[80:]) != y[80:]) < 0.15  # chance: three quarters, or a half
