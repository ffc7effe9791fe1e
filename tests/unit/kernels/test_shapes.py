"""Shapes against their definitions, pair by pair, and against scipy and POT."""

from __future__ import annotations

import pickle
import sys
from itertools import permutations
from typing import Any

import numpy as np
import ot
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize_scalar
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn.base import clone

from kreinlearn import KreinRidgeClassifier
from kreinlearn.datasets import load_dataset
from kreinlearn.kernels.base import resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.objects import LANES
from kreinlearn.kernels.shapes import CURVES, STRIP, Chamfer, EarthMover, Procrustes, Turning
from tests.unit.kernels.object_checks import check_pieces

Points = NDArray[np.float64]
SETS = [Chamfer(), EarthMover()]
CONTOURS = [
    Procrustes(),
    Procrustes(n_points=30, reflect=True),
    Turning(),
    Turning(n_points=30, reflect=True),
]
KERNELS = SETS + CONTOURS
FEW = settings(max_examples=15, deadline=None, derandomize=True)


def sets_of(n: int, p: int = 2, largest: int = 7, seed: int = 0) -> list[Points]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((k, p)) for k in rng.integers(2, largest + 1, n)]


def contours(n: int, seed: int = 0) -> list[Points]:
    """Star-shaped outlines of 12 to 30 points, some run through clockwise, some closed."""
    rng = np.random.default_rng(seed)
    made = []
    for i, k in enumerate(rng.integers(12, 31, n)):
        angle = 2 * np.pi * (np.arange(k) + rng.uniform(-0.3, 0.3, k)) / k
        outline = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(0.4, 1.0, (k, 1))
        outline = outline[::-1] if i % 3 == 1 else outline
        made.append(np.concatenate([outline, outline[:1]]) if i % 2 else outline)
    return made


def objects_for(kernel: Any, n: int, seed: int = 0) -> list[Points]:
    return sets_of(n, seed=seed) if kernel in SETS else contours(n, seed)


def matrix(f: Any, A: list[Points], B: list[Points], *args: Any) -> Points:
    return np.array([[f(a, b, *args) for b in B] for a in A])


# Definitions


def chamfer(a: Points, b: Points) -> float:
    table = [[float(np.hypot.reduce(u - v)) for v in b] for u in a]
    back = list(zip(*table, strict=True))
    return sum(map(min, table)) / len(a) + sum(map(min, back)) / len(b)


def transport(a: Points, b: Points) -> float:
    """The linear program itself."""
    k, l = len(a), len(b)
    rows = np.kron(np.eye(k), np.ones(l))
    columns = np.kron(np.ones(k), np.eye(l))
    totals = np.concatenate([np.full(k, 1 / k), np.full(l, 1 / l)])
    result = linprog(cdist(a, b).ravel(), A_eq=np.vstack([rows, columns]), b_eq=totals)
    return float(result.fun)


def walked(points: Points, n: int) -> list[complex]:
    """n points at equal steps along the closed polygon, anticlockwise, corner by corner."""
    corners = [complex(*p) for p in points]
    area = sum(
        (u.conjugate() * v).imag for u, v in zip(corners, corners[1:] + corners[:1], strict=True)
    )
    if area < 0:
        corners = corners[:1] + corners[:0:-1]
    sides = list(zip(corners, corners[1:] + corners[:1], strict=True))
    step = sum(abs(v - u) for u, v in sides) / n
    found, ahead = [], 0.0
    for u, v in sides:
        side = abs(v - u)
        while ahead < side - 1e-12 and len(found) < n:
            found.append(u + (v - u) * ahead / side)
            ahead += step
        ahead -= side
    return found


