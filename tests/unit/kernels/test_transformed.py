"""Dissimilarities as similarities and normalised kernels, pair by pair from their definition."""

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
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from kreinlearn import (
    KreinNystroem,
    KreinRidgeClassifier,
    KreinSVC,
    SpectrumSVC,
    dissimilarity,
    pairwise,
)
from kreinlearn.datasets import make_noisy_strings
from kreinlearn.kernels import Gaussian, Hausdorff, Kernel, Sigmoid, resolve
from kreinlearn.kernels.combine import LinearCombination
from kreinlearn.kernels.dissimilarity import TRANSFORMS
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.transformed import (
    SAMPLE,
    Normalized,
    SimilarityOf,
    normalized,
    similarity_of,
)
from tests import oracles

RNG = np.random.default_rng(11)
WORDS = ["".join(RNG.choice(list("abc"), RNG.integers(1, 9))) for _ in range(60)]
Y = np.array([word.count("a") > word.count("b") for word in WORDS]).astype(int)
FOLDS = StratifiedKFold(5)  # by default equal words would be left out together, unlike in a matrix


def apart(a: str, b: str) -> float:
    """Letters that one has more often than the other; not Euclidean."""
    return float(sum(abs(a.count(c) - b.count(c)) ** 0.5 for c in "abc") ** 2)


def overlap(a: str, b: str) -> float:
    return float(sum(min(a.count(c), b.count(c)) for c in "abc") - 3)


D = np.array([[apart(a, b) for b in WORDS] for a in WORDS])
LETTERS = dissimilarity(pairwise(apart))


def fitted(kernel: Any, objects: Any = WORDS, seed: int = 0) -> Any:
    return clone(kernel).fit(objects, np.random.default_rng(seed))


def places(k: Any) -> Any:
    """Row numbers of the reference objects."""
    known = {id(word): i for i, word in enumerate(WORDS)}
    return np.array([known[id(word)] for word in k.reference_])


def by_definition(name: str, x: Any, z: Any, R: Any, width: float = 1.0) -> float:
    """k(x, z) by object numbers, R those of the reference set."""
    pairs = sorted(D[i, j] for n, i in enumerate(R) for j in R[n + 1 :])
    s, d = float(np.median(pairs)), D[x, z]
    if name.startswith("rank"):
        u = np.sqrt(oracles.rank(d, D[x, R], 1e-6 * s) * oracles.rank(d, D[z, R], 1e-6 * s))
        u /= width * {"rank1": 1, "rank3": 3, "rank10": 10, "rank_inverse3": 3}[name]
        return float(1 / (1 + u) if "inverse" in name else np.exp(-u))
    if name not in ("squared", "linear"):
        d /= width
    if name in ("exp", "narrow_exp"):
        return float(np.exp(-d / (s * (0.3 if name == "narrow_exp" else 1.0))))
    if name == "gauss":
        return float(np.exp(-((d / s) ** 2)))
    if name == "inverse":
        return 1 / (1 + d / s)
    if name in ("squared", "linear"):
        P = D**2 if name == "squared" else D
        c = np.mean([P[i, j] for i in R for j in R])
        return float(-0.5 * (P[x, z] - np.mean(P[x, R]) - np.mean(P[z, R]) + c))
    k = int(name[-1])
    a = [sorted(D[o, R])[k if min(D[o, R]) == 0 else k - 1] for o in (x, z)]
    square = d**2 / max(a[0], 1e-7 * s) / max(a[1], 1e-7 * s)
    if "inverse" in name:
        return float(1 / (1 + square**0.5))
    return float(np.exp(-(square**0.5) if "exp" in name else -square))


# A dissimilarity as a similarity


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
@pytest.mark.parametrize("n_reference", [12, 200])
def test_every_transformation_from_the_definition(name: str, n_reference: int) -> None:
    k = fitted(similarity_of(LETTERS, name, n_reference))
    R = places(k)
    assert len(R) == min(n_reference, len(WORDS))
    assert (np.diff(R) > 0).all()
    K = k(WORDS)
    assert_array_equal(K, K.T)
    assert K.dtype == np.float64
    for x, z in RNG.integers(len(WORDS), size=(60, 2)):
        assert K[x, z] == pytest.approx(by_definition(name, x, z, R), rel=1e-12, abs=1e-12)
    assert_allclose(k(WORDS, WORDS[:7]), K[:, :7], atol=1e-12)
    assert_allclose(k.diagonal(WORDS), np.diag(K), atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(TRANSFORMS) - {"squared", "linear"}))
