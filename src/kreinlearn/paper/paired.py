"""Errors of methods on the same folds, and tests of their differences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kreinlearn.evaluation.paired import Difference, paired_difference
from kreinlearn.paper.tasks import Row

Array = NDArray[Any]
ALL = "all"  # the target of all classes at once
MULTICLASS, ONE_VS_REST = "multiclass", "one against the rest"


class Figure(NamedTuple):
    """One fit and its errors on one fold."""

    set: str
    n: int
    target: str  # ALL, or the class set against the rest
    method: str
    folds: int  # 1: a split that was given
    seed: int
    fold: int
    n_train: int
    n_test: int
    missed: int  # objects of the fold that were misclassified
    wall: float  # seconds of the fit
    cpu: float
    wrong: str  # their numbers in the fold
    chosen: str  # what the method found for itself
    failed: str  # the error, where there was one

    @property
    def cell(self) -> tuple[Any, ...]:
        """What is computed once."""
        return self.set, self.target, self.method, self.folds, self.seed, self.fold

    @property
    def way(self) -> str:
        return MULTICLASS if self.target == ALL else ONE_VS_REST


# One method


@dataclass(frozen=True)
class Errors:
    """Percentages of one method on one set: of folds, or of objects where there is one split."""

    units: tuple[Any, ...]  # seed and fold, or number of the object
    values: Array  # (J,)
    ratio: float  # test objects over training objects
    one_split: bool
    wall: float  # median seconds a fit
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
        """Of the folds; of one split its error."""
        return self.mean if self.one_split else float(np.median(self.values))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.one_split else f" ± {self.deviation:.2f}")


def errors_of(figures: Sequence[Figure]) -> Errors:
    """Of one set, way and method: folds, each the mean over its targets."""
    seconds = [float(np.median([getattr(f, name) for f in figures])) for name in ("wall", "cpu")]
    ratio = float(np.mean([f.n_test / f.n_train for f in figures]))
    if figures[0].folds == 1:
        losses = np.mean([_losses(f) for f in figures], axis=0)
        return Errors(tuple(range(len(losses))), 100 * losses, ratio, True, *seconds)
    by_fold: dict[Any, list[Figure]] = defaultdict(list)
    for f in figures:
        by_fold[f.seed, f.fold].append(f)
    units = tuple(sorted(by_fold))
    rates = [np.mean([f.missed / f.n_test for f in by_fold[unit]]) for unit in units]
    return Errors(units, 100 * np.array(rates), ratio, False, *seconds)


def _losses(figure: Figure) -> Array:  # (n_test,), 1 where wrong
    losses = np.zeros(figure.n_test)
    losses[[int(i) for i in figure.wrong.split()]] = 1
    return losses


Key = tuple[str, str]  # set, way
Results = dict[Key, dict[str, Errors]]


def complete(figures: Iterable[Figure]) -> Results:
    """Errors by set and way, then method; only of methods that have all folds of the set."""
    groups: dict[Key, dict[str, list[Figure]]] = defaultdict(lambda: defaultdict(list))
    for f in figures:
        if not f.failed:
            groups[f.set, f.way][f.method].append(f)
    results: Results = {}
    for key, by_method in groups.items():
        most = max(len(group) for group in by_method.values())
        whole = {name: group for name, group in by_method.items() if len(group) == most}
        results[key] = {name: errors_of(group) for name, group in whole.items()}
    return results


# Rows of a journal


class Cell(NamedTuple):
    """A method, how it was set up, and the rank if that is a matter of choice."""

    method: str
    variant: str
    rank: int | None = None


Cells = dict[Cell, Errors]
Found = dict[tuple[str, str], Cells]  # by set and target: ALL, a class, or ONE_VS_REST


def found(rows: Iterable[Row]) -> Found:
    """Errors of the cells that have all their folds; ONE_VS_REST is the mean over classes."""
    groups: dict[tuple[str, str, Cell], list[Figure]] = defaultdict(list)
    for row in rows:
        cell = Cell(row["method"], row["variant"], row["rank"])
        figure = Figure(**{name: row[name] for name in Figure._fields})
        groups[row["set"], row["target"], cell].append(figure)
    together: dict[tuple[str, str, Cell], list[Figure]] = defaultdict(list)
    for (name, target, cell), figures in groups.items():
        if len(figures) == figures[0].folds:
            together[name, target, cell] += figures
            if target != ALL:
                together[name, ONE_VS_REST, cell] += figures
    result: Found = defaultdict(dict)
    for (name, target, cell), figures in together.items():
        result[name, target][cell] = errors_of(figures)
    return dict(result)


# Two methods


def difference(a: Errors, b: Errors) -> Difference:
    if a.units != b.units:
        raise ValueError("the two methods were not measured on the same folds")
    found = paired_difference(a.values, b.values, a.ratio)
    return found._replace(p_corrected=math.nan) if a.one_split else found


def best_of(results: dict[str, Errors], names: Iterable[str]) -> str | None:
    """The name of the smallest mean error; of equals the first."""
    there = [name for name in names if name in results]
    return min(there, key=lambda name: results[name].mean) if there else None
