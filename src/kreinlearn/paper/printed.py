"""The numbers the paper prints, read off its tables and figures (package data)."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

METHODS = ("krein lsm", "krein vc-lsm", "krein sh-svm", "sf-lsm")
RULES = {"k": "k", "k*log(n)": "k ln n"}  # landmarks of rank k, as we write them


class Printed(NamedTuple):
    """Mean and standard deviation over ten folds, in percent."""

    mean: float
    deviation: float


class Point(NamedTuple):
    """A mark of Figure 2; logarithms are natural."""

    log_seconds: float
    log_error: float


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("kreinlearn.paper") / "expected" / name).read_text(encoding="utf8")
    return list(csv.DictReader(text.splitlines()))


@cache
def table1() -> dict[tuple[str, str], Printed]:
    """By (set as Table 1 names it, method)."""
    text = (files("kreinlearn.paper") / "expected" / "table1_rank100_error.csv").read_text("utf8")
    header, *rows = csv.reader(text.splitlines())
    return {
        (row[0], header[j]): Printed(float(row[j]), float(row[j + 1]))
        for row in rows
        for j in range(2, len(header), 2)
    }


@cache
def approximation() -> dict[tuple[str, str, str, int], Point]:
    """By (set, scheme, rule, rank), delta-gauss."""
    return {
        (row["dataset"], row["landmark_selection"], RULES[row["landmarks"]], int(row["rank"])):
        Point(float(row["log_seconds"]), float(row["log_frobenius_error"]))
        for row in _rows("approximation_time_vs_error.csv")
    }  # fmt: skip


@cache
def classification() -> dict[tuple[str, str, int], float]:
    """Median percentage of errors by (set as the figures name it, method, rank)."""
    return {
        (row["dataset"], row["method"], int(row["rank"])): float(row["median_error_percent"])
        for row in _rows("classification_rank_vs_error.csv")
    }


@cache
def seconds() -> dict[tuple[int, int], float]:
    """By (rank, n)."""
    return {
        (int(row["rank"]), int(row["n"])): float(row["mean_seconds"])
        for row in _rows("size_vs_seconds.csv")
    }
