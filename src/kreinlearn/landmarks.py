"""Which objects represent the rest: every selector grows a panel of kernel values to m landmarks.

All but the paper's two keep every column they evaluate on the way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from kreinlearn.blocks import tiles
from kreinlearn.nystrom import landmark_map, one_shot
from kreinlearn.panel import Panel
from kreinlearn.reduce import Gram, sum_over_blocks

Array = np.ndarray[Any, Any]
Selector = Callable[[Panel, int, np.random.Generator, int], None]

PENDING = 64  # centres whose distances are brought up to date by one product
LLOYD_STEPS = 30


def gram_of(C: Array, workers: int = 1) -> Gram:
    """C'C and column sums, in fixed tiles."""

    def add(total: Gram, span: tuple[int, int]) -> None:
        total.add(C[slice(*span)])

    return sum_over_blocks(
        add, tiles(len(C)), lambda: Gram.zeros(C.shape[1]), workers=workers
    )


def sketch_features(panel: Panel, rank: int | None = None) -> tuple[Array, Array]:
    """Rows of U~ |Lambda|^1/2, and Lambda, of the one-shot factors of the landmarks so far."""
    C = panel.C
    E, Lambda = one_shot(gram_of(C, panel.workers).matrix, *landmark_map(panel.K_ZZ, rank))
    U = C @ E
    return U * np.sqrt(np.abs(Lambda)), Lambda


