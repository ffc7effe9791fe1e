"""Samples are values: what is made of one leaves it as it was; numbers against whole matrices."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from kreinlearn.kernels.dissimilarity import TRANSFORMS
from kreinlearn.pairs.pairs import KnownPairs, Sample
from tests.unit.pairs.numbered import (
    ROWS,
    D,
    K,
    centred,
    counted_pairs,
    exponential,
)

REFERENCE = ROWS[[1, 8, 15, 22]]
LANDMARKS = ROWS[[20, 8, 2, 17, 5]]
TESTED = ROWS[[9, 25, 8, 14, 20]]


def of_distances(landmarks=LANDMARKS, reference=REFERENCE):
    """A sample whose reference set is not all among its landmarks."""
    pairs, counts = counted_pairs(D, metric=True)
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), reference))
    return pairs, pairs.grown(sample.with_landmarks(landmarks[:0]), landmarks), counts


def contents(pairs, sample):
    """All that follows from the transformation; the tested pairs are known already or never."""
    parts = (sample.C, sample.K_ZZ, pairs.similarities(sample, TESTED), pairs.diagonal(sample))
    return [*parts, sample.offsets, np.array(sample.unit), pairs.evaluator(sample)([0, 55, 8])]


def test_a_sample_cannot_be_changed():
    _, sample, _ = of_distances()
    for name in ("rows", "raw", "landmarks", "transform"):
        with pytest.raises(FrozenInstanceError):
            setattr(sample, name, None)


def test_an_empty_sample_has_rows_and_no_columns():
    sample = Sample.empty(ROWS)
    assert sample.C.shape == (len(ROWS), 0)
    assert sample.K_ZZ.shape == (0, 0)
    assert sample.unit == 1.0
    np.testing.assert_array_equal(sample.pool, ROWS)
    np.testing.assert_array_equal(Sample.empty(ROWS, ROWS[:5]).pool, ROWS[:5])


# Transformations


@pytest.mark.parametrize("name", ["exp", "local1", "local3", "rank3"])
def test_another_transformation_of_the_same_distances(name):
    pairs, sample, counts = of_distances()
    before = contents(pairs, sample)
    evaluated = dict(counts)
    other = sample.using(name)
    assert other.raw is sample.raw
    Z = other.landmarks
    np.testing.assert_allclose(other.C, exponential(name, ROWS, Z, REFERENCE), rtol=1e-12)
    np.testing.assert_allclose(other.K_ZZ, exponential(name, Z, Z, REFERENCE), rtol=1e-12)
    np.testing.assert_array_equal(other.K_ZZ, other.K_ZZ.T)
    among = exponential(name, TESTED, TESTED, REFERENCE)
    np.testing.assert_allclose(pairs.similarities(other, TESTED), among, rtol=1e-12)
    np.testing.assert_array_equal(pairs.diagonal(other), np.ones(len(ROWS)))
    assert dict(counts) == evaluated
    new = np.array([0, 55, 8, ROWS[1], ROWS[20]])
    np.testing.assert_allclose(
        pairs.evaluator(other)(list(new)), exponential(name, new, Z, REFERENCE), rtol=1e-12
    )
    for got, expected in zip(contents(pairs, sample), before, strict=True):
        np.testing.assert_array_equal(got, expected)  # the first is what it was


def test_transformations_in_any_order_and_back_are_the_same_bit_for_bit():
    pairs, sample, _ = of_distances()
    first = {name: contents(pairs, sample.using(name)) for name in TRANSFORMS}
    for name in (*reversed(TRANSFORMS), "local1", "local1", "squared"):
        sample = sample.using(name)
        for got, expected in zip(contents(pairs, sample), first[name], strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["exp", "local3", "rank3"])
def test_a_transformation_stays_when_the_sample_grows(name):
    """More landmarks, others, more rows: always by the first reference set."""
    pairs, sample, counts = of_distances()
    sample = pairs.with_reference(sample.using(name))
    sample = pairs.grown(sample, ROWS[[11, 0]])
    expected = exponential(name, ROWS, sample.landmarks, REFERENCE)
    np.testing.assert_allclose(sample.C, expected, rtol=1e-12)
    sample = pairs.grown(sample.with_landmarks(ROWS[:0]), ROWS[[3, 11, 15]])
    added = np.setdiff1d(np.arange(50), ROWS)[:4]
    sample = sample.with_rows(added, D[np.ix_(added, sample.columns[sample.used])])
    expected = exponential(name, sample.rows, sample.landmarks, REFERENCE)
    np.testing.assert_allclose(sample.C, expected, rtol=1e-12)
    np.testing.assert_allclose(sample.using(name).C, expected, rtol=1e-12)
    assert set(counts.values()) == {1}


def test_a_similarity_may_refer_to_all_columns_instead():
    pairs, sample, counts = of_distances()
    evaluated = dict(counts)
    other = sample.referring_to_all()
    everything = np.concatenate([REFERENCE, np.setdiff1d(sample.columns, REFERENCE)])
    assert set(everything) == set(sample.columns)
    expected = centred(ROWS, other.landmarks, sample.columns)
    np.testing.assert_allclose(other.C, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        sample.C, centred(ROWS, sample.landmarks, REFERENCE), rtol=0, atol=1e-13
    )
    assert dict(counts) == evaluated
    np.testing.assert_allclose(
        pairs.evaluator(other)([55]), centred([55], other.landmarks, sample.columns), atol=1e-13
    )


# Rows


@pytest.mark.parametrize("metric", [False, True])
def test_rows_that_come_later_are_in_their_place(metric):
    matrix = D if metric else K
    pairs, counts = counted_pairs(matrix, metric=metric)
    landmarks = ROWS[[4, 2, 25]]
    before = pairs.with_reference(pairs.grown(pairs.sample(ROWS), landmarks))
    pairs.diagonal(before)
    added = np.setdiff1d(np.arange(50), ROWS)[[11, 3, 0]]  # not sorted
    evaluated = dict(counts)
    sample = before.with_rows(added, matrix[np.ix_(added, landmarks)])
    assert dict(counts) == evaluated
    rows = np.union1d(ROWS, added)
    np.testing.assert_array_equal(sample.rows, rows)
    whole = centred(rows, landmarks, landmarks) if metric else K[np.ix_(rows, landmarks)]
    own = np.diagonal(centred(rows, rows, landmarks)) if metric else np.diagonal(K)[rows]
    np.testing.assert_allclose(sample.C, whole, rtol=0, atol=1e-13)
    np.testing.assert_allclose(pairs.diagonal(sample), own, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(sample.positions(added), np.searchsorted(rows, added))
    np.testing.assert_array_equal(before.rows, ROWS)
    np.testing.assert_array_equal(sample.pool, before.pool)


def test_rows_that_come_later_need_values_of_used_columns_alone():
    """Landmarks and the reference set; other columns are dropped."""
    pairs, sample, _ = of_distances()
    sample = pairs.grown(sample, ROWS[[0, 29]])
    sample = sample.with_landmarks(ROWS[[0, 8]])
    used = sample.columns[sample.used]
    assert set(used) == {*REFERENCE, *ROWS[[0, 8]]}
    added = np.setdiff1d(np.arange(50), ROWS)[:3]
    after = sample.with_rows(added, D[np.ix_(added, used)])
    np.testing.assert_array_equal(after.columns, used)
    assert after.used.all()
    expected = centred(after.rows, after.landmarks, REFERENCE)
    np.testing.assert_allclose(after.C, expected, rtol=0, atol=1e-13)


def test_fewer_rows():
    pairs, _ = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    fewer = sample.restricted(np.union1d(ROWS[::4], ROWS[[4, 2]]))
    np.testing.assert_array_equal(fewer.C, K[np.ix_(fewer.rows, ROWS[[4, 2]])])
    np.testing.assert_array_equal(fewer.K_ZZ, sample.K_ZZ)
    assert len(sample.rows) == len(ROWS)


def test_rows_below_zero_are_outside():
    sample = Sample.empty(np.array([-2, -1, 3, 8]))
    np.testing.assert_array_equal(sample.inside, [2, 3])
    np.testing.assert_array_equal(sample.positions(np.array([-1, 8])), [1, 3])


def test_landmarks_come_in_the_order_of_the_columns():
    pairs, _ = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[20, 3, 7]])
    np.testing.assert_array_equal(sample.with_landmarks(ROWS[[7, 20]]).landmarks, ROWS[[20, 7]])


# Kernels of any size


@pytest.mark.parametrize("exponent", [-1000, -300, -101, -100, -1, 0, 99, 101, 300, 1000])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_unit_keeps_squares_in_range(exponent, sign):
    pairs, _ = counted_pairs(sign * np.full((50, 50), 2.0**exponent))
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    unit = sample.unit
    mantissa, power = np.frexp(unit)
    assert mantissa == 0.5
    assert (power - 1) % 2 == 0  # a power of four
    assert (unit == 1.0) == (-101 <= exponent <= 99)  # frexp gives exponent + 1
    assert 0.25 <= 2.0**exponent / unit <= 4.0 or unit == 1.0
    squares = (sample.C / unit) ** 2
    assert np.isfinite(squares).all()
    assert (squares > 0).all()


def test_the_unit_of_a_zero_kernel_is_one():
    pairs, _ = counted_pairs(np.zeros((50, 50)))
    assert pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]]).unit == 1.0


# Known pairs


def test_known_pairs_give_back_what_was_put_in():
    known = KnownPairs()
    for numbers in (np.array([5, 1, 9, 3]), np.array([9, 20, 1])):
        known.add(numbers, K[np.ix_(numbers, numbers)])
    assert known.memberships(np.array([1, 5, 20, 7])).tolist() == [3, 1, 2, 0]
    np.testing.assert_array_equal(
        known.between(np.array([1, 5]), np.array([9, 3]), 1), K[np.ix_([1, 5], [9, 3])]
    )
    np.testing.assert_array_equal(
        known.between(np.array([20]), np.array([9, 1]), 2), K[np.ix_([20], [9, 1])]
    )


def test_known_self_similarities():
    known = KnownPairs()
    known.own.update({3: 0.5, 7: -2.0})
    np.testing.assert_array_equal(known.self_similarities(np.array([7, 4, 3])), [-2.0, np.nan, 0.5])
