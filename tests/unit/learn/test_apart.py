"""Two penalties must earn it: per-fold losses of known minima, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.learn.search import HIGHEST, Unknowns, tune_apart

BOTH = Unknowns((None, None))
SCALE = 1.0


class Bowls:
    """Fold k: 1 + |log lambda - centre_k|^2 / 100, a row of centres a fold."""

    def __init__(self, centres, depth=1.0, minus=1.0):
        self.centres, self.depth, self.minus = np.asarray(centres, float), depth, minus

    def per_fold(self, values):
        squares = (np.log(values[:2]) - self.centres) ** 2 * [1.0, self.minus]
        return 1.0 + self.depth * squares.sum(axis=1) / 100

    def __call__(self, values):
        steps = (np.log(values[:2]) - self.centres) * [1.0, self.minus]
        gradient = 2 * self.depth * steps.mean(axis=0) / 100
        return self.per_fold(values).mean(), gradient


def test_penalties_part_where_every_fold_gains():
    bowls = Bowls([[-8.0, -2.0]] * 5)
    found = tune_apart(bowls, SCALE, BOTH)
    assert found.apart
    np.testing.assert_allclose(np.log(found.values), [-8.0, -2.0], atol=0.5)
    assert found.loss == pytest.approx(bowls(found.values)[0], rel=1e-12)


def test_penalties_stay_equal_where_folds_disagree():
    """The mean has its minimum at (-6, -4), but the gain of a fold is as often a loss."""
    far = np.array([[-6.0, -4.0]] * 6) + 9 * np.array([[1, -1], [-1, 1]] * 3)
    bowls = Bowls(far)
    found = tune_apart(bowls, SCALE, BOTH)
    assert not found.apart
    assert found.values[0] == found.values[1]
    np.testing.assert_allclose(np.log(found.values), -5.0, atol=0.5)
    one, two = np.full(2, np.exp(-5.0)), np.exp([-6.0, -4.0])
    fall = bowls.per_fold(one) - bowls.per_fold(two)
    assert 0 < fall.mean() < 2 * fall.std(ddof=1) / np.sqrt(6)  # the rule, by hand
    assert found.loss == pytest.approx(bowls(found.values)[0], rel=1e-12)


def test_a_part_that_no_fold_has_is_switched_off():
    flat = Bowls([[-5.0, 0.0]] * 4, minus=0.0)
    found = tune_apart(flat, SCALE, BOTH)
    assert found.values[1] == pytest.approx(HIGHEST * SCALE)
    assert np.log(found.values[0]) == pytest.approx(-5.0, abs=0.5)
    assert found.loss == pytest.approx(flat(found.values)[0], rel=1e-12)


@pytest.mark.parametrize("unknowns", [Unknowns((None, None), equal=True), Unknowns((None, 0.5))])
def test_nothing_is_decided_where_one_penalty_is_free(unknowns):
    found = tune_apart(Bowls([[-4.0, -4.0]] * 3), SCALE, unknowns)
    assert found.apart
    assert found.values[1] == (found.values[0] if unknowns.equal else 0.5)


def test_all_trials_are_kept():
    found = tune_apart(Bowls([[-8.0, -2.0]] * 5), SCALE, BOTH)
    tied = found.trials[:, 0] == found.trials[:, 1]
    assert 0 < tied.sum() < len(tied)
    losses = [Bowls([[-8.0, -2.0]] * 5)(row[:2])[0] for row in found.trials]
    np.testing.assert_allclose(found.trials[:, -1], losses, rtol=1e-12)


class FourBowls(Bowls):
    """The same of four penalties, of which those with odd numbers may have no influence."""

    def per_fold(self, values):
        weights = np.array([1.0, self.minus, 1.0, self.minus])
        return 1.0 + ((np.log(values) - self.centres) ** 2 * weights).sum(axis=1) / 100

    def __call__(self, values):
        weights = np.array([1.0, self.minus, 1.0, self.minus])
        gradient = 2 * ((np.log(values) - self.centres) * weights).mean(axis=0) / 100
        return self.per_fold(values).mean(), gradient


FOUR = Unknowns((None,) * 4, n_penalties=4)


def test_four_penalties_part_where_every_fold_gains():
    found = tune_apart(FourBowls([[-8.0, -2.0, -6.0, 1.0]] * 5), SCALE, FOUR)
    assert found.apart
    np.testing.assert_allclose(np.log(found.values), [-8.0, -2.0, -6.0, 1.0], atol=0.5)


def test_four_penalties_stay_equal_where_folds_disagree():
    away = 9 * np.array([[1, -1, 1, -1], [-1, 1, -1, 1]] * 3)
    found = tune_apart(FourBowls(np.array([[-6.0, -4.0, -6.0, -4.0]] * 6) + away), SCALE, FOUR)
    assert not found.apart
    assert len(set(found.values)) == 1
    assert np.log(found.values[0]) == pytest.approx(-5.0, abs=0.5)


def test_negative_parts_that_no_fold_has_are_switched_off():
    found = tune_apart(FourBowls([[-5.0, 0.0, -5.0, 0.0]] * 4, minus=0.0), SCALE, FOUR)
    np.testing.assert_allclose(found.values[1::2], HIGHEST * SCALE)
    np.testing.assert_allclose(np.log(found.values[::2]), -5.0, atol=0.5)
