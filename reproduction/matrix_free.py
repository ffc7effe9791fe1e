"""Errors of approximations, without ever holding the kernel matrix in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.linalg
from sklearn.base import clone

from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.kernels import Kernel

Array = np.ndarray
TILE = 1024
DENSE = 3000  # rows up to which the whole matrix is decomposed
SPARE = 50  # columns of a basis beyond the largest rank
UNGUIDED = 20  # random columns of the first basis: they see what the landmarks miss
SETTLED = 1e-4  # relative change of an optimal error at which the iteration ends
MOST_PASSES = 15


class Tiled:
    """The symmetric kernel matrix of X, evaluated tile by tile with a kernel that is fitted."""

    def __init__(self, X: Array, kernel: Kernel) -> None:
        self.X, self.kernel = X, kernel

    def __len__(self) -> int:
        return len(self.X)

    def __iter__(self) -> Iterator[tuple[slice, slice, Array]]:
        """Rows, columns and values of the tiles on and above the diagonal."""
        spans = [slice(i, min(i + TILE, len(self))) for i in range(0, len(self), TILE)]
        for j, columns in enumerate(spans):
            evaluate = self.kernel.columns(self.X[columns])
            for rows in spans[:j]:
                yield rows, columns, evaluate(self.X[rows])
            yield columns, columns, self.kernel.symmetric(self.X[columns])

    def whole(self) -> Array:
        """The whole matrix, for a small number of rows."""
        K = np.empty((len(self), len(self)))
        for rows, columns, tile in self:
            K[rows, columns], K[columns, rows] = tile, tile.T
        return K

    def times(self, V: Array) -> tuple[Array, float]:
        """K V and |K|^2, from one pass over all pairs."""
        KV, square = np.zeros((len(self), V.shape[1])), 0.0
        for rows, columns, K in self:
            KV[rows] += K @ V[columns]
            if rows != columns:
                KV[columns] += K.T @ V[rows]
            square += _weight(rows, columns) * np.vdot(K, K)
        return KV, float(square)

    def squared_errors(self, factors: Sequence[tuple[Array, Array]]) -> Array:
        """|K - Phi diag(S) Phi'|^2 of each (Phi, S), from one pass over all pairs.

        It is |K|^2 - 2 <K, U diag(D) U'> + |D|^2 with orthonormal U, so that no other n x n matrix
        is needed. A Phi without columns gives |K|^2.
        """
        ends = np.cumsum([0, *(Phi.shape[1] for Phi, _ in factors)])
        spans, width = [slice(*ab) for ab in pairwise(ends)], ends[-1]
        U, D = np.empty((len(self), width)), np.empty(width)
        for (Phi, S), span in zip(factors, spans, strict=True):
            U[:, span], D[span] = eigen_form(Phi, S)
        inner, square, KU = np.zeros(width), 0.0, np.empty((TILE, width))
        for rows, columns, K in self:
            here = np.matmul(K, U[columns], out=KU[: len(K)])
            inner += _weight(rows, columns) * np.einsum("ij,ij->j", U[rows], here)
            square += _weight(rows, columns) * np.vdot(K, K)
        gains = D * (2 * inner - D)
        return np.maximum([square - gains[span].sum() for span in spans], 0.0)


def _weight(rows: slice, columns: slice) -> int:
    """How often the values of a tile occur in the matrix."""
    return 1 if rows == columns else 2


def eigen_form(Phi: Array, S: Array) -> tuple[Array, Array]:
    """U with orthonormal columns and D such that Phi diag(S) Phi' = U diag(D) U'."""
    Q, R = scipy.linalg.qr(Phi, mode="economic", check_finite=False)
    D, P = np.linalg.eigh((R * S) @ R.T)
    return Q @ P, D


# Silences a fit: its one warning is that the landmarks span fewer dimensions than the rank.
fewer_dimensions = partial(warnings.catch_warnings, action="ignore", category=UserWarning)


def nystroem(
    kernel: Kernel | str, landmarks: int | Array, rank: int | None = None, *, seed: int,
    scheme: str = "auto", core: str = "ls", method: str = "gram",
) -> KreinNystroem:  # fmt: skip
    """The approximation with these settings; every one of the reproduction is built here.

    ``landmarks`` is their number, or an array of row numbers.
    """
    chosen = Landmarks(landmarks, scheme, core)
    return KreinNystroem(
        kernel, landmarks=chosen, rank=rank, method=method, random_state=seed, n_jobs=1
    )


# The optimum


def optimal_errors(K: Tiled, ranks: Sequence[int], seed: int = 0) -> Array:
    """Errors of the best approximations: what the k largest eigenvalues leave of |K|^2.

    They are exact for few rows; else they approach the optimum from above (``_settled_errors``).
    """
    if len(K) <= DENSE:
        magnitudes = np.sort(np.abs(scipy.linalg.eigvalsh(K.whole(), overwrite_a=True)))[::-1]
        return np.array([np.linalg.norm(magnitudes[k:]) for k in ranks])
    return _settled_errors(K, ranks, seed)


def _settled_errors(K: Tiled, ranks: Sequence[int], seed: int) -> Array:
    """Errors from the singular values of K B, for bases B that grow until no error falls.

    For orthonormal B each singular value is at most the |eigenvalue| of the same number, so that
    the errors approach the optimum from above.
    """
    size, last = min(len(K), max(ranks) + SPARE), np.full(len(ranks), np.inf)
    Q = first_block(K, size, seed)
    B = KB = np.empty((len(K), 0))
    for _ in range(MOST_PASSES):
        KQ, square = K.times(Q)
        B, KB = np.hstack([B, Q]), np.hstack([KB, KQ])
        squared, Y = np.linalg.eigh(KB.T @ KB)
        squared, Y = squared[::-1], Y[:, : -2 * size - 1 : -1]
        B, KB = B @ Y, KB @ Y
        errors = np.sqrt(np.maximum([square - squared[:k].sum() for k in ranks], 0.0))
        if np.all(last - errors <= SETTLED * errors):
            return errors
        last, Q = errors, _beside(B, KB[:, :size])
    warnings.warn(
        f"optimal errors not settled after {MOST_PASSES} passes: they are too large", stacklevel=2
    )
    return last


def first_block(K: Tiled, size: int, seed: int) -> Array:
    """Approximate eigenvectors by the library, completed with random columns."""
    model = nystroem(K.kernel, min(len(K), 2 * size), size, seed=seed)
    with fewer_dimensions():
        U = model.fit(K.X).eigenvectors(K.X)
    rng = np.random.default_rng(seed)
    more = rng.standard_normal((len(K), min(len(K), size + UNGUIDED) - U.shape[1]))
    return np.linalg.qr(np.hstack([U, more]))[0]


def _beside(B: Array, V: Array) -> Array:
    """An orthonormal basis of what the columns of V add to the orthonormal B."""
    for _ in range(2):  # the second time removes what rounding left
        V = V - B @ (B.T @ V)
        V = np.linalg.qr(V)[0]
    return V


# What a fit evaluates


class Count:
    """The number of kernel values that were evaluated; clones of a kernel share it."""

    def __init__(self) -> None:
        self.values = 0

    def __sklearn_clone__(self) -> Self:
        return self


class Counted(Kernel):
    """A kernel on vectors that counts its values; a symmetric matrix counts each pair once."""

    def __init__(self, kernel: Kernel, count: Count) -> None:
        self.kernel = kernel
        self.count = count

    def fit(self, X: Array, rng: np.random.Generator) -> Self:
        self.kernel_ = clone(self.kernel).fit(X, rng)
        return self

    def columns(self, Z: Array) -> Any:
        inner, m = self.kernel_.columns(Z), len(Z)

        def counted(A: Array, out: Array | None = None) -> Array:
            self.count.values += len(A) * m
            return inner(A, out)

        return counted

    def diagonal(self, A: Array) -> Array:
        self.count.values += len(A)
        return self.kernel_.diagonal(A)

    def symmetric(self, Z: Array, own: Array | None = None) -> Array:
        self.count.values += len(Z) * (len(Z) + 1) // 2
        return self.kernel_.symmetric(Z)
