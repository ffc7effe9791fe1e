"""The pass over all rows against whole matrices in plain numpy."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from kreinlearn.data.tiles import TILE, Source, row_blocks
from kreinlearn.kernels import DeltaGauss, Precomputed, SklearnMetric, pairwise
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.nystrom.core import (
    Reservoir,
    RowWork,
    _affordable_workers,
    _reservoir_keys,
    candidate_count,
    sweep,
)
from kreinlearn.nystrom.fit import all_columns, fit_map
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.evaluate import project
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import LONGEST, spans_of
from tests import oracles
from tests.unit.recorded import Recorded

N, M = 2 * TILE + 300, 12
X = np.random.default_rng(3).normal(size=(N, 3))
KNOWN = np.sort(np.random.default_rng(4).choice(N, 200, replace=False))  # rows of the sample
Z = KNOWN[np.random.default_rng(5).permutation(200)[:M]]
SPEC = MapSpec(M, "uniform")
Y = np.random.default_rng(6).normal(size=(N, 2))
W = np.random.default_rng(7).uniform(0.2, 2, N)


def rng(seed=0):
    return np.random.default_rng(seed)


def delta_gauss(A, B):
    return oracles.delta_gauss(np.asarray(A), np.asarray(B), 6.0, 4.0)


def distances(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(2))


def centred(A, reference):
    """Similarities of A to the reference set, of Euclidean distances."""
    squares = distances(A, reference) ** 2
    among = distances(reference, reference) ** 2
    return -0.5 * (squares - squares.mean(1)[:, None] - among.mean(1) + among.mean())


def opened(kernel, X, rows=KNOWN, landmarks=Z, *, outside=None, **session):
    """Pairs and a sample with landmarks."""
    session = Session(**{"budget": 10**9, **session})
    pairs = Pairs(kernel.fit(X, rng()), Rows(X, outside), session)
    return pairs, pairs.with_reference(pairs.grown(pairs.sample(rows), np.asarray(landmarks)))


def gram_of(pairs, sample, core="plain"):
    """What a pass without targets leaves."""
    return sweep(pairs, sample, replace(SPEC, core=core), rng(), Targets.none(pairs.n))


def of_vectors(X=X, **session):
    return opened(DeltaGauss(6.0, 4.0), X, **session)


def assert_gram(gram, C, rtol=1e-12):
    """C'C and the sums of C, to rounding of a sum of len(C) terms."""
    exact = C.astype(np.longdouble)
    size = np.abs(exact).T @ np.abs(exact)
    assert (np.abs(gram.matrix - exact.T @ exact) <= rtol * size).all()
    assert (np.abs(gram.sums - exact.sum(0)) <= rtol * np.abs(exact).sum(0)).all()


# The Gram matrix

