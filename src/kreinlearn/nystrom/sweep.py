"""The passes over all rows: Gram matrices of kernel columns, features of new objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import (
    TILE,
    Read,
    Scratch,
    blocks_to_read,
    length,
    row_blocks,
    row_bytes,
    rows,
    take,
)
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.nystrom.core import PILOT_RTOL, whiten
from kreinlearn.pairs.columns import LandmarkColumns
from kreinlearn.pairs.evaluate import evaluate, naming, over, require_finite
from kreinlearn.pairs.panel import Panel
from kreinlearn.pairs.square import parts_of, process_count
from kreinlearn.progress import TIMED_ROWS, Progress, seconds_a_pair
from kreinlearn.sums.gram import Gram
from kreinlearn.sums.moments import Moments, Targets, moments_of, spare_for
from kreinlearn.sums.parallel import map_blocks, sum_over_blocks
from kreinlearn.sums.tree import LONGEST, depth_of

LEVERAGE_PROBES = 16  # random directions that estimate the pilot leverage of a row
TIMED_SHARE = 50  # of the pairs of a run, one in so many is evaluated to say how long it will take
TIMED_COLUMNS = 1024


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
    tol: float | None = None
    single: bool = False  # float32 blocks multiplied in float32
    eligible: Array | None = None  # rows that may be landmarks; None: all
    sample: bool = False  # a pool of rows is wanted beside the landmarks
    progress: Progress = field(default_factory=Progress)
    store: Any = None  # of kernel values; None: none are kept

    @property
    def sketch(self) -> int:
        """Columns of the paper's uniform sketch: as many as the rank asked for."""
        return min(self.n_landmarks, self.rank or 200)


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

    def clear(self) -> None:
        self.keys, self.numbers, self.raw = self.keys[:0], self.numbers[:0], self.raw[:0]


@dataclass
class PassTotal:
    groups: list[Moments]
    reservoir: Reservoir

    def __iadd__(self, other: Self) -> Self:
        for mine, theirs in zip(self.groups, other.groups, strict=True):
            mine += theirs
        self.reservoir += other.reservoir
        return self

    def clear(self) -> None:
        for group in self.groups:
            group.clear()
        self.reservoir.clear()


def moments_pass(
    panel: Panel, columns: LandmarkColumns, plan: Plan, rng: np.random.Generator,
    targets: Targets, hold: Any = None,
) -> tuple[list[Moments], float]:  # fmt: skip
    """Moments of C / unit over all rows of X; rows of the panel are not evaluated again.

    For the least-squares core the panel also takes in rows drawn by their pilot leverage.
    ``hold`` (n, m), if given, is filled with C / unit; rows that are elsewhere keep theirs.
    """
    X, unit = panel.X.X, panel.unit
    known = panel.rows[panel.rows >= 0]
    here = over(panel.C[len(panel.rows) - len(known) :], unit)
    groups = moments_of(here, targets, known, panel.workers)
    if hold is not None:
        hold[known] = here
    if len(known) == length(X):
        return groups, unit
    size = candidate_count(len(panel.landmarks)) // 2 if plan.core == "ls" else 0
    workers = _affordable_workers(panel, plan, size, targets.n_groups)
    work = _work_of(panel, columns, plan, rng, targets)
    if size:
        work = replace(work, size=size, pilot=_pilot(groups, rng))

    def look_at(numbers: Array, scaled: Array) -> None:
        if hold is not None:
            hold[numbers] = scaled
        plan.progress.add(len(numbers), len(numbers) * work.width)

    n = length(X) - len(known)
    with plan.progress.step("kernel rows", n, n * len(panel.columns)):
        if hasattr(X, "sum_rows"):  # rows that are elsewhere, and summed there
            total = X.sum_rows(work, targets, known, hold)
        else:
            blocks = blocks_to_read(X, known, targets.by_group)
            total = sum_groups(blocks, work, targets, length(X), look_at=look_at, workers=workers)
    for mine, theirs in zip(total.groups, groups, strict=True):
        mine += theirs
    if size:
        panel.add_rows(total.reservoir.numbers, total.reservoir.raw)
    return total.groups, unit


