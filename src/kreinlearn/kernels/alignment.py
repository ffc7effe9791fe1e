"""Alignment scores of proteins, DNA or any other letters, evaluated by parasail."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from kreinlearn.data.tiles import library
from kreinlearn.kernels.base import Array, Objects, given
from kreinlearn.kernels.strings import TextKernel

PRINTABLE = "".join(map(chr, range(33, 127)))
NARROW = 100  # larger costs do not fit in 8 bits, and parasail would not say so
LARGEST_SCORE = 2**30  # scores are held in 32 bits
MATRICES = (
    'matrix must be a name such as "blosum62", "pam250" or "dnafull", a pair of integers (match, '
    'mismatch), or a mapping of all pairs of letters, {("A", "C"): -1, ...}, to integers'
)


class Letters(NamedTuple):
    """Sequences end to end: sequence i is ``letters[start[i]:start[i + 1]]``."""

    letters: Array  # (N,) uint8, Latin-1
    start: Array  # (n + 1,)
    self_scores: Array | None = None  # of columns, where scores are normalized


class Scoring(NamedTuple):
    """A matrix of parasail, which must live as long as its address is used, and the letters it
    has.
    """

    matrix: Any
    known: Array  # (256,) bool
    largest: int

    @property
    def address(self) -> int:
        return int(ctypes.cast(self.matrix.pointer, ctypes.c_void_p).value or 0)


class _Alignment(TextKernel):
    """Alignment scores by the functions ``parasail_<routine>_profile_<bits>``."""

    pair_seconds = None  # it grows with the product of the lengths

    def __init__(
        self,
        matrix: object = "blosum62",
        gap_open: int = 11,
        gap_extend: int = 1,
        normalized: bool = False,
        unknown: str | None = None,
    ) -> None:
        self.matrix = matrix
        self.gap_open = gap_open
        self.gap_extend = gap_extend
        self.normalized = normalized
        self.unknown = unknown

    def _routine(self, narrow: bool) -> tuple[str, str]:
        """The names of parasail's routine and of its number of bits."""
        raise NotImplementedError

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self._gaps()
        return super().fit(X, rng)

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: object = None) -> Letters:
        score = scoring(self.matrix)
        return joined(X, score, self.matrix, first, n or len(X), self._instead(score))

    def _instead(self, score: Scoring) -> int | None:
        """The code of the letter ``unknown``; an error if the matrix does not know it either."""
        letter: Any = self.unknown
        if letter is None:
            return None
        code = ord(letter) if isinstance(letter, str) and len(letter) == 1 else 256
        if code > 255 or not score.known[code]:
            raise ValueError(
                f"unknown={letter!r} must be None, or a letter of matrix={self.matrix!r:.40}"
            )
        return code

    def packed_columns(self, Z: Objects) -> Letters:
        packed = self.packed(Z)
        return packed._replace(self_scores=self._own(packed)) if self.normalized else packed

    def values(self, A: Letters, Z: Letters) -> Array:
        K = self._with_nothing(np.diff(A.start), np.diff(Z.start))
        self._evaluate(A, Z, K)
        if Z.self_scores is not None:
            K /= np.sqrt(np.multiply.outer(_sizes(self._own(A)), _sizes(Z.self_scores)))
        return K

    def diagonal(self, A: Objects) -> Array:
        own = self._own(self.packed(list(A)))
        return np.sign(own) if self.normalized else own

    def _own(self, A: Letters) -> Array:
        """s(x, x) of each sequence."""
        own = np.zeros((len(A.start) - 1, 1))
        self._evaluate(A, A, own, own=True)
        return own[:, 0]

    def _evaluate(self, A: Letters, Z: Letters, out: Array, own: bool = False) -> None:
        from kreinlearn.kernels import _parasail

        score, gaps = scoring(self.matrix), self._gaps()
        longest = sum(int(np.diff(x.start).max(initial=0)) for x in (A, Z))
        if max(score.largest, gaps[0]) * longest > LARGEST_SCORE:
            raise ValueError(
                f"scores of sequences of {longest} letters together may pass {LARGEST_SCORE}; "
                "divide the matrix and the gap costs by a constant, or cut the sequences"
            )
        narrow = gaps[0] > gaps[1] and max(score.largest, gaps[0]) <= NARROW
        calls, costs = _addresses(*self._routine(narrow)), np.array(gaps)
        _parasail.scores(*A[:2], *Z[:2], score.address, costs, calls, own, out)
        if np.isnan(out).any():
            raise MemoryError("parasail had no memory for an alignment")

    def _with_nothing(self, a: Array, z: Array) -> Array:
        """Scores of lengths a to lengths z where one of them is 0, and zeros elsewhere."""
        return np.zeros((len(a), len(z)))

    def _gaps(self) -> tuple[int, int]:
        gaps: Any = (self.gap_open, self.gap_extend)
        if not all(isinstance(g, Integral) and int(g) >= 0 for g in gaps) or gaps[0] < gaps[1]:
            raise ValueError(
                f"gap_open={gaps[0]!r}, gap_extend={gaps[1]!r}: costs are integers with gap_open "
                ">= gap_extend >= 0; a gap of k letters costs gap_open + (k - 1) gap_extend"
            )
        return int(gaps[0]), int(gaps[1])


