"""Ridge regression with all objects as landmarks, in the eigenbasis of their kernel matrix.

With K = U diag(d) U' every least-squares problem is diagonal. The prediction of an object x is
f(x) = b + k(x)' g(K) (Y - b), where g depends on the features:

- Krein features: g(t) = 1 / (t + c_+) for t > 0 and -1 / (|t| + c_-) for t < 0,
- similarity features: g(t) = t / (t^2 + c),

and c is the penalty times the weight of all objects. Weights mean repetition: the matrix that is
decomposed is W^1/2 K W^1/2.

The honest leave-one-out of all penalties follows from the same eigendecomposition. Leaving object i
out also takes its row and column out of the kernel matrix, so that the features of the others
change. For a function g of the eigenvalues there is no formula for that, but there is one for a
resolvent: with B = (K + is)^-1 of all objects, and vectors on the left without their entry i,

    v_i - k_i' (K_-i + is)^-1 v  =  (B v)_i / B_ii,
    u' (K_-i + is)^-1 v          =  u'B v - (B u)_i (B v)_i / B_ii.

What a model leaves of a target has the filter q(t) = 1 - t g(t). That of similarity features is
the real part of is / (t + is) at s = sqrt(c). That of Krein features, c_+ / (t + c_+) for t > 0 and
c_- / (|t| + c_-) for t < 0, is a sum of real and imaginary parts,

    q(t)  =  1/pi int_0^inf Re(is / (t + is)) (c_+ / (c_+^2 + s^2) + c_- / (c_-^2 + s^2)) ds
           + 1/pi int_0^inf Im(is / (t + is)) (c_+^2 / (c_+^2 + s^2) - c_-^2 / (c_-^2 + s^2)) ds/s.

The same sum of (B v)_i / B_ii is the error of object i, and that of is u'(K_-i + is)^-1 v gives the
intercept. If K is doubly centred, K_-i still knows the object: it was in the means. Centred anew,
it is K without the direction of e_i among all that are orthogonal to the constant, where B has no
part of the constant. With centred targets the formula of the error is the same as above.

The trapezoid rule in log s converges like exp(-pi^2 / step), because the nearest singularities, at
s = +-it and s = +-ic, are pi / 2 away from the real line of log s. Its error is that of q alone:
with g = (1 - q) / t the result is what n fits with an approximate q give, that is with a penalty of
its own for every eigenvalue. If c_+ = c_-, all terms have the sign of their sum, and every penalty
has a relative error of exp(-pi^2 / step). A sign that K does not have is given the penalty of the
other one, because by interlacing no part of K has it either. If c_+ and c_- differ, what belongs to
the larger one does not vanish quite on the other side, and q has an absolute error. As q is at
least c / (1 + c) with the largest |eigenvalue| as the unit, penalties are as accurate as asked for
from c = GUARD on if q is that much more accurate, and GUARD / c times less accurate below.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import group_sums
from kreinlearn.solvers.spectrum import Spectrum, power_of_two_scale, rank_rtol, signed_eigh

ACCURACY = 1e-7  # of the penalties of a closed form; predictions are accurate to 1e-4, or better
GUARD = 1e-7  # of the largest |eigenvalue|: penalties from here on are as accurate as that
PENALTIES = (1e-12, 1e8)  # of the largest |eigenvalue|: others are taken to be the nearest of these
BEYOND = 1e-14  # the trapezoid rule ends where its weights are this part of the largest
ROWS_AT_A_TIME = 512  # of squares of eigenvectors
SIGNS = np.array([1.0, -1.0])  # of the two parts of the spectrum
NULL_RTOL = 4 * float(np.finfo(np.float64).eps)  # times n: part of an object in the null space
ORDINARY = (1e-60, 1e60)  # weights; others are divided by their size, because they are squared


@dataclass(frozen=True)
class Eigenbasis:
    """W^1/2 K W^1/2 = U diag(d) U', without the eigenvalues that are rounding errors."""

    spectrum: Spectrum
    root: Array  # (n,) square roots of the weights
    signed: bool  # Krein features; otherwise the similarities themselves are the features
    n: float  # the weight of all objects
    scale: float  # the largest eigenvalue of the Gram matrix of the features over n; 1 if zero
    unit: float = 1.0  # of the similarities, by which K was divided
    rtol: float = 0.0  # of the largest |eigenvalue|: others were rounding errors

    @classmethod
    def of(
        cls, K: Array, w: Array | None, *, signed: bool, rtol: float | None = None,
        unit: float = 1.0, overwrite: bool = False,
    ) -> Eigenbasis:  # fmt: skip
        """Decompose K; eigenvalues up to ``rtol`` times the largest count as zero.

        ``unit`` is remembered. With ``overwrite`` the memory of K is used for something else.
        """
        if w is not None and not ORDINARY[0] < np.max(w) < ORDINARY[1]:
            w = w / power_of_two_scale(w)
        root = np.ones(len(K)) if w is None else np.sqrt(w)
        if w is not None:
            K, overwrite = root[:, None] * K * root, True
        rtol = rank_rtol(len(K)) if rtol is None else rtol
        spectrum = signed_eigh(K, rtol=rtol, overwrite=overwrite)
        n, largest = float(np.square(root).sum()), float(np.max(np.abs(spectrum.D), initial=0.0))
        scale = (largest if signed else largest**2) / n or 1.0
        return cls(spectrum, root, signed, n, scale, unit, rtol)

    @property
    def groups(self) -> Array:  # (r,)
        """The group of each eigenvalue, by which it has a penalty."""
        negative = self.spectrum.D < 0
        return np.asarray(negative & self.signed, dtype=np.intp)

    def filter(self, penalty: Array) -> Array:  # (r,) -> (r,)
        """g of every eigenvalue, at a penalty c of its own."""
        D = self.spectrum.D
        if self.signed:
            return np.asarray(np.sign(D) / (np.abs(D) + penalty))
        return np.asarray(D / (np.square(D) + penalty))

    def rest(self, penalty: Array) -> Array:  # (r,) -> (r,)
        """1 - t g(t) of every eigenvalue t: what the model leaves of a target."""
        D = self.spectrum.D
        return np.asarray(penalty / ((np.abs(D) if self.signed else np.square(D)) + penalty))


