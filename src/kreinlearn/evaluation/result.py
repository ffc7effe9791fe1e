"""What ``evaluate`` returns: errors on folds, their differences, and the verdict."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.data.writing import as_json, comma_separated, replacing
from kreinlearn.evaluation.mistakes import Mistakes
from kreinlearn.evaluation.paired import Difference, paired_difference
from kreinlearn.evaluation.verdict import caution, p_in_words, recommended, verdict
from kreinlearn.inspection.arguments import Array


@dataclass(frozen=True, eq=False)
class Score:
    """The errors of one learner on the folds.

    Attributes
    ----------
    name : str
        The name of the learner.
    kind : str
        "Krein learner", "baseline" or "trivial".
    errors : ndarray of shape (n_folds,)
        The error on each fold: percentages of wrong labels, or squared errors as shares of the
        variance of the targets. Empty if the learner failed.
    fit_seconds, predict_seconds : float
        Mean seconds per fold.
    failed : str or None
        Why there are no errors, if the learner failed or there was no time for it.
    losses : ndarray of shape (n_tested,)
        The loss of each object, in the order in which they were tested.
    kernel_weights, kernel_losses : dict or None
        The weight of each kernel, and its loss alone, on the first fold; None unless the learner
        makes a sum of several kernels.
    predicted : ndarray of shape (n_tested,) or (n_tested, n_outputs)
        The prediction for each object, in the order in which they were tested.
    """

    name: str
    kind: str
    errors: Array
    fit_seconds: float
    predict_seconds: float
    failed: str | None = None
    losses: Array = field(default_factory=lambda: np.empty(0))
    kernel_weights: dict[str, float] | None = None
    kernel_losses: dict[str, float] | None = None
    predicted: Array = field(default_factory=lambda: np.empty(0))

    @property
    def mean(self) -> float:
        """The mean error over the folds; NaN if the learner failed."""
        return float(self.errors.mean()) if len(self.errors) else math.nan

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; NaN if there are fewer than two folds."""
        J = len(self.errors)
        return float(self.errors.std(ddof=1)) / math.sqrt(J) if J > 1 else math.nan


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What ``evaluate`` has found; print it, or read the attributes.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    metric : str
        What the errors are, in words.
    n_objects, n_folds : int
        The numbers of objects and of folds.
    ratio : float
        The number of test objects divided by the number of training objects.
    kernel : str
        The name of the kernel and its parameters.
    scores : list of Score
        One score per learner by increasing error; learners that failed come last.
    notes : tuple of str
        What a reader should know besides the numbers.
    mistakes : ClassErrors, NumberErrors or None
        Where the best learner errs: the errors of each class, the classes that are confused, and
        examples; or how far numbers are off, and the worst of them. None without a best learner.
    """

    task: str
    metric: str
    n_objects: int
    n_folds: int
    ratio: float
    kernel: str
    scores: list[Score]
    notes: tuple[str, ...] = ()
    mistakes: Mistakes | None = None

    @property
    def best(self) -> Score | None:
        """The score with the smallest mean error; None if every learner failed."""
        return next((score for score in self.scores if score.failed is None), None)

    @property
    def recommended(self) -> Score | None:
        """The learner to use; None if every learner failed.

        It is the best one, unless its lead over KreinClassifier or KreinRegressor may be chance.
        """
        return recommended(self)

    @property
    def weighted(self) -> Score | None:
        """The first score of a learner that makes a sum of several kernels; None without one."""
        return next((score for score in self.scores if score.kernel_weights), None)

    def difference(self, score: Score) -> Difference | None:
        """Compare the errors of a learner with those of the best one, fold by fold.

        Parameters
        ----------
        score : Score
            One of ``scores``.

        Returns
        -------
        Difference or None
            The mean difference, its standard error and p-values; None if the learner failed.
        """
        if score.failed is not None or self.best is None:
            return None
        return paired_difference(score.errors, self.best.errors, self.ratio)

    @property
    def answer(self) -> str:
        """How well this can be learned, in plain words; nothing if every learner failed."""
        if self.mistakes is None:
            return ""
        more = caution(self) if self.mistakes.learned else ""
        return f"{self.mistakes.in_words()} {more}".rstrip()

    @property
    def verdict(self) -> str:
        """What the comparison shows, in a sentence or two."""
        return verdict(self)

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns of ``rows``."""
        return ("learner", self.metric, "s.e.", "above the best", "paired s.e.", "p",
                "fit, s", "predict, s")  # fmt: skip

    def shown(self, error: float) -> str:
        """An error as text: percentages with one decimal, shares with three, nothing for NaN."""
        if math.isnan(error):
            return ""
        return f"{error:.1f}" if self.task == "classification" else f"{error:.3f}"

    def rows(self) -> list[tuple[str, ...]]:
        """One row of text per learner; if it failed, the reason stands beside its name."""
        return [self._row(score) for score in self.scores]

    def _row(self, score: Score) -> tuple[str, ...]:
        gap = self.difference(score)
        if gap is None:
            return (f"{score.name}: {score.failed}", *[""] * 7)
        own = (self.shown(score.mean), self.shown(score.standard_error))
        beyond = (self.shown(gap.mean), self.shown(gap.standard_error), p_in_words(gap.p_either))
        seconds = map(_seconds_in_words, (score.fit_seconds, score.predict_seconds))
        if score is self.best:
            beyond = ("", "", "")
        return (score.name, *own, *beyond, *seconds)

    def to_dict(self) -> dict[str, Any]:
        """The result in plain types, as JSON has them, with None where there is no number."""
        return {
            "task": self.task, "metric": self.metric, "kernel": self.kernel,
            "n_objects": self.n_objects, "n_folds": self.n_folds,
            "best": None if self.best is None else self.best.name,
            "recommended": None if self.recommended is None else self.recommended.name,
            "answer": self.answer, "verdict": self.verdict, "notes": list(self.notes),
            "kernel_weights": None if self.weighted is None else self.weighted.kernel_weights,
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
        about = {"name": score.name, "kind": score.kind}
        more = {"failed": score.failed, "errors": score.errors.tolist()}
        return {**about, **as_json(numbers), **more}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per learner, with its errors on the folds in the last columns.

        Parameters
        ----------
        path : str or path-like
            The file to write. A file of that name is replaced once everything is written.
        """
        rows = [self._plain(score) for score in self.scores]
        for row in rows:
            errors = row.pop("errors") or [None] * self.n_folds
            row |= {f"fold_{j}": error for j, error in enumerate(errors, 1)}
        with (
            replacing(Path(path)) as temporary,
            temporary.open("x", newline="", encoding="utf-8") as file,
        ):
            comma_separated(file)({name: [row[name] for row in rows] for name in rows[0]})

    def __str__(self) -> str:
        rows = [self.header, *self.rows()]
        complete = [row for row in rows if row[1]]
        widths = [max(len(row[j]) for row in complete) for j in range(len(self.header))]
        lines = [_line(row, widths) for row in rows]
        answer = [self.answer, ""] if self.answer else []
        return "\n".join([*answer, *lines, "", self.verdict, *self.notes])


def _seconds_in_words(seconds: float) -> str:
    """Seconds with two digits, or none after the decimal point if there are many."""
    if seconds < 0.001:
        return "< 0.001"
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([f"{row[0]:<{widths[0]}}", *cells]).rstrip()
