"""Where the best learner errs: errors of each class, classes that are confused, worst numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.inspection.arguments import Array

EXAMPLES = 3  # of a pair of classes that are confused
MOST_PAIRS = 6  # pairs of classes
MOST_WORST = 5  # numbers
LONGEST = 48  # characters of an object that is shown
ENTRIES = 4  # of an array that are shown
NOTHING = "Nothing was learned: "
Line = Callable[[int], int | None]  # the line of a text file that holds a row


def no_line(row: int) -> int | None:
    """Rows that are in no text file have no line."""
    return None


class Example(NamedTuple):
    """An object that was predicted wrongly: its row, how it is shown, and both targets.

    Rows are counted from 0. Objects of a text file may have the number of a line, counted from 1.
    """

    row: int
    shown: str
    true: str
    predicted: str
    line: int | None = None


class Confused(NamedTuple):
    """Objects of one class that were taken for another: how many, and some of them."""

    true: str
    predicted: str
    n: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """The mistakes of one learner on objects that were left out.

    Attributes
    ----------
    learner : str
        The name of the learner.
    classes : tuple of str
        The classes, sorted.
    confusion : ndarray of shape (n_classes, n_classes)
        How many objects of the class of the row were given the class of the column.
    pairs : tuple of Confused
        The pairs of classes that are confused most often, with examples.
    """

    learner: str
    classes: tuple[str, ...]
    confusion: Array
    pairs: tuple[Confused, ...]

    def renumbered(self, numbers: Array, line: Line = no_line) -> ClassErrors:
        """The same mistakes, where row i has the number ``numbers[i]`` and is in ``line(i)``."""
        pairs = [
            one._replace(examples=_renumbered(one.examples, numbers, line)) for one in self.pairs
        ]
        return replace(self, pairs=tuple(pairs))

    @property
    def counts(self) -> Array:
        """The number of objects of each class."""
        return np.asarray(self.confusion.sum(axis=1))

    @property
    def wrong(self) -> Array:
        """How many objects of each class were given another class."""
        return np.asarray(self.counts - np.diag(self.confusion))

    @property
    def learned(self) -> bool:
        """Whether more objects are right than if the most frequent class is guessed."""
        return bool(np.trace(self.confusion) > self.counts.max())

    def in_words(self) -> str:
        """How many of 100 objects are right, and how many if the most frequent class is guessed."""
        n, right = self.counts.sum(), int(np.trace(self.confusion))
        most = int(np.argmax(self.counts))
        guessed = f"always guessing {self.classes[most]} gets {self.counts[most] / n:.0%} right"
        learner = self.learner if self.learned else f"{NOTHING}{self.learner}"
        return f"{learner} gives {right / n:.0%} of new objects the right class; {guessed}."


@dataclass(frozen=True, eq=False)
class NumberErrors:
    """How far the predictions of one learner are off, for objects that were left out.

    Attributes
    ----------
    learner : str
        The name of the learner.
    r2 : float
        The share of the variance of the targets that is explained.
    typical, constant : float
        The root of the mean squared error, and that of always guessing the mean, in the unit of the
        target.
    worst : tuple of Example
        The objects whose predictions are furthest off.
    """

    learner: str
    r2: float
    typical: float
    constant: float
    worst: tuple[Example, ...]

    def renumbered(self, numbers: Array, line: Line = no_line) -> NumberErrors:
        """The same mistakes, where row i has the number ``numbers[i]`` and is in ``line(i)``."""
        return replace(self, worst=_renumbered(self.worst, numbers, line))

    @property
    def learned(self) -> bool:
        """Whether predictions are nearer than the mean is."""
        return self.r2 > 0

    def in_words(self) -> str:
        """How much is explained, and how far predictions are off."""
        explained = f"{self.learner} explains {self.r2:.0%} of the variance (R^2 = {self.r2:.2f})"
        if not self.learned:
            explained = (
                f"{NOTHING}{self.learner} explains nothing of the variance (R^2 = {self.r2:.2f})"
            )
        off = f"a prediction is typically off by {self.typical:.3g}"
        return f"{explained}: {off}, and by {self.constant:.3g} if the mean is always guessed."


Mistakes = ClassErrors | NumberErrors


def _renumbered(examples: tuple[Example, ...], numbers: Array, line: Line) -> tuple[Example, ...]:
    return tuple(one._replace(row=int(numbers[one.row]), line=line(one.row)) for one in examples)


def class_errors(
    learner: str, y: Array, predicted: Array, rows: Array, shown: Mapping[int, str]
) -> ClassErrors:
    """The mistakes of predicted labels; ``shown`` has texts for objects by their row."""
    classes = np.unique(np.concatenate([y, predicted]))
    true, given = np.searchsorted(classes, y), np.searchsorted(classes, predicted)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.intp)
    np.add.at(confusion, (true, given), 1)
    off = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-off, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = []
    for a, b in zip(*np.unravel_index(order, off.shape), strict=True):
        if off[a, b]:
            at = np.flatnonzero((true == a) & (given == b))[:EXAMPLES]
            names = str(classes[a]), str(classes[b])
            some = tuple(Example(int(rows[i]), shown.get(int(rows[i]), ""), *names) for i in at)
            pairs.append(Confused(*names, int(off[a, b]), some))
    return ClassErrors(learner, tuple(map(str, classes)), confusion, tuple(pairs))


def number_errors(
    learner: str, y: Array, predicted: Array, rows: Array, shown: Mapping[int, str]
) -> NumberErrors:
    """How far predicted numbers are off; several outputs count together."""
    of, at = (np.asarray(one, dtype=np.float64).reshape(len(rows), -1) for one in (y, predicted))
    squares = np.square(at - of).mean(axis=1)
    variance = float(of.var(axis=0).mean())
    worst = tuple(
        Example(int(rows[i]), shown.get(int(rows[i]), ""), numbers(of[i]), numbers(at[i]))
        for i in np.argsort(-squares, kind="stable")[:MOST_WORST]
    )
    mean = float(squares.mean())
    return NumberErrors(learner, 1 - mean / variance, math.sqrt(mean), math.sqrt(variance), worst)


def numbers(values: Iterable[Any]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def shortly(x: Any) -> str:
    """An object as it is shown in a table: not at length."""
    if isinstance(x, Mapping):
        text = ", ".join(f"{name} {shortly(value)}" for name, value in x.items())
    elif isinstance(x, bool | int | float | np.number):
        text = f"{x:.4g}"
    elif (values := _as_numbers(x)) is not None:
        more = f", ... ({len(values)} numbers)" * (len(values) > ENTRIES)
        text = numbers(values[:ENTRIES]) + more
    elif isinstance(x, list | tuple) and all(isinstance(one, str) for one in x):
        text = " ".join(x)
    else:
        text = str(x)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _as_numbers(x: Any) -> Array | None:
    """All numbers of an array or a list, one after the other; None if it holds anything else."""
    if not isinstance(x, np.ndarray | list | tuple) or not len(x):
        return None
    try:
        values = np.asarray(x).ravel()
    except ValueError:  # lists of unequal length
        return None
    return values if values.dtype.kind in "fiub" else None
