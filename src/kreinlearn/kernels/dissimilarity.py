"""From a dissimilarity to a similarity: squares, centred on a reference set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from kreinlearn.kernels._base import Array, Kernel, resolve

SELF_DISSIMILARITY_RTOL = 1e-12  # of the largest dissimilarity
DISSIMILARITY_RANGE = (2.0**-480, 2.0**480)  # dissimilarities whose squares keep their digits


def dissimilarity(metric: str | Callable[..., Any] | Kernel, **params: Any) -> Kernel:
    """A dissimilarity d(x, z) for ``kernel=``: k = -1/2 d^2, centred on a reference set.

    ``metric`` is a metric name, a callable d(A, B) -> matrix, or ``pairwise(f)``.
    """
    from kreinlearn.kernels import scikit

    if isinstance(metric, str) and metric in scikit.sklearn_metric_names():
        return scikit.SklearnMetric(metric, params or None)
    kernel = resolve(metric, params)
    if kernel.is_dissimilarity:
        return kernel
    if "is_dissimilarity" in kernel.get_params(deep=False):
        return cast(Kernel, kernel.set_params(is_dissimilarity=True))
    raise ValueError(
        f"{metric!r} is a similarity; dissimilarity() takes a metric name, "
        "a callable d(A, B) or pairwise(f)"
    )


def double_centre(D: Array) -> Array:
    """K = -1/2 J (D o D) J of a symmetric dissimilarity matrix."""
    squares = np.square(D)
    means = squares.mean(axis=1)
    return np.asarray(-0.5 * (squares - means[:, None] - means + means.mean()))


@dataclass(frozen=True)
class Centring:
    """k(x, z) = -1/2 (d^2(x, z) - a(x) - a(z) + c) with a(x) the mean of d^2 to a reference set.

    Blocks of distances hold the reference set in their first ``n_reference`` columns.
    """

    n_reference: int
    c: float

    @classmethod
    def on(cls, D_RR: Array) -> Centring:
        require_squares(D_RR)
        return cls(len(D_RR), float(np.square(D_RR).mean()))

    def offsets(self, D: Array) -> Array:  # (b, >= n_reference) -> a: (b,)
        return np.asarray(np.square(D[:, : self.n_reference]).mean(axis=1))

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        return np.asarray(-0.5 * (np.square(D) - a_rows[:, None] - a_columns + self.c))

    def diagonal(self, a: Array) -> Array:
        return a - 0.5 * self.c


def require_squares(D: Array) -> None:
    """ValueError if the largest dissimilarity is so large or small that squares lose it."""
    low, high = DISSIMILARITY_RANGE
    largest = float(np.max(D, initial=0.0))
    if largest > high or 0 < largest < low:
        raise ValueError(
            f"the largest dissimilarity is {largest:.3g}: its square is out of floating range; "
            "multiply all dissimilarities by a constant"
        )


def check_dissimilarities(D: Array, D_self: Array | None = None) -> None:
    """ValueError for a negative entry, or a self-dissimilarity above rounding."""
    if np.min(D, initial=0.0) < 0:
        raise ValueError(
            "Negative values in data passed to X. A dissimilarity is never negative; "
            'for similarities pass the kernel itself or kernel="precomputed".'
        )
    if float(np.max(D, initial=0.0)) > DISSIMILARITY_RANGE[1]:
        require_squares(D)
    if D_self is not None:
        worst = float(np.max(np.abs(D_self), initial=0.0))
        if worst > SELF_DISSIMILARITY_RTOL * float(np.max(D, initial=0.0)):
            raise ValueError(
                f"the diagonal of a dissimilarity must be zero, got a self-dissimilarity of "
                f"{worst:.3g}; subtract it, or pass a similarity instead"
            )
