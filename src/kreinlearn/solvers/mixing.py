"""Weights of several similarities: the loss of a fold, and its gradient in weights and penalties.

The similarity is K = sum_i w_i K_i, and f = K_v g(K) (Y - b) + b is the prediction of the
validation part, where g is the filter of Krein features (see ``solvers.exact``). A function of a
symmetric matrix K = U diag(d) U' changes with it as

    U' dg(K) U  =  G o (U' dK U),    G_ij = (g(d_i) - g(d_j)) / (d_i - d_j),  G_ii = g'(d_i),

where o is the product entry by entry. With q(t) = 1 - t g(t) the intercept is

    b = 1'q(K) Y / 1'q(K) 1,    db = 1'dq(K) (Y - b) / 1'q(K) 1,

and dq(K) follows the same rule. So the gradient in all weights costs two products of matrices
beside the decomposition, however many similarities there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kreinlearn.solvers import Array

N_PENALTIES = 2  # of the positive and of the negative part, before the weights


class Filtered(NamedTuple):
    """Functions of the eigenvalues d of a matrix at two penalties."""

    g: Array  # (n,) the filter, zero for eigenvalues that count as zero
    rest: Array  # (n,) 1 - d g
    negative: Array  # (n,) bool


class MixedFold:
    """A training and a validation part by several similarities: a ``FoldLoss``.

    Its values are both penalties, and then one weight per similarity.
    """

    def __init__(
        self, K: Sequence[Array], K_valid: Sequence[Array], Y: Array, Y_valid: Array,
        w: Array | None = None, w_valid: Array | None = None, *, rtol: float,
    ) -> None:  # fmt: skip
        n, n_valid = len(Y), len(Y_valid)
        self.root = np.ones(n) if w is None else np.sqrt(w)
        self.K = [self.root[:, None] * each * self.root for each in K]
        self.K_valid = [each * self.root for each in K_valid]
        self.shift = np.square(self.root) @ Y / np.square(self.root).sum()
        self.Y, self.Y_valid = self.root[:, None] * (Y - self.shift), Y_valid - self.shift
        self.w = (np.ones(n_valid) if w_valid is None else w_valid)[:, None]
        self.n, self.n_valid = float(np.square(self.root).sum()), float(self.w.sum())
        self.rtol = rtol

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        """Squared error of the validation part, and its gradient in the logarithms of values."""
        c, weights = self.n * values[:N_PENALTIES], values[N_PENALTIES:]
        d, U = np.linalg.eigh(mixed(self.K, weights))
        at = self._filtered(d, c)
        ones, T = U.T @ self.root, U.T @ self.Y
        below = float((at.rest * ones) @ ones)
        b = (at.rest * ones) @ T / below
        left = T - np.outer(ones, b)
        rows = mixed(self.K_valid, weights) @ U
        E = rows @ (at.g[:, None] * left) + b - self.Y_valid
        P = 2 * self.w * E
        back = rows.T @ P  # (n, q)
        by_constant = (P.sum(axis=0) - (at.g * ones) @ back) / below  # (q,)
        pull = left @ by_constant  # (n,)
        slope = -at.g * at.rest * (back * left).sum(axis=1)
        slope += at.rest * (1 - at.rest) * ones * pull
        penalties = np.array([slope[~at.negative].sum(), slope[at.negative].sum()])
        H = _differences(d, at.g, -np.square(at.g)) * (back @ left.T)
        H += _differences(d, at.rest, d * np.square(at.g) - at.g) * np.outer(ones, pull)
        inside, across = U @ H @ U.T, P @ (U @ (at.g[:, None] * left)).T
        by_weight = [
            w * float(np.vdot(K, inside) + np.vdot(K_valid, across))
            for w, K, K_valid in zip(weights, self.K, self.K_valid, strict=True)
        ]
        return float((self.w * np.square(E)).sum()), np.concatenate([penalties, by_weight])

    def _filtered(self, d: Array, c: Array) -> Filtered:
        """The filter of each eigenvalue; those up to ``rtol`` times the largest count as zero."""
        size, negative = np.abs(d), d < 0
        counts = size > self.rtol * np.max(size, initial=0.0)
        g = np.where(counts, np.sign(d) / (size + np.where(negative, c[1], c[0])), 0.0)
        return Filtered(g, 1 - d * g, negative)


def mixed(matrices: Sequence[Array], weights: Array) -> Array:
    """sum_i w_i K_i."""
    total = weights[0] * matrices[0]
    for w, K in zip(weights[1:], matrices[1:], strict=True):
        total += w * K
    return np.asarray(total)


def _differences(d: Array, values: Array, slopes: Array) -> Array:  # (n,), (n,), (n,) -> (n, n)
    """Divided differences of a function with these values and slopes at the points d."""
    gaps = d[:, None] - d
    same = np.abs(gaps) <= np.finfo(np.float64).eps ** 0.5 * np.max(np.abs(d), initial=0.0)
    means = 0.5 * (slopes[:, None] + slopes)
    rises = values[:, None] - values
    return np.where(same, means, rises / np.where(same, 1.0, gaps))