def test_a_width_is_a_factor_of_the_scale(name: str) -> None:
    k = fitted(similarity_of(LETTERS, name, 12, width=2.5))
    K, R = k(WORDS), places(k)
    for x, z in RNG.integers(len(WORDS), size=(60, 2)):
        assert K[x, z] == pytest.approx(by_definition(name, x, z, R, 2.5), rel=1e-12)
    assert_allclose(k(WORDS, WORDS[:7]), K[:, :7], atol=1e-12)
    assert_array_equal(k.diagonal(WORDS), 1.0)


def test_a_search_over_widths() -> None:
    model = KreinRidgeClassifier(similarity_of(LETTERS), lambda_plus=0.1, random_state=0)
    widths = [0.01, 1.0, 3.0]
    search = GridSearchCV(model, {"kernel__width": widths}, cv=3).fit(WORDS, Y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    s = float(np.median(D[np.triu_indices(60, 1)]))
    best = search.best_params_["kernel__width"]
    assert_allclose(search.best_estimator_.kernel_(WORDS), np.exp(-D / (s * best)), rtol=1e-12)


@pytest.mark.parametrize("name", ["squared", "linear"])
def test_what_has_no_scale_has_no_width(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"width=2.0 has no meaning with transform='{name}'.*at 1"
    ):
        similarity_of(LETTERS, name, width=2.0)
    for bad in (0.0, -1.0, np.inf, "median", None):
        with pytest.raises(ValueError, match=r"width=.* is not allowed; pass a positive finite"):
            fitted(SimilarityOf(LETTERS, width=bad))


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_equal_to_the_learners_own_route(name: str) -> None:
    fixed = {"lambda_plus": 0.1, "lambda_minus": 0.2, "random_state": 0}
    own = KreinRidgeClassifier("precomputed_dissimilarity", similarity=name, **fixed)
    own.fit(D[:45, :45], Y[:45])
    expected = own.decision_function(D[45:, :45])
    model = KreinRidgeClassifier(similarity_of(LETTERS, name), **fixed).fit(WORDS[:45], Y[:45])
    for new in (
        WORDS[45:],
        pd.Series(WORDS[45:]),
        pl.Series(WORDS[45:]),
        np.array(WORDS[45:], object),
    ):
        assert_allclose(model.decision_function(new), expected, atol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(WORDS), model.decision_function(WORDS))


def test_precomputed_equals_the_kernel_with_tuned_penalties() -> None:
    k = fitted(similarity_of(LETTERS, "local3"), WORDS[:45])
    given = KreinRidgeClassifier("precomputed", cv=FOLDS).fit(k(WORDS[:45]), Y[:45])
    model = KreinRidgeClassifier(similarity_of(LETTERS, "local3"), cv=FOLDS)
    model.fit(WORDS[:45], Y[:45])
    assert_allclose(
        model.decision_function(WORDS[45:]),
        given.decision_function(k(WORDS[45:], WORDS[:45])),
        atol=1e-12,
    )


class Counted(Kernel):
    """The distance of words, and the number of pairs evaluated."""

    domain = Objects()
    is_dissimilarity = True
    pairs: Counter[str] = Counter()

    def columns(self, Z: Any) -> Any:
        return CountedColumns(Z)


class CountedColumns:
    def __init__(self, Z: Any) -> None:
        self.Z = Z

    def __call__(self, A: Any, out: Any = None) -> Any:
        Counted.pairs["pairs"] += len(A) * len(self.Z)
        return np.array([[apart(a, z) for z in self.Z] for a in A])


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_reference_distances_are_evaluated_where_they_are_needed(name: str) -> None:
    k = fitted(similarity_of(Counted(), name, n_reference=10))
    needed = 0 if name in ("exp", "narrow_exp", "gauss", "inverse") else 10

    def pairs(function: Any, *args: Any) -> int:
        Counted.pairs.clear()
        function(*args)
        return Counted.pairs["pairs"]

    columns = k.columns(WORDS[:5])
    assert pairs(k.columns, WORDS[:5]) == 5 * needed
    assert pairs(columns, WORDS[:8]) == 8 * (5 + needed)
    assert pairs(k.diagonal, WORDS[:8]) == 8 * needed
    assert pairs(k.symmetric, WORDS[:8]) == 8 * (8 + needed)


def test_the_reference_is_drawn_by_the_generator() -> None:
    kernel = similarity_of(LETTERS, "squared", n_reference=10)
    first, again, other = fitted(kernel), fitted(kernel), fitted(kernel, seed=1)
    assert first.reference_ == again.reference_ != other.reference_
    rng = np.random.default_rng(0)
    clone(kernel).fit(WORDS, rng)
    assert rng.random() == np.random.default_rng(0).random()


def test_blocks_pickling_and_out_change_no_bit() -> None:
    for name in ("squared", "exp", "local1"):
        k = fitted(similarity_of(LETTERS, name, n_reference=10))
        columns = k.columns(WORDS[:9])
        whole = columns(WORDS)
        pieces = [columns(WORDS[start : start + 7]) for start in range(0, len(WORDS), 7)]
        assert_array_equal(np.concatenate(pieces), whole)
        assert_array_equal(pickle.loads(pickle.dumps(columns))(WORDS), whole)
        assert_array_equal(pickle.loads(pickle.dumps(k))(WORDS, WORDS[:9]), whole)
        out = np.full((70, 9), 5.0)
        assert np.shares_memory(columns(WORDS, out), out)
        assert_array_equal(out[:60], whole)
        assert_array_equal(out[60:], 5.0)


def test_any_dissimilarity_is_taken() -> None:
    X = RNG.normal(size=(20, 2))
    city = np.abs(X[:, None] - X).sum(axis=2)
    s = np.median(city[np.triu_indices(20, 1)])

    def cityblock(A: Any, B: Any) -> Any:
        return np.abs(A[:, None] - B).sum(axis=2)

    scalar = pairwise(lambda a, b: float(np.abs(a - b).sum()))
    for d in ("cityblock", dissimilarity("manhattan"), cityblock, dissimilarity(cityblock), scalar):
        k = fitted(similarity_of(d), X)
        assert not k.is_dissimilarity
        assert_allclose(k(X), np.exp(-city / s), rtol=1e-12)
        assert_allclose(fitted(SimilarityOf(d), X)(X), np.exp(-city / s), rtol=1e-12)
    mixed = 0.5 * dissimilarity("cityblock") + 0.5 * dissimilarity("euclidean")
    M = 0.5 * city + 0.5 * np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    expected = 1 / (1 + M / np.median(M[np.triu_indices(20, 1)]))
    assert_allclose(fitted(similarity_of(mixed, "inverse"), X)(X), expected, rtol=1e-12)
    assert similarity_of("hausdorff").domain == Objects()
    assert fitted(similarity_of("cosine", "linear"), X).parts[0].is_dissimilarity  # not the kernel


@pytest.mark.parametrize(
    "model",
    [
        KreinRidgeClassifier(landmarks=20, random_state=0),
        KreinSVC(random_state=0),
        SpectrumSVC(random_state=0),
        KreinNystroem(landmarks=20, random_state=0),
    ],
)
def test_every_estimator_takes_it(model: Any) -> None:
    kernel = similarity_of(LETTERS, "squared", n_reference=30) - 0.1 * pairwise(overlap)
    model.set_params(kernel=kernel).fit(WORDS, Y)
    use = model.transform if hasattr(model, "transform") else model.decision_function
    assert np.isfinite(use(WORDS[:5])).all()
    assert not hasattr(model, "similarity_")


def test_a_search_over_transformations() -> None:
    kernel = similarity_of(LETTERS)
    model = KreinRidgeClassifier(kernel, lambda_plus=0.1, lambda_minus=0.1, random_state=0)
    grid = {"kernel__transform": ["exp", "squared"], "kernel__n_reference": [10, 50]}
    search = GridSearchCV(model, grid, cv=3).fit(WORDS, Y)
    best = clone(model).set_params(**search.best_params_).fit(WORDS, Y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(WORDS), best.decision_function(WORDS))
    assert "kernel__params" in kernel.get_params()
    assert kernel.transform == "exp"


def test_bad_transformations_and_references() -> None:
    with pytest.raises(ValueError, match=r"transform='cubed' is not known; choose from \['exp'"):
        similarity_of(LETTERS, "cubed")
    with pytest.raises(
        ValueError, match=r"transform='auto' .* kernel=d itself and similarity=\"au"
    ):
        similarity_of(LETTERS, "auto")
    for bad in (0, -3, 2.5, "all", True, None):
        with pytest.raises(ValueError, match=r"n_reference=.* is not allowed; pass a number"):
            fitted(SimilarityOf(LETTERS, "exp", bad))
    with pytest.raises(ValueError, match=r"Gaussian\(\) is a similarity"):
        similarity_of(Gaussian())
    with pytest.raises(ValueError, match="a given matrix cannot be part of another kernel"):
        similarity_of("precomputed_dissimilarity")
    with pytest.raises(ValueError, match=r"'kernel__p' .* kernel is the name 'cityblock'"):
        SimilarityOf("cityblock").set_params(kernel__p=2)


@pytest.mark.parametrize("name", ["exp", "squared"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "Negative values in data passed to X. A dissimilarity is never negative"),
        (np.inf, "the dissimilarity is inf for row 0 and column 2 of"),
        (np.nan, "the dissimilarity is NaN for row 0 and column 2 of"),
    ],
)
def test_bad_distances_are_found_in_fit_and_in_blocks(
    name: str, value: float, message: str
) -> None:
    def d(a: int, b: int) -> float:
        return value if {a, b} == {0, 2} else float(abs(a - b))

    k = similarity_of(pairwise(d), name)
    with pytest.raises(ValueError, match=message):
        fitted(k, [0, 1, 2])
    k.fit([0, 1], np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=message.replace("row 0 and column 2", r"row \d and column \d")
    ):
        k([0, 5], [1, 3, 2])
    with pytest.raises(ValueError, match="the diagonal of a dissimilarity must be zero"):
        fitted(similarity_of(pairwise(lambda a, b: 1.0)), [0, 1])


