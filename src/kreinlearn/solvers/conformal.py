"""What a prediction is worth, by objects that had no part in the model that predicts them.

Every object that was left out has a score that says how badly a model without it predicts it: the
size of the residual, or how far its class is behind the others. A new object is compared with them.
If it and these objects are exchangeable, its score is as likely to have any rank among theirs as
any other, and this is all that the promises need.

With one model for all these objects ("split") the promise is exact: the coverage is at least
what was asked for. With one model per fold ("cv+", Barber, Candes, Ramdas and Tibshirani 2021;
Romano, Sesia and Candes 2020) every object is used for both purposes, and it is at least
1 - 2 (1 - coverage) - sqrt(2 / n), where n is the number of objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

METHODS = ("split", "cv+")
ROUNDING = 1e-12  # relative: ranks are whole numbers, their share of the weight may not be
BLOCK = 256  # rows whose ends are sorted at once


@dataclass(frozen=True)
class LeftOut:
    """Scores of objects that were left out, each by a model without it."""

    scores: Array  # (k, q): sizes of residuals of each output, or (k, 1): scores of the class
    novelty: Array  # (k,): how unlike the objects of the model they are
    weights: Array  # (k,): how many objects each of them stands for
    folds: Array  # (k,): the number of the model without it

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def needed(self, coverage: float) -> float:
        """The weight of scores that must not be exceeded; a new object counts as one more."""
        return coverage * (self.total + 1.0) * (1.0 - ROUNDING)

    def is_enough(self, coverage: float) -> bool:
        """Whether so many objects were left out that not everything is possible."""
        return self.needed(coverage) <= self.total

    def intervals(self, predicted: Array, coverage: float) -> Array:  # (M, b, q) -> (b, q, 2)
        """Intervals from the predictions of all models; infinite if objects are too few.

        The upper end is the smallest number that enough of ``prediction without i + score of i``
        do not exceed, and the lower end is its mirror image.
        """
        n, q = predicted.shape[1:]
        ends = np.empty((n, q, 2))
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            for j in range(q):
                without = predicted[self.folds, rows, j].T  # (b, k)
                for side, sign in enumerate((-1.0, 1.0)):
                    far = sign * without + self.scores[:, j]
                    ends[rows, j, side] = sign * self._enough(far, coverage)
        return ends

    def _enough(self, values: Array, coverage: float) -> Array:  # (b, k) -> (b,)
        """The smallest value of each row up to which there is enough weight."""
        order = np.argsort(values, axis=1, kind="stable")
        weight = np.cumsum(self.weights[order], axis=1)
        place = np.sum(weight < self.needed(coverage), axis=1)
        values = np.append(
            np.take_along_axis(values, order, axis=1), np.full((len(values), 1), np.inf), axis=1
        )
        return np.asarray(np.take_along_axis(values, place[:, None], axis=1)[:, 0])

    def sets(self, scores: Array, coverage: float) -> Array:  # (M, b, c) -> (b, c) of bool
        """The classes whose score by enough models is not worse than those of their objects."""
        below = np.zeros(scores.shape[1:])
        for fold, of_model in enumerate(scores):
            below += self._weight_below(self.scores[:, 0], fold, of_model)
        return np.asarray(below < self.needed(coverage))

    def p_values(self, novelty: Array) -> Array:  # (M, b) -> (b,)
        """The share of objects, the new one included, that are at least as unlike the others."""
        below = np.zeros(novelty.shape[1])
        for fold, of_model in enumerate(novelty):
            below += self._weight_below(self.novelty, fold, of_model)
        return np.asarray((self.total - below + 1.0) / (self.total + 1.0))

    def _weight_below(self, known: Array, fold: int, scores: Array) -> Array:
        """The weight of the objects of a fold whose scores are smaller than each of ``scores``."""
        mine = np.flatnonzero(self.folds == fold)
        order = mine[np.argsort(known[mine], kind="stable")]
        weight = np.append(0.0, np.cumsum(self.weights[order]))
        return np.asarray(weight[np.searchsorted(known[order], scores, side="left")])


@dataclass(frozen=True)
class Conformal:
    """What a fit keeps to say what its predictions are worth."""

    method: str
    left_out: LeftOut
    models: tuple[Any, ...] = ()  # those without the objects of each fold; none for "split"


def behind(scores: Array) -> Array:  # (b, c) -> (b, c)
    """How far each class is behind the best of the others; negative for the one that leads."""
    order = np.argsort(scores, axis=1, kind="stable")
    first, second = order[:, -1], order[:, -2]
    rows = np.arange(len(scores))
    best = np.repeat(scores[rows, first][:, None], scores.shape[1], axis=1)
    best[rows, first] = scores[rows, second]
    return np.asarray(best - scores)
