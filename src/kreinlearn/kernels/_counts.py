"""Counts of the parts of objects, such as labels of a graph, and sums over parts in common.

A part is known by a hash of 64 bits, which is the same in every block, process and model file.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from kreinlearn.kernels._compiled import as_written, pays
from kreinlearn.kernels.base import Array, ObjectKernel, Objects

BITS = 2**64 - 1
ODD = 0x9E3779B97F4A7C15  # 2^64 / the golden ratio
ROW_SECONDS, TERM_SECONDS = 1e-5, 5e-9  # about what numpy takes for overlaps of one object
AT_ONCE = 2**16  # entries of a matrix that are divided at once, within the cache


@lru_cache(maxsize=2**16)
def text_code(text: str) -> int:
    """A hash of a text, of 64 bits."""
    return int.from_bytes(
        blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).digest(), "little"
    )


def hashed(x: Array, salt: int) -> Array:
    """Splitmix64 of uint64: numbers as good as random, the same in every block and process."""
    x = x + np.uint64(salt * ODD & BITS)
    x = (x ^ (x >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> 31))


def owner_of(start: Array) -> Array:
    """The number of the object that each part belongs to."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


class Counts(NamedTuple):
    """How often parts occur: ``part[start[i]:start[i + 1]]`` are those of object i."""

    start: Array  # (n + 1,)
    part: Array  # uint64, ascending within an object
    times: Array  # float64, not negative
    kind: type | None = None  # of the objects, if kinds must agree

    def total(self, weights: Array) -> Array:  # (n,)
        total = np.bincount(owner_of(self.start), weights, len(self.start) - 1)
        return total.astype(np.float64)  # integers, if there are no parts


class Index(NamedTuple):
    """Counts by part: ``column[start[p]:start[p + 1]]`` are the objects that hold ``part[p]``."""

    part: Array  # ascending
    start: Array
    column: Array
    times: Array


class CountColumns(NamedTuple):
    """Objects that stand as columns."""

    parts: Index
    own: Array  # S(z, z)
    kind: type | None


def by_part(Z: Counts) -> Index:
    """Counts sorted by part."""
    part, which = np.unique(Z.part, return_inverse=True)
    order = np.argsort(which, kind="stable")
    start = np.searchsorted(which[order], np.arange(len(part) + 1))
    return Index(part, start, owner_of(Z.start)[order], Z.times[order])


def overlap(A: Counts, Z: Index, m: int, smaller: bool) -> Array:  # (n, m)
    """The sum over parts of a z, or of min(a, z), in ascending order of the parts."""
    S = np.zeros((len(A.start) - 1, m))
    at, known = places(A.part, Z.part)
    start, at = np.append(0, np.cumsum(known))[A.start], at[known]
    seconds = ROW_SECONDS * len(S) + TERM_SECONDS * np.diff(Z.start)[at].sum()
    add = _overlap if pays(_overlap, seconds) else _overlap_by_rows
    add(start, at, A.times[known], Z.start, Z.column, Z.times, smaller, S)
    return S


def each_from(start: Array, many: Array) -> Array:
    """start[i], start[i] + 1, ... start[i] + many[i] - 1 for each i, end to end."""
    return np.asarray(np.arange(many.sum()) + np.repeat(start - (np.cumsum(many) - many), many))


def places(part: Array, among: Array) -> tuple[Array, Array]:
    """Where parts stand in an ascending array, and which of them are there at all."""
    at = np.searchsorted(among, part)
    known = np.append(among, 0)[at] == part
    return at, known & (at < len(among))


def _overlap_by_rows(
    start: Array, at: Array, times: Array, z_start: Array, column: Array, z_times: Array,
    smaller: bool, S: Array,
) -> None:  # fmt: skip
    many = np.diff(z_start)
    for i in range(len(S)):
        own = slice(start[i], start[i + 1])
        t = each_from(z_start[at[own]], many[at[own]])
        a, z = np.repeat(times[own], many[at[own]]), z_times[t]
        S[i] = np.bincount(column[t], np.minimum(a, z) if smaller else a * z, S.shape[1])


@as_written
def _overlap(
    start: Array, at: Array, times: Array, z_start: Array, column: Array, z_times: Array,
    smaller: bool, S: Array,
) -> None:  # fmt: skip
    for i in range(len(start) - 1):
        for s in range(start[i], start[i + 1]):
            for t in range(z_start[at[s]], z_start[at[s] + 1]):
                a, z = times[s], z_times[t]
                S[i, column[t]] += min(a, z) if smaller else a * z


def divide(S: Array, S_x: Array, S_z: Array) -> None:
    """Divide S (n, m) by (S_x S_z)^1/2; where S_x or S_z is 0, S is 0 and stays so."""
    few = max(1, AT_ONCE // max(1, len(S_z)))
    for i in range(0, len(S), few):
        rows = slice(i, i + few)
        scale = S_x[rows, None] * S_z
        S[rows] /= np.sqrt(np.where(scale > 0.0, scale, 1.0))


class CountKernel(ObjectKernel):
    """S = sum_p a_p z_p or sum_p min(a_p, z_p), or a function of S, S(x, x) and S(z, z).

    a_p and z_p count the parts p of two objects. A subclass gives ``packed``, which returns the
    counts. The parts are added in the same order in S(x, z), S(z, x) and S(x, x), so that k(x, z)
    has the bits of k(z, x), and what is divided is exactly 1 for an object and itself.
    """

    splits_squares = False  # packing the objects anew for each strip costs more than it saves
    _smaller = False  # whether minima are summed
    _divided = False  # whether S is divided by (S(x, x) S(z, z))^1/2

    def packed_columns(self, Z: Objects) -> CountColumns:
        return self._as_columns(self.packed(Z))

    def _as_columns(self, counts: Counts) -> CountColumns:
        return CountColumns(by_part(counts), self._own(counts), counts.kind)

    def _own(self, A: Counts) -> Array:
        return A.total(A.times if self._smaller else A.times**2)

    def values(self, A: Counts, Z: CountColumns) -> Array:
        S = overlap(A, Z.parts, len(Z.own), self._smaller)
        return self._value(S, self._own(A), Z.own)

    def _value(self, S: Array, S_x: Array, S_z: Array) -> Array:  # (n, m), (n,), (m,) -> (n, m)
        if self._divided:
            divide(S, S_x, S_z)
        return S

    def square(self, Z: Objects) -> Array:
        """k(Z, Z) by all pairs at once, which is exactly symmetric; objects are packed once."""
        A: Counts = self.packed(Z)
        return self.values(A, self._as_columns(A))

    def diagonal(self, A: Objects) -> Array:
        if self.is_dissimilarity:
            return super().diagonal(A)
        own = self._own(self.packed(A))
        return np.sign(own) if self._divided else own
