"""The sparse machine: an l1 penalty on the coefficients of landmarks, so that few are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.left_out import LeftOut, left_out_of_splits
from kreinlearn.learn.losses.hinge import STEPS, SquaredHinge
from kreinlearn.learn.task import Features, FoldRows, Linear, Task, some_outputs
from kreinlearn.solvers.least_squares import signed_penalty
from kreinlearn.solvers.margins import DenseRows, hinge_loss
from kreinlearn.solvers.sparse import l1_max, l1_path
from kreinlearn.sums.moments import total_moments

PATH = np.logspace(0, -4, 17)  # strengths, of the one at which no landmark is left
MAX_ITER = 200  # of a trial


@dataclass(frozen=True)
class SparseHinge(SquaredHinge):
    """Squared hinge + strength * sum_j |a_j| over coefficients of columns of unit mean square.

    The Krein norms stand beside it unless both of their penalties are zero.
    """

    diagonal = False  # coefficients are those of landmarks
    strength: float | None = None  # lambda_l1; None: tuned

    def keeping(self, task: Task, *, by_fold: bool, often: bool) -> Any:
        """A path of strengths looks at the rows many times."""
        return super().keeping(task, by_fold=by_fold, often=True)

    def solve(self, task: Task, features: Features, values: Array, kept: Any) -> Linear:
        """Coefficients of landmarks, not of features, most of them zero."""
        n, m = total_moments(features.terms).n, len(features.map.W)
        scale = column_scales(np.diagonal(features.gram.triangle), n)
        outputs = kept.outputs(task, features, np.diag(scale), n)
        terms = total_moments([group.terms(np.diag(scale)) for group in features.groups])
        A, B = terms.with_constant(intercept=task.intercept)
        norms = values[:2] if np.any(values[:2]) else None
        Q = None
        if norms is not None:
            krein = krein_norm(features.map.W, features.map.S, norms, scale)
            Q = padded(n * krein, task.intercept)
        l1 = np.append(np.ones(m), np.zeros(int(task.intercept)))
        starts = [
            l1_max(rows, y, w, l1, Q, gram=(A, b[:, None]))
            for (rows, y, w), b in zip(outputs, B.T, strict=True)
        ]
        largest = max(start[0] for start in starts) / n
        strength, trials = self.strength, np.empty((0, 3))
        if strength is None:
            trials = cross_validated_path(task, largest * PATH, norms)
            strength = one_standard_error(trials)
        path = path_to(n * strength, n * largest).tolist()
        solutions = [
            list(l1_path(rows, y, w, l1, path, Q, start[1], max_iter=STEPS))[-1]
            for (rows, y, w), start in zip(outputs, starts, strict=True)
        ]
        coef = np.hstack([solution.coef for solution in solutions])
        dual = scale[:, None] * coef[:m]
        active = np.flatnonzero(dual.any(axis=1))
        return Linear(
            dual,
            coef[m] if task.intercept else np.zeros(task.Y.shape[1]),
            max(solution.n_iter for solution in solutions),
            all(solution.converged for solution in solutions),
            attributes={
                "lambda_l1_": strength, "l1_path_": trials, "n_active_landmarks_": len(active),
            },
            landmarks=active if len(active) else np.zeros(1, dtype=np.intp),
        )  # fmt: skip

    def left_out(
        self, task: Task, features: Features, values: Array, kept: Any, solution: Linear
    ) -> LeftOut:
        norms = values[:2] if np.any(values[:2]) else None
        strength = float(solution.attributes["lambda_l1_"])

        def score(split: FoldRows, Y: Array, w: Array) -> Array:
            path = PathFold(split, w, norms, intercept=task.intercept)
            return path.scores(Y, strength)

        return left_out_of_splits(task, task.splits(features.map, columns=True), score)


def column_scales(squares: Array, n: float) -> Array:
    """1 / root mean square of each column; a column of zeros stays as it is."""
    rms = np.sqrt(np.maximum(squares, 0) / n)
    return np.divide(1.0, rms, out=np.ones_like(rms), where=rms > 0)


def krein_norm(W: Array, S: Array, values: Array, scale: Array) -> Array:
    """Lambda_pm as a quadratic form of coefficients of scaled columns: z = W^+ (scale * a)."""
    P = np.linalg.pinv(W) * scale
    return np.asarray((P.T * signed_penalty(S, values[0], values[1])) @ P)


def padded(Q: Array, intercept: bool) -> Array:
    return np.pad(Q, (0, int(intercept)))


def path_to(strength: float, largest: float) -> Array:
    """Falling strengths that end at the one wanted: each solution starts from the last."""
    if strength >= largest:
        return np.array([strength])
    steps = 2 + int(2 * np.log10(largest / strength))
    return np.geomspace(largest, strength, steps)


def cross_validated_path(task: Task, strengths: Array, norms: Array | None) -> Array:  # (t, 3)
    """Each strength with the mean loss of the validation parts and its standard error."""
    Y, w = task.sampled_targets()
    Y, splits = Y[:, some_outputs(Y)], task.splits(columns=True)
    losses = np.array(
        [_path_losses(split, Y, w, strengths, norms, task.intercept) for split in splits]
    )
    sizes = np.array([w[split.valid].sum() for split in splits])
    means = losses.sum(axis=0) / sizes.sum()
    spread = np.sqrt(np.square(losses / sizes[:, None] - means).mean(axis=0) / len(splits))
    return np.column_stack([strengths, means, spread])


class PathFold:
    """The columns of one split in units of their mean square, for machines of any strength."""

    def __init__(self, split: FoldRows, w: Array, norms: Array | None, *, intercept: bool) -> None:
        assert split.columns is not None
        C, W = split.columns
        self.n, self.split, self.w = w[split.train].sum(), split, w
        scale = column_scales(w[split.train] @ np.square(C[split.train]), self.n)
        self.F = C * scale
        if intercept:
            self.F = np.column_stack([self.F, np.ones(len(self.F))])
        self.Q = None
        if norms is not None:
            self.Q = padded(self.n * krein_norm(W, split.S, norms, scale), intercept)
        self.l1 = np.append(np.ones(len(scale)), np.zeros(int(intercept)))
        self.rows = DenseRows(self.F[split.train])

    def path(self, y: Array, strengths: Array, max_iter: int) -> Iterator[Array]:
        """Scores of the validated rows at each of falling strengths, for one output."""
        train = self.split.train
        args = self.rows, y[train], self.w[train], self.l1, self.n * strengths, self.Q
        for solution in l1_path(*args, max_iter=max_iter):
            yield self.F[self.split.valid] @ solution.coef

    def scores(self, Y: Array, strength: float) -> Array:
        """Scores of the validated rows at one strength."""
        train = self.split.train
        made = []
        for y in Y.T:
            largest = l1_max(self.rows, y[train], self.w[train], self.l1, self.Q)[0] / self.n
            made.append(list(self.path(y, path_to(strength, largest), STEPS))[-1])
        return np.hstack(made)


def _path_losses(
    split: FoldRows, Y: Array, w: Array, strengths: Array, norms: Array | None, intercept: bool
) -> Array:
    fold, losses = PathFold(split, w, norms, intercept=intercept), np.zeros(len(strengths))
    Y_valid, w_valid = Y[split.valid], w[split.valid]
    for j, y in enumerate(Y.T):
        for i, scores in enumerate(fold.path(y, strengths, MAX_ITER)):
            losses[i] += hinge_loss(scores, Y_valid[:, [j]], w_valid)[0]
    return losses


def one_standard_error(trials: Array) -> float:
    """The largest strength whose loss is within one standard error of the smallest."""
    strengths, means, errors = trials.T
    best = int(np.argmin(means))
    return float(strengths[np.argmax(means <= means[best] + errors[best])])
