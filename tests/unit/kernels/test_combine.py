"""Sums, differences and products of kernels, pair by pair from the values of their parts."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from kreinlearn import KreinNystroem, KreinRidgeClassifier, Landmarks, dissimilarity, pairwise
from kreinlearn.kernels import DeltaGauss, Gaussian, Hausdorff, Kernel, Sigmoid, resolve
from kreinlearn.kernels.combine import LinearCombination, Product
from kreinlearn.kernels.domains import Anything, Objects, Vectors
from kreinlearn.kernels.processes import Processes
from kreinlearn.kernels.transformed import normalized, similarity_of

RNG = np.random.default_rng(7)
X = RNG.normal(size=(50, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
WORDS = ["".join(RNG.choice(list("ab"), RNG.integers(1, 7))) for _ in range(40)]
FOLDS = StratifiedKFold(5)  # by default equal words would be left out together, unlike in a matrix
MANY = np.array([word.count("a") > word.count("b") for word in WORDS]).astype(int)


def fitted(kernel: Kernel, objects: Any = X, seed: int = 0) -> Kernel:
    return clone(kernel).fit(objects, np.random.default_rng(seed))


def gauss(x: Any, z: Any, width: float) -> float:
    return float(np.exp(-sum((x - z) ** 2) / width))


def tanh(x: Any, z: Any) -> float:
    return float(np.tanh(0.5 * sum(x * z) - 1.0))


def common(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


def lengths(a: str, b: str) -> float:
    return float(len(a) * len(b)) - 6.0


def apart(a: str, b: str) -> float:
    return float(abs(len(a) - len(b)))


def letters(a: str, b: str) -> float:
    return float(len(set(a) ^ set(b)))


class Counted(Kernel):
    """<x, z>, and how often it was evaluated."""

    calls: Counter[str] = Counter()

    def __init__(self, name: str = "") -> None:
        self.name = name

    def columns(self, Z: Any) -> Any:
        def k(A: Any, out: Any = None) -> Any:
            Counted.calls[self.name] += 1
            return A @ Z.T

        return k


# Values


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=3).filter(any),
    st.integers(0, 2**32 - 1),
)
def test_sums_and_products_from_the_definition(weights: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    kernels = [Gaussian(width=1.5), Sigmoid(gain=0.5), Gaussian(width=6.0)]
    total = fitted(LinearCombination(kernels, weights), A)(A, B)
    product = fitted(Product(kernels), A)(A, B)
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            values = [gauss(a, b, 1.5), tanh(a, b), gauss(a, b, 6.0)]
            assert total[i, j] == pytest.approx(np.dot(weights, values), rel=1e-12, abs=1e-13)
            assert product[i, j] == pytest.approx(np.prod(values), rel=1e-12, abs=1e-13)


def test_a_difference_of_gaussians_is_delta_gauss_to_the_last_bit() -> None:
    for first, second in [(2.0, 1.0), (1.0, 2.0), (8.0, 0.5)]:
        k = fitted(Gaussian(width=first) - Gaussian(width=second))
        delta = fitted(DeltaGauss(width=first, ratio=first / second))
        assert_array_equal(k(X, X[:9]), delta(X, X[:9]))
        assert_array_equal(k(X), delta(X))
        assert_array_equal(k.diagonal(X), np.zeros(len(X)))
    models = [
        KreinRidgeClassifier(kernel, landmarks=20, random_state=0).fit(X, Y)
        for kernel in (Gaussian(2.0) - Gaussian(1.0), DeltaGauss(2.0, 2.0))
    ]
    assert_array_equal(*(model.decision_function(X) for model in models))


def test_operators_by_hand() -> None:
    f, g = pairwise(common), pairwise(lengths)
    F, G = f(WORDS), g(WORDS)
    sizes = np.abs(np.diag(F + G / 7))
    for kernel, K in [
        (f + g, F + G),
        (f - g, F - G),
        (2 * f, 2 * F),
        (f * np.float64(2), 2 * F),
        (np.int64(2) * f, 2 * F),
        (-f, -F),
        (f * g, F * G),
        (f * f * g, F * F * G),
        (0.5 * (f - 2 * g) + f, 1.5 * F - G),
        (-(f - g) * g, (G - F) * G),
        (
            normalized(f + g * (1 / 7), floor=1e-6) - 3.0 * f,
            (F + G / 7) / np.sqrt(np.outer(sizes, sizes)) - 3 * F,
        ),
    ]:
        k = fitted(kernel, WORDS)
        assert_allclose(k(WORDS), K, rtol=1e-13)
        assert_allclose(k(WORDS[:5], WORDS), K[:5], rtol=1e-13)
        assert_allclose(k.diagonal(WORDS), np.diag(K), rtol=1e-13)


def test_symmetric_chunked_pickled_and_cloned() -> None:
    for kernel, objects in [
        (2.0 * Gaussian(width=1.0) - Sigmoid() * Gaussian(), X),
        (
            similarity_of(Hausdorff()) * similarity_of(Hausdorff(), "squared"),
            list(X.reshape(50, 3, 1)),
        ),
        (pairwise(common) - 0.5 * pairwise(lengths), WORDS),
    ]:
        k = fitted(kernel, objects)
        columns = k.columns(objects[:13])
        whole = columns(objects)
        assert whole.shape == (len(objects), 13)
        assert whole.dtype == np.float64
        parts = [columns(objects[:1]), columns(objects[1:30]), columns(objects[30:])]
        assert_allclose(np.concatenate(parts), whole, rtol=1e-15)
        K = k(objects)
        assert_array_equal(K, K.T)
        assert_allclose(K[:, :13], whole, atol=1e-14)
        assert_allclose(k.diagonal(objects), np.diag(K), atol=1e-14)
        assert_array_equal(pickle.loads(pickle.dumps(columns))(objects), whole)
        assert_array_equal(pickle.loads(pickle.dumps(k))(objects), K)
        assert_array_equal(fitted(k, objects)(objects), K)


def test_pieces_of_objects_change_no_bit() -> None:
    k = fitted(pairwise(common) * pairwise(lengths) - pairwise(lengths), WORDS)
    columns = k.columns(WORDS[:7])
    pieces = [columns(WORDS[start : start + 9]) for start in range(0, len(WORDS), 9)]
    assert_array_equal(np.concatenate(pieces), columns(WORDS))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(width=2.0) - 0.5 * Sigmoid(),
        Sigmoid() * Gaussian(width=2.0) * Sigmoid(),
        Gaussian(width=2.0) - LinearCombination([lambda A, B: A @ B.T]),
        normalized(Gaussian(width=2.0) - 3.0 * Sigmoid()),
        similarity_of("cityblock", "linear") - Gaussian(width=1.0),
    ],
)
def test_out_is_filled_and_its_surplus_rows_left_alone(kernel: Kernel) -> None:
    columns = fitted(kernel, X).columns(X[:8])
    out = np.full((60, 8), 7.0)
    K = columns(X, out)
    assert np.shares_memory(K, out)
    assert_array_equal(out[50:], 7.0)
    assert_allclose(K, columns(X), rtol=1e-15, atol=1e-7)


def test_what_a_function_returns_is_not_written_over() -> None:
    table = RNG.normal(size=(50, 50))
    table += table.T

    def look_up(A: Any, B: Any) -> Any:
        return table[: len(A), : len(B)]

    before = table.copy()
    for kernel in (resolve(look_up) * 3.0, resolve(look_up) * resolve(look_up) - Gaussian(1.0)):
        k = fitted(kernel)
        k(X), k(X, X[:5]), k.diagonal(X)
    assert_array_equal(table, before)


# Parts


def test_equal_parts_are_evaluated_once_a_block() -> None:
    k = Counted("a") + 2.0 * Counted("a") - Counted("b") * Counted("b") * Counted("b")
    columns = fitted(k).columns(X[:4])
    Counted.calls.clear()
    K = columns(X)
    assert Counted.calls == {"a": 1, "b": 1}
    G = X @ X[:4].T
    assert_allclose(K, 3 * G - G**3, rtol=1e-12)


def test_equal_parts_are_found_by_type_and_parameters() -> None:
    def parts(*kernels: Any) -> int:
        return len({id(part) for part in fitted(LinearCombination(list(kernels))).parts})

    def f(A: Any, B: Any, c: float = 1.0) -> Any:
        return c * A @ B.T

    assert parts("gaussian", Gaussian(), Gaussian("median"), resolve("gaussian")) == 1
    assert parts(Gaussian(1.0), Gaussian(2.0)) == 2
    assert parts(resolve(f, {"c": 2.0}), resolve(f, {"c": 2.0}), f, resolve(f, {"c": 1.0})) == 3
    assert parts("rbf", resolve("rbf", {"gamma": 0.5}), resolve("rbf", {"gamma": 0.5})) == 2
    assert parts(Gaussian() - Sigmoid(), Gaussian() - Sigmoid(), Gaussian() * Sigmoid()) == 2
    weights = [np.array([1.0]), np.array([1.0]), np.array([2.0])]
    assert parts(*(LinearCombination([Gaussian()], w) for w in weights)) == 2


class Drawn(Kernel):
    """draw_ times <x, z>, with a number drawn by ``fit``."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def fit(self, X: Any, rng: np.random.Generator) -> Any:
        self.draw_ = rng.random()
        return self

    def columns(self, Z: Any) -> Any:
        return lambda A, out=None: self.draw_ * (A @ Z.T)


