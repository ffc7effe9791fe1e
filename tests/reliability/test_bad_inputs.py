"""Bad inputs and faults in fit and transform: one test a row of the table, by its number."""

from __future__ import annotations

import os
import pickle
import re
import signal
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from kreinlearn import dissimilarity, pairwise, panel
from kreinlearn.kernels import Gaussian
from tests.models import both, nystroem, pca, products

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
B = RNG.normal(size=(30, 30))
K = B + B.T  # symmetric, indefinite
D = cdist(X, X)
SCHEMES = ["uniform", "leverage", "kmeans++", "greedy_kmeans++"]
CORES = ["ls", "truncated", "plain"]
Fit = Callable[..., Any]


def product(a: Any, b: Any) -> float:
    return float(np.dot(a, b))


def changed(A: Any, entry: tuple[int, int], value: float) -> Any:
    A = A.copy()
    A[entry] = value
    return A


def tables(A: Any) -> dict[str, Any]:
    names = [f"x{j}" for j in range(A.shape[1])]
    return {
        "array": A,
        "list": A.tolist(),
        "pandas": pd.DataFrame(A, columns=names),
        "polars": pl.DataFrame(A, schema=names),
        "sparse": sp.csr_array(A),
    }


# Values


@both
@pytest.mark.parametrize("form", tables(X))
def test_bad_input_01_nan(model: Fit, form: str) -> None:
    bad = tables(changed(X, (4, 1), np.nan))[form]
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(bad)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(tables(X)[form]).transform(bad)


@both
@pytest.mark.parametrize("form", tables(X))
def test_bad_input_02_infinity(model: Fit, form: str) -> None:
    message = "contains infinity or a value too large"
    for value in (np.inf, -np.inf):
        bad = tables(changed(X, (4, 1), value))[form]
        with pytest.raises(ValueError, match=message):
            model().fit(bad)
        with pytest.raises(ValueError, match=message):
            model().fit(tables(X)[form]).transform(bad)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_bad_input_02_too_large_for_float32() -> None:
    with pytest.raises(ValueError, match=r"too large for dtype\('float32'\)"):
        nystroem(dtype="float32").fit(changed(X, (4, 1), 1e300))


@both
def test_bad_input_04_nan_in_a_matrix(model: Fit) -> None:
    for kernel, good in (("precomputed", K), ("precomputed_dissimilarity", D)):
        for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
            bad = changed(changed(good, (7, 2), value), (20, 1), value)
            with pytest.raises(ValueError, match=f"Input X contains {name} at row 7, column 2"):
                model(kernel).fit(bad)
            with pytest.raises(ValueError, match=f"Input X contains {name} at row 2, column 2"):
                model(kernel).fit(good).transform(bad[5:9])


def test_bad_input_04_nan_in_a_condensed_vector() -> None:
    vector = pdist(X)
    vector[1] = np.nan  # the pair of objects 0 and 2
    with pytest.raises(ValueError, match="Input X contains NaN at row 0, column 2"):
        nystroem("precomputed_dissimilarity").fit(vector)


# Given matrices


@both
def test_bad_input_05_asymmetric_matrix(model: Fit) -> None:
    skew = changed(K, (3, 8), K[3, 8] + 0.1)
    params = {"landmarks": [8, 1, 2, 5], "core": "plain"}  # row 3 in the column of landmark 8
    with pytest.warns(UserWarning, match=r"asymmetric.* 0.1; it is averaged with its transpose"):
        one = model("precomputed", **params).fit(skew)
    other = model("precomputed", **params).fit((skew + skew.T) / 2)
    assert_array_equal(one.eigenvalues_, other.eigenvalues_)
    assert_array_equal(one.transform(K), other.transform(K))
    with pytest.raises(ValueError, match=r'asymmetric.*pass symmetrize="average"'):
        model("precomputed", symmetrize="raise").fit(skew)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_bad_input_06_asymmetry_at_rounding_level(scale: float) -> None:
    """Relative to the largest entry: silent below 1e-10 of it, whatever the scale."""
    size = np.abs(K).max()
    rounded = changed(K, (3, 8), K[3, 8] + 0.5e-10 * size) * scale
    model = nystroem("precomputed", core="plain", symmetrize="raise").fit(rounded)
    average = nystroem("precomputed", core="plain").fit((rounded + rounded.T) / 2)
    assert_array_equal(model.eigenvalues_, average.eigenvalues_)
    with pytest.warns(UserWarning, match="asymmetric"):
        nystroem("precomputed").fit(changed(K, (3, 8), K[3, 8] + 2e-10 * size) * scale)


