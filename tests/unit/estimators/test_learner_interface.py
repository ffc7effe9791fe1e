"""Learners among scikit-learn's tools: parameters, pipelines, searches, tables, labels, shapes."""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    SimilarityRidge,
    SimilarityRidgeClassifier,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels import DeltaGauss, Gaussian
from tests.models import REGRESSORS, classifiers, learners, penalised, regressors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=80)
TWO = (X[:, 0] * X[:, 1] > 0).astype(int)
THREE = np.digitize(VALUES, [-0.6, 0.6])
NEW = RNG.normal(size=(25, 3))


def target_of(learner: Any, n_classes: int = 2) -> Any:
    if learner in REGRESSORS:
        return VALUES
    return TWO if n_classes == 2 else THREE


def scores(model: Any, objects: Any) -> Any:
    return getattr(model, "decision_function", model.predict)(objects)


# Parameters


@learners
def test_parameters_go_round(learner: Any) -> None:
    model = learner(DeltaGauss(2.0), landmarks=0.3, similarity="exp", lambda_plus=0.5, cv=3)
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    assert copy.kernel is not model.kernel
    assert copy.get_params()["kernel__width"] == 2.0
    copy.set_params(kernel__width=7.0, lambda_plus="auto", random_state=4)
    assert (copy.kernel.width, copy.lambda_plus, copy.random_state) == (7.0, "auto", 4)
    assert model.kernel.width == 2.0
    assert repr(learner(**model.get_params(deep=False))) == repr(model)
    with pytest.raises(ValueError, match="Invalid parameter 'alpha' for estimator"):
        model.set_params(alpha=1.0)


@learners
def test_fit_changes_no_parameter(learner: Any) -> None:
    model = learner(random_state=0)
    before = repr(model.get_params())
    model.fit(X, target_of(learner))
    assert repr(model.get_params()) == before


@learners
def test_names_are_parameters_and_no_methods(learner: Any) -> None:
    """A parameter called like a method, say transform, would make another kind of estimator."""
    methods = {"fit", "predict", "score", "transform", "fit_transform", "fit_predict"}
    assert not methods & {*learner().get_params()}
    assert not hasattr(learner(), "transform")


@learners
@pytest.mark.parametrize("kernel", [DeltaGauss(2.0), "euclidean", "precomputed"])
def test_pickle(learner: Any, kernel: Any) -> None:
    wide = np.random.default_rng(1).normal(size=(400, 3))
    wide, new = (wide @ wide.T, wide[:9] @ wide.T) if kernel == "precomputed" else (wide, NEW)
    y = wide[:, 0] if learner in REGRESSORS else wide[:, 0] > 0
    model = penalised(learner, kernel=kernel, landmarks=20, similarity="squared").fit(wide, y)
    text = pickle.dumps(model)
    assert_array_equal(scores(pickle.loads(text), new), scores(model, new))
    assert len(text) < 40_000  # landmarks and coefficients, no data


@learners
def test_representations(learner: Any) -> None:
    model = learner(Gaussian(3.0), lambda_plus=0.5)
    assert learner.__name__ in model._repr_html_()
    assert repr(model) == f"{learner.__name__}(kernel=Gaussian(width=3.0), lambda_plus=0.5)"
    assert learner.__name__ in model.fit(X, target_of(learner))._repr_html_()


# Searches and pipelines


@learners
def test_grid_search_over_a_penalty(learner: Any) -> None:
    y, grid = target_of(learner), [1e-4, 1e-2, 10.0]
    model = penalised(learner, kernel=Gaussian(3.0))
    search = GridSearchCV(model, {"lambda_plus": grid}, cv=3).fit(X, y)
    by_hand = []
    for value in grid:
        one = clone(model).set_params(lambda_plus=value)
        by_hand.append(np.mean(cross_validate(one, X, y, cv=3)["test_score"]))
    assert_allclose(search.cv_results_["mean_test_score"], by_hand)
    assert search.best_params_ == {"lambda_plus": grid[int(np.argmax(by_hand))]}
    best = clone(model).set_params(**search.best_params_).fit(X, y)
    assert_array_equal(search.predict(NEW), best.predict(NEW))


