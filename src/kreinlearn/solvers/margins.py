"""What Newton's method for the squared hinge loss asks of the rows.

The method sees only sums over rows. Decision values, and which rows are active, stay where the rows
are: in memory here, or on other machines. "Outputs" are the columns of the targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.line_search import LongLine, Move, line_minimum, parts_of

CANCELLED = 0.1  # A is summed anew if subtracting rows leaves less than this part of its trace
GATHERED = 2048  # rows copied at a time
FEWEST_SAMPLED = 10  # rows per coefficient that a sample needs, to tell where to start
NEAR_OF_ONE = 2  # of q outputs, each looks at this many q-th parts of the rows near any margin;
# where no more than this many outputs go on, each looks at all of them
CROSSING = 0.5  # share of the room for near rows that those may take which have changed sides
Gram = tuple[Array, Array]  # A (p, p) for all outputs, or (q, p, p) for each; b (p, q)


# From step to step


@dataclass(frozen=True)
class HingeState:
    """How far one output is. A and b have no penalty in them, so that any penalty can start here.

    Decision values and active rows are arrays if the rows are in memory, and otherwise whatever
    stands for them.
    """

    coef: Array  # (p,)
    decision: Any  # (n,): decision values of the rows
    active: Any  # (n,) bool: the rows whose sums are A and b
    A: Array  # (p, p)
    b: Array  # (p,)


class Step(NamedTuple):
    """A point on the way to a target: the best one, or nearly so."""

    state: HingeState  # with A and b as they were before the step
    t: float
    same: bool  # the point is the target, and no row has changed sides


class Margins(Protocol):
    """The rows of outputs 0..q-1, and what is asked of them for some outputs at a time."""

    @property
    def p(self) -> int: ...
    @property
    def totals(self) -> Sequence[float]:
        """Sum of the weights of the rows of each output."""

    def start(self, gram: Gram | None) -> list[HingeState]:
        """States with zero coefficients, where all rows are active: the first step is ridge."""

    def sample(self) -> Sample | None:
        """The same problem of a sample of the rows, if their features are at hand."""

    def up_to_date(self, states: Mapping[int, HingeState]) -> dict[int, HingeState]:
        """The same states with A and b of the rows that are active now."""

    def walk(self, states: Mapping[int, HingeState], moves: Mapping[int, Move]) -> dict[int, Step]:
        """Go to the best point on the way of each move, or nearly so, in one pass for all."""

    def near(self, k: int, state: HingeState) -> Near | None:
        """The rows near the margin of an output, if their features are at hand."""

    def losses(self, states: Sequence[HingeState]) -> Array:
        """Weighted squared hinge loss of each output: (q,)."""


class Sample(NamedTuple):
    """The same problem of fewer rows, and how to begin with all rows where these say."""

    margins: Margins
    # coefficients (p, q), sums of all rows -> states there, in one pass over the features
    start: Callable[[Array, Gram], list[HingeState]]


class Near(NamedTuple):
    """A problem of some rows, in which all others keep the sides that they are on."""

    margins: Margins  # of one output
    state: HingeState  # of the rows near the margin, with A and b of all active rows
    rows: Any  # which rows these are

    def back(self, state: HingeState, found: HingeState) -> HingeState:
        """The state of all rows, with the sides that were found for these rows."""
        active = state.active.copy()
        active[self.rows] = found.active
        return replace(state, active=active, A=found.A, b=found.b)


def point(state: HingeState, move: Move, t: float) -> Array:
    """Coefficients at t on the way to the target."""
    return np.asarray(state.coef + t * (move.target - state.coef))


def walked(state: HingeState, move: Move, t: float, decision: Any) -> Step:
    """The step that ends at t, where the rows have these decision values."""
    return Step(replace(state, coef=point(state, move, t), decision=decision), t, False)


def arrived(state: HingeState, move: Move, decision: Any) -> Step:
    """The step that ends at the target, if no row has changed sides on the way."""
    return Step(replace(state, coef=move.target, decision=decision), 1.0, True)


def cancelled(A: Array, before: Array) -> bool:
    """Whether so much was subtracted from a sum that rounding errors may be what is left."""
    return bool(A.trace() < CANCELLED * before.trace())


# Rows in memory


# a slice of rows, their decision values, and how many are wanted at most -> places in the slice
Wanted = Callable[[slice, Array, int], Array]
# an output, a slice of rows, and their decision values -> rows of the slice
Picked = Callable[[int, slice, Array], "Chosen"]


class Rows(Protocol):
    """Features phi (n, p) that are seen only through products and sums over rows."""

    @property
    def n(self) -> int: ...
    @property
    def p(self) -> int: ...

    def decision(self, Z: Array, wanted: Wanted | None = None) -> Array:
        """Features times Z, (p, q) -> (n, q), in one pass for all columns.

        ``wanted`` tells which rows will probably be asked for next; an implementation that
        evaluates features anew, or gives them to ``near``, can then remember theirs.
        """

    def decision_and_terms(
        self, Z: Array, wanted: Wanted, picked: Picked
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        """The same, and for each column the sums of the rows that are picked by their decision."""

    def sample(self) -> tuple[Array, Rows] | None:
        """Sorted numbers and features of a sample, if they are at hand before the first pass."""

    def near(self) -> tuple[Array, Rows] | None:
        """Sorted numbers of the rows that were remembered, and their features."""

    def part(self, places: Array) -> Rows:
        """Some of the rows, if all of them are in memory."""

    def terms(self, chosen: Sequence[Chosen]) -> list[tuple[Array, Array]]:
        """The sums of w phi phi' (p, p) and w t phi (p,), or (p, q), over each choice of rows."""


