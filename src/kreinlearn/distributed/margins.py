"""Sums over a span of rows that a squared-hinge machine needs: tasks, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.distributed.sums import Span, WeightedTargets, similarities
from kreinlearn.kernels.base import Array
from kreinlearn.learn.losses.hinge import unless_ones
from kreinlearn.nystrom.core import RowWork
from kreinlearn.solvers.margins import Kinks, Line, LineSums, Question, active_rows, hinge_loss
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
                self.parts[i] = part
            elif part is not None:
                self.parts[i] += part
        return self


class Crossed(NamedTuple):
    """How many rows change sides on the way to a target, and how many are active there."""

    changed: int
    active: int


@dataclass
class Reply:
    """The answer to a question of a line search, and the rows that change sides on the way."""

    answer: LineSums | Kinks
    crossed: Crossed

    def __iadd__(self, other: Self) -> Self:
        self.answer += other.answer  # type: ignore[operator]
        changed, active = (a + b for a, b in zip(self.crossed, other.crossed, strict=True))
        self.crossed = Crossed(changed, active)
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
    crossed = Crossed(int(np.sum(before != after)), int(np.sum(after)))
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


def active_moments(
    queries: Queries, targets: WeightedTargets, decisions: TwoDecisions, work: RowWork | None,
    tiles: Iterable[Array],
) -> OutputSums:  # fmt: skip
    """The moments of the active rows of each output, or how much they have changed.

    If few rows have changed sides, the moments of those that have become active are returned, less
    the moments of those that no longer are.
    """
    came, went = [], []
    for few, y, w, then, now in _columns(queries, targets, decisions):
        before, after = active_rows(then, y, w), active_rows(now, y, w)
        came.append(after & ~before if few else after)
        went.append(before & ~after if few else np.zeros_like(after))
    wanted = np.any([*came, *went], axis=0)
    gained: list[Moments | None] = [None] * len(queries)
    lost, start = gained.copy(), 0
    with serial_blas():
        for tile in tiles if wanted.any() else ():
            here = slice(start, start + len(tile))
            start = here.stop
            if not wanted[here].any():
                continue
            C = similarities(work, tile)
            for i, query in enumerate(queries):
                for sums, masks in ((gained, came), (lost, went)):
                    rows = np.flatnonzero(masks[i][here])
                    if len(rows):
                        at = rows + here.start
                        total = sums[i] or Moments.zeros(C.shape[1], 1)
                        weights = unless_ones(targets[1][at])
                        total.add(C[rows], targets[0][at][:, [query.output]], weights)
                        sums[i] = total
    return OutputSums([_less(*both) for both in zip(gained, lost, strict=True)])


def _less(gained: Moments | None, lost: Moments | None) -> Moments | None:
    """The difference of two moments, either of which may be of no rows."""
    if lost is None:
        return gained
    total = gained or Moments.zeros(*lost.cross.shape)
    total -= lost
    return total
