"""What other rooms ask of an estimator beside the methods that scikit-learn knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.data.validation import Border
from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.learn.criterion import Criterion, criterion_of
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.rows import Rows

if TYPE_CHECKING:
    from kreinlearn.estimators.learner import Learner


def fitted_names(cls: type[KreinEstimator]) -> tuple[str, ...]:
    """The names of all attributes that a fit may leave."""
    return cls._fitted


def check_parameters(estimator: KreinEstimator) -> None:
    """Raise ValueError for parameters that a fit would refuse, whatever the data."""
    estimator._validate_params()


def resolved_kernel(estimator: KreinEstimator) -> Kernel:
    """The kernel that the parameters ask for, not fitted."""
    return estimator._resolved_kernel()


def kernel_for(estimator: KreinEstimator, X: Objects) -> Kernel:
    """The kernel for X, not fitted, which depends on X if the parameters leave it to the data."""
    return estimator._kernel_for(X)


def receive(estimator: KreinEstimator, X: Objects, rng: np.random.Generator) -> tuple[Rows, Kernel]:
    """Validated rows and the kernel fitted to them, as at the beginning of a fit."""
    rows, kernel, _, _ = estimator._received(X, None, None, rng)
    return rows, kernel


def border_of(estimator: KreinEstimator) -> Border:
    """What the estimator accepts, and what it remembers of the objects that it has seen."""
    return estimator._border()


def new_rows(estimator: KreinEstimator, X: Objects) -> tuple[Objects, LandmarkColumns]:
    """Validated objects, and what evaluates their similarities to the landmarks."""
    return estimator._new_rows(X)


def projected(
    estimator: KreinEstimator, rows: Objects, columns: LandmarkColumns, W: Array
) -> Array:
    """k(X, Z) @ W of objects that ``new_rows`` has validated."""
    return estimator._projected(rows, columns, W)


def true_similarities(estimator: KreinEstimator, rows: Objects, numbers: Array) -> Array:
    """The similarities among some of the objects that ``new_rows`` has validated."""
    return estimator._similarities(rows, numbers)


def feature_map(estimator: KreinEstimator) -> tuple[FeatureMap, Array | float]:
    """The map of a fitted estimator, and the mean that is subtracted from its features."""
    return estimator._map, getattr(estimator, "_mean", 0.0)


def column_name(estimator: KreinEstimator) -> str | None:
    """The column of a table from which the objects of a fit were read, if it is known."""
    return getattr(estimator, "_column", None)


def remember_columns(
    estimator: KreinEstimator, column: str | None, names: Sequence[str] | None
) -> None:
    """Tell a fitted estimator the column of its objects, or the names of its features."""
    if column is not None:
        estimator._column = column
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.n_features_in_ = len(names)


def criterion(
    learner: Learner, X: Objects, y: ArrayLike, sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Criterion:  # fmt: skip
    """The loss that a fit of the learner would minimise; it is not fitted afterwards."""
    return learner._learned(
        X, y, sample_weight, learner._recipe, criterion_of, groups=groups
    )  # fmt: skip
