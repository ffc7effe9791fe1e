"""Runs of tiles: read in order, added by any thread, and summed in a fixed tree."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from kreinlearn.data.tiles import TILE

RUNS, LONGEST = 8, 16  # so many runs at least, of so many tiles at the most
COLUMN_RUNS = 4, 512  # the same of targets and weights alone, which cost little
FAN_IN = 8  # sums that are added to one
SPARE = 2  # runs that may wait for an earlier one, beside those that workers are at


class Total(Protocol):
    """What is summed; one that has been added to another is cleared and used again."""

    def __iadd__(self, other: Any) -> Self: ...

    def clear(self) -> None: ...


T = TypeVar("T")


def runs_of(n: int, runs: int = RUNS, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Spans of rows that are summed in order: whole tiles, by the number of rows alone.

    Towards the end they are shorter, so that workers end together.
    """
    left, spans = -(-n // TILE), list[tuple[int, int]]()
    step = int(np.clip(left // runs, 1, longest))
    while left:
        while step > 1 and left <= 2 * step:
            step //= 2
        start = spans[-1][1] if spans else 0
        spans.append((start, min(start + step * TILE, n)))
        left -= step
    return spans


def depth_of(n: int) -> int:
    """Sums that the tree holds at a time: one a level."""
    count, depth = len(runs_of(n)), 1
    while count > FAN_IN:
        count, depth = -(-count // FAN_IN), depth + 1
    return depth


@dataclass(eq=False)
class Run:
    """Blocks of a run that are read, and not yet added."""

    number: int  # among those that have any blocks
    waiting: deque[Any] = field(default_factory=deque)
    complete: bool = False


class Queue:
    """Blocks, read in order: handed out one by one, or a run at a time; all stop when one fails."""

    def __init__(self, blocks: Iterable[Any], n: int = 0) -> None:
        self._blocks = iter(blocks)
        self._starts = np.array([start for start, _ in runs_of(n)])
        self._pull = threading.Lock()
        self._latest, self._place = Run(-1), -1  # the run of the block read last
        self._unclaimed = deque[Run]()
        self._stopped = False

    def __iter__(self) -> Iterator[Any]:
        while not self._stopped:
            with self._pull:
                block = next(self._blocks, None)
            if block is None:
                return
            yield block

    def claim(self) -> Run | None:
        """A run that nobody has; blocks of earlier runs that are read on the way wait there."""
        while not self._stopped:
            with self._pull:
                if self._unclaimed:
                    return self._unclaimed.popleft()
                if not self._read():
                    return None
        return None

    def blocks_of(self, run: Run) -> Iterator[Any]:
        while not self._stopped:
            with self._pull:
                if not run.waiting and not run.complete:
                    self._read()
                block = run.waiting.popleft() if run.waiting else None
            if block is not None:
                yield block
            elif run.complete:
                return

    def _read(self) -> bool:
        """One block more; False at the end."""
        block = next(self._blocks, None)
        if block is None:
            self._latest.complete = True
            return False
        row = int(np.ravel(block[0])[0])
        place = int(np.searchsorted(self._starts, row, "right")) - 1
        if place != self._place:
            self._latest.complete = True
            self._latest, self._place = Run(self._latest.number + 1), place
            self._unclaimed.append(self._latest)
        self._latest.waiting.append(block)
        return True

    def stop(self) -> None:
        self._stopped = True


class Tree(Generic[T]):
    """Sums of runs, added FAN_IN at a time, neighbours first and in order: a fixed tree."""

    def __init__(self, most: int) -> None:
        self._most = most  # runs begun that are not added yet
        self._waiting: dict[int, T] = {}
        self._next = 0
        self._levels: list[list[Any]] = []  # of each: how many, and their sum
        self._added: list[T] = []
        self._moved = threading.Condition()
        self._adding = self._stopped = False

    def may_begin(self, number: int) -> bool:
        with self._moved:
            self._moved.wait_for(lambda: self._stopped or number < self._next + self._most)
            return not self._stopped

    def unused(self) -> T | None:
        """A sum that has been added to another, and is of no further use; None: there is none."""
        with self._moved:
            return self._added.pop() if self._added else None

    def put(self, number: int, total: T) -> None:
        """One thread adds what can be added; the others go on."""
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
        """What is left of each level belongs to the end of the next."""
        rest: T | None = None
        for count, found in self._levels:
            if rest is not None and count:
                found += rest
            rest = found if count else rest
        return zero() if rest is None else rest

    def stop(self) -> None:
        with self._moved:
            self._stopped = True
            self._moved.notify_all()
