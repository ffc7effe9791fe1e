"""Dissimilarities of strings, bytes and sequences of tokens, evaluated by rapidfuzz."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.kernels.base import Array, ObjectKernel, Objects, given

LONG = 1000  # letters, from which on equal sequences are looked for
OTHER = "\0"  # the character of every token that no column has
ALLOWED = "allowed are str, bytes, or a list, tuple or 1-D array of hashable tokens, all of a kind"


class Sequences(NamedTuple):
    """Sequences of one kind: ``str``, ``bytes``, or ``list`` for tokens; None if there are none.

    Columns of tokens are spelled with one character per distinct token, as ``codes`` says.
    """

    items: list[Any]
    kind: type | None
    codes: Mapping[Hashable, str] | None = None


class TextKernel(ObjectKernel):
    """A kernel whose objects may be strings; one string is refused instead of read as letters."""

    def __call__(self, A: Objects, B: Objects | None = None) -> Array:
        for X in (A, B):
            if isinstance(X, str | bytes):
                raise TypeError(f"a list of strings is wanted, got {given(X)}; pass [it] for one")
        return super().__call__(A, B)


class StringDistance(TextKernel):
    """A distance of rapidfuzz between strings, bytes or sequences of tokens."""

    pair_seconds = 2e-7

    is_dissimilarity = True
    normalized = False
    _metric = ""  # in rapidfuzz.distance

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self._keywords()
        return super().fit(X, rng)

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Sequences:
        return checked(X, first, n or len(X), like.kind if like else None)

    def packed_columns(self, Z: Objects) -> Sequences:
        columns = self.packed(Z)
        if columns.kind is not list:
            return columns
        codes = {token: chr(i) for i, token in enumerate(distinct(columns.items), start=1)}
        return Sequences(spelled(columns.items, codes), list, codes)

    def values(self, A: Sequences, Z: Sequences) -> Array:
        from rapidfuzz import distance, process

        metric = getattr(distance, self._metric)
        scorer = metric.normalized_distance if self.normalized else metric.distance
        rows = A.items if Z.codes is None else spelled(A.items, Z.codes)
        cdist: Any = process.cdist
        distances = partial(cdist, scorer=scorer, dtype=np.float64, scorer_kwargs=self._keywords())
        twice = long_and_equal(rows, Z.items)
        if not twice:
            return np.asarray(distances(rows, Z.items))
        return with_zeros(distances, rows, Z.items, twice)

    def _keywords(self) -> dict[str, Any]:
        """Keyword arguments of rapidfuzz's function, checked."""
        return {}


class EditDistance(StringDistance):
    """A distance that counts edits; ``normalized`` divides by the largest one for such lengths."""

    def __init__(self, normalized: bool = False) -> None:
        self.normalized = normalized


class Levenshtein(EditDistance, names=["levenshtein"]):
    """The Levenshtein distance: the least cost of edits that turn one string into the other.

    Edits are insertions, deletions and substitutions. Objects are strings, bytes or sequences of
    tokens.

    Parameters
    ----------
    weights : tuple of three int, default=(1, 1, 1)
        The costs of an insertion, a deletion and a substitution, positive integers. The first two
        must be equal, because d(x, z) = d(z, x) would not hold otherwise.
    normalized : bool, default=False
        Whether the distance is divided by the largest one that two sequences of such lengths can
        have.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import Levenshtein
    >>> Levenshtein()(["kitten", "mitten"], ["sitting", ""])
    array([[3., 6.],
           [3., 6.]])
    >>> Levenshtein(weights=(1, 1, 2))([["to", "be"]], [["to", "do"]])
    array([[2.]])
    """

    _metric = "Levenshtein"

    def __init__(self, weights: tuple[int, int, int] = (1, 1, 1), normalized: bool = False) -> None:
        super().__init__(normalized)
        self.weights = weights

    def _keywords(self) -> dict[str, Any]:
        weights: Any = self.weights
        three = isinstance(weights, Sequence) and len(weights) == 3
        if not three or not all(isinstance(w, Integral) and int(w) > 0 for w in weights):
            raise ValueError(
                f"weights={weights!r} must be three positive integers, the costs of an insertion, "
                "a deletion and a substitution; multiply all by a constant if need be"
            )
        if weights[0] != weights[1]:
            raise ValueError(
                f"weights={weights!r}: an insertion one way is a deletion the other way, so that "
                "d(x, z) = d(z, x) holds only if both cost the same; pass equal costs"
            )
        return {"weights": tuple(map(int, weights))}


