"""Fingerprints of objects, functions and kernels, which are the same in every process."""

from __future__ import annotations

import functools
import reprlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from importlib import metadata
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp

from kreinlearn.kernels.base import Array, Kernel, Objects

# types whose repr tells all about an object
PLAIN: set[Any] = {bytes, int, bool, float, complex, NoneType, range}
CODE = ("co_code", "co_consts", "co_names", "co_varnames", "co_freevars")
IMMUTABLE = (str, tuple, frozenset, np.ndarray, np.generic, FunctionType, *PLAIN)
# the package that evaluates a kernel, by the module or the class of the kernel
LIBRARIES = {"strings": "rapidfuzz", "alignment": "parasail"}
LIBRARIES |= {"scikit": "scikit-learn", "EarthMover": "POT", "WassersteinSubsequence": "POT"}


def fingerprint(X: Objects) -> str:
    """The fingerprint of rows: of an array, a sparse matrix or a sequence of objects."""
    digest = _Digest()
    table = isinstance(X, np.ndarray) or sp.issparse(X)
    for x in [X] if table else X:
        try:
            digest.feed(x)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(
                f"store= cannot recognise a {type(x).__name__} in a later process ({error}); "
                "pass objects that consist of data alone, or Resources(store=None)"
            ) from error
    return digest.text


