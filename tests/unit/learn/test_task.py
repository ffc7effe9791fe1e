"""Tasks, their splits and sums, against maps built by hand from the rows of each part."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss
from kreinlearn.learn.folds import TRAINING
from kreinlearn.learn.task import ABSENT, FoldRows, gram_scale
from kreinlearn.nystrom.core import FeatureMap, SimilarityFeatures
from kreinlearn.sums.moments import total_moments
from tests import oracles
from tests.bounds import rounding
from tests.unit.learn.learning import (
    DISTANCES,
    FEW,
    K_FOLDS,
    LAMBDAS,
    MOST,
    NUMBERS,
    OUTSIDE,
    RNG,
    K,
    N,
    W,
    X,
    Y,
    averaged,
    of_distances,
    of_vectors,
    opened,
    parts,
    rng,
    task_of,
)


def approximation(C, K_ZZ):
    """C K_ZZ^+ C', what features with their signs multiply to."""
    return C @ np.linalg.pinv(K_ZZ, rcond=1e-10, hermitian=True) @ C.T


def assert_map(split, expected):
    np.testing.assert_allclose((split.Phi * split.S) @ split.Phi.T, expected, rtol=0, atol=1e-7)


# Which rows may judge which map


@pytest.mark.parametrize("m", [1, 29, 30, 31, 60])
def test_a_map_of_more_than_half_the_rows_is_made_anew_in_each_fold(m):
    task = of_vectors(np.arange(m))
    assert task.honest == (m > N / 2)
    if task.honest:
        np.testing.assert_array_equal(task.folds, NUMBERS)
    else:
        assert (task.folds[:m] == TRAINING).all()
        np.testing.assert_array_equal(task.folds[m:], NUMBERS[m:])


def test_folds_that_were_given_are_not_changed():
    given = NUMBERS.copy()
    of_vectors(FEW, folds=given)
    np.testing.assert_array_equal(given, NUMBERS)


def test_rows_that_weigh_nothing_do_not_count():
    w = np.where(np.arange(N) < 24, W, 0.0)
    assert of_vectors(np.arange(13), w=w).honest
    assert not of_vectors(np.arange(12), w=w).honest


def test_landmarks_from_outside_do_not_count():
    task = task_of(*opened(DeltaGauss(6.0, 4.0), X, np.arange(-40, 0), outside=OUTSIDE))
    assert not task.honest
    np.testing.assert_array_equal(task.folds, NUMBERS)
    np.testing.assert_array_equal(task.numbers, np.arange(N))
    for split in task.splits():
        C = oracles.delta_gauss(X, OUTSIDE, 6.0, 4.0)
        assert_map(split, approximation(C, oracles.delta_gauss(OUTSIDE, OUTSIDE, 6.0, 4.0)))


# Splits


def test_many_landmarks_make_a_map_of_the_training_part():
    task = of_vectors(MOST)
    splits = task.splits(columns=True)
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
    task = of_vectors(FEW)
    splits = task.splits(columns=True)
    expected = approximation(K[:, FEW], K[np.ix_(FEW, FEW)])
    numbers = NUMBERS.copy()
    numbers[FEW] = TRAINING
    for k, split in enumerate(splits):
        train, valid = parts(k, numbers)
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.valid, valid)
        assert_map(split, expected)
        np.testing.assert_allclose(split.columns[0], K[:, FEW], rtol=0, atol=1e-13)
    assert all(split.columns is None for split in task.splits())


