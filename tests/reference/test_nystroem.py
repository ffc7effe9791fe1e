"""Cores, routes and extensions of the approximation against their dense definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

from kreinlearn import KreinNystroem, KreinPCA, Landmarks
from kreinlearn.kernels import DeltaGauss
from kreinlearn.nystrom.core import (
    OBSERVED_RTOL,
    SWEEPS,
    least_squares_core,
    one_shot,
    whiten,
)
from kreinlearn.nystrom.fit import squared_route
from tests import oracles

RNG = np.random.default_rng(20)
X = RNG.normal(size=(160, 3))
X_NEW = RNG.normal(size=(23, 3))
K = oracles.delta_gauss(X, X, 6.0, 4.0)
K_NEW = oracles.delta_gauss(X_NEW, X, 6.0, 4.0)
Z = RNG.permutation(160)[:20]
KERNEL = DeltaGauss(width=6.0, ratio=4.0)


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


@pytest.fixture(scope="module")
def plain():
    return KreinNystroem(KERNEL, landmarks=Landmarks(Z, core="plain")).fit(X)


def conditioning():
    return np.linalg.cond(K[np.ix_(Z, Z)])


def test_plain_core_is_the_nystroem_matrix(plain):
    expected = oracles.nystroem(K[:, Z], K[np.ix_(Z, Z)], K[Z])
    assert relative(plain.approximate(X), expected) < 1e-14 * conditioning()
    assert set(plain.signature_) == {-1, 1}


def test_plain_core_extends_to_new_objects(plain):
    expected = oracles.nystroem(K_NEW[:, Z], K[np.ix_(Z, Z)], K[Z])
    assert relative(plain.approximate(X_NEW, X), expected) < 1e-14 * conditioning()


def test_dropping_the_signature_is_noticed(plain):
    Phi = plain.transform(X)
    expected = oracles.nystroem(K[:, Z], K[np.ix_(Z, Z)], K[Z])
    assert relative(Phi @ Phi.T, expected) > 0.5


def test_features_are_the_papers(plain):
    """Phi = K_XZ U |D|^-1/2 S, up to the sign of a column."""
    D, U = np.linalg.eigh(K[np.ix_(Z, Z)])
    order = np.argsort(-np.abs(D))
    expected = K[:, Z] @ (U / np.sqrt(np.abs(D)) * np.sign(D))[:, order]
    Phi = plain.transform(X)
    np.testing.assert_array_equal(plain.signature_, np.sign(D[order]))
    signs = np.sign((Phi * expected).sum(0))
    np.testing.assert_allclose(Phi * signs, expected, atol=1e-10 * np.abs(expected).max())


def test_landmarks_are_reproduced_exactly(plain):
    np.testing.assert_allclose(plain.approximate(X[Z], X), K[Z], atol=1e-14 * conditioning())


ROUTES = [(core, method) for core in ("plain", "truncated") for method in ("gram", "svd", "sgt")]


@pytest.mark.parametrize(("core", "method"), [*ROUTES, ("ls", "gram")])
def test_one_shot_eigendecomposition(core, method):
    model = KreinNystroem(
        KERNEL, landmarks=Landmarks(Z, core=core), method=method, random_state=0
    ).fit(X)
    U, K_tilde = model.eigenvectors(X), model.approximate(X)
    # the Gram routes square the condition of C; the cut-off of 1e-6 leaves 4 digits at worst
    slack = 1e-10 if method == "svd" else 1e-4
    assert np.abs(U.T @ U - np.eye(U.shape[1])).max() < slack
    assert relative((U * model.eigenvalues_) @ U.T, K_tilde) < slack
    top = np.linalg.eigvalsh(K_tilde)
    top = top[np.argsort(-np.abs(top))][:5]
    np.testing.assert_allclose(model.eigenvalues_[:5], top, rtol=1e-6)


def test_rank_keeps_the_largest_eigenvalues_of_the_approximation():
    model = KreinNystroem(KERNEL, landmarks=Landmarks(Z, core="plain"), rank=7).fit(X)
    whole = oracles.nystroem(K[:, Z], K[np.ix_(Z, Z)], K[Z])
    assert relative(model.approximate(X), oracles.best_rank(whole, 7)) < 1e-6
    assert model.transform(X).shape == (160, 7)
    assert model.rank_ == 7


def test_truncated_core_inverts_the_largest_eigenvalues_only():
    model = KreinNystroem(KERNEL, landmarks=Landmarks(Z, core="truncated"), rank=9).fit(X)
    pinv = np.linalg.pinv(oracles.best_rank(K[np.ix_(Z, Z)], 9), rcond=1e-10)
    assert relative(model.approximate(X), K[:, Z] @ pinv @ K[Z]) < 1e-10


def test_squared_route_agrees_with_one_shot():
    C, K_ZZ = K[:, Z], K[np.ix_(Z, Z)]
    E, Lambda = squared_route(C, K_ZZ)
    U = C @ E
    assert relative((U * Lambda) @ U.T, oracles.nystroem(C, K_ZZ, C.T)) < 1e-4


def test_least_squares_core_is_the_weighted_projection():
    Q = np.linalg.qr(K[:, Z])[0]
    R = RNG.permutation(160)[:50]
    M = least_squares_core(Q[R], K[np.ix_(R, R)], len(K))
    expected = oracles.weighted_projection(Q[R], K[np.ix_(R, R)], len(K), SWEEPS, OBSERVED_RTOL)
    assert relative(M, expected) < 1e-10


def test_a_direction_that_the_rows_do_not_show_is_left_out():
    """Two rows carry the last direction and neither is in R: its share of K is lost, no more."""
    Q = np.zeros((200, 6))
    Q[2:, :5] = np.linalg.qr(RNG.normal(size=(198, 5)))[0]
    Q[2:, 5], Q[:2, 5] = 1e-6, np.sqrt(0.5)
    noise = RNG.normal(size=(200, 200))
    K_few = (Q * [9.0, -7.0, 5.0, -3.0, 2.0, 0.5]) @ Q.T + 1e-3 * (noise + noise.T)
    R = np.arange(2, 80)
    M = least_squares_core(Q[R], K_few[np.ix_(R, R)], 200)
    assert np.linalg.norm(K_few - Q @ M @ Q.T) < 1.0


def test_least_squares_core_on_all_rows_is_near_the_projection():
    """With R = X and equal weights M = Q'KQ; leverage weights change it by little here."""
    Q = np.linalg.qr(RNG.normal(size=(160, 12)))[0]
    assert relative(least_squares_core(Q, K, 160), Q.T @ K @ Q) < 0.3
    even = np.kron(np.eye(4), np.ones((40, 1))) / np.sqrt(40)  # every row has the same leverage
    assert relative(least_squares_core(even, K, 160), even.T @ K @ even) < 1e-13


