"""Whether two methods, measured on the same folds, differ by more than chance."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[Any]
LEVEL = 0.05


class Difference(NamedTuple):
    """Errors of a less those of b, unit by unit; p: one-sided, small where a is worse."""

    mean: float
    standard_error: float
    p: float  # t of the folds, as if they were independent
    p_corrected: float  # Nadeau and Bengio's; NaN where there is one split

    def __str__(self) -> str:
        return f"{round(self.mean, 2) + 0.0:+.2f} ± {self.standard_error:.2f}"  # never -0.00

    @property
    def p_better(self) -> float:
        return 1 - self.p

    @property
    def p_corrected_better(self) -> float:
        return 1 - self.p_corrected

    @property
    def p_either(self) -> float:
        """Two-sided, corrected."""
        return 2 * min(self.p_corrected, self.p_corrected_better)


def paired_difference(a: Array, b: Array, ratio: float) -> Difference:  # (J,), (J,)
    """``ratio``: test objects over training objects, by which training parts overlap."""
    d = a - b
    J, mean, variance = len(d), float(d.mean()), float(d.var(ddof=1))
    if np.ptp(d) == 0:  # rounding aside
        variance = 0.0
    plain = _one_sided(mean, variance / J, J - 1)
    corrected = _one_sided(mean, (1 / J + ratio) * variance, J - 1)
    return Difference(mean, math.sqrt(variance / J), plain, corrected)


def _one_sided(mean: float, variance: float, freedom: int) -> float:
    """P(T > t): 1/2 where there is no difference at all."""
    if variance == 0:
        return 0.5 if mean == 0 else float(mean < 0)
    return float(student.sf(mean / math.sqrt(variance), freedom))
