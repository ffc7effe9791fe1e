"""Jaccard's and Tversky's indices against Python's own sets and scikit-learn's metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances

from kreinlearn import KreinRidgeClassifier, dissimilarity
from kreinlearn.kernels.base import SQUARE, resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.sets import JaccardSets, Tversky
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

KERNELS: list[Any] = [
    JaccardSets(),
    Tversky(),
    Tversky(0.5, 0.5),
    Tversky(0.3, 2.0),
    Tversky(1.0, 0.0),
    Tversky(0.0, 0.0),
    Tversky(0.7, 0.1, is_dissimilarity=True),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def sets(n: int, seed: int = 0, largest: int = 9, elements: int = 20) -> list[set[int]]:
    rng = np.random.default_rng(seed)
    return [set(rng.integers(elements, size=k).tolist()) for k in rng.integers(0, largest, n)]


def by_definition(kernel: Any, a: set[Any], b: set[Any]) -> float:
    if isinstance(kernel, JaccardSets):
        return 1 - len(a & b) / len(a | b) if a | b else 0.0
    only = sorted([len(a - b), len(b - a)])
    whole = len(a & b) + kernel.alpha * only[0] + kernel.beta * only[1]
    value = len(a & b) / whole if whole else float(a == b)
    return 1 - value if kernel.is_dissimilarity else value


def table(kernel: Any, A: Any, B: Any) -> Any:
    return matrix(lambda a, b: by_definition(kernel, set(a), set(b)), A, B)


# Values


@every_kernel
def test_equals_the_definition(kernel: Any) -> None:
    A, Z = sets(40, seed=1), [set[int](), *sets(30, seed=2, elements=25)]
    assert_allclose(kernel(A, Z), table(kernel, A, Z), rtol=1e-15, atol=2e-16)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sets(st.one_of(st.integers(-3, 3), st.text("ab", max_size=2), st.none())), max_size=6
    )
)
def test_any_sets_whatever(X: list[set[Any]]) -> None:
    for kernel in KERNELS:
        check_symmetry(kernel, X)
        assert_allclose(kernel(X, X[::-1]), table(kernel, X, X[::-1]), rtol=1e-15, atol=2e-16)


def test_jaccard_and_dice_of_sets_as_rows_of_booleans() -> None:
    A, Z = sets(30, seed=3, elements=12), sets(20, seed=4, elements=12)
    rows = [np.array([[e in x for e in range(12)] for x in X]) for X in (A, Z)]
    assert_allclose(JaccardSets()(A, Z), pairwise_distances(*rows, metric="jaccard"), atol=2e-16)
    some = [[x for x in X if x] for X in (A, Z)]  # of two empty sets scipy says NaN
    rows = [np.array([[e in x for e in range(12)] for x in X]) for X in some]
    expected = pairwise_distances(*rows, metric="dice")
    assert_allclose(1 - Tversky(0.5, 0.5)(*some), expected, rtol=1e-14, atol=2e-16)


def test_values_by_hand() -> None:
    A, Z = [{1, 2, 3}], [{2, 3, 4, 5}, {1}, set[int](), {9}]
    assert_array_equal(JaccardSets()(A, Z), [[1 - 2 / 5, 1 - 1 / 3, 1, 1]])
    assert_array_equal(Tversky(1, 0)(A, Z), [[2 / 3, 1, 0, 0]])
    assert_array_equal(Tversky(0.2, 0.8)(A, Z), [[2 / (2 + 0.2 * 1 + 0.8 * 2), 1 / 2.6, 0, 0]])


@every_kernel
def test_symmetric_beyond_one_strip(kernel: Any) -> None:
    check_symmetry(kernel, sets(10 * SQUARE + 30, seed=5))


@every_kernel
def test_pieces_threads_and_copies_change_no_bit(kernel: Any) -> None:
    A, Z = sets(30, seed=6), sets(17, seed=7)
    check_pieces(kernel, A, Z)
    check_copies(kernel, A, Z)


@every_kernel
def test_lists_arrays_and_frozensets_are_sets(kernel: Any) -> None:
    A, Z = sets(12, seed=8), sets(9, seed=9)
    K = kernel(A, Z)
    for form in (frozenset, list, tuple, lambda x: [*x, *x], lambda x: np.array(sorted(x), int)):
        assert_array_equal(kernel([form(a) for a in A], [form(z) for z in Z]), K)
        assert_array_equal(kernel([form(a) for a in A], Z), K)


# Through an estimator


def two_kinds(n: int, seed: int) -> tuple[list[list[str]], Any]:
    y = np.arange(n) % 2
    rng = np.random.default_rng(seed)
    tags = [list("abcdex"), list("fghijx")]
    return [rng.choice(tags[k], rng.integers(2, 6), replace=False).tolist() for k in y], y


def test_any_sequence_of_sets_goes_through_an_estimator() -> None:
    X, y = two_kinds(24, seed=10)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    forms = [objects, pd.Series([frozenset(x) for x in X]), pl.Series(X)]
    check_estimator(JaccardSets(), X, y, two_kinds(9, seed=11)[0], forms)
    check_estimator(Tversky(0.5, 0.5), X, y, two_kinds(9, seed=11)[0], [])


def test_names() -> None:
    for name, kind in [("jaccard_sets", JaccardSets), ("tversky", Tversky)]:
        kernel = resolve(name)
        assert type(kernel) is kind
        assert (kernel.domain, kernel.threads) == (Objects(), True)
        assert kernel.is_dissimilarity == (kind is JaccardSets)
    assert resolve("jaccard").domain.is_vectors
    assert dissimilarity("tversky", alpha=0.5, beta=0.5).is_dissimilarity


# What is refused


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("abc", r"is str 'abc'; allowed are set, frozenset, or a list, tuple or 1-D array"),
        (None, r"is NoneType None"),
        (np.nan, r"is float nan"),
        ({"a": 1}, r"is dict \{'a': 1\}"),
        (5, r"is int 5"),
        ([["a"]], r"holds list \['a'\], which is not hashable; allowed are set"),
        ({1.0, np.nan}, r"holds NaN, which equals nothing, not even itself"),
        (np.zeros((2, 2)), r"holds list \[0.0, 0.0\], which is not hashable"),
    ],
)
def test_what_is_no_set_is_named(bad: Any, message: str) -> None:
    check_bad_object(JaccardSets(), [{"a"}, {"b", "c"}], bad, message)


@pytest.mark.parametrize("weights", [(-1, 1), (1, np.inf), (np.nan, 1), ("1", 1), (1, None)])
def test_weights_that_are_none(weights: Any) -> None:
    kernel = Tversky(*weights)
    with pytest.raises(ValueError, match=r"(alpha|beta)=.* pass a finite number, 0 or more"):
        kernel([{1}])
    with pytest.raises(ValueError, match=r"(alpha|beta)="):
        KreinRidgeClassifier(kernel).fit([{1}, {2}], [0, 1])
