"""How far an approximation is from the kernel, estimated from the pairs among sampled rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.solvers.spectrum import power_of_two_scale

ERROR_ROWS = 256  # sampled rows of an error estimate


class ErrorEstimate(NamedTuple):
    """||K - K~|| / ||K|| in Frobenius norm, from the pairs among sampled rows."""

    relative: float
    standard_error: float
    n_rows: int


def estimate_error(K: Array, Phi: Array, S: Array, n: int) -> ErrorEstimate:
    """The relative error of Phi diag(S) Phi' on n objects, from the pairs K of a uniform sample.

    Sums of squares over all pairs are estimated without bias; the standard error is a jackknife.
    """
    h, c = len(K), power_of_two_scale(K)
    missed, whole = np.square((K - (Phi * S) @ Phi.T) / c), np.square(K / c)

    def sums(squares: Array) -> tuple[float, Array]:
        own = np.diagonal(squares)
        off, per_row = squares.sum() - own.sum(), squares.sum(axis=1) - own
        pairs = n * (n - 1) / max(h * (h - 1), 1)
        total = pairs * off + n / h * own.sum()
        fewer = n * (n - 1) / max((h - 1) * (h - 2), 1)
        without = fewer * (off - 2 * per_row) + n / max(h - 1, 1) * (own.sum() - own)
        return float(total), without

    (error, error_without), (size, size_without) = sums(missed), sums(whole)
    if size == 0:
        return ErrorEstimate(0.0, 0.0, h)
    ratios = np.sqrt(error_without / np.where(size_without > 0, size_without, size))
    spread = np.sqrt((h - 1) / h * np.square(ratios - ratios.mean()).sum() * (1 - h / n))
    return ErrorEstimate(float(np.sqrt(error / size)), float(spread), h)
