"""Distances of strings against their definitions and rapidfuzz's functions, pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rapidfuzz.distance
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

from kreinlearn import KreinRidgeClassifier
from kreinlearn.kernels.base import SQUARE, resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.strings import (
    LCS,
    DamerauLevenshtein,
    Hamming,
    Indel,
    Jaro,
    JaroWinkler,
    Levenshtein,
)
from tests.oracles import edit_cost
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

EDITS = [Levenshtein, DamerauLevenshtein, Indel, LCS, Hamming]
KERNELS: list[Any] = [
    *(kind(normalized=normalized) for kind in EDITS for normalized in (False, True)),
    Levenshtein(weights=(1, 1, 2)),
    Levenshtein(weights=(2, 2, 3)),
    Levenshtein(weights=(2, 2, 3), normalized=True),
    Jaro(),
    JaroWinkler(),
    JaroWinkler(prefix_weight=0.25),
]
NAMES = {
    "levenshtein": Levenshtein,
    "damerau_levenshtein": DamerauLevenshtein,
    "indel": Indel,
    "lcs": LCS,
    "hamming_strings": Hamming,
    "jaro": Jaro,
    "jaro_winkler": JaroWinkler,
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
FEW = settings(max_examples=20, deadline=None, derandomize=True)


def words(n: int, letters: str = "abcé", longest: int = 9, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, longest + 1, n)
    return ["".join(rng.choice(list(letters), k)) for k in sizes]


def by_rapidfuzz(kernel: Any) -> Callable[[Any, Any], float]:
    metric = getattr(rapidfuzz.distance, type(kernel).__name__.replace("LCS", "LCSseq"))
    scorer = metric.normalized_distance if getattr(kernel, "normalized", False) else metric.distance
    params = {k: v for k, v in kernel.get_params().items() if k != "normalized"}
    return partial(scorer, **params)


# Definitions


def damerau(x: Any, z: Any) -> int:
    """Lowrance and Wagner's recursion: a swap may have letters inserted or deleted within it."""
    far = len(x) + len(z)
    D = {(i, j): max(i, j) for i in range(len(x) + 1) for j in range(len(z) + 1) if not i or not j}
    for i in range(1, len(x) + 1):
        for j in range(1, len(z) + 1):
            swaps = [
                D[k, l] + (i - k - 2) + 1 + (j - l - 2)
                for k in range(i - 1)
                for l in range(j - 1)
                if x[k] == z[j - 1] and z[l] == x[i - 1]
            ]
            D[i, j] = min(
                D[i - 1, j - 1] + (x[i - 1] != z[j - 1]),
                D[i - 1, j] + 1,
                D[i, j - 1] + 1,
                *swaps,
                far,
            )
    return D[len(x), len(z)]


def common(x: Any, z: Any) -> int:
    """Length of the longest common subsequence."""
    return (len(x) + len(z) - edit_cost(x, z, 1, 2)) // 2


def jaro(x: Any, z: Any) -> float:
    if not len(x) or not len(z):
        return float(len(x) != len(z))
    reach = max(len(x), len(z)) // 2 - 1
    taken: list[int] = []
    matched = []
    for i, a in enumerate(x):
        for j in range(max(0, i - reach), min(len(z), i + reach + 1)):
            if j not in taken and z[j] == a:
                taken.append(j)
                matched.append(a)
                break
    if len(x) == len(z) == 1:
        return float(x[0] != z[0])
    m = len(matched)
    if not m:
        return 1.0
    t = sum(a != z[j] for a, j in zip(matched, sorted(taken), strict=True)) // 2
    return 1 - (m / len(x) + m / len(z) + (m - t) / m) / 3


def jaro_winkler(x: Any, z: Any, weight: float) -> float:
    d = jaro(x, z)
    alike = [a == b for a, b in zip(x[:4], z[:4], strict=False)]
    prefix = alike.index(False) if False in alike else len(alike)
    return d * (1 - weight * prefix) if d < 0.3 else d


