"""Alignment scores against the recursion of Gotoh and parasail's functions, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import parasail
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kreinlearn import KreinRidgeClassifier
from kreinlearn.kernels.alignment import NeedlemanWunsch, SmithWaterman
from kreinlearn.kernels.base import SQUARE, resolve
from kreinlearn.kernels.domains import Objects
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_missing_package,
    check_pieces,
    check_symmetry,
    matrix,
)

BOTH = [SmithWaterman, NeedlemanWunsch]
both = pytest.mark.parametrize("kind", BOTH)
AMINO = "ARNDCQEGHILKMFPSTWYV"
KERNELS: list[Any] = [
    kind(*params, normalized=normalized)
    for kind in BOTH
    for normalized in (False, True)
    for params in [("blosum62", 11, 1), ((2, -3), 5, 2)]
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def sequences(n: int, letters: str = AMINO, longest: int = 25, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), k)) for k in rng.integers(0, longest + 1, n)]


def relatives(x: str, n: int, seed: int = 0) -> list[str]:
    """x with pieces taken out."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(x) + 1, (n, 2)), axis=1)
    return [x[:i] + x[j:] for i, j in cuts]


def score_of(matrix_: Any) -> Any:
    if isinstance(matrix_, str):
        table, index = getattr(parasail, matrix_).matrix, getattr(parasail, matrix_).mapper
        return lambda a, b: int(table[index[ord(a)], index[ord(b)]])
    if isinstance(matrix_, dict):
        return lambda a, b: matrix_.get((a, b), matrix_.get((b, a)))
    return lambda a, b: matrix_[0] if a == b else matrix_[1]


def gotoh(kernel: Any, x: str, z: str) -> float:
    """Best score of an alignment of the first i and j letters: H any, E and F that end in a gap."""
    s, o, e = score_of(kernel.matrix), kernel.gap_open, kernel.gap_extend
    local = isinstance(kernel, SmithWaterman)
    H = np.full((len(x) + 1, len(z) + 1), -np.inf)
    E, F = H.copy(), H.copy()
    H[0, 0] = 0
    for i in range(len(x) + 1):
        for j in range(len(z) + 1):
            if j:
                E[i, j] = max(E[i, j - 1] - e, H[i, j - 1] - o)
            if i:
                F[i, j] = max(F[i - 1, j] - e, H[i - 1, j] - o)
            if i and j:
                H[i, j] = H[i - 1, j - 1] + s(x[i - 1], z[j - 1])
            H[i, j] = max(H[i, j], E[i, j], F[i, j], 0 if local else -np.inf)
    return float(H.max() if local else H[-1, -1])


def by_definition(kernel: Any, A: list[str], Z: list[str]) -> Any:
    K = matrix(lambda x, z: gotoh(kernel, x, z), A, Z)
    if not kernel.normalized:
        return K
    own_a, own_z = ([max(abs(gotoh(kernel, x, x)), 1.0) for x in X] for X in (A, Z))
    return K / np.sqrt(np.outer(own_a, own_z))


# Values


@every_kernel
def test_equals_the_recursion(kernel: Any) -> None:
    A, Z = sequences(8, seed=1), ["", "W", *sequences(6, seed=2), *relatives(sequences(1)[0], 2)]
    assert_array_equal(kernel(A, Z), by_definition(kernel, A, Z))


@both
@pytest.mark.parametrize("name", ["blosum62", "blosum45", "pam250", "pam30"])
def test_equals_parasails_own_functions(kind: type, name: str) -> None:
    """Its plain routines, which are not those in use here."""
    A, Z = sequences(20, seed=3, longest=60), sequences(10, seed=4, longest=60)
    A, Z = [x for x in A if x], [x for x in Z if x]
    plain = parasail.sw if kind is SmithWaterman else parasail.nw
    table = getattr(parasail, name)
    expected = matrix(lambda x, z: plain(x, z, 11, 1, table).score, A, Z)
    assert_array_equal(kind(name)(A, Z), expected)


