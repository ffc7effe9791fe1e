"""Errors and optima without the matrix, against the matrix; signatures matter in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.vectors import DeltaGauss
from reproduction import matrix_free
from reproduction.matrix_free import Tiled, eigen_form, optimal_errors
from tests.oracles import delta_gauss

Array = NDArray[Any]


class Bilinear(Kernel):
    """k(x, z) = x' diag(D) z: with orthonormal rows a matrix of the eigenvalues D."""

    def __init__(self, D: Array) -> None:
        self.D = D

    def columns(self, Z: Array) -> Any:
        return lambda A, out=None: (A * self.D) @ Z.T

    def diagonal(self, A: Array) -> Array:
        return np.asarray(np.square(A) @ self.D)


def of_spectrum(D: Array, seed: int) -> Tiled:
    X = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(D), len(D))))[0]
    return Tiled(X, Bilinear(D))


def of_delta_gauss(n: int, d: int, width: float) -> tuple[Tiled, Array]:
    X = np.random.default_rng(n).standard_normal((n, d))
    kernel = DeltaGauss(width=width, ratio=4.0).fit(X, np.random.default_rng(0))
    return Tiled(X, kernel), delta_gauss(X, X, width, 4.0)


def best_by_definition(K: Array, ranks: list[int]) -> Array:
    magnitudes = np.sort(np.abs(np.linalg.eigvalsh(K)))[::-1]
    return np.array([np.sqrt(np.sum(magnitudes[k:] ** 2)) for k in ranks])


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles, the last of them short, and no matrix small enough to be held."""
    monkeypatch.setattr(matrix_free, "TILE", 128)
    monkeypatch.setattr(matrix_free, "DENSE", 0)


@pytest.mark.usefixtures("small_tiles")
def test_tiles_make_the_matrix():
    tiled, K = of_delta_gauss(300, 3, 4.0)
    V = np.random.default_rng(1).standard_normal((300, 7))
    KV, square = tiled.times(V)
    assert np.allclose(tiled.whole(), K, atol=1e-12)
    assert np.allclose(KV, K @ V, atol=1e-10)
    assert square == pytest.approx(np.sum(K**2), rel=1e-12)


@pytest.mark.usefixtures("small_tiles")
def test_errors_are_those_of_the_matrix():
    tiled, K = of_delta_gauss(300, 3, 4.0)
    rng = np.random.default_rng(0)
    models = [
        KreinNystroem(
            tiled.kernel, landmarks=Landmarks(40, core=core), rank=20, random_state=0
        ).fit(tiled.X)
        for core in ("ls", "plain")
    ]
    factors = [(m.transform(tiled.X), m.signature_) for m in models]
    factors += [
        (scale * rng.standard_normal((300, 4)), np.array([1, -1, -1, 1])) for scale in (1, 1e7)
    ]
    factors.reverse()  # an explosion takes no digits from what comes after it
    factors += [(np.empty((300, 0)), np.empty(0))]  # of rank 0
    found = tiled.squared_errors(factors)
    expected = [np.sum((K - (Phi * S) @ Phi.T) ** 2) for Phi, S in factors]
    assert np.allclose(found, expected, rtol=1e-10)
    ignoring_signs = [np.sum((K - Phi @ Phi.T) ** 2) for Phi, _ in factors[:-1]]
    assert not np.isclose(found[:-1], ignoring_signs, rtol=1e-3).any()


@pytest.mark.usefixtures("small_tiles")
def test_a_small_error_beside_huge_columns_that_cancel():
    """The terms are ten thousand times the matrix, and what is left is a hundredth of it."""
    D = np.concatenate([np.linspace(3, 1, 10), np.full(190, 1e-3)]) * np.tile([1.0, -1.0], 100)
    tiled = of_spectrum(D, 3)
    U, far = tiled.X[:, :10], 100 * tiled.X[:, :1]
    Phi = np.hstack([U * np.sqrt(np.abs(D[:10])), far, far])
    S = np.concatenate([np.sign(D[:10]), [1.0, -1.0]])
    assert tiled.squared_errors([(Phi, S)])[0] == pytest.approx(190e-6, rel=1e-5)


def test_an_exact_factorisation_has_no_error():
    tiled = of_spectrum(np.array([2.0, -1.0, 0.5]), 0)
    Phi = tiled.X * np.sqrt([2.0, 1.0, 0.5])
    assert tiled.squared_errors([(Phi, np.array([1, -1, 1]))])[0] == pytest.approx(0, abs=1e-14)


def test_the_eigen_form_of_a_factorisation():
    rng = np.random.default_rng(5)
    Phi, S = rng.standard_normal((30, 6)), np.array([1, -1, 1, 1, -1, -1])
    U, D = eigen_form(Phi, S)
    assert np.allclose(U.T @ U, np.eye(6))
    assert np.allclose((U * D) @ U.T, (Phi * S) @ Phi.T)


SPECTRA = {
    "slow": 1 / np.arange(1, 401),
    "fast": 0.9 ** np.arange(400),
    "clusters": np.repeat([8.0, 4.0, 2.0, 1.0, 0.5, 0.1], [3, 17, 5, 25, 50, 300]),
    "flat": np.concatenate([np.full(5, 30.0), np.linspace(1.2, 1.0, 395)]),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.usefixtures("small_tiles")
def test_optima_of_prescribed_spectra(name):
    """Signs drawn at random; found from above, and close to it."""
    rng, ranks = np.random.default_rng(len(name)), [1, 5, 10, 20, 30]
    D = SPECTRA[name] * rng.choice([-1.0, 1.0], 400)
    expected = np.array([np.sqrt(np.sum(np.sort(D**2)[: 400 - k])) for k in ranks])
    found = optimal_errors(of_spectrum(D, 1), ranks)
    assert np.all(found >= expected * (1 - 1e-9))
    assert np.all(found <= expected * (1 + 3e-4))


@pytest.mark.usefixtures("small_tiles")
def test_optima_of_a_kernel_matrix():
    tiled, K = of_delta_gauss(600, 6, 5.0)
    ranks = [5, 25, 50]
    expected = best_by_definition(K, ranks)
    found = optimal_errors(tiled, ranks)
    assert np.all(found >= expected * (1 - 1e-9))
    assert np.all(found <= expected * (1 + 1e-4))


@pytest.mark.usefixtures("small_tiles")
def test_a_direction_that_no_landmark_sees_is_found():
    """One pair of objects, alike to nothing but each other, has the largest eigenvalue."""
    X = np.zeros((400, 3))
    X[:, 0] = np.linspace(0, 1, 400)
    X[150] = X[301] = [0, 9, 0]
    signs = np.array([1.0, -2.0, 1.0])
    K = (X * signs) @ X.T
    # the square of the error is a difference of squares, which are summed pairwise
    rounding = np.log2(K.size) * np.finfo(np.float64).eps * np.sum(K**2)
    found = optimal_errors(Tiled(X, Bilinear(signs)), [1, 2])[1]
    assert found == pytest.approx(0, abs=np.sqrt(rounding))


def test_few_rows_are_decomposed_and_ranks_beyond_them_leave_nothing():
    tiled, K = of_delta_gauss(60, 2, 2.0)
    ranks = [1, 10, 60, 100]
    assert np.allclose(optimal_errors(tiled, ranks)[:2], best_by_definition(K, ranks[:2]))
    assert not optimal_errors(tiled, ranks)[2:].any()


@pytest.mark.usefixtures("small_tiles")
def test_an_iteration_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr(matrix_free, "MOST_PASSES", 1)
    with pytest.warns(UserWarning, match="not settled after 1 passes"):
        optimal_errors(of_spectrum(SPECTRA["slow"], 0), [5])