def by_definition(kernel: Any) -> Callable[[Any, Any], float]:
    gap, _, substitution = getattr(kernel, "weights", (1, 1, 1))
    pairs: dict[type, tuple[Callable[[Any, Any], float], Callable[[int, int], float]]] = {
        Levenshtein: (
            lambda x, z: edit_cost(x, z, gap, substitution),
            lambda k, l: min(gap * (k + l), substitution * min(k, l) + gap * abs(k - l)),
        ),
        DamerauLevenshtein: (damerau, max),
        Indel: (lambda x, z: edit_cost(x, z, 1, 2), lambda k, l: k + l),
        LCS: (lambda x, z: max(len(x), len(z)) - common(x, z), max),
        Hamming: (
            lambda x, z: sum(a != b for a, b in zip(x, z, strict=False)) + abs(len(x) - len(z)),
            max,
        ),
    }
    if isinstance(kernel, JaroWinkler):
        return partial(jaro_winkler, weight=kernel.prefix_weight)
    if isinstance(kernel, Jaro):
        return jaro
    distance, largest = pairs[type(kernel)]
    if not kernel.normalized:
        return distance
    return lambda x, z: distance(x, z) / (largest(len(x), len(z)) or 1)


# Values


@every_kernel
def test_equals_the_definition_and_rapidfuzz_pair_by_pair(kernel: Any) -> None:
    A, Z = words(25, seed=1), ["", "a", "abc", *words(20, seed=2)]
    D = kernel(A, Z)
    assert_array_equal(D, matrix(by_rapidfuzz(kernel), A, Z))
    assert_allclose(D, matrix(by_definition(kernel), A, Z), rtol=1e-14, atol=1e-15)


@FEW
@given(st.lists(st.text(max_size=6), min_size=1, max_size=5), st.text("ab", max_size=80))
def test_any_strings_whatever(A: list[str], long: str) -> None:
    for kernel in KERNELS:
        check_symmetry(kernel, [*A, long])
        assert_array_equal(kernel([*A, long], A), matrix(by_rapidfuzz(kernel), [*A, long], A))


def test_values_by_hand() -> None:
    assert Levenshtein()(["kitten"], ["sitting"])[0, 0] == 3
    assert Levenshtein(weights=(2, 2, 3))(["kitten"], ["sitting"])[0, 0] == 3 + 3 + 2
    assert Levenshtein(weights=(1, 1, 5))(["a"], ["b"])[0, 0] == 2  # out and in again
    assert DamerauLevenshtein()(["ca"], ["abc"])[0, 0] == 2  # with a letter put between the two
    assert Hamming()(["abc"], ["abcde"])[0, 0] == 2
    assert Hamming(normalized=True)(["abc"], ["abcde"])[0, 0] == 2 / 5
    assert LCS()(["abcd"], ["bd"])[0, 0] == Indel()(["abcd"], ["bd"])[0, 0] == 2
    assert Jaro()(["DWAYNE"], ["DUANE"])[0, 0] == pytest.approx(1 - 0.8222, abs=1e-4)
    assert JaroWinkler()(["DWAYNE"], ["DUANE"])[0, 0] == pytest.approx(0.16, abs=1e-12)


@every_kernel
def test_symmetric_with_a_zero_diagonal_beyond_one_strip(kernel: Any) -> None:
    check_symmetry(kernel, words(10 * SQUARE + 40, longest=6, seed=3))


@pytest.mark.parametrize("kernel", [Jaro(), JaroWinkler()], ids=str)
def test_jaro_is_symmetric_on_long_strings_of_few_letters(kernel: Any) -> None:
    check_symmetry(kernel, words(200, letters="ab", longest=90, seed=4))


@every_kernel
def test_pieces_threads_and_copies_change_no_bit(kernel: Any) -> None:
    for A, Z in [
        (words(30, seed=5), words(17, seed=6)),
        ([w.split("a") for w in words(30, seed=5)], [w.split("a") for w in words(17, seed=6)]),
    ]:
        check_pieces(kernel, A, Z)
        check_copies(kernel, A, Z)


# Bytes and tokens