KERNELS = {  # kernel, its rows, similarities of all rows to the landmarks
    "vectors": (DeltaGauss(6.0, 4.0), X, delta_gauss(X, X[Z])),
    "sparse": (DeltaGauss(6.0, 4.0), sp.csr_array(X), delta_gauss(X, X[Z])),
    "metric": (SklearnMetric("euclidean"), X, centred(X, X[Z])),
    "callable": (CallableKernel(delta_gauss), list(X), delta_gauss(X, X[Z])),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("core", ["plain", "ls"])
@pytest.mark.parametrize("name", KERNELS)
def test_gram_of_sampled_and_streamed_rows(name, core, workers):
    kernel, objects, C = KERNELS[name]
    swept = gram_of(*opened(kernel, objects, workers=workers), core)
    assert swept.unit == 1.0
    assert_gram(swept.gram, C)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("workers", [1, 3])
def test_moments_of_each_group_with_targets_and_weights(weights, workers):
    """Sums of one group are those of its rows alone; values of all rows go where they are kept."""
    groups = rng(8).integers(3, size=N)
    pairs, sample = of_vectors(workers=workers)
    keep = np.full((N, M), np.nan)
    swept = sweep(pairs, sample, SPEC, rng(), Targets(Y, weights, groups, 3), keep)
    C, w = delta_gauss(X, X[Z]), np.ones(N) if weights is None else weights
    np.testing.assert_allclose(keep, C, rtol=0, atol=1e-13)
    assert len(swept.groups) == 3
    for g, moments in enumerate(swept.groups):
        here = groups == g
        F, T, v = C[here], Y[here], w[here]
        np.testing.assert_allclose(moments.gram.matrix, (F.T * v) @ F, rtol=0, atol=1e-9)
        np.testing.assert_allclose(moments.gram.sums, v @ F, rtol=0, atol=1e-9)
        np.testing.assert_allclose(moments.cross, (F.T * v) @ T, rtol=0, atol=1e-9)
        np.testing.assert_allclose(moments.y_sums, v @ T, rtol=0, atol=1e-9)
        np.testing.assert_allclose(moments.y_squares, v @ T**2, rtol=0, atol=1e-9)
        assert moments.weight == pytest.approx(v.sum(), rel=1e-12)
    np.testing.assert_allclose(swept.gram.matrix, (C.T * w) @ C, rtol=0, atol=1e-8)


def test_gram_of_a_given_matrix():
    n = TILE + 100
    K = np.cos(np.add.outer(np.arange(n), np.arange(n)))
    rows = np.append(KNOWN[:40], n - 1)  # all below n
    swept = gram_of(*opened(Precomputed(), K, rows, rows[[30, 2, 40]]))
    assert_gram(swept.gram, K[:, rows[[30, 2, 40]]])


@pytest.mark.parametrize("types", [("f4", "f8"), ("f8", "f4"), ("f8", "f8")])
@pytest.mark.parametrize("core", ["plain", "ls"])
def test_gram_of_landmarks_from_outside_does_not_count_them_as_rows(core, types):
    inside, outside = X.astype(types[0]), rng(9).normal(size=(5, 3)).astype(types[1])
    rows = np.concatenate([np.arange(-5, 0), KNOWN])
    given = opened(DeltaGauss(6.0, 4.0), inside, rows, rows[:5], outside=outside)
    rtol = 1e-12 if types == ("f8", "f8") else 1e-5
    assert_gram(gram_of(*given, core).gram, delta_gauss(inside, outside), rtol)


def test_rows_of_the_sample_are_not_evaluated_again():
    pairs = Counter()

    def k(a, b):
        pairs[min(a, b), max(a, b)] += 1
        return float(np.cos(a * b))

    n, rows = TILE + 52, np.arange(0, 60, 3)
    gram = gram_of(*opened(pairwise(k), list(range(n)), rows, [3, 30])).gram
    assert set(pairs.values()) == {1}
    assert set(pairs) == {(min(a, b), max(a, b)) for a in range(n) for b in (3, 30)}
    assert_gram(gram, np.cos(np.arange(n)[:, None] * np.array([3, 30])))


def test_a_sample_of_all_rows_needs_no_pass():
    seen = Recorded()
    pairs, sample = opened(DeltaGauss(6.0, 4.0), X, np.arange(N), budget=1, progress=seen)
    del seen.steps[:]
    swept = gram_of(pairs, sample)
    assert_gram(swept.gram, delta_gauss(X, X[Z]))
    assert not seen.steps
    assert swept.sample is sample


def test_threads_change_no_bit():
    grams = []
    for workers in (1, 2, 5):
        swept = gram_of(*of_vectors(workers=workers), "ls")
        grams.append((swept.gram.matrix, swept.gram.sums, swept.sample.rows, swept.sample.raw))
    for other in grams[1:]:
        for a, b in zip(grams[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("power", [-300, 400])
def test_gram_of_a_kernel_of_any_size_is_that_of_the_kernel_over_its_unit(power):
    def large(A, B):
        return delta_gauss(A, B) * 2.0**power

    swept = gram_of(*opened(CallableKernel(large), list(X)))
    assert_gram(swept.gram, delta_gauss(X, X[Z]) * (2.0**power / swept.unit))
    assert 2.0 ** (power - 4) < swept.unit < 2.0 ** (power + 2)


@pytest.mark.parametrize("core", ["plain", "ls"])
@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++", "leverage", "kmeans++"])
def test_the_gram_of_a_fit_with_a_small_pool(scheme, core):
    pairs = Pairs(DeltaGauss(6.0, 4.0).fit(X, rng()), Rows(X), Session())
    fitted = fit_map(pairs, MapSpec(M, scheme, core=core, pool=150), rng(2))
    assert len(fitted.sample.pool) <= 150
    assert len(fitted.sample.landmarks) == M
    C = delta_gauss(X, X[fitted.sample.landmarks])
    assert_gram(fitted.gram, C)
    np.testing.assert_allclose(fitted.columns(X), C, rtol=0, atol=1e-13)


# Rows drawn on the way


def test_the_least_squares_core_takes_in_rows_of_its_own():
    pairs, before = of_vectors()
    sample = gram_of(pairs, before, "ls").sample
    drawn = np.setdiff1d(sample.rows, KNOWN)
    assert len(drawn) == candidate_count(M) // 2
    assert set(drawn // TILE) == {0, 1, 2}
    assert len(sample.rows) == len(np.unique(sample.rows)) == 200 + len(drawn)
    np.testing.assert_allclose(sample.C, delta_gauss(X[sample.rows], X[Z]), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(sample.pool, KNOWN)
    np.testing.assert_array_equal(before.rows, KNOWN)  # the sample of before is as it was


def test_other_cores_take_in_none():
    np.testing.assert_array_equal(gram_of(*of_vectors(), "truncated").sample.rows, KNOWN)


def test_no_more_rows_are_drawn_than_there_are():
    small = X[:230]
    given = opened(DeltaGauss(6.0, 4.0), small, np.arange(200), np.arange(0, 200, 4))
    np.testing.assert_array_equal(gram_of(*given, "ls").sample.rows, np.arange(230))


def test_the_largest_key_is_a_draw_by_leverage():
    """The first of a draw without replacement, by chi-squared over 2,000 seeds."""
    projected = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, -1.0]])
    winners = [int(np.argmax(_reservoir_keys(projected, seed, 0))) for seed in range(2000)]
    counts = np.bincount(winners, minlength=4)
    assert counts[2] == 0
    expected = 2000 * np.array([1, 2, 5]) / 8
    assert stats.chisquare(counts[[0, 1, 3]], expected).pvalue > 1e-3


def test_keys_depend_on_the_seed_and_the_row():
    projected = np.ones((5, 2))
    keys = _reservoir_keys(projected, 7, 2048)
    np.testing.assert_array_equal(keys, _reservoir_keys(projected, 7, 2048))
    assert not np.isin(keys, _reservoir_keys(projected, 8, 2048)).any()
    assert not np.isin(keys, _reservoir_keys(projected, 7, 4096)).any()


@pytest.mark.parametrize("size", [1, 5, 40, 200])
@pytest.mark.parametrize("seed", range(4))
def test_reservoirs_merge_like_one_sort_whatever_the_order_of_blocks(size, seed):
    draw = rng(seed)
    keys, raw = draw.normal(size=100), draw.normal(size=(100, 3))
    best = np.argsort(-keys)[:size]
    blocks = np.array_split(draw.permutation(100), [10, 11, 11, 60])
    lanes = [Reservoir.empty(size, 3) for _ in range(3)]
    for i, block in enumerate(draw.permutation(len(blocks))):
        rows = blocks[block]
        lanes[i % 3].add(keys[rows], rows, raw[rows])
    total = lanes[0]
    total += lanes[1]
    total += lanes[2]
    assert set(total.numbers.tolist()) == set(best.tolist())
    np.testing.assert_array_equal(total.keys, keys[total.numbers])
    np.testing.assert_array_equal(total.raw, raw[total.numbers])


@pytest.mark.parametrize("size", [10, 100, 500, 700])
def test_of_rows_that_are_equally_likely_the_first_are_kept(size):
    """Rows without leverage have the key -inf: no order of a sort may decide among them."""
    some = rng(9).random(1000) < 0.5
    keys = np.where(some, -1.0, -np.inf)
    expected = np.sort(np.concatenate([np.flatnonzero(some), np.flatnonzero(~some)])[:size])
    reservoir = Reservoir.empty(size, 1)
    reservoir.add(keys, np.arange(1000), np.arange(1000.0)[:, None])
    assert reservoir.numbers.tolist() == reservoir.raw[:, 0].tolist() == expected.tolist()


def test_a_reservoir_keeps_copies():
    raw = np.ones((2, 3))
    reservoir = Reservoir.empty(4, 3)
    reservoir.add(np.array([1.0, 2.0]), np.array([10, 11]), raw)
    raw[:] = 7
    np.testing.assert_array_equal(reservoir.raw, 1)


# What may go wrong


def broken_at(row, value):
    """Delta-Gauss of row numbers, but one row's similarity to landmark Z[4] is not a number."""

    def k(A, B):
        C = delta_gauss(X[A], X[B])
        C[np.ix_(np.asarray(A) == row, np.asarray(B) == Z[4])] = value
        return C

    return CallableKernel(k)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "inf")])
