"""Routines of LAPACK that are called by their address."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn._native import cholesky
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
