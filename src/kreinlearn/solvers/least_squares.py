"""Ridge regression from m x m terms: one factorisation for all outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from kreinlearn.solvers.result import Fold, Solution, signed_penalty

Array = NDArray[Any]

SINGULAR_RTOL = 1e-15  # a row: what is left of a diagonal entry, of the largest eigenvalue


class Factor:
    """G + diag(penalty), factored; ``singular`` if a zero penalty leaves it without an inverse.

    Then, or where rounding defeats Cholesky, the solution of smallest norm is the one returned.
    """

    def __init__(self, G: Array, penalty: Array) -> None:
        A = G + np.diag(penalty)
        free = bool((penalty == 0).any())
        factored = self._cholesky(A, check=free)
        self.singular = free and not factored
        self._root = None if factored else _inverse_root(A)

    def _cholesky(self, A: Array, check: bool) -> bool:
        try:
            self._factor = cho_factor(A, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        left = np.square(np.diagonal(self._factor[0])) / np.diagonal(A)
        return not check or bool(np.min(left, initial=1.0) > len(A) * SINGULAR_RTOL)

    def solve(self, B: Array) -> Array:
        if self._root is not None:
            return np.asarray(self._root @ (self._root.T @ B))
        return np.asarray(cho_solve(self._factor, B, check_finite=False))


def _inverse_root(A: Array) -> Array:
    """R with R R' the pseudo-inverse of a positive semi-definite A."""
    D, U = eigh(A, driver="evd", check_finite=False)
    rounding = len(D) * SINGULAR_RTOL * np.max(np.abs(D), initial=0.0)
    keep = rounding < D
    return np.asarray(U[:, keep] / np.sqrt(D[keep]))


def ridge(G: Array, B: Array, penalty: Array) -> Solution:
    """argmin |Y - Phi z|^2 + z' diag(penalty) z, from G = Phi'Phi and B = Phi'Y."""
    factor = Factor(G, penalty)
    return Solution(factor.solve(B), singular=factor.singular)


def ridge_rows(
    Phi: Array, Y: Array, w: Array, penalty: Array, *, intercept: bool = True
) -> tuple[Array, Array]:
    """Coefficients (r, q) and intercept (q,) from few rows: the dual, n x n, where n < r.

    The intercept is not penalised; every penalty is positive.
    """
    n, r = Phi.shape
    mean, ybar = w @ Phi / w.sum(), w @ Y / w.sum()
    if not intercept:
        mean, ybar = np.zeros_like(mean), np.zeros_like(ybar)
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
    rows: tuple[Array, Array, Array, Array], S: Array, intercept: bool,
    lambda_plus: float, lambda_minus: float,
) -> tuple[float, Array]:  # fmt: skip
    """Sum of weighted squared leave-one-out errors, and its gradient (2,) in log lambda.

    rows: Phi, Y, weights, and which are tested; leaving one out leaves the penalty as it is.
    """
    Phi, Y, w, tested = rows
    n = w.sum()
    penalty = n * signed_penalty(S, lambda_plus, lambda_minus)
    mean, ybar = (w @ Phi / n, w @ Y / n) if intercept else (0.0, 0.0)
    root = np.sqrt(w)[:, None]
    F, T = root * (Phi - mean), root * (Y - ybar)
    factor = Factor(F.T @ F, penalty)
    Z, H = factor.solve(F.T @ T), factor.solve(F.T)  # (r, q), (r, n)
    rest = 1 - np.einsum("ni,in->n", F, H) - (w / n if intercept else 0.0)
    E = tested[:, None] * (T - F @ Z) / rest[:, None]
    Q = factor.solve(F.T @ (2 * E / rest[:, None]))  # (r, q)
    # de_i = (F_i A^-1 dP z + e_i dh_i) / (1 - h_i),  dh_i = - sum_j dP_j H_ji^2
    leverage = 2 * np.square(H) @ (np.square(E).sum(axis=1) / rest)
    slope = penalty * (np.einsum("iq,iq->i", Q, Z) - leverage)
    plus = S > 0
    return float(np.square(E).sum()), np.array([slope[plus].sum(), slope[~plus].sum()])
