"""Rows as Newton's method sees them: their sums, and the squared hinge loss of their margins."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.solvers.margins import GATHERED, DenseRows, hinge_loss
from tests.bounds import rounding


@pytest.mark.parametrize("k", [0, 5, GATHERED, GATHERED + 3])
def test_terms_of_dense_rows(k):
    rng = np.random.default_rng(k)
    Phi = rng.normal(size=(2 * GATHERED, 4))
    numbers = np.sort(rng.choice(len(Phi), k, replace=False))
    w, T = rng.uniform(0, 2, k), rng.normal(size=(k, 3))
    A, B = DenseRows(Phi).terms(numbers, w, T)
    picked = Phi[numbers]
    for found, left, right in ((A, picked, picked), (B, picked, T)):
        wanted = np.einsum("i,ij,ik->jk", w, left, right)
        size = np.einsum("i,ij,ik->jk", w, np.abs(left), np.abs(right))
        assert (np.abs(found - wanted) <= 2 * rounding(k + 2) * size).all()
    one = DenseRows(Phi).terms(numbers, w, T[:, 0])[1]
    size = np.abs(picked).T @ (w * np.abs(T[:, 0]))
    assert (np.abs(one - B[:, 0]) <= 2 * rounding(k + 2) * size).all()


def test_loss_and_its_derivative():
    rng = np.random.default_rng(17)
    F, w = rng.normal(size=(30, 2)), rng.uniform(0, 2, 30)
    Y = rng.choice([-1.0, 0.0, 1.0], size=(30, 2))
    loss, slope = hinge_loss(F, Y, w)
    each = w @ np.where(Y == 0, 0.0, np.maximum(0, 1 - Y * F)) ** 2
    assert loss == pytest.approx(each.sum(), rel=2 * rounding(F.size + 4))  # positive terms
    direction = rng.normal(size=F.shape)
    ends = [hinge_loss(F + step * direction, Y, w)[0] for step in (1e-6, -1e-6)]
    assert np.vdot(slope, direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)
    assert (slope[Y == 0] == 0).all()
