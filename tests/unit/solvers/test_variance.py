"""Variance-constrained least squares against other routes to the same minimum, all in numpy.

The routes: problems built around their solution; the quadratic eigenvalue problem of Gander, Golub
and von Matt; search over the sphere; search over mu with a dense solver; the optimality conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from kreinlearn.solvers.least_squares import Fold, Solution, signed_penalty
from kreinlearn.solvers.variance import (
    MAX_ITER,
    VarianceFold,
    bounded,
    variance_constrained,
    variance_fold,
)
from tests.cases import random_orthogonal

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


class Problem(NamedTuple):
    G: Array  # (r, r)
    B: Array  # (r, q)
    penalty: Array  # (r,)
    radius: Array  # (q,)


# Oracles


def vc_objective(penalty: Array, b: Array, z: Array) -> float:
    return float(z @ (penalty * z) - 2 * z @ b)


def vc_multiplier(penalty: Array, b: Array, z: Array, radius: float) -> float:
    """The mu of a stationary z: z' of (P - mu G) z = b."""
    return float(z @ (penalty * z - b)) / radius**2


def vc_on_sphere(G: Array, b: Array, penalty: Array) -> tuple[Array, Array, Array, float]:
    """L, A, c, least: with G = L L', z'Pz - 2z'b is (x - c)' A (x - c) + least at best if L'z = x.

    z = P^-1 (b + L A (x - c)) attains it, so that the problem is one on the sphere |x| = r.
    """
    values, vectors = np.linalg.eigh(G)
    keep = values > 1e-12 * values[-1]
    L = vectors[:, keep] * np.sqrt(values[keep])
    A = np.linalg.inv((L.T / penalty) @ L)
    return L, A, L.T @ (b / penalty), -float(b @ (b / penalty))


def vc_by_quadratic_eigenvalues(
    G: Array, b: Array, penalty: Array, radius: float
) -> tuple[float, Array]:
    """mu and z by Gander, Golub and von Matt (1989): (A - mu)^2 g = a a'g / r^2 with a = A c.

    Linearised it is a 2k x 2k matrix whose eigenvalue of least real part is real, and is mu.
    """
    L, A, c, _ = vc_on_sphere(G, b, penalty)
    k, a = len(A), A @ c
    M = np.block([[A, -np.eye(k)], [-np.outer(a, a) / radius**2, A]])
    values, vectors = np.linalg.eig(M)
    smallest = np.argmin(values.real)
    g, x = np.split(vectors[:, smallest].real, 2)  # (A - mu) g = x, (A - mu) x = a a'g / r^2
    x *= np.sign(a @ g) * radius / np.linalg.norm(x)
    return float(values[smallest].real), (b + L @ (A @ (x - c))) / penalty


def vc_lower_bound(G: Array, b: Array, penalty: Array, radius: float, mu: float) -> float:
    """The Lagrangian's minimum, below the objective of every feasible z; P - mu G > 0."""
    return mu * radius**2 - float(b @ np.linalg.solve(np.diag(penalty) - mu * G, b))


def vc_by_search_of_sphere(G: Array, b: Array, penalty: Array, radius: float) -> float:
    """The least objective over a grid of the circle or sphere, refined about its best points."""
    _, A, c, least = vc_on_sphere(G, b, penalty)

    def value(X: Array) -> Array:
        return np.sum((X - c) @ A * (X - c), axis=1) + least

    if len(A) == 1:
        return float(value(np.array([[-radius], [radius]])).min())
    angles = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if len(A) == 3:
        t = np.repeat(np.cos(np.linspace(0, np.pi, 46)), len(X))[:, None]
        X = np.hstack([np.tile(X, (46, 1)) * np.sqrt(1 - t**2), t])
    step, ways = 0.1, np.random.default_rng(0).standard_normal((60, len(A)))
    X = X[np.argsort(value(radius * X))[:8]]
    while step > 1e-9:  # each of the best points tries steps around it, ever smaller ones
        near = X[:, None] + step * np.concatenate([0 * ways[:1], ways])
        near /= np.linalg.norm(near, axis=2, keepdims=True)
        values = value(radius * near.reshape(-1, len(A))).reshape(len(X), -1)
        best = values.argmin(axis=1)
        X = near[np.arange(len(X)), best]
        step *= 0.6
    return float(value(radius * X).min())


