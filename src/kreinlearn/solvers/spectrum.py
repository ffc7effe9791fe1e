"""The spectrum of a symmetric matrix that may be indefinite: K = U diag(D) U', signs included."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kreinlearn import _native
from kreinlearn.solvers import Array

# Tolerances; each is relative to the largest magnitude of what it is compared with.
RANK_RTOL = 1e-12  # smaller eigenvalues are 0
PIVOT_RTOL = 1e-6  # entries of an eigenvector that count as equally large when its sign is fixed
AT_A_TIME = 512  # columns of eigenvectors whose signs are looked for at once
SQUARE_RANGE = (2.0**-470, 2.0**500)  # |eigenvalues| whose squares can be summed in float64


def rank_rtol(n: int) -> float:
    """The part of the largest |eigenvalue| below which others are rounding; at least n eps."""
    return max(RANK_RTOL, n * float(np.finfo(np.float64).eps))


def power_of_two_scale(K: Array) -> float:
    """The power of two c with max |K / c| in [1/2, 1), or 1.0 if K is zero; K / c is exact.

    At the very top of the floating range, where this c would overflow, half of it is returned.
    """
    largest = max(float(np.max(K, initial=0.0)), -float(np.min(K, initial=0.0)))
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, min(exponent, np.finfo(np.float64).maxexp - 1)) if largest else 1.0


@dataclass(frozen=True)
class Spectrum:
    """K = (U * D) @ U.T by decreasing |D|, without the eigenvalues that are rounding errors."""

    U: Array  # (n, r), orthonormal columns
    D: Array  # (r,), none is zero

    @property
    def S(self) -> Array:  # (r,), +-1
        return np.sign(self.D)


def signed_eigh(
    K: Array, rank: int | None = None, rtol: float | None = None, *, overwrite: bool = False
) -> Spectrum:
    """The eigenpairs of a symmetric K with |D| > rtol max|D|, at most ``rank`` of them.

    Of two eigenvalues with the same |D| the positive one comes first. K and 4**k K have the same
    U, bit for bit. With ``overwrite`` the memory of K is used for something else.
    """
    rtol = rank_rtol(len(K)) if rtol is None else rtol
    A, c = _scaled_copy(K, overwrite=overwrite)
    D, U = _native.eigh(A)
    order = _by_magnitude(D, rtol)[:rank]
    return Spectrum(_with_fixed_signs(U, order), c * D[order])


def signed_eigenvalues(K: Array) -> Array:
    """The eigenvalues of a symmetric K alone, by decreasing magnitude, without rounding errors."""
    A, c = _scaled_copy(K)
    D = _native.eigvalsh(A)
    return np.asarray(c * D[_by_magnitude(D, rank_rtol(len(K)))])


def _scaled_copy(K: Array, *, overwrite: bool = False) -> tuple[Array, float]:
    """K / c in Fortran order, in the memory of K if that may be overwritten, and c."""
    c = power_of_two_scale(K)
    out = K.T if overwrite and K.flags.c_contiguous and K.dtype == np.float64 else None
    A = np.divide(K.T, c, out=out, order="F", dtype=np.float64)
    return np.asarray_chkfinite(A), c


def _by_magnitude(D: Array, rtol: float) -> Array:
    """Places of the eigenvalues with |D| > rtol max|D|, by decreasing magnitude, + before -."""
    order = np.lexsort((-D, -np.abs(D)))
    return np.asarray(order[np.abs(D[order]) > rtol * np.max(np.abs(D), initial=0.0)])


def _with_fixed_signs(U: Array, order: Array) -> Array:
    """Columns of U, each with the sign that makes the first of its largest entries positive."""
    out = np.empty((len(U), len(order)))
    for start in range(0, len(order), AT_A_TIME):
        here = slice(start, start + AT_A_TIME)
        part = U[:, order[here]]
        magnitude = np.abs(part)
        large = magnitude >= (1 - PIVOT_RTOL) * np.max(magnitude, axis=0, initial=0.0)
        pivot = part[np.argmax(large, axis=0), np.arange(part.shape[1])]
        np.multiply(part, np.sign(pivot), out=out[:, here])
    return out


def indefiniteness_of(D: Array) -> float:
    """The part of the sum of |eigenvalues| that negative ones have; 0.0 if all are zero."""
    D = D / power_of_two_scale(D)
    total = float(np.sum(np.abs(D)))
    return max(0.0, -float(np.sum(D[D < 0])) / total) if total else 0.0  # never -0.0


def indefiniteness_of_matrix(K: Array) -> float:
    """The indefiniteness of a symmetric matrix, from its eigenvalues above rounding level."""
    return indefiniteness_of(signed_eigenvalues(K))  # 0.0, not 1e-17, if K is semi-definite


# A correction turns D into (gain, shift), which stand for the training matrix
# U diag(gain D) U' + shift I and for the rows k_x U diag(gain) U' of new objects. Without a gain
# the matrix and the rows stay as they are.
Correction = Callable[[Array], tuple[Array | None, float]]


def _square(D: Array) -> tuple[Array, float]:
    low, high = SQUARE_RANGE
    if len(D) and not low <= abs(D[0]) <= high:
        raise ValueError(
            f"the matrix has an eigenvalue of {D[0]:.3g}, whose square is out of floating range: "
            f"magnitudes from {low:.0e} to {high:.0e} can be squared; rescale the kernel"
        )
    return D, 0.0


CORRECTIONS: dict[str, Correction] = {
    "flip": lambda D: (np.sign(D), 0.0),
    "clip": lambda D: (np.where(D > 0, 1.0, 0.0), 0.0),
    "shift": lambda D: (None, max(0.0, -float(np.min(D, initial=0.0)))),
    "square": _square,
}


@dataclass(frozen=True)
class SpectrumCorrection:
    """A positive semi-definite training matrix, and the map of new rows that belongs to it."""

    train: Array  # (n, n)
    U: Array  # (n, r)
    gain: Array | None  # (r,), none is zero; None if new rows stay as they are

    def map(self, K_x: Array) -> Array:  # (b, n) -> (b, n)
        """Rows k(x, X) of new objects, corrected as the training matrix was."""
        return K_x if self.gain is None else (K_x @ self.U * self.gain) @ self.U.T


def correct(K: Array, how: str, spectrum: Spectrum | None = None) -> SpectrumCorrection:
    """K with its negative eigenvalues flipped, clipped or squared, or its spectrum shifted up.

    A shift changes only the similarity of each object with itself. Rows of new objects stay as they
    are, because no new object is a training object. ``spectrum`` is that of K, if it is known.
    """
    spectrum = signed_eigh(K) if spectrum is None else spectrum
    gain, shift = CORRECTIONS[how](spectrum.D)
    if gain is None:
        return SpectrumCorrection(K + shift * np.eye(len(K)), spectrum.U[:, :0], None)
    left = np.flatnonzero(gain)
    U, D, gain = np.ascontiguousarray(spectrum.U[:, left]), spectrum.D[left], gain[left]
    L = U * np.sqrt(gain * D)
    return SpectrumCorrection(L @ L.T, U, gain)  # exactly symmetric, as both factors are L
