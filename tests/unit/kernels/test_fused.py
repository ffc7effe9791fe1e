"""The fused loops against numpy, element by element; exp against extended precision, in ulps."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from kreinlearn.kernels import _fused

RNG = np.random.default_rng(0)


def fused(function, values, *args):
    block = np.array(values, float).reshape(1, -1)
    function(block, *args)
    return block[0]


def exp(values):
    return fused(_fused.gaussians, -np.asarray(values), (1.0,), (1.0,))


def ulps(got, truth):
    """|got - truth| in units of the spacing of got's type at the truth."""
    spacing = np.spacing(np.abs(truth).astype(got.dtype))
    return np.abs(got.astype(np.longdouble) - truth) / spacing.astype(np.longdouble)


def test_exp_is_within_two_ulps_over_the_whole_range():
    lowest = -746.0
    edges = np.concatenate([[0.0, lowest], np.log(2) * (np.arange(-150, 0) + 0.5)])
    near = np.concatenate([np.nextafter(edges, -np.inf), np.nextafter(edges, 0)])
    drawn = np.concatenate(
        [RNG.uniform(lowest, 0, 300_000), -(10 ** RNG.uniform(-320, 2, 100_000))]
    )
    x = np.concatenate([edges, near, drawn])
    truth = np.exp(x.astype(np.longdouble))
    assert ulps(exp(x), truth).max() <= (2.0 if np.finfo(np.longdouble).eps < 1e-17 else 2.5)


def test_exp_underflows_gradually_and_keeps_the_exact_cases():
    info = np.finfo(float)
    x = np.log(np.longdouble(info.smallest_normal)) - np.arange(1, info.nmant, dtype=np.longdouble)
    x = x[x > np.log(np.longdouble(info.smallest_subnormal))].astype(float)
    subnormal = exp(x)
    assert len(x) > 10
    assert (subnormal > 0).all()
    assert (subnormal < info.smallest_normal).all()
    assert ulps(subnormal, np.exp(x.astype(np.longdouble))).max() <= 1
    special = exp([0.0, -0.0, np.nan, -np.inf, -1e30, -750.0])
    np.testing.assert_array_equal(special, np.array([1, 1, np.nan, 0, 0, 0]))


@pytest.mark.parametrize("size", [1, 3, 8, 511, 512, 513, 1025])
@pytest.mark.parametrize("terms", [1, 2, 3, 5])
def test_gaussians(size, terms):
    d2 = RNG.uniform(0, 30, size)
    weights, rates = RNG.standard_normal(terms), RNG.uniform(0.1, 2, terms)
    expected = np.exp(-d2[:, None] * rates) @ weights
    got = fused(_fused.gaussians, d2, weights, rates)
    np.testing.assert_allclose(got, expected, rtol=0, atol=200 * np.finfo(float).eps)


CASES = {
    "delta_gauss": (_fused.delta_gauss, (0.3, 4.0), lambda v: np.exp(-0.3 * v) - np.exp(-1.2 * v)),
    "ratio 2.5": (_fused.delta_gauss, (0.4, 2.5), lambda v: np.exp(-0.4 * v) - np.exp(-v)),
    "epanechnikov": (_fused.epanechnikov, (0.3, 1), lambda v: np.maximum(0, 1 - 0.3 * v)),
    "squared": (_fused.epanechnikov, (0.3, 2), lambda v: np.maximum(0, 1 - 0.3 * v) ** 2),
    "cubed": (_fused.epanechnikov, (0.3, 3), lambda v: np.maximum(0, 1 - 0.3 * v) ** 3),
    "fourth": (_fused.epanechnikov, (0.3, 4), lambda v: np.maximum(0, 1 - 0.3 * v) ** 4),
    "root": (_fused.epanechnikov, (0.3, 0.5), lambda v: np.sqrt(np.maximum(0, 1 - 0.3 * v))),
    "multiquadric": (_fused.multiquadric, (0.7,), lambda v: np.sqrt(1 + v / 0.7)),
}


@pytest.mark.parametrize("name", CASES)
def test_pass_over_squared_distances(name):
    function, args, definition = CASES[name]
    d2 = RNG.uniform(0, 12, 1001)
    got = fused(function, d2, *args)
    expected = definition(d2)
    tolerance = 20 * np.finfo(float).eps * np.abs(expected).max()
    if name == "root":  # its slope is infinite at the edge of the support
        tolerance = np.sqrt(tolerance)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_negative_rounding_counts_as_zero_and_nan_stays(name):
    function, args, definition = CASES[name]
    got = fused(function, [-1e-3, 0.0, np.nan], *args)
    assert got[0] == got[1]
    np.testing.assert_allclose(got[1], definition(0.0), atol=2 * np.finfo(float).eps)
    assert np.isnan(got[2])


def test_tanh():
    u = np.concatenate([RNG.uniform(-4, 4, 1000), [0.0, 1.0, -30.0, 35.0, 1e30, -1e30]])
    got = fused(_fused.tanh, u, -1.0)
    expected = np.tanh(u - 1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=4 * np.finfo(float).eps)
    np.testing.assert_array_equal(got[-4:], [-1, 1, 1, -1])
    assert np.isnan(fused(_fused.tanh, [np.nan], 0.0)).all()


@pytest.mark.parametrize(("b", "d", "m"), [(3, 1, 1), (2, 4, 255), (5, 7, 256), (4, 10, 600)])
def test_truncated_l1(b, d, m):
    A, Z = RNG.standard_normal((b, d)), RNG.standard_normal((m, d))
    distance = np.abs(A[:, None, :] - Z).sum(axis=2)
    radius = float(np.median(distance))
    out = np.full((b, m), np.nan)
    _fused.truncated_l1(A, np.ascontiguousarray(Z.T), radius, out)
    expected = np.maximum(0, radius - distance)
    np.testing.assert_allclose(out, expected, rtol=0, atol=10 * d * np.finfo(float).eps)


def test_a_rate_beyond_float64_is_refused():
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"kernel produced inf.*float64"),
    ):
        _fused.delta_gauss(np.zeros((2, 2)), 1e308, 5.0)


def test_multiquadric_of_a_tiny_width_does_not_overflow():
    assert fused(_fused.multiquadric, [1e30], 1e-300)[0] == pytest.approx(1e165)


PROBE = """
import numpy as np
from kreinlearn.kernels import _fused
block = np.full((1, 3), 2.0)
_fused.gaussians(block, (1.0,), (0.5,))
print(np.allclose(block, np.exp(-1)), sum(_fused._gauss1.stats.cache_hits.values()))
"""


def probe(**environment):
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.split() or done.stderr


def test_compiled_loops_are_cached_for_the_next_process(tmp_path):
    assert probe(NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "0"]
    assert probe(NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "1"]


@pytest.mark.skipif(
    not hasattr(numba.config, "CACHE_LOCATOR_CLASSES"), reason="this numba always finds a place"
)
def test_loops_compile_where_nothing_can_be_cached():
    assert probe(NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == ["True", "0"]
