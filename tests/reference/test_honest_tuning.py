"""Tuning against loops over folds by hand; and that it does not see the map it is judged on."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    Landmarks,
    SimilarityRidge,
)
from kreinlearn.kernels import DeltaGauss, Gaussian
from kreinlearn.learn.search import MeanLoss
from tests import oracles
from tests.bounds import left_out_error

RNG = np.random.default_rng(41)
N = 110
X = RNG.normal(size=(N, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.2 * RNG.normal(size=(N, 2))
LABELS = np.digitize(Y[:, 1], np.quantile(Y[:, 1], [0.2, 0.6]))
SIGNS = np.where(LABELS[:, None] == np.arange(3), 1.0, -1.0)
W = RNG.uniform(0.3, 2, N)
KERNEL = DeltaGauss(width=6.0, ratio=4.0)
K = oracles.delta_gauss(X, X, 6.0, 4.0)
FEW, MOST = RNG.permutation(N)[:15], RNG.permutation(N)[:80]
DISTANCES = np.abs(X[:, None] - X[None]).sum(2) ** 0.7 * (1 + 0.2 * np.abs(np.sin(K * 50)))
DISTANCES = 0.5 * (DISTANCES + DISTANCES.T) * (1 - np.eye(N))


def by_one_map(C, Z, penalties, Y=Y, **params):
    """Folds that share the map of all landmarks; landmark rows are always trained on."""

    def fold(train, valid):
        a, b = oracles.krein_ridge(C[train], C[Z], Y[train], penalties, **weights(params, train))
        return C[valid] @ a + b

    return fold


def by_own_maps(K, Z, penalties, Y=Y, **params):
    """Folds with a map each, of those landmarks that it trains on.

    Weights mean repetition if all objects are landmarks.
    """

    def fold(train, valid):
        own = np.intersect1d(Z, train)
        C, K_ZZ, mine = K[np.ix_(train, own)], K[np.ix_(own, own)], weights(params, train)
        if len(own) == len(train):
            a, b = oracles.exact_ridge(K_ZZ, Y[train], penalties, **mine)
        else:
            a, b = oracles.krein_ridge(C, K_ZZ, Y[train], penalties, **mine)
        return K[np.ix_(valid, own)] @ a + b

    return fold


def by_own_similarities(similarity, Z, penalties, Y=Y):
    """The same with similarities made of distances by the landmarks of the training part."""

    def fold(train, valid):
        own = np.intersect1d(Z, train)
        C = similarity(DISTANCES[:, own], DISTANCES[np.ix_(own, own)], own)
        a, b = oracles.krein_ridge(C[train], C[own], Y[train], penalties)
        return C[valid] @ a + b

    return fold


def weights(params, rows):
    return params if params.get("w") is None else {**params, "w": params["w"][rows]}


def trials_of(model):
    """The penalties chosen, and three that were tried, with their losses."""
    yield model.lambda_plus_, model.lambda_minus_, model.cv_loss_
    yield from model.cv_trials_[[0, len(model.cv_trials_) // 2, -1]]


# The loss that is minimised

OPTIONS = {
    "plain": {},
    "weighted": {"w": W},
    "no constant": {"intercept": False},
    "both": {"w": W, "intercept": False},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_few_landmarks_share_one_map_and_are_not_validated(options):
    model = KreinRidge(
        KERNEL, landmarks=FEW, fit_intercept=options.get("intercept", True), random_state=0
    ).fit(X, Y, sample_weight=options.get("w"))
    assert (model.folds_[FEW] == -1).all()
    others = np.delete(model.folds_, FEW)
    assert set(others) == set(range(5))
    for *penalties, loss in trials_of(model):
        fold = by_one_map(K[:, FEW], FEW, penalties, **options)
        expected = oracles.cross_validated(fold, model.folds_, Y, options.get("w"))
        assert loss == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("given", [{"landmarks": None}, {"landmarks": MOST}], ids=["all", "most"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_many_landmarks_make_a_map_in_every_fold(given, options):
    model = KreinRidge(
        KERNEL, fit_intercept=options.get("intercept", True), cv=5, random_state=0, **given
    ).fit(X, Y, sample_weight=options.get("w"))
    np.testing.assert_array_equal(np.bincount(model.folds_), np.full(5, N // 5))
    Z, leaks = model.landmark_indices_, []
    for *penalties, loss in trials_of(model):
        fold = by_own_maps(K, Z, penalties, **options)
        expected = oracles.cross_validated(fold, model.folds_, Y, options.get("w"))
        assert loss == pytest.approx(expected, rel=1e-7)
        shared = by_one_map(K[:, Z], Z, penalties, **options)
        leaks += [oracles.cross_validated(shared, model.folds_, Y, options.get("w")) / loss - 1]
    assert np.abs(leaks).max() > 0.01


@pytest.mark.parametrize("cv", [None, "loo"], ids=["two rounds of folds", "one at a time"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_all_objects_are_left_out(options, cv):
    some = slice(0, 50)
    options = weights(options, some)
    model = KreinRidge(
        KERNEL, landmarks=None, fit_intercept=options.get("intercept", True), cv=cv
    ).fit(X[some], Y[some], sample_weight=options.get("w"))
    assert model.folds_.shape == ((50, 2) if cv is None else (50,))
    for *penalties, loss in trials_of(model):
        if cv is None:
            fold = by_own_maps(K, np.arange(50), penalties, **options)
            expected = oracles.cross_validated(fold, model.folds_, Y[some], options.get("w"))
            assert loss == pytest.approx(expected, rel=1e-7)
        else:
            expected = oracles.left_out_loss(K[some, some], Y[some], penalties, **options)
            assert loss == pytest.approx(expected, abs=left_out_error(expected, Y))


@pytest.mark.parametrize(("n", "some", "rounds"), [(12, 700, 1), (13, 700, 2), (60, 50, 0)])
def test_how_many_objects_are_left_out_depends_on_their_number(n, some, rounds, monkeypatch):
    """All refits up to 12 objects; the closed form beyond as many as have folds."""
    monkeypatch.setattr("kreinlearn.learn.folds.SOME", some)
    model = KreinRidge(KERNEL, landmarks=None).fit(X[:n], Y[:n])
    penalties = model.lambda_plus_, model.lambda_minus_
    expected = oracles.left_out_loss(K[:n, :n], Y[:n], penalties)
    if rounds:
        assert np.reshape(model.folds_, (n, -1)).shape[1] == rounds
        assert len(np.unique(model.folds_)) == (n if rounds == 1 else 5)
        fold = by_own_maps(K, np.arange(n), penalties)
        expected = oracles.cross_validated(fold, model.folds_, Y[:n])
    assert model.cv_loss_ == pytest.approx(expected, abs=left_out_error(expected, Y))


def centred(D_XZ, D_ZZ, Z):
    return oracles.centred_on(D_XZ, D_XZ, D_ZZ, D_ZZ)


def exponential(D_XZ, D_ZZ, Z):
    return np.exp(-D_XZ / np.median(D_ZZ[~np.eye(len(Z), dtype=bool)]))


SIMILARITIES = {"squared": centred, "exp": exponential}


@pytest.mark.parametrize("given", [{"landmarks": None}, {"landmarks": MOST}], ids=["all", "most"])
@pytest.mark.parametrize("transform", SIMILARITIES)
def test_a_dissimilarity_is_transformed_by_the_training_part_alone(given, transform):
    model = KreinRidge(
        "precomputed_dissimilarity", similarity=transform, cv=5, random_state=0, **given
    ).fit(DISTANCES, Y)
    Z, similarity, leaks = model.landmark_indices_, SIMILARITIES[transform], []
    by_all = np.zeros((N, N))
    by_all[:, Z] = similarity(DISTANCES[:, Z], DISTANCES[np.ix_(Z, Z)], Z)
    for *penalties, loss in trials_of(model):
        fold = by_own_similarities(similarity, Z, penalties)
        assert loss == pytest.approx(oracles.cross_validated(fold, model.folds_, Y), rel=1e-7)
        shared = by_own_maps(by_all, Z, penalties)  # maps of their own, but one transformation
        leaks += [oracles.cross_validated(shared, model.folds_, Y) / loss - 1]
    assert np.abs(leaks).max() > 1e-5


@pytest.mark.parametrize("cv", [None, "loo"], ids=["two rounds of folds", "one at a time"])
@pytest.mark.parametrize("transform", SIMILARITIES)
def test_an_object_that_is_left_out_is_not_in_the_reference_of_a_dissimilarity(transform, cv):
    """Also if one at a time is asked for: then each of few objects is a fold."""
    D, some, n = DISTANCES[:50, :50], Y[:50], 50
    model = KreinRidge("precomputed_dissimilarity", similarity=transform, landmarks=None, cv=cv)
    model.fit(D, some)
    for *penalties, loss in trials_of(model):
        fold = by_own_similarities(SIMILARITIES[transform], np.arange(n), penalties)
        expected = oracles.cross_validated(fold, model.folds_, some)
        assert loss == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("transform", SIMILARITIES)
def test_few_landmarks_of_a_dissimilarity_are_its_reference(transform):
    model = KreinRidge(
        "precomputed_dissimilarity", similarity=transform, landmarks=FEW, random_state=0
    ).fit(DISTANCES, Y)
    C = SIMILARITIES[transform](DISTANCES[:, FEW], DISTANCES[np.ix_(FEW, FEW)], FEW)
    for *penalties, loss in trials_of(model):
        fold = by_one_map(C, FEW, penalties)
        assert loss == pytest.approx(oracles.cross_validated(fold, model.folds_, Y), rel=1e-6)
    a, b = oracles.krein_ridge(C, C[FEW], Y, (model.lambda_plus_, model.lambda_minus_))
    np.testing.assert_allclose(model.predict(DISTANCES), C @ a + b, atol=1e-6)


def test_the_transformation_of_few_landmarks_is_chosen_by_the_same_loss():
    model = KreinRidge("precomputed_dissimilarity", landmarks=FEW, random_state=0)
    model.fit(DISTANCES, Y)
    choices = {choice.similarity: choice for choice in model.choices_}
    assert model.similarity_ == model.choices_[0].similarity
    assert model.choices_[0].loss == min(choice.loss for choice in model.choices_[:2])
    Z = model.landmark_indices_
    for name, similarity in SIMILARITIES.items():
        C = similarity(DISTANCES[:, Z], DISTANCES[np.ix_(Z, Z)], Z)
        fold = by_one_map(C, Z, choices[name].tuned.values)
        expected = oracles.cross_validated(fold, model.folds_, Y)
        assert choices[name].loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("cv", [5, None, "loo"])
def test_transformations_of_all_objects_are_blended_by_the_same_loss(cv):
    model = KreinRidge("precomputed_dissimilarity", landmarks=None, cv=cv, random_state=0)
    model.fit(DISTANCES, Y)
    blend, *alone = model.choices_
    assert model.similarity_ == blend.similarity
    assert blend.loss == pytest.approx(model.cv_loss_)
    assert [choice.loss for choice in alone] == sorted(choice.loss for choice in alone)
    every, choices = np.arange(N), {choice.similarity: choice for choice in alone}
    for name, similarity in SIMILARITIES.items():
        fold = by_own_similarities(similarity, every, choices[name].tuned.values)
        expected = oracles.cross_validated(fold, model.folds_, Y)
        assert choices[name].loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("Z", [MOST, FEW], ids=["most", "few"])
def test_a_classifier_is_tuned_on_signs(Z):
    model = KreinRidgeClassifier(KERNEL, random_state=0, landmarks=Z).fit(X, LABELS)
    penalties, honest = (model.lambda_plus_, model.lambda_minus_), len(Z) > N / 2

    def fold_of(penalties, Y):
        return by_own_maps(K, Z, penalties, Y) if honest else by_one_map(K[:, Z], Z, penalties, Y)

    expected = oracles.cross_validated(fold_of(penalties, SIGNS), model.folds_, SIGNS)
    assert model.cv_loss_ == pytest.approx(expected, rel=1e-5)


def test_all_objects_tell_each_class_from_the_rest():
    """One eigenbasis serves all classes, and their signs are what is left out."""
    every = np.arange(50)
    model = KreinRidgeClassifier(KERNEL, landmarks=None, random_state=0).fit(X[:50], LABELS[:50])
    for *penalties, loss in trials_of(model):
        fold = by_own_maps(K, every, penalties, SIGNS)
        expected = oracles.cross_validated(fold, model.folds_, SIGNS[:50])
        assert loss == pytest.approx(expected, rel=1e-7)
    for folds in model.folds_.T:  # each of which has all classes in proportion
        counts = [np.bincount(LABELS[:50][folds == k], minlength=3) for k in range(5)]
        assert np.ptp(counts, axis=0).max() <= 1


def test_rows_that_are_not_held_count_as_well():
    many = RNG.normal(size=(9000, 3))
    y = np.sin(2 * many[:, 0]) + many[:, 1] * many[:, 2] + 3
    Z = np.arange(11, 9000, 900)
    model = KreinRidge(KERNEL, landmarks=Z, random_state=0).fit(many, y)
    assert np.sum(model.folds_ < 0) == len(Z)
    C = oracles.delta_gauss(many, many[Z], 6.0, 4.0)
    fold = by_one_map(C, Z, (model.lambda_plus_, model.lambda_minus_), y)
    expected = oracles.cross_validated(fold, model.folds_, y)
    assert model.cv_loss_ == pytest.approx(expected, rel=1e-7)


SMALL_POOLS = [Landmarks(np.arange(6), pool=60), Landmarks(6, "uniform", pool=60)]


@pytest.mark.parametrize("landmarks", SMALL_POOLS, ids=["given", "uniform"])
def test_leave_one_out_looks_at_a_sample_of_many_rows(landmarks):
    learner = KreinRidge(KERNEL, landmarks=landmarks, cv="loo", random_state=0)
    learner.fit(X, Y)
    assert 0 < learner.cv_loss_ < 2 * (Y**2).sum(1).max()


def test_similarity_features_are_tuned_by_the_same_loss():
    model = SimilarityRidge(KERNEL, landmarks=FEW, random_state=0).fit(X, Y)

    def fold(train, valid):
        F, mean, ybar = K[np.ix_(train, FEW)], K[np.ix_(train, FEW)].mean(0), Y[train].mean(0)
        penalty = len(train) * model.lambda_plus_ * np.eye(len(FEW))
        a = np.linalg.solve((F - mean).T @ (F - mean) + penalty, (F - mean).T @ (Y[train] - ybar))
        return (K[np.ix_(valid, FEW)] - mean) @ a + ybar

    expected = oracles.cross_validated(fold, model.folds_, Y)
    assert model.cv_loss_ == pytest.approx(expected, rel=1e-7)


def test_variance_constrained_is_tuned_by_the_same_loss():
    model = KreinVCRidge(KERNEL, landmarks=FEW, radius="tuned", random_state=0).fit(X, Y)
    Phi, S = oracles.krein_features(K[:, FEW], K[np.ix_(FEW, FEW)])
    deviation = Y.std(0)
    factor = model.radius_ / deviation
    assert factor[0] == pytest.approx(factor[1], rel=1e-10)
    trials = model.cv_trials_
    even = np.abs(np.log10(trials[:, 0] / trials[:, 1])) < 2
    for lambda_plus, lambda_minus, factor, loss in trials[even][::8]:

        def fold(train, valid, lambdas=(lambda_plus, lambda_minus), factor=factor):
            F, mean, ybar = Phi[train], Phi[train].mean(0), Y[train].mean(0)
            penalty = len(train) * np.where(S > 0, *lambdas)
            radii = factor * deviation * np.sqrt(len(train))
            solutions = [
                oracles.variance_constrained(F - mean, y, penalty, r)
                for y, r in zip((Y[train] - ybar).T, radii, strict=True)
            ]
            return (Phi[valid] - mean) @ np.column_stack(solutions) + ybar

        expected = oracles.cross_validated(fold, model.folds_, Y)
        assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("given", [{"landmarks": None}, {"landmarks": FEW}], ids=["all", "few"])
def test_the_svm_is_tuned_by_its_own_loss(given):
    y = SIGNS[:, 1]
    model = KreinSVC(KERNEL, fit_intercept=False, random_state=0, **given).fit(X, y)
    Z, total, rounds = model.landmark_indices_, 0.0, np.reshape(model.folds_, (N, -1)).T
    assert len(rounds) == (2 if given["landmarks"] is None else 1)
    for folds, k in product(rounds, range(5)):
        train, valid = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
        own = Z if len(Z) < N else train
        Phi, S = oracles.krein_features(K[:, own], K[np.ix_(own, own)])
        F = Phi / np.sqrt(len(train) * np.where(S > 0, model.lambda_plus_, model.lambda_minus_))
        machine = LinearSVC(loss="squared_hinge", dual=False, C=0.5, fit_intercept=False,
                            tol=1e-10, max_iter=100_000).fit(F[train], y[train])  # fmt: skip
        total += np.sum(np.maximum(0, 1 - y[valid] * machine.decision_function(F[valid])) ** 2)
    assert model.cv_loss_ == pytest.approx(total / np.sum(model.folds_ >= 0), rel=1e-5)


# Leave-one-out, folds of one's own


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_leave_one_out_of_one_map(options):
    """Leaving an object out leaves n lambda as it is."""
    w = options.get("w", np.ones(N))
    model = KreinRidge(
        KERNEL, landmarks=FEW, cv="loo", fit_intercept=options.get("intercept", True)
    ).fit(X, Y, sample_weight=options.get("w"))
    rest = np.delete(np.arange(N), FEW)
    np.testing.assert_array_equal(model.folds_[rest], rest)
    for lambda_plus, lambda_minus, loss in trials_of(model):

        def fold(train, valid, lambdas=(lambda_plus, lambda_minus)):
            share = w.sum() / w[train].sum()
            return by_one_map(K[:, FEW], FEW, share * np.array(lambdas), **options)(train, valid)

        expected = oracles.cross_validated(fold, model.folds_, Y, options.get("w"))
        assert loss == pytest.approx(expected, rel=1e-6)


def test_leave_one_out_in_exact_mode_makes_a_map_of_the_others():
    """Leaving an object out leaves n lambda as it is, and one map of all would tell its target."""
    few = np.arange(40)
    K_few, Y_few, leaks = K[:40, :40], Y[:40], []
    model = KreinRidge(KERNEL, landmarks=None, cv="loo").fit(X[:40], Y_few)
    np.testing.assert_array_equal(model.folds_, few)
    for *penalties, loss in trials_of(model):
        expected = oracles.left_out_loss(K_few, Y_few, penalties)
        assert loss == pytest.approx(expected, abs=left_out_error(expected, Y_few))
        shared = by_one_map(K_few, few, 40 / 39 * np.array(penalties), Y_few)
        leaks += [oracles.cross_validated(shared, few, Y_few) / loss - 1]
    assert np.abs(leaks).max() > 0.01


def test_a_splitter_gives_the_folds():
    model = KreinRidge(KERNEL, landmarks=None, cv=KFold(4)).fit(X, Y)
    np.testing.assert_array_equal(model.folds_, np.repeat(range(4), [28, 28, 27, 27]))


# What is chosen


@pytest.mark.parametrize("cv", [5, "loo"])
def test_the_search_is_as_good_as_a_grid(cv):
    """Exact mode without a constant: every split of a fine grid, from one spectrum for each."""
    model = KreinRidge(KERNEL, landmarks=None, fit_intercept=False, cv=cv, random_state=0)
    model.fit(X, Y)
    grid = np.logspace(-8, 4, 37)
    losses = np.zeros((37, 37))
    for k in np.unique(model.folds_):
        train, valid = np.flatnonzero(model.folds_ != k), np.flatnonzero(model.folds_ == k)
        n = N if cv == "loo" else len(train)  # leaving one out keeps n lambda
        D, U = np.linalg.eigh(K[np.ix_(train, train)])
        kept = np.abs(D) > oracles.CUT * np.abs(D).max()
        F, B = K[np.ix_(valid, train)] @ U, U.T @ Y[train]
        parts = [
            [(F[:, s] / (D[s] + np.sign(D[s]) * n * l)) @ B[s] for l in grid]
            for s in (kept & (D > 0), kept & (D < 0))
        ]
        residual = Y[valid] - np.array(parts[0])[:, None] - np.array(parts[1])[None]
        losses += (residual**2).sum((2, 3)) / N
    assert model.cv_trials_[:, -1].min() < 1.001 * losses.min()


def test_ties_go_to_the_larger_penalty():
    """A positive definite kernel has no negative coordinate: any lambda_minus does."""
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(2))
    model = KreinRidge(Gaussian(1.0), landmarks=None, random_state=0).fit(X, Y)
    scale = np.linalg.eigvalsh(K).max() / N
    assert model.lambda_minus_ == pytest.approx(1e6 * scale, rel=0.01)
    assert model.lambda_plus_ < scale
    few = KreinRidge(Gaussian(1.0), landmarks=FEW, random_state=0).fit(X, Y)
    Phi = oracles.krein_features(K[:, FEW], K[np.ix_(FEW, FEW)])[0]
    scale = np.linalg.norm(Phi - Phi.mean(0), 2) ** 2 / N
    assert few.lambda_minus_ == pytest.approx(1e6 * scale, rel=0.01)


def test_a_negative_part_that_no_fold_sees_is_switched_off():
    """Objects i and i + n/2 are more similar than their norms allow, and never trained together."""
    half = N // 2
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(2))
    K[np.arange(half), np.arange(half, N)] += 1.5
    K[np.arange(half, N), np.arange(half)] += 1.5
    model = KreinRidge("precomputed", landmarks=None, cv=KFold(2)).fit(K, Y)
    assert (model.signature_ < 0).any()
    scale = np.abs(np.linalg.eigvalsh(K)).max() / N
    assert model.lambda_minus_ == pytest.approx(1e6 * scale, rel=0.02)
    for *penalties, loss in trials_of(model):
        fold = by_own_maps(K, np.arange(N), (penalties[0], 1.0))
        assert loss == pytest.approx(oracles.cross_validated(fold, model.folds_, Y), rel=1e-5)


def test_a_given_penalty_stays():
    model = KreinRidge(KERNEL, landmarks=None, lambda_plus=0.3, random_state=0).fit(X, Y)
    assert model.lambda_plus_ == 0.3
    assert (model.cv_trials_[:, 0] == 0.3).all()
    tied = KreinRidge(KERNEL, landmarks=None, lambda_minus="equal", random_state=0).fit(X, Y)
    assert tied.lambda_plus_ == tied.lambda_minus_
    np.testing.assert_array_equal(tied.cv_trials_[:, 0], tied.cv_trials_[:, 1])
    fold = by_own_maps(K, np.arange(N), (tied.lambda_plus_, tied.lambda_minus_))
    assert tied.cv_loss_ == pytest.approx(oracles.cross_validated(fold, tied.folds_, Y), rel=1e-7)


# The leaky criterion: one map of all objects, the held-out ones included

GRID = np.append(np.logspace(-10, 1, 12), 1e6)  # of the largest |eigenvalue| over n


def leaky_choice(K, Y, folds, *, equal):
    """The penalties of smallest K-fold loss on the features of all objects, in units of scale."""
    D, U = np.linalg.eigh(K)
    Phi, S, scale = U * np.sqrt(np.abs(D)), np.sign(D), np.abs(D).max() / len(K)
    losses = {}
    for lambdas in ((p, m) for p in GRID for m in ([p] if equal else GRID)):
        penalty = np.where(S > 0, *lambdas) * scale

        def fold(train, valid, penalty=penalty):
            mean, ybar = Phi[train].mean(0), Y[train].mean(0)
            F = (Phi[train] - mean) / np.sqrt(penalty)
            dual = np.linalg.solve(F @ F.T + len(train) * np.eye(len(train)), Y[train] - ybar)
            return (Phi[valid] - mean) / np.sqrt(penalty) @ (F.T @ dual) + ybar

        losses[lambdas] = oracles.cross_validated(fold, folds, Y)
    return min(losses, key=losses.get), scale


def groups_with_noise(seed, signs, n=120, n_new=300, n_groups=8, noise=0.4):
    """Similarity of objects of a group, positive or negative, under noise of both signs.

    Targets are a parity of the group numbers for each sign.
    """
    rng = np.random.default_rng(seed)
    total = n + n_new
    groups = rng.integers(n_groups, size=(len(signs), total))
    E = np.triu(rng.normal(size=(total, total)), 1)
    K = noise * (E + E.T)
    for sign, g in zip(signs, groups, strict=True):
        K += sign * (g[:, None] == g)
    Y = np.where(groups.T % 2, 1.0, -1.0)
    return K[:n, :n], K[n:, :n], Y[:n], Y[n:]


SEEDS = range(5)


def compared(signs, cv, make):
    """Penalties and test errors of the leaky choice and of ours, a row a seed."""
    rows = []
    for seed in SEEDS:
        K, K_new, Y, Y_new = groups_with_noise(seed, signs)
        ours = make(cv=cv, random_state=0).fit(K, Y if len(signs) > 1 else Y[:, 0])
        equal = ours.lambda_minus == "equal"
        lambdas, scale = leaky_choice(K, Y, ours.folds_, equal=equal)
        leaky = make(lambda_plus=lambdas[0] * scale, lambda_minus=lambdas[1] * scale)
        leaky.fit(K, Y if len(signs) > 1 else Y[:, 0])
        errors = [
            np.mean(np.sign(model.predict(K_new)).reshape(Y_new.shape) != Y_new)
            for model in (leaky, ours)
        ]
        rows.append([max(lambdas), *errors, ours.lambda_plus_ / scale])
    return np.array(rows).T


def test_the_leaky_criterion_fails_on_a_small_indefinite_matrix_and_ours_does_not():
    """One penalty, a positive definite signal: the leaky choice is the smallest value there is."""

    def classifier(**params):
        return KreinRidgeClassifier(
            "precomputed", landmarks=None, **{"lambda_minus": "equal", **params}
        )

    lambdas, leaky, ours, _ = compared([1.0], 2, classifier)
    assert (lambdas < 1e-8).all()
    assert leaky.mean() > 0.3
    assert ours.max() < 0.04


def test_two_leaky_penalties_fail_as_well():
    """Signals of both signs: neither part can be switched off."""

    def regressor(**params):
        return KreinRidge("precomputed", landmarks=None, **params)

    lambdas, leaky, ours, _ = compared([1.0, -1.0], 2, regressor)
    assert (lambdas < 1e-8).all()
    assert leaky.mean() > 0.25
    assert ours.max() < 0.05


def test_more_folds_do_not_save_the_leaky_criterion():
    def regressor(**params):
        return KreinRidge("precomputed", landmarks=None, **params)

    lambdas, leaky, ours, lambda_plus = compared([1.0, -1.0], None, regressor)
    assert (lambdas < lambda_plus).all()
    assert (leaky > ours).all()
    assert leaky.mean() > 4 * ours.mean()


def test_tuned_classifier_with_all_defaults_is_right_out_of_sample():
    errors = []
    for seed in SEEDS:
        K, K_new, Y, Y_new = groups_with_noise(seed, [1.0])
        model = KreinRidgeClassifier("precomputed", random_state=0).fit(K, Y[:, 0])
        errors.append(np.mean(model.predict(K_new) != Y_new[:, 0]))
    assert max(errors) < 0.04


@pytest.mark.parametrize("learner", [KreinRidge, KreinVCRidge, KreinRidgeClassifier, KreinSVC])
def test_a_large_fold_of_noise_does_not_mislead_the_search(learner, monkeypatch):
    """With many rows the largest fold leads the search: here it says that nothing can be learned.

    The end of the search is on all folds, and is as good as a search that was so from the start.
    """
    rng, n = np.random.default_rng(0), 30_000
    rows = rng.normal(size=(n, 5))
    y = np.sin(rows[:, 0]) + 0.5 * rows[:, 1] * rows[:, 2] + 0.3 * rng.normal(size=n)
    noise, *others = np.array_split(np.arange(n), [12_000, 21_000])
    y[noise] = rng.normal(size=len(noise))
    y = y > 0 if learner in (KreinRidgeClassifier, KreinSVC) else y
    cv = [(np.setdiff1d(np.arange(n), part), part) for part in (noise, *others)]
    led, of_one_fold = [], MeanLoss.of_one_fold

    def counted(self, n):
        found = of_one_fold(self, n)
        led.append(found is not None)
        return found

    losses = []
    for method in (counted, lambda self, n: None):
        monkeypatch.setattr(MeanLoss, "of_one_fold", method)
        model = learner("delta_gauss", landmarks=20, cv=cv, random_state=0).fit(rows, y)
        losses.append(model.cv_loss_)
    assert any(led)
    assert losses[0] <= losses[1] * (1 + 1e-3)
