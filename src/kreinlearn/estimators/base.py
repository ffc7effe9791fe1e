"""What all estimators share: parameters, validation at the border, prediction from landmarks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import asdict, replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import (
    Interval,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted

from kreinlearn._compat import CallbackSupportMixin
from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources, budget_bytes, free_memory, require_memory
from kreinlearn.data.tiles import Source, length
from kreinlearn.data.validation import (
    Border,
    TargetLike,
    WeightLike,
    as_generator,
    asymmetry_of,
    column_count,
    looks_like_distances,
    require_square,
)
from kreinlearn.distributed.entrance import receive, require_in_memory
from kreinlearn.estimators.refusals import refuse
from kreinlearn.kernels import Kernel, resolve
from kreinlearn.kernels.base import Array, Objects, symmetrised, symmetry_rtol
from kreinlearn.kernels.precomputed import PickedColumns, Precomputed
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.nystrom.landmarks import Landmarks, are_row_numbers, checked_row_numbers
from kreinlearn.nystrom.schemes import SCHEMES
from kreinlearn.pairs.evaluate import (
    LandmarkColumns,
    announce,
    project,
    rows_per_block,
    true_similarities,
)
from kreinlearn.pairs.pairs import Pairs, Sample, open_pairs
from kreinlearn.pairs.rows import Rows
from kreinlearn.progress import Progress, fit_task, tasks_of
from kreinlearn.sums.parallel import worker_count

N_LANDMARKS = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="right"),
    None,
]
LANDMARKS: dict[str, list[Any]] = {
    "n": [*N_LANDMARKS, StrOptions({"auto"}), "array-like", "sparse matrix"],
    "scheme": [StrOptions({"auto", *SCHEMES}), callable],
    "core": [StrOptions({"ls", "truncated", "plain"}), None],
    "rank": [Interval(Integral, 1, None, closed="left"), None],
    "pool": [Interval(Integral, 1, None, closed="left")],
}
RESOURCES: dict[str, list[Any]] = {
    "memory_budget": [Interval(Real, 1, None, closed="left"), str, None],
    "store": [str, os.PathLike, None],
}
DEFAULT = Resources()
SMALL = 2**20  # bytes of a result; asking the system for its free memory would take longer


class KreinEstimator(CallbackSupportMixin, BaseEstimator):
    """Parameters common to all estimators, and the way from objects to values at landmarks."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, Kernel, dict],
        "kernel_params": [dict, None],
        "landmarks": [
            *N_LANDMARKS, StrOptions({"auto", *SCHEMES}), callable, Landmarks, "array-like",
            "sparse matrix",
        ],
        "resources": [Resources, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }  # fmt: skip
    # every attribute that a fit may leave; model files and a new fit read this list
    _fitted: ClassVar[tuple[str, ...]] = (
        "n_features_in_", "feature_names_in_", "kernel_", "landmarks_", "landmark_indices_",
        "n_landmarks_", "_column", "_columns",
    )  # fmt: skip

    _core: ClassVar[str] = "plain"  # unless ``Landmarks`` says otherwise
    _tolerance: ClassVar[float | None] = None  # the error at which landmarks stop growing
    _transforms: ClassVar[bool] = False  # whether dissimilarities are transformed after the kernel
    n_features_in_: int
    feature_names_in_: Array

    # Parameters that stand for several

    def _validate_params(self) -> None:
        """Check all parameters, also those inside of ``Landmarks`` and ``Resources``."""
        super()._validate_params()
        if isinstance(self.landmarks, Landmarks):
            self._require_landmarks(self.landmarks)
        self._budget()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a kernel object, as in ``kernel__width=2``.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator by name, and of its parts after two underscores.

        Returns
        -------
        self : object
            The estimator.
        """
        inside = [name for name in params if name.startswith("kernel__")]
        kernel = params.get("kernel", self.kernel)
        if inside and isinstance(kernel, str):
            name = inside[0].removeprefix("kernel__")
            raise ValueError(
                f"{inside[0]} is a parameter of a kernel object, and kernel={kernel!r} is a name; "
                f"pass an object of kreinlearn.kernels as kernel, or kernel_params="
                f"{{{name!r}: ...}}"
            )
        result: Self = super().set_params(**params)
        return result

    @property
    def _resources(self) -> Resources:
        if self.resources is None:
            return DEFAULT
        resources: Resources = self.resources
        validate_parameter_constraints(RESOURCES, asdict(resources), "Resources")
        return resources

    def _budget(self) -> int:
        """The memory that a fit may take, in bytes."""
        return budget_bytes(self._resources.memory_budget)

    def _generator(self) -> np.random.Generator:
        """The source of all random numbers of a fit."""
        return as_generator(self.random_state)

    @property
    def _landmarks(self) -> Landmarks:
        """The parameter ``landmarks`` as one value."""
        return Landmarks.of(self.landmarks)

    def _require_landmarks(self, wanted: Landmarks) -> None:
        validate_parameter_constraints(LANDMARKS, vars(wanted), "Landmarks")
        if wanted.given is not None and wanted.scheme != "auto":
            raise ValueError(
                f"Landmarks has {length(wanted.n)} landmarks and scheme={wanted.scheme!r} to "
                'choose them; pass scheme="auto", or a number of landmarks'
            )

    def _resolved_kernel(self) -> Kernel:
        """The kernel that the parameters ask for, before any of them are searched for."""
        params = self.kernel_params
        if isinstance(params, list):
            params = next((each for each in params if isinstance(each, dict)), None)
        kernel = resolve(self.kernel, None if isinstance(params, str) else params)
        if self._transforms and isinstance(kernel, Precomputed) and kernel.of_dissimilarities:
            return Precomputed(is_dissimilarity=True)
        return kernel

    def _kernel_for(self, X: Objects) -> Kernel:
        """The kernel for X, not fitted: that of the parameters, unless they leave it to X."""
        return self._resolved_kernel()

    def _border(self) -> Border:
        return Border(self, self._resources.memory_budget)

    # Fitting

    def _forget(self) -> None:
        """Back to unfitted, so that a fit that fails leaves nothing behind."""
        for name in self._fitted:
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    def _require_fitted(self) -> None:
        """Raise scikit-learn's error before a fit; its own check collects all tags beforehand."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def _received(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, rng: np.random.Generator
    ) -> tuple[Rows, Kernel, Any, Any]:
        """X as rows, the kernel fitted to them, targets and weights: the entrance of data to a fit.

        Landmarks that are given as objects are there beside the rows of X.
        """
        self._forget()
        kernel, border = self._kernel_for(X), self._border()
        rows, y, w = receive(X, y, sample_weight, kernel, border, partial(refuse, self))
        if isinstance(kernel, Precomputed):
            rows, kernel = self._training_matrix(rows.X, kernel)
        kernel = rows.fit_kernel(kernel, self.n_jobs, rng)
        if not isinstance(self.landmarks, str | Real | None):
            rows = rows.with_outside(self._outside_landmarks(kernel))
        return rows, kernel, y, w

    def _outside_landmarks(self, kernel: Kernel) -> Objects | None:
        """Landmarks that are given as objects; None if they are rows of X."""
        given = self._landmarks.given
        if given is None or are_row_numbers(given):
            return None
        if kernel.domain.is_matrix:
            raise ValueError("with a precomputed matrix landmarks are row numbers or a scheme")
        Z = kernel.domain.validate(given, self._border(), reset=False)
        return np.asarray(Z) if isinstance(Z, Source) else Z  # a memory map

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
        given = self._landmarks.given
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

    def _pairs(
        self, kernel: Kernel, rows: Rows, rng: np.random.Generator, *, stored: bool = True
    ) -> AbstractContextManager[Pairs]:
        """The kernel values of one fit, with its threads, memory, store and progress."""
        resources = self._resources if stored else replace(self._resources, store=None)
        if resources.store is not None:
            refuse(self, "a store", kernel=kernel)
        return open_pairs(kernel, rows, resources, self.n_jobs, self._progress(), rng)

    def _progress(self) -> Progress:
        return Progress(self.verbose, self.kernel, tasks_of(self))

    def _keep_landmarks(self, pairs: Pairs, sample: Sample) -> None:
        """The attributes that every fitted estimator has."""
        kernel, rows = pairs.kernel, pairs.rows
        kernel.end_fit()
        self.kernel_ = kernel
        outside = len(sample.landmarks) and sample.landmarks[0] < 0
        given = pairs.is_matrix
        self.landmark_indices_ = None if outside else sample.landmarks
        self.landmarks_ = sample.landmarks if given else rows.take(sample.landmarks)
        self.n_landmarks_ = len(sample.landmarks)

    def _keep_columns(self, columns: LandmarkColumns) -> None:
        """What predicts; it comes last, and makes the estimator fitted."""
        self._columns = replace(columns, stored=None)

    # Using

    def save(
        self, path: str | Path, *, external_kernel: bool = False,
        encode: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        """Write the fitted estimator to a file, which ``kreinlearn.load`` reads.

        The file holds the landmarks, which are training data: see ``kreinlearn.save``.

        Parameters
        ----------
        path : str or Path
            The file to write.
        external_kernel : bool, default=False
            Leave the kernel out of the file, to be given to ``load`` again. A kernel made of a
            function of your own can be saved in no other way.
        encode : callable or None, default=None
            For objects of a class of your own: a function that turns an object into numbers, texts,
            arrays, and lists, tuples and dicts of these. ``load`` needs its reverse.
        """
        from kreinlearn.persist import save

        save(self, path, external_kernel=external_kernel, encode=encode)

    def _new_rows(self, X: Objects) -> tuple[Any, LandmarkColumns]:
        """Validated objects, and what evaluates their similarities to the landmarks."""
        name, columns = type(self).__name__, self._columns
        require_in_memory(
            X, f"{name} takes rows in memory here, got a dask collection; compute it first"
        )
        border = self._border()
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
        """k(X, Z) @ W for validated objects.

        With ``scores``, ``width`` columns that are a function of kernel values and these products.
        """
        n, r = length(X), W.shape[1] if width is None else width
        self._require_room(8 * n * r, f"a result of {n} x {r} numbers")
        kernel = self.kernel_
        n_rows = rows_per_block(kernel)
        workers = worker_count(self.n_jobs) if n > n_rows else 1
        progress, pairs = self._progress(), n * columns.n_evaluated(len(W))
        announce(progress, kernel, X, self.landmarks_, pairs, workers)
        return project(
            X, columns, W, np.empty((n, r)), workers if kernel.threads else 1,
            buffered=kernel.writes_in_place, n_rows=n_rows,
            progress=progress, scores=scores,
        )  # fmt: skip

    def _require_room(self, n_bytes: int, what: str) -> None:
        """Raise MemoryError if a result exceeds the budget, or all free memory without one."""
        given = self._resources.memory_budget
        if given is None and n_bytes <= SMALL:
            return
        limit = free_memory() if given is None else budget_bytes(given)
        require_memory(
            n_bytes, limit, what, "pass fewer rows at a time, or raise Resources(memory_budget=...)"
        )

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


def feature_attributes(feature_map: FeatureMap) -> dict[str, Any]:
    """Attributes that describe a feature map."""
    return {
        "signature_": feature_map.S.astype(np.int8),
        "eigenvalues_": feature_map.Lambda,
        "rank_": len(feature_map.S),
        "_map": feature_map,
    }
