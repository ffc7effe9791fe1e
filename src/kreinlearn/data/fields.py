"""Fields of a text file: which of them are numbers, which are missing, and what the others are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# What float() accepts, without underscores and without the names of infinity and NaN.
NUMBERS = {
    mark: re.compile(rf"\s*[+-]?(\d+[{mark}]?\d*|[{mark}]\d+)([eE][+-]?\d+)?\s*", re.ASCII)
    for mark in ".,"
}
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
MOSTLY = 0.9  # the share of numbers, or lists, in a column of them; others are reported as mistakes
MISSING = ("", "na", "nan", "n/a", "null", "none", "?")


def is_number(value: Any, decimal: str = ".") -> bool:
    """Tell whether a field is a finite number, or a text that reads as one.

    ``decimal`` is the mark before the fraction of a number in a text.
    """
    if isinstance(value, str):
        return NUMBERS[decimal].fullmatch(value) is not None
    try:
        return isinstance(value, Real | Decimal) and math.isfinite(value)
    except OverflowError:  # an integer of 400 digits
        return False


def is_missing(value: Any) -> bool:
    """Tell whether a field is what people write where there is no number."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def kind_of(values: Sequence[Any], *, typed: bool, decimal: str = ".") -> str:
    """Return what a column holds, judged by its first rows: "number", "date" or "text".

    Texts that look like numbers are numbers, unless the file is ``typed`` and says otherwise.
    """
    known = [value for value in values if not is_missing(value)]
    texts = [value for value in known if isinstance(value, str)]
    if known and not (typed and texts):
        numbers = sum(_looks_like_a_number(value, decimal) for value in known)
        if numbers >= MOSTLY * len(known):
            return "number"
    dates = known and len(texts) == len(known) and all(map(DATE.fullmatch, texts))
    return "date" if dates else "text"


def _looks_like_a_number(value: Any, decimal: str) -> bool:
    infinite = isinstance(value, str) and INFINITE.fullmatch(value) is not None
    return infinite or isinstance(value, float) or is_number(value, decimal)


def floats_of(values: Sequence[Any], place: Callable[[int], str], decimal: str = ".") -> Array:
    """Return fields as numbers, NaN where one is missing; ``place`` names the one that is none."""
    with suppress(TypeError, ValueError, OverflowError):
        numbers = np.fromiter(map(float, values), np.float64, len(values))
        if not _is_doubtful("".join(map(str, values)), decimal):
            return numbers
    return np.array([_float(value, i, place, decimal) for i, value in enumerate(values)])


def _is_doubtful(text: str, decimal: str) -> bool:
    """Tell whether ``float`` may have taken what is no number in a table: 1_000, digits of another
    script, or a point where commas are decimal.
    """
    return "_" in text or not text.isascii() or (decimal == "," and "." in text)


def _float(value: Any, i: int, place: Callable[[int], str], decimal: str) -> float:
    if is_missing(value):
        return math.nan
    if not _looks_like_a_number(value, decimal):
        raise ValueError(f"could not convert string to float: {place(i)} is {shown(value)}")
    return float(value.replace(decimal, ".") if isinstance(value, str) else value)


def hold_lists(values: Sequence[Any]) -> bool:
    """Tell whether the fields of a text file are lists as JSON writes them, such as [1, 2.5]."""
    known = [value.strip() for value in values if not is_missing(value)]
    lists = sum(text.startswith("[") and text.endswith("]") for text in known)
    return bool(known) and lists >= MOSTLY * len(known)


def lists_of(values: Sequence[str], place: Callable[[int], str]) -> list[list[Any] | None]:
    """Return fields as lists, None where one is missing; ``place`` names the one that is none."""
    return [None if is_missing(text) else _list(text, i, place) for i, text in enumerate(values)]


def _list(text: str, i: int, place: Callable[[int], str]) -> list[Any]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        value = None
    if isinstance(value, list):
        return value
    raise ValueError(
        f"{place(i)} is {shown(text)}, and others in this column are lists; write a list as JSON "
        "does: [1, 2.5, 3]"
    )


def shown(value: Any) -> str:
    """Return a value as an error message shows it: not at length."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}...'"
