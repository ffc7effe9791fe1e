"""From a sample to a feature map: one pass over all rows, and the core.

The Nystroem method for indefinite kernels is K ~ Phi diag(S) Phi' with Phi = K_XZ @ W. The pass
leaves sums of kernel values, and everything else is a function of m x m matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kreinlearn._native import cholesky
from kreinlearn.data.tiles import TILE, Scratch, block_rows
from kreinlearn.kernels.base import Objects
from kreinlearn.kernels.vector_columns import squared_norms
from kreinlearn.pairs.evaluate import LandmarkColumns, evaluate, naming, require_finite, scaled
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.solvers.spectrum import signed_eigenvalues, signed_eigh
from kreinlearn.sums.moments import (
    Gram,
    Moments,
    Targets,
    moments_of,
    spare_for,
    symmetric_product,
    target_bytes,
    total_gram,
)
from kreinlearn.sums.parallel import LONGEST, SPARE, depth_of

if TYPE_CHECKING:
    from kreinlearn.nystrom.landmarks import MapSpec

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
KEYS_AT_ONCE = 2**16  # rows whose keys are compared at a time
CORE_RTOL = 1e-10  # |eigenvalues| of K_ZZ that count, of the largest
SAFE = 100.0  # pivots of a triangular root, over rtol times the largest, of a regular matrix
WHITEN_RTOL = 1e-6  # singular values of C that count, of the largest
PILOT_RTOL = 1e-5  # the same, where C is known on a sample of rows only
OVERSAMPLING = 1.5  # landmarks to a unit of rank, in the truncated core
OBSERVED_RTOL = 0.1  # directions that the rows of the least-squares core tell apart
SWEEPS = 5  # imputations of the over-represented diagonal in the least-squares core
LEVERAGE_PROBES = 16  # random directions that estimate the pilot leverage of a row


@dataclass(frozen=True)
class FeatureMap:
    """Phi = K_XZ @ W with signature S; eigenvectors of K~ on the sample are K_XZ @ E.

    The maps of learners with the plain core have no E, unless they are cut to a rank.
    """

    W: Array  # (m, r)
    S: Array  # (r,), +-1
    E: Array  # (m, k)
    Lambda: Array  # (k,), by decreasing magnitude

    def rescaled(self, unit: float) -> FeatureMap:
        """The map of ``unit * K`` from the map of K (unit: a power of four, so exact)."""
        if unit == 1:
            return self
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


def landmark_map(K_ZZ: Array, rank: int | None = None) -> tuple[Array, Array]:
    """W = U |D|^-1/2 S and S of the ``rank`` largest |eigenvalues| of K_ZZ."""
    core = signed_eigh(K_ZZ, rank, rtol=CORE_RTOL)
    return core.U / np.sqrt(np.abs(core.D)) * core.S, core.S


def whiten(G: Array, rtol: float = WHITEN_RTOL) -> Array:
    """T with Q = C T orthonormal, from G = C'C: directions with sigma > rtol sigma_max."""
    spectrum = signed_eigh(G, rtol=rtol**2)
    positive = spectrum.D > 0
    return np.asarray(spectrum.U[:, positive] / np.sqrt(spectrum.D[positive]))


def one_shot(G: Array, W: Array, S: Array, rtol: float = WHITEN_RTOL) -> tuple[Array, Array]:
    """E, Lambda of K~ = (C W S)(C W)' from G = C'C: U~ = C E is orthonormal."""
    if not len(S):  # nothing to decompose, which scipy 1.13 does not take
        return W, S
    # Phi'Phi = R'R;  R S R' = P Lambda P';  U~ = Phi R^-1 P
    R, solve = root(symmetric_product(W, G), rtol)
    core = signed_eigh((R * S) @ R.T)
    return W @ solve(core.U), core.D


def one_shot_spectrum(G: Array, W: Array, S: Array) -> Array:
    """Lambda alone, without eigenvectors."""
    if not len(S):
        return S
    R, _ = root(symmetric_product(W, G), WHITEN_RTOL)
    return signed_eigenvalues((R * S) @ R.T)


def root(A: Array, rtol: float) -> tuple[Array, Callable[[Array], Array]]:  # (r, r) -> (k, r)
    """R with R'R = A, and the function B -> R^-1 B; A is positive semi-definite.

    Of a matrix that is far from singular R is a triangle, which takes a fraction of the time of
    eigenvectors. Otherwise directions with sigma <= rtol sigma_max are left out.
    """
    try:
        R = np.tril(cholesky(np.array(A, order="C"))).T
        if np.diagonal(R).min() > SAFE * rtol * np.diagonal(R).max():
            return R, partial(scipy.linalg.solve_triangular, R, check_finite=False)
    except np.linalg.LinAlgError:
        pass
    inverse = whiten(A, rtol)  # B Sigma^-1, with A = B Sigma^2 B'
    return (inverse / np.square(inverse).sum(axis=0)).T, partial(np.matmul, inverse)


