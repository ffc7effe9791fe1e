"""Quantities recomputed from their definitions. numpy only: nothing of the library is used here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPS = float(np.finfo(np.float64).eps)


# Spectra. Norms are 1-norms (largest column sum): nothing is squared, so 4**300 does not overflow.


def one_norm(A: Array) -> float:
    return float(np.max(np.sum(np.abs(A), axis=0), initial=0.0))


def residual_ratio(K: Array, U: Array, D: Array) -> float:
    """LAPACK's test ratio |K - U D U'| / (|K| n eps)."""
    scale = one_norm(K) * len(K) * EPS
    residual = one_norm(K - (U * D) @ U.T)
    return residual / scale if scale else residual


def orthogonality_ratio(U: Array) -> float:
    """LAPACK's test ratio |U'U - I| / (n eps)."""
    return one_norm(U.T @ U - np.eye(U.shape[1])) / (len(U) * EPS)


def indefiniteness_by_trace(K: Array) -> float:
    """iota from the sum of singular values and the trace: (|K|_* - tr K) / (2 |K|_*)."""
    nuclear = float(np.sum(np.linalg.svd(K, compute_uv=False)))
    return (nuclear - float(np.trace(K))) / (2 * nuclear) if nuclear else 0.0


# Corrected spectra, without an eigendecomposition.


def absolute_value(K: Array) -> Array:
    """(K'K)^1/2, the positive polar factor, from the singular value decomposition of K."""
    _, sigma, Vt = np.linalg.svd(K)
    return np.asarray((Vt.T * sigma) @ Vt)


def matrix_sign(K: Array) -> Array:
    """sign(K) of a nonsingular K by Newton's iteration X <- (X + X^-1) / 2."""
    X = K
    for _ in range(100):
        X, last = 0.5 * (X + np.linalg.inv(X)), X
        if one_norm(X - last) <= 1e-14 * one_norm(X):
            break
    return X


def flipped(K: Array) -> Array:
    return absolute_value(K)


def clipped(K: Array) -> Array:
    return 0.5 * (K + absolute_value(K))


def squared(K: Array) -> Array:
    return np.asarray(K @ K)


def shifted(K: Array) -> Array:
    """K less its smallest eigenvalue times I, if negative: |K|_2 - min eig = |(|K|_2 I - K)|_2."""
    top = float(np.linalg.norm(K, 2))
    smallest = top - float(np.linalg.norm(top * np.eye(len(K)) - K, 2))
    return K - min(smallest, 0.0) * np.eye(len(K))


def carried_to_new_rows(K: Array, corrected: Array, K_x: Array) -> Array:
    """K_x K^-1 K_corrected: the linear map that takes K to its correction, on new rows."""
    return np.asarray(K_x @ np.linalg.solve(K, corrected))


# Dissimilarities.


def double_centred(dissimilarity: Array) -> Array:
    """-1/2 J (d o d) J with J = I - 1 1'/n."""
    n = len(dissimilarity)
    J = np.eye(n) - np.full((n, n), 1.0 / n)
    return np.asarray(-0.5 * J @ dissimilarity**2 @ J)


# Nystroem: K ~ K_XZ K_ZZ^-1 K_ZX and what is built on it.


def nystroem(K_XZ: Array, K_ZZ: Array, K_ZY: Array) -> Array:
    return np.asarray(K_XZ @ np.linalg.solve(K_ZZ, K_ZY))


def best_rank(K: Array, k: int) -> Array:
    """The nearest matrix of rank k in Frobenius norm, by singular values."""
    U, sigma, Vt = np.linalg.svd(K)
    return np.asarray((U[:, :k] * sigma[:k]) @ Vt[:k])


def weighted_projection(Q_R: Array, K_RR: Array, n: int, sweeps: int, cut: float) -> Array:
    """M of K ~ Q M Q' by pseudo-inverses; the diagonal is imputed from the last M, in part."""
    w = 1 / np.sqrt((Q_R**2).sum(1) + Q_R.shape[1] / n)
    P = np.linalg.pinv(w[:, None] * Q_R, rcond=cut)
    share, filled = len(Q_R) / n, K_RR.copy()
    M = P @ (w[:, None] * filled * w) @ P.T
    for _ in range(sweeps):
        model = np.diag(Q_R @ M @ Q_R.T)
        np.fill_diagonal(filled, share * np.diag(K_RR) + (1 - share) * model)
        M = P @ (w[:, None] * filled * w) @ P.T
    return np.asarray(M)


def leverage_scores(K: Array, rank: int) -> Array:
    """Squared norms of the rows of the left singular vectors of the ``rank`` largest values."""
    U = np.linalg.svd(K)[0][:, :rank]
    return np.asarray((U**2).sum(1))


def centred(K: Array) -> Array:
    J = np.eye(len(K)) - 1 / len(K)
    return np.asarray(J @ K @ J)


def delta_gauss(X: Array, Y: Array, width: float, ratio: float) -> Array:
    d2 = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(2)
    return np.asarray(np.exp(-d2 / width) - np.exp(-ratio * d2 / width))
