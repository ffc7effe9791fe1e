"""Bad inputs and faults in fit, transform and predict.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import pickle
import re
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import (
    KreinClassifier,
    KreinRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    KreinVCRidgeClassifier,
    Landmarks,
    Resources,
    SimilarityRidge,
    SimilarityRidgeClassifier,
    dissimilarity,
    evaluate,
    pairwise,
)
from kreinlearn.kernels import Gaussian
from kreinlearn.learn.losses import hinge
from kreinlearn.learn.stack import stack_bytes
from tests.models import (
    CLASSIFIERS,
    REGRESSORS,
    both,
    classifiers,
    every,
    learners,
    nystroem,
    pca,
    penalised,
    products,
    regressors,
)
from tests.systems import press

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
B = RNG.normal(size=(30, 30))
K = B + B.T  # symmetric, indefinite
D = cdist(X, X)
VALUES = np.sin(2 * X[:, 0]) + 0.5
LABELS = (X[:, 0] > 0.3).astype(int)
SCHEMES = ["uniform", "leverage", "kmeans++", "greedy_kmeans++"]
CORES = ["ls", "truncated", "plain"]
Fit = Callable[..., Any]


def product(a: Any, b: Any) -> float:
    return float(np.dot(a, b))


def target_of(learner: Any) -> Any:
    return VALUES if learner in REGRESSORS else LABELS


def decision(fitted: Any, objects: Any) -> Any:
    return getattr(fitted, "decision_function", fitted.predict)(objects)


def changed(A: Any, entry: Any, value: float) -> Any:
    A = A.copy()
    A[entry] = value
    return A


def tables(A: Any) -> dict[str, Any]:
    names = [f"x{j}" for j in range(A.shape[1])]
    return {
        "array": A,
        "list": A.tolist(),
        "pandas": pd.DataFrame(A, columns=names),
        "polars": pl.DataFrame(A, schema=names),
        "sparse": sp.csr_array(A),
    }


# Values


@every
@pytest.mark.parametrize("form", tables(X))
def test_bad_input_01_nan(model: Fit, form: str) -> None:
    bad = tables(changed(X, (4, 1), np.nan))[form]
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(bad)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(tables(X)[form]).transform(bad)


@every
@pytest.mark.parametrize("form", tables(X))
def test_bad_input_02_infinity(model: Fit, form: str) -> None:
    message = "contains infinity or a value too large"
    for value in (np.inf, -np.inf):
        bad = tables(changed(X, (4, 1), value))[form]
        with pytest.raises(ValueError, match=message):
            model().fit(bad)
        with pytest.raises(ValueError, match=message):
            model().fit(tables(X)[form]).transform(bad)


@every
def test_bad_input_04_nan_in_a_matrix(model: Fit) -> None:
    for kernel, good in (("precomputed", K), ("precomputed_dissimilarity", D)):
        for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
            bad = changed(changed(good, (7, 2), value), (20, 1), value)
            with pytest.raises(ValueError, match=f"Input X contains {name} at row 7, column 2"):
                model(kernel).fit(bad)
            with pytest.raises(ValueError, match=f"Input X contains {name} at row 2, column 2"):
                model(kernel).fit(good).transform(bad[5:9])


def test_bad_input_04_nan_in_a_condensed_vector() -> None:
    vector = pdist(X)
    vector[1] = np.nan  # the pair of objects 0 and 2
    with pytest.raises(ValueError, match="Input X contains NaN at row 0, column 2"):
        nystroem("precomputed_dissimilarity").fit(vector)


# Given matrices


@every
def test_bad_input_05_asymmetric_matrix(model: Fit) -> None:
    skew = changed(K, (3, 8), K[3, 8] + 0.1)
    rows = [8, 1, 2, 5]  # row 3 is in the column of landmark 8
    params = {"landmarks": Landmarks(rows, core="plain")}
    with pytest.warns(UserWarning, match=r"asymmetric.* 0.1; it is averaged with its transpose"):
        one = model("precomputed", **params).fit(skew)
    other = model("precomputed", **params).fit((skew + skew.T) / 2)
    assert_array_equal(one.eigenvalues_, other.eigenvalues_)
    assert_array_equal(one.transform(K), other.transform(K))
    among = changed(K, (5, 8), K[5, 8] + 0.1)  # of landmark columns, what is asymmetric
    with pytest.warns(UserWarning, match=r"asymmetric.* 0.1; it is averaged with its transpose"):
        model("precomputed", **params).fit(among[:, rows])


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_bad_input_06_asymmetry_at_rounding_level(scale: float) -> None:
    """Relative to the largest entry: silent below 1e-10 of it, whatever the scale."""
    size = np.abs(K).max()
    rounded = changed(K, (3, 8), K[3, 8] + 0.5e-10 * size) * scale
    plain = Landmarks(core="plain")
    model = nystroem("precomputed", landmarks=plain).fit(rounded)  # no warning
    average = nystroem("precomputed", landmarks=plain).fit((rounded + rounded.T) / 2)
    assert_array_equal(model.eigenvalues_, average.eigenvalues_)
    with pytest.warns(UserWarning, match="asymmetric"):
        nystroem("precomputed").fit(changed(K, (3, 8), K[3, 8] + 2e-10 * size) * scale)


@every
@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_dissimilarity"])
def test_bad_input_07_non_square_matrix(model: Fit, kernel: str) -> None:
    message = (
        r"^Precomputed matrix must be a square matrix\. Input is a 30x10 matrix\. "
        "To fit on landmark columns pass landmarks=<their row numbers>"
    )
    for landmarks in ("auto", 10, [*range(9)]):
        with pytest.raises(ValueError, match=message):
            model(kernel, landmarks=landmarks).fit(D[:, :10])
    asked = {"landmarks": Landmarks([*range(10)], core="plain")}
    assert model(kernel, **asked).fit(D[:, :10]).n_features_in_ == 10


@every
def test_bad_input_08_wrong_number_of_columns(model: Fit) -> None:
    for kernel in ("gaussian", products):
        message = "X has 2 features, but Krein.* is expecting 3 features"
        with pytest.raises(ValueError, match=message):
            model(kernel).fit(X).transform(X[:, :2])
        with pytest.raises(ValueError, match=message):
            model(kernel, landmarks=X[:4, :2]).fit(X)


@every
def test_bad_input_09_columns_of_a_matrix_at_transform(model: Fit) -> None:
    """One column per training object, or per landmark in the order of landmark_indices_."""
    fitted = model("precomputed", landmarks=8).fit(K)
    expected, Z = fitted.transform(K[:5]), fitted.landmark_indices_
    for given in (K[:5, Z], K[:5, Z].tolist()):
        assert_allclose(fitted.transform(given), expected, atol=1e-12)
    for wrong in (1, 7, 9, 29, 31):
        with pytest.raises(ValueError, match=f"X has {wrong} features.* expecting 30"):
            fitted.transform(np.ones((5, wrong)))
    columns = model("precomputed", landmarks=Landmarks(Z, core="plain")).fit(K[:, Z])
    assert columns.transform(K[:5, Z]).shape[0] == 5
    for wrong in (7, 30):
        with pytest.raises(ValueError, match=rf"X has {wrong} features.* expecting 8"):
            columns.transform(np.ones((5, wrong)))


@every
def test_bad_input_09_landmark_columns_are_checked_like_others(model: Fit) -> None:
    fitted = model("precomputed", landmarks=8).fit(K)
    good = K[:, fitted.landmark_indices_]
    with pytest.raises(ValueError, match="Input X contains NaN at row 7, column 2"):
        fitted.transform(changed(good, (7, 2), np.nan))
    with pytest.raises(ValueError, match="Complex data not supported"):
        fitted.transform(good * 1j)
    with pytest.raises(TypeError, match="must hold numbers, got dates"):
        fitted.transform(good.astype("datetime64[s]"))
    far = model("precomputed_dissimilarity", landmarks=Landmarks([4, 1, 8], core="plain"))
    with pytest.raises(ValueError, match=r"Negative values in data passed to X\."):
        far.fit(D[:, [4, 1, 8]]).transform(-D[:, [4, 1, 8]])


@every
def test_bad_input_09_landmark_columns_by_name(model: Fit) -> None:
    names = np.array([f"o{i}" for i in range(30)])
    frame = pd.DataFrame(K, columns=names)
    fitted = model("precomputed", landmarks=8).fit(frame)
    own = names[fitted.landmark_indices_]
    assert_allclose(fitted.transform(frame[own]), fitted.transform(frame), atol=1e-12)
    for wrong in (own[::-1], np.setdiff1d(names, own)[:8]):
        with pytest.raises(ValueError, match="The feature names should match"):
            fitted.transform(frame[wrong])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fitted.transform(K[:, fitted.landmark_indices_])


def minus(A: Any, B: Any) -> Any:
    return cdist(A, B) - 2.0 * (cdist(A, B) > 0)


def minus_one(a: Any, b: Any) -> float:
    return float(minus(a[None], b[None])[0, 0])


@every
def test_bad_input_10_negative_dissimilarity(model: Fit) -> None:
    message = "^Negative values in data passed to X"
    for kernel in ("precomputed_dissimilarity", dissimilarity("precomputed")):
        with pytest.raises(ValueError, match=message):
            model(kernel).fit(minus(X, X))
        with pytest.raises(ValueError, match=message):
            model(kernel).fit(D).transform(minus(X[:4], X))
    for kernel in (dissimilarity(minus), dissimilarity(pairwise(minus_one))):
        with pytest.raises(ValueError, match=message):
            model(kernel, landmarks=5).fit(X)


def with_self(a: Any, b: Any) -> float:
    return float(np.abs(a - b).sum()) + 0.5


@every
def test_bad_input_11_self_dissimilarity(model: Fit) -> None:
    message = "the diagonal of a dissimilarity must be zero, got a self-dissimilarity of 0.5"
    with pytest.raises(ValueError, match=message):
        model("precomputed_dissimilarity").fit(changed(D, (6, 6), 0.5))
    with pytest.raises(ValueError, match=message):
        model(dissimilarity(pairwise(with_self)), landmarks=5).fit(X)
    tolerated = changed(D, (6, 6), 0.9e-12 * D.max())
    assert model("precomputed_dissimilarity").fit(tolerated).rank_ >= 2
    with pytest.raises(ValueError, match="the diagonal of a dissimilarity must be zero"):
        model("precomputed_dissimilarity").fit(changed(D, (6, 6), 1.1e-12 * D.max()))


@every
@pytest.mark.parametrize("kernel", [cdist, pairwise(lambda a, b: float(np.abs(a - b).sum()))])
def test_bad_input_12_dissimilarity_as_similarity(model: Fit, kernel: Any) -> None:
    with pytest.warns(UserWarning, match=r"pass kernel=dissimilarity\(\.\.\.\)"):
        model(kernel, landmarks=9).fit(X)
    with pytest.warns(UserWarning, match='pass kernel="precomputed_dissimilarity"'):
        model("precomputed").fit(D)
    model(dissimilarity(kernel), landmarks=9).fit(X)  # no warning
    model("precomputed_dissimilarity").fit(D)
    model("delta_gauss").fit(X)  # zero diagonal, none negative, but ours


# Degenerate kernels


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", [*SCHEMES, "medoids", "medoids+greedy"])
def test_bad_input_18_duplicates(landmarks: str, core: str) -> None:
    """Six copies of five objects: rank 5, silently, unless more was asked for."""
    copies = np.repeat(X[:5], 6, axis=0)
    params = {"landmarks": Landmarks(20, landmarks, core=core)}
    model = nystroem(**params).fit(copies)
    assert model.rank_ == 5
    exact = model.kernel_(copies, copies)
    assert_allclose(model.approximate(copies), exact, atol=1e-8)
    with pytest.warns(UserWarning, match=r"rank=8 was asked for .* span only 5 dimensions"):
        assert nystroem(rank=8, **params).fit(copies).rank_ == 5
    with pytest.warns(UserWarning, match=r"n_components=7 was asked for .* span only 4 dim"):
        assert pca(n_components=7, **params).fit(copies).rank_ == 4


def zero(A: Any, B: Any) -> Any:
    return np.zeros((len(A), len(B)))


@both
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", SCHEMES)
def test_bad_input_19_all_zero_kernel(model: Fit, landmarks: str, core: str) -> None:
    for kernel, objects in ((zero, X), ("precomputed", zero(X, X))):
        zeroed = model(kernel, landmarks=Landmarks(7, landmarks, core=core))
        with pytest.warns(UserWarning, match="rank_ is 0"):
            zeroed.fit(objects)
        assert zeroed.rank_ == 0
        assert zeroed.transform(objects).shape == (30, 0)
        assert zeroed.eigenvalues_.shape == zeroed.get_feature_names_out().shape == (0,)
        if model is nystroem:
            assert_array_equal(zeroed.approximate(objects), np.zeros((30, 30)))
            assert zeroed.estimate_error(objects).relative == 0


@learners
@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_bad_input_19_all_zero_kernel_predicts_mean_or_prior(
    learner: Any, tuned: bool, n_classes: int
) -> None:
    labels = np.arange(30) * n_classes // 40  # the first class is the largest
    y = VALUES if learner in REGRESSORS else labels
    w = np.linspace(1, 2, 30)
    for kernel, objects in ((zero, X), ("precomputed", zero(X, X))):
        model = learner(kernel, random_state=0) if tuned else penalised(learner, kernel=kernel)
        if learner in (SimilarityRidge, SimilarityRidgeClassifier):
            model.fit(objects, y, sample_weight=w)  # as many features as landmarks, all zero
        else:
            with pytest.warns(UserWarning, match="rank_ is 0"):
                model.fit(objects, y, sample_weight=w)
            assert model.rank_ == 0
        if learner in REGRESSORS:
            assert_allclose(model.predict(objects), np.average(y, weights=w))
            continue
        largest = np.argmax(np.bincount(labels, weights=w))
        assert_array_equal(model.predict(objects), np.full(30, largest))
        if n_classes == 2:
            mean = np.average(2 * labels - 1, weights=w)
            assert_allclose(model.decision_function(objects), mean)


@pytest.mark.parametrize("intercept", [False, True])
def test_bad_input_19_all_zero_kernel_of_a_machine_with_landmarks(intercept: bool) -> None:
    rows, y = np.zeros((300, 1)), np.arange(300) % 3 == 0
    model = KreinSVC(zero, landmarks=10, fit_intercept=intercept, random_state=0)
    with pytest.warns(UserWarning, match="rank_ is 0"):
        model.fit(rows, y)
    assert_array_equal(model.predict(rows), np.zeros(300, dtype=bool))


@pytest.mark.parametrize("method", ["svd", "sgt"])
def test_bad_input_19_all_zero_kernel_by_the_reference_routes(method: str) -> None:
    with pytest.warns(UserWarning, match="rank_ is 0"):
        assert nystroem(zero, landmarks=Landmarks(core="plain"), method=method).fit(X).rank_ == 0


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", [*SCHEMES, "medoids", "medoids+greedy"])
def test_bad_input_20_identical_objects(landmarks: str, core: str) -> None:
    same = np.full((30, 3), 1.7)
    params = {"landmarks": Landmarks(9, landmarks, core=core)}
    model = nystroem(**params).fit(same)
    assert model.rank_ == 1
    assert_allclose(model.approximate(same), np.ones((30, 30)), atol=1e-12)
    with pytest.warns(UserWarning, match="rank_ is 0"):  # centred, nothing is left
        assert pca(**params).fit(same).transform(same).shape == (30, 0)


@learners
@pytest.mark.parametrize("tuned", [True, False])
def test_bad_input_20_identical_objects_have_the_same_prediction(learner: Any, tuned: bool) -> None:
    same, y = np.full((30, 3), 1.7), target_of(learner)
    model = learner(random_state=0) if tuned else penalised(learner)
    if learner in (KreinVCRidge, KreinVCRidgeClassifier):
        with pytest.warns(UserWarning, match="constraint cannot be met: the features do not vary"):
            model.fit(same, y)
    else:
        model.fit(same, y)
    if learner not in (SimilarityRidge, SimilarityRidgeClassifier):
        assert model.rank_ == 1
    mean = y.mean() if learner in REGRESSORS else (2 * y - 1).mean()
    assert_allclose(decision(model, same), mean, rtol=1e-6)
    assert np.isfinite(decision(model, X)).all()


# Numbers of landmarks


@every
def test_bad_input_21_more_landmarks_than_objects(model: Fit) -> None:
    with pytest.warns(UserWarning, match="31 landmarks exceed n_samples=30; all 30 objects are"):
        fitted = model(landmarks=31).fit(X)
    assert fitted.n_landmarks_ == 30
    assert_array_equal(fitted.transform(X), model(landmarks=None).fit(X).transform(X))


@both
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", [*SCHEMES, "medoids", "medoids+greedy", [4]])
def test_bad_input_22_one_landmark(model: Fit, landmarks: Any, core: str) -> None:
    one = {"n_components": 1} if model is pca else {}
    given = Landmarks(1, landmarks, core=core)
    if not isinstance(landmarks, str):
        given = Landmarks(landmarks, core=core)
    fitted = model(landmarks=given, **one).fit(X)
    assert fitted.n_landmarks_ == fitted.rank_ == 1
    k_z = np.exp(-cdist(X, fitted.landmarks_, "sqeuclidean") / fitted.kernel_.width_)
    Phi = fitted.transform(X)
    k_z = k_z - k_z.mean() if model is pca else k_z
    assert_allclose(Phi / np.linalg.norm(Phi), k_z / np.linalg.norm(k_z) * np.sign(Phi[0] / k_z[0]))


@every
@pytest.mark.parametrize("bad", [0, -3, 2.5, 0.0, -0.1, "a", np.nan])
def test_bad_input_23_number_of_landmarks(model: Fit, bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="The 'landmarks' parameter of Krein"):
        model(landmarks=bad).fit(X)
    with pytest.raises(InvalidParameterError, match="The 'n' parameter of Landmarks must be"):
        model(landmarks=Landmarks(bad)).fit(X)


def test_bad_input_24_rank_above_landmarks() -> None:
    with pytest.raises(
        ValueError, match=r"rank=9 exceeds .* landmarks, 8 .*lower rank or use more"
    ):
        nystroem(rank=9, landmarks=8).fit(X)
    with pytest.raises(ValueError, match=r"rank=31 exceeds .* landmarks, 30 \(n_samples=30\)"):
        nystroem(rank=31).fit(X)
    with pytest.raises(ValueError, match="rank=3 exceeds the number of landmarks, 2"):
        nystroem(rank=3, landmarks=[4, 7]).fit(X)
    with pytest.raises(ValueError, match="n_components=9 exceeds the number of landmarks, 8"):
        pca(n_components=9, landmarks=8).fit(X)
    with pytest.raises(ValueError, match="rank=9 exceeds the number of landmarks, 8"):
        KreinRidge(landmarks=Landmarks(8, rank=9)).fit(X, VALUES)


# Targets, weights and penalties


@learners
def test_bad_input_03_nan_in_y(learner: Any) -> None:
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        with pytest.raises(ValueError, match=f"^Input y contains {name}"):
            penalised(learner).fit(X, changed(target_of(learner).astype(float), 4, value))
        if learner in REGRESSORS:
            with pytest.raises(ValueError, match=f"^Input y contains {name}"):
                penalised(learner).fit(X, changed(X, (4, 1), value))


@classifiers
def test_bad_input_13_one_class(learner: Any) -> None:
    for y in (np.zeros(30), ["a"] * 30, np.full(30, True)):
        with pytest.raises(ValueError, match="needs at least two classes, got one class"):
            penalised(learner).fit(X, y)


@classifiers
def test_bad_input_14_one_class_of_positive_weight(learner: Any) -> None:
    message = r"needs at least two classes of positive weight, got one class: \[1\]"
    with pytest.raises(ValueError, match=message):
        penalised(learner).fit(X, LABELS, sample_weight=LABELS)
    with pytest.raises(ValueError, match=message):
        penalised(learner, class_weight={0: 0.0, 1: 2.0}).fit(X, LABELS)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"class_weight=.* must be finite and not negative"):
            penalised(learner, class_weight={0: bad, 1: 2.0}).fit(X, LABELS)


@pytest.mark.parametrize("learner", [KreinRidgeClassifier, KreinSVC, SimilarityRidgeClassifier])
def test_bad_input_14_classes_without_weight_are_never_predicted(learner: Any) -> None:
    four = np.arange(30) % 4
    fitted = penalised(learner).fit(X, four, sample_weight=four < 2)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert set(fitted.predict(X)) <= {0, 1}


@classifiers
def test_bad_input_15_no_labels(learner: Any) -> None:
    with pytest.raises(ValueError, match=r"^Unknown label type: continuous"):
        penalised(learner).fit(X, VALUES)
    with pytest.raises(ValueError, match=r"y has several columns, and is .* one column of classes"):
        penalised(learner).fit(X, np.column_stack([LABELS + 1, LABELS]))


@regressors
def test_bad_input_15_no_numbers(learner: Any) -> None:
    """Dates are no numbers here either, nor are sparse matrices."""
    with pytest.raises(ValueError, match="could not convert string to float"):
        penalised(learner).fit(X, np.repeat(["a", "b"], 15))
    dates = np.datetime64("2020-01-01") + np.arange(30)
    for y in (dates, pd.Series(dates), dates - dates[0]):
        with pytest.raises(TypeError, match="y must hold numbers, got dates"):
            penalised(learner).fit(X, y)
    with pytest.raises(TypeError, match="Sparse data was passed for y"):
        penalised(learner).fit(X, sp.csr_array(X))
    with pytest.raises(ValueError, match="Complex data not supported"):
        penalised(learner).fit(X, VALUES + 1j)
    with pytest.raises(ValueError, match="Found array with dim 3"):
        penalised(learner).fit(X, X[:, :, None])
    with pytest.raises(ValueError, match=r"y is as large as 1e\+200.*divide it"):
        penalised(learner).fit(X, changed(VALUES, 4, 1e200))


@pytest.mark.parametrize("learner", [KreinRidge, SimilarityRidge])
@pytest.mark.parametrize("tuned", [True, False])
def test_bad_input_16_constant_target(learner: Any, tuned: bool) -> None:
    model = learner(random_state=0) if tuned else penalised(learner)
    for y in (np.full(30, 3.7), np.zeros(30), np.tile([3.7, -1e-3], (30, 1))):
        new = X[:4] + 0.3
        expected = np.broadcast_to(y[0], model.fit(X, y).predict(new).shape)
        assert_allclose(model.predict(new), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("tuned", [True, False])
def test_bad_input_17_constant_target_with_its_variance_given(tuned: bool) -> None:
    model = KreinVCRidge(random_state=0) if tuned else penalised(KreinVCRidge)
    weights = (np.arange(30) > 0).astype(float)
    for y, w in (
        (np.full(30, 3.7), None),
        (np.tile([3.7, 1.0], (30, 1)) * np.column_stack([np.ones(30), VALUES]), None),
        (changed(np.full(30, 1e8), 0, 1.0), weights),
    ):
        with pytest.raises(ValueError, match=r"the target is constant.* constraint is undef"):
            model.fit(X, y, sample_weight=w)


@learners
def test_bad_input_25_penalties(learner: Any) -> None:
    for name in ("lambda_plus", "lambda_minus"):
        if name not in learner().get_params():
            continue
        zero_too = (0.0,) if learner in (KreinVCRidge, KreinVCRidgeClassifier) else ()
        for bad in (-1e-9, -1, np.nan, np.inf, "big", None, [1.0], *zero_too):
            with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of"):
                learner(**{name: bad}).fit(X, target_of(learner))


def features(K_XZ: Any, K_ZZ: Any) -> Any:
    """K_XZ U |D|^-1/2 S"""
    d, U = np.linalg.eigh(K_ZZ)
    return K_XZ @ (U * np.sign(d) / np.sqrt(np.abs(d)))


def least_norm(Phi: Any, Y: Any, new: Any) -> Any:
    """Predictions of the smallest coefficients that fit best, beside a constant."""
    mean, ybar = Phi.mean(axis=0), Y.mean(axis=0)
    return (new - mean) @ (np.linalg.pinv(Phi - mean) @ (Y - ybar)) + ybar


@pytest.mark.parametrize("learner", [KreinRidge, SimilarityRidge])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_bad_input_26_no_penalty(learner: Any, n_outputs: int) -> None:
    """As many features as objects, less their mean: one direction too many."""
    y = VALUES if n_outputs == 1 else X[:, :2]
    K_new = np.random.default_rng(5).normal(size=(7, 30))
    with pytest.warns(UserWarning, match="penalty is zero and the Gram matrix singular"):
        fitted = penalised(learner, 0.0, kernel="precomputed").fit(K, y)
    Phi, new = (K, K_new) if learner is SimilarityRidge else (features(K, K), features(K_new, K))
    assert_allclose(fitted.predict(K_new), least_norm(Phi, y, new), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("learner", [KreinRidgeClassifier, SimilarityRidgeClassifier])
def test_bad_input_26_no_penalty_with_classes(learner: Any) -> None:
    three = np.arange(30) % 3
    K_new = np.random.default_rng(5).normal(size=(7, 30))
    model = penalised(learner, 0.0, kernel="precomputed")
    with pytest.warns(UserWarning, match="penalty is zero and the Gram matrix singular"):
        fitted = model.fit(K, three)
    similar = learner is SimilarityRidgeClassifier
    Phi, new = (K, K_new) if similar else (features(K, K), features(K_new, K))
    expected = least_norm(Phi, np.where(three[:, None] == np.arange(3), 1.0, -1.0), new)
    assert_allclose(fitted.decision_function(K_new), expected, rtol=1e-7, atol=1e-9)
    assert_array_equal(fitted.predict(K_new), np.argmax(expected, axis=1))


def test_bad_input_26_no_penalty_of_the_hinge_loss() -> None:
    with pytest.warns(UserWarning, match="penalty is zero and the Gram matrix singular"):
        fitted = penalised(KreinSVC, 0.0, kernel="precomputed").fit(K, LABELS)
    margins = np.where(LABELS, 1, -1) * fitted.decision_function(K)
    assert margins.min() > 1 - 1e-6  # nothing is lost, and nothing is penalised
    penalised(KreinSVC, 0.0, kernel="linear").fit(X, LABELS)  # 3 dimensions, 30 objects: no warning


@learners
def test_bad_input_55_lengths_differ(learner: Any) -> None:
    message = r"inconsistent numbers of samples: \[30, 29\]"
    with pytest.raises(ValueError, match=message):
        penalised(learner).fit(X, target_of(learner)[:-1])
    with pytest.raises(ValueError, match=message):
        penalised(learner, kernel=pairwise(product)).fit([*X], target_of(learner)[:-1])


@learners
def test_bad_input_56_no_targets(learner: Any) -> None:
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        penalised(learner).fit(X, None)


@learners
def test_bad_input_57_column_vector(learner: Any) -> None:
    """A classifier warns; to a regressor it is one of many outputs, as to KernelRidge."""
    y = target_of(learner)
    flat = penalised(learner).fit(X, y).predict(X)
    if learner in REGRESSORS:
        assert_array_equal(penalised(learner).fit(X, y[:, None]).predict(X), flat[:, None])
        return
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        fitted = penalised(learner).fit(X, y[:, None])
    assert_array_equal(fitted.predict(X), flat)


@learners
def test_bad_input_58_weights(learner: Any) -> None:
    y = target_of(learner)
    cases = {
        "Sample weights must contain at least one non-zero number": np.zeros(30),
        "Negative values in data passed to `sample_weight`": -np.ones(30),
        "Input sample_weight contains NaN": np.full(30, np.nan),
        r"sample_weight.shape == \(29,\), expected \(30,\)": np.ones(29),
        "Sample weights must be 1D array or scalar": np.ones((30, 1)),
    }
    for message, w in cases.items():
        with pytest.raises(ValueError, match=message):
            penalised(learner).fit(X, y, sample_weight=w)
    w = changed(np.ones(30), 3, -1e-9)
    with pytest.raises(ValueError, match="Negative values"):
        penalised(learner).fit(X, y, sample_weight=w)


@pytest.mark.parametrize("learner", [KreinRidge, SimilarityRidge])
def test_bad_input_58_one_weight_leaves_nothing_to_tune_on(learner: Any) -> None:
    w = changed(np.zeros(30), 4, 2.0)
    with pytest.raises(ValueError, match=r"n_samples=1 .*leaves no fold.*give lambda_plus"):
        learner(random_state=0).fit(X, VALUES, sample_weight=w)
    assert_allclose(penalised(learner).fit(X, VALUES, sample_weight=w).predict(X), VALUES[4])


# Callable kernels


@every
@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        (lambda A, B: products(A, B)[:3, :3], r"\(3, 3\)"),
        (lambda A, B: products(A, B)[0], r"\(\d+,\)"),
        (lambda A, B: products(A, B)[:, :, None], r"\(\d+, \d+, 1\)"),
        (lambda A, B: 1.0, r"\(\)"),
    ],
)
def test_bad_input_27_wrong_shape(model: Fit, kernel: Any, shape: str) -> None:
    message = rf"the kernel returned shape {shape}, expected \(\d+, \d+\) = \(len\(A\), len\(B\)\)"
    with pytest.raises(ValueError, match=message):
        model(kernel, landmarks=8).fit(X)


@every
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_bad_input_28_nan_from_a_kernel(model: Fit, value: float, name: str) -> None:
    def broken(A: Any, B: Any) -> Any:
        bad_row, bad_landmark = (A[:, 0] == X[17, 0])[:, None], B[:, 0] == X[2, 0]
        return np.where(bad_row & bad_landmark, value, products(A, B))

    message = rf"kernel produced {name} for row 17 \(block \d+\.\.\d+\) and landmark row 2;"
    fit = model(broken, landmarks=[5, 2, 9])
    with pytest.raises(ValueError, match=message):
        fit.fit(X)
    fit.fit(X[:10])
    with pytest.raises(ValueError, match=rf"kernel produced {name} for row 2 "):
        fit.transform(X[15:20])


def test_bad_input_28_nan_on_the_diagonal() -> None:
    def broken(a: Any, b: Any) -> float:
        return np.nan if a is b and a[0] == X[17, 0] else product(a, b)

    with pytest.raises(ValueError, match="kernel produced NaN for row 17"):
        nystroem(pairwise(broken), landmarks=Landmarks(8, "greedy_kmeans++")).fit([*X])


def test_bad_input_28_nan_in_the_streamed_pass() -> None:
    many = np.random.default_rng(1).normal(size=(5000, 3))
    last = many[4999, 0]

    def broken(A: Any, B: Any) -> Any:
        return np.where(A[:, :1] == last, np.nan, products(A, B))

    with pytest.raises(ValueError, match=r"kernel produced NaN for row 4999 \(block \d+\.\.4999\)"):
        nystroem(broken, landmarks=Landmarks([0, 1, 2], pool=100)).fit(many)


@every
@pytest.mark.parametrize("value", [None, "0.5", 1j])
def test_bad_input_29_no_real_numbers(model: Fit, value: Any) -> None:
    kinds = {
        "block": lambda A, B: np.full((len(A), len(B)), value),
        "itself": lambda A, B: value,
    }
    for kernel in kinds.values():
        with pytest.raises(TypeError, match="the kernel must return real numbers, got dtype"):
            model(kernel).fit(X)
    with pytest.raises(TypeError, match="must return one real number"):
        model(pairwise(lambda a, b: value)).fit(X)


class Peculiar(RuntimeError):
    pass


def breaks(a: Any, b: Any) -> float:
    if a[0] == X[17, 0] or b[0] == X[17, 0]:
        raise Peculiar("no licence", 7)
    return product(a, b)


@every
def test_bad_input_30_kernel_raises(model: Fit) -> None:
    fit = model(pairwise(breaks), landmarks=Landmarks([3, 4, 5], core="plain"))
    with pytest.raises(Peculiar, match="no licence") as caught:
        fit.fit([*X])
    assert caught.value.args == ("no licence", 7)
    _, note = caught.value.__notes__  # the first names the two objects
    assert "while evaluating the kernel on rows 0..29 against 3 landmarks" in note
    with pytest.raises(NotFittedError):
        fit.transform([*X])
    fit.fit([*X[:10]])
    with pytest.raises(Peculiar) as caught:
        fit.transform([*X])
    assert "on rows 0..29 against 3 landmarks" in caught.value.__notes__[1]


def test_bad_input_30_kernel_raises_in_the_streamed_pass() -> None:
    many = np.random.default_rng(1).normal(size=(5000, 3))

    def broken(A: Any, B: Any) -> Any:
        if (A[:, 0] == many[4999, 0]).any():
            raise Peculiar("no licence", 7)
        return products(A, B)

    with pytest.raises(Peculiar) as caught:
        nystroem(broken, landmarks=Landmarks([0, 1, 2], pool=100)).fit(many)
    assert "4999 against 3 landmarks" in caught.value.__notes__[0]


@every
def test_bad_input_31_asymmetric_kernel(model: Fit) -> None:
    def skew(A: Any, B: Any) -> Any:
        return products(A, B) + A[:, :1] - 0.5 * B[:, 0]

    for kernel in (skew, pairwise(lambda a, b: product(a, b) + a[0])):
        with pytest.warns(UserWarning, match=r"the kernel is asymmetric: k\(x, z\) - k\(z, x\)"):
            model(kernel).fit(X)


@every
def test_bad_input_32_kernel_not_deterministic(model: Fit) -> None:
    rng = np.random.default_rng(0)

    def noisy(A: Any, B: Any) -> Any:
        return products(A, B) + 1e-3 * rng.normal(size=(len(A), len(B)))

    with pytest.warns(UserWarning, match="the kernel is not deterministic"):
        model(noisy).fit(X)


@every
def test_bad_input_33_kernel_not_picklable(model: Fit) -> None:
    lock, calls = threading.Lock(), []

    def locked(A: Any, B: Any) -> Any:
        calls.append(lock)
        return products(A, B)

    with pytest.raises(TypeError, match=r"cannot be sent to other processes .*; pass n_jobs=1"):
        model(locked, n_jobs=2).fit(X)
    assert not calls
    assert model(locked, n_jobs=1).fit(X).rank_ >= 2


@every
def test_bad_input_34_pickle_of_a_lambda(model: Fit) -> None:
    fitted = model(lambda A, B: products(A, B)).fit(X)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(fitted)


# Scale and type


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", SCHEMES)
def test_bad_input_36_scale_of_the_kernel(landmarks: str, core: str) -> None:
    """c K: the same landmarks and signs, sqrt(c) times the features, c times the eigenvalues."""
    params = {"landmarks": Landmarks(12, landmarks, core=core)}
    for c in (1e-300, 1e-150, 1e150, 1e300):
        for model in (nystroem, pca):
            one, scaled = (model("precomputed", **params).fit(A) for A in (K, K * c))
            assert_array_equal(scaled.landmark_indices_, one.landmark_indices_)
            assert_array_equal(scaled.signature_, one.signature_)
            assert_allclose(scaled.eigenvalues_ / c, one.eigenvalues_, rtol=1e-6)
            Phi, expected = scaled.transform(K * c) / np.sqrt(c), one.transform(K)
            assert_allclose(Phi, expected, atol=1e-6 * np.abs(expected).max())
        estimates = (
            nystroem("precomputed", **params).fit(A).estimate_error(A, random_state=0).relative
            for A in (K, K * c)
        )
        assert_allclose(*estimates, rtol=1e-6)


def test_bad_input_36_scale_and_tolerance() -> None:
    smooth = np.exp(-cdist(X, X, "sqeuclidean") / 6) - 0.2
    for c in (1e-300, 1e300):
        one, scaled = (
            nystroem("precomputed", landmarks=4, tol=0.05).fit(A) for A in (smooth, smooth * c)
        )
        assert one.n_landmarks_ == scaled.n_landmarks_ > 4
        assert_allclose(scaled.error_.relative, one.error_.relative, rtol=1e-4)


@learners
@pytest.mark.parametrize("c", [1e-300, 1e300])
def test_bad_input_36_scale_and_learners(learner: Any, c: float) -> None:
    """The same predictions from (c K, c lambda); tuning finds c lambda by itself."""
    y = target_of(learner)
    tuned, tuned_c = (learner("precomputed", random_state=0).fit(A, y) for A in (K, K * c))
    expected = decision(tuned, K[:9])
    assert_allclose(decision(tuned_c, K[:9] * c), expected, rtol=1e-5, atol=1e-7)
    if "lambda_minus" not in tuned.get_params():  # of squares of similarities
        c = c ** (1 / 3)
        one, other = (
            penalised(learner, penalty, kernel="precomputed").fit(A, y)
            for A, penalty in ((K, 0.1), (K * c, 0.1 * c * c))
        )
    else:
        assert_allclose(tuned_c.lambda_plus_ / c, tuned.lambda_plus_, rtol=1e-5)
        assert_allclose(tuned_c.lambda_minus_ / c, tuned.lambda_minus_, rtol=1e-5)
        one, other = (
            penalised(learner, penalty, kernel="precomputed").fit(A, y)
            for A, penalty in ((K, 0.1), (K * c, 0.1 * c))
        )
    assert_allclose(decision(other, K[:9] * c), decision(one, K[:9]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("c", [1e-140, 1e140])
def test_bad_input_36_scale_of_distances(c: float) -> None:
    one, other = (
        KreinRidge("precomputed_dissimilarity", random_state=0).fit(A, VALUES) for A in (D, D * c)
    )
    assert other.similarity_ == one.similarity_
    assert_allclose(other.predict(D[:9] * c), one.predict(D[:9]), rtol=1e-5)


@every
@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        ("gaussian", {}),
        ("gaussian", {"width": 1.0}),
        ("delta_gauss", {"width": "scale"}),
        ("epanechnikov", {"width": 1.0}),
        ("multiquadric", {"width": 1.0}),
        ("sigmoid", {"gain": 1.0}),
        ("sigmoid", {}),
        ("truncated_l1", {"radius": 1.0}),
        ("polynomial", {}),
        ("euclidean", {}),
        (products, {}),
    ],
)
def test_bad_input_37_kernel_overflows(model: Fit, kernel: Any, params: dict[str, Any]) -> None:
    message = "kernel produced (inf|nan)|out of floating range"
    scale = 3e307 if kernel == "truncated_l1" else 1e200
    fit = model(kernel, kernel_params=params if isinstance(kernel, str) else None)
    with pytest.raises(ValueError, match=message):
        fit.fit(X * scale)
    fit.fit(X * 1e100 if kernel is products else X)
    with pytest.raises(ValueError, match=message):
        fit.transform(X * 1e100 * scale if kernel is products else X * scale)


@both
@pytest.mark.parametrize("kernel", [Gaussian(2.0), products, "linear"])
def test_bad_input_38_float32(model: Fit, kernel: Any) -> None:
    """The same numbers in float64 give the same bits."""
    single = X.astype(np.float32)
    params = {"landmarks": Landmarks(12, core="truncated")}
    one = model(kernel, **params).fit(single)
    two = model(kernel, **params).fit(single.astype(np.float64))
    assert one.transform(single).dtype == np.float64
    assert_array_equal(one.eigenvalues_, two.eigenvalues_)
    assert_array_equal(one.transform(single), two.transform(single.astype(np.float64)))


@every
@pytest.mark.parametrize("kind", [int, bool, np.float16, np.uint8])
def test_bad_input_39_other_numbers(model: Fit, kind: Any) -> None:
    A = (X > 0) if kind is bool else (2 * np.abs(X)).astype(kind)
    one, two = (model(landmarks=5).fit(table) for table in (A, A.astype(np.float64)))
    assert one.transform(A).dtype == np.float64
    assert_array_equal(one.transform(A), two.transform(A.astype(np.float64)))


@every
def test_bad_input_40_dates(model: Fit) -> None:
    dates = (np.datetime64("2020-01-01") + np.arange(30)).reshape(10, 3)
    forms = [
        dates,
        dates - dates[0],
        dates.tolist(),
        [list(row) for row in dates],
        pd.DataFrame(dates, columns=[*"abc"]),
        pd.DataFrame({"a": range(10), "b": pd.date_range("2020", periods=10, tz="UTC")}),
        pl.DataFrame({"a": range(10), "b": dates[:, 0]}),
    ]
    for table in forms:
        with pytest.raises(TypeError):
            model().fit(table)
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        model(products).fit(dates)
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        model("precomputed").fit(dates[:3, :3])
    with pytest.raises(TypeError):
        model().fit(X).transform(dates)


@every
def test_bad_input_41_complex(model: Fit) -> None:
    for kernel in ("gaussian", "precomputed", products):
        good = K if kernel == "precomputed" else X
        with pytest.raises(ValueError, match="Complex data not supported"):
            model(kernel).fit(good + 1j)
        with pytest.raises(ValueError, match="Complex data not supported"):
            model(kernel).fit(good).transform(good + 1j)


SPARSE_KERNELS = [
    Gaussian(2.0), "delta_gauss", "epanechnikov", "multiquadric", "sigmoid", "rbf", "euclidean",
]  # fmt: skip


@every
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix])
def test_bad_input_42_sparse(model: Fit, form: Any) -> None:
    A = np.where(np.abs(X) > 0.7, X, 0)
    for kernel in SPARSE_KERNELS if model in (nystroem, pca) else SPARSE_KERNELS[::3]:
        params = {"landmarks": Landmarks(9, "greedy_kmeans++", core="truncated")}
        one, two = (model(kernel, **params).fit(table) for table in (form(A), A))
        assert_array_equal(one.landmark_indices_, two.landmark_indices_)
        assert_allclose(one.transform(form(A)), two.transform(A), atol=1e-7)
        assert_allclose(one.transform(A), two.transform(A), atol=1e-7)
    assert sp.issparse(one.landmarks_)


@every
@pytest.mark.parametrize("kernel", ["truncated_l1", "braycurtis", "precomputed"])
def test_bad_input_43_sparse_to_a_dense_kernel(model: Fit, kernel: str) -> None:
    A = np.abs(K) if kernel == "precomputed" else np.abs(X)
    message = "Sparse data was passed for X, but dense data is required"
    with pytest.raises(TypeError, match=message):
        model(kernel).fit(sp.csr_array(A))
    fitted = model(kernel).fit(A)
    with pytest.raises(TypeError, match=message):
        fitted.transform(sp.csr_array(A))


def test_bad_input_43_sparse_to_an_object_kernel() -> None:
    with pytest.raises(TypeError, match="X must be a sequence of objects, got csr_array"):
        nystroem("hausdorff").fit(sp.csr_array(X))


@every
def test_bad_input_44_numeric_object_array(model: Fit) -> None:
    for kernel, A in (("gaussian", X), ("precomputed", K)):
        one, two = (model(kernel).fit(table) for table in (A.astype(object), A))
        assert_array_equal(one.transform(A.astype(object)), two.transform(A))


@every
def test_bad_input_45_dict_in_an_object_array(model: Fit) -> None:
    A = X.astype(object)
    A[3, 1] = {"a": 1}
    with pytest.raises(TypeError, match=r"argument must be .* string or a real number"):
        model().fit(A)


@every
def test_bad_input_46_strings(model: Fit) -> None:
    A = np.array([["a", "b"], ["c", "d"]])
    for table in (A, A.tolist(), A.astype(object), pd.DataFrame(A, columns=["x", "y"])):
        with pytest.raises(ValueError, match="could not convert string to float"):
            model().fit(table)


def letters(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


def shapes() -> dict[str, Any]:
    return {
        "list": [X[i : i + 2 + i % 3] for i in range(20)],
        "tuple": tuple(X[i : i + 2] for i in range(20)),
        "3-d array": np.stack([X[i : i + 4] for i in range(20)]),
    }


@every
def test_bad_input_47_sequences_of_objects(model: Fit) -> None:
    words = [f"{i:b}-{'abcdef'[i % 6 :]}" for i in range(20)]
    first = model(pairwise(letters)).fit(words).transform(words)
    forms = [tuple(words), np.array(words), np.array(words, dtype=object), pd.Series(words)]
    for sequence in [*forms, pl.Series(words)]:
        assert_array_equal(model(pairwise(letters)).fit(sequence).transform(sequence), first)
    for sequence in shapes().values():
        fitted = model("hausdorff", landmarks=6).fit(sequence)
        assert len(fitted.transform(sequence)) == 20
        assert not hasattr(fitted, "n_features_in_")


@every
@pytest.mark.parametrize("bad", ["a word", {"a": 1}, {1, 2}, 3, np.array(3), None, iter([1])])
def test_bad_input_47_no_sequence(model: Fit, bad: Any) -> None:
    with pytest.raises(TypeError, match="X must be a sequence of objects, got"):
        model(pairwise(letters)).fit(bad)
    with pytest.raises(ValueError, match=r"object 0 \(of 30\) is an array of shape \(3,\) .*"):
        model("hausdorff").fit(pd.DataFrame(X))


# Names of columns


@every
@pytest.mark.parametrize("kernel", ["gaussian", products])
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_bad_input_48_columns_differ(model: Fit, frame: str, kernel: Any) -> None:
    table = tables(X)[frame]
    fitted = model(kernel).fit(table)
    assert_allclose(fitted.transform(table), model(kernel).fit(X).transform(X), atol=1e-12)
    message = "The feature names should match those that were passed during fit"
    with pytest.raises(ValueError, match=message):
        fitted.transform(table[["x1", "x0", "x2"]])
    other = table.rename({"x0": "y"}) if frame == "polars" else table.rename(columns={"x0": "y"})
    with pytest.raises(ValueError, match=message):
        fitted.transform(other)


@every
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_bad_input_49_array_after_a_frame(model: Fit, frame: str) -> None:
    fitted = model().fit(tables(X)[frame])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Krein"):
        fitted.transform(X)
    if model is nystroem:
        fitted.estimate_error(tables(X)[frame])  # no warning: the names are there


@every
def test_bad_input_50_mixed_names(model: Fit) -> None:
    with pytest.raises(TypeError, match="Feature names are only supported if all input features"):
        model().fit(pd.DataFrame(X, columns=["a", 1, "c"]))


@every
def test_bad_input_51_missing_values_and_categories(model: Fit) -> None:
    missing = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2, 3]})
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(missing)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(pl.DataFrame({"a": [1, None, 3], "b": [1.0, 2, 3]}))
    message = "X must hold numbers, got categories"
    for values in ([1, 2, 1], ["u", "v", "u"]):
        frame = pd.DataFrame({"a": pd.Categorical(values), "b": [1.0, 2, 3]})
        with pytest.raises(ValueError, match=message):
            model().fit(frame)
    categories = pl.Series("a", ["u", "v", "u"], dtype=pl.Categorical)
    with pytest.raises(ValueError, match=message):
        model().fit(pl.DataFrame([categories, pl.Series("b", [1.0, 2, 3])]))


# Shapes


@every
@pytest.mark.parametrize("kernel", ["gaussian", "precomputed", products])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_bad_input_52_matrix(model: Fit, kernel: Any) -> None:
    good = K if kernel == "precomputed" else X
    with pytest.raises(TypeError, match=r"np.matrix is not supported"):
        model(kernel).fit(np.matrix(good))


@every
def test_bad_input_53_dimensions(model: Fit) -> None:
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        model().fit(X[0])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        model().fit(X[None])
    fitted = model().fit(X)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        fitted.transform(X[0])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        fitted.transform(X[None])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        model("precomputed").fit(K[None])


@every
def test_bad_input_54_nothing(model: Fit) -> None:
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model().fit(X[:0])
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\)"):
        model().fit(X[:, :0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model("precomputed").fit(K[:0, :0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model(pairwise(letters)).fit([])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model().fit(X).transform(X[:0])
    with pytest.raises(ValueError, match=r"landmarks must be distinct row numbers in .*got none"):
        model(landmarks=[]).fit(X)


# States and faults


@pytest.mark.parametrize(
    "method",
    ["transform", "eigenvectors", "approximate", "estimate_error", "get_feature_names_out"],
)
def test_bad_input_59_before_fit(method: str) -> None:
    with pytest.raises(NotFittedError, match="This KreinNystroem instance is not fitted yet"):
        getattr(nystroem(), method)(X)
    if method in ("transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError, match="This KreinPCA instance is not fitted yet"):
            getattr(pca(), method)(X)


@learners
def test_bad_input_59_learner_before_fit(learner: Any) -> None:
    y = target_of(learner)
    for method in ("predict", "decision_function"):
        if hasattr(learner, method):
            with pytest.raises(NotFittedError, match=f"This {learner.__name__} instance is not"):
                getattr(learner(), method)(X)
    with pytest.raises(NotFittedError):
        learner().score(X, y)


@every
def test_bad_input_60_generator(model: Fit) -> None:
    one, two, three = (
        model(landmarks=5).set_params(random_state=seed).fit(X).landmark_indices_
        for seed in (np.random.default_rng(4), np.random.default_rng(4), np.random.RandomState(4))
    )
    assert_array_equal(one, two)
    assert len(three) == 5
    with pytest.raises(InvalidParameterError, match="random_state"):
        model().set_params(random_state="seed").fit(X)


def test_bad_input_61_steps_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    three = np.arange(30) % 3
    assert 1 < penalised(KreinSVC, 1e-6).fit(X, three).n_iter_ < hinge.STEPS
    monkeypatch.setattr(hinge, "STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"not converge in 1 steps; increase the penalties"):
        fitted = penalised(KreinSVC, 1e-6).fit(X, three)
    assert fitted.n_iter_ == 1
    assert np.isfinite(fitted.decision_function(X)).all()


def peak_of(call: Callable[[], Any]) -> tuple[str, int]:
    """The text of the MemoryError that a call ends in, and the bytes it had allocated."""
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError) as caught:
            call()
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bad_input_62_memory_budget() -> None:
    many = np.random.default_rng(0).normal(size=(4000, 2))
    kernel = Gaussian(1.0)
    fitted = nystroem(kernel, landmarks=60, resources=Resources("60MB")).fit(many)
    small = nystroem(kernel, landmarks=60).fit(many).set_params(resources=Resources(1e5))
    cases: dict[str, tuple[float, Callable[[], Any]]] = {
        r"4000 landmarks .*needs 384 MB .*is 50 MB; use fewer landmarks or": (
            384e6,
            lambda: nystroem(kernel, landmarks=None, resources=Resources("50MB")).fit(many),
        ),
        r"4000 x 4000 similarities needs 128 MB .*is 60 MB; pass fewer": (
            128e6,
            lambda: fitted.approximate(many),
        ),
        r"a result of 4000 x 60 numbers needs 1.92 MB .*is 100 kB; pass fewer rows": (
            1.92e6,
            lambda: small.transform(many),
        ),
    }
    for message, (needed, call) in cases.items():
        text, peak = peak_of(call)
        assert re.search(message, text), text
        assert peak < needed / 16, message


def test_bad_input_62_memory_budget_of_the_pass() -> None:
    many = np.random.default_rng(0).normal(size=(5000, 2))
    with pytest.raises(MemoryError, match=r"one pass with 10 landmarks needs .* is 100 kB; raise"):
        nystroem(landmarks=Landmarks(10, pool=100), resources=Resources("100kB")).fit(many)
    few = Landmarks(30, core="plain", pool=100)
    with pytest.raises(MemoryError, match=r'"svd" holds all 5000 x 30 .*method="gram", which str'):
        nystroem(landmarks=few, method="svd", resources=Resources("900kB")).fit(many)


@pytest.mark.parametrize("learner", [KreinRidge, KreinSVC, KreinVCRidgeClassifier])
def test_bad_input_62_memory_of_tuning(learner: Any) -> None:
    """All objects are landmarks; given penalties need less."""
    many = np.random.default_rng(0).normal(size=(500, 2))
    y = many[:, 0] if learner is KreinRidge else many[:, 0] > 0
    params = {"kernel": Gaussian(1.0), "resources": Resources(memory_budget="15MB")}
    learner(random_state=0, landmarks=None, **params).fit(many[:40], y[:40])  # imports are no part
    text, peak = peak_of(lambda: learner(random_state=0, landmarks=None, **params).fit(many, y))
    pattern = r"tuning on 5 folds of 500 objects needs 20 MB .*is 15 MB; use fewer landmarks"
    assert re.search(pattern, text), text
    assert peak < 30e6 * 5 / 6  # of what five maps would need
    penalised(learner, landmarks=None, **params).fit(many, y)


@pytest.mark.parametrize("learner", [KreinRidge, KreinSVC])
def test_bad_input_62_memory_of_the_folds(learner: Any) -> None:
    """Each of five folds is decomposed."""
    many = np.random.default_rng(0).normal(size=(500, 2))
    y = many[:, 0] if learner is KreinRidge else many[:, 0] > 0
    params = {"kernel": Gaussian(1.0), "resources": Resources(memory_budget="15MB")}
    text, _ = peak_of(lambda: learner(landmarks=None, cv=5, **params).fit(many, y))
    pattern = r"tuning on 5 folds of 500 objects needs 20 MB .*is 15 MB; use fewer landmarks"
    assert re.search(pattern, text), text


@pytest.mark.parametrize("learner", [KreinRidge, KreinSVC])
def test_bad_input_62_memory_decides_how_many_landmarks_there_are(learner: Any) -> None:
    many = np.random.default_rng(0).normal(size=(500, 2))
    y = many[:, 0] if learner is KreinRidge else many[:, 0] > 0
    fitted = learner(Gaussian(1.0), random_state=0, resources=Resources("15MB")).fit(many, y)
    assert 20 <= fitted.n_landmarks_ <= 250
    assert re.search(r"of 500 objects are landmarks: all 500 would take", fitted.decision_)


def test_bad_input_62_memory_budget_in_words() -> None:
    with pytest.raises(ValueError, match="memory_budget='much' is not understood; pass bytes"):
        nystroem(resources=Resources(memory_budget="much")).fit(X)
    with pytest.raises(InvalidParameterError, match="memory_budget"):
        nystroem(resources=Resources(memory_budget=0)).fit(X)


class Interrupted(Gaussian):
    """A Gaussian kernel during whose evaluation someone presses Ctrl-C."""

    def columns(self, Z: Any) -> Any:
        inner = super().columns(Z)

        def columns(A: Any, out: Any = None) -> Any:
            press()
            return inner(A, out)

        return columns


@every
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.usefixtures("heard")
def test_bad_input_64_ctrl_c(model: Fit, n_jobs: int) -> None:
    """In line and in worker threads: it goes through, and no older fit is left behind."""
    many = np.random.default_rng(0).normal(size=(9000, 2))
    fit = model(landmarks=5, n_jobs=n_jobs).fit(many)
    fit.transform(many[:5])
    with pytest.raises(KeyboardInterrupt):
        fit.set_params(kernel=Interrupted(1.0)).fit(many)
    with pytest.raises(NotFittedError):
        fit.transform(many[:5])
    found = vars(getattr(fit, "learner", fit))
    assert not [name for name in found if name.endswith("_") and name != "n_features_in_"]
    assert fit.set_params(kernel="gaussian").fit(many).transform(many[:5]).shape[0] == 5


@every
def test_bad_input_64_a_fit_that_fails_leaves_nothing(model: Fit) -> None:
    fit = model().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        fit.fit(changed(X, (0, 0), np.nan))
    with pytest.raises(NotFittedError):
        fit.transform(X)


# Sizes


@pytest.mark.parametrize("landmarks", ["auto", 12])
@pytest.mark.parametrize("learner", [*REGRESSORS, KreinRegressor])
def test_bad_input_88_targets_whose_squares_underflow(learner: Any, landmarks: Any) -> None:
    """Targets times a power of two: the same penalties, and predictions times that power."""
    wanted = learner(landmarks=landmarks, random_state=0).fit(X, VALUES)
    for power in (-520, -560, -800, -1000, 300, 400):
        unit = 2.0**power
        found = learner(landmarks=landmarks, random_state=0).fit(X, VALUES * unit)
        assert_allclose(found.lambda_plus_, wanted.lambda_plus_, rtol=1e-6)
        assert_allclose(found.predict(X) / unit, wanted.predict(X), rtol=1e-7, atol=1e-7)
        assert_allclose(found.coef_ / unit, wanted.coef_, rtol=1e-5, atol=1e-7)
        loss = wanted.cv_loss_ * unit * unit
        assert_allclose(found.cv_loss_, loss, rtol=1e-6, atol=5e-324)
        assert_allclose(found.cv_trials_[0, -1], wanted.cv_trials_[0, -1] * unit * unit, rtol=1e-6)
        if hasattr(wanted, "expected_error_"):
            assert_allclose(found.expected_error_, wanted.expected_error_ * unit, rtol=1e-6)


def test_bad_input_88_the_radius_of_tiny_targets() -> None:
    unit = 2.0**-600
    wanted = penalised(KreinVCRidge, radius=0.3).fit(X, VALUES)
    found = penalised(KreinVCRidge, radius=0.3 * unit).fit(X, VALUES * unit)
    assert_allclose(found.radius_, 0.3 * unit, rtol=1e-12)
    assert_allclose(found.predict(X) / unit, wanted.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="the target is constant"):
        KreinVCRidge().fit(X, np.full(len(X), 1e-200))


def test_bad_input_88_similarities_of_tiny_targets_are_compared_in_their_unit() -> None:
    wanted = KreinRidge("manhattan", landmarks=12, random_state=0).fit(X, VALUES)
    found = KreinRidge("manhattan", landmarks=12, random_state=0).fit(X, VALUES * 2.0**-200)
    assert found.similarity_ == wanted.similarity_
    losses = [choice.loss * 2.0**400 for choice in found.choices_]
    assert_allclose(losses, [choice.loss for choice in wanted.choices_], rtol=1e-6)


@pytest.mark.parametrize("learner", [*CLASSIFIERS, KreinClassifier])
def test_bad_input_89_targets_of_very_many_classes(learner: Any) -> None:
    """They are refused before they are made."""
    n, budget = 6000, 10**7
    rows, labels = np.arange(n * 1.0)[:, None], np.arange(n) // 2
    model = learner(Gaussian(1.0), resources=Resources(memory_budget=budget), landmarks=20)
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"6000 x 3000 targets, .* needs 32.5 MB b") as found:
            model.fit(rows, labels)
        assert tracemalloc.get_traced_memory()[1] < budget
    finally:
        tracemalloc.stop()
    assert "merge rare classes" in str(found.value)


@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_bad_input_89_sums_of_very_many_classes() -> None:
    resources = Resources(memory_budget=25 * 10**6)
    params = {"landmarks": np.arange(200), "cv": 3, "resources": resources}
    with pytest.raises(MemoryError, match="sums of 2000 outputs at 200 landmarks needs 32 MB"):
        KreinRidgeClassifier(**params).fit(np.arange(4000.0)[:, None], np.arange(4000) // 2)


@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
@pytest.mark.parametrize("several", [False, True])
def test_bad_input_89_scores_of_very_many_classes(several: bool) -> None:
    """KreinClassifier weighs scores of all objects for all classes: within the budget, or not."""
    n, q, more = 1200, 300, {"landmarks": 50, "random_state": 0}
    rows, labels = np.arange(n * 1.0)[:, None], np.arange(n) % q
    targets = np.eye(q, dtype=int)[labels] if several else labels
    KreinClassifier(Gaussian(1.0), **more).fit(rows[:99], labels[:99] % 2)  # loads and compiles
    needed = stack_bytes(4, n, q, several=several)

    def peak(budget: int) -> int:
        model = KreinClassifier(
            Gaussian(1.0), resources=Resources(memory_budget=budget), time_limit=5, **more
        )
        tracemalloc.start()
        try:
            model.fit(rows, targets)
        finally:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most

    with pytest.raises(MemoryError, match=rf"scores of {n} objects for {q} .* merge rare ones"):
        peak(needed - 1)
    assert peak(int(1.2 * needed)) < 1.2 * needed


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["sigmoid", "gaussian"])
@pytest.mark.parametrize("landmarks", ["auto", 12])
@pytest.mark.parametrize("radius", ["auto", "tuned"])
def test_bad_input_91_penalties_out_of_all_proportion(
    kernel: str, landmarks: Any, radius: str
) -> None:
    """The spread of the predictions is what it should be, without warnings of numpy."""
    for one in (1e-300, 1e-40, 1e300):
        for other in (one, 1.0, 1 / one, "auto", "equal"):
            model = KreinVCRidge(
                kernel, landmarks=landmarks, lambda_plus=one, lambda_minus=other, radius=radius,
                random_state=0,
            )  # fmt: skip
            predicted = model.fit(X, VALUES).predict(X)
            assert_allclose(predicted.std(), model.radius_[0], rtol=1e-3)
    model = KreinVCRidgeClassifier(kernel, lambda_plus=1e-300, lambda_minus=1e300, random_state=0)
    assert model.fit(X, LABELS).score(X, LABELS) > 0.6


def test_bad_input_91_the_smallest_penalties_are_all_alike() -> None:
    found = [
        KreinVCRidge("sigmoid", landmarks=12, lambda_plus=a, lambda_minus=1.0, random_state=0)
        .fit(X, VALUES)
        .predict(X)
        for a in (1e-15, 1e-20, 1e-300)
    ]
    assert_allclose(found[1], found[2], rtol=1e-12)
    assert_allclose(found[0], found[2], rtol=1e-3, atol=1e-3)


def test_bad_input_91_only_the_radius_is_tuned() -> None:
    model = KreinVCRidge(lambda_plus=0.01, lambda_minus=0.1, radius="tuned", random_state=0)
    model.fit(X, VALUES)
    assert (model.lambda_plus_, model.lambda_minus_) == (0.01, 0.1)
    trials = model.cv_trials_
    assert model.cv_loss_ == trials[:, -1].min()
    assert len(np.unique(trials[:, 2])) > 1


@pytest.mark.parametrize("kernel", ["gaussian", "precomputed", "dtw", products])
def test_bad_input_94_masked_entries(kernel: Any) -> None:
    """Whatever is behind the mask is no value."""
    good = K if kernel == "precomputed" else X
    masked = np.ma.masked_array(good, mask=np.zeros(good.shape, bool))
    model = penalised(KreinRidge, kernel=kernel)
    assert_array_equal(model.fit(masked, VALUES).predict(masked), model.predict(good))
    masked.mask[3, 1] = masked.mask[4, 0] = True
    message = r"X is a masked array, and 2 of its entries are masked; .* X.filled"
    for act in (lambda: model.predict(masked), lambda: model.fit(masked, VALUES)):
        with pytest.raises(ValueError, match=message):
            act()


def test_bad_input_94_masked_targets_and_weights() -> None:
    mask = np.arange(30) == 7
    for learner, y in ((KreinRidge, VALUES), (KreinRidgeClassifier, LABELS)):
        with pytest.raises(ValueError, match="y is a masked array, and 1 of its entries"):
            learner().fit(X, np.ma.masked_array(y, mask))
        with pytest.raises(ValueError, match="sample_weight is a masked array"):
            learner().fit(X, y, sample_weight=np.ma.masked_array(np.ones(30), mask))


@pytest.mark.parametrize("learner", [*CLASSIFIERS, KreinClassifier])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", 1], r"y holds labels of several types \(int, str\), of which some are texts"),
        (["a", 1.5], r"y holds labels of several types \(float, str\)"),
        (["a", None], "Input y contains NaN: label 1 is None; every row needs a class"),
        ([0, None], "Input y contains NaN: label 1 is None"),
        (["a", pd.NA], "Input y? ?contains NaN"),
        ([0, np.nan], "Input y contains NaN"),
    ],
)
def test_bad_input_95_labels_of_several_types(learner: Any, labels: Any, message: str) -> None:
    array = np.array(labels * 15, dtype=object)
    for y in (labels * 15, array):
        with pytest.raises(ValueError, match=message):
            learner().fit(X, y)
    if labels[0] == "a":  # a column of texts of pandas has nan where None was
        message = message.replace("is None", "is (None|nan)")
    with pytest.raises(ValueError, match=message):
        learner().fit(X, pd.Series(array))


@pytest.mark.parametrize("learner", [*CLASSIFIERS, KreinClassifier])
def test_bad_input_95_labels_of_several_types_have_no_score(learner: Any) -> None:
    labels = np.array(["a", "b"] * 15, dtype=object)
    model = learner().fit(X, labels)
    for bad, message in ((None, "label 3 is None; every row needs a class"), (1, r"\(int, str\)")):
        y = labels.copy()
        y[3] = bad
        for form in (y, y.tolist()):
            with pytest.raises(ValueError, match=message):
                model.score(X, form)


@pytest.mark.parametrize("labels", [["a", None], ["a", 1], [0, None], ["a", np.nan]])
def test_bad_input_95_labels_of_several_types_are_not_evaluated(labels: list[Any]) -> None:
    """Also if the task is to be told from them."""
    for y in (labels * 15, np.array(labels * 15, dtype=object)):
        with pytest.raises(ValueError, match=r"Input y contains NaN|labels of several types"):
            evaluate(X, y, "gaussian", learners=["KreinRidgeClassifier"])
