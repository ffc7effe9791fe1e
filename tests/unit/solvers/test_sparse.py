"""The l1 squared-hinge machine against liblinear, the KKT conditions and an exhaustive search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from kreinlearn.solvers import sparse
from kreinlearn.solvers.margins import DenseRows, HingeState
from kreinlearn.solvers.sparse import l1_max, l1_path, sparse_newton
from kreinlearn.solvers.squared_hinge import finite_newton, solve

# Problems and oracles


def draw(n=200, p=12, q=1, noise=0.5, seed=0):
    """Features with a constant column, labels that four of them decide, uneven weights."""
    rng = np.random.default_rng([seed, n, p, q])
    Phi = rng.normal(size=(n, p))
    Phi[:, -1] = 1
    score = Phi[:, :4] @ rng.normal(size=(4, q)) + 0.3
    Y = np.where(score + noise * rng.normal(size=(n, q)) > 0, 1.0, -1.0)
    return Phi, Y, rng.uniform(0.1, 3, n)


def l1_of(p, strength=1.0):
    """Uneven, none on the constant."""
    return strength * np.append(np.geomspace(0.5, 2, p - 1), 0.0)


def form(p, seed=0):
    """A positive semi-definite matrix of half the rank."""
    R = np.random.default_rng([seed, p]).normal(size=(p, p // 2))
    return R @ R.T


def objective(Phi, y, w, l1, z, Q=None):
    """From the definition; rows with y = 0 are not there."""
    short = np.where(y == 0, 0, np.maximum(0, 1 - y * (Phi @ z)))
    smooth = w @ short**2 + (0 if Q is None else z @ Q @ z)
    return smooth + l1 @ np.abs(z)


def violations(Phi, y, w, l1, z, Q=None):
    """Of -gradient in l1 * sign(z), or in [-l1, l1] where z is zero; relative to their bound."""
    short = np.where(y == 0, 0, np.maximum(0, 1 - y * (Phi @ z)))
    gradient = -2 * Phi.T @ (w * y * short) + (0 if Q is None else 2 * Q @ z)
    largest = 2 * np.sqrt(w @ Phi**2 * w.sum()) + (0 if Q is None else 2 * np.abs(Q) @ np.abs(z))
    on, off = np.abs(gradient + l1 * np.sign(z)), np.maximum(np.abs(gradient) - l1, 0)
    return np.where(z != 0, on, off) / largest


def one_output(Phi, Y, w, l1, Q=None, **options):
    found = sparse_newton(DenseRows(Phi), Y, w, l1, Q, **options)
    return found, found.coef[:, 0]


def kernel_columns(n=300, p=40, width=20.0, seed=0):
    """Gaussian bumps so wide that their Gram matrix is singular to rounding."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    d2 = np.square(X[:, None] - X[None, :p]).sum(axis=2)
    Y = np.where(np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:] > 0, 1.0, -1.0)
    return np.column_stack([np.exp(-d2 / width), np.ones(n)]), Y, np.ones(n)


class Later(DenseRows):
    """Rows that have been summed before: not all of them again."""

    def terms(self, chosen):
        assert all(len(one.numbers) < len(self.Phi) for one in chosen)
        return super().terms(chosen)


# The minimum


@pytest.mark.parametrize(("n", "p"), [(400, 10), (400, 60), (50, 80)])
@pytest.mark.parametrize("part", [0.3, 0.03])
def test_objective_is_that_of_linear_svc(n, p, part):
    """liblinear has one l1 for all columns: they are scaled, and the constant is one of them."""
    Phi, Y, w = draw(n, p)
    l1 = np.geomspace(0.5, 2, p)
    l1 *= part * l1_max(DenseRows(Phi), Y[:, 0], w, l1)[0]
    machine = LinearSVC(
        penalty="l1", loss="squared_hinge", dual=False, C=1.0, fit_intercept=False,
        tol=1e-9, max_iter=100_000, random_state=0,
    ).fit(Phi / l1, Y[:, 0], sample_weight=w)  # fmt: skip
    theirs = objective(Phi, Y[:, 0], w, l1, machine.coef_[0] / l1)
    found, z = one_output(Phi, Y, w, l1)
    assert found.converged
    assert found.objective[0] == pytest.approx(objective(Phi, Y[:, 0], w, l1, z), rel=1e-12)
    assert found.objective[0] == pytest.approx(theirs, rel=1e-9)
    assert found.objective[0] <= theirs * (1 + 1e-13)
    np.testing.assert_array_equal(z != 0, machine.coef_[0] != 0)