@every_kernel
def test_bytes_and_tokens_are_as_strings(kernel: Any) -> None:
    A, Z = words(20, "abc", seed=7), words(15, "abcd", seed=8)
    D = kernel(A, Z)
    forms: list[Callable[[str], Any]] = [
        str.encode,
        list,
        tuple,
        lambda w: np.array(list(w), dtype="<U1"),
        lambda w: np.array([ord(c) for c in w], dtype=np.uint8),
        lambda w: [("token", c) for c in w],
    ]
    for form in forms:
        assert_array_equal(kernel([form(a) for a in A], [form(z) for z in Z]), D)


@every_kernel
def test_tokens_equal_the_definition(kernel: Any) -> None:
    vocabulary: list[Any] = ["to", "be", "or", "not", 3, 2.5, ("a", 1), None]
    rng = np.random.default_rng(9)

    def sentence() -> list[Any]:
        return [vocabulary[i] for i in rng.integers(len(vocabulary), size=rng.integers(0, 8))]

    A, Z = [sentence() for _ in range(15)], [sentence() for _ in range(10)]
    assert_allclose(kernel(A, Z), matrix(by_definition(kernel), A, Z), rtol=1e-14, atol=1e-15)


def test_tokens_are_compared_themselves_and_not_by_their_hashes() -> None:
    for a, b in [("a", 97), (2**61 - 1, 0), (-1, -2), (1, "1")]:
        assert Levenshtein()([[a]], [[b]])[0, 0] == 1
    assert rapidfuzz.distance.Levenshtein.distance(["a"], [97]) == 0
    assert Levenshtein()([[1, 2]], [[1.0, True]])[0, 0] == 1  # 1 == True


def test_a_million_characters_of_vocabulary_are_not_needed_by_rows() -> None:
    Z = [list(range(2000)), list(range(1000, 3000))]
    A = [list(range(5000, 7000)), list(range(500, 2500))]
    assert_array_equal(Levenshtein()(A, Z), [[2000, 2000], [1000, 1000]])


# Through an estimator


@pytest.mark.parametrize("kernel", [kernel() for kernel in (*EDITS, Jaro, JaroWinkler)], ids=str)
def test_a_long_string_and_itself_cost_nothing(kernel: Any) -> None:
    """A million letters; before, the time grew with the square of the length."""
    text = "abcde" * 200_000
    tokens = list(text)
    for objects in ([text], [text, str(text)], [text.encode()], [tokens, tokens.copy()]):
        n = len(objects)
        for values in (kernel(objects), kernel(objects, objects), kernel.symmetric(objects)):
            np.testing.assert_array_equal(values, np.zeros((n, n)))
    model = KreinRidgeClassifier(kernel, lambda_plus=1, lambda_minus=1).fit([text, "a"], [0, 1])
    assert model.predict([text])[0] == 0


@pytest.mark.parametrize("kernel", [kernel() for kernel in (*EDITS, Jaro, JaroWinkler)], ids=str)
def test_long_strings_beside_equal_ones_are_compared_as_any_others(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    letters = ["".join(rng.choice(list("abc"), 1500)) for _ in range(3)]
    A = [letters[0], "short", letters[1], letters[0], letters[2]]
    Z = [letters[1], letters[0], "shirt", letters[1] + "c"]
    wanted = [[by_rapidfuzz(kernel)(a, z) for z in Z] for a in A]
    np.testing.assert_array_equal(kernel(A, Z), wanted)
    np.testing.assert_array_equal(kernel([list(a) for a in A], [list(z) for z in Z]), wanted)


def two_kinds(n: int, seed: int) -> tuple[list[str], Any]:
    """Words whose first half is of other letters."""
    y = np.arange(n) % 2
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("aab" if k else "cca"), 6)) + "xyz" for k in y], y


@pytest.mark.parametrize("kernel", [KERNELS[1], KERNELS[-1]], ids=str)
def test_an_estimator_does_as_with_the_matrix(kernel: Any) -> None:
    check_estimator(kernel, *two_kinds(24, seed=10), two_kinds(9, seed=11)[0], [])


