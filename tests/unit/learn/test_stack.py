"""Weights of scores against the definition of the log loss and the conditions of its minimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from kreinlearn.learn.stack import (
    RIDGE,
    SMOOTH,
    Logit,
    Stack,
    fit_label_stack,
    fit_stack,
    probabilities,
    scaled,
    score_range,
    smoothed,
    two_columns,
)

EPS = np.finfo(np.float64).eps


# The definition, rows before classes


def normal_parts(parts, w):
    """Parts with rows of mean zero, over their root mean square, and these roots."""
    X = parts - parts.mean(axis=2)[:, :, None]
    roots = np.array([np.sqrt(np.average(np.mean(x**2, axis=1), weights=w)) for x in X])
    return X / roots[:, None, None], roots


def label_probabilities(labels, q, w):
    wrong = SMOOTH / (w.sum() + 2 * SMOOTH)
    T = np.full((len(labels), q), wrong / q)
    for i, c in enumerate(labels):
        T[i, c] += 1 - wrong
    return T


def softmax(S):
    E = np.exp(S - S.max(axis=1)[:, None])
    return E / E.sum(axis=1)[:, None]


def log_loss(S, labels, w):
    T = label_probabilities(labels, S.shape[1], w)
    below = S - S.max(axis=1)[:, None]
    log_p = below - np.log(np.exp(below).sum(axis=1))[:, None]
    return np.average(-(T * log_p).sum(axis=1), weights=w)


def objective(v, X, labels, w):
    """The loss that is minimised, and its gradient in the weights v of scaled parts."""
    S = sum(a * x for a, x in zip(v, X, strict=True))
    R = (softmax(S) - label_probabilities(labels, X.shape[2], w)) * w[:, None] / w.sum()
    gradient = np.array([(R * x).sum() for x in X]) + 2 * RIDGE * v / w.sum()
    return log_loss(S, labels, w) + RIDGE * (v @ v) / w.sum(), gradient


def curvature(v, X, w):
    """The smallest eigenvalue of the Hessian, from covariances row by row."""
    H = 2 * RIDGE / w.sum() * np.eye(len(v))
    P = softmax(sum(a * x for a, x in zip(v, X, strict=True)))
    for i in range(len(w)):
        x = X[:, i]
        H += w[i] / w.sum() * ((x * P[i]) @ x.T - np.outer(x @ P[i], x @ P[i]))
    return np.linalg.eigvalsh(H)[0]


def gradient_rounding(X, v):
    """Rounding of a gradient: n q terms, each the product of a part and of a probability.

    A probability is as exact as its exponent, which is rounded in proportion to its size.
    """
    exponent = np.abs(np.tensordot(v, X, 1)).max()
    return X[0].size * EPS * np.abs(X).max() * (2 + exponent)


# Problems


def problem(n=120, q=4, slopes=(1.5, 0.7, 0.3, -0.5), seed=0, weights=None):
    """Parts with noise, of which some help and some mislead."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, q, n)
    labels[:q] = np.arange(q)
    right = labels[:, None] == np.arange(q)
    parts = np.array([s * right + rng.normal(size=(n, q)) for s in slopes])
    parts = parts * np.array([3.0, 0.01, 200.0, 1.0])[: len(parts), None, None] + 5
    w = np.ones(n) if weights is None else rng.integers(0, 4, n) * weights
    return parts, labels, w


def separated():
    parts, labels, w = problem()
    return parts + 1e3 * (labels[:, None] == np.arange(4)), labels, w


def twins():
    parts, labels, w = problem()
    return np.array([parts[0], parts[1], parts[0]]), labels, w


def alone():
    parts, labels, w = problem(n=40)
    labels[labels == 3] = 2
    labels[17] = 3
    return parts, labels, w


PROBLEMS = {
    "noise": problem(),
    "two classes": problem(q=2, seed=1),
    "weights": problem(seed=2, weights=0.7),
    "separated": separated(),
    "twins": twins(),
    "a class of one": alone(),
    "two rows": problem(n=2, q=2, seed=3),
    "all mislead": problem(slopes=(-1.0, -0.4), seed=4),
    "many rows": problem(n=3000, q=9, seed=5),
}
problems = pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)


# The minimum


