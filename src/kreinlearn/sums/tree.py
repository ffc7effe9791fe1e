"""Spans of tiles, which are read in order, summed by any thread, and added in a fixed tree."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.tiles import TILE

SPANS, LONGEST = 8, 16  # number of spans, at least, and tiles in a span, at most
COLUMN_SPANS = 4, 512  # the same for passes over targets and weights alone, which cost little
FAN_IN = 8  # sums that are added to one, at each level of the tree
SPARE = 2  # sums that may wait for an earlier one, beside those that workers are busy with


class Total(Protocol):
    """A sum; one that has been added to another is cleared and used again."""

    def __iadd__(self, other: Any) -> Self: ...

    def clear(self) -> None: ...


T = TypeVar("T")


def spans_of(n: int, count: int = SPANS, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Spans of whole tiles that are each summed in order; they depend only on the number of rows.

    Towards the end spans are shorter, so that all workers finish at about the same time.
    """
    left, spans = -(-n // TILE), list[tuple[int, int]]()
    step = int(np.clip(left // count, 1, longest))
    while left:
        while step > 1 and left <= 2 * step:
            step //= 2
        start = spans[-1][1] if spans else 0
        spans.append((start, min(start + step * TILE, n)))
        left -= step
    return spans


def depth_of(n: int) -> int:
    """The number of levels of the tree, each of which has one sum in memory."""
    count, depth = len(spans_of(n)), 1
    while count > FAN_IN:
        count, depth = -(-count // FAN_IN), depth + 1
    return depth


@dataclass(eq=False)
class Span:
    """The blocks of a span that have been read and are not yet added."""

    number: int  # counts the spans that have any blocks
    waiting: deque[Any] = field(default_factory=deque)
    complete: bool = False


class Queue:
    """Reads blocks in order, and hands them out to threads one by one, or one span at a time."""

    def __init__(self, blocks: Iterable[Any], n: int = 0) -> None:
        self._blocks = iter(blocks)
        self._starts = np.array([start for start, _ in spans_of(n)])
        self._pull = threading.Lock()
        self._latest, self._place = Span(-1), -1  # the span of the block that was read last
        self._unclaimed = deque[Span]()
        self._stopped = False

    def __iter__(self) -> Iterator[Any]:
        while not self._stopped:
            with self._pull:
                block = next(self._blocks, None)
            if block is None:
                return
            yield block

    def claim(self) -> Span | None:
        """The next span that no thread works on, or None at the end.

        Blocks of earlier spans that are read on the way wait in their span.
        """
        while not self._stopped:
            with self._pull:
                if self._unclaimed:
                    return self._unclaimed.popleft()
                if not self._read():
                    return None
        return None

    def blocks_of(self, span: Span) -> Iterator[Any]:
        """All blocks of a span, in order."""
        while not self._stopped:
            with self._pull:
                if not span.waiting and not span.complete:
                    self._read()
                block = span.waiting.popleft() if span.waiting else None
            if block is not None:
                yield block
            elif span.complete:
                return

    def _read(self) -> bool:
        """Read one more block into its span, and say whether there was one."""
        block = next(self._blocks, None)
        if block is None:
            self._latest.complete = True
            return False
        row = int(np.ravel(block[0])[0])
        place = int(np.searchsorted(self._starts, row, "right")) - 1
        if place != self._place:
            self._latest.complete = True
            self._latest, self._place = Span(self._latest.number + 1), place
            self._unclaimed.append(self._latest)
        self._latest.waiting.append(block)
        return True

    def stop(self) -> None:
        """Hand out no more blocks, as one has failed."""
        self._stopped = True


class Tree(Generic[T]):
    """Adds the sums of spans in a fixed tree: FAN_IN neighbours at a time, in order."""

    def __init__(self, most: int) -> None:
        self._most = most  # spans that may be begun and not yet added
        self._waiting: dict[int, T] = {}
        self._next = 0
        self._levels: list[list[Any]] = []  # for each level the number of sums, and their sum
        self._added: list[T] = []
        self._moved = threading.Condition()
        self._adding = self._stopped = False

    def may_begin(self, number: int) -> bool:
        """Wait until a span may be begun; False if all work has stopped."""
        with self._moved:
            self._moved.wait_for(lambda: self._stopped or number < self._next + self._most)
            return not self._stopped

    def unused(self) -> T | None:
        """A sum that has been added to another and can be used again, or None."""
        with self._moved:
            return self._added.pop() if self._added else None

    def put(self, number: int, total: T) -> None:
        """Hand in the sum of a span; one thread adds what can be added, and the others go on."""
        with self._moved:
            self._waiting[number] = total
            if self._adding:
                return
            self._adding = True
        del total
        while True:
            with self._moved:
                ready = self._waiting.pop(self._next, None)
                if ready is None:
                    self._adding = False
                    return
            self._add(ready, 0)
            with self._moved:
                self._next += 1
                self._moved.notify_all()

    def _add(self, total: T, level: int) -> None:
        if level == len(self._levels):
            self._levels.append([0, None])
        here = self._levels[level]
        here[0] += 1
        if here[1] is None:
            here[1] = total
        else:
            here[1] += total
            self._added.append(total)
        if here[0] == FAN_IN:
            self._levels[level] = [0, None]
            self._add(here[1], level + 1)

    def total(self, zero: Callable[[], T]) -> T:
        """The sum of all spans; what is left at each level is added at the end of the next."""
        rest: T | None = None
        for count, level in self._levels:
            if rest is not None and count:
                level += rest
            rest = level if count else rest
        return zero() if rest is None else rest

    def stop(self) -> None:
        with self._moved:
            self._stopped = True
            self._moved.notify_all()


runs_of, COLUMN_RUNS = spans_of, COLUMN_SPANS  # former names, for callers not yet changed


Array = NDArray[Any]


@dataclass
class Tally:
    """The labels that occur, how often each does, and their weight."""

    labels: Array
    counts: Array
    weights: Array

    @classmethod
    def of(cls, y: Array, w: Array | None = None) -> Self:
        labels, places, counts = np.unique(y, return_inverse=True, return_counts=True)
        return cls(labels, counts, np.bincount(places, w, len(labels)))

    def __iadd__(self, other: Self) -> Self:
        labels, places = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        counts = np.concatenate([self.counts, other.counts])
        weights = np.concatenate([self.weights, other.weights])
        self.counts = np.bincount(places, counts, len(labels)).astype(counts.dtype)
        self.weights = np.bincount(places, weights, len(labels))
        self.labels = labels
        return self


@dataclass
class ColumnSums:
    """The sum of the weights, of the weighted targets, and the number of rows without weight."""

    weight: Any
    targets: Any
    without: int

    @classmethod
    def of(cls, y: Array, w: Array | None = None) -> Self:
        w = np.ones(len(y)) if w is None else w
        return cls(w.sum(), w @ y, int(np.count_nonzero(w == 0)))

    def __iadd__(self, other: Self) -> Self:
        self.weight += other.weight
        self.targets = self.targets + other.targets
        self.without += other.without
        return self


def total_of_columns(function: Callable[..., Any], *columns: Array | None) -> Any:
    """The sum of ``function`` over fixed spans of rows of columns that belong together."""
    assert columns[0] is not None
    tree: Tree[Any] = Tree(1)
    for i, span in enumerate(spans_of(len(columns[0]), *COLUMN_SPANS)):
        here = slice(*span)
        tree.put(i, function(*(None if column is None else column[here] for column in columns)))
    return tree.total(lambda: function(*columns))
