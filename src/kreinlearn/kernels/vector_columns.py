"""Kernel values of blocks of vectors, and widths that are taken from the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.utils.extmath import row_norms

from kreinlearn.data.tiles import TILE, Source, take
from kreinlearn.kernels.base import Array, Objects, product

REMEDY = "scale the data, with StandardScaler say"
FINITE, POSITIVE = "pass a finite number", "pass a positive finite number"
SAMPLE = 1000  # rows between which the median distance is taken


def squared_norms(X: Objects) -> Array:
    """|x|^2 of every row."""
    if sp.issparse(X):
        return np.asarray(row_norms(X, squared=True))
    return np.asarray(np.einsum("ij,ij->i", X, X))


def floats(X: Objects) -> Any:
    """X in float64, as an array or csr_array."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    return X.astype(np.float64, copy=False)


def require_small(norms: Array, what: str, numbers: int | Array = 0) -> None:
    """Refuse rows so large that products or sums of two of them could overflow.

    ``numbers`` says which rows these are: the number of the first, or one number per row.
    """
    small = norms <= np.finfo(np.float64).max / 8
    if not small.all():
        i = int(np.argmin(small))
        kind = "nan" if np.isnan(norms[i]) else "inf"
        number = numbers + i if isinstance(numbers, int) else int(numbers[i])
        raise ValueError(
            f"kernel produced {kind} at {what} {number}, whose norm is {kind} or too large for "
            f"float64; {REMEDY}"
        )


def fused(name: str, **numbers: Any) -> Callable[..., None]:
    """A loop of ``_fused``, which is imported when it is first needed: importing numba is slow."""
    loop: Callable[..., None] = getattr(import_module("kreinlearn.kernels._fused"), name)
    return partial(loop, **numbers)


