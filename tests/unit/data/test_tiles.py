"""Rows, tiles, budgets and generators of any input."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from kreinlearn.data import memory
from kreinlearn.data.memory import budget_bytes, free_memory, in_words, require_memory
from kreinlearn.data.tiles import (
    TILE,
    Part,
    Scratch,
    block_rows,
    blocks_to_read,
    first_not_finite,
    length,
    objects_of,
    take,
    tiles_without,
)

X = np.arange(12.0).reshape(6, 2)
ORDERS = [[4, 0, 0, 5], np.array([4, 0, 0, 5]), np.array([-1, 2]), np.array([], dtype=np.intp)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_take_of_an_array_keeps_the_order_and_the_type(order, dtype):
    got = take(X.astype(dtype), order)
    assert got.dtype == dtype
    assert got.shape == (len(order), 2)
    np.testing.assert_array_equal(got, np.array([X[i] for i in order]).reshape(-1, 2))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_take_of_sparse_rows_stays_sparse(order, make):
    got = take(make(X), order)
    assert isinstance(got, make)
    np.testing.assert_array_equal(got.toarray(), X[list(order)])


@pytest.mark.parametrize("order", ORDERS)
def test_take_of_objects_gives_a_list_of_the_same_objects(order):
    objects = [{i} for i in range(6)]
    got = take(objects, order)
    assert isinstance(got, list)
    assert all(a is objects[i] for a, i in zip(got, order, strict=True))
    assert take(tuple(objects), order) == got


class Told(Part):
    """Rows in memory that tell when they are read."""

    def __init__(self, rows, *, anywhere):
        super().__init__(rows, 0, len(rows))
        self.anywhere, self.reads = anywhere, 0

    def __getitem__(self, span):
        self.reads += 1
        return super().__getitem__(span)

    def take(self, numbers):
        self.reads += 1
        return super().take(numbers)


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("form", [np.asarray, list])
def test_blocks_are_read_in_turn_unless_they_can_be_read_anywhere(anywhere, form):
    """Threads that call ``read`` in any order get the same rows, sorted by ``order``."""
    rows = np.random.default_rng(0).normal(size=(2 * TILE + 9, 2))
    source, known = Told(form(rows), anywhere=anywhere), np.array([0, 5, TILE + 1])
    blocks = list(blocks_to_read(source, known, lambda numbers: numbers[::-1]))
    assert source.reads == (0 if anywhere else 3)
    assert [start for start, _ in blocks] == [1, TILE, 2 * TILE]
    for _, read in blocks[::-1]:
        numbers, objects = read()
        assert not np.isin(numbers, known).any()
        np.testing.assert_array_equal(numbers, np.sort(numbers)[::-1])
        np.testing.assert_array_equal(np.array(objects), rows[numbers])


def test_take_from_a_memory_map_reads_rows(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    np.testing.assert_array_equal(take(mapped, [5, 1]), X[[5, 1]])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_array, list])
def test_length(make):
    assert length(make(X)) == 6


def known_rows():
    rng = np.random.default_rng(0)
    n = 3 * TILE + 100
    yield n, np.array([], dtype=np.intp)
    yield n, np.array([0, 1, TILE - 1, TILE, 2 * TILE + 7, n - 1])
    yield n, np.sort(rng.choice(n, 5000, replace=False))
    yield n, np.arange(TILE, 2 * TILE)  # a whole tile
    yield n, np.arange(n)
    yield 0, np.array([], dtype=np.intp)


@pytest.mark.parametrize("start", [0, TILE])
@pytest.mark.parametrize(("n", "known"), list(known_rows()))
def test_tiles_without_known_rows(n, known, start):
    parts = list(tiles_without(start, n, known))
    rest = sorted(set(range(start, n)) - set(known.tolist()))
    assert [i for part in parts for i in part.tolist()] == rest
    assert all(len(part) and part[0] // TILE == part[-1] // TILE for part in parts)
    assert len(parts) == len({i // TILE for i in rest})
    blocks = list(tiles_without(start, n, known, 2 * TILE))
    assert [i for block in blocks for i in block.tolist()] == rest
    assert len(blocks) == len({(i - start) // (2 * TILE) for i in rest})


@pytest.mark.parametrize(
    ("widths", "tiles"),
    [
        ((1, 1, 0), 8), ((10, 10, 1), 8), ((10, 30, 1), 4), ((60, 10, 1), 2), ((64, 64, 1), 2),
        ((65, 3, 1), 1), ((3, 500, 1), 1), ((3, 3, 43), 2),
    ],
)  # fmt: skip
def test_several_tiles_are_evaluated_at_once_if_their_rows_are_short(widths, tiles):
    """As many as have 128 columns, kernel values or targets beside one another, at most 8."""
    assert block_rows(*widths) == tiles * TILE


def test_a_worker_has_one_buffer():
    scratch = Scratch(useful=True)
    buffer = scratch.get(X, 3)
    assert buffer.shape == (TILE, 3)
    assert buffer.dtype == np.float64
    assert scratch.get(X[:2], 3) is buffer
    assert scratch.get(X.astype(np.float32), 3) is None
    assert scratch.get(X, 4).shape == (TILE, 4)
    assert Scratch(True, 3 * TILE).get(X, 4).shape == (3 * TILE, 4)
    mine = scratch.get(X, 4)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(scratch.get, X, 4).result() is not mine
    assert scratch.get(X, 4) is mine


def test_no_buffer_where_none_is_of_use():
    assert Scratch(useful=False).get(X, 3) is None
    assert Scratch(useful=True).get(X.astype(int), 3) is None
    assert Scratch(useful=True).get(["a", "b"], 3) is None


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        pd.Series,
        lambda words: pd.Series(words, index=[7, 7, 0]),
        lambda words: pd.Series(words, dtype="string"),
        pd.Index,
        pl.Series,
        lambda words: np.array(words, dtype=object),
        lambda words: (word for word in words),
    ],
)
def test_objects_of_a_column_are_its_entries_in_order(make):
    words = ["kernel", "krein", "kernel"]
    got = objects_of(make(words))
    assert isinstance(got, list)
    assert got == words
    assert all(type(word) is str for word in got)


@pytest.mark.parametrize("make", [pd.Series, pl.Series])
def test_objects_of_a_column_of_sequences_are_not_stacked(make):
    got = objects_of(make([[1.0, 2.0], [3.0]]))
    assert got == [[1.0, 2.0], [3.0]]


def test_objects_of_a_list_is_that_list():
    objects = [np.ones((2, 3)), np.zeros((5, 3))]
    assert objects_of(objects) is objects
    ragged = np.empty(2, dtype=object)
    ragged[:] = objects
    assert [a is b for a, b in zip(objects_of(ragged), objects, strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("200MB", 200_000_000),
        ("4GiB", 4 * 2**30),
        ("4 gib", 4 * 2**30),
        (" 1.5kB ", 1500),
        (".5k", 500),
        ("3.k", 3000),
        ("2Ki", 2048),
        ("512MiB", 2**29),
        ("1.5TB", 1_500_000_000_000),
        ("1TiB", 2**40),
        ("7b", 7),
        ("7", 7),
        (7, 7),
        (1e9, 10**9),
    ],
)
def test_budget(text, n_bytes):
    got = budget_bytes(text)
    assert got == n_bytes
    assert isinstance(got, int)


@pytest.mark.parametrize("text", ["", "MB", "4 XB", "-4MB", "1e9", "1.2.3MB", ".", "4 G i B"])
def test_a_budget_that_is_not_understood_says_what_is(text):
    with pytest.raises(ValueError, match=r'is not understood; pass bytes.*"200MB" or "4GiB"'):
        budget_bytes(text)


def test_no_budget_is_a_quarter_of_what_is_free(monkeypatch):
    assert free_memory() > 2**20
    monkeypatch.setattr(memory, "free_memory", lambda: 1003)
    assert budget_bytes(None) == 250


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sysconf")
def test_free_memory_without_proc(monkeypatch):
    def absent(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr(memory.Path, "read_text", absent)
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}
    monkeypatch.setattr(memory.os, "sysconf", pages.__getitem__)
    assert free_memory() == 2**31


def test_free_memory_of_a_container(monkeypatch):
    files = {"memory.max": "5000000\n", "memory.current": "2000000\n"}
    files["meminfo"] = "MemTotal: 9 kB\nMemAvailable:   8000 kB\n"
    monkeypatch.setattr(memory.Path, "read_text", lambda path, **_: files[path.name])
    assert free_memory() == 3_000_000
    files["memory.max"] = "max\n"
    assert free_memory() == 8000 * 1024


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1536, "1.54 kB"),
        (999_400, "999 kB"),
        (999_600, "1 MB"),
        (2.5e9, "2.5 GB"),
        (999.9e9, "1 TB"),
        (8e12, "8 TB"),
    ],
)
def test_sizes_in_words(n_bytes, text):
    assert in_words(n_bytes) == text


def test_memory_is_refused_with_need_limit_and_remedy():
    require_memory(100, 100, "a result", "raise it")
    message = r"^a result needs 2.5 MB but memory_budget is 1 kB; raise it$"
    with pytest.raises(MemoryError, match=message):
        require_memory(2_500_000, 1000, "a result", "raise it")
    with pytest.raises(MemoryError):
        require_memory(101, 100, "a result", "raise it")


def test_first_entry_that_is_not_finite():
    K = np.full((4, 3), 1e308)  # the sum overflows
    assert first_not_finite(K) is None
    assert first_not_finite(np.ones((4, 3))) is None
    assert first_not_finite(np.empty((0, 3))) is None
    K[3, 0] = np.nan
    assert first_not_finite(K) == (3, 0, "NaN")
    K[2, 2], K[2, 1] = np.nan, -np.inf
    assert first_not_finite(K) == (2, 1, "inf")
