"""Variance-constrained least squares: the spread of the predictions is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.kernels.base import Array
from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.learn.search import MeanLoss, Tuned, Unknowns, one_penalty, tune, tune_apart
from kreinlearn.learn.task import Features, Linear, Task
from kreinlearn.solvers.least_squares import Fold, signed_penalty
from kreinlearn.solvers.variance import VarianceFold, bounded, variance_constrained
from kreinlearn.sums.moments import Centred

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded

CONSTANT_RTOL = 1e-12  # deviation of a target, of its size, below which it is constant


@dataclass(frozen=True)
class VarianceConstrained(SquaredError):
    """The loss of ``KreinVCRidge``: -2 mean(y f) with a given root mean square of f.

    ``radius`` is the parameter of the estimator; ``radii`` are the numbers, one per output, in the
    unit of the targets.
    """

    diagonal = False  # the spread of the predictions couples all eigenvectors

    radius: Any = "auto"
    radii: Array | None = None  # (q,)
    unit: float = 1.0  # of the targets

    def unknowns(self, penalties: Unknowns) -> Unknowns:
        factor = None if isinstance(self.radius, str) and self.radius == "tuned" else 1.0
        return replace(penalties, fixed=(*penalties.fixed, factor))

    def prepared(
        self, features: Features, encoded: Encoded, *, intercept: bool
    ) -> VarianceConstrained:
        whole, unit = features.whole(intercept=intercept), encoded.unit
        shift = encoded.shift / unit
        deviation = np.sqrt(np.maximum(whole.yy, 0) / whole.n)
        size = np.sqrt(np.maximum(whole.yy / whole.n, 0) + (whole.ybar + shift) ** 2)
        constant = deviation <= CONSTANT_RTOL * size
        if constant.any() and not encoded.multilabel:
            raise ValueError(
                f"the target is constant (n_samples={whole.n:g}): the variance constraint is "
                "undefined; drop that output, or use KreinRidge"
            )
        radii = deviation
        if not isinstance(self.radius, str):
            radii = self._given_radii(len(deviation)) / unit
        radii = np.where(constant, 0.0, radii)  # a label that all objects have, or none
        return replace(self, radii=radii, unit=unit)

    def _given_radii(self, q: int) -> Array:
        given = np.asarray(self.radius, dtype=np.float64)
        if given.shape not in ((), (1,), (q,)):
            raise ValueError(
                f"radius={self.radius!r} has shape {given.shape}; pass a number, or one for each "
                f"of {q} outputs"
            )
        radii = np.broadcast_to(given, (q,))
        if not (radii > 0).all() or not np.isfinite(radii).all():
            raise ValueError(f"radius={self.radius!r} must be positive and finite")
        return radii.copy()

    def settled(self, values: Array) -> VarianceConstrained:
        assert self.radii is not None
        return replace(self, radii=self.radii * values[2])

    def objective(self, folds: Sequence[Fold], workers: int = 1) -> MeanLoss:
        assert self.radii is not None
        return MeanLoss([VarianceFold(fold, self.radii) for fold in folds], workers)

    def criterion(self, task: Task, features: Features, *, loo: bool) -> MeanLoss:
        return self.objective(task.folds_of(features), task.pairs.workers)

    def tune(self, task: Task, features: Features, unknowns: Unknowns, *, loo: bool) -> Tuned:
        """From the penalties of least squares, which are cheap to find, on to its own."""
        if loo and not task.honest:
            raise ValueError(
                'cv="loo" with a variance constraint needs landmarks that are more than half of '
                "the objects; pass cv=5, or landmarks=None for all objects"
            )
        scale = features.scale(intercept=task.intercept)
        folds = task.folds_of(features)
        if not unknowns.penalties:  # only the radius
            return tune(self.objective(folds, task.pairs.workers), scale, unknowns)
        first = Unknowns(unknowns.fixed[:2], unknowns.equal)
        start = None if loo else task.tuned_before(first)
        if start is None:
            squares = MeanLoss(folds, task.pairs.workers)
            start = tune_apart(squares, scale, first, first=squares.of_one_fold(task.n_weighted))
        if not start.apart:
            first = one_penalty(start.values)
        unknowns = Unknowns((*first.fixed, *unknowns.fixed[2:]), first.equal)
        begin = np.append(start.values, 1.0)
        return tune(self.objective(folds, task.pairs.workers), scale, unknowns, start=begin)

    def solve_sums(self, whole: Centred, S: Array, values: Array) -> Linear:
        assert self.radii is not None
        penalty = bounded(whole.n * signed_penalty(S, *values[:2]), np.diagonal(whole.G))
        solution = variance_constrained(whole.G, whole.B, penalty, self.radii * np.sqrt(whole.n))
        if not solution.converged and len(S):
            warn("the variance constraint cannot be met: the features do not vary")
        constant = whole.intercept(solution.coef)
        return Linear(
            solution.coef, constant, singular=solution.singular,
            attributes={"radius_": self.radii * self.unit},
        )  # fmt: skip
