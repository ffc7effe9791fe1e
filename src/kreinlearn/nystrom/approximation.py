"""From objects to a feature map: choose landmarks, pass once over all rows, fit the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.callables import DIAGONAL_SQUARE, CallableKernel
from kreinlearn.kernels.columns import squared_norms
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
from kreinlearn.nystrom.landmarks import SELECTORS, WHOLE_SAMPLE, weighted_draw
from kreinlearn.nystrom.sweep import Plan, all_columns, announce, candidate_count, gram_pass
from kreinlearn.pairs.columns import LandmarkColumns
from kreinlearn.pairs.evaluate import Rows, over
from kreinlearn.pairs.panel import Panel, pool_size
from kreinlearn.pairs.square import pairs_among
from kreinlearn.solvers.spectrum import power_of_two_scale
from kreinlearn.sums.gram import Gram, gram_of

ERROR_ROWS = 256  # sampled rows of an error estimate


class Fitted(NamedTuple):
    panel: Panel
    columns: LandmarkColumns
    gram: Gram  # of C / unit over all rows
    unit: float
    map: FeatureMap
    error: ErrorEstimate | None = None


class ErrorEstimate(NamedTuple):
    """||K - K~|| / ||K|| in Frobenius norm, from the pairs among sampled rows."""

    relative: float
    standard_error: float
    n_rows: int


# Landmarks


def open_panel(kernel: Kernel, X: Objects, plan: Plan, rng: np.random.Generator) -> Panel:
    """A panel of the rows among which landmarks are chosen, with given landmarks in it."""
    n = length(X)
    _require_room(n, plan)
    pool = _pool(n, plan, rng)
    _announce(kernel, X, plan)
    common: dict[str, Any] = {"workers": plan.workers, "progress": plan.progress}
    common["store"] = plan.store
    if isinstance(plan.landmarks, str):
        panel = Panel(kernel, Rows(X), pool, **common)
        if plan.landmarks in WHOLE_SAMPLE and len(pool) < n:
            _require_sketch(n, kernel, plan)
            panel.look_at_all_rows()
        return panel
    if isinstance(plan.landmarks, np.ndarray) and plan.landmarks.ndim == 1:
        numbers, outside = plan.landmarks, None
    else:
        outside = plan.landmarks
        numbers = np.arange(-length(outside), 0)
    panel = Panel(kernel, Rows(X, outside), np.union1d(numbers, pool), pool=pool, **common)
    panel.grow(numbers)
    panel.freeze()
    return panel


def _pool(n: int, plan: Plan, rng: np.random.Generator) -> Array:
    """A uniform sample of rows: as many as the selector and the core need to look at."""
    eligible = np.arange(n) if plan.eligible is None else plan.eligible
    size = pool_size(len(eligible), plan.n_landmarks)
    if size == len(eligible):
        return eligible
    if plan.core != "ls" and plan.tol is None and not plan.sample:
        if not isinstance(plan.landmarks, str):
            size = 0
        elif plan.landmarks == "uniform":
            size = plan.n_landmarks
    return np.sort(rng.choice(eligible, size, replace=False))


def _announce(kernel: Kernel, X: Objects, plan: Plan) -> None:
    """What the fit will cost, before it evaluates anything."""
    at_least = "" if plan.tol is None else "at least "
    pairs = pairs_of_fit(kernel, length(X), plan)
    announce(plan.progress, kernel, X, X, pairs, plan.workers, at_least)


def pairs_of_fit(kernel: Kernel, n: int, plan: Plan) -> int:
    """Pairs that a fit evaluates: all rows with the landmarks, as these grow, and the core's."""
    m, given = plan.n_landmarks, not isinstance(plan.landmarks, str)
    outside = given and not (isinstance(plan.landmarks, np.ndarray) and plan.landmarks.ndim == 1)
    growth = [m] if given or m >= n else growth_of(plan.landmarks, m, plan.sketch)
    pairs = pairs_of_growth(kernel, n + m * outside, growth)
    if plan.core == "ls" and m < n:
        pairs += pairs_among(kernel, extra_rows(n, m))
    if "greedy" in str(plan.landmarks) and m < n and not kernel.is_dissimilarity:
        own = DIAGONAL_SQUARE if type(kernel) is CallableKernel else 1
        pairs += own * pool_size(n, m)  # k(x, x)
    return pairs


