"""What a fit predicts for objects that had no part in it: for stacks, errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.learn.exact import tuning_loss
from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.task import Features, Task, weighted
from kreinlearn.pairs.evaluate import places_of
from kreinlearn.pairs.pairs import Sample
from kreinlearn.solvers.exact import LeaveOneOutLoss
from kreinlearn.solvers.least_squares import signed_penalty
from kreinlearn.sums.moments import Targets, total_moments


@dataclass(frozen=True)
class HeldOut:
    """Scores of some training objects by models without them, and their kernel values.

    If all objects are landmarks, ``scores`` leave out one object at a time. Otherwise the models
    are those of the folds, and the objects are a sample of the rows; if landmarks are fewer than
    half of the rows, all models have seen them, and no landmark is among these objects.
    """

    scores: Array  # (k, q)
    Y: Array  # (k, q) targets
    weights: Array  # (k,)
    values: Array  # (k, m): what the kernel gives for these objects and the landmarks
    own: Array  # (k,): which landmark each object is itself; -1 if it is none
    landmarks: KnownLandmarks | None  # None if they are not among the training objects


@dataclass(frozen=True)
class KnownLandmarks:
    """Landmarks that are training objects: the kernel values among them, and their targets."""

    values: Array  # (m, m)
    Y: Array  # (m, q)
    weights: Array  # (m,)


def held_out(task: Task, features: Features, loss: Loss, penalties: Array) -> HeldOut:
    """Scores of training objects by models without them, at the penalties that were found."""
    if features.basis is not None and task.leaves_one_out:
        left_out = task.tuning
        if not isinstance(left_out, LeaveOneOutLoss):
            left_out = tuning_loss(task, basis=features.basis)
        assert isinstance(left_out, LeaveOneOutLoss)
        numbers, scores = task.sample.landmarks, left_out.scores(penalties)
    else:
        scores = _scores_of_folds(task, features, loss, penalties)
        tested = np.flatnonzero(np.isfinite(scores).all(axis=1))
        numbers, scores = task.numbers[tested], scores[tested]
    values = _values(task.sample, numbers)
    return HeldOut(scores, *_targets(task, numbers), values, *_landmarks(task, numbers, values))


def _targets(task: Task, numbers: Array) -> tuple[Array, Array]:
    """Targets and weights of rows."""
    Y, w = weighted(*Targets(task.Y, task.weights).of(numbers))
    return np.asarray(Y, dtype=np.float64), w


def _values(sample: Sample, numbers: Array) -> Array:
    """Kernel values of rows of the sample and the landmarks."""
    if np.array_equal(numbers, sample.rows) and np.array_equal(sample.landmarks, sample.columns):
        return sample.raw
    columns = places_of(sample.landmarks, sample.columns)
    return np.asarray(sample.raw[np.ix_(sample.positions(numbers), columns)])


def _landmarks(task: Task, numbers: Array, values: Array) -> tuple[Array, KnownLandmarks | None]:
    """Which landmark each row is, and what is known about the landmarks."""
    landmarks, own = task.sample.landmarks, np.full(len(numbers), -1)
    if landmarks[0] < 0:  # from outside X
        return own, None
    among = np.isin(numbers, landmarks)
    own[among] = places_of(numbers[among], landmarks)
    if not np.array_equal(numbers, landmarks):
        values = symmetrised(_values(task.sample, landmarks))
    return own, KnownLandmarks(values, *_targets(task, landmarks))


def _scores_of_folds(task: Task, features: Features, loss: Loss, penalties: Array) -> Array:
    """Scores of the sampled rows by the models of the folds without them; NaN if in no fold."""
    Y, w = _targets(task, task.numbers)
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
