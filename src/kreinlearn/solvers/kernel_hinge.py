"""Squared-hinge machines with all objects as landmarks: finite Newton steps on the active objects.

    min_beta  sum_i w_i max(0, 1 - y_i f_i)^2 + beta'H beta,   f = H beta + b

where H is a positive semi-definite matrix. Objects with y_i f_i < 1 are active. The target of a
Newton step solves a ridge problem of the active objects alone, (H_AA + 1 / w_A) beta_A + b = y_A,
so that a step costs the cube of their number. The length of a step minimises the objective exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import Solution
from kreinlearn.solvers.line_search import Line, Move, line_minimum
from kreinlearn.solvers.margins import active_rows

MAX_ITER = 200  # steps; three to ten are usual
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of a system, times its size and its trace
STALLED = 1e-13  # a gain that is lost to rounding, relative to the objective at zero


@dataclass(frozen=True)
class Point:
    """A model of one output: coefficients of all objects, intercept, and decision values."""

    beta: Array  # (n,)
    b: float
    f: Array  # (n,)

    def towards(self, target: Point, t: float) -> Point:
        """The point at t on the way to another."""
        return Point(
            self.beta + t * (target.beta - self.beta),
            self.b + t * (target.b - self.b),
            self.f + t * (target.f - self.f),
        )


def kernel_machines(
    H: Array,
    Y: Array,
    w: Array,
    beta: Array,
    b: Array,
    *,
    intercept: bool,
    max_iter: int = MAX_ITER,
) -> tuple[Solution, Array]:
    """Coefficients (n, q) of all outputs, from a start (n, q), and their intercepts (q,)."""
    F = H @ beta + b
    found = [
        _machine(H, Y[:, k], w, Point(beta[:, k], float(b[k]), F[:, k]), intercept, max_iter)
        for k in range(Y.shape[1])
    ]
    points, steps, converged = zip(*found, strict=True)
    coef = np.column_stack([point.beta for point in points])
    solution = Solution(coef, n_iter=max(steps), converged=all(converged))
    return solution, np.array([point.b for point in points])


def _machine(
    H: Array, y: Array, w: Array, point: Point, intercept: bool, max_iter: int
) -> tuple[Point, int, bool]:
    """The minimum of one output, the number of steps, and whether it was reached."""
    active = active_rows(point.f, y, w)
    for step in range(1, max_iter + 1):
        target = _ridge_of(H, y, w, active, intercept)
        reached = active_rows(target.f, y, w)
        if np.array_equal(reached, active):
            return target, step, True
        t = _length(H, y, w, point, target)
        if t == 0:  # no descent is left but for rounding
            return point, step, True
        point = point.towards(target, t)
        active = active_rows(point.f, y, w)
    return point, max_iter, False


def _ridge_of(H: Array, y: Array, w: Array, active: Array, intercept: bool) -> Point:
    """The model that least squares makes of the active objects."""
    A = np.flatnonzero(active)
    beta, b = np.zeros(len(y)), 0.0
    if len(A):
        rows = H[A]  # copied faster than columns, which are the same
        system = rows[:, A]
        system[np.diag_indices(len(A))] += 1 / w[A]
        solved = _solved(system, np.column_stack([y[A], np.ones(len(A))]))
        if intercept:
            b = float(solved[:, 0].sum() / solved[:, 1].sum())
        beta[A] = solved[:, 0] - b * solved[:, 1]
        return Point(beta, b, beta[A] @ rows + b)
    return Point(beta, b, np.zeros(len(y)))


def _solved(system: Array, right: Array) -> Array:
    """The solution by Cholesky; rounding errors of a nearly singular system are made up for.

    Such errors are at most as large as the trace times the size and the unit roundoff, and a few
    times that much on the diagonal makes the factorisation possible.
    """
    try:
        factor = cho_factor(system, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        margin = ROUNDING * len(system) * float(np.trace(system))
        system = system + margin * np.eye(len(system))
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, right, check_finite=False))


def _length(H: Array, y: Array, w: Array, point: Point, target: Point) -> float:
    """The part of the way to a target at which the objective is smallest; 0 if it does not fall."""
    way, change = target.beta - point.beta, target.f - point.f
    in_space = change - (target.b - point.b)  # H times the way
    linear, quadratic = float(point.beta @ in_space), float(way @ in_space)
    margin = 1 - y * point.f
    slope = linear - float((w * np.maximum(margin, 0)) @ (y * change))
    if -slope <= STALLED * float(w.sum()):
        return 0.0
    move = Move(target.beta, -slope, linear, quadratic)
    return line_minimum(Line(margin, y * change, w), move)
