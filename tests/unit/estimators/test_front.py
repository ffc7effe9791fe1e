"""The estimators to try first: what they decide, and what they say about it."""

from __future__ import annotations

import inspect
import re
import time
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.model_selection import PredefinedSplit

from kreinlearn import (
    KreinClassifier,
    KreinRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    Landmarks,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels import Gaussian
from kreinlearn.learn.combination import Combination
from kreinlearn.learn.folds import rounds_of_folds
from kreinlearn.learn.neighbours import NEIGHBOURS
from kreinlearn.learn.stack import fit_stack, score_range
from tests.unit.estimators.first import (
    EPS,
    LABELS,
    LEFT_OUT,
    NEW,
    PARTS,
    THREE,
    VALUES,
    N,
    X,
    classes,
    classifier,
    distances,
    front,
    regressor,
    scores,
    similarity,
    target_of,
)

# The decision, by its definition


def neighbour_scores(D: Any, labels: Any, n_classes: int, floor: float) -> Any:
    """-log of the mean distance to the k nearest of each class: (K, n, q); inf is no neighbour."""
    found = np.empty((len(NEIGHBOURS), len(D), n_classes))
    for i, row in enumerate(D):
        for c in range(n_classes):
            nearest = np.sort(row[(labels == c) & np.isfinite(row)])
            for j, k in enumerate(NEIGHBOURS):
                found[j, i, c] = -np.log(nearest[:k].mean() + floor)
    return found


def floor_of(D: Any) -> float:
    return float(1e-3 * np.median(D[~np.eye(len(D), dtype=bool)]))


def columns_of(f: Any) -> Any:
    """One score per class, where two classes share one column."""
    f = f.reshape(len(f), -1)
    return np.hstack([-f, f]) if f.shape[1] == 1 else f


def weighted_parts(model: Any, krein: Any, near: Any) -> Any:
    assert [*model.part_weights_] == PARTS
    w = list(model.part_weights_.values())
    clipped = columns_of(np.clip(krein, *model._range))
    return w[0] * clipped + sum(a * part for a, part in zip(w[1:], near, strict=True))


def assert_decides(model: Any, given: Any, expected: Any) -> None:
    """Decision values, probabilities and labels are those of the weighted sum of parts."""
    size = 1 + np.abs(expected).max()
    atol = 10 * N * EPS * (size + np.abs(model.dual_coef_).sum(axis=0).max())
    q = len(model.classes_)
    shown = expected[:, 1] - expected[:, 0] if q == 2 else expected
    assert_allclose(model.decision_function(given), shown, rtol=0, atol=atol)
    P = model.predict_proba(given)
    assert_allclose(P, softmax(expected, axis=1), rtol=0, atol=2 * atol)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=q * EPS)
    assert_array_equal(model.predict(given), model.classes_[P.argmax(axis=1)])


@classes
def test_of_similarities_the_decision_is_the_weighted_sum_of_its_parts(labels: str) -> None:
    y = LABELS[labels]
    K, K_new = similarity(X, X), similarity(NEW, X)
    model = classifier("precomputed").fit(K, y)
    krein = K_new @ model.dual_coef_ + model.intercept_
    D, D_new = K.max() - K, np.maximum(K.max() - K_new, 0)
    numbers = np.searchsorted(model.classes_, y)
    near = neighbour_scores(D_new, numbers, len(model.classes_), floor_of(D))
    assert_decides(model, K_new, weighted_parts(model, krein, near))


@classes
@pytest.mark.parametrize("landmarks", [None, np.arange(7, 40)[::-1]])
def test_of_distances_the_decision_is_the_weighted_sum_of_its_parts(
    labels: str, landmarks: Any
) -> None:
    y = LABELS[labels]
    D, D_new = distances(X, X), distances(NEW, X)
    model = classifier("precomputed_dissimilarity", landmarks=landmarks).fit(D, y)
    same = {"lambda_plus": model.lambda_plus_, "lambda_minus": model.lambda_minus_}
    paper = KreinRidgeClassifier(
        "precomputed_dissimilarity", similarity=model.similarity_, landmarks=landmarks,
        **same,
    ).fit(D, y)  # fmt: skip
    Z = model.landmark_indices_
    numbers = np.searchsorted(model.classes_, y)[Z]
    near = neighbour_scores(D_new[:, Z], numbers, len(model.classes_), floor_of(D[Z][:, Z]))
    assert_decides(model, D_new, weighted_parts(model, paper.decision_function(D_new), near))
    assert_array_equal(model.predict_proba(D_new[:, Z]), model.predict_proba(D_new))


