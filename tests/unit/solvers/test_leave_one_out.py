"""Leave-one-out from one eigendecomposition equals as many fits as there are objects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kreinlearn.solvers.exact import (
    GUARD,
    Eigenbasis,
    LeaveOneOutLoss,
    Nodes,
    Projected,
    Resolvent,
)
from tests.unit.solvers.left_out import MATRICES, model_without, rotated

PENALTIES = [(1e-3, 1e-3), (1e-1, 1e-4), (1e-4, 1e1), (1e-6, 1e-6), (1e3, 1e-2), (1e6, 1e6)]
STATED = 1e-4  # of the largest prediction, which the module promises


def refits(K, w, Y, c, *, intercept, signed) -> np.ndarray:
    rows = range(len(K))
    return np.array([model_without(K, w, Y, c, i, intercept, signed)(K[i]) for i in rows])


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_equals_n_refits(name, signed, intercept, weighted) -> None:
    rng = np.random.default_rng(len(name) + 2 * weighted)
    n = 30
    K, Y = MATRICES[name](n, rng), rng.normal(size=(n, 2)) + 3.0
    w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    basis = Eigenbasis.of(K, w, signed=signed)
    left_out = LeaveOneOutLoss(basis, Y, intercept=intercept)
    for plus, minus in PENALTIES:
        values = basis.scale * np.array([plus, minus])
        wanted = refits(K, w, Y, basis.n * values, intercept=intercept, signed=signed)
        size = max(np.abs(wanted).max(), np.abs(Y).max())
        assert np.abs(left_out.scores(values) - wanted).max() <= STATED * size, (plus, minus)


# Everything that a search can reach

ACCURACIES = (1e-5, 1e-7)  # that the code asks for
LOWEST, HIGHEST = 1e-10, 1e6  # penalties of a search, of the largest |eigenvalue|
RTOL = 1e-10  # smaller |eigenvalues| are rounding errors to the learners


def manhattan(X: np.ndarray) -> np.ndarray:
    return np.abs(X[:, None] - X).sum(axis=2)


def centred_anew(P: np.ndarray) -> np.ndarray:
    return -0.5 * (P - P.mean(axis=0) - P.mean(axis=1)[:, None] + P.mean())


def gaussian(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.exp(-np.square(X[:, None] - X).sum(axis=2) / 10 ** rng.uniform(-1, 1))


def noisy(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Nearly definite: the negative part is small."""
    E = rng.normal(size=(len(X), len(X)))
    return gaussian(X, rng) + 10 ** rng.uniform(-7, -2) * (E + E.T)


