"""Where the best learner errs, and what to expect of new objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kreinlearn import KreinRidge, KreinRidgeClassifier, evaluate
from kreinlearn.evaluation.expected import Expected, cross_validated
from kreinlearn.evaluation.mistakes import (
    ClassErrors,
    NumberErrors,
    class_errors,
    number_errors,
    shortly,
)
from kreinlearn.report.mistakes import tables_of


class Lookup:
    """Predicts what a table says, whatever it was fitted to."""

    def __init__(self, answers: dict[Any, Any]) -> None:
        self.answers = answers

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"answers": self.answers}

    def fit(self, X: Any, y: Any) -> Lookup:
        return self

    def predict(self, X: Any) -> Any:
        return np.array([self.answers[x] for x in X])


WORDS = [f"word{i:02}" for i in range(40)]
LABELS = np.array(["a", "b", "c", "c"] * 10)
ANSWERS = dict(zip(WORDS, LABELS, strict=True))
ANSWERS |= {"word01": "a", "word05": "a", "word02": "b"}  # b -> a twice, c -> b once


def found(y: Any = LABELS, answers: Any = ANSWERS, **more: Any) -> Any:
    learners = [("lookup", Lookup(answers))]
    return evaluate(WORDS, y, "levenshtein", learners=learners, random_state=0, **more)


def test_classes_that_are_confused_are_counted_with_examples() -> None:
    result = found()
    mistakes = result.mistakes
    assert isinstance(mistakes, ClassErrors)
    assert mistakes.classes == ("a", "b", "c")
    np.testing.assert_array_equal(mistakes.confusion, [[10, 0, 0], [2, 8, 0], [0, 1, 19]])
    assert mistakes.wrong.tolist() == [0, 2, 1]
    first, second = mistakes.pairs
    assert (first.true, first.predicted, first.n) == ("b", "a", 2)
    assert {(one.row, one.shown) for one in first.examples} == {(1, "word01"), (5, "word05")}
    assert [(one.row, one.shown) for one in second.examples] == [(2, "word02")]
    # 37 of 40 are right, and half of all are of class c
    assert result.answer == (
        "lookup gives 92% of new objects the right class; always guessing c gets 50% right."
    )
    assert str(result).startswith(result.answer)
    assert result.to_dict()["answer"] == result.answer


def test_numbers_are_compared_in_their_own_unit() -> None:
    y = np.arange(40.0)
    answers = {
        word: value + (6.0 if value == 7 else 0.5) for word, value in zip(WORDS, y, strict=True)
    }
    result = found(y, answers, task="regression")
    mistakes = result.mistakes
    assert isinstance(mistakes, NumberErrors)
    squares = np.full(40, 0.25)
    squares[7] = 36.0
    assert mistakes.typical == pytest.approx(np.sqrt(squares.mean()), rel=1e-14)
    assert mistakes.constant == pytest.approx(y.std(), rel=1e-14)
    assert mistakes.r2 == pytest.approx(1 - squares.mean() / y.var(), rel=1e-14)
    assert mistakes.worst[0][:3] == (7, "word07", "7")
    assert "explains 99% of the variance (R^2 = 0.99)" in result.answer


def test_without_a_learner_that_works_there_is_no_answer() -> None:
    result = found(answers={})
    assert result.best is None
    assert result.mistakes is None
    assert result.answer == ""


def test_rows_of_a_matrix_have_numbers_only() -> None:
    D = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))
    y = np.arange(40) % 2
    result = evaluate(D, y, "precomputed_dissimilarity", learners=["k nearest neighbours"])
    (first, *_) = result.mistakes.pairs
    assert first.examples[0].shown == ""
    assert "row " in next(iter(list(tables_of(result.mistakes))[2].rows))[2]


def test_tables_for_a_report() -> None:
    by_class, confusion, pairs = tables_of(found().mistakes)
    assert by_class.rows[0] == ["b", "10", "2", "20.0"]  # the largest error comes first
    assert confusion.rows[1] == ["b", "2", "8", "0"]
    assert pairs.rows[1] == ["c taken for b", "1", "word02 (row 2)"]
    y = np.arange(40)
    many = class_errors("it", y, np.roll(y, 1), y, {})
    by_class, pairs = tables_of(many)  # a matrix of 40 columns would not be read
    assert len(by_class.rows) == 20
    assert by_class.notes == ["20 further classes have smaller errors."]
    assert len(pairs.rows) == 6


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ("a  b\nc", "a b c"),
        ("x" * 60, "x" * 45 + "..."),
        (np.arange(6.0) / 3, "0, 0.3333, 0.6667, 1, ... (6 numbers)"),
        ([1, 2], "1, 2"),
        ({"name": "anna", "age": 31.0}, "name anna, age 31"),
        (["the", "cat"], "the cat"),
        ([[1, 2], [3]], "[[1, 2], [3]]"),
        ((), ""),
    ],
)
def test_objects_are_shown_shortly(x: Any, expected: str) -> None:
    assert shortly(x) == expected


def test_rows_have_the_numbers_that_they_have_in_a_file() -> None:
    mistakes, numbers = found().mistakes, np.arange(40) + 100
    first = mistakes.renumbered(numbers).pairs[0]
    assert {(one.row, one.shown) for one in first.examples} == {(101, "word01"), (105, "word05")}
    *_, pairs = tables_of(mistakes.renumbered(numbers, line=lambda i: 10 + i))
    assert pairs.rows[1] == ["c taken for b", "1", "word02 (line 12)"]
    assert pairs.notes == ["Lines are those of the file, counted from 1."]


def test_rows_are_said_to_be_counted_from_0() -> None:
    *_, pairs = tables_of(found().mistakes)
    (worst,) = tables_of(number_errors("it", np.arange(9.0), np.zeros(9), np.arange(9), {}))
    assert pairs.notes == worst.notes == ["Rows are counted from 0: row 0 is the first."]


# What to expect


def test_the_error_of_an_estimator_is_that_of_its_folds() -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["p", "q"], [40, 20]))
    X = rng.normal(size=(60, 2)) + 1.5 * (y == "q")[:, None]
    model = KreinRidgeClassifier("gaussian", random_state=0).fit(X, y)
    expected = cross_validated(model, X, y, "classification", 1.0, 0)
    assert expected is not None
    again = evaluate(X, y, "gaussian", learners=["KreinRidgeClassifier"], random_state=0)
    assert expected.constant == pytest.approx(1 / 3, rel=1e-14)
    assert abs(expected.error - again.scores[0].mean / 100) <= 3 / 60  # other seeds of the fits
    assert "% of new objects get a wrong kind" in expected.in_words("kind")
    assert "and 33.3 % if p is always guessed" in expected.in_words("kind")


def test_the_error_of_numbers_has_their_unit() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = 1000 * (X[:, 0] + 0.1 * rng.normal(size=80))
    expected = cross_validated(
        KreinRidge("gaussian", random_state=0).fit(X, y), X, y, "regression", 1.0, 0
    )
    assert expected is not None
    assert expected.r2 is not None
    assert expected.r2 == pytest.approx(1 - expected.error**2 / y.var(), rel=1e-12)
    assert 50 < expected.error < 400
    assert 0 < expected.std < expected.error
    assert "in the unit of price" in expected.in_words("price")


def test_an_estimator_that_fails_on_parts_has_no_error() -> None:
    y = np.arange(40) % 2
    model = KreinRidgeClassifier("levenshtein", landmarks=np.arange(39, -1, -1))
    with pytest.raises(ValueError, match=r"landmarks must be distinct row numbers in 0\.\.31"):
        cross_validated(model, WORDS, y, "classification", 1.0, 0)
    assert Expected.of(y, "classification", 0.25, 0.1).constant == 0.5
