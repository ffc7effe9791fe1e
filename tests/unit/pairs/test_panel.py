"""The panel against whole matrices in plain numpy, with every evaluated pair counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from kreinlearn.kernels import (
    DeltaGauss,
    Precomputed,
    PrecomputedDissimilarity,
    SklearnMetric,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.kernels.dissimilarity import TRANSFORMS
from kreinlearn.pairs.evaluate import Rows, require_finite, runs
from kreinlearn.pairs.panel import POOL_ROWS, Panel, pool_size
from tests import oracles
from tests.unit.recorded import Recorded

RNG = np.random.default_rng(5)
N = 60
POINTS = RNG.normal(size=(N, 3))
D = np.sqrt(((POINTS[:, None] - POINTS[None]) ** 2).sum(2))
D = np.maximum(D, D.T)
K = RNG.normal(size=(N, N))
K = K + K.T
ROWS = np.sort(RNG.choice(50, 30, replace=False))  # objects 50..59 are used from outside


class Counted:
    """A function of two numbered objects, read from a matrix; keeps count of unordered pairs."""

    def __init__(self, matrix):
        self.matrix, self.pairs = matrix, Counter()

    def __call__(self, a, b):
        self.pairs[min(a, b), max(a, b)] += 1
        return self.matrix[a, b]


def counted_panel(matrix=K, rows=ROWS, outside=None, *, metric=False, pool=None):
    counted = Counted(matrix)
    kernel = pairwise(counted).set_params(is_dissimilarity=metric)
    panel = Panel(kernel, Rows(list(range(50)), outside), rows, pool=pool)
    return panel, counted.pairs


def unordered(rows, columns):
    return {(min(a, b), max(a, b)) for a in map(int, rows) for b in map(int, columns)}


def centred(numbers, columns, reference):
    """-1/2 (d^2(x, z) - mean over R of d^2(x, .) - mean of d^2(., z) + mean over R x R)."""
    squares = D**2
    a = squares[:, reference].mean(axis=1)
    c = squares[np.ix_(reference, reference)].mean()
    return -0.5 * (squares - a[:, None] - a[None, :] + c)[np.ix_(numbers, columns)]


# Growing


def test_grow_evaluates_every_unordered_pair_once_and_mirrors_the_rest():
    panel, pairs = counted_panel()
    for new in (ROWS[[20, 3]], ROWS[[7]], ROWS[[29, 0, 12, 5]]):
        panel.grow(new)
        assert set(pairs) == unordered(ROWS, panel.columns)
        assert set(pairs.values()) == {1}
        np.testing.assert_array_equal(panel.raw, K[np.ix_(ROWS, panel.columns)])
    np.testing.assert_array_equal(panel.columns, ROWS[[20, 3, 7, 29, 0, 12, 5]])
    np.testing.assert_array_equal(panel.landmarks, panel.columns)
    np.testing.assert_array_equal(panel.C, panel.raw)
    np.testing.assert_array_equal(panel.K_ZZ, K[np.ix_(panel.landmarks, panel.landmarks)])


def test_the_mirrored_values_are_those_of_the_other_order():
    """With an asymmetric function: new rows against old columns are read off, not evaluated."""
    A = K + np.arange(N)  # A[a, b] - A[b, a] = b - a
    panel, _ = counted_panel(A)
    old, new = ROWS[[2, 9]], ROWS[[4, 1]]
    panel.grow(old)
    panel.grow(new)
    at_old, at_new = panel.positions(old), panel.positions(new)
    np.testing.assert_array_equal(panel.raw[at_new][:, :2], A[np.ix_(new, old)])
    np.testing.assert_array_equal(panel.raw[at_old][:, 2:], A[np.ix_(new, old)].T)


def test_growing_by_nothing_evaluates_nothing():
    panel, pairs = counted_panel()
    panel.grow(np.empty(0, dtype=np.intp))
    assert not pairs
    assert panel.C.shape == (30, 0)
    assert panel.K_ZZ.shape == (0, 0)


@pytest.mark.parametrize("workers", [1, 3])
def test_vectors_in_several_threads_and_tiles(workers):
    X = np.random.default_rng(1).normal(size=(5000, 4))
    kernel = DeltaGauss(6.0, 4.0).fit(X, RNG)
    panel = Panel(kernel, Rows(X), np.arange(1, 5000), workers=workers)
    panel.grow([4999, 17, 2048])
    panel.grow([2049, 1])
    expected = oracles.delta_gauss(X[1:], X[[4999, 17, 2048, 2049, 1]], 6.0, 4.0)
    np.testing.assert_allclose(panel.C, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(panel.K_ZZ, panel.C[panel.positions(panel.landmarks)])


def test_a_kernel_that_is_not_safe_in_threads_gets_one_worker():
    assert Panel(pairwise(max), Rows([1]), np.arange(1), workers=8).workers == 1
    assert Panel(DeltaGauss(), Rows(POINTS), np.arange(N), workers=8).workers == 8


def test_runs_of_neighbours():
    places = np.array([0, 1, 2, 3, 4, 7, 9, 10, 11])
    assert runs(places, 100) == [(0, 5), (7, 8), (9, 12)]
    assert runs(places, 2) == [(0, 2), (2, 4), (4, 5), (7, 8), (9, 11), (11, 12)]
    assert runs(np.empty(0, dtype=np.intp), 5) == []


def test_pool_size():
    assert pool_size(100, 20) == 100
    assert pool_size(10**6, 20) == POOL_ROWS
    assert pool_size(10**6, 2000) == 20_000


# Other landmarks, more rows


def test_replace_keeps_what_is_known():
    panel, pairs = counted_panel()
    first, second = ROWS[[1, 8, 15]], ROWS[[20, 8, 2]]
    panel.grow(first)
    panel.replace(second)
    assert set(pairs.values()) == {1}
    assert set(pairs) == unordered(ROWS, np.union1d(first, second))
    assert set(panel.landmarks) == set(panel.columns) == set(second)
    np.testing.assert_array_equal(panel.C, K[np.ix_(ROWS, panel.landmarks)])


def test_replace_keeps_the_reference_set_of_a_dissimilarity():
    panel, pairs = counted_panel(D, metric=True)
    reference, second = ROWS[[1, 8, 15]], ROWS[[20, 8, 2]]
    panel.grow(reference)
    panel.freeze()
    panel.replace(second)
    assert set(pairs.values()) == {1}
    assert set(panel.landmarks) == set(second)
    assert set(panel.columns) == {*reference, *second}
    expected = centred(ROWS, panel.landmarks, reference)
    np.testing.assert_allclose(panel.C, expected, rtol=0, atol=1e-13)


def test_a_landmark_that_is_evaluated_already_costs_nothing():
    panel, pairs = counted_panel(D, metric=True)
    reference, landmarks = ROWS[[1, 8, 15]], ROWS[[20, 2]]
    panel.grow(reference)
    panel.freeze()
    panel.replace(landmarks)
    before = dict(pairs)
    panel.grow(ROWS[[8]])
    assert dict(pairs) == before
    assert set(panel.landmarks) == set(ROWS[[20, 2, 8]])
    expected = centred(ROWS, panel.landmarks, reference)
    np.testing.assert_allclose(panel.C, expected, rtol=0, atol=1e-13)


def test_replace_on_more_rows_than_the_pool_lets_the_others_go():
    pool = ROWS[::3]
    panel, pairs = counted_panel(pool=pool)
    panel.grow(ROWS[[1, 8]])
    before = panel.diagonal.copy()
    panel.replace(ROWS[[20, 7]])
    assert set(pool) | set(ROWS[[20, 7]]) <= set(panel.rows) < set(ROWS)
    np.testing.assert_array_equal(panel.C, K[np.ix_(panel.rows, panel.landmarks)])
    np.testing.assert_array_equal(before, np.diagonal(K)[ROWS])
    np.testing.assert_array_equal(panel.diagonal, np.diagonal(K)[panel.rows])
    assert set(pairs.values()) == {1}


def test_values_of_dropped_columns_are_not_evaluated_again():
    panel, pairs = counted_panel()
    panel.grow(ROWS[[1, 8, 15]])
    panel.replace(ROWS[[20, 8, 2]])
    sample = ROWS[[15, 3, 20, 1, 7]]
    np.testing.assert_array_equal(panel.similarities(sample), K[np.ix_(sample, sample)])
    assert set(pairs.values()) == {1}
    panel.add_rows(np.array([49]), K[np.ix_([49], panel.columns)])
    sample = np.append(sample, 49)
    np.testing.assert_array_equal(panel.similarities(sample), K[np.ix_(sample, sample)])


@pytest.mark.parametrize("metric", [False, True])
def test_rows_that_come_later_are_in_their_place(metric):
    matrix = D if metric else K
    panel, pairs = counted_panel(matrix, metric=metric)
    landmarks = ROWS[[4, 2, 25]]
    panel.grow(landmarks)
    panel.freeze()
    assert panel.diagonal.shape == (30,)
    added = np.setdiff1d(np.arange(50), ROWS)[[11, 3, 0]]  # not sorted
    before = dict(pairs)
    panel.add_rows(added, matrix[np.ix_(added, landmarks)])
    assert dict(pairs) == before
    rows = np.union1d(ROWS, added)
    np.testing.assert_array_equal(panel.rows, rows)
    whole = centred(rows, landmarks, landmarks) if metric else K[np.ix_(rows, landmarks)]
    own = np.diagonal(centred(rows, rows, landmarks)) if metric else np.diagonal(K)[rows]
    np.testing.assert_allclose(panel.C, whole, rtol=0, atol=1e-13)
    np.testing.assert_allclose(panel.diagonal, own, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(panel.positions(added), np.searchsorted(rows, added))


# Selectors that look at all rows


def wide_panel(kernel, X, landmarks, *, workers=1):
    """A panel of 40 rows that looks at all."""
    panel = Panel(kernel.fit(X, RNG), Rows(X), np.arange(0, 80, 2), workers=workers)
    panel.look_at_all_rows()
    panel.grow(landmarks)
    panel.freeze()
    return panel


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", ["vectors", "metric", "objects"])
def test_rows_that_are_not_held_are_streamed(name, workers):
    """C'C, any function of C, and landmarks far from the pool; objects are held instead."""
    X = np.random.default_rng(1).normal(size=(5000, 3))
    first, second = np.array([6, 2, 78]), np.array([4999, 7, 6, 2100])
    squares = ((X[:, None] - X[first][None]) ** 2).sum(2)
    among = squares[first]
    offsets = squares.mean(1)

    def similarities(columns):
        if name != "metric":
            return oracles.delta_gauss(X, X[columns], 6.0, 4.0)
        d2 = ((X[:, None] - X[columns][None]) ** 2).sum(2)
        return -0.5 * (d2 - offsets[:, None] - offsets[columns] + among.mean())

    kernel = {
        "vectors": DeltaGauss(6.0, 4.0),
        "metric": SklearnMetric("euclidean"),
        "objects": CallableKernel(lambda A, B: oracles.delta_gauss(*map(np.array, (A, B)), 6, 4)),
    }[name]
    panel = wide_panel(kernel, list(X) if name == "objects" else X, first, workers=workers)
    assert len(panel.rows) == (5000 if name == "objects" else 40)
    np.testing.assert_array_equal(panel.candidates, np.arange(5000))
    C = similarities(first)
    np.testing.assert_allclose(panel.gram().matrix, C.T @ C, rtol=1e-10)
    out = np.empty((5000, 2))
    assert panel.map_rows(lambda C: C[:, [2, 0]] ** 3, out) is out
    np.testing.assert_allclose(out, C[:, [2, 0]] ** 3, rtol=0, atol=1e-11)

    panel.replace(second)
    assert set(panel.landmarks) == set(second) <= set(panel.rows)
    assert len(panel.rows) <= 45
    np.testing.assert_array_equal(panel.candidates, panel.rows)
    C = similarities(panel.landmarks)
    np.testing.assert_allclose(panel.C, C[panel.rows], rtol=0, atol=1e-12)
    np.testing.assert_allclose(panel.gram().matrix, C[panel.rows].T @ C[panel.rows], rtol=1e-10)