class Projected:
    """Targets in an eigenbasis, from which a model at any penalties is read off."""

    def __init__(self, basis: Eigenbasis, Y: Array, *, intercept: bool) -> None:  # (n, q)
        U, root = basis.spectrum.U, basis.root
        self.basis, self.intercept = basis, intercept
        self.shift = root @ (root[:, None] * Y) / basis.n if intercept else np.zeros(Y.shape[1])
        T = root[:, None] * (Y - self.shift)  # digits are not lost to a large mean
        self.ones, self.T = U.T @ root, U.T @ T  # (r,), (r, q)
        outside = np.zeros(len(root)) if U.shape[1] == len(U) else root - U @ self.ones
        self.ones_outside, self.T_outside = float(outside @ root), outside @ T

    def solve(self, values: Array) -> tuple[Array, Array]:
        """Coefficients (r, q) of the eigenvectors and intercept (q,), at one penalty per group.

        Objects with similarities k to the training objects have the predictions
        ``(k * root) @ U @ coefficients + intercept``.
        """
        penalty = self.basis.n * values[self.basis.groups]
        b, _ = self._constant(self.basis.rest(penalty))
        return self.basis.filter(penalty)[:, None] * self._less(b), b + self.shift

    def largest_share(self, values: Array) -> float:
        """The share that one eigenvector has in the squares of all coefficients."""
        squares = np.square(self.solve(values)[0]).sum(axis=1)
        return float(squares.max(initial=0.0) / (squares.sum() or 1.0))

    def _constant(self, rest: Array) -> tuple[Array, float]:
        """b = 1'(I - H) Y / 1'(I - H) 1 with H = K g(K), and the denominator."""
        if not self.intercept:
            return np.zeros(self.T.shape[1]), 1.0
        kept = rest * self.ones
        below = float(kept @ self.ones) + self.ones_outside
        return np.asarray((kept @ self.T + self.T_outside) / below), below

    def _less(self, b: Array) -> Array:  # (q,) -> (r, q)
        return np.asarray(self.T - np.outer(self.ones, b))


