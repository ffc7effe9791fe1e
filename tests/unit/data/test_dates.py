"""Dates as numbers of days, counted by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kreinlearn.data.dates import date_order, days_of, in_days


@pytest.mark.parametrize(
    ("x", "days"),
    [
        ("1970-01-02", 1.0),
        ("1970-1-2", 1.0),
        ("1970/01/02", 1.0),
        (" 1969-12-31 ", -1.0),
        ("1970-01-02 12:00", 1.5),
        ("1970-01-02T06:00:00", 1.25),
        ("1970-01-02T06:00:00.5", 1.25 + 0.5 / 86400),
        ("1970-01-02T06:00:00Z", 1.25),
        ("1970-01-02T06:00+06:00", 1.0),
        ("02.01.1970", 1.0),
        ("2.1.1970 6:00", 1.25),
        ("31/1/1970", 30.0),
        ("31-1-1970", 30.0),
        ("2000-03-01", 11017.0),  # 30 years of 365 days, 7 leap days, January and 29 days
        (date(1970, 1, 2), 1.0),
        (datetime(1970, 1, 2, 18), 1.75),
        (datetime(1970, 1, 2, 18, tzinfo=UTC), 1.75),
        (datetime(1970, 1, 2, 18, tzinfo=timezone(timedelta(hours=6))), 1.5),
        (np.datetime64("1970-01-02"), 1.0),
        (np.datetime64("1970-01-02T12:00:00.000000000"), 1.5),
        (np.datetime64("1969-12"), -31.0),
        (pd.Timestamp("1970-01-02 12:00"), 1.5),
        (pd.Timestamp("1970-01-02 12:00", tz="Asia/Tokyo"), 1.125),
    ],
)
def test_days(x: Any, days: float) -> None:
    assert days_of(x, "day") == days


@pytest.mark.parametrize(
    "x",
    [
        "007", "12-5", "12-5-1", "1.2.3", "20240301", "2024-13-01", "2024-02-30", "31.4.2024",
        "2024-03/01", "1.3/2024", "2024-03-01 25:00", "2024-03-01 noon", "12:30", "", 5, 5.0, None,
        True, timedelta(1), b"2024-03-01", ["2024-03-01"],
    ],
)  # fmt: skip
def test_what_is_no_date(x: Any) -> None:
    assert days_of(x, "day") is None
    assert date_order(["2024-03-01", x], "when") is None or x in (None, "")


def test_days_and_months() -> None:
    assert [days_of("2/1/1970", order) for order in ("day", "month")] == [1.0, 31.0]
    assert days_of("2.1.1970", "month") == 1.0  # dots mean that the day is first
    assert date_order(["1/3/2024", "31/3/2024", None]) == "day"
    assert date_order(["1/3/2024", "3/31/2024", "2024-01-31"]) == "month"
    assert date_order(["1/1/2024", "2/2/2024"]) == "day"  # there is no doubt about these
    assert date_order(["1.3.2024", "2024-03-02", date(2024, 1, 1), np.datetime64("NaT")]) == "day"
    assert date_order([None, "", "NA", float("nan")]) is None
    assert in_days(["1/3/1970", "", pd.NaT, "soon", 4], "month") == [2.0, None, None, "soon", 4]
    assert in_days(["1/31/1970", "2/1/1970"]) == [30.0, 1.0]


@pytest.mark.parametrize("texts", [["1/3/2024", "2/4/2024"], ["31/3/2024", "3/31/2024"]])
def test_nothing_tells_days_from_months(texts: list[str]) -> None:
    with pytest.warns(UserWarning, match="field 'when' holds dates such as .*nothing tells days"):
        assert date_order(texts, "when") is None
    assert date_order(texts) is None
