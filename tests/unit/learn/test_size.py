"""How many landmarks a fit has at its defaults: what it would cost decides."""

from __future__ import annotations

import time

import numpy as np
import pytest

from kreinlearn import (
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    Landmarks,
    Resources,
)
from kreinlearn.kernels import pairwise
from kreinlearn.learn.exact import (
    LEAST,
    SECONDS,
    comparing_seconds,
    exact_bytes,
    exact_seconds,
    landmark_seconds,
    landmarks_by_cost,
)
from kreinlearn.solvers.exact import Eigenbasis, LeaveOneOutLoss

CHEAP, PLENTY = 1e-8, 2**40
SIZES = np.unique(np.geomspace(2, 3_000_000, 400).astype(int)).tolist()


def landmarks(n, *, n_outputs=1, pair=CHEAP, memory=PLENTY, machines=False, **more):
    size = landmarks_by_cost(n, n_outputs, pair, memory, machines=machines, **more)
    return size.n_landmarks


def border(**params):
    """The largest number of objects that are all landmarks, by bisection."""
    low, high = 2, 10**6
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if landmarks(middle, **params) == middle else (low, middle)
    return low


# The border


@pytest.mark.parametrize("machines", [False, True])
@pytest.mark.parametrize("pair", [1e-8, 1e-6, 1e-4, 1e-2])
def test_all_objects_up_to_a_border_and_fewer_from_there_on(pair, machines):
    last = border(pair=pair, machines=machines)
    assert exact_seconds(last, 1, pair, machines=machines) <= SECONDS
    assert exact_seconds(last + 1, 1, pair, machines=machines) > SECONDS
    for n in SIZES:
        m = landmarks(n, pair=pair, machines=machines)
        assert (m == n) == (n <= last), n
        assert 0 < m <= n


def test_about_five_thousand_objects_of_a_cheap_similarity():
    assert 4000 <= border() <= 6000


@pytest.mark.parametrize("pair", [1e-8, 1e-6, 1e-4])
def test_the_landmarks_beyond_the_border_are_those_that_the_time_allows(pair):
    last = border(pair=pair)
    for n in (last + 1, 2 * last, 10 * last):
        m = landmarks(n, pair=pair)
        allowed = landmark_seconds(n, m, pair) <= SECONDS < landmark_seconds(n, m + 1, pair)
        usual = m == int(1000 * max(n / 100_000, 1.0) ** 0.1)
        assert allowed or usual or m == LEAST, (n, m)


def test_landmarks_that_would_take_longer_than_all_objects_are_not_chosen():
    """With a machine for each of 100 classes, 1,000 landmarks cost more than an eigenbasis."""
    n, q = 2000, 100
    exact = exact_seconds(n, q, CHEAP, machines=True)
    assert SECONDS < exact < landmark_seconds(n, 1000, CHEAP, q) / 3
    size = landmarks_by_cost(n, q, CHEAP, PLENTY, machines=True)
    assert size.n_landmarks == n
    assert size.reason.endswith("of one core, and 1000 landmarks take longer")
    assert landmarks(n, n_outputs=q, machines=True, memory=10**8) < n
    assert landmarks(n, n_outputs=q) == n


def test_estimates_add_up_what_the_steps_of_a_fit_cost():
    """Pairs, a decomposition, leave-one-out and machines; or pairs, sums, factors and machines."""
    n, m, q, pair = 1000, 100, 3, 1e-6
    exact = pair * (n * (n + 1) / 2) + 2e-10 * n**3 + 1e-8 * n**2 * (q + 2)
    assert exact_seconds(n, q, pair, machines=False) == pytest.approx(exact, rel=1e-12)
    exact += (3e-10 + 4e-11 * q) * n**3
    assert exact_seconds(n, q, pair, machines=True) == pytest.approx(exact, rel=1e-12)
    few = pair * n * m + 1e-10 * n * m**2 + 3e-8 * m**3
    assert landmark_seconds(n, m, pair) == pytest.approx(few, rel=1e-12)
    few += 4e-9 * q * n * m**2
    assert landmark_seconds(n, m, pair, q) == pytest.approx(few, rel=1e-12)
    assert exact_bytes(n, q) == 8 * (7 * n**2 + 400 * n * (q + 1))
    seconds = [comparing_seconds(q) for q in (1, 3, 8, 100)]  # by eight sums, if there are more
    np.testing.assert_allclose(seconds, [0.28, 0.44, 0.84, 0.84], rtol=1e-12)


# Monotone


def test_more_of_anything_that_costs_never_means_more_landmarks():
    for n in SIZES:
        by_pair = [landmarks(n, pair=pair) for pair in (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1.0)]
        by_outputs = [landmarks(n, n_outputs=q) for q in (1, 10, 100, 1000)]
        machines = [landmarks(n), landmarks(n, machines=True)]
        by_memory = [landmarks(n, memory=memory) for memory in (2**40, 2**30, 2**25, 2**20)]
        by_time = [landmarks(n, seconds=seconds) for seconds in (100.0, 25.0, 5.0, 1.0)]
        for falling in (by_pair, by_outputs, machines, by_memory, by_time):
            assert falling == sorted(falling, reverse=True), (n, falling)


def test_many_rows_of_a_cheap_similarity_have_more_landmarks_than_fewer():
    many = [landmarks(n) for n in (100_000, 1_000_000, 10_000_000)]
    assert many == sorted(many)
    assert 1000 <= many[0] < many[-1] < 2000


