"""The squared hinge loss of all objects: optimality, folds by another solver, tuned factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn import KreinSVC
from kreinlearn.kernels import Precomputed
from kreinlearn.learn.comparison import SKETCHED, Comparison
from kreinlearn.learn.exact import (
    by_folds,
    decomposed,
    exact_features,
    spread_out,
    tune_exactly,
)
from kreinlearn.learn.folds import SOME
from kreinlearn.learn.losses import machines
from kreinlearn.learn.losses.hinge import SquaredHinge
from kreinlearn.learn.losses.machines import (
    FACTORS,
    MachineFold,
    machines_of,
    tune_machines,
)
from kreinlearn.learn.search import TIE_RTOL, Unknowns
from kreinlearn.learn.task import some_outputs
from kreinlearn.solvers.margins import DenseRows
from kreinlearn.solvers.squared_hinge import finite_newton
from tests.unit.learn.learning import (
    LAMBDAS,
    NUMBERS,
    K,
    N,
    W,
    Y,
    of_vectors,
    opened,
    parts,
    rng,
    task_of,
)

ALL, SHUFFLED = np.arange(N), rng(5).permutation(N)
OTHERS = rng(6).permutation(N) % 3
SIGNS = np.where(np.median(Y, axis=0) < Y, 1, -1).astype(np.int8)
EPS = float(np.finfo(np.float64).eps)
TUNED = Unknowns((None, None))
orders = pytest.mark.parametrize("order", [ALL, SHUFFLED], ids=["sorted", "shuffled"])
weightings = pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])
intercepts = pytest.mark.parametrize("intercept", [True, False])


def features_of(rows, w):
    """Features F of the objects ``rows`` with K = F S F', of which W^1/2 F is orthogonal, and S."""
    root = np.sqrt(w)[:, None]
    D, U = np.linalg.eigh(root * K[np.ix_(rows, rows)] * root.T)
    kept = np.abs(D) > 1e-10 * np.abs(D).max()
    return U[:, kept] * np.sqrt(np.abs(D[kept])) / root, np.sign(D[kept])


def allowed_error(lambdas=LAMBDAS):
    """Roundoff times the condition of H + 1 / w, with H of a penalty of n lambda."""
    return 100 * N * EPS * np.abs(K).sum(axis=0).max() / (W.sum() * min(lambdas)) * W.max()


def machine_of(order, w, intercept, **more):
    task = of_vectors(order, w=w, intercept=intercept, targets=SIGNS, **more)
    basis = decomposed(task)
    return task, basis, machines_of(task, basis).solve(np.array(LAMBDAS), 200)


# Solutions


@orders
@weightings
@intercepts
def test_a_machine_is_that_of_features_by_another_solver(order, w, intercept):
    _, basis, model = machine_of(order, w, intercept)
    assert model.converged
    weights = np.ones(N) if w is None else w
    F, S = features_of(ALL, weights)
    penalty = weights.sum() * np.where(S > 0, *LAMBDAS)
    rows = np.column_stack([F, np.ones(N)]) if intercept else F
    padded = np.append(penalty, [0.0] * intercept)
    wanted = finite_newton(DenseRows(rows), SIGNS.astype(float), weights, padded, max_iter=500)
    Phi = basis.spectrum.U * np.sqrt(np.abs(basis.spectrum.D)) / basis.root[:, None]
    found = Phi @ model.coef + model.intercept
    assert np.abs(found - (rows @ wanted.coef)[order]).max() <= allowed_error()


@orders
@weightings
@intercepts
def test_optimality_conditions(order, w, intercept):
    """P z = Phi' (w y short), and the weights of both signs are in balance."""
    _, basis, model = machine_of(order, w, intercept)
    weights = (np.ones(N) if w is None else w)[order, None]
    y = SIGNS[order]
    Phi = basis.spectrum.U * np.sqrt(np.abs(basis.spectrum.D)) / basis.root[:, None]
    pull = weights * y * np.maximum(0.0, 1 - y * (Phi @ model.coef + model.intercept))
    penalty = basis.n * np.array(LAMBDAS)[basis.groups]
    size = np.abs(Phi).max() * np.abs(pull).sum(axis=0).max()
    gap = penalty[:, None] * model.coef - Phi.T @ pull
    assert np.abs(gap).max() <= allowed_error() * size
    if intercept:
        assert np.abs(pull.sum(axis=0)).max() <= allowed_error() * np.abs(pull).sum()
    else:
        assert not model.intercept.any()


def test_penalties_of_both_signs_matter():
    models = [
        machines_of(*made).solve(np.array(values), 200).coef
        for made in [machine_of(ALL, None, True)[:2]]
        for values in ((0.01, 0.01), (0.1, 0.01), (0.01, 0.1))
    ]
    assert np.abs(models[0] - models[1]).max() > 1e-3
    assert np.abs(models[0] - models[2]).max() > 1e-3


