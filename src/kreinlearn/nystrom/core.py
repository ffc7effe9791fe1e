"""The Nystroem method for indefinite kernels: K ~ Phi diag(S) Phi', Phi = K_XZ @ W.

Everything here is a function of m x m matrices (and, for the reference routes, of C = K_XZ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kreinlearn.kernels.columns import squared_norms
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.solvers.spectrum import signed_eigh
from kreinlearn.sums.moments import Gram

if TYPE_CHECKING:
    from kreinlearn.nystrom.landmarks import MapSpec
    from kreinlearn.nystrom.sweep import Swept

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
CORE_RTOL = 1e-10  # |eigenvalues| of K_ZZ that count, of the largest
WHITEN_RTOL = 1e-6  # singular values of C that count, of the largest
PILOT_RTOL = 1e-5  # the same, where C is known on a sample of rows only
OVERSAMPLING = 1.5  # landmarks to a unit of rank, in the truncated core
OBSERVED_RTOL = 0.1  # directions that the rows of the least-squares core tell apart
SWEEPS = 5  # imputations of the over-represented diagonal in the least-squares core


@dataclass(frozen=True)
class FeatureMap:
    """Phi = K_XZ @ W with signature S; eigenvectors of K~ on the sample are K_XZ @ E."""

    W: Array  # (m, r)
    S: Array  # (r,), +-1
    E: Array  # (m, k)
    Lambda: Array  # (k,), by decreasing magnitude

    def rescaled(self, unit: float) -> FeatureMap:
        """The map of ``unit * K`` from the map of K (unit: a power of four, so exact)."""
        root = np.sqrt(unit)
        return FeatureMap(self.W / root, self.S, self.E / unit, self.Lambda * unit)

    def cut(self, rank: int | None) -> FeatureMap:
        """Rank k of K~: the k largest |Lambda|, in the eigenbasis."""
        if rank is None or rank >= len(self.Lambda):
            return self
        return eigen_map(self.E[:, :rank], self.Lambda[:rank])


def eigen_map(E: Array, Lambda: Array) -> FeatureMap:
    """Features in the eigenbasis of K~: Phi = U~ |Lambda|^1/2."""
    return FeatureMap(E * np.sqrt(np.abs(Lambda)), np.sign(Lambda), E, Lambda)


def landmark_map(K_ZZ: Array, rank: int | None = None, eps: float = EPS) -> tuple[Array, Array]:
    """W = U |D|^-1/2 S and S of the ``rank`` largest |eigenvalues| of K_ZZ, known up to eps."""
    core = signed_eigh(K_ZZ, rank, rtol=max(CORE_RTOL, len(K_ZZ) * eps))
    return core.U / np.sqrt(np.abs(core.D)) * core.S, core.S


def whiten(G: Array, rtol: float = WHITEN_RTOL) -> Array:
    """T with Q = C T orthonormal, from G = C'C: directions with sigma > rtol sigma_max."""
    spectrum = signed_eigh(G, rtol=rtol**2)
    positive = spectrum.D > 0
    return np.asarray(spectrum.U[:, positive] / np.sqrt(spectrum.D[positive]))


def one_shot(G: Array, W: Array, S: Array, rtol: float = WHITEN_RTOL) -> tuple[Array, Array]:
    """E, Lambda of K~ = (C W S)(C W)' from G = C'C: U~ = C E is orthonormal."""
    # Phi'Phi = B Sigma^2 B';  Sigma B' S B Sigma = P Lambda P';  U~ = Phi B Sigma^-1 P
    B = whiten(W.T @ G @ W, rtol)  # B Sigma^-1
    Sigma_B = B / np.square(B).sum(axis=0)  # B Sigma
    core = signed_eigh((Sigma_B.T * S) @ Sigma_B)
    return W @ (B @ core.U), core.D


def one_shot_svd(C: Array, W: Array, S: Array) -> tuple[Array, Array]:
    """The paper's own route: a thin singular value decomposition of L = C U |D|^-1/2."""
    _, sigma, Bt = scipy.linalg.svd(C @ (W * S), full_matrices=False)
    keep = sigma > WHITEN_RTOL * np.max(sigma, initial=0.0)
    sigma, B = sigma[keep], Bt[keep].T
    core = signed_eigh((sigma[:, None] * (B.T * S)) @ (B * sigma))
    return (W * S) @ ((B / sigma) @ core.U), core.D


