"""The schemes that choose landmarks: each grows a sample of kernel values to m landmarks.

All schemes but the paper's two keep every column that they evaluate on the way.
"""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE
from kreinlearn.kernels.base import Array
from kreinlearn.kernels.vector_columns import squared_norms
from kreinlearn.nystrom.core import (
    TileWork,
    first_by_key,
    landmark_map,
    one_shot,
    weighted_draw,
)
from kreinlearn.pairs.evaluate import places_of
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.sums.moments import Gram, Targets, gram_of
from kreinlearn.sums.parallel import map_blocks

Scheme = Callable[[Pairs, Sample, int, np.random.Generator, int], Sample]

PENDING = 64  # centres whose distances are brought up to date by one product
STALE = 1e-3  # new / old distance of a rejected draw that calls for an update at once
LLOYD_STEPS = 5
LABELLED = 512  # rows whose nearest centres are found at once
START = 64  # uniform landmarks, at most, from which greedy k-means++ goes on
DRAWN = 64  # rows whose distances to all others are found by one product
PER_LANDMARK = 10  # rows that are looked at for each landmark that there is


@dataclass(frozen=True)
class Candidates:
    """Similarities of the candidates to the landmarks so far, one tile at a time."""

    pairs: Pairs
    sample: Sample

    @property
    def numbers(self) -> Array:
        """Row numbers of the candidates."""
        return np.arange(self.pairs.n) if self.sample.streams else self.sample.rows

    def gram(self) -> Gram:
        """C'C over all candidates, of C / unit."""
        if not self.sample.streams:
            return gram_of(self.sample.scaled, self.pairs.workers)
        nobody, targets = self.sample.rows[:0], Targets.none(self.pairs.n)
        with self._progress():
            return self.pairs.rows.sum(self._work, targets, nobody, **self._how)

    def mapped(self, function: Callable[[Array], Array], out: Array) -> Array:
        """Write ``function(C / unit)`` of all candidates to ``out``."""
        if self.sample.streams:
            with self._progress():
                self.pairs.rows.map(self._work, function, out, self.sample.rows[:0], **self._how)
            return out
        C = self.sample.scaled

        def one_tile(here: slice) -> None:
            out[here] = function(C[here])

        map_blocks(one_tile, gen_batches(len(C), TILE), workers=self.pairs.workers)
        return out

    @cached_property
    def _work(self) -> TileWork:
        """What is done with a tile of rows that are evaluated as a stream."""
        pairs, sample = self.pairs, self.sample
        columns, buffered = pairs.evaluator(sample), pairs.scratch().useful
        return TileWork(columns, sample.landmarks, sample.unit, len(sample.columns), buffered)

    @cached_property
    def _how(self) -> dict[str, Any]:
        """Threads, progress, and where rows on other machines keep values from pass to pass."""
        pairs, width = self.pairs, len(self.sample.columns)

        def seen(numbers: Array, _: Array) -> None:
            pairs.session.progress.add(len(numbers), len(numbers) * width)

        keep = pairs.rows.value_store(8 * pairs.n * width, pairs.session)
        return {"workers": pairs.workers, "keep": keep, "seen": seen}

    def _progress(self) -> AbstractContextManager[None]:
        """A step of the progress bar, as all rows are evaluated."""
        n = self.pairs.n
        return self.pairs.session.progress.step("landmarks", n, n * len(self.sample.columns))


def sketch_factors(candidates: Candidates, rank: int | None = None) -> tuple[Array, Array]:
    """E and Lambda with U~ = C E, the eigenvectors of the approximation by the landmarks so far."""
    sample = candidates.sample
    core = landmark_map(sample.K_ZZ / sample.unit, rank)
    return one_shot(candidates.gram().matrix, *core)


