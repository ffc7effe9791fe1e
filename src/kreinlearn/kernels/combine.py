"""Sums, differences and products of kernels, and the base class of kernels made of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from numbers import Real
from operator import or_
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Array, Columns, Kernel, ObjectKernel, Objects, resolve
from kreinlearn.kernels.domains import Domain
from kreinlearn.kernels.keys import key_of
from kreinlearn.kernels.processes import ProcessKernel
from kreinlearn.kernels.vector_columns import number

REMEDY = 'turn each dissimilarity into a similarity first: similarity_of(d, "exp")'

# Kernels made of parts


def _of_parts(name: str, combined: Callable[..., Any]) -> Any:
    """A declaration of a kernel that follows from those of its parts."""
    return property(lambda self: combined(getattr(part, name) for part in self.parts))


class Composite(ProcessKernel):
    """A kernel made of other kernels, its parts; parts that are equal are fitted once, as one."""

    kernel: Any  # the only part, unless a subclass names others

    def _named(self) -> dict[str, Any]:
        """The parts as given, names or kernels, by the names that they have in ``get_params``."""
        return {"kernel": self.kernel}

    def _resolved(self, spec: object) -> Kernel:
        return resolve(spec)

    def _as_given(self) -> list[Kernel]:
        given = self._named().values()
        return [spec if isinstance(spec, Kernel) else self._resolved(spec) for spec in given]

    @property
    def parts(self) -> list[Kernel]:
        """The parts: fitted if this kernel is, and then equal parts are one object."""
        return list(self.parts_) if hasattr(self, "parts_") else self._as_given()

    def fresh_parts(self) -> list[Kernel]:
        """New, unfitted kernels, one for every part."""
        return [self._resolved(spec) for spec in self._named().values()]

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        fresh = self.sound().fresh_parts()
        parts: list[Kernel] = []
        for part, own in zip(fresh, rng.spawn(len(fresh)), strict=True):
            same = [known for known in parts if alike(known, part)]
            if not same:
                part.with_processes(1, like=self).fit(X, own)
            parts.append(same[0] if same else part)
        self.parts_ = parts
        return self

    def sound(self) -> Self:
        """This kernel; an error if its parts cannot be combined."""
        parts = self._as_given()
        common_domain(parts)
        self._makes_dissimilarity(parts)
        return self

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        """Whether the result is a dissimilarity; an error where a dissimilarity is not allowed."""
        raise NotImplementedError

    @property
    def is_dissimilarity(self) -> bool:  # type: ignore[override]
        return self._makes_dissimilarity(self.parts)

    @property
    def domain(self) -> Domain:
        return common_domain(self.parts)

    sparse = _of_parts("sparse", all)
    threads = _of_parts("threads", all)
    costly = _of_parts("costly", any)
    pairs_once = _of_parts("pairs_once", all)
    diagonal_cost = _of_parts("diagonal_cost", max)
    jobs = _of_parts("jobs", max)

    @property
    def pair_seconds(self) -> float | None:  # type: ignore[override]
        """The sum over the parts; not known if one of them is not."""
        each = [part.pair_seconds for part in self.parts]
        return None if None in each else float(sum(filter(None, each)))

    @property
    def rows_per_call(self) -> int:
        """As many as any part needs; all, which is 0, if one part needs all."""
        needed = [part.rows_per_call for part in self.parts]
        return max(needed) if all(needed) else 0

    @property
    def inner(self) -> list[Kernel]:
        return list({id(part): part for part in self.parts}.values())

    @property
    def untrusted(self) -> list[Kernel]:
        return _untrusted(self.parts)

    @property
    def packers(self) -> list[ObjectKernel]:
        """Those of the parts, unless processes evaluate them."""
        return [one for part in self.inner for one in part.packers] if self.jobs == 1 else []

    def grid(self) -> list[dict[str, Any]]:
        """The grids of the parts side by side: every scale is multiplied by the same factor."""
        grids = [
            [{name: clone(part).set_params(**one)} for one in part.grid()]
            for name, part in zip(self._named(), self.parts, strict=True)
        ]
        return [reduce(or_, row) for row in zip(*filter(None, grids), strict=False)]

    def set_params(self, **params: Any) -> Self:
        """Set parts first, and then parameters inside parts."""
        given = {**self.get_params(), **params}
        for key in params:
            name, inside, _ = key.partition("__")
            if inside and isinstance(given.get(name), str):
                raise ValueError(
                    f"{key!r} cannot be set: {name} is the name {given[name]!r}, which has no "
                    f"parameters; pass the kernel in its place, resolve({given[name]!r})"
                )
        super().set_params(**params)
        return self


def _untrusted(parts: Iterable[Kernel]) -> list[Kernel]:
    return list({id(one): one for part in parts for one in part.untrusted}.values())


def common_domain(parts: Sequence[Kernel]) -> Domain:
    """What all parts take; a part that takes anything adapts to the others."""
    domains = [part.domain for part in parts]
    if any(domain.is_matrix for domain in domains):
        raise ValueError(
            "a given matrix cannot be part of another kernel: X is the matrix, and new rows of it "
            "hold no k(x, x) and nothing of other parts; combine the matrices, as in K1 - K2, "
            'and pass kernel="precomputed", or "precomputed_dissimilarity" for distances'
        )
    common = domains[0]
    for domain in domains[1:]:
        both = common.intersection(domain)
        if both is not None:
            common = both
            continue
        said = ", ".join(f"{part!r} takes {part.domain.in_words}" for part in parts)
        raise ValueError(
            f"all parts of a combination see the same X, but {said}; combine kernels of one kind, "
            "or write one of them as pairwise(f), which takes any object"
        )
    return common


def require_similarities(parts: Iterable[Kernel], what: str) -> None:
    """Refuse parts that are dissimilarities; ``what`` says why."""
    for part in parts:
        if part.is_dissimilarity:
            raise ValueError(f"{part!r} is a dissimilarity: {what}; {REMEDY}")


def alike(a: Kernel, b: Kernel) -> bool:
    """Whether two kernels have the same type and equal parameters, fitted or not."""
    return type(a) is type(b) and key_of(a.get_params(deep=False)) == key_of(
        b.get_params(deep=False)
    )


# Sums and products


class _Combination(Composite):
    """Several parts, called k1, k2, ... in ``get_params``, with one number for each."""

    kernels: Any
    _combined: Callable[[Iterable[Array], list[float], Array | None], Array]

    def _named(self) -> dict[str, Any]:
        given = self.kernels
        if not isinstance(given, list | tuple) or not given:
            raise TypeError(f"kernels={given!r} is not a list of kernels; pass one or more")
        return {f"k{i}": spec for i, spec in enumerate(given, 1)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep and isinstance(self.kernels, list | tuple):
            for i, part in enumerate(self.kernels, 1):
                params[f"k{i}"] = part
                if isinstance(part, Kernel):
                    params |= {f"k{i}__{name}": value for name, value in part.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        whole = {key: params.pop(key) for key in params.keys() & self._named().keys()}
        if whole:
            self.kernels = list({**self._named(), **whole}.values())
        return super().set_params(**params)

    def _factors(self) -> list[float]:
        """The numbers of the parts."""
        raise NotImplementedError

    def _terms(self) -> tuple[list[Kernel], list[float]]:
        """The distinct parts, and for each the sum of its numbers."""
        parts: dict[int, Kernel] = {}
        factors: dict[int, float] = {}
        for part, factor in zip(self.parts, self._factors(), strict=True):
            parts[id(part)] = part
            factors[id(part)] = factors.get(id(part), 0.0) + factor
        return list(parts.values()), list(factors.values())

    def columns(self, Z: Objects) -> Columns:
        parts, factors = self._terms()
        return CombinedColumns([part.columns(Z) for part in parts], factors, type(self)._combined)

    @property
    def untrusted(self) -> list[Kernel]:
        """Functions that are parts are checked together: f(a, b) + f(b, a) is symmetric."""
        parts = self.parts
        inside = _untrusted(parts)
        return [self] if inside and all(one in parts for one in inside) else inside

    def anew(self, A: Objects, B: Objects) -> Array:
        return self._values(lambda part: part.anew(A, B))

    def diagonal(self, A: Objects) -> Array:
        return self._values(lambda part: part.diagonal(A))

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        return self._values(lambda part: part.symmetric(Z))

    def _values(self, of_part: Callable[[Kernel], Array]) -> Array:
        parts, factors = self._terms()
        return type(self)._combined(map(of_part, parts), factors, None)


class CombinedColumns:
    """From rows A to the columns of all parts, each evaluated once, combined."""

    def __init__(
        self, columns: list[Columns], factors: list[float], combined: Callable[..., Array]
    ) -> None:
        self.columns, self.factors, self.combined = columns, factors, combined

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        if out is None:
            return self.combined((columns(A) for columns in self.columns), self.factors, None)
        target, first = out[: length(A)], self.columns[0]
        spare = np.empty_like(target)
        values = (columns(A, target if columns is first else spare) for columns in self.columns)
        return self.combined(values, self.factors, target)


def weighted_sum(values: Iterable[Array], weights: list[float], out: Array | None) -> Array:
    """sum_i w_i K_i, written into ``out`` if that is given; K_1 may lie in ``out``."""
    total = None
    with np.errstate(over="ignore", invalid="ignore"):  # checked by the caller
        for K, w in zip(values, weights, strict=True):
            if total is None:
                total = np.multiply(K, w, out=out)
            else:
                term = K if abs(w) == 1 else K * w
                total = _onto(np.subtract if w == -1 else np.add, total, term, out)
    return np.asarray(total)


def power_product(values: Iterable[Array], powers: list[float], out: Array | None) -> Array:
    """prod_i K_i^p_i, written into ``out`` if that is given; K_1 may lie in ``out``."""
    total = None
    with np.errstate(over="ignore", invalid="ignore"):
        for K, power in zip(values, powers, strict=True):
            K = reduce(np.multiply, [K] * int(power))
            if total is None:
                total = np.multiply(K, 1.0, out=out)
            else:
                total = _onto(np.multiply, total, K, out)
    return np.asarray(total)


def _onto(function: np.ufunc, total: Array, K: Array, out: Array | None) -> Array:
    """function(total, K), written over ``total`` unless that would lose digits of K."""
    fits = out is not None or np.result_type(total, K) == total.dtype
    return np.asarray(function(total, K, out=total if fits else None))


class LinearCombination(_Combination):
    """k(x, z) = sum_i weights[i] kernels[i](x, z), which may be indefinite.

    This is what ``k1 + k2``, ``k1 - k2``, ``2 * k1``, ``k1 / 2`` and ``-k1`` make. A combination of
    dissimilarities is a dissimilarity, and its weights must not be negative.

    Parameters
    ----------
    kernels : list of kernels or names of kernels
        All of them similarities, or all of them dissimilarities.
    weights : list of float, default=None
        One weight per kernel; None means that all are 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import Gaussian
    >>> k = Gaussian(width=2.0) - Gaussian(width=1.0)  # delta_gauss, k(x, x) = 0
    >>> k.fit([[0.0], [1.0]], np.random.default_rng(0))([[0.0], [1.0]]).round(3)
    array([[0.   , 0.239],
           [0.239, 0.   ]])
    """

    _combined = staticmethod(weighted_sum)

    def __init__(self, kernels: Sequence[Any], weights: Sequence[float] | None = None) -> None:
        self.kernels = kernels
        self.weights = weights

    def _factors(self) -> list[float]:
        n = len(self._named())
        given = [1.0] * n if self.weights is None else np.ravel(self.weights).tolist()
        weights = [number(w, "a weight") for w in given]
        if len(weights) != n:
            raise ValueError(
                f"weights={self.weights!r} for {n} kernels: pass one weight for each of them"
            )
        if n > 1 and not any(weights):
            raise ValueError(
                f"all weights of {n} kernels are zero, and so would be their sum; pass at least "
                "one weight that is not zero"
            )
        return weights

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        least = min(self._factors())
        if all(part.is_dissimilarity for part in parts):
            if least >= 0:
                return True
            require_similarities(parts, "with a negative weight it may fall below zero")
        require_similarities(parts, "it cannot be added to a similarity")
        return False


class Product(_Combination):
    """k(x, z) = kernels[0](x, z) kernels[1](x, z) ..., which is what ``k1 * k2`` makes.

    Parameters
    ----------
    kernels : list of kernels or names of kernels
        Similarities.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import Gaussian, Sigmoid
    >>> k = Gaussian(width=1.0) * Sigmoid(gain=1.0, bias=0.0)
    >>> k.fit([[0.0], [1.0]], np.random.default_rng(0))([[2.0]], [[1.0]]).round(3)
    array([[0.355]])
    """

    _combined = staticmethod(power_product)

    def __init__(self, kernels: Sequence[Any]) -> None:
        self.kernels = kernels

    def _factors(self) -> list[float]:
        return [1.0] * len(self._named())

    def _makes_dissimilarity(self, parts: Sequence[Kernel]) -> bool:
        require_similarities(parts, "a product with it has no meaning")
        return False


# The operators of Kernel


def added(left: Kernel, right: object, sign: float) -> Kernel:
    """left + sign * right; sums inside them are taken apart, so that all parts stand side by
    side.
    """
    kernels: list[Any] = []
    weights: list[float] = []
    for part, factor in ((left, 1.0), (_kernel(right), sign)):
        inner = part if type(part) is LinearCombination else LinearCombination([part])
        kernels += inner.kernels
        weights += [factor * w for w in inner._factors()]
    return LinearCombination(kernels, weights).sound()


def multiplied(left: Kernel, right: object) -> Kernel:
    """The product of two kernels, or of a kernel and a number."""
    if isinstance(right, Real):
        inner = left if type(left) is LinearCombination else LinearCombination([left])
        factor = number(right, "a weight")
        weights = [factor * w for w in inner._factors()]
        return LinearCombination(list(inner.kernels), weights).sound()
    kernels: list[Any] = []
    for part in (left, _kernel(right)):
        kernels += part.kernels if type(part) is Product else [part]
    return Product(kernels).sound()


def divided(left: Kernel, right: object) -> Kernel:
    """A kernel divided by a number."""
    if not isinstance(right, Real):
        raise TypeError(f"a kernel cannot be divided by {right!r}; divide it by a number, k / 2.0")
    divisor = number(right, "a divisor")
    if divisor == 0:
        raise ValueError("a kernel cannot be divided by 0; pass another number, k / 2.0")
    return multiplied(left, 1 / divisor)


def _kernel(other: object) -> Kernel:
    if isinstance(other, Kernel):
        return other
    raise TypeError(
        f"a kernel cannot be combined with {other!r}; kernels are added to and multiplied by "
        "kernels, resolve(...) makes one of a name or a function, and a number is a weight, 2.0 * k"
    )
