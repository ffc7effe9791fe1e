"""Kernels on vectors: one matrix product a block, then one fused element-wise pass over it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics.pairwise import distance_metrics, kernel_metrics
from sklearn.utils.validation import check_is_fitted

from kreinlearn.kernels import _fused
from kreinlearn.kernels._base import Array, Columns, Kernel, Objects, register

SAMPLE = 1000  # rows between which the median distance is taken
_REMEDY = "scale the data, with StandardScaler say"


def _floats(X: Objects) -> Any:
    """X as a float array or csr_array: float32 stays, everything else becomes float64."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _squared_norms(X: Any) -> Array:
    norms: Array = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return norms


def _require_small(norms: Array, what: str, numbers: int | Array = 0) -> None:
    """No product or sum of two rows overflows if every (squared) norm is an eighth of the range.

    ``numbers`` says which rows these are: the number of the first, or one for each.
    """
    small = norms <= np.finfo(norms.dtype).max / 8
    if not small.all():
        i = int(np.argmin(small))
        kind = "nan" if np.isnan(norms[i]) else "inf"
        number = numbers + i if isinstance(numbers, int) else int(numbers[i])
        raise ValueError(
            f"kernel produced {kind} at {what} {number}, whose norm is {kind} or too large for "
            f"{norms.dtype}; {_REMEDY}"
        )


def _require_finite(block: Array, start: int) -> None:
    finite = np.isfinite(block)
    if not finite.all():
        i, j = np.unravel_index(int(np.argmin(finite)), block.shape)
        kind = "nan" if np.isnan(block[i, j]) else "inf"
        raise ValueError(
            f"kernel produced {kind} at row {start + int(i)}, landmark {int(j)}; {_REMEDY}, "
            "or choose a kernel that is defined for these rows"
        )


