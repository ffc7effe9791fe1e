"""The squared hinge loss of a support vector machine, by a finite Newton method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.feature_rows import ROW_NUMBERS, ValuesHere, with_constant
from kreinlearn.learn.folds import FoldRows
from kreinlearn.learn.losses.machines import machines_of, tune_machines
from kreinlearn.learn.search import (
    FoldLosses,
    MeanLoss,
    Tuned,
    Unknowns,
    one_penalty,
    tune,
    tune_apart,
)
from kreinlearn.learn.task import Features, Linear, Task, some_outputs
from kreinlearn.solvers.least_squares import Fold, in_span, ridge, scaling, signed_penalty
from kreinlearn.solvers.margins import DenseRows, HingeState, Margins, RowMargins, hinge_loss
from kreinlearn.solvers.squared_hinge import finite_newton, hinge_gradient, newton
from kreinlearn.sums.moments import Centred, total_moments

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded

TUNED_ROWS = 4096  # rows that the penalties of the hinge loss are tuned on


@dataclass(frozen=True)
class SquaredHinge:
    """The loss of ``KreinSVC``: mean(max(0, 1 - y f)^2)."""

    max_iter: int = 1000
    needs_pool = True
    iterates = True
    diagonal = True

    def unknowns(self, penalties: Unknowns) -> Unknowns:
        return penalties

    def prepared(self, features: Features, encoded: Encoded, *, intercept: bool) -> Self:
        return self

    def settled(self, values: Array) -> Self:
        return self

    def keeping(self, task: Task, *, by_fold: bool) -> Any:
        """Kernel values of all rows are kept where the budget has room for them."""
        n, m, q = task.n, len(task.sample.landmarks), task.Y.shape[1]
        n_bytes, session = 8 * n * (m + ROW_NUMBERS * q), task.pairs.session
        kept = task.rows.value_store(n_bytes, session)
        if kept is None:
            kept = ValuesHere.for_rows(n, m, n_bytes, session.budget)
        return kept.before(task, by_fold=by_fold)

    def objective(self, folds: Sequence[Fold]) -> MeanLoss:
        """Least squares, by which the search begins: sums do not tell the hinge loss."""
        return MeanLoss(folds)

    def criterion(self, task: Task, features: Features, *, loo: bool) -> FoldLosses:
        few = task.thinned_splits(task.splits(features.map), TUNED_ROWS)
        return hinge_objective(task, few)

    def tune(self, task: Task, features: Features, unknowns: Unknowns, *, loo: bool) -> Tuned:
        """Least squares first, as it is cheap; the hinge loss from there, on rows in memory."""
        if features.basis is not None:
            return tune_machines(task, features.basis, unknowns)
        scale = features.scale(intercept=task.intercept)
        of_all = task.tuned_before(unknowns)
        if of_all is None:
            of_all = tune_apart(self.objective(task.folds_of(features)), scale, unknowns)
        if not of_all.apart:  # what does not pay there is not looked for here
            unknowns = one_penalty(of_all.values)
        splits = task.splits(features.map)
        few = task.thinned_splits(splits, TUNED_ROWS)
        start, growth = of_all.values, np.ones(2)
        if few is not splits or len(task.numbers) < task.n:
            of_few = tune(self.objective(task.terms_of(few)), scale, unknowns)
            start = of_few.values
            growth = np.divide(of_all.values, start, out=growth, where=start > 0)
        tuned = tune(hinge_objective(task, few), scale, unknowns, start=start)
        return replace(tuned, values=tuned.values * growth)

    def solve(self, task: Task, features: Features, values: Array, kept: Any) -> Linear:
        if features.basis is not None:
            machines = machines_of(task, features.basis)
            if machines.above_rounding(values):
                return machines.solve(values, self.max_iter)
            rows = machines.Phi, machines.Y, machines.w, machines.penalty(values)
            return self.solve_rows(*rows, task.intercept)
        total = total_moments(features.terms)
        scale, unit = scaling(total.n * signed_penalty(features.map.S, *values))
        singular = not unit.all() and self._is_singular(features, unit, intercept=task.intercept)
        margins = kept.margins(task, features, features.map.W * scale, total.n)
        gram = with_constant(total.rescaled(scale), task.intercept)
        model = self._newton(margins, unit, gram)
        return replace(model, coef=scale[:, None] * model.coef, singular=singular)

    def _is_singular(self, features: Features, penalty: Array, *, intercept: bool) -> bool:
        whole = features.whole(intercept=intercept)
        return ridge(whole.G, whole.B, whole.n * penalty).singular

    def solve_sums(self, whole: Centred, S: Array, values: Array) -> Linear:
        raise TypeError("the squared hinge looks at single rows: sums are not enough")

    def solve_rows(self, Phi: Array, Y: Array, w: Array, penalty: Array, intercept: bool) -> Linear:
        F, unit, back = in_span(Phi, penalty)
        if intercept:
            F = np.column_stack([F, np.ones(len(F))])
        model = self._newton(RowMargins(DenseRows(F), Y, w), unit)
        return replace(model, coef=back @ model.coef)

    def _newton(self, margins: Margins, penalty: Array, gram: Any = None) -> Linear:
        r = len(penalty)
        padded = np.append(penalty, np.zeros(margins.p - r))
        solution = newton(margins, padded, gram=gram, max_iter=self.max_iter)
        constant = solution.coef[r] if margins.p > r else np.zeros(solution.coef.shape[1])
        return Linear(solution.coef[:r], constant, solution.n_iter, solution.converged)


def hinge_objective(task: Task, splits: list[FoldRows]) -> HingeObjective:
    """The hinge loss of splits of the sampled rows, for a few of many outputs."""
    Y, w = task.sampled_targets()
    return HingeObjective(splits, Y[:, some_outputs(Y)], w, intercept=task.intercept)


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
