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
    TileFolds,
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
    more = {} if learner is SpectrumSVC else {"landmarks": 12, "multi_class": "ovr"}
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


def test_folds_of_tiles_are_equal_parts_of_each_tile():
    n, k = 3 * TILE + 700, 5
    folds = np.asarray(TileFolds(n, k, 7))
    for start in range(0, n, TILE):
        counts = np.bincount(folds[start : start + TILE], minlength=k)
        assert counts.max() - counts.min() <= 1
    assert abs(np.corrcoef(folds[:TILE], folds[TILE : 2 * TILE])[0, 1]) < 0.1
    assert abs(np.corrcoef(folds[: TILE - 1], folds[1:TILE])[0, 1]) < 0.1
    assert np.mean(folds == np.asarray(TileFolds(n, k, 8))) < 0.3


def test_the_fold_of_a_row_is_known_without_the_others():
    n = 3 * TILE + 700
    folds = TileFolds(n, 5, 7)
    numbers = np.random.default_rng(0).integers(n, size=300)
    np.testing.assert_array_equal(folds[numbers], np.asarray(folds)[numbers])
    assert len(folds) == n


def test_folds_of_tiles_change_as_those_in_an_array():
    n, rows = 2 * TILE + 5, np.array([2 * TILE, 3, 70])
    lazy = with_fold(TileFolds(n, 4, 0), rows, TRAINING)
    array = with_fold(np.asarray(TileFolds(n, 4, 0)), rows, TRAINING)
    assert np.count_nonzero(array == TRAINING) == 3
    np.testing.assert_array_equal(np.asarray(lazy), array)
    np.testing.assert_array_equal(np.asarray(as_groups(lazy, 4)), as_groups(array, 4))
    assert np.asarray(as_groups(lazy, 4)).max() == 4


def by_definition(folds, numbers):
    """The fold of each row, from a permutation of its own tile."""
    found = []
    for number in numbers:
        start = number // TILE * TILE
        size = min(TILE, folds.n - start)
        rng = np.random.default_rng([folds.seed, number // TILE])
        found.append(rng.permutation(np.arange(size) % folds.k)[number - start])
    return found


def test_folds_of_tiles_are_drawn_by_the_number_of_the_tile():
    folds = TileFolds(3 * TILE + 700, 5, 7)
    numbers = np.random.default_rng(1).integers(folds.n, size=60)
    np.testing.assert_array_equal(folds[numbers], by_definition(folds, numbers))
    assert folds[numbers[:0]].shape == (0,)


class Touched(np.ndarray):
    """An array that adds up how many entries the numpy operations on it look at."""

    entries = 0

    @classmethod
    def count(cls, *arrays):
        cls.entries += max(getattr(x, "size", 1) for x in arrays)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        self.count(*inputs)
        plain = [np.asarray(x) for x in inputs]
        return np.asarray(getattr(ufunc, method)(*plain, **options)).view(Touched)

    def __array_function__(self, function, types, inputs, options):
        self.count(*inputs)
        plain = [x.view(np.ndarray) if isinstance(x, Touched) else x for x in inputs]
        found = function(*plain, **options)
        several = isinstance(found, tuple | list)
        return [x.view(Touched) for x in found] if several else found.view(Touched)

    def __getitem__(self, key):
        found = super().__getitem__(key)
        self.count(found)
        return found


def entries_touched(tiles, shuffled):
    numbers = np.arange(tiles * TILE)
    if shuffled:
        numbers = np.random.default_rng(0).permutation(numbers)
    folds = TileFolds(len(numbers), 5, 0, apart=np.array([3, 4, 5000]))
    Touched.entries = 0
    found = folds[numbers.view(Touched)]
    entries = Touched.entries
    np.testing.assert_array_equal(found, np.asarray(folds)[numbers])
    return entries


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_work_for_folds_of_tiles_is_linear_in_the_rows(shuffled):
    """Each row is looked at a fixed number of times, and not once for every tile.

    Beside the rows there are only lists of the tiles, which are much shorter than a tile.
    """
    few, many = entries_touched(5, shuffled), entries_touched(40, shuffled)
    assert few >= 5 * TILE
    assert many <= 8 * few + TILE


def test_every_tile_is_drawn_once(monkeypatch):
    drawn, of_tile = [], TileFolds._of_tile
    monkeypatch.setattr(TileFolds, "_of_tile", lambda *a: (drawn.append(a[1]), of_tile(*a))[1])
    folds = TileFolds(30 * TILE, 5, 0)
    folds[np.random.default_rng(0).permutation(folds.n)]
    assert sorted(drawn) == list(range(30))