class SmithWaterman(_Alignment, names=["smith_waterman"]):
    """The score s(x, z) of the best local alignment: a part of x against a part of z.

    It is never negative.

    Parameters
    ----------
    matrix : str, tuple or mapping, default="blosum62"
        The scores of letters: a name that parasail knows, a pair (match, mismatch) of integers, or
        a mapping from all pairs of letters to integers.
    gap_open : int, default=11
        The cost of the first letter of a gap.
    gap_extend : int, default=1
        The cost of every further letter of a gap.
    normalized : bool, default=False
        Whether scores are divided by sqrt(a(x) a(z)) with a(x) = max(|s(x, x)|, 1). Then k(x, x) is
        1, or 0 if s(x, x) is 0, for an empty sequence for example.
    unknown : str, default=None
        The letter that takes the place of all those that the matrix does not know, such as "X" in
        proteins. None says that they are an error.

    Examples
    --------
    >>> from kreinlearn.kernels.alignment import SmithWaterman
    >>> SmithWaterman()(["HEAGAWGHEE"], ["PAWHEAE", "HEAGAWGHEE", ""])
    array([[17., 62.,  0.]])
    """

    def _routine(self, narrow: bool) -> tuple[str, str]:
        """The striped routine is the fastest, but wrong if gap_open == gap_extend."""
        return ("sw_striped", "sat") if narrow else ("sw_scan", "32")


class NeedlemanWunsch(_Alignment, names=["needleman_wunsch"]):
    """The score s(x, z) of the best global alignment: all of x against all of z.

    Scores may be negative, and so may s(x, x), of "XXX" by blosum62 for example.

    Parameters
    ----------
    matrix : str, tuple or mapping, default="blosum62"
        The scores of letters: a name that parasail knows, a pair (match, mismatch) of integers, or
        a mapping from all pairs of letters to integers.
    gap_open : int, default=11
        The cost of the first letter of a gap.
    gap_extend : int, default=1
        The cost of every further letter of a gap.
    normalized : bool, default=False
        Whether scores are divided by sqrt(a(x) a(z)) with a(x) = max(|s(x, x)|, 1). Then k(x, x) is
        1, -1 or 0.
    unknown : str, default=None
        The letter that takes the place of all those that the matrix does not know, such as "X" in
        proteins. None says that they are an error.

    Examples
    --------
    >>> from kreinlearn.kernels.alignment import NeedlemanWunsch
    >>> k = NeedlemanWunsch(matrix=(1, -1), gap_open=2, gap_extend=1)
    >>> k(["ACGT"], ["ACGT", "AGT", "TTTTTT", ""])
    array([[ 4.,  1., -5., -5.]])
    """

    def _routine(self, narrow: bool) -> tuple[str, str]:
        return "nw_scan", "32"

    def _with_nothing(self, a: Array, z: Array) -> Array:
        gap_open, gap_extend = self._gaps()
        K = np.zeros((len(a), len(z)))
        K[a == 0] = np.where(z > 0, (gap_extend - gap_open) - gap_extend * z, 0)
        K[:, z == 0] = np.where(a > 0, (gap_extend - gap_open) - gap_extend * a, 0)[:, None]
        return K


