"""Elastic dissimilarities of time series that are shifted or stretched in time.

Series are arrays of shape (length,) or (length, channels), and |.| is the Euclidean norm over the
channels. Every distance is symmetric, and zero for a series and itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from kreinlearn.kernels._elastic import Steps, edits, gaps, joint_moves, matches, moves, weighted
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.kernels.series_base import Series, SeriesDistance
from kreinlearn.kernels.vector_columns import not_negative, number, positive


class DTW(SeriesDistance, names=["dtw"]):
    """Dynamic time warping: the least sum of |x_i - z_j|^2 over the alignments of x and z.

    Squares are added and no root is taken.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import DTW
    >>> DTW()([[0.0, 0.0, 1.0, 2.0]], [[0.0, 1.0, 1.0, 2.0, 2.0], [0.0, 3.0]])
    array([[0., 2.]])
    """


class DerivativeDTW(DTW, names=["ddtw", "derivative_dtw"]):
    """Dynamic time warping of slopes (Keogh & Pazzani 2001).

    The slopes are ((x_i - x_i-1) + (x_i+1 - x_i-1) / 2) / 2.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import DerivativeDTW
    >>> DerivativeDTW()([[0.0, 0.0, 1.0, 2.0]], [[5.0, 5.0, 6.0, 7.0], [0.0, 1.0, 0.0]])
    array([[0.    , 0.3125]])
    """

    _shortest = 3

    def _prepared(self, x: Array) -> Array:
        before, now, after = x[:-2], x[1:-1], x[2:]
        return np.asarray(((now - before) + (after - before) / 2) / 2)


class WeightedDTW(SeriesDistance, names=["wdtw"]):
    """Dynamic time warping with weights that grow with the shift (Jeong et al. 2011).

    |x_i - z_j|^2 is multiplied by 1 / (1 + exp(-g (|i - j| - L / 2))), where L is the larger
    length.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    g : float, default=0.05
        How steeply the weight grows with the shift, 0 or more.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import WeightedDTW
    >>> WeightedDTW(g=0.0)([[0.0, 0.0, 1.0, 2.0]], [[0.0, 3.0]])  # every weight is 1/2
    array([[1.]])
    """

    _steps = staticmethod(weighted)

    def __init__(
        self, window: float | None = None, g: float = 0.05,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.g = g

    def _numbers(self, longest: int) -> Array:
        g = not_negative(self.g, "g")
        return np.asarray(1 / (1 + np.exp(-g * np.arange(-longest, longest + 1) / 2)))


class AmercedDTW(DTW, names=["adtw"]):
    """Dynamic time warping that pays a penalty for every step of one series alone (Herrmann & Webb
    2023).

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    penalty : float, default=1.0
        What is added for a point that is aligned to the same point as the one before it, 0 or more.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import AmercedDTW
    >>> AmercedDTW(penalty=0.5)([[0.0, 0.0, 1.0, 2.0]], [[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0]])
    array([[0.5, 0. ]])
    """

    def __init__(
        self, window: float | None = None, penalty: float = 1.0,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.penalty = penalty

    def _numbers(self, longest: int) -> Sequence[float]:
        return (not_negative(self.penalty, "penalty"),)


class ShapeDTW(DTW, names=["shape_dtw"]):
    """Dynamic time warping of the stretches x_i-reach .. x_i+reach around each time (Zhao & Itti
    2018).

    The distance is the cost of aligning the stretches. The sum of |x_i - z_j|^2 along that path,
    which other libraries have, is not symmetric.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    reach : int, default=15
        The number of points on either side that belong to a stretch.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import ShapeDTW
    >>> ShapeDTW(reach=1)([[0.0, 0.0, 1.0, 2.0]], [[0.0, 3.0], [0.0, 0.0, 1.0, 2.0]])
    array([[18.,  0.]])
    """

    def __init__(
        self, window: float | None = None, reach: int = 15,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.reach = reach

    def _numbers(self, longest: int) -> Sequence[float] | Array:
        number(self.reach, "reach", "pass a whole number, 0 or more", least=0, kind=Integral)
        return super()._numbers(longest)

    def _prepared(self, x: Array) -> Array:
        padded = np.pad(x, ((self.reach, self.reach), (0, 0)), mode="edge")
        stretches = np.lib.stride_tricks.sliding_window_view(padded, 2 * self.reach + 1, axis=0)
        return np.array(stretches, order="C").reshape(len(x), -1)


class MSM(SeriesDistance, names=["msm"]):
    """Move-split-merge (Stefan et al. 2013): a move costs |x_i - z_j|, a split or a merge c or
    more.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    c : float, default=1.0
        The cost of a split or merge whose point lies between its neighbours.
    independent : bool, default=True
        Whether the distances of the channels are added. Otherwise the points of all channels move
        at once, and squares are added.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import MSM
    >>> MSM(c=0.5)([[0.0, 0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0, 4.0]])
    array([[0.5, 3. ]])
    """

    def __init__(
        self, window: float | None = None, c: float = 1.0, independent: bool = True,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.c = c
        self.independent = independent

    @property
    def _steps(self) -> Steps:
        return moves if self.independent else joint_moves

    def _numbers(self, longest: int) -> Sequence[float]:
        return (not_negative(self.c, "c"),)

    def _prepared(self, x: Array) -> Array:
        return np.column_stack([x, np.diff(x, axis=0, prepend=x[:1])])


class ERP(SeriesDistance, names=["erp"]):
    """Edit distance with real penalty (Chen & Ng 2004): |x_i - z_j| for a pair, |x_i - g| for a
    gap.

    Points before the first pair are gaps, too: both series get a leading g, which costs nothing.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    g : float or array of shape (channels,), default=0.0
        The value that stands in a gap, one number or one per channel.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import ERP
    >>> ERP()([[3.0, 0.0, 0.0]], [[0.0, 0.0, 3.0], [1.0]])
    array([[0., 2.]])
    """

    _steps = staticmethod(gaps)

    def __init__(
        self, window: float | None = None, g: float | Sequence[float] | Array = 0.0,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.g = g

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Series:
        series, g = super().packed(X, first, n, like), np.asarray(self.g)
        if g.dtype.kind not in "fiu" or not np.isfinite(g).all():
            raise ValueError(f"g={self.g!r} is not allowed; pass a finite number, or one a channel")
        if g.ndim and g.shape != (series.channels,):
            raise ValueError(
                f"g={self.g!r} has shape {g.shape}, the series have {series.channels} channels; "
                "pass one number, or one for each channel"
            )
        return series

    def _prepared(self, x: Array) -> Array:
        moved = np.concatenate([np.zeros((1, x.shape[1])), x - self.g])
        return np.column_stack([moved, np.linalg.norm(moved, axis=1)])


class TWE(SeriesDistance, names=["twe"]):
    """Time warp edit distance (Marteau 2009).

    A pair costs |x_i - z_j| + |x_i-1 - z_j-1| + 2 nu |i - j|. The deletion of x_i costs |x_i -
    x_i-1| + nu + lmbda, and that of a point of z likewise.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    nu : float, default=0.001
        The stiffness in time, 0 or more.
    lmbda : float, default=1.0
        The cost of a deletion, 0 or more.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import TWE
    >>> TWE(nu=0.5, lmbda=1.0)([[1.0, 1.0, 2.0]], [[1.0, 2.0], [1.0, 1.0, 2.0]])
    array([[2.5, 0. ]])
    """

    _steps = staticmethod(edits)

    def __init__(
        self, window: float | None = None, nu: float = 0.001, lmbda: float = 1.0,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.nu = nu
        self.lmbda = lmbda

    def _numbers(self, longest: int) -> Sequence[float]:
        return 2 * not_negative(self.nu, "nu"), not_negative(self.lmbda, "lmbda")

    def _prepared(self, x: Array) -> Array:
        before = np.concatenate([np.zeros((1, x.shape[1])), x[:-1]])
        deleted = np.linalg.norm(x - before, axis=1) + (self.nu + self.lmbda)
        return np.column_stack([x, before, deleted])


class EDR(SeriesDistance, names=["edr"]):
    """Edit distance on real sequences, divided by the larger length (Chen et al. 2005).

    Points match if |x_i - z_j| < epsilon, and every edit costs 1. Points before the first pair cost
    nothing.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    epsilon : float, default=None
        A positive number. None means a quarter of the larger standard deviation of x and z.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import EDR
    >>> EDR(epsilon=0.5)([[0.0, 1.0, 2.0, 3.0]], [[0.0, 1.0, 9.0, 3.0], [1.0, 2.0, 3.0]])
    array([[0.25, 0.  ]])
    """

    _steps = staticmethod(matches)
    _borders = 0.0, np.inf

    def __init__(
        self, window: float | None = None, epsilon: float | None = None,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.epsilon = epsilon

    def _numbers(self, longest: int) -> Sequence[float]:
        if self.epsilon is not None:
            what = "pass a positive number, or None for a quarter of the standard deviation"
            positive(self.epsilon, "epsilon", what)
        return 0.0, 1.0, 1.0, 1.0

    def _prepared(self, x: Array) -> Array:
        limit = x.std() / 4 if self.epsilon is None else self.epsilon
        return np.column_stack([x, np.full(len(x), limit)])

    def _scaled(self, d: Array, n: int, m: Array) -> Array:
        return np.asarray(d / np.maximum(n, m))

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Series:
        series = super().packed(X, first, n, like)
        for i, x in enumerate(series.items):
            if self.epsilon is None and (x == x[0, 0]).all():
                raise ValueError(
                    f"object {first + i} (of {n or len(X)}) is constant, {x[0, 0]}: epsilon=None "
                    "comes to 0 and nothing matches it; pass epsilon, a positive number"
                )
        return series


class LCSS(SeriesDistance, names=["lcss"]):
    """1 - (length of the longest common subsequence) / (smaller length) (Vlachos et al. 2002).

    Points are common if |x_i - z_j| <= epsilon. A series is at distance 0 from every part of it.

    Parameters
    ----------
    window : float, default=None
        The share of the shorter length, from 0 to 1, by which an alignment may leave the diagonal.
        None means that there is no limit.
    epsilon : float, default=1.0
        The largest difference of common points, 0 or more.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Examples
    --------
    >>> from kreinlearn.kernels.series import LCSS
    >>> LCSS(epsilon=0.5)([[0.0, 1.0, 2.0, 3.0]], [[0.0, 1.0, 9.0, 9.0], [1.0, 3.0]])
    array([[0.5, 0. ]])
    """

    _steps = staticmethod(matches)
    _borders = 0.0, 0.0

    def __init__(
        self, window: float | None = None, epsilon: float = 1.0,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(window, channels_first, znormalize)
        self.epsilon = epsilon

    def _numbers(self, longest: int) -> Sequence[float]:
        not_negative(self.epsilon, "epsilon")
        return -1.0, np.inf, np.inf, 0.0

    def _prepared(self, x: Array) -> Array:
        return np.column_stack([x, np.full(len(x), np.nextafter(self.epsilon, np.inf))])

    def _scaled(self, d: Array, n: int, m: Array) -> Array:
        return np.asarray(1 + d / np.minimum(n, m))