@learners
def test_grid_search_over_a_width(learner: Any) -> None:
    model = penalised(learner, 1e-3, kernel=Gaussian())
    search = GridSearchCV(model, {"kernel__width": [1e-3, 4.0, 1e4]}, cv=3)
    search.fit(X, target_of(learner))
    assert search.best_params_ == {"kernel__width": 4.0}
    assert search.best_estimator_.kernel_.width_ == 4.0


@learners
def test_pipeline(learner: Any) -> None:
    y, scaler = target_of(learner), StandardScaler().fit(X)
    pipe = make_pipeline(StandardScaler(), penalised(learner)).set_output(transform="pandas")
    pipe.fit(X, y)
    alone = penalised(learner).fit(scaler.transform(X), y)
    assert_allclose(scores(pipe, NEW), scores(alone, scaler.transform(NEW)), rtol=1e-12)
    assert not hasattr(pipe, "transform")


WORDS = ["".join(RNG.choice([*"abcd"], size=RNG.integers(3, 9))) for _ in range(60)]
COUNTS = np.array([word.count("a") for word in WORDS])


def letters_apart(a: str, b: str) -> float:
    return float(sum(abs(a.count(letter) - b.count(letter)) for letter in "abcd"))


APART = np.array([[letters_apart(a, b) for b in WORDS] for a in WORDS])


@learners
def test_cross_validation_of_words_is_that_of_their_distances(learner: Any) -> None:
    y = COUNTS.astype(float) if learner in REGRESSORS else (COUNTS > 1).astype(int)
    functions, matrix = (
        cross_validate(
            penalised(learner, 1e-3, kernel=kernel, similarity="exp"), objects, y, cv=KFold(3),
            error_score="raise", return_train_score=True,
        )
        for kernel, objects in (
            (dissimilarity(pairwise(letters_apart)), WORDS),
            ("precomputed_dissimilarity", APART),
        )
    )  # fmt: skip
    assert_allclose(functions["test_score"], matrix["test_score"], rtol=1e-9)
    assert_allclose(functions["train_score"], matrix["train_score"], rtol=1e-9)
    assert functions["test_score"].min() > 0.5


@pytest.mark.parametrize("learner", [KreinRidge, KreinSVC])
def test_tuned_cross_validation_of_words_is_that_of_their_distances(learner: Any) -> None:
    """Folds, transformation and penalties are the same too, if no words are equal.

    Equal words are left out together, and a matrix does not say which objects are equal.
    """
    _, rows = np.unique(WORDS, return_index=True)
    counts = COUNTS[rows]
    y = counts.astype(float) if learner is KreinRidge else (counts > 1).astype(int)
    functions, matrix = (
        cross_validate(learner(kernel, random_state=0), objects, y, cv=KFold(2))["test_score"]
        for kernel, objects in (
            (dissimilarity(pairwise(letters_apart)), [WORDS[row] for row in rows]),
            ("precomputed_dissimilarity", APART[np.ix_(rows, rows)]),
        )
    )
    assert_allclose(functions, matrix, rtol=1e-9)


