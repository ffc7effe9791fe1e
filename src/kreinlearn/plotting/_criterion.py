"""The cross-validated loss of a fitted learner, as a function of its two penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from kreinlearn.estimators.access import criterion
from kreinlearn.estimators.learner import Learner
from kreinlearn.estimators.svm import KreinSVC
from kreinlearn.inspection.arguments import Objects
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.sums.parallel import serial_blas


class Criterion(NamedTuple):
    """The loss as a function of lambda_plus and lambda_minus, and what it is, in words."""

    loss: Callable[[float, float], float]
    name: str


def criterion_of(
    model: Learner, X: Objects, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Criterion:
    """The loss that a learner has minimised.

    Landmarks and similarity are those of the fit, and so are the folds unless it was loaded.
    """
    loss = criterion(_as_fitted(model), X, y, sample_weight)

    def serial_loss(lambda_plus: float, lambda_minus: float) -> float:
        with serial_blas():
            return loss(lambda_plus, lambda_minus)

    name = "squared hinge loss" if isinstance(model, KreinSVC) else "squared error"
    anew = "" if model.cv == "loo" or hasattr(model, "folds_") else ", folds drawn anew"
    return Criterion(serial_loss, name + anew)


def _as_fitted(model: Learner) -> Learner:
    """An unfitted copy that will choose what the model has chosen, except for the penalties."""
    indices = model.landmark_indices_
    wanted = model.landmarks if isinstance(model.landmarks, Landmarks) else Landmarks()
    landmarks = model.landmarks_ if indices is None else indices
    chosen: dict[str, object] = {
        "lambda_plus": "auto", "lambda_minus": "auto", "scoring": None, "random_state": 0,
        "landmarks": replace(wanted, n=landmarks, scheme="auto"),
    }  # fmt: skip
    for name in ("similarity", "kernel_params", "radius"):
        if hasattr(model, f"{name}_"):
            chosen[name] = getattr(model, f"{name}_")
    if model.cv != "loo" and hasattr(model, "folds_"):  # a model that was loaded has none
        chosen["cv"] = PredefinedSplit(model.folds_)
    copy: Learner = clone(model).set_params(**chosen)
    return copy
