"""The signed spectrum, its indefiniteness and its corrections, each by another route."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kreinlearn.solvers.spectrum import (
    CORRECTIONS,
    correct,
    indefiniteness_of,
    indefiniteness_of_matrix,
    power_of_two_scale,
    rank_rtol,
    signed_eigh,
)
from tests import oracles
from tests.cases import CASES, with_spectrum

Array = np.ndarray[Any, np.dtype[Any]]
EPS = oracles.EPS
SIZES = [1, 2, 3, 17, 60]
UNSCALED = [name for name in CASES if not name.startswith("near")]
POWERS = [*range(-300, 301, 50), -299, -1, 1, 299]  # of four


def case(name: str, n: int, seed: int = 0) -> tuple[Array, Array]:
    return CASES[name](n, np.random.default_rng([seed, n]))


def indefinite(n: int = 40, seed: int = 0) -> tuple[Array, Array]:
    """Well conditioned, with unlike positive and negative parts, so that no sign is spare."""
    rng = np.random.default_rng(seed)
    D = np.linspace(1.0, 3.0, n) * np.where(np.arange(n) % 3, 1.0, -1.0)
    return with_spectrum(D, rng)


def rows_of_new_objects(n: int, b: int = 7, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((b, n))


def relative_error(A: Array, B: Array) -> float:
    return oracles.one_norm(A - B) / oracles.one_norm(B)


# The table of cases


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", SIZES)
def test_table_is_what_it_says(name: str, n: int) -> None:
    K, true = case(name, n)
    assert np.array_equal(K, K.T)
    assert true.shape == (n,)
    assert np.all(np.diff(true) >= 0)
    found = np.linalg.eigvalsh(K)
    assert np.max(np.abs(found - true)) <= 10 * n * EPS * np.max(np.abs(true))


# The decomposition


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", SIZES)
def test_residual_and_orthogonality_ratios(name: str, n: int) -> None:
    K, _ = case(name, n)
    spectrum = signed_eigh(K, rtol=0.0)
    assert oracles.residual_ratio(K, spectrum.U, spectrum.D) < 60
    assert oracles.orthogonality_ratio(spectrum.U) < 60
    assert oracles.residual_ratio(K, spectrum.U, np.abs(spectrum.D) * spectrum.S) < 60


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", SIZES)
def test_eigenvalues_are_the_prescribed_ones(name: str, n: int) -> None:
    K, true = case(name, n)
    D = signed_eigh(K, rtol=0.0).D
    found = np.sort(np.concatenate([D, np.zeros(n - len(D))]))
    assert np.max(np.abs(found - true)) <= 10 * n * EPS * np.max(np.abs(true))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", SIZES)
def test_default_cut_off_leaves_what_is_above_rounding(name: str, n: int) -> None:
    K, true = case(name, n)
    spectrum = signed_eigh(K)
    top = np.max(np.abs(true))
    clearly_above = np.sum(np.abs(true) > 2 * rank_rtol(n) * top)
    above = np.sum(np.abs(true) > 0.5 * rank_rtol(n) * top)
    assert clearly_above <= len(spectrum.D) <= above
    assert spectrum.U.shape == (n, len(spectrum.D))
    assert np.all(np.abs(spectrum.S) == 1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", SIZES)
def test_order_signs_and_layout(name: str, n: int) -> None:
    K, _ = case(name, n)
    spectrum = signed_eigh(K, rtol=0.0)
    U, D = spectrum.U, spectrum.D
    size = np.abs(D)
    assert np.all(size[:-1] >= size[1:])
    tied = size[:-1] == size[1:]
    assert np.all(D[:-1][tied] >= D[1:][tied])
    assert np.array_equal(spectrum.S, np.where(D > 0, 1.0, -1.0))
    for u in U.T:
        largest = np.flatnonzero(np.abs(u) > (1 - 1e-6) * np.max(np.abs(u)))[0]
        assert u[largest] > 0
    assert U.flags.c_contiguous
    assert D.flags.c_contiguous
    assert U.dtype == D.dtype == np.float64


def test_positive_comes_first_in_an_exact_tie() -> None:
    spectrum = signed_eigh(np.diag([-2.0, 1.0, 2.0, -1.0]))
    assert spectrum.D.tolist() == [2.0, -2.0, 1.0, -1.0]
    assert np.array_equal(spectrum.U, np.eye(4)[:, [2, 0, 1, 3]])


def test_column_sign_ignores_rounding_among_equal_entries() -> None:
    # The eigenvector (1, -1) / sqrt 2 of the swap: whichever entry is larger by one rounding
    # error, the first one is positive.
    for jitter in (0.0, 1e-15, -1e-15):
        U = signed_eigh(np.array([[jitter, 1.0], [1.0, -jitter]])).U
        assert np.allclose(U, np.array([[1, 1], [1, -1]]) / math.sqrt(2), rtol=1e-14, atol=0)


def test_zero_matrix_has_rank_zero() -> None:
    for rtol in (None, 0.0, 0.5):
        spectrum = signed_eigh(np.zeros((5, 5)), rtol=rtol)
        assert spectrum.U.shape == (5, 0)
        assert spectrum.D.shape == spectrum.S.shape == (0,)


def test_nan_is_refused() -> None:
    K, _ = indefinite(5)
    K[2, 3] = K[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        signed_eigh(K)


def test_integers_and_single_precision_are_taken() -> None:
    K = np.array([[0, 2], [2, 0]])
    assert signed_eigh(K).D.tolist() == [2.0, -2.0]
    single = signed_eigh(K.astype(np.float32))
    assert single.D.tolist() == [2.0, -2.0]
    assert single.U.dtype == np.float64


def test_cut_off_is_relative_and_strict() -> None:
    D = np.array([8.0, -4.0, 2.0, -1.0])
    assert signed_eigh(np.diag(D), rtol=0.125).D.tolist() == [8.0, -4.0, 2.0]
    assert signed_eigh(np.diag(D), rtol=0.12).D.tolist() == [8.0, -4.0, 2.0, -1.0]
    assert signed_eigh(np.diag(D), rtol=0.25).D.tolist() == [8.0, -4.0]
    assert signed_eigh(-np.diag(D), rtol=0.25).D.tolist() == [-8.0, 4.0]


def test_default_cut_off_follows_size() -> None:
    assert rank_rtol(10) == 1e-12
    assert rank_rtol(10**5) == 10**5 * EPS
    D = np.array([1.0, -1e-5, 1e-11, -1e-13])
    assert signed_eigh(np.diag(D)).D.tolist() == [1.0, -1e-5, 1e-11]


def test_rank_keeps_the_largest_magnitudes_of_either_sign() -> None:
    K, true = case("geometric", 20)
    whole, some = signed_eigh(K), signed_eigh(K, rank=6)
    assert some.D.shape == (6,)
    assert np.array_equal(some.D, whole.D[:6])
    assert np.array_equal(some.U, whole.U[:, :6])
    assert some.U.flags.c_contiguous
    largest = true[np.argsort(-np.abs(true))][:6]
    assert np.max(np.abs(some.D - largest)) <= 200 * EPS
    assert len(np.unique(some.S)) == 2
    assert len(signed_eigh(case("rank one", 20)[0], rank=6).D) == 1


@pytest.mark.parametrize("name", UNSCALED)
def test_scaling_by_powers_of_four_changes_nothing_but_scale(name: str) -> None:
    K, _ = case(name, 23)
    reference = signed_eigh(K)
    for k in POWERS:
        scaled = signed_eigh(4.0**k * K)
        assert np.array_equal(scaled.U, reference.U), k
        assert np.array_equal(scaled.D, 4.0**k * reference.D), k


def test_every_power_of_four() -> None:
    K, _ = case("arithmetic", 6)
    reference = signed_eigh(K)
    for k in range(-300, 301):
        scaled = signed_eigh(4.0**k * K)
        assert np.array_equal(scaled.U, reference.U), k
        assert np.array_equal(scaled.D, 4.0**k * reference.D), k


@pytest.mark.parametrize("name", CASES)
def test_order_of_the_objects_does_not_matter(name: str) -> None:
    n = 31
    K, true = case(name, n)
    order = np.random.default_rng(3).permutation(n)
    here, there = signed_eigh(K), signed_eigh(K[np.ix_(order, order)])
    top = np.max(np.abs(true))
    rounding, cut_off = 10 * n * EPS * top, rank_rtol(n) * top
    # An eigenvalue within rounding of the cut-off, as 1e-12 is in the geometric case, may be on
    # either side of it; all others are on the same side in every order.
    certain = int(np.sum(np.abs(true) > cut_off + rounding))
    at_the_cut_off = int(np.sum(np.abs(np.abs(true) - cut_off) <= rounding)) if top else 0
    for found in (here, there):
        assert certain <= len(found.D) <= certain + at_the_cut_off
    D_here, D_there = np.sort(here.D[:certain]), np.sort(there.D[:certain])
    assert np.max(np.abs(D_here - D_there), initial=0.0) <= rounding
    K_here, K_there = (here.U * here.D) @ here.U.T, (there.U * there.D) @ there.U.T
    error = oracles.one_norm(K_here[np.ix_(order, order)] - K_there)
    assert error <= (2 * rank_rtol(n) + 60 * n * EPS) * oracles.one_norm(K)


def test_eigenvectors_follow_the_objects_up_to_the_sign_rule() -> None:
    K, _ = case("arithmetic", 20)
    order = np.random.default_rng(3).permutation(20)
    here, there = signed_eigh(K), signed_eigh(K[np.ix_(order, order)])
    assert np.max(np.abs(here.U[order] - there.U)) < 1e-12


@pytest.mark.parametrize("largest", [1.0, 0.5, -1.0, 3.0, -0.7, 1e-200, -1e250, 5e-324, 2.0**1022])
def test_power_of_two_scale(largest: float) -> None:
    K = np.array([[largest, 0.0], [0.0, -largest / 4]])
    c = power_of_two_scale(K)
    assert math.frexp(c)[0] == 0.5
    assert 0.5 <= np.max(np.abs(K / c)) < 1
    assert np.array_equal(K / c * c, K)


def test_power_of_two_scale_at_the_ends() -> None:
    assert power_of_two_scale(np.zeros((3, 3))) == 1.0
    assert power_of_two_scale(np.zeros((0, 0))) == 1.0
    assert power_of_two_scale(np.array([np.finfo(float).max])) == 2.0**1023


# Indefiniteness


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", SIZES)
def test_indefiniteness_by_trace_and_singular_values(name: str, n: int) -> None:
    K, true = case(name, n)
    iota = indefiniteness_of_matrix(K)
    assert abs(iota - oracles.indefiniteness_by_trace(K)) <= n * (rank_rtol(n) + 10 * n * EPS)
    by_table = -np.sum(true[true < 0]) / np.sum(np.abs(true)) if np.any(true) else 0.0
    assert abs(iota - by_table) <= n * (rank_rtol(n) + 10 * n * EPS)
    by_numpy = np.linalg.eigvalsh(K)
    assert abs(iota - indefiniteness_of(by_numpy)) <= n * (rank_rtol(n) + 10 * n * EPS)


def test_indefiniteness_in_closed_form() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert indefiniteness_of_matrix(swap) == 0.5
    assert indefiniteness_of_matrix(np.diag([3.0, -1.0])) == 0.25
    assert indefiniteness_of_matrix(np.diag([-3.0, 1.0])) == 0.75
    assert indefiniteness_of_matrix(-np.eye(4)) == 1.0
    assert indefiniteness_of_matrix(np.zeros((4, 4))) == 0.0
    everyone_alike_but_oneself = np.ones((9, 9)) - np.eye(9)  # eigenvalues 8 and -1, eight times
    assert indefiniteness_of_matrix(everyone_alike_but_oneself) == pytest.approx(0.5, rel=1e-14)
    assert indefiniteness_of(np.array([1.0, -3.0])) == 0.75
    assert indefiniteness_of(np.zeros(3)) == indefiniteness_of(np.zeros(0)) == 0.0
    assert indefiniteness_of(np.array([1e308, -1e308, -1e308, 1e308])) == 0.5


def test_indefiniteness_of_a_semi_definite_matrix_is_zero_exactly() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    assert np.min(np.linalg.eigvalsh(X @ X.T)) < 0
    iota = indefiniteness_of_matrix(X @ X.T)
    assert iota == 0.0
    assert math.copysign(1.0, iota) == 1.0  # no -0.0


def test_indefiniteness_does_not_know_the_scale() -> None:
    K, _ = indefinite(15)
    for k in POWERS:
        assert indefiniteness_of_matrix(4.0**k * K) == indefiniteness_of_matrix(K)


# Corrections

DENSE = {
    "flip": oracles.flipped,
    "clip": oracles.clipped,
    "shift": oracles.shifted,
    "square": oracles.squared,
}


@pytest.mark.parametrize("how", CORRECTIONS)
@pytest.mark.parametrize("name", UNSCALED)
def test_corrected_matrix_by_a_dense_route(how: str, name: str) -> None:
    n = 25
    K, _ = case(name, n)
    train = correct(K, how).train
    expected = DENSE[how](K)
    scale = max(oracles.one_norm(expected), oracles.one_norm(K) ** (2 if how == "square" else 1))
    assert oracles.one_norm(train - expected) <= (n * rank_rtol(n) + 60 * n * EPS) * scale
    assert np.array_equal(train, train.T)
    lowest = np.min(np.linalg.eigvalsh(train))
    assert lowest >= -10 * n * EPS * np.max(np.abs(train))


@pytest.mark.parametrize("how", CORRECTIONS)
def test_correction_changes_an_indefinite_matrix(how: str) -> None:
    K, _ = indefinite()
    assert relative_error(correct(K, how).train, K) > 0.1
    assert relative_error(correct(K, how).train, DENSE[how](K)) < 1e-13


@pytest.mark.parametrize("how", ["flip", "clip", "square"])
def test_new_rows_go_through_the_map_that_made_the_training_matrix(how: str) -> None:
    K, _ = indefinite()
    K_x = rows_of_new_objects(len(K))
    expected = oracles.carried_to_new_rows(K, DENSE[how](K), K_x)
    assert relative_error(correct(K, how).map(K_x), expected) < 1e-13
    assert relative_error(K_x, expected) > 0.1


def test_flip_maps_by_the_matrix_sign() -> None:
    K, _ = indefinite()
    K_x = rows_of_new_objects(len(K))
    S = oracles.matrix_sign(K)
    assert relative_error(correct(K, "flip").map(K_x), K_x @ S) < 1e-13
    assert relative_error(correct(K, "clip").map(K_x), K_x @ (S + np.eye(len(K))) / 2) < 1e-13


@pytest.mark.parametrize("how", ["flip", "clip", "square"])
@pytest.mark.parametrize("name", UNSCALED)
def test_training_rows_map_to_the_training_matrix(how: str, name: str) -> None:
    n = 25
    K, _ = case(name, n)
    corrected = correct(K, how)
    power = 2 if how == "square" else 1
    allowed = (n * rank_rtol(n) + 60 * n * EPS) * oracles.one_norm(K) ** power
    assert oracles.one_norm(corrected.map(K) - corrected.train) <= allowed


def test_shift_leaves_new_rows_and_off_diagonal_entries() -> None:
    K, true = indefinite()
    corrected = correct(K, "shift")
    K_x = rows_of_new_objects(len(K))
    assert np.array_equal(corrected.map(K_x), K_x)
    off_diagonal = ~np.eye(len(K), dtype=bool)
    assert np.array_equal(corrected.train[off_diagonal], K[off_diagonal])
    added = np.diag(corrected.train) - np.diag(K)
    assert np.max(np.abs(added + true[0])) < 1e-13


@pytest.mark.parametrize("how", ["flip", "clip", "shift"])
def test_semi_definite_matrix_stays_as_it_is(how: str) -> None:
    X = np.random.default_rng(0).standard_normal((20, 4))
    K = X @ X.T
    assert relative_error(correct(K, how).train, K) < 1e-13
    if how == "shift":
        assert np.array_equal(correct(K, how).train, K)


def test_rows_lose_what_lies_outside_the_span_of_a_singular_matrix() -> None:
    """Rounding gives the null space random signs; new rows must not pick them up."""
    K, _ = with_spectrum(np.r_[3.0, -2.0, 1.0, np.zeros(17)], np.random.default_rng(0))
    K_x = rows_of_new_objects(20)
    onto_span = K @ np.linalg.pinv(K, rcond=1e-10, hermitian=True)
    expected = K_x @ np.linalg.pinv(K, rcond=1e-10, hermitian=True) @ oracles.flipped(K)
    corrected = correct(K, "flip")
    assert corrected.U.shape == (20, 3)
    assert correct(K, "clip").U.shape == (20, 2)
    assert relative_error(corrected.map(K_x), expected) < 1e-12
    assert relative_error(corrected.map(K_x @ onto_span), corrected.map(K_x)) < 1e-12


@pytest.mark.parametrize("how", CORRECTIONS)
def test_corrections_of_a_zero_matrix(how: str) -> None:
    corrected = correct(np.zeros((4, 4)), how)
    assert np.array_equal(corrected.train, np.zeros((4, 4)))
    K_x = rows_of_new_objects(4)
    assert np.array_equal(corrected.map(K_x), K_x if how == "shift" else np.zeros_like(K_x))


@pytest.mark.parametrize("how", CORRECTIONS)
def test_corrections_scale_exactly(how: str) -> None:
    K, _ = indefinite(12)
    K_x = rows_of_new_objects(12)
    reference = correct(K, how)
    for k in POWERS:
        c = 4.0**k
        if how == "square" and abs(k) > 200:
            with pytest.raises(ValueError, match="rescale the kernel"):
                correct(c * K, how)
            continue
        scaled = correct(c * K, how)
        power = c**2 if how == "square" else c
        assert np.array_equal(scaled.train, power * reference.train), k
        assert np.array_equal(scaled.map(c * K_x), power * reference.map(K_x)), k


def test_unknown_correction_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        correct(np.eye(2), "flop")


def test_eigenvalues_whose_squares_are_out_of_range_are_refused():
    for exponent in (-470, 0, 500):
        found = correct(np.diag([2.0**exponent, 2.0**exponent]), "square").train
        np.testing.assert_array_equal(found, np.diag([4.0**exponent] * 2))
    for exponent in (-471, 501):
        with pytest.raises(ValueError, match="whose square is out of floating range"):
            correct(np.diag([2.0**exponent] * 2), "square")