@pytest.mark.parametrize("landmarks", ["auto", 15, 45])
@classes
def test_weights_are_not_negative_and_errors_are_shares(labels: str, landmarks: Any) -> None:
    model = classifier(landmarks=landmarks).fit(X, LABELS[labels])
    assert [*model.part_weights_] == PARTS
    assert min(model.part_weights_.values()) >= 0
    assert max(model.part_weights_.values()) > 0
    assert 0 < model.expected_error_ < 0.5
    assert 0 < model.expected_error_std_ < 0.1


# Expected errors


class Part(NamedTuple):
    """What models of a part of the objects say: of themselves, and of the others."""

    train: Any
    valid: Any
    inner: Any  # scores of the training part, by models of its own folds
    scores: Any  # of the others


def of_folds(paper: Any, y: Any, folds: Any, penalties: Any, rows: Any = None) -> Any:
    """Krein scores of objects by refits without their fold; the mean over all rounds."""
    rows = np.arange(N) if rows is None else rows
    total = []
    for numbers in np.reshape(folds, (len(rows), -1)).T:
        found = [np.zeros(0)] * len(rows)
        for k in np.unique(numbers):
            train, valid = rows[numbers != k], rows[numbers == k]
            model = paper(similarity, landmarks=None, **penalties).fit(X[train], y[train])
            for place, row in zip(np.flatnonzero(numbers == k), X[valid], strict=True):
                found[place] = np.ravel(scores(model, row[None]))
        total.append(found)
    return np.mean(total, axis=0)


def found_anew(paper: Any, y: Any, labels: Any) -> list[Part]:
    """Everything found anew without each third of the objects, in folds that know no labels."""
    (outer,) = rounds_of_folds(N, None, None, 1, 3)
    parts = []
    for k in range(3):
        train, valid = np.flatnonzero(outer != k), np.flatnonzero(outer == k)
        of_part = None if labels is None else labels[train]
        (folds,) = rounds_of_folds(len(train), of_part, None, 1)
        model = paper(similarity, landmarks=None, cv=PredefinedSplit(folds))
        model.fit(X[train], y[train])
        inner = of_folds(paper, y, folds, penalties_of(model), train)
        outside = scores(model, X[valid]).reshape(len(valid), -1)
        parts.append(Part(train, valid, inner, outside))
    return parts


def penalties_of(model: Any) -> dict[str, float]:
    return {"lambda_plus": model.lambda_plus_, "lambda_minus": model.lambda_minus_}


def test_the_expected_error_of_a_regression_is_that_of_everything_found_anew() -> None:
    model = regressor(similarity).fit(X, VALUES)
    left = of_folds(KreinRidge, VALUES, model.folds_, penalties_of(model))
    squares = np.square(left[:, 0] - VALUES)
    outer, inner = np.empty(N), np.zeros(N)
    for part in found_anew(KreinRidge, VALUES, None):
        outer[part.valid] = np.square(part.scores[:, 0] - VALUES[part.valid])
        inner[part.train] += np.square(part.inner[:, 0] - VALUES[part.train]) / 2
    believed = squares.mean()
    mean = min(believed * outer.mean() / inner.mean(), max(outer.mean(), believed))
    size = np.abs(VALUES - VALUES.mean()).max()
    assert_allclose(model.expected_error_, np.sqrt(mean), rtol=0, atol=LEFT_OUT * size)
    relative = squares / believed + outer / outer.mean() - inner / inner.mean()
    error = relative.std() / np.sqrt(N) * np.sqrt(mean) / 2
    assert_allclose(model.expected_error_std_, error, rtol=0, atol=4 * LEFT_OUT * size)
    assert believed <= model.cv_loss_  # the mean of two predictions is nearer than they are


