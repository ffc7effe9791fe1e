"""Elastic distances of time series by definition, and against aeon's functions of two series."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

from kreinlearn import KreinRidgeClassifier
from kreinlearn.kernels import _elastic, resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.series import (
    DTW,
    EDR,
    ERP,
    LCSS,
    MSM,
    TWE,
    AmercedDTW,
    DerivativeDTW,
    SeriesDistance,
    ShapeDTW,
    WeightedDTW,
)
from kreinlearn.kernels.series_base import znormalized
from tests.unit.kernels.object_checks import check_pieces

Points = NDArray[np.float64]  # (length, channels)
Function = Callable[[Points, Points], float]


def ragged(n: int, channels: int, seed: int, shortest: int = 3, longest: int = 9) -> list[Points]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, n)
    return [rng.standard_normal((length, channels)) for length in lengths]


def matrix(f: Function, A: list[Points], B: list[Points]) -> Points:
    return np.array([[f(a, b) for b in B] for a in A])


# The definitions


def gap(a: Any, b: Any) -> float:
    return float(np.sqrt(np.sum((np.asarray(a) - b) ** 2)))


def cheapest(
    n: int, m: int, edge: Callable[[int, int], float], step: Callable[..., tuple[float, ...]]
) -> float:
    """D[n, m] for D[i, j] = the least of D[i-1, j-1], D[i-1, j], D[i, j-1] plus the three steps."""
    D = np.array([[edge(i, j) for j in range(m + 1)] for i in range(n + 1)])
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            pair, of_x, of_z = step(i - 1, j - 1)
            D[i, j] = min(D[i - 1, j - 1] + pair, D[i - 1, j] + of_x, D[i, j - 1] + of_z)
    return float(D[n, m])


def corner(i: int, j: int) -> float:
    return 0.0 if i == j == 0 else np.inf


def dtw(x: Points, z: Points, weight: Any = None, band: float = np.inf) -> float:
    def step(i: int, j: int) -> tuple[float, ...]:
        w = 1.0 if weight is None else weight(abs(i - j), max(len(x), len(z)))
        cost = gap(x[i], z[j]) ** 2 * w if abs(i - j) <= band else np.inf
        return cost, cost, cost

    return cheapest(len(x), len(z), corner, step)


def amerced(x: Points, z: Points, penalty: float) -> float:
    def step(i: int, j: int) -> tuple[float, ...]:
        cost = gap(x[i], z[j]) ** 2
        return cost, cost + penalty, cost + penalty

    return cheapest(len(x), len(z), corner, step)


def slopes(x: Points) -> Points:
    return np.array(
        [(x[i] - x[i - 1] + (x[i + 1] - x[i - 1]) / 2) / 2 for i in range(1, len(x) - 1)]
    )


def stretches(x: Points, reach: int) -> Points:
    last = len(x) - 1
    around = range(-reach, reach + 1)
    return np.array([[x[min(max(i + k, 0), last)] for k in around] for i in range(len(x))])


def msm(x: Points, z: Points, c: float) -> float:
    """The sum over channels; the first points are a pair, whatever comes after."""

    def price(new: float, a: float, b: float) -> float:
        inside = min(a, b) <= new <= max(a, b)
        return c if inside else c + min(abs(new - a), abs(new - b))

    def one(x: Points, z: Points) -> float:
        def step(i: int, j: int) -> tuple[float, ...]:
            of_x = price(x[i], x[i - 1], z[j]) if i else np.inf
            of_z = price(z[j], x[i], z[j - 1]) if j else np.inf
            return abs(x[i] - z[j]), of_x, of_z

        return cheapest(len(x), len(z), corner, step)

    return sum(one(x[:, k], z[:, k]) for k in range(x.shape[1]))


def msm_at_once(x: Points, z: Points, c: float) -> float:
    def price(new: Points, a: Points, b: Points) -> float:
        if gap(new, (a + b) / 2) <= gap(a, b) / 2:
            return c
        return c + min(gap(new, a), gap(new, b)) ** 2

    def step(i: int, j: int) -> tuple[float, ...]:
        of_x = price(x[i], x[i - 1], z[j]) if i else np.inf
        of_z = price(z[j], x[i], z[j - 1]) if j else np.inf
        return gap(x[i], z[j]) ** 2, of_x, of_z

    return cheapest(len(x), len(z), corner, step)


def erp(x: Points, z: Points, g: Any) -> float:
    of_x, of_z = [gap(a, g) for a in x], [gap(b, g) for b in z]
    return cheapest(
        len(x),
        len(z),
        lambda i, j: sum(of_x[:i]) + sum(of_z[:j]),
        lambda i, j: (gap(x[i], z[j]), of_x[i], of_z[j]),
    )


def twe(x: Points, z: Points, nu: float, lmbda: float) -> float:
    x, z = np.vstack([0 * x[:1], x]), np.vstack([0 * z[:1], z])

    def step(i: int, j: int) -> tuple[float, ...]:
        pair = gap(x[i + 1], z[j + 1]) + gap(x[i], z[j]) + 2 * nu * abs(i - j)
        return pair, gap(x[i + 1], x[i]) + nu + lmbda, gap(z[j + 1], z[j]) + nu + lmbda

    return cheapest(len(x) - 1, len(z) - 1, corner, step)


def edr(x: Points, z: Points, epsilon: float | None) -> float:
    limit = max(x.std(), z.std()) / 4 if epsilon is None else epsilon

    def step(i: int, j: int) -> tuple[float, ...]:
        return float(gap(x[i], z[j]) >= limit), 1.0, 1.0

    return cheapest(len(x), len(z), lambda i, j: 0.0, step) / max(len(x), len(z))


def lcss(x: Points, z: Points, epsilon: float) -> float:
    L = np.zeros((len(x) + 1, len(z) + 1))
    for i, a in enumerate(x):
        for j, b in enumerate(z):
            longer = max(L[i, j + 1], L[i + 1, j])
            L[i + 1, j + 1] = L[i, j] + 1 if gap(a, b) <= epsilon else longer
    return 1 - float(L[-1, -1]) / min(len(x), len(z))


DEFINITIONS: list[tuple[SeriesDistance, Function]] = [
    (DTW(), dtw),
    (DerivativeDTW(), lambda x, z: dtw(slopes(x), slopes(z))),
    (WeightedDTW(g=0.4), partial(dtw, weight=lambda k, L: 1 / (1 + np.exp(-0.4 * (k - L / 2))))),
    (AmercedDTW(penalty=0.3), partial(amerced, penalty=0.3)),
    (ShapeDTW(reach=2), lambda x, z: dtw(stretches(x, 2), stretches(z, 2))),
    (MSM(c=0.3), partial(msm, c=0.3)),
    (MSM(c=0.3, independent=False), partial(msm_at_once, c=0.3)),
    (ERP(), partial(erp, g=0.0)),
    (ERP(g=-0.7), partial(erp, g=-0.7)),
    (TWE(nu=0.1, lmbda=0.4), partial(twe, nu=0.1, lmbda=0.4)),
    (EDR(epsilon=0.8), partial(edr, epsilon=0.8)),
    (EDR(), partial(edr, epsilon=None)),
    (LCSS(epsilon=0.8), partial(lcss, epsilon=0.8)),
]
KERNELS = [kernel for kernel, _ in DEFINITIONS]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("kernel", "definition"), DEFINITIONS, ids=lambda v: str(v)[:20])
def test_equals_its_definition(kernel: SeriesDistance, definition: Function, channels: int) -> None:
    A, B = ragged(6, channels, seed=1), ragged(7, channels, seed=2)
    D = kernel(A, B)
    assert (D.shape, D.dtype) == ((6, 7), np.dtype(np.float64))
    np.testing.assert_allclose(D, matrix(definition, A, B), rtol=1e-12, atol=1e-14)


LIBRARY: list[tuple[SeriesDistance, str, dict[str, Any]]] = [
    (DTW(), "dtw_distance", {}),
    (DerivativeDTW(), "ddtw_distance", {}),
    (WeightedDTW(g=0.4), "wdtw_distance", {"g": 0.4}),
    (AmercedDTW(penalty=0.4), "adtw_distance", {"warp_penalty": 0.4}),
    (ShapeDTW(reach=4), "shape_dtw_cost_matrix", {"reach": 4}),
    (MSM(c=0.3), "msm_distance", {"c": 0.3}),
    (MSM(c=0.3, independent=False), "msm_distance", {"c": 0.3, "independent": False}),
    (TWE(nu=0.1, lmbda=0.4), "twe_distance", {"nu": 0.1, "lmbda": 0.4}),
    (EDR(), "edr_distance", {}),
    (EDR(epsilon=0.8), "edr_distance", {"epsilon": 0.8}),
    (LCSS(epsilon=0.8), "lcss_distance", {"epsilon": 0.8}),
]


def pairs_for(channels: int, equal: bool) -> tuple[list[Points], list[Points]]:
    shortest = 25 if equal else 3
    return (
        ragged(6, channels, seed=3, shortest=shortest, longest=25),
        ragged(7, channels, seed=4, shortest=shortest, longest=25),
    )


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("window", [None, 0.1, 0.0])
@pytest.mark.parametrize(("kernel", "name", "arguments"), LIBRARY, ids=lambda v: str(v)[:20])
def test_equals_aeon_pair_by_pair(
    kernel: SeriesDistance,
    name: str,
    arguments: dict[str, Any],
    window: float | None,
    channels: int,
    equal: bool,
) -> None:
    distance = getattr(pytest.importorskip("aeon.distances"), name)
    A, B = pairs_for(channels, equal)

    def one(x: Points, z: Points) -> float:
        found = distance(x.T, z.T, window=window, **arguments)
        return float(found[-1, -1] if isinstance(found, np.ndarray) else found)

    D = clone(kernel).set_params(window=window)(A, B)
    np.testing.assert_allclose(D, matrix(one, A, B), rtol=1e-12)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("window", [None, 0.1, 0.0])
def test_erp_equals_aeon_on_series_that_begin_with_a_gap(
    window: float | None, channels: int, equal: bool
) -> None:
    """Without it aeon charges a gap at the start for the whole series, against the definition."""
    distance = pytest.importorskip("aeon.distances").erp_distance
    A, B = pairs_for(channels, equal)
    g = np.array([0.5, -1.0, 0.2])[:channels]

    def one(x: Points, z: Points) -> float:
        return float(distance(*(np.vstack([0 * g, s - g]).T for s in (x, z)), window))

    np.testing.assert_allclose(ERP(window=window, g=g)(A, B), matrix(one, A, B), rtol=1e-12)
    np.testing.assert_allclose(ERP(g=g.tolist())(A, B), matrix(partial(erp, g=g), A, B))


numbers = st.integers(-3, 3).map(float) | st.floats(-10, 10, allow_subnormal=False)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(numbers, min_size=1, max_size=6), min_size=2, max_size=4))
def test_dtw_and_erp_of_any_lists_of_numbers(X: list[list[float]]) -> None:
    columns = [np.array(x)[:, None] for x in X]
    np.testing.assert_allclose(DTW()(X), matrix(dtw, columns, columns), rtol=1e-12, atol=1e-300)
    expected = matrix(partial(erp, g=1.0), columns, columns)
    np.testing.assert_allclose(ERP(g=1.0)(X), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("window", [0.0, 0.1, 0.3, 0.99, 1.0])
def test_a_window_is_a_share_of_the_length(window: float) -> None:
    X = list(np.random.default_rng(5).standard_normal((6, 10, 1)))
    expected = matrix(partial(dtw, band=int(window * 10)), X, X)
    np.testing.assert_allclose(DTW(window=window)(X), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_windows_leave_a_way_whatever_the_lengths(kernel: SeriesDistance) -> None:
    X = [*ragged(3, 1, 6, 3, 4), *ragged(3, 1, 7, 30, 50)]
    free = kernel(X)
    for window in (0.0, 0.05, 0.5):
        D = clone(kernel).set_params(window=window)(X)
        assert np.isfinite(D).all()
        assert (free * (1 - 1e-12) <= D).all()
    np.testing.assert_array_equal(clone(kernel).set_params(window=1.0)(X), free)


@pytest.mark.parametrize("window", [None, 0.2])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_exactly_symmetric_with_zero_self_distance(
    kernel: SeriesDistance, window: float | None
) -> None:
    kernel = clone(kernel).set_params(window=window)
    rng = np.random.default_rng(8)
    X = ragged(10, 2, seed=9, longest=15)
    X += [np.vstack([x, [[0.0, 1.0]]]).round() for x in ragged(10, 2, seed=10)]  # paths tie
    X += [X[4].copy(), rng.standard_normal((15, 2))]
    D = kernel(X, X)
    np.testing.assert_array_equal(D, D.T)
    assert not np.diag(D).any()
    assert D[4, 20] == 0.0
    np.testing.assert_array_equal(kernel(X), D)
    np.testing.assert_array_equal(kernel.symmetric(X), D)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(D))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_chunks_order_and_threads_change_no_bit(kernel: SeriesDistance) -> None:
    A, Z = ragged(20, 2, seed=11), ragged(9, 2, seed=12)
    check_pieces(kernel, A, Z)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_pickled_and_cloned_kernels_give_the_same(kernel: SeriesDistance) -> None:
    A, Z = ragged(4, 2, seed=13), ragged(5, 2, seed=14)
    expected = kernel.columns(Z)(A)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel.columns(Z)))(A), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(A, Z), expected)
    np.testing.assert_array_equal(clone(kernel)(A, Z), expected)
    assert clone(kernel).get_params() == kernel.get_params()


# z-normalisation


def by_hand(x: Points) -> Points:
    """Channel by channel in plain Python, with exact sums."""
    channels = []
    for values in x.T.tolist():
        mean = math.fsum(values) / len(values)
        scale = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
        channels.append([0.0 if min(values) == max(values) else (v - mean) / scale for v in values])
    return np.array(channels).T


def off_scale(n: int, channels: int, seed: int) -> list[Points]:
    """Series whose means and scales differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    X = ragged(n, channels, seed)
    return [x * 10.0 ** rng.uniform(-3, 3) + rng.normal(scale=2.0, size=channels) for x in X]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_znormalize_does_as_series_that_were_normalized_by_hand(
    kernel: SeriesDistance, channels: int
) -> None:
    """Means that are a thousand times the scale cost three digits of sixteen."""
    A, B = off_scale(6, channels, seed=31), off_scale(7, channels, seed=32)
    expected = kernel([by_hand(a) for a in A], [by_hand(b) for b in B])
    inside = clone(kernel).set_params(znormalize=True)
    np.testing.assert_allclose(inside(A, B), expected, rtol=1e-9, atol=1e-10)
    assert not np.allclose(inside(A, B), kernel(A, B), rtol=1e-3)
    np.testing.assert_array_equal(inside(A, A), inside(A))
    turned = clone(inside).set_params(channels_first=True)
    np.testing.assert_array_equal(turned([a.T for a in A], [b.T for b in B]), inside(A, B))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_without_znormalize_series_are_taken_to_the_bit(kernel: SeriesDistance) -> None:
    assert kernel.znormalize is False
    X = off_scale(4, 2, seed=33)
    for x, packed in zip(X, kernel.packed(X).items, strict=True):
        np.testing.assert_array_equal(packed, x)
    np.testing.assert_array_equal(kernel(X), clone(kernel).set_params(znormalize=False)(X))


