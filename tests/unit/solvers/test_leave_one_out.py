"""Leave-one-out from one eigendecomposition equals as many fits as there are objects."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.solvers.exact import (
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


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_weights_integrate_both_filters(unit) -> None:
    """The rule itself, on single eigenvalues: 1 / (t + c), -1 / (|t| + c), and zero cut."""
    nodes = Nodes.between(1e-3 * unit, 1e2 * unit, 1e-9)
    for t in unit * np.array([-40.0, -1.0, -2e-3, 2e-3, 0.5, 70.0]):
        for c in unit * np.array([1e-5, 1e-2, 1.0, 1e3, 1e18]):
            values = 1 / (t + 1j * nodes.s)
            parts = np.concatenate([values.real, values.imag])
            for other in (3 * c, 1e18 * unit):
                penalties = np.array([c, other])
                weights, cut = nodes.weights(penalties, np.array([1.0, -1.0]))
                for i, sign in enumerate((1, -1)):
                    below = abs(t) + penalties[i]
                    wanted = sign / below if sign * t > 0 else 0.0
                    assert parts @ weights[:, i, 0] == pytest.approx(wanted, abs=1e-7 / below)
                    assert parts @ cut[:, i, 0] == pytest.approx(wanted, abs=1e-4 / below)
    pole = np.concatenate([np.zeros(len(nodes.s)), -1 / nodes.s])
    c = 0.3 * unit
    weights, cut = nodes.weights(np.array([c, c]), np.array([1.0, -1.0]))
    for i, sign in enumerate((1, -1)):
        assert pole @ weights[:, i, 0] == pytest.approx(sign * 0.5 / c, rel=1e-6)
        assert pole @ cut[:, i, 0] == pytest.approx(0.0, abs=1e-6 / unit)


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
def test_magnitudes_cover_the_matrices_without_an_object(name, unit) -> None:
    """The smallest is found by one step of Newton's method, and is right up to a small factor."""
    K = unit * MATRICES[name](15, np.random.default_rng(2))
    least, most = Resolvent(Eigenbasis.of(K, None, signed=True)).magnitudes()
    sizes = []
    for i in range(15):
        d = np.abs(np.linalg.eigvalsh(np.delete(np.delete(K, i, 0), i, 1)))
        sizes.append(d[d > 1e-12 * d.max()].min())
    assert most == pytest.approx(np.linalg.norm(K, 2), rel=1e-12)
    assert min(sizes) / 30 <= least <= 3 * min(sizes)


def test_magnitudes_of_a_definite_matrix_are_its_own() -> None:
    """By interlacing no part of it has an eigenvalue outside of its own."""
    K = rotated(np.linspace(1.0, 2.0, 12), np.random.default_rng(3))
    found = Resolvent(Eigenbasis.of(K, None, signed=True)).magnitudes()
    assert found == pytest.approx((1.0, 2.0), rel=1e-12)


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
