"""The error of an approximation as a function of its rank."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.estimators.transformer import KreinPCA
from kreinlearn.inspection.arguments import Array, Objects, Seed
from kreinlearn.nystrom.error import estimate_error
from kreinlearn.plotting._axes import axes_of
from kreinlearn.plotting.style import INK, Display, log_ticks, mark
from kreinlearn.solvers.spectrum import signed_eigh

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANKS = 16  # the number of ranks that are drawn by default, at most
N_ROWS = 1000


class RankErrorDisplay(Display):
    """Relative error \\|K - K~\\| / \\|K\\| (Frobenius norm) of the best dimensions of K~.

    Parameters
    ----------
    ranks : array-like of shape (p,)
        The numbers of dimensions.
    errors : array-like of shape (p,)
        The relative errors at these ranks.
    standard_errors : array-like of shape (p,) or None, default=None
        The standard errors of the errors, if these are estimated from a sample of pairs.
    optimum : array-like of shape (p,) or None, default=None
        The smallest possible errors at these ranks, if they are known.
    n_landmarks : int or None, default=None
        The number of landmarks of the approximation, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure that was drawn on.
    line_ : matplotlib line
        The errors.
    optimum_line_ : matplotlib line or None
        The smallest possible errors, if they are known.

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
        self, ranks: ArrayLike, errors: ArrayLike, *, standard_errors: ArrayLike | None = None,
        optimum: ArrayLike | None = None, n_landmarks: int | None = None,
    ) -> None:  # fmt: skip
        self.ranks, self.errors = np.asarray(ranks), np.asarray(errors)
        self.standard_errors, self.optimum = standard_errors, optimum
        self.n_landmarks = n_landmarks

    @classmethod
    def from_estimator(
        cls, estimator: KreinEstimator, X: Objects, *, ranks: Iterable[int] | None = None,
        n_rows: int = N_ROWS, random_state: Seed = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the errors of an estimator on X.

        They come from the pairs among at most ``n_rows`` rows of X. If these are all rows the
        errors are exact, and the smallest possible errors are drawn too. For a learner it is the
        approximation on X by least squares with its landmarks.

        Parameters
        ----------
        estimator : KreinNystroem or Krein learner
            The fitted estimator.
        X : array-like or sequence of objects
            The objects.
        ranks : iterable of int or None, default=None
            The ranks to draw. By default up to 16 of them, from 1 to ``rank_``.
        n_rows : int, default=1000
            The largest number of rows, which are drawn at random.
        random_state : int, RandomState, Generator or None, default=None
            Seed or generator for the draw.
        ax : matplotlib Axes or None, default=None
            Where to draw. By default a new figure is made.

        Returns
        -------
        RankErrorDisplay
            The display, which has been drawn.
        """
        if isinstance(estimator, KreinPCA):
            raise TypeError(
                "KreinPCA does not approximate similarities; pass a KreinNystroem or a Krein "
                "learner, or errors to from_predictions"
            )
        axes = axes_of(estimator, X)
        shown = _ranks(ranks, len(axes.D))
        K, U, n = axes.sampled(X, n_rows, random_state)
        errors = [estimate_error(K, U[:, :k], np.sign(axes.D[:k]), n) for k in shown]
        whole = len(K) == n
        return cls(
            shown, [error.relative for error in errors],
            standard_errors=None if whole else [error.standard_error for error in errors],
            optimum=smallest_errors(signed_eigh(K).D, shown) if whole else None,
            n_landmarks=estimator.n_landmarks_,
        ).plot(ax)  # fmt: skip

    def _draw(self, ax: Axes) -> None:
        ranks, errors = self.ranks, self.errors
        if ranks.shape != errors.shape or ranks.ndim != 1 or not len(ranks):
            raise ValueError(
                f"ranks and errors are lists of one length, got {ranks.shape} and {errors.shape}"
            )
        (self.line_,) = ax.plot(
            ranks, errors, "o-", color=INK, label="approximation", markersize=5, linewidth=1.3
        )
        if self.standard_errors is not None:
            margin = np.asarray(self.standard_errors)
            low, high = errors - margin, errors + margin
            said = "± standard error"
            ax.fill_between(ranks, low, high, color=INK, alpha=0.2, linewidth=0, label=said)
        self.optimum_line_, lowest = None, errors
        if self.optimum is not None:
            said, lowest = "smallest possible", np.concatenate([errors, self.optimum])
            (self.optimum_line_,) = ax.plot(ranks, self.optimum, "k:", linewidth=1.3, label=said)
        self._set_scales(ax, lowest)
        ax.set_xlabel("rank")
        ax.set_ylabel("relative error |K - K~| / |K|")
        m = self.n_landmarks
        by = "against its rank" if m is None else f"by {m:,} landmarks"
        ax.set_title(f"Error of the approximation {by}")
        ax.legend(frameon=False)

    def _set_scales(self, ax: Axes, errors: Array) -> None:
        positive = errors[errors > 1e-12 * errors.max(initial=0.0)]
        if len(positive):
            ax.set_yscale("log")
            ax.set_ylim(0.7 * positive.min(), 1.4 * positive.max())
            mark(ax.yaxis, log_ticks(*ax.get_ylim()))
        if self.ranks.max() > 2 * self.ranks.min():
            ax.set_xscale("log")
            mark(ax.xaxis, log_ticks(self.ranks.min(), self.ranks.max()))


def _ranks(ranks: Iterable[int] | None, most: int) -> Array:
    if most == 0:
        raise ValueError("rank_ is 0: there is nothing to draw")
    if ranks is None:
        return np.unique(np.geomspace(1, most, RANKS).round().astype(int))
    shown = list(ranks)
    if not shown or not all(isinstance(k, int | np.integer) and 1 <= k <= most for k in shown):
        raise ValueError(f"ranks={ranks!r} must be numbers from 1 to rank_, which is {most}")
    return np.array(shown)


def smallest_errors(D: Array, ranks: Iterable[int]) -> Array:
    """|K - K_k| / |K|, where K_k has the k largest of the eigenvalues D of K, in magnitude.

    They come by decreasing magnitude.
    """
    squares = np.square(D)
    return np.sqrt([squares[k:].sum() / squares.sum() for k in ranks])