class BlockColumns:
    """From rows A to k(A, Z), in sub-blocks of rows whose size depends on the number of columns
    alone.

    A subclass gives ``_prepare`` and ``_fill``.
    """

    def __init__(self, Z: Objects) -> None:
        self.Z = floats(Z)
        sparse = sp.issparse(self.Z)
        with np.errstate(over="ignore", invalid="ignore"):
            self._ready = {sparse: self._prepare(sparse)}

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        A = floats(A)
        n, m = A.shape[0], self.Z.shape[0]
        sparse = sp.issparse(A) or sp.issparse(self.Z)
        A = sp.csr_array(A) if sparse else A
        out = _target(out, n, m)
        step = max(64, min(1024, 2**18 // max(m, 1) // 64 * 64))  # 2 MB in float64: fits in cache
        with np.errstate(over="ignore", invalid="ignore"):
            ready = self._ready.get(sparse) or self._prepare(sparse)
            for start in range(0, n, step):
                self._fill(A[start : start + step], out[start : start + step], ready, start)
        return out

    def _prepare(self, sparse: bool) -> tuple[Any, ...]:
        """What every sub-block needs of Z."""
        raise NotImplementedError

    def _fill(self, A: Objects, out: Array, ready: tuple[Any, ...], start: int) -> None:
        """Write the values of rows A, which begin with row ``start``, into ``out``."""
        raise NotImplementedError


def _target(out: Array | None, n: int, m: int) -> Array:
    """The array for the values: a new one, or the first rows of ``out`` if that fits."""
    if out is None:
        return np.empty((n, m))
    fits = out.ndim == 2 and out.shape[0] >= n and out.shape[1] == m
    if not fits or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise ValueError(
            f"out is a {out.dtype} array of shape {out.shape}; pass a C-contiguous float64 array "
            f"of at least {n} rows and exactly {m} columns"
        )
    return out[:n]


class DistanceColumns(BlockColumns):
    """|x - z|^2 = [x, |x|^2, 1] [-2z, 1, |z|^2]', then ``apply`` in place; dense rows are
    centred.
    """

    def __init__(self, Z: Objects, apply: Callable[[Array], None]) -> None:
        self.apply = apply
        super().__init__(Z)

    def _prepare(self, sparse: bool) -> tuple[Any, ...]:
        require_small(squared_norms(self.Z), "landmark")
        centre = None if sparse else self.Z.mean(axis=0)
        Z = sp.csr_array(self.Z) if sparse else self.Z - centre
        norms = squared_norms(Z)
        if sparse:
            return (-2 * Z).T.tocsr(), norms, None
        return np.vstack([-2 * Z.T, np.ones_like(norms), norms]), norms, centre

    def _fill(self, A: Objects, out: Array, ready: tuple[Any, ...], start: int) -> None:
        Zt, norms, centre = ready
        if centre is None:
            own = squared_norms(A)
            require_small(own, "row", start)
            (A @ Zt).toarray(out=out)
            out += own[:, None]
            out += norms
        else:
            d = A.shape[1]
            augmented = np.empty((len(A), d + 2))
            x = augmented[:, :d]
            np.subtract(A, centre, out=x)
            augmented[:, d] = squared_norms(x)
            augmented[:, d + 1] = 1
            require_small(augmented[:, d], "row", start)
            product(augmented, Zt, out)
        self.apply(out)


class ProductColumns(BlockColumns):
    """gain <x, z>, then ``apply`` in place."""

    def __init__(self, Z: Objects, gain: float, apply: Callable[[Array], None]) -> None:
        self.gain, self.apply = gain, apply
        super().__init__(Z)

    def _prepare(self, sparse: bool) -> tuple[Any, ...]:
        Z = self.Z * self.gain
        require_small(squared_norms(Z), "landmark")
        return (sp.csr_array(Z.T) if sparse else np.ascontiguousarray(Z.T),)

    def _fill(self, A: Objects, out: Array, ready: tuple[Any, ...], start: int) -> None:
        require_small(squared_norms(A), "row", start)
        if sp.issparse(A):
            (A @ ready[0]).toarray(out=out)
        else:
            product(A, ready[0], out)
        self.apply(out)


class TruncatedL1Columns(BlockColumns):
    """max(0, radius - |x - z|_1), in one pass over dense rows."""

    def __init__(self, Z: Objects, radius: float) -> None:
        self.radius = radius
        super().__init__(Z)

    def _prepare(self, sparse: bool) -> tuple[Any, ...]:
        if sparse:
            raise TypeError(
                "Sparse data was passed for X, but dense data is required by truncated_l1; "
                "use '.toarray()' to convert to a dense numpy array."
            )
        require_small(np.abs(self.Z).sum(axis=1), "landmark")
        return (np.ascontiguousarray(self.Z.T),)

    def _fill(self, A: Objects, out: Array, ready: tuple[Any, ...], start: int) -> None:
        require_small(np.abs(A).sum(axis=1), "row", start)
        fused("truncated_l1")(A, ready[0], self.radius, out)


# Parameters that are numbers


def number(
    value: Any, name: str, remedy: str = FINITE, *, least: float = -np.inf, most: float = np.inf,
    kind: type = Real,
) -> float:  # fmt: skip
    """A finite number from ``least`` to ``most``; the error ends with what to pass instead."""
    good = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    if not good or not least <= value <= most or not np.isfinite(value):
        raise ValueError(f"{name}={value!r} is not allowed; {remedy}")
    return float(value)


def not_negative(value: Any, name: str) -> float:
    """A finite number, 0 or more."""
    return number(value, name, f"{FINITE}, 0 or more", least=0.0)


def positive(value: Any, name: str, remedy: str = POSITIVE) -> float:
    """A finite number that is not so small that one over it overflows."""
    return number(value, name, remedy, least=float(np.finfo(np.float64).tiny))


def spread(value: Any, name: str, X: Objects, rng: np.random.Generator, l1: bool = False) -> float:
    """A width: a positive number, the "median" of the distances, or "scale", n_features * variance.

    With ``l1`` distances are sums of absolute differences, and the standard deviation replaces the
    variance.
    """
    if not isinstance(value, str) or value not in ("median", "scale"):
        return positive(value, name, f"{POSITIVE} or 'median' or 'scale'")
    if not isinstance(X, Source):
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if value == "median":
            return _median_distance(X, rng, l1)
        width = X.shape[1] * _variance(X) ** (0.5 if l1 else 1.0)
    return width or 1.0  # a constant X has no scale, and needs none


def sample(n: int, size: int, rng: np.random.Generator) -> Array:
    """Row numbers in rising order: ``size`` of n, or all of them if there are fewer."""
    return np.sort(rng.choice(n, size, replace=False)) if n > size else np.arange(n)


def evenly(n: int) -> Array:
    """Up to TILE row numbers, evenly spaced: kernels on objects are fitted to these on Dask."""
    return np.unique(np.linspace(0, n - 1, TILE).astype(np.intp))


def _median_distance(X: Objects, rng: np.random.Generator, l1: bool) -> float:
    """The median of the non-zero (squared, or l1) distances between up to SAMPLE rows."""
    chosen = sample(X.shape[0], SAMPLE, rng)
    S = floats(take(X, chosen))
    distances = pdist(S, "cityblock") if l1 else _squared_distances(S)
    if not np.isfinite(distances).all():
        require_small(np.abs(S).sum(axis=1) if l1 else squared_norms(S), "row", chosen)
    distances = distances[distances > 0]
    if distances.size:
        return float(np.median(distances))
    if abs(S - S[[0] * len(chosen)]).max() > 0:
        raise ValueError(f"all squared distances underflow to zero; {REMEDY}")
    return 1.0  # every sampled row is the same


def _squared_distances(S: Objects) -> Array:
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


def _variance(X: Objects) -> float:
    """Variance of all entries, as X.var() but in row blocks."""
    size = X.shape[0] * X.shape[1]
    if sp.issparse(X):
        data = floats(X).data
        mean = data.sum() / size
        total = np.sum((data - mean) ** 2) + (size - data.size) * mean**2
    else:
        parts = [X[start : start + 4096] for start in range(0, X.shape[0], 4096)]
        mean = sum(np.sum(part, dtype=np.float64) for part in parts) / size
        total = sum(np.sum((part - mean) ** 2, dtype=np.float64) for part in parts)
    if not np.isfinite(total):
        raise ValueError(f"kernel produced inf: the variance of X overflows; {REMEDY}")
    return float(total / size)
