"""What solvers return, and what the tuning of penalties asks of one split of the rows.

Features are divided into groups, each with a penalty of its own. Today the groups are the signs of
the signature: 0 for features of positive and 1 for features of negative signature. With several
similarities the group of a feature is 2 * (number of the similarity) + (0 or 1 by its sign), so
that an odd number always means a negative signature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.factor import Factor


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
        Q = factor.solve(self.loss_gradient(Z))
        slope = -penalty * np.einsum("iq,iq->i", Q, Z)  # dF / dlog penalty
        return self.loss(Z), group_sums(slope, self.groups, len(values))


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
