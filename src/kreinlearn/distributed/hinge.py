"""Squared-hinge machines on workers: Newton's steps as sums over spans of rows that stay there.

The kernel values of a span stay on the workers if these have room for them, and are evaluated again
otherwise. Decision values stay there too. Those of a lost worker are computed again from its kernel
values, by at most ``LINKS`` steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE
from kreinlearn.distributed import delayed, margins
from kreinlearn.distributed.delayed import Delayed
from kreinlearn.distributed.sums import Span
from kreinlearn.kernels.base import Array
from kreinlearn.learn.left_out import LeftOut, joined_by_number
from kreinlearn.learn.losses.feature_rows import sums_at_once
from kreinlearn.learn.task import Features, Linear, Task, weighted
from kreinlearn.nystrom.core import SweepTotal
from kreinlearn.pairs.rows import joined
from kreinlearn.solvers.line_search import Move, Question, line_search
from kreinlearn.solvers.margins import Gram, HingeState, Step, arrived, cancelled, point, walked
from kreinlearn.sums.moments import SUM_BYTES, Moments, Targets
from kreinlearn.sums.parallel import FAN_IN

ROOM = 0.5  # share of a worker's memory for kernel values: beyond 0.6 dask writes to disk
POINTS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 9.0)  # t that a line search asks for first
SLACK = 0.25  # part of the slope that may be left at a target: to go there saves two round trips
LINKS = 4  # steps from which decision values may follow: so many are taken again after a loss
MOST_KINKS = 2**14  # kinks of one output that are sent to the client: 24 bytes each


@dataclass
class ValuesOnWorkers:
    """k(x, Z) of all rows for the steps of a solver: of some rows here, of the others on workers.

    Rows on workers are divided into spans of tiles. With ``keep`` their kernel values stay on the
    workers; without, they are evaluated again at every step.
    """

    keep: bool
    numbers: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # rows that are here
    here: Array = field(default_factory=lambda: np.empty((0, 0)))  # and their kernel values
    work: Delayed = None
    spans: list[Delayed | Span] = field(default_factory=list)  # the tiles of each span on workers
    targets: list[Delayed] = field(default_factory=list)  # the WeightedTargets of each span
    outlines: list[Span] = field(default_factory=list)  # each span without its rows and targets
    fold: int | None = None  # whose rows have no weight

    @property
    def target(self) -> ValuesOnWorkers:
        """The object to which the first pass gives its kernel values."""
        return self

    def before(self, task: Task, *, by_fold: bool) -> ValuesOnWorkers:
        """The object to use for a pass; there is nothing to prepare."""
        return self

    @property
    def has_all(self) -> bool:
        """Whether the kernel values of all rows are kept."""
        return self.keep

    def margins(self, task: Task, features: Features, W: Array, total: float) -> DaskMargins:
        """The rows as Newton's method sees them, with features C W."""
        Y, w = weighted(*Targets(task.Y, task.weights).of(self.numbers))
        if self.fold is not None:
            w = np.where(task.folds[self.numbers] == self.fold, 0.0, w)
        return DaskMargins(self, Y, w, W, task.intercept, [total] * task.Y.shape[1])

    def outputs(
        self, task: Task, features: Features, W: Array, total: float
    ) -> list[tuple[DaskMargins, None, None]]:
        """The same for each output alone; targets and weights are where the rows are."""
        every = self.margins(task, features, W, total)
        of_one = [replace(every, totals=[total], first=k) for k in range(task.Y.shape[1])]
        return [(margins, None, None) for margins in of_one]

    def without_fold(self, task: Task, k: int) -> tuple[Task, ValuesOnWorkers]:
        """The problem of all rows but those of a fold, which have no weight in it."""
        zeroed = delayed.task(margins.without_group)
        each = zip(self.targets, self.outlines, strict=True)
        targets = [zeroed(both, outline, k) for both, outline in each]
        targets, _ = delayed.persist(targets, delayed.constant(None))
        return task, replace(self, targets=targets, fold=k)

    def scores_of_fold(self, task: Task, features: Features, model: Linear, k: int) -> LeftOut:
        """What a model says of the rows of a fold; these scores are sent here."""
        dual = features.map.W @ model.coef, model.intercept
        places = np.flatnonzero(task.folds[self.numbers] == k)
        here = LeftOut(self.numbers[places], self.here[places] @ dual[0] + dual[1])
        shared, scores = delayed.shared(dual), delayed.task(margins.scores_of_group)
        each = zip(self.spans, self.outlines, strict=True)
        parts = [scores(self.work, tiles, shared, outline, k) for tiles, outline in each]
        there = delayed.compute(delayed.merged(parts, joined)) if parts else []
        return joined_by_number([here, *(LeftOut(*one) for one in there)], len(model.intercept))

    def __setitem__(self, numbers: Array, values: Array) -> None:
        """Store the kernel values of rows that were evaluated in this process."""
        self.numbers, self.here = numbers, values

    @property
    def tiles(self) -> list[Array]:
        """The kernel values that are here, one tile at a time."""
        return [self.here[tile] for tile in gen_batches(len(self.here), TILE)]

    def total_of_span(self, span: Span) -> Delayed:
        """The delayed sums of a span; its rows are remembered for the steps that follow."""
        columns, objects = replace(span, A=None), replace(span, Y=None, w=None)
        self.work = span.work
        self.outlines.append(replace(columns, Y=None, w=None))
        self.targets.append(delayed.task(Span.weighted_targets)(columns))
        if not self.keep:
            self.spans.append(objects)
            return delayed.task(Span.total)(span)
        both, part = delayed.task(Span.evaluated_and_summed)(span), delayed.task(getitem)
        self.spans.append(part(both, 0))
        return part(both, 1)

    def compute(self, total: Delayed) -> SweepTotal:
        """The value of the total; targets, weights and kernel values to keep stay on workers."""
        n = len(self.spans) if self.keep else 0
        results, value = delayed.persist([*self.spans[:n], *self.targets], total)
        self.spans[:n], self.targets = results[:n], results[n:]
        return value


