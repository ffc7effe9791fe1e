"""All objects as landmarks: similarities, folds and solutions against plain numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.kernels import Precomputed
from kreinlearn.kernels.dissimilarity import TRANSFORMS
from kreinlearn.learn.comparison import RoundsLoss, random_signs
from kreinlearn.learn.exact import (
    by_folds,
    can_be_tuned,
    comparison_of,
    decomposed,
    eigenbasis_map,
    exact_bytes,
    exact_features,
    exact_sums,
    has_folds,
    solve_exact,
    spread_out,
    terms_of,
    tune_exactly,
    tuning_loss,
)
from kreinlearn.learn.folds import TRAINING
from kreinlearn.learn.search import Unknowns
from kreinlearn.nystrom.core import CORE_RTOL, SimilarityFeatures
from kreinlearn.pairs.pairs import unit_of
from kreinlearn.solvers.exact import LeaveOneOutLoss
from tests import oracles
from tests.bounds import left_out_error, rounding
from tests.unit.learn.learning import (
    DISTANCES,
    FEW,
    LAMBDAS,
    NUMBERS,
    K,
    N,
    W,
    Y,
    averaged,
    of_distances,
    of_vectors,
    opened,
    parts,
    rng,
    task_of,
)

ALL = np.arange(N)
SHUFFLED = rng(5).permutation(N)
EPS = float(np.finfo(np.float64).eps)
orders = pytest.mark.parametrize("order", [ALL, SHUFFLED], ids=["sorted", "shuffled"])
weightings = pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])


def similarities(task, places=None):
    return task.sample.square(task.similarity, places)


def centred(D_XZ, D_ZZ):
    return oracles.centred_on(D_XZ, D_XZ, D_ZZ, D_ZZ)


def exponential(D_XZ, D_ZZ):
    return np.exp(-D_XZ / np.median(D_ZZ[~np.eye(len(D_ZZ), dtype=bool)]))


SIMILARITIES = {"squared": centred, "exp": exponential}


def condition(matrix, lambdas=LAMBDAS):
    """By how much a rounding error of similarities may grow in a model of these penalties."""
    return np.abs(matrix).sum(axis=0).max() / (len(matrix) * min(lambdas))


# Similarities


@orders
def test_similarities_are_in_the_order_of_the_landmarks(order):
    task = of_vectors(order)
    assert task.exact
    # a Gaussian of a squared distance, from sums of a few products
    allowed = rounding(20) * 2 * np.abs(K).max() * 10
    assert np.abs(similarities(task) - K[np.ix_(order, order)]).max() <= allowed
    some = np.array([3, 4, 17, 40])
    at = order[some]
    assert np.abs(similarities(task, some) - K[np.ix_(at, at)]).max() <= allowed


@orders
@pytest.mark.parametrize("name", SIMILARITIES)
def test_a_part_of_a_dissimilarity_is_transformed_by_itself(order, name):
    task = of_distances(order, similarity=name)
    some = np.sort(rng(1).permutation(N)[:20])
    for places in (None, some):
        D = DISTANCES[np.ix_(order, order)]
        D = D if places is None else D[np.ix_(places, places)]
        wanted = SIMILARITIES[name](D, D)
        allowed = rounding(4 * len(D)) * max(np.square(D).max(), 1.0)
        assert np.abs(similarities(task, places) - wanted).max() <= allowed
    part = similarities(task, some)
    assert np.abs(part - similarities(task)[np.ix_(some, some)]).max() > 1e-3


def test_some_landmarks_are_not_all_objects():
    assert not of_vectors(FEW).exact
    assert not of_vectors(np.arange(N - 1)).exact
    assert not replace(of_vectors(ALL), spec=replace(of_vectors(ALL).spec, rank=5)).exact
    weightless = np.where(ALL == 7, 0.0, 1.0)
    assert not of_vectors(np.delete(ALL, 7)).exact
    pairs, sample = opened(Precomputed(), K, np.delete(ALL, 7), rows=np.delete(ALL, 7))
    assert task_of(pairs, sample, w=weightless).exact


# Folds


def by_hand(similarity, order, k, w, lambdas, *, intercept, signed=True):
    """Predictions of a fold, its targets and weights, from the definition."""
    train, valid = parts(k)
    among, rows = similarity(train, train), similarity(valid, train)
    w_train = None if w is None else w[train]
    if signed:
        a, b = oracles.exact_ridge(among, Y[train], lambdas, w=w_train, intercept=intercept)
        return rows @ a + b, valid
    weights = np.ones(len(train)) if w is None else w_train
    root = np.sqrt(weights)[:, None]
    F, ones = root * among * root.T, root * intercept
    n = weights.sum()
    system = np.vstack(
        [np.hstack([F, ones]), np.eye(len(train) + 1)[:-1] * np.sqrt(n * lambdas[0])]
    )
    target = np.vstack([root * Y[train], np.zeros((len(train), Y.shape[1]))])
    solution = np.linalg.lstsq(system, target, rcond=None)[0]
    return rows @ (root * solution[:-1]) + solution[-1], valid


@orders
@weightings
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("signed", [True, False])
def test_folds_are_refits(order, w, intercept, signed):
    kind = None if signed else SimilarityFeatures()
    task = of_vectors(order, w=w, intercept=intercept, kind=kind)
    folds = by_folds(task).folds
    assert len(folds) == len(np.unique(NUMBERS))
    for k, fold in enumerate(folds):
        predicted, valid = by_hand(
            lambda a, b: K[np.ix_(a, b)], order, k, w, LAMBDAS, intercept=intercept, signed=signed
        )
        weights = np.ones(len(valid)) if w is None else w[valid]
        wanted = float(weights @ np.square(predicted - Y[valid]).sum(axis=1))
        loss, _ = fold.loss_and_gradient(np.array(LAMBDAS))
        squared = 1 if signed else 2  # similarities are squared where they are features
        allowed = 100 * N * EPS * condition(K) ** squared * wanted
        assert loss == pytest.approx(wanted, abs=allowed)
        assert fold.n_valid == pytest.approx(weights.sum(), rel=rounding(N))


@orders
@weightings
@pytest.mark.parametrize("name", SIMILARITIES)
def test_folds_transform_dissimilarities_by_their_training_part(order, w, name):
    task = of_distances(order, similarity=name, w=w)
    total = weight = 0.0
    for k in range(task.n_folds):
        train, _ = parts(k)
        D_ZZ = DISTANCES[np.ix_(train, train)]

        def similarity(a, b, D_ZZ=D_ZZ):
            return SIMILARITIES[name](DISTANCES[np.ix_(a, b)], D_ZZ)

        predicted, valid = by_hand(similarity, order, k, w, LAMBDAS, intercept=True)
        weights = np.ones(len(valid)) if w is None else w[valid]
        total += float(weights @ np.square(predicted - Y[valid]).sum(axis=1))
        weight += weights.sum()
    of_all = SIMILARITIES[name](DISTANCES, DISTANCES)
    allowed = 100 * N * EPS * condition(of_all) * total / weight
    assert averaged(by_folds(task).folds, LAMBDAS) == pytest.approx(total / weight, abs=allowed)


def test_folds_of_a_part():
    some = np.sort(rng(2).permutation(N)[:30])
    part = by_folds(of_vectors(ALL, w=W), some).folds
    alone = of_vectors(ALL, w=W)
    for k, fold in enumerate(part):
        train, valid = (np.intersect1d(rows, some) for rows in parts(k))
        a, b = oracles.exact_ridge(K[np.ix_(train, train)], Y[train], LAMBDAS, w=W[train])
        errors = K[np.ix_(valid, train)] @ a + b - Y[valid]
        wanted = float(W[valid] @ np.square(errors).sum(axis=1))
        loss, _ = fold.loss_and_gradient(np.array(LAMBDAS))
        assert loss == pytest.approx(wanted, abs=100 * N * EPS * condition(K) * wanted)
    assert averaged(part, LAMBDAS) != averaged(by_folds(alone).folds, LAMBDAS)


@pytest.mark.parametrize("power", [-280, 280])
def test_folds_of_a_part_have_the_unit_of_the_part(power):
    """Penalties that are found on a part are tried on its folds: both divide by the same unit."""
    c, some = 2.0**power, np.sort(rng(3).permutation(N)[:30])
    task = task_of(*opened(Precomputed(), c * K, ALL))
    one = task_of(*opened(Precomputed(), K, ALL))
    for places, among in ((None, K), (some, K[np.ix_(some, some)])):
        unit = unit_of(similarities(task, places))
        np.testing.assert_array_equal(similarities(task, places), c * among)
        assert comparison_of(task, places).decomposed(terms_of(task)).unit == unit
        found = averaged(by_folds(task, places).folds, np.array(LAMBDAS) * c / unit)
        wanted = averaged(by_folds(one, places).folds, LAMBDAS)
        assert found == pytest.approx(wanted, abs=100 * N * EPS * condition(K) * wanted)


def test_a_part_of_small_similarities_has_a_unit_of_its_own():
    """The values of the part would underflow when they are squared; those of all would not."""
    c, some = 2.0**-300, np.sort(rng(3).permutation(N)[:30])
    size = np.full(N, 1.0)
    size[some] = np.sqrt(c)
    task = task_of(*opened(Precomputed(), size[:, None] * K * size, ALL))
    one = task_of(*opened(Precomputed(), K, ALL))
    unit = unit_of(c * K[np.ix_(some, some)])
    assert unit != 1.0
    found = averaged(by_folds(task, some).folds, np.array(LAMBDAS) * c / unit)
    wanted = averaged(by_folds(one, some).folds, LAMBDAS)
    assert found == pytest.approx(wanted, abs=100 * N * EPS * condition(K) * wanted)


def test_a_fold_without_a_training_or_a_validation_part_is_left_out():
    one = replace(of_vectors(ALL), folds=np.zeros(N, dtype=int))
    assert not by_folds(one).folds
    assert not has_folds(one)
    never = replace(of_vectors(ALL), folds=np.full(N, TRAINING))
    assert not by_folds(never).folds
    assert not has_folds(never)
    single = np.full(N, TRAINING)
    single[5] = 2
    tested = replace(of_vectors(ALL), folds=single)
    assert [fold.n_valid for fold in by_folds(tested).folds] == [1.0]
    assert has_folds(tested)
    assert not has_folds(tested, np.arange(5))
    assert has_folds(tested, np.arange(6))


# The loss that is tuned


def in_rounds(task, *folds):
    return replace(task, rounds=folds or (NUMBERS,))


def loss_of(task, accuracy=None):
    """The loss of a task without rounds: of objects that are left out one at a time."""
    comparison, terms = comparison_of(task), terms_of(task)
    basis = decomposed(task)
    if accuracy is None:
        return tuning_loss(task, basis)
    return comparison.loss(terms, basis, accuracy)


OTHERS = rng(11).permutation(N) % 3


@orders
@pytest.mark.parametrize("folds", [(NUMBERS,), (NUMBERS, OTHERS)], ids=["one", "two"])
def test_the_loss_is_that_of_all_rounds_of_folds(order, folds):
    task = in_rounds(of_vectors(order, w=W), *folds)

    def fold(train, valid):
        a, b = oracles.exact_ridge(K[np.ix_(train, train)], Y[train], LAMBDAS, w=W[train])
        return K[np.ix_(valid, train)] @ a + b

    wanted = oracles.cross_validated(fold, np.column_stack(folds), Y, W)
    loss = loss_of(task)
    assert isinstance(loss, RoundsLoss)
    allowed = 100 * N * EPS * condition(K) * wanted
    assert loss(np.array(LAMBDAS))[0] == pytest.approx(wanted, abs=allowed)
    trials = np.array([LAMBDAS, LAMBDAS[::-1], (1.0, 2.0)])
    one_by_one = [loss(values)[0] for values in trials]
    np.testing.assert_allclose(loss.losses(trials), one_by_one, rtol=rounding(10 * N))


@orders
@pytest.mark.parametrize("intercept", [True, False])
def test_scores_are_means_over_the_rounds_that_test_an_object(order, intercept):
    """The first round never tests ten objects, and neither tests three of them."""
    first, second = NUMBERS.copy(), OTHERS.copy()
    first[:10], second[:3] = TRAINING, TRAINING
    task = in_rounds(of_vectors(order, intercept=intercept), first, second)
    total, count = np.zeros_like(Y), np.zeros((N, 1))
    for folds in (first, second):
        for k in range(folds.max() + 1):
            train, valid = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
            among = K[np.ix_(train, train)]
            a, b = oracles.exact_ridge(among, Y[train], LAMBDAS, intercept=intercept)
            total[valid] += K[np.ix_(valid, train)] @ a + b
            count[valid] += 1
    loss = loss_of(task)
    tested = order[loss.numbers]
    np.testing.assert_array_equal(np.sort(tested), np.arange(3, N))
    wanted = (total / np.maximum(count, 1))[tested]
    allowed = 100 * N * EPS * condition(K) * np.abs(Y).max()
    assert np.abs(loss.scores(np.array(LAMBDAS)) - wanted).max() <= allowed


@orders
@weightings
def test_the_loss_is_that_of_objects_left_out(order, w):
    task = of_vectors(order, w=w)
    wanted = oracles.left_out_loss(K, Y, LAMBDAS, w=w)
    loss = loss_of(task)
    assert isinstance(loss, LeaveOneOutLoss)
    assert loss(np.array(LAMBDAS))[0] == pytest.approx(wanted, abs=left_out_error(wanted, Y))


def test_a_loss_that_need_not_be_accurate_has_fewer_nodes():
    task = of_vectors(ALL)
    rough, fine = (loss_of(task, accuracy) for accuracy in (1e-3, 1e-7))
    assert len(rough.nodes.s) < len(fine.nodes.s) == len(loss_of(task).nodes.s)
    loss, wanted = (one(np.array(LAMBDAS))[0] for one in (rough, fine))
    assert loss != wanted
    assert loss == pytest.approx(wanted, rel=0.1)


def test_the_loss_of_a_part():
    some = np.sort(rng(4).permutation(N)[:25])
    task = of_vectors(SHUFFLED, w=W)
    at = SHUFFLED[some]
    wanted = oracles.left_out_loss(K[np.ix_(at, at)], Y[at], LAMBDAS, w=W[at])
    part = comparison_of(task, some)
    loss, _ = part.loss(terms_of(task), part.decomposed(terms_of(task)))(np.array(LAMBDAS))
    assert loss == pytest.approx(wanted, abs=left_out_error(wanted, Y))


def test_an_error_says_that_nothing_can_be_left_out():
    one = np.zeros(N, dtype=int)
    task = in_rounds(replace(of_vectors(ALL), folds=one), one)
    assert not can_be_tuned(task)
    with pytest.raises(ValueError, match=f"n_samples={N} of positive weight leaves no fold"):
        tune_exactly(task, decomposed(task), Unknowns((None, None)))
    assert not can_be_tuned(in_rounds(of_vectors(ALL)), np.array([3]))
    assert can_be_tuned(replace(task, rounds=()))
    assert not can_be_tuned(replace(task, rounds=()), np.array([3]))


def test_the_memory_of_similarities_is_used_for_their_decomposition():
    """They are divided by their size in place: up to 8 here, and then up to 1."""
    given = 8 * K
    comparison_of(of_vectors(ALL)).basis(given, None, 1.0)
    assert not np.array_equal(given, 8 * K)


def test_the_values_that_are_given_are_not_changed():
    """Only sums of similarities are made in place, and of one kernel there is no sum."""
    for name in (None, *TRANSFORMS):
        task = of_vectors(ALL) if name is None else of_distances(ALL, similarity=name)
        task = in_rounds(task)
        before = task.sample.raw.copy()
        tune_exactly(task, decomposed(task), Unknowns((None, None)))
        np.testing.assert_array_equal(task.sample.raw, before)


rounds = pytest.mark.parametrize("folds", [(), (NUMBERS, OTHERS)], ids=["left out", "folds"])


@rounds
def test_many_targets_are_tuned_by_sums_of_them_and_their_loss_is_that_of_all(folds):
    targets = rng(6).normal(size=(N, 12)) + np.repeat(Y, 6, axis=1)
    task = replace(of_vectors(ALL, targets=targets), rounds=folds)
    basis = decomposed(task)
    _, tuned, loss, kept = tune_exactly(task, basis, Unknowns((None, None)))
    assert tuned.loss == loss(tuned.values)[0]
    assert kept is basis  # nothing is decomposed twice

    def fold(train, valid):
        a, b = oracles.exact_ridge(K[np.ix_(train, train)], targets[train], tuple(tuned.values))
        return K[np.ix_(valid, train)] @ a + b

    if not folds:
        wanted = oracles.left_out_loss(K, targets, tuple(tuned.values))
        allowed = left_out_error(wanted, targets)
    else:
        wanted = oracles.cross_validated(fold, np.column_stack(folds), targets)
        allowed = 100 * N * EPS * (1 + condition(K, tuned.values)) * wanted
    assert tuned.loss == pytest.approx(wanted, abs=allowed)


@rounds
def test_the_loss_of_a_trial_is_that_of_all_targets_if_they_are_few_and_else_of_sums(folds):
    many = rng(6).normal(size=(N, 12))
    for targets, tried in ((Y, Y), (many, many @ random_signs(12))):
        task = replace(of_vectors(ALL, targets=targets), rounds=folds)
        tuned = tune_exactly(task, decomposed(task), Unknowns((None, None))).tuned
        loss = loss_of(replace(of_vectors(ALL, targets=tried), rounds=folds))
        for *values, found in tuned.trials[::5]:
            assert found == pytest.approx(loss(np.array(values))[0], rel=1e-9)


def test_sums_of_many_targets_have_their_squared_error_on_average():
    signs = random_signs(200)
    assert signs.shape == (200, 8)
    np.testing.assert_array_equal(np.abs(signs), 1 / np.sqrt(8))
    assert 0.4 < (signs > 0).mean() < 0.6
    targets = rng(6).normal(size=(N, 12))

    def sketched(Y):
        return comparison_of(of_vectors(ALL, targets=Y)).sketched().Y

    np.testing.assert_array_equal(sketched(targets), targets @ random_signs(12))
    np.testing.assert_array_equal(sketched(targets[:, :8]), targets[:, :8])


# Memory


def needs(n_bytes, make, what):
    """Whether so many bytes are enough, and one byte less is not; ``make`` takes a budget."""
    make(n_bytes)
    with pytest.raises(MemoryError, match=what):
        make(n_bytes - 1)


def tuned_with(budget, folds=(), targets=Y, **params):
    """Penalties that are tuned with so much memory; the decomposition is not what is refused."""
    roomy, task = (of_vectors(ALL, room, targets=targets) for room in (10**9, budget))
    basis = decomposed(roomy)
    return tune_exactly(replace(task, rounds=folds), basis, Unknowns((None, None)), **params)


def test_what_does_not_fit_the_memory_is_refused_before_it_is_made():
    q = Y.shape[1]
    many = np.repeat(Y, 6, axis=1)  # twelve targets, of which there are eight sums
    needs(
        7 * 8 * N * N,
        lambda budget: decomposed(of_vectors(ALL, budget)),
        f"a decomposition of {N} x {N} similarities",
    )
    needs(
        2 * 8 * (4 + 3) * N * N,
        lambda budget: tuned_with(budget, (NUMBERS, OTHERS)),
        f"tuning on 7 folds of {N} objects",
    )
    what = f"leaving out each of {N} objects"
    needs(exact_bytes(N, q), tuned_with, what)
    needs(exact_bytes(N, 8), lambda budget: tuned_with(budget, targets=many, sketched=True), what)


def test_a_part_is_not_held_to_the_memory_of_all_objects():
    some, little = np.arange(20), 3 * 8 * N * N
    task = of_vectors(ALL, little)
    part = comparison_of(task, some)
    basis = part.decomposed(terms_of(task))
    assert len(basis.root) == 20
    part.loss(terms_of(task), basis)
    by_folds(task, some)


# Parts


def test_a_part_has_all_classes_in_proportion():
    counts = [30, 20, 7, 3]
    labels = rng(7).permutation(np.repeat(range(4), counts))
    signs = np.where(labels[:, None] == np.arange(4), 1, -1).astype(np.int8)
    for order in (ALL, SHUFFLED):
        places = spread_out(of_vectors(order, targets=signs), 20)
        assert len(np.unique(places)) == 20
        assert (np.diff(places) > 0).all()
        found = np.bincount(labels[order[places]], minlength=4)
        assert (np.abs(found - np.array(counts) / 3) <= 1).all()


def test_a_part_has_all_values_of_a_regression():
    y = rng(8).normal(size=(N, 1))
    ranks = np.argsort(np.argsort(y[spread_out(of_vectors(ALL, targets=y), 15), 0]))
    assert sorted(ranks) == list(range(15))
    chosen = np.sort(y[spread_out(of_vectors(ALL, targets=y), 15), 0])
    np.testing.assert_array_equal(chosen, np.sort(y[:, 0])[np.arange(15) * N // 15])


def test_a_part_is_the_same_at_every_call_and_draws_nothing():
    task = of_vectors(ALL)
    before = task.rng.bit_generator.state
    np.testing.assert_array_equal(spread_out(task, 20), spread_out(task, 20))
    assert task.rng.bit_generator.state == before
    np.testing.assert_array_equal(spread_out(task, N), ALL)
    np.testing.assert_array_equal(spread_out(task, 10 * N), ALL)


def test_a_part_is_all_objects_if_there_are_hardly_more():
    task = of_vectors(ALL)
    assert len(spread_out(task, N - 1)) == N - 1
    np.testing.assert_array_equal(spread_out(task, 50, 1.2), ALL)
    assert len(spread_out(task, 49, 1.2)) == 49


def test_equal_targets_are_drawn_at_random():
    places = spread_out(of_vectors(ALL, targets=np.ones((N, 1))), 20)
    assert len(np.unique(np.diff(places))) > 1


# Features and solutions


@orders
@weightings
def test_features_reproduce_the_similarities(order, w):
    """Phi S Phi' is K, and Phi of weighted objects is orthogonal."""
    task = of_vectors(order, w=w)
    basis = decomposed(task)
    feature_map = eigenbasis_map(basis)
    among = K[np.ix_(order, order)]
    Phi = among @ feature_map.W
    D = np.abs(feature_map.Lambda)
    allowed = 10 * N * EPS * D.max() / np.sqrt(D.min()) * np.sqrt(D.max()) / basis.root.min() ** 2
    assert np.abs((Phi * feature_map.S) @ Phi.T - among).max() <= allowed
    weighted = basis.root[:, None] * Phi
    assert np.abs(weighted.T @ weighted - np.diag(D)).max() <= allowed * basis.root.max() ** 2


@pytest.mark.parametrize("kind", [None, SimilarityFeatures()])
def test_a_map_of_all_objects_has_no_axes_beside_its_features(kind):
    assert eigenbasis_map(decomposed(of_vectors(ALL, kind=kind))).E.shape == (N, 0)


def test_similarity_features_are_the_similarities():
    task = of_vectors(ALL, kind=SimilarityFeatures())
    feature_map = eigenbasis_map(decomposed(task))
    np.testing.assert_array_equal(feature_map.W, np.eye(N))


@orders
@weightings
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("signed", [True, False])
def test_coefficients_of_features_are_those_of_landmarks(order, w, intercept, signed):
    kind = None if signed else SimilarityFeatures()
    task = of_vectors(order, w=w, intercept=intercept, kind=kind)
    task, features = exact_features(task)
    assert features.basis is task.basis
    assert features.scale(intercept=intercept) == features.basis.scale
    model = solve_exact(task, features.basis, np.array(LAMBDAS))
    among = K[np.ix_(order, order)]
    found = among @ (features.map.W @ model.coef) + model.intercept
    weights = np.ones(N) if w is None else w
    if signed:
        a, b = oracles.exact_ridge(K, Y, LAMBDAS, w=weights, intercept=intercept)
        wanted = (K @ a + b)[order]
    else:
        root = np.sqrt(weights[order])[:, None]
        F = root * among * root.T
        n = weights.sum()
        ones = root * intercept
        system = np.vstack([np.hstack([F, ones]), np.eye(N + 1)[:-1] * np.sqrt(n * LAMBDAS[0])])
        target = np.vstack([root * Y[order], np.zeros((N, 2))])
        solution = np.linalg.lstsq(system, target, rcond=None)[0]
        wanted = among @ (root * solution[:-1]) + solution[-1]
    squared = 1 if signed else 2
    allowed = 100 * N * EPS * condition(K) ** squared * np.abs(Y).max()
    assert np.abs(found - wanted).max() <= allowed


