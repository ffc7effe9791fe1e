"""Figure 8: timings and their exponents."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from kreinlearn import Landmarks
from kreinlearn.kernels.vectors import DeltaGauss
from kreinlearn.report.model import Table
from reproduction import figures, size_time
from reproduction.scale import ALL, QUICK

TINY = replace(QUICK, rows=120, vectorial=(), ranks=(2, 5), timed_rows=(200, 400), repeats=1)


@pytest.fixture
def panels(monkeypatch):
    """What would be drawn."""
    found = []
    monkeypatch.setattr(figures, "drawn", lambda name, panels, **_: found.extend(panels) or name)
    return found


def rows_of(power, scale=ALL):
    return {
        task.key: [
            {"set": name, "n": n, "d": 20, "way": way, "k": k, "cpu": k * n**power, "wall": 1.0}
            for way in size_time.WAYS
            for k in scale.ranks
        ]
        for i, task in enumerate(size_time.tasks(scale))
        for name, n in [(task.key.split("/")[-1], 1000 * (i + 1))]
    }


@pytest.mark.parametrize("power", [0.4, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(power):
    n = [300, 700, 2000, 9000]
    assert size_time.Growth(n, [3 * v**power for v in n]).exponent == pytest.approx(power)


def test_the_exponent_is_the_slope_of_a_regression_line():
    rng = np.random.default_rng(0)
    n, seconds = [10, 30, 200, 500, 501], np.exp(rng.normal(size=5)).tolist()
    expected = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    assert size_time.Growth(n, seconds).exponent == pytest.approx(expected)
    assert math.isnan(size_time.Growth([5, 5], [1.0, 2.0]).exponent)


@pytest.mark.parametrize(("pause", "runs"), [(0.22, 4), (0.09, 6)])  # 0.2 s are enough
def test_the_least_seconds_count_and_not_the_first_run(pause, runs, monkeypatch):
    now, calls = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: now[0] / 2)

    def work():
        calls.append(1)
        now[0] += 0.001 if len(calls) == 1 else pause if len(calls) > 2 else pause / 2
        return len(calls)

    first, spent = size_time.fastest(work, 3)
    assert (first, len(calls)) == (1, runs)
    assert spent.wall == pytest.approx(pause / 2)
    assert spent.cpu == pytest.approx(pause / 4)


def test_the_ways_are_the_papers_and_the_default():
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernel = DeltaGauss(width=4.0).fit(X, np.random.default_rng(0))
    ways = size_time.WAYS.values()
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
    tasks = size_time.tasks(TINY)
    assert [task.key for task in tasks] == [
        f"size-time/quick/{name}" for name in ("digits", "normal 200", "normal 400")
    ]
    assert all(task.alone for task in tasks)
    measured = {task.key: task.run() for task in tasks}
    assert [rows[0]["n"] for rows in measured.values()] == [120, 200, 400]
    found = size_time.section(TINY, measured)
    assert len(found.numbers) == len(size_time.WAYS) * 2
    assert all(np.isfinite(list(found.numbers.values())))
    assert [panel.title for panel in panels] == list(size_time.WAYS)
    for panel in panels:
        assert [line.label for line in panel.lines if not line.printed] == ["rank 2", "rank 5"]
        assert [line.label for line in panel.lines if line.printed] == ["rank 5"]  # 2: not printed
        assert list(panel.lines[0].x) == [120, 200, 400]


@pytest.mark.parametrize(("power", "holds"), [(1.0, True), (1.3, False)])
def test_growth_beyond_linear_is_a_miss(power, holds, panels):
    found = size_time.section(ALL, rows_of(power))
    assert [check.holds for check in found.checks] == [holds] * len(size_time.WAYS)
    assert found.numbers["size-time/our default/k=100/exponent"] == pytest.approx(power)
    exponents = next(block for block in found.blocks if isinstance(block, Table))
    assert exponents.rows[-1][1] == "0.58"  # printed, rank 100
    assert exponents.rows[-1][2] == f"{power:.2f}"


def test_printed_seconds_stand_beside_ours(panels):
    rows = rows_of(1.0)
    key = next(iter(rows))
    rows[key] = [{**row, "n": 20640} for row in rows[key]]
    table = size_time.section(ALL, rows).blocks[-1]
    assert [cells[3] for cells in table.rows if cells[1] == "20,640"] == ["2.83"]


def test_nothing_measured():
    found = size_time.section(ALL, {})
    assert [check.holds for check in found.checks] == [None] * len(size_time.WAYS)
    assert "Nothing" in found.blocks[-1]
    assert found.numbers == {}


def test_an_interrupted_run_shows_what_is_there(panels):
    rows = rows_of(1.0)
    one = dict([next(iter(rows.items()))])
    found = size_time.section(ALL, one)
    assert [check.holds for check in found.checks] == [None] * len(size_time.WAYS)
