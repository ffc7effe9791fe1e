"""Problems, their splits and statistics, against maps built by hand from the rows of each part."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss, Gaussian, Precomputed, dissimilarity, pairwise
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.learn.folds import TRAINING, FoldRows
from kreinlearn.learn.learning import (
    ABSENT,
    Problem,
    features_of,
    folds_of,
    gather,
    gram_scale,
    leave_one_out_of,
    statistics_scale,
    terms_of,
    total_terms,
    whole_gram,
)
from kreinlearn.learn.search import Unknowns
from kreinlearn.learn.similarity import Candidate, choose_similarity, with_kernel
from kreinlearn.nystrom.core import FeatureMap, landmark_map
from kreinlearn.nystrom.sweep import Plan
from kreinlearn.pairs.evaluate import Rows
from kreinlearn.pairs.panel import Panel
from kreinlearn.solvers.least_squares import ridge_fold
from tests import oracles

RNG = np.random.default_rng(51)
N, K_FOLDS = 60, 4
X = RNG.normal(size=(N, 3))
OUTSIDE = RNG.normal(size=(40, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 2
W = RNG.uniform(0.3, 2, N)
NUMBERS = RNG.permutation(N) % K_FOLDS
K = oracles.delta_gauss(X, X, 6.0, 4.0)
FEW, MOST = np.sort(RNG.permutation(N)[:12]), np.sort(RNG.permutation(N)[:40])
DISTANCES = np.abs(X[:, None] - X[None]).sum(2) ** 0.8
LAMBDAS = (0.003, 0.05)
PLAN = Plan(
    n_landmarks=12, rank=None, core="plain", method="gram", landmarks="uniform", workers=1,
    budget=10**9,
)  # fmt: skip


def rng(seed=0):
    return np.random.default_rng(seed)


def map_of(K_ZZ, eps):
    return landmark_map(K_ZZ, None, eps)


def core(panel, gram, unit, n, plan, generator):
    W, S = landmark_map(panel.K_ZZ / unit, None, panel.eps)
    return FeatureMap(W, S, np.empty((len(W), 0)), np.empty(0))


def panel_of(kernel, objects, landmarks, rows=None, outside=None):
    rows = np.arange(len(objects)) if rows is None else rows
    if outside is not None:
        rows = np.concatenate([np.arange(-len(outside), 0), rows])
    panel = Panel(kernel.fit(objects, rng()), Rows(objects, outside), rows)
    panel.grow(landmarks)
    panel.freeze()
    return panel


def problem_of(panel, *, w=None, folds=NUMBERS, intercept=True, seed=0):
    return Problem(
        panel, PLAN, rng(seed), Y[:, 0], Y, w, folds, K_FOLDS, intercept, map_of
    )  # fmt: skip


def of_vectors(landmarks, **params):
    return problem_of(panel_of(DeltaGauss(6.0, 4.0), X, landmarks), **params)


def of_distances(landmarks, D=DISTANCES, similarity="squared", **params):
    problem = problem_of(panel_of(Precomputed(is_dissimilarity=True), D, landmarks), **params)
    problem.panel.refreeze()
    problem.use(similarity)
    return problem


def parts(k, numbers=NUMBERS):
    return np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)


def approximation(C, K_ZZ):
    """C K_ZZ^+ C', what features with their signs multiply to."""
    return C @ np.linalg.pinv(K_ZZ, rcond=1e-10, hermitian=True) @ C.T


def assert_map(split, expected):
    np.testing.assert_allclose((split.Phi * split.S) @ split.Phi.T, expected, rtol=0, atol=1e-7)


def averaged(folds, lambdas):
    """The loss of all folds a unit of validated weight."""
    losses = [ridge_fold(fold, *lambdas)[0] for fold in folds]
    return sum(losses) / sum(fold.n_valid for fold in folds)


# Which rows may judge which map


@pytest.mark.parametrize("m", [1, 29, 30, 31, 60])
def test_a_map_of_more_than_half_the_rows_is_made_anew_in_each_fold(m):
    problem = of_vectors(np.arange(m))
    assert problem.honest == (m > N / 2)
    if problem.honest:
        np.testing.assert_array_equal(problem.folds, NUMBERS)
    else:
        assert (problem.folds[:m] == TRAINING).all()
        np.testing.assert_array_equal(problem.folds[m:], NUMBERS[m:])


def test_folds_that_were_given_are_not_changed():
    given = NUMBERS.copy()
    of_vectors(FEW, folds=given)
    np.testing.assert_array_equal(given, NUMBERS)


