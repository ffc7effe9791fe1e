"""The sparse machine: an l1 penalty on the coefficients of landmarks, so that few are needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kreinlearn.learn.feature_rows import FeatureRows, with_constant
from kreinlearn.learn.folds import FoldRows
from kreinlearn.learn.learning import Problem, Statistics
from kreinlearn.solvers.margins import DenseRows, Rows, hinge_loss
from kreinlearn.solvers.result import signed_penalty
from kreinlearn.solvers.sparse import l1_max, l1_path
from kreinlearn.sums.moments import total_terms

PATH = np.logspace(0, -4, 17)  # strengths, of the one at which no landmark is left
MAX_ITER = 200  # of a trial


class SparseFit(NamedTuple):
    dual: Any  # (m, q), of C / unit
    intercept: Any  # (q,)
    strength: float  # lambda_l1
    trials: Any  # (t, 3): strength, mean loss, its standard error
    n_iter: int
    converged: bool


def column_scales(squares: Any, n: float) -> Any:
    """1 / root mean square of each column; a column of zeros stays as it is."""
    rms = np.sqrt(np.maximum(squares, 0) / n)
    return np.divide(1.0, rms, out=np.ones_like(rms), where=rms > 0)


def krein_norm(W: Any, S: Any, values: Any, scale: Any) -> Any:
    """Lambda_pm as a quadratic form of coefficients of scaled columns: z = W^+ (scale * a)."""
    P = np.linalg.pinv(W) * scale
    return (P.T * signed_penalty(S, values[0], values[1])) @ P


def fit_sparse(
    problem: Problem,
    statistics: Statistics,
    rows: FeatureRows,
    strength: float | None,
    values: Any,
    outputs: Any,
    max_iter: int,
) -> SparseFit:
    """min mean squared hinge + strength sum_j |a_j| over columns of unit mean square.

    ``values``: penalties of the Krein norms beside it, or None; a strength of None is tuned.
    """
    Y, w = problem.Y, problem.weights
    w = np.ones(len(Y)) if w is None else w
    n = w.sum()
    scale = column_scales(np.diagonal(statistics.gram().triangle), n)
    scaled = rows.with_map(np.diag(scale))
    terms = total_terms([group.terms(np.diag(scale)) for group in statistics.groups])
    A, B = with_constant(terms, problem.intercept)
    Q = None
    if values is not None:
        krein = krein_norm(statistics.map.W, statistics.map.S, values, scale)
        Q = padded(n * krein, problem.intercept)
    weights = np.append(np.ones(len(scale)), np.zeros(int(problem.intercept)))
    starts = [
        l1_max(scaled, y, w, weights, Q, gram=(A, b[:, None]))
        for y, b in zip(Y.T, B.T, strict=True)
    ]
    largest = max(start[0] for start in starts) / n
    trials = np.empty((0, 3))
    if strength is None:
        trials = cross_validated_path(problem, largest * PATH, values, outputs)
        strength = one_standard_error(trials)
    found = [
        list(l1_path(scaled, y, w, weights, path_to(n * strength, n * largest), Q, start[1],
                     max_iter=max_iter))[-1]
        for y, start in zip(Y.T, starts, strict=True)
    ]  # fmt: skip
    coef = np.hstack([solution.coef for solution in found])
    m = len(scale)
    constant = coef[m] if problem.intercept else np.zeros(Y.shape[1])
    n_iter = max(solution.n_iter for solution in found)
    converged = all(solution.converged for solution in found)
    return SparseFit(scale[:, None] * coef[:m], constant, strength, trials, n_iter, converged)


def padded(Q: Any, intercept: bool) -> Any:
    return np.pad(Q, (0, int(intercept)))


def path_to(strength: float, largest: float) -> Any:
    """Falling strengths that end at the one wanted: each solution starts from the last."""
    if strength >= largest:
        return np.array([strength])
    steps = 2 + int(2 * np.log10(largest / strength))
    return np.geomspace(largest, strength, steps)


def cross_validated_path(problem: Problem, strengths: Any, values: Any, outputs: Any) -> Any:
    """Mean squared hinge loss of the validation parts and its standard error, a row a strength."""
    Y, w = problem.held()
    w = np.ones(len(Y)) if w is None else w
    splits = problem.split_rows(columns=True)
    losses = np.array([_path_losses(split, Y[:, outputs], w, strengths, values, problem.intercept)
                       for split in splits])  # fmt: skip
    sizes = np.array([w[split.valid].sum() for split in splits])
    means = losses.sum(axis=0) / sizes.sum()
    spread = np.sqrt(np.square(losses / sizes[:, None] - means).mean(axis=0) / len(splits))
    return np.column_stack([strengths, means, spread])


def _path_losses(
    split: FoldRows, Y: Any, w: Any, strengths: Any, values: Any, intercept: bool
) -> Any:
    assert split.columns is not None
    C, W = split.columns
    n, train, valid = w[split.train].sum(), split.train, split.valid
    scale = column_scales(w[train] @ np.square(C[train]), n)
    F = C * scale
    if intercept:
        F = np.column_stack([F, np.ones(len(F))])
    Q = None if values is None else padded(n * krein_norm(W, split.S, values, scale), intercept)
    weights = np.append(np.ones(len(scale)), np.zeros(int(intercept)))
    rows: Rows = DenseRows(F[train])
    losses = np.zeros(len(strengths))
    for y in Y.T:
        path = l1_path(rows, y[train], w[train], weights, n * strengths, Q, max_iter=MAX_ITER)
        for i, solution in enumerate(path):
            losses[i] += hinge_loss(F[valid] @ solution.coef, y[valid][:, None], w[valid])[0]
    return losses


def one_standard_error(trials: Any) -> float:
    """The largest strength whose loss is within one standard error of the smallest."""
    strengths, means, errors = trials.T
    best = int(np.argmin(means))
    return float(strengths[np.argmax(means <= means[best] + errors[best])])