@both
@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_dissimilarity"])
def test_bad_input_07_non_square_matrix(model: Fit, kernel: str) -> None:
    message = r"^Precomputed matrix must be a square matrix\. Input is a 30x10 matrix\.$"
    with pytest.raises(ValueError, match=message):
        model(kernel).fit(D[:, :10])
    with pytest.raises(ValueError, match=r"Input is a 30x10 matrix\. To fit on landmark columns"):
        model(kernel, precomputed_columns="landmarks").fit(D[:, :10])
    asked = {"precomputed_columns": "landmarks", "landmarks": [*range(10)], "core": "plain"}
    assert model(kernel, **asked).fit(D[:, :10]).n_features_in_ == 10


@both
def test_bad_input_08_wrong_number_of_columns(model: Fit) -> None:
    for kernel in ("gaussian", products):
        message = "X has 2 features, but Krein.* is expecting 3 features"
        with pytest.raises(ValueError, match=message):
            model(kernel).fit(X).transform(X[:, :2])
        with pytest.raises(ValueError, match=message):
            model(kernel, landmarks=X[:4, :2]).fit(X)


@both
def test_bad_input_09_columns_of_a_matrix_at_transform(model: Fit) -> None:
    fitted = model("precomputed", n_landmarks=8).fit(K)
    assert fitted.transform(K[:5]).shape == (5, fitted.rank_)
    for wrong in (8, 29, 31):
        with pytest.raises(ValueError, match=f"X has {wrong} features.* expecting 30"):
            fitted.transform(np.ones((5, wrong)))
    asked = model("precomputed", n_landmarks=8, precomputed_columns="landmarks").fit(K)
    Z = asked.landmark_indices_
    assert_allclose(asked.transform(K[:5, Z]), fitted.transform(K[:5]), atol=1e-12)
    with pytest.raises(ValueError, match=r"X has 30 features.* expecting 8"):
        asked.transform(K[:5])


def minus(A: Any, B: Any) -> Any:
    return cdist(A, B) - 2.0 * (cdist(A, B) > 0)


def minus_one(a: Any, b: Any) -> float:
    return float(minus(a[None], b[None])[0, 0])


@both
def test_bad_input_10_negative_dissimilarity(model: Fit) -> None:
    message = "^Negative values in data passed to X"
    for kernel in ("precomputed_dissimilarity", dissimilarity("precomputed")):
        with pytest.raises(ValueError, match=message):
            model(kernel).fit(minus(X, X))
        with pytest.raises(ValueError, match=message):
            model(kernel).fit(D).transform(minus(X[:4], X))
    for kernel in (dissimilarity(minus), dissimilarity(pairwise(minus_one))):
        with pytest.raises(ValueError, match=message):
            model(kernel, n_landmarks=5).fit(X)


def with_self(a: Any, b: Any) -> float:
    return float(np.abs(a - b).sum()) + 0.5


@both
def test_bad_input_11_self_dissimilarity(model: Fit) -> None:
    message = "the diagonal of a dissimilarity must be zero, got a self-dissimilarity of 0.5"
    with pytest.raises(ValueError, match=message):
        model("precomputed_dissimilarity").fit(changed(D, (6, 6), 0.5))
    with pytest.raises(ValueError, match=message):
        model(dissimilarity(pairwise(with_self)), n_landmarks=5).fit(X)
    tolerated = changed(D, (6, 6), 0.9e-12 * D.max())
    assert model("precomputed_dissimilarity").fit(tolerated).rank_ >= 2
    with pytest.raises(ValueError, match="the diagonal of a dissimilarity must be zero"):
        model("precomputed_dissimilarity").fit(changed(D, (6, 6), 1.1e-12 * D.max()))


@both
@pytest.mark.parametrize("kernel", [cdist, pairwise(lambda a, b: float(np.abs(a - b).sum()))])
def test_bad_input_12_dissimilarity_as_similarity(model: Fit, kernel: Any) -> None:
    with pytest.warns(UserWarning, match=r"pass kernel=dissimilarity\(\.\.\.\)"):
        model(kernel, n_landmarks=9).fit(X)
    with pytest.warns(UserWarning, match='pass kernel="precomputed_dissimilarity"'):
        model("precomputed").fit(D)
    model(dissimilarity(kernel), n_landmarks=9).fit(X)  # no warning
    model("precomputed_dissimilarity").fit(D)
    model("delta_gauss").fit(X)  # zero diagonal, none negative, but ours


