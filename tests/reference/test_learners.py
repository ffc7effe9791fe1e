"""Learners with given penalties against dense solutions of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from kreinlearn import (
    KreinNystroem,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    KreinVCRidgeClassifier,
    Landmarks,
    Resources,
    SimilarityRidge,
    SimilarityRidgeClassifier,
)
from kreinlearn.kernels import DeltaGauss, Gaussian, Sigmoid
from tests import oracles
from tests.cases import random_orthogonal

RNG = np.random.default_rng(31)
N, M, NEW = 150, 18, 40
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(NEW, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], np.cos(X).sum(1)]) + 0.1
Y += 0.1 * RNG.normal(size=Y.shape)
LABELS = np.digitize(Y[:, 2], np.quantile(Y[:, 2], [0.2, 0.6]))  # three classes of 30, 60, 60
Z = RNG.permutation(N)[:M]
KERNEL = DeltaGauss(width=6.0, ratio=4.0)
K, K_NEW = oracles.delta_gauss(X, X, 6.0, 4.0), oracles.delta_gauss(X_NEW, X, 6.0, 4.0)
C, C_NEW, K_ZZ = K[:, Z], K_NEW[:, Z], K[np.ix_(Z, Z)]
TWO = (3e-3, 4e-2)  # lambda_plus, lambda_minus
LAMBDAS = {"lambda_plus": TWO[0], "lambda_minus": TWO[1]}


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


def fit(model, y, kernel=KERNEL, **params):
    return model(kernel, **{"landmarks": Z, **LAMBDAS, **params}).fit(X, y)


def both(model, f=None):
    """Predictions of training and new objects, one below the other."""
    f = f or model.predict
    return np.concatenate([f(X), f(X_NEW)])


def sigmoid(A, B):
    return np.tanh(0.3 * A @ B.T - 0.4)


def prescribed(rng):
    """Training and cross similarities; the training part has random signs and a null space."""
    D = np.geomspace(50, 0.05, 70) * rng.choice([-1.0, 1.0], 70)
    D[::7] = 0.0
    Q = random_orthogonal(70, rng)
    K = (Q * D) @ Q.T
    return 0.5 * (K + K.T), rng.normal(size=(25, 70)), rng.normal(size=70)


# Exact mode


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lambdas", [TWO, (0.5, 1e-3), (0.02, 0.02)])
def test_exact_mode_is_the_papers_alpha(seed, lambdas):
    K, K_x, y = prescribed(np.random.default_rng(seed))
    alpha = oracles.exact_alpha(K, y, *lambdas)
    model = KreinRidge(
        "precomputed", landmarks=None, lambda_plus=lambdas[0], lambda_minus=lambdas[1],
        fit_intercept=False,
    ).fit(K, y)  # fmt: skip
    assert model.rank_ == 60
    assert set(model.signature_) == {-1, 1}
    assert relative(model.predict(K), K @ alpha) < 1e-11
    assert relative(model.predict(K_x), K_x @ alpha) < 1e-11
    assert relative(model.dual_coef_, alpha[model.landmark_indices_]) < 1e-11


VECTORS = {
    "delta_gauss": (KERNEL, K, K_NEW),
    "sigmoid": (Sigmoid(gain=0.3, bias=-0.4), sigmoid(X, X), sigmoid(X_NEW, X)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_exact_mode_on_vectors_is_the_papers_alpha(name):
    kernel, K, K_x = VECTORS[name]
    alpha = oracles.exact_alpha(K, Y, *TWO)
    model = KreinRidge(kernel, landmarks=None, fit_intercept=False, **LAMBDAS).fit(X, Y)
    assert model.n_landmarks_ == N
    assert relative(model.predict(X), K @ alpha) < 1e-9
    assert relative(model.predict(X_NEW), K_x @ alpha) < 1e-9


@pytest.mark.parametrize("name", VECTORS)
def test_exact_mode_with_a_constant(name):
    kernel, K, K_x = VECTORS[name]
    a, b = oracles.krein_ridge(K, K, Y, TWO)
    model = KreinRidge(kernel, landmarks=None, **LAMBDAS).fit(X, Y)
    assert relative(model.predict(X), K @ a + b) < 1e-8
    assert relative(model.predict(X_NEW), K_x @ a + b) < 1e-8
    np.testing.assert_allclose(model.intercept_, b, rtol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_exact_mode_minimises_the_penalised_mean(intercept):
    """The definition itself: its gradient in the coefficients and the constant is zero."""
    K, _, y = prescribed(np.random.default_rng(9))
    K += 0.01 * np.eye(70)  # no null space
    model = KreinRidge("precomputed", landmarks=None, fit_intercept=intercept, **LAMBDAS)
    model.fit(K, y)
    a = np.empty(70)
    a[model.landmark_indices_] = model.dual_coef_
    flip = oracles.flipped(K)
    penalty = 0.5 * (TWO[0] * (flip + K) + TWO[1] * (flip - K))
    residual = y - model.predict(K)
    gradient = penalty @ a - K @ residual / 70
    assert np.linalg.norm(gradient) < 1e-10 * np.linalg.norm(K @ y / 70)
    assert (abs(residual.mean()) < 1e-12) == intercept


@pytest.mark.parametrize("seed", range(3))
def test_equal_penalties_are_kernel_ridge_with_the_flipped_matrix(seed):
    """Proposition 1; new rows are k_x' P, P = sign(K)."""
    rng = np.random.default_rng(seed)
    K, K_x, y = prescribed(rng)
    K += 0.01 * np.eye(70)
    P = oracles.matrix_sign(K)
    H = oracles.flipped(K)
    reference = KernelRidge(alpha=70 * 0.02, kernel="precomputed").fit(H, y)
    model = KreinRidge("precomputed", landmarks=None, lambda_plus=0.02, lambda_minus=0.02,
                       fit_intercept=False).fit(K, y)  # fmt: skip
    assert relative(model.predict(K), reference.predict(H)) < 1e-9
    assert relative(model.predict(K_x), reference.predict(K_x @ P)) < 1e-9
    assert relative(model.predict(K_x), reference.predict(K_x)) > 0.1


