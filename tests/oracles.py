"""Quantities recomputed from their definitions. numpy only: nothing of the library is used here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPS = float(np.finfo(np.float64).eps)


def products(A: Array, B: Array) -> Array:  # (n, d), (m, d) -> (n, m)
    """A B' by single products, so that a value does not depend on the shapes as BLAS's may."""
    total = np.multiply.outer(A[:, 0], B[:, 0])
    for a, b in zip(A.T[1:], B.T[1:], strict=True):
        total += np.multiply.outer(a, b)
    return total


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


def rank(d: float, to_reference: Array, zero: float) -> float:
    """The rank of an object at distance d from x, from the distances of x to a reference set.

    0 up to ``zero``. Otherwise 1 plus how many others are nearer, if d is the distance of an object
    in the profile: 1, ..., 16, 20, 24, 28, 32, 40, ..., and the last. Behind such a distance t the
    rank rises by the objects at t within an eighth of the gap to the next distance, then on to the
    next distance of the profile. Distances within ``zero`` are the same.
    """
    others = sorted(float(t) for t in to_reference)
    n, end = len(others), 2 * (others[-1] + zero)
    others = others[1:] if others[0] <= zero else others
    ranks = [*range(1, 17), *(j * 4 * 2**i for i in range(20) for j in (5, 6, 7, 8))]
    profile = [others[j - 1] for j in (*(j for j in ranks if j < n), n) if j <= len(others)]
    behind, ahead = [t for t in profile if t < d], [t for t in profile if t >= d]
    if d <= zero or not behind:
        return 0.0 if d <= zero else 1.0
    t = max(behind)
    risen = t + (min([u for u in others if u > t + zero], default=end) - t) / 8
    nearer, up_to = sum(u < t - zero for u in others), sum(u <= t + zero for u in others)
    if d <= risen:
        return 1 + nearer + (up_to - nearer) * (d - t) / (risen - t)
    to = min(ahead, default=end)
    further = sum(u < to - zero for u in others) - up_to
    return 1 + up_to + further * min(1.0, (d - risen) / (to - risen))


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


# Learners, from their definitions in the coefficients of landmarks: f(x) = k(x, Z) a + b with
# |f_+|^2 = a' K_+ a and |f_-|^2 = a' K_- a, where K_ZZ = K_+ - K_-.

CUT = 1e-10  # eigenvalues of K_ZZ that count, of the largest


def part_roots(K_ZZ: Array) -> tuple[Array, Array]:
    """R_+ and R_- with R_+'R_+ = K_+ and R_-'R_- = K_-."""
    D, U = np.linalg.eigh(K_ZZ)
    positive, negative = np.sqrt(np.maximum(D, 0)), np.sqrt(np.maximum(-D, 0))
    return positive[:, None] * U.T, negative[:, None] * U.T


def exact_alpha(K: Array, y: Array, lambda_plus: float, lambda_minus: float) -> Array:
    """The paper's alpha* = U (|D| + n lambda_pm)^-1 S U'y with S = 0 on the null space."""
    D, U = np.linalg.eigh(K)
    S = np.where(np.abs(D) > CUT * np.abs(D).max(), np.sign(D), 0.0)
    penalty = len(K) * np.where(D > 0, lambda_plus, lambda_minus)
    return np.asarray((U * (S / (np.abs(D) + penalty))) @ (U.T @ y))


def krein_ridge(
    C: Array,
    K_ZZ: Array,
    Y: Array,
    penalties: tuple[float, float],
    *,
    w: Array | None = None,
    intercept: bool = True,
) -> tuple[Array, Array]:
    """a and b by one least-squares problem: rows of data over roots of the penalty.

    a is in the range of K_ZZ. The constant is a column of ones without a penalty; nothing is
    centred, nothing squared.
    """
    w = np.ones(len(C)) if w is None else w
    root = np.sqrt(w)[:, None]
    return _penalised(root * C, root * intercept, K_ZZ, root * _columns(Y), w.sum(), penalties)


def exact_ridge(
    K: Array,
    Y: Array,
    penalties: tuple[float, float],
    *,
    w: Array | None = None,
    intercept: bool = True,
    rows: Array | slice = slice(None),
) -> tuple[Array, Array]:
    """a and b if all objects are landmarks and weights mean repetition.

    The parts of the penalty are those of W^1/2 K W^1/2, which has the eigenvalues of the matrix of
    repeated objects. Y may be the targets of some ``rows``, to which the model is then fitted.
    """
    w = np.ones(len(K)) if w is None else w
    root = np.sqrt(w)[:, None]
    K_w, mine = root * K * root.T, root[rows]
    a, b = _penalised(K_w[rows], mine * intercept, K_w, mine * _columns(Y), w.sum(), penalties)
    return root * a, b


def _columns(Y: Array) -> Array:
    return Y.reshape(len(Y), -1)


def _penalised(
    C: Array, ones: Array, K_ZZ: Array, Y: Array, n: float, penalties: tuple[float, float]
) -> tuple[Array, Array]:
    """argmin |Y - C a - ones b|^2 + n lambda_+ a'K_+ a + n lambda_- a'K_- a, a in the range."""
    U, sigma, _ = np.linalg.svd(K_ZZ)
    U = U[:, sigma > CUT * sigma.max()]
    roots = np.sqrt(n * np.asarray(penalties))
    R = np.vstack([root * part for root, part in zip(roots, part_roots(K_ZZ), strict=True)]) @ U
    system = np.vstack([np.hstack([C @ U, ones]), np.hstack([R, np.zeros((len(R), 1))])])
    target = np.vstack([Y, np.zeros((len(R), Y.shape[1]))])
    solution = np.linalg.lstsq(system, target, rcond=None)[0]
    return U @ solution[:-1], solution[-1]


def left_out_loss(
    K: Array,
    Y: Array,
    penalties: tuple[float, float],
    *,
    w: Array | None = None,
    intercept: bool = True,
) -> float:
    """Squared error of each object by a model of all others, per unit of weight.

    The penalties times the weight are those of all objects.
    """
    n, Y = len(K), _columns(Y)
    w = np.ones(n) if w is None else w
    total = 0.0
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        kept = np.asarray(penalties) * w.sum() / w[rest].sum()
        a, b = exact_ridge(
            K[np.ix_(rest, rest)], Y[rest], tuple(kept), w=w[rest], intercept=intercept
        )
        total += float(w[i] * ((Y[i] - K[i, rest] @ a - b) ** 2).sum())
    return total / float(w.sum())


def krein_features(C: Array, K_ZZ: Array) -> tuple[Array, Array]:
    """Phi = C U |D|^-1/2 S and S."""
    D, U = np.linalg.eigh(K_ZZ)
    kept = np.abs(D) > CUT * np.abs(D).max()
    D, U = D[kept], U[:, kept]
    return C @ (U / np.sqrt(np.abs(D)) * np.sign(D)), np.sign(D)


def variance_constrained(Phi: Array, y: Array, penalty: Array, r: float) -> Array:
    """argmin z'Pz - 2 z'Phi'y with |Phi z| = r, by Gander, Golub and von Matt's eigenvalues.

    In x = R z, Phi = Q R, it is min x'Ax - 2 x'c with |x| = r: x = (A - mu)^-1 c, and mu is the
    smallest real eigenvalue of [[A, -I], [-c c'/r^2, A]]. No hard case; Phi has full rank.
    """
    Q, R = np.linalg.qr(Phi)
    inverse = np.linalg.inv(R)
    A, c, I = inverse.T @ (penalty[:, None] * inverse), Q.T @ y, np.eye(len(R))
    roots = np.linalg.eigvals(np.block([[A, -I], [-np.outer(c, c) / r**2, A]]))
    mu = float(roots.real[np.abs(roots.imag) <= 1e-8 * np.abs(roots).max()].min())
    x = np.linalg.solve(A - mu * I, c)
    return np.asarray(inverse @ x)


def squared_hinge(
    f: Array, y: Array, z: Array, penalty: Array, w: Array | None = None
) -> tuple[float, Array]:
    """sum w max(0, 1 - y f)^2 + z' diag(penalty) z, and the derivative of its first term in f."""
    w = np.ones(len(y)) if w is None else w
    short = np.maximum(0.0, 1 - y * f)
    return float(w @ short**2 + penalty @ z**2), -2 * w * y * short


def votes(pairs: Array, n_classes: int) -> Array:
    """Pairs won by each class, and its summed confidences as less than half a vote.

    Columns of ``pairs`` are scores of (0, 1), (0, 2), ..., positive for the second of a pair.
    """
    wins, sums = np.zeros((2, len(pairs), n_classes))
    for score, (a, b) in zip(pairs.T, combinations(range(n_classes), 2), strict=True):
        wins[np.arange(len(pairs)), np.where(score > 0, b, a)] += 1
        sums[:, a] -= score
        sums[:, b] += score
    return np.asarray(wins + sums / (3 * (np.abs(sums) + 1)))


def cross_validated(
    fold: Callable[[Array, Array], Array], folds: Array, Y: Array, w: Array | None = None
) -> float:
    """Squared error a unit of validated weight; ``fold(train, valid)`` predicts rows ``valid``.

    Rows of fold -1 are in every training part. Each column of ``folds`` is a round of its own.
    """
    w, Y = np.ones(len(folds)) if w is None else w, Y.reshape(len(folds), -1)
    total = weight = 0.0
    for numbers in np.reshape(folds, (len(folds), -1)).T:
        for k in np.unique(numbers[numbers >= 0]):
            train, valid = np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)
            predicted = fold(train, valid).reshape(len(valid), -1)
            total += float(w[valid] @ ((Y[valid] - predicted) ** 2).sum(axis=1))
        weight += float(w[numbers >= 0].sum())
    return total / weight


def centred_on(D_XZ: Array, D_XR: Array, D_ZR: Array, D_RR: Array) -> Array:
    """-1/2 (d^2(x, z) - mean_r d^2(x, r) - mean_r d^2(z, r) + mean_rr d^2(r, r))."""
    a_x, a_z = (D_XR**2).mean(axis=1), (D_ZR**2).mean(axis=1)
    return np.asarray(-0.5 * (D_XZ**2 - a_x[:, None] - a_z + (D_RR**2).mean()))


def edit_cost(x: Any, z: Any, gap: int, substitution: int) -> int:
    D = np.zeros((len(x) + 1, len(z) + 1), dtype=int)
    D[:, 0], D[0] = gap * np.arange(len(x) + 1), gap * np.arange(len(z) + 1)
    for i, a in enumerate(x):
        for j, b in enumerate(z):
            D[i + 1, j + 1] = min(
                D[i, j] + (0 if a == b else substitution), D[i, j + 1] + gap, D[i + 1, j] + gap
            )
    return int(D[-1, -1])
