"""Numbers in this folder: those that the paper prints, and the ranges of the quick run."""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

RULES = {"k": "k", "k*log(n)": "k ln n"}  # how many landmarks rank k has, as we write it


class Printed(NamedTuple):
    """Mean and standard deviation over ten folds, in percent."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


class Range(NamedTuple):
    """Where a number of the quick run is expected to lie."""

    name: str  # one of the numbers of a section
    low: float
    high: float
    needs: str = ""  # the data set that the number needs, such as "dissimilarity/protein"


def expected(name: str) -> list[list[str]]:
    """The lines of one CSV file of the folder ``expected``; the first is its header."""
    text = (Path(__file__).parent / "expected" / name).read_text(encoding="utf8")
    return list(csv.reader(text.splitlines()))


@cache
def table1() -> dict[tuple[str, str], Printed]:
    """By set, as Table 1 names it, and method."""
    header, *rows = expected("table1_rank100_error.csv")
    return {
        (row[0], header[j]): Printed(float(row[j]), float(row[j + 1]))
        for row in rows
        for j in range(2, len(header), 2)
    }


@cache
def approximation() -> dict[tuple[str, str, str, int], tuple[float, float]]:
    """Logarithms of seconds and error by set, scheme, rule and rank; the kernel is delta-gauss."""
    return {
        (name, scheme, RULES[rule], int(rank)): (float(seconds), float(error))
        for name, _, scheme, rule, rank, seconds, error in expected(
            "approximation_time_vs_error.csv"
        )[1:]
    }


@cache
def classification() -> dict[tuple[str, str, int], float]:
    """Median percentage of errors, by set as the figures name it, method and rank."""
    lines = expected("classification_rank_vs_error.csv")[1:]
    return {(name, method, int(rank)): float(error) for name, _, method, rank, error in lines}


@cache
def seconds() -> dict[tuple[int, int], float]:
    """Mean seconds, by rank and number of objects."""
    lines = expected("size_vs_seconds.csv")[1:]
    return {(int(rank), int(n)): float(mean) for rank, n, mean in lines}


def ranges() -> list[Range]:
    """The ranges of the quick run; an empty end is infinite."""
    return [
        Range(name, float(low or -math.inf), float(high or math.inf), needs)
        for name, low, high, needs in expected("quick_ranges.csv")[1:]
    ]
