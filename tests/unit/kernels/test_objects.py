"""The Hausdorff distances against scipy, pair by pair, and against their definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import directed_hausdorff
from sklearn.base import clone

from kreinlearn.kernels.base import resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.objects import LANES, Hausdorff, ModifiedHausdorff
from tests.unit.kernels.object_checks import check_pieces

KERNELS = [Hausdorff(), ModifiedHausdorff()]
Points = NDArray[np.float64]


def point_sets(n: int, p: int = 2, largest: int = 9, seed: int = 0) -> list[Points]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((k, p)) for k in rng.integers(1, largest + 1, n)]


def by_scipy(a: Points, b: Points) -> float:
    return float(max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]))


def by_definition(a: Points, b: Points, statistic: str) -> float:
    """The larger of the two directed distances, from the whole table of distances."""
    table = np.sqrt(np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=2))
    over = getattr(np, statistic)
    return float(max(over(table.min(axis=1)), over(table.min(axis=0))))


def matrix(f, A: list[Points], B: list[Points], *args: str) -> Points:
    return np.array([[f(a, b, *args) for b in B] for a in A])


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_hausdorff_equals_scipys_directed_distances(p: int) -> None:
    A, B = point_sets(12, p, seed=1), point_sets(17, p, seed=2)
    np.testing.assert_allclose(Hausdorff()(A, B), matrix(by_scipy, A, B), rtol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "statistic"), [(Hausdorff(), "max"), (ModifiedHausdorff(), "mean")]
)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_both_equal_their_definition(kernel: Hausdorff, statistic: str, p: int) -> None:
    A, B = point_sets(9, p, seed=3), point_sets(2 * LANES + 5, p, seed=4)
    expected = matrix(by_definition, A, B, statistic)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-13, atol=1e-15)


def test_values_by_hand() -> None:
    a, b = [[0.0, 0.0], [4.0, 0.0]], [[0.0, 3.0]]
    assert Hausdorff()([a], [b])[0, 0] == 5.0
    assert ModifiedHausdorff()([a], [b])[0, 0] == 4.0  # (3 + 5) / 2 one way, 3 the other


def test_a_repeated_point_counts_in_the_mean_only() -> None:
    a, b = [[0.0], [1.0]], [[0.0]]
    twice = [[0.0], [1.0], [1.0]]
    assert Hausdorff()([a], [b]) == Hausdorff()([twice], [b]) == 1.0
    assert ModifiedHausdorff()([a, twice], [b]).ravel().tolist() == [1 / 2, 2 / 3]


@pytest.mark.parametrize("kernel", KERNELS)
def test_exactly_symmetric_with_zero_self_distance(kernel: Hausdorff) -> None:
    X = point_sets(LANES + 30)
    D = kernel(X, X)
    np.testing.assert_array_equal(D, D.T)
    assert not np.diag(D).any()
    assert (D + np.eye(len(X)) > 0).all()
    np.testing.assert_array_equal(kernel.symmetric(X), D)
    np.testing.assert_array_equal(kernel(X), D)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(D))


@pytest.mark.parametrize("kernel", KERNELS)
def test_chunks_order_and_threads_change_no_bit(kernel: Hausdorff) -> None:
    A, Z = point_sets(60, seed=5), point_sets(LANES + 9, seed=6)
    check_pieces(kernel, A, Z)


@pytest.mark.parametrize("kernel", KERNELS)
def test_pickled_columns_and_kernels_give_the_same(kernel: Hausdorff) -> None:
    A, Z = point_sets(5, seed=8), point_sets(7, seed=9)
    expected = kernel.columns(Z)(A)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel.columns(Z)))(A), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(A, Z), expected)
    np.testing.assert_array_equal(clone(kernel)(A, Z), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_out_is_filled_and_its_surplus_rows_left_alone(dtype: type) -> None:
    A, Z = point_sets(5, seed=10), point_sets(7, seed=11)
    out = np.full((8, 7), -1.0, dtype=dtype)
    D = Hausdorff().columns(Z)(A, out=out)
    assert D.shape == (5, 7)
    assert np.shares_memory(D, out)
    np.testing.assert_array_equal(out[:5], Hausdorff()(A, Z).astype(dtype))
    assert (out[5:] == -1).all()


def test_any_sequence_of_real_arrays_is_taken() -> None:
    X = point_sets(6, seed=12)
    objects = np.empty(6, dtype=object)
    objects[:] = X
    expected = Hausdorff()(X)
    np.testing.assert_array_equal(Hausdorff()(objects), expected)
    np.testing.assert_array_equal(Hausdorff()(tuple(x.tolist() for x in X)), expected)
    np.testing.assert_array_equal(Hausdorff()([np.asfortranarray(x) for x in X]), expected)
    grid = np.arange(24).reshape(3, 4, 2)
    np.testing.assert_array_equal(Hausdorff()(grid), Hausdorff()([g.astype(float) for g in grid]))
    assert Hausdorff()([], X).shape == (0, 6)


def test_names_give_dissimilarities_of_objects() -> None:
    for name, kind in [("hausdorff", Hausdorff), ("modified_hausdorff", ModifiedHausdorff)]:
        kernel = resolve(name)
        assert type(kernel) is kind
        assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), True, True)


GOOD = [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"object 1 \(of 3\) is an array of shape \(3,\) and dtype float64; a point"),
        (np.zeros((2, 2, 2)), r"object 1 .* shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), r"object 1 .* shape \(0, 2\).*at least 1 point"),
        (np.zeros((2, 2), dtype=complex), r"object 1 .* dtype complex128"),
        ("pentagon", r"object 1 .* is str 'pentagon'"),
        ([["a", "b"]], r"object 1 .* is list"),
        ([[0.0, 1.0], [2.0]], r"object 1 .* is list"),
        (None, r"object 1 .* is NoneType None"),
        (np.zeros((2, 3)), r"object 1 \(of 3\) has points of 3 coordinates, the others have 2"),
        ([[0.0, 0.0], [0.0, np.nan]], r"object 1 \(of 3\) contains NaN or infinity in point 1"),
        ([[np.inf, 0.0]], r"object 1 \(of 3\) contains NaN or infinity in point 0"),
    ],
)
def test_a_bad_object_is_named_with_what_is_allowed(bad: object, message: str) -> None:
    X = [GOOD, bad, GOOD]
    with pytest.raises(ValueError, match=message):
        Hausdorff().columns(X)
    with pytest.raises(ValueError, match=message):
        Hausdorff().columns([GOOD])(X)


def test_fit_names_the_object_by_its_number_in_the_whole_sequence() -> None:
    X: list[object] = [GOOD] * 5000
    X[4321] = [[0.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match=r"object 4321 \(of 5000\) has points of 3 coordinates"):
        Hausdorff().fit(X, np.random.default_rng(0))
    assert isinstance(Hausdorff().fit(X[:4321], np.random.default_rng(0)), Hausdorff)


def test_rows_must_have_the_dimension_of_the_columns() -> None:
    with pytest.raises(ValueError, match=r"object 0 .* 3 coordinates, the others have 2"):
        Hausdorff()([np.zeros((1, 3))], [GOOD])
