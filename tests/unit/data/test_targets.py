"""What is to be predicted: classes or numbers."""

from __future__ import annotations

from typing import Any

import pytest

from kreinlearn.data.targets import target_of


def place(row: int) -> str:
    return f"row {row}"


@pytest.mark.parametrize(
    ("values", "task", "expected", "why"),
    [
        (["a", "b", "a"], "auto", ["a", "b", "a"], "2 classes"),
        (["NA", "x", "NA"], "auto", ["NA", "x", "NA"], "2 classes"),
        (["1", "2", "1", "2"], "auto", [1, 2, 1, 2], "2 classes"),
        (["007", "8", "007", "8"], "auto", ["007", "8", "007", "8"], "2 classes"),
        (["1", "2", "3"], "auto", [1.0, 2.0, 3.0], "numbers"),
        (["1", "2", "1"], "regression", [1.0, 2.0, 1.0], "numbers"),
        (["1.5", "2", "1.5", "2"], "auto", [1.5, 2.0, 1.5, 2.0], "numbers"),
        (["1.0", "2.0", "1.0", "2.0"], "auto", ["1.0", "2.0", "1.0", "2.0"], "2 classes"),
        ([True, False, True, False], "auto", [True, False, True, False], "2 classes"),
        ([1.0, 2.0, 1.0, 2.0], "auto", [1.0, 2.0, 1.0, 2.0], "2 classes"),
        ([1.5, 2.0, 1.5, 2], "classification", [1.5, 2.0, 1.5, 2.0], "2 classes"),
        ([1, 2, 1, 2], "auto", [1, 2, 1, 2], "2 classes"),
        ([10**30, 2, 10**30, 2], "classification", [str(10**30), "2"] * 2, "2 classes"),
        ([1, "b", 1, "b"], "auto", ["1", "b", "1", "b"], "2 classes"),
        ([0.5, 1.5, 2.5], "auto", [0.5, 1.5, 2.5], "numbers"),
        ([*map(str, range(21))] * 2, "auto", [*map(float, range(21))] * 2, "numbers"),
        ([*map(str, range(21))] * 2, "classification", [*range(21)] * 2, "21 classes"),
        (["9" * 20, "b", "b"], "auto", ["9" * 20, "b", "b"], "2 classes"),
    ],
)  # fmt: skip
def test_what_a_target_is(values: list[Any], task: str, expected: list[Any], why: str) -> None:
    found = target_of(values, "y", place, task)
    assert found.values.tolist() == expected
    assert {type(v) for v in found.values.tolist()} == {type(v) for v in expected}
    assert found.why == why
    assert found.task == ("regression" if why == "numbers" else "classification")


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["a", "", "a"], "auto", "y contains NaN: row 1 is missing; every row needs a target"),
        (["a", None, "a"], "auto", "row 1 is missing"),
        (["a", "a"], "auto", "one class only, 'a'.*right column"),
        (["a", "b", "c"], "auto", "3 different values in as many rows"),
        (["1", "x", "2"], "regression", "could not convert string to float: row 1 is 'x'"),
        (["1", "NA", "2"], "regression", "row 1 is 'NA', not a finite number"),
        (["1", "inf", "2"], "regression", "row 1 is 'inf', not a finite number"),
        (["1", "", "2"], "regression", "row 1 is missing"),
        ([[1], [2]], "auto", r"row 0 is \[1\], not a class or a number"),
        ([1, "1", 1, "1"], "auto", r"y holds classes of several types \(int, str\).*in one way"),
        ([True, 1, 2, 2], "auto", r"several types \(bool, int\)"),
    ],
)  # fmt: skip
def test_a_target_that_is_none(values: list[Any], task: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        target_of(values, "y", place, task)


def test_texts_of_a_file_with_types_stay_texts() -> None:
    found = target_of(["1", "2", "1", "2"], "y", place, typed=True)
    assert (found.values.tolist(), found.task) == (["1", "2", "1", "2"], "classification")
    assert target_of(["1.5", "2", "1.5"], "y", place, typed=True).task == "classification"
    assert target_of([1.5, 2, 3], "y", place, typed=True).task == "regression"
