"""inspect: every finding recomputed from its definition, and the words that go with it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import dissimilarity, inspect, pairwise
from kreinlearn.datasets import make_polygons
from kreinlearn.inspection import findings
from tests.cases import with_spectrum

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(11)


def metric_breaker(n: int = 30) -> Array:
    """Squared distances on a line: a dissimilarity that is no metric."""
    x = RNG.uniform(size=n)
    return np.abs(x[:, None] - x) ** 2


def test_signature_spectrum_and_indefiniteness_of_a_prescribed_spectrum() -> None:
    values = np.concatenate([np.linspace(1, 9, 20), -np.linspace(0.5, 3, 12), np.zeros(8)])
    K, _ = with_spectrum(values, RNG)
    found = inspect(K, random_state=0)
    assert found.exact
    assert found.signature == (20, 12, 8)
    by_size = values[np.argsort(-np.abs(values))][:32]
    np.testing.assert_allclose(found.eigenvalues, by_size, rtol=1e-10)
    share = np.abs(values[values < 0]).sum() / np.abs(values).sum()
    assert found.indefiniteness[40] == pytest.approx(share, rel=1e-10)
    assert not found.positive_definite
    tails = [np.linalg.norm(by_size[k:]) / np.linalg.norm(by_size) for k in range(33)]
    assert found.effective_rank == next(k for k, tail in enumerate(tails) if tail <= 0.05)


def test_sizes_are_nested_and_labelled() -> None:
    K, _ = with_spectrum(np.linspace(-1, 2, 200), RNG)
    found = inspect(K, n_samples=120, random_state=3)
    assert list(found.indefiniteness) == [30, 60, 120]
    assert not found.exact
    assert (found.n_objects, found.n_sampled) == (200, 120)
    order = np.random.default_rng(3).permutation(200)[:30]
    D = np.linalg.eigvalsh(K[np.ix_(order, order)])
    expected = np.abs(D[D < 0]).sum() / np.abs(D).sum()
    assert found.indefiniteness[30] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("s", "sizes"), [(3, [3]), (25, [25]), (60, [30, 60]), (80, [20, 40, 80])])
def test_small_samples_are_not_cut_further(s: int, sizes: list[int]) -> None:
    assert findings.nested_sizes(s) == sizes


def test_triangles_by_counting_all() -> None:
    D = metric_breaker(12)
    triples = list(itertools.permutations(range(12), 3))
    broken = sum(D[x, z] > D[x, y] + D[y, z] + 1e-12 for x, y, z in triples)
    found = inspect(D, "precomputed_dissimilarity", random_state=1)
    assert found.triangle_violations == pytest.approx(broken / len(triples), abs=0.01)
    assert "triangle inequality" in found.advice
    euclid = inspect(np.sqrt(D), "precomputed_dissimilarity", random_state=1)
    assert euclid.triangle_violations == 0.0


def test_label_signal_is_the_negative_share_of_the_quadratic_form() -> None:
    values = np.concatenate([np.linspace(1, 2, 25), -np.linspace(1, 2, 25)])
    K, _ = with_spectrum(values, RNG)
    y = RNG.standard_normal(50)
    eigenvalues, vectors = np.linalg.eigh(K)
    c = (vectors.T @ (y - y.mean())) ** 2 * np.abs(eigenvalues)
    found = inspect(K, y=y, random_state=0)
    # the rows are drawn in random order: the quadratic form does not see it
    assert found.label_signal == pytest.approx(c[eigenvalues < 0].sum() / c.sum(), rel=1e-9)


def test_labels_in_the_negative_part_are_told_from_those_in_the_positive() -> None:
    n = 60
    labels = np.repeat(["a", "b"], n // 2)
    u = np.where(labels == "a", 1.0, -1.0) / np.sqrt(n)
    noise = RNG.standard_normal((n, 5))
    K = noise @ noise.T / 10 - 40 * np.outer(u, u)
    K = 0.5 * (K + K.T)
    negative, positive = inspect(K, y=labels), inspect(-K, y=labels)
    assert negative.label_signal is not None
    assert positive.label_signal is not None
    assert negative.label_signal > 0.9 > 0.1 > positive.label_signal
    assert "would lose signal" in negative.advice
    assert "looks like noise" in positive.advice


def test_asymmetry_drift_and_duplicates() -> None:
    K = RNG.standard_normal((20, 20))
    found = inspect(K)
    assert found.asymmetry == pytest.approx(np.abs(K - K.T).max() / np.abs(K).max())
    assert "not symmetric" in found.advice
    calls = itertools.count()
    found = inspect(list("abcdefgh"), pairwise(lambda a, b: float(next(calls))))
    assert found.drift > 0
    assert "no result will repeat" in found.advice
    X = np.repeat(RNG.standard_normal((10, 2)), 2, axis=0)
    found = inspect(X, dissimilarity("cityblock"))
    assert found.duplicates == 10


def test_objects_that_differ_from_themselves() -> None:
    D = metric_breaker(8)
    shifted = D + 0.25 * D.max() * np.eye(8)
    found = inspect(shifted, "precomputed_dissimilarity")
    assert found.self_dissimilarity == pytest.approx(0.25)
    assert "differ from themselves" in found.advice
    clean = inspect(D, "precomputed_dissimilarity")
    assert clean.self_dissimilarity == 0.0
    assert clean.indefiniteness == pytest.approx(found.indefiniteness)
    apart = dissimilarity(pairwise(lambda a, b: 1.0 + abs(a - b)))
    assert inspect([0.0, 1.0, 3.0], apart).self_dissimilarity == pytest.approx(0.25)


def test_a_positive_definite_matrix_is_said_to_be_one() -> None:
    A = RNG.standard_normal((40, 3))
    found = inspect(A @ A.T)
    assert found.positive_definite
    assert found.signature == (3, 0, 37)
    assert found.effective_rank <= 3
    assert "positive semi-definite" in found.advice
    assert "positive definite" in str(found)


def test_objects_columns_and_many_objects() -> None:
    X, y = make_polygons(300, random_state=0)
    found = inspect(X, "modified_hausdorff", y=y, n_samples=80, random_state=0)
    assert (found.kind, found.n_objects, found.n_sampled) == ("dissimilarity", 300, 80)
    words = pd.Series(["ab", "abc", "b", "cab"] * 5)
    overlap = pairwise(lambda a, b: float(len(set(a) & set(b))))
    assert inspect(words, overlap).n_objects == 20
    V = RNG.standard_normal((50_000, 2))
    found = inspect(V, "delta_gauss", n_samples=200, random_state=0)
    assert found.indefiniteness[200] == pytest.approx(0.5, abs=1e-9)  # k(x, x) = 0
    assert found.n_landmarks is None or found.n_landmarks <= 100


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"y has 3 labels for 20 objects"):
        inspect(np.eye(20), y=[0, 1, 0])
    with pytest.raises(InvalidParameterError, match="n_samples"):
        inspect(np.eye(20), n_samples=1)
    with pytest.raises(ValueError, match="Negative values"):
        inspect(-np.ones((4, 4)) + np.eye(4), "precomputed_dissimilarity")
