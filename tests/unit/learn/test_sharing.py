"""Results that fits share: found once, counted, and the same as without sharing."""

from __future__ import annotations

from typing import Any

import numpy as np

from kreinlearn import KreinClassifier, KreinRidgeClassifier, KreinSVC, SpectrumSVC
from kreinlearn.learn.similarity import shared, sharing


def balls(n: int = 60, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return np.abs(X[:, None] - X).sum(axis=2) ** 1.5, (X[:, 0] > 0).astype(int)


def test_equal_values_are_looked_at_once_inside_the_block_only() -> None:
    calls: list[str] = []

    def found(text: str) -> str:
        calls.append(text)
        return text

    A = np.arange(6.0).reshape(2, 3)
    shared(lambda: found("out"), A)
    shared(lambda: found("out"), A)
    with sharing() as active:
        assert shared(lambda: found("a"), "name", A) == "a"
        assert shared(lambda: found("b"), "name", A.copy()) == "a"
        assert shared(lambda: found("c"), "name", A.reshape(3, 2)) == "c"
        assert shared(lambda: found("d"), "name", A.astype(np.float32)) == "d"
        assert shared(lambda: found("e"), "name", A + 1e-15) == "e"
        assert shared(lambda: found("f"), "other", A) == "f"
        assert len(active.results) == 5
    with sharing():
        shared(lambda: found("again"), "name", A)
    assert calls == ["out", "out", "a", "c", "d", "e", "f", "again"]


def test_the_time_that_was_saved_is_that_of_the_first() -> None:
    with sharing() as active:
        for _ in range(3):
            shared(lambda: sum(range(10_000)), "sum")
        ((_, seconds),) = active.results.values()
        assert seconds > 0
        assert active.saved == 2 * seconds


def test_learners_of_one_matrix_share_the_choice_of_a_similarity() -> None:
    D, y = balls()
    kernel = "precomputed_dissimilarity"
    alone = KreinRidgeClassifier(kernel).fit(D, y)
    with sharing() as active:
        KreinSVC(kernel).fit(D, y)
        assert len(active.results) == 1
        assert active.saved == 0
        together = KreinRidgeClassifier(kernel).fit(D, y)
        assert len(active.results) == 1
        assert active.saved > 0
        KreinClassifier(kernel).fit(D, y)  # which adds neighbours to the same similarity
        assert len(active.results) == 1
        KreinRidgeClassifier(kernel).fit(D, 1 - y)
        KreinRidgeClassifier(kernel).fit(2 * D, y)
        KreinRidgeClassifier(kernel, fit_intercept=False).fit(D, y)
        KreinRidgeClassifier(kernel, class_weight={0: 2, 1: 1}).fit(D, y)
        KreinRidgeClassifier(kernel, cv=3, random_state=0).fit(D, y)
        assert len(active.results) == 6
    assert together.similarity_ == alone.similarity_
    np.testing.assert_array_equal(together.dual_coef_, alone.dual_coef_)
    np.testing.assert_array_equal(together.cv_trials_, alone.cv_trials_)


def test_corrections_of_one_spectrum_share_its_decomposition() -> None:
    D, y = balls()
    made = {how: SpectrumSVC("precomputed_dissimilarity", spectrum=how, random_state=0)
            for how in ("flip", "clip")}  # fmt: skip
    alone = made["clip"].fit(D, y).dual_coef_
    with sharing() as active:
        made["flip"].fit(D, y)
        decomposed = len(active.results)
        np.testing.assert_array_equal(made["clip"].fit(D, y).dual_coef_, alone)
        assert len(active.results) == decomposed == 6  # five folds, and all objects
