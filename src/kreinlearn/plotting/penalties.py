"""The cross-validated loss over the two penalties, and those that were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kreinlearn.plotting._base import Display
from kreinlearn.plotting._criterion import criterion_of
from kreinlearn.plotting._style import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
GRID = 15  # penalties a side
BEYOND = 2.0  # decades around the penalties chosen
WIDEST = 12.0  # decades; a penalty further out switches its part off, and is marked at the edge
LEVELS = 12
EDGE = 0.035  # share of an axis that half a star takes
SHARPNESS = 2.5  # of levels and colours about the smallest loss


class PenaltyDisplay(Display):
    """Loss over (lambda_plus, lambda_minus), both on logarithmic axes of one range.

    Parameters
    ----------
    lambda_plus, lambda_minus : (p,) and (q,) penalties.
    losses : (q, p), of each pair.
    chosen : the pair that was chosen.
    criterion : what the loss is, in words.

    Attributes
    ----------
    ax_, figure_ : what was drawn on.
    contours_, chosen_ : what was drawn, of matplotlib.

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
        self, lambda_plus: Any, lambda_minus: Any, losses: Any, *, chosen: Any = None,
        criterion: str = "loss",
    ) -> None:  # fmt: skip
        self.lambda_plus, self.lambda_minus = np.asarray(lambda_plus), np.asarray(lambda_minus)
        self.losses, self.chosen, self.criterion = np.asarray(losses), chosen, criterion

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, grid: int = GRID,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """The loss that a learner has minimised, from the X and y that it was fitted to.

        Landmarks, similarity and folds are those of the fit; a model that was loaded has no folds,
        and other ones are drawn. The folds are solved at grid x grid
        pairs: that takes a few seconds for some hundred landmarks, minutes for a thousand.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "lambda_minus_") or getattr(estimator, "penalty", "") == "l1":
            raise TypeError(
                f"{type(estimator).__name__} has no two penalties to look at; pass a KreinRidge, "
                "KreinVCRidge, one of their classifiers, or a KreinSVC that is not l1"
            )
        if grid < 2:
            raise ValueError(f"grid={grid!r} must be 2 or more")
        chosen = (estimator.lambda_plus_, estimator.lambda_minus_)
        criterion = criterion_of(estimator, X, y, sample_weight)
        values = _grid(chosen, int(grid))
        losses = [[criterion.loss(plus, minus) for plus in values] for minus in values]
        name = f"cross-validated {criterion.name}"
        return cls(values, values, losses, chosen=chosen, criterion=name).plot(ax)

    @classmethod
    def from_predictions(
        cls, lambda_plus: Any, lambda_minus: Any, losses: Any, *, chosen: Any = None,
        criterion: str = "loss", ax: Any = None,
    ) -> Self:  # fmt: skip
        """Losses that are known: ``losses[i, j]`` is that of lambda_minus[i], lambda_plus[j]."""
        made = cls(lambda_plus, lambda_minus, losses, chosen=chosen, criterion=criterion)
        return made.plot(ax)

    def _draw(self, ax: Axes) -> None:
        shape = (len(self.lambda_minus), len(self.lambda_plus))
        if self.losses.shape != shape or min(shape) < 2:
            raise ValueError(
                f"losses have shape {self.losses.shape}; {shape} goes with the penalties, two or "
                "more of each"
            )
        from matplotlib.colors import PowerNorm

        levels = _levels(self.losses)
        self.contours_ = ax.contourf(
            self.lambda_plus, self.lambda_minus, self.losses, levels=levels, cmap="cividis_r",
            norm=PowerNorm(1 / SHARPNESS, levels[0], levels[-1]),
        )  # fmt: skip
        ax.contour(
            self.lambda_plus, self.lambda_minus, self.losses, levels=levels,
            colors="black", linewidths=0.4, alpha=0.6,
        )  # fmt: skip
        ax.set(xscale="log", yscale="log")
        ax.axline((1, 1), (10, 10), color="black", linestyle="--", linewidth=1, label="equal")
        ax.set_xlim(self.lambda_plus.min(), self.lambda_plus.max())
        ax.set_ylim(self.lambda_minus.min(), self.lambda_minus.max())
        self.chosen_ = None
        if self.chosen is not None:
            self.chosen_ = self._mark_chosen(ax)
        bar = ax.figure.colorbar(self.contours_, ax=ax, label=self.criterion, spacing="uniform")
        ticks = levels[::2].tolist()
        bar.set_ticks(ticks, labels=[short(float(f"{value:.3g}")) for value in ticks])
        ax.set_xlabel("lambda_plus (penalty of the positive part)")
        ax.set_ylabel("lambda_minus (of the negative part)")
        ax.set_title("Loss over the two penalties")
        above = self.chosen is None or self.chosen[1] < self.chosen[0]
        ax.legend(loc="upper left" if above else "lower right", framealpha=0.9)

    def _mark_chosen(self, ax: Axes) -> Any:
        """Where it lies; inside the edge if it is on it or beyond."""
        sides = (self.lambda_plus, self.lambda_minus)
        at = [_inside(value, values) for value, values in zip(self.chosen, sides, strict=True)]
        beyond = any(
            not values.min() <= value <= values.max()
            for value, values in zip(self.chosen, sides, strict=True)
        )
        (line,) = ax.plot(
            *at, linestyle="", marker="*", markersize=15, markerfacecolor="white", zorder=5,
            markeredgecolor="black", label="chosen, beyond the edge" if beyond else "chosen",
        )  # fmt: skip
        return line


def _inside(value: float, values: Array) -> float:
    """At least so far from the edge that a mark is whole."""
    low, high = np.log10(values.min()), np.log10(values.max())
    margin = EDGE * (high - low)
    with np.errstate(divide="ignore"):  # a penalty of zero lies beyond
        return float(10 ** np.clip(np.log10(value), low + margin, high - margin))


def _grid(chosen: tuple[float, float], count: int) -> Array:
    """One range for both: around the smaller, and the larger unless that is very far."""
    positive = [value for value in chosen if value > 0] or [1.0]
    low = np.log10(min(positive)) - BEYOND
    high = min(np.log10(max(positive)) + BEYOND, low + WIDEST)
    return np.logspace(low, high, count)


def _levels(losses: Array) -> Array:
    """Closer to one another near the smallest loss, where differences matter."""
    low, high = float(losses.min()), float(losses.max())
    if not high > low:
        high = low + 1e-9 * max(abs(low), 1.0)
    return np.asarray(low + (high - low) * np.linspace(0, 1, LEVELS) ** SHARPNESS)
