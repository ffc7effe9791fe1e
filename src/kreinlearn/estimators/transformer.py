"""The Nystroem features of an indefinite kernel, and its signed principal components."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import as_generator, length, take
from kreinlearn.distributed import is_dask, lazily
from kreinlearn.estimators._base import KreinEstimator
from kreinlearn.estimators._callbacks import reported
from kreinlearn.estimators._storing import storing
from kreinlearn.estimators._validation import precision
from kreinlearn.learn.precision import guarded
from kreinlearn.nystrom.approximation import ERROR_ROWS, ErrorEstimate, Fitted, estimate_error
from kreinlearn.nystrom.core import EPS, WHITEN_RTOL, FeatureMap, eigen_map, one_shot
from kreinlearn.nystrom.sweep import Plan
from kreinlearn.sums.parallel import serial_blas

N_ROWS = {"n_rows": [Interval(Integral, 2, None, closed="left")]}  # of estimate_error


class _KreinTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KreinEstimator):
    _takes_dask = True
    _mean: Any = 0.0  # of the features, where they are centred

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks, pass once over X, fit the core."""
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """As ``fit(X).transform(X)``; if ``fit`` holds all rows nothing is evaluated again."""
        fitted = self._fit(X)
        if is_dask(X):
            return self.transform(X)
        inside, rows = fitted.panel.rows >= 0, fitted.panel.X.X
        if np.count_nonzero(inside) < length(rows):
            return self.transform(X)
        with serial_blas():
            Phi = fitted.panel.C[inside] @ self._map.W
        return self._centred(Phi.astype(precision(rows)))

    @lazily
    def transform(self, X: Any) -> Any:
        """Features (n, rank_) of any objects; the signature is not applied."""
        check_is_fitted(self)
        return self._centred(self._project(X, self._map.W))

    def _centred(self, Phi: Any) -> Any:
        Phi -= np.asarray(self._mean, dtype=Phi.dtype)
        return Phi

    @property
    def _n_features_out(self) -> int:
        return int(self.signature_.shape[0])

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
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KreinNystroem(_KreinTransformer):
    """Low-rank features of any symmetric similarity, positive definite or not.

    ``K ~ Phi diag(signature_) Phi.T`` with ``Phi = transform(X)``; K itself is never formed.

    Parameters
    ----------
    kernel : a name, a callable k(A, B) -> matrix, ``pairwise(f)``, ``dissimilarity(...)``, a
        ``Kernel``, ``"precomputed"`` or ``"precomputed_dissimilarity"``.
    n_landmarks : int, a fraction of the objects, None (all: exact), or "auto": 100, twice the
        rank if that is more; where ``landmarks`` are given it is "auto" or their number.
    rank : keep this many dimensions; None keeps all that the core gives; "auto" keeps as few as
        reach ``tol`` (0.05 if not given).
    landmarks : "auto", a scheme ("uniform", "leverage", "kmeans++", "greedy_kmeans++", "medoids",
        "medoids+greedy"), row numbers, or objects.
    core : "ls" (least squares), "truncated", or "plain" (the inverse of K_ZZ).
    method : route of the eigendecomposition: "gram" (streamed), or for comparison "svd" and "sgt".
    tol : grow landmarks until the estimated relative error is below it.
    kernel_params : parameters of a kernel given by name.
    precomputed_columns : "all" or "landmarks": the columns of a matrix given to ``transform``.
    symmetrize : "average" (with a warning) or "raise", for an asymmetric similarity. A given
        matrix is averaged with its transpose; of a callable k(x, z) counts with z the landmark,
        and of two landmarks the order that was evaluated, or the mean, counts for both.
    dtype : "float32", "float64", or None: as the data. float32 is checked on a sample of rows; if
        it would change results by more than 0.001 of their spread, float64 is used, with a warning.
    memory_budget : bytes, or a text such as "2GB"; None is a quarter of the free memory.
    store : a folder that keeps the kernel values of ``fit`` on disk, for kernels that take long.
        A fit that was killed goes on where it stopped, and no other fit (other penalties, more
        landmarks, more rows after the same ones) evaluates a pair again; if the rows, the kernel,
        its parameters or its version differ it is refused. ``predict`` does not use it.
    n_jobs : worker threads (None: as many as BLAS uses), or processes (None: none) for Python
        callables, "earth_mover" and "graph_edit", which hold the GIL.
    random_state : int, RandomState, Generator or None.
    verbose : on a terminal, show the progress of the pass over streamed rows.

    Attributes
    ----------
    signature_ : (rank_,) signs of the dimensions.
    eigenvalues_ : of the approximation on the training objects, by decreasing magnitude.
    rank_, n_landmarks_, landmarks_, landmark_indices_, kernel_ : what was found.
    dtype_ : in which vectors are held and evaluated.
    error_ : with ``tol``: the estimated relative error, its standard error, the rows sampled.

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

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        n_landmarks: Any = "auto",
        rank: Any = None,
        landmarks: Any = "auto",
        core: str = "ls",
        method: str = "gram",
        tol: float | None = None,
        kernel_params: Any = None,
        precomputed_columns: str = "all",
        symmetrize: str = "average",
        dtype: Any = None,
        memory_budget: Any = None,
        store: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.landmarks = landmarks
        self.core = core
        self.method = method
        self.tol = tol
        self.kernel_params = kernel_params
        self.precomputed_columns = precomputed_columns
        self.symmetrize = symmetrize
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.store = store
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @reported
    @guarded
    @storing
    def _fit(self, X: Any) -> Fitted:
        rng = as_generator(self.random_state)
        X, kernel = self._prepared(X, rng)
        plan = self._plan(X, kernel, None if self.rank == "auto" else self.rank)
        fitted = self._fit_map(X, kernel, plan, rng)
        if fitted.error is not None:
            self.error_ = fitted.error
        self._store(fitted, fitted.map.cut(plan.rank))
        self._warn_if_rank_lost(plan.rank, "rank")
        if plan.tol is not None and self.error_.relative > plan.tol:
            warn(
                f"the estimated error is {self.error_.relative:.3g}, tol={plan.tol} was asked "
                f"for; {_remedy(plan)}"
            )
        return fitted

    @lazily
    def eigenvectors(self, X: Any) -> Any:
        """Nystroem-extended eigenvectors (n, k), orthonormal on the training objects."""
        check_is_fitted(self)
        return self._project(X, self._map.E)

    def approximate(self, X: Any, Y: Any = None) -> Any:
        """The approximate similarities of X to Y (to X itself if not given)."""
        check_is_fitted(self)
        Phi = self._project(X, self._map.W)
        Psi = Phi if Y is None else self._project(Y, self._map.W)
        self._require_room(8 * len(Phi) * len(Psi), f"{len(Phi)} x {len(Psi)} similarities")
        return (Phi * self.signature_) @ Psi.T

    def estimate_error(
        self, X: Any, *, n_rows: int = ERROR_ROWS, random_state: Any = None
    ) -> ErrorEstimate:
        """||K - K~|| / ||K|| (Frobenius) on X, from the pairs among ``n_rows`` sampled rows."""
        check_is_fitted(self)
        validate_parameter_constraints(N_ROWS, {"n_rows": n_rows}, "estimate_error")
        if self.kernel_.takes == "precomputed" and self.precomputed_columns == "landmarks":
            raise ValueError(
                "an error estimate compares pairs of any objects, and the landmark columns hold "
                'none but those with landmarks; fit with precomputed_columns="all"'
            )
        X = self._validated(X, self.kernel_, reset=False)
        n = length(X)
        if n < 2:
            raise ValueError("one object has no pair to estimate an error from; pass 2 or more")
        sample = np.sort(as_generator(random_state).choice(n, min(n_rows, n), replace=False))
        K = self._similarities(X, sample)
        return estimate_error(K, self._features(take(X, sample), self._map.W), self._map.S, n)


class KreinPCA(_KreinTransformer):
    """Signed principal components: an embedding that keeps the negative axes.

    Axes are eigenvectors of the centred (approximate) kernel matrix by decreasing |eigenvalue|;
    the squared "distance" of two embedded objects is the sum over axes of
    ``signature_ * difference ** 2``. New objects are embedded by ``transform``.

    Parameters
    ----------
    n_components : number of axes.
    kernel, n_landmarks, landmarks, core, kernel_params, precomputed_columns, symmetrize, dtype,
    memory_budget, store, n_jobs, random_state, verbose : as in ``KreinNystroem``.

    Attributes
    ----------
    eigenvalues_, signature_ : of the axes kept.
    explained_abs_ratio_ : |eigenvalue| over the sum of all |eigenvalues| of the approximation.
    explained_squared_ratio_ : the same of squares: the share of the squared Frobenius norm.

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

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "gaussian",
        n_landmarks: Any = "auto",
        landmarks: Any = "auto",
        core: str = "ls",
        kernel_params: Any = None,
        precomputed_columns: str = "all",
        symmetrize: str = "average",
        dtype: Any = None,
        memory_budget: Any = None,
        store: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.core = core
        self.kernel_params = kernel_params
        self.precomputed_columns = precomputed_columns
        self.symmetrize = symmetrize
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.store = store
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @reported
    @guarded
    @storing
    def _fit(self, X: Any) -> Fitted:
        rng = as_generator(self.random_state)
        X, kernel = self._prepared(X, rng)
        plan = replace(self._plan(X, kernel, self.n_components, "n_components"), rank=None)
        fitted = self._fit_map(X, kernel, plan, rng)
        axes, mean = _centred_axes(fitted, length(X))
        kept = axes.cut(self.n_components)
        shares = np.abs(axes.Lambda / np.max(np.abs(axes.Lambda), initial=0.0))
        self.explained_abs_ratio_ = (shares / shares.sum())[: len(kept.S)]
        self.explained_squared_ratio_ = (shares**2 / np.sum(shares**2))[: len(kept.S)]
        self._mean = mean @ kept.W
        self._store(fitted, kept)
        self._warn_if_rank_lost(self.n_components, "n_components")
        return fitted


