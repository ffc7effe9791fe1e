"""Fields of a text file: numbers, missing values, dates, texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kreinlearn.data.fields import (
    floats_of,
    hold_lists,
    is_missing,
    is_number,
    kind_of,
    lists_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", True), (" -2.5e-3 ", True), (".5", True), ("5.", True), ("+7", True), ("007", True),
        ("1_000", False), ("nan", False), ("inf", False), ("", False), ("0x1f", False),
        ("1,5", False), ("٣", False), ("1 2", False), ("true", False), (3, True), (2.5, True),
        (float("nan"), False), (None, False), (float("inf"), False), ([1], False),
    ],
)  # fmt: skip
def test_what_is_a_number(text: Any, expected: bool) -> None:
    assert is_number(text) is expected
    if expected:
        assert np.isfinite(float(text))


def test_what_is_missing() -> None:
    assert all(map(is_missing, ["", " ", "NA", "NaN", "n/a", "NULL", "?", None, float("nan")]))
    assert not any(map(is_missing, ["0", "nil", "x", 0, 0.0, "-"]))


@pytest.mark.parametrize(
    ("values", "typed", "expected"),
    [
        (["1", "", "NA", "2.5"], False, "number"),
        (["1"] * 19 + ["x"], False, "number"),  # a mistake, which is reported when it is read
        (["1", "inf", "-Infinity"], False, "number"),
        (["1"] * 4 + ["x"], False, "text"),
        (["", "NA"], False, "text"),
        (["NA", "b"], False, "text"),
        ([], False, "text"),
        (["1", "2"], True, "text"),
        ([1, 2.5, None, float("inf")], True, "number"),
        ([1] * 19 + ["x"], True, "text"),
        ([[1, 2], [3]], True, "text"),
        (["2020-01-01", "", "2020-01-02 10:30"], False, "date"),
        (["2020-01-01", "x"], False, "text"),
        (["true", "false"], False, "text"),
    ],
)
def test_what_a_column_holds(values: list[Any], typed: bool, expected: str) -> None:
    assert kind_of(values, typed=typed) == expected


def test_fields_as_numbers() -> None:
    values = ["1", " 2.5 ", "", "NA", None, "inf", "-Infinity", 3, True]
    expected = [1, 2.5, np.nan, np.nan, np.nan, np.inf, -np.inf, 3, 1]
    np.testing.assert_array_equal(floats_of(values, str), expected)
    for bad in ("x", "1_0", [1], "0x1f", "\u0661\u0662", "\uff11", 10**400):
        with pytest.raises(ValueError, match="could not convert string to float: 1 is "):
            floats_of(["1", bad], str)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["[1, 2]", " [] ", "", "NA"], True),
        (["[1, 2]"] * 9 + ["1;2"], True),  # one is a mistake
        (["[1, 2]"] * 8 + ["1;2"], False),
        (["1", "2"], False),
        (["", "NA"], False),
        ([], False),
    ],
)
def test_which_columns_hold_lists(values: list[str], expected: bool) -> None:
    assert hold_lists(values) == expected


def test_fields_as_lists() -> None:
    found = lists_of(["[1, 2.5]", "", '[["a"], []]', "null"], str)
    assert found == [[1, 2.5], None, [["a"], []], None]
    for bad in ("[1, 2", "1;2", '{"a": 1}', "[" * 100_000):
        with pytest.raises(ValueError, match=r"^row 1 is .*, and others in this column are lists;"):
            lists_of(["[]", bad], lambda i: f"row {i}")