def test_every_part_has_random_numbers_of_its_own() -> None:
    kernel = Drawn("a") + Drawn("b") * (Drawn("a") - Drawn("c"))

    def draws(k: Any) -> list[float]:
        return [k.draw_] if isinstance(k, Drawn) else [d for part in k.parts for d in draws(part)]

    first = draws(fitted(kernel, seed=1))
    assert len(set(first)) == 4
    assert draws(fitted(kernel, seed=1)) == first
    assert draws(fitted(kernel, seed=2)) != first
    rng = np.random.default_rng(3)
    clone(kernel).fit(X, rng)
    assert rng.random() == np.random.default_rng(3).random()  # folds are what they were without


def test_parts_are_asked_what_they_take() -> None:
    kinds = [
        (Gaussian() - Sigmoid(), Vectors(True), True, True),
        (Gaussian() + resolve("chi2"), Vectors(False), False, True),
        (Gaussian() * resolve(lambda A, B: A @ B.T), Vectors(True), True, False),
        (pairwise(common) - pairwise(lengths), Anything(True), True, False),
        (Hausdorff() + Hausdorff(), Objects(), False, True),
        (pairwise(common) + similarity_of("hausdorff"), Objects(), False, False),
        (LinearCombination(["hausdorff", "modified_hausdorff"]), Objects(), False, True),
    ]
    for kernel, domain, sparse, threads in kinds:
        assert (kernel.domain, kernel.sparse, kernel.threads) == (domain, sparse, threads)