@pytest.mark.parametrize("with_form", [False, True])
@pytest.mark.parametrize("strength", [1e3, 30, 1, 1e-2])
def test_conditions_of_a_minimum(strength, with_form):
    Phi, Y, w = draw(300, 30, seed=1)
    l1, Q = l1_of(30, strength), form(30) if with_form else None
    found, z = one_output(Phi, Y, w, l1, Q)
    assert found.converged
    assert violations(Phi, Y[:, 0], w, l1, z, Q).max() <= 1e-12
    assert found.objective[0] == pytest.approx(objective(Phi, Y[:, 0], w, l1, z, Q), rel=1e-12)


@pytest.mark.parametrize("width", [2.0, 20.0, 500.0])
@pytest.mark.parametrize("part", [0.3, 0.01, 1e-4])
def test_columns_that_are_nearly_the_same(width, part):
    Phi, Y, w = kernel_columns(width=width)
    weights = np.append(np.ones(40), 0.0)
    l1 = part * l1_max(DenseRows(Phi), Y[:, 0], w, weights)[0] * weights
    found, z = one_output(Phi, Y, w, l1)
    assert found.converged
    assert violations(Phi, Y[:, 0], w, l1, z).max() <= 1e-10


def test_equal_columns_and_a_column_of_zeros():
    Phi, Y, w = draw(seed=2)
    l1 = l1_of(12, 3)
    doubled = np.column_stack([Phi, Phi[:, 0], np.zeros(len(Phi))])
    found, z = one_output(doubled, Y, w, np.append(l1, [l1[0], 1.0]))
    alone = one_output(Phi, Y, w, l1)[0]
    assert found.objective[0] == pytest.approx(alone.objective[0], rel=1e-12)
    assert z[-1] == 0


def test_without_l1_it_is_finite_newton():
    Phi, Y, w = draw(seed=3)
    penalty = np.append(np.geomspace(0.1, 10, 11), 0.0)
    found = sparse_newton(DenseRows(Phi), Y, w, np.zeros(12), np.diag(penalty))
    smooth = finite_newton(DenseRows(Phi), Y, w, penalty)
    np.testing.assert_allclose(found.coef, smooth.coef, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.objective, smooth.objective, rtol=1e-13)


def test_weights_are_repetitions_and_absent_rows_are_absent():
    Phi, Y, _ = draw(seed=4)
    counts = np.arange(len(Y)) % 3
    Y[::5] = 0
    weighted = sparse_newton(DenseRows(Phi), Y, counts.astype(float), l1_of(12, 5), form(12))
    rows = np.repeat(np.arange(len(Y)), counts * (Y[:, 0] != 0))
    repeated = sparse_newton(
        DenseRows(Phi[rows]), Y[rows], np.ones(len(rows)), l1_of(12, 5), form(12)
    )
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=0, atol=1e-9)
    np.testing.assert_allclose(weighted.objective, repeated.objective, rtol=1e-13)


def test_many_outputs_are_single_ones():
    Phi, Y, w = draw(q=3, seed=5)
    Y[::7, 1] = 0
    found = sparse_newton(DenseRows(Phi), Y, w, l1_of(12, 5))
    for k in range(3):
        one = sparse_newton(DenseRows(Phi), Y[:, [k]], w, l1_of(12, 5))
        np.testing.assert_allclose(found.coef[:, k], one.coef[:, 0], rtol=0, atol=1e-12)
        assert one.n_iter <= found.n_iter


def test_separable_data_with_hardly_a_penalty_converge():
    """More than a hundred passes the straight way; here they come down from larger penalties."""
    Phi, Y, w = draw(1000, 60, noise=0, seed=0)
    l1 = l1_of(60, 1e-4)
    found, z = one_output(Phi, Y, w, l1)
    assert found.converged
    assert found.n_iter < 70
    assert violations(Phi, Y[:, 0], w, l1, z).max() <= 1e-12


def test_start_from_a_weaker_penalty():
    """At the end of a path no row may be active: coefficients shrink until some are again."""
    Phi, Y, w = draw(50, 5, noise=0, seed=6)
    z = 1e3 * sparse_newton(DenseRows(Phi), Y, w, l1_of(5, 1e-3)).coef[:, 0]
    assert (Y[:, 0] * (Phi @ z) > 1).all()
    start = HingeState(z, Phi @ z, np.zeros(50, dtype=bool), np.zeros((5, 5)), np.zeros(5))
    found = sparse_newton(DenseRows(Phi), Y, w, l1_of(5), start=[start])
    np.testing.assert_allclose(found.coef, one_output(Phi, Y, w, l1_of(5))[0].coef, atol=1e-9)
    assert found.converged


