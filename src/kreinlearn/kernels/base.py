"""What a similarity is: a function of two sequences of objects, evaluated one block at a time."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE, length, objects_of, take
from kreinlearn.data.validation import looks_like_distances
from kreinlearn.kernels import _memory, domains
from kreinlearn.kernels.domains import Domain

Array = NDArray[Any]
Objects = Any  # a sequence of objects, or an (n, d) array or CSR matrix

SQUARE = 16  # objects up to which all pairs are evaluated, those below the diagonal too
REGISTRY: dict[str, Callable[..., Kernel]] = {}  # kernels by name
CALL = re.compile(r"^[\w.<>]+\(\) ")  # as Python begins its errors about arguments


class Columns(Protocol):
    """The kernel columns of fixed objects Z: from rows A to k(A, Z).

    Calling it has no side effects, except that values are written into ``out`` if that is given,
    and it may be called by several threads.
    """

    def __call__(self, A: Objects, out: Array | None = None) -> Array: ...


class Kernel(BaseEstimator):
    """A symmetric function k(x, z) of two objects: the base class of all kernels.

    A subclass gives at least ``columns``, and ``domain`` if it does not take vectors. Parameters
    follow scikit-learn: ``__init__`` only assigns them, and what depends on data is worked out by
    ``fit``, into attributes with a trailing underscore. Kernels can be added, subtracted and
    multiplied, with each other and with numbers: ``k1 + k2``, ``k1 * k2``, ``2.0 * k1``.

    Attributes
    ----------
    domain : Domain
        What the kernel takes as X.
    is_dissimilarity : bool
        Whether small values mean that two objects are alike.
    of_dissimilarities : bool
        Whether X is a given matrix of dissimilarities.
    sparse : bool
        Whether the rows of X may be those of a CSR matrix.
    threads : bool
        Whether several threads may evaluate the kernel at the same time.
    jobs : int
        The number of processes in which values are evaluated.
    costly : bool
        Whether a value may cost so much that no pair should be evaluated twice.
    cheap : bool
        Whether a value of vectors with few columns takes no longer to evaluate than to store.
    pairs_once : bool
        Whether ``symmetric`` evaluates n (n + 1) / 2 pairs of n objects, and not n * n.
    splits_squares : bool
        Whether a square may be evaluated in strips of rows, by several threads.
    writes_in_place : bool
        Whether ``columns(Z)(A, out)`` writes its values into a given buffer of floats.
    rows_per_call : int
        The number of rows that must be evaluated in one call for their values to repeat bit for
        bit.
    diagonal_cost : int
        The number of pairs that are evaluated for each k(x, x).
    pair_seconds : float or None
        About how long one value takes, in seconds. None says that nobody knows, and that it has to
        be measured.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn.kernels import Kernel
    >>> class Overlap(Kernel):
    ...     def columns(self, Z):
    ...         return lambda A, out=None: np.minimum(A[:, None], Z).sum(axis=2)
    >>> Overlap()(np.array([[1, 2], [3, 0]]))
    array([[3., 1.],
           [1., 3.]])
    """

    is_dissimilarity = False
    of_dissimilarities = False  # X is a given matrix of dissimilarities
    sparse = False  # CSR rows are accepted
    threads = True  # several threads may evaluate at once
    cheap = False  # values of vectors with few columns are evaluated as fast as stored
    pairs_once = False  # ``symmetric`` evaluates n (n + 1) / 2 pairs, not n * n
    splits_squares = False  # a square may be evaluated in strips of rows, by several threads
    diagonal_cost = 1  # pairs that are evaluated for each k(x, x)
    pair_seconds: float | None = 1e-8  # about how long one value takes; None: it is measured

    def __init_subclass__(cls, names: Sequence[str] = ()) -> None:
        """Register the names of a kernel of this library; its methods take no metadata to route."""
        REGISTRY.update(dict.fromkeys(names, cls))

    @property
    def domain(self) -> Domain:
        """What the kernel takes as X."""
        return domains.VECTORS[self.sparse]

    @property
    def costly(self) -> bool:
        """Whether a value may cost so much that no pair should be evaluated twice."""
        return not (self.domain.is_vectors or self.domain.is_matrix)

    @property
    def rows_per_call(self) -> int:
        """How many rows must be evaluated in one call for their values to repeat bit for bit.

        With 0 they are all rows of a block, and k(x, z) may differ from k(z, x) in the last bit.
        """
        return 1 if self.costly else 0

    @property
    def writes_in_place(self) -> bool:
        """Whether ``columns(Z)(A, out)`` writes its values into a buffer of floats."""
        return self.domain.is_vectors

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        """Fix whatever depends on data; a random draw comes from ``rng``."""
        return self

    # Processes, for kernels that threads cannot speed up

    @property
    def jobs(self) -> int:
        """The number of processes in which values are evaluated; 1 means in this one."""
        return 1

    def with_processes(self, n: int, like: Kernel | None = None) -> Self:
        """This kernel, from now on evaluated in ``n`` processes if threads cannot speed it up.

        With ``like``, another kernel of the same fit, they are the processes of that kernel, which
        have the objects already.
        """
        return self

    def end_fit(self) -> None:
        """Let the processes forget the objects of the fit."""

    @property
    def inner(self) -> list[Kernel]:
        """The kernels that this one is made of."""
        return []

    @property
    def untrusted(self) -> list[Kernel]:
        """The kernels in this one, or itself, whose values are checked because a person wrote
        them.
        """
        return []

    @property
    def packers(self) -> list[ObjectKernel]:
        """The kernels in this one, or itself, that take features of the objects given to it, once
        these are evaluated.
        """
        return []

    def grid(self) -> list[dict[str, Any]]:
        """Parameters that are worth trying, once the kernel is fitted; none if it does not know
        any.
        """
        return []

    def columns(self, Z: Objects) -> Columns:
        """The function from rows A to k(A, Z)."""
        raise NotImplementedError

    def select(self, X: Objects, indices: Array) -> Objects:
        """The objects that stand for rows ``indices`` as columns; of a given matrix, column
        numbers.
        """
        return take(X, indices)

    def diagonal(self, A: Objects) -> Array:
        """k(x, x) of every object."""
        return np.array([self(a, a)[0, 0] for a in (take(A, [i]) for i in range(length(A)))])

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:  # (m, m)
        """k(Z, Z), exactly symmetric.

        ``own`` are the k(z, z) that are known, NaN where they are not. A kernel that evaluates
        every pair by itself leaves these out; the others ignore them.
        """
        return symmetrised(self.columns(Z)(Z))

    def __call__(self, A: Objects, B: Objects | None = None) -> Array:
        return self.symmetric(A) if B is None else self.columns(B)(A)

    def anew(self, A: Objects, B: Objects) -> Array:
        """k(A, B), evaluated in this process even if the values are remembered, to compare both."""
        return self.columns(B)(A)

    # k1 + k2, k1 - k2, k1 * k2, 2.0 * k1, k1 / 2.0, -k1, sum([k1, k2])

    __array_ufunc__ = None  # so that numpy's numbers leave these operations to the kernel

    def __add__(self, other: object) -> Kernel:
        from kreinlearn.kernels import combine

        return combine.added(self, other, 1.0)

    def __radd__(self, other: object) -> Kernel:
        """Allow ``sum([k1, k2])``, which starts with 0."""
        zero = type(other) is not bool and isinstance(other, Real) and bool(other == 0)
        return self if zero else self + other

    def __sub__(self, other: object) -> Kernel:
        from kreinlearn.kernels import combine

        return combine.added(self, other, -1.0)

    def __mul__(self, other: object) -> Kernel:
        from kreinlearn.kernels import combine

        return combine.multiplied(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Kernel:
        from kreinlearn.kernels import combine

        return combine.divided(self, other)

    def __neg__(self) -> Kernel:
        return self * -1.0


class ObjectKernel(Kernel):
    """A function of two objects, evaluated on packed blocks of objects.

    A subclass gives ``packed`` and ``values``. It also gives ``packed_columns`` if objects that
    stand as columns are needed in another form than those that stand as rows, and ``square`` if all
    pairs of some objects can be evaluated faster than by way of ``values``.
    """

    domain: Domain = domains.Objects()
    pairs_once = True
    splits_squares = True
    pair_seconds: float | None = 1e-6

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Any:
        """Objects in the form that ``values`` takes; an error names object ``first + i`` of ``n``.

        ``like`` is another packed block with which these objects must agree, in dimension for
        example.
        """
        raise NotImplementedError

    def packed_columns(self, Z: Objects) -> Any:
        """Objects that stand as columns in the form that ``values`` takes."""
        return self.packed(Z)

    def values(self, A: Any, Z: Any) -> Array:
        """k(A, Z) of packed rows and packed columns, (a, z) float64."""
        raise NotImplementedError

    def block(self, A: Objects, columns: Any) -> Array:
        """k(A, Z) of rows and packed columns."""
        return self.values(self.packed(A, like=columns), columns)

    def check(self, X: Objects, first: int, n: int, like: Any) -> Any:
        """Raise the errors of ``packed``, perhaps with less work; what is returned is ``like`` for
        the next objects.
        """
        return self.packed(X, first, n, like)

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        """Check every object here, so that an error names its number in X and not in a block."""
        n, like = length(X), None
        for tile in gen_batches(n, TILE):
            like = self.check(objects_of(X[tile]), tile.start, n, like)
        return self

    def columns(self, Z: Objects) -> Columns:
        return ObjectColumns(self, objects_of(Z))

    def diagonal(self, A: Objects) -> Array:
        if self.is_dissimilarity:
            return np.zeros(length(A))
        A = objects_of(A)
        if _memory.active is None:
            return self._each_with_itself(A)
        return _memory.remembered_diagonal(self, A, self._each_with_itself)

    def _each_with_itself(self, A: Objects) -> Array:
        return np.array([self.anew([a], [a])[0, 0] for a in A])

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:
        Z = objects_of(Z)
        if _memory.active is None:
            return self.square(Z)
        return _memory.remembered_square(self, Z, self.anew, lambda Z, own: self.square(Z))

    def square(self, Z: Objects) -> Array:
        """k(Z, Z) evaluated, every pair once except in small squares."""
        if len(Z) <= SQUARE:
            columns = self.packed_columns(Z)
            return mirrored(self.values(self.packed(Z, like=columns), columns))
        half = len(Z) // 2
        across = self.anew(Z[:half], Z[half:])
        return np.block([[self.square(Z[:half]), across], [across.T, self.square(Z[half:])]])

    def anew(self, A: Objects, B: Objects) -> Array:
        """k(A, B) evaluated, even if values are remembered."""
        B = objects_of(B)
        return cast(ObjectColumns, self.columns(B)).evaluate(objects_of(A), B)


class ObjectColumns:
    """From rows A to k(A, Z), with the columns Z packed once."""

    def __init__(self, kernel: ObjectKernel, Z: Objects) -> None:
        self.kernel, self.packed = kernel, kernel.packed_columns(Z)
        self.Z = Z if type(Z) is list else list(Z)  # without features that are known of a fit

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        A = objects_of(A)
        if _memory.active is None:
            return delivered(self.evaluate(A, self.Z), out)
        return delivered(_memory.remembered(self.kernel, A, self.Z, self.evaluate), out)

    def evaluate(self, A: Objects, Z: Objects) -> Array:
        """k(A, Z), where Z are all columns or some of them."""
        columns = self.packed if Z is self.Z else self.kernel.packed_columns(Z)
        return self.kernel.block(A, columns)


def delivered(K: Array, out: Array | None) -> Array:
    """K itself, or its copy in the first rows of ``out`` if that is given."""
    if out is None:
        return K
    out[: len(K)] = K
    return out[: len(K)]


def mirrored(K: Array) -> Array:
    """The symmetric matrix whose upper triangle is given."""
    return np.asarray(np.triu(K) + np.triu(K, 1).T)


def product(A: Array, B: Array, out: Array | None = None) -> Array:
    """A @ B; of a single row without BLAS, which may wake threads that take longer than it."""
    if len(A) > 1:
        return np.asarray(np.matmul(A, B, out=out))
    return np.asarray(np.einsum("ad,db->ab", A, B, out=out))


def symmetrised(K: Array) -> Array:
    """The mean of a square matrix and its transpose."""
    both = K + K.T
    in_place = both if both.dtype.kind == "f" else None  # half of a whole number is none
    return np.asarray(np.multiply(both, 0.5, out=in_place))


def symmetry_rtol(dtype: DTypeLike) -> float:
    """The asymmetry that is mere rounding, as a share of the largest entry."""
    return 1e-5 if np.dtype(dtype) == np.float32 else 1e-10


def given(x: object) -> str:
    """A short description of an object, for an error."""
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    return f"{type(x).__name__} {x!r:.40}"


FACTORY = "pass a Kernel class, or a function that returns a kernel: lambda: my_kernel"


def register(name: str, factory: Callable[..., Kernel], *, replace: bool = False) -> None:
    """Give a kernel a name, which estimators then accept as ``kernel=``.

    Parameters
    ----------
    name : str
        The name.
    factory : callable
        ``factory(**kernel_params)`` makes the kernel: a ``Kernel`` subclass, or a function that
        returns a ``Kernel`` or a callable k(A, B).
    replace : bool, default=False
        Whether a name that is taken, which includes all names of scikit-learn, may be changed.

    Examples
    --------
    >>> from kreinlearn.kernels import Gaussian, register, resolve
    >>> register("gaussian", Gaussian, replace=True)  # as it is in the library
    >>> resolve("gaussian", {"width": 0.2})
    Gaussian(width=0.2)
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"a kernel's name is a non-empty string, got {name!r}")
    if not callable(factory) or isinstance(factory, Kernel):
        raise TypeError(f"kernel {name!r} wants a factory, got {factory!r}; {FACTORY}")
    if not replace and is_known(name):
        what = "is registered already" if name in REGISTRY else "is a name of scikit-learn"
        raise ValueError(f"kernel {name!r} {what}; pass replace=True to change it")
    REGISTRY[name] = factory


