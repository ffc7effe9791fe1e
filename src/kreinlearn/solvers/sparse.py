"""Sparse squared-hinge machines, with an l1 or elastic-net penalty, by proximal Newton steps.

    min_z  sum_i w_i max(0, 1 - y_i phi_i z)^2 + z' Q z + |diag(l1) z|_1

The model of a step is that of finite Newton with the l1 term added. An active-set method on its
(p, p) matrix gives the target of the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.line_search import Move
from kreinlearn.solvers.margins import Gram, HingeState, Margins, RowMargins, Rows
from kreinlearn.solvers.squared_hinge import MAX_ITER, HingeSolution, lock_step, solve

TOL = 1e-10  # of each KKT condition, relative to 2 sqrt(H_jj * objective at 0), its largest value
INNER = 0.1  # tolerance of the model, relative to that of the problem
JOINING = 0.25  # how many coefficients join the support at a time, relative to its size
ROUNDS = 10  # rounds of the active-set method per coefficient, at most
CUTS = (1.0, 0.25, 0.0625)  # steps tried before the one at which the first coefficient is zero


def sparse_newton(
    rows: Rows | Margins,
    Y: Array | None,  # (n, q): -1, +1, or 0 for a row that is not in this problem; None: in margins
    weights: Array | None,  # (n,)
    l1: Array,  # (p,): 0 for an intercept; inf keeps a coefficient at zero
    Q: Array | None = None,  # (p, p)
    start: Sequence[HingeState] | None = None,
    *,
    gram: Gram | None = None,
    max_iter: int = MAX_ITER,
) -> HingeSolution:
    """Minimise the penalised squared hinge loss of each column of Y, to the KKT conditions."""
    Q = np.zeros((rows.p, rows.p)) if Q is None else Q

    def propose(state: HingeState, total: float, scale: float) -> Move | None:
        H, z, weight = state.A + scale * Q, state.coef, scale * l1
        allowed = TOL * 2 * np.sqrt(np.diag(H) * total)
        gradient = 2 * (H @ z - state.b)
        if (kkt_residual(z, gradient, weight) <= allowed).all():
            return None
        target = z.copy()
        exact = _minimise(H, state.b, weight / 2, target, INNER * TOL * np.sqrt(total))
        D = target - z
        gain = l1_norm(z, weight) - l1_norm(target, weight) - D @ (gradient + H @ D)
        return _move(target, float(gain), z, scale * Q, weight, exact)

    margins = _margins_of(rows, Y, weights)
    states, n_iter, converged = lock_step(margins, start, gram, propose, max_iter)
    coef = np.column_stack([state.coef for state in states])
    penalties = [z @ Q @ z + l1_norm(z, l1) for z in coef.T]
    return HingeSolution(coef, n_iter, converged, margins.losses(states) + penalties, states)


def _margins_of(rows: Rows | Margins, Y: Array | None, weights: Array | None) -> Margins:
    """Margins of rows with these targets; without targets they are margins already."""
    if Y is None or weights is None:
        return cast("Margins", rows)
    return RowMargins(cast("Rows", rows), Y, weights)


def l1_norm(z: Array, l1: Array) -> float:
    """|diag(l1) z|_1, where an infinite l1 and z = 0 give zero."""
    return float(l1[z != 0] @ np.abs(z[z != 0]))


def kkt_residual(z: Array, gradient: Array, l1: Array) -> Array:
    """Distance of -gradient of the smooth part from the subdifferential of |l1 z|: (p,)."""
    at_zero = np.maximum(np.abs(gradient) - l1, 0)
    return np.asarray(np.where(z != 0, np.abs(gradient + np.copysign(l1, z)), at_zero))


def _move(target: Array, gain: float, z: Array, Q: Array, l1: Array, exact: bool) -> Move:
    """The move from z: half the slopes of z'Qz + |l1 z|_1, and where coefficients cross zero."""
    D = target - z
    moved = np.flatnonzero(D)
    sign = np.sign(np.where(z != 0, z, D))[moved]
    linear = z @ Q @ D + l1[moved] @ (sign * D[moved]) / 2
    crossing = np.flatnonzero(z * D < 0)
    at = -z[crossing] / D[crossing]
    order = np.argsort(at)
    jumps = l1[crossing] * np.abs(D[crossing])
    quadratic = float(D @ Q @ D)
    return Move(target, gain, float(linear), quadratic, at[order], jumps[order], exact)


def _minimise(H: Array, b: Array, half: Array, z: Array, tol: float) -> bool:
    """Minimise z'Hz - 2 b'z + 2 |half z|_1 in place, and say whether the tolerance was met.

    The coefficients that are not zero are solved for, then those with the largest promise join
    them, until no promise is above ``tol`` in the norm of H.
    """
    unit = np.sqrt(np.diag(H))
    z[(unit == 0) & (half > 0)] = 0  # this feature is zero in all active rows
    per = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)
    for _ in range(ROUNDS * len(z)):
        _solve_support(H, b, half, z)
        left = per * kkt_residual(z, H @ z - b, half)
        promise = np.where(z != 0, 0, left)
        first = np.argsort(-promise)[: 1 + int(JOINING * np.count_nonzero(z))]
        if promise[first[0]] <= tol:
            return bool(left.max() <= tol)
        for j in first[promise[first] > tol]:
            u = b[j] - H[j] @ z
            z[j] = np.copysign(max(abs(u) - half[j], 0), u) * per[j] ** 2
    return False


def _solve_support(H: Array, b: Array, half: Array, z: Array) -> None:
    """Minimise over the coefficients that are not zero, in place; one that reaches 0 stays there.

    Newton steps are taken within their orthant. A coefficient that would leave it is set to zero,
    as long as the model decreases.
    """

    def model(x: Array) -> float:
        return float(x @ (H_S @ x - 2 * b[S]) + 2 * half[S] @ np.abs(x))

    def cut(t: float) -> Array:
        return np.where(leaves <= t, 0, x + t * D)

    while len(S := np.flatnonzero(z)):
        H_S, x = H[np.ix_(S, S)], z[S]
        D = solve(H_S, b[S] - H_S @ x - np.copysign(half[S], x))
        leaves = np.divide(-x, D, out=np.full(len(S), np.inf), where=x * D < 0)
        first, now = min(leaves.min(), 1.0), model(x)
        t = next((t for t in CUTS if t > first and model(cut(t)) < now), first)
        z[S] = cut(t)
        if leaves.min() > t:
            return


def l1_max(
    rows: Rows | Margins,
    y: Array | None,  # (n,)
    weights: Array | None,
    l1_weights: Array,  # (p,)
    Q: Array | None = None,
    *,
    gram: Gram | None = None,
) -> tuple[float, HingeState]:
    """The smallest strength at which all penalised coefficients are zero, and the state there."""
    penalised = l1_weights > 0
    frozen = np.where(penalised, np.inf, 0.0)
    Y = None if y is None else y[:, None]
    state = sparse_newton(rows, Y, weights, frozen, Q, gram=gram).state[0]
    gradient = 2 * (state.A @ state.coef - state.b)
    if Q is not None:
        gradient += 2 * Q @ state.coef
    largest = np.max(np.abs(gradient[penalised]) / l1_weights[penalised], initial=0.0)
    return float(largest), state


def l1_path(
    rows: Rows | Margins,
    y: Array | None,  # (n,)
    weights: Array | None,
    l1_weights: Array,  # (p,)
    strengths: Sequence[float],
    Q: Array | None = None,
    start: HingeState | None = None,
    *,
    max_iter: int = MAX_ITER,
) -> Iterator[HingeSolution]:
    """Solutions for l1 = strength * l1_weights, largest first, each started from the one before."""
    Y = None if y is None else y[:, None]
    for strength in sorted(strengths, reverse=True):
        states = None if start is None else [start]
        l1 = strength * l1_weights
        solution = sparse_newton(rows, Y, weights, l1, Q, states, max_iter=max_iter)
        start = solution.state[0]
        yield solution