def test_a_streamed_value_that_is_not_finite_is_named(value, word):
    row = next(i for i in range(TILE + 10, N) if i not in KNOWN)
    given = opened(broken_at(row, value), list(range(N)))
    message = rf"kernel produced {word} for row {row} .* landmark row {Z[4]};"
    with pytest.raises(ValueError, match=message):
        gram_of(*given)
    with pytest.raises(ValueError, match=message):
        all_columns(*given, "svd")


def test_an_error_of_the_kernel_gets_a_note_and_ends_the_blocks():
    """The bar of a pass stops with the pass, not when the traceback is forgotten."""

    def k(A, B):
        if TILE + 7 in A:
            raise ZeroDivisionError("of the person's own")
        return np.ones((len(A), len(B)))

    rows, seen = np.array([1, 5, 9]), Recorded()
    given = opened(CallableKernel(k), list(range(N)), rows, [5], progress=seen)
    with pytest.raises(ZeroDivisionError, match="person's own") as caught:
        gram_of(*given)
    assert seen.open == 0
    (note,) = caught.value.__notes__
    assert f"on rows {TILE}..{2 * TILE - 1} against 1 landmarks" in note


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("core", ["plain", "ls"])
def test_progress_sees_every_row_that_is_streamed(core, workers):
    seen = Recorded()
    given, rest = of_vectors(workers=workers, progress=seen), N - len(KNOWN)
    before = seen.done
    gram_of(*given, core)
    assert seen.steps[1:] == [("kernel rows", rest, rest * M)]
    assert np.subtract(seen.done, before).tolist() == [rest, rest * M]


