"""The choice among parameters of a kernel, against a fit for each of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    SimilarityRidge,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels import DeltaGauss, Gaussian
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS
from tests import oracles

RNG = np.random.default_rng(91)
N = 80
X, X_NEW = RNG.normal(size=(N, 2)), RNG.normal(size=(20, 2))
Y = np.sin(3 * X[:, 0]) + 0.5 * np.cos(3 * X[:, 1]) + 0.1 * RNG.normal(size=N)
FEW = np.sort(RNG.permutation(N)[:25])
WIDTHS = [{"width": width} for width in (0.05, 0.7, 9.0, 100.0)]
GIVEN = {
    "few": {"landmarks": FEW},
    "all": {"landmarks": None},
    "all in folds of the user": {"landmarks": None, "cv": 5},
}
given = pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)


def gaussian(A, B, width):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(2) / width)


def loss_of(model, params, penalties):
    """Cross-validated squared error by hand, on the folds of a model."""
    K = gaussian(X, X, params["width"])
    Z = model.landmark_indices_

    def fold(train, valid):
        own = np.intersect1d(Z, train) if len(Z) > N / 2 else Z
        a, b = oracles.krein_ridge(K[np.ix_(train, own)], K[np.ix_(own, own)], Y[train], penalties)
        return K[np.ix_(valid, own)] @ a + b

    return oracles.cross_validated(fold, model.folds_, Y)


# The parameters of smallest loss


@given
def test_the_best_of_a_list(given):
    model = KreinRidge("gaussian", kernel_params=WIDTHS, random_state=0, **given).fit(X, Y)
    losses = {}
    for params in WIDTHS:
        one = KreinRidge("gaussian", kernel_params=params, random_state=0, **given).fit(X, Y)
        np.testing.assert_array_equal(one.folds_, model.folds_)
        losses[params["width"]] = one.cv_loss_
    assert model.kernel_params_ == {"width": min(losses, key=losses.get)} == {"width": 0.7}
    assert model.kernel_.width_ == 0.7
    assert model.cv_loss_ == pytest.approx(losses[0.7], rel=1e-6)
    assert [choice.kernel_params for choice in model.choices_[:1]] == [model.kernel_params_]


@given
def test_the_loss_of_every_choice_is_that_of_its_penalties(given):
    model = KreinRidge("gaussian", kernel_params=WIDTHS, random_state=0, **given).fit(X, Y)
    assert sorted(c.kernel_params["width"] for c in model.choices_) == [0.05, 0.7, 9.0, 100.0]
    for choice in model.choices_:
        expected = loss_of(model, choice.kernel_params, choice.tuned.values[:2])
        assert choice.loss == pytest.approx(expected, rel=1e-4)
        assert choice.similarity is None
    losses = [choice.loss for choice in model.choices_]
    assert losses == sorted(losses)


@given
def test_the_model_is_that_of_the_parameters_chosen(given):
    model = KreinRidge("gaussian", kernel_params=WIDTHS, random_state=0, **given).fit(X, Y)
    Z, (K, K_new) = model.landmark_indices_, (gaussian(A, X, 0.7) for A in (X, X_NEW))
    penalties = model.lambda_plus_, model.lambda_minus_
    a, b = oracles.krein_ridge(K[:, Z], K[np.ix_(Z, Z)], Y, penalties)
    np.testing.assert_allclose(model.predict(X_NEW), (K_new[:, Z] @ a + b)[:, 0], atol=1e-5)


def test_widths_around_that_of_the_data():
    model = KreinRidge(kernel_params="auto", landmarks=FEW, random_state=0).fit(X, Y)
    median = Gaussian().fit(X, np.random.default_rng(0)).width_
    tried = sorted(choice.kernel_params["width"] for choice in model.choices_)
    np.testing.assert_allclose(np.array(tried) / median, [1 / 16, 1 / 4, 1, 4, 16], rtol=0.2)
    np.testing.assert_allclose(np.diff(np.log(tried)), np.log(4))
    losses = {
        width: KreinRidge(Gaussian(width), landmarks=FEW, random_state=0).fit(X, Y).cv_loss_
        for width in tried
    }
    assert model.kernel_params_["width"] == min(losses, key=losses.get)
    finals = {choice.kernel_params["width"]: choice.loss for choice in model.choices_[:2]}
    for width, loss in finals.items():
        assert loss == pytest.approx(losses[width], rel=1e-3)


def test_better_than_the_median_where_that_is_bad():
    line, y = X[:, :1], np.sin(8 * X[:, 0]) + 0.1 * RNG.normal(size=N)
    chosen = KreinRidge(kernel_params="auto", landmarks=None, random_state=0).fit(line, y)
    median = KreinRidge(landmarks=None, random_state=0).fit(line, y)
    assert chosen.cv_loss_ < 0.8 * median.cv_loss_
    assert chosen.kernel_params_["width"] < median.kernel_.width_ / 2


KERNELS = {
    "gaussian": "width",
    "delta_gauss": "width",
    "epanechnikov": "width",
    "multiquadric": "width",
    "sigmoid": "gain",
    "truncated_l1": "radius",
    "gaussian_combination": "unit",
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_know_what_to_try(name):
    model = KreinRidge(name, kernel_params="auto", landmarks=FEW, random_state=0).fit(X, Y)
    scale = KERNELS[name]
    assert len({choice.kernel_params[scale] for choice in model.choices_}) == 5
    assert getattr(model.kernel_, f"{scale}_") == model.kernel_params_[scale]
    again = KreinRidge(name, kernel_params=model.kernel_params_, landmarks=FEW, random_state=0)
    again.fit(X, Y)
    np.testing.assert_allclose(again.predict(X_NEW), model.predict(X_NEW), rtol=1e-3, atol=1e-3)


def test_parameters_may_be_arrays():
    grid = [{"widths": np.array([wide, 0.2])} for wide in (40.0, 1.0)]
    model = KreinRidge("gaussian_combination", kernel_params=grid, landmarks=FEW, random_state=0)
    model.fit(X, Y)
    assert model.kernel_params_ is model.choices_[0].kernel_params
    assert len(model.choices_) == 2


def test_other_parameters_of_a_kernel_stay():
    model = KreinRidge(DeltaGauss(ratio=9.0), kernel_params="auto", landmarks=FEW, random_state=0)
    model.fit(X, Y)
    assert {choice.kernel_params["ratio"] for choice in model.choices_} == {9.0}
    assert model.kernel_.ratio == 9.0


@pytest.mark.parametrize("learner", [KreinVCRidge, SimilarityRidge, KreinRidgeClassifier, KreinSVC])
def test_every_learner_chooses(learner):
    y = Y if learner in (KreinVCRidge, SimilarityRidge) else (Y > 0).astype(int)
    model = learner("gaussian", kernel_params=WIDTHS, landmarks=FEW, random_state=0).fit(X, y)
    assert model.kernel_params_["width"] in (0.7, 9.0)
    assert len(model.choices_) == 4
    assert model.kernel_.width_ == model.kernel_params_["width"]


def test_similarities_of_distances_are_chosen_along():
    grid = [{"p": 1}, {"p": 3}]
    model = KreinRidge("minkowski", kernel_params=grid, landmarks=FEW, random_state=0).fit(X, Y)
    pairs = {(choice.kernel_params["p"], choice.similarity) for choice in model.choices_}
    assert len(pairs) == 2 * len(AUTO_TRANSFORMS)
    best = model.choices_[0]
    assert (model.kernel_params_, model.similarity_) == (best.kernel_params, best.similarity)
    fixed = KreinRidge(
        "minkowski", kernel_params=grid, similarity="exp", landmarks=FEW, random_state=0
    ).fit(X, Y)
    assert {choice.similarity for choice in fixed.choices_} == {"exp"}
    assert len(fixed.choices_) == 2


# Lists of one, none, and what is no list


def test_a_list_of_one_is_no_choice():
    model = KreinRidge("gaussian", kernel_params=WIDTHS[1:2], landmarks=FEW, random_state=0)
    model.fit(X, Y)
    assert model.kernel_params_ == {"width": 0.7}
    assert not hasattr(model, "choices_")
    one = KreinRidge(Gaussian(0.7), landmarks=FEW, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), one.predict(X_NEW), rtol=1e-6)


def test_parameters_that_are_given_are_no_choice():
    model = KreinRidge("gaussian", kernel_params={"width": 0.7}, landmarks=FEW).fit(X, Y)
    assert not hasattr(model, "choices_")
    assert not hasattr(model, "kernel_params_")


def test_an_empty_list():
    with pytest.raises(ValueError, match=r"kernel_params=\[\] is no list of dicts to choose from"):
        KreinRidge("gaussian", kernel_params=[]).fit(X, Y)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [{"width": 1.0}, 2.0], [None, {"width": 1.0}]])
def test_a_list_of_something_else(bad):
    with pytest.raises(ValueError, match="is no list of dicts to choose from"):
        KreinRidge("gaussian", kernel_params=bad).fit(X, Y)


def k(a, b):
    return float(a @ b)


@pytest.mark.parametrize("kernel", [pairwise(k), "precomputed", "laplacian", "euclidean"])
def test_kernels_that_do_not_know_what_to_try(kernel):
    matrix = np.exp(-np.abs(X[:, None] - X[None]).sum(2)) if kernel == "precomputed" else X
    with pytest.raises(ValueError, match='kernel_params="auto" has no parameters to try'):
        KreinRidge(kernel, kernel_params="auto").fit(matrix, Y)


def test_an_unknown_parameter():
    with pytest.raises(TypeError, match=r"does not take kernel_params={'length': 1}"):
        KreinRidge("gaussian", kernel_params=[{"width": 1.0}, {"length": 1}]).fit(X, Y)


# Parameters stay what they are, seeds repeat, nothing is evaluated twice


def test_parameters_are_not_written():
    grid = [dict(params) for params in WIDTHS]
    model = KreinRidge("gaussian", kernel_params=grid, landmarks=FEW, random_state=0).fit(X, Y)
    assert model.kernel_params is grid
    assert grid == WIDTHS
    assert clone(model).kernel_params == WIDTHS


def test_fit_again_forgets_the_choice():
    model = KreinRidge("gaussian", kernel_params=WIDTHS, landmarks=FEW, random_state=0).fit(X, Y)
    model.set_params(kernel_params=None).fit(X, Y)
    assert not hasattr(model, "choices_")
    assert not hasattr(model, "kernel_params_")


def test_a_seed_repeats():
    one, again = (
        KreinRidge(kernel_params="auto", landmarks=20, random_state=3).fit(X, Y) for _ in "ab"
    )
    assert one.kernel_params_ == again.kernel_params_
    np.testing.assert_array_equal(one.dual_coef_, again.dual_coef_)


def counted(pairs):
    def similarity(i, j, width):
        pairs[width, min(i, j), max(i, j)] += 1
        return float(np.exp(-np.sum((X[i] - X[j]) ** 2) / width))

    return pairwise(similarity)


def test_a_function_is_evaluated_once_for_each_parameter():
    """Beside a few pairs of landmarks, to see whether it is symmetric."""
    pairs, grid = Counter(), [{"params": {"width": width}} for width in (0.3, 0.7, 9.0)]
    model = KreinRidge(counted(pairs), kernel_params=grid, landmarks=FEW, random_state=0)
    model.fit(list(range(N)), Y)
    assert model.kernel_params_ == grid[1]
    wanted = {(min(i, j), max(i, j)) for i in range(N) for j in FEW.tolist()}
    others = [key for key in pairs if not {*key[1:]} <= {*FEW.tolist()}]
    for width in (0.7, 9.0):
        assert {key[1:] for key in pairs if key[0] == width} == wanted
        assert {pairs[key] for key in others if key[0] == width} == {1}


def test_the_first_parameters_are_not_evaluated_twice():
    pairs, grid = Counter(), [{"params": {"width": width}} for width in (0.3, 0.7)]
    model = KreinRidge(counted(pairs), kernel_params=grid, landmarks=FEW, random_state=0)
    model.fit(list(range(N)), Y)
    landmarks = {*FEW.tolist()}
    assert {count for key, count in pairs.items() if not {*key[1:]} <= landmarks} == {1}


def test_a_distance_is_evaluated_once_for_all_similarities():
    pairs = Counter()

    def d(i, j):
        pairs[min(i, j), max(i, j)] += 1
        return float(np.abs(X[i] - X[j]).sum())

    model = KreinRidge(dissimilarity(pairwise(d)), landmarks=FEW, random_state=0)
    model.fit(list(range(N)), Y)
    assert len(model.choices_) == len(AUTO_TRANSFORMS)
    landmarks = {*FEW.tolist()}
    assert {count for key, count in pairs.items() if not {*key} <= landmarks} == {1}
    before = sum(pairs.values())
    model.predict(list(range(10)))
    assert sum(pairs.values()) == before + 10 * len(FEW)
