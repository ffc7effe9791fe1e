"""Keys that are equal for objects, functions and kernels that are the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import date, time, timedelta
from functools import partial
from hashlib import blake2b
from types import MethodType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from kreinlearn.kernels.base import Array, Objects


Key = Hashable
# equal values of one of these types are the same
PLAIN: set[Any] = {str, bytes, int, bool, NoneType, range}


class _Same:
    """A key for an object by identity; it refers to the object, so that its id stays taken."""

    __slots__ = ("x",)

    def __init__(self, x: object) -> None:
        self.x = x

    def __hash__(self) -> int:
        return id(self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.x is other.x


def keys_of(X: Objects) -> list[Key]:
    return [x if type(x) is str else key_of(x) for x in X]


def key_of(x: Any) -> Key:
    """A key that is equal for the same type and content, to the bit; otherwise by identity."""
    kind = type(x)
    if kind in PLAIN:
        return kind, x
    if isinstance(x, date | time | timedelta):
        return kind, x
    if kind in (float, complex):
        return kind, x.real.hex(), x.imag.hex()
    if kind in (np.ndarray, np.memmap) or isinstance(x, np.generic):
        return _array_key(np.asarray(x), kind)
    if kind in (list, tuple) or _is_named_tuple(x):
        return kind, *_items_key(x)
    if kind in (set, frozenset):
        return kind, frozenset(map(key_of, x))
    if kind is dict:
        return kind, *((key_of(name), key_of(value)) for name, value in x.items())
    if isinstance(x, BaseEstimator):
        fitted = {name: value for name, value in vars(x).items() if name.endswith("_")}
        return kind, key_of(x.get_params(deep=False) | fitted)
    return _function_key(x) if callable(x) else _Same(x)


def _array_key(x: Array, kind: type) -> Key:
    if x.dtype.hasobject:
        return kind, x.shape, key_of(x.tolist())
    return kind, x.dtype, x.shape, blake2b(x.tobytes(), digest_size=16).digest()


def _is_named_tuple(x: object) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields") and not getattr(x, "__dict__", None)


def _items_key(x: Sequence[Any]) -> Iterable[Key]:
    kinds = set(map(type, x))
    only = kinds.pop() if len(kinds) == 1 else None
    if only is float:
        return only, np.array(x).tobytes()
    return (only, *x) if only in PLAIN else map(key_of, x)


def _function_key(f: Any) -> Key:
    """By identity, except for functions that are copied in a search: by what the copy is made
    from.
    """
    kind: Any = type(f)
    if kind is MethodType:
        return kind, f.__func__, _function_key(f.__self__)
    if kind is partial or kind.__reduce__ is object.__reduce__:
        try:
            return key_of(f.__reduce_ex__(4))
        except TypeError:  # a function or a class, of which a copy is itself
            pass
    return _Same(f)
