"""Probabilities from the scores of objects that were left out, without another fit.

Two classes have a sigmoid, p = 1 / (1 + exp(a f + b)) of the score f (Platt, 1999). More classes
have one temperature t: the probability of class c is proportional to exp(t f_c), which never
changes the order of the classes. Scores of a fit with ``class_weight`` are those of a population in
which classes are as frequent as their weights make them, so that the weight of each class is
divided out again: exp(t f_c) / weight_c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from kreinlearn.kernels.base import Array
from kreinlearn.learn.fit import Model
from kreinlearn.learn.held_out import HeldOut
from kreinlearn.learn.stack import fit_stack
from kreinlearn.learn.stack import probabilities as softmax


@dataclass(frozen=True)
class Sigmoids:
    """Probabilities 1 / (1 + exp(a f + b)), of more than two classes divided by their sum."""

    pairs: Array  # (1, 2) or (k, 2): a and b

    def of(self, scores: Array) -> Array:  # (n,) or (n, k) -> (n, k)
        """The probabilities of all classes."""
        P = expit(-(scores.reshape(len(scores), -1) * self.pairs[:, 0] + self.pairs[:, 1]))
        if P.shape[1] == 1:
            return np.column_stack([1 - P, P])
        total = P.sum(axis=1, keepdims=True)
        return np.divide(P, total, out=np.full(P.shape, 1 / P.shape[1]), where=total > 0)


@dataclass(frozen=True)
class Temperature:
    """Probabilities of more than two classes that are proportional to exp(t f + b)."""

    pairs: Array  # (k, 2): t, which is the same for all classes, and b

    def of(self, scores: Array) -> Array:  # (n, k) -> (n, k)
        """The probabilities of all classes."""
        return softmax(scores * self.pairs[:, 0] + self.pairs[:, 1])


Calibration = Sigmoids | Temperature


def calibration_of(model: Model) -> Calibration:
    """What turns scores into probabilities, fitted to scores of objects that were left out."""
    held, encoded = model.held_out, model.solved.encoded
    assert held is not None
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


def sigmoid(f: Array, positive: Array, w: Array) -> Array:  # (n,), (n,), (n,) -> (2,)
    """a and b of smallest log loss, for Platt's targets, which are not quite 0 and 1.

    The probability must rise with the score, that is a < 0. Where scores of objects that were left
    out are worse than none, a is 0 and the probability is the share of the class.
    """
    above, below = float(w[positive].sum()), float(w[~positive].sum())
    T = np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))
    seen = min(above, below) > 0
    share = above / (above + below) if seen else (above + 1) / (above + below + 2)
    constant = np.array([0.0, -float(logit(share))])
    unit = float(np.abs(f).max(initial=0.0))
    if not unit or not seen:
        return constant
    F = np.column_stack([f / unit, np.ones(len(f))])

    def loss(v: Array) -> tuple[float, Array]:
        margin = F @ v
        slope = w * (T - expit(-margin))
        return float(w @ (T * margin + np.logaddexp(0, -margin))), slope @ F

    def hessian(v: Array) -> Array:
        p = expit(F @ v)
        return np.asarray((F.T * (w * p * (1 - p))) @ F)

    found = minimize(loss, constant, jac=True, hess=hessian, method="trust-exact",
                     options={"gtol": 1e-9 * max(1.0, len(f))}).x  # fmt: skip
    return np.array([found[0] / unit, found[1]]) if found[0] < 0 else constant
