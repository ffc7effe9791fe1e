"""Rows as Newton's method sees them: sums, the squared hinge loss, and exact steps along lines."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from kreinlearn.solvers.line_search import (
    LINED,
    Kinks,
    Line,
    LineSums,
    LongLine,
    Move,
    Question,
    line_minimum,
    line_search,
)
from kreinlearn.solvers.margins import (
    GATHERED,
    Chosen,
    DenseRows,
    HingeState,
    RowMargins,
    hinge_loss,
)
from tests.bounds import rounding


@pytest.mark.parametrize("k", [0, 5, GATHERED, GATHERED + 3])
def test_terms_of_dense_rows(k):
    rng = np.random.default_rng(k)
    Phi = rng.normal(size=(2 * GATHERED, 4))
    numbers = np.sort(rng.choice(len(Phi), k, replace=False))
    w, T = rng.uniform(0, 2, k), rng.normal(size=(k, 3))
    A, B = DenseRows(Phi).terms([Chosen(numbers, w, T)])[0]
    picked = Phi[numbers]
    for found, left, right in ((A, picked, picked), (B, picked, T)):
        wanted = np.einsum("i,ij,ik->jk", w, left, right)
        size = np.einsum("i,ij,ik->jk", w, np.abs(left), np.abs(right))
        assert (np.abs(found - wanted) <= 2 * rounding(k + 2) * size).all()
    one = DenseRows(Phi).terms([Chosen(numbers, w, T[:, 0])])[0][1]
    size = np.abs(picked).T @ (w * np.abs(T[:, 0]))
    assert (np.abs(one - B[:, 0]) <= 2 * rounding(k + 2) * size).all()


def test_decision_and_terms_of_dense_rows():
    """Of every column the sums of those rows that its own decision values pick."""
    rng = np.random.default_rng(3)
    Phi, Z, w = rng.normal(size=(30, 4)), rng.normal(size=(4, 3)), rng.uniform(0, 2, 30)
    asked = []

    def picked(k, here, decision):
        asked.append((k, here))
        rows = np.flatnonzero(decision > 0)
        return Chosen(rows, w[rows], decision[rows])

    decision, terms = DenseRows(Phi).decision_and_terms(Z, None, picked)
    assert asked == [(k, slice(0, 30)) for k in range(3)]
    assert (np.abs(decision - Phi @ Z) <= 2 * rounding(4) * np.abs(Phi) @ np.abs(Z)).all()
    for f, (A, b) in zip(decision.T, terms, strict=True):
        R, v = Phi[f > 0], w[f > 0]
        for found, right in ((A, R), (b, f[f > 0])):
            size = np.abs(R.T * v) @ np.abs(right)
            assert (np.abs(found - (R.T * v) @ right) <= 2 * rounding(32) * size).all()


def test_loss_and_its_derivative():
    rng = np.random.default_rng(17)
    F, w = rng.normal(size=(30, 2)), rng.uniform(0, 2, 30)
    Y = rng.choice([-1.0, 0.0, 1.0], size=(30, 2))
    loss, slope = hinge_loss(F, Y, w)
    each = w @ np.where(Y == 0, 0.0, np.maximum(0, 1 - Y * F)) ** 2
    assert loss == pytest.approx(each.sum(), rel=2 * rounding(F.size + 4))  # positive terms
    direction = rng.normal(size=F.shape)
    ends = [hinge_loss(F + step * direction, Y, w)[0] for step in (1e-6, -1e-6)]
    assert np.vdot(slope, direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)
    assert (slope[Y == 0] == 0).all()


# Steps along a line, also where its rows are in several places

POINTS = (*np.linspace(0, 2, 13), 3.0, 5.0, 9.0)  # sixteen that are asked for first


def line_value(margin, change, w, move, t):
    """The function of t that line_minimum minimises, from its description."""
    penalty = 2 * move.linear * t + move.quadratic * t**2
    kinks = 2 * np.sum(move.jumps * np.maximum(0, t - move.kinks))
    return w @ np.maximum(0, margin - t * change) ** 2 + penalty + kinks


def bisected(margin, change, w, move):
    """Where the derivative, summed anew for each t, changes its sign."""

    def slope(t):
        left = np.maximum(0, margin - t * change)
        jumps = move.jumps[move.kinks <= t].sum()
        return move.linear + move.quadratic * t + jumps - w @ (change * left)

    low, high = 0.0, 1.0
    while slope(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high


@pytest.mark.parametrize("n", [1, 2, 50, 3000])
@pytest.mark.parametrize("n_kinks", [0, 1, 20])
def test_step_along_the_line_is_exact(n, n_kinks):
    for seed in range(10):
        rng = np.random.default_rng([n, n_kinks, seed])
        margin, change = rng.normal(0.3, 1, n), rng.normal(0.2, 1, n) * 10 ** rng.uniform(-2, 1)
        change[rng.random(n) < 0.1] = 0
        w = rng.uniform(0, 2, n) * (rng.random(n) < 0.9)
        kinks = np.sort(rng.exponential(size=n_kinks))
        pull = w @ (change * np.maximum(margin, 0))
        move = Move(
            np.empty(0), 0.0, float(pull - rng.uniform(0.01, 1) * (1 + abs(pull))),
            rng.choice([0.01, 1.0]), kinks, rng.uniform(0, 1, n_kinks) * rng.choice([0.01, 1]),
        )  # fmt: skip
        t = line_minimum(Line(margin, change, w), move)
        assert t == pytest.approx(bisected(margin, change, w, move), rel=1e-11)
        around = t * (1 + np.linspace(-0.5, 1, 301))
        values = [line_value(margin, change, w, move, s) for s in around]
        assert line_value(margin, change, w, move, t) <= min(values) + 1e-13 * np.ptp(values)


def test_step_along_a_line_that_gets_flat_ends_where_it_does():
    """The last row leaves at t = 3; after it there is neither loss nor penalty."""
    margin, change = np.array([1.0, 3.0, -1.0]), np.array([1.0, 1.0, 0.5])
    assert line_minimum(Line(margin, change, np.ones(3)), Move(np.empty(0), 0.0, 0.0, 0.0)) == 3


def test_step_beyond_the_last_row_that_changes_sides():
    """Two rows leave at t = 1/2 and one stays: from there on there is one parabola."""
    margin, change = np.array([1.0, 1.0, 5.0]), np.array([2.0, 2.0, -1.0])
    falling = Move(np.empty(0), 0.0, -9.0, 0.5)
    # half the derivative is (5 + t) + (t / 2 - 9)
    found = line_minimum(Line(margin, change, np.ones(3)), falling)
    assert found == pytest.approx(8 / 3, rel=1e-15)
    endless = Move(np.empty(0), 0.0, -9.0, 0.0)
    assert line_minimum(Line(margin[:2], change[:2], np.ones(2)), endless) == 1


@pytest.mark.parametrize("quadratic", [0.0, 1.0])
def test_no_step_where_the_line_rises(quadratic):
    rising = Move(np.empty(0), 0.0, 0.5, quadratic, np.array([2.0]), np.ones(1))
    assert line_minimum(Line(np.array([-1.0]), np.array([0.25]), np.ones(1)), rising) == 0


def test_step_to_a_kink_between_straight_lines():
    """Half the slope is -2, then -1.5, -0.5 and 1: no row, no curvature."""
    move = Move(np.empty(0), 0.0, -2.0, 0.0, np.array([0.5, 3.0, 7.0]), np.array([0.5, 1.0, 1.5]))
    assert line_minimum(Line(np.empty(0), np.empty(0), np.empty(0)), move) == 7


def test_sums_along_a_line_by_their_definition():
    rng = np.random.default_rng(5)
    margin, change, w = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.1, 2, 50)
    change[:5], w[5:10], ts = 0.0, 0.0, np.array([0.0, 0.5, 1.0, 4.0])
    sums = Line(margin, change, w).answer(Question(ts))
    left = margin - np.multiply.outer(ts, change)  # (4, 50)
    inside = left > 0
    terms = -w * change * np.maximum(left, 0)
    assert (np.abs(sums.values - terms.sum(1)) <= 2 * rounding(52) * np.abs(terms).sum(1)).all()
    np.testing.assert_allclose(sums.slopes, inside @ (w * change**2), rtol=2 * rounding(52))
    counts = [np.count_nonzero((a != b) & (w > 0)) for a, b in itertools.pairwise(inside)]
    assert min(counts) > 0
    assert sums.crossed.tolist() == counts
    assert sums.last == max(margin[i] / change[i] for i in range(50) if change[i] and w[i])


def test_a_step_ends_between_the_values_of_t_that_were_asked_for():
    """Rounding may leave a derivative that is zero behind a value of t and no slope before it."""
    search = line_search(Move(np.empty(0), 0.0, 0.0, 0.0), (0.0, 1.0, 3.0))
    assert next(search).ts.tolist() == [0.0, 1.0, 3.0]
    sums = LineSums(np.array([-1.0, -1e-17, 0.0]), np.zeros(3), np.zeros(2, int), 9.0)
    question = search.send(sums)
    assert question.kinks
    assert question.ts.tolist() == [1.0, 3.0]
    with pytest.raises(StopIteration) as end:
        search.send(Kinks(np.empty(0), np.empty(0), np.empty(0)))
    assert end.value.value == 3


def test_a_walk_on_which_no_row_changes_sides_ends_at_its_target():
    rng = np.random.default_rng(8)
    Phi, Y = rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], size=(30, 1))
    margins = RowMargins(DenseRows(Phi), Y, np.ones(30))
    states = dict(enumerate(margins.start(None)))
    target = 0.9 / np.abs(Phi).sum(axis=1).max() * np.ones(3)  # all decision values are below 1
    step = margins.walk(states, {0: Move(target, 1.0, 0.0, 0.0)})[0]
    assert (step.t, step.same) == (1.0, True)
    assert (step.state.coef == target).all()
    np.testing.assert_allclose(step.state.decision, Phi @ target, rtol=0, atol=1e-15)


# A line without its rows


def asked_of(parts, search, most):
    """What a search finds, and how often it has asked."""
    question = next(search)
    for asked in range(1, 100):
        answer = parts[0].answer(question)
        for part in parts[1:]:
            answer += part.answer(question)
        assert not question.kinks or len(answer.at) <= most
        try:
            question = search.send(answer)
        except StopIteration as end:
            return end.value, asked
    raise AssertionError("it asks and asks")


@pytest.mark.parametrize("most", [2**14, 50, 1])
def test_a_line_that_is_only_asked_a_little(most):
    """Rows in three parts, sixteen points at a time, few kinks: the t of all rows at once."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 4000
        margin, change = rng.normal(0.3, 1, n), rng.normal(0.2, 1, n) * 10 ** rng.uniform(-2, 1)
        if seed % 2:
            margin, change = np.round(margin, 1), np.round(change, 1)  # many rows cross together
        w = rng.uniform(0, 2, n)
        pull = w @ (change * np.maximum(margin, 0))
        move = Move(np.empty(0), 0.0, float(pull - rng.uniform(0.01, 1) * (1 + abs(pull))), 0.5)
        parts = [Line(margin[i::3], change[i::3], w[i::3]) for i in range(3)]
        t, asked = asked_of(parts, line_search(move, POINTS, most), most)

        def slope(t, margin=margin, change=change, w=w, move=move):
            return move.linear + 0.5 * t - w @ (change * np.maximum(0, margin - t * change))

        size = np.abs(w * change * margin).sum()
        assert abs(slope(t)) <= 1e-12 * size
        assert asked < 20


