"""Tuning for a score of scikit-learn's instead of the squared error or the hinge loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from kreinlearn.learn.folds import FoldRows
from kreinlearn.learn.learning import Problem

LEAST_PROBABILITY = 1e-3  # a score beyond +-1 is no certainty


class FoldRegressor(RegressorMixin, BaseEstimator):
    """A linear model of features, as a scorer wants it."""

    def __init__(self, coef: Any, intercept: Any, one_output: bool) -> None:
        self.coef, self.intercept, self.one_output = coef, intercept, one_output

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, Phi: Any) -> Any:
        scores = Phi @ self.coef + self.intercept
        return scores[:, 0] if self.one_output else scores


class FoldClassifier(ClassifierMixin, BaseEstimator):
    """The same with classes; P(y = 1 | f) = (1 + f) / 2 is what both losses aim at."""

    def __init__(self, coef: Any, intercept: Any, classes: Any) -> None:
        self.coef, self.intercept, self.classes = coef, intercept, classes
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, Phi: Any) -> Any:
        scores = Phi @ self.coef + self.intercept
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, Phi: Any) -> Any:
        scores = self.decision_function(Phi)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes[best]

    def predict_proba(self, Phi: Any) -> Any:
        scores = self.decision_function(Phi)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        shares = np.clip((1 + scores) / 2, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return shares / shares.sum(axis=1, keepdims=True)


def cross_validated_score(
    problem: Problem,
    splits: list[FoldRows],
    scoring: Any,
    model: Callable[[Any, Any], Any],
    solve: Callable[[Any, Any, Any, Any], tuple[Any, Any]],
    penalties: Callable[[Any, Any], Any],
) -> Callable[[Any], float]:
    """values -> the score of the validation parts, weighted by their sizes."""
    Y, w = problem.held()
    w = np.ones(len(Y)) if w is None else w
    y, scorer = problem.y[problem.rows], None

    def score(values: Any) -> float:
        nonlocal scorer
        found = []
        for split in splits:
            train, valid = split.train, split.valid
            penalty = w[train].sum() * penalties(values, split.S)
            fitted = model(*solve(split.Phi[train], Y[train], w[train], penalty))
            scorer = check_scoring(fitted, scoring) if scorer is None else scorer
            found.append((scorer(fitted, split.Phi[valid], y[valid]), w[valid].sum()))
        scores, sizes = np.array(found).T
        return float(scores @ sizes / sizes.sum())

    return score
