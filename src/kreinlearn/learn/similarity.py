"""Which similarity to learn with: parameters of a kernel, transformations of a dissimilarity."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kreinlearn.kernels.base import Array, Kernel, resolve
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS, PLUS, Transform
from kreinlearn.learn.exact import (
    ALMOST_ALL,
    SCREENED_ACCURACY,
    SHARES,
    SKETCHED,
    can_be_tuned,
    decomposed,
    spread_out,
    tune_exactly,
    tuning_loss,
)
from kreinlearn.learn.search import FoldLosses, MeanLoss, Tuned, Unknowns, tune, tune_apart
from kreinlearn.learn.task import Task, gram_scale
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.solvers.exact import Eigenbasis
from kreinlearn.solvers.least_squares import Fold
from kreinlearn.sums.parallel import map_in_threads

FINALISTS = 2  # similarities whose penalties are tuned before one is chosen
FINALISTS_LEFT_OUT = 3  # the same if all objects are landmarks
SCREENED = 400  # rows that the finalists are chosen by, where each fold makes a map of its own
SCREENED_OUTSIDE, SCREENED_PER_LANDMARK = 2048, 3  # at least so many where it does not

STAGES = ((250, 4), (700, 1))  # objects that candidates are compared on, and how many are left
TIE_ERRORS = 2.0  # standard errors by which the mean of similarities may be worse than the best

Params = dict[str, Any]
Result = TypeVar("Result")


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


@dataclass(frozen=True)
class SimilaritySpec:
    """The similarities among which to choose."""

    name: str = "auto"  # of a transformation
    kernels: Sequence[
        tuple[Params | None, Callable[[Pairs], Kernel] | None]
    ] = ()  # None: the fitted one
    equal: bool = False  # whether both penalties are tied
    tunes: bool = False  # whether both penalties are tuned on the similarity that is chosen
    blends: bool = False  # whether the mean of the best similarities may be chosen
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


def choose_similarity(task: Task, spec: SimilaritySpec) -> Chosen:
    """The similarity of smallest cross-validated squared error; the task given is not changed.

    All candidates are tried with coarse penalties on the same few rows, the best of them with
    tuned penalties on all rows of the sample. No pair is evaluated twice.
    """
    candidates = _candidates(task, spec)
    exactly = task.exact and (len(candidates) > 1 or spec.tunes) and can_be_tuned(task)
    if len(candidates) == 1 and not exactly:
        (only,) = candidates
        return Chosen(only.chosen(), only.kernel_params, only.transform)
    unknowns = Unknowns((None, None), equal=spec.equal)
    if exactly:
        return _choose_exactly(candidates, unknowns, blends=spec.blends, sketched=spec.sketched)
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


class Compared(NamedTuple):
    """The candidate that was chosen, by its number, and all that was found out on the way."""

    number: int
    name: str | None  # of its transformation, which may be a mean of several
    transform: Transform | None  # of its distances
    tuned: Tuned
    basis: Eigenbasis
    tuning: FoldLosses
    choices: list[Choice] | None


def _choose_exactly(
    candidates: list[Candidate], unknowns: Unknowns, *, blends: bool, sketched: bool
) -> Chosen:
    """The same if all objects are landmarks: candidates are compared on growing samples.

    The best one is decomposed and tuned on all objects. If others are shown beside it, that is with
    its loss of all targets.
    """
    task = candidates[0].task
    blends = blends and len(candidates) > 1 and all(c.task is task for c in candidates)
    sketched = sketched and len(candidates) == 1 and task.Y.shape[1] > SKETCHED
    compare = partial(_compared, candidates, unknowns, blends=blends, sketched=sketched)
    if all(candidate.task is task for candidate in candidates):
        names = [candidate.transform for candidate in candidates]
        how = (task.kind.signed, task.intercept, task.leaves_one_out, unknowns, blends, sketched)
        weights = None if task.weights is None else np.asarray(task.weights)
        folds = None if task.leaves_one_out else np.asarray(task.folds)
        order = task.sample.landmarks  # that of the eigenbasis
        values = (np.asarray(task.sample.raw), order, np.asarray(task.Y), weights, folds)
        found = shared(compare, "similarity", names, *how, *values, task.sample.eps)
    else:
        found = compare()
    best = replace(candidates[found.number], transform=found.name)
    sample = replace(best.task.sample, transform=found.transform)
    chosen = replace(
        best.named(), sample=sample, basis=found.basis, tuning=found.tuning, tuned=found.tuned
    )
    return Chosen(chosen, best.kernel_params, best.transform, found.choices)


def _compared(
    candidates: list[Candidate], unknowns: Unknowns, *, blends: bool, sketched: bool
) -> Compared:
    """Compare candidates on parts of the objects, and tune the best of them on all objects."""
    choose = _mean_of_the_best if blends else _best_one
    number, chosen, basis, trials = choose(candidates, unknowns)
    task = chosen.chosen()
    basis = basis or decomposed(task)
    best, tuning = tune_exactly(task, basis, unknowns, sketched=sketched)
    others = [trial for trial in trials if trial[:2] != (chosen.kernel_params, chosen.transform)]
    choices = [chosen.choice(best), *others] if others else None
    name, transform = chosen.transform, task.sample.transform
    return Compared(number, name, transform, best, basis, tuning, choices)


def _best_one(
    candidates: list[Candidate], unknowns: Unknowns
) -> tuple[int, Candidate, Eigenbasis | None, list[Choice]]:
    """The number of the best candidate, by growing samples; its basis, if that is known."""
    task = candidates[0].task
    left, trials, basis = list(range(len(candidates))), list[Choice](), None
    for size, most in STAGES:
        places = _places(task, size)
        whole = len(places) == len(task.numbers)
        most = 1 if whole else most
        if len(left) > most:
            parts, tuned = _screened_on(places, [candidates[i] for i in left], unknowns)
            order = np.argsort([one.loss for one in tuned], kind="stable")
            if most == 1:  # coarse penalties may miss those of the best candidate
                for i in order[:FINALISTS_LEFT_OUT]:
                    tuned[i] = parts[i].tuned(unknowns, coarse=False)
                order = np.argsort([one.loss for one in tuned], kind="stable")
            trials = [candidates[left[i]].choice(tuned[i]) for i in order[most:]] + trials
            left = [left[i] for i in order[:most]]
            basis = parts[order[0]].basis if whole else None
    (number,) = left
    return number, candidates[number], basis, trials


def _mean_of_the_best(
    candidates: list[Candidate], unknowns: Unknowns
) -> tuple[int, Candidate, Eigenbasis | None, list[Choice]]:
    """The mean of the best similarities of one sample, unless the best one is clearly better."""
    size, most = STAGES[0]
    places = _places(candidates[0].task, size)
    whole = len(places) == len(candidates[0].task.numbers)
    parts, tuned = _screened_on(places, candidates, unknowns)
    order = np.argsort([one.loss for one in tuned], kind="stable")
    trials = [candidates[i].choice(tuned[i]) for i in order]
    first, number = parts[order[0]], int(order[0])
    name = PLUS.join(str(candidates[i].transform) for i in order[:most])
    mean = replace(candidates[number], transform=name)
    (blend,), (blend_tuned,) = _screened_on(places, [mean], unknowns)
    values = blend_tuned.values, tuned[number].values
    gap = blend.loss.per_fold(values[0]) - first.loss.per_fold(values[1])
    if gap.mean() <= TIE_ERRORS * gap.std() / np.sqrt(len(gap)):
        return number, mean, blend.basis if whole else None, trials
    return number, candidates[number], first.basis if whole else None, trials


def _places(task: Task, size: int) -> Array:
    """Places of about so many objects; of all objects, if there are not many more."""
    places = spread_out(task, size, ALMOST_ALL)
    return places if can_be_tuned(task, places) else np.arange(len(task.numbers))


def _screened_on(
    places: Array, candidates: list[Candidate], unknowns: Unknowns
) -> tuple[list[OnPart], list[Tuned]]:
    """Candidates with coarse penalties, on some of the objects."""
    workers = candidates[0].task.pairs.session.workers
    screen = partial(_on_part, places=places)
    parts = map_in_threads(screen, [one.named() for one in candidates], workers)
    return parts, [part.tuned(unknowns, coarse=True) for part in parts]


class OnPart(NamedTuple):
    """The tuning loss of a candidate on some of the objects."""

    loss: FoldLosses
    basis: Eigenbasis

    def tuned(self, unknowns: Unknowns, *, coarse: bool) -> Tuned:
        return tune(self.loss, self.basis.scale, unknowns, shares=SHARES, coarse=coarse)


def _on_part(task: Task, places: Array) -> OnPart:
    basis = decomposed(task, places)
    loss = tuning_loss(task, places, basis, SCREENED_ACCURACY, sketched=True)
    return OnPart(loss, basis)


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


# Results that fits to the same values share, while learners are compared on them


@dataclass
class Shared:
    """What fits have found, by the values that it depends on, and the time that others saved."""

    results: dict[bytes, tuple[Any, float]] = field(default_factory=dict)
    saved: float = 0.0  # seconds


_active: ContextVar[Shared | None] = ContextVar("active", default=None)


@contextmanager
def sharing() -> Iterator[Shared]:
    """A block in which fits of this thread do not repeat what one of them has found already.

    All results are kept until the block ends. They depend on nothing but the values that name them,
    so that a fit finds the same inside and outside of the block.
    """
    before = _active.set(Shared())
    active = _active.get()
    assert active is not None
    try:
        yield active
    finally:
        _active.reset(before)


def shared(make: Callable[[], Result], *values: Any) -> Result:
    """The result of ``make``, which may depend on these values only: arrays, names and numbers.

    Outside of ``sharing()`` this is ``make()``.
    """
    active = _active.get()
    if active is None:
        return make()
    key = _key(values)
    if key in active.results:
        result, seconds = active.results[key]
        active.saved += seconds
    else:
        start = time.perf_counter()
        result = make()
        active.results[key] = result, time.perf_counter() - start
    found: Result = result
    return found


def _key(values: tuple[Any, ...]) -> bytes:
    """A digest of values; arrays count by their content."""
    digest = blake2b(digest_size=20)
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).data)
        else:
            digest.update(repr(value).encode())
        digest.update(b"\0")
    return digest.digest()