def test_all_objects_are_held_before_any_landmark_is_chosen():
    counted = Counted(K)
    panel = Panel(pairwise(counted), Rows(list(range(50))), ROWS)
    panel.look_at_all_rows()
    panel.grow([49, 3])
    sample = np.array([48, 3, 0])
    np.testing.assert_array_equal(panel.similarities(sample), K[np.ix_(sample, sample)])
    np.testing.assert_array_equal(panel.diagonal, np.diagonal(K)[:50])


@pytest.mark.parametrize("whole", [False, True])
def test_the_gram_of_a_large_kernel_is_that_of_the_kernel_over_its_unit(whole):
    class Large(DeltaGauss):
        def columns(self, Z):
            return LargeColumns(super().columns(Z))

    X = np.random.default_rng(1).normal(size=(100, 3))
    kernel = Large(6.0, 4.0).fit(X, RNG)
    panel = Panel(kernel, Rows(X), np.arange(0, 80, 2))
    if whole:
        panel.look_at_all_rows()
    panel.grow([2, 8])
    C = oracles.delta_gauss(X[panel.candidates], X[[2, 8]], 6.0, 4.0) * (2.0**300 / panel.unit)
    np.testing.assert_allclose(panel.gram().matrix, C.T @ C, rtol=1e-12)
    got = panel.map_rows(lambda C: 2 * C, np.empty(C.shape))
    np.testing.assert_allclose(got, 2 * C, rtol=1e-12, atol=1e-14)


