"""Sums over row blocks: right, in a fixed order, and well-behaved when a block fails."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.utils import gen_batches

from kreinlearn.data.tiles import TILE
from kreinlearn.sums import parallel
from kreinlearn.sums.moments import Gram
from kreinlearn.sums.parallel import (
    FAN_IN,
    LONGEST,
    Queue,
    Tree,
    _controller,
    depth_of,
    map_blocks,
    map_in_threads,
    serial_blas,
    spans_of,
    sum_over_blocks,
    worker_count,
)
from tests.bounds import rounding
from tests.systems import posix_only, press

RNG = np.random.default_rng(0)


class Order:
    """Records which blocks were added to a run, in which order, and how runs are merged."""

    def __init__(self):
        self.seen = []

    def __iadd__(self, other):
        self.seen = [self.seen, other.seen]
        return self

    def clear(self):
        self.seen = []


def add_number(total, block):
    total.seen.append(block[0] // TILE)


def of_tiles(numbers):
    return [(number * TILE,) for number in numbers]


def nested(runs):
    """What one sum of runs looks like: each is added to those before it."""
    total = runs[0]
    for run in runs[1:]:
        total = [total, run]
    return total


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_blocks_are_added_in_a_fixed_order_and_tree(workers):
    def slow_for_some(total, block):
        time.sleep(0.002 * (block[0] // TILE % 3))
        add_number(total, block)

    numbers = [t for t in range(40) if t not in (3, *range(10, 15))]  # a run has no block
    total = sum_over_blocks(slow_for_some, of_tiles(numbers), Order, 40 * TILE, workers=workers)
    runs = [list(range(at, at + 5)) for at in range(0, 30, 5)]
    runs += [[30, 31], [32, 33], [34, 35], [36], [37], [38], [39]]  # shorter towards the end
    del runs[2]
    runs[0].remove(3)
    assert total.seen == [nested(runs[:8]), nested(runs[8:])]


def test_no_blocks_give_zero():
    total = sum_over_blocks(lambda *_: None, [], lambda: Gram.zeros(3), 5000, workers=1)
    assert not total.matrix.any()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_the_first_error_stops_all_and_is_raised(workers, error):
    done = []

    def add(total, block):
        if block[0] == 5 * TILE:
            raise error("block 5")
        time.sleep(0.001)
        done.append(block)

    with pytest.raises(error, match="block 5"):
        sum_over_blocks(add, of_tiles(range(1000)), Order, 1000 * TILE, workers=workers)
    assert_stopped(done, 100)


def test_an_error_of_any_worker_stops_those_before_it_at_the_end_of_their_span():
    """The first worker is busy with the first span, which may fail, too, while the second fails."""
    failed, done = threading.Event(), []

    def add(total, block):
        if block[0] == LONGEST * TILE:
            failed.set()
            raise ZeroDivisionError("the second span")
        assert failed.wait(10)
        done.append(block)

    with pytest.raises(ZeroDivisionError, match="the second span"):
        sum_over_blocks(add, of_tiles(range(1000)), Order, 1000 * TILE, workers=2)
    assert len(done) == LONGEST


def test_an_interrupt_of_the_thread_that_waits_stops_all_workers(heard):
    done = []

    def add(total, block):
        if not done:
            press()
        time.sleep(0.001)
        done.append(block)

    with pytest.raises(KeyboardInterrupt):
        sum_over_blocks(add, of_tiles(range(2000)), Order, 2000 * TILE, workers=2)
    assert_stopped(done, 1000)


def assert_stopped(done, most):
    """Whether fewer blocks than these are done, and no thread goes on."""
    count = len(done)
    assert count < most
    time.sleep(0.02)
    assert len(done) == count


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_workers_that_have_begun_stop_if_another_cannot_be_started(error, monkeypatch):
    done, submit = [], ThreadPoolExecutor.submit

    def second_fails(pool, work):
        if done:
            raise error("can't start new thread")
        future = submit(pool, work)
        while not done:
            time.sleep(0.001)
        return future

    def add(total, block):
        time.sleep(0.001)
        done.append(block)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", second_fails)
    with pytest.raises(error, match="start new thread"):
        sum_over_blocks(add, of_tiles(range(2000)), Order, 2000 * TILE, workers=2)
    assert_stopped(done, 1000)


def test_an_interrupt_that_wakes_nobody_is_heard_as_well(heard):
    """As on Windows: a signal that a worker raises does not end the wait of the first thread."""
    done = []

    def add(total, block):
        time.sleep(0.001)
        done.append(block)
        if len(done) == 200:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sum_over_blocks(add, of_tiles(range(4000)), Order, 4000 * TILE, workers=2)
    assert len(done) < 2000


def test_an_error_of_the_source_is_raised():
    def source():
        yield (1,)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        sum_over_blocks(add_number, source(), Order, 5000, workers=2)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_gram_is_the_cross_product(workers):
    C = RNG.normal(size=(5000, 17))
    gram = sum_over_blocks(
        lambda total, tile: total.add(C[tile]),
        gen_batches(5000, TILE),
        lambda: Gram.zeros(17),
        5000,
        workers=workers,
    )
    exact = np.einsum("ij,ik->jk", C.astype(np.longdouble), C.astype(np.longdouble))
    size = np.abs(C).T @ np.abs(C)
    assert (np.abs(gram.matrix - exact.astype(float)) <= rounding(len(C)) * size).all()
    np.testing.assert_array_equal(gram.matrix, gram.matrix.T)
    assert (np.abs(gram.sums - C.sum(0)) <= 2 * rounding(len(C)) * np.abs(C).sum(0)).all()


def test_sums_of_wide_grams_and_those_that_are_used_again():
    C = RNG.normal(size=(40, 300))
    first, second = Gram.zeros(300), Gram.zeros(300)
    first.add(C[:25])
    second.add(C[25:])
    first += second
    size = np.abs(C).T @ np.abs(C)
    assert (np.abs(first.matrix - C.T @ C) <= 2 * rounding(len(C)) * size).all()
    second.clear()
    assert not second.triangle.any()
    assert not second.sums.any()


def test_gram_takes_rows_that_are_not_contiguous():
    C = RNG.normal(size=(60, 10))[::2, 1:8]
    gram = Gram.zeros(7)
    gram.add(C)
    size = np.abs(C).T @ np.abs(C)
    assert (np.abs(gram.matrix - C.T @ C) <= 2 * rounding(len(C)) * size).all()


def test_map_blocks_fills_every_row():
    out = np.zeros(10_000)

    def square(tile):
        out[tile] = np.arange(tile.start, tile.stop) ** 2

    map_blocks(square, gen_batches(10_000, TILE), workers=3)
    np.testing.assert_array_equal(out, np.arange(10_000.0) ** 2)


def test_the_error_of_the_first_block_that_fails_is_raised():
    later = threading.Event()

    def fail(number):
        if number == 1:
            assert later.wait(60)  # block 2 has failed before, in another thread
        if number in (1, 2):
            later.set()
            raise ValueError(f"block {number}")

    with pytest.raises(ValueError, match="block 1"):
        map_blocks(fail, range(5), workers=2)


def test_no_block_is_begun_long_after_one_has_failed():
    begun = []

    def fail(number):
        begun.append(number)
        if number == 0:
            raise ValueError("the first block")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="the first block"):
        map_blocks(fail, range(1000), workers=2)
    assert len(begun) < 1000  # these would take a second


@pytest.mark.parametrize("reads", [False, True])
def test_the_error_of_the_first_span_that_fails_is_raised(reads):
    """Also if a later span, or the reading of what follows, has failed before it."""
    later, n = threading.Event(), 8 * TILE  # one tile per span

    def blocks():
        for number, here in enumerate(gen_batches(n, TILE)):
            if reads and number == 3:
                later.set()
                raise OSError("the file ends here")
            yield here

    def fail(total, here):
        number = here.start // TILE
        if number == 1:
            assert later.wait(60)
        if number >= 1 and not (reads and number > 1):
            later.set()
            raise ValueError(f"tile {number}")

    assert len(spans_of(n)) == 8
    with pytest.raises(ValueError, match="tile 1"):
        sum_over_blocks(fail, blocks(), lambda: Gram.zeros(2), n, workers=3)


def test_an_error_of_reading_is_raised_after_all_that_was_read():
    added = []

    def blocks():
        yield slice(0, TILE)
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="the file ends here"):
        sum_over_blocks(
            lambda total, here: added.append(here), blocks(), lambda: Gram.zeros(2), 9, workers=2
        )
    assert added == [slice(0, TILE)]


def test_gram_products_run_side_by_side():
    """The product releases the GIL: a Python thread makes progress while it runs."""
    C = RNG.normal(size=(20_000, 400))
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    Gram.zeros(400).add(C)
    during = ticks[0] - before
    stop.set()
    thread.join()
    assert during > 10


def test_worker_count():
    assert worker_count(3) == 3
    assert worker_count(None) >= 1


@pytest.mark.parametrize(("threads", "cores", "expected"), [(1, 8, 1), (2, 8, 2), (8, 3, 3)])
def test_by_default_as_many_workers_as_blas_may_use_and_no_more_than_cores(
    monkeypatch, threads, cores, expected
):
    libraries = [SimpleNamespace(num_threads=1), SimpleNamespace(num_threads=threads)]
    monkeypatch.setattr(parallel, "_blas", lambda: libraries)
    monkeypatch.setattr(joblib, "cpu_count", lambda: cores)
    assert worker_count(None) == expected


def test_one_thread_where_joblib_runs_several_of_us(monkeypatch):
    monkeypatch.setattr(parallel, "_blas", lambda: [SimpleNamespace(num_threads=4)])
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    assert worker_count(None) == 4
    jobs = (joblib.delayed(worker_count)(given) for given in (None, None, 3))
    assert joblib.Parallel(2, backend="threading")(jobs)[:2] == [1, 1]


def test_blas_stays_serial_until_the_last_has_left():
    def threads():
        return [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]

    with _controller().limit(limits=2):
        before, first, second = threads(), serial_blas(), serial_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # they do not leave in the order of a stack
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before


# Spans of tiles, and the tree of their sums


@pytest.mark.parametrize("n", [1, TILE, TILE + 1, 40 * TILE, 70 * TILE + 5, 10_000_000])
def test_spans_are_whole_tiles_of_all_rows(n):
    spans = spans_of(n)
    assert [start for start, _ in spans[1:]] == [stop for _, stop in spans[:-1]]
    assert (spans[0][0], spans[-1][1]) == (0, n)
    assert all(start % TILE == 0 for start, _ in spans)
    tiles = -(-n // TILE)
    assert min(tiles, 8) <= len(spans) <= tiles / LONGEST + 25
    assert max(stop - start for start, stop in spans) <= LONGEST * TILE
    assert spans[-1][1] - spans[-1][0] <= TILE  # workers end together


def test_no_rows_have_no_spans():
    assert spans_of(0) == []


class Text(str):
    """A sum that shows how it came about."""

    def __iadd__(self, other):
        return Text(f"({self}{other})")


def by_definition(texts):
    """Neighbours first, FAN_IN at a time, until one is left."""
    while len(texts) > 1:
        parts = [texts[i : i + FAN_IN] for i in range(0, len(texts), FAN_IN)]
        texts = [part[0] for part in parts]
        for i, part in enumerate(parts):
            for other in part[1:]:
                texts[i] = f"({texts[i]}{other})"
    return texts[0]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17, 64, 65, 150])
def test_the_tree_is_fixed(count):
    names = [f"{i}." for i in range(count)]
    for order in (range(count), reversed(range(count))):
        tree = Tree(count)
        for i in order:
            tree.put(i, Text(names[i]))
        assert tree.total(Text) == by_definition(names)
    levels = depth_of(count * TILE) if count <= 8 else None
    assert levels in (None, 1)


@pytest.mark.parametrize("tiles", [0, 1, 8, 9, 70, 80 * LONGEST, 600 * LONGEST])
def test_a_tree_is_no_deeper_than_its_spans_need(tiles):
    """The least d >= 1 with FAN_IN^d >= the number of spans: up to 600 of them here."""
    count, depth = len(spans_of(tiles * TILE)), depth_of(tiles * TILE)
    assert count <= FAN_IN**depth
    assert depth == 1 or count > FAN_IN ** (depth - 1)


def test_a_span_begins_when_those_before_it_are_added():
    tree, begun = Tree(2), []
    assert tree.may_begin(0)
    assert tree.may_begin(1)
    thread = threading.Thread(target=lambda: begun.append(tree.may_begin(2)))
    thread.start()
    tree.put(1, Text("b"))
    time.sleep(0.05)
    assert not begun
    tree.put(0, Text("a"))
    thread.join(10)
    assert begun == [True]
    assert tree.unused() == "b"
    assert tree.unused() is None


def test_a_tree_that_is_stopped_lets_those_that_wait_go():
    tree, begun, waits = Tree(1), [], threading.Event()

    def wait():
        waits.set()
        begun.append(tree.may_begin(5))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert waits.wait(10)
    time.sleep(0.05)
    assert not begun
    tree.stop()
    thread.join(10)
    assert begun == [False]


@pytest.mark.parametrize(("number", "may"), [(0, True), (2, False), (3, False)])
def test_no_span_begins_from_one_that_has_failed_on(number, may):
    tree, begun = Tree(1), []
    tree.stop(2)
    thread = threading.Thread(target=lambda: begun.append(tree.may_begin(number)), daemon=True)
    thread.start()
    thread.join(10)
    assert begun == [may]


def test_blocks_are_read_in_order_and_wait_for_their_span():
    read = []

    def source():
        for t in range(16):  # spans of two tiles, shorter at the end
            read.append(t)
            yield (t * TILE,)

    queue = Queue(source(), 16 * TILE)
    first, second = queue.claim(), queue.claim()
    assert read == [0, 1, 2]
    assert list(queue.blocks_of(second)) == [(2 * TILE,), (3 * TILE,)]
    assert list(queue.blocks_of(first)) == [(0,), (TILE,)]
    numbers = [first.number, second.number]
    for span in iter(queue.claim, None):
        numbers.append(span.number)
        assert list(queue.blocks_of(span))
    assert numbers == list(range(len(spans_of(16 * TILE))))
    assert read == list(range(16))


def test_no_block_is_read_before_it_is_wanted():
    read = []

    def source():
        for t in range(32):
            read.append(t)
            yield (t * TILE,)

    queue = Queue(source(), 32 * TILE)
    blocks = queue.blocks_of(queue.claim())
    for count in (1, 2, 3):
        assert next(blocks) == ((count - 1) * TILE,)
        assert len(read) == count


def test_a_stopped_queue_hands_out_nothing():
    queue = Queue(((t * TILE,) for t in itertools.count()), 100 * TILE)
    span = queue.claim()
    queue.stop()
    assert queue.claim() is None
    assert list(queue.blocks_of(span)) == []


def test_no_thread_is_started_in_vain(monkeypatch):
    """Rows of one span are summed in this thread, however many workers there may be."""
    monkeypatch.setattr(parallel, "_pool", None)
    x = RNG.normal(size=(TILE, 2))

    def add(total, rows):
        total.add_products(x[rows], None)

    found = sum_over_blocks(add, gen_batches(TILE, 256), lambda: Gram.zeros(2), TILE, workers=4)
    np.testing.assert_allclose(found.matrix, x.T @ x, atol=1e-12 * TILE)


def met(workers):
    """The threads of one pass in which every worker waits for the others."""
    barrier, threads = threading.Barrier(workers), set()

    def apply(_):
        barrier.wait(60)
        threads.add(threading.get_ident())

    map_blocks(apply, range(workers), workers=workers)
    return threads


def test_threads_are_used_again():
    before = threading.active_count()
    for _ in range(50):
        assert len(met(2)) == 2
    assert threading.active_count() - before <= 2


def test_passes_within_passes_do_not_wait_for_threads():
    assert [len(threads) for threads in map_in_threads(lambda _: met(3), range(4), 4)] == 4 * [3]


FORKED = """
import os
from kreinlearn.sums.parallel import map_in_threads

def squares():
    return map_in_threads(lambda i: i * i, range(5), 2)

assert squares() == [0, 1, 4, 9, 16]
child = os.fork()
if not child:
    os._exit(0 if squares() == [0, 1, 4, 9, 16] else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@posix_only("fork")
def test_a_process_that_is_forked_starts_threads_of_its_own():
    how = [sys.executable, "-W", "ignore", "-c", FORKED]
    subprocess.run(how, check=True, timeout=120)
