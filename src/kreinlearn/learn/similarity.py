"""Which similarity to learn with: parameters of a kernel, transformations of a dissimilarity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.kernels.base import Kernel
from kreinlearn.learn.learning import MeanLoss, Problem, gram_scale, terms_of
from kreinlearn.learn.search import Tuned, Unknowns, tune, tune_apart
from kreinlearn.pairs.panel import Panel
from kreinlearn.solvers.least_squares import ridge_fold
from kreinlearn.solvers.result import Fold

FINALISTS = 2  # similarities whose penalties are tuned before one is chosen
SCREENED = 400  # rows that the finalists are found by, where each fold makes a map of its own
SCREENED_OUTSIDE, SCREENED_PER_LANDMARK = 2048, 3  # where it does not: rows, at the least


class Choice(NamedTuple):
    """A similarity that was tried, and what cross-validation says of it."""

    kernel_params: dict[str, Any] | None
    similarity: str | None  # made of a dissimilarity
    loss: float
    tuned: Tuned


class Candidate(NamedTuple):
    problem: Problem
    kernel_params: dict[str, Any] | None = None
    transform: str | None = None

    def chosen(self) -> Problem:
        if self.transform is not None:
            self.problem.use(self.transform)
        return self.problem


def with_kernel(problem: Problem, kernel: Kernel) -> Problem:
    """The same problem, rows and landmarks seen by another kernel."""
    old = problem.panel
    plan = problem.plan
    panel = Panel(
        kernel, old.X, old.rows, pool=old.pool, workers=plan.workers, progress=plan.progress
    )
    panel.grow(old.landmarks)
    panel.freeze()
    return replace(problem, panel=panel)


def choose_similarity(
    candidates: list[Candidate], unknowns: Unknowns
) -> tuple[Candidate, list[Choice]]:
    """The best by cross-validated squared error on the rows held; no pair is evaluated twice.

    All are tried with coarse penalties on the same few rows, the best of them with tuned ones and
    all rows.
    """
    seed = int(candidates[0].problem.rng.integers(2**63))

    def tried(number: int, tuned_by: Callable[[Problem], Tuned]) -> tuple[float, int, Choice]:
        candidate = candidates[number]
        tuned = tuned_by(candidate.chosen())
        choice = Choice(candidate.kernel_params, candidate.transform, tuned.loss, tuned)
        return tuned.loss, number, choice

    screened = partial(_screened_ridge, unknowns=unknowns, seed=seed)
    trials = sorted(tried(number, screened) for number in range(len(candidates)))
    finally_tuned = partial(_tuned_ridge, unknowns=unknowns)
    trials[:FINALISTS] = sorted(tried(trial[1], finally_tuned) for trial in trials[:FINALISTS])
    return candidates[trials[0][1]], [trial[2] for trial in trials]


def _screened_ridge(problem: Problem, unknowns: Unknowns, seed: int) -> Tuned:
    """Coarse penalties and few rows, the same for the same seed."""
    thin = problem.thinned(SCREENED, np.random.default_rng(seed))
    most = max(SCREENED_OUTSIDE, SCREENED_PER_LANDMARK * len(problem.panel.landmarks))
    splits = thin.split_rows()
    if not problem.honest:
        splits = thin.sampled(splits, most, np.random.default_rng(seed))
    return _tuned(terms_of(thin, splits), partial(tune, coarse=True), unknowns)


def _tuned_ridge(problem: Problem, unknowns: Unknowns) -> Tuned:
    return _tuned(terms_of(problem, problem.split_rows()), tune_apart, unknowns)


def _tuned(folds: list[Fold], search: Callable[..., Tuned], unknowns: Unknowns) -> Tuned:
    if not folds:
        return Tuned(np.ones(2), np.inf, np.empty((0, 3)))
    return search(MeanLoss(folds, ridge_fold), gram_scale(folds[0].G, folds[0].n), unknowns)
