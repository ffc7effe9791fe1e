"""Fields of a text file: which of them are numbers, which are missing, and what the others are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# What float() accepts, without underscores and without the names of infinity and NaN.
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
WITH_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*", re.ASCII)
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
MOSTLY = 0.9  # the share of numbers, or lists, in a column of them; others are reported as mistakes
MISSING = ("", "na", "nan", "n/a", "null", "none", "?")


def is_number(value: Any) -> bool:
    """Tell whether a field is a finite number, or a text that reads as one."""
    if isinstance(value, str):
        return NUMBER.fullmatch(value) is not None
    try:
        return isinstance(value, Real | Decimal) and math.isfinite(value)
    except OverflowError:  # an integer of 400 digits
        return False


def is_missing(value: Any) -> bool:
    """Tell whether a field is what people write where there is no number."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def have_decimal_commas(values: Sequence[str]) -> bool:
    """Tell whether all fields of a column are numbers, some of them with a comma as in 10,53."""
    known = [value for value in values if not is_missing(value)]
    return any("," in value for value in known) and all(map(WITH_COMMA.fullmatch, known))


def with_point(text: str) -> str:
    """Return a number with a point instead of a decimal comma, and any other text as it is."""
    return text.replace(",", ".") if WITH_COMMA.fullmatch(text) else text


def kind_of(values: Sequence[Any], *, typed: bool) -> str:
    """Return what a column holds, judged by its first rows: "number", "date" or "text".

    Texts that look like numbers are numbers, unless the file is ``typed`` and says otherwise.
    """
    known = [value for value in values if not is_missing(value)]
    texts = [value for value in known if isinstance(value, str)]
    if known and not (typed and texts):
        numbers = sum(map(_looks_like_a_number, known))
        if numbers >= MOSTLY * len(known):
            return "number"
    dates = known and len(texts) == len(known) and all(map(DATE.fullmatch, texts))
    return "date" if dates else "text"


def _looks_like_a_number(value: Any) -> bool:
    infinite = isinstance(value, str) and INFINITE.fullmatch(value) is not None
    return infinite or isinstance(value, float) or is_number(value)


def floats_of(values: Sequence[Any], place: Callable[[int], str]) -> Array:
    """Return fields as numbers, NaN where one is missing; ``place`` names the one that is none."""
    try:
        numbers = np.fromiter(map(float, values), np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        pass
    else:
        if not any(isinstance(value, str) and _only_python_reads(value) for value in values):
            return numbers
    return np.array([_float(value, i, place) for i, value in enumerate(values)])


def _only_python_reads(text: str) -> bool:
    """Tell whether ``float`` may take a text that is no number in a table: 1_000, or digits of
    another script.
    """
    return "_" in text or not text.isascii()


def _float(value: Any, i: int, place: Callable[[int], str]) -> float:
    if is_missing(value):
        return math.nan
    if not _looks_like_a_number(value):
        raise ValueError(f"could not convert string to float: {place(i)} is {shown(value)}")
    return float(value)


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
