"""The error to expect: its formula on numbers that are made up, and what it never is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kreinlearn.learn.comparison import Comparison, OuterFold
from kreinlearn.learn.decision import (
    Anew,
    by_difference,
    by_ratio,
    effective_number,
    expected_square,
    mean_and_error,
)
from kreinlearn.learn.held_out import HeldOut
from kreinlearn.learn.search import Unknowns
from kreinlearn.learn.similarity import Compared

N = 9
EPS = float(np.finfo(np.float64).eps)
PLACES = np.arange(N)
BOTH = Unknowns((None, None))


def compared_on(Y: Any, w: Any, groups: Any = None) -> Compared:
    comparison = Comparison([], Y, w, groups=groups)
    return Compared(comparison, np.arange(N), [[None]], BOTH, adds=False)


def made_up(
    n_of_all: int = N, *, weighted: bool = False, groups: Any = None, good: float = 1.0
) -> HeldOut:
    """Scores of all objects, and of three folds of nine of them; ``good`` makes them smaller."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(N, 2))
    w = rng.uniform(0.5, 3, N) if weighted else None
    outer = []
    for k in range(3):
        train, valid = PLACES[k != PLACES % 3], PLACES[k == PLACES % 3]
        inner, scores = rng.normal(size=(len(train), 2)), rng.normal(size=(len(valid), 2))
        outer.append(OuterFold(train, valid, inner, scores, np.zeros((N, len(train)))))
    of_all = rng.normal(size=(n_of_all, 2))
    targets, weights = Y, np.ones(N) if w is None else w
    if n_of_all > N:
        targets, weights = rng.normal(size=(n_of_all, 2)), np.ones(n_of_all)
    of_all = targets + good * (of_all - targets)
    compared = compared_on(Y, w, groups)
    return HeldOut(
        of_all, targets, weights, groups, compared=compared, whole=n_of_all == N, outer=outer
    )


def squares(scores: Any, Y: Any) -> Any:
    return np.square(scores - Y).mean(axis=1)


class Parts(NamedTuple):
    """Errors of each object by the final model, by models that have not seen it, and by others."""

    left: Any
    outer: Any
    inner: Any
    anew: Anew


def parts_of(held: HeldOut) -> Parts:
    assert held.compared is not None
    sample = held.compared.comparison
    outer, inner = np.empty(N), np.full((3, N), np.nan)
    for k, fold in enumerate(held.outer):
        outer[fold.valid] = squares(fold.scores, sample.Y[fold.valid])
        inner[k, fold.train] = squares(fold.inner, sample.Y[fold.train])
    of_each = np.nanmean(inner, axis=0)
    w = np.ones(N) if sample.w is None else sample.w
    left = squares(held.scores, held.Y)
    return Parts(left, outer, of_each, Anew(outer, of_each, w, sample.groups))


def error_of(values: Any, w: Any, groups: Any = None) -> float:
    """The standard error of a weighted mean by its definition; groups are sums."""
    off = w * (values - np.average(values, weights=w)) / w.sum()
    each = np.arange(len(off)) if groups is None else groups
    return float(np.sqrt(sum(off[each == g].sum() ** 2 for g in np.unique(each))))


GROUPS = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["alone", "groups"])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_error_rates_it_is_the_belief_and_how_much_too_good_that_is(
    weighted: bool, groups: Any
) -> None:
    held = made_up(weighted=weighted, groups=groups)
    left, outer, inner, anew = parts_of(held)
    found, w = by_difference(held, left, anew), held.weights
    assert found.mean == pytest.approx(np.average(left + outer - inner, weights=w), rel=1e-14)
    assert found.outer == pytest.approx(np.average(outer, weights=w), rel=1e-14)
    least = 1.5 / effective_number(w, groups)
    wanted = max(error_of(left + outer - inner, w, groups), least)
    assert found.standard_error == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["alone", "groups"])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_squares_it_is_the_belief_times_a_ratio(weighted: bool, groups: Any) -> None:
    held = made_up(weighted=weighted, groups=groups, good=0.5)
    left, outer, inner, _ = parts_of(held)
    found, w = expected_square(held), held.weights
    l, o, i = (float(np.average(each, weights=w)) for each in (left, outer, inner))
    assert l < i
    assert found.mean == pytest.approx(l * o / i, rel=1e-13)
    relative = error_of(left / l + outer / o - inner / i, w, groups)
    wanted = found.mean * max(relative, 1.5 / effective_number(w, groups))
    assert found.standard_error == pytest.approx(wanted, rel=1e-12)


