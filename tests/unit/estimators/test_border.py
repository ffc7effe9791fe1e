"""What estimators refuse at the border rather than read as something else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.pipeline import make_pipeline
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import KreinRidge, Landmarks, pairwise
from kreinlearn.kernels import Gaussian
from tests.models import both, nystroem, pca, products

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
B = RNG.normal(size=(30, 30))
K = B + B.T
WORDS = [f"{i:b}-{'abcdef'[i % 6 :]}" for i in range(20)]
Model = Callable[..., Any]


def letters(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


# Columns and missing values


@both
@pytest.mark.parametrize("column", [pd.Series(X[0]), pl.Series(X[0]), pd.Series(X[:, 0])])
def test_a_column_is_no_table(model: Model, column: Any) -> None:
    for act in (model().fit, model().fit(X).transform, model("precomputed").fit(K).transform):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
            act(column)


def test_a_column_of_distances_is_condensed() -> None:
    distances = pdist(X)
    one, two = (
        nystroem("precomputed_dissimilarity").fit(given).eigenvalues_
        for given in (distances, pd.Series(distances))
    )
    assert_array_equal(one, two)


@both
@pytest.mark.parametrize("kernel", ["gaussian", products, "precomputed"])
def test_missing_values_among_objects(model: Model, kernel: Any) -> None:
    frame = pd.DataFrame({"a": pd.Series([1, pd.NA, 3], dtype=object), "b": [1.0, 2, 3]})
    for table in (frame, frame.to_numpy(dtype=object), frame.replace({pd.NA: None})):
        with pytest.raises(ValueError, match=r"Input X contains NaN"):
            model(kernel).fit(table)


# Objects


@both
@pytest.mark.parametrize("form", [np.array, lambda a: np.array(a, dtype=object)])
@pytest.mark.parametrize("kernel", [pairwise(letters), products, "hausdorff"])
def test_texts_in_two_dimensions(model: Model, form: Model, kernel: Any) -> None:
    column = form(WORDS).reshape(-1, 1)
    with pytest.raises(ValueError, match=r"two dimensions, 20 x 1; pass X\.ravel\(\)"):
        model(kernel).fit(column)
    for frame in (pd.DataFrame({"word": WORDS}, dtype=object), pl.DataFrame({"word": WORDS})):
        with pytest.raises(ValueError, match=r"20 x 1; pass the column, X\[\"name\"\]"):
            model(kernel).fit(frame)
    fitted = model(pairwise(letters)).fit(column.ravel())
    with pytest.raises(ValueError, match=r"two dimensions, 20 x 1; pass X\.ravel\(\)"):
        fitted.transform(column)


@both
def test_numbers_as_objects_are_a_table(model: Model) -> None:
    expected = model(products).fit(X).transform(X)
    for table in (X.astype(object), pd.DataFrame(X.astype(object), columns=list("abc"))):
        assert_allclose(model(products).fit(table).transform(table), expected, atol=1e-12)


# Parameters that would be ignored


@both
def test_a_scheme_beside_landmarks(model: Model) -> None:
    for landmarks in ([1, 2, 3], X[:3] + 1):
        with pytest.raises(ValueError, match=r"has 3 landmarks and scheme='uniform'.*pass scheme="):
            model(landmarks=Landmarks(landmarks, "uniform")).fit(X)
        assert model(landmarks=Landmarks(landmarks)).fit(X).n_landmarks_ == 3
    many = np.vstack([X, X + 1])
    assert model(landmarks=Landmarks(many)).fit(X).n_landmarks_ == 60


@pytest.mark.parametrize("bad", [{"scheme": "best"}, {"core": "soft"}, {"pool": 0}, {"n": 0}])
@both
def test_parts_of_landmarks_are_checked(model: Model, bad: dict[str, Any]) -> None:
    (name,) = bad
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of Landmarks must"):
        model(landmarks=Landmarks(**bad)).fit(X)


@both
def test_the_rank_of_landmarks_is_for_learners(model: Model) -> None:
    with pytest.raises(ValueError, match=r"Landmarks\(rank=2\) is for learners; pass rank= or n_c"):
        model(landmarks=Landmarks(rank=2)).fit(X)


def test_remedy_of_a_rank_above_given_landmarks() -> None:
    with pytest.raises(ValueError, match=r"lower rank or give more landmarks"):
        nystroem(rank=5, landmarks=[1, 2, 3]).fit(X)
    with pytest.raises(ValueError, match=r"lower n_components or give more landmarks"):
        pca(n_components=5, landmarks=[1, 2, 3]).fit(X)


# Error estimates


@pytest.mark.parametrize("bad", ["a", 2.5, 1, 0, None])
def test_rows_of_an_error_estimate(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="'n_rows' parameter of estimate_error"):
        nystroem().fit(X).estimate_error(X, n_rows=bad)


def test_one_object_gives_no_error_estimate() -> None:
    with pytest.raises(ValueError, match="one object has no pair"):
        nystroem().fit(X).estimate_error(X[:1])


def test_landmark_columns_give_no_error_estimate() -> None:
    model = nystroem("precomputed", landmarks=8).fit(K)
    Z = model.landmark_indices_
    columns = nystroem("precomputed", landmarks=Landmarks(Z, core="plain")).fit(K[:, Z])
    for one, given in (
        (model, K[:, Z]),
        (model, K[:8, Z]),
        (columns, K[:, Z]),
        (columns, K[:8, Z]),
    ):
        with pytest.raises(ValueError, match=r"those with landmarks; fit and pass all columns"):
            one.estimate_error(given)
    for square in (model, nystroem("precomputed", landmarks=None).fit(K)):
        error = np.linalg.norm(K - square.approximate(K)) / np.linalg.norm(K)
        assert_allclose(square.estimate_error(K).relative, error, atol=1e-12)


# A fit that fails, a warning


@both
def test_a_fit_that_fails_forgets_the_one_before(model: Model) -> None:
    fit = model()
    before = set(vars(fit))
    fit.fit(X)
    with pytest.raises(ValueError, match="NaN"):
        fit.fit(np.full((3, 3), np.nan))
    assert set(vars(fit)) - before <= {"n_features_in_"}


@both
def test_warnings_name_the_line_of_the_caller(model: Model) -> None:
    asymmetric = lambda A, B: products(A, B) + np.asarray(A)[:, :1]  # noqa: E731
    acts: list[Callable[[], Any]] = [
        lambda: model(landmarks=31).fit(X),
        lambda: model("precomputed").fit(np.triu(K)),
        lambda: model(asymmetric).fit_transform(X),
        lambda: make_pipeline(model(landmarks=31)).fit(X),
        lambda: model(kernel="jaccard").fit(X),
    ]
    for act in acts:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            act()
        assert {Path(one.filename).name for one in caught} == {Path(__file__).name}


def test_a_parameter_of_a_kernel_that_is_given_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"kernel='gaussian' is a name; pass an object of"):
        KreinRidge("gaussian").set_params(kernel__width=2.0)
    assert KreinRidge(Gaussian()).set_params(kernel__width=2.0).kernel.width == 2.0