def test_a_kernel_given_is_not_fitted_in_place() -> None:
    g = Gaussian()
    k = g - Sigmoid()
    k.fit(X, np.random.default_rng(0))
    assert not hasattr(g, "width_")
    assert k.parts[0].width_ > 0
    g.fit(X, np.random.default_rng(0))
    assert_allclose((2 * g)(X), 2 * g(X))  # not fitted itself: its parts as they are


def test_fit_looks_at_new_parameters() -> None:
    k = fitted(Gaussian(1.0) - Sigmoid())
    k.set_params(k2=Gaussian(2.0), weights=[1.0, 1.0]).fit(X, np.random.default_rng(0))
    assert_allclose(k(X), fitted(Gaussian(1.0))(X) + fitted(Gaussian(2.0))(X))
    with pytest.raises(ValueError, match="takes objects"):
        k.set_params(k1=similarity_of("hausdorff")).fit(X, np.random.default_rng(0))


# Parameters


def test_sums_of_sums_are_one_sum() -> None:
    a, b, c = Gaussian(1.0), Gaussian(2.0), Sigmoid()
    k = 2.0 * (a - b) - 0.5 * (c - 3 * a)
    assert k.kernels == [a, b, c, a]
    assert k.weights == [2.0, -2.0, -0.5, 1.5]
    assert (a * b * (c * a)).kernels == [a, b, c, a]
    assert (LinearCombination(["gaussian", c]) + a).kernels == ["gaussian", c, a]


