"""Routines of LAPACK that are called by their address."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn._native import cholesky, eigh
from tests.bounds import rounding


@pytest.mark.parametrize("n", [0, 1, 7, 130])
def test_the_factor_is_that_of_the_matrix(n):
    F = np.random.default_rng(n).normal(size=(n + 3, n))
    A = F.T @ F
    L = np.tril(cholesky(A.copy()))
    # Higham, Accuracy and Stability, theorem 10.3: |A - LL'| <= g |L||L'|, with g of n + 1 terms
    assert (np.abs(L @ L.T - A) <= 2 * rounding(n + 1) * (np.abs(L) @ np.abs(L.T))).all()


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_matrix_without_a_factor_is_refused(value):
    A = np.eye(40)
    A[17, 17] = value
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(A)


def test_memory_of_another_kind_is_not_touched():
    for A in (np.eye(3, dtype=np.float32), np.eye(6)[::2, ::2], np.ones((2, 3))):
        with pytest.raises(AssertionError):
            cholesky(A)
        with pytest.raises(AssertionError):
            eigh(A)


@pytest.mark.parametrize("n", [0, 1, 7, 130])
def test_eigenvectors_take_the_place_of_the_matrix(n):
    F = np.random.default_rng(n).normal(size=(n, n))
    A = np.asfortranarray(F + F.T)
    D, U = eigh(work := A.copy(order="F"))
    assert np.shares_memory(U, work) or not n
    np.testing.assert_array_equal(D, np.sort(D))
    # backward stable: exact for a matrix that is nearer than p(n) eps |A|, p of low degree
    error = 10 * max(n, 1) * np.finfo(float).eps
    assert np.linalg.norm(A - (U * D) @ U.T) <= error * np.linalg.norm(A)
    assert np.linalg.norm(U.T @ U - np.eye(n)) <= error * np.sqrt(n)