def vc_by_search_of_mu(G: Array, b: Array, penalty: Array, radius: float) -> tuple[float, Array]:
    """mu by a grid below its pole, then bisection, one dense solution a trial; no hard case."""
    W = 1 / np.sqrt(penalty)
    pole = 1 / np.linalg.norm(W[:, None] * G * W, 2)

    def solve(below: float) -> tuple[float, Array]:
        z = np.linalg.solve(np.diag(penalty) - (pole - below) * G, b)
        return float(np.sqrt(z @ G @ z)), z

    grid = pole * np.geomspace(1e-9, 1e15, 97)
    norms = np.array([solve(below)[0] for below in grid])
    i = int(np.argmax(norms < radius))
    assert i > 0, "mu is out of the grid"
    low, high = grid[i - 1], grid[i]
    while (middle := np.sqrt(low * high)) not in (low, high):
        low, high = (middle, high) if solve(middle)[0] > radius else (low, middle)
    return pole - low, solve(low)[1]


# Problems


def psd(values: Array, rng: Rng) -> Array:
    Q = random_orthogonal(len(values), rng)
    G = (Q * values) @ Q.T
    return np.asarray(0.5 * (G + G.T))


def two_lambdas(r: int, rng: Rng, spread: float = 2.0) -> Array:
    """n Lambda_pm with both signs among the coordinates (if there are two)."""
    S = rng.permuted(np.where(np.arange(r) % 2, -1.0, 1.0))
    return 20 * signed_penalty(S, *(10 ** rng.uniform(-spread, spread, 2)))


def _plain(r: int, q: int, rng: Rng) -> Problem:
    Phi = rng.standard_normal((3 * r, r))
    radius = 10 ** rng.uniform(-2, 2, q)
    return Problem(Phi.T @ Phi, rng.standard_normal((r, q)), two_lambdas(r, rng), radius)


def _ill_conditioned(r: int, q: int, rng: Rng) -> Problem:
    G = psd(np.geomspace(1, 1e-6, r), rng)
    radius = 10 ** rng.uniform(-2, 2, q)
    return Problem(G, rng.standard_normal((r, q)), two_lambdas(r, rng, 0.5), radius)


def _rank_deficient(r: int, q: int, rng: Rng) -> Problem:
    """Outputs have a part that G does not see."""
    values = rng.uniform(0.5, 2, r) * (np.arange(r) < rng.integers(1, max(r, 2)))
    radius = 10 ** rng.uniform(-2, 2, q)
    return Problem(psd(values, rng), rng.standard_normal((r, q)), two_lambdas(r, rng), radius)


def _of_data(r: int, q: int, rng: Rng) -> Problem:
    """Fewer rows than features, and the default radius: the norm of the targets."""
    n = max(1, r - 1)
    Phi, Y = rng.standard_normal((n, r)), rng.standard_normal((n, q))
    return Problem(Phi.T @ Phi, Phi.T @ Y, two_lambdas(r, rng), np.linalg.norm(Y, axis=0))


def _hard(r: int, q: int, rng: Rng) -> Problem:
    """Nothing of b in the top eigenspace, and a norm beyond what the rest attains."""
    return with_top_part(np.zeros(q), r, q, rng)


def _near_hard(r: int, q: int, rng: Rng) -> Problem:
    return with_top_part(10 ** rng.uniform(-12, -5, q) * rng.choice([-1, 1], q), r, q, rng)


def with_top_part(part: Array, r: int, q: int, rng: Rng) -> Problem:
    """u_top u_top' is an eigenspace of W G W, and d has the given part of it."""
    penalty, V = two_lambdas(r, rng, 1.0), random_orthogonal(r, rng)
    tau = np.concatenate([rng.uniform(0.2, 1.6, r - 1), [2.0]])
    d = rng.standard_normal((r, q))
    d[-1] = part
    root = np.sqrt(penalty)[:, None]
    G = root * (V * tau) @ V.T * root.T
    reached = np.sqrt((tau[:-1, None] * (d[:-1] / (1 - tau[:-1, None] / 2)) ** 2).sum(axis=0))
    radius = (reached + 1.0) * rng.uniform(1.1, 3, q)
    return Problem(0.5 * (G + G.T), root * (V @ d), penalty, radius)


FAMILIES: dict[str, Callable[[int, int, Rng], Problem]] = {
    "plain": _plain,
    "ill-conditioned": _ill_conditioned,
    "rank-deficient": _rank_deficient,
    "of data": _of_data,
    "hard": _hard,
    "near hard": _near_hard,
}
HARD = {"hard", "near hard"}
SEEDS = range(100)  # times six families: 600 problems


