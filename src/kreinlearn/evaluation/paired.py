"""Test whether two methods, measured on the same folds, differ by more than chance."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[Any]
LEVEL = 0.05  # of significance


class Difference(NamedTuple):
    """The errors of method a minus those of method b, fold by fold.

    The probabilities are one-sided and small if a is worse than b.

    Attributes
    ----------
    mean : float
        The mean difference.
    standard_error : float
        The standard error of the mean difference.
    p : float
        The probability by a t test that takes the folds as independent.
    p_corrected : float
        The probability by the corrected t test of Nadeau and Bengio, which takes into account
        that training parts overlap.
    """

    mean: float
    standard_error: float
    p: float
    p_corrected: float

    def __str__(self) -> str:
        return f"{round(self.mean, 2) + 0.0:+.2f} ± {self.standard_error:.2f}"  # never -0.00

    @property
    def p_better(self) -> float:
        """One-sided, small if a is better than b."""
        return 1 - self.p

    @property
    def p_corrected_better(self) -> float:
        """One-sided and corrected, small if a is better than b."""
        return 1 - self.p_corrected

    @property
    def p_either(self) -> float:
        """Two-sided and corrected."""
        return 2 * min(self.p_corrected, self.p_corrected_better)


def paired_difference(a: Array, b: Array, ratio: float) -> Difference:  # (J,), (J,)
    """Compare the errors of two methods on J folds.

    ``ratio`` is the number of test objects divided by the number of training objects; it says how
    much the training parts of the folds overlap. One fold shows a difference, and no more.
    """
    d = a - b
    if len(d) == 1:
        return Difference(float(d[0]), math.nan, math.nan, math.nan)
    J, mean, variance = len(d), float(d.mean()), float(d.var(ddof=1))
    if np.ptp(d) == 0:  # rounding aside
        variance = 0.0
    plain = _one_sided(mean, variance / J, J - 1)
    corrected = _one_sided(mean, (1 / J + ratio) * variance, J - 1)
    return Difference(mean, math.sqrt(variance / J), plain, corrected)


def _one_sided(mean: float, variance: float, freedom: int) -> float:
    """The probability P(T > t); 1/2 if there is no difference at all."""
    if variance == 0:
        return 0.5 if mean == 0 else float(mean < 0)
    return float(student.sf(mean / math.sqrt(variance), freedom))
