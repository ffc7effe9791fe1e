"""Dissimilarities: squares, centred on a reference set, against the definitions in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kreinlearn import KreinNystroem, KreinPCA, Landmarks, dissimilarity, pairwise
from kreinlearn.kernels import SklearnMetric, double_centre, resolve
from kreinlearn.kernels.dissimilarity import Centring, check_dissimilarities, require_squares
from tests import oracles

RNG = np.random.default_rng(11)
X, X_NEW = RNG.normal(size=(60, 4)), RNG.normal(size=(9, 4))


def distances(A: Any, B: Any) -> Any:
    """Not Euclidean: the negative part of the spectrum is large."""
    gaps = np.abs(A[:, None] - B[None])
    return np.sqrt(gaps).sum(axis=-1) ** 2


def distance(a: Any, b: Any) -> float:
    return float(np.sqrt(np.abs(a - b)).sum() ** 2)


D, D_NEW = distances(X, X), distances(X_NEW, X)
FORMS = {
    "block": (dissimilarity(distances), X, X_NEW),
    "pairs": (dissimilarity(pairwise(distance)), list(X), list(X_NEW)),
    "matrix": (dissimilarity("precomputed"), D, D_NEW),
}


def centred_on(R: Any, D_xz: Any, D_xr: Any, D_zr: Any, D_rr: Any) -> Any:
    """-1/2 (d^2(x, z) - a(x) - a(z) + c), entry by entry."""
    K = np.empty_like(D_xz)
    c = np.mean([D_rr[r, s] ** 2 for r in range(len(R)) for s in range(len(R))])
    for i in range(len(K)):
        for j in range(K.shape[1]):
            a_x, a_z = np.mean(D_xr[i] ** 2), np.mean(D_zr[j] ** 2)
            K[i, j] = -0.5 * (D_xz[i, j] ** 2 - a_x - a_z + c)
    return K


# The formula


def test_double_centring() -> None:
    assert_allclose(double_centre(D), oracles.double_centred(D), atol=1e-12 * np.max(D**2))


def test_centring_on_a_subset_is_the_formula() -> None:
    R, Z = np.arange(7), np.arange(7, 20)
    D_xr, D_zr = D_NEW[:, R], D[np.ix_(Z, R)]
    expected = centred_on(R, D_NEW[:, Z], D_xr, D_zr, D[np.ix_(R, R)])
    centring = Centring.on(D[np.ix_(R, R)])
    columns = np.hstack([D_xr, D_NEW[:, Z]])
    a_x, a_z = centring.offsets(columns), centring.offsets(D_zr)
    assert_allclose(centring.similarity(D_NEW[:, Z], a_x, a_z), expected, rtol=1e-12)
    assert_allclose(
        centring.diagonal(a_z), np.diagonal(centring.similarity(D[np.ix_(Z, Z)], a_z, a_z))
    )


# Through fit and transform


@pytest.mark.parametrize("core", ["ls", "plain"])
@pytest.mark.parametrize("form", FORMS)
def test_all_objects_as_reference(form: str, core: str) -> None:
    """Exact mode: K~ = -1/2 J (D o D) J, whose null vector is one."""
    kernel, objects, _ = FORMS[form]
    model = KreinNystroem(kernel, landmarks=Landmarks(None, core=core)).fit(objects)
    expected = oracles.double_centred(D)
    assert_allclose(model.approximate(objects), expected, atol=1e-9 * np.abs(expected).max())
    assert model.rank_ <= 59
    assert (model.signature_ < 0).any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("landmarks", ["uniform", [5, 44, 7, 23, 10, 31, 2]])
def test_a_reference_subset(landmarks: Any, form: str) -> None:
    """All landmarks are the reference: plain Nystroem of the formula's matrices."""
    kernel, objects, new = FORMS[form]
    given = Landmarks(7, landmarks, core="plain")
    if not isinstance(landmarks, str):
        given = Landmarks(landmarks, core="plain")
    model = KreinNystroem(kernel, landmarks=given, random_state=0)
    Z = model.fit(objects).landmark_indices_
    D_zz = D[np.ix_(Z, Z)]
    K_ZZ = centred_on(Z, D_zz, D_zz, D_zz, D_zz)
    K_xZ = centred_on(Z, D_NEW[:, Z], D_NEW[:, Z], D_zz, D_zz)
    K_XZ = centred_on(Z, D[:, Z], D[:, Z], D_zz, D_zz)
    expected = K_xZ @ np.linalg.pinv(K_ZZ, rcond=1e-10, hermitian=True) @ K_XZ.T
    assert model.rank_ == 6  # one is the null vector of a centred matrix
    assert_allclose(model.approximate(new, objects), expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("landmarks", ["leverage", "kmeans++"])
def test_a_reference_that_is_not_among_the_landmarks(landmarks: str, form: str) -> None:
    """The paper's schemes drop the sketch as landmarks; it stays the reference set."""
    kernel, objects, new = FORMS[form]
    model = KreinNystroem(
        kernel, landmarks=Landmarks(9, landmarks, core="truncated"), rank=6, random_state=0
    ).fit(objects)
    Z = model.landmark_indices_
    raw, transform = model._columns.raw(new), model._columns.transform
    assert transform.n_reference == 6
    R = [int(np.argmin(np.abs(D_NEW - column[:, None]).sum(axis=0))) for column in raw.T][:6]
    assert_allclose(raw[:, :6], D_NEW[:, R], rtol=1e-12)
    assert set(R) - set(Z)
    D_zr, D_rr = D[np.ix_(Z, R)], D[np.ix_(R, R)]
    K_xZ = centred_on(R, D_NEW[:, Z], D_NEW[:, R], D_zr, D_rr)
    assert_allclose(model._columns(new), K_xZ, rtol=1e-10, atol=1e-9)
    assert_allclose(model.transform(new), K_xZ @ model._map.W, atol=1e-9)


def test_forms_agree() -> None:
    params = {"landmarks": Landmarks(12, "greedy_kmeans++"), "random_state": 1}
    models = [KreinNystroem(kernel, **params).fit(A) for kernel, A, _ in FORMS.values()]
    features = [
        model.transform(new) for model, (_, _, new) in zip(models, FORMS.values(), strict=True)
    ]
    for model, Phi in zip(models, features, strict=True):
        assert_array_equal(model.landmark_indices_, models[0].landmark_indices_)
        assert_allclose(Phi, features[0], atol=1e-8 * np.abs(features[0]).max())


@pytest.mark.parametrize("form", FORMS)
def test_error_estimate_of_a_dissimilarity(form: str) -> None:
    """On a sample of everything the estimate is the error itself, on the centred matrix."""
    kernel, objects, _ = FORMS[form]
    model = KreinNystroem(kernel, landmarks=Landmarks(12, "uniform"), random_state=2).fit(objects)
    Z = model.landmark_indices_
    D_zz = D[np.ix_(Z, Z)]
    K = centred_on(Z, D, D[:, Z], D[:, Z], D_zz)
    error = np.linalg.norm(K - model.approximate(objects)) / np.linalg.norm(K)
    estimate = model.estimate_error(objects, n_rows=60)
    assert estimate.relative == pytest.approx(error, rel=1e-8)
    assert error > 1e-3


def test_pca_of_a_dissimilarity_gives_the_dissimilarities_back() -> None:
    model = KreinPCA(59, kernel=dissimilarity(distances), landmarks=None).fit(X)
    Y = model.transform(X)
    squares = (model.signature_ * (Y[:, None] - Y[None]) ** 2).sum(axis=-1)
    assert_allclose(squares, D**2, atol=1e-7 * np.max(D**2))


# Names and refusals


def test_what_dissimilarity_takes() -> None:
    assert isinstance(dissimilarity("euclidean"), SklearnMetric)
    assert dissimilarity("hausdorff").is_dissimilarity
    assert dissimilarity(resolve("euclidean")).is_dissimilarity
    assert dissimilarity(pairwise(distance)).is_dissimilarity
    assert not pairwise(distance).is_dissimilarity
    with pytest.raises(ValueError, match="is a similarity"):
        dissimilarity("gaussian")


def test_checks_of_dissimilarities() -> None:
    check_dissimilarities(D, np.diagonal(D))
    check_dissimilarities(D, np.full(60, 0.9e-12 * D.max()))
    with pytest.raises(ValueError, match="self-dissimilarity of"):
        check_dissimilarities(D, np.full(60, 1.1e-12 * D.max()))
    with pytest.raises(ValueError, match="Negative values in data passed to X"):
        check_dissimilarities(np.array([[0.0, -1e-300]]))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_dissimilarities_whose_squares_are_lost_are_refused(scale: float) -> None:
    require_squares(D * scale**0.9)
    with pytest.raises(ValueError, match="out of floating range"):
        require_squares(D * scale)
    for kernel in ("precomputed_dissimilarity", dissimilarity("precomputed")):
        with pytest.raises(ValueError, match="out of floating range"):
            KreinNystroem(kernel).fit(D * scale)
    require_squares(np.zeros((2, 2)))