def test_a_search_with_slack_ends_at_a_target_that_serves():
    """At a value below that of the start, and at no more than a quarter of its slope."""
    ends, points, slack = [], (0.0, 0.5, 0.75, 1.0, 1.25, 2.0, 9.0), 0.25
    for seed in range(60):
        rng = np.random.default_rng(seed)
        margin, change, w = (
            rng.normal(0.5, 1, 300),
            rng.normal(0.1, 0.3, 300),
            rng.uniform(0, 2, 300),
        )
        pull = w @ (change * np.maximum(margin, 0))
        step = rng.uniform(0.5, 2)  # about where the minimum is
        move = Move(np.empty(0), 0.0, float(pull - abs(pull)), float(abs(pull) / step))
        search = line_search(move, points, slack=slack)
        t, asked = asked_of([Line(margin, change, w)], search, np.inf)

        def slope(t, margin=margin, change=change, w=w, move=move):
            left = np.maximum(0, margin - t * change)
            return move.linear + move.quadratic * t - w @ (change * left)

        ends.append(asked)
        if asked == 1:
            assert t == 1
            assert abs(slope(1)) <= -slack * slope(0)
            values = [line_value(margin, change, w, move, t) for t in (0.0, 1.0)]
            assert values[1] < values[0]
        else:
            assert abs(slope(1)) > -slack * slope(0)
            assert t == pytest.approx(bisected(margin, change, w, move), rel=1e-11)
    assert len(set(ends)) > 1  # both happen