# A similarity over its own size


def normal(k: Any, a: Any, b: Any, c: float = 0.0) -> float:
    return float(k(a, b) / np.sqrt(max(abs(k(a, a)), c) * max(abs(k(b, b)), c)))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(st.text("abc", max_size=7), min_size=2, max_size=8))
def test_normalised_values_from_the_definition(words: list[str]) -> None:
    k = fitted(normalized(pairwise(overlap), floor=0.5), words)
    own = [abs(overlap(a, a)) for a in words if overlap(a, a) != 0]
    c = 0.5 * float(np.median(own)) if own else 1.0
    K = k(words)
    expected = np.array([[normal(overlap, a, b, c) for b in words] for a in words])
    assert_allclose(K, expected, rtol=1e-14)
    assert_array_equal(K, K.T)
    assert_array_equal(np.diag(K), k.diagonal(words))
    assert_allclose(k(words, words[:2]), K[:, :2], rtol=1e-14)
    for a, value in zip(words, k.diagonal(words), strict=True):
        assert value == np.sign(overlap(a, a)) if abs(overlap(a, a)) >= c else abs(value) < 1


def test_self_similarity_becomes_its_sign_exactly() -> None:
    X = RNG.normal(size=(200, 3))
    k = fitted(normalized(Sigmoid(gain=1.0, bias=-2.0), floor=1e-6), X)
    own = np.tanh(np.sum(X**2, axis=1) - 2.0)
    assert {-1.0, 1.0} == set(k.diagonal(X)) == set(np.diag(k(X)))
    assert_array_equal(k.diagonal(X), np.sign(own))
    assert (np.abs(np.diag(k(X, X)) - np.sign(own)) <= 1e-14 / np.abs(own)).all()
    assert_array_equal(k(X, X[:9])[:9], k(X, X[:9])[:9].T)