@pytest.mark.parametrize("core", ["plain", "ls"])
def test_a_kernel_of_low_rank_is_recovered(core):
    F = RNG.normal(size=(160, 8))
    S = np.array([1, 1, 1, -1, -1, 1, -1, 1.0])
    low = (F * S) @ F.T
    model = KreinNystroem("precomputed", landmarks=Landmarks(16, core=core), random_state=0).fit(
        low
    )
    assert model.rank_ == 8
    assert (model.signature_ < 0).sum() == 3
    assert relative(model.approximate(low), low) < 1e-9


def test_every_object_a_landmark_is_exact():
    model = KreinNystroem(KERNEL, landmarks=None).fit(X)
    assert model.n_landmarks_ == 160
    assert relative(model.approximate(X), K) < 1e-8
    np.testing.assert_allclose(
        model.eigenvalues_[:30],
        sorted(np.linalg.eigvalsh(K), key=abs, reverse=True)[:30],
        rtol=1e-8,
    )


def test_reference_routes_refuse_the_least_squares_core():
    with pytest.raises(ValueError, match=r'method="svd".*core="plain"'):
        KreinNystroem(KERNEL, method="svd").fit(X)


def test_least_squares_core_beats_the_plain_one():
    """l = k: the plain core is several times the optimum, at worst by far; ours is not."""
    wide = np.random.default_rng(5).normal(size=(400, 8))
    K_wide = oracles.delta_gauss(wide, wide, 16.0, 4.0)
    best = np.linalg.norm(K_wide - oracles.best_rank(K_wide, 25))
    ratios = {
        core: np.median([
            np.linalg.norm(
                K_wide - KreinNystroem(DeltaGauss(16.0, 4.0), landmarks=Landmarks(25, core=core),
                                       random_state=s).fit(wide).approximate(wide)
            ) / best
            for s in range(5)
        ])
        for core in ("ls", "plain")
    }  # fmt: skip
    assert ratios["ls"] < 2.2 < 3 * ratios["ls"] < ratios["plain"]


def test_equal_lambdas_are_scikit_learns_nystroem_with_ridge():
    """|K_ZZ| and K_ZZ have the same span: ridge on either is the same function (2e-14 apart)."""
    y = np.sin(X).sum(1)
    theirs = Nystroem(kernel=lambda a, b: oracles.delta_gauss(a[None], b[None], 6.0, 4.0)[0, 0],
                      n_components=20, random_state=3).fit(X)  # fmt: skip
    ours = KreinNystroem(KERNEL, landmarks=Landmarks(theirs.component_indices_, core="plain")).fit(
        X
    )
    predictions = [
        Ridge(alpha=0.3, fit_intercept=False).fit(m.transform(X), y).predict(m.transform(X_NEW))
        for m in (theirs, ours)
    ]
    np.testing.assert_allclose(*predictions, rtol=1e-10, atol=1e-10)


def test_scikit_learns_nystroem_reproduces_the_flipped_matrix():
    theirs = Nystroem(kernel="precomputed", n_components=160).fit(K)
    Phi = theirs.transform(K)
    flipped = oracles.flipped(K)
    assert relative(Phi @ Phi.T, flipped) < 1e-8
    assert relative(Phi @ Phi.T, K) > 0.5


