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
resolvent: with B = (K + is)^-1 of all objects

    k_i' (K_-i + is)^-1 v     =  v_i - (B v)_i / B_ii,
    u' (K_-i + is)^-1 v       =  u'B v - (B u)_i (B v)_i / B_ii,

the vectors on the left being without their entry i. With x + iy = 1 / (t + is) the filters of Krein
features are integrals of resolvents,

     1{t > 0} / (t + c)    =  1/pi int_0^inf (c x - s y) / (c^2 + s^2) ds,
    -1{t < 0} / (|t| + c)  =  1/pi int_0^inf (c x + s y) / (c^2 + s^2) ds,

and that of similarity features is a single one: t / (t^2 + c) = Re 1 / (t + i sqrt(c)).

The trapezoid rule in log s converges like exp(-pi^2 / step), because the nearest singularities, at
s = +-it and s = +-ic, are pi / 2 away from the real line of log s. The resolvents are evaluated
only at nodes between the smallest and the largest |eigenvalue|. Beyond these x and y follow powers
of s, and the sum over the further nodes, which depends on c, is a factor of the outermost values.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import group_sums
from kreinlearn.solvers.spectrum import Spectrum, signed_eigh

ACCURACY = 1e-7  # of the integrals; predictions are accurate to 1e-4 of the largest, or better
LEAST = 1e-12  # of the largest |eigenvalue|: smaller ones of a matrix without an object are zero
BEYOND = 1e-9  # nodes end where their weight is this part of the largest
ROWS_AT_A_TIME = 512  # of squares of eigenvectors
SIGNS = np.array([1.0, -1.0])  # of the two parts of the spectrum
NULL_RTOL = 4 * float(np.finfo(np.float64).eps)  # times n: part of an object in the null space


@dataclass(frozen=True)
class Eigenbasis:
    """W^1/2 K W^1/2 = U diag(d) U', without the eigenvalues that are rounding errors."""

    spectrum: Spectrum
    root: Array  # (n,) square roots of the weights
    signed: bool  # Krein features; otherwise the similarities themselves are the features
    n: float  # the weight of all objects
    scale: float  # the largest eigenvalue of the Gram matrix of the features over n; 1 if zero
    unit: float = 1.0  # of the similarities, by which K was divided

    @classmethod
    def of(
        cls, K: Array, w: Array | None, *, signed: bool, rtol: float | None = None,
        unit: float = 1.0, overwrite: bool = False,
    ) -> Eigenbasis:  # fmt: skip
        """Decompose K; eigenvalues up to ``rtol`` times the largest count as zero.

        ``unit`` is remembered. With ``overwrite`` the memory of K is used for something else.
        """
        root = np.ones(len(K)) if w is None else np.sqrt(w)
        if w is not None:
            K, overwrite = root[:, None] * K * root, True
        spectrum = signed_eigh(K, rtol=rtol, overwrite=overwrite)
        n, largest = float(np.square(root).sum()), float(np.max(np.abs(spectrum.D), initial=0.0))
        scale = (largest if signed else largest**2) / n or 1.0
        return cls(spectrum, root, signed, n, scale, unit)

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


