"""evaluate: the same folds for all, errors and tests by their definitions, every kind of X."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import kreinlearn
from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    Landmarks,
    Resources,
    evaluate,
    pairwise,
)
from kreinlearn.evaluation import Evaluation, Score
from kreinlearn.evaluation.learners import KNOWN
from kreinlearn.evaluation.neighbours import NUMBERS, NearestNeighbours
from kreinlearn.evaluation.paired import paired_difference
from kreinlearn.evaluation.verdict import FIRST, caution

FEW = ["KreinRidgeClassifier", "k nearest neighbours", "always the most frequent class"]
NUMERIC = ["KreinRidge", "k nearest neighbours", "always the mean"]


def blobs(n: int = 60, classes: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + 3 * np.column_stack([y, y % 2]), y


def words(n: int = 60, seed: int = 0) -> tuple[list[str], Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return ["".join(rng.choice(list("abx" if c else "aby"), rng.integers(4, 9))) for c in y], y


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is shown; says the first label it saw."""

    seen: list[tuple[Any, Any]] = []

    def fit(self, X: Any, y: Any) -> Recorder:
        self.first_, self.X_ = y[0], X
        return self

    def predict(self, X: Any) -> Any:
        self.seen.append((self.X_, X))
        return np.full(len(X), self.first_)


# Folds


def test_every_learner_sees_the_same_stratified_folds_that_cover_all_objects() -> None:
    X, y = np.arange(50.0)[:, None], np.repeat(["a", "b", "c"], [30, 13, 7])
    Recorder.seen = []
    pair = [("one", Recorder()), ("two", Recorder())]
    found = evaluate(X, y, learners=pair, cv=5, random_state=3)
    tests = [test.ravel().astype(int) for _, test in Recorder.seen]
    trains = [train.ravel().astype(int) for train, _ in Recorder.seen]
    assert found.n_folds == 5
    assert len(tests) == 10
    # both learners on one fold, then both on the next
    assert all(np.array_equal(a, b) for a, b in zip(tests[::2], tests[1::2], strict=True))
    assert sorted(np.concatenate(tests[::2])) == list(range(50))
    for train, test in zip(trains, tests, strict=True):
        assert set(train) | set(test) == set(range(50))
        assert not set(train) & set(test)
        counts = Counter(y[test])
        assert counts["a"] == 6
        assert counts["b"] in (2, 3)
        assert counts["c"] in (1, 2)


def test_a_rare_class_is_spread_over_the_folds_that_were_asked_for() -> None:
    X, y = np.arange(60.0)[:, None], np.repeat(["a", "b", "rare"], [30, 28, 2])
    Recorder.seen = []
    found = evaluate(X, y, learners=[("r", Recorder())], cv=5, random_state=0)
    assert found.n_folds == 5
    assert all(set(y[train.ravel().astype(int)]) == set(y) for train, _ in Recorder.seen)
    (note,) = [note for note in found.notes if "rare (2)" in note]
    assert note.startswith("One class has fewer objects than there are folds, 5: rare (2);")
    assert evaluate(X, y, learners=FEW[2:], cv=10).n_folds == 10


def test_fits_within_folds_do_not_warn_of_rare_classes_again() -> None:
    X, y = blobs(60, 2)
    y[:3] = 7
    names = ["KreinRidgeClassifier", "KreinSVC", "SpectrumSVC flip"]
    found = evaluate(X, y, learners=names, landmarks=10, random_state=0)
    assert sum("fewer objects than there are folds" in note for note in found.notes) == 1


def test_a_splitter_is_taken_as_it_is() -> None:
    X, y = blobs(30)
    Recorder.seen = []
    splitter = KFold(4, shuffle=True, random_state=0)
    found = evaluate(X, y, learners=[("r", Recorder())], cv=splitter)
    assert found.n_folds == 4
    for (_, test), (_, rows) in zip(Recorder.seen, splitter.split(X), strict=True):
        np.testing.assert_array_equal(test, X[rows])


# Errors