def test_any_sequence_of_strings_goes_through_an_estimator() -> None:
    X, y = two_kinds(24, seed=10)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    forms = [objects, np.array(X), pd.Series(X), pd.Series(X, dtype="string")]
    check_estimator(Levenshtein(), X, y, two_kinds(9, seed=11)[0], [*forms, pl.Series(X)])


def test_ragged_tokens_go_through_an_estimator() -> None:
    strings, y = two_kinds(24, seed=12)
    X = [list(x[: 5 + i % 3]) for i, x in enumerate(strings)]
    new = [tuple(x) for x in two_kinds(9, seed=13)[0]]
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    check_estimator(Indel(), X, y, new, [objects, pl.Series(X)])


def test_names_and_grids() -> None:
    for name, kind in NAMES.items():
        kernel = resolve(name)
        assert type(kernel) is kind
        assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), True, True)
    assert resolve("levenshtein", {"normalized": True}).normalized  # type: ignore[attr-defined]
    assert resolve("hamming").domain.is_vectors
    X, y = two_kinds(24, seed=14)
    model = KreinRidgeClassifier(Levenshtein(), lambda_plus=1e-2, lambda_minus=1e-2)
    search = GridSearchCV(model, {"kernel__normalized": [False, True]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.8


# What is refused


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, r"is NoneType None; allowed are str, bytes, or a list"),
        (np.nan, r"is float nan"),
        (pd.NA, r"is NAType <NA>"),
        (7, r"is int 7"),
        ({"a"}, r"is set \{'a'\}"),
        (b"ab", r"is bytes b'ab', the others are of kind str; allowed"),
        (["a", "b"], r"is list \['a', 'b'\], the others are of kind str"),
    ],
)
def test_what_is_no_string_is_named(bad: Any, message: str) -> None:
    check_bad_object(Levenshtein(), ["ab", ""], bad, message)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("ab", r"is str 'ab', the others are of kind list"),
        (["a", ["b"]], r"holds list \['b'\], which is not hashable; allowed are"),
        ([("a", ["b"])], r"holds tuple \('a', \['b'\]\), which is not hashable"),
        (["a", np.nan], r"holds NaN, which equals nothing, not even itself"),
        ([np.float32("nan")], r"holds NaN"),
        (np.zeros((2, 2)), r"holds list \[0.0, 0.0\], which is not hashable"),
        (np.array(3), r"holds int 3"),
    ],
)
def test_what_is_no_sequence_of_tokens_is_named(bad: Any, message: str) -> None:
    check_bad_object(Indel(), [["a"], ("b", "c")], bad, message)


@pytest.mark.parametrize("one", ["abc", b"abc"])
def test_one_string_is_not_a_list_of_letters(one: Any) -> None:
    for act in (lambda: Levenshtein()(one), lambda: Levenshtein()(["a"], one)):
        with pytest.raises(TypeError, match=r"a list of strings is wanted, got .*abc"):
            act()
    with pytest.raises(TypeError, match="X must be a sequence of objects, got"):
        KreinRidgeClassifier("levenshtein").fit(one, [0, 1, 1])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1, 2, 1), r"weights=\(1, 2, 1\): an insertion one way is a deletion the other way"),
        ((1, 1), r"weights=\(1, 1\) must be three positive integers"),
        ((1.5, 1.5, 1), r"must be three positive integers.*multiply all by a constant"),
        ((0, 0, 1), r"must be three positive integers"),
        (1, r"weights=1 must be three"),
        ("111", r"weights='111' must be three"),
    ],
)
def test_weights_that_are_no_costs(weights: Any, message: str) -> None:
    for act in (lambda k: k(["a"]), lambda k: KreinRidgeClassifier(k).fit(["a", "b"], [0, 1])):
        with pytest.raises(ValueError, match=message):
            act(Levenshtein(weights=weights))


@pytest.mark.parametrize("weight", [0.3, -0.1, np.nan, "much", None])
def test_a_prefix_weight_that_would_make_unlike_strings_equal(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"prefix_weight=.* must lie in 0\.\.0\.25"):
        JaroWinkler(prefix_weight=weight)(["a"], ["b"])
