"""From objects to a feature map: choose landmarks, pass once over all rows, fit the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.kernels.columns import squared_norms
from kreinlearn.nystrom.candidates import Candidates
from kreinlearn.nystrom.core import (
    OVERSAMPLING,
    FeatureMap,
    landmark_map,
    least_squares_core,
    least_squares_map,
    one_shot,
    one_shot_svd,
    pivot_rows,
    squared_route,
    whiten,
)
from kreinlearn.nystrom.error import ERROR_ROWS, ErrorEstimate, estimate_error
from kreinlearn.nystrom.landmarks import (
    WHOLE_SAMPLE,
    columns_at_a_time,
    select_landmarks,
    weighted_draw,
    with_reference,
)
from kreinlearn.nystrom.spec import MapSpec
from kreinlearn.nystrom.sweep import all_columns, announce, candidate_count, sweep
from kreinlearn.pairs.columns import LandmarkColumns
from kreinlearn.pairs.evaluate import scaled
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.sample import Sample
from kreinlearn.pairs.square import pairs_among
from kreinlearn.sums.gram import Gram, gram_of
from kreinlearn.sums.moments import Targets


class FittedMap(NamedTuple):
    """A feature map, and the kernel values that it was made of."""

    sample: Sample
    columns: LandmarkColumns
    gram: Gram  # of C / unit over all rows
    unit: float
    map: FeatureMap  # of the kernel itself
    error: ErrorEstimate | None = None


def fit_map(pairs: Pairs, spec: MapSpec, rng: np.random.Generator) -> FittedMap:
    """Landmarks, one pass over all rows, the core."""
    sample = select_landmarks(pairs, open_sample(pairs, spec, rng), spec, rng)
    return finish_map(pairs, sample, spec, rng)


def finish_map(pairs: Pairs, sample: Sample, spec: MapSpec, rng: np.random.Generator) -> FittedMap:
    """The feature map of chosen landmarks."""
    n, C = len(pairs.rows), None
    if spec.method == "gram":
        swept = sweep(pairs, sample, spec, rng, Targets.none(n))
        sample, columns, gram, unit = swept.sample, swept.columns, swept.gram, swept.unit
    else:
        C, columns, unit = (
            all_columns(pairs, sample, spec.method),
            pairs.evaluator(sample),
            sample.unit,
        )
        gram = gram_of(scaled(C, unit), pairs.workers)
    feature_map = fit_core(pairs, sample, gram, n, spec, rng, C)
    return FittedMap(sample, columns, gram, unit, feature_map.rescaled(unit))


# Before the landmarks


def open_sample(pairs: Pairs, spec: MapSpec, rng: np.random.Generator) -> Sample:
    """The rows among which landmarks are chosen, with given landmarks as columns."""
    n = len(pairs.rows)
    _require_room(pairs, n, spec)
    pool = spec.pool_rows(n, rng)
    _announce(pairs, spec)
    if spec.scheme is None:
        numbers = spec.given if spec.by_number else np.arange(-spec.n_landmarks, 0)
        sample = pairs.grown(pairs.sample(np.union1d(numbers, pool), pool), numbers)
        return with_reference(pairs, sample)
    if spec.scheme not in WHOLE_SAMPLE or len(pool) == n:
        return pairs.sample(pool)
    _require_sketch(pairs, n, spec)
    if pairs.kernel.writes_in_place:  # vectors are evaluated again; values of objects are held
        return replace(pairs.sample(pool), streams=True)
    return pairs.sample(np.arange(n), pool)


def _announce(pairs: Pairs, spec: MapSpec) -> None:
    """Say what the fit will cost, before it evaluates anything."""
    at_least = "" if spec.tol is None else "at least "
    count = pairs_of_fit(pairs.kernel, len(pairs.rows), spec)
    X = pairs.rows.X
    announce(pairs.session, pairs.kernel, X, X, count, at_least)


def pairs_of_fit(kernel: Kernel, n: int, spec: MapSpec) -> int:
    """How many pairs a fit evaluates: all rows with the landmarks, and those of the core."""
    m, given = spec.n_landmarks, spec.scheme is None
    growth = [m] if m >= n else columns_at_a_time(spec)
    outside = m * (given and not spec.by_number)
    count = pairs_of_growth(kernel, n + outside, growth)
    if spec.core == "ls" and m < n:
        count += pairs_among(kernel, extra_rows(n, m))
    if "greedy" in (spec.scheme or "") and m < n and not kernel.is_dissimilarity:
        count += kernel.diagonal_cost * spec.pool_size(n)  # k(x, x)
    return count


def pairs_of_growth(kernel: Kernel, n: int, growth: Sequence[int]) -> int:
    """Pairs of n rows with columns that come in steps: pairs of two columns are mirrored."""
    total = before = 0
    for k in growth:
        total += pairs_among(kernel, k) + k * max(n - before - k, 0)
        before += k
    return total


def _room_for(n: int, spec: MapSpec) -> int:
    """Bytes of a sample: its values, a copy of them while it grows, its columns."""
    return 3 * 8 * min(n, spec.pool_size(n) + spec.n_landmarks) * spec.n_landmarks


def _require_room(pairs: Pairs, n: int, spec: MapSpec) -> None:
    pairs.session.require_memory(
        _room_for(n, spec), f"{spec.n_landmarks} landmarks and the rows to choose them from",
        "use fewer landmarks or raise memory_budget; all other rows are streamed",
    )  # fmt: skip


def _require_sketch(pairs: Pairs, n: int, spec: MapSpec) -> None:
    """Raise MemoryError if what the paper's schemes hold of all rows would not fit."""
    per_row = 3 * 8 * spec.sketch
    if pairs.kernel.writes_in_place:
        per_row = 4 * spec.sketch + 8 if spec.scheme == "kmeans++" else 8
    pairs.session.require_memory(
        per_row * n, f'landmarks="{spec.scheme}", which looks at all {n} rows,',
        'raise memory_budget or pass landmarks="auto", which looks at a sample of them',
    )  # fmt: skip


