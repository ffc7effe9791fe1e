"""All kernels and metrics of scikit-learn, by the names that they have there."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics.pairwise import distance_metrics, kernel_metrics
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.tiles import first_not_finite
from kreinlearn.kernels.base import Array, Columns, Objects
from kreinlearn.kernels.vector_columns import (
    REMEDY,
    BlockColumns,
    floats,
    require_small,
    squared_norms,
)
from kreinlearn.kernels.vectors import VectorKernel

_SPARSE_NAMES = {
    "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid",
    "cityblock", "euclidean", "l1", "l2", "manhattan",
}  # fmt: skip
SET_METRICS = {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
_SCIPY_METRICS = SET_METRICS | {
    "braycurtis", "canberra", "chebyshev", "correlation", "hamming",
    "mahalanobis", "minkowski", "seuclidean", "sqeuclidean",
}  # fmt: skip
_SELF_VALUE = {"rbf": 1.0, "laplacian": 1.0, "chi2": 1.0, "additive_chi2": 0.0, "russellrao": None}
_NOT_PARAMS = {"X", "Y", "X_norm_squared", "Y_norm_squared", "dense_output"}
_SCIPY_PARAMS = {"minkowski": {"p", "w"}, "seuclidean": {"V"}, "mahalanobis": {"VI"}}


def sklearn_kernel_names() -> list[str]:
    """The names of scikit-learn's kernels."""
    return sorted(kernel_metrics())


def sklearn_metric_names() -> list[str]:
    """The names that ``pairwise_distances`` accepts, including scipy's.

    "nan_euclidean" is left out, because missing values are refused before a kernel sees them.
    """
    return sorted((set(distance_metrics()) | _SCIPY_METRICS) - {"precomputed", "nan_euclidean"})


class _ScikitNamed(VectorKernel):
    """A kernel or metric by its name in scikit-learn, with ``params`` as its keyword arguments."""

    def __init__(self, metric: str, params: Mapping[str, Any] | None = None) -> None:
        self.metric = metric
        self.params = params

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return self.metric in _SPARSE_NAMES

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return _ScikitColumns(Z, self.metric, self.params_, not self.is_dissimilarity)

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        names = sklearn_metric_names() if self.is_dissimilarity else sklearn_kernel_names()
        if self.metric not in names:
            raise ValueError(
                f"metric={self.metric!r} is unknown to scikit-learn; choose from {names}"
            )
        self.params_ = dict(self.params or {})
        known = self.known_params()
        if not known.issuperset(self.params_):
            raise ValueError(f"metric={self.metric!r} takes {sorted(known)}, got {self.params!r}")
        return self

    def known_params(self) -> set[str]:
        """The names of the parameters that the kernel or metric takes."""
        functions = distance_metrics() if self.is_dissimilarity else kernel_metrics()
        if self.metric in functions:
            return set(signature(functions[self.metric]).parameters) - _NOT_PARAMS
        return _SCIPY_PARAMS.get(self.metric, {"w"})

    def diagonal(self, A: Objects) -> Array:
        A = floats(A)
        known = _SELF_VALUE.get(self.metric, 0.0 if self.is_dissimilarity else None)
        if known is not None:
            return np.full(A.shape[0], known)
        parts = [A[start : start + 64] for start in range(0, A.shape[0], 64)]
        return np.concatenate([np.diagonal(self.columns(part)(part)) for part in parts])


class SklearnKernel(_ScikitNamed):
    """A kernel of ``sklearn.metrics.pairwise``.

    Parameters
    ----------
    metric : str
        The name of the kernel, such as "rbf" or "polynomial".
    params : mapping, default=None
        Keyword arguments of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> k = SklearnKernel("polynomial", {"degree": 2, "gamma": 1.0, "coef0": 0.0})
    >>> k.fit([[1.0], [2.0]], np.random.default_rng(0))([[1.0], [2.0]])
    array([[ 1.,  4.],
           [ 4., 16.]])
    """


