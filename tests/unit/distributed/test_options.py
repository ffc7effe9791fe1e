"""Options of a fit on a dask collection: the model is that of one process."""

from __future__ import annotations

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn import Landmarks, Resources
from kreinlearn.distributed import delayed, hinge, worker_rows
from kreinlearn.distributed.worker_rows import gather
from kreinlearn.solvers.margins import DenseRows
from kreinlearn.solvers.squared_hinge import finite_newton
from tests.unit.distributed.lazy import GIVEN, LABELS, N, W, X, Y, array, close, with_landmarks

TWO = np.where(Y > 100.5, "up", "down")
FIXED = {"lambda_plus": 1e-4, "lambda_minus": 1e-3}


def both(model, y, *weights, **more):
    """What a fit of rows in memory and one of a dask collection find."""
    found = []
    for kind in (np.asarray, array):
        model.fit(kind(X), kind(y), *map(kind, weights), **more)
        found.append({name: value for name, value in vars(model).items() if name.endswith("_")})
    return found


# Rows without weight

SOME = np.where(np.arange(N) % 7 == 3, 0.0, W)
WEIGHTED = {
    "ridge": (kl.KreinRidge(**GIVEN), Y, [SOME]),
    "uniform landmarks": (kl.KreinRidge(**with_landmarks(15, "uniform")), Y, [SOME]),
    "a class of no weight": (
        kl.KreinRidgeClassifier(**GIVEN, class_weight={"a": 0}), LABELS, [SOME],
    ),
    "machine": (kl.KreinSVC(**GIVEN, **FIXED), TWO, [SOME]),
}  # fmt: skip


@pytest.mark.parametrize("name", WEIGHTED)
def test_rows_without_weight_are_no_landmarks_and_change_nothing(name):
    model, y, weights = WEIGHTED[name]
    here, there = both(model, y, *weights)
    close(there["dual_coef_"], here["dual_coef_"])
    np.testing.assert_array_equal(there["landmark_indices_"], here["landmark_indices_"])
    without = np.flatnonzero((SOME == 0) | ((y == "a") if name.startswith("a class") else False))
    assert not np.isin(there["landmark_indices_"], without).any()
    if name != "a class of no weight":  # their targets do not matter
        other = np.array(y)
        other[without] = y[0]
        changed = model.fit(array(X), array(other), *map(array, weights))
        close(changed.dual_coef_, here["dual_coef_"], 1e-9)


# Schemes that look at all rows


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "evaluated again"])
@pytest.mark.parametrize("scheme", ["leverage", "kmeans++"])
def test_landmarks_of_the_paper_are_those_of_one_process(scheme, keep, monkeypatch):
    monkeypatch.setattr(worker_rows, "room", lambda *args, **kwargs: 2**60 if keep else 0)
    for more in ({}, {"kernel": "euclidean", "similarity": "rank3"}):
        model = kl.KreinRidge(**{**with_landmarks(15, scheme), **more})
        here, there = both(model, Y)
        np.testing.assert_array_equal(there["landmark_indices_"], here["landmark_indices_"])
        close(there["dual_coef_"], here["dual_coef_"])


@pytest.mark.parametrize("scheme", ["leverage", "kmeans++"])
def test_objects_are_drawn_as_in_one_process(scheme):
    """Their values are held in memory there, and are on the workers here."""

    def tanh(A, B):
        return np.tanh(np.asarray(A) @ np.asarray(B).T - 1.0)

    model = kl.KreinNystroem(**{**with_landmarks(15, scheme), "kernel": tanh})
    wanted = model.fit(X).landmark_indices_, model.eigenvalues_
    model.fit(array(X))
    np.testing.assert_array_equal(model.landmark_indices_, wanted[0])
    close(model.eigenvalues_, wanted[1])


def test_what_schemes_hold_of_all_rows_is_within_the_budget():
    model = kl.KreinRidge(
        **{**GIVEN, "landmarks": Landmarks(60, "kmeans++", pool=600)},
        resources=Resources(memory_budget=2**21),
    )
    with pytest.raises(MemoryError, match=r'looks at all 10540 rows.*landmarks="auto"'):
        model.fit(array(X), array(Y))


def test_results_for_single_rows_come_in_parts(monkeypatch):
    wanted = kl.KreinRidge(**with_landmarks(15, "leverage")).fit(array(X), array(Y))
    monkeypatch.setattr(worker_rows, "AT_ONCE", 1000)
    found = kl.KreinRidge(**with_landmarks(15, "leverage")).fit(array(X), array(Y))
    np.testing.assert_array_equal(found.dual_coef_, wanted.dual_coef_)


@pytest.mark.parametrize("cluster", [True, False])
@pytest.mark.parametrize("r", [1, 100])
def test_no_more_bytes_come_at_a_time_than_are_allowed(monkeypatch, r, cluster):
    """Also of many spans, or of a span that has more by itself."""
    at_once, sizes, compute = 2**16, [], delayed.compute
    values = np.random.default_rng(0).random((40 * 100, r))
    numbers = np.split(np.random.default_rng(1).permutation(len(values)), 40)
    monkeypatch.setattr(worker_rows, "AT_ONCE", at_once)
    monkeypatch.setattr(delayed, "on_cluster", lambda: cluster, raising=False)

    def measured(result):
        value = compute(result)
        sizes.append(sum(part.nbytes for part in value))
        return value

    monkeypatch.setattr(delayed, "compute", measured)
    out = np.empty_like(values)
    gather([delayed.constant(values[some]) for some in numbers], numbers, out)
    np.testing.assert_array_equal(out, values)
    assert max(sizes) <= at_once
    assert len(sizes) <= 3 * values.nbytes / at_once + 1


@pytest.mark.parametrize("method", ["svd", "sgt"])
def test_the_routes_that_hold_all_values_take_them_from_workers(method):
    model = kl.KreinNystroem(**with_landmarks(15, core="plain"), method=method)
    wanted = model.fit(X).eigenvalues_
    close(model.fit(array(X)).eigenvalues_, wanted)


# Probabilities and l1 penalties

MACHINES = {
    "probabilities": ({"probability": True}, TWO, []),
    "probabilities of three classes": (
        {"probability": True}, LABELS, [SOME],
    ),
    "l1": ({"lambda_plus": 0.0, "lambda_minus": 0.0, "lambda_l1": 1e-3}, TWO, []),
    "l1 of three classes": ({"lambda_l1": "auto"}, LABELS, [W]),
    "l1 and probabilities": ({"lambda_l1": 1e-3, "probability": True}, TWO, []),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_machines_are_those_of_one_process(name):
    """Newton's method ends within rounding of the minimum, wherever the rows are."""
    params, y, weights = MACHINES[name]
    model = kl.KreinSVC(**{**GIVEN, **FIXED, **params})
    model.fit(X, y, *weights)
    wanted, f = model.dual_coef_, model.decision_function(X[:500])
    p = model.predict_proba(X[:500]) if model.probability else None
    model.fit(array(X), array(y), *map(array, weights))
    close(model.dual_coef_, wanted, 1e-8)
    close(model.decision_function(array(X)).compute()[:500], f, 1e-8)
    if p is not None:
        close(model.predict_proba(array(X)).compute()[:500], p, 1e-8)


def test_scores_of_a_fold_are_those_of_a_model_without_it(monkeypatch):
    """From the definition: the fold has no weight, and nothing else changes."""
    found = []
    keep = hinge.ValuesOnWorkers.scores_of_fold
    monkeypatch.setattr(
        hinge.ValuesOnWorkers,
        "scores_of_fold",
        lambda *args: found.append(keep(*args)) or found[-1],
    )
    model = kl.KreinSVC(**GIVEN, **FIXED, probability=True).fit(array(X), array(TWO))
    folds = np.asarray(model.folds_)
    k = 2
    np.testing.assert_array_equal(found[k].numbers, np.flatnonzero(folds == k))
    Phi = np.column_stack([model.kernel_.columns(model.landmarks_)(X) @ model._map.W, np.ones(N)])
    w, y = (folds != k).astype(float), np.where(TWO == "up", 1.0, -1.0)
    penalty = w.sum() * np.append(np.where(model._map.S > 0, 1e-4, 1e-3), 0.0)
    z = finite_newton(DenseRows(Phi), y[:, None], w, penalty).coef
    close(found[k].scores, Phi[folds == k] @ z, 1e-7)


def test_without_room_for_all_values_probabilities_are_those_of_a_sample():
    """As in one process, which has no room for them either."""
    small = {**with_landmarks(15, pool=1000), "resources": Resources(memory_budget=1_500_000)}
    model = kl.KreinSVC(**small, **FIXED, probability=True)
    wanted = model.fit(X, TWO).predict_proba(X[:200])
    close(model.fit(array(X), array(TWO)).predict_proba(X[:200]), wanted, 1e-8)


# Rare classes


@pytest.mark.filterwarnings("ignore::kreinlearn._warnings.RareClasses")
def test_rare_classes_are_spread_over_folds_as_in_one_process():
    y = np.array(LABELS, dtype="U5")
    y[[3, 2500, 2501, 6000, N - 1]], y[[70, 9000]] = "rare", "least"
    here, there = both(kl.KreinRidgeClassifier(**GIVEN), y)
    np.testing.assert_array_equal(np.asarray(there["folds_"]), np.asarray(here["folds_"]))
    assert len(set(np.asarray(there["folds_"])[y == "rare"])) == 5
    close(there["dual_coef_"], here["dual_coef_"])
    assert there["lambda_plus_"] == pytest.approx(here["lambda_plus_"], rel=1e-10)


# Several kernels

OTHERS = {
    "several distances": (
        kl.KreinClassifier(**{**GIVEN, "kernel": ["euclidean", "manhattan"]}), LABELS, [SOME],
    ),
    "several kernels": (
        kl.KreinRegressor(**{**GIVEN, "kernel": ["euclidean", "gaussian"]}), Y, [],
    ),
    "several kernels and a scheme": (
        kl.KreinRegressor(**{**with_landmarks(15, "leverage"), "kernel": ["euclidean", "gaussian"]},
                          ), Y, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_several_kernels_are_as_in_one_process(name):
    model, y, weights = OTHERS[name]
    here, there = both(model, y, *weights)
    close(there["dual_coef_"], here["dual_coef_"])
    close(there["intercept_"], here["intercept_"])
    assert there.keys() == here.keys()
    for attribute in ("kernel_weights_", "expected_error_"):
        assert there[attribute] == here[attribute]
