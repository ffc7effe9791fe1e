"""Tables of where the best learner errs, for people who know the classes and not the method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kreinlearn.evaluation.mistakes import ClassErrors, Example, Mistakes, NumberErrors
from kreinlearn.report.model import Table

MOST_CLASSES = 20  # whose errors are shown, the largest first
MOST_COLUMNS = 12  # classes of a confusion matrix
ROWS = "Rows are counted from 0: row 0 is the first."
LINES = "Lines are those of the file, counted from 1."


def tables_of(mistakes: Mistakes) -> Iterator[Table]:
    """Errors of each class, the confusion matrix and confused pairs; or the worst numbers."""
    if isinstance(mistakes, NumberErrors):
        yield _worst(mistakes)
        return
    yield _by_class(mistakes)
    if len(mistakes.classes) <= MOST_COLUMNS:
        yield _confusion(mistakes)
    if mistakes.pairs:
        yield _pairs(mistakes)


def _by_class(found: ClassErrors) -> Table:
    shares = 100 * found.wrong / np.maximum(found.counts, 1)
    order = np.argsort(-shares, kind="stable")[:MOST_CLASSES]
    rows = [
        [found.classes[c], f"{found.counts[c]:,}", f"{found.wrong[c]:,}",
         f"{shares[c]:.1f}"]
        for c in order
    ]  # fmt: skip
    left = len(found.classes) - len(rows)
    notes = [f"{left} further classes have smaller errors."] if left else []
    header = ("class", "objects", "wrong", "error, %")
    return Table(_titled("Errors of each class", found), header, rows, notes)


def _confusion(found: ClassErrors) -> Table:
    names = found.classes
    rows = [
        [name, *(f"{count:,}" if count else "0" for count in counts)]
        for name, counts in zip(names, found.confusion.tolist(), strict=True)
    ]
    note = "Objects of the class of the row that were given the class of the column."
    title = _titled("Which class was taken for which", found)
    return Table(title, ("is \\ predicted", *names), rows, [note])


def _pairs(found: ClassErrors) -> Table:
    rows = [
        [f"{one.true} taken for {one.predicted}", f"{one.n:,}",
         "; ".join(map(_example, one.examples))]
        for one in found.pairs
    ]  # fmt: skip
    notes = [_counted(example for one in found.pairs for example in one.examples)]
    header = ("classes", "objects", "for example")
    return Table(_titled("The classes that are confused most", found), header, rows, notes)


def _worst(found: NumberErrors) -> Table:
    rows = [[_example(one), one.true, one.predicted] for one in found.worst]
    header, notes = ("object", "is", "predicted"), [_counted(found.worst)]
    return Table(_titled("The predictions that are furthest off", found), header, rows, notes)


def _titled(what: str, found: Mistakes) -> str:
    """A title that says whose errors they are."""
    return f"{what}, by {found.learner}"


def _example(one: Example) -> str:
    where = f"row {one.row}" if one.line is None else f"line {one.line}"
    return f"{one.shown} ({where})" if one.shown else where


def _counted(examples: Iterable[Example]) -> str:
    """How the rows or lines of examples are counted; either all have lines, or none has."""
    return ROWS if any(one.line is None for one in examples) else LINES
