"""Kernels and metrics by their scikit-learn names, against scikit-learn on whole matrices."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import pairwise_kernels

from kreinlearn.kernels.scikit import (
    SET_METRICS,
    SklearnKernel,
    SklearnMetric,
    sklearn_kernel_names,
    sklearn_metric_names,
)
from tests.unit.kernels.rows import assert_close, data, inner, rng


def rows_for(metric, n=60, d=6):
    X = np.abs(data(n=n, d=2 if metric == "haversine" else d)[0])
    if metric in SET_METRICS:
        X = (X > 0.7).astype(np.float64)
        X[:, 0] = 1  # an empty set is at no distance of some of them
    return X


@pytest.mark.parametrize("name", sklearn_kernel_names())
def test_scikit_kernels(name):
    X = rows_for(name)
    A, Z = X[:45], X[45:]
    kernel = SklearnKernel(name).fit(X, rng())
    expected = pairwise_kernels(A, Z, metric=name)
    assert_close(kernel.columns(Z)(A), expected)
    assert_close(kernel.diagonal(A), np.diagonal(pairwise_kernels(A, metric=name)))
    check_common(kernel, A, Z, expected)
    if kernel.sparse:
        assert_close(kernel.columns(sp.csr_array(Z))(sp.csr_array(A)), expected)
        assert_close(kernel.columns(sp.csr_matrix(Z))(A), expected)


@pytest.mark.parametrize("name", sklearn_metric_names())
def test_scikit_metrics(name):
    X = rows_for(name)
    A, Z = X[:45], X[45:]
    kernel = SklearnMetric(name).fit(X, rng())
    learnt = {}
    if name == "seuclidean":
        learnt = {"V": X.var(axis=0, ddof=1)}
    if name == "mahalanobis":
        learnt = {"VI": np.linalg.inv(np.cov(X.T))}
    cast = (lambda B: B.astype(bool)) if name in SET_METRICS else (lambda B: B)
    expected = pairwise_distances(cast(A), cast(Z), metric=name, **learnt)
    assert kernel.is_dissimilarity
    assert_close(kernel.columns(Z)(A), expected)
    own = 1 - A.mean(axis=1) if name == "russellrao" else np.zeros(len(A))
    np.testing.assert_allclose(kernel.diagonal(A), own, rtol=0, atol=1e-13)
    check_common(kernel, A, Z, expected)
    if kernel.sparse:
        assert_close(kernel.columns(sp.csr_array(Z))(sp.csr_array(A)), expected)


def check_common(kernel, A, Z, expected):
    f = kernel.columns(Z)
    buffer = np.full((50, len(Z)), 7.0)
    assert np.shares_memory(f(A, out=buffer), buffer)
    np.testing.assert_array_equal(buffer[: len(A)], f(A))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(A), f(A))
    assert clone(kernel).get_params() == kernel.get_params()
    K = kernel.symmetric(Z)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), kernel.diagonal(Z))
    single = f.__class__(Z.astype(np.float32), f.metric, f.params, f.kernel)(A.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, expected, rtol=1e-3, atol=2e-3 * np.abs(expected).max())


def test_every_scikit_kernel_and_metric_name_is_known():
    from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS, PAIRWISE_KERNEL_FUNCTIONS

    assert set(sklearn_kernel_names()) == set(PAIRWISE_KERNEL_FUNCTIONS)
    left_out = {"precomputed", "nan_euclidean"}  # NaN is refused before any metric sees it
    assert set(PAIRWISE_DISTANCE_FUNCTIONS) - left_out <= set(sklearn_metric_names())
    assert not left_out & set(sklearn_metric_names())


def test_params_reach_the_function():
    A, Z = data()
    kernel = SklearnKernel("poly", {"degree": 2, "gamma": 0.3, "coef0": 2.0}).fit(A, rng())
    assert_close(kernel.columns(Z)(A), (0.3 * inner(A, Z) + 2) ** 2)
    metric = SklearnMetric("minkowski", {"p": 3}).fit(A, rng())
    expected = (np.abs(A[:, None] - Z[None]) ** 3).sum(axis=2) ** (1 / 3)
    assert_close(metric.columns(Z)(A), expected)
    V = np.arange(1.0, 8.0)
    metric = SklearnMetric("seuclidean", {"V": V}).fit(A, rng())
    expected = np.sqrt(((A[:, None] - Z[None]) ** 2 / V).sum(axis=2))
    assert_close(metric.columns(Z)(A), expected)
    assert metric.get_params()["params"] == {"V": V}


def test_what_a_metric_learns_comes_from_fit_and_not_from_the_block():
    X = data()[0]
    for name in ("seuclidean", "mahalanobis"):
        f = SklearnMetric(name).fit(X, rng()).columns(X[:9])
        np.testing.assert_allclose(np.vstack([f(X[:50]), f(X[50:])]), f(X), rtol=1e-12)


def test_a_constant_feature_does_not_break_seuclidean():
    X = data()[0]
    with_constant = np.column_stack([X, np.full(len(X), 3.0)])
    expected = SklearnMetric("seuclidean").fit(X, rng())(X)
    assert_close(SklearnMetric("seuclidean").fit(with_constant, rng())(with_constant), expected)


def test_set_metrics_warn_of_numbers():
    with pytest.warns(DataConversionWarning, match="'jaccard' compares sets"):
        SklearnMetric("jaccard").fit(data()[0], rng())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SklearnMetric("jaccard").fit(data()[0] > 0, rng())


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (SklearnKernel("euclidean"), "metric='euclidean' is unknown to scikit-learn; choose from"),
        (SklearnMetric("rbf"), "metric='rbf' is unknown to scikit-learn; choose from"),
        (SklearnKernel("rbf", {"width": 1}), r"takes \['gamma'\], got {'width': 1}"),
        (SklearnMetric("minkowski", {"q": 1}), r"takes \['p', 'w'\], got {'q': 1}"),
        (SklearnMetric("euclidean", {"w": 1}), r"takes \['squared'\], got {'w': 1}"),
        (SklearnMetric("jaccard", {"p": 1}), r"takes \['w'\], got {'p': 1}"),
        (SklearnMetric("minkowski", {"p": -3}), r"p=-3 is not allowed; pass a number > 0"),
        (SklearnMetric("minkowski", {"p": "a"}), r"p='a' is not allowed; pass a number > 0"),
        (SklearnMetric("minkowski", {"p": np.nan}), r"p=nan is not allowed"),
        (SklearnMetric("canberra", {"w": [1.0]}), r"cannot be computed with params=.*Weights must"),
        (SklearnMetric("dice", {"w": "a"}), r"'dice' cannot be computed with params={'w': 'a'}"),
        (SklearnMetric("seuclidean", {"V": [1.0]}), r"'seuclidean' cannot be computed with"),
    ],
)
def test_bad_scikit_names(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.fit(data()[0], rng())


def test_mahalanobis_needs_full_rank():
    X = np.column_stack([data()[0], data()[0][:, 0]])
    with pytest.raises(ValueError, match="rank 7 of 8; drop dependent features or pass"):
        SklearnMetric("mahalanobis").fit(X, rng())


@pytest.mark.parametrize("kernel", [SklearnKernel("rbf"), SklearnMetric("euclidean")])
def test_overflow_in_scikit_functions(kernel):
    A, Z = data()
    A[11] = 1e200
    with pytest.raises(ValueError, match=r"^kernel produced (inf|nan) at row 11\b.*scale the data"):
        kernel.fit(Z, rng()).columns(Z)(A)
