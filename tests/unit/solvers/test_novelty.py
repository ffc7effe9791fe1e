"""Distances to near landmarks, compared with those of these landmarks, recomputed by sorting."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.solvers.novelty import BLOCK, FLOOR, LocalDistances, distances_from

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(30, 2))
X = RNG.normal(size=(9, 2))


def distances(A, B):
    return np.sqrt(np.square(A[:, None] - B).sum(axis=2))


def test_novelty_is_a_ratio_of_mean_distances():
    D_ZZ, D = distances(Z, Z), distances(X, Z)
    known = LocalDistances.of_landmarks(D_ZZ)
    own = np.array([np.sort(np.delete(row, i))[:5].mean() for i, row in enumerate(D_ZZ)])
    floor = FLOOR * own.mean()
    for row, found in zip(D, known.novelty(D), strict=True):
        near = np.argsort(row)[:5]
        wanted = (row[near].mean() + floor) / (own[near].mean() + floor)
        assert found == pytest.approx(wanted, rel=1e-13)


def test_it_does_not_depend_on_the_unit_nor_on_the_order_of_the_landmarks():
    D_ZZ, D = distances(Z, Z), distances(X, Z)
    plain = LocalDistances.of_landmarks(D_ZZ).novelty(D)
    order = RNG.permutation(30)
    other = LocalDistances.of_landmarks(8 * D_ZZ[np.ix_(order, order)]).novelty(8 * D[:, order])
    np.testing.assert_allclose(other, plain, rtol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_fewer_landmarks_than_are_compared(m):
    D = distances(Z[:m], Z[:m])
    found = LocalDistances.of_landmarks(D).novelty(distances(X, Z[:m]))
    assert np.isfinite(found).all()


def test_equal_objects_are_not_novel():
    found = LocalDistances.of_landmarks(np.zeros((6, 6))).novelty(np.zeros((2, 6)))
    np.testing.assert_array_equal(found, 1.0)


def test_distances_from_similarities():
    found = distances_from(X @ Z.T, np.square(X).sum(axis=1), np.square(Z).sum(axis=1))
    scale = np.abs(X).max() + np.abs(Z).max()
    np.testing.assert_allclose(found, distances(X, Z), atol=1e-7 * scale)  # the root of 16 digits
    assert distances_from(np.array([[9.0]]), np.array([1.0]), np.array([1.0])) == 0


def test_more_landmarks_than_are_sorted_at_once():
    many = RNG.normal(size=(BLOCK + 3, 2))
    D = distances(many, many)
    wanted = [np.sort(np.delete(row, i))[:5].mean() for i, row in enumerate(D)]
    np.testing.assert_allclose(LocalDistances.of_landmarks(D).own, wanted, rtol=1e-13)


def test_a_single_landmark_has_no_distance_to_others():
    known = LocalDistances.of_landmarks(np.zeros((1, 1)))
    assert known.own.tolist() == [0.0]
    assert known.novelty(np.array([[0.0]])).tolist() == [1.0]