def _sizes(own: Array) -> Array:
    return np.asarray(np.maximum(np.abs(own), 1.0))


# Sequences and matrices


def joined(
    X: Sequence[Any], score: Scoring, matrix: object, first: int, n: int, instead: int | None
) -> Letters:
    """Sequences end to end; an error names object ``first + i`` of n and the letter.

    The code ``instead`` takes the place of letters that the matrix does not know.
    """
    for i, x in enumerate(X):
        if not isinstance(x, str):
            raise ValueError(
                f"object {first + i} (of {n}) is {given(x)}; a sequence is a str of letters"
            )
    start = np.cumsum([0, *map(len, X)])
    letters = np.frombuffer("".join(X).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    known = np.append(score.known, False)[np.minimum(letters, 256)]
    if instead is not None:
        letters = np.where(known, letters, instead)
    elif not known.all():
        bad = int(np.argmin(known))
        i = int(np.searchsorted(start, bad, side="right")) - 1
        letter = chr(letters[bad])
        raise ValueError(
            f"object {first + i} (of {n}) has {letter!r} at place {bad - start[i]}, which "
            f"matrix={matrix!r:.40} does not know; replace it, as unknown='X' does (or 'N'), or "
            "pass another matrix"
        )
    return Letters(letters.astype(np.uint8), start)


def scoring(matrix: object) -> Scoring:
    """The matrix of parasail for a name, a pair (match, mismatch) or a mapping of pairs of
    letters.
    """
    parasail = library("parasail", "bio")
    if isinstance(matrix, str) and isinstance(getattr(parasail, matrix, None), parasail.Matrix):
        named = getattr(parasail, matrix)
        known = named.mapper != named.mapper[0]  # what is unknown counts as the last letter
        known[[ord(letter) for letter in ("Uu" if matrix == "dnafull" else "*")]] = True
        return Scoring(named, known, max(named.max, -named.min))
    if isinstance(matrix, Mapping):
        return _of_pairs(matrix)
    pair: Any = matrix if isinstance(matrix, Sequence) and len(matrix) == 2 else (None, None)
    if not all(isinstance(score, Integral) for score in pair):
        raise ValueError(f"{MATRICES}; got {given(matrix)}")
    return _created(PRINTABLE, int(pair[0]), int(pair[1]))


def _of_pairs(pairs: Mapping[Any, Any]) -> Scoring:
    letters = sorted({str(letter) for pair in pairs for letter in pair})
    if not set(letters) <= set(PRINTABLE):
        raise ValueError(f"{MATRICES}; letters are single ASCII characters, got {letters}")
    made = _created("".join(letters), 0, 0)
    for i, a in enumerate(letters):
        for j, b in enumerate(letters):
            score = pairs.get((a, b), pairs.get((b, a)))
            if not isinstance(score, Integral) or score != pairs.get((b, a), score):
                raise ValueError(
                    f"{MATRICES}; {(a, b)!r} is {score!r}, {(b, a)!r} is {pairs.get((b, a))!r}"
                )
            made.matrix[i, j] = int(score)
    return made._replace(largest=max(made.matrix.max, -made.matrix.min))


def _created(letters: str, match: int, mismatch: int) -> Scoring:
    known = np.zeros(256, dtype=bool)
    known[list(letters.encode("ascii"))] = True
    made = library("parasail", "bio").matrix_create(letters, match, mismatch, True)
    return Scoring(made, known, max(abs(match), abs(mismatch)))


def _addresses(routine: str, bits: str) -> Array:
    """The addresses of the functions of parasail that ``_parasail.scores`` calls."""
    own = (f"profile_create_{bits}", f"{routine}_profile_{bits}")
    names = (*own, "result_get_score", "result_free", "profile_free")
    shared = ctypes.CDLL(library("parasail", "bio").get_library())
    found = (getattr(shared, f"parasail_{name}") for name in names)
    return np.array([ctypes.cast(f, ctypes.c_void_p).value for f in found], dtype=np.int64)
