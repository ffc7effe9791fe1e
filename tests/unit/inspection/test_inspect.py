"""How indefinite a similarity is: the public form, by another route, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import KreinNystroem, Landmarks, dissimilarity, indefiniteness, pairwise
from kreinlearn.inspection import similarity_matrix
from kreinlearn.kernels import Precomputed
from tests import oracles
from tests.cases import with_spectrum

Array = np.ndarray[Any, np.dtype[Any]]


def indefinite(n: int) -> tuple[Array, Array]:
    return with_spectrum(np.linspace(-1, 2, n), np.random.default_rng(n))


def test_indefiniteness_of_a_sample_is_that_of_a_principal_submatrix() -> None:
    K, _ = indefinite(30)
    chosen = np.sort(np.random.default_rng(5).choice(30, 12, replace=False))
    expected = oracles.indefiniteness_by_trace(K[np.ix_(chosen, chosen)])
    assert indefiniteness(K, n_samples=12, random_state=5) == pytest.approx(expected, rel=1e-12)
    generator = np.random.default_rng(5)
    assert indefiniteness(K, n_samples=12, random_state=generator) == pytest.approx(
        expected, rel=1e-12
    )
    assert indefiniteness(K, n_samples=30) == indefiniteness(K, n_samples=99) == indefiniteness(K)


def test_indefiniteness_is_exact_up_to_a_limit_and_sampled_above(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(similarity_matrix, "EXACT_UP_TO", 20)
    monkeypatch.setattr(similarity_matrix, "SAMPLE_SIZE", 8)
    at_limit, above = indefinite(20)[0], indefinite(21)[0]
    exact = oracles.indefiniteness_by_trace(at_limit)
    assert indefiniteness(at_limit, random_state=2) == pytest.approx(exact, rel=1e-12)
    assert indefiniteness(above, random_state=2) == indefiniteness(
        above, n_samples=8, random_state=2
    )
    assert indefiniteness(above, random_state=2) != indefiniteness(above, random_state=3)


def points(n: int = 25) -> Array:
    return np.random.default_rng(7).standard_normal((n, 3))


def cityblock(A: Array, B: Array) -> Array:
    return np.asarray(np.abs(A[:, None] - B[None]).sum(axis=2))


def tanh(A: Array, B: Array) -> Array:
    return np.asarray(np.tanh(A @ B.T - 1))


def approximately(expected: float) -> Any:
    return pytest.approx(expected, rel=1e-11)


def test_indefiniteness_of_objects_under_a_kernel() -> None:
    X = points()
    expected = oracles.indefiniteness_by_trace(tanh(X, X))
    assert 0.1 < expected < 0.9
    assert indefiniteness(X, tanh) == approximately(expected)
    chosen = np.sort(np.random.default_rng(5).choice(25, 12, replace=False))
    expected = oracles.indefiniteness_by_trace(tanh(X[chosen], X[chosen]))
    assert indefiniteness(X, tanh, n_samples=12, random_state=5) == approximately(expected)


def test_indefiniteness_under_a_named_kernel_without_a_diagonal_is_one_half() -> None:
    assert indefiniteness(points(), "delta_gauss") == approximately(0.5)  # k(x, x) = 0: trace 0
    assert indefiniteness(points(), "rbf") == 0.0


def test_indefiniteness_of_single_objects() -> None:
    words = ["a", "ab", "abc", "bcd", "cd", "d", "ad"]
    common = np.array([[len(set(v) & set(w)) - 1.0 for w in words] for v in words])
    f = pairwise(lambda v, w: len(set(v) & set(w)) - 1.0)
    assert indefiniteness(words, f) == approximately(oracles.indefiniteness_by_trace(common))


@pytest.mark.parametrize("scale", [1.0, 4.0**-200, 4.0**200])
def test_indefiniteness_of_a_dissimilarity_matrix(scale: float) -> None:
    d = cityblock(points(), points())
    expected = oracles.indefiniteness_by_trace(oracles.double_centred(d))
    assert 0.01 < expected < 0.5
    for kernel in ("precomputed_dissimilarity", Precomputed(is_dissimilarity=True)):
        assert indefiniteness(scale * d, kernel) == approximately(expected)
    chosen = np.sort(np.random.default_rng(5).choice(25, 12, replace=False))
    of_sample = oracles.double_centred(d[np.ix_(chosen, chosen)])
    found = indefiniteness(scale * d, "precomputed_dissimilarity", n_samples=12, random_state=5)
    assert found == approximately(oracles.indefiniteness_by_trace(of_sample))


def test_indefiniteness_of_objects_under_a_dissimilarity() -> None:
    X = points()
    expected = oracles.indefiniteness_by_trace(oracles.double_centred(cityblock(X, X)))
    assert indefiniteness(X, "cityblock") == approximately(expected)
    assert indefiniteness(X, dissimilarity(cityblock)) == approximately(expected)
    euclidean = np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=2))
    assert indefiniteness(euclidean, "precomputed_dissimilarity") == 0.0


def test_indefiniteness_takes_frames_and_lists() -> None:
    X = points()
    expected = indefiniteness(X, tanh)
    assert indefiniteness(pd.DataFrame(X), tanh) == expected
    assert indefiniteness(pd.DataFrame(tanh(X, X))) == expected
    assert indefiniteness(tanh(X, X).tolist()) == expected


def test_parameters_of_a_named_kernel() -> None:
    X = points()
    expected = oracles.indefiniteness_by_trace(np.tanh(0.5 * X @ X.T - 2))
    found = indefiniteness(X, "sigmoid", kernel_params={"gain": 0.5, "bias": -2.0})
    assert found == approximately(expected)
    with pytest.raises(InvalidParameterError, match="kernel_params"):
        indefiniteness(X, "sigmoid", kernel_params=3)


# What it refuses, in the words of the estimators

K = indefinite(30)[0]
D = cityblock(points(30), points(30))
BAD = {
    "10 x 30": (K[:10], "precomputed"),
    "30 x 10": (K[:, :10], "precomputed"),
    "condensed": (D[np.triu_indices(30, 1)], "precomputed"),
    "sparse": (sp.csr_array(K), "precomputed"),
    "complex": (K + 0j, "precomputed"),
    "text": (K.astype(str).astype(object) + "x", "precomputed"),
    "NaN": (np.where(np.eye(30) > 0, np.nan, K), "precomputed"),
    "infinity": (np.where(np.eye(30) > 0, np.inf, K), "precomputed"),
    "empty": (np.empty((0, 0)), "precomputed"),
    "no objects": ([], pairwise(min)),
    "negative": (-D, "precomputed_dissimilarity"),
    "self": (D + 1, "precomputed_dissimilarity"),
    "too large": (D * 4.0**300, "precomputed_dissimilarity"),
    "negative from a callable": (points(), dissimilarity(lambda A, B: -cityblock(A, B))),
    "self from a callable": (points(), dissimilarity(lambda A, B: 1 + cityblock(A, B))),
    "NaN from a callable": (points(), lambda A, B: np.full((len(A), len(B)), np.nan)),
    "wrong shape from a callable": (points(), lambda A, B: np.ones(3)),
    "NaN in vectors": (np.full((4, 3), np.nan), "delta_gauss"),
    "unknown name": (points(), "no such kernel"),
}


def said(act: Callable[[], Any]) -> tuple[type, str]:
    with pytest.raises((TypeError, ValueError)) as caught:
        act()
    return caught.type, str(caught.value).replace("KreinNystroem", "")


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_as_by_an_estimator(name: str) -> None:
    X, kernel = BAD[name]
    model = KreinNystroem(kernel, landmarks=Landmarks(None, "uniform"), random_state=0)
    kind, text = said(lambda: indefiniteness(X, kernel, random_state=0))
    assert (kind, text) == said(lambda: model.fit(X))
    assert len(text) > 20


def test_condensed_distances() -> None:
    found = indefiniteness(D[np.triu_indices(30, 1)], "precomputed_dissimilarity")
    assert found == approximately(oracles.indefiniteness_by_trace(oracles.double_centred(D)))


def test_asymmetric_matrix_is_averaged_with_a_warning() -> None:
    A = np.triu(K)
    with pytest.warns(UserWarning, match="the matrix is asymmetric"):
        found = indefiniteness(A)
    assert found == approximately(oracles.indefiniteness_by_trace((A + A.T) / 2))


def test_asymmetric_callables_warn() -> None:
    X = points()
    for kernel in (lambda A, B: A @ B.T + A[:, :1], pairwise(lambda a, b: float(a @ b + a[0]))):
        with pytest.warns(UserWarning, match="the kernel is asymmetric.*made symmetric"):
            indefiniteness(X, kernel)


def test_distances_as_a_similarity_warn() -> None:
    with pytest.warns(UserWarning, match='kernel="precomputed_dissimilarity"'):
        assert indefiniteness(D) == approximately(0.5)
    with pytest.warns(UserWarning, match=r"kernel=dissimilarity\(...\)"):
        indefiniteness(points(), cityblock)


@pytest.mark.parametrize("n_samples", [0, -3, 2.5, "a"])
def test_number_of_samples(n_samples: Any) -> None:
    with pytest.raises(InvalidParameterError, match="n_samples"):
        indefiniteness(K, n_samples=n_samples)


def test_memory_is_looked_at_before_any_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def kernel(A: Array, B: Array) -> Array:
        calls.append(len(A))
        return tanh(A, B)

    monkeypatch.setattr(similarity_matrix, "free_memory", lambda: 4 * 8 * 25**2 - 1)
    with pytest.raises(MemoryError, match=r"25 objects needs 20 kB.*smaller n_samples"):
        indefiniteness(points(), kernel)
    assert not calls
    indefiniteness(points(), kernel, n_samples=24)
    assert calls
