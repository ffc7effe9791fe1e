"""Leave-one-out from one eigendecomposition equals as many fits as there are objects."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.solvers.exact import Eigenbasis, LeaveOneOutLoss, Nodes, Projected
from tests.unit.solvers.left_out import MATRICES, model_without

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


def test_weights_integrate_both_filters() -> None:
    """The rule itself, on single eigenvalues: 1 / (t + c), -1 / (|t| + c), and zero cut."""
    nodes = Nodes.between(1e-3, 1e2, 1e-9)
    for t in (-40.0, -1.0, -2e-3, 2e-3, 0.5, 70.0):
        for c in (1e-5, 1e-2, 1.0, 1e3):
            values = 1 / (t + 1j * nodes.s)
            parts = np.concatenate([values.real, values.imag])
            penalties = np.array([c, 3 * c])
            weights, cut = nodes.weights(penalties, np.array([1.0, -1.0]))
            for i, sign in enumerate((1, -1)):
                below = abs(t) + penalties[i]
                wanted = sign / below if sign * t > 0 else 0.0
                assert parts @ weights[:, i, 0] == pytest.approx(wanted, abs=1e-7 / below)
                assert parts @ cut[:, i, 0] == pytest.approx(wanted, abs=1e-4 / below)
    pole = np.concatenate([np.zeros(len(nodes.s)), -1 / nodes.s])
    weights, cut = nodes.weights(np.array([0.3, 0.3]), np.array([1.0, -1.0]))
    for i, sign in enumerate((1, -1)):
        assert pole @ weights[:, i, 0] == pytest.approx(sign * 0.5 / 0.3, rel=1e-6)
        assert pole @ cut[:, i, 0] == pytest.approx(0.0, abs=1e-6)


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
