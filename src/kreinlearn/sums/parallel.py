"""A pass over the data: a function of one block of rows, run in threads, whose results are added.

Sums are reproducible. The row numbers alone decide into which span of whole tiles a row falls. The
blocks of a span are added in order, and the sums of spans in a fixed tree. The number of threads
and the memory decide only who adds what, and when.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from kreinlearn.sums.tree import SPARE, Queue, Span, Total, Tree

Block = TypeVar("Block")
T = TypeVar("T", bound=Total)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _SerialBlas:
    """Limits BLAS in the whole process: the first to enter sets the limit, the last lifts it."""

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
    """A block in which BLAS and OpenMP use one thread: our workers are the threads instead.

    Results then do not depend on the number of threads that BLAS would have used.
    """
    return _SERIAL_BLAS


def worker_count(n_jobs: int | None) -> int:
    """The number of threads for a pass: ``n_jobs``, or by default as many as BLAS may use.

    In a worker of joblib that is one.
    """
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
    """The sum over all blocks, where ``add(total, block)`` adds one block to a total in place.

    The first entry of a block is a row number, or several. They are of one of the tiles of n rows.
    """
    queue = Queue(blocks, n)
    tree = Tree[T](workers + spare)

    def total_of(span: Span) -> T:
        total = tree.unused()
        if total is None:
            total = zero()
        else:
            total.clear()
        for block in queue.blocks_of(span):
            add(total, block)
        return total

    def work() -> None:
        while (span := queue.claim()) is not None and tree.may_begin(span.number):
            tree.put(span.number, total_of(span))  # no name refers to the total, so it can be freed

    _run(work, workers, queue.stop, tree.stop)
    return tree.total(zero)


def map_blocks(
    apply: Callable[[Block], None], blocks: Iterable[Block], *, workers: int = 1
) -> None:
    """Call ``apply`` on every block, in worker threads; it writes its rows of a result itself."""
    queue = Queue(blocks)

    def work() -> None:
        for block in queue:
            apply(block)

    _run(work, workers, queue.stop)


def _run(work: Callable[[], None], workers: int, *stops: Callable[[], None]) -> None:
    """Do ``work`` in every worker; the first error, Ctrl-C included, stops all and is raised."""

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
