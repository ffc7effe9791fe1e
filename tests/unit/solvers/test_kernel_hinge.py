"""Machines of all objects against machines of their features, and against optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cho_factor

from kreinlearn.solvers import kernel_hinge
from kreinlearn.solvers.kernel_hinge import ROUNDING, Point, _length, _solved, kernel_machines
from kreinlearn.solvers.margins import DenseRows
from kreinlearn.solvers.squared_hinge import finite_newton

EPS = float(np.finfo(np.float64).eps)
N, Q = 40, 3


def made(seed: int, rank: int = N, scale: float = 1.0):
    """Features of some rank, H = F F', signs of several outputs, and weights."""
    rng = np.random.default_rng(seed)
    F = scale * rng.normal(size=(N, rank)) / np.sqrt(rank)
    Y = np.where(F[:, :1] + 0.5 * rng.normal(size=(N, Q)) > 0, 1.0, -1.0)
    return F, F @ F.T, Y, rng.uniform(0.2, 3.0, N)


def from_zero(H, Y, w, **how):
    return kernel_machines(H, Y, w, np.zeros(Y.shape), np.zeros(Y.shape[1]), **how)


def objective(H, y, w, beta, b):
    short = np.maximum(0.0, 1 - y * (H @ beta + b))
    return float(w @ short**2 + beta @ H @ beta)


def rounding_of(H, w):
    """The condition of the systems (H_AA + 1 / w_A) times their size, in units of roundoff."""
    largest = np.abs(H).sum(axis=0).max() + 1 / w.min()
    return 10 * len(H) * EPS * largest * w.max()


@pytest.mark.parametrize("rank", [3, 15, N])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_equals_machines_of_the_features(rank, scale, intercept):
    """beta'H beta is |z|^2 of z = F'beta: a penalty of 1 for every feature, none for a constant."""
    F, H, Y, w = made(rank, rank, scale)
    solution, b = from_zero(H, Y, w, intercept=intercept)
    assert solution.converged
    rows = np.column_stack([F, np.ones(N)]) if intercept else F
    penalty = np.append(np.ones(rank), [0.0] * intercept)
    wanted = finite_newton(DenseRows(rows), Y, w, penalty, max_iter=500)
    assert wanted.converged
    found = H @ solution.coef + b
    expected = rows @ wanted.coef
    allowed = rounding_of(H, w) * max(np.abs(expected).max(), 1.0)
    assert np.abs(found - expected).max() <= allowed


@pytest.mark.parametrize("rank", [3, N])
@pytest.mark.parametrize("intercept", [True, False])
def test_optimality_conditions(rank, intercept):
    """beta_i = w_i y_i max(0, 1 - y_i f_i), and the sum of beta is zero if there is a constant."""
    _, H, Y, w = made(7 + rank, rank, 3.0)
    solution, b = from_zero(H, Y, w, intercept=intercept)
    F = H @ solution.coef + b
    wanted = w[:, None] * Y * np.maximum(0.0, 1 - Y * F)
    size = np.abs(wanted).max()
    assert 0 < np.count_nonzero(wanted) < wanted.size
    assert np.abs(solution.coef - wanted).max() <= rounding_of(H, w) * w.max() * size
    if intercept:
        assert np.abs(solution.coef.sum(axis=0)).max() <= rounding_of(H, w) * N * size
    else:
        assert not b.any()


def test_no_nearby_point_is_better():
    _, H, Y, w = made(1)
    solution, b = from_zero(H, Y, w, intercept=True)
    rng = np.random.default_rng(0)
    for k in range(Q):
        best = objective(H, Y[:, k], w, solution.coef[:, k], b[k])
        for size in (1e-3, 1e-1, 1.0):
            other = solution.coef[:, k] + size * rng.normal(size=N)
            shifted = b[k] + size * rng.normal()
            assert objective(H, Y[:, k], w, other, shifted) > best
            assert objective(H, Y[:, k], w, solution.coef[:, k], shifted) > best


@pytest.mark.parametrize("intercept", [True, False])
def test_integer_weights_are_repetitions(intercept):
    """beta of a weighted object is the sum over its repetitions."""
    _, H, Y, _ = made(2)
    w = np.random.default_rng(2).integers(1, 4, N)
    again = np.repeat(np.arange(N), w)
    one, b = from_zero(H, Y, w.astype(float), intercept=intercept)
    other, b_other = from_zero(
        H[np.ix_(again, again)], Y[again], np.ones(len(again)), intercept=intercept
    )
    summed = np.array([other.coef[again == i].sum(axis=0) for i in range(N)])
    allowed = rounding_of(H, w) * w.max() * np.abs(one.coef).max()
    assert np.abs(summed - one.coef).max() <= allowed
    assert np.abs(b - b_other).max() <= allowed


