"""Probabilities: decision values calibrated by scikit-learn's CalibratedClassifierCV."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from kreinlearn.data.opening import opened, with_target
from kreinlearn.data.validation import TargetLike, WeightLike, is_condensed, square_from_condensed
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.folds import MAX_FOLDS
from kreinlearn.nystrom.landmarks import are_row_numbers

if TYPE_CHECKING:
    from kreinlearn.estimators.learner import KreinClassifierBase

PART = 0.7  # the smallest share of the rows in a part that calibrates


def calibrated(
    model: KreinClassifierBase, fit: Callable[..., None], X: Objects, y: TargetLike,
    sample_weight: WeightLike,
) -> None:  # fmt: skip
    """Fit a classifier by ``fit``, then its calibration, by fits of parts of the rows."""
    with model._fitting(X, y, sample_weight):
        X, y = with_target(X, y)
        X = sliceable(model, X)
        fit(X, y, sample_weight)
        columns = model._columns
        del model._columns  # unfitted until it is calibrated
        y = np.asarray(y).ravel()
        model._calibration = calibration_of(fixed(model), X, y, sample_weight)
        model._columns = columns


def sliceable(model: KreinClassifierBase, X: Objects) -> Any:
    """X of which scikit-learn can take parts; a vector of distances as a matrix."""
    if opened(X) is not None and not isinstance(X, np.memmap):
        raise TypeError(
            f"probability=True fits parts of the rows again, which are taken from memory; got "
            f"a {type(X).__name__}: pass an array or list, or probability=False"
        )
    kernel = model._resolved_kernel()
    if kernel.domain.is_matrix and is_condensed(X):
        return square_from_condensed(X, dissimilarities=kernel.of_dissimilarities)
    return X


def fixed(model: KreinClassifierBase) -> Any:
    """A classifier like this one for parts of the rows, with everything that was found given."""
    given: dict[str, Any] = {
        "probability": False, "multi_class": model.multi_class_, "cv": None, "scoring": None,
    }  # fmt: skip
    for name in ("lambda_plus", "lambda_minus", "lambda_l1", "similarity", "kernel_params"):
        if hasattr(model, f"{name}_"):
            given[name] = getattr(model, f"{name}_")
    wanted = model._landmarks
    by_number = are_row_numbers(wanted.given)
    if by_number and not model.kernel_.domain.is_matrix:
        given["landmarks"] = replace(wanted, n=model.landmarks_)
    elif by_number or wanted.given is None:
        share = model._n_chosen / len(model.folds_)  # of a part there are fewer, and others
        rank = wanted.rank
        if rank is not None and rank > PART * model._n_chosen:
            rank = None  # more than the landmarks of a part may have
        given["landmarks"] = replace(wanted, n=None if share == 1 else share, rank=rank)
    return clone(model).set_callbacks().set_params(**given)


def calibration_of(
    model: KreinClassifierBase, X: Objects, y: Array, sample_weight: WeightLike
) -> Any:
    """One sigmoid per class, fitted to decision values of rows that were left out of a fit."""
    from sklearn.calibration import CalibratedClassifierCV  # here, because most fits do without it

    classes, labels = np.unique(y, return_inverse=True)
    if int(np.bincount(labels).min()) < 2:
        raise ValueError(
            "probability=True needs at least two members of every class, got a class with one; "
            "drop it, or pass probability=False"
        )
    folds = folds_of(labels)
    numbered = _with_numbered_classes(model, classes)  # as which its folds see them
    fitted = CalibratedClassifierCV(numbered, method="sigmoid", cv=folds, ensemble=False)
    fitted.fit(X, labels, sample_weight)
    (calibration,) = fitted.calibrated_classifiers_
    calibration.classes = classes
    for number, sigmoid in enumerate(calibration.calibrators):
        positive = labels == (number if len(classes) > 2 else 1)
        _never_fall(sigmoid, float(np.average(positive, weights=sample_weight)))
    calibration.estimator = None  # what it was fitted with is not needed
    return calibration


def folds_of(labels: Array) -> list[tuple[Array, Array]]:
    """Row numbers to fit and to calibrate; a class with fewer objects than folds is in some."""
    k = min(MAX_FOLDS, int(np.bincount(labels).max()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit has said it
        return list(StratifiedKFold(k, shuffle=True, random_state=0).split(labels, labels))


def _with_numbered_classes(model: KreinClassifierBase, classes: Array) -> Any:
    given = model.class_weight
    if not isinstance(given, dict):
        return model
    weights = {number: given[one] for number, one in enumerate(classes.tolist()) if one in given}
    return clone(model).set_params(class_weight=weights)


def _never_fall(sigmoid: Any, prior: float) -> None:
    """Where decisions on rows left out are worse than none, the probability is the prior.

    p = 1 / (1 + exp(a f + b)) rises with the decision value f only if a < 0.
    """
    if sigmoid.a_ > 0:
        sigmoid.a_, sigmoid.b_ = 0.0, -float(logit(prior))


def probabilities(calibration: Any, model: KreinClassifierBase, X: Objects) -> Array:
    """Calibrated probabilities (n, n_classes) of new objects."""
    one = copy(calibration)
    one.estimator = model
    return np.asarray(one.predict_proba(X))
