"""Signed axes of a fitted estimator, or those of the similarity of a learner on X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import length, take
from kreinlearn.estimators.access import feature_map, new_rows, projected, true_similarities
from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.estimators.learner import Learner
from kreinlearn.estimators.transformer import KreinPCA
from kreinlearn.inspection.arguments import Array, Objects
from kreinlearn.nystrom.core import least_squares_core, least_squares_map, pivot_rows, whiten
from kreinlearn.nystrom.error import ERROR_ROWS, estimate_error
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.pairs.evaluate import scaled
from kreinlearn.solvers.spectrum import power_of_two_scale
from kreinlearn.sums.parallel import serial_blas

ROWS_PER_LANDMARK = 3  # whose pairs a core is fitted to, as in KreinNystroem
EXACT = 1e-6  # the relative error up to which an approximation counts as exact


@dataclass(frozen=True)
class SignedAxes:
    """The eigenvectors U~ = k(X, Z) @ E, which have the eigenvalues D.

    ``mean`` is subtracted from the coordinates.
    """

    model: KreinEstimator
    E: Array  # (m, r)
    D: Array  # (r,)
    mean: Array | float = 0.0

    def coordinates(self, X: Objects, axes: Sequence[int]) -> Array:  # (n, 2)
        """The coordinates of objects on two of the axes."""
        chosen, r = list(axes), len(self.D)
        if len(chosen) != 2 or not all(0 <= j < r for j in chosen):
            raise ValueError(f"axes={axes!r} must be two numbers from 0 to {r - 1}")
        W = self.E[:, chosen] * np.sqrt(np.abs(self.D[chosen]))
        U = projected(self.model, *new_rows(self.model, X), W)
        return np.asarray(U - np.broadcast_to(self.mean, r)[chosen])

    def described(self, X: Objects | None = None) -> str:
        """What these are the axes of, in words; X tells how good an approximation is."""
        model, r = self.model, len(self.D)
        if isinstance(model, KreinPCA):
            return f" of the {r} axes kept"
        asked = model.landmarks if isinstance(model, Learner) else model
        cut = (isinstance(asked, Landmarks) and X is None) or asked is model
        if cut and asked.rank is not None:
            return f" of the {r} dimensions kept"
        name = f" of the approximation by {model.n_landmarks_:,} landmarks"
        if X is None:
            return name
        X, columns = new_rows(model, X)
        n = length(X)
        sample = np.sort(np.random.default_rng(0).choice(n, min(ERROR_ROWS, n), replace=False))
        K = true_similarities(model, X, sample)
        U = projected(model, take(X, sample), columns, self.E) * np.sqrt(np.abs(self.D))
        error = estimate_error(K, U, np.sign(self.D), n).relative
        return f"{name}\n(error {100 * error:.2g} %)" if error > EXACT else ""


def axes_of(estimator: KreinEstimator, X: Objects | None = None) -> SignedAxes:
    """The axes of an estimator; for a learner with X, those of its similarity on X."""
    check_is_fitted(estimator)
    if not isinstance(estimator, KreinEstimator) or not hasattr(estimator, "eigenvalues_"):
        raise TypeError(
            f"{type(estimator).__name__} has no signed axes; pass a KreinPCA, a KreinNystroem or "
            "a Krein learner, or what is known to from_predictions"
        )
    if isinstance(estimator, Learner) and X is not None:
        return _least_squares(estimator, X)
    features, mean = feature_map(estimator)
    return SignedAxes(estimator, features.E, features.Lambda, mean)


def _least_squares(learner: Learner, objects: Objects) -> SignedAxes:
    """Axes by the kernel, landmarks and similarity of a learner, and by pairs among rows of X.

    The core that learners predict with is exact only on pairs with landmarks. What it says about
    other pairs may be many times too large, and would be drawn as axes of the similarity.
    """
    X, columns = new_rows(learner, objects)
    n, m = length(X), learner.n_landmarks_
    if learner.kernel_.domain.is_matrix and X.shape != (n, n):
        raise ValueError(
            f"axes of a learner need the pairs among the objects, got a matrix of {X.shape}; pass "
            "the square one that was fitted, or a KreinNystroem or KreinPCA instead of the learner"
        )
    C = projected(learner, X, columns, np.eye(m)).astype(np.float64)
    unit = power_of_two_scale(C)
    C = scaled(C, unit)
    with serial_blas():
        T = whiten(C.T @ C)
        Q = C @ T
        R = _rows(Q, min(n, max(ROWS_PER_LANDMARK * m, ERROR_ROWS)))
        M = least_squares_core(Q[R], scaled(true_similarities(learner, X, R), unit), n)
        features = least_squares_map(T, M).rescaled(unit)
    return SignedAxes(learner, features.E, features.Lambda)


def _rows(Q: Array, count: int) -> Array:
    """Row numbers of which one half spans Q and the other half is drawn at random."""
    n = len(Q)
    if count == n:
        return np.arange(n)
    pivots = pivot_rows(Q, -(-count // 2))
    left = np.setdiff1d(np.arange(n), pivots)
    drawn = np.random.default_rng(0).choice(left, count - len(pivots), replace=False)
    return np.sort(np.append(pivots, drawn))
