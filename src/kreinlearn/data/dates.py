"""Dates as numbers of days, from whatever files, frames and records have for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Any

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.fields import is_missing as is_no_value
from kreinlearn.data.frames import is_missing

DAY, MONTH = "day", "month"  # which of them is first where 1/3/2024 may begin with either
TEXT = re.compile(
    r"(?:(\d{4})([-/])(\d\d?)\2(\d\d?)|(\d\d?)([-/.])(\d\d?)\6(\d{4}))(?:[T ](\d\d?:\d\d.*))?",
    re.ASCII,
)
EPOCH = date(1970, 1, 1).toordinal()
SECONDS = 86_400.0  # of a day


def date_order(values: Iterable[Any], name: object = None) -> str | None:
    """Whether days or months are first in the dates of a field, all of whose values are dates.

    None if there is another value, or if nothing tells days from months: a warning says so if the
    field has a ``name``.
    """
    orders, doubtful, found = {DAY: 0, MONTH: 0}, None, False  # how many texts have only this one
    for x in values:
        if is_missing(x) or (isinstance(x, str) and is_no_value(x)):
            continue
        by_day, by_month = days_of(x, DAY), days_of(x, MONTH)
        if by_day is None and by_month is None:
            return None
        found = True
        if by_day != by_month:
            doubtful = x
            orders[DAY] += by_month is None
            orders[MONTH] += by_day is None
    if doubtful is not None and (orders[DAY] > 0) == (orders[MONTH] > 0):
        if name is not None:
            warn(
                f"field {name!r} holds dates such as {doubtful!r}, and nothing tells days from "
                "months: they are compared as texts; write them as 2024-03-31"
            )
        return None
    return None if not found else MONTH if orders[MONTH] else DAY


def in_days(values: Iterable[Any], order: str | None = None) -> list[Any]:
    """The values of a field with days since 1970 for dates, and None for what is missing.

    Other values stay as they are. Without an order, texts that may begin with the day do so.
    """
    orders = [DAY, MONTH] if order is None else [order]
    return [_in_days(x, orders) for x in values]


def _in_days(x: Any, orders: list[str]) -> Any:
    if is_missing(x) or (isinstance(x, str) and is_no_value(x)):
        return None
    each = (days_of(x, order) for order in orders)
    return next((days for days in each if days is not None), x)


def days_of(x: Any, order: str) -> float | None:
    """The days from 1970 to a date, a part of a day included; None if a value is no date."""
    if isinstance(x, str):
        found = TEXT.fullmatch(x.strip())
        return None if found is None else _days_of_text(found.groups(), order)
    if isinstance(x, np.datetime64):
        return float(x.astype("datetime64[us]").astype(np.int64)) / (SECONDS * 1e6)
    return _days(x) if isinstance(x, date) else None


def _days_of_text(parts: tuple[str | None, ...], order: str) -> float | None:
    """The days of a text that looks like a date; None if there is no such day."""
    year, _, month, day, first, mark, second, last, clock = parts
    if year is None:
        year, day, month = last, first, second
        if order == MONTH and mark != ".":
            day, month = month, day
    try:
        found = date(*(int(part or 0) for part in (year, month, day)))
        if clock is not None:  # of which Python wants an hour of two digits
            found = datetime.combine(found, time.fromisoformat(clock.rjust(5, "0")))
    except ValueError:
        return None
    return _days(found)


def _days(x: date) -> float:
    """The days to a date, and the part of a day to a time, as the clock in Greenwich has it."""
    days = float(x.toordinal() - EPOCH)
    if not isinstance(x, datetime):
        return days
    seconds = x.hour * 3600 + x.minute * 60 + x.second + x.microsecond / 1e6
    ahead = x.utcoffset()
    return days + (seconds - (0.0 if ahead is None else ahead.total_seconds())) / SECONDS
