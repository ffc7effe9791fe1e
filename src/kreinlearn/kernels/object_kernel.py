"""Kernels on objects, which are checked and packed one block at a time."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE, length, objects_of
from kreinlearn.data.tiles import library as library
from kreinlearn.kernels._memory import (
    is_remembering,
    remembered,
    remembered_diagonal,
    remembered_square,
)
from kreinlearn.kernels.base import Array, Columns, Kernel, delivered
from kreinlearn.kernels.base import Objects as Rows
from kreinlearn.kernels.domains import Domain, Objects

SQUARE = 16  # objects up to which all pairs are evaluated, those below the diagonal too


class ObjectKernel(Kernel):
    """A function of two objects, evaluated on packed blocks of objects.

    A subclass gives ``packed`` and ``values``. It also gives ``packed_columns`` if objects that
    stand as columns are needed in another form than those that stand as rows, and ``square`` if all
    pairs of some objects can be evaluated faster than by way of ``values``.
    """

    domain: Domain = Objects()
    pairs_once = True
    splits_squares = True
    pair_seconds: float | None = 1e-6

    def packed(self, X: Rows, first: int = 0, n: int = 0, like: Any = None) -> Any:
        """Objects in the form that ``values`` takes; an error names object ``first + i`` of ``n``.

        ``like`` is another packed block with which these objects must agree, in dimension for
        example.
        """
        raise NotImplementedError

    def packed_columns(self, Z: Rows) -> Any:
        """Objects that stand as columns in the form that ``values`` takes."""
        return self.packed(Z)

    def values(self, A: Any, Z: Any) -> Array:
        """k(A, Z) of packed rows and packed columns, (a, z) float64."""
        raise NotImplementedError

    def fit(self, X: Rows, rng: np.random.Generator) -> Self:
        """Check every object here, so that an error names its number in X and not in a block."""
        n, like = length(X), None
        for tile in gen_batches(n, TILE):
            like = self.packed(objects_of(X[tile]), tile.start, n, like)
        return self

    def columns(self, Z: Rows) -> Columns:
        return ObjectColumns(self, objects_of(Z))

    def diagonal(self, A: Rows) -> Array:
        if self.is_dissimilarity:
            return np.zeros(length(A))
        return remembered_diagonal(self, objects_of(A), self._each_with_itself)

    def _each_with_itself(self, A: Rows) -> Array:
        return np.array([self.anew([a], [a])[0, 0] for a in A])

    def symmetric(self, Z: Rows, own: Array | None = None) -> Array:
        Z = objects_of(Z)
        if not is_remembering():
            return self.square(Z)
        return remembered_square(self, Z, self.anew, lambda Z, own: self.square(Z))

    def square(self, Z: Rows) -> Array:
        """k(Z, Z) evaluated, every pair once except in small squares."""
        if len(Z) <= SQUARE:
            columns = self.packed_columns(Z)
            upper = np.triu(self.values(self.packed(Z, like=columns), columns)) if len(Z) else None
            return np.empty((0, 0)) if upper is None else upper + np.triu(upper, 1).T
        half = len(Z) // 2
        across = self.anew(Z[:half], Z[half:])
        return np.block([[self.square(Z[:half]), across], [across.T, self.square(Z[half:])]])

    def anew(self, A: Rows, B: Rows) -> Array:
        """k(A, B) evaluated, even if values are remembered."""
        B = objects_of(B)
        return cast(ObjectColumns, self.columns(B)).evaluate(objects_of(A), B)


class ObjectColumns:
    """From rows A to k(A, Z), with the columns Z packed once."""

    def __init__(self, kernel: ObjectKernel, Z: Rows) -> None:
        self.kernel, self.Z, self.packed = kernel, Z, kernel.packed_columns(Z)

    def __call__(self, A: Rows, out: Array | None = None) -> Array:
        A = objects_of(A)
        if is_remembering():
            return delivered(remembered(self.kernel, A, self.Z, self.evaluate), out)
        return delivered(self.evaluate(A, self.Z), out)

    def evaluate(self, A: Rows, Z: Rows) -> Array:
        """k(A, Z), where Z are all columns or some of them."""
        columns = self.packed if Z is self.Z else self.kernel.packed_columns(Z)
        return self.kernel.values(self.kernel.packed(A, like=columns), columns)


def given(x: object) -> str:
    """A short description of an object, for an error."""
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    return f"{type(x).__name__} {x!r:.40}"
