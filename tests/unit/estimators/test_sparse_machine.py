"""Sparse machines against their optimality conditions on dense columns, and liblinear."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from kreinlearn import KreinSVC, dissimilarity, pairwise
from kreinlearn.kernels import GaussianCombination
from kreinlearn.learn.losses.sparse import one_standard_error
from tests import oracles

RNG = np.random.default_rng(111)
N, M = 120, 25
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(30, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
SIGNS = np.where(F + 0.4 * RNG.normal(size=N) > 0.2, 1.0, -1.0)
LABELS = np.digitize(F, np.quantile(F, [0.3, 0.7]))
W = RNG.uniform(0.2, 3, N)
Z = np.sort(RNG.permutation(N)[:M])
KERNEL = GaussianCombination(weights=(1.0, -0.7), widths=(6.0, 1.5), unit=1.0)
KREIN = {"lambda_plus": 3e-3, "lambda_minus": 2e-2}
L1 = {"lambda_plus": 0, "lambda_minus": 0}  # no penalty but that on the coefficients


def similarity(A, B):
    d2 = ((A[:, None] - B[None]) ** 2).sum(2)
    return np.exp(-d2 / 6) - 0.7 * np.exp(-d2 / 1.5)


C, K_ZZ, C_NEW = similarity(X, X[Z]), similarity(X[Z], X[Z]), similarity(X_NEW, X[Z])


def make(penalty="l1", strength=0.02, kernel=KERNEL, **params):
    norms = L1 if penalty == "l1" else KREIN
    return KreinSVC(
        kernel, **{"landmarks": Z, "random_state": 0, "lambda_l1": strength, **norms, **params}
    )


def roots_of_mean_squares(C, w=None):
    return np.sqrt(np.average(C**2, axis=0, weights=w))


def coefficients(model, rms):
    """Of all landmarks, in units in which their columns have mean square 1: (m, q)."""
    dual = np.zeros((M, model.dual_coef_.shape[1]))
    dual[np.searchsorted(Z, model.landmark_indices_)] = model.dual_coef_
    return dual * rms[:, None]


def half_norm(penalties):
    """lambda_plus K_+ + lambda_minus K_-, whose quadratic form is the Krein norms' sum."""
    R_plus, R_minus = oracles.part_roots(K_ZZ)
    return penalties[0] * R_plus.T @ R_plus + penalties[1] * R_minus.T @ R_minus


def gradients(a, b, y, w, rms, penalties):
    """Of mean w max(0, 1 - y f)^2 + the Krein norms, in the coefficients and the constant."""
    f = C @ (a / rms) + b
    slope = -2 * w * y * np.maximum(0, 1 - y * f) / w.sum()
    return (C / rms).T @ slope + 2 * (half_norm(penalties) @ (a / rms)) / rms, slope.sum()


def assert_optimal(model, Y, strength, w=None, penalties=(0.0, 0.0), intercept=True):
    """-gradient is in strength times the subdifferential of |a|; that of the constant is zero."""
    weights = np.ones(N) if w is None else w
    rms = roots_of_mean_squares(C, w)
    for a, b, y in zip(coefficients(model, rms).T, model.intercept_, Y.T, strict=True):
        gradient, constant = gradients(a, b, y, weights, rms, penalties)
        at_zero = a == 0
        assert (np.abs(gradient[at_zero]) <= strength + 1e-8).all()
        expected = -strength * np.sign(a[~at_zero])
        np.testing.assert_allclose(gradient[~at_zero], expected, rtol=0, atol=1e-8)
        if intercept:
            assert abs(constant) < 1e-8
        else:
            assert b == 0


def strongest(y, w=None, intercept=True):
    """The least strength at which no landmark is left: there f is the mean of the signs."""
    weights = np.ones(N) if w is None else w
    rms = roots_of_mean_squares(C, w)
    b = np.average(y, weights=weights) if intercept else 0.0
    return np.abs(gradients(np.zeros(M), b, y, weights, rms, (0, 0))[0]).max()


# The minimum

STRENGTHS = [0.3, 0.05, 0.005, 0.0005]
weights = pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])


@weights
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_l1_to_its_optimality_conditions(strength, intercept, w):
    model = make("l1", strength, fit_intercept=intercept).fit(X, SIGNS, sample_weight=w)
    assert_optimal(model, SIGNS[:, None], strength, w, intercept=intercept)
    assert model.lambda_l1_ == strength
    assert model.lambda_plus_ == model.lambda_minus_ == 0