def counted(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers, where parts of a matrix are singular by accident."""
    A = np.round(1.5 * X)
    return (A[:, None] == A).sum(axis=2) - rng.choice([0.0, 1.5])


def nearly_singular(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    signs = rng.choice([-1, 1], len(X), p=[0.3, 0.7])
    return rotated(signs * 10 ** rng.uniform(-9, 0, len(X)), rng)


def copies(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    again = rng.integers(0, max(2, len(X) // 2), len(X))
    return (gaussian(X, rng) + 0.3 * np.tanh(X @ X.T))[np.ix_(again, again)]


SIMILARITIES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "definite": lambda X, rng: np.exp(-manhattan(X) / 10 ** rng.uniform(-1, 1)),
    "smooth": gaussian,
    "rational": lambda X, rng: 1 / (1 - 5 * np.log(gaussian(X, rng))),
    "nearly definite": noisy,
    "low rank": lambda X, rng: (X * rng.choice([-1, 1], X.shape[1])) @ X.T + rng.choice([0, 1]),
    "centred": lambda X, rng: centred_anew(manhattan(X) ** 2),
    "hollow": lambda X, rng: -manhattan(X),
    "tanh": lambda X, rng: np.tanh(X @ X.T - 0.5),
    "indefinite": lambda X, rng: MATRICES["indefinite"](len(X), rng),
    "nearly singular": nearly_singular,
    "copies": copies,
    "counted": counted,
}


def losses_of_refits(
    A: np.ndarray, T: np.ndarray, trials: np.ndarray, rtol: float, *, intercept: bool, signed: bool
) -> np.ndarray:
    """Squared errors of n refits at penalties c (t, 2), from the eigenvectors of each.

    A (n, n) is W^1/2 K W^1/2, and T (n, q + 1) are the targets and ones, times W^1/2.
    """
    n = len(A)
    others = np.array([np.delete(np.arange(n), i) for i in range(n)])
    d, U = np.linalg.eigh(A[others[:, :, None], others[:, None, :]])
    V = np.einsum("ijk,ijq->ikq", U, T[others])
    k = np.einsum("ij,ijk->ik", A[np.arange(n)[:, None], others], U)
    kept = np.abs(d) > rtol * np.abs(d).max(axis=1, keepdims=True)
    found = []
    for plus, minus in trials:
        t, c = (np.abs(d), np.where(d > 0, plus, minus)) if signed else (d * d, plus)
        g = np.where(kept, (np.sign(d) if signed else d) / (t + c), 0.0)
        E = T - np.einsum("ik,ikq->iq", k * g, V)
        left = E[:, :-1]
        if intercept:
            a = np.einsum("ik,ikq->iq", np.where(kept, c / (t + c), 1.0) * V[..., -1], V)
            left = left - a[:, :-1] / a[:, -1:] * E[:, -1:]
        found.append(np.square(left).sum())
    return np.array(found)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_loss_is_that_of_n_refits_wherever_a_search_can_look(name) -> None:
    """With 2 to 60 objects, weighted or not, with and without an intercept, at every accuracy.

    Some fits depend on which eigenvalues count as zero: those of the matrix that was decomposed, or
    of each matrix without an object. Refits that draw the line elsewhere show it, and such trials
    are not compared.
    """
    clear = total = 0
    for seed in range(28):
        rng = np.random.default_rng([seed, len(name)])
        n = int(rng.integers(2, 61 if seed % 2 else 13))
        X, w = rng.normal(size=(n, rng.integers(1, 4))), None
        K = SIMILARITIES[name](X, rng) * 10 ** rng.uniform(-3, 3)
        if seed % 3:
            w = rng.integers(1, 4, n).astype(float) if seed % 3 == 1 else rng.uniform(0.1, 3, n)
        Y = (X.sum(axis=1) if seed % 4 < 2 else rng.normal(size=n))[:, None]
        intercept, signed = seed % 5 != 4, seed % 7 != 6
        basis = Eigenbasis.of(K, w, signed=signed, rtol=RTOL)
        shares = np.concatenate(
            [
                np.exp(rng.uniform(np.log(LOWEST), np.log(HIGHEST), (4, 2))),
                np.exp(rng.uniform(np.log(LOWEST), 0, (2, 1))) * np.ones(2),
                [[LOWEST, HIGHEST], [HIGHEST, 1e-7], [10 ** rng.uniform(-10, -5), HIGHEST]],
            ]
        )
        trials, root, U = shares * basis.scale, basis.root[:, None], basis.spectrum.U
        T = np.hstack([root * (Y - intercept * np.average(Y, axis=0, weights=w)), root])
        how = {"intercept": intercept, "signed": signed}
        truth, *others = (
            losses_of_refits(A, T, basis.n * trials, rtol, **how) / basis.n
            for A in (root * K * root.T, (U * basis.spectrum.D) @ U.T)
            for rtol in (RTOL, RTOL / 100)
        )
        well = truth > 1e-18 * np.square(Y).mean()  # more than rounding errors
        spread = np.abs(np.array(others) - truth).max(axis=0) / np.where(well, truth, 1.0)
        well &= spread < 1e-4
        clear, total = clear + int(well.sum()), total + len(well)
        for accuracy in ACCURACIES:
            loss = LeaveOneOutLoss(basis, Y, intercept=intercept, accuracy=accuracy)
            bound = accuracy * np.maximum(1, GUARD / shares.min(axis=1))
            tight = well & (bound <= 1e-5) & (spread < 1e-7)
            for found in (loss.losses(trials), np.array([loss(values)[0] for values in trials])):
                error = np.abs(found - truth)
                assert (error[well] <= 0.02 * truth[well]).all(), (seed, accuracy, shares, error)
                assert (error[tight] <= 1e-3 * truth[tight]).all(), (seed, accuracy, shares, error)
    assert clear >= 0.75 * total


def test_a_tiny_penalty_beside_that_of_a_part_that_is_not_there() -> None:
    rng = np.random.default_rng(238)
    X = rng.uniform(-2, 2, (8, 3))
    K, Y = 1 / (1 + np.square(X[:, None] - X).sum(axis=2) / 0.2), X.sum(axis=1)[:, None]
    basis, T = Eigenbasis.of(K, None, signed=True), np.hstack([Y, np.ones((8, 1))])
    for minus in (1e-10, 1.0, 1e6):
        values = basis.scale * np.array([1e-10, minus])
        wanted = losses_of_refits(K, T, 8 * values[None], RTOL, intercept=True, signed=True) / 8
        for accuracy in ACCURACIES:
            loss, slopes = LeaveOneOutLoss(basis, Y, intercept=True, accuracy=accuracy)(values)
            assert loss == pytest.approx(wanted[0], rel=1e-4)
            assert slopes[1] == 0


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_a_centred_matrix_is_centred_anew_without_each_object(power, signed) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 40))
        X = rng.normal(size=(n, 3))
        P, Y = manhattan(X) ** power, X.sum(axis=1) + rng.normal(size=n)
        basis = Eigenbasis.of(centred_anew(P), None, signed=signed, rtol=RTOL)
        trials = basis.scale * np.array([(1e-10, 1e6), (1e-6, 1e-6), (1e-3, 1e-1), (1e3, 1e-2)])
        wanted = np.empty((len(trials), n))
        for i in range(n):
            others = np.delete(np.arange(n), i)
            S = P[np.ix_(others, others)]
            k = -0.5 * (P[i, others] - P[i, others].mean() - S.mean(axis=0) + S.mean())
            d, U = np.linalg.eigh(centred_anew(S))
            t = np.abs(d) if signed else d * d
            for j, c in enumerate(n * trials):
                g = (np.sign(d) if signed else d) / (t + (np.where(d > 0, *c) if signed else c[0]))
                g[np.abs(d) <= RTOL * np.abs(d).max()] = 0
                wanted[j, i] = Y[others].mean() + ((k @ U) * g) @ (U.T @ Y[others])
        loss = LeaveOneOutLoss(basis, Y[:, None], intercept=True, centred=True)
        for values, scores in zip(trials, wanted, strict=True):
            found = loss.scores(values)[:, 0]
            np.testing.assert_allclose(found, scores, rtol=0, atol=1e-5 * np.abs(scores).max())


def test_more_nodes_are_more_accurate() -> None:
    rng = np.random.default_rng(0)
    K, Y, w = MATRICES["indefinite"](25, rng), rng.normal(size=(25, 1)), np.ones(25)
    basis = Eigenbasis.of(K, w, signed=True)
    values = basis.scale * np.array([1e-2, 1e-2])
    wanted = refits(K, w, Y, basis.n * values, intercept=True, signed=True)
    errors = []
    for accuracy in (1e-2, 1e-4, 1e-6, 1e-8):
        found = LeaveOneOutLoss(basis, Y, intercept=True, accuracy=accuracy).scores(values)
        errors.append(np.abs(found - wanted).max())
        assert errors[-1] <= 100 * accuracy * np.abs(wanted).max()
    assert errors[-1] < errors[0]


def test_the_loss_is_that_of_the_scores() -> None:
    rng = np.random.default_rng(1)
    K, Y = MATRICES["centred"](20, rng), rng.normal(size=(20, 3))
    w = rng.uniform(0.5, 2.0, 20)
    basis = Eigenbasis.of(K, w, signed=True)
    left_out = LeaveOneOutLoss(basis, Y, intercept=True)
    values = basis.scale * np.array([1e-2, 1e-3])
    each = w * np.square(left_out.scores(values) - Y).sum(axis=1)
    assert left_out(values)[0] == pytest.approx(each.sum() / w.sum(), rel=1e-12)
    assert left_out.per_fold(values) == pytest.approx(each * len(w) / w.sum(), rel=1e-12)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_losses_of_several_penalties_are_those_of_each(signed, intercept) -> None:
    rng = np.random.default_rng(5)
    K, Y, w = MATRICES["centred"](20, rng), rng.normal(size=(20, 3)), rng.uniform(0.5, 2.0, 20)
    basis = Eigenbasis.of(K, w, signed=signed)
    left_out = LeaveOneOutLoss(basis, Y, intercept=intercept)
    trials = basis.scale * np.array(PENALTIES)
    each = [left_out(values)[0] for values in trials]
    assert left_out.losses(trials) == pytest.approx(each, rel=1e-6)  # nodes beyond all differ


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_gradient(name, signed, intercept) -> None:
    rng = np.random.default_rng(2)
    K, Y, w = MATRICES[name](18, rng), rng.normal(size=(18, 2)), rng.uniform(0.5, 2.0, 18)
    basis = Eigenbasis.of(K, w, signed=signed)
    left_out = LeaveOneOutLoss(basis, Y, intercept=intercept)
    values = basis.scale * np.array([1e-2, 1e-3])
    loss, gradient = left_out(values)
    for j in range(2):
        step = 1e-5
        up, down = values.copy(), values.copy()
        up[j] *= np.exp(step)
        down[j] *= np.exp(-step)
        slope = (left_out(up)[0] - left_out(down)[0]) / (2 * step)
        assert gradient[j] == pytest.approx(slope, abs=1e-5 * max(loss, 1.0))


def test_the_map_of_all_objects_would_leak() -> None:
    """The usual shortcut, which keeps the eigenvectors of all objects, calls noise learnable."""
    rng = np.random.default_rng(3)
    n = 80
    K = np.exp(-3 * np.abs(rng.normal(size=(n, 1)) - rng.normal(size=(1, n))))
    K = (K + K.T) / 2 - np.diag(rng.uniform(0, 3, n))
    Y = rng.choice([-1.0, 1.0], size=(n, 1))
    basis = Eigenbasis.of(K, None, signed=True)
    values = basis.scale * np.array([1e-6, 1e-6])
    honest = LeaveOneOutLoss(basis, Y, intercept=False)(values)[0]
    Phi = basis.spectrum.U * np.sqrt(np.abs(basis.spectrum.D))
    H = Phi @ np.linalg.solve(Phi.T @ Phi + n * values[0] * np.eye(Phi.shape[1]), Phi.T)
    wanted = refits(K, np.ones(n), Y, n * values, intercept=False, signed=True)
    leaky = np.square((Y - H @ Y) / (1 - np.diagonal(H))[:, None]).mean()
    assert honest == pytest.approx(np.square(wanted - Y).mean(), rel=1e-3)
    assert abs(leaky - honest) > 0.1 * honest


def test_one_object_per_class() -> None:
    K, Y = np.eye(3) + 0.5, 2 * np.eye(3) - 1
    basis = Eigenbasis.of(K, None, signed=True)
    values = basis.scale * np.array([1e-2, 1e-2])
    wanted = refits(K, np.ones(3), Y, 3 * values, intercept=True, signed=True)
    found = LeaveOneOutLoss(basis, Y, intercept=True).scores(values)
    assert np.abs(found - wanted).max() <= STATED


def test_two_objects() -> None:
    """Without one of them the matrix is a single zero, and the prediction is the other's target."""
    basis = Eigenbasis.of(np.array([[0.0, 1.0], [1.0, 0.0]]), None, signed=True)
    Y = np.array([[1.0], [5.0]])
    found = LeaveOneOutLoss(basis, Y, intercept=True).scores(np.array([0.1, 0.2]))
    assert found == pytest.approx(Y[::-1], abs=5 * STATED)


def test_a_zero_matrix_predicts_the_mean_of_the_others() -> None:
    basis = Eigenbasis.of(np.zeros((4, 4)), None, signed=True)
    Y = np.arange(4.0)[:, None]
    wanted = (Y.sum() - Y) / 3
    found = LeaveOneOutLoss(basis, Y, intercept=True).scores(np.array([0.1, 0.2]))
    assert found == pytest.approx(wanted, abs=5 * STATED)
    coefficients, b = Projected(basis, Y, intercept=True).solve(np.array([0.1, 0.2]))
    assert coefficients.shape == (0, 1)
    assert b == pytest.approx(Y.mean())


@pytest.mark.parametrize("least", [1e-10, 1e-3])
def test_weights_integrate_the_filter_of_both_signs(least) -> None:
    """The rule itself, on single eigenvalues t: c_+ / (t + c_+), c_- / (|t| + c_-), and 1 for zero.

    The largest |eigenvalue| is one, and ``least`` the smallest.
    """
    accuracy = 1e-7
    nodes = Nodes(least, accuracy)
    eigenvalues = np.array([-1.0, -0.03, -least, least, 2 * least, 0.4, 1.0])
    left = 1j * nodes.s / (eigenvalues[:, None] + 1j * nodes.s)  # of a target, by the resolvent
    for c in [1e-12, 1e-9, 1e-5, 1e-2, 1.0, 1e3, 1e8]:
        for other in [1e-12, 1e-4, 1.0, 1e8]:
            weights = nodes.weights(np.array([[c, other], [other, c]]).T)
            found = left.view(np.float64) @ weights[:, :, 0]
            for k, (plus, minus) in enumerate([(c, other), (other, c)]):
                penalty = np.where(eigenvalues > 0, plus, minus)
                wanted = penalty / (np.abs(eigenvalues) + penalty)
                # accuracy of q / (1 - q) down to c = GUARD: penalties are changed by that part
                assert np.abs(found[:, k] - wanted).max() <= 10 * GUARD * accuracy
            zero = np.tile([1.0, 0.0], len(nodes.s)) @ weights[:, :, 0]
            assert zero == pytest.approx(1.0, abs=10 * GUARD * accuracy)


def test_equal_penalties_are_integrated_to_a_relative_error() -> None:
    accuracy = 1e-7
    nodes = Nodes(1e-6, accuracy)
    eigenvalues = np.array([1e-6, 1e-3, 0.4, 1.0])
    left = (1j * nodes.s / (eigenvalues[:, None] + 1j * nodes.s)).view(np.float64)
    for c in [1e-12, 1e-8, 1e-4, 1.0, 1e4]:
        found = left @ nodes.weights(np.array([[c], [c]]))[:, 0, 0]
        np.testing.assert_allclose(found, c / (eigenvalues + c), rtol=accuracy)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_combinations_of_targets(signed, intercept) -> None:
    """All is linear in the targets: the loss of combinations is that of combined targets."""
    rng = np.random.default_rng(4)
    K, Y, w = MATRICES["indefinite"](20, rng), rng.normal(size=(20, 5)), rng.uniform(0.5, 2.0, 20)
    M = rng.normal(size=(5, 2))
    basis = Eigenbasis.of(K, w, signed=signed)
    values = basis.scale * np.array([1e-2, 1e-1])
    combined = LeaveOneOutLoss(basis, Y, intercept=intercept).combined(M)
    directly = LeaveOneOutLoss(basis, Y @ M, intercept=intercept)
    size = np.abs(directly.scores(values)).max()
    assert combined.scores(values) == pytest.approx(directly.scores(values), abs=1e-9 * size)
    assert combined(values)[0] == pytest.approx(directly(values)[0], rel=1e-9)
    assert combined(values)[1] == pytest.approx(directly(values)[1], abs=1e-9 * size**2)


@pytest.mark.parametrize("signed", [True, False])
def test_a_null_space_of_some_objects_only(signed) -> None:
    """Copies have one, and the objects that are unrelated to them do not."""
    rng = np.random.default_rng(5)
    K = np.zeros((20, 20))
    K[:10, :10] = MATRICES["indefinite"](10, rng)
    K[10:, 10:] = MATRICES["repeated objects"](10, rng)
    Y, w = rng.normal(size=(20, 2)) + 3.0, np.ones(20)
    basis = Eigenbasis.of(K, w, signed=signed)
    null = Resolvent(basis).null
    assert (null > 0).any()
    assert (null == 0).any()
    for intercept in (True, False):
        values = basis.scale * np.array([1e-2, 1e-3])
        wanted = refits(K, w, Y, basis.n * values, intercept=intercept, signed=signed)
        found = LeaveOneOutLoss(basis, Y, intercept=intercept).scores(values)
        assert np.abs(found - wanted).max() <= STATED * np.abs(wanted).max()


@pytest.mark.parametrize("unit", [2.0**-20, 1.0, 2.0**20])
@pytest.mark.parametrize("name", ["indefinite", "singular"])
def test_the_smallest_eigenvalue_is_that_of_matrices_without_an_object_too(name, unit) -> None:
    """It is found to first order, and is right up to a small factor; the largest one is one."""
    K = unit * MATRICES[name](15, np.random.default_rng(2))
    sizes = []
    for i in range(15):
        d = np.abs(np.linalg.eigvalsh(np.delete(np.delete(K, i, 0), i, 1)))
        sizes.append(d[d > 1e-12 * d.max()].min())
    least = min(sizes) / np.linalg.norm(K, 2)
    assert least / 30 <= Resolvent(Eigenbasis.of(K, None, signed=True)).least() <= 3 * least


def test_the_smallest_eigenvalue_of_a_definite_matrix_is_its_own() -> None:
    """By interlacing no part of it has an eigenvalue outside of its own."""
    K = rotated(np.linspace(1.0, 2.0, 12), np.random.default_rng(3))
    found = Resolvent(Eigenbasis.of(K, None, signed=True)).least()
    assert found == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_penalties_far_above_all_eigenvalues_predict_the_mean_of_the_others(size) -> None:
    rng = np.random.default_rng(3)
    K, Y = size * MATRICES["indefinite"](20, rng), rng.normal(size=(20, 1)) + 3.0
    loss = LeaveOneOutLoss(Eigenbasis.of(K, None, signed=True), Y, intercept=True)
    wanted = (Y.sum() - Y) / 19
    for share in (1e10, 1e14):
        found = loss.scores(share * loss.basis.scale * np.ones(2))
        np.testing.assert_allclose(found, wanted, rtol=STATED)


def test_a_large_mean_costs_no_digits() -> None:
    rng = np.random.default_rng(3)
    K, Y = MATRICES["indefinite"](20, rng), rng.normal(size=(20, 1))
    for signed in (True, False):
        basis = Eigenbasis.of(K, None, signed=signed)
        values = basis.scale * np.array([0.1, 0.1])
        near, far = (
            LeaveOneOutLoss(basis, Y + mean, intercept=True).scores(values) - mean
            for mean in (0.0, 2.0**30)
        )
        assert np.abs(near - far).max() <= 1e-4 * np.abs(near).max()


@pytest.mark.parametrize("signed", [True, False])
def test_values_beside_the_penalties_change_nothing(signed) -> None:
    rng = np.random.default_rng(3)
    K, Y = MATRICES["indefinite"](20, rng), rng.normal(size=(20, 1))
    loss = LeaveOneOutLoss(Eigenbasis.of(K, None, signed=signed), Y, intercept=True)
    two = loss.basis.scale * np.array([0.1, 0.01])
    more = np.append(two, [7.0, 8.0])
    value, gradient = loss(two)
    again, longer = loss(more)
    assert again == value
    np.testing.assert_array_equal(longer, np.append(gradient, [0.0, 0.0]))
    np.testing.assert_array_equal(loss.losses(more[None]), loss.losses(two[None]))


def test_the_scale_is_the_largest_eigenvalue_of_the_gram_matrix_of_the_features() -> None:
    rng = np.random.default_rng(3)
    for size in (0.01, 100.0):
        K, w = size * MATRICES["indefinite"](20, rng), rng.uniform(0.5, 2, 20)
        root = np.sqrt(w)
        largest = np.linalg.norm(root[:, None] * K * root, 2)
        for signed, wanted in ((True, largest), (False, largest**2)):
            basis = Eigenbasis.of(K, w, signed=signed)
            assert basis.scale == pytest.approx(wanted / w.sum(), rel=1e-12)
    assert Eigenbasis.of(np.zeros((5, 5)), None, signed=True).scale == 1.0


def test_objects_without_a_part_in_the_null_space_have_none_of_any_target() -> None:
    """Two groups that are unlike each other: one of full rank, one of rank three.

    Rounding errors would be divided by the smallest nodes, which are 1e-12 of the eigenvalues.
    """
    rng = np.random.default_rng(5)
    K, A = np.zeros((20, 20)), rng.normal(size=(8, 3))
    K[:12, :12], K[12:, 12:] = MATRICES["indefinite"](12, rng), (A * [1, -1, 1]) @ A.T
    T = rng.normal(size=(20, 4))
    found = Resolvent(Eigenbasis.of(K, None, signed=True)).outside(T)
    assert (found[:12] == 0).all()
    wanted = T[12:] - A @ np.linalg.lstsq(A, T[12:], rcond=None)[0]
    np.testing.assert_allclose(found[12:], wanted, rtol=0, atol=1e-11)
