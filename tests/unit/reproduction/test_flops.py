"""The count of operations: routes that end with the same thing, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.kernels import DeltaGauss
from reproduction import flops
from reproduction.scale import ALL, QUICK

TINY = replace(QUICK, flop_sizes=((300, 10), (400, 20)), repeats=1)


def timed(*ratios, svd=10.0):
    """Rows of n = 1000 and growing m with the given seconds of SGT, one-shot taking one."""
    same = {"gram": 1.0, "svd": svd, "gram apart": 0.0, "svd apart": 0.0, "sgt apart": 1e-9}
    return {
        f"flops/all/n {n} m {m}": [{"n": n, "m": m, "sgt": ratio, **same}]
        for (n, m), ratio in zip(ALL.flop_sizes, ratios, strict=False)
    }


@pytest.mark.parametrize("name", flops.ROUTES)
def test_routes_give_the_eigenvalues_of_the_nystroem_matrix(name):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 40))
    K = A + A.T
    C, K_ZZ = K[:, :6], K[:6, :6]
    whole = np.linalg.eigvalsh(C @ np.linalg.solve(K_ZZ, C.T))
    expected = whole[np.argsort(-np.abs(whole))[:6]]
    assert (expected < 0).any()
    found = flops.ROUTES[name].run(C, K_ZZ)
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-7)


def test_counts_are_the_papers():
    n, m = 1000, 10
    assert flops.ROUTES["gram"].operations(n, m) == 3 * m**2 * n + 3 * m**3
    assert flops.ROUTES["sgt"].operations(n, m) == 7 * m**2 * n + 2 * m**3
    assert flops.predicted(10**9, 2) == pytest.approx(7 / 3)
    assert flops.predicted(10, 10) == pytest.approx(9 / 6)


def test_the_prescribed_matrix_has_its_eigenvalues():
    C, K_ZZ, Lambda = flops.prescribed(0)
    np.testing.assert_array_equal(K_ZZ, K_ZZ.T)
    assert abs(Lambda[-1]) == pytest.approx(10.0**-flops.DECADES)
    big = np.abs(Lambda) > 1e-3  # the rest is lost in the inverse
    R = np.linalg.qr(C, mode="r")
    found = np.linalg.eigvalsh(R @ np.linalg.pinv(K_ZZ, rcond=1e-7) @ R.T)
    assert flops.nearest(found, Lambda[big]).max() < 1e-4


def test_nearest_is_relative():
    found = flops.nearest(np.array([1.0, -0.5]), np.array([1.1, -0.5, 0.25]))
    np.testing.assert_allclose(found, [0.1 / 1.1, 0.0, 3.0])


def test_eigenvalues_count_down_to_the_first_that_is_missed():
    rows = [
        {"route": "sgt", "size": size, "apart": apart}
        for size, apart in [(1.0, 1e-9), (0.1, 1e-3), (0.01, 0.5), (0.001, 1e-4)]
    ]
    assert flops.smallest_found(rows, "sgt") == 0.1


def test_a_small_run():
    tasks = flops.tasks(TINY)
    assert [task.alone for task in tasks] == [True, True, False]
    found = flops.section(TINY, {task.key: task.run() for task in tasks})
    decades = {
        name: found.numbers[f"flops/known eigenvalues/{name}/decades"] for name in flops.ROUTES
    }
    assert decades["sgt"] < decades["gram"] <= decades["svd"]
    assert found.numbers["flops/n=400/m=20/SGT over one-shot"] > 0
    assert all(check.holds is not None for check in found.checks)


@pytest.mark.parametrize(
    ("ratios", "holds"),
    [((2.2, 2.3, 2.4, 2.2, 2.1), [True, True]), ((0.9, 2, 2, 2, 1.5), [False, False])],
)
def test_checks(ratios, holds):
    found = flops.section(ALL, timed(*ratios))
    assert [check.holds for check in found.checks] == holds
    assert found.checks[0].found == f"{min(ratios):.2f}"
    assert found.checks[1].found == f"{ratios[-1]:.2f}"  # n = 100,000, m = 250


def test_a_slower_singular_value_decomposition_is_said():
    slow = flops.section(ALL, timed(2.0, 2.0)).blocks[2]
    fast = flops.section(ALL, timed(2.0, 2.0, svd=1.0)).blocks[2]
    assert "at 0 of 2 sizes" in slow
    assert "more work than it is counted as" in slow
    assert "more work than it is counted as" not in fast


def test_nothing_measured():
    found = flops.section(ALL, {})
    assert [check.holds for check in found.checks] == [None, None]
    assert found.numbers == {}


@pytest.mark.parametrize("name", flops.ROUTES)
def test_routes_are_those_of_the_library(name):
    X = np.random.default_rng(1).normal(size=(80, 3))
    kernel = DeltaGauss(width=6.0).fit(X, np.random.default_rng(0))
    K = kernel(X)
    landmarks = Landmarks(np.arange(9), core="plain")
    model = KreinNystroem(kernel, landmarks=landmarks, method=name).fit(X)
    computed = flops.ROUTES[name].run(K[:, :9], K[:9, :9])
    assert (computed < 0).any()
    np.testing.assert_allclose(np.sort(computed), np.sort(model.eigenvalues_), rtol=1e-6)
