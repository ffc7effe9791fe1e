"""From scores to probabilities: a sigmoid of each score, or one temperature for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from kreinlearn.solvers import Array


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
        equal = np.full(P.shape, 1 / P.shape[1])
        return np.asarray(np.divide(P, total, out=equal, where=total > 0))


@dataclass(frozen=True)
class Temperature:
    """Probabilities of more than two classes that are proportional to exp(t f + b)."""

    pairs: Array  # (k, 2): t, which is the same for all classes, and b

    def of(self, scores: Array) -> Array:  # (n, k) -> (n, k)
        """The probabilities of all classes."""
        S = np.ascontiguousarray(scores * self.pairs[:, 0] + self.pairs[:, 1])
        E = np.exp(S - S.max(axis=1, keepdims=True))
        return np.asarray(E / E.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class LabelSigmoids:
    """Probabilities 1 / (1 + exp(a f + b)) of labels, of which an object may have any number."""

    pairs: Array  # (k, 2): a and b

    def of(self, scores: Array) -> Array:  # (n, k) -> (n, k)
        """The probability of each label."""
        return np.asarray(expit(-(scores * self.pairs[:, 0] + self.pairs[:, 1])))


Calibration = Sigmoids | Temperature | LabelSigmoids


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
