"""KreinPCA: the eigendecomposition of the centred (approximate) matrix, and its extension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from kreinlearn import KreinNystroem, KreinPCA, Landmarks, dissimilarity
from tests import oracles

RNG = np.random.default_rng(8)
X, X_NEW = RNG.normal(size=(120, 3)), RNG.normal(size=(14, 3))
MANY = RNG.normal(size=(220, 3))


def k(A: Any, B: Any) -> Any:
    d2 = cdist(A, B, "sqeuclidean")
    return np.exp(-d2 / 6) - 0.8 * np.exp(-4 * d2 / 6)


def pca(n_components: int = 2, **params: Any) -> KreinPCA:
    return KreinPCA(n_components, **{"kernel": k, "random_state": 0, **params})


def axes_of(K: Any, K_new: Any, count: int) -> tuple[Any, Any, Any]:
    """Eigenvalues of J K J, coordinates on its axes, and those of new rows by similarity."""
    n = len(K)
    J = np.eye(n) - 1 / n
    D, U = np.linalg.eigh(J @ K @ J)
    order = np.argsort(-np.abs(D))[:count]
    D, U = D[order], U[:, order]
    cross = (K_new - K.mean(axis=0)) @ J
    return D, U * np.sqrt(np.abs(D)), cross @ U / np.sqrt(np.abs(D)) * np.sign(D)


def same_up_to_signs(Y: Any, expected: Any, atol: float) -> None:
    signs = np.sign((Y * expected).sum(axis=0))
    assert_allclose(Y * signs, expected, atol=atol)


@pytest.mark.parametrize("core", ["ls", "plain"])
def test_exact_mode_is_the_definition(core: str) -> None:
    model = pca(6, landmarks=Landmarks(None, core=core)).fit(X)
    D, Y, Y_new = axes_of(k(X, X), k(X_NEW, X), 6)
    assert (D < 0).any()
    assert_allclose(model.eigenvalues_, D, rtol=1e-9)
    assert_array_equal(model.signature_, np.sign(D))
    same_up_to_signs(model.transform(X), Y, 1e-8)
    same_up_to_signs(model.transform(X_NEW), Y_new, 1e-7)


@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
def test_with_landmarks_it_is_that_of_the_approximation(core: str) -> None:
    params = {"kernel": k, "landmarks": Landmarks(30, core=core), "random_state": 0}
    model, nystroem = KreinPCA(5, **params).fit(X), KreinNystroem(**params).fit(X)
    assert_array_equal(model.landmark_indices_, nystroem.landmark_indices_)
    D, Y, Y_new = axes_of(nystroem.approximate(X), nystroem.approximate(X_NEW, X), 5)
    assert_allclose(model.eigenvalues_, D, rtol=1e-7)
    same_up_to_signs(model.transform(X), Y, 1e-6)
    same_up_to_signs(model.transform(X_NEW), Y_new, 1e-6)


@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
def test_streamed_rows_give_the_same(core: str) -> None:
    """Where the rows are not all held the Gram matrix is centred instead of the features."""
    params = {"kernel": k, "landmarks": Landmarks(8, core=core, pool=40), "random_state": 0}
    model, nystroem = KreinPCA(3, **params).fit(MANY), KreinNystroem(**params).fit(MANY)
    assert_array_equal(model.landmark_indices_, nystroem.landmark_indices_)
    D, Y, Y_new = axes_of(nystroem.approximate(MANY), nystroem.approximate(X_NEW, MANY), 3)
    assert_allclose(model.eigenvalues_, D, rtol=1e-7)
    same_up_to_signs(model.transform(MANY), Y, 1e-6)
    same_up_to_signs(model.transform(X_NEW), Y_new, 1e-6)


def test_coordinates_are_centred_and_orthogonal() -> None:
    model = pca(4).fit(X)
    Y = model.transform(X)
    assert_allclose(Y.mean(axis=0), 0, atol=1e-12)
    assert_allclose(Y.T @ Y, np.diag(np.abs(model.eigenvalues_)), atol=1e-8)
    assert_allclose(model.fit_transform(X), Y, atol=1e-12)


def test_explained() -> None:
    model = pca(3, landmarks=None).fit(X)
    D = np.linalg.eigvalsh((np.eye(120) - 1 / 120) @ k(X, X) @ (np.eye(120) - 1 / 120))
    top = np.sort(np.abs(D))[::-1][:3]
    assert_allclose(model.explained_abs_ratio_, top / np.abs(D).sum(), rtol=1e-6)
    assert_allclose(model.explained_squared_ratio_, top**2 / (D**2).sum(), rtol=1e-6)
    assert model.explained_squared_ratio_.sum() <= 1


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_a_constant_added_to_the_kernel_changes_nothing(offset: float) -> None:
    """It is centred away, and its rounding makes no axes."""
    model = pca(2, landmarks=None).fit(X)
    shifted = pca(2, kernel=lambda A, B: k(A, B) + offset, landmarks=None).fit(X)
    same_up_to_signs(shifted.transform(X), model.transform(X), 1e-10 * offset)


def test_a_constant_kernel_has_no_axes() -> None:
    with pytest.warns(UserWarning, match="rank_ is 0"):
        model = pca(kernel=lambda A, B: np.full((len(A), len(B)), 3.7)).fit(X)
    assert model.transform(X).shape == (120, 0)
    assert model.explained_abs_ratio_.shape == (0,)


def test_euclidean_distances_give_the_points_back_and_place_new_ones() -> None:
    D = cdist(X, X)
    model = pca(3, kernel="precomputed_dissimilarity", landmarks=None).fit(D)
    assert_array_equal(model.signature_, [1, 1, 1])
    Y, Y_new = model.transform(D), model.transform(cdist(X_NEW, X))
    assert_allclose(cdist(Y, Y), D, atol=1e-7)
    assert_allclose(cdist(Y_new, Y), cdist(X_NEW, X), atol=1e-6)


@pytest.mark.parametrize("form", ["matrix", "function"])
def test_signed_distances_of_a_dissimilarity(form: str) -> None:
    """sum of signature * difference^2 over all axes is d^2, the negative axes included."""
    D = cdist(X, X, "chebyshev") ** 2
    kernel, objects = {
        "matrix": ("precomputed_dissimilarity", D),
        "function": (dissimilarity(lambda A, B: cdist(A, B, "chebyshev") ** 2), X),
    }[form]
    model = pca(119, kernel=kernel, landmarks=None).fit(objects)
    Y = model.transform(objects)
    squares = ((Y[:, None] - Y[None]) ** 2 * model.signature_).sum(axis=-1)
    assert_allclose(squares, D**2, atol=1e-7 * np.max(D**2))
    unsigned = ((Y[:, None] - Y[None]) ** 2).sum(axis=-1)
    assert np.abs(unsigned - D**2).max() > 0.1 * np.max(D**2)
    expected = np.linalg.eigvalsh(oracles.double_centred(D))
    expected = expected[np.argsort(-np.abs(expected))][: model.rank_]
    assert_allclose(model.eigenvalues_, expected, rtol=1e-5, atol=1e-8 * expected[0])


def test_landmarks_grow_with_the_axes_asked_for() -> None:
    assert pca(60).fit(X).n_landmarks_ == 120
    assert pca(10).fit(X).n_landmarks_ == 100


def test_names_of_axes() -> None:
    assert list(pca(2).fit(X).get_feature_names_out()) == ["kreinpca0", "kreinpca1"]
