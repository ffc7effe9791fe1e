"""Feature maps by every route, centred or not; growth to a tolerance, and what stops it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kreinlearn import KreinNystroem, Landmarks, Resources, dissimilarity, pairwise
from kreinlearn.kernels import DeltaGauss, Precomputed
from kreinlearn.nystrom import fit
from kreinlearn.nystrom.fit import centred_axes, fit_map, fit_map_to_tolerance, one_shot_svd
from kreinlearn.nystrom.landmarks import MapSpec, select_landmarks
from kreinlearn.nystrom.schemes import SCHEMES, WHOLE_SAMPLE
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests import oracles

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
KERNEL = DeltaGauss(8.0, 4.0)
K = oracles.delta_gauss(X, X, 8.0, 4.0)
OBJECT_SCHEMES = [name for name in SCHEMES if "medoids" not in name]


def relative_error(model):
    return np.linalg.norm(K - model.approximate(X)) / np.linalg.norm(K)


SMALL = X[:90]


def opened(values):
    return Pairs(Precomputed().fit(values, RNG), Rows(values), Session())


@pytest.mark.parametrize("c", [1.0, 2.0**-60, 2.0**-300], ids=["", "small", "tiny"])
@pytest.mark.parametrize("pool", [30, 90], ids=["streamed", "held"])
def test_axes_are_eigenvectors_of_the_centred_approximation(c, pool):
    values = K[:90, :90] + 0.3
    fitted = fit_map(opened(c * values), MapSpec(8, "uniform", pool=pool), np.random.default_rng(0))
    assert (len(fitted.sample.rows) == 90) == (pool == 90)
    axes, means = centred_axes(fitted, 90)
    Z = fitted.sample.landmarks
    approximated = oracles.nystroem(values[:, Z], values[np.ix_(Z, Z)], values[Z])
    np.testing.assert_allclose(means / c, values[:, Z].mean(axis=0), rtol=1e-12, atol=1e-14)
    U = (c * values[:, Z] - means) @ axes.E
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), rtol=0, atol=1e-6)
    found = (U * (axes.Lambda / c)) @ U.T
    np.testing.assert_allclose(found, oracles.centred(approximated), rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", ["gram", "svd", "sgt"])
@pytest.mark.parametrize("c", [1.0, 2.0**-60, 2.0**-300])
def test_routes_take_kernels_of_low_rank_and_of_any_size(method, c):
    """Twelve landmarks span a kernel of rank six: the approximation is the kernel."""
    Phi = X[:90, [0, 1, 2, 3, 0, 1]] ** [1, 1, 1, 1, 2, 2]
    values = (Phi * [1, -1, 1, 1, -1, 1]) @ Phi.T
    fitted = fit_map(
        opened(c * values), MapSpec(12, "uniform", method=method), np.random.default_rng(0)
    )
    assert len(fitted.map.Lambda) == 6
    U = c * values[:, fitted.sample.landmarks] @ fitted.map.E
    found = (U * (fitted.map.Lambda / c)) @ U.T
    np.testing.assert_allclose(found, values, rtol=0, atol=1e-6 * np.abs(values).max())


def test_the_svd_route_leaves_out_directions_that_are_rounding():
    """Of features L = Q diag(sigma) V' with sigma = 1e-8 once, none is made of that direction."""
    rng = np.random.default_rng(4)
    Q, V = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (20, 4))
    S, sigma = np.array([1.0, -1.0, 1.0, -1.0]), np.array([2.0, 1.0, 0.5, 1e-8])
    L = (Q * sigma) @ V.T
    E, Lambda = one_shot_svd(L * S, np.eye(4), S)
    assert len(Lambda) == 3
    U = L * S @ E
    np.testing.assert_allclose(U.T @ U, np.eye(3), rtol=0, atol=1e-12)
    assert np.abs(V[:, 3] @ (S[:, None] * E)).max() <= 1e-12


@pytest.mark.parametrize("tol", [0.4, 0.3, 0.2, 0.15, 0.1, 0.05])
def test_the_error_of_few_objects_is_exact_and_the_rank_is_the_smallest_below_it(tol):
    pairs = Pairs(KERNEL.fit(SMALL, RNG), Rows(SMALL), Session())
    spec = MapSpec(6, "uniform", tol=tol)
    fitted = fit_map_to_tolerance(pairs, spec, np.random.default_rng(0), shrink=True)
    values = K[:90, :90]

    def error(feature_map):
        Phi = values[:, fitted.sample.landmarks] @ feature_map.W
        return np.linalg.norm(values - (Phi * feature_map.S) @ Phi.T) / np.linalg.norm(values)

    rank = len(fitted.map.Lambda)
    assert fitted.error.n_rows == 90
    assert fitted.error.standard_error == 0
    assert fitted.error.relative == pytest.approx(error(fitted.map), rel=1e-9)
    assert error(fitted.map) <= tol < error(fitted.map.cut(rank - 1))


