"""Scores by the nearest of each class, against loops over objects, classes and numbers k."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from kreinlearn.learn.neighbours import (
    BLOCK,
    MEDIAN_ROWS,
    NEIGHBOURS,
    NOBODY,
    LabelNeighbours,
    NeighbourScores,
    as_distances,
)

EPS = np.finfo(np.float64).eps
SIZES = (30, 12, 4, 1, 2)  # more, as many and fewer members than neighbours; one alone
Q = len(SIZES)


def symmetric(n, seed, scale=1.0):
    """Dissimilarities that obey no triangle inequality."""
    rng = np.random.default_rng(seed)
    D = scale * rng.gamma(2.0, size=(n, n))
    D = np.triu(D, 1)
    return D + D.T


def problem(seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(Q), SIZES))
    return symmetric(len(labels), seed + 1), labels, rng.gamma(2.0, size=(23, len(labels)))


def scores_of_row(row, labels, n_classes, floor, allowed):
    """(K, n_classes) from the definition, for one row of distances to training objects."""
    d = np.full((len(NEIGHBOURS), n_classes), np.nan)
    for i, k in enumerate(NEIGHBOURS):
        for c in range(n_classes):
            nearest = sorted(row[j] for j in range(len(row)) if labels[j] == c and allowed[j])[:k]
            if nearest:
                d[i, c] = sum(nearest) / len(nearest)
        d[i, np.isnan(d[i])] = np.nanmax(d[i])
    return -np.log(d + floor)


def by_definition(D, labels, n_classes, floor, weights=None, *, themselves):
    counted = np.ones(len(labels), bool) if weights is None else weights > 0
    rows = []
    for i, row in enumerate(D):
        allowed = counted & (np.arange(len(labels)) != i) if themselves else counted
        rows.append(scores_of_row(row, labels, n_classes, floor, allowed))
    return np.stack(rows, axis=1)


def floor_of(D, counted=slice(None)):
    D = D[counted][:, counted]
    return 1e-3 * np.median([D[i, j] for i in range(len(D)) for j in range(len(D)) if i != j])


def assert_same_scores(scores, expected):
    """Means of up to ten terms differ by ten roundings, and logarithms by a relative one."""
    bound = (max(NEIGHBOURS) + 4) * EPS * (1 + np.abs(expected))
    assert scores.shape == expected.shape
    assert (np.abs(scores - expected) <= bound).all()


@pytest.mark.parametrize("seed", range(3))
def test_left_out_scores_are_the_definition(seed):
    D, labels, _ = problem(seed)
    scores = NeighbourScores.fit(D, labels, Q).left_out(D)
    assert_same_scores(scores, by_definition(D, labels, Q, floor_of(D), themselves=True))


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_new_rows_are_the_definition(seed):
    D, labels, D_new = problem(seed)
    scores = NeighbourScores.fit(D, labels, Q).of(D_new)
    assert_same_scores(scores, by_definition(D_new, labels, Q, floor_of(D), themselves=False))


def test_left_out_scores_are_those_of_a_new_object():
    """Leaving an object out is the same as never having had it, at the floor of all objects."""
    D, labels, _ = problem()
    fitted = NeighbourScores.fit(D, labels, Q)
    left_out = fitted.left_out(D)
    for i in range(len(D)):
        weights = np.ones(len(D))
        weights[i] = 0
        others = NeighbourScores.fit(D, labels, Q, weights)
        others = NeighbourScores(others.labels, others.counts, fitted.floor, fitted.default)
        np.testing.assert_array_equal(others.of(D[[i]])[:, 0], left_out[:, i])


def test_some_training_objects_among_new_ones_are_not_their_own_neighbours():
    D, labels, D_new = problem()
    fitted = NeighbourScores.fit(D, labels, Q)
    some = np.array([7, 2, 30])
    rows = np.concatenate([D_new, D[some]])
    own = np.concatenate([np.full(len(D_new), NOBODY), some])
    scores = fitted.of(rows, own)
    np.testing.assert_array_equal(scores[:, : len(D_new)], fitted.of(D_new))
    np.testing.assert_array_equal(scores[:, len(D_new) :], fitted.left_out(D)[:, some])


def test_an_object_does_not_see_its_own_label():
    D, labels, _ = problem()
    for i in range(len(D)):
        changed = labels.copy()
        changed[i] = (labels[i] + 1) % Q
        scores = [NeighbourScores.fit(D, y, Q).left_out(D)[:, i] for y in (labels, changed)]
        np.testing.assert_array_equal(*scores)


def test_an_object_alone_in_its_class_is_as_far_from_it_as_from_the_worst_class():
    D, labels, _ = problem()
    (alone,) = np.flatnonzero(labels == 3)
    scores = NeighbourScores.fit(D, labels, Q).left_out(D)[:, alone]
    np.testing.assert_array_equal(scores[:, 3], np.delete(scores, 3, axis=1).min(axis=1))


# Weights


def test_objects_of_weight_zero_are_nobodys_neighbours():
    D, labels, D_new = problem()
    weights = np.random.default_rng(5).uniform(0.1, 3, len(D))
    weights[::3] = 0
    fitted = NeighbourScores.fit(D, labels, Q, weights)
    floor = floor_of(D, weights > 0)
    expected = by_definition(D, labels, Q, floor, weights, themselves=True)
    assert_same_scores(fitted.left_out(D), expected)
    expected = by_definition(D_new, labels, Q, floor, weights, themselves=False)
    assert_same_scores(fitted.of(D_new), expected)


@pytest.mark.parametrize("similarities", [False, True])
def test_objects_of_weight_zero_are_as_if_they_were_absent(similarities):
    D, labels, D_new = problem()
    gone = np.zeros(len(D), bool)
    gone[[1, 8, 20]] = True
    D[gone], D[:, gone], D_new[:, gone] = 1e6, 1e6, 1e-6  # would change top, median and scores
    fitted = NeighbourScores.fit(D, labels, Q, np.where(gone, 0.0, 1.0), similarities=similarities)
    sub = D[np.ix_(~gone, ~gone)]
    without = NeighbourScores.fit(sub, labels[~gone], Q, similarities=similarities)
    assert (fitted.floor, fitted.default, fitted.top) == (
        without.floor,
        without.default,
        without.top,
    )
    np.testing.assert_array_equal(fitted.counts, without.counts)
    np.testing.assert_array_equal(fitted.left_out(D)[:, ~gone], without.left_out(sub))
    np.testing.assert_array_equal(fitted.of(D_new), without.of(D_new[:, ~gone]))


def test_a_class_whose_members_weigh_nothing_is_as_far_as_the_worst_class():
    D, labels, D_new = problem()
    fitted = NeighbourScores.fit(D, labels, Q, np.where(labels == 1, 0.0, 1.0))
    assert fitted.counts[1] == 0
    assert (fitted.labels[labels == 1] == NOBODY).all()
    scores = fitted.of(D_new)
    np.testing.assert_array_equal(scores[..., 1], np.delete(scores, 1, axis=2).min(axis=2))


# Similarities


def test_similarities_count_from_the_largest_one():
    D, labels, D_new = problem()
    K, K_new = 2.5 - D, 2.5 - D_new  # the diagonal has the largest
    fitted = NeighbourScores.fit(K, labels, Q, similarities=True)
    assert fitted.top == 2.5
    expected = by_definition(2.5 - K, labels, Q, floor_of(2.5 - K), themselves=True)
    assert_same_scores(fitted.left_out(K), expected)
    expected = by_definition(2.5 - K_new, labels, Q, floor_of(2.5 - K), themselves=False)
    assert_same_scores(fitted.of(K_new), expected)
    np.testing.assert_array_equal(as_distances(K, 2.5), 2.5 - K)


def test_new_similarities_above_all_training_ones_are_at_distance_zero():
    D, labels, D_new = problem()
    fitted = NeighbourScores.fit(-D, labels, Q, similarities=True)
    scores = fitted.of(np.full_like(D_new, 7.0))
    np.testing.assert_array_equal(scores, np.full_like(scores, -np.log(fitted.floor)))


# Few objects, equal objects, other types


def test_duplicates_have_finite_scores():
    D, labels, _ = problem()
    scores = NeighbourScores.fit(np.zeros_like(D), labels, Q).left_out(np.zeros_like(D))
    np.testing.assert_array_equal(scores, np.full_like(scores, -np.log(1e-3)))


def test_where_most_distances_are_zero_the_floor_is_a_share_of_the_others():
    D = np.zeros((9, 9))
    D[0, 1:] = D[1:, 0] = np.arange(1, 9)
    fitted = NeighbourScores.fit(D, np.arange(9) % 2, 2)
    assert fitted.floor == 1e-3 * 4.5


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_objects(n):
    """The only other object is the only neighbour, and the distance to all classes."""
    D = symmetric(n, 0)
    fitted = NeighbourScores.fit(D, np.arange(n), 2)
    scores = fitted.left_out(D)
    distance = D[0, 1] if n == 2 else 1.0
    np.testing.assert_array_equal(scores, np.full((3, n, 2), -np.log(distance + fitted.floor)))


def test_infinite_distances_are_to_no_neighbour():
    D, labels, _ = problem()
    far = np.arange(len(D)) < 9
    D[np.ix_(far, ~far)] = D[np.ix_(~far, far)] = np.inf
    scores = NeighbourScores.fit(D, labels, Q).left_out(D)
    inside = D[np.ix_(~far, ~far)]
    finite = D[np.isfinite(D) & ~np.eye(len(D), dtype=bool)]
    expected = by_definition(inside, labels[~far], Q, 1e-3 * np.median(finite), themselves=True)
    assert_same_scores(scores[:, ~far], expected)


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.float32, np.int64])
def test_values_of_any_type_are_scored_in_double_precision(dtype):
    D, labels, D_new = problem()
    D, D_new = (9 * D).astype(dtype), (9 * D_new).astype(dtype)
    exact = D.astype(np.float64)
    given, double = NeighbourScores.fit(D, labels, Q), NeighbourScores.fit(exact, labels, Q)
    np.testing.assert_array_equal(given.left_out(D), double.left_out(exact))
    np.testing.assert_array_equal(given.of(D_new), double.of(D_new.astype(np.float64)))


def test_inputs_are_left_alone():
    D, labels, D_new = problem()
    D_before, labels_before, new_before = D.copy(), labels.copy(), D_new.copy()
    fitted = NeighbourScores.fit(D, labels, Q)
    fitted.left_out(D)
    fitted.of(D_new)
    np.testing.assert_array_equal(D, D_before)
    np.testing.assert_array_equal(D_new, new_before)
    labels[:] = 0
    np.testing.assert_array_equal(fitted.labels, labels_before)


# Many objects


@pytest.fixture(scope="module")
def many():
    n = 2 * BLOCK + 301
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    D = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    return D, rng.integers(0, 7, n)


@pytest.mark.parametrize("size", [1, 3, 64, BLOCK - 1, BLOCK + 1])
def test_chunks_of_rows_give_the_same_bits(many, size):
    D, labels = many
    fitted = NeighbourScores.fit(D, labels, 7)
    rows = D[: BLOCK + 77] if size < BLOCK // 2 else D
    chunks = [fitted.of(rows[start : start + size]) for start in range(0, len(rows), size)]
    np.testing.assert_array_equal(np.concatenate(chunks, axis=1), fitted.of(rows))


def test_blocks_of_training_objects_leave_out_the_right_ones(many):
    D, labels = many
    fitted = NeighbourScores.fit(D, labels, 7)
    scores = fitted.left_out(D)
    for i in (0, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, len(D) - 1):
        allowed = np.arange(len(D)) != i
        expected = scores_of_row(D[i], labels, 7, fitted.floor, allowed)
        assert_same_scores(scores[:, i], expected)


def test_the_median_of_many_objects_is_that_of_evenly_spaced_ones(many):
    D, labels = many
    assert len(D) > MEDIAN_ROWS
    rows = np.linspace(0, len(D) - 1, MEDIAN_ROWS).astype(int)
    others = np.array([np.delete(D[i], i) for i in rows])
    assert NeighbourScores.fit(D, labels, 7).default == np.median(others)


def test_five_thousand_objects_take_little_time_and_memory():
    """Time is that of the process, so that others on the machine do not count."""
    n, q = 5000, 22
    rng = np.random.default_rng(0)
    D = rng.random((n, n))
    D += D.T
    labels = rng.integers(0, q, n)
    start = time.process_time()
    NeighbourScores.fit(D, labels, q).left_out(D)
    assert time.process_time() - start < 3  # it takes a fraction of a second
    tracemalloc.start()
    try:
        NeighbourScores.fit(D, labels, q).left_out(D)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * 2048 * n * 8


@pytest.mark.parametrize("similarities", [False, True])
def test_labels_are_scored_by_the_objects_with_them_and_without_them(similarities):
    D, _, new = problem()
    n, rng = len(D), np.random.default_rng(4)
    Y = rng.choice([-1, 1], size=(n, 4))
    Y[:, 2], Y[:, 3] = -1, np.where(np.arange(n) == 7, 1, -1)  # nobody, and one alone
    weights = (np.arange(n) % 5 > 0).astype(float)
    near = LabelNeighbours.fit(D, Y, weights, similarities=similarities)
    own = np.where(np.arange(len(new)) % 2, NOBODY, np.arange(len(new)))
    found = near.of(new, own)
    distances = (near.top - new).clip(0) if similarities else new
    for i, row in enumerate(distances):
        allowed = (weights > 0) & (np.arange(n) != own[i])
        for j in range(4):
            scores = scores_of_row(row, Y[:, j] > 0, 2, near.floor, allowed)
            wanted = scores[:, 1] - scores[:, 0]
            size = 1 + np.abs(scores).max()
            np.testing.assert_allclose(found[:, i, j], wanted, rtol=0, atol=20 * EPS * size)
    np.testing.assert_array_equal(found[:, :, 2], 0.0)  # where nobody has a label it says nothing
    np.testing.assert_array_equal(near.counts.sum(axis=1), np.count_nonzero(weights))
