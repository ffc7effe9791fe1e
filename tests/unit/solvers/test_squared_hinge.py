"""Finite Newton against liblinear, scipy's minimisers and the conditions of a minimum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.svm import LinearSVC

from kreinlearn.data.tiles import TILE
from kreinlearn.solvers.line_search import Move
from kreinlearn.solvers.margins import (
    FEWEST_SAMPLED,
    DenseRows,
    HingeState,
    RowMargins,
    Step,
    hinge_loss,
)
from kreinlearn.solvers.squared_hinge import (
    _solved,
    correction,
    finite_newton,
    hinge_gradient,
    lock_step,
    solve,
)
from tests.bounds import rounding

EPS = np.finfo(np.float64).eps


# Problems and oracles


def draw(n=200, p=12, q=1, noise=1.0, seed=0):
    """Features with a constant column, labels of a noisy linear rule, uneven weights."""
    rng = np.random.default_rng([seed, n, p, q])
    Phi = rng.normal(size=(n, p))
    Phi[:, -1] = 1
    score = Phi @ rng.normal(size=(p, q))
    Y = np.where(score / score.std() + noise * rng.normal(size=(n, q)) > 0, 1.0, -1.0)
    return Phi, Y, rng.uniform(0.1, 3, n)


def penalty_of(p, strength=1.0):
    """Uneven, none on the constant."""
    return strength * np.append(np.geomspace(0.3, 3, p - 1), 0.0)


def objective(Phi, y, w, penalty, z):
    """Value and gradient from the definition; rows with y = 0 are not there."""
    short = np.where(y == 0, 0, np.maximum(0, 1 - y * (Phi @ z)))
    return w @ short**2 + penalty @ z**2, 2 * (penalty * z - Phi.T @ (w * y * short))


def hessian(Phi, y, w, penalty, z):
    inside = w * ((y != 0) & (y * (Phi @ z) < 1))
    return 2 * ((Phi.T * inside) @ Phi + np.diag(penalty))


def by_scipy(Phi, y, w, penalty, method):
    options = {
        "L-BFGS-B": {"ftol": 0, "gtol": 1e-9, "maxcor": 40, "maxiter": 10_000},
        "trust-exact": {"gtol": 1e-9},
    }[method]
    problem = Phi, y, w, penalty
    return minimize(
        lambda z: objective(*problem, z),
        np.zeros(len(penalty)),
        jac=True,
        hess=None if method == "L-BFGS-B" else lambda z: hessian(*problem, z),
        method=method,
        options=options,
    )


def gradient_is_rounding(Phi, y, w, penalty, z, ulps=100):
    """The gradient is as small as the rounding of the terms that cancel in it."""
    terms = np.abs(Phi).T @ (w * (y != 0) * (1 + np.abs(Phi) @ np.abs(z))) + penalty * np.abs(z)
    return bool((np.abs(objective(Phi, y, w, penalty, z)[1]) <= ulps * EPS * terms).all())


@dataclass
class Watched:
    """Rows that keep count of what was asked of them."""

    Phi: np.ndarray
    passes: list = field(default_factory=list)  # columns
    touched: list = field(default_factory=list)  # rows

    n = property(lambda self: len(self.Phi))
    p = property(lambda self: self.Phi.shape[1])

    def decision(self, Z, wanted=None):
        self.passes.append(Z.shape[1])
        return self.Phi @ Z

    def terms(self, chosen):
        assert all((np.diff(one.numbers) > 0).all() for one in chosen)
        self.touched += [len(one.numbers) for one in chosen]
        return DenseRows(self.Phi).terms(chosen)

    def sample(self):
        return None

    def near(self):
        return None


@dataclass
class Remembering(Watched):
    """Rows that remember those which are wanted next, in tiles as rows evaluated anew do."""

    share: float = 0.125
    kept: np.ndarray | None = None

    def decision(self, Z, wanted=None):
        found = super().decision(Z)
        places = []
        for start in range(0, self.n, TILE):
            here = slice(start, min(start + TILE, self.n))
            room = int(self.share * (here.stop - start))
            if room:
                places.append(start + wanted(here, found[here], room))
                assert len(places[-1]) == room
        self.kept = np.concatenate(places) if places else None
        return found

    def near(self):
        return None if self.kept is None else (self.kept, DenseRows(self.Phi[self.kept]))


@dataclass
class Sampled(Remembering):
    """Rows of which every eighth is at hand before the first pass."""

    def decision_and_terms(self, Z, wanted, picked):
        found = self.decision(Z, wanted)
        every = slice(0, self.n)
        return found, self.terms([picked(k, every, found[:, k]) for k in range(Z.shape[1])])

    def sample(self):
        if self.kept is not None:
            return None
        numbers = np.arange(3, self.n, 8)
        return numbers, DenseRows(self.Phi[numbers])


def correlated(rng, n, p):
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) + 1e-3 * rng.normal(size=(n, p))


def hard_case(name):
    Phi, Y, w = draw(150, 10, noise=0.5, seed=5)
    rng = np.random.default_rng(6)
    penalty = penalty_of(10)
    if name == "separable":
        Y = np.where(Phi @ np.arange(1, 11)[:, None] > 0, 1.0, -1.0)
        penalty *= 1e-4
    if name == "uneven scales":
        Phi, penalty = Phi * np.geomspace(1e-6, 1e4, 10), penalty * np.geomspace(1e-12, 1e8, 10)
    if name == "correlated":
        Phi[:, :-1] = correlated(rng, 150, 9)
    if name == "more features than rows":
        Phi, Y, w, penalty = Phi[:7], Y[:7], w[:7], 1e-3 * penalty
    if name == "ties":
        Phi = np.round(Phi)
    if name == "repeated rows":
        Phi, Y = np.repeat(Phi[:50], 3, axis=0), np.repeat(Y[:50], 3, axis=0)
    if name == "weights from 1e-4 to 1e4":
        w = 10 ** rng.uniform(-4, 4, 150)
    if name == "one row":
        Phi, Y, w = Phi[:1], Y[:1], w[:1]
    return Phi, Y, w, penalty


HARD = [
    *("easy", "separable", "uneven scales", "correlated", "more features than rows", "ties"),
    *("repeated rows", "weights from 1e-4 to 1e4", "one row"),
]


# The minimum


@pytest.mark.parametrize(("n", "p", "noise"), [(300, 8, 1.0), (300, 40, 0.1), (60, 90, 0.5)])
def test_objective_is_that_of_linear_svc(n, p, noise):
    """liblinear has no unpenalised column: here the constant is a feature, penalised as others.

    With v = sqrt(penalty) z its objective |v|^2 / 2 + C sum w hinge^2 is half of ours at C = 1/2.
    """
    Phi, Y, w = draw(n, p, noise=noise)
    penalty = np.geomspace(0.1, 5, p)
    machine = LinearSVC(
        loss="squared_hinge", dual=False, C=0.5, fit_intercept=False, tol=1e-12, max_iter=100_000
    ).fit(Phi / np.sqrt(penalty), Y[:, 0], sample_weight=w)
    theirs = objective(Phi, Y[:, 0], w, penalty, machine.coef_[0] / np.sqrt(penalty))[0]
    ours = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert ours.converged
    assert ours.objective[0] == pytest.approx(theirs, rel=1e-10, abs=0)
    assert ours.objective[0] <= theirs * (1 + 1e-13)


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-exact"])
@pytest.mark.parametrize("noise", [0.2, 2.0])
def test_minimum_is_that_of_scipy(method, noise):
    Phi, Y, w = draw(noise=noise, seed=1)
    penalty = penalty_of(12)
    found = finite_newton(DenseRows(Phi), Y, w, penalty)
    theirs = by_scipy(Phi, Y[:, 0], w, penalty, method)
    assert found.objective[0] == pytest.approx(theirs.fun, rel=1e-12, abs=0)
    np.testing.assert_allclose(found.coef[:, 0], theirs.x, rtol=0, atol=1e-7)
    assert found.objective[0] == pytest.approx(
        objective(Phi, Y[:, 0], w, penalty, found.coef[:, 0])[0], rel=1e-13, abs=0
    )


@pytest.mark.parametrize("name", HARD)
def test_gradient_is_at_rounding_level(name):
    Phi, Y, w, penalty = hard_case(name)
    found = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert found.converged
    assert gradient_is_rounding(Phi, Y[:, 0], w, penalty, found.coef[:, 0])
    np.testing.assert_allclose(found.state[0].decision, Phi @ found.coef[:, 0], rtol=0, atol=1e-9)


def test_weights_are_repetitions():
    Phi, Y, _ = draw(seed=2)
    counts = np.arange(len(Y)) % 4
    penalty = penalty_of(12)
    weighted = finite_newton(DenseRows(Phi), Y, counts.astype(float), penalty)
    rows = np.repeat(np.arange(len(Y)), counts)
    repeated = finite_newton(DenseRows(Phi[rows]), Y[rows], np.ones(len(rows)), penalty)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weighted.objective, repeated.objective, rtol=1e-13)


@pytest.mark.parametrize("absent", ["a zero in Y", "no weight"])
def test_absent_rows_are_a_smaller_problem(absent):
    """Their decision values are there all the same: a held-out part needs no pass of its own."""
    Phi, Y, w = draw(seed=3)
    out = np.arange(len(Y)) % 3 == 0
    penalty = penalty_of(12)
    Y_part, w_part = Y.copy(), w.copy()
    if absent == "a zero in Y":
        Y_part[out] = 0
    else:
        w_part[out] = 0
    part = finite_newton(DenseRows(Phi), Y_part, w_part, penalty)
    alone = finite_newton(DenseRows(Phi[~out]), Y[~out], w[~out], penalty)
    np.testing.assert_allclose(part.coef, alone.coef, rtol=0, atol=1e-12)
    np.testing.assert_allclose(part.objective, alone.objective, rtol=1e-13)
    np.testing.assert_allclose(part.state[0].decision[out], Phi[out] @ alone.coef[:, 0], atol=1e-11)
    assert not part.state[0].active[out].any()


def test_many_outputs_are_single_ones_in_common_passes():
    """One against the rest, pairs of classes and an empty problem, side by side."""
    Phi, _, w = draw(seed=4)
    kind = np.arange(len(Phi)) * 7919 % 5 // 2  # three classes
    rest = np.where(kind[:, None] == np.arange(3), 1.0, -1.0)
    pairs = [(kind == a) * 1.0 - (kind == b) for a, b in ((0, 1), (0, 2), (1, 2))]
    Y = np.column_stack([rest, *pairs, np.zeros(len(Phi))])
    penalty, rows = penalty_of(12), Watched(Phi)
    found = finite_newton(rows, Y, w, penalty)
    single = [finite_newton(DenseRows(Phi), Y[:, [k]], w, penalty) for k in range(7)]
    np.testing.assert_allclose(
        found.coef, np.hstack([one.coef for one in single]), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(found.objective, [one.objective[0] for one in single], rtol=1e-13)
    assert found.objective[-1] == 0
    steps = np.array([one.n_iter for one in single])
    assert found.n_iter == steps.max() == len(rows.passes)
    assert rows.passes == [(steps > i).sum() for i in range(steps.max())]


def test_labels_of_one_kind():
    """The constant alone has no loss: no row is active, no row says how large the constant is."""
    Phi, Y, w = draw(noise=0, seed=5)
    found = finite_newton(DenseRows(Phi), np.abs(Y), w, penalty_of(12))
    assert found.converged
    assert found.objective[0] <= 1e-20
    np.testing.assert_allclose(found.coef[:-1], 0, atol=1e-12)
    assert found.coef[-1, 0] >= 1 - 1e-12


def test_hardly_a_row_is_active():
    """Two far clouds: only the rows nearest to the other cloud are left, or none."""
    rng = np.random.default_rng(6)
    Y = np.repeat([[1.0], [-1.0]], 100, axis=0)
    Phi = np.column_stack([10 * Y + rng.normal(size=(200, 1)), np.ones(200)])
    w, penalty = np.ones(200), np.array([1e-6, 0.0])
    found = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert found.converged
    assert found.state[0].active.sum() <= 2
    width = Phi[:100, 0].min() - Phi[100:, 0].max()  # the hard margin: z = 2 / width
    assert found.coef[0, 0] == pytest.approx(2 / width, rel=1e-4)
    assert found.objective[0] == pytest.approx(1e-6 * (2 / width) ** 2, rel=1e-4)


def test_separable_data_with_hardly_a_penalty_converge():
    """Hundreds of passes the straight way; here they come down from larger penalties."""
    Phi, Y, w = draw(1000, 60, noise=0, seed=7)
    penalty = np.append(np.full(59, 1e-6), 0.0)
    found = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert found.converged
    assert found.n_iter < 100
    assert gradient_is_rounding(Phi, Y[:, 0], w, penalty, found.coef[:, 0], ulps=1e4)
    half = finite_newton(DenseRows(Phi), Y, w, penalty / 2)  # the limit is the hard margin
    np.testing.assert_allclose(half.objective, found.objective / 2, rtol=1e-3)


def test_no_penalty_and_no_rank():
    """Two equal columns and a zero one: any split of the coefficient will do."""
    Phi, Y, w = draw(seed=8)
    Phi[:, 1], Phi[:, 2] = Phi[:, 0], 0.0
    found = finite_newton(DenseRows(Phi), Y, w, np.zeros(12))
    keep = [0, *range(3, 12)]
    theirs = by_scipy(Phi[:, keep], Y[:, 0], w, np.zeros(10), "trust-exact")
    assert found.converged
    assert found.objective[0] == pytest.approx(theirs.fun, rel=1e-11)


# Rows near the margin


@pytest.mark.parametrize("share", [1 / 8, 1 / 64], ids=["an eighth", "too few"])
def test_rows_near_the_margin_foresee_the_minimum(share):
    """It is the minimum of all rows, the sums are those of its active rows, and passes are few."""
    Phi, Y, w = draw(3 * TILE + 77, 12, 3, noise=0.7, seed=21)
    Y[::5, 1] = 0  # rows that are not in one of the problems
    penalty, plain, ahead = penalty_of(12), Watched(Phi), Remembering(Phi, share=share)
    one, two = (finite_newton(rows, Y, w, penalty) for rows in (plain, ahead))
    assert two.converged
    assert len(ahead.passes) == two.n_iter < one.n_iter
    np.testing.assert_allclose(two.coef, one.coef, rtol=0, atol=1e-11)
    for k, state in enumerate(two.state):
        z, y = two.coef[:, k], Y[:, k]
        assert gradient_is_rounding(Phi, y, w, penalty, z)
        inside = w * ((y != 0) & (y * (Phi @ z) < 1))
        bound = 40 * rounding(len(Phi)) * w.sum() * np.abs(Phi).max() ** 2
        assert (np.abs(state.A - (Phi.T * inside) @ Phi) <= bound).all()
        assert (np.abs(state.b - Phi.T @ (inside * y)) <= bound).all()
        np.testing.assert_array_equal(state.active, inside > 0)


@pytest.mark.parametrize(
    ("going_on", "looked_at"), [([0, 1, 2, 3], 125), ([1, 3], 250), ([2], 250)]
)
def test_few_outputs_that_go_on_look_at_all_remembered_rows(going_on, looked_at):
    """Of four outputs each looks at half the rows, those nearest to its own margin."""
    Phi, Y, w = draw(1000, 5, q=4, noise=0.5, seed=3)
    rows = Remembering(Phi, share=0.25)
    margins = RowMargins(rows, Y, w)
    coef = np.random.default_rng(4).normal(size=(5, 4))
    rows.decision(coef, margins._nearest(dict(enumerate(margins.start(None)))))
    states = [
        replace(one, coef=z, decision=Phi @ z)
        for one, z in zip(margins.start(None), coef.T, strict=True)
    ]
    for k, state in margins.up_to_date({k: states[k] for k in going_on}).items():
        near = margins.near(k, state)
        distance = np.abs(1 - Y[rows.kept, k] * state.decision[rows.kept])
        nearest = rows.kept[np.argsort(distance)[:looked_at]]
        np.testing.assert_array_equal(near.rows, np.sort(nearest))


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_rows_near_the_margin_of_hard_problems(name, share):
    Phi, Y, w, penalty = hard_case(name)
    found = finite_newton(Remembering(Phi, share=share), Y, w, penalty)
    assert found.converged
    assert gradient_is_rounding(Phi, Y[:, 0], w, penalty, found.coef[:, 0])


def test_rows_near_the_margin_of_separable_rows():
    """Larger penalties, from which a search comes down, are not foreseen."""
    Phi, Y, w = draw(1000, 60, noise=0, seed=7)
    penalty = np.append(np.full(59, 1e-6), 0.0)
    found = finite_newton(Remembering(Phi), Y, w, penalty)
    plain = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert found.converged
    assert found.objective[0] == pytest.approx(plain.objective[0], rel=1e-9)


# A sample that tells where to start


def sums_of_all(Phi, Y, w):
    """A of each output and b, as the pass of least squares leaves them."""
    inside = w[:, None] * (Y != 0)
    A = np.array([(Phi.T * one) @ Phi for one in inside.T])
    return A, Phi.T @ (w[:, None] * Y)


def assert_minimum(found, Phi, Y, w, penalty):
    """Coefficients, and sums of the rows that are active there."""
    assert found.converged
    for k, state in enumerate(found.state):
        z, y = found.coef[:, k], Y[:, k]
        assert gradient_is_rounding(Phi, y, w, penalty, z)
        inside = w * ((y != 0) & (y * (Phi @ z) < 1))
        bound = 40 * rounding(len(Phi)) * w.sum() * np.abs(Phi).max() ** 2
        assert (np.abs(state.A - (Phi.T * inside) @ Phi) <= bound).all()
        assert (np.abs(state.b - Phi.T @ (inside * y)) <= bound).all()
        np.testing.assert_array_equal(state.active, inside > 0)


@pytest.mark.parametrize("noise", [0.1, 2.0], ids=["few rows are active", "most rows are active"])
def test_a_sample_tells_where_to_start(noise):
    """The minimum is that of all rows, and the first pass sums active rows, or the others."""
    Phi, Y, w = draw(3 * TILE + 77, 12, 3, noise=noise, seed=23)
    Y[::5, 1], w[::7] = 0, 0  # rows that are not in one of the problems, or in none
    penalty, gram = penalty_of(12), sums_of_all(Phi, Y, w)
    cold = finite_newton(Remembering(Phi), Y, w, penalty, gram=gram)
    rows = Sampled(Phi)
    found = finite_newton(rows, Y, w, penalty, gram=gram)
    assert_minimum(found, Phi, Y, w, penalty)
    np.testing.assert_allclose(found.coef, cold.coef, rtol=0, atol=1e-11)
    assert len(rows.passes) == found.n_iter <= cold.n_iter
    present = np.count_nonzero((Y != 0) & (w > 0)[:, None], axis=0)
    assert (rows.touched[:3] <= 0.6 * present).all()  # the smaller part, up to what a sample tells


@pytest.mark.parametrize("name", HARD)
def test_a_sample_of_hard_problems(name):
    Phi, Y, w, penalty = hard_case(name)
    found = finite_newton(Sampled(Phi, share=0.3), Y, w, penalty, gram=sums_of_all(Phi, Y, w))
    assert found.converged
    assert gradient_is_rounding(Phi, Y[:, 0], w, penalty, found.coef[:, 0])


def test_a_sample_of_too_few_rows_is_not_asked():
    Phi, Y, w = draw(600, 12, seed=3)
    rows = Sampled(Phi)
    assert len(rows.sample()[0]) < FEWEST_SAMPLED * 12
    found = finite_newton(rows, Y, w, penalty_of(12), gram=sums_of_all(Phi, Y, w))
    assert found.coef == pytest.approx(finite_newton(DenseRows(Phi), Y, w, penalty_of(12)).coef)
    assert_minimum(found, Phi, Y, w, penalty_of(12))


def test_as_many_rows_are_nearest_to_the_margin_as_there_is_room_for():
    Phi, Y, w = draw(40, 5, 2, seed=25)
    margins = RowMargins(DenseRows(Phi), Y, w)
    values = Phi @ np.random.default_rng(1).normal(size=(5, 2))
    active = (Y * values < 1) & (w > 0)[:, None]
    states = [replace(s, active=a) for s, a in zip(margins.start(None), active.T, strict=True)]
    nearest = margins._nearest(dict(enumerate(states)))  # no row has changed sides
    order = np.argsort(np.abs(1 - Y * values).min(axis=1))
    for room in (1, 7, 40):
        found = nearest(slice(0, 40), values, room)
        np.testing.assert_array_equal(found, np.sort(order[:room]))


def test_a_sample_is_asked_once_and_only_beside_sums_of_all_rows():
    """Without these sums, with a start or without a pass there is nothing that it could tell."""
    Phi, Y, w = draw(2000, 8, 2, seed=24)
    penalty, gram, asked = penalty_of(8), sums_of_all(Phi, Y, w), []

    class Counted(Sampled):
        def decision_and_terms(self, Z, wanted, picked):
            asked.append(Z.shape)
            return super().decision_and_terms(Z, wanted, picked)

    found = finite_newton(Counted(Phi), Y, w, penalty, gram=gram)
    assert asked == [(8, 2)]
    for how in ({}, {"start": found.state, "gram": gram}):
        other = finite_newton(Counted(Phi), Y, w, penalty, **how)
        np.testing.assert_allclose(other.coef, found.coef, rtol=0, atol=1e-11)
    assert not finite_newton(Counted(Phi), Y, w, penalty, gram=gram, max_iter=0).coef.any()
    assert asked == [(8, 2)]


def test_rows_that_are_hardly_ever_active_are_summed_anew():
    """Subtracting all others from the sums of all rows would leave rounding errors."""
    rng = np.random.default_rng(4)
    Phi, Y, w = draw(2 * TILE, 5, noise=0.5, seed=4)
    large = rng.choice(len(Phi), 20, replace=False)
    Phi[large] *= 1e4
    Y[large, 0] = np.sign(Phi[large] @ np.ones(5))
    penalty = penalty_of(5)
    found = finite_newton(Sampled(Phi), Y, w, penalty, gram=sums_of_all(Phi, Y, w))
    cold = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert found.converged
    assert found.objective[0] == pytest.approx(cold.objective[0], rel=1e-9)


# Starts, passes and rows


def test_the_guess_is_near_the_minimum_of_the_sample_for_a_rare_class():
    """One row in a hundred is in the class, so that its loss is a small part of that at zero."""
    Phi, Y, w = draw(4000, 40, noise=1.0, seed=11)
    score = Phi @ np.arange(40.0) + 30 * np.random.default_rng(12).normal(size=4000)
    Y[:, 0] = np.where(score > np.quantile(score, 0.99), 1.0, -1.0)
    penalty = penalty_of(40)
    A = (Phi.T * w) @ Phi
    squares = np.linalg.solve(A + np.diag(penalty), Phi.T @ (w * Y[:, 0]))
    exact = finite_newton(DenseRows(Phi), Y, w, penalty).coef[:, 0]
    found = correction(RowMargins(DenseRows(Phi), Y, w), penalty)[:, 0]
    error = found - (exact - squares)
    H = hessian(Phi, Y[:, 0], w, penalty, exact) / 2
    assert error @ H @ error <= (2e-4) ** 2 * w.sum()


def test_warm_start_is_the_cold_one():
    Phi, Y, w = draw(400, 15, 2, noise=0.3, seed=9)
    state, passes = None, []
    for strength in (10, 1, 1e-2, 3, 3):
        cold = finite_newton(DenseRows(Phi), Y, w, penalty_of(15, strength))
        warm = finite_newton(DenseRows(Phi), Y, w, penalty_of(15, strength), state)
        np.testing.assert_allclose(warm.coef, cold.coef, rtol=0, atol=1e-11)
        np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-13)
        state = warm.state
        passes.append(warm.n_iter)
    assert passes[-1] == 0  # nothing has changed


def test_a_start_is_left_as_it_was():
    Phi, Y, w = draw(seed=9)
    first = finite_newton(DenseRows(Phi), Y, w, penalty_of(12))
    kept = [np.copy(a) for a in vars(first.state[0]).values()]
    finite_newton(DenseRows(Phi), Y, w, penalty_of(12, 0.01), first.state)
    for before, after in zip(kept, vars(first.state[0]).values(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_start_from_coefficients_of_a_part():
    """No active row and no terms: what the coefficients need is summed up first."""
    Phi, Y, w = draw(2000, 12, seed=10)
    part = finite_newton(DenseRows(Phi[:200]), Y[:200], w[:200], penalty_of(12, 0.1))
    rows, nothing = Watched(Phi), np.zeros((12, 12))
    z = part.coef[:, 0]
    start = HingeState(z, Phi @ z, np.zeros(2000, dtype=bool), nothing, nothing[0])
    warm = finite_newton(rows, Y, w, penalty_of(12), [start])
    cold = finite_newton(DenseRows(Phi), Y, w, penalty_of(12))
    np.testing.assert_allclose(warm.coef, cold.coef, rtol=0, atol=1e-12)
    assert sum(rows.touched) < 2000


def test_known_terms_spare_the_first_pass():
    Phi, Y, w = draw(500, 12, 2, seed=11)
    G, B = (Phi.T * w) @ Phi, Phi.T @ (w[:, None] * Y)
    without, given = Watched(Phi), Watched(Phi)
    cold = finite_newton(without, Y, w, penalty_of(12))
    for A in (G, np.array([G, G])):
        given = Watched(Phi)
        found = finite_newton(given, Y, w, penalty_of(12), gram=(A, B))
        np.testing.assert_allclose(found.coef, cold.coef, rtol=0, atol=1e-12)
        assert without.touched == [500, *given.touched]  # once for both outputs


def test_only_rows_that_changed_sides_are_touched():
    """Here few change after the first step, and every step after it touches fewer."""
    Phi, Y, w = draw(3000, 12, noise=0.7, seed=12)
    rows = Watched(Phi)
    found = finite_newton(rows, Y, w, penalty_of(12, 0.01))
    assert found.converged
    assert rows.touched[0] == 3000
    assert 0 < sum(rows.touched[1:]) < 2000
    assert rows.touched[-1] < 30


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_first_pass_ends_at_the_minimum_on_the_way_to_ridge(noise):
    """Beyond the ridge solution itself for separable labels."""
    Phi, Y, w = draw(noise=noise, seed=12)
    penalty = penalty_of(12)
    ridge = np.linalg.solve((Phi.T * w) @ Phi + np.diag(penalty), Phi.T @ (w * Y[:, 0]))
    best = minimize_scalar(
        lambda t: objective(Phi, Y[:, 0], w, penalty, t * ridge)[0], (0, 1), tol=1e-10
    )
    z = finite_newton(DenseRows(Phi), Y, w, penalty, max_iter=1).coef[:, 0]
    np.testing.assert_allclose(z, best.x * ridge, rtol=0, atol=1e-6)
    assert (best.x > 1.5) == (noise == 0)


@pytest.mark.parametrize("seed", [5, 9, 10, 11])
def test_rounding_ends_where_no_step_descends(seed):
    """More features than rows, labels of one kind: a model of a loss of 1e-20 is rounding error."""
    Phi, Y, w = draw(40, 50, noise=0, seed=seed)
    found = finite_newton(DenseRows(Phi), np.abs(Y), w, penalty_of(50, 1e-9))
    assert found.converged
    assert found.n_iter < 50
    assert found.objective[0] < 1e-15


def kernel_case(seed):
    """Wide bumps, hardly a penalty: a Gram matrix without half of its digits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 2))
    Phi = np.exp(-np.square(X[:, None] - X[:40]).sum(axis=2) / 5)
    Y = np.where(X[:, :1] + X[:, 1:] ** 2 + rng.normal(size=(150, 1)) > 1, 1.0, -1.0)
    return Phi, Y, np.ones(150), np.full(40, 1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_a_solution_is_its_own_solution(seed):
    Phi, Y, w, penalty = kernel_case(seed)
    found = finite_newton(DenseRows(Phi), Y, w, penalty)
    again = finite_newton(DenseRows(Phi), Y, w, penalty, found.state)
    assert found.converged
    assert again.converged
    assert again.n_iter == 0


@pytest.mark.parametrize("gain", [1.0, -1.0, 1e-14])
def test_a_model_that_leads_uphill(gain):
    """Solved if what it promises is rounding error; if not, three larger penalties are tried."""
    Phi, Y, w = draw(seed=13)
    rows, scales = Watched(Phi), []
    down = Phi.T @ (w * Y[:, 0])

    def propose(state, total, scale):
        scales.append(scale)
        return Move(-down, gain * total, 0.0, 0.0)

    states, n_iter, converged = lock_step(RowMargins(rows, Y, w), None, None, propose, 50)
    assert scales == ([1.0] if abs(gain) < 1 else [1.0, 1e4, 1e8, 1e12])
    assert n_iter == len(rows.passes) == len(scales)
    assert converged == (abs(gain) < 1)
    np.testing.assert_array_equal(states[0].coef, 0)


def test_a_step_to_the_minimum_of_the_model_is_the_last_if_no_row_changes_sides():
    """The model is then the objective itself, around the target."""
    Phi, Y, w = draw(50, 3, seed=9)
    (state,) = RowMargins(DenseRows(Phi), Y, w).start(None)
    move = Move(np.ones(3), 1.0, 0.0, 0.0)
    assert _solved(Step(state, 1.0, True), move, w.sum())
    assert not _solved(Step(state, 1.0, True), replace(move, exact=False), w.sum())
    assert not _solved(Step(state, 0.5, False), move, w.sum())


def test_a_loose_tolerance_ends_earlier():
    Phi, Y, w = draw(noise=0.1, seed=14)
    penalty = penalty_of(12, 0.1)
    tight = finite_newton(DenseRows(Phi), Y, w, penalty)
    loose = finite_newton(DenseRows(Phi), Y, w, penalty, tol=0.05)
    assert loose.converged
    assert 0 < loose.n_iter < tight.n_iter
    assert tight.objective[0] < loose.objective[0] < tight.objective[0] + 0.05**2 * w.sum()


@pytest.mark.parametrize("name", HARD)
def test_terms_are_those_of_the_active_rows(name):
    Phi, Y, w, penalty = hard_case(name)
    state = finite_newton(DenseRows(Phi), Y, w, penalty).state[0]
    weight = w * (Y[:, 0] * (Phi @ state.coef) < 1)
    np.testing.assert_array_equal(state.active, weight > 0)
    scale = np.sqrt(np.diag((Phi.T * w) @ Phi))
    A, b = (Phi.T * weight) @ Phi, Phi.T @ (weight * Y[:, 0])
    updated = 4 * rounding(len(Phi))  # rows come and go: two sums here, and the one beside
    np.testing.assert_allclose(
        state.A / scale / scale[:, None], A / scale / scale[:, None], rtol=0, atol=updated
    )
    np.testing.assert_allclose(state.b, b, rtol=0, atol=updated * (np.abs(Phi).T @ w).max())


def test_an_outlier_that_leaves_takes_no_digits_with_it():
    """Subtracting its 1e16 would leave errors of 1 in terms of size 100."""
    Phi, Y, w = draw(100, 5, seed=13)
    Phi[0, :4] = 1e8 * Y[0]
    state = finite_newton(DenseRows(Phi), Y, w, penalty_of(5)).state[0]
    assert not state.active[0]
    weight = w * state.active
    np.testing.assert_allclose(state.A, (Phi.T * weight) @ Phi, rtol=0, atol=1e-11)


def test_too_few_passes():
    Phi, Y, w = draw(noise=0.1, seed=14)
    penalty, rows = penalty_of(12, 0.1), Watched(Phi)
    short = finite_newton(rows, Y, w, penalty, max_iter=2)
    assert not short.converged
    assert short.n_iter == len(rows.passes) == 2
    z = short.coef[:, 0]
    assert short.objective[0] == pytest.approx(objective(Phi, Y[:, 0], w, penalty, z)[0], rel=1e-12)
    on = finite_newton(DenseRows(Phi), Y, w, penalty, short.state)
    whole = finite_newton(DenseRows(Phi), Y, w, penalty)
    assert on.converged
    assert on.n_iter == whole.n_iter - 2
    np.testing.assert_allclose(on.coef, whole.coef, rtol=0, atol=1e-11)


def test_every_pass_descends():
    Phi, Y, w = draw(noise=0.1, seed=15)
    penalty = penalty_of(12, 1e-2)
    values = [
        finite_newton(DenseRows(Phi), Y, w, penalty, max_iter=k).objective[0] for k in range(12)
    ]
    assert values[0] == pytest.approx(w.sum(), rel=2 * rounding(len(w)))
    assert (np.diff(values) <= 2 * rounding(len(w)) * w.sum()).all()
    assert values[-1] < 0.9 * values[1]


# Pieces


def test_solve_with_and_without_full_rank():
    rng = np.random.default_rng(16)
    scale = np.geomspace(1e-5, 1e5, 6)
    R, g = rng.normal(size=(20, 6)), rng.normal(size=6)
    x = np.linalg.pinv(R) @ (np.linalg.pinv(R).T @ (g / scale)) / scale
    R = R * scale
    np.testing.assert_allclose(solve(R.T @ R, g), x, rtol=1e-12)
    R = np.column_stack([R, R[:, 0], np.zeros(20)])
    g = R.T @ rng.normal(size=20)
    np.testing.assert_allclose(R.T @ R @ solve(R.T @ R, g), g, rtol=1e-9, atol=0)
    np.testing.assert_array_equal(solve(np.zeros((2, 2)), np.zeros(2)), [0, 0])


def test_solve_is_refined_where_a_ridge_is_needed():
    """One pair of equal columns, and one whose difference has an eigenvalue of 3e-13."""
    H = np.kron(np.eye(2), np.ones((2, 2)))
    H[2, 3] = H[3, 2] = 1 - 3e-13
    x = np.array([0.5, 0.5, 1.0, -1.0])
    np.testing.assert_allclose(solve(H, H @ x), x, rtol=1e-2)


# The loss of a held-out part


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_gradient_of_folds_by_differences(noise):
    """The loss of three folds, warm starts from trial to trial, two outputs, zeros in Y."""
    Phi, Y, w = draw(240, 15, 2, noise=noise, seed=18)
    Y[::17, 1] = 0
    groups = np.repeat([0, 1, -1], [9, 5, 1])  # the last feature has no penalty
    fold = np.arange(240) % 3
    states = [None] * 3

    def evaluate(theta):
        total, slope = 0.0, np.zeros(2)
        penalty = np.append(np.exp(theta), 0.0)[groups]
        for k in range(3):
            train, valid = fold != k, fold == k
            found = finite_newton(DenseRows(Phi[train]), Y[train], w[train], penalty, states[k])
            states[k] = found.state
            loss, derivative = hinge_loss(Phi[valid] @ found.coef, Y[valid], w[valid])
            total += loss
            dF_dz = Phi[valid].T @ derivative
            slope += hinge_gradient(found.state, penalty, groups, 2, dF_dz)
        return total, slope

    theta, step = np.array([0.7, -1.0]), 1e-5
    gradient = evaluate(theta)[1]
    for k, direction in enumerate(np.eye(2)):
        ends = [evaluate(theta + s * direction)[0] for s in (step, -step)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)