def test_zero_and_tiny_self_similarities() -> None:
    def product(a: float, b: float) -> float:
        return a * b if a != b else a * abs(a)

    x = [0.0, 1e-6, -1e-2, 1.0, -2.0, 2.0, 4.0]
    k = fitted(normalized(pairwise(product), floor=1e-3), x)
    c = 1e-3 * np.median([1e-12, 1e-4, 1.0, 4.0, 4.0, 16.0])
    assert k.least_ == pytest.approx(c, rel=1e-14)
    assert_allclose(k.diagonal(x), [0.0, 1e-12 / c, -1e-4 / c, 1, -1, 1, 1], rtol=1e-12)
    assert np.isfinite(k(x)).all()
    assert k([0.0], x).tolist() == [[0.0] * 7]
    zero = fitted(normalized(pairwise(lambda a, b: abs(a - b))), x)  # k(x, x) = 0 throughout
    assert_array_equal(zero(x), np.abs(np.subtract.outer(x, x)))


def test_an_object_without_size_is_not_blown_up() -> None:
    words = ["XXX", "ACD", "", "WWW"]
    raw, k = resolve("needleman_wunsch"), fitted(normalized("needleman_wunsch"), words)
    own = np.abs(np.diag(raw(words)))
    middle = np.median(own[own > 0])
    assert own.min() == 0
    assert k.least_ == pytest.approx(0.1 * middle)
    above = own >= 0.1 * middle
    assert_array_equal(np.abs(np.diag(k(words)))[above], 1.0)
    small = np.abs(raw(words)) <= middle
    assert np.abs(k(words))[small].max() <= 10.0


