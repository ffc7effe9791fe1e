"""Data and calls for tests of the estimators to try first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kreinlearn import (
    KreinClassifier,
    KreinRegressor,
)
from kreinlearn.learn.neighbours import NEIGHBOURS
from tests.models import FRONT

EPS = float(np.finfo(np.float64).eps)
LEFT_OUT = 1e-4  # of leave-one-out scores, as solvers/exact.py says of its ACCURACY
RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 2))
NEW = RNG.normal(size=(25, 2))
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
TWO = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=N), [-0.4, 0.5])
LABELS = {"two": TWO, "three": THREE}
PARTS = ["krein", *(f"neighbours_{k}" for k in NEIGHBOURS)]

front = pytest.mark.parametrize("learner", FRONT)
classes = pytest.mark.parametrize("labels", LABELS)


def similarity(A: Any, B: Any) -> Any:
    """An indefinite similarity."""
    return np.tanh(A @ B.T - 0.5) + 0.3 * np.exp(-2 * np.square(A[:, None] - B).sum(axis=2))


def distances(A: Any, B: Any) -> Any:
    """Distances that obey no triangle inequality."""
    return np.square(A[:, None] - B).sum(axis=2)


def classifier(kernel: Any = "gaussian", **params: Any) -> KreinClassifier:
    return KreinClassifier(kernel, **{"random_state": 0, **params})


def regressor(kernel: Any = "gaussian", **params: Any) -> KreinRegressor:
    return KreinRegressor(kernel, **{"random_state": 0, **params})


def target_of(learner: Any) -> Any:
    return VALUES if learner is KreinRegressor else THREE


def scores(model: Any, objects: Any) -> Any:
    return getattr(model, "decision_function", model.predict)(objects)