def _work_of(
    panel: Panel, columns: LandmarkColumns, plan: Plan, rng: np.random.Generator, targets: Targets
) -> RowWork:
    return RowWork(
        columns, panel.landmarks, panel.unit, targets.Y.shape[1], targets.n_groups,
        len(panel.columns), buffered=panel.scratch().useful, single=plan.single,
        seed=int(rng.integers(2**63)),
    )  # fmt: skip


def _pilot(groups: list[Moments], rng: np.random.Generator) -> Array:  # (m, LEVERAGE_PROBES)
    """Directions whose |c' pilot|^2 estimates the leverage of a row c."""
    T = whiten(np.sum([group.gram.matrix for group in groups], axis=0), PILOT_RTOL)
    return T @ rng.standard_normal((T.shape[1], LEVERAGE_PROBES))


@dataclass(frozen=True)
class RowWork:
    """What a pass does with a block of rows: the same in this process and in another."""

    columns: LandmarkColumns
    landmarks: Array
    unit: float
    n_outputs: int
    n_groups: int
    width: int  # columns evaluated
    buffered: bool = False  # the kernel writes to a buffer
    single: bool = False
    seed: int = 0
    size: int = 0  # of the reservoir
    pilot: Array | None = None  # (m, LEVERAGE_PROBES)

    def zero(self) -> PassTotal:
        m, q = len(self.landmarks), self.n_outputs
        zeros = [Moments.zeros(m, q, single=self.single) for _ in range(self.n_groups)]
        return PassTotal(zeros, Reservoir.empty(self.size, self.width))

    def add(
        self, total: PassTotal, numbers: Array, A: Objects, targets: Targets, scratch: Scratch
    ) -> Array:
        """Moments of C / unit a group, C / unit itself, and the rows of the largest keys."""
        with naming(numbers, len(self.landmarks)):
            raw = self.columns.raw_of_rows(numbers, A, scratch.get(A, self.width))
            C = self.columns.finish(raw)
        scaled = over(C, self.unit)
        for g, span in targets.spans(numbers):
            total.groups[g].add(scaled[span], *targets.of(numbers[span]))
            if not np.isfinite(total.groups[g].gram.sums).all():
                require_finite(C, numbers, self.landmarks)
        if self.pilot is not None:
            projected = scaled @ self.pilot.astype(scaled.dtype)
            keys = _reservoir_keys(projected, self.seed, numbers[0])
            total.reservoir.add(keys, numbers, raw)
        return scaled


def sum_groups(
    blocks: Iterable[tuple[Array, Read]],
    work: RowWork,
    targets: Targets,
    n: int,
    *,
    look_at: Callable[[Array, Array], None] | None = None,
    workers: int = 1,
) -> PassTotal:
    """Moments of C / unit a group; ``look_at`` sees numbers and C / unit of every block."""
    scratch = Scratch(work.buffered)

    def add(total: PassTotal, block: tuple[Array, Read]) -> None:
        numbers, read = block
        scaled = work.add(total, numbers, read(), targets, scratch)
        if look_at is not None:
            look_at(numbers, scaled)

    spare = spare_for(len(work.landmarks), work.n_groups, workers)
    return sum_over_blocks(add, blocks, work.zero, n, workers=workers, spare=spare)


def gram_pass(
    panel: Panel, columns: LandmarkColumns, plan: Plan, rng: np.random.Generator
) -> tuple[Gram, float]:
    """C'C of C / unit over all rows of X, nothing being learned of them."""
    nothing = Targets.none(length(panel.X.X))
    (moments,), unit = moments_pass(panel, columns, plan, rng, nothing)
    return moments.gram, unit


def _reservoir_keys(projected: Array, seed: int, first_row: int) -> Array:
    """Keys whose largest are a draw by |projected_i|^2; they depend on the row number alone."""
    leverage = np.square(projected, dtype=np.float64).sum(axis=1)
    chance = np.random.default_rng([seed, int(first_row)]).random(len(projected))
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(chance) / leverage)


