"""A similarity of time series by how often they are like short patterns, as MiniRocket counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import length, objects_of, take
from kreinlearn.kernels._compiled import as_written
from kreinlearn.kernels.base import Array, Objects, product
from kreinlearn.kernels.features import FeatureKernel, parts_of
from kreinlearn.kernels.series_base import Series, SeriesKernel
from kreinlearn.kernels.vector_columns import evenly, number

POINTS = 9  # of a pattern: six weights are -1, and three are 2
TWOS = np.array(list(combinations(range(POINTS), 3)))  # where the weights are 2
PATTERNS = len(TWOS)  # 84
DILATIONS = 32  # at most
MOST_CHANNELS = 9  # of one convolution
GOLDEN = (1 + 5**0.5) / 2
LARGEST = float(np.finfo(np.float32).max)
STEPS = 2.0**13  # standardised features are rounded to multiples of 1 / STEPS,
FARTHEST = 45.25 * STEPS  # and end there: no deviation of n numbers exceeds (n - 1)^1/2
MOST = 2**16  # features, so that MOST * FARTHEST^2 < 2^53: all sums of products are exact
COUNT = f"pass a whole number from {PATTERNS} to {MOST}"
HELD = 256  # series whose features are multiplied at once in double precision,
AT_ONCE = 16  # and that are standardised at once, so that they stay in cache


class Shares(NamedTuple):
    """Standardised features in steps: whole numbers, which single precision holds."""

    values: Array  # (n, n_features) float32
    channels: int  # of the series

    @property
    def n_bytes(self) -> int:
        return self.values.nbytes

    def take(self, places: Array) -> Self:
        """The features of some of the series."""
        return self._replace(values=self.values[places])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The features of several sequences of series, one after the other."""
        return cls(np.concatenate([one.values for one in parts]), parts[0].channels)


