"""Kernel values of a fit by way of its store: read if they are there, else evaluated and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kreinlearn.data.tiles import length, rows
from kreinlearn.kernels._base import Array, Columns, Kernel, Objects
from kreinlearn.kernels._missing import fill, fill_square, part_of
from kreinlearn.kernels._processes import CHUNKS_PER_JOB
from kreinlearn.kernels.callables import CALL_ROWS, PairwiseKernel
from kreinlearn.pairs.store.values import OWN, Values

PIECE = 1.0  # seconds that a call of the kernel may take: less than that is lost by a kill
FIRST_ROWS = 16  # of the first call, which shows how long one takes
TYPES = {"f4": np.float32, "f8": np.float64}


class Stored:
    """Rows are known by number; below zero they are landmarks that are not in X."""

    def __init__(self, values: Values, kernel: Kernel, outside: Array) -> None:
        self.values, self.kernel, self.outside = values, kernel, outside
        self.mirror = kernel.takes != "vectors"  # k(x, z) stands for k(z, x)
        self._pace = _Pace(grain_of(kernel))

    def columns(self, columns: Columns, Z: Objects, numbers: Array) -> StoredColumns:
        """Of rows ``numbers``, whose objects are Z."""
        return StoredColumns(self, columns, Z, self.names(numbers))

    def square(self, numbers: Array, own: Array, Z: Objects) -> Array:
        """k(Z, Z); ``own`` are the k(z, z) that are known, NaN for others."""
        names = self.names(numbers)
        found = self.values.known(names, names, mirror=self.mirror)
        if found is None:
            return self._square(names, own, Z)
        K, kind = found
        given = np.where(np.isnan(own), np.diagonal(K), own)
        np.fill_diagonal(K, given)
        columns = self.columns(self.kernel.columns(Z), Z, numbers)
        fill_square(
            K,
            lambda i, j: columns.evaluated(part_of(Z, i), names[i], j),
            lambda i: self._square(names[i], np.diagonal(K)[i], part_of(Z, i)),
        )
        return K.astype(TYPES[kind], copy=False)

    def _square(self, names: Array, own: Array, Z: Objects) -> Array:
        kernel = self.kernel
        with self.keeping():
            if isinstance(kernel, PairwiseKernel):
                K = kernel.symmetric(Z, own)
            else:
                K = kernel.symmetric(Z)
        self.values.keep(names, names, K)
        return K

    def diagonal(self, numbers: Array, A: Objects) -> Array:  # (a, 1)
        names, column = self.names(numbers), np.array([OWN])

        def evaluate(i: Array, j: Array) -> Array:
            with self.keeping():
                own = self.kernel.diagonal(part_of(A, i))[:, None]
            self.values.keep(names[i], column, own)
            return own

        found = self.values.known(names, column, mirror=False)
        K = np.full((len(names), 1), np.nan) if found is None else found[0]
        fill(K, evaluate)
        return K

    def names(self, numbers: Array) -> Array:
        """Numbers in the store."""
        names = np.array(numbers, dtype=np.int64)
        away = names < 0
        names[away] = self.outside[names[away]]
        return names

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """An error on the way gets a note that says what is left to do."""
        try:
            yield
        except Exception as error:
            error.add_note(
                f"what was finished is kept in the store {str(self.values.folder.path)!r}; fit "
                "again with it to go on from there"
            )
            raise

    def timed(self, evaluate: Callable[[Objects], Array], A: Objects, width: int) -> Iterator[
        tuple[slice, Array]
    ]:  # fmt: skip
        """A piece of rows at a time, each of about a second, and its values."""
        start, n = 0, length(A)
        while start < n:
            here = slice(start, min(n, start + self._pace.rows(width)))
            begun = time.perf_counter()
            with self.keeping():
                K = evaluate(A if here == slice(0, n) else rows(A, here.start, here.stop))
            self._pace.saw(K.size, time.perf_counter() - begun)
            yield here, K
            start = here.stop


class StoredColumns:
    """Numbered rows -> k(A, Z)."""

    def __init__(self, stored: Stored, columns: Columns, Z: Objects, names: Array) -> None:
        self.stored, self.Z, self.names = stored, Z, names
        self._columns = {np.arange(len(names)).tobytes(): columns}  # and of some of them

    def __call__(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        names, every = self.stored.names(numbers), np.arange(len(self.names))
        found = self.stored.values.known(names, self.names, mirror=self.stored.mirror)
        if found is None:
            K = self.evaluated(A, names, every)
        else:
            K, types = found[0], {np.dtype(TYPES[found[1]])}

            def evaluate(i: Array, j: Array) -> Array:
                part = self.evaluated(part_of(A, i), names[i], j)
                types.add(part.dtype)
                return part

            fill(K, evaluate)
            K = K.astype(np.result_type(*types), copy=False)
        if out is None:
            return K
        out[: len(K)] = K
        return out[: len(K)]

    def evaluated(self, A: Objects, names: Array, j: Array) -> Array:
        """Values of rows to columns j, and kept."""
        stored, key = self.stored, j.tobytes()
        if key not in self._columns:
            self._columns[key] = stored.kernel.columns(part_of(self.Z, j))
        parts = []
        for here, K in stored.timed(self._columns[key], A, len(j)):
            stored.values.keep(names[here], self.names[j], K)
            parts.append(K)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Pace:
    """How many rows take a second; in whole multiples of ``grain``, 0: all of them at once."""

    def __init__(self, grain: int) -> None:
        self.grain, self._rate = grain, 0.0

    def rows(self, width: int) -> int:
        if not self.grain:
            return int(np.iinfo(np.int64).max)
        wanted = self._rate * PIECE / max(width, 1) if self._rate else FIRST_ROWS
        return int(max(wanted // self.grain, 1)) * self.grain

    def saw(self, pairs: int, seconds: float) -> None:
        self._rate = pairs / max(seconds, 1e-9)


def grain_of(kernel: Kernel) -> int:
    """Rows that stay together in a call: for the same values bit for bit, and for all processes."""
    if kernel.takes == "vectors":
        return 0
    own = [kernel] if kernel.takes == "any" else []
    alone = all(isinstance(part, PairwiseKernel) for part in [*own, *kernel.untrusted])
    processes = getattr(kernel, "processes", None)
    jobs = 1 if processes is None else CHUNKS_PER_JOB * processes.jobs
    return jobs if alone else CALL_ROWS
