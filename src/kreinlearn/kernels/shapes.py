"""Dissimilarities of point sets (Chamfer, earth mover's) and of closed contours."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import fft
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.utils import check_scalar

from kreinlearn.data.tiles import library
from kreinlearn.kernels.base import Array, ObjectKernel, Objects, mirrored
from kreinlearn.kernels.objects import Hausdorff, PointSets, pack
from kreinlearn.kernels.processes import SlowKernel

PIVOTS = 10**7  # the most steps of the network simplex, which needs far fewer
STRIP = 128  # rows of a symmetric matrix evaluated at a time
CURVES = 512  # columns correlated at a time: they stay in the cache
TIE = 1e-14  # of the squared norms: shifts as good as the best one
OVER = 8  # samples per point of a contour, before its high frequencies are left out
NEWTON = 4  # steps towards the best shift of curves that are near
HALF = 1e-6  # radians: turns of so little more than -pi are half turns, to the left


# Point sets


class Chamfer(Hausdorff, names=["chamfer"]):
    """The Chamfer distance mean_a min_b |a - b| + mean_b min_a |a - b| of two point sets.

    A point set is an array of shape (points, coordinates). The number of points may differ.

    Examples
    --------
    >>> from kreinlearn.kernels.shapes import Chamfer
    >>> Chamfer()([[[0.0, 0.0], [4.0, 0.0]]], [[[0.0, 3.0]], [[4.0, 0.0]]])
    array([[7., 2.]])
    """

    _mean = True
    _both = True


class EarthMover(SlowKernel, names=["earth_mover", "emd"]):
    """The earth mover's distance min_T sum_ab T_ab |a - b| of two point sets.

    T >= 0 has row sums 1/k and column sums 1/l, for sets of k and l points. Sets of the same size
    are matched point by point with scipy, others are transported with POT.

    Examples
    --------
    >>> from kreinlearn.kernels.shapes import EarthMover
    >>> EarthMover()([[[0.0, 0.0], [4.0, 0.0]]], [[[0.0, 3.0], [4.0, 1.0]], [[4.0, 0.0]]])
    array([[2., 2.]])
    """

    is_dissimilarity = True

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> PointSets:
        return pack(X, first, n, like)

    def values(self, A: PointSets, Z: PointSets) -> Array:
        D = np.empty((len(A.start) - 1, len(Z.start) - 1))
        for i in range(len(D) if D.size else 0):
            costs = cdist(A.points[A.start[i] : A.start[i + 1]], Z.points)
            for j, cost in enumerate(np.split(costs, Z.start[1:-1], axis=1)[: D.shape[1]]):
                D[i, j] = transport(cost)
        return D


def transport(cost: Array) -> float:  # (k, l)
    """The least cost of transport between uniform weights.

    The smaller set comes first and sums are in order, so that (l, k) gives the same value.
    """
    k, l = cost.shape
    if k == l:
        return float(np.sort(cost[linear_sum_assignment(cost)]).sum() / k)
    if k > l:
        return transport(cost.T)
    if k == 1:
        return float(cost.sum() / l)
    a, b = np.full(k, 1 / k), np.full(l, 1 / l)
    settings = {"numItermax": PIVOTS, "center_dual": False, "check_marginals": False}
    return float(library("ot", "shapes", "POT").emd2(a, b, cost, **settings))


def transport_order(x: Array) -> tuple[int, bytes]:
    """What decides which of two objects comes first, and whether they are equal."""
    return len(x), x.tobytes()


def ordered_transport(
    order: tuple[int, bytes], a: Array, other: tuple[int, bytes], b: Array
) -> float:
    """The least cost of transport between two sets of vectors that are made of two objects.

    The lesser object comes first, because the order may decide among plans of the same cost, whose
    sums differ in the last bit.
    """
    if order == other:
        return 0.0
    cost = cdist(a, b) if order < other else cdist(b, a)
    return transport(cost) if np.isfinite(cost).all() else np.inf


# Closed contours


class Curves(NamedTuple):
    """One function per closed curve, with mean zero and frequencies below n_points / 2."""

    f: Array  # (n, n_points) complex: at equal steps of arc length
    spectrum: Array  # (n, n_points): its Fourier coefficients
    square: Array  # (n,): |f|^2

    def at(self, rows: Array | slice) -> Curves:
        return Curves(*(array[rows] for array in self))


def _curves(spectrum: Array) -> Curves:
    """Curves from their Fourier coefficients."""
    f = fft.ifft(spectrum, axis=1)
    return Curves(f, spectrum, _squared_norms(f))


def _squared_norms(f: Array) -> Array:
    return np.asarray((np.square(f.real) + np.square(f.imag)).sum(axis=1))


class _Contour(ObjectKernel):
    """min over shifts s of |f_x - f_z(. + s)|: one FFT per pair gives the products of whole shifts.

    Between whole shifts they are interpolated. A subclass gives the function f of a curve, the
    scores of inner products, the first two derivatives of scores, and |f_x - f_z|^2.
    """

    is_dissimilarity = True
    splits_squares = False  # resampling the curves anew for each strip costs more than it saves
    _close: float  # of the squared norms: nearer curves are subtracted, not correlated
    _mirror: float  # the mirror image of f has the Fourier coefficients _mirror * conj(spectrum)

    def __init__(self, n_points: int = 128, reflect: bool = False) -> None:
        self.n_points = n_points
        self.reflect = reflect

    def _spectrum(self, curve: Array) -> Array:  # (OVER * n_points,) -> (n_points,)
        raise NotImplementedError

    def _scores(self, Z: Array, X: Array) -> Array:
        """Scores of whole shifts, and perhaps of as many between every two, from spectra."""
        raise NotImplementedError

    def _slopes(self, c: Array, c1: Array, c2: Array) -> tuple[Array, Array]:
        """Two derivatives of something that is largest where the score is, from those of c."""
        raise NotImplementedError

    def _gap(self, f: Array, g: Array) -> Array:  # (b, n_points) both -> (b,)
        raise NotImplementedError

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: object = None) -> Curves:
        check_scalar(self.n_points, "n_points", Integral, min_val=3)
        points, start = pack(X, first, n)
        total = n or len(start) - 1
        if points.shape[1] != 2 and total:
            raise ValueError(
                f"object {first} (of {total}) has points of {points.shape[1]} coordinates; a "
                "contour is a curve in the plane, an array of shape (number of points, 2)"
            )
        spectrum = np.empty((len(start) - 1, self.n_points), dtype=np.complex128)
        for i in range(len(spectrum)):
            own = points[start[i] : start[i + 1]]
            if (own == own[0]).all():
                raise ValueError(
                    f"object {first + i} (of {total}) is the single point {own[0]}; a contour "
                    "has at least two different points, leave such objects out"
                )
            spectrum[i] = self._spectrum(_resampled(own, OVER * self.n_points))
        return _curves(spectrum)

    def values(self, A: Curves, Z: Curves) -> Array:
        D = self._nearest(A, Z)
        if self.reflect:
            mirrored = _curves(self._mirror * np.conj(Z.spectrum))
            np.minimum(D, self._nearest(A, mirrored), out=D)
        return D

    def _nearest(self, A: Curves, Z: Curves) -> Array:
        d2 = np.empty((len(A.f), len(Z.f)))
        for lo in range(0, len(Z.f), CURVES):
            part = Z.at(slice(lo, lo + CURVES))
            for i in range(len(d2)):
                scores = self._scores(part.spectrum, A.spectrum[i])
                d2[i, lo : lo + CURVES] = A.square[i] + part.square - 2 * _highest(scores)[1]
        near = np.nonzero(d2 <= self._close * np.add.outer(A.square, Z.square))  # few
        for lo in range(0, len(near[0]), CURVES):
            few = near[0][lo : lo + CURVES], near[1][lo : lo + CURVES]
            d2[few] = self._subtracted(A.at(few[0]), Z.at(few[1]))
        return np.asarray(np.sqrt(d2))

    def _subtracted(self, X: Curves, Z: Curves) -> Array:
        """min_s |f_x - f_z(. + s)|^2 of each pair, to all digits; 0 for a curve and itself."""
        scores = self._scores(Z.spectrum, X.spectrum)
        whole = scores[:, :: scores.shape[1] // self.n_points]
        best = whole.max(axis=1) - TIE * (X.square + Z.square)
        first = np.argmax(whole >= best[:, None], axis=1)
        at = (np.arange(self.n_points) + first[:, None]) % self.n_points
        of_whole = self._gap(np.take_along_axis(Z.f, at, axis=1), X.f)
        w = 2j * np.pi * fft.fftfreq(self.n_points)
        shift = self._climbed(Z.spectrum * np.conj(X.spectrum), w, _highest(scores)[0])
        between = self._gap(Z.spectrum * np.exp(w * shift[:, None]), X.spectrum)
        return np.minimum(of_whole, between / self.n_points)

    def _climbed(self, products: Array, w: Array, shift: Array) -> Array:
        """The best shifts near the given ones, by Newton's method."""
        shift = shift * self.n_points
        for _ in range(NEWTON):
            c = products * np.exp(w * shift[:, None])
            slope, bend = self._slopes(*(term.sum(axis=1) for term in (c, c * w, c * w * w)))
            step = np.divide(slope, -bend, out=np.zeros_like(slope), where=bend < 0)
            shift = shift + np.clip(step, -0.5, 0.5)
        return shift

    def square(self, Z: Objects) -> Array:
        """k(Z, Z) with every pair evaluated once; the curves are resampled once."""
        curves = self.packed(Z)
        m = len(curves.f)
        D = np.empty((m, m))
        for start in range(0, m, STRIP):
            strip = slice(start, start + STRIP)
            D[strip, start:] = self.values(curves.at(strip), curves.at(slice(start, None)))
        return mirrored(D)


