"""Tuning for a score of scikit-learn's, against loops over folds by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.svm import LinearSVC

from kreinlearn import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinVCRidge, SimilarityRidge
from kreinlearn.kernels import GaussianCombination
from kreinlearn.learn.scoring import LEAST_PROBABILITY, FoldClassifier, FoldRegressor
from tests import oracles

RNG = np.random.default_rng(71)
N = 100
X = RNG.normal(size=(N, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = F + 0.3 * RNG.normal(size=N)
BINARY = np.where(Y > 0.1, "yes", "no")
LABELS = np.digitize(Y, np.quantile(Y, [0.3, 0.65]))
W = RNG.uniform(0.3, 2, N)
KERNEL = GaussianCombination(weights=(1.0, -0.7), widths=(6.0, 1.5), unit=1.0)
FEW = np.sort(RNG.permutation(N)[:20])
GIVEN = {"few": {"landmarks": FEW}, "all": {"landmarks": None}}
given = pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)


def similarity(A, B):
    d2 = ((A[:, None] - B[None]) ** 2).sum(2)
    return np.exp(-d2 / 6) - 0.7 * np.exp(-d2 / 1.5)


K = similarity(X, X)


def shares(scores):
    """P(class | f) = (1 + f) / 2, away from certainty, of all classes together 1."""
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    p = np.clip((1 + scores) / 2, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return p / p.sum(axis=1, keepdims=True)


def decided(scores, classes):
    if scores.shape[1] == 1:
        return classes[(scores[:, 0] > 0).astype(int)]
    return classes[scores.argmax(1)]


# name -> score of true labels, decision values (n, q) and classes
OF_CLASSES = {
    "accuracy": lambda y, f, classes: accuracy_score(y, decided(f, classes)),
    "balanced_accuracy": lambda y, f, classes: balanced_accuracy_score(y, decided(f, classes)),
    "neg_log_loss": lambda y, f, classes: -log_loss(y, shares(f), labels=classes),
    "roc_auc": lambda y, f, classes: roc_auc_score(y, f[:, 0]),
    "roc_auc_ovr": lambda y, f, classes: roc_auc_score(y, shares(f), multi_class="ovr"),
}
OF_NUMBERS = {
    "neg_mean_absolute_error": lambda y, f, _: -mean_absolute_error(y, f[:, 0]),
    "r2": lambda y, f, _: r2_score(y, f[:, 0]),
}
CASES = [
    *((BINARY, name, OF_CLASSES[name]) for name in ("accuracy", "neg_log_loss", "roc_auc")),
    *((LABELS, name, OF_CLASSES[name]) for name in ("balanced_accuracy", "roc_auc_ovr")),
]


def targets(y):
    """+-1, a column a class, one column of two classes; numbers as they are."""
    if y.dtype.kind == "f":
        return y[:, None], None
    classes = np.unique(y)
    columns = classes[1:] if len(classes) == 2 else classes
    return np.where(y[:, None] == columns, 1.0, -1.0), classes


def by_hand(model, y, score, penalties, w=None):
    """The score of every validation part, weighted by its size."""
    T, classes = targets(y)
    weights = np.ones(N) if w is None else w
    total = 0.0
    for k in range(model.folds_.max() + 1):
        train, valid = np.flatnonzero(model.folds_ != k), np.flatnonzero(model.folds_ == k)
        own = model.landmark_indices_
        own = np.intersect1d(own, train) if len(own) > N / 2 else own
        a, b = oracles.krein_ridge(
            K[np.ix_(train, own)], K[np.ix_(own, own)], T[train], penalties, w=weights[train]
        )
        found = score(y[valid], K[np.ix_(valid, own)] @ a + b, classes)
        total += weights[valid].sum() * found
    return total / weights[model.folds_ >= 0].sum()


# The score is that of a loop by hand


@given
@pytest.mark.parametrize(("y", "name", "score"), CASES, ids=[case[1] for case in CASES])
def test_classifiers_are_tuned_for_a_score(given, y, name, score):
    """From the penalties of smallest loss on: never to a worse score."""
    params = {"multi_class": "ovr", "cv": 3, "random_state": 0, **given}
    model = KreinRidgeClassifier(KERNEL, scoring=name, **params).fit(X, y)
    plain = KreinRidgeClassifier(KERNEL, **params).fit(X, y)
    np.testing.assert_array_equal(model.folds_, plain.folds_)
    start = by_hand(plain, y, score, (plain.lambda_plus_, plain.lambda_minus_))
    assert model.cv_trials_[0, -1] == pytest.approx(start, abs=1e-6)
    expected = by_hand(model, y, score, (model.lambda_plus_, model.lambda_minus_))
    assert model.cv_score_ == pytest.approx(expected, abs=1e-6)
    assert model.cv_score_ == model.cv_trials_[:, -1].max()
    *last, found = model.cv_trials_[-1]
    assert found == pytest.approx(by_hand(model, y, score, last), abs=1e-6)
    assert not hasattr(model, "cv_loss_")


@given
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_regressors_are_tuned_for_a_score(given, name):
    model = KreinRidge(KERNEL, scoring=name, random_state=0, **given).fit(X, Y)
    penalties = model.lambda_plus_, model.lambda_minus_
    expected = by_hand(model, Y, OF_NUMBERS[name], penalties)
    assert model.cv_score_ == pytest.approx(expected, rel=1e-5)
    assert model.cv_score_ == model.cv_trials_[:, -1].max()


def test_parts_are_weighted_by_the_weight_of_their_rows():
    model = KreinRidge(KERNEL, scoring="r2", landmarks=FEW, random_state=0).fit(X, Y, W)
    penalties = model.lambda_plus_, model.lambda_minus_
    expected = by_hand(model, Y, OF_NUMBERS["r2"], penalties, W)
    assert model.cv_score_ == pytest.approx(expected, rel=1e-6)


def test_the_machine_is_tuned_for_a_score():
    y = np.where(BINARY == "yes", 1.0, -1.0)
    model = KreinSVC(KERNEL, scoring="roc_auc", landmarks=FEW, fit_intercept=False, random_state=0)
    model.fit(X, y)
    Phi, S = oracles.krein_features(K[:, FEW], K[np.ix_(FEW, FEW)])
    total = 0.0
    for k in range(5):
        train, valid = model.folds_ != k, model.folds_ == k
        roots = np.sqrt(train.sum() * np.where(S > 0, model.lambda_plus_, model.lambda_minus_))
        machine = LinearSVC(
            loss="squared_hinge", dual=False, C=0.5, fit_intercept=False, tol=1e-10, max_iter=10**5
        ).fit(Phi[train] / roots, y[train])
        scores = machine.decision_function(Phi[valid] / roots)
        total += valid.sum() * roc_auc_score(y[valid], scores)
    assert model.cv_score_ == pytest.approx(total / np.sum(model.folds_ >= 0), abs=1e-9)


def test_leave_one_out_for_a_score():
    y = (Y > 0).astype(int)[:16]
    model = KreinRidgeClassifier(KERNEL, scoring="accuracy", landmarks=None, cv="loo")
    model.fit(X[:16], y)
    right = 0
    for i in range(16):
        others = np.delete(np.arange(16), i)
        a, b = oracles.krein_ridge(
            K[np.ix_(others, others)], K[np.ix_(others, others)], 2.0 * y[others] - 1,
            (model.lambda_plus_, model.lambda_minus_),
        )  # fmt: skip
        right += ((K[i, others] @ a + b)[0] > 0) == y[i]
    assert model.cv_score_ == pytest.approx(right / 16)


# Other learners, other penalties


@pytest.mark.parametrize("learner", [KreinVCRidge, SimilarityRidge])
def test_other_regressors_are_tuned_for_a_score(learner):
    params = {"landmarks": FEW, "random_state": 0}
    model = learner(KERNEL, scoring="neg_mean_absolute_error", **params).fit(X, Y)
    assert model.cv_score_ == model.cv_trials_[:, -1].max() >= model.cv_trials_[0, -1]
    assert -1 < model.cv_score_ < 0


def test_one_penalty_and_two():
    for tie in ("equal", 0.01, 0.0):
        params = {"landmarks": FEW, "random_state": 0, "lambda_minus": tie}
        model = KreinRidge(KERNEL, scoring="r2", **params).fit(X, Y)
        expected = model.lambda_plus_ if tie == "equal" else tie
        assert model.lambda_minus_ == expected
        values = (model.lambda_plus_, model.lambda_minus_)
        if tie != 0.0:
            by_loop = by_hand(model, Y, OF_NUMBERS["r2"], values)
            assert model.cv_score_ == pytest.approx(by_loop, rel=1e-5)


def test_given_penalties_are_not_scored():
    model = KreinRidge(KERNEL, scoring="r2", landmarks=FEW, lambda_plus=0.1, lambda_minus=0.2)
    model.fit(X, Y)
    assert not hasattr(model, "cv_score_")
    assert not hasattr(model, "cv_trials_")


# What a score may be


def test_a_scorer_of_ones_own():
    def hits(y, predicted):
        return np.mean(np.abs(y - predicted) < 0.3)

    model = KreinRidge(KERNEL, scoring=make_scorer(hits), landmarks=FEW, random_state=0).fit(X, Y)
    penalties = model.lambda_plus_, model.lambda_minus_
    expected = by_hand(model, Y, lambda y, f, _: hits(y, f[:, 0]), penalties)
    assert model.cv_score_ == pytest.approx(expected)


def test_a_name_that_is_no_score():
    with pytest.raises(ValueError, match="nonsense"):
        KreinRidge(KERNEL, scoring="nonsense", landmarks=FEW).fit(X, Y)


def test_many_outputs_are_scored_together():
    both = np.column_stack([Y, X[:, 0]])
    model = KreinRidge(KERNEL, scoring="r2", landmarks=FEW, random_state=0).fit(X, both)
    total = 0.0
    for k in range(5):
        train, valid = np.flatnonzero(model.folds_ != k), np.flatnonzero(model.folds_ == k)
        penalties = model.lambda_plus_, model.lambda_minus_
        a, b = oracles.krein_ridge(
            K[np.ix_(train, FEW)], K[np.ix_(FEW, FEW)], both[train], penalties
        )
        total += len(valid) * r2_score(both[valid], K[np.ix_(valid, FEW)] @ a + b)
    assert model.cv_score_ == pytest.approx(total / np.sum(model.folds_ >= 0), rel=1e-6)


# The models that scorers see


def test_a_model_of_features_for_scorers():
    Phi, coef = RNG.normal(size=(30, 4)), RNG.normal(size=(4, 3))
    intercept = RNG.normal(size=3)
    classes = np.array(["a", "b", "c"])
    model = FoldClassifier(coef, intercept, classes)
    scores = Phi @ coef + intercept
    np.testing.assert_allclose(model.decision_function(Phi), scores)
    np.testing.assert_array_equal(model.predict(Phi), classes[scores.argmax(1)])
    np.testing.assert_allclose(model.predict_proba(Phi), shares(scores))
    binary = FoldClassifier(coef[:, :1], intercept[:1], classes[:2])
    assert binary.decision_function(Phi).shape == (30,)
    np.testing.assert_array_equal(binary.predict(Phi), classes[(scores[:, 0] > 0) * 1])
    np.testing.assert_allclose(binary.predict_proba(Phi), shares(scores[:, :1]))
    np.testing.assert_allclose(binary.predict_proba(Phi).sum(axis=1), 1)
    one = FoldRegressor(coef[:, :1], intercept[:1], one_output=True)
    np.testing.assert_allclose(one.predict(Phi), scores[:, 0])
    many = FoldRegressor(coef, intercept, one_output=False)
    np.testing.assert_allclose(many.predict(Phi), scores)
