"""What a fit predicts for objects that had no part in it: for stacks, errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.exact import tuning_loss
from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.task import Features, Task, weighted
from kreinlearn.pairs.evaluate import places_of
from kreinlearn.solvers.least_squares import signed_penalty
from kreinlearn.solvers.resolvent import LeaveOneOutLoss
from kreinlearn.sums.moments import Targets, total_moments


@dataclass(frozen=True)
class HeldOut:
    """Scores of some training objects by models without them, and their kernel values.

    If all objects are landmarks, ``scores`` leave out one object at a time, and ``values`` are
    those among all objects. Otherwise the objects are a sample of the rows, none of them a
    landmark, and the models are those of the folds.
    """

    scores: Array  # (k, q)
    Y: Array  # (k, q) targets
    weights: Array  # (k,)
    values: Array  # (k, m): what the kernel gives for these objects and the landmarks
    of_landmarks: Array | None  # (m, m): the same among the landmarks; None if values are those
    Y_landmarks: Array | None  # (m, q); None if landmarks are not among the training objects


def held_out(task: Task, features: Features, loss: Loss, penalties: Array) -> HeldOut:
    """Scores of training objects by models without them, at the penalties that were found."""
    sample = task.sample
    landmarks = places_of(sample.landmarks, sample.columns)
    if features.basis is not None and task.leaves_one_out:
        left_out = task.tuning
        if not isinstance(left_out, LeaveOneOutLoss):
            left_out = tuning_loss(task, basis=features.basis)
        assert isinstance(left_out, LeaveOneOutLoss)
        Y, w = _targets_of(task, sample.landmarks)  # in the order of the eigenbasis
        among = sample.raw[sample.positions(sample.landmarks)][:, landmarks]
        return HeldOut(left_out.scores(penalties), Y, w, among, None, Y)
    raw = sample.raw[sample.inside][:, landmarks]
    Y, w = _targets_of(task, task.numbers)
    scores = _scores_of_folds(task, features, loss, penalties, Y, w)
    tested = np.flatnonzero(np.isfinite(scores).all(axis=1))
    at = sample.positions(sample.landmarks)
    of_landmarks = 0.5 * (sample.raw[at][:, landmarks] + sample.raw[at][:, landmarks].T)
    Y_landmarks = None
    if sample.landmarks[0] >= 0:
        Y_landmarks = _targets_of(task, sample.landmarks)[0]
    return HeldOut(scores[tested], Y[tested], w[tested], raw[tested], of_landmarks, Y_landmarks)


def _targets_of(task: Task, numbers: Array) -> tuple[Array, Array]:
    """Targets and weights of some rows, as numbers of double precision."""
    Y, w = weighted(*Targets(task.Y, task.weights).of(numbers))
    return np.asarray(Y, dtype=np.float64), w


def _scores_of_folds(
    task: Task, features: Features, loss: Loss, penalties: Array, Y: Array, w: Array
) -> Array:
    """Scores of the sampled rows by the models of the folds without them; NaN if in no fold."""
    scores = np.full(Y.shape, np.nan)
    if task.honest or features.basis is not None:
        solve = partial(loss.solve_rows, intercept=task.intercept)
        for split in task.splits(features.map):
            penalty = w[split.train].sum() * signed_penalty(split.S, *penalties[:2])
            model = solve(split.Phi[split.train], Y[split.train], w[split.train], penalty)
            scores[split.valid] = split.Phi[split.valid] @ model.coef + model.intercept
        return scores
    Phi, folds = task.sampled_features(features.map), task.folds[task.numbers]
    terms = features.terms
    total = total_moments(terms)
    for k, part in enumerate(terms[:-1]):
        here = np.flatnonzero(folds == k)
        if len(here) and part.n < total.n:
            train = total.minus(part).centred(intercept=task.intercept)
            model = loss.solve_sums(train, features.map.S, penalties)
            scores[here] = Phi[here] @ model.coef + model.intercept
    return scores
