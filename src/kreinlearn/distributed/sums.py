"""Sums over the rows of one span on a worker, and the kernel values of its tiles.

Sums are over fixed spans of whole tiles by row number, in a fixed tree. Chunks and workers only
decide where the rows of a span are joined: the sums have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kreinlearn.data.tiles import Scratch, row_blocks, tiles_without
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.core import RowWork, SweepTotal
from kreinlearn.pairs.evaluate import naming, scaled
from kreinlearn.pairs.rows import joined
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import serial_blas

WeightedTargets = tuple[Array, Array]  # targets (k, q) and weights (k,) of the rows of a span


@dataclass(frozen=True)
class Span:
    """Consecutive rows, which begin with a tile, and what belongs to them.

    In this process their parts are delayed. A task to which a span is given has the parts
    themselves; those that it does not need are left out.
    """

    work: Any  # a RowWork, or a TileWork
    start: int
    stop: int
    left_out: Array  # numbers of the rows that are not evaluated
    groups: Array | None  # of all rows
    A: Sequence[Objects] | None = None  # in parts, as Y and w
    Y: Sequence[Array] | None = None
    w: Sequence[Array] | None = None

    @cached_property
    def objects(self) -> Objects:
        """The rows, one after the other; an array is aligned."""
        assert self.A is not None
        return aligned(joined(self.A))

    @cached_property
    def targets(self) -> Targets:
        """The targets of the rows, with their groups."""
        numbers = np.arange(self.start, self.stop)
        groups = None if self.groups is None else np.asarray(self.groups[numbers])
        Y = np.empty((len(numbers), 0)) if self.Y is None else joined(self.Y)
        w = None if self.w is None else joined(self.w)
        return Targets(Y, w, groups, self.work.n_groups, first=self.start)

    def numbers_by_tile(self) -> list[Array]:
        """The numbers of the rows of each tile, in the order in which they are evaluated."""
        return list(map(self.targets.by_group, tiles_without(self.start, self.stop, self.left_out)))

    def groups_in_order(self) -> Array:
        """The group of each row, in the order in which the rows are evaluated."""
        assert self.groups is not None
        return np.asarray(self.groups[np.concatenate(self.numbers_by_tile())])

    def blocks(self) -> Iterator[tuple[Array, Objects]]:
        """The numbers and objects that are evaluated at once."""
        order, size = self.targets.by_group, self.work.block_rows
        return row_blocks(self.objects, self.left_out, order, self.start, size)

    def total(self) -> SweepTotal:
        """The sums of the rows."""
        with self._working() as work:
            return self._added(work, self.blocks())

    @contextmanager
    def _working(self) -> Iterator[Any]:
        """The work on the rows; their values go by way of the shard of the span, if it has one."""
        columns = self.work.columns
        if columns.stored is None:
            yield self.work
        else:
            with columns.stored.shard(self.start, self.objects) as stored:
                yield replace(self.work, columns=replace(columns, stored=stored))

    def _added(self, work: RowWork, blocks: Iterable[tuple[Array, Objects]]) -> SweepTotal:
        total, targets, scratch = work.zero(), self.targets, work.scratch()
        with serial_blas():
            for numbers, block in blocks:
                work.add(total, numbers, block, targets, scratch)
        return total

    @property
    def numbers(self) -> Array:
        """The numbers of the rows that are evaluated, where these have no groups."""
        tiles = list(tiles_without(self.start, self.stop, self.left_out))
        return np.concatenate(tiles)

    def mapped(self, function: Callable[[Array], Array]) -> Array:
        """``function`` of the values of each row."""
        scratch = self.work.scratch()
        with serial_blas(), self._working() as work:
            parts = [function(work.values(*block, scratch)) for block in self.blocks()]
        return np.concatenate(parts)

    def __iter__(self) -> Iterator[Array]:
        """Evaluate the kernel, one tile after the other; a tile may overwrite the one before."""
        return self._evaluated(self.work.scratch(), 0)

    def _evaluated(self, scratch: Scratch, step: int) -> Iterator[Array]:
        """The same; with a ``step`` of 1, each tile is written to the buffer after the others."""
        with self._working() as work:
            for numbers, block in self.blocks():
                buffer = scratch.get(block, work.width)
                with naming(numbers, len(work.landmarks)):
                    raw = work.columns.raw_of_rows(numbers, block, buffer)
                if buffer is not None:
                    scratch.buffer = buffer[step * len(raw) :]
                yield raw

    def evaluated_and_summed(self) -> tuple[list[Array], SweepTotal]:
        """The kernel values of all tiles, and their sums.

        Values are written to one array if the kernel takes one: large pieces of memory cost less.
        """
        columns = replace(self.work.columns, stored=_as_evaluated)
        work = replace(self.work, columns=columns, buffered=False)
        tiles, whole = list[Array](), Scratch(self.work.buffered, self.stop - self.start)

        def blocks() -> Iterator[tuple[Array, Array]]:
            for numbers, tile in zip(
                self.numbers_by_tile(), self._evaluated(whole, 1), strict=True
            ):
                tiles.append(tile)
                yield numbers, tile

        return tiles, self._added(work, blocks())

    def weighted_targets(self) -> WeightedTargets:
        """Targets and weights in the order in which the rows are evaluated."""
        targets = self.targets
        Y, w = targets.Y, targets.weights
        places = np.concatenate(self.numbers_by_tile()) - self.start
        return np.asfortranarray(Y[places]), np.ones(len(places)) if w is None else w[places]


def aligned(A: Objects) -> Objects:
    """Objects as they are; an array is copied if its memory is not aligned.

    An array from another process may begin at any address, and would be multiplied in another
    order.
    """
    return np.require(A, requirements="A") if isinstance(A, np.ndarray) else A


def _as_evaluated(numbers: Array, values: Array, out: Array | None) -> Array:
    """Kernel values in the place of objects, for a pass that would evaluate these."""
    return np.asarray(aligned(values))


def mapped_tiles(work: Any, tiles: Iterable[Array], function: Callable[[Array], Array]) -> Array:
    """``function`` of the similarities of each row, from the kernel values of a span."""
    with serial_blas():
        return np.concatenate([function(similarities(work, tile)) for tile in tiles])


def similarities(work: RowWork | None, values: Array) -> Array:
    """k(x, Z) / unit of a tile on a worker; without ``work`` the values are so already."""
    if work is not None:
        values = scaled(work.columns.transformed(aligned(values)), work.unit)
    return np.asarray(values, dtype=np.float64)