def uniform(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    panel.grow(_draw(panel, m - len(panel.landmarks), rng))
    panel.freeze()


def leverage(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    """The paper's: rows drawn by the leverage scores of a uniform sketch, which is dropped."""
    uniform(panel, sketch, rng, sketch)
    F, Lambda = sketch_features(panel)
    scores = (np.square(F) / np.abs(Lambda)).sum(axis=1)
    panel.replace(panel.rows[weighted_draw(scores, m, rng)])


def kmeans_pp(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    """The paper's: k-means++ seeds among the features of a uniform sketch, which is dropped."""
    uniform(panel, sketch, rng, sketch)
    F, _ = sketch_features(panel)
    panel.replace(panel.rows[seeds(F, m, rng)])


def greedy_kmeans_pp(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    """Greedy k-means++ on the landmarks' own features, doubling m/4 -> m/2 -> m."""
    if not len(panel.landmarks):
        uniform(panel, -(-m // 4), rng, sketch)
    while len(panel.landmarks) < m:
        _greedy_step(panel, min(m, 2 * len(panel.landmarks)), rng)


def medoids(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    """The rows nearest to the centres of Lloyd's k-means, for vectors: no kernel values."""
    chosen = _medoid_rows(panel, m - len(panel.landmarks), rng)
    panel.grow(chosen)
    panel.freeze()
    uniform(panel, m, rng, sketch)  # centres that share a medoid


def medoids_then_greedy(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    if not len(panel.landmarks):
        medoids(panel, -(-m // 2), rng, sketch)
    greedy_kmeans_pp(panel, m, rng, sketch)


SELECTORS: dict[str, Selector] = {
    "uniform": uniform,
    "leverage": leverage,
    "kmeans++": kmeans_pp,
    "greedy_kmeans++": greedy_kmeans_pp,
    "medoids": medoids,
    "medoids+greedy": medoids_then_greedy,
}
WHOLE_SAMPLE = ("leverage", "kmeans++")  # the paper's: scores of all rows, not of a pool
VECTORS_ONLY = ("medoids", "medoids+greedy")


def _draw(panel: Panel, count: int, rng: np.random.Generator) -> Array:
    rest = np.setdiff1d(panel.rows, panel.landmarks)
    return rng.choice(rest, min(count, len(rest)), replace=False)


def weighted_draw(weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Indices drawn one after another without replacement, by weight; zeros come last."""
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(len(weights))) / weights
    return np.argsort(-keys, kind="stable")[:count]


def seeds(F: Array, m: int, rng: np.random.Generator) -> Array:
    """k-means++ on the rows of F: exact draws by rejection from distances somewhat out of date.

    A row drawn by its old squared distance is accepted with probability new / old; the new one
    needs the pending centres only, and all rows are brought up to date 64 centres at a time.
    """
    norms = np.einsum("ij,ij->i", F, F)
    chosen = [int(rng.integers(len(F)))]
    old = _squared_distances(F, norms, np.array(chosen)).min(axis=0)
    pending: list[int] = []
    while len(chosen) < m:
        total = np.cumsum(old)
        if total[-1] <= 0:  # fewer distinct rows than centres
            rest = np.setdiff1d(np.arange(len(F)), chosen)
            return np.concatenate([chosen, rng.choice(rest, m - len(chosen), replace=False)])
        while len(pending) < PENDING and len(chosen) < m:
            i = min(int(np.searchsorted(total, rng.random() * total[-1])), len(F) - 1)
            gaps = np.square(F[pending] - F[i]).sum(axis=1)
            if rng.random() * old[i] < min(old[i], gaps.min(initial=np.inf)) and i not in chosen:
                chosen.append(i)
                pending.append(i)
            elif len(pending) and gaps.min() < 1e-3 * old[i]:
                break  # a stale region dominates: bring the distances up to date
        if pending:
            np.minimum(old, _squared_distances(F, norms, np.array(pending)).min(axis=0), out=old)
            pending = []
        old[chosen] = 0.0
    return np.array(chosen)


def _squared_distances(F: Array, norms: Array, centres: Array) -> Array:
    return np.maximum(norms + norms[centres][:, None] - 2 * F[centres] @ F.T, 0)


def _greedy_step(panel: Panel, m: int, rng: np.random.Generator) -> None:
    """Grow to m landmarks by the features of those there, each the best of 2 + log m trials.

    What the features miss of k(x, x) is added to the squared distance: an object unlike all
    landmarks has features near zero and would never be drawn.
    """
    F, Lambda = sketch_features(panel, rank=-(-2 * len(panel.landmarks) // 3))
    missed = np.abs(panel.diagonal - (np.square(F) * np.sign(Lambda)).sum(axis=1))
    start = panel.positions(panel.landmarks)
    panel.grow(panel.rows[_greedy_seeds(F, missed, start, m, rng)])


def _greedy_seeds(F: Array, missed: Array, start: Array, m: int, rng: Any) -> Array:
    norms, trials = np.einsum("ij,ij->i", F, F), int(2 + math.log(m))
    distance = np.full(len(F), np.inf)
    for lo in range(0, len(start), PENDING):
        near = _squared_distances(F, norms, start[lo : lo + PENDING]).min(axis=0)
        np.minimum(distance, near, out=distance)
    used = np.zeros(len(F), dtype=bool)
    used[start] = True
    distance[start] = 0.0
    chosen: list[int] = []
    while len(start) + len(chosen) < m:
        weights = np.where(used, 0.0, distance + missed)
        candidates = _candidates(weights, used, trials, rng)
        after = np.minimum(distance, _squared_distances(F, norms, candidates))
        best = int((after.sum(axis=1) - missed[candidates]).argmin())
        distance, pick = after[best], int(candidates[best])
        used[pick] = True
        chosen.append(pick)
    return np.array(chosen, dtype=np.intp)


def _candidates(weights: Array, used: Array, trials: int, rng: np.random.Generator) -> Array:
    total = np.cumsum(weights)
    if total[-1] <= 0:  # nothing is left to explain: any row will do
        return rng.choice(np.flatnonzero(~used), 1)
    drawn = np.searchsorted(total, rng.random(trials) * total[-1], side="right")
    return np.unique(np.minimum(drawn, np.flatnonzero(weights)[-1]))


def _medoid_rows(panel: Panel, count: int, rng: np.random.Generator) -> Array:
    X = np.asarray(panel.X.take(panel.rows), dtype=np.float64)
    seed = int(rng.integers(2**31))
    model = KMeans(min(count, len(X)), n_init=1, max_iter=LLOYD_STEPS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centres
        centres = np.asarray(model.fit(X).cluster_centers_)
    gaps = np.square(centres).sum(axis=1)[:, None] - 2 * centres @ X.T + np.square(X).sum(axis=1)
    nearest = panel.rows[np.unique(gaps.argmin(axis=1))]
    return np.setdiff1d(nearest, panel.landmarks)
