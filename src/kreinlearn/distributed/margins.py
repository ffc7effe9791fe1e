"""Sums over a run of rows that a squared-hinge machine asks for: tasks, and what they give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.distributed.values import Sides, scaled
from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.sweep import RowWork
from kreinlearn.solvers.line_search import Kinks, Line, LineSums, Question
from kreinlearn.solvers.margins import active_rows, hinge_loss
from kreinlearn.sums.moments import Moments
from kreinlearn.sums.parallel import serial_blas

Both = tuple[Array | None, Array | None]  # decision values (k, outputs); None: all zero


@dataclass
class Beside:
    """Sums of several outputs; None for one to which no row adds."""

    parts: list[Any]

    def __iadd__(self, other: Self) -> Self:
        for i, part in enumerate(other.parts):
            if self.parts[i] is None:
                self.parts[i] = part
            elif part is not None:
                self.parts[i] += part
        return self


class Crossed(NamedTuple):
    """Rows that are on another side at the target, and those that are active there."""

    changed: int
    active: int


@dataclass
class Reply:
    """To a question of a line."""

    answer: LineSums | Kinks
    crossed: Crossed

    def __iadd__(self, other: Self) -> Self:
        self.answer += other.answer  # type: ignore[operator]
        changed, active = (a + b for a, b in zip(self.crossed, other.crossed, strict=True))
        self.crossed = Crossed(changed, active)
        return self


class Pair(NamedTuple):
    """Which columns of two lots of decision values are those of an output, and what is asked."""

    output: int
    places: tuple[int, int]
    asked: Any


def decided(work: RowWork | None, tiles: Iterable[Array], model: tuple[Array, Array]) -> Array:
    """Decision values (k, outputs) of a run."""
    dual, constant = model
    with serial_blas():
        parts = [scaled(work, tile) @ dual + constant for tile in tiles]
    return np.concatenate(parts) if parts else np.empty((0, len(constant)))


def answered(pairs: Sequence[Pair], sides: Sides, values: Sequence[Both]) -> Beside:
    """To each output's question of its line, from now to its target."""
    return Beside([_reply(*pair) for pair in _columns(pairs, sides, values)])


def _reply(question: Question, y: Array, w: Array, now: Array, goal: Array) -> Reply:
    before, after = active_rows(now, y, w), active_rows(goal, y, w)
    crossed = Crossed(int(np.sum(before != after)), int(np.sum(after)))
    return Reply(Line(1 - y * now, y * (goal - now), w).answer(question), crossed)


def losses(pairs: Sequence[Pair], sides: Sides, values: Sequence[Both]) -> Beside:
    each = _columns(pairs, sides, values)
    return Beside([hinge_loss(now, y, w)[0] for _, y, w, now, _ in each])


def _columns(
    pairs: Sequence[Pair], sides: Sides, values: Sequence[Both]
) -> Iterable[tuple[Any, Array, Array, Array, Array]]:
    """What is asked of each output, its targets and weights, and two columns of decision values."""
    Y, w = sides
    for (k, places, asked), both in zip(pairs, values, strict=True):
        first, second = (
            np.zeros(len(w)) if one is None else np.ascontiguousarray(one[:, place])
            for one, place in zip(both, places, strict=True)
        )
        yield asked, Y[:, k], w, first, second


def changed_terms(
    pairs: Sequence[Pair], sides: Sides, values: Sequence[Both],
    work: RowWork | None, tiles: Iterable[Array],
) -> Beside:  # fmt: skip
    """Moments of rows that came to be active less those that ceased to be; or of all active."""
    came, went = [], []
    for few, y, w, then, now in _columns(pairs, sides, values):
        before, after = active_rows(then, y, w), active_rows(now, y, w)
        came.append(after & ~before if few else after)
        went.append(before & ~after if few else np.zeros_like(after))
    wanted = np.any([*came, *went], axis=0)
    gained, lost = (_Sums(len(pairs)) for _ in range(2))
    start = 0
    with serial_blas():
        for tile in tiles if wanted.any() else ():
            here = slice(start, start + len(tile))
            start = here.stop
            C = scaled(work, tile) if wanted[here].any() else None
            for i, pair in enumerate(pairs):
                for sums, masks in ((gained, came), (lost, went)):
                    rows = np.flatnonzero(masks[i][here])
                    if C is not None and len(rows):
                        at = rows + here.start
                        sums.add(i, C[rows], sides[0][at][:, [pair.output]], sides[1][at])
    return Beside([_less(*both) for both in zip(gained.parts, lost.parts, strict=True)])


class _Sums:
    """Moments of several outputs, made when a row comes."""

    def __init__(self, count: int) -> None:
        self.parts: list[Moments | None] = [None] * count

    def add(self, i: int, C: Array, y: Array, w: Array) -> None:
        total = self.parts[i] or Moments.zeros(C.shape[1], 1)
        total.add(C, y, w)
        self.parts[i] = total


def _less(mine: Moments | None, theirs: Moments | None) -> Moments | None:
    if theirs is None:
        return mine
    total = mine or Moments.zeros(*theirs.cross.shape)
    total -= theirs
    return total