@dataclass(frozen=True)
class Nodes:
    """Nodes s of the trapezoid rule in log s, and the weights of resolvents at these nodes."""

    s: Array  # (S,), a geometric series
    step: float

    @classmethod
    def between(cls, least: float, most: float, accuracy: float) -> Nodes:
        """Nodes that cover eigenvalues of these magnitudes, as densely as the accuracy asks for."""
        step = float(np.pi**2 / np.log(4 / accuracy))
        margin = np.sqrt(accuracy)
        count = int(np.ceil(np.log(most / least / margin**2) / step)) + 1
        return cls(least * margin * np.exp(step * np.arange(max(count, 2))), step)

    def weights(self, c: Array, signs: Array) -> tuple[Array, Array]:  # (p,), (p,)
        """Weights of x and then of y at all nodes, for penalties c of parts with these signs.

        Both arrays have the shape (2 S, p, 2): nodes, penalties, and the filter followed by its
        derivative in the logarithm of c. The integrals halve an eigenvalue of zero between both
        signs; by the second array neither of them has a part of it.
        """
        signs = signs[:, None]
        S, low, high = len(self.s), self.s[0], self.s[-1]
        below, above = self._beyond(c)
        x, y = self._everywhere(np.concatenate([below, self.s, above]), c)
        k = len(below)
        of_x, of_y = x[k : k + S], y[k : k + S]
        of_x[0] += x[:k].sum(axis=0)  # x is constant, and y is a s / low - b low / s
        ratio = np.exp(self.step)
        b = np.array([-ratio, 1.0])[:, None] / (ratio - 1 / ratio)  # from the two lowest y
        a = b + np.array([[1.0], [0.0]])
        below = below / low
        from_below = np.hstack([a, b]) @ np.stack([below, -1 / below])  # (2, k)
        of_y[:2] += np.tensordot(from_below, y[:k], 1)
        above = high / above
        of_x[-1] += np.tensordot(np.square(above), x[k + S :], 1)  # x falls like s^-2
        of_y[-1] += np.tensordot(above, y[k + S :], 1)  # and y like s^-1
        of_y *= -signs
        weights = np.concatenate([of_x, of_y])
        cut = weights.copy()
        halves = (0.5 * low / c)[:, None] * np.array([1.0, -1.0])
        cut[S : S + 2] -= b[..., None] * (signs * halves)
        return weights, cut

    def _everywhere(self, s: Array, c: Array) -> tuple[Array, Array]:  # (S, p, 2), (S, p, 2)
        """Weights of x and of |y| at some nodes for each c, and their derivatives in log c."""
        s = s[:, None]
        ratio = np.minimum(s, c) / np.maximum(s, c)  # at most 1: no square overflows
        squared = np.square(ratio)
        below = (self.step / np.pi) / (1 + squared)
        x, y = np.empty((2, *ratio.shape, 2))
        x[..., 0] = ratio * below  # c s / (c^2 + s^2)
        y[..., 0] = np.where(s < c, squared, 1.0) * below  # s^2 / (c^2 + s^2)
        share = y[..., 0] * (2 * np.pi / self.step)
        x[..., 1] = x[..., 0] * (share - 1)
        y[..., 1] = y[..., 0] * (share - 2)
        return x, y

    def _beyond(self, c: Array) -> tuple[Array, Array]:
        """Nodes below and above all others, as far as they matter for the penalties c."""
        low, high = self.s[0], self.s[-1]
        down = np.log(max(low / c.min(), 1.0) / BEYOND) / self.step
        up = np.log(max(c.max() / high, 1.0) / BEYOND) / self.step
        return (
            low * np.exp(-self.step * np.arange(1, int(down) + 2)),
            high * np.exp(self.step * np.arange(1, int(up) + 2)),
        )


