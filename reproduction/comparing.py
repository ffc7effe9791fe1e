"""Measured approximations: medians over seeds, and our default against the paper's schemes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from kreinlearn.report.model import Check
from reproduction import approximating, figures, printed
from reproduction.approximating import DEFAULT, OPTIMUM, PAPER, PAPER_RULES, RULES
from reproduction.reading import rows_of, say
from reproduction.scale import KERNELS, Scale
from reproduction.sets import VECTORIAL, vectorial_names
from reproduction.tasks import Measurements, Row

OURS = "our default"  # its name in figures and tables
MOST_NAMED = 8  # how many missing tasks a sentence names
NAMES = {"delta_gauss": "delta-gauss", "sigmoid": "sigmoid", "epanechnikov": "Epanechnikov"}
SCHEMES = {OURS: (DEFAULT, "ls"), **{scheme: (scheme, "plain") for scheme in PAPER}}
WAYS = [*product([OURS], RULES), *product(PAPER, PAPER_RULES)]  # names of SCHEMES and rules


class Cell(NamedTuple):
    """What is measured with several seeds."""

    set: str
    kernel: str
    k: int
    scheme: str
    rule: str = ""
    core: str = "plain"


def cell_of(name: str, kernel: str, k: int, label: str, rule: str) -> Cell:
    """The cell of one of SCHEMES."""
    scheme, core = SCHEMES[label]
    return Cell(name, kernel, k, scheme, rule, core)


class Results(dict[Cell, list[Row]]):
    """The rows of every cell, by increasing seed; numbers of a missing cell are NaN."""

    def median(self, cell: Cell, what: str = "error") -> float:
        return float(np.median([row[what] for row in self[cell]])) if cell in self else math.nan

    def optimum(self, cell: Cell) -> float:
        return self.median(Cell(cell.set, cell.kernel, cell.k, OPTIMUM, core=""))

    def ratio(self, cell: Cell) -> float:
        """The median error, divided by the optimum."""
        return self.median(cell) / self.optimum(cell)

    def sets(self, kernel: str) -> list[str]:
        """The sets with at least one fit."""
        fits = (cell for cell in self if cell.kernel == kernel and cell.scheme != OPTIMUM)
        return list(dict.fromkeys(cell.set for cell in fits))

    @property
    def kernels(self) -> list[str]:
        return [kernel for kernel in KERNELS if self.sets(kernel)]


def read(scale: Scale, measurements: Measurements) -> Results:
    """The measurements by cell."""
    results = Results()
    for row in rows_of(approximating.tasks(scale), measurements):
        cell = Cell(**{name: row[name] for name in Cell._fields})
        results.setdefault(cell, []).append(row)
    return results


# The default against the paper's schemes


class Pair(NamedTuple):
    """The errors of our default and of one of the paper's schemes."""

    other: Cell
    rule: str  # of the default
    ratio: float  # median error of the default, divided by that of the other
    seeds: list[bool]  # for each seed, whether the default is not above the other
    enough: list[bool]  # for each seed, whether the other had at least as many kernel values


def pairs(
    results: Results, scale: Scale, rules: dict[str, str], core: str = "plain"
) -> Iterator[Pair]:
    """The default by each rule against the three schemes by the rule that belongs to it."""
    for kernel in results.kernels:
        for name, k in product(results.sets(kernel), scale.ranks):
            for (rule, its), scheme in product(rules.items(), PAPER):
                other = Cell(name, kernel, k, scheme, its, core)
                mine = cell_of(name, kernel, k, OURS, rule)
                both = list(zip(results[mine], results[other], strict=True))
                yield Pair(
                    other, rule, results.median(mine) / results.median(other),
                    [a["error"] <= b["error"] for a, b in both],
                    [b["evaluations"] >= a["evaluations"] for a, b in both],
                )  # fmt: skip