def test_whiten_gives_orthonormal_columns():
    C = RNG.normal(size=(50, 8)) * np.logspace(0, -3, 8)
    Q = C @ whiten(C.T @ C)
    assert np.abs(Q.T @ Q - np.eye(8)).max() < 1e-8


def test_one_shot_of_an_indefinite_factor():
    Phi, S = RNG.normal(size=(40, 6)), np.array([1, -1, 1, -1, 1, 1.0])
    E, Lambda = one_shot(Phi.T @ Phi, np.eye(6), S)
    expected = np.linalg.eigvalsh((Phi * S) @ Phi.T)
    np.testing.assert_allclose(Lambda, sorted(expected, key=abs, reverse=True)[:6], rtol=1e-10)
    assert np.abs((Phi @ E).T @ (Phi @ E) - np.eye(6)).max() < 1e-12


def test_pca_is_the_eigendecomposition_of_the_centred_matrix():
    model = KreinPCA(6, kernel=KERNEL, landmarks=None).fit(X)
    D, U = np.linalg.eigh(oracles.centred(K))
    order = np.argsort(-np.abs(D))[:6]
    np.testing.assert_allclose(model.eigenvalues_, D[order], rtol=1e-6)
    np.testing.assert_array_equal(model.signature_, np.sign(D[order]))
    expected = U[:, order] * np.sqrt(np.abs(D[order]))
    Y = model.transform(X)
    Y = Y * np.sign((Y * expected).sum(0))
    np.testing.assert_allclose(Y, expected, atol=1e-6)
    np.testing.assert_allclose(Y.mean(0), 0, atol=1e-10)
    np.testing.assert_allclose(
        model.explained_abs_ratio_, np.abs(D[order]) / np.abs(D).sum(), rtol=1e-5
    )
    np.testing.assert_allclose(
        model.explained_squared_ratio_, D[order] ** 2 / (D**2).sum(), rtol=1e-5
    )


def test_pca_embeds_new_objects_by_their_centred_similarities():
    """Y_new diag(S) Y' is the centred cross-similarity, projected on the axes kept."""
    model = KreinPCA(10, kernel=KERNEL, landmarks=None).fit(X)
    Y_new, Y = model.transform(X_NEW), model.transform(X)
    cross = K_NEW - K_NEW.mean(1)[:, None] - K.mean(0) + K.mean()
    U = np.linalg.svd(oracles.centred(K))[0][:, :10]
    assert relative((Y_new * model.signature_) @ Y.T, cross @ U @ U.T) < 1e-7


def test_pca_of_distances_gives_the_distances_back():
    D = np.abs(X[:, :1] - X[:, :1].T) ** 0.5 + 0.1 * (1 - np.eye(160))
    model = KreinPCA(159, kernel="precomputed_dissimilarity", landmarks=None).fit(D)
    Y = model.transform(D)
    gaps = Y[:, None, :] - Y[None, :, :]
    np.testing.assert_allclose((model.signature_ * gaps**2).sum(2), D**2, atol=1e-6)


def test_error_estimate_of_all_rows_is_the_error(plain):
    exact = np.linalg.norm(K - plain.approximate(X)) / np.linalg.norm(K)
    estimate = plain.estimate_error(X, n_rows=160)
    assert estimate.relative == pytest.approx(exact, rel=1e-10)
    assert estimate.standard_error == 0


def test_error_estimate_is_unbiased_and_its_spread_is_right():
    model = KreinNystroem(KERNEL, landmarks=20, random_state=0).fit(X)
    exact = np.linalg.norm(K - model.approximate(X)) / np.linalg.norm(K)
    draws = [model.estimate_error(X, n_rows=60, random_state=s) for s in range(200)]
    squares = np.array([d.relative for d in draws]) ** 2
    error = squares.std() / np.sqrt(len(draws))
    assert abs(squares.mean() - exact**2) < 4 * error + 0.01 * exact**2
    spread = np.std([d.relative for d in draws])
    assert 0.6 < np.median([d.standard_error for d in draws]) / spread < 1.6


@pytest.mark.parametrize("tol", [0.3, 0.03])
def test_landmarks_grow_to_the_tolerance(tol):
    big = RNG.normal(size=(1200, 4))
    model = KreinNystroem(KERNEL, landmarks=8, tol=tol, rank="auto", random_state=0).fit(big)
    exact = oracles.delta_gauss(big, big, 6.0, 4.0)
    error = np.linalg.norm(exact - model.approximate(big)) / np.linalg.norm(exact)
    assert model.error_.relative <= tol
    assert abs(error - model.error_.relative) < 5 * model.error_.standard_error
    fewer = model.eigenvectors(big)[:, :-1]
    smaller = (fewer * model.eigenvalues_[:-1]) @ fewer.T
    assert np.linalg.norm(exact - smaller) / np.linalg.norm(exact) > 0.9 * tol
