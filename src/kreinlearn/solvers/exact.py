"""Ridge regression with all objects as landmarks, in the eigenbasis of their kernel matrix.

With K = U diag(d) U' every least-squares problem is diagonal. The prediction of an object x is
f(x) = b + k(x)' g(K) (Y - b), where g depends on the features:

- Krein features: g(t) = 1 / (t + c_+) for t > 0 and -1 / (|t| + c_-) for t < 0,
- similarity features: g(t) = t / (t^2 + c),

and c is the penalty times the weight of all objects. Weights mean repetition: the matrix that is
decomposed is W^1/2 K W^1/2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import group_sums
from kreinlearn.solvers.spectrum import Spectrum, signed_eigh


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