def test_a_target_that_may_be_worse_than_the_start_does_not_serve():
    """The slope is small there, but it is positive on nearly the whole way."""
    search = line_search(Move(np.empty(0), 0.0, 0.0, 0.0), (0.0, 0.5, 1.0), slack=0.25)
    next(search)
    values = np.array([-1.0, 0.2, 0.2])
    question = search.send(LineSums(values, np.zeros(3), np.array([3, 0]), 9.0))
    assert question.kinks
    assert question.ts.tolist() == [0.0, 0.5]


@pytest.mark.parametrize("size", [1, 7, 30, 100])
def test_a_line_in_parts_answers_as_the_whole(size):
    """Whatever the parts are: sums agree to rounding, counts and kinks exactly."""
    rng = np.random.default_rng(size)
    n, ts = 30, np.array([0.0, 0.5, 1.0, 4.0])
    decision, goal = rng.normal(size=(2, n))
    y, w = rng.choice([-1.0, 1.0], n), rng.uniform(0, 2, n) * (rng.random(n) < 0.8)
    whole = Line(1 - y * decision, y * (goal - decision), w)
    parts = LongLine(decision, goal, y, w, size)
    one, sums = whole.answer(Question(ts)), parts.answer(Question(ts))
    left = np.maximum(whole.margin[:, None] + np.abs(whole.change)[:, None] * ts, 0)
    bound = 2 * rounding(n) * (w * np.abs(whole.change)) @ (left + np.abs(whole.change)[:, None])
    assert (np.abs(sums.values - one.values) <= bound).all()
    assert (np.abs(sums.slopes - one.slopes) <= bound).all()
    np.testing.assert_array_equal(sums.crossed, one.crossed)
    assert sums.last == one.last
    some, every = (line.answer(Question(ts[1:3], kinks=True)) for line in (parts, whole))
    for name in ("at", "steps", "bends"):
        np.testing.assert_array_equal(getattr(some, name), getattr(every, name))
    move = Move(np.empty(0), 0.0, -0.1, 0.3)
    assert line_minimum(parts, move) == pytest.approx(line_minimum(whole, move), rel=1e-12)


def test_a_step_of_very_many_rows_needs_three_numbers_of_each():
    """New decision values, the product of a row's target and decision, and masks of sides.

    What a search along a line needs beside them is that of a part of the rows, and of the few that
    change sides.
    """
    n = 8 * LINED
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(n, 1))
    Y = np.sign(Phi + rng.normal(size=(n, 1)))
    margins = RowMargins(DenseRows(Phi), Y, np.ones(n))
    start, target = np.array([0.5]), np.array([0.51])
    decision = Phi @ start
    slope = np.maximum(1 - Y[:, 0] * decision, 0) @ (Y * (Phi @ (target - start))[:, None])
    state = HingeState(start, decision, Y[:, 0] * decision < 1, np.eye(1), np.ones(1))
    tracemalloc.start()
    try:
        step = margins.walk({0: state}, {0: Move(target, 1.0, 0.0, 2 * slope.item())})[0]
        margins.losses([step.state])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < step.t < 1
    assert peak <= 3 * 8 * n