def test_the_start_does_not_matter():
    _, H, Y, w = made(3)
    rng = np.random.default_rng(3)
    one, b = from_zero(H, Y, w, intercept=True)
    other, b_other = kernel_machines(
        H, Y, w, rng.normal(size=Y.shape), rng.normal(size=Q), intercept=True
    )
    allowed = rounding_of(H, w) * np.abs(one.coef).max()
    assert np.abs(one.coef - other.coef).max() <= allowed * w.max()
    assert np.abs(b - b_other).max() <= allowed
    again, _ = kernel_machines(H, Y, w, one.coef, b, intercept=True)
    assert again.n_iter == 1


def test_a_machine_that_is_stopped_has_not_converged():
    _, H, Y, w = made(4, scale=30.0)
    solution, _ = from_zero(H, Y, w, intercept=True, max_iter=1)
    assert not solution.converged
    assert solution.n_iter == 1


@pytest.mark.parametrize("intercept", [True, False])
def test_a_matrix_of_zeros_has_the_best_constant(intercept):
    """Without similarities the best constant of the squared hinge loss is the mean of the signs."""
    _, _, Y, w = made(5)
    solution, b = from_zero(np.zeros((N, N)), Y, w, intercept=intercept)
    assert solution.converged
    wanted = w @ Y / w.sum() if intercept else np.zeros(Q)
    assert b == pytest.approx(wanted, abs=10 * N * EPS)


def test_repeated_objects():
    """A singular H: several beta have the same decision values, which are those of the features."""
    F, _, Y, w = made(6, 5)
    twice = np.repeat(np.arange(N // 2), 2)
    F = F[twice]
    H = F @ F.T
    solution, b = from_zero(H, Y, w, intercept=True)
    rows = np.column_stack([F, np.ones(N)])
    wanted = finite_newton(DenseRows(rows), Y, w, np.append(np.ones(5), 0.0), max_iter=500)
    found = H @ solution.coef + b
    assert np.abs(found - rows @ wanted.coef).max() <= rounding_of(H, w) * np.abs(found).max()


def test_a_system_that_rounding_errors_have_made_indefinite():
    """The margin changes a solution by no more than the rounding errors do."""
    F = np.random.default_rng(8).normal(size=(N, 3))
    system = F @ F.T - N * EPS * np.trace(F @ F.T) * np.eye(N)
    with pytest.raises(np.linalg.LinAlgError):
        cho_factor(system)
    right = F @ np.ones((3, 1))
    solved = _solved(system, right)
    size = np.trace(system) * np.abs(solved).sum()
    assert np.abs(F @ (F.T @ solved) - right).max() <= 2 * ROUNDING * N * size
    definite = F @ F.T + np.eye(N)
    wanted = np.linalg.solve(definite, right)
    assert np.abs(_solved(definite, right) - wanted).max() <= 10 * N * EPS * np.linalg.cond(
        definite
    )


def test_a_point_on_the_way_and_the_best_of_them():
    """Of all points on the way to another model, none has a smaller objective."""
    rng = np.random.default_rng(4)
    _, H, Y, w = made(5)
    for y in Y.T:
        start, target = (
            Point(beta, b, H @ beta + b)
            for beta, b in zip(rng.normal(size=(2, N)) * [[0.0], [0.1]], (3.0, -0.5), strict=True)
        )
        quarter = start.towards(target, 0.25)
        np.testing.assert_allclose(quarter.beta, 0.025 * target.beta / 0.1, rtol=1e-12)
        assert quarter.b == pytest.approx(3.0 - 0.25 * 3.5, rel=1e-12)
        np.testing.assert_allclose(quarter.f, H @ quarter.beta + quarter.b, rtol=0, atol=1e-12)
        t = _length(H, y, w, start, target)
        ways = [start.towards(target, s) for s in (t, *np.linspace(0, 2 * t + 1, 300))]
        values = [objective(H, y, w, point.beta, point.b) for point in ways]
        assert t > 0
        assert values[0] <= min(values[1:]) * (1 + 1e-12)


def test_a_way_that_leads_up_is_not_taken():
    """The objective is convex: it rises on the way that leads straight away from its minimum."""
    _, H, Y, w = made(6, scale=3.0)
    solution, b = from_zero(H, Y, w, intercept=True)
    for y, beta, constant in zip(Y.T, solution.coef.T, b, strict=True):
        minimum = Point(beta, float(constant), H @ beta + constant)
        start = Point(np.zeros(N), 0.0, np.zeros(N))
        assert _length(H, y, w, start, minimum) > 0
        assert _length(H, y, w, start, start.towards(minimum, -1.0)) == 0
        assert _length(H, y, w, minimum, minimum) == 0


def test_a_machine_stays_where_nothing_leads_down(monkeypatch):
    """Sides of objects may differ by rounding at the minimum: that is no reason to go on."""
    monkeypatch.setattr(kernel_hinge, "_length", lambda *_: 0.0)
    _, H, Y, w = made(6, scale=3.0)
    start, b = np.random.default_rng(3).normal(size=(N, Q)), np.arange(float(Q))
    solution, constants = kernel_machines(H, Y, w, start, b, intercept=True)
    assert (solution.coef == start).all()
    assert (constants == b).all()
    assert (solution.n_iter, solution.converged) == (1, True)
