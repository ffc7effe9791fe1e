"""Ridge regression from m x m terms: one factorisation for all outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from kreinlearn.solvers.result import Fold, Solution

Array = NDArray[Any]

SINGULAR_RTOL = 1e-15  # pivots and eigenvalues that are rounding, of the largest, a row


class Factor:
    """G + diag(penalty), factored; if it is singular the smallest solution is the one returned."""

    def __init__(self, G: Array, penalty: Array) -> None:
        A = G + np.diag(penalty)
        self.singular = not self._cholesky(A)
        if self.singular:
            D, U = eigh(A, driver="evd", check_finite=False)
            keep = D > len(D) * SINGULAR_RTOL * np.max(np.abs(D), initial=0.0)
            self._root = U[:, keep] / np.sqrt(D[keep])

    def _cholesky(self, A: Array) -> bool:
        try:
            self._factor = cho_factor(A, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        pivots = np.diagonal(self._factor[0])
        largest = np.max(pivots, initial=0.0)
        return bool(np.min(pivots, initial=np.inf) ** 2 > len(A) * SINGULAR_RTOL * largest**2)

    def solve(self, B: Array) -> Array:
        if self.singular:
            return np.asarray(self._root @ (self._root.T @ B))
        return np.asarray(cho_solve(self._factor, B, check_finite=False))


def ridge(G: Array, B: Array, penalty: Array) -> Solution:
    """argmin |Y - Phi z|^2 + z' diag(penalty) z, from G = Phi'Phi and B = Phi'Y."""
    factor = Factor(G, penalty)
    return Solution(factor.solve(B), singular=factor.singular)


def ridge_rows(Phi: Array, Y: Array, w: Array, penalty: Array) -> tuple[Array, Array]:
    """Coefficients (r, q) and intercept (q,) from few rows: the dual, n x n, where n < r.

    The intercept is not penalised; every penalty is positive.
    """
    n, r = Phi.shape
    mean, ybar = w @ Phi / w.sum(), w @ Y / w.sum()
    F, root = Phi - mean, np.sqrt(w)[:, None]
    F, T = root * F, root * (Y - ybar)
    if n < r:
        dual = Factor((F / penalty) @ F.T, np.ones(n))
        Z = (F / penalty).T @ dual.solve(T)
    else:
        Z = Factor(F.T @ F, penalty).solve(F.T @ T)
    return Z, ybar - mean @ Z


def ridge_fold(fold: Fold, lambda_plus: float, lambda_minus: float) -> tuple[float, Array]:
    """Loss of a fold and its gradient (2,) in log lambda."""
    penalty = fold.penalty(lambda_plus, lambda_minus)
    factor = Factor(fold.G, penalty)
    Z = factor.solve(fold.B)
    Q = factor.solve(fold.loss_gradient(Z))
    slope = -penalty * np.einsum("iq,iq->i", Q, Z)  # dF / dlog penalty
    plus = fold.S > 0
    return fold.loss(Z), np.array([slope[plus].sum(), slope[~plus].sum()])


def leave_one_out(
    Phi: Array, Y: Array, w: Array, S: Array, lambda_plus: float, lambda_minus: float,
    intercept: bool,
) -> tuple[float, Array]:  # fmt: skip
    """Sum of weighted squared leave-one-out errors, and its gradient (2,) in log lambda.

    Rows weigh w in the fit and in the loss; a row left out leaves the penalty n Lambda as it is.
    """
    n = w.sum()
    penalty = n * np.where(S > 0, lambda_plus, lambda_minus)
    mean, ybar = (w @ Phi / n, w @ Y / n) if intercept else (0.0, 0.0)
    root = np.sqrt(w)[:, None]
    F, T = root * (Phi - mean), root * (Y - ybar)
    factor = Factor(F.T @ F, penalty)
    Z, H = factor.solve(F.T @ T), factor.solve(F.T)  # (r, q), (r, n)
    h = np.einsum("ni,in->n", F, H) + (w / n if intercept else 0.0)
    rest = 1 - h
    E = (T - F @ Z) / rest[:, None]
    Q = factor.solve(F.T @ (2 * E / rest[:, None]))  # (r, q)
    # de_i = (F_i A^-1 dP z + e_i dh_i) / (1 - h_i),  dh_i = - sum_j dP_j H_ji^2
    slope = penalty * (np.einsum("iq,iq->i", Q, Z) - 2 * np.square(H) @ ((E**2).sum(axis=1) / rest))
    plus = S > 0
    return float((E**2).sum()), np.array([slope[plus].sum(), slope[~plus].sum()])
