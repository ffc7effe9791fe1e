"""A fit from rows and targets to a model, against dense problems in plain numpy."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss, Precomputed, dissimilarity, pairwise
from kreinlearn.learn.coding import Classes, Regression, read_targets
from kreinlearn.learn.fit import LearnSpec, fit_model, make_task
from kreinlearn.learn.folds import TRAINING
from kreinlearn.learn.losses.hinge import SquaredHinge
from kreinlearn.learn.losses.sparse import SparseHinge
from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.learn.losses.variance import VarianceConstrained
from kreinlearn.learn.search import Unknowns
from kreinlearn.learn.similarity import SimilaritySpec
from kreinlearn.nystrom.core import KreinFeatures, SimilarityFeatures
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests import oracles
from tests.bounds import left_out_error
from tests.unit.learn.learning import (
    DISTANCES,
    FEW,
    LAMBDAS,
    MOST,
    OUTSIDE,
    K,
    N,
    W,
    X,
    Y,
    rng,
)

GIVEN = Unknowns(LAMBDAS)
TUNED = Unknowns((None, None))
LABELS = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6]))


def spec_of(
    landmarks=FEW, *, loss=None, penalties=GIVEN, cv=None,
    similarity=None, kind=None, **more,
):  # fmt: skip
    chosen = landmarks if isinstance(landmarks, MapSpec) else MapSpec(
        len(landmarks), given=landmarks
    )  # fmt: skip
    return LearnSpec(
        chosen, loss or SquaredError(), penalties,
        similarity or SimilaritySpec(), kind or KreinFeatures(), cv, **more,
    )  # fmt: skip


def opened(kernel=None, objects=X, outside=None, seed=0, **session):
    kernel = DeltaGauss(6.0, 4.0).fit(X, rng()) if kernel is None else kernel
    return Pairs(kernel, Rows(objects, outside), Session(rng=rng(seed), **session))


def fitted(spec, *, coding=None, kernel=None, objects=X, y=Y, w=None, seed=0, **session):
    """The model of a specification, with targets read as an estimator does it."""
    outside = None if spec.map.by_number else spec.map.given
    pairs = opened(kernel, objects, outside, seed, **session)
    coding, intercept = coding or Regression(), spec.intercept
    encoded = read_targets(coding, pairs.rows, y, w, "a test", intercept=intercept)
    return fit_model(pairs, encoded, spec)


def predicted(model, K_XZ):
    return K_XZ @ model.solved.dual + model.solved.intercept


def dense_ridge(landmarks, lambdas, **params):
    """The model of all rows; weights mean repetition if all objects are landmarks."""
    if len(landmarks) == N:
        return oracles.exact_ridge(K, Y, lambdas, **params)
    C, K_ZZ = K[:, landmarks], K[np.ix_(landmarks, landmarks)]
    return oracles.krein_ridge(C, K_ZZ, Y, lambdas, **params)


# Given penalties


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("landmarks", [FEW, np.arange(N)], ids=["few", "all"])
def test_given_penalties_solve_one_dense_problem(landmarks, intercept, w):
    model = fitted(spec_of(landmarks, intercept=intercept), w=w)
    a, b = dense_ridge(landmarks, LAMBDAS, w=w, intercept=intercept)
    found = predicted(model, K[:, model.sample.landmarks])
    np.testing.assert_allclose(found, K[:, landmarks] @ a + b, rtol=0, atol=1e-7)
    assert not len(model.solved.tuned.trials)
    np.testing.assert_allclose(model.solved.penalties, LAMBDAS)
    assert model.sums is None


def test_coefficients_are_those_of_features_and_of_landmarks():
    model = fitted(spec_of())
    features = K[:, FEW] @ model.map.W
    found = features @ model.solved.coef + model.solved.intercept
    np.testing.assert_allclose(found, predicted(model, K[:, FEW]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.columns(X), K[:, FEW], rtol=0, atol=1e-13)
    assert model.n_chosen == len(FEW)


@pytest.mark.parametrize("power", [-300, 300])
def test_penalties_are_in_the_units_of_the_kernel(power):
    c = 2.0**power
    kernel = Precomputed().fit(c * K, rng())
    spec = spec_of(penalties=Unknowns(tuple(c * np.array(LAMBDAS))))
    one, other = fitted(spec_of()), fitted(spec, kernel=kernel, objects=c * K)
    np.testing.assert_allclose(c * other.solved.dual, one.solved.dual, rtol=1e-8)
    np.testing.assert_allclose(other.solved.penalties, c * np.array(LAMBDAS), rtol=1e-12)


def test_similarity_features_have_penalties_of_squares():
    spec = spec_of(kind=SimilarityFeatures(), penalties=Unknowns((0.01, 0.01)))
    model = fitted(spec)
    F, T = K[:, FEW] - K[:, FEW].mean(0), Y - Y.mean(0)
    a = np.linalg.solve(F.T @ F + N * 0.01 * np.eye(len(FEW)), F.T @ T)
    np.testing.assert_allclose(model.solved.dual, a, rtol=1e-6)
    assert spec.unknowns(16.0).fixed == (0.01 / 256, 0.01 / 256)
    assert spec_of(penalties=Unknowns((0.01, 0.02))).unknowns(16.0).fixed == (0.01 / 16, 0.02 / 16)


def test_landmarks_from_outside():
    landmarks = MapSpec(40, given=OUTSIDE, by_number=False)
    model = fitted(spec_of(landmarks))
    C = oracles.delta_gauss(X, OUTSIDE, 6.0, 4.0)
    K_ZZ = oracles.delta_gauss(OUTSIDE, OUTSIDE, 6.0, 4.0)
    a, b = oracles.krein_ridge(C, K_ZZ, Y, LAMBDAS)
    np.testing.assert_allclose(predicted(model, C), C @ a + b, rtol=0, atol=1e-6)
    assert (model.sample.landmarks < 0).all()


def test_rows_without_weight_are_no_landmarks():
    w = np.where(np.arange(N) % 3, W, 0.0)
    model = fitted(spec_of(MapSpec(50, "uniform")), w=w)
    assert len(model.sample.landmarks) == np.count_nonzero(w)
    assert (w[model.sample.landmarks] > 0).all()


# Tuned penalties


@pytest.mark.parametrize("cv", [None, 4], ids=["auto", "folds"])
@pytest.mark.parametrize("landmarks", [FEW, MOST, np.arange(N)], ids=["few", "most", "all"])
@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_tuned_penalties_are_judged_by_splits_that_can_be_redone_by_hand(landmarks, w, cv):
    """Few landmarks: one map of rows in every training part. Most rows: one map per fold.

    If all objects are landmarks, there are two rounds of folds, unless folds are asked for.
    """
    model = fitted(spec_of(landmarks, penalties=TUNED, cv=cv), w=w)
    honest, every = len(landmarks) > N / 2, len(landmarks) == N
    if honest:
        assert (model.folds >= 0).all()
    else:
        assert (model.folds[landmarks] == TRAINING).all()
    lambdas = tuple(model.solved.penalties)

    def fold(train, valid):
        own = np.intersect1d(landmarks, train) if honest else landmarks
        weights, among = None if w is None else w[train], K[np.ix_(own, own)]
        if every:
            a, b = oracles.exact_ridge(among, Y[train], lambdas, w=weights)
        else:
            a, b = oracles.krein_ridge(K[np.ix_(train, own)], among, Y[train], lambdas, w=weights)
        return K[np.ix_(valid, own)] @ a + b

    assert np.shape(model.folds) == ((N, 2) if every and cv is None else (N,))
    expected = oracles.cross_validated(fold, model.folds, Y, w)
    assert model.solved.tuned.loss == pytest.approx(expected, rel=1e-6)
    a, b = dense_ridge(landmarks, lambdas, w=w)
    found = predicted(model, K[:, model.sample.landmarks])
    np.testing.assert_allclose(found, K[:, landmarks] @ a + b, rtol=0, atol=1e-6)


def test_one_penalty_may_be_given():
    model = fitted(spec_of(penalties=Unknowns((0.3, None))))
    assert model.solved.penalties[0] == 0.3
    assert len(model.solved.tuned.trials)


def test_leaving_one_out():
    model = fitted(spec_of(penalties=TUNED, cv="loo"))
    rest, total = np.delete(np.arange(N), FEW), 0.0
    lambdas = np.array(model.solved.penalties)
    for i in rest:
        others = np.delete(np.arange(N), i)
        share = N / (N - 1)  # the penalty is that of all rows
        a, b = oracles.krein_ridge(
            K[np.ix_(others, FEW)], K[np.ix_(FEW, FEW)], Y[others], tuple(share * lambdas)
        )
        total += ((Y[i] - K[i, FEW] @ a - b) ** 2).sum()
    assert model.solved.tuned.loss == pytest.approx(total / len(rest), rel=1e-6)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_leaving_one_out_of_all_objects(order):
    """Also if the landmarks are named in another order than the rows."""
    landmarks = np.arange(N) if order == "sorted" else rng(3).permutation(N)
    model = fitted(spec_of(landmarks, penalties=TUNED, cv="loo"), w=W)
    lambdas = tuple(model.solved.penalties)
    expected = oracles.left_out_loss(K, Y, lambdas, w=W)
    assert model.solved.tuned.loss == pytest.approx(expected, abs=left_out_error(expected, Y))
    a, b = oracles.exact_ridge(K, Y, lambdas, w=W)
    found = predicted(model, K[:, model.sample.landmarks])
    np.testing.assert_allclose(found, K @ a + b, rtol=0, atol=1e-6)


# No pair twice


@pytest.mark.parametrize("penalties", [GIVEN, TUNED], ids=["given", "tuned"])
@pytest.mark.parametrize("landmarks", [FEW, np.arange(N)], ids=["few", "all"])
@pytest.mark.parametrize("loss", ["squared", "variance", "hinge"])
def test_no_pair_is_evaluated_twice(landmarks, penalties, loss, monkeypatch):
    """Apart from a look at the user's function, which is left out here."""
    monkeypatch.setattr("kreinlearn.pairs.pairs.Pairs.probe", lambda pairs, sample: None)
    counts = Counter()

    def k(i, j):
        counts[min(i, j), max(i, j)] += 1
        return float(K[i, j])

    losses = {"squared": SquaredError, "variance": VarianceConstrained, "hinge": SquaredHinge}
    y = np.where(Y.mean(0) < Y, 1.0, -1.0) if loss == "hinge" else Y
    spec = spec_of(landmarks, loss=losses[loss](), penalties=penalties)
    fitted(spec, kernel=pairwise(k), objects=list(range(N)), y=y)
    assert set(counts.values()) == {1}
    assert set(counts) == {(min(i, j), max(i, j)) for i in range(N) for j in landmarks.tolist()}


