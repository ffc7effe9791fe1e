"""What evaluate does where there is little time: fewer objects, fewer folds, and words about it."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from kreinlearn import KreinClassifier, KreinSVC, Resources, evaluate, pairwise
from kreinlearn.evaluation import Evaluation, Score
from kreinlearn.evaluation.fits import Run
from kreinlearn.evaluation.learners import KNOWN, Settings, learners_for
from kreinlearn.evaluation.sizes import (
    FEWEST,
    LEAST,
    ON_PAIRS,
    Plan,
    Problem,
    affordable_objects,
    planned,
    spread,
)
from kreinlearn.evaluation.targets import targets_of
from kreinlearn.evaluation.verdict import BASELINE, KREIN
from kreinlearn.inspection.prepared import prepare
from kreinlearn.progress import Progress
from tests.unit.test_progress import open_terminal


def blobs(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 2 * y[:, None], y


class Slow(ClassifierMixin, BaseEstimator):
    """Predicts the first label, after a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def fit(self, X: Any, y: Any) -> Slow:
        time.sleep(self.seconds)
        self.first_ = y[0]
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.first_)


# Sizes


COSTS: dict[str, Any] = {
    "first": lambda n, problem: 1e-3 * n,
    "cheap": lambda n, problem: 1e-6 * n,
    "dear": lambda n, problem: 2e-3 * n,
    "dearest": lambda n, problem: 3e-3 * n,
}
PROBLEM = Problem(1, 0.0)


def seconds_of(plan: Any, folds: int) -> float:
    """By the definition, with the first learner again where others are limited and it is not."""
    total = sum(COSTS[name](size, PROBLEM) for name, size in plan.sizes.items())
    least = min(plan.sizes.values())
    if least < plan.sizes["first"]:
        total += COSTS["first"](least, PROBLEM)
    return float(folds * total)


@pytest.mark.parametrize(
    ("allowed", "limited"),
    [
        (1000.0, set()),
        (100.0, {"dearest"}),
        (45.0, {"dearest", "dear"}),
        (10.0, {"dearest", "dear", "first", "cheap"}),
    ],
)
def test_the_dearest_are_limited_and_the_first_last(allowed: float, limited: set[str]) -> None:
    n, folds = 4000, 5
    plan = planned(COSTS, "first", n, folds, PROBLEM, allowed)
    sizes = {name for name, size in plan.sizes.items() if size < n}
    assert sizes <= limited
    if allowed > 10:
        assert sizes == limited
    assert seconds_of(plan, folds) <= allowed
    assert len({plan.sizes[name] for name in sizes}) <= 1
    if sizes and allowed > 10:
        assert plan.sizes["dearest"] >= FEWEST
    for name, size in plan.sizes.items():
        assert plan.seconds[name] == COSTS[name](size, PROBLEM)


def test_a_few_objects_are_left_however_short_the_time() -> None:
    plan = planned(COSTS, "first", 4000, 5, PROBLEM, 1e-9)
    assert set(plan.sizes.values()) == {LEAST}
    assert set(planned(COSTS, "first", 7, 5, PROBLEM, 1e-9).sizes.values()) == {7}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_costs_rise_with_the_number_of_objects(task: str) -> None:
    for learner in KNOWN[task]:
        for problem in (Problem(1, 0.0), Problem(18, 1e-6), Problem(3, 1e-3), Problem(1, 0.0, 50)):
            costs = [learner.cost(n, problem) for n in (100, 1000, 10_000)]
            assert costs == sorted(costs)
            assert (costs[0] > 0) == (not learner.name.startswith("always"))


def test_the_first_learner_is_the_one_to_try_first() -> None:
    assert [KNOWN[task][0].name for task in KNOWN] == ["KreinClassifier", "KreinRegressor"]


def test_similarities_take_their_part_of_the_time() -> None:
    for n, pair, allowed in ((3000, 1e-3, 100.0), (3000, 1e-5, 2.0), (10**6, 1e-7, 100.0)):
        size = affordable_objects(n, pair, allowed)
        assert size < n
        assert pair * size**2 / 2 <= ON_PAIRS * allowed
        assert pair * (1.2 * size) ** 2 / 2 > ON_PAIRS * allowed  # rounded down to two digits
    assert affordable_objects(3000, 1e-7, 100.0) == 3000
    assert affordable_objects(3000, 0.0, 1.0) == 3000