class LargeColumns:
    def __init__(self, columns):
        self.columns = columns

    def __call__(self, A, out=None):
        K = self.columns(A, out)
        K *= 2.0**300
        return K


# Similarities and the diagonal


def test_similarities_evaluate_only_unknown_pairs():
    panel, pairs = counted_panel()
    panel.grow(ROWS[[4, 2, 25]])
    before = set(pairs)
    sample = ROWS[[9, 25, 0, 14, 4]]
    np.testing.assert_array_equal(panel.similarities(sample), K[np.ix_(sample, sample)])
    assert set(pairs) - before == unordered(ROWS[[9, 0, 14]], ROWS[[9, 0, 14]])
    assert set(pairs.values()) == {1}
    known = ROWS[[25, 4]]
    np.testing.assert_array_equal(panel.similarities(known), K[np.ix_(known, known)])
    assert set(pairs.values()) == {1}


def test_similarities_of_a_dissimilarity_are_centred():
    panel, pairs = counted_panel(D, metric=True)
    reference = ROWS[[4, 2, 25, 11]]
    panel.grow(reference)
    panel.freeze()
    sample = ROWS[[9, 25, 0, 14, 4]]
    got = panel.similarities(sample)
    np.testing.assert_allclose(got, centred(sample, sample, reference), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(got, got.T)
    assert set(pairs.values()) == {1}


def test_the_diagonal_is_evaluated_once():
    panel, pairs = counted_panel()
    panel.grow(ROWS[[4, 2]])
    for _ in range(2):
        np.testing.assert_array_equal(panel.diagonal, np.diagonal(K)[ROWS])
    panel.grow(ROWS[[17, 3]])
    panel.similarities(ROWS[[5, 6]])
    np.testing.assert_array_equal(panel.raw, K[np.ix_(ROWS, ROWS[[4, 2, 17, 3]])])
    assert {(int(i), int(i)) for i in ROWS} <= set(pairs)
    assert set(pairs.values()) == {1}


# Centring


def test_centring_on_all_objects_is_double_centring():
    panel, _ = counted_panel(D, metric=True, rows=np.arange(50))
    panel.grow(np.arange(50))
    panel.freeze()
    expected = oracles.double_centred(D[:50, :50])
    np.testing.assert_allclose(panel.C, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(panel.K_ZZ, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(panel.diagonal, np.diagonal(expected), rtol=0, atol=1e-12)


def test_the_reference_set_is_fixed_by_the_first_freeze():
    panel, pairs = counted_panel(D, metric=True)
    reference, later = ROWS[[4, 2, 25]], ROWS[[0, 18]]
    panel.grow(reference)
    panel.freeze()
    panel.grow(later)
    panel.freeze()
    both = np.concatenate([reference, later])
    np.testing.assert_allclose(panel.C, centred(ROWS, both, reference), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(panel.K_ZZ, panel.K_ZZ.T)
    expected = np.diagonal(centred(ROWS, ROWS, reference))
    np.testing.assert_allclose(panel.diagonal, expected, rtol=0, atol=1e-13)
    assert set(pairs.values()) == {1}


def test_a_similarity_is_not_centred():
    panel, _ = counted_panel()
    panel.grow(ROWS[[4, 2]])
    panel.freeze()
    assert panel.transform is None
    assert panel.offsets is None


# Other transformations


def scaled(name, numbers, columns, reference):
    """exp(-d / median), or exp(-d^2 / (sigma(x) sigma(z))) with sigma to the k-th neighbour."""
    d = D[np.ix_(numbers, columns)]
    among = D[np.ix_(reference, reference)]
    if name == "exp":
        return np.exp(-d / np.median(among[np.triu_indices(len(reference), 1)]))

    def sigma(i):
        return sorted(D[i, r] for r in reference if r != i)[int(name[5:]) - 1]

    return np.exp(-(d**2) / np.outer([sigma(i) for i in numbers], [sigma(j) for j in columns]))


def frozen_panel(landmarks=ROWS[[20, 8, 2, 17, 5]], reference=ROWS[[1, 8, 15, 22]]):
    """A panel whose reference set is not all among its landmarks."""
    panel, pairs = counted_panel(D, metric=True)
    panel.grow(reference)
    panel.freeze()
    panel.replace(landmarks)
    return panel, pairs, reference


def contents(panel):
    """All that follows from the transformation; the sample is known already or never."""
    sample = ROWS[[9, 25, 8, 14, 20]]
    parts = (panel.C, panel.K_ZZ, panel.similarities(sample), panel.diagonal, panel.offsets)
    return [*parts, np.array(panel.unit), panel.evaluator()([0, 55, 8]), panel.gram().matrix]


@pytest.mark.parametrize("name", ["exp", "local1", "local3"])
def test_another_transformation_of_the_same_distances(name):
    panel, pairs, reference = frozen_panel()
    contents(panel)
    raw, before = panel.raw, dict(pairs)
    panel.use(name)
    assert panel.raw is raw
    Z, sample = panel.landmarks, ROWS[[9, 25, 8, 14, 20]]
    C = scaled(name, ROWS, Z, reference)
    np.testing.assert_allclose(panel.C, C, rtol=1e-12)
    np.testing.assert_allclose(panel.K_ZZ, scaled(name, Z, Z, reference), rtol=1e-12)
    np.testing.assert_array_equal(panel.K_ZZ, panel.K_ZZ.T)
    among = scaled(name, sample, sample, reference)
    np.testing.assert_allclose(panel.similarities(sample), among, rtol=1e-12)
    np.testing.assert_array_equal(panel.diagonal, np.ones(len(ROWS)))
    np.testing.assert_allclose(panel.gram().matrix, C.T @ C, rtol=1e-12)
    assert dict(pairs) == before
    new = np.array([0, 55, 8, ROWS[1], ROWS[20]])
    np.testing.assert_allclose(
        panel.evaluator()(list(new)), scaled(name, new, Z, reference), rtol=1e-12
    )


def test_transformations_in_any_order_and_back_are_the_same_bit_for_bit():
    panel, _, _ = frozen_panel()
    first = {None: contents(panel)}
    for name in TRANSFORMS:
        panel.use(name)
        first[name] = contents(panel)
    for name in (*reversed(TRANSFORMS), "local1", "local1", "squared"):
        panel.use(name)
        for got, expected in zip(contents(panel), first[name], strict=True):
            np.testing.assert_array_equal(got, expected)
    for got, expected in zip(contents(panel), first[None], strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["exp", "local3"])
def test_a_transformation_stays_as_the_panel_changes(name):
    """More landmarks, others, more rows: by the reference set of the first freeze."""
    panel, pairs, reference = frozen_panel()
    panel.use(name)
    panel.freeze()
    panel.grow(ROWS[[11, 0]])
    np.testing.assert_allclose(panel.C, scaled(name, ROWS, panel.landmarks, reference), rtol=1e-12)
    panel.replace(ROWS[[3, 11, 15]])
    added = np.setdiff1d(np.arange(50), ROWS)[:4]
    panel.add_rows(added, D[np.ix_(added, panel.columns)])
    expected = scaled(name, panel.rows, panel.landmarks, reference)
    np.testing.assert_allclose(panel.C, expected, rtol=1e-12)
    panel.use(name)
    np.testing.assert_allclose(panel.C, expected, rtol=1e-12)
    assert set(pairs.values()) == {1}


def test_rows_that_are_streamed_follow_the_transformation():
    X = np.random.default_rng(1).normal(size=(3000, 3))
    Z = np.array([6, 2, 78])
    panel = wide_panel(SklearnMetric("manhattan"), X, Z)
    panel.use("exp")
    d = np.abs(X[:, None] - X[Z]).sum(2)
    median = np.median(d[Z][np.triu_indices(3, 1)])
    C = np.exp(-d / median)
    np.testing.assert_allclose(panel.gram().matrix, C.T @ C, rtol=1e-12)
    panel.replace(np.array([2999, 78]))
    d = np.abs(X[panel.rows][:, None] - X[panel.landmarks]).sum(2)
    np.testing.assert_allclose(panel.C, np.exp(-d / median), rtol=1e-12)


# Objects from outside X

FORMS = {"list": list, "array": np.asarray, "csr": sp.csr_array}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_below_zero_are_objects_from_outside(form):
    make = FORMS[form]
    rows = Rows(make(POINTS[:50]), make(POINTS[50:53]))
    numbers = np.array([-3, -1, 0, 4, 49])
    got = rows.take(numbers)
    got = got.toarray() if form == "csr" else np.asarray(got)
    np.testing.assert_array_equal(got, POINTS[[50, 52, 0, 4, 49]])
    inside = rows.take(np.array([7, 3]))
    inside = inside.toarray() if form == "csr" else np.asarray(inside)
    np.testing.assert_array_equal(inside, POINTS[[7, 3]])


@pytest.mark.parametrize("metric", [False, True])
def test_landmarks_from_outside(metric):
    outside = [50, 51, 52]
    numbers = np.concatenate([[-3, -2, -1], ROWS])
    objects = np.concatenate([outside, ROWS])
    matrix = D if metric else K
    panel, _ = counted_panel(matrix, numbers, outside, metric=metric, pool=ROWS)
    panel.grow(numbers[:3])
    panel.freeze()
    expected = centred(objects, outside, outside) if metric else K[np.ix_(objects, outside)]
    np.testing.assert_allclose(panel.C, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(panel.K_ZZ, expected[:3], rtol=0, atol=1e-13)
    np.testing.assert_allclose(panel.evaluator()(list(ROWS)), expected[3:], rtol=0, atol=1e-13)
    sample = numbers[[1, 5, 20]]
    chosen = objects[[1, 5, 20]]
    expected = centred(chosen, chosen, outside) if metric else K[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(panel.similarities(sample), expected, rtol=0, atol=1e-13)


# The evaluator


X, KERNEL, DISTANCES = POINTS[:50], K[:50, :50], D[:50, :50]
SIMILARITIES = {  # kernel, what it is given, what it is
    "pairwise": (pairwise(Counted(K)), list(range(50)), KERNEL),
    "vectors": (DeltaGauss(6.0, 4.0), X, oracles.delta_gauss(X, X, 6.0, 4.0)),
    "matrix": (Precomputed(), KERNEL, KERNEL),
    "centred matrix": (PrecomputedDissimilarity(), DISTANCES, oracles.double_centred(DISTANCES)),
}
METRICS = {
    "pairwise": (dissimilarity(pairwise(Counted(D))), list(range(50))),
    "vectors": (SklearnMetric("euclidean"), X),
    "matrix": (Precomputed(is_dissimilarity=True), DISTANCES),
}


def check_evaluator(panel, expected):
    """Similarities of all objects to the landmarks; on the rows of the panel they are its own."""
    columns, objects = panel.evaluator(), panel.X.take(np.arange(50))
    np.testing.assert_allclose(columns(objects), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(columns(objects)[panel.rows], panel.C, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(columns.finish(columns.raw(objects)), columns(objects))


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_evaluator_of_similarities(name):
    kernel, objects, truth = SIMILARITIES[name]
    panel = Panel(kernel.fit(objects, RNG), Rows(objects), ROWS)
    panel.grow(ROWS[[4, 2, 25, 11]])
    check_evaluator(panel, truth[:, ROWS[[4, 2, 25, 11]]])
    panel.grow(ROWS[[9, 1]])
    check_evaluator(panel, truth[:, ROWS[[4, 2, 25, 11, 9, 1]]])
    panel.replace(ROWS[[21, 2, 9, 0]])
    assert set(panel.landmarks) == set(ROWS[[21, 2, 9, 0]])
    check_evaluator(panel, truth[:, panel.landmarks])


@pytest.mark.parametrize("name", METRICS)
def test_the_evaluator_of_dissimilarities(name):
    kernel, objects = METRICS[name]
    panel = Panel(kernel.fit(objects, RNG), Rows(objects), ROWS)
    reference, everything = ROWS[[4, 2, 25, 11]], np.arange(50)
    panel.grow(reference)
    panel.freeze()
    check_evaluator(panel, centred(everything, reference, reference))
    panel.grow(ROWS[[9, 1]])
    check_evaluator(panel, centred(everything, ROWS[[4, 2, 25, 11, 9, 1]], reference))
    panel.replace(ROWS[[21, 2, 9, 0]])
    assert set(panel.landmarks) == set(ROWS[[21, 2, 9, 0]])
    check_evaluator(panel, centred(everything, panel.landmarks, reference))


def test_a_negative_dissimilarity_of_a_new_object_is_refused():
    matrix = D.copy()
    panel, _ = counted_panel(matrix, metric=True)
    panel.grow(ROWS[[4, 2]])
    panel.freeze()
    matrix[59, ROWS[2]] = -1e-3
    with pytest.raises(ValueError, match="Negative values in data"):
        panel.evaluator()([58, 59])


# What a kernel may not do


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_values_that_are_not_finite_are_named(value, word):
    matrix = K.copy()
    matrix[ROWS[13], ROWS[25]] = matrix[ROWS[25], ROWS[13]] = value
    panel, _ = counted_panel(matrix)
    panel.grow(ROWS[[4, 2]])
    message = rf"^kernel produced {word} for row {ROWS[13]} .* landmark row {ROWS[25]};"
    with pytest.raises(ValueError, match=message):
        panel.grow(ROWS[[7, 25]])
    with pytest.raises(ValueError, match=message):  # between two landmarks
        panel.grow(ROWS[[13, 25]])


def test_a_failed_grow_leaves_the_panel_as_it_was():
    matrix = K.copy()
    matrix[ROWS[13]] = np.nan
    panel, _ = counted_panel(matrix)
    with pytest.raises(ValueError, match="kernel produced NaN"):
        panel.grow(ROWS[[7, 25]])
    assert len(panel.columns) == len(panel.landmarks) == panel.raw.shape[1] == 0


def test_a_self_similarity_that_is_not_finite_is_named():
    matrix = K.copy()
    matrix[ROWS[13], ROWS[13]] = np.nan
    panel, _ = counted_panel(matrix)
    panel.grow(ROWS[[4, 2]])
    with pytest.raises(ValueError, match=rf"kernel produced NaN for row {ROWS[13]} .*itself"):
        _ = panel.diagonal


def test_large_values_whose_sum_overflows_are_finite():
    require_finite(np.full((3, 3), 1.5e308), np.arange(3), np.arange(3))
    wrong = np.full((3, 3), 1.5e308)
    wrong[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN for row 12 .* landmark row 5;"):
        require_finite(wrong, np.array([10, 11, 12]), np.array([4, 5, 6]))


def test_an_error_of_the_kernel_gets_a_note_of_the_rows():
    def broken(a, b):
        if int(ROWS[13]) in (a, b):
            raise ZeroDivisionError("of the person's own")
        return 1.0

    panel = Panel(pairwise(broken), Rows(list(range(50))), ROWS)
    with pytest.raises(ZeroDivisionError, match="of the person's own") as caught:
        panel.grow(ROWS[[4, 2]])
    _, note = caught.value.__notes__  # the first names the two objects
    first, last = (int(part) for part in note.split()[6].split(".."))
    assert first <= ROWS[13] <= last
    assert "against 2 landmarks" in note


@pytest.mark.parametrize(("i", "j"), [(13, 25), (7, 25)])
def test_a_negative_dissimilarity_is_refused(i, j):
    matrix = D.copy()
    matrix[ROWS[i], ROWS[j]] = matrix[ROWS[j], ROWS[i]] = -1e-3
    panel, _ = counted_panel(matrix, metric=True)
    with pytest.raises(ValueError, match="Negative values in data"):
        panel.grow(ROWS[[7, 25]])


def test_a_dissimilarity_to_itself_is_refused():
    matrix = D.copy()
    matrix[ROWS[7], ROWS[7]] = 1e-3
    panel, _ = counted_panel(matrix, metric=True)
    panel.grow(ROWS[[25]])
    with pytest.raises(ValueError, match="diagonal of a dissimilarity must be zero"):
        panel.grow(ROWS[[7]])


# Kernels of any size


@pytest.mark.parametrize("exponent", [-1000, -300, -101, -100, -1, 0, 99, 101, 300, 1000])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_unit_keeps_squares_in_range(exponent, sign):
    matrix = sign * np.full((50, 50), 2.0**exponent)
    panel, _ = counted_panel(matrix)
    panel.grow(ROWS[[4, 2]])
    unit = panel.unit
    mantissa, power = np.frexp(unit)
    assert mantissa == 0.5
    assert (power - 1) % 2 == 0  # a power of four
    assert (unit == 1.0) == (-101 <= exponent <= 99)  # frexp gives exponent + 1
    assert 0.25 <= 2.0**exponent / unit <= 4.0 or unit == 1.0
    squares = (panel.C / unit) ** 2
    assert np.isfinite(squares).all()
    assert (squares > 0).all()


def test_the_unit_of_a_zero_kernel_is_one():
    panel, _ = counted_panel(np.zeros((50, 50)))
    assert panel.unit == 1.0
    panel.grow(ROWS[[4, 2]])
    assert panel.unit == 1.0


# Progress


@pytest.mark.parametrize("kind", ["pairwise", "block", "vectors", "precomputed"])
def test_progress_is_told_of_every_evaluation(kind):
    X, kernel = {
        "pairwise": (list(range(50)), pairwise(Counted(K))),
        "block": (list(range(50)), CallableKernel(lambda A, B: K[np.ix_(A, B)])),
        "vectors": (POINTS[:50], DeltaGauss(6.0, 4.0)),
        "precomputed": (K[:50, :50], Precomputed()),
    }[kind]
    seen = Recorded()
    panel = Panel(kernel.fit(X, RNG), Rows(X), ROWS, progress=seen)
    panel.grow(ROWS[[4, 2]])
    panel.grow(ROWS[[9, 4, 11, 3]])
    among = {2: 3, 3: 6} if kind == "pairwise" else {2: 4, 3: 9}
    first, second = 28 * 2 + among[2], 25 * 3 + among[3]
    assert seen.steps == [("landmarks", 30, first), ("landmarks", 28, second)]
    if kind != "precomputed":  # whose square is read
        assert seen.done == (58, first + second)
    if kind == "pairwise":
        assert seen.done[1] == sum(kernel.func.pairs.values())
    panel.similarities(ROWS[[2, 20, 21]])
    assert seen.steps[2] == ("sampled pairs", 2, among[2])


def test_progress_of_rows_that_are_streamed():
    X, seen = np.random.default_rng(1).normal(size=(5000, 3)), Recorded()
    panel = Panel(DeltaGauss(6.0, 4.0).fit(X, RNG), Rows(X), np.arange(40), progress=seen)
    panel.look_at_all_rows()
    panel.grow([7, 3])
    del seen.steps[:]
    seen.done = (0, 0)
    panel.gram()
    panel.map_rows(lambda C: C, np.empty((5000, 2)))
    assert seen.steps == [("landmarks", 5000, 10_000)] * 2
    assert seen.done == (10_000, 20_000)
    assert seen.open == 0
