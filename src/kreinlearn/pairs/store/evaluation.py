"""Kernel values through a store: stored values are read, others are evaluated and stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Array, Columns, Kernel, Objects, delivered
from kreinlearn.kernels.missing import fill, fill_square, part_of
from kreinlearn.kernels.processes import CHUNKS_PER_JOB
from kreinlearn.pairs.rows import STORED
from kreinlearn.pairs.store.blocks import OWN, StoredBlocks

PIECE = 1.0  # seconds per call of the kernel: a fit that is killed loses no more than that
FIRST_ROWS = 16  # rows of the first call, which shows how long a call takes


class Stored:
    """The kernel values of a fit, read from a store or evaluated and then written to it.

    Rows are identified by their number in X. Numbers below zero are landmarks that are not rows of
    X; ``outside`` has the numbers that identify these in the store.
    """

    def __init__(self, blocks: StoredBlocks, kernel: Kernel, outside: Array) -> None:
        self.blocks, self.kernel, self.outside = blocks, kernel, outside
        self.mirror = kernel.rows_per_call > 0  # k(x, z) has the bits of k(z, x)
        self._grain, self._rate = grain_of(kernel), 0.0  # pairs per second of the last call

    def columns(self, columns: Columns, Z: Objects, numbers: Array) -> StoredColumns:
        """The columns of rows ``numbers``, whose objects are Z."""
        return StoredColumns(self, columns, Z, self.names(numbers))

    def square(self, numbers: Array, own: Array, Z: Objects) -> Array:
        """k(Z, Z); ``own`` has the k(z, z) that have been evaluated, and NaN for the others."""
        names = self.names(numbers)
        K = self.blocks.read(names, names, mirror=self.mirror)
        if K is None:
            return self._evaluated_square(names, own, Z)
        np.fill_diagonal(K, np.where(np.isnan(own), np.diagonal(K), own))
        columns = self.columns(self.kernel.columns(Z), Z, numbers)
        fill_square(
            K,
            lambda i, j: columns.evaluated(part_of(Z, i), names[i], j),
            lambda i: self._evaluated_square(names[i], np.diagonal(K)[i], part_of(Z, i)),
        )
        return K

    def _evaluated_square(self, names: Array, own: Array, Z: Objects) -> Array:
        with self.noting_progress():
            K = self.kernel.symmetric(Z, own)
        self.blocks.add(names, names, K)
        return K

    def diagonal(self, numbers: Array, A: Objects) -> Array:  # (a, 1)
        """k(x, x) of rows ``numbers``, whose objects are A."""
        names, column = self.names(numbers), np.array([OWN])

        def evaluate(i: Array, j: Array) -> Array:
            with self.noting_progress():
                own = self.kernel.diagonal(part_of(A, i))[:, None]
            self.blocks.add(names[i], column, own)
            return own

        K = self.blocks.read(names, column, mirror=False)
        if K is None:
            return evaluate(np.arange(len(names)), column)
        fill(K, evaluate)
        return K

    def names(self, numbers: Array) -> Array:
        """The numbers that identify rows and landmarks in the store."""
        names = np.array(numbers, dtype=np.int64)
        away = names < 0
        names[away] = self.outside[names[away]]
        return names

    @contextmanager
    def noting_progress(self) -> Iterator[None]:
        """Add a note to any error: finished values are stored, and a new fit can use them."""
        try:
            yield
        except Exception as error:
            setattr(error, STORED, True)
            error.add_note(
                f"what was finished is kept in the store {str(self.blocks.folder.path)!r}; fit "
                "again with this store to continue from there"
            )
            raise

    def timed(
        self, evaluate: Callable[[Objects], Array], A: Objects, width: int
    ) -> Iterator[tuple[slice, Array]]:
        """The values of a few rows at a time, so that each call takes about a second."""
        start, n = 0, length(A)
        while start < n:
            wanted = self._rate * PIECE / max(width, 1) if self._rate else FIRST_ROWS
            step = int(max(wanted // self._grain, 1)) * self._grain if self._grain else n
            here = slice(start, min(n, start + step))
            begun = time.perf_counter()
            with self.noting_progress():
                K = evaluate(A if here == slice(0, n) else A[here])
            self._rate = K.size / max(time.perf_counter() - begun, 1e-9)
            yield here, K
            start = here.stop


class StoredColumns:
    """The function from numbered rows A to k(A, Z), which reads from and writes to the store."""

    def __init__(self, stored: Stored, columns: Columns, Z: Objects, names: Array) -> None:
        self.stored, self.Z, self.names = stored, Z, names
        # columns of all of Z, and of subsets as they are needed
        self._columns = {np.arange(len(names)).tobytes(): columns}

    def __call__(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        names, every = self.stored.names(numbers), np.arange(len(self.names))
        K = self.stored.blocks.read(names, self.names, mirror=self.stored.mirror)
        if K is None:
            K = self.evaluated(A, names, every)
        else:
            fill(K, lambda i, j: self.evaluated(part_of(A, i), names[i], j))
        return delivered(K, out)

    def evaluated(self, A: Objects, names: Array, j: Array) -> Array:
        """Evaluate and store k(A, Z) for the columns ``j`` of Z."""
        stored, key = self.stored, j.tobytes()
        if key not in self._columns:
            self._columns[key] = stored.kernel.columns(part_of(self.Z, j))
        parts = []
        for here, K in stored.timed(self._columns[key], A, len(j)):
            stored.blocks.add(names[here], self.names[j], K)
            parts.append(K)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def grain_of(kernel: Kernel) -> int:
    """The number of which the rows of every call are a multiple; 0 if a call has all rows.

    It makes values repeat bit for bit, and gives every process something to do.
    """
    if kernel.rows_per_call == 1 and kernel.jobs > 1:
        return CHUNKS_PER_JOB * kernel.jobs
    return kernel.rows_per_call