@cache
def problem(family: str, seed: int) -> Problem:
    """Two problems of five have two or three features: small enough to search their sphere."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    r = int(rng.integers(2, 4)) if seed % 5 < 2 else int(rng.integers(4, 10))
    return FAMILIES[family](r, 1 + seed % 3, rng)


@cache
def solution(family: str, seed: int) -> Solution:
    return variance_constrained(*problem(family, seed))


def outputs(p: Problem, Z: Array) -> list[tuple[Array, Array, float]]:
    return list(zip(p.B.T, Z.T, p.radius.tolist(), strict=True))


def top_of(p: Problem) -> tuple[float, Array]:
    """The largest tau, and z along its eigenvector."""
    W = 1 / np.sqrt(p.penalty)
    tau, V = np.linalg.eigh(W[:, None] * p.G * W)
    return float(tau[-1]), W * V[:, -1]


def size_of(p: Problem, b: Array, z: Array) -> float:
    """What rounding of the objective is relative to."""
    return float(z @ (p.penalty * z) + 2 * np.abs(z) @ np.abs(b))


# The minimum


@pytest.mark.parametrize("family", FAMILIES)
def test_optimality_conditions(family: str) -> None:
    """Feasible, stationary, P - mu G semi-definite: enough for a global minimum, by themselves."""
    for seed in SEEDS:
        p = problem(family, seed)
        assert solution(family, seed).converged
        assert 1 <= solution(family, seed).n_iter <= 8
        tau, _ = top_of(p)
        for b, z, radius in outputs(p, solution(family, seed).coef):
            unseen = tau * (z @ (p.penalty * z)) / radius**2  # 1, and the part G does not see
            assert abs(z @ p.G @ z / radius**2 - 1) < 200 * EPS * unseen
            mu = vc_multiplier(p.penalty, b, z, radius)
            left = p.penalty * z - mu * p.G @ z - b
            terms = np.abs(p.penalty * z) + abs(mu) * np.abs(p.G) @ np.abs(z) + np.abs(b)
            assert np.linalg.norm(left) < 1e-10 * np.linalg.norm(terms)
            W = 1 / np.sqrt(p.penalty)
            assert 1 - mu * tau > -1e-10 * max(1, abs(mu) * tau)
            B = np.eye(len(W)) - mu * W[:, None] * p.G * W
            assert np.linalg.eigvalsh(B)[0] > -1e-10


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "rank-deficient"])
def test_constraint_holds_to_rounding(family: str) -> None:
    for seed in SEEDS:
        p = problem(family, seed)
        Z = solution(family, seed).coef
        norms = np.einsum("iq,iq->q", Z, p.G @ Z)
        assert np.max(np.abs(norms / p.radius**2 - 1)) < 2e-13


@pytest.mark.parametrize("family", FAMILIES)
def test_quadratic_eigenvalue_form(family: str) -> None:
    """In hard cases the eigenvalue is nearly double: mu has half of its digits, a vector none."""
    for seed in SEEDS:
        p = problem(family, seed)
        tau, _ = top_of(p)
        for b, z, radius in outputs(p, solution(family, seed).coef):
            mu, other = vc_by_quadratic_eigenvalues(p.G, b, p.penalty, radius)
            ours, size = vc_multiplier(p.penalty, b, z, radius), size_of(p, b, z)
            assert abs(mu - ours) * tau < (1e-6 if family in HARD else 1e-8) * max(1, abs(mu) * tau)
            bound = vc_lower_bound(p.G, b, p.penalty, radius, mu - 1e-6 * max(1 / tau, abs(mu)))
            assert -1e-10 * size < vc_objective(p.penalty, b, z) - bound < 1e-5 * size
            if family not in HARD:
                difference = vc_objective(p.penalty, b, z) - vc_objective(p.penalty, b, other)
                assert abs(difference) < 1e-8 * size


@pytest.mark.parametrize("family", FAMILIES)
def test_search_of_the_sphere(family: str) -> None:
    for seed in SEEDS:
        if seed % 5 < 2:
            p = problem(family, seed)
            for b, z, radius in outputs(p, solution(family, seed).coef):
                found = vc_by_search_of_sphere(p.G, b, p.penalty, radius)
                above = (found - vc_objective(p.penalty, b, z)) / size_of(p, b, z)
                assert above > -1e-10
                if family != "ill-conditioned" or len(z) < 3:  # a valley no such search comes down
                    assert above < 1e-9


@pytest.mark.parametrize("family", ["plain", "ill-conditioned", "of data"])
def test_search_of_mu(family: str) -> None:
    for seed in SEEDS[:20]:
        p = problem(family, seed)
        tau, _ = top_of(p)
        for b, z, radius in outputs(p, solution(family, seed).coef):
            mu, other = vc_by_search_of_mu(p.G, b, p.penalty, radius)
            ours = vc_multiplier(p.penalty, b, z, radius)
            assert abs(mu - ours) * tau < 1e-8 * max(1, abs(mu) * tau)
            root = np.sqrt(p.penalty)
            assert np.linalg.norm(root * (z - other)) < 1e-7 * np.linalg.norm(root * other)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_feasible_point_is_lower(family: str) -> None:
    rng = np.random.default_rng(1)
    for seed in SEEDS:
        p = problem(family, seed)
        for b, z, radius in outputs(p, solution(family, seed).coef):
            away = rng.standard_normal((60, len(z)))
            near = z + np.linalg.norm(z) * 10 ** rng.uniform(-6, 0, (60, 1)) * away
            others = np.concatenate([away, near, -near])
            others *= radius / np.sqrt(np.einsum("ni,ij,nj->n", others, p.G, others))[:, None]
            values = others**2 @ p.penalty - 2 * others @ b
            assert values.min() > vc_objective(p.penalty, b, z) - 1e-10 * size_of(p, b, z)


@pytest.mark.parametrize("delta", [1e-14, 1e-9, 1e-4, 0.3, 0.999, 1.0, 1.7, 30.0, 1e5, 1e9])
def test_solution_a_problem_was_built_around(delta: float) -> None:
    """b = (P - mu G) z with mu = (1 - delta) / tau_max has the solution z."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        r, q = 2 + seed, 3
        penalty, V = two_lambdas(r, rng, 1.0), random_orthogonal(r, rng)
        s = np.concatenate([rng.uniform(0.05, 0.9, r - 1), [1.0]])
        root, tau = np.sqrt(penalty)[:, None], 10 ** rng.uniform(-3, 3)
        u = rng.standard_normal((r, q))
        G, Z = root * (V * (tau * s)) @ V.T * root.T, V @ u / root
        B = root * (V @ (((1 - s) + delta * s)[:, None] * u))
        found = variance_constrained(G, B, penalty, np.sqrt(tau * (s @ u**2))).coef
        # eigenvectors turn by about eps: so does what b has of the top one
        error = np.linalg.norm(root * (found - Z)) / np.linalg.norm(root * Z)
        assert error < 1e-12 * max(1.0, 1e-2 / delta)


