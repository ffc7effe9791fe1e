"""The error of an approximation against its rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from kreinlearn.estimators.transformer import KreinPCA
from kreinlearn.nystrom.approximation import estimate_error
from kreinlearn.plotting._axes import axes_of
from kreinlearn.plotting._base import Display
from kreinlearn.plotting._style import INK, log_ticks, mark
from kreinlearn.solvers.spectrum import signed_eigh

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
RANKS = 16  # at most, of those drawn by default
N_ROWS = 1000


class RankErrorDisplay(Display):
    """Relative error |K - K~| / |K| (Frobenius) of the best so many dimensions of K~.

    Parameters
    ----------
    ranks, errors : of the same length.
    standard_errors : of the errors, where they are estimated from a sample of pairs.
    optimum : smallest possible errors at these ranks, where they are known.
    n_landmarks : of the approximation, for the title.

    Attributes
    ----------
    ax_, figure_ : what was drawn on.
    line_, optimum_line_ : lines of matplotlib; the second is None where it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinNystroem
    >>> from kreinlearn.plotting import RankErrorDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = KreinNystroem("delta_gauss", random_state=0).fit(X)
    >>> display = RankErrorDisplay.from_estimator(model, X)
    >>> bool(np.all(np.diff(display.optimum) < 0))
    True
    """

    def __init__(
        self, ranks: Any, errors: Any, *, standard_errors: Any = None, optimum: Any = None,
        n_landmarks: int | None = None,
    ) -> None:  # fmt: skip
        self.ranks, self.errors = np.asarray(ranks), np.asarray(errors)
        self.standard_errors, self.optimum = standard_errors, optimum
        self.n_landmarks = n_landmarks

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ranks: Any = None, n_rows: int = N_ROWS,
        random_state: Any = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Errors on X, from the pairs among at most ``n_rows`` of its rows, drawn at random.

        If these are all rows the errors are exact, and the smallest possible ones are drawn too.
        Of a learner it is the approximation on X by least squares with its landmarks.
        """
        if isinstance(estimator, KreinPCA):
            raise TypeError(
                "KreinPCA does not approximate similarities; pass a KreinNystroem or a Krein "
                "learner, or errors to from_predictions"
            )
        axes = axes_of(estimator, X)
        shown = _ranks(ranks, len(axes.D))
        K, U, n = axes.sampled(X, n_rows, random_state)
        found = [estimate_error(K, U[:, :k], np.sign(axes.D[:k]), n) for k in shown]
        whole = len(K) == n
        return cls(
            shown, [error.relative for error in found],
            standard_errors=None if whole else [error.standard_error for error in found],
            optimum=_smallest(K, shown) if whole else None,
            n_landmarks=estimator.n_landmarks_,
        ).plot(ax)  # fmt: skip

    @classmethod
    def from_predictions(
        cls, ranks: Any, errors: Any, *, standard_errors: Any = None, optimum: Any = None,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Errors that are known."""
        return cls(ranks, errors, standard_errors=standard_errors, optimum=optimum).plot(ax)

    def _draw(self, ax: Axes) -> None:
        if self.ranks.shape != self.errors.shape or self.ranks.ndim != 1 or not len(self.ranks):
            raise ValueError(
                f"ranks and errors are lists of one length, got {self.ranks.shape} and "
                f"{self.errors.shape}"
            )
        (self.line_,) = ax.plot(
            self.ranks, self.errors, color=INK, marker="o", markersize=5, linewidth=1.3,
            label="approximation",
        )  # fmt: skip
        lowest = self.errors
        if self.standard_errors is not None:
            margin = np.asarray(self.standard_errors)
            ax.fill_between(
                self.ranks, self.errors - margin, self.errors + margin, color=INK, alpha=0.2,
                linewidth=0, label="± standard error",
            )  # fmt: skip
        self.optimum_line_ = None
        if self.optimum is not None:
            (self.optimum_line_,) = ax.plot(
                self.ranks, self.optimum, color="black", linestyle=":", linewidth=1.3,
                label="smallest possible",
            )  # fmt: skip
            lowest = np.concatenate([lowest, self.optimum])
        self._scales(ax, lowest)
        ax.set_xlabel("rank")
        ax.set_ylabel("relative error |K - K~| / |K|")
        known = self.n_landmarks is not None
        by = f"by {self.n_landmarks:,} landmarks" if known else "against its rank"
        ax.set_title(f"Error of the approximation {by}")
        ax.legend(frameon=False)

    def _scales(self, ax: Axes, errors: Array) -> None:
        positive = errors[errors > 1e-12 * errors.max(initial=0.0)]
        if len(positive):
            ax.set_yscale("log")
            ax.set_ylim(0.7 * positive.min(), 1.4 * positive.max())
            mark(ax.yaxis, log_ticks(*ax.get_ylim()))
        if self.ranks.max() > 2 * self.ranks.min():
            ax.set_xscale("log")
            mark(ax.xaxis, log_ticks(self.ranks.min(), self.ranks.max()))


def _ranks(ranks: Any, most: int) -> Array:
    if most == 0:
        raise ValueError("rank_ is 0: there is nothing to draw")
    if ranks is None:
        return np.unique(np.geomspace(1, most, RANKS).round().astype(int))
    shown = list(ranks)
    if not shown or not all(isinstance(k, int | np.integer) and 1 <= k <= most for k in shown):
        raise ValueError(f"ranks={ranks!r} must be numbers from 1 to rank_, which is {most}")
    return np.array(shown)


def _smallest(K: Array, ranks: Array) -> Array:
    """|K - K_k| / |K| with K_k the k largest |eigenvalues| of K."""
    squares = np.square(signed_eigh(K).D)
    tails = np.append(np.cumsum(squares[::-1])[::-1], np.zeros(max(ranks)))
    return np.asarray(np.sqrt(tails[ranks] / tails[0]))
