"""Squared-hinge machines by finite Newton (Keerthi & DeCoste, 2005), several outputs in lock-step.

min_z sum_i w_i max(0, 1 - y_i phi_i z)^2 + z' diag(penalty) z. Rows i with y_i phi_i z < 1 are
active; their A = sum w phi phi' and b = sum w y phi give the Newton target (A + penalty)^-1 b. Only
rows that changed sides are added to A or taken away; the step along the line is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kreinlearn.solvers.line_search import Move
from kreinlearn.solvers.margins import Array, Gram, HingeState, Margins, RowMargins, Rows, Step

MAX_ITER = 200  # passes; four to ten are usual
PATIENCE, RISE, FALL, HIGHEST = 20, 1e4, 10.0, 1e12  # of the detour over larger penalties
TOL = 1e-12  # |step| in the norm of the Hessian, relative to sqrt(objective at 0)
ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of a gradient, relative to its terms
STALLED = 1e-12  # a gain that may be lost to rounding, relative to the objective at 0
REFINED = 4  # solves with a singular matrix, each with what the last left over


@dataclass(frozen=True)
class HingeSolution:
    coef: Array  # (p, q)
    n_iter: int  # passes over the data
    converged: bool
    objective: Array  # (q,)
    state: list[HingeState]  # one an output


# state, objective at zero, scale of the penalty -> where to go next, None at the minimum
Propose = Callable[[HingeState, float, float], Move | None]


def finite_newton(
    rows: Rows,
    Y: Array,  # (n, q): -1, +1, or 0 for a row that is not in this problem
    weights: Array,  # (n,)
    penalty: Array,  # (p,)
    start: Sequence[HingeState] | None = None,
    *,
    gram: Gram | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
) -> HingeSolution:
    """Minimise each column's squared hinge loss; ``gram``, of all rows, spares a cold start."""
    margins = RowMargins(rows, Y, weights)
    return newton(margins, penalty, start, gram=gram, max_iter=max_iter, tol=tol)


def newton(
    margins: Margins,
    penalty: Array,  # (p,)
    start: Sequence[HingeState] | None = None,
    *,
    gram: Gram | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
) -> HingeSolution:
    """The same of rows that may be anywhere."""

    def propose(state: HingeState, total: float, scale: float) -> Move | None:
        P = scale * penalty
        H = state.A + np.diag(P)
        gradient = state.b - H @ state.coef
        noise = ROUNDING * (np.abs(H) @ np.abs(state.coef) + np.abs(state.b))
        if (np.abs(gradient) <= noise).all():
            return None
        D = solve(H, gradient)
        gain = gradient @ D
        if gain <= tol**2 * total:
            return None
        linear, quadratic = (float(v @ (P * D)) for v in (state.coef, D))
        return Move(state.coef + D, float(gain), linear, quadratic)

    states, n_iter, converged = lock_step(margins, start, gram, propose, max_iter)
    coef = np.column_stack([state.coef for state in states])
    objective = margins.losses(states) + penalty @ coef**2
    return HingeSolution(coef, n_iter, converged, objective, states)


def lock_step(
    margins: Margins,
    start: Sequence[HingeState] | None,
    gram: Gram | None,
    propose: Propose,
    max_iter: int,
) -> tuple[list[HingeState], int, bool]:
    """All outputs to where nothing more is proposed, one pass over the data for all at a time."""
    states = list(start) if start is not None else margins.start(gram)
    detours = [Detour() for _ in states]
    unsolved, stuck = list(range(len(states))), False
    for n_iter in range(max_iter + 1):
        moves: dict[int, Move] = {}
        for k, state in margins.up_to_date({k: states[k] for k in unsolved}).items():
            states[k] = state
            while (move := propose(state, margins.totals[k], detours[k].scale)) is None:
                if detours[k].ended():
                    break
            else:
                moves[k] = move
        if not moves or n_iter == max_iter:
            break
        unsolved = []
        for k, step in margins.walk({k: states[k] for k in moves}, moves).items():
            states[k] = step.state
            solved = _solved(step, moves[k], margins.totals[k])
            if step.t == 0 and not solved and not detours[k].rise():
                stuck = True
            elif not (solved and detours[k].ended()):
                detours[k].go_on()
                unsolved.append(k)
    return states, n_iter, not (moves or stuck)


def _solved(step: Step, move: Move, total: float) -> bool:
    """At the minimum; or the model is rounding error, and what it promises is, too."""
    if step.same:
        return move.exact
    return step.t == 0 and abs(move.gain) <= STALLED * total


@dataclass
class Detour:
    """A larger penalty to come down from, where a small one is slow (separable data) or stops."""

    scale: float = 1.0  # of the penalty
    passes: int = 0
    falling: bool = False

    def go_on(self) -> None:
        self.passes += 1
        if self.passes % PATIENCE == 0:
            self.rise()

    def rise(self) -> bool:
        """Whether there is a larger penalty to try; on the way down there is none."""
        if self.falling or self.scale >= HIGHEST:
            return False
        self.scale *= RISE
        return True

    def ended(self) -> bool:
        """Solved at this scale: whether it was the last."""
        last, self.falling = self.scale == 1, True
        self.scale = max(1.0, self.scale / FALL)
        return last


def solve(H: Array, g: Array) -> Array:
    """H^-1 g for a positive semi-definite H by Cholesky; a singular one gets a trace of ridge."""
    unit = np.sqrt(np.diag(H))
    unit = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)
    scaled, goal, ridge = unit[:, None] * H * unit, unit * g, 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + ridge * np.eye(len(H)))
            break
        except np.linalg.LinAlgError:
            ridge = max(100 * ridge, len(H) * ROUNDING)
    x = np.zeros_like(goal)
    for _ in range(REFINED if ridge else 1):
        x += scipy.linalg.cho_solve(factor, goal - scaled @ x)
    return np.asarray(unit * x)


def hinge_gradient(
    state: Sequence[HingeState], penalty: Array, plus: Array, minus: Array, dF_dz: Array
) -> Array:
    """dF/d(log lambda_plus, log lambda_minus), outputs summed, by implicit differentiation.

    plus and minus (p,) say which coordinates have which lambda; dF_dz is (p, q).
    """
    total = np.zeros(2)
    for one, slope in zip(state, dF_dz.T, strict=True):
        pull = solve(one.A + np.diag(penalty), slope) * penalty * one.coef
        total -= [pull[plus].sum(), pull[minus].sum()]
    return total