# Degenerate kernels


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", [*SCHEMES, "medoids", "medoids+greedy"])
def test_bad_input_18_duplicates(landmarks: str, core: str) -> None:
    """Six copies of five objects: rank 5, silently, unless more was asked for."""
    copies = np.repeat(X[:5], 6, axis=0)
    params = {"n_landmarks": 20, "landmarks": landmarks, "core": core}
    model = nystroem(**params).fit(copies)
    assert model.rank_ == 5
    exact = model.kernel_(copies, copies)
    assert_allclose(model.approximate(copies), exact, atol=1e-8)
    with pytest.warns(UserWarning, match=r"rank=8 was asked for .* span only 5 dimensions"):
        assert nystroem(rank=8, **params).fit(copies).rank_ == 5
    with pytest.warns(UserWarning, match=r"n_components=7 was asked for .* span only 4 dim"):
        assert pca(n_components=7, **params).fit(copies).rank_ == 4


def zero(A: Any, B: Any) -> Any:
    return np.zeros((len(A), len(B)))


@both
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", SCHEMES)
def test_bad_input_19_all_zero_kernel(model: Fit, landmarks: str, core: str) -> None:
    for kernel, objects in ((zero, X), ("precomputed", zero(X, X))):
        zeroed = model(kernel, n_landmarks=7, landmarks=landmarks, core=core)
        with pytest.warns(UserWarning, match="rank_ is 0"):
            zeroed.fit(objects)
        assert zeroed.rank_ == 0
        assert zeroed.transform(objects).shape == (30, 0)
        assert zeroed.eigenvalues_.shape == zeroed.get_feature_names_out().shape == (0,)
        if model is nystroem:
            assert_array_equal(zeroed.approximate(objects), np.zeros((30, 30)))
            assert zeroed.estimate_error(objects).relative == 0


@pytest.mark.parametrize("method", ["svd", "sgt"])
def test_bad_input_19_all_zero_kernel_by_the_reference_routes(method: str) -> None:
    with pytest.warns(UserWarning, match="rank_ is 0"):
        assert nystroem(zero, core="plain", method=method).fit(X).rank_ == 0


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", [*SCHEMES, "medoids", "medoids+greedy"])
def test_bad_input_20_identical_objects(landmarks: str, core: str) -> None:
    same = np.full((30, 3), 1.7)
    params = {"n_landmarks": 9, "landmarks": landmarks, "core": core}
    model = nystroem(**params).fit(same)
    assert model.rank_ == 1
    assert_allclose(model.approximate(same), np.ones((30, 30)), atol=1e-12)
    with pytest.warns(UserWarning, match="rank_ is 0"):  # centred, nothing is left
        assert pca(**params).fit(same).transform(same).shape == (30, 0)


# Numbers of landmarks


@both
def test_bad_input_21_more_landmarks_than_objects(model: Fit) -> None:
    with pytest.warns(UserWarning, match="n_landmarks=31 exceeds n_samples=30; all 30 are used"):
        fitted = model(n_landmarks=31).fit(X)
    assert fitted.n_landmarks_ == 30
    assert_array_equal(fitted.transform(X), model(n_landmarks=None).fit(X).transform(X))


@both
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", [*SCHEMES, "medoids", "medoids+greedy", [4]])
def test_bad_input_22_one_landmark(model: Fit, landmarks: Any, core: str) -> None:
    one = {"n_components": 1} if model is pca else {}
    fitted = model(n_landmarks=1, landmarks=landmarks, core=core, **one).fit(X)
    assert fitted.n_landmarks_ == fitted.rank_ == 1
    k_z = np.exp(-cdist(X, fitted.landmarks_, "sqeuclidean") / fitted.kernel_.width_)
    Phi = fitted.transform(X)
    k_z = k_z - k_z.mean() if model is pca else k_z
    assert_allclose(Phi / np.linalg.norm(Phi), k_z / np.linalg.norm(k_z) * np.sign(Phi[0] / k_z[0]))


@both
@pytest.mark.parametrize("bad", [0, -3, 2.5, 0.0, -0.1, "a", [3], np.nan])
def test_bad_input_23_number_of_landmarks(model: Fit, bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="The 'n_landmarks' parameter of Krein"):
        model(n_landmarks=bad).fit(X)


def test_bad_input_24_rank_above_landmarks() -> None:
    with pytest.raises(ValueError, match=r"rank=9 exceeds n_landmarks=8 .*lower rank or raise"):
        nystroem(rank=9, n_landmarks=8).fit(X)
    with pytest.raises(ValueError, match=r"rank=31 exceeds n_landmarks=30 \(n_samples=30\)"):
        nystroem(rank=31).fit(X)
    with pytest.raises(ValueError, match="rank=3 exceeds n_landmarks=2"):
        nystroem(rank=3, landmarks=[4, 7]).fit(X)
    with pytest.raises(ValueError, match="n_components=9 exceeds n_landmarks=8"):
        pca(n_components=9, n_landmarks=8).fit(X)