def test_progress_of_all_columns_at_once():
    seen = Recorded()
    given, rest = of_vectors(progress=seen), N - len(KNOWN)
    before = seen.done
    all_columns(*given, "svd")
    assert seen.steps[1:] == [("kernel rows", rest, rest * M)]
    assert np.subtract(seen.done, before).tolist() == [rest, rest * M]


class Watched(Recorded):
    """Keeps how many rows were evaluated at once, and can make threads wait for one another."""

    def __init__(self):
        super().__init__()
        self.blocks, self.barrier = [], None

    def add(self, rows, pairs=0):
        super().add(rows, pairs)
        self.blocks.append(rows)
        if self.barrier is not None:
            self.barrier.wait(10)  # an error if the others do not come


def test_every_worker_evaluates_a_tile_of_its_own_at_the_same_time():
    seen = Watched()
    given = of_vectors(workers=3, progress=seen)
    seen.barrier = threading.Barrier(3)  # as many as there are tiles
    gram_of(*given)
    all_columns(*given, "svd")


def test_narrow_rows_are_evaluated_several_tiles_at_a_time():
    """All rows of a span at once, where these need no more room than a tile of wide rows."""
    seen, rows = Watched(), np.arange(20)
    n = 17 * TILE
    given = of_vectors(np.resize(X, (n, 3)), rows=rows, landmarks=rows[:2], progress=seen)
    seen.blocks.clear()
    gram_of(*given)
    spans = [stop - start for start, stop in spans_of(n)]
    assert max(spans) == 2 * TILE
    assert seen.blocks == [spans[0] - len(rows), *spans[1:]]


@pytest.mark.parametrize("n_rows", [1, 100, TILE])
def test_progress_of_new_objects_in_parts(n_rows):
    (pairs, sample), seen = of_vectors(), Recorded()
    columns = pairs.evaluator(sample)
    W = rng().normal(size=(M, 2))
    out = np.empty((250, 2))
    project(X[:250], columns, W, out, 2, n_rows=n_rows, progress=seen)
    assert seen.steps == [("new rows", 250, 250 * M)]
    assert seen.done == (250, 250 * M)
    np.testing.assert_allclose(out, columns(X[:250]) @ W, rtol=1e-12, atol=1e-12)


