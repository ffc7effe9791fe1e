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

from kreinlearn.data.tiles import tiles
from kreinlearn.kernels.columns import squared_norms
from kreinlearn.nystrom.core import landmark_map, one_shot
from kreinlearn.pairs.panel import Panel
from kreinlearn.sums.parallel import map_blocks

Array = np.ndarray[Any, Any]
Selector = Callable[[Panel, int, np.random.Generator, int], None]

PENDING = 64  # centres whose distances are brought up to date by one product
STALE = 1e-3  # now / old of a rejected draw that calls for that at once
LLOYD_STEPS = 30


def sketch_factors(panel: Panel, rank: int | None = None) -> tuple[Array, Array]:
    """E, Lambda of the landmarks so far: U~ = C E are the eigenvectors of K~ on the panel."""
    return one_shot(panel.gram().matrix, *landmark_map(panel.K_ZZ / panel.unit, rank, panel.eps))


def sketch_features(panel: Panel, rank: int | None = None) -> tuple[Array, Array]:
    """Rows of U~ |Lambda|^1/2, and the signs of Lambda."""
    E, Lambda = sketch_factors(panel, rank)
    W = E * np.sqrt(np.abs(Lambda))
    dtype = np.float32 if panel.whole else np.float64  # of many rows, to draw by: no more needed
    F = np.empty((len(panel.candidates), len(Lambda)), dtype)
    return panel.map_rows(lambda C: C @ W, F), np.sign(Lambda)


def uniform(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    panel.grow(_draw(panel, m - len(panel.landmarks), rng))
    panel.freeze()


def leverage(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    """The paper's: rows drawn by the leverage scores of a uniform sketch, which is dropped."""
    first = _sketch(panel, sketch, rng)
    E, _ = sketch_factors(panel)
    scores = np.empty(len(panel.candidates))
    panel.map_rows(lambda C: squared_norms(C @ E), scores)
    if first:
        panel.replace(panel.candidates[weighted_draw(scores, m, rng)])
    else:
        scores[panel.positions(panel.landmarks)] = 0.0
        panel.grow(panel.rows[weighted_draw(scores, m - len(panel.landmarks), rng)])


def kmeans_pp(panel: Panel, m: int, rng: np.random.Generator, sketch: int) -> None:
    """The paper's: k-means++ seeds among the features of a uniform sketch, which is dropped."""
    first = _sketch(panel, sketch, rng)
    F, _ = sketch_features(panel)
    if first:
        panel.replace(panel.candidates[seeds(F, m, rng, workers=panel.workers)])
    else:
        start = panel.positions(panel.landmarks)
        panel.grow(panel.rows[seeds(F, m, rng, start, panel.workers)[len(start) :]])


def _sketch(panel: Panel, size: int, rng: np.random.Generator) -> bool:
    """Draw the sketch, unless there are landmarks to grow from: then they are it, and stay."""
    first = not len(panel.landmarks)
    if first:
        uniform(panel, size, rng, size)
    return first


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


def seeds(
    F: Array, m: int, rng: np.random.Generator, start: Array | None = None, workers: int = 1
) -> Array:
    """k-means++ on the rows of F, after ``start``: exact draws from distances out of date.

    A row drawn by its old squared distance is accepted with probability new / old; the new one
    needs the pending centres only, and all rows are brought up to date 64 centres at a time.
    """
    norms = squared_norms(F)
    chosen = [int(rng.integers(len(F)))] if start is None else start.tolist()
    old, pending = np.full(len(F), np.inf), chosen[:]
    while len(chosen) < m:
        lower_distances(old, F, norms, np.array(pending), workers)
        old[chosen] = 0.0
        pending = []
        total = np.cumsum(old)
        if total[-1] <= 0:  # fewer distinct rows than centres
            rest = np.setdiff1d(np.arange(len(F)), chosen)
            return np.concatenate([chosen, rng.choice(rest, m - len(chosen), replace=False)])
        while len(pending) < PENDING and len(chosen) < m:
            i = min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(F) - 1)
            now = min(old[i], np.square(F[pending] - F[i]).sum(axis=1).min(initial=np.inf))
            if rng.random() * old[i] < now:
                chosen.append(i)
                pending.append(i)
            elif now < STALE * old[i]:
                break  # what was drawn is covered already: bring the distances up to date
    return np.array(chosen)


def lower_distances(
    distance: Array, F: Array, norms: Array, centres: Array, workers: int = 1
) -> None:
    """distance = min(distance, squared distance to the nearest of the centres), row by row."""
    Ft, centre_norms = np.ascontiguousarray(-2 * F[centres].T), norms[centres]
    rounding = 8 * np.finfo(F.dtype).eps

    def one_tile(span: tuple[int, int]) -> None:
        here = slice(*span)
        gaps = F[here] @ Ft
        gaps += centre_norms
        nearest = gaps.min(axis=1) + norms[here]
        nearest[nearest < rounding * norms[here]] = 0.0
        np.minimum(distance[here], nearest, out=distance[here])

    map_blocks(one_tile, tiles(len(F)), workers=workers)


def _greedy_step(panel: Panel, m: int, rng: np.random.Generator) -> None:
    """Grow to m landmarks by the features of those there, each the best of 2 + log m trials.

    What the features miss of k(x, x) is added to the squared distance: an object unlike all
    landmarks has features near zero and would never be drawn.
    """
    F, S = sketch_features(panel, rank=-(-2 * len(panel.landmarks) // 3))
    missed = np.abs(panel.diagonal / panel.unit - np.square(F) @ S)
    start = panel.positions(panel.landmarks)
    panel.grow(panel.rows[_greedy_seeds(F, missed, start, m, rng)])


def _greedy_seeds(F: Array, missed: Array, start: Array, m: int, rng: Any) -> Array:
    norms, trials = squared_norms(F), int(2 + math.log(m))
    distance = np.full(len(F), np.inf)
    lower_distances(distance, F, norms, start)
    used = np.zeros(len(F), dtype=bool)
    used[start] = True
    distance[start] = 0.0
    chosen: list[int] = []
    while len(start) + len(chosen) < m:
        weights = np.where(used, 0.0, distance + missed)
        candidates = _candidates(weights, used, trials, rng)
        gaps = norms + norms[candidates][:, None] - 2 * F[candidates] @ F.T
        after = np.minimum(distance, np.maximum(gaps, 0))
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