def test_parts_are_parameters() -> None:
    k = Gaussian(1.0) - Gaussian(2.0) * Sigmoid()
    params = k.get_params()
    assert params["k1__width"] == 1.0
    assert params["k2__k1__width"] == 2.0
    assert params["k2__k2__bias"] == -1.0
    assert set(k.get_params(deep=False)) == {"kernels", "weights"}
    k.set_params(k1__width=3.0, k2__k2__bias=0.5, weights=[1, 2])
    assert repr(k.kernels[0]) == "Gaussian(width=3.0)"
    assert k.kernels[1].kernels[1].bias == 0.5
    k.set_params(k2__gain=2.0, k2=Sigmoid())
    assert k.kernels[1].gain == 2.0
    k.set_params(
        kernels=["gaussian", "gaussian", "rbf"], k3=Gaussian(), k3__width=9.0, weights=None
    )
    assert fitted(k).parts[2].width_ == 9.0
    assert alike_params(clone(k), k)


def alike_params(a: Kernel, b: Kernel) -> bool:
    return repr(a) == repr(b) and all(
        x is not y for x, y in zip(a.kernels, b.kernels, strict=True) if isinstance(x, Kernel)
    )


def test_a_clone_does_not_share_its_parts() -> None:
    k = Gaussian(1.0) - Gaussian(2.0)
    clone(k).set_params(k1__width=5.0)
    assert k.kernels[0].width == 1.0


def test_parameters_inside_a_name_are_refused() -> None:
    k = LinearCombination(["gaussian", Sigmoid()])
    with pytest.raises(ValueError, match=r"'k1__width' .* k1 is the name 'gaussian'.*resolve\("):
        k.set_params(k1__width=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'k3'"):
        k.set_params(k3__width=1.0)
    assert k.set_params(k1=Gaussian(), k1__width=1.0).kernels[0].width == 1.0


def test_kernel_params_reach_the_parts() -> None:
    k = Gaussian() - Gaussian()
    model = KreinNystroem(
        k, kernel_params={"k1__width": 2.0, "k2__width": 1.0}, landmarks=Landmarks(core="plain")
    )
    assert_array_equal(model.fit(X).kernel_(X), fitted(DeltaGauss(2.0, 2.0))(X))


def test_the_scales_of_all_parts_are_tried_together() -> None:
    k = LinearCombination(["gaussian", resolve("linear"), Gaussian(2.0)], [1.0, 0.1, -1.0])
    grid = fitted(k).grid()
    width = fitted(Gaussian()).width_
    assert [{name: part.width for name, part in one.items()} for one in grid] == [
        {"k1": f * width, "k3": f * 2.0} for f in (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
    ]
    model = KreinRidgeClassifier(k, kernel_params="auto", random_state=0).fit(X, Y)
    assert model.kernel_.parts[2].width_ / model.kernel_.parts[0].width_ == pytest.approx(2 / width)


# Dissimilarities


def test_sums_of_dissimilarities_are_dissimilarities() -> None:
    d, e = dissimilarity(pairwise(apart)), dissimilarity(pairwise(letters))
    k = fitted(0.5 * d + 2.0 * e + 0.0 * d, WORDS)
    assert k.is_dissimilarity
    D = 0.5 * np.array([[apart(a, b) for b in WORDS] for a in WORDS])
    D += 2.0 * np.array([[letters(a, b) for b in WORDS] for a in WORDS])
    assert_array_equal(k(WORDS), D)
    assert_array_equal(k.diagonal(WORDS), 0.0)
    own = KreinRidgeClassifier(k, cv=FOLDS).fit(WORDS[:30], MANY[:30])
    given = KreinRidgeClassifier("precomputed_dissimilarity", cv=FOLDS)
    given.fit(D[:30, :30], MANY[:30])
    assert own.similarity_ == given.similarity_
    assert_allclose(
        own.decision_function(WORDS[30:]), given.decision_function(D[30:, :30]), atol=1e-12
    )


D1, D2 = Hausdorff(), dissimilarity(pairwise(apart))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: D1 - D2, r"Hausdorff\(\) is a dissimilarity: with a negative weight"),
        (lambda: -D1, "with a negative weight"),
        (lambda: -2.0 * D2, "with a negative weight"),
        (lambda: D1 + pairwise(common), r"Hausdorff\(\) .* cannot be added to a similarity"),
        (lambda: pairwise(common) - D1, "cannot be added to a similarity"),
        (lambda: D1 * D1, "a product with it has no meaning"),
        (lambda: pairwise(common) * D2, "a product with it has no meaning"),
        (lambda: normalized(D2), "cannot serve as a size"),
    ],
)
def test_what_dissimilarities_cannot_do(make: Any, why: str) -> None:
    with pytest.raises(ValueError, match=rf"{why}.*first: similarity_of\(d, \"exp\"\)"):
        make()


