"""The error that new objects are expected to have, in words that need no statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from kreinlearn.evaluation.running import evaluate
from kreinlearn.inspection.arguments import Array, Objects
from kreinlearn.solvers.spectrum import power_of_two_scale

SPARE = 10.0  # seconds that further fits may take besides five times the first


@dataclass(frozen=True)
class Expected:
    """The error of objects that were left out, its standard error, and that of a constant.

    Of classes it is the share of wrong labels, and of numbers the root of the mean squared error.
    """

    error: float
    std: float
    constant: float
    guess: str  # what the constant is
    r2: float | None  # None for classes

    @classmethod
    def of(cls, y: Array, task: str, error: float, std: float) -> Expected:
        """The error of a learner, beside that of a constant."""
        if task == "classification":
            classes, counts = np.unique(y, return_counts=True)
            most = int(np.argmax(counts))
            return cls(error, std, 1 - counts[most] / len(y), str(classes[most]), None)
        spread = _deviation(y)
        return cls(error, std, spread, "the mean", 1 - (error / spread) ** 2)

    @property
    def learned(self) -> bool:
        """Whether the error is smaller than that of a constant."""
        return self.error < self.constant

    def in_words(self, target: str) -> str:
        """What to expect of new objects, in a sentence, and whether that is worse than a guess."""
        end = "" if self.learned else "; nothing was learned, as this is no better than guessing"
        if self.r2 is None:
            return (
                f"expected error: {100 * self.error:.1f} % of new objects get a wrong {target} "
                f"(s.e. {100 * self.std:.1f}), and {100 * self.constant:.1f} % if {self.guess} is "
                f"always guessed{end}"
            )
        return (
            f"expected error: {self.error:.3g} in the unit of {target} (s.e. {self.std:.2g}), "
            f"R^2 = {self.r2:.2f}; it is {self.constant:.3g} if the mean is always guessed{end}"
        )


def _deviation(y: Array) -> float:
    """The root of the mean variance of numbers, whose squares may be too small for a float."""
    unit = power_of_two_scale(y)
    return unit * math.sqrt((np.asarray(y, dtype=np.float64) / unit).var(axis=0).mean())


def cross_validated(
    model: Any, X: Objects, y: Array, task: str, seconds: float, seed: int
) -> Expected:
    """The error of an estimator like this one on up to five folds; ValueError if it has none.

    ``seconds`` are those of one fit: after five times as long, no further fold begins.
    """
    fresh = clone(model)
    if "probability" in fresh.get_params(deep=False):
        fresh.set_params(probability=False)
    found = evaluate(
        X, y, model.kernel, kernel_params=model.kernel_params, learners=[("it", fresh)], task=task,
        time_limit=5 * seconds + SPARE, random_state=seed,
    )  # fmt: skip
    score = found.scores[0]
    if score.failed is not None:
        raise ValueError(score.failed)
    if task == "classification":
        return Expected.of(y, task, score.mean / 100, score.standard_error / 100)
    spread, root = _deviation(y), math.sqrt(score.mean)
    std = score.standard_error / (2 * root) if root else 0.0
    return Expected.of(y, task, root * spread, std * spread)
