"""Terms of the two parts of a split against centred rows of each part."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.learn.folds import TRAINING
from kreinlearn.learn.task import FoldRows, downdated, fold_of, terms_by_one_map
from kreinlearn.sums.moments import FeatureMoments

RNG = np.random.default_rng(21)
N, R, Q = 50, 4, 2
PHI = RNG.normal(size=(N, R)) + RNG.normal(size=R)
Y = RNG.normal(size=(N, Q)) + 3
W = RNG.uniform(0.2, 3, N) * (RNG.random(N) < 0.9)
S = np.array([1.0, -1.0, 1.0, -1.0])
WEIGHTS = {"plain": None, "weighted": W}
weighted = pytest.mark.parametrize("w", WEIGHTS.values(), ids=WEIGHTS)
with_or_without = pytest.mark.parametrize("intercept", [False, True])


def by_rows(train, valid, w, intercept):
    """The fields of a fold from rows less their training means."""
    w = np.ones(N) if w is None else w
    mean = np.average(PHI[train], axis=0, weights=w[train]) * intercept
    ybar = np.average(Y[train], axis=0, weights=w[train]) * intercept
    F, T = PHI - mean, Y - ybar
    wF = w[:, None] * F
    return {
        "G": F[train].T @ wF[train], "B": wF[train].T @ T[train], "n": w[train].sum(), "S": S,
        "G_valid": F[valid].T @ wF[valid], "B_valid": wF[valid].T @ T[valid],
        "yy_valid": w[valid] @ T[valid] ** 2, "n_valid": w[valid].sum(),
    }  # fmt: skip


def assert_fold(fold, train, valid, w, intercept):
    for name, expected in by_rows(train, valid, w, intercept).items():
        found = getattr(fold, name)
        assert np.shape(found) == np.shape(expected)
        atol = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=name)


def terms_of(rows, w):
    return FeatureMoments.of_rows(PHI[rows], Y[rows], None if w is None else w[rows])


fold_numbers = RNG.permutation(np.repeat([TRAINING, 0, 1, 2], [5, 15, 15, 15]))


def parts(k):
    return np.flatnonzero(fold_numbers != k), np.flatnonzero(fold_numbers == k)


@weighted
@with_or_without
def test_terms_of_a_split(w, intercept):
    train, valid = parts(1)
    fold = fold_of(terms_of(train, w), terms_of(valid, w), S, intercept=intercept)
    assert_fold(fold, train, valid, w, intercept)


@weighted
@with_or_without
def test_downdated_terms_are_those_of_the_rest(w, intercept):
    groups = [terms_of(parts(g)[1], w) for g in (0, 1, 2, TRAINING)]
    folds = downdated(groups, S, intercept=intercept)
    assert len(folds) == 3
    for k, fold in enumerate(folds):
        train, valid = parts(k)
        assert_fold(fold, train, valid, w, intercept)


def test_folds_without_rows_and_folds_of_all_rows_are_left_out():
    nothing, everything = np.arange(0), np.arange(N)
    some, rest = np.arange(10), np.arange(10, N)
    groups = [terms_of(rows, None) for rows in (nothing, some, rest, nothing)]
    assert [fold.n_valid for fold in downdated(groups, S, intercept=True)] == [10, 40]
    groups = [terms_of(rows, None) for rows in (everything, nothing, nothing)]
    assert downdated(groups, S, intercept=True) == []


@weighted
@with_or_without
def test_terms_of_the_rows_of_a_split(w, intercept):
    train, valid = parts(0)
    split = FoldRows(PHI, S, train, valid)
    assert_fold(split.terms(Y, w, intercept=intercept), train, valid, w, intercept)


def test_rows_far_from_zero_lose_no_digits_to_their_mean():
    """1e8 standard deviations off: sums of products would hold no digit of the spread."""
    train, valid = parts(0)
    far = FoldRows(PHI + 1e8, S, train, valid).terms(Y, W, intercept=True)
    near = by_rows(train, valid, W, True)
    np.testing.assert_allclose(far.G, near["G"], rtol=0, atol=1e-5 * near["G"].max())
    np.testing.assert_allclose(far.G_valid, near["G_valid"], rtol=0, atol=1e-5 * near["G"].max())


@weighted
@with_or_without
def test_splits_of_one_map_have_the_terms_of_each_for_itself(w, intercept):
    numbers = RNG.integers(0, 4, N)
    numbers[:7] = TRAINING
    drawn = RNG.random(N) < 0.8  # the others are in no part
    splits = [
        FoldRows(PHI, S, *(np.flatnonzero(part & drawn) for part in (numbers != k, numbers == k)))
        for k in range(4)
    ]
    together = terms_by_one_map(splits, Y, w, intercept=intercept)
    for split, fold in zip(splits, together, strict=True):
        alone = split.terms(Y, w, intercept=intercept)
        for name in ("G", "B", "n", "G_valid", "B_valid", "yy_valid", "n_valid"):
            np.testing.assert_allclose(
                getattr(fold, name), getattr(alone, name), rtol=1e-11, atol=1e-11
            )


def test_groups_of_penalties_are_those_of_the_splits():
    groups = np.array([0, 3, 1, 2])
    splits = [FoldRows(PHI, S, *parts(k), groups=groups) for k in range(3)]
    folds = [*terms_by_one_map(splits, Y, W, intercept=True), splits[0].terms(Y, W, intercept=True)]
    assert len(folds) == 4
    for fold in folds:
        np.testing.assert_array_equal(fold.groups, groups)
    np.testing.assert_array_equal(FoldRows(PHI, S, *parts(0)).groups, [0, 1, 0, 1])