@both
@pytest.mark.parametrize("gaps", [(0, 0), (1, 1), (5, 5), (128, 1), (260, 2), (300, 0)])
def test_gaps_that_parasails_fast_routine_gets_wrong(kind: type, gaps: tuple[int, int]) -> None:
    """Linear ones, and those of more than 8 bits, on sequences that have much in common."""
    x = sequences(1, "ACGT", longest=60, seed=1)[0]
    X = [*relatives(x, 15), *(y for y in sequences(15, "ACGT", 40, seed=2) if y)]
    plain = parasail.sw if kind is SmithWaterman else parasail.nw
    for match, mismatch in [(1, -1), (11, -1), (2, -8)]:
        table = parasail.matrix_create("ACGT", match, mismatch)
        expected = matrix(lambda x, z, table=table: plain(x, z, *gaps, table).score, X, X)
        assert_array_equal(kind((match, mismatch), *gaps)(X, X), expected)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.text("ACGT", max_size=40),
    st.lists(st.text("ACGT", max_size=20), min_size=1, max_size=2),
    st.sampled_from([1, 2, 11, 100, 101, 127, 300, 40000]),
    st.sampled_from([0, 1, 8, 100, 128, 70000]),
    st.sampled_from([0, 1, 2, 99, 200]),
    st.sampled_from([0, 0, 1, 30, 40000]),
)
def test_any_costs_whatever(
    x: str, others: list[str], match: int, mismatch: int, extend: int, more: int
) -> None:
    """Also those that parasail takes for others: of linear gaps, and of more than 8 bits."""
    X = [x, *others, *relatives(x, 1)]
    for kind in BOTH:
        kernel = kind((match, -mismatch), extend + more, extend)
        K = kernel(X, X)
        assert_array_equal(K, by_definition(kernel, X, X))
        assert_array_equal(K, K.T)


def test_long_sequences_pass_the_narrow_integers() -> None:
    x = "ACGT" * 2500
    for kind in BOTH:
        assert kind((5, -4), 10, 1)([x], [x, x[:-4]]).tolist() == [
            [50000, 49980 - (13 if kind is NeedlemanWunsch else 0)]
        ]


def test_values_by_hand() -> None:
    assert SmithWaterman((1, -1), 2, 1)(["TTACGT"], ["GGACGG"])[0, 0] == 3
    assert NeedlemanWunsch((1, -1), 2, 1)(["ACGT"], ["AT"])[0, 0] == 2 - (2 + 1)
    assert NeedlemanWunsch((1, -1), 2, 2)(["ACGT"], ["AT"])[0, 0] == 2 - (2 + 2)
    assert NeedlemanWunsch()(["", "WW"], ["", "AAA"]).tolist() == [[0, -13], [-12, -17]]
    assert SmithWaterman()(["", "WW"], ["", "WW"]).tolist() == [[0, 0], [0, 22]]
    assert SmithWaterman("dnafull")(["ACGU"], ["ACGT"])[0, 0] == 20  # U is T


def test_normalized_where_self_scores_are_negative_or_zero() -> None:
    X = ["WW", "XX", ""]
    K = NeedlemanWunsch(normalized=True)(X)
    assert_array_equal(np.diag(K), [1, -1, 0])
    assert_array_equal(NeedlemanWunsch(normalized=True).diagonal(X), [1, -1, 0])
    assert_array_equal(NeedlemanWunsch().diagonal(X), [22, -2, 0])
    assert K[0, 1] == -4 / np.sqrt(22 * 2)
    assert_array_equal(np.diag(SmithWaterman(normalized=True)(X)), [1, 0, 0])


def test_a_matrix_of_ones_own() -> None:
    pairs = {
        ("a", "a"): 3,
        ("b", "b"): 2,
        ("A", "A"): 5,
        ("a", "b"): -1,
        ("A", "a"): 1,
        ("A", "b"): -7,
    }
    X = ["aab", "Aab", "bbA", "", "aA"]
    for kind in BOTH:
        kernel = kind(pairs, 4, 1)
        assert_array_equal(kernel(X), by_definition(kernel, X, X))
        both_ways = pairs | {(b, a): score for (a, b), score in pairs.items()}
        assert_array_equal(kind(both_ways, 4, 1)(X), kernel(X))


@every_kernel
def test_symmetric_beyond_one_strip(kernel: Any) -> None:
    check_symmetry(kernel, sequences(10 * SQUARE + 20, longest=12, seed=5))


@every_kernel
def test_pieces_threads_and_copies_change_no_bit(kernel: Any) -> None:
    A, Z = sequences(30, seed=6), sequences(17, seed=7)
    check_pieces(kernel, A, Z)
    check_copies(kernel, A, Z)


def test_case_matters_only_where_the_matrix_says_so() -> None:
    assert SmithWaterman()(["WwW"], ["wWw"])[0, 0] == 33
    assert SmithWaterman((1, -1), 2, 1)(["WwW"], ["www"])[0, 0] == 1


# Through an estimator


def two_families(n: int, seed: int) -> tuple[list[str], Any]:
    y = np.arange(n) % 2
    rng = np.random.default_rng(seed)
    made = ["".join(rng.choice(list("ILVM" if k else "DEKR"), rng.integers(4, 9))) for k in y]
    return [f"GG{x}" for x in made], y


