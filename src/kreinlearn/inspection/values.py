"""Similarities or dissimilarities among sampled objects: read off a matrix, or evaluated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.data.validation import asymmetry_of
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.inspection.findings import Array
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.base import symmetry_rtol
from kreinlearn.kernels.callables import CallableKernel, PairwiseKernel
from kreinlearn.kernels.dissimilarity import SELF_DISSIMILARITY_RTOL, check_dissimilarities
from kreinlearn.nystrom.sweep import announce
from kreinlearn.pairs.evaluate import evaluate_square, pairs_among
from kreinlearn.progress import Progress
from kreinlearn.sums.parallel import serial_blas, worker_count

PROBED = 40  # objects evaluated both ways round, and twice


class Values(NamedTuple):
    """Values among sampled objects, in random order; d(x, x) = 0, whatever was given."""

    M: Array  # (s, s), symmetric
    dissimilarity: bool
    given: str  # as in Inspection
    asymmetry: float | None
    drift: float
    of_self: float  # largest |d(x, x)|, relative as the two above


def values_of(model: KreinNystroem, X: Any, prepared: Any, kernel: Kernel, chosen: Array) -> Values:
    """Of the chosen rows; ``model`` says in how many processes or threads, and how loudly."""
    if kernel.domain.is_matrix:
        return _read(np.asarray(X), prepared[np.ix_(chosen, chosen)], kernel)
    Z = kernel.select(prepared, chosen)
    few = take(Z, np.arange(min(PROBED, len(chosen))))
    try:
        M = _evaluated(model, kernel, Z, chosen, 2 * length(few) ** 2)
    finally:
        model._keep_kernel(kernel)  # its processes let go of the objects
    both, again = (np.asarray(kernel.anew(few, few)) for _ in range(2))
    drift = _relative(_largest(both - again), both)
    asymmetry = None if drift else _relative(_largest(both - both.T), both)
    of_self = 0.0
    if kernel.is_dissimilarity:
        of_self = _of_self(M)
        M = without_diagonal(M)
        check_dissimilarities(M)
    return Values(M, kernel.is_dissimilarity, _given(kernel), asymmetry, drift, of_self)


def _read(raw: Array, M: Array, kernel: Kernel) -> Values:
    square = raw.ndim == 2  # a condensed vector has no two sides
    asymmetry = _relative(asymmetry_of(raw), raw) if square else 0.0
    of_self = _of_self(raw) if square and kernel.of_dissimilarities else 0.0
    return Values(M, kernel.of_dissimilarities, "matrix", asymmetry, 0.0, of_self)


def _evaluated(
    model: KreinNystroem, kernel: Kernel, Z: Any, chosen: Array, probed: int
) -> Array:  # (s, s)
    s, pairs = len(chosen), pairs_among(kernel, len(chosen))
    workers = worker_count(model.n_jobs) if kernel.threads else 1
    progress = Progress(model.verbose, model.kernel)
    announce(progress, kernel, Z, Z, pairs + probed, workers)
    with serial_blas(), progress.step("objects", s, pairs):
        return evaluate_square(kernel, Z, chosen, np.full(s, np.nan), workers, progress)


def _given(kernel: Kernel) -> str:
    if isinstance(kernel, PairwiseKernel):
        return "function of pairs"
    return "function of blocks" if isinstance(kernel, CallableKernel) else "kernel"


def without_diagonal(D: Array) -> Array:
    """Dissimilarities without those of objects to themselves."""
    D = np.array(D)
    np.fill_diagonal(D, 0)
    return D


def _largest(M: Array) -> float:
    return float(np.abs(M).max(initial=0.0))


def _relative(gap: float, M: Array, rtol: float | None = None) -> float:
    """The share of the largest value, 0.0 where it is rounding."""
    largest = _largest(M)
    rtol = symmetry_rtol(M.dtype) if rtol is None else rtol
    return gap / largest if gap > rtol * largest else 0.0


def _of_self(D: Array) -> float:
    return _relative(_largest(np.diagonal(D)), D, SELF_DISSIMILARITY_RTOL)
