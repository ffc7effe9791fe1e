"""The errors of learners on the same folds, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from kreinlearn.evaluation.result import Evaluation, Score
from kreinlearn.evaluation.verdict import KREIN, TRIVIAL
from kreinlearn.plotting.style import Display, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEYOND = 2.0  # times the largest error of the others, above which a constant is not to scale


class ComparisonDisplay(Display):
    """One row per learner: its mean error, and a bar of one standard error.

    The marks of Krein learners are filled.

    Parameters
    ----------
    evaluation : Evaluation
        What ``evaluate`` has returned. Learners that failed are not drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import evaluate
    >>> from kreinlearn.plotting import ComparisonDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> result = evaluate(X, y, learners=["KreinRidgeClassifier", "k nearest neighbours"])
    >>> ComparisonDisplay.from_evaluation(result).ax_.get_xlabel()
    'error, % (± standard error)'
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return (5.4, 1.2 + 0.3 * len(self._drawn))

    @property
    def _drawn(self) -> list[Score]:
        return [score for score in self.evaluation.scores if score.failed is None]

    @property
    def right(self) -> float:
        """The end of the axis; a constant with a far larger error than all learners is beyond."""
        ends = np.array([s.mean + np.nan_to_num(s.standard_error) for s in self._drawn])
        learned = np.array([score.kind != TRIVIAL for score in self._drawn])
        largest = float(ends[learned].max(initial=0.0)) or float(ends.max(initial=0.0)) or 1.0
        return 1.08 * (float(ends.max()) if ends.max() <= BEYOND * largest else 1.2 * largest)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Axes | None = None) -> Self:
        """Draw what ``evaluate`` has returned.

        Parameters
        ----------
        evaluation : Evaluation
            The result of ``evaluate``.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        ComparisonDisplay
            The display, which has been drawn.
        """
        return cls(evaluation).plot(ax)

    def _draw(self, ax: Axes) -> None:
        scores, right, shown = self._drawn, self.right, self.evaluation.shown
        means = [score.mean for score in scores]
        errors = np.nan_to_num([score.standard_error for score in scores]).tolist()
        inside = [mean <= right for mean in means]
        krein = [score.kind == KREIN for score in scores]
        names = [shortened(score.described) for score in scores]
        draw_errors(ax, names, means, errors, krein, inside)
        for row in np.flatnonzero(~np.array(inside)):
            ax.annotate(
                shown(means[row]), (right, row), (-12, 0), textcoords="offset points",
                ha="right", va="center",
            )  # fmt: skip
            ax.plot(right, row, ">", color="black", markerfacecolor="white", clip_on=False)
        ax.set_xlim(0, right)
        ax.set_xlabel(f"{self.evaluation.metric} (± standard error)")
        ax.set_title("Errors of learners (filled: Krein learners)")


def draw_errors(
    ax: Axes, names: Sequence[str], means: Sequence[float], errors: Sequence[float],
    filled: Sequence[bool], inside: Sequence[bool] | None = None,
) -> None:  # fmt: skip
    """Draw a mark and a bar per row, from top to bottom; rows outside have a name but no mark."""
    for row, name in enumerate(names):
        if inside is None or inside[row]:
            ax.errorbar(
                means[row], row, xerr=errors[row], color="black", marker="o", label=name,
                markerfacecolor="black" if filled[row] else "white", markersize=6,
                elinewidth=1.1, capsize=3, clip_on=False, zorder=3,
            )  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
