"""Figure 8 and the count of operations: timings, exponents, and routes to the same thing."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.kernels import DeltaGauss
from reproduction import timing
from reproduction.report import Table
from reproduction.scale import ALL, QUICK

TINY = replace(QUICK, rows=120, vectorial=(), ranks=(2, 5), timed_rows=(200, 400), repeats=1)


@pytest.fixture
def panels(monkeypatch):
    """What would be drawn."""
    found = []
    monkeypatch.setattr(timing, "drawn", lambda name, panels, **_: found.extend(panels) or name)
    return found


def rows_of(power, scale=ALL):
    return {
        task.key: [
            {"set": name, "n": n, "d": 20, "way": way, "k": k, "cpu": k * n**power, "wall": 1.0}
            for way in timing.WAYS
            for k in scale.ranks
        ]
        for i, task in enumerate(timing.size_tasks(scale))
        for name, n in [(task.key.split("/")[-1], 1000 * (i + 1))]
    }


@pytest.mark.parametrize("power", [0.4, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(power):
    n = [300, 700, 2000, 9000]
    assert timing.exponent([(v, 3 * v**power) for v in n]) == pytest.approx(power)


def test_the_exponent_is_the_slope_of_a_regression_line():
    rng = np.random.default_rng(0)
    n, seconds = [10, 30, 200, 500, 501], np.exp(rng.normal(size=5)).tolist()
    expected = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    assert timing.exponent(list(zip(n, seconds, strict=True))) == pytest.approx(expected)


@pytest.mark.parametrize(("pause", "runs"), [(0.22, 4), (0.09, 6)])  # 0.2 s are enough
def test_the_least_seconds_count_and_not_the_first_run(pause, runs, monkeypatch):
    now, calls = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: now[0] / 2)

    def work():
        calls.append(1)
        now[0] += 0.001 if len(calls) == 1 else pause if len(calls) > 2 else pause / 2
        return len(calls)

    first, spent = timing.fastest(work, 3)
    assert (first, len(calls)) == (1, runs)
    assert spent.wall == pytest.approx(pause / 2)
    assert spent.cpu == pytest.approx(pause / 4)


def test_the_ways_are_the_papers_and_the_default():
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernel = DeltaGauss(width=4.0).fit(X, np.random.default_rng(0))
    ways = timing.WAYS.values()
    models = [make(kernel, per_rank * 4, 4, seed=0).fit(X) for per_rank, make in ways]
    assert [model.n_landmarks_ for model in models] == [4, 4, 8]
    svd, gram, default = models
    assert [model.method for model in models] == ["svd", "gram", "gram"]
    np.testing.assert_array_equal(svd.landmark_indices_, gram.landmark_indices_)
    np.testing.assert_allclose(svd.eigenvalues_, gram.eigenvalues_, rtol=1e-6)
    assert gram.landmarks == Landmarks(4, "kmeans++", "plain")
    assert default.landmarks == Landmarks(8, "auto", "ls")


def test_a_small_run(panels, monkeypatch, tmp_path):
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    tasks = timing.size_tasks(TINY)
    assert [task.key for task in tasks] == [
        f"size-time/quick/{name}" for name in ("digits", "normal 200", "normal 400")
    ]
    assert all(task.alone for task in tasks)
    measured = {task.key: task.run() for task in tasks}
    assert [rows[0]["n"] for rows in measured.values()] == [120, 200, 400]
    found = timing.size_time(TINY, measured)
    assert len(found.numbers) == len(timing.WAYS) * 2
    assert all(np.isfinite(list(found.numbers.values())))
    assert [panel.title for panel in panels] == list(timing.WAYS)
    for panel in panels:
        assert [line.label for line in panel.lines if not line.printed] == ["rank 2", "rank 5"]
        assert [line.label for line in panel.lines if line.printed] == ["rank 5"]  # 2: not printed
        assert list(panel.lines[0].x) == [120, 200, 400]


@pytest.mark.parametrize(("power", "holds"), [(1.0, True), (1.3, False)])
def test_growth_beyond_linear_is_a_miss(power, holds, panels):
    found = timing.size_time(ALL, rows_of(power))
    assert [check.holds for check in found.checks] == [holds] * len(timing.WAYS)
    assert found.numbers["size-time/our default/k=100/exponent"] == pytest.approx(power)
    exponents = next(block for block in found.blocks if isinstance(block, Table))
    assert exponents.rows[-1][1] == "0.58"  # printed, rank 100
    assert exponents.rows[-1][2] == f"{power:.2f}"


def test_printed_seconds_stand_beside_ours(panels):
    rows = rows_of(1.0)
    key = next(iter(rows))
    rows[key] = [{**row, "n": 20640} for row in rows[key]]
    table = timing.size_time(ALL, rows).blocks[-1]
    assert [cells[3] for cells in table.rows if cells[1] == "20,640"] == ["2.83"]


# The count of operations

FEW = replace(QUICK, flop_sizes=((300, 10), (400, 20)), repeats=1)


@pytest.mark.parametrize("name", timing.ROUTES)
def test_routes_give_the_eigenvalues_of_the_nystroem_matrix(name):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 40))
    K = A + A.T
    C, K_ZZ = K[:, :6], K[:6, :6]
    whole = np.linalg.eigvalsh(C @ np.linalg.solve(K_ZZ, C.T))
    expected = whole[np.argsort(-np.abs(whole))[:6]]
    assert (expected < 0).any()
    found = timing.ROUTES[name].run(C, K_ZZ)
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-7)


def test_counts_are_the_papers():
    n, m = 1000, 10
    assert timing.ROUTES["gram"].operations(n, m) == 3 * m**2 * n + 3 * m**3
    assert timing.ROUTES["sgt"].operations(n, m) == 7 * m**2 * n + 2 * m**3
    assert timing.predicted(10**9, 2) == pytest.approx(7 / 3)
    assert timing.predicted(10, 10) == pytest.approx(9 / 6)


def test_the_prescribed_matrix_has_its_eigenvalues():
    C, K_ZZ, Lambda = timing.prescribed(0)
    np.testing.assert_array_equal(K_ZZ, K_ZZ.T)
    assert abs(Lambda[-1]) == pytest.approx(10.0**-timing.DECADES)
    big = np.abs(Lambda) > 1e-3  # the rest is lost in the inverse
    R = np.linalg.qr(C, mode="r")
    found = np.linalg.eigvalsh(R @ np.linalg.pinv(K_ZZ, rcond=1e-7) @ R.T)
    assert timing.nearest(found, Lambda[big]).max() < 1e-4


def test_nearest_is_relative():
    found = timing.nearest(np.array([1.0, -0.5]), np.array([1.1, -0.5, 0.25]))
    np.testing.assert_allclose(found, [0.1 / 1.1, 0.0, 3.0])


def test_eigenvalues_count_down_to_the_first_that_is_missed():
    rows = [
        {"route": "sgt", "size": size, "apart": apart}
        for size, apart in [(1.0, 1e-9), (0.1, 1e-3), (0.01, 0.5), (0.001, 1e-4)]
    ]
    assert timing.smallest_found(rows, "sgt") == 0.1


def test_a_small_run_of_the_routes():
    tasks = timing.flop_tasks(FEW)
    assert [task.alone for task in tasks] == [True, True, False]
    found = timing.flops(FEW, {task.key: task.run() for task in tasks})
    decades = {
        name: found.numbers[f"flops/known eigenvalues/{name}/decades"] for name in timing.ROUTES
    }
    assert decades["sgt"] < decades["gram"] <= decades["svd"]
    assert found.numbers["flops/n=400/m=20/SGT over one-shot"] > 0
    assert all(check.holds is not None for check in found.checks)


@pytest.mark.parametrize("name", timing.ROUTES)
def test_routes_are_those_of_the_library(name):
    X = np.random.default_rng(1).normal(size=(80, 3))
    kernel = DeltaGauss(width=6.0).fit(X, np.random.default_rng(0))
    K = kernel(X)
    landmarks = Landmarks(np.arange(9), core="plain")
    model = KreinNystroem(kernel, landmarks=landmarks, method=name).fit(X)
    computed = timing.ROUTES[name].run(K[:, :9], K[:9, :9])
    assert (computed < 0).any()
    np.testing.assert_allclose(np.sort(computed), np.sort(model.eigenvalues_), rtol=1e-6)


@pytest.mark.parametrize(
    ("ratios", "holds"),
    [((2.2, 2.3, 2.4, 2.2, 2.1), [True, True]), ((0.9, 2, 2, 2, 1.5), [False, False])],
)
def test_checks(ratios, holds):
    rows = [
        {"n": n, "m": m, "sgt": ratio, "gram": 1.0}
        for (n, m), ratio in zip(ALL.flop_sizes, ratios, strict=True)
    ]
    checks = list(timing._checks(rows))
    assert [check.holds for check in checks] == holds
    assert checks[0].found == f"{min(ratios):.2f}"
    assert checks[1].found == f"{ratios[-1]:.2f}"  # n = 100,000, m = 250
