"""How many landmarks, from which rows, at what cost; counts against evaluated pairs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kreinlearn.kernels import DeltaGauss, Precomputed, pairwise
from kreinlearn.nystrom.fit import all_columns
from kreinlearn.nystrom.landmarks import (
    Landmarks,
    MapSpec,
    are_row_numbers,
    checked_row_numbers,
    columns_at_a_time,
    landmark_count,
    map_spec,
    open_sample,
    pairs_of_fit,
    pairs_of_growth,
    room_for,
    scheme_for,
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
    assert replace(SPEC, n_landmarks=20).pool_size(10**6) == 4096
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
        ({"scheme": "greedy_kmeans++", "n_landmarks": 61}, 610),
        ({"scheme": "medoids+greedy"}, 500),
        ({"scheme": "medoids+greedy", "n_landmarks": 121}, 610),  # ten for each of the first half
        ({"scheme": "medoids+greedy", "n_landmarks": 121, "wants_pool": True}, 1210),
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


@pytest.mark.parametrize("scheme", ["leverage", "kmeans++", "greedy_kmeans++", "medoids"])
def test_later_draws_do_not_depend_on_the_number_of_landmarks(scheme):
    pairs, after = pairs_of_vectors(), []
    for m in (3, 10):
        spec, source = MapSpec(m, scheme), rng()
        select_landmarks(pairs, open_sample(pairs, spec, source), spec, source)
        after.append(source.random())
    assert after[0] == after[1] != rng().random()


def test_no_choice_is_drawn_if_every_object_is_a_landmark():
    pairs, spec, source = pairs_of_vectors(), MapSpec(N, "kmeans++"), rng()
    select_landmarks(pairs, open_sample(pairs, spec, source), spec, source)
    assert source.random() == rng().random()


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


# The parameter ``landmarks``


def first_rows(rows, m, rng):
    return range(m)


def test_what_the_parameter_may_be():
    whole = Landmarks(7, "uniform", rank=3)
    assert Landmarks.of(whole) is whole
    assert Landmarks.of("leverage") == Landmarks("auto", "leverage")
    assert Landmarks.of(first_rows) == Landmarks("auto", first_rows)
    assert Landmarks.of(20) == Landmarks(20)
    assert Landmarks.of(None) == Landmarks(None)
    for chosen in (20, 0.5, np.float32(0.5), "auto", None):
        assert Landmarks(chosen).given is None
    assert Landmarks([1, 2]).given == [1, 2]


def test_row_numbers_are_integers_in_one_dimension():
    for numbers in ([0, 2], (0, 2), np.array([0, 2]), np.array([1], "uint8"), [np.int64(3)]):
        assert are_row_numbers(numbers)
    objects = [None, "ab", ["a", "b"], [0, 1.5], [True, False], [0, "b"], pd.DataFrame({"x": [1]})]
    for given in (*objects, np.eye(2, dtype=int), np.array([0.0, 1.0]), np.array([True, False])):
        assert not are_row_numbers(given)


def test_row_numbers_are_distinct_and_exist():
    np.testing.assert_array_equal(checked_row_numbers([4, 0], 5), [4, 0])
    for wrong, given in (
        ([0, 5], "0..5"),
        ([-1, 3], "-1..3"),
        ([2, 2], "2..2 with 1"),
        ([], "none"),
    ):
        with pytest.raises(ValueError, match=rf"row numbers in 0\.\.4, got {re.escape(given)}"):
            checked_row_numbers(wrong, 5)


def test_how_many_landmarks():
    assert landmark_count(None, 50, 10) == 50
    assert landmark_count("auto", 50, 10) == 10
    assert landmark_count("auto", 5, 10) == 5
    assert landmark_count(0.5, 50, 10) == landmark_count(np.float32(0.5), 50, 10) == 25
    assert landmark_count(0.001, 50, 10) == 1
    assert landmark_count(1.0, 50, 10) == landmark_count(50, 50, 10) == 50
    assert landmark_count(np.int64(7), 50, 10) == 7
    with pytest.warns(UserWarning, match="51 landmarks exceed n_samples=50; all 50 objects"):
        assert landmark_count(51, 50, 10) == 50


def test_schemes_for_vectors_and_for_others():
    assert scheme_for("auto", True) == "medoids+greedy"
    assert scheme_for("auto", False) == "greedy_kmeans++"
    assert scheme_for("leverage", False) == "leverage"
    assert scheme_for("medoids", True) == "medoids"
    assert scheme_for(first_rows, False) is first_rows
    for scheme in ("medoids", "medoids+greedy"):
        with pytest.raises(ValueError, match="needs dense vectors"):
            scheme_for(scheme, False)


def spec_of(pairs, wanted, **params):
    return map_spec(
        pairs, Landmarks.of(wanted), **{"default": 9, "core": "ls", "rank": None} | params
    )


def test_the_parameter_as_numbers():
    vectors, (objects, _) = pairs_of_vectors(), counted_pairs()
    auto = spec_of(vectors, "auto", rank=4)
    assert (auto.n_landmarks, auto.scheme, auto.rank, auto.core) == (9, "medoids+greedy", 4, "ls")
    assert spec_of(objects, "auto").scheme == "greedy_kmeans++"
    matrix = Pairs(Precomputed().fit(K, RNG), Rows(K), Session())
    assert spec_of(matrix, "auto").scheme == "greedy_kmeans++"
    numbers = spec_of(vectors, [3, 1, 2])
    assert (numbers.n_landmarks, numbers.scheme, numbers.by_number) == (3, None, True)
    np.testing.assert_array_equal(numbers.given, [3, 1, 2])
    outside = Pairs(vectors.kernel, Rows(POINTS, POINTS[:5] + 1), Session())
    given = spec_of(outside, POINTS[:5] + 1)
    assert (given.n_landmarks, given.scheme, given.by_number) == (5, None, False)
    np.testing.assert_array_equal(given.given, POINTS[:5] + 1)
    assert spec_of(vectors, Landmarks(4, pool=77)).pool == 77


def test_a_rank_above_the_number_of_landmarks_is_refused():
    pairs = pairs_of_vectors()
    assert spec_of(pairs, 6, rank=6).rank == 6
    with pytest.raises(ValueError, match=r"rank=7 exceeds .* 6 .*; lower rank or use more"):
        spec_of(pairs, 6, rank=7)
    with pytest.raises(ValueError, match=r"k=3 exceeds .* 2 .*; lower k or give more"):
        spec_of(pairs, [0, 1], rank=3, name="k")


def test_a_function_that_has_nothing_to_choose_is_said_not_to_be_called():
    pairs = pairs_of_vectors()
    with pytest.warns(UserWarning, match=f"all {N} objects are landmarks, so that the function"):
        assert spec_of(pairs, first_rows, default=N).n_landmarks == N
    assert spec_of(pairs, first_rows).n_landmarks == 9
    assert spec_of(pairs, Landmarks(None, first_rows)).n_landmarks == N
    assert spec_of(pairs, "uniform", default=N).n_landmarks == N


@pytest.mark.parametrize(("scheme", "of_a_row"), [("leverage", 16), ("kmeans++", 28 + 4 * 3)])
def test_vectors_are_streamed_if_a_score_or_single_precision_features_fit(scheme, of_a_row):
    many = np.random.default_rng(0).normal(size=(3000, 2))
    spec = MapSpec(3, scheme, pool=30)

    def streams(budget):
        pairs = Pairs(DeltaGauss(6.0, 4.0).fit(many, RNG), Rows(many), Session(budget=budget))
        return open_sample(pairs, spec, rng()).streams

    assert streams(of_a_row * 3000)
    with pytest.raises(MemoryError, match="which looks at all 3000 rows"):
        streams(of_a_row * 3000 - 1)
