"""From objects to a feature map: choose landmarks, pass once over all rows, fit the core."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.blocks import TILE, length, require_memory, rows, tiles, tiles_without
from kreinlearn.kernels._base import Array, Kernel, Objects
from kreinlearn.landmarks import SELECTORS, WHOLE_SAMPLE, gram_of, weighted_draw
from kreinlearn.nystrom import (
    OVERSAMPLING,
    PILOT_RTOL,
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
from kreinlearn.panel import LandmarkColumns, Panel, Rows, pool_size, require_finite
from kreinlearn.reduce import LANES, Gram, map_blocks, sum_over_blocks

LEVERAGE_PROBES = 16  # random directions that estimate the pilot leverage of a row
SAFE_EXPONENT = 100  # kernels within 4^+-50 need no scaling before they are squared
ERROR_ROWS = 256  # sampled rows of an error estimate


@dataclass(frozen=True)
class Plan:
    """What the parameters of an estimator come to on given data."""

    n_landmarks: int
    rank: int | None
    core: str
    method: str
    landmarks: Any  # a scheme's name, row numbers, or objects
    workers: int
    budget: int
    single: bool = False  # float32 blocks multiplied in float32
    tiles: Callable[[Iterable[Any]], Iterable[Any]] = field(default=iter)  # shows progress

    @property
    def sketch(self) -> int:
        """Columns of the paper's uniform sketch: as many as the rank asked for."""
        return min(self.n_landmarks, self.rank or 200)


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
    pool = _pool(n, pool_size(n, plan.n_landmarks), rng)
    if isinstance(plan.landmarks, str):
        wide = plan.landmarks in WHOLE_SAMPLE and 2 * 8 * n * plan.sketch <= plan.budget // 2
        everywhere = np.arange(n) if wide else pool
        return Panel(kernel, Rows(X), everywhere, pool=pool, workers=plan.workers)
    if isinstance(plan.landmarks, np.ndarray) and plan.landmarks.ndim == 1:
        numbers, outside = plan.landmarks, None
    else:
        outside = plan.landmarks
        numbers = np.arange(-length(outside), 0)
    panel = Panel(
        kernel, Rows(X, outside), np.union1d(numbers, pool), pool=pool, workers=plan.workers
    )
    panel.grow(numbers)
    panel.freeze()
    return panel


def _pool(n: int, size: int, rng: np.random.Generator) -> Array:
    return np.arange(n) if size == n else np.sort(rng.choice(n, size, replace=False))


def grow_landmarks(panel: Panel, plan: Plan, rng: np.random.Generator) -> None:
    if plan.n_landmarks == len(panel.pool) == len(panel.rows):  # exact: every object
        panel.grow(np.setdiff1d(panel.rows, panel.landmarks))
        panel.freeze()
    elif isinstance(plan.landmarks, str):
        SELECTORS[plan.landmarks](panel, plan.n_landmarks, rng, plan.sketch)


# The pass over all rows


@dataclass
class Reservoir:
    """The rows with the largest keys: a draw by pilot leverage, whatever the order of blocks."""

    size: int
    keys: Array
    numbers: Array
    raw: Array

    @classmethod
    def empty(cls, size: int, n_columns: int) -> Self:
        return cls(size, np.empty(0), np.empty(0, dtype=np.intp), np.empty((0, n_columns)))

    def add(self, keys: Array, numbers: Array, raw: Array) -> None:
        if len(self.keys) == self.size and len(keys):
            better = keys > self.keys.min()
            keys, numbers, raw = keys[better], numbers[better], raw[better]
        keys = np.concatenate([self.keys, keys])
        best = np.sort(np.argsort(-keys, kind="stable")[: self.size])
        self.keys = keys[best]
        self.numbers = np.concatenate([self.numbers, numbers])[best]
        self.raw = np.concatenate([self.raw, raw])[best]

    def __iadd__(self, other: Self) -> Self:
        self.add(other.keys, other.numbers, other.raw)
        return self