def squared_route(C: Array, K_ZZ: Array, rank: int | None = None) -> tuple[Array, Array]:
    """Gisbrecht-Schleif-Tino: eigenvectors of K~ K~, then the signs from U~' K~ U~."""
    inverse = signed_eigh(K_ZZ, rank, rtol=CORE_RTOL)
    pinv = (inverse.U / inverse.D) @ inverse.U.T
    gram = signed_eigh(C.T @ C, rtol=WHITEN_RTOL**2)
    root = (gram.U * np.sqrt(np.maximum(gram.D, 0))) @ gram.U.T
    B = pinv @ root  # K~ K~ = (C B)(C B)'
    CB = C @ B
    square = signed_eigh(CB.T @ CB, rtol=WHITEN_RTOL**2)
    E = B @ (square.U / np.sqrt(square.D))
    CU = C.T @ (C @ E)
    Lambda = np.einsum("ij,ij->j", CU, pinv @ CU)
    order = np.argsort(-np.abs(Lambda), kind="stable")
    return E[:, order], Lambda[order]


def pivot_rows(Q: Array, count: int) -> Array:
    """Rows of Q that span it best: QR with column pivoting on Q'."""
    _, pivots = scipy.linalg.qr(Q.T, mode="r", pivoting=True, check_finite=False)
    return np.asarray(pivots[:count])


def least_squares_core(Q_R: Array, K_RR: Array, n: int) -> Array:
    """M with K ~ Q M Q', fitted on the rows and columns R by weighted least squares.

    A row weighs 1 / sqrt(its leverage + rank / n); the diagonal of K_RR, over-represented by
    n / |R| against that of K, is counted with weight |R| / n by imputation.
    """
    if not Q_R.shape[1]:
        return np.empty((0, 0))
    w = 1 / np.sqrt(np.square(Q_R).sum(axis=1) + Q_R.shape[1] / n)
    B = w[:, None] * Q_R
    T = whiten(B.T @ B, OBSERVED_RTOL)  # what R does not show would only be guessed
    A = B @ T  # orthonormal columns
    N_0 = N = A.T @ (w[:, None] * K_RR * w) @ A
    for _ in range(SWEEPS):
        excess = ((A @ N) * A).sum(axis=1) - w * w * np.diagonal(K_RR)
        N = N_0 + (A.T * ((1 - len(Q_R) / n) * excess)) @ A
    return np.asarray(T @ N @ T.T)


def least_squares_map(T: Array, M: Array) -> FeatureMap:
    """Features in the eigenbasis of K~ = (C T) M (C T)'."""
    core = signed_eigh(0.5 * (M + M.T))
    return eigen_map(T @ core.U, core.D)


# From a sample to a feature map


def fit_core(
    pairs: Pairs, sample: Sample, gram: Gram, n: int, spec: MapSpec, rng: np.random.Generator,
    C: Array | None = None, R: Array | None = None,
) -> FeatureMap:  # fmt: skip
    """The feature map of kernels divided by the unit of the sample; the rank is not yet cut.

    ``C`` are all similarities, for the reference routes; ``R`` the rows that a least-squares core
    is fitted on, if they are known.
    """
    m, unit = len(sample.landmarks), sample.unit
    if spec.core == "ls" and m < n:
        R = rows_of_core(sample, gram.matrix, n, rng) if R is None else R
        T = whiten(gram.matrix)
        K_RR = pairs.similarities(sample, R) / unit
        M = least_squares_core((sample.C / unit)[sample.positions(R)] @ T, K_RR, n)
        return least_squares_map(T, M)
    k, K_ZZ = core_rank(spec), sample.K_ZZ / unit
    W, S = landmark_map(K_ZZ, k, sample.eps)
    if spec.method == "gram" or C is None:
        E, Lambda = one_shot(gram.matrix, W, S)
    elif spec.method == "svd":
        E, Lambda = one_shot_svd(C / unit, W, S)
    else:
        E, Lambda = squared_route(C / unit, K_ZZ, k)
    return FeatureMap(W, S, E, Lambda)


