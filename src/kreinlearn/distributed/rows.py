"""Rows of a dask collection: they stay on the workers, except for the few that are taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import getitem
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kreinlearn.data.tiles import TILE, Source, among, take
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Collection, Delayed, Layout
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.pairs.rows import joined

Read = Callable[[Objects], Objects]  # a block as given -> an array of numbers or a list of objects


class DaskRows(Source):
    """Rows by their number in the collection, whatever its chunks; rows once taken stay here."""

    def __init__(
        self, given: list[Delayed], lengths: list[int], shape: tuple[int, ...], dtype: DTypeLike,
        steps: tuple[Read, ...] = (), n_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self.given, self.steps, self.lengths = given, steps, lengths
        self.n_bytes = n_bytes  # of all rows, if that is known
        self.kept_bytes = 0  # of rows that stay in the memory of the workers
        self.beside: DaskRows | None = None  # the rows that these, targets or weights, belong to
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.intp)])
        self._taken = np.empty(0, dtype=np.intp)  # numbers of the rows that are here, sorted
        self._rows: Objects | None = None  # these rows
        self._lock = threading.Lock()

    def mapped(self, function: Read, dtype: DTypeLike, width: int | None) -> DaskRows:
        """The rows of ``function(block)``, which is called where the block is."""
        shape = (len(self),) if width is None else (len(self), width)
        steps = (*self.steps, function)
        rows = DaskRows(self.given, self.lengths, shape, dtype, steps, self.n_bytes)
        rows.beside = self.beside
        return rows

    def persisted(self) -> DaskRows:
        """The same rows, which stay in the memory of the workers once they are read."""
        blocks, _ = delayed.persist(self.blocks, delayed.constant(None))
        rows = DaskRows(blocks, self.lengths, self.shape, self.dtype, (), self.n_bytes)
        rows.kept_bytes = self.n_bytes or 0
        return rows

    @cached_property
    def blocks(self) -> list[Delayed]:
        """The delayed blocks; all steps from what was given are one task per block."""
        if not self.steps:
            return self.given
        step = delayed.task(partial(delayed.chained, steps=self.steps))
        return [step(block) for block in self.given]

    def with_blocks_of(self, other: DaskRows) -> DaskRows:
        """The same rows, divided into blocks as other rows are."""
        if self.lengths == other.lengths:
            return self
        spans = zip(other.starts[:-1].tolist(), other.starts[1:].tolist(), strict=True)
        blocks = [self.piece(*span) for span in spans]
        return DaskRows(blocks, other.lengths, self.shape, self.dtype)

    def piece(self, start: int, stop: int) -> Delayed:
        """The delayed rows start..stop, joined on a worker."""
        parts = self.parts(start, stop)
        return parts[0] if len(parts) == 1 else delayed.task(joined)(parts)

    def parts(self, start: int, stop: int) -> list[Delayed]:
        """The delayed rows start..stop, which may be on several workers."""
        first, last = np.searchsorted(self.starts, [start, stop - 1], "right") - 1
        parts = []
        for i in range(int(first), int(last) + 1):
            at, n = int(self.starts[i]), self.lengths[i]
            part = slice(max(start - at, 0), min(stop - at, n))
            whole = part == slice(0, n)
            parts.append(self.blocks[i] if whole else delayed.task(getitem)(self.blocks[i], part))
        return parts

    # A few rows in memory

    def take(self, numbers: ArrayLike) -> Objects:
        """Rows by number, in the given order; those that are not here yet are fetched.

        Targets and weights are fetched for all rows that are here, as they will be asked for.
        """
        numbers = np.asarray(numbers, dtype=np.intp)
        with self._lock:
            missing = numbers[~among(numbers, self._taken)]
            if len(missing) or self._rows is None:
                more = missing[:0] if self.beside is None else self.beside._taken
                self._add(np.setdiff1d(np.concatenate([missing, more]), self._taken))
            return take(self._rows, np.searchsorted(self._taken, numbers))

    def _add(self, new: Array) -> None:
        """Fetch rows of sorted numbers, and sort them in among those that are here."""
        if self._rows is None:  # one row shows the type of the rows, even if none is wanted
            fetched = self._fetched(new if len(new) else np.zeros(1, dtype=np.intp))
            self._rows, self._taken = fetched[: len(new)], new
        else:
            numbers = np.concatenate([self._taken, new])
            order = np.argsort(numbers)
            self._rows = take(joined([self._rows, self._fetched(new)]), order)
            self._taken = numbers[order]

    def _fetched(self, numbers: Array) -> Objects:
        """Rows of sorted numbers; they are joined on the workers, and nothing else is sent."""
        owner = np.searchsorted(self.starts, numbers, "right") - 1
        parts = [
            delayed.task(_taken)(self.given[i], self.steps, numbers[owner == i] - self.starts[i])
            for i in np.unique(owner)
        ]
        return delayed.compute(delayed.task(joined)(parts))

    def __getitem__(self, numbers: slice | ArrayLike) -> Objects:
        if isinstance(numbers, slice):
            start, stop, _ = numbers.indices(len(self))
            if stop - start >= TILE:
                self._refuse()
            numbers = np.arange(start, stop)
        return self.take(numbers)

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> Array:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError(
            "all rows of a dask collection would have to be sent to one process for this; give the "
            "parameters of the kernel as numbers, or pass the rows in memory"
        )


def _taken(block: Objects, steps: Sequence[Read], places: Array) -> Objects:
    """Rows of a block after all steps from what was given."""
    return take(delayed.chained(block, steps), places)


def rows_of(
    X: Collection, read: Read, *, keep: bool = False, along: Sequence[list[Delayed]] = ()
) -> DaskRows:
    """The rows of a dask collection, without empty blocks.

    If the collection does not tell the lengths or the type of its blocks, all blocks are read once,
    and with ``keep`` they then stay on the workers. The lists of blocks ``along`` are read in the
    same pass, and are changed to blocks that stay there.
    """
    n_bytes, steps = None, tuple[Read, ...]((read,))
    blocks, lengths, width, dtype = delayed.blocks_of(X)
    if lengths is None or dtype is None:
        as_read = list(map(delayed.task(read), blocks))
        every = delayed.task(list)(list(map(delayed.task(delayed.layout_of), as_read)))
        others = [*chain(*along), *(as_read if keep else [])]
        kept, layouts = delayed.persist(others, every)
        for blocks_along in along:
            blocks_along[:], kept = kept[: len(blocks_along)], kept[len(blocks_along) :]
        if keep:
            blocks, steps = kept, ()
        lengths, n_bytes = [layout.n for layout in layouts], sum(one.n_bytes for one in layouts)
        layouts = [layout for layout in layouts if layout.n] or layouts
        width, dtype = layouts[0].width, np.result_type(*(layout.dtype for layout in layouts))
        _require_same_width(layouts)
    full = [i for i, n in enumerate(lengths) if n]
    shape = (sum(lengths),) if width is None else (sum(lengths), width)
    if n_bytes is None and dtype != np.dtype(object):
        n_bytes = int(np.prod(shape)) * max(dtype.itemsize, 8)
    some, their = [blocks[i] for i in full], [lengths[i] for i in full]
    return DaskRows(some, their, shape, dtype, steps, n_bytes)


def _require_same_width(layouts: Sequence[Layout]) -> None:
    widths = sorted({layout.width or 0 for layout in layouts})
    if len(widths) > 1:
        raise ValueError(
            f"blocks differ in their number of columns, {widths}; pass blocks with equal columns"
        )


def empty_frame(X: Collection) -> Any:
    """An empty frame with the columns of a dask frame; None for any other collection."""
    return X._meta if delayed.is_frame(X) else None


def spread(values: Array, like: DaskRows) -> DaskRows:
    """An array in memory, divided into blocks as the rows ``like`` are."""
    parts = np.split(values, like.starts[1:-1])
    return DaskRows(list(map(delayed.constant, parts)), like.lengths, values.shape, values.dtype)
