"""How many landmarks, from which rows, at what cost; counts against evaluated pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss, pairwise
from kreinlearn.nystrom.fit import all_columns
from kreinlearn.nystrom.landmarks import (
    MapSpec,
    columns_at_a_time,
    open_sample,
    pairs_of_fit,
    pairs_of_growth,
    room_for,
    select_landmarks,
)
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests import oracles
from tests.unit.pairs.numbered import POINTS, RNG, Counted, D, K, N, unordered

SPEC = MapSpec(12, "uniform")


def rng(seed=0):
    return np.random.default_rng(seed)


def pairs_of_vectors(**session):
    return Pairs(DeltaGauss(6.0, 4.0).fit(POINTS, RNG), Rows(POINTS), Session(**session))


def counted_pairs(matrix=K, *, metric=False):
    counted = Counted(matrix)
    kernel = pairwise(counted).set_params(is_dissimilarity=metric)
    return Pairs(kernel, Rows(list(range(N))), Session()), counted.pairs


# Numbers


def test_the_size_of_the_pool():
    assert replace(SPEC, n_landmarks=20).pool_size(100) == 100
    assert replace(SPEC, n_landmarks=20).pool_size(10**6) == 8192
    assert replace(SPEC, n_landmarks=2000).pool_size(10**6) == 20_000
    assert replace(SPEC, n_landmarks=5, pool=300).pool_size(10**6) == 300


def test_the_sketch_has_as_many_columns_as_the_rank():
    assert replace(SPEC, n_landmarks=1000, rank=30).sketch == 30
    assert replace(SPEC, n_landmarks=20, rank=None).sketch == 20
    assert replace(SPEC, n_landmarks=1000, rank=None).sketch == 200


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, 12),  # uniform landmarks need no other rows
        ({"scheme": "greedy_kmeans++"}, 500),
        ({"scheme": None, "given": np.arange(12)}, 0),
        ({"scheme": None, "given": np.arange(12), "core": "ls"}, 500),
        ({"core": "ls"}, 500),
        ({"tol": 0.1}, 500),
        ({"wants_pool": True}, 500),
    ],
)
def test_the_pool_is_as_large_as_it_is_needed(changes, size):
    pool = replace(SPEC, pool=500, **changes).pool_rows(10_000, 7)
    assert len(pool) == len(np.unique(pool)) == size
    np.testing.assert_array_equal(pool, np.sort(pool))


def test_nothing_is_drawn_if_every_object_is_a_landmark():
    generator = rng()
    spec = replace(SPEC, n_landmarks=100)
    np.testing.assert_array_equal(spec.pool_rows(100, spec.salt(100, generator)), np.arange(100))
    assert generator.integers(10**9) == rng().integers(10**9)


def test_rows_that_are_not_eligible_are_not_in_the_pool():
    eligible = np.arange(0, 10_000, 3)
    for spec in (replace(SPEC, eligible=eligible, pool=500), replace(SPEC, eligible=eligible)):
        assert np.isin(spec.pool_rows(10_000, 7), eligible).all()


# Samples


def test_every_object_a_landmark():
    pairs, counts = counted_pairs()
    spec = replace(SPEC, n_landmarks=N)
    sample = select_landmarks(pairs, open_sample(pairs, spec, rng()), spec, rng())
    assert set(sample.landmarks) == set(range(N))
    assert set(counts.values()) == {1}
    assert len(counts) == N * (N + 1) // 2
    np.testing.assert_array_equal(sample.C, K[:, sample.landmarks])


def test_landmarks_that_are_given_by_number():
    pairs, counts = counted_pairs()
    numbers = np.array([7, 3, 41])
    spec = MapSpec(3, given=numbers, pool=5)
    sample = select_landmarks(pairs, open_sample(pairs, spec, rng()), spec, rng())
    np.testing.assert_array_equal(sample.landmarks, numbers)
    np.testing.assert_array_equal(sample.rows, np.sort(numbers))  # no pool is needed
    assert set(counts) == unordered(numbers, numbers)


def test_landmarks_that_are_given_as_objects():
    outside = RNG.normal(size=(4, 3))
    pairs = pairs_of_vectors()
    pairs.rows = pairs.rows.with_outside(outside)
    spec = MapSpec(4, given=outside, by_number=False, core="ls", pool=20)
    sample = open_sample(pairs, spec, rng())
    np.testing.assert_array_equal(sample.landmarks, np.arange(-4, 0))
    assert len(sample.rows) == 44  # ten rows of the pool for each landmark
    objects = np.concatenate([outside, POINTS[sample.rows[4:]]])
    expected = oracles.delta_gauss(objects, outside, 6.0, 4.0)
    np.testing.assert_allclose(sample.C, expected, rtol=0, atol=1e-13)


def test_given_landmarks_are_the_reference_set_of_a_dissimilarity():
    pairs, _ = counted_pairs(D, metric=True)
    spec = MapSpec(3, given=np.array([7, 3, 41]))
    assert open_sample(pairs, spec, rng()).transform.n_reference == 3


@pytest.mark.parametrize("scheme", ["leverage", "kmeans++"])
def test_schemes_of_all_rows_stream_vectors_and_sample_objects(scheme):
    spec = MapSpec(4, scheme, pool=20, rank=2)
    sample = open_sample(pairs_of_vectors(), spec, rng())
    assert sample.streams
    assert len(sample.rows) == 40  # ten for each landmark
    sample = open_sample(counted_pairs()[0], spec, rng())
    assert not sample.streams
    assert (len(sample.rows), len(sample.pool)) == (N, 40)


# What a fit costs


def counted_fit(spec, *, metric=False):
    """How many pairs are evaluated until all values to the landmarks are known."""
    pairs, counts = counted_pairs(D if metric else K, metric=metric)
    sample = select_landmarks(pairs, open_sample(pairs, spec, rng()), spec, rng())
    all_columns(pairs, sample, "svd")
    assert set(counts.values()) == {1}
    return sum(counts.values())


@pytest.mark.parametrize("metric", [False, True])
@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++"])
@pytest.mark.parametrize("m", [3, 10, N])
def test_the_pairs_of_a_fit_are_those_that_are_counted(scheme, m, metric):
    spec = MapSpec(m, scheme)
    pairs, _ = counted_pairs(D if metric else K, metric=metric)
    expected, found = pairs_of_fit(pairs, spec), counted_fit(spec, metric=metric)
    slack = 0 if scheme == "uniform" or m == N or metric else m  # k(z, z) of columns are known
    assert found <= expected <= found + slack


def test_the_pairs_of_given_landmarks():
    spec = MapSpec(3, given=np.array([7, 3, 41]))
    pairs, _ = counted_pairs()
    assert pairs_of_fit(pairs, spec) == counted_fit(spec) == 3 * (N - 3) + 6
    outside = replace(spec, by_number=False)
    assert pairs_of_fit(pairs, outside) == 3 * N + 6


def test_columns_come_in_steps():
    assert columns_at_a_time(MapSpec(100, "uniform")) == [100]
    assert columns_at_a_time(MapSpec(100, "leverage", rank=30)) == [30, 100]
    assert columns_at_a_time(MapSpec(100, "greedy_kmeans++")) == [25, 25, 50]
    assert columns_at_a_time(MapSpec(100, "medoids+greedy")) == [50, 50]
    assert columns_at_a_time(MapSpec(100, given=np.arange(100))) == [100]
    pairs = Pairs(pairwise(max), Rows([]), Session())
    assert pairs_of_growth(pairs, 50, [4, 3]) == 10 + 4 * 46 + 6 + 3 * 43


# Memory


def test_a_sample_that_does_not_fit_is_refused_before_anything_is_evaluated():
    spec = replace(SPEC, n_landmarks=20)
    needed = room_for(N, spec)
    assert needed == 3 * 8 * N * 20
    open_sample(pairs_of_vectors(budget=needed), spec, rng())
    message = r"20 landmarks and the rows to choose them from needs .* use fewer landmarks"
    with pytest.raises(MemoryError, match=message):
        open_sample(pairs_of_vectors(budget=needed - 1), spec, rng())


@pytest.mark.parametrize("scheme", ["leverage", "kmeans++"])
def test_a_sketch_of_all_rows_that_does_not_fit_is_refused(scheme):
    n = 100_000
    X = np.zeros((n, 2))
    spec = MapSpec(2, scheme, pool=20)
    pairs = Pairs(DeltaGauss(6.0, 4.0), Rows(X), Session(budget=8 * n - 1))
    message = rf'landmarks="{scheme.replace("+", "[+]")}", which looks at all {n} rows, needs'
    with pytest.raises(MemoryError, match=message):
        open_sample(pairs, spec, rng())
