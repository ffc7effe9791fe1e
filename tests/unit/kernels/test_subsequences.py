"""The distance by subsequences against linear programs, permutations and its invariances."""

from __future__ import annotations

import sys
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kreinlearn import KreinRidgeClassifier
from kreinlearn.data.tiles import TILE
from kreinlearn.kernels import resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.subsequences import WassersteinSubsequence
from kreinlearn.kernels.vector_columns import evenly
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

RNG = np.random.default_rng
ROUNDING = 1e-12  # hundreds of terms, each known to 1e-15
KERNELS = [
    WassersteinSubsequence(window=1),
    WassersteinSubsequence(window=3),
    WassersteinSubsequence(window=3, znormalize_subsequences=True),
    WassersteinSubsequence(window=2, znormalize=True),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def ragged(n: int, channels: int, seed: int, shortest: int = 4, longest: int = 8) -> list[Any]:
    rng = RNG(seed)
    return [rng.normal(size=(k, channels)) for k in rng.integers(shortest, longest + 1, n)]


# The definition


def normal(x: Any) -> Any:
    """Columns minus their means, divided by their standard deviations."""
    centred = x - x.mean(axis=0)
    return centred / np.sqrt((centred**2).mean(axis=0))


def ground(kernel: Any, x: Any, z: Any) -> Any:
    """|a - b| of all subsequences a of x and b of z, one by one."""
    if kernel.znormalize:
        x, z = normal(x), normal(z)

    def cut(series: Any) -> list[Any]:
        w = kernel.window
        parts = [series[i : i + w] for i in range(len(series) - w + 1)]
        return [normal(part) for part in parts] if kernel.znormalize_subsequences else parts

    return np.array([[np.sqrt(((a - b) ** 2).sum()) for b in cut(z)] for a in cut(x)])


def by_linear_program(kernel: Any, x: Any, z: Any) -> float:
    cost = ground(kernel, x, z)
    k, l = cost.shape
    rows, columns = np.kron(np.eye(k), np.ones(l)), np.kron(np.ones(k), np.eye(l))
    totals = np.concatenate([np.full(k, 1 / k), np.full(l, 1 / l)])
    return float(linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=totals).fun)


@pytest.mark.parametrize("channels", [1, 2])
@every_kernel
def test_equals_the_linear_program(kernel: Any, channels: int) -> None:
    pytest.importorskip("ot")
    A, B = ragged(5, channels, seed=1), ragged(6, channels, seed=2)
    assert {len(x) for x in A} & {len(x) for x in B}  # both cases: matched, and transported
    expected = matrix(lambda x, z: by_linear_program(kernel, x, z), A, B)
    assert_allclose(kernel(A, B), expected, rtol=1e-7)  # the tolerance of the linear program


@every_kernel
def test_series_of_one_length_are_matched_by_the_best_permutation(kernel: Any) -> None:
    X = list(RNG(3).normal(size=(6, 7, 2)))

    def best(x: Any, z: Any) -> float:
        cost = ground(kernel, x, z)
        places = np.arange(len(cost))
        return float(min(cost[places, list(p)].mean() for p in permutations(places)))

    X = [x[: kernel.window + 4] for x in X]  # five subsequences
    assert_allclose(kernel(X), matrix(best, X, X), rtol=ROUNDING, atol=ROUNDING)


def test_windows_of_one_point_compare_the_distributions_of_values() -> None:
    pytest.importorskip("ot")
    X = [x[:, 0] for x in ragged(8, 1, seed=4, longest=30)]
    expected = matrix(wasserstein_distance, X, X)
    assert_allclose(WassersteinSubsequence(window=1)(X), expected, rtol=ROUNDING, atol=ROUNDING)


def test_values_by_hand() -> None:
    """Subsequences (0, 0), (0, 1), (1, 0) of weight 1/3 against (0, 1), (1, 0) of weight 1/2.

    (0, 0) gives 1/6 to each of the others, at distance 1.
    """
    pytest.importorskip("ot")
    kernel = WassersteinSubsequence(window=2)
    assert kernel([[0, 0, 1, 0]], [[0, 1, 0]])[0, 0] == pytest.approx(1 / 3, rel=1e-15)
    assert kernel([[0, 0, 0]], [[3, 4]])[0, 0] == 5.0
    assert WassersteinSubsequence(window=3)([[0, 0, 0]], [[2, 3, 6]])[0, 0] == 7.0