# The hard case


@pytest.mark.parametrize("seed", range(20))
def test_hard_case_is_the_rest_and_the_top_eigenvector(seed: int) -> None:
    p = problem("hard", seed)
    tau, along = top_of(p)
    along *= np.sign((np.sqrt(p.penalty) * along)[np.argmax(np.abs(np.sqrt(p.penalty) * along))])
    rest = np.linalg.pinv(np.diag(p.penalty) - p.G / tau, rcond=1e-10, hermitian=True) @ p.B
    rest -= np.outer(along, (p.penalty * along) @ rest)
    missing = np.sqrt(p.radius**2 - np.einsum("iq,iq->q", rest, p.G @ rest))
    expected = rest + np.outer(along, missing / np.sqrt(tau))
    found = variance_constrained(*p)
    assert found.converged
    np.testing.assert_allclose(found.coef, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(10))
def test_nothing_of_the_top_and_yet_not_hard(seed: int) -> None:
    """The rest attains the norm before mu comes to its pole: the top has no part in it."""
    p = problem("hard", seed)
    tau, along = top_of(p)
    p = p._replace(radius=p.radius / 20)
    for b, z, radius in outputs(p, variance_constrained(*p).coef):
        mu, other = vc_by_search_of_mu(p.G, b, p.penalty, radius)
        assert mu * tau < 1 - 1e-3
        root = np.sqrt(p.penalty)
        assert np.linalg.norm(root * (z - other)) < 1e-9 * np.linalg.norm(root * other)
        assert abs((p.penalty * along) @ z) < 1e-12 * np.linalg.norm(root * z)


def test_sign_of_a_hard_case_does_not_hang_on_rounding() -> None:
    for seed in range(20):
        p = problem("hard", seed)
        first = variance_constrained(*p).coef
        for k in range(1, 4):
            noise = 1 + EPS * np.random.default_rng(k).uniform(-1, 1, p.B.shape)
            again = variance_constrained(p.G, p.B * noise, p.penalty, p.radius).coef
            np.testing.assert_allclose(again, first, rtol=1e-9, atol=1e-9 * np.abs(first).max())


