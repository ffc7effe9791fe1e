"""What all displays share: the axes on which they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from kreinlearn.plotting.style import axes_for, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


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