@orders
@weightings
@pytest.mark.parametrize("signed", [True, False])
def test_sums_of_features_are_those_of_all_rows(order, w, signed):
    task = of_vectors(order, w=w, kind=None if signed else SimilarityFeatures())
    task, features = exact_features(task)
    Phi, targets = K[np.ix_(order, order)] @ features.map.W, Y[order]
    weights = np.ones(N) if w is None else w[order]
    gram, sums = exact_sums(task, features.basis)
    G = Phi.T @ (weights[:, None] * Phi)
    allowed = 100 * N * EPS * condition(K) * np.abs(G).max() * np.abs(Y).max()
    found = np.diag(gram) if signed else np.zeros_like(G)
    if not signed:
        found[np.triu_indices(N)] = gram
        G = np.triu(G)
    assert np.abs(found - G).max() <= allowed
    assert np.abs(sums.s - weights @ Phi).max() <= allowed
    assert np.abs(sums.B - Phi.T @ (weights[:, None] * targets)).max() <= allowed
    np.testing.assert_allclose(sums.t, weights @ targets, rtol=4 * N * EPS)
    np.testing.assert_allclose(sums.yy, weights @ np.square(targets), rtol=4 * N * EPS)
    assert sums.n == pytest.approx(weights.sum(), rel=4 * N * EPS)


def test_every_transformation_has_folds_and_a_basis():
    for name in TRANSFORMS:
        task = of_distances(ALL, similarity=name)
        losses = [fold.loss_and_gradient(np.array(LAMBDAS))[0] for fold in by_folds(task).folds]
        assert np.isfinite(losses).all(), name
        basis = decomposed(task)
        rebuilt = (basis.spectrum.U * basis.spectrum.D) @ basis.spectrum.U.T
        allowed = (10 * N * EPS + CORE_RTOL) * np.abs(basis.spectrum.D).max()  # or cut as zero
        assert np.abs(rebuilt - similarities(task)).max() <= allowed, name