def test_errors_are_those_of_the_estimator_fitted_by_hand() -> None:
    X, y = blobs()
    splits = list(KFold(3, shuffle=True, random_state=1).split(X))
    own = KreinRidgeClassifier("delta_gauss", random_state=7)
    found = evaluate(X, y, "delta_gauss", learners=[("own", own)], cv=splits)
    expected = [
        100 * np.mean(own.fit(X[train], y[train]).predict(X[test]) != y[test])
        for train, test in splits
    ]
    np.testing.assert_allclose(found.scores[0].errors, expected)
    np.testing.assert_allclose(found.scores[0].mean, np.mean(expected))
    np.testing.assert_allclose(
        found.scores[0].standard_error, np.std(expected, ddof=1) / math.sqrt(3)
    )


def test_the_error_of_numbers_is_one_less_r_squared_pooled_over_equal_folds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    splits = list(KFold(3).split(X))
    own = KreinRidge("gaussian", random_state=0)
    found = evaluate(X, y, learners=[("own", own), "always the mean"], cv=splits)
    predicted = np.concatenate([own.fit(X[a], y[a]).predict(X[b]) for a, b in splits])
    assert found.task == "regression"
    assert found.metric == "1 - R^2"
    np.testing.assert_allclose(found.scores[0].mean, 1 - r2_score(y, predicted))
    assert found.scores[-1].name == "always the mean"
    assert 0.95 < found.scores[-1].mean < 1.2


def test_random_state_repeats_everything() -> None:
    X, y = words()
    a, b = (evaluate(X, y, "levenshtein", learners=FEW, random_state=5) for _ in range(2))
    for one, two in zip(a.scores, b.scores, strict=True):
        assert one.name == two.name
        np.testing.assert_array_equal(one.errors, two.errors)


# Kinds of X


def test_objects_and_the_matrix_of_their_distances_give_the_same_errors() -> None:
    X, y = words(50)
    D = pairwise(lambda a, b: float(_levenshtein(a, b)))(X)
    splits = list(KFold(3, shuffle=True, random_state=0).split(y))
    for learner in FEW:
        objects = evaluate(X, y, "levenshtein", learners=[learner], cv=splits, random_state=1)
        matrix = evaluate(
            D, y, "precomputed_dissimilarity", learners=[learner], cv=splits, random_state=1
        )
        np.testing.assert_allclose(objects.scores[0].errors, matrix.scores[0].errors)
        assert objects.scores[0].mean < 50 or learner.startswith("always")


def _levenshtein(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, z in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != z))
    return row[-1]


def test_no_pair_of_a_function_is_evaluated_by_each_learner_again() -> None:
    X, y = words(40)
    counted: Counter[tuple[str, str]] = Counter()

    def similarity(a: str, b: str) -> float:
        counted[min(a, b), max(a, b)] += 1
        return -float(_levenshtein(a, b))

    found = evaluate(X, y, pairwise(similarity), learners=FEW, cv=4, random_state=0)
    assert all(score.failed is None for score in found.scores)
    distinct = len(set(X))
    assert len(counted) <= distinct * (distinct + 1) // 2
    # beside once each: probes, a few pairs a fit, of what the function is like
    assert np.median(list(counted.values())) == 1
    assert any("evaluated once" in note for note in found.notes)


def test_a_precomputed_similarity() -> None:
    X, y = blobs(40, 2)
    found = evaluate(X @ X.T, y, "precomputed", learners=FEW, random_state=0)
    assert all(score.failed is None for score in found.scores)
    assert found.best is not None
    assert found.best.mean < 20


# Neighbours


@pytest.mark.parametrize("classifies", [True, False])
def test_nearest_neighbours_are_those_of_scikit_learn(classifies: bool) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(80, 3)), rng.normal(size=(30, 3))
    y: Any = (X[:, 0] > 0).astype(int) if classifies else X[:, 0]
    theirs: Any = KNeighborsClassifier if classifies else KNeighborsRegressor
    own = NearestNeighbours("euclidean", classifies=classifies).fit(X, y)
    losses = {}
    for k in NUMBERS:
        left_out = [
            theirs(k).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0]
            for i in range(len(X))
        ]
        losses[k] = np.mean((np.array(left_out) - y) ** 2)
    assert own.k_ == min(losses, key=lambda k: losses[k])
    np.testing.assert_allclose(own.predict(new), theirs(own.k_).fit(X, y).predict(new))