def is_known(name: str) -> bool:
    """Whether ``resolve`` accepts a name: one that is registered, or one of scikit-learn's."""
    from kreinlearn.kernels import scikit

    theirs = name in scikit.sklearn_kernel_names() or name in scikit.sklearn_metric_names()
    return name in REGISTRY or theirs


def registered() -> list[str]:
    """The names of all registered kernels, in alphabetical order.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from kreinlearn.kernels import registered
    >>> "levenshtein" in registered()
    True
    """
    return sorted(REGISTRY)


def resolve(spec: object, params: Mapping[str, Any] | None = None) -> Kernel:
    """A new, unfitted kernel from whatever estimators accept as ``kernel=``.

    Parameters
    ----------
    spec : str, callable, Kernel or dict
        A registered name or one of scikit-learn's, a function k(A, B) -> matrix, or a kernel, which
        is copied. A dict from fields to kernels is the sum of ``columns(spec)``, of which
        dissimilarities become similarities.
    params : mapping, default=None
        Parameters of the kernel.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from kreinlearn.kernels import resolve
    >>> resolve("levenshtein", {"normalized": True})
    Levenshtein(normalized=True)
    """
    params = dict(params or {})
    if isinstance(spec, Kernel):
        kernel: Kernel = clone(spec)
        return kernel.set_params(**params) if params else kernel
    if isinstance(spec, str):
        return _by_name(spec, params)
    if isinstance(spec, Mapping):
        from kreinlearn.kernels.fields import sum_of_fields

        return resolve(sum_of_fields(spec), params)
    if isinstance(spec, np.ndarray):
        from kreinlearn.kernels.precomputed import GivenMatrix

        square = spec.ndim == 2 and spec.shape[0] == spec.shape[1]
        return GivenMatrix(spec, is_dissimilarity=square and looks_like_distances(spec))
    if callable(spec):
        from kreinlearn.kernels.callables import CallableKernel

        return CallableKernel(spec, params)
    raise TypeError(
        f"kernel={spec!r} is neither a name, a callable k(A, B) -> matrix, a Kernel nor a dict; "
        "for a function of two single objects use kernel=pairwise(f)"
    )