def _resampled(points: Array, n: int) -> Array:  # (k, 2) -> (n,) complex
    """n points at equal steps along a closed curve, anticlockwise."""
    moved = points - points[0]
    z = (moved / np.abs(moved).max()).view(np.complex128).ravel()
    z = np.append(z, z[0])
    if np.imag(np.conj(z[:-1]) * z[1:]).sum() < 0:
        z = z[::-1]
    reached = np.cumsum(np.append(0.0, np.abs(np.diff(z))))
    return np.asarray(np.interp(np.arange(n) * (reached[-1] / n), reached, z))


def _spectrum_of(f: Array) -> Array:  # (OVER * n,) -> (n,)
    """Fourier coefficients of n samples of f, without its mean and frequencies from n / 2 on."""
    n = len(f) // OVER
    last = (n - 1) // 2
    kept = np.zeros(n, dtype=np.complex128)
    F = fft.fft(f) / OVER
    kept[1 : last + 1], kept[-last:] = F[1 : last + 1], F[-last:]
    return kept


def _highest(scores: Array) -> tuple[Array, Array]:  # (b, n) -> (b,), (b,)
    """Where each row is highest, as a share of its length, and how high.

    A cubic goes through four points around the best one and its better neighbour.
    """
    b, n = scores.shape
    at, row = np.argmax(scores, axis=1), n * np.arange(b)
    flat = scores.ravel()
    toward = np.where(flat[row + (at + 1) % n] >= flat[row + (at - 1) % n], 1, -1)
    p0, p1, p2, p3 = (flat[row + (at + j * toward) % n] for j in (-1, 0, 1, 2))
    c3, c2 = (p3 - p0) / 6 - (p2 - p1) / 2, (p0 + p2) / 2 - p1
    c1 = p2 - p1 - c2 - c3
    root = np.sqrt(np.maximum(c2 * c2 - 3 * c1 * c3, 0.0)) - c2
    t = np.clip(np.divide(c1, root, out=np.zeros(b), where=root > 0), 0.0, 1.0)
    return (at + toward * t) / n, np.maximum(((c3 * t + c2) * t + c1) * t, 0.0) + p1


