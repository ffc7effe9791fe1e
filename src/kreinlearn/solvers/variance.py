"""Variance-constrained least squares: the norm of the predictions is given and does not shrink.

    min  z' P z - 2 z' b   subject to   z' G z = r^2,    P = diag(penalty) > 0

One decomposition W G W = V diag(tau) V' with W = P^-1/2 serves all targets. The minimum is
z = W V u with u = d / (1 - mu tau), d = V' W b, and the mu <= 1 / tau_max at which the constraint
is met. The unknown is not mu itself but delta = 1 - mu tau_max >= 0: with s = tau / tau_max, the
denominator 1 - mu tau = (1 - s) + delta s has no cancellation, however near mu is to 1 / tau_max.
Ridge regression is the case mu = -1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import Fold, Solution, group_sums

EPS = float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float64).max)

# Tolerances; each is relative to the largest magnitude of what it is compared with.
ROUNDING = 8 * EPS  # times sqrt(r): the error of an eigendecomposition in equal tau and zero d
PIVOT_RTOL = 1e-6  # entries of an eigenvector that count as equally large when its sign is fixed
SECULAR_RTOL = 1e-14  # norm of the predictions against r
LEAST_PENALTY = 1e-14  # against the largest entry of G: smaller ones make no difference but errors
MOST_PENALTY = 1e100  # against it: features of larger ones are of no use
RADIUS_RTOL = 1e-60  # r against the norm at mu = 0; below it r is zero, as its square underflows
MAX_ITER = 100  # steps of the secular equation; two to eight are usual, and 26 the most seen


@dataclass(frozen=True)
class _Spectrum:
    """W G W = tau_max V diag(s) V'; eigenvalues within rounding of the largest have s = 1."""

    W: Array  # (r, 1)
    V: Array  # (r, r)
    s: Array  # (r,), in [0, 1]
    tau_max: float

    @property
    def top(self) -> Array:  # (r,) bool: the eigenspace of tau_max
        return np.asarray(self.s == 1.0)

    def weighted(self, B: Array) -> Array:  # (r, q) -> (q, r): V' W b for every column b
        return np.asarray((self.W * B).T @ self.V)

    def top_direction(self) -> Array:  # (number of tops,)
        """A unit vector of the top eigenspace that does not depend on its basis or on signs."""
        V = self.V[:, self.top]
        share = np.square(V).sum(axis=1)
        pivot = V[np.argmax(share >= (1 - PIVOT_RTOL) * share.max())]
        return np.asarray(pivot / np.linalg.norm(pivot))  # along the projection of a unit vector


@dataclass(frozen=True)
class _Minimum:
    """The minimisers of all targets in the eigenbasis."""

    u: Array  # (q, r)
    delta: Array  # (q,), 1 - mu tau_max
    inverse: Array  # (q, r), 1 / (1 - mu tau), and 0 where that is infinite
    n_iter: int
    converged: bool


def variance_constrained(G: Array, B: Array, penalty: Array, radius: Array) -> Solution:
    """argmin z' diag(penalty) z - 2 z'b with z' G z = r^2, for each column b of B and r of radius.

    Where no z is feasible (G = 0 and r > 0), z is zero and the solution has not converged.
    """
    spectrum = _decompose(G, penalty)
    minimum = _minimise(spectrum, B, radius)
    Z = spectrum.W * (spectrum.V @ minimum.u.T)
    return Solution(Z, n_iter=minimum.n_iter, converged=minimum.converged)


@dataclass(frozen=True)
class VarianceFold:
    """A ``FoldLoss`` of variance-constrained least squares.

    Its values are one penalty per group of features, then a common factor of all radii.
    """

    fold: Fold
    radius: Array  # (q,): root mean square of the predictions for each target

    @property
    def n_valid(self) -> float:
        return self.fold.n_valid

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        radii = values[-1] * self.radius * np.sqrt(self.fold.n)
        return variance_fold(self.fold, values[:-1], radii)


def variance_fold(fold: Fold, values: Array, radii: Array) -> tuple[float, Array]:
    """Loss of a fold, and its gradient in log penalty, one entry per group, and in log c.

    ``values`` (p,) is one penalty per group, and ``radii`` (q,) are the norms of the predictions of
    the training part, of which c is a common factor.
    """
    spectrum = _decompose(fold.G, bounded(fold.penalty(values), np.diagonal(fold.G)))
    minimum = _minimise(spectrum, fold.B, radii)
    Y = spectrum.V @ minimum.u.T  # (r, q)
    Z = spectrum.W * Y
    x, rho = _adjoint(spectrum, minimum, spectrum.weighted(fold.loss_gradient(Z)))
    slope = np.einsum("iq,iq->i", spectrum.V @ x.T, Y)  # dF / dlog penalty
    slopes = group_sums(slope, fold.groups, len(values))
    return fold.loss(Z), np.append(slopes, radii**2 @ rho)


def bounded(penalty: Array, squares: Array) -> Array:  # (r,), (r,) -> (r,)
    """Penalties of least squares, within bounds beyond which they decide nothing.

    They are compared with the largest sum of squares of a feature. Without bounds, the smallest
    penalties would make errors of eigenvectors large, and the largest ones would overflow.
    """
    largest = float(np.max(squares, initial=0.0))
    if largest <= 0:
        return penalty
    return np.clip(penalty, LEAST_PENALTY * largest, MOST_PENALTY * largest)