def core_rank(spec: MapSpec) -> int | None:
    """The rank to which the core itself is cut; None: all of it is used."""
    if spec.core != "truncated":
        return None
    return spec.rank if spec.rank is not None else max(1, int(spec.n_landmarks / OVERSAMPLING))


def rows_of_core(sample: Sample, G: Array, n: int, rng: np.random.Generator) -> Array:
    """Rows whose pairs a least-squares core is fitted on: the landmarks and others."""
    Z, Q = sample.landmarks, sample.C / sample.unit @ whiten(G)
    rest = np.setdiff1d(sample.rows[sample.rows >= 0], Z)
    uniform = np.setdiff1d(sample.pool, Z)
    extra = extra_rows(n, len(Z))
    return np.concatenate([Z, _extra_rows(Q, sample, rest, uniform, extra, rng)])


def extra_rows(n: int, m: int) -> int:
    """How many rows beside the landmarks: never all pairs, however many the landmarks."""
    return min(2 * m, -(-2 * (n - m) // 3))


def _extra_rows(
    Q: Array, sample: Sample, rest: Array, uniform: Array, extra: int, rng: np.random.Generator
) -> Array:
    """Half the extra rows span Q, by pivoting, and half are uniform; none is a landmark."""
    count = candidate_count(len(sample.landmarks))
    candidates = rest
    if count < len(rest):
        even = rng.choice(uniform, min(count // 2, len(uniform)), replace=False)
        other = np.setdiff1d(rest, uniform)  # drawn by leverage during the pass
        if not len(other):
            other = np.setdiff1d(rest, even)
            scores = squared_norms(Q[sample.positions(other)])
            other = other[weighted_draw(scores, count - len(even), rng)]
        candidates = np.concatenate([even, other])
    pivots = candidates[pivot_rows(Q[sample.positions(candidates)], -(-extra // 2))]
    left = np.setdiff1d(uniform, pivots)
    return np.concatenate([pivots, rng.choice(left, min(extra // 2, len(left)), replace=False)])


def weighted_draw(weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Indices drawn one after another without replacement, by weight; zero weights come last."""
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(len(weights))) / weights
    return np.argsort(-keys, kind="stable")[:count]


def candidate_count(m: int) -> int:
    """How many rows the least-squares core looks at to find its own."""
    return min(10 * m, max(3 * m, 2000))


# Kinds of features


class FeatureKind(Protocol):
    """What the features of an object are made of."""

    signed: bool  # whether features have a signature, and two penalties

    def map_of(self, K_ZZ: Array, eps: float, spec: MapSpec) -> tuple[Array, Array]:
        """W and S of the features K_XZ W, for the maps that folds make of their own landmarks."""

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        """The feature map of all rows."""

    def root(self, unit: float) -> float:
        """The unit of the features, if the kernel values are divided by ``unit``."""


class KreinFeatures:
    """Features of the Krein space that the landmarks span: K ~ Phi diag(S) Phi'."""

    signed = True

    def map_of(self, K_ZZ: Array, eps: float, spec: MapSpec) -> tuple[Array, Array]:
        return landmark_map(K_ZZ, core_rank(spec), eps)

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        feature_map = fit_core(pairs, swept.sample, swept.gram, pairs.n, spec, rng)
        return feature_map.cut(spec.rank)

    def root(self, unit: float) -> float:
        return float(np.sqrt(unit))


class SimilarityFeatures:
    """The similarities to the landmarks themselves: one penalty, no signature."""

    signed = False

    def map_of(self, K_ZZ: Array, eps: float, spec: MapSpec) -> tuple[Array, Array]:
        return np.eye(len(K_ZZ)), np.ones(len(K_ZZ))

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        return identity_map(len(swept.sample.landmarks))

    def root(self, unit: float) -> float:
        return unit


def identity_map(m: int) -> FeatureMap:
    """Features that are the similarities to m landmarks."""
    return FeatureMap(np.eye(m), np.ones(m), np.empty((m, 0)), np.empty(0))
