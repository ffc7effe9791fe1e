"""The cross-validated loss of a fitted learner, as a function of its two penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from kreinlearn.estimators.ridge import LeastSquares
from kreinlearn.estimators.svm import TUNED_ROWS, KreinSVC, some_outputs
from kreinlearn.inspection.arguments import Array, Objects
from kreinlearn.learn.learning import MeanLoss, Problem, Statistics, leave_one_out_of
from kreinlearn.learn.losses.hinge import HingeObjective
from kreinlearn.plotting._axes import KreinLearner
from kreinlearn.sums.parallel import serial_blas

Objective = Callable[[Array], Any]  # penalties -> the loss and its gradient


class Criterion(NamedTuple):
    """The loss as a function of lambda_plus and lambda_minus, and what it is, in words."""

    loss: Callable[[float, float], float]
    name: str


def criterion_of(
    model: KreinLearner, X: Objects, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Criterion:
    """The loss that a learner has minimised.

    Landmarks and similarity are those of the fit, and so are the folds unless it was loaded.
    """
    copy = _as_fitted(model)
    with serial_blas():
        problem = copy._prepared_problem(X, y, sample_weight, np.random.default_rng(0))
        statistics = copy._statistics(problem)
        objective = _objective(copy, problem, statistics, model)
    root = copy._root(statistics.unit)

    def loss(lambda_plus: float, lambda_minus: float) -> float:
        with serial_blas():
            values = np.array([lambda_plus, lambda_minus]) / root / root
            return float(objective(values)[0])

    name = "squared hinge loss" if isinstance(copy, KreinSVC) else "squared error"
    anew = "" if model.cv == "loo" or hasattr(model, "folds_") else ", folds drawn anew"
    return Criterion(loss, name + anew)


def _as_fitted(model: KreinLearner) -> KreinLearner:
    """An unfitted copy that will choose what the model has chosen, except for the penalties."""
    indices = model.landmark_indices_
    chosen: dict[str, object] = {
        "lambda_plus": "auto", "lambda_minus": "auto", "scoring": None, "n_landmarks": "auto",
        "landmarks": model.landmarks_ if indices is None else indices,
    }  # fmt: skip
    for name in ("similarity", "kernel_params"):
        if hasattr(model, f"{name}_"):
            chosen[name] = getattr(model, f"{name}_")
    if model.cv != "loo" and hasattr(model, "folds_"):  # a model that was loaded has none
        chosen["cv"] = PredefinedSplit(model.folds_)
    copy: KreinLearner = clone(model).set_params(**chosen)
    return copy


def _objective(
    copy: KreinLearner, problem: Problem, statistics: Statistics, model: KreinLearner
) -> Objective:
    if isinstance(copy, KreinSVC):
        splits = problem.sampled(problem.split_rows(statistics.map), TUNED_ROWS)
        Y, w = problem.held()
        w = np.ones(len(Y)) if w is None else w
        return HingeObjective(splits, Y[:, some_outputs(Y)], w, intercept=copy.fit_intercept)
    assert isinstance(copy, LeastSquares)
    if copy.cv == "loo" and not problem.honest:
        return leave_one_out_of(problem, statistics)
    losses = MeanLoss(copy._fold_terms(problem, statistics), copy._fold_loss)
    if not hasattr(model, "radius_"):
        return losses
    copy._observe(statistics)
    factor = float(np.mean(model.radius_ / copy.radius_))
    return lambda values: losses(np.append(values, factor))
