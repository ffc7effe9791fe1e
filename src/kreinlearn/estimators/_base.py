"""The one fit skeleton: parameters, validation and prediction common to all estimators."""

from __future__ import annotations

import os
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    validate_data,
)

from kreinlearn._warnings import warn
from kreinlearn.data.memory import budget_bytes, free_memory, require_memory
from kreinlearn.data.tiles import Source, length, take
from kreinlearn.distributed import DaskRows, is_dask, require_sendable
from kreinlearn.estimators._callbacks import tasks_of
from kreinlearn.estimators._dask import rows_on_workers, to_fit_on
from kreinlearn.estimators._sources import rows_for
from kreinlearn.estimators._storing import open_store
from kreinlearn.estimators._validation import (
    are_row_numbers,
    as_objects,
    asymmetry_of,
    checked_row_numbers,
    is_condensed,
    is_table,
    landmark_count,
    looks_like_distances,
    precision,
    require_apart,
    require_finite_matrix,
    require_numbers,
    require_same_count,
    require_square,
    scheme_for,
    square_of_condensed,
)
from kreinlearn.kernels import Kernel, resolve
from kreinlearn.kernels.base import symmetrised, symmetry_rtol
from kreinlearn.kernels.callables import CallableKernel, probe
from kreinlearn.kernels.dissimilarity import check_dissimilarities
from kreinlearn.kernels.precomputed import PickedColumns, Precomputed, PrecomputedDissimilarity
from kreinlearn.kernels.processes import Processes
from kreinlearn.learn.precision import require_approximated
from kreinlearn.nystrom.approximation import Fitted, fit_map, fit_map_to_tolerance
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.nystrom.landmarks import SELECTORS, WHOLE_SAMPLE
from kreinlearn.nystrom.sweep import Plan, announce, n_evaluated, transform_blocks
from kreinlearn.pairs.evaluate import places_of
from kreinlearn.pairs.panel import Panel
from kreinlearn.pairs.square import rows_a_part
from kreinlearn.persist import save
from kreinlearn.progress import Progress
from kreinlearn.sums.parallel import serial_blas, worker_count

DEFAULT_TOL = 0.05  # of rank="auto"
# attributes of a fit, beside those that end with _
PRIVATE = {"_calibration", "_columns", "_intercept", "_map", "_mean", "_n_chosen", "_one_output"}
PRIVATE |= {"_column", "_shift", "_sums"}