def test_neighbours_of_a_similarity_are_by_its_squared_distance() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    K = X @ X.T
    ours = NearestNeighbours("precomputed", classifies=True)
    ours.fit(K[:40, :40], y[:40])
    by_rows = NearestNeighbours("linear", classifies=True).fit(X[:40], y[:40])
    assert ours.k_ == by_rows.k_
    np.testing.assert_array_equal(ours.predict(K[40:, :40]), by_rows.predict(X[40:]))


# Failures


class Refuses(Recorder):
    def fit(self, X: Any, y: Any) -> Recorder:
        raise RuntimeError("no\nthank you")


def test_a_learner_that_fails_is_a_row_that_says_why_and_stands_last() -> None:
    X, y = blobs(30)
    found = evaluate(X, y, learners=[("bad", Refuses()), FEW[2]])
    assert [score.name for score in found.scores] == [FEW[2], "bad"]
    assert found.scores[-1].failed == "failed, RuntimeError: no thank you"
    assert "RuntimeError" in found.rows()[-1][0]
    assert json.loads(json.dumps(found.to_dict()))["scores"][-1]["mean"] is None
    only = evaluate(X, y, learners=[("bad", Refuses())])
    assert only.best is None
    assert "no thank you" in only.verdict
    assert "bad" in str(only)


def test_an_interrupt_is_no_failure_of_a_learner() -> None:
    class Interrupted(Recorder):
        def fit(self, X: Any, y: Any) -> Recorder:
            raise KeyboardInterrupt

    X, y = blobs(30)
    with pytest.raises(KeyboardInterrupt):
        evaluate(X, y, learners=[("bad", Interrupted())])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": None}, "y, which is None"),
        ({"y": np.zeros(30, dtype=int)}, "one class"),
        ({"y": np.full(30, 0.5)}, "nothing to learn"),
        ({"y": np.arange(29)}, "inconsistent numbers of samples"),
        ({"learners": ["KreinRigde"]}, "KreinRigde"),
        ({"learners": []}, "empty"),
        ({"cv": 1}, "cv"),
        ({"task": "clustering"}, "task"),
        ({"y": np.array(["a", *"b" * 29])}, "two objects or more"),
        ({"landmarks": Landmarks(np.arange(5))}, "chooses landmarks for every fold"),
        ({"landmarks": np.arange(5)}, "landmarks"),
        ({"landmarks": "some"}, "landmarks"),
        ({"resources": Resources(store="folder")}, "a store of its own"),
        ({"resources": Resources(memory_budget="much")}, "memory_budget"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(change: dict[str, Any], says: str) -> None:
    X, y = blobs(30)
    with pytest.raises(ValueError, match=says):
        evaluate(**{"X": X, "y": y, "learners": FEW[2:], **change})


def test_landmarks_and_resources_go_to_every_learner_that_has_them() -> None:
    X, y = blobs(60)
    few = evaluate(X, y, cv=2, random_state=0, landmarks=Landmarks(2, "uniform"))
    assert [score.failed for score in few.scores] == [None] * len(few.scores)
    one: Any = {"learners": ["KreinRidgeClassifier"], "cv": 2, "random_state": 0}
    errors = [evaluate(X, y, landmarks=m, **one).scores[0].mean for m in (1, None)]
    assert errors[0] > errors[1]
    (score,) = evaluate(X, y, resources=Resources(memory_budget=5000), **one).scores
    assert "but memory_budget is 5 kB" in str(score.failed)


def test_a_dask_collection_is_refused() -> None:
    da = pytest.importorskip("dask.array")
    X, y = blobs(30)
    with pytest.raises(TypeError, match="takes no dask collection; pass a sample"):
        evaluate(da.from_array(X, chunks=10), y)


def test_warnings_of_fits_are_told_once() -> None:
    X, y = blobs(40, 2)
    K = X @ X.T
    K[0, 1] += 1.0
    found = evaluate(K, y, "precomputed", learners=FEW)
    assert sum("asymmetric" in note for note in found.notes) == 1


# Tasks


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.arange(60) % 3, "classification"),
        (np.array(["a", "b"] * 30), "classification"),
        (np.linspace(0.1, 1, 60), "regression"),
        (np.arange(60), "regression"),
        (np.arange(60.0) // 2, "regression"),
    ],
)
def test_the_task_is_that_of_y(y: Any, task: str) -> None:
    X, _ = blobs(60)
    name = FEW[2] if task == "classification" else NUMERIC[2]
    assert evaluate(X, y, learners=[name]).task == task


