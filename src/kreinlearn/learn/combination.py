"""Which of several kernels to use, and with what weights: a sum of similarities is learned.

Every kernel gets the similarities that suit it, brought to one scale. From the best of them a sum
grows: the similarity that lowers the leave-one-out loss most is added, again and again, and how
often it was added is its weight. The sum of all kernels is taken instead if it is as good. At last
the weights follow the gradient of the cross-validated loss, if that pays.

All this happens on a sample of the objects. Kernels that are left out of the sum are evaluated on
no other object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS
from kreinlearn.kernels.several import Several, Term, named
from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.exact import ALMOST_ALL, SCREENED_ACCURACY, SHARES, by_target, evenly, sketch
from kreinlearn.learn.search import MeanLoss, Tuned, Unknowns, tune
from kreinlearn.nystrom.core import CORE_RTOL
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import EPS, Pairs, over_unit, similarities_among
from kreinlearn.progress import time_in_words
from kreinlearn.solvers.exact import Eigenbasis, LeaveOneOutLoss
from kreinlearn.solvers.mixing import N_PENALTIES, MixedFold, mixed
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import map_in_threads

SCREENING = 120.0  # seconds of one kernel on the sample, from which on "auto" leaves it out
COMPARED = 300  # objects that kernels and their sums are compared on
KEPT = 3  # similarities of one kernel that may become part of the sum
POOL = 12  # similarities of all kernels that may
STEPS = 10  # times that a similarity is added to the first one
TIE_ERRORS = 0.5  # standard errors by which the sum of all kernels may be worse, and is still taken
PAYS_ERRORS = 2.0  # standard errors by which weights must lower the loss to be worth finding
FOLDS = 5  # for the gradient in the weights
LEVEL = 0.02  # slope of the log loss in the log of a weight, below which no weight is moved
BOTH = Unknowns((None, None))


class Combination(NamedTuple):
    """The kernels that were given, and what was found out about each and about their sums."""

    weights: dict[str, float]  # of each kernel, on one scale; they add up to one
    similarities: dict[str, str]  # how each dissimilarity with a weight became a similarity
    order: list[str]  # in which kernels were added to the sum
    losses: dict[str, float]  # of each kernel alone
    sum_losses: dict[str, float]  # of the sums "all", "grown" and "weighted"
    seconds: dict[str, float]  # that the values of each kernel took on the sample


class Learned(NamedTuple):
    """A fitted kernel for the landmarks that were decided on, and the values that are known."""

    kernel: Several
    numbers: Array  # (k,) rows whose values are known
    values: Array  # (k, k)
    map: MapSpec  # with all reference objects among the landmarks, if these are not chosen


class Source(NamedTuple):
    """One of the kernels: its values on the sample, and what it is called."""

    number: int
    label: str
    raw: Array  # (s, s)
    is_dissimilarity: bool
    seconds: float  # that the values took


class Candidate(NamedTuple):
    """A similarity made of one kernel, on the sample, and its loss alone."""

    source: Source
    transform: str | None  # None: the kernel is a similarity itself
    K: Array  # (s, s), over its scale
    scale: float  # a power of two near the mean |eigenvalue|
    loss: float


class Sum(NamedTuple):
    """Terms with a weight for each, and the loss of their sum at penalties tuned for it."""

    terms: list[Candidate]
    weights: Array
    tuned: Tuned
    scale: float  # by which penalties are measured
    each: Array  # (s,) the loss of each object

    @property
    def loss(self) -> float:
        return self.tuned.loss

    def above(self, other: Sum) -> tuple[float, float]:
        """By how much the loss is larger, and the standard error of that over the objects."""
        gap = self.each - other.each
        return float(gap.mean()), float(gap.std() / np.sqrt(len(gap)))


@dataclass(frozen=True)
class Judge:
    """The leave-one-out loss of any similarity on the sample, at penalties tuned for it."""

    Y: Array  # (s, q)
    weights: Array | None  # (s,)
    workers: int
    rtol: float  # eigenvalues up to this share of the largest count as zero

    @cached_property
    def targets(self) -> Array:
        """The targets, or a few sums of them that have the same squared error on average."""
        return sketch(self.Y)

    def decomposed(self, K: Array) -> Eigenbasis:
        return Eigenbasis.of(K, self.weights, signed=True, rtol=self.rtol)

    def tuned(self, basis: Eigenbasis) -> tuple[Tuned, LeaveOneOutLoss]:
        """Coarse penalties for a decomposed similarity, and its loss at any penalties."""
        loss = LeaveOneOutLoss(basis, self.targets, intercept=True, accuracy=SCREENED_ACCURACY)
        return tune(loss, basis.scale, BOTH, shares=SHARES, coarse=True), loss

    def loss(self, K: Array) -> float:
        return self.tuned(self.decomposed(K))[0].loss

    def losses(self, matrices: Sequence[Array]) -> list[float]:
        """The losses of several similarities, in threads."""
        return map_in_threads(self.loss, matrices, self.workers)

    def sum_of(self, terms: list[Candidate], weights: Array) -> Sum:
        """A weighted sum with its loss."""
        basis = self.decomposed(mixed([term.K for term in terms], weights))
        tuned, loss = self.tuned(basis)
        return Sum(terms, weights, tuned, basis.scale, loss.per_fold(tuned.values))


@dataclass(frozen=True)
class Found:
    """The sum that was found on a sample of the objects."""

    several: Several  # all kernels that were given
    parts: list[Pairs]  # their values
    everyone: Array  # rows of positive weight
    numbers: Array  # (s,) rows of the sample
    best: Sum
    combination: Combination

    @property
    def raw(self) -> dict[int, Array]:
        """What the kernels of the sum give on the sample, by number."""
        return {term.source.number: term.source.raw for term in self.best.terms}

    def on_sample(self) -> Several:
        """The sum fitted to the objects of the sample."""
        return self._fitted(self.numbers, self.raw, MapSpec(len(self.numbers))).kernel

    def learned(self, of_map: MapSpec, rng: np.random.Generator, *, chosen: bool) -> Learned:
        """The sum fitted to the landmarks that are asked for.

        If all objects are landmarks, the transformations are made anew of all of them. ``chosen``
        says that landmarks are chosen by a scheme that the user names, and are not drawn here.
        """
        m, sample = of_map.n_landmarks, self.numbers
        if m >= len(self.everyone):
            return self._fitted(self.everyone, self._on_all(), of_map)
        if of_map.scheme is None and not of_map.by_number:  # landmarks from outside X
            outside = np.arange(-m, 0)
            raw = {i: self.parts[i].square(outside) for i in self.raw}
            return self._fitted(outside, raw, of_map)
        if chosen or of_map.scheme is None:
            return self._fitted(sample, self.raw, of_map)
        if m < len(sample):
            places = np.sort(rng.choice(len(sample), m, replace=False))
            some = {i: K[np.ix_(places, places)] for i, K in self.raw.items()}
            of_map = replace(of_map, scheme=None, given=sample[places])
            return self._fitted(sample[places], some, of_map)
        others = rng.choice(np.setdiff1d(self.everyone, sample), m - len(sample), replace=False)
        of_map = replace(of_map, scheme=None, given=np.union1d(sample, others))
        return self._fitted(sample, self.raw, of_map)

    def _on_all(self) -> dict[int, Array]:
        """What the kernels of the sum give among all objects; no pair is evaluated twice."""
        n, raw = len(self.everyone), self.raw
        self.parts[0].require_memory(
            8 * n * n * (len(raw) + 3), f"the values of {len(raw)} kernels among {n} objects",
            "use fewer landmarks, or raise Resources(memory_budget=...)",
        )  # fmt: skip
        if n == len(self.numbers):
            return raw
        for i, K in raw.items():
            self.parts[i].announce(self.parts[i].among(n) - self.parts[i].among(len(self.numbers)))
            self.parts[i].known.add(self.numbers, K)
        return {i: self.parts[i].square(self.everyone) for i in raw}

    def _fitted(self, numbers: Array, raw: dict[int, Array], of_map: MapSpec) -> Learned:
        both = zip(self.best.terms, self.best.weights, strict=True)
        terms = [Term(t.source.number, t.transform, float(w / t.scale)) for t, w in both]
        kernel = self.several.learned(terms, self.parts[0].take(numbers), raw)
        a = kernel.offsets_
        values = symmetrised(kernel.summed([raw[i] for i in sorted(raw)], a, a))
        return Learned(kernel, numbers, values, of_map)


def learn_combination(
    pairs: Pairs, kernel: Several, encoded: Encoded, among: Array | None = None,
    *, limit: float | None = None,
) -> Found:  # fmt: skip
    """Choose kernels, similarities and weights on a sample of the objects, or ``among`` some.

    Kernels that would take more than ``limit`` seconds on the sample are left out; None keeps all.
    """
    everyone = np.arange(pairs.n) if encoded.weighted is None else encoded.weighted
    among = everyone if among is None else np.sort(among)
    Y, w = Targets(encoded.Y, encoded.weights).of(among)
    places = evenly(Y, COMPARED, ALMOST_ALL)
    numbers = among[places]
    pairs.sample(numbers)  # rows that are elsewhere are fetched at once
    parts = [Pairs(part, pairs.rows, pairs.session) for part in kernel.parts]
    sources = _sources(parts, numbers, kernel.labels, limit)
    rtol = max(CORE_RTOL, len(numbers) * EPS)
    judge = Judge(Y[places], None if w is None else w[places], pairs.session.workers, rtol)
    best, combination = _search(judge, sources)
    return Found(kernel, parts, everyone, numbers, best, combination)


def _sources(
    parts: Sequence[Pairs], numbers: Array, labels: Sequence[str], limit: float | None
) -> list[Source]:
    """What each kernel gives among rows.

    The cheapest kernel is always there, and the others if they do not take longer than ``limit``.
    """
    sources, count = list[Source](), parts[0].among(len(numbers))
    costs = [count * part.seconds() for part in parts]
    allowed = np.inf if limit is None else max(limit, min(costs))
    for i, part in enumerate(parts):
        if costs[i] > allowed:
            warn(
                f"{labels[i]} was left out: it would take about {time_in_words(costs[i])} on "
                f"{len(numbers)} objects; raise time_limit, or name the kernels in a list"
            )
            continue
        part.announce(count)
        start = perf_counter()
        with named(labels[i]):
            raw = part.square(numbers)
        seconds = perf_counter() - start
        sources.append(Source(i, labels[i], raw, part.kernel.is_dissimilarity, seconds))
    return sources


# Searching


def _search(judge: Judge, sources: Sequence[Source]) -> tuple[Sum, Combination]:
    """The sum of smallest loss, and everything that was compared."""
    of_each = [_candidates(judge, source) for source in sources]
    best = [terms[0] for terms in of_each]
    pool = sorted((term for terms in of_each for term in terms), key=lambda term: term.loss)
    found, order = _grown(judge, pool[:POOL])
    sums = {"grown": found.loss}
    if len(best) > 1:
        everything = judge.sum_of(best, np.ones(len(best)))
        sums["all"] = everything.loss
        rise, error = everything.above(found)
        found = everything if rise <= TIE_ERRORS * error else found
    if len(found.terms) > 1 and (weighted := _weighted(judge, found)) is not None:
        found = weighted
        sums["weighted"] = found.loss
    return found, Combination(
        weights=_shares(sources, found),
        similarities=_similarities(found),
        order=list(dict.fromkeys(term.source.label for term in order)),
        losses={term.source.label: term.loss for term in best},
        sum_losses=sums,
        seconds={source.label: source.seconds for source in sources},
    )


def _candidates(judge: Judge, source: Source) -> list[Candidate]:
    """The best similarities that can be made of one kernel, the best one first."""
    names: Sequence[str | None] = AUTO_TRANSFORMS if source.is_dissimilarity else (None,)

    def term(name: str | None) -> Candidate:
        K, unit = over_unit(similarities_among(source.raw, name))
        basis = judge.decomposed(K)
        scale = _scale(basis)
        return Candidate(source, name, K / scale, unit * scale, judge.tuned(basis)[0].loss)

    terms = map_in_threads(term, names, judge.workers)
    return sorted(terms, key=lambda term: term.loss)[:KEPT]


def _scale(basis: Eigenbasis) -> float:
    """A power of two near the mean |eigenvalue|, which keeps all digits of a similarity."""
    mean = float(np.abs(basis.spectrum.D).sum()) / basis.n
    return 2.0 ** round(np.log2(mean)) if mean > 0 else 1.0


def _grown(judge: Judge, pool: Sequence[Candidate]) -> tuple[Sum, list[Candidate]]:
    """A sum that grows from the best term while its loss falls, and the terms as they came."""
    counts = np.zeros(len(pool))
    counts[0] = 1
    order, K, loss = [pool[0]], pool[0].K, pool[0].loss
    for _ in range(STEPS):
        losses = judge.losses([K + term.K for term in pool])
        i = int(np.argmin(losses))
        if losses[i] >= loss:
            break
        counts[i] += 1
        order.append(pool[i])
        K, loss = K + pool[i].K, losses[i]
    used = np.flatnonzero(counts)
    return judge.sum_of([pool[i] for i in used], counts[used]), order


def _weighted(judge: Judge, found: Sum) -> Sum | None:
    """Weights by the gradient of the cross-validated loss; None unless they pay."""
    folds = [_fold(judge, found.terms, here) for here in _folds(judge.Y)]
    mean = found.weights.mean()
    start = np.concatenate([found.tuned.values / mean, found.weights / mean])
    objective = MeanLoss(folds)
    loss, gradient = objective(start)
    if np.abs(gradient[N_PENALTIES:]).max() <= LEVEL * loss:
        return None
    unknowns = Unknowns((None,) * len(start))
    tuned = tune(objective, found.scale / mean, unknowns, start=start)
    other = judge.sum_of(found.terms, tuned.values[N_PENALTIES:])
    fall, error = found.above(other)
    return other if fall > PAYS_ERRORS * error else None


def _folds(Y: Array) -> list[Array]:
    """Places of the validation parts, with all targets in proportion."""
    order = by_target(Y)
    return [order[k::FOLDS] for k in range(min(FOLDS, len(Y)))]


def _fold(judge: Judge, terms: Sequence[Candidate], valid: Array) -> MixedFold:
    train = np.setdiff1d(np.arange(len(judge.Y)), valid)
    w = judge.weights
    return MixedFold(
        [term.K[np.ix_(train, train)] for term in terms],
        [term.K[np.ix_(valid, train)] for term in terms],
        judge.targets[train],
        judge.targets[valid],
        None if w is None else w[train],
        None if w is None else w[valid],
        rtol=judge.rtol,
    )


# What is said of it


def _shares(sources: Sequence[Source], found: Sum) -> dict[str, float]:
    """The share of each kernel in the weights of a sum."""
    shares = dict.fromkeys((source.label for source in sources), 0.0)
    for term, weight in zip(found.terms, found.weights, strict=True):
        shares[term.source.label] += float(weight / found.weights.sum())
    return shares


def _similarities(found: Sum) -> dict[str, str]:
    """How each dissimilarity of a sum became a similarity."""
    names = dict[str, str]()
    for term in found.terms:
        label, name = term.source.label, term.transform
        if name is not None:
            names[label] = f"{names[label]} + {name}" if label in names else name
    return names