@problems
def test_conditions_of_the_minimum_hold(case):
    """The gradient is zero where a weight is positive, and not negative where it is zero."""
    parts, labels, w = case
    stack = fit_stack(parts, labels, w)
    X, roots = normal_parts(parts[:, w > 0], w[w > 0])
    v = stack.weights * roots
    _, gradient = objective(v, X, labels[w > 0], w[w > 0])
    tolerance = 2 * gradient_rounding(X, v)
    assert stack.converged
    assert (stack.weights >= 0).all()
    assert np.isfinite(stack.weights).all()
    assert (gradient >= -tolerance).all()
    assert (np.abs(gradient[v > 0]) <= tolerance).all()


def test_weights_of_misleading_parts_are_exactly_zero():
    parts, labels, w = PROBLEMS["noise"]
    weights = fit_stack(parts, labels, w).weights
    assert weights[3] == 0
    assert (weights[:3] > 0).all()
    np.testing.assert_array_equal(fit_stack(*PROBLEMS["all mislead"]).weights, 0)


@problems
def test_no_start_leads_to_a_smaller_loss(case):
    """Another solver, which knows nothing of Hessians, ends at the same loss from anywhere."""
    parts, labels, w = case
    parts, labels, w = parts[:, w > 0], labels[w > 0], w[w > 0]
    X, roots = normal_parts(parts, w)
    v = fit_stack(parts, labels, w).weights * roots
    found, _ = objective(v, X, labels, w)
    rng, small = np.random.default_rng(0), 1e-7
    for scale in (0.0, 0.1, 1.0, 10.0):
        other = minimize(
            objective, scale * rng.exponential(size=len(v)), (X, labels, w), "L-BFGS-B", jac=True,
            bounds=[(0, None)] * len(v), options={"ftol": 0, "gtol": small, "maxiter": 1000},
        )  # fmt: skip
        rounding = len(w) * EPS * (1 + found)
        assert found <= other.fun + rounding
        assert other.fun <= found + small * np.abs(other.x - v).sum() + rounding  # convexity


@problems
def test_the_reported_loss_is_that_of_the_weights(case):
    parts, labels, w = case
    stack = fit_stack(parts, labels, w)
    X, roots = normal_parts(parts[:, w > 0], w[w > 0])
    S = np.tensordot(stack.weights * roots, X, 1)
    expected = log_loss(S, labels[w > 0], w[w > 0])
    rounding = X[0].size * EPS * (1 + np.abs(S).max())
    assert abs(stack.loss - expected) <= rounding


# The loss and its derivatives


def logit_of(parts, labels, w):
    X, _ = scaled(parts, w / w.sum())
    return Logit(X, smoothed(labels, parts.shape[2], w.sum()), w / w.sum(), RIDGE / w.sum())


@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_are_the_definition(seed):
    parts, labels, w = problem(seed=seed)
    logit, (X, _) = logit_of(parts, labels, w), normal_parts(parts, w)
    v = np.random.default_rng(seed).exponential(size=4)
    value, P = logit.value(v)
    expected, gradient = objective(v, X, labels, w)
    tolerance = gradient_rounding(X, v)
    assert abs(value - expected) <= tolerance
    assert (np.abs(logit.gradient(v, P) - gradient) <= tolerance).all()


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_differences(seed):
    """Central differences: the third derivative, and the rounding of the values, over the step."""
    parts, labels, w = problem(seed=seed)
    logit = logit_of(parts, labels, w)
    v, h = np.random.default_rng(seed).exponential(size=4), EPS ** (1 / 3)
    spread = np.max(logit.X.max(axis=1) - logit.X.min(axis=1))
    _, P = logit.value(v)
    g, H = logit.gradient(v, P), logit.hessian(P)
    for m, e in enumerate(h * np.eye(4)):
        (up, P_up), (down, P_down) = logit.value(v + e), logit.value(v - e)
        bound = h**2 * spread**3 + gradient_rounding(logit.X, v) / h
        assert abs((up - down) / (2 * h) - g[m]) <= bound
        change = (logit.gradient(v + e, P_up) - logit.gradient(v - e, P_down)) / (2 * h)
        bound = h**2 * spread**4 + gradient_rounding(logit.X, v) / h
        assert (np.abs(change - H[m]) <= bound).all()
        assert bound < 0.1 * np.abs(H[m]).max()  # the comparison tells something


