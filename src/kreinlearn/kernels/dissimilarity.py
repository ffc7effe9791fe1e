"""From a dissimilarity to a similarity: transformations of distances, fixed by a reference set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.kernels.base import Array, Kernel, resolve, symmetrised

SELF_DISSIMILARITY_RTOL = 1e-12  # of the largest dissimilarity
LOCAL_WIDTH_RTOL = 1e-7  # of the median distance: the least sigma(x)
LOCAL_ZERO_RTOL = 1e-6  # of the median: a rounded distance of an object to itself
ROWS_AT_A_TIME = 512  # whose distances are sorted at once
DISSIMILARITY_RANGE = (2.0**-480, 2.0**480)  # dissimilarities whose squares keep their digits
EXACT_RANKS = 16  # every rank up to this one is in a profile
RANKS_PER_DOUBLING = 4  # of the ranks above
RISE = 0.125  # the share of the gap behind a distance over which the rank rises


def dissimilarity(metric: str | Callable[..., Any] | Kernel, **params: Any) -> Kernel:
    """A dissimilarity d(x, z) for ``kernel=``, of which learners make a similarity.

    Learners choose the transformation (``similarity="auto"``) or take the one that is named:
    "squared" means k = -1/2 d^2, centred on a reference set. Estimators without the parameter
    ``similarity`` use that one.

    Parameters
    ----------
    metric : str, callable or Kernel
        The name of a metric, a function d(A, B) -> matrix, or ``pairwise(f)``.
    **params : dict
        Parameters of the metric or keyword arguments of the function.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from kreinlearn.kernels import dissimilarity, pairwise
    >>> d = dissimilarity(pairwise(lambda a, b: abs(len(a) - len(b))))
    >>> d.is_dissimilarity
    True
    >>> d(["a", "bcd"])
    array([[0., 2.],
           [2., 0.]])
    """
    from kreinlearn.kernels import scikit

    if isinstance(metric, str) and metric in scikit.sklearn_metric_names():
        return scikit.SklearnMetric(metric, params or None)
    kernel = resolve(metric, params)
    if kernel.is_dissimilarity:
        return kernel
    if "is_dissimilarity" in kernel.get_params(deep=False):
        return cast(Kernel, kernel.set_params(is_dissimilarity=True))
    raise ValueError(
        f"{metric!r} is a similarity; dissimilarity() takes a metric name, "
        "a callable d(A, B) or pairwise(f)"
    )


# Transformations


@dataclass(frozen=True)
class Transform:
    """k(x, z) from d(x, z) and from what is known of each object: a(x) and a(z), their ``offsets``.

    An offset is a number or a row of numbers. The rows given to ``offsets`` begin with the
    distances to the reference set, which has ``n_reference`` objects.
    """

    n_reference: int

    def offsets(self, D: Array) -> Array:  # (b, >= n_reference) -> a: (b,) or (b, p)
        raise NotImplementedError

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        raise NotImplementedError

    def diagonal(self, a: Array) -> Array:
        """k(x, x)."""
        return np.ones(len(a))


@dataclass(frozen=True)
class Centring(Transform):
    """k(x, z) = -1/2 (d^p(x, z) - a(x) - a(z) + c), where a(x) is the mean of d^p(x, r), p = 1
    or 2.
    """

    c: float
    power: int = 2

    @classmethod
    def on(cls, D_RR: Array, power: int = 2) -> Centring:
        require_squares(D_RR)
        on_all = cls(len(D_RR), 0.0, power)
        return replace(on_all, c=float(on_all.offsets(D_RR).mean()))

    def offsets(self, D: Array) -> Array:
        D_R = D[:, : self.n_reference]
        if self.power == 1:
            return np.asarray(D_R.mean(axis=1))
        return np.asarray(np.einsum("ij,ij->i", D_R, D_R) / self.n_reference)

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        K = np.square(D) if self.power == 2 else np.array(D)
        K = _apply(np.subtract, K, a_rows[:, None])
        K = _apply(np.subtract, K, a_columns)
        K += self.c
        K *= -0.5
        return K

    def diagonal(self, a: Array) -> Array:
        return a - 0.5 * self.c


@dataclass(frozen=True)
class OfDistanceAlone(Transform):
    """A similarity of d(x, z) / s without a(x). s is a multiple of the median distance."""

    s: float
    tail: ClassVar[str]

    @classmethod
    def on(cls, D_RR: Array, width: float = 1.0) -> Self:
        return cls(len(D_RR), width * median_distance(D_RR))

    def offsets(self, D: Array) -> Array:
        return np.zeros(len(D))

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        with np.errstate(over="ignore"):
            return _falling(D / self.s, self.tail)


class Exponential(OfDistanceAlone):
    """k(x, z) = exp(-d(x, z) / s)."""

    tail = "exp"


class SquaredExponential(OfDistanceAlone):
    """k(x, z) = exp(-(d(x, z) / s)^2)."""

    tail = "gaussian"


class Inverse(OfDistanceAlone):
    """k(x, z) = 1 / (1 + d(x, z) / s)."""

    tail = "inverse"


@dataclass(frozen=True)
class LocalScaling(Transform):
    """k(x, z) = exp(-u^2) with u = d(x, z) / (a(x) a(z))^1/2, or exp(-u) or 1 / (1 + u).

    a(x) is the distance to the ``k``-th neighbour among the reference objects. A reference object
    at a distance of at most ``zero`` is x itself and is not counted.
    """

    k: int
    zero: float
    least: float
    tail: str = "gaussian"  # or "exp", "inverse"

    @classmethod
    def on(cls, D_RR: Array, k: int, tail: str = "gaussian") -> LocalScaling:
        median = median_distance(D_RR)
        return cls(len(D_RR), k, _local_zero(D_RR, median), LOCAL_WIDTH_RTOL * median, tail)

    def offsets(self, D: Array) -> Array:
        n = self.n_reference
        last = min(self.k, n - 1)
        nearest = np.empty((len(D), last + 1))
        for here in gen_batches(len(D), ROWS_AT_A_TIME):
            nearest[here] = np.partition(D[here, :n], last, axis=1)[:, : last + 1]
        nearest.sort(axis=1)
        itself = nearest[:, 0] <= self.zero
        a = np.where(itself, nearest[:, last], nearest[:, min(self.k, n) - 1])
        return np.asarray(np.maximum(a, self.least))

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        with np.errstate(over="ignore"):  # exp(-inf) = 0
            K = D / a_rows[:, None]
            K *= D
            K = _apply(np.divide, K, a_columns)  # u^2
        if self.tail == "gaussian":
            return _falling(K, "exp")
        return _falling(np.sqrt(K, out=K), self.tail)


@dataclass(frozen=True)
class RankScaling(Transform):
    """k(x, z) = exp(-u / k) or 1 / (1 + u / k), with u = (rank_x(z) rank_z(x))^1/2.

    The offsets of an object are its profile. Objects at a distance of at most ``zero`` are copies
    of each other: their rank is 0 and their similarity is 1.
    """

    k: float
    zero: float
    tail: str = "exp"  # or "inverse"

    @classmethod
    def on(cls, D_RR: Array, k: float, tail: str = "exp") -> RankScaling:
        return cls(len(D_RR), k, _local_zero(D_RR, median_distance(D_RR)), tail)

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
        K /= self.k
        return _falling(K, self.tail)


def _falling(u: Array, tail: str) -> Array:
    """exp(-u), exp(-u^2) if the tail is "gaussian", or 1 / (1 + u) if it is "inverse", over u."""
    if tail == "inverse":
        u += 1.0
        return np.reciprocal(u, out=u)
    if tail == "gaussian":
        np.square(u, out=u)
    return np.asarray(np.exp(np.negative(u, out=u), out=u))


CENTRED = {"squared", "linear"}  # whose similarities to all reference objects add up to zero
TRANSFORMS: dict[str, Callable[[Array], Transform]] = {  # from the distances in a reference set
    "squared": Centring.on,
    "linear": partial(Centring.on, power=1),
    "exp": Exponential.on,
    "narrow_exp": partial(Exponential.on, width=0.3),
    "local1": partial(LocalScaling.on, k=1),
    "local3": partial(LocalScaling.on, k=3),
    "local7": partial(LocalScaling.on, k=7),
    "local_exp1": partial(LocalScaling.on, k=1, tail="exp"),
    "local_exp3": partial(LocalScaling.on, k=3, tail="exp"),
    "local_exp7": partial(LocalScaling.on, k=7, tail="exp"),
    "local_inverse1": partial(LocalScaling.on, k=1, tail="inverse"),
    "local_inverse3": partial(LocalScaling.on, k=3, tail="inverse"),
    "gauss": SquaredExponential.on,
    "rank1": partial(RankScaling.on, k=1.0),
    "rank3": partial(RankScaling.on, k=3.0),
    "rank10": partial(RankScaling.on, k=10.0),
    "rank_inverse3": partial(RankScaling.on, k=3.0, tail="inverse"),
    "inverse": Inverse.on,
}
AUTO_TRANSFORMS = tuple(name for name in TRANSFORMS if name != "inverse")  # that "auto" blends
OF_SEVERAL = (
    "squared",
    "linear",
    "exp",
    "narrow_exp",
    "gauss",
    "local3",
    "local_exp3",
    "rank3",
)  # of each of several kernels, which take time and differ more than these do
PLUS = " + "  # between transformations that are added, each with or without a weight


@dataclass(frozen=True)
class Blend(Transform):
    """A weighted mean of several similarities of one distance, each with the mean |k(x, x)| 1.

    The offsets of an object are those of all parts, side by side.
    """

    parts: tuple[Transform, ...]
    weights: tuple[float, ...]

    @classmethod
    def on(cls, D_RR: Array, shares: Mapping[str, float]) -> Blend:
        parts = tuple(TRANSFORMS[name](D_RR) for name in shares)
        sizes = (np.abs(part.diagonal(part.offsets(D_RR))).mean() or 1.0 for part in parts)
        of_each = zip(shares.values(), sizes, strict=True)
        return cls(len(D_RR), parts, tuple(share / float(size) for share, size in of_each))

    def offsets(self, D: Array) -> Array:
        return np.column_stack([part.offsets(D) for part in self.parts])

    def _of_parts(self, a: Array) -> list[Array]:
        """The offsets of each part, from those of all; profiles of ranks have many numbers."""
        wide = len(profile_ranks(self.n_reference)) * 4
        widths = [wide if isinstance(part, RankScaling) else 1 for part in self.parts]
        each = np.split(a, np.cumsum(widths)[:-1], axis=1)
        return [one if one.shape[1] > 1 else one[:, 0] for one in each]

    def similarity(self, D: Array, a_rows: Array, a_columns: Array) -> Array:
        K = np.zeros(D.shape)
        both = zip(self._of_parts(a_rows), self._of_parts(a_columns), strict=True)
        for part, weight, (a, b) in zip(self.parts, self.weights, both, strict=True):
            term = part.similarity(D, a, b)
            term *= weight
            K += term
        return K

    def diagonal(self, a: Array) -> Array:
        parts = zip(self.parts, self.weights, self._of_parts(a), strict=True)
        return np.asarray(sum(weight * part.diagonal(own) for part, weight, own in parts))


def make_transform(name: str, D_RR: Array) -> Transform:
    """The transformation of a name, from the distances in a reference set.

    Names that are joined by " + " are a mean of several similarities, as ``shares_of`` says.
    """
    return Blend.on(D_RR, shares_of(name)) if PLUS in name else TRANSFORMS[name](D_RR)


def shares_of(name: str) -> dict[str, float]:
    """The share of each transformation in a name such as "exp + rank3" or "0.7 exp + 0.3 rank3".

    Examples
    --------
    >>> shares_of("3 exp + rank3")
    {'exp': 0.75, 'rank3': 0.25}
    """
    weights = dict[str, float]()
    for part in name.split(PLUS):
        weight, _, transform = part.rpartition(" ")
        if transform not in TRANSFORMS or transform in weights:
            raise ValueError(f"similarity={name!r} is no sum of different transformations")
        weights[transform] = float(weight or 1)
    total = sum(weights.values())
    if not all(0 < weight < np.inf for weight in weights.values()):
        raise ValueError(f"similarity={name!r} has a weight that is not positive")
    return {transform: weight / total for transform, weight in weights.items()}


def blend_name(shares: Mapping[str, float]) -> str:
    """The name of a mean with these shares, to two digits; that of the only one."""
    if len(shares) == 1:
        return next(iter(shares))
    largest_first = sorted(shares.items(), key=lambda item: -item[1])
    return PLUS.join(f"{share:.2g} {name}" for name, share in largest_first)


def refit(
    raw: Array,
    columns_kept: Array,
    reference_kept: Array,
    at: Array,
    make: Callable[[Array], Transform],
) -> tuple[Array, Array]:
    """C and K_ZZ by a transformation that is made of other reference columns.

    ``at`` are the rows of all columns of ``raw``. ``columns_kept`` are the columns of the
    landmarks, and ``reference_kept`` those of the reference set. C are the similarities of all rows
    to the landmarks.
    """
    D_R = np.take(raw, reference_kept, axis=1)
    transform = make(D_R[at[reference_kept]])
    a, Z = transform.offsets(D_R), at[columns_kept]
    C = transform.similarity(np.take(raw, columns_kept, axis=1), a, a[Z])
    return C, symmetrised(C[Z])


def median_distance(D_RR: Array) -> float:
    """The median distance of two reference objects.

    If it is zero, the mean of the positive distances; if there are none, 1.
    """
    require_squares(D_RR)
    apart = np.concatenate([row[:i] for i, row in enumerate(D_RR)])  # each pair once
    middle = float(np.median(apart, overwrite_input=True)) if len(apart) else 0.0
    if middle > _zero(D_RR):
        return middle
    positive = apart[apart > _zero(D_RR)]
    return float(positive.mean()) if len(positive) else 1.0


def _zero(D_RR: Array) -> float:
    """Distances up to this are those of an object to itself."""
    return SELF_DISSIMILARITY_RTOL * float(np.max(D_RR, initial=0.0))


def _local_zero(D_RR: Array, median: float) -> float:
    """Distances up to this are those of an object to itself, computed with rounding errors."""
    return max(_zero(D_RR), LOCAL_ZERO_RTOL * median)


def _apply(function: np.ufunc, K: Array, a: Array) -> Array:
    """function(K, a), written over K unless that would lose digits of a."""
    return np.asarray(function(K, a, out=K if np.result_type(K, a) == K.dtype else None))


# Ranks of neighbours
#
# The rank of z as seen from x is 1 plus the number of reference objects other than x that are
# nearer to x than z is. All distances from x in increasing order would say it exactly, but a model
# would have to keep them for every landmark. A profile is a short extract of them: the distances at
# some ranks, close together among the nearest objects and growing geometrically further out. Ranks
# in between are interpolated.


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
    for here in gen_batches(b, ROWS_AT_A_TIME):
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


# Checks


def require_squares(D: Array) -> None:
    """Refuse dissimilarities so large or so small that their squares are out of floating range."""
    low, high = DISSIMILARITY_RANGE
    largest = float(np.max(D, initial=0.0))
    if largest > high or 0 < largest < low:
        raise ValueError(
            f"the largest dissimilarity is {largest:.3g}: its square is out of floating range; "
            "multiply all dissimilarities by a constant"
        )


def check_dissimilarities(D: Array, D_self: Array | None = None) -> None:
    """Refuse a negative entry, or a self-dissimilarity that is more than rounding."""
    if np.min(D, initial=0.0) < 0:
        raise ValueError(
            "Negative values in data passed to X. A dissimilarity is never negative; "
            'for similarities pass the kernel itself or kernel="precomputed".'
        )
    if float(np.max(D, initial=0.0)) > DISSIMILARITY_RANGE[1]:
        require_squares(D)
    if D_self is not None:
        worst = float(np.max(np.abs(D_self), initial=0.0))
        if worst > SELF_DISSIMILARITY_RTOL * float(np.max(D, initial=0.0)):
            raise ValueError(
                f"the diagonal of a dissimilarity must be zero, got a self-dissimilarity of "
                f"{worst:.3g}; subtract it, or pass a similarity instead"
            )