def test_few_landmarks_share_the_map_that_is_given():
    feature_map = FeatureMap(RNG.normal(size=(12, 5)), np.ones(5), np.empty((12, 0)), np.empty(0))
    for split in of_vectors(FEW).splits(feature_map):
        np.testing.assert_allclose(split.Phi, K[:, FEW] @ feature_map.W, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(split.S, np.ones(5))


def test_splits_of_the_rows_that_are_sampled():
    rows = np.sort(RNG.permutation(N)[:35])
    landmarks = rows[:10]
    task = task_of(*opened(DeltaGauss(6.0, 4.0), X, landmarks, rows=rows), w=W)
    numbers = task.folds[rows]
    Y_sampled, w_sampled = task.sampled_targets()
    np.testing.assert_array_equal(Y_sampled, Y[rows])
    np.testing.assert_array_equal(w_sampled, W[rows])
    for k, split in enumerate(task.splits()):
        np.testing.assert_array_equal(split.valid, np.flatnonzero(numbers == k))
        expected = approximation(K[np.ix_(rows, landmarks)], K[np.ix_(landmarks, landmarks)])
        assert_map(split, expected)


def test_folds_without_rows_are_left_out():
    folds = np.where(NUMBERS == 2, 1, NUMBERS)
    assert len(of_vectors(MOST, folds=folds).splits()) == 3
    assert len(of_vectors(FEW, folds=folds).splits()) == 3
    assert of_vectors(MOST, folds=np.zeros(N, dtype=int)).splits() == []


def exponential(D_XZ, D_ZR, D_RR):
    return np.exp(-D_XZ / np.median(D_RR[~np.eye(len(D_RR), dtype=bool)]))


SIMILARITIES = {
    "squared": lambda D_XR, D_XZ, D_ZR, D_RR: oracles.centred_on(D_XZ, D_XR, D_ZR, D_RR),
    "exp": lambda D_XR, D_XZ, D_ZR, D_RR: exponential(D_XZ, D_ZR, D_RR),
}


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("landmarks", [MOST, np.arange(N)], ids=["most", "all"])
def test_a_dissimilarity_is_transformed_by_the_training_part_of_a_fold(similarity, landmarks):
    task = of_distances(landmarks, similarity=similarity)
    for k, split in enumerate(task.splits(columns=True)):
        own = np.intersect1d(landmarks, parts(k)[0])
        D_own = DISTANCES[np.ix_(own, own)]
        C = SIMILARITIES[similarity](DISTANCES[:, own], DISTANCES[:, own], D_own, D_own)
        np.testing.assert_allclose(split.columns[0], C, rtol=0, atol=1e-12)
        assert_map(split, approximation(C, C[own]))


@pytest.mark.parametrize("similarity", ["squared", "linear", "exp", "gauss", "local3", "rank3"])
def test_a_fold_learns_from_nothing_that_its_validation_rows_say(similarity):
    """Whatever the distances of validation rows are, training features are what they were."""
    noise = RNG.uniform(0.1, 9, (N, N))
    noise = (noise + noise.T) * (1 - np.eye(N))
    before = of_distances(np.arange(N), similarity=similarity).splits()
    for k in range(K_FOLDS):
        train, valid = parts(k)
        D = DISTANCES.copy()
        D[valid], D[:, valid] = noise[valid], noise[:, valid]
        after = of_distances(np.arange(N), D, similarity).splits()[k]
        np.testing.assert_array_equal(after.Phi[train], before[k].Phi[train])
        assert not np.array_equal(after.Phi[valid], before[k].Phi[valid])


def test_thinned_tasks_leave_rows_out_of_everything():
    task = of_vectors(np.arange(N), seed=3)
    assert task.thinned(N, rng()) is task
    thin = task.thinned(45, rng())
    absent = np.flatnonzero(thin.folds == ABSENT)
    assert len(absent) == N - 45
    np.testing.assert_array_equal(task.folds, NUMBERS)
    for k, split in enumerate(thin.splits()):
        train, valid = (np.setdiff1d(part, absent) for part in parts(k))
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.valid, valid)
        assert_map(split, approximation(K[:, train], K[np.ix_(train, train)]))


def test_few_landmarks_are_cheap_enough_as_they_are():
    task = of_vectors(FEW)
    assert task.thinned(10, rng()) is task


@pytest.mark.parametrize("landmarks", [FEW, MOST], ids=["few", "most"])
def test_splits_of_some_rows(landmarks):
    task, drawn = of_vectors(landmarks), None
    splits, same = task.splits(), task.splits(most=N)
    for before, after in zip(splits, same, strict=True):
        np.testing.assert_array_equal(before.train, after.train)
    whole = task.splits(columns=True)
    some = task.splits(most=25)
    for before, full, after in zip(splits, whole, some, strict=True):
        at = np.arange(N) if after.rows is None else after.rows
        train, valid = at[after.train], at[after.valid]
        rows = np.union1d(train, valid)
        assert len(rows) == 25
        drawn = rows if drawn is None else drawn
        np.testing.assert_array_equal(rows, drawn)  # the same of every split
        np.testing.assert_array_equal(train, np.intersect1d(before.train, rows))
        np.testing.assert_array_equal(valid, np.intersect1d(before.valid, rows))
        # a product of fewer rows may be rounded otherwise
        C, W = (np.abs(part) for part in full.columns)
        bound = (2 * rounding(len(W)) * (C @ W))[at]
        assert (np.abs(after.Phi - before.Phi[at]) <= bound).all()
        every, of_some = task.sampled_targets(), task.sampled_targets(some)
        for all_rows, mine in zip(every, of_some, strict=True):
            np.testing.assert_array_equal(mine, all_rows[at])


def test_maps_of_all_folds_are_refused_if_they_do_not_fit():
    task = of_vectors(MOST, budget=10**5)
    with pytest.raises(MemoryError, match=r"tuning on 4 folds, each with a map of 40 of the 60"):
        task.splits()


# Sums


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [False, True])
def test_folds_by_sums_and_by_rows_are_the_same(w, intercept):
    task = of_vectors(FEW, w=w, intercept=intercept)
    task, features = task.swept(by_fold=True)
    assert len(features.groups) == K_FOLDS + 1
    by_sums = task.folds_of(features)
    by_rows = task.terms_of(task.splits(features.map))
    for one, other in zip(by_sums, by_rows, strict=True):
        for name in ("G", "B", "G_valid", "B_valid", "yy_valid", "n", "n_valid"):
            a, b = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())