def test_landmarks_are_doubled_until_the_tolerance_is_reached(monkeypatch):
    numbers = []

    def watched(pairs, sample, spec, rng):
        numbers.append(spec.n_landmarks)
        return select_landmarks(pairs, sample, spec, rng)

    monkeypatch.setattr(fit, "select_landmarks", watched)
    pairs = Pairs(KERNEL.fit(SMALL, RNG), Rows(SMALL), Session())
    spec = MapSpec(6, "uniform", tol=1e-9)
    fit_map_to_tolerance(pairs, spec, np.random.default_rng(0), shrink=False)
    assert numbers == [6, 12, 24, 48, 90]  # all of them at last


@pytest.mark.parametrize("core", ["ls", "truncated"])
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_every_scheme_grows_to_the_tolerance(scheme, core):
    landmarks = Landmarks(12, scheme, core=core)
    model = KreinNystroem(KERNEL, landmarks=landmarks, tol=0.1, random_state=0).fit(X)
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
    landmarks = Landmarks(12, scheme, core=core)
    model = KreinNystroem(pairwise(f.f), landmarks=landmarks, tol=0.1, random_state=0)
    model.fit(list(range(400)))
    assert model.n_landmarks_ >= 48
    assert f.repeated() <= PROBED


def test_no_distance_is_evaluated_twice_on_the_way():
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(2)) ** 0.7
    f = Counted(D)
    KreinNystroem(dissimilarity(pairwise(f.f)), landmarks=12, tol=0.1, random_state=0).fit(
        list(range(400))
    )
    assert f.repeated() <= PROBED


def test_a_rank_too_small_for_the_tolerance_stops_the_growth():
    with pytest.warns(UserWarning, match="rank"):
        model = KreinNystroem(KERNEL, landmarks=12, rank=3, tol=0.1, random_state=0).fit(X)
    assert model.rank_ == 3
    assert model.n_landmarks_ < 400
    assert model.error_.relative > 0.1


def test_growth_ends_within_the_memory_budget():
    many = RNG.normal(size=(9000, 8))
    small = Resources(memory_budget="30MB")
    with pytest.warns(UserWarning, match="memory_budget"):
        model = KreinNystroem(
            DeltaGauss(10.0), landmarks=20, tol=1e-4, resources=small, random_state=0
        ).fit(many)
    assert model.n_landmarks_ in (80, 160)


@pytest.mark.parametrize("method", ["gram", "svd", "sgt"])
def test_no_route_evaluates_a_streamed_row_twice(method):
    f = Counted(K - 0.1)
    landmarks = Landmarks(12, "uniform", core="plain", pool=40)
    model = KreinNystroem(pairwise(f.f), landmarks=landmarks, method=method, random_state=0)
    model.fit(list(range(400)))
    assert f.repeated() <= PROBED


@pytest.mark.parametrize("scheme", [name for name in OBJECT_SCHEMES if name not in WHOLE_SAMPLE])
@pytest.mark.parametrize("core", ["ls", "truncated"])
def test_no_pair_is_evaluated_twice_from_a_small_pool(scheme, core):
    """Other rows are streamed. The paper's schemes let a sketch of all rows go, by design."""
    f = Counted(K - 0.1)
    landmarks = Landmarks(12, scheme, core=core, pool=120)
    KreinNystroem(pairwise(f.f), landmarks=landmarks, random_state=0).fit(list(range(400)))
    assert f.repeated() <= PROBED


@pytest.mark.parametrize("method", ["gram", "svd", "sgt"])
def test_all_routes_make_the_same_approximation(method):
    spec = MapSpec(20, "uniform", method=method, pool=100)
    fitted = fit_map(Pairs(KERNEL.fit(X, RNG), Rows(X), Session()), spec, np.random.default_rng(0))
    Z = fitted.sample.landmarks
    Phi = K[:, Z] @ fitted.map.W
    expected = oracles.nystroem(K[:, Z], K[np.ix_(Z, Z)], K[Z])
    if method == "gram":
        np.testing.assert_allclose((Phi * fitted.map.S) @ Phi.T, expected, atol=1e-8)
    U = K[:, Z] @ fitted.map.E
    np.testing.assert_allclose((U * fitted.map.Lambda) @ U.T, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fitted.gram.matrix, K[:, Z].T @ K[:, Z], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(fitted.columns(X), K[:, Z], rtol=0, atol=1e-13)


def test_the_rank_is_the_smallest_that_keeps_the_tolerance():
    pairs = Pairs(KERNEL.fit(X, RNG), Rows(X), Session())
    spec = MapSpec(12, "uniform", core="ls", tol=0.1)
    fitted = fit_map_to_tolerance(pairs, spec, np.random.default_rng(0), shrink=True)
    rank = len(fitted.map.Lambda)
    assert fitted.error.relative <= 0.1
    spec = replace(spec, rank=rank - 1)
    other = fit_map_to_tolerance(pairs, spec, np.random.default_rng(0), shrink=False)
    assert len(other.map.Lambda) == rank - 1
    assert other.error.relative > 0.1