def test_a_sample_has_all_classes_in_proportion() -> None:
    labels = np.repeat([0, 1, 2, 3], [600, 300, 99, 1])
    rows = np.random.default_rng(0).permutation(1000)
    chosen = spread(rows, labels, 100, np.random.default_rng(1))
    assert len(set(chosen)) == len(chosen) == 100
    counts = Counter(labels[chosen])
    assert counts[3] == 1
    for c, expected in ((0, 60), (1, 30), (2, 9.9)):
        assert abs(counts[c] - expected) <= 2
    places = {row: i for i, row in enumerate(rows)}
    assert sorted(places[row] for row in chosen) == [places[row] for row in chosen]
    assert np.array_equal(spread(rows, labels, 1000, np.random.default_rng(1)), rows)
    numbers = spread(rows, None, 100, np.random.default_rng(1))
    assert len(set(numbers)) == 100


# Fits


def run_of(X: Any, y: Any, folds: int = 2, **more: Any) -> Run:
    settings = Settings("delta_gauss", None, "auto", None, None)
    rng = np.random.default_rng(0)
    prepared = prepare(X, rng=rng, **settings.parameters("landmarks"))
    rows, part = np.arange(len(y)), np.arange(len(y)) // 3 % folds
    splits = [(rows[part != j], rows[part == j]) for j in range(folds)]
    targets = targets_of(y, len(y), "classification")
    return Run(prepared, targets, splits, settings, 7, Progress(), 10**9, **more)


def result_of(run: Run, scores: Any, n_folds: int) -> Evaluation:
    scores = sorted(scores, key=lambda score: (score.failed is not None, score.mean))
    return Evaluation("classification", "error, %", len(run.targets.y), n_folds, 1.0, "k", scores)


def plan_of(learners: Any, sizes: dict[str, int], first: str = "") -> Plan:
    return Plan({one.name: sizes.get(one.name, 10**6) for one in learners},
                {one.name: 1.0 for one in learners}, first, 1.0)  # fmt: skip


def test_limited_learners_are_fitted_to_a_sample_of_the_training_part() -> None:
    X, y = blobs(120)
    run = run_of(X, y)
    learners = learners_for("classification", ["KreinClassifier", "KreinSVC"])
    plan = plan_of(learners, {"KreinSVC": 30}, first="KreinClassifier")
    scores, n_folds = run.scores(learners, plan, None, "left out")
    assert [(s.name, s.n_fitted) for s in scores] == [
        ("KreinClassifier", None), ("KreinSVC", 30), ("KreinClassifier", 30),
    ]  # fmt: skip
    for score, cls in zip(scores, (KreinClassifier, KreinSVC, KreinClassifier), strict=True):
        for j, (train, test) in enumerate(run.folds):
            part = train
            if score.n_fitted:
                part = spread(train, y, 30, np.random.default_rng(7 + j))
                assert len(part) == 30
            model = cls("delta_gauss", random_state=7 + j).fit(X[part], y[part])
            assert score.errors[j] == pytest.approx(
                100 * np.mean(model.predict(X[test]) != y[test])
            )
    found = result_of(run, scores, n_folds)
    whole, machine, like = scores
    for one, other in ((machine, like), (like, machine)):
        gap = found.difference(one)
        assert gap is not None
        assert gap.mean == max(0.0, np.mean(one.errors - other.errors))
    gap = found.difference(whole)
    assert gap is not None
    assert gap.mean == 0
    assert "KreinSVC, 30 objects" in str(found)
    plain = {(one["name"], one["n_fitted"]) for one in found.to_dict()["scores"]}
    assert plain == {("KreinClassifier", None), ("KreinSVC", 30), ("KreinClassifier", 30)}


def test_a_verdict_compares_what_was_fitted_to_as_many_objects() -> None:
    errors = np.array([10.0, 11, 10, 12, 10])
    scores = [
        Score("K", KREIN, errors, 0.1, 0.1),
        Score("B", BASELINE, errors + 2, 0.1, 0.1, n_fitted=50),
        Score("A", BASELINE, errors + 5, 0.1, 0.1),
    ]
    found = Evaluation("classification", "error, %", 100, 5, 0.25, "k", scores)
    assert "A on 15.6 %" in found.verdict
    alone = Evaluation("classification", "error, %", 100, 5, 0.25, "k", scores[:2])
    assert "B (of 50 objects) on 12.6 %" in alone.verdict


@pytest.mark.parametrize(("ticks", "folds"), [(100, 5), (9, 4), (7, 3), (3, 1), (2, 1)])
def test_after_the_time_only_folds_that_are_complete_count(ticks: int, folds: int) -> None:
    X, y = blobs(60)
    counted = itertools.count(1)  # the clock moves by one before each fit
    run = run_of(X, y, folds=5, ends=ticks, clock=lambda: float(next(counted)))
    learners = learners_for("classification", [("one", Slow()), ("two", Slow())])
    scores, n_folds = run.scores(learners, plan_of(learners, {}), None, "left out")
    assert n_folds == folds
    assert [len(score.errors) for score in scores] == [folds, folds]
    assert str(result_of(run, scores, n_folds))


