"""Squared-hinge machines by finite Newton steps (Keerthi & DeCoste, 2005), all outputs together.

    min_z  sum_i w_i max(0, 1 - y_i phi_i z)^2 + z' diag(penalty) z

Rows i with y_i phi_i z < 1 are active. Their sums A = sum w phi phi' and b = sum w y phi give the
target of a Newton step, (A + penalty)^-1 b. Only rows that changed sides since the last step are
added to A or subtracted from it. The length of a step minimises the objective exactly, or nearly.

Few rows change sides in a step, and most of these are near the margin. Where the features of rows
near it are at hand, a problem in which all other rows keep their sides is solved first, and its
minimum is the target. So a pass over all rows mostly serves to verify it. Where the features of a
sample are at hand before the first pass, they tell where to start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from kreinlearn._native import cholesky
from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import group_sums
from kreinlearn.solvers.line_search import Move
from kreinlearn.solvers.margins import Gram, HingeState, Margins, RowMargins, Rows, Step

MAX_ITER = 200  # passes over the data; four to ten are usual
PATIENCE, RISE, FALL, HIGHEST = 20, 1e4, 10.0, 1e12  # of a detour: passes, factors, largest scale
TOL = 1e-12  # length of a step in the norm of the Hessian, relative to sqrt(objective at 0)
GUESSED = 1e-4  # the same on a sample; the loss of a rare class is a small part of that at 0
ROUNDING = 16 * float(np.finfo(np.float64).eps)  # error of a gradient, relative to its terms
STALLED = 1e-12  # a gain that may be lost to rounding, relative to the objective at 0
FORESEEN = 0.5  # after a shorter step the next one is not foreseen: too few rows were near
REFINED = 4  # solves with a singular matrix, each of what the last one left over


@dataclass(frozen=True)
class HingeSolution:
    """The minimum for each output, and how it was reached."""

    coef: Array  # (p, q)
    n_iter: int  # passes over the data
    converged: bool
    objective: Array  # (q,)
    state: list[HingeState]  # one per output


# state, objective at zero, scale of the penalty -> where to go next, or None at the minimum
Propose = Callable[[HingeState, float, float], Move | None]
# output, state, move -> a state with the sides of rows at the target of a longer move
Foresee = Callable[[int, HingeState, Move], tuple[HingeState, Move]]


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
    """Minimise the squared hinge loss of each column of Y, for rows in memory.

    ``gram``, the sums of all rows, saves the first pass where there is no ``start``.
    """
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
    """Minimise the squared hinge loss of each output, for rows that may be anywhere."""

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

    def foresee(k: int, state: HingeState, move: Move) -> tuple[HingeState, Move]:
        near = margins.near(k, state)
        if near is None:
            return state, move
        found, _, converged = lock_step(near.margins, [near.state], None, propose, PATIENCE)
        if not converged:
            return state, move
        target = found[0].coef
        D = target - state.coef
        linear, quadratic = (float(v @ (penalty * D)) for v in (state.coef, D))
        return near.back(state, found[0]), Move(target, move.gain, linear, quadratic)

    sample, begun = margins.sample(), 0
    if start is None and gram is not None and sample is not None and max_iter > 0:
        share = sum(sample.margins.totals) / sum(margins.totals)
        guess = least_squares(gram, penalty) + correction(sample.margins, share * penalty)
        start, begun = sample.start(guess, gram), 1
    found = lock_step(margins, start, gram, propose, max_iter - begun, foresee)
    states, n_iter, converged = found[0], found[1] + begun, found[2]
    coef = np.column_stack([state.coef for state in states])
    objective = margins.losses(states) + penalty @ coef**2
    return HingeSolution(coef, n_iter, converged, objective, states)


def correction(sample: Margins, penalty: Array) -> Array:  # (p, q)
    """By how much the minimum differs from that of least squares, on a sample of the rows.

    To add it to the least squares of all rows is nearer to their minimum than that of the sample.
    """
    start = sample.start(None)
    gram = np.array([state.A for state in start]), np.column_stack([state.b for state in start])
    found = newton(sample, penalty, start, max_iter=PATIENCE, tol=GUESSED)
    return found.coef - least_squares(gram, penalty)


def least_squares(gram: Gram, penalty: Array) -> Array:  # (p, q)
    """The coefficients of least squares, whose rows are all active."""
    A = np.broadcast_to(gram[0], (gram[1].shape[1], *gram[0].shape[-2:]))
    each = zip(A, gram[1].T, strict=True)
    return np.column_stack([solve(one + np.diag(penalty), b) for one, b in each])


def lock_step(
    margins: Margins,
    start: Sequence[HingeState] | None,
    gram: Gram | None,
    propose: Propose,
    max_iter: int,
    foresee: Foresee | None = None,
) -> tuple[list[HingeState], int, bool]:
    """Take steps until nothing more is proposed for any output; one pass serves all of them.

    Returns the states, the number of passes, and whether all outputs converged.
    """
    states = list(start) if start is not None else margins.start(gram)
    detours = [Detour() for _ in states]
    unsolved, stuck = list(range(len(states))), False
    foreseeable = set(unsolved)
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
        for k in foreseeable.intersection(moves):
            if foresee is not None and detours[k].scale == 1:
                states[k], moves[k] = foresee(k, states[k], moves[k])
        unsolved = []
        for k, step in margins.walk({k: states[k] for k in moves}, moves).items():
            states[k] = step.state
            foreseeable = foreseeable - {k} if step.t < FORESEEN else foreseeable | {k}
            solved = _solved(step, moves[k], margins.totals[k])
            if step.t == 0 and not solved and not detours[k].rise():
                stuck = True
            elif not (solved and detours[k].ended()):
                detours[k].go_on()
                unsolved.append(k)
    return states, n_iter, not (moves or stuck)


def _solved(step: Step, move: Move, total: float) -> bool:
    """Whether this is the minimum, or the promised gain is no more than rounding error."""
    if step.same:
        return move.exact
    return step.t == 0 and abs(move.gain) <= STALLED * total


@dataclass
class Detour:
    """A larger penalty, from which to come down where a small one makes little or no progress.

    Separable rows with hardly any penalty need this.
    """

    scale: float = 1.0  # factor of the penalty
    passes: int = 0
    falling: bool = False

    def go_on(self) -> None:
        """Count a pass that has not reached the minimum; too many of them raise the penalty."""
        self.passes += 1
        if self.passes % PATIENCE == 0:
            self.rise()

    def rise(self) -> bool:
        """Raise the penalty, and say whether that was possible; on the way down it is not."""
        if self.falling or self.scale >= HIGHEST:
            return False
        self.scale *= RISE
        return True

    def ended(self) -> bool:
        """Lower the penalty after its minimum is reached, and say whether it was the last one."""
        last, self.falling = self.scale == 1, True
        self.scale = max(1.0, self.scale / FALL)
        return last


def solve(H: Array, g: Array) -> Array:
    """H^-1 g for a positive semi-definite H by Cholesky; a tiny ridge is added if H is singular."""
    if not len(g):  # which scipy 1.13 does not take
        return g
    unit = np.sqrt(np.diag(H))
    unit = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)
    scaled, goal, ridge = unit[:, None] * H * unit, unit * g, 0.0
    while True:
        try:
            factor = cholesky(scaled + ridge * np.eye(len(H)) if ridge else scaled.copy()), True
            break
        except np.linalg.LinAlgError:
            ridge = max(100 * ridge, len(H) * ROUNDING)
    x = cho_solve(factor, goal, check_finite=False)
    for _ in range(REFINED - 1 if ridge else 0):
        x += cho_solve(factor, goal - scaled @ x, check_finite=False)
    return np.asarray(unit * x)


def hinge_gradient(
    state: Sequence[HingeState], penalty: Array, groups: Array, n_groups: int, dF_dz: Array
) -> Array:  # (n_groups,)
    """Gradient of a loss F in log penalty, one entry per group, by implicit differentiation.

    ``groups`` (p,) has the group of each coefficient, or -1 for one without a penalty; ``dF_dz`` is
    (p, q). Outputs are summed.
    """
    total = np.zeros(n_groups)
    for one, slope in zip(state, dF_dz.T, strict=True):
        pull = solve(one.A + np.diag(penalty), slope) * penalty * one.coef
        total -= group_sums(pull, groups, n_groups)
    return total