def smooth(f: Any, n: int) -> Any:
    """Fourier coefficients of the frequencies 1..(n - 1) / 2 and their negatives, by sums."""
    k = [m for m in range(-((n - 1) // 2), (n - 1) // 2 + 1) if m]
    turns = np.arange(len(f)) / len(f)
    return np.array(k), np.array([np.mean(f * np.exp(-2j * np.pi * m * turns)) for m in k])


def least(distance: Any, n: int) -> float:
    """Of all shifts, in turns: a fine grid, then a search about its best points."""
    grid = np.arange(4 * n) / (4 * n)
    values = np.array([distance(s) for s in grid])
    starts = grid[np.argsort(values)[:4]]
    found = [
        minimize_scalar(distance, bounds=(s - 0.2 / n, s + 0.2 / n), options={"xatol": 1e-9})
        for s in starts
    ]
    return float(min(values.min(), *(one.fun for one in found)))


def mirror_image(points: Points) -> Points:
    return points * [1.0, -1.0]


def procrustes_by_definition(a: Points, b: Points, n: int, reflect: bool) -> float:
    if reflect:
        both = (procrustes_by_definition(a, c, n, False) for c in (b, mirror_image(b)))
        return min(both)
    (k, F), (_, G) = (smooth(np.array(walked(c, 8 * n)), n) for c in (a, b))
    F, G = F / np.linalg.norm(F), G / np.linalg.norm(G)

    def distance(s: float) -> float:
        moved = G * np.exp(2j * np.pi * k * s)
        t = np.vdot(moved, F)
        return float(np.linalg.norm(F - moved * t / abs(t)))

    return least(distance, n)


def turning_by_definition(a: Points, b: Points, n: int, reflect: bool) -> float:
    if reflect:
        both = (turning_by_definition(a, c, n, False) for c in (b, mirror_image(b)))
        return min(both)

    def angles(c: Points) -> Any:
        z = np.array(walked(c, 8 * n))
        along = np.unwrap(np.angle(np.roll(z, -8) - z))
        return smooth(along - 2 * np.pi * np.arange(8 * n) / (8 * n), n)

    (k, F), (_, G) = angles(a), angles(b)
    return least(lambda s: float(np.linalg.norm(F - G * np.exp(2j * np.pi * k * s))), n)


DEFINITIONS = {Procrustes: procrustes_by_definition, Turning: turning_by_definition}


# Point sets


@pytest.mark.parametrize("p", [1, 2, 5])
def test_chamfer_is_the_sum_of_the_two_mean_nearest_distances(p: int) -> None:
    A, B = sets_of(6, p, seed=1), sets_of(LANES + 9, p, seed=2)
    np.testing.assert_allclose(Chamfer()(A, B), matrix(chamfer, A, B), rtol=1e-13, atol=1e-15)


def test_earth_mover_equals_pot_and_the_linear_program() -> None:
    A, B = sets_of(9, seed=3), sets_of(11, seed=4)
    D = EarthMover()(A, B)
    pot = matrix(lambda a, b: ot.emd2(ot.unif(len(a)), ot.unif(len(b)), cdist(a, b)), A, B)
    np.testing.assert_allclose(D, pot, rtol=1e-12)
    np.testing.assert_allclose(D[:4, :4], matrix(transport, A[:4], B[:4]), rtol=1e-7)


@FEW
@given(st.lists(st.tuples(*[st.floats(-9, 9)] * 4), min_size=1, max_size=4))
def test_earth_mover_of_one_size_is_the_best_permutation(rows: list[tuple[float, ...]]) -> None:
    points = np.array(rows)
    a, b = points[:, :2], points[:, 2:]
    best = min(np.hypot(*(a - b[list(p)]).T).mean() for p in permutations(range(len(a))))
    assert EarthMover()([a], [b])[0, 0] == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_values_by_hand() -> None:
    a, b, c = [[0.0, 0.0], [4.0, 0.0]], [[0.0, 3.0]], [[4.0, 3.0], [0.0, 3.0]]
    assert Chamfer()([a], [b, c]).tolist() == [[7.0, 6.0]]
    assert EarthMover()([a], [b, c]).tolist() == [[4.0, 3.0]]
    three = [[0.0], [0.0], [3.0]]  # 1/6 of the mass moves by 3
    assert EarthMover()([three], [[[0.0], [3.0]]])[0, 0] == pytest.approx(0.5, rel=1e-15)


# Contours


@pytest.mark.parametrize("kind", [Procrustes, Turning])
@pytest.mark.parametrize("reflect", [False, True])
def test_contours_equal_their_definition(kind: Any, reflect: bool) -> None:
    A, B = contours(4, seed=5), contours(5, seed=6)
    for n in (96, 97):
        expected = matrix(DEFINITIONS[kind], A[:2], B[:3], n, reflect)
        np.testing.assert_allclose(kind(n, reflect)(A[:2], B[:3]), expected, rtol=2e-3)
    near = [b + 1e-3 * np.random.default_rng(1).standard_normal(b.shape) for b in B]
    d = [kind(24, reflect)([b], [c])[0, 0] for b, c in zip(B, near, strict=True)]
    expected = [DEFINITIONS[kind](b, c, 24, reflect) for b, c in zip(B, near, strict=True)]
    np.testing.assert_allclose(d, expected, rtol=1e-6)


def test_procrustes_equals_scipys_over_all_shifts() -> None:
    """scipy scales too, so its disparity is 1 - c^2 where ours is 2 - 2 c."""
    A, B = contours(3, seed=7), contours(3, seed=8)

    def by_scipy(a: Points, b: Points) -> float:
        (k, F), (_, G) = (smooth(np.array(walked(c, 768)), 96) for c in (a, b))
        x, z = (np.exp(2j * np.pi * np.outer(np.arange(768) / 768, k)) @ H for H in (F, G))
        x, z = (np.column_stack([u.real, u.imag]) for u in (x, z))
        least = min(procrustes(x, np.roll(z, s, axis=0))[2] for s in range(768))
        return float(np.sqrt(2 - 2 * np.sqrt(1 - least)))

    np.testing.assert_allclose(Procrustes(96)(A, B), matrix(by_scipy, A, B), rtol=1e-3)


def noisy(n: int, seed: int = 0) -> list[Points]:
    """Smooth outlines of 200 points, each moved a little."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(200) / 200
    made = []
    for _ in range(n):
        waves = [
            rng.normal(0, 0.3 / k) * np.cos(k * angle + rng.uniform(0, 7)) for k in range(2, 7)
        ]
        outline = np.column_stack([np.cos(angle), np.sin(angle)]) * np.exp(sum(waves))[:, None]
        made.append(outline + rng.normal(0, 0.01, outline.shape))
    return made


def mpeg7() -> list[Points]:
    try:
        X = load_dataset("shapes/mpeg7_contours").X
    except FileNotFoundError:
        pytest.skip("the data set shapes/mpeg7_contours is not there")
    chosen = np.random.default_rng(0).choice(len(X), 40, replace=False)
    return [np.asarray(X[i][:-1], dtype=np.float64) for i in chosen]


@pytest.mark.parametrize("objects", [lambda: contours(30, seed=22), lambda: noisy(30), mpeg7])
@pytest.mark.parametrize("kernel", [Procrustes(), Turning()])
def test_the_start_point_hardly_counts(kernel: Any, objects: Any) -> None:
    X = [x[:-1] if (x[0] == x[-1]).all() else x for x in objects()]
    D = kernel(X)
    apart = np.median(D[np.triu_indices(len(X), 1)])
    bound = 0.002 if isinstance(kernel, Procrustes) else 0.01
    for shift in (1, 7, -3):
        moved = [np.roll(x, shift, axis=0) for x in X]
        found = kernel(moved, X)
        assert np.diag(found).max() <= bound * apart
        assert np.abs(found - D).max() <= bound * apart


def bars(heights: list[int]) -> tuple[Points, int]:
    """The outline of columns of unit width, corners on the grid, and its length."""
    corners = [(0, 0), (len(heights), 0)]
    for i in range(len(heights) - 1, -1, -1):
        corners += [(i + 1, heights[i]), (i, heights[i])]
    outline = np.array(corners, dtype=np.float64)
    steps = np.abs(np.diff(np.concatenate([outline, outline[:1]]), axis=0)).sum()
    return outline, int(steps)


@FEW
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.integers(0, 9),
    st.floats(-7, 7),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_what_does_not_count(
    heights: list[int], start: int, angle: float, scale: float, back: bool
) -> None:
    outline, steps = bars(heights)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = scale * np.roll(outline, start, axis=0) @ turn.T + [3.0, -5.0]
    moved = moved[::-1] if back else moved
    closed = np.concatenate([moved, moved[:1]])
    mirror = outline * [-1.0, 1.0]
    for kind in (Procrustes, Turning):
        kernel = kind(n_points=2 * steps)
        other = contours(3, seed=9)
        found = kernel([outline, moved, closed], [*other, outline])
        np.testing.assert_allclose(found[1:], found[[0, 0]], rtol=1e-6, atol=1e-6)
        reflected = clone(kernel).set_params(reflect=True)
        np.testing.assert_allclose(reflected([mirror], [outline]), 0.0, atol=1e-6)
        np.testing.assert_allclose(
            reflected([mirror], other), reflected([outline], other), rtol=1e-6, atol=1e-6
        )


def test_a_mirror_image_counts_unless_it_is_reflected() -> None:
    outline, steps = bars([4, 1, 1])
    mirror = outline * [-1.0, 1.0]
    for kind in (Procrustes, Turning):
        assert kind(2 * steps)([outline], [mirror])[0, 0] > 0.1
        assert kind(2 * steps, reflect=True)([outline], [mirror])[0, 0] < 1e-7


@pytest.mark.parametrize("kind", [Procrustes, Turning])
def test_small_distances_keep_their_digits(kind: Any) -> None:
    outline = contours(1, seed=10)[0]
    push = np.random.default_rng(11).standard_normal(outline.shape)
    sizes = np.array([1e-3, 1e-5, 1e-7, 1e-9])
    d = kind(64)([outline], [outline + size * push for size in sizes])[0]
    np.testing.assert_allclose(d[1:] / sizes[1:], d[1] / sizes[1], rtol=1e-3)
    np.testing.assert_allclose(d[0] / sizes[0], d[1] / sizes[1], rtol=0.1)


def test_a_round_contour_is_at_zero_distance_of_itself() -> None:
    angle = 2 * np.pi * np.arange(64) / 64
    round_one = np.column_stack([np.cos(angle), np.sin(angle)])
    for kernel in CONTOURS:
        assert kernel([round_one], [round_one]).tolist() == [[0.0]]


def test_coordinates_of_any_size() -> None:
    X = contours(4, seed=12)
    for kernel in CONTOURS:
        for scale in (1e-300, 1e300):
            np.testing.assert_allclose(kernel([scale * x for x in X]), kernel(X), atol=1e-9)


def test_more_columns_than_are_correlated_at_a_time() -> None:
    A, Z = contours(2, seed=13), contours(60, seed=14)
    many = [Z[j % 60] for j in range(CURVES + 70)]
    kernel = Procrustes(n_points=16)
    np.testing.assert_array_equal(kernel(A, many), np.tile(kernel(A, Z), 10)[:, : len(many)])


# All kernels


@pytest.mark.parametrize("kernel", KERNELS)
def test_symmetric_with_zero_self_distance(kernel: Any) -> None:
    X = objects_for(kernel, STRIP + 12 if kernel in CONTOURS else 25)
    D = kernel(X, X)
    assert D.dtype == np.float64
    assert D.shape == (len(X), len(X))
    np.testing.assert_allclose(D, D.T, rtol=1e-10)
    assert not np.diag(D).any()
    S = kernel(X)
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_array_equal(np.triu(S), np.triu(D))
    np.testing.assert_array_equal(kernel.diagonal(X), np.zeros(len(X)))
    if kernel in SETS:
        np.testing.assert_array_equal(D, D.T)


@pytest.mark.parametrize("kernel", KERNELS)
def test_chunks_and_threads_change_no_bit(kernel: Any) -> None:
    A, Z = objects_for(kernel, 25, seed=15), objects_for(kernel, 21, seed=16)
    check_pieces(kernel, A, Z)


@pytest.mark.parametrize("kernel", KERNELS)
def test_pickled_columns_and_clones_give_the_same(kernel: Any) -> None:
    A, Z = objects_for(kernel, 4, seed=18), objects_for(kernel, 5, seed=19)
    expected = kernel(A, Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel.columns(Z)))(A), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(A, Z), expected)
    np.testing.assert_array_equal(clone(kernel)(A, Z), expected)
    assert kernel([], Z).shape == (0, 5)


def test_names_know_what_they_are() -> None:
    kinds = {
        "chamfer": (Chamfer, True),
        "earth_mover": (EarthMover, False),
        "emd": (EarthMover, False),
        "procrustes": (Procrustes, True),
        "turning": (Turning, True),
    }
    for name, (kind, threads) in kinds.items():
        kernel = resolve(name)
        assert type(kernel) is kind
        assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (
            Objects(),
            True,
            threads,
        )
    assert resolve("procrustes", {"n_points": 40, "reflect": True}).n_points == 40


def column(X: list[Points], kind: str) -> Any:
    array = np.empty(len(X), dtype=object)
    array[:] = X
    made = {"list": X, "array": array, "pandas": pd.Series(array)}
    return made[kind] if kind in made else pl.Series("x", X, dtype=pl.Object)


@pytest.mark.parametrize("kind", ["list", "array", "pandas", "polars"])
@pytest.mark.parametrize("kernel", ["chamfer", "emd", "procrustes", "turning"])
def test_an_estimator_takes_columns_of_shapes_and_equals_the_matrix(kernel: str, kind: str) -> None:
    made = sets_of if kernel in ("chamfer", "emd") else contours
    X, new = made(24, seed=20), made(5, seed=21)
    y = np.arange(24) % 2
    settings = {"similarity": "squared", "lambda_plus": 0.1, "lambda_minus": 0.1}
    model = KreinRidgeClassifier(kernel=kernel, **settings).fit(column(X, kind), y)
    D, D_new = resolve(kernel)(X), resolve(kernel)(new, X)
    given = KreinRidgeClassifier(kernel="precomputed_dissimilarity", **settings).fit(D, y)
    np.testing.assert_allclose(
        model.decision_function(column(new, kind)),
        given.decision_function(D_new),
        rtol=0,
        atol=1e-12,
    )


# What is refused


GOOD = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"object 1 \(of 3\) is an array of shape \(3,\) and dtype float64; a point"),
        ("circle", r"object 1 .* is str 'circle'"),
        (None, r"object 1 .* is NoneType None"),
        (np.zeros((2, 3)), r"object 1 \(of 3\) has points of 3 coordinates, the others have 2"),
        ([[0.0, np.nan]], r"object 1 \(of 3\) contains NaN or infinity in point 0"),
    ],
)
def test_a_bad_object_is_named(kernel: Any, bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel([GOOD], [GOOD, bad, GOOD])
    with pytest.raises(ValueError, match=message):
        kernel([GOOD, bad, GOOD], [GOOD])


@pytest.mark.parametrize("kernel", CONTOURS[1::2])
def test_a_contour_lies_in_the_plane_and_is_no_point(kernel: Any) -> None:
    X: list[Any] = [GOOD] * 2100
    X[2075] = [[2.0, 3.0], [2.0, 3.0]]
    with pytest.raises(
        ValueError, match=r"object 2075 \(of 2100\) is the single point \[2. 3.\]; .* at least two"
    ):
        kernel.fit(X, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"object 0 \(of 2\) has points of 3 .* of shape \(number"):
        kernel([np.eye(3), np.eye(3)])


@pytest.mark.parametrize("kind", [Procrustes, Turning])
def test_n_points_is_a_number_of_points(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"n_points == 2, must be >= 3"):
        kind(n_points=2)([GOOD])
    with pytest.raises(TypeError, match=r"n_points must be an instance of .*, not float"):
        kind(n_points=12.5)([GOOD])


def test_without_pot_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    assert EarthMover()([GOOD], [GOOD]).tolist() == [[0.0]]  # sets of one size need scipy only
    with pytest.raises(ImportError, match=r'^this needs POT, .*"kreinlearn\[shapes\]"$'):
        EarthMover()([GOOD], [GOOD[:2]])
