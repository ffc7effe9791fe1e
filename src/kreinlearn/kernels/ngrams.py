"""Similarities of strings, bytes and sequences of tokens by the n-grams that they contain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import length, objects_of, take
from kreinlearn.kernels._counts import (
    BITS,
    ODD,
    CountKernel,
    Counts,
    each_from,
    hashed,
    places,
    text_code,
)
from kreinlearn.kernels.base import Array, Objects, given
from kreinlearn.kernels.strings import TextKernel, checked, distinct
from kreinlearn.kernels.vector_columns import evenly

KINDS = ("cosine", "counts", "min")


class Letters(NamedTuple):
    """Sequences end to end: sequence i is ``codes[start[i]:start[i + 1]]``."""

    codes: Array  # (N,) uint64, one per letter or token
    start: Array  # (n + 1,)
    kind: type | None  # str, bytes, or list for tokens


class NGrams(TextKernel, CountKernel, names=["ngrams"]):
    """The n-grams that two strings have in common: a spectrum kernel (Leslie et al. 2002).

    An n-gram is a run of n letters. With the counts a_p and z_p of all n-grams p of the chosen
    lengths, k(x, z) is sum_p a_p z_p / (sum_p a_p^2 sum_p z_p^2)^1/2, the cosine of the angle
    between the counts, or one of the two sums that ``kind`` names. It is positive semidefinite.

    Objects are strings, bytes, or sequences of tokens, which are texts or integers; n-grams of
    tokens are runs of n tokens. Letters are compared as they are: "A" is not "a". A string that is
    shorter than all n-grams has none, and the similarity 0 to every string and to itself.

    Parameters
    ----------
    lengths : tuple of two int, default=(1, 4)
        The least and the largest number of letters of an n-gram.
    kind : {"cosine", "counts", "min"}, default="cosine"
        The cosine, the sum of a_p z_p, or the sum of min(a_p, z_p), which is the number of n-grams
        in common. The last two grow with the lengths of the strings; ``normalized`` divides by
        their sizes.
    sublinear : bool, default=False
        Whether 1 + log(a_p) takes the place of every count a_p.
    idf : bool, default=False
        Whether counts are multiplied by inverse document frequencies, so that rare n-grams count
        more: by 1 + log((1 + N) / (1 + N_p)), where N_p of N objects of the fit contain the n-gram
        p. N is at most 2,048; of more objects so many are taken, which are evenly spaced in X.
        Together with ``sublinear`` these are the weights of scikit-learn's ``TfidfVectorizer``,
        but n-grams that do not occur in the fit have the weight of N_p = 0, and are not left out.

    Attributes
    ----------
    ngrams_ : array of shape (n_ngrams,)
        Hashes of the n-grams that occur in the fit, if ``idf``; otherwise it is empty.
    idf_ : array of shape (n_ngrams + 1,)
        Their weights; the last one is that of all other n-grams.

    Notes
    -----
    N-grams are compared by hashes of 64 bits. That two of a million differ but have the same hash
    has a probability of 3e-8. A value of two words of ten letters takes about 10 ns.

    Examples
    --------
    >>> from kreinlearn.kernels import NGrams
    >>> NGrams()(["tiger"], ["tigers", "tier", "hat", ""]).round(3)
    array([[0.882, 0.507, 0.109, 0.   ]])
    >>> NGrams(lengths=(2, 2), kind="min")([["to", "be", "or"]], [["not", "to", "be"]])
    array([[1.]])
    """

    pair_seconds = 1e-8

    def __init__(
        self,
        lengths: tuple[int, int] = (1, 4),
        kind: str = "cosine",
        sublinear: bool = False,
        idf: bool = False,
    ) -> None:
        self.lengths = lengths
        self.kind = kind
        self.sublinear = sublinear
        self.idf = idf

    @property
    def _smaller(self) -> bool:  # type: ignore[override]
        return self.kind == "min"

    @property
    def _divided(self) -> bool:  # type: ignore[override]
        return self.kind == "cosine"

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self._parameters()
        super().fit(X, rng)
        self.ngrams_, self.idf_ = np.empty(0, np.uint64), np.ones(1)
        if self.idf:
            some = objects_of(take(X, evenly(length(X))))
            counts = ngrams_of(self.check(some, 0, len(some), None), *self._parameters())
            self.ngrams_, holders = np.unique(counts.part, return_counts=True)
            self.idf_ = 1 + np.log((1 + len(some)) / (1 + np.append(holders, 0)))
        return self

    def _parameters(self) -> tuple[int, int]:
        """The least and the largest length of n-grams; an error if a parameter is not allowed."""
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is unknown; pass one of {KINDS}")
        lengths: Any = self.lengths
        pair = isinstance(lengths, Sequence) and len(lengths) == 2
        good = pair and all(isinstance(l, Integral) and not isinstance(l, bool) for l in lengths)
        if not good or not 1 <= lengths[0] <= lengths[1]:
            raise ValueError(
                f"lengths={lengths!r} must be two whole numbers, the least and the largest number "
                "of letters of an n-gram, such as (1, 4); the first is at least 1"
            )
        return int(lengths[0]), int(lengths[1])

    def check(self, X: Objects, first: int, n: int, like: Any) -> Letters:
        return letters_of(X, first, n or len(X), like.kind if like else None)

    def features(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Counts:
        counts = ngrams_of(self.check(X, first, n, like), *self._parameters())
        times = 1 + np.log(counts.times) if self.sublinear else counts.times
        if self.idf:
            check_is_fitted(self, "idf_")
            at, known = places(counts.part, self.ngrams_)
            times = times * self.idf_[np.where(known, at, -1)]
        return counts._replace(times=times)


def letters_of(X: Sequence[Any], first: int, n: int, kind: type | None) -> Letters:
    """Sequences end to end, all of one kind; an error names object ``first + i`` of n."""
    items, kind, _ = checked(X, first, n, kind)
    start = np.cumsum([0, *map(len, items)])
    if kind is list:
        codes = _token_codes(items, first, n)
    elif kind is bytes:
        codes = np.frombuffer(b"".join(items), np.uint8)
    else:
        codes = np.frombuffer("".join(items).encode("utf-32-le", "surrogatepass"), np.uint32)
    return Letters(codes.astype(np.uint64), start, kind)


def _token_codes(items: Sequence[Sequence[Any]], first: int, n: int) -> Array:
    """Codes of all tokens end to end."""
    allowed = (str, Integral, np.bool_)
    if not all(issubclass(kind, allowed) for kind in set(map(type, chain(*items)))):
        i, bad = next((i, t) for i, x in enumerate(items) for t in x if not isinstance(t, allowed))
        raise ValueError(
            f"object {first + i} (of {n}) holds {given(bad)}; tokens whose n-grams are counted are "
            "texts or integers: turn others into texts"
        )
    tokens: dict[Any, None] = distinct(items)
    code = {t: text_code(t) if isinstance(t, str) else int(t) & BITS for t in tokens}
    size = sum(map(len, items))
    return np.fromiter(map(code.__getitem__, chain(*items)), dtype=np.uint64, count=size)


def ngrams_of(letters: Letters, least: int, most: int) -> Counts:
    """Counts of the n-grams of each sequence, of all lengths from ``least`` to ``most``."""
    codes, start, kind = letters
    sizes = np.diff(start)
    many = [np.maximum(sizes - l + 1, 0) for l in range(1, most + 1)]
    ends = np.append(0, np.cumsum(np.sum(many[least - 1 :], axis=0)))
    part, place = np.empty(ends[-1], np.uint64), ends[:-1].copy()
    one = hashed(codes, 1)
    grams = one
    for l in range(1, min(most, int(sizes.max(initial=0))) + 1):
        if l > 1:
            grams = hashed(np.uint64(ODD) * grams[:-1] + one[l - 1 :], l)  # in this order
        if l >= least:
            part[each_from(place, many[l - 1])] = grams[each_from(start[:-1], many[l - 1])]
            place += many[l - 1]
    for i in range(len(sizes)):
        part[ends[i] : ends[i + 1]].sort()
    first = np.append(True, part[1:] != part[:-1])[: len(part)]
    first[ends[:-1][ends[:-1] < len(part)]] = True
    begins = np.flatnonzero(first)
    times = np.diff(begins, append=len(part)).astype(np.float64)
    return Counts(np.append(0, np.cumsum(first))[ends], part[begins], times, kind)
