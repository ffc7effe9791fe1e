"""Other low-rank approximations from columns of a matrix, written from their published formulas.

SMS-Nystroem is the submatrix-shifted method of A. Ray, N. Monath, A. McCallum and C. Musco,
"Sublinear Time Approximation of Text Similarity Matrices", AAAI 2022: l uniform columns lie
within 2 l uniform rows, and 1.5 times the smallest eigenvalue of the submatrix of these rows is
subtracted from the diagonal of the core. These are the settings of the authors' program
(archanray/approximate_similarities), which leaves the columns themselves as they are. It was made
for matrices that are nearly positive semidefinite: what it gives has no negative part.

The stabilised method of Y. Nakatsukasa and T. Park, "Randomized low-rank approximation for
symmetric indefinite matrices", SIAM J. Matrix Anal. Appl. 2023, cuts the core of an oversampled
sketch to rank k before it is inverted. Their sketches are Gaussian, which needs all pairs; with
access by columns the sketch is l uniform columns. The core is cut to min(k, l / 1.5), our choice.
With other columns the same core is "truncated" on the page of benchmarks/approximation.py.

Of these two methods a variant each was tried on 8 of the 15 indefinite matrices with the first
three seeds, and the one with smaller errors overall was kept. SMS-Nystroem with the shift in the
columns too was slightly better with few columns and far worse with many. A core cut to l / 1.5
and its result to rank k was often better with k ln n columns, and far worse for the sigmoid.

RPCholesky is that of Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted
Cholesky", Comm. Pure Appl. Math. 2025, one pivot at a time: it is drawn by the diagonal of what
is left. It needs a positive definite matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rng = np.random.Generator

SHIFT, SUPERSET = 1.5, 2  # SMS-Nystroem: factor of the eigenvalue, rows for each column
OVERSAMPLING = 1.5  # columns for each unit of rank, in the stabilised core
PSEUDO_RTOL = 1e-12  # |eigenvalues| of a core that are inverted, of the largest


class Approximation(NamedTuple):
    """K ~ (Phi * S) @ Phi.T, and the number of unordered pairs that were looked at."""

    Phi: Array  # (n, r)
    S: Array  # (r,), +-1
    pairs: int

    def matrix(self) -> Array:
        return np.asarray((self.Phi * self.S) @ self.Phi.T)

    def cut(self, k: int) -> Approximation:
        """The best rank k of this approximation."""
        if k >= len(self.S):
            return self
        Q, R = np.linalg.qr(self.Phi)
        Lambda, P = largest_first((R * self.S) @ R.T)
        Phi = Q @ (P[:, :k] * np.sqrt(np.abs(Lambda[:k])))
        return Approximation(Phi, np.sign(Lambda[:k]), self.pairs)


def largest_first(A: Array) -> tuple[Array, Array]:
    """Eigenvalues of a symmetric matrix by decreasing magnitude, and their vectors."""
    D, U = np.linalg.eigh(0.5 * (A + A.T))
    order = np.argsort(-np.abs(D))
    return D[order], U[:, order]


def from_core(C: Array, W: Array, rank: int, pairs: int) -> Approximation:
    """C W_rank^+ C', where W_rank are the eigenvalues of W that are largest in magnitude."""
    D, U = largest_first(W)
    kept = np.abs(D[:rank]) > PSEUDO_RTOL * np.abs(D[0])
    D, U = D[:rank][kept], U[:, :rank][:, kept]
    return Approximation(C @ (U / np.sqrt(np.abs(D))), np.sign(D), pairs)


def column_pairs(n: int, l: int) -> int:
    """Unordered pairs, those of an object with itself included, in l columns."""
    return n * l - l * (l - 1) // 2


# The methods: (matrix, columns, rank) -> approximation


def sms_nystroem(K: Array, l: int, k: int, rng: Rng) -> Approximation:
    n = len(K)
    rows = rng.choice(n, min(n, SUPERSET * l), replace=False)
    Z = rows[:l]
    W = shifted(K[np.ix_(Z, Z)], K[np.ix_(rows, rows)])
    return from_core(K[:, Z], W, l, sms_pairs(n, l)).cut(k)


def shifted(W: Array, larger: Array) -> Array:
    """W with a diagonal that makes it positive definite if ``larger``, which holds it, is not."""
    smallest = min(0.0, float(np.linalg.eigvalsh(larger)[0]))
    return W - SHIFT * smallest * np.eye(len(W))


def stabilised(K: Array, l: int, k: int, rng: Rng) -> Approximation:
    Z = rng.choice(len(K), l, replace=False)
    return from_core(K[:, Z], K[np.ix_(Z, Z)], core_rank(l, k), column_pairs(len(K), l))


def stabilised_gaussian(K: Array, l: int, k: int, rng: Rng) -> Approximation:
    """The same from l Gaussian combinations of all columns."""
    n = len(K)
    X = rng.standard_normal((n, l))
    C = K @ X
    return from_core(C, X.T @ C, core_rank(l, k), column_pairs(n, n))


def core_rank(l: int, k: int) -> int:
    return max(1, min(k, int(l / OVERSAMPLING)))


def rp_cholesky(K: Array, l: int, k: int, rng: Rng) -> Approximation:
    n = len(K)
    F = np.zeros((n, l))
    left = np.diagonal(K).copy()  # of K - F F'
    enough = n * np.finfo(np.float64).eps * left.max()  # less than that is rounding
    rank = 0
    while rank < l and left.max() > enough:
        pivot = rng.choice(n, p=left / left.sum())
        column = K[:, pivot] - F[:, :rank] @ F[pivot, :rank]
        if column[pivot] > enough:
            F[:, rank] = column / np.sqrt(column[pivot])
            left = np.maximum(left - np.square(F[:, rank]), 0)
            rank += 1
        left[pivot] = 0
    F = F[:, :rank]
    return Approximation(F, np.ones(rank), cholesky_pairs(n, l)).cut(k)


# What they cost


def sms_pairs(n: int, l: int) -> int:
    more = min(n, SUPERSET * l) - l
    return column_pairs(n, l) + more * (more + 1) // 2


def cholesky_pairs(n: int, l: int) -> int:
    return column_pairs(n, l) + n - l  # the diagonal


class Peer(NamedTuple):
    approximate: Callable[[Array, int, int, Rng], Approximation]
    pairs: Callable[[int, int], int] | None  # (n, l); None: all of them, whatever l
    definite: bool = False  # whether it needs a positive definite matrix


PEERS = {
    "SMS-Nystroem": Peer(sms_nystroem, sms_pairs),
    "stabilised": Peer(stabilised, column_pairs),
    "stabilised, Gaussian sketch": Peer(stabilised_gaussian, None),
    "RPCholesky": Peer(rp_cholesky, cholesky_pairs, definite=True),
}


def affordable(peer: Peer, n: int, pairs: int) -> int:
    """The largest number of columns whose pairs are no more than ``pairs``."""
    assert peer.pairs is not None
    costs = np.array([peer.pairs(n, l) for l in range(1, n + 1)])
    return max(1, int(np.count_nonzero(np.maximum.accumulate(costs) <= pairs)))
