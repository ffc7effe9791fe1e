"""Estimators with all objects as landmarks, from outside: repetition, refits, odd objects."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    SimilarityRidge,
    SimilarityRidgeClassifier,
)
from kreinlearn.kernels import DeltaGauss
from tests import oracles
from tests.bounds import left_out_error

RNG = np.random.default_rng(71)
N = 45
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(20, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * RNG.normal(size=N) + 2
LABELS = np.digitize(Y, np.quantile(Y, [0.4, 0.75]))
KERNEL = DeltaGauss(width=6.0, ratio=4.0)
K, K_NEW = (oracles.delta_gauss(A, X, 6.0, 4.0) for A in (X, X_NEW))
REGRESSORS = [KreinRidge, SimilarityRidge]
CLASSIFIERS = [KreinRidgeClassifier, SimilarityRidgeClassifier, KreinSVC]
LEARNERS = [*REGRESSORS, *CLASSIFIERS]
LAMBDAS = {"lambda_plus": 0.004, "lambda_minus": 0.03}
EPS = float(np.finfo(np.float64).eps)
learners = pytest.mark.parametrize("learner", LEARNERS)


def make(learner, kernel=KERNEL, *, share=1.0, tuned=False, **params):
    """A learner of all objects, with penalties that are given unless they are tuned."""
    names = {*learner().get_params()}
    given = {} if tuned else {n: share * v for n, v in LAMBDAS.items() if n in names}
    return learner(kernel, **{"landmarks": None, "random_state": 0, **given, **params})


def targets_of(learner, n_classes=3):
    if learner in REGRESSORS:
        return Y
    return LABELS if n_classes == 3 else (LABELS > 0).astype(int)


def scores_of(model, X=X_NEW):
    return getattr(model, "decision_function", model.predict)(X)


def agree(found, wanted, *, squared=False):
    """Equal up to roundoff times the condition of the problem; of similarity features, squared."""
    condition = np.abs(K).sum(axis=0).max() / (N * min(LAMBDAS.values()))
    allowed = 1000 * N * EPS * condition ** (2 if squared else 1)
    assert np.abs(found - wanted).max() <= allowed * max(np.abs(wanted).max(), 1.0)


def is_squared(learner):
    return learner in (SimilarityRidge, SimilarityRidgeClassifier)


# Weights


@learners
@pytest.mark.parametrize("intercept", [True, False])
def test_integer_weights_are_repetitions(learner, intercept):
    y, w = targets_of(learner), np.random.default_rng(1).integers(1, 4, N)
    again = np.repeat(np.arange(N), w)
    one = make(learner, fit_intercept=intercept).fit(X, y, sample_weight=w)
    other = make(learner, fit_intercept=intercept).fit(X[again], y[again])
    assert one.n_landmarks_ == N
    assert other.n_landmarks_ == w.sum()
    agree(scores_of(one), scores_of(other), squared=is_squared(learner))
    plain = make(learner, fit_intercept=intercept).fit(X, y)
    assert np.abs(scores_of(plain) - scores_of(one)).max() > 1e-3


@learners
def test_integer_weights_are_repetitions_in_a_given_matrix(learner):
    S, S_new = (np.exp(-np.abs(A[:, None] - X).sum(2) / 3) - 0.3 for A in (X, X_NEW))
    y, w = targets_of(learner), np.random.default_rng(2).integers(1, 4, N)
    again = np.repeat(np.arange(N), w)
    one = make(learner, "precomputed").fit(S, y, sample_weight=w)
    other = make(learner, "precomputed").fit(S[np.ix_(again, again)], y[again])
    agree(scores_of(one, S_new), scores_of(other, S_new[:, again]), squared=is_squared(learner))


@learners
def test_objects_without_weight_are_absent(learner):
    y, w = targets_of(learner), RNG.uniform(0.5, 2, N)
    w[::4] = 0
    kept = np.flatnonzero(w)
    one = make(learner).fit(X, y, sample_weight=w)
    other = make(learner).fit(X[kept], y[kept], sample_weight=w[kept])
    np.testing.assert_array_equal(np.sort(one.landmark_indices_), kept)
    agree(scores_of(one), scores_of(other), squared=is_squared(learner))


@pytest.mark.parametrize("learner", [KreinRidge, SimilarityRidge, KreinRidgeClassifier])
def test_objects_without_weight_are_not_left_out_either(learner):
    """Folds are drawn among the others alone, so that the penalties are the same as well."""
    y, w = targets_of(learner), RNG.uniform(0.5, 2, N)
    w[::4] = 0
    kept = np.flatnonzero(w)
    one = make(learner, tuned=True).fit(X, y, sample_weight=w)
    other = make(learner, tuned=True).fit(X[kept], y[kept], sample_weight=w[kept])
    assert one.cv_loss_ == pytest.approx(other.cv_loss_, rel=1e-6)
    assert one.lambda_plus_ == pytest.approx(other.lambda_plus_, rel=1e-3)


@pytest.mark.parametrize("learner", [KreinRidge, KreinRidgeClassifier, KreinSVC])
def test_the_scale_of_weights_does_not_matter(learner):
    """That of similarity features does: objects that are repeated are features once more."""
    y, w = targets_of(learner), np.random.default_rng(3).uniform(0.5, 2, N)
    one, other = (make(learner).fit(X, y, sample_weight=c * w) for c in (1.0, 1e6))
    agree(scores_of(one), scores_of(other))


# Leave-one-out, by refits of the estimator


@pytest.mark.parametrize("learner", [*REGRESSORS, KreinRidgeClassifier, SimilarityRidgeClassifier])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_loss_is_that_of_n_refits(learner, weighted, intercept):
    """If it is asked for. Penalties times the weight stay those of all objects."""
    y, w = targets_of(learner, 2), RNG.uniform(0.5, 2, N) if weighted else np.ones(N)
    tuned = make(learner, tuned=True, fit_intercept=intercept, cv="loo")
    tuned.fit(X, y, sample_weight=w)
    wanted = np.asarray(y if learner in REGRESSORS else 2 * y - 1, dtype=float)
    total = 0.0
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        share = w.sum() / w[rest].sum()
        given = {"lambda_plus": share * tuned.lambda_plus_}
        if hasattr(tuned, "lambda_minus_"):
            given["lambda_minus"] = share * tuned.lambda_minus_
        model = clone(tuned).set_params(**given).fit(X[rest], y[rest], sample_weight=w[rest])
        total += w[i] * (scores_of(model, X[i : i + 1])[0] - wanted[i]) ** 2
    total /= w.sum()
    assert tuned.cv_loss_ == pytest.approx(total, abs=left_out_error(total, wanted))


def test_the_loss_of_many_outputs_is_their_sum():
    targets = np.column_stack([Y, X[:, 0] ** 2, np.cos(X[:, 1])])
    tuned = make(KreinRidge, tuned=True).fit(X, targets)
    penalties = tuned.lambda_plus_, tuned.lambda_minus_

    def loss_of(y):
        def fold(train, valid):
            a, b = oracles.exact_ridge(K[np.ix_(train, train)], y[train], penalties)
            return K[np.ix_(valid, train)] @ a + b

        return oracles.cross_validated(fold, tuned.folds_, y)

    assert tuned.cv_loss_ == pytest.approx(sum(map(loss_of, targets.T)), rel=1e-7)
    for j, y in enumerate(targets.T):
        alone = KreinRidge(KERNEL, landmarks=None, lambda_plus=penalties[0],
                           lambda_minus=penalties[1]).fit(X, y)  # fmt: skip
        together = clone(alone).fit(X, targets)
        np.testing.assert_allclose(together.predict(X_NEW)[:, j], alone.predict(X_NEW), rtol=1e-7)
        assert together.coef_.shape == (3, together.rank_)


# Odd objects


@learners
@pytest.mark.parametrize("tuned", [False, True])
def test_repeated_objects(learner, tuned):
    """A singular matrix: rows of the same object get the same finite score."""
    twice = np.repeat(np.arange(20), 2)
    model = make(learner, tuned=tuned).fit(X[twice], targets_of(learner)[twice])
    f = np.asarray(scores_of(model, X[twice]))
    assert np.isfinite(f).all()
    assert np.ptp(f) > 0
    np.testing.assert_array_equal(f[::2], f[1::2])
    if not is_squared(learner):
        assert model.rank_ <= 20


def test_repeated_objects_weigh_as_often():
    """Penalties given: 20 objects twice, or once with a weight of two."""
    twice = np.repeat(np.arange(20), 2)
    for learner in LEARNERS:
        y = targets_of(learner)
        one = make(learner).fit(X[twice], y[twice])
        other = make(learner).fit(X[:20], y[:20], sample_weight=np.full(20, 2.0))
        agree(scores_of(one), scores_of(other), squared=is_squared(learner))


@learners
def test_objects_that_are_all_the_same(learner):
    same, y = np.ones((12, 3)), np.arange(12) % 3
    model = make(learner, "gaussian", kernel_params={"width": 1.0}, tuned=True).fit(same, y)
    f = np.asarray(scores_of(model, np.ones((2, 3))))
    assert np.isfinite(f).all()
    if learner in REGRESSORS:  # nothing but the mean can be learned
        assert f == pytest.approx(np.ones(2), rel=0.1)


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_object_per_class(learner):
    model = make(learner, tuned=True).fit(X[:3], np.arange(3))
    assert np.isfinite(np.asarray(scores_of(model))).all()


def test_a_matrix_of_low_rank_with_both_signs():
    F = RNG.normal(size=(N, 4))
    low = (F * [1.0, 1.0, -1.0, -1.0]) @ F.T
    model = make(KreinRidge, "precomputed").fit(low, Y)
    assert model.rank_ == 4
    assert sorted(model.signature_) == [-1, -1, 1, 1]
    a, b = oracles.exact_ridge(low, Y, tuple(LAMBDAS.values()))
    np.testing.assert_allclose(model.predict(low), (low @ a + b)[:, 0], rtol=1e-8)


# Precision, order, parameters of kernels


@learners
@pytest.mark.parametrize("kernel", [KERNEL, "euclidean"], ids=["similarity", "distance"])
def test_landmarks_may_be_named_in_any_order(learner, kernel):
    y, w = targets_of(learner), RNG.uniform(0.5, 2, N)
    order = RNG.permutation(N)
    one = make(learner, kernel, similarity="exp").fit(X, y, sample_weight=w)
    other = make(learner, kernel, similarity="exp", landmarks=order).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(other.landmark_indices_, order)
    agree(scores_of(other), scores_of(one), squared=is_squared(learner))
    np.testing.assert_allclose(other.dual_coef_, one.dual_coef_[order], atol=1e-5)


@learners
def test_predictions_are_those_of_the_dual_coefficients(learner):
    model = make(learner, tuned=True).fit(X, targets_of(learner, 2))
    wanted = K_NEW @ model.dual_coef_.reshape(N) + model.intercept_
    size = np.abs(model.dual_coef_).sum() * np.abs(K_NEW).max()
    assert np.abs(scores_of(model) - wanted).max() <= 100 * EPS * N * max(size, 1.0)


@pytest.mark.parametrize("learner", [*REGRESSORS, KreinRidgeClassifier])
def test_a_list_of_kernel_parameters(learner):
    """The parameters whose own fit has the smallest loss, and then the model of that fit."""
    widths, y = [{"width": width} for width in (0.01, 2.0, 500.0)], targets_of(learner)
    alone = [make(learner, "gaussian", kernel_params=p, tuned=True).fit(X, y) for p in widths]
    best = int(np.argmin([model.cv_loss_ for model in alone]))
    model = make(learner, "gaussian", kernel_params=widths, tuned=True).fit(X, y)
    assert model.kernel_params_ == widths[best]
    assert model.cv_loss_ == pytest.approx(alone[best].cv_loss_, rel=1e-9)
    np.testing.assert_allclose(scores_of(model), scores_of(alone[best]), rtol=1e-9)