def room(budget: int, *, given: bool) -> int:
    """The bytes of kernel values that fit into the memory of all workers.

    They are half the memory of each worker, and at most ``budget`` per worker if the user has given
    a budget. If not, the workers without a memory limit on one host share the budget. Without a
    cluster the workers are threads, and the budget is that of this process.
    """
    import dask.base

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is None:
        return budget
    workers = list(client.scheduler_info()["workers"].values())
    unlimited = Counter(one["host"] for one in workers if not one["memory_limit"])
    limits = [ROOM * one["memory_limit"] or budget / unlimited[one["host"]] for one in workers]
    return int(sum(min(limit, budget) if given else limit for limit in limits))


@dataclass(eq=False)
class Decisions:
    """Decision values at several vectors of coefficients, one column for each."""

    spans: Sequence[Delayed]  # of the rows on workers
    here: Array | None  # of the rows in this process; None: all values are zero
    persisted: bool = False  # whether those on workers have been computed, and stay there
    links: int = 0  # steps before, from which they were computed


class Column(NamedTuple):
    """The decision values of one output."""

    decisions: Decisions
    place: int
    few: bool = False  # fewer rows have changed sides since the last sums than are active
    change: Moments | None = None  # of the moments since then, if it is known
    loss: float | None = None  # of these decision values, if it is known