def _by_name(name: str, params: dict[str, Any]) -> Kernel:
    from kreinlearn.kernels import scikit

    if name in REGISTRY:
        return _called(name, REGISTRY[name], params)
    if name in scikit.sklearn_kernel_names():
        return scikit.SklearnKernel(name, params)
    if name in scikit.sklearn_metric_names():
        return scikit.SklearnMetric(name, params)
    everything = {*REGISTRY, *scikit.sklearn_kernel_names(), *scikit.sklearn_metric_names()}
    near = get_close_matches(name, sorted(everything), 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(
        f"kernel={name!r} is unknown{meant}; registered are {registered()}, beside every kernel "
        "and metric name of scikit-learn; register(name, factory) adds one of your own"
    )


def _called(name: str, factory: Callable[..., Kernel], params: dict[str, Any]) -> Kernel:
    try:
        kernel: Any = factory(**params)
    except TypeError as error:
        what = f"does not take kernel_params={params}"
        hint = f"; if what was registered is not a factory, {FACTORY}"
        hint = _parameters_of(factory) if params else hint
        why = CALL.sub("", str(error))  # it names the function, which may be one of a base class
        raise TypeError(f"kernel {name!r} {what}: {why}{hint}") from error
    if isinstance(kernel, Kernel):
        return kernel
    if not callable(kernel):
        raise TypeError(f"the factory of kernel {name!r} returned {kernel!r}; {FACTORY}")
    return resolve(kernel)


def _parameters_of(factory: Callable[..., Kernel]) -> str:
    """The names of the parameters of a kernel, for the end of an error."""
    try:
        known = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return ""
    names = [one.name for one in known if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return f"; it takes {', '.join(names)}" if names else "; it takes none"