# Callable kernels


@both
@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        (lambda A, B: products(A, B)[:3, :3], r"\(3, 3\)"),
        (lambda A, B: products(A, B)[0], r"\(\d+,\)"),
        (lambda A, B: products(A, B)[:, :, None], r"\(\d+, \d+, 1\)"),
        (lambda A, B: 1.0, r"\(\)"),
    ],
)
def test_bad_input_27_wrong_shape(model: Fit, kernel: Any, shape: str) -> None:
    message = rf"the kernel returned shape {shape}, expected \(\d+, \d+\) = \(len\(A\), len\(B\)\)"
    with pytest.raises(ValueError, match=message):
        model(kernel, n_landmarks=8).fit(X)


@both
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_bad_input_28_nan_from_a_kernel(model: Fit, value: float, name: str) -> None:
    def broken(A: Any, B: Any) -> Any:
        bad_row, bad_landmark = (A[:, 0] == X[17, 0])[:, None], B[:, 0] == X[2, 0]
        return np.where(bad_row & bad_landmark, value, products(A, B))

    message = rf"kernel produced {name} for row 17 \(block \d+\.\.\d+\) and landmark row 2;"
    fit = model(broken, landmarks=[5, 2, 9])
    with pytest.raises(ValueError, match=message):
        fit.fit(X)
    fit.fit(X[:10])
    with pytest.raises(ValueError, match=rf"kernel produced {name} for row 2 "):
        fit.transform(X[15:20])


def test_bad_input_28_nan_on_the_diagonal() -> None:
    def broken(a: Any, b: Any) -> float:
        return np.nan if a is b and a[0] == X[17, 0] else product(a, b)

    with pytest.raises(ValueError, match="kernel produced NaN for row 17"):
        nystroem(pairwise(broken), n_landmarks=8, landmarks="greedy_kmeans++").fit([*X])


def test_bad_input_28_nan_in_the_streamed_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "POOL_ROWS", 100)
    many = np.random.default_rng(1).normal(size=(5000, 3))
    last = many[4999, 0]

    def broken(A: Any, B: Any) -> Any:
        return np.where(A[:, :1] == last, np.nan, products(A, B))

    with pytest.raises(ValueError, match=r"kernel produced NaN for row 4999 \(block \d+\.\.4999\)"):
        nystroem(broken, landmarks=[0, 1, 2]).fit(many)


@both
@pytest.mark.parametrize("value", [None, "0.5", 1j])
def test_bad_input_29_no_real_numbers(model: Fit, value: Any) -> None:
    kinds = {
        "block": lambda A, B: np.full((len(A), len(B)), value),
        "itself": lambda A, B: value,
    }
    for kernel in kinds.values():
        with pytest.raises(TypeError, match="the kernel must return real numbers, got dtype"):
            model(kernel).fit(X)
    with pytest.raises(TypeError, match="must return one real number"):
        model(pairwise(lambda a, b: value)).fit(X)


class Peculiar(RuntimeError):
    pass


def breaks(a: Any, b: Any) -> float:
    if a[0] == X[17, 0] or b[0] == X[17, 0]:
        raise Peculiar("no licence", 7)
    return product(a, b)


@both
def test_bad_input_30_kernel_raises(model: Fit) -> None:
    fit = model(pairwise(breaks), landmarks=[3, 4, 5], core="plain")
    with pytest.raises(Peculiar, match="no licence") as caught:
        fit.fit([*X])
    assert caught.value.args == ("no licence", 7)
    (note,) = caught.value.__notes__
    assert "while evaluating the kernel on rows 6..29 against 3 landmarks" in note
    with pytest.raises(NotFittedError):
        fit.transform([*X])
    fit.fit([*X[:10]])
    with pytest.raises(Peculiar) as caught:
        fit.transform([*X])
    assert "on rows 0..29 against 3 landmarks" in caught.value.__notes__[0]


def test_bad_input_30_kernel_raises_in_the_streamed_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "POOL_ROWS", 100)
    many = np.random.default_rng(1).normal(size=(5000, 3))

    def broken(A: Any, B: Any) -> Any:
        if (A[:, 0] == many[4999, 0]).any():
            raise Peculiar("no licence", 7)
        return products(A, B)

    with pytest.raises(Peculiar) as caught:
        nystroem(broken, landmarks=[0, 1, 2]).fit(many)
    assert "4999 against 3 landmarks" in caught.value.__notes__[0]


@both
def test_bad_input_31_asymmetric_kernel(model: Fit) -> None:
    def skew(A: Any, B: Any) -> Any:
        return products(A, B) + A[:, :1] - 0.5 * B[:, 0]

    for kernel in (skew, pairwise(lambda a, b: product(a, b) + a[0])):
        with pytest.warns(UserWarning, match=r"the kernel is asymmetric: k\(x, z\) - k\(z, x\)"):
            model(kernel).fit(X)
        fit = model(kernel, symmetrize="raise")
        with pytest.raises(ValueError, match="the kernel is asymmetric"):
            fit.fit(X)
        with pytest.raises(NotFittedError):
            fit.transform(X)


@both
def test_bad_input_32_kernel_not_deterministic(model: Fit) -> None:
    rng = np.random.default_rng(0)

    def noisy(A: Any, B: Any) -> Any:
        return products(A, B) + 1e-3 * rng.normal(size=(len(A), len(B)))

    with pytest.warns(UserWarning, match="the kernel is not deterministic"):
        model(noisy).fit(X)


@both
def test_bad_input_33_kernel_not_picklable(model: Fit) -> None:
    lock, calls = threading.Lock(), []

    def locked(A: Any, B: Any) -> Any:
        calls.append(lock)
        return products(A, B)

    with pytest.raises(TypeError, match=r"cannot be sent to other processes .*; pass n_jobs=1"):
        model(locked, n_jobs=2).fit(X)
    assert not calls
    assert model(locked, n_jobs=1).fit(X).rank_ >= 2


@both
def test_bad_input_34_pickle_of_a_lambda(model: Fit) -> None:
    fitted = model(lambda A, B: products(A, B)).fit(X)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(fitted)


# Scale and type


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("landmarks", SCHEMES)
def test_bad_input_36_scale_of_the_kernel(landmarks: str, core: str) -> None:
    """c K: the same landmarks and signs, sqrt(c) times the features, c times the eigenvalues."""
    params = {"n_landmarks": 12, "landmarks": landmarks, "core": core}
    for c in (1e-300, 1e-150, 1e150, 1e300):
        for model in (nystroem, pca):
            one, scaled = (model("precomputed", **params).fit(A) for A in (K, K * c))
            assert_array_equal(scaled.landmark_indices_, one.landmark_indices_)
            assert_array_equal(scaled.signature_, one.signature_)
            assert_allclose(scaled.eigenvalues_ / c, one.eigenvalues_, rtol=1e-6)
            Phi, expected = scaled.transform(K * c) / np.sqrt(c), one.transform(K)
            assert_allclose(Phi, expected, atol=1e-6 * np.abs(expected).max())
        estimates = (
            nystroem("precomputed", **params).fit(A).estimate_error(A, random_state=0).relative
            for A in (K, K * c)
        )
        assert_allclose(*estimates, rtol=1e-6)


def test_bad_input_36_scale_and_tolerance() -> None:
    smooth = np.exp(-cdist(X, X, "sqeuclidean") / 6) - 0.2
    for c in (1e-300, 1e300):
        one, scaled = (
            nystroem("precomputed", n_landmarks=4, tol=0.05).fit(A) for A in (smooth, smooth * c)
        )
        assert one.n_landmarks_ == scaled.n_landmarks_ > 4
        assert_allclose(scaled.error_.relative, one.error_.relative, rtol=1e-4)


@both
@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        ("gaussian", {}),
        ("gaussian", {"width": 1.0}),
        ("delta_gauss", {"width": "scale"}),
        ("epanechnikov", {"width": 1.0}),
        ("multiquadric", {"width": 1.0}),
        ("sigmoid", {"gain": 1.0}),
        ("sigmoid", {}),
        ("truncated_l1", {"radius": 1.0}),
        ("polynomial", {}),
        ("euclidean", {}),
        (products, {}),
    ],
)
def test_bad_input_37_kernel_overflows(model: Fit, kernel: Any, params: dict[str, Any]) -> None:
    message = "kernel produced (inf|nan)|out of floating range"
    scale = 3e307 if kernel == "truncated_l1" else 1e200
    fit = model(kernel, kernel_params=params if isinstance(kernel, str) else None)
    with pytest.raises(ValueError, match=message):
        fit.fit(X * scale)
    fit.fit(X * 1e100 if kernel is products else X)
    with pytest.raises(ValueError, match=message):
        fit.transform(X * 1e100 * scale if kernel is products else X * scale)


