"""Kernels on objects that hold Python's global lock: processes are faster, threads are not."""

from __future__ import annotations

from typing import Self

import numpy as np

from kreinlearn.data.tiles import length, objects_of
from kreinlearn.kernels.base import Array, Columns, Objects
from kreinlearn.kernels.object_kernel import SQUARE, ObjectColumns, ObjectKernel
from kreinlearn.kernels.processes import ProcessKernel, Shelf, chunks

FEWEST_ROWS = 32  # in a part: the columns are packed anew for every part


class SlowKernel(ProcessKernel, ObjectKernel):
    """A kernel whose blocks and squares may be evaluated in other processes, with the same bits."""

    threads = False
    pair_seconds = None  # it depends on the size of the objects by orders of magnitude

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        super().fit(X, rng)
        if self.processes is not None:
            self.processes.begin_fit(self, objects_of(X))
        return self

    def columns(self, Z: Objects) -> Columns:
        return SlowColumns(self, objects_of(Z))

    def square(self, Z: Objects) -> Array:
        if self.processes is None or len(Z) <= SQUARE:
            return super().square(Z)
        return self.processes.square(self, Z, fewest=FEWEST_ROWS)

    def upper_rows(self, start: int, stop: int, Z: Objects) -> Array:
        """Rows start..stop of the upper triangle of k(Z, Z), with zeros to the left of it."""
        here, part = Z[start:stop], np.zeros((stop - start, len(Z)))
        part[:, start:stop] = self.symmetric(here)
        if stop < len(Z):
            part[:, stop:] = self.anew(here, Z[stop:])
        return part


class SlowColumns(ObjectColumns):
    kernel: SlowKernel

    def __init__(self, kernel: SlowKernel, Z: Objects) -> None:
        super().__init__(kernel, Z)
        self.shelf = Shelf(Z)

    def evaluate(self, A: Objects, Z: Objects) -> Array:
        """k(A, Z); all rows are checked first, so that an error names their numbers in A."""
        processes, pairs = self.kernel.processes, np.full(length(A), length(Z))
        if processes is None or len(spans := chunks(pairs, processes.jobs, FEWEST_ROWS)) < 2:
            return super().evaluate(A, Z)
        self.kernel.packed(A, like=self.packed)
        shelf = self.shelf if Z is self.Z else Shelf(Z)
        return processes.rectangle(self.kernel, A, shelf, spans)
