"""Ranks of neighbours: profiles against counting, and the similarities that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

import kreinlearn
from kreinlearn import KreinRidgeClassifier, SpectrumSVC, dissimilarity, pairwise, similarity_of
from kreinlearn.kernels.dissimilarity import (
    TRANSFORMS,
    RankScaling,
    profile_ranks,
    rank_in,
    rank_profiles,
)
from tests import oracles

RNG = np.random.default_rng(31)
N = 200
POINTS = RNG.normal(size=(N, 3))
D = np.sqrt(np.abs(POINTS[:, None] - POINTS)).sum(axis=-1) ** 2  # not Euclidean
ZERO = 1e-6
RANKED = ("rank1", "rank3", "rank10", "rank_inverse3")
EPS = float(np.finfo(np.float64).eps)
ROUNDINGS = 16 * EPS  # of an interpolated rank: the points are the same bits


def counted(D_xz: Any, D_xr: Any) -> Any:
    """1 plus how many reference objects, other than x itself, are nearer to x than z."""
    nearer = (D_xr[:, None, :] < D_xz[:, :, None]) & (D_xr[:, None, :] > 0)
    return 1 + nearer.sum(axis=2)


def similarity(name: str, u: Any) -> Any:
    """Of the geometric mean u of two ranks."""
    k = {"rank1": 1, "rank3": 3, "rank10": 10, "rank_inverse3": 3}[name]
    return 1 / (1 + u / k) if "inverse" in name else np.exp(-u / k)


def made(name: str, D: Any, R: Any) -> tuple[Any, Any]:
    """The similarities among all objects, by the reference objects R, and their profiles."""
    transform = TRANSFORMS[name](D[np.ix_(R, R)])
    a = transform.offsets(D[:, R])
    return transform.similarity(D, a, a), a


# Profiles


def test_the_ranks_of_a_profile() -> None:
    exact = list(range(1, 17))
    assert profile_ranks(1).tolist() == [1]
    assert profile_ranks(2).tolist() == [1, 2]
    assert profile_ranks(16).tolist() == exact
    assert profile_ranks(17).tolist() == [*exact, 17]
    assert profile_ranks(70).tolist() == [*exact, 20, 24, 28, 32, 40, 48, 56, 64, 70]
    for n in (100, 5000, 10**6):
        ranks = profile_ranks(n)
        assert ranks[-1] == n
        assert (np.diff(ranks) > 0).all()
        assert (ranks[16:] <= 1.25 * ranks[15:-1]).all()
    assert len(profile_ranks(5000)) < 50


def test_ranks_of_reference_objects_are_counted() -> None:
    """All of them up to 16, and beyond that those of the profile; the others lie in between."""
    profiles = rank_profiles(D, ZERO)
    true = counted(D, D)
    listed = set(profile_ranks(N).tolist())
    for i in range(N):
        others = np.flatnonzero(np.arange(N) != i)
        got, expected = rank_in(profiles[i], D[i, others]), true[i, others]
        exact = np.isin(expected, list(listed))
        assert exact.sum() >= 16
        assert_array_equal(got[exact], expected[exact])
        step = np.diff(profile_ranks(N)).max()
        assert (np.abs(got - expected) < step).all()


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 40, N])
def test_ranks_at_any_distance(n: int) -> None:
    """Of objects inside and outside the reference set, at distances near and far."""
    profiles = rank_profiles(D[:, :n], ZERO)
    for i in (0, n - 1, 60, N - 1):
        steps = np.sort(D[i, :n])
        d = np.concatenate([D[i], steps * (1 + 1e-4), [1e-12, 1e-3, 1e3], RNG.uniform(0, 30, 40)])
        d = d[d > ZERO]
        expected = [oracles.rank(one, D[i, :n], ZERO) for one in d]
        assert_allclose(rank_in(profiles[i], d), expected, rtol=ROUNDINGS)


def test_near_far_and_in_a_tie() -> None:
    """Distances 0 (itself), 1, 2, 2, 2, 5."""
    (profile,) = rank_profiles(np.array([[2.0, 0.0, 5.0, 2.0, 1.0, 2.0]]), ZERO)
    d = np.array([0.5, 1.0, 1.125, 1.5, 2.0, 2.375, 3.0, 5.0, 11.0, 1e9])
    assert_array_equal(rank_in(profile, d), [1, 1, 2, 2, 2, 5, 5, 5, 6, 6])
    halfway = rank_in(profile, np.array([1.0625, 2.1875]))
    assert_allclose(halfway, [1.5, 3.5], rtol=0, atol=16 * 6 * EPS)


def test_rounding_does_not_break_ties() -> None:
    """Equal distances that are computed in different ways have one rank, not three."""
    d = np.array([[0.0, 1.0, 2.0, 2.0 + 4 * EPS, 2.0 - 2 * EPS, 3.0]])
    (profile,) = rank_profiles(d, ZERO)
    assert_allclose(rank_in(profile, d[0, 2:5]), 2.0, rtol=0, atol=8 * 3 * 6 * EPS)
    assert rank_in(profile, np.array([3.0])) == 5


def test_copies_are_counted_and_the_object_itself_is_not() -> None:
    profiles = rank_profiles(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.5, 1.0, 2.0]]), ZERO)
    ranks = [rank_in(profile, np.array([1.0, 2.0, 9.0])).tolist() for profile in profiles]
    assert ranks == [[1, 2, 3], [2, 3, 3], [2, 3, 4]]


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 9)),
    arrays(np.float64, 30, elements=st.floats(0, 30)),
)
def test_ranks_rise_with_the_distance(row: Any, d: Any) -> None:
    (profile,) = rank_profiles(row[None], ZERO)
    m = len(row) - (row.min() == 0)
    ranks = rank_in(profile, np.sort(d))
    assert (np.diff(ranks) >= 0).all()
    assert ranks.min() >= 1
    assert ranks.max() <= m + 1


# Similarities


@pytest.mark.parametrize("name", RANKED)
def test_similarities_are_those_of_counted_ranks(name: str) -> None:
    """Exact for 17 reference objects, all of whose ranks are in a profile."""
    R = np.arange(17)
    inside = D[:17, :17]
    K, _ = made(name, inside, R)
    u = np.sqrt(counted(inside, inside) * counted(inside, inside).T)
    np.fill_diagonal(u, 0)
    assert_allclose(K, similarity(name, u), rtol=40 * EPS)


@pytest.mark.parametrize("name", RANKED)
def test_similarities_are_near_those_of_counted_ranks(name: str) -> None:
    """Ranks above 16 are within a quarter, and rank_x(z) and rank_z(x) may err to the same side."""
    K, _ = made(name, D, np.arange(N))
    true = counted(D, D)
    u = np.sqrt(true * true.T)
    np.fill_diagonal(u, 0)
    assert_array_equal(K, K.T)
    assert_array_equal(np.diag(K), 1.0)
    both = (true <= 16) & (true.T <= 16)
    assert both.sum() > 10 * N
    assert_allclose(K[both], similarity(name, u[both]), rtol=40 * EPS)
    least, most = similarity(name, u * 1.25), similarity(name, u / 1.25)
    assert ((1 - 40 * EPS) * least <= K).all()
    assert ((1 + 40 * EPS) * most >= K).all()


@pytest.mark.parametrize("name", RANKED)
def test_only_the_order_of_the_distances_matters(name: str) -> None:
    """Another scale that keeps the order: the same where both ranks are in the profiles."""
    R = np.arange(N)
    K, _ = made(name, D, R)
    other, _ = made(name, np.log1p(D) ** 3, R)
    known = np.isin(counted(D, D), profile_ranks(N))
    known &= known.T
    assert 10 * N < known.sum() < N**2 / 2
    assert_allclose(other[known], K[known], rtol=40 * EPS)
    assert np.abs(other - K).max() > 0  # the others are interpolated


@pytest.mark.parametrize("name", RANKED)
def test_an_entry_depends_on_its_two_objects_alone(name: str) -> None:
    """Bit for bit, in blocks of any shape, with columns that are no reference objects."""
    R, Z = np.arange(0, 120, 2), np.array([0, 5, 7, 150, 62, 199])
    transform = TRANSFORMS[name](D[np.ix_(R, R)])
    a = transform.offsets(D[:, R])
    K = transform.similarity(D, a, a)
    for rows in (np.array([3]), np.arange(40, 57)):
        few = transform.offsets(D[np.ix_(rows, R)])
        assert_array_equal(few, a[rows])
        block = transform.similarity(D[np.ix_(rows, Z)], few, a[Z])
        assert_array_equal(block, K[np.ix_(rows, Z)])
        assert_array_equal(transform.similarity(D[np.ix_(Z, rows)], a[Z], few), block.T)


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_reference_sets(n: int, name: str) -> None:
    """Reference objects and new ones, among them a copy of the first."""
    points = np.array([0.0, 4.0, 5.0, 0.0, 0.5, 100.0])
    D = np.abs(points[:, None] - points)
    K, _ = made(name, D, np.arange(n))
    zero = 1e-6 * {1: 1.0, 2: 4.0, 3: 4.0}[n]  # of the median distance, or 1
    true = [[oracles.rank(d, row[:n], zero) for d in row] for row in D]
    expected = similarity(name, np.sqrt(np.multiply(true, np.transpose(true))))
    assert_allclose(K, expected, rtol=4 * ROUNDINGS)  # u is at most 4
    assert_array_equal(K, K.T)
    assert_array_equal(K[3], K[0])
    assert K[0, 3] == 1.0


def test_an_object_far_from_all_has_the_last_rank() -> None:
    """Each reference object sees it behind all others, and it sees them all in a tie."""
    R = np.arange(30)
    transform = TRANSFORMS["rank3"](D[np.ix_(R, R)])
    a = transform.offsets(D[np.ix_(R, R)])
    far = np.full((1, 30), 2.0**480)
    K = transform.similarity(far, transform.offsets(far), a)
    assert_allclose(K, np.exp(-np.sqrt(30) / 3), rtol=40 * EPS)


# Models


def model_of(kernel: Any, name: str = "rank3", **params: Any) -> Any:
    return KreinRidgeClassifier(
        kernel, similarity=name, lambda_plus=0.1, lambda_minus=0.3, random_state=0, **params
    )


NUMBERS = np.arange(80)
Y = (POINTS[:80, 0] > 0).astype(int)
BY_NUMBER = dissimilarity(pairwise(lambda i, j: float(D[i, j])))


@pytest.mark.parametrize("name", RANKED)
def test_a_matrix_of_distances_equals_the_function(name: str) -> None:
    given = model_of("precomputed_dissimilarity", name).fit(D[:80, :80], Y)
    own = model_of(BY_NUMBER, name).fit(list(NUMBERS), Y)
    new = np.arange(80, 120)
    assert_array_equal(given.decision_function(D[80:120, :80]), own.decision_function(list(new)))


@pytest.mark.parametrize("landmarks", [None, 15])
def test_predictions_are_those_of_the_definition(landmarks: int | None) -> None:
    """k(x, Z) by counting and interpolating, times the coefficients."""
    more = {} if landmarks is None else {"landmarks": landmarks}
    model = model_of("precomputed_dissimilarity", **more).fit(D[:80, :80], Y)
    Z = model.landmark_indices_
    zero = 1e-6 * float(np.median(D[np.ix_(Z, Z)][~np.eye(len(Z), dtype=bool)]))
    new = np.arange(80, 120)

    def ranks(A: Any, B: Any) -> Any:
        return np.array([[oracles.rank(D[i, j], D[i, Z], zero) for j in B] for i in A])

    K = similarity("rank3", np.sqrt(ranks(new, Z) * ranks(Z, new).T))
    scores = K @ model.dual_coef_ + model.intercept_
    assert_allclose(
        model.decision_function(D[80:120, :80]), scores.ravel(),
        rtol=0, atol=2 * len(Z) * ROUNDINGS * float(np.abs(model.dual_coef_).sum()),
    )  # fmt: skip


@pytest.mark.parametrize("landmarks", [None, 15])
@pytest.mark.parametrize("name", ["gauss", *RANKED])
def test_a_model_file_predicts_the_same_bits(
    name: str, landmarks: int | None, tmp_path: Path
) -> None:
    words = ["".join(RNG.choice(list("abcd"), RNG.integers(1, 9))) for _ in range(90)]
    more = {} if landmarks is None else {"landmarks": landmarks}
    model = model_of("levenshtein", name, **more).fit(words[:60], np.arange(60) % 3)
    kreinlearn.save(model, tmp_path / "model.krein")
    again = kreinlearn.load(tmp_path / "model.krein")
    assert_array_equal(again.decision_function(words), model.decision_function(words))


def test_a_kernel_by_ranks_in_a_model_file(tmp_path: Path) -> None:
    """Its reference objects and its width are stored."""
    words = ["".join(RNG.choice(list("abcd"), RNG.integers(1, 9))) for _ in range(90)]
    kernel = similarity_of("levenshtein", "rank3", n_reference=25, width=1.7)
    model = KreinRidgeClassifier(kernel, lambda_plus=0.1, lambda_minus=0.3, random_state=0)
    model.fit(words[:60], np.arange(60) % 3)
    kreinlearn.save(model, tmp_path / "model.krein")
    again = kreinlearn.load(tmp_path / "model.krein")
    assert_array_equal(again.decision_function(words), model.decision_function(words))
    assert again.kernel_.transform_.k == 1.7 * 3


def test_a_corrected_spectrum_of_ranks() -> None:
    model = SpectrumSVC("precomputed_dissimilarity", similarity="rank10", C=1.0, random_state=0)
    assert model.fit(D[:80, :80], Y).score(D[80:, :80], POINTS[80:, 0] > 0) > 0.8


def test_a_transformation_by_ranks_is_small() -> None:
    transform = TRANSFORMS["rank3"](D)
    assert isinstance(transform, RankScaling)
    assert transform.offsets(D).shape == (N, 4 * len(profile_ranks(N)))
