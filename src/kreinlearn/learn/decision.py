"""How the front door decides: scores of least squares and of neighbours, and what to expect of it.

The expected error is that of everything that was chosen. Without a third of the objects everything
is found anew, three times, so that ``outer`` is the error of models of fewer objects that have
never seen what they predict, and ``inner`` is what these models believed of themselves. With
``left`` for what the final model believes of itself, in the same way,

    E = left + outer - inner

is what the final model believes, and how much too good that is; of squared errors it is
left * outer / inner. If similarities were compared on n of N objects, the second part counts n / N
times. What is believed is that of scores by models without the object alone; the decision itself is
made of unseen scores as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.calibration import class_numbers
from kreinlearn.learn.comparison import OuterFold
from kreinlearn.learn.held_out import HeldOut, KnownLandmarks
from kreinlearn.learn.neighbours import LabelNeighbours, NeighbourScores, without_mates
from kreinlearn.learn.stack import (
    fit_label_stack,
    fit_stack,
    score_range,
    two_columns,
    weighted_sum,
)

UNDECIDED = 1e-6  # the weight of the only part if no part predicts objects that are left out
ALL_NUMBERS = (-np.finfo(np.float64).max, np.finfo(np.float64).max)
NONE_WRONG = 1.5  # objects: twice the standard error is at least 3 / n, which no errors leave open


@dataclass(frozen=True)
class Decision:
    """Weights of several scores, of which that of least squares is the first."""

    weights: Array  # (M,)
    range: Array  # (2,) of the scores of least squares
    neighbours: NeighbourScores | LabelNeighbours | None
    several: bool  # whether objects have sets of labels

    @classmethod
    def fit(
        cls, scores: Array, Y: Array, w: Array, values: Array, own: Array,
        landmarks: KnownLandmarks | None, *, several: bool, similarities: bool,
        copies: int = 1,
    ) -> Self:  # fmt: skip
        """Weights of smallest log loss, for objects that were left out.

        ``values`` (n, m) are what the kernel gives for these objects and the landmarks, of which
        ``own`` says which one each object is. There may be several ``copies`` of each object, with
        scores of their own.
        """
        near = None
        if landmarks is not None:
            near = neighbours_of(landmarks, several, similarities=similarities)
        w = w * (len(w) / copies / w.sum())
        limits = np.array(score_range(scores, w))
        truth = Y > 0 if several else class_numbers(Y)
        parts = _parts(scores, near, values, own, several=several)
        weights = (fit_label_stack if several else fit_stack)(parts, truth, w).weights
        if not weights.any():  # about equal probabilities, and one part decides on the class
            weights = np.zeros(len(parts))
            weights[int(near is not None and bool(near.counts.all()))] = UNDECIDED
            limits = np.array(ALL_NUMBERS)
        return cls(weights, limits, near, several)

    @classmethod
    def of(cls, held: HeldOut, *, several: bool, similarities: bool) -> Self:
        """The decision of a model, by scores of two kinds where there are both.

        For those of ``held`` everything was chosen by the same objects, which makes them too good;
        unseen ones are of models of fewer objects, which makes them worse. Both count half.
        """
        near, unseen = held.near, held.unseen
        assert near is not None
        scores = [held.scores] if unseen is None else [held.scores, unseen]
        Y, w, values, own = (
            np.concatenate([one] * len(scores))
            for one in (held.Y, held.weights, near.values, near.own)
        )
        return cls.fit(
            np.concatenate(scores), Y, w, values, own, near.landmarks, several=several,
            similarities=similarities, copies=len(scores),
        )  # fmt: skip

    def sums(self, scores: Array, values: Array, own: Array | None = None) -> Array:
        """The sum of all parts for every class, or for the odds of every label."""
        scores = np.clip(scores, *self.range)
        return weighted_sum(
            self.weights, _parts(scores, self.neighbours, values, own, several=self.several)
        )

    def wrong(self, scores: Array, Y: Array, values: Array, own: Array | None = None) -> Array:
        """Whether each object is misclassified, or has a wrong label."""
        sums = self.sums(scores, values, own)
        if self.several:
            return np.asarray(((sums > 0) != (Y > 0)).any(axis=1), dtype=np.float64)
        return np.asarray(np.argmax(sums, axis=1) != class_numbers(Y), dtype=np.float64)


def _parts(
    scores: Array, near: NeighbourScores | LabelNeighbours | None, values: Array,
    own: Array | None, *, several: bool,
) -> Array:  # (M, n, n_classes)  # fmt: skip
    """All parts of the decision: least-squares scores f of a class, 2 f of a label.

    2 f is the logarithm of the odds if having the label has the score f, and not having it -f.
    """
    first = 2 * scores if several else two_columns(scores)
    return np.stack([first] if near is None else [first, *near.of(values, own)])


def neighbours_of(
    known: KnownLandmarks, several: bool, *, similarities: bool
) -> NeighbourScores | LabelNeighbours:
    """What scores classes, or several labels, by the landmarks near an object."""
    if several:
        return LabelNeighbours.fit(known.values, known.Y, known.weights, similarities=similarities)
    return NeighbourScores.fit(
        known.values, class_numbers(known.Y), max(known.Y.shape[1], 2), known.weights,
        similarities=similarities,
    )  # fmt: skip


# What to expect


class Expected(NamedTuple):
    """The error to expect of new objects, and what it was found from."""

    mean: float
    standard_error: float
    outer: float  # of models of fewer objects that have never seen what they predict


def expected_class_error(held: HeldOut, decision: Decision, *, similarities: bool) -> Expected:
    """The error rate to expect of new objects."""
    near = held.near
    assert near is not None
    fit = partial(Decision.fit, several=decision.several, similarities=similarities)
    of_all = fit(held.scores, held.Y, held.weights, near.values, near.own, near.landmarks)
    left = of_all.wrong(held.scores, held.Y, near.values, near.own)
    groups = None if held.compared is None else held.compared.comparison.groups

    def judged(fold: OuterFold, Y: Array, w: Array) -> tuple[Array, Array]:
        own, (Y_train, w_train) = np.arange(len(fold.train)), (Y[fold.train], w[fold.train])
        values, values_valid = fold.near[fold.train], fold.near[fold.valid]
        known = KnownLandmarks(values, Y_train, w_train)
        if groups is not None:
            mates = groups[fold.train]
            values = without_mates(values, mates, mates, similarities=similarities)
        one = fit(fold.inner, Y_train, w_train, values, own, known)
        inner = one.wrong(fold.inner, Y_train, values, own)
        return inner, one.wrong(fold.scores, Y[fold.valid], values_valid)

    found = by_difference(held, left, errors_anew(held, judged))
    return found._replace(mean=min(max(found.mean, 0.0), 1.0))


def expected_square(held: HeldOut) -> Expected:
    """The mean squared error to expect of new objects."""

    def squares(scores: Array, Y: Array) -> Array:
        return np.asarray(np.square(scores - Y).mean(axis=1))

    def judged(fold: OuterFold, Y: Array, w: Array) -> tuple[Array, Array]:
        return squares(fold.inner, Y[fold.train]), squares(fold.scores, Y[fold.valid])

    return by_ratio(held, squares(held.scores, held.Y), errors_anew(held, judged))


def by_difference(held: HeldOut, left: Array, anew: Anew | None) -> Expected:
    """left + outer - inner of error rates, whose standard error is that of counting at least."""
    believed, error = mean_and_error(left, held.weights, held.groups)
    least = NONE_WRONG / effective_number(held.weights, held.groups)
    if anew is None:
        return Expected(believed, max(error, least), believed)
    part, gap = anew.share_of(left), anew.outer - anew.inner
    too_good, of_gap = anew.mean_and_error(gap)
    error = anew.mean_and_error(left + gap)[1] if held.whole else np.hypot(error, part * of_gap)
    mean = believed + part * too_good
    return Expected(mean, max(float(error), least), anew.mean_and_error(anew.outer)[0])


def by_ratio(held: HeldOut, left: Array, anew: Anew | None) -> Expected:
    """left * outer / inner of squared errors, and no more than outer.

    Squares of models of fewer objects and of all may differ by orders of magnitude, so that a
    difference of them could be anything.
    """
    believed, error = mean_and_error(left, held.weights, held.groups)
    least = NONE_WRONG / effective_number(held.weights, held.groups)
    if anew is None:
        return Expected(believed, max(error, least * believed), believed)
    part = anew.share_of(left)
    (outer, of_outer), (inner, of_inner) = map(anew.mean_and_error, (anew.outer, anew.inner))
    if not min(believed, outer, inner) > 0:
        mean = max(believed, part * outer)
        return Expected(mean, max(error, least * mean), outer)
    mean = min(believed * (1 + part * (outer / inner - 1)), max(outer, believed))
    if held.whole:
        relative = left / believed + anew.outer / outer - anew.inner / inner
        error = mean * anew.mean_and_error(relative)[1]
    else:
        error = np.hypot(error, part * believed * np.hypot(of_outer / outer, of_inner / inner))
    return Expected(mean, max(float(error), least * mean), outer)


class Anew(NamedTuple):
    """Errors of the objects that were compared, where everything was found anew."""

    outer: Array  # (n,) of each object, by models that have never seen it
    inner: Array  # (n,) the same as those models judge themselves that were made of the object
    weights: Array  # (n,)
    groups: Array | None

    def share_of(self, left: Array) -> float:
        """The number of objects that were compared, of all that were left out."""
        return min(len(self.outer) / len(left), 1.0)

    def mean_and_error(self, values: Array) -> tuple[float, float]:
        return mean_and_error(values, self.weights, self.groups)


def errors_anew(
    held: HeldOut, judged: Callable[[OuterFold, Array, Array], tuple[Array, Array]]
) -> Anew | None:
    """What ``judged`` says of each fold: errors of its training part, and of the others."""
    if not held.outer or held.compared is None:
        return None
    sample = held.compared.comparison
    w = np.ones(sample.n) if sample.w is None else sample.w
    outer, inner, times = np.zeros((3, sample.n))
    for fold in held.outer:
        of_train, outer[fold.valid] = judged(fold, sample.Y, w)
        inner[fold.train] += of_train
        times[fold.train] += 1
    return Anew(outer, inner / times, w, sample.groups)


def mean_and_error(values: Array, weights: Array, groups: Array | None) -> tuple[float, float]:
    """A weighted mean, and its standard error if the values of a group go together."""
    shares = weights / weights.sum()
    mean = float(shares @ values)
    off = shares * (values - mean)
    return mean, float(np.linalg.norm(off if groups is None else np.bincount(groups, off)))


def effective_number(weights: Array, groups: Array | None) -> float:
    """How many objects, or groups, of equal weight tell as much."""
    shares = weights / weights.sum()
    totals = shares if groups is None else np.bincount(groups, shares)
    return 1 / float(np.square(totals).sum())
