"""The fits of an evaluation: every learner on every fold, as far as the time allows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from kreinlearn.evaluation.learners import Learner, Settings
from kreinlearn.evaluation.result import Score
from kreinlearn.evaluation.sizes import Plan, Problem, spread
from kreinlearn.evaluation.targets import Targets
from kreinlearn.inspection.arguments import Array
from kreinlearn.inspection.prepared import Prepared
from kreinlearn.learn.groups import of_part
from kreinlearn.learn.similarity import Shared, sharing
from kreinlearn.progress import Progress

Folds = list[tuple[Array, Array]]  # row numbers to train on, and to test on
Report = Callable[[int, int, str], None]  # called with (done, total, name of the learner)

FIRST = 300  # objects to train on, and as many to test, for the first answer
FIRST_SHARE = 0.1  # of the time, which the first answer may take
MATRICES = 12  # n x n, which fits to the same objects may share


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
    """The fits of one learner so far."""

    learner: Learner
    size: int  # objects that it is fitted to
    seconds: float  # that a fit is expected to take
    done: list[Fit] = field(default_factory=list)
    failed: str | None = None

    def score(self, folds: int, left_out: str, n_fitted: int | None) -> Score:
        """The errors on the first folds; a learner that has not seen them all has none."""
        name, kind, failed = self.learner.name, self.learner.kind, self.failed
        if failed is None and len(self.done) < folds:
            failed = left_out
        if failed is not None:
            return Score(name, kind, np.empty(0), math.nan, math.nan, failed)
        done = self.done[:folds]
        errors = np.array([fit.losses.mean() for fit in done])
        fitting = float(np.mean([fit.fit_seconds for fit in done]))
        predicting = float(np.mean([fit.predict_seconds for fit in done]))
        losses, first = np.concatenate([fit.losses for fit in done]), done[0]
        return Score(
            name, kind, errors, fitting, predicting, losses=losses, n_fitted=n_fitted,
            kernel_weights=first.weights, kernel_losses=first.alone,
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
    memory: int  # bytes that shared results may take
    ends: float = math.inf  # the time at which no further fit begins
    clock: Callable[[], float] = time.perf_counter  # by which that is

    def first_answer(
        self, learners: list[Learner], problem: Problem, allowed: float
    ) -> dict[str, float]:
        """Errors of all learners on small samples, if there are far more objects; or none."""
        rows, n = np.arange(self.prepared.n), self.prepared.n
        cost = sum(learner.cost(FIRST, problem) for learner in learners)
        if n < 4 * FIRST or cost > FIRST_SHARE * allowed:
            return {}
        rng = np.random.default_rng(self.seed)
        train = spread(rows, self.targets.labels, FIRST, rng)
        test = spread(np.setdiff1d(rows, train), self.targets.labels, FIRST, rng)
        errors = {}
        step = self.bar.step("first answer", len(learners), seconds=max(cost, 1.0))
        with self._sharing(len(train)) as share, step:
            for learner in learners:
                with suppress(Exception):  # the fits to come will say what is wrong
                    fit = self._fit(learner, train, test, self.seed, share)
                    errors[learner.name] = float(fit.losses.mean())
                self.bar.add(1)
        return errors

    def scores(
        self, learners: list[Learner], plan: Plan, progress: Report | None, left_out: str
    ) -> tuple[list[Score], int]:
        """Fit all learners on one fold after the other, those that take least time first.

        Returns the scores and the number of folds that they are on. If the time ends within a
        fold, only the folds before count; in the first fold, the learners that have seen it.
        """
        fits = _to_be_done(learners, plan)
        total, done = len(fits) * len(self.folds), 0
        work = len(self.folds) * sum(_milliseconds(one) for one in fits)
        with self.bar.step("fits", total, work, seconds=work / 1000):
            for fold, (train, _) in enumerate(self.folds):
                with self._sharing(len(train)) as share:
                    for one in sorted(fits, key=_milliseconds):
                        if self.clock() > self.ends:
                            break
                        self._add(one, fold, share)
                        done += 1
                        self.bar.add(1, _milliseconds(one))
                        if progress is not None:
                            progress(done, total, one.learner.name)
        complete = max(done // len(fits), 1)
        most = min(len(train) for train, _ in self.folds)
        sizes = [one.size if one.size < most else None for one in fits]
        scores = [one.score(complete, left_out, n) for one, n in zip(fits, sizes, strict=True)]
        return scores, complete

    def _add(self, one: Fits, fold: int, share: Shared | None) -> None:
        if one.failed is not None:
            return
        seed = self.seed + fold
        train, test = self.folds[fold]
        train = spread(train, self.targets.labels, one.size, np.random.default_rng(seed))
        try:
            one.done.append(self._fit(one.learner, train, test, seed, share))
        except Exception as error:  # its row says so, and the others go on
            one.failed = f"failed, {type(error).__name__}: {' '.join(str(error).split())}"

    def _fit(
        self, learner: Learner, train: Array, test: Array, seed: int, share: Shared | None
    ) -> Fit:
        """The losses of the test objects, and the seconds that the learner takes by itself."""
        model = learner.make(self.settings, seed)
        saved = share.saved if share is not None else 0.0
        start = time.perf_counter()
        groups = of_part(self.targets.groups, train)
        takes = groups is not None and has_fit_parameter(model, "groups")
        given = {"groups": groups} if takes else {}
        model.fit(self.prepared.part(train, train), self.targets.y[train], **given)
        fitted = time.perf_counter()
        predicted = model.predict(self.prepared.part(test, train))
        end = time.perf_counter()
        by_others = share.saved - saved if share is not None else 0.0
        losses = self.targets.losses(predicted, test)
        several = [getattr(model, f"kernel_{name}_", None) for name in ("weights", "losses")]
        return Fit(
            losses, np.asarray(predicted), fitted - start + by_others, end - fitted, *several
        )

    def _sharing(self, n: int) -> AbstractContextManager[Shared | None]:
        return sharing() if MATRICES * 8 * n * n <= self.memory else nullcontext()


def _to_be_done(learners: list[Learner], plan: Plan) -> list[Fits]:
    """All learners, and one more if some are limited: the first, limited as they are.

    So there is one to compare them with that has seen the same objects.
    """
    fits = [Fits(one, plan.sizes[one.name], plan.seconds[one.name]) for one in learners]
    least = min(one.size for one in fits)
    first = [one for one in fits if one.learner.name == plan.first and one.size > least]
    fits += [Fits(one.learner, least, plan.first_limited) for one in first]
    return fits


def _milliseconds(one: Fits) -> int:
    """The time that a fit is expected to take, at least one millisecond."""
    return max(int(1000 * one.seconds), 1)
