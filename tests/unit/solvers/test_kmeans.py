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
    one_run,
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


@pytest.mark.parametrize("c", [2.0**-30, 2.0**30])
def test_the_unit_of_the_features_does_not_matter(rng: Any, c: float) -> None:
    """What a move must gain is relative to the squared norms."""
    Phi, w = rng.normal(size=(N, R)), np.ones(N)
    one, other = (
        by_moves(c * Phi, MIXED, w, grouped(c * Phi, MIXED, w, np.arange(N) % K, K), 300)
        for c in (1.0, c)
    )
    assert one.n_iter > 1
    assert one.converged
    np.testing.assert_array_equal(other.labels, one.labels)
    assert (other.n_iter, other.converged) == (one.n_iter, True)
    size = np.square(Phi).sum()
    assert other.cost / c**2 == pytest.approx(one.cost, rel=0, abs=4 * N * N * EPS * size)


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


def test_the_best_of_several_runs_is_kept(rng: Any) -> None:
    Phi, w = rng.normal(size=(N, R)), np.ones(N)
    again = np.random.default_rng(8)
    costs = [one_run(Phi, MIXED, w, K, again, 300).cost for _ in range(6)]
    assert min(costs) < costs[1] < costs[0]
    found = best_groups(Phi, MIXED, w, K, np.random.default_rng(8), n_init=6)
    assert found.cost == min(costs)
    one = best_groups(Phi, MIXED, w, K, np.random.default_rng(8))
    assert one.cost == costs[0]


def test_a_seed_is_the_best_of_those_that_are_drawn() -> None:
    """The first is nearly always 0; one of twenty copies at 10 explains more than one at -10."""
    Phi = np.concatenate([[0.0], np.full(20, 10.0), [-10.0]])[:, None]
    w = np.concatenate([[1e9], np.ones(21)])
    second = [Phi[seed(Phi, w, 2, np.random.default_rng(k))[1], 0] for k in range(300)]
    assert 290 < second.count(10.0) <= 300  # -10 twice in a row is one in 441


def test_the_last_object_may_be_a_seed() -> None:
    Phi = np.array([[0.0], [0.0], [1.0]])
    for k in range(5):
        assert set(Phi[seed(Phi, np.ones(3), 2, np.random.default_rng(k)), 0]) == {0.0, 1.0}


def test_passes_are_counted_and_are_no_more_than_allowed(rng: Any) -> None:
    Phi, w = rng.normal(size=(N, R)), np.ones(N)
    start = grouped(Phi, np.ones(R), w, np.arange(N) % K, K)
    wanted, steps = start, 0
    while True:
        labels = ((Phi[:, None] - wanted.centres) ** 2).sum(axis=2).argmin(axis=1)
        after = grouped(Phi, np.ones(R), w, labels, K)
        if after.cost >= wanted.cost:
            break
        wanted, steps = after, steps + 1
    assert steps > 2
    assert by_lloyd(Phi, np.ones(R), w, start, 300).n_iter == steps
    assert by_lloyd(Phi, np.ones(R), w, start, 2).n_iter == 2
    end = by_moves(Phi, np.ones(R), w, start, 300)
    assert end.converged
    assert by_moves(Phi, np.ones(R), w, end, 300 + end.n_iter).n_iter == end.n_iter + 1
    early = by_moves(Phi, np.ones(R), w, start, 1)
    assert (early.n_iter, early.converged) == (1, False)


def test_a_step_of_lloyd_that_empties_a_group_is_not_taken() -> None:
    """Nobody is nearest to the mean of the two outer objects, although the cost would fall."""
    Phi, labels = np.array([-1.1, -1.0, 1.0, 1.1])[:, None], np.array([2, 0, 1, 2])
    start = grouped(Phi, np.ones(1), np.ones(4), labels, 3)
    found = by_lloyd(Phi, np.ones(1), np.ones(4), start, 300)
    np.testing.assert_array_equal(found.labels, labels)
    assert found.n_iter == 0


def test_means_are_right_after_every_single_move(rng: Any) -> None:
    """The second of two moves in a pass is judged by the means after the first."""
    Phi = np.array([0.0, 4.0, 6.0, 10.0, 11.0, 12.0])[:, None] * [1.0, 0.5]
    signs, w = np.ones(2), np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    groups = grouped(Phi, signs, w, np.array([0, 0, 0, 0, 0, 1]), 2)
    labels = groups.labels.copy()
    for i in range(6):
        costs = []
        for c in range(2):
            tried = labels.copy()
            tried[i] = c
            alone = len(np.unique(tried)) < 2
            costs.append(np.inf if alone else pairwise_cost(Phi, signs, w, tried))
        if min(costs) < costs[labels[i]] - 1e-9:
            labels[i] = int(np.argmin(costs))
    assert (labels != groups.labels).sum() > 1
    one_pass = by_moves(Phi, signs, w, groups, 1)
    np.testing.assert_array_equal(one_pass.labels, labels)


def test_given_groups_are_not_changed(rng: Any) -> None:
    Phi, w = rng.normal(size=(N, R)), np.where(np.arange(N) < 20, 0.0, 1.0)
    labels = np.arange(N) % K
    groups = grouped(Phi, MIXED, w, labels, K)
    found = by_moves(Phi, MIXED, w, groups, 0)
    np.testing.assert_array_equal(groups.labels, np.arange(N) % K)
    idle = nearest(Phi[:20], MIXED, groups.centres)
    np.testing.assert_array_equal(found.labels[:20], idle)
    assert (idle != groups.labels[:20]).any()
