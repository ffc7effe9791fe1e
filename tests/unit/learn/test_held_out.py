"""Scores of objects by models without them, against refits with plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinClassifier, KreinRegressor, Landmarks
from kreinlearn.estimators import learner
from kreinlearn.learn.fit import Model
from kreinlearn.learn.folds import TRAINING

EPS = float(np.finfo(np.float64).eps)
RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 2))
VALUES = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] + 7.0])
LABELS = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=N), [-0.4, 0.5])


def tanh(A: Any, B: Any) -> Any:
    """An indefinite similarity of full rank whose features are well conditioned."""
    return np.tanh(A @ B.T - 0.5) + 0.3 * np.exp(-2 * distances(A, B))


def distances(A: Any, B: Any) -> Any:
    return np.square(A[:, None] - B).sum(axis=2)


@pytest.fixture
def held(monkeypatch: Any) -> Any:
    """Fit an estimator, and return it with all that the fit has found."""
    found: list[Model] = []

    def recorded(*args: Any) -> Model:
        found.append(fit(*args))
        return found[-1]

    fit = learner.fit_model
    monkeypatch.setattr(learner, "fit_model", recorded)

    def fitted(model: Any, *data: Any) -> Any:
        model.fit(*data)
        return model, found[-1].held_out

    return fitted


def krein_features(K_ZZ: Any) -> tuple[Any, Any]:
    """W and S with Phi = C W and K ~ Phi S Phi', of the kernel values C to landmarks Z."""
    D, U = np.linalg.eigh(0.5 * (K_ZZ + K_ZZ.T))
    kept = np.abs(D) > 1e-10 * np.abs(D).max()
    D, U = D[kept], U[:, kept]
    return U * np.sign(D) / np.sqrt(np.abs(D)), np.sign(D)


def ridge(Phi: Any, Y: Any, w: Any, penalty: Any) -> Any:
    """Coefficients and an intercept that is not penalised: (r + 1, q)."""
    A = np.hstack([Phi, np.ones((len(Phi), 1))])
    P = np.diag([*penalty, 0.0])
    return np.linalg.solve(A.T @ (w[:, None] * A) + P, A.T @ (w[:, None] * Y))


def refitted(
    C: Any, landmarks: Any, Y: Any, w: Any, penalties: Any, train: Any, n: float | None = None
) -> Any:
    """Scores of all rows by a model of the training rows, in the features of some landmarks."""
    W, S = krein_features(C[landmarks])
    total = w[train].sum() if n is None else n
    Phi = C @ W
    b = ridge(Phi[train], Y[train], w[train], total * np.where(S > 0, *penalties))
    return Phi @ b[:-1] + b[-1]


def penalties_of(model: Any) -> tuple[float, float]:
    return model.lambda_plus_, model.lambda_minus_


def one_vs_rest(y: Any) -> Any:
    return 2.0 * (y[:, None] == np.unique(y)) - 1.0


WEIGHTS = {"equal": None, "weights": RNG.uniform(0.2, 3.0, size=N)}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_with_all_objects_scores_are_those_of_refits_without_a_fold(
    held: Any, kind: str, weights: str
) -> None:
    """The mean of two rounds. Penalties are the same per object in a part of them."""
    given, w = WEIGHTS[weights], np.ones(N) if WEIGHTS[weights] is None else WEIGHTS[weights]
    if kind == "classes":
        model, found = held(KreinClassifier(tanh, random_state=0), X, LABELS, given)
        Y = one_vs_rest(LABELS)
    else:
        model, found = held(KreinRegressor(tanh, random_state=0), X, VALUES, given)
        Y = VALUES - np.average(VALUES, axis=0, weights=given)
    K, expected = tanh(X, X), np.zeros_like(Y)
    assert model.folds_.shape == (N, 2)
    for folds in model.folds_.T:
        for k in range(5):
            rest, test = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
            root = np.sqrt(w[rest])
            D, U = np.linalg.eigh(root[:, None] * K[np.ix_(rest, rest)] * root)
            Phi = U * np.sqrt(np.abs(D)) / root[:, None]
            new = (K[np.ix_(test, rest)] * root) @ U * np.sign(D) / np.sqrt(np.abs(D))
            penalty = w[rest].sum() * np.where(D > 0, *penalties_of(model))
            b = ridge(Phi, Y[rest], w[rest], penalty)
            expected[test] += (new @ b[:-1] + b[-1]) / 2
    assert model.n_landmarks_ == N
    atol = 1e3 * N * EPS * np.abs(Y).max() / min(penalties_of(model))
    assert atol < 1e-6
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(found.Y, Y, rtol=0, atol=4 * N * EPS * np.abs(VALUES).max())
    np.testing.assert_array_equal(found.weights, w)
    assert (found.near is None) == isinstance(model, KreinRegressor)  # it has no neighbours
    if found.near is not None:
        np.testing.assert_array_equal(found.near.own, np.arange(N))
        np.testing.assert_array_equal(found.near.values, found.near.landmarks.values)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_with_landmarks_scores_are_those_of_a_refit_without_each_fold(
    held: Any, weights: str
) -> None:
    """Landmarks are few: they are in every training part, and no fold makes its own map."""
    given, w = WEIGHTS[weights], np.ones(N) if WEIGHTS[weights] is None else WEIGHTS[weights]
    model, found = held(KreinClassifier(tanh, landmarks=12, random_state=0), X, LABELS, given)
    Z, folds = model.landmark_indices_, model.folds_
    C, Y = tanh(X, X[Z]), one_vs_rest(LABELS)
    expected = np.full(Y.shape, np.nan)
    for k in range(folds.max() + 1):
        scores = refitted(C, Z, Y, w, penalties_of(model), np.flatnonzero(folds != k))
        expected[folds == k] = scores[folds == k]
    tested = np.flatnonzero(folds != TRAINING)
    np.testing.assert_array_equal(np.setdiff1d(np.arange(N), tested), np.sort(Z))
    assert_scores_agree(found.scores, expected[tested], C, Z)
    np.testing.assert_array_equal(found.Y, Y[tested])
    np.testing.assert_array_equal(found.weights, w[tested])
    np.testing.assert_array_equal(found.near.own, -1)
    np.testing.assert_array_equal(found.near.landmarks.Y, Y[Z])
    np.testing.assert_array_equal(found.near.landmarks.weights, w[Z])
    np.testing.assert_allclose(found.near.values, C[tested], rtol=0, atol=16 * EPS)


