"""Ridge regression from (r, r) moments or from rows: one factorisation for all targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve, eigh

from kreinlearn._native import cholesky
from kreinlearn.solvers import Array


def ridge(G: Array, B: Array, penalty: Array) -> Solution:
    """argmin |Y - Phi z|^2 + z' diag(penalty) z, from G = Phi'Phi and B = Phi'Y."""
    factor = Factor(G, penalty)
    return Solution(factor.solve(B), singular=factor.singular)


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
        root = np.sqrt(w)[:, None]
        if intercept:
            Phi, Y = Phi - w @ Phi / self.n, Y - w @ Y / self.n
        self.F, self.T = root * Phi, root * Y
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


SINGULAR_RTOL = 1e-15  # times the number of rows: pivots relative to the diagonal, eigenvalues
# relative to the largest, that count as zero


class Factor:
    """The factored matrix G + diag(penalty).

    If a penalty of zero leaves the matrix without an inverse, ``singular`` is set. In that case,
    and where rounding defeats the Cholesky factorisation, ``solve`` returns the solution of
    smallest norm.
    """

    def __init__(self, G: Array, penalty: Array) -> None:
        unpenalised = bool((penalty == 0).any())
        factored = self._cholesky(G, penalty, check=unpenalised)
        self.singular = unpenalised and not factored
        self._root = None if factored else _inverse_root(G + np.diag(penalty))

    def _cholesky(self, G: Array, penalty: Array, check: bool) -> bool:
        """Factor the sum, and say if that succeeded; ``check`` refuses pivots that are rounding."""
        A = np.array(G, dtype=np.float64, order="C")
        np.fill_diagonal(A, diagonal := np.diagonal(G) + penalty)
        try:
            self._factor = cholesky(A)
        except np.linalg.LinAlgError:
            return False
        pivots = np.square(np.diagonal(self._factor)) / diagonal
        return not check or bool(np.min(pivots, initial=1.0) > len(A) * SINGULAR_RTOL)

    def solve(self, B: Array) -> Array:  # (r, q) -> (r, q)
        """The solution Z of (G + diag(penalty)) Z = B."""
        if not B.size:  # older versions of scipy refuse it
            return np.zeros_like(B)
        if self._root is not None:
            return np.asarray(self._root @ (self._root.T @ B))
        return np.asarray(cho_solve((self._factor, True), B, check_finite=False))


def _inverse_root(A: Array) -> Array:
    """The matrix R for which R R' is the pseudo-inverse of a positive semi-definite A."""
    D, U = eigh(A, driver="evd", check_finite=False)
    rounding = len(D) * SINGULAR_RTOL * np.max(np.abs(D), initial=0.0)
    positive = rounding < D
    return np.asarray(U[:, positive] / np.sqrt(D[positive]))


@dataclass(frozen=True)
class Solution:
    """Coefficients of the features, and how the solver arrived at them; callers give warnings."""

    coef: Array  # (p, q)
    n_iter: int = 0
    converged: bool = True
    singular: bool = False  # the system has many solutions, and this one has the smallest norm


class FoldLoss(Protocol):
    """One split of the rows into a training and a validation part, as tuning sees it.

    How the loss is found is left to the implementation: ``Fold`` factors an (r, r) matrix for each
    trial, and an exact feature map may do without.
    """

    @property
    def n_valid(self) -> float:
        """Sum of the weights of the validation part."""

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        """Loss of the validation part, and its gradient in the logarithms of ``values``.

        ``values`` (p,) has one penalty per group of features, and then whatever else is tuned.
        """


@dataclass(frozen=True)
class Fold:
    """Moments of one split for least squares; features and targets are centred by training means.

    The training part gives z = argmin |Y - Phi z|^2 + n z' diag(values[groups]) z. The loss is the
    squared error of the validation part, F = z' G_valid z - 2 z' B_valid + yy_valid, summed over
    targets.
    """

    G: Array  # (r, r): Phi' Phi of the training part
    B: Array  # (r, q): Phi' Y of the training part
    n: float  # sum of the weights of the training part
    S: Array  # (r,), +-1
    G_valid: Array  # (r, r)
    B_valid: Array  # (r, q)
    yy_valid: Array  # (q,)
    n_valid: float = 1.0  # sum of the weights of the validation part
    groups: Array = field(default_factory=lambda: np.empty(0, int))  # (r,); by default sign_groups

    def __post_init__(self) -> None:
        if not len(self.groups):
            object.__setattr__(self, "groups", sign_groups(self.S))

    def penalty(self, values: Array) -> Array:  # (p,) -> (r,)
        """The penalty of each feature from one penalty per group."""
        return np.asarray(self.n * values[self.groups])

    def loss(self, Z: Array) -> float:
        """The loss F of coefficients Z (r, q)."""
        quadratic = np.einsum("iq,iq->", Z, self.G_valid @ Z - 2 * self.B_valid)
        return float(quadratic + self.yy_valid.sum())

    def loss_gradient(self, Z: Array) -> Array:  # (r, q): dF/dz
        return np.asarray(2 * (self.G_valid @ Z - self.B_valid))

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        """The loss of ridge regression, and its gradient in log penalty, one entry per group."""
        penalty = self.penalty(values)
        factor = Factor(self.G, penalty)
        Z = factor.solve(self.B)
        dF = self.loss_gradient(Z)
        slope = -penalty * np.einsum("iq,iq->i", factor.solve(dF), Z)  # dF / dlog penalty
        F = np.einsum("iq,iq->", Z, 0.5 * dF - self.B_valid) + self.yy_valid.sum()
        return float(F), group_sums(slope, self.groups, len(values))


def sign_groups(S: Array) -> Array:  # (r,) -> (r,)
    """The group of each feature by its sign: 0 for positive and 1 for negative signature."""
    return np.where(S > 0, 0, 1)


def group_sums(terms: Array, groups: Array, n_groups: int) -> Array:  # (r,), (r,) -> (n_groups,)
    """Sum of the terms of each group; features of group -1 have no penalty and are left out.

    Each sum is pairwise, which rounds less than the running sums of ``np.bincount``.
    """
    return np.array([terms[groups == group].sum() for group in range(n_groups)])


def signed_penalty(S: Array, lambda_plus: float, lambda_minus: float) -> Array:  # (r,) -> (r,)
    """One penalty per feature: ``lambda_plus`` where S is positive, ``lambda_minus`` elsewhere."""
    return np.where(S > 0, lambda_plus, lambda_minus)


def scaling(penalty: Array) -> tuple[Array, Array]:  # (r,) -> (r,), (r,)
    """Factors of the features that turn every positive penalty into 1, and these penalties."""
    positive = penalty > 0
    scale = 1 / np.sqrt(np.where(positive, penalty, 1.0))
    return scale, positive.astype(np.float64)


def in_span(Phi: Array, penalty: Array) -> tuple[Array, Array, Array]:
    """An equivalent problem with as few features as possible.

    Returns features F (n, p), their penalties, each 1 or 0, and the way back (r, p): coefficients
    v of F are coefficients ``back @ v`` of Phi.
    """
    scale, unit = scaling(penalty)
    F = Phi * scale
    if len(F) >= F.shape[1] or not unit.all():
        return F, unit, np.diag(scale)
    D, U = np.linalg.eigh(F @ F.T)
    first = np.searchsorted(D, len(D) * np.finfo(np.float64).eps * D[-1], "right")
    U, root = U[:, first:], np.sqrt(D[first:])
    return U * root, np.ones(len(root)), scale[:, None] * (F.T @ (U / root))
