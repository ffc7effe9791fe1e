"""From kernel values to a feature map: cores against dense approximations in plain numpy.

The functions of matrices are compared with the paper's own routes in tests/reference.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss, Precomputed, pairwise
from kreinlearn.nystrom import core
from kreinlearn.nystrom.core import (
    OBSERVED_RTOL,
    SAFE,
    SWEEPS,
    WHITEN_RTOL,
    KreinFeatures,
    SimilarityFeatures,
    candidate_count,
    core_rank,
    eigen_map,
    extra_rows,
    first_by_key,
    fit_core,
    identity_map,
    landmark_map,
    least_squares_core,
    one_shot,
    one_shot_spectrum,
    root,
    row_keys,
    rows_of_core,
    sweep,
    weighted_draw,
    whiten,
)
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.nystrom.schemes import Candidates
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.sums.moments import Targets
from tests import oracles
from tests.unit.pairs.numbered import Counted

RNG = np.random.default_rng(12)
N, M = 150, 20
X = RNG.normal(size=(N, 3))
K = oracles.delta_gauss(X, X, 6.0, 4.0)
Z = np.sort(RNG.choice(N, M, replace=False))
SPEC = MapSpec(M, given=Z)


def rng(seed=0):
    return np.random.default_rng(seed)


def opened(rows=None, kernel=None, objects=X):
    kernel = DeltaGauss(6.0, 4.0) if kernel is None else kernel
    pairs = Pairs(kernel.fit(objects, RNG), Rows(objects), Session())
    return pairs, pairs.grown(pairs.sample(np.arange(N) if rows is None else rows), Z)


def core_of(spec, *, rows=None, R=None):
    pairs, sample = opened(rows)
    gram = sweep(pairs, sample, SPEC, rng(), Targets.none(N)).gram
    return fit_core(pairs, sample, gram, N, spec, rng(), R=R)


def approximated(feature_map):
    Phi = K[:, Z] @ feature_map.W
    return (Phi * feature_map.S) @ Phi.T


def assert_eigenvectors(feature_map, expected, atol=1e-6):
    """E and Lambda are an eigendecomposition of the approximation."""
    U = K[:, Z] @ feature_map.E
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), rtol=0, atol=1e-6)
    np.testing.assert_allclose((U * feature_map.Lambda) @ U.T, expected, rtol=0, atol=atol)
    assert (np.diff(np.abs(feature_map.Lambda)) <= 1e-12).all()


# Cores


def test_the_plain_core_is_the_inverse_of_the_landmarks():
    expected = oracles.nystroem(K[:, Z], K[np.ix_(Z, Z)], K[Z])
    feature_map = core_of(SPEC)
    np.testing.assert_allclose(approximated(feature_map), expected, rtol=0, atol=1e-8)
    assert_eigenvectors(feature_map, expected)


@pytest.mark.parametrize("rank", [None, 7])
def test_the_truncated_core_is_that_of_the_largest_eigenvalues(rank):
    spec = replace(SPEC, core="truncated", rank=rank)
    k = 13 if rank is None else rank  # 20 / 1.5
    assert core_rank(spec) == k
    best = oracles.best_rank(K[np.ix_(Z, Z)], k)
    expected = K[:, Z] @ np.linalg.pinv(best, rcond=1e-10) @ K[Z]
    feature_map = core_of(spec)
    assert len(feature_map.S) == k
    np.testing.assert_allclose(approximated(feature_map), expected, rtol=0, atol=1e-8)
    assert_eigenvectors(feature_map, expected)


def test_the_least_squares_core_of_known_rows():
    R = np.concatenate([Z, np.setdiff1d(np.arange(N), Z)[::3]])
    C = K[:, Z]
    T = whiten(C.T @ C)
    M_hat = oracles.weighted_projection(C[R] @ T, K[np.ix_(R, R)], N, SWEEPS, OBSERVED_RTOL)
    expected = C @ T @ M_hat @ T.T @ C.T
    feature_map = core_of(replace(SPEC, core="ls"), R=R)
    np.testing.assert_allclose(approximated(feature_map), expected, rtol=0, atol=1e-7)


def test_only_the_pairs_of_the_core_are_evaluated():
    counted = Counted(K)
    pairs, sample = opened(kernel=pairwise(counted), objects=list(range(N)))
    before = set(counted.pairs)
    gram = Candidates(pairs, sample).gram()
    R = rows_of_core(sample, gram.matrix, N, rng())
    fit_core(pairs, sample, gram, N, replace(SPEC, core="ls"), rng(), R=R)
    rest = np.setdiff1d(R, Z)
    assert len(set(counted.pairs) - before) == len(rest) * (len(rest) + 1) // 2
    assert set(counted.pairs.values()) == {1}


def test_all_rows_as_landmarks_have_the_plain_core():
    everything = MapSpec(N, given=np.arange(N), core="ls")
    pairs = opened()[0]
    sample = pairs.grown(pairs.sample(np.arange(N)), np.arange(N))
    gram = Candidates(pairs, sample).gram()
    feature_map = fit_core(pairs, sample, gram, N, everything, rng())
    Phi = K @ feature_map.W
    np.testing.assert_allclose((Phi * feature_map.S) @ Phi.T, K, rtol=0, atol=1e-7)


def test_cores_of_kernels_of_any_size():
    spec = replace(SPEC, core="ls")
    one = core_of(spec, R=np.arange(N))
    large = one.rescaled(4.0**30)
    np.testing.assert_array_equal(large.W, one.W / 2.0**30)
    np.testing.assert_array_equal(large.Lambda, one.Lambda * 4.0**30)
    np.testing.assert_array_equal(large.E, one.E / 4.0**30)


def test_the_least_squares_core_of_no_directions():
    Q = np.empty((5, 0))
    assert not (Q @ least_squares_core(Q, K[:5, :5], N) @ Q.T).any()


# Rows of the least-squares core


def test_similarities_of_zero_have_no_features():
    W, S = landmark_map(np.zeros((4, 4)))
    E, Lambda = one_shot(np.eye(4), W, S)
    assert [A.shape for A in (W, S, E, Lambda)] == [(4, 0), (0,), (4, 0), (0,)]


def test_rows_of_the_core_are_landmarks_and_others():
    _, sample = opened()
    G = K[:, Z].T @ K[:, Z]
    R = rows_of_core(sample, G, N, rng())
    np.testing.assert_array_equal(R[:M], Z)
    assert len(np.unique(R)) == len(R) == M + extra_rows(N, M)
    np.testing.assert_array_equal(R, rows_of_core(sample, G, N, rng()))
    for seed in range(1, 9):
        other = rows_of_core(sample, G, N, rng(seed))
        assert len(np.unique(other)) == len(other) == len(R)
        assert not np.array_equal(R, other)


@pytest.mark.parametrize("outside", [False, True], ids=["in the pool", "drawn during the pass"])
def test_rows_of_the_core_have_those_that_span_the_features(outside):
    """Of all rows only five have similarities that are not small."""
    values, large, landmarks = 1e-3 * K, np.array([7, 30, 64, 99, 140]), np.array([1, 2])
    values[np.ix_(large, landmarks)] = RNG.normal(size=(5, 2))
    values[np.ix_(landmarks, large)] = values[np.ix_(large, landmarks)].T
    pairs = Pairs(Precomputed().fit(values, RNG), Rows(values), Session())
    pool = np.setdiff1d(np.arange(N), large) if outside else np.arange(N)
    sample = pairs.grown(pairs.sample(np.arange(N), pool), landmarks)
    C = values[:, landmarks]
    for seed in range(5):
        R = rows_of_core(sample, C.T @ C, N, rng(seed))
        assert len(R) == 2 + extra_rows(N, 2) == 6
        assert set(R[2:4]) <= set(large)


@pytest.mark.parametrize("size", [4, 10, 148])
def test_rows_of_the_core_are_looked_for_among_a_few_of_many(monkeypatch, size):
    """Half of the candidates are of the pool, as far as it goes, and all others beside it."""
    pairs, landmarks = opened()[0], np.array([1, 2])
    pool = np.setdiff1d(np.arange(N), landmarks)[:size]
    sample = pairs.grown(pairs.sample(np.arange(N), pool), landmarks)
    seen = []

    def pivot_rows(Q, count):
        seen.append(len(Q))
        return np.arange(count)

    monkeypatch.setattr(core, "pivot_rows", pivot_rows)
    C = K[:, landmarks]
    R = rows_of_core(sample, C.T @ C, N, rng())
    assert len(np.unique(R)) == 2 + extra_rows(N, 2)
    even = min(candidate_count(2) // 2, size)
    assert seen == [candidate_count(2) if size == 148 else even + 148 - size]


def test_keys_of_rows_are_the_numbers_of_a_known_generator():
    """The first five of SplitMix64 with the seed 1234567, as other programs print them."""
    assert row_keys(np.arange(1, 6), 1234567).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 9, 40, 60])
def test_rows_with_the_smallest_keys_are_those_of_one_sort(monkeypatch, count):
    monkeypatch.setattr(core, "KEYS_AT_ONCE", 7)
    for salt in range(5):
        numbers = np.sort(rng(salt).choice(1000, 50, replace=False))
        for given, every in ((numbers, numbers), (50, np.arange(50))):
            expected = every[np.argsort(row_keys(every, salt))][:count]
            np.testing.assert_array_equal(first_by_key(given, count, salt), expected)


def test_there_are_never_all_pairs():
    assert [extra_rows(100, m) for m in (1, 10, 50, 99, 100)] == [2, 20, 34, 1, 0]


def test_candidates_are_three_to_ten_for_each_landmark():
    counts = [candidate_count(m) for m in (1, 10, 200, 300, 666, 700, 2000)]
    assert counts == [10, 100, 2000, 2000, 2000, 2100, 6000]


def test_a_weighted_draw_takes_zero_weights_last():
    weights = np.array([0.0, 1.0, 0.0, 2.0])
    for seed in range(20):
        drawn = weighted_draw(weights, 3, rng(seed))
        assert set(drawn[:2]) == {1, 3}


# Maps


@pytest.mark.parametrize("rank", [1, 4])
def test_a_map_cut_to_a_rank_is_the_best_of_that_rank(rank):
    feature_map = core_of(SPEC)
    expected = oracles.best_rank(approximated(feature_map), rank)
    cut = feature_map.cut(rank)
    assert len(cut.S) == rank
    np.testing.assert_allclose(approximated(cut), expected, rtol=0, atol=1e-6)
    assert feature_map.cut(None) is feature_map
    assert feature_map.cut(len(feature_map.Lambda)) is feature_map


def test_features_in_the_eigenbasis():
    E, Lambda = RNG.normal(size=(5, 3)), np.array([4.0, -1.0, 0.25])
    feature_map = eigen_map(E, Lambda)
    np.testing.assert_array_equal(feature_map.W, E * [2.0, 1.0, 0.5])
    np.testing.assert_array_equal(feature_map.S, [1, -1, 1])


# Kinds of features


def test_krein_features_have_two_signs_and_similarities_have_none():
    pairs, sample = opened()
    swept = sweep(pairs, sample, SPEC, rng(), Targets.none(N))
    krein, plain = KreinFeatures(), SimilarityFeatures()
    found = krein.core(pairs, swept, replace(SPEC, rank=6), rng())
    assert krein.signed
    assert len(found.S) == 6
    assert set(found.S) == {-1, 1}
    W, S = krein.map_of(sample.K_ZZ, SPEC)
    Phi = K[:, Z] @ W
    expected = oracles.nystroem(K[:, Z], K[np.ix_(Z, Z)], K[Z])
    np.testing.assert_allclose((Phi * S) @ Phi.T, expected, rtol=0, atol=1e-8)
    assert not plain.signed
    found = plain.core(pairs, swept, SPEC, rng())
    np.testing.assert_array_equal(found.W, np.eye(M))
    np.testing.assert_array_equal(found.S, np.ones(M))
    np.testing.assert_array_equal(plain.map_of(sample.K_ZZ, SPEC)[0], np.eye(M))
    assert (krein.root(16.0), plain.root(16.0)) == (4.0, 16.0)
    assert identity_map(3).Lambda.shape == (0,)
    assert identity_map(3).E.shape == (3, 0)


# Roots


@pytest.mark.parametrize("rank", [0, 1, 6, 9])
def test_a_root_and_its_inverse(rank):
    """Of a matrix of full rank it is a triangle; of others it has as many rows as the rank."""
    F = np.random.default_rng(rank).normal(size=(40, rank)) @ np.eye(rank, 9)
    A = F.T @ F
    R, solve = root(A, WHITEN_RTOL)
    inverse = solve(np.eye(rank))
    assert R.shape == inverse.T.shape == (rank, 9)
    assert np.array_equal(R, np.triu(R)) == (rank in (0, 9) or rank == 1)
    condition = np.linalg.cond(F) ** 2 if rank == 9 else 1e2
    error = 100 * np.finfo(float).eps * condition
    np.testing.assert_allclose(R.T @ R, A, rtol=0, atol=error * np.abs(A).max(initial=1))
    np.testing.assert_allclose(R @ inverse, np.eye(rank), rtol=0, atol=error)


def test_the_root_does_not_change_the_spectrum(monkeypatch):
    """E and Lambda by a triangle, and by eigenvectors, which are used near a singular matrix."""
    generator = np.random.default_rng(4)
    C, W = generator.normal(size=(60, 7)), generator.normal(size=(7, 7))
    S, G = np.array([1, 1, -1, 1, -1, -1, 1.0]), C.T @ C
    E, Lambda = one_shot(G, W, S)
    monkeypatch.setattr("kreinlearn.nystrom.core.SAFE", np.inf)
    E_other, Lambda_other = one_shot(G, W, S)
    error = 100 * np.finfo(float).eps * np.linalg.cond(C @ W) ** 2
    np.testing.assert_allclose(Lambda, Lambda_other, rtol=0, atol=error * np.abs(Lambda).max())
    np.testing.assert_allclose((E * Lambda) @ E.T, (E_other * Lambda_other) @ E_other.T, rtol=error)
    np.testing.assert_allclose(E.T @ G @ E, np.eye(7), rtol=0, atol=error)
    K = (C @ W * S) @ (C @ W).T
    values = np.linalg.eigvalsh(K)
    values = values[np.argsort(-np.abs(values))][:7]
    np.testing.assert_allclose(Lambda, values, rtol=0, atol=error * np.abs(values).max())


@pytest.mark.parametrize("safe", [SAFE, np.inf])
def test_the_spectrum_alone_is_that_of_the_decomposition(monkeypatch, safe):
    """The eigenvalues of (C W S)(C W)', found in the large matrix itself."""
    monkeypatch.setattr("kreinlearn.nystrom.core.SAFE", safe)
    generator = np.random.default_rng(5)
    C, W = generator.normal(size=(60, 7)), generator.normal(size=(7, 7))
    S, Phi = np.array([1, 1, -1, 1, -1, -1, 1.0]), C @ W
    D = np.linalg.eigvalsh((Phi * S) @ Phi.T)
    expected = sorted(D, key=abs, reverse=True)[:7]
    error = 100 * np.finfo(float).eps * np.linalg.cond(Phi) ** 2
    found = one_shot_spectrum(C.T @ C, W, S)
    np.testing.assert_allclose(found, expected, rtol=0, atol=error * abs(expected[0]))


def test_a_learner_keeps_eigenvectors_only_if_its_rank_is_cut():
    pairs, sample = opened()
    swept = sweep(pairs, sample, SPEC, rng(), Targets.none(N))
    whole = KreinFeatures().core(pairs, swept, SPEC, rng())
    cut = KreinFeatures().core(pairs, swept, replace(SPEC, rank=6), rng())
    assert whole.E.shape == (M, 0)
    assert cut.E.shape == (M, 6)
    np.testing.assert_allclose(whole.Lambda[:6], cut.Lambda, rtol=1e-8)
