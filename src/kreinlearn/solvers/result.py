"""What a solver returns, and what a fold gives to the tuning of a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Solution:
    """Coefficients of features; how they were found is data, warnings are the caller's."""

    coef: Array  # (p, q)
    n_iter: int = 0
    converged: bool = True
    singular: bool = False  # a minimum-norm solution, as the system has no other


@dataclass(frozen=True)
class Fold:
    """Least-squares terms of one split; features and targets less their training means.

    The objective is |Y - Phi z|^2 + n z' Lambda_pm z on the training part; the loss of a fold is
    F = z' G_valid z - 2 z' B_valid + yy_valid, summed over outputs.
    """

    G: Array  # (r, r) of the training part: Phi' Phi
    B: Array  # (r, q): Phi' Y
    n: float  # sum of its weights
    S: Array  # (r,), +-1
    G_valid: Array  # (r, r)
    B_valid: Array  # (r, q)
    yy_valid: Array  # (q,)
    n_valid: float = 1.0  # sum of the weights of the validation part

    def penalty(self, lambda_plus: float, lambda_minus: float) -> Array:  # (r,): n Lambda_pm
        return self.n * signed_penalty(self.S, lambda_plus, lambda_minus)

    def loss(self, Z: Array) -> float:
        quadratic = np.einsum("iq,iq->", Z, self.G_valid @ Z - 2 * self.B_valid)
        return float(quadratic + self.yy_valid.sum())

    def loss_gradient(self, Z: Array) -> Array:  # (r, q): dF/dz
        return np.asarray(2 * (self.G_valid @ Z - self.B_valid))


def signed_penalty(S: Array, lambda_plus: float, lambda_minus: float) -> Array:
    """Lambda_pm: lambda_plus on coordinates of positive signature, lambda_minus on the others."""
    return np.where(S > 0, lambda_plus, lambda_minus)
