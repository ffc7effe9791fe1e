"""Objects on two axes of the space of a similarity, which may be real or imaginary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import type_of_target

from kreinlearn.data.tiles import length
from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.inspection.arguments import Array, Objects
from kreinlearn.plotting._axes import axes_of
from kreinlearn.plotting.style import COLOURS, MARKS, SECOND, Display, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

MOST_NAMED = 12  # classes in a legend
MOST_INSIDE = 6  # classes in a legend among the points; with more it stands beside them
BESIDE: Any = {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "borderaxespad": 0}


class EmbeddingDisplay(Display):
    """Objects on two axes, by class or by a number; a negative axis is dashed and imaginary.

    The squared distance of two objects is the sum of the squared differences of their coordinates,
    where those along a negative axis count as negative.

    Parameters
    ----------
    coordinates : array-like of shape (n, 2)
        The coordinates of the objects.
    eigenvalues : array-like of shape (2,)
        The eigenvalues of the axes; their signs are those of the axes.
    y : array-like of shape (n,) or None, default=None
        Labels or numbers of the objects.
    axes : pair of int, default=(0, 1)
        Which axes these are, counted from 0.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.
    scatters_ : dict
        Collections of matplotlib by class, or under "objects" if there are no classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinPCA
    >>> from kreinlearn.plotting import EmbeddingDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinPCA(kernel="delta_gauss", random_state=0).fit(X)
    >>> EmbeddingDisplay.from_estimator(model, X, y).ax_.get_ylabel()[:15]
    'negative axis 2'
    """

    size = (5.2, 4.4)

    def __init__(
        self, coordinates: ArrayLike, eigenvalues: ArrayLike, y: ArrayLike | None = None,
        axes: Sequence[int] = (0, 1),
    ) -> None:  # fmt: skip
        self.coordinates, self.eigenvalues = np.asarray(coordinates), np.asarray(eigenvalues)
        self.y, self.axes = y, axes
        self.n_landmarks: int | None = None

    @classmethod
    def from_estimator(
        cls, estimator: KreinEstimator, X: Objects, y: ArrayLike | None = None, *,
        axes: Sequence[int] = (0, 1), ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw objects on two of the axes that an estimator has found.

        Parameters
        ----------
        estimator : KreinPCA, KreinNystroem or Krein learner
            The fitted estimator. For a learner the axes are those of its similarity on X,
            approximated by least squares with its landmarks.
        X : array-like or sequence of objects
            The objects.
        y : array-like of shape (n,) or None, default=None
            Labels or numbers of the objects.
        axes : pair of int, default=(0, 1)
            Which axes to draw, counted from 0 by decreasing magnitude of their eigenvalues.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        EmbeddingDisplay
            The display, which has been drawn.
        """
        signed = axes_of(estimator, X)
        display = cls(signed.coordinates(X, axes), signed.D[list(axes)], y, axes)
        display.n_landmarks = estimator.n_landmarks_
        return display.plot(ax)

    def _draw(self, ax: Axes) -> None:
        self._check()
        self.scatters_: dict[object, PathCollection] = {}
        if self.y is None:
            self._scatter(ax, np.ones(len(self.coordinates), dtype=bool), "objects", 0)
        elif length(self.y) != len(self.coordinates):
            raise ValueError(f"y has {length(self.y)} values for {len(self.coordinates)} objects")
        elif type_of_target(self.y).startswith("continuous"):
            (x1, x2), values = self.coordinates.T, np.asarray(self.y, dtype=np.float64)
            self.scatters_["objects"] = points = ax.scatter(
                x1, x2, c=values, s=26, cmap="cividis", edgecolors="black", linewidths=0.3
            )
            ax.figure.colorbar(points, ax=ax, label="y")
        else:
            self._by_class(ax, np.asarray(self.y))
        self._label(ax)
        by = "" if self.n_landmarks is None else f"\n(by {self.n_landmarks:,} landmarks)"
        ax.set_title(f"Objects on two axes of the similarity{by}")

    def _scatter(self, ax: Axes, rows: Array, name: object, i: int) -> None:
        (x1, x2), colour = self.coordinates[rows].T, COLOURS[i % len(COLOURS)]
        self.scatters_[name] = ax.scatter(
            x1, x2, s=26, marker=MARKS[i % len(MARKS)], edgecolors=colour,
            facecolors=colour if i % 2 == 0 else "none", linewidths=1.0, alpha=0.85,
        )  # fmt: skip

    def _by_class(self, ax: Axes, y: Array) -> None:
        classes = np.unique(y)
        for i, name in enumerate(classes):
            self._scatter(ax, y == name, name, i)
        names = [shortened(str(name)) for name in classes[:MOST_NAMED]]
        handles = [self.scatters_[name] for name in classes[:MOST_NAMED]]
        if left := len(classes) - len(names):
            names.append(f"... and {left} more")
            handles.append(ax.scatter([], [], s=0))
        place = BESIDE if len(classes) > MOST_INSIDE else {}
        empty = [""] * len(names)  # a name such as "_a" would be left out of a list of labels
        legend = ax.legend(handles, empty, title="class", frameon=True, framealpha=0.9, **place)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set(text=name, parse_math=False)

    def _label(self, ax: Axes) -> None:
        """Label the axes; a negative one is dashed and its numbers are imaginary."""
        for axis, side, cross, value, number in zip(
            (ax.xaxis, ax.yaxis), ("bottom", "left"), (ax.axvline, ax.axhline),
            self.eigenvalues, self.axes, strict=True,
        ):  # fmt: skip
            sign = "negative" if value < 0 else "positive"
            axis.set_label_text(f"{sign} axis {number + 1}, eigenvalue {value:+.3g}")
            cross(0, color="#bbbbbb", linewidth=0.8, zorder=0)
            if value < 0:
                ax.spines[side].set(linestyle=(0, (5, 3)), color=SECOND, linewidth=1.4)
                axis.set_tick_params(color=SECOND)
                axis.set_major_formatter(imaginary)
        ax.set_aspect("equal", adjustable="datalim")

    def _check(self) -> None:
        shape, values = self.coordinates.shape, self.eigenvalues.shape
        if len(shape) != 2 or shape[1] != 2 or values != (2,):
            raise ValueError(
                f"coordinates are (n, 2) and eigenvalues (2,), got {shape} and {values}"
            )


def imaginary(value: float, position: float = 0.0) -> str:
    """The label of a tick on an imaginary axis, such as 0.2i."""
    return f"{value:.3g}i".replace("-", "\N{MINUS SIGN}") if abs(value) > 1e-12 else "0"
