"""benchmarks.objects and benchmarks.words at small size: what they measure, by another route."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import object_sets, objects, words
from kreinlearn.datasets import make_noisy_strings
from kreinlearn.paper.paired import Figure
from kreinlearn.paper.tasks import Journal
from tests.oracles import edit_cost

SETS = ("noisy strings", "graphs")


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("objects") / "measurements.jsonl"
    objects.main(["--sets", *SETS, "--journal", str(path), "--write", str(path.with_suffix(".md"))])
    return path


def rows_of(path: Path) -> dict[str, Any]:
    versions = objects.versions()
    return {key: one.rows[0] for key, one in Journal(path, versions).outcomes.items()}


def test_every_method_is_measured_once_on_every_set(journal: Path) -> None:
    keys = {f"{name}/seed 0/split 0/{method}" for name in SETS for method in objects.METHODS}
    found = rows_of(journal)
    assert set(found) == keys
    assert all(0 <= row["missed"] <= row["n_test"] for row in found.values())


def test_the_nearest_neighbour_is_that_of_the_definition(journal: Path) -> None:
    X, y = make_noisy_strings(n_samples=240, random_state=0)
    train, test = np.arange(0, 240, 2), np.arange(1, 240, 2)
    found = rows_of(journal)["noisy strings/seed 0/split 0/1-NN"]
    missed = [int(i) for i in found["wrong"].split()]
    some = sorted({*missed, *range(0, len(test), 4)})  # all that are wrong, and a quarter of all
    nearest = [min(train, key=lambda j: edit_cost(X[test[i]], X[j], 1, 1)) for i in some]
    assert missed == [i for i, j in zip(some, nearest, strict=True) if y[j] != y[test[i]]]


def test_what_was_measured_is_not_measured_again(journal: Path) -> None:
    before = journal.read_bytes()
    objects.main(["--sets", *SETS, "--journal", str(journal)])
    assert journal.read_bytes() == before


def test_the_page_holds_the_errors(journal: Path) -> None:
    page = journal.with_suffix(".md").read_text("utf8")
    for name in SETS:
        assert f"| {name} |" in page
    assert "not measured" in page  # the 13 sets are not these two


def found(errors: dict[str, int], n: int = 100) -> objects.Found:
    """So many of n test objects wrong, the first ones."""
    figures = {
        method: [
            Figure("s", 2 * n, "all", method, 1, 0, 0, n, n, k, 1.0, 1.0,
                   " ".join(map(str, range(k))), "", "")
        ]
        for method, k in errors.items()
    }  # fmt: skip
    return objects.Found({m: objects.errors_of(f) for m, f in figures.items()}, figures, 1.0)


def test_the_checks_count_sets() -> None:
    ours = {"KreinClassifier": 5, "KreinSVC": 5, "KreinRidgeClassifier": 7}
    good = dict.fromkeys(objects.METHODS, 10) | ours
    bad = dict.fromkeys(objects.METHODS, 10) | {name: 6 * k for name, k in ours.items()}
    results = {name: found(good) for name in object_sets.SETS}
    assert [check.holds for check in objects.checks(results)] == [True] * 7
    for name in list(results)[:3]:
        results[name] = found(bad)
    front, never, ridge, never_ridge, svc, never_svc, close = objects.checks(results)
    assert front.found == ridge.found == svc.found == "on 10 of 13 sets"
    assert front.holds is ridge.holds is svc.holds is False
    assert never.holds is never_ridge.holds is never_svc.holds is False
    assert never.found == ", ".join(list(results)[:3])
    assert close.holds is False
    assert close.found == "on 10 of 13 sets"


def test_splits_do_not_meet() -> None:
    sets, _ = object_sets.available(object_sets.ALL_SETS, 0)
    assert set(object_sets.QUICK_SETS) <= set(sets)
    for name in set(sets) - {"surnames18"}:
        parts = object_sets.ALL_SETS[name].parts(0)
        for train, test in parts.splits:
            assert len(np.intersect1d(train, test)) == 0
            assert len(np.union1d(train, test)) == len(parts.y) == len(parts.X)


def test_checks_of_words() -> None:
    few = {"learner": "KreinRidgeClassifier", "n": 100_000, "cpu": 1.0, "bare": 1.0, "peak": 100.0,
           "error": 0.4, "nearest": 0.7}  # fmt: skip
    many = few | {"n": 1_100_000, "cpu": 7.0, "peak": 190.0}
    assert [check.holds for check in words.checks([few, many], True)] == [True, True, True]
    worse = many | {"cpu": 9.0, "peak": 300.0, "error": 0.8}
    assert [check.holds for check in words.checks([few, worse], True)] == [False, False, False]
    assert [check.holds for check in words.checks([few, many], False)] == [None, None, True]