@both
@pytest.mark.parametrize("kernel", [Gaussian(2.0), products, "linear"])
def test_bad_input_38_float32(model: Fit, kernel: Any) -> None:
    """Features stay float32; sums are those of float64, to the rounding of the kernel values."""
    single = X.astype(np.float32)
    params = {"n_landmarks": 12, "core": "truncated"}
    one = model(kernel, **params).fit(single)
    two = model(kernel, **params).fit(single.astype(np.float64))
    assert one.transform(single).dtype == one.fit_transform(single).dtype == np.float32
    assert one.transform(X).dtype == np.float64
    assert one.eigenvalues_.dtype == np.float64
    assert_allclose(one.eigenvalues_, two.eigenvalues_[: one.rank_], rtol=1e-4)
    assert model(kernel, dtype="float64").fit(single).transform(single).dtype == np.float64
    assert model(kernel, dtype="float32").fit(X).transform(X).dtype == np.float32


@both
@pytest.mark.parametrize("kind", [int, bool, np.float16, np.uint8])
def test_bad_input_39_other_numbers(model: Fit, kind: Any) -> None:
    A = (X > 0) if kind is bool else (2 * np.abs(X)).astype(kind)
    one, two = (model(n_landmarks=5).fit(table) for table in (A, A.astype(np.float64)))
    assert one.transform(A).dtype == np.float64
    assert_array_equal(one.transform(A), two.transform(A.astype(np.float64)))


@both
def test_bad_input_40_dates(model: Fit) -> None:
    dates = (np.datetime64("2020-01-01") + np.arange(30)).reshape(10, 3)
    forms = [
        dates,
        dates - dates[0],
        dates.tolist(),
        [list(row) for row in dates],
        pd.DataFrame(dates, columns=[*"abc"]),
        pd.DataFrame({"a": range(10), "b": pd.date_range("2020", periods=10, tz="UTC")}),
        pl.DataFrame({"a": range(10), "b": dates[:, 0]}),
    ]
    for table in forms:
        with pytest.raises(TypeError):
            model().fit(table)
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        model(products).fit(dates)
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        model("precomputed").fit(dates[:3, :3])
    with pytest.raises(TypeError):
        model().fit(X).transform(dates)


@both
def test_bad_input_41_complex(model: Fit) -> None:
    for kernel in ("gaussian", "precomputed", products):
        good = K if kernel == "precomputed" else X
        with pytest.raises(ValueError, match="Complex data not supported"):
            model(kernel).fit(good + 1j)
        with pytest.raises(ValueError, match="Complex data not supported"):
            model(kernel).fit(good).transform(good + 1j)


SPARSE_KERNELS = [
    Gaussian(2.0), "delta_gauss", "epanechnikov", "multiquadric", "sigmoid", "rbf", "euclidean",
]  # fmt: skip


@both
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix])
def test_bad_input_42_sparse(model: Fit, form: Any) -> None:
    A = np.where(np.abs(X) > 0.7, X, 0)
    for kernel in SPARSE_KERNELS:
        params = {"n_landmarks": 9, "landmarks": "greedy_kmeans++", "core": "truncated"}
        one, two = (model(kernel, **params).fit(table) for table in (form(A), A))
        assert_array_equal(one.landmark_indices_, two.landmark_indices_)
        assert_allclose(one.transform(form(A)), two.transform(A), atol=1e-7)
        assert_allclose(one.transform(A), two.transform(A), atol=1e-7)
    assert sp.issparse(one.landmarks_)


@both
@pytest.mark.parametrize("kernel", ["truncated_l1", "braycurtis", "precomputed"])
def test_bad_input_43_sparse_to_a_dense_kernel(model: Fit, kernel: str) -> None:
    A = np.abs(K) if kernel == "precomputed" else np.abs(X)
    message = "Sparse data was passed for X, but dense data is required"
    with pytest.raises(TypeError, match=message):
        model(kernel).fit(sp.csr_array(A))
    fitted = model(kernel).fit(A)
    with pytest.raises(TypeError, match=message):
        fitted.transform(sp.csr_array(A))


def test_bad_input_43_sparse_to_an_object_kernel() -> None:
    with pytest.raises(TypeError, match="X must be a sequence of objects, got csr_array"):
        nystroem("hausdorff").fit(sp.csr_array(X))


@both
def test_bad_input_44_numeric_object_array(model: Fit) -> None:
    for kernel, A in (("gaussian", X), ("precomputed", K)):
        one, two = (model(kernel).fit(table) for table in (A.astype(object), A))
        assert_array_equal(one.transform(A.astype(object)), two.transform(A))


@both
def test_bad_input_45_dict_in_an_object_array(model: Fit) -> None:
    A = X.astype(object)
    A[3, 1] = {"a": 1}
    with pytest.raises(TypeError, match=r"argument must be .* string or a real number"):
        model().fit(A)


