"""Numbers of the quick run against the ranges that are stored with the package."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import NamedTuple

from kreinlearn.report import Section, Table

VERDICTS = {True: "PASS", False: "MISS", None: "not measured"}


class Range(NamedTuple):
    name: str  # of a section's number
    low: float
    high: float
    needs: str = ""  # a data set, such as "dissimilarity/protein"


class Comparison(NamedTuple):
    name: str
    found: float | None
    low: float
    high: float
    holds: bool | None  # None where the data are not there

    @property
    def shown(self) -> str:
        return "-" if self.found is None else f"{self.found:.4g}"


def stored() -> list[Range]:
    text = (files("kreinlearn.paper") / "expected" / "quick_ranges.csv").read_text("utf8")
    return [
        Range(name, float(low or -math.inf), float(high or math.inf), needs)
        for name, low, high, needs in list(csv.reader(text.splitlines()))[1:]
    ]


def compared(
    numbers: Mapping[str, float], ranges: Iterable[Range], is_there: Callable[[str], bool]
) -> list[Comparison]:
    """A number that is absent although its data are there is outside its range.

    Where they are not, what was measured is something else that stands for them.
    """
    comparisons = []
    for name, low, high, needs in ranges:
        found = numbers.get(name)
        holds = found is not None and low <= found <= high
        skipped = bool(needs) and not is_there(needs)
        comparisons.append(Comparison(name, found, low, high, None if skipped else holds))
    return comparisons


def section(comparisons: Iterable[Comparison]) -> Section:
    comparisons = list(comparisons)
    outside = sum(c.holds is False for c in comparisons)
    skipped = sum(c.holds is None for c in comparisons)
    said = (
        f"Of {len(comparisons)} numbers {len(comparisons) - outside - skipped} are within their "
        f"ranges, {outside} are not, and {skipped} could not be measured for want of data."
    )
    rows = [[c.name, c.shown, f"{c.low:g}", f"{c.high:g}", VERDICTS[c.holds]] for c in comparisons]
    table = Table("The quick run's numbers", ("number", "found", "from", "to", "verdict"), rows)
    return Section("Comparison with stored ranges", [said, table] if rows else [said])
