"""Kernel values that are not known are evaluated, each pair once."""

from __future__ import annotations

import numpy as np

from kreinlearn.kernels.missing import fill_square


def test_what_is_known_on_one_side_of_the_diagonal_is_known() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 9))
    truth = A + A.T
    K = np.where(rng.random((9, 9)) < 0.5, truth, np.nan)
    missing = np.isnan(K) & np.isnan(K.T)
    counts = np.zeros((9, 9), dtype=int)

    def evaluate(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        counts[np.ix_(i, j)] += 1
        return truth[np.ix_(i, j)]

    fill_square(K, evaluate, lambda i: evaluate(i, i))
    np.testing.assert_array_equal(K, truth)
    np.testing.assert_array_equal((counts + counts.T) > 0, missing)