class _Digest:
    """A hash of objects; each is hashed with its type and length, so that none are confused."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    @property
    def text(self) -> str:
        return self._hash.hexdigest()

    def feed(self, x: Any) -> None:
        kind = type(x)
        if kind is str:
            self._add(b"str", x.encode("utf8", "surrogatepass"))
        elif kind in PLAIN:
            self._add(kind.__name__.encode(), repr(x).encode())
        elif isinstance(x, np.ndarray | np.generic):
            self._feed_array(np.asarray(x))
        elif isinstance(x, list | tuple):
            self._feed_all(kind, x)
        elif isinstance(x, set | frozenset):
            self._feed_all(kind, sorted(_of(item) for item in x))
        elif isinstance(x, dict):
            self._feed_all(kind, [part for item in x.items() for part in item])
        else:
            self._feed_other(x)

    def _add(self, tag: bytes, content: bytes) -> None:
        self._hash.update(b"%s %d:%s" % (tag, len(content), content))

    def _feed_array(self, x: Array) -> None:
        if x.dtype.hasobject:
            return self._feed_all(np.ndarray, [x.shape, *x.ravel().tolist()])
        self._add(f"array {x.dtype.str} {x.shape}".encode(), x.tobytes())

    def _feed_all(self, kind: type, items: Iterable[Any]) -> None:
        items = list(items)
        self._add(_name(kind).encode(), str(len(items)).encode())
        for item in items:
            self.feed(item)

    def _feed_other(self, x: Any) -> None:
        kind = type(x)
        if sp.issparse(x):
            x = sp.csr_array(x)
            self._feed_all(sp.csr_array, [x.shape, x.data, x.indices, x.indptr])
        elif isinstance(x, Kernel):
            self._feed_all(kind, _parameters(x).items())
        elif isinstance(x, type | BuiltinFunctionType):
            self._feed_all(kind, [_name(x)])
        elif isinstance(x, FunctionType):
            self._feed_all(kind, [x.__qualname__, *_code(x.__code__), *_bound(x)])
        elif isinstance(x, MethodType):
            self._feed_all(kind, [x.__func__, x.__self__])
        elif hasattr(x, "py_func"):  # a function compiled by numba
            self.feed(x.py_func)
        elif callable(getattr(x, "nodes", None)):  # a graph, without what it caches
            self._feed_all(kind, [list(x.nodes(data=True)), list(x.edges(data=True))])
        else:
            self._feed_all(kind, _state(x))


def _of(x: object) -> str:
    """The fingerprint of any object."""
    digest = _Digest()
    digest.feed(x)
    return digest.text


def _name(x: object) -> str:
    """The full name of a class or function."""
    return f"{getattr(x, '__module__', '')}.{getattr(x, '__qualname__', x)}"


def _code(code: CodeType) -> list[Any]:
    """What a function does, without its place in a file."""
    parts = [getattr(code, name) for name in CODE]
    return [
        [_code(part) if isinstance(part, CodeType) else part for part in value]
        if isinstance(value, tuple) else value
        for value in parts
    ]  # fmt: skip


def _bound(function: FunctionType) -> list[Any]:
    """The defaults of a function and the values that it encloses.

    Mutable values are left out: a counter in a list, for example, changes by itself.
    """
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    enclosed = [value for value in values if isinstance(value, IMMUTABLE)]
    return [function.__defaults__, function.__kwdefaults__, enclosed]


def _state(x: object) -> list[Any]:
    """What a copy of an object would be made from, and its ``__call__`` if it has one."""
    if isinstance(x, functools.partial):
        return [x.func, x.args, x.keywords]
    made = x.__reduce_ex__(4)
    if isinstance(made, str):
        return [made]
    _, args, state, items, pairs = (*made, None, None, None)[:5]
    code = [vars(kind)["__call__"] for kind in type(x).__mro__ if "__call__" in vars(kind)]
    own = [call for call in code if isinstance(call, FunctionType)]
    return [args, state, *own, list(items or ()), list(pairs or ())]


# Kernels


def description(kernel: Kernel) -> dict[str, Any]:
    """Everything that the values of a kernel depend on, for JSON."""
    parameters = {
        name: {"value": _in_words(value), "fingerprint": _of(value)}
        for name, value in sorted(_parameters(kernel).items())
    }
    return {"kernel": _name(type(kernel)), "parameters": parameters, "versions": _versions(kernel)}


def _parameters(kernel: Kernel) -> dict[str, Any]:
    """The parameters of a kernel, as given and as fitted."""
    fitted = {name: value for name, value in vars(kernel).items() if name.endswith("_")}
    return {**kernel.get_params(deep=False), **fitted}


def _in_words(value: object) -> str:
    named = callable(value) and hasattr(value, "__qualname__")
    return _name(value) if named else reprlib.repr(value)


def _versions(kernel: Kernel) -> dict[str, str]:
    """The versions of the packages that evaluate a kernel."""
    versions = {"kreinlearn": metadata.version("kreinlearn")}
    for part in _inside(kernel):
        package, *within = type(part).__module__.split(".")
        library = LIBRARIES.get(within[-1] if within else "") or LIBRARIES.get(type(part).__name__)
        if package != "kreinlearn":
            versions |= _version_of(part)
        elif library:
            with suppress(metadata.PackageNotFoundError):  # of POT, if no two objects need it
                versions[library] = metadata.version(library)
    return dict(sorted(versions.items()))


def _inside(value: object) -> Iterator[object]:
    """All kernels and functions in a value, including those inside other kernels."""
    if isinstance(value, Kernel):
        yield value
        for part in _parameters(value).values():
            yield from _inside(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _inside(part)
    elif callable(value) and not isinstance(value, type):
        yield value


def _version_of(part: object) -> dict[str, str]:
    """The versions of Python and of the package of a user's function or class."""
    package = str(getattr(part, "__module__", None) or "").partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", None)
    own = {package: version} if isinstance(version, str) else {}
    return {"python": f"{sys.version_info.major}.{sys.version_info.minor}", **own}


def differences(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """Sentences that name all differences between the descriptions of two kernels."""
    if here["kernel"] != there["kernel"]:
        return [f"the kernel is {here['kernel']} here and {there['kernel']} in the store"]
    return [
        _differs(name, here[what].get(name), there[what].get(name), what)
        for what in ("parameters", "versions")
        for name in sorted({*here[what], *there[what]})
        if here[what].get(name) != there[what].get(name)
    ]


def _differs(name: str, mine: Any, theirs: Any, what: str) -> str:
    if what == "versions":
        return f"the version of {name} is {mine} here and {theirs} in the store"
    a, b = (None if value is None else value["value"] for value in (mine, theirs))
    if a == b:
        return f"the kernel's {name} ({a}) is not what it was: it, or a part of it, has changed"
    return f"the kernel's {name} is {a} here and {b} in the store"