def test_the_same_is_said_by_fit() -> None:
    for kernel in (
        LinearCombination(["hausdorff", "modified_hausdorff"], [1, -1]),
        Product(["hausdorff"]),
    ):
        with pytest.raises(ValueError, match="is a dissimilarity"):
            KreinNystroem(kernel).fit(list(X.reshape(50, 3, 1)))


# Bad inputs


@pytest.mark.parametrize("bad", ["sigmoid", len, None, np.ones(2), 1j])
def test_only_kernels_and_numbers_go_with_kernels(bad: Any) -> None:
    for operate in (
        lambda: Gaussian() + bad,
        lambda: Gaussian() - bad,
        lambda: Gaussian() * bad,
        lambda: bad * Gaussian(),
    ):
        with pytest.raises(TypeError, match=r"cannot be combined with .* resolve\(\.\.\.\)"):
            operate()


def test_sums_of_lists_and_kernels_over_numbers() -> None:
    f, g = Gaussian(1.0), Gaussian(2.0)
    assert_array_equal(fitted(sum([f, g]))(X), fitted(f + g)(X))
    assert sum([f]) is f
    assert 0.0 + f is np.int64(0) + f is f
    assert_array_equal(fitted((f - g) / 4)(X), fitted(f - g)(X) / 4)
    assert (f / np.float64(2)).weights == [0.5]
    for other in (1, "gaussian", False):
        with pytest.raises(TypeError, match="a kernel cannot be combined with"):
            other + f
    with pytest.raises(ValueError, match="a kernel cannot be divided by 0; pass another number"):
        f / 0
    with pytest.raises(ValueError, match=r"a divisor=nan is not allowed; pass a finite"):
        f / np.nan
    with pytest.raises(
        TypeError, match=r"cannot be divided by Gaussian\(.*; divide it by a number"
    ):
        f / g


@pytest.mark.parametrize("weight", [np.nan, np.inf, True])
def test_a_weight_is_a_finite_number(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"a weight=.* is not allowed; pass a finite number"):
        weight * Gaussian()
    with pytest.raises(ValueError, match=r"a weight=.* is not allowed; pass a finite number"):
        fitted(LinearCombination([Gaussian()], [weight]))


def test_one_weight_a_kernel() -> None:
    with pytest.raises(ValueError, match=r"weights=\[1, 2\] for 1 kernels: pass one weight"):
        fitted(LinearCombination(["gaussian"], [1, 2]))