# What is said


def made(*errors: list[float], kinds: str = "kbt", folds: int = 5, task: str = "") -> Evaluation:
    names = {"k": "Krein learner", "b": "baseline", "t": "trivial"}
    scores = [
        Score(f"L{i}", names[kind], np.array(error), 0.1, 0.01)
        for i, (kind, error) in enumerate(zip(kinds, errors, strict=True))
    ]
    scores.sort(key=lambda score: score.mean)
    task = task or "classification"
    return Evaluation(task, "error, %", 100, folds, 0.25, "k", scores)


def test_the_paired_test_is_the_corrected_resampled_t() -> None:
    a, b = np.array([4.0, 6, 5, 9, 3]), np.array([3.0, 4, 5, 6, 4])
    gap = paired_difference(a, b, 0.25)
    plain = ttest_rel(a, b, alternative="greater")
    np.testing.assert_allclose(gap.p, plain.pvalue)
    # variance (1/J + ratio) s^2 instead of s^2 / J: t shrinks by sqrt(1 + J ratio)
    t = ttest_1samp(a - b, 0).statistic / math.sqrt(1 + 5 * 0.25)
    from scipy.stats import t as student

    np.testing.assert_allclose(gap.p_either, 2 * student.sf(abs(t), 4))


def test_a_verdict_says_whether_the_difference_is_more_than_chance() -> None:
    near = made([4, 5, 4, 5, 4], [5, 4, 5, 5, 5], [50, 51, 50, 49, 50])
    far = made([4, 5, 4, 5, 4], [14, 15, 15, 15, 14], [50, 51, 50, 49, 50])
    assert "L0 errs on 4.4 % (s.e. 0.2), L1 on 4.8 %" in near.verdict
    assert "may be chance" in near.verdict
    assert "larger than chance" in far.verdict
    few = made([4, 5, 4], [14, 15, 15], [50, 51, 50], folds=3)
    assert "3 folds are too few" in few.verdict


def test_the_learner_to_try_first_is_recommended_unless_another_is_surely_better() -> None:
    assert [FIRST[task] for task in KNOWN] == [learners[0].name for learners in KNOWN.values()]
    best, constant = [4.0, 5, 4, 5, 4], [50.0, 51, 50, 49, 50]

    def named(*errors: list[float], first: str = "L1", **more: Any) -> Evaluation:
        result = made(*errors, constant, **more)
        renamed = [replace(s, name="KreinClassifier") if s.name == first else s
                   for s in result.scores]  # fmt: skip
        return replace(result, scores=renamed)

    near = named(best, [5, 4, 5, 5, 5])
    assert (near.best.name, near.recommended.name) == ("L0", "KreinClassifier")
    assert near.to_dict()["recommended"] == "KreinClassifier"
    assert caution(near) == (
        "This is the best of 2 learners, and its lead may be chance: KreinClassifier errs on "
        "4.8 % (s.e. 0.2), and is recommended, as the learner to try first."
    )
    far = named(best, [14, 15, 15, 15, 14])
    assert far.recommended is far.best
    assert caution(far) == "As it is the best of 2 learners, its figure is a little too good."
    few = named(best[:3], [14, 15, 15], folds=3)
    assert few.recommended.name == "KreinClassifier"  # three folds are too few to be sure
    absent = named(best, [5, 4, 5, 5, 5], first="")
    assert absent.recommended is absent.best
    worse = named([60, 61, 60, 61, 60], [61, 62, 61, 62, 61])
    assert (worse.recommended.kind, caution(worse)) == ("trivial", "")
    alone = replace(near, scores=near.scores[1:])
    assert caution(alone) == ""


