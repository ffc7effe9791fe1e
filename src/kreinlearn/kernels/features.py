"""Kernels that are functions of features of single objects: packing an object evaluates these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from kreinlearn.data.tiles import TILE
from kreinlearn.kernels import _memory
from kreinlearn.kernels.base import Array, ObjectKernel, Objects


def parts_of(n: int, size: int) -> list[slice]:
    """0..n in parts of at most ``size``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class Features(Protocol):
    """The features of some objects, in their order."""

    @property
    def n_bytes(self) -> int:
        """The memory that they take."""

    def take(self, places: Array) -> Self:
        """Those of some of the objects."""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of several sequences of objects, one after the other."""


class Packed(list[Any]):
    """Objects whose features some kernels, of these ids, have evaluated already."""

    def __init__(self, objects: Sequence[Any], features: Mapping[int, Features]) -> None:
        super().__init__(objects)
        self.features = features

    def __reduce__(self) -> Any:  # ids mean nothing elsewhere
        return list, (list(self),)


class FeatureKernel(ObjectKernel):
    """A function of the features of two objects, which are evaluated once for each object.

    A subclass gives ``features``, and ``check`` if objects can be checked with less work; it gives
    ``as_columns`` if features that stand as columns are needed in another form. The value of a pair
    has the same bits in every block.
    """

    splits_squares = False  # to evaluate the features anew for each strip costs more than it saves
    rows_at_once = TILE  # whose features are held in a block of values

    def features(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Any:
        """The features of objects; an error names object ``first + i`` of ``n``."""
        raise NotImplementedError

    def as_columns(self, features: Any) -> Any:
        """Features in the form in which ``values`` takes those of columns."""
        return features

    def packed(self, X: Objects, first: int = 0, n: int = 0, like: Any = None) -> Any:
        known = X.features.get(id(self)) if isinstance(X, Packed) else None
        return self.features(X, first, n, like) if known is None else known

    def packed_columns(self, Z: Objects) -> Any:
        return self.as_columns(self.packed(Z))

    def square(self, Z: Objects) -> Array:
        """k(Z, Z) by all pairs at once, which is exactly symmetric; objects are packed once."""
        features = self.packed(Z)
        return self.values(features, self.as_columns(features))

    def block(self, A: Objects, columns: Any) -> Array:
        return self.in_parts(A, lambda features: self.values(features, columns), like=columns)

    def in_parts(self, A: Objects, function: Callable[[Any], Array], *, like: Any = None) -> Array:
        """A function of features, of a few objects at a time unless they are known already."""
        n, size = len(A), self.rows_at_once
        if isinstance(A, Packed) or n <= size:
            return function(self.packed(A, like=like))
        parts = parts_of(n, size)
        return np.concatenate(
            [function(self.packed(A[part], part.start, n, like)) for part in parts]
        )

    @property
    def packers(self) -> list[ObjectKernel]:
        return [self] if _memory.active is None else []  # or else for values not yet known alone
