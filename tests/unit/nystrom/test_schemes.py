"""Schemes that choose landmarks against slow, plain versions of the same draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.kernels import DeltaGauss, Precomputed, SklearnMetric, pairwise
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.nystrom import schemes
from kreinlearn.nystrom.core import weighted_draw
from kreinlearn.nystrom.schemes import (
    DRAWN,
    LLOYD_STEPS,
    SCHEMES,
    Candidates,
    _drawn,
    _greedy_seeds,
    _replaced,
    lloyd,
    seeds,
)
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.sums.parallel import map_blocks, serial_blas
from tests import oracles
from tests.unit.pairs.numbered import Counted, unordered
from tests.unit.pairs.numbered import K as NUMBERED
from tests.unit.recorded import Recorded

RNG = np.random.default_rng(11)
X = RNG.normal(size=(120, 3))
K = oracles.delta_gauss(X, X, 6.0, 4.0)


def pairs_of(X, kernel=None, **session):
    kernel = DeltaGauss(6.0, 4.0) if kernel is None else kernel
    return Pairs(kernel.fit(X, RNG), Rows(X), Session(**session))


def chosen(scheme, pairs, m, seed, sketch):
    """A sample of all rows with m landmarks by a scheme."""
    sample = pairs.sample(np.arange(pairs.n))
    return SCHEMES[scheme](pairs, sample, m, np.random.default_rng(seed), sketch)


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_each_scheme_gives_that_many_distinct_landmarks(scheme):
    for m in (1, 2, 7, 40, 119, 120):
        sample = chosen(scheme, pairs_of(X), m, m, min(m, 20))
        assert len(np.unique(sample.landmarks)) == len(sample.landmarks) == m
        np.testing.assert_allclose(sample.C, K[:, sample.landmarks], atol=1e-13)
        np.testing.assert_allclose(sample.K_ZZ, K[np.ix_(*[sample.landmarks] * 2)], atol=1e-13)


@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++", "medoids+greedy"])
def test_schemes_that_keep_their_columns_evaluate_no_others(scheme):
    sample = chosen(scheme, pairs_of(X), 30, 0, 20)
    np.testing.assert_array_equal(sample.columns, sample.landmarks)


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if "medoids" not in name])
def test_the_unit_of_the_kernel_does_not_matter(scheme):
    """K / c has the same digits for a power of four c, and so has all that is drawn by."""
    values = K + np.exp(-np.abs(X[:, None] - X).sum(2))  # with k(x, x) that are not zero
    one, *others = (
        chosen(scheme, pairs_of(c * values, Precomputed()), 30, 0, 20).landmarks
        for c in (1.0, 4.0**-150, 4.0**150)
    )
    for other in others:
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_duplicates_do_not_stop_a_scheme(scheme):
    sample = chosen(scheme, pairs_of(np.repeat(X[:5], 20, axis=0)), 12, 0, 6)
    assert len(np.unique(sample.landmarks)) == 12


def naive_seeds_probabilities(F, first, second_given):
    d2 = ((F - F[first]) ** 2).sum(1)
    if second_given is not None:
        d2 = np.minimum(d2, ((F - F[second_given]) ** 2).sum(1))
    return d2 / d2.sum()


def test_seeds_follow_the_law_of_kmeans_pp():
    """Third seed given the first two, by chi-squared over 9,000 draws from six rows."""
    F = np.array([[0.0, 0], [1, 0], [0, 2], [3, 3], [-1, 1], [0.5, 0.2]])
    rng = np.random.default_rng(0)
    draws = np.array([seeds(F, 3, rng) for _ in range(9_000)])
    assert stats.chisquare(np.bincount(draws[:, 0], minlength=6)).pvalue > 1e-4
    for first, second in ((0, 3), (3, 0), (2, 1)):
        third = draws[(draws[:, 0] == first) & (draws[:, 1] == second), 2]
        p = naive_seeds_probabilities(F, first, second)
        observed = np.bincount(third, minlength=6)[p > 0]
        assert stats.chisquare(observed, p[p > 0] * len(third)).pvalue > 1e-4


def test_seeds_beyond_one_flush_are_far_apart():
    """150 seeds among 150 tight groups of 4: k-means++ hits nearly every group."""
    rng = np.random.default_rng(0)
    centres = 100 * rng.normal(size=(150, 5))
    F = np.repeat(centres, 4, axis=0) + 1e-3 * rng.normal(size=(600, 5))
    assert len(np.unique(seeds(F, 150, rng) // 4)) == 150


def test_weighted_draw_follows_the_weights():
    weights = np.array([0.0, 1, 2, 5])
    rng = np.random.default_rng(0)
    draws = np.array([weighted_draw(weights, 2, rng) for _ in range(9_000)])
    first = np.bincount(draws[:, 0], minlength=4)
    assert first[0] == 0
    assert stats.chisquare(first[1:], weights[1:] / 8 * 9_000).pvalue > 1e-4
    second = np.bincount(draws[draws[:, 0] == 3, 1], minlength=4)
    assert stats.chisquare(second[1:3], np.array([1, 2]) / 3 * second.sum()).pvalue > 1e-4
    assert set(weighted_draw(weights, 4, rng)) == {0, 1, 2, 3}


def test_leverage_draws_by_the_scores_of_the_sketch():
    """A heavy group of rows that alone carries a direction is drawn although it is rare."""
    F = np.zeros((100, 3))
    F[:, 0] = 1
    F[:4, 1] = 5
    F[50:, 2] = 0.5
    low = (F * [1, -1, 1]) @ F.T
    scores = oracles.leverage_scores(low, 3)
    kernel = Precomputed().fit(low, RNG)
    hits = []
    with serial_blas():
        for s in range(200):
            sample = chosen("leverage", pairs_of(low, kernel), 1, s, 90)
            hits.append(sample.landmarks[0] < 4)
    expected = scores[:4].sum() / scores.sum()
    assert abs(np.mean(hits) - expected) < 4 * np.sqrt(expected * (1 - expected) / 200)


def test_greedy_seeds_match_a_naive_greedy_search():
    """The same draws from the same generator; the best one found by recomputing everything."""
    F, missed = RNG.normal(size=(60, 4)), RNG.random(60)
    start = np.array([3, 17])
    trials = int(2 + np.log(30))
    ours = _greedy_seeds(F, missed, start, 30, trials, np.random.default_rng(5))
    rng, chosen, batches = np.random.default_rng(5), list(start), 0
    D2 = ((F[:, None] - F[None]) ** 2).sum(2)

    def weights() -> np.ndarray:
        w = D2[:, chosen].min(1) + missed
        w[chosen] = 0
        return w

    while len(chosen) < 30:
        old, batches = weights(), batches + 1
        total = np.cumsum(old)
        queue = list(np.searchsorted(total, rng.random(DRAWN) * total[-1]))
        queue = list(zip(queue, rng.random(DRAWN), strict=True))
        while len(chosen) < 30:
            candidates, now = [], weights()
            while queue and len(candidates) < trials:
                row, chance = queue.pop(0)
                if now[row] > 0 and chance * old[row] <= now[row]:
                    candidates.append(row)
            if len(candidates) < trials:
                break
            left = [D2[:, [*chosen, c]].min(1).sum() - missed[c] for c in candidates]
            chosen.append(int(candidates[np.argmin(left)]))
    assert batches > 2
    np.testing.assert_array_equal(ours, chosen[2:])


def test_greedy_seeds_with_one_trial_are_drawn_by_the_weights_of_that_moment():
    """Rows that wait since an earlier draw are rejected as often as their weight has fallen."""
    F = np.array([[0.0], [1.0], [1.1], [3.0], [3.2]])
    missed, start = np.array([0.0, 0.0, 0.5, 0.0, 0.1]), np.array([0])
    D2 = (F - F.T) ** 2
    expected = np.zeros((5, 5))  # the chance of every first and second row
    first = np.where(np.arange(5) == 0, 0, D2[0] + missed)
    for i in range(1, 5):
        second = np.minimum(D2[0], D2[i]) + missed
        second[[0, i]] = 0
        expected[i] = first[i] / first.sum() * second / second.sum()
    runs, counts = 1500, np.zeros((5, 5))
    for seed in range(runs):
        found = _greedy_seeds(F, missed, start, 3, 1, np.random.default_rng(seed))
        counts[tuple(found)] += 1
    spread = np.sqrt(runs * expected * (1 - expected))
    assert (np.abs(counts - runs * expected) <= 4.5 * spread).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_centres_are_those_of_steps_that_are_spelled_out(workers):
    """No row is nearest to the last centre, which stays where it is."""
    rows = np.random.default_rng(3).normal(size=(1300, 3))
    first = np.vstack([rows[:6], [[90.0, 90.0, 90.0]]])
    expected = first.copy()
    for _ in range(LLOYD_STEPS):
        nearest = ((rows[:, None] - expected) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(6):
            expected[k] = rows[nearest == k].mean(axis=0)
    found = lloyd(rows, first, workers)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_rows_are_labelled_by_all_workers(monkeypatch):
    asked = []

    def watched(apply, blocks, *, workers=1):
        asked.append(workers)
        map_blocks(apply, blocks, workers=workers)

    monkeypatch.setattr(schemes, "map_blocks", watched)
    rows = np.random.default_rng(3).normal(size=(1300, 3))
    lloyd(rows, rows[:6], 3)
    assert set(asked) == {3}


def test_centres_that_do_not_move_stay():
    rows = np.repeat([[0.0, 0.0], [4.0, 0.0]], 3, axis=0)
    np.testing.assert_array_equal(lloyd(rows, rows[[0, 3]]), rows[[0, 3]])


def test_an_object_unlike_all_others_is_picked():
    """Its features are near zero; what they miss of k(x, x) makes it a landmark."""
    F = np.vstack([RNG.normal(size=(80, 2)), [[60.0, 60]]])
    K = np.maximum(0, 1 - ((F[:, None] - F[None]) ** 2).sum(2) / 4)
    kernel = Precomputed().fit(K, RNG)
    picked = 0
    for s in range(20):
        picked += 80 in chosen("greedy_kmeans++", pairs_of(K, kernel), 20, s, 5).landmarks
    assert picked >= 12


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_schemes_grow_the_landmarks_that_there_are(scheme):
    """As growth to a tolerance does: those of before stay, and the sample of before too."""
    pairs = pairs_of(X)
    before = chosen(scheme, pairs, 10, 0, 10)
    landmarks = before.landmarks.copy()
    after = SCHEMES[scheme](pairs, before, 25, np.random.default_rng(1), 10)
    assert len(after.landmarks) == 25
    assert set(landmarks) < set(after.landmarks)
    np.testing.assert_array_equal(before.landmarks, landmarks)


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if "medoids" not in name])
def test_no_scheme_evaluates_a_pair_twice(scheme):
    counted = Counted(NUMBERED)
    pairs = pairs_of(list(range(60)), pairwise(counted))
    sample = chosen(scheme, pairs, 12, 0, 8)
    assert set(counted.pairs.values()) == {1}
    assert unordered(range(60), sample.columns) <= set(counted.pairs)


# Candidates that are not in the sample


def streaming(pairs, landmarks):
    """A sample of 40 rows whose candidates are all rows."""
    sample = replace(pairs.sample(np.arange(0, 80, 2)), streams=True)
    return pairs.with_reference(pairs.grown(sample, landmarks))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", ["vectors", "metric", "objects"])
def test_all_rows_are_candidates(name, workers):
    """C'C, any function of C, and landmarks far from the pool; objects are in the sample."""
    X = np.random.default_rng(1).normal(size=(5000, 3))
    first, second = np.array([6, 2, 78]), np.array([4999, 7, 6, 2100])
    squares = ((X[:, None] - X[first][None]) ** 2).sum(2)
    among, offsets = squares[first], squares.mean(1)

    def similarities(columns):
        if name != "metric":
            return oracles.delta_gauss(X, X[columns], 6.0, 4.0)
        d2 = ((X[:, None] - X[columns][None]) ** 2).sum(2)
        return -0.5 * (d2 - offsets[:, None] - offsets[columns] + among.mean())

    kernel = {
        "vectors": DeltaGauss(6.0, 4.0),
        "metric": SklearnMetric("euclidean"),
        "objects": CallableKernel(lambda A, B: oracles.delta_gauss(*map(np.array, (A, B)), 6, 4)),
    }[name]
    if name == "objects":
        pairs = pairs_of(list(X), kernel, workers=workers)
        sample = pairs.grown(pairs.sample(np.arange(5000), np.arange(0, 80, 2)), first)
    else:
        pairs = pairs_of(X, kernel, workers=workers)
        sample = streaming(pairs, first)
    assert len(sample.rows) == (5000 if name == "objects" else 40)
    candidates = Candidates(pairs, sample)
    np.testing.assert_array_equal(candidates.numbers, np.arange(5000))
    C = similarities(first)
    np.testing.assert_allclose(candidates.gram().matrix, C.T @ C, rtol=1e-10)
    out = np.empty((5000, 2))
    assert candidates.mapped(lambda C: C[:, [2, 0]] ** 3, out) is out
    np.testing.assert_allclose(out, C[:, [2, 0]] ** 3, rtol=0, atol=1e-11)

    sample = _replaced(pairs, sample, second)
    assert set(sample.landmarks) == set(second) <= set(sample.rows)
    assert len(sample.rows) <= 45
    candidates = Candidates(pairs, sample)
    if name == "objects":
        np.testing.assert_array_equal(candidates.numbers, sample.rows)
    C = similarities(sample.landmarks)
    np.testing.assert_allclose(sample.C, C[sample.rows], rtol=0, atol=1e-12)
    here = C[candidates.numbers]
    np.testing.assert_allclose(candidates.gram().matrix, here.T @ here, rtol=1e-10)