# What follows from the definition


@pytest.mark.parametrize("phase", range(5))
def test_whole_periods_are_equal_at_any_phase(phase: int) -> None:
    """Every subsequence of a periodic series occurs equally often, whatever its first point."""
    pytest.importorskip("ot")
    period, w = np.array([0.0, 1.0, 4.0, 9.0, 2.0]), 3
    waves = [
        np.tile(period, 9)[start : start + 5 * k + w - 1] for start in (0, phase) for k in (2, 3)
    ]
    D = WassersteinSubsequence(window=w)(waves, waves)
    assert_allclose(D, 0.0, atol=9 * ROUNDING)
    assert WassersteinSubsequence(window=w)([waves[0]], [waves[0] + 1.0])[0, 0] > 1.0


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 2), st.floats(-9, 9))
def test_invariances(seed: int, w: int, channels: int, shift: float) -> None:
    """Time runs backwards, channels change places, both are moved, both are scaled."""
    pytest.importorskip("ot")
    A, B = ragged(3, channels, seed), ragged(3, channels, seed + 1)
    kernel = WassersteinSubsequence(window=w)
    D = kernel(A, B)
    size = {"rtol": ROUNDING, "atol": 20 * ROUNDING}  # numbers of up to about 20
    for change in (lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x + shift, lambda x: -x):
        assert_allclose(kernel([change(a) for a in A], [change(b) for b in B]), D, **size)
    assert_allclose(kernel([4 * a for a in A], [4 * b for b in B]), 4 * D, rtol=ROUNDING)
    moved = kernel([A[0]], [A[0] + shift])[0, 0]
    assert moved == pytest.approx(abs(shift) * np.sqrt(w * channels), rel=1e-9, abs=1e-9)


@every_kernel
def test_the_triangle_inequality(kernel: Any) -> None:
    pytest.importorskip("ot")
    D = kernel(ragged(15, 1, seed=5))
    assert (D[:, None] <= D[:, :, None] + D[None] + ROUNDING).all()


def test_znormalize_does_as_series_that_were_normalized_by_hand() -> None:
    pytest.importorskip("ot")
    A, B = ([100 * x + 7 for x in ragged(5, 2, seed)] for seed in (6, 7))
    kernel = WassersteinSubsequence(window=3)
    expected = kernel([normal(a) for a in A], [normal(b) for b in B])
    assert_allclose(clone(kernel).set_params(znormalize=True)(A, B), expected, rtol=1e-11)


def test_znormalized_subsequences_have_neither_level_nor_scale() -> None:
    """Steps up differ in size and level only; a subsequence without a step is zero."""
    low, high = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [5.0, 5.0, 5.0, 9.0, 9.0, 9.0]
    kernel = WassersteinSubsequence(window=2, znormalize_subsequences=True)
    assert_allclose(kernel([low], [high]), 0.0, atol=ROUNDING)
    flat = [3.0] * 6  # zero and (-1, 1): one of five subsequences is at distance sqrt(2)
    assert kernel([low], [flat])[0, 0] == pytest.approx(np.sqrt(2) / 5, rel=1e-15)


# As a kernel


@every_kernel
def test_exactly_symmetric_and_zero_for_equal_series(kernel: Any) -> None:
    pytest.importorskip("ot")
    X = ragged(12, 1, seed=8, longest=12)
    X += [np.arange(float(k))[:, None] / 3 for k in (5, 9, 9)]  # on a line: many plans cost least
    X += [np.arange(9.0)[:, None] / 7, np.array(X[4])]
    check_symmetry(kernel, X)
    assert kernel([X[4]], [X[-1]])[0, 0] == 0.0


@every_kernel
def test_pieces_threads_and_copies_change_no_bit(kernel: Any) -> None:
    pytest.importorskip("ot")
    A, Z = ragged(20, 2, seed=9), ragged(9, 2, seed=10)
    check_pieces(kernel, A, Z)
    check_copies(kernel, A, Z)


def test_channels_may_come_first() -> None:
    pytest.importorskip("ot")
    A, kernel = ragged(5, 2, seed=11), WassersteinSubsequence(window=3)
    turned = clone(kernel).set_params(channels_first=True)
    assert_array_equal(turned([a.T for a in A]), kernel(A))


