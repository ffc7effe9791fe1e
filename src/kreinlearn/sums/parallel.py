"""A pass over the data: a function of one block of rows, in threads, whose results are added.

Sums are reproducible: rows fall into runs of whole tiles by their number alone, a run is added in
order, and runs are added in a fixed tree. Threads and memory decide only who adds what when.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import joblib
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from kreinlearn.sums.tree import SPARE, Queue, Run, Total, Tree

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