def test_a_transformation_of_rows_that_are_streamed():
    X = np.random.default_rng(1).normal(size=(3000, 3))
    Z = np.array([6, 2, 78])
    pairs = pairs_of(X, SklearnMetric("manhattan"))
    sample = streaming(pairs, Z).using("exp")
    d = np.abs(X[:, None] - X[Z]).sum(2)
    C = np.exp(-d / np.median(d[Z][np.triu_indices(3, 1)]))
    np.testing.assert_allclose(Candidates(pairs, sample).gram().matrix, C.T @ C, rtol=1e-12)


@pytest.mark.parametrize("whole", [False, True])
def test_the_gram_of_a_large_kernel_is_that_of_the_kernel_over_its_unit(whole):
    class Large(DeltaGauss):
        def columns(self, Z):
            return LargeColumns(super().columns(Z))

    X = np.random.default_rng(1).normal(size=(100, 3))
    pairs = pairs_of(X, Large(6.0, 4.0))
    sample = streaming(pairs, np.array([2, 8]))
    candidates = Candidates(pairs, sample if whole else replace(sample, streams=False))
    rows = X[candidates.numbers]
    C = oracles.delta_gauss(rows, X[[2, 8]], 6.0, 4.0) * (2.0**300 / sample.unit)
    np.testing.assert_allclose(candidates.gram().matrix, C.T @ C, rtol=1e-12)
    got = candidates.mapped(lambda C: 2 * C, np.empty(C.shape))
    np.testing.assert_allclose(got, 2 * C, rtol=1e-12, atol=1e-14)