def test_a_slow_similarity_has_few_landmarks_and_never_less_than_the_least():
    assert landmarks(10_000, pair=1e-3) == LEAST
    m = landmarks(1000, pair=1e-3)
    assert LEAST < m <= SECONDS / (1000 * 1e-3)  # that is what the pairs alone take
    assert landmark_seconds(1000, m, 1e-3) <= SECONDS < landmark_seconds(1000, m + 1, 1e-3)
    assert landmarks(10**6, pair=1.0) == LEAST
    assert landmarks(7, pair=100.0) == 7


# Memory


def test_all_objects_must_fit_the_memory():
    n, q = 2000, 3
    needed = exact_bytes(n, q)
    assert landmarks(n, n_outputs=q, memory=needed) == n
    fewer = landmarks(n, n_outputs=q, memory=needed - 1)
    assert fewer <= n // 2
    assert exact_bytes(n, q) > 7 * 8 * n * n
    assert landmarks(n, memory=10 * 2**20) < landmarks(n, memory=60 * 2**20) < n


def test_the_memory_estimate_covers_what_leaving_one_out_holds():
    """Values at all nodes of the integral, real and imaginary, of rows and of sums."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))  # eigenvalues down to rounding errors
    loss = LeaveOneOutLoss(
        Eigenbasis.of(K, None, signed=True), rng.normal(size=(60, 4)), intercept=True
    )
    assert loss.rows.nbytes + loss.sums.nbytes <= exact_bytes(60, 4) - exact_bytes(60, -1)


# Reasons


def test_reasons_say_what_was_decided_and_why():
    def reason(n, pair=CHEAP, memory=PLENTY, seconds=None):
        return landmarks_by_cost(n, 1, pair, memory, machines=False, seconds=seconds).reason

    assert reason(100).startswith("all 100 objects are landmarks: that takes about 0.00")
    slow = reason(2000, pair=1e-3)
    assert slow.startswith("20 of 2000 objects are landmarks: all 2000 would take about 33 min")
    assert slow.endswith("of one core")
    assert reason(30, pair=1.0).endswith("of one core; 20 is the least")
    limited = reason(2000, pair=1e-3, seconds=50.0)
    assert limited.endswith("of one core, and the limit is 50 s")
    tight = reason(2000, memory=100 * 10**6)
    needed = f"{exact_bytes(2000, 1) / 10**6:.0f} MB"
    why = f"of 2000 objects are landmarks: all 2000 would take {needed}, and the budget is 100 MB"
    assert tight.endswith(why)


# Estimators


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0]


def test_an_estimator_says_what_it_decided():
    model = KreinRidge(lambda_plus=0.1, lambda_minus=0.1).fit(X, Y)
    assert model.n_landmarks_ == 60
    assert model.decision_.startswith("all 60 objects are landmarks")
    tight = Resources(memory_budget="200 kB")
    model = KreinRidge(lambda_plus=0.1, lambda_minus=0.1, resources=tight).fit(X, Y)
    assert model.n_landmarks_ == 30
    assert model.decision_.startswith("30 of 60 objects are landmarks: all 60 would take")


@pytest.mark.parametrize("given", [20, 0.5, None, np.arange(20), Landmarks(20), Landmarks(rank=5)])
def test_nothing_is_decided_where_landmarks_are_given(given):
    model = KreinRidge(lambda_plus=0.1, lambda_minus=0.1, landmarks=given).fit(X, Y)
    assert not hasattr(model, "decision_")


def test_a_loss_that_is_not_solved_in_the_eigenbasis_decides_nothing():
    model = KreinVCRidge(lambda_plus=0.1, lambda_minus=0.1).fit(X, Y)
    assert not hasattr(model, "decision_")


@pytest.mark.parametrize("learner", [KreinRidgeClassifier, KreinSVC])
def test_a_function_that_takes_long_is_called_for_few_landmarks(learner):
    """A millisecond for each pair: 700 objects have 245,350 pairs, which is four minutes."""
    n, calls = 700, 0
    x = RNG.normal(size=n)

    def slow(a, b):
        nonlocal calls
        calls += 1
        end = time.perf_counter() + (1e-3 if calls <= 200 else 0.0)  # as it is when measured
        while time.perf_counter() < end:
            pass
        return float(np.exp(-abs(x[a] - x[b])))

    model = learner(pairwise(slow), lambda_plus=0.1, lambda_minus=0.1, random_state=0)
    model.fit(list(range(n)), x > 0)
    assert LEAST <= model.n_landmarks_ <= 100
    assert "of 700 objects are landmarks: all 700 would take about" in model.decision_
    assert calls < n * (n + 1) / 4


def test_cheap_similarities_of_many_rows_have_the_usual_number():
    """The cost of a declared similarity never takes landmarks away from more rows."""
    for pair in (2e-7, 1e-6, 2e-5):
        counts = [
            landmarks_by_cost(n, 1, pair, PLENTY, machines=False).n_landmarks
            for n in (10_000, 100_000, 1_000_000)
        ]
        assert min(counts) >= 1000
        assert counts[2] > 1000


def test_machines_with_landmarks_count_their_outputs():
    few, many = (
        landmarks_by_cost(6000, q, CHEAP, PLENTY, machines=True, seconds=60.0).n_landmarks
        for q in (1, 20)
    )
    assert 20 <= many < few
    assert landmark_seconds(6000, few, CHEAP, 1) <= 60.0 < landmark_seconds(6000, few + 1, CHEAP, 1)
