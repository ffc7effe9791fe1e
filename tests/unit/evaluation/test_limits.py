"""What evaluate does where there is little time: fewer objects, fewer folds, and words about it."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from kreinlearn import Resources, evaluate, pairwise
from kreinlearn.evaluation.learners import KNOWN
from kreinlearn.evaluation.targets import spread


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


def test_the_first_learner_is_the_one_to_try_first() -> None:
    assert [KNOWN[task][0].name for task in KNOWN] == ["KreinClassifier", "KreinRegressor"]


# Time


def test_a_learner_whose_time_is_up_has_no_further_fit_and_its_row_says_so() -> None:
    X, y = blobs(60)
    learners = [("slow", Slow(0.6)), ("quick", Slow())]
    found = evaluate(X, y, "gaussian", learners=learners, time_limit=0.5, random_state=0)
    quick, slow = found.scores
    assert (quick.name, len(quick.errors), found.n_folds) == ("quick", 5, 5)
    assert slow.failed == "left out after 1 of 5 folds, as time_limit=0.5"
    assert slow.failed in found.rows()[1][0]
    assert "nan" not in json.dumps(found.to_dict(), allow_nan=False)
    assert found.notes == ()


def test_folds_that_no_learner_has_seen_are_left_out() -> None:
    X, y = blobs(60)
    learners = [("one", Slow(0.3)), ("two", Slow(0.3)), "constant"]
    found = evaluate(X, y, "gaussian", learners=learners, time_limit=0.2, random_state=0)
    assert found.n_folds == 1
    assert [len(score.errors) for score in found.scores] == [1, 1, 1]
    assert "One fold was done of 5, as time_limit=0.2 was reached." in found.notes
    assert "nan" not in str(found)


def test_all_learners_are_compared_by_a_sample_and_named_ones_by_all_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kreinlearn.evaluation.running.MOST", 60)
    X, y = blobs(90)
    named = evaluate(X, y, "delta_gauss", learners=["k nearest neighbours"], cv=2, random_state=0)
    assert (named.n_objects, named.notes) == (90, ())
    every = evaluate(X, y, "delta_gauss", cv=2, random_state=0)
    assert every.n_objects == 60
    assert sum(score.failed is None for score in every.scores) == len(KNOWN["classification"])
    assert any(note.startswith("This is about 60 of the 90 objects") for note in every.notes)


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


def test_values_that_are_not_remembered_are_noted() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(60)]
    found = evaluate(
        words, np.arange(60) % 2, "levenshtein", learners=["k nearest neighbours"], cv=2,
        resources=Resources(memory_budget=20_000), random_state=0,
    )  # fmt: skip
    assert any(note.startswith("Values of pairs exceed memory_budget") for note in found.notes)
