"""Objects on two axes of the similarity's space: real ones, and imaginary ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from kreinlearn.data.tiles import length
from kreinlearn.plotting._axes import axes_of
from kreinlearn.plotting._base import Display
from kreinlearn.plotting._style import COLOURS, MARKS, SECOND, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
MOST_NAMED = 12  # classes in a legend
MOST_INSIDE = 6  # of them in one among the points; with more it stands beside them
LANDMARK: Any = {"marker": "D", "facecolors": "none", "edgecolors": "black", "linewidths": 1.1}


class _OnAxes(Display):
    """Two coordinates of objects, whose axes may be negative."""

    size = (5.2, 4.4)

    def __init__(self, coordinates: Any, eigenvalues: Any, numbers: Sequence[int] = (0, 1)) -> None:
        self.coordinates, self.eigenvalues = np.asarray(coordinates), np.asarray(eigenvalues)
        self.numbers = numbers
        self.n_landmarks: int | None = None  # by which the axes were found

    def _label(self, ax: Axes) -> None:
        """A negative axis is dashed, its numbers are imaginary: there distances count as -."""
        for axis, side, cross, value, number in zip(
            (ax.xaxis, ax.yaxis), ("bottom", "left"), (ax.axvline, ax.axhline),
            self.eigenvalues, self.numbers, strict=True,
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
        shape = self.coordinates.shape
        if len(shape) != 2 or shape[1] != 2 or self.eigenvalues.shape != (2,):
            raise ValueError(
                f"coordinates are (n, 2) and eigenvalues (2,), got {shape} and "
                f"{self.eigenvalues.shape}"
            )


class EmbeddingDisplay(_OnAxes):
    """Objects on two axes, by class or by a number; a negative axis is dashed and imaginary.

    The squared distance of two objects is the sum of (signed) squares of their differences: along
    a negative axis it counts as minus.

    Parameters
    ----------
    coordinates : (n, 2).
    eigenvalues : (2,), of the axes; their signs are those of the axes.
    y : labels or numbers, or None.
    numbers : which axes these are, from 0.

    Attributes
    ----------
    ax_, figure_ : what was drawn on.
    scatters_ : by class ("objects" where there is none), collections of matplotlib.

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

    def __init__(
        self, coordinates: Any, eigenvalues: Any, y: Any = None, numbers: Sequence[int] = (0, 1)
    ) -> None:
        super().__init__(coordinates, eigenvalues, numbers)
        self.y = y

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, axes: Sequence[int] = (0, 1), ax: Any = None
    ) -> Self:
        """Objects X on two of the axes that a KreinPCA or KreinNystroem found.

        Axes are numbered from 0, by decreasing magnitude of their eigenvalues. Of a learner they
        are those of its similarity on X, approximated by least squares with its landmarks.
        """
        signed = axes_of(estimator, X)
        found = signed.coordinates(X, axes)
        made = cls(found, signed.D[list(axes)], y, axes)
        made.n_landmarks = estimator.n_landmarks_
        return made.plot(ax)

    @classmethod
    def from_predictions(
        cls, coordinates: Any, eigenvalues: Any, y: Any = None, *, axes: Sequence[int] = (0, 1),
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Coordinates that are known, such as ``KreinPCA(...).fit_transform(X)``."""
        return cls(coordinates, eigenvalues, y, axes).plot(ax)

    def _draw(self, ax: Axes) -> None:
        self._check()
        self.scatters_: dict[Any, Any] = {}
        if self.y is None:
            self._scatter(ax, slice(None), "objects", 0)
        elif length(self.y) != len(self.coordinates):
            raise ValueError(f"y has {length(self.y)} values for {len(self.coordinates)} objects")
        elif type_of_target(self.y).startswith("continuous"):
            self._by_number(ax, np.asarray(self.y, dtype=np.float64))
        else:
            self._by_class(ax, np.asarray(self.y))
        self._label(ax)
        by = "" if self.n_landmarks is None else f"\n(by {self.n_landmarks:,} landmarks)"
        ax.set_title(f"Objects on two axes of the similarity{by}")

    def _scatter(self, ax: Axes, rows: Any, name: Any, i: int) -> None:
        at = self.coordinates[rows]
        self.scatters_[name] = ax.scatter(
            at[:, 0], at[:, 1], s=26, marker=MARKS[i % len(MARKS)],
            facecolors=COLOURS[i % len(COLOURS)] if i % 2 == 0 else "none",
            edgecolors=COLOURS[i % len(COLOURS)], linewidths=1.0, alpha=0.85,
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
        beside = {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "borderaxespad": 0}
        place: Any = beside if len(classes) > MOST_INSIDE else {}
        legend = ax.legend(
            handles, [""] * len(names), title="class", frameon=True, framealpha=0.9, **place
        )
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set(text=name, parse_math=False)  # as it is: "_a" is left out of a list of labels

    def _by_number(self, ax: Axes, y: Array) -> None:
        self.scatters_["objects"] = points = ax.scatter(
            self.coordinates[:, 0], self.coordinates[:, 1], c=y, s=26, cmap="cividis",
            edgecolors="black", linewidths=0.3,
        )  # fmt: skip
        ax.figure.colorbar(points, ax=ax, label="y")


class LandmarkDisplay(_OnAxes):
    """Landmarks among the objects, on two axes; larger ones weigh more in what was learned.

    Parameters
    ----------
    coordinates : (n, 2), of objects.
    landmarks : (m, 2), of landmarks.
    eigenvalues : (2,), of the axes.
    weights : (m,), not negative, or None.
    numbers : which axes these are, from 0.

    Attributes
    ----------
    ax_, figure_ : what was drawn on.
    objects_, landmarks_ : collections of matplotlib.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinNystroem
    >>> from kreinlearn.plotting import LandmarkDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinNystroem("delta_gauss", n_landmarks=20, random_state=0).fit(X)
    >>> len(LandmarkDisplay.from_estimator(model, X).landmarks_.get_offsets())
    20
    """

    def __init__(
        self, coordinates: Any, landmarks: Any, eigenvalues: Any, *, weights: Any = None,
        numbers: Sequence[int] = (0, 1),
    ) -> None:  # fmt: skip
        super().__init__(coordinates, eigenvalues, numbers)
        self.landmarks, self.weights = np.asarray(landmarks), weights

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, axes: Sequence[int] = (0, 1), ax: Any = None
    ) -> Self:
        """Landmarks of an estimator among objects X: of a given matrix, those it was fitted to.

        Of a learner they are the larger the larger their coefficients in ``dual_coef_`` are.
        """
        signed = axes_of(estimator, X)
        found = signed.coordinates(X, axes)
        if estimator.kernel_.domain.is_matrix:
            if length(X) != estimator.n_features_in_ or estimator.landmark_indices_ is None:
                raise ValueError("of a precomputed matrix pass the one that was fitted")
            landmarks = found[estimator.landmark_indices_]
        else:
            landmarks = signed.coordinates(estimator.landmarks_, axes)
        weights = None
        if hasattr(estimator, "dual_coef_"):
            dual = estimator.dual_coef_.reshape(len(estimator.dual_coef_), -1)
            weights = np.linalg.norm(dual, axis=1)
        values = signed.D[list(axes)]
        return cls(found, landmarks, values, weights=weights, numbers=axes).plot(ax)

    @classmethod
    def from_predictions(
        cls, coordinates: Any, landmarks: Any, eigenvalues: Any, *, weights: Any = None,
        axes: Sequence[int] = (0, 1), ax: Any = None,
    ) -> Self:  # fmt: skip
        """Coordinates that are known."""
        made = cls(coordinates, landmarks, eigenvalues, weights=weights, numbers=axes)
        return made.plot(ax)

    def _draw(self, ax: Axes) -> None:
        self._check()
        n, m = len(self.coordinates), len(self.landmarks)
        self.objects_ = ax.scatter(
            self.coordinates[:, 0], self.coordinates[:, 1], s=10, color="#9a9a9a", linewidths=0,
            label=f"{n:,} objects",
        )  # fmt: skip
        sizes: Any = 42.0
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            sizes = 12 + 90 * weights / (weights.max(initial=0.0) or 1.0)
        self.landmarks_ = ax.scatter(
            self.landmarks[:, 0], self.landmarks[:, 1], s=sizes, label=f"{m:,} landmarks",
            **LANDMARK,
        )  # fmt: skip
        self._label(ax)
        ax.legend(frameon=True, framealpha=0.9)
        ax.set_title("Landmarks" + ("" if self.weights is None else " (larger: weigh more)"))


def imaginary(value: float, _: Any = None) -> str:
    """0.2i, of a tick."""
    return f"{value:.3g}i".replace("-", "\N{MINUS SIGN}") if abs(value) > 1e-12 else "0"