@weights
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_elastic_net_to_its_optimality_conditions(strength, intercept, w):
    model = make("elasticnet", strength, fit_intercept=intercept).fit(X, SIGNS, sample_weight=w)
    penalties = (KREIN["lambda_plus"], KREIN["lambda_minus"])
    assert_optimal(model, SIGNS[:, None], strength, w, penalties, intercept)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_many_classes_are_a_problem_each(penalty):
    model = make(penalty, 0.03).fit(X, LABELS)
    Y = np.where(LABELS[:, None] == np.arange(3), 1.0, -1.0)
    penalties = (KREIN["lambda_plus"], KREIN["lambda_minus"]) if penalty != "l1" else (0.0, 0.0)
    assert_optimal(model, Y, 0.03, None, penalties)
    alone = [make(penalty, 0.03).fit(X, y) for y in Y.T]
    used = [set(one.landmark_indices_.tolist()) for one in alone]
    assert set(model.landmark_indices_.tolist()) == used[0] | used[1] | used[2]
    assert max(map(len, used)) < model.n_active_landmarks_ == len(used[0] | used[1] | used[2])
    assert model.decision_function(X_NEW).shape == (30, 3)


def liblinear(columns, y, strength):
    """1/(n strength) sum squared hinge + |a|_1, without a constant."""
    machine = LinearSVC(
        penalty="l1", loss="squared_hinge", dual=False, C=1 / (len(y) * strength),
        fit_intercept=False, tol=1e-9, max_iter=10**6,
    )  # fmt: skip
    return machine.fit(columns, y).coef_[0]


@pytest.mark.parametrize("strength", STRENGTHS[:3])
def test_l1_is_that_of_liblinear(strength):
    model = make("l1", strength, fit_intercept=False).fit(X, SIGNS)
    rms = roots_of_mean_squares(C)
    a = liblinear(C / rms, SIGNS, strength)
    f = C_NEW / rms @ a
    np.testing.assert_allclose(model.decision_function(X_NEW), f, atol=1e-5 * np.abs(f).max())
    assert model.n_active_landmarks_ == np.count_nonzero(np.abs(a) > 1e-7)


def test_without_strength_the_elastic_net_is_the_l2_machine():
    sparse = make("elasticnet", 1e-9).fit(X, SIGNS)
    plain = KreinSVC(KERNEL, landmarks=Z, **KREIN).fit(X, SIGNS)
    f, g = sparse.decision_function(X_NEW), plain.decision_function(X_NEW)
    np.testing.assert_allclose(f, g, rtol=0, atol=1e-4 * np.abs(g).max())


def test_a_column_of_zeros_has_no_coefficient():
    def k(A, B):
        K = similarity(np.asarray(A)[:, :3], np.asarray(B)[:, :3])
        return K * np.asarray(A)[:, 3:] * np.asarray(B)[:, 3]

    marked = np.column_stack([X, np.ones(N)])
    marked[Z[4], 3] = 0.0  # similar to nothing, not even to itself
    for penalty in ("l1", "elasticnet"):
        model = make(penalty, 0.005, k).fit(marked, SIGNS)
        assert Z[4] not in model.landmark_indices_
        assert np.isfinite(model.decision_function(marked)).all()


# How many landmarks are left


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_fewer_landmarks_as_the_strength_grows(penalty):
    counts = [make(penalty, s).fit(X, SIGNS).n_active_landmarks_ for s in np.logspace(-3, 0, 7)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 15
    assert counts[-1] == 0
    assert len(set(counts)) >= 5


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("intercept", [True, False])
@weights
def test_no_landmark_is_left_from_some_strength_on(penalty, intercept, w):
    most = strongest(SIGNS, w, intercept)
    none = make(penalty, most * 1.0001, fit_intercept=intercept).fit(X, SIGNS, sample_weight=w)
    assert none.n_active_landmarks_ == 0
    expected = np.average(SIGNS, weights=w) if intercept else 0.0
    np.testing.assert_allclose(none.decision_function(X_NEW), expected, rtol=1e-9)
    some = make(penalty, most * 0.999, fit_intercept=intercept).fit(X, SIGNS, sample_weight=w)
    assert some.n_active_landmarks_ >= 1


def test_no_landmark_of_many_classes():
    model = make("l1", 5.0).fit(X, LABELS)
    assert model.n_active_landmarks_ == 0
    shares = np.bincount(LABELS) / N
    np.testing.assert_allclose(model.decision_function(X_NEW)[0], 2 * shares - 1, rtol=1e-9)
    assert set(model.predict(X_NEW)) == {np.argmax(shares)}


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_landmarks_without_a_coefficient_are_dropped(penalty):
    model = make(penalty, 0.02).fit(X, LABELS)
    k = model.n_active_landmarks_
    assert 0 < k < M
    assert model.n_landmarks_ == len(model.landmarks_) == len(model.dual_coef_) == k
    np.testing.assert_array_equal(model.landmarks_, X[model.landmark_indices_])
    assert model.dual_coef_.any(axis=1).all()
    np.testing.assert_array_equal(model.coef_, model.dual_coef_.T)
    f = similarity(X_NEW, model.landmarks_) @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(X_NEW), f, rtol=0, atol=1e-12)
    assert not hasattr(model, "signature_")
    assert not hasattr(model, "eigenvalues_")


