"""Which similarity to learn with: parameters of a kernel, transformations of a dissimilarity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array, Kernel, resolve
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS
from kreinlearn.kernels.several import Term
from kreinlearn.learn.comparison import (
    ALMOST_ALL,
    COMPARED,
    FOUND_ANEW,
    SKETCHED,
    Blended,
    Comparison,
    Judged,
    OuterFold,
)
from kreinlearn.learn.exact import (
    can_be_tuned,
    chosen_numbers,
    comparison_of,
    decomposed,
    evenly,
    spread_out,
    tune_exactly,
)
from kreinlearn.learn.groups import LEAST_GROUPS, SOME_EQUAL, n_equal
from kreinlearn.learn.search import MeanLoss, Tuned, Unknowns, tune, tune_apart
from kreinlearn.learn.task import Task, gram_scale
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.solvers.least_squares import Fold

FINALISTS = 2  # similarities whose penalties are tuned before one is chosen
SCREENED = 400  # rows that the finalists are chosen by, where each fold makes a map of its own
SCREENED_OUTSIDE, SCREENED_PER_LANDMARK = 2048, 3  # at least so many where it does not

Params = dict[str, Any]


class Choice(NamedTuple):
    """A similarity that was tried, and what cross-validation says of it."""

    kernel_params: Params | None
    similarity: str | None  # made of a dissimilarity
    loss: float
    tuned: Tuned


@dataclass(frozen=True)
class Candidate:
    """A kernel with its parameters, and a transformation of its distances."""

    task: Task
    kernel_params: Params | None = None
    transform: str | None = None

    def choice(self, tuned: Tuned) -> Choice:
        """The record of a trial."""
        return Choice(self.kernel_params, self.transform, tuned.loss, tuned)

    def chosen(self) -> Task:
        """The task with similarities by the transformation."""
        return self.task if self.transform is None else self.task.using(self.transform)

    def named(self) -> Task:
        """The task with only the name of the transformation: parts of it make their own."""
        return replace(self.task, similarity=self.transform or self.task.similarity)


class Chosen(NamedTuple):
    """The task with the similarity that was chosen, and everything that was tried."""

    task: Task
    kernel_params: Params | None = None
    similarity: str | None = None
    choices: list[Choice] | None = None
    compared: Compared | None = None  # if all objects are landmarks


@dataclass(frozen=True)
class SimilaritySpec:
    """The similarities among which to choose."""

    name: str = "auto"  # of a transformation
    kernels: Sequence[
        tuple[Params | None, Callable[[Pairs], Kernel] | None]
    ] = ()  # None: the fitted one
    equal: bool = False  # whether both penalties are tied
    tunes: bool = False  # whether both penalties are tuned on the similarity that is chosen
    sketched: bool = False  # whether the loss of all targets is not needed after the choice


def kernels_to_try(
    kernel: Any, params: Any, fitted: Kernel, rng: np.random.Generator
) -> list[tuple[Params, Callable[[Pairs], Kernel] | None]]:
    """Parameters to choose from, and what makes kernels of them; none: the kernel stays as it is.

    ``kernel`` and ``params`` are parameters of an estimator, of which ``fitted`` was made.
    """
    if isinstance(params, dict | None):
        return []
    listed = isinstance(params, list)
    grid = params if listed else fitted.grid()
    if listed and (not grid or not all(isinstance(each, dict) for each in grid)):
        raise ValueError(f"kernel_params={params!r} is no list of dicts to choose from")
    if not grid:
        raise ValueError(
            f'kernel_params="auto" has no parameters to try for kernel={kernel!r}; '
            "pass a dict, or a list of dicts to choose from"
        )

    def made(each: Params, pairs: Pairs) -> Kernel:
        other = resolve(kernel, each).with_processes(pairs.kernel.jobs, pairs.kernel)
        return other.fit(pairs.rows.X, rng)

    first = grid[0] if listed else None  # the fitted kernel has these
    return [(each, None if each is first else partial(made, each)) for each in grid]


def choose_similarity(
    task: Task, spec: SimilaritySpec, found: SumOfKernels | None = None
) -> Chosen:
    """The similarity of smallest cross-validated squared error; the task given is not changed.

    All candidates are tried with coarse penalties on the same few rows, the best of them with
    tuned penalties on all rows of the sample. No pair is evaluated twice. If the kernel is a sum
    that was ``found`` before, what is known about it is taken over.
    """
    if found is not None:
        judged = found.judged
        if judged is None or not task.exact:
            return choose_similarity(task, spec)._replace(compared=found.compared)
        return Chosen(task.judged(judged), compared=found.compared)
    candidates = _candidates(task, spec)
    exactly = task.exact and (len(candidates) > 1 or spec.tunes) and can_be_tuned(task)
    if len(candidates) == 1 and not exactly:
        (only,) = candidates
        return Chosen(only.chosen(), only.kernel_params, only.transform)
    unknowns = Unknowns((None, None), equal=spec.equal)
    if exactly:
        return _choose_exactly(candidates, unknowns, sketched=spec.sketched)
    seed = int(task.rng.integers(2**63))

    def tried(number: int, tuned_by: Callable[[Task], Tuned]) -> tuple[float, int, Choice]:
        candidate = candidates[number]
        tuned = tuned_by(candidate.chosen())
        return tuned.loss, number, candidate.choice(tuned)

    screened = partial(_screened, unknowns=unknowns, seed=seed)
    trials = sorted(tried(number, screened) for number in range(len(candidates)))
    finally_tuned = partial(_finally_tuned, unknowns=unknowns)
    trials[:FINALISTS] = sorted(tried(trial[1], finally_tuned) for trial in trials[:FINALISTS])
    best = candidates[trials[0][1]]
    chosen = best.chosen()
    if len(task.numbers) == task.n:  # the penalties found are those of all rows
        chosen = replace(chosen, tuned=trials[0][2].tuned)
    return Chosen(chosen, best.kernel_params, best.transform, [trial[2] for trial in trials])


class SumOfKernels(NamedTuple):
    """What was found out about a sum of kernels before the fit."""

    compared: Compared
    judged: Judged | None  # on all objects, if it is known


@dataclass(frozen=True)
class Compared:
    """What was compared on some of the objects, or on all, and how."""

    comparison: Comparison
    numbers: Array  # of its rows
    names: Sequence[Sequence[str | None]]  # of the transformations of each kernel
    unknowns: Unknowns
    adds: bool  # whether kernels are added; or else one is chosen

    def blended(self, *, sketched: bool = False) -> Blended:
        return self.comparison.blended(
            self.names, self.unknowns, adds=self.adds, sketched=sketched
        )  # fmt: skip

    def regrouped(self) -> Compared | None:
        """The same with equal objects left out together if they were not, and the other way round.

        None if hardly any objects are equal, or hardly any differ.
        """
        equal, groups = self.comparison.equal, self.comparison.groups
        if equal is None or n_equal(equal) < SOME_EQUAL * len(equal):
            return None
        if len(np.unique(equal)) < LEAST_GROUPS:
            return None
        other = replace(self.comparison, groups=equal if groups is None else None)
        return replace(self, comparison=other)

    def thinned(self) -> Compared:
        """The same of fewer objects, if there are many: so many tell how much is too good."""
        places = evenly(self.comparison.Y, FOUND_ANEW, ALMOST_ALL)
        if len(places) == self.comparison.n:
            return self
        return replace(self, comparison=self.comparison.at(places), numbers=self.numbers[places])

    def without_folds(self) -> list[OuterFold]:
        return self.comparison.without_folds(self.names, self.unknowns, adds=self.adds)


def _choose_exactly(
    candidates: list[Candidate], unknowns: Unknowns, *, sketched: bool
) -> Chosen:  # fmt: skip
    """The same if all objects are landmarks: the similarities of a distance are blended.

    That is done on some of the objects, if there are many.
    """
    kernels = list({id(one.task): one for one in candidates}.values())
    names = [[c.transform for c in candidates if c.task is one.task] for one in kernels]
    task = kernels[0].task
    sketched = sketched and len(candidates) == 1 and task.Y.shape[1] > SKETCHED
    places = spread_out(task, COMPARED, ALMOST_ALL)
    whole = len(places) == len(task.numbers) or not can_be_tuned(task, places)
    each = [comparison_of(one.task, None if whole else places) for one in kernels]
    comparison = replace(each[0], values=[one.values[0] for one in each])
    if not whole and not comparison.rounds:
        comparison = comparison.with_rounds()
    numbers = chosen_numbers(task, None if whole else places)
    compared = Compared(comparison, numbers, names, unknowns, adds=False)

    best, trials = candidates[0], list[tuple[Term, Tuned]]()
    if whole or len(candidates) > 1:
        judged, trials, _ = compared.blended(sketched=sketched)
        (term,) = judged.terms
        best = replace(kernels[term.number], transform=term.transform)
    chosen = best.chosen()
    if not whole:
        judged = tune_exactly(chosen, decomposed(chosen), unknowns, sketched=sketched)
    transform = chosen.sample.transform
    sample = replace(best.task.sample, transform=transform)
    chosen = replace(best.named(), sample=sample).judged(judged)
    choices = [best.choice(judged.tuned)] + [
        Choice(kernels[term.number].kernel_params, term.transform, tuned.loss, tuned)
        for term, tuned in trials
        if (kernels[term.number].kernel_params, term.transform)
        != (best.kernel_params, best.transform)
    ]
    return Chosen(
        chosen, best.kernel_params, best.transform, choices if len(choices) > 1 else None, compared
    )


def compared_on_landmarks(task: Task, spec: SimilaritySpec) -> Compared | None:
    """What the similarity of a task can be judged by if landmarks are few: the landmarks, or some.

    All values among them are known. None if they are from outside X.
    """
    if task.sample.landmarks[0] < 0:
        return None
    names: Sequence[str | None] = (None,)
    if task.sample.transform is not None:
        names = AUTO_TRANSFORMS if spec.name == "auto" else (spec.name,)
    places = spread_out(task, COMPARED, ALMOST_ALL)
    comparison = comparison_of(task, places).with_rounds()
    unknowns = Unknowns((None, None), equal=spec.equal)
    return Compared(comparison, chosen_numbers(task, places), [names], unknowns, adds=False)


def _candidates(task: Task, spec: SimilaritySpec) -> list[Candidate]:
    candidates = []
    for params, make in spec.kernels or [(None, None)]:
        seen = task if make is None else with_kernel(task, make(task.pairs))
        names: Sequence[str | None] = (None,)
        if seen.sample.transform is not None:
            # all landmarks are the reference set, not only those of the first draw
            seen = seen.referring_to_all()
            names = AUTO_TRANSFORMS if spec.name == "auto" else (spec.name,)
        candidates += [Candidate(seen, params, name) for name in names]
    return candidates


def with_kernel(task: Task, kernel: Kernel) -> Task:
    """The same task, rows and landmarks seen by another kernel."""
    pairs = Pairs(kernel, task.rows, replace(task.pairs.session, store=None))
    sample = pairs.grown(pairs.sample(task.sample.rows, task.sample.pool), task.sample.landmarks)
    return replace(task, pairs=pairs, sample=pairs.with_reference(sample))


def _screened(task: Task, unknowns: Unknowns, seed: int) -> Tuned:
    """Coarse penalties and few rows, the same for the same seed."""
    thin = task.thinned(SCREENED, np.random.default_rng(seed))
    most = max(SCREENED_OUTSIDE, SCREENED_PER_LANDMARK * len(task.sample.landmarks))
    splits = thin.splits(most=None if task.honest else most, rng=np.random.default_rng(seed))
    return _tuned(thin.terms_of(splits), partial(tune, coarse=True), unknowns)


def _finally_tuned(task: Task, unknowns: Unknowns) -> Tuned:
    return _tuned(task.terms_of(task.splits()), tune_apart, unknowns)


def _tuned(folds: list[Fold], search: Callable[..., Tuned], unknowns: Unknowns) -> Tuned:
    if not folds:
        return Tuned(np.ones(2), np.inf, np.empty((0, 3)))
    return search(MeanLoss(folds), gram_scale(folds[0].G, folds[0].n), unknowns)
