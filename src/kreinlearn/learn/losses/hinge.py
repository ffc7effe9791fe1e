"""The squared hinge loss of a support vector machine, by a finite Newton method.

Newton's method looks at single rows and not only at sums: ``hinge_values.py`` says which kernel
values it keeps, and ``feature_rows.py`` evaluates the others again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.left_out import LeftOut, joined_by_number, left_out_of_splits
from kreinlearn.learn.losses.hinge_values import kept_values
from kreinlearn.learn.losses.machines import (
    Machines,
    MachinesLoss,
    left_out_of_machines,
    machines_of,
    tune_machines,
)
from kreinlearn.learn.search import (
    FoldLosses,
    MeanLoss,
    Tuned,
    Unknowns,
    one_penalty,
    tune,
    tune_apart,
)
from kreinlearn.learn.task import Features, FoldRows, Linear, Task, some_outputs
from kreinlearn.solvers.least_squares import Fold, in_span, ridge, scaling, signed_penalty
from kreinlearn.solvers.margins import (
    Chosen,
    DenseRows,
    Gram,
    HingeState,
    Margins,
    RowMargins,
    cancelled,
    hinge_loss,
)
from kreinlearn.solvers.squared_hinge import finite_newton, hinge_gradient, newton
from kreinlearn.sums.moments import Centred, FeatureMoments, total_moments

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded

TUNED_ROWS = 4096  # rows that the penalties of the hinge loss are tuned on
FLAT = 1e-3  # decrease of its logarithm at which a descent ends: so few rows tell no more
MAX_ITER = 200  # passes of one trial; nearly separable rows with hardly any penalty need many
STEPS = 1000  # of Newton's method, the most that a fit takes


@dataclass(frozen=True)
class SquaredHinge:
    """The loss of ``KreinSVC``: mean(max(0, 1 - y f)^2)."""

    needs_pool = True
    iterates = True
    diagonal = True

    def unknowns(self, penalties: Unknowns) -> Unknowns:
        return penalties

    def prepared(self, features: Features, encoded: Encoded, *, intercept: bool) -> Self:
        return self

    def settled(self, values: Array) -> Self:
        return self

    def keeping(self, task: Task, *, by_fold: bool, often: bool) -> Any:
        return kept_values(task, by_fold=by_fold, often=often)

    def objective(self, folds: Sequence[Fold], workers: int = 1) -> MeanLoss:
        """Least squares, by which the search begins: sums do not tell the hinge loss."""
        return MeanLoss(folds, workers)

    def criterion(self, task: Task, features: Features, *, loo: bool) -> FoldLosses:
        if features.basis is not None:
            return MachinesLoss(task)
        return hinge_objective(task, task.splits(features.map, most=TUNED_ROWS))

    def tune(self, task: Task, features: Features, unknowns: Unknowns, *, loo: bool) -> Tuned:
        """Least squares first, as it is cheap; the hinge loss from there, on rows in memory."""
        if features.basis is not None:
            return tune_machines(task, features.basis, unknowns)
        scale = features.scale(intercept=task.intercept)
        of_all = task.tuned_before(unknowns)
        if of_all is None:
            squares = self.objective(task.folds_of(features), task.pairs.workers)
            of_all = tune_apart(
                squares, scale, unknowns, first=squares.of_one_fold(task.n_weighted)
            )
        if not of_all.apart:  # what does not pay there is not looked for here
            unknowns = one_penalty(of_all.values)
        few = task.splits(features.map, most=TUNED_ROWS)
        start, growth = of_all.values, np.ones(2)
        if len(task.numbers) > TUNED_ROWS or len(task.numbers) < task.n:
            of_few = tune(
                self.objective(task.terms_of(few), task.pairs.workers), scale, unknowns,
                start=of_all.values,
            )  # fmt: skip
            start = of_few.values
            growth = np.divide(of_all.values, start, out=growth, where=start > 0)
        tuned = tune(hinge_objective(task, few), scale, unknowns, start=start, flat=FLAT)
        return replace(tuned, values=tuned.values * growth)

    def solve(self, task: Task, features: Features, values: Array, kept: Any) -> Linear:
        if features.basis is not None:
            return self._solve_machines(machines_of(task, features.basis), values)
        return self._solve_all(task, features, values, kept, total_moments(features.terms))

    def _solve_machines(self, machines: Machines, values: Array) -> Linear:
        """The model in an eigenbasis, by the solver that suits the penalties."""
        if machines.above_rounding(values):
            return machines.solve(values, STEPS)
        rows = machines.Phi, machines.Y, machines.w, machines.penalty(values)
        return self._solve_rows(*rows, machines.intercept)

    def _solve_all(
        self, task: Task, features: Features, values: Array, kept: Any, total: FeatureMoments
    ) -> Linear:
        """The model of all rows whose target is not zero, which have the sums ``total``."""
        scale, unit = scaling(total.n * signed_penalty(features.map.S, *values))
        singular = not unit.all() and self._is_singular(features, unit, intercept=task.intercept)
        margins = kept.margins(task, features, features.map.W * scale, total.n)
        gram = total.rescaled(scale).with_constant(intercept=task.intercept)
        model = self._newton(margins, unit, gram)
        return replace(model, coef=scale[:, None] * model.coef, singular=singular)

    def _is_singular(self, features: Features, penalty: Array, *, intercept: bool) -> bool:
        whole = features.whole(intercept=intercept)
        return ridge(whole.G, whole.B, whole.n * penalty).singular

    def solve_sums(self, whole: Centred, S: Array, values: Array) -> Linear:
        raise TypeError("the squared hinge looks at single rows: sums are not enough")

    def _solve_rows(
        self, Phi: Array, Y: Array, w: Array, penalty: Array, intercept: bool
    ) -> Linear:
        F, unit, back = in_span(Phi, penalty)
        if intercept:
            F = np.column_stack([F, np.ones(len(F))])
        model = self._newton(RowMargins(DenseRows(F), Y, w), unit)
        return replace(model, coef=back @ model.coef)

    def left_out(
        self, task: Task, features: Features, values: Array, kept: Any, solution: Linear
    ) -> LeftOut:
        """By machines of the folds, of all rows if their kernel values are kept in memory."""
        if features.basis is not None:
            return left_out_of_machines(task, partial(self._solve_machines, values=values))
        if kept.has_all and not task.honest and len(features.groups) > 1:
            return self._left_out_of_all(task, features, values, kept)

        def score(split: FoldRows, Y: Array, w: Array) -> Array:
            train = split.train
            penalty = w[train].sum() * signed_penalty(split.S, *values)
            rows = split.Phi[train], Y[train].astype(np.float64), w[train], penalty
            model = self._solve_rows(*rows, task.intercept)
            return np.asarray(split.Phi[split.valid] @ model.coef + model.intercept)

        return left_out_of_splits(task, task.splits(features.map), score)

    def _left_out_of_all(self, task: Task, features: Features, values: Array, kept: Any) -> LeftOut:
        terms, found = features.terms, list[LeftOut]()
        total = total_moments(terms)
        for k, part in enumerate(terms[:-1]):
            if 0 < part.n < total.n:
                one, without = kept.without_fold(task, k)
                model = self._solve_all(one, features, values, without, total.minus(part))
                found.append(kept.scores_of_fold(task, features, model, k))
        return joined_by_number(found, task.Y.shape[1])

    def _newton(self, margins: Margins, penalty: Array, gram: Any = None) -> Linear:
        r = len(penalty)
        padded = np.append(penalty, np.zeros(margins.p - r))
        solution = newton(margins, padded, gram=gram, max_iter=STEPS)
        constant = solution.coef[r] if margins.p > r else np.zeros(solution.coef.shape[1])
        return Linear(solution.coef[:r], constant, solution.n_iter, solution.converged)


def hinge_objective(task: Task, splits: list[FoldRows]) -> HingeObjective:
    """The hinge loss of splits of the sampled rows, for a few of many outputs."""
    Y, w = task.sampled_targets(splits)
    return HingeObjective(
        splits, Y[:, some_outputs(Y)], w, intercept=task.intercept, workers=task.pairs.workers
    )


class HingeFold:
    """A ``FoldLoss`` of the squared hinge loss; each trial starts from the solution of the last.

    ``rows`` are those of the training and of the validation part, whose targets are zero in the
    problem that is solved: so that folds by one map share their features. ``gram`` are the sums of
    the training part, if they are known.
    """

    def __init__(
        self, split: FoldRows, rows: DenseRows, Y: Array, w: Array, gram: Gram | None,
        *, intercept: bool,
    ) -> None:  # fmt: skip
        self.rows, self.valid, self.w, self.gram = rows, split.valid, w, gram
        self.Y = np.zeros_like(Y)
        self.Y[split.train] = Y[split.train]
        self.n_train = w[split.train].sum()
        self.Y_valid, self.w_valid = Y[split.valid], w[split.valid]
        self.n_valid = self.w_valid.sum()
        unpenalised = np.full(int(intercept), -1)  # of no group
        self.groups = np.append(split.groups, unpenalised)
        self.state: Sequence[HingeState] | None = None

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        penalty = np.where(self.groups >= 0, self.n_train * values[self.groups], 0.0)
        solution = finite_newton(
            self.rows, self.Y, self.w, penalty, self.state, gram=self.gram, max_iter=MAX_ITER
        )
        self.state, self.gram = solution.state, None  # which is not needed again
        Phi = self.rows.Phi[self.valid]
        loss, slope = hinge_loss(Phi @ solution.coef, self.Y_valid, self.w_valid)
        dF_dz = Phi.T @ slope
        return loss, hinge_gradient(solution.state, penalty, self.groups, len(values), dF_dz)


class HingeObjective(MeanLoss):
    """The squared hinge loss of all folds per unit of validated weight, and its gradient."""

    def __init__(
        self, splits: list[FoldRows], Y: Array, w: Array, *, intercept: bool, workers: int = 1
    ) -> None:
        by_map: dict[int, list[FoldRows]] = {}
        for split in splits:
            by_map.setdefault(id(split.Phi), []).append(split)
        folds = []
        for some in by_map.values():
            Phi = some[0].Phi
            rows = DenseRows(np.column_stack([Phi, np.ones((len(Phi), int(intercept)))]))
            for split, gram in zip(some, training_grams(rows, some, Y, w), strict=True):
                folds.append(HingeFold(split, rows, Y, w, gram, intercept=intercept))
        super().__init__(folds, workers)


def training_grams(
    rows: DenseRows, splits: list[FoldRows], Y: Array, w: Array
) -> Sequence[Gram | None]:
    """The sums of the training part of each split, by which Newton's method starts.

    They are those of all rows minus those of the validation part, so that each row is summed once;
    or not known, where hardly more than rounding errors would be left.
    """
    if len(splits) == 1 or not Y.all():  # outputs with rows of their own have sums of their own
        return [None] * len(splits)
    parts = [split.valid for split in splits]
    parts.append(np.setdiff1d(splits[0].train, np.concatenate(parts)))  # in every training part
    each = rows.terms([Chosen(part, w[part], Y[part]) for part in parts])
    A, b = (sum(sums) for sums in zip(*each, strict=True))
    grams = [(A - A_valid, b - b_valid) for A_valid, b_valid in each[:-1]]
    return [None if cancelled(gram[0], A) else gram for gram in grams]
