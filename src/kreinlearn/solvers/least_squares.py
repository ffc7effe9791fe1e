"""Ridge regression from (r, r) moments or from rows: one factorisation for all targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.factor import Factor
from kreinlearn.solvers.result import Fold, Solution, group_sums, sign_groups


def ridge(G: Array, B: Array, penalty: Array) -> Solution:
    """argmin |Y - Phi z|^2 + z' diag(penalty) z, from G = Phi'Phi and B = Phi'Y."""
    factor = Factor(G, penalty)
    return Solution(factor.solve(B), singular=factor.singular)


def ridge_rows(
    Phi: Array, Y: Array, w: Array, penalty: Array, *, intercept: bool = True
) -> tuple[Array, Array]:
    """Coefficients (r, q) and intercept (q,) from rows; every penalty must be positive.

    With fewer rows than features the (n, n) dual problem is solved. The intercept is not
    penalised.
    """
    n, r = Phi.shape
    F, T, mean, ybar = _weighted_rows(Phi, Y, w, intercept)
    if n < r:
        dual = Factor((F / penalty) @ F.T, np.ones(n))
        Z = (F / penalty).T @ dual.solve(T)
    else:
        Z = Factor(F.T @ F, penalty).solve(F.T @ T)
    return Z, ybar - mean @ Z


def _weighted_rows(
    Phi: Array, Y: Array, w: Array, intercept: bool
) -> tuple[Array, Array, Array, Array]:
    """Features and targets, centred if there is an intercept, times sqrt(w); and their means."""
    mean, ybar = w @ Phi / w.sum(), w @ Y / w.sum()
    if not intercept:
        mean, ybar = np.zeros_like(mean), np.zeros_like(ybar)
    root = np.sqrt(w)[:, None]
    return root * (Phi - mean), root * (Y - ybar), mean, ybar


def ridge_fold(fold: Fold, *values: Any) -> tuple[float, Array]:
    """Loss of ridge regression on a fold, and its gradient in log penalty, one entry per group.

    ``values`` is a vector of one penalty per group; until all callers pass a vector, the penalties
    may also be given one by one.
    """
    return fold.loss_and_gradient(np.ravel(values))


class LeaveOneOut:
    """Ridge regression tested on each row in turn: a ``FoldLoss`` with as many folds as rows.

    Every tested row is predicted by a fit to all other rows. The penalty is that of all rows.
    """

    def __init__(
        self, Phi: Array, Y: Array, w: Array, tested: Array, groups: Array, *, intercept: bool
    ) -> None:
        # (n, r), (n, q), (n,) weights, (n,) bool, (r,) int
        self.n, self.n_valid = w.sum(), float(w[tested].sum())
        self.tested, self.groups = tested, groups
        self.F, self.T, _, _ = _weighted_rows(Phi, Y, w, intercept)
        self.G, self.B = self.F.T @ self.F, self.F.T @ self.T
        self.constant = w / self.n if intercept else 0.0  # leverage of the intercept

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        """Weighted squared errors of the tested rows, summed, and the gradient per group."""
        F, penalty = self.F, self.n * values[self.groups]
        factor = Factor(self.G, penalty)
        Z, H = factor.solve(self.B), factor.solve(F.T)  # (r, q), (r, n)
        rest = 1 - np.einsum("ni,in->n", F, H) - self.constant
        E = self.tested[:, None] * (self.T - F @ Z) / rest[:, None]
        Q = factor.solve(F.T @ (2 * E / rest[:, None]))  # (r, q)
        # de_i = (F_i A^-1 dP z + e_i dh_i) / (1 - h_i),  dh_i = - sum_j dP_j H_ji^2
        leverage = 2 * np.square(H) @ (np.square(E).sum(axis=1) / rest)
        slope = penalty * (np.einsum("iq,iq->i", Q, Z) - leverage)
        return float(np.square(E).sum()), group_sums(slope, self.groups, len(values))


def leave_one_out(
    rows: tuple[Array, Array, Array, Array], S: Array, intercept: bool, *values: float
) -> tuple[float, Array]:
    """The former call of ``LeaveOneOut``, with two penalties; for callers not yet changed."""
    fold = LeaveOneOut(*rows, sign_groups(S), intercept=intercept)
    return fold.loss_and_gradient(np.array(values))