class _Columns:
    """k(A, Z) in sub-blocks of rows whose size depends on m alone, each filled by ``_fill``."""

    def __init__(self, Z: Objects) -> None:
        self.Z = _floats(Z)
        key = (self.Z.dtype, sp.issparse(self.Z))
        with np.errstate(over="ignore", invalid="ignore"):
            self._ready = {key: self._prepare(*key)}

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        A = _floats(A)
        n, m = A.shape[0], self.Z.shape[0]
        dtype = np.result_type(A.dtype, self.Z.dtype)
        sparse = sp.issparse(A) or sp.issparse(self.Z)
        A = sp.csr_array(A) if sparse else A
        out = _target(out, n, m, dtype)
        step = max(64, min(1024, 2**18 // max(m, 1) // 64 * 64))  # 2 MB in float64: fits in cache
        with np.errstate(over="ignore", invalid="ignore"):
            ready = self._ready.get((dtype, sparse)) or self._prepare(dtype, sparse)
            for start in range(0, n, step):
                self._fill(A[start : start + step], out[start : start + step], ready, start)
        return out

    def _prepare(self, dtype: Any, sparse: bool) -> tuple[Any, ...]:
        """What a block needs of Z, in the block's type."""
        raise NotImplementedError

    def _fill(self, A: Any, out: Array, ready: tuple[Any, ...], start: int) -> None:
        raise NotImplementedError


def _target(out: Array | None, n: int, m: int, dtype: Any) -> Array:
    if out is None:
        return np.empty((n, m), dtype)
    fits = out.ndim == 2 and out.shape[0] >= n and out.shape[1] == m
    if not fits or out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(
            f"out is a {out.dtype} array of shape {out.shape}; pass a C-contiguous {dtype} array "
            f"of at least {n} rows and exactly {m} columns"
        )
    return out[:n]


class _DistanceColumns(_Columns):
    """[x, |x|^2, 1] [-2z, 1, |z|^2]' = |x - z|^2, then ``apply`` in place; dense rows centred."""

    def __init__(self, Z: Objects, apply: Callable[[Array], None]) -> None:
        self.apply = apply
        super().__init__(Z)

    def _prepare(self, dtype: Any, sparse: bool) -> tuple[Any, ...]:
        Z = self.Z.astype(dtype, copy=False)
        _require_small(_squared_norms(Z), "landmark")
        centre = None if sparse else Z.mean(axis=0, dtype=np.float64).astype(dtype)
        Z = sp.csr_array(Z) if sparse else Z - centre
        norms = _squared_norms(Z)
        if sparse:
            return (-2 * Z).T.tocsr(), norms, None
        return np.vstack([-2 * Z.T, np.ones_like(norms), norms]), norms, centre

    def _fill(self, A: Any, out: Array, ready: tuple[Any, ...], start: int) -> None:
        Zt, norms, centre = ready
        if centre is None:
            own = _squared_norms(A)
            _require_small(own, "row", start)
            (A @ Zt).toarray(out=out)
            out += own[:, None]
            out += norms
        else:
            d = A.shape[1]
            augmented = np.empty((len(A), d + 2), out.dtype)
            x = augmented[:, :d]
            np.subtract(A, centre, out=x)
            augmented[:, d] = _squared_norms(x)
            augmented[:, d + 1] = 1
            _require_small(augmented[:, d], "row", start)
            np.matmul(augmented, Zt, out=out)
        self.apply(out)


class _ProductColumns(_Columns):
    """gain <x, z>, then ``apply`` in place."""

    def __init__(self, Z: Objects, gain: float, apply: Callable[[Array], None]) -> None:
        self.gain, self.apply = gain, apply
        super().__init__(Z)

    def _prepare(self, dtype: Any, sparse: bool) -> tuple[Any, ...]:
        Z = self.Z.astype(dtype) * dtype.type(self.gain)
        _require_small(_squared_norms(Z), "landmark")
        return (sp.csr_array(Z.T) if sparse else np.ascontiguousarray(Z.T),)

    def _fill(self, A: Any, out: Array, ready: tuple[Any, ...], start: int) -> None:
        _require_small(_squared_norms(A), "row", start)
        if sp.issparse(A):
            (A @ ready[0]).toarray(out=out)
        else:
            np.matmul(A, ready[0], out=out)
        self.apply(out)


class _TruncatedL1Columns(_Columns):
    def __init__(self, Z: Objects, radius: float) -> None:
        self.radius = radius
        super().__init__(Z)

    def _prepare(self, dtype: Any, sparse: bool) -> tuple[Any, ...]:
        if sparse:
            raise TypeError(
                "Sparse data was passed for X, but dense data is required by truncated_l1; "
                "use '.toarray()' to convert to a dense numpy array."
            )
        _require_small(np.abs(self.Z).sum(axis=1), "landmark")
        return (np.ascontiguousarray(self.Z.T, dtype=dtype),)

    def _fill(self, A: Any, out: Array, ready: tuple[Any, ...], start: int) -> None:
        _require_small(np.abs(A).sum(axis=1), "row", start)
        _fused.truncated_l1(A.astype(out.dtype, copy=False), ready[0], self.radius, out)


class _ScikitColumns(_Columns):
    """A kernel or metric of scikit-learn or scipy by name; set metrics read booleans."""

    def __init__(self, Z: Objects, metric: str, params: Mapping[str, Any], kernel: bool) -> None:
        self.metric, self.params, self.kernel = metric, dict(params), kernel
        super().__init__(Z)

    def _prepare(self, dtype: Any, sparse: bool) -> tuple[Any, ...]:
        Z = sp.csr_array(self.Z) if sparse else self.Z
        if self.kernel:
            _require_small(_squared_norms(Z), "landmark")
        return (Z.astype(bool) if self.metric in _SET_METRICS else Z,)

    def _fill(self, A: Any, out: Array, ready: tuple[Any, ...], start: int) -> None:
        if self.kernel:
            _require_small(_squared_norms(A), "row", start)
        functions = kernel_metrics() if self.kernel else distance_metrics()
        if self.metric in functions:
            out[:] = functions[self.metric](A, ready[0], **self.params)
        else:
            A = A.astype(bool) if self.metric in _SET_METRICS else A
            out[:] = cdist(A, ready[0], self.metric, **self.params)
        _require_finite(out, start)


def _number(value: Any, name: str, *, positive: bool, words: Sequence[str] = ()) -> float:
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not good or not np.isfinite(value) or (positive and value < np.finfo(np.float64).tiny):
        kind = "a positive finite number" if positive else "a finite number"
        choices = " or ".join([kind, *map(repr, words)])
        raise ValueError(f"{name}={value!r} is not allowed; pass {choices}")
    return float(value)


def _spread(value: Any, name: str, X: Objects, rng: np.random.Generator, l1: bool = False) -> float:
    """A width: a positive number, "median" of the distances or "scale", n_features * variance.

    With ``l1`` distances are sums of absolute differences and the variance is a deviation.
    """
    if not isinstance(value, str) or value not in ("median", "scale"):
        return _number(value, name, positive=True, words=("median", "scale"))
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if value == "median":
            return _median_distance(X, rng, l1)
        spread = X.shape[1] * _variance(X) ** (0.5 if l1 else 1.0)
    return spread or 1.0  # a constant X has no scale, and needs none


def _median_distance(X: Any, rng: np.random.Generator, l1: bool) -> float:
    """Median of the non-zero (squared, or l1) distances between up to SAMPLE rows."""
    n = X.shape[0]
    chosen = np.sort(rng.choice(n, SAMPLE, replace=False)) if n > SAMPLE else np.arange(n)
    S = _floats(X[chosen]).astype(np.float64)
    distances = pdist(S, "cityblock") if l1 else _squared_distances(S)
    if not np.isfinite(distances).all():
        _require_small(np.abs(S).sum(axis=1) if l1 else _squared_norms(S), "row", chosen)
    distances = distances[distances > 0]
    if distances.size:
        return float(np.median(distances))
    if abs(S - S[[0] * len(chosen)]).max() > 0:
        raise ValueError(f"all squared distances underflow to zero; {_REMEDY}")
    return 1.0  # every sampled row is the same


def _squared_distances(S: Any) -> Array:
    """Between all pairs of rows, float64; what is only rounding is 0."""
    S = S if sp.issparse(S) else S - S.mean(axis=0)
    G = S @ S.T
    G = G.toarray() if sp.issparse(G) else G
    norms = np.diagonal(G)
    i, j = np.triu_indices(len(G), 1)
    total = norms[i] + norms[j]
    squared: Array = total - 2 * G[i, j]
    squared[squared < 64 * np.finfo(np.float64).eps * total] = 0
    return squared


def _variance(X: Any) -> float:
    """Variance of all entries, as X.var() but in row blocks."""
    size = X.shape[0] * X.shape[1]
    if sp.issparse(X):
        data = _floats(X).data.astype(np.float64)
        mean = data.sum() / size
        total = np.sum((data - mean) ** 2) + (size - data.size) * mean**2
    else:
        parts = [X[start : start + 4096] for start in range(0, X.shape[0], 4096)]
        mean = sum(np.sum(part, dtype=np.float64) for part in parts) / size
        total = sum(np.sum((part - mean) ** 2, dtype=np.float64) for part in parts)
    if not np.isfinite(total):
        raise ValueError(f"kernel produced inf: the variance of X overflows; {_REMEDY}")
    return float(total / size)


class _VectorKernel(Kernel):
    def symmetric(self, Z: Objects) -> Array:  # (m, m)
        K = np.triu(self.columns(Z)(Z), 1)
        K += K.T
        np.fill_diagonal(K, self.diagonal(Z))
        return K


class _RadialKernel(_VectorKernel):
    """k(x, z) = g(|x - z|^2): a subclass gives the fused pass ``_apply`` and ``_at_zero``, g(0)."""

    sparse = True
    width: Any
    width_: float

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.width_ = _spread(self.width, "width", X, rng)
        return self

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return _DistanceColumns(Z, self._apply())

    def diagonal(self, A: Objects) -> Array:
        A = _floats(A)
        return np.full(A.shape[0], self._at_zero(), A.dtype)

    def _apply(self) -> Callable[[Array], None]:
        raise NotImplementedError

    def _at_zero(self) -> float:
        return 1.0


class Gaussian(_RadialKernel):
    """k(x, z) = exp(-|x - z|^2 / width), positive definite.

    width : positive number, "median" of the squared distances, or "scale" = n_features * X.var()
    """

    def __init__(self, width: float | str = "median") -> None:
        self.width = width

    def _apply(self) -> Callable[[Array], None]:
        return partial(_fused.gaussians, weights=(1.0,), rates=(1 / self.width_,))


class DeltaGauss(_RadialKernel):
    """k(x, z) = exp(-|x - z|^2 / width) - exp(-ratio |x - z|^2 / width), so k(x, x) = 0.

    width : positive number, "median" of the squared distances, or "scale" = n_features * X.var()
    ratio : width over the second, usually narrower, width; not 1

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> DeltaGauss(width=2.0).fit(X, np.random.default_rng(0))(X).round(3)
    array([[0.   , 0.471, 0.011],
           [0.471, 0.   , 0.135],
           [0.011, 0.135, 0.   ]])
    """

    def __init__(self, width: float | str = "median", ratio: float = 4.0) -> None:
        self.width = width
        self.ratio = ratio

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        if _number(self.ratio, "ratio", positive=True) == 1:
            raise ValueError(
                "ratio=1 makes the kernel zero everywhere; pass another one, such as 4"
            )
        return super().fit(X, rng)

    def _apply(self) -> Callable[[Array], None]:
        return partial(_fused.delta_gauss, rate=1 / self.width_, ratio=float(self.ratio))

    def _at_zero(self) -> float:
        return 0.0


class GaussianCombination(_RadialKernel):
    """k(x, z) = sum_i weights[i] exp(-|x - z|^2 / (widths[i] unit)).

    weights : numbers of any sign
    widths : positive numbers, as many, in multiples of ``unit``
    unit : positive number (1: widths as they stand), "median" or "scale", as ``width`` elsewhere
    """

    def __init__(
        self,
        weights: Sequence[float] = (1.0, -1.0),
        widths: Sequence[float] = (1.0, 0.25),
        unit: float | str = "median",
    ) -> None:
        self.weights = weights
        self.widths = widths
        self.unit = unit

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        weights = [_number(w, "a weight", positive=False) for w in np.ravel(self.weights).tolist()]
        widths = [_number(s, "a width", positive=True) for s in np.ravel(self.widths).tolist()]
        if len(weights) != len(widths) or not weights:
            raise ValueError(
                f"weights={self.weights!r} and widths={self.widths!r}: pass one width a weight"
            )
        self.unit_ = _spread(self.unit, "unit", X, rng)
        self.widths_ = tuple(s * self.unit_ for s in widths)
        return self

    def _apply(self) -> Callable[[Array], None]:
        weights = tuple(np.ravel(self.weights).tolist())
        return partial(_fused.gaussians, weights=weights, rates=tuple(1 / s for s in self.widths_))

    def _at_zero(self) -> float:
        return float(np.sum(self.weights))


class Epanechnikov(_RadialKernel):
    """k(x, z) = max(0, 1 - |x - z|^2 / width)^power.

    width : positive number, "median" of the squared distances, or "scale" = n_features * X.var()
    power : positive number; 1, 2 and 3 are fastest
    """

    def __init__(self, width: float | str = "median", power: float = 1) -> None:
        self.width = width
        self.power = power

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        _number(self.power, "power", positive=True)
        return super().fit(X, rng)

    def _apply(self) -> Callable[[Array], None]:
        return partial(_fused.epanechnikov, rate=1 / self.width_, power=self.power)


class Multiquadric(_RadialKernel):
    """k(x, z) = sqrt(1 + |x - z|^2 / width): conditionally negative definite, grows with distance.

    width : positive number, "median" of the squared distances, or "scale" = n_features * X.var()
    """

    def __init__(self, width: float | str = "median") -> None:
        self.width = width

    def _apply(self) -> Callable[[Array], None]:
        return partial(_fused.multiquadric, width=self.width_)


class Sigmoid(_VectorKernel):
    """k(x, z) = tanh(gain <x, z> + bias).

    gain : number, or "scale" = 1 / (n_features * X.var()), which is 1 / n_features if standardised
    bias : number
    """

    sparse = True

    def __init__(self, gain: float | str = "scale", bias: float = -1.0) -> None:
        self.gain = gain
        self.bias = bias

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        _number(self.bias, "bias", positive=False)
        if isinstance(self.gain, str) and self.gain == "scale":
            self.gain_ = 1 / _spread("scale", "gain", X, rng)
        else:
            self.gain_ = _number(self.gain, "gain", positive=False, words=("scale",))
        return self

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return _ProductColumns(Z, self.gain_, partial(_fused.tanh, bias=float(self.bias)))

    def diagonal(self, A: Objects) -> Array:
        check_is_fitted(self)
        A = _floats(A)
        with np.errstate(over="ignore"):
            norms = _squared_norms(A)
        _require_small(norms, "row")
        return np.tanh(norms * A.dtype.type(self.gain_) + A.dtype.type(self.bias))  # type: ignore[no-any-return]


class TruncatedL1(_VectorKernel):
    """k(x, z) = max(0, radius - sum_j |x_j - z_j|); dense rows only.

    radius : positive number, "median" of the l1 distances, or "scale" = n_features * X.std()
    """

    def __init__(self, radius: float | str = "median") -> None:
        self.radius = radius

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.radius_ = _spread(self.radius, "radius", X, rng, l1=True)
        return self

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return _TruncatedL1Columns(Z, self.radius_)

    def diagonal(self, A: Objects) -> Array:
        check_is_fitted(self)
        A = _floats(A)
        return np.full(len(A), self.radius_, A.dtype)


_SPARSE_NAMES = {
    "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid",
    "cityblock", "euclidean", "l1", "l2", "manhattan",
}  # fmt: skip
_SET_METRICS = {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
_SCIPY_METRICS = _SET_METRICS | {
    "braycurtis", "canberra", "chebyshev", "correlation", "hamming",
    "mahalanobis", "minkowski", "seuclidean", "sqeuclidean",
}  # fmt: skip
_SELF_VALUE = {"rbf": 1.0, "laplacian": 1.0, "chi2": 1.0, "additive_chi2": 0.0, "russellrao": None}


def sklearn_kernel_names() -> list[str]:
    return sorted(kernel_metrics())


def sklearn_metric_names() -> list[str]:
    """The names pairwise_distances takes, scipy's among them."""
    return sorted((set(distance_metrics()) | _SCIPY_METRICS) - {"precomputed"})


class _ScikitNamed(_VectorKernel):
    """A kernel or metric by its scikit-learn name; ``params`` are its keywords."""

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
        return self

    def diagonal(self, A: Objects) -> Array:
        A = _floats(A)
        known = _SELF_VALUE.get(self.metric, 0.0 if self.is_dissimilarity else None)
        if known is not None:
            return np.full(A.shape[0], known, A.dtype)
        parts = [A[start : start + 64] for start in range(0, A.shape[0], 64)]
        return np.concatenate([np.diagonal(self.columns(part)(part)) for part in parts])


class SklearnKernel(_ScikitNamed):
    """Any kernel of ``sklearn.metrics.pairwise``: ``SklearnKernel("rbf", {"gamma": 0.1})``."""

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        super().fit(X, rng)
        known = set(signature(kernel_metrics()[self.metric]).parameters) - {
            "X",
            "Y",
            "dense_output",
        }
        if not known.issuperset(self.params_):
            raise ValueError(f"metric={self.metric!r} takes {sorted(known)}, got {self.params!r}")
        return self


class SklearnMetric(_ScikitNamed):
    """Any metric of ``pairwise_distances``; what it learns from data, it learns in ``fit``."""

    is_dissimilarity = True

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        super().fit(X, rng)
        if self.metric == "seuclidean" and "V" not in self.params_:
            V = np.var(_floats(X), axis=0, ddof=1, dtype=np.float64)
            self.params_["V"] = np.where(V > 0, V, 1.0)  # a constant feature is not scaled
        elif self.metric == "mahalanobis" and "VI" not in self.params_:
            self.params_["VI"] = _inverse_covariance(_floats(X))
        elif self.metric in _SET_METRICS and not np.isin(X, (0, 1)).all():
            warnings.warn(
                f"metric {self.metric!r} compares sets: X is read as booleans, non-zero as True",
                DataConversionWarning,
                stacklevel=2,
            )
        return self


def _inverse_covariance(X: Array) -> Array:
    covariance = np.atleast_2d(np.cov(X, rowvar=False, dtype=np.float64))
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    if rank < len(covariance):
        raise ValueError(
            f"metric='mahalanobis': the covariance of X has rank {rank} of {len(covariance)}; "
            "drop dependent features or pass params={'VI': ...}"
        )
    return np.linalg.inv(covariance)


register("delta_gauss", DeltaGauss)
register("epanechnikov", Epanechnikov)
register("gaussian", Gaussian)
register("gaussian_combination", GaussianCombination)
register("multiquadric", Multiquadric)
register("sigmoid", Sigmoid)
register("truncated_l1", TruncatedL1)