class ExactFold(Projected):
    """A decomposed training part, and the similarities of its validation part: a ``FoldLoss``.

    A trial of penalties costs products with the eigenvectors, and no factorisation.
    """

    def __init__(
        self, basis: Eigenbasis, Y: Array, K_valid: Array, Y_valid: Array, w_valid: Array,
        *, intercept: bool,
    ) -> None:  # fmt: skip
        super().__init__(basis, Y, intercept=intercept)
        self.rows = (K_valid * basis.root) @ basis.spectrum.U  # (v, r)
        self.Y, self.valid = Y, Y_valid
        self.Y_valid, self.w = Y_valid - self.shift, w_valid[:, None]
        self.n_valid = float(w_valid.sum())

    def combined(self, M: Array) -> ExactFold:  # (q, k)
        """The same fold of k linear combinations of the targets."""
        other = copy(self)
        other.shift, other.T, other.T_outside = self.shift @ M, self.T @ M, self.T_outside @ M
        other.Y, other.valid, other.Y_valid = self.Y @ M, self.valid @ M, self.Y_valid @ M
        return other

    def losses(self, trials: Array) -> Array:  # (t, p) -> (t,)
        """Squared errors of the validation part at several penalties, by one product for all."""
        penalty = self.basis.n * trials[:, self.basis.groups]  # (t, r)
        g, rest = self.basis.filter(penalty), self.basis.rest(penalty)
        b = np.zeros((len(trials), self.T.shape[1]))
        if self.intercept:
            kept = rest * self.ones
            below = kept @ self.ones + self.ones_outside
            b = (kept @ self.T + self.T_outside) / below[:, None]
        left = self.T - self.ones[:, None] * b[:, None]  # (t, r, q)
        E = self.rows @ (g[..., None] * left) + b[:, None] - self.Y_valid
        return np.asarray((self.w * np.square(E)).sum(axis=(1, 2)))

    def loss_and_gradient(self, values: Array) -> tuple[float, Array]:
        """Squared error of the validation part, and its gradient in the logarithms of values."""
        groups, n_groups = self.basis.groups, len(values)
        penalty = self.basis.n * values[groups]
        g, rest = self.basis.filter(penalty), self.basis.rest(penalty)
        b, below = self._constant(rest)
        left = self._less(b)
        E = self.rows @ (g[:, None] * left) + b - self.Y_valid
        back = self.rows.T @ (2 * self.w * E)  # (r, q): the gradient in the coefficients
        # d g = -g rest and d rest = rest (1 - rest), in the logarithm of a penalty
        slope = -g * rest * (back * left).sum(axis=1)
        if self.intercept:
            by_constant = (2 * self.w * E).sum(axis=0) - (g * self.ones) @ back  # (q,)
            slope += rest * (1 - rest) * self.ones * (left @ by_constant) / below
        return float((self.w * np.square(E)).sum()), group_sums(slope, groups, n_groups)


# Every object left out


