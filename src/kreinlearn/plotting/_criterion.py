"""The cross-validated loss of a fitted learner, as a function of its two penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from kreinlearn.estimators.ridge import LeastSquares
from kreinlearn.estimators.svm import TUNED_ROWS, KreinSVC, some_outputs
from kreinlearn.learn.hinge import HingeObjective
from kreinlearn.learn.learning import MeanLoss, Problem, Statistics, leave_one_out_of
from kreinlearn.sums.parallel import serial_blas


class Criterion(NamedTuple):
    loss: Callable[[float, float], float]  # of lambda_plus and lambda_minus
    name: str


def criterion_of(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Criterion:
    """The loss that was minimised: same landmarks, similarity and, unless it was loaded, folds."""
    copy = _as_fitted(model)
    rng = np.random.default_rng(0)
    with serial_blas():
        problem = copy._prepared_problem(X, y, sample_weight, rng)
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


def _as_fitted(model: Any) -> Any:
    """A copy that will find what the model found, but for the penalties."""
    found: dict[str, Any] = {"lambda_plus": "auto", "lambda_minus": "auto", "scoring": None}
    if hasattr(model, "similarity_"):
        found["similarity"] = model.similarity_
    if hasattr(model, "kernel_params_"):
        found["kernel_params"] = model.kernel_params_
    landmarks = model.landmark_indices_
    found["landmarks"] = model.landmarks_ if landmarks is None else landmarks
    found["n_landmarks"] = "auto"
    if model.cv != "loo" and hasattr(model, "folds_"):  # a model file holds none
        found["cv"] = PredefinedSplit(model.folds_)
    return clone(model).set_params(**found)


def _objective(copy: Any, problem: Problem, statistics: Statistics, model: Any) -> Any:
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
