"""A matrix as a kernel, in every form in which it can be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone

from kreinlearn import (
    KreinClassifier,
    KreinNystroem,
    KreinPCA,
    KreinRidge,
    KreinSVC,
    Landmarks,
    SpectrumSVC,
    dissimilarity,
)
from kreinlearn.kernels import Precomputed, PrecomputedDissimilarity, resolve
from tests import oracles

RNG = np.random.default_rng(7)
X, X_NEW = RNG.normal(size=(70, 3)), RNG.normal(size=(11, 3))
CORES = ["ls", "truncated", "plain"]


def similarity(A: Any, B: Any) -> Any:
    d2 = cdist(A, B, "sqeuclidean")
    return np.exp(-d2 / 4) - 0.7 * np.exp(-d2)


K, K_NEW = similarity(X, X), similarity(X_NEW, X)
D, D_NEW = cdist(X, X, "minkowski", p=0.5), cdist(X_NEW, X, "minkowski", p=0.5)
np.fill_diagonal(D, 0)


def nystroem(kernel: Any, **params: Any) -> KreinNystroem:
    return KreinNystroem(kernel, **{"landmarks": 15, "random_state": 3, **params})


# The seam


def test_columns_are_picked() -> None:
    kernel = resolve("precomputed").fit(K, RNG)
    assert_array_equal(kernel.columns([4, 2])(K_NEW), K_NEW[:, [4, 2]])
    out = np.empty((20, 2))
    assert kernel.columns([4, 2])(K_NEW, out).base is out
    assert_array_equal(out[:11], K_NEW[:, [4, 2]])
    assert_array_equal(kernel.diagonal(np.array([3, 5])), K[[3, 5], [3, 5]])


def test_distances_are_double_centred() -> None:
    kernel = resolve("precomputed_dissimilarity").fit(D, RNG)
    everything = np.arange(70)
    assert_allclose(kernel.columns(everything)(D), oracles.double_centred(D), atol=1e-12)
    assert_allclose(kernel.diagonal(everything), np.diagonal(oracles.double_centred(D)))


def test_a_matrix_has_no_parameters() -> None:
    with pytest.raises(TypeError, match="no parameters"):
        resolve("precomputed", {"width": 1.0})
    assert resolve(Precomputed(is_dissimilarity=True)).of_dissimilarities
    assert clone(PrecomputedDissimilarity()).of_dissimilarities
    assert not Precomputed().of_dissimilarities


# Through fit and transform


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "kmeans++", "greedy_kmeans++"])
def test_a_matrix_gives_what_its_function_gives(landmarks: str, core: str) -> None:
    given = nystroem("precomputed", landmarks=Landmarks(scheme=landmarks, core=core)).fit(K)
    called = nystroem(similarity, landmarks=Landmarks(scheme=landmarks, core=core)).fit(X)
    assert_array_equal(given.landmark_indices_, called.landmark_indices_)
    assert_array_equal(given.signature_, called.signature_)
    assert_allclose(given.transform(K_NEW), called.transform(X_NEW), atol=1e-12)
    assert_allclose(given.approximate(K, K_NEW), called.approximate(X, X_NEW), atol=1e-12)


@pytest.mark.parametrize("core", CORES)
def test_pca_of_a_matrix_is_that_of_its_function(core: str) -> None:
    params = {"landmarks": Landmarks(15, "greedy_kmeans++", core=core), "random_state": 3}
    given = KreinPCA(3, kernel="precomputed", **params).fit(K)
    called = KreinPCA(3, kernel=similarity, **params).fit(X)
    assert_allclose(given.transform(K_NEW), called.transform(X_NEW), atol=1e-11)


def test_distances_centred_on_all_are_those_of_the_function_in_exact_mode() -> None:
    """Reference set = all training objects: both are -1/2 J d^2 J, extended in the same way."""
    metric = dissimilarity("minkowski", p=0.5)
    given = nystroem("precomputed_dissimilarity", landmarks=None).fit(D)
    called = nystroem(metric, landmarks=None).fit(X)
    assert_allclose(given.approximate(D), oracles.double_centred(D), atol=1e-9)
    assert_allclose(given.approximate(D_NEW, D), called.approximate(X_NEW, X), atol=1e-9)


@pytest.mark.parametrize("core", CORES)
def test_a_condensed_vector_is_its_square(core: str) -> None:
    vector = pdist(X, "minkowski", p=0.5)
    for X_fit in (vector, vector.tolist(), pd.Series(vector)):
        one = nystroem("precomputed_dissimilarity", landmarks=Landmarks(15, core=core)).fit(X_fit)
        other = nystroem("precomputed_dissimilarity", landmarks=Landmarks(15, core=core)).fit(D)
        assert one.n_features_in_ == 70
        assert_allclose(one.transform(D_NEW), other.transform(D_NEW), atol=1e-9)


@pytest.mark.parametrize("length", [1, 3, 6, 10])
def test_lengths_of_condensed_vectors(length: int) -> None:
    model = KreinNystroem("precomputed_dissimilarity").fit(np.ones(length))
    assert model.n_features_in_ * (model.n_features_in_ - 1) / 2 == length


@pytest.mark.parametrize("length", [2, 4, 5, 7])
def test_other_lengths_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match=rf"n \(n - 1\) / 2 distances.*{length} is no such"):
        KreinNystroem("precomputed_dissimilarity").fit(np.ones(length))


def test_a_condensed_similarity_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected 2D array.*no self-similarities"):
        KreinNystroem("precomputed").fit(pdist(X))


@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_dissimilarity"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(kernel: str, frame: Any) -> None:
    A, A_new = (K, K_NEW) if kernel == "precomputed" else (D, D_NEW)
    names = [f"object {i}" for i in range(70)]
    one = nystroem(kernel).fit(frame(A, **_columns(frame, names)))
    two = nystroem(kernel).fit(A)
    assert list(one.feature_names_in_) == names
    Phi = one.transform(frame(A_new, **_columns(frame, names)))
    assert_allclose(Phi, two.transform(A_new), atol=1e-10)  # frames are in another memory order


def _columns(frame: Any, names: list[str]) -> dict[str, Any]:
    return {"columns": names} if frame is pd.DataFrame else {"schema": names}


# Landmark columns only


@pytest.mark.parametrize("kernel", ["precomputed", dissimilarity("precomputed")])
@pytest.mark.parametrize("core", CORES)
def test_landmark_columns_at_transform(kernel: Any, core: str) -> None:
    A, A_new = (K, K_NEW) if kernel == "precomputed" else (D, D_NEW)
    model = nystroem(kernel, landmarks=Landmarks(15, core=core)).fit(A)
    Z = model.landmark_indices_
    assert model.n_features_in_ == 70
    assert_allclose(model.transform(A_new[:, Z]), model.transform(A_new), atol=1e-12)
    for wrong in (14, 16, 69):
        with pytest.raises(ValueError, match=rf"X has {wrong} features, but .* is expecting 70"):
            model.transform(A_new[:, :wrong])


@pytest.mark.parametrize("scheme", ["uniform", "leverage"])
def test_distances_that_are_centred_on_other_objects_need_all_columns(scheme: str) -> None:
    """On all objects by name; of dissimilarities, on a sketch that is not among the landmarks."""
    other = nystroem(dissimilarity("precomputed"), landmarks=Landmarks(15, "leverage"), rank=9)
    for model in (nystroem("precomputed_dissimilarity", landmarks=Landmarks(15, scheme)), other):
        Z = model.fit(D).landmark_indices_
        with pytest.raises(ValueError, match=r"X has 15 features, but .* is expecting 70"):
            model.transform(D_NEW[:, Z])


def test_names_of_landmark_columns() -> None:
    names = np.array([f"object {i}" for i in range(70)])
    order = np.random.default_rng(0).permutation(70)
    frame, new = pd.DataFrame(K, columns=names), pd.DataFrame(K_NEW, columns=names)
    permuted = nystroem("precomputed", landmarks=Landmarks(order, core="plain")).fit(frame)
    assert list(permuted.feature_names_in_) == list(names)
    some = order[:9]
    block = nystroem("precomputed", landmarks=Landmarks(some, core="plain"))
    block.fit(frame[names[some]])
    assert list(block.feature_names_in_) == list(names[some])
    model = nystroem("precomputed").fit(frame)
    own = names[model.landmark_indices_]
    assert list(model.feature_names_in_) == list(names)
    assert_allclose(model.transform(new[own]), model.transform(new), atol=1e-12)
    with pytest.raises(ValueError, match="The feature names should match"):
        model.transform(new[own[::-1]])


@pytest.mark.parametrize("core", ["plain", "truncated"])
@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_dissimilarity"])
def test_fit_on_landmark_columns(kernel: str, core: str) -> None:
    """An n x m block and the numbers of its columns give what the whole matrix gives."""
    A, A_new = (K, K_NEW) if kernel == "precomputed" else (D, D_NEW)
    Z = np.array([40, 3, 17, 60, 8, 9, 22, 31])
    params = {"landmarks": Landmarks(Z, core=core)}
    block = nystroem(kernel, **params).fit(A[:, Z])
    on_landmarks = "precomputed" if kernel == "precomputed" else dissimilarity("precomputed")
    square = nystroem(on_landmarks, **params).fit(A)
    assert_array_equal(block.landmark_indices_, Z)
    assert_allclose(block.transform(A_new[:, Z]), square.transform(A_new), atol=1e-12)
    assert_allclose(block.eigenvalues_, square.eigenvalues_, rtol=1e-9)
    if kernel == "precomputed" and core == "plain":
        exact = A_new[:, Z] @ np.linalg.solve(A[np.ix_(Z, Z)], A[Z])
        assert_allclose(block.approximate(A_new[:, Z], A[:, Z]), exact, atol=1e-9)


def test_what_landmark_columns_cannot_do() -> None:
    Z = [4, 5, 6]
    plain = Landmarks(Z, core="plain")
    message = r'core="ls", tol and rank="auto" need pairs outside the landmark columns'
    for landmarks, more in ((Z, {}), (plain, {"tol": 0.1}), (plain, {"rank": "auto"})):
        with pytest.raises(ValueError, match=message):
            KreinNystroem("precomputed", landmarks=landmarks, **more).fit(K[:, Z])
    for landmarks in ("uniform", 3, Landmarks([1, 2], core="plain"), None):
        with pytest.raises(ValueError, match=r"70x3 matrix\. To fit on landmark columns pass lan"):
            KreinNystroem("precomputed", landmarks=landmarks).fit(K[:, Z])
    with pytest.raises(ValueError, match="landmarks are row numbers or a scheme"):
        nystroem("precomputed", landmarks=K[:4]).fit(K)


def test_asymmetry_among_landmark_columns_is_noticed() -> None:
    Z, skew = [4, 5, 6], K.copy()
    skew[4, 5] += 0.1
    model = KreinNystroem("precomputed", landmarks=Landmarks(Z, core="plain"))
    with pytest.warns(UserWarning, match="asymmetric.* 0.1; it is averaged"):
        model.fit(skew[:, Z])
    average = skew[:, Z].copy()
    average[Z] = (average[Z] + average[Z].T) / 2
    assert_allclose(model.eigenvalues_, clone(model).fit(average).eigenvalues_, rtol=1e-12)


def test_float32_matrices_are_read_in_double() -> None:
    for kernel, A, A_new in (
        ("precomputed", K, K_NEW),
        ("precomputed_dissimilarity", D, D_NEW),
    ):
        few, A = Landmarks(15, core="truncated"), A.astype(np.float32)
        single = nystroem(kernel, landmarks=few).fit(A)
        double = nystroem(kernel, landmarks=few).fit(A.astype(np.float64))
        Phi = single.transform(A_new.astype(np.float32))
        assert Phi.dtype == np.float64
        expected = double.transform(A_new.astype(np.float32).astype(np.float64))
        assert_allclose(Phi, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_dissimilarity"])
@pytest.mark.parametrize(
    "estimator", [KreinNystroem, KreinPCA, KreinRidge, KreinClassifier, KreinSVC, SpectrumSVC]
)
def test_the_matrix_that_is_given_stays_as_it_was(estimator: Any, kernel: str) -> None:
    """All objects are landmarks, so that the matrix is not copied."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    D = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    given = np.exp(-D) if kernel == "precomputed" else D
    before, y = given.copy(), (X[:, 0] > 0).astype(int)
    model = estimator(kernel=kernel, random_state=0).fit(given, y)
    if hasattr(model, "predict"):
        model.predict(given)
    np.testing.assert_array_equal(given, before)
    assert given.flags.writeable
