"""Many classes by pairs, against a binary problem for each pair, and the choice of the way."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from kreinlearn import (
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidgeClassifier,
    Resources,
    SimilarityRidgeClassifier,
)
from kreinlearn.kernels import GaussianCombination
from kreinlearn.learn.coding import class_scores, one_vs_one, one_vs_rest, pairs_of
from kreinlearn.learn.folds import MANY_ROWS
from kreinlearn.learn.task import Linear
from kreinlearn.solvers.least_squares import ridge_rows
from tests import oracles

RNG = np.random.default_rng(101)
N, N_CLASSES = 100, 4
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(30, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.digitize(F + 0.2 * RNG.normal(size=N), np.quantile(F, [0.15, 0.5, 0.75]))
W = RNG.uniform(0.3, 2, N)
KERNEL = GaussianCombination(weights=(1.0, -0.7), widths=(6.0, 1.5), unit=1.0)
Z = np.sort(RNG.permutation(N)[:18])
MOST = np.sort(np.random.default_rng(102).permutation(N)[:70])
LAMBDAS = (2e-3, 3e-2)
PAIRS = list(combinations(range(N_CLASSES), 2))
CLASSIFIERS = [KreinRidgeClassifier, KreinVCRidgeClassifier, KreinSVC, SimilarityRidgeClassifier]
classifiers = pytest.mark.parametrize("learner", CLASSIFIERS)


def similarity(A, B):
    d2 = ((A[:, None] - B[None]) ** 2).sum(2)
    return np.exp(-d2 / 6) - 0.7 * np.exp(-d2 / 1.5)


K, K_NEW = similarity(X, X), similarity(X_NEW, X)


def make(learner, kernel=KERNEL, *, share=1.0, **params):
    names = {*learner().get_params()}
    lambdas = dict(zip(("lambda_plus", "lambda_minus"), share * np.array(LAMBDAS), strict=True))
    given = {name: value for name, value in lambdas.items() if name in names}
    return learner(kernel, **{"landmarks": X[Z], "random_state": 0, **given, **params})


def by_pairs(decide, labels=LABELS, n_classes=N_CLASSES):
    """Scores (n_new, pairs): ``decide(rows, y)`` of the rows of a pair, + for the second class."""
    found = []
    for a, b in combinations(range(n_classes), 2):
        rows = np.flatnonzero((labels == a) | (labels == b))
        found.append(decide(rows, np.where(labels[rows] == b, 1.0, -1.0)))
    return np.column_stack(found)


# Pairs by hand


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("params", [{"landmarks": Z}, {"landmarks": None}], ids=["few", "all"])
def test_least_squares_of_each_pair(w, params):
    weights = np.ones(N) if w is None else w
    own = np.arange(N) if params["landmarks"] is None else Z

    def decide(rows, y):
        """The penalty of a pair is that of the whole problem: n lambda, n of all rows."""
        share = weights.sum() / weights[rows].sum()
        if len(own) == N:
            a, b = oracles.exact_ridge(K, y, LAMBDAS, w=weights, rows=rows)
        else:
            penalties, mine = share * np.array(LAMBDAS), weights[rows]
            a, b = oracles.krein_ridge(
                K[np.ix_(rows, own)], K[np.ix_(own, own)], y, penalties, w=mine
            )
        return (K_NEW[:, own] @ a + b)[:, 0]

    scores = by_pairs(decide)
    model = KreinRidgeClassifier(
        KERNEL, multi_class="ovo", lambda_plus=LAMBDAS[0], lambda_minus=LAMBDAS[1], **params
    ).fit(X, LABELS, sample_weight=w)
    expected = oracles.votes(scores, N_CLASSES)
    np.testing.assert_allclose(model.decision_function(X_NEW), expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X_NEW), expected.argmax(1))
    pairwise = K_NEW[:, own] @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(pairwise, scores, rtol=0, atol=1e-5)


@classifiers
def test_every_pair_is_a_binary_problem_of_its_own(learner):
    """By a binary model of the same class, with the penalty of all rows."""

    def decide(rows, y):
        return make(learner, share=N / len(rows)).fit(X[rows], y).decision_function(X_NEW)

    model = make(learner, multi_class="ovo").fit(X, LABELS)
    expected = oracles.votes(by_pairs(decide), N_CLASSES)
    np.testing.assert_allclose(model.decision_function(X_NEW), expected, rtol=0, atol=1e-6)
    assert model.multi_class_ == "ovo"
    assert not hasattr(model, "multi_class_errors_")


def test_machines_of_pairs_by_another_solver():
    Phi, S = oracles.krein_features(K[:, Z], K[np.ix_(Z, Z)])
    roots = np.sqrt(N * np.where(S > 0, *LAMBDAS))
    K_new = oracles.krein_features(K_NEW[:, Z], K[np.ix_(Z, Z)])[0] / roots

    def decide(rows, y):
        machine = LinearSVC(
            loss="squared_hinge", dual=False, C=0.5, fit_intercept=False, tol=1e-11, max_iter=10**5
        )
        return machine.fit(Phi[rows] / roots, y).decision_function(K_new)

    params = {"landmarks": Z, "multi_class": "ovo", "fit_intercept": False}
    model = make(KreinSVC, **params).fit(X, LABELS)
    expected = oracles.votes(by_pairs(decide), N_CLASSES)
    np.testing.assert_allclose(model.decision_function(X_NEW), expected, rtol=0, atol=1e-4)


@classifiers
def test_two_classes_are_one_pair(learner):
    y = LABELS > 1
    one, other = (make(learner, multi_class=way).fit(X, y) for way in ("ovo", "ovr"))
    np.testing.assert_array_equal(one.decision_function(X_NEW), other.decision_function(X_NEW))
    assert one.multi_class_ == other.multi_class_ == "ovr"
    assert one.decision_function(X_NEW).shape == (30,)


@classifiers
def test_shapes(learner):
    model = make(learner, multi_class="ovo").fit(X, LABELS)
    assert model.decision_function(X_NEW).shape == (30, N_CLASSES)
    assert len(model.coef_) == len(model.intercept_) == model.dual_coef_.shape[1] == 6
    ovr = make(learner, multi_class="ovr").fit(X, LABELS)
    assert len(ovr.coef_) == len(ovr.intercept_) == ovr.dual_coef_.shape[1] == N_CLASSES


def test_rows_that_are_not_held_are_in_their_pairs():
    rng = np.random.default_rng(5)
    many = rng.normal(size=(9000, 3))
    labels = np.digitize(np.sin(2 * many[:, 0]) + many[:, 1] * many[:, 2], [-0.5, 0.5])
    Z = np.arange(0, 9000, 900)
    C, C_new = similarity(many, many[Z]), similarity(X_NEW, many[Z])
    model = make(KreinRidgeClassifier, landmarks=Z, multi_class="ovo").fit(many, labels)

    def decide(rows, y):
        a, b = oracles.krein_ridge(C[rows], C[Z], y, 9000 / len(rows) * np.array(LAMBDAS))
        return (C_new @ a + b)[:, 0]

    expected = oracles.votes(by_pairs(decide, labels, 3), 3)
    np.testing.assert_allclose(model.decision_function(X_NEW), expected, rtol=0, atol=1e-6)


# Which way


def errors_by_hand(model, w=None):
    """Share of validated weight that each way gets wrong, fold by fold."""
    weights = np.ones(N) if w is None else w
    penalties = np.array([model.lambda_plus_, model.lambda_minus_])
    all_landmarks = model.landmark_indices_
    signs = np.where(LABELS[:, None] == np.arange(N_CLASSES), 1.0, -1.0)
    wrong = {"ovr": 0.0, "ovo": 0.0}
    for k in range(model.folds_.max() + 1):
        train, valid = np.flatnonzero(model.folds_ != k), np.flatnonzero(model.folds_ == k)
        own = all_landmarks
        if len(own) > N / 2:
            own = np.intersect1d(own, train)

        def fitted(rows, y, own=own, valid=valid, train=train):
            share = weights[train].sum() / weights[rows].sum()
            a, b = oracles.krein_ridge(
                K[np.ix_(rows, own)], K[np.ix_(own, own)], y, share * penalties, w=weights[rows]
            )
            return K[np.ix_(valid, own)] @ a + b

        pairs = []
        for a, b in PAIRS:
            rows = train[(LABELS[train] == a) | (LABELS[train] == b)]
            pairs.append(fitted(rows, np.where(LABELS[rows] == b, 1.0, -1.0))[:, 0])
        decisions = {
            "ovr": fitted(train, signs[train]),
            "ovo": oracles.votes(np.column_stack(pairs), N_CLASSES),
        }
        for way, scores in decisions.items():
            wrong[way] += weights[valid][scores.argmax(1) != LABELS[valid]].sum()
    total = weights[model.folds_ >= 0].sum()
    return {way: value / total for way, value in wrong.items()}


@pytest.mark.parametrize("given", [{"landmarks": Z}, {"landmarks": MOST}], ids=["few", "most"])
@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_the_way_is_chosen_by_errors_of_the_folds(given, w):
    params = {"lambda_plus": LAMBDAS[0], "lambda_minus": LAMBDAS[1], "random_state": 0, **given}
    model = KreinRidgeClassifier(KERNEL, **params).fit(X, LABELS, sample_weight=w)
    expected = errors_by_hand(model, w)
    assert model.multi_class_errors_ == pytest.approx(expected, abs=1e-9)
    assert model.multi_class_ == min(("ovr", "ovo"), key=expected.get)
    same = KreinRidgeClassifier(KERNEL, multi_class=model.multi_class_, **params)
    same.fit(X, LABELS, sample_weight=w)
    f, f_same = model.decision_function(X_NEW), same.decision_function(X_NEW)
    np.testing.assert_allclose(f, f_same, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "learner", [KreinRidgeClassifier, KreinSVC, SimilarityRidgeClassifier]
)  # what is solved in the eigenbasis of all objects
@pytest.mark.parametrize("kernel", [KERNEL, "euclidean"], ids=["similarity", "distance"])
def test_all_objects_tell_each_class_from_the_rest(learner, kernel):
    """Unless pairs are asked for: one eigenbasis serves all classes."""
    model = make(learner, kernel, landmarks=None).fit(X, LABELS)
    assert model.multi_class_ == "ovr"
    assert not hasattr(model, "multi_class_errors_")
    assert model.dual_coef_.shape == (N, N_CLASSES)
    pairs = make(learner, kernel, landmarks=None, multi_class="ovo").fit(X, LABELS)
    assert pairs.multi_class_ == "ovo"
    assert pairs.dual_coef_.shape == (N, len(PAIRS))


@pytest.mark.parametrize("kernel", [KERNEL, "euclidean"], ids=["similarity", "distance"])
def test_a_variance_constraint_has_no_eigenbasis_and_compares(kernel):
    model = make(KreinVCRidgeClassifier, kernel, landmarks=None).fit(X, LABELS)
    assert set(model.multi_class_errors_) == {"ovr", "ovo"}


@classifiers
def test_every_classifier_chooses(learner):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.digitize(F + 0.5 * rng.normal(size=N), np.quantile(F, [0.2, 0.5, 0.7]))
        model = make(learner, random_state=seed).fit(X, y)
        errors = model.multi_class_errors_
        assert set(errors) == {"ovr", "ovo"}
        assert model.multi_class_ == ("ovo" if errors["ovo"] < errors["ovr"] else "ovr")


def test_ties_go_to_one_vs_rest():
    """Far apart: neither way gets anything wrong."""
    centres = 30 * np.eye(3)
    far = np.repeat(centres, 20, axis=0) + RNG.normal(size=(60, 3))
    y = np.repeat(["a", "b", "c"], 20)
    model = KreinRidgeClassifier("gaussian", landmarks=20, random_state=0).fit(far, y)
    assert model.multi_class_errors_ == {"ovr": 0.0, "ovo": 0.0}
    assert model.multi_class_ == "ovr"


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("budget", ["64 MB", "4 GB"])
def test_of_many_rows_one_vs_rest_whatever_the_memory(extra, budget):
    """Rows beyond these may be on workers, which hold no features."""
    many = np.tile(X, (MANY_ROWS // N + 1, 1))[: MANY_ROWS + extra]
    y = np.resize(LABELS, len(many))
    params = {"landmarks": 10, "lambda_plus": 0.1, "lambda_minus": 0.1, "random_state": 0}
    params["resources"] = Resources(memory_budget=budget)
    model = KreinRidgeClassifier("gaussian", **params).fit(many, y)
    assert hasattr(model, "multi_class_errors_") == (extra == 0)
    if extra:
        assert model.multi_class_ == "ovr"


# Classes that a fold, or a pair, has none of


@classifiers
@pytest.mark.parametrize("way", ["auto", "ovo"])
def test_a_class_with_one_member_is_absent_from_a_fold(learner, way):
    y = np.where(np.arange(N) == 5, 9, LABELS)
    model = make(learner, multi_class=way).fit(X, y)
    assert model.decision_function(X_NEW).shape == (30, 5)
    assert np.isfinite(model.decision_function(X_NEW)).all()
    if way == "auto":
        assert 0 < model.multi_class_errors_["ovo"] < 1


@pytest.mark.parametrize("learner", [KreinRidgeClassifier, KreinSVC, SimilarityRidgeClassifier])
@pytest.mark.parametrize("way", ["auto", "ovr", "ovo"])
def test_classes_that_weigh_nothing(learner, way):
    """No pair of them has rows; what is decided among the others is what it was."""
    w = np.where(LABELS < 2, 0.0, W)
    rows = np.flatnonzero(w)
    model = make(learner, multi_class=way).fit(X, LABELS, sample_weight=w)
    f = model.decision_function(X_NEW)
    assert np.isfinite(f).all()
    pair = make(learner).fit(X[rows], LABELS[rows], sample_weight=W[rows])
    expected = pair.decision_function(X_NEW) > 0
    np.testing.assert_array_equal(f[:, 3] > f[:, 2], expected)


def test_coefficients_of_pairs_without_rows_are_zero():
    Phi, labels = RNG.normal(size=(20, 3)), np.repeat([0, 3], 10)

    def solve(*rows):
        return Linear(*ridge_rows(*rows))

    model = one_vs_one(Phi, labels, np.ones(20), np.ones(3), solve, 4)
    coef, intercept = model.coef, model.intercept
    empty = PAIRS.index((1, 2))
    assert not coef[:, empty].any()
    assert intercept[empty] == 0
    one_sided = PAIRS.index((0, 1))  # of one class: all are the first of the pair
    np.testing.assert_allclose(Phi @ coef[:, one_sided] + intercept[one_sided], -1, atol=1e-9)
    both, b = ridge_rows(Phi, np.repeat([-1.0, 1.0], 10)[:, None], np.ones(20), np.ones(3))
    np.testing.assert_allclose(coef[:, [PAIRS.index((0, 3))]], both)
    assert intercept[PAIRS.index((0, 3))] == pytest.approx(b[0])


# Scores of classes


def test_votes_of_pairs():
    assert pairs_of(4) == PAIRS
    pairs = RNG.normal(size=(50, 6))
    np.testing.assert_allclose(class_scores(pairs, 4, "ovo"), oracles.votes(pairs, 4), rtol=1e-12)
    np.testing.assert_array_equal(class_scores(pairs, 6, "ovr"), pairs)
    np.testing.assert_array_equal(class_scores(pairs[:, :1], 2, "ovr"), pairs[:, 0])


def test_signs_of_classes():
    labels = np.array([0, 2, 1])
    expected = [[1, -1, -1], [-1, -1, 1], [-1, 1, -1]]
    np.testing.assert_array_equal(one_vs_rest(labels, 3), expected)
    np.testing.assert_array_equal(one_vs_rest(np.array([0, 1, 1]), 2), [[-1], [1], [1]])
    assert one_vs_rest(labels, 5).shape == (3, 5)


@classifiers
def test_auto_is_one_vs_rest_for_very_many_classes(learner):
    labels = np.arange(N) % 33
    model = learner(KERNEL, landmarks=10, random_state=0, cv=2).fit(X, labels)
    assert model.multi_class_ == "ovr"
    assert not hasattr(model, "multi_class_errors_")
    model.fit(X, labels % 32)
    assert set(model.multi_class_errors_) == {"ovr", "ovo"}