def _decompose(G: Array, penalty: Array) -> _Spectrum:
    W = 1 / np.sqrt(np.asarray(penalty, dtype=np.float64))[:, None]
    A = np.multiply(W * G, W.T, order="F")
    tau, V = eigh(A, overwrite_a=True, check_finite=False, driver="evd")
    tau = np.maximum(tau, 0.0)
    tau_max = float(np.max(tau, initial=0.0))
    s = tau / (tau_max or 1.0)
    s[s >= 1 - ROUNDING * np.sqrt(len(s))] = 1.0
    return _Spectrum(W, V, s, tau_max)


def _minimise(spectrum: _Spectrum, B: Array, radius: Array) -> _Minimum:
    s, top = spectrum.s, spectrum.top
    d = spectrum.weighted(B)  # (q, r)
    if not spectrum.tau_max:  # all predictions are zero
        inverse = np.where(radius[:, None] > 0, 0.0, np.ones_like(d))
        return _Minimum(d * inverse, np.zeros(len(d)), inverse, 0, not np.any(radius))
    absent = _norm(d[:, top]) <= ROUNDING * np.sqrt(len(s)) * _norm(d)
    d[np.ix_(absent, top)] = 0.0
    e = np.sqrt(spectrum.tau_max * s) * d
    zero = radius <= RADIUS_RTOL * _norm(e)
    r = np.where(zero, 1.0, radius)
    e = np.where(zero[:, None], 0.0, e / r[:, None])
    delta, n_iter, converged = _secular(e, s, top)
    delta[zero] = LARGEST  # mu = -infinity
    inverse = _inverse(s, delta)
    u = d * inverse
    hard = delta == 0.0  # the norm is too small even at mu = 1 / tau_max
    missing = np.sqrt(np.maximum(0.0, 1 - np.square(_norm(e * inverse)))) * r
    share = np.where(hard, missing / np.sqrt(spectrum.tau_max), 0.0)
    u[:, top] += share[:, None] * spectrum.top_direction()
    return _Minimum(u, delta, inverse, n_iter, converged)


def _norm(A: Array) -> Array:  # (q, k) -> (q,)
    """The norm of each row, without overflow or underflow of its squares."""
    peak = np.max(np.abs(A), axis=1, initial=0.0, keepdims=True)
    unit = A / np.where(peak > 0, peak, 1.0)
    return np.asarray(peak[:, 0] * np.sqrt(np.square(unit).sum(axis=1)))


def _inverse(s: Array, delta: Array) -> Array:  # (r,), (q,) -> (q, r)
    """1 / (1 - mu tau), and 0 where mu = 1 / tau."""
    rest = (1 - s) + delta[:, None] * s
    return np.asarray(np.divide(1.0, rest, out=np.zeros_like(rest), where=rest > 0))


def _secular(e: Array, s: Array, top: Array) -> tuple[Array, int, bool]:
    """The delta >= 0 of each target at which phi = |e / ((1 - s) + delta s)| is 1, or 0.

    Newton's method is applied to 1/phi, which is increasing and concave: started left of the root
    it never overshoots.
    """
    delta = _norm(e[:, top])  # left of the root, as the top eigenspace alone has phi = 1 there
    n_iter, done = 0, np.zeros(len(e), dtype=bool)
    while n_iter < MAX_ITER:
        n_iter += 1
        inverse = _inverse(s, delta)
        terms = np.square(e * inverse)
        phi = np.sqrt(terms.sum(axis=1))
        done = (np.abs(phi - 1) <= SECULAR_RTOL) | ((delta == 0.0) & (phi < 1))
        if done.all():
            break
        slope = np.where(done, 1.0, (terms * s * inverse).sum(axis=1))
        delta = np.where(done, delta, delta + (phi - 1) * phi**2 / slope)
    return delta, n_iter, bool(done.all())


def _adjoint(spectrum: _Spectrum, minimum: _Minimum, h: Array) -> tuple[Array, Array]:
    """x = (rho tau u - h) / (1 - mu tau) and rho = h't / (u' tau t), t = tau u / (1 - mu tau).

    Here h is V'W dF/dz. Along the top part of u both terms of x grow as 1 / delta, so that x has a
    closed form there.
    """
    top, delta, inverse = spectrum.top, minimum.delta, minimum.inverse
    su = spectrum.s * minimum.u  # rho is computed with s in the place of tau
    u_top = _norm(minimum.u[:, top])
    along = np.where(top, minimum.u, 0.0) / np.where(u_top > 0, u_top, 1.0)[:, None]
    h_top = (h * along).sum(axis=1)
    t = np.where(top, 0.0, su * inverse)
    ht, ut = (h * t).sum(axis=1), (su * t).sum(axis=1)
    scale = u_top**2 + delta * ut
    scale = np.where(scale > 0, scale, 1.0)  # zero if u lies in the null space of G
    rho = (h_top * u_top + delta * ht) / scale
    x = (np.where(top, 0.0, rho[:, None] * su) - h + h_top[:, None] * along) * inverse
    x += ((ht * u_top - h_top * ut) / scale)[:, None] * along
    return x, rho / (spectrum.tau_max or 1.0)