class Convolutions(FeatureKernel, SeriesKernel, names=["convolutions"]):
    """The mean product of the features of MiniRocket of two series (Dempster et al. 2021).

    A feature is the share of all times at which sum_i w_i x_(t + (i - 4) d) exceeds a bias. The
    nine weights w are six times -1 and three times 2, in all 84 orders, and d is a dilation. Every
    order has several dilations, from 1 to what the longest series has room for. The biases are
    quantiles of this sum in series of the fit that are drawn at random. Beyond its ends a series is
    taken to be zero; every other order of weights counts only the times at which all nine points
    lie inside, unless a series is too short for any. Of several channels up to nine are drawn for
    each order and dilation, and their sums are added up.

    k(x, z) is the mean of f(x) f(z) over all features f, each less its mean and divided by its
    standard deviation in the fit. Features that are constant there are left out. k is positive
    semidefinite.

    Parameters
    ----------
    n_features : int, default=9996
        The number of features, from 84 to 65,536; it is rounded down to a multiple of 84.
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.

    Attributes
    ----------
    dilations_ : array of shape (n_features // 84,)
        The dilations of each order of weights, one for every bias, in rising order.
    channels_ : array of shape (n_dilations * 84, n_channels)
        Whether a channel takes part, for each order of weights within each distinct dilation.
    biases_ : array of shape (n_features,)
        The biases, in the same order.
    mean_, scale_ : array of shape (n_features,)
        Means and standard deviations of the features, zero for those that are left out. They are
        taken from up to 2,048 series, which are evenly spaced in X, as all that is fitted.

    Notes
    -----
    A fit evaluates the features of each series once, which takes about 0.1 ms for 100 points; a
    block of values is one product of them. The features of a landmark take 80 kB of memory, and
    those of a series among which landmarks are chosen 40 kB.

    Series are rounded to single precision. Standardised features are rounded to multiples of 1/8192
    and end at 45.25 on either side, which none of 2,048 series exceeds. So their products and the
    sums of these are exact in double precision, and k(x, z) has the same bits in every block,
    whatever the order of the sum and the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import Convolutions
    >>> t = np.arange(60)
    >>> slow, fast = [np.sin(t / 9 + s) for s in range(5)], [np.sin(t / 2 + s) for s in range(5)]
    >>> kernel = Convolutions().fit(slow + fast, np.random.default_rng(0))
    >>> kernel([np.sin(t / 8)], [slow[0], fast[0]]).round(1)
    array([[ 1. , -0.5]])
    """

    is_dissimilarity = False
    rows_at_once = HELD

    def __init__(
        self, n_features: int = 9996, channels_first: bool = False, znormalize: bool = False
    ) -> None:
        super().__init__(channels_first, znormalize)
        self.n_features = n_features

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        n = number(self.n_features, "n_features", COUNT, least=PATTERNS, most=MOST, kind=Integral)
        super().fit(X, rng)
        some = objects_of(take(X, evenly(length(X))))
        series, channels = self.check(some, 0, len(some), None)
        self.dilations_ = dilations_for(max(map(len, series)), int(n) // PATTERNS)
        n_sums = PATTERNS * len(np.unique(self.dilations_))
        self.channels_ = drawn_channels(n_sums, channels, rng)
        self.biases_ = self._quantiles(series, rng)
        F = self.shares(series)
        varies = np.ptp(F, axis=0) > 0
        self.mean_ = F.mean(axis=0)
        F -= self.mean_
        self.scale_ = np.where(varies, np.sqrt(np.einsum("ij,ij->j", F, F) / len(F)), 0.0)
        return self

    def _quantiles(self, series: list[Array], rng: np.random.Generator) -> Array:
        """Quantiles of each sum in a series that is drawn for it."""
        dilations, n_biases = np.unique(self.dilations_, return_counts=True)
        levels = np.arange(1, PATTERNS * len(self.dilations_) + 1) * GOLDEN % 1
        sums = zip(
            np.repeat(dilations, PATTERNS),
            np.tile(TWOS, (len(dilations), 1)),
            self.channels_,
            rng.integers(len(series), size=len(self.channels_)),
            np.split(levels, np.cumsum(np.repeat(n_biases, PATTERNS))[:-1]),
            strict=True,
        )
        parts = [
            np.quantile(summed(series[i][:, chosen], d, twos), q) for d, twos, chosen, i, q in sums
        ]
        return np.concatenate(parts)

    def check(self, X: Objects, first: int, n: int, like: Any) -> Series:
        """Series in single precision."""
        series = SeriesKernel.packed(self, X, first, n, like)
        for i, x in enumerate(series.items):
            if (largest := np.abs(x).max()) > LARGEST:
                raise ValueError(
                    f"object {first + i} (of {n or len(X)}) has numbers of up to {largest:.3g}, "
                    f"convolutions take up to {LARGEST:.2g}; divide all series by a number, or "
                    "pass znormalize=True"
                )
        return Series([x.astype(np.float32) for x in series.items], series.channels)

    def features(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Shares:
        check_is_fitted(self, "scale_", msg="biases are taken from series: fit the kernel first")
        channels = self.channels_.shape[1]
        series = self.check(X, first, n, Series([], channels)).items
        F = np.empty((len(series), len(self.biases_)), np.float32)
        for here in parts_of(len(series), AT_ONCE):
            F[here] = self._standardised(series[here])
        return Shares(F, channels)

    def as_columns(self, features: Shares) -> Shares:
        """In double precision, in which all sums of products are exact."""
        return features._replace(values=features.values.astype(np.float64))

    def shares(self, series: list[Array]) -> Array:  # (n, n_features)
        """The features as they are: shares of times."""
        F = np.empty((len(series), len(self.biases_)))
        dilations, n_biases = np.unique(self.dilations_, return_counts=True)
        for x, out in zip(series, F, strict=True):
            parts, C = buffers(x)
            _count(x, dilations, n_biases, self.channels_, self.biases_, TWOS, parts, C, out)
        return F

    def _standardised(self, series: list[Array]) -> Array:  # (n, n_features)
        """Features in whole steps, zero where they are left out."""
        F = self.shares(series)
        F -= self.mean_
        F *= np.divide(STEPS, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        return np.clip(np.rint(F, out=F), -FARTHEST, FARTHEST, out=F)

    def _mean(self, sums: Array) -> Array:
        """Means over the features that are not left out."""
        return np.asarray(sums / (STEPS**2 * max(int(np.count_nonzero(self.scale_)), 1)))

    def values(self, A: Shares, Z: Shares) -> Array:
        sums = np.empty((len(A.values), len(Z.values)))
        for here in parts_of(len(sums), HELD):
            product(A.values[here].astype(np.float64), Z.values.T, sums[here])
        return self._mean(sums)

    def square(self, Z: Objects) -> Array:
        """k(Z, Z), which is exactly symmetric because all sums are exact."""
        F = self.packed_columns(Z).values
        return self._mean(F @ F.T)

    def _each_with_itself(self, A: Objects) -> Array:
        squares = partial(np.einsum, "ij,ij->i", dtype=np.float64)
        return self._mean(self.in_parts(A, lambda F: squares(F.values, F.values)))


def dilations_for(longest: int, n_biases: int) -> Array:
    """For each bias a dilation, up to that with which nine points span the longest series."""
    n = min(n_biases, DILATIONS)
    exponents = np.linspace(0, np.log2(max((longest - 1) / (POINTS - 1), 1)), n)
    dilations = np.floor(2**exponents).astype(np.intp)
    return np.asarray(dilations[np.arange(n_biases) * n // n_biases])


def drawn_channels(n_sums: int, channels: int, rng: np.random.Generator) -> Array:
    """Which channels are added up in each sum: most often few, at least one."""
    most = np.log2(min(channels, MOST_CHANNELS) + 1)
    how_many = np.floor(2 ** rng.uniform(0, most, (n_sums, 1)))
    ranks = rng.random((n_sums, channels)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < how_many)


def buffers(x: Array) -> tuple[Array, Array]:
    return np.empty((x.shape[1], POINTS + 1, len(x))), np.empty(len(x))


def summed(x: Array, d: int, twos: Array) -> Array:
    """The sums of a series (length, channels) with weights 2 at ``twos`` at all times."""
    parts, C = buffers(x)
    _shift(np.ascontiguousarray(x), d, parts)
    _add(parts, np.full(x.shape[1], True), twos, C)
    return C


@as_written
def _count(
    x: Array,
    dilations: Array,
    n_biases: Array,
    channels: Array,
    biases: Array,
    twos: Array,
    parts: Array,
    C: Array,
    out: Array,
) -> None:
    """Shares of the times at which sums of shifted series x (length, channels) exceed biases.

    ``parts`` and ``C`` are what ``_shift`` and ``_add`` write to.
    """
    f = 0
    for j in range(len(dilations)):
        _shift(x, dilations[j], parts)
        for k in range(len(twos)):
            _add(parts, channels[j * len(twos) + k], twos[k], C)
            reach = POINTS // 2 * dilations[j]
            inside = (j + k) % 2 == 1 and len(C) > 2 * reach
            counted = C[reach : len(C) - reach] if inside else C
            for _ in range(n_biases[j]):
                out[f] = _times_above(counted, biases[f]) / len(counted)
                f += 1


@as_written
def _shift(x: Array, d: int, parts: Array) -> None:
    """Three times x, shifted by i d for nine i, and minus the sum of all: (channels, 10, length).

    Of these a sum with weights -1 and 2 takes three additions.
    """
    parts[:] = 0.0
    for c in range(x.shape[1]):
        for i in range(POINTS):
            by = (i - POINTS // 2) * d
            for t in range(max(0, -by), min(len(x), len(x) - by)):
                parts[c, i, t] = 3.0 * x[t + by, c]
                parts[c, POINTS, t] -= x[t + by, c]


@as_written
def _add(parts: Array, chosen: Array, twos: Array, C: Array) -> None:
    """The sum with weights 2 at ``twos`` and -1 elsewhere, over the chosen channels."""
    a, b, e = twos
    C[:] = 0.0
    for c in range(len(parts)):
        if chosen[c]:
            for t in range(len(C)):
                C[t] += parts[c, POINTS, t] + parts[c, a, t] + parts[c, b, t] + parts[c, e, t]


@as_written
def _times_above(C: Array, bias: float) -> int:
    n = 0
    for t in range(len(C)):
        n += C[t] > bias
    return n
