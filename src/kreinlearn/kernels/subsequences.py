"""The earth mover's distance of time series, as sets of all their stretches of one length."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import length, objects_of, take
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.kernels.processes import SlowKernel
from kreinlearn.kernels.series_base import Series, SeriesKernel, znormalized
from kreinlearn.kernels.shapes import ordered_transport, transport_order
from kreinlearn.kernels.vector_columns import evenly, number

FEWEST = 3  # points of a window that is given as a share, unless a series has fewer
WINDOW = "pass a number of points, 1 or more, or a share of the shortest series, from 0 to 1"


class WassersteinSubsequence(SlowKernel, SeriesKernel, names=["wtk"]):
    """The earth mover's distance between the subsequences of two series (Bock et al. 2019).

    It is min_T sum_ab T_ab |a - b|, where a and b are the subsequences of w consecutive points of x
    and of z. T >= 0 has row sums 1/k and column sums 1/l, for k and l subsequences, and |a - b| is
    the Euclidean norm over all points and channels. At what time a subsequence occurs does not
    matter.

    Series of one length are matched with scipy, others are transported with POT. A value takes
    about 2 ms for series of 150 points and 60 ms for 600 points.

    Parameters
    ----------
    window : int or float, default=0.1
        The number w of points of a subsequence. A float is a share, from 0 to 1, of the length of
        the shortest series of the fit, where w is at least 3 if that series has 3 points. No
        series may have fewer than w points.
    znormalize_subsequences : bool, default=False
        Whether every channel of every subsequence is compared without its mean and divided by its
        standard deviation. A constant one becomes zero.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Attributes
    ----------
    window_ : int
        The number w, once the kernel is fitted. A share is taken of the shortest of up to 2,048
        series, which are evenly spaced in X.

    Examples
    --------
    >>> from kreinlearn.kernels.subsequences import WassersteinSubsequence
    >>> x, later, steeper = [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 2.0, 4.0, 6.0]
    >>> WassersteinSubsequence(window=2)([x], [later, steeper]).round(3)
    array([[0.167, 4.185]])
    """

    def __init__(
        self,
        window: float = 0.1,
        znormalize_subsequences: bool = False,
        channels_first: bool = False,
        znormalize: bool = False,
    ) -> None:
        super().__init__(channels_first, znormalize)
        self.window = window
        self.znormalize_subsequences = znormalize_subsequences

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.window_ = self._given() or self._share_of(X)
        return super().fit(X, rng)

    def _given(self) -> int:
        """The window as a number of points; 0 if it is a share."""
        window: Any = self.window
        if isinstance(window, Integral):
            return int(number(window, "window", WINDOW, least=1, kind=Integral))
        number(window, "window", WINDOW, least=0.0, most=1.0)
        return 0

    def _share_of(self, X: Objects) -> int:
        n, rows = length(X), evenly(length(X))
        names = [f"object {i} (of {n})" for i in rows]
        series = map(self._checked, objects_of(take(X, rows)), names)
        shortest = min(map(len, series))
        return min(max(round(self.window * shortest), FEWEST), shortest)

    def _points(self) -> int:
        """The number of points of a subsequence."""
        if w := self._given():
            return w
        what = f"window={self.window!r} is a share of the shortest series of the fit: fit first"
        check_is_fitted(self, "window_", msg=what + ", or pass a whole number of points")
        return self.window_

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Series:
        w, series = self._points(), super().packed(X, first, n, like)
        for i, x in enumerate(series.items):
            if len(x) < w:
                raise ValueError(
                    f"object {first + i} (of {n or len(X)}) has {len(x)} points, and the "
                    f"subsequences have {w}; leave it out, or pass a window of at most {len(x)}"
                )
        return series

    def values(self, A: Series, Z: Series) -> Array:
        D = np.empty((len(A.items), len(Z.items)))
        rows = [(transport_order(x), self._subsequences(x)) for x in A.items]
        for j, z in enumerate(Z.items):
            column = transport_order(z), self._subsequences(z)
            for i, row in enumerate(rows):
                D[i, j] = ordered_transport(*row, *column)
        return D

    def _subsequences(self, x: Array) -> Array:  # (length, channels) -> (k, w channels)
        w = self._points()
        parts = np.lib.stride_tricks.sliding_window_view(x, w, axis=0)  # (k, channels, w)
        if not self.znormalize_subsequences:
            return parts.reshape(len(parts), -1)
        return znormalized(parts.reshape(-1, w).T).T.reshape(len(parts), -1)
