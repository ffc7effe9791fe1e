"""Features by convolution against aeon's and against their definition, and the kernel they make."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kreinlearn import KreinClassifier, KreinRidgeClassifier, load
from kreinlearn.kernels import Convolutions, resolve
from kreinlearn.kernels.convolutions import FARTHEST, MOST, STEPS, TWOS, dilations_for
from kreinlearn.kernels.domains import Objects
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_pieces,
    check_symmetry,
)

RNG = np.random.default_rng
FEW = 84 * 11  # features


def walks(n: int, channels: int, seed: int, shortest: int = 30, longest: int = 60) -> list[Any]:
    """Random walks of any lengths, in whole steps: sums of nine of them are exact."""
    rng = RNG(seed)
    lengths = rng.integers(shortest, longest + 1, n)
    return [rng.integers(-8, 9, (k, channels)).cumsum(axis=0).astype(float) for k in lengths]


def fitted(X: Any, seed: int = 0, **params: Any) -> Convolutions:
    return Convolutions(**{"n_features": FEW, **params}).fit(X, RNG(seed))


def shares(kernel: Convolutions, X: Any) -> Any:
    return kernel.shares(kernel.check(X, 0, len(X), None).items)


# The definition


def convolved(x: Any, d: int, twos: Any, chosen: Any) -> Any:
    """x, padded with zeros, times the nine weights at distances d; added up over channels."""
    weights = np.full(9, -1.0)
    weights[list(twos)] = 2.0
    spread = np.zeros(8 * d + 1)
    spread[::d] = weights
    padded = np.pad(x, ((4 * d, 4 * d), (0, 0)))
    return sum(np.correlate(padded[:, c], spread, "valid") for c in np.flatnonzero(chosen))


def sums_of(kernel: Convolutions) -> Any:
    """(d, weights, channels, whether ends count, places of its biases) of every convolution."""
    dilations, many = np.unique(kernel.dilations_, return_counts=True)
    start = 0
    for j, (d, n_biases) in enumerate(zip(dilations, many, strict=True)):
        for k, twos in enumerate(TWOS):
            here = slice(start, start + n_biases)
            yield d, twos, kernel.channels_[84 * j + k], (j + k) % 2 == 0, here
            start += n_biases


@pytest.mark.parametrize("channels", [1, 3])
def test_features_are_shares_of_times_above_a_bias(channels: int) -> None:
    X = walks(6, channels, seed=1)
    kernel = fitted(X, n_features=84 * 40)
    new = [*X, *walks(3, channels, seed=2, shortest=1, longest=90)]
    for x, features in zip(new, shares(kernel, new), strict=True):
        for d, twos, chosen, ends, here in sums_of(kernel):
            C = convolved(x, d, twos, chosen)
            inside = C if ends or len(x) <= 8 * d else C[4 * d : len(x) - 4 * d]
            expected = [(inside > bias).mean() for bias in kernel.biases_[here]]
            assert_allclose(features[here], expected, rtol=1e-15)


@pytest.mark.parametrize("channels", [1, 3])
def test_biases_are_quantiles_of_series_of_the_fit(channels: int) -> None:
    X = walks(5, channels, seed=3)
    kernel = fitted(X)
    levels = np.modf(np.arange(1, FEW + 1) * (1 + np.sqrt(5)) / 2)[0]
    drawn = set()
    for d, twos, chosen, _, here in sums_of(kernel):
        outputs = [convolved(x, d, twos, chosen) for x in X]
        gaps = [np.ptp(np.quantile(C, levels[here]) - kernel.biases_[here]) for C in outputs]
        assert min(gaps) < 1e-9
        drawn.add(int(np.argmin(gaps)))
    assert drawn == set(range(5))


@pytest.mark.parametrize(("longest", "n"), [(1, 5), (9, 40), (17, 7), (100, 119), (5000, 119)])
def test_dilations_grow_to_the_longest_series(longest: int, n: int) -> None:
    d = dilations_for(longest, n)
    assert len(d) == n
    assert d[0] == 1
    assert (np.diff(d) >= 0).all()
    assert 8 * d[-1] < max(longest, 9)  # nine points fit,
    assert 8 * (d[-1] + 2) >= longest  # but for rounding down, no more would
    assert len(np.unique(d)) <= 32


@pytest.mark.parametrize("channels", [1, 4, 12])
@pytest.mark.parametrize("whole", [True, False])
def test_features_are_those_of_aeon(channels: int, whole: bool) -> None:
    """Whole numbers are exact in single precision; others may round across a bias, hardly ever."""
    package = pytest.importorskip("aeon.transformations.collection.convolution_based")
    X = RNG(4).normal(size=(8, channels, 60)).cumsum(axis=2)
    X = np.round(8 * X) if whole else X
    theirs = package.MiniRocket(n_kernels=9996, random_state=0).fit(X)
    how_many, which, dilations, n_biases, biases = theirs.parameters
    kernel = Convolutions(channels_first=True)
    kernel.dilations_ = np.repeat(dilations.astype(np.intp), n_biases)
    kernel.channels_ = np.zeros((len(how_many), channels), dtype=bool)
    kernel.channels_[np.repeat(np.arange(len(how_many)), how_many), which] = True
    kernel.biases_ = biases.astype(np.float64)
    apart = np.abs(shares(kernel, list(X)) - theirs.transform(X))
    rounding = np.finfo(np.float32).eps
    if whole:
        assert apart.max() < rounding
    assert np.mean(apart > rounding) < 1e-4


@pytest.mark.parametrize("channels", [1, 3])
def test_k_is_the_mean_product_of_standardised_features(channels: int) -> None:
    """Each feature is rounded by up to h: products by h (|f(x)| + |f(z)| + h), and so their mean.

    The mean of |f(x)| is at most k(x, x)^1/2.
    """
    X, new = walks(20, channels, seed=5), walks(9, channels, seed=6, shortest=5)
    kernel = fitted(X)
    F, G = shares(kernel, X), shares(kernel, new)
    varies = np.ptp(F, axis=0) > 0
    assert_array_equal(kernel.scale_ > 0, varies)
    mean, scale = F[:, varies].mean(axis=0), F[:, varies].std(axis=0)
    F, G = (F[:, varies] - mean) / scale, (G[:, varies] - mean) / scale
    assert (np.abs(G) < FARTHEST / STEPS).all()
    h = 0.5 / STEPS + 1e-12
    size_x, size_z = (np.sqrt(np.mean(f**2, axis=1)) for f in (G, F))
    bound = h * (size_x[:, None] + size_z + h)
    assert (np.abs(kernel(new, X) - G @ F.T / varies.sum()) <= bound).all()
    assert kernel.diagonal(X).mean() == pytest.approx(1.0, abs=1e-3)  # standardised


# As a kernel


def test_the_name() -> None:
    kernel = resolve("convolutions", {"n_features": 168})
    assert isinstance(kernel, Convolutions)
    assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), False, True)
    assert Convolutions().n_features == 9996


@pytest.mark.parametrize("channels", [1, 2])
def test_blocks_threads_and_copies_change_no_bit(channels: int) -> None:
    A, Z = walks(20, channels, seed=7), walks(9, channels, seed=8)
    kernel = fitted(A)
    check_symmetry(kernel, [*A, np.array(A[3]), walks(1, channels, seed=9, longest=500)[0]])
    check_pieces(kernel, A, Z)
    check_copies(kernel, A, Z)


def test_values_that_are_far_off_change_no_bit_either() -> None:
    """A feature that is the same in nearly all series of the fit may be far off in another one."""
    calm = [np.sin(np.arange(40) / 3 + 1e-3 * s) for s in range(30)]
    wild = [1e30 * x for x in walks(8, 1, seed=10)]
    kernel = fitted(calm)
    standardised = kernel.packed_columns(wild).values
    assert np.abs(standardised).max() == FARTHEST
    assert (np.abs(kernel.packed_columns(calm).values) <= np.sqrt(29) * STEPS + 1).all()
    check_symmetry(kernel, calm + wild)
    check_pieces(kernel, calm + wild, wild)


def test_all_sums_are_exact_in_double_precision() -> None:
    assert MOST * FARTHEST**2 < 2.0**53
    assert FARTHEST.is_integer()
    assert np.sqrt(2048 - 1) <= FARTHEST / STEPS  # of so many numbers none is farther off


def test_a_seed_gives_the_same_biases() -> None:
    X = walks(12, 2, seed=11)
    one, again, other = fitted(X, 5), fitted(X, 5), fitted(X, 6)
    for name in ("dilations_", "channels_", "biases_", "mean_", "scale_"):
        assert_array_equal(getattr(one, name), getattr(again, name))
    assert (one.biases_ != other.biases_).any()
    assert (one.channels_ != other.channels_).any()


def test_up_to_nine_channels_are_drawn_most_often_few() -> None:
    drawn = fitted(walks(3, 40, seed=12), n_features=84 * 32).channels_.sum(axis=1)
    assert set(drawn) == set(range(1, 10))
    assert np.mean(drawn == 1) == pytest.approx(np.log(2) / np.log(10), abs=0.08)
    assert set(fitted(walks(3, 2, seed=13)).channels_.sum(axis=1)) == {1, 2}


def test_channels_may_come_first() -> None:
    A = walks(5, 2, seed=14)
    turned = fitted([a.T for a in A], channels_first=True)
    assert_array_equal(turned([a.T for a in A]), fitted(A)(A))


def test_znormalized_series_have_neither_level_nor_scale() -> None:
    A, B = walks(9, 2, seed=15), walks(4, 2, seed=16)
    kernel = fitted(A, znormalize=True)
    assert_array_equal(kernel([4 * b for b in B], A), kernel(B, A))
    assert_allclose(kernel([1e45 * b - 3e45 for b in B], A), kernel(B, A), atol=0.02)
    normal = [(a - a.mean(axis=0)) / a.std(axis=0) for a in A]
    assert_allclose(kernel(A), fitted(normal)(normal), atol=0.02)  # rounding may cross a bias


def test_series_of_any_lengths() -> None:
    """Shorter than nine points and longer than all of the fit, there and when predicting."""
    short, long = walks(10, 1, seed=17, shortest=1, longest=8), walks(10, 1, seed=18)
    for kernel in (fitted(short), fitted(long), fitted(short + long)):
        K = kernel(short + long)
        assert np.isfinite(K).all()
        assert np.linalg.eigvalsh(K).min() > -1e-9 * np.abs(K).max()
    assert_array_equal(fitted(short).dilations_, 1)


def test_constant_series() -> None:
    flat = [np.full(k, c) for k, c in ((30, 0.1), (20, 0.0), (40, 1e6 / 3))]
    kernel = fitted(walks(10, 1, seed=19) + flat)
    assert np.isfinite(kernel(flat)).all()
    levels = shares(kernel, [np.full(60, c) for c in (0.1, 0.7, 1e6 / 3, 0.0)])
    for d, _, _, ends, here in sums_of(kernel):
        if not ends and 8 * d < 60:  # a level is no pattern, whatever it rounds to
            assert_array_equal(levels[:3, here], levels[[3, 3, 3], here])
    nothing = fitted([np.zeros(30)] * 4)
    assert not nothing.scale_.any()
    assert_array_equal(nothing(flat), np.zeros((3, 3)))


def test_only_evenly_spaced_series_are_fitted_to() -> None:
    """The same whether they come from all of X or from those that Dask sends."""
    X = walks(2 * 2048 - 1, 1, seed=20, shortest=9, longest=12)
    whole, sent = (fitted(rows, n_features=84) for rows in (X, X[::2]))
    for name in ("dilations_", "biases_", "mean_", "scale_"):
        assert_array_equal(getattr(whole, name), getattr(sent, name))


# In an estimator


def waves(n: int, seed: int) -> tuple[list[Any], Any]:
    """Sine waves of two periods, at any phase."""
    rng = RNG(seed)
    y = np.arange(n) % 2
    t = np.arange(50)
    return [np.sin(t / (3 + 2 * k) + rng.uniform(0, 6)) + 0.1 * rng.normal(size=50) for k in y], y


def test_an_estimator_does_as_with_the_matrix() -> None:
    (X, y), (new, truth) = waves(24, seed=21), waves(30, seed=22)
    model = KreinRidgeClassifier("convolutions", random_state=0).fit(X, y)
    kernel = model.kernel_
    by_matrix = KreinRidgeClassifier("precomputed", random_state=0).fit(kernel(X), y)
    f = model.decision_function(new)
    assert_allclose(f, by_matrix.decision_function(kernel(new, X)), rtol=0, atol=1e-12)
    assert (model.predict(new) == truth).all()
    array = clone(model).fit(np.array(X), y)
    assert_array_equal(array.decision_function(np.array(new)), f)


def test_threads_and_the_number_of_new_series_change_no_bit() -> None:
    (X, y), (new, _) = waves(60, seed=23), waves(9, seed=24)
    given = {"kernel": "convolutions", "kernel_params": {"n_features": FEW}, "random_state": 0}
    one, two = (KreinRidgeClassifier(**given, landmarks=20, n_jobs=k).fit(X, y) for k in (1, 2))
    assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert_array_equal(one.decision_function(new), two.decision_function(new))


@pytest.mark.parametrize("landmarks", ["auto", 20])
def test_a_saved_model_predicts_the_same(landmarks: Any, tmp_path: Path) -> None:
    (X, y), (new, _) = waves(40, seed=25), waves(15, seed=26)
    model = KreinClassifier("convolutions", landmarks=landmarks, random_state=0).fit(X, y)
    model.save(tmp_path / "waves.krein")
    again = load(tmp_path / "waves.krein")
    assert_array_equal(again.predict(new), model.predict(new))
    assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_aeon_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "aeon"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "aeon", None)
    X, y = waves(20, seed=27)
    assert KreinRidgeClassifier("convolutions", random_state=0).fit(X, y).score(X, y) == 1.0


# What it may not be


@pytest.mark.parametrize("n_features", [83, 0, -84, MOST + 1, 1000.0, "all", None, True])
def test_numbers_of_features_that_are_none(n_features: Any) -> None:
    message = r"n_features=.* is not allowed; pass a whole number from 84 to 65536"
    with pytest.raises(ValueError, match=message):
        fitted(walks(3, 1, seed=28), n_features=n_features)


def test_numbers_of_features_are_rounded_down() -> None:
    assert len(fitted(walks(3, 1, seed=29), n_features=84 * 3 - 1).biases_) == 84 * 2


def test_biases_need_a_fit() -> None:
    for act in (lambda k: k([[0.0, 1.0]]), lambda k: k.columns([[0.0, 1.0]])):
        with pytest.raises(NotFittedError, match="biases are taken from series: fit the kernel"):
            act(Convolutions())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((30, 2)), r"has 2 channels, the others have 1; all series must have the same"),
        (np.r_[np.ones(20), np.nan], r"is nan at time 20 in channel 0; series must be finite"),
        (3.5, r"is float 3.5; a time series is an array of numbers"),
        ([], r"is list \[\]; a time series is an array of numbers, not empty"),
        ([1.0, -1e40, 2.0], r"has numbers of up to 1e\+40, convolutions take up to 3.4e\+38"),
    ],
)
def test_series_that_are_none_are_named(bad: Any, message: str) -> None:
    good = [x[:, 0] for x in walks(2, 1, seed=30)]
    check_bad_object(fitted(good), good, bad, message)


def test_new_series_have_the_channels_of_the_fit() -> None:
    kernel = fitted(walks(4, 2, seed=31))
    with pytest.raises(ValueError, match=r"object 0 \(of 3\) has 3 channels, the others have 2"):
        kernel(walks(3, 3, seed=32))