def sketch_features(candidates: Candidates, rank: int | None = None) -> tuple[Array, Array]:
    """The rows of U~ |Lambda|^1/2, and the signs of Lambda."""
    E, Lambda = sketch_factors(candidates, rank)
    W = E * np.sqrt(np.abs(Lambda))
    dtype = np.float32 if candidates.sample.streams else np.float64  # enough to draw by
    F = np.empty((len(candidates.numbers), len(Lambda)), dtype)
    return candidates.mapped(lambda C: C @ W, F), np.sign(Lambda)


# Schemes


def uniform(pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int) -> Sample:
    """Rows drawn with equal probability: those with the smallest keys, as in the pool."""
    rest = np.setdiff1d(sample.rows, sample.landmarks)
    drawn = first_by_key(rest, m - len(sample.landmarks), sample.salt)
    return pairs.with_reference(pairs.grown(sample, drawn))


def leverage(pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int) -> Sample:
    """The paper's: rows drawn by the leverage scores of a uniform sketch, which is dropped."""
    first = not len(sample.landmarks)
    sketched = uniform(pairs, sample, sketch, rng, sketch) if first else sample
    candidates = Candidates(pairs, sketched)
    E, _ = sketch_factors(candidates)
    scores = candidates.mapped(lambda C: squared_norms(C @ E), np.empty(len(candidates.numbers)))
    if first:
        return _replaced(pairs, sketched, candidates.numbers[weighted_draw(scores, m, rng)])
    scores[sample.positions(sample.landmarks)] = 0.0
    drawn = weighted_draw(scores, m - len(sample.landmarks), rng)
    return pairs.grown(sample, sample.rows[drawn])


def kmeans_pp(
    pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int
) -> Sample:
    """The paper's: k-means++ seeds among the features of a uniform sketch, which is dropped."""
    first = not len(sample.landmarks)
    sketched = uniform(pairs, sample, sketch, rng, sketch) if first else sample
    candidates = Candidates(pairs, sketched)
    F = sketch_features(candidates)[0].astype(np.float32, copy=False)  # as if streamed
    if first:
        drawn = seeds(F, m, rng, workers=pairs.workers)
        return _replaced(pairs, sketched, candidates.numbers[drawn])
    start = sample.positions(sample.landmarks)
    return pairs.grown(sample, sample.rows[seeds(F, m, rng, start, pairs.workers)[len(start) :]])


def _replaced(pairs: Pairs, sample: Sample, landmarks: Array) -> Sample:
    """Other landmarks in the place of a sketch; a reference set stays as it is."""
    if sample.streams:  # the rows of the landmarks were not held: evaluate what is needed of them
        reference = sample.columns if sample.transform is not None else sample.columns[:0]
        sketch = sample.columns[:0] if pairs.in_place else sample.columns  # held with objects
        rows = np.union1d(np.union1d(sample.rows, landmarks), sketch)
        opened = pairs.sample(rows, sample.pool)
        opened = replace(opened, salt=sample.salt, least=sample.least)
        sample = pairs.grown(opened, reference)
        if len(reference):
            sample = sample.referring_to_all()
    elif len(sample.rows) > len(sample.pool):  # too many rows to hold all landmarks for
        wanted = np.union1d(np.union1d(sample.pool, landmarks), sample.columns)
        sample = sample.restricted(wanted)
    return pairs.grown(replace(sample, landmarks=sample.landmarks[:0]), landmarks)


def greedy_kmeans_pp(
    pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int
) -> Sample:
    """Greedy k-means++ on the features of the landmarks so far, each time doubling their number.

    From m = 4 START on the steps do not depend on m, which only ends the last one.
    """
    if not len(sample.landmarks):
        sample = uniform(pairs, sample, first_landmarks(m), rng, sketch)
    while len(sample.landmarks) < m:
        sample = _greedy_step(pairs, sample, m, rng)
    return sample


