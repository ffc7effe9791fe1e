"""Probabilities: decision values calibrated by CalibratedClassifierCV, never turned round."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from kreinlearn.learn.folds import fold_count


def calibration_of(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """A sigmoid a class, fitted to decision values of rows that were left out of a fit."""
    classes, labels = np.unique(y, return_inverse=True)
    smallest = int(np.bincount(labels).min())
    if smallest < 2:
        raise ValueError(
            "probability=True needs at least two members of every class, got a class with one; "
            "drop it, or pass probability=False"
        )
    folds = StratifiedKFold(fold_count(len(y), np.bincount(labels)), shuffle=True, random_state=0)
    numbered = _with_numbered_classes(model, classes)  # as which its folds see them
    calibrated = CalibratedClassifierCV(numbered, method="sigmoid", cv=folds, ensemble=False)
    calibrated.fit(X, labels, sample_weight)
    (found,) = calibrated.calibrated_classifiers_
    found.classes = classes
    for number, sigmoid in enumerate(found.calibrators):
        positive = labels == (number if len(classes) > 2 else 1)
        _never_fall(sigmoid, float(np.average(positive, weights=sample_weight)))
    found.estimator = None  # what it was fitted with is not needed
    return found


def _with_numbered_classes(model: Any, classes: Any) -> Any:
    given = model.class_weight
    if not isinstance(given, dict):
        return model
    weights = {number: given[one] for number, one in enumerate(classes.tolist()) if one in given}
    return clone(model).set_params(class_weight=weights)


def _never_fall(sigmoid: Any, prior: float) -> None:
    """Where left-out decisions are worse than none the probability is the prior, not its reverse.

    p = 1 / (1 + exp(a f + b)) rises with f if a < 0.
    """
    if sigmoid.a_ > 0:
        sigmoid.a_, sigmoid.b_ = 0.0, -float(logit(prior))


def probabilities(calibration: Any, model: Any, X: Any) -> Any:
    one = copy(calibration)
    one.estimator = model
    return one.predict_proba(X)