class KreinEstimator(CallbackSupportMixin, BaseEstimator):
    """Common parameters, validation at the border, and the way from objects to a feature map."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, Kernel],
        "kernel_params": [dict, None],
        "n_landmarks": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            StrOptions({"auto"}),
            None,
        ],
        "landmarks": [StrOptions({"auto", *SELECTORS}), "array-like", "sparse matrix"],
        "core": [StrOptions({"ls", "truncated", "plain"})],
        "symmetrize": [StrOptions({"average", "raise"})],
        "precomputed_columns": [StrOptions({"all", "landmarks"})],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "memory_budget": [Interval(Real, 1, None, closed="left"), str, None],
        "store": [str, os.PathLike, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    _takes_dask = False
    n_features_in_: int
    feature_names_in_: Any

    # Validation

    def _resolved_kernel(self) -> Kernel:
        kernel = resolve(self.kernel, self._named_params())
        if self.precomputed_columns == "all":
            return kernel
        if kernel.takes != "precomputed":
            raise ValueError(
                f'precomputed_columns="landmarks" is for a precomputed matrix, got '
                f"kernel={self.kernel!r}; leave precomputed_columns out"
            )
        dissimilarities = isinstance(kernel, PrecomputedDissimilarity)
        return Precomputed(is_dissimilarity=True) if dissimilarities else kernel

    def _named_params(self) -> Any:
        """Parameters of the kernel, before any are searched for."""
        return self.kernel_params

    _double = False  # float32 was asked for and is not enough

    @property
    def _dtype(self) -> Any:
        """What X is converted to; None: float32 stays, all else becomes float64."""
        return "float64" if self._double else self.dtype

    @property
    def _dtypes(self) -> list[Any]:
        """What X is converted to, unless it is of one of these types already."""
        return [np.float64, np.float32] if self._dtype is None else [np.dtype(self._dtype)]

    def _validated(self, X: Any, kernel: Kernel, *, reset: bool) -> Any:
        """X as the kernel takes it: an array or CSR matrix, a list of objects, or a source."""
        if is_dask(X):
            require_sendable(kernel)
            X = rows_on_workers(self, X, kernel, reset=reset)
            if isinstance(X, Source):
                return X
        X = rows_for(self, X, kernel, reset=reset)
        if isinstance(X, Source):
            return X
        if kernel.takes == "precomputed":
            return self._validated_matrix(X, kernel, reset=reset)
        require_apart(X, kernel)
        any_table = is_table(X) if reset else hasattr(self, "n_features_in_")
        if kernel.takes == "vectors" or (kernel.takes == "any" and any_table):
            require_numbers(X)
            sparse = "csr" if kernel.sparse else False
            return validate_data(self, X, accept_sparse=sparse, dtype=self._dtypes, reset=reset)
        return as_objects(self, X, kernel, reset=reset)

    def _validated_matrix(self, X: Any, kernel: Any, *, reset: bool) -> Any:
        if reset and is_condensed(X):
            X = square_of_condensed(X, kernel)
        require_numbers(X)
        _check_feature_names(self, X, reset=reset)
        K = check_array(X, dtype=self._dtypes, ensure_all_finite=False, input_name="X")
        require_finite_matrix(K)
        _check_n_features(self, K, reset=reset)
        if kernel.of_dissimilarities:
            square = reset and K.shape[0] == K.shape[1]
            check_dissimilarities(K, np.diagonal(K) if square else None)
        return K

    def _symmetric(self, K: Any) -> Any:
        gap = asymmetry_of(K)
        if gap > symmetry_rtol(K.dtype) * max(float(K.max()), -float(K.min())):
            what = f"the matrix is asymmetric: the largest |K - K'| is {gap:.3g}"
            self._asymmetric(what, "it is averaged with its transpose")
        return symmetrised(K) if gap else K

    def _asymmetric(self, what: str, done: str) -> None:
        if self.symmetrize == "raise":
            raise ValueError(f'{what}; make it symmetric, or pass symmetrize="average"')
        warn(f"{what}; {done}")

    # Fitting

    def _forget(self) -> None:
        """Back to unfitted, so that a fit that fails leaves nothing behind."""
        for name in [name for name in vars(self) if name.endswith("_") or name in PRIVATE]:
            delattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def _progress(self) -> Progress:
        return Progress(self.verbose, self.kernel, tasks_of(self))

    def _prepared(self, X: Any, rng: np.random.Generator) -> tuple[Any, Kernel]:
        """X validated, and the kernel fitted to it."""
        self._forget()
        kernel = self._resolved_kernel()
        X = self._validated(X, kernel, reset=True)
        if isinstance(kernel, Precomputed):
            X = self._training_matrix(X, kernel)
        kernel = kernel if isinstance(X, DaskRows) else self._with_processes(kernel)
        return X, kernel.fit(to_fit_on(kernel, X), rng)

    def _with_processes(self, kernel: Kernel, first: Kernel | None = None) -> Kernel:
        """A kernel of Python functions evaluates in as many processes as ``n_jobs`` says.

        They are those of the ``first`` kernel of the fit, which hold the objects already.
        """
        if hasattr(kernel, "processes"):
            jobs = 1 if self.n_jobs is None else worker_count(self.n_jobs)
            fresh = Processes(jobs) if jobs > 1 else None
            kernel.processes = fresh if first is None else getattr(first, "processes", None)
        return kernel

    def _keep_kernel(self, kernel: Kernel) -> None:
        """The kernel as fitted; its processes let go of the objects of the fit."""
        self.kernel_ = kernel
        processes: Processes | None = getattr(kernel, "processes", None)
        if processes is not None:
            processes.end_fit()

    def _training_matrix(self, K: Any, kernel: Precomputed) -> Any:
        """A square, symmetric matrix, or the columns of landmarks given by row number."""
        if self.precomputed_columns == "landmarks":
            self._require_reference_in_landmarks(kernel)
            if K.shape[0] != K.shape[1]:
                return self._landmark_columns(K, kernel)
        require_square(K)
        K = self._symmetric(K)
        if not kernel.of_dissimilarities and looks_like_distances(K):
            warn(
                "the precomputed similarity has a zero diagonal and no negative entry: if these "
                'are dissimilarities pass kernel="precomputed_dissimilarity"'
            )
        return K

    def _require_reference_in_landmarks(self, kernel: Precomputed) -> None:
        scheme = self.landmarks if isinstance(self.landmarks, str) else "given"
        if kernel.is_dissimilarity and scheme in WHOLE_SAMPLE:
            raise ValueError(
                f"landmarks={scheme!r} centres dissimilarities on objects that are not landmarks; "
                'pass precomputed_columns="all" or another landmark scheme'
            )

    def _landmark_columns(self, K: Any, kernel: Precomputed) -> Any:
        if not are_row_numbers(self.landmarks) or len(self.landmarks) != K.shape[1]:
            require_square(K, " To fit on landmark columns pass landmarks=<their row numbers>")
        if self.core == "ls" or self._tolerance() is not None:
            raise ValueError(
                'core="ls", tol and rank="auto" need pairs outside the landmark columns; '
                'pass core="plain" or "truncated" and a number as rank'
            )
        kernel.landmark_rows = checked_row_numbers(self.landmarks, len(K))
        self._symmetric(K[kernel.landmark_rows])  # Z x Z is averaged where it is used
        return K

    def _plan(self, X: Any, kernel: Kernel, rank: int | None, wanted: str = "rank") -> Plan:
        n = length(X)
        landmarks = self._landmark_choice(X, kernel)
        m, remedy = length(landmarks), "give more landmarks"
        if isinstance(landmarks, str):
            m = landmark_count(self.n_landmarks, n, self._auto_landmarks(n, rank))
            remedy = "raise n_landmarks"
        else:
            require_same_count(self.n_landmarks, n, m)
        if rank is not None and rank > m:
            raise ValueError(
                f"{wanted}={rank} exceeds n_landmarks={m} (n_samples={n}); "
                f"lower {wanted} or {remedy}"
            )
        by_number = isinstance(landmarks, str) or are_row_numbers(landmarks)
        single = self._dtype == "float32" == str(getattr(X, "dtype", None))
        single = single and kernel.takes != "precomputed"
        return Plan(
            n_landmarks=m,
            rank=rank,
            core=self.core,
            method=self._route(),
            landmarks=landmarks,
            workers=worker_count(self.n_jobs),
            budget=budget_bytes(self.memory_budget),
            tol=self._tolerance(),
            single=single,
            sample=single,
            progress=self._progress(),
            store=open_store(self, kernel, X, None if by_number else landmarks),
        )

    def _route(self) -> str:
        method: str = getattr(self, "method", "gram")
        if self.core == "ls" and method != "gram":
            raise ValueError(
                f'method="{method}" is a route of core="plain" and "truncated"; '
                'core="ls" has method="gram" alone'
            )
        return method

    def _tolerance(self) -> float | None:
        """Estimated error at which landmarks stop growing; None: their number is given."""
        tol = getattr(self, "tol", None)
        return DEFAULT_TOL if tol is None and getattr(self, "rank", None) == "auto" else tol

    def _auto_landmarks(self, n: int, rank: int | None) -> int:
        return max(100, 2 * (rank or 0))

    def _landmark_choice(self, X: Any, kernel: Kernel) -> Any:
        if isinstance(self.landmarks, str):
            dense = isinstance(X, np.ndarray | Source) and X.ndim == 2
            vectors = dense and kernel.takes != "precomputed"
            return scheme_for(self.landmarks, vectors)
        if are_row_numbers(self.landmarks):
            return checked_row_numbers(self.landmarks, length(X))
        if kernel.takes == "precomputed":
            raise ValueError("with a precomputed matrix landmarks are row numbers or a scheme")
        Z = self._validated(self.landmarks, kernel, reset=False)
        return np.asarray(Z) if isinstance(Z, Source) else Z  # a memory map

    def _fit_map(self, X: Any, kernel: Kernel, plan: Plan, rng: np.random.Generator) -> Fitted:
        with serial_blas():
            if plan.tol is None:
                fitted = fit_map(kernel, X, plan, rng)
            else:
                shrink = self.rank == "auto"
                fitted = fit_map_to_tolerance(kernel, X, plan, rng, shrink=shrink)
            require_approximated(fitted.panel, plan)
        self._probe_landmarks(fitted.panel)
        return fitted

    def _probe_landmarks(
        self,
        panel: Panel,
        used: str = "k(x, z) counts with z the landmark, of two landmarks one order or the mean",
    ) -> None:
        """Warnings about a person's functions in the kernel."""
        if panel.kernel.untrusted:
            own = np.random.default_rng(0)  # folds are those that a matrix of these values gets
            self._probe(panel.kernel, panel.X.take(panel.landmarks), panel.K_ZZ, own, used)

    def _probe(
        self, kernel: Kernel, Z: Any, K_ZZ: Any, rng: np.random.Generator, used: str
    ) -> None:
        asymmetry, drift = probe(kernel, Z, rng)
        if drift > 0:
            warn(
                f"the kernel is not deterministic: repeated values differ by {drift:.3g} of the "
                "largest; results will not repeat"
            )
        elif asymmetry > 0:
            what = f"the kernel is asymmetric: k(x, z) - k(z, x) is up to {asymmetry:.3g} of it"
            self._asymmetric(what, used)
        similarity = isinstance(kernel, CallableKernel) and not kernel.is_dissimilarity
        if similarity and looks_like_distances(K_ZZ):
            warn(
                "the kernel is zero on the diagonal and never negative: if it is a dissimilarity "
                "pass kernel=dissimilarity(...)"
            )

    def _store(self, fitted: Fitted, feature_map: FeatureMap) -> None:
        """The attributes every fitted estimator has; ``_map`` comes last and makes it fitted."""
        panel = fitted.panel
        given = panel.kernel.takes == "precomputed"
        outside = len(panel.landmarks) and panel.landmarks[0] < 0
        self._keep_kernel(panel.kernel)
        self.landmark_indices_ = None if outside else panel.landmarks
        self.landmarks_ = panel.landmarks if given else panel.X.take(panel.landmarks)
        self.n_landmarks_ = len(panel.landmarks)
        if panel.kernel.takes in ("vectors", "precomputed"):
            self.dtype_ = precision(panel.X.X)
        self.signature_ = feature_map.S.astype(np.int8)
        self.eigenvalues_ = feature_map.Lambda
        self.rank_ = len(feature_map.S)
        self._columns = replace(fitted.columns, stored=None)
        if given and self.precomputed_columns == "landmarks":
            self._expect_landmark_columns(fitted)
        self._map = feature_map

    def _expect_landmark_columns(self, fitted: Fitted) -> None:
        given = self.kernel_.landmark_rows
        if hasattr(self, "feature_names_in_"):
            rows = fitted.panel.landmarks
            places = rows if given is None else places_of(rows, given)
            self.feature_names_in_ = self.feature_names_in_[places]
        self.n_features_in_ = self.n_landmarks_
        columns = np.arange(self.n_landmarks_)
        self._columns = replace(fitted.columns, raw=PickedColumns(columns), objects=columns)

    # Using

    def save(self, path: Any, *, external_kernel: bool = False) -> None:
        """Write the fitted estimator to a file of data, for ``kreinlearn.load``.

        The file holds the landmarks, which are training data: see ``kreinlearn.save``.
        """
        save(self, path, external_kernel=external_kernel)

    def _project(self, X: Any, W: Any) -> Any:
        """k(X, Z) @ W for new objects, in the precision of X."""
        return self._features(self._validated(X, self.kernel_, reset=False), W)

    def _features(self, X: Any, W: Any) -> Any:
        n, r = length(X), W.shape[1]
        out_type = precision(X)
        self._require_room(out_type.itemsize * n * r, f"a result of {n} x {r} numbers")
        workers = worker_count(self.n_jobs) if self.kernel_.threads else 1
        same_type = getattr(X, "dtype", None) == getattr(self.landmarks_, "dtype", object)
        buffered = self.kernel_.takes == "vectors" and same_type
        out, progress = np.empty((n, r), out_type), self._progress()
        pairs = n * n_evaluated(self._columns, len(W))
        announce(progress, self.kernel_, X, self.landmarks_, pairs, workers)
        return transform_blocks(
            X, self._columns, W, out, workers, buffered=buffered,
            n_rows=rows_a_part(self.kernel_), progress=progress,
        )  # fmt: skip

    def _require_room(self, n_bytes: int, what: str) -> None:
        """MemoryError if a result exceeds memory_budget, or all free memory if that is not set."""
        given = self.memory_budget is not None
        limit = budget_bytes(self.memory_budget) if given else free_memory()
        require_memory(n_bytes, limit, what, "pass fewer rows at a time, or raise memory_budget")

    def _similarities(self, X: Any, sample: Any) -> Any:
        """The true similarities among sampled rows of X, evaluated anew."""
        A, transform = take(X, sample), self._columns.transform
        if self.kernel_.takes == "precomputed":
            require_square(X)
            K = symmetrised(self.kernel_.columns(sample)(A))
        else:
            K = self.kernel_.symmetric(A)
        if transform is None:
            return K
        a = transform.offsets(self._columns.raw(A))
        return symmetrised(transform.similarity(K, a, a))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = resolve(self.kernel, self._named_params())
        except (TypeError, ValueError):  # fit will say so
            return tags
        tags.input_tags.pairwise = kernel.takes == "precomputed"
        tags.input_tags.positive_only = getattr(kernel, "of_dissimilarities", False)
        tags.input_tags.sparse = kernel.sparse
        tags.input_tags.string = kernel.on_objects
        tags.input_tags.categorical = tags.input_tags.allow_nan = kernel.takes == "records"
        return tags