@classes
def test_the_expected_error_of_a_classification_is_that_of_everything_found_anew(
    labels: str,
) -> None:
    y = LABELS[labels]
    model = classifier(similarity).fit(X, y)
    numbers, q = np.searchsorted(model.classes_, y), len(model.classes_)

    def paper(*args: Any, **params: Any) -> Any:
        return KreinRidgeClassifier(*args, **params)

    def parts_of(krein: Any, rows: Any, train: Any, clipped: Any) -> Any:
        """Scores of some objects by least squares and by their neighbours among others."""
        K = similarity(X, X)
        D = K[np.ix_(train, train)].max() - K[np.ix_(rows, train)]
        among = K[np.ix_(train, train)].max() - K[np.ix_(train, train)]
        D[rows[:, None] == train] = np.inf
        near = neighbour_scores(np.maximum(D, 0), numbers[train], q, floor_of(among))
        return np.stack([columns_of(np.clip(krein, *clipped)), *near])

    parts = found_anew(paper, y, numbers)
    unseen, outer, inner = np.empty((N, 1 if q == 2 else q)), np.empty(N), np.zeros(N)
    for part in parts:
        unseen[part.valid] = part.scores
        limits = score_range(part.inner, np.ones(len(part.train)))
        found = parts_of(part.inner, part.train, part.train, (-np.inf, np.inf))
        stack = fit_stack(found, numbers[part.train])
        for rows, krein in ((part.train, part.inner), (part.valid, part.scores)):
            sums = stack.scores(parts_of(krein, rows, part.train, limits))
            wrong = sums.argmax(axis=1) != numbers[rows]
            if rows is part.train:
                inner[rows] += wrong / 2
            else:
                outer[rows] = wrong
    everyone = np.arange(N)
    left = of_folds(paper, y, model.folds_, penalties_of(model))
    both, twice = np.concatenate([left, unseen]), np.tile(everyone, 2)
    limits = score_range(both, np.full(2 * N, 0.5))
    assert_allclose(model._range, limits, rtol=0, atol=LEFT_OUT * np.abs(both).max())
    found = parts_of(both, twice, everyone, (-np.inf, np.inf))
    weights = fit_stack(found, numbers[twice], np.full(2 * N, 0.5)).weights
    assert_allclose([*model.part_weights_.values()], weights, rtol=0.01, atol=0.01)
    weighed = fit_stack(parts_of(left, everyone, everyone, (-np.inf, np.inf)), numbers)
    limits = score_range(left, np.ones(N))
    total = weighed.scores(parts_of(left, everyone, everyone, limits))
    each = (total.argmax(axis=1) != numbers) + outer - inner
    # one object of each part might be decided by rounding
    assert model.expected_error_ == pytest.approx(max(each.mean(), 0.0), abs=1.01 / N)
    error = max(each.std() / np.sqrt(N), 1.5 / N)
    assert model.expected_error_std_ == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize("landmarks", [None, 60, 200])
def test_labels_that_mean_nothing_are_not_expected_to_be_predicted(landmarks: Any) -> None:
    """Landmarks that are left out are not their own neighbours.

    By chance half of 240 objects are wrong, with a standard deviation of 3.2 %.
    """
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(240, 3)), rng.permutation(240) % 2
    assert classifier(landmarks=landmarks).fit(rows, labels).expected_error_ > 0.5 - 4 * 0.032


# Few objects, equal objects


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("given", ["rows", "objects"])
@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_one_object_per_class_is_enough_to_tell_which_is_nearest(n: int, given: str) -> None:
    x = np.arange(float(n))[:, None]
    landmarks = None if given == "rows" else x + 0.05
    model = classifier(Gaussian(1.0), landmarks=landmarks).fit(x, np.arange(n))
    assert_array_equal(model.predict(x + 0.1), np.arange(n))
    P = model.predict_proba(x)
    assert_allclose(P, 1 / n, rtol=0, atol=1e-4)  # nothing is known about objects left out
    assert model.expected_error_ >= 0.5


@pytest.mark.filterwarnings("ignore:no dimension is left")
@pytest.mark.parametrize("kernel", ["gaussian", "euclidean", "levenshtein"])
def test_of_equal_objects_the_larger_class_is_predicted(kernel: str) -> None:
    rows: Any = ["a"] * 20 if kernel == "levenshtein" else np.ones((20, 2))
    y = np.array([0] * 5 + [1] * 15)
    model = classifier(kernel).fit(rows, y)
    assert_array_equal(model.predict(rows), 1)
    assert model.expected_error_ == pytest.approx(0.25, rel=4 * EPS)
    P = model.predict_proba(rows)
    assert (P[:, 1] > 0.6).all()
    assert (P[:, 1] < 0.9).all()


@pytest.mark.parametrize("landmarks", ["auto", 10, 50])
def test_a_constant_target(landmarks: Any) -> None:
    model = regressor(landmarks=landmarks).fit(X, np.full(N, 3.0))
    assert_array_equal(model.predict(NEW), 3.0)
    assert model.expected_error_ == model.expected_error_std_ == 0