def test_znormalized_series_have_mean_zero_and_scale_one() -> None:
    """Powers of two change no bit, and neither size nor a constant leads out of the numbers."""
    rng = np.random.default_rng(34)
    x = rng.normal([0.0, 5.0, -9.0], size=(50, 3))
    z = znormalized(x)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=50 * 9 * np.finfo(float).eps)
    np.testing.assert_allclose(z.std(axis=0), 1.0, rtol=1e-14)
    for exponent in (-1000, 900):
        np.testing.assert_array_equal(znormalized(np.ldexp(x, exponent)), z)
    mixed = np.column_stack([np.full(10, 0.1), np.zeros(10), np.arange(10.0)])
    assert (znormalized(mixed)[:, :2] == 0.0).all()
    assert znormalized(mixed)[:, 2].std() == pytest.approx(1.0, rel=1e-15)
    assert znormalized(np.array([[7.0]])).tolist() == [[0.0]]


def test_znormalized_series_are_of_the_type_that_was_compiled() -> None:
    X = off_scale(5, 2, seed=35)
    DTW()(X)
    DTW(znormalize=True)(X)
    assert len(_elastic.row_of(_elastic.warp).signatures) == 1


def test_znormalize_through_an_estimator() -> None:
    X, y = waves(24, seed=36)
    scales = np.random.default_rng(37).uniform(0.1, 10.0, (24, 2))
    shifted = [a * x + b for x, (a, b) in zip(X, scales, strict=True)]
    model = KreinRidgeClassifier("dtw", kernel_params={"znormalize": True}, random_state=0)
    plain, moved = clone(model).fit(X, y), clone(model).fit(shifted, y)
    np.testing.assert_allclose(
        plain.kernel_([X[0]], X), moved.kernel_([shifted[0]], shifted), rtol=1e-9, atol=1e-12
    )
    assert moved.score(shifted, y) == 1.0


