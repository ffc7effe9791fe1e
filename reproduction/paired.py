"""Errors of methods on the same folds, and tests of their differences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reproduction.tasks import Row

ALL = "all"  # the target of all classes at once
ONE_VS_REST = "one against the rest"


class Figure(NamedTuple):
    """One fit and its errors on one fold."""

    set: str
    n: int
    target: str  # ALL, or the class that is set against the rest
    method: str
    folds: int  # 1 for a split that was given
    seed: int
    fold: int
    n_train: int
    n_test: int
    missed: int  # test objects that were misclassified
    wall: float  # seconds of the fit
    cpu: float
    wrong: str  # numbers of the misclassified objects within the fold
    chosen: str  # what the method chose for itself
    failed: str  # the error message, if it failed


@dataclass(frozen=True)
class Errors:
    """The errors of one method on one set, in percent: of each fold, or of each object of a split.

    A unit is a fold, given by its seed and number, or where there is one split a test object.
    """

    units: tuple[tuple[int, int] | int, ...]
    values: np.ndarray  # (J,)
    ratio: float  # test objects divided by training objects
    one_split: bool
    wall: float  # median seconds of a fit
    cpu: float

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def deviation(self) -> float:  # divisor J - 1
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def standard_error(self) -> float:
        return self.deviation / math.sqrt(len(self.values))

    @property
    def median(self) -> float:
        """The median over folds; for one split its error."""
        return self.mean if self.one_split else float(np.median(self.values))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.one_split else f" ± {self.deviation:.2f}")


def errors_of(figures: Sequence[Figure]) -> Errors:
    """The errors of one method on one set; a fold has the mean over its targets."""
    wall, cpu = (float(np.median([getattr(f, name) for f in figures])) for name in ("wall", "cpu"))
    ratio = float(np.mean([f.n_test / f.n_train for f in figures]))
    if figures[0].folds == 1:
        losses = np.mean([_losses(f) for f in figures], axis=0)
        return Errors(tuple(range(len(losses))), 100 * losses, ratio, True, wall, cpu)
    rates: dict[tuple[int, int], list[float]] = defaultdict(list)
    for f in sorted(figures, key=lambda f: (f.seed, f.fold)):
        rates[f.seed, f.fold].append(f.missed / f.n_test)
    means = np.array([np.mean(rate) for rate in rates.values()])
    return Errors(tuple(rates), 100 * means, ratio, False, wall, cpu)


def _losses(figure: Figure) -> np.ndarray:  # (n_test,), 1 where wrong
    losses = np.zeros(figure.n_test)
    losses[[int(i) for i in figure.wrong.split()]] = 1
    return losses


# Rows of a journal


class Cell(NamedTuple):
    """A method, its variant, and its rank where that is prescribed."""

    method: str
    variant: str
    rank: int | None = None


Cells = dict[Cell, Errors]
ByTarget = dict[tuple[str, str], Cells]  # by set and target: ALL, a class, or ONE_VS_REST


def errors_by_cell(rows: Iterable[Row]) -> ByTarget:
    """The errors of every cell; ONE_VS_REST is the mean over classes."""
    together: dict[tuple[str, str, Cell], list[Figure]] = defaultdict(list)
    for row in rows:
        cell = Cell(row["method"], row["variant"], row["rank"])
        figure = Figure(**{name: row[name] for name in Figure._fields})
        for target in {figure.target, ALL if figure.target == ALL else ONE_VS_REST}:
            together[row["set"], target, cell].append(figure)
    result: ByTarget = defaultdict(dict)
    for (name, target, cell), figures in together.items():
        result[name, target][cell] = errors_of(figures)
    return dict(result)


class Difference(NamedTuple):
    """The mean difference of two methods, and its standard error."""

    mean: float
    standard_error: float

    def __str__(self) -> str:
        return f"{round(self.mean, 2) + 0.0:+.2f} ± {self.standard_error:.2f}"  # never -0.00


def difference(a: Errors, b: Errors) -> Difference:
    """The paired difference of two methods on the same folds."""
    if a.units != b.units:
        raise ValueError("the two methods were not measured on the same folds")
    d = a.values - b.values
    spread = 0.0 if np.ptp(d) == 0 else float(d.std(ddof=1))  # rounding aside
    return Difference(float(d.mean()), spread / math.sqrt(len(d)))
