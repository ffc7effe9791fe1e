"""Cross-validated squared hinge loss, differentiated through the solutions of the folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.learn.folds import FoldRows
from kreinlearn.solvers.margins import DenseRows, HingeState, hinge_loss
from kreinlearn.solvers.result import signed_penalty
from kreinlearn.solvers.squared_hinge import finite_newton, hinge_gradient

Array = NDArray[Any]

MAX_ITER = 200  # of a trial: nearly separable rows with hardly any penalty need many


class HingeFold:
    """One split: a penalty's solution starts from that of the one before."""

    def __init__(self, split: FoldRows, Y: Array, w: Array, intercept: bool) -> None:
        def rows(places: Array) -> Array:
            Phi = split.Phi[places]
            return np.column_stack([Phi, np.ones(len(Phi))]) if intercept else Phi

        self.train, self.valid = DenseRows(rows(split.train)), rows(split.valid)
        self.Y, self.w = Y[split.train], w[split.train]
        self.Y_valid, self.w_valid = Y[split.valid], w[split.valid]
        ends = np.zeros(int(intercept), dtype=bool)
        self.plus, self.minus = np.append(split.S > 0, ends), np.append(split.S < 0, ends)
        self.S = split.S
        self.state: Sequence[HingeState] | None = None

    def loss(self, lambda_plus: float, lambda_minus: float) -> tuple[float, Array]:
        penalty = np.zeros(self.train.p)
        penalty[: len(self.S)] = self.w.sum() * signed_penalty(self.S, lambda_plus, lambda_minus)
        solution = finite_newton(self.train, self.Y, self.w, penalty, self.state, max_iter=MAX_ITER)
        self.state = solution.state
        loss, slope = hinge_loss(self.valid @ solution.coef, self.Y_valid, self.w_valid)
        gradient = self.valid.T @ slope
        return loss, hinge_gradient(solution.state, penalty, self.plus, self.minus, gradient)


class HingeObjective:
    """The loss a unit of validated weight, and its gradient in log lambda."""

    def __init__(self, splits: list[FoldRows], Y: Array, w: Array, *, intercept: bool) -> None:
        self.folds = [HingeFold(split, Y, w, intercept) for split in splits]
        self.weight = sum(fold.w_valid.sum() for fold in self.folds)

    def __call__(self, values: Array) -> tuple[float, Array]:
        losses, gradients = zip(*(fold.loss(*values[:2]) for fold in self.folds), strict=True)
        return sum(losses) / self.weight, np.sum(gradients, axis=0) / self.weight
