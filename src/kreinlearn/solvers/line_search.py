"""The best point on the way of a step of Newton's method for the squared hinge loss.

The length of a step is that of the exact minimum along a line; rows on other machines may end at
the target of a step if that is nearly as good. Half the derivative in t increases
with t, and is linear between kinks: the values of t at which a row changes sides. A search asks for
the derivative at some values of t, and then for the kinks between two of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import iadd
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.solvers import Array

LINED = 2**18  # rows of a line whose margins and changes are in memory at a time
CLEARLY = 0.01  # part of the decrease that the slope promises which a step must bring


@dataclass
class Kinks:
    """Where rows change sides: from each kink on, half the derivative has steps + t bends more."""

    at: Array  # t, counted from the left end
    steps: Array
    bends: Array

    def __iadd__(self, other: Self) -> Self:
        for name in ("at", "steps", "bends"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        return self


@dataclass(frozen=True)
class Move:
    """A target, and the penalty on the way to it: 2 t linear + t^2 quadratic + kinks."""

    target: Array  # (p,)
    gain: float  # decrease of the objective that the model promises
    linear: float
    quadratic: float
    kinks: Array = field(default_factory=lambda: np.empty(0))  # where half the slope jumps, sorted
    jumps: Array = field(default_factory=lambda: np.empty(0))
    exact: bool = True  # whether the target minimises the model

    def half_slope(self, ts: Array) -> Array:
        """Half the derivative of the penalty, to the right of each t."""
        heights = np.append(0.0, np.cumsum(self.jumps))
        passed = heights[np.searchsorted(self.kinks, ts, "right")]
        return np.asarray(self.linear + ts * self.quadratic + passed)

    def between(self, low: float, high: float) -> Kinks:
        """The kinks of the penalty between two values of t."""
        here = slice(*np.searchsorted(self.kinks, [low, high], "right"))
        jumps = self.jumps[here]
        return Kinks(self.kinks[here] - low, jumps, np.zeros(len(jumps)))


class Question(NamedTuple):
    """What a search asks of the rows: sums at each t, or the kinks between two values of t."""

    ts: Array  # increasing
    kinks: bool = False


@dataclass
class LineSums:
    """Half the derivative of the loss at each t, its slope to the right, and who changes sides."""

    values: Array  # (k,)
    slopes: Array  # (k,)
    crossed: Array  # (k - 1,): number of rows that change sides between neighbouring t
    last: float  # the t at which the last row changes sides

    def __iadd__(self, other: Self) -> Self:
        self.values = self.values + other.values
        self.slopes = self.slopes + other.slopes
        self.crossed = self.crossed + other.crossed
        self.last = max(self.last, other.last)
        return self


class Line(NamedTuple):
    """Rows along a line, whose loss is sum w max(0, margin - t change)^2."""

    margin: Array  # (n,)
    change: Array  # (n,)
    w: Array  # (n,)

    def answer(self, question: Question) -> LineSums | Kinks:
        return self._kinks(*question.ts) if question.kinks else self._sums(question.ts)

    def _sums(self, ts: Array) -> LineSums:
        values, slopes, inside = [], [], []
        for t in ts:
            left = np.maximum(self.margin - t * self.change, 0)
            inside.append(left > 0)
            pull = self.w * self.change * inside[-1]
            values.append(-(pull @ left))
            slopes.append(pull @ self.change)
        here = self._crossing()
        last = float(np.max(self.margin[here] / self.change[here], initial=0.0))
        crossed = [np.count_nonzero(here & (a != b)) for a, b in pairwise(inside)]
        return LineSums(np.array(values), np.array(slopes), np.array(crossed), last)

    def _kinks(self, low: float, high: float) -> Kinks:
        before, after = (self.margin > t * self.change for t in (low, high))
        side = self._crossing() & (before != after)
        c, w = self.change[side], self.w[side]
        m = self.margin[side] - low * c
        return Kinks(m / c, w * np.abs(c) * m, -w * np.abs(c) * c)

    def _crossing(self) -> Array:  # (n,) bool: rows that change sides somewhere
        return np.asarray((self.change != 0) & (self.w > 0))


class LongLine(NamedTuple):
    """Rows on the way from some decision values to others; a part of their margins at a time."""

    decision: Array  # (n,)
    goal: Array  # (n,)
    y: Array  # (n,)
    w: Array  # (n,)
    size: int = LINED  # rows of a part

    def answer(self, question: Question) -> LineSums | Kinks:
        answers: Iterator[Any] = (part.answer(question) for part in self._parts())
        total: LineSums | Kinks = reduce(iadd, answers)
        return total

    def _parts(self) -> Iterator[Line]:
        for part in parts_of(len(self.y), self.size):
            y, decision = self.y[part], self.decision[part]
            yield Line(1 - y * decision, y * (self.goal[part] - decision), self.w[part])


def parts_of(n: int, size: int = LINED) -> list[slice]:
    """Slices of ``size`` rows, and at least one."""
    return [slice(start, start + size) for start in range(0, max(n, 1), size)]


def line_search(
    move: Move, first: Sequence[float] = (0.0, 1.0), most: float = np.inf, slack: float = 0.0
) -> Generator[Question, Any, float]:
    """The t >= 0 that minimises loss and penalty; yields questions and is sent their answers.

    Sums are asked for at the values ``first``, then at as many values at a time. Kinks are asked
    for between two values with at most ``most`` kinks between them. With ``slack``, the target is
    near enough if it is better than the start and its slope is at most this part of that there.
    """
    ts, points = np.array(first), len(first)
    while True:
        sums: LineSums = yield Question(ts)
        values, slopes = sums.values + move.half_slope(ts), sums.slopes + move.quadratic
        if values[0] >= 0:
            return float(ts[0])
        if slack and _serves(ts, values, slack):
            return 1.0
        k = int(np.argmax(values >= 0))
        if not k:
            last = max([sums.last, *move.kinks[-1:]])
            if ts[-1] >= last:
                return float(ts[-1] - values[-1] / slopes[-1] if slopes[-1] > 0 else ts[-1])
            ts = np.unique(np.minimum(ts[-1] * 2.0 ** np.arange(points), last))
            continue
        ends = ts[k - 1 : k + 1]
        if sums.crossed[k - 1] <= most:
            break
        ts = np.unique(np.linspace(ends[0], ends[1], points))
        if len(ts) == 2:
            return float(ends[1])
    kinks: Kinks = yield Question(ends, kinks=True)
    kinks += move.between(ends[0], ends[1])
    return float(ends[0]) + _root(values[k - 1], slopes[k - 1], kinks, ends[1] - ends[0])


def _serves(ts: Array, slopes: Array, slack: float) -> bool:
    """Whether t = 1 is clearly better than t = 0, and has at most this part of its slope.

    Slopes increase, so that those at the right ends of intervals bound the difference of values.
    """
    upto = slopes[: np.searchsorted(ts, 1.0, "right")]
    if ts[0] != 0 or ts[len(upto) - 1] != 1:
        return False
    gain = np.diff(ts[: len(upto)]) @ upto[1:]
    return bool(gain <= CLEARLY * upto[0] and abs(upto[-1]) <= -slack * upto[0])


def line_minimum(line: Line | LongLine, move: Move) -> float:
    """The t >= 0 that minimises loss and penalty of rows in memory."""
    search = line_search(move)
    question = next(search)
    while True:
        try:
            question = search.send(line.answer(question))
        except StopIteration as end:
            return float(end.value)


def _root(value: float, slope: float, kinks: Kinks, end: float) -> float:
    """Where value + t slope becomes positive, if steps + t bends are added at each kink."""
    order = np.argsort(kinks.at)
    at = np.append(kinks.at[order], end)
    values = value + np.append(0.0, np.cumsum(kinks.steps[order]))  # left of at[k]
    slopes = slope + np.append(0.0, np.cumsum(kinks.bends[order]))
    after = np.append(values[1:] + slopes[1:] * at[:-1], np.inf)
    k = int(np.argmax(after >= 0))
    if slopes[k] <= 0:
        return float(at[k])
    return float(np.clip(-values[k] / slopes[k], at[k - 1] if k else 0.0, at[k]))