def not_above(whom: str, compared: Sequence[Pair], of: int) -> Check:
    """The claim that no ratio exceeds 1; it is not made where some of the ``of`` are missing."""
    what = f"Our default's error is not above {whom}: every set, kernel and rank"
    if not compared:
        return Check(what, "", "ratio <= 1", None)
    worst = max(compared, key=lambda pair: pair.ratio)
    good, seeds = sum(p.ratio <= 1 for p in compared), [s for p in compared for s in p.seeds]
    other = worst.other
    text = (
        f"worst {worst.ratio:.3g} ({shown(other.set)}, {NAMES[other.kernel]}, rank {other.k}, "
        f"{other.scheme}, our l = {worst.rule}); {good} of {len(compared)} medians, {sum(seeds)} "
        f"of {len(seeds)} single seeds"
    )
    if good == len(compared) < of:
        return Check(what, f"{text}; {of} are asked for", "ratio <= 1", None)
    return Check(what, text, "ratio <= 1", good == len(compared))


# The paper's points


def printed_points(
    name: str, scheme: str, rule: str, ranks: Iterable[int]
) -> tuple[list[float], list[float]]:
    """The paper's logarithms of seconds and of errors, delta-gauss; NaN where there are none."""
    keys = [(VECTORIAL[name].printed, scheme, rule, k) for k in ranks]
    points = [printed.approximation().get(key, (math.nan, math.nan)) for key in keys]
    return [seconds for seconds, _ in points], [error for _, error in points]


def printed_falls() -> tuple[int, int]:
    """In how many steps from rank to rank the paper's errors fall, and the number of steps."""
    points = printed.approximation()
    lines = {key[:3] for key in points}
    ranks = sorted({key[3] for key in points})
    steps = [(line, pair) for line in lines for pair in pairwise(ranks)]
    falls = [points[*l, b].log_error < points[*l, a].log_error for l, (a, b) in steps]
    return sum(falls), len(falls)


def lines(
    results: Results, name: str, kernel: str, ranks: Sequence[int], *, against_seconds: bool
) -> list[figures.Line]:
    """Our curves and the paper's: log errors against the rank, or against log CPU seconds."""
    made = []
    for rule, label in product(reversed(PAPER_RULES), SCHEMES):
        cells = [cell_of(name, kernel, k, label, rule) for k in ranks]
        x = [log(results.median(cell, "cpu")) for cell in cells] if against_seconds else ranks
        y = [log(results.median(cell)) for cell in cells]
        made.append(figures.Line(label, x, y, dashed=rule == "k"))
        seconds, errors = printed_points(name, label, rule, ranks)
        if kernel == approximating.PRINTED_KERNEL and not np.isnan(errors).all():
            x = seconds if against_seconds else ranks
            made.append(figures.Line(label, x, errors, printed=True))
    return made


# Words and numbers


def shown(name: str) -> str:
    """A set as the paper names it."""
    return VECTORIAL[name].printed or f"{name} (not in the paper)"


def log(value: float) -> float:
    """The natural logarithm; NaN of what has none."""
    return math.log(value) if value > 0 else math.nan


def number(value: float) -> str:
    """Two decimals for numbers near one, else three figures; nothing for NaN."""
    if math.isnan(value):
        return ""
    return f"{value:.2f}" if 0.1 <= value < 100 else f"{value:.3g}"


def absences(scale: Scale, measurements: Measurements) -> Iterator[str]:
    """Sentences about what the figures lack."""
    here = vectorial_names(scale)
    if lacking := [shown(name) for name in scale.vectorial if name not in here]:
        yield f"Not measured, because the data are not there: {', '.join(lacking)}."
    if "digits" in here and "digits" not in scale.vectorial:
        yield say("approximation.digits")
    if left := [t.key for t in approximating.tasks(scale) if t.key not in measurements]:
        others = f" and {len(left) - MOST_NAMED} others" if len(left) > MOST_NAMED else ""
        yield f"Not measured yet, or failed: {', '.join(left[:MOST_NAMED])}{others}."