@dataclass(frozen=True)
class DaskMargins:
    """``Margins`` of rows on workers; each row has a weight and, for each output, a target +-1."""

    values: ValuesOnWorkers
    Y: Array  # (k, q), of the rows in this process
    w: Array  # (k,)
    W: Array  # (m, r)
    intercept: bool
    totals: Sequence[float]  # the weight of all rows, for each output
    first: int = 0  # the column of the targets that is the first output

    @property
    def p(self) -> int:
        return int(self.W.shape[1]) + self.intercept

    def start(self, gram: Gram | None) -> list[HingeState]:
        assert gram is not None, "the first pass over rows on workers has summed them"
        zeros = Decisions([None] * len(self.values.spans), None, persisted=True)
        coef, column = np.zeros(self.p), Column(zeros, 0)
        return [HingeState(coef, column, column, gram[0], b) for b in gram[1].T]

    def sample(self) -> None:
        return None  # the rows are on workers, and those here are too few to tell where to start

    # A and b

    def up_to_date(self, states: Mapping[int, HingeState]) -> dict[int, HingeState]:
        moved = {k: one for k, one in states.items() if one.decision is not one.active}
        known = {k: one for k, one in moved.items() if one.decision.change is not None}
        few = {k: one.decision.few for k, one in moved.items() if k not in known}
        current = dict(states) | self._summed(states, few)
        for k, state in known.items():
            current[k] = self._with_moments(state, state.decision.change, few=True)
        changed = [*known, *(k for k in few if few[k])]
        again = [k for k in changed if cancelled(current[k].A, states[k].A)]
        return current | self._summed(states, dict.fromkeys(again, False))

    @property
    def _summed_at_once(self) -> int:
        """Outputs whose moments are summed in one task."""
        return sums_at_once(len(self.W), SUM_BYTES // FAN_IN)

    def _summed(
        self, states: Mapping[int, HingeState], few: Mapping[int, bool]
    ) -> dict[int, HingeState]:
        """States with A and b of the active rows; where few rows have changed, by the change."""
        summed = {}
        for start in range(0, len(few), self._summed_at_once):
            some = {k: few[k] for k in list(few)[start : start + self._summed_at_once]}
            columns = [(states[k].active, states[k].decision) for k in some]
            total = self._total(margins.active_moments, some, columns, with_tiles=True)
            for k, moments in zip(some, total.parts, strict=True):
                summed[k] = self._with_moments(states[k], moments, few=few[k])
        return summed

    def _with_moments(self, state: HingeState, part: Moments | None, *, few: bool) -> HingeState:
        """A state with A and b of these moments, or with its own and this change of them."""
        A, B = np.zeros((self.p, self.p)), np.zeros((self.p, 1))
        if part is not None:
            A, B = part.terms(self.W).with_constant(intercept=self.intercept)
        if few:
            A, B = state.A + A, state.b[:, None] + B
        column = state.decision._replace(change=None)
        return replace(state, decision=column, active=column, A=A, b=B[:, 0])

    # Steps

    def near(self, k: int, state: HingeState) -> None:
        return None  # the rows are on workers

    def walk(self, states: Mapping[int, HingeState], moves: Mapping[int, Move]) -> dict[int, Step]:
        searches = {k: line_search(move, POINTS, MOST_KINKS, SLACK) for k, move in moves.items()}
        questions = {k: next(search) for k, search in searches.items()}
        goals, replies = self._ahead(states, moves, questions)
        changed = {k: bool(reply.crossed.changed) for k, reply in replies.items()}
        steps: dict[int, float] = {}
        while questions:
            for k, reply in replies.items():
                try:
                    questions[k] = searches[k].send(reply.answer)
                except StopIteration as end:
                    steps[k] = end.value
                if k in steps or not changed[k]:
                    del questions[k]
            if questions:
                ways = [(states[k].decision, goals[k]) for k in questions]
                parts = self._total(margins.replies, questions, ways).parts
                replies = dict(zip(questions, parts, strict=True))
        return self._stepped(states, moves, goals, {k: steps[k] for k in moves if changed[k]})

    def _ahead(
        self, states: Mapping[int, HingeState], moves: Mapping[int, Move],
        questions: Mapping[int, Question],
    ) -> tuple[dict[int, Column], dict[int, margins.Reply]]:  # fmt: skip
        """The decision values at the targets, and the first replies about the ways there.

        Most steps end at the target. So the same tasks sum the rows that change sides, unless there
        are too many outputs for that, or a lost worker would have to take too many steps again.
        """
        targets = [move.target for move in moves.values()]
        links = max(states[k].decision.decisions.links for k in moves)
        if len(moves) <= self._summed_at_once and links < LINKS:
            goal, parts = self._goals(targets, questions, [states[k].decision for k in moves])
        else:
            goal = self._decisions(targets)
            ways = [(states[k].decision, Column(goal, i)) for i, k in enumerate(moves)]
            parts = self._total(margins.replies, questions, ways).parts
        columns = {k: Column(goal, i) for i, k in enumerate(moves)}
        replies = dict(zip(moves, parts[: len(moves)], strict=True))
        changes = parts[len(moves) :] or [None] * len(moves)
        for (k, reply), change in zip(replies.items(), changes, strict=True):
            changed, active, loss = reply.crossed
            columns[k] = columns[k]._replace(few=changed < active, change=change, loss=loss)
        return columns, replies

    def _goals(
        self, coefs: Sequence[Array], questions: Mapping[int, Question], present: Sequence[Column]
    ) -> tuple[Decisions, list[Any]]:
        """Decision values at targets, then replies and changes, by one task for each span."""
        model, values = self._model(coefs), self.values
        queries = self._queries(questions, [(one.place, i) for i, one in enumerate(present)])
        before = [one.decisions for one in present]
        here = [one.here for one in before]
        at_goal, total = margins.stepped(queries, (self.Y, self.w), here, None, values.tiles, model)
        shared_queries, shared_model = delayed.shared(queries), delayed.shared(model)
        both, part = delayed.task(margins.stepped), delayed.task(getitem)
        each = []
        for i, (targets, span) in enumerate(zip(values.targets, values.spans, strict=True)):
            now = [one.spans[i] for one in before]
            each.append(both(shared_queries, targets, now, values.work, span, shared_model))
        links = 1 + max(one.links for one in before)
        goal = Decisions([part(one, 0) for one in each], at_goal, links=links)
        if each:
            sums = delayed.merged([part(one, 1) for one in each])
            total += self._persisted([goal, *before], sums)
        return goal, total.parts

    def _stepped(
        self, states: Mapping[int, HingeState], moves: Mapping[int, Move],
        goals: Mapping[int, Column], steps: Mapping[int, float],
    ) -> dict[int, Step]:  # fmt: skip
        """The steps to the points that were searched for, or to targets if no row changes sides.

        Decision values of points before or beyond the targets are computed when they are needed.
        """
        between = [k for k in steps if steps[k] not in (0.0, 1.0)]
        decisions = self._decisions(point(states[k], moves[k], steps[k]) for k in between)
        columns = {k: Column(decisions, i, goals[k].few) for i, k in enumerate(between)}
        stepped = {}
        for k, move in moves.items():
            column = columns.get(k, goals[k])
            if k not in steps:
                step = arrived(states[k], move, column)
                stepped[k] = step._replace(state=replace(step.state, active=column))
            else:
                column = column if steps[k] else states[k].decision
                stepped[k] = walked(states[k], move, steps[k], column)
        return stepped

    def losses(self, states: Sequence[HingeState]) -> Array:
        known = [state.decision.loss for state in states]
        if None not in known:
            return np.array(known)
        columns = [(state.decision, state.decision) for state in states]
        outputs = dict.fromkeys(range(len(states)))
        return np.array(self._total(margins.losses, outputs, columns).parts)

    # Sums

    def _decisions(self, coefs: Iterable[Array]) -> Decisions:
        """The decision values at each vector of coefficients: delayed, on the workers."""
        model = self._model(coefs)
        if not len(model[1]):
            return Decisions([], None)
        shared_model, decide = delayed.shared(model), delayed.task(margins.decided)
        spans = [decide(self.values.work, span, shared_model) for span in self.values.spans]
        return Decisions(spans, margins.decided(None, self.values.tiles, model))

    def _model(self, coefs: Iterable[Array]) -> tuple[Array, Array]:
        """The coefficients of kernel values, and the constants."""
        Z, r = np.column_stack([np.empty((self.p, 0)), *coefs]), self.W.shape[1]
        return self.W @ Z[:r], Z[r] if self.intercept else np.zeros(Z.shape[1])

    def _total(
        self, function: Callable[..., margins.OutputSums], asked: Mapping[int, Any],
        columns: Sequence[tuple[Column, Column]], *, with_tiles: bool = False,
    ) -> margins.OutputSums:  # fmt: skip
        """The sum of ``function`` over all rows; new decision values stay on the workers."""
        queries = self._queries(asked, [(one.place, other.place) for one, other in columns])
        values, of_span = self.values, delayed.task(function)
        shared_queries = delayed.shared(queries)
        results = []
        for i, targets in enumerate(values.targets):
            more = (values.work, values.spans[i]) if with_tiles else ()
            two = [(one.decisions.spans[i], other.decisions.spans[i]) for one, other in columns]
            results.append(of_span(shared_queries, targets, two, *more))
        here = [(one.decisions.here, other.decisions.here) for one, other in columns]
        more = (None, values.tiles) if with_tiles else ()
        total = function(queries, (self.Y, self.w), here, *more)
        if results:
            every = [column.decisions for two in columns for column in two]
            total += self._persisted(every, delayed.merged(results))
        return total

    def _queries(
        self, asked: Mapping[int, Any], places: Sequence[tuple[int, int]]
    ) -> list[margins.Query]:
        """What is asked about each output, and its places in two arrays of decision values."""
        each = zip(asked.items(), places, strict=True)
        return [margins.Query(self.first + k, two, question) for (k, question), two in each]

    def _persisted(self, used: Iterable[Decisions], total: Delayed) -> margins.OutputSums:
        """The value of ``total``; the decision values that it takes stay on the workers."""
        new = [decisions for decisions in dict.fromkeys(used) if not decisions.persisted]
        spans, value = delayed.persist([span for one in new for span in one.spans], total)
        n = len(self.values.spans)
        for i, decisions in enumerate(new):
            decisions.spans, decisions.persisted = spans[i * n : (i + 1) * n], True
        return value
