"""Rows of numbers, and what kernels are made of, by explicit differences and sums."""

import numpy as np

TOLERANCE = 1e-13


def squared(A, Z):
    return ((A[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)


def l1(A, Z):
    return np.abs(A[:, None, :] - Z[None, :, :]).sum(axis=2)


def inner(A, Z):
    return (A[:, None, :] * Z[None, :, :]).sum(axis=2)


def rng(seed=0):
    return np.random.default_rng(seed)


def data(n=150, m=40, d=7, seed=0):
    X = rng(seed).standard_normal((n + m, d))
    return X[:n], X[n:]


def assert_close(got, expected):
    assert got.dtype == np.float64
    atol = TOLERANCE * np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)
