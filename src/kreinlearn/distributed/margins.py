"""Sums over a span of rows that a squared-hinge machine needs: tasks, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.distributed.sums import Span, WeightedTargets, similarities
from kreinlearn.kernels.base import Array
from kreinlearn.learn.losses.feature_rows import unless_ones
from kreinlearn.nystrom.core import RowWork
from kreinlearn.solvers.line_search import Kinks, Line, LineSums, Question
from kreinlearn.solvers.margins import active_rows, hinge_loss
from kreinlearn.sums.moments import Moments
from kreinlearn.sums.parallel import serial_blas

# for each output two arrays of decision values (k, outputs); None: all zero
TwoDecisions = Sequence[tuple[Array | None, Array | None]]


@dataclass
class OutputSums:
    """One sum per output; None for an output to which no row adds anything."""

    parts: list[Any]

    def __iadd__(self, other: Self) -> Self:
        for i, part in enumerate(other.parts):
            if self.parts[i] is None:
                self.parts[i] = deepcopy(part)  # the other stays as it is
            elif part is not None:
                self.parts[i] += part
        return self


class Crossed(NamedTuple):
    """How many rows change sides on the way to a target, how many are active there, their loss."""

    changed: int
    active: int
    loss: float


@dataclass
class Reply:
    """The answer to a question of a line search, and the rows that change sides on the way."""

    answer: LineSums | Kinks
    crossed: Crossed

    def __iadd__(self, other: Self) -> Self:
        self.answer += other.answer  # type: ignore[operator]
        (changed, active, loss), more = self.crossed, other.crossed
        self.crossed = Crossed(changed + more.changed, active + more.active, loss + more.loss)
        return self


class Query(NamedTuple):
    """What is asked about one output, and its columns in two arrays of decision values."""

    output: int
    places: tuple[int, int]
    asked: Any  # the argument of the sum: a Question, a flag or nothing


Queries = Sequence[Query]


def decided(work: RowWork | None, tiles: Iterable[Array], model: tuple[Array, Array]) -> Array:
    """The decision values (k, outputs) of the rows of a span."""
    dual, constant = model
    with serial_blas():
        parts = [similarities(work, tile) @ dual + constant for tile in tiles]
    return np.concatenate(parts) if parts else np.empty((0, len(constant)))


def without_group(targets: WeightedTargets, span: Span, k: int) -> WeightedTargets:
    """The same targets; rows of a group have no weight."""
    Y, w = targets
    return Y, np.where(span.groups_in_order() == k, 0.0, w)


def scores_of_group(
    work: RowWork, tiles: Iterable[Array], model: tuple[Array, Array], span: Span, k: int
) -> list[tuple[Array, Array]]:
    """The numbers of the rows of a group, and their decision values."""
    here = np.flatnonzero(span.groups_in_order() == k)
    numbers = np.concatenate(span.numbers_by_tile())
    return [(numbers[here], decided(work, tiles, model)[here])]


def replies(queries: Queries, targets: WeightedTargets, decisions: TwoDecisions) -> OutputSums:
    """The reply to the question about each output's line, from the present to its target."""
    return OutputSums([_reply(*columns) for columns in _columns(queries, targets, decisions)])


def _reply(question: Question, y: Array, w: Array, now: Array, goal: Array) -> Reply:
    before, after = active_rows(now, y, w), active_rows(goal, y, w)
    loss = hinge_loss(goal, y, w)[0]
    crossed = Crossed(int(np.sum(before != after)), int(np.sum(after)), loss)
    return Reply(Line(1 - y * now, y * (goal - now), w).answer(question), crossed)


def losses(queries: Queries, targets: WeightedTargets, decisions: TwoDecisions) -> OutputSums:
    """The weighted squared hinge loss of each output."""
    columns = _columns(queries, targets, decisions)
    return OutputSums([hinge_loss(now, y, w)[0] for _, y, w, now, _ in columns])


def _columns(
    queries: Queries, targets: WeightedTargets, decisions: TwoDecisions
) -> Iterator[tuple[Any, Array, Array, Array, Array]]:
    """What is asked about each output, its targets, the weights, and two columns of decisions."""
    Y, w = targets
    for (k, places, asked), two in zip(queries, decisions, strict=True):
        first, second = (
            np.zeros(len(w)) if one is None else np.ascontiguousarray(one[:, place])
            for one, place in zip(two, places, strict=True)
        )
        yield asked, Y[:, k], w, first, second


