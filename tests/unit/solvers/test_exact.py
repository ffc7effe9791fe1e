"""Least squares in the eigenbasis of all objects: definitions, repetition, finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.solvers.exact import Eigenbasis, ExactFold, LeaveOneOutLoss, Projected
from tests.unit.solvers.left_out import MATRICES, model_without

EPS = float(np.finfo(np.float64).eps)


def made(name: str, n: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    K = MATRICES[name](n, rng)
    return K, rng.normal(size=(n, 2)) + 3.0, rng.integers(1, 4, n).astype(float)


def predicted(basis: Eigenbasis, Y: np.ndarray, k: np.ndarray, values: np.ndarray, **how: bool):
    coefficients, b = Projected(basis, Y, **how).solve(values)
    return (k * basis.root) @ basis.spectrum.U @ coefficients + b


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_model_is_that_of_the_definition(name, signed, intercept) -> None:
    K, Y, w = made(name)
    basis = Eigenbasis.of(K, w, signed=signed)
    values = basis.scale * np.array([1e-2, 3e-3])
    found = predicted(basis, Y, K, values, intercept=intercept)
    wanted = model_without(K, w, Y, basis.n * values, None, intercept, signed)(K)
    condition = 1 / values.min() * basis.scale
    assert np.abs(found - wanted).max() <= 1e3 * len(K) * EPS * condition * np.abs(Y).max()


@pytest.mark.parametrize("signed", [True, False])
def test_integer_weights_are_repetitions(signed) -> None:
    K, Y, w = made("indefinite")
    again = np.repeat(np.arange(len(K)), w.astype(int))
    values = Eigenbasis.of(K, w, signed=signed).scale * np.array([1e-2, 1e-1])
    weighted = predicted(Eigenbasis.of(K, w, signed=signed), Y, K, values, intercept=True)
    repeated = Eigenbasis.of(K[np.ix_(again, again)], None, signed=signed)
    assert repeated.n == w.sum()
    found = predicted(repeated, Y[again], K[:, again], values, intercept=True)
    assert np.abs(found - weighted).max() <= 1e6 * EPS * np.abs(Y).max()


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize("signed", [True, False])
def test_a_common_factor_of_weights_that_cannot_be_squared_changes_nothing(signed, factor) -> None:
    K, Y, w = made("indefinite")
    found = []
    for weights in (w, factor * w):
        basis = Eigenbasis.of(K, weights, signed=signed)
        values = basis.scale * np.array([1e-3, 1e-2])
        loss, gradient = LeaveOneOutLoss(basis, Y, intercept=True)(values)
        model = predicted(basis, Y, K, values, intercept=True)
        found.append(np.concatenate([[loss], gradient, model.ravel()]))
    assert found[1] == pytest.approx(found[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_fold_has_the_loss_of_its_predictions_and_its_gradient(name, intercept) -> None:
    K, Y, w = made(name)
    train, valid = np.arange(16), np.arange(16, 24)
    basis = Eigenbasis.of(K[np.ix_(train, train)], w[train], signed=True)
    rows = K[np.ix_(valid, train)]
    fold = ExactFold(basis, Y[train], rows, Y[valid], w[valid], intercept=intercept)
    values = basis.scale * np.array([3e-2, 1e-1])
    loss, gradient = fold.loss_and_gradient(values)
    errors = predicted(basis, Y[train], rows, values, intercept=intercept) - Y[valid]
    assert loss == pytest.approx((w[valid, None] * errors**2).sum(), rel=1e-9)
    assert fold.n_valid == w[valid].sum()
    for j in range(2):
        step = 1e-5  # central differences: step^2 of truncation, eps / step of rounding
        up, down = values.copy(), values.copy()
        up[j] *= np.exp(step)
        down[j] *= np.exp(-step)
        slope = (fold.loss_and_gradient(up)[0] - fold.loss_and_gradient(down)[0]) / (2 * step)
        assert gradient[j] == pytest.approx(slope, abs=1e-6 * max(loss, 1.0))


def test_penalties_of_groups_without_eigenvalues_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    basis = Eigenbasis.of(X @ X.T, None, signed=True)
    Y = rng.normal(size=(20, 1))
    one, other = (
        predicted(basis, Y, X @ X.T, np.array([0.1, minus]), intercept=True) for minus in (0.1, 9.0)
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize("signed", [True, False])
def test_a_large_mean_of_the_targets_costs_no_digits(signed) -> None:
    """Whole targets and a weight of 64 have a mean, and differences from it, without rounding."""
    rng = np.random.default_rng(1)
    K, Y = MATRICES["indefinite"](28, rng), rng.integers(-9, 10, (28, 2)).astype(float)
    w = np.where(np.arange(28) < 16, 1.0, 4.0)
    basis = Eigenbasis.of(K, w, signed=signed)
    values = basis.scale * np.array([1e-1, 3e-1])
    models = [Projected(basis, Y + large, intercept=True) for large in (0.0, 2.0**40)]
    wanted, found = (model.solve(values)[0] for model in models)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e3 * EPS * np.abs(wanted).max())
    left_out = [LeaveOneOutLoss(basis, Y + large, intercept=True) for large in (0.0, 2.0**40)]
    wanted, found = (loss(values)[0] for loss in left_out)
    assert found == pytest.approx(wanted, rel=1e3 * EPS)


@pytest.mark.parametrize("overwrite", [True, False])
def test_the_memory_of_the_matrix_is_used_only_if_it_may_be(overwrite) -> None:
    """Similarities of up to 8 are divided by their size first, wherever that is done."""
    K, _, _ = made("two eigenvalues")
    K *= 8 / np.abs(K).max()
    given = K.copy()
    Eigenbasis.of(given, None, signed=True, overwrite=overwrite)
    assert np.array_equal(given, K) == (not overwrite)