def test_rows_that_weigh_nothing_do_not_count():
    w = np.where(np.arange(N) < 24, W, 0.0)
    assert of_vectors(np.arange(13), w=w).honest
    assert not of_vectors(np.arange(12), w=w).honest


def test_landmarks_from_outside_do_not_count():
    outside = panel_of(DeltaGauss(6.0, 4.0), X, np.arange(-40, 0), outside=OUTSIDE)
    problem = problem_of(outside)
    assert not problem.honest
    np.testing.assert_array_equal(problem.folds, NUMBERS)
    np.testing.assert_array_equal(problem.rows, np.arange(N))
    for split in problem.split_rows():
        C = oracles.delta_gauss(X, OUTSIDE, 6.0, 4.0)
        assert_map(split, approximation(C, oracles.delta_gauss(OUTSIDE, OUTSIDE, 6.0, 4.0)))


# Splits


def test_many_landmarks_make_a_map_of_the_training_part():
    problem = of_vectors(MOST)
    splits = problem.split_rows(columns=True)
    assert len(splits) == K_FOLDS
    for k, split in enumerate(splits):
        train, valid = parts(k)
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.valid, valid)
        own = np.intersect1d(MOST, train)
        assert_map(split, approximation(K[:, own], K[np.ix_(own, own)]))
        C, W_map = split.columns
        np.testing.assert_allclose(C, K[:, own], rtol=0, atol=1e-13)
        np.testing.assert_allclose(C @ W_map, split.Phi, rtol=0, atol=1e-12)


def test_few_landmarks_share_a_map():
    problem = of_vectors(FEW)
    splits = problem.split_rows(columns=True)
    expected = approximation(K[:, FEW], K[np.ix_(FEW, FEW)])
    numbers = NUMBERS.copy()
    numbers[FEW] = TRAINING
    for k, split in enumerate(splits):
        train, valid = parts(k, numbers)
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.valid, valid)
        assert_map(split, expected)
        np.testing.assert_allclose(split.columns[0], K[:, FEW], rtol=0, atol=1e-13)
    assert all(split.columns is None for split in problem.split_rows())


def test_few_landmarks_share_the_map_that_is_given():
    feature_map = FeatureMap(RNG.normal(size=(12, 5)), np.ones(5), np.empty((12, 0)), np.empty(0))
    for split in of_vectors(FEW).split_rows(feature_map):
        np.testing.assert_allclose(split.Phi, K[:, FEW] @ feature_map.W, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(split.S, np.ones(5))


def test_splits_of_the_rows_that_are_held():
    held = np.sort(RNG.permutation(N)[:35])
    landmarks = held[:10]
    problem = problem_of(panel_of(DeltaGauss(6.0, 4.0), X, landmarks, rows=held), w=W)
    numbers = problem.folds[held]
    Y_held, w_held = problem.held()
    np.testing.assert_array_equal(Y_held, Y[held])
    np.testing.assert_array_equal(w_held, W[held])
    for k, split in enumerate(problem.split_rows()):
        np.testing.assert_array_equal(split.valid, np.flatnonzero(numbers == k))
        expected = approximation(K[np.ix_(held, landmarks)], K[np.ix_(landmarks, landmarks)])
        assert_map(split, expected)


def test_folds_without_rows_are_left_out():
    folds = np.where(NUMBERS == 2, 1, NUMBERS)
    assert len(of_vectors(MOST, folds=folds).split_rows()) == 3
    assert len(of_vectors(FEW, folds=folds).split_rows()) == 3
    assert of_vectors(MOST, folds=np.zeros(N, dtype=int)).split_rows() == []


def exponential(D_XZ, D_ZR, D_RR):
    return np.exp(-D_XZ / np.median(D_RR[~np.eye(len(D_RR), dtype=bool)]))


SIMILARITIES = {
    "squared": lambda D_XR, D_XZ, D_ZR, D_RR: oracles.centred_on(D_XZ, D_XR, D_ZR, D_RR),
    "exp": lambda D_XR, D_XZ, D_ZR, D_RR: exponential(D_XZ, D_ZR, D_RR),
}


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("landmarks", [MOST, np.arange(N)], ids=["most", "all"])
def test_a_dissimilarity_is_transformed_by_the_training_part_of_a_fold(similarity, landmarks):
    problem = of_distances(landmarks, similarity=similarity)
    for k, split in enumerate(problem.split_rows(columns=True)):
        own = np.intersect1d(landmarks, parts(k)[0])
        D_own = DISTANCES[np.ix_(own, own)]
        C = SIMILARITIES[similarity](DISTANCES[:, own], DISTANCES[:, own], D_own, D_own)
        np.testing.assert_allclose(split.columns[0], C, rtol=0, atol=1e-12)
        assert_map(split, approximation(C, C[own]))


@pytest.mark.parametrize("similarity", ["squared", "linear", "exp", "narrow_exp", "local3"])
def test_a_fold_learns_from_nothing_that_its_validation_rows_say(similarity):
    """Whatever the distances of validation rows are, training features are what they were."""
    noise = RNG.uniform(0.1, 9, (N, N))
    noise = (noise + noise.T) * (1 - np.eye(N))
    before = of_distances(np.arange(N), similarity=similarity).split_rows()
    for k in range(K_FOLDS):
        train, valid = parts(k)
        D = DISTANCES.copy()
        D[valid], D[:, valid] = noise[valid], noise[:, valid]
        after = of_distances(np.arange(N), D, similarity).split_rows()[k]
        np.testing.assert_array_equal(after.Phi[train], before[k].Phi[train])
        assert not np.array_equal(after.Phi[valid], before[k].Phi[valid])


def test_thinned_problems_leave_rows_out_of_everything():
    problem = of_vectors(np.arange(N), seed=3)
    assert problem.thinned(N, rng()) is problem
    thin = problem.thinned(45, rng())
    absent = np.flatnonzero(thin.folds == ABSENT)
    assert len(absent) == N - 45
    np.testing.assert_array_equal(problem.folds, NUMBERS)
    for k, split in enumerate(thin.split_rows()):
        train, valid = (np.setdiff1d(part, absent) for part in parts(k))
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.valid, valid)
        assert_map(split, approximation(K[:, train], K[np.ix_(train, train)]))