class LargeColumns:
    def __init__(self, columns):
        self.columns = columns

    def __call__(self, A, out=None):
        K = self.columns(A, out)
        K *= 2.0**300
        return K


def test_progress_of_rows_that_are_streamed():
    X, seen = np.random.default_rng(1).normal(size=(5000, 3)), Recorded()
    pairs = pairs_of(X, progress=seen)
    sample = streaming(pairs, np.array([6, 2]))
    del seen.steps[:]
    seen.done = (0, 0)
    candidates = Candidates(pairs, sample)
    candidates.gram()
    candidates.mapped(lambda C: C, np.empty((5000, 2)))
    assert seen.steps == [("landmarks", 5000, 10_000)] * 2
    assert seen.done == (10_000, 20_000)
    assert seen.open == 0


def test_values_of_all_rows_may_be_kept_from_pass_to_pass(monkeypatch):
    """Rows are asked once whether they have room for n x m numbers of eight bytes."""
    asked = []
    monkeypatch.setattr(Rows, "value_store", lambda self, n_bytes, session: asked.append(n_bytes))
    pairs = pairs_of(X)
    candidates = Candidates(pairs, streaming(pairs, np.array([6, 2, 78])))
    candidates.gram()
    candidates.mapped(lambda C: C, np.empty((120, 3)))
    assert asked == [8 * 120 * 3]


