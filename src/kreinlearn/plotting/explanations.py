"""The landmarks that speak for a decision about an object, and those that speak against it."""

from __future__ import annotations

from contextlib import suppress
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.estimators.explaining import Explanation, Reason
from kreinlearn.kernels.base import Kernel
from kreinlearn.kernels.series_base import SeriesKernel
from kreinlearn.plotting.style import INK, SECOND, Display, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

KINDS = ("text", "series", "shape", "vector")
GREY = "#9a9a9a"
WIDEST = 48  # characters of a line below the bars
WRITTEN = 4  # values of a vector that are written
DRAWN = 60  # values of a vector that are drawn
WIDTH, GAP = 0.26, 0.03  # of the drawing of a landmark, in widths of the axes


class ExplanationDisplay(Display):
    """One bar per landmark: what it adds to the decision about an object, or takes from it.

    The landmarks for the decision are at the top, and those against it are hatched. Beside the bars
    the landmarks are drawn over the object, which is grey: series as lines, contours as shapes, and
    vectors by their values. Below stands what else the decision value is the sum of.

    Parameters
    ----------
    explanation : Explanation
        What ``explain`` of a learner has found for one object.
    x : object or None, default=None
        The object. Without it, only the landmarks are drawn.
    kind : {"text", "series", "shape", "vector"}, default="text"
        How landmarks are drawn beside the bars; a text stands at its bar.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.
    bars_ : matplotlib BarContainer
        The bars, from top to bottom, in the order of ``explanation.reasons``.
    insets_ : list of matplotlib Axes
        The drawings of the landmarks, in the same order.

    Examples
    --------
    >>> from kreinlearn import KreinRidgeClassifier
    >>> from kreinlearn.datasets import make_noisy_strings
    >>> from kreinlearn.plotting import ExplanationDisplay
    >>> X, y = make_noisy_strings(60, random_state=0)
    >>> model = KreinRidgeClassifier("levenshtein", random_state=0).fit(X[:50], y[:50])
    >>> display = ExplanationDisplay.from_estimator(model, X[50], n=3)
    >>> len(display.bars_)
    6
    """

    def __init__(self, explanation: Explanation, x: Any = None, *, kind: str = "text") -> None:
        self.explanation, self.x, self.kind = explanation, x, kind
        self.what = f"Why {shortened(str(explanation.target))}: decision value"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        row = 0.28 if self.kind == "text" else 0.62
        return (6.4, max(1.3 + row * len(self.explanation.reasons), 2.2))

    @classmethod
    def from_estimator(
        cls, estimator: KreinEstimator, x: Any, n: int = 3, *, target: Any = None,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw why a learner decides as it does about one object.

        Parameters
        ----------
        estimator : Krein learner
            A fitted learner.
        x : object
            One object: a text, a series, an array of points, or a row of numbers. Of a
            precomputed matrix it is the row of the object.
        n : int, default=3
            How many landmarks are drawn on each side.
        target : label or int, default=None
            The class, or the number of the output, whose value is explained. None is the class that
            is predicted, or the only output.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        ExplanationDisplay
            The display, which has been drawn.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "explain"):
            raise TypeError(
                f"{type(estimator).__name__} decides nothing that could be explained; pass a "
                "learner, such as KreinClassifier or KreinRidge"
            )
        domain = estimator.kernel_.domain
        row = domain.is_vectors or domain.is_matrix
        X = np.asarray(x).reshape(1, -1) if row else [x]
        (explanation,) = estimator.explain(X, n, target=target)
        display = cls(explanation, x, kind=_kind(estimator.kernel_, x))
        if not hasattr(estimator, "classes_"):
            display.what = "What makes up the prediction"
        return display.plot(ax)

    def _draw(self, ax: Axes) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is not among {', '.join(map(repr, KINDS))}")
        reasons = self.explanation.reasons
        values, rows = [reason.contribution for reason in reasons], range(len(reasons))
        positive = [value > 0 for value in values]
        self.bars_: BarContainer = ax.barh(
            rows, values, height=0.6, edgecolor="white",
            color=[INK if above else SECOND for above in positive],
            hatch=["" if above else "///" for above in positive],
        )  # fmt: skip
        ax.bar_label(self.bars_, [f"{value:+.3g}" for value in values], padding=3)
        ax.set_yticks(rows, [self._name(reason) for reason in reasons])
        for label in ax.get_yticklabels():
            label.set_parse_math(False)
        ax.set_ylim(len(values) - 0.4, -0.6)
        ax.margins(x=0.3)
        ax.axvline(0, color="black", linewidth=0.6)
        ax.grid(False, axis="y")
        ax.set_ylabel("landmark")
        ax.set_xlabel(f"contribution\n{self._rest()}", parse_math=False)
        title = f"{self.what} {self.explanation.value:.4g}"
        self.insets_: list[Axes] = []
        if self.kind != "text":
            title += "\nright: the landmarks over the object (grey)"
            self.insets_ = self._draw_objects(ax)
        ax.set_title(title, parse_math=False)

    def _name(self, reason: Reason) -> str:
        """A text, or the number of a row, with the label."""
        is_text = isinstance(reason.example, str)
        what = shortened(reason.example) if is_text else f"row {reason.landmark}"
        label = reason.label
        if label is not None:
            what += f" ({label:.3g})" if isinstance(label, float) else f" ({label})"
        if self.kind == "vector" and np.size(reason.example) <= WRITTEN:
            what += "\n" + ", ".join(f"{value:.3g}" for value in np.ravel(reason.example))
        return what

    def _rest(self) -> str:
        """What is added to the bars."""
        one = self.explanation
        shown = sum(reason.contribution for reason in one.reasons)
        parts = {"all other landmarks": one.parts["landmarks"] - shown}
        parts |= {name: value for name, value in one.parts.items() if name != "landmarks" and value}
        said = [f"{name} {value:+.3g}" for name, value in parts.items()]
        return fill("beside these: " + ", ".join(said), WIDEST)

    def _draw_objects(self, ax: Axes) -> list[Axes]:
        """Draw each landmark over the object, at the right end of its row."""
        low, high = ax.get_xlim()
        ax.set_xticks([tick for tick in ax.get_xticks() if low <= tick <= high])
        ax.set_xlim(low, low + (high - low) / (1 - WIDTH - GAP))
        reasons, found = self.explanation.reasons, []
        rows = len(reasons) + 0.2  # as many as the height of the axes has
        for i, reason in enumerate(reasons):
            bottom = 1 - (i + 1.06) / rows
            inset = ax.inset_axes((1 - WIDTH, bottom, WIDTH, 0.92 / rows), frame_on=False)
            colour = INK if reason.contribution > 0 else SECOND
            if self.x is not None:
                DRAWERS[self.kind](inset, self.x, GREY, 0.9)
            DRAWERS[self.kind](inset, reason.example, colour, 1.2)
            inset.set(xticks=[], yticks=[])
            found.append(inset)
        return found


