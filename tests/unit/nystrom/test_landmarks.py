"""Landmark selectors against slow, plain versions of the same draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kreinlearn.kernels import DeltaGauss, Precomputed
from kreinlearn.nystrom.landmarks import SELECTORS, _greedy_seeds, seeds, weighted_draw
from kreinlearn.pairs.evaluate import Rows
from kreinlearn.pairs.panel import Panel
from kreinlearn.sums.parallel import serial_blas
from tests import oracles

RNG = np.random.default_rng(11)
X = RNG.normal(size=(120, 3))
K = oracles.delta_gauss(X, X, 6.0, 4.0)


def panel_of(X, rows=None):
    kernel = DeltaGauss(6.0, 4.0).fit(X, RNG)
    return Panel(kernel, Rows(X), np.arange(len(X)) if rows is None else rows)


@pytest.mark.parametrize("scheme", list(SELECTORS))
def test_each_scheme_gives_that_many_distinct_landmarks(scheme):
    for m in (1, 2, 7, 40, 119, 120):
        panel = panel_of(X)
        SELECTORS[scheme](panel, m, np.random.default_rng(m), min(m, 20))
        assert len(np.unique(panel.landmarks)) == len(panel.landmarks) == m
        np.testing.assert_allclose(panel.C, K[:, panel.landmarks], atol=1e-13)
        np.testing.assert_allclose(panel.K_ZZ, K[np.ix_(*[panel.landmarks] * 2)], atol=1e-13)


@pytest.mark.parametrize("scheme", ["uniform", "greedy_kmeans++", "medoids+greedy"])
def test_schemes_that_keep_their_columns_evaluate_no_others(scheme):
    panel = panel_of(X)
    SELECTORS[scheme](panel, 30, np.random.default_rng(0), 20)
    np.testing.assert_array_equal(panel.columns, panel.landmarks)


@pytest.mark.parametrize("scheme", list(SELECTORS))
def test_duplicates_do_not_stop_a_scheme(scheme):
    panel = panel_of(np.repeat(X[:5], 20, axis=0))
    SELECTORS[scheme](panel, 12, np.random.default_rng(0), 6)
    assert len(np.unique(panel.landmarks)) == 12


def naive_seeds_probabilities(F, first, second_given):
    d2 = ((F - F[first]) ** 2).sum(1)
    if second_given is not None:
        d2 = np.minimum(d2, ((F - F[second_given]) ** 2).sum(1))
    return d2 / d2.sum()


def test_seeds_follow_the_law_of_kmeans_pp():
    """Third seed given the first two, by chi-squared over 9,000 draws from six rows."""
    F = np.array([[0.0, 0], [1, 0], [0, 2], [3, 3], [-1, 1], [0.5, 0.2]])
    rng = np.random.default_rng(0)
    draws = np.array([seeds(F, 3, rng) for _ in range(9_000)])
    assert stats.chisquare(np.bincount(draws[:, 0], minlength=6)).pvalue > 1e-4
    for first, second in ((0, 3), (3, 0), (2, 1)):
        third = draws[(draws[:, 0] == first) & (draws[:, 1] == second), 2]
        p = naive_seeds_probabilities(F, first, second)
        observed = np.bincount(third, minlength=6)[p > 0]
        assert stats.chisquare(observed, p[p > 0] * len(third)).pvalue > 1e-4


def test_seeds_beyond_one_flush_are_far_apart():
    """150 seeds among 150 tight groups of 4: k-means++ hits nearly every group."""
    rng = np.random.default_rng(0)
    centres = 100 * rng.normal(size=(150, 5))
    F = np.repeat(centres, 4, axis=0) + 1e-3 * rng.normal(size=(600, 5))
    assert len(np.unique(seeds(F, 150, rng) // 4)) == 150


def test_weighted_draw_follows_the_weights():
    weights = np.array([0.0, 1, 2, 5])
    rng = np.random.default_rng(0)
    draws = np.array([weighted_draw(weights, 2, rng) for _ in range(9_000)])
    first = np.bincount(draws[:, 0], minlength=4)
    assert first[0] == 0
    assert stats.chisquare(first[1:], weights[1:] / 8 * 9_000).pvalue > 1e-4
    second = np.bincount(draws[draws[:, 0] == 3, 1], minlength=4)
    assert stats.chisquare(second[1:3], np.array([1, 2]) / 3 * second.sum()).pvalue > 1e-4
    assert set(weighted_draw(weights, 4, rng)) == {0, 1, 2, 3}


def test_leverage_draws_by_the_scores_of_the_sketch():
    """A heavy group of rows that alone carries a direction is drawn although it is rare."""
    F = np.zeros((100, 3))
    F[:, 0] = 1
    F[:4, 1] = 5
    F[50:, 2] = 0.5
    low = (F * [1, -1, 1]) @ F.T
    scores = oracles.leverage_scores(low, 3)
    kernel = Precomputed().fit(low, RNG)
    hits = []
    with serial_blas():
        for s in range(200):
            panel = Panel(kernel, Rows(low), np.arange(100))
            SELECTORS["leverage"](panel, 1, np.random.default_rng(s), 90)
            hits.append(panel.landmarks[0] < 4)
    expected = scores[:4].sum() / scores.sum()
    assert abs(np.mean(hits) - expected) < 4 * np.sqrt(expected * (1 - expected) / 200)


def test_greedy_seeds_match_a_naive_greedy_search():
    """Same candidates from the same generator; the best one found by recomputing everything."""
    F, missed = RNG.normal(size=(60, 4)), RNG.random(60)
    start = np.array([3, 17])
    ours = _greedy_seeds(F, missed, start, 14, np.random.default_rng(5))
    rng, chosen = np.random.default_rng(5), list(start)
    D2 = ((F[:, None] - F[None]) ** 2).sum(2)
    trials = int(2 + np.log(14))
    while len(chosen) < 14:
        weights = D2[:, chosen].min(1) + missed
        weights[chosen] = 0
        total = np.cumsum(weights)
        candidates = np.unique(np.searchsorted(total, rng.random(trials) * total[-1]))
        left = [D2[:, [*chosen, c]].min(1).sum() - missed[c] for c in candidates]
        chosen.append(int(candidates[np.argmin(left)]))
    np.testing.assert_array_equal(ours, chosen[2:])


def test_an_object_unlike_all_others_is_picked():
    """Its features are near zero; what they miss of k(x, x) makes it a landmark."""
    F = np.vstack([RNG.normal(size=(80, 2)), [[60.0, 60]]])
    K = np.maximum(0, 1 - ((F[:, None] - F[None]) ** 2).sum(2) / 4)
    kernel = Precomputed().fit(K, RNG)
    picked = 0
    for s in range(20):
        panel = Panel(kernel, Rows(K), np.arange(81))
        SELECTORS["greedy_kmeans++"](panel, 20, np.random.default_rng(s), 5)
        picked += 80 in panel.landmarks
    assert picked >= 12
