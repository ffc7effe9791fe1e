"""Squares by strips are those of ``symmetric``, bit for bit, each pair once, by any workers."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

from kreinlearn.kernels import DeltaGauss, dissimilarity, pairwise, resolve
from kreinlearn.kernels.base import ObjectKernel
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.kernels.processes import Processes
from kreinlearn.pairs.evaluate import (
    evaluate_square,
    pairs_among,
    places_of,
    require_finite,
    rows_per_block,
    scaled,
    spans_of,
    strips,
)
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.progress import counting
from tests.unit.recorded import Recorded

RNG = np.random.default_rng(8)
WORDS = ["".join(RNG.choice(list("abcd"), size)) for size in RNG.integers(0, 12, 90)]
SERIES = [RNG.normal(size=size) for size in RNG.integers(3, 12, 90)]
SETS = [RNG.normal(size=(size, 2)) for size in RNG.integers(3, 7, 90)]
BAGS = [set(word) for word in WORDS]
OBJECTS = {
    "levenshtein": WORDS, "jaro_winkler": WORDS, "smith_waterman": [w.upper() + "A" for w in WORDS],
    "dtw": SERIES, "hausdorff": SETS, "procrustes": SETS,
    "jaccard_sets": BAGS,
}  # fmt: skip


def square_of(kernel, objects, workers=1, own=None, progress=None):
    n = len(objects)
    own = np.full(n, np.nan) if own is None else own
    seen = Recorded() if progress is None else progress
    with seen.step("square", n, pairs_among(kernel, n)):
        session = Session(workers=workers, progress=seen)
        return evaluate_square(kernel, objects, np.arange(n), own, session)


def test_spans_of_equal_length():
    assert spans_of(7, 3) == [(0, 3), (3, 6), (6, 7)]
    assert spans_of(0, 3) == []


def test_places_in_an_unsorted_array():
    columns = np.array([7, 2, 9, 4])
    np.testing.assert_array_equal(places_of(np.array([4, 7, 2]), columns), [3, 0, 1])


def test_a_unit_of_one_copies_nothing():
    C = np.ones((2, 2))
    assert scaled(C, 1.0) is C
    np.testing.assert_array_equal(scaled(C, 4.0), np.full((2, 2), 0.25))


def test_large_values_whose_sum_overflows_are_finite():
    require_finite(np.full((3, 3), 1.5e308), np.arange(3), np.arange(3))
    wrong = np.full((3, 3), 1.5e308)
    wrong[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN for row 12 .* landmark row 5;"):
        require_finite(wrong, np.array([10, 11, 12]), np.array([4, 5, 6]))


@pytest.mark.parametrize("n", [0, 1, 16, 17, 255, 256, 257, 4095, 4096, 5000])
def test_strips_are_all_rows_once(n):
    spans = strips(n)
    rows = [i for span in spans for i in range(*span)]
    assert rows == list(range(n))
    sizes = {stop - start for start, stop in spans[:-1]}
    assert all(16 <= size <= 256 for size in sizes)
    assert len(sizes) <= 1
    assert n < 256 or len(spans) >= 16 - 1


@pytest.mark.parametrize("name", OBJECTS)
def test_any_number_of_workers_gives_the_symmetric_values(name):
    for package in {"smith_waterman": ["parasail"]}.get(name, []):
        pytest.importorskip(package)
    X = OBJECTS[name]
    kernel = resolve(name).fit(X, RNG)
    whole = kernel.symmetric(X)
    for workers in (1, 2, 5):
        np.testing.assert_array_equal(square_of(kernel, X, workers), whole)


@pytest.mark.parametrize("n", [0, 1, 2, 16, 17, 90])
def test_a_pairwise_function_sees_each_pair_once_in_one_order(n):
    seen = Counter()

    def k(a, b):
        seen[a, b] += 1
        return float(a * 100 + b)

    K = square_of(pairwise(k), list(range(n)))
    assert seen == Counter((a, b) for a in range(n) for b in range(a, n))
    a, b = (
        np.minimum.outer(np.arange(n), np.arange(n)),
        np.maximum.outer(np.arange(n), np.arange(n)),
    )
    np.testing.assert_array_equal(K, 100.0 * a + b)


def test_a_known_diagonal_is_not_evaluated():
    own = np.where(np.arange(40) % 3 == 0, 7.0, np.nan)
    seen = Counter()

    def k(a, b):
        seen[a, b] += 1
        return 1.0

    K = square_of(pairwise(k), list(range(40)), own=own)
    assert {a for a, b in seen if a == b} == {a for a in range(40) if a % 3}
    np.testing.assert_array_equal(np.diagonal(K), np.where(np.arange(40) % 3 == 0, 7.0, 1.0))


class Slow(ObjectKernel):
    """Keeps the threads that evaluate, and waits until two are at it."""

    def __init__(self):
        self.both = threading.Barrier(2)
        self.threads_seen = set()

    def packed(self, X, first=0, n=0, like=None):
        return np.array(X, dtype=np.float64)

    def values(self, A, Z):
        if threading.get_ident() not in self.threads_seen:
            self.threads_seen.add(threading.get_ident())
            self.both.wait(20)
        return np.minimum(A[:, None], Z)


def test_two_threads_share_a_square():
    kernel = Slow()
    X = list(RNG.random(64))
    pairs = Pairs(kernel, Rows(X), Session(workers=2))
    sample = pairs.grown(pairs.sample(np.arange(64)), np.arange(64))
    assert len(kernel.threads_seen) == 2
    np.testing.assert_array_equal(sample.C, np.minimum.outer(X, X))


@pytest.mark.parametrize("kind", ["pairwise", "objects", "block"])
def test_progress_counts_the_pairs(kind):
    tally = [0]

    def k(A, B):
        tally[0] += len(A) * len(B)
        return np.minimum.outer(A, B)

    def f(a, b):
        tally[0] += 1
        return min(a, b)

    X, seen = list(RNG.random(90)), Recorded()
    kernel = {
        "pairwise": pairwise(f),
        "block": CallableKernel(k),
        "objects": resolve("levenshtein"),
    }
    square_of(kernel[kind], WORDS if kind == "objects" else X, 1, progress=seen)
    assert seen.done == (90, 90 * 90 if kind == "block" else 90 * 91 // 2)
    assert kind == "objects" or tally[0] == seen.done[1]


def test_which_kernels_are_evaluated_in_small_blocks():
    words = resolve("levenshtein")
    assert words.splits_squares
    assert pairwise(max).splits_squares
    assert not CallableKernel(max).splits_squares
    assert not resolve("weisfeiler_lehman").splits_squares  # packed once
    assert not dissimilarity("euclidean").splits_squares
    assert rows_per_block(words) == rows_per_block(pairwise(max)) == 256
    assert rows_per_block(CallableKernel(max)) == rows_per_block(DeltaGauss()) == 2048


def test_processes_share_large_parts():
    for kernel in (pairwise(max), resolve("earth_mover"), resolve("graph_edit")):
        assert rows_per_block(kernel) == 256
        kernel.processes = Processes(2)
        assert rows_per_block(kernel) == 2048
    words = resolve("levenshtein")
    combined = words + words
    combined.processes = Processes(2)  # of no use to its parts, which threads share
    assert rows_per_block(combined) == 256


class Told(Recorded):
    """On a terminal, so that parts are told of too."""

    @contextmanager
    def step(self, what, rows, pairs=0):
        self.told = []
        with super().step(what, rows, pairs), counting(lambda *part: self.told.append(part)):
            yield


def absolute(a, b):
    return abs(a - b)


def block(A, B):
    return np.abs(np.subtract.outer(A, B))


@pytest.mark.parametrize("kind", ["pairwise", "block", "objects"])
def test_processes_tell_of_every_part(kind):
    n = 280
    X = list(range(n)) if kind != "objects" else [np.full((1, 1), float(i)) for i in range(n)]
    kernels = {
        "pairwise": pairwise(absolute),
        "block": CallableKernel(block),
        "objects": resolve("earth_mover"),
    }
    kernel, seen = kernels[kind], Told()
    kernel.processes = Processes(2)
    kernel.fit(X, RNG)
    K = square_of(kernel, X, progress=seen)
    np.testing.assert_array_equal(K, block(np.arange(n), np.arange(n)))
    assert seen.done == (n, pairs_among(kernel, n))
    assert np.sum(seen.told, axis=0).tolist() == list(seen.done)
    assert len(seen.told) >= {"pairwise": 50, "block": 3, "objects": 8}[kind]

    with seen.step("rectangle", n, n * 90):
        K = kernel.columns(X[:90])(X)
    np.testing.assert_array_equal(K, block(np.arange(n), np.arange(90)))
    assert np.sum(seen.told, axis=0).tolist() == [n, n * 90]
    assert len(seen.told) >= 3
