"""Least squares: mean squared error plus lambda_plus |f_+|^2 + lambda_minus |f_-|^2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.comparison import RoundsLoss
from kreinlearn.learn.exact import solve_exact, tune_exactly, tuning_loss
from kreinlearn.learn.left_out import (
    LeftOut,
    joined_by_number,
    left_out_of_splits,
    with_few_folds,
)
from kreinlearn.learn.search import FoldLosses, MeanLoss, Tuned, Unknowns, tune, tune_apart
from kreinlearn.learn.task import Features, FoldRows, Linear, Task
from kreinlearn.solvers.least_squares import Fold, ridge, signed_penalty
from kreinlearn.sums.moments import Centred, FeatureMoments, total_moments

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded


@dataclass(frozen=True)
class SquaredError:
    """The loss of ``KreinRidge``; it needs no more of the rows than sums."""

    needs_pool = False
    iterates = False
    diagonal = True

    def unknowns(self, penalties: Unknowns) -> Unknowns:
        return penalties

    def keeping(self, task: Task, *, by_fold: bool, often: bool) -> Any:
        return None

    def prepared(self, features: Features, encoded: Encoded, *, intercept: bool) -> Self:
        return self

    def settled(self, values: Array) -> Self:
        return self

    def objective(self, folds: Sequence[Fold], workers: int = 1) -> MeanLoss:
        return MeanLoss(folds, workers)

    def criterion(self, task: Task, features: Features, *, loo: bool) -> FoldLosses:
        if features.basis is not None:
            return task.tuning or tuning_loss(task, features.basis)
        if loo and not task.honest:
            return task.leave_one_out(features)
        return self.objective(task.folds_of(features), task.pairs.workers)

    def tune(self, task: Task, features: Features, unknowns: Unknowns, *, loo: bool) -> Tuned:
        before = None if loo and features.basis is None else task.tuned_before(unknowns)
        if before is not None:
            return before
        scale = features.scale(intercept=task.intercept)
        if features.basis is not None:
            return tune_exactly(task, features.basis, unknowns).tuned
        loss = self.criterion(task, features, loo=loo)
        if loo and not task.honest:
            return tune(loss, scale, unknowns)
        first = loss.of_one_fold(task.n_weighted) if isinstance(loss, MeanLoss) else None
        return tune_apart(loss, scale, unknowns, first=first)

    def solve(self, task: Task, features: Features, values: Array, kept: Any) -> Linear:
        if features.basis is not None:
            return solve_exact(task, features.basis, values)
        return self.solve_sums(features.whole(intercept=task.intercept), features.map.S, values)

    def solve_sums(self, whole: Centred, S: Array, values: Array) -> Linear:
        solution = ridge(whole.G, whole.B, whole.n * signed_penalty(S, *values[:2]))
        constant = whole.intercept(solution.coef)
        return Linear(solution.coef, constant, singular=solution.singular)

    def left_out(
        self, task: Task, features: Features, values: Array, kept: Any, solution: Linear
    ) -> LeftOut:
        if features.basis is not None:
            loss, landmarks = (
                task.tuning or tuning_loss(task, features.basis),
                task.sample.landmarks,
            )
            tested = loss.numbers if isinstance(loss, RoundsLoss) else np.arange(len(landmarks))
            return LeftOut(landmarks[tested], loss.scores(values))
        if task.honest or len(features.groups) <= 1:  # there are no sums of folds
            splits = with_few_folds(task).splits(features.map)
            score = partial(self._scores_of_split, values=values, intercept=task.intercept)
            return left_out_of_splits(task, splits, score)
        return self._left_out_of_sums(task, features, values)

    def _scores_of_split(
        self, split: FoldRows, Y: Array, w: Array, values: Array, intercept: bool
    ) -> Array:
        """Scores of the validation part by a model of the training part."""
        Phi, train = split.Phi, split.train
        if intercept:  # about a mean: large features would lose digits
            Phi = Phi - Phi[train].mean(axis=0)
        part = FeatureMoments.of_rows(Phi[train], Y[train], w[train]).centred(intercept=intercept)
        model = self.solve_sums(part, split.S, values)
        return np.asarray(Phi[split.valid] @ model.coef + model.intercept)

    def _left_out_of_sums(self, task: Task, features: Features, values: Array) -> LeftOut:
        """Models of all rows but those of a fold, from sums; scores of rows in the sample."""
        Phi, folds, terms = (
            task.sampled_features(features.map), task.folds[task.numbers], features.terms
        )  # fmt: skip
        total, q = total_moments(terms), task.Y.shape[1]
        found = list[LeftOut]()
        for k, part in enumerate(terms[:-1]):
            here = np.flatnonzero(folds == k)
            if len(here) and part.n < total.n:
                train = total.minus(part).centred(intercept=task.intercept)
                model = self.solve_sums(train, features.map.S, values)
                scores = Phi[here] @ model.coef + model.intercept
                found.append(LeftOut(task.numbers[here], scores))
        return joined_by_number(found, q)