# Memory


def smallest_budget(allowed):
    low, high = 0, 10**10
    while low < high:
        middle = (low + high) // 2
        try:
            allowed(middle)
            high = middle
        except MemoryError:
            low = middle + 1
    return high


def affordable(pairs, sample, size, budget):
    """How many workers a pass gets, by the budget of its session."""
    m = len(sample.landmarks)
    work = RowWork(pairs.evaluator(sample), sample.landmarks, 1.0, 0, 1, m, size=size)
    pairs = Pairs(pairs.kernel, pairs.rows, replace(pairs.session, budget=budget))
    return _affordable_workers(pairs, sample, work)


def test_workers_are_as_many_as_the_budget_has_room_for():
    given = of_vectors(workers=4)

    def workers(budget):
        return affordable(*given, 0, budget)

    least, tile = smallest_budget(workers), 8 * TILE * M
    assert least > tile + 8 * M * M
    budgets = [least + int(share * tile) for share in (0, 0.9, 1.1, 2.1, 3.1, 50)]
    assert [workers(budget) for budget in budgets] == [1, 1, 2, 3, 4, 4]
    message = r"one pass with 12 landmarks needs .* but memory_budget is .*; raise Resources"
    with pytest.raises(MemoryError, match=message):
        workers(least - 1)


@pytest.mark.parametrize("n", [TILE - 900, N])
@pytest.mark.parametrize(("q", "groups", "size"), [(0, 1, 0), (3, 4, 0), (2, 1, 60)])
def test_a_pass_needs_room_for_its_sums_and_for_one_tile(n, q, groups, size):
    pairs, sample = of_vectors(X[:n], rows=KNOWN[n > KNOWN], landmarks=KNOWN[:M])
    columns = pairs.evaluator(sample)
    work = RowWork(columns, sample.landmarks, 1.0, q, groups, M, size=size)

    def workers(budget):
        session = replace(pairs.session, budget=budget)
        return _affordable_workers(Pairs(pairs.kernel, pairs.rows, session), sample, work)

    sums = 2 * (groups * (M * M + M * q) + size * M)  # those of a worker, and those of all
    matrices, means, tile = 3 * M * M, M, TILE * M
    targets = 2 * min(TILE, n) * q  # as numbers, and times their weights
    joined = (TILE + 2 * size) * M if size else 0  # what is drawn, with a tile to draw from
    numbers = sums + matrices + means + tile + targets + joined
    assert smallest_budget(workers) == 8 * numbers


