"""From objects to a feature map: choose landmarks, pass once over all rows, fit the core."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.core import (
    CORE_RTOL,
    EPS,
    WHITEN_RTOL,
    FeatureMap,
    TileWork,
    core_rank,
    eigen_map,
    fit_core,
    landmark_map,
    one_shot,
    sweep,
)
from kreinlearn.nystrom.error import ERROR_ROWS, ErrorEstimate, estimate_error
from kreinlearn.nystrom.landmarks import MapSpec, open_sample, room_for, select_landmarks
from kreinlearn.nystrom.schemes import Candidates
from kreinlearn.pairs.evaluate import LandmarkColumns, scaled
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.solvers.spectrum import signed_eigh
from kreinlearn.sums.moments import Gram, Targets, gram_of
from kreinlearn.sums.parallel import serial_blas


class FittedMap(NamedTuple):
    """A feature map, and the kernel values that it was made of."""

    sample: Sample
    columns: LandmarkColumns
    gram: Gram  # of C / unit over all rows
    unit: float
    map: FeatureMap  # of the kernel itself
    error: ErrorEstimate | None = None


def fit_map(
    pairs: Pairs, spec: MapSpec, rng: np.random.Generator, keep: Array | None = None
) -> FittedMap:
    """Landmarks, one pass over all rows, the core; ``keep`` takes C / unit of all rows."""
    sample = select_landmarks(pairs, open_sample(pairs, spec, rng), spec, rng)
    return finish_map(pairs, sample, spec, rng, keep)


def finish_map(
    pairs: Pairs, sample: Sample, spec: MapSpec, rng: np.random.Generator,
    keep: Array | None = None,
) -> FittedMap:  # fmt: skip
    """The feature map of chosen landmarks."""
    n, C = pairs.n, None
    if spec.method == "gram":
        swept = sweep(pairs, sample, spec, rng, Targets.none(n), keep)
        sample, columns, gram, unit = swept.sample, swept.columns, swept.gram, swept.unit
    else:
        C, columns, unit = (
            all_columns(pairs, sample, spec.method),
            pairs.evaluator(sample),
            sample.unit,
        )
        gram = gram_of(scaled(C, unit), pairs.workers)
    if C is None:
        feature_map = fit_core(pairs, sample, gram, n, spec, rng)
    else:
        feature_map = by_reference_route(scaled(C, unit), sample, spec)
    return FittedMap(sample, columns, gram, unit, feature_map.rescaled(unit))


# Centred features


def centred_axes(fitted: FittedMap, n: int) -> tuple[FeatureMap, Array]:
    """The one-shot eigenbasis of the centred features, and the means of the kernel columns."""
    W, S = fitted.map.W * np.sqrt(fitted.unit), fitted.map.S
    with serial_blas():
        G, rounding = _centred_gram(fitted, W, n)
        E, Lambda = one_shot(G, np.eye(len(S)), S, max(WHITEN_RTOL, rounding))
        # u(x) = k~(x, X) U~ / Lambda: new objects are not in the span of the centred features
        E = W @ (S[:, None] * (G @ E) / Lambda)
    return eigen_map(E, Lambda).rescaled(fitted.unit), fitted.gram.sums / n * fitted.unit


def _centred_gram(fitted: FittedMap, W: Array, n: int) -> tuple[Array, float]:
    """The Gram matrix of the centred features, and which share of their length is rounding.

    The features themselves are centred where all rows are in the sample: that loses less than
    centring a Gram matrix, in which a mean is squared.
    """
    inside = fitted.sample.inside
    if len(inside) == n:
        F = (fitted.sample.C[inside] / fitted.unit) @ W
        before = np.square(F).sum()
        F -= F.mean(axis=0)
        G, rounding = F.T @ F, 100 * EPS
    else:
        whole, mean = W.T @ fitted.gram.matrix @ W, fitted.gram.sums / n @ W
        before = np.trace(whole)
        G, rounding = whole - n * np.outer(mean, mean), WHITEN_RTOL
    after = max(np.trace(G), EPS**2 * before)
    return G, rounding * float(np.sqrt(before / after)) if before > 0 else rounding


# Reference routes, which need all similarities at once


def by_reference_route(C: Array, sample: Sample, spec: MapSpec) -> FeatureMap:
    """The same as ``fit_core`` from all similarities C over the unit of the sample."""
    k, K_ZZ = core_rank(spec), sample.K_ZZ / sample.unit
    W, S = landmark_map(K_ZZ, k)
    if spec.method == "svd":
        return FeatureMap(W, S, *one_shot_svd(C, W, S))
    return FeatureMap(W, S, *squared_route(C, K_ZZ, k))


def one_shot_svd(C: Array, W: Array, S: Array) -> tuple[Array, Array]:
    """The paper's own route: a thin singular value decomposition of L = C U |D|^-1/2."""
    if not len(S):  # which LAPACK, as scipy 1.13 calls it, does not take
        return W, S
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


