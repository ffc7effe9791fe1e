"""Which of several kernels to use, and with what weights: a sum of similarities is learned.

Every similarity that can be made of one of the kernels has a weight in the sum, as
``learn.comparison`` says. All this happens on a sample of the objects. Kernels without weight are
evaluated on no other object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.kernels.dissimilarity import OF_SEVERAL
from kreinlearn.kernels.several import Several, Term, named
from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.comparison import (
    ALMOST_ALL,
    COMPARED,
    Blended,
    Comparison,
    Judged,
)
from kreinlearn.learn.exact import evenly
from kreinlearn.learn.folds import folds_judge
from kreinlearn.learn.search import Unknowns
from kreinlearn.learn.similarity import Compared
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.progress import time_in_words
from kreinlearn.sums.moments import Targets

COSTLY, OF_COSTLY = 4.0, 200  # seconds of all kernels on the sample; of more, fewer objects
SCREENING = 120.0  # seconds of one kernel on the sample, from which on "auto" leaves it out
BOTH = Unknowns((None, None))


class Combination(NamedTuple):
    """The kernels that were given, and what was found out about each."""

    weights: dict[str, float]  # of each kernel, on one scale; they add up to one
    similarities: dict[str, str]  # how each dissimilarity with a weight became a similarity
    losses: dict[str, float]  # of each kernel alone, by the best of its similarities
    seconds: dict[str, float]  # that the values of each kernel took on the sample


class Learned(NamedTuple):
    """A fitted kernel for the landmarks that were decided on, and the values that are known."""

    kernel: Several
    numbers: Array  # (k,) rows whose values are known
    values: Array  # (k, k)
    map: MapSpec  # with all reference objects among the landmarks, if these are not chosen
    judged: Judged | None = None  # the sum on all objects, if each is a landmark and they are few


class Source(NamedTuple):
    """One of the kernels: its values on the sample, and what it is called."""

    number: int
    label: str
    raw: Array  # (s, s)
    is_dissimilarity: bool
    seconds: float  # that the values took


@dataclass(frozen=True)
class Found:
    """The sum that was found on a sample of the objects."""

    several: Several  # all kernels that were given
    parts: list[Pairs]  # their values
    everyone: Array  # rows of positive weight
    numbers: Array  # (s,) rows of the sample
    sources: list[Source]
    compared: Compared
    blended: Blended
    encoded: Encoded

    @property
    def used(self) -> list[Source]:
        """The kernels that have a weight."""
        return [self.sources[term.number] for term in self.terms]

    @property
    def terms(self) -> list[Term]:
        return sorted(self.blended.judged.terms)

    @property
    def combination(self) -> Combination:
        losses = dict[str, float]()
        for term, tuned in self.blended.alone:
            losses.setdefault(self.sources[term.number].label, tuned.loss)
        both = zip(self.used, self.terms, strict=True)
        return Combination(
            dict(zip((s.label for s in self.sources), self.blended.shares.tolist(), strict=True)),
            {s.label: t.transform for s, t in both if t.transform is not None},
            {s.label: losses[s.label] for s in self.sources},
            {s.label: s.seconds for s in self.sources},
        )

    def on_sample(self) -> Several:
        """The sum fitted to the objects of the sample."""
        values = {source.number: source.raw for source in self.used}
        return self._fitted(self.numbers, values, MapSpec(len(self.numbers))).kernel

    def learned(self, of_map: MapSpec, rng: np.random.Generator, *, chosen: bool) -> Learned:
        """The sum fitted to the landmarks that are asked for.

        If all objects are landmarks, the transformations are made anew of all of them. ``chosen``
        says that landmarks are chosen by a scheme that the user names, and are not drawn here.
        """
        m, sample = of_map.n_landmarks, self.numbers
        raw = {source.number: source.raw for source in self.used}
        if of_map.scheme is None and not of_map.by_number:  # landmarks from outside X
            outside = np.arange(-m, 0)
            return self._fitted(outside, {i: self.parts[i].square(outside) for i in raw}, of_map)
        if m >= len(self.everyone):  # in ascending order, whoever has chosen them
            raw = self._on_all(raw)
            of_map = replace(of_map, scheme=None, given=self.everyone)
            learned = self._fitted(self.everyone, raw, of_map)
            return learned._replace(judged=self._judged(raw))
        if chosen or of_map.scheme is None:
            return self._fitted(sample, raw, of_map)
        if m < len(sample):
            places = np.sort(rng.choice(len(sample), m, replace=False))
            some = {i: K[np.ix_(places, places)] for i, K in raw.items()}
            of_map = replace(of_map, scheme=None, given=sample[places])
            return self._fitted(sample[places], some, of_map)
        others = rng.choice(np.setdiff1d(self.everyone, sample), m - len(sample), replace=False)
        of_map = replace(of_map, scheme=None, given=np.union1d(sample, others))
        return self._fitted(sample, raw, of_map)

    def _on_all(self, raw: dict[int, Array]) -> dict[int, Array]:
        """What the kernels of the sum give among all objects; no pair is evaluated twice."""
        n = len(self.everyone)
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

    def _judged(self, raw: dict[int, Array]) -> Judged | None:
        """The sum judged by folds that make its similarities anew, unless objects are many."""
        n = len(self.everyone)
        if n == len(self.numbers):
            return self.blended.judged
        if not folds_judge(n, self.encoded.groups):
            return None
        terms = [term._replace(number=i) for i, term in enumerate(self.terms)]
        values = [raw[source.number] for source in self.used]
        everything = compared_on(self.parts[0], self.encoded, self.everyone, values)
        return everything.with_rounds().tuned(terms, BOTH)

    def _fitted(self, numbers: Array, raw: dict[int, Array], of_map: MapSpec) -> Learned:
        both = zip(self.used, self.terms, strict=True)
        terms = [Term(s.number, t.transform, t.weight) for s, t in both]
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
    Y, _ = Targets(encoded.Y, encoded.weights).of(among)
    parts = [Pairs(part, pairs.rows, pairs.session) for part in kernel.parts]
    seconds = [part.seconds() for part in parts]  # which may have to be measured
    costly = parts[0].among(COMPARED) * sum(seconds) > COSTLY
    numbers = among[evenly(Y, OF_COSTLY if costly else COMPARED, ALMOST_ALL)]
    pairs.rows.fetch(numbers)  # rows that are elsewhere are fetched at once
    sources = _sources(parts, numbers, kernel.labels, seconds, limit)
    sample = compared_on(parts[0], encoded, numbers, [source.raw for source in sources])
    sample = sample.with_rounds()
    names = [OF_SEVERAL if source.is_dissimilarity else (None,) for source in sources]
    compared = Compared(sample, numbers, names, BOTH, adds=True)
    blended = compared.blended()
    return Found(kernel, parts, everyone, numbers, sources, compared, blended, encoded)


def compared_on(
    pairs: Pairs, encoded: Encoded, numbers: Array, values: Sequence[Array]
) -> Comparison:
    """Some rows, with the values of kernels among them, as what similarities are judged by."""
    Y, w = Targets(encoded.Y, encoded.weights).of(numbers)
    labels, groups, equal = (
        None if each is None else each[numbers]
        for each in (encoded.labels, encoded.groups, encoded.equal)
    )
    return Comparison(
        values, np.asarray(Y, dtype=np.float64), w, (), labels, groups, equal,
        workers=pairs.session.workers,
    )  # fmt: skip


def _sources(
    parts: Sequence[Pairs], numbers: Array, labels: Sequence[str], of_value: Sequence[float],
    limit: float | None,
) -> list[Source]:  # fmt: skip
    """What each kernel gives among rows, if a value takes ``of_value`` seconds.

    The cheapest kernel is always there, and the others if they do not take longer than ``limit``.
    """
    sources, count = list[Source](), parts[0].among(len(numbers))
    costs = [count * each for each in of_value]
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
