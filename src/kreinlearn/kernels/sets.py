"""Similarities of sets by what they have in common, after Jaccard and Tversky."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.data.tiles import length
from kreinlearn.kernels._compiled import compiled
from kreinlearn.kernels.base import Array, ObjectKernel, Objects, given
from kreinlearn.kernels.strings import as_tokens, distinct
from kreinlearn.kernels.vector_columns import not_negative

A_SET = "allowed are set, frozenset, or a list, tuple or 1-D array of hashable elements"
UNSEEN = -1  # the code of an element that no column has
Sets = list[Collection[Hashable]]  # without repeats


class Holders(NamedTuple):
    """Sets by element: sets ``holder[start[e]:start[e + 1]]`` have the element with code e."""

    start: Array  # (elements + 1,)
    holder: Array
    size: Array  # (m,), of the sets
    codes: dict[Hashable, int]


class SetKernel(ObjectKernel):
    """S(A, B) = c / (c + alpha p + beta q): c = |A & B|, p <= q the sizes of A - B and B - A."""

    alpha = 1.0
    beta = 1.0

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self._weights()
        return super().fit(X, rng)

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: object = None) -> Sets:
        return checked_sets(X, first, n or len(X))

    def packed_columns(self, Z: Objects) -> Holders:
        sets = self.packed(Z)
        codes = {element: i for i, element in enumerate(distinct(sets))}
        index, start = coded(sets, codes)
        holder = np.repeat(np.arange(len(sets)), np.diff(start))[np.argsort(index, kind="stable")]
        counts = np.bincount(index, minlength=len(codes))
        return Holders(np.append(0, np.cumsum(counts)), holder, np.diff(start), codes)

    def values(self, A: Sets, Z: Holders) -> Array:
        S = np.empty((len(A), len(Z.size)))
        _overlaps(*coded(A, Z.codes), Z.start, Z.holder, Z.size, *self._weights(), S)
        return np.subtract(1.0, S, out=S) if self.is_dissimilarity else S

    def diagonal(self, A: Objects) -> Array:
        return np.full(length(A), 0.0 if self.is_dissimilarity else 1.0)

    def _weights(self) -> tuple[float, float]:
        return not_negative(self.alpha, "alpha"), not_negative(self.beta, "beta")


class JaccardSets(SetKernel, names=["jaccard_sets"]):  # "jaccard" is scikit-learn's, on vectors
    """Jaccard's distance d(A, B) = 1 - |A & B| / |A | B| of two sets.

    It is 0 for two empty sets. Sets may be given as lists, in which repeats count once.

    Examples
    --------
    >>> from kreinlearn.kernels.sets import JaccardSets
    >>> JaccardSets()([{"a", "b"}, set()], [{"b", "c", "d"}, set()])
    array([[0.75, 1.  ],
           [1.  , 0.  ]])
    """

    is_dissimilarity = True


class Tversky(SetKernel, names=["tversky"]):
    """Tversky's similarity c / (c + alpha p + beta q) of two sets A and B.

    c is the size of A & B, and p <= q are the sizes of A - B and B - A. With alpha = beta this is
    Tversky's index (1 gives Jaccard's, 1/2 Dice's), otherwise its symmetric form. alpha = 1 and
    beta = 0 give the overlap coefficient of Szymkiewicz and Simpson.

    Parameters
    ----------
    alpha : float, default=1.0
        The weight of the smaller difference, 0 or more.
    beta : float, default=1.0
        The weight of the larger difference, 0 or more.
    is_dissimilarity : bool, default=False
        Whether the value is 1 minus the similarity.

    Examples
    --------
    >>> from kreinlearn.kernels.sets import Tversky
    >>> Tversky(alpha=0.5, beta=0.5)([{1, 2}], [{2, 3}, {2}, set()]).round(3)
    array([[0.5  , 0.667, 0.   ]])
    """

    def __init__(
        self, alpha: float = 1.0, beta: float = 1.0, is_dissimilarity: bool = False
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.is_dissimilarity = is_dissimilarity


def checked_sets(X: Sequence[Any], first: int, n: int) -> Sets:
    """Sets as they are, and lists without repeats; an error names object ``first + i`` of n."""
    for i, x in enumerate(X):
        if not isinstance(x, set | frozenset | list | tuple | np.ndarray):
            raise ValueError(f"object {first + i} (of {n}) is {given(x)}; {A_SET}")
    items = as_tokens(X, first, n, A_SET)
    return [x if isinstance(x, set | frozenset) else dict.fromkeys(x) for x in items]


def coded(sets: Sets, codes: dict[Hashable, int]) -> tuple[Array, Array]:
    """Codes of the elements end to end: those of set i are ``index[start[i]:start[i + 1]]``."""
    start = np.cumsum([0, *map(len, sets)])
    each = map(codes.get, chain.from_iterable(sets), repeat(UNSEEN))
    return np.fromiter(each, dtype=np.int64, count=int(start[-1])), start


@compiled
def _overlaps(
    index: Array, row: Array, start: Array, holder: Array, size: Array, alpha: float, beta: float,
    out: Array,
) -> None:  # fmt: skip
    """Write S into ``out`` (n, m); c is counted over the sets that hold each element.

    S of two empty sets is 1.
    """
    for i in range(len(row) - 1):
        c, n_i = out[i], row[i + 1] - row[i]
        c[:] = 0.0
        for e in index[row[i] : row[i + 1]]:
            if e != UNSEEN:
                for j in holder[start[e] : start[e + 1]]:
                    c[j] += 1.0
        for j in range(len(size)):
            p, q = min(n_i, size[j]) - c[j], max(n_i, size[j]) - c[j]
            whole = c[j] + alpha * p + beta * q
            both_empty = 1.0 if n_i + size[j] == 0 else 0.0
            c[j] = c[j] / whole if whole > 0 else both_empty