@learners
def test_a_precomputed_similarity_is_sliced_on_both_axes(learner: Any) -> None:
    def product(A: Any, B: Any) -> Any:
        return np.tanh(A @ B.T - 0.3)  # indefinite

    model, y = penalised(learner), target_of(learner)
    method = "predict" if learner in REGRESSORS else "decision_function"
    by_function, by_matrix = (
        cross_val_predict(model.set_params(kernel=kernel), objects, y, cv=4, method=method)
        for kernel, objects in ((product, X), ("precomputed", product(X, X)))
    )
    assert_allclose(by_matrix, by_function, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_probabilities_agree_with_decisions(ensemble: bool) -> None:
    train, test = np.arange(80) < 50, np.arange(80) >= 50
    svc = KreinSVC(Gaussian(3.0), random_state=0)
    model = CalibratedClassifierCV(svc, ensemble=ensemble, cv=3).fit(X[train], TWO[train])
    shares = model.predict_proba(X[test])
    assert_allclose(shares.sum(axis=1), 1)
    of_one = [part.estimator.decision_function(X[test]) for part in model.calibrated_classifiers_]
    if ensemble:  # one model a fold
        for part, f in zip(model.calibrated_classifiers_, of_one, strict=True):
            own = roc_auc_score(TWO[test], part.predict_proba(X[test])[:, 1])
            assert own == roc_auc_score(TWO[test], f) > 0.5
    else:
        auc = roc_auc_score(TWO[test], shares[:, 1])
        alone = svc.fit(X[train], TWO[train]).decision_function(X[test])
        assert auc == roc_auc_score(TWO[test], alone) > 0.5


@learners
def test_weights_are_routed(learner: Any) -> None:
    y, w = target_of(learner), np.linspace(0.1, 2, 80)
    alone = penalised(learner).fit(X, y, sample_weight=w)
    with config_context(enable_metadata_routing=True):
        asked = penalised(learner).set_fit_request(sample_weight=True)
        pipe = make_pipeline(asked).fit(X, y, sample_weight=w)
        assert_array_equal(scores(pipe, NEW), scores(alone, NEW))
        routed = asked.set_score_request(sample_weight=True)
        found = cross_validate(routed, X, y, cv=KFold(2), params={"sample_weight": w})
    halves = [slice(0, 40), slice(40, 80)]
    for score, test, train in zip(found["test_score"], halves, halves[::-1], strict=True):
        model = penalised(learner).fit(X[train], y[train], sample_weight=w[train])
        assert score == model.score(X[test], y[test], sample_weight=w[test])


# Tables and types


@learners
def test_data_frames(learner: Any) -> None:
    y, names = target_of(learner), ["a", "b", "c"]
    expected = scores(penalised(learner).fit(X, y), NEW)
    forms = {
        pd.DataFrame: (pd.DataFrame(X, columns=names), pd.Series(y), {"columns": names}),
        pl.DataFrame: (pl.DataFrame(X, schema=names), pl.Series(y), {"schema": names}),
    }
    for form, (table, column, named) in forms.items():
        model = penalised(learner).fit(table, column)
        assert_array_equal(model.feature_names_in_, names)
        assert_allclose(scores(model, form(NEW, **named)), expected, rtol=1e-12)


@pytest.mark.parametrize("learner", [KreinRidge, KreinSVC])
def test_a_frame_of_distances(learner: Any) -> None:
    D, y = cdist(X, X), target_of(learner)
    names = [f"x{i}" for i in range(80)]
    model = penalised(learner, kernel="precomputed_dissimilarity", similarity="exp")
    expected = scores(clone(model).fit(D, y), cdist(NEW, X))
    model.fit(pd.DataFrame(D, columns=names, index=names), y)
    found = scores(model, pd.DataFrame(cdist(NEW, X), columns=names))
    assert_allclose(found, expected, rtol=1e-12)


@learners
def test_single_precision(learner: Any) -> None:
    """The same numbers in float64 give the same model."""
    y = target_of(learner)
    single, new = X.astype(np.float32), NEW.astype(np.float32)
    found = scores(penalised(learner).fit(single, y), new)
    double = penalised(learner).fit(single.astype(np.float64), y)
    assert found.dtype == np.float64
    assert_array_equal(found, scores(double, new.astype(np.float64)))


@learners
def test_constant_features(learner: Any) -> None:
    y, wide = target_of(learner), np.column_stack([X, np.full(80, 3.0), np.zeros(80)])
    kernel, new = Gaussian(3.0), np.column_stack([NEW, np.full(25, 3.0), np.zeros(25)])
    one = penalised(learner, kernel=kernel).fit(X, y)
    other = penalised(learner, kernel=kernel).fit(wide, y)
    assert_allclose(scores(other, new), scores(one, NEW), rtol=1e-6, atol=1e-9)


# Labels


@classifiers
@pytest.mark.parametrize(
    "names",
    [
        ["cat", "dog", "eel"],
        np.array(["cat", "dog", "eel"], dtype=object),
        [-7, -1, 3],
        [False, True],
        [-1, 1],
        [0.0, 1.0],
    ],
)
def test_labels_of_any_kind(learner: Any, names: Any) -> None:
    names = np.asarray(names)
    numbers = TWO if len(names) == 2 else THREE
    one = penalised(learner).fit(X, numbers)
    other = penalised(learner).fit(X, names[numbers])
    assert_array_equal(other.classes_, names)
    assert other.predict(NEW).dtype == names.dtype
    assert_array_equal(other.predict(NEW), names[one.predict(NEW)])
    assert_array_equal(scores(other, NEW), scores(one, NEW))
    assert other.score(X, names[numbers]) == np.mean(one.predict(X) == numbers)
    as_list = penalised(learner).fit(X.tolist(), names[numbers].tolist())
    assert_array_equal(scores(as_list, NEW), scores(one, NEW))


@classifiers
@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_a_class_of_one(learner: Any, tuned: bool) -> None:
    """It is in the validation part of a fold, or in its training part, and never in both."""
    params: dict[str, Any] = {"kernel": Gaussian(1.0)}
    for y in (changed(TWO, 2), changed(np.zeros(80, dtype=int), 1)):
        model = learner(random_state=0, **params) if tuned else penalised(learner, 1e-6, **params)
        model.fit(X, y)
        assert np.isfinite(scores(model, NEW)).all()
        if not tuned:
            assert_array_equal(model.predict(X), y)


def changed(y: Any, label: int) -> Any:
    y = y.copy()
    y[17] = label
    return y


@classifiers
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_two_objects_a_class(learner: Any, n_classes: int, tuned: bool) -> None:
    y = np.repeat(np.arange(n_classes), 2)
    objects = 10.0 * y[:, None] + X[: len(y), :2]
    params = {"kernel": Gaussian(30.0)}
    model = learner(random_state=0, **params) if tuned else penalised(learner, 1e-6, **params)
    model.fit(objects, y)
    assert np.isfinite(scores(model, objects)).all()
    if not tuned:
        assert_array_equal(model.predict(objects + 0.1), y)


# Fitting again


@learners
def test_fitting_twice_is_fitting_once(learner: Any) -> None:
    y = target_of(learner, 3)[:50]
    once = learner(random_state=3).fit(X[:50], y)
    twice = learner(random_state=3).fit(X[:30], y[:30]).fit(X[:50], y)
    assert_array_equal(scores(twice, NEW), scores(once, NEW))
    assert sorted(vars(twice)) == sorted(vars(once))


@learners
def test_nothing_of_an_older_fit_is_left(learner: Any) -> None:
    y, model = target_of(learner), learner("euclidean", random_state=0)
    assert model.fit(X, y).similarity_ in {choice.similarity for choice in model.choices_}
    assert len(model.cv_trials_)
    model.set_params(kernel="gaussian", lambda_plus=0.1)
    if "lambda_minus" in model.get_params():
        model.set_params(lambda_minus=0.1)
    model.fit(X, y)
    assert not {"similarity_", "choices_", "cv_trials_", "cv_loss_"} & {*vars(model)}


@learners
def test_a_fit_that_fails_leaves_nothing(learner: Any) -> None:
    y = target_of(learner)
    model, params = penalised(learner), {*vars(penalised(learner))}
    cases = [
        (lambda: model.fit(X, y[:-1]), "inconsistent numbers of samples"),
        (lambda: model.fit(X, y, sample_weight=-np.ones(80)), "Negative values"),
        (lambda: model.fit(X * np.nan, y), "Input X contains NaN"),
        (lambda: model.set_params(cv=KFold(200), lambda_plus="auto").fit(X, y), "n_splits=200"),
    ]
    for fit, message in cases:
        model.set_params(cv=None, lambda_plus=0.01).fit(X, y).predict(NEW)
        with pytest.raises(ValueError, match=message):
            fit()
        with pytest.raises(NotFittedError):
            model.predict(NEW)
        assert not {name for name in {*vars(model)} - params if name.endswith("_")}


# Attributes


@regressors
@pytest.mark.parametrize("q", [None, 1, 2])
@pytest.mark.parametrize("n_landmarks", [None, 15])
def test_shapes_of_regressors(learner: Any, q: int | None, n_landmarks: Any) -> None:
    """As of LinearRegression and KernelRidge: a y of one dimension takes one off everything."""
    y = VALUES if q is None else np.column_stack([VALUES, X[:, 0]])[:, :q]
    model = penalised(learner, kernel=DeltaGauss(4.0), landmarks=n_landmarks).fit(X, y)
    linear, dual = LinearRegression().fit(X, y), KernelRidge().fit(X, y)
    m, r = model.n_landmarks_, model.rank_
    assert m == (n_landmarks or 80)
    assert model.coef_.shape == (*linear.coef_.shape[:-1], r)
    assert model.dual_coef_.shape == (m, *dual.dual_coef_.shape[1:])
    assert np.shape(model.intercept_) == np.shape(linear.intercept_)
    assert model.predict(NEW).shape == dual.predict(NEW).shape == (25, *y.shape[1:])
    assert model.score(NEW, model.predict(NEW)) == 1.0
    similarities = model.kernel_(NEW, model.landmarks_)
    assert_allclose(similarities @ model.dual_coef_ + model.intercept_, model.predict(NEW))
    without = penalised(learner, fit_intercept=False).fit(X, y)
    assert_array_equal(without.intercept_, np.zeros_like(model.intercept_))


@classifiers
@pytest.mark.parametrize(("n_classes", "q"), [(2, 1), (3, 3), (4, 4)])
def test_shapes_of_classifiers(learner: Any, n_classes: int, q: int) -> None:
    y = np.arange(80) % n_classes
    model = penalised(learner, kernel=DeltaGauss(4.0), landmarks=15)
    r, m = model.fit(X, y).rank_, 15
    assert model.coef_.shape == (q, r)
    assert model.dual_coef_.shape == (m, q)
    assert model.intercept_.shape == (q,)
    f = model.decision_function(NEW)
    assert f.shape == ((25,) if n_classes == 2 else (25, n_classes))
    best = (f > 0).astype(int) if n_classes == 2 else np.argmax(f, axis=1)
    assert_array_equal(model.predict(NEW), model.classes_[best])
    assert model.predict(NEW).shape == (25,)
    by_landmarks = model.kernel_(NEW, model.landmarks_) @ model.dual_coef_ + model.intercept_
    assert_allclose(by_landmarks[:, 0] if n_classes == 2 else by_landmarks, f)


def documented(learner: Any) -> set[str]:
    """The attributes that the docstring names, and those of the docstrings it refers to."""
    text = inspect.getdoc(learner) or ""
    section = re.search(r"Attributes\n-+\n(.*?)(\n\n|$)", text, re.S)
    lines = section[1] if section else ""
    names = {name for head in re.findall(r"^(\S.*?) :", lines, re.M) for name in head.split(", ")}
    for other in re.findall(r"others : as in ``(\w+)``", text):
        names |= documented(globals()[other])
    return names - {"others"}


def fitted_forms(learner: Any) -> list[Any]:
    """Fits that between them set every attribute of an l2 penalty."""
    few, y = X[:40], target_of(learner, 3)[:40]
    widths = [{"width": 1.0}, {"width": 4.0}]
    return [
        learner(random_state=0).fit(pd.DataFrame(few, columns=["a", "b", "c"]), y),
        learner("euclidean", random_state=0).fit(few, y),
        learner("gaussian", random_state=0, kernel_params=widths).fit(few, y),
    ]


@learners
def test_attributes_are_those_documented(learner: Any) -> None:
    of_sparse = {"lambda_l1_", "l1_path_", "n_active_landmarks_"}
    found = {name for model in fitted_forms(learner) for name in vars(model)}
    found = {name for name in found if name.endswith("_") and not name.startswith("_")}
    absent = {"signature_", "eigenvalues_", "lambda_minus_"}
    if learner in (SimilarityRidge, SimilarityRidgeClassifier):
        assert not absent & found
    assert documented(learner) - of_sparse == found - of_sparse


@regressors
def test_score_is_r2(learner: Any) -> None:
    model = penalised(learner).fit(X, VALUES)
    assert model.score(X, VALUES) == r2_score(VALUES, model.predict(X))
    assert KreinVCRidge.score is KreinRidge.score


def test_known_classes_are_kept_in_order() -> None:
    model = KreinRidgeClassifier(random_state=0).fit(X, np.array(["b", "a"])[TWO])
    assert model.classes_.tolist() == ["a", "b"]
    f = KreinRidgeClassifier(random_state=0).fit(X, TWO).decision_function(NEW)
    assert_allclose(model.decision_function(NEW), -f, rtol=1e-5, atol=1e-7)