class Nodes:
    """Nodes s at which resolvents are evaluated, where the largest |eigenvalue| is one.

    The trapezoid rule goes far beyond them. There the real part of a resolvent is an even and its
    imaginary part an odd function of s, or of 1 / s, and polynomials through the outermost nodes
    continue both: through k on either side of the smallest |eigenvalue| and of the largest, with an
    error of exp(-k^2 step), or less.
    """

    def __init__(self, least: float, accuracy: float) -> None:
        """Nodes for |eigenvalues| from ``least`` on, as dense as the accuracy asks for."""
        digits = np.log(4 / (GUARD * accuracy))
        self.step = step = float(np.pi**2 / digits)
        k = int(np.ceil(digits / np.pi))  # k^2 step = digits
        count = int(np.ceil(-np.log(least) / step)) + 1 + 2 * k
        low = np.log(least) - k * step
        below = int((low - np.log(PENALTIES[0] * BEYOND)) / step)
        above = int((np.log(PENALTIES[1] / BEYOND) - low) / step) - count
        everywhere = np.exp(low + step * np.arange(-below, count + above))
        down, self.s, up = np.split(everywhere, [below, below + count])
        first, last = self.s[: 2 * k], self.s[-2 * k :]
        lower, upper = continued(first, np.append(down, 0.0)), continued(1 / last, 1 / up)
        self.everywhere = everywhere
        self.real = np.zeros((count, len(everywhere)))  # from weights everywhere to those of nodes
        self.real[:, below : below + count] = np.eye(count)
        self.real[: 2 * k, :below], self.real[-2 * k :, below + count :] = lower[:, :-1], upper
        self.imag = self.real.copy()
        self.imag[: 2 * k, :below] *= down / first[:, None]
        self.imag[-2 * k :, below + count :] *= last[:, None] / up
        # eigenvalues of zero, where a resolvent is 1 / is, have no part in a prediction
        self.imag[: 2 * k] -= np.outer(lower[:, -1] * first, (1 / self.s) @ self.imag)

    def weights(self, c: Array) -> Array:  # (2, p) -> (2 S, p, 3)
        """Weights of the real and the imaginary part at each node, for p pairs of penalties.

        The filter q comes first, then its derivatives in the logarithms of both penalties.
        """
        ratio = self.everywhere[:, None, None] / c.T  # (N, p, 2)
        share = 1 / (1 + np.square(ratio))  # c^2 / (c^2 + s^2)
        real, imag = (self.step / np.pi) * ratio * share, (self.step / np.pi) * SIGNS * share
        slopes = real * (1 - 2 * share), imag * (2 - 2 * share)
        both = [
            np.tensordot(at, np.concatenate([each.sum(axis=2, keepdims=True), slope], axis=2), 1)
            for at, each, slope in zip((self.real, self.imag), (real, imag), slopes, strict=True)
        ]
        return np.stack(both, axis=1).reshape(2 * len(self.s), -1, 3)


def continued(at: Array, to: Array) -> Array:  # (k,), (t,) -> (k, t)
    """Lagrange polynomials in s^2 of some nodes, at other places."""
    at, to = np.square(at / at.max()), np.square(to / at.max())
    apart, to = at[:, None] - at + np.eye(len(at)), to - at[:, None]
    return np.asarray(to.prod(axis=0) / (to * apart.prod(axis=1)[:, None]))