class ReadWhenWanted(Source):
    """Rows that are not in memory as far as the library knows."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def take(self, numbers):
        return self.X[numbers]


def test_every_worker_has_room_for_the_rows_that_it_reads_ahead():
    pairs, sample = of_vectors(workers=4)
    away = Pairs(pairs.kernel, Rows(ReadWhenWanted(X)), pairs.session)

    def workers(budget):
        return affordable(away, sample, 0, budget)

    least, tile, ahead = smallest_budget(workers), 8 * TILE * M, LONGEST * TILE * 3 * 8
    assert least == smallest_budget(lambda budget: affordable(pairs, sample, 0, budget))
    assert workers(least + int(1.1 * tile + 1.9 * ahead)) == 1
    assert workers(least + int(1.1 * tile + 2.1 * ahead)) == 2


def test_very_many_outputs_have_to_fit_as_well():
    q = M + 18
    needed = 8 * 4 * M * q  # two sums for the group of all rows, and two of all groups
    for outputs, budget, what in (
        (q, needed - 1, f"sums of {q} outputs at {M} landmarks"),
        (q, needed, f"one pass with {M} landmarks"),
        (M, 1, f"one pass with {M} landmarks"),
    ):
        pairs, sample = of_vectors()
        pairs = Pairs(pairs.kernel, pairs.rows, replace(pairs.session, budget=budget))
        with pytest.raises(MemoryError, match=what):
            sweep(pairs, sample, SPEC, rng(), Targets(np.zeros((N, outputs))))


def test_a_pass_that_does_not_fit_is_refused_before_it_starts():
    seen = Recorded()
    given = of_vectors(budget=10**4, progress=seen)
    del seen.steps[:]
    with pytest.raises(MemoryError, match="one pass with 12 landmarks"):
        gram_of(*given)
    assert not seen.steps


@pytest.mark.parametrize("core", ["plain", "ls"])
def test_a_pass_keeps_to_its_budget(core):
    """What numpy allocates beyond the sample, at the smallest budget that is not refused."""
    rows = np.arange(0, N, 2)[:1500]
    pairs, sample = opened(DeltaGauss(6.0, 4.0), X, rows, rows[::10])
    size = candidate_count(150) // 2 if core == "ls" else 0
    budget = smallest_budget(lambda budget: affordable(pairs, sample, size, budget))
    pairs = Pairs(pairs.kernel, pairs.rows, replace(pairs.session, budget=budget))
    tracemalloc.start()
    gram_of(pairs, sample, core)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= budget + 2**19  # row numbers, the kernel's own scratch


def test_all_columns_are_refused_if_they_do_not_fit():
    assert all_columns(*of_vectors(budget=8 * N * M), "svd").shape == (N, M)
    with pytest.raises(MemoryError, match=rf'"svd" holds all {N} x {M} .*pass method="gram"'):
        all_columns(*of_vectors(budget=8 * N * M - 1), "svd")


# Rows in blocks

FORMS = {"array": np.asarray, "list": list, "csr": sp.csr_array}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "known", [KNOWN, KNOWN[:0], np.arange(TILE), np.arange(100, N - 50), np.arange(N)]
)
def test_row_blocks_cover_every_other_row_once(form, known):
    objects = FORMS[form](X)
    numbers, parts = [], []
    for rows, part in row_blocks(objects, known):
        dense = part.toarray() if form == "csr" else np.asarray(part)
        np.testing.assert_array_equal(dense, X[rows])
        assert rows[0] // TILE == rows[-1] // TILE
        numbers.extend(rows.tolist())
        parts.append(part)
    assert numbers == np.setdiff1d(np.arange(N), known).tolist()
    if form == "array" and not len(known):
        assert all(np.shares_memory(part, X) for part in parts)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("workers", [1, 3])
def test_all_columns(name, workers):
    kernel, objects, C = KERNELS[name]
    pairs, sample = opened(kernel, objects, workers=workers)
    got = all_columns(pairs, sample, "svd")
    np.testing.assert_allclose(got, C, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(got[KNOWN], sample.C)


# New objects


@pytest.mark.parametrize("n", [0, 1, TILE, N])
def test_features_of_new_objects(n):
    pairs, sample = of_vectors(X)
    W, A = rng(1).normal(size=(M, 5)), rng(8).normal(size=(n, 3))
    out = np.full((n, 5), np.nan)
    got = project(A, pairs.evaluator(sample), W, out, workers=2)
    assert got is out
    expected = delta_gauss(A, X[Z]) @ W
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


def test_a_new_object_whose_similarity_is_not_finite_is_named():
    pairs, sample = opened(broken_at(-1, 0.0), list(range(N)))
    columns = replace(pairs.evaluator(sample), raw=broken_at(TILE + 9, np.nan).columns(list(Z)))
    out = np.empty((N, 2))
    with pytest.raises(ValueError, match=rf"NaN for row {TILE + 9} .* landmark row 4;"):
        project(list(range(N)), columns, np.ones((M, 2)), out, 1)


def test_sums_of_a_group_without_rows_are_not_written_to():
    """Memory that holds zeros from the start is taken when somebody writes to it."""
    pairs, sample = opened(DeltaGauss(), X)
    work = RowWork(pairs.evaluator(sample), sample.landmarks, 1.0, 1, 3, len(sample.landmarks))
    groups = np.arange(N) % 2  # and none in the last group
    targets = Targets(X[:, :1], None, groups, 3)
    total, other = work.zero(), work.zero()
    for one in (total, other):
        one.groups[2].gram.triangle.flags.writeable = False
        numbers = targets.by_group(np.arange(100))
        work.add(one, numbers, X[numbers], targets, work.scratch())
    total += other
    other.clear()
    assert total.present == {0, 1}
    assert not other.present
    assert [group.weight for group in total.groups] == [100, 100, 0]
    assert [group.weight for group in other.groups] == [0, 0, 0]