def test_the_l2_machine_has_no_count():
    model = KreinSVC(KERNEL, landmarks=Z, **KREIN).fit(X, SIGNS)
    for name in ("n_active_landmarks_", "lambda_l1_", "l1_path_"):
        assert not hasattr(model, name)
    sparse = make().fit(X, SIGNS)
    sparse.set_params(lambda_l1=None, **KREIN).fit(X, SIGNS)
    assert not hasattr(sparse, "n_active_landmarks_")


# Fewer evaluations


def counted(calls):
    def k(i, j):
        calls[i, j] += 1
        return float(similarity(X[[i]], X[[j]])[0, 0])

    return pairwise(k)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_prediction_evaluates_active_landmarks_alone(penalty):
    calls, objects = Counter(), list(range(N))
    model = make(penalty, 0.03, counted(calls)).fit(objects, SIGNS)
    active = model.n_active_landmarks_
    assert 0 < active < M / 2
    calls.clear()
    model.decision_function(objects[:40])
    assert sum(calls.values()) == 40 * active
    assert {j for _, j in calls} == set(model.landmark_indices_.tolist())


def test_a_model_without_landmarks_evaluates_one():
    calls, objects = Counter(), list(range(N))
    model = make("l1", 5.0, counted(calls)).fit(objects, SIGNS)
    calls.clear()
    model.decision_function(objects[:40])
    assert sum(calls.values()) <= 40


def test_no_pair_is_evaluated_twice_in_fit():
    calls, objects = Counter(), list(range(N))
    make("l1", "auto", counted(calls)).fit(objects, SIGNS)
    landmarks = set(Z.tolist())
    assert {n for (i, j), n in calls.items() if not {i, j} <= landmarks} == {1}


# Strengths that are tuned