def pivot_rows(Q: Array, count: int) -> Array:
    """Rows of Q that span it best: QR with column pivoting on Q'."""
    if not Q.shape[1]:  # which LAPACK, as scipy 1.13 calls it, does not take
        return np.arange(min(count, len(Q)))
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
    R: Array | None = None, *, axes: bool = True,
) -> FeatureMap:  # fmt: skip
    """The feature map of kernels divided by the unit of the sample; the rank is not yet cut.

    ``R`` are the rows that a least-squares core is fitted on, if they are known. Without ``axes``
    eigenvectors may be left out, if only the features and the eigenvalues are wanted.
    """
    m, unit = len(sample.landmarks), sample.unit
    if spec.core == "ls" and m < n:
        R = rows_of_core(sample, gram.matrix, n, rng) if R is None else R
        T = whiten(gram.matrix)
        K_RR = pairs.similarities(sample, R) / unit
        M = least_squares_core((sample.C / unit)[sample.positions(R)] @ T, K_RR, n)
        return least_squares_map(T, M)
    W, S = landmark_map(sample.K_ZZ / unit, core_rank(spec))
    if not axes:
        return FeatureMap(W, S, W[:, :0], one_shot_spectrum(gram.matrix, W, S))
    return FeatureMap(W, S, *one_shot(gram.matrix, W, S))


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


def row_keys(numbers: Array, salt: int) -> Array:  # (n,) -> (n,) uint64
    """A random number for each row, which depends on its number and the salt alone.

    It is the output function of SplitMix64 (Steele, Lea and Flood, 2014). Those rows whose keys
    are smallest are a uniform sample, and a smaller sample is part of every larger one.
    """
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def first_by_key(numbers: Array | int, count: int, salt: int) -> Array:
    """The rows with the smallest keys, in the order of their keys; all rows if there are fewer.

    ``numbers`` are distinct, or n, which stands for 0, 1, ..., n - 1. Only rows whose keys are
    smaller than the largest of those found so far are sorted, a few of all.
    """
    total = numbers if isinstance(numbers, int) else len(numbers)
    best, keys = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.uint64)
    for start in range(0, total if count else 0, KEYS_AT_ONCE):
        stop = min(start + KEYS_AT_ONCE, total)
        here = np.arange(start, stop) if isinstance(numbers, int) else numbers[start:stop]
        new = row_keys(here, salt)
        if len(best) == count:
            smaller = new < keys[-1]
            here, new = here[smaller], new[smaller]
        best, keys = np.concatenate([best, here]), np.concatenate([keys, new])
        order = np.argsort(keys, kind="stable")[:count]
        best, keys = best[order], keys[order]
    return best


