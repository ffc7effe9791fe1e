"""Squared-hinge machines on workers: Newton's steps as sums over runs of rows that stay there.

Kernel values of a run are kept by the workers if they have room for them, and evaluated again
otherwise. Decision values are kept beside them, and are made from kernel values and coefficients
alone: what is lost with a worker is made again, whatever the steps before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.distributed import blocks as b
from kreinlearn.distributed.margins import (
    Beside,
    Crossed,
    Pair,
    answered,
    changed_terms,
    decided,
    losses,
)
from kreinlearn.distributed.values import KernelRuns, kept
from kreinlearn.kernels.base import Array
from kreinlearn.learn.feature_rows import with_constant
from kreinlearn.solvers.line_search import Move, line_search
from kreinlearn.solvers.margins import Gram, HingeState, Step, arrived, cancelled, point, walked
from kreinlearn.sums.moments import SUM_BYTES

POINTS = (*np.linspace(0, 2, 13), 3.0, 5.0, 9.0)  # of a line that are looked at first
MOST_KINKS = 2**14  # that come to the client, of an output: 24 bytes each


@dataclass(eq=False)
class Decisions:
    """Decision values at some coefficients, a column each: those of runs on workers, and here."""

    runs: Sequence[Any]
    here: Array | None  # None: zero, everywhere
    kept: bool = False


class Column(NamedTuple):
    """Decision values of one output."""

    of: Decisions
    place: int
    few: bool = False  # fewer rows have changed sides since the last sums than are active


@dataclass(frozen=True)
class DaskMargins:
    """Margins of rows on workers; every row has a weight, and a target +-1 for each output."""

    values: KernelRuns
    Y: Array  # (k, q), of the rows that are here
    w: Array  # (k,)
    W: Array  # (m, r)
    intercept: bool
    totals: Sequence[float]  # weight of all rows, an output

    @property
    def p(self) -> int:
        return int(self.W.shape[1]) + self.intercept

    def start(self, gram: Gram | None) -> list[HingeState]:
        assert gram is not None, "the first pass over rows on workers has summed them"
        nowhere = Decisions([None] * len(self.values.runs), None, kept=True)
        zero, at = np.zeros(self.p), Column(nowhere, 0)
        return [HingeState(zero, at, at, gram[0], one) for one in gram[1].T]

    # A and b

    def up_to_date(self, states: Mapping[int, HingeState]) -> dict[int, HingeState]:
        found = dict(states)
        moved = [k for k, state in states.items() if state.decision is not state.active]
        size = max(1, SUM_BYTES // (8 * len(self.W) ** 2 * b.FAN_IN))  # that are summed at a time
        for start in range(0, len(moved), size):
            few = {k: states[k].decision.few for k in moved[start : start + size]}
            found |= self._summed(states, few)
            again = [k for k in few if few[k] and cancelled(found[k].A, states[k].A)]
            if again:
                found |= self._summed(states, dict.fromkeys(again, False))
        return found

    def _summed(
        self, states: Mapping[int, HingeState], few: Mapping[int, bool]
    ) -> dict[int, HingeState]:
        """A and b of active rows; where few have changed sides, by what they add to them."""
        columns = [(states[k].active, states[k].decision) for k in few]
        total, found = self._total(changed_terms, few, columns, with_tiles=True), {}
        for k, part in zip(few, total.parts, strict=True):
            state, A, B = states[k], np.zeros((self.p, self.p)), np.zeros((self.p, 1))
            if part is not None:
                A, B = with_constant(part.terms(self.W), self.intercept)
            if few[k]:
                A, B = state.A + A, state.b[:, None] + B
            found[k] = replace(state, active=state.decision, A=A, b=B[:, 0])
        return found

    # Steps

    def walk(self, states: Mapping[int, HingeState], moves: Mapping[int, Move]) -> dict[int, Step]:
        goal = self._decisions(move.target for move in moves.values())
        ways = {k: (states[k].decision, Column(goal, i)) for i, k in enumerate(moves)}
        searches = {k: line_search(move, POINTS, MOST_KINKS) for k, move in moves.items()}
        questions = {k: next(search) for k, search in searches.items()}
        crossed: dict[int, Crossed] = {}
        steps: dict[int, float] = {}
        while questions:
            total = self._total(answered, questions, [ways[k] for k in questions])
            for k, reply in zip(list(questions), total.parts, strict=True):
                crossed.setdefault(k, reply.crossed)
                try:
                    questions[k] = searches[k].send(reply.answer)
                except StopIteration as end:
                    steps[k] = end.value
                if k in steps or not crossed[k].changed:
                    del questions[k]
        return self._stepped(states, moves, {k: way[1] for k, way in ways.items()}, crossed, steps)

    def _stepped(
        self, states: Mapping[int, HingeState], moves: Mapping[int, Move],
        goals: Mapping[int, Column], crossed: Mapping[int, Crossed], steps: Mapping[int, float],
    ) -> dict[int, Step]:  # fmt: skip
        """Decision values between now and a target are made when they are asked for."""
        between = [k for k in moves if crossed[k].changed and steps[k] not in (0.0, 1.0)]
        made = self._decisions(point(states[k], moves[k], steps[k]) for k in between)
        places = dict(goals) | {k: Column(made, i) for i, k in enumerate(between)}
        found = {}
        for k, move in moves.items():
            at = places[k]._replace(few=crossed[k].changed < crossed[k].active)
            if not crossed[k].changed:
                step = arrived(states[k], move, at)
                found[k] = step._replace(state=replace(step.state, active=at))
            else:
                at = at if steps[k] else states[k].decision
                found[k] = walked(states[k], move, steps[k], at)
        return found

    def losses(self, states: Sequence[HingeState]) -> Array:
        columns = [(state.decision, state.decision) for state in states]
        asked = dict.fromkeys(range(len(states)))
        return np.array(self._total(losses, asked, columns).parts)

    # Sums

    def _decisions(self, coefs: Iterable[Array]) -> Decisions:
        Z = np.column_stack([np.empty((self.p, 0)), *coefs])
        if not Z.shape[1]:
            return Decisions([], None)
        r = self.W.shape[1]
        model = self.W @ Z[:r], Z[r] if self.intercept else np.zeros(Z.shape[1])
        there, work = b.constant(model), self.values.work
        runs = [b.task(decided)(work, run, there) for run in self.values.runs]
        return Decisions(runs, decided(None, self.values.tiles, model))

    def _total(
        self, function: Any, asked: Mapping[int, Any], columns: Sequence[tuple[Column, Column]],
        *, with_tiles: bool = False,
    ) -> Beside:  # fmt: skip
        """Sum over all rows of ``function``; the decision values that it takes are kept."""
        pairs = [
            Pair(k, (one.place, other.place), asked[k])
            for k, (one, other) in zip(asked, columns, strict=True)
        ]
        values, what, of_run = self.values, b.constant(pairs), b.task(function)
        results = []
        for i, sides in enumerate(values.sides):
            more = (values.work, values.runs[i]) if with_tiles else ()
            both = [(one.of.runs[i], other.of.runs[i]) for one, other in columns]
            results.append(of_run(what, sides, both, *more))
        here = [(one.of.here, other.of.here) for one, other in columns]
        more = (None, values.tiles) if with_tiles else ()
        total: Beside = function(pairs, (self.Y, self.w), here, *more)
        if results:
            every = dict.fromkeys(column.of for both in columns for column in both)
            total += self._kept([of for of in every if not of.kept], b.tree(results, b.added))
        return total

    def _kept(self, new: Sequence[Decisions], total: Any) -> Any:
        runs, found = kept([run for of in new for run in of.runs], total)
        n = len(self.values.runs)
        for i, of in enumerate(new):
            of.runs, of.kept = runs[i * n : (i + 1) * n], True
        return found