class Procrustes(_Contour, names=["procrustes"]):
    """min over shifts s and angles t of |x - exp(it) z(. + s)|, for contours as complex functions.

    A contour is a closed curve, an array of shape (points, 2), in either direction; its last point
    may repeat the first one. Curves are centred and scaled to norm 1, so that place, size, rotation
    and starting point do not count. With 128 points the starting point of real outlines changes
    distances by about 1e-4.

    Parameters
    ----------
    n_points : int, default=128
        Frequencies below n_points / 2 along the curve are kept.
    reflect : bool, default=False
        Whether mirror images count as equal.

    Examples
    --------
    >>> from kreinlearn.kernels.shapes import Procrustes
    >>> square, oblong = [[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 0], [0, 2], [1, 2], [1, 0]]
    >>> Procrustes()([square], [square, oblong]).round(3)
    array([[0.   , 0.281]])
    """

    _close = 1e-3
    _mirror = 1.0

    def _spectrum(self, curve: Array) -> Array:
        F = _spectrum_of(curve)
        return np.asarray(F * (np.sqrt(len(F)) / np.linalg.norm(F)))

    def _scores(self, Z: Array, X: Array) -> Array:
        return np.asarray(np.abs(fft.ifft(Z * np.conj(X), axis=1, overwrite_x=True)))

    def _slopes(self, c: Array, c1: Array, c2: Array) -> tuple[Array, Array]:
        """The derivatives of |c|^2 / 2."""
        return (np.conj(c) * c1).real, (np.conj(c1) * c1 + np.conj(c) * c2).real

    def _gap(self, f: Array, g: Array) -> Array:
        real = (f.real * g.real).sum(axis=1) + (f.imag * g.imag).sum(axis=1)
        imaginary = (f.imag * g.real).sum(axis=1) - (f.real * g.imag).sum(axis=1)
        turn = real + 1j * imaginary  # exactly real if f = g
        return _squared_norms(f - (turn / np.abs(turn))[:, None] * g)


