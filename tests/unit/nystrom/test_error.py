"""The error estimate of a sample of pairs, by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.nystrom.error import estimate_error

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("n_rows", [2, 30, 200])
def test_error_of_a_sample_by_its_definition(n_rows):
    """Off-diagonal and diagonal squares are scaled up separately to all n^2 pairs."""
    Phi, S = RNG.normal(size=(n_rows, 5)), np.array([1, -1, 1, 1, -1.0])
    A = RNG.normal(size=(n_rows, n_rows))
    A = A + A.T
    off = ~np.eye(n_rows, dtype=bool)

    def norm(B, n):
        return n * (n - 1) * np.mean(B[off] ** 2) + n * np.mean(np.diag(B) ** 2)

    expected = np.sqrt(norm(A - Phi @ np.diag(S) @ Phi.T, 1000) / norm(A, 1000))
    assert estimate_error(A, Phi, S, 1000).relative == pytest.approx(expected, rel=1e-12)


def test_jackknife_is_the_plain_one():
    Phi, S = RNG.normal(size=(12, 2)), np.array([1.0, -1])
    A = RNG.normal(size=(12, 12))
    A = A + A.T
    without = [
        estimate_error(np.delete(np.delete(A, i, 0), i, 1), np.delete(Phi, i, 0), S, 500).relative
        for i in range(12)
    ]
    spread = np.sqrt(11 / 12 * np.sum((without - np.mean(without)) ** 2) * (1 - 12 / 500))
    assert estimate_error(A, Phi, S, 500).standard_error == pytest.approx(spread, rel=1e-10)


def test_a_kernel_of_zeros_has_no_error():
    found = estimate_error(np.zeros((5, 5)), np.zeros((5, 0)), np.zeros(0), 100)
    assert (found.relative, found.standard_error, found.n_rows) == (0.0, 0.0, 5)


@pytest.mark.parametrize("power", [-1000, 1000])
def test_kernels_of_any_size_have_the_same_relative_error(power):
    Phi, S = RNG.normal(size=(20, 2)), np.array([1.0, -1])
    A = RNG.normal(size=(20, 20))
    A = A + A.T
    one, other = (estimate_error(c * A, np.sqrt(c) * Phi, S, 500) for c in (1.0, 2.0**power))
    assert other.relative == pytest.approx(one.relative, rel=1e-12)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)