@pytest.mark.parametrize(("n", "most"), [(N, None), (50, 50)], ids=["one map", "a map a fold"])
def test_the_losses_of_a_path_by_hand(n, most):
    given = {"landmarks": Z} if most is None else {"landmarks": None}
    model = make("l1", "auto", fit_intercept=False, cv=3, **given).fit(X[:n], SIGNS[:n])
    K, y = similarity(X[:n], X[:n]), SIGNS[:n]
    for strength, mean, _ in model.l1_path_[[1, 5]]:
        total = 0.0
        for k in range(3):
            train, valid = np.flatnonzero(model.folds_ != k), np.flatnonzero(model.folds_ == k)
            own = Z if most is None else train
            rms = roots_of_mean_squares(K[np.ix_(train, own)])
            a = liblinear(K[np.ix_(train, own)] / rms, y[train], strength)
            f = K[np.ix_(valid, own)] / rms @ a
            total += np.sum(np.maximum(0, 1 - y[valid] * f) ** 2)
        assert mean == pytest.approx(total / np.sum(model.folds_ >= 0), rel=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_the_largest_strength_within_one_standard_error(penalty):
    model = make(penalty, "auto").fit(X, SIGNS)
    strengths, losses, errors = model.l1_path_.T
    assert (np.diff(strengths) < 0).all()
    assert strengths[0] == pytest.approx(strongest(SIGNS), rel=1e-6)
    best = losses.argmin()
    allowed = losses <= losses[best] + errors[best]
    assert model.lambda_l1_ == strengths[allowed].max()
    assert model.lambda_l1_ >= strengths[best]
    assert 0 < model.n_active_landmarks_ < M


def test_one_standard_error():
    trials = np.array([[8, 3.0, 0.1], [4, 2.2, 0.1], [2, 2.0, 0.3], [1, 2.1, 0.1]])
    assert one_standard_error(trials) == 4
    trials[2, 2] = 0.05
    assert one_standard_error(trials) == 2


@pytest.mark.parametrize("strength", [0.02, "auto"])
def test_norms_of_the_elastic_net_are_tuned(strength):
    model = make("elasticnet", strength, lambda_plus="auto", lambda_minus="auto").fit(X, SIGNS)
    assert model.lambda_plus_ > 0
    assert model.lambda_minus_ > 0
    assert len(model.cv_trials_)
    penalties = (model.lambda_plus_, model.lambda_minus_)
    assert_optimal(model, SIGNS[:, None], model.lambda_l1_, None, penalties)


def test_l1_has_no_norms_to_tune():
    model = make("l1", 0.02).fit(X, SIGNS)
    assert not hasattr(model, "cv_trials_")
    assert model.l1_path_.shape == (0, 3)


# Units, sources


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("strength", [0.02, "auto"])
@pytest.mark.parametrize("c", [1e6, 4.0**-60])
def test_the_unit_of_the_kernel_does_not_matter(penalty, strength, c):
    K, K_new = similarity(X, X), similarity(X_NEW, X)
    norms = {name: value * c for name, value in KREIN.items()} if penalty == "elasticnet" else {}
    one = make(penalty, strength, "precomputed").fit(K, SIGNS)
    other = make(penalty, strength, "precomputed", **norms).fit(c * K, SIGNS)
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    assert other.lambda_l1_ == pytest.approx(one.lambda_l1_, rel=1e-7)
    f, g = one.decision_function(K_new), other.decision_function(c * K_new)
    np.testing.assert_allclose(g, f, rtol=0, atol=1e-7 * np.abs(f).max())


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_vectors_matrix_and_columns(penalty):
    K, K_new = similarity(X, X), similarity(X_NEW, X)
    vectors = make(penalty).fit(X, SIGNS)
    matrix = make(penalty, kernel="precomputed").fit(K, SIGNS)
    f = vectors.decision_function(X_NEW)
    np.testing.assert_allclose(matrix.decision_function(K_new), f, rtol=0, atol=1e-8)
    for given, given_new in ((K, K_new), (K[:, Z], K_new[:, Z])):
        columns = make(penalty, kernel="precomputed").fit(given, SIGNS)
        active = columns.landmark_indices_
        assert len(active) == columns.n_active_landmarks_ < M
        np.testing.assert_array_equal(active, vectors.landmark_indices_)
        for some in (given_new, K_new[:, active]):
            g = columns.decision_function(some)
            np.testing.assert_allclose(g, f, rtol=0, atol=1e-8)


@pytest.mark.parametrize("square", [True, False])
def test_columns_of_active_landmarks_are_known_by_name(square):
    names = np.array([f"o{i}" for i in range(N)])
    K = pd.DataFrame(similarity(X, X), columns=names)
    given = K if square else K[names[Z]]
    model = make(kernel="precomputed").fit(given, SIGNS)
    active = names[model.landmark_indices_]
    expected = make().fit(X, SIGNS).decision_function(X)
    for some in (given, K[active]):
        np.testing.assert_allclose(model.decision_function(some), expected, rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="The feature names should match"):
        model.decision_function(K[active[::-1]])


@pytest.mark.parametrize("name", ["squared", "exp", "local3"])
def test_distances_keep_what_makes_them_similarities(name):
    def d(i, j):
        return float(np.abs(X[i] - X[j]).sum())

    D = np.abs(X[:, None] - X[None]).sum(2)
    params = {"similarity": name, "lambda_l1": 0.03, "landmarks": Z, **L1}
    matrix = KreinSVC("precomputed_dissimilarity", **params).fit(D, SIGNS)
    objects = KreinSVC(dissimilarity(pairwise(d)), **params).fit(list(range(N)), SIGNS)
    assert 0 < matrix.n_active_landmarks_ < M
    np.testing.assert_array_equal(matrix.landmark_indices_, objects.landmark_indices_)
    f = matrix.decision_function(D)
    np.testing.assert_allclose(objects.decision_function(list(range(N))), f, rtol=0, atol=1e-9)
    if name == "squared":
        means = (D[:, Z] ** 2).mean(1)
        own = matrix.landmark_indices_
        K = -0.5 * (D[:, own] ** 2 - means[:, None] - means[own] + means[Z].mean())
        expected = K @ matrix.dual_coef_[:, 0] + matrix.intercept_[0]
        np.testing.assert_allclose(f, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["squared", "exp"])
def test_columns_of_distances(name):
    """To centre or scale them all landmarks of the fit are wanted, as at the fit."""
    D = np.abs(X[:, None] - X[None]).sum(2)
    params = {"similarity": name, "lambda_l1": 0.03, "landmarks": Z, **L1}
    matrix = KreinSVC("precomputed_dissimilarity", **params).fit(D, SIGNS)
    columns = KreinSVC("precomputed_dissimilarity", **params)
    columns.fit(D[:, Z], SIGNS)
    f = matrix.decision_function(D)
    np.testing.assert_allclose(columns.decision_function(D[:, Z]), f, rtol=0, atol=1e-9)


def test_pickled():
    model = make().fit(X, LABELS)
    again = pickle.loads(pickle.dumps(model))
    f = model.decision_function(X_NEW)
    np.testing.assert_array_equal(again.decision_function(X_NEW), f)


# What is refused


@pytest.mark.parametrize("bad", [0, -1.0, "much"])
def test_strengths_that_are_none(bad):
    with pytest.raises(ValueError, match="'lambda_l1' parameter of KreinSVC must be"):
        make("l1", bad).fit(X, SIGNS)


def test_too_few_steps_warn(monkeypatch):
    monkeypatch.setattr("kreinlearn.learn.losses.sparse.STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge in .* steps"):
        make("l1", 1e-4).fit(X, SIGNS)