def test_few_landmarks_are_cheap_enough_as_they_are():
    problem = of_vectors(FEW)
    assert problem.thinned(10, rng()) is problem


def test_sampled_splits():
    problem = of_vectors(FEW)
    splits = problem.split_rows()
    assert problem.sampled(splits, N) is splits
    drawn = None
    for before, after in zip(splits, problem.sampled(splits, 25), strict=True):
        rows = np.union1d(after.train, after.valid)
        assert len(rows) == 25
        drawn = rows if drawn is None else drawn
        np.testing.assert_array_equal(rows, drawn)  # the same of every split
        np.testing.assert_array_equal(after.train, np.intersect1d(before.train, rows))
        np.testing.assert_array_equal(after.valid, np.intersect1d(before.valid, rows))
        assert after.Phi is before.Phi


def test_maps_of_all_folds_are_refused_if_they_do_not_fit():
    problem = of_vectors(MOST)
    problem.plan = replace(PLAN, budget=10**5)
    with pytest.raises(MemoryError, match=r"tuning on 4 folds, each with a map of 40 of the 60"):
        problem.split_rows()


# Sums


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [False, True])
def test_folds_by_sums_and_by_rows_are_the_same(w, intercept):
    problem = of_vectors(FEW, w=w, intercept=intercept)
    statistics = gather(problem, core, by_fold=True)
    assert len(statistics.groups) == K_FOLDS + 1
    by_sums = folds_of(problem, statistics)
    by_rows = terms_of(problem, problem.split_rows(statistics.map))
    for one, other in zip(by_sums, by_rows, strict=True):
        for name in ("G", "B", "G_valid", "B_valid", "yy_valid", "n", "n_valid"):
            a, b = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())


@pytest.mark.parametrize("landmarks", [FEW, MOST], ids=["few", "most"])
@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_the_mean_loss_is_a_loop_over_folds_by_hand(landmarks, w):
    problem = of_vectors(landmarks, w=w)
    statistics = gather(problem, core, by_fold=not problem.honest)
    loss = averaged(folds_of(problem, statistics), LAMBDAS)

    def fold(train, valid):
        own = np.intersect1d(landmarks, train) if problem.honest else landmarks
        weights = None if w is None else w[train]
        a, b = oracles.krein_ridge(
            K[np.ix_(train, own)], K[np.ix_(own, own)], Y[train], LAMBDAS, w=weights
        )
        return K[np.ix_(valid, own)] @ a + b

    expected = oracles.cross_validated(fold, problem.folds, Y, w)
    assert loss == pytest.approx(expected, rel=1e-6)


