"""K-means with signs: costs, moves and seeds, recomputed from pairs of objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kreinlearn.solvers.kmeans import (
    best_groups,
    by_lloyd,
    by_moves,
    grouped,
    nearest,
    seed,
    squared_distances,
)

N, R, K = 60, 5, 3
MIXED = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
EPS = np.finfo(np.float64).eps


@pytest.fixture
def rng() -> Any:
    return np.random.default_rng(0)


def pairwise_cost(Phi: Any, signs: Any, w: Any, labels: Any) -> float:
    """The sum over groups of w_i w_j d2(i, j) / (2 W)."""
    d2 = ((Phi[:, None] - Phi[None]) ** 2) @ signs
    total = 0.0
    for c in np.unique(labels):
        v = w * (labels == c)
        total += float(v @ d2 @ v) / (2 * v.sum())
    return total


@pytest.mark.parametrize("signs", [np.ones(R), MIXED], ids=["plain", "mixed"])
def test_the_cost_is_that_of_pairs(rng: Any, signs: Any) -> None:
    Phi, w, labels = rng.normal(size=(N, R)), rng.random(N) + 0.1, np.arange(N) % K
    found = grouped(Phi, signs, w, labels, K)
    size = float(w @ np.square(Phi).sum(axis=1))
    wanted = pairwise_cost(Phi, signs, w, labels)
    assert abs(found.cost - wanted) <= 4 * N * N * EPS * size


@pytest.mark.parametrize("signs", [np.ones(R), MIXED], ids=["plain", "mixed"])
def test_the_end_has_no_move_that_lowers_the_cost(rng: Any, signs: Any) -> None:
    Phi, w = rng.normal(size=(N, R)), rng.integers(1, 4, size=N).astype(float)
    found = best_groups(Phi, signs, w, K, rng)
    assert found.converged
    assert (np.bincount(found.labels, minlength=K) > 0).all()
    for i in range(N):
        for c in range(K):
            labels = found.labels.copy()
            labels[i] = c
            if len(np.unique(labels)) == K:
                assert pairwise_cost(Phi, signs, w, labels) >= found.cost - 1e-9


def test_every_stage_descends(rng: Any) -> None:
    Phi, w = rng.normal(size=(N, R)), np.ones(N)
    start = grouped(Phi, MIXED, w, np.arange(N) % K, K)
    stepped = by_lloyd(Phi, MIXED, w, start, 300)
    moved = by_moves(Phi, MIXED, w, stepped, 300)
    assert start.cost >= stepped.cost >= moved.cost
    assert moved.cost < start.cost


def test_a_plain_step_of_lloyd_may_raise_the_cost(rng: Any) -> None:
    """The reason for single moves."""
    w, raised = np.ones(N), 0
    for _ in range(50):
        Phi = rng.normal(size=(N, R))
        before = grouped(Phi, MIXED, w, np.arange(N) % K, K)
        labels = nearest(Phi, MIXED, before.centres)
        raised += grouped(Phi, MIXED, w, labels, K).cost > before.cost
    assert raised > 0


def test_lloyd_is_that_of_numpy_where_all_signs_are_positive(rng: Any) -> None:
    Phi, w = np.concatenate([rng.normal(c, 1, (20, R)) for c in (-2, 0, 2)]), np.ones(N)
    labels = rng.permutation(np.arange(N) % K)
    found = by_lloyd(Phi, np.ones(R), w, grouped(Phi, np.ones(R), w, labels, K), 300)
    for _ in range(300):
        centres = np.array([Phi[labels == c].mean(axis=0) for c in range(K)])
        gaps = ((Phi[:, None] - centres[None]) ** 2).sum(axis=2)
        if (gaps.argmin(axis=1) == labels).all():
            break
        labels = gaps.argmin(axis=1)
    np.testing.assert_array_equal(found.labels, labels)


def test_a_shift_adds_the_same_to_the_cost_of_any_groups(rng: Any) -> None:
    """K + s I has the cost of K plus s (n - k), and all its eigenvalues are non-negative."""
    A = rng.normal(size=(N, N))
    D, U = np.linalg.eigh(A + A.T)
    s = -D.min()
    w, shifted = np.ones(N), U * np.sqrt(np.maximum(D + s, 0))
    plain, signs = U * np.sqrt(np.abs(D)), np.sign(D)
    for _ in range(5):
        labels = np.concatenate([np.arange(K), rng.integers(K, size=N - K)])
        before = grouped(plain, signs, w, labels, K).cost
        after = grouped(shifted, np.ones(N), w, labels, K).cost
        np.testing.assert_allclose(after - before, s * (N - K), rtol=N * N * EPS)


def test_seeds_differ_and_copies_are_not_drawn_twice(rng: Any) -> None:
    Phi = np.repeat(rng.normal(size=(4, R)), 10, axis=0)
    assert len(np.unique(seed(Phi, np.ones(40), 4, rng) // 10)) == 4
    assert len(seed(Phi, np.ones(40), 7, rng)) == 4


def test_objects_without_weight_change_nothing_and_go_to_the_nearest_mean(rng: Any) -> None:
    Phi, w = rng.normal(size=(N, R)), np.ones(N)
    w[40:] = 0
    found = best_groups(Phi, np.ones(R), w, K, np.random.default_rng(3))
    means = np.array([Phi[:40][found.labels[:40] == c].mean(axis=0) for c in range(K)])
    np.testing.assert_allclose(found.centres, means, rtol=0, atol=40 * EPS * np.abs(Phi).max())
    wanted = squared_distances(Phi[40:], np.ones(R), means).argmin(axis=1)
    np.testing.assert_array_equal(found.labels[40:], wanted)
