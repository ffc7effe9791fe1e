"""The signed spectrum: how much of a similarity is negative, and how fast it falls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.inspection.arguments import Objects
from kreinlearn.plotting._axes import axes_of
from kreinlearn.plotting.style import INK, SECOND, Display, log_ticks, mark
from kreinlearn.solvers.spectrum import indefiniteness_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKED = 25  # eigenvalues of each sign that get a mark, evenly on the logarithmic axis
LOOKS: dict[str, dict[str, Any]] = {
    "positive": {"color": INK, "linestyle": "-", "marker": "o"},
    "negative": {"color": SECOND, "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
}


class SpectrumDisplay(Display):
    """Positive and negative eigenvalues by decreasing magnitude, on logarithmic axes.

    Parameters
    ----------
    eigenvalues : array-like
        Eigenvalues of either sign in any order; zeros are not drawn.
    relative : bool, default=False
        Whether they are divided by the largest magnitude.
    of : str, default=""
        What has this spectrum, for the title, such as " of the 2 axes kept".

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.
    lines_ : dict
        The lines of matplotlib by sign, "positive" and "negative", where there are any.

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

    def __init__(self, eigenvalues: ArrayLike, *, relative: bool = False, of: str = "") -> None:
        self.eigenvalues, self.relative, self.of = eigenvalues, relative, of

    @classmethod
    def from_estimator(
        cls, estimator: KreinEstimator, X: Objects | None = None, *, relative: bool = False,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the spectrum of the approximate kernel matrix of an estimator.

        Parameters
        ----------
        estimator : KreinNystroem, KreinPCA or Krein learner
            The fitted estimator.
        X : array-like, sequence of objects or None, default=None
            Objects, from which the error of the approximation is estimated for the title. Pass
            them with a learner: its own approximation may be far from the similarity on pairs
            without a landmark. With X the spectrum is that of the similarity on X, approximated
            by least squares with the landmarks of the learner.
        relative : bool, default=False
            Whether the eigenvalues are divided by the largest magnitude.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        SpectrumDisplay
            The display, which has been drawn.
        """
        axes = axes_of(estimator, X)
        return cls(axes.D, relative=relative, of=axes.described(X)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        D = np.asarray(self.eigenvalues, dtype=np.float64).ravel()
        if not np.isfinite(D).all() or not D.any():
            raise ValueError("eigenvalues must be finite, and one of them not zero")
        if self.relative:
            D = D / np.abs(D).max()
        parts = {"positive": np.sort(D[D > 0])[::-1], "negative": np.sort(-D[D < 0])[::-1]}
        self.lines_ = {}
        for sign, values in parts.items():
            n = len(values)
            if n:
                marked = (np.unique(np.geomspace(1, n, MARKED).astype(int)) - 1).tolist()
                (self.lines_[sign],) = ax.plot(
                    np.arange(1, n + 1), values, label=f"{sign} ({n})", linewidth=1.3,
                    markersize=5, markevery=marked, **LOOKS[sign],
                )  # fmt: skip
        ax.set(xscale="log", yscale="log")
        most = max(2, *map(len, parts.values()))
        ax.set_xlim(0.85, most * 1.2)
        mark(ax.xaxis, log_ticks(1, most))
        mark(ax.yaxis, log_ticks(*ax.get_ylim()))
        ax.set_xlabel("position among those of its sign")
        ax.set_ylabel("|eigenvalue|" + (", of the largest" if self.relative else ""))
        share = f"{100 * indefiniteness_of(D):.3g} % of it is negative"
        end = "\n" if self.of and "\n" not in self.of else " "
        ax.set_title(f"Signed spectrum{self.of}:{end}{share}")
        ax.legend(frameon=False)
