"""Squared-hinge machines of dask collections against those of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn import Landmarks, Resources
from kreinlearn.data.tiles import TILE
from kreinlearn.distributed import hinge, margins, worker_rows
from kreinlearn.solvers.line_search import Question
from tests.bounds import rounding
from tests.unit.receiving import received

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N = 5 * TILE + 300  # more than a pool
M = 15
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
SCORE = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.5 * RNG.normal(size=N)
TWO = np.array(["no", "yes"])[(SCORE > 0).astype(int)]
THREE = np.digitize(SCORE, [-0.7, 0.6])
W = RNG.random(N) + 0.1
GIVEN = {"kernel": "delta_gauss", "landmarks": M, "random_state": 3}
FIXED = {"lambda_plus": 1e-4, "lambda_minus": 1e-3}
FREE = {"lambda_plus": 0.0, "lambda_minus": 0.0}
CHUNKS = {
    "1": (N,),
    "7": (1, TILE, 0, 3000, 700, 4000, N - TILE - 7701),
    "98": (N // 98,) * 97 + (N - 97 * (N // 98),),
}


def array(values, chunks="7"):
    lengths = CHUNKS[chunks] if isinstance(chunks, str) else chunks
    ends = np.cumsum(lengths)
    parts = [
        da.from_delayed(dask.delayed(values[end - n : end]), (n, *values.shape[1:]), values.dtype)
        for n, end in zip(lengths, ends, strict=True)
    ]
    return da.concatenate(parts)


def close(found, wanted, rtol=1e-10):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * np.abs(wanted).max())


def keeping(monkeypatch, keep):
    """Kernel values are kept, or evaluated again, whatever the memory."""
    monkeypatch.setattr(worker_rows, "room", lambda *args, **kwargs: 2**60 if keep else 0)


# Equal models

MODELS = {
    "tuned": ({}, X, TWO, False),
    "weights": ({**FIXED}, X, TWO, True),
    "three classes": ({**FIXED}, X, THREE, False),
    "balanced": ({"class_weight": "balanced"}, X, THREE, True),
    "no intercept": ({**FIXED, "fit_intercept": False}, X, TWO, False),
    "least-squares core": ({"landmarks": Landmarks(M, core="ls", rank=9)}, X, TWO, True),
    "no penalty": ({**FREE, "landmarks": Landmarks(M, rank=5)}, X, TWO, False),
    "float32": ({**FIXED}, X.astype(np.float32), TWO, False),
    "distances": ({**FIXED, "kernel": "euclidean", "similarity": "squared"}, X, TWO, False),
}


AGAIN = ("weights", "three classes", "least-squares core", "distances")


@pytest.mark.parametrize(
    ("name", "keep"), [*((name, True) for name in MODELS), *((name, False) for name in AGAIN)]
)
def test_the_machine_is_that_of_rows_in_memory(name, keep, monkeypatch):
    params, A, y, weighted = MODELS[name]
    w = (W,) if weighted else ()
    model = kl.KreinSVC(**{**GIVEN, **params})
    here = model.fit(A, y, *w)
    wanted = here.dual_coef_, here.intercept_, here.lambda_plus_, here.n_iter_
    predicted = here.predict(A)
    keeping(monkeypatch, keep)
    there = model.fit(array(A), array(y, "1"), *[array(each, "1") for each in w])
    close(there.dual_coef_, wanted[0])
    close(there.intercept_, wanted[1])
    close(there.lambda_plus_, wanted[2])
    assert there.n_iter_ >= wanted[3] >= 1  # rows in memory are foreseen, those on workers are not
    np.testing.assert_array_equal(there.predict(array(A)).compute(), predicted)
    assert set(vars(there)) <= {*there.get_params(), *there._fitted}  # no rows stay behind


def bits(chunks, keep, scheduler, monkeypatch):
    keeping(monkeypatch, keep)
    with dask.config.set(scheduler=scheduler):
        model = kl.KreinSVC(**GIVEN, **FIXED)
        model.fit(array(X, chunks), array(TWO, chunks), array(W, "7"))
    return model.dual_coef_.tobytes() + model.intercept_.tobytes()


def test_chunks_memory_and_schedulers_change_no_bit(monkeypatch):
    ways = [*((name, True, "threads") for name in CHUNKS), ("7", False, "sync")]
    assert len({bits(*way, monkeypatch) for way in ways}) == 1


def test_memory_and_threads_change_no_bit_of_rows_in_memory():
    """Rows that are evaluated again have the values of those that are kept."""
    A, y = np.concatenate([X, X + 0.1, X - 0.1]), np.tile(TWO, 3)
    values, found = 8 * len(A) * M, set()
    for budget, n_jobs in ((100 * values, 1), (0.95 * values, 1), (0.95 * values, 2)):
        for core in ("plain", "ls"):
            given = {**GIVEN, "landmarks": Landmarks(M, core=core), "n_jobs": n_jobs}
            model = kl.KreinSVC(**given, **FIXED, resources=Resources(memory_budget=budget))
            found.add((core, model.fit(A, y).dual_coef_.tobytes()))
    assert len(found) == 2


def test_all_rows_may_be_in_the_sample():
    """With many landmarks the rows to choose them from are all there are: none is on workers."""
    n, landmarks = 3000, Landmarks(310, "uniform", rank=20, pool=1000)
    model = kl.KreinSVC(**{**GIVEN, **FIXED, "landmarks": landmarks})
    wanted = model.fit(X[:n], TWO[:n]).dual_coef_
    chunks = (1400, 1600)
    close(model.fit(array(X[:n], chunks), array(TWO[:n], chunks)).dual_coef_, wanted, 1e-9)


# Round trips


def fitted(y, monkeypatch, **changed):
    """A machine, and the sums that its steps have asked for, with other numbers that steer them."""
    asked, total, goals = [], hinge.DaskMargins._total, hinge.DaskMargins._goals

    def recorded(self, function, *args, **kwargs):
        asked.append(function.__name__)
        return total(self, function, *args, **kwargs)

    def recorded_goals(self, *args):
        asked.append("goals")
        return goals(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(hinge.DaskMargins, "_total", recorded)
        patch.setattr(hinge.DaskMargins, "_goals", recorded_goals)
        for name, value in changed.items():
            patch.setattr(hinge, name, value)
        model = kl.KreinSVC(**GIVEN, **FIXED).fit(array(X), array(y), array(W))
    return model, asked


def test_a_step_to_its_target_is_one_round_trip(monkeypatch):
    model, asked = fitted(TWO, monkeypatch)
    assert set(asked) == {"goals"}
    assert len(asked) == model.n_iter_


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_each_way_to_the_minimum_ends_there(y, monkeypatch):
    """Exact searches, and sums of one output at a time, take more round trips."""
    model, asked = fitted(y, monkeypatch)
    wanted = model.dual_coef_, model.intercept_
    for changed in ({"SLACK": 0.0}, {"SUM_BYTES": 0}, {"SLACK": 0.0, "SUM_BYTES": 0}):
        model, more = fitted(y, monkeypatch, **changed)
        close(model.dual_coef_, wanted[0])
        close(model.intercept_, wanted[1])
        assert (len(more) > len(asked)) == (y is THREE or "SLACK" in changed)


def test_decision_values_follow_from_few_steps(monkeypatch):
    """So that those of a lost worker are computed again by no more than so many steps."""
    lengths, goals = [], hinge.DaskMargins._goals

    def noted(self, coefs, questions, present):
        found = goals(self, coefs, questions, present)
        lengths.append(found[0].links)
        return found

    monkeypatch.setattr(hinge.DaskMargins, "_goals", noted)
    model, asked = fitted(THREE, monkeypatch, LINKS=2)
    assert model.n_iter_ > 2
    assert max(lengths) == 2
    assert "replies" in asked  # a step that does not follow from the one before
    close(model.dual_coef_, fitted(THREE, monkeypatch)[0].dual_coef_)


@pytest.mark.parametrize("share", [0.002, 0.05, 0.6])
def test_changes_of_moments_are_those_of_the_rows_that_change_sides(share):
    rng = np.random.default_rng(5)
    n, q = 3 * TILE + 100, 2
    C, Y, w = rng.normal(size=(n, M)), rng.choice([-1.0, 1.0], (n, q)), rng.random(n)
    w[:50] = 0  # rows that are not in the problem
    dual, constant = rng.normal(size=(M, q)) / np.sqrt(M), np.ones(q)
    exact, moved = C @ dual + constant, rng.random((n, q)) < share
    now = exact + np.where(moved, 2 * rng.normal(size=(n, q)), 0.0)
    present = [np.column_stack([np.ones(n), now[:, 0]]), now[:, 1:]]  # in other places
    question = Question(np.array(hinge.POINTS))
    queries = [margins.Query(k, (place, k), question) for k, place in enumerate((1, 0))]
    tiles = [C[start : start + TILE] for start in range(0, n, TILE)]
    goal, sums = margins.stepped(queries, (Y, w), present, None, tiles, (dual, constant))
    assert (
        np.abs(goal - exact) <= 2 * rounding(M + 1) * (np.abs(C) @ np.abs(dual) + np.abs(constant))
    ).all()
    parts = sums.parts
    for k in range(q):
        before, after = ((Y[:, k] * f[:, k] < 1) & (w > 0) for f in (now, goal))
        sign = w * (after.astype(float) - before)
        close(parts[q + k].gram.matrix, C.T @ (sign[:, None] * C))
        close(parts[q + k].cross[:, 0], C.T @ (sign * Y[:, k]))
        changed, active, loss = parts[k].crossed
        assert (changed, active) == (np.sum(before != after), np.sum(after))
        left = np.maximum(1 - Y[:, k] * goal[:, k], 0)
        assert loss == pytest.approx(w @ left**2, rel=1e-12)


# What comes here


def received_by_a_fit(n, monkeypatch):
    """Bytes that come to the client in a fit of n rows."""
    with received(monkeypatch) as sizes:
        monkeypatch.setattr(hinge, "MOST_KINKS", 200)
        A, y = np.tile(X, (5, 1))[:n], np.tile(TWO, 5)[:n]
        chunks = (2500,) * (n // 2500) + (n % 2500,)
        model = kl.KreinSVC(**GIVEN, **FIXED, kernel_params={"width": 2.0})
        model.fit(array(A, chunks), array(y, chunks), array(np.ones(n), chunks))
    return sum(sizes) / model.n_iter_, model


def test_what_comes_here_does_not_grow(monkeypatch):
    (first, _), (second, model) = (
        received_by_a_fit(12_000, monkeypatch),
        received_by_a_fit(48_000, monkeypatch),
    )
    assert second <= 1.5 * first  # rounds of a line, some more or less
    assert model.n_iter_ * second < 48_000 * 8  # less than one number per row
