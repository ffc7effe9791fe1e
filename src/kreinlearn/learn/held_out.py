"""What a fit predicts for objects that had no part in it: for stacks, errors and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.learn.comparison import Comparison, OuterFold
from kreinlearn.learn.left_out import LeftOut
from kreinlearn.learn.neighbours import without_mates
from kreinlearn.learn.similarity import Compared
from kreinlearn.learn.task import Task, weighted
from kreinlearn.pairs.evaluate import places_of
from kreinlearn.pairs.pairs import Sample
from kreinlearn.sums.moments import Targets


@dataclass(frozen=True)
class HeldOut:
    """Scores of some training objects by models without them.

    If all objects are landmarks, least squares leaves out one object at a time. Otherwise the
    models are those of the folds, and the objects are a sample of the rows; if landmarks are fewer
    than half of the rows, all models have seen them, and no landmark is among these objects.
    """

    scores: Array  # (k, q)
    Y: Array  # (k, q) targets
    weights: Array  # (k,)
    near: Near | None = None  # for learners that look at neighbours
    sample: Comparison | None = None  # the objects of ``outer``
    outer: Sequence[OuterFold] = ()  # everything found anew without some objects of the sample
    regrouped: HeldOut | None = None  # the same with equal objects left out otherwise

    @property
    def unseen(self) -> Array | None:  # (k, q)
        """Scores by models for which nothing was chosen by the object, if all objects have them."""
        if not self.outer or self.sample is None or self.sample.n != len(self.scores):
            return None
        scores = np.empty_like(self.scores)
        for fold in self.outer:
            scores[fold.valid] = fold.scores
        return scores


@dataclass(frozen=True)
class Near:
    """What is known about the landmarks near some training objects."""

    values: Array  # (k, m): what the kernel gives for these objects and the landmarks
    own: Array  # (k,): which landmark each object is itself; -1 if it is none
    landmarks: KnownLandmarks | None  # None if they are not among the training objects


@dataclass(frozen=True)
class KnownLandmarks:
    """Landmarks that are training objects: the kernel values among them, and their targets."""

    values: Array  # (m, m)
    Y: Array  # (m, q)
    weights: Array  # (m,)


def held_out(task: Task, found: LeftOut, compared: Compared | None, *, near: bool) -> HeldOut:
    """Scores of training objects with their targets, and if ``near`` with their kernel values."""
    numbers = found.numbers
    held = HeldOut(found.scores, *_targets(task, numbers))
    if near:
        values = _values(task.sample, numbers)
        own, landmarks = _landmarks(task, numbers, values)
        if task.groups is not None and landmarks is not None:
            values = without_mates(
                values, task.groups[numbers], task.groups[task.sample.landmarks],
                similarities=not task.pairs.kernel.is_dissimilarity,
            )  # fmt: skip
        held = replace(held, near=Near(values, own, landmarks))
    if compared is None:
        return held
    held = replace(held, sample=compared.comparison, outer=compared.without_folds())
    other = compared.regrouped()
    if other is None:
        return held
    again = replace(held, sample=other.comparison, outer=other.without_folds())
    return replace(held, regrouped=again)


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
