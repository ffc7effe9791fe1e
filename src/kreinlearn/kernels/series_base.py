"""Time series of any length and any number of channels, and what all elastic distances share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import length, objects_of, take
from kreinlearn.kernels._elastic import moves, row_of, warp
from kreinlearn.kernels.base import Array, ObjectKernel, Objects, given
from kreinlearn.kernels.vector_columns import number

COUNTED = 100  # series of a fit whose lengths say what a distance costs
CALL, CHANNEL = 5e-7, 1.5e-10  # seconds of a distance, and of a channel for each pair of points
GAPS = "fill the gap, or leave the time out (lengths may differ)"


class Series(NamedTuple):
    """Series as arrays of shape (length, channels), and the number of their channels."""

    items: list[Array]  # (length, channels) each, float64
    channels: int  # 0 if there is none


class JoinedSeries(NamedTuple):
    """Series end to end, as they are compared: series j is ``points[start[j]:start[j + 1]]``."""

    points: Array  # (N, width)
    start: Array  # (m + 1,)
    channels: int  # of the series given


class SeriesKernel(ObjectKernel):
    """A dissimilarity of series (length,) or (length, channels), whose lengths may differ.

    Parameters
    ----------
    channels_first : bool, default=False
        Whether series with several channels are given as (channels, length).
    znormalize : bool, default=False
        Whether every channel of every series is compared without its mean and divided by its
        standard deviation. A constant channel becomes zero.
    """

    is_dissimilarity = True
    _shortest = 1

    def __init__(self, channels_first: bool = False, znormalize: bool = False) -> None:
        self.channels_first = channels_first
        self.znormalize = znormalize

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        super().fit(X, rng)
        self._warn_if_turned(X)
        return self

    def _warn_if_turned(self, X: Objects) -> None:
        """Warn if no series has as many points as channels: the two seem to be exchanged."""
        shapes = (self._checked(x, "a series").shape for x in objects_of(X))
        if length(X) and all(points < channels for points, channels in shapes):
            points, channels = self._checked(objects_of(X)[0], "a series").shape
            warn(
                f"all series have fewer points than channels, the first {points} and {channels}; "
                f"if they are turned round, pass channels_first={not self.channels_first}"
            )

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Series:
        n = n or len(X)
        items = [self._checked(x, f"object {first + i} (of {n})") for i, x in enumerate(X)]
        channels = (like and like.channels) or (items[0].shape[1] if items else 0)
        for i, x in enumerate(items):
            if x.shape[1] != channels:
                raise ValueError(
                    f"object {first + i} (of {n}) has {x.shape[1]} channels, the others have "
                    f"{channels}; all series must have the same number ({self._shape()})"
                )
        return Series(list(map(znormalized, items)) if self.znormalize else items, channels)

    def _checked(self, x: object, name: str) -> Array:
        """One series as an array of shape (length, channels); an error names it."""
        if np.ma.is_masked(x):
            raise ValueError(f"{name} has masked values; {GAPS}")
        values = np.empty(0)
        with suppress(ValueError):  # rows of unequal length
            if isinstance(x, Sequence) or hasattr(x, "__array__"):
                values = np.asarray(x)
        if values.ndim not in (1, 2) or values.dtype.kind not in "fiub" or not values.size:
            raise ValueError(
                f"{name} is {given(x)}; a time series is an array of numbers, not empty, "
                f"none missing: {self._shape()}"
            )
        if values.ndim == 1:
            values = values[:, None]
        elif self.channels_first:
            values = values.T
        values = np.require(values, np.float64, ["C", "A", "W"])  # one type for the compiler
        if not np.isfinite(values).all():
            t, c = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(
                f"{name} is {values[t, c]} at time {t} in channel {c}; series must be finite: "
                f"{GAPS}"
            )
        if len(values) < self._shortest:
            raise ValueError(
                f"{name} has {len(values)} points; this distance needs at least {self._shortest} "
                f"({self._shape()})"
            )
        return values

    def _shape(self) -> str:
        """The shapes that are accepted, for an error."""
        order = "(channels, length) as channels_first=True"
        return f"(length,) or {order if self.channels_first else '(length, channels)'}"


def znormalized(x: Array) -> Array:  # (length, channels) -> the same
    """Every channel minus its mean, divided by its standard deviation; zeros if it is constant.

    Channels are first divided by a power of two, which is exact, so that no square overflows.
    """
    x = np.ldexp(x, -np.frexp(np.abs(x).max(axis=0))[1])
    scale = x.std(axis=0)
    differs = (x != x[0]).any(axis=0) & (scale > 0)  # rounding may give constants a scale
    return np.where(differs, (x - x.mean(axis=0)) / np.where(differs, scale, 1.0), 0.0)


class SeriesDistance(SeriesKernel):
    """An elastic distance of series (length,) or (length, channels), whose lengths may differ.

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
    """

    _steps: ClassVar[Any] = staticmethod(warp)
    _borders = np.inf, np.inf  # what any beginning costs, and any place outside of the window
    _cell_seconds = 1.5e-9  # about how long one pair of points takes, beside its channels
    _cells, _width = 4e3, 1.0  # pairs of points of two series, and channels, until ``fit`` counts

    def __init__(
        self, window: float | None = None,
        channels_first: bool = False, znormalize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(channels_first, znormalize)
        self.window = window

    def _numbers(self, longest: int) -> Sequence[float] | Array:
        """The parameters of the steps, for series of up to some length."""
        return (0.0,)

    def _window(self) -> float:
        if self.window is None:
            return 1.0
        what = "pass a share of the length from 0 to 1, or None for no limit"
        return number(self.window, "window", what, least=0.0, most=1.0)

    def _prepared(self, x: Array) -> Array:
        """What is compared in place of x: (length, channels) -> (length', width), in C order."""
        return x

    def _scaled(self, d: Array, n: int, m: Array) -> Array:
        """Distances by their costs, and by the lengths of one series and of the others."""
        return d

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self._window(), self._numbers(0)
        super().fit(X, rng)
        some = self.packed(objects_of(take(X, np.arange(min(COUNTED, length(X))))))
        points, self._width = np.mean([self._prepared(x).shape for x in some.items], 0).tolist()
        self._cells = points * (1 + points * min(1.0, 2 * self._window()))
        return self

    @property
    def pair_seconds(self) -> float:  # type: ignore[override]
        """About how long one value takes, by the lengths of the first series of the fit."""
        return CALL + (self._cell_seconds + CHANNEL * self._width) * self._cells

    def packed_columns(self, Z: Objects) -> JoinedSeries:
        self._window(), self._numbers(0)  # before they are used
        items, channels = self.packed(Z)
        parts = [self._prepared(x) for x in items]
        points = np.concatenate(parts) if parts else np.empty((0, channels))
        return JoinedSeries(points, np.cumsum([0, *map(len, parts)]), channels)

    def _fill(self, out: Array, x: Array, Z: JoinedSeries, first: int = 0) -> None:
        """Write the distances of x, prepared, from all columns from ``first`` on."""
        lengths = np.diff(Z.start)
        longest = max(len(x), lengths.max(initial=0))
        numbers = np.array(self._numbers(longest), dtype=np.float64)
        parts = Z.channels if self._steps is moves else 1
        pairs = x, Z.points, Z.start, parts, numbers, self._window(), *self._borders
        row_of(self._steps)(*pairs, first, np.empty((2, longest + 1)), out)
        out[first:] = self._scaled(out[first:], len(x), lengths[first:])

    def values(self, A: Series, Z: JoinedSeries) -> Array:
        D = np.empty((len(A.items), len(Z.start) - 1))
        for x, out in zip(A.items, D, strict=True):
            self._fill(out, self._prepared(x), Z)
        return D

    def square(self, Z: Objects) -> Array:
        """k(Z, Z) with every pair evaluated once, and zero for a series and itself."""
        joined = self.packed_columns(Z)
        points, start, _ = joined
        D = np.zeros((len(start) - 1, len(start) - 1))
        for i, out in enumerate(D):
            self._fill(out, points[start[i] : start[i + 1]], joined, i + 1)
        return D + D.T
