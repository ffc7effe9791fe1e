"""Squared-hinge machines by finite Newton (Keerthi & DeCoste, 2005), several outputs in lock-step.

min_z sum_i w_i max(0, 1 - y_i phi_i z)^2 + z' diag(penalty) z. Rows i with y_i phi_i z < 1 are
active; their A = sum w phi phi' and b = sum w y phi give the Newton target (A + penalty)^-1 b. Only
rows that changed sides are added to A or taken away; the step along the line is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

MAX_ITER = 200  # passes; four to ten are usual
PATIENCE, RISE, FALL, HIGHEST = 20, 1e4, 10.0, 1e12  # of the detour over larger penalties
TOL = 1e-12  # |step| in the norm of the Hessian, relative to sqrt(objective at 0)
ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of a gradient, relative to its terms
STALLED = 1e-12  # a gain that may be lost to rounding, relative to the objective at 0
REFINED = 4  # solves with a singular matrix, each with what the last left over
CANCELLED = 0.1  # A is built anew when taking rows away leaves less than this part of its trace
GATHERED = 2048  # rows copied at a time

Array = NDArray[Any]
Gram = tuple[Array, Array]  # A (p, p), shared by all outputs, or (q, p, p); b (p, q)


class Rows(Protocol):
    """The data, seen only through sums over rows of the features phi (n, p)."""

    @property
    def n(self) -> int: ...
    @property
    def p(self) -> int: ...

    def decision(self, Z: Array) -> Array:
        """Features times Z: (p, q) -> (n, q), one pass for all columns."""

    def terms(self, numbers: Array, weights: Array, targets: Array) -> tuple[Array, Array]:
        """sum w phi phi' and sum w t phi over sorted row numbers: (k,), (k,), (k,) -> (p, p), (p,).

        Targets (k, q) give (p, q).
        """


@dataclass(frozen=True)
class DenseRows:
    """Features in memory, rows gathered a tile at a time."""

    Phi: Array  # (n, p)

    @property
    def n(self) -> int:
        return int(self.Phi.shape[0])

    @property
    def p(self) -> int:
        return int(self.Phi.shape[1])

    def decision(self, Z: Array) -> Array:
        return np.asarray(self.Phi @ Z)

    def terms(self, numbers: Array, weights: Array, targets: Array) -> tuple[Array, Array]:
        A, b = np.zeros((self.p, self.p)), np.zeros((self.p, *targets.shape[1:]))
        buffer = np.empty((min(len(numbers), GATHERED), self.p))
        for start in range(0, len(numbers), GATHERED):
            part = slice(start, start + GATHERED)
            root, R = np.sqrt(weights[part]), buffer[: len(numbers) - start]
            np.take(self.Phi, numbers[part], axis=0, out=R, mode="clip")
            R *= root[:, None]
            A += R.T @ R
            b += R.T @ (root * targets[part].T).T
        return A, b


@dataclass(frozen=True)
class HingeState:
    """Where one output stands. A and b do not know the penalty: another one may start from here."""

    coef: Array  # (p,)
    decision: Array  # (n,)
    active: Array  # (n,): the rows in A and b
    A: Array  # (p, p)
    b: Array  # (p,)

    def up_to_date(self, rows: Rows, y: Array, w: Array) -> HingeState:
        """A and b of the rows that are active now; w is 0 for rows of no concern."""
        active = active_rows(self.decision, y, w)
        changed = active != self.active
        if not changed.any():
            return self
        A, b = self.A, self.b
        if changed.sum() < active.sum():
            for sign, moved in ((1, changed & active), (-1, changed & self.active)):
                part = _terms(rows, moved, y, w)
                A, b = A + sign * part[0], b + sign * part[1]
        if A is self.A or A.trace() < CANCELLED * self.A.trace():
            A, b = _terms(rows, active, y, w)
        return replace(self, active=active, A=A, b=b)


@dataclass(frozen=True)
class HingeSolution:
    coef: Array  # (p, q)
    n_iter: int  # passes over the data
    converged: bool
    objective: Array  # (q,)
    state: list[HingeState]  # one an output


@dataclass(frozen=True)
class Move:
    """A target, and the penalty on the way: penalty(t) = 2 t linear + t^2 quadratic + kinks."""

    target: Array  # (p,)
    gain: float  # of the objective, by the model
    linear: float
    quadratic: float
    kinks: Array = field(default_factory=lambda: np.empty(0))  # where half the slope jumps, sorted
    jumps: Array = field(default_factory=lambda: np.empty(0))
    exact: bool = True  # the target minimises the model


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

    states, n_iter, converged = lock_step(rows, Y, weights, start, gram, propose, max_iter)
    coef = np.column_stack([state.coef for state in states])
    losses = [hinge_loss(s.decision, y, weights)[0] for s, y in zip(states, Y.T, strict=True)]
    return HingeSolution(coef, n_iter, converged, losses + penalty @ coef**2, states)


def lock_step(
    rows: Rows,
    Y: Array,
    weights: Array,
    start: Sequence[HingeState] | None,
    gram: Gram | None,
    propose: Propose,
    max_iter: int,
) -> tuple[list[HingeState], int, bool]:
    """All outputs to where nothing more is proposed, one pass over the data for all at a time."""
    Y = np.asfortranarray(Y)
    W = [np.where(y != 0, weights, 0.0) for y in Y.T]
    states = list(start) if start is not None else _cold_start(rows, Y, W, gram)
    detours = [Detour() for _ in W]
    unsolved, stuck = list(range(len(W))), False
    for n_iter in range(max_iter + 1):
        moves: dict[int, Move] = {}
        for k in unsolved:
            states[k] = states[k].up_to_date(rows, Y[:, k], W[k])
            while (move := propose(states[k], W[k].sum(), detours[k].scale)) is None:
                if detours[k].ended():
                    break
            else:
                moves[k] = move
        if not moves or n_iter == max_iter:
            break
        decisions = rows.decision(np.column_stack([move.target for move in moves.values()]))
        unsolved = []
        for decision, (k, move) in zip(decisions.T, moves.items(), strict=True):
            states[k], t, solved = _moved(states[k], move, decision, Y[:, k], W[k])
            if t == 0 and not solved and not detours[k].rise():
                stuck = True
            elif not (solved and detours[k].ended()):
                detours[k].go_on()
                unsolved.append(k)
    return states, n_iter, not (moves or stuck)


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


def _cold_start(rows: Rows, Y: Array, W: list[Array], gram: Gram | None) -> list[HingeState]:
    """Coefficients zero, hence all rows active: the first target is the ridge solution."""
    active = [w > 0 for w in W]
    if gram is not None:
        A, b = np.broadcast_to(gram[0], (len(W), rows.p, rows.p)), gram[1]
    elif all(np.array_equal(mask, active[0]) for mask in active):
        one, b = _terms(rows, active[0], Y, W[0])
        A = np.broadcast_to(one, (len(W), rows.p, rows.p))
    else:
        each = [_terms(rows, mask, y, w) for mask, y, w in zip(active, Y.T, W, strict=True)]
        A, b = np.array([A for A, _ in each]), np.column_stack([b for _, b in each])
    zero, nowhere = np.zeros(rows.p), np.zeros(rows.n)
    return [HingeState(zero, nowhere, active[k], A[k], b[:, k]) for k in range(len(W))]


def _terms(rows: Rows, mask: Array, y: Array, w: Array) -> tuple[Array, Array]:
    numbers = np.flatnonzero(mask)
    if not len(numbers):
        return np.zeros((rows.p, rows.p)), np.zeros((rows.p, *y.shape[1:]))
    return rows.terms(numbers, w[numbers], y[numbers])


def active_rows(decision: Array, y: Array, w: Array) -> Array:
    return np.asarray((y * decision < 1) & (w > 0))


def _moved(
    state: HingeState, move: Move, decision: Array, y: Array, w: Array
) -> tuple[HingeState, float, bool]:
    """The state at the best point on the way to the target, its t; whether it is the minimum."""
    decision = np.ascontiguousarray(decision)
    if np.array_equal(active_rows(decision, y, w), state.active):
        return replace(state, coef=move.target, decision=decision), 1.0, move.exact
    change = decision - state.decision
    t = line_minimum(1 - y * state.decision, y * change, w, move)
    if t == 0:  # the model is rounding error: is what it promises, too?
        return state, t, abs(move.gain) <= STALLED * w.sum()
    coef = state.coef + t * (move.target - state.coef)
    return replace(state, coef=coef, decision=state.decision + t * change), t, False


def line_minimum(margin: Array, change: Array, w: Array, move: Move) -> float:
    """t >= 0 that minimises sum w max(0, margin - t change)^2 + penalty(t), exactly.

    Half the derivative is increasing and linear between the t where a row changes sides.
    """

    def half_derivative(t: float) -> tuple[float, float]:  # and its slope, right of t
        left = np.maximum(margin - t * change, 0)
        pull = w * change * (left > 0)
        jumps = move.jumps[: np.searchsorted(move.kinks, t, "right")].sum()
        value = move.linear + t * move.quadratic + jumps - pull @ left
        return float(value), float(move.quadratic + pull @ change)

    low, high = 0.0, 1.0
    value, slope = half_derivative(low)
    if value >= 0:
        return 0.0
    beyond, tail = half_derivative(high)
    crossing = (change != 0) & (w > 0)
    last = max([np.max(margin[crossing] / change[crossing], initial=0.0), *move.kinks[-1:]])
    while beyond < 0 and high < last:
        low, value, slope = high, beyond, tail
        high = min(2 * high, last)
        beyond, tail = half_derivative(high)
    if beyond < 0:
        return high - beyond / tail if tail > 0 else high
    side = crossing & ((margin > low * change) != (margin > high * change))
    m, c = margin[side] - low * change[side], change[side]
    kinks = slice(*np.searchsorted(move.kinks, [low, high], "right"))
    at = np.concatenate([m / c, move.kinks[kinks] - low])
    steps = np.concatenate([w[side] * np.abs(c) * m, move.jumps[kinks]])
    bends = np.concatenate([-w[side] * np.abs(c) * c, np.zeros(len(move.jumps[kinks]))])
    return low + _root(value, slope, at, steps, bends, high - low)


def _root(value: float, slope: float, at: Array, steps: Array, bends: Array, end: float) -> float:
    """Where value + t slope, to which steps + t bends are added at each ``at``, gets positive."""
    order = np.argsort(at)
    at = np.append(at[order], end)
    values = value + np.append(0.0, np.cumsum(steps[order]))  # before at[k]
    slopes = slope + np.append(0.0, np.cumsum(bends[order]))
    after = np.append(values[1:] + slopes[1:] * at[:-1], np.inf)
    k = int(np.argmax(after >= 0))
    if slopes[k] <= 0:
        return float(at[k])
    return float(np.clip(-values[k] / slopes[k], at[k - 1] if k else 0.0, at[k]))


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


def hinge_loss(decision: Array, Y: Array, weights: Array) -> tuple[float, Array]:
    """Weighted squared hinge loss, summed over rows with Y != 0 and outputs, and its gradient."""
    margin = np.where(Y != 0, np.maximum(1 - Y * decision, 0), 0.0)
    weighted = (weights * margin.T).T
    return float(np.vdot(weighted, margin)), -2 * weighted * Y


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