# The core


def fit_core(
    pairs: Pairs, sample: Sample, gram: Gram, n: int, spec: MapSpec, rng: np.random.Generator,
    C: Array | None = None, R: Array | None = None,
) -> FeatureMap:  # fmt: skip
    """The feature map of kernels divided by the unit of the sample; the rank is not yet cut.

    ``C`` are all similarities, for the reference routes; ``R`` the rows that a least-squares core
    is fitted on, if they are known.
    """
    m, unit = len(sample.landmarks), sample.unit
    if spec.core == "ls" and m < n:
        R = rows_of_core(sample, gram.matrix, n, rng) if R is None else R
        T = whiten(gram.matrix)
        K_RR = pairs.similarities(sample, R) / unit
        M = least_squares_core((sample.C / unit)[sample.positions(R)] @ T, K_RR, n)
        return least_squares_map(T, M)
    k, K_ZZ = core_rank(spec), sample.K_ZZ / unit
    W, S = landmark_map(K_ZZ, k, sample.eps)
    if spec.method == "gram" or C is None:
        E, Lambda = one_shot(gram.matrix, W, S)
    elif spec.method == "svd":
        E, Lambda = one_shot_svd(C / unit, W, S)
    else:
        E, Lambda = squared_route(C / unit, K_ZZ, k)
    return FeatureMap(W, S, E, Lambda)


def core_rank(spec: MapSpec) -> int | None:
    """The rank to which the core itself is cut; None: all of it is used."""
    if spec.core != "truncated":
        return None
    return spec.rank if spec.rank is not None else max(1, int(spec.n_landmarks / OVERSAMPLING))


