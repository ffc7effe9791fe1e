"""The one seam: a pass over the data is a function of a row block whose terms are summed.

Sums are reproducible: rows fall into runs of whole tiles by their number alone, a run is added in
order, and runs are added in a fixed tree. Threads and memory decide only who adds what when.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, TypeVar

import joblib
import numpy as np
import scipy.linalg.cython_blas
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from kreinlearn.blocks import tiles
from kreinlearn.runs import SPARE, Queue, Run, Total, Tree

STRIP = 128  # columns of a triangle that are added at a time

Array = NDArray[Any]
Block = TypeVar("Block")
T = TypeVar("T", bound=Total)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _SerialBlas:
    """The limit is the process's: it is set by the first who enters, lifted by the last."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _controller().limit(limits=1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


_SERIAL_BLAS = _SerialBlas()


def serial_blas() -> AbstractContextManager[None]:
    """One BLAS and OpenMP thread inside: our workers are the threads, and results repeat."""
    return _SERIAL_BLAS


def worker_count(n_jobs: int | None) -> int:
    """Threads for a pass: ``n_jobs``, or as many as BLAS may use here (1 in a joblib worker)."""
    if n_jobs is not None:
        return int(joblib.effective_n_jobs(n_jobs))
    blas = [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]
    return int(min(joblib.cpu_count(), max(blas, default=1)))


def sum_over_blocks(
    add: Callable[[T, Block], None],
    blocks: Iterable[Block],
    zero: Callable[[], T],
    n: int,
    *,
    workers: int = 1,
    spare: int = SPARE,
) -> T:
    """Sum of the terms of all blocks; ``add(total, block)`` adds one block's terms in place.

    A block is in one of the tiles of n rows, and begins with a row number or several.
    """
    queue = Queue(blocks, n)
    tree = Tree[T](workers + spare)

    def total_of(run: Run) -> T:
        total = tree.unused()
        if total is None:
            total = zero()
        else:
            total.clear()
        for block in queue.blocks_of(run):
            add(total, block)
        return total

    def work() -> None:
        while (run := queue.claim()) is not None and tree.may_begin(run.number):
            tree.put(run.number, total_of(run))  # and nothing here holds it any longer

    _run(work, workers, queue.stop, tree.stop)
    return tree.total(zero)


def map_blocks(
    apply: Callable[[Block], None], blocks: Iterable[Block], *, workers: int = 1
) -> None:
    """``apply`` on every block, in worker threads; it writes its own rows of a result."""
    queue = Queue(blocks)

    def work() -> None:
        for block in queue:
            apply(block)

    _run(work, workers, queue.stop)


def _run(work: Callable[[], None], workers: int, *stops: Callable[[], None]) -> None:
    """``work`` in every worker; the first error, Ctrl-C included, stops them all and is raised."""

    def stop() -> None:
        for one in stops:
            one()

    def guarded() -> None:
        try:
            work()
        except BaseException:
            stop()
            raise

    with serial_blas():
        if workers == 1:
            return work()
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(guarded) for _ in range(workers)]
            try:
                for future in futures:
                    future.result()
            finally:
                stop()


@dataclass
class Gram:
    """C'wC (upper triangle, Fortran order) and the weighted column sums of row blocks C."""

    triangle: Array  # (m, m)
    sums: Array  # (m,)
    single: bool = False  # float32 blocks multiplied in float32, summed in float64

    @classmethod
    def zeros(cls, m: int, *, single: bool = False) -> Self:
        return cls(np.zeros((m, m), order="F"), np.zeros(m), single)

    def add(self, C: Array, w: Array | None = None) -> None:
        if w is not None:
            self.sums += w @ C
            C = np.sqrt(w).astype(C.dtype, copy=False)[:, None] * C
        else:
            self.sums += C.sum(axis=0, dtype=np.float64)
        if C.dtype == np.float32 and self.single:
            self.triangle += add_gram(C, np.zeros(self.triangle.shape, np.float32, order="F"))
        else:
            add_gram(np.asarray(C, dtype=np.float64), self.triangle)

    def __iadd__(self, other: Self) -> Self:
        for strip in self._strips():
            self.triangle[strip] += other.triangle[strip]
        self.sums += other.sums
        return self

    def __isub__(self, other: Self) -> Self:
        for strip in self._strips():
            self.triangle[strip] -= other.triangle[strip]
        self.sums -= other.sums
        return self

    def clear(self) -> None:
        for strip in self._strips():
            self.triangle[strip] = 0.0
        self.sums[:] = 0.0

    def _strips(self) -> Iterator[tuple[slice, slice]]:
        """The upper triangle in parts: what is below stays untouched."""
        m = len(self.sums)
        for j in range(0, m, STRIP):
            yield slice(0, min(j + STRIP, m)), slice(j, j + STRIP)

    @property
    def matrix(self) -> Array:  # (m, m)
        upper = np.triu(self.triangle)
        return np.asarray(upper + np.triu(upper, 1).T)


def gram_of(C: Array, workers: int = 1) -> Gram:
    """C'C and column sums of a matrix in memory, in the fixed tiles."""

    def add(total: Gram, span: tuple[int, int]) -> None:
        total.add(C[slice(*span)])

    return sum_over_blocks(
        add, tiles(len(C)), lambda: Gram.zeros(C.shape[1]), len(C), workers=workers
    )


def _blas(name: str) -> Any:
    """A BLAS routine by its address: called so it releases the GIL, as scipy's does not."""
    capsule = scipy.linalg.cython_blas.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    integer, pointer = ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
    text, one = ctypes.c_char_p, pointer
    prototype = ctypes.CFUNCTYPE(
        None, text, text, integer, integer, one, pointer, integer, one, pointer, integer
    )
    return prototype(get_pointer(capsule, get_name(capsule)))


_SYRK = {np.dtype(np.float64): _blas("dsyrk"), np.dtype(np.float32): _blas("ssyrk")}


def add_gram(C: Array, triangle: Array) -> Array:
    """triangle += C'C, upper triangle only; C (b, m) in rows, triangle (m, m) in Fortran order."""
    C = np.ascontiguousarray(C)
    b, m = C.shape
    one = np.ones(1, C.dtype)
    columns, depth = ctypes.c_int(m), ctypes.c_int(b)
    _SYRK[C.dtype](
        b"U", b"N", columns, depth, one.ctypes.data, C.ctypes.data, columns,
        one.ctypes.data, triangle.ctypes.data, columns,
    )  # fmt: skip
    return triangle
