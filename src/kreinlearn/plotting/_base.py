"""What all displays share: where they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from kreinlearn.plotting._style import axes_for, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display:
    """Holds the numbers; ``plot`` draws them, and may be called again for other axes."""

    size = (5.4, 3.8)  # inches, of a figure of its own
    ax_: Axes
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; ``ax_`` and ``figure_`` are what was drawn on."""
        self.ax_ = axes_for(ax, self.size)
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError
