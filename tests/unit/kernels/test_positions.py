"""The weighted degree kernel against slices of strings, as its definition has them."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kreinlearn import KreinClassifier, KreinRidgeClassifier, load
from kreinlearn.kernels import resolve
from kreinlearn.kernels.candidates import candidates_for
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.positions import WeightedDegree
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

KERNELS = [
    WeightedDegree(),
    WeightedDegree(degree=1, shift=0),
    WeightedDegree(degree=4, shift=1),
    WeightedDegree(degree=20, shift=30),  # more than the strings have letters
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
EPS = np.finfo(float).eps
TERMS = 100  # sums of fewer terms, each of them exact before it is divided


def words(n: int, letters: str = "abcé😀", length: int = 9, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), length)) for _ in range(n)]


def of_any_length(n: int, seed: int) -> list[str]:
    sizes = np.random.default_rng(seed).integers(0, 12, n)
    return [x[:k] for x, k in zip(words(n, "abc", 12, seed), sizes, strict=True)]


# The definition


def by_definition(kernel: WeightedDegree) -> Callable[[Any, Any], float]:
    """k(x, z) from the formula of the paper, run by run and shift by shift."""
    D, S = kernel.degree, kernel.shift

    def score(x: Any, z: Any) -> float:
        total, places = 0.0, range(max(len(x), len(z)))
        for d in range(1, D + 1):
            for l in places:
                for e in range(S + 1):
                    one = len(x[l + e : l + e + d]) == d and x[l + e : l + e + d] == z[l : l + d]
                    two = len(z[l + e : l + e + d]) == d and z[l + e : l + e + d] == x[l : l + d]
                    beta = 2 * (D - d + 1) / (D * (D + 1))
                    total += beta * (one + two) / (2 * (e + 1))
        return total

    def value(x: Any, z: Any) -> float:
        return score(x, z) / sqrt(score(x, x) * score(z, z)) if len(x) and len(z) else 0.0

    return value


@every_kernel
def test_equals_its_definition(kernel: WeightedDegree) -> None:
    X, Z = words(12, seed=1), words(9, seed=2)
    K = kernel(X, Z)
    assert (K.shape, K.dtype) == ((12, 9), np.dtype(np.float64))
    assert_allclose(K, matrix(by_definition(kernel), X, Z), rtol=TERMS * EPS)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text("ab😀", max_size=9), max_size=5), st.integers(1, 4), st.integers(0, 3))
def test_any_strings_whatever(X: list[str], degree: int, shift: int) -> None:
    kernel = WeightedDegree(degree, shift, pad=True)
    assert_allclose(kernel(X), matrix(by_definition(kernel), X, X), rtol=TERMS * EPS)
    check_symmetry(kernel, X)


def test_values_by_hand() -> None:
    """ "abab" and "abbb" have a, b and b at the same places, and the run ab: 2/3 * 3 + 1/3 * 1."""
    own = 2 / 3 * 4 + 1 / 3 * 3
    assert WeightedDegree(2, 0)(["abab"], ["abbb"])[0, 0] == pytest.approx(7 / 3 / own)
    assert WeightedDegree(1, 0)(["abc"], ["cab"])[0, 0] == 0.0
    assert WeightedDegree(1, shift=1)(["abc"], ["cab"])[0, 0] == pytest.approx(2 / 4 / 3)
    assert WeightedDegree(1, shift=2)(["abc"], ["cab"])[0, 0] == pytest.approx((2 / 4 + 1 / 6) / 3)


# As a kernel


@every_kernel
def test_exactly_symmetric_and_positive(kernel: WeightedDegree) -> None:
    check_symmetry(kernel, words(120, "ab", 9, seed=6))
    X = of_any_length(120, seed=7)
    padded = WeightedDegree(kernel.degree, kernel.shift, pad=True)
    check_symmetry(padded, X)
    K = padded(X)
    assert np.linalg.eigvalsh(K).min() >= -len(X) * EPS * np.linalg.norm(K, 2)
    assert_array_equal(np.diag(K), [float(len(x) > 0) for x in X])  # exactly


def test_weights_of_places_are_positive_definite() -> None:
    """The sequence 1, 1/4, 1/6, ..., cut after any number of shifts: its cosine sum is positive."""
    angles = np.linspace(0, np.pi, 2001)
    for shift in range(1, 60):
        e = np.arange(1, shift + 1)
        sums = np.cos(np.outer(angles, e)) @ (1 / (e + 1))
        assert 1 + sums.min() >= 0.5 - TERMS * EPS


@every_kernel
def test_pieces_threads_and_copies_change_no_bit(kernel: WeightedDegree) -> None:
    A, Z = words(40, seed=8), words(17, seed=9)
    check_pieces(kernel, A, Z)
    check_copies(kernel, A, Z)


def test_every_pair_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, values = [], WeightedDegree.values
    monkeypatch.setattr(
        WeightedDegree, "values",
        lambda self, A, Z: seen.append(len(A.own) * len(Z.own)) or values(self, A, Z),
    )  # fmt: skip
    WeightedDegree()(words(128))
    assert sum(seen) == 128 * 127 // 2 + 128 + 8 * 16 * 15 // 2  # squares of 16 have both halves


def test_bytes_and_tokens_are_as_strings() -> None:
    X = words(30, "abc", seed=10)
    for kernel in KERNELS:
        K = kernel(X)
        for form in (
            str.encode,
            list,
            tuple,
            lambda x: np.array(list(x), dtype="<U1"),
            lambda x: [ord(c) - 2**63 for c in x],
            lambda x: np.array([ord(c) for c in x], dtype=np.uint8),
        ):
            assert_array_equal(kernel([form(x) for x in X]), K)


def test_empty_strings_are_like_nothing() -> None:
    for kernel in KERNELS:
        assert not kernel(["", ""]).any()
        assert kernel([], ["a"]).shape == (0, 1)
    assert not WeightedDegree(pad=True)([""], ["", "a"]).any()


# Through an estimator


def two_kinds(n: int, seed: int) -> tuple[list[str], Any]:
    """Words of the same letters, whose order in the middle tells them apart."""
    y = np.arange(n) % 2
    around = words(n, "abcd", 8, seed)
    return [x[:4] + ("abcd" if k else "dcba") + x[4:] for x, k in zip(around, y, strict=True)], y


@every_kernel
def test_an_estimator_does_as_with_the_matrix(kernel: WeightedDegree) -> None:
    X, y = two_kinds(24, seed=12)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    forms = [objects, np.array(X), pd.Series(X), pl.Series(X)]
    check_estimator(kernel, X, y, two_kinds(9, seed=13)[0], forms)


def test_the_name_and_a_file(tmp_path: Path) -> None:
    kernel = resolve("weighted_degree", {"degree": 4, "shift": 1})
    assert isinstance(kernel, WeightedDegree)
    assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), False, True)
    X, y = two_kinds(24, seed=14)
    model = KreinRidgeClassifier("weighted_degree", kernel_params={"shift": 1}).fit(X, y)
    model.save(tmp_path / "m.krein")
    new = two_kinds(9, seed=15)[0]
    again = load(tmp_path / "m.krein").decision_function(new)
    assert_array_equal(again, model.decision_function(new))


# By default


CANDIDATES = ["Hamming()", "WeightedDegree(pad=True)"]


def positional(X: Any) -> list[str]:
    return [str(k) for k in candidates_for(X) if type(k).__name__ in ("Hamming", "WeightedDegree")]


def test_strings_of_one_length_are_compared_by_places_by_default() -> None:
    X = words(300, "abcd")
    for form in (X, np.array(X), pd.Series(X), [list(x) for x in X], [x.encode() for x in X]):
        assert positional(form) == CANDIDATES
    assert positional([*X[:200], "abc", *X[200:]]) == []  # not one of those that are looked at
    assert positional(words(9, length=1)) == []


def test_by_default_new_strings_may_have_any_length(tmp_path: Path) -> None:
    X, y = two_kinds(60, seed=16)
    model = KreinClassifier(random_state=0).fit(X, y)
    assert set(CANDIDATES) < set(model.kernel_losses_)
    assert sum(model.kernel_weights_[name] for name in CANDIDATES) > 0.5
    whole, cut = model.decision_function(X), model.decision_function([x[:-1] for x in X])
    assert_array_equal(model.predict([x[:-1] for x in X]), y)
    assert (whole != cut).any()
    model.save(tmp_path / "m.krein")
    again = load(tmp_path / "m.krein").decision_function([x[:-1] for x in X])
    assert_array_equal(again, cut)


# What is refused


UNEQUAL = r"has 3 letters or tokens where others have 2; pass pad=True if .*\"ngrams\"$"


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (["ab", "bc"], "abc", UNEQUAL),
        (["ab", "bc"], None, r"is NoneType None; allowed are str, bytes, or a list"),
        ([["a", "b"], ["b", 1]], ["a", "b", "c"], UNEQUAL),
        ([["a"], [1]], ["a", 2.5], r"holds float 2.5; tokens .* are texts or integers"),
        ([["a"], ["b"]], "a", r"is str 'a', the others are of kind list"),
    ],
)
def test_what_cannot_be_compared_is_named(good: list[Any], bad: Any, message: str) -> None:
    check_bad_object(WeightedDegree(), good, bad, message)


def test_bad_input_118_a_new_string_of_another_length() -> None:
    X, y = two_kinds(24, seed=17)
    model = KreinRidgeClassifier("weighted_degree").fit(X, y)
    for new, said in ((X[0][1:], "object 2 .of 3. has 11 .* where others have 12"), ("", "has 0")):
        with pytest.raises(ValueError, match=said):
            model.predict([X[0], X[1], new])
    with pytest.raises(ValueError, match=r"object 0 .of 1. has 13 .* where others have 12"):
        model.predict([X[0] + "a"])
    with pytest.raises(ValueError, match=r"object 24 .of 25. has 2 .* where others have 12"):
        KreinRidgeClassifier("weighted_degree").fit([*X, "ab"], [*y, 0])


def test_one_string_is_not_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match=r"a list of strings is wanted, got str 'abc'"):
        WeightedDegree()("abc")


@pytest.mark.parametrize(("name", "least"), [("degree", 1), ("shift", 0)])
@pytest.mark.parametrize("bad", [-1, 1.5, None, "2", True])
def test_numbers_that_are_none(name: str, least: int, bad: Any) -> None:
    kernel = WeightedDegree(**{name: bad})
    for act in (lambda: kernel(["a"]), lambda: kernel.fit(["a"], np.random.default_rng(0))):
        with pytest.raises(ValueError, match=f"{name}=.* whole number of at least {least}$"):
            act()
