"""Probabilities from scores by their formulas, and sigmoids by the loss that they minimise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from kreinlearn.solvers import probabilities
from kreinlearn.solvers.probabilities import LabelSigmoids, Sigmoids, Temperature, sigmoid

RNG = np.random.default_rng(8)
SCORES = RNG.normal(size=(40, 3))
PAIRS = np.array([[-2.0, 0.3], [-0.5, -1.0], [-1.5, 0.1]])


def by_formula(f, a, b):
    return 1 / (1 + np.exp(a * f + b))


def test_two_classes():
    P = by_formula(SCORES[:, 0], -2.0, 0.3)
    found = Sigmoids(PAIRS[:1]).of(SCORES[:, 0])
    np.testing.assert_allclose(found, np.column_stack([1 - P, P]), rtol=1e-13)


def test_sigmoids_of_several_classes_are_divided_by_their_sum():
    P = np.column_stack([by_formula(f, *pair) for f, pair in zip(SCORES.T, PAIRS, strict=True)])
    np.testing.assert_allclose(LabelSigmoids(PAIRS).of(SCORES), P, rtol=1e-13)
    found = Sigmoids(PAIRS).of(SCORES)
    np.testing.assert_allclose(found, P / P.sum(axis=1, keepdims=True), rtol=1e-13)


def test_classes_that_are_all_impossible_are_equally_likely():
    scores = np.array([[-1e4, -1e4, -1e4], [-1e4, 0.0, -1e4]])
    found = Sigmoids(PAIRS).of(scores)
    np.testing.assert_array_equal(found, [[1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e4 * (np.arange(40)[:, None] % 2)])
def test_one_temperature(shift):
    pairs = np.array([[1.5, 0.3], [1.5, -1.0], [1.5, 0.1]])
    E = np.exp(1.5 * SCORES + pairs[:, 1])
    found = Temperature(pairs).of(SCORES + shift)
    np.testing.assert_allclose(found, E / E.sum(axis=1, keepdims=True), rtol=1e-10)


# The sigmoid of smallest loss


def platt(positive, w):
    above, below = w[positive].sum(), w[~positive].sum()
    return np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))


def log_loss(pair, f, T, w):
    P = by_formula(f, *pair)
    return -float(w @ (T * np.log(P) + (1 - T) * np.log(1 - P)))


@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e5])
def test_no_other_sigmoid_has_a_smaller_loss(unit):
    f, w = unit * SCORES[:, 0], RNG.uniform(0.5, 2.0, 40)
    positive = SCORES[:, 0] + SCORES[:, 1] > 0.2
    a, b = sigmoid(f, positive, w)
    assert a < 0
    T = platt(positive, w)
    P = by_formula(f, a, b)
    slopes = [w @ ((T - P) * f) / unit, w @ (T - P)]  # of the loss, in a and in b
    np.testing.assert_allclose(slopes, 0, atol=1e-6)
    least = log_loss((a, b), f, T, w)
    for da, db in ((0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1)):
        assert log_loss((a * (1 + da), b + db), f, T, w) > least


def test_curvature_is_the_derivative_of_the_slope(monkeypatch):
    """By central differences h = 1e-4: they err by h^2 / 6 of a third derivative, which is at most
    0.1 of each unit of weight, as features are at most 1; and by rounding over h."""
    w, asked = RNG.uniform(0.5, 2.0, 40), []

    def watched(loss, start, *, hess, **options):
        asked.append((loss, hess))
        return minimize(loss, start, hess=hess, **options)

    monkeypatch.setattr(probabilities, "minimize", watched)
    sigmoid(SCORES[:, 0], SCORES[:, 0] + SCORES[:, 1] > 0.2, w)
    ((loss, hessian),) = asked
    h = 1e-4
    for v in RNG.normal(size=(5, 2)):
        columns = [(loss(v + d)[1] - loss(v - d)[1]) / (2 * h) for d in h * np.eye(2)]
        np.testing.assert_allclose(hessian(v), columns, rtol=0, atol=h**2 * w.sum())


def test_weights_are_repetitions():
    f, positive, times = SCORES[:, 0], SCORES[:, 0] + SCORES[:, 1] > 0, RNG.integers(1, 4, 40)
    rows = np.repeat(np.arange(40), times)
    found = sigmoid(f, positive, times.astype(float))
    np.testing.assert_allclose(
        found, sigmoid(f[rows], positive[rows], np.ones(len(rows))), rtol=1e-5
    )


def test_scores_that_are_worse_than_none_leave_the_share_of_the_class():
    positive = np.arange(40) % 4 == 0
    for f in (np.where(positive, -1.0, 1.0), np.zeros(40)):
        a, b = sigmoid(f, positive, np.ones(40))
        assert a == 0
        assert by_formula(0.0, a, b) == pytest.approx(0.25, rel=1e-12)


def test_a_class_that_never_occurs_is_unlikely_and_not_impossible():
    for positive, wanted in ((np.ones(8, bool), 9 / 10), (np.zeros(8, bool), 1 / 10)):
        a, b = sigmoid(np.linspace(-1, 1, 8), positive, np.ones(8))
        assert a == 0
        assert by_formula(0.0, a, b) == pytest.approx(wanted, rel=1e-12)
