"""What a fitted model evaluates: the similarities of any objects to its landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kreinlearn.kernels.base import Array, Columns, Objects
from kreinlearn.kernels.dissimilarity import Transform, check_dissimilarities


@dataclass(frozen=True)
class LandmarkColumns:
    """x -> k(x, Z): the evaluated columns, transformed if they are dissimilarities."""

    raw: Columns
    landmarks: Array | None = None  # their places among the evaluated columns; None: all, in order
    transform: Transform | None = None
    offsets: Array | None = None  # a(z)
    stored: Callable[..., Array] | None = None  # numbers, rows -> raw, while they are fitted
    objects: Objects = None  # of the evaluated columns

    def of_rows(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        """Of rows of the fit, by number: from its store, where it has one."""
        return self.finish(self.raw_of_rows(numbers, A, out))

    def raw_of_rows(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        return self.raw(A, out) if self.stored is None else self.stored(numbers, A, out)

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        return self.finish(self.raw(A, out))

    def finish(self, raw: Array) -> Array:
        """Similarities to the landmarks from the values of all evaluated columns."""
        if self.transform is None:
            return raw
        check_dissimilarities(raw)
        assert self.offsets is not None
        a = self.transform.offsets(raw)
        picked = raw if self.landmarks is None else raw[:, self.landmarks]
        return self.transform.similarity(picked, a, self.offsets)
