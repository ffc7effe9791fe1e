"""Ranks of neighbours: a similarity that depends on the order of the distances, not on their size.

The rank of z as seen from x is 1 plus the number of reference objects other than x that are nearer
to x than z is. All distances from x in increasing order would say it exactly, but a model would
have to keep them for every landmark. A profile is a short extract of them: the distances at some
ranks, close together among the nearest objects and growing geometrically further out. Ranks in
between are interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreinlearn.kernels.base import Array

EXACT_RANKS = 16  # every rank up to this one is in a profile
RANKS_PER_DOUBLING = 4  # of the ranks above
ROWS_AT_A_TIME = 512  # whose distances are sorted at once
RISE = 0.125  # the share of the gap behind a distance over which the rank rises


@dataclass(frozen=True)
class RankScaling:
    """k(x, z) = exp(-u / k) or 1 / (1 + u / k), with u = (rank_x(z) rank_z(x))^1/2.

    The offsets of an object are its profile. Objects at a distance of at most ``zero`` are copies
    of each other: their rank is 0 and their similarity is 1.
    """

    n_reference: int
    k: float
    zero: float
    tail: str = "exp"  # or "inverse"

    def offsets(self, D: Array) -> Array:
        return rank_profiles(D[:, : self.n_reference], self.zero)

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        K = np.empty(D.shape)
        for i, profile in enumerate(a_rows):
            K[i] = rank_in(profile, D[i])
        for j, profile in enumerate(a_columns):
            K[:, j] *= rank_in(profile, D[:, j])
        K[self.zero >= D] = 0.0
        np.sqrt(K, out=K)
        if self.tail == "exp":
            K /= -self.k
            return np.exp(K, out=K)
        K /= self.k
        K += 1.0
        return np.reciprocal(K, out=K)

    def diagonal(self, a: Array) -> Array:
        return np.ones(len(a))


def profile_ranks(n: int) -> Array:
    """The ranks in the profiles of n reference objects: 1, 2, ..., 16, 20, 24, 28, 32, 40, ..., n.

    Examples
    --------
    >>> profile_ranks(50)[14:].tolist()
    [15, 16, 20, 24, 28, 32, 40, 48, 50]
    """
    ranks = list(range(1, EXACT_RANKS + 1))
    while ranks[-1] < n:
        last = ranks[-1]
        step = last // RANKS_PER_DOUBLING
        ranks += range(last + step, 2 * last + 1, step)
    return np.array([rank for rank in ranks if rank < n] + [n])


def rank_profiles(D_R: Array, zero: float) -> Array:  # (b, n) -> (b, 4 p), p ranks
    """The profiles of objects, from their distances to the reference set, in any order.

    The first half of a profile are distances, the second half the ranks that belong to them, both
    in increasing order. One reference object at a distance of at most ``zero`` is the object
    itself and is not counted.
    """
    b, n = D_R.shape
    ranks = profile_ranks(n)
    profiles = np.empty((b, 4 * len(ranks)))
    for start in range(0, b, ROWS_AT_A_TIME):
        here = slice(start, start + ROWS_AT_A_TIME)
        rows = np.sort(D_R[here].astype(np.float64), axis=1)
        profiles[here] = _profiles_of_sorted(rows, ranks, zero)
    return profiles


def rank_in(profile: Array, d: Array) -> Array:
    """The ranks of objects at distances d from the object of the profile.

    They do not decrease with the distance. Nearer than the nearest reference object the rank is 1,
    and beyond the farthest it is 1 plus the number of the others.
    """
    distances, ranks = profile.reshape(2, -1)
    return np.asarray(np.interp(d, distances, ranks))


def _profiles_of_sorted(rows: Array, ranks: Array, zero: float) -> Array:  # (b, n), (p,)
    """Profiles of objects that have these distances, in increasing order.

    At a distance of the profile the rank counts the objects that are nearer. Behind it those at
    this distance count as well: the rank rises to that number within the first part of the gap to
    the next distance. Neighbouring distances that differ by at most ``zero`` are the same. So a
    rounded distance has almost the same rank. Behind the farthest object there is a gap as wide as
    its distance.
    """
    b, n = rows.shape
    itself = (rows[:, 0] <= zero).astype(np.intp)  # how many objects are not counted
    far = np.repeat(2.0 * (rows[:, -1:] + zero), 2, axis=1)
    padded = np.hstack([rows, far])
    places = np.arange(n + 1)
    differs = np.diff(padded, axis=1) > zero  # from each place to the next one
    differs[:, n - 1] = True  # nobody is as far as the end of the last gap
    begins = np.zeros((b, n + 1), dtype=bool)
    begins[:, 1:] = differs[:, :n]
    begins[np.arange(b), itself] = True
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    ends = np.where(begins[:, 1:], places[1:], n)
    next_one = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]  # of another distance
    next_one = np.hstack([next_one, np.full((b, 1), n)])
    at = np.minimum(ranks - 1 + itself[:, None], n)
    d = np.take_along_axis(padded, at, axis=1)
    nearer = np.take_along_axis(first, at, axis=1) - itself[:, None]
    up_to = np.take_along_axis(next_one, at, axis=1)
    behind = d + RISE * (np.take_along_axis(padded, up_to, axis=1) - d)
    distances = np.sort(np.hstack([d, behind]), axis=1)
    counted = np.sort(np.hstack([nearer, up_to - itself[:, None]]) + 1.0, axis=1)
    return np.hstack([distances, counted])
