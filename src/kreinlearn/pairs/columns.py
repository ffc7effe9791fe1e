"""What a fitted model evaluates: the similarities of any objects to its landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kreinlearn.kernels.base import Array, Columns, Objects
from kreinlearn.kernels.dissimilarity import Transform, check_dissimilarities


@dataclass(frozen=True)
class LandmarkColumns:
    """x -> k(x, Z): kernel values to the landmarks, transformed if they are dissimilarities."""

    raw: Columns  # values to all evaluated columns: the reference set of a transform, landmarks
    landmarks: Array | None = None  # their places among the evaluated columns; None: all, in order
    transform: Transform | None = None
    offsets: Array | None = None  # a(z) of each landmark, for the transform
    stored: Callable[..., Array] | None = None  # numbers, rows -> raw, by way of a store
    objects: Objects = None  # those of the evaluated columns

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        """The similarities of any objects."""
        return self.transformed(self.raw(A, out))

    def of_rows(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        """The similarities of rows of the fit, read from its store where it has one."""
        return self.transformed(self.raw_of_rows(numbers, A, out))

    def raw_of_rows(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        return self.raw(A, out) if self.stored is None else self.stored(numbers, A, out)

    def transformed(self, raw: Array) -> Array:
        """Similarities to the landmarks from the values of all evaluated columns."""
        if self.transform is None:
            return raw
        check_dissimilarities(raw)
        assert self.offsets is not None
        a = self.transform.offsets(raw)
        picked = raw if self.landmarks is None else raw[:, self.landmarks]
        return self.transform.similarity(picked, a, self.offsets)

    def n_evaluated(self, m: int) -> int:
        """How many columns are evaluated for m landmarks: a reference set may add some."""
        if self.landmarks is None or self.transform is None:
            return m
        return max(self.transform.n_reference, int(self.landmarks.max(initial=-1)) + 1)
