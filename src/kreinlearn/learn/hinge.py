"""Cross-validated squared hinge loss, differentiated through the solutions of the folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kreinlearn.learn.folds import FoldRows
from kreinlearn.learn.search import MeanLoss
from kreinlearn.solvers import Array
from kreinlearn.solvers.margins import DenseRows, HingeState, hinge_loss
from kreinlearn.solvers.squared_hinge import finite_newton, hinge_gradient

MAX_ITER = 200  # passes of one trial; nearly separable rows with hardly any penalty need many


class HingeFold:
    """A ``FoldLoss`` of the squared hinge loss; each trial starts from the solution of the last."""

    def __init__(self, split: FoldRows, Y: Array, w: Array, intercept: bool) -> None:
        def rows(places: Array) -> Array:
            Phi = split.Phi[places]
            return np.column_stack([Phi, np.ones(len(Phi))]) if intercept else Phi

        self.train, self.valid = DenseRows(rows(split.train)), rows(split.valid)
        self.Y, self.w = Y[split.train], w[split.train]
        self.Y_valid, self.w_valid = Y[split.valid], w[split.valid]
        self.n_valid = self.w_valid.sum()
        self.groups = np.append(split.groups, [-1] * intercept).astype(
            int
        )  # of no group: no penalty
        self.state: Sequence[HingeState] | None = None

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        penalty = np.where(self.groups >= 0, self.w.sum() * values[self.groups], 0.0)
        solution = finite_newton(self.train, self.Y, self.w, penalty, self.state, max_iter=MAX_ITER)
        self.state = solution.state
        loss, slope = hinge_loss(self.valid @ solution.coef, self.Y_valid, self.w_valid)
        dF_dz = self.valid.T @ slope
        return loss, hinge_gradient(solution.state, penalty, self.groups, len(values), dF_dz)


class HingeObjective(MeanLoss):
    """The squared hinge loss of all folds per unit of validated weight, and its gradient."""

    def __init__(self, splits: list[FoldRows], Y: Array, w: Array, *, intercept: bool) -> None:
        super().__init__([HingeFold(split, Y, w, intercept) for split in splits])
