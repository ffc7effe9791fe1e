"""The error to expect: its formula on numbers that are made up, and what it never is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kreinlearn.learn.comparison import Comparison, OuterFold
from kreinlearn.learn.decision import expected, expected_square, mean_and_error
from kreinlearn.learn.held_out import HeldOut

N = 9
EPS = float(np.finfo(np.float64).eps)
PLACES = np.arange(N)


def made_up(n_of_all: int = N, *, weighted: bool = False) -> HeldOut:
    """Scores of all objects, and of three folds of a sample of nine of them."""
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
    return HeldOut(of_all, targets, weights, sample=Comparison([], Y, w), outer=outer)


def squares(scores: Any, Y: Any) -> Any:
    return np.square(scores - Y).mean(axis=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_what_the_model_believes_and_how_much_too_good_that_is(weighted: bool) -> None:
    held = made_up(weighted=weighted)
    assert held.sample is not None
    Y, w = held.Y, held.weights
    outer, inner = np.empty(N), []
    for fold in held.outer:
        outer[fold.valid] = squares(fold.scores, Y[fold.valid])
        inner.append(np.average(squares(fold.inner, Y[fold.train]), weights=w[fold.train]))
    left = np.average(squares(held.scores, Y), weights=w)
    mean = np.average(outer, weights=w)
    found = expected_square(held)
    assert found.mean == pytest.approx(left + mean - np.mean(inner), rel=1e-14)
    assert found.outer == pytest.approx(mean, rel=1e-14)
    error = np.sqrt(np.sum(np.square(w * (outer - mean)))) / w.sum()
    assert found.standard_error == pytest.approx(error, rel=1e-14)


def test_of_a_sample_the_difference_counts_in_its_share_of_all_objects() -> None:
    held = made_up(36)
    assert held.sample is not None
    Y = held.sample.Y
    outer = [squares(fold.scores, Y[fold.valid]).mean() for fold in held.outer]
    inner = [squares(fold.inner, Y[fold.train]).mean() for fold in held.outer]
    left = squares(held.scores, held.Y)
    found = expected_square(held)
    wanted = left.mean() + (np.mean(outer) - np.mean(inner)) * N / 36
    assert found.mean == pytest.approx(wanted, rel=1e-14)
    assert found.standard_error == pytest.approx(left.std() / 6, rel=1e-12)


def test_it_is_what_the_model_believes_if_nothing_was_found_anew() -> None:
    held = made_up()
    left = squares(held.scores, held.Y)
    found = expected_square(replace(held, outer=()))
    assert found.mean == found.outer == pytest.approx(left.mean(), rel=4 * EPS)
    assert found.standard_error == pytest.approx(left.std() / 3, rel=1e-12)


def test_it_is_not_negative() -> None:
    def judged(fold: OuterFold, Y: Any, w: Any) -> Any:
        return np.full(len(fold.train), 1.0), np.zeros(len(fold.valid))

    for held in (made_up(), made_up(36)):
        assert expected(held, np.zeros(len(held.scores)), judged).mean == 0.0


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
    mean, error = mean_and_error(values, unit * weights)
    assert mean == pytest.approx(1.25)
    assert error == pytest.approx(np.sqrt(1.25**2 + (2 * 0.25) ** 2 + 1.75**2) / 4)
