"""Errors of learners on the same folds, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kreinlearn.evaluation.result import Evaluation
from kreinlearn.evaluation.verdict import KREIN, TRIVIAL
from kreinlearn.plotting._base import Display
from kreinlearn.plotting._style import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEYOND = 2.0  # times the largest of the others, from which a constant's error is not to scale


class ComparisonDisplay(Display):
    """A learner a row: its mean error and a bar of one standard error; Krein learners filled.

    Parameters
    ----------
    evaluation : what ``evaluate`` found. Learners that failed are not drawn.

    Attributes
    ----------
    ax_, figure_ : what was drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import evaluate
    >>> from kreinlearn.plotting import ComparisonDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> found = evaluate(X, y, learners=["KreinRidgeClassifier", "k nearest neighbours"])
    >>> ComparisonDisplay.from_evaluation(found).ax_.get_xlabel()
    'error, % (± standard error)'
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return (5.4, 1.2 + 0.3 * len(self._drawn))

    @property
    def _drawn(self) -> list[Any]:
        return [score for score in self.evaluation.scores if score.failed is None]

    @property
    def right(self) -> float:
        """End of the axis: a constant that errs far more than all learners lies beyond it."""
        ends = np.array([s.mean + np.nan_to_num(s.standard_error) for s in self._drawn])
        learned = np.array([score.kind != TRIVIAL for score in self._drawn])
        largest = float(ends[learned].max(initial=0.0)) or float(ends.max(initial=0.0)) or 1.0
        return 1.08 * (float(ends.max()) if ends.max() <= BEYOND * largest else 1.2 * largest)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Any = None) -> Self:
        return cls(evaluation).plot(ax)

    def _draw(self, ax: Axes) -> None:
        found, scores, right = self.evaluation, self._drawn, self.right
        means = np.array([score.mean for score in scores])
        errors = np.nan_to_num([score.standard_error for score in scores])
        inside = means <= right
        krein = np.array([score.kind == KREIN for score in scores])
        names = [shortened(score.name) for score in scores]
        draw_errors(ax, names, means, errors, krein, inside)
        for row in np.flatnonzero(~inside):
            ax.annotate(
                found.shown(means[row]), (right, row), (-12, 0), textcoords="offset points",
                ha="right", va="center",
            )  # fmt: skip
            ax.plot(right, row, ">", color="black", markerfacecolor="white", clip_on=False)
        ax.set_xlim(0, right)
        ax.set_xlabel(f"{found.metric} (± standard error)")
        ax.set_title("Errors of learners (filled: Krein learners)")


def draw_errors(
    ax: Axes, names: Sequence[str], means: Any, errors: Any, filled: Any, inside: Any = None
) -> None:
    """A mark and a bar a row, from top to bottom; rows outside have a name and no mark."""
    for row, name in enumerate(names):
        if inside is None or inside[row]:
            ax.errorbar(
                means[row], row, xerr=errors[row], color="black", marker="o", label=name,
                markerfacecolor="black" if filled[row] else "white", markersize=6,
                elinewidth=1.1, capsize=3, clip_on=False, zorder=3,
            )  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
