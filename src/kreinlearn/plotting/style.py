"""How all pictures look, and the base class of those that are displays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

# The colours of Okabe and Ito, which colour-blind readers can tell apart; in grey the marks differ.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00", "#7f6000")
INK, SECOND = COLOURS[0], COLOURS[1]  # for what is positive or chosen, and for the other
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")  # one more than colours: pairs do not recur
LONGEST = 32  # characters of a name
SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text, and can be searched
    "svg.hashsalt": "kreinlearn",
    "text.parse_math": False,  # a dollar sign in a name is no mathematics
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.formatter.use_mathtext": False,
    "axes.formatter.limits": (-4, 5),
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
}

MISSING = (
    'pictures need matplotlib, which is not installed: install matplotlib, or the extra "plot" of '
    'kreinlearn, as by pip install "kreinlearn[plot]"'
)


def axes_for(ax: Axes | None, size: tuple[float, float] = (5.4, 3.8)) -> Axes:
    """The given axes, or those of a new figure of pyplot."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(MISSING, name="matplotlib") from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def tidy(axes: Axes) -> None:
    """Draw a light grid below the data, and no box around them."""
    axes.grid(True, color="#e3e3e3", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def log_ticks(low: float, high: float) -> list[float]:
    """A few round numbers in the range, for a logarithmic axis."""
    powers = [10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [d * p for p in powers for d in digits if low <= d * p <= high]
        if len(ticks) <= 5:
            break
    else:
        ticks = ticks[:: math.ceil(len(ticks) / 5)]
    return ticks if len(ticks) > 1 else _evenly(low, high)


def _evenly(low: float, high: float) -> list[float]:
    """Two or more round numbers in a range that is less than a decade."""
    power = math.floor(math.log10(high - low)) if high > low else 0
    for step in (digit * 10.0**power for digit in (5, 2, 1, 0.5)):
        ticks = [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(ticks) > 1:
            return ticks
    return [low]


def mark(axis: Axis, ticks: list[float]) -> None:
    """Put these ticks on an axis, and no others."""
    axis.set_ticks(ticks, [short(tick) for tick in ticks])
    axis.set_ticks([], minor=True)


def shortened(name: str) -> str:
    """A name of at most 32 characters."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def short(value: float) -> str:
    """A number in few characters, such as 1000, 20k or 3M."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e4 else f"{value:g}"


# Displays


class Display:
    """Contains the numbers that ``plot`` draws; it may be called again for other axes."""

    size = (5.4, 3.8)  # of a new figure, in inches
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *values: Any, **more: Any) -> None:
        raise NotImplementedError

    @classmethod
    def from_predictions(cls, *values: Any, ax: Axes | None = None, **more: Any) -> Self:
        """Draw values that are known, without an estimator.

        Parameters
        ----------
        *values, **more
            The parameters of the class.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        display
            The display, which has been drawn.
        """
        return cls(*values, **more).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        display
            The display itself; ``ax_`` and ``figure_`` are what was drawn on.
        """
        self.ax_ = axes_for(ax, self.size)
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError
