"""Strings that are compared place by place, as where a place has a meaning of its own."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.kernels._compiled import as_written
from kreinlearn.kernels._counts import divide
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.kernels.ngrams import letters_of
from kreinlearn.kernels.strings import TextKernel


class Placed(NamedTuple):
    """Sequences end to end: sequence i is ``codes[start[i]:start[i + 1]]``."""

    codes: Array  # (N,) uint64, one per letter or token
    start: Array  # (n + 1,)
    kind: type | None  # str, bytes, or list for tokens
    own: Array  # (n,) s(x, x), see WeightedDegree


class WeightedDegree(TextKernel, names=["weighted_degree"]):
    """The runs of letters that two strings have at the same places, or nearly so.

    This is the weighted degree kernel with shifts (Rätsch, Sonnenburg & Schölkopf 2005) of strings
    whose places have a meaning, such as DNA around a splice site. With the run x[l, d] of d letters
    from place l on, and 1[...] for 1 where two runs are equal and else 0,

    s(x, z) = sum_d b_d sum_l (1[x[l, d] = z[l, d]] + sum_e (1[x[l + e, d] = z[l, d]]
    + 1[x[l, d] = z[l + e, d]]) / (2 (e + 1)))

    for d = 1, ..., D = ``degree`` and e = 1, ..., ``shift``, b_d = 2 (D - d + 1) / (D (D + 1)). The
    kernel is k(x, z) = s(x, z) / (s(x, x) s(z, z))^1/2.

    Objects are strings, bytes, or sequences of tokens, which are texts or integers. An empty string
    has the similarity 0 to every string and to itself.

    Parameters
    ----------
    degree : int, default=6
        The largest number of letters of a run that counts.
    shift : int, default=3
        The number of places by which equal runs may be apart.
    pad : bool, default=False
        Whether strings of unequal lengths are compared, both from their first letter on: places
        that only the longer one has are equal to nothing. Otherwise they are an error.

    Notes
    -----
    The kernel is positive semidefinite for every ``degree`` and ``shift``, and with ``pad`` for
    strings of any lengths: the weights of places that are e apart are 1, 1/4, 1/6, ...,
    1 / (2 (shift + 1)), 0, 0, ..., a positive definite sequence, because
    1/2 + sum_e cos(e t) / (e + 1) is never negative (Rogosinski & Szegö 1928).

    Examples
    --------
    >>> from kreinlearn.kernels import WeightedDegree
    >>> WeightedDegree()(["GATTACA"], ["GATTACA", "GATCACA", "AGATTAC"]).round(3)
    array([[1.   , 0.596, 0.285]])
    >>> WeightedDegree(shift=0)(["GATTACA"], ["AGATTAC"]).round(3)
    array([[0.054]])
    >>> WeightedDegree(pad=True)([["to", "be"]], [["to", "be", "or"]]).round(3)
    array([[0.729]])
    """

    pair_seconds = 5e-7

    def __init__(self, degree: int = 6, shift: int = 3, pad: bool = False) -> None:
        self.degree = degree
        self.shift = shift
        self.pad = pad

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self._parameters()
        return super().fit(X, rng)

    def _parameters(self) -> tuple[Array, int]:
        """What a place is worth by the letters of the equal run that ends there, and the shift."""
        for name, least in {"degree": 1, "shift": 0}.items():
            value: Any = getattr(self, name)
            if type(value) is bool or not isinstance(value, Integral) or int(value) < least:
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
        b = np.arange(self.degree, 0, -1)  # b_d D (D + 1) / 2, so that sums of them are exact
        return np.append(0.0, np.cumsum(b)), int(self.shift)

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Placed:
        n = n or len(X)
        codes, start, kind = letters_of(X, first, n, like.kind if like else None)
        if not self.pad:
            check_one_length(np.diff(start), np.diff(like.start[:2]) if like else (), first, n)
        own = np.zeros(len(start) - 1)
        _own(codes, start, *self._parameters(), own)
        return Placed(codes, start, kind, own)

    def values(self, A: Placed, Z: Placed) -> Array:
        S = np.zeros((len(A.own), len(Z.own)))
        _scores(A.codes, A.start, Z.codes, Z.start, *self._parameters(), S)
        divide(S, A.own, Z.own)
        return S

    def diagonal(self, A: Objects) -> Array:
        return np.sign(self.packed(A).own)


def check_one_length(sizes: Array, like: Sequence[int] | Array, first: int, n: int) -> None:
    """Raise an error that names the first object whose length is not that of ``like``."""
    expected = [*like, *sizes][:1]
    if (sizes != expected).any():
        i = int(np.argmax(sizes != expected))
        raise ValueError(
            f"object {first + i} (of {n}) has {sizes[i]} letters or tokens where others have "
            f"{expected[0]}; pass pad=True if all begin at the same place, or take a kernel for "
            'strings of any lengths, such as "ngrams"'
        )


@as_written
def _runs(x: Array, z: Array, worth: Array) -> float:
    """The sum over the places of two strings of what the equal run that ends there is worth."""
    total, run = 0.0, 0
    for i in range(min(len(x), len(z))):
        run = min(run + 1, len(worth) - 1) if x[i] == z[i] else 0
        total += worth[run]
    return total


@as_written
def _score(x: Array, z: Array, worth: Array, shift: int) -> float:
    """s(x, z) D (D + 1) / 2; the same bits as s(z, x), because sums of runs are whole numbers."""
    total = _runs(x, z, worth)
    for e in range(1, min(shift + 1, max(len(x), len(z)))):
        total += (_runs(x[e:], z, worth) + _runs(x, z[e:], worth)) / (2.0 * (e + 1))
    return total


@as_written
def _scores(
    x: Array, x_start: Array, z: Array, z_start: Array, worth: Array, shift: int, S: Array
) -> None:
    for i in range(len(S)):
        row = x[x_start[i] : x_start[i + 1]]
        for j in range(S.shape[1]):
            S[i, j] = _score(row, z[z_start[j] : z_start[j + 1]], worth, shift)


@as_written
def _own(x: Array, start: Array, worth: Array, shift: int, own: Array) -> None:
    for i in range(len(own)):
        row = x[start[i] : start[i + 1]]
        own[i] = _score(row, row, worth, shift)
