"""Similarities or dissimilarities among sampled objects: taken from a matrix, or evaluated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.data.validation import asymmetry_of
from kreinlearn.inspection.arguments import Array, Objects
from kreinlearn.inspection.prepared import Prepared
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.base import symmetry_rtol
from kreinlearn.kernels.callables import CallableKernel, PairwiseKernel
from kreinlearn.kernels.dissimilarity import SELF_DISSIMILARITY_RTOL, check_dissimilarities
from kreinlearn.progress import Progress

PROBED = 40  # objects that are evaluated in both directions, and twice


class SampledPairs(NamedTuple):
    """Kernel values among the sampled objects, which are in random order.

    The diagonal of a dissimilarity is zero here, whatever was given. All but the values M are
    attributes of an ``Inspection``, and described there.
    """

    M: Array  # (s, s), symmetric
    kind: str
    given: str
    asymmetry: float | None
    drift: float
    self_dissimilarity: float

    @property
    def are_distances(self) -> bool:
        return self.kind == "dissimilarity"


def sampled_pairs(prepared: Prepared, given: Objects, rows: Array) -> SampledPairs:
    """Kernel values among the objects with these row numbers.

    ``given`` is what the user passed: of a matrix the asymmetry is measured before it is averaged.
    """
    kernel = prepared.kernel
    if kernel.domain.is_matrix:
        M = np.asarray(prepared.part(rows, rows))
        return _from_matrix(np.asarray(given), M, kernel.of_dissimilarities)
    Z = kernel.select(prepared.X, rows)
    few = take(Z, np.arange(min(PROBED, len(rows))))
    progress = Progress(prepared.model.verbose, prepared.model.kernel)
    M = prepared.all_pairs(Z, rows, progress, "objects", more=2 * length(few) ** 2)
    both, again = (np.asarray(kernel.anew(few, few)) for _ in range(2))
    drift = _relative(_largest(both - again), both)
    asymmetry = None if drift else _relative(_largest(both - both.T), both)
    if not kernel.is_dissimilarity:
        return SampledPairs(M, "similarity", _given_as(kernel), asymmetry, drift, 0.0)
    of_self, M = _of_self(M), without_diagonal(M)
    check_dissimilarities(M)
    return SampledPairs(M, "dissimilarity", _given_as(kernel), asymmetry, drift, of_self)


def _from_matrix(raw: Array, M: Array, dissimilarity: bool) -> SampledPairs:
    square = raw.ndim == 2  # a condensed vector has one value per pair, and no diagonal
    asymmetry = _relative(asymmetry_of(raw), raw) if square else 0.0
    of_self = _of_self(raw) if square and dissimilarity else 0.0
    kind = "dissimilarity" if dissimilarity else "similarity"
    return SampledPairs(M, kind, "matrix", asymmetry, 0.0, of_self)


def _given_as(kernel: Kernel) -> str:
    if isinstance(kernel, PairwiseKernel):
        return "function of pairs"
    return "function of blocks" if isinstance(kernel, CallableKernel) else "kernel"


def without_diagonal(D: Array) -> Array:
    """A copy of a matrix of dissimilarities in which every d(x, x) is zero."""
    D = np.array(D)
    np.fill_diagonal(D, 0)
    return D


def _largest(M: Array) -> float:
    return float(np.abs(M).max(initial=0.0))


def _relative(gap: float, M: Array, rtol: float | None = None) -> float:
    """A gap relative to the largest value of M, and 0.0 if it is only rounding."""
    largest = _largest(M)
    rtol = symmetry_rtol(M.dtype) if rtol is None else rtol
    return gap / largest if gap > rtol * largest else 0.0


def _of_self(D: Array) -> float:
    return _relative(_largest(np.diagonal(D)), D, SELF_DISSIMILARITY_RTOL)
