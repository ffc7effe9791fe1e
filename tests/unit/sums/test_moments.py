"""Sums over rows against the same sums of whole matrices."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import kreinlearn.sums.moments
from kreinlearn.data.tiles import TILE
from kreinlearn.kernels import DeltaGauss, Precomputed
from kreinlearn.kernels.callables import CallableKernel
from kreinlearn.nystrom.core import sweep
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.sums.moments import (
    FeatureMoments,
    Moments,
    Targets,
    moments_of,
    spare_for,
    symmetric_product,
    total_gram,
)
from kreinlearn.sums.parallel import SPARE
from tests import oracles
from tests.bounds import rounding

RNG = np.random.default_rng(11)
ROWS, M, Q = 60, 5, 2
C = RNG.normal(size=(ROWS, M)) + 0.4
Y = RNG.normal(size=(ROWS, Q)) - 1.5
W = RNG.uniform(0.2, 3, ROWS) * (RNG.random(ROWS) < 0.8)  # some weigh nothing
WEIGHTS = {"plain": None, "weighted": W}
weighted = pytest.mark.parametrize("w", WEIGHTS.values(), ids=WEIGHTS)


def by_definition(Phi, Y, w=None):
    """G, s, B, t, yy, n by sums over single rows."""
    w = np.ones(len(Phi)) if w is None else w
    Phi, Y, w = (a.astype(np.longdouble) for a in (Phi, Y, w))
    G = sum(w_i * np.outer(p, p) for w_i, p in zip(w, Phi, strict=True))
    B = sum(w_i * np.outer(p, y) for w_i, p, y in zip(w, Phi, Y, strict=True))
    s, t, yy = (np.sum(w[:, None] * a, axis=0) for a in (Phi, Y, Y**2))
    return [np.asarray(a, dtype=np.float64) for a in (G, s, B, t, yy, w.sum())]


def by_products(Phi, Y, w=None):
    """The same of many rows, by matrix products."""
    w = np.ones(len(Phi)) if w is None else w
    wPhi, wY = w[:, None] * Phi, w[:, None] * Y
    return [Phi.T @ wPhi, wPhi.sum(0), Phi.T @ wY, wY.sum(0), (wY * Y).sum(0), w.sum()]


@pytest.mark.parametrize("w", [None, (np.arange(200.0) % 3) ** 2], ids=["plain", "weighted"])
def test_targets_of_very_many_classes_take_little_memory(w, monkeypatch):
    """Whole numbers, whose sums have no rounding errors; the targets as numbers are 3.2 MB."""
    monkeypatch.setattr(kreinlearn.sums.moments, "TARGETS", 2**12)
    C, Y = np.arange(600.0).reshape(200, 3) % 7, np.ones((200, 2000), dtype=np.int8)
    Y[:, ::2] = -1
    total = Moments.zeros(3, 2000)
    tracemalloc.start()
    total.add(C, Y, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    G, s, B, t, yy, n = by_products(C, Y.astype(float), w)
    for found, expected in (
        (total.gram.matrix, G), (total.gram.sums, s), (total.cross, B), (total.y_sums, t),
        (total.y_squares, yy), (total.weight, n),
    ):  # fmt: skip
        np.testing.assert_array_equal(found, expected)
    assert peak < Y.nbytes  # an eighth of the targets as numbers


def assert_terms(terms, expected, rtol=1e-12):
    for found, wanted in zip(terms, expected, strict=True):
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * np.abs(wanted).max())


def assert_moments(moments, C, Y, w=None, values=0.0):
    """Moments are terms of features that are the columns themselves.

    Each is a sum of as many terms as there are rows, and a term has up to three roundings more,
    of its products and where it is converted. Both sides round, so the errors add. The columns
    themselves may differ by ``values``, which changes a sum by what it would add to the sum of
    absolute values.
    """
    gram = moments.gram
    found = [gram.matrix, gram.sums, moments.cross, moments.y_sums, moments.y_squares]
    error = 2 * rounding(len(C) + 3)
    for one, wanted, size, larger in zip(
        [*found, moments.weight], by_products(C, Y, w),
        by_products(np.abs(C), np.abs(Y), w), by_products(np.abs(C) + values, np.abs(Y), w),
        strict=True,
    ):  # fmt: skip
        assert np.shape(one) == np.shape(wanted)
        assert (np.abs(one - wanted) <= error * larger + (larger - size)).all()


def moments_in_parts(C, Y, w, cuts=(0, 7, 7, 30, ROWS)):
    total = Moments.zeros(C.shape[1], Y.shape[1])
    for start, stop in pairwise(cuts):
        here = slice(start, stop)
        total.add(C[here], Y[here], None if w is None else w[here])
    return total


# Moments


@weighted
def test_moments_are_sums_over_rows(w):
    moments = moments_in_parts(C, Y, w)
    assert_terms(by_products(C, Y, w), by_definition(C, Y, w))
    assert_moments(moments, C, Y, w)


@weighted
def test_moments_add(w):
    one = moments_in_parts(C, Y, w, cuts=(0, 20))
    one += moments_in_parts(C, Y, w, cuts=(20, 50, ROWS))
    assert_moments(one, C, Y, w)


@weighted
def test_terms_of_moments_are_those_of_features(w):
    W_map = RNG.normal(size=(M, 3))
    terms = moments_in_parts(C, Y, w).terms(W_map)
    assert_terms(terms, by_definition(C @ W_map, Y, w))
    np.testing.assert_array_equal(terms.G, terms.G.T)


def test_moments_without_targets():
    moments = moments_in_parts(C, np.empty((ROWS, 0)), W)
    assert moments.cross.shape == (M, 0)
    size = np.abs(C.T * W) @ np.abs(C)
    assert (np.abs(moments.gram.matrix - (C.T * W) @ C) <= 2 * rounding(ROWS + 3) * size).all()
    assert moments.weight == pytest.approx(W.sum())


@weighted
def test_single_precision_rows(w):
    moments = moments_in_parts(C.astype(np.float32), Y, w)
    assert_moments(moments, C.astype(np.float32).astype(np.float64), Y, w)


def test_products_are_exactly_symmetric():
    W_map, G = RNG.normal(size=(9, 7)), RNG.normal(size=(9, 9))
    G = G + G.T
    P = symmetric_product(W_map, G)
    np.testing.assert_array_equal(P, P.T)
    size = np.abs(W_map).T @ np.abs(G) @ np.abs(W_map)
    assert (np.abs(P - W_map.T @ G @ W_map) <= 4 * rounding(9) * size).all()


# Terms


@weighted
def test_terms_of_rows(w):
    assert_terms(FeatureMoments.of_rows(C, Y, w), by_definition(C, Y, w))


def test_a_weight_is_a_number_of_repetitions():
    times = RNG.integers(0, 4, ROWS)
    rows = np.repeat(np.arange(ROWS), times)
    one = FeatureMoments.of_rows(C[rows], Y[rows], None)
    assert_terms(FeatureMoments.of_rows(C, Y, times.astype(float)), one)
    assert_moments(moments_in_parts(C, Y, times.astype(float)), C[rows], Y[rows])


@weighted
def test_terms_are_added_and_taken_away(w):
    parts = [slice(0, 25), slice(25, ROWS)]
    one, two = (FeatureMoments.of_rows(C[p], Y[p], None if w is None else w[p]) for p in parts)
    whole = by_definition(C, Y, w)
    assert_terms(one.plus(two), whole)
    first = by_definition(C[:25], Y[:25], None if w is None else w[:25])
    assert_terms(FeatureMoments.of_rows(C, Y, w).minus(two), first)
    assert_terms(one, first)  # not changed in place


@weighted
def test_rescaled_terms_are_those_of_scaled_features(w):
    scale = RNG.uniform(0.1, 5, M)
    assert_terms(FeatureMoments.of_rows(C, Y, w).rescaled(scale), by_definition(C * scale, Y, w))


@weighted
def test_centred_terms_are_those_of_centred_rows(w):
    centred = FeatureMoments.of_rows(C, Y, w).centred(intercept=True)
    mean, ybar = np.average(C, axis=0, weights=w), np.average(Y, axis=0, weights=w)
    G, _, B, _, yy, n = by_definition(C - mean, Y - ybar, w)
    assert_terms(centred, [G, B, yy, n, mean, ybar], rtol=1e-11)


@weighted
def test_without_an_intercept_nothing_is_centred(w):
    centred = FeatureMoments.of_rows(C, Y, w).centred(intercept=False)
    G, _, B, _, yy, n = by_definition(C, Y, w)
    assert_terms(centred[:4], [G, B, yy, n])
    np.testing.assert_array_equal(centred.mean, np.zeros(M))
    np.testing.assert_array_equal(centred.ybar, np.zeros(Q))
    np.testing.assert_array_equal(centred.intercept(RNG.normal(size=(M, Q))), np.zeros(Q))


@weighted
def test_the_intercept_makes_residuals_zero_on_average(w):
    Z = RNG.normal(size=(M, Q))
    b = FeatureMoments.of_rows(C, Y, w).centred(intercept=True).intercept(Z)
    np.testing.assert_allclose(np.average(Y - C @ Z - b, axis=0, weights=w), 0, atol=1e-13)


# Groups

GROUPS = RNG.permutation(np.repeat([0, 1, 3], 20))  # none in group 2


@weighted
def test_moments_of_groups_of_numbered_rows(w):
    numbers = np.sort(RNG.choice(ROWS, 40, replace=False))
    targets = Targets(Y, w, GROUPS, n_groups=5)
    found = moments_of(C[numbers], targets, numbers)
    assert len(found) == 5
    for g, moments in enumerate(found):
        rows = numbers[GROUPS[numbers] == g]
        assert_moments(moments, C[rows], Y[rows], None if w is None else w[rows])


@weighted
def test_moments_of_one_group_of_many_tiles(w):
    n = 2 * TILE + 17
    C, Y = RNG.normal(size=(n, 3)), RNG.normal(size=(n, 1))
    w = None if w is None else RNG.uniform(0.5, 2, n)
    for workers in (1, 3):
        (found,) = moments_of(C, Targets(Y, w), np.arange(n), workers)
        assert_moments(found, C, Y, w)


def test_weights_that_cancel_leave_sums():
    """Rows that are added, and others that are taken away, have the weight 0 together."""
    gained, lost, total = (Moments.zeros(M, Q) for _ in range(3))
    gained.add(C[:20], Y[:20], None)
    lost.add(C[20:40], Y[20:40], None)
    gained -= lost
    total += gained
    assert total.weight == 0
    expected = C[:20].T @ C[:20] - C[20:40].T @ C[20:40]
    np.testing.assert_allclose(total.gram.matrix, expected, atol=1e-12)
    total.clear()
    assert not total.gram.matrix.any()


def test_rows_of_a_group_stand_together():
    targets = Targets(Y, None, GROUPS, n_groups=5)
    numbers = np.arange(10, 50)
    ordered = targets.by_group(numbers)
    assert sorted(ordered) == numbers.tolist()
    spans = targets.spans(ordered)
    assert [g for g, _ in spans] == [0, 1, 3]
    for g, span in spans:
        np.testing.assert_array_equal(ordered[span], numbers[GROUPS[numbers] == g])


@pytest.mark.parametrize("weighted", [False, True])
def test_targets_of_consecutive_rows_are_those_of_all(weighted):
    w = np.arange(1.0, len(Y) + 1) if weighted else None
    every = Targets(Y, w, GROUPS, n_groups=5)
    some, numbers = every.between(10, 50).between(20, 45), np.arange(22, 40)
    np.testing.assert_array_equal(some.by_group(numbers), every.by_group(numbers))
    ordered = every.by_group(numbers)
    assert some.spans(ordered) == every.spans(ordered)
    for found, expected in zip(some.of(numbers), every.of(numbers), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_without_groups_order_is_kept():
    numbers = np.arange(10, 50)
    assert Targets(Y).by_group(numbers) is numbers
    assert Targets(Y).spans(numbers) == [(0, slice(0, 40))]


def test_targets_of_rows():
    numbers = np.array([7, 3, 40])
    one, none = Targets(Y, W).of(numbers), Targets(Y).of(numbers)
    np.testing.assert_array_equal(one[0], Y[numbers])
    np.testing.assert_array_equal(one[1], W[numbers])
    np.testing.assert_array_equal(none[0], Y[numbers])
    assert none[1] is None


def test_large_sums_do_not_wait(monkeypatch):
    assert spare_for(1, 1, 2) == spare_for(0, 1, 2) == SPARE == 2
    monkeypatch.setattr(
        kreinlearn.sums.moments, "SUM_BYTES", 8 * 100**2 * 10
    )  # ten sums of 100 x 100
    assert [spare_for(100, groups, 2) for groups in (1, 2, 3, 1000)] == [2, 1, 0, 0]
    assert [spare_for(100, 1, workers) for workers in (1, 6, 7, 8)] == [0, 2, 1, 0]


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_the_gram_matrix_of_all_groups(n_groups):
    targets = Targets(Y, None, np.arange(ROWS) % n_groups, n_groups)
    gram = total_gram(moments_of(C, targets, np.arange(ROWS)))
    size = np.abs(C).T @ np.abs(C)
    assert (np.abs(gram.matrix - C.T @ C) <= 2 * rounding(ROWS + 3) * size).all()
    allowed = 2 * rounding(ROWS + 3) * np.abs(C).sum(axis=0)
    assert (np.abs(gram.sums - C.sum(axis=0)) <= allowed).all()


def test_cleared_sums_are_those_of_nothing():
    total = Moments.zeros(3, 2)
    C, Y = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 2))
    total.add(C, Y, None)
    total.clear()
    assert pickle.dumps(total) == pickle.dumps(Moments.zeros(3, 2))
    total.add(C, Y, None)
    np.testing.assert_allclose(total.gram.matrix, C.T @ C)


# One pass over sampled and streamed rows

N, N_GROUPS = 2 * TILE + 300, 4
X = np.random.default_rng(3).normal(size=(N, 3))
KNOWN = np.sort(np.random.default_rng(4).choice(N, 200, replace=False))  # rows of the sample
Z = KNOWN[np.random.default_rng(5).permutation(200)[:M]]
TARGETS = Targets(
    RNG.normal(size=(N, Q)), RNG.uniform(0.2, 3, N), RNG.integers(N_GROUPS - 1, size=N), N_GROUPS
)
SPEC = MapSpec(M, given=Z)


def delta_gauss(A, B):
    return oracles.delta_gauss(np.asarray(A), np.asarray(B), 6.0, 4.0)


def opened(kernel, objects, rows=KNOWN, **session):
    """Pairs, and a sample of rows with landmarks."""
    session = Session(**{"budget": 10**9, **session})
    pairs = Pairs(kernel.fit(objects, RNG), Rows(objects), session)
    return pairs, pairs.with_reference(pairs.grown(pairs.sample(rows), Z))


def passed(pairs, sample, core="plain", keep=None):
    spec, generator = replace(SPEC, core=core), np.random.default_rng(0)
    swept = sweep(pairs, sample, spec, generator, TARGETS, keep)
    return swept.groups, swept.unit


def error_of_values():
    """How far two ways of computing delta_gauss may be apart, at most.

    A squared distance |x|^2 + |z|^2 - 2 x z of 3 numbers has 3 + 3 roundings of terms that come to
    2 (|x|^2 + |z|^2) at most. The kernel's slope in it is at most 4 / 6, and the two exponentials
    and their difference are of size 1 and round twice each. Both ways round.
    """
    largest = 2 * np.sum(X**2, axis=1).max()
    return 2 * (rounding(6) * 2 * largest * 4 / 6 + rounding(6))


def assert_groups(found, C):
    assert len(found) == N_GROUPS
    for g, moments in enumerate(found):
        rows = np.flatnonzero(TARGETS.groups == g)
        given = TARGETS.Y[rows], TARGETS.weights[rows], error_of_values()
        assert_moments(moments, C[rows], *given)


FORMS = {"dense": np.asarray, "sparse": sp.csr_array}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("core", ["plain", "ls"])
@pytest.mark.parametrize("form", FORMS)
def test_groups_of_sampled_and_streamed_rows(form, core, workers):
    given = opened(DeltaGauss(6.0, 4.0), FORMS[form](X), workers=workers)
    keep = np.full((N, M), np.nan)
    found, unit = passed(*given, core, keep=keep)
    C = delta_gauss(X, X[Z])
    assert unit == 1.0
    assert_groups(found, C)
    np.testing.assert_allclose(keep, C, rtol=0, atol=error_of_values())


def test_groups_of_objects_and_of_a_matrix():
    C = delta_gauss(X, X[Z])
    assert_groups(passed(*opened(CallableKernel(delta_gauss), list(X)))[0], C)
    pairs = Pairs(Precomputed().fit(np.eye(2), RNG), Rows(C), Session())
    pairs.kernel.landmark_rows = Z
    assert_groups(passed(pairs, pairs.grown(pairs.sample(KNOWN), Z))[0], C)


def test_groups_of_rows_that_are_all_in_the_sample():
    given = opened(DeltaGauss(6.0, 4.0), X, np.arange(N), budget=1)
    keep = np.empty((N, M))
    found, _ = passed(*given, keep=keep)
    C = delta_gauss(X, X[Z])
    assert_groups(found, C)
    np.testing.assert_allclose(keep, C, rtol=0, atol=error_of_values())


@pytest.mark.parametrize("power", [-300, 400])
def test_sums_and_kept_values_are_of_the_kernel_over_its_unit(power):
    def large(A, B):
        return delta_gauss(A, B) * 2.0**power

    keep = np.empty((N, M))
    found, unit = passed(*opened(CallableKernel(large), list(X)), keep=keep)
    C = delta_gauss(X, X[Z]) * (2.0**power / unit)
    assert 0.01 < np.abs(C).max() < 4
    assert_groups(found, C)
    np.testing.assert_allclose(keep, C, rtol=0, atol=error_of_values())


def test_threads_and_their_number_change_no_bit():
    def sums(workers):
        return passed(*opened(DeltaGauss(6.0, 4.0), X, workers=workers))[0]

    one = sums(1)
    for other in (sums(2), sums(5)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a.gram.matrix, b.gram.matrix)
            np.testing.assert_array_equal(a.cross, b.cross)
            assert a.weight == b.weight


@weighted
def test_a_constant_beside_the_features(w):
    terms, w = FeatureMoments.of_rows(C, Y, w), np.ones(ROWS) if w is None else w
    for F, intercept in ((np.column_stack([C, np.ones(ROWS)]), True), (C, False)):
        for found, right in zip(terms.with_constant(intercept=intercept), (F, Y), strict=True):
            size = (np.abs(F).T * w) @ np.abs(right)
            assert (np.abs(found - (F.T * w) @ right) <= 2 * rounding(ROWS + 2) * size).all()