def test_the_loss_is_convex():
    logit, rng = logit_of(*PROBLEMS["noise"]), np.random.default_rng(0)
    for scale in (0.1, 1.0, 30.0):
        a, b = scale * rng.normal(size=(2, 4))
        ends, middle = (logit.value(a)[0] + logit.value(b)[0]) / 2, logit.value((a + b) / 2)[0]
        assert middle < ends


# Invariances


def eighths(seed=0):
    """Parts whose sums and means over four classes are exact."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 90)
    return rng.integers(-20, 20, (3, 90, 4)) / 8 + (labels[:, None] == np.arange(4)), labels


def assert_same_weights(stack, other, parts, labels, w, units=1.0):
    """Minima of two losses whose gradients differ by rounding differ by that over the curvature."""
    X, roots = normal_parts(parts, w)
    v = stack.weights * roots
    bound = 4 * gradient_rounding(X, v) / curvature(v, X, w) + len(w) * EPS * np.abs(v)
    assert (np.abs(other.weights * units * roots - v) <= bound).all()
    assert abs(other.loss - stack.loss) <= 2 * gradient_rounding(X, v)


def test_what_is_added_to_all_scores_of_a_row_does_not_matter():
    parts, labels = eighths()
    shifted = parts + np.random.default_rng(1).integers(-99, 99, (3, 90, 1))
    one, other = fit_stack(parts, labels), fit_stack(shifted, labels)
    np.testing.assert_array_equal(other.weights, one.weights)
    assert other.loss == one.loss
    assert one.weights.any()


@pytest.mark.parametrize("factor", [8.0, 0.3, 1e-200, 1e200])
def test_a_factor_of_a_part_divides_its_weight(factor):
    parts, labels = eighths()
    units = np.array([1.0, factor, 1.0])
    one, other = fit_stack(parts, labels), fit_stack(parts * units[:, None, None], labels)
    assert one.weights[1] > 0
    assert_same_weights(one, other, parts, labels, np.ones(90), units)


def test_the_order_of_rows_classes_and_parts_does_not_matter():
    parts, labels, w = PROBLEMS["noise"]
    rng = np.random.default_rng(0)
    rows, classes, order = rng.permutation(120), rng.permutation(4), rng.permutation(4)
    shuffled = parts[np.ix_(order, rows, classes)]
    other = fit_stack(shuffled, np.argsort(classes)[labels[rows]], w[rows])
    back = Stack(other.weights[np.argsort(order)], other.loss)
    assert_same_weights(fit_stack(parts, labels, w), back, parts, labels, w)


# Weights of rows


def test_integer_weights_are_repeated_rows():
    parts, labels, w = problem(weights=1, seed=6)
    repeated = np.repeat(parts, w, axis=1), np.repeat(labels, w)
    assert (w == 0).any()
    assert (w > 1).any()
    one, other = fit_stack(parts, labels, w), fit_stack(*repeated)
    assert_same_weights(one, other, *repeated, np.ones(w.sum()))
    unweighted = fit_stack(parts, labels)
    assert abs(unweighted.loss - one.loss) > 1e-3  # weights matter


def test_rows_of_weight_zero_are_as_if_they_were_absent():
    parts, labels, w = problem(weights=1, seed=6)
    parts[:, w == 0] = 1e9
    one, other = fit_stack(parts, labels, w), fit_stack(parts[:, w > 0], labels[w > 0], w[w > 0])
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.loss == other.loss


# Special cases


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_perfect_separation_ends_where_smoothed_labels_are(n):
    """All rows are alike: the derivative is that of a logistic function, 2 (p - t) + 2 ridge v."""
    labels = np.arange(n) % 2
    part = np.where(labels[:, None] == np.arange(2), 7.0, -7.0)
    stack = fit_stack(part[None], labels)
    v = 7 * stack.weights[0]
    wrong = SMOOTH / (n + 2 * SMOOTH)
    p, t = 1 / (1 + np.exp(-2 * v)), 1 - wrong + wrong / 2
    assert abs(2 * (p - t) + 2 * RIDGE * v / n) <= 2 * n * EPS * (2 + v)
    assert 0 < stack.loss < np.log(2)


def test_equal_scores_have_no_weight():
    """The mean of ten equal numbers is rounded, and what rounding leaves of them is no score."""
    row_values = np.arange(1, 8) / 10
    assert sum([row_values[0]] * 10) / 10 != row_values[0]
    parts = np.broadcast_to(row_values[:, None], (2, 7, 10))
    stack = fit_stack(parts, np.arange(7) % 3)
    np.testing.assert_array_equal(stack.weights, 0)
    assert abs(stack.loss - np.log(10)) <= 70 * EPS
    np.testing.assert_array_equal(probabilities(stack.scores(parts)), np.full((7, 10), 1 / 10))


@pytest.mark.parametrize("factor", [1.0, 1 / 3, 7.3, 1e-9])
@pytest.mark.parametrize("lone", range(4))
def test_a_part_whose_gradient_is_rounding_has_no_weight(factor, lone):
    """Three objects of one class and one of the other, of equal distances: the truth is zero."""
    labels = (np.arange(4) == lone).astype(int)
    score = factor * np.where(labels == 1, 1.0, 1 / 3)
    parts = np.stack([score, -score], axis=1) * np.array([1.0, 0.7])[:, None, None]
    X, _ = scaled(parts, np.full(4, 0.25))
    assert abs(objective(np.zeros(2), X.swapaxes(1, 2), labels, np.ones(4))[1]).max() < 8 * EPS
    np.testing.assert_array_equal(fit_stack(parts, labels).weights, 0)
    slightly = parts - 1e-6 * np.where(labels == 0, -1.0, 1.0)[:, None] * [1, -1]
    assert fit_stack(slightly, labels).weights.any()


def test_a_part_of_equal_scores_does_not_disturb_the_others():
    parts, labels = eighths()
    constant = np.full((1, 90, 4), 0.1) * np.arange(90)[:, None]
    stack = fit_stack(np.concatenate([constant, parts]), labels)
    assert stack.weights[0] == 0
    others = Stack(stack.weights[1:], stack.loss)
    assert_same_weights(fit_stack(parts, labels), others, parts, labels, np.ones(90))


def test_twins_share_their_weight():
    weights = fit_stack(*twins()).weights
    np.testing.assert_allclose(weights[0], weights[2], rtol=1e-6)  # the ridge is all that decides
    assert weights[0] > 0


def test_inputs_are_left_alone():
    parts, labels, w = problem()
    before = parts.copy(), labels.copy(), w.copy()
    fit_stack(parts, labels, w).scores(parts)
    for now, then in zip((parts, labels, w), before, strict=True):
        np.testing.assert_array_equal(now, then)


# Temperatures


def at_best_temperature(scores, labels, weights=None):
    """The factor of one part that has the smallest log loss, and this loss."""
    stack = fit_stack(two_columns(scores)[None], labels, weights)
    return float(stack.weights[0]), stack.loss


@pytest.mark.parametrize("q", [2, 5])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_temperature_has_the_smallest_loss(q, unit):
    """The ridge is all by which the loss may exceed the minimum without it."""
    parts, labels, w = problem(q=q, seed=7, weights=0.4)
    scores = parts[0] * unit
    tau, loss = at_best_temperature(scores, labels, w)
    rows = w > 0

    def at(factor):
        return log_loss(factor * scores[rows] / unit, labels[rows], w[rows])

    best = minimize_scalar(at, bounds=(0, 20), method="bounded", options={"xatol": 1e-10})
    _, roots = normal_parts(parts[:1, rows], w[rows])
    ridge = RIDGE * (best.x * roots[0]) ** 2 / w.sum()
    rounding = scores.size * EPS * (1 + tau * np.abs(scores).max())
    assert abs(loss - at(tau * unit)) <= rounding
    assert best.fun - rounding <= loss <= best.fun + ridge + rounding
    assert ridge < 0.1 * (np.log(q) - loss)  # the comparison tells something


def test_one_column_of_two_classes_has_both_signs():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 50)
    f = (2 * labels - 1 + rng.normal(size=50))[:, None]
    np.testing.assert_array_equal(two_columns(f), np.column_stack([-f[:, 0], f[:, 0]]))
    both = np.concatenate([-f, f], axis=1)
    assert two_columns(both) is both
    assert two_columns(np.stack([f, f])).shape == (2, 50, 2)
    tau, loss = at_best_temperature(f, labels)
    assert (tau, loss) == at_best_temperature(both, labels)
    assert tau > 0
    assert at_best_temperature(-f, labels)[0] == 0


def test_misleading_scores_have_temperature_zero():
    parts, labels, w = PROBLEMS["all mislead"]
    tau, loss = at_best_temperature(parts[0], labels, w)
    assert tau == 0
    assert abs(loss - np.log(4)) <= 120 * EPS


# Scores and probabilities


@pytest.mark.parametrize("q", [2, 3, 22])
def test_scores_and_probabilities_have_the_same_bits_for_any_rows(q):
    parts = np.random.default_rng(0).normal(size=(5, 301, q)) * 9
    stack = Stack(np.array([0.3, 0.0, 1.7, 0.11, 1e-3]), 0.0)
    scores = stack.scores(parts)
    expected = np.einsum("m,mnq->nq", stack.weights, parts)
    assert np.abs(scores - expected).max() <= 5 * EPS * stack.weights.sum() * np.abs(parts).max()
    P = probabilities(scores)
    for size in (1, 2, 7, 64, 300):
        for start in range(0, 301, size):
            rows = slice(start, start + size)
            np.testing.assert_array_equal(stack.scores(parts[:, rows]), scores[rows])
            np.testing.assert_array_equal(probabilities(scores[rows]), P[rows])
    np.testing.assert_array_equal(probabilities(np.asfortranarray(scores)), P)


def test_probabilities_are_proportional_to_exponentials():
    scores = np.random.default_rng(0).normal(size=(40, 6))
    expected = np.exp(scores) / np.exp(scores).sum(axis=1)[:, None]
    np.testing.assert_allclose(probabilities(scores), expected, rtol=6 * EPS * 4, atol=0)
    np.testing.assert_array_equal(
        probabilities(np.array([[0, 1e5], [-1e300, -1e300]])), [[0, 1], [0.5, 0.5]]
    )


# The range of scores


def test_half_a_percent_of_the_scores_is_beyond_each_end():
    scores = np.random.default_rng(0).normal(size=(1000, 4))
    low, high = score_range(scores)
    share = len(scores) // 200  # the 0.5 % quantile of the extreme scores of each object
    assert low == np.sort(scores.min(axis=1))[share - 1]
    assert high == np.sort(scores.max(axis=1))[-share]
    assert score_range(-scores) == (-high, -low)


def test_the_range_of_few_scores_is_all_of_them():
    scores = np.random.default_rng(0).normal(size=(30, 3))
    assert score_range(scores) == (scores.min(), scores.max())


def test_the_range_by_weights_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    scores, w = rng.standard_cauchy(size=(500, 3)), rng.integers(0, 5, 500)
    assert score_range(scores, w) == score_range(np.repeat(scores, w, axis=0))
    assert score_range(scores, w) != score_range(scores)


def test_labels_share_the_weights_of_parts_as_problems_of_two_classes():
    """Every object and label is a row of one problem, whose two classes have half the odds each."""
    rng = np.random.default_rng(3)
    Y = rng.choice([-1, 1], size=(40, 3), p=[0.7, 0.3])
    parts = np.stack([Y + rng.normal(size=Y.shape), 0.5 * Y + rng.normal(size=Y.shape)])
    w = rng.integers(1, 4, size=40).astype(float)
    rows = [(i, j) for i in range(40) for j in range(3)]
    X = np.array([[[-part[i, j] / 2, part[i, j] / 2] for i, j in rows] for part in parts])
    labels = np.array([int(Y[i, j] == 1) for i, j in rows])
    of_rows = np.array([w[i] for i, _ in rows])
    found = fit_label_stack(parts, Y, w)
    scaled_parts, roots = normal_parts(X, of_rows)
    _, gradient = objective(found.weights * roots, scaled_parts, labels, of_rows)
    assert (found.weights > 0).all()
    np.testing.assert_allclose(gradient, 0, atol=1e-9)
