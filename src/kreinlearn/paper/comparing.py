"""Measured approximations: medians over seeds, and the default against the paper's schemes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from kreinlearn.paper import printed
from kreinlearn.paper.approximating import DEFAULT, OPTIMUM, PAPER, tasks
from kreinlearn.paper.scale import KERNELS, Scale
from kreinlearn.paper.sets import VECTORIAL, vectorial_names
from kreinlearn.paper.tasks import Measurements, Row
from kreinlearn.report import Check

OURS = "our default"  # in figures and tables
MOST_NAMED = 8  # tasks that are not there
NAMES = {"delta_gauss": "delta-gauss", "sigmoid": "sigmoid", "epanechnikov": "Epanechnikov"}


class Cell(NamedTuple):
    """What is measured with several seeds."""

    set: str
    kernel: str
    k: int
    scheme: str
    rule: str = ""
    core: str = "plain"


class Found(dict[Cell, list[Row]]):
    """Rows by cell, each by increasing seed; of a cell that is not there: NaN."""

    def median(self, cell: Cell, what: str = "error") -> float:
        return float(np.median([row[what] for row in self[cell]])) if cell in self else math.nan

    @staticmethod
    def default(cell: Cell, rule: str) -> Cell:
        return cell._replace(scheme=DEFAULT, rule=rule, core="ls")

    def optimum(self, cell: Cell) -> float:
        return self.median(Cell(cell.set, cell.kernel, cell.k, OPTIMUM, core=""))

    def ratio(self, cell: Cell) -> float:
        """Of the median error to the optimum."""
        return self.median(cell) / self.optimum(cell)

    def sets(self, kernel: str) -> list[str]:
        """Those with a fit."""
        here = (cell for cell in self if cell.kernel == kernel and cell.scheme != OPTIMUM)
        return list(dict.fromkeys(cell.set for cell in here))

    @property
    def kernels(self) -> list[str]:
        return [kernel for kernel in KERNELS if self.sets(kernel)]


def read(scale: Scale, measurements: Measurements) -> Found:
    found = Found()
    for task in tasks(scale):
        for row in measurements.get(task.key, []):
            cell = Cell(**{name: row[name] for name in Cell._fields})
            found.setdefault(cell, []).append(row)
    return found


# The default against the paper's schemes


class Pair(NamedTuple):
    """Median errors of the default and of one of the paper's schemes, and seed by seed."""

    other: Cell
    rule: str  # of the default
    ratio: float  # default over the other
    seeds: list[bool]  # the default is not above it
    enough: list[bool]  # the other evaluated at least as many kernel values


def pairs(found: Found, scale: Scale, rules: dict[str, str], core: str = "plain") -> Iterator[Pair]:
    """The default by each rule against the three schemes by the rule that goes with it."""
    for kernel in found.kernels:
        for name, k in product(found.sets(kernel), scale.ranks):
            for (rule, its), scheme in product(rules.items(), PAPER):
                other = Cell(name, kernel, k, scheme, its, core)
                yield _pair(found, found.default(other, rule), other)


def _pair(found: Found, mine: Cell, other: Cell) -> Pair:
    both = list(zip(found[mine], found[other], strict=True))
    return Pair(
        other, mine.rule, found.median(mine) / found.median(other),
        [a["error"] <= b["error"] for a, b in both],
        [b["evaluations"] >= a["evaluations"] for a, b in both],
    )  # fmt: skip


def printed_logs(name: str, scheme: str, rule: str, ranks: Sequence[int]) -> list[float]:
    """The paper's logarithms of errors, delta-gauss; NaN where there is none."""
    points = printed.approximation()
    keys = [(VECTORIAL[name].printed, scheme, rule, k) for k in ranks]
    return [points[key].log_error if key in points else math.nan for key in keys]


def printed_falls() -> tuple[int, int]:
    """In how many steps from rank to rank the paper's errors fall, and of how many."""
    points = printed.approximation()
    lines = {key[:3] for key in points}
    ranks = sorted({key[3] for key in points})
    steps = [(line, pair) for line in lines for pair in pairwise(ranks)]
    falls = [points[*l, b].log_error < points[*l, a].log_error for l, (a, b) in steps]
    return sum(falls), len(falls)


def not_above(whom: str, found: Sequence[Pair], of: int) -> Check:
    """``of``: the comparisons there are; a claim about all is not made of some."""
    what = f"Our default's error is not above {whom}: every set, kernel and rank"
    if not found:
        return Check(what, "", "ratio <= 1", None)
    worst = max(found, key=lambda pair: pair.ratio)
    good, seeds = sum(p.ratio <= 1 for p in found), [s for p in found for s in p.seeds]
    other = worst.other
    said = (
        f"worst {worst.ratio:.3g} ({shown(other.set)}, {NAMES[other.kernel]}, rank {other.k}, "
        f"{other.scheme}, our l = {worst.rule}); {good} of {len(found)} medians, {sum(seeds)} of "
        f"{len(seeds)} single seeds"
    )
    if good == len(found) < of:
        return Check(what, f"{said}; {of} are asked for", "ratio <= 1", None)
    return Check(what, said, "ratio <= 1", good == len(found))


# What is said


def shown(name: str) -> str:
    """A set as the paper names it."""
    return VECTORIAL[name].printed or f"{name} (not in the paper)"


def number(value: float) -> str:
    """Two decimals of what is near one, else three figures."""
    if math.isnan(value):
        return ""
    return f"{value:.2f}" if 0.1 <= value < 100 else f"{value:.3g}"


def absences(scale: Scale, measurements: Measurements) -> Iterator[str]:
    """Sentences about what the figures lack."""
    here = vectorial_names(scale)
    if lacking := [shown(name) for name in scale.vectorial if name not in here]:
        yield f"Not measured, as the data are not there: {', '.join(lacking)}."
    if "digits" in here and "digits" not in scale.vectorial:
        yield "The digits of scikit-learn, which are not in the paper, stand in for its sets."
    if left := [task.key for task in tasks(scale) if task.key not in measurements]:
        others = f" and {len(left) - MOST_NAMED} others" if len(left) > MOST_NAMED else ""
        yield f"Not measured yet, or failed: {', '.join(left[:MOST_NAMED])}{others}."