class Chosen(NamedTuple):
    """Some rows."""

    numbers: Array  # (k,), sorted
    weights: Array  # (k,)
    targets: Array  # (k,), or (k, q) for a second sum of shape (p, q)

    @property
    def columns(self) -> Array:
        """The targets as columns."""
        return self.targets if self.targets.ndim == 2 else self.targets[:, None]


@dataclass(frozen=True)
class DenseRows:
    """Features in memory; the rows of a sum are copied ``GATHERED`` at a time."""

    Phi: Array  # (n, p)

    @property
    def n(self) -> int:
        return int(self.Phi.shape[0])

    @property
    def p(self) -> int:
        return int(self.Phi.shape[1])

    def decision(self, Z: Array, wanted: Wanted | None = None) -> Array:
        return np.asarray(self.Phi @ Z)

    def decision_and_terms(
        self, Z: Array, wanted: Wanted, picked: Picked
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        decision, every = self.decision(Z), slice(0, self.n)
        chosen = [picked(k, every, decision[:, k]) for k in range(Z.shape[1])]
        return decision, self.terms(chosen)

    def sample(self) -> None:
        return None

    def near(self) -> None:
        return None

    def part(self, places: Array) -> DenseRows:
        return DenseRows(self.Phi[places])

    def terms(self, chosen: Sequence[Chosen]) -> list[tuple[Array, Array]]:
        return [self._terms(*one) for one in chosen]

    def _terms(self, numbers: Array, weights: Array, targets: Array) -> tuple[Array, Array]:
        A, b = np.zeros((self.p, self.p)), np.zeros((self.p, *targets.shape[1:]))
        buffer = np.empty((min(len(numbers), GATHERED), self.p))
        for start in range(0, len(numbers), GATHERED):
            part = slice(start, start + GATHERED)
            root, R = np.sqrt(weights[part]), buffer[: len(numbers) - start]
            np.take(self.Phi, numbers[part], axis=0, out=R, mode="clip")
            R *= root[:, None]
            A += R.T @ R
            b += R.T @ (root * targets[part].T).T
        return A, b


class RowMargins:
    """``Margins`` of rows whose decision values are arrays (n,)."""

    alone: ClassVar[bool] = True  # whether A and b are sums of these rows and no others

    def __init__(self, rows: Rows, Y: Array, weights: Array) -> None:
        self.rows, self.p, self.weights = rows, rows.p, weights
        self.Y = np.asfortranarray(Y)  # (n, q): -1, +1, or 0 for a row that is not in this problem
        self.W = [weights if y.all() else np.where(y != 0, weights, 0.0) for y in self.Y.T]
        self.totals = [float(w.sum()) for w in self.W]
        self.unsolved = len(self.W)  # outputs that go on

    def start(self, gram: Gram | None) -> list[HingeState]:
        active, q = [w > 0 for w in self.W], len(self.W)
        if gram is not None:
            A, b = np.broadcast_to(gram[0], (q, self.p, self.p)), gram[1]
        elif all(np.array_equal(mask, active[0]) for mask in active):
            rows = np.flatnonzero(active[0])
            one, b = self.rows.terms([Chosen(rows, self.W[0][rows], self.Y[rows])])[0]
            A = np.broadcast_to(one, (q, self.p, self.p))
        else:
            each = self._terms(list(enumerate(active)))
            A, b = np.array([A for A, _ in each]), np.column_stack([b for _, b in each])
        zero, nowhere = np.zeros(self.p), np.zeros(self.rows.n)
        return [HingeState(zero, nowhere, active[k], A[k], b[:, k]) for k in range(q)]

    def sample(self) -> Sample | None:
        found = self.rows.sample()
        if found is None or len(found[0]) < FEWEST_SAMPLED * self.p:
            return None
        numbers, rows = found
        sample = RowMargins(rows, self.Y[numbers], self.weights[numbers])
        return Sample(sample, partial(self._start_at, sample))

    def _start_at(self, sample: RowMargins, coef: Array, gram: Gram) -> list[HingeState]:
        """Either the active rows are summed, or the others, whichever are fewer in a sample."""
        each = zip(sample.rows.decision(coef).T, sample.Y.T, sample.W, strict=True)
        few = [2 * np.sum(active_rows(f, y, w)) < np.count_nonzero(w) for f, y, w in each]

        def picked(k: int, here: slice, decision: Array) -> Chosen:
            y, w = self.Y[here, k], self.W[k][here]
            mask = active_rows(decision, y, w)
            places = np.flatnonzero(mask if few[k] else ~mask & (w > 0))
            return Chosen(here.start + places, w[places], y[places])

        cold = dict(enumerate(self.start(gram)))
        decisions, terms = self.rows.decision_and_terms(coef, self._nearest(cold), picked)
        states, lost = [], []
        for k, (A, b) in enumerate(terms):
            decision = np.ascontiguousarray(decisions[:, k])
            active = active_rows(decision, self.Y[:, k], self.W[k])
            if not few[k]:
                A, b = cold[k].A - A, cold[k].b - b
                lost += [k] if cancelled(A, cold[k].A) else []
            states.append(HingeState(coef[:, k], decision, active, A, b))
        for k, (A, b) in zip(lost, self._terms([(k, states[k].active) for k in lost]), strict=True):
            states[k] = replace(states[k], A=A, b=b)
        return states

    def up_to_date(self, states: Mapping[int, HingeState]) -> dict[int, HingeState]:
        self.unsolved = len(states)
        active = {k: active_rows(states[k].decision, self.Y[:, k], self.W[k]) for k in states}
        many = [k for k, state in states.items() if self._is_many(state.active, active[k])]
        changes = [
            (k, sign, moved)
            for k, state in states.items()
            for sign, moved in ((1, active[k] & ~state.active), (-1, state.active & ~active[k]))
            if k not in many and moved.any()
        ]
        sums = {k: (state.A, state.b) for k, state in states.items()}
        asked = [(k, moved) for k, _, moved in changes] + [(k, active[k]) for k in many]
        terms = self._terms(asked)  # of all at once: rows may have to be evaluated for them
        for (k, sign, _), (A, b) in zip(changes, terms, strict=False):
            sums[k] = sums[k][0] + sign * A, sums[k][1] + sign * b
        sums |= zip(many, terms[len(changes) :], strict=True)
        lost = [k for k in states if self.alone and cancelled(sums[k][0], states[k].A)]
        lost = [k for k in lost if k not in many]
        sums |= zip(lost, self._terms([(k, active[k]) for k in lost]), strict=True)
        return {k: replace(states[k], active=active[k], A=A, b=b) for k, (A, b) in sums.items()}

    def _is_many(self, before: Array, after: Array) -> bool:
        """Whether so many rows have changed sides that the sums are formed anew."""
        changed = np.count_nonzero(before != after)
        return bool(self.alone and changed > 0 and changed >= np.count_nonzero(after))

    def _terms(self, chosen: Sequence[tuple[int, Array]]) -> list[tuple[Array, Array]]:
        """A and b of outputs and masks of rows."""
        rows = [np.flatnonzero(mask) for _, mask in chosen]
        each = zip(rows, (k for k, _ in chosen), strict=True)
        return self.rows.terms([Chosen(i, self.W[k][i], self.Y[i, k]) for i, k in each])

    def near(self, k: int, state: HingeState) -> Near | None:
        found = self.rows.near()
        if found is None:
            return None
        numbers, rows = found
        if self.unsolved > NEAR_OF_ONE:  # most of these rows are near the margins of other outputs
            room = len(numbers) * NEAR_OF_ONE // len(self.W)
            distance = np.abs(1 - self.Y[numbers, k] * state.decision[numbers])
            distance[self.W[k][numbers] == 0] = np.inf  # these are not in the problem
            places = np.sort(np.argpartition(distance, room)[:room])
            numbers, rows = numbers[places], rows.part(places)
        margins = NearMargins(rows, self.Y[numbers, k : k + 1], self.W[k][numbers])
        margins.totals = [self.totals[k]]
        return Near(
            margins,
            replace(state, decision=state.decision[numbers], active=state.active[numbers]),
            numbers,
        )

    def _nearest(self, states: Mapping[int, HingeState]) -> Wanted:
        """Rows near the margin of any output, and those on another side if they are few."""

        def nearest(rows: slice, values: Array, room: int) -> Array:
            distance, crosses = np.full(len(values), np.inf), np.zeros(len(values), dtype=bool)
            for value, (k, state) in zip(values.T, states.items(), strict=True):
                y, w = self.Y[rows, k], self.W[k][rows]
                crosses |= active_rows(value, y, w) != state.active[rows]
                np.minimum(distance, np.abs(1 - y * value), where=w > 0, out=distance)
            if np.count_nonzero(crosses) <= CROSSING * room:
                distance[crosses] = 0
            return np.sort(np.argpartition(distance, room - 1)[:room])

        return nearest

    def walk(self, states: Mapping[int, HingeState], moves: Mapping[int, Move]) -> dict[int, Step]:
        targets = np.column_stack([move.target for move in moves.values()])
        decisions = self.rows.decision(targets, self._nearest({k: states[k] for k in moves}))
        return {
            k: self._step(k, states[k], move, np.ascontiguousarray(decision))
            for decision, (k, move) in zip(decisions.T, moves.items(), strict=True)
        }

    def _step(self, k: int, state: HingeState, move: Move, decision: Array) -> Step:
        y, w = self.Y[:, k], self.W[k]
        if np.array_equal(active_rows(decision, y, w), state.active):
            return arrived(state, move, decision)
        t = line_minimum(LongLine(state.decision, decision, y, w), move)
        if t == 0:
            return walked(state, move, t, state.decision)
        decision -= state.decision  # in place: rows may be so many that a copy counts
        decision *= t
        decision += state.decision
        return walked(state, move, t, decision)

    def losses(self, states: Sequence[HingeState]) -> Array:
        each = zip((state.decision for state in states), self.Y.T, self.W, strict=True)
        parts = parts_of(self.rows.n)
        return np.array([sum(hinge_loss(f[i], y[i], w[i])[0] for i in parts) for f, y, w in each])


class NearMargins(RowMargins):
    """Rows of one output whose A and b are those of further rows too, which do not change sides."""

    alone = False

    def _step(self, k: int, state: HingeState, move: Move, decision: Array) -> Step:
        """The loss of the further rows is quadratic: all that A and b tell, less that of these."""
        y, w = self.Y[:, k], np.where(state.active, self.W[k], 0.0)
        margin, change = 1 - y * state.decision, y * (decision - state.decision)
        D = move.target - state.coef
        linear = (state.A @ state.coef - state.b) @ D + (w * change) @ margin
        quadratic = max(D @ state.A @ D - (w * change) @ change, 0.0)
        others = replace(move, linear=move.linear + linear, quadratic=move.quadratic + quadratic)
        return super()._step(k, state, others, decision)


def active_rows(decision: Array, y: Array, w: Array) -> Array:
    """The rows that have a loss: their margin is below 1, and their weight is not zero."""
    return np.asarray((y * decision < 1) & (w > 0))


def hinge_loss(decision: Array, Y: Array, weights: Array) -> tuple[float, Array]:
    """Weighted squared hinge loss, summed over outputs and rows with Y != 0, and its gradient."""
    margin = np.where(Y != 0, np.maximum(1 - Y * decision, 0), 0.0)
    weighted = (weights * margin.T).T
    return float(np.vdot(weighted, margin)), -2 * weighted * Y