class LeaveOneOutLoss:
    """The squared error of objects, each of which is predicted by a model of all others.

    The model without an object has the penalties c of all objects. This is an objective for
    ``learn.search``: loss per unit of weight, and gradient in the logarithms of the penalties.
    """

    def __init__(
        self, basis: Eigenbasis, Y: Array, *, intercept: bool, accuracy: float = ACCURACY
    ) -> None:
        self.basis, self.intercept = basis, intercept
        root = basis.root[:, None]
        self.shift = root[:, 0] @ (root * Y) / basis.n if intercept else np.zeros(Y.shape[1])
        self.Y, self.w = Y - self.shift, np.square(root)
        self.T = np.hstack([root * self.Y, root])  # the last target gives the intercept
        self.resolvent = Resolvent(basis)
        if basis.signed:
            self.nodes = Nodes.between(*self.resolvent.magnitudes(), accuracy)
            self.rows, self.sums = self.resolvent.without_each(
                self.T, self.nodes.s, intercept=intercept
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

    # Scores

    def scores(self, values: Array) -> Array:  # (n, q)
        """The prediction of each object by a model of all others."""
        return np.asarray(self._scores(values)[0] + self.shift)

    def __call__(self, values: Array) -> tuple[float, Array]:
        """The loss per unit of weight, and its gradient in the logarithms of ``values``."""
        f, slopes = self._scores(values)
        E = f - self.Y
        gradient = [2 * (self.w * E * slope).sum() for slope in slopes]
        gradient += [0.0] * (len(values) - len(gradient))
        return float((self.w * np.square(E)).sum()) / self.basis.n, np.array(
            gradient
        ) / self.basis.n

    def losses(self, trials: Array) -> Array:  # (t, p) -> (t,)
        """The losses of several penalties, from products with all of them at once."""
        if not self.basis.signed:
            return np.array([self(values)[0] for values in trials])
        t, c = len(trials), self.basis.n * trials[:, :2]
        whole, cut = self.nodes.weights(c.T.ravel(), np.repeat(SIGNS, t))
        root = self.basis.root[:, None, None]
        F = applied(self.rows, cut[:, :t, 0] + cut[:, t:, 0]) / root  # (n, q + 1, t)
        f = F[:, :-1]
        if self.sums is not None:
            whole = whole[..., 0] * c.T.ravel()
            a = applied(self.sums, whole[:, :t] - whole[:, t:])
            f = f + a[:, :-1] / a[:, -1:] * (1 - F[:, -1:])
        squares = np.square(f - self.Y[..., None]).sum(axis=1)  # (n, t)
        return np.asarray(self.w[:, 0] @ squares / self.basis.n)

    def per_fold(self, values: Array) -> Array:  # (n,)
        """The loss of each object times its share of the weight of all."""
        E = self._scores(values)[0] - self.Y
        return np.asarray((self.w * np.square(E)).sum(axis=1) * (len(E) / self.basis.n))

    def _scores(self, values: Array) -> tuple[Array, list[Array]]:
        """Predictions of the shifted targets, and their derivatives in each log penalty."""
        of_rows, of_sums = self._signed(values) if self.basis.signed else self._single(values)
        root = self.basis.root[:, None, None]
        F = of_rows / root  # (n, q + 1, 1 + p): values, then derivatives
        f = F[:, :-1]
        if of_sums is not None:
            a, a_one = of_sums[:, :-1], of_sums[:, -1:]
            b = a[..., :1] / a_one[..., :1]
            left = 1 - F[:, -1:, :1]
            db = (a[..., 1:] - b * a_one[..., 1:]) / a_one[..., :1]
            df = f[..., 1:] + db * left - b * F[:, -1:, 1:]
            f = np.concatenate([f[..., :1] + b * left, df], axis=2)
        return f[..., 0], [f[..., j] for j in range(1, f.shape[2])]

    def _signed(self, values: Array) -> tuple[Array, Array | None]:
        """Values and derivatives of k_i'g(K_-i) v, and of 1'(I - H) v for the intercept."""
        c = self.basis.n * values[:2]
        whole, cut = self.nodes.weights(c, SIGNS)
        rows = applied(self.rows, np.column_stack([cut[..., 0].sum(axis=1), cut[..., 1]]))
        if self.sums is None:
            return rows, None
        whole *= (SIGNS * c)[:, None]
        slopes = whole.sum(axis=2)  # of c times a filter
        return rows, applied(self.sums, np.column_stack([whole[..., 0].sum(axis=1), slopes]))

    def _single(self, values: Array) -> tuple[Array, Array | None]:
        """The same for similarity features, which need one resolvent."""
        s = np.sqrt(self.basis.n * values[0])
        (rows, row_slopes), (sums, sum_slopes) = self.resolvent.at(self.T, s)
        rows = np.stack([rows.real, 0.5 * s * row_slopes.real], axis=2)
        if not self.intercept:
            return rows, None
        slope = 0.5 * s * (sums.imag + s * sum_slopes.imag)
        return rows, np.stack([-s * sums.imag, -slope], axis=2)


class Resolvent:
    """(K + is)^-1 of all objects, and of all but one."""

    def __init__(self, basis: Eigenbasis) -> None:
        U = basis.spectrum.U
        self.D, self.U, self.root = basis.spectrum.D, U, basis.root
        self.null = 1 - self._of_squares(np.ones(U.shape[1]))  # diagonal of the projection on it
        self.null[self.null < NULL_RTOL * len(U)] = 0.0
        if U.shape[1] == len(U):
            self.null[:] = 0.0

    def magnitudes(self) -> tuple[float, float]:
        """The smallest and the largest |eigenvalue| of the matrix, also without one object.

        The eigenvalues without object i are the zeros of t -> ((K - t)^-1)_ii. Between the
        smallest positive and the largest negative eigenvalue of K there is one, which may be
        closer to zero than both; a step of Newton's method from t = 0 finds it.
        """
        if not len(self.D):
            return 1.0, 1.0
        size, inverse = np.abs(self.D), 1 / self.D
        value, slope = self._of_squares(np.stack([inverse, np.square(inverse)], axis=1)).T
        in_null = self.null > 0
        nearest = np.abs(value) / np.where(slope > 0, slope, 1.0)
        nearest[in_null] = self.null[in_null] / np.maximum(np.abs(value[in_null]), 1 / size.max())
        most = float(size.max())
        least = min(float(size.min()), float(nearest.min()))
        return max(least, LEAST * most), most

    def outside(self, T: Array) -> Array:
        """The part of vectors in the null space."""
        if not self.null.any():
            return np.zeros_like(T)
        return np.where(self.null[:, None] > 0, T - self.U @ (self.U.T @ T), 0.0)

    def without_each(self, T: Array, s: Array, *, intercept: bool) -> tuple[Array, Array | None]:
        """Real and then imaginary parts at all nodes: (n, q, 2 S) each.

        First k_i'(K_-i + is)^-1 v of every column v of T, then u'(K_-i + is)^-1 v of the last
        column u, which is that of the intercept.
        """
        n, q = T.shape
        R = 1 / (self.D[:, None] + 1j * s)  # (r, S)
        diagonal = self._of_squares(R) + self.null[:, None] / (1j * s)
        V, outside = self.U.T @ T, self.outside(T)
        rows = np.empty((n, q, 2 * len(s)))
        sums = np.empty((n, q, 2 * len(s))) if intercept else None
        of_one = self._applied(V, outside, R, s, q - 1)
        share = of_one / diagonal
        for j in range(q):
            BT = of_one if j == q - 1 else self._applied(V, outside, R, s, j)
            split(T[:, j, None] - BT / diagonal, rows[:, j])
            if sums is not None:
                whole = (V[:, j] * V[:, -1]) @ R + (outside[:, j] @ outside[:, -1]) / (1j * s)
                split(whole - share * BT, sums[:, j])
        return rows, sums

    def _of_squares(self, R: Array) -> Array:  # (r, ...) -> (n, ...)
        """The squares of all eigenvectors times R, without holding them all at once."""
        out = np.empty((len(self.U), *R.shape[1:]), R.dtype)
        for start in range(0, len(self.U), ROWS_AT_A_TIME):
            here = slice(start, start + ROWS_AT_A_TIME)
            out[here] = product(np.square(self.U[here]), R)
        return out

    def _applied(self, V: Array, outside: Array, R: Array, s: Array, j: int) -> Array:  # (n, S)
        return product(self.U, R * V[:, j, None]) + outside[:, j, None] / (1j * s)

    def at(self, T: Array, s: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Both kinds of values (n, q) at one node, each with its derivative in s."""
        R = 1 / (self.D + 1j * s)
        V, outside = self.U.T @ T, self.outside(T)
        squared, pole, pole2 = -1j * np.square(R), 1 / (1j * s), -1 / (1j * s * s)
        d, dd = self._of_squares(np.stack([R, squared], axis=1)).T
        d, dd = d + self.null * pole, dd + self.null * pole2
        B = product(self.U, R[:, None] * V) + outside * pole
        dB = product(self.U, squared[:, None] * V) + outside * pole2
        d, dd = d[:, None], dd[:, None]
        rows, row_slopes = T - B / d, -(dB - B * (dd / d)) / d
        one, done = B[:, -1:], dB[:, -1:]
        null = outside[:, -1] @ outside
        whole = (V[:, -1] * R) @ V + null * pole
        dwhole = (V[:, -1] * squared) @ V + null * pole2
        sums = whole - one * B / d
        sum_slopes = dwhole - (done * B + one * dB - one * B * (dd / d)) / d
        return (rows, row_slopes), (sums, sum_slopes)


def product(U: Array, R: Array) -> Array:
    """A real matrix times a real or complex one, without a complex copy of the first."""
    if not np.iscomplexobj(R):
        return np.asarray(U @ R)
    return np.asarray(U @ R.real + 1j * (U @ R.imag))


def applied(values: Array, weights: Array) -> Array:  # (n, q, s), (s, p) -> (n, q, p)
    """All rows of all objects times the same weights, as one product of matrices."""
    n, q, _ = values.shape
    return np.asarray((values.reshape(n * q, -1) @ weights).reshape(n, q, -1))


def split(values: Array, out: Array) -> None:
    """Real parts into the first half of the columns, imaginary parts into the second."""
    half = values.shape[1]
    out[:, :half], out[:, half:] = values.real, values.imag