@pytest.mark.parametrize("kernels", ["gaussian", [], None, Gaussian()])
def test_kernels_are_a_list(kernels: Any) -> None:
    for kind in (LinearCombination, Product):
        with pytest.raises(TypeError, match="is not a list of kernels; pass one or more"):
            kind(kernels).fit(X, np.random.default_rng(0))


def test_parts_see_the_same_objects() -> None:
    with pytest.raises(ValueError, match=r"Gaussian\(\) takes vectors, .* takes objects; combine"):
        Gaussian() + similarity_of("hausdorff")


@pytest.mark.parametrize("name", ["precomputed", "precomputed_dissimilarity"])
def test_a_matrix_is_no_part(name: str) -> None:
    with pytest.raises(ValueError, match=r"a given matrix cannot be part .* in K1 - K2, and pass"):
        resolve(name) + Gaussian()
    with pytest.raises(ValueError, match="a given matrix cannot be part"):
        KreinNystroem(LinearCombination([name])).fit(np.eye(5))


def test_values_out_of_range_name_the_row() -> None:
    k = 1e308 * pairwise(lengths)
    with pytest.raises(ValueError, match="kernel produced inf for row"):
        KreinNystroem(k).fit(["a" * 30, "b" * 40])


# In estimators


def test_precomputed_equals_the_combination_through_fit_and_predict() -> None:
    k = pairwise(common) - 0.2 * pairwise(lengths)
    K = np.array([[common(a, b) - 0.2 * lengths(a, b) for b in WORDS] for a in WORDS])
    own = KreinRidgeClassifier(k, cv=FOLDS).fit(WORDS[:30], MANY[:30])
    given = KreinRidgeClassifier("precomputed", cv=FOLDS).fit(K[:30, :30], MANY[:30])
    assert own.lambda_plus_ == pytest.approx(given.lambda_plus_, rel=1e-9)
    scores = given.decision_function(K[30:, :30])
    objects = np.empty(10, dtype=object)
    objects[:] = WORDS[30:]
    for new in (WORDS[30:], objects, pd.Series(WORDS[30:]), pl.Series(WORDS[30:])):
        assert_allclose(own.decision_function(new), scores, atol=1e-12)
    assert_allclose(
        pickle.loads(pickle.dumps(own)).decision_function(WORDS[30:]), scores, atol=1e-12
    )


def test_a_search_over_parameters_of_the_parts() -> None:
    kernel = Gaussian(4.0) - Gaussian(1.0) * Sigmoid()
    grid = {"kernel__k1__width": [2.0, 8.0], "kernel__weights": [[1, -1], [1, 0.5]]}
    model = KreinRidgeClassifier(kernel, lambda_plus=0.1, lambda_minus=0.1, random_state=0)
    search = GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    best = clone(model).set_params(**search.best_params_).fit(X, Y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(X), best.decision_function(X))
    assert kernel.kernels[0].width == 4.0
    kernels = [Gaussian(1.0), kernel, LinearCombination(["gaussian", "sigmoid"], [1, -1])]
    search = GridSearchCV(model, {"kernel": kernels}, cv=3).fit(X, Y)
    assert search.best_index_ in range(3)


def test_functions_run_in_processes_inside_a_combination() -> None:
    k = pairwise(lengths) - normalized(pairwise(common) * pairwise(lengths) + pairwise(common))
    k.processes = Processes(2)
    in_two = k.fit(WORDS, np.random.default_rng(0))

    def functions(kernel: Any) -> list[Any]:
        if not hasattr(kernel, "parts"):
            return [kernel]
        return [f for part in kernel.parts for f in functions(part)]

    assert {f.processes for f in functions(in_two)} == {k.processes}
    in_one = fitted(k, WORDS)
    assert {f.processes for f in functions(in_one)} == {None}  # a clone starts anew
    assert_array_equal(in_two(WORDS[:8], WORDS), in_one(WORDS[:8], WORDS))
    assert_array_equal(in_two(WORDS), in_one(WORDS))