def test_statistics_are_sums_over_all_rows():
    problem = of_vectors(FEW, w=W)
    one, grouped = (gather(problem, core, by_fold=by_fold) for by_fold in (False, True))
    Phi = K[:, FEW] @ one.map.W
    for statistics in (one, grouped):
        terms = total_terms(statistics.terms())
        np.testing.assert_allclose(terms.G, (Phi.T * W) @ Phi, rtol=0, atol=1e-9)
        np.testing.assert_allclose(terms.B, (Phi.T * W) @ Y, rtol=0, atol=1e-9)
        gram = whole_gram(statistics.groups).matrix
        np.testing.assert_allclose(gram, (K[:, FEW].T * W) @ K[:, FEW], rtol=0, atol=1e-12)
        expected = np.linalg.eigvalsh(np.cov(Phi.T, aweights=W, ddof=0))[-1]
        assert statistics_scale(statistics, intercept=True) == pytest.approx(expected, rel=1e-3)


def test_other_folds_may_be_summed():
    problem = of_vectors(np.arange(N), w=W)
    folds = np.where(np.arange(N) < 20, TRAINING, 1)
    groups = gather(problem, core, by_fold=True, folds=folds).groups
    assert [group.weight for group in groups] == pytest.approx(
        [0, W[20:].sum(), 0, 0, W[:20].sum()]
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_scale_is_the_largest_eigenvalue_over_n(seed):
    draw = rng(seed)
    F = (
        draw.normal(size=(40, 8))
        * np.geomspace(1, 0.01, 8)
        @ np.linalg.qr(draw.normal(size=(8, 8)))[0]
    )
    G = F.T @ F
    largest = np.linalg.eigvalsh(G)[-1]
    assert gram_scale(G, 5.0) == pytest.approx(largest / 5, rel=1e-3)
    assert gram_scale(1e100 * G, 5.0) == pytest.approx(1e100 * largest / 5, rel=1e-3)


def test_the_scale_of_any_spectrum_is_at_most_the_largest_eigenvalue():
    for seed in range(20):
        F = rng(seed).normal(size=(30, 12))
        G = F.T @ F
        assert 0.9 < gram_scale(G, 1.0) / np.linalg.eigvalsh(G)[-1] < 1 + 1e-12


def test_the_scale_of_nothing_is_one():
    assert gram_scale(np.zeros((3, 3)), 10.0) == 1.0
    assert gram_scale(np.empty((0, 0)), 10.0) == 1.0


# All features


@pytest.mark.parametrize("power", [0, 300])
def test_features_of_held_and_other_rows(power):
    def k(A, B):
        seen.update(tuple(a) for a in A)
        return oracles.delta_gauss(np.asarray(A), np.asarray(B), 6.0, 4.0) * 2.0**power

    seen = Counter()
    held = np.sort(RNG.permutation(N)[:35])
    panel = panel_of(CallableKernel(k), list(X), held[:10], rows=held)
    problem = problem_of(panel)
    statistics = gather(problem, core, by_fold=False)
    seen.clear()
    Phi = features_of(problem, statistics)
    expected = K[:, held[:10]] * (2.0**power / statistics.unit) @ statistics.map.W
    np.testing.assert_allclose(Phi, expected, rtol=0, atol=1e-9)
    assert set(seen) == {tuple(x) for x in np.delete(X, held, axis=0)}
    assert set(seen.values()) == {1}


def test_features_are_refused_if_they_do_not_fit():
    problem = of_vectors(FEW)
    statistics = gather(problem, core, by_fold=False)
    problem.plan = replace(PLAN, budget=8 * N * len(statistics.map.S) - 1)
    with pytest.raises(MemoryError, match=r"one-vs-one holds features, 60 x 12, .*ovr"):
        features_of(problem, statistics)


def test_leave_one_out_of_the_rows_that_are_no_landmarks():
    problem = of_vectors(FEW, w=W)
    statistics = gather(problem, core, by_fold=False)
    total = 0.0
    rest = np.delete(np.arange(N), FEW)
    for i in rest:
        others = np.delete(np.arange(N), i)
        share = W.sum() / W[others].sum()  # the penalty stays as it is
        a, b = oracles.krein_ridge(
            K[np.ix_(others, FEW)], K[np.ix_(FEW, FEW)], Y[others], share * np.array(LAMBDAS),
            w=W[others],
        )  # fmt: skip
        total += W[i] * ((Y[i] - K[i, FEW] @ a - b) ** 2).sum()
    loss = leave_one_out_of(problem, statistics)(np.array(LAMBDAS))[0]
    assert loss == pytest.approx(total / W[rest].sum(), rel=1e-7)


# The choice of a similarity

BOTH = Unknowns((None, None))
NAMES = ("squared", "linear", "exp", "narrow_exp", "local1", "local3", "local7")


def counted(pairs):
    def d(i, j):
        pairs[min(i, j), max(i, j)] += 1
        return float(DISTANCES[i, j])

    return dissimilarity(pairwise(d))


@pytest.mark.parametrize("held", [N, 30])
def test_no_pair_is_evaluated_twice(held):
    pairs, landmarks = Counter(), np.arange(0, 30, 2)
    panel = panel_of(counted(pairs), list(range(N)), landmarks, rows=np.arange(held))
    problem = problem_of(panel)
    panel.refreeze()
    best, choices = choose_similarity([Candidate(problem, None, name) for name in NAMES], BOTH)
    statistics = gather(best.chosen(), core, by_fold=True)
    assert set(pairs.values()) == {1}
    expected = {(min(i, j), max(i, j)) for i in range(N) for j in landmarks}
    assert set(pairs) == expected
    assert len(choices) == 7
    assert statistics.columns.transform is not None


def test_no_pair_is_evaluated_twice_by_a_kernel():
    """Three widths of a function are three kernels, each evaluated once a pair."""
    pairs = Counter()

    def k(i, j, width):
        pairs[width, min(i, j), max(i, j)] += 1
        return float(np.exp(-DISTANCES[i, j] / width))

    landmarks = np.arange(0, 40, 3)
    first = problem_of(panel_of(pairwise(k, width=1.0), list(range(N)), landmarks))
    candidates = [Candidate(first, {"width": 1.0})]
    for width in (2.0, 5.0):
        problem = with_kernel(first, pairwise(k, width=width))
        np.testing.assert_array_equal(problem.panel.landmarks, landmarks)
        np.testing.assert_array_equal(problem.panel.rows, first.panel.rows)
        np.testing.assert_array_equal(problem.folds, first.folds)
        candidates.append(Candidate(problem, {"width": width}))
    choose_similarity(candidates, BOTH)
    assert set(pairs.values()) == {1}
    assert len(pairs) == 3 * len({(min(i, j), max(i, j)) for i in range(N) for j in landmarks})


@pytest.mark.parametrize("landmarks", [FEW, np.arange(N)], ids=["few", "all"])
def test_the_similarity_of_smallest_loss_is_chosen(landmarks):
    problem = of_distances(landmarks)
    candidates = [Candidate(problem, None, name) for name in NAMES]
    best, choices = choose_similarity(candidates, BOTH)
    assert {choice.similarity for choice in choices} == set(NAMES)
    assert best.transform == choices[0].similarity
    losses = np.array([choice.loss for choice in choices])
    assert losses[0] == min(losses[:2])
    assert (np.diff(losses[2:]) >= 0).all()
    assert problem.panel.transform is not None
    for choice in choices:
        problem.use(choice.similarity)
        loss = averaged(terms_of(problem, problem.split_rows()), choice.tuned.values)
        assert choice.loss == pytest.approx(loss, rel=1e-6)
    assert best.chosen() is problem
    assert problem.transform == best.transform


def test_one_that_no_fold_can_judge_is_not_chosen():
    nothing = replace(of_vectors(MOST), folds=np.full(N, TRAINING))
    other = with_kernel(of_vectors(MOST), Gaussian(2.0).fit(X, rng()))
    best, choices = choose_similarity(
        [Candidate(nothing, {"a": 1}), Candidate(other, {"a": 2})], BOTH
    )
    assert best.kernel_params == {"a": 2}
    assert choices[1].loss == np.inf


def test_rows_of_a_split_are_where_its_folds_say():
    """A split of rows in any order: FoldRows takes places, not row numbers."""
    Phi = RNG.normal(size=(N, 4))
    train, valid = parts(1)
    shuffled = FoldRows(Phi, np.ones(4), RNG.permutation(train), RNG.permutation(valid))
    ordered = FoldRows(Phi, np.ones(4), train, valid)
    one, other = (split.terms(Y, W, intercept=True) for split in (shuffled, ordered))
    np.testing.assert_allclose(one.G, other.G, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.B_valid, other.B_valid, rtol=0, atol=1e-12)
