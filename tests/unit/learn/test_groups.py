"""Objects that are left out together: groups that are given, and objects that are equal."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinClassifier, KreinRegressor, KreinRidge, SpectrumSVC, evaluate
from kreinlearn.learn.folds import random_folds, rounds_of_folds

RNG = np.random.default_rng(5)
N = 48
WORDS = ["".join(RNG.choice(list("abcd"), RNG.integers(6, 14))) for _ in range(100)]
NOISE = RNG.integers(0, 2, 100)
GROUPS = np.arange(N) // 4
D = np.abs(np.subtract.outer(np.arange(N), np.arange(N))) + RNG.uniform(0, 1, (N, N))
D = (D + D.T) / 2 * (1 - np.eye(N))


def distinct(folds: Any, groups: Any) -> bool:
    """Whether each group is in one fold."""
    return all(len(set(folds[groups == g])) == 1 for g in np.unique(groups))


def test_groups_are_in_one_fold_with_classes_in_proportion() -> None:
    groups, labels = RNG.integers(0, 40, 200), RNG.integers(0, 2, 200)
    for labelled in (None, labels):
        folds = random_folds(200, 5, np.random.default_rng(0), labelled, groups)
        assert distinct(folds, groups)
        sizes = np.bincount(folds, minlength=5)
        assert sizes.min() >= 20
    shares = [labels[folds == k].mean() for k in range(5)]
    assert np.ptp(shares) < 0.35


def test_few_groups_are_left_out_one_by_one() -> None:
    (folds,) = rounds_of_folds(N, None, GROUPS)
    assert len(set(folds)) == 12
    assert distinct(folds, GROUPS)
    assert len(rounds_of_folds(N, None, None)) == 2


@pytest.mark.parametrize("cv", [None, 3, "loo"])
def test_every_learner_leaves_groups_out(cv: Any) -> None:
    y = np.repeat(RNG.normal(size=12), 4)  # which a mate in the training part would tell
    model = KreinRidge("precomputed_dissimilarity", cv=cv, random_state=0)
    alone = model.fit(D, y).cv_loss_
    loss = model.fit(D, y, groups=GROUPS).cv_loss_
    assert np.ndim(model.folds_) == 1
    assert distinct(np.asarray(model.folds_), GROUPS)
    assert loss > 2 * alone


def test_the_expected_error_is_that_of_new_groups() -> None:
    y = np.repeat(np.random.default_rng(0).normal(size=12), 4)
    model = KreinRegressor("precomputed_dissimilarity", random_state=0)
    assert model.fit(D, y).expected_error_ < 0.5 * y.std()
    assert model.fit(D, y, groups=GROUPS).expected_error_ > 0.8 * y.std()


def test_machines_and_landmarks_leave_groups_out() -> None:
    y = np.repeat(np.arange(12) % 2, 4)
    svc = SpectrumSVC("precomputed_dissimilarity", random_state=0).fit(D, y, groups=GROUPS)
    assert distinct(svc.folds_, GROUPS)
    few = KreinRidge("precomputed_dissimilarity", landmarks=10, random_state=0)
    assert distinct(np.asarray(few.fit(D, y, groups=GROUPS).folds_), GROUPS)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_conformal_sets_leave_groups_out(method: str) -> None:
    y = np.repeat(np.random.default_rng(1).normal(size=12), 4)
    model = KreinRidge("precomputed_dissimilarity", random_state=0)
    coverage = 0.7
    widths = []
    for groups in (None, GROUPS):
        model.fit(D, y, groups=groups, conformal=method)
        low, high = model.predict_interval(D, coverage).T
        widths.append(np.median(high - low))
    assert widths[1] > widths[0]


def test_evaluate_keeps_groups_together() -> None:
    y = np.repeat(np.random.default_rng(2).integers(0, 2, 12), 4)
    y[:8] = [0, 0, 0, 0, 1, 1, 1, 1]
    given = {"learners": ["k nearest neighbours"], "random_state": 0}
    alone = evaluate(D, y, "precomputed_dissimilarity", **given)
    grouped = evaluate(D, y, "precomputed_dissimilarity", groups=GROUPS, **given)
    assert grouped.scores[0].mean > alone.scores[0].mean + 10


def test_copies_of_texts_are_left_out_together() -> None:
    """Random labels cannot be predicted, also if every object is there three times."""
    X, y = WORDS * 3, np.tile(NOISE, 3)
    model = KreinClassifier("levenshtein", random_state=0)
    with pytest.warns(UserWarning, match=r"300 of 300 objects are equal .* left out together"):
        model.fit(X, y)
    assert model.expected_error_ > 0.35
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, groups=np.arange(300))  # whoever wants it otherwise
    assert model.expected_error_ < 0.1


def test_where_equal_objects_are_usual_they_are_judged_as_they_come() -> None:
    """Of 16 texts in all, new objects are equal to known ones; a fifth of the labels is noise."""
    rng = np.random.default_rng(3)
    texts = ["".join(x) for x in itertools.product("ab", repeat=4)]
    labels, i = rng.integers(0, 2, 16), rng.integers(0, 16, 300)
    y = np.where(rng.random(300) < 0.2, 1 - labels[i], labels[i])
    model = KreinClassifier("levenshtein", random_state=0)
    with pytest.warns(UserWarning, match="counts on new objects that are equal"):
        model.fit([texts[j] for j in i], y)
    assert 0.12 < model.expected_error_ < 0.28


def test_zero_distance_and_equal_vectors_make_no_group() -> None:
    X = np.repeat(np.random.default_rng(4).normal(size=(10, 2)), 3, axis=0)
    y = np.arange(30) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KreinClassifier(random_state=0).fit(X, y)
        distances = np.sqrt(np.square(X[:, None] - X).sum(-1))
        KreinClassifier("precomputed_dissimilarity", random_state=0).fit(distances, y)


@pytest.mark.parametrize(
    ("groups", "key"), [([0, 1], "shape"), (np.zeros(N), "one group"), (np.eye(N), "shape")]
)
def test_wrong_groups_are_refused(groups: Any, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        KreinRidge("precomputed_dissimilarity").fit(D, np.arange(N), groups=groups)
