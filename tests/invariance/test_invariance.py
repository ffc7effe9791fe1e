"""What must not change a result: scale, order, memory, threads, the size of the pool."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from kreinlearn import KreinNystroem, KreinPCA, Landmarks, Resources
from kreinlearn.kernels import DeltaGauss, pairwise
from kreinlearn.nystrom.schemes import SCHEMES
from tests import oracles

RNG = np.random.default_rng(7)
X = RNG.normal(size=(300, 4))
K = oracles.delta_gauss(X, X, 8.0, 4.0) - 0.1
OBJECT_SCHEMES = [name for name in SCHEMES if "medoids" not in name]


def fit(K, **params):
    params = {"landmarks": 30, "rank": 12, "random_state": 1, **params}
    return KreinNystroem("precomputed", **params).fit(K)


@pytest.mark.parametrize("exponent", [-300, -77, -1, 1, 50, 300])
@pytest.mark.parametrize("core", ["ls", "truncated", "plain"])
def test_powers_of_four_scale_exactly(core, exponent):
    c = 4.0**exponent
    landmarks = Landmarks(30, core=core)
    one, other = fit(K, landmarks=landmarks), fit(c * K, landmarks=landmarks)
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    np.testing.assert_array_equal(one.signature_, other.signature_)
    np.testing.assert_allclose(other.eigenvalues_ / c, one.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(
        other.transform(c * K) / 2.0**exponent, one.transform(K), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("exponent", [-300, 300])
def test_pca_scales(exponent):
    c = 4.0**exponent
    one = KreinPCA(3, kernel="precomputed", random_state=0).fit(K)
    other = KreinPCA(3, kernel="precomputed", random_state=0).fit(c * K)
    np.testing.assert_allclose(other.transform(c * K) / 2.0**exponent, one.transform(K), atol=1e-10)
    np.testing.assert_allclose(other.explained_squared_ratio_, one.explained_squared_ratio_)


@pytest.mark.parametrize("core", ["truncated", "plain"])
def test_order_of_rows_does_not_matter(core):
    Z = np.arange(0, 300, 12)
    order = RNG.permutation(300)
    place = np.argsort(order)
    one = KreinNystroem("precomputed", landmarks=Landmarks(Z, core=core)).fit(K)
    other = KreinNystroem("precomputed", landmarks=Landmarks(place[Z], core=core))
    other.fit(K[np.ix_(order, order)])
    np.testing.assert_allclose(
        other.approximate(K[np.ix_(order, order)]),
        one.approximate(K)[np.ix_(order, order)],
        atol=1e-9 * np.abs(one.approximate(K)).max(),
    )


@pytest.fixture(scope="module")
def many():
    return RNG.normal(size=(20_000, 5))


def test_memory_and_threads_change_no_bit(many):
    landmarks = Landmarks(40, pool=1500)

    def results(**params):
        model = KreinNystroem(DeltaGauss(10.0), landmarks=landmarks, random_state=3, **params)
        model.fit(many)
        return [model.landmark_indices_, model.eigenvalues_, model.transform(many[:3000])]

    one = results(n_jobs=1)
    small, large = (Resources(memory_budget=budget) for budget in ("6MB", 1e9))
    for params in ({"n_jobs": 2}, {"n_jobs": 5}, {"resources": small}, {"resources": large}):
        for a, b in zip(one, results(**params), strict=True):
            np.testing.assert_array_equal(a, b)


def test_blas_threads_change_no_bit():
    """Two processes with one and two BLAS threads give the same bytes."""
    code = (
        "import numpy as np, hashlib; from kreinlearn import KreinNystroem;"
        "X = np.random.default_rng(0).normal(size=(9000, 6));"
        "m = KreinNystroem('delta_gauss', landmarks=60, random_state=0).fit(X);"
        "print(hashlib.sha256(m.eigenvalues_.tobytes() + m.transform(X).tobytes()).hexdigest())"
    )
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


@pytest.mark.parametrize("scheme", ["uniform", "leverage", "kmeans++"])
def test_streamed_rows_give_what_rows_in_memory_give(many, scheme):
    """The plain core of given landmarks, with the rows in a pool of 500 and all in memory."""
    X = many[:5000]
    model = KreinNystroem(DeltaGauss(10.0), landmarks=Landmarks(30, scheme), random_state=0)
    Z = model.fit(X).landmark_indices_
    whole, streamed = (
        KreinNystroem(DeltaGauss(10.0), landmarks=Landmarks(Z, core="plain", pool=pool)).fit(X)
        for pool in (8192, 500)
    )
    np.testing.assert_allclose(streamed.eigenvalues_[:20], whole.eigenvalues_[:20], rtol=1e-8)


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_streaming_keeps_the_accuracy(many, scheme):
    """A pool of 10 l rows and the reservoir cost next to nothing against a pool of every row."""
    X = many[:4000, :3]
    seen = X[::4]
    exact = oracles.delta_gauss(seen, seen, 6.0, 4.0)

    def error(pool):
        landmarks = Landmarks(40, scheme, pool=pool)
        models = [
            KreinNystroem(DeltaGauss(6.0), landmarks=landmarks, rank=20, random_state=seed)
            for seed in range(3)
        ]
        return np.median([np.linalg.norm(exact - m.fit(X).approximate(seen)) for m in models])

    assert error(400) < 1.5 * error(8192)


def test_a_seed_repeats_and_another_does_not():
    a, b, c = (fit(K, random_state=s).landmark_indices_ for s in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("scheme", OBJECT_SCHEMES)
def test_objects_and_matrix_give_the_same_model(scheme):
    def k(a, b):
        d2 = float(((a - b) ** 2).sum())
        return np.exp(-d2 / 8.0) - np.exp(-4 * d2 / 8.0) - 0.1

    params = {"landmarks": Landmarks(30, scheme), "rank": 12, "random_state": 1}
    objects = KreinNystroem(pairwise(k), **params).fit(list(X))
    matrix = KreinNystroem("precomputed", **params).fit(K)
    np.testing.assert_array_equal(objects.landmark_indices_, matrix.landmark_indices_)
    np.testing.assert_allclose(
        objects.approximate(list(X)), matrix.approximate(K), rtol=1e-9, atol=1e-9
    )
