"""Kernels made of one other: a similarity from a dissimilarity, and a normalised similarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.tiles import first_not_finite, length, take
from kreinlearn.kernels.base import Array, Columns, Kernel, Objects, delivered, resolve, symmetrised
from kreinlearn.kernels.combine import Composite, common_domain, require_similarities
from kreinlearn.kernels.dissimilarity import (
    TRANSFORMS,
    LocalScaling,
    OfDistanceAlone,
    RankScaling,
    Transform,
    check_dissimilarities,
    dissimilarity,
)
from kreinlearn.kernels.vector_columns import number, positive, sample

SAMPLE = 1000  # objects whose sizes are compared
FLOOR = 0.1  # the least size, as a share of the median size


# A dissimilarity as a similarity


class SimilarityOf(Composite):
    """A similarity k made of a dissimilarity d, by a transformation that ``fit`` fixes.

    ``fit`` draws reference objects r. From the distances between them it takes s, their median, and
    c, the mean of d^p with p = 2 or 1. From the distances of x to them it takes a(x): the mean of
    d^p(x, r), or the j-th smallest distance. The transformations are:

    - "squared" and "linear": -1/2 (d^p(x, z) - a(x) - a(z) + c), with p = 2 and p = 1;
    - "exp", "narrow_exp": exp(-d(x, z) / s) and exp(-d(x, z) / 0.3 s);
    - "gauss": exp(-(d(x, z) / s)^2);
    - "inverse": 1 / (1 + d(x, z) / s);
    - "local1", "local3", "local7": exp(-u^2), where u^2 = d^2(x, z) / (a(x) a(z)) and j = 1, 3, 7;
    - "local_exp1", "local_exp3", "local_exp7": exp(-u);
    - "local_inverse1", "local_inverse3": 1 / (1 + u);
    - "rank1", "rank3", "rank10": exp(-v / j), where v^2 = rank(x, z) rank(z, x) and j = 1, 3, 10;
    - "rank_inverse3": 1 / (1 + v / 3).

    rank(x, z) is 1 plus the number of reference objects other than x that are nearer to x than z
    is. It is exact up to 16 if z is a reference object, and interpolated beyond. Copies, whose
    distance is zero, have the similarity 1.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The dissimilarity: a kernel, a name, or a function d(A, B).
    transform : str, default="exp"
        The name of the transformation.
    n_reference : int, default=200
        The number of reference objects. A transformation with a(x) evaluates as many distances more
        for every object.
    width : float, default=1.0
        A positive factor of s, of a(x) in the local transformations, and of j in those by ranks.
        "squared" and "linear" have no width.

    Attributes
    ----------
    reference_ : list or array
        The reference objects.
    transform_ : Transform
        The transformation as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[0.0], [1.0], [4.0]]
    >>> SimilarityOf("cityblock", "inverse").fit(X, np.random.default_rng(0))(X).round(3)
    array([[1.   , 0.75 , 0.429],
           [0.75 , 1.   , 0.5  ],
           [0.429, 0.5  , 1.   ]])
    """

    def __init__(
        self, kernel: object, transform: str = "exp", n_reference: int = 200, width: float = 1.0
    ) -> None:
        self.kernel = kernel
        self.transform = transform
        self.n_reference = n_reference
        self.width = width

    def _resolved(self, spec: object) -> Kernel:
        return _dissimilarity(spec)

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        return False

    def sound(self) -> Self:
        if not isinstance(self.transform, str) or self.transform not in TRANSFORMS:
            hint = ""
            if self.transform == "auto":
                hint = '; learners choose one: pass them kernel=d itself and similarity="auto"'
            raise ValueError(
                f"transform={self.transform!r} is not known; choose from {sorted(TRANSFORMS)}{hint}"
            )
        what = "pass a number of objects, 1 or more"
        number(self.n_reference, "n_reference", what, least=1, kind=Integral)
        width = positive(self.width, "width")
        if self.transform in ("squared", "linear") and width != 1:
            raise ValueError(
                f"width={self.width!r} has no meaning with transform={self.transform!r}, which "
                'has no scale; leave it at 1, or choose another transform, "exp" say'
            )
        return super().sound()

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        own, draw = rng.spawn(2)
        super().fit(X, own)
        chosen = sample(length(X), self.n_reference, draw)
        self.reference_ = take(X, chosen)
        D = self.parts_[0].symmetric(self.reference_)
        _require_finite(D, f"objects {chosen[0]}..{chosen[-1]}")
        check_dissimilarities(D, np.diagonal(D))
        self.transform_ = _widened(TRANSFORMS[self.transform](D), self.width)
        self.use_reference()
        return self

    def use_reference(self) -> None:
        """Prepare the distances to the reference objects, if the transformation needs them."""
        self.to_reference_: Columns | None = None
        if not isinstance(self.transform_, OfDistanceAlone):
            self.to_reference_ = self.parts_[0].columns(self.reference_)

    def offsets(self, A: Objects) -> Array:
        """a(x) of every object."""
        check_is_fitted(self)
        if self.to_reference_ is None:
            return self.transform_.offsets(np.empty((length(A), 0)))
        a = self.transform_.offsets(_distances(self.to_reference_, A))
        return np.asarray(a * self.width) if isinstance(self.transform_, LocalScaling) else a

    def columns(self, Z: Objects) -> Columns:
        return partial(self._similarities, self.parts[0].columns(Z), self.offsets(Z))

    def _similarities(
        self, raw: Columns, a_columns: Array, A: Objects, out: Array | None = None
    ) -> Array:
        D, a = _distances(raw, A), self.offsets(A)
        return delivered(self.transform_.similarity(D, a, a_columns), out)

    def diagonal(self, A: Objects) -> Array:
        a = self.offsets(A)
        return self.transform_.diagonal(a)

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        a, D = self.offsets(Z), self.parts[0].symmetric(Z)
        check_dissimilarities(D, np.diagonal(D))
        return symmetrised(self.transform_.similarity(D, a, a))


def _widened(transform: Transform, width: float) -> Transform:
    """The transformation with its s, or its number of ranks, multiplied by ``width``."""
    if isinstance(transform, OfDistanceAlone):
        return replace(transform, s=width * transform.s)
    if isinstance(transform, RankScaling):
        return replace(transform, k=width * transform.k)
    return transform


def _dissimilarity(spec: Any) -> Kernel:
    common_domain([resolve(spec)])  # no given matrix
    return dissimilarity(spec)


def _distances(columns: Columns, A: Objects) -> Array:
    """d(A, Z), checked."""
    D = columns(A)
    _require_finite(D, "the block")
    check_dissimilarities(D)
    return D


def _require_finite(D: Array, where: str) -> None:
    """Refuse infinite distances, which could become similarities of zero unnoticed."""
    bad = first_not_finite(D)
    if bad is not None:
        i, j, kind = bad
        raise ValueError(
            f"the dissimilarity is {kind} for row {i} and column {j} of {where}; "
            "scale the data or correct the dissimilarity"
        )


def similarity_of(
    kernel: object, transform: str = "exp", n_reference: int = 200, width: float = 1.0
) -> SimilarityOf:
    """A similarity made of a dissimilarity, for sums, products and ``kernel=``.

    Learners also accept a dissimilarity itself, and choose the transformation: see their parameter
    ``similarity``.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The dissimilarity: a kernel, a name, or a function d(A, B).
    transform : str, default="exp"
        The name of the transformation: see ``SimilarityOf``.
    n_reference : int, default=200
        The number of reference objects, from which the transformation takes its scale.
    width : float, default=1.0
        A positive factor of that scale.

    Returns
    -------
    SimilarityOf

    Examples
    --------
    >>> from kreinlearn.kernels import similarity_of
    >>> similarity_of("levenshtein", "inverse") + similarity_of("jaro")
    LinearCombination(kernels=[SimilarityOf(kernel=Levenshtein(),
                                            transform='inverse'),
                               SimilarityOf(kernel=Jaro())],
                      weights=[1.0, 1.0])
    """
    return SimilarityOf(_dissimilarity(kernel), transform, n_reference, width).sound()


# A similarity divided by sizes


class Normalized(Composite):
    """k(x, z) / sqrt(s(x) s(z)) with s(x) = max(|k(x, x)|, c), for k(x, x) of any sign.

    c is ``floor`` times the median of those |k(x, x)| that are not zero, of up to 1000 objects of
    the fit; if all are zero, c is 1. So k(x, x) becomes its sign, or k(x, x) / c where it is
    smaller than c. An object with a small k(x, x) is therefore not blown up.

    Parameters
    ----------
    kernel : Kernel or str
        A similarity, or its name.
    floor : float, default=0.1
        A positive number. With a small one, objects whose k(x, x) is near zero may outweigh all
        others.

    Attributes
    ----------
    least_ : float
        The number c.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import pairwise
    >>> k = Normalized(pairwise(lambda a, b: a * b - 2.0)).fit([1, 2, 3], np.random.default_rng(0))
    >>> k([1, 2, 3]).round(3)
    array([[-1.   ,  0.   ,  0.378],
           [ 0.   ,  1.   ,  1.069],
           [ 0.378,  1.069,  1.   ]])
    """

    def __init__(self, kernel: object, floor: float = FLOOR) -> None:
        self.kernel = kernel
        self.floor = floor

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        require_similarities(parts, "d(x, x) = 0 cannot serve as a size")
        return False

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        floor = positive(self.floor, "floor")
        own, draw = rng.spawn(2)
        super().fit(X, own)
        chosen = sample(length(X), SAMPLE, draw)
        sizes = np.abs(self.parts_[0].diagonal(take(X, chosen)))
        if not np.isfinite(sizes).all():
            bad = int(np.argmin(np.isfinite(sizes)))
            raise ValueError(
                f"the similarity of object {chosen[bad]} to itself is {sizes[bad]}; leave the "
                "object out or correct the kernel"
            )
        sizes = sizes[sizes > 0]
        self.least_ = floor * float(np.median(sizes)) if len(sizes) else 1.0
        return self

    def sizes(self, own: Array) -> Array:
        """s(x) from k(x, x)."""
        check_is_fitted(self)
        return np.asarray(np.maximum(np.abs(own), self.least_))

    def columns(self, Z: Objects) -> Columns:
        part = self.parts[0]
        return partial(self._divided, part.columns(Z), self.sizes(part.diagonal(Z)))

    def _divided(
        self, columns: Columns, sizes: Array, A: Objects, out: Array | None = None
    ) -> Array:
        own = self.sizes(self.parts[0].diagonal(A))
        return delivered(_over_roots(columns(A, out), own, sizes), out)

    def diagonal(self, A: Objects) -> Array:
        own = self.parts[0].diagonal(A)
        return np.asarray(own / self.sizes(own))

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        K = self.parts[0].symmetric(Z)
        s = self.sizes(np.diagonal(K))
        N = _over_roots(K, s, s)
        np.fill_diagonal(N, np.diagonal(K) / s)
        return N


def _over_roots(K: Array, rows: Array, columns: Array) -> Array:
    """K_ij / sqrt(rows_i columns_j), with the same bits if rows and columns are exchanged."""
    R = np.multiply.outer(np.sqrt(rows), np.sqrt(columns))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.divide(K, R, out=R))


def normalized(kernel: object, floor: float = FLOOR) -> Normalized:
    """A similarity divided by the sizes of its two objects: see ``Normalized``.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The similarity: a kernel, a name, or a function k(A, B).
    floor : float, default=0.1
        The least size of an object, as a share of the median size.

    Returns
    -------
    Normalized

    Examples
    --------
    >>> from kreinlearn.kernels import normalized
    >>> normalized("smith_waterman")
    Normalized(kernel=SmithWaterman())
    """
    return Normalized(resolve(kernel), floor).sound()