# The model of a step


@pytest.mark.parametrize("rank", [4, 2])
def test_model_against_all_sign_patterns(rank):
    """Every pattern's stationary point, where it has those signs, is a candidate."""
    for seed in range(20):
        rng = np.random.default_rng([seed, rank])
        R = rng.normal(size=(rank, 4))
        H, b, half = R.T @ R, R.T @ rng.normal(size=rank), rng.uniform(0.01, 1, 4)
        half[0] = 0.0 if rank == 4 else half[0]

        def value(z, H=H, b=b, half=half):
            return z @ H @ z - 2 * b @ z + 2 * half @ np.abs(z)

        least = 0.0
        for signs in product([-1, 0, 1], repeat=4):
            S = np.flatnonzero(signs)
            z = np.zeros(4)
            right = (b - half * signs)[S]
            z[S] = np.linalg.lstsq(H[np.ix_(S, S)], right, rcond=1e-10)[0]
            least = min(least, value(z))  # any z is an upper bound
        z = rng.choice([0.0, 1.0], 4) * rng.normal(size=4)
        assert sparse._minimise(H, b, half, z, 1e-12)
        assert value(z) == pytest.approx(least, rel=1e-10, abs=1e-12)


def test_model_with_features_that_no_active_row_has():
    z = np.array([2.0, 2.0, 2.0])
    assert sparse._minimise(np.diag([0.0, 4.0, 0.0]), np.array([0.0, 4.0, 0.0]),
                            np.array([1.0, 1.0, 0.0]), z, 1e-12)  # fmt: skip
    np.testing.assert_allclose(z, [0, 3 / 4, 2])


def test_model_without_enough_digits_is_not_exact():
    rng = np.random.default_rng(11)
    R = rng.normal(size=(6, 6))
    assert not sparse._minimise(R.T @ R, R[0], np.full(6, 1e-3), np.zeros(6), 0.0)


def test_large_supports_are_found_in_few_solves(monkeypatch):
    """Coefficients join and leave by the dozen."""
    sizes = []
    monkeypatch.setattr(sparse, "solve", lambda H, g: sizes.append(len(g)) or solve(H, g))
    Phi, Y, w = draw(2000, 200, seed=12)
    z = one_output(Phi, Y, w, l1_of(200, 2))[1]
    assert violations(Phi, Y[:, 0], w, l1_of(200, 2), z).max() <= 1e-12
    assert np.count_nonzero(z) > 150
    assert len(sizes) < 100


@pytest.mark.parametrize("with_form", [False, True])
def test_penalty_on_the_way(with_form):
    """From the slopes and kinks of a move, against the penalty itself."""
    rng = np.random.default_rng(13)
    Q = form(30) if with_form else np.zeros((30, 30))
    z, target = (rng.normal(size=30) * rng.choice([0, 1], 30) for _ in range(2))
    l1 = l1_of(30)
    move = sparse._move(target, 0.0, z, Q, l1, True)
    assert len(move.kinks) > 3
    assert (np.diff(move.kinks) >= 0).all()

    def penalty(v):
        return v @ Q @ v + l1 @ np.abs(v)

    for t in (0.1, 0.5, 0.9, 1.0, 3.0):
        kinks = move.jumps @ np.maximum(0, t - move.kinks)
        change = 2 * t * move.linear + t**2 * move.quadratic + 2 * kinks
        assert change == pytest.approx(penalty(z + t * (target - z)) - penalty(z), rel=1e-11)


def test_gain_by_the_model(monkeypatch):
    """From zero, where all rows are active, it is the fall of the squared loss without a hinge."""
    gains, move = [], sparse._move
    monkeypatch.setattr(sparse, "_move", lambda *a: gains.append(a[:2]) or move(*a))
    Phi, Y, w = draw(seed=14)
    sparse_newton(DenseRows(Phi), Y, w, l1_of(12, 5), form(12), max_iter=0)
    target, gain = gains[0]
    fall = w.sum() - w @ (Y[:, 0] - Phi @ target) ** 2 - target @ form(12) @ target
    assert gain == pytest.approx(fall - l1_of(12, 5) @ np.abs(target), rel=1e-11)


# The path