@pytest.mark.parametrize("scheme", ["leverage", "kmeans++"])
def test_a_sketch_of_more_rows_than_the_pool_lets_the_others_go(scheme):
    """Objects are sampled whole while landmarks are chosen; then the pool and they remain."""
    counted = Counted(NUMBERED)
    pairs = pairs_of(list(range(60)), pairwise(counted))
    pool = np.arange(0, 60, 4)
    sample = pairs.sample(np.arange(60), pool)
    sample = SCHEMES[scheme](pairs, sample, 6, np.random.default_rng(0), 4)
    assert set(pool) | set(sample.landmarks) <= set(sample.rows)
    assert len(sample.rows) < 60
    np.testing.assert_array_equal(sample.C, NUMBERED[np.ix_(sample.rows, sample.landmarks)])
    assert set(counted.pairs.values()) == {1}


def test_medoids_are_the_rows_nearest_to_the_centres_of_clusters():
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 80.0]])
    rows = np.repeat(centres, 12, axis=0) + RNG.normal(size=(36, 2))
    wanted = []
    for k in range(3):
        cluster = rows[12 * k : 12 * k + 12]
        gaps = np.square(cluster - cluster.mean(axis=0)).sum(axis=1)
        wanted.append(12 * k + int(np.argmin(gaps)))
    assert sorted(chosen("medoids", pairs_of(rows), 3, 0, 3).landmarks) == wanted