class Turning(_Contour, names=["turning"]):
    """min over shifts s and angles t of the rms of x(.) - z(. + s) - t, where x(.) is the tangent's
    angle.

    A contour is a closed curve, an array of shape (points, 2), in either direction; its last point
    may repeat the first one. The angle, in radians, is that of chords of one ``n_points``-th of the
    curve, without its mean growth to 2 pi (Arkin et al. 1991). With 128 points the starting point
    of real outlines changes distances by about 1e-3, seldom more.

    Parameters
    ----------
    n_points : int, default=128
        Frequencies below n_points / 2 along the curve are kept.
    reflect : bool, default=False
        Whether mirror images count as equal.

    Examples
    --------
    >>> from kreinlearn.kernels.shapes import Turning
    >>> square, oblong = [[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 0], [0, 2], [1, 2], [1, 0]]
    >>> Turning()([square], [square, oblong]).round(3)
    array([[0.   , 0.573]])
    """

    _close = 0.03  # the scores of steps have sharp peaks: cubics fall short of them
    _mirror = -1.0

    def _spectrum(self, curve: Array) -> Array:
        chords = np.roll(curve, -OVER) - curve
        turns = np.angle(np.exp(-1j * HALF) * chords * np.conj(np.roll(chords, 1))) + HALF
        F = _spectrum_of(np.cumsum(turns - turns.mean()))
        return np.asarray(F / np.sqrt(len(F)))

    def _scores(self, Z: Array, X: Array) -> Array:
        """Scores of half shifts too; a real function needs only half of its spectrum."""
        n = X.shape[-1]
        half = slice((n + 1) // 2)
        return np.asarray(fft.irfft(Z[:, half] * (2 * np.conj(X[..., half])), 2 * n, axis=1))

    def _slopes(self, c: Array, c1: Array, c2: Array) -> tuple[Array, Array]:
        return c1.real, c2.real

    def _gap(self, f: Array, g: Array) -> Array:
        return _squared_norms(f - g)