class DamerauLevenshtein(EditDistance, names=["damerau_levenshtein"]):
    """The least number of edits that turn one string into the other, swaps of neighbours included.

    The other edits are insertions, deletions and substitutions. This is the unrestricted distance
    of Damerau and Levenshtein, of strings, bytes or sequences of tokens.

    Parameters
    ----------
    normalized : bool, default=False
        Whether the distance is divided by the largest one that two sequences of such lengths can
        have.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import DamerauLevenshtein
    >>> DamerauLevenshtein()(["form"], ["from", "fa"])
    array([[1., 3.]])
    """

    _metric = "DamerauLevenshtein"


class Indel(EditDistance, names=["indel"]):
    """The least number of insertions and deletions that turn one string into the other.

    It is |x| + |z| - 2 LCS(x, z), where LCS is the length of the longest common subsequence.
    Objects are strings, bytes or sequences of tokens.

    Parameters
    ----------
    normalized : bool, default=False
        Whether the distance is divided by the largest one that two sequences of such lengths can
        have.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import Indel
    >>> Indel(normalized=True)(["form"], ["from", "", "form"])
    array([[0.25, 1.  , 0.  ]])
    """

    _metric = "Indel"


class LCS(EditDistance, names=["lcs"]):
    """max(|x|, |z|) - LCS(x, z), where LCS is the length of the longest common subsequence.

    Objects are strings, bytes or sequences of tokens.

    Parameters
    ----------
    normalized : bool, default=False
        Whether the distance is divided by the largest one that two sequences of such lengths can
        have.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import LCS
    >>> LCS()(["form"], ["from", "f", "form"])
    array([[1., 3., 0.]])
    """

    _metric = "LCSseq"


class Hamming(EditDistance, names=["hamming_strings"]):  # "hamming" is scikit-learn's, on vectors
    """The number of places in which two strings differ.

    Places that only the longer string has count as different. Objects are strings, bytes or
    sequences of tokens.

    Parameters
    ----------
    normalized : bool, default=False
        Whether the distance is divided by the largest one that two sequences of such lengths can
        have.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import Hamming
    >>> Hamming()(["form"], ["firm", "format", ""])
    array([[1., 2., 4.]])
    """

    _metric = "Hamming"


class Jaro(StringDistance, names=["jaro"]):
    """Jaro's distance 1 - (m / |x| + m / |z| + (m - t) / m) / 3.

    m is the number of letters in common, and t the number of those that are out of order. Letters
    are in common only if they are at most max(|x|, |z|) / 2 - 1 places apart. Objects are strings,
    bytes or sequences of tokens.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import Jaro
    >>> Jaro()(["MARTHA"], ["MARHTA", "MARTHA", ""]).round(4)
    array([[0.0556, 0.    , 1.    ]])
    """

    _metric = "Jaro"


class JaroWinkler(Jaro, names=["jaro_winkler"]):
    """Jaro's distance, made smaller for strings with a common prefix.

    A distance below 0.3 is multiplied by 1 - l * prefix_weight, where l is the number of letters,
    at most 4, with which both strings begin.

    Parameters
    ----------
    prefix_weight : float, default=0.1
        A number from 0 to 0.25.

    Examples
    --------
    >>> from kreinlearn.kernels.strings import JaroWinkler
    >>> JaroWinkler()(["MARTHA"], ["MARHTA"]).round(4)
    array([[0.0389]])
    """

    _metric = "JaroWinkler"

    def __init__(self, prefix_weight: float = 0.1) -> None:
        self.prefix_weight = prefix_weight

    def _keywords(self) -> dict[str, Any]:
        weight: Any = self.prefix_weight
        if not isinstance(weight, Real) or not 0 <= float(weight) <= 0.25:
            raise ValueError(
                f"prefix_weight={weight!r} must lie in 0..0.25: four letters of "
                "common prefix would make unlike strings equal"
            )
        return {"prefix_weight": float(weight)}