def test_largest_strength_is_where_the_first_coefficient_appears():
    Phi, Y, w = draw(seed=7)
    weights = l1_of(12)
    for Q in (None, form(12)):
        strength, state = l1_max(DenseRows(Phi), Y[:, 0], w, weights, Q)
        above = one_output(Phi, Y, w, 1.0001 * strength * weights, Q)[1]
        below = one_output(Phi, Y, w, 0.999 * strength * weights, Q)[1]
        np.testing.assert_array_equal(above[:-1], 0)
        assert np.count_nonzero(below[:-1]) == 1
        assert state.coef[-1] == pytest.approx(above[-1], abs=1e-9)
        np.testing.assert_array_equal(state.coef[:-1], 0)


def test_path_is_the_single_solutions():
    Phi, Y, w = draw(400, 25, seed=8)
    rows, weights = DenseRows(Phi), l1_of(25)
    largest, start = l1_max(rows, Y[:, 0], w, weights)
    strengths = largest * np.array([0.01, 1.1, 0.3, 0.1])
    path = list(l1_path(Later(Phi), Y[:, 0], w, weights, strengths, form(25), start))
    for strength, found in zip(sorted(strengths, reverse=True), path, strict=True):
        single = sparse_newton(rows, Y, w, strength * weights, form(25))
        np.testing.assert_allclose(found.coef, single.coef, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(found.coef != 0, single.coef != 0)
        assert found.converged
    sizes = [np.count_nonzero(found.coef[:-1]) for found in path]
    assert sizes[0] == 0
    assert sizes == sorted(sizes)


def test_path_starts_each_solution_from_the_last():
    Phi, Y, w = draw(400, 25, noise=0, seed=8)
    rows, weights = DenseRows(Phi), l1_of(25)
    largest, start = l1_max(rows, Y[:, 0], w, weights)
    strengths = largest * np.logspace(0, -5, 20)
    chained = [one.n_iter for one in l1_path(rows, Y[:, 0], w, weights, strengths, start=start)]
    apart = [sparse_newton(rows, Y, w, s * weights, start=[start]).n_iter for s in strengths]
    assert 2 * sum(chained) < sum(apart)


def test_known_terms_are_used():
    Phi, Y, w = draw(seed=9)
    gram = (Phi.T * w) @ Phi, Phi.T @ (w[:, None] * Y)
    cold = one_output(Phi, Y, w, l1_of(12, 5))[1]
    found = sparse_newton(Later(Phi), Y, w, l1_of(12, 5), gram=gram)
    np.testing.assert_allclose(found.coef[:, 0], cold, rtol=0, atol=1e-10)
    known = l1_max(Later(Phi), Y[:, 0], w, l1_of(12), gram=gram)[0]
    assert known == pytest.approx(l1_max(DenseRows(Phi), Y[:, 0], w, l1_of(12))[0], rel=1e-12)


def test_too_few_passes():
    Phi, Y, w = draw(noise=0, seed=10)
    l1 = l1_of(12, 0.1)
    short = sparse_newton(DenseRows(Phi), Y, w, l1, max_iter=1)
    assert not short.converged
    assert short.n_iter == 1
    on = sparse_newton(DenseRows(Phi), Y, w, l1, start=short.state)
    assert on.converged
    assert on.objective[0] < short.objective[0]


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_the_unit_of_all_weights_makes_no_difference(unit):
    Phi, Y, w = draw()
    l1 = l1_of(12, 10.0)
    wanted, z = one_output(Phi, Y, w, l1)
    found, other = one_output(Phi, Y, unit * w, unit * l1)
    assert wanted.converged
    assert found.converged
    assert found.n_iter == wanted.n_iter
    np.testing.assert_allclose(other, z, rtol=0, atol=1e-9 * np.abs(z).max())


@pytest.mark.parametrize("seed", [*range(20), 2784, 6125])  # at the last, steps too far raise it
def test_the_support_is_solved_for_without_raising_the_model(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 7))
    A = rng.normal(size=(p + 1, p)) * 10 ** rng.uniform(-1, 1, p)
    b = rng.normal(size=p) * rng.choice([0.1, 1, 10])
    half = rng.uniform(0, 2, p) * rng.choice([0.1, 1, 10])
    H, z = A.T @ A, rng.normal(size=p) * rng.choice([0.1, 1, 10])

    def model(z):
        return z @ H @ z - 2 * b @ z + 2 * half @ np.abs(z)

    before, zero = model(z), z == 0
    sparse._solve_support(H, b, half, z)
    assert model(z) <= before
    on = z != 0
    slope = (H @ z - b + half * np.sign(z))[on]
    np.testing.assert_allclose(slope, 0, atol=1e-9 * (np.abs(H).max() + np.abs(b).max()))
    assert not (on & zero).any()
