"""Ranks among objects that were left out, recomputed by counting."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.solvers.conformal import LeftOut, behind

RNG = np.random.default_rng(0)


def made(k=23, folds=1, q=1, weights=None):
    """Random scores of k objects, dealt to the folds one after the other."""
    weights = np.ones(k) if weights is None else weights
    scores, novelty = RNG.gamma(2.0, size=(k, q)), RNG.gamma(2.0, size=k)
    return LeftOut(scores, novelty, weights, np.arange(k) % folds)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("folds", [1, 4])
def test_intervals_are_order_statistics(coverage, folds):
    """CV+ of Barber et al.: the ceil(coverage (k + 1))-th smallest upper end, and its mirror."""
    known = made(folds=folds, q=2)
    predicted = RNG.normal(size=(folds, 300, 2))
    found = known.intervals(predicted, coverage)
    rank = int(np.ceil(coverage * 24 - 1e-9)) - 1
    for i in (0, 150, 299):
        for j in range(2):
            ends = predicted[known.folds, i, j] + known.scores[:, j]
            starts = predicted[known.folds, i, j] - known.scores[:, j]
            assert found[i, j, 1] == np.sort(ends)[rank]
            assert found[i, j, 0] == np.sort(starts)[::-1][rank]


def test_an_interval_of_one_model_is_the_prediction_and_a_quantile_on_both_sides():
    known, predicted = made(k=99), RNG.normal(size=(1, 5, 1))
    found = known.intervals(predicted, 0.9)
    width = np.sort(known.scores[:, 0])[89]  # the ninetieth of a hundred, the new one included
    np.testing.assert_array_equal(found[:, 0, 1], predicted[0, :, 0] + width)
    np.testing.assert_array_equal(found[:, 0, 0], predicted[0, :, 0] - width)


def test_too_few_objects_make_infinite_intervals_and_full_sets():
    known = made(k=8)
    assert not known.is_enough(0.9)
    assert known.is_enough(0.88)
    assert np.isinf(known.intervals(np.zeros((1, 2, 1)), 0.9)).all()
    assert known.sets(np.full((1, 2, 3), 1e9), 0.9).all()


@pytest.mark.parametrize("folds", [1, 3])
def test_sets_count_the_objects_with_smaller_scores(folds):
    known, scores = made(folds=folds), RNG.gamma(2.0, size=(folds, 40, 3))
    found = known.sets(scores, 0.7)
    for i in range(40):
        for c in range(3):
            smaller = np.sum(known.scores[:, 0] < scores[known.folds, i, c])
            assert found[i, c] == (smaller < 0.7 * 24 - 1e-9)


@pytest.mark.parametrize("folds", [1, 3])
def test_p_values_are_shares_of_ranks(folds):
    known, scores = made(folds=folds), RNG.gamma(2.0, size=(folds, 40))
    found = known.p_values(scores)
    for i in range(40):
        larger = np.sum(known.novelty >= scores[known.folds, i])
        assert found[i] == pytest.approx((1 + larger) / 24, rel=1e-14)


def test_weights_count_objects():
    weights = RNG.integers(1, 4, size=15).astype(float)
    known = made(k=15, folds=2, q=1, weights=weights)
    times = weights.astype(int)
    repeated = LeftOut(
        np.repeat(known.scores, times, axis=0), np.repeat(known.novelty, times),
        np.ones(times.sum()), np.repeat(known.folds, times),
    )  # fmt: skip
    predicted = RNG.normal(size=(2, 30, 1))
    for coverage in (0.5, 0.8, 0.93):
        np.testing.assert_array_equal(
            known.intervals(predicted, coverage), repeated.intervals(predicted, coverage)
        )
        np.testing.assert_array_equal(
            known.sets(predicted, coverage), repeated.sets(predicted, coverage)
        )
    np.testing.assert_allclose(
        known.p_values(predicted[:, :, 0]), repeated.p_values(predicted[:, :, 0]), rtol=1e-14
    )


def test_behind_is_the_distance_to_the_best_other_class():
    scores = RNG.normal(size=(20, 4))
    found = behind(scores)
    for i in range(20):
        for c in range(4):
            assert found[i, c] == np.max(np.delete(scores[i], c)) - scores[i, c]
    tied = behind(np.array([[1.0, 1.0, 0.0]]))
    np.testing.assert_array_equal(tied, [[0.0, 0.0, 1.0]])
