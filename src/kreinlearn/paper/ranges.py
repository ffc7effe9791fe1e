"""The numbers of the quick run, compared with the ranges that are stored with the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kreinlearn.paper.printed import expected
from kreinlearn.paper.reading import say
from kreinlearn.report.model import Check, Section, Table


class Range(NamedTuple):
    """Where a number of the quick run is expected to lie."""

    name: str  # one of the numbers of a section
    low: float
    high: float
    needs: str = ""  # the data set that the number needs, such as "dissimilarity/protein"


def stored() -> list[Range]:
    """The ranges of the package; an empty end is infinite."""
    return [
        Range(name, float(low or -math.inf), float(high or math.inf), needs)
        for name, low, high, needs in expected("quick_ranges.csv")[1:]
    ]


def compared(
    numbers: Mapping[str, float], ranges: Iterable[Range], is_there: Callable[[str], bool]
) -> list[Check]:
    """One check per range; a number that is missing although its data are there fails.

    Where the data are not there the number, if any, belongs to something that stands in for them,
    and nothing can be said.
    """
    checks = []
    for name, low, high, needs in ranges:
        value = numbers.get(name)
        shown = "-" if value is None else f"{value:.4g}"
        holds = value is not None and low <= value <= high
        skipped = needs != "" and not is_there(needs)
        checks.append(Check(name, shown, f"{low:g} to {high:g}", None if skipped else holds))
    return checks


def section(checks: Sequence[Check]) -> Section:
    """The comparison as a section of the report."""
    verdicts = [check.holds for check in checks]
    within, outside, skipped = (verdicts.count(holds) for holds in (True, False, None))
    text = say("ranges.summary", total=len(checks), within=within, outside=outside, skipped=skipped)
    rows = [[check.what, check.found, check.limit, check.verdict] for check in checks]
    table = Table("The quick run's numbers", ("number", "found", "range", "verdict"), rows)
    return Section("Comparison with stored ranges", [text, table] if rows else [text])
