"""The function ``inspect``: draw objects, evaluate their pairs, and measure."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from kreinlearn.data.opening import with_target
from kreinlearn.data.targets import are_classes
from kreinlearn.data.tiles import length, take
from kreinlearn.data.validation import as_generator, asymmetry_of, in_memory, looks_like_distances
from kreinlearn.inspection import measures
from kreinlearn.inspection.advice import advice
from kreinlearn.inspection.arguments import CHECKS, Array, KernelLike, KernelParams, Objects, Seed
from kreinlearn.inspection.prepared import Prepared, described, prepare
from kreinlearn.inspection.result import Inspection
from kreinlearn.inspection.similarity_matrix import require_room, similarity_from
from kreinlearn.kernels import Kernel, resolve
from kreinlearn.kernels.base import symmetry_rtol
from kreinlearn.kernels.callables import CallableKernel, PairwiseKernel
from kreinlearn.kernels.dissimilarity import SELF_DISSIMILARITY_RTOL, check_dissimilarities
from kreinlearn.progress import Progress
from kreinlearn.solvers.spectrum import indefiniteness_of, indefiniteness_of_matrix, signed_eigh

SAMPLE_SIZE = 1000
LANDMARKS_PER_RANK = 2  # with so many the default is within a third of the best approximation
PROBED = 40  # objects that are evaluated in both directions, and twice


@validate_params(
    {
        **CHECKS,
        "y": ["array-like", str, None],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def inspect(
    X: Objects, kernel: KernelLike = "precomputed", *, y: ArrayLike | str | None = None,
    kernel_params: KernelParams = None, n_samples: int = SAMPLE_SIZE, n_jobs: int | None = None,
    random_state: Seed = None, verbose: int | bool = 0,
) -> Inspection:  # fmt: skip
    """Find out what a similarity or dissimilarity is like, and what can be done with it.

    Parameters
    ----------
    X : array-like or sequence of objects
        The objects. For the kernels ``"precomputed"`` and ``"precomputed_dissimilarity"`` a square
        matrix of shape (n_samples, n_samples).
    kernel : str, callable or Kernel, default="precomputed"
        The similarity or dissimilarity: a registered name, a function of two blocks of objects,
        or a kernel object.
    y : array-like, str or None, default=None
        Labels or numbers, one per object, or the name of their column if X is a table. If they
        are given, the result says how well the nearest neighbours predict them, and how much of
        them lies in the negative part of the similarity.
    kernel_params : dict or None, default=None
        Parameters of the kernel.
    n_samples : int, default=1000
        The number of objects to look at; they are drawn uniformly at random if there are more.
        The indefiniteness grows with this number, so it is reported for a quarter, a half and
        all of the sample.
    n_jobs : int or None, default=None
        The number of processes for a Python function, and of threads for other kernels. Each pair
        of objects is evaluated once: a function is called about 500,000 times for 1000 objects.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator for the draw and for the shuffles of y.
    verbose : int or bool, default=0
        If it is 1, a progress bar is shown on a terminal, and the duration of a long computation
        is announced.

    Returns
    -------
    Inspection
        The findings; print them, or read the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import inspect
    >>> D = np.array([[0.0, 1, 1, 3], [1, 0, 1, 1], [1, 1, 0, 1], [3, 1, 1, 0]])
    >>> findings = inspect(D, "precomputed_dissimilarity")
    >>> findings.positive_definite, findings.signature
    (False, (2, 1, 1))
    """
    rng = as_generator(random_state)
    X, y = with_target(in_memory(X) if str(kernel).startswith("precomputed") else X, y)
    zeroed = _zero_diagonal(X, resolve(kernel, kernel_params))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the findings will say the same
        prepared = prepare(
            zeroed, kernel, rng, kernel_params=kernel_params, n_jobs=n_jobs, verbose=verbose
        )
    n = prepared.n
    if y is not None and length(y) != n:
        raise ValueError(f"y has {length(y)} labels for {n} objects; pass one label per object")
    rows = rng.permutation(n)[: min(n, n_samples)]
    require_room(len(rows))
    pairs = sampled_pairs(prepared, X, rows)
    result = _measured(pairs, n, None if y is None else _targets(y).of(rows), rng)
    return replace(result, advice=advice(result), kernel=described(kernel, kernel_params))


def _zero_diagonal(X: Objects, kernel: Kernel) -> Objects:
    """A given matrix of dissimilarities with zeros on its diagonal; all else as it is."""
    if not kernel.of_dissimilarities:
        return X
    M = np.asarray(X)
    return without_diagonal(M) if M.ndim == 2 and M.dtype.kind in "fiu" else X


class Targets(NamedTuple):
    """Numbers as they are, or classes as indicator columns.

    Whole numbers are classes here; neighbours predict them as ``numbers`` if they are many.
    """

    y: Array  # (n,) or (n, outputs)
    numbers: Array | None  # (n, outputs)

    def of(self, rows: Array) -> Targets:
        return Targets(self.y[rows], None if self.numbers is None else self.numbers[rows])


def _targets(y: ArrayLike) -> Targets:
    if type_of_target(y) in ("continuous", "continuous-multioutput"):
        values = np.asarray(y, dtype=np.float64)
        return Targets(values, values.reshape(len(values), -1))
    labels = column_or_1d(y)
    many = labels.dtype.kind in "iuf" and not are_classes(Counter(labels.tolist()))
    indicators = np.asarray(labels[:, None] == np.unique(labels), dtype=np.float64)
    return Targets(indicators, labels[:, None].astype(np.float64) if many else None)


def _measured(
    pairs: SampledPairs, n: int, targets: Targets | None, rng: np.random.Generator
) -> Inspection:
    M, s, distances = np.asarray(pairs.M, dtype=np.float64), len(pairs.M), pairs.are_distances
    K = similarity_from(M) if distances else M
    spectrum = signed_eigh(K)
    D = spectrum.D
    rank = measures.effective_rank(D)
    enough = LANDMARKS_PER_RANK * rank
    own = pairs.given != "kernel" and not distances  # a similarity from the user
    score, guess = _left_out(M if distances else measures.squared_distances(K), targets)
    return Inspection(
        **{name: value for name, value in pairs._asdict().items() if name != "M"},
        looks_like_dissimilarity=own and looks_like_distances(pairs.M), n_objects=n, n_sampled=s,
        indefiniteness=_at_sizes(pairs, D), eigenvalues=D, effective_rank=rank,
        signature=(int(np.sum(D > 0)), int(np.sum(D < 0)), s - len(D)),
        n_landmarks=min(max(enough, 1), n) if enough <= s // 2 or s == n else None,
        negative_squares=measures.negative_squares(K), duplicates=measures.duplicates(K),
        triangle_violations=measures.triangle_violations(M, rng) if distances else None,
        label_signal=None if targets is None else measures.label_signal(spectrum, targets.y),
        label_excess=None if targets is None else measures.label_excess(spectrum, targets.y, rng),
        advice="", neighbours_score=score, guess_score=guess,
    )  # fmt: skip


def _left_out(distances: Array, targets: Targets | None) -> tuple[float | None, float | None]:
    """How well the nearest others predict each object, and how well a guess does."""
    if targets is None or len(distances) < 2:
        return None, None
    if targets.numbers is not None:
        predicted = measures.by_neighbours(distances, targets.numbers)
        return measures.r_squared(predicted, targets.numbers), None
    right = measures.accuracy(measures.by_neighbours(distances, targets.y), targets.y)
    return right, float(targets.y.mean(axis=0).max())


def _at_sizes(pairs: SampledPairs, D: Array) -> dict[int, float]:
    """The indefiniteness of parts of the sample; dissimilarities are centred for each part."""
    *smaller, s = measures.nested_sizes(len(pairs.M))
    K = similarity_from if pairs.are_distances else np.asarray
    shares = {m: indefiniteness_of_matrix(K(pairs.M[:m, :m])) for m in smaller}
    return {**shares, s: indefiniteness_of(D)}


# Pairs


class SampledPairs(NamedTuple):
    """Kernel values among the sampled objects, which are in random order.

    The diagonal of a dissimilarity is zero here, whatever was given. All but the values M are
    attributes of an ``Inspection``, and described there.
    """

    M: Array  # (s, s), symmetric
    kind: str
    given: str
    asymmetry: float | None
    drift: float
    self_dissimilarity: float

    @property
    def are_distances(self) -> bool:
        return self.kind == "dissimilarity"


def sampled_pairs(prepared: Prepared, given: Objects, rows: Array) -> SampledPairs:
    """Kernel values among the objects with these row numbers.

    ``given`` is what the user passed: of a matrix the asymmetry is measured before it is averaged.
    """
    kernel = prepared.kernel
    if kernel.domain.is_matrix:
        M = np.asarray(prepared.part(rows, rows))
        return _from_matrix(np.asarray(given), M, kernel.of_dissimilarities)
    Z = kernel.select(prepared.X, rows)
    few = take(Z, np.arange(min(PROBED, len(rows))))
    progress = Progress(prepared.model.verbose, prepared.model.kernel)
    M = prepared.all_pairs(Z, rows, progress, "objects", more=2 * length(few) ** 2)
    both, again = (np.asarray(kernel.anew(few, few)) for _ in range(2))
    drift = _relative(_largest(both - again), both)
    asymmetry = None if drift else _relative(_largest(both - both.T), both)
    if not kernel.is_dissimilarity:
        return SampledPairs(M, "similarity", _given_as(kernel), asymmetry, drift, 0.0)
    of_self, M = _of_self(M), without_diagonal(M)
    check_dissimilarities(M)
    return SampledPairs(M, "dissimilarity", _given_as(kernel), asymmetry, drift, of_self)


def _from_matrix(raw: Array, M: Array, dissimilarity: bool) -> SampledPairs:
    square = raw.ndim == 2  # a condensed vector has one value per pair, and no diagonal
    asymmetry = _relative(asymmetry_of(raw), raw) if square else 0.0
    of_self = _of_self(raw) if square and dissimilarity else 0.0
    kind = "dissimilarity" if dissimilarity else "similarity"
    return SampledPairs(M, kind, "matrix", asymmetry, 0.0, of_self)


def _given_as(kernel: Kernel) -> str:
    if isinstance(kernel, PairwiseKernel):
        return "function of pairs"
    return "function of blocks" if isinstance(kernel, CallableKernel) else "kernel"


def without_diagonal(D: Array) -> Array:
    """A copy of a matrix of dissimilarities in which every d(x, x) is zero."""
    D = np.array(D)
    np.fill_diagonal(D, 0)
    return D


def _largest(M: Array) -> float:
    return float(np.abs(M).max(initial=0.0))


def _relative(gap: float, M: Array, rtol: float | None = None) -> float:
    """A gap relative to the largest value of M, and 0.0 if it is only rounding."""
    largest = _largest(M)
    rtol = symmetry_rtol(M.dtype) if rtol is None else rtol
    return gap / largest if gap > rtol * largest else 0.0


def _of_self(D: Array) -> float:
    return _relative(_largest(np.diagonal(D)), D, SELF_DISSIMILARITY_RTOL)
