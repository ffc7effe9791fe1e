"""The l1-penalised machine against conditions of optimality and dense minimisation."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.learn.losses.sparse import (
    PATH,
    SparseHinge,
    column_scales,
    cross_validated_path,
    krein_norm,
    one_standard_error,
    path_to,
)
from kreinlearn.solvers.margins import DenseRows
from kreinlearn.solvers.sparse import l1_path
from tests.unit.learn.learning import FEW, MOST, RNG, K, N, W, Y, of_vectors, one_pass

SIGNS = np.where(Y[:, :1] > Y[:, :1].mean(), 1.0, -1.0)


def solved(landmarks, values, strength, **params):
    loss = SparseHinge(strength=strength)
    task = of_vectors(landmarks, targets=SIGNS, w=W, **params)
    task, features, kept = one_pass(loss, task, by_fold=False)
    return task, features, loss.solve(task, features, np.array(values), kept)


def objective(C, a, b, strength, Q):
    """Mean squared hinge, the l1 norm of coefficients of scaled columns, and a quadratic form."""
    short = np.maximum(0, 1 - SIGNS[:, 0] * (C @ a + b))
    scale = np.sqrt(W @ np.square(C) / W.sum())
    return W @ short**2 / W.sum() + strength * np.abs(a * scale).sum() + a @ Q @ a


@pytest.mark.parametrize("values", [(0.0, 0.0), (0.05, 0.2)], ids=["l1", "elastic net"])
@pytest.mark.parametrize("strength", [0.01, 0.1])
def test_no_change_of_a_coefficient_lowers_the_objective(values, strength):
    """Directional derivatives of a convex function are zero or positive at its minimum."""
    _, features, model = solved(FEW, values, strength)
    C, a, b = K[:, FEW], model.coef[:, 0], model.intercept[0]
    ones = np.ones(len(FEW))
    Q = krein_norm(features.map.W, features.map.S, np.array(values), ones)
    best, step = objective(C, a, b, strength, Q), 1e-6
    for j in range(len(FEW)):
        for sign in (-step, step):
            moved = a.copy()
            moved[j] += sign / np.sqrt(W @ C[:, j] ** 2 / W.sum())
            assert objective(C, moved, b, strength, Q) >= best - 1e-10
    for sign in (-step, step):
        assert objective(C, a, b + sign, strength, Q) >= best - 1e-10
    assert model.converged


def test_stronger_penalties_leave_fewer_landmarks():
    counts = []
    for strength in (1e-2, 0.1, 0.2, 100.0):
        _, _, model = solved(MOST, (0.0, 0.0), strength)
        active = np.flatnonzero(model.coef.any(axis=1))
        counts.append(len(active))
        assert model.attributes["n_active_landmarks_"] == len(active)
        np.testing.assert_array_equal(model.landmarks, active if len(active) else [0])
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5
    assert counts[-1] == 0


def test_the_strength_is_tuned_on_folds_by_hand():
    task, _, model = solved(FEW, (0.0, 0.0), None)
    trials = model.attributes["l1_path_"]
    assert trials.shape == (len(PATH), 3)
    np.testing.assert_allclose(trials[:, 0] / trials[0, 0], PATH, rtol=1e-12)
    assert model.attributes["lambda_l1_"] == one_standard_error(trials)
    total, weight, strengths = np.zeros(3), 0.0, trials[[2, 7, 12], 0]
    for split in task.splits(columns=True):
        C, _ = split.columns
        train, valid, n = split.train, split.valid, W[split.train].sum()
        scale = 1 / np.sqrt(W[train] @ C[train] ** 2 / n)
        F = np.column_stack([C * scale, np.ones(N)])
        l1 = np.append(np.ones(len(scale)), 0.0)
        path = l1_path(DenseRows(F[train]), SIGNS[train, 0], W[train], l1, n * strengths)
        for i, solution in enumerate(path):
            short = np.maximum(0, 1 - SIGNS[valid, 0] * (F[valid] @ solution.coef[:, 0]))
            total[i] += W[valid] @ short**2
        weight += W[valid].sum()
    np.testing.assert_allclose(trials[[2, 7, 12], 1], total / weight, rtol=1e-4)


def test_the_largest_strength_within_one_standard_error():
    trials = np.array([[8.0, 2.0, 0.1], [4.0, 1.05, 0.1], [2.0, 1.0, 0.1], [1.0, 1.2, 0.1]])
    assert one_standard_error(trials) == 4.0
    trials[:, 2] = 1e-6
    assert one_standard_error(trials) == 2.0


def test_maps_of_their_own_are_tuned_on_honest_folds():
    task = of_vectors(MOST, targets=SIGNS, w=W)
    assert task.honest
    trials = cross_validated_path(task, np.array([1.0, 0.01]), None)
    assert np.isfinite(trials).all()
    assert trials[1, 1] < trials[0, 1]


def test_paths_fall_to_the_strength_that_is_wanted():
    path = path_to(1e-3, 1.0)
    assert (path[0], path[-1]) == (1.0, pytest.approx(1e-3))
    assert (np.diff(path) < 0).all()
    np.testing.assert_array_equal(path_to(2.0, 1.0), [2.0])


def test_columns_of_unit_mean_square():
    C = RNG.normal(size=(40, 3)) * [2.0, 0.0, 5.0]
    scale = column_scales(np.square(C).sum(axis=0), 40.0)
    np.testing.assert_allclose(np.square(C * scale).mean(axis=0), [1.0, 0.0, 1.0], atol=1e-12)
    assert scale[1] == 1.0


def test_the_krein_norms_as_a_quadratic_form():
    """a' Q a = lambda_plus |f_+|^2 + lambda_minus |f_-|^2 of f = k(., Z) (scale a)."""
    _, features, _ = solved(FEW, (0.0, 0.0), 0.1)
    scale, a = RNG.uniform(0.5, 2, len(FEW)), RNG.normal(size=len(FEW))
    Q = krein_norm(features.map.W, features.map.S, np.array([0.3, 0.7]), scale)
    D, U = np.linalg.eigh(K[np.ix_(FEW, FEW)])
    parts = np.square(U.T @ (scale * a)) * np.abs(D)
    assert a @ Q @ a == pytest.approx(0.3 * parts[D > 0].sum() + 0.7 * parts[D < 0].sum())
