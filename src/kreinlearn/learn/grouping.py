"""Groups of objects: features of all rows, a number of groups, k-means, and representatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE
from kreinlearn.kernels.base import Array
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.nystrom.fit import FittedMap, centred_axes, fit_map
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.solvers.kmeans import Groups, best_groups, squared_distances

FEW = 1000  # objects that are all landmarks, unless their number is given
LANDMARKS = 300  # of more objects; and ten of each group
JUDGED = 1000  # objects by which a number of groups is judged
MOST_GROUPS = 20  # that are tried
SHARE = 4  # the features take at most one part in four of the budget


@dataclass(frozen=True)
class Wanted:
    """What is asked for: the number of groups, or None if it is chosen, and how to look for it."""

    n_groups: int | None
    flips: bool  # whether all signs count as positive
    rank: int | None
    n_init: int
    max_iter: int

    def signs(self, feature_map: FeatureMap) -> Array:
        return np.ones(len(feature_map.S)) if self.flips else feature_map.S


class Grouping(NamedTuple):
    """The groups of the rows of a fit, and the map of the features they live in."""

    fitted: FittedMap
    map: FeatureMap
    mean: Array  # (r,), what is subtracted from features
    groups: Groups
    medoids: Array  # (k,) row numbers
    scores: Array | None  # (tried, 2): numbers of groups and their silhouettes


def default_landmarks(n: int, n_groups: int | None) -> int:
    """How many landmarks "auto" stands for."""
    return n if n <= FEW else max(LANDMARKS, 10 * (n_groups or MOST_GROUPS))


def rows_with_room(n_landmarks: int, budget: int) -> int:
    """Of how many rows the features have room in memory."""
    return max(1, budget // (SHARE * 8 * n_landmarks))


def fit_groups(
    pairs: Pairs, spec: MapSpec, wanted: Wanted, w: Array, rng: np.random.Generator
) -> Grouping:
    """Features of all rows in one pass, then groups in the space of these features."""
    Phi = np.empty((pairs.n, spec.n_landmarks))
    fitted = fit_map(pairs, spec, rng, keep=Phi)
    axes, means = centred_axes(fitted, pairs.n)
    axes = axes.cut(wanted.rank)
    mean = np.asarray(means @ axes.W)
    Phi = features_over(Phi, axes.W * fitted.unit, mean)
    signs, k, scores = wanted.signs(axes), wanted.n_groups, None
    if k is None:
        scores = silhouettes(Phi, signs, w, wanted, rng)
        k = int(scores[np.argmax(scores[:, 1]), 0])
    groups = best_groups(
        Phi, signs, w, k, rng, n_init=wanted.n_init, max_iter=wanted.max_iter
    )  # fmt: skip
    return Grouping(fitted, axes, mean, groups, medoids(Phi, signs, w, groups), scores)


def features_over(C: Array, W: Array, mean: Array) -> Array:  # (n, r)
    """C W - mean, written over C, a block at a time."""
    r = W.shape[1]
    for here in gen_batches(len(C), TILE):
        C[here, :r] = C[here] @ W - mean
    return C[:, :r]


def medoids(Phi: Array, signs: Array, w: Array, groups: Groups) -> Array:
    """The member of each group that is nearest to its mean; the first one of several."""
    own = np.square(Phi - groups.centres[groups.labels]) @ signs
    order = np.lexsort((own, w == 0, groups.labels))
    return order[np.searchsorted(groups.labels[order], np.arange(len(groups.centres)))]


def silhouettes(
    Phi: Array, signs: Array, w: Array, wanted: Wanted, rng: np.random.Generator
) -> Array:
    """Mean silhouettes of 2, 3, ... groups of a sample; squared distances below zero count as 0."""
    from sklearn.metrics import silhouette_score

    present = np.flatnonzero(w)
    some = np.sort(rng.choice(present, min(JUDGED, len(present)), replace=False))
    F, v = Phi[some], w[some]
    D = np.sqrt(np.maximum(squared_distances(F, signs, F), 0.0))
    np.fill_diagonal(D, 0.0)
    found = list[tuple[float, float]]()
    for k in range(2, min(MOST_GROUPS, len(some) - 1) + 1):
        groups = best_groups(F, signs, v, k, rng, n_init=wanted.n_init, max_iter=wanted.max_iter)
        if len(groups.centres) < k:  # fewer objects differ
            break
        found.append((k, float(silhouette_score(D, groups.labels, metric="precomputed"))))
    return np.array(found or [(1, 0.0)])
