"""Features of all rows, for losses that look at single rows and not only at sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE, Part, Scratch, in_turn, row_blocks, take
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.learn.losses.kept_rows import KeptRows, Sampled, by_rank
from kreinlearn.pairs.evaluate import LandmarkColumns, naming, require_finite, scaled
from kreinlearn.progress import Progress
from kreinlearn.solvers.margins import Chosen, Picked, Wanted
from kreinlearn.sums.moments import FeatureMoments, Moments
from kreinlearn.sums.parallel import map_blocks, sum_over_blocks

AnyMoments = FeatureMoments | Moments
DENSE = 1 / 64  # share of the rows above which they are summed tile by tile, and not gathered
MAPPED = 2  # times the features: so many rows are mapped in less time than their sums
SUM_BYTES = 2**25  # of Gram matrices that one thread sums at a time
GATHERED_BYTES = 2**25  # of the rows that are gathered at a time


@dataclass(frozen=True)
class FeatureRows:
    """phi(x) = (k(x, Z) W / unit, 1): what is summed is k(x, Z), and W is applied to the sums.

    A tile is evaluated as in the first pass, so that its values are those of the first pass.
    """

    X: Objects
    columns: LandmarkColumns
    landmarks: Array
    unit: float
    W: Array  # (m, r)
    n: int
    intercept: bool
    values: Array | None = None  # (n, m): k(x, Z) / unit of all rows
    sampled: Sampled | None = None
    by_tile: bool = True  # a row's values depend on the tile that it is evaluated in, by rounding
    kept: KeptRows = field(default_factory=KeptRows)
    workers: int = 1
    progress: Progress = field(default_factory=Progress)
    scratch: Scratch = field(default_factory=partial(Scratch, False))  # of the kernel
    tile: Scratch = field(default_factory=partial(Scratch, True))  # of the rows in their order
    sum_bytes: int = SUM_BYTES  # for the Gram matrices of one total of a pass
    gathered_bytes: int = GATHERED_BYTES  # whatever the budget, which changes no bit of a sum then
    rank: Array | None = None  # (n,): places of rows in their tiles; None: those of their numbers
    at: Array | None = None  # (n,): places of these rows among ``values``, if they are some of them

    @property
    def p(self) -> int:
        return self.W.shape[1] + self.intercept

    def with_map(self, W: Array) -> FeatureRows:
        return replace(self, W=W)

    def decision(self, Z: Array, wanted: Wanted | None = None) -> Array:  # (p, q) -> (n, q)
        """Decision values of all rows; kernel values of rows that are ``wanted`` next are kept."""
        out = np.empty((self.n, Z.shape[1]))
        self._pass(Z, out, wanted)
        return out

    def decision_and_terms(
        self, Z: Array, wanted: Wanted, picked: Picked
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        """The same, and the sums of the rows that are picked by their decision values.

        There is one pass for as many outputs as have room for their sums.
        """
        q = Z.shape[1]
        out, terms = np.empty((self.n, q)), list[tuple[Array, Array]]()
        for part in gen_batches(q, sums_at_once(len(self.W), self.sum_bytes)):
            last, some = part.stop == q, range(part.start, part.stop)
            total = self._pass(Z, out, wanted if last else None, picked, some)
            found = (sums.terms(self.W) for sums in total.parts)
            each = [one.with_constant(intercept=self.intercept) for one in found]
            terms += [(A, b[:, 0]) for A, b in each]
        return out, terms

    def _pass(
        self, Z: Array, out: Array, wanted: Wanted | None, picked: Picked | None = None,
        outputs: Sequence[int] = (),
    ) -> SumsOfEach:  # fmt: skip
        """Fill ``out`` by decision values; returns sums of the rows picked for some outputs.

        All outputs are decided by one product, whose rounding does not depend on the budget then.
        """
        r, m = self.W.shape[1], len(self.W)
        dual, constant = self.W @ Z[:r], Z[r] if self.intercept else 0.0

        def add(total: SumsOfEach, block: tuple[int, slice, Objects | None]) -> None:
            _, here, objects = block
            C = self._tile(here.start, here.stop, objects)
            out[self._in_order(here)] = C @ dual + constant
            if not np.isfinite(out[here]).all():
                require_finite(C, np.arange(here.start, here.stop), self.landmarks)
            for k, sums in zip(outputs, total.parts, strict=True):
                assert picked is not None
                one = picked(k, here, out[here, k])
                sums.add(C[self._place(one.numbers)], one.columns, unless_ones(one.weights))
            if wanted is not None:
                self.kept.add(here.start, C, partial(wanted, here, out[here]), self._place)

        def zero() -> SumsOfEach:
            return SumsOfEach([Moments.zeros(m, 1) for _ in outputs])

        self.kept.clear(m if self.values is None else 0)
        with self._step(self.n):
            total = sum_over_blocks(add, self._tiles(), zero, self.n, workers=self.workers)
        self.kept.known = wanted is not None
        return total

    def _tiles(self) -> Iterator[tuple[int, slice, Objects | None]]:
        """The first row and the rows of each tile, and their objects if these come in turn."""
        for here in gen_batches(self.n, TILE):
            yield here.start, here, self.X[here] if self._reads_in_turn else None

    @property
    def _reads_in_turn(self) -> bool:
        """Whether rows are read from beginning to end: threads that are far apart would not."""
        return self.values is None and in_turn(self.X)

    def sample(self) -> tuple[Array, FeatureRows] | None:
        return self._kept() if self.kept.drawn and self.p else None

    def near(self) -> tuple[Array, FeatureRows] | None:
        return None if self.kept.drawn else self._kept()

    def _kept(self) -> tuple[Array, FeatureRows] | None:
        numbers = self.kept.numbers
        if not (self.kept.known and len(numbers)):
            return None
        if self.values is None:
            return numbers, self._some(self.kept.values[: len(numbers)])
        return numbers, self._some(self.values, self._at(numbers))

    def part(self, places: Array) -> FeatureRows:
        assert self.values is not None
        if self.at is None:
            return self._some(self.values[places])
        return self._some(self.values, self.at[places])

    def _some(self, values: Array, at: Array | None = None) -> FeatureRows:
        """Some rows: all those of the values, or those at some places among them."""
        n = len(values if at is None else at)
        return replace(self, n=n, values=values, at=at, kept=KeptRows(), rank=None)

    def terms(self, chosen: Sequence[Chosen]) -> list[tuple[Array, Array]]:
        """sum w phi phi' and sum w t phi over each choice of rows; a row is evaluated once.

        Few rows are gathered: they have room beside their sums, and are mapped faster than these.
        """
        few = max(DENSE * self.n, MAPPED * self.p)
        dense = any(len(one.numbers) > few for one in chosen)
        found = self._sums_of_tiles(chosen) if dense else self._sums_of_few(chosen)
        return [self._with_constant(found.pop(0), one) for one in chosen]  # not all are there twice

    def _with_constant(self, terms: FeatureMoments, one: Chosen) -> tuple[Array, Array]:
        A, b = terms.with_constant(intercept=self.intercept)
        return A, b.reshape(self.p, *one.targets.shape[1:])

    def _sums_of_tiles(self, chosen: Sequence[Chosen]) -> list[FeatureMoments]:
        """The sums of many rows, tile by tile, for as many choices at a time as fit in memory."""
        m, size = len(self.W), sums_at_once(len(self.W), self.sum_bytes)

        def add(total: SumsOfEach, here: slice) -> None:
            parts = [slice(*np.searchsorted(one.numbers, [here.start, here.stop])) for one in some]
            numbers = [one.numbers[part] for one, part in zip(some, parts, strict=True)]
            every = numbers[0] if len(numbers) == 1 else np.unique(np.concatenate(numbers))
            C = self._columns_of(every, 1)
            for sums, one, part, mine in zip(total.parts, some, parts, numbers, strict=True):
                rows = C if len(mine) == len(every) else C[np.searchsorted(every, mine)]
                sums.add(rows, one.columns[part], unless_ones(one.weights[part]))

        def zero() -> SumsOfEach:
            return SumsOfEach([Moments.zeros(m, one.columns.shape[1]) for one in some])

        found, workers = [], 1 if self._reads_in_turn else self.workers
        for start in range(0, len(chosen), size):
            some = chosen[start : start + size]
            with self._step(self.n):
                tiles = gen_batches(self.n, TILE)
                total = sum_over_blocks(add, tiles, zero, self.n, workers=workers)
            found += [sums.terms(self.W) for sums in total.parts]
        return found

    def _sums_of_few(self, chosen: Sequence[Chosen]) -> list[FeatureMoments]:
        """The sums of few rows, of which as many are gathered at a time as have room.

        Of choices with hardly more rows than features, rows are mapped, and of others their sums.
        """
        if not chosen:
            return []
        every = np.unique(np.concatenate([one.numbers for one in chosen]))
        mapped = [len(one.numbers) <= MAPPED * self.p for one in chosen]
        once = any(mapped) and sum(len(one.numbers) for one in chosen) > len(every)
        totals: list[AnyMoments | None] = [None] * len(chosen)
        with self._step(self._evaluated(every)):
            for numbers in self._gathered(every):
                C = self._columns_of(numbers, self.workers)
                Phi = C @ self.W if once else None  # for all choices
                for i, (whole, few) in enumerate(zip(chosen, mapped, strict=True)):
                    one = between(whole, numbers)
                    sums = (
                        self._mapped(numbers, C, Phi, one) if few else self._summed(numbers, C, one)
                    )
                    totals[i] = added(totals[i], sums)
        return [self._terms(totals.pop(0)) for _ in chosen]  # one after the other leaves memory

    def _terms(self, total: AnyMoments | None) -> FeatureMoments:
        assert total is not None
        return total if isinstance(total, FeatureMoments) else total.terms(self.W)

    def _gathered(self, every: Array) -> Iterator[Array]:
        """Sorted row numbers in parts that end where tiles do, so that none is evaluated twice."""
        size, start = max(TILE, self.gathered_bytes // (8 * len(self.W))), 0
        while start < len(every):
            stop = start + size
            if stop < len(every):
                stop = int(np.searchsorted(every, every[stop] - every[stop] % TILE))
            yield every[start:stop]
            start = stop
        if not len(every):
            yield every

    def _mapped(self, numbers: Array, C: Array, Phi: Array | None, one: Chosen) -> FeatureMoments:
        places = np.searchsorted(numbers, one.numbers)
        rows = C[places] @ self.W if Phi is None else Phi[places]
        return FeatureMoments.of_rows(rows, one.columns, one.weights)

    def _summed(self, numbers: Array, C: Array, one: Chosen) -> Moments:
        mine = C if len(one.numbers) == len(C) else C[np.searchsorted(numbers, one.numbers)]
        n, m = len(mine), len(self.W)

        def add(total: Moments, part: slice) -> None:
            total.add(mine[part], one.columns[part], unless_ones(one.weights[part]))

        def zero() -> Moments:
            return Moments.zeros(m, one.columns.shape[1])

        tiles = gen_batches(n, TILE) if n else ()
        return sum_over_blocks(add, tiles, zero, n, workers=self.workers)

    def _columns_of(self, numbers: Array, workers: int) -> Array:
        """k(x, Z) / unit of sorted row numbers."""
        if self.values is not None:
            return np.asarray(self.values[self._at(numbers)])  # without a copy of all
        out, (known, places) = np.empty((len(numbers), len(self.W))), self.kept.split(numbers)
        if known.any():
            out[known] = self.kept.values[places]
        if not known.all():
            out[~known] = self._again(numbers[~known], workers)
        return out

    def _again(self, numbers: Array, workers: int) -> Array:
        if self.by_tile:
            out = np.empty((len(numbers), len(self.W)))

            def one_tile(start: int) -> None:
                here = slice(*np.searchsorted(numbers, [start, start + TILE]))
                C = self._tile(start, min(start + TILE, self.n))
                np.take(C, self._place(numbers[here]), axis=0, out=out[here], mode="clip")

            map_blocks(one_tile, (TILE * np.unique(numbers // TILE)).tolist(), workers=workers)
        else:
            out = self._evaluate(take(self.X, numbers), numbers)
        require_finite(out, numbers, self.landmarks)
        return out

    def _place(self, numbers: Array) -> Array:
        """The places of rows in their tiles."""
        return numbers % TILE if self.rank is None else self.rank[numbers]

    def _at(self, numbers: Array) -> Array:
        """The places of rows among the values."""
        if self.at is not None:
            return np.asarray(self.at[numbers])
        return numbers if self.rank is None else by_rank(numbers, self.rank)

    def _in_order(self, tile: slice) -> Any:
        """The numbers of the rows of a tile, in the order of their places."""
        if self.rank is None:
            return tile
        numbers = np.empty(tile.stop - tile.start, dtype=np.intp)
        numbers[self.rank[tile]] = np.arange(tile.start, tile.stop)
        return numbers

    def _tile(self, start: int, stop: int, objects: Objects | None = None) -> Array:
        """k(x, Z) / unit of the rows of a tile, by their places.

        The next call of the same thread overwrites it. ``objects`` are the rows, if they are read.
        """
        if self.values is not None and self.at is None:
            return np.asarray(self.values[start:stop])
        rows = Part(self.X, start, stop) if objects is None else objects
        if self.values is None and self.sampled is None:
            return self._evaluate(rows[:], np.arange(start, stop))
        buffer = self.tile.get(self.W, len(self.W))
        assert buffer is not None
        C = buffer[: stop - start]
        if self.values is not None:
            assert self.at is not None
            return np.take(self.values, self.at[start:stop], axis=0, out=C, mode="clip")
        assert self.sampled is not None
        here = slice(*np.searchsorted(self.sampled.numbers, [start, stop]))
        inside = self.sampled.numbers[here] - start

        def ordered(places: Array) -> Array:
            return places[np.argsort(self._place(places + start))]

        for places, block in row_blocks(rows, inside, ordered):
            values = self._evaluate(block, places + start, C)
            if not np.may_share_memory(values, C):
                C[: len(places)] = values
        C[len(C) - len(inside) :] = self.sampled.values[here]
        return C

    def _evaluated(self, numbers: Array) -> int:
        """About how many rows have to be evaluated for these."""
        numbers = numbers[~self.kept.split(numbers)[0]]
        return TILE * len(np.unique(numbers // TILE)) if self.by_tile else len(numbers)

    def _step(self, n: int) -> AbstractContextManager[None]:
        """A step of the progress bar for rows that are evaluated again."""
        kept = self.values is not None
        return nullcontext() if kept else self.progress.step("rows again", n, n * len(self.W))

    def _evaluate(self, A: Objects, numbers: Array, out: Array | None = None) -> Array:
        """k(x, Z) / unit of a block of rows, in ``out`` or a buffer of this thread if it can be."""
        buffer = self.scratch.get(A, self.columns.n_evaluated(len(self.W)))
        if buffer is not None and out is not None:
            buffer = out if buffer.shape[1] == out.shape[1] else buffer
        with naming(numbers, len(self.landmarks)):
            C = self.columns.of_rows(numbers, A, buffer)
        self.progress.add(len(C), C.size)
        return np.asarray(scaled(C, self.unit), dtype=np.float64)


@dataclass
class SumsOfEach:
    """The sums of each choice of rows, at a time."""

    parts: list[Moments]

    def __iadd__(self, other: Self) -> Self:
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs
        return self

    def clear(self) -> None:
        for part in self.parts:
            part.clear()


def sums_at_once(m: int, n_bytes: int = SUM_BYTES) -> int:
    """How many Gram matrices one total of a pass has."""
    return max(1, n_bytes // (8 * m**2))


def unless_ones(weights: Array) -> Array | None:
    """None for weights that are all 1, which change nothing and cost a copy of the rows."""
    return None if (weights == 1).all() else weights


def between(one: Chosen, numbers: Array) -> Chosen:
    """The part of a choice that is not before the first or after the last of sorted numbers."""
    ends = numbers[[0, -1]] + [0, 1] if len(numbers) else np.zeros(2)
    here = slice(*np.searchsorted(one.numbers, ends))
    return Chosen(one.numbers[here], one.weights[here], one.targets[here])


def added(total: AnyMoments | None, more: AnyMoments) -> AnyMoments:
    """The sum of moments of the same kind; those of kernel values are added in place."""
    if total is None:
        return more
    if isinstance(total, FeatureMoments):
        assert isinstance(more, FeatureMoments)
        return total.plus(more)
    assert isinstance(more, Moments)
    total += more
    return total