# What a series may be


def test_any_sequence_of_real_arrays_is_taken() -> None:
    X = ragged(5, 2, seed=15)
    objects = np.empty(5, dtype=object)
    objects[:] = X
    expected = DTW()(X)
    np.testing.assert_array_equal(DTW()(objects), expected)
    np.testing.assert_array_equal(DTW()(tuple(x.tolist() for x in X)), expected)
    np.testing.assert_array_equal(DTW()([np.asfortranarray(x) for x in X]), expected)
    np.testing.assert_array_equal(DTW(channels_first=True)([x.T for x in X]), expected)
    for x in X:
        x.flags.writeable = False
    np.testing.assert_array_equal(DTW()(X, X), expected)
    assert len(_elastic.row_of(_elastic.warp).signatures) == 1  # compiled for one type only


def test_one_channel_may_go_without_its_dimension() -> None:
    X = ragged(5, 1, seed=16)
    flat = [x[:, 0] for x in X]
    expected = DTW()(X)
    for same in (flat, [x.tolist() for x in flat], pd.Series(flat), [pd.Series(x) for x in flat]):
        np.testing.assert_array_equal(DTW()(same), expected)
    np.testing.assert_array_equal(DTW(channels_first=True)(flat), expected)
    np.testing.assert_array_equal(DTW()(pl.Series([x.tolist() for x in flat])), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool, ">f8"])
