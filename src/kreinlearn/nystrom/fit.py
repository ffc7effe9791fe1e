"""From objects to a feature map: choose landmarks, pass once over all rows, fit the core."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.core import FeatureMap, fit_core
from kreinlearn.nystrom.error import ERROR_ROWS, ErrorEstimate, estimate_error
from kreinlearn.nystrom.landmarks import MapSpec, open_sample, room_for, select_landmarks
from kreinlearn.nystrom.schemes import Candidates
from kreinlearn.nystrom.sweep import all_columns, sweep
from kreinlearn.pairs.evaluate import LandmarkColumns, scaled
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.sums.moments import Gram, Targets, gram_of


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
    n, C = pairs.n, None
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


# The core


# Landmarks until the error is small


def fit_map_to_tolerance(
    pairs: Pairs, spec: MapSpec, rng: np.random.Generator, *, shrink: bool
) -> FittedMap:
    """Double the landmarks, keeping every column, until the estimated error is below tol.

    With ``shrink`` the rank is then cut to the smallest that stays below it.
    """
    assert spec.tol is not None
    n, tol, K = pairs.n, spec.tol, None
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
        if reached or len(sample.landmarks) >= most or room_for(n, more) > pairs.session.budget:
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
