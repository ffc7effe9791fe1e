"""Weights of several similarities: losses by definition, and gradients by finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kreinlearn.solvers.exact import Eigenbasis, ExactFold
from kreinlearn.solvers.mixing import MixedFold, mixed

N, V, Q = 18, 7, 3
RTOL = 1e-12


def matrices(seed: int, rank: int | None = None) -> list[Any]:
    """Symmetric indefinite matrices of all objects, of full rank or of a small one."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(Q):
        A = rng.normal(size=(N + V, rank or N + V))
        signs = np.where(np.arange(A.shape[1]) % 3 == 2, -1.0, 1.0)
        made.append((A * signs) @ A.T / N)
    return made


def fold(K: list[Any], seed: int, *, weighted: bool) -> MixedFold:
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(N + V, 2)) + 3.0
    w = rng.uniform(0.5, 2.0, N + V) if weighted else np.ones(N + V)
    train, valid = np.arange(N), np.arange(N, N + V)
    return MixedFold(
        [k[:N, :N] for k in K], [k[N:, :N] for k in K], Y[train], Y[valid],
        w[train] if weighted else None, w[valid] if weighted else None, rtol=RTOL,
    )  # fmt: skip


VALUES = [np.array([0.3, 0.02, 1.0, 0.5, 2.0]), np.array([1e-3, 10.0, 0.2, 4.0, 1.0])]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_that_of_the_sum_of_all_similarities(values: Any, weighted: bool) -> None:
    K = matrices(0)
    mixture = fold(K, 1, weighted=weighted)
    total = mixed(K, values[2:])
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(N + V, 2)) + 3.0
    w = rng.uniform(0.5, 2.0, N + V) if weighted else np.ones(N + V)
    basis = Eigenbasis.of(total[:N, :N], w[:N], signed=True, rtol=RTOL)
    one = ExactFold(basis, Y[:N], total[N:, :N], Y[N:], w[N:], intercept=True)
    loss, gradient = mixture.loss_and_gradient(values)
    expected, by_penalty = one.loss_and_gradient(values[:2])
    bound = 1e3 * N * np.finfo(float).eps  # the condition of K + c is below 1e3 here
    assert_allclose(loss, expected, rtol=bound)
    assert_allclose(gradient[:2], by_penalty, rtol=bound, atol=bound * loss)


@pytest.mark.parametrize("values", VALUES)
def test_eigenvalues_of_zero_have_no_part_in_a_prediction(values: Any) -> None:
    """A training object is unlike all others and itself: the model is that without it.

    Only the constant, of which the object tells something, and the weight of all know about it.
    """
    K = matrices(6)
    for k in K:
        k[N - 1, :N] = k[:N, N - 1] = 0.0
    assert all(np.abs(k[N:, N - 1]).min() > 0 for k in K)  # new objects are like it
    total, c = mixed(K, values[2:]), N * values[:2]
    Y = np.random.default_rng(7).normal(size=(N + V, 2)) + 3.0
    d, U = np.linalg.eigh(total[: N - 1, : N - 1])
    H = (U * (np.abs(d) / (np.abs(d) + np.where(d > 0, c[0], c[1])))) @ U.T  # K g(K)
    left = np.append((np.eye(N - 1) - H).sum(axis=0), 1.0)
    b = left @ Y[:N] / left.sum()
    dual = (U * (np.sign(d) / (np.abs(d) + np.where(d > 0, c[0], c[1])))) @ U.T @ (Y[: N - 1] - b)
    expected = np.square(total[N:, : N - 1] @ dual + b - Y[N:]).sum()
    loss = fold(K, 7, weighted=False).loss_and_gradient(values)[0]
    assert_allclose(loss, expected, rtol=1e3 * N * np.finfo(float).eps)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", [None, 9])
def test_the_gradient_is_that_of_finite_differences(
    values: Any, weighted: bool, rank: int | None
) -> None:
    K = matrices(2, rank)
    mixture = fold(K, 3, weighted=weighted)
    x, step = np.log(values), 1e-5
    gradient = mixture.loss_and_gradient(values)[1]
    for i, moved in enumerate(step * np.eye(len(x))):
        ahead, behind = (mixture.loss_and_gradient(np.exp(x + s * moved))[0] for s in (1, -1))
        # the error of the difference: step^2 of a third derivative, and rounding over the step
        loss = max(ahead, behind)
        assert_allclose(gradient[i], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-7 * loss)


def test_similarities_that_are_scaled_have_the_same_loss_at_scaled_weights() -> None:
    K = matrices(4)
    values = VALUES[0]
    loss, gradient = fold(K, 5, weighted=False).loss_and_gradient(values)
    scales = np.array([4.0, 0.25, 2.0])
    other = [k / s for k, s in zip(K, scales, strict=True)]
    scaled = np.concatenate([values[:2], values[2:] * scales])
    assert fold(other, 5, weighted=False).loss_and_gradient(scaled)[0] == loss  # powers of two
    # all weights and both penalties times t leave the predictions as they are
    assert abs(gradient.sum()) <= 1e3 * N * np.finfo(float).eps * np.abs(gradient).sum()


@pytest.mark.parametrize("power", [-40, 40])
def test_similarities_of_any_size_have_the_same_loss_and_gradient(power: int) -> None:
    c = 2.0**power
    K, values = matrices(0), VALUES[0]
    wanted, slopes = fold(K, 1, weighted=True).loss_and_gradient(values)
    scaled = np.append(c * values[:2], values[2:])
    loss, gradient = fold([c * k for k in K], 1, weighted=True).loss_and_gradient(scaled)
    bound = 1e3 * N * np.finfo(float).eps
    assert_allclose(loss, wanted, rtol=bound)
    assert_allclose(gradient, slopes, rtol=0, atol=bound * np.abs(slopes).max())