class SklearnMetric(_ScikitNamed):
    """A metric of ``sklearn.metrics.pairwise_distances``, as a dissimilarity.

    Variances and covariances that a metric needs are estimated in ``fit``.

    Parameters
    ----------
    metric : str
        The name of the metric, such as "cityblock" or "minkowski".
    params : mapping, default=None
        Keyword arguments of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> d = SklearnMetric("minkowski", {"p": 1})
    >>> d.fit([[0.0, 0.0], [1.0, 2.0]], np.random.default_rng(0))([[0.0, 0.0], [1.0, 2.0]])
    array([[0., 3.],
           [3., 0.]])
    """

    is_dissimilarity = True

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        super().fit(X, rng)
        if self.params:
            self._try_params(floats(X[:1]))
        if self.metric == "seuclidean" and "V" not in self.params_:
            V = np.var(floats(X), axis=0, ddof=1, dtype=np.float64)
            self.params_["V"] = np.where(V > 0, V, 1.0)  # a constant feature is not scaled
        elif self.metric == "mahalanobis" and "VI" not in self.params_:
            self.params_["VI"] = _inverse_covariance(floats(X))
        elif self.metric in SET_METRICS and not np.isin(X, (0, 1)).all():
            warn(
                f"metric {self.metric!r} compares sets: X is read as booleans, non-zero as True",
                DataConversionWarning,
            )
        return self

    def _try_params(self, A: Objects) -> None:
        """Refuse parameters that the metric refuses, tried on one row against itself."""
        p = self.params_.get("p", 2)
        if not isinstance(p, Real) or not float(p) > 0:
            raise ValueError(f"metric={self.metric!r}: p={p!r} is not allowed; pass a number > 0")
        try:
            with np.errstate(all="ignore"):
                _values(self.metric, A, A, self.params_, kernel=False)
        except (TypeError, ValueError) as error:
            why = str(error).splitlines()[0]
            raise ValueError(
                f"metric={self.metric!r} cannot be computed with params={self.params!r}: {why}"
            ) from error


def _inverse_covariance(X: Array) -> Array:
    covariance = np.atleast_2d(np.cov(X, rowvar=False, dtype=np.float64))
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    if rank < len(covariance):
        raise ValueError(
            f"metric='mahalanobis': the covariance of X has rank {rank} of {len(covariance)}; "
            "drop dependent features or pass params={'VI': ...}"
        )
    return np.linalg.inv(covariance)


class _ScikitColumns(BlockColumns):
    """Columns of a kernel or metric by name; metrics of sets read rows as booleans."""

    def __init__(self, Z: Objects, metric: str, params: Mapping[str, Any], kernel: bool) -> None:
        self.metric, self.params, self.kernel = metric, dict(params), kernel
        super().__init__(Z)

    def _prepare(self, sparse: bool) -> tuple[Any, ...]:
        Z = sp.csr_array(self.Z) if sparse else self.Z
        if self.kernel:
            require_small(squared_norms(Z), "landmark")
        return (Z.astype(bool) if self.metric in SET_METRICS else Z,)

    def _fill(self, A: Objects, out: Array, ready: tuple[Any, ...], start: int) -> None:
        if self.kernel:
            require_small(squared_norms(A), "row", start)
        out[:] = _values(self.metric, A, ready[0], self.params, self.kernel)
        _require_finite(out, start)


def _values(metric: str, A: Objects, Z: Objects, params: Mapping[str, Any], kernel: bool) -> Any:
    functions = kernel_metrics() if kernel else distance_metrics()
    if metric in functions:
        return functions[metric](A, Z, **params)
    if metric in SET_METRICS:
        A, Z = A.astype(bool), Z.astype(bool, copy=False)
    return cdist(A, Z, metric, **params)


def _require_finite(block: Array, start: int) -> None:
    bad = first_not_finite(block)
    if bad is not None:
        i, j, kind = bad
        raise ValueError(
            f"kernel produced {kind.lower()} at row {start + i}, landmark {j}; {REMEDY}, "
            "or choose a kernel that is defined for these rows"
        )