@pytest.mark.parametrize("landmarks", [FEW, MOST], ids=["few", "most"])
@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_the_mean_loss_is_a_loop_over_folds_by_hand(landmarks, w):
    task = of_vectors(landmarks, w=w)
    task, features = task.swept(by_fold=not task.honest)
    loss = averaged(task.folds_of(features), LAMBDAS)

    def fold(train, valid):
        own = np.intersect1d(landmarks, train) if task.honest else landmarks
        weights = None if w is None else w[train]
        a, b = oracles.krein_ridge(
            K[np.ix_(train, own)], K[np.ix_(own, own)], Y[train], LAMBDAS, w=weights
        )
        return K[np.ix_(valid, own)] @ a + b

    expected = oracles.cross_validated(fold, task.folds, Y, w)
    assert loss == pytest.approx(expected, rel=1e-6)


def test_features_are_sums_over_all_rows():
    task = of_vectors(FEW, w=W)
    one, grouped = (task.swept(by_fold=by_fold)[1] for by_fold in (False, True))
    Phi = K[:, FEW] @ one.map.W
    for features in (one, grouped):
        terms = total_moments(features.terms)
        np.testing.assert_allclose(terms.G, (Phi.T * W) @ Phi, rtol=0, atol=1e-9)
        np.testing.assert_allclose(terms.B, (Phi.T * W) @ Y, rtol=0, atol=1e-9)
        gram = features.gram.matrix
        np.testing.assert_allclose(gram, (K[:, FEW].T * W) @ K[:, FEW], rtol=0, atol=1e-12)
        expected = np.linalg.eigvalsh(np.cov(Phi.T, aweights=W, ddof=0))[-1]
        assert features.scale(intercept=True) == pytest.approx(expected, rel=1e-3)


def test_rows_of_every_training_part_are_the_last_group():
    folds = np.where(np.arange(N) < 20, TRAINING, 1)
    groups = of_vectors(np.arange(N), w=W, folds=folds).swept(by_fold=True)[1].groups
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


def test_leave_one_out_of_the_rows_that_are_no_landmarks():
    task = of_vectors(FEW, w=W)
    task, features = task.swept(by_fold=False)
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
    loss = task.leave_one_out(features)(np.array(LAMBDAS))[0]
    assert loss == pytest.approx(total / W[rest].sum(), rel=1e-7)


def test_rows_of_a_split_are_where_its_folds_say():
    """A split of rows in any order: FoldRows takes places, not row numbers."""
    Phi = RNG.normal(size=(N, 4))
    train, valid = parts(1)
    shuffled = FoldRows(Phi, np.ones(4), RNG.permutation(train), RNG.permutation(valid))
    ordered = FoldRows(Phi, np.ones(4), train, valid)
    one, other = (split.terms(Y, W, intercept=True) for split in (shuffled, ordered))
    np.testing.assert_allclose(one.G, other.G, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.B_valid, other.B_valid, rtol=0, atol=1e-12)


# Values


def test_a_task_is_not_changed_by_what_is_made_of_it():
    task = of_distances(FEW)
    before = task.sample.C.copy()
    other = task.using("exp")
    assert other is not task
    assert (task.similarity, other.similarity) == ("squared", "exp")
    np.testing.assert_array_equal(task.sample.C, before)
    assert not np.array_equal(other.sample.C, before)
    with pytest.raises(FrozenInstanceError):
        task.folds = None


def test_exact_maps_have_sums_of_their_features():
    """W'(C'C)W would square the condition: where features are few they are formed."""
    task, features = of_vectors(np.arange(N), w=W).swept(by_fold=True)
    assert features.exact_terms is not None
    Phi = K @ features.map.W
    for g, terms in enumerate(features.terms[:K_FOLDS]):
        here = g == NUMBERS
        expected = (Phi[here].T * W[here]) @ Phi[here]
        np.testing.assert_allclose(terms.G, expected, rtol=0, atol=1e-10)
    assert len(task.numbers) == N


def test_a_rank_cuts_the_map_of_every_fold():
    task = of_vectors(MOST)
    task = replace(task, spec=replace(task.spec, rank=6))
    for k, split in enumerate(task.splits()):
        train, _ = parts(k)
        own = np.intersect1d(MOST, train)
        whole = approximation(K[np.ix_(train, own)], K[np.ix_(own, own)])
        assert split.Phi.shape == (N, 6)
        Phi = split.Phi[train]
        expected = oracles.best_rank(whole, 6)
        np.testing.assert_allclose((Phi * split.S) @ Phi.T, expected, rtol=0, atol=1e-6)


def test_similarity_features_are_the_similarities():
    task = of_vectors(FEW, kind=SimilarityFeatures())
    for split in task.splits():
        np.testing.assert_allclose(split.Phi, K[:, FEW], rtol=0, atol=1e-13)
    _, features = task.swept(by_fold=False)
    whole = features.whole(intercept=False)
    np.testing.assert_allclose(whole.G, K[:, FEW].T @ K[:, FEW], rtol=0, atol=1e-12)