def weighted_draw(weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Indices drawn one after another without replacement, by weight; zero weights come last."""
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(len(weights))) / weights
    return np.argsort(-keys, kind="stable")[:count]


def candidate_count(m: int) -> int:
    """How many rows the least-squares core looks at to find its own."""
    return min(10 * m, max(3 * m, 2000))


# The pass over all rows


@dataclass
class Reservoir:
    """The rows with the largest keys: a weighted draw, whatever the order of the blocks."""

    size: int
    keys: Array
    numbers: Array
    raw: Array

    @classmethod
    def empty(cls, size: int, n_columns: int) -> Self:
        return cls(size, np.empty(0), np.empty(0, dtype=np.intp), np.empty((0, n_columns)))

    def add(self, keys: Array, numbers: Array, raw: Array) -> None:
        if len(self.keys) == self.size and len(keys):
            better = keys > self.keys.min()
            keys, numbers, raw = keys[better], numbers[better], raw[better]
        keys = np.concatenate([self.keys, keys])
        best = np.sort(np.argsort(-keys, kind="stable")[: self.size])
        self.keys = keys[best]
        self.numbers = np.concatenate([self.numbers, numbers])[best]
        self.raw = np.concatenate([self.raw, raw])[best]

    def __iadd__(self, other: Self) -> Self:
        self.add(other.keys, other.numbers, other.raw)
        return self

    def clear(self) -> None:
        self.keys, self.numbers, self.raw = self.keys[:0], self.numbers[:0], self.raw[:0]


@dataclass
class SweepTotal:
    """What a pass adds up: moments of each group of rows, and a reservoir of rows.

    Sums of a group without rows stay as they were made: zeros that nobody writes to take no memory.
    """

    groups: list[Moments]
    reservoir: Reservoir
    present: set[int] = field(default_factory=set)  # groups that have rows

    def __iadd__(self, other: Self) -> Self:
        for g in other.present:
            self.groups[g] += other.groups[g]
        self.present |= other.present
        self.reservoir += other.reservoir
        return self

    def clear(self) -> None:
        for g in self.present:
            self.groups[g].clear()
        self.present.clear()
        self.reservoir.clear()


@dataclass(frozen=True)
class RowWork:
    """What the pass does with a block of rows: the same in this process and in another."""

    columns: LandmarkColumns
    landmarks: Array
    unit: float
    n_outputs: int
    n_groups: int
    width: int  # columns evaluated
    buffered: bool = False  # the kernel writes to a buffer
    seed: int = 0
    size: int = 0  # of the reservoir
    pilot: Array | None = None  # (m, LEVERAGE_PROBES)
    spare: int = 0  # sums that may wait for those of earlier rows
    block_rows: int = TILE  # evaluated at once

    def zero(self) -> SweepTotal:
        m, q = len(self.landmarks), self.n_outputs
        zeros = [Moments.zeros(m, q) for _ in range(self.n_groups)]
        return SweepTotal(zeros, Reservoir.empty(self.size, self.width))

    def scratch(self) -> Scratch:
        return Scratch(self.buffered, self.block_rows)

    def add(
        self, total: SweepTotal, numbers: Array, A: Objects, targets: Targets, scratch: Scratch
    ) -> Array:
        """Add the moments of C / unit to each group and rows to the reservoir; returns C / unit."""
        with naming(numbers, len(self.landmarks)):
            raw = self.columns.raw_of_rows(numbers, A, scratch.get(A, self.width))
            C = self.columns.transformed(raw)
        values, spans = scaled(C, self.unit), targets.spans(numbers)
        Y, w = targets.stored(numbers)
        for g, span in spans:
            total.groups[g].add(values[span], Y[span], None if w is None else w[span])
            total.present.add(g)
        if not np.isfinite([total.groups[g].gram.sums for g, _ in spans]).all():
            require_finite(C, numbers, self.landmarks)
        if self.pilot is not None:
            projected = values @ self.pilot
            keys = _reservoir_keys(projected, self.seed, numbers[0])
            total.reservoir.add(keys, numbers, raw)
        return values


def _reservoir_keys(projected: Array, seed: int, first_row: int) -> Array:
    """Keys whose largest are a draw by |projected_i|^2; they depend on the rows of a tile alone."""
    leverage = np.square(projected).sum(axis=1)
    chance = np.random.default_rng([seed, int(first_row)]).random(len(projected))
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(chance) / leverage)


class Swept(NamedTuple):
    """What the pass over all rows leaves."""

    groups: list[Moments]  # of C / unit, for each group of rows
    columns: LandmarkColumns
    unit: float
    sample: Sample  # with the rows that were drawn for the core

    @property
    def gram(self) -> Gram:
        """The Gram matrix of C / unit, summed over all rows."""
        return total_gram(self.groups)


def sweep(
    pairs: Pairs, sample: Sample, spec: MapSpec, rng: np.random.Generator, targets: Targets,
    keep: Any = None,
) -> Swept:  # fmt: skip
    """Moments of C / unit over all rows; rows of the sample are not evaluated again.

    For the least-squares core rows are drawn by their pilot leverage, and join the sample. ``keep``
    takes C / unit of all rows, by number.
    """
    columns, unit = pairs.evaluator(sample), sample.unit
    pairs.packed.keep(sample.columns)  # the pass takes memory for its own values
    _require_outputs(pairs, len(sample.landmarks), targets)
    inside = sample.rows[sample.rows >= 0]
    C = sample.scaled[len(sample.rows) - len(inside) :]
    of_sample = partial(moments_of, C, targets, inside, pairs.workers)
    n = pairs.n - len(inside)
    if not n:
        if keep is not None:
            keep[inside] = C
        return Swept(of_sample(), columns, unit, sample)
    size = candidate_count(len(sample.landmarks)) // 2 if spec.core == "ls" else 0
    width, buffered = int(sample.used.sum()), pairs.scratch().useful
    work = RowWork(
        columns, sample.landmarks, unit, targets.Y.shape[1], targets.n_groups, width,
        buffered=buffered, seed=int(rng.integers(2**63)), size=size,
    )  # fmt: skip
    if buffered and keep is None:  # values that are kept are those of tiles
        work = replace(
            work, block_rows=block_rows(pairs.rows.X.shape[1], width, targets.Y.shape[1])
        )
    stored = targets.Y.dtype.itemsize
    workers = _affordable_workers(pairs, sample, work, stored, getattr(keep, "held", 0))
    work = replace(work, spare=spare_for(len(sample.landmarks), targets.n_groups, workers))
    groups = of_sample() if size else None  # or else after the pass, as they take memory
    if groups:
        work = replace(work, pilot=_pilot(groups, rng))

    progress = pairs.session.progress

    def seen(numbers: Array, _: Array) -> None:
        progress.add(len(numbers), len(numbers) * width)

    with progress.step("kernel rows", n, n * width):
        total = pairs.rows.sum(work, targets, inside, workers=workers, keep=keep, seen=seen)
    if keep is not None:  # after the threads, which share the work of making room for the values
        keep[inside] = C
    for mine, theirs in zip(total.groups, groups or of_sample(), strict=True):
        mine += theirs
    if size:
        sample = sample.with_rows(total.reservoir.numbers, total.reservoir.raw)
    return Swept(total.groups, columns, unit, sample)


def _pilot(groups: list[Moments], rng: np.random.Generator) -> Array:  # (m, LEVERAGE_PROBES)
    """Directions whose |c' pilot|^2 estimates the leverage of a row c."""
    T = whiten(np.sum([group.gram.matrix for group in groups], axis=0), PILOT_RTOL)
    return T @ rng.standard_normal((T.shape[1], LEVERAGE_PROBES))


def _require_outputs(pairs: Pairs, m: int, targets: Targets) -> None:
    """Raise MemoryError if the products of kernel values with very many targets do not fit."""
    q = targets.Y.shape[1]
    if q > m:  # the budget has room for m x m numbers, which is checked elsewhere
        pairs.require_memory(
            8 * (2 * targets.n_groups + 2) * m * q, f"sums of {q} outputs at {m} landmarks",
            "raise Resources(memory_budget=...), or use fewer landmarks, outputs or classes",
        )  # fmt: skip


def _affordable_workers(
    pairs: Pairs, sample: Sample, work: RowWork, stored: int = 8, held: int = 0
) -> int:
    """As many workers as the budget has room for; MemoryError if it has room for none.

    ``stored`` are the bytes of a target, and ``held`` those of kernel values that are kept.
    """
    m, width, size, q = len(sample.landmarks), work.width, work.size, work.n_outputs
    block = work.block_rows
    total = 8 * (work.n_groups * m * (m + q) + size * width)  # sums and a reservoir
    fixed = depth_of(pairs.n) * total + 3 * 8 * m * m
    each = total + 8 * block * (width + (m if sample.transform is not None else 0)) + 8 * m
    each += target_bytes(min(block, pairs.n), q, stored)
    each += 8 * (block + 2 * size) * width if size else 0  # a reservoir while it takes in a block
    pairs.require_memory(
        fixed + each,
        f"one pass with {m} landmarks",
        "raise Resources(memory_budget=...), or use fewer landmarks, outputs or classes; rows are "
        "streamed already",
    )
    each += LONGEST * TILE * pairs.rows.row_bytes  # rows that are read ahead
    fixed += spare_for(m, work.n_groups, pairs.workers) * total + held
    return max(1, min(pairs.workers, (pairs.session.budget - fixed) // each))


@dataclass(frozen=True)
class TileWork:
    """C / unit of a block of rows, and the sum of C'C: the same here and in another process."""

    columns: LandmarkColumns
    landmarks: Array
    unit: float
    width: int = 0  # columns evaluated
    buffered: bool = False  # the kernel writes to a buffer
    n_groups = 1
    spare, block_rows = SPARE, TILE

    def zero(self) -> Gram:
        return Gram.zeros(len(self.landmarks))

    def scratch(self) -> Scratch:
        return Scratch(self.buffered)

    def values(self, numbers: Array, A: Objects, scratch: Scratch) -> Array:
        of_rows = partial(self.columns.of_rows, numbers)
        C = evaluate(of_rows, A, numbers, self.landmarks, scratch.get(A, self.width))
        return scaled(C, self.unit)

    def add(
        self, total: Gram, numbers: Array, A: Objects, targets: Targets, scratch: Scratch
    ) -> Array:
        C = self.values(numbers, A, scratch)
        total.add(C)
        return C


# Kinds of features


class FeatureKind(Protocol):
    """What the features of an object are made of."""

    signed: bool  # whether features have a signature, and two penalties

    def map_of(self, K_ZZ: Array, spec: MapSpec) -> tuple[Array, Array]:
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

    def map_of(self, K_ZZ: Array, spec: MapSpec) -> tuple[Array, Array]:
        return landmark_map(K_ZZ, core_rank(spec))

    def core(
        self, pairs: Pairs, swept: Swept, spec: MapSpec, rng: np.random.Generator
    ) -> FeatureMap:
        sample, cut = swept.sample, spec.rank is not None
        feature_map = fit_core(pairs, sample, swept.gram, pairs.n, spec, rng, axes=cut)
        return feature_map.cut(spec.rank)

    def root(self, unit: float) -> float:
        return float(np.sqrt(unit))


class SimilarityFeatures:
    """The similarities to the landmarks themselves: one penalty, no signature."""

    signed = False

    def map_of(self, K_ZZ: Array, spec: MapSpec) -> tuple[Array, Array]:
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
