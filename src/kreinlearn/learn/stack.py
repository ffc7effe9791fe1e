"""Several scores of the same objects, added with weights that are not negative.

The weights are those of a conditional logit: the probability of class c is proportional to
exp(sum_m w_m part_m(c)), and the weights w have the smallest log loss of the labels. One part
alone gives a temperature, which turns any scores into probabilities.

Labels are smoothed. They are taken to be wrong, and then of any class, as if by ``SMOOTH`` of the
objects. Together with a tiny ridge this keeps weights finite where classes are perfectly separated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from kreinlearn.kernels.base import Array

SMOOTH = 1.0  # objects whose labels are taken to be wrong
RIDGE = 1.0  # penalty of the squared weights of scaled parts, for all objects together
CLIPPED = 0.005  # share of the scores at each end that score_range leaves out
DECREASE = 1e-4  # part of the decrease that a gradient promises which a step must achieve
FULL_STEPS = 1e-12  # promised decrease of the loss below which it is not tested: it is rounded
LAST_STEP = 1e-18  # promised decrease of the loss at which a step is the last one
MOST_STEPS, MOST_HALVINGS = 100, 60  # more than a convex loss needs


@dataclass(frozen=True)
class Stack:
    """Weights of parts, and the log loss of the objects they were fitted to."""

    weights: Array  # (M,), not negative
    loss: float  # mean log loss of smoothed labels, without the ridge
    converged: bool = True

    def scores(self, parts: Array) -> Array:  # (M, n, q) -> (n, q)
        """The weighted sum of parts."""
        return weighted_sum(self.weights, parts)


def stack_bytes(n_parts: int, n: int, q: int, *, several: bool) -> int:
    """The memory of parts (M, n, q), and of what ``fit_stack`` or ``fit_label_stack`` makes.

    Beside the parts these are X, a copy of it in the Hessian, and a few arrays of the size of one
    part; labels have two columns each, in one more array.
    """
    return 8 * n * q * (7 * n_parts + 10 if several else 3 * n_parts + 6)


def fit_stack(parts: Array, labels: Array, weights: Array | None = None) -> Stack:
    """Weights of the parts (M, n, q) that have the smallest log loss of the labels (n,).

    What is added to all scores of a row does not matter, and neither does the unit of a part.
    Integer ``weights`` have the same effect as repeated rows.
    """
    if weights is None:
        weights = np.ones(len(labels))
    counted = weights > 0
    if not counted.all():  # or else a copy of all scores would be made for nothing
        parts, labels, weights = np.asarray(parts)[:, counted], labels[counted], weights[counted]
    total = float(weights.sum())
    shares = weights / total
    X, units = scaled(parts, shares)
    T = smoothed(labels, parts.shape[2], total)
    minimum = smallest_loss(Logit(X, T, shares, RIDGE / total))
    loss = minimum.value - RIDGE / total * float(minimum.v @ minimum.v)
    return Stack(minimum.v / units, loss, minimum.converged)


def fit_label_stack(parts: Array, Y: Array, weights: Array) -> Stack:
    """The same for labels, of which an object may have any number, with targets Y (n, L).

    Each label is a problem of two classes, for which the parts (M, n, L) are logarithms of odds;
    all labels have the same weights.
    """
    halves = two_columns(parts.reshape(len(parts), -1, 1) / 2)
    return fit_stack(halves, (Y > 0).ravel().astype(np.intp), np.repeat(weights, Y.shape[1]))


def two_columns(scores: Array) -> Array:  # (..., n, 1) -> (..., n, 2)
    """One score per class, also where two classes share the column f: then [-f, f]."""
    if scores.shape[-1] > 1:
        return scores
    return np.concatenate([-scores, scores], axis=-1)


def probabilities(scores: Array) -> Array:  # (n, q) -> (n, q)
    """Probabilities of classes that are proportional to exp(score)."""
    scores = np.ascontiguousarray(scores)
    E = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def score_range(scores: Array, weights: Array | None = None) -> tuple[float, float]:
    """The range of scores (n, q) of objects that were left out, but for the outermost 0.5 %.

    Scores of new objects beyond it are extrapolated, and should be clipped. The lower end is a
    quantile of the smallest score of each object, and the upper end of the largest one, so that
    it does not matter how many classes there are. If all scores change their sign, so does the
    range.
    """
    if weights is None:
        weights = np.ones(len(scores))
    scores, weights = scores[weights > 0], weights[weights > 0]
    low, high = scores.min(axis=1), scores.max(axis=1)
    return lower_quantile(low, weights), -lower_quantile(-high, weights)


def lower_quantile(values: Array, weights: Array) -> float:
    """The smallest value up to which there is the share ``CLIPPED`` of the weights."""
    order = np.argsort(values, kind="stable")
    weight_up_to = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(weight_up_to, CLIPPED * weight_up_to[-1])]])


def weighted_sum(w: Array, parts: Array) -> Array:  # (M,), (M, ...) -> (...)
    """The sum of w_m part_m, added in order, so that it has the same bits for any rows."""
    total = w[0] * parts[0]
    for weight, part in zip(w[1:], parts[1:], strict=True):
        total += weight * part
    return np.asarray(total)


def scaled(parts: Array, shares: Array) -> tuple[Array, Array]:  # (M, n, q) -> (M, q, n), (M,)
    """Parts whose rows have mean zero and whose mean square is one, and the units they were in.

    A part that has equal scores in every row, up to rounding, becomes zero.
    """
    X = np.array(parts.swapaxes(1, 2), dtype=np.float64, order="C")
    units = np.ones(len(X))
    for m, x in enumerate(X):  # (q, n)
        rounding = len(x) * np.finfo(np.float64).eps * np.abs(x).max()
        x -= x.mean(axis=0)
        largest = np.abs(x).max()
        if largest <= rounding:
            x[:] = 0.0
        else:
            x /= largest
            size = np.sqrt(np.sum(shares * np.square(x).mean(axis=0)))
            x /= size
            units[m] = largest * size
    return X, units


def smoothed(labels: Array, n_classes: int, total: float) -> Array:  # (n,) -> (q, n)
    """Probabilities of the classes by the label alone, if ``SMOOTH`` labels are wrong."""
    wrong = SMOOTH / (total + 2 * SMOOTH)
    right = labels == np.arange(n_classes)[:, None]
    return np.asarray((1 - wrong) * right + wrong / n_classes)


@dataclass(frozen=True)
class Logit:
    """The log loss of labels T by scores sum_m v_m X_m, with a ridge; convex in the weights v.

    f(v) = sum_i shares_i (log sum_c exp S_ci - sum_c T_ci S_ci) + ridge |v|^2,  S = sum_m v_m X_m

    Classes come before rows: sums over a few classes are then sums of long vectors, which is fast.
    No sum is left to BLAS, where it may depend on the number of threads.
    """

    X: Array  # (M, q, n)
    T: Array  # (q, n), columns sum to one
    shares: Array  # (n,), of the rows in the mean; their sum is one
    ridge: float

    def value(self, v: Array) -> tuple[float, Array]:  # (M,) -> f, (q, n)
        """The loss, and the probabilities of the classes."""
        S = weighted_sum(v, self.X)
        S -= S.max(axis=0)
        losses = -np.einsum("cn,cn->n", self.T, S)  # no term is negative, here and below
        P = np.exp(S, out=S)
        Z = P.sum(axis=0)
        losses += np.log(Z)
        P /= Z
        return float(np.sum(self.shares * losses) + self.ridge * np.sum(v * v)), P

    def gradient(self, v: Array, P: Array) -> Array:  # (M,), (q, n) -> (M,)
        """The gradient in v, from the probabilities P at v."""
        R = P - self.T
        slopes = [np.sum(self.shares * np.einsum("cn,cn->n", R, x)) for x in self.X]
        return np.array(slopes) + 2 * self.ridge * v

    def hessian(self, P: Array) -> Array:  # (q, n) -> (M, M)
        """Mean covariance of the parts by the probabilities of the classes, plus the ridge."""
        C = self.X - np.einsum("cn,mcn->mn", P, self.X)[:, None]
        C *= np.sqrt(self.shares * P)
        C = C.reshape(len(C), -1)
        return np.asarray(np.einsum("ma,ka->mk", C, C) + 2 * self.ridge * np.eye(len(C)))


class Minimum(NamedTuple):
    """Weights of the smallest loss, and this loss."""

    v: Array  # (M,)
    value: float
    converged: bool


def smallest_loss(logit: Logit) -> Minimum:
    """Minimise the loss over v >= 0 by Newton's method, from v = 0.

    Each step goes to, or towards, the non-negative minimum of the quadratic model, so that it also
    decides which weights are zero. It is halved until the loss decreases enough. If the first step
    promises no decrease but rounding, no part predicts anything, and all weights are exactly zero.
    """
    v = np.zeros(len(logit.X))
    value, P = logit.value(v)
    for _ in range(MOST_STEPS):
        g = logit.gradient(v, P)
        goal = quadratic_minimum(v, g, logit.hessian(P))
        slope = float(g @ (goal - v))
        if -slope <= LAST_STEP:
            last = goal if v.any() else v
            return Minimum(last, logit.value(last)[0], True)
        v, value, P = step_towards(logit, v, value, goal, slope)
    return Minimum(v, value, False)


def quadratic_minimum(v: Array, g: Array, H: Array) -> Array:  # (M,), (M,), (M, M) -> (M,)
    """argmin g'(u - v) + (u - v)'H(u - v)/2 over u >= 0.

    With H = R'R it is the non-negative u for which |R u - (R v - R'^-1 g)| is smallest.
    """
    R = cholesky(H)
    goal, _ = nnls(R, R @ v - solve_triangular(R, g, trans="T"), maxiter=100 * len(v))
    return np.asarray(goal)


def step_towards(
    logit: Logit, v: Array, value: float, goal: Array, slope: float
) -> tuple[Array, float, Array]:
    """The first of goal, half way to goal, ... where the loss is sufficiently below ``value``.

    It is the goal itself where the steps are so small that the quadratic model is exact.
    """
    length = 1.0
    for _ in range(MOST_HALVINGS):
        u = (1 - length) * v + length * goal
        new, P = logit.value(u)
        if -slope <= FULL_STEPS or new <= value + DECREASE * length * slope:
            break
        length /= 2
    return u, new, P
