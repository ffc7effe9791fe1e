"""The signed spectrum: how much of a similarity is negative, and how fast it falls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from kreinlearn.plotting._axes import axes_of
from kreinlearn.plotting._base import Display
from kreinlearn.plotting._style import INK, SECOND, log_ticks, mark
from kreinlearn.solvers.spectrum import indefiniteness_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
MARKED = 25  # eigenvalues of a sign that get a mark, evenly on the logarithmic axis


class SpectrumDisplay(Display):
    """Positive and negative eigenvalues by decreasing magnitude, on logarithmic axes.

    Parameters
    ----------
    eigenvalues : of either sign, in any order; zeros are not drawn.
    relative : whether they are divided by the largest magnitude.
    of : what has this spectrum, for the title: " of the 2 axes kept", say.

    Attributes
    ----------
    ax_, figure_ : what was drawn on.
    lines_ : "positive" and "negative", each a line of matplotlib, where there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinNystroem
    >>> from kreinlearn.plotting import SpectrumDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = KreinNystroem("delta_gauss", random_state=0).fit(X)
    >>> display = SpectrumDisplay.from_estimator(model)
    >>> print(display.ax_.get_title())  # doctest: +ELLIPSIS
    Signed spectrum of the approximation by 100 landmarks:
    ... % of it is negative
    """

    def __init__(self, eigenvalues: Any, *, relative: bool = False, of: str = "") -> None:
        self.eigenvalues, self.relative, self.of = eigenvalues, relative, of

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, relative: bool = False, ax: Any = None
    ) -> Self:
        """The spectrum of the approximate kernel matrix that an estimator was fitted to.

        Pass X with a learner: what its approximation says of pairs without a landmark may be far
        from the similarity. With X it is the similarity on X, approximated by least squares with
        the landmarks of the learner. X also tells the error of an approximation, for the title.
        """
        found = axes_of(estimator, X)
        return cls(found.D, relative=relative, of=found.of(X)).plot(ax)

    @classmethod
    def from_predictions(cls, eigenvalues: Any, *, relative: bool = False, ax: Any = None) -> Self:
        """A spectrum that is known: of a matrix, or ``inspect(...).eigenvalues``."""
        return cls(eigenvalues, relative=relative).plot(ax)

    def _draw(self, ax: Axes) -> None:
        D = np.asarray(self.eigenvalues, dtype=np.float64).ravel()
        if not np.isfinite(D).all() or not D.any():
            raise ValueError("eigenvalues must be finite, and one of them not zero")
        if self.relative:
            D = D / np.abs(D).max()
        looks: dict[str, tuple[Array, dict[str, Any]]] = {
            "positive": (D[D > 0], {"color": INK, "linestyle": "-", "marker": "o"}),
            "negative": (-D[D < 0], {"color": SECOND, "linestyle": "--", "marker": "s",
                                     "markerfacecolor": "white"}),
        }  # fmt: skip
        self.lines_ = {
            sign: _line(ax, np.sort(values)[::-1], f"{sign} ({len(values)})", look)
            for sign, (values, look) in looks.items()
            if len(values)
        }
        ax.set(xscale="log", yscale="log")
        most = max(len(values) for values, _ in looks.values())
        ax.set_xlim(0.85, max(most, 2) * 1.2)
        mark(ax.xaxis, log_ticks(1, max(most, 2)))
        mark(ax.yaxis, log_ticks(*ax.get_ylim()))
        ax.set_xlabel("position among those of its sign")
        ax.set_ylabel("|eigenvalue|" + (", of the largest" if self.relative else ""))
        share = f"{100 * indefiniteness_of(D):.3g} % of it is negative"
        end = "\n" if self.of and "\n" not in self.of else " "
        ax.set_title(f"Signed spectrum{self.of}:{end}{share}")
        ax.legend(frameon=False)


def _line(ax: Axes, values: Array, label: str, look: dict[str, Any]) -> Any:
    shown = np.unique(np.geomspace(1, len(values), MARKED).astype(int)) - 1
    (line,) = ax.plot(
        np.arange(1, len(values) + 1), values, label=label, linewidth=1.3, markersize=5,
        markevery=shown.tolist(), **look,
    )  # fmt: skip
    return line
