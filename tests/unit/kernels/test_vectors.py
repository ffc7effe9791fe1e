"""Vector kernels against their definitions, with explicit differences instead of products."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kreinlearn.kernels import SklearnKernel, SklearnMetric, resolve
from kreinlearn.kernels.vector_columns import SAMPLE
from kreinlearn.kernels.vectors import (
    DeltaGauss,
    Epanechnikov,
    Gaussian,
    GaussianCombination,
    Multiquadric,
    Sigmoid,
    TruncatedL1,
)
from tests.unit.kernels.rows import assert_close, data, inner, l1, rng, squared

RADIAL = {
    "gaussian": (Gaussian(9.0), lambda A, Z: np.exp(-squared(A, Z) / 9)),
    "delta_gauss": (
        DeltaGauss(9.0),
        lambda A, Z: np.exp(-squared(A, Z) / 9) - np.exp(-4 * squared(A, Z) / 9),
    ),
    "delta_gauss, ratio 0.3": (
        DeltaGauss(9.0, ratio=0.3),
        lambda A, Z: np.exp(-squared(A, Z) / 9) - np.exp(-0.3 * squared(A, Z) / 9),
    ),
    "gaussian_combination of 1": (
        GaussianCombination([-2.0], [3.0], unit=2.0),
        lambda A, Z: -2 * np.exp(-squared(A, Z) / 6),
    ),
    "gaussian_combination of 2": (
        GaussianCombination((1.0, -0.5), (3.0, 20.0), unit=1),
        lambda A, Z: np.exp(-squared(A, Z) / 3) - 0.5 * np.exp(-squared(A, Z) / 20),
    ),
    "gaussian_combination of 3": (
        GaussianCombination((1.0, -2.0, 0.7), (1.0, 5.0, 30.0), unit=1),
        lambda A, Z: (
            np.exp(-squared(A, Z))
            - 2 * np.exp(-squared(A, Z) / 5)
            + 0.7 * np.exp(-squared(A, Z) / 30)
        ),
    ),
    "epanechnikov": (Epanechnikov(15.0), lambda A, Z: np.maximum(0, 1 - squared(A, Z) / 15)),
    "epanechnikov, power 3": (
        Epanechnikov(15.0, power=3),
        lambda A, Z: np.maximum(0, 1 - squared(A, Z) / 15) ** 3,
    ),
    "multiquadric": (Multiquadric(4.0), lambda A, Z: np.sqrt(1 + squared(A, Z) / 4)),
}
CASES = RADIAL | {
    "sigmoid": (Sigmoid(0.2, bias=-0.5), lambda A, Z: np.tanh(0.2 * inner(A, Z) - 0.5)),
    "truncated_l1": (TruncatedL1(8.0), lambda A, Z: np.maximum(0, 8 - l1(A, Z))),
}
SPARSE = [name for name in CASES if name != "truncated_l1"]


def fitted(name):
    return clone(CASES[name][0]).fit(data()[0], rng())


@pytest.mark.parametrize("name", CASES)
def test_columns_follow_the_definition(name):
    A, Z = data()
    assert_close(fitted(name).columns(Z)(A), CASES[name][1](A, Z))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 4), (1, 9, 1), (0, 5, 3), (700, 3, 2)])
def test_any_shape(name, shape):
    A, Z = data(*shape)
    K = fitted(name).columns(Z)(A)
    assert K.shape == shape[:2]
    if len(A):
        assert_close(K, CASES[name][1](A, Z))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "types", [("f4", "f4"), ("f8", "f4"), ("i8", "i8"), ("f4", "i4"), ("?", "f2")]
)
def test_result_is_float64(name, types):
    A, Z = (np.rint(2 * part).astype(kind) for part, kind in zip(data(), types, strict=True))
    expected = CASES[name][1](A.astype(np.float64), Z.astype(np.float64))
    assert_close(fitted(name).columns(Z)(A), expected)


@pytest.mark.parametrize("name", [*RADIAL, "truncated_l1"])
def test_data_far_from_the_origin_lose_nothing(name):
    A, Z = (np.rint(part * 2**10) / 2**10 for part in data())  # so that the shift is exact
    kernel = fitted(name)
    shifted = kernel.columns(Z + 2.0**30)(A + 2.0**30)
    assert_close(shifted, CASES[name][1](A, Z))


@pytest.mark.parametrize("name", CASES)
def test_symmetric_is_exactly_so_with_the_diagonal_of_the_definition(name):
    Z = data()[0]
    kernel = fitted(name)
    K = kernel.symmetric(Z)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), kernel.diagonal(Z))
    assert_close(K, CASES[name][1](Z, Z))
    np.testing.assert_array_equal(kernel(Z), K)
    np.testing.assert_array_equal(kernel(Z, Z[:5]), kernel.columns(Z[:5])(Z))


@pytest.mark.parametrize("name", CASES)
def test_diagonal(name):
    A = data()[0]
    expected = np.diagonal(CASES[name][1](A, A))
    np.testing.assert_allclose(fitted(name).diagonal(A), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_rows_do_not_depend_on_the_rows_around_them(name):
    """Sub-blocks are fixed by m: a split at their borders changes no bit, others only rounding."""
    A, Z = data(n=2100, m=500, d=5)
    f = fitted(name).columns(Z)
    whole = f(A)
    np.testing.assert_array_equal(np.vstack([f(A[:1024]), f(A[1024:])]), whole)
    np.testing.assert_array_equal(f(A), whole)
    assert_close(np.vstack([f(A[:333]), f(A[333:1001]), f(A[1001:])]), whole)
    assert_close(whole[[0, 511, 512, 2099]], CASES[name][1](A[[0, 511, 512, 2099]], Z))


@pytest.mark.parametrize("name", CASES)
def test_out(name):
    A, Z = data()
    f = fitted(name).columns(Z)
    buffer = np.full((len(A) + 10, len(Z)), 7.0)
    result = f(A, out=buffer)
    assert np.shares_memory(result, buffer)
    np.testing.assert_array_equal(result, f(A))
    assert (buffer[len(A) :] == 7).all()


@pytest.mark.parametrize(
    "out",
    [
        np.empty((149, 40)),
        np.empty((150, 41)),
        np.empty((150, 40), np.float32),
        np.empty((40, 150)).T,
        np.empty((150, 80))[:, ::2],
        np.empty(6000),
    ],
)
def test_out_that_does_not_fit_is_refused(out):
    A, Z = data()
    with pytest.raises(ValueError, match="at least 150 rows and exactly 40 columns"):
        fitted("gaussian").columns(Z)(A, out=out)


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows_equal_dense_ones(name, make):
    A, Z = (np.where(np.abs(part) > 1, part, 0) for part in data(n=700))
    kernel = fitted(name)
    assert kernel.sparse
    expected = CASES[name][1](A, Z)
    assert_close(kernel.columns(make(Z))(make(A)), expected)
    assert_close(kernel.columns(Z)(make(A)), expected)
    assert_close(kernel.columns(make(Z))(A), expected)
    buffer = np.full((800, len(Z)), 7.0)
    assert_close(kernel.columns(make(Z))(make(A), out=buffer), expected)
    assert (buffer[700:] == 7).all()
    np.testing.assert_allclose(kernel.diagonal(make(A)), kernel.diagonal(A), rtol=1e-14)
    K = kernel.symmetric(make(Z))
    np.testing.assert_array_equal(K, K.T)
    assert_close(K, CASES[name][1](Z, Z))


def test_truncated_l1_takes_no_sparse_rows():
    kernel = fitted("truncated_l1")
    assert not kernel.sparse
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        kernel.columns(sp.csr_array(data()[1]))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        kernel.columns(data()[1])(sp.csr_array(data()[0]))


@pytest.mark.parametrize("order", ["F", "strided", "read-only"])
@pytest.mark.parametrize("name", CASES)
def test_memory_layout_of_the_rows(name, order):
    A, Z = data()
    layout = {
        "F": np.asfortranarray,
        "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    }[order]
    assert_close(fitted(name).columns(layout(Z))(layout(A)), CASES[name][1](A, Z))


@pytest.mark.parametrize("name", CASES)
def test_pickle_and_clone(name):
    A, Z = data()
    kernel = fitted(name)
    f = kernel.columns(Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(A), f(A))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel)).columns(Z)(A), f(A))
    fresh = clone(kernel)
    assert fresh.get_params() == kernel.get_params()
    with pytest.raises(NotFittedError):
        fresh.columns(Z)


@pytest.mark.parametrize("name", CASES)
def test_threads_share_columns(name):
    A, Z = data(n=1200, m=90)
    f = fitted(name).columns(Z)
    expected = f(A)
    with ThreadPoolExecutor(4) as pool:
        for K in pool.map(f, [A] * 12):
            assert_close(K, expected)


@pytest.mark.parametrize("name", CASES)
def test_columns_are_fixed_when_made(name):
    A, Z = data()
    kernel = fitted(name)
    f = kernel.columns(Z)
    before = f(A)
    first = next(p for p in ("width", "unit", "gain", "radius") if hasattr(kernel, p))
    kernel.set_params(**{first: 0.5}).fit(A, rng())
    Z[:] = 0
    np.testing.assert_array_equal(f(A), before)


@pytest.mark.parametrize("name", CASES)
def test_overflow_names_the_row_and_the_remedy(name):
    A, Z = data(n=1500, m=300)
    far = A.copy()
    far[[1207, 1300]] = 1e308 if name == "truncated_l1" else 1e200
    kernel = fitted(name)
    with pytest.raises(ValueError, match=r"^kernel produced inf at row 1207\b.*scale the data"):
        kernel.columns(Z)(far)
    with pytest.raises(
        ValueError, match=r"^kernel produced inf at landmark 1207\b.*scale the data"
    ):
        kernel.columns(far)
    wrong = A.copy()
    wrong[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"^kernel produced nan at row 3\b"):
        kernel.columns(Z)(wrong)
    if kernel.sparse:
        with pytest.raises(ValueError, match=r"^kernel produced inf at row 1207\b"):
            kernel.columns(sp.csr_array(Z))(sp.csr_array(far))


@pytest.mark.parametrize("name", sorted(set(RADIAL) - {"gaussian_combination of 3"}))
@pytest.mark.parametrize("width", ["median", "scale"])
def test_overflow_in_fit(name, width):
    A = data()[0] * 1e200
    parameter = "unit" if name.startswith("gaussian_combination") else "width"
    with pytest.raises(ValueError, match=r"^kernel produced inf.*scale the data"):
        clone(CASES[name][0]).set_params(**{parameter: width}).fit(A, rng())


# widths


def test_median_of_all_pairs_up_to_the_sample_size():
    X = np.vstack([data(d=3)[0], data(d=3)[0][:20]])  # twenty pairs of equal rows do not count
    i, j = np.triu_indices(len(X), 1)
    d2, distance = squared(X, X)[i, j], l1(X, X)[i, j]
    width = Gaussian().fit(X, rng()).width_
    assert width == pytest.approx(np.median(d2[d2 > 0]), rel=1e-12)
    assert Gaussian().fit(sp.csr_array(X), rng()).width_ == pytest.approx(width, rel=1e-12)
    assert Gaussian().fit(X.astype(np.float32), rng()).width_ == pytest.approx(width, rel=1e-6)
    assert Gaussian().fit(X + 1e6, rng()).width_ == pytest.approx(width, rel=1e-8)
    radius = TruncatedL1().fit(X, rng()).radius_
    assert radius == pytest.approx(np.median(distance[distance > 0]), rel=1e-12)


def test_median_of_a_sample_drawn_with_the_generator():
    X = data(n=5000, d=3)[0]
    chosen = np.sort(rng(4).choice(5000, SAMPLE, replace=False))
    i, j = np.triu_indices(len(chosen), 1)
    expected = np.median(squared(X[chosen], X[chosen])[i, j])
    assert Gaussian().fit(X, rng(4)).width_ == pytest.approx(expected, rel=1e-12)
    assert Gaussian().fit(X, rng(5)).width_ != Gaussian().fit(X, rng(4)).width_


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
def test_scale_is_that_of_scikit_learn(make):
    X = np.where(data(n=9000, d=3)[0] > -1, data(n=9000, d=3)[0] + 5, 0)
    expected = 3 * X.var()
    assert Gaussian("scale").fit(make(X), rng()).width_ == pytest.approx(expected, rel=1e-6)
    assert Sigmoid().fit(make(X), rng()).gain_ == pytest.approx(1 / expected, rel=1e-6)
    assert TruncatedL1("scale").fit(X, rng()).radius_ == pytest.approx(3 * X.std(), rel=1e-12)


def test_delta_gauss_is_the_default_combination():
    A, Z = data()
    one, other = (kernel.fit(A, rng()) for kernel in (DeltaGauss(), GaussianCombination()))
    assert other.unit_ == one.width_
    assert other.widths_ == (one.width_, one.width_ / 4)
    np.testing.assert_allclose(one.columns(Z)(A), other.columns(Z)(A), rtol=0, atol=1e-14)


@pytest.mark.parametrize("width", ["median", "scale"])
@pytest.mark.parametrize("kernel", [Gaussian, DeltaGauss, Epanechnikov, Multiquadric, TruncatedL1])
def test_equal_rows_have_no_width_and_need_none(kernel, width):
    X = np.full((30, 4), 0.1) if width == "median" else np.zeros((30, 4))
    kernel = kernel(width).fit(X, rng())
    assert getattr(kernel, "radius_" if kernel.__class__ is TruncatedL1 else "width_") == 1
    np.testing.assert_array_equal(kernel(X), kernel.diagonal(X)[0])


def test_one_row():
    assert Gaussian().fit(np.ones((1, 3)), rng()).width_ == 1
    assert Gaussian().fit(sp.csr_array(np.ones((1, 3))), rng()).width_ == 1


def test_distances_that_underflow_are_not_taken_for_equal_rows():
    with pytest.raises(ValueError, match=r"underflow.*scale the data"):
        Gaussian().fit(data()[0] * 1e-200, rng())


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "mean", None, True, [1.0], 1j])
@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [
        (Gaussian, "width"),
        (DeltaGauss, "width"),
        (DeltaGauss, "ratio"),
        (Epanechnikov, "width"),
        (Epanechnikov, "power"),
        (Multiquadric, "width"),
        (TruncatedL1, "radius"),
        (GaussianCombination, "unit"),
    ],
)
def test_bad_widths_say_what_is_allowed(kernel, parameter, bad):
    message = rf"^{parameter}=.* is not allowed; pass a positive finite number"
    with pytest.raises(ValueError, match=message):
        kernel(**{parameter: bad}).fit(data()[0], rng())


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Sigmoid("median"), "gain='median' is not allowed; pass a finite number or 'scale'"),
        (Sigmoid(bias=np.nan), "bias=nan is not allowed; pass a finite number"),
        (DeltaGauss(ratio=1), "ratio=1 makes the kernel zero everywhere"),
        (GaussianCombination((1, 2), (1,)), "pass one width per weight"),
        (GaussianCombination((), ()), "pass one width per weight"),
        (GaussianCombination((1, np.nan), (1, 2)), "a weight=nan is not allowed"),
        (GaussianCombination((1, 2), (1, -2)), "a width=-2 is not allowed"),
    ],
)
def test_other_bad_parameters(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.fit(data()[0], rng())


def test_fit_returns_the_kernel_and_leaves_the_parameters():
    kernel = DeltaGauss()
    assert kernel.fit(data()[0], rng()) is kernel
    assert kernel.get_params() == {"width": "median", "ratio": 4.0}


# names


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("delta_gauss", DeltaGauss),
        ("epanechnikov", Epanechnikov),
        ("gaussian", Gaussian),
        ("gaussian_combination", GaussianCombination),
        ("multiquadric", Multiquadric),
        ("sigmoid", Sigmoid),
        ("truncated_l1", TruncatedL1),
        ("rbf", SklearnKernel),
        ("cosine", SklearnKernel),
        ("euclidean", SklearnMetric),
        ("canberra", SklearnMetric),
    ],
)
def test_names(name, kernel):
    assert type(resolve(name)) is kernel
