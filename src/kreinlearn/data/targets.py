"""What is to be predicted: classes or numbers, as the values of a column tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.fields import floats_of, is_number, shown

Array = NDArray[Any]
MOST_CLASSES = 20  # whole numbers that are classes; more of them are numbers to predict
TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Target:
    """A target, and the task that it stands for."""

    name: str
    values: Array
    task: str  # "classification" or "regression"
    why: str  # "3 classes", "numbers"


def require_targets(values: Sequence[Any], place: Callable[[int], str]) -> None:
    """Raise a ValueError that names the first value that is missing, or that is no single value."""
    for i, value in enumerate(values):
        if isinstance(value, list | dict):
            raise ValueError(f"{place(i)} is {shown(value)}, not a class or a number")
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            raise ValueError(
                f"Input y contains NaN: {place(i)} is missing; every row needs a target"
            )


def with_types(values: Array, *, typed: bool, decimal: str = ".") -> Array:
    """Return a column as a target: the texts of a file without types may stand for numbers."""
    if values.dtype == object:
        return values.astype(str)
    if values.dtype.kind != "U" or typed:
        return values
    texts = values.tolist()
    if all(map(_is_plain_integer, texts)):
        return values.astype(int)
    if all(is_number(text, decimal) for text in texts):
        return np.array([float(text.replace(decimal, ".")) for text in texts])
    return values


def target_of(
    values: Sequence[Any],
    name: str,
    place: Callable[[int], str],
    task: str = "auto",
    *,
    typed: bool = False,
    decimal: str = ".",
) -> Target:
    """Decide what a target is: classes if they are few and repeat, or numbers.

    Parameters
    ----------
    values : sequence
        One value per row.
    name : str
        The name of the column.
    place : callable
        Says where the value of a row is, for error messages.
    task : {"auto", "classification", "regression"}, default="auto"
        What is to be learned. "auto": classification if the values are texts, or up to 20 whole
        numbers that repeat; otherwise regression.
    typed : bool, default=False
        Whether a text that looks like a number is known to be a text.
    decimal : {".", ","}, default="."
        The mark before the fraction of a number in a text.
    """
    require_targets(values, place)
    counts = Counter(values)
    if task == "auto":
        texts = typed and any(isinstance(one, str) for one in counts)
        numeric = not texts and all(is_number(one, decimal) for one in counts)
        task = TASKS[numeric and not are_classes(counts, decimal)]
    if task == "regression":
        numbers = floats_of(values, place, decimal)
        for i in np.flatnonzero(~np.isfinite(numbers)):
            raise ValueError(f"{place(int(i))} is {shown(values[i])}, not a finite number")
        if len(numbers) and numbers.min() == numbers.max():
            raise ValueError(f"{name} is {numbers[0]:g} in every row: there is nothing to learn")
        return Target(name, numbers, task, "numbers")
    _require_classes(counts, name)
    return Target(name, _labels(values, name, typed), task, f"{len(counts)} classes")


def are_classes(counts: Counter[Any], decimal: str = ".") -> bool:
    """Tell whether numbers are few, whole, and repeat."""
    values = list(counts)
    whole = all(value.is_integer() for value in floats_of(values, str, decimal).tolist())
    return whole and len(counts) <= MOST_CLASSES and 2 * len(counts) <= counts.total()


def _require_classes(counts: Counter[Any], name: str) -> None:
    if len(counts) == 1:
        raise ValueError(
            f"{name} holds one class only, {shown(next(iter(counts)))}, and at least two are "
            "needed; is it the right column?"
        )
    if len(counts) == counts.total():
        raise ValueError(
            f"{name} holds {len(counts)} different values in as many rows, and a class must "
            "repeat; is it the right column?"
        )


def _labels(values: Sequence[Any], name: str, typed: bool) -> Array:
    """Return numbers as they are, whole numbers in texts ("7", not "007") as such, or texts."""
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {int}, {float}, {int, float}):
        labels = np.array(values)
        if labels.dtype.kind in "bif":  # whole numbers beyond 64 bits become texts
            return labels
    texts = [str(value) for value in values]
    if len(set(texts)) != len(set(values)):
        types = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"{name} holds classes of several types ({types}), and some of them read alike, as 1 "
            'and "1" do; write each class in one way'
        )
    if not typed and all(map(_is_plain_integer, set(texts))):
        return np.array([int(text) for text in texts])
    return np.array(texts)


def _is_plain_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 18 and str(int(text)) == text
