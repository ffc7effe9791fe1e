"""What model files know about estimators: which there are, and what a fit of them leaves.

Estimators import this room for their method ``save``, so theirs is imported here by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kreinlearn.kernels import Kernel, Precomputed, resolve
from kreinlearn.kernels.several import Several
from kreinlearn.persist.encoding import Array
from kreinlearn.persist.errors import require
from kreinlearn.solvers.probabilities import LabelSigmoids, Sigmoids, Temperature
from kreinlearn.sums.parallel import worker_count

ROOM = "kreinlearn.estimators"
MOST_JOBS = 1024  # that a file may ask for


def estimators() -> Mapping[str, str]:
    """The modules of all estimators, by the names of their classes."""
    listed: Mapping[str, str] = import_module(ROOM).ESTIMATORS
    return listed


def is_estimator(cls: type) -> bool:
    """Whether a class is an estimator of this library, and no subclass of one."""
    return cls.__module__ == f"{ROOM}.{estimators().get(cls.__name__)}"


def class_of(name: str) -> type[BaseEstimator]:
    """The class of an estimator, by its name."""
    cls: type[BaseEstimator] = getattr(import_module(f"{ROOM}.{estimators()[name]}"), name)
    return cls


def fitted_names(cls: type[BaseEstimator]) -> frozenset[str]:
    """The names of all attributes that a fit of an estimator may leave."""
    return frozenset(import_module(f"{ROOM}.access").fitted_names(cls))


def require_parameters(estimator: BaseEstimator) -> None:
    """Raise an error unless a fit would accept the parameters of an estimator."""
    estimator._validate_params()
    jobs = estimator.n_jobs
    good = jobs is None or (type(jobs) is not bool and 0 < abs(jobs) <= MOST_JOBS)
    require(good, f"its n_jobs is {jobs!r:.40}")


def fresh_kernel(
    estimator: BaseEstimator, state: Mapping[str, Any], *, few_columns: bool
) -> Kernel:
    """The kernel of an estimator as it was before the fit, which may have chosen parameters.

    ``state`` are the fitted attributes: parameters that were chosen, or a sum that was learned.
    ``few_columns`` says that the fit was given the columns of landmarks instead of a whole matrix.
    """
    chosen, learned = state.get("kernel_params_"), state.get("_sum")
    if chosen is not None:
        return resolve(estimator.kernel, chosen)
    kernel: Kernel = import_module(f"{ROOM}.access").resolved_kernel(estimator)
    if learned is not None:
        given = kernel.kernels if isinstance(kernel, Several) else []
        kernels = [given[one] if isinstance(one, int) else one for one in learned.kernels]
        return Several(kernels, learned.terms)
    if few_columns and isinstance(kernel, Precomputed):
        return Precomputed(is_dissimilarity=kernel.of_dissimilarities)
    return kernel


def with_processes(estimator: BaseEstimator, kernel: Kernel) -> Kernel:
    """A kernel that evaluates in as many processes as the estimator allows."""
    jobs = estimator.n_jobs
    return kernel.with_processes(1 if jobs is None else worker_count(jobs))


def calibration_parts(estimator: BaseEstimator) -> Array | dict[str, Array] | None:
    """What turns scores into probabilities: two numbers for each sigmoid, or for each class."""
    calibration = vars(estimator).get("_calibration")
    if isinstance(calibration, Temperature):
        return {"temperature": calibration.pairs}
    if isinstance(calibration, LabelSigmoids):
        return {"labels": calibration.pairs}
    return None if calibration is None else calibration.pairs


def calibration_from(estimator: BaseEstimator, parts: Any) -> dict[str, Any]:
    """The attribute that gives probabilities, from what ``calibration_parts`` has; or nothing."""
    wanted = bool(getattr(estimator, "probability", False))
    require((parts is not None) == wanted, "its probabilities are missing")
    if not wanted:
        return {}
    k = len(estimator.classes_)
    kind: Any = Sigmoids
    if isinstance(parts, dict) and parts.keys() == {"temperature"} and k > 2:
        kind, parts = Temperature, parts["temperature"]
    rows = 1 if k == 2 else k
    if isinstance(parts, dict) and parts.keys() == {"labels"}:
        kind, parts, rows = LabelSigmoids, parts["labels"], k
    several = getattr(estimator, "multilabel_", False)
    good = (kind is LabelSigmoids) == several
    good = good and isinstance(parts, np.ndarray) and parts.shape == (rows, 2)
    good = good and parts.dtype == np.float64 and bool(np.isfinite(parts).all())
    require(good, "its probabilities do not fit its classes")
    return {"_calibration": kind(parts)}
