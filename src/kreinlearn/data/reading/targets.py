"""What is to be predicted: classes or numbers, as the values of a column tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.reading.numbers import is_number, numbers_of
from kreinlearn.data.reading.text import text_of

MOST_CLASSES = 20  # whole numbers that are classes; more of them are numbers to predict
TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Target:
    name: str
    values: NDArray[Any]
    task: str  # "classification" or "regression"
    why: str  # "3 classes", "numbers"


def target_of(
    values: Sequence[Any], name: str, where: str, places: Sequence[int], task: str = "auto"
) -> Target:
    """``where`` names the value at a place in an error: "words.csv, line {}: label"."""
    for value, place in zip(values, places, strict=True):
        if isinstance(value, list | dict):
            raise ValueError(f"{where.format(place)} is {text_of(value)}, no class or number")
    numeric = all(map(is_number, values))
    counts = Counter(values)
    if task == "auto":
        task = TASKS[numeric and not _are_classes(counts)]
    if task == "regression":
        return Target(name, numbers_of(values, where, places), task, "numbers")
    for value, place in zip(values, places, strict=True):
        if value is None or (isinstance(value, str) and not value.strip()) or value != value:
            raise ValueError(f"{where.format(place)} is missing; every row needs a class")
    _require_classes(counts, name)
    return Target(name, _labels(values, name), task, f"{len(counts)} classes")


def _are_classes(counts: Counter[Any]) -> bool:
    """Few whole numbers that repeat."""
    whole = all(float(value).is_integer() for value in counts)
    return whole and len(counts) <= MOST_CLASSES and 2 * len(counts) <= counts.total()


def _require_classes(counts: Counter[Any], name: str) -> None:
    if len(counts) == 1:
        raise ValueError(
            f"{name} holds one class only, {text_of(next(iter(counts)))}, and at least two are "
            "needed; is --target the right column?"
        )
    if len(counts) == counts.total():
        raise ValueError(
            f"{name} holds {len(counts)} different values in as many rows, and a class must "
            "repeat; is --target the right column?"
        )


def _labels(values: Sequence[Any], name: str) -> NDArray[Any]:
    """Numbers as they are, texts that all are whole numbers ("7", not "007") as such, or texts."""
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {int}, {float}, {int, float}):
        labels = np.array(values)
        if labels.dtype.kind in "bif":  # and not beyond 64 bits
            return labels
    texts = [str(value) for value in values]
    if len(set(texts)) != len(set(values)):
        types = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"{name} holds classes of several types ({types}), and some of them read alike, as 1 "
            'and "1" do; write each class in one way'
        )
    if all(_is_plain_integer(text) for text in set(texts)):
        return np.array([int(text) for text in texts])
    return np.array(texts)


def _is_plain_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 18 and str(int(text)) == text