def test_top_eigenspace_of_several_dimensions() -> None:
    """G = I = P: z = r b / |b|; for b = 0 the first of all equal directions."""
    b = np.array([3.0, 0.0, -4.0])
    B = np.stack([b, np.zeros(3)], axis=1)
    found = variance_constrained(np.eye(3), B, np.ones(3), np.array([2.0, 5.0]))
    assert found.converged
    np.testing.assert_allclose(found.coef, [[1.2, 5.0], [0.0, 0.0], [-1.6, 0.0]], atol=1e-14)


def test_degenerate_top_eigenspace_depends_on_no_basis() -> None:
    """The eigenspace of 2 is a plane: the direction is that of the unit vector nearest to it."""
    for seed in range(10):
        Q = random_orthogonal(6, np.random.default_rng(seed))
        G = (Q * [2.0, 2.0, 1.0, 0.5, 0.2, 0.0]) @ Q.T
        plane = Q[:, :2] @ Q[:, :2].T
        nearest = plane[:, np.argmax(np.diag(plane))]
        found = variance_constrained(G, np.zeros((6, 1)), np.ones(6), np.array([3.0])).coef[:, 0]
        expected = 3 / np.sqrt(2) * nearest / np.linalg.norm(nearest)
        np.testing.assert_allclose(found, expected, atol=1e-13)


def test_sign_of_entries_about_as_large() -> None:
    """The first counts, though rounding, or less than it, makes the second the larger."""
    for more in (0.0, 1e-15, 1e-9, -1e-9):
        G = np.array([[2.0, -1.0], [-1.0, 2.0 + more]])
        found = variance_constrained(G, np.zeros((2, 1)), np.ones(2), np.array([np.sqrt(6)])).coef
        np.testing.assert_allclose(found, [[1.0], [-1.0]], rtol=1e-8)


def test_no_output_is_a_hard_case() -> None:
    p = problem("plain", 4)
    tau, along = top_of(p)
    found = variance_constrained(p.G, 0 * p.B, p.penalty, p.radius)
    assert found.converged
    expected = np.abs(np.outer(along, p.radius / np.sqrt(tau)))
    np.testing.assert_allclose(np.abs(found.coef), expected, rtol=1e-10)
    pivot = np.argmax(np.sqrt(p.penalty) * np.abs(along))
    assert np.all(found.coef[pivot] > 0)


def test_outputs_do_not_touch_each_other() -> None:
    """One hard, one near hard, one without a target, one ridge-like, one of no radius."""
    p = with_top_part(np.array([0.0, 1e-9, 0.0, 1.0, 1.0]), 7, 5, np.random.default_rng(0))
    p.B[:, 2] = 0.0
    p.radius[3:] = 1e-3, 0.0
    found = variance_constrained(*p)
    assert found.converged
    for j in range(5):
        alone = variance_constrained(p.G, p.B[:, [j]], p.penalty, p.radius[[j]])
        np.testing.assert_allclose(found.coef[:, [j]], alone.coef, rtol=1e-11, atol=1e-14)
        assert alone.n_iter <= found.n_iter


# Degenerate problems


def test_a_radius_of_zero_leaves_what_G_does_not_see() -> None:
    G = np.diag([2.0, 1.0, 0.0])
    B = np.array([[1.0], [2.0], [3.0]])
    found = variance_constrained(G, B, np.array([1.0, 1.0, 4.0]), np.zeros(1))
    assert found.converged
    np.testing.assert_allclose(found.coef[:, 0], [0.0, 0.0, 0.75], atol=1e-200)


