"""How unlike all training objects an object is, by its distances to the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

NEAREST = 5  # landmarks that an object is compared with
FLOOR = 1e-3  # of the mean distance, which is added where distances may be zero
TINY = float(np.finfo(np.float64).tiny)
BLOCK = 512  # rows whose distances are sorted at once


@dataclass(frozen=True)
class LocalDistances:
    """How far landmarks are from the landmarks that are nearest to them.

    The novelty of an object is the mean distance to its five nearest landmarks, divided by the mean
    of the same for these landmarks: about one amidst the training objects, whether they lie close
    together there or far apart, and more beyond them.
    """

    own: Array  # (m,): the mean distance of each landmark to its nearest ones
    floor: float

    @classmethod
    def of_landmarks(cls, D: Array) -> Self:  # (m, m)
        """Look at the distances among the landmarks; it is zero for a single landmark."""
        own = np.zeros(len(D))
        for start in range(0, len(D), BLOCK):
            block = np.array(D[start : start + BLOCK], dtype=np.float64)
            rows = np.arange(len(block))
            block[rows, start + rows] = np.inf
            own[start : start + BLOCK] = _nearest(block)[1]
        return cls(own, max(FLOOR * float(own.mean()), TINY))

    def novelty(self, D: Array) -> Array:  # (b, m) -> (b,)
        """The novelty of objects, from their distances to all landmarks."""
        near, mean = _nearest(np.asarray(D, dtype=np.float64))
        return np.asarray((mean + self.floor) / (self.own[near].mean(axis=1) + self.floor))


def _nearest(D: Array) -> tuple[Array, Array]:  # (b, m) -> (b, k), (b,)
    """The nearest landmarks of each row, and their mean distance; negative distances are zero."""
    finite = D.shape[1] - int(np.isinf(D[0]).any()) if len(D) else D.shape[1]
    k = min(NEAREST, finite)
    if k == 0:
        return np.zeros((len(D), 1), dtype=np.intp), np.zeros(len(D))
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.maximum(np.take_along_axis(D, order, axis=1), 0.0).mean(axis=1)


def distances_from(K: Array, own: Array, of_landmarks: Array) -> Array:
    """sqrt(k(x, x) + k(z, z) - 2 k(x, z)): distances from similarities; zero where it is negative.

    In a Krein space squared distances may be negative: such objects are as near as can be.
    """
    squares = own[:, None] + of_landmarks - 2.0 * np.asarray(K, dtype=np.float64)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
