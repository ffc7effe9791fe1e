"""benchmarks.small at small size: what it measures, by another route, and what the page says."""

from __future__ import annotations

from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from benchmarks import small, small_cases
from benchmarks.small import Limit, judged
from kreinlearn import KreinRidgeClassifier
from kreinlearn.datasets import make_noisy_strings
from tests.oracles import edit_cost
from tests.systems import linux_only, posix_only

N, TEST = 60, 40


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KREINLEARN_DATA", raising=False)


@linux_only
def test_errors_are_those_of_the_same_distances(
    no_data: None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {figure["what"]: figure for figure in small_cases.two_languages(N, TEST)}
    assert "words11 is not there" in capsys.readouterr().err
    X, y = make_noisy_strings(N + TEST, n_classes=2, length=8, random_state=0)
    distances = np.array([[edit_cost(x, z, 1, 1) for z in X[:N]] for x in X], dtype=float)
    median = np.median([distances[i, j] for i in range(N) for j in range(i)])
    K = np.exp(-distances / median)

    def right(C: float) -> float:
        shares = []
        for train, test in StratifiedKFold(5).split(K[:N], y[:N]):
            model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
            shares.append(np.mean(model.predict(K[np.ix_(test, train)]) == y[test]))
        return float(np.mean(shares))

    best = max((0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), key=right)  # the first of equal ones
    theirs = SVC(kernel="precomputed", C=best).fit(K[:N], y[:N])
    assert found[small_cases.PEER]["error"] == np.mean(theirs.predict(K[N:]) != y[N:])
    ours = KreinRidgeClassifier("precomputed_dissimilarity", random_state=0)
    ours.fit(distances[:N], y[:N])
    wrong = np.mean(ours.predict(distances[N:]) != y[N:])
    assert found["KreinRidgeClassifier"]["error"] == wrong
    for figure in found.values():
        assert "absent" in figure or min(figure["cpu"], figure["wall"], figure["peak"]) > 0


def test_names_are_drawn_once_and_held_out(no_data: None) -> None:
    X, y, X_test, y_test = small_cases.drawn_names(50)
    assert (len(X), len(y), len(X_test), len(y_test)) == (50, 50, 50, 50)
    assert len(np.unique([*y, *y_test])) == 18


@posix_only("the CPU seconds of processes that a process has started")
def test_commands_are_timed_and_their_errors_read(no_data: None) -> None:
    command, *learners = small_cases.evaluated_names(90)
    assert command["what"] == "kreinlearn evaluate"
    assert command["cpu"] > 0
    errors = {one["what"]: one["error"] for one in learners}
    constant = 1 - 1 / 18  # the error of a constant: the 18 classes have equal sizes
    assert errors["its KreinRidgeClassifier"] < constant
    assert max(errors.values()) <= 1
    fit, letters = small_cases.fitted_names(90)
    assert fit["error"] < constant
    assert letters["error"] < constant


def test_a_growing_number_of_rows_is_timed_from_few_to_many() -> None:
    few, many = small_cases.growing_rows(3000, 1_000_000)
    assert (few["what"], many["what"]) == (small_cases.FEWEST, small_cases.MOST)
    assert 0 < few["cpu"] < many["cpu"]


FIGURES = {"words": [{"what": "ours", "cpu": 6.0, "peak": 900.0}, {"what": "SVC", "cpu": 2.0}]}


@pytest.mark.parametrize(
    ("limit", "verdict", "shown"),
    [
        (Limit("words", "ours", 3.0, "SVC"), "PASS", "3 x"),
        (Limit("words", "ours", 2.9, "SVC"), "MISS", "3 x"),
        (Limit("words", "ours", 6.0), "PASS", "6 s CPU"),
        (Limit("words", "ours", 800, measure="peak"), "MISS", "900 MB"),
        (Limit("words", "theirs", 800), "not yet", ""),
        (Limit("shapes", "ours", 800), "not measured", ""),
    ],
)
def test_a_figure_is_judged_by_its_limit(limit: Limit, verdict: str, shown: str) -> None:
    assert judged(limit, FIGURES, whole=True)[1:3] == [verdict, shown]


def test_a_small_run_is_not_judged() -> None:
    assert judged(Limit("words", "ours", 6.0), FIGURES, whole=False)[1] == "too small to judge"


def test_every_limit_names_a_case() -> None:
    assert {limit.case for limit in small.LIMITS} == set(small.CASES)


def test_a_case_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*words: str, **options: Any) -> Any:
        raise CalledProcessError(1, "python")

    monkeypatch.setattr(small, "said_by", fails)
    found = {"vectors": small.run("vectors", quick=True)}
    limit = next(limit for limit in small.LIMITS if limit.case == "vectors")
    assert judged(limit, found, whole=True)[1] == "failed: CalledProcessError"


@linux_only
def test_the_page_has_limits_and_figures_of_what_was_run(tmp_path: Path) -> None:
    page = tmp_path / "small.md"
    found = small.main(["--quick", "--only", "vectors", "--write", str(page)])
    assert [one["what"] for one in found["vectors"]] == [
        small_cases.PEER, *small_cases.LEARNERS, small_cases.TREES,
    ]  # fmt: skip
    text = page.read_text("utf8")
    assert "python -m benchmarks.small --quick --only vectors" in text
    assert "vectors: KreinSVC | too small to judge" in text
    assert "chromosomes" not in text
