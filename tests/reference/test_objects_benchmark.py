"""benchmarks.objects and benchmarks.words at small size: what they measure, by another route."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import object_sets, objects, words
from kreinlearn.datasets import make_noisy_strings
from reproduction.paired import Figure
from reproduction.tasks import Journal
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


def test_one_method_after_the_other_fills_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "measurements.jsonl"
    command = ["--sets", "graphs", "--journal", str(path), "--methods"]
    alone = objects.main([*command, objects.AUTO])["graphs"]
    assert set(alone.errors) == {objects.AUTO}
    assert np.isnan(alone.distances)
    both = objects.main([*command, "KreinClassifier"])["graphs"]
    assert set(both.errors) == {objects.AUTO, "KreinClassifier"}
    assert both.figures[objects.AUTO] == alone.figures[objects.AUTO]
    assert both.distances > 0


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
    assert [check.holds for check in objects.checks(results)][:7] == [True] * 7
    for name in list(results)[:3]:
        results[name] = found(bad)
    front, never, ridge, never_ridge, svc, never_svc, close, *_ = objects.checks(results)
    assert front.found == ridge.found == svc.found == "on 10 of 13 sets"
    assert front.holds is ridge.holds is svc.holds is False
    assert never.holds is never_ridge.holds is never_svc.holds is False
    assert never.found == ", ".join(list(results)[:3])
    assert close.holds is False
    assert close.found == "on 10 of 13 sets"


def of_auto(auto: int, single: int, other: int) -> objects.Found:
    return found({objects.AUTO: auto, "KreinClassifier": single, objects.OTHER: other})


def test_the_checks_of_several_kernels() -> None:
    names = list(object_sets.SETS)
    results = {name: of_auto(2, 5, 2) for name in names}
    assert [check.holds for check in objects.auto_checks(results)] == [True] * 7
    for name in ["chromosomes", "surnames18", "MUTAG", "NCI1"]:
        results[name] = of_auto(5, 5, 4)  # one object more than the alternative
    beats, never, close, *_ = objects.auto_checks(results)
    assert (beats.found, beats.holds, never.holds) == ("on 9 of 13 sets", True, True)
    assert (close.found, close.holds) == ("on 13 of 13 sets", True)
    for name in ["ArrowHead", "ItalyPowerDemand", "OSULeaf", "PLAID", "ENZYMES"]:
        results[name] = of_auto(14, 9, 5)
    beats, never, close, *errors = objects.auto_checks(results)
    assert (beats.found, beats.holds) == ("on 4 of 13 sets", False)
    assert never.found == "ArrowHead, ItalyPowerDemand, OSULeaf, PLAID, ENZYMES"
    assert never.holds is False
    assert (close.found, close.holds) == ("on 8 of 13 sets", False)
    assert [check.holds for check in errors] == [True, False, False, False]
    assert [check.found for check in errors] == ["14.00 %"] * 4
    some = {"PLAID": results["PLAID"]}
    assert [check.holds for check in objects.auto_checks(some)] == [None] * 6 + [False]


def test_the_best_of_all_sees_the_same_distances() -> None:
    errors = dict.fromkeys(objects.BY_DISTANCES, 10) | {"KreinClassifier": 8}
    one = found(errors | {objects.AUTO: 0, objects.OTHER: 0})
    (row,) = objects.difference_table({"MUTAG": one}).rows
    assert row[-2:] == ["KreinClassifier", "+0.00 ± 0.00"]
    close = list(objects.checks(dict.fromkeys(object_sets.SETS, one)))[6]
    assert (close.found, close.holds) == ("on 13 of 13 sets", True)


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