@front
def test_too_few_objects_are_refused_with_a_remedy(learner: Any) -> None:
    y = target_of(learner)
    few = r"n_samples=1 of positive weight.* at least two, or take KreinRidge"
    few = few if learner is KreinRegressor else "at least two classes"
    with pytest.raises(ValueError, match=few):
        learner().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=few):
        learner().fit(X, y, np.eye(N)[0])
    with pytest.raises(ValueError, match="requires y to be passed"):
        learner().fit(X, None)


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        classifier().fit(X, np.zeros(N))


@pytest.mark.parametrize("n", [3, 4])
def test_an_object_alone_in_its_class_is_told_where_no_part_predicts_anything(n: int) -> None:
    """All distances are equal. Of four objects the weight of the Krein part was once 2e-16."""
    y = np.arange(n) == n - 1
    model = KreinClassifier("precomputed", landmarks=None).fit(np.eye(n), y)
    assert_array_equal(model.predict(np.eye(n)), y)


# Landmarks and time


@front
def test_landmarks_in_every_form(learner: Any) -> None:
    y, rows = target_of(learner), np.arange(0, N, 4)
    by_number = learner("gaussian", landmarks=rows, random_state=0).fit(X, y)
    assert by_number.n_landmarks_ == len(rows)
    assert not hasattr(by_number, "decision_")
    by_list = learner("gaussian", landmarks=rows.tolist(), random_state=0).fit(X, y)
    assert_array_equal(scores(by_list, NEW), scores(by_number, NEW))
    in_landmarks = learner("gaussian", landmarks=Landmarks(rows), random_state=0).fit(X, y)
    assert_array_equal(scores(in_landmarks, NEW), scores(by_number, NEW))
    outside = learner("gaussian", landmarks=X[rows], random_state=0).fit(X, y)
    assert outside.landmark_indices_ is None
    assert outside.expected_error_ > 0
    if learner is KreinClassifier:
        assert [*outside.part_weights_] == ["krein"]
    for given, n in ((10, 10), (0.5, N // 2), ("uniform", N), (None, N)):
        assert learner("gaussian", landmarks=given, random_state=0).fit(X, y).n_landmarks_ == n


@front
def test_auto_is_all_objects_if_these_are_few(learner: Any) -> None:
    auto = learner("gaussian", random_state=0).fit(X, target_of(learner))
    exact = learner("gaussian", landmarks=None, random_state=0).fit(X, target_of(learner))
    assert auto.decision_.startswith("all 60 objects are landmarks: that takes about")
    assert_array_equal(scores(auto, NEW), scores(exact, NEW))


@front
def test_a_smaller_time_limit_means_fewer_landmarks(learner: Any) -> None:
    rows = np.random.default_rng(2).normal(size=(3000, 2))
    y = rows[:, 0] if learner is KreinRegressor else rows[:, 0] > 0
    counts = []
    for limit in (0.4, 0.05, 1e-9):
        model = learner("gaussian", time_limit=limit, random_state=0).fit(rows, y)
        counts.append(model.n_landmarks_)
        assert model.decision_.startswith(f"{model.n_landmarks_} of 3000 objects are landmarks: ")
        assert model.decision_.endswith(f"of one core, and the limit is {limit:.2g} s")
    assert counts[0] > counts[1] > counts[2] == 20


@front
@pytest.mark.parametrize("limit", [0, -1.0, "short"])
def test_a_time_limit_is_a_positive_number(learner: Any, limit: Any) -> None:
    with pytest.raises(ValueError, match=r"'time_limit' parameter of .* in the range \(0"):
        learner("gaussian", time_limit=limit).fit(X, target_of(learner))


@front
def test_a_function_that_takes_a_millisecond_is_not_called_for_all_pairs(learner: Any) -> None:
    """400 objects have 80,200 pairs. It is slow as long as it is measured, and then fast."""
    x, calls = np.random.default_rng(3).normal(size=400), 0

    def slow(a: Any, b: Any) -> float:
        nonlocal calls
        calls += 1
        end = time.perf_counter() + (1e-3 if calls <= 200 else 0.0)
        while time.perf_counter() < end:
            pass
        return float(abs(x[a] - x[b]))

    y = x if learner is KreinRegressor else x > 0
    model = learner(dissimilarity(pairwise(slow)), random_state=0).fit(list(range(400)), y)
    assert "of 400 objects are landmarks: all 400 would take about" in model.decision_
    assert 20 <= model.n_landmarks_ <= 100  # 40 seconds are 100 landmarks of 400 objects
    assert calls < 400 * 100
    assert model.score(list(range(400)), y) > 0.95


# Weights


@front
def test_objects_of_weight_zero_are_as_if_they_were_absent(learner: Any) -> None:
    y, w = target_of(learner), np.ones(N)
    w[::5] = 0
    model = learner(similarity, random_state=0).fit(X, y, w)
    absent = learner(similarity, random_state=0).fit(X[w > 0], y[w > 0])
    assert_array_equal(model.landmark_indices_, np.flatnonzero(w))
    atol = 1e-6 * np.abs(scores(absent, NEW)).max()  # of the search for penalties
    assert_allclose(scores(model, NEW), scores(absent, NEW), rtol=0, atol=atol)
    assert model.expected_error_ == pytest.approx(absent.expected_error_, rel=1e-6)


@front
def test_integer_weights_are_repeated_objects_for_the_krein_part(learner: Any) -> None:
    y, w = target_of(learner), np.random.default_rng(7).integers(1, 4, size=N)
    model = learner(similarity, random_state=0).fit(X, y, w)
    paper = KreinRidge if learner is KreinRegressor else KreinRidgeClassifier
    same = {"lambda_plus": model.lambda_plus_, "lambda_minus": model.lambda_minus_}
    again = paper(similarity, landmarks=None, **same)
    again.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    found = similarity(NEW, X) @ model.dual_coef_ + model.intercept_
    K, expected = similarity(X, X), scores(again, NEW)
    # rounding of the eigenvalues of repeated objects, over the smallest penalty
    gain = np.linalg.norm(K, 2) * w.max() / (w.sum() * min(same.values()))
    assert_allclose(found, expected, rtol=0, atol=10 * w.sum() * EPS * gain)


def test_landmarks_of_weight_zero_are_nobodys_neighbours() -> None:
    Z, w = np.arange(0, N, 3), np.ones(N)
    w[Z[::2]] = 0
    K, K_new = similarity(X, X), similarity(NEW, X)
    model = classifier("precomputed", landmarks=Z).fit(K, THREE, w)
    assert_array_equal(model.landmark_indices_, Z)
    among = K[np.ix_(Z[1::2], Z[1::2])]
    D_new = np.maximum(among.max() - K_new[:, Z], 0)
    labels = np.where(w[Z] > 0, THREE[Z], -1)
    near = neighbour_scores(D_new, labels, 3, floor_of(among.max() - among))
    krein = K_new[:, Z] @ model.dual_coef_ + model.intercept_
    assert max(list(model.part_weights_.values())[1:]) > 0.1  # otherwise this would say nothing
    assert_decides(model, K_new, weighted_parts(model, krein, near))


def test_class_weights_are_weights_of_objects() -> None:
    by_class = {0: 1.0, 1: 3.0, 2: 0.5}
    model = classifier(class_weight=by_class).fit(X, THREE)
    w = np.array([by_class[label] for label in THREE])
    by_object = classifier().fit(X, THREE, w)
    assert_allclose(model.predict_proba(NEW), by_object.predict_proba(NEW), rtol=0, atol=1e-9)
    counts = np.bincount(THREE)
    balanced = classifier(class_weight="balanced").fit(X, THREE)
    equal = classifier(class_weight=dict(enumerate(N / (3 * counts)))).fit(X, THREE)
    assert_allclose(balanced.predict_proba(NEW), equal.predict_proba(NEW), rtol=0, atol=1e-9)
    plain = classifier().fit(X, THREE)
    assert np.abs(plain.predict_proba(NEW) - balanced.predict_proba(NEW)).max() > 1e-3


# What is documented


def documented(learner: Any, section: str) -> list[str]:
    text = re.split(rf"\n{section}\n-+\n", inspect.getdoc(learner) or "")[1]
    text = re.split(r"\n\w[\w ]*\n-+\n", text)[0]
    return re.findall(r"^(\w+) : ", text, flags=re.MULTILINE)


@front
def test_parameters_and_attributes_are_documented(learner: Any) -> None:
    assert sorted(documented(learner, "Parameters")) == sorted(learner().get_params())
    assert len(learner().get_params()) <= 10
    public = {name for name in learner._fitted if not name.startswith("_")}
    assert {*documented(learner, "Attributes")} == public
    model = learner("euclidean", random_state=0).fit(X, target_of(learner))
    of_several = {f"kernel_{name}_" for name in Combination._fields}
    optional = {"kernel_params_", "feature_names_in_"}
    assert {name for name in public if not hasattr(model, name)} == optional | of_several
    model = learner(["euclidean", "manhattan"], random_state=0).fit(X, target_of(learner))
    of_one = {"similarity_", "choices_"}
    assert {name for name in public if not hasattr(model, name)} == optional | of_one
