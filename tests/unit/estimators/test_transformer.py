"""KreinNystroem: what it finds, what it gives, and how landmarks and data may be passed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from kreinlearn import KreinNystroem, Landmarks, dissimilarity, pairwise
from kreinlearn.kernels import DeltaGauss, Gaussian
from tests import oracles

RNG = np.random.default_rng(3)
X, X_NEW = RNG.normal(size=(150, 3)), RNG.normal(size=(17, 3))
OUTSIDE = RNG.normal(size=(12, 3))
KERNEL = DeltaGauss(6.0)


def k(A: Any, B: Any) -> Any:
    d2 = cdist(A, B, "sqeuclidean")
    return np.exp(-d2 / 6) - np.exp(-4 * d2 / 6)


def nystroem(kernel: Any = KERNEL, **params: Any) -> KreinNystroem:
    return KreinNystroem(kernel, **{"random_state": 0, **params})


def relative(A: Any, B: Any) -> float:
    return float(np.linalg.norm(A - B) / np.linalg.norm(B))


# What it finds


def test_attributes() -> None:
    model = nystroem(landmarks=20, rank=9).fit(X)
    assert model.rank_ == len(model.signature_) == len(model.eigenvalues_) == 9
    assert model.n_landmarks_ == len(model.landmark_indices_) == 20
    assert len(set(model.landmark_indices_)) == 20
    assert_array_equal(model.landmarks_, X[model.landmark_indices_])
    assert model.n_features_in_ == 3
    assert model.kernel_ is not KERNEL
    assert set(model.signature_) == {-1, 1}
    assert_array_equal(np.sign(model.eigenvalues_), model.signature_)
    assert (np.diff(np.abs(model.eigenvalues_)) <= 0).all()
    assert not hasattr(model, "error_")


@pytest.mark.parametrize(
    ("given", "rank", "count"),
    [
        *(("auto", None, 100), ("auto", 20, 100), ("auto", 60, 120), ("auto", 90, 150)),
        *((0.1, None, 15), (1.0, None, 150), (0.001, None, 1), (1, None, 1), (7, None, 7)),
        (None, 5, 150),
    ],
)
def test_number_of_landmarks(given: Any, rank: Any, count: int) -> None:
    assert nystroem(Gaussian(1.0), landmarks=given, rank=rank).fit(X).n_landmarks_ == count


def test_the_features_give_the_approximation_with_their_signature() -> None:
    model = nystroem(landmarks=40).fit(X)
    Phi, Psi = model.transform(X), model.transform(X_NEW)
    K = (Phi * model.signature_) @ Phi.T
    assert_allclose(model.approximate(X), K, atol=1e-13)
    assert_allclose(model.approximate(X_NEW, X), (Psi * model.signature_) @ Phi.T, atol=1e-13)
    assert relative(K, k(X, X)) < 0.1
    assert relative(Phi @ Phi.T, k(X, X)) > 0.4  # without the signature it is |K|


@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
def test_eigenvectors(core: str) -> None:
    model = nystroem(landmarks=Landmarks(30, core=core)).fit(X)
    U = model.eigenvectors(X)
    assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-7)
    assert_allclose((U * model.eigenvalues_) @ U.T, model.approximate(X), atol=1e-8)
    extended = model.approximate(X_NEW, X) @ U / model.eigenvalues_
    keep = np.abs(model.eigenvalues_) > 1e-3 * np.abs(model.eigenvalues_).max()
    assert_allclose(model.eigenvectors(X_NEW)[:, keep], extended[:, keep], atol=1e-6)


# Landmarks


FORMS = {"array": np.asarray, "list": np.ndarray.tolist, "pandas": pd.DataFrame,
         "polars": pl.DataFrame, "sparse": sp.csr_array}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:X has feature names")  # polars always has some
def test_landmarks_from_outside(form: str) -> None:
    """The plain core is K_xZ K_ZZ^-1 K_ZX for any Z at all."""
    model = nystroem(landmarks=Landmarks(FORMS[form](OUTSIDE), core="plain")).fit(X)
    assert model.landmark_indices_ is None
    assert model.n_landmarks_ == 12
    Z = model.landmarks_.toarray() if form == "sparse" else model.landmarks_
    assert_array_equal(Z, OUTSIDE)
    expected = k(X_NEW, OUTSIDE) @ np.linalg.solve(k(OUTSIDE, OUTSIDE), k(OUTSIDE, X))
    assert relative(model.approximate(X_NEW, X), expected) < 1e-8


@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
def test_objects_as_landmarks_from_outside(core: str) -> None:
    def f(a: Any, b: Any) -> float:
        return float(k(a[None], b[None])[0, 0])

    named = nystroem(landmarks=Landmarks(OUTSIDE, core=core)).fit(X)
    called = nystroem(pairwise(f), landmarks=Landmarks([*OUTSIDE], core=core))
    with pytest.warns(UserWarning, match="zero on the diagonal"):
        called.fit([*X])
    assert isinstance(called.landmarks_, list)
    assert relative(called.approximate([*X_NEW]), named.approximate(X_NEW)) < 1e-9


def test_a_dissimilarity_is_centred_on_landmarks_from_outside() -> None:
    model = nystroem(dissimilarity("cityblock"), landmarks=Landmarks(OUTSIDE, core="plain")).fit(X)
    d2 = cdist(X_NEW, OUTSIDE, "cityblock") ** 2
    d2_zz = cdist(OUTSIDE, OUTSIDE, "cityblock") ** 2
    K_xZ = -0.5 * (d2 - d2.mean(1)[:, None] - d2_zz.mean(1) + d2_zz.mean())
    K_ZZ = oracles.double_centred(np.sqrt(d2_zz))
    expected = K_xZ @ np.linalg.pinv(K_ZZ, rcond=1e-10, hermitian=True) @ K_xZ.T
    assert relative(model.approximate(X_NEW), expected) < 1e-8


def test_landmarks_by_row_number() -> None:
    rows = [9, 140, 3, 77]
    for given in (rows, tuple(rows), np.array(rows), np.array(rows, dtype=np.uint8)):
        model = nystroem(landmarks=Landmarks(given, core="plain")).fit(X)
        assert_array_equal(model.landmark_indices_, rows)
        Z = X[rows]
        expected = k(X_NEW, Z) @ np.linalg.solve(k(Z, Z), k(Z, X))
        assert relative(model.approximate(X_NEW, X), expected) < 1e-8


@pytest.mark.parametrize("rows", [[3, 3], [-1, 2], [150], [0, 1, 2, 1000], []])
def test_row_numbers_that_are_none(rows: list[int]) -> None:
    with pytest.raises(ValueError, match=r"landmarks must be distinct row numbers in 0\.\.149"):
        nystroem(landmarks=rows).fit(X)


@pytest.mark.parametrize("landmarks", ["medoids", "medoids+greedy"])
def test_schemes_for_vectors_only(landmarks: str) -> None:
    for kernel, objects in (
        ("precomputed", k(X, X) + np.eye(150)),
        (pairwise(np.dot), [*X]),
        ("gaussian", sp.csr_array(X)),
    ):
        with pytest.raises(ValueError, match=f"landmarks='{landmarks}' needs dense vectors".replace(
            "+", r"\+"
        )):  # fmt: skip
            nystroem(kernel, landmarks=landmarks).fit(objects)


def test_routes_of_the_other_cores() -> None:
    with pytest.raises(ValueError, match='method="svd" is a route of the cores "plain" and'):
        nystroem(method="svd").fit(X)
    one, two, three = (
        nystroem(method=method, landmarks=Landmarks(15, core="plain")).fit(X).approximate(X)
        for method in ("gram", "svd", "sgt")
    )
    assert relative(two, one) < 1e-8
    assert relative(three, one) < 1e-6


# How good it is


def test_error_estimate_on_everything_is_the_error() -> None:
    model = nystroem(landmarks=40, rank=10).fit(X)
    error = relative(model.approximate(X), k(X, X))
    estimate = model.estimate_error(X, n_rows=150)
    assert estimate.relative == pytest.approx(error, rel=1e-9)
    assert estimate.standard_error == 0
    assert estimate.n_rows == 150
    assert error > 0.01


def test_error_estimate_from_a_sample_is_about_right() -> None:
    """Its standard error covers the truth over many samples, and is not idle."""
    model = nystroem(landmarks=40, rank=10).fit(X)
    error = relative(model.approximate(X), k(X, X))
    estimates = [model.estimate_error(X, n_rows=60, random_state=i) for i in range(40)]
    scores = [(e.relative - error) / e.standard_error for e in estimates]
    assert abs(np.mean(scores)) < 0.6
    assert 0.4 < np.std(scores) < 1.8


def test_error_estimate_needs_a_pair() -> None:
    model = nystroem(landmarks=10).fit(X)
    assert model.estimate_error(X, n_rows=2).n_rows == 2
    for n_rows in (1, 0, -3):
        with pytest.raises(ValueError, match=rf"n_rows.*range \[2, inf\). Got {n_rows}"):
            model.estimate_error(X, n_rows=n_rows)


@pytest.mark.parametrize("tol", [0.3, 0.05])
def test_landmarks_grow_to_a_tolerance(tol: float) -> None:
    model = nystroem(landmarks=4, tol=tol).fit(X)
    assert model.n_landmarks_ > 4
    assert model.error_.relative <= tol
    assert relative(model.approximate(X), k(X, X)) < 1.2 * tol
    smallest = nystroem(landmarks=4, tol=tol, rank="auto").fit(X)
    assert smallest.rank_ < model.rank_
    assert smallest.error_.relative <= tol
    assert not hasattr(model.set_params(tol=None).fit(X), "error_")


def test_a_tolerance_out_of_reach_is_said() -> None:
    with pytest.warns(UserWarning, match=r"the estimated error is 0\.\d+, tol=0.001 was asked for"):
        model = nystroem(landmarks=[1, 2, 3], tol=0.001).fit(X)
    assert model.n_landmarks_ == 3
    assert model.error_.relative > 0.001
    with pytest.warns(UserWarning, match="raise rank"):
        nystroem(landmarks=10, rank=3, tol=0.001).fit(X)


# What it takes and gives


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("core", ["ls", "truncated"])
def test_any_table_gives_the_same_features(form: str, core: str) -> None:
    A, A_new = np.round(X, 1), np.round(X_NEW, 1)
    params = {"landmarks": Landmarks(20, "uniform", core=core)}
    as_form = FORMS[form] if form not in ("pandas", "polars") else _named(FORMS[form])
    one = nystroem(**params).fit(as_form(A))
    two = nystroem(**params).fit(A)
    assert_array_equal(one.landmark_indices_, two.landmark_indices_)
    Phi = two.transform(A_new)
    assert_allclose(one.transform(as_form(A_new)), Phi, atol=1e-7 * np.abs(Phi).max())


def _named(frame: Any) -> Any:
    names = {"columns" if frame is pd.DataFrame else "schema": ["a", "b", "c"]}
    return lambda A: frame(A, **names)


@pytest.mark.parametrize("kernel", [KERNEL, Gaussian(3.0), "sigmoid", "cityblock"])
def test_float32_is_read_in_double(kernel: Any) -> None:
    single = X.astype(np.float32)
    params = {"landmarks": Landmarks(15, "uniform", core="truncated")}
    one = nystroem(kernel, **params).fit(single)
    two = nystroem(kernel, **params).fit(single.astype(np.float64))
    Phi, expected = one.transform(single), two.transform(single.astype(np.float64))
    assert_array_equal(Phi, expected)


def test_float32_rounding_is_no_dimension() -> None:
    """<x, z> in three dimensions has rank 3, in float32 too."""
    for core in ("plain", "truncated", "ls"):
        model = nystroem("linear", landmarks=Landmarks(30, core=core)).fit(X.astype(np.float32))
        assert model.rank_ == 3


@pytest.mark.parametrize("form", ["vectors", "objects", "matrix", "streamed"])
def test_fit_transform_is_fit_then_transform(form: str) -> None:
    landmarks = Landmarks(5, pool=60) if form == "streamed" else Landmarks(5)
    kernel, objects = {
        "vectors": (KERNEL, X),
        "objects": (pairwise(np.dot), [*X]),
        "matrix": ("precomputed", k(X, X) - 0.1),
        "streamed": (KERNEL, X),
    }[form]
    Phi = nystroem(kernel, landmarks=landmarks).fit_transform(objects)
    expected = nystroem(kernel, landmarks=landmarks).fit(objects).transform(objects)
    assert_allclose(Phi, expected, atol=1e-12 * np.abs(expected).max())


def test_set_output_changes_transform_and_nothing_else() -> None:
    model = nystroem(landmarks=10, rank=2).set_output(transform="pandas").fit(X)
    Phi = model.transform(X)
    assert list(Phi.columns) == ["kreinnystroem0", "kreinnystroem1"]
    assert isinstance(model.fit_transform(X), pd.DataFrame)
    for result in (model.approximate(X), model.eigenvectors(X)):
        assert isinstance(result, np.ndarray)


def test_a_model_may_be_fitted_to_something_else() -> None:
    model = nystroem(pairwise(np.dot), landmarks=3).fit(X)
    assert model.n_features_in_ == 3
    model.fit([*X])
    assert not hasattr(model, "n_features_in_")
    assert_allclose(model.approximate([*X_NEW]), X_NEW @ X_NEW.T, atol=1e-10)


def test_a_function_of_tables_keeps_to_tables() -> None:
    """What was fitted to a table is given tables, lists of lists too."""
    model = nystroem(lambda A, B: A @ B.T, landmarks=5).fit(X)
    assert_array_equal(model.transform(X_NEW.tolist()), model.transform(X_NEW))
    with pytest.raises(ValueError, match="X has 2 features"):
        model.transform(X_NEW[:, :2].tolist())


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_workers_change_nothing(n_jobs: int) -> None:
    one, two = (nystroem(landmarks=30, n_jobs=j).fit(X) for j in (None, n_jobs))
    assert_array_equal(one.transform(X_NEW), two.transform(X_NEW))
