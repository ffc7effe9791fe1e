"""Variance-constrained least squares against Gander, Golub and von Matt's eigenvalues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.losses.variance import VarianceConstrained
from kreinlearn.learn.search import Unknowns
from kreinlearn.sums.moments import FeatureMoments
from tests import oracles
from tests.unit.learn.learning import FEW, RNG, K, N, W, Y, of_vectors, one_pass
from tests.unit.learn.losses.test_squared import by_differences

LAMBDAS = np.array([0.02, 0.1])


def swept(radius="auto", *, by_fold=True, **params):
    """A task, its features, and the loss as it is for their targets."""
    loss = VarianceConstrained(radius)
    task, features, _ = one_pass(loss, of_vectors(FEW, **params), by_fold=by_fold)
    return task, features, loss.prepared(features, Encoded(None, Y), intercept=True)


def deviation(w):
    mean = np.average(Y, axis=0, weights=w)
    return np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=w))


@pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
def test_the_radius_is_the_deviation_of_the_targets_unless_given(w):
    for radius in ("auto", "tuned"):
        np.testing.assert_allclose(swept(radius, w=w)[2].radii, deviation(w), rtol=1e-10)
    np.testing.assert_array_equal(swept(0.5, w=w)[2].radii, [0.5, 0.5])
    np.testing.assert_array_equal(swept([0.5, 2.0], w=w)[2].radii, [0.5, 2.0])


@pytest.mark.parametrize(
    ("radius", "message"),
    [([1.0, 2.0, 3.0], "one for each of 2 outputs"), (-1.0, "positive and finite"),
     ([1.0, np.inf], "positive and finite")],
)  # fmt: skip
def test_a_radius_that_cannot_be_is_refused(radius, message):
    with pytest.raises(ValueError, match=message):
        swept(radius)


def test_a_constant_target_is_refused():
    def prepared(targets, shift):
        part = FeatureMoments.of_rows(RNG.normal(size=(N, 3)), targets, None)
        features = replace(swept()[1], exact_terms=[part])
        encoded = Encoded(None, targets, shift=shift)
        return VarianceConstrained().prepared(features, encoded, intercept=True)

    with pytest.raises(ValueError, match="the target is constant"):
        prepared(np.full((N, 1), 7.0), 0.0)
    with pytest.raises(ValueError, match="the target is constant"):
        prepared(np.zeros((N, 1)), 7.0)
    np.testing.assert_allclose(prepared(Y, 0.0).radii, deviation(None), rtol=1e-10)


@pytest.mark.parametrize("radius", ["auto", 0.7])
def test_the_solution_by_another_route(radius):
    task, features, loss = swept(radius, by_fold=False, w=W)
    model = loss.solve(task, features, np.append(LAMBDAS, 1.0), None)
    Phi = K[:, FEW] @ features.map.W
    root, mean = np.sqrt(W)[:, None], np.average(Phi, axis=0, weights=W)
    ybar = np.average(Y, axis=0, weights=W)
    penalty = W.sum() * np.where(features.map.S > 0, *LAMBDAS)
    for j in range(2):
        z = oracles.variance_constrained(
            root * (Phi - mean), (root * (Y - ybar))[:, j], penalty,
            loss.radii[j] * np.sqrt(W.sum()),
        )  # fmt: skip
        np.testing.assert_allclose(model.coef[:, j], z, rtol=1e-6, atol=1e-8)
        assert model.intercept[j] == pytest.approx(ybar[j] - mean @ z, rel=1e-6)
    spread = (Phi - mean) @ model.coef
    np.testing.assert_allclose(
        np.sqrt(np.average(spread**2, axis=0, weights=W)), loss.radii, rtol=1e-8
    )
    np.testing.assert_array_equal(model.attributes["radius_"], loss.radii)


def test_the_gradient_of_the_folds_by_differences():
    task, features, loss = swept("tuned", w=W)
    objective = loss.criterion(task, features, loo=False)
    for values in ((0.02, 0.1, 1.0), (0.3, 0.01, 0.6)):
        _, gradient = objective(np.array(values))
        expected = by_differences(objective, np.array(values))
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)


def test_the_radius_is_tuned_only_if_it_is_asked_for():
    both = Unknowns((None, None))
    assert VarianceConstrained("tuned").unknowns(both).fixed == (None, None, None)
    assert VarianceConstrained("auto").unknowns(both).fixed == (None, None, 1.0)
    assert VarianceConstrained(0.5).unknowns(both).fixed == (None, None, 1.0)
    loss = swept("tuned")[2].settled(np.array([0.1, 0.1, 0.5]))
    np.testing.assert_allclose(loss.radii, 0.5 * deviation(None), rtol=1e-10)


def test_tuning_finds_a_minimum():
    task, features, loss = swept("tuned")
    tuned = loss.tune(task, features, loss.unknowns(Unknowns((None, None))), loo=False)
    objective = loss.criterion(task, features, loo=False)
    assert objective(tuned.values)[0] == pytest.approx(tuned.loss, rel=1e-6)
    assert tuned.loss <= tuned.trials[:, -1].min() * (1 + 1e-9)
    for factor in (0.1, 10.0):
        assert tuned.loss <= objective(tuned.values * [factor, factor, 1.0])[0] * (1 + 1e-3)
        assert tuned.loss <= objective(tuned.values * [1.0, 1.0, 1 + 0.01 * factor])[0] * (1 + 1e-3)


def test_leaving_out_one_object_needs_maps_of_their_own():
    task, features, loss = swept("tuned", by_fold=False)
    unknowns = loss.unknowns(Unknowns((None, None)))
    with pytest.raises(ValueError, match=r'cv="loo" .* pass cv=5, or landmarks=None'):
        loss.tune(task, features, unknowns, loo=True)