def _centred_axes(fitted: Fitted, n: int) -> tuple[FeatureMap, Any]:
    """The one-shot eigenbasis of the features less their mean, and the mean kernel columns."""
    W, S = fitted.map.W * np.sqrt(fitted.unit), fitted.map.S
    with serial_blas():
        G, rounding = _centred_gram(fitted, W, n)
        E, Lambda = one_shot(G, np.eye(len(S)), S, max(WHITEN_RTOL, rounding))
        # u(x) = k~(x, X) U~ / Lambda: new objects are not in the span of the centred features
        E = W @ (S[:, None] * (G @ E) / Lambda)
    return eigen_map(E, Lambda).rescaled(fitted.unit), fitted.gram.sums / n * fitted.unit


def _centred_gram(fitted: Fitted, W: Any, n: int) -> tuple[Any, float]:
    """Gram matrix of the features less their mean; what is rounding, of the longest of them.

    The features themselves are centred where all rows are held: that loses less than centring
    a Gram matrix, in which a mean is squared.
    """
    inside = fitted.panel.rows >= 0
    if np.count_nonzero(inside) == n:
        F = (fitted.panel.C[inside] / fitted.unit) @ W
        before = np.square(F).sum()
        F -= F.mean(axis=0)
        G, rounding = F.T @ F, 100 * EPS
    else:
        whole, mean = W.T @ fitted.gram.matrix @ W, fitted.gram.sums / n @ W
        before = np.trace(whole)
        G, rounding = whole - n * np.outer(mean, mean), WHITEN_RTOL
    after = max(np.trace(G), EPS**2 * before)
    return G, rounding * float(np.sqrt(before / after)) if before > 0 else rounding


def _remedy(plan: Plan) -> str:
    """What keeps a fit from its tolerance."""
    if plan.rank is not None:
        return 'raise rank, or pass rank="auto"'
    if not isinstance(plan.landmarks, str):
        return "let a scheme choose the landmarks instead of giving them"
    return "raise memory_budget, or n_landmarks for a larger pool to choose from"
