"""The one pass over all rows: sums of kernel values, and a draw of rows for the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from kreinlearn.data.tiles import TILE, Scratch
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.core import PILOT_RTOL, candidate_count, whiten
from kreinlearn.pairs.evaluate import (
    LandmarkColumns,
    evaluate,
    naming,
    require_finite,
    scaled,
)
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.sums.moments import Gram, Moments, Targets, moments_of, spare_for, total_gram
from kreinlearn.sums.parallel import LONGEST, depth_of, map_blocks

if TYPE_CHECKING:
    from kreinlearn.nystrom.landmarks import MapSpec

LEVERAGE_PROBES = 16  # random directions that estimate the pilot leverage of a row


@dataclass
class Reservoir:
    """The rows with the largest keys: a weighted draw, whatever the order of the blocks."""

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
class SweepTotal:
    """What a pass adds up: moments of each group of rows, and a reservoir of rows."""

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


@dataclass(frozen=True)
class RowWork:
    """What the pass does with a block of rows: the same in this process and in another."""

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
    spare: int = 0  # sums that may wait for those of earlier rows

    def zero(self) -> SweepTotal:
        m, q = len(self.landmarks), self.n_outputs
        zeros = [Moments.zeros(m, q, single=self.single) for _ in range(self.n_groups)]
        return SweepTotal(zeros, Reservoir.empty(self.size, self.width))

    def scratch(self) -> Scratch:
        return Scratch(self.buffered)

    def add(
        self, total: SweepTotal, numbers: Array, A: Objects, targets: Targets, scratch: Scratch
    ) -> Array:
        """Add the moments of C / unit to each group and rows to the reservoir; returns C / unit."""
        with naming(numbers, len(self.landmarks)):
            raw = self.columns.raw_of_rows(numbers, A, scratch.get(A, self.width))
            C = self.columns.transformed(raw)
        values = scaled(C, self.unit)
        for g, span in targets.spans(numbers):
            total.groups[g].add(values[span], *targets.of(numbers[span]))
            if not np.isfinite(total.groups[g].gram.sums).all():
                require_finite(C, numbers, self.landmarks)
        if self.pilot is not None:
            projected = values @ self.pilot.astype(values.dtype)
            keys = _reservoir_keys(projected, self.seed, numbers[0])
            total.reservoir.add(keys, numbers, raw)
        return values


def _reservoir_keys(projected: Array, seed: int, first_row: int) -> Array:
    """Keys whose largest are a draw by |projected_i|^2; they depend on the row number alone."""
    leverage = np.square(projected, dtype=np.float64).sum(axis=1)
    chance = np.random.default_rng([seed, int(first_row)]).random(len(projected))
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(chance) / leverage)


class Swept(NamedTuple):
    """What the pass over all rows leaves."""

    groups: list[Moments]  # of C / unit, for each group of rows
    columns: LandmarkColumns
    unit: float
    sample: Sample  # with the rows that were drawn for the core

    @property
    def gram(self) -> Gram:
        """The Gram matrix of C / unit, summed over all rows."""
        return total_gram(self.groups)


def sweep(
    pairs: Pairs, sample: Sample, spec: MapSpec, rng: np.random.Generator, targets: Targets,
    keep: Any = None,
) -> Swept:  # fmt: skip
    """Moments of C / unit over all rows; rows of the sample are not evaluated again.

    For the least-squares core rows are drawn by their pilot leverage, and join the sample. ``keep``
    takes C / unit of all rows, by number.
    """
    columns, unit = pairs.evaluator(sample), sample.unit
    inside = sample.rows[sample.rows >= 0]
    C = sample.scaled[len(sample.rows) - len(inside) :]
    groups = moments_of(C, targets, inside, pairs.workers)
    if keep is not None:
        keep[inside] = C
    n = pairs.n - len(inside)
    if not n:
        return Swept(groups, columns, unit, sample)
    size = candidate_count(len(sample.landmarks)) // 2 if spec.core == "ls" else 0
    width = int(sample.used.sum())
    work = RowWork(
        columns, sample.landmarks, unit, targets.Y.shape[1], targets.n_groups, width,
        buffered=pairs.scratch().useful, single=pairs.session.single,
        seed=int(rng.integers(2**63)), size=size,
    )  # fmt: skip
    workers = _affordable_workers(pairs, sample, work)
    work = replace(work, spare=spare_for(len(sample.landmarks), targets.n_groups, workers))
    if size:
        work = replace(work, pilot=_pilot(groups, rng))

    progress = pairs.session.progress

    def seen(numbers: Array, _: Array) -> None:
        progress.add(len(numbers), len(numbers) * width)

    with progress.step("kernel rows", n, n * width):
        total = pairs.rows.sum(work, targets, inside, workers=workers, keep=keep, seen=seen)
    for mine, theirs in zip(total.groups, groups, strict=True):
        mine += theirs
    if size:
        sample = sample.with_rows(total.reservoir.numbers, total.reservoir.raw)
    return Swept(total.groups, columns, unit, sample)


def _pilot(groups: list[Moments], rng: np.random.Generator) -> Array:  # (m, LEVERAGE_PROBES)
    """Directions whose |c' pilot|^2 estimates the leverage of a row c."""
    T = whiten(np.sum([group.gram.matrix for group in groups], axis=0), PILOT_RTOL)
    return T @ rng.standard_normal((T.shape[1], LEVERAGE_PROBES))


