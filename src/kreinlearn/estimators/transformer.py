"""Feature maps as transformers: KreinNystroem and KreinPCA."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.data.tiles import length, take
from kreinlearn.data.validation import as_generator
from kreinlearn.distributed.entrance import lazy_result
from kreinlearn.estimators.base import KreinEstimator, feature_attributes
from kreinlearn.estimators.refusals import refuse
from kreinlearn.estimators.ridge import RandomState
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.nystrom.error import ERROR_ROWS, ErrorEstimate, estimate_error
from kreinlearn.nystrom.fit import FittedMap, centred_axes, fit_map, fit_map_to_tolerance
from kreinlearn.nystrom.landmarks import MapSpec, map_spec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.sums.parallel import serial_blas

DEFAULT_TOL = 0.05  # of rank="auto"
N_ROWS = {"n_rows": [Interval(Integral, 2, None, closed="left")]}  # of estimate_error


class FitResult(NamedTuple):
    """What a transformer learns from rows."""

    pairs: Pairs
    spec: MapSpec
    fitted: FittedMap


class _KreinTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KreinEstimator):
    _works_elsewhere: ClassVar[bool] = True
    _core: ClassVar[str] = "ls"
    _fitted: ClassVar[tuple[str, ...]] = (
        *KreinEstimator._fitted, "signature_", "eigenvalues_", "rank_", "_map", "_mean",
    )  # fmt: skip

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Objects, y: ArrayLike | None = None) -> Self:
        """Choose landmarks, pass once over X, fit the core.

        Parameters
        ----------
        X : array-like, list of objects, path, table or dask collection
            The training objects. With a precomputed kernel a square matrix, or the columns of
            landmarks that are given by row number.
        y : None
            Ignored; present for pipelines.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Objects, y: ArrayLike | None = None) -> Any:
        """Fit, and return the features of the training objects.

        The result is that of ``fit(X).transform(X)``; no pair is evaluated again if the fit looked
        at all rows at once.

        Parameters
        ----------
        X : array-like, list of objects, path, table or dask collection
            The training objects.
        y : None
            Ignored; present for pipelines.

        Returns
        -------
        ndarray of shape (n_samples, rank_)
            The features.
        """
        result = self._fit(X)
        sample = result.fitted.sample
        if (lazy := lazy_result(self, "transform", X)) is not None:
            return lazy
        if len(sample.inside) < result.pairs.n:
            return self.transform(X)
        with serial_blas():
            Phi = sample.C[sample.inside] @ self._map.W
        return self._centred(Phi)

    def transform(self, X: Objects) -> Any:
        """Features of any objects; the signature is not applied.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects. A matrix of (dis)similarities has one column per training object, or one
            per landmark.

        Returns
        -------
        ndarray of shape (n_samples, rank_)
            The features; a lazy dask array if X is a dask collection.
        """
        self._require_fitted()
        if (lazy := lazy_result(self, "transform", X)) is not None:
            return lazy
        return self._centred(self._projected(*self._new_rows(X), self._map.W))

    def _centred(self, Phi: Array) -> Array:
        Phi -= self._mean
        return Phi

    @property
    def _n_features_out(self) -> int:
        return int(self.signature_.shape[0])

    # Fitting

    def _fit(self, X: Objects) -> FitResult:
        with self._fitting(X):
            result = self._found(X)
            self._keep(result)
            return result

    def _found(self, X: Objects) -> FitResult:
        if self._landmarks.rank is not None:
            raise ValueError(
                f"Landmarks(rank={self._landmarks.rank}) is for learners; pass rank= or "
                f"n_components= to {type(self).__name__}"
            )
        rng = self._generator()
        rows, kernel, _, _ = self._received(X, None, None, rng)
        with self._pairs(kernel, rows, rng) as pairs:
            spec = self._spec(pairs)
            if spec.tol is None:
                fitted = fit_map(pairs, spec, rng)
            else:
                shrink = getattr(self, "rank", None) == "auto"
                fitted = fit_map_to_tolerance(pairs, spec, rng, shrink=shrink)
            pairs.probe(fitted.sample)
        return FitResult(pairs, spec, fitted)

    def _spec(self, pairs: Pairs) -> MapSpec:
        """The parameters as numbers for the rows at hand."""
        raise NotImplementedError

    def _map_spec(self, pairs: Pairs, rank: int | None, **more: Any) -> MapSpec:
        wanted, default = self._landmarks, default_landmarks(rank)
        core = wanted.core or self._core
        return map_spec(pairs, wanted, default=default, core=core, rank=rank, **more)

    def _keep(self, result: FitResult) -> None:
        raise NotImplementedError

    def _keep_map(self, result: FitResult, feature_map: FeatureMap, mean: Array | float) -> None:
        self._keep_landmarks(result.pairs, result.fitted.sample)
        for name, value in feature_attributes(feature_map).items():
            setattr(self, name, value)
        self._mean = mean
        self._keep_columns(result.fitted.columns)

    def _warn_if_rank_lost(self, wanted: int | None, name: str) -> None:
        if self.rank_ == 0:
            warn("no dimension is left, rank_ is 0: the kernel is zero, or the same for all pairs")
        elif wanted is not None and self.rank_ < wanted:
            warn(
                f"{name}={wanted} was asked for but the landmarks span only {self.rank_} "
                "dimensions: duplicate objects, or a kernel of low rank"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


class KreinNystroem(_KreinTransformer):
    """Low-rank features of any symmetric similarity, positive definite or not.

    For use before any other estimator, and for approximating a kernel matrix K that is too large to
    compute: ``K ~ Phi diag(signature_) Phi.T`` with ``Phi = transform(X)``. K itself is never
    formed; only the similarities of the objects to landmarks, and of a few pairs more, are
    evaluated. A dissimilarity is turned into a similarity by centring its squares.

    Parameters
    ----------
    kernel : str, callable, Kernel or dict, default="gaussian"
        The similarity: a name such as "gaussian" or "levenshtein", a function k(A, B) that returns
        a matrix, ``pairwise(f)`` of a function of two objects, ``dissimilarity(...)``, or an object
        of ``kreinlearn.kernels``. "precomputed" and "precomputed_dissimilarity" take a matrix as X.
        A dict from fields of records to kernels is the sum of ``columns(...)``.
    kernel_params : dict or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults.
    landmarks : int, float, None, str, callable, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them or
        a function ``f(rows, m, rng)``, their row numbers, the objects themselves, or
        ``Landmarks(...)``. "auto" takes 100, or twice ``rank`` if that is more.
    rank : int, "auto" or None, default=None
        How many features are kept, those with the largest absolute eigenvalues. None keeps all;
        "auto" keeps as few as reach ``tol``.
    method : {"gram", "svd", "sgt"}, default="gram"
        How the eigendecomposition is computed. "gram" streams over the rows. "svd" and "sgt" keep
        all kernel values in memory, are there for comparison, and need ``Landmarks(core="plain")``
        or "truncated".
    tol : float or None, default=None
        The relative error to be reached: landmarks are added until the estimate is below it. None:
        the number of landmarks is fixed, except that ``rank="auto"`` uses 0.05.
    resources : Resources or None, default=None
        Memory, and a store of kernel values on disk, as ``Resources(...)``. None is
        ``Resources()``: a quarter of the free memory, and no store.
    n_jobs : int or None, default=None
        Number of threads, or of processes for kernels that are Python functions; -1 is one for each
        core. None: as many threads as BLAS uses, and no further processes.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random choices: landmarks and samples. An int gives the same result at every
        call.
    verbose : int or bool, default=0
        If positive, a run that takes long is announced, and its progress is shown on a terminal.

    Attributes
    ----------
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the approximate kernel matrix of the training objects, by decreasing absolute
        value; those that are zero up to rounding are left out.
    rank_ : int
        The number of features.
    error_ : ErrorEstimate
        The estimated relative error, its standard error, and the number of rows it was estimated
        from. Exists with ``tol`` or ``rank="auto"``.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The landmarks; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,) or None
        Row numbers of the landmarks in the training data; None if they were given as objects.
    n_landmarks_ : int
        The number of landmarks.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinPCA : Features of the centred kernel, for pictures.
    sklearn.kernel_approximation.Nystroem : The same for positive definite kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinNystroem
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> model = KreinNystroem("delta_gauss", rank=10, random_state=0).fit(X)
    >>> model.transform(X).shape, bool((model.signature_ < 0).any())
    ((300, 10), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinEstimator._parameter_constraints,
        "rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "method": [StrOptions({"gram", "svd", "sgt"})],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
    }
    _fitted: ClassVar[tuple[str, ...]] = (*_KreinTransformer._fitted, "error_")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | None = None,
        landmarks: Any = "auto",
        rank: int | str | None = None,
        method: str = "gram",
        tol: float | None = None,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.rank = rank
        self.method = method
        self.tol = tol
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _tolerance(self) -> float | None:  # type: ignore[override]
        return DEFAULT_TOL if self.tol is None and self.rank == "auto" else self.tol

    def _spec(self, pairs: Pairs) -> MapSpec:
        refuse(self, "a method")
        rank = None if isinstance(self.rank, str) else self.rank
        return self._map_spec(pairs, rank, method=self.method, tol=self._tolerance)

    def _keep(self, result: FitResult) -> None:
        spec, fitted = result.spec, result.fitted
        if fitted.error is not None:
            self.error_ = fitted.error
        self._keep_map(result, fitted.map.cut(spec.rank), 0.0)
        self._warn_if_rank_lost(spec.rank, "rank")
        if spec.tol is not None and self.error_.relative > spec.tol:
            warn(
                f"the estimated error is {self.error_.relative:.3g}, tol={spec.tol} was asked "
                f"for; {_remedy(spec)}"
            )

    def eigenvectors(self, X: Objects) -> Any:
        """Eigenvectors of the approximate kernel matrix, extended to any objects.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.

        Returns
        -------
        ndarray of shape (n_samples, n_eigenvalues)
            One column per eigenvalue, orthonormal on the training objects.
        """
        self._require_fitted()
        if (lazy := lazy_result(self, "eigenvectors", X)) is not None:
            return lazy
        return self._projected(*self._new_rows(X), self._map.E)

    def approximate(self, X: Objects, Y: Objects | None = None) -> Array:
        """The approximate similarities of objects.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects that stand as rows.
        Y : as X, default=None
            The objects that stand as columns; None: those of X.

        Returns
        -------
        ndarray of shape (n_X, n_Y)
            The similarities.
        """
        self._require_fitted()
        Phi = self._projected(*self._new_rows(X), self._map.W)
        Psi = Phi if Y is None else self._projected(*self._new_rows(Y), self._map.W)
        self._require_room(8 * len(Phi) * len(Psi), f"{len(Phi)} x {len(Psi)} similarities")
        return np.asarray((Phi * self.signature_) @ Psi.T)

    def estimate_error(
        self, X: Objects, *, n_rows: int = ERROR_ROWS, random_state: RandomState = None
    ) -> ErrorEstimate:
        """Estimate the relative error ||K - K~|| / ||K|| (Frobenius) of the approximation on X.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        n_rows : int, default=256
            How many objects are drawn, all pairs of which are evaluated.
        random_state : int, RandomState, Generator or None, default=None
            The source of the draw.

        Returns
        -------
        ErrorEstimate
            The relative error, its standard error, and the number of rows drawn.
        """
        self._require_fitted()
        validate_parameter_constraints(N_ROWS, {"n_rows": n_rows}, "estimate_error")
        fitted_to_columns = getattr(self.kernel_, "landmark_rows", None) is not None
        if fitted_to_columns or self._has_landmark_columns(X):
            raise ValueError(
                "an error estimate compares pairs of any objects, and the landmark columns hold "
                "none but those with landmarks; fit and pass all columns"
            )
        X, columns = self._new_rows(X)
        n = length(X)
        if n < 2:
            raise ValueError("one object has no pair to estimate an error from; pass 2 or more")
        sample = np.sort(as_generator(random_state).choice(n, min(n_rows, n), replace=False))
        K = self._similarities(X, sample)
        Phi = self._projected(take(X, sample), columns, self._map.W)
        return estimate_error(K, Phi, self._map.S, n)


class KreinPCA(_KreinTransformer):
    """Signed principal components: an embedding that keeps the negative axes.

    For pictures and for embedding objects in a few dimensions. The components are eigenvectors of
    the centred, approximate kernel matrix, by decreasing absolute eigenvalue. The squared distance
    of two embedded objects is the sum over components of ``signature_ * difference ** 2``, which
    may be negative. New objects are embedded by ``transform``. A dissimilarity is turned into a
    similarity by centring its squares.

    Parameters
    ----------
    n_components : int, default=2
        The number of components, at most the number of landmarks.
    kernel : str, callable, Kernel or dict, default="gaussian"
        The similarity: a name such as "gaussian" or "levenshtein", a function k(A, B) that returns
        a matrix, ``pairwise(f)`` of a function of two objects, ``dissimilarity(...)``, or an object
        of ``kreinlearn.kernels``. "precomputed" and "precomputed_dissimilarity" take a matrix as X.
        A dict from fields of records to kernels is the sum of ``columns(...)``.
    kernel_params : dict or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults.
    landmarks : int, float, None, str, callable, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them or
        a function ``f(rows, m, rng)``, their row numbers, the objects themselves, or
        ``Landmarks(...)``. "auto" takes 100, or twice ``n_components`` if that is more.
    resources : Resources or None, default=None
        Memory, and a store of kernel values on disk, as ``Resources(...)``. None is
        ``Resources()``: a quarter of the free memory, and no store.
    n_jobs : int or None, default=None
        Number of threads, or of processes for kernels that are Python functions; -1 is one for each
        core. None: as many threads as BLAS uses, and no further processes.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random choices: landmarks and samples. An int gives the same result at every
        call.
    verbose : int or bool, default=0
        If positive, a run that takes long is announced, and its progress is shown on a terminal.

    Attributes
    ----------
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1.
    eigenvalues_ : ndarray of shape (rank_,)
        The eigenvalue of each component, by decreasing absolute value.
    explained_abs_ratio_ : ndarray of shape (rank_,)
        The absolute value of each eigenvalue, divided by the sum of those of all eigenvalues of the
        approximation.
    explained_squared_ratio_ : ndarray of shape (rank_,)
        The same for squared eigenvalues: shares of the squared Frobenius norm.
    rank_ : int
        The number of components, fewer than ``n_components`` if the landmarks span fewer
        dimensions.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The landmarks; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,) or None
        Row numbers of the landmarks in the training data; None if they were given as objects.
    n_landmarks_ : int
        The number of landmarks.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinNystroem : Features that approximate the kernel itself.
    sklearn.decomposition.KernelPCA : The same for positive definite kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinPCA
    >>> D = np.array([[0.0, 1, 1, 3], [1, 0, 1, 1], [1, 1, 0, 1], [3, 1, 1, 0]])
    >>> KreinPCA(kernel="precomputed_dissimilarity").fit(D).signature_
    array([ 1, -1], dtype=int8)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *_KreinTransformer._fitted, "explained_abs_ratio_", "explained_squared_ratio_",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "gaussian",
        kernel_params: dict[str, Any] | None = None,
        landmarks: Any = "auto",
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _spec(self, pairs: Pairs) -> MapSpec:
        spec = self._map_spec(pairs, self.n_components, name="n_components")
        return replace(spec, rank=None)

    def _keep(self, result: FitResult) -> None:
        axes, mean = centred_axes(result.fitted, result.pairs.n)
        kept = axes.cut(self.n_components)
        shares = np.abs(axes.Lambda / np.max(np.abs(axes.Lambda), initial=0.0))
        self.explained_abs_ratio_ = (shares / shares.sum())[: len(kept.S)]
        self.explained_squared_ratio_ = (shares**2 / np.sum(shares**2))[: len(kept.S)]
        self._keep_map(result, kept, mean @ kept.W)
        self._warn_if_rank_lost(self.n_components, "n_components")


def default_landmarks(rank: int | None) -> int:
    """How many landmarks "auto" stands for."""
    return max(100, 2 * (rank or 0))


def _remedy(spec: MapSpec) -> str:
    """What keeps a fit from its tolerance."""
    if spec.rank is not None:
        return 'raise rank, or pass rank="auto"'
    if spec.scheme is None:
        return "let a scheme choose the landmarks instead of giving them"
    return "raise Resources(memory_budget=...), or the pool of Landmarks to choose from"
