"""The squared hinge loss if all objects are landmarks: in the eigenbasis, from least squares on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.exact import (
    by_folds,
    chosen_numbers,
    comparison_of,
    has_folds,
    spread_out,
    terms_of,
    tune_exactly,
)
from kreinlearn.learn.left_out import LeftOut
from kreinlearn.learn.search import TIE_RTOL, Tuned, Unknowns, tune
from kreinlearn.learn.task import Linear, Task, some_outputs, weighted
from kreinlearn.solvers.exact import Eigenbasis, ExactFold, Projected
from kreinlearn.solvers.kernel_hinge import kernel_machines
from kreinlearn.solvers.margins import hinge_loss
from kreinlearn.sums.moments import Targets

PART = (
    700  # objects on which the penalties of the hinge loss are compared to those of least squares
)
FACTORS = 10.0 ** np.arange(1.0, -2.1, -0.5)  # of the penalties of least squares, the largest first
ROUNDING = 1e-14  # of the largest |eigenvalue|: smaller penalties ask for another solver


def machines_of(task: Task, basis: Eigenbasis) -> Machines:
    """Machines of all objects."""
    Y, w = weighted(*Targets(task.Y, task.weights).of(chosen_numbers(task, None)))
    return Machines(basis, Y.astype(np.float64), w, intercept=task.intercept)


class Machines:
    """Targets and weights of objects in an eigenbasis, for machines at any penalties."""

    def __init__(self, basis: Eigenbasis, Y: Array, w: Array, *, intercept: bool) -> None:
        self.basis, self.Y, self.w, self.intercept = basis, Y, w, intercept
        self.least_squares = Projected(basis, Y, intercept=intercept)
        size = np.sqrt(np.abs(basis.spectrum.D))
        self.Phi = basis.spectrum.U * size / basis.root[:, None]  # features of the objects

    def penalty(self, values: Array) -> Array:  # (r,)
        """The penalty of each feature."""
        return np.asarray(self.basis.n * values[self.basis.groups])

    def above_rounding(self, values: Array) -> bool:
        """Whether penalties are larger than the rounding errors of the eigenvalues."""
        largest = np.max(np.abs(self.basis.spectrum.D), initial=0.0)
        return bool((self.penalty(values) > ROUNDING * largest).all())

    def solve(self, values: Array, max_iter: int) -> Linear:
        """Coefficients of the features, by Newton's method in the space of the objects."""
        penalty = self.penalty(values)
        beta, b = self._start(values)
        solution, constant = kernel_machines(
            (self.Phi / penalty) @ self.Phi.T, self.Y, self.w, beta, b,
            intercept=self.intercept, max_iter=max_iter,
        )  # fmt: skip
        coef = (self.Phi / penalty).T @ solution.coef
        return Linear(coef, constant, solution.n_iter, solution.converged)

    def _start(self, values: Array) -> tuple[Array, Array]:
        """Least squares at the same penalties: beta = w (y - f)."""
        coefficients, b = self.least_squares.solve(values)
        scale = self.basis.spectrum.S * np.sqrt(np.abs(self.basis.spectrum.D))
        return self.w[:, None] * (self.Y - b - self.Phi @ (scale[:, None] * coefficients)), b


def tune_machines(task: Task, basis: Eigenbasis, unknowns: Unknowns) -> Tuned:
    """The penalties of least squares, times a common factor of smallest hinge loss.

    The factor is found on the folds of a part of the objects, relative to the penalties that least
    squares has there.
    """
    of_all = task.tuned_before(unknowns)
    if of_all is None:
        of_all = tune_exactly(task, basis, unknowns, sketched=True).tuned
    if not has_folds(task):  # a few objects that are all in one fold
        return of_all
    places = spread_out(task, PART)
    if not has_folds(task, places):
        places = np.arange(len(task.numbers))
    start = of_all.values
    if len(places) < len(task.numbers):
        few, terms = comparison_of(task, places).sketched(), terms_of(task)
        part = few.loss(terms, few.decomposed(terms))
        start = tune(part, basis.scale, unknowns, start=of_all.values).values
    free = np.isin(np.arange(len(start)), unknowns.penalties)
    loss = MachinesLoss(task, places)
    losses = np.array([loss(np.where(free, factor * start, start))[0] for factor in FACTORS])
    best = FACTORS[np.argmax(losses <= losses.min() * (1 + TIE_RTOL))]
    values = np.where(free, best * of_all.values, of_all.values)
    tried = [np.where(free, factor * of_all.values, of_all.values) for factor in FACTORS]
    return Tuned(values, float(losses.min()), np.column_stack([tried, losses]), of_all.apart)


def left_out_of_machines(task: Task, solve: Callable[[Machines], Linear]) -> LeftOut:
    """Scores of all objects by the machines of the folds, each with an eigenbasis of its own."""
    loss, outputs = by_folds(task), np.arange(task.Y.shape[1])

    def scores(fold: ExactFold) -> Array:
        one = MachineFold(fold, outputs, intercept=task.intercept)
        return one.scores(solve(one.machines))

    return LeftOut(chosen_numbers(task, None)[loss.numbers], loss.means(scores))


class MachinesLoss:
    """The squared hinge loss of a few of many outputs over the folds; no gradient is known."""

    def __init__(self, task: Task, places: Array | None = None) -> None:
        self.folds = [
            MachineFold(fold, some_outputs(fold.Y), intercept=task.intercept)
            for fold in by_folds(task, places).folds
        ]

    def __call__(self, values: Array) -> tuple[float, Array]:
        return float(self.per_fold(values).sum()), np.zeros(0)

    def per_fold(self, values: Array) -> Array:
        weight = sum(fold.n_valid for fold in self.folds)
        return np.array([fold.loss(values) for fold in self.folds]) / weight


class MachineFold:
    """One split of the objects: machines of one part, judged by their hinge loss on the other."""

    def __init__(self, fold: ExactFold, some: Array, *, intercept: bool) -> None:
        self.machines = Machines(
            fold.basis, fold.Y[:, some].astype(np.float64), np.square(fold.basis.root),
            intercept=intercept,
        )  # fmt: skip
        size = np.sqrt(np.abs(fold.basis.spectrum.D))
        self.Phi_valid = fold.rows * (fold.basis.spectrum.S / size)
        self.Y, self.w, self.n_valid = fold.valid[:, some], fold.w[:, 0], fold.n_valid

    def scores(self, model: Linear) -> Array:
        """What a machine of the training part says of the validation part."""
        return np.asarray(self.Phi_valid @ model.coef + model.intercept)

    def loss(self, values: Array) -> float:
        return hinge_loss(self.scores(self.machines.solve(values, MAX_ITER)), self.Y, self.w)[0]


MAX_ITER = 50  # Newton steps of a trial