class LeaveOneOutLoss:
    """The squared error of objects, each of which is predicted by a model of all others.

    The model without an object has the penalties c of all objects. This is an objective for
    ``learn.search``: loss per unit of weight, and gradient in the logarithms of the penalties.

    If K is ``centred``, it is centred anew without each object. That needs an intercept, which is
    the mean target of the others, and equal weights.
    """

    def __init__(
        self, basis: Eigenbasis, Y: Array, *, intercept: bool, accuracy: float = ACCURACY,
        centred: bool = False,
    ) -> None:  # fmt: skip
        self.basis, self.intercept = basis, intercept and not centred
        root = basis.root[:, None]
        self.shift = root[:, 0] @ (root * Y) / basis.n if intercept else np.zeros(Y.shape[1])
        self.Y = Y - self.shift
        self.T = np.hstack([root * self.Y, root])  # the last target gives the intercept
        self.resolvent = Resolvent(basis, centred=centred)
        if basis.signed:
            there = [j for j, sign in enumerate(SIGNS) if (sign * basis.spectrum.D > 0).any()]
            self.sides = there if len(there) == 2 else 2 * (there or [0])  # whose penalty counts
            self.nodes = Nodes(self.resolvent.least(), accuracy)
            self.rows, self.sums = self.resolvent.without_each(
                self.T, self.nodes.s, intercept=self.intercept
            )

    def combined(self, M: Array) -> LeaveOneOutLoss:  # (q, k)
        """The same loss of k linear combinations of the targets, at little cost."""
        other = copy(self)
        other.shift, other.Y = self.shift @ M, self.Y @ M
        other.T = np.hstack([self.T[:, :-1] @ M, self.T[:, -1:]])
        if self.basis.signed:
            other.rows = np.concatenate([M.T @ self.rows[:, :-1], self.rows[:, -1:]], axis=1)
            if self.sums is not None:
                other.sums = np.concatenate([M.T @ self.sums[:, :-1], self.sums[:, -1:]], axis=1)
        return other

    def scores(self, values: Array) -> Array:  # (n, q)
        """The prediction of each object by a model of all others."""
        errors = self._errors(values)[0] / self.basis.root[:, None]
        return np.asarray(self.Y - errors + self.shift)

    def __call__(self, values: Array) -> tuple[float, Array]:
        """The loss per unit of weight, and its gradient in the logarithms of ``values``."""
        E, slopes = self._errors(values)
        gradient = np.zeros(len(values))
        for j, slope in slopes:
            gradient[j] += 2 * (E * slope).sum() / self.basis.n
        return float(np.square(E).sum()) / self.basis.n, gradient

    def losses(self, trials: Array) -> Array:  # (t, p) -> (t,)
        """The losses of several penalties, from products with all of them at once."""
        if not self.basis.signed:
            return np.array([self(values)[0] for values in trials])
        E, A = self._integrated(self._weights(trials)[..., 0])
        E, one = E[:, :-1], E[:, -1:]
        left = E if A is None else E - A[:, :-1] / A[:, -1:] * one
        return np.asarray(np.square(left).sum(axis=(0, 1)) / self.basis.n)

    def per_fold(self, values: Array) -> Array:  # (n,)
        """The loss of each object times its share of the weight of all."""
        E = self._errors(values)[0]
        return np.asarray(np.square(E).sum(axis=1) * (len(E) / self.basis.n))

    def _errors(self, values: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Errors times roots of weights (n, q), and their derivatives in log penalties."""
        if self.basis.signed:
            (E, A), sides = self._integrated(self._weights(values[None])[:, 0]), self.sides
        else:
            s = np.sqrt(self.basis.n * values[0]) / self.resolvent.unit
            E, A = self.resolvent.at(self.T, float(s), intercept=self.intercept)
            sides = [0]
        E, one = E[:, :-1], E[:, -1:]
        if A is not None:  # b = A / A_1, and E - b E_1
            A, below = A[:, :-1], A[:, -1:]
            b = A[..., :1] / below[..., :1]
            db = (A[..., 1:] - b * below[..., 1:]) / below[..., :1]
            E = E - b * one
            E[..., 1:] -= db * one[..., :1]
        return E[..., 0], [(j, E[..., 1 + k]) for k, j in enumerate(sides)]

    def _weights(self, trials: Array) -> Array:  # (t, p) -> (2 S, t, 3)
        c = self.basis.n / self.resolvent.unit * trials[:, self.sides].T
        return self.nodes.weights(np.clip(c, *PENALTIES))

    def _integrated(self, weights: Array) -> tuple[Array, Array | None]:
        """What models leave of the targets, and 1'q(K_-i) v for the intercept: (n, q + 1, t)."""
        sums = None if self.sums is None else applied(self.sums, weights)
        return applied(self.rows, weights), sums


class Resolvent:
    """(K + is)^-1 of all objects, and of all but one, where the largest |eigenvalue| is one."""

    def __init__(self, basis: Eigenbasis, *, centred: bool = False) -> None:
        D, U = basis.spectrum.D, basis.spectrum.U
        self.unit = float(np.max(np.abs(D), initial=0.0)) or 1.0
        self.D, self.U, self.rtol = D / self.unit, U, basis.rtol
        # diagonal of the projection on the null space; without the constant if K is centred
        self.null = 1 - centred / len(U) - self._of_squares(np.ones(U.shape[1]))
        self.null[self.null < NULL_RTOL * len(U)] = 0.0
        if U.shape[1] + centred >= len(U):
            self.null[:] = 0.0

    def least(self) -> float:
        """The smallest |eigenvalue| of the matrix, also without one object.

        The eigenvalues without object i are the zeros of t -> ((K - t)^-1)_ii. Those between the
        smallest positive and the largest negative eigenvalue of K may be closer to zero than both,
        and are found from the values at t = 0, to first order. What counts as zero is left out.
        """
        inverse = 1 / self.D
        value, slope = self._of_squares(np.stack([inverse, np.square(inverse)], axis=1)).T
        far = np.abs(value) + np.sqrt(np.square(value) + 4 * slope * self.null)
        related = far > 0
        far, null, slope = far[related], self.null[related], slope[related]
        without = np.concatenate([far / (2 * slope), 2 * null / far])
        own = float(np.min(np.abs(self.D), initial=1.0))
        return float(np.min(without[without > self.rtol], initial=own))

    def outside(self, T: Array) -> Array:
        """The part of vectors in the null space."""
        if not self.null.any():
            return np.zeros_like(T)
        return np.where(self.null[:, None] > 0, T - self.U @ (self.U.T @ T), 0.0)

    def without_each(self, T: Array, s: Array, *, intercept: bool) -> tuple[Array, Array | None]:
        """Real and imaginary parts at all nodes in turn: (n, q, 2 S) each.

        First v_i - k_i'(K_-i + is)^-1 v of every column v of T, then is u'(K_-i + is)^-1 v of the
        last column u, which is that of the intercept.
        """
        D, pole, (n, q) = self.D[:, None], 1 / (1j * s), T.shape
        R = ((D - 1j * s) / (np.square(D) + np.square(s))).view(np.float64)  # (r, 2 S)
        inverse = 1 / (self._of_squares(R).view(np.complex128) + self.null[:, None] * pole)
        V, outside = self.U.T @ T, self.outside(T)
        rows = np.empty((n, q, len(s)), np.complex128)
        sums = np.empty_like(rows) if intercept else None

        def of(j: int) -> Array:
            B = (self.U @ (R * V[:, j, None])).view(np.complex128)
            return np.asarray(B + outside[:, j, None] * pole)

        of_one = of(q - 1)
        for j in range(q):
            np.multiply(of_one if j == q - 1 else of(j), inverse, out=rows[:, j])
            if sums is not None:
                whole = ((V[:, j] * V[:, -1]) @ R).view(np.complex128)
                whole += outside[:, j] @ outside[:, -1] * pole
                sums[:, j] = 1j * s * (whole - rows[:, j] * of_one)
        return rows.view(np.float64), None if sums is None else sums.view(np.float64)

    def _of_squares(self, R: Array) -> Array:  # (r, ...) -> (n, ...)
        """The squares of all eigenvectors times R, without holding them all at once."""
        out = np.empty((len(self.U), *R.shape[1:]), R.dtype)
        for start in range(0, len(self.U), ROWS_AT_A_TIME):
            here = slice(start, start + ROWS_AT_A_TIME)
            out[here] = np.square(self.U[here]) @ R
        return out

    def at(self, T: Array, s: float, *, intercept: bool) -> tuple[Array, Array | None]:
        """Real parts of the same at one node, and their derivatives in log s^2: (n, q, 2)."""
        R = 1 / (self.D + 1j * s)
        both = np.stack([R, -1j * np.square(R)], axis=1)  # with the derivative in s
        poles = np.array([-1j / s, 1j / s**2])
        squares = self._of_squares(both.view(np.float64)).view(np.complex128)
        d, dd = (squares + self.null[:, None] * poles).T[..., None]
        V, outside = self.U.T @ T, self.outside(T)
        B, dB = (
            (self.U @ (each[:, None] * V).view(np.float64)).view(np.complex128) + outside * pole
            for each, pole in zip(both.T, poles, strict=True)
        )
        rows = B / d
        slopes = (dB - rows * dd) / d
        found = np.stack([rows.real, 0.5 * s * slopes.real], axis=2)
        if not intercept:
            return found, None
        whole, dwhole = (V[:, -1] * both.T) @ V + poles[:, None] * (outside[:, -1] @ outside)
        one, done = B[:, -1:], dB[:, -1:]
        sums = whole - rows * one
        slopes = sums + s * (dwhole - slopes * one - rows * done)
        return found, np.stack([-s * sums.imag, -0.5 * s * slopes.imag], axis=2)


def applied(values: Array, weights: Array) -> Array:  # (n, q, s), (s, p) -> (n, q, p)
    """All rows of all objects times the same weights, as one product of matrices."""
    n, q, s = values.shape
    return np.asarray((values.reshape(n * q, s) @ weights).reshape(n, q, -1))
