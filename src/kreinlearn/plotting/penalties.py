"""The cross-validated loss as a function of the two penalties, and those that were chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit
from sklearn.utils.validation import check_is_fitted

from kreinlearn.estimators.access import criterion
from kreinlearn.estimators.learner import Learner
from kreinlearn.estimators.svm import KreinSVC
from kreinlearn.estimators.variance import KreinVCRidge, KreinVCRidgeClassifier
from kreinlearn.inspection.arguments import Array, Objects
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.plotting.style import Display, short
from kreinlearn.sums.parallel import serial_blas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

GRID = 15  # penalties on each side
BEYOND = 2.0  # decades around the chosen penalties
WIDEST = 12.0  # decades; a penalty further out switches its part off, and is marked at the edge
LEVELS = 12
EDGE = 0.035  # the share of an axis that half a star takes
SHARPNESS = 2.5  # of levels and colours near the smallest loss


class PenaltyDisplay(Display):
    """Loss as a function of lambda_plus and lambda_minus, on two logarithmic axes.

    Parameters
    ----------
    lambda_plus : array-like of shape (p,)
        Penalties of the positive part.
    lambda_minus : array-like of shape (q,)
        Penalties of the negative part.
    losses : array-like of shape (q, p)
        ``losses[i, j]`` is the loss of lambda_minus[i] and lambda_plus[j].
    chosen : pair of float or None, default=None
        The pair (lambda_plus, lambda_minus) that was chosen.
    criterion : str, default="loss"
        What the loss is, in words.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.
    contours_ : matplotlib contour set
        The filled contours.
    chosen_ : matplotlib line or None
        The mark of the chosen pair.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinRidgeClassifier
    >>> from kreinlearn.plotting import PenaltyDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinRidgeClassifier("delta_gauss", random_state=0).fit(X, y)
    >>> display = PenaltyDisplay.from_estimator(model, X, y, grid=5)
    >>> display.losses.shape
    (5, 5)
    """

    size = (5.6, 4.3)

    def __init__(
        self, lambda_plus: ArrayLike, lambda_minus: ArrayLike, losses: ArrayLike, *,
        chosen: tuple[float, float] | None = None, criterion: str = "loss",
    ) -> None:  # fmt: skip
        self.lambda_plus, self.lambda_minus = np.asarray(lambda_plus), np.asarray(lambda_minus)
        self.losses, self.chosen, self.criterion = np.asarray(losses), chosen, criterion

    @classmethod
    def from_estimator(
        cls, estimator: Learner, X: Objects, y: ArrayLike, *,
        sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None,
        grid: int = GRID, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the loss that a learner has minimised.

        Landmarks, similarity and folds are those of the fit; a model that was loaded has no folds,
        and others are drawn. The folds are solved for grid x grid pairs of penalties, which takes
        a few seconds for some hundred landmarks and minutes for a thousand.

        Parameters
        ----------
        estimator : Krein learner
            A fitted KreinRidge, KreinVCRidge, one of their classifiers, or a KreinSVC that has not
            an l1 penalty alone.
        X : array-like or sequence of objects
            The objects that the learner was fitted to.
        y : array-like
            The targets that it was fitted to.
        sample_weight : array-like or None, default=None
            The weights that it was fitted with.
        groups : array-like or None, default=None
            The groups that it was fitted with.
        grid : int, default=15
            The number of penalties on each side.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        PenaltyDisplay
            The display, which has been drawn.
        """
        check_is_fitted(estimator)
        plus = getattr(estimator, "lambda_plus_", None)
        minus = getattr(estimator, "lambda_minus_", None)
        only_l1 = hasattr(estimator, "lambda_l1_") and (plus, minus) == (0, 0)
        if only_l1 or plus is None or minus is None:
            raise TypeError(
                f"{type(estimator).__name__} has no two penalties to look at; pass a KreinRidge, "
                "KreinVCRidge, one of their classifiers, or a KreinSVC that is not l1"
            )
        if grid < 2:
            raise ValueError(f"grid={grid!r} must be 2 or more")
        loss, criterion = criterion_of(estimator, X, y, sample_weight, groups)
        chosen = (float(plus), float(minus))
        values = _grid(chosen, int(grid))
        losses = [[loss(p, m) for p in values] for m in values]
        name = f"cross-validated {criterion}"
        return cls(values, values, losses, chosen=chosen, criterion=name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        shape = (len(self.lambda_minus), len(self.lambda_plus))
        if self.losses.shape != shape or min(shape) < 2:
            raise ValueError(
                f"losses have shape {self.losses.shape}; {shape} goes with the penalties, two or "
                "more of each"
            )
        from matplotlib.colors import PowerNorm

        grid, levels = (self.lambda_plus, self.lambda_minus, self.losses), _levels(self.losses)
        norm = PowerNorm(1 / SHARPNESS, levels[0], levels[-1])
        self.contours_ = ax.contourf(*grid, levels=levels, cmap="cividis_r", norm=norm)
        ax.contour(*grid, levels=levels, colors="black", linewidths=0.4, alpha=0.6)
        ax.set(
            xscale="log", yscale="log", title="Loss over the two penalties",
            xlabel="lambda_plus (penalty of the positive part)",
            ylabel="lambda_minus (of the negative part)",
        )  # fmt: skip
        ax.axline((1, 1), (10, 10), color="black", linestyle="--", linewidth=1, label="equal")
        ax.set_xlim(self.lambda_plus.min(), self.lambda_plus.max())
        ax.set_ylim(self.lambda_minus.min(), self.lambda_minus.max())
        self.chosen_ = None if self.chosen is None else self._mark(ax, self.chosen)
        bar = ax.figure.colorbar(self.contours_, ax=ax, label=self.criterion, spacing="uniform")
        ticks = levels[::2].tolist()
        bar.set_ticks(ticks, labels=[short(float(f"{value:.3g}")) for value in ticks])
        above = self.chosen is None or self.chosen[1] < self.chosen[0]
        ax.legend(loc="upper left" if above else "lower right", framealpha=0.9)

    def _mark(self, ax: Axes, chosen: tuple[float, float]) -> Line2D:
        """Mark the chosen pair; if it is at the edge or beyond, just inside the edge."""
        sides = list(zip(chosen, (self.lambda_plus, self.lambda_minus), strict=True))
        beyond = any(not side.min() <= value <= side.max() for value, side in sides)
        (line,) = ax.plot(
            *[_inside(value, side) for value, side in sides], linestyle="", marker="*",
            markersize=15, markerfacecolor="white", zorder=5, markeredgecolor="black",
            label="chosen, beyond the edge" if beyond else "chosen",
        )  # fmt: skip
        return line


def _inside(value: float, values: Array) -> float:
    """The value, moved so far from the edge that a mark is drawn whole."""
    low, high = np.log10(values.min()), np.log10(values.max())
    margin = EDGE * (high - low)
    with np.errstate(divide="ignore"):  # a penalty of zero lies beyond
        return float(10 ** np.clip(np.log10(value), low + margin, high - margin))


def _grid(chosen: tuple[float, float], count: int) -> Array:
    """One range for both penalties: around the smaller, and the larger unless it is far away."""
    positive = [value for value in chosen if value > 0] or [1.0]
    low = np.log10(min(positive)) - BEYOND
    high = min(np.log10(max(positive)) + BEYOND, low + WIDEST)
    return np.logspace(low, high, count)


def _levels(losses: Array) -> Array:
    """Levels that are closer to one another near the smallest loss, where differences matter."""
    low, high = float(losses.min()), float(losses.max())
    if not high > low:
        high = low + 1e-9 * max(abs(low), 1.0)
    return np.asarray(low + (high - low) * np.linspace(0, 1, LEVELS) ** SHARPNESS)


# The loss


def criterion_of(
    model: Learner, X: Objects, y: ArrayLike, sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> tuple[Callable[[float, float], float], str]:  # fmt: skip
    """The loss that a learner has minimised, as a function of its penalties, and its name.

    Landmarks and similarity are those of the fit, and so are the folds unless it was loaded.
    """
    loss = criterion(_as_fitted(model, sample_weight), X, y, sample_weight, groups)

    def serial_loss(lambda_plus: float, lambda_minus: float) -> float:
        with serial_blas():
            return loss(lambda_plus, lambda_minus)

    name = "squared hinge loss" if isinstance(model, KreinSVC) else "squared error"
    anew = "" if model.cv == "loo" or hasattr(model, "folds_") else ", folds drawn anew"
    return serial_loss, name + anew


def _judged_by_default(model: Learner, sample_weight: ArrayLike | None) -> bool:
    """Whether all objects are landmarks, and judged by folds that are the same at every fit."""
    wanted = model.landmarks if isinstance(model.landmarks, Landmarks) else Landmarks()
    plain = wanted.core in (None, "plain") and wanted.rank is None
    weighted = len(model.folds_) if sample_weight is None else np.count_nonzero(sample_weight)
    every = model.landmark_indices_ is not None and len(model.landmark_indices_) == weighted
    by_folds = isinstance(model, KreinSVC | KreinVCRidge | KreinVCRidgeClassifier)
    return model.cv is None and every and plain and not by_folds


def _as_fitted(model: Learner, sample_weight: ArrayLike | None = None) -> Learner:
    """An unfitted copy that will choose what the model has chosen, except for the penalties."""
    indices = model.landmark_indices_
    wanted = model.landmarks if isinstance(model.landmarks, Landmarks) else Landmarks()
    landmarks = model.landmarks_ if indices is None else indices
    chosen: dict[str, object] = {
        "lambda_plus": "auto", "lambda_minus": "auto", "random_state": 0,
        "landmarks": replace(wanted, n=landmarks, scheme="auto"),
    }  # fmt: skip
    for name in ("similarity", "kernel_params", "radius"):
        if hasattr(model, f"{name}_"):
            chosen[name] = getattr(model, f"{name}_")
    folds = None if model.cv == "loo" else getattr(model, "folds_", None)  # None if it was loaded
    if folds is not None and folds.ndim == 1 and not _judged_by_default(model, sample_weight):
        chosen["cv"] = PredefinedSplit(folds)
    copy: Learner = clone(model).set_params(**chosen)
    return copy