def test_of_squares_it_is_no_more_than_that_of_fewer_objects() -> None:
    held = made_up(good=0.9)
    left, outer, inner, anew = parts_of(held)
    smaller = anew._replace(inner=inner / 100)
    assert by_ratio(held, left, smaller).mean == pytest.approx(max(outer.mean(), left.mean()))


def test_of_a_sample_the_difference_counts_in_its_share_of_all_objects() -> None:
    held = made_up(36)
    left, outer, inner, anew = parts_of(held)
    found = by_difference(held, left, anew)
    wanted = left.mean() + (outer - inner).mean() * N / 36
    assert found.mean == pytest.approx(wanted, rel=1e-14)
    error = np.hypot(left.std() / 6, (outer - inner).std() / 3 * N / 36)
    assert found.standard_error == pytest.approx(error, rel=1e-12)
    found = expected_square(held)
    wanted = left.mean() * (1 + (outer.mean() / inner.mean() - 1) * N / 36)
    assert found.mean == pytest.approx(min(wanted, max(outer.mean(), left.mean())), rel=1e-13)


def test_it_is_what_the_model_believes_if_nothing_was_found_anew() -> None:
    held = made_up()
    left = squares(held.scores, held.Y)
    for found in (expected_square(replace(held, outer=())), by_difference(held, left, None)):
        assert found.mean == found.outer == pytest.approx(left.mean(), rel=4 * EPS)
        assert found.standard_error == pytest.approx(left.std() / 3, rel=1e-12)


@pytest.mark.parametrize("n_of_all", [N, 36])
def test_squares_that_nearly_vanish_have_a_positive_expectation(n_of_all: int) -> None:
    """The belief of a model of all objects may be far below that of models of fewer objects."""
    held = made_up(n_of_all, good=1e-6)
    found = expected_square(held)
    assert found.mean > 0
    assert found.standard_error > 0


@pytest.mark.parametrize("n_of_all", [N, 36])
def test_a_belief_of_nothing_leaves_what_models_of_fewer_objects_say(n_of_all: int) -> None:
    held = made_up(n_of_all)
    _, outer, _, anew = parts_of(held)
    found = by_ratio(held, np.zeros(n_of_all), anew)
    assert found.mean == pytest.approx(outer.mean() * N / n_of_all)
    assert found.standard_error >= 1.5 / n_of_all * found.mean > 0


def test_no_error_leaves_three_of_n_open() -> None:
    """Of groups there are fewer than of objects, and of unequal weights fewer count."""
    none = np.zeros(N)
    for groups, w, count in (
        (None, np.ones(N), 9),
        (GROUPS, np.ones(N), 81 / (4 + 4 + 4 + 4 + 1)),
        (None, np.arange(1.0, 10.0), 45**2 / 285),
    ):
        held = HeldOut(np.zeros((N, 1)), np.ones((N, 1)), w, groups)
        error = by_difference(held, none, Anew(none, none, w, groups)).standard_error
        assert 2 * error == pytest.approx(3 / count)


def test_scores_that_nothing_was_chosen_by_are_those_of_the_outer_folds() -> None:
    held = made_up()
    assert held.unseen is not None
    for fold in held.outer:
        assert_array_equal(held.unseen[fold.valid], fold.scores)
    assert replace(held, outer=()).unseen is None
    assert made_up(36).unseen is None  # those of a sample alone are not all


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_the_mean_does_not_depend_on_the_unit_of_the_weights(unit: float) -> None:
    values, weights = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    mean, error = mean_and_error(values, unit * weights, None)
    assert effective_number(unit * weights, None) == pytest.approx(16 / 6)
    assert mean == pytest.approx(1.25)
    assert error == pytest.approx(np.sqrt(1.25**2 + (2 * 0.25) ** 2 + 1.75**2) / 4)