def test_a_quarter_of_the_landmarks_is_uniform_before_greedy_ones_double_them():
    for m in (8, 30):
        first = -(-m // 4)
        uniform = chosen("uniform", pairs_of(X), first, 5, first).landmarks
        greedy = chosen("greedy_kmeans++", pairs_of(X), m, 5, m).landmarks
        np.testing.assert_array_equal(greedy[:first], uniform)
        assert not np.array_equal(greedy, chosen("uniform", pairs_of(X), m, 5, m).landmarks)


def test_rows_are_drawn_by_weight_wherever_the_weight_is():
    for n in (1, 2, 5):
        for i in range(n):
            found = _drawn(3.0 * np.eye(n)[i], np.zeros(n, dtype=bool), 4, np.random.default_rng(i))
            assert found.tolist() == [i] * 4
    used = np.array([True, False, True])
    assert _drawn(np.zeros(3), used, 4, np.random.default_rng(0)).tolist() == [1]


def test_no_seeds_are_row_numbers_too():
    F = RNG.normal(size=(20, 2))
    found = _greedy_seeds(F, np.ones(20), np.array([0, 1]), 2, 3, np.random.default_rng(0))
    assert F[found].shape == (0, 2)


def test_only_rows_that_are_not_explained_are_drawn_however_little_that_is():
    F, far = np.zeros((20, 2)), [5, 9, 14]
    F[far] = 1e-6 * np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found = _greedy_seeds(F, np.zeros(20), np.array([0, 1]), 5, 3, rng)
        assert sorted(found) == far


def test_the_default_for_vectors_looks_at_the_whole_pool(monkeypatch):
    """Rows far from all others may be in any part of it, and errors without them are large."""
    looked_at, nearby = [], schemes._nearby

    def noted(sample, count):
        found = nearby(sample, count)
        looked_at.append((len(found.rows), len(sample.pool)))
        return found

    monkeypatch.setattr(schemes, "_nearby", noted)
    X = np.random.default_rng(0).normal(size=(3000, 2))
    chosen = Landmarks(60, "medoids+greedy", "ls", pool=200)
    KreinNystroem("gaussian", landmarks=chosen, random_state=0).fit(X)
    assert looked_at
    assert all(rows >= pool == 600 for rows, pool in looked_at)
