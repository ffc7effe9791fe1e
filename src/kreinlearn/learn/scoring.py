"""Tuning for one of scikit-learn's scores in the place of the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from kreinlearn.kernels.base import Array
from kreinlearn.learn.task import FoldRows, Linear, Task
from kreinlearn.solvers.least_squares import signed_penalty

LEAST_PROBABILITY = 1e-3  # a decision value beyond +-1 is no certainty


class FoldRegressor(RegressorMixin, BaseEstimator):
    """A linear model of features, as a scorer wants it."""

    def __init__(self, coef: Array, intercept: Array, one_output: bool) -> None:
        self.coef, self.intercept, self.one_output = coef, intercept, one_output

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, Phi: Array) -> Array:
        scores = Phi @ self.coef + self.intercept
        return scores[:, 0] if self.one_output else scores


class FoldClassifier(ClassifierMixin, BaseEstimator):
    """The same with classes; P(y = 1 | f) = (1 + f) / 2 is what both losses aim at."""

    def __init__(self, coef: Array, intercept: Array, classes: Array) -> None:
        self.coef, self.intercept, self.classes = coef, intercept, classes
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, Phi: Array) -> Array:
        scores = Phi @ self.coef + self.intercept
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, Phi: Array) -> Array:
        scores = self.decision_function(Phi)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes[best]

    def predict_proba(self, Phi: Array) -> Array:
        scores = self.decision_function(Phi)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        shares = np.clip((1 + scores) / 2, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return shares / shares.sum(axis=1, keepdims=True)


class FoldLabels(FoldClassifier):
    """The same with sets of labels, one score for each label."""

    def decision_function(self, Phi: Array) -> Array:
        return np.asarray(Phi @ self.coef + self.intercept)

    def predict(self, Phi: Array) -> Array:
        return (self.decision_function(Phi) > 0).astype(np.int64)

    def predict_proba(self, Phi: Array) -> Array:
        shares = (1 + self.decision_function(Phi)) / 2
        return np.asarray(np.clip(shares, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))


def cross_validated_score(
    task: Task, splits: Sequence[FoldRows], scoring: Any,
    solve: Callable[[Array, Array, Array, Array], Linear], fold_model: Callable[[Linear], Any],
) -> Callable[[Array], float]:  # fmt: skip
    """A function from penalties to the score of the validation parts, weighted by their sizes."""
    Y, w = task.sampled_targets()
    y, scorer = task.y[task.numbers], check_scoring(scoring=scoring)

    def score(values: Array) -> float:
        each = []
        for split in splits:
            train, valid = split.train, split.valid
            penalty = w[train].sum() * signed_penalty(split.S, values[0], values[1])
            model = fold_model(solve(split.Phi[train], Y[train], w[train], penalty))
            each.append((scorer(model, split.Phi[valid], y[valid]), w[valid].sum()))
        scores, sizes = np.array(each).T
        return float(scores @ sizes / sizes.sum())

    return score