def bumps(n: int, seed: int) -> tuple[list[Any], Any]:
    """One bump or two narrow ones, at any time."""
    rng = RNG(seed)
    y = np.arange(n) % 2
    X = []
    for two in y:
        x, at = 0.05 * rng.normal(size=30), rng.integers(2, 8)
        x[at : at + 6] += 0 if two else 1
        for start in (at, at + 10) if two else ():
            x[start : start + 3] += 1
        X.append(x)
    return X, y


def test_an_estimator_does_as_with_the_matrix() -> None:
    (X, y), (new, _) = bumps(24, seed=12), bumps(9, seed=13)
    check_estimator(WassersteinSubsequence(window=4), X, y, new, [np.array(X)])


def test_the_name() -> None:
    kernel = resolve("wtk", {"window": 5})
    assert isinstance(kernel, WassersteinSubsequence)
    assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), True, False)
    assert kernel.pair_seconds is None  # it is measured: lengths decide


# The window


@pytest.mark.parametrize(
    ("window", "lengths", "points"),
    [
        (0.1, [150, 80, 200], 8),
        (0.1, [20, 30], 3),  # at least three
        (0.1, [2, 30], 2),  # if there are three
        (0.5, [11, 30], 6),
        (1.0, [11, 30], 11),
        (7, [11, 30], 7),
        (np.int64(1), [11, 30], 1),
    ],
)
def test_a_share_is_one_of_the_shortest_series_of_the_fit(
    window: float, lengths: list[int], points: int
) -> None:
    X = [RNG(k).normal(size=k) for k in lengths]
    kernel = WassersteinSubsequence(window=window).fit(X, RNG(0))
    assert kernel.window_ == points
    pytest.importorskip("ot")
    assert_array_equal(kernel(X), WassersteinSubsequence(window=points)(X))


def test_a_share_is_taken_of_evenly_spaced_series() -> None:
    """The same rows whether they come from all of X or from those that Dask sends."""
    n = 2 * TILE - 1
    rows = evenly(n)
    assert rows.tolist() == list(range(0, n, 2))
    assert_array_equal(evenly(TILE), np.arange(TILE))
    assert evenly(5).tolist() == [0, 1, 2, 3, 4]
    X = [np.arange(40.0 if i % 2 else 50.0) for i in range(n)]
    kernel = WassersteinSubsequence(window=0.2)
    assert kernel.fit(X, RNG(0)).window_ == 10
    assert kernel.fit([X[i] for i in rows], RNG(0)).window_ == 10


def test_a_share_needs_a_fit() -> None:
    message = r"window=0.1 is a share of the shortest series of the fit: fit first, or pass a whole"
    with pytest.raises(NotFittedError, match=message):
        WassersteinSubsequence()([[0.0, 1.0, 2.0]])


@pytest.mark.parametrize("window", [0, -3, 1.5, -0.1, np.nan, "10", None, True])
def test_windows_that_are_none(window: Any) -> None:
    kernel = WassersteinSubsequence(window=window)
    for act in (lambda: kernel([[0.0, 1.0]]), lambda: kernel.fit([[0.0, 1.0]], RNG(0))):
        with pytest.raises(ValueError, match=r"window=.* is not allowed; pass a number of points"):
            act()


def test_series_that_are_too_short_are_named() -> None:
    message = (
        r"has 2 points, and the subsequences have 3; leave it out, or pass a window of at most 2"
    )
    good = [[0.0, 1.0, 2.0], [1.0, 1.0, 2.0, 5.0]]
    check_bad_object(WassersteinSubsequence(window=3), good, [0.0, 1.0], message)
    message = r"is float 3.5; a time series is an array of numbers"
    check_bad_object(WassersteinSubsequence(window=3), good, 3.5, message)


def test_values_whose_squares_overflow_are_no_distances() -> None:
    X = [[1e200, -1e200, 0.0], [0.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 5.0, 2.0]]
    with pytest.raises(ValueError, match="inf"):
        KreinRidgeClassifier("wtk").fit(X, [0, 1, 0, 1])


def test_without_pot_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    kernel = WassersteinSubsequence(window=2)
    assert kernel([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]])[0, 0] > 0  # one length needs scipy only
    with pytest.raises(ImportError, match=r'^this needs POT, .*"kreinlearn\[shapes\]"$'):
        kernel([[0.0, 1.0, 2.0]], [[0.0, 1.0, 2.0, 3.0]])
