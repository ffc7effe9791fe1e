"""A person's own function as a kernel: k(A, B) on blocks, or f(a, b) on two objects."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Self

import joblib
import numpy as np

from kreinlearn.blocks import length, rows, take
from kreinlearn.kernels._base import Array, Columns, Kernel, Objects, symmetry_rtol

CHUNKS_PER_JOB = 4
DIAGONAL_SQUARE = 8  # objects a call for k(x, x): an eighth of the calls, eight times the pairs


class CallableKernel(Kernel):
    """``func(A, B, **params)`` -> (len(A), len(B)); runs in ``jobs`` processes, else in line."""

    takes = "any"
    threads = False
    sparse = True
    jobs = 1  # processes; the estimator sets it on its own copy

    def __init__(
        self,
        func: Callable[..., Any],
        params: Mapping[str, Any] | None = None,
        is_dissimilarity: bool = False,
    ) -> None:
        self.func = func
        self.params = params
        self.is_dissimilarity = is_dissimilarity

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        if self.jobs > 1:
            self._require_picklable()
        return self

    def _require_picklable(self) -> None:
        try:
            pickle.dumps(joblib.wrap_non_picklable_objects((self.func, self.params)))
        except Exception as error:
            raise TypeError(
                f"the kernel function {self.func!r} cannot be sent to other processes ({error}); "
                "pass n_jobs=1, or a function defined at the top of a module"
            ) from error

    def block(self, A: Objects, B: Objects) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite will be an error
            K = self.func(A, B, **(self.params or {}))
        return as_block(K, length(A), length(B))

    def columns(self, Z: Objects) -> Columns:
        return CallableColumns(self, Z)

    def diagonal(self, A: Objects) -> Array:
        step = DIAGONAL_SQUARE
        parts = [rows(A, start, start + step) for start in range(0, length(A), step)]
        return np.concatenate([np.empty(0), *(np.diagonal(self.block(a, a)) for a in parts)])


class PairwiseKernel(CallableKernel):
    """``func(a, b, **params)`` -> number, on single objects; every pair is evaluated once.

    Only ``probe`` evaluates a few again, to see whether values are symmetric and repeat.
    """

    def block(self, A: Objects, B: Objects) -> Array:
        return np.array([self._row(a, B) for a in A], dtype=np.float64).reshape(
            length(A), length(B)
        )

    def _row(self, a: Any, B: Objects) -> list[float]:
        params = self.params or {}
        return [as_number(self.func(a, b, **params)) for b in B]

    def diagonal(self, A: Objects) -> Array:
        if self.is_dissimilarity:
            return np.zeros(length(A))
        return np.array([self._row(a, [a])[0] for a in A], dtype=np.float64)

    def symmetric(self, Z: Objects, diagonal: Array | None = None) -> Array:
        """Every pair once; numbers in ``diagonal`` are taken as they are, NaN is evaluated."""
        m = length(Z)
        K, own = np.zeros((m, m)), np.full(m, np.nan) if diagonal is None else diagonal
        spans = _spans(m, self.jobs)
        parts = self._each([(self._upper_rows, Z, own, *span) for span in spans])
        for (start, stop), part in zip(spans, parts, strict=True):
            K[start:stop] = part
        return K + np.triu(K, 1).T

    def _upper_rows(self, Z: Objects, own: Array, start: int, stop: int) -> Array:
        """Rows start..stop of the upper triangle, zeros below it."""
        part = np.zeros((stop - start, length(Z)))
        for i in range(start, stop):
            known = not np.isnan(own[i])
            part[i - start, i] = own[i]
            part[i - start, i + known :] = self._row(Z[i], Z[i + known :])
        return part

    def _each(self, calls: list[tuple[Any, ...]]) -> list[Array]:
        if self.jobs == 1:
            return [f(*args) for f, *args in calls]
        parallel = joblib.Parallel(n_jobs=self.jobs)
        return list(parallel(joblib.delayed(f)(*args) for f, *args in calls))


class CallableColumns:
    def __init__(self, kernel: CallableKernel, Z: Objects) -> None:
        self.kernel, self.Z = kernel, Z

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        K = self._evaluate(A)
        if out is None:
            return K
        out[: len(K)] = K
        return out[: len(K)]

    def _evaluate(self, A: Objects) -> Array:
        n, jobs = length(A), self.kernel.jobs
        if jobs == 1 or n < 2:
            return self.kernel.block(A, self.Z)
        parts = joblib.Parallel(n_jobs=jobs)(
            joblib.delayed(self.kernel.block)(rows(A, *span), self.Z) for span in _spans(n, jobs)
        )
        return np.concatenate(parts)


def _spans(n: int, jobs: int) -> list[tuple[int, int]]:
    """0..n in a few parts for each process."""
    edges = np.unique(np.linspace(0, n, jobs * CHUNKS_PER_JOB + 1, dtype=int)).tolist()
    return list(itertools.pairwise(edges))


def pairwise(f: Callable[..., float], **params: Any) -> PairwiseKernel:
    """A similarity from a function f(a, b) of two single objects of any kind.

    >>> from kreinlearn.kernels import pairwise
    >>> k = pairwise(lambda a, b: float(len(a & b)))
    >>> k([{1, 2}, {2, 3, 4}])
    array([[2., 1.],
           [1., 3.]])
    """
    if not callable(f):
        raise TypeError(f"pairwise takes a function of two objects, got {f!r}")
    return PairwiseKernel(f, params or None)


def as_block(K: Any, n_rows: int, n_columns: int) -> Array:
    """What a callable returned, as a real matrix of the expected shape."""
    K = np.asarray(K) if not hasattr(K, "toarray") else K.toarray()
    if K.dtype.kind not in "fiub":
        raise TypeError(
            f"the kernel must return real numbers, got dtype {K.dtype}; "
            "return a float matrix of shape (len(A), len(B))"
        )
    if K.shape != (n_rows, n_columns):
        raise ValueError(
            f"the kernel returned shape {K.shape}, expected ({n_rows}, {n_columns}) = "
            "(len(A), len(B)); for a function of two single objects use kernel=pairwise(f)"
        )
    return np.asarray(K, dtype=np.float32 if K.dtype == np.float32 else np.float64)


def as_number(value: Any) -> float:
    if value is None or isinstance(value, str | bytes) or np.iscomplexobj(value) or np.ndim(value):
        raise TypeError(
            f"a pairwise kernel must return one real number, got {value!r}; "
            "for a function of whole blocks pass kernel=f itself"
        )
    return float(value)


ASYMMETRY_PAIRS = 50
REPEATED_PAIRS = 8


def probe(kernel: CallableKernel, Z: Objects, rng: np.random.Generator) -> tuple[float, float]:
    """Relative asymmetry over up to 50 pairs of Z, relative change when 8 are evaluated again.

    Either is 0.0 if it is no more than rounding.
    """
    i, j = rng.integers(length(Z), size=(2, ASYMMETRY_PAIRS))
    pairs = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)])[:, i != j], axis=1)

    def values(a: Array, b: Array) -> Array:
        return np.array(
            [kernel.block(take(Z, [s]), take(Z, [t]))[0, 0] for s, t in zip(a, b, strict=True)]
        )

    there, back = values(*pairs), values(*pairs[::-1])
    again = values(*pairs[:, :REPEATED_PAIRS])
    largest = float(np.max(np.abs([there, back]), initial=0.0))

    def relative(change: Array) -> float:
        gap = float(np.max(np.abs(change), initial=0.0))
        return gap / largest if gap > symmetry_rtol(there.dtype) * largest else 0.0

    return relative(there - back), relative(there[:REPEATED_PAIRS] - again)