def _affordable_workers(panel: Panel, plan: Plan, size: int, n_groups: int = 1) -> int:
    """As many workers as the budget has room for; MemoryError if it has room for none."""
    m, width, n = len(panel.landmarks), len(panel.columns), length(panel.X.X)
    total = 8 * (n_groups * m * m + size * width)  # sums and a reservoir
    fixed = depth_of(n) * total + 3 * 8 * m * m
    each = total + 8 * TILE * (width + (m if panel.transform is not None else 0)) + 8 * m
    each += 8 * (TILE + 2 * size) * width if size else 0  # a reservoir while it takes in a tile
    require_memory(
        fixed + each,
        plan.budget,
        f"one pass with {m} landmarks",
        "raise memory_budget or lower n_landmarks; rows are streamed already",
    )
    each += LONGEST * TILE * row_bytes(panel.X.X)  # a run that is read ahead
    fixed += spare_for(m, n_groups, panel.workers) * total
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
        C[numbers] = evaluate(partial(columns.of_rows, numbers), A, numbers, panel.landmarks)
        plan.progress.add(len(numbers), len(numbers) * width)

    width, others = len(panel.columns), n - len(here)
    with plan.progress.step("kernel rows", others, others * width):
        map_blocks(one_block, row_blocks(X, here), workers=panel.workers)
    return C


def candidate_count(m: int) -> int:
    """Rows among which the least-squares core looks for its own."""
    return min(10 * m, max(3 * m, 2000))


def transform_blocks(
    X: Objects,
    columns: LandmarkColumns,
    W: Array,
    out: Array,
    workers: int,
    *,
    buffered: bool = False,
    n_rows: int = TILE,
    progress: Progress | None = None,
) -> Array:
    """out = k(X, Z) @ W, ``n_rows`` at a time; ``buffered`` if the kernel writes in X's type."""
    scratch = Scratch(useful=buffered and columns.transform is None)
    progress = Progress() if progress is None else progress
    n, width = length(X), n_evaluated(columns, len(W))

    def one_part(span: tuple[int, int]) -> None:
        numbers, here = np.arange(*span), out[slice(*span)]
        with naming(numbers, len(W)), np.errstate(over="ignore", invalid="ignore"):
            A = rows(X, *span)
            C = columns(A, scratch.get(A, len(W)))
            np.matmul(C, W.astype(C.dtype, copy=False), out=here, casting="same_kind")
        if not np.isfinite(here).all():
            require_finite(C, numbers, np.arange(len(W)))
        progress.add(len(here), len(here) * width)

    with progress.step("new rows", n, n * width):
        map_blocks(one_part, parts_of(n, n_rows), workers=workers)
    return out


def n_evaluated(columns: LandmarkColumns, m: int) -> int:
    """Columns evaluated for m landmarks: the reference set of a dissimilarity may be larger."""
    if columns.landmarks is None or columns.transform is None:
        return m
    return max(columns.transform.n_reference, int(columns.landmarks.max(initial=-1)) + 1)


def announce(
    progress: Progress, kernel: Kernel, A: Objects, Z: Objects, pairs: int, workers: int,
    at_least: str = "",
) -> None:  # fmt: skip
    """Say what so many pairs will take, if that is long, of a kernel on objects or a callable."""
    if not progress.verbose or not kernel.on_objects:
        return
    own = np.random.default_rng(0)  # what is fitted does not depend on what is said
    a, z = own.integers(length(A), size=TIMED_ROWS), own.integers(length(Z), size=TIMED_COLUMNS)

    def columns(k: int) -> Callable[[int], Array]:
        evaluate = kernel.columns(take(Z, z[:k]))
        return lambda i: evaluate(take(A, a[i : i + 1]))

    with suppress(Exception):  # it will come again, with the number of the row
        most = min(pairs // TIMED_SHARE, 2 * TIMED_ROWS * TIMED_COLUMNS)
        seconds = seconds_a_pair(columns, most)
        cores = workers if kernel.threads else process_count(kernel)
        if seconds is not None:
            progress.announce(pairs, pairs * seconds / cores, cores, at_least)