@pytest.mark.parametrize("radius", [0.0, 1.5])
def test_no_rank(radius: float) -> None:
    """No z has a norm: zero and not converged; if none is asked for, the free minimum."""
    B, penalty = np.array([[2.0, 4.0], [16.0, 0.0]]), np.array([4.0, 16.0])
    found = variance_constrained(np.zeros((2, 2)), B, penalty, np.array([0.0, radius]))
    assert found.converged is (radius == 0)
    np.testing.assert_array_equal(found.coef, [[0.5, 1.0 if radius == 0 else 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("radius", [0.0, 1.5])
def test_no_features(radius: float) -> None:
    empty = np.zeros((0, 2))
    found = variance_constrained(np.zeros((0, 0)), empty, np.zeros(0), np.array([0.0, radius]))
    assert found.coef.shape == (0, 2)
    assert found.converged is (radius == 0)


def test_no_outputs() -> None:
    found = variance_constrained(np.eye(3), np.zeros((3, 0)), np.ones(3), np.zeros(0))
    assert found.coef.shape == (3, 0)
    assert found.converged


def test_one_feature() -> None:
    found = variance_constrained(
        np.array([[4.0]]), np.array([[-3.0, 1.0, 0.0]]), np.array([7.0]), np.array([6.0, 2.0, 1.0])
    )
    np.testing.assert_allclose(found.coef, [[-3.0, 1.0, 0.5]], rtol=1e-14)


def test_iterations_that_do_not_suffice_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem("plain", 9)
    needed = variance_constrained(*p).n_iter
    assert 1 < needed < MAX_ITER
    monkeypatch.setattr("kreinlearn.solvers.variance.MAX_ITER", needed - 1)
    found = variance_constrained(*p)
    assert (found.converged, found.n_iter) == (False, needed - 1)


# Ridge regression, and scales


@pytest.mark.parametrize("family", ["plain", "ill-conditioned", "of data"])
def test_mu_of_minus_one_is_ridge(family: str) -> None:
    for seed in SEEDS[:30]:
        p = problem(family, seed)
        ridge = np.linalg.solve(p.G + np.diag(p.penalty), p.B)
        radius = np.sqrt(np.einsum("iq,iq->q", ridge, p.G @ ridge))
        found = variance_constrained(p.G, p.B, p.penalty, radius).coef
        root = np.sqrt(p.penalty)[:, None]
        assert np.linalg.norm(root * (found - ridge)) < 1e-11 * np.linalg.norm(root * ridge)
        for b, z, r in zip(p.B.T, found.T, radius, strict=True):
            tau, _ = top_of(p)
            assert abs(vc_multiplier(p.penalty, b, z, r) + 1) * tau < 1e-9 * max(1, tau)


@pytest.mark.parametrize("family", ["plain", "ill-conditioned", "of data"])
def test_negative_mu_is_ridge_of_other_lambdas(family: str) -> None:
    """z = z_ridge(lambda / s) / s, s = -mu."""
    met = 0
    for seed in SEEDS:
        p = problem(family, seed)
        for b, z, radius in outputs(p, solution(family, seed).coef):
            s = -vc_multiplier(p.penalty, b, z, radius)
            if s > 1e-3:
                ridge = np.linalg.solve(p.G + np.diag(p.penalty / s), b)
                np.testing.assert_allclose(z, ridge / s, rtol=1e-6, atol=1e-8 * np.abs(z).max())
                met += 1
    assert met > 20


@pytest.mark.parametrize("c", [2.0**-200, 1e-60, 1e-7, 0.3, 1e7, 1e60, 2.0**200])
@pytest.mark.parametrize("family", ["plain", "of data", "near hard", "hard"])
def test_units_change_nothing(family: str, c: float) -> None:
    for seed in range(5):
        G, B, penalty, radius = problem(family, seed)
        z = variance_constrained(G, B, penalty, radius).coef
        rtol = 1e-3 if family == "near hard" and np.log2(c) % 2 else 1e-9
        same = {"rtol": rtol, "atol": rtol * np.abs(z).max()}
        with_features = variance_constrained(G * c**2, B * c, penalty * c**2, radius).coef
        np.testing.assert_allclose(with_features * c, z, **same)
        with_targets = variance_constrained(G, B * c, penalty, radius * c).coef
        np.testing.assert_allclose(with_targets / c, z, **same)
        with_objective = variance_constrained(G, B * c, penalty * c, radius).coef
        np.testing.assert_allclose(with_objective, z, **same)


@pytest.mark.parametrize("family", FAMILIES)
def test_powers_of_two_change_no_bit(family: str) -> None:
    G, B, penalty, radius = problem(family, 3)
    z = variance_constrained(G, B, penalty, radius).coef
    c = 2.0**40
    scaled = variance_constrained(G * c**2, B * c, penalty * c**2, radius).coef
    np.testing.assert_array_equal(scaled * c, z)
    for c in (2.0**-600, 2.0**-40, 2.0**40, 2.0**600):  # squares of targets are out of range
        scaled = variance_constrained(G, B * c, penalty, radius * c).coef
        np.testing.assert_array_equal(scaled / c, z)


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1e6, 1e12])
def test_lambdas_far_apart(ratio: float) -> None:
    """The predictions have their norm, but for eps times the largest tau."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Phi, Y = rng.standard_normal((20, 8)), rng.standard_normal((20, 2))
        penalty = 20 * signed_penalty(np.tile([1.0, -1.0], 4), 1.0, ratio)
        radius = np.linalg.norm(Y, axis=0)
        found = variance_constrained(Phi.T @ Phi, Phi.T @ Y, penalty, radius)
        assert found.converged
        error = np.abs(np.linalg.norm(Phi @ found.coef, axis=0) / radius - 1)
        assert np.max(error) < 100 * EPS * max(1, 1 / ratio)


def test_input_is_left_alone_and_single_precision_is_widened() -> None:
    p = problem("plain", 2)
    kept = [np.asfortranarray(A) for A in p]
    copies = [A.copy() for A in kept]
    found = variance_constrained(*kept)
    for A, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(A, copy)
    single = Problem(*(A.astype(np.float32) for A in p))
    narrow = variance_constrained(*single)
    assert narrow.converged
    assert narrow.coef.dtype == np.float64
    np.testing.assert_allclose(narrow.coef, found.coef, rtol=1e-3, atol=1e-3)


# The gradient of a fold


class Rows(NamedTuple):
    Phi: Array
    Y: Array


def rows(n: int, r: int, q: int, rng: Rng) -> Rows:
    """Features of falling size, centred, and targets that have something to do with them."""
    Phi = rng.standard_normal((n, r)) * np.geomspace(1, 0.1, r)
    Y = np.tanh(Phi @ rng.standard_normal((r, q))) + 0.5 * rng.standard_normal((n, q))
    return Rows(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0))


def fold_of(train: Rows, valid: Rows, S: Array) -> Fold:
    def terms(part: Rows) -> tuple[Array, Array]:
        return part.Phi.T @ part.Phi, part.Phi.T @ part.Y

    yy = np.square(valid.Y).sum(axis=0)
    return Fold(*terms(train), float(len(train.Y)), S, *terms(valid), yy)


def random_fold(seed: int) -> tuple[Fold, Rows, Array, Array]:
    """A fold, the rows of its validation part, log (lambda_plus, lambda_minus, c), and radii."""
    rng = np.random.default_rng(seed)
    r, q = int(rng.integers(2, 12)), 1 + seed % 4
    n = int(rng.integers(max(3, r // 2), 40))  # now and then fewer rows than features
    train, valid = rows(n, r, q, rng), rows(10, r, q, rng)
    S = rng.permuted(np.where(np.arange(r) % 2, -1.0, 1.0))
    theta = np.append(rng.uniform(-4, 1, 2), 0.0)
    radius = np.linalg.norm(train.Y, axis=0) * rng.uniform(0.2, 1.3, q)
    return fold_of(train, valid, S), valid, theta, radius


def fold_loss(fold: Fold, theta: Array, radius: Array) -> float:
    *values, c = np.exp(theta)
    return variance_fold(fold, np.array(values), c * radius)[0]


def central_difference(f: Callable[[Array], float], x: Array, h: float = 2e-3) -> Array:
    """Five points: error h^4."""

    def along(e: Array) -> float:
        near, far = f(x + e) - f(x - e), f(x + 2 * e) - f(x - 2 * e)
        return (8 * near - far) / (12 * h)

    return np.array([along(e) for e in h * np.eye(len(x))])


@pytest.mark.parametrize("seed", range(60))
def test_gradient_against_differences(seed: int) -> None:
    fold, _, theta, radius = random_fold(seed)
    values = np.exp(theta[:2])
    _, gradient = variance_fold(fold, values, radius)
    expected = central_difference(lambda x: fold_loss(fold, x, radius), theta)
    assert gradient.shape == (3,)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(10))
def test_loss_is_that_of_the_held_out_rows(seed: int) -> None:
    fold, valid, theta, radius = random_fold(seed)
    values = np.exp(theta[:2])
    Z = variance_constrained(fold.G, fold.B, fold.penalty(values), radius).coef
    loss, _ = variance_fold(fold, values, radius)
    np.testing.assert_allclose(loss, np.sum((valid.Y - valid.Phi @ Z) ** 2), rtol=1e-11)


def test_gradient_adds_up_over_outputs() -> None:
    fold, _, theta, radius = random_fold(3)
    values = np.exp(theta[:2])
    total = variance_fold(fold, values, radius)[1]
    parts = []
    for j in range(len(radius)):
        terms = {name: getattr(fold, name)[..., [j]] for name in ("B", "B_valid", "yy_valid")}
        parts.append(variance_fold(replace(fold, **terms), values, radius[[j]])[1])
    assert len(parts) == 4
    np.testing.assert_allclose(total, np.sum(parts, axis=0), rtol=1e-10)


def decoupled_fold(part: float, rng: Rng) -> tuple[Fold, Array]:
    """The first feature is orthogonal to all others, the largest, and has only ``part`` of b."""
    r, q = 6, 2
    train, valid = rows(30, r, q, rng), rows(10, r, q, rng)
    fold = fold_of(train, valid, np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]))
    fold.G[0, :] = fold.G[:, 0] = 0.0
    fold.G[0, 0] = 5 * np.linalg.norm(fold.G, 2)
    fold.B[0] = part * np.array([1.0, -1.0])
    return fold, 3 * np.linalg.norm(train.Y, axis=0)


@pytest.mark.parametrize("part", [0.0, 1e-13, 1e-11, 1e-8, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_gradient_in_and_near_the_hard_case(part: float, seed: int) -> None:
    """1 - mu tau_max is next to nothing: a gradient from 1 / (1 - mu tau) has no digit left."""
    fold, radius = decoupled_fold(part, np.random.default_rng(seed))
    theta = np.log([0.03, 0.05, 1.0])
    _, gradient = variance_fold(fold, np.array([0.03, 0.05]), radius)
    expected = central_difference(lambda x: fold_loss(fold, x, radius), theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3))
def test_gradient_where_all_eigenvalues_are_equal(seed: int) -> None:
    """G = 3 I and equal lambdas: another lambda splits the eigenspace, and z moves within it."""
    fold, _, _, radius = random_fold(seed)
    fold, theta = replace(fold, G=3 * np.eye(len(fold.G))), np.log([0.2, 0.2, 1.0])
    _, gradient = variance_fold(fold, np.array([0.2, 0.2]), radius)
    expected = central_difference(lambda x: fold_loss(fold, x, radius), theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_gradient_of_degenerate_folds_is_finite() -> None:
    fold, _, _, radius = random_fold(1)
    zero, values = replace(fold, G=0 * fold.G), np.array([0.1, 0.2])
    loss, gradient = variance_fold(zero, values, radius)
    assert loss == pytest.approx(fold.yy_valid.sum())
    np.testing.assert_array_equal(gradient, 0.0)
    loss, gradient = variance_fold(fold, values, 0 * radius)
    assert np.isfinite(loss)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    constant = replace(fold, B=0 * fold.B)
    assert np.all(np.isfinite(variance_fold(constant, values, radius)[1]))


def test_gradient_with_a_zero_radius_among_others() -> None:
    """Features outnumber rows, and one output has a part that no row sees: ridge without data."""
    fold, _, theta, radius = random_fold(2)
    G = np.zeros_like(fold.G)
    G[:-2, :-2] = fold.G[:-2, :-2]
    fold = replace(fold, G=G)
    radius = radius * (np.arange(len(radius)) > 0)
    values = np.exp(theta[:2])
    _, gradient = variance_fold(fold, values, radius)
    expected = central_difference(lambda x: fold_loss(fold, x, radius), theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(5))
def test_gradient_of_more_groups_of_features(seed: int) -> None:
    fold, _, theta, radius = random_fold(seed)
    fold = replace(fold, groups=np.random.default_rng(seed).integers(0, 4, len(fold.S)))
    theta = np.array([theta[0], theta[1], -1.0, -3.0, 0.0])
    _, gradient = variance_fold(fold, np.exp(theta[:4]), radius)
    expected = central_difference(lambda x: fold_loss(fold, x, radius), theta)
    assert gradient.shape == (5,)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_a_fold_with_radii_as_tuning_asks_for_it() -> None:
    """Radii are root mean squares there, and the last value is a common factor of them."""
    fold, _, theta, radius = random_fold(3)
    values = np.append(np.exp(theta[:2]), 0.7)
    asked = VarianceFold(fold, radius / np.sqrt(fold.n))
    loss, gradient = asked.loss_and_gradient(values)
    expected = variance_fold(fold, values[:2], 0.7 * radius)
    assert asked.n_valid == fold.n_valid
    assert loss == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-9)


def test_penalties_are_bounded_by_the_largest_sum_of_squares():
    given = np.array([0.0, 1e-15, 1.0, 1e200])
    found = bounded(given, np.array([0.25, 0.5, 0.0, 0.125]))
    np.testing.assert_allclose(found, [5e-15, 5e-15, 1.0, 5e99], rtol=1e-15)
    np.testing.assert_array_equal(bounded(given, np.zeros(4)), given)