def test_a_positive_definite_kernel_is_kernel_ridge():
    reference = KernelRidge(alpha=N * 1e-3, kernel="rbf", gamma=1.0).fit(X, Y)
    for lambda_minus in (1e-3, 1e3):  # nothing is negative
        model = KreinRidge(Gaussian(1.0), landmarks=np.arange(N), lambda_plus=1e-3,
                           lambda_minus=lambda_minus, fit_intercept=False).fit(X, Y)  # fmt: skip
        assert (model.signature_ == 1).all()
        assert relative(both(model), both(reference)) < 1e-9


# Low rank


def test_equal_penalties_are_nystroem_with_ridge():
    theirs = Nystroem(
        kernel=lambda a, b: oracles.delta_gauss(a[None], b[None], 6.0, 4.0)[0, 0],
        n_components=M, random_state=3,
    ).fit(X)  # fmt: skip
    Phi = theirs.transform(X)
    reference = Ridge(alpha=N * 0.01, fit_intercept=False).fit(Phi, Y)
    ours = fit(KreinRidge, Y, landmarks=theirs.component_indices_, lambda_plus=0.01,
               lambda_minus="equal", fit_intercept=False)  # fmt: skip
    assert ours.lambda_minus_ == 0.01
    expected = np.concatenate([reference.predict(Phi), reference.predict(theirs.transform(X_NEW))])
    np.testing.assert_allclose(both(ours), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
def test_two_penalties(intercept):
    a, b = oracles.krein_ridge(C, K_ZZ, Y, TWO, intercept=intercept)
    model = fit(KreinRidge, Y, fit_intercept=intercept)
    expected = np.concatenate([C @ a + b, C_NEW @ a + b])
    assert set(model.signature_) == {-1, 1}
    assert relative(both(model), expected) < 1e-9
    swapped = oracles.krein_ridge(C, K_ZZ, Y, TWO[::-1], intercept=intercept)
    assert relative(C @ swapped[0] + swapped[1], expected[:N]) > 0.01
    np.testing.assert_array_equal(model.landmark_indices_, Z)
    assert relative(model.dual_coef_, a) < 1e-7


def test_coefficients_are_those_of_features():
    """z* = (Phi'Phi + n Lambda_pm)^-1 Phi'y, up to order and sign of coordinates."""
    Phi, S = oracles.krein_features(C, K_ZZ)
    penalty = N * np.where(S > 0, *TWO)
    expected = np.linalg.solve(Phi.T @ Phi + np.diag(penalty), Phi.T @ Y)
    coef = fit(KreinRidge, Y, fit_intercept=False).coef_
    assert coef.shape == (3, M)
    np.testing.assert_allclose(
        np.sort(np.abs(coef), axis=1), np.sort(np.abs(expected.T), axis=1), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("model", [KreinRidge, KreinVCRidge, SimilarityRidge])
def test_outputs_are_independent(model):
    params = {"lambda_plus": 0.01, "landmarks": Z}
    params |= {} if model is SimilarityRidge else LAMBDAS
    whole = model(KERNEL, **params).fit(X, Y)
    for j, y in enumerate(Y.T):
        one = model(KERNEL, **params).fit(X, y)
        assert one.predict(X_NEW).shape == (NEW,)
        np.testing.assert_allclose(
            whole.predict(X_NEW)[:, j], one.predict(X_NEW), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("core", ["truncated", "ls"])
def test_other_cores_solve_the_same_problem_on_their_features(core):
    """The features are the transformer's; what is checked is the penalty on their signature."""
    landmarks = Landmarks(Z, core=core)
    nystroem = KreinNystroem(KERNEL, landmarks=landmarks, rank=10, random_state=0).fit(X)
    Phi, Phi_new = nystroem.transform(X), nystroem.transform(X_NEW)
    penalty = N * np.where(nystroem.signature_ > 0, *TWO)
    F, T = Phi - Phi.mean(0), Y - Y.mean(0)
    z = np.linalg.solve(F.T @ F + np.diag(penalty), F.T @ T)
    params = {"landmarks": Landmarks(Z, core=core, rank=10), "random_state": 0}
    model = KreinRidge(KERNEL, cv=KFold(2), **params, **LAMBDAS).fit(X, Y)  # draws no folds
    assert relative(model.predict(X_NEW), (Phi_new - Phi.mean(0)) @ z + Y.mean(0)) < 1e-8


# Classifiers


@pytest.mark.parametrize(
    ("classifier", "regressor"),
    [(KreinRidgeClassifier, KreinRidge), (KreinVCRidgeClassifier, KreinVCRidge)],
)
def test_one_vs_rest_is_regression_on_signs(classifier, regressor):
    names = np.array(["c", "a", "b"])[LABELS]  # classes_ are a, b, c
    columns = np.where(names[:, None] == np.array(["a", "b", "c"]), 1.0, -1.0)
    many = fit(classifier, names)
    expected = fit(regressor, columns).predict(X_NEW)
    np.testing.assert_allclose(many.decision_function(X_NEW), expected, rtol=1e-9, atol=1e-9)
    assert (many.predict(X_NEW) == np.array(["a", "b", "c"])[expected.argmax(1)]).all()
    two = fit(classifier, LABELS > 0)
    expected = fit(regressor, np.where(LABELS > 0, 1.0, -1.0)).predict(X_NEW)
    np.testing.assert_allclose(two.decision_function(X_NEW), expected, rtol=1e-9, atol=1e-9)
    assert (two.predict(X_NEW) == (expected > 0)).all()


# Variance-constrained


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("radius", ["auto", 0.2, [0.3, 0.8, 2.5]])
def test_variance_constrained(intercept, radius):
    Phi, S = oracles.krein_features(C, K_ZZ)
    Phi_new = oracles.krein_features(C_NEW, K_ZZ)[0]
    mean, ybar = (Phi.mean(0), Y.mean(0)) if intercept else (0.0, np.zeros(3))
    radii = np.sqrt(((Y - ybar) ** 2).mean(0)) if radius == "auto" else radius * np.ones(3)
    model = fit(KreinVCRidge, Y, radius=radius, fit_intercept=intercept)
    np.testing.assert_allclose(model.radius_, radii, rtol=1e-12)
    predicted = both(model)
    for j, r in enumerate(radii):
        z = oracles.variance_constrained(
            Phi - mean, Y[:, j] - ybar[j], N * np.where(S > 0, *TWO), r * np.sqrt(N)
        )
        expected = np.concatenate([(Phi - mean) @ z, (Phi_new - mean) @ z]) + ybar[j]
        assert relative(predicted[:, j], expected) < 1e-7
    spread = predicted[:N].std(0) if intercept else np.sqrt((predicted[:N] ** 2).mean(0))
    np.testing.assert_allclose(spread, radii, rtol=1e-10)


def test_no_other_function_of_that_variance_is_better():
    """Brute force: random feasible points around the solution have a larger objective."""
    Phi, S = oracles.krein_features(C, K_ZZ)
    Phi, y = Phi - Phi.mean(0), Y[:, 0] - Y[:, 0].mean()
    f = fit(KreinVCRidge, Y[:, 0], radius=0.5).predict(X) - Y[:, 0].mean()
    z = np.linalg.lstsq(Phi, f, rcond=None)[0]
    assert relative(Phi @ z, f) < 1e-7  # up to the mean of f, which is that of y

    def objective(z):
        return N * np.where(S > 0, *TWO) @ z**2 - 2 * z @ Phi.T @ y

    for size in np.repeat([1e-3, 1e-1, 1.0, 10.0], 50):
        other = z + size * np.abs(z).mean() * RNG.normal(size=len(z))
        other *= 0.5 * np.sqrt(N) / np.linalg.norm(Phi @ other)
        assert objective(other) > objective(z)


# Squared hinge

SIGNS = np.where(LABELS > 0, 1.0, -1.0)
HINGE = (1e-4, 2e-3)
HINGES = {"lambda_plus": HINGE[0], "lambda_minus": HINGE[1]}


def hinge_problem():
    Phi, S = oracles.krein_features(C, K_ZZ)
    return Phi, N * np.where(S > 0, *HINGE)


def hinge_value(model, signs=SIGNS):
    """The objective of a fitted model from its predictions and landmark coefficients."""
    plus, minus = (np.sum((R @ model.dual_coef_) ** 2) for R in oracles.part_roots(K_ZZ))
    f = model.decision_function(X)
    return oracles.squared_hinge(f, signs, np.sqrt([plus, minus]), N * np.array(HINGE))[0]


def test_svm_is_linear_svc_on_scaled_features():
    Phi, penalty = hinge_problem()
    scaled = Phi / np.sqrt(penalty)
    reference = LinearSVC(
        loss="squared_hinge", dual=False, C=0.5, fit_intercept=False, tol=1e-12, max_iter=100_000
    ).fit(scaled, SIGNS)
    f = reference.decision_function(scaled)
    theirs = oracles.squared_hinge(f, SIGNS, reference.coef_[0], np.ones(M))[0]
    model = fit(KreinSVC, SIGNS, fit_intercept=False, **HINGES)
    assert 0 < np.sum(SIGNS * f < 1) < N
    assert hinge_value(model) == pytest.approx(theirs, rel=1e-8)
    assert relative(model.decision_function(X), f) < 1e-5
    new = oracles.krein_features(C_NEW, K_ZZ)[0] / np.sqrt(penalty)
    assert relative(model.decision_function(X_NEW), reference.decision_function(new)) < 1e-5


@pytest.mark.parametrize("weighted", [False, True])
def test_svm_with_a_constant_minimises_its_definition(weighted):
    w = RNG.uniform(0.2, 3, N) if weighted else np.ones(N)
    Phi, S = oracles.krein_features(C, K_ZZ)
    penalty = w.sum() * np.where(S > 0, *HINGE)

    def objective(u):  # coefficients of features with unit penalty, then the constant
        z, b = u[:-1] / np.sqrt(penalty), u[-1]
        value, slope = oracles.squared_hinge(Phi @ z + b, SIGNS, z, penalty, w)
        gradient = (Phi.T @ slope + 2 * penalty * z) / np.sqrt(penalty)
        return value, np.append(gradient, slope.sum())

    found = minimize(
        objective, np.zeros(M + 1), jac=True, method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 5000, "maxfun": 9000},
    )  # fmt: skip
    model = KreinSVC(KERNEL, landmarks=Z, **HINGES).fit(X, SIGNS, w if weighted else None)
    f = model.decision_function(X)
    z = np.linalg.lstsq(Phi, f - model.intercept_, rcond=None)[0]
    value, gradient = objective(np.append(np.sqrt(penalty) * z, model.intercept_))
    assert value == pytest.approx(found.fun, rel=1e-8)
    assert np.abs(gradient).max() < 1e-7 * value
    expected = Phi @ (found.x[:-1] / np.sqrt(penalty)) + found.x[-1]
    assert relative(f, expected) < 1e-4


def test_svm_of_many_classes_is_a_machine_a_class():
    many = fit(KreinSVC, LABELS, **HINGES).decision_function(X_NEW)
    for j in range(3):
        one = fit(KreinSVC, np.equal(LABELS, j), **HINGES)
        np.testing.assert_allclose(many[:, j], one.decision_function(X_NEW), rtol=1e-7, atol=1e-7)


def test_svm_in_exact_mode_solves_its_definition():
    Phi, S = oracles.krein_features(K, K)
    penalty = N * np.where(S > 0, *HINGE)
    scaled = Phi / np.sqrt(penalty)
    reference = LinearSVC(
        loss="squared_hinge", dual=False, C=0.5, fit_intercept=False, tol=1e-12, max_iter=100_000
    ).fit(scaled, SIGNS)
    f = reference.decision_function(scaled)
    model = KreinSVC(KERNEL, landmarks=None, fit_intercept=False, **HINGES).fit(X, SIGNS)
    assert relative(model.decision_function(X), f) < 1e-5
    new = oracles.krein_features(K_NEW, K)[0] / np.sqrt(penalty)
    assert relative(model.decision_function(X_NEW), reference.decision_function(new)) < 1e-5


# Similarity features


@pytest.mark.parametrize("intercept", [False, True])
def test_similarity_ridge_is_ridge_on_similarities(intercept):
    reference = Ridge(alpha=N * 0.01, fit_intercept=intercept).fit(C, Y)
    model = SimilarityRidge(KERNEL, landmarks=Z, lambda_plus=0.01, fit_intercept=intercept)
    model.fit(X, Y)
    assert relative(model.predict(X_NEW), reference.predict(C_NEW)) < 1e-10
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-9, atol=1e-12)


def test_similarity_ridge_classifier_is_ridge_on_signs():
    reference = Ridge(alpha=N * 0.01).fit(C, np.where(LABELS[:, None] == np.arange(3), 1.0, -1.0))
    model = SimilarityRidgeClassifier(KERNEL, landmarks=Z, lambda_plus=0.01)
    scores = model.fit(X, LABELS).decision_function(X_NEW)
    assert relative(scores, reference.predict(C_NEW)) < 1e-10


# More rows than are held

MANY = np.random.default_rng(8).normal(size=(9000, 3))
MANY_Y = np.sin(2 * MANY[:, 0]) + MANY[:, 1] * MANY[:, 2]
MANY_Z = np.arange(7, 9000, 750)


@pytest.fixture(scope="module")
def many():
    C = oracles.delta_gauss(MANY, MANY[MANY_Z], 6.0, 4.0)
    return C, C[MANY_Z]


def test_streamed_ridge(many):
    C, K_ZZ = many
    a, b = oracles.krein_ridge(C, K_ZZ, MANY_Y, TWO)
    model = KreinRidge(KERNEL, landmarks=MANY_Z, **LAMBDAS).fit(MANY, MANY_Y)
    assert relative(model.predict(MANY), (C @ a + b)[:, 0]) < 1e-9


def test_streamed_variance_constrained(many):
    Phi, S = oracles.krein_features(*many)
    F, T = Phi - Phi.mean(0), MANY_Y - MANY_Y.mean()
    z = oracles.variance_constrained(F, T, 9000 * np.where(S > 0, *TWO), 0.7 * np.sqrt(9000))
    model = KreinVCRidge(KERNEL, landmarks=MANY_Z, radius=0.7, **LAMBDAS).fit(MANY, MANY_Y)
    assert relative(model.predict(MANY), F @ z + MANY_Y.mean()) < 1e-8


def test_streamed_similarity_features(many):
    reference = Ridge(alpha=9000 * 0.01).fit(many[0], MANY_Y)
    model = SimilarityRidge(KERNEL, landmarks=MANY_Z, lambda_plus=0.01).fit(MANY, MANY_Y)
    assert relative(model.predict(MANY), reference.predict(many[0])) < 1e-9


@pytest.mark.parametrize("memory_budget", [None, "500kB"])  # the second holds no features
def test_streamed_svm(many, memory_budget):
    Phi, S = oracles.krein_features(*many)
    penalty = 9000 * np.where(S > 0, *HINGE)
    scaled, signs = Phi / np.sqrt(penalty), np.sign(MANY_Y)
    reference = LinearSVC(
        loss="squared_hinge", dual=False, C=0.5, fit_intercept=False, tol=1e-12, max_iter=100_000
    ).fit(scaled, signs)
    landmarks, resources = Landmarks(MANY_Z, pool=500), Resources(memory_budget=memory_budget)
    model = KreinSVC(KERNEL, landmarks=landmarks, fit_intercept=False, resources=resources,
                     **HINGES).fit(MANY, signs)  # fmt: skip
    assert relative(model.decision_function(MANY), reference.decision_function(scaled)) < 1e-5