def test_series_of_equal_length_may_be_one_array(dtype: Any) -> None:
    X = np.random.default_rng(17).integers(0, 4, (6, 8)).astype(dtype)
    expected = DTW()([x.astype(float)[:, None] for x in X])
    np.testing.assert_array_equal(DTW()(X), expected)
    np.testing.assert_array_equal(DTW()(X[:, :, None]), expected)
    np.testing.assert_array_equal(DTW(channels_first=True)(X[:, None, :]), expected)


def waves(n: int, seed: int) -> tuple[list[Points], Any]:
    """Sines of a half and of a whole period, shifted, of unequal length."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    t = [np.linspace(0.0, 1.0, length) + rng.uniform(0, 0.1) for length in rng.integers(9, 16, n)]
    return [np.sin(np.pi * (1 + k) * u) for k, u in zip(y, t, strict=True)], y


def test_every_container_through_an_estimator() -> None:
    X, y = waves(20, seed=18)
    new, truth = waves(10, seed=19)
    model = KreinRidgeClassifier(kernel="dtw", kernel_params={"window": 0.3}, random_state=0)
    model.fit(X, y)
    expected = model.decision_function(new)
    np.testing.assert_array_equal(model.predict(new), truth)
    objects = np.empty(20, dtype=object)
    objects[:] = X
    lists = [x.tolist() for x in X]
    for same in (objects, lists, pd.Series(X), pl.Series(lists)):
        np.testing.assert_array_equal(clone(model).fit(same, y).decision_function(new), expected)
    assert model.kernel_.is_dissimilarity


def test_a_table_of_series_through_an_estimator() -> None:
    rng = np.random.default_rng(20)
    y = np.repeat([0, 1], 10)
    X = np.sin(np.linspace(0, np.pi, 12) * (1 + y[:, None])) + 0.1 * rng.standard_normal((20, 12))
    model = KreinRidgeClassifier(kernel="msm", random_state=0).fit(X, y)
    listed = clone(model).fit(list(X), y)
    np.testing.assert_array_equal(model.decision_function(X), listed.decision_function(list(X)))
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("kernel", [DTW(window=0.3), TWE()], ids=str)
def test_precomputed_equals_the_kernel_through_fit_and_predict(kernel: SeriesDistance) -> None:
    (X, y), (new, _) = waves(24, seed=21), waves(9, seed=22)
    model = KreinRidgeClassifier(kernel=kernel, random_state=0).fit(X, y)
    given = KreinRidgeClassifier(kernel="precomputed_dissimilarity", random_state=0)
    given.fit(kernel(X), y)
    np.testing.assert_allclose(
        given.decision_function(kernel(new, X)), model.decision_function(new), rtol=1e-12
    )


def test_names_give_dissimilarities_of_objects() -> None:
    names = {
        "dtw": DTW,
        "ddtw": DerivativeDTW,
        "derivative_dtw": DerivativeDTW,
        "wdtw": WeightedDTW,
        "adtw": AmercedDTW,
        "shape_dtw": ShapeDTW,
        "msm": MSM,
        "erp": ERP,
        "twe": TWE,
        "edr": EDR,
        "lcss": LCSS,
    }
    for name, kind in names.items():
        kernel = resolve(name, {"window": 0.1})
        assert type(kernel) is kind
        assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), True, True)


# What it may not be


GOOD = [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            np.zeros((2, 2, 2)),
            r"object 1 \(of 3\) is an array of shape \(2, 2, 2\) and dtype float",
        ),
        ([], r"object 1 .* is list \[\]; a time series is an array of numbers, not empty"),
        (np.zeros((0, 1)), r"object 1 .* shape \(0, 1\).*\(length,\) or \(length, channels\)"),
        (3.5, r"object 1 .* is float 3.5"),
        (np.zeros(3, dtype=complex), r"object 1 .* dtype complex128"),
        (np.zeros(3, dtype="datetime64[s]"), r"object 1 .* dtype datetime64"),
        ("0 1 2", r"object 1 .* is str '0 1 2'"),
        ([1.0, None, 2.0], r"object 1 .* is list \[1.0, None, 2.0\].* none missing"),
        ([[1.0, 2.0], [3.0]], r"object 1 .* is list"),
        (None, r"object 1 .* is NoneType None"),
        (np.zeros((3, 2)), r"object 1 \(of 3\) has 2 channels, the others have 1; all series"),
        ([1.0, np.nan], r"object 1 \(of 3\) is nan at time 1 in channel 0; .*fill the gap"),
        ([-np.inf, 0.0], r"object 1 \(of 3\) is -inf at time 0 in channel 0"),
    ],
)
def test_what_is_no_series_is_named(bad: Any, message: str) -> None:
    X = [GOOD, bad, GOOD]
    rng = np.random.default_rng(0)
    for call in (lambda: DTW()(X), lambda: DTW()(X, [GOOD]), lambda: DTW().fit(X, rng)):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=message):
        KreinRidgeClassifier(kernel="dtw").fit(X, [0, 1, 0])


def test_new_series_must_have_as_many_channels() -> None:
    with pytest.raises(ValueError, match=r"object 0 \(of 1\) has 2 channels, the others have 1"):
        DTW().columns([GOOD])([np.zeros((3, 2))])
    with pytest.raises(ValueError, match=r"has 3 channels.*\(channels, length\) as channels_first"):
        DTW(channels_first=True)([np.zeros((2, 3)), np.zeros((3, 2))])


def test_slopes_need_three_points() -> None:
    with pytest.raises(ValueError, match=r"object 1 \(of 2\) has 2 points; .* at least 3"):
        DerivativeDTW()([GOOD, [0.0, 1.0]])


def test_a_constant_series_needs_an_epsilon() -> None:
    with pytest.raises(ValueError, match=r"object 1 \(of 2\) is constant, 2.0: epsilon=None"):
        EDR()([GOOD, [2.0, 2.0]])
    assert EDR(epsilon=0.1)([[2.0, 2.0]], [[2.0, 2.0]]) == 0.0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (DTW(window=5), "window=5 is not allowed; pass a share of the length from 0 to 1, or None"),
        (TWE(window=-0.1), "window=-0.1 is not allowed"),
        (DTW(window=True), "window=True is not allowed"),
        (DTW(window="0.1"), "window='0.1' is not allowed"),
        (AmercedDTW(penalty=-1), "penalty=-1 is not allowed; pass a finite number, 0 or more"),
        (WeightedDTW(g=-1), "g=-1 is not allowed; pass a finite number, 0 or more"),
        (ShapeDTW(reach=1.5), "reach=1.5 is not allowed; pass a whole number, 0 or more"),
        (ShapeDTW(reach=-1), "reach=-1 is not allowed"),
        (MSM(c=np.inf), "c=inf is not allowed"),
        (TWE(nu=None), "nu=None is not allowed"),
        (TWE(lmbda=-1.0), "lmbda=-1.0 is not allowed"),
        (EDR(epsilon=0.0), "epsilon=0.0 is not allowed; pass a positive number, or None"),
        (LCSS(epsilon=np.nan), "epsilon=nan is not allowed"),
        (ERP(g="zero"), "g='zero' is not allowed; pass a finite number, or one a channel"),
        (ERP(g=[0.0, 1.0]), r"g=\[0.0, 1.0\] has shape \(2,\), the series have 1 channels"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_named(kernel: SeriesDistance, message: str) -> None:
    rng = np.random.default_rng(0)
    for call in (lambda: kernel([GOOD], [GOOD]), lambda: kernel.fit([GOOD], rng)):
        with pytest.raises(ValueError, match=message):
            call()


def test_values_whose_squares_overflow_are_no_distances() -> None:
    X = [[1e200, -1e200, 0.0], [0.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 5.0, 2.0]]
    with pytest.raises(ValueError, match="inf"):
        KreinRidgeClassifier(kernel="dtw").fit(X, [0, 1, 0, 1])


def test_aeon_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "aeon"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "aeon", None)
    assert DTW()([GOOD], [GOOD[::-1]]) == 8.0
    assert ERP()([GOOD], [GOOD[::-1]]) == 2.0


FIRST_USE = """
from kreinlearn.kernels._elastic import gaps, row_of, warp
from kreinlearn.kernels.series import DTW, ERP
values = [float(kernel([[1.0, 2.0, 4.0]], [[1.0, 3.0]])[0, 0]) for kernel in (DTW(), ERP())]
rows = [row_of(steps) for steps in (warp, gaps)]
print(values, [sum(row.stats.cache_hits.values()) for row in rows])
"""


def test_compiled_rows_are_cached_for_the_next_process_by_distance(tmp_path: Path) -> None:
    """DTW is (1 - 1)^2 + (2 - 1)^2 + (4 - 3)^2, and ERP |1 - 1| + |2 - 0| + |4 - 3|."""

    def said() -> str:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", FIRST_USE]
        return subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300
        ).stdout.strip()

    assert said() == "[2.0, 3.0] [0, 0]"
    assert said() == "[2.0, 3.0] [1, 1]"
