"""The passes over all rows against whole matrices in plain numpy."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import kreinlearn.pairs.panel
from kreinlearn.data.tiles import TILE, row_blocks
from kreinlearn.kernels import DeltaGauss, Precomputed, SklearnMetric, pairwise
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.nystrom.error import fit_map
from kreinlearn.nystrom.sweep import (
    Plan,
    Reservoir,
    _affordable_workers,
    _reservoir_keys,
    all_columns,
    candidate_count,
    gram_pass,
    transform_blocks,
)
from kreinlearn.pairs.evaluate import Rows
from kreinlearn.pairs.panel import Panel
from tests import oracles
from tests.unit.recorded import Recorded

N, M = 2 * TILE + 300, 12
X = np.random.default_rng(3).normal(size=(N, 3))
KNOWN = np.sort(np.random.default_rng(4).choice(N, 200, replace=False))  # rows of the panel
Z = KNOWN[np.random.default_rng(5).permutation(200)[:M]]
PLAN = Plan(
    n_landmarks=M, rank=None, core="plain", method="gram", landmarks="uniform", workers=1,
    budget=10**9,
)  # fmt: skip


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


def panel_of(kernel, X, *, rows=KNOWN, workers=1):
    panel = Panel(kernel.fit(X, rng()), Rows(X), rows, workers=workers)
    panel.grow(Z)
    panel.freeze()
    return panel


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
def test_gram_of_held_and_streamed_rows(name, core, workers):
    kernel, objects, C = KERNELS[name]
    panel = panel_of(kernel, objects, workers=workers)
    gram, unit = gram_pass(panel, panel.evaluator(), replace(PLAN, core=core), rng())
    assert unit == 1.0
    assert_gram(gram, C)


def test_gram_of_a_given_matrix():
    n = TILE + 100
    K = np.cos(np.add.outer(np.arange(n), np.arange(n)))
    rows = np.append(KNOWN[:40], n - 1)  # all below n
    panel = Panel(Precomputed().fit(K, rng()), Rows(K), rows)
    panel.grow(rows[[30, 2, 40]])
    gram, _ = gram_pass(panel, panel.evaluator(), PLAN, rng())
    assert_gram(gram, K[:, rows[[30, 2, 40]]])


def test_gram_of_single_precision_rows_multiplied_in_either_precision():
    panel = panel_of(DeltaGauss(6.0, 4.0), X.astype(np.float32))
    C = delta_gauss(X.astype(np.float32).astype(np.float64), X[Z].astype(np.float32))
    matrices = []
    for single in (False, True):
        gram, _ = gram_pass(panel, panel.evaluator(), replace(PLAN, single=single), rng())
        assert_gram(gram, C, rtol=1e-5)
        assert gram.matrix.dtype == np.float64
        matrices.append(gram.matrix)
    assert not np.array_equal(*matrices)


@pytest.mark.parametrize("types", [("f4", "f8"), ("f8", "f4"), ("f8", "f8")])
@pytest.mark.parametrize("core", ["plain", "ls"])
def test_gram_of_landmarks_from_outside_does_not_count_them_as_rows(core, types):
    inside, outside = X.astype(types[0]), rng(9).normal(size=(5, 3)).astype(types[1])
    rows = np.concatenate([np.arange(-5, 0), KNOWN])
    panel = Panel(DeltaGauss(6.0, 4.0).fit(inside, rng()), Rows(inside, outside), rows)
    panel.grow(rows[:5])
    gram, _ = gram_pass(panel, panel.evaluator(), replace(PLAN, core=core), rng())
    rtol = 1e-12 if types == ("f8", "f8") else 1e-5
    assert_gram(gram, delta_gauss(inside, outside), rtol)


def test_rows_of_the_panel_are_not_evaluated_again():
    pairs = Counter()

    def k(a, b):
        pairs[min(a, b), max(a, b)] += 1
        return float(np.cos(a * b))

    n, rows = TILE + 52, np.arange(0, 60, 3)
    panel = Panel(pairwise(k), Rows(list(range(n))), rows)
    panel.grow([3, 30])
    gram, _ = gram_pass(panel, panel.evaluator(), PLAN, rng())
    assert set(pairs.values()) == {1}
    assert set(pairs) == {(min(a, b), max(a, b)) for a in range(n) for b in (3, 30)}
    assert_gram(gram, np.cos(np.arange(n)[:, None] * np.array([3, 30])))


def test_a_panel_of_all_rows_needs_no_pass():
    panel = panel_of(DeltaGauss(6.0, 4.0), X, rows=np.arange(N))
    gram, _ = gram_pass(panel, None, replace(PLAN, budget=1), rng())
    assert_gram(gram, delta_gauss(X, X[Z]))


def test_threads_change_no_bit():
    grams = []
    for workers in (1, 2, 5):
        panel = panel_of(DeltaGauss(6.0, 4.0), X, workers=workers)
        gram, _ = gram_pass(panel, panel.evaluator(), replace(PLAN, core="ls"), rng())
        grams.append((gram.matrix, gram.sums, panel.rows, panel.raw))
    for other in grams[1:]:
        for a, b in zip(grams[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("power", [-300, 400])
def test_gram_of_a_kernel_of_any_size_is_that_of_the_kernel_over_its_unit(power):
    def large(A, B):
        return delta_gauss(A, B) * 2.0**power

    panel = panel_of(CallableKernel(large), list(X))
    gram, unit = gram_pass(panel, panel.evaluator(), PLAN, rng())
    assert_gram(gram, delta_gauss(X, X[Z]) * (2.0**power / unit))
    assert 2.0 ** (power - 4) < unit < 2.0 ** (power + 2)


@pytest.mark.parametrize("core", ["plain", "ls"])
@pytest.mark.parametrize("landmarks", ["uniform", "greedy_kmeans++", "leverage", "kmeans++"])
def test_the_gram_of_a_fit_with_a_small_pool(monkeypatch, landmarks, core):
    monkeypatch.setattr(kreinlearn.pairs.panel, "POOL_ROWS", 150)
    plan = replace(PLAN, landmarks=landmarks, core=core)
    fitted = fit_map(DeltaGauss(6.0, 4.0).fit(X, rng()), X, plan, rng(2))
    assert len(fitted.panel.pool) <= 150
    assert len(fitted.panel.landmarks) == M
    C = delta_gauss(X, X[fitted.panel.landmarks])
    assert_gram(fitted.gram, C)
    np.testing.assert_allclose(fitted.columns(X), C, rtol=0, atol=1e-13)


# Rows drawn on the way


def test_the_least_squares_core_takes_in_rows_of_its_own():
    panel = panel_of(DeltaGauss(6.0, 4.0), X)
    gram_pass(panel, panel.evaluator(), replace(PLAN, core="ls"), rng())
    drawn = np.setdiff1d(panel.rows, KNOWN)
    assert len(drawn) == candidate_count(M) // 2
    assert set(drawn // TILE) == {0, 1, 2}
    assert len(panel.rows) == len(np.unique(panel.rows)) == 200 + len(drawn)
    np.testing.assert_allclose(panel.C, delta_gauss(X[panel.rows], X[Z]), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(panel.pool, KNOWN)


def test_other_cores_take_in_none():
    panel = panel_of(DeltaGauss(6.0, 4.0), X)
    gram_pass(panel, panel.evaluator(), replace(PLAN, core="truncated"), rng())
    np.testing.assert_array_equal(panel.rows, KNOWN)


def test_no_more_rows_are_drawn_than_there_are():
    small = X[:230]
    panel = Panel(DeltaGauss(6.0, 4.0).fit(small, rng()), Rows(small), np.arange(200))
    panel.grow(np.arange(0, 200, 4))
    gram_pass(panel, panel.evaluator(), replace(PLAN, core="ls"), rng())
    np.testing.assert_array_equal(panel.rows, np.arange(230))


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
    panel = panel_of(broken_at(row, value), list(range(N)))
    message = rf"kernel produced {word} for row {row} .* landmark row {Z[4]};"
    with pytest.raises(ValueError, match=message):
        gram_pass(panel, panel.evaluator(), PLAN, rng())
    with pytest.raises(ValueError, match=message):
        all_columns(panel, panel.evaluator(), PLAN)


def test_an_error_of_the_kernel_gets_a_note_and_ends_the_blocks():
    """The bar of a pass stops with the pass, not when the traceback is forgotten."""

    def k(A, B):
        if TILE + 7 in A:
            raise ZeroDivisionError("of the person's own")
        return np.ones((len(A), len(B)))

    rows = np.array([1, 5, 9])
    panel = Panel(CallableKernel(k), Rows(list(range(N))), rows)
    panel.grow([5])
    seen = Recorded()
    with pytest.raises(ZeroDivisionError, match="person's own") as caught:
        gram_pass(panel, panel.evaluator(), replace(PLAN, progress=seen), rng())
    assert seen.open == 0
    (note,) = caught.value.__notes__
    assert f"on rows {TILE}..{2 * TILE - 1} against 1 landmarks" in note


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("core", ["plain", "ls"])
def test_progress_sees_every_row_that_is_streamed(core, workers):
    panel, seen = panel_of(DeltaGauss(6.0, 4.0), X, workers=workers), Recorded()
    rest, m = N - len(KNOWN), len(panel.columns)
    plan = replace(PLAN, core=core, progress=seen)
    gram_pass(panel, panel.evaluator(), plan, rng())
    assert seen.steps == [("kernel rows", rest, rest * m)]
    assert seen.done == (rest, rest * m)


def test_progress_of_all_columns_at_once():
    panel, seen = panel_of(DeltaGauss(6.0, 4.0), X), Recorded()
    rest, m = N - len(KNOWN), len(panel.columns)
    all_columns(panel, panel.evaluator(), replace(PLAN, progress=seen))
    assert seen.steps == [("kernel rows", rest, rest * m)]
    assert seen.done == (rest, rest * m)


@pytest.mark.parametrize("n_rows", [1, 100, TILE])
def test_progress_of_new_objects_in_parts(n_rows):
    panel, seen = panel_of(DeltaGauss(6.0, 4.0), X), Recorded()
    columns, m = panel.evaluator(), len(panel.landmarks)
    W = rng().normal(size=(m, 2))
    out = np.empty((250, 2))
    transform_blocks(X[:250], columns, W, out, 2, n_rows=n_rows, progress=seen)
    assert seen.steps == [("new rows", 250, 250 * m)]
    assert seen.done == (250, 250 * m)
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


def test_workers_are_as_many_as_the_budget_has_room_for():
    panel = panel_of(DeltaGauss(6.0, 4.0), X, workers=4)

    def workers(budget):
        return _affordable_workers(panel, replace(PLAN, budget=budget), size=0)

    least, tile = smallest_budget(workers), 8 * TILE * M
    assert least > tile + 8 * M * M
    budgets = [least + int(share * tile) for share in (0, 0.9, 1.1, 2.1, 3.1, 50)]
    assert [workers(budget) for budget in budgets] == [1, 1, 2, 3, 4, 4]
    message = r"one pass with 12 landmarks needs .* but memory_budget is .*; raise memory_budget"
    with pytest.raises(MemoryError, match=message):
        workers(least - 1)


def test_a_pass_that_does_not_fit_is_refused_before_it_starts():
    panel = panel_of(DeltaGauss(6.0, 4.0), X)
    with pytest.raises(MemoryError, match="one pass with 12 landmarks"):
        gram_pass(panel, lambda A: pytest.fail("evaluated"), replace(PLAN, budget=10**4), rng())


@pytest.mark.parametrize("core", ["plain", "ls"])
def test_a_pass_keeps_to_its_budget(core):
    """What numpy allocates beyond the panel, at the smallest budget that is not refused."""
    rows = np.arange(0, N, 2)[:1500]
    panel = Panel(DeltaGauss(6.0, 4.0).fit(X, rng()), Rows(X), rows)
    panel.grow(rows[::10])
    size = candidate_count(150) // 2 if core == "ls" else 0
    plan = replace(PLAN, core=core)
    budget = smallest_budget(
        lambda budget: _affordable_workers(panel, replace(plan, budget=budget), size)
    )
    columns = panel.evaluator()
    tracemalloc.start()
    gram_pass(panel, columns, replace(plan, budget=budget), rng())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= budget + 2**19  # row numbers, the kernel's own scratch


def test_all_columns_are_refused_if_they_do_not_fit():
    panel = panel_of(DeltaGauss(6.0, 4.0), X)
    plan = replace(PLAN, method="svd", budget=8 * N * M)
    assert all_columns(panel, panel.evaluator(), plan).shape == (N, M)
    with pytest.raises(MemoryError, match=rf'"svd" holds all {N} x {M} .*pass method="gram"'):
        all_columns(panel, panel.evaluator(), replace(plan, budget=8 * N * M - 1))


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
    panel = panel_of(kernel, objects, workers=workers)
    got = all_columns(panel, panel.evaluator(), PLAN)
    np.testing.assert_allclose(got, C, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(got[KNOWN], panel.C)


# New objects


@pytest.mark.parametrize("n", [0, 1, TILE, N])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_of_new_objects(n, dtype):
    panel = panel_of(DeltaGauss(6.0, 4.0), X.astype(dtype))
    W, A = rng(1).normal(size=(M, 5)), rng(8).normal(size=(n, 3))
    out = np.full((n, 5), np.nan, dtype)
    got = transform_blocks(A.astype(dtype), panel.evaluator(), W, out, workers=2)
    assert got is out
    expected = delta_gauss(A, X[Z]) @ W
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13 if dtype == np.float64 else 1e-4)


def test_a_new_object_whose_similarity_is_not_finite_is_named():
    panel = panel_of(broken_at(-1, 0.0), list(range(N)))
    columns = replace(panel.evaluator(), raw=broken_at(TILE + 9, np.nan).columns(list(Z)))
    out = np.empty((N, 2))
    with pytest.raises(ValueError, match=rf"NaN for row {TILE + 9} .* landmark row 4;"):
        transform_blocks(list(range(N)), columns, np.ones((M, 2)), out, 1)


def test_the_sketch_has_as_many_columns_as_the_rank():
    assert replace(PLAN, n_landmarks=1000, rank=30).sketch == 30
    assert replace(PLAN, n_landmarks=20, rank=None).sketch == 20
    assert replace(PLAN, n_landmarks=1000, rank=None).sketch == 200


def test_candidates_are_three_to_ten_a_landmark():
    counts = np.array([[m, candidate_count(m)] for m in (1, 10, 200, 300, 666, 700, 2000)])
    np.testing.assert_array_equal(counts[:, 1], [10, 100, 2000, 2000, 2000, 2100, 6000])
