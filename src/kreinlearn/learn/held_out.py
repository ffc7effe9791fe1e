"""What a fit predicts for objects that had no part in it: for stacks, errors and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.learn.comparison import OuterFold
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

    If all objects are landmarks, these are all objects of positive weight. Otherwise they are a
    sample of the rows; if landmarks are fewer than half of the rows, all models have seen them, and
    no landmark is among these objects.
    """

    scores: Array  # (k, q)
    Y: Array  # (k, q) targets
    weights: Array  # (k,)
    groups: Array | None = None  # (k,) numbers of groups that were left out together
    near: Near | None = None  # for learners that look at neighbours
    compared: Compared | None = None  # how some objects were compared
    whole: bool = False  # whether they are the objects above, in the same order
    outer: Sequence[OuterFold] = ()  # everything found anew without some of them

    def found_anew(self) -> HeldOut:
        """The same, with everything found anew without some of the objects that were compared."""
        if self.compared is None:
            return self
        few = self.compared.thinned()
        whole = self.whole and few is self.compared
        return replace(self, compared=few, whole=whole, outer=few.without_folds())

    def regrouped(self) -> HeldOut | None:
        """The same with equal objects left out together if they were not, and the other way round.

        None if hardly any objects are equal, or hardly any differ.
        """
        other = None if self.compared is None else self.compared.regrouped()
        return None if other is None else replace(self, compared=other).found_anew()

    @property
    def unseen(self) -> Array | None:  # (k, q)
        """Scores by models for which nothing was chosen by the object, if all objects have them."""
        if not self.outer or not self.whole:
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
    groups = None if task.groups is None else task.groups[numbers]
    whole = compared is not None and np.array_equal(numbers, compared.numbers)
    held = HeldOut(
        found.scores, *_targets(task, numbers), groups, compared=compared, whole=whole
    )  # fmt: skip
    if not near:
        return held
    values = _values(task.sample, numbers)
    own, landmarks = _landmarks(task, numbers, values)
    if task.groups is not None and landmarks is not None:
        values = without_mates(
            values, task.groups[numbers], task.groups[task.sample.landmarks],
            similarities=not task.pairs.kernel.is_dissimilarity,
        )  # fmt: skip
    return replace(held, near=Near(values, own, landmarks))


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
