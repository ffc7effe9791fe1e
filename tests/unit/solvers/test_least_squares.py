"""Ridge regression against stacked rows in lstsq, refits of single rows and finite differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kreinlearn.solvers.least_squares import (
    Factor,
    Fold,
    LeaveOneOut,
    group_sums,
    in_span,
    ridge,
    scaling,
    sign_groups,
    signed_penalty,
)

EPS = float(np.finfo(np.float64).eps)
SHAPES = [(40, 6, 1), (40, 6, 3), (7, 12, 2), (1, 3, 1)]  # rows, features, outputs


def draw(n, r, q, seed=0):
    """Features of unequal size with a mean, targets with one, weights of which some are zero."""
    rng = np.random.default_rng([seed, n, r])
    Phi = rng.normal(size=(n, r)) * np.geomspace(1, 0.05, r) + rng.normal(size=r)
    w = rng.uniform(0.2, 3, n) * (np.arange(n) % 6 > 0) if n > 6 else np.ones(n)
    return Phi, Phi[:, :1] + rng.normal(size=(n, q)), w


def stacked(Phi, Y, penalty, w=None, *, intercept=False):
    """Rows of data over roots of the penalty; a constant is a column without one."""
    w = np.ones(len(Phi)) if w is None else w
    r = Phi.shape[1]
    if intercept:
        Phi = np.column_stack([Phi, np.ones(len(Phi))])
        penalty = np.append(penalty, 0.0)
    system = np.vstack([np.sqrt(w)[:, None] * Phi, np.diag(np.sqrt(penalty))])
    target = np.vstack([np.sqrt(w)[:, None] * Y, np.zeros((len(penalty), Y.shape[1]))])
    solution = np.linalg.lstsq(system, target, rcond=1e-12)[0]
    return solution[:r], solution[r] if intercept else np.zeros(Y.shape[1])


def differences(loss, lambdas, step=1e-4):
    """Gradient in log lambda, by a formula of fourth order."""
    found = []
    for direction in np.eye(len(lambdas)):
        near, far = (
            loss(lambdas * np.exp(k * step * direction))
            - loss(lambdas * np.exp(-k * step * direction))
            for k in (1, 2)
        )
        found.append((8 * near - far) / (12 * step))
    return np.array(found)


# From terms


@pytest.mark.parametrize("shape", SHAPES)
def test_ridge_is_least_squares_on_stacked_rows(shape):
    Phi, Y, _ = draw(*shape)
    penalty = np.geomspace(0.01, 10, shape[1])
    found = ridge(Phi.T @ Phi, Phi.T @ Y, penalty)
    np.testing.assert_allclose(found.coef, stacked(Phi, Y, penalty)[0], rtol=0, atol=1e-11)
    assert not found.singular


def test_no_penalty_and_full_rank():
    Phi, Y, _ = draw(40, 6, 2)
    found = ridge(Phi.T @ Phi, Phi.T @ Y, np.zeros(6))
    np.testing.assert_allclose(found.coef, np.linalg.lstsq(Phi, Y)[0], rtol=0, atol=1e-11)
    assert not found.singular


def deficient(kind):
    Phi, Y, _ = draw(40, 6, 2)
    if kind == "twins":
        Phi[:, 3] = Phi[:, 1]
    elif kind == "zeros":
        Phi[:, 3] = 0
    elif kind == "sum":
        Phi[:, 3] = Phi[:, 0] - 2 * Phi[:, 5]
    else:
        Phi, Y = Phi[:4], Y[:4]  # fewer rows than features
    return Phi, Y


@pytest.mark.parametrize("kind", ["twins", "zeros", "sum", "few rows"])
def test_a_singular_matrix_without_penalty_gives_the_smallest_solution(kind):
    Phi, Y = deficient(kind)
    found = ridge(Phi.T @ Phi, Phi.T @ Y, np.zeros(6))
    assert found.singular
    np.testing.assert_allclose(found.coef, np.linalg.pinv(Phi) @ Y, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["twins", "zeros", "sum"])
def test_a_penalty_on_some_coordinates_may_leave_it_singular_or_not(kind):
    Phi, Y = deficient(kind)
    for penalised, singular in (([0, 2], kind != "sum"), ([3, 4], False)):
        penalty = np.zeros(6)
        penalty[penalised] = 0.3
        found = ridge(Phi.T @ Phi, Phi.T @ Y, penalty)
        assert found.singular == singular
        np.testing.assert_allclose(found.coef, stacked(Phi, Y, penalty)[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["twins", "zeros", "sum", "few rows"])
def test_a_penalty_lost_to_rounding_is_no_singular_problem(kind):
    """Where Cholesky fails the solution stays that of smallest norm, and nothing is reported."""
    Phi, Y = deficient(kind)
    found = ridge(Phi.T @ Phi, Phi.T @ Y, np.full(6, 1e-18))
    assert not found.singular
    np.testing.assert_allclose(Phi @ found.coef, Phi @ np.linalg.pinv(Phi) @ Y, rtol=0, atol=1e-6)


def test_no_features_and_no_outputs():
    assert ridge(np.empty((0, 0)), np.empty((0, 2)), np.empty(0)).coef.shape == (0, 2)
    assert ridge(np.eye(3), np.empty((3, 0)), np.ones(3)).coef.shape == (3, 0)


@pytest.mark.parametrize("power", [-200, 200])
def test_powers_of_two_change_no_bit(power):
    """Nothing is compared with a number that has a unit."""
    Phi, Y = deficient("sum")
    G, B, penalty = Phi.T @ Phi, Phi.T @ Y, np.array([0, 0.5, 0, 0, 1, 0])
    one, c = ridge(G, B, penalty), 2.0**power
    other = ridge(c * G, c * B, c * penalty)
    np.testing.assert_array_equal(one.coef, other.coef)
    assert one.singular == other.singular


def test_a_factor_solves_for_any_right_side():
    Phi, _, _ = draw(40, 6, 1)
    A, B = Phi.T @ Phi + np.eye(6), np.random.default_rng(1).normal(size=(6, 50))
    np.testing.assert_allclose(A @ Factor(Phi.T @ Phi, np.ones(6)).solve(B), B, atol=1e-11)


# Folds


def signature(r, kind):
    return {"both": np.where(np.arange(r) % 3, 1.0, -1.0), "plus": np.ones(r)}[kind]


def split(shape, seed):
    """Rows of two parts, less the training means."""
    (Phi, Y, w), (Phi_v, Y_v, w_v) = draw(*shape, seed=seed), draw(9, *shape[1:], seed=seed + 100)
    mean, ybar = np.average(Phi, axis=0, weights=w), np.average(Y, axis=0, weights=w)
    return (Phi - mean, Y - ybar, w), (Phi_v - mean, Y_v - ybar, w_v)


def fold_from(train, valid, S):
    Phi, Y, w = train
    Phi_v, Y_v, w_v = valid
    wPhi, wPhi_v = w[:, None] * Phi, w_v[:, None] * Phi_v
    return Fold(
        wPhi.T @ Phi, wPhi.T @ Y, w.sum(), S,
        wPhi_v.T @ Phi_v, wPhi_v.T @ Y_v, w_v @ Y_v**2, w_v.sum(),
    )  # fmt: skip


LAMBDAS = [np.array(pair) for pair in product([1e-3, 0.4], [1e-2, 5.0])]


@pytest.mark.parametrize("kind", ["both", "plus"])
@pytest.mark.parametrize("shape", [(40, 6, 1), (40, 6, 3), (8, 12, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_of_a_fold_is_that_of_its_rows(shape, kind, seed):
    train, valid = split(shape, seed)
    S = signature(shape[1], kind)
    fold = fold_from(train, valid, S)
    for lambdas in LAMBDAS:
        penalty = train[2].sum() * np.where(S > 0, *lambdas)
        Z, _ = stacked(train[0], train[1], penalty, train[2])
        expected = valid[2] @ ((valid[1] - valid[0] @ Z) ** 2).sum(axis=1)
        assert fold.loss_and_gradient(np.asarray(lambdas))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", ["both", "plus"])
@pytest.mark.parametrize("shape", [(40, 6, 1), (40, 6, 3), (8, 12, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_a_fold_by_differences(shape, kind, seed):
    fold = fold_from(*split(shape, seed), signature(shape[1], kind))
    for lambdas in LAMBDAS:
        loss, gradient = fold.loss_and_gradient(np.asarray(lambdas))
        expected = differences(
            lambda values: fold.loss_and_gradient(np.asarray(values))[0], lambdas
        )
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9 * loss)
        if kind == "plus":
            assert gradient[1] == 0


# Groups of features

FOUR = np.array([0, 2, 1, 3, 3, 0, 2])  # two similarities, and the signs of each


def test_groups_are_the_signs_unless_others_are_given():
    S = signature(7, "both")
    fold = fold_from(*split((40, 7, 2), 0), S)
    np.testing.assert_array_equal(fold.groups, sign_groups(S))
    np.testing.assert_array_equal(fold.groups, np.where(S > 0, 0, 1))
    np.testing.assert_array_equal(
        fold.penalty(np.array([0.1, 7.0])), fold.n * signed_penalty(S, 0.1, 7.0)
    )
    four = replace(fold, groups=FOUR)
    np.testing.assert_allclose(
        four.penalty(np.array([1.0, 2.0, 3.0, 4.0])), fold.n * (FOUR + 1.0), rtol=1e-15
    )


def test_sums_of_groups_leave_out_what_is_in_none():
    terms, groups = np.array([1.0, 10.0, 100.0, 1000.0]), np.array([2, 0, -1, 2])
    np.testing.assert_array_equal(group_sums(terms, groups, 4), [10, 0, 1001, 0])


@pytest.mark.parametrize("seed", range(3))
def test_a_fold_with_a_penalty_for_each_of_four_groups(seed):
    train, valid = split((40, 7, 2), seed)
    fold = replace(fold_from(train, valid, signature(7, "both")), groups=FOUR)
    values = np.array([1e-3, 0.4, 1e-2, 5.0])
    loss, gradient = fold.loss_and_gradient(values)
    Z, _ = stacked(train[0], train[1], train[2].sum() * values[FOUR], train[2])
    expected = valid[2] @ ((valid[1] - valid[0] @ Z) ** 2).sum(axis=1)
    assert loss == pytest.approx(expected, rel=1e-9)
    slopes = differences(lambda x: fold.loss_and_gradient(x)[0], values)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-9 * loss)


# Leave-one-out

LEFT = {"plain": False, "weighted": True}


def rows_to_leave_out(shape, weighted, seed=0):
    Phi, Y, w = draw(*shape, seed=seed)
    tested = np.arange(len(Phi)) % 4 > 0
    return Phi, Y, w if weighted else np.ones(len(Phi)), tested


def by_refits(Phi, Y, w, tested, penalty, intercept):
    """Every tested row predicted by a fit to the others, with the penalty as it is."""
    total = 0.0
    for i in np.flatnonzero(tested):
        others = np.delete(np.arange(len(Phi)), i)
        Z, b = stacked(Phi[others], Y[others], penalty, w[others], intercept=intercept)
        total += w[i] * np.sum((Y[i] - Phi[i] @ Z - b) ** 2)
    return total


@pytest.mark.parametrize("weighted", LEFT.values(), ids=LEFT)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(40, 6, 2), (12, 20, 1)])
def test_leave_one_out_is_a_refit_a_row(shape, intercept, weighted):
    rows = rows_to_leave_out(shape, weighted)
    S = signature(shape[1], "both")
    for lambdas in LAMBDAS:
        penalty = rows[2].sum() * np.where(S > 0, *lambdas)
        expected = by_refits(*rows, penalty, intercept)
        fold = LeaveOneOut(*rows, sign_groups(S), intercept=intercept)
        assert fold.loss_and_gradient(lambdas)[0] == pytest.approx(expected, rel=1e-8)
        assert fold.n_valid == pytest.approx(rows[2][rows[3]].sum())


@pytest.mark.parametrize("weighted", LEFT.values(), ids=LEFT)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(40, 6, 1), (40, 6, 3), (12, 20, 2)])
def test_the_gradient_of_leave_one_out_by_differences(shape, intercept, weighted):
    for groups in (sign_groups(signature(shape[1], "both")), np.arange(shape[1]) % 3):
        for seed, lambdas in enumerate(LAMBDAS):
            values = np.append(lambdas, 0.07)[: groups.max() + 1]
            rows = rows_to_leave_out(shape, weighted, seed)
            fold = LeaveOneOut(*rows, groups, intercept=intercept)
            loss, gradient = fold.loss_and_gradient(values)
            expected = differences(lambda x, fold=fold: fold.loss_and_gradient(x)[0], values)
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * loss)


def test_rows_that_are_not_tested_do_not_count():
    Phi, Y, w, _ = rows_to_leave_out((40, 6, 2), weighted=True)
    groups, values = sign_groups(signature(6, "both")), np.array([0.1, 0.2])

    def tested(rows):
        return LeaveOneOut(Phi, Y, w, rows, groups, intercept=True).loss_and_gradient(values)

    single = [tested(np.arange(40) == i) for i in range(40)]
    some = np.arange(40) % 3 == 1
    loss, gradient = tested(some)
    assert loss == pytest.approx(sum(single[i][0] for i in np.flatnonzero(some)), rel=1e-12)
    expected = np.sum([single[i][1] for i in np.flatnonzero(some)], axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)


# Equivalent problems


def test_scaled_features_have_penalties_of_one():
    scale, unit = scaling(np.array([4.0, 0.0, 0.25]))
    np.testing.assert_array_equal(scale, [0.5, 1.0, 2.0])
    np.testing.assert_array_equal(unit, [1.0, 0.0, 1.0])


@pytest.mark.parametrize(("n", "rank", "left"), [(6, 10, 6), (6, 1, 1), (6, 3, 3), (15, 10, 10)])
def test_an_equivalent_problem_of_as_few_features_as_possible(n, rank, left):
    rng = np.random.default_rng(n + rank)
    Phi = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, 10))
    penalty = rng.uniform(0.1, 3.0, 10)
    F, unit, back = in_span(Phi, penalty)
    assert F.shape == (n, left)
    np.testing.assert_array_equal(unit, np.ones(left))
    size = np.abs(Phi / penalty) @ np.abs(Phi).T
    assert np.abs(F @ F.T - (Phi / penalty) @ Phi.T).max() <= 100 * n * EPS * size.max()
    v = rng.normal(size=left)
    np.testing.assert_allclose(Phi @ (back @ v), F @ v, rtol=0, atol=1e-9 * np.abs(F @ v).max())
    # v'v is the penalty of the coefficients
    assert penalty @ (back @ v) ** 2 == pytest.approx(v @ v, rel=1e-9)


def test_a_feature_without_penalty_stays():
    Phi = np.random.default_rng(0).normal(size=(4, 10))
    penalty = np.append(0.0, np.full(9, 4.0))
    F, unit, back = in_span(Phi, penalty)
    np.testing.assert_array_equal(unit, np.append(0.0, np.ones(9)))
    np.testing.assert_array_equal(F, Phi @ back)
    np.testing.assert_array_equal(back, np.diag(np.append(1.0, np.full(9, 0.5))))