def test_a_constant_is_beaten_object_by_object() -> None:
    """12 of 40 wrong against 20 of 40, and the same of twelve times as many."""
    rng = np.random.default_rng(0)
    constant = 100.0 * (np.arange(40) % 2)
    wrong = 100.0 * np.isin(np.arange(40), rng.choice(40, 12, replace=False))

    def found(learned: Any, other: Any) -> Evaluation:
        scores = [
            Score(name, kind, np.array([part.mean() for part in np.split(losses, 4)]), 0, 0,
                  losses=losses)
            for name, kind, losses in (("L", "Krein learner", learned), ("C", "trivial", other))
        ]  # fmt: skip
        return Evaluation("classification", "error, %", 40, 4, 1 / 3, "k", scores)

    assert "It is not certain that anything was learned" in found(wrong, constant).verdict
    more = [np.tile(losses, 12) for losses in (wrong, constant)]
    assert found(*more).verdict == "L errs on 30.0 % (s.e. 0.0)."


def test_losses_of_objects_make_up_the_errors_of_folds() -> None:
    X, y = blobs(40, 2)
    for score in evaluate(X, y, learners=FEW, cv=5, random_state=0).scores:
        np.testing.assert_allclose(score.losses.reshape(5, 8).mean(axis=1), score.errors)
        assert set(score.losses) <= {0.0, 100.0}


def test_a_verdict_says_who_had_several_kernels() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    words = ["".join(rng.choice(list("abcd"[2 * c : 2 * c + 2]), size=6)) for c in y]
    rows = [{"name": word, "size": x} for word, x in zip(words, rng.normal(size=40), strict=True)]
    learners = ["KreinClassifier", "k nearest neighbours"]
    several = evaluate(rows, y, learners=learners, cv=4, random_state=0)
    n = len(several.scores[0].kernel_weights or ())
    assert several.scores[0].name == "KreinClassifier"
    said = f"KreinClassifier weighs {n} kernels and k nearest neighbours does not, which may be"
    assert n > 1
    assert said in several.verdict
    one = evaluate(words, y, "levenshtein", learners=learners, cv=4, random_state=0)
    assert "weighs" not in one.verdict


def test_a_verdict_on_nothing() -> None:
    noise = made([49, 52, 50, 48, 51], [53, 50, 50, 52, 51], [50, 51, 50, 49, 51])
    assert noise.verdict.startswith("It is not certain that anything was learned")
    worse = made([55, 52, 56], [53, 54, 57], [50, 51, 50], folds=3)
    assert worse.verdict.startswith("Nothing was learned: L2 errs on")


def test_a_baseline_that_wins_is_compared_with_the_best_krein_learner() -> None:
    found = made([9, 9, 8, 9, 9], [4, 5, 4, 4, 4], [7, 7, 6, 7, 7], kinds="kbk")
    assert "L1 errs on" in found.verdict
    assert "L2 on 6.8 %" in found.verdict


def test_rows_csv_and_dict_agree(tmp_path: Path) -> None:
    X, y = blobs(40, 2)
    found = evaluate(X, y, learners=[*FEW, ("bad", Refuses())], random_state=0)
    path = tmp_path / "found.csv"
    path.write_text("old", encoding="utf8")
    found.to_csv(path)
    with path.open(encoding="utf8", newline="") as file:
        lines = list(csv.DictReader(file))
    plain = json.loads(json.dumps(found.to_dict()))
    assert [line["name"] for line in lines] == [s["name"] for s in plain["scores"]]
    for line, score, row in zip(lines, plain["scores"], found.rows(), strict=True):
        assert row[0].startswith(score["name"])
        if score["failed"] is None:
            assert float(line["mean"]) == pytest.approx(score["mean"])
            folds = [float(line[f"fold_{j}"]) for j in range(1, 6)]
            np.testing.assert_allclose(folds, score["errors"])
            assert float(line["mean"]) == pytest.approx(np.mean(folds))
        else:
            assert line["fold_1"] == ""
            assert score["errors"] == []
    assert len(found.header) == len(found.rows()[0])
    assert list(tmp_path.iterdir()) == [path]
    assert found.verdict in str(found)


def test_progress_is_told_after_every_fit() -> None:
    X, y = blobs(30)
    told: list[tuple[int, int, str]] = []
    evaluate(X, y, learners=FEW[1:], cv=3, progress=lambda *news: told.append(news))
    assert [(done, total) for done, total, _ in told] == [(i, 6) for i in range(1, 7)]
    assert {name for *_, name in told} == set(FEW[1:])


