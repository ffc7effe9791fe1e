"""More landmarks keep those that fewer would be, and each scheme still draws as it should."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from kreinlearn import KreinRidge, Landmarks, Resources
from kreinlearn.kernels import DeltaGauss, resolve
from kreinlearn.kernels.base import ObjectKernel
from kreinlearn.nystrom.core import KEYS_AT_ONCE, first_by_key, row_keys
from kreinlearn.nystrom.landmarks import MapSpec, columns_at_a_time, open_sample, select_landmarks
from kreinlearn.nystrom.schemes import START
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.sums.parallel import serial_blas

N = 2800  # more than ten for each of 256 landmarks, and fewer than for 350
POINTS = np.random.default_rng(0).normal(size=(N, 3)).round(6)
WORDS = ["".join("abcd"[i] for i in np.random.default_rng(s).integers(4, size=9)) for s in range(N)]
FEWER_AND_MORE = {
    "uniform": (7, 20, 350),
    "leverage": (200, 210, 350),
    "kmeans++": (200, 210, 350),
    "greedy_kmeans++": (4 * START, 4 * START + 1, 270, 350),
}


def chosen(scheme, m, seed=0, kernel=None, objects=POINTS, **spec):
    """The landmarks, and the next random number of the source from which they were drawn."""
    kernel = DeltaGauss(6.0, 4.0) if kernel is None else kernel
    kernel = kernel.fit(objects, np.random.default_rng(0))
    pairs, rng = Pairs(kernel, Rows(objects), Session()), np.random.default_rng(seed)
    of_map = MapSpec(m, scheme, **spec)
    with serial_blas():
        sample = select_landmarks(pairs, open_sample(pairs, of_map, rng), of_map, rng)
    return set(sample.landmarks.tolist()), rng.random()


# Schemes


@pytest.mark.parametrize("pool", [400, 8192])  # of some rows, of which there are more each time
@pytest.mark.parametrize("scheme", FEWER_AND_MORE)
def test_fewer_landmarks_are_among_more(scheme, pool):
    numbers = FEWER_AND_MORE[scheme]
    found, following = zip(*(chosen(scheme, m, pool=pool) for m in numbers), strict=True)
    assert tuple(map(len, found)) == numbers
    assert all(fewer < more for fewer, more in pairwise(found))
    assert len(set(following)) == 1  # folds do not depend on the number of landmarks either


@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++"])
def test_so_are_those_of_distances(scheme):
    kernel = resolve("levenshtein")
    few, _ = chosen(scheme, 4 * START, kernel=kernel, objects=WORDS, pool=300)
    many, _ = chosen(scheme, 5 * START, kernel=kernel, objects=WORDS, pool=300)
    assert few < many


@pytest.mark.parametrize("scheme", FEWER_AND_MORE)
def test_another_seed_chooses_others(scheme):
    first, second = (chosen(scheme, 256, seed=s)[0] for s in (0, 1))
    assert len(first & second) < 128  # of 256 among 2,800 rows, 23 are expected by chance


def test_few_landmarks_begin_with_a_quarter_of_them():
    spec = MapSpec(100, "greedy_kmeans++")
    assert columns_at_a_time(spec) == [25, 25, 50]
    assert columns_at_a_time(replace(spec, n_landmarks=256)) == [64, 64, 128]
    assert columns_at_a_time(replace(spec, n_landmarks=1000)) == [64, 64, 128, 256, 488]


def test_only_rows_of_some_weight_are_chosen():
    eligible = np.arange(1, N, 3)
    few, _ = chosen("uniform", 20, eligible=eligible)
    many, _ = chosen("uniform", 50, eligible=eligible)
    assert few < many <= set(eligible.tolist())


# The order of rows


def test_keys_are_those_of_their_definition():
    """SplitMix64 in whole numbers of Python."""

    def key(number, salt):
        z = (number * 0x9E3779B97F4A7C15 + salt) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    numbers = np.array([0, 1, 2, 999, 10**7])
    for salt in (0, 5, 2**63 - 1):
        assert row_keys(numbers, salt).tolist() == [key(i, salt) for i in numbers.tolist()]


def ordered(numbers, salt):
    return numbers[np.argsort(row_keys(numbers, salt))]


def test_many_rows_are_ordered_block_by_block():
    numbers = np.arange(2 * KEYS_AT_ONCE + 17)
    whole = ordered(numbers, 3)
    np.testing.assert_array_equal(first_by_key(numbers, 1000, 3), whole[:1000])
    np.testing.assert_array_equal(first_by_key(len(numbers), 1000, 3), whole[:1000])
    np.testing.assert_array_equal(
        first_by_key(numbers[::-7], 90, 3), ordered(numbers[::-7], 3)[:90]
    )
    assert len(first_by_key(len(numbers), 0, 3)) == 0
    assert len(first_by_key(numbers[:5], 9, 3)) == 5
    assert len(first_by_key(numbers[:0], 9, 3)) == 0


def test_every_row_and_every_pair_is_drawn_equally_often():
    """Counts of draws lie within five standard deviations of those of a binomial law."""
    n, m, repeats = 20, 5, 4000
    rng, together = np.random.default_rng(0), np.zeros((n, n))
    first = np.zeros(n)
    for _ in range(repeats):
        drawn = first_by_key(np.arange(n), m, int(rng.integers(2**63)))
        together[np.ix_(drawn, drawn)] += 1
        first[drawn[0]] += 1
    assert_binomial(np.diag(together), repeats, m / n)
    assert_binomial(together[np.triu_indices(n, 1)], repeats, m * (m - 1) / n / (n - 1))
    assert_binomial(first, repeats, 1 / n)


def assert_binomial(counts, repeats, share):
    deviation = np.sqrt(repeats * share * (1 - share))
    assert (np.abs(counts - repeats * share) < 5 * deviation).all()


# What the landmarks of an estimator, a store and a cluster make of it

MET: Counter[tuple[float, float]] = Counter()  # pairs evaluated, either order


class Met(ObjectKernel):
    """sqrt |a - b| of numbers, which remembers what it was asked."""

    is_dissimilarity = True

    def packed(self, X, first=0, n=0, like=None):
        return np.array(X, dtype=float)

    def values(self, A, Z):
        MET.update((min(a, z), max(a, z)) for a, z in product(A.tolist(), Z.tolist()))
        return np.sqrt(np.abs(A[:, None] - Z))


@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++"])
def test_a_store_grows_by_the_pairs_of_new_landmarks(scheme, tmp_path):
    pytest.importorskip("zarr")
    n, few, many = 700, 4 * START, 5 * START
    X = np.random.default_rng(1).permutation(9 * n)[:n].astype(float).tolist()
    found = []
    for m in (few, many):
        MET.clear()
        model = KreinRidge(
            Met(), landmarks=Landmarks(m, scheme), similarity="squared", lambda_plus=1.0,
            lambda_minus=1.0, resources=Resources(store=tmp_path / "values"), random_state=0,
        )  # fmt: skip
        found.append(model.fit(X, np.arange(float(n))).landmark_indices_)
    assert set(found[0]) < set(found[1])
    new = {X[i] for i in set(found[1]) - set(found[0])}
    asked = {pair for pair in MET if pair[0] != pair[1]}
    assert all(new & set(pair) for pair in asked)
    old = {X[i] for i in found[0]}
    wanted = len(new) * (n - len(old) - len(new)) + len(new) * (len(new) - 1) // 2
    assert len(asked) == wanted  # pairs of old and new landmarks are there already


@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++"])
def test_rows_on_workers_have_the_same_landmarks(scheme):
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(2).normal(size=(9000, 2))
    before = set()
    for m in (4 * START, 5 * START):
        model = KreinRidge(
            DeltaGauss(6.0, 4.0), landmarks=Landmarks(m, scheme), lambda_plus=1.0,
            lambda_minus=1.0, random_state=0,
        )  # fmt: skip
        here = model.fit(X, X[:, 0]).landmark_indices_
        x = da.from_array(X, chunks=(2500, 2))
        there = model.fit(x, x[:, 0]).landmark_indices_
        np.testing.assert_array_equal(there, here)
        assert before < set(here.tolist())
        before = set(here.tolist())