def test_any_sequence_of_strings_goes_through_an_estimator() -> None:
    X, y = two_families(24, seed=8)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    new = two_families(9, seed=9)[0]
    forms = [objects, np.array(X), pd.Series(X), pl.Series(X)]
    check_estimator(SmithWaterman(normalized=True), X, y, new, forms)
    check_estimator(NeedlemanWunsch(), X, y, new, [])


def test_names() -> None:
    for name, kind in [("smith_waterman", SmithWaterman), ("needleman_wunsch", NeedlemanWunsch)]:
        kernel = resolve(name, {"matrix": "pam250", "gap_open": 14, "gap_extend": 2})
        assert type(kernel) is kind
        assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), False, True)


# What is refused


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, r"is NoneType None; a sequence is a str of letters"),
        (np.nan, r"is float nan"),
        (b"ACG", r"is bytes b'ACG'"),
        (["A", "C"], r"is list \['A', 'C'\]"),
        ("AC-G", r"has '-' at place 2, which matrix='blosum62' does not know; replace it"),
        ("ACJ", r"has 'J' at place 2"),
        ("A C", r"has ' ' at place 1"),
        ("ACé", r"has 'é' at place 2"),
        ("A\u4e2d", r"has '\u4e2d' at place 1"),
        ("\ud800", r"has '\\ud800' at place 0"),
    ],
)
def test_what_is_no_sequence_is_named(bad: Any, message: str) -> None:
    check_bad_object(SmithWaterman(), ["ACG", ""], bad, message)


@pytest.mark.parametrize("kind", [SmithWaterman, NeedlemanWunsch])
def test_letters_that_are_not_known_are_replaced(kind: Any) -> None:
    X = ["HEAGAW-GHEE", "PAWU", "\ud800é\u4e2d", "HE"]
    Z = ["HEAGAWXGHEE", "PAWX", "XXX", "HE"]
    assert_array_equal(kind(unknown="X")(X), kind()(Z))
    assert_array_equal(kind(unknown="A")(X), kind()([z.replace("X", "A") for z in Z]))
    for bad in ("XX", "", "é", "-", "\u4e2d", 88, True):
        with pytest.raises(ValueError, match=r"unknown=.* must be None, or a letter of matrix='bl"):
            kind(unknown=bad)(X)


def test_letters_of_dna() -> None:
    for name in ("nuc44", "dnafull"):
        with pytest.raises(ValueError, match=rf"object 0 \(of 1\) has 'E' .*matrix='{name}'"):
            SmithWaterman(name)(["ACGTNE"])
    with pytest.raises(ValueError, match=r"has 'U' at place 0, which matrix='nuc44'"):
        SmithWaterman("nuc44")(["UCG"])
    with pytest.raises(ValueError, match=r"has '\\n' at place 1, which matrix=\(1, -1\)"):
        SmithWaterman((1, -1))(["A\nC"])


def test_one_string_is_not_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match=r"a list of strings is wanted, got str 'ACG'"):
        SmithWaterman()("ACG", ["A"])


@pytest.mark.parametrize("gaps", [(1, 2), (-1, -2), (11.5, 1), (11, None), ("11", 1)])
@both
def test_gaps_that_are_no_costs(kind: Any, gaps: Any) -> None:
    kernel = kind("blosum62", *gaps)
    with pytest.raises(ValueError, match=r"gap_open=.*, gap_extend=.*gap_open >= gap_extend >= 0"):
        kernel(["A"])
    with pytest.raises(ValueError, match="gap_open"):
        KreinRidgeClassifier(kernel).fit(["A", "C"], [0, 1])


@pytest.mark.parametrize(
    "bad",
    ["blosum63", "sw", "__init__", "", None, 3, (1,), (1, 2, 3), (1.5, -1), ("A", "C"), np.eye(2)],
)
def test_matrices_that_are_none(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"matrix must be a name such as .*; got"):
        SmithWaterman(bad)(["A"])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({("A", "A"): 1, ("C", "C"): 1}, r"\('A', 'C'\) is None"),
        ({("A", "C"): 1, ("C", "A"): 2, ("A", "A"): 1, ("C", "C"): 1}, r"'C'\) is 1, .* is 2"),
        ({("A", "A"): 1.5}, r"is 1.5"),
        ({("AB", "AB"): 1}, r"letters are single ASCII characters, got \['AB'\]"),
        ({("é", "é"): 1}, r"letters are single ASCII characters"),
    ],
)
def test_mappings_that_are_no_matrices(pairs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SmithWaterman(pairs)(["A"])


def test_scores_that_32_bits_do_not_hold() -> None:
    with pytest.raises(ValueError, match=r"sequences of 4000 letters together may pass"):
        SmithWaterman((10**6, -1))(["A" * 2000])


def test_without_parasail_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_missing_package(SmithWaterman(), ["A", "C"], "parasail", "bio", monkeypatch)