@both
def test_bad_input_46_strings(model: Fit) -> None:
    A = np.array([["a", "b"], ["c", "d"]])
    for table in (A, A.tolist(), A.astype(object), pd.DataFrame(A, columns=["x", "y"])):
        with pytest.raises(ValueError, match="could not convert string to float"):
            model().fit(table)


def letters(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


def shapes() -> dict[str, Any]:
    return {
        "list": [X[i : i + 2 + i % 3] for i in range(20)],
        "tuple": tuple(X[i : i + 2] for i in range(20)),
        "3-d array": np.stack([X[i : i + 4] for i in range(20)]),
    }


@both
def test_bad_input_47_sequences_of_objects(model: Fit) -> None:
    words = [f"{i:b}-{'abcdef'[i % 6 :]}" for i in range(20)]
    first = model(pairwise(letters)).fit(words).transform(words)
    forms = [tuple(words), np.array(words), np.array(words, dtype=object), pd.Series(words)]
    for sequence in [*forms, pl.Series(words)]:
        assert_array_equal(model(pairwise(letters)).fit(sequence).transform(sequence), first)
    for sequence in shapes().values():
        fitted = model("hausdorff", n_landmarks=6).fit(sequence)
        assert fitted.transform(sequence).shape == (20, fitted.rank_)
        assert not hasattr(fitted, "n_features_in_")


@both
@pytest.mark.parametrize("bad", ["a word", {"a": 1}, {1, 2}, 3, np.array(3), None, iter([1])])
def test_bad_input_47_no_sequence(model: Fit, bad: Any) -> None:
    with pytest.raises(TypeError, match="X must be a sequence of objects, got"):
        model(pairwise(letters)).fit(bad)
    with pytest.raises(TypeError, match="X must be a sequence of objects, got DataFrame"):
        model("hausdorff").fit(pd.DataFrame(X))


# Names of columns


@both
@pytest.mark.parametrize("kernel", ["gaussian", products])
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_bad_input_48_columns_differ(model: Fit, frame: str, kernel: Any) -> None:
    table = tables(X)[frame]
    fitted = model(kernel).fit(table)
    assert_allclose(fitted.transform(table), model(kernel).fit(X).transform(X), atol=1e-12)
    message = "The feature names should match those that were passed during fit"
    with pytest.raises(ValueError, match=message):
        fitted.transform(table[["x1", "x0", "x2"]])
    other = table.rename({"x0": "y"}) if frame == "polars" else table.rename(columns={"x0": "y"})
    with pytest.raises(ValueError, match=message):
        fitted.transform(other)


@both
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_bad_input_49_array_after_a_frame(model: Fit, frame: str) -> None:
    fitted = model().fit(tables(X)[frame])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Krein"):
        fitted.transform(X)
    if model is nystroem:
        fitted.estimate_error(tables(X)[frame])  # no warning: the names are there


@both
def test_bad_input_50_mixed_names(model: Fit) -> None:
    with pytest.raises(TypeError, match="Feature names are only supported if all input features"):
        model().fit(pd.DataFrame(X, columns=["a", 1, "c"]))


@both
def test_bad_input_51_missing_values_and_categories(model: Fit) -> None:
    missing = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2, 3]})
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(missing)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(pl.DataFrame({"a": [1, None, 3], "b": [1.0, 2, 3]}))
    message = "X must hold numbers, got categories"
    for values in ([1, 2, 1], ["u", "v", "u"]):
        frame = pd.DataFrame({"a": pd.Categorical(values), "b": [1.0, 2, 3]})
        with pytest.raises(ValueError, match=message):
            model().fit(frame)
    categories = pl.Series("a", ["u", "v", "u"], dtype=pl.Categorical)
    with pytest.raises(ValueError, match=message):
        model().fit(pl.DataFrame([categories, pl.Series("b", [1.0, 2, 3])]))


# Shapes


@both
@pytest.mark.parametrize("kernel", ["gaussian", "precomputed", products])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_bad_input_52_matrix(model: Fit, kernel: Any) -> None:
    good = K if kernel == "precomputed" else X
    with pytest.raises(TypeError, match=r"np.matrix is not supported"):
        model(kernel).fit(np.matrix(good))


@both
def test_bad_input_53_dimensions(model: Fit) -> None:
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        model().fit(X[0])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        model().fit(X[None])
    fitted = model().fit(X)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        fitted.transform(X[0])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        fitted.transform(X[None])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        model("precomputed").fit(K[None])


