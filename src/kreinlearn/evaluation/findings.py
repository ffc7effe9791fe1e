"""What a comparison found: errors on folds, differences, and the verdict in a sentence."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.writing import replacing
from kreinlearn.evaluation.paired import LEVEL, Difference, paired_difference

Array = NDArray[Any]
KREIN, BASELINE, TRIVIAL = "Krein learner", "baseline", "trivial"
FEWEST_FOLDS = 4  # from which a difference is called more than chance


@dataclass(frozen=True, eq=False)
class Score:
    """A learner over the folds: errors are percentages, or shares of the variance of numbers."""

    name: str
    kind: str  # "Krein learner", "baseline" or "trivial"
    errors: Array  # (folds,)
    fit_seconds: float  # mean of the folds
    predict_seconds: float
    failed: str | None = None  # why there are no errors
    losses: Array = field(default_factory=lambda: np.empty(0))  # of objects, as they were tested

    @property
    def mean(self) -> float:
        return float(self.errors.mean()) if len(self.errors) else math.nan

    @property
    def standard_error(self) -> float:
        J = len(self.errors)
        return float(self.errors.std(ddof=1)) / math.sqrt(J) if J > 1 else math.nan


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What ``evaluate`` found; ``print`` it, or read the attributes."""

    task: str  # "classification" or "regression"
    metric: str  # what errors are, as it is shown
    n_objects: int
    n_folds: int
    ratio: float  # test objects over training objects
    kernel: str
    scores: list[Score]  # by increasing error; those that failed are last
    notes: tuple[str, ...] = ()  # what a reader should know beside the numbers

    @property
    def best(self) -> Score | None:
        """The smallest mean error; None if every learner failed."""
        return next((score for score in self.scores if score.failed is None), None)

    def difference(self, score: Score) -> Difference | None:
        """Errors of a learner less those of the best, fold by fold; None of one that failed."""
        if self.best is None or score.failed is not None:
            return None
        return paired_difference(score.errors, self.best.errors, self.ratio)

    @property
    def verdict(self) -> str:
        from kreinlearn.evaluation.verdict import verdict

        return verdict(self)

    @property
    def header(self) -> tuple[str, ...]:
        """Of the columns of ``rows``."""
        return ("learner", self.metric, "s.e.", "above the best", "paired s.e.", "p",
                "fit, s", "predict, s")  # fmt: skip

    def shown(self, error: float) -> str:
        """Percentages with a decimal, shares with three."""
        return f"{error:.1f}" if self.task == "classification" else f"{error:.3f}"

    def rows(self) -> list[tuple[str, ...]]:
        """A learner a row, as text; of one that failed the reason stands beside its name."""
        return [self._row(score) for score in self.scores]

    def _row(self, score: Score) -> tuple[str, ...]:
        gap = self.difference(score)
        if gap is None:
            return (f"{score.name}: {score.failed}", *[""] * 7)
        own = (self.shown(score.mean), self.shown(score.standard_error))
        beyond = (self.shown(gap.mean), self.shown(gap.standard_error), in_words(gap.p_either))
        seconds = map(seconds_in_words, (score.fit_seconds, score.predict_seconds))
        return (score.name, *own, *(("", "", "") if score is self.best else beyond), *seconds)

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as JSON has them; None where there is no number."""
        return {
            "task": self.task, "metric": self.metric, "kernel": self.kernel,
            "n_objects": self.n_objects, "n_folds": self.n_folds,
            "best": None if self.best is None else self.best.name,
            "verdict": self.verdict, "notes": list(self.notes),
            "scores": [self._plain(score) for score in self.scores],
        }  # fmt: skip

    def _plain(self, score: Score) -> dict[str, Any]:
        gap = self.difference(score)
        numbers = {
            "mean": score.mean,
            "standard_error": score.standard_error,
            "difference": math.nan if gap is None else gap.mean,
            "difference_standard_error": math.nan if gap is None else gap.standard_error,
            "p": math.nan if gap is None or score is self.best else gap.p_either,
            "fit_seconds": score.fit_seconds,
            "predict_seconds": score.predict_seconds,
        }
        plain = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        return {"name": score.name, "kind": score.kind, **plain, "failed": score.failed,
                "errors": [float(error) for error in score.errors]}  # fmt: skip

    def to_csv(self, path: Any) -> None:
        """A learner a line, its errors on the folds in the last columns; replaced when done."""
        plain = [self._plain(score) for score in self.scores]
        names = [name for name in plain[0] if name != "errors"]
        folds = [f"fold_{j}" for j in range(1, self.n_folds + 1)]
        lines = [[row[name] for name in names] + row["errors"] for row in plain]
        with (
            replacing(Path(path)) as temporary,
            temporary.open("x", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*names, *folds])
            writer.writerows(line + [None] * (len(names + folds) - len(line)) for line in lines)

    def __str__(self) -> str:
        rows = [self.header, *self.rows()]
        told = [row for row in rows if row[1]]
        widths = [max(len(row[j]) for row in told) for j in range(len(self.header))]
        lines = [_line(row, widths) for row in rows]
        return "\n".join([*lines, "", self.verdict, *self.notes])


def in_words(p: float) -> str:
    return f"{p:.2f}" if p >= 0.01 else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def seconds_in_words(seconds: float) -> str:
    """Two figures, and none that nobody needs."""
    if seconds < 0.001:
        return "< 0.001"
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"


def beyond_chance(gap: Difference, n_folds: int) -> bool:
    return n_folds >= FEWEST_FOLDS and gap.p_either < LEVEL


def _line(row: Iterable[str], widths: list[int]) -> str:
    first, *others = row
    cells = [f"{cell:>{w}}" for cell, w in zip(others, widths[1:], strict=True)]
    return "  ".join([f"{first:<{widths[0]}}", *cells]).rstrip()