def rows_of_core(sample: Sample, G: Array, n: int, rng: np.random.Generator) -> Array:
    """Rows whose pairs a least-squares core is fitted on: the landmarks and others."""
    Z, Q = sample.landmarks, sample.C / sample.unit @ whiten(G)
    rest = np.setdiff1d(sample.rows[sample.rows >= 0], Z)
    uniform = np.setdiff1d(sample.pool, Z)
    extra = extra_rows(n, len(Z))
    return np.concatenate([Z, _extra_rows(Q, sample, rest, uniform, extra, rng)])


def extra_rows(n: int, m: int) -> int:
    """How many rows beside the landmarks: never all pairs, however many the landmarks."""
    return min(2 * m, -(-2 * (n - m) // 3))


def _extra_rows(
    Q: Array, sample: Sample, rest: Array, uniform: Array, extra: int, rng: np.random.Generator
) -> Array:
    """Half the extra rows span Q, by pivoting, and half are uniform; none is a landmark."""
    count = candidate_count(len(sample.landmarks))
    candidates = rest
    if count < len(rest):
        even = rng.choice(uniform, min(count // 2, len(uniform)), replace=False)
        other = np.setdiff1d(rest, uniform)  # drawn by leverage during the pass
        if not len(other):
            other = np.setdiff1d(rest, even)
            scores = squared_norms(Q[sample.positions(other)])
            other = other[weighted_draw(scores, count - len(even), rng)]
        candidates = np.concatenate([even, other])
    pivots = candidates[pivot_rows(Q[sample.positions(candidates)], -(-extra // 2))]
    left = np.setdiff1d(uniform, pivots)
    return np.concatenate([pivots, rng.choice(left, min(extra // 2, len(left)), replace=False)])


# Landmarks until the error is small


def fit_map_to_tolerance(
    pairs: Pairs, spec: MapSpec, rng: np.random.Generator, *, shrink: bool
) -> FittedMap:
    """Double the landmarks, keeping every column, until the estimated error is below tol.

    With ``shrink`` the rank is then cut to the smallest that stays below it.
    """
    assert spec.tol is not None
    n, tol, K = len(pairs.rows), spec.tol, None
    sample = open_sample(pairs, spec, rng)
    most = len(sample.pool) if spec.scheme is not None else spec.n_landmarks
    tested = np.sort(rng.choice(sample.pool, min(ERROR_ROWS, len(sample.pool)), replace=False))
    while True:
        sample = select_landmarks(pairs, sample, spec, rng)
        K = pairs.similarities(sample, tested) if K is None else K
        gram = Candidates(pairs, sample).gram()
        trial = fit_core(pairs, sample, gram, len(sample.rows), spec, rng).rescaled(sample.unit)
        more = replace(spec, n_landmarks=min(most, 2 * len(sample.landmarks)))
        # what all landmarks reach: if the rank asked for does not, more of them will not help
        reached = _error_on(tested, K, sample, trial, n).relative <= tol
        if reached or len(sample.landmarks) >= most or _room_for(n, more) > pairs.session.budget:
            break
        spec = more
    fitted = finish_map(pairs, sample, spec, rng)
    sample = fitted.sample
    rank = _smallest_rank(tested, K, sample, fitted.map, tol, n) if shrink else spec.rank
    cut = fitted.map.cut(rank)
    return fitted._replace(map=cut, error=_error_on(tested, K, sample, cut, n))


def _error_on(
    tested: Array, K: Array, sample: Sample, feature_map: FeatureMap, n: int
) -> ErrorEstimate:
    Phi = sample.C[sample.positions(tested)] @ feature_map.W
    return estimate_error(K, Phi, feature_map.S, n)


def _smallest_rank(
    tested: Array, K: Array, sample: Sample, feature_map: FeatureMap, tol: float, n: int
) -> int | None:
    """The smallest rank whose estimated error is below tol; None if no rank's is."""
    low, high = 1, len(feature_map.Lambda)
    if not high or _error_on(tested, K, sample, feature_map, n).relative > tol:
        return None
    while low < high:
        middle = (low + high) // 2
        error = _error_on(tested, K, sample, feature_map.cut(middle), n).relative
        low, high = (low, middle) if error <= tol else (middle + 1, high)
    return high