@both
def test_bad_input_54_nothing(model: Fit) -> None:
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model().fit(X[:0])
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\)"):
        model().fit(X[:, :0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model("precomputed").fit(K[:0, :0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model(pairwise(letters)).fit([])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model().fit(X).transform(X[:0])
    with pytest.raises(ValueError, match=r"landmarks must be distinct row numbers in .*got none"):
        model(landmarks=[]).fit(X)


# States and faults


@pytest.mark.parametrize(
    "method",
    ["transform", "eigenvectors", "approximate", "estimate_error", "get_feature_names_out"],
)
def test_bad_input_59_before_fit(method: str) -> None:
    with pytest.raises(NotFittedError, match="This KreinNystroem instance is not fitted yet"):
        getattr(nystroem(), method)(X)
    if method in ("transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError, match="This KreinPCA instance is not fitted yet"):
            getattr(pca(), method)(X)


@both
def test_bad_input_60_generator(model: Fit) -> None:
    one, two, three = (
        model(n_landmarks=5).set_params(random_state=seed).fit(X).landmark_indices_
        for seed in (np.random.default_rng(4), np.random.default_rng(4), np.random.RandomState(4))
    )
    assert_array_equal(one, two)
    assert len(three) == 5
    with pytest.raises(InvalidParameterError, match="random_state"):
        model().set_params(random_state="seed").fit(X)


def peak_of(call: Callable[[], Any]) -> tuple[str, int]:
    """The text of the MemoryError that a call ends in, and the bytes it had allocated."""
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError) as caught:
            call()
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bad_input_62_memory_budget() -> None:
    many = np.random.default_rng(0).normal(size=(4000, 2))
    kernel = Gaussian(1.0)
    fitted = nystroem(kernel, n_landmarks=60, memory_budget="60MB").fit(many)
    small = nystroem(kernel, n_landmarks=60).fit(many).set_params(memory_budget=1e5)
    cases: dict[str, Callable[[], Any]] = {
        r"4000 landmarks .*needs 384 MB .*is 50 MB; lower n_landmarks or": lambda: nystroem(
            kernel, n_landmarks=None, memory_budget="50MB"
        ).fit(many),
        r"4000 x 4000 similarities needs 128 MB .*is 60 MB; pass fewer": lambda: fitted.approximate(
            many
        ),
        r"a result of 4000 x \d+ numbers needs .*is 100 kB; pass fewer rows": lambda: (
            small.transform(many)
        ),
    }
    for message, call in cases.items():
        text, peak = peak_of(call)
        assert re.search(message, text), text
        assert peak < 8e6, message


def test_bad_input_62_memory_budget_of_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "POOL_ROWS", 100)
    many = np.random.default_rng(0).normal(size=(5000, 2))
    with pytest.raises(MemoryError, match=r"one pass with 10 landmarks needs .* is 100 kB; raise"):
        nystroem(n_landmarks=10, memory_budget="100kB").fit(many)
    with pytest.raises(MemoryError, match=r'"svd" holds all 5000 x 30 .*method="gram", which str'):
        nystroem(n_landmarks=30, core="plain", method="svd", memory_budget="900kB").fit(many)


def test_bad_input_62_memory_budget_in_words() -> None:
    with pytest.raises(ValueError, match="memory_budget='much' is not understood; pass bytes"):
        nystroem(memory_budget="much").fit(X)
    with pytest.raises(InvalidParameterError, match="memory_budget"):
        nystroem(memory_budget=0).fit(X)


class Interrupted(Gaussian):
    """A Gaussian kernel during whose evaluation someone presses Ctrl-C."""

    def columns(self, Z: Any) -> Any:
        inner = super().columns(Z)

        def columns(A: Any, out: Any = None) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return inner(A, out)

        return columns


@both
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bad_input_64_ctrl_c(model: Fit, n_jobs: int) -> None:
    """In line and in worker threads: it goes through, and no older fit is left behind."""
    many = np.random.default_rng(0).normal(size=(9000, 2))
    fit = model(n_landmarks=5, n_jobs=n_jobs).fit(many)
    fit.transform(many[:5])
    with pytest.raises(KeyboardInterrupt):
        fit.set_params(kernel=Interrupted(1.0)).fit(many)
    with pytest.raises(NotFittedError):
        fit.transform(many[:5])
    assert not [name for name in vars(fit) if name.endswith("_") and name != "n_features_in_"]
    assert fit.set_params(kernel="gaussian").fit(many).transform(many[:5]).shape[0] == 5


@both
def test_bad_input_64_a_fit_that_fails_leaves_nothing(model: Fit) -> None:
    fit = model().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        fit.fit(changed(X, (0, 0), np.nan))
    with pytest.raises(NotFittedError):
        fit.transform(X)
