"""Spans of tiles cover all rows, by their number alone; threads do not change the tree."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from kreinlearn.data.tiles import TILE
from kreinlearn.sums.parallel import FAN_IN, LONGEST, Queue, Tree, depth_of, spans_of


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


def test_a_stopped_queue_hands_out_nothing():
    queue = Queue(((t * TILE,) for t in itertools.count()), 100 * TILE)
    span = queue.claim()
    queue.stop()
    assert queue.claim() is None
    assert list(queue.blocks_of(span)) == []
