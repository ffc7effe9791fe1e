"""Transformers and learners with the same call, for tests that hold for all of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest

from kreinlearn import (
    KreinClassifier,
    KreinNystroem,
    KreinPCA,
    KreinRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    KreinVCRidgeClassifier,
    SimilarityRidge,
    SimilarityRidgeClassifier,
)

REGRESSORS = [KreinRidge, KreinVCRidge, SimilarityRidge]
CLASSIFIERS = [KreinRidgeClassifier, KreinVCRidgeClassifier, KreinSVC, SimilarityRidgeClassifier]
LEARNERS = [*REGRESSORS, *CLASSIFIERS]  # those of the paper, with all their parameters
FRONT = [KreinRegressor, KreinClassifier]  # those that decide everything themselves


def nystroem(kernel: Any = "gaussian", **params: Any) -> KreinNystroem:
    return KreinNystroem(kernel, random_state=0, **params)


def pca(kernel: Any = "gaussian", **params: Any) -> KreinPCA:
    return KreinPCA(kernel=kernel, random_state=0, **params)


both = pytest.mark.parametrize("model", [nystroem, pca])


def penalised(learner: Any, penalty: float = 0.01, **params: Any) -> Any:
    """A learner whose penalties are given, as many as it has."""
    names = {"lambda_plus", "lambda_minus"} & {*learner().get_params()}
    return learner(**{"random_state": 0, **dict.fromkeys(names, penalty), **params})


def rows_in(X: Any) -> int:
    if hasattr(X, "shape"):
        return int(X.shape[0]) if X.shape else 0
    return len(X) if hasattr(X, "__len__") else 0


class Supervised:
    """A learner that is called like a transformer: zeros and ones as targets; it predicts."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: Any) -> Self:
        self.learner.fit(X, np.arange(rows_in(X)) % 2)
        return self

    def transform(self, X: Any) -> Any:
        return getattr(self.learner, "decision_function", self.learner.predict)(X)

    def set_params(self, **params: Any) -> Self:
        self.learner.set_params(**params)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)


def ridge(kernel: Any = "gaussian", **params: Any) -> Supervised:
    return Supervised(penalised(KreinRidge, kernel=kernel, **params))


def svc(kernel: Any = "gaussian", **params: Any) -> Supervised:
    return Supervised(penalised(KreinSVC, kernel=kernel, **params))


every = pytest.mark.parametrize("model", [nystroem, pca, ridge, svc])
learners = pytest.mark.parametrize("learner", LEARNERS)
regressors = pytest.mark.parametrize("learner", REGRESSORS)
classifiers = pytest.mark.parametrize("learner", CLASSIFIERS)


def products(A: Any, B: Any) -> Any:
    return np.asarray(A) @ np.asarray(B).T