def long_and_equal(rows: list[Any], columns: list[Any]) -> list[int]:
    """The places of long rows that are also columns."""
    long = [i for i, x in enumerate(rows) if len(x) >= LONG]
    known = {z for z in columns if len(z) >= LONG} if long else set()
    return [i for i in long if rows[i] in known]


def with_zeros(
    distances: Callable[[list[Any], list[Any]], Array], rows: list[Any], columns: list[Any],
    twice: list[int],
) -> Array:  # fmt: skip
    """All distances, where those of the rows ``twice`` to themselves are zero without evaluation.

    The time of a long sequence to itself would grow with the square of its length.
    """
    D, once = np.zeros((len(rows), len(columns))), np.ones(len(rows), dtype=bool)
    once[twice] = False
    D[once] = distances([x for x, here in zip(rows, once, strict=True) if here], columns)
    for i in twice:
        others = [j for j, z in enumerate(columns) if z != rows[i]]
        if others:
            D[i, others] = distances([rows[i]], [columns[j] for j in others])[0]
    return D


# Sequences and tokens


def checked(X: Sequence[Any], first: int, n: int, kind: type | None) -> Sequences:
    """Sequences that are all of one kind; an error names object ``first + i`` of n."""
    if not len(X):
        return Sequences([], kind)
    kinds = {t: _kind(t) for t in set(map(type, X))}
    expected = kind or kinds[type(X[0])] or str
    if set(kinds.values()) - {expected}:
        i = next(i for i, x in enumerate(X) if kinds[type(x)] is not expected)
        what = f"object {first + i} (of {n}) is {given(X[i])}"
        if kinds[type(X[i])] is not None:
            what += f", the others are of kind {expected.__name__}"
        raise ValueError(f"{what}; {ALLOWED}")
    if expected is list:
        return Sequences(as_tokens(X, first, n), list)
    return Sequences(list(X), expected)


def _kind(t: type) -> type | None:
    for kind in (str, bytes):
        if issubclass(t, kind):
            return kind
    return list if issubclass(t, list | tuple | np.ndarray) else None


def as_tokens(X: Iterable[Any], first: int, n: int, allowed: str = ALLOWED) -> list[Any]:
    """Lists of tokens, which are hashable and equal to themselves; an error names the object."""
    items = [x.tolist() if isinstance(x, np.ndarray) else x for x in X]
    try:
        if not any(map(flaw, set().union(*items))):
            return items
    except TypeError:  # not hashable, or a number where an array has no dimension
        pass
    for i, x in enumerate(items):
        why = next(filter(None, map(flaw, x)), None) if isinstance(x, Iterable) else given(x)
        if why is not None:
            raise ValueError(f"object {first + i} (of {n}) holds {why}; {allowed}")
    return items


def flaw(token: object) -> str | None:
    """Why an object cannot be a token; None if it can."""
    try:
        hash(token)
    except TypeError:
        return f"{given(token)}, which is not hashable"
    if isinstance(token, float | np.floating) and token != token:
        return "NaN, which equals nothing, not even itself"
    return None


def distinct(items: Iterable[Iterable[Hashable]]) -> dict[Hashable, None]:
    """The tokens of all items, each once, in the order in which they occur."""
    return {token: None for x in items for token in x}


def spelled(items: Iterable[Iterable[Hashable]], codes: Mapping[Hashable, str]) -> list[str]:
    """Items as strings with one character per token, equal exactly where the tokens are equal."""
    return ["".join(map(codes.get, x, repeat(OTHER))) for x in items]
