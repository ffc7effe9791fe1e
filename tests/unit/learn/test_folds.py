"""Splits of the rows: who is in which fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut

from kreinlearn import KreinRidgeClassifier, KreinSVC, SpectrumSVC
from kreinlearn._warnings import RareClasses
from kreinlearn.data.tiles import TILE
from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.folds import (
    MANY_ROWS,
    MAX_FOLDS,
    TRAINING,
    DrawnFolds,
    as_groups,
    draw_folds,
    fold_count,
    given_folds,
    random_folds,
    rare_in_words,
    with_fold,
)
from kreinlearn.pairs.rows import Rows


@pytest.mark.parametrize(("n", "k"), [(50, 5), (53, 5), (7, 7), (4, 2), (11, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_random_folds_are_equal_parts(n, k, seed):
    folds = random_folds(n, k, np.random.default_rng(seed))
    sizes = np.bincount(folds, minlength=k)
    assert len(sizes) == k
    assert sizes.sum() == n
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_random_folds_of_classes_are_equal_parts_of_each(k, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(4), [3, 40, 17, 6]))
    folds = random_folds(66, k, rng, labels)
    for members in (folds, *(folds[labels == c] for c in range(4))):
        sizes = np.bincount(members, minlength=k)
        assert sizes.max() - sizes.min() <= 1


def test_random_folds_are_random_and_repeat_with_the_seed():
    one, again, other = (random_folds(40, 4, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    labels = np.repeat([0, 1], 20)
    alone = random_folds(40, 4, np.random.default_rng(0), labels)
    assert not np.array_equal(alone[:20], np.arange(20) % 4)


@pytest.mark.parametrize(("n", "expected"), [(100, 5), (5, 5), (4, 4), (2, 2), (1, 2)])
def test_number_of_folds(n, expected):
    assert fold_count(n) == expected <= MAX_FOLDS


@pytest.mark.parametrize("n_rows", [60, MANY_ROWS + 60])
@pytest.mark.parametrize("seed", range(4))
def test_rare_classes_are_spread_over_the_folds_that_are_asked_for(n_rows, seed):
    rng = np.random.default_rng(seed)
    counts = np.array([2, n_rows - 42, 7, 2, 1, 30])
    labels = rng.permutation(np.repeat(np.arange(6), counts))
    encoded = Encoded(labels, None, labels, counts, np.arange(6))
    for cv in (None, 5):
        folds, k = draw_folds(cv, Rows(np.zeros((n_rows, 1))), encoded, rng)
        assert k == 5
        for c in (0, 2, 3):  # each training part has an object of the class
            assert len(set(folds[labels == c])) == min(counts[c], 5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("learner", [KreinRidgeClassifier, KreinSVC, SpectrumSVC])
def test_a_rare_class_keeps_the_folds_and_is_warned_of_once_by_name(learner, cv):
    rng = np.random.default_rng(0)
    y = np.array(["common", "usual"] * 29 + ["rare", "rare"])
    X = rng.normal(size=(60, 2)) + 4 * (y == "usual")[:, None] - 4 * (y == "rare")[:, None]
    more = {} if learner is SpectrumSVC else {"landmarks": 12}
    model = learner("gaussian", cv=cv, random_state=0, **more)
    with pytest.warns(RareClasses, match=r"than there are folds, 5: rare \(2\);") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert set(model.folds_) - {TRAINING} == set(range(5))


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_no_folds_are_used():
    y = np.array([0, 1] * 20 + [2, 2])
    X = np.random.default_rng(0).normal(size=(42, 2)) + y[:, None]
    KreinRidgeClassifier("gaussian", random_state=0).fit(X, y)  # leaves out one object at a time
    given = {"lambda_plus": 0.1, "lambda_minus": 0.1}
    KreinRidgeClassifier("gaussian", landmarks=9, cv=5, random_state=0, **given).fit(X, y)


def test_at_most_some_rare_classes_are_named():
    said = rare_in_words(np.arange(9), np.array([1, 40, 2, 3, 4, 0, 3, 3, 2]), 5)
    assert said.startswith("7 classes have fewer objects than there are folds, 5: 0 (1), 2 (2),")
    assert "8 (2), 3 (3), 6 (3) and 2 more;" in said
    assert rare_in_words(np.arange(2), np.array([5, 0]), 5) == ""


def test_folds_that_are_given():
    np.testing.assert_array_equal(
        given_folds(10, list(KFold(3).split(np.zeros(10)))), [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    )
    np.testing.assert_array_equal(
        given_folds(5, list(LeaveOneOut().split(np.zeros(5)))), np.arange(5)
    )


def test_rows_that_are_never_tested_are_always_trained_on():
    splits = [([0, 1, 2, 3, 5], [4, 6]), ([1, 2, 3, 4, 5, 6], [0])]
    expected = [1, TRAINING, TRAINING, TRAINING, 0, TRAINING, 0]
    np.testing.assert_array_equal(given_folds(7, splits), expected)


def test_masks_are_folds_as_well():
    tested = np.array([True, False, False, True])
    np.testing.assert_array_equal(
        given_folds(4, [(~tested, tested), (tested, ~tested)]), [0, 1, 1, 0]
    )


@pytest.mark.parametrize(
    "splits",
    [
        [([0, 1], [2, 3]), ([0, 3], [1, 2])],  # row 2 tested twice
        [([0, 1], [2]), ([2, 3], [0, 1])],  # row 3 in neither part
        [([0, 1, 2], [2]), ([2, 3], [0, 1])],  # row 2 in both, row 3 in none
        [([0, 0, 1], [2]), ([2, 3], [0, 1])],  # row 0 twice
    ],
)
def test_other_splits_are_refused(splits):
    with pytest.raises(ValueError, match="cv must split the rows into parts, each tested once"):
        given_folds(4, splits)


# Folds of many rows


def by_definition(folds, numbers):
    """The fold of each row: SplitMix64 of its number and the seed, as integers of Python."""
    found, bits = [], 2**64
    placed = dict(zip(folds.apart.tolist(), folds.of_apart.tolist(), strict=True))
    for number in numbers:
        z = (int(number) * 0x9E3779B97F4A7C15 + folds.seed) % bits
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % bits
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % bits
        z ^= z >> 31
        found.append(placed.get(int(number), (z >> 32) * folds.k // 2**32))
    return found


def test_the_fold_of_a_row_is_a_function_of_its_number():
    folds = DrawnFolds(3 * TILE + 700, 5, 2**63 - 25).placed(
        np.array([4000, 3, 70]), [7, TRAINING, 2]
    )
    numbers = np.append(np.random.default_rng(1).integers(folds.n, size=200), [3, 4000, 70])
    np.testing.assert_array_equal(folds[numbers], by_definition(folds, numbers))
    np.testing.assert_array_equal(folds[numbers], np.asarray(folds)[numbers])
    np.testing.assert_array_equal(folds[numbers[:3]], by_definition(folds, numbers[:3]))
    assert folds[numbers[:0]].shape == (0,)
    assert len(folds) == folds.n == len(list(folds))


def test_drawn_folds_are_indexed_as_an_array_is():
    folds = DrawnFolds(TILE + 9, 4, 3)
    every = np.asarray(folds)
    mask = every == 2
    np.testing.assert_array_equal(folds[mask], every[mask])
    np.testing.assert_array_equal(folds[5:90], every[5:90])
    np.testing.assert_array_equal(folds[[7, 2]], every[[7, 2]])
    assert folds[-1] == every[-1]


def test_drawn_folds_are_equal_parts_by_chance():
    """Counts are binomial, within 5 deviations; neighbours, tiles and seeds do not correlate."""
    n, k = 50 * TILE, 5
    folds = np.asarray(DrawnFolds(n, k, 7))
    of_tiles = np.array([np.bincount(tile, minlength=k) for tile in folds.reshape(50, TILE)])
    for counts, size in ((of_tiles, TILE), (of_tiles.sum(axis=0), n)):
        assert np.abs(counts - size / k).max() <= 5 * np.sqrt(size / k * (1 - 1 / k))
    for other in (np.roll(folds, 1), np.roll(folds, TILE), np.asarray(DrawnFolds(n, k, 8))):
        assert abs(np.corrcoef(folds, other)[0, 1]) < 5 / np.sqrt(n)


def test_drawn_folds_change_as_those_in_an_array():
    n, rows = 2 * TILE + 5, np.array([2 * TILE, 3, 70])
    drawn = DrawnFolds(n, 4, 0)
    some, array = drawn, np.asarray(drawn)
    for fold in (1, TRAINING):  # the second choice replaces the first one
        some, array = with_fold(some, rows[fold:], fold), with_fold(array, rows[fold:], fold)
        np.testing.assert_array_equal(np.asarray(some), array)
    assert array[3] == 1
    assert array[70] == TRAINING
    np.testing.assert_array_equal(np.asarray(as_groups(some, 4)), as_groups(array, 4))
    assert np.asarray(as_groups(some, 4)).max() == 4
    assert not len(drawn.apart)


@pytest.mark.parametrize("n", [MANY_ROWS + 1, 10**12])
def test_folds_of_many_rows_take_no_memory(n):
    """Nothing is n long: folds of a trillion rows are drawn, and put into groups."""

    class Many(Rows):
        def __init__(self):
            self.n = n

    rng = np.random.default_rng(0)
    folds, k = draw_folds(None, Many(), Encoded(None, None), rng)
    groups = as_groups(with_fold(folds, np.array([n - 1]), TRAINING), k)
    numbers = np.arange(n - 100, n)
    np.testing.assert_array_equal(groups[numbers], by_definition(groups, numbers))
    assert groups[numbers][-1] == k == 5


def test_drawn_folds_are_compared_as_an_array_is():
    folds = DrawnFolds(TILE + 9, 4, 3)
    every = np.asarray(folds)
    np.testing.assert_array_equal(folds == 2, every == 2)
    np.testing.assert_array_equal(folds < 1, every < 1)
    np.testing.assert_array_equal(np.bincount(folds), np.bincount(every))
