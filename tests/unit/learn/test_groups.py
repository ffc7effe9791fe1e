"""Objects that are left out together: groups that are given, and objects that are equal."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from kreinlearn import (
    KreinClassifier,
    KreinRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    SpectrumSVC,
    evaluate,
)
from kreinlearn.kernels import Levenshtein
from kreinlearn.kernels.tables import Gower
from kreinlearn.learn.folds import random_folds, rounds_of_folds
from kreinlearn.learn.groups import groups_for, n_equal_by_chance
from kreinlearn.pairs.rows import Rows
from kreinlearn.plotting.penalties import criterion_of

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


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_few_groups_are_as_many_folds(count: int) -> None:
    y, groups = np.arange(N) % 2, np.arange(N) // 2 % count
    given = {"learners": ["KreinRidgeClassifier"], "random_state": 0}
    result = evaluate(D, y, "precomputed_dissimilarity", groups=groups, **given)
    assert result.n_folds == count
    assert np.isfinite(result.scores[0].mean)
    model = KreinRidge("precomputed_dissimilarity", random_state=0)
    model.fit(D, y.astype(float), groups=groups, conformal="cv+")
    assert np.isfinite(model.predict_interval(D, 0.5)).all()


def test_a_splitter_gets_the_groups_and_must_not_cut_them() -> None:
    y = np.repeat(RNG.normal(size=12), 4)
    model = KreinRidge("precomputed_dissimilarity", cv=GroupKFold(3)).fit(D, y, groups=GROUPS)
    assert distinct(np.asarray(model.folds_), GROUPS)
    model.set_params(cv=KFold(3, shuffle=True, random_state=0))
    with pytest.raises(ValueError, match=r"of one group, into two folds.*GroupKFold"):
        model.fit(D, y, groups=GROUPS)


def test_what_a_splitter_says_is_heard() -> None:
    """It was silenced for all, where only its word on groups is answered otherwise."""
    y = np.append(np.zeros(N - 2, dtype=int), [1, 1])
    model = KreinRidgeClassifier("precomputed_dissimilarity", cv=StratifiedKFold(3))
    with pytest.warns(UserWarning, match="least populated class"):
        model.fit(D, y)


def test_words_that_come_again_and_again_are_no_copies() -> None:
    words = [f"{a}{b}" for a in ("red", "blue", "green", "grey") for b in ("", "ish", "er", "est")]
    texts = [words[i] for i in np.random.default_rng(0).integers(0, 16, 60)]
    rows, kernel = Rows(texts), Levenshtein()
    assert groups_for(None, rows, kernel)[0] is None
    assert groups_for(None, Rows(WORDS * 3), kernel)[0] is not None
    few = [*WORDS, *WORDS[:2]]  # which do not matter
    numbers, equal = groups_for(None, Rows(few), kernel)
    assert numbers is None
    assert equal is not None


@pytest.mark.parametrize("mapping", [True, False])
def test_records_are_copies_if_more_are_equal_than_by_chance(mapping: bool) -> None:
    rng = np.random.default_rng(1)

    def records(n: int, values: int) -> Any:
        rows = rng.integers(0, values, (n, 4)).tolist()
        return [dict(zip("abcd", row, strict=True)) if mapping else tuple(row) for row in rows]

    usual, rare = records(150, 4), records(50, 100)
    assert n_equal_by_chance(usual) == pytest.approx(150 * (1 - (1 - 1 / 256) ** 149), rel=0.1)
    assert groups_for(None, Rows(usual), Gower())[0] is None
    assert groups_for(None, Rows(rare * 3), Gower())[0] is not None


def test_intervals_leave_copies_out_together() -> None:
    """Of random targets a copy tells everything."""
    y = np.tile(np.random.default_rng(6).normal(size=100), 3)
    for method in ("split", "cv+"):
        model = KreinRidge("levenshtein", landmarks=60, random_state=0)
        low, high = model.fit(WORDS * 3, y, conformal=method).predict_interval(WORDS, 0.8).T
        assert np.median(high - low) > 1.5


def test_the_picture_of_penalties_is_that_of_the_groups() -> None:
    y = np.repeat(RNG.normal(size=12), 4)
    for cv in (None, 3):
        model = KreinRidge("precomputed_dissimilarity", cv=cv, random_state=0)
        model.fit(D, y, groups=GROUPS)
        loss, _ = criterion_of(model, D, y, None, GROUPS)
        assert loss(model.lambda_plus_, model.lambda_minus_) == pytest.approx(model.cv_loss_)


@pytest.mark.parametrize(
    ("groups", "key"),
    [
        ([0, 1], "shape"),
        (np.zeros(N), "one group"),
        (np.eye(N), "shape"),
        (np.where(GROUPS == 3, np.nan, GROUPS), "no name for object 12, and for 4 objects"),
        ([None, *"ab" * 23, "c"], "no name for object 0"),
    ],
)
def test_wrong_groups_are_refused(groups: Any, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        KreinRidge("precomputed_dissimilarity").fit(D, np.arange(N), groups=groups)


def test_all_objects_that_count_are_of_one_group() -> None:
    with pytest.raises(ValueError, match="that count are of one group"):
        KreinRidge("precomputed_dissimilarity").fit(
            D, np.arange(N), groups=GROUPS == 0, sample_weight=(GROUPS > 0).astype(float)
        )