@dataclass
class PassTotal:
    gram: Gram
    reservoir: Reservoir

    def __iadd__(self, other: Self) -> Self:
        self.gram += other.gram
        self.reservoir += other.reservoir
        return self


class Scratch(threading.local):
    """One buffer a worker for the kernel values of a tile."""

    buffer: Array | None = None

    def get(self, n_columns: int, dtype: Any) -> Array:
        if self.buffer is None or self.buffer.dtype != dtype:
            self.buffer = np.empty((TILE, n_columns), dtype)
        return self.buffer


def row_blocks(X: Objects, known: Array) -> Iterator[tuple[Array, Objects]]:
    """Numbers and objects of each fixed tile of X, without the rows in ``known``."""
    for numbers in tiles_without(length(X), known):
        if numbers[-1] - numbers[0] + 1 == len(numbers):
            yield numbers, rows(X, int(numbers[0]), int(numbers[-1]) + 1)
        else:
            yield numbers, Rows(X).take(numbers)


def unit_of(panel: Panel) -> float:
    """A power of four near the size of the kernel, 1 unless its squares might overflow."""
    largest = float(np.max(np.abs(panel.C), initial=0.0))
    exponent = int(np.frexp(largest)[1])
    return 1.0 if abs(exponent) <= SAFE_EXPONENT else 2.0 ** (2 * (exponent // 2))


def gram_pass(
    panel: Panel, columns: LandmarkColumns, plan: Plan, rng: np.random.Generator
) -> tuple[Gram, float]:
    """C'C over all rows of X; rows of the panel are not evaluated again.

    For the least-squares core the panel also takes in rows drawn by their pilot leverage.
    """
    X, m, unit = panel.X.X, len(panel.landmarks), unit_of(panel)
    known = panel.rows[panel.rows >= 0]
    gram = gram_of(panel.C[panel.rows >= 0] / unit, panel.workers)
    if len(known) == length(X):
        return gram, unit
    workers = _affordable_workers(panel, plan)
    pilot, seed, scratch = None, int(rng.integers(2**63)), Scratch()
    size = candidate_count(m) // 2 if plan.core == "ls" else 0
    if size:
        T = whiten(gram.matrix, PILOT_RTOL)
        pilot = T @ rng.standard_normal((T.shape[1], LEVERAGE_PROBES))

    def add(total: PassTotal, block: tuple[Array, Objects]) -> None:
        numbers, A = block
        raw = columns.raw(A, _buffer(A, scratch, len(panel.columns), panel.kernel))
        C = columns.finish(raw)
        require_finite(C, numbers, panel.landmarks)
        scaled = C if unit == 1.0 else C / unit
        total.gram.add(scaled)
        if pilot is not None:
            keys = _reservoir_keys(scaled @ pilot.astype(C.dtype, copy=False), seed, numbers[0])
            total.reservoir.add(keys, numbers, raw)

    def zero() -> PassTotal:
        empty = Reservoir.empty(size, len(panel.columns))
        return PassTotal(Gram.zeros(m, single=plan.single), empty)

    blocks = plan.tiles(row_blocks(X, known))
    total = sum_over_blocks(add, blocks, zero, workers=workers)
    total.gram += gram
    panel.add_rows(total.reservoir.numbers, total.reservoir.raw)
    return total.gram, unit


def _buffer(A: Objects, scratch: Scratch, n_columns: int, kernel: Kernel) -> Array | None:
    dtype = getattr(A, "dtype", None)
    if kernel.takes != "vectors" or dtype not in (np.float32, np.float64):
        return None
    return scratch.get(n_columns, dtype)


def _reservoir_keys(projected: Array, seed: int, first_row: int) -> Array:
    """Keys whose largest are a draw by |projected_i|^2; they depend on the row number alone."""
    leverage = np.square(projected, dtype=np.float64).sum(axis=1)
    chance = np.random.default_rng([seed, int(first_row)]).random(len(projected))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(chance) / leverage)


def _affordable_workers(panel: Panel, plan: Plan) -> int:
    """As many workers as the budget has room for; MemoryError if it has room for none."""
    m, width = len(panel.landmarks), len(panel.columns)
    fixed = 8 * (LANES + 3) * m * m
    each = 8 * TILE * (width + (m if panel.centring is not None else 0)) + 8 * m
    require_memory(
        fixed + each,
        plan.budget,
        f"one pass with {m} landmarks",
        "raise memory_budget or lower n_landmarks; rows are streamed already",
    )
    return max(1, min(panel.workers, (plan.budget - fixed) // each))


def all_columns(panel: Panel, columns: LandmarkColumns, plan: Plan) -> Array:
    """The whole of C, (n, m), for the reference routes that need it at once."""
    X, m = panel.X.X, len(panel.landmarks)
    n, here = length(X), panel.rows[panel.rows >= 0]
    require_memory(
        8 * n * m, plan.budget, f'method="{plan.method}" holds all {n} x {m} kernel values and',
        'pass method="gram", which streams them',
    )  # fmt: skip
    C = np.empty((n, m))
    C[here] = panel.C[panel.rows >= 0]

    def one_block(block: tuple[Array, Objects]) -> None:
        numbers, A = block
        C[numbers] = columns(A)

    map_blocks(one_block, row_blocks(X, here), workers=panel.workers)
    return C


# The core


def candidate_count(m: int) -> int:
    """Rows among which the least-squares core looks for its own."""
    return min(10 * m, max(3 * m, 2000))


def fit_core(
    panel: Panel, gram: Gram, unit: float, n: int, plan: Plan, rng: np.random.Generator,
    C: Array | None = None,
) -> FeatureMap:  # fmt: skip
    """The feature map of the plan's core, of kernels divided by ``unit``; rank not yet cut."""
    m = len(panel.landmarks)
    if plan.core == "ls" and m < n:
        return _least_squares(panel, gram.matrix, unit, n, rng)
    k = None
    if plan.core == "truncated":
        k = plan.rank if plan.rank is not None else max(1, int(m / OVERSAMPLING))
    K_ZZ = panel.K_ZZ / unit
    W, S = landmark_map(K_ZZ, k)
    if plan.method == "gram" or C is None:
        E, Lambda = one_shot(gram.matrix, W, S)
    elif plan.method == "svd":
        E, Lambda = one_shot_svd(C / unit, W, S)
    else:
        E, Lambda = squared_route(C / unit, K_ZZ, k)
    return FeatureMap(W, S, E, Lambda)


def _least_squares(
    panel: Panel, G: Array, unit: float, n: int, rng: np.random.Generator
) -> FeatureMap:
    T = whiten(G)
    Z, m = panel.landmarks, len(panel.landmarks)
    C = panel.C / unit
    rest = np.setdiff1d(panel.rows[panel.rows >= 0], Z)
    uniform = np.setdiff1d(panel.pool, Z)
    R = np.concatenate([Z, _extra_rows(C @ T, panel, rest, uniform, m, rng)])
    K_RR = panel.similarities(R) / unit
    M = least_squares_core(C[panel.positions(R)] @ T, K_RR, n)
    return least_squares_map(T, M)


def _extra_rows(
    Q: Array, panel: Panel, rest: Array, uniform: Array, m: int, rng: np.random.Generator
) -> Array:
    """m rows that span Q, by pivoting, then m uniform ones; none is a landmark."""
    count = candidate_count(m)
    candidates = rest
    if count < len(rest):
        even = rng.choice(uniform, min(count // 2, len(uniform)), replace=False)
        other = np.setdiff1d(rest, uniform)  # drawn by leverage during the pass
        if not len(other):
            other = np.setdiff1d(rest, even)
            scores = np.square(Q[panel.positions(other)]).sum(axis=1)
            other = other[weighted_draw(scores, count - len(even), rng)]
        candidates = np.concatenate([even, other])
    pivots = candidates[pivot_rows(Q[panel.positions(candidates)], m)]
    left = np.setdiff1d(uniform, pivots)
    return np.concatenate([pivots, rng.choice(left, min(m, len(left)), replace=False)])


# Everything together


def fit_map(kernel: Kernel, X: Objects, plan: Plan, rng: np.random.Generator) -> Fitted:
    panel = open_panel(kernel, X, plan, rng)
    grow_landmarks(panel, plan, rng)
    return finish_map(panel, plan, rng)


def finish_map(panel: Panel, plan: Plan, rng: np.random.Generator) -> Fitted:
    n = length(panel.X.X)
    columns = panel.evaluator()
    C = all_columns(panel, columns, plan) if plan.method != "gram" else None
    gram, unit = gram_pass(panel, columns, plan, rng)
    feature_map = fit_core(panel, gram, unit, n, plan, rng, C)
    return Fitted(panel, columns, gram, unit, feature_map.rescaled(unit))


def fit_map_to_tolerance(
    kernel: Kernel, X: Objects, plan: Plan, tol: float, rng: np.random.Generator
) -> tuple[Fitted, int | None]:
    """Landmarks doubled, every evaluated column kept, until the estimated error is below tol.

    Also the smallest rank that stays below it (None: no rank does).
    """
    n = length(X)
    panel = open_panel(kernel, X, plan, rng)
    sample = np.sort(rng.choice(panel.pool, min(ERROR_ROWS, len(panel.pool)), replace=False))
    while True:
        grow_landmarks(panel, plan, rng)
        unit = unit_of(panel)
        gram = gram_of(panel.C / unit, panel.workers)
        trial = fit_core(panel, gram, unit, len(panel.rows), plan, rng).cut(plan.rank)
        K = panel.similarities(sample)
        Phi = panel.C[panel.positions(sample)] @ trial.rescaled(unit).W
        if estimate_error(K, Phi, trial.S, n).relative <= tol or len(panel.landmarks) >= n:
            break
        plan = replace(plan, n_landmarks=min(n, 2 * len(panel.landmarks)))
    fitted = finish_map(panel, plan, rng)
    whole = fitted.map.cut(plan.rank)
    Phi = panel.C[panel.positions(sample)] @ whole.W
    error = estimate_error(K, Phi, whole.S, n)
    return fitted._replace(error=error), _smallest_rank(K, fitted, panel, sample, tol, n)


def _smallest_rank(
    K: Array, fitted: Fitted, panel: Panel, sample: Array, tol: float, n: int
) -> int | None:
    C = panel.C[panel.positions(sample)]
    low, high = 1, len(fitted.map.Lambda)

    def error(rank: int) -> float:
        cut = fitted.map.cut(rank)
        return estimate_error(K, C @ cut.W, cut.S, n).relative

    if not high or error(high) > tol:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= tol else (middle + 1, high)
    return high


def estimate_error(K: Array, Phi: Array, S: Array, n: int) -> ErrorEstimate:
    """Unbiased sums of squares from the pairs of a uniform sample; jackknife standard error."""
    h = len(K)
    missed, whole = np.square(K - (Phi * S) @ Phi.T), np.square(K)

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


def transform_blocks(
    X: Objects, columns: LandmarkColumns, W: Array, out: Array, workers: int
) -> Array:
    """out = k(X, Z) @ W, a tile at a time."""
    spans = tiles(length(X))

    def one_tile(span: tuple[int, int]) -> None:
        C = columns(rows(X, *span))
        require_finite(C, np.arange(*span), np.arange(C.shape[1]))
        np.matmul(C, W.astype(C.dtype, copy=False), out=out[slice(*span)], casting="same_kind")

    map_blocks(one_tile, spans, workers=workers)
    return out
