"""What all estimators share: parameters, validation at the border, prediction from landmarks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import asdict, replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import (
    Interval,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources, budget_bytes, free_memory, require_memory
from kreinlearn.data.tiles import Source, length
from kreinlearn.data.validation import (
    Border,
    TargetLike,
    WeightLike,
    asymmetry_of,
    column_count,
    is_frame,
    looks_like_distances,
    precision,
    require_square,
)
from kreinlearn.distributed.entrance import is_dask, receive_on_workers, require_in_memory
from kreinlearn.estimators.refusals import refuse
from kreinlearn.kernels import Kernel, resolve
from kreinlearn.kernels.base import Array, Objects, symmetrised, symmetry_rtol
from kreinlearn.kernels.precomputed import PickedColumns, Precomputed
from kreinlearn.learn.precision import in_enough_precision
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.nystrom.landmarks import Landmarks, MapSpec
from kreinlearn.nystrom.schemes import SCHEMES, VECTORS_ONLY
from kreinlearn.pairs.evaluate import (
    LandmarkColumns,
    announce,
    project,
    rows_per_block,
    true_similarities,
)
from kreinlearn.pairs.pairs import Sample
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.pairs.store.opening import stored
from kreinlearn.persist import save
from kreinlearn.progress import Progress, fit_task, tasks_of
from kreinlearn.sums.parallel import worker_count

T = TypeVar("T")
N_LANDMARKS = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="right"),
    None,
]
LANDMARKS: dict[str, list[Any]] = {
    "n": [*N_LANDMARKS, StrOptions({"auto"}), "array-like", "sparse matrix"],
    "scheme": [StrOptions({"auto", *SCHEMES})],
    "core": [StrOptions({"ls", "truncated", "plain"}), None],
    "rank": [Interval(Integral, 1, None, closed="left"), None],
    "pool": [Interval(Integral, 1, None, closed="left")],
}
RESOURCES: dict[str, list[Any]] = {
    "memory_budget": [Interval(Real, 1, None, closed="left"), str, None],
    "store": [str, os.PathLike, None],
    "dtype": [StrOptions({"float32", "float64"}), None],
}


class KreinEstimator(CallbackSupportMixin, BaseEstimator):
    """Parameters common to all estimators, and the way from objects to values at landmarks."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, Kernel],
        "kernel_params": [dict, None],
        "landmarks": [
            *N_LANDMARKS, StrOptions({"auto", *SCHEMES}), Landmarks, "array-like", "sparse matrix",
        ],
        "resources": [Resources, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }  # fmt: skip
    # every attribute that a fit may leave; model files and a new fit read this list
    _fitted: ClassVar[tuple[str, ...]] = (
        "n_features_in_", "feature_names_in_", "kernel_", "landmarks_", "landmark_indices_",
        "n_landmarks_", "dtype_", "_column", "_columns",
    )  # fmt: skip

    _core: ClassVar[str] = "plain"  # unless ``Landmarks`` says otherwise
    n_features_in_: int
    feature_names_in_: Array

    # Parameters that stand for several

    def _validate_params(self) -> None:
        """Check all parameters, also those inside of ``Landmarks`` and ``Resources``."""
        super()._validate_params()
        self._landmarks  # noqa: B018
        budget_bytes(self._resources.memory_budget)

    @property
    def _resources(self) -> Resources:
        resources = self.resources or Resources()
        validate_parameter_constraints(RESOURCES, asdict(resources), "Resources")
        return resources

    @property
    def _landmarks(self) -> Landmarks:
        """The parameter ``landmarks`` as one value."""
        given = self.landmarks
        if not isinstance(given, Landmarks):
            return Landmarks(scheme=given) if isinstance(given, str) else Landmarks(given)
        validate_parameter_constraints(LANDMARKS, vars(given), "Landmarks")
        if not is_number_of_landmarks(given.n) and given.scheme != "auto":
            raise ValueError(
                f"Landmarks has {length(given.n)} landmarks and scheme={given.scheme!r} to choose "
                'them; pass scheme="auto", or a number of landmarks'
            )
        return given

    @property
    def _given_landmarks(self) -> Any:
        """Row numbers or objects that are to be the landmarks; None if they are chosen."""
        wanted = self._landmarks
        return None if is_number_of_landmarks(wanted.n) else wanted.n

    def _named_params(self) -> dict[str, Any] | None:
        """Parameters of the kernel, before any are searched for."""
        return self.kernel_params

    def _resolved_kernel(self) -> Kernel:
        return resolve(self.kernel, self._named_params())

    def _border(self, dtype: str | None) -> Border:
        types = [np.float64, np.float32] if dtype is None else [np.dtype(dtype)]
        return Border(self, types, dtype, budget_bytes(self._resources.memory_budget))

    # Fitting

    def _forget(self) -> None:
        """Back to unfitted, so that a fit that fails leaves nothing behind."""
        for name in self._fitted:
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    def _received(
        self, X: Objects, dtype: str | None, rng: np.random.Generator
    ) -> tuple[Rows, Kernel]:
        """X as rows, and the kernel fitted to them: the one entrance of data to a fit."""
        kernel, border = self._resolved_kernel(), self._border(dtype)
        if is_dask(X):
            rows = receive_on_workers(X, kernel, border, partial(refuse, self))
        else:
            rows = Rows(kernel.domain.validate(X, border, reset=True))
        if isinstance(kernel, Precomputed):
            rows, kernel = self._training_matrix(rows.X, kernel)
        jobs = 1 if self.n_jobs is None else worker_count(self.n_jobs)
        return rows, rows.fit_kernel(kernel, jobs, rng)

    def _training_matrix(self, K: Array, kernel: Precomputed) -> tuple[Rows, Kernel]:
        """A square, symmetric matrix, or the columns of landmarks that are given by row number."""
        if K.shape[0] != K.shape[1]:
            return Rows(K), self._kernel_of_columns(K, kernel)
        K = self._symmetric(K)
        if not kernel.of_dissimilarities and looks_like_distances(K):
            warn(
                "the precomputed similarity has a zero diagonal and no negative entry: if these "
                'are dissimilarities pass kernel="precomputed_dissimilarity"'
            )
        return Rows(K), kernel

    def _kernel_of_columns(self, K: Array, kernel: Precomputed) -> Precomputed:
        given = self._given_landmarks
        if not are_row_numbers(given) or len(given) != K.shape[1]:
            require_square(K, " To fit on landmark columns pass landmarks=<their row numbers>")
        refuse(self, "landmark columns")
        kernel = Precomputed(is_dissimilarity=kernel.of_dissimilarities)
        kernel.landmark_rows = checked_row_numbers(given, len(K))
        self._symmetric(K[kernel.landmark_rows])  # Z x Z is averaged where it is used
        return kernel

    def _symmetric(self, K: Array) -> Array:
        gap = asymmetry_of(K)
        if gap > symmetry_rtol(K.dtype) * max(float(K.max()), -float(K.min())):
            warn(
                f"the matrix is asymmetric: the largest |K - K'| is {gap:.3g}; "
                "it is averaged with its transpose"
            )
        return symmetrised(K) if gap else K

    def _map_spec(
        self, rows: Rows, kernel: Kernel, rank: int | None, default: int, **more: Any
    ) -> MapSpec:
        """The parameters as numbers for the rows at hand; "auto" is ``default`` landmarks."""
        n, wanted = len(rows), self._landmarks
        common = {"rank": rank, "core": wanted.core or self._core, "pool": wanted.pool, **more}
        given = self._given_landmarks
        if given is None:
            m = landmark_count(wanted.n, n, default)
            scheme = scheme_for(
                wanted.scheme, rows.are_dense_vectors and not kernel.domain.is_matrix
            )
            return MapSpec(m, scheme, **common)
        if are_row_numbers(given):
            numbers = checked_row_numbers(given, n)
            return MapSpec(len(numbers), given=numbers, **common)
        if kernel.domain.is_matrix:
            raise ValueError("with a precomputed matrix landmarks are row numbers or a scheme")
        Z = kernel.domain.validate(given, self._border(self._resources.dtype), reset=False)
        Z = np.asarray(Z) if isinstance(Z, Source) else Z  # a memory map
        return MapSpec(length(Z), given=Z, by_number=False, **common)

    @contextmanager
    def _fitting(
        self, X: Objects, y: TargetLike = None, sample_weight: WeightLike = None
    ) -> Iterator[None]:
        """Tell callbacks of a fit; one that fails leaves the estimator unfitted."""
        with fit_task(self, X, y, sample_weight):
            try:
                yield
            except BaseException:
                self._forget()
                raise

    @property
    def _is_single(self) -> bool:
        """Whether float32 is asked for, which a fit then has to find good enough."""
        return self._resources.dtype == "float32"

    def _coarsely(self, fit: Callable[[str], T]) -> T:
        """``fit("float32")``, or ``fit("float64")`` if that finds float32 too coarse."""
        return in_enough_precision(fit, stored=self._resources.store is not None)

    @contextmanager
    def _session(
        self, kernel: Kernel, rows: Rows, spec: MapSpec, dtype: str | None
    ) -> Iterator[Session]:
        """Threads, memory, store and progress of one fit; a store is closed at the end."""
        resources = self._resources
        store: Any = nullcontext()
        if resources.store is not None:
            refuse(self, "a store", kernel=kernel)
            store = stored(resources.store, kernel, rows.X, spec.outside)
        with store as opened:
            yield Session(
                worker_count(self.n_jobs),
                budget_bytes(resources.memory_budget),
                resources.memory_budget is not None,
                self._progress(),
                opened,
                single=dtype == "float32" and kernel.domain.in_single_precision(rows.X),
            )

    def _progress(self) -> Progress:
        return Progress(self.verbose, self.kernel, tasks_of(self))

    def _keep_landmarks(self, kernel: Kernel, rows: Rows, sample: Sample) -> None:
        """The attributes that every fitted estimator has."""
        kernel.end_fit()
        self.kernel_ = kernel
        outside = len(sample.landmarks) and sample.landmarks[0] < 0
        given = kernel.domain.is_matrix
        self.landmark_indices_ = None if outside else sample.landmarks
        self.landmarks_ = sample.landmarks if given else rows.take(sample.landmarks)
        self.n_landmarks_ = len(sample.landmarks)
        if given or kernel.domain.is_vectors or getattr(rows.X, "ndim", 1) == 2:
            self.dtype_ = precision(rows.X)

    def _keep_columns(self, columns: LandmarkColumns) -> None:
        """What predicts; it comes last, and makes the estimator fitted."""
        self._columns = replace(columns, stored=None)

    # Using

    def save(self, path: str | Path, *, external_kernel: bool = False) -> None:
        """Write the fitted estimator to a file, which ``kreinlearn.load`` reads.

        The file holds the landmarks, which are training data: see ``kreinlearn.save``.

        Parameters
        ----------
        path : str or Path
            The file to write.
        external_kernel : bool, default=False
            Leave the kernel out of the file, to be given to ``load`` again. A kernel made of a
            function of your own can be saved in no other way.
        """
        save(self, path, external_kernel=external_kernel)

    def _new_rows(self, X: Objects) -> tuple[Any, LandmarkColumns]:
        """Validated objects, and what evaluates their similarities to the landmarks."""
        name, columns = type(self).__name__, self._columns
        require_in_memory(
            X, f"{name} takes rows in memory here, got a dask collection; compute it first"
        )
        border = self._border(self._dtype)
        if self._has_landmark_columns(X):
            border = replace(border, estimator=self._fitted_to_landmark_columns())
            columns = of_landmark_columns(columns, self.n_landmarks_)
        return self.kernel_.domain.validate(X, border, reset=False), columns

    def _fitted_to_landmark_columns(self) -> Self:
        """The same model, as if no other columns had been seen in ``fit``."""
        model = copy(self)
        model.n_features_in_ = self.n_landmarks_
        raw = self._columns.raw
        if hasattr(self, "feature_names_in_") and isinstance(raw, PickedColumns):
            model.feature_names_in_ = self.feature_names_in_[raw.numbers]
        return model

    @property
    def _dtype(self) -> str | None:
        """The type that new numbers are converted to: that of the fit, if one was asked for."""
        given = self._resources.dtype
        return None if given is None else str(getattr(self, "dtype_", given))

    def _has_landmark_columns(self, X: Objects) -> bool:
        """Whether a matrix has one column per landmark instead of one per training object."""
        raw = self._columns.raw
        return (
            isinstance(raw, PickedColumns)
            and not raw.needs_all_columns
            and self._columns.landmarks is None
            and self.n_landmarks_ != self.n_features_in_
            and column_count(X) == self.n_landmarks_
        )

    def _projected(
        self, X: Objects, columns: LandmarkColumns, W: Array,
        scores: Callable[[Array, Array], Array] | None = None, width: int | None = None,
    ) -> Array:  # fmt: skip
        """k(X, Z) @ W for validated objects, in the precision of X.

        With ``scores``, ``width`` columns that are a function of kernel values and these products.
        """
        n, r = length(X), W.shape[1] if width is None else width
        out_type = precision(X)
        self._require_room(out_type.itemsize * n * r, f"a result of {n} x {r} numbers")
        kernel, workers = self.kernel_, worker_count(self.n_jobs)
        same_type = getattr(X, "dtype", None) == getattr(self.landmarks_, "dtype", object)
        progress, pairs = self._progress(), n * columns.n_evaluated(len(W))
        announce(progress, kernel, X, self.landmarks_, pairs, workers)
        return project(
            X, columns, W, np.empty((n, r), out_type), workers if kernel.threads else 1,
            buffered=kernel.writes_in_place and same_type, n_rows=rows_per_block(kernel),
            progress=progress, scores=scores,
        )  # fmt: skip

    def _require_room(self, n_bytes: int, what: str) -> None:
        """Raise MemoryError if a result exceeds the budget, or all free memory without one."""
        budget = self._resources.memory_budget
        limit = free_memory() if budget is None else budget_bytes(budget)
        require_memory(n_bytes, limit, what, "pass fewer rows at a time, or raise memory_budget")

    def _similarities(self, X: Objects, numbers: Array) -> Array:
        """The true similarities among some rows of X, evaluated anew."""
        if self.kernel_.domain.is_matrix:
            require_square(X)
        return true_similarities(self.kernel_, X, numbers, self._columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = self._resolved_kernel()
        except (TypeError, ValueError):  # fit will say so
            return tags
        kernel.domain.tags(tags.input_tags, kernel)
        return tags


def of_landmark_columns(columns: LandmarkColumns, m: int) -> LandmarkColumns:
    """The same for a matrix that has the columns of the landmarks alone."""
    numbers = np.arange(m)
    return replace(columns, raw=PickedColumns(numbers), objects=numbers)


# Landmarks


def is_number_of_landmarks(n: Any) -> bool:
    """Whether landmarks are chosen: a number, a fraction, "auto" or None (all objects)."""
    return n is None or isinstance(n, str | Real)


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


def landmark_count(n_landmarks: int | float | str | None, n: int, default: int) -> int:
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


def scheme_for(scheme: str, vectors: bool) -> str:
    if scheme in VECTORS_ONLY and not vectors:
        raise ValueError(
            f"landmarks={scheme!r} needs dense vectors; "
            'pass "greedy_kmeans++" for objects, matrices or sparse data'
        )
    default = "medoids+greedy" if vectors else "greedy_kmeans++"
    return default if scheme == "auto" else scheme


def require_rank(rank: int | None, spec: MapSpec, n: int, name: str = "rank") -> None:
    """Raise ValueError if the rank that is asked for exceeds the number of landmarks."""
    if rank is not None and rank > spec.n_landmarks:
        remedy = "give more landmarks" if spec.scheme is None else "use more landmarks"
        raise ValueError(
            f"{name}={rank} exceeds the number of landmarks, {spec.n_landmarks} "
            f"(n_samples={n}); lower {name} or {remedy}"
        )


def feature_attributes(feature_map: FeatureMap) -> dict[str, Any]:
    """Attributes that describe a feature map."""
    return {
        "signature_": feature_map.S.astype(np.int8),
        "eigenvalues_": feature_map.Lambda,
        "rank_": len(feature_map.S),
        "_map": feature_map,
    }
