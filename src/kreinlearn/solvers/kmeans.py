"""K-means on features whose inner product has a sign per feature.

The cost of groups is the sum of w |phi - m|^2 over all objects, where m is the weighted mean of the
group and |v|^2 = sum_j s_j v_j^2. If all signs s_j are 1 this is k-means. If some are -1, a squared
distance may be negative, and a step of Lloyd, in which every object goes to the nearest mean, need
not lower the cost. Moving a single object by the exact change of the cost always does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

Array = NDArray[Any]
BLOCK = 2048  # rows whose distances are held at a time
SAME = 1e-18  # of the largest squared norm: objects at this squared distance are one
CANCELLED = 1e-9  # of the sum of two squared norms: their difference is mostly rounding
ROUNDING = 1e-12  # of the largest squared norm: what a move must gain


@dataclass(frozen=True)
class Groups:
    """Which object is in which group, and the means of the groups."""

    labels: Array  # (n,)
    centres: Array  # (k, r)
    weights: Array  # (k,), of the objects in each group
    cost: float
    n_iter: int = 0  # passes over all objects
    converged: bool = True


def best_groups(
    Phi: Array, signs: Array, w: Array, k: int, rng: np.random.Generator, *,
    n_init: int = 1, max_iter: int = 300,
) -> Groups:  # fmt: skip
    """The groups of smallest cost from several seeds.

    There are fewer than k if fewer objects differ.
    """
    found = [one_run(Phi, signs, w, k, rng, max_iter) for _ in range(n_init)]
    return min(found, key=lambda groups: groups.cost)


def one_run(
    Phi: Array, signs: Array, w: Array, k: int, rng: np.random.Generator, max_iter: int
) -> Groups:
    """Seeds, steps of Lloyd as long as they lower the cost, then moves of single objects."""
    seeds = seed(Phi, w, k, rng)
    labels = nearest(Phi, np.ones(len(signs)), Phi[seeds])
    labels[seeds] = np.arange(len(seeds))
    groups = grouped(Phi, signs, w, labels, len(seeds))
    groups = by_lloyd(Phi, signs, w, groups, max_iter)
    return by_moves(Phi, signs, w, groups, max_iter)


def seed(Phi: Array, w: Array, k: int, rng: np.random.Generator) -> Array:
    """Rows of greedy k-means++, in the metric without signs; no two of them are the same.

    Each next one is the best of a few that are drawn by their squared distance to those before.
    """
    trials = 2 + int(np.log(k))
    least = SAME * np.max(np.einsum("ij,ij->i", Phi, Phi), initial=0.0)
    seeds = [int(rng.choice(len(w), p=w / w.sum()))]
    closest = squared_gaps(Phi, Phi[seeds])[:, 0]
    while len(seeds) < k:
        chance = w * np.where(closest > least, closest, 0.0)
        if not chance.any():
            break
        total = np.cumsum(chance)
        drawn = np.searchsorted(total, rng.random(trials) * total[-1], side="right")
        drawn = np.minimum(drawn, np.flatnonzero(chance)[-1])
        gaps = np.minimum(closest[:, None], squared_gaps(Phi, Phi[drawn]))
        best = int(np.argmin(w @ gaps))
        seeds.append(int(drawn[best]))
        closest = gaps[:, best]
    return np.array(seeds)


def squared_gaps(Phi: Array, points: Array) -> Array:  # (n, p)
    """Squared distances without signs; small ones from the differences, so that copies are at 0."""
    gaps, plus = np.empty((len(Phi), len(points))), np.ones(Phi.shape[1])
    for here, D in distance_blocks(Phi, plus, points):
        size = np.square(Phi[here]).sum(axis=1)[:, None] + np.square(points).sum(axis=1)
        for i, j in zip(*np.nonzero(CANCELLED * size > D), strict=True):
            D[i, j] = np.square(Phi[here.start + i] - points[j]).sum()
        gaps[here] = D
    return gaps


def squared_distances(Phi: Array, signs: Array, centres: Array) -> Array:  # (n, k)
    """|phi - m|^2 with signs, which may be negative."""
    own = np.square(Phi) @ signs
    rest = np.square(centres) @ signs - 2 * (Phi * signs) @ centres.T
    return np.asarray(own[:, None] + rest)


def distance_blocks(Phi: Array, signs: Array, centres: Array) -> Iterator[tuple[slice, Array]]:
    """Rows, and their squared distances to all centres."""
    for here in gen_batches(len(Phi), BLOCK):
        yield here, squared_distances(Phi[here], signs, centres)


def nearest(Phi: Array, signs: Array, centres: Array) -> Array:  # (n,)
    """The number of the centre of smallest squared distance."""
    labels = np.empty(len(Phi), dtype=np.intp)
    for here, D in distance_blocks(Phi, signs, centres):
        labels[here] = D.argmin(axis=1)
    return labels


def grouped(Phi: Array, signs: Array, w: Array, labels: Array, k: int) -> Groups:
    """The means of given groups, and the cost; a group without weight has the mean 0."""
    weights, sums = np.bincount(labels, w, k), np.zeros((k, Phi.shape[1]))
    for here in gen_batches(len(Phi), BLOCK):
        member = np.zeros((k, here.stop - here.start))
        member[labels[here], np.arange(member.shape[1])] = w[here]
        sums += member @ Phi[here]
    centres = sums / np.where(weights > 0, weights, 1.0)[:, None]
    return Groups(labels, centres, weights, cost_of(Phi, signs, w, labels, centres))


def cost_of(Phi: Array, signs: Array, w: Array, labels: Array, centres: Array) -> float:
    """The sum of w |phi - m|^2, from the differences."""
    total = 0.0
    for here in gen_batches(len(Phi), BLOCK):
        total += float(w[here] @ (np.square(Phi[here] - centres[labels[here]]) @ signs))
    return total


def by_lloyd(Phi: Array, signs: Array, w: Array, groups: Groups, max_iter: int) -> Groups:
    """Every object to its nearest mean, until a step lowers the cost no more."""
    k = len(groups.centres)
    while groups.n_iter < max_iter:
        labels = nearest(Phi, signs, groups.centres)
        after = grouped(Phi, signs, w, labels, k)
        if not after.weights.all() or after.cost >= groups.cost:
            break
        groups = replace(after, n_iter=groups.n_iter + 1)
    return groups


def by_moves(Phi: Array, signs: Array, w: Array, groups: Groups, max_iter: int) -> Groups:
    """Single objects to the group that lowers the cost most, until no move does.

    No group is emptied. Objects without weight go to the nearest mean at the end.
    """
    n_iter, moved = groups.n_iter, True
    while moved and n_iter < max_iter:
        labels, moved = _moved(Phi, signs, w, groups)
        groups = grouped(Phi, signs, w, labels, len(groups.centres))
        n_iter += 1
    labels, idle = groups.labels.copy(), w == 0
    if idle.any():
        labels[idle] = nearest(Phi[idle], signs, groups.centres)
    return replace(groups, labels=labels, n_iter=n_iter, converged=not moved)


def _moved(Phi: Array, signs: Array, w: Array, groups: Groups) -> tuple[Array, bool]:
    """The labels after one pass of moves, and whether there was one."""
    labels, centres, weights = (x.copy() for x in (groups.labels, groups.centres, groups.weights))
    least = ROUNDING * np.max(np.einsum("ij,ij->i", Phi, Phi), initial=0.0)
    moved = False
    for here in gen_batches(len(Phi), BLOCK):
        D = squared_distances(Phi[here], signs, centres)
        _, gain = best_move(D, w[here], labels[here], weights)
        for i in here.start + np.flatnonzero(gain > least * w[here]):
            D_i = squared_distances(Phi[i : i + 1], signs, centres)
            target, gain_i = best_move(D_i, w[i : i + 1], labels[i : i + 1], weights)
            a, b = labels[i], target[0]
            if gain_i[0] > least * w[i]:
                centres[a] -= w[i] / (weights[a] - w[i]) * (Phi[i] - centres[a])
                centres[b] += w[i] / (weights[b] + w[i]) * (Phi[i] - centres[b])
                weights[a] -= w[i]
                weights[b] += w[i]
                labels[i], moved = b, True
    return labels, moved


def best_move(D: Array, w: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """For each object the best other group, and by how much the cost falls if it goes there.

    To leave a group of weight W lowers the cost by W w / (W - w) times the squared distance to its
    mean, and to join one raises it by W w / (W + w) times that distance.
    """
    rows, own = np.arange(len(D)), weights[labels]
    rest = own - w
    leaves = (w > 0) & (rest > 1e-9 * own)  # not the last one of its group
    factor = own * w / np.where(leaves, rest, 1.0)
    joined = weights * w[:, None] / (weights + np.where(leaves, w, 1.0)[:, None]) * D
    joined[rows, labels] = np.inf
    target = joined.argmin(axis=1)
    gain = np.where(leaves, factor * D[rows, labels] - joined[rows, target], 0.0)
    return target, gain