class Exchange:
    """The moments of the rows of one output that come, less those of the rows that go.

    Rows wait until they are as many as columns, as each sum costs a matrix of that size.
    """

    def __init__(self, targets: WeightedTargets, output: int) -> None:
        (Y, self.w), self.totals = targets, list[Moments | None]([None, None])
        self.y = Y[:, [output]]
        self.waiting: tuple[list[tuple[Array, Array]], ...] = [], []  # that come, and that go

    def add(self, C: Array, start: int, before: Array, after: Array) -> None:
        """Add a block of rows, which were active before or are so after."""
        for side, mask in enumerate((after & ~before, before & ~after)):
            rows, waiting = np.flatnonzero(mask), self.waiting[side]
            if len(rows):
                waiting.append((rows + start, C[rows]))
                if sum(len(numbers) for numbers, _ in waiting) >= C.shape[1]:
                    self._sum(side)

    def _sum(self, side: int) -> None:
        if self.waiting[side]:
            numbers, blocks = map(np.concatenate, zip(*self.waiting[side], strict=True))
            self.waiting[side].clear()
            total = self.totals[side] or Moments.zeros(blocks.shape[1], 1)
            total.add(blocks, self.y[numbers], unless_ones(self.w[numbers]))
            self.totals[side] = total

    def moments(self) -> Moments | None:
        """The difference; None if no row comes or goes."""
        self._sum(0)
        self._sum(1)
        gained, lost = self.totals
        if lost is None:
            return gained
        total = gained or Moments.zeros(*lost.cross.shape)
        total -= lost
        return total


def active_moments(
    queries: Queries, targets: WeightedTargets, decisions: TwoDecisions, work: RowWork | None,
    tiles: Iterable[Array],
) -> OutputSums:  # fmt: skip
    """The moments of the active rows of each output, or how much they have changed.

    If few rows have changed sides, the moments of those that have become active are returned, less
    the moments of those that no longer are.
    """
    sides = []
    for few, y, w, then, now in _columns(queries, targets, decisions):
        after = active_rows(now, y, w)
        sides.append((active_rows(then, y, w) if few else np.zeros_like(after), after))
    wanted = np.any([before != after for before, after in sides], axis=0)
    exchanges, start = [Exchange(targets, query.output) for query in queries], 0
    with serial_blas():
        for tile in tiles if wanted.any() else ():
            here = slice(start, start + len(tile))
            start = here.stop
            if wanted[here].any():
                C = similarities(work, tile)
                for exchange, (before, after) in zip(exchanges, sides, strict=True):
                    exchange.add(C, here.start, before[here], after[here])
        return OutputSums([exchange.moments() for exchange in exchanges])


def stepped(
    queries: Queries, targets: WeightedTargets, present: Sequence[Array | None],
    work: RowWork | None, tiles: Iterable[Array], model: tuple[Array, Array],
) -> tuple[Array, OutputSums]:  # fmt: skip
    """Decision values at the targets of steps; replies about the ways, and changes of the moments.

    ``present`` are the decision values of each output before the step. A tile is looked at once.
    """
    (dual, constant), (Y, w) = model, targets
    goals, start = np.empty((len(w), len(constant))), 0
    exchanges = [Exchange(targets, query.output) for query in queries]
    with serial_blas():
        for tile in tiles:
            here = slice(start, start + len(tile))
            start, C = here.stop, similarities(work, tile)
            goals[here] = C @ dual + constant
            ways = [(None if one is None else one[here], goals[here]) for one in present]
            columns = _columns(queries, (Y[here], w[here]), ways)
            for exchange, (_, y, weights, now, goal) in zip(exchanges, columns, strict=True):
                sides = (active_rows(decision, y, weights) for decision in (now, goal))
                exchange.add(C, here.start, *sides)
        answered = replies(queries, targets, [(one, goals) for one in present])
        changes = [exchange.moments() for exchange in exchanges]
    return goals, OutputSums([*answered.parts, *changes])
