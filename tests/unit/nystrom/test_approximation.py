"""Growth to a tolerance, for every scheme; no pair twice; what stops it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kreinlearn import KreinNystroem, dissimilarity, pairwise
from kreinlearn.kernels import DeltaGauss
from kreinlearn.nystrom.error import estimate_error
from kreinlearn.nystrom.landmarks import SELECTORS
from kreinlearn.pairs import panel
from kreinlearn.pairs.evaluate import KnownSquares
from tests import oracles

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
KERNEL = DeltaGauss(8.0, 4.0)
K = oracles.delta_gauss(X, X, 8.0, 4.0)
OBJECT_SCHEMES = [name for name in SELECTORS if "medoids" not in name]


def relative_error(model):
    return np.linalg.norm(K - model.approximate(X)) / np.linalg.norm(K)


@pytest.mark.parametrize("core", ["ls", "truncated"])
@pytest.mark.parametrize("scheme", list(SELECTORS))
def test_every_scheme_grows_to_the_tolerance(scheme, core):
    model = KreinNystroem(
        KERNEL, n_landmarks=12, tol=0.1, landmarks=scheme, core=core, random_state=0
    ).fit(X)
    assert model.error_.relative <= 0.1
    assert abs(relative_error(model) - model.error_.relative) < 5 * model.error_.standard_error
    assert model.n_landmarks_ in [12 * 2**i for i in range(1, 6)]
    assert len(np.unique(model.landmark_indices_)) == model.n_landmarks_


class Counted:
    """``f(a, b)`` on numbered objects, and how often each unordered pair was asked for.

    A plain function: an object would be copied with the kernel, and its counts with it.
    """

    def __init__(self, matrix):
        self.asked = asked = Counter()

        def f(a, b):
            asked[min(a, b), max(a, b)] += 1
            return float(matrix[a, b])

        self.f = f

    def repeated(self):
        assert len(self.asked) > 1000
        return sum(count > 1 for count in self.asked.values())


PROBED = 50  # pairs whose symmetry is looked at, with 8 of them repeated


@pytest.mark.parametrize("scheme", OBJECT_SCHEMES)
@pytest.mark.parametrize("core", ["ls", "truncated"])
def test_no_pair_is_evaluated_twice_on_the_way(scheme, core):
    f = Counted(K - 0.1)
    model = KreinNystroem(
        pairwise(f.f), n_landmarks=12, tol=0.1, landmarks=scheme, core=core, random_state=0
    ).fit(list(range(400)))
    assert model.n_landmarks_ >= 48
    assert f.repeated() <= PROBED


def test_no_distance_is_evaluated_twice_on_the_way():
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(2)) ** 0.7
    f = Counted(D)
    KreinNystroem(dissimilarity(pairwise(f.f)), n_landmarks=12, tol=0.1, random_state=0).fit(
        list(range(400))
    )
    assert f.repeated() <= PROBED


def test_a_rank_too_small_for_the_tolerance_stops_the_growth():
    with pytest.warns(UserWarning, match="rank"):
        model = KreinNystroem(KERNEL, n_landmarks=12, rank=3, tol=0.1, random_state=0).fit(X)
    assert model.rank_ == 3
    assert model.n_landmarks_ < 400
    assert model.error_.relative > 0.1


def test_growth_ends_within_the_memory_budget():
    many = RNG.normal(size=(9000, 8))
    with pytest.warns(UserWarning, match="memory_budget"):
        model = KreinNystroem(
            DeltaGauss(10.0), n_landmarks=20, tol=1e-4, memory_budget="30MB", random_state=0
        ).fit(many)
    assert model.n_landmarks_ in (80, 160)


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


def test_known_squares_give_back_what_was_put_in():
    squares = KnownSquares()
    for numbers in (np.array([5, 1, 9, 3]), np.array([9, 20, 1])):
        squares.add(numbers, K[np.ix_(numbers, numbers)])
    bits = squares.memberships(np.array([1, 5, 20, 7]))
    assert bits.tolist() == [3, 1, 2, 0]
    np.testing.assert_array_equal(
        squares.between(np.array([1, 5]), np.array([9, 3]), 1), K[np.ix_([1, 5], [9, 3])]
    )
    np.testing.assert_array_equal(
        squares.between(np.array([20]), np.array([9, 1]), 2), K[np.ix_([20], [9, 1])]
    )


@pytest.mark.parametrize("method", ["gram", "svd", "sgt"])
def test_no_route_evaluates_a_streamed_row_twice(method, monkeypatch):
    monkeypatch.setattr(panel, "POOL_ROWS", 40)
    f = Counted(K - 0.1)
    KreinNystroem(
        pairwise(f.f),
        n_landmarks=12,
        landmarks="uniform",
        core="plain",
        method=method,
        random_state=0,
    ).fit(list(range(400)))
    assert f.repeated() <= PROBED
