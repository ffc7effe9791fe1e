"""A pass over the data: a function of one block of rows, run in threads, whose results are added.

Sums are reproducible. The row numbers alone decide into which span of whole tiles a row falls. The
blocks of a span are added in order, and the sums of spans in a fixed tree. The number of threads
and the memory decide only who adds what, and when.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, Protocol, Self, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import LibController, ThreadpoolController

from kreinlearn.data.tiles import TILE

SPANS, LONGEST = 8, 16  # number of spans, at least, and tiles in a span, at most
COLUMN_SPANS = 4, 512  # the same for passes over targets and weights alone, which cost little
FAN_IN = 8  # sums that are added to one, at each level of the tree
SECONDS = 0.1  # of a wait for workers: Windows hears Ctrl-C only between two waits
SPARE = 2  # sums that may wait for an earlier one, beside those that workers are busy with


class Total(Protocol):
    """A sum; one that has been added to another is cleared and used again."""

    def __iadd__(self, other: Any) -> Self: ...

    def clear(self) -> None: ...


S = TypeVar("S")
A = TypeVar("A")
B = TypeVar("B")


def spans_of(n: int, count: int = SPANS, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Spans of whole tiles that are each summed in order; they depend only on the number of rows.

    Towards the end spans are shorter, so that all workers finish at about the same time.
    """
    left, spans = -(-n // TILE), list[tuple[int, int]]()
    step = int(np.clip(left // count, 1, longest))
    while left:
        while step > 1 and left <= 2 * step:
            step //= 2
        start = spans[-1][1] if spans else 0
        spans.append((start, min(start + step * TILE, n)))
        left -= step
    return spans


def depth_of(n: int) -> int:
    """The number of levels of the tree, each of which has one sum in memory."""
    count, depth = len(spans_of(n)), 1
    while count > FAN_IN:
        count, depth = -(-count // FAN_IN), depth + 1
    return depth


@dataclass(eq=False)
class Span:
    """The blocks of a span that have been read and are not yet added."""

    number: int  # counts the spans that have any blocks
    waiting: deque[Any] = field(default_factory=deque)
    complete: bool = False


class Queue:
    """Reads blocks in order, and hands them out to threads one by one, or one span at a time.

    If reading fails, what has been read is handed out, and ``error`` is to be raised after it.
    """

    def __init__(self, blocks: Iterable[Any], n: int = 0) -> None:
        self._blocks = iter(blocks)
        self._starts = np.array([start for start, _ in spans_of(n)])
        self._pull = threading.Lock()
        self._latest, self._place = Span(-1), -1  # the span of the block that was read last
        self._unclaimed = deque[Span]()
        self._end = math.inf  # the number of a span that has failed
        self.error: Exception | None = None

    @property
    def n_spans(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Any]:
        while self._end == math.inf:
            with self._pull:
                block = self._next_block()
            if block is None:
                return
            yield block

    def _next_block(self) -> Any:
        try:
            return next(self._blocks, None)
        except Exception as error:
            self.error = error
            return None

    def claim(self) -> Span | None:
        """The next span that no thread works on, or None at the end.

        Blocks of earlier spans that are read on the way wait in their span.
        """
        while self._end == math.inf:
            with self._pull:
                if self._unclaimed:
                    return self._unclaimed.popleft()
                if not self._read():
                    return None
        return None

    def blocks_of(self, span: Span) -> Iterator[Any]:
        """All blocks of a span, in order, unless this span or an earlier one has failed."""
        while span.number < self._end:
            with self._pull:
                if not span.waiting and not span.complete:
                    self._read()
                block = span.waiting.popleft() if span.waiting else None
            if block is not None:
                yield block
            elif span.complete:
                return

    def _read(self) -> bool:
        """Read one more block into its span, and say whether there was one."""
        block = self._next_block()
        if block is None:
            self._latest.complete = True
            return False
        row = block.start if isinstance(block, slice) else int(np.ravel(block[0])[0])
        place = int(np.searchsorted(self._starts, row, "right")) - 1
        if place != self._place:
            self._latest.complete = True
            self._latest, self._place = Span(self._latest.number + 1), place
            self._unclaimed.append(self._latest)
        self._latest.waiting.append(block)
        return True

    def stop(self, number: float = -1) -> None:
        """Hand out no more blocks, but for those of spans before this one that are begun."""
        self._end = min(self._end, number)


class Tree(Generic[S]):
    """Adds the sums of spans in a fixed tree: FAN_IN neighbours at a time, in order."""

    def __init__(self, most: int) -> None:
        self._most = most  # spans that may be begun and not yet added
        self._waiting: dict[int, S] = {}
        self._next = 0
        self._levels: list[list[Any]] = []  # for each level the number of sums, and their sum
        self._added: list[S] = []
        self._moved = threading.Condition()
        self._adding, self._end = False, math.inf

    def may_begin(self, number: int) -> bool:
        """Wait until a span may be begun; False if it or an earlier one has failed."""
        with self._moved:
            self._moved.wait_for(lambda: number >= self._end or number < self._next + self._most)
            return number < self._end

    def unused(self) -> S | None:
        """A sum that has been added to another and can be used again, or None."""
        with self._moved:
            return self._added.pop() if self._added else None

    def put(self, number: int, total: S) -> None:
        """Hand in the sum of a span; one thread adds what can be added, and the others go on."""
        with self._moved:
            self._waiting[number] = total
            if self._adding:
                return
            self._adding = True
        del total
        while True:
            with self._moved:
                ready = self._waiting.pop(self._next, None)
                if ready is None:
                    self._adding = False
                    return
            self._add(ready, 0)
            with self._moved:
                self._next += 1
                self._moved.notify_all()

    def _add(self, total: S, level: int) -> None:
        if level == len(self._levels):
            self._levels.append([0, None])
        here = self._levels[level]
        here[0] += 1
        if here[1] is None:
            here[1] = total
        else:
            here[1] += total
            self._added.append(total)
        if here[0] == FAN_IN:
            self._levels[level] = [0, None]
            self._add(here[1], level + 1)

    def total(self, zero: Callable[[], S]) -> S:
        """The sum of all spans; what is left at each level is added at the end of the next."""
        rest: S | None = None
        for count, level in self._levels:
            if rest is not None and count:
                level += rest
            rest = level if count else rest
        return zero() if rest is None else rest

    def stop(self, number: float = -1) -> None:
        """Begin no more spans from this one on."""
        with self._moved:
            self._end = min(self._end, number)
            self._moved.notify_all()


Array = NDArray[Any]


Block = TypeVar("Block")
T = TypeVar("T", bound=Total)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


Limited = list[tuple[LibController, int]]  # libraries, and how many threads each could use before


def _limited(count: int, libraries: Iterable[LibController]) -> Limited:
    """Let libraries use so many threads, and say how many those used before that are changed."""
    before = [(lib, lib.num_threads) for lib in libraries]
    before = [(lib, threads) for lib, threads in before if threads != count]
    for lib, _ in before:
        _set_threads(lib, count)
    return before


@cache
def _libraries() -> tuple[list[LibController], list[LibController]]:
    """Those that have one number of threads for the process, and those with one for each thread."""
    shared, own = list[LibController](), list[LibController]()
    for lib in _controller().lib_controllers:
        openmp = "openmp" in (lib.user_api, getattr(lib, "threading_layer", None))
        (own if openmp else shared).append(lib)
    return shared, own


def _blas() -> list[LibController]:
    return [lib for lib in _controller().lib_controllers if lib.user_api == "blas"]


def _set_threads(lib: LibController, count: int) -> None:
    """Set the number from any thread; newer versions of threadpoolctl listen to one thread only."""
    release = getattr(lib, "clear_controlling_thread", lambda force: None)
    release(force=True)
    lib.set_num_threads(count)
    release(force=True)


def _restore(before: Limited) -> None:
    for lib, count in before:
        _set_threads(lib, count)


class _SerialBlas:
    """Limits BLAS in the whole process: the first to enter sets the limit, the last lifts it.

    The number of threads of OpenMP is one number per thread, which sets and lifts its own limit.
    """

    def __init__(self) -> None:
        self._moved, self._inside = threading.Condition(), 0
        self._lifted_by: int | None = None  # the thread for which the limit is lifted for a while
        self._before: Limited = []
        self._thread = threading.local()

    def __enter__(self) -> None:
        shared, own = _libraries()
        with self._moved:
            self._moved.wait_for(lambda: self._lifted_by in (None, threading.get_ident()))
            if not self._inside:
                self._before = _limited(1, shared)
            self._inside += 1
        inside = self._own()
        if not inside:
            self._thread.before = _limited(1, own)
        self._thread.inside = inside + 1

    def _own(self) -> int:
        """How many blocks this thread is inside of."""
        return int(getattr(self._thread, "inside", 0))

    def __exit__(self, *error: object) -> None:
        self._thread.inside -= 1
        if not self._thread.inside:
            _restore(self._thread.before)
        with self._moved:
            self._inside -= 1
            if not self._inside:
                _restore(self._before)

    @contextmanager
    def lifted(self, count: int) -> Iterator[None]:
        """A block in which BLAS may use so many threads, unless other threads are inside.

        Threads that want to enter meanwhile wait until its end, so that what they find does not
        depend on it.
        """
        with self._moved:
            alone = self._lifted_by is None and self._inside == self._own()
            if alone:
                self._lifted_by = threading.get_ident()
        before = _limited(count, _blas()) if alone else []
        try:
            yield
        finally:
            _restore(before)
            if alone:
                with self._moved:
                    self._lifted_by = None
                    self._moved.notify_all()


_SERIAL_BLAS = _SerialBlas()


def serial_blas() -> AbstractContextManager[None]:
    """A block in which BLAS and OpenMP use one thread: our workers are the threads instead.

    Results then do not depend on the number of threads that BLAS would have used.
    """
    return _SERIAL_BLAS


def threaded_blas(workers: int) -> AbstractContextManager[None]:
    """A block inside of ``serial_blas`` in which BLAS may use so many threads.

    It is for one large matrix, while no other thread of ours is at work. The results agree with
    those of a single thread up to rounding.
    """
    return _SERIAL_BLAS.lifted(workers) if workers > 1 else nullcontext()


def worker_count(n_jobs: int | None) -> int:
    """The number of threads for a pass: ``n_jobs``, or by default as many as BLAS may use.

    By default it is one where joblib, or a worker of a cluster, runs us beside others already.
    """
    if n_jobs is not None:
        return int(joblib.effective_n_jobs(n_jobs))
    if joblib.parallel.get_active_backend()[0].nesting_level or _in_a_worker():
        return 1
    blas = max((lib.num_threads for lib in _blas()), default=1)
    return int(min(joblib.cpu_count(), blas)) if blas > 1 else 1


def _in_a_worker() -> bool:
    """Whether this thread belongs to a worker of a cluster that was started with distributed."""
    workers = sys.modules.get("distributed.worker")
    if workers is None:
        return False
    try:
        workers.get_worker()
    except ValueError:
        return False
    return True


def map_in_threads(function: Callable[[A], B], items: Iterable[A], workers: int) -> list[B]:
    """The values of a function in the order of its arguments, each found in one thread."""
    numbered = list(enumerate(items))
    found = dict[int, B]()

    def one(item: tuple[int, A]) -> None:
        found[item[0]] = function(item[1])

    map_blocks(one, numbered, workers=max(1, min(workers, len(numbered))))
    return [found[i] for i, _ in numbered]


def sum_over_blocks(
    add: Callable[[T, Block], None],
    blocks: Iterable[Block],
    zero: Callable[[], T],
    n: int,
    *,
    workers: int,
    spare: int = SPARE,
) -> T:
    """The sum over all blocks, where ``add(total, block)`` adds one block to a total in place.

    A block is a slice of rows, or its first entry is a row number, or several. They are of one of
    the tiles of n rows. If several spans fail, the error is that of the first of them, as with one
    thread.
    """
    queue, errors = Queue(blocks, n), dict[int, Exception]()
    workers = max(1, min(workers, queue.n_spans))  # a span is one thread's; none is started in vain
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
            try:
                tree.put(span.number, total_of(span))  # no name keeps the total from being freed
            except Exception as error:
                errors[span.number] = error
                queue.stop(span.number)
                tree.stop(span.number)

    _run(work, workers, queue.stop, tree.stop)
    _raise_first(errors, queue)
    return tree.total(zero)


def map_blocks(
    apply: Callable[[Block], None], blocks: Iterable[Block], *, workers: int = 1
) -> None:
    """Call ``apply`` on every block, in worker threads; it writes its rows of a result itself.

    If it fails on several blocks, the error is that of the first of them, as with one thread.
    """
    if workers == 1:
        with serial_blas():
            for block in blocks:
                apply(block)
        return
    queue, errors = Queue(enumerate(blocks)), dict[int, Exception]()

    def work() -> None:
        for number, block in queue:  # in order: blocks before one that fails are begun already
            try:
                apply(block)
            except Exception as error:
                errors[number] = error
                queue.stop()

    _run(work, workers, queue.stop)
    _raise_first(errors, queue)


def _raise_first(errors: Mapping[int, Exception], queue: Queue) -> None:
    """Raise the error of the first span or block that failed, or that of reading what follows."""
    error = errors[min(errors)] if errors else queue.error
    if error is not None:
        raise error


@cache
def _idle_pools(process: int, workers: int) -> list[ThreadPoolExecutor]:
    """Threads that wait for the next pass; a process that was forked has none of them."""
    return []


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads for one pass, those of an earlier one if they are idle.

    To start threads takes longer than many a pass. A pass within another has threads of its own.
    """
    idle = _idle_pools(os.getpid(), workers)
    try:
        pool = idle.pop()
    except IndexError:
        pool = ThreadPoolExecutor(workers, "kreinlearn")
    try:
        yield pool
    finally:
        idle.append(pool)


def _run(work: Callable[[], None], workers: int, *stops: Callable[[], None]) -> None:
    """Do ``work`` in every worker; the first error, Ctrl-C included, stops all and is raised."""

    def stop() -> None:
        for one in stops:
            one()

    def guarded() -> None:
        try:
            with serial_blas():  # OpenMP has one number of threads for each thread
                work()
        except BaseException:
            stop()
            raise

    with serial_blas():
        if workers == 1:
            return work()
        futures = list[Future[None]]()
        with _pool(workers) as pool:
            try:
                futures += (pool.submit(guarded) for _ in range(workers))
                for future in futures:
                    while not wait([future], SECONDS).done:
                        pass
                    future.result()
            finally:
                stop()
                wait(futures)


def total_of_columns(function: Callable[..., Any], *columns: Array | None) -> Any:
    """The sum of ``function`` over fixed spans of rows of columns that belong together."""
    assert columns[0] is not None
    tree: Tree[Any] = Tree(1)
    with serial_blas():
        for i, span in enumerate(spans_of(len(columns[0]), *COLUMN_SPANS)):
            here = slice(*span)
            tree.put(i, function(*(None if column is None else column[here] for column in columns)))
        return tree.total(lambda: function(*columns))


# Sums of targets and weights alone


@dataclass
class Tally:
    """The labels that occur, how often each does, and their weight."""

    labels: Array
    counts: Array
    weights: Array

    @classmethod
    def of(cls, y: Array, w: Array | None = None) -> Self:
        if y.dtype.kind in "iu" and len(y) and int(y.max()) - int(y.min()) < min(len(y), TILE):
            return cls._counted(y, w)
        labels, places, counts = np.unique(y, return_inverse=True, return_counts=True)
        return cls(labels, counts, np.bincount(places, w, len(labels)))

    @classmethod
    def _counted(cls, y: Array, w: Array | None) -> Self:
        """The same for integers that are near one another: they are counted, and not sorted."""
        least = y.min()
        places = y.astype(np.intp) - least.astype(np.intp)
        counts = np.bincount(places)
        there = np.flatnonzero(counts)
        labels = there.astype(y.dtype) + least  # both differences are right modulo the type
        return cls(labels, counts[there], np.bincount(places, w)[there])

    def __iadd__(self, other: Self) -> Self:
        labels, places = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        counts = np.concatenate([self.counts, other.counts])
        weights = np.concatenate([self.weights, other.weights])
        self.counts = np.bincount(places, counts, len(labels)).astype(counts.dtype)
        self.weights = np.bincount(places, weights, len(labels))
        self.labels = labels
        return self


@dataclass
class ColumnSums:
    """Sums of weights and weighted targets, and the largest target."""

    weight: Any
    targets: Any
    largest: float  # magnitude of a target

    @classmethod
    def of(cls, y: Array, w: Array | None = None) -> Self:
        w = np.ones(len(y)) if w is None else w
        largest = float(np.max(np.abs(y), initial=0.0))
        return cls(w.sum(), w @ y, largest)

    def __iadd__(self, other: Self) -> Self:
        self.weight += other.weight
        self.targets = self.targets + other.targets
        self.largest = max(self.largest, other.largest)
        return self


def tally_of(labels: Array, weights: Array | None) -> Tally:
    """The labels that occur, how often, and their weight."""
    total: Tally = total_of_columns(Tally.of, labels, weights)
    return total


def sums_of_columns(column: Array, weights: Array | None) -> ColumnSums:
    """Weighted sums of targets or weights."""
    total: ColumnSums = total_of_columns(ColumnSums.of, column, weights)
    return total