def test_public_names() -> None:
    assert kreinlearn.evaluate is evaluate
    assert kreinlearn.Evaluation is Evaluation


# Several kernels


def test_a_list_of_kernels_is_for_those_who_learn_a_sum() -> None:
    X, y = words()
    own = ("mine", KreinRidgeClassifier("jaro", random_state=0))
    names = ["KreinClassifier", *FEW, own]
    kernels = ["levenshtein", "jaro_winkler"]
    found = evaluate(X, y, kernels, learners=names, cv=2, random_state=0)
    failed = {score.name: score.failed for score in found.scores}
    one = {"KreinRidgeClassifier", "k nearest neighbours"}
    assert {name for name, why in failed.items() if why == "takes one kernel"} == one
    assert failed["KreinClassifier"] is failed["mine"] is failed[FEW[2]] is None
    assert found.kernel == "levenshtein, jaro_winkler"
    assert found.weighted is not None
    weights, losses = found.weighted.kernel_weights, found.weighted.kernel_losses
    assert weights is not None
    assert losses is not None
    assert set(weights) == set(losses) == set(kernels)
    assert sum(weights.values()) == pytest.approx(1)
    assert any("on the first fold: " in note for note in found.notes)
    assert found.to_dict()["kernel_weights"] == weights


def test_a_list_gives_what_the_front_door_gives_on_each_fold() -> None:
    X, y = words()
    splits = list(KFold(2, shuffle=True, random_state=0).split(y))
    kernels = ["levenshtein", "jaro_winkler"]
    found = evaluate(X, y, kernels, learners=["KreinClassifier"], cv=splits, random_state=0)
    errors = []
    for train, test in splits:
        model = kreinlearn.KreinClassifier(kernels, random_state=0)
        model.fit([X[i] for i in train], y[train])
        errors.append(100 * np.mean(model.predict([X[i] for i in test]) != y[test]))
    np.testing.assert_allclose(found.scores[0].errors, errors, atol=100 / len(splits[0][1]))


def test_kernels_are_chosen_by_the_kind_of_objects() -> None:
    X, y = words()
    found = evaluate(X, y, "auto", learners=["KreinClassifier"], cv=2, random_state=0)
    assert found.kernel.startswith("Levenshtein(), ")
    Z = np.random.default_rng(0).normal(size=(60, 2))
    found = evaluate(Z, Z[:, 0], "auto", learners=["KreinRegressor"], cv=2, random_state=0)
    assert "euclidean" in found.kernel


def test_without_a_kernel_others_are_given_one_that_is_named() -> None:
    X, y = words()
    names = ["KreinClassifier", "KreinRidgeClassifier"]
    found = evaluate(X, y, learners=names, cv=2, random_state=0)
    assert [score.failed for score in found.scores] == [None, None]
    assert found.weighted is not None
    assert found.weighted.name == "KreinClassifier"
    (note,) = [note for note in found.notes if note.startswith("Learners that take one kernel")]
    assert "were given Levenshtein();" in note
    by_name = {score.name: score for score in found.scores}
    alone = evaluate(X, y, "levenshtein", learners=names[1:], cv=2, random_state=0)
    np.testing.assert_array_equal(by_name[names[1]].errors, alone.scores[0].errors)


def test_records_are_compared_by_whole_rows_where_one_kernel_is_taken() -> None:
    X, y = words()
    rows = [{"name": x, "size": float(i % 7)} for i, x in enumerate(X)]
    found = evaluate(rows, y, learners=FEW[:1], cv=2, random_state=0)
    assert found.best is not None
    assert any(note.startswith("All learners were given Gower();") for note in found.notes)


def test_no_learner_that_takes_a_list_and_parameters_of_a_list() -> None:
    X, y = words()
    kernels = ["levenshtein", "jaro_winkler"]
    with pytest.raises(ValueError, match="KreinSVC: each takes one kernel, and 2 were given"):
        evaluate(X, y, kernels, learners=["KreinSVC"])
    with pytest.raises(ValueError, match="give each kernel its own parameters"):
        evaluate(X, y, kernels, kernel_params={"normalized": True})
    assert evaluate(X, y, ["levenshtein"], learners=FEW, cv=2, random_state=0).best is not None