def test_in_the_first_fold_those_count_that_have_seen_it() -> None:
    X, y = blobs(60)
    counted = itertools.count(1)
    run = run_of(X, y, ends=1, clock=lambda: float(next(counted)))
    learners = learners_for("classification", [("one", Slow()), ("two", Slow())])
    scores, n_folds = run.scores(learners, plan_of(learners, {}), None, "left out")
    assert n_folds == 1
    assert [score.failed for score in scores] == [None, "left out"]
    found = result_of(run, scores, n_folds)
    assert "nan" not in json.dumps(found.to_dict(), allow_nan=False)
    assert "nan" not in str(found)
    assert found.verdict.startswith("one errs on 66.7 %.")


# Evaluations


def test_named_learners_have_all_objects_if_no_time_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kreinlearn.evaluation.running.ALLOWED", 1e-6)
    X, y = blobs(90)
    named = evaluate(X, y, "delta_gauss", learners=["KreinSVC"], cv=2, random_state=0)
    assert [score.n_fitted for score in named.scores] == [None]
    assert named.notes == ()
    every = evaluate(*blobs(1000), "delta_gauss", cv=2, random_state=0)
    assert {score.n_fitted for score in every.scores} == {LEAST}
    assert any(f"fitted to {LEAST} of 500 training objects" in note for note in every.notes)


def test_few_objects_are_never_divided() -> None:
    """A part of a few hundred objects saves less time than its larger error is worth."""
    problem = Problem(3, 1e-6)
    costs = {"one": lambda n, problem: 5.0, "two": lambda n, problem: 1e-3 * n}
    plan = planned(costs, "one", 400, 5, problem, allowed=1e-6)
    assert set(plan.sizes.values()) == {400}
    plan = planned(costs, "one", 401, 5, problem, allowed=1e-6)
    assert set(plan.sizes.values()) == {LEAST}


def test_what_there_was_no_time_for_is_a_row_that_says_so() -> None:
    X, y = blobs(60)
    found = evaluate(X, y, learners=["KreinSVC", "k nearest neighbours"], time_limit=1e-9)
    assert found.best is None
    for score, row in zip(found.scores, found.rows(), strict=True):
        assert score.failed == "left out, as time_limit=1e-09 was reached"
        assert score.failed in row[0]
    assert found.verdict.startswith("No learner has a result")


def test_objects_that_are_dear_to_compare_are_sampled() -> None:
    words = [f"{a}{b}" for a in "abcdefghij" for b in "0123456789abcdefghij"]
    y = np.array([ord(word[0]) % 2 for word in words])
    called: Counter[str] = Counter()

    def slow(a: str, b: str) -> float:
        called["slow"] += 1
        time.sleep(1e-3)
        return float(a[0] != b[0]) + 0.1 * (a[1] != b[1])

    found = evaluate(
        words, y, pairwise(slow), learners=["k nearest neighbours"], cv=2, time_limit=2.0,
        random_state=0,
    )  # fmt: skip
    assert found.n_objects < 200
    assert called["slow"] < 200 * 199 // 2 // 2
    assert any(f"{found.n_objects} of the 200 objects" in note for note in found.notes)


def test_a_first_answer_is_printed_if_there_are_many_objects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ["k nearest neighbours", "always the most frequent class"]
    for n in (1100, 1300):
        X, y = blobs(n)
        evaluate(X, y, learners=names, cv=2, random_state=0, verbose=1)
        lines = [x for x in capsys.readouterr().err.splitlines() if x.startswith("preliminary")]
        if n < 1200:
            assert lines == []
            continue
        (line,) = lines
        assert "fitted to 300 objects: k nearest neighbours" in line
        assert "always the most frequent class 67 %" in line  # 300 test objects, 100 of each class


def test_values_that_are_not_remembered_are_noted() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(60)]
    found = evaluate(
        words, np.arange(60) % 2, "levenshtein", learners=["k nearest neighbours"], cv=2,
        resources=Resources(memory_budget=20_000), random_state=0,
    )  # fmt: skip
    assert any(note.startswith("Values of pairs exceed memory_budget") for note in found.notes)


def test_the_bar_of_the_first_answer_counts_fits_and_not_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = open_terminal(monkeypatch)
    X, y = blobs(1300)
    names = ["k nearest neighbours", "always the most frequent class"]
    evaluate(X, y, learners=names, cv=2, random_state=0, verbose=1)
    shown = terminal.getvalue()
    assert "first answer" in shown
    assert re.search(r"/2 fits, \d+ s left", shown)
    assert " rows" not in shown