def test_penalties_below_rounding_errors_are_left_to_the_solver_of_features():
    """Products of a few vectors, so large that the penalties vanish beside them."""
    F = rng(9).normal(size=(N, 3))
    pairs, sample = opened(Precomputed(), 1e200 * F @ F.T, ALL)
    task = task_of(pairs, sample, targets=SIGNS)
    task, features = exact_features(task)
    values = np.array(LAMBDAS) / features.unit
    assert not machines.machines_of(task, features.basis).above_rounding(values)
    model = SquaredHinge().solve(task, features, values, None)
    Phi = machines.machines_of(task, features.basis).Phi
    f = Phi @ model.coef + model.intercept
    rows = np.column_stack([F, np.ones(N)])
    wanted = finite_newton(DenseRows(rows), SIGNS.astype(float), np.ones(N), np.zeros(4))
    assert np.abs(f - rows @ wanted.coef).max() <= 1000 * N * EPS * np.linalg.cond(rows) ** 2


# Folds


@orders
@weightings
@intercepts
def test_the_loss_of_a_fold_by_another_solver(order, w, intercept):
    task = of_vectors(order, w=w, intercept=intercept, targets=SIGNS)
    weights = np.ones(N) if w is None else w
    for k, fold in enumerate(by_folds(task).folds):
        train, valid = parts(k)
        F, S = features_of(train, weights[train])
        D = np.square(np.sqrt(weights[train])[:, None] * F).sum(axis=0)
        to_valid = K[np.ix_(valid, train)] * weights[train] @ F / D * S
        penalty = np.append(weights[train].sum() * np.where(S > 0, *LAMBDAS), [0.0] * intercept)
        ones = [np.ones((len(rows), 1))[:, : int(intercept)] for rows in (train, valid)]
        machine = finite_newton(
            DenseRows(np.hstack([F, ones[0]])), SIGNS[train].astype(float), weights[train], penalty,
            max_iter=500,
        )  # fmt: skip
        f = np.hstack([to_valid, ones[1]]) @ machine.coef
        short = np.maximum(0.0, 1 - SIGNS[valid] * f)
        wanted = float(weights[valid] @ np.square(short).sum(axis=1))
        found = MachineFold(fold, some_outputs(fold.Y), intercept=intercept).loss(np.array(LAMBDAS))
        # features of small eigenvalues are divided by their roots
        assert found == pytest.approx(wanted, abs=allowed_error() * wanted / np.sqrt(D.min()))


# Tuning


def loss_at(task, values, places=None):
    folds = [
        MachineFold(fold, some_outputs(fold.Y), intercept=task.intercept)
        for fold in by_folds(task, places).folds
    ]
    return sum(fold.loss(values) for fold in folds) / sum(fold.n_valid for fold in folds)


@weightings
@pytest.mark.parametrize("rounds", [(), (NUMBERS,), (NUMBERS, OTHERS)], ids=[0, 1, 2])
def test_a_factor_of_the_penalties_of_least_squares(w, rounds):
    """Machines are judged by folds, also where least squares leaves out one object at a time."""
    task = replace(of_vectors(ALL, w=w, targets=SIGNS), rounds=rounds)
    basis = decomposed(task)
    start = tune_exactly(task, basis, TUNED).tuned.values
    tuned = tune_machines(task, basis, TUNED)
    np.testing.assert_array_equal(tuned.trials[:, :2], FACTORS[:, None] * start)
    wanted = [loss_at(task, factor * start) for factor in FACTORS]
    np.testing.assert_allclose(tuned.trials[:, 2], wanted, rtol=1e-12)
    assert tuned.loss == min(tuned.trials[:, 2])
    ties = tuned.trials[:, 2] <= tuned.loss * (1 + TIE_RTOL)
    np.testing.assert_array_equal(tuned.values, FACTORS[ties].max() * start)


def test_a_given_penalty_stays():
    task = of_vectors(ALL, targets=SIGNS)
    tuned = tune_machines(task, decomposed(task), Unknowns((0.02, None)))
    assert (tuned.trials[:, 0] == 0.02).all()
    assert tuned.values[0] == 0.02
    assert len(np.unique(tuned.trials[:, 1])) == len(FACTORS)


def test_penalties_that_were_found_before_are_not_tuned_again(monkeypatch):
    task = of_vectors(ALL, targets=SIGNS)
    basis = decomposed(task)
    before = tune_exactly(task, basis, TUNED).tuned
    expected = tune_machines(task, basis, TUNED)

    def refused(*args):
        raise AssertionError("they are tuned again")

    monkeypatch.setattr(machines, "tune_exactly", refused)
    found = tune_machines(replace(task, tuned=before), basis, TUNED)
    np.testing.assert_array_equal(found.values, expected.values)


def test_of_many_objects_the_factor_is_found_on_a_part(monkeypatch):
    """Relative to what least squares has there; it is applied to the penalties of all objects."""
    monkeypatch.setattr(machines, "PART", 30)
    task = of_vectors(ALL, targets=SIGNS)
    basis = decomposed(task)
    of_all = tune_exactly(task, basis, TUNED).tuned.values
    tuned = tune_machines(task, basis, TUNED)
    np.testing.assert_array_equal(tuned.trials[:, :2], FACTORS[:, None] * of_all)
    ratio = tuned.values / of_all
    assert ratio[0] == pytest.approx(ratio[1])
    assert np.isclose(FACTORS, ratio[0]).any()
    whole = [loss_at(task, factor * of_all) for factor in FACTORS]
    assert not np.allclose(tuned.trials[:, 2], whole)
    assert len(spread_out(task, 30)) == 30


def test_a_part_without_a_fold_is_not_used(monkeypatch):
    monkeypatch.setattr(machines, "PART", 30)
    task = of_vectors(ALL, targets=SIGNS)
    folds = np.full(N, -1)
    folds[np.setdiff1d(ALL, spread_out(task, 30))[:4]] = [0, 1, 2, 3]
    task = replace(task, folds=folds)
    basis = decomposed(task)
    tuned = tune_machines(task, basis, TUNED)
    wanted = [loss_at(task, values) for values in tuned.trials[:, :2]]
    np.testing.assert_allclose(tuned.trials[:, 2], wanted, rtol=1e-12)


def test_objects_that_are_all_in_one_fold_have_the_penalties_of_least_squares():
    task = of_vectors(ALL, targets=SIGNS, folds=np.zeros_like(NUMBERS))
    basis = decomposed(task)
    wanted = tune_exactly(task, basis, TUNED).tuned
    np.testing.assert_array_equal(tune_machines(task, basis, TUNED).values, wanted.values)


def test_a_few_of_many_outputs_are_those_that_vary_most():
    labels = np.repeat(range(6), [1, 20, 3, 15, 10, 11])
    signs = np.where(labels[:, None] == np.arange(6), 1.0, -1.0)
    np.testing.assert_array_equal(some_outputs(signs), [1, 3, 4, 5])
    np.testing.assert_array_equal(some_outputs(signs[:, :2]), [0, 1])


@pytest.mark.parametrize("some", [SOME, 60], ids=["folds", "one at a time"])
def test_many_classes_are_left_out_as_a_few_sums_of_them(some, monkeypatch):
    """Least squares only tells penalties here, and the sums of many targets tell the same ones."""
    seen, loss = [], Comparison.loss
    monkeypatch.setattr("kreinlearn.learn.folds.SOME", some)

    def counted(self, *args):
        seen.append(self.Y.shape[1])
        return loss(self, *args)

    monkeypatch.setattr(Comparison, "loss", counted)
    X = np.random.default_rng(0).normal(size=(72, 2))
    KreinSVC(random_state=0).fit(X, np.arange(72) % 12)
    assert set(seen) == {SKETCHED}


@pytest.mark.parametrize("rounds", [(), (NUMBERS, OTHERS)], ids=["left out", "folds"])
def test_penalties_of_a_sketch_are_those_of_all_targets(rounds):
    targets = np.where(np.arange(N)[:, None] % 11 == np.arange(11), 1.0, -1.0)
    task = replace(of_vectors(ALL, targets=targets), rounds=rounds)
    basis, unknowns = decomposed(task), Unknowns((None, None))
    _, one, of_all, _ = tune_exactly(task, basis, unknowns)
    _, other, of_few, _ = tune_exactly(task, basis, unknowns, sketched=True)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-6)
    assert of_all.scores(one.values).shape[1] == 11
    assert of_few.scores(one.values).shape[1] == SKETCHED


def test_machines_that_two_rounds_leave_out_have_the_mean_of_both_scores():
    """Each round by a solver of features; the penalties are those of the whole task per object."""
    task, features = exact_features(
        replace(of_vectors(ALL, targets=SIGNS), rounds=(NUMBERS, OTHERS))
    )
    found = SquaredHinge().left_out(task, features, np.array(LAMBDAS), None, None)
    total = np.zeros(SIGNS.shape)
    for folds in (NUMBERS, OTHERS):
        for k in range(folds.max() + 1):
            train, valid = parts(k, folds)
            F, S = features_of(train, np.ones(len(train)))
            D = np.square(F).sum(axis=0)
            rows = np.hstack([F, np.ones((len(train), 1))])
            penalty = np.append(len(train) * np.where(S > 0, *LAMBDAS), 0.0)
            machine = finite_newton(
                DenseRows(rows), SIGNS[train].astype(float), np.ones(len(train)), penalty,
                max_iter=500,
            )  # fmt: skip
            coef = machine.coef
            total[valid] += K[np.ix_(valid, train)] @ (F / D * S) @ coef[:-1] + coef[-1]
    np.testing.assert_array_equal(found.numbers, ALL)
    error = np.abs(found.scores - total / 2).max()
    assert error <= 100 * allowed_error() * np.abs(total).max()