def test_no_distance_is_evaluated_twice_to_choose_a_similarity():
    counts = Counter()

    def d(i, j):
        counts[min(i, j), max(i, j)] += 1
        return float(DISTANCES[i, j])

    kernel = dissimilarity(pairwise(d))
    landmarks = MapSpec(12, "greedy_kmeans++")
    model = fitted(spec_of(landmarks, penalties=TUNED), kernel=kernel, objects=list(range(N)))
    repeated = sum(count > 1 for count in counts.values())
    assert repeated <= 50  # pairs of a user's own function that are looked at again
    assert model.chosen.similarity is not None
    assert len(model.chosen.choices) > 3
    assert model.sample.transform.n_reference == 12


# Other losses and classes


@pytest.mark.parametrize("landmarks", [FEW, np.arange(N)], ids=["few", "all"])
def test_each_class_is_learned_against_the_rest(landmarks):
    model = fitted(spec_of(landmarks), coding=Classes(), y=LABELS)
    signs = np.where(LABELS[:, None] == np.arange(3), 1.0, -1.0)
    same = fitted(spec_of(landmarks), y=signs)
    np.testing.assert_allclose(
        predicted(model, K[:, landmarks]), predicted(same, K[:, landmarks]), rtol=0, atol=1e-9
    )


def test_a_sparse_model_has_only_the_landmarks_that_it_needs():
    spec = spec_of(
        np.arange(0, N, 2), loss=SparseHinge(strength=0.1),
        penalties=Unknowns((0.0, 0.0)),
    )  # fmt: skip
    y = Y[:, 0] > np.median(Y[:, 0])
    model = fitted(spec, coding=Classes(), y=y)
    Z = model.sample.landmarks
    assert 0 < len(Z) < model.n_chosen == 30
    assert model.solved.dual.shape == (len(Z), 1)
    assert (model.solved.dual != 0).all()
    np.testing.assert_allclose(model.columns(X), K[:, Z], rtol=0, atol=1e-13)
    right = (predicted(model, K[:, Z])[:, 0] > 0) == y
    assert right.mean() > 0.8


