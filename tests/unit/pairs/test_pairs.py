"""Kernel values of the rows of a fit against whole matrices, with every evaluated pair counted."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.kernels import (
    DeltaGauss,
    Precomputed,
    PrecomputedDissimilarity,
    SklearnMetric,
    dissimilarity,
    pairwise,
)
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests import oracles
from tests.unit.pairs.numbered import (
    POINTS,
    RNG,
    ROWS,
    Counted,
    D,
    K,
    N,
    centred,
    counted_pairs,
    unordered,
)
from tests.unit.recorded import Recorded

# Growing


def test_growing_evaluates_every_unordered_pair_once_and_mirrors_the_rest():
    pairs, counts = counted_pairs()
    sample = pairs.sample(ROWS)
    for new in (ROWS[[20, 3]], ROWS[[7]], ROWS[[29, 0, 12, 5]]):
        sample = pairs.grown(sample, new)
        assert set(counts) == unordered(ROWS, sample.columns)
        assert set(counts.values()) == {1}
        np.testing.assert_array_equal(sample.raw, K[np.ix_(ROWS, sample.columns)])
    np.testing.assert_array_equal(sample.columns, ROWS[[20, 3, 7, 29, 0, 12, 5]])
    np.testing.assert_array_equal(sample.landmarks, sample.columns)
    np.testing.assert_array_equal(sample.C, sample.raw)
    np.testing.assert_array_equal(sample.K_ZZ, K[np.ix_(sample.landmarks, sample.landmarks)])


def test_growing_leaves_the_sample_before_as_it_was():
    pairs, _ = counted_pairs()
    before = pairs.grown(pairs.sample(ROWS), ROWS[[20, 3]])
    values = before.raw.copy()
    after = pairs.grown(before, ROWS[[7, 1]])
    np.testing.assert_array_equal(before.columns, ROWS[[20, 3]])
    np.testing.assert_array_equal(before.landmarks, ROWS[[20, 3]])
    np.testing.assert_array_equal(before.raw, values)
    after.raw[:] = np.nan
    np.testing.assert_array_equal(before.raw, values)


def test_mirrored_values_are_those_of_the_other_order():
    """With an asymmetric function: new rows against old columns are read off, not evaluated."""
    A = K + np.arange(N)  # A[a, b] - A[b, a] = b - a
    pairs, _ = counted_pairs(A)
    old, new = ROWS[[2, 9]], ROWS[[4, 1]]
    sample = pairs.grown(pairs.grown(pairs.sample(ROWS), old), new)
    at_old, at_new = sample.positions(old), sample.positions(new)
    np.testing.assert_array_equal(sample.raw[at_new][:, :2], A[np.ix_(new, old)])
    np.testing.assert_array_equal(sample.raw[at_old][:, 2:], A[np.ix_(new, old)].T)


def test_growing_by_nothing_evaluates_nothing():
    pairs, counts = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), np.empty(0, dtype=np.intp))
    assert not counts
    assert sample.C.shape == (30, 0)
    assert sample.K_ZZ.shape == (0, 0)


@pytest.mark.parametrize("workers", [1, 3])
def test_vectors_in_several_threads_and_tiles(workers):
    X = np.random.default_rng(1).normal(size=(5000, 4))
    pairs = Pairs(DeltaGauss(6.0, 4.0).fit(X, RNG), Rows(X), Session(workers=workers))
    sample = pairs.grown(pairs.sample(np.arange(1, 5000)), np.array([4999, 17, 2048]))
    sample = pairs.grown(sample, np.array([2049, 1]))
    expected = oracles.delta_gauss(X[1:], X[[4999, 17, 2048, 2049, 1]], 6.0, 4.0)
    np.testing.assert_allclose(sample.C, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(sample.K_ZZ, sample.C[sample.positions(sample.landmarks)])


def test_vectors_are_evaluated_into_a_buffer_tile_by_tile():
    """Every row but the new columns is evaluated once, however these are spread over the rows."""
    written = []

    class Noted(DeltaGauss):
        def columns(self, Z):
            inner = super().columns(Z)

            def values(A, out=None):
                written.append((len(A), out is not None))
                return inner(A, out)

            return values

    X = np.random.default_rng(1).normal(size=(5000, 4))
    pairs = Pairs(Noted(6.0, 4.0).fit(X, RNG), Rows(X), Session())
    sample = pairs.grown(pairs.sample(np.arange(5000)), np.array([3000, 17]))
    assert [rows for rows, buffered in written if buffered] == [2048, 2048, 902]
    np.testing.assert_allclose(
        sample.C, oracles.delta_gauss(X, X[[3000, 17]], 6.0, 4.0), rtol=0, atol=1e-14
    )


def test_a_kernel_that_is_not_safe_in_threads_gets_one_worker():
    assert Pairs(pairwise(max), Rows([1]), Session(workers=8)).workers == 1
    assert Pairs(DeltaGauss(), Rows(POINTS), Session(workers=8)).workers == 8


# Other landmarks among the same columns


def replaced(pairs, sample, landmarks):
    """Other landmarks in the place of the present ones."""
    return pairs.grown(sample.with_landmarks(landmarks[:0]), landmarks)


def test_other_landmarks_use_the_columns_that_there_are():
    pairs, counts = counted_pairs()
    first, second = ROWS[[1, 8, 15]], ROWS[[20, 8, 2]]
    sample = replaced(pairs, pairs.grown(pairs.sample(ROWS), first), second)
    assert set(counts.values()) == {1}
    assert set(counts) == unordered(ROWS, np.union1d(first, second))
    assert set(sample.landmarks) == set(second)
    np.testing.assert_array_equal(sample.C, K[np.ix_(ROWS, sample.landmarks)])


def test_a_reference_set_stays_when_landmarks_change():
    pairs, counts = counted_pairs(D, metric=True)
    reference, second = ROWS[[1, 8, 15]], ROWS[[20, 8, 2]]
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), reference))
    sample = replaced(pairs, sample, second)
    assert set(counts.values()) == {1}
    assert set(sample.landmarks) == set(second)
    assert set(sample.columns) == {*reference, *second}
    expected = centred(ROWS, sample.landmarks, reference)
    np.testing.assert_allclose(sample.C, expected, rtol=0, atol=1e-13)


def test_a_landmark_that_is_evaluated_already_costs_nothing():
    pairs, counts = counted_pairs(D, metric=True)
    reference, landmarks = ROWS[[1, 8, 15]], ROWS[[20, 2]]
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), reference))
    sample = replaced(pairs, sample, landmarks)
    before = dict(counts)
    sample = pairs.grown(sample, ROWS[[8]])
    assert dict(counts) == before
    assert set(sample.landmarks) == set(ROWS[[20, 2, 8]])
    expected = centred(ROWS, sample.landmarks, reference)
    np.testing.assert_allclose(sample.C, expected, rtol=0, atol=1e-13)


def test_values_of_columns_that_are_no_landmarks_are_not_evaluated_again():
    pairs, counts = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[1, 8, 15]])
    sample = replaced(pairs, sample, ROWS[[20, 8, 2]])
    tested = ROWS[[15, 3, 20, 1, 7]]
    np.testing.assert_array_equal(pairs.similarities(sample, tested), K[np.ix_(tested, tested)])
    assert set(counts.values()) == {1}
    used = sample.columns[sample.used]
    sample = sample.with_rows(np.array([49]), K[np.ix_([49], used)])
    tested = np.append(tested, 49)
    np.testing.assert_array_equal(pairs.similarities(sample, tested), K[np.ix_(tested, tested)])


# Similarities and the diagonal


def test_similarities_evaluate_only_unknown_pairs():
    pairs, counts = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2, 25]])
    before = set(counts)
    tested = ROWS[[9, 25, 0, 14, 4]]
    np.testing.assert_array_equal(pairs.similarities(sample, tested), K[np.ix_(tested, tested)])
    assert set(counts) - before == unordered(ROWS[[9, 0, 14]], ROWS[[9, 0, 14]])
    known = ROWS[[25, 4]]
    np.testing.assert_array_equal(pairs.similarities(sample, known), K[np.ix_(known, known)])
    assert set(counts.values()) == {1}


def test_similarities_of_several_sets_and_growing_after_them_share_their_pairs():
    """Known squares that overlap: their pairs are used by other squares and by new columns."""
    pairs, counts = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4]])
    for tested in (ROWS[[9, 0, 14, 3]], ROWS[[14, 3, 21, 22]], ROWS[[0, 9, 21, 28, 14]]):
        np.testing.assert_array_equal(pairs.similarities(sample, tested), K[np.ix_(tested, tested)])
        assert set(counts.values()) == {1}
    new = ROWS[[14, 28, 5, 0]]
    sample = pairs.grown(sample, new)
    np.testing.assert_array_equal(sample.raw, K[np.ix_(ROWS, sample.columns)])
    assert set(counts.values()) == {1}
    assert unordered(ROWS, ROWS[[4, 14, 28, 5, 0]]) <= set(counts)


def test_similarities_of_a_dissimilarity_are_centred():
    pairs, counts = counted_pairs(D, metric=True)
    reference = ROWS[[4, 2, 25, 11]]
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), reference))
    tested = ROWS[[9, 25, 0, 14, 4]]
    got = pairs.similarities(sample, tested)
    np.testing.assert_allclose(got, centred(tested, tested, reference), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(got, got.T)
    assert set(counts.values()) == {1}


def test_the_diagonal_is_evaluated_once():
    pairs, counts = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    for _ in range(2):
        np.testing.assert_array_equal(pairs.diagonal(sample), np.diagonal(K)[ROWS])
    sample = pairs.grown(sample, ROWS[[17, 3]])
    pairs.similarities(sample, ROWS[[5, 6]])
    np.testing.assert_array_equal(sample.raw, K[np.ix_(ROWS, ROWS[[4, 2, 17, 3]])])
    assert {(int(i), int(i)) for i in ROWS} <= set(counts)
    assert set(counts.values()) == {1}


def test_the_diagonal_of_fewer_rows_is_known():
    pairs, counts = counted_pairs()
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[1, 8]])
    np.testing.assert_array_equal(pairs.diagonal(sample), np.diagonal(K)[ROWS])
    fewer = sample.restricted(np.union1d(ROWS[::3], ROWS[[1, 8]]))
    np.testing.assert_array_equal(pairs.diagonal(fewer), np.diagonal(K)[fewer.rows])
    assert set(counts.values()) == {1}


# Reference sets


def test_centring_on_all_objects_is_double_centring():
    pairs, _ = counted_pairs(D, metric=True)
    sample = pairs.with_reference(pairs.grown(pairs.sample(np.arange(50)), np.arange(50)))
    expected = oracles.double_centred(D[:50, :50])
    np.testing.assert_allclose(sample.C, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sample.K_ZZ, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(pairs.diagonal(sample), np.diagonal(expected), rtol=0, atol=1e-12)


def test_the_first_reference_set_is_kept():
    pairs, counts = counted_pairs(D, metric=True)
    reference, later = ROWS[[4, 2, 25]], ROWS[[0, 18]]
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), reference))
    sample = pairs.with_reference(pairs.grown(sample, later))
    both = np.concatenate([reference, later])
    np.testing.assert_allclose(sample.C, centred(ROWS, both, reference), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(sample.K_ZZ, sample.K_ZZ.T)
    expected = np.diagonal(centred(ROWS, ROWS, reference))
    np.testing.assert_allclose(pairs.diagonal(sample), expected, rtol=0, atol=1e-13)
    assert set(counts.values()) == {1}


def test_a_similarity_has_no_reference_set():
    pairs, _ = counted_pairs()
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]]))
    assert sample.transform is None
    assert sample.offsets is None


# Objects from outside X


@pytest.mark.parametrize("metric", [False, True])
def test_landmarks_from_outside(metric):
    outside = [50, 51, 52]
    numbers = np.concatenate([[-3, -2, -1], ROWS])
    objects = np.concatenate([outside, ROWS])
    matrix = D if metric else K
    pairs, _ = counted_pairs(matrix, outside, metric=metric)
    sample = pairs.with_reference(pairs.grown(pairs.sample(numbers, ROWS), numbers[:3]))
    expected = centred(objects, outside, outside) if metric else K[np.ix_(objects, outside)]
    np.testing.assert_allclose(sample.C, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(sample.K_ZZ, expected[:3], rtol=0, atol=1e-13)
    found = pairs.evaluator(sample)(list(ROWS))
    np.testing.assert_allclose(found, expected[3:], rtol=0, atol=1e-13)
    tested, chosen = numbers[[1, 5, 20]], objects[[1, 5, 20]]
    expected = centred(chosen, chosen, outside) if metric else K[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(pairs.similarities(sample, tested), expected, rtol=0, atol=1e-13)


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


def check_evaluator(pairs, sample, expected):
    """Similarities of all objects to the landmarks; those of the sampled rows are its own."""
    columns, objects = pairs.evaluator(sample), pairs.rows.take(np.arange(50))
    np.testing.assert_allclose(columns(objects), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(columns(objects)[sample.rows], sample.C, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(columns.transformed(columns.raw(objects)), columns(objects))


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_evaluator_of_similarities(name):
    kernel, objects, truth = SIMILARITIES[name]
    pairs = Pairs(kernel.fit(objects, RNG), Rows(objects), Session())
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2, 25, 11]])
    check_evaluator(pairs, sample, truth[:, ROWS[[4, 2, 25, 11]]])
    sample = pairs.grown(sample, ROWS[[9, 1]])
    check_evaluator(pairs, sample, truth[:, ROWS[[4, 2, 25, 11, 9, 1]]])
    sample = replaced(pairs, sample, ROWS[[21, 2, 9, 0]])
    assert set(sample.landmarks) == set(ROWS[[21, 2, 9, 0]])
    check_evaluator(pairs, sample, truth[:, sample.landmarks])


@pytest.mark.parametrize("name", METRICS)
def test_the_evaluator_of_dissimilarities(name):
    kernel, objects = METRICS[name]
    pairs = Pairs(kernel.fit(objects, RNG), Rows(objects), Session())
    reference, everything = ROWS[[4, 2, 25, 11]], np.arange(50)
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), reference))
    check_evaluator(pairs, sample, centred(everything, reference, reference))
    sample = pairs.grown(sample, ROWS[[9, 1]])
    expected = centred(everything, ROWS[[4, 2, 25, 11, 9, 1]], reference)
    check_evaluator(pairs, sample, expected)
    sample = replaced(pairs, sample, ROWS[[21, 2, 9, 0]])
    assert set(sample.landmarks) == set(ROWS[[21, 2, 9, 0]])
    check_evaluator(pairs, sample, centred(everything, sample.landmarks, reference))


def test_a_negative_dissimilarity_of_a_new_object_is_refused():
    matrix = D.copy()
    pairs, _ = counted_pairs(matrix, metric=True)
    sample = pairs.with_reference(pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]]))
    matrix[59, ROWS[2]] = -1e-3
    with pytest.raises(ValueError, match="Negative values in data"):
        pairs.evaluator(sample)([58, 59])


# What a kernel may not do


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_values_that_are_not_finite_are_named(value, word):
    matrix = K.copy()
    matrix[ROWS[13], ROWS[25]] = matrix[ROWS[25], ROWS[13]] = value
    pairs, _ = counted_pairs(matrix)
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    message = rf"^kernel produced {word} for row {ROWS[13]} .* landmark row {ROWS[25]};"
    with pytest.raises(ValueError, match=message):
        pairs.grown(sample, ROWS[[7, 25]])
    with pytest.raises(ValueError, match=message):  # between two landmarks
        pairs.grown(sample, ROWS[[13, 25]])


def test_a_self_similarity_that_is_not_finite_is_named():
    matrix = K.copy()
    matrix[ROWS[13], ROWS[13]] = np.nan
    pairs, _ = counted_pairs(matrix)
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    with pytest.raises(ValueError, match=rf"kernel produced NaN for row {ROWS[13]} .*itself"):
        pairs.diagonal(sample)


def test_an_error_of_the_kernel_gets_a_note_of_the_rows():
    def broken(a, b):
        if int(ROWS[13]) in (a, b):
            raise ZeroDivisionError("of the person's own")
        return 1.0

    pairs = Pairs(pairwise(broken), Rows(list(range(50))), Session())
    with pytest.raises(ZeroDivisionError, match="of the person's own") as caught:
        pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    _, note = caught.value.__notes__  # the first names the two objects
    first, last = (int(part) for part in note.split()[6].split(".."))
    assert first <= ROWS[13] <= last
    assert "against 2 landmarks" in note
    assert "Resources(store=path)" in note


@pytest.mark.parametrize(("i", "j"), [(13, 25), (7, 25)])
def test_a_negative_dissimilarity_is_refused(i, j):
    matrix = D.copy()
    matrix[ROWS[i], ROWS[j]] = matrix[ROWS[j], ROWS[i]] = -1e-3
    pairs, _ = counted_pairs(matrix, metric=True)
    with pytest.raises(ValueError, match="Negative values in data"):
        pairs.grown(pairs.sample(ROWS), ROWS[[7, 25]])


def test_a_dissimilarity_to_itself_is_refused():
    matrix = D.copy()
    matrix[ROWS[7], ROWS[7]] = 1e-3
    pairs, _ = counted_pairs(matrix, metric=True)
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[25]])
    with pytest.raises(ValueError, match="diagonal of a dissimilarity must be zero"):
        pairs.grown(sample, ROWS[[7]])


def test_what_exceeds_the_budget_is_refused_with_a_remedy():
    pairs = Pairs(DeltaGauss(), Rows(POINTS), Session(budget=1000))
    pairs.require_memory(1000, "this", "do that")
    with pytest.raises(MemoryError, match=r"this needs 1\.5 kB but memory_budget is 1 kB; do that"):
        pairs.require_memory(1500, "this", "do that")


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
    pairs = Pairs(kernel.fit(X, RNG), Rows(X), Session(progress=seen))
    sample = pairs.grown(pairs.sample(ROWS), ROWS[[4, 2]])
    sample = pairs.grown(sample, ROWS[[9, 4, 11, 3]])
    among = {2: 3, 3: 6} if kind == "pairwise" else {2: 4, 3: 9}
    first, second = 28 * 2 + among[2], 25 * 3 + among[3]
    assert seen.steps == [("landmarks", 30, first), ("landmarks", 28, second)]
    if kind != "precomputed":  # whose square is read
        assert seen.done == (58, first + second)
    if kind == "pairwise":
        assert seen.done[1] == sum(kernel.func.pairs.values())
    pairs.similarities(sample, ROWS[[2, 20, 21]])
    assert seen.steps[2] == ("sampled pairs", 2, among[2])
