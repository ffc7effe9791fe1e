"""Kernel values counted, equal budgets, rows of the tasks, and what is read in them."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

from kreinlearn import KreinNystroem, Landmarks
from reproduction import approximating, approximation, figures
from reproduction.approximating import (
    DEFAULT,
    EQUAL,
    PAPER,
    TRUNCATED,
    as_expensive,
    by_rule,
    columns_for,
    fitted,
    kernel_of,
    with_share,
)  # fmt: skip
from reproduction.approximation import OURS, Cell, Results, rank_error, time_error
from reproduction.matrix_free import Count, Counted, Tiled, nystroem
from reproduction.report import Table
from reproduction.scale import QUICK
from tests.oracles import best_rank, delta_gauss

Array = NDArray[Any]
TINY = replace(QUICK, name="tiny", rows=150, vectorial=(), ranks=(3, 8), repetitions=1)
SETTING = {"k": 4, "rule": "", "l": 4, "scheme": "", "core": "plain", "seed": 1}
Panels = dict[str, list[figures.Panel]]


@pytest.fixture(scope="module")
def X() -> Array:
    return np.random.default_rng(0).standard_normal((160, 5))


@pytest.fixture(scope="module")
def K(X: Array) -> Tiled:
    return Tiled(X, kernel_of("delta_gauss", X))


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> Panels:
    """What would be drawn, by the name of the figure."""
    asked: Panels = {}

    def drawn(name: str, panels: list[figures.Panel], **_: Any) -> str:
        asked[name] = panels
        return name

    monkeypatch.setattr(approximation, "drawn", drawn)
    return asked


@pytest.fixture(scope="module")
def measurements() -> dict[str, list[dict[str, Any]]]:
    """Digits, which need no data folder."""
    return {task.key: task.run() for task in approximating.tasks(TINY)}


def test_kernels_are_those_of_the_text(X):
    d2 = squareform(pdist(X, "sqeuclidean"))
    M = np.median(pdist(X, "sqeuclidean"))
    expected = {
        "delta_gauss": delta_gauss(X, X, 8 * M, 4.0),
        "delta_gauss@1": delta_gauss(X, X, M, 4.0),
        "sigmoid": np.tanh(X @ X.T / 5 - 1),
        "epanechnikov": np.maximum(0, 1 - d2 / M),
    }
    for name, values in expected.items():
        assert np.allclose(kernel_of(name, X)(X), values, atol=1e-12), name


# Counting


class Ledger(Counted):
    """Writes down every pair of rows it is asked for, found by comparison with X."""

    def fit(self, X: Array, rng: Any) -> Ledger:
        super().fit(X, rng)
        self.X_, self.pairs_ = X, []
        self.count.ledger = self.pairs_  # type: ignore[attr-defined]
        return self

    def _numbers(self, A: Array) -> Array:
        return (A[:, None] == self.X_[None]).all(axis=2).argmax(axis=1)

    def columns(self, Z: Array) -> Any:
        inner, columns = super().columns(Z), self._numbers(Z)

        def noted(A: Array, out: Array | None = None) -> Array:
            self.pairs_ += [(i, j) for i in self._numbers(A) for j in columns]
            return inner(A, out)

        return noted

    def diagonal(self, A: Array) -> Array:
        self.pairs_ += [(i, i) for i in self._numbers(A)]
        return super().diagonal(A)

    def symmetric(self, Z: Array, own: Array | None = None) -> Array:
        numbers = self._numbers(Z)
        self.pairs_ += [(i, j) for a, i in enumerate(numbers) for j in numbers[: a + 1]]
        return super().symmetric(Z)


@pytest.mark.parametrize("scheme", [DEFAULT, *PAPER])
def test_the_count_is_the_number_of_pairs_asked_for(K, scheme):
    setting, count = by_rule(K, 4, "k ln n", scheme, 0), Count()
    ledger = Tiled(K.X, Ledger(K.kernel, count))
    assert fitted(ledger, setting).row["evaluations"] == len(count.ledger)  # type: ignore[attr-defined]


def test_uniform_landmarks_cost_their_columns_with_each_pair_once(K):
    n, l = len(K), 9
    fit = fitted(K, SETTING | {"l": l, "scheme": "uniform"})
    assert fit.row["evaluations"] == sum(n - i for i in range(l))


def test_counting_changes_nothing_else(K):
    setting = by_rule(K, 4, "k ln n", DEFAULT, 3)
    counted = fitted(K, setting).model
    plain = nystroem(K.kernel, setting["l"], 4, seed=3).fit(K.X)
    assert np.array_equal(counted.landmark_indices_, plain.landmark_indices_)
    assert np.array_equal(counted.transform(K.X), plain.transform(K.X))


@pytest.mark.parametrize("n", [1, 7, 30])
def test_columns_for_so_many_values(n):
    cost = [sum(n - i for i in range(m)) for m in range(n + 1)]
    for values in range(cost[-1] + 3):
        enough = [m for m in range(n + 1) if cost[m] >= values]
        assert columns_for(values, n) == (enough[0] if enough else n)


@pytest.mark.parametrize("scheme", PAPER)
@pytest.mark.parametrize("values", [1000, 2500, 160 * 161 // 2])
def test_the_fewest_landmarks_that_cost_as_much(K, scheme, values):
    fit = as_expensive(K, SETTING | {"scheme": scheme}, values)
    l, found = fit.row["l"], fit.row["evaluations"]
    assert found >= values
    if l < len(K):  # one less would not do: a column costs at most n values
        assert found - len(K) <= values + 4 * len(K) * (scheme != "uniform")
    if scheme == "uniform" and l < len(K):
        assert fitted(K, fit.row | {"l": l - 1}).row["evaluations"] < values


# Fits


def test_given_landmarks_are_the_chosen_ones(K):
    fit = with_share(K, by_rule(K, 6, "k ln n", "kmeans++", 0))
    assert 0 < fit.row["cpu_given"] < math.inf
    assert 0 < fit.row["cpu"] < math.inf


def test_truncated_is_the_largest_eigenvalues_of_K_ZZ(K):
    plain = fitted(K, by_rule(K, 5, "k ln n", "uniform", 0))
    cut = approximating.truncated(K, plain)
    whole, Z = K.kernel(K.X), plain.model.landmark_indices_
    inverse = np.linalg.pinv(best_rank(whole[np.ix_(Z, Z)], 5), rcond=1e-9)
    expected = whole[:, Z] @ inverse @ whole[Z]
    assert np.allclose(cut.model.approximate(K.X), expected, atol=1e-7 * np.abs(expected).max())
    assert all(cut.row[name] == plain.row[name] for name in ("evaluations", "l", "rule"))


def digits_matrix(kernel: str) -> tuple[Array, Array]:
    X = load_digits().data
    X = X[np.random.default_rng(0).choice(len(X), TINY.rows, replace=False)]
    X = X[:, np.ptp(X, axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, kernel_of(kernel, X)(X)


def test_rows_of_a_task(measurements):
    rows = measurements["approximating/tiny/digits/sigmoid/seed 0"]
    X, whole = digits_matrix("sigmoid")
    assert len(rows) == 2 * (3 + 3 * (2 + 2 + 1))
    assert np.allclose([row["norm"] for row in rows], np.linalg.norm(whole))
    for row in (r for r in rows if r["rule"] in ("k", "k ln n")):
        scheme = "auto" if row["scheme"] == DEFAULT else row["scheme"]
        landmarks, kernel = Landmarks(row["l"], scheme, row["core"]), kernel_of("sigmoid", X)
        model = KreinNystroem(kernel, landmarks=landmarks, rank=row["k"], random_state=0).fit(X)
        Phi, S = model.transform(X), model.signature_
        assert row["error"] == pytest.approx(np.linalg.norm(whole - (Phi * S) @ Phi.T), rel=1e-6)
        assert row["l"] == (row["k"] if row["rule"] == "k" else math.ceil(row["k"] * math.log(150)))


def test_optimal_rows(measurements):
    rows = measurements["approximating/tiny/digits/epanechnikov/optimum"]
    _, whole = digits_matrix("epanechnikov")
    for row in rows:
        expected = np.linalg.norm(whole - best_rank(whole, row["k"]))
        assert row["error"] == pytest.approx(expected)


def test_no_fit_is_better_than_the_optimum_and_values_suffice(measurements):
    results = Results(TINY, measurements)
    for cell, rows in results.items():
        assert min(row["error"] for row in rows) >= results.optimum(cell) * (1 - 1e-9)
        for rule in (rule for rule in EQUAL if EQUAL[rule] == cell.rule):
            mine = results[cell._replace(scheme=OURS, rule=rule)]
            pairs = zip(rows, mine, strict=True)
            assert all(r["evaluations"] >= m["evaluations"] for r, m in pairs)


def test_tasks_can_be_sent_to_a_worker_and_have_their_own_names():
    tasks = approximating.tasks(QUICK)
    assert len({task.key for task in tasks}) == len(tasks)
    assert all(pickle.loads(pickle.dumps(task)).key == task.key for task in tasks)
    assert all(task.cost > 0 for task in tasks)


# Sections


def test_a_section_has_figures_tables_checks_and_numbers(measurements, panels):
    ranks, times = (part(TINY, measurements) for part in (rank_error, time_error))
    assert len(ranks.checks) == 5
    assert all(check.holds is not None for check in ranks.checks)
    titles = [block.title for block in ranks.blocks if isinstance(block, Table)]
    assert sum("over the optimal error" in title for title in titles) == 3
    assert all(math.isfinite(value) for value in (ranks.numbers | times.numbers).values())
    assert any("stand in" in block for block in ranks.blocks if isinstance(block, str))
    assert [panel.title for panel in panels["time-error"]] == ["digits (not in the paper)"]
    assert sum(isinstance(block, Table) for block in times.blocks) >= 3
    assert all(len(row) == len(t.header) for t in ranks.blocks + times.blocks
               if isinstance(t, Table) for row in t.rows)  # fmt: skip


def test_the_papers_points_stand_in_the_panels_of_its_kernel_alone(
    measurements, panels, monkeypatch
):
    """The digits under the name of a set of the paper, their ranks as two of its ranks."""
    renamed = {
        key: [{**row, "set": "cal_housing", "k": {3: 5, 8: 10}[row["k"]]} for row in rows]
        for key, rows in measurements.items()
    }
    scale = replace(TINY, ranks=(5, 10))
    monkeypatch.setattr(approximation, "vectorial_names", lambda scale: ["cal_housing"])
    for part in (rank_error, time_error):
        part(scale, renamed)
    count = {name: sum(line.printed for line in ps[0].lines) for name, ps in panels.items()}
    assert count == {
        "rank-error-delta_gauss": 6, "rank-error-sigmoid": 0, "rank-error-epanechnikov": 0,
        "time-error": 6,
    }  # fmt: skip
    assert all(math.isfinite(y) for line in panels["time-error"][0].lines for y in line.y)


def compared(errors: dict[str, list[float]]) -> list[approximation.Pair]:
    """One set, kernel and rank: errors of two seeds by scheme, at as many values."""
    found = Results(TINY, {})
    found.sets, found.scale = ["cal_housing"], replace(TINY, ranks=(3,))
    for kernel in approximation.NAMES:
        for scheme, values in errors.items():
            rule = "k ln n" if scheme == OURS else TRUNCATED
            rows = [{"error": e, "norm": 9.0, "evaluations": 7} for e in values]
            found[Cell("cal_housing", kernel, 3, scheme, rule)] = rows
    every = approximation.pairs(found, {"k ln n": TRUNCATED})
    return [pair for pair in every if pair.other.kernel == "sigmoid"]


def test_the_worst_case_is_named():
    theirs = {"uniform": [4.0, 5.0], "leverage": [1.0, 5.0], "kmeans++": [2.0, 2.0]}
    pairs = compared({OURS: [2.0, 4.0], **theirs})
    check = approximation.not_above("theirs", pairs, len(pairs))
    assert not check.holds
    assert check.found == (
        "worst 1.5 (cal-housing, sigmoid, rank 3, kmeans++, our l = k ln n); 2 of 3 medians, "
        "4 of 6 single seeds"
    )


def test_a_claim_about_all_is_not_made_of_some():
    pairs = compared({OURS: [2.0], "uniform": [4.0], "leverage": [3.0], "kmeans++": [2.5]})
    assert approximation.not_above("theirs", pairs, len(pairs)).holds is True
    assert approximation.not_above("theirs", pairs, len(pairs) + 1).holds is None
