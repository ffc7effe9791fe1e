"""The one fit skeleton: parameters and validation common to all estimators."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import num_obs_y, squareform
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kreinlearn.approximation import Fitted, fit_map, fit_map_to_tolerance
from kreinlearn.blocks import budget_bytes, length, objects_of, take
from kreinlearn.kernels import Kernel, resolve
from kreinlearn.kernels._base import SYMMETRY_RTOL, symmetrised
from kreinlearn.kernels.callables import CallableKernel, probe
from kreinlearn.kernels.dissimilarity import check_dissimilarities
from kreinlearn.kernels.precomputed import (
    PickedColumns,
    Precomputed,
    PrecomputedDissimilarity,
)
from kreinlearn.landmarks import SELECTORS, VECTORS_ONLY
from kreinlearn.nystrom import FeatureMap
from kreinlearn.passes import Plan, transform_blocks
from kreinlearn.progress import shown
from kreinlearn.reduce import serial_blas, worker_count

SYMMETRY_TILE = 1024
DEFAULT_TOL = 0.05  # of rank="auto"


class KreinEstimator(BaseEstimator):
    """Common parameters, validation at the border, and the way from objects to a feature map."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, Kernel],
        "kernel_params": [dict, None],
        "n_landmarks": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
            None,
        ],
        "landmarks": [StrOptions({"auto", *SELECTORS}), "array-like", HasMethods("__len__")],
        "core": [StrOptions({"ls", "truncated", "plain"})],
        "symmetrize": [StrOptions({"average", "raise"})],
        "precomputed_columns": [StrOptions({"all", "landmarks"})],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "memory_budget": [Interval(Real, 1, None, closed="left"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    # Validation

    def _resolved_kernel(self) -> Kernel:
        kernel = resolve(self.kernel, self.kernel_params)
        if isinstance(kernel, PrecomputedDissimilarity) and self.precomputed_columns != "all":
            kernel = Precomputed(is_dissimilarity=True)
        return kernel

    def _validated(self, X: Any, kernel: Kernel, *, reset: bool) -> Any:
        """X as the kernel takes it: an array or CSR matrix, or a list of objects."""
        if kernel.takes == "precomputed":
            return self._validated_matrix(X, kernel, reset=reset)
        if kernel.takes == "vectors" or (kernel.takes == "any" and _is_table(X)):
            return self._validated_table(X, kernel, reset=reset)
        if sp.issparse(X) or np.ndim(X) == 0:
            raise TypeError(f"X must be a sequence of objects, got {type(X).__name__}")
        objects = objects_of(X)
        if not objects:
            raise ValueError(
                "Found array with 0 sample(s) while a minimum of 1 is required: X is empty"
            )
        return objects

    def _validated_table(self, X: Any, kernel: Kernel, *, reset: bool) -> Any:
        if getattr(getattr(X, "dtype", None), "kind", "") in "mM":
            raise TypeError(f"X must hold numbers, got dtype {X.dtype}; convert it to float first")
        kinds = [np.float64] if self.dtype == "float64" else [np.float64, np.float32]
        if self.dtype == "float32":
            kinds = [np.float32]
        return validate_data(
            self, X, accept_sparse="csr" if kernel.sparse else False, dtype=kinds, reset=reset
        )

    def _validated_matrix(self, X: Any, kernel: Kernel, *, reset: bool) -> Any:
        if reset and np.ndim(X) == 1 and len(X):
            X = squareform(np.asarray(X, dtype=np.float64), checks=bool(num_obs_y(X)))
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=reset)
        if not np.isfinite(X.sum()) and not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
            what = "NaN" if np.isnan(X[i, j]) else "infinity"
            raise ValueError(f"Input X contains {what} at row {i}, column {j}")
        if isinstance(kernel, PrecomputedDissimilarity) or kernel.is_dissimilarity:
            square = reset and X.shape[0] == X.shape[1]
            check_dissimilarities(X, np.diagonal(X) if square else None)
        return X

    def _validated_square(self, X: Any, kernel: Kernel) -> Any:
        """A precomputed training matrix: square, symmetric, not a dissimilarity in disguise."""
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        X = self._symmetric(X)
        if type(kernel) is Precomputed and not kernel.is_dissimilarity and _looks_like_distances(X):
            warnings.warn(
                "the precomputed similarity has a zero diagonal and no negative entry: if these "
                'are dissimilarities pass kernel="precomputed_dissimilarity"',
                UserWarning,
                stacklevel=4,
            )
        return X

    def _symmetric(self, X: Any) -> Any:
        gap = max(
            float(np.abs(X[i : i + SYMMETRY_TILE] - X[:, i : i + SYMMETRY_TILE].T).max())
            for i in range(0, len(X), SYMMETRY_TILE)
        )
        if gap > SYMMETRY_RTOL * max(float(X.max()), -float(X.min())):
            self._asymmetric(f"the matrix is asymmetric (largest |K - K'| = {gap:.3g})")
        return symmetrised(X) if gap else X

    def _asymmetric(self, what: str) -> None:
        if self.symmetrize == "raise":
            raise ValueError(f'{what}; average it, or pass symmetrize="average"')
        warnings.warn(f"{what}; it is averaged with its transpose", UserWarning, stacklevel=5)

    # Fitting

    def _plan(self, X: Any, kernel: Kernel, rank: int | None) -> Plan:
        n = length(X)
        landmarks = self._landmark_choice(X, kernel)
        m = self._landmark_count(n, rank) if isinstance(landmarks, str) else length(landmarks)
        if rank is not None and rank > m:
            raise ValueError(
                f"rank={rank} exceeds n_landmarks={m}; lower rank or raise n_landmarks"
            )
        return Plan(
            n_landmarks=m,
            rank=rank,
            core=self.core,
            method=getattr(self, "method", "gram"),
            landmarks=landmarks,
            workers=worker_count(self.n_jobs),
            budget=budget_bytes(self.memory_budget),
            tol=self._tolerance(),
            single=self.dtype == "float32",
            tiles=shown(n, "kernel rows", self.verbose),
        )

    def _tolerance(self) -> float | None:
        """Estimated error at which landmarks stop growing; None: their number is given."""
        tol = getattr(self, "tol", None)
        return DEFAULT_TOL if tol is None and getattr(self, "rank", None) == "auto" else tol

    def _landmark_count(self, n: int, rank: int | None) -> int:
        if self.n_landmarks is None:
            return n
        if self.n_landmarks == "auto":
            return min(n, self._auto_landmarks(n, rank))
        if isinstance(self.n_landmarks, Integral):
            if self.n_landmarks > n:
                warnings.warn(
                    f"n_landmarks={self.n_landmarks} exceeds n_samples={n}; all {n} are used",
                    UserWarning,
                    stacklevel=5,
                )
            return min(n, int(self.n_landmarks))
        return max(1, round(self.n_landmarks * n))

    def _auto_landmarks(self, n: int, rank: int | None) -> int:
        return max(100, 2 * (rank or 0))

    def _landmark_choice(self, X: Any, kernel: Kernel) -> Any:
        vectors = isinstance(X, np.ndarray) and kernel.takes != "precomputed"
        if isinstance(self.landmarks, str):
            if self.landmarks in VECTORS_ONLY and not vectors:
                raise ValueError(
                    f"landmarks={self.landmarks!r} needs dense vectors; "
                    'pass "greedy_kmeans++" for objects, matrices or sparse data'
                )
            default = "medoids+greedy" if vectors else "greedy_kmeans++"
            return default if self.landmarks == "auto" else self.landmarks
        if _are_indices(self.landmarks):
            return _checked_indices(self.landmarks, length(X))
        if kernel.takes == "precomputed":
            raise ValueError("with a precomputed matrix landmarks are row numbers or a scheme")
        return self._validated(self.landmarks, kernel, reset=False)

    def _prepared(self, X: Any, rng: np.random.Generator) -> tuple[Any, Kernel]:
        """X validated, and the kernel fitted to it."""
        kernel = self._resolved_kernel()
        X = self._validated(X, kernel, reset=True)
        if isinstance(kernel, CallableKernel):
            kernel.jobs = 1 if self.n_jobs is None else worker_count(self.n_jobs)
        if kernel.takes == "precomputed":
            X = self._precomputed_training(X, kernel)
        return X, kernel.fit(X, rng)

    def _precomputed_training(self, X: Any, kernel: Any) -> Any:
        if self.precomputed_columns == "all" or X.shape[0] == X.shape[1]:
            return self._validated_square(X, kernel)
        if not _are_indices(self.landmarks) or len(self.landmarks) != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} "
                "matrix. To fit on landmark columns pass landmarks=<their row numbers>"
            )
        if self.core == "ls":
            raise ValueError(
                'core="ls" needs pairs outside the landmark columns; pass core="plain" or '
                '"truncated"'
            )
        kernel.landmark_rows = np.asarray(self.landmarks)
        return X

    def _fit_map(self, X: Any, kernel: Kernel, plan: Plan, rng: np.random.Generator) -> Fitted:
        with serial_blas():
            if plan.tol is None:
                fitted = fit_map(kernel, X, plan, rng)
            else:
                shrink = self.rank == "auto"
                fitted = fit_map_to_tolerance(kernel, X, plan, rng, shrink=shrink)
        self._probe(kernel, fitted, rng)
        return fitted

    def _probe(self, kernel: Kernel, fitted: Fitted, rng: np.random.Generator) -> None:
        if not isinstance(kernel, CallableKernel):
            return
        asymmetry, drift = probe(kernel, fitted.panel.X.take(fitted.panel.landmarks), rng)
        if drift > 0:
            warnings.warn(
                f"the kernel is not deterministic: repeated values differ by {drift:.3g} of the "
                "largest; results will not repeat",
                UserWarning,
                stacklevel=4,
            )
        elif asymmetry > SYMMETRY_RTOL:
            self._asymmetric(f"the kernel is asymmetric on landmarks (by {asymmetry:.3g})")
        if not kernel.is_dissimilarity and _looks_like_distances(fitted.panel.K_ZZ):
            warnings.warn(
                "the kernel is zero on the diagonal and never negative: if it is a dissimilarity "
                "pass kernel=dissimilarity(...)",
                UserWarning,
                stacklevel=4,
            )

    def _store(self, fitted: Fitted, feature_map: FeatureMap) -> None:
        """The attributes every fitted estimator has."""
        panel = fitted.panel
        outside = len(panel.landmarks) and panel.landmarks[0] < 0
        self.kernel_ = panel.kernel
        self.landmark_indices_ = None if outside else panel.landmarks
        self.landmarks_ = (
            panel.landmarks
            if panel.kernel.takes == "precomputed"
            else panel.X.take(panel.landmarks)
        )
        self.n_landmarks_ = len(panel.landmarks)
        self.signature_ = feature_map.S.astype(np.int8)
        self.eigenvalues_ = feature_map.Lambda
        self.rank_ = len(feature_map.S)
        self._columns = fitted.columns
        if panel.kernel.takes == "precomputed" and self.precomputed_columns == "landmarks":
            self._expect_landmark_columns(fitted)

    def _expect_landmark_columns(self, fitted: Fitted) -> None:
        if fitted.columns.landmarks is not None:
            raise ValueError(
                f"landmarks={self.landmarks!r} centres dissimilarities on objects that are not "
                'landmarks; pass precomputed_columns="all" or another landmark scheme'
            )
        self.n_features_in_ = self.n_landmarks_
        self._columns = replace(fitted.columns, raw=PickedColumns(np.arange(self.n_landmarks_)))

    # Using

    def _project(self, X: Any, W: Any) -> Any:
        """k(X, Z) @ W for new objects, in the precision of X."""
        check_is_fitted(self)
        X = self._validated(X, self.kernel_, reset=False)
        single = getattr(X, "dtype", None) == np.float32
        out = np.empty((length(X), W.shape[1]), np.float32 if single else np.float64)
        workers = worker_count(self.n_jobs) if self.kernel_.threads else 1
        return transform_blocks(X, self._columns, W, out, workers)

    def _similarities(self, X: Any, sample: Any) -> Any:
        """The true similarities among sampled rows of X, evaluated anew."""
        A = take(X, sample)
        if self.kernel_.takes == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"the square training matrix is needed, got shape {X.shape}")
            return symmetrised(self.kernel_.columns(sample)(A))
        K, centring = self.kernel_.symmetric(A), self._columns.centring
        if centring is None:
            return K
        a = centring.offsets(self._columns.raw(A))
        return symmetrised(centring.similarity(K, a, a))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = self.kernel
        tags.input_tags.pairwise = kernel in ("precomputed", "precomputed_dissimilarity")
        try:
            resolved = resolve(kernel, self.kernel_params)
        except (TypeError, ValueError):
            return tags
        tags.input_tags.sparse = resolved.sparse
        tags.input_tags.string = resolved.takes in ("objects", "any")
        return tags


def _is_table(X: Any) -> bool:
    """Numbers in two dimensions, or a data frame: rows are vectors."""
    if sp.issparse(X) or hasattr(X, "columns"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def _looks_like_distances(K: Any) -> bool:
    return bool(len(K) > 1 and K.min() >= 0 and K.max() > 0 and not np.diagonal(K).any())


def _are_indices(landmarks: Any) -> bool:
    if isinstance(landmarks, str) or np.ndim(landmarks) != 1 or not len(landmarks):
        return False
    return np.asarray(landmarks).dtype.kind in "iu"


def _checked_indices(landmarks: Any, n: int) -> Any:
    numbers = np.asarray(landmarks, dtype=np.intp)
    if numbers.min() < 0 or numbers.max() >= n or len(np.unique(numbers)) != len(numbers):
        raise ValueError(
            f"landmarks must be distinct row numbers in 0..{n - 1}, "
            f"got {numbers.min()}..{numbers.max()} with "
            f"{len(numbers) - len(np.unique(numbers))} repeats"
        )
    return numbers

