"""Solves positive semi-definite systems, singular ones included."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from kreinlearn.solvers import Array

SINGULAR_RTOL = 1e-15  # times the number of rows: pivots relative to the diagonal, eigenvalues
# relative to the largest, that count as zero


class Factor:
    """The factored matrix G + diag(penalty).

    If a penalty of zero leaves the matrix without an inverse, ``singular`` is set. In that case,
    and where rounding defeats the Cholesky factorisation, ``solve`` returns the solution of
    smallest norm.
    """

    def __init__(self, G: Array, penalty: Array) -> None:
        A = G + np.diag(penalty)
        unpenalised = bool((penalty == 0).any())
        factored = self._cholesky(A, check=unpenalised)
        self.singular = unpenalised and not factored
        self._root = None if factored else _inverse_root(A)

    def _cholesky(self, A: Array, check: bool) -> bool:
        """Factor A, and say whether that succeeded; ``check`` refuses pivots that are rounding."""
        try:
            self._factor = cho_factor(A, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        pivots = np.square(np.diagonal(self._factor[0])) / np.diagonal(A)
        return not check or bool(np.min(pivots, initial=1.0) > len(A) * SINGULAR_RTOL)

    def solve(self, B: Array) -> Array:  # (r, q) -> (r, q)
        """The solution Z of (G + diag(penalty)) Z = B."""
        if self._root is not None:
            return np.asarray(self._root @ (self._root.T @ B))
        return np.asarray(cho_solve(self._factor, B, check_finite=False))


def _inverse_root(A: Array) -> Array:
    """The matrix R for which R R' is the pseudo-inverse of a positive semi-definite A."""
    D, U = eigh(A, driver="evd", check_finite=False)
    rounding = len(D) * SINGULAR_RTOL * np.max(np.abs(D), initial=0.0)
    positive = rounding < D
    return np.asarray(U[:, positive] / np.sqrt(D[positive]))
