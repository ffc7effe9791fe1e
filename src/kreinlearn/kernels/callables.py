"""A person's own function as a kernel: k(A, B) of two blocks, or f(a, b) of two objects."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from kreinlearn.data.tiles import length, take
from kreinlearn.kernels._memory import remembered, remembered_diagonal, remembered_square
from kreinlearn.kernels.base import (
    Array,
    Columns,
    Kernel,
    Objects,
    delivered,
    mirrored,
    symmetry_rtol,
)
from kreinlearn.kernels.domains import Anything, Domain
from kreinlearn.kernels.processes import ProcessKernel, Shelf, chunks

CALL_ROWS = 128  # rows per call of a block function, the same for any number of processes
DIAGONAL_SQUARE = 8  # objects per call for k(x, x): fewer calls, but eight pairs per object


class CallableKernel(ProcessKernel):
    """A function of two blocks of objects as a kernel.

    Parameters
    ----------
    func : callable
        ``func(A, B, **params)`` returns a matrix of shape (len(A), len(B)).
    params : mapping, default=None
        Keyword arguments of the function.
    is_dissimilarity : bool, default=False
        Whether small values mean that two objects are alike.
    """

    domain: Domain = Anything()
    threads = False
    pair_seconds = None
    sparse = True
    rows_per_call = CALL_ROWS
    diagonal_cost = DIAGONAL_SQUARE

    def __init__(
        self,
        func: Callable[..., Any],
        params: Mapping[str, Any] | None = None,
        is_dissimilarity: bool = False,
    ) -> None:
        self.func = func
        self.params = params
        self.is_dissimilarity = is_dissimilarity

    @property
    def untrusted(self) -> list[Kernel]:
        return [self]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the function stand beside its own: ``kernel__gap`` for f(a, b, gap=1)."""
        own: dict[str, Any] = super().get_params(deep=deep)
        return {**(self.params or {}), **own} if deep else own

    def set_params(self, **params: Any) -> Self:
        own = {name: params.pop(name) for name in params.keys() & super().get_params(deep=False)}
        super().set_params(**own)
        if params:
            _require_parameters(self.func, params)
            self.params = {**(self.params or {}), **params}
        return self

    def block(self, A: Objects, B: Objects) -> Array:
        """k(A, B) by one call of the function, checked."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # checked by the caller
                K = self.func(A, B, **(self.params or {}))
        except Exception as error:
            if self._takes_single_objects(A, B):
                raise TypeError(
                    f"kernel={self.func!r} takes two single objects, and was given two blocks of "
                    f"{length(A)} and {length(B)} objects; pass kernel=pairwise(f), or "
                    "dissimilarity(pairwise(f)) if small values mean alike"
                ) from error
            raise
        return as_block(K, length(A), length(B))

    def _takes_single_objects(self, A: Objects, B: Objects) -> bool:
        """Whether the function returns a number for the first two objects."""
        try:
            as_number(self.func(A[0], B[0], **(self.params or {})))
        except Exception:  # whatever the function of a person raises
            return False
        return True

    def anew(self, A: Objects, B: Objects) -> Array:
        return self.block(A, B)

    def spans(self, n: int, width: int) -> list[tuple[int, int]]:
        """The rows of each call of ``block``, the same in one process and in several."""
        return [(start, min(start + CALL_ROWS, n)) for start in range(0, n, CALL_ROWS)]

    def columns(self, Z: Objects) -> Columns:
        return CallableColumns(self, Z)

    def diagonal(self, A: Objects) -> Array:
        step = DIAGONAL_SQUARE
        parts = [A[start : start + step] for start in range(0, length(A), step)]
        return np.concatenate([np.empty(0), *(np.diagonal(self.block(a, a)) for a in parts)])


def _require_parameters(func: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Refuse parameters that a function does not take, if its signature can be read."""
    try:
        known = list(inspect.signature(func).parameters.values())[2:]
    except (TypeError, ValueError):
        return
    names = [p.name for p in known if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wrong = [name for name in params if name not in names]
    if wrong and not any(p.kind is p.VAR_KEYWORD for p in known):
        raise ValueError(
            f"{func!r} takes no parameter {wrong[0]!r} beside its two objects; "
            f"it takes {names or 'none'}"
        )


class PairwiseKernel(CallableKernel):
    """A function of two single objects as a kernel; every pair is evaluated once.

    Only ``probe`` evaluates a few pairs again, to see whether values are symmetric and repeat.

    Parameters
    ----------
    func : callable
        ``func(a, b, **params)`` returns a number.
    params : mapping, default=None
        Keyword arguments of the function.
    is_dissimilarity : bool, default=False
        Whether small values mean that two objects are alike.
    """

    pairs_once = True
    splits_squares = True
    rows_per_call = 1
    diagonal_cost = 1

    def block(self, A: Objects, B: Objects) -> Array:
        return np.array([self._row(a, B) for a in A], dtype=np.float64).reshape(
            length(A), length(B)
        )

    def _row(self, a: object, B: Objects) -> list[float]:
        """Values of one object to several; an error gets a note with the two objects."""
        func, params, values = self.func, self.params or {}, list[float]()
        try:
            for b in B:
                values.append(as_number(func(a, b, **params)))
        except Exception as error:
            error.add_note(
                f"the function was given {reprlib.repr(a)} and {reprlib.repr(B[len(values)])}"
            )
            raise
        return values

    def spans(self, n: int, width: int) -> list[tuple[int, int]]:
        """All rows at once, or a few parts for each process."""
        if self.processes is None:
            return [(0, n)]
        return chunks(np.full(n, width), self.processes.jobs)

    def diagonal(self, A: Objects) -> Array:
        if self.is_dissimilarity:
            return np.zeros(length(A))
        return remembered_diagonal(self, A, self._each_with_itself)

    def _each_with_itself(self, A: Objects) -> Array:
        return np.array([self._row(a, [a])[0] for a in A], dtype=np.float64)

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        """Every pair once; numbers in ``own`` are taken as they are, NaN is evaluated."""
        return remembered_square(self, Z, CallableColumns(self, Z).evaluate, self._square, own)

    def _square(self, Z: Objects, own: Array) -> Array:
        if self.processes is None or length(Z) < 2:
            return mirrored(self.upper_rows(own, 0, length(Z), Z))
        return self.processes.square(self, Z, own)

    def upper_rows(self, own: Array, start: int, stop: int, Z: Objects) -> Array:
        """Rows start..stop of the upper triangle of k(Z, Z), with zeros below it."""
        part = np.zeros((stop - start, length(Z)))
        for i in range(start, stop):
            known = not np.isnan(own[i])
            part[i - start, i] = own[i]
            part[i - start, i + known :] = self._row(Z[i], Z[i + known :])
        return part


class CallableColumns:
    """From rows A to k(A, Z), by calls of a function, in this process or in several."""

    def __init__(self, kernel: CallableKernel, Z: Objects) -> None:
        self.kernel, self.Z = kernel, Shelf(Z)

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        return delivered(remembered(self.kernel, A, self.Z.objects, self.evaluate), out)

    def evaluate(self, A: Objects, Z: Objects) -> Array:
        """k(A, Z), where Z are all columns or some of them."""
        kernel, processes = self.kernel, self.kernel.processes
        spans = kernel.spans(length(A), length(Z))
        if len(spans) < 2:
            return kernel.block(A, Z)
        if processes is None:
            return np.concatenate([kernel.block(A[slice(*span)], Z) for span in spans])
        return processes.rectangle(kernel, A, self.Z if Z is self.Z.objects else Shelf(Z), spans)


def pairwise(f: Callable[..., float], **params: Any) -> PairwiseKernel:
    """A similarity from a function of two single objects of any kind.

    Parameters
    ----------
    f : callable
        ``f(a, b)`` returns a number, the same for ``f(b, a)``. If it does not, a warning says so,
        and nothing is averaged: ``f(x, z)`` counts for an object x and a landmark z, and of two
        landmarks the order in which they came.
    **params : dict
        Keyword arguments of ``f``, which become parameters of the kernel.

    Returns
    -------
    PairwiseKernel
        For ``kernel=`` of an estimator; ``dissimilarity(pairwise(f))`` if small values mean alike.

    Examples
    --------
    >>> from kreinlearn.kernels import pairwise
    >>> k = pairwise(lambda a, b: float(len(a & b)))
    >>> k([{1, 2}, {2, 3, 4}])
    array([[2., 1.],
           [1., 3.]])
    """
    if not callable(f):
        raise TypeError(f"pairwise takes a function of two objects, got {f!r}")
    return PairwiseKernel(f, params or None)


def as_block(K: Objects, n_rows: int, n_columns: int) -> Array:
    """What a function returned as a real matrix; an error if it has another type or shape."""
    K = np.asarray(K) if not hasattr(K, "toarray") else K.toarray()
    if K.dtype.kind not in "fiub":
        raise TypeError(
            f"the kernel must return real numbers, got dtype {K.dtype}; "
            "return a float matrix of shape (len(A), len(B))"
        )
    if K.shape != (n_rows, n_columns):
        raise ValueError(
            f"the kernel returned shape {K.shape}, expected ({n_rows}, {n_columns}) = "
            "(len(A), len(B)); for a function of two single objects pass kernel=pairwise(f), or "
            "dissimilarity(pairwise(f)) if small values mean alike"
        )
    return np.asarray(K, dtype=np.float64)


def as_number(value: Any) -> float:
    """What a function returned as a number; an error if it is none."""
    if value is None or isinstance(value, str | bytes) or np.iscomplexobj(value) or np.ndim(value):
        raise TypeError(
            f"a pairwise kernel must return one real number, got {value!r}; "
            "for a function of whole blocks pass kernel=f itself"
        )
    return float(value)


ASYMMETRY_PAIRS = 50
REPEATED_PAIRS = 8


def probe(kernel: Kernel, Z: Objects, rng: np.random.Generator) -> tuple[float, float]:
    """The relative asymmetry of up to 50 pairs of Z, and the relative change when 8 are repeated.

    Each is the largest over all functions in the kernel, and 0.0 if it is no more than rounding.
    """
    i, j = rng.integers(length(Z), size=(2, ASYMMETRY_PAIRS))
    pairs = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)])[:, i != j], axis=1)
    found = np.array([_probe(one, Z, pairs) for one in kernel.untrusted]).reshape(-1, 2)
    asymmetry, drift = found.max(axis=0, initial=0.0).tolist()
    return asymmetry, drift


def _probe(kernel: Kernel, Z: Objects, pairs: Array) -> tuple[float, float]:
    def values(a: Array, b: Array) -> Array:
        return np.array(
            [kernel.anew(take(Z, [s]), take(Z, [t]))[0, 0] for s, t in zip(a, b, strict=True)]
        )

    there, back = values(*pairs), values(*pairs[::-1])
    again = values(*pairs[:, :REPEATED_PAIRS])
    largest = float(np.max(np.abs([there, back]), initial=0.0))
    with np.errstate(over="ignore"):  # what the function computes in float32 has its rounding
        narrow = there.astype(np.float32)
    rtol = symmetry_rtol(narrow.dtype if np.array_equal(narrow, there) else there.dtype)

    def relative(change: Array) -> float:
        gap = float(np.max(np.abs(change), initial=0.0))
        return gap / largest if gap > rtol * largest else 0.0

    return relative(there - back), relative(there[:REPEATED_PAIRS] - again)