def _kind(kernel: Kernel, x: Any) -> str:
    """How objects of a kernel are drawn; those that are no series or curves are not."""
    if kernel.domain.is_vectors:
        return "vector"
    if kernel.domain.is_objects and _of_series(kernel):
        return "series"
    if not kernel.domain.is_objects or not isinstance(x, np.ndarray | list):
        return "text"
    with suppress(ValueError, TypeError):  # a list of something else
        if np.asarray(x, dtype=np.float64).shape[1:] == (2,):
            return "shape"
    is_line = isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "f"
    return "series" if is_line else "text"


def _of_series(kernel: Kernel) -> bool:
    return isinstance(kernel, SeriesKernel) or any(_of_series(one) for one in kernel.inner)


# One object, drawn


def _draw_series(ax: Axes, x: Any, colour: str, width: float) -> None:
    """One line per channel, the further ones dashed."""
    for j, channel in enumerate(np.asarray(x, dtype=np.float64).reshape(len(x), -1).T):
        ax.plot(channel, color=colour, linewidth=width, linestyle="--" if j else "-")


def _draw_shape(ax: Axes, x: Any, colour: str, width: float) -> None:
    """A closed curve around its mean, at its own scale."""
    points = np.asarray(x, dtype=np.float64)
    points = points - points.mean(axis=0)
    points = np.vstack([points, points[:1]]) / (np.sqrt(np.square(points).sum(axis=1).mean()) or 1)
    ax.plot(*points.T, color=colour, linewidth=width)
    ax.set_aspect("equal")


def _draw_vector(ax: Axes, x: Any, colour: str, width: float) -> None:
    """Grey bars for the object, and dots for a landmark."""
    values = np.ravel(np.asarray(x, dtype=np.float64))[:DRAWN]
    if colour == GREY:
        ax.bar(range(len(values)), values, color="#cccccc", width=0.8)
    else:
        ax.plot(values, "o", color=colour, markersize=3)
    ax.axhline(0, color="black", linewidth=0.4)


DRAWERS = {"series": _draw_series, "shape": _draw_shape, "vector": _draw_vector}