def growth_of(scheme: str, m: int, sketch: int) -> list[int]:
    """Columns that a selector evaluates at a time."""
    if scheme in WHOLE_SAMPLE:
        return [sketch, m]
    if "greedy" not in scheme:
        return [m]
    growth = [-(-m // 2) if scheme.startswith("medoids") else -(-m // 4)]
    while (have := sum(growth)) < m:
        growth.append(min(have, m - have))
    return growth


def pairs_of_growth(kernel: Kernel, n: int, growth: Sequence[int]) -> int:
    """n rows with columns that come in so many at a time: pairs of two columns are mirrored."""
    total = before = 0
    for k in growth:
        total += pairs_among(kernel, k) + k * max(n - before - k, 0)
        before += k
    return total


def _room_for(n: int, m: int) -> int:
    """Bytes of a panel of m landmarks: its values, a copy as it grows, its columns."""
    return 3 * 8 * min(n, pool_size(n, m) + m) * m


def _require_room(n: int, plan: Plan) -> None:
    m = plan.n_landmarks
    require_memory(
        _room_for(n, m), plan.budget, f"{m} landmarks and the rows to choose them from",
        "lower n_landmarks or raise memory_budget; all other rows are streamed",
    )  # fmt: skip


def _require_sketch(n: int, kernel: Kernel, plan: Plan) -> None:
    """MemoryError if what the paper's selectors hold of all rows would not fit."""
    a_row = 3 * 8 * plan.sketch if kernel.takes != "vectors" else 8
    if kernel.takes == "vectors" and plan.landmarks == "kmeans++":
        a_row = 4 * plan.sketch + 8
    require_memory(
        a_row * n, plan.budget, f'landmarks="{plan.landmarks}", which looks at all {n} rows,',
        'raise memory_budget or pass landmarks="auto", which looks at a sample of them',
    )  # fmt: skip


def grow_landmarks(panel: Panel, plan: Plan, rng: np.random.Generator) -> None:
    if plan.n_landmarks == len(panel.pool) == len(panel.rows):  # exact: every object
        panel.grow(np.setdiff1d(panel.rows, panel.landmarks))
        panel.freeze()
    elif isinstance(plan.landmarks, str):
        SELECTORS[plan.landmarks](panel, plan.n_landmarks, rng, plan.sketch)


# The core


def fit_core(
    panel: Panel, gram: Gram, unit: float, n: int, plan: Plan, rng: np.random.Generator,
    C: Array | None = None, R: Array | None = None,
) -> FeatureMap:  # fmt: skip
    """The feature map of the plan's core, of kernels divided by ``unit``; rank not yet cut.

    ``R``: the rows that a least-squares core is fitted on, if they are known.
    """
    m = len(panel.landmarks)
    if plan.core == "ls" and m < n:
        R = rows_of_core(panel, gram.matrix, unit, n, rng) if R is None else R
        return _least_squares(panel, gram.matrix, unit, n, R)
    k = None
    if plan.core == "truncated":
        k = plan.rank if plan.rank is not None else max(1, int(m / OVERSAMPLING))
    K_ZZ = panel.K_ZZ / unit
    W, S = landmark_map(K_ZZ, k, panel.eps)
    if plan.method == "gram" or C is None:
        E, Lambda = one_shot(gram.matrix, W, S)
    elif plan.method == "svd":
        E, Lambda = one_shot_svd(C / unit, W, S)
    else:
        E, Lambda = squared_route(C / unit, K_ZZ, k)
    return FeatureMap(W, S, E, Lambda)


def _least_squares(panel: Panel, G: Array, unit: float, n: int, R: Array) -> FeatureMap:
    T = whiten(G)
    K_RR = panel.similarities(R) / unit
    M = least_squares_core((panel.C / unit)[panel.positions(R)] @ T, K_RR, n)
    return least_squares_map(T, M)


def rows_of_core(panel: Panel, G: Array, unit: float, n: int, rng: np.random.Generator) -> Array:
    """Rows whose pairs a least-squares core is fitted on: the landmarks and others."""
    Z, Q = panel.landmarks, panel.C / unit @ whiten(G)
    rest = np.setdiff1d(panel.rows[panel.rows >= 0], Z)
    uniform = np.setdiff1d(panel.pool, Z)
    extra = extra_rows(n, len(Z))
    return np.concatenate([Z, _extra_rows(Q, panel, rest, uniform, extra, rng)])


def extra_rows(n: int, m: int) -> int:
    """Rows beside the landmarks: never all pairs, however many the landmarks."""
    return min(2 * m, -(-2 * (n - m) // 3))


def _extra_rows(
    Q: Array, panel: Panel, rest: Array, uniform: Array, extra: int, rng: np.random.Generator
) -> Array:
    """Half the extra rows span Q, by pivoting, half are uniform; none is a landmark."""
    count = candidate_count(len(panel.landmarks))
    candidates = rest
    if count < len(rest):
        even = rng.choice(uniform, min(count // 2, len(uniform)), replace=False)
        other = np.setdiff1d(rest, uniform)  # drawn by leverage during the pass
        if not len(other):
            other = np.setdiff1d(rest, even)
            scores = squared_norms(Q[panel.positions(other)])
            other = other[weighted_draw(scores, count - len(even), rng)]
        candidates = np.concatenate([even, other])
    pivots = candidates[pivot_rows(Q[panel.positions(candidates)], -(-extra // 2))]
    left = np.setdiff1d(uniform, pivots)
    return np.concatenate([pivots, rng.choice(left, min(extra // 2, len(left)), replace=False)])


# Everything together


def fit_map(kernel: Kernel, X: Objects, plan: Plan, rng: np.random.Generator) -> Fitted:
    panel = open_panel(kernel, X, plan, rng)
    grow_landmarks(panel, plan, rng)
    return finish_map(panel, plan, rng)


def finish_map(panel: Panel, plan: Plan, rng: np.random.Generator) -> Fitted:
    n, C = length(panel.X.X), None
    columns = panel.evaluator()
    if plan.method == "gram":
        gram, unit = gram_pass(panel, columns, plan, rng)
    else:
        C, unit = all_columns(panel, columns, plan), panel.unit
        gram = gram_of(over(C, unit), panel.workers)
    feature_map = fit_core(panel, gram, unit, n, plan, rng, C)
    return Fitted(panel, columns, gram, unit, feature_map.rescaled(unit))


def fit_map_to_tolerance(
    kernel: Kernel, X: Objects, plan: Plan, rng: np.random.Generator, *, shrink: bool
) -> Fitted:
    """Landmarks doubled, every evaluated column kept, until the estimated error is below tol.

    With ``shrink`` the rank is then cut to the smallest that stays below it.
    """
    assert plan.tol is not None
    n, tol, K = length(X), plan.tol, None
    panel = open_panel(kernel, X, plan, rng)
    most = len(panel.pool) if isinstance(plan.landmarks, str) else plan.n_landmarks
    sample = np.sort(rng.choice(panel.pool, min(ERROR_ROWS, len(panel.pool)), replace=False))
    while True:
        grow_landmarks(panel, plan, rng)
        K = panel.similarities(sample) if K is None else K
        unit = panel.unit
        trial = fit_core(panel, panel.gram(), unit, len(panel.rows), plan, rng).rescaled(unit)
        m = len(panel.landmarks)
        more = min(most, 2 * m)
        # what all landmarks reach: if the rank asked for does not, more of them will not help
        reached = _error_on(sample, K, panel, trial).relative <= tol
        if reached or m >= most or _room_for(n, more) > plan.budget:
            break
        plan = replace(plan, n_landmarks=more)
    fitted = finish_map(panel, plan, rng)
    rank = _smallest_rank(sample, K, panel, fitted.map, tol) if shrink else plan.rank
    cut = fitted.map.cut(rank)
    return fitted._replace(map=cut, error=_error_on(sample, K, panel, cut))


def _error_on(sample: Array, K: Array, panel: Panel, feature_map: FeatureMap) -> ErrorEstimate:
    Phi = panel.C[panel.positions(sample)] @ feature_map.W
    return estimate_error(K, Phi, feature_map.S, length(panel.X.X))


def _smallest_rank(
    sample: Array, K: Array, panel: Panel, feature_map: FeatureMap, tol: float
) -> int | None:
    """The smallest rank whose estimated error is below tol; None if no rank's is."""
    low, high = 1, len(feature_map.Lambda)
    if not high or _error_on(sample, K, panel, feature_map).relative > tol:
        return None
    while low < high:
        middle = (low + high) // 2
        error = _error_on(sample, K, panel, feature_map.cut(middle)).relative
        low, high = (low, middle) if error <= tol else (middle + 1, high)
    return high


def estimate_error(K: Array, Phi: Array, S: Array, n: int) -> ErrorEstimate:
    """Unbiased sums of squares from the pairs of a uniform sample; jackknife standard error."""
    h, c = len(K), power_of_two_scale(K)
    missed, whole = np.square((K - (Phi * S) @ Phi.T) / c), np.square(K / c)

    def sums(squares: Array) -> tuple[float, Array]:
        own = np.diagonal(squares)
        off, per_row = squares.sum() - own.sum(), squares.sum(axis=1) - own
        pairs = n * (n - 1) / max(h * (h - 1), 1)
        total = pairs * off + n / h * own.sum()
        fewer = n * (n - 1) / max((h - 1) * (h - 2), 1)
        without = fewer * (off - 2 * per_row) + n / max(h - 1, 1) * (own.sum() - own)
        return float(total), without

    (error, error_without), (size, size_without) = sums(missed), sums(whole)
    if size == 0:
        return ErrorEstimate(0.0, 0.0, h)
    ratios = np.sqrt(error_without / np.where(size_without > 0, size_without, size))
    spread = np.sqrt((h - 1) / h * np.square(ratios - ratios.mean()).sum() * (1 - h / n))
    return ErrorEstimate(float(np.sqrt(error / size)), float(spread), h)
