"""The fits of an evaluation: every learner on every fold, as far as its time allows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from kreinlearn.evaluation.learners import Learner, Settings
from kreinlearn.evaluation.result import Score
from kreinlearn.evaluation.targets import Targets
from kreinlearn.evaluation.verdict import TRIVIAL
from kreinlearn.inspection.arguments import Array
from kreinlearn.inspection.prepared import Prepared
from kreinlearn.learn.groups import of_part
from kreinlearn.progress import Progress

Folds = list[tuple[Array, Array]]  # row numbers to train on, and to test on
Report = Callable[[int, int, str], None]  # called with (done, total, name of the learner)


class Fit(NamedTuple):
    """What a fit gave on one fold."""

    losses: Array  # of the test objects
    predicted: Array  # for the test objects
    fit_seconds: float
    predict_seconds: float
    weights: dict[str, float] | None = None  # of several kernels
    alone: dict[str, float] | None = None  # the losses of these kernels


@dataclass
class Fits:
    """The fits of one learner so far, and the seconds that they have taken."""

    learner: Learner
    done: list[Fit] = field(default_factory=list)
    seconds: float = 0.0
    failed: str | None = None

    def score(self, folds: int, time_limit: float) -> Score:
        """The errors on the first folds; a learner that has not seen them all has none."""
        name, kind, failed = self.learner.name, self.learner.kind, self.failed
        done = self.done[:folds]
        if failed is None and len(done) < folds:
            failed = f"left out after {len(done)} of {folds} folds, as time_limit={time_limit:g}"
        if failed is not None:
            return Score(name, kind, np.empty(0), math.nan, math.nan, failed)
        errors = np.array([fit.losses.mean() for fit in done])
        fitting = float(np.mean([fit.fit_seconds for fit in done]))
        predicting = float(np.mean([fit.predict_seconds for fit in done]))
        return Score(
            name, kind, errors, fitting, predicting,
            losses=np.concatenate([fit.losses for fit in done]),
            kernel_weights=done[0].weights, kernel_losses=done[0].alone,
            predicted=np.concatenate([fit.predicted for fit in done]),
        )  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Everything that the fits of all learners share."""

    prepared: Prepared
    targets: Targets
    folds: Folds
    settings: Settings
    seed: int
    bar: Progress
    memory: int  # bytes that kernel values may take
    time_limit: float = math.inf  # seconds of a learner, after which no further fit of it begins

    def scores(self, learners: list[Learner], progress: Report | None) -> tuple[list[Score], int]:
        """Fit all learners on one fold after the other, each as long as it has time.

        Returns the scores and the number of folds that they are on, the most that any learner but a
        constant has seen; a learner that has seen fewer has a score that says so.
        """
        fits, total, done = list(map(Fits, learners)), len(learners) * len(self.folds), 0
        with self.bar.step("fits", total, total, seconds=total):  # a guess: nothing is known
            for fold in range(len(self.folds)):
                for one in fits:
                    if one.failed is None and one.seconds <= self.time_limit:
                        self._add(one, fold)
                    done += 1
                    self.bar.add(1, 1)
                    if progress is not None:
                        progress(done, total, one.learner.name)
        learned = [len(one.done) for one in fits if one.learner.kind != TRIVIAL]
        complete = max(learned, default=0) or max(1, *(len(one.done) for one in fits))
        return [one.score(complete, self.time_limit) for one in fits], complete

    def _add(self, one: Fits, fold: int) -> None:
        start = time.perf_counter()
        try:
            one.done.append(self._fit(one.learner, *self.folds[fold], self.seed + fold))
        except Exception as error:  # its row says so, and the others go on
            one.failed = f"failed, {type(error).__name__}: {' '.join(str(error).split())}"
        one.seconds += time.perf_counter() - start

    def _fit(self, learner: Learner, train: Array, test: Array, seed: int) -> Fit:
        """The losses of the test objects, and the seconds that the learner takes."""
        model = learner.make(self.settings, seed)
        start = time.perf_counter()
        groups = of_part(self.targets.groups, train)
        takes = groups is not None and has_fit_parameter(model, "groups")
        given = {"groups": groups} if takes else {}
        model.fit(self.prepared.part(train, train), self.targets.y[train], **given)
        fitted = time.perf_counter()
        predicted = model.predict(self.prepared.part(test, train))
        end = time.perf_counter()
        losses = self.targets.losses(predicted, test)
        several = [getattr(model, f"kernel_{name}_", None) for name in ("weights", "losses")]
        return Fit(losses, np.asarray(predicted), fitted - start, end - fitted, *several)
