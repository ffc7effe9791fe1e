"""Names of kernels: the registry, scikit-learn's names, a person's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import distance_metrics, kernel_metrics, pairwise_kernels

from kreinlearn import KreinNystroem, Landmarks, dissimilarity, pairwise, register
from kreinlearn.kernels import DeltaGauss, Gaussian, Kernel, registered, resolve
from kreinlearn.kernels.base import REGISTRY, product, symmetrised
from tests.bounds import rounding

X = np.random.default_rng(2).normal(size=(30, 3))


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


class Tilted(Kernel):
    """k(x, z) = <x, z> - c |x| |z|: a kernel as a user would write one."""

    def __init__(self, c: float = 0.5) -> None:
        self.c = c

    def columns(self, Z: Any) -> Any:
        def k(A: Any, out: Any = None) -> Any:
            norms = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(Z, axis=1)
            return A @ Z.T - self.c * norms

        return k


def tilted(A: Any, c: float) -> Any:
    norms = np.sqrt((A**2).sum(axis=1))
    return A @ A.T - c * np.outer(norms, norms)


def test_a_registered_kernel_is_used_by_name() -> None:
    register("tilted", Tilted)
    assert "tilted" in registered()
    model = KreinNystroem("tilted", landmarks=None, kernel_params={"c": 2.0}).fit(X)
    assert_allclose(model.approximate(X), tilted(X, 2.0), atol=1e-10)
    assert (model.signature_ < 0).sum() == 1  # three of <x, z>, one of -|x| |z|
    assert model.set_params(kernel_params=None).fit(X).kernel_.c == 0.5


def test_diagonal_and_symmetric_come_with_columns() -> None:
    kernel = Tilted(1.5)
    assert_allclose(kernel.diagonal(X), np.diagonal(tilted(X, 1.5)), atol=1e-14)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    assert_allclose(K, tilted(X, 1.5), atol=1e-14)


def test_a_factory_may_be_any_function() -> None:
    register("shared", lambda weight=1.0: pairwise(overlap, weight=weight))
    sets = [{1, 2}, {2, 3}, {3}, {1, 2, 3}]
    model = KreinNystroem(
        "shared", kernel_params={"weight": 2.0}, landmarks=Landmarks(core="plain")
    ).fit(sets)
    K = np.array([[2.0 * len(a & b) for b in sets] for a in sets])
    assert_allclose(model.approximate(sets), K, atol=1e-12)


def overlap(a: set[int], b: set[int], weight: float) -> float:
    return weight * len(a & b)


def test_a_name_is_not_taken_twice() -> None:
    register("tilted", Tilted)
    with pytest.raises(ValueError, match="'tilted' is registered already; pass replace=True"):
        register("tilted", Gaussian)
    register("tilted", Gaussian, replace=True)
    assert isinstance(resolve("tilted"), Gaussian)


@pytest.mark.parametrize("bad", ["", None, 3])
def test_a_name_is_a_text(bad: Any) -> None:
    with pytest.raises(TypeError, match="non-empty string"):
        register(bad, Tilted)


@pytest.mark.parametrize("name", ["rbf", "cityblock", "jaccard", "sigmoid", "precomputed"])
def test_a_name_of_scikit_learn_or_ours_is_not_shadowed(name: str) -> None:
    with pytest.raises(ValueError, match=f"kernel '{name}' is .*; pass replace=True"):
        register(name, Tilted)
    assert not isinstance(resolve(name), Tilted)
    register(name, Tilted, replace=True)
    assert isinstance(resolve(name), Tilted)


@pytest.mark.parametrize("bad", [7, None, "rbf", Gaussian()])
def test_a_factory_is_callable_and_no_kernel(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"wants a factory, got .*lambda: my_kernel"):
        register("x", bad)
    assert "x" not in registered()


@pytest.mark.parametrize("made", [None, 3.0, "rbf"])
def test_a_factory_returns_a_kernel(made: Any) -> None:
    register("x", lambda: made)
    with pytest.raises(TypeError, match=rf"factory of kernel 'x' returned {made!r}; pass a Kernel"):
        KreinNystroem("x").fit(X)


def test_a_kernel_instead_of_a_factory_gets_a_hint() -> None:
    def product(A: Any, B: Any) -> Any:
        return A @ B.T

    register("x", product)
    with pytest.raises(TypeError, match=r"not a factory, pass a Kernel class.*lambda: my_ker"):
        KreinNystroem("x").fit(X)
    register("x", lambda: product, replace=True)
    model = KreinNystroem("x", landmarks=Landmarks(None, core="plain")).fit(X)
    assert_allclose(model.approximate(X), X @ X.T, atol=1e-10)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gausian' is unknown .*registered are .*'gaussian'"):
        KreinNystroem("gausian").fit(X)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gausian", "gaussian"), ("Levenshtein", "levenshtein"), ("euclidian", "euclidean")],
)
def test_unknown_names_have_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"is unknown \(did you mean '{meant}'\?\); registered"):
        resolve(name)
    with pytest.raises(ValueError, match=r"kernel='zzzzzz' is unknown; registered are"):
        resolve("zzzzzz")


def test_unknown_parameters_are_told_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"argument 'widht'; it takes weights, normalized$"):
        resolve("levenshtein", {"widht": 1.0})
    with pytest.raises(TypeError, match=r"; it takes none$"):
        resolve("jaro", {"widht": 1.0})
    with pytest.raises(TypeError, match=r"^kernel 'gaussian' does not take .*'widht'") as caught:
        resolve("gaussian", {"widht": 1.0})
    assert "__init__" not in str(caught.value)


def test_unknown_parameters_name_the_kernel() -> None:
    with pytest.raises(TypeError, match=r"'gaussian' does not take kernel_params=.*'widht'"):
        KreinNystroem("gaussian", kernel_params={"widht": 1.0}).fit(X)
    with pytest.raises(ValueError, match="Invalid parameter 'widht' for estimator Gaussian"):
        KreinNystroem(Gaussian(), kernel_params={"widht": 1.0}).fit(X)


@pytest.mark.parametrize("spec", [3, None, [1, 2]])
def test_what_is_no_kernel(spec: Any) -> None:
    with pytest.raises(TypeError, match=r"neither a name, a callable .* a Kernel nor a dict"):
        resolve(spec)


@pytest.mark.parametrize("name", sorted(kernel_metrics()))
def test_every_kernel_name_of_scikit_learn(name: str) -> None:
    A = np.abs(X) if "chi2" in name else X
    fitted = resolve(name).fit(A, np.random.default_rng(0))
    if name in registered():  # ours have the name but a parameterisation of their own
        assert type(fitted).__module__.startswith("kreinlearn")
    else:
        assert_allclose(fitted(A, A[:5]), pairwise_kernels(A, A[:5], metric=name), rtol=1e-9)


METRICS = set(distance_metrics()) - {"precomputed", "haversine", "nan_euclidean"}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_name_of_scikit_learn_is_a_dissimilarity(name: str) -> None:
    kernel = dissimilarity(name)
    assert kernel.is_dissimilarity
    assert resolve(name).is_dissimilarity == (name != "cosine")  # which is a kernel's name too
    assert KreinNystroem(kernel, landmarks=10).fit(X).rank_ > 0


def test_a_kernel_object_is_cloned_not_changed() -> None:
    given = DeltaGauss(width="median")
    model = KreinNystroem(given, kernel_params={"ratio": 2.0}).fit(X)
    assert not hasattr(given, "width_")
    assert given.ratio == 4.0
    assert model.kernel_.ratio == 2.0
    assert model.kernel_.width_ > 0


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64])
def test_the_mean_of_a_matrix_and_its_transpose(dtype: Any) -> None:
    K = np.array([[2, 1], [4, 6]], dtype=dtype)
    before = K.copy()
    np.testing.assert_array_equal(symmetrised(K), [[2.0, 2.5], [2.5, 6.0]])
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("into", [None, np.float64])
def test_a_product_is_that_of_the_definition(n: int, into: Any) -> None:
    rng = np.random.default_rng(n)
    A, B = rng.standard_normal((n, 700)), rng.standard_normal((700, 4))
    out = None if into is None else np.empty((n, 4), into)
    bound = rounding(700) * (np.abs(A) @ np.abs(B)).max()
    expected = [[math.fsum(a * b) for b in B.T] for a in A]
    np.testing.assert_allclose(product(A, B, out), expected, rtol=0, atol=bound)
    assert out is None or product(A, B, out) is out