def first_landmarks(m: int) -> int:
    """The uniform landmarks that greedy k-means++ begins with: a quarter, or START of them."""
    return min(START, -(-m // 4))


def medoids(pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int) -> Sample:
    """The rows nearest to the centres of Lloyd's k-means, which needs no kernel values."""
    drawn = _medoid_rows(pairs, sample, m - len(sample.landmarks), rng)
    sample = pairs.with_reference(pairs.grown(sample, drawn))
    return uniform(pairs, sample, m, rng, sketch)  # centres may share a medoid


def medoids_then_greedy(
    pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int
) -> Sample:
    """Half the landmarks are medoids, the others come by greedy k-means++.

    These look at the whole pool: rows that lie far from all others may be in any part of it.
    """
    if not len(sample.landmarks):
        sample = medoids(pairs, sample, -(-m // 2), rng, sketch)
    sample = replace(sample, least=max(sample.least, len(sample.pool)))
    return greedy_kmeans_pp(pairs, sample, m, rng, sketch)


def chosen_by(function: Callable[..., Any]) -> Scheme:
    """The scheme of a user's own function ``(rows, m, rng)`` or ``(rows, m, rng, columns)``."""

    def scheme(
        pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator, sketch: int
    ) -> Sample:
        free = np.setdiff1d(sample.rows, sample.landmarks)
        values, count = ColumnValues(pairs, sample, free), m - len(sample.landmarks)
        asked = {"columns": values} if _looks_at_values(function) else {}
        given = (pairs.take(free), count, rng)
        _require_parameters(function, given, asked)
        places = _checked(function(*given, **asked), len(free), count)
        grown = replace(values.sample, landmarks=sample.landmarks)
        grown = pairs.grown(grown, free[places]).without_other_columns()
        return pairs.with_reference(grown)

    return scheme


class ColumnValues:
    """Values of the kernel for all candidates and those that a user's own scheme asks for."""

    def __init__(self, pairs: Pairs, sample: Sample, free: Array) -> None:
        self.pairs, self.sample, self.free = pairs, sample, free

    def __call__(self, places: Any) -> Array:  # (k,) -> (n, k)
        """k(x, z) of all candidates x and those at some places z; no value is evaluated twice."""
        numbers = self.free[np.asarray(places, dtype=np.intp)]
        new = np.setdiff1d(numbers, self.sample.landmarks)
        self.sample = self.pairs.grown(self.sample, new)
        at = self.sample.positions(self.free)
        return self.sample.raw[np.ix_(at, places_of(numbers, self.sample.columns))]


def _looks_at_values(function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter ``columns``."""
    try:
        return "columns" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _require_parameters(
    function: Callable[..., Any], given: tuple[Any, ...], asked: dict[str, Any]
) -> None:
    """Raise TypeError if a user's own scheme cannot be called with what it is given."""
    try:
        inspect.signature(function).bind(*given, **asked)
    except ValueError:  # of some functions nothing is known
        return
    except TypeError as error:
        raise TypeError(
            f"a function that chooses landmarks is called as f(rows, m, rng), or as f(rows, m, "
            f"rng, columns=...) if it has such a parameter; {function!r:.80} cannot be: {error}"
        ) from error


def _checked(places: Any, n: int, count: int) -> Array:
    """What a user's own scheme returned: so many distinct numbers of candidates."""
    found = np.asarray(places)
    whole = found.ndim == 1 and found.dtype.kind in "iu"
    within = whole and bool(((found >= 0) & (found < n)).all())
    if not within or len(found) != count or len(np.unique(found)) != count:
        raise ValueError(
            f"the function that chooses landmarks must return {count} distinct row numbers in "
            f"0..{n - 1}, as a sequence of integers; got {reprlib.repr(places)}"
        )
    return found


SCHEMES: dict[str, Scheme] = {
    "uniform": uniform,
    "leverage": leverage,
    "kmeans++": kmeans_pp,
    "greedy_kmeans++": greedy_kmeans_pp,
    "medoids": medoids,
    "medoids+greedy": medoids_then_greedy,
}
WHOLE_SAMPLE = ("leverage", "kmeans++")  # the paper's: scores of all rows, not of a pool
VECTORS_ONLY = ("medoids", "medoids+greedy")


def seeds(
    F: Array, m: int, rng: np.random.Generator, start: Array | None = None, workers: int = 1
) -> Array:
    """Row numbers of k-means++ seeds among the rows of F, after those of ``start``.

    The draws are exact although distances are brought up to date for 64 centres at a time: a row
    that is drawn by its old squared distance is accepted with probability new / old, and its new
    distance needs the pending centres only.
    """
    norms = squared_norms(F)
    chosen = [int(rng.integers(len(F)))] if start is None else start.tolist()
    old, pending = np.full(len(F), np.inf), chosen[:]
    while len(chosen) < m:
        lower_distances(old, F, norms, np.array(pending), workers)
        old[chosen] = 0.0
        pending = []
        total = np.cumsum(old)
        if total[-1] <= 0:  # fewer distinct rows than centres
            rest = np.setdiff1d(np.arange(len(F)), chosen)
            return np.concatenate([chosen, rng.permutation(rest)[: m - len(chosen)]])
        while len(pending) < PENDING and len(chosen) < m:
            i = min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(F) - 1)
            now = min(old[i], np.square(F[pending] - F[i]).sum(axis=1).min(initial=np.inf))
            if rng.random() * old[i] < now:
                chosen.append(i)
                pending.append(i)
            elif now < STALE * old[i]:
                break  # what was drawn is covered already: bring the distances up to date
    return np.array(chosen)


def lower_distances(distance: Array, F: Array, norms: Array, centres: Array, workers: int) -> None:
    """distance = min(distance, squared distance to the nearest of the centres), row by row."""
    Ft, centre_norms = np.ascontiguousarray(-2 * F[centres].T), norms[centres]
    rounding = 8 * np.finfo(F.dtype).eps

    def one_tile(here: slice) -> None:
        gaps = F[here] @ Ft
        gaps += centre_norms
        nearest = gaps.min(axis=1) + norms[here]
        nearest[nearest < rounding * norms[here]] = 0.0
        np.minimum(distance[here], nearest, out=distance[here])

    map_blocks(one_tile, gen_batches(len(F), TILE), workers=workers)


def _greedy_step(pairs: Pairs, sample: Sample, m: int, rng: np.random.Generator) -> Sample:
    """Up to as many landmarks again, by the features of those so far; each is the best of some.

    What the features miss of k(x, x) is added to the squared distance: an object that is unlike
    all landmarks has features near zero and would never be drawn otherwise.
    """
    have = len(sample.landmarks)
    near = _nearby(sample, max(sample.least, PER_LANDMARK * have))
    F, S = sketch_features(Candidates(pairs, near), -(-2 * have // 3))
    missed = np.abs(pairs.diagonal(near) / near.unit - np.square(F) @ S)
    F = F.astype(np.float32)  # enough to draw by
    start, trials = near.positions(near.landmarks), int(2 + math.log(2 * have))
    chosen = _greedy_seeds(F, missed, start, min(m, 2 * have), trials, rng, pairs.workers)
    return pairs.grown(sample, near.rows[chosen])


def _nearby(sample: Sample, count: int) -> Sample:
    """The sample with so many of its rows, which are the same in every larger sample."""
    if count >= len(sample.rows) or sample.streams:
        return sample
    drawn = first_by_key(sample.rows, count, sample.salt)
    return sample.restricted(np.union1d(drawn, sample.columns))


def _greedy_seeds(
    F: Array, missed: Array, start: Array, m: int, trials: int, rng: np.random.Generator,
    workers: int = 1,
) -> Array:  # fmt: skip
    """Rows of F that are added to those of ``start``: each is the best of some that are drawn.

    Many rows are drawn at once, by the weights of that moment. A row counts as drawn later on with
    probability new / old weight, so that every draw is one by the weights as they are then.
    """
    norms, missed = squared_norms(F), missed.astype(F.dtype)
    distance = np.full(len(F), np.inf, F.dtype)
    lower_distances(distance, F, norms, start, workers)
    used = np.zeros(len(F), dtype=bool)
    used[start] = True
    distance[start] = 0.0
    chosen: list[int] = []
    while len(start) + len(chosen) < m:
        old = np.where(used, 0.0, distance + missed)
        drawn = _drawn(old, used, max(DRAWN, trials), rng)
        gaps = _squared_distances(F, norms, drawn, workers)
        bar, each = rng.random(len(drawn)) * old[drawn], min(trials, len(drawn))
        while len(start) + len(chosen) < m:
            new = np.where(used[drawn], -1.0, distance[drawn] + missed[drawn])
            here = np.flatnonzero(bar <= new)[:each]
            if len(here) < each:
                break  # draw anew
            after = np.minimum(gaps[here], distance)
            best = int((after.sum(axis=1) - missed[drawn[here]]).argmin())
            distance, pick = after[best], int(drawn[here[best]])
            used[pick] = True
            chosen.append(pick)
            drawn, gaps, bar = (kept[here[-1] + 1 :] for kept in (drawn, gaps, bar))
    return np.array(chosen, dtype=np.intp)


def _squared_distances(F: Array, norms: Array, centres: Array, workers: int) -> Array:
    """From the rows of F at ``centres`` to all rows, (centres, n)."""
    gaps, C = np.empty((len(centres), len(F)), F.dtype), -2 * F[centres]

    def one_tile(here: slice) -> None:
        part = C @ F[here].T
        part += norms[here]
        part += norms[centres][:, None]
        np.maximum(part, 0, out=gaps[:, here])

    map_blocks(one_tile, gen_batches(len(F), TILE), workers=workers)
    return gaps


def _drawn(weights: Array, used: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows drawn by weight, with replacement; any unused row where nothing is left to explain."""
    total = np.cumsum(weights)
    if total[-1] <= 0:
        return rng.choice(np.flatnonzero(~used), 1)
    drawn = np.searchsorted(total, rng.random(count) * total[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(weights)[-1])


def _medoid_rows(pairs: Pairs, sample: Sample, count: int, rng: np.random.Generator) -> Array:
    X = np.asarray(pairs.take(sample.rows), dtype=np.float64)
    X = X - X.mean(axis=0)
    X = (X / (np.abs(X).max() or 1.0)).astype(np.float32)  # enough to choose by, whatever the unit
    first = X[seeds(X, min(count, len(X)), rng, workers=pairs.workers)]
    centres = lloyd(X, first, pairs.workers)
    gaps = squared_norms(centres)[:, None] - 2 * centres @ X.T + squared_norms(X)
    nearest = sample.rows[np.unique(gaps.argmin(axis=1))]
    return np.setdiff1d(nearest, sample.landmarks)


def lloyd(X: Array, centres: Array, workers: int = 1) -> Array:  # (n, d), (k, d) -> (k, d)
    """The centres after some steps of k-means; one that no row is nearest to stays in its place."""
    labels = np.full(len(X), -1)
    for _ in range(LLOYD_STEPS):
        before = labels.copy()
        _label_by_nearest(labels, X, centres, workers)
        if np.array_equal(labels, before):
            break
        members = sp.csr_array(
            (np.ones(len(X), X.dtype), (labels, np.arange(len(X)))), (len(centres), len(X))
        )
        counts = np.bincount(labels, minlength=len(centres))[:, None]
        centres = np.where(counts, members @ X / np.maximum(counts, 1), centres).astype(X.dtype)
    return centres


def _label_by_nearest(labels: Array, X: Array, centres: Array, workers: int) -> None:
    """labels = the number of the nearest centre, row by row."""
    Ct, norms = np.ascontiguousarray(-2 * centres.T), squared_norms(centres)

    def one_part(here: slice) -> None:
        labels[here] = (X[here] @ Ct + norms).argmin(axis=1)

    map_blocks(one_part, gen_batches(len(X), LABELLED), workers=workers)
