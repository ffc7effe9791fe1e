"""Least squares: tuned on folds, solved from sums or from rows, against one dense problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.learn.search import Tuned, Unknowns
from tests import oracles
from tests.unit.learn.learning import FEW, LAMBDAS, MOST, K, N, W, Y, of_vectors, one_pass

LOSS = SquaredError()
BOTH = Unknowns((None, None))


def swept(landmarks, *, by_fold=True, **params):
    task = of_vectors(landmarks, **params)
    return one_pass(LOSS, task, by_fold=by_fold and not task.honest)


def by_differences(objective, values, step=1e-5):
    """The gradient in the logarithms of the values."""
    x = np.log(values)
    return [
        (objective(np.exp(x + step * e))[0] - objective(np.exp(x - step * e))[0]) / (2 * step)
        for e in np.eye(len(x))
    ]


@pytest.mark.parametrize("landmarks", [FEW, MOST], ids=["few", "most"])
@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("lambdas", [LAMBDAS, (0.5, 1e-3)])
def test_the_gradient_of_the_folds_by_differences(landmarks, w, lambdas):
    task, features, kept = swept(landmarks, w=w)
    assert kept is None
    objective = LOSS.objective(task.folds_of(features))
    _, gradient = objective(np.array(lambdas))
    expected = by_differences(objective, np.array(lambdas))
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("landmarks", [FEW, MOST], ids=["few", "most"])
def test_the_criterion_is_a_loop_over_folds_by_hand(landmarks):
    task, features, _ = swept(landmarks, w=W)
    found = LOSS.criterion(task, features, loo=False)(np.array(LAMBDAS))[0]

    def fold(train, valid):
        own = np.intersect1d(landmarks, train) if task.honest else landmarks
        a, b = oracles.krein_ridge(
            K[np.ix_(train, own)], K[np.ix_(own, own)], Y[train], LAMBDAS, w=W[train]
        )
        return K[np.ix_(valid, own)] @ a + b

    assert found == pytest.approx(oracles.cross_validated(fold, task.folds, Y, W), rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_the_solution_is_that_of_one_dense_problem(intercept, w):
    task, features, _ = swept(FEW, by_fold=False, w=w, intercept=intercept)
    model = LOSS.solve(task, features, np.array(LAMBDAS), None)
    a, b = oracles.krein_ridge(K[:, FEW], K[np.ix_(FEW, FEW)], Y, LAMBDAS, w=w, intercept=intercept)
    found = K[:, FEW] @ features.map.W @ model.coef + model.intercept
    np.testing.assert_allclose(found, K[:, FEW] @ a + b, rtol=0, atol=1e-8)
    assert not model.singular


def test_tuning_finds_a_minimum():
    task, features, _ = swept(FEW)
    tuned = LOSS.tune(task, features, BOTH, loo=False)
    objective = LOSS.criterion(task, features, loo=False)
    assert objective(tuned.values)[0] == pytest.approx(tuned.loss, rel=1e-9)
    for factor in (0.1, 10.0):
        assert tuned.loss <= objective(factor * tuned.values)[0]


def test_leaving_one_out_is_tuned_by_its_own_loss():
    task, features, _ = swept(FEW, by_fold=False)
    tuned = LOSS.tune(task, features, BOTH, loo=True)
    assert tuned.loss == pytest.approx(task.leave_one_out(features)(tuned.values)[0], rel=1e-9)


def test_penalties_that_the_choice_of_a_similarity_found_are_taken():
    task, features, _ = swept(FEW)
    found = Tuned(np.array([0.1, 0.2]), 1.5, np.empty((0, 3)))
    task = replace(task, tuned=found)
    assert LOSS.tune(task, features, BOTH, loo=False) is found
    assert task.tuned_before(Unknowns((0.3, None))) is None


def test_no_fold_to_tune_on_is_an_error():
    task, features, _ = swept(MOST, folds=np.zeros(N, dtype=int))
    with pytest.raises(ValueError, match=f"n_samples={N} of positive weight leaves no fold"):
        LOSS.tune(task, features, BOTH, loo=False)