def test_an_asymmetric_function_is_warned_of():
    kernel = pairwise(lambda a, b: float(K[a, b] + 0.1 * a))
    with pytest.warns(UserWarning, match="the kernel is asymmetric"):
        fitted(spec_of(), kernel=kernel, objects=list(range(N)))


# What is looked at


def test_rows_beside_the_landmarks_are_looked_at_only_where_that_is_needed():
    metric = dissimilarity("euclidean").fit(X, rng())
    kernels = SimilaritySpec(kernels=[({}, None), ({}, None)])
    wanted = {
        "nothing": (spec_of(), False),
        "tuned on sums": (spec_of(penalties=TUNED), False),
        "loo": (spec_of(penalties=TUNED, cv="loo"), True),
        "loo of nothing": (spec_of(cv="loo"), False),
        "hinge": (spec_of(loss=SquaredHinge(), penalties=TUNED), True),
        "given hinge": (spec_of(loss=SquaredHinge()), False),
        "transformations": (spec_of(), True),
        "named": (spec_of(similarity=SimilaritySpec("exp")), False),
        "kernels": (spec_of(similarity=kernels), True),
        "left out": (spec_of(held_out=True), True),
    }
    for name, (spec, wants) in wanted.items():
        kernel = metric if name in ("transformations", "named") else DeltaGauss()
        assert spec.wants_pool(kernel) == wants, name


@pytest.mark.parametrize("given", [GIVEN, TUNED], ids=["given", "tuned"])
def test_what_is_tuned(given):
    assert spec_of(penalties=given).tunes == (given is TUNED)
    assert spec_of(penalties=given, loss=VarianceConstrained("tuned")).tunes


def test_a_task_is_made_of_landmarks_and_folds():
    spec = spec_of(MapSpec(10, "greedy_kmeans++"), penalties=TUNED, cv=3)
    encoded = Regression().encode(Rows(X), Y)
    task = make_task(opened(), encoded, spec)
    assert len(task.sample.landmarks) == 10
    assert task.n_folds == 3
    assert not task.honest
    assert set(task.folds) == {TRAINING, 0, 1, 2}
    sizes = np.bincount(np.delete(task.folds, task.sample.landmarks))
    assert sizes.sum() == N - 10


def test_nothing_is_said_of_a_plain_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(spec_of())
