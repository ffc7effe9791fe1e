"""Landmarks: how many there are, from which rows they are chosen, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import length
from kreinlearn.data.validation import is_frame
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.core import extra_rows, first_by_key
from kreinlearn.nystrom.schemes import (
    SCHEMES,
    VECTORS_ONLY,
    WHOLE_SAMPLE,
    chosen_by,
    first_landmarks,
)
from kreinlearn.pairs.pairs import Pairs, Sample

POOL_PER_LANDMARK = 10


@dataclass(frozen=True)
class Landmarks:
    """How landmarks are chosen, and what is made of them: for the parameter ``landmarks``.

    Parameters
    ----------
    n : int, float, None, "auto", array-like or list of objects, default="auto"
        How many landmarks: a number, a fraction of the objects, None for all objects (an exact
        model), or "auto" for the default of the estimator. Or the landmarks themselves, as row
        numbers or as objects.
    scheme : str or callable, default="auto"
        "uniform", "leverage" and "kmeans++" (the schemes of the paper), "greedy_kmeans++",
        "medoids" or "medoids+greedy" (dense vectors only). "auto" is "medoids+greedy" for dense
        vectors and "greedy_kmeans++" for everything else. A function of your own is called as
        ``f(rows, m, rng)``, with the objects to choose from, the number of landmarks and a NumPy
        ``Generator``, and returns the numbers of m rows. If it has a fourth parameter ``columns``,
        that is a function of row numbers, which returns what the kernel gives for all rows and
        these, one column each; no pair is evaluated twice. More landmarks contain those that fewer
        would be, with the same rows and ``random_state``: of "uniform" always, of "leverage" and
        "kmeans++" from 200 on, of "greedy_kmeans++" from 256 on, of medoids never.
    core : {"plain", "truncated", "ls"} or None, default=None
        How the kernel is approximated from the landmarks: by the inverse of their kernel matrix
        ("plain"), by the inverse of its largest part ("truncated"), or by least squares ("ls").
        None is the default of the estimator: "ls" for transformers, "plain" for learners.
    rank : int or None, default=None
        The largest rank that the features of a learner may have; None keeps all. Transformers
        have a parameter ``rank`` or ``n_components`` of their own.
    pool : int, default=4096
        The size of the uniform sample of rows among which landmarks are chosen, and by which a
        similarity is chosen, if there are more rows. Ten times the number of landmarks is used if
        that is larger; five times, if "medoids+greedy" alone uses the sample.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinRidgeClassifier, Landmarks
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinRidgeClassifier(landmarks=Landmarks(30, "uniform"), random_state=0)
    >>> model.fit(X, y).n_landmarks_
    30
    """

    n: int | float | str | Objects | None = "auto"
    scheme: str | Callable[..., Any] = "auto"
    core: str | None = None
    rank: int | None = None
    pool: int = 4096

    @classmethod
    def of(cls, landmarks: Any) -> Landmarks:
        """Whatever an estimator takes as ``landmarks``."""
        if isinstance(landmarks, Landmarks):
            return landmarks
        is_scheme = isinstance(landmarks, str) or callable(landmarks)
        return cls(scheme=landmarks) if is_scheme else cls(landmarks)

    @property
    def given(self) -> Any:
        """Row numbers or objects that are to be the landmarks; None if they are chosen."""
        return None if self.n is None or isinstance(self.n, str | Real) else self.n


@dataclass(frozen=True)
class MapSpec:
    """Landmarks, rank and core of a feature map, as numbers."""

    n_landmarks: int
    scheme: str | Callable[..., Any] | None = None  # a name, or a function; None: they are given
    given: Array | Objects | None = None  # row numbers, or objects from outside X
    by_number: bool = True  # whether the given landmarks are row numbers
    rank: int | None = None
    core: str = "plain"
    method: str = "gram"
    tol: float | None = None  # the error at which landmarks stop growing; None: they do not grow
    pool: int = 4096
    eligible: Array | None = None  # rows that may be landmarks; None: all
    reason: str = ""  # why there are so many landmarks, where that was decided
    wants_pool: bool = False  # rows beside the landmarks are looked at, whatever the scheme

    @property
    def sketch(self) -> int:
        """Columns of the paper's uniform sketch: as many as the rank that is asked for."""
        return min(self.n_landmarks, self.rank or 200)

    def pool_size(self, n: int) -> int:
        """How many of n rows are looked at when landmarks are chosen and the core is fitted."""
        return min(n, max(self.pool, POOL_PER_LANDMARK * self.n_landmarks))

    def salt(self, n: int, rng: np.random.Generator) -> int:
        """What the order of rows depends on; nothing is drawn if every object is a landmark."""
        return int(rng.integers(2**63)) if self.n_landmarks < n else 0

    def pool_rows(self, n: int, salt: int) -> Array:
        """A uniform sample of rows, as large as the scheme and the core need it.

        The rows of a smaller pool with the same salt are among those of a larger one.
        """
        total = n if self.eligible is None else len(self.eligible)
        size = self.pool_size(total)
        if size == total:
            return np.arange(n) if self.eligible is None else self.eligible
        if self.core != "ls" and self.tol is None and not self.wants_pool:
            if self.scheme is None:
                size = 0
            elif self.scheme == "uniform":
                size = self.n_landmarks
            elif self.scheme == "medoids+greedy":  # whose last step begins with half of them
                size = max(self.pool, POOL_PER_LANDMARK * -(-self.n_landmarks // 2))
        eligible = n if self.eligible is None else self.eligible
        return np.sort(first_by_key(eligible, size, salt))


# From the parameter to numbers


def map_spec(
    pairs: Pairs, wanted: Landmarks, *, default: int, core: str, rank: int | None,
    name: str = "rank", **more: Any,
) -> MapSpec:  # fmt: skip
    """The parameters as numbers for the rows at hand; "auto" is ``default`` landmarks.

    ``name`` is the parameter that the rank was given by.
    """
    n, given = pairs.n, wanted.given
    spec = MapSpec(n, rank=rank, core=core, pool=wanted.pool, **more)
    if given is None:
        scheme = scheme_for(wanted.scheme, pairs.rows.are_dense_vectors and not pairs.is_matrix)
        m = landmark_count(wanted.n, n, default)
        spec = replace(spec, n_landmarks=m, scheme=scheme)
        if callable(scheme) and m == n and isinstance(wanted.n, str):
            warn(
                f"all {n} objects are landmarks, so that the function that is to choose them is "
                "not called; say how many it is to choose, as in Landmarks(20, f)"
            )
    elif are_row_numbers(given):
        given = checked_row_numbers(given, n)
        spec = replace(spec, n_landmarks=len(given), given=given)
    else:
        Z = pairs.rows.outside
        spec = replace(spec, n_landmarks=length(Z), given=Z, by_number=False)
    if rank is not None and rank > spec.n_landmarks:
        remedy = "give more landmarks" if spec.scheme is None else "use more landmarks"
        raise ValueError(
            f"{name}={rank} exceeds the number of landmarks, {spec.n_landmarks} "
            f"(n_samples={n}); lower {name} or {remedy}"
        )
    return spec


def are_row_numbers(landmarks: Any) -> bool:
    """Integers in one dimension; anything else is a sequence of objects."""
    if landmarks is None or isinstance(landmarks, str) or is_frame(landmarks):
        return False
    if isinstance(landmarks, np.ndarray):
        return landmarks.ndim == 1 and landmarks.dtype.kind in "iu"
    return all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in landmarks)


def checked_row_numbers(landmarks: Sequence[int], n: int) -> Array:
    numbers = np.asarray(landmarks, dtype=np.intp)
    repeats = len(numbers) - len(np.unique(numbers))
    if not len(numbers) or numbers.min() < 0 or numbers.max() >= n or repeats:
        given = f"{numbers.min()}..{numbers.max()}" if len(numbers) else "none"
        raise ValueError(
            f"landmarks must be distinct row numbers in 0..{n - 1}, got {given} with "
            f"{repeats} repeats"
        )
    return numbers


def landmark_count(n_landmarks: Any, n: int, default: int) -> int:
    """How many landmarks a number, a fraction, "auto" or None (all objects) comes to."""
    if n_landmarks is None:
        return n
    if isinstance(n_landmarks, str):
        return min(n, default)
    if isinstance(n_landmarks, float | np.floating):
        return max(1, round(float(n_landmarks) * n))
    if n_landmarks > n:
        warn(f"{n_landmarks} landmarks exceed n_samples={n}; all {n} objects are used")
    return min(n, int(n_landmarks))


def scheme_for(scheme: str | Callable[..., Any], vectors: bool) -> str | Callable[..., Any]:
    """The scheme that is meant, or an error if it does not suit the objects."""
    if scheme in VECTORS_ONLY and not vectors:
        raise ValueError(
            f"landmarks={scheme!r} needs dense vectors; "
            'pass "greedy_kmeans++" for objects, matrices or sparse data'
        )
    default = "medoids+greedy" if vectors else "greedy_kmeans++"
    return default if scheme == "auto" else scheme


# Choosing


def open_sample(pairs: Pairs, spec: MapSpec, rng: np.random.Generator) -> Sample:
    """The rows among which landmarks are chosen, with given landmarks as columns."""
    n = pairs.n
    _require_room(pairs, n, spec)
    salt = spec.salt(n, rng)
    pool = spec.pool_rows(n, salt)
    _announce(pairs, spec)
    return replace(_opened(pairs, spec, pool), salt=salt, least=spec.pool)


def _opened(pairs: Pairs, spec: MapSpec, pool: Array) -> Sample:
    n = pairs.n
    if spec.scheme is None:
        numbers = np.arange(-spec.n_landmarks, 0)
        if spec.by_number:
            numbers = np.asarray(spec.given)
        sample = pairs.grown(pairs.sample(np.union1d(numbers, pool), pool), numbers)
        return pairs.with_reference(sample)
    if spec.scheme not in WHOLE_SAMPLE or len(pool) == n:
        return pairs.sample(pool)
    _require_sketch(pairs, n, spec)
    if pairs.in_place or not pairs.rows.here:  # evaluated again; values of objects here are held
        return replace(pairs.sample(pool), streams=True)
    return pairs.sample(np.arange(n), pool)


def select_landmarks(
    pairs: Pairs, sample: Sample, spec: MapSpec, rng: np.random.Generator
) -> Sample:
    """Grow a sample to the landmarks that are asked for.

    They are drawn from a source of their own, so that later draws do not depend on their number.
    """
    if spec.n_landmarks < pairs.n:
        rng = np.random.default_rng(rng.integers(2**63, size=2))
    if spec.n_landmarks == len(sample.pool) == len(sample.rows):  # every object is a landmark
        rest = np.setdiff1d(sample.rows, sample.landmarks)
        return pairs.with_reference(pairs.grown(sample, rest))
    if spec.scheme is None:
        return sample
    scheme = SCHEMES[spec.scheme] if isinstance(spec.scheme, str) else chosen_by(spec.scheme)
    return scheme(pairs, sample, spec.n_landmarks, rng, spec.sketch)


def _announce(pairs: Pairs, spec: MapSpec) -> None:
    """Say what the fit will cost, before it evaluates anything."""
    pairs.announce(pairs_of_fit(pairs, spec), "" if spec.tol is None else "at least ")


def pairs_of_fit(pairs: Pairs, spec: MapSpec) -> int:
    """How many pairs a fit evaluates: all rows with the landmarks, and those of the core."""
    n, m, given = pairs.n, spec.n_landmarks, spec.scheme is None
    growth = [m] if m >= n else columns_at_a_time(spec)
    outside = m * (given and not spec.by_number)
    count = pairs_of_growth(pairs, n + outside, growth)
    if spec.core == "ls" and m < n:
        count += pairs.among(extra_rows(n, m))
    greedy = isinstance(spec.scheme, str) and "greedy" in spec.scheme
    if greedy and m < n and not pairs.kernel.is_dissimilarity:
        count += pairs.kernel.diagonal_cost * spec.pool_size(n)  # k(x, x)
    return count


def pairs_of_growth(pairs: Pairs, n: int, growth: Sequence[int]) -> int:
    """Pairs of n rows with columns that come in steps: pairs of two columns are mirrored."""
    total = before = 0
    for k in growth:
        total += pairs.among(k) + k * max(n - before - k, 0)
        before += k
    return total


def columns_at_a_time(spec: MapSpec) -> list[int]:
    """How many columns a scheme evaluates in each of its steps."""
    scheme, m = spec.scheme, spec.n_landmarks
    if scheme in WHOLE_SAMPLE:
        return [spec.sketch, m]
    if not isinstance(scheme, str) or "greedy" not in scheme:
        return [m]
    growth = [-(-m // 2) if scheme.startswith("medoids") else first_landmarks(m)]
    while (have := sum(growth)) < m:
        growth.append(min(have, m - have))
    return growth


def room_for(n: int, spec: MapSpec) -> int:
    """Bytes of a sample: its values, a copy of them while it grows, its columns."""
    return 3 * 8 * min(n, spec.pool_size(n) + spec.n_landmarks) * spec.n_landmarks


def _require_room(pairs: Pairs, n: int, spec: MapSpec) -> None:
    pairs.require_memory(
        room_for(n, spec), f"{spec.n_landmarks} landmarks and the rows to choose them from",
        "use fewer landmarks or raise Resources(memory_budget=...); all other rows are streamed",
    )  # fmt: skip


def _require_sketch(pairs: Pairs, n: int, spec: MapSpec) -> None:
    """Raise MemoryError if what the paper's schemes hold of all rows would not fit."""
    per_row = 3 * 8 * spec.sketch
    if pairs.in_place or not pairs.rows.here:
        per_row = 16  # a score and a row number; or features, norms, distances and their sums
        if spec.scheme == "kmeans++":
            per_row += 4 * spec.sketch + 4 + 8
    pairs.require_memory(
        per_row * n, f'landmarks="{spec.scheme}", which looks at all {n} rows,',
        'raise Resources(memory_budget=...) or pass landmarks="auto", which looks at a sample',
    )  # fmt: skip