def _affordable_workers(pairs: Pairs, sample: Sample, work: RowWork) -> int:
    """As many workers as the budget has room for; MemoryError if it has room for none."""
    m, width, size = len(sample.landmarks), work.width, work.size
    total = 8 * (work.n_groups * m * m + size * width)  # sums and a reservoir
    fixed = depth_of(pairs.n) * total + 3 * 8 * m * m
    each = total + 8 * TILE * (width + (m if sample.transform is not None else 0)) + 8 * m
    each += 8 * (TILE + 2 * size) * width if size else 0  # a reservoir while it takes in a tile
    pairs.require_memory(
        fixed + each,
        f"one pass with {m} landmarks",
        "raise memory_budget or use fewer landmarks; rows are streamed already",
    )
    each += LONGEST * TILE * pairs.rows.row_bytes  # rows that are read ahead
    fixed += spare_for(m, work.n_groups, pairs.workers) * total
    return max(1, min(pairs.workers, (pairs.session.budget - fixed) // each))


def all_columns(pairs: Pairs, sample: Sample, method: str) -> Array:  # (n, m)
    """All similarities to the landmarks, for the reference routes that need them at once."""
    n, m = pairs.n, len(sample.landmarks)
    pairs.require_memory(
        8 * n * m, f'method="{method}" holds all {n} x {m} kernel values and',
        'pass method="gram", which streams them',
    )  # fmt: skip
    here = sample.rows[sample.rows >= 0]
    C = np.empty((n, m))
    C[here] = sample.C[sample.inside]
    fill_rows(pairs, sample, pairs.evaluator(sample), C, lambda values: values, "kernel rows")
    return C


def fill_rows(
    pairs: Pairs, sample: Sample, columns: LandmarkColumns, out: Array,
    function: Callable[[Array], Array], what: str,
) -> None:  # fmt: skip
    """out[i] = function(C_i) of all rows that are not in the sample."""
    here, width = sample.rows[sample.rows >= 0], int(sample.used.sum())
    progress, others = pairs.session.progress, pairs.n - len(here)

    def one_block(block: tuple[Array, Objects]) -> None:
        numbers, A = block
        C = evaluate(partial(columns.of_rows, numbers), A, numbers, sample.landmarks)
        out[numbers] = function(C)
        progress.add(len(numbers), len(numbers) * width)

    with progress.step(what, others, others * width):
        map_blocks(one_block, pairs.rows.blocks(here), workers=pairs.workers)