def all_columns(pairs: Pairs, sample: Sample, method: str) -> Array:  # (n, m)
    """All similarities to the landmarks, for the reference routes that need them at once."""
    n, m = pairs.n, len(sample.landmarks)
    pairs.require_memory(
        8 * n * m, f'method="{method}" holds all {n} x {m} kernel values and',
        'pass method="gram", which streams them',
    )  # fmt: skip
    here = sample.rows[sample.rows >= 0]
    C = np.empty((n, m))
    C[here] = sample.C[sample.inside]
    others, width, progress = n - len(here), int(sample.used.sum()), pairs.session.progress

    def seen(numbers: Array, _: Array) -> None:
        progress.add(len(numbers), len(numbers) * width)

    with progress.step("kernel rows", others, others * width):
        work = TileWork(pairs.evaluator(sample), sample.landmarks, 1.0)
        pairs.rows.map(work, lambda C: C, C, here, workers=pairs.workers, seen=seen)
    return C


# Landmarks until the error is small


def fit_map_to_tolerance(
    pairs: Pairs, spec: MapSpec, rng: np.random.Generator, *, shrink: bool
) -> FittedMap:
    """Double the landmarks, keeping every column, until the estimated error is below tol.

    With ``shrink`` the rank is then cut to the smallest that stays below it.
    """
    assert spec.tol is not None
    n, tol, K = pairs.n, spec.tol, None
    sample = open_sample(pairs, spec, rng)
    most = len(sample.pool) if spec.scheme is not None else spec.n_landmarks
    tested = np.sort(rng.choice(sample.pool, min(ERROR_ROWS, len(sample.pool)), replace=False))
    while True:
        sample = select_landmarks(pairs, sample, spec, rng)
        K = pairs.similarities(sample, tested) if K is None else K
        gram = Candidates(pairs, sample).gram()
        trial = fit_core(pairs, sample, gram, len(sample.rows), spec, rng).rescaled(sample.unit)
        more = replace(spec, n_landmarks=min(most, 2 * len(sample.landmarks)))
        # what all landmarks reach: if the rank asked for does not, more of them will not help
        reached = _error_on(tested, K, sample, trial, n).relative <= tol
        if reached or len(sample.landmarks) >= most or room_for(n, more) > pairs.session.budget:
            break
        spec = more
    fitted = finish_map(pairs, sample, spec, rng)
    sample = fitted.sample
    rank = _smallest_rank(tested, K, sample, fitted.map, tol, n) if shrink else spec.rank
    cut = fitted.map.cut(rank)
    return fitted._replace(map=cut, error=_error_on(tested, K, sample, cut, n))


def _error_on(
    tested: Array, K: Array, sample: Sample, feature_map: FeatureMap, n: int
) -> ErrorEstimate:
    Phi = sample.C[sample.positions(tested)] @ feature_map.W
    return estimate_error(K, Phi, feature_map.S, n)


def _smallest_rank(
    tested: Array, K: Array, sample: Sample, feature_map: FeatureMap, tol: float, n: int
) -> int | None:
    """The smallest rank whose estimated error is below tol; None if no rank's is."""
    low, high = 1, len(feature_map.Lambda)
    if not high or _error_on(tested, K, sample, feature_map, n).relative > tol:
        return None
    while low < high:
        middle = (low + high) // 2
        error = _error_on(tested, K, sample, feature_map.cut(middle), n).relative
        low, high = (low, middle) if error <= tol else (middle + 1, high)
    return high
