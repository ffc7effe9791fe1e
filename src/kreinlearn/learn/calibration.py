"""Probabilities from the scores of objects that were left out, without another fit.

Two classes have a sigmoid, p = 1 / (1 + exp(a f + b)) of the score f (Platt, 1999). More classes
have one temperature t: the probability of class c is proportional to exp(t f_c), which never
changes the order of the classes. Scores of a fit with ``class_weight`` are those of a population in
which classes are as frequent as their weights make them, so that the weight of each class is
divided out again: exp(t f_c) / weight_c. Labels, of which an object may have any number, have one
sigmoid each.
"""

from __future__ import annotations

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.fit import Model
from kreinlearn.learn.held_out import HeldOut
from kreinlearn.learn.stack import fit_stack
from kreinlearn.solvers.probabilities import (
    Calibration,
    LabelSigmoids,
    Sigmoids,
    Temperature,
    sigmoid,
)


def calibration_of(model: Model) -> Calibration:
    """What turns scores into probabilities, fitted to scores of objects that were left out."""
    held, encoded = model.held_out, model.solved.encoded
    assert held is not None
    if encoded.multilabel:
        counts = as_counts(held.weights)
        each = zip(held.scores.T, held.Y.T > 0, strict=True)
        return LabelSigmoids(np.array([sigmoid(f, has, counts) for f, has in each]))
    assert encoded.counts is not None
    of_classes = encoded.class_weights
    if of_classes is None:
        of_classes = np.ones(len(encoded.counts))
    labels = class_numbers(held.Y)
    if len(of_classes) == 2:
        own = np.divide(held.weights, of_classes[labels], out=np.zeros(len(labels)),
                        where=of_classes[labels] > 0)  # fmt: skip
        return Sigmoids(sigmoid(held.scores[:, 0], labels == 1, as_counts(own))[None])
    return temperature(held, labels, of_classes)


def temperature(held: HeldOut, labels: Array, of_classes: Array) -> Temperature:
    """The temperature of smallest log loss; it is 0 if scores are worse than none."""
    k, pairs = len(of_classes), np.zeros((len(of_classes), 2))
    if len(labels):
        pairs[:, 0] = fit_stack(held.scores[None], labels, as_counts(held.weights)).weights[0]
    if not pairs[:, 0].any() and len(labels):  # the shares of the classes are all that is known
        totals = np.bincount(labels, held.weights, minlength=k)
        pairs[:, 1] = np.log((totals + totals.sum() / len(labels)) / totals.sum())
    pairs[:, 1] -= np.log(np.where(of_classes > 0, of_classes, 1.0))
    return Temperature(pairs)


def as_counts(weights: Array) -> Array:
    """Weights whose mean is one, so that their unit does not matter."""
    total = weights.sum()
    return weights * (len(weights) / total) if total > 0 else weights


def class_numbers(Y: Array) -> Array:  # (n, q) -> (n,)
    """Numbers of classes from targets +-1, of which two classes have one column."""
    return np.asarray((Y[:, 0] > 0).astype(np.intp) if Y.shape[1] == 1 else np.argmax(Y, axis=1))
