"""Widths of kernels on vectors, which are numbers or are taken from the data."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from kreinlearn.data.tiles import Source, take
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.kernels.columns import REMEDY, floats, require_small, squared_norms

SAMPLE = 1000  # rows between which the median distance is taken


def number(value: Any, name: str, *, positive: bool, words: Sequence[str] = ()) -> float:
    """A finite number, positive if so asked; the error lists the ``words`` that are allowed too."""
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not good or not np.isfinite(value) or (positive and value < np.finfo(np.float64).tiny):
        kind = "a positive finite number" if positive else "a finite number"
        choices = " or ".join([kind, *map(repr, words)])
        raise ValueError(f"{name}={value!r} is not allowed; pass {choices}")
    return float(value)


def spread(value: Any, name: str, X: Objects, rng: np.random.Generator, l1: bool = False) -> float:
    """A width: a positive number, the "median" of the distances, or "scale", n_features * variance.

    With ``l1`` distances are sums of absolute differences, and the standard deviation replaces the
    variance.
    """
    if not isinstance(value, str) or value not in ("median", "scale"):
        return number(value, name, positive=True, words=("median", "scale"))
    if not isinstance(X, Source):
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if value == "median":
            return _median_distance(X, rng, l1)
        width = X.shape[1] * _variance(X) ** (0.5 if l1 else 1.0)
    return width or 1.0  # a constant X has no scale, and needs none


def _median_distance(X: Objects, rng: np.random.Generator, l1: bool) -> float:
    """The median of the non-zero (squared, or l1) distances between up to SAMPLE rows."""
    n = X.shape[0]
    chosen = np.sort(rng.choice(n, SAMPLE, replace=False)) if n > SAMPLE else np.arange(n)
    S = floats(take(X, chosen)).astype(np.float64)
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
        data = floats(X).data.astype(np.float64)
        mean = data.sum() / size
        total = np.sum((data - mean) ** 2) + (size - data.size) * mean**2
    else:
        parts = [X[start : start + 4096] for start in range(0, X.shape[0], 4096)]
        mean = sum(np.sum(part, dtype=np.float64) for part in parts) / size
        total = sum(np.sum((part - mean) ** 2, dtype=np.float64) for part in parts)
    if not np.isfinite(total):
        raise ValueError(f"kernel produced inf: the variance of X overflows; {REMEDY}")
    return float(total / size)
