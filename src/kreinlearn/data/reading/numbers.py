"""Fields as numbers: which look like them, and where one does not."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.reading.text import text_of

Array = NDArray[Any]
# As float() has it, less its underscores and its names of what is not finite.
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
INFINITE = ("inf", "infinity")
MOSTLY = 0.9
MISSING = ("", "na", "nan", "n/a", "null", "none", "?")


def is_number(value: Any) -> bool:
    if isinstance(value, str):
        return NUMBER.fullmatch(value) is not None
    return isinstance(value, Real | Decimal) and math.isfinite(value)


def is_missing(value: Any) -> bool:
    """What people write where there is no number."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_numeric(values: Sequence[Any]) -> bool:
    """A column of numbers: some may be missing, and a few others are mistakes to be told of."""
    known = [value for value in values if not is_missing(value)]
    return bool(known) and sum(map(_looks_like_one, known)) >= MOSTLY * len(known)


def _looks_like_one(value: Any) -> bool:
    infinite = isinstance(value, str) and value.strip().lower().lstrip("+-") in INFINITE
    return infinite or isinstance(value, float) or is_number(value)


def as_number(value: Any) -> float | None:
    """None where it is no finite number."""
    return float(value) if is_number(value) and math.isfinite(float(value)) else None


def numbers_of(values: Sequence[Any], where: str, places: Sequence[int]) -> Array:
    """All values as finite numbers; the first that is none is an error: ``where`` {place}."""
    found = _plain_floats(values)
    if found is None:
        found = np.array([as_number(value) for value in values], dtype=np.float64)
    bad = np.flatnonzero(np.isnan(found))
    if len(bad):
        value, place = values[bad[0]], where.format(places[bad[0]])
        if is_missing(value):
            raise ValueError(f"{place} is missing; fill it in, or leave the row or column out")
        raise ValueError(f"{place} is {text_of(value)}, no finite number")
    return found


def _plain_floats(values: Sequence[Any]) -> Array | None:
    """The short way for values that all are numbers; None leaves it to the long one."""
    try:
        found = np.fromiter(map(float, values), np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        return None
    odd = any(isinstance(value, str) and "_" in value for value in values)
    return None if odd or not np.isfinite(found).all() else found
