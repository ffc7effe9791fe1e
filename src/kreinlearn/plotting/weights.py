"""The weights of several kernels in a learned sum, and how good each of them is alone."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kreinlearn.plotting.style import INK, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

WIDEST = 36  # characters of a line of a name


class KernelWeightsDisplay(Display):
    """One bar per kernel: its weight in the sum, and beside it the loss of the kernel alone.

    The kernel with the largest weight is at the top. A kernel that is good alone may have no
    weight, because another one says the same.

    Parameters
    ----------
    weights : mapping from str to float
        The weight of each kernel, by its name.
    losses : mapping from str to float or None, default=None
        The cross-validated loss of each kernel alone. Without it, only the weights are drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.
    names_ : list of str
        The kernels as they are drawn, from top to bottom.
    bars_ : matplotlib BarContainer
        The bars, in the same order.

    See Also
    --------
    kreinlearn.KreinClassifier : Learns a sum of the similarities in a list.

    Examples
    --------
    >>> from kreinlearn import KreinClassifier
    >>> from kreinlearn.datasets import make_noisy_strings
    >>> from kreinlearn.plotting import KernelWeightsDisplay
    >>> X, y = make_noisy_strings(60, random_state=0)
    >>> model = KreinClassifier(["jaro_winkler", "levenshtein"], random_state=0).fit(X, y)
    >>> KernelWeightsDisplay.from_estimator(model).names_[0]
    'levenshtein'
    """

    def __init__(
        self, weights: Mapping[str, float], losses: Mapping[str, float] | None = None
    ) -> None:
        self.weights, self.losses = weights, losses

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        lines = sum(1 + label.count("\n") for label in map(_in_lines, self.weights))
        return (5.8, max(1.1 + 0.12 * len(self.weights) + 0.17 * lines, 2.2))

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Draw the weights that a learner has found.

        Parameters
        ----------
        estimator : KreinClassifier or KreinRegressor
            A fitted estimator whose kernel is a list, or "auto".
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        KernelWeightsDisplay
            The display, which has been drawn.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "kernel_weights_"):
            raise TypeError(
                f"{type(estimator).__name__} was fitted with one kernel, and has no weights of "
                "several; pass a KreinClassifier or KreinRegressor whose kernel is a list of "
                'kernels, or "auto"'
            )
        return cls(estimator.kernel_weights_, estimator.kernel_losses_).plot(ax)

    def _draw(self, ax: Axes) -> None:
        if not self.weights:
            raise ValueError("weights is empty; pass one weight or more, by the names of kernels")
        losses = self.losses or {}
        self.names_ = sorted(
            self.weights, key=lambda name: (-self.weights[name], losses.get(name, 0.0))
        )
        values = [self.weights[name] for name in self.names_]
        rows = range(len(values))
        self.bars_: BarContainer = ax.barh(rows, values, height=0.6, color=INK)
        ax.bar_label(self.bars_, [_in_short(value) for value in values], padding=3)
        ax.set_yticks(rows, [_in_lines(name) for name in self.names_])
        ax.set_ylim(len(values) - 0.4, -0.6)
        ax.set_xlim(0, 1.25 * max(*values, 1e-9))
        ax.grid(False, axis="y")
        ax.set_xlabel("weight in the sum")
        ax.set_ylabel("kernel")
        ax.set_title("Weights of the kernels")
        if losses:
            self._write_losses(ax, losses)

    def _write_losses(self, ax: Axes, losses: Mapping[str, float]) -> None:
        """Write the loss of each kernel at the right end of its row."""
        right = ax.secondary_yaxis("right")
        said = [_in_short(losses[name]) if name in losses else "" for name in self.names_]
        right.set_yticks(range(len(said)), said)
        right.tick_params(length=0, pad=8, labelcolor="dimgrey")
        right.spines["right"].set_visible(False)
        right.set_ylabel("loss of the kernel alone", color="dimgrey")


def _in_short(value: float) -> str:
    """A weight or a loss with few digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value else "0"


def _in_lines(name: str) -> str:
    """The name of a kernel in at most two short lines."""
    return "\n".join(wrap(name, WIDEST, max_lines=2, placeholder="…"))