def assert_scores_agree(found: Any, expected: Any, C: Any, Z: Any) -> None:
    """Normal equations of features: the rounding of K_ZZ^-1, squared, and of sums over rows."""
    condition = np.linalg.cond(C[Z])
    assert condition < 1e5  # otherwise this would say nothing
    atol = N * len(Z) * EPS * condition**2
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol * np.abs(expected).max())


def test_if_most_rows_are_landmarks_each_fold_has_the_landmarks_of_its_training_part(
    held: Any,
) -> None:
    rows = np.arange(5, 45)  # 40 of 60
    model, found = held(KreinClassifier(tanh, landmarks=rows, random_state=0), X, LABELS)
    C, Y, w, folds = tanh(X, X[rows]), one_vs_rest(LABELS), np.ones(N), model.folds_
    expected = np.full(Y.shape, np.nan)
    for k in range(folds.max() + 1):
        train = np.flatnonzero(folds != k)
        mine = np.isin(rows, train)
        scores = refitted(C[:, mine], rows[mine], Y, w, penalties_of(model), train)
        expected[folds == k] = scores[folds == k]
    assert len(found.scores) == N
    atol = N * len(rows) * EPS * np.linalg.cond(C[rows])  # features of rows, and no sums of them
    assert atol < 1e-5
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=atol)
    own = np.where(np.isin(np.arange(N), rows), np.arange(N) - 5, -1)
    np.testing.assert_array_equal(found.near.own, own)


def test_landmarks_from_outside_have_no_targets(held: Any) -> None:
    Z = np.random.default_rng(3).normal(size=(9, 2))
    model, found = held(KreinRegressor(tanh, landmarks=Z, random_state=0), X, VALUES[:, 0])
    C, y = tanh(X, Z), VALUES[:, :1] - VALUES[:, 0].mean()
    W, S = krein_features(tanh(Z, Z))
    expected = np.empty_like(y)
    for k in range(model.folds_.max() + 1):
        train = model.folds_ != k
        Phi, total = C @ W, train.sum()
        b = ridge(
            Phi[train], y[train], np.ones(total), total * np.where(S > 0, *penalties_of(model))
        )
        expected[~train] = (Phi @ b[:-1] + b[-1])[~train]
    _, near = held(KreinClassifier(tanh, landmarks=Z, random_state=0), X, LABELS)
    assert near.near.landmarks is None
    np.testing.assert_array_equal(near.near.own, -1)
    assert_scores_agree(found.scores, expected, np.vstack([C, tanh(Z, Z)]), np.arange(N, N + 9))


def test_the_order_of_landmarks_is_kept(held: Any) -> None:
    order = np.random.default_rng(4).permutation(N)
    model, found = held(KreinClassifier(tanh, landmarks=order, random_state=0), X, LABELS)
    _, plain = held(KreinClassifier(tanh, landmarks=None, random_state=0), X, LABELS)
    np.testing.assert_array_equal(model.landmark_indices_, order)
    np.testing.assert_array_equal(found.Y, one_vs_rest(LABELS)[order])
    np.testing.assert_array_equal(found.near.landmarks.Y, found.Y)
    atol = 1e-7  # of penalties that a search has found twice
    np.testing.assert_allclose(found.scores, plain.scores[order], rtol=0, atol=atol)
    np.testing.assert_allclose(found.near.values, tanh(X[order], X[order]), rtol=0, atol=16 * EPS)


@pytest.mark.parametrize("landmarks", [np.arange(30), Landmarks(30, "uniform"), X[:30]])
def test_many_rows_leave_some_to_test_on(held: Any, landmarks: Any) -> None:
    """More rows than are looked at to choose landmarks."""
    rows = np.random.default_rng(2).normal(size=(9000, 2))
    model = KreinClassifier(landmarks=landmarks, random_state=0)
    model, found = held(model, rows, rows[:, 0] > 0)
    assert 4000 <= len(found.scores) <= 4096
    assert np.mean((found.scores[:, 0] > 0) == (found.Y[:, 0] > 0)) > 0.9
    assert model.expected_error_ < 0.1
