"""Rows of a dask collection: they stay on the workers, but for the few that are asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from kreinlearn.data.tiles import TILE, Source, among, take
from kreinlearn.distributed import blocks as b
from kreinlearn.distributed.sums import sum_rows
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.sweep import PassTotal, RowWork
from kreinlearn.sums.moments import Targets

Read = Callable[[Any], Objects]  # a block as it comes -> an array of numbers, or a list of objects


class DaskRows(Source):
    """Rows by global number, whatever the chunks; those taken by number are held here."""

    def __init__(
        self, given: list[Any], lengths: list[int], shape: tuple[int, ...], dtype: Any,
        steps: tuple[Callable[[Any], Any], ...] = (),
    ) -> None:  # fmt: skip
        self.given, self.steps, self.lengths = given, steps, lengths
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.intp)])
        self._numbers = np.empty(0, dtype=np.intp)  # of the rows held, sorted
        self._rows: Any = None
        self._lock = threading.Lock()

    def mapped(self, function: Callable[[Any], Any], dtype: Any, width: int | None) -> DaskRows:
        """Rows of ``function(block)``, made where the block is."""
        shape = (len(self),) if width is None else (len(self), width)
        return DaskRows(self.given, self.lengths, shape, dtype, (*self.steps, function))

    @cached_property
    def blocks(self) -> list[Any]:
        """Delayed blocks, one task each from what was given."""
        if not self.steps:
            return self.given
        step = b.task(partial(b.chained, steps=self.steps))
        return [step(block) for block in self.given]

    def with_blocks_of(self, other: DaskRows) -> DaskRows:
        """The same rows in the blocks of other rows."""
        if self.lengths == other.lengths:
            return self
        spans = zip(other.starts[:-1].tolist(), other.starts[1:].tolist(), strict=True)
        blocks = [self.piece(*span) for span in spans]
        return DaskRows(blocks, other.lengths, self.shape, self.dtype)

    # Where they are

    def piece(self, start: int, stop: int) -> Any:
        """Delayed rows start..stop, put together on a worker."""
        first, last = np.searchsorted(self.starts, [start, stop - 1], "right") - 1
        parts = []
        for i in range(int(first), int(last) + 1):
            at, n = int(self.starts[i]), self.lengths[i]
            lo, hi = max(start - at, 0), min(stop - at, n)
            whole = (lo, hi) == (0, n)
            parts.append(self.blocks[i] if whole else b.task(b.cut)(self.blocks[i], lo, hi))
        return parts[0] if len(parts) == 1 else b.task(b.joined)(parts)

    def sum_rows(
        self, work: RowWork, targets: Targets, known: Array, hold: Any = None
    ) -> PassTotal:
        return sum_rows(self, work, targets, known, hold)

    # A few of them, here

    def take(self, numbers: Any) -> Objects:
        numbers = np.asarray(numbers, dtype=np.intp)
        with self._lock:
            missing = ~among(numbers, self._numbers)
            if missing.any() or self._rows is None:
                self._fetch(np.unique(numbers[missing]))
            return take(self._rows, np.searchsorted(self._numbers, numbers))

    def hold(self, numbers: Array) -> None:
        """Fetch rows that will be asked for a few at a time."""
        self.take(numbers)

    def _fetch(self, new: Array) -> None:
        if self._rows is None:
            self._rows = self._fetched(new if len(new) else np.zeros(1, dtype=np.intp))[: len(new)]
            self._numbers = new
        else:
            both = np.concatenate([self._numbers, new])
            order = np.argsort(both)
            self._rows = take(b.joined([self._rows, self._fetched(new)]), order)
            self._numbers = both[order]

    def _fetched(self, numbers: Array) -> Objects:
        """Rows of sorted numbers, joined on the workers: the client gets nothing else."""
        owner = np.searchsorted(self.starts, numbers, "right") - 1
        picks = [
            b.task(b.picked)(self.blocks[i], numbers[owner == i] - self.starts[i])
            for i in np.unique(owner)
        ]
        return b.computed(b.tree(picks, b.joined))

    def __getitem__(self, numbers: Any) -> Objects:
        if isinstance(numbers, slice):
            start, stop, _ = numbers.indices(len(self))
            if stop - start >= TILE:
                self._refuse()
            numbers = np.arange(start, stop)
        return self.take(numbers)

    def __iter__(self) -> Iterator[Any]:
        self._refuse()
        yield

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self._refuse()
        raise AssertionError

    def _refuse(self) -> None:
        raise TypeError(
            "all rows of a dask collection would have to come to one process for this; give the "
            "parameters of the kernel as numbers, or pass the rows in memory"
        )


def rows_of(X: Any, read: Read) -> DaskRows:
    """The rows of a dask collection; what is not known of its blocks is looked up once."""
    found = b.blocks_of(X)
    lengths, width, dtype = found.lengths, found.width, found.dtype
    if lengths is None or dtype is None:
        seen = _looked_up([b.task(read)(block) for block in found.blocks])
        lengths = [one.n for one in seen]
        full = [one for one in seen if one.n] or seen
        width, dtype = full[0].width, np.result_type(*(one.dtype for one in full))
        _require_alike(full)
    keep = [i for i, n in enumerate(lengths) if n]
    n = sum(lengths)
    shape = (n,) if width is None else (n, width)
    given = [found.blocks[i] for i in keep]
    return DaskRows(given, [lengths[i] for i in keep], shape, dtype, (read,))


def _looked_up(blocks: list[Any]) -> list[b.Seen]:
    seen: list[b.Seen] = b.computed(b.tree([b.task(b.looked_at)(x) for x in blocks], b.listed))
    return seen


def _require_alike(seen: list[b.Seen]) -> None:
    widths = sorted({one.width or 0 for one in seen})
    if len(widths) > 1:
        raise ValueError(f"blocks differ in their number of columns, {widths}; pass them alike")


def like(X: Any) -> Any:
    """An empty frame with the columns of a dask frame; None of anything else."""
    return X._meta if b.is_frame(X) else None


def spread(values: Array, rows: DaskRows) -> DaskRows:
    """An array in memory beside the blocks of rows."""
    cuts = np.split(values, rows.starts[1:-1])
    return DaskRows([b.constant(cut) for cut in cuts], rows.lengths, values.shape, values.dtype)