def test_an_empty_string_hardly_changes_a_classifier() -> None:
    words, y = make_noisy_strings(120, noise=12, length=24, random_state=0)
    train = list(words[:80])
    model = KreinRidgeClassifier(normalized("needleman_wunsch"), random_state=0)
    before = model.fit(train, y[:80]).score(words[80:], y[80:])
    after = model.fit([*train, ""], [*y[:80], y[0]]).score(words[80:], y[80:])
    assert before >= 0.85
    assert after >= before - 0.05


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_no_scale_matters(scale: float) -> None:
    k = fitted(normalized(pairwise(overlap)))
    scaled = fitted(normalized(scale * pairwise(overlap)))
    assert_allclose(scaled(WORDS), k(WORDS), rtol=1e-12)


def test_diagonals_are_evaluated_once_of_columns_and_once_of_each_row() -> None:
    calls: list[tuple[str, str]] = []

    def f(a: str, b: str) -> float:
        calls.append((a, b))
        return overlap(a, b)

    k = fitted(Normalized(pairwise(f)))
    columns = k.columns(WORDS[:5])
    assert calls[len(WORDS) :] == [(a, a) for a in WORDS[:5]]
    calls.clear()
    columns(WORDS[:8])
    columns(WORDS[8:16])
    assert len(calls) == 16 * (5 + 1)


def test_the_floor_comes_from_a_sample() -> None:
    x = np.arange(1.0, SAMPLE + 500)[:, None]
    kernel = normalized("linear", floor=1.0)
    first, again, other = (fitted(kernel, x, seed).least_ for seed in (0, 0, 2))
    assert first == again != other
    assert first == pytest.approx(np.median(x**2), rel=0.1)


def test_normalised_in_an_estimator() -> None:
    kernel = normalized(pairwise(overlap))
    K = fitted(kernel, WORDS[:45])(WORDS, WORDS[:45])
    model = KreinRidgeClassifier(kernel, cv=FOLDS).fit(WORDS[:45], Y[:45])
    given = KreinRidgeClassifier("precomputed", cv=FOLDS).fit(
        fitted(kernel, WORDS[:45])(WORDS[:45]), Y[:45]
    )
    assert_allclose(
        model.decision_function(WORDS[45:]), given.decision_function(K[45:]), atol=1e-12
    )
    search = GridSearchCV(model, {"kernel__floor": [1e-6, 0.1]}, cv=3).fit(WORDS, Y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(WORDS), search.decision_function(WORDS))


def test_bad_floors_and_self_similarities() -> None:
    for bad in (0.0, -1.0, np.nan, "small"):
        with pytest.raises(ValueError, match=r"floor=.* is not allowed; pass a positive"):
            fitted(Normalized(pairwise(overlap), bad))
    with pytest.raises(ValueError, match="the similarity of object 2 to itself is nan; leave"):
        fitted(Normalized(pairwise(lambda a, b: a * b)), [1.0, 2.0, np.nan])
    with pytest.raises(ValueError, match=r"is a dissimilarity: .* cannot serve as a size"):
        KreinNystroem(Normalized("hausdorff")).fit([[[0.0]], [[1.0]]])


@pytest.mark.parametrize("kernel", [Normalized(pairwise(overlap)), similarity_of(LETTERS)])
def test_use_before_fit(kernel: Kernel) -> None:
    for use in (kernel.columns, kernel.diagonal, kernel.symmetric):
        with pytest.raises(NotFittedError):
            use(WORDS[:3])


def test_parts_inside_parts() -> None:
    points = [RNG.normal(size=(k, 2)) for k in RNG.integers(1, 6, 20)]
    inner = LinearCombination([Hausdorff(), "modified_hausdorff"], [0.5, 0.5])
    product = similarity_of(inner, "linear") * similarity_of(inner)
    k = fitted(normalized(product, floor=1e-6), points)
    H, M = Hausdorff()(points), fitted(LinearCombination(["modified_hausdorff"]), points)(points)
    J = np.eye(20) - 1 / 20
    P = 0.5 * (H + M)
    L = -0.5 * J @ P @ J * np.exp(-P / np.median(P[np.triu_indices(20, 1)]))
    s = np.sqrt(np.abs(np.diag(L)))
    assert_allclose(k(points), L / np.outer(s, s), atol=1e-12)
    assert "kernel__k1__kernel__k1" in k.get_params()
