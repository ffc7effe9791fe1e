"""N-grams against counters of slices, and against scikit-learn's vectorizers."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from itertools import product
from math import log, sqrt
from pathlib import Path
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
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from kreinlearn import KreinRidge, KreinRidgeClassifier, load, normalized
from kreinlearn.data.tiles import TILE
from kreinlearn.kernels import _counts, remembering, resolve
from kreinlearn.kernels.domains import Objects
from kreinlearn.kernels.ngrams import NGrams, letters_of, ngrams_of
from tests.unit.kernels.object_checks import (
    check_bad_object,
    check_copies,
    check_estimator,
    check_pieces,
    check_symmetry,
    matrix,
)

KERNELS = [
    NGrams(),
    NGrams(lengths=(2, 3), kind="counts"),
    NGrams(lengths=(1, 2), kind="min"),
    NGrams(lengths=(3, 3), sublinear=True),
    NGrams(lengths=(1, 3), idf=True),
    NGrams(lengths=(1, 2), kind="min", sublinear=True, idf=True),
    NGrams(lengths=(2, 4), kind="counts", sublinear=True, idf=True),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
EPS = np.finfo(float).eps
TERMS = 100  # n-grams of one string, at most


def words(n: int, letters: str = "abcé😀", longest: int = 12, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), k)) for k in rng.integers(0, longest + 1, n)]


def fitted(kernel: NGrams, X: Any) -> NGrams:
    return clone(kernel).fit(X, np.random.default_rng(0))


# The definition


def grams(x: Any, lengths: tuple[int, int]) -> Counter[Any]:
    runs = range(lengths[0], lengths[1] + 1)
    return Counter(tuple(x[i : i + l]) for l in runs for i in range(len(x) - l + 1))


def by_definition(kernel: NGrams, X: Any = ()) -> Callable[[Any, Any], float]:
    """k(x, z) from counters; document frequencies are those of X."""
    holders = Counter(p for x in X for p in grams(x, kernel.lengths))

    def weights(x: Any) -> dict[Any, float]:
        return {
            p: (1 + log(a) if kernel.sublinear else a)
            * (1 + log((1 + len(X)) / (1 + holders[p])) if kernel.idf else 1)
            for p, a in grams(x, kernel.lengths).items()
        }

    def value(x: Any, z: Any) -> float:
        a, b = weights(x), weights(z)
        if kernel.kind == "min":
            return float(sum(min(a[p], b[p]) for p in a.keys() & b.keys()))
        S = float(sum(a[p] * b[p] for p in a.keys() & b.keys()))
        if kernel.kind == "counts" or S == 0:
            return S
        return S / sqrt(sum(v**2 for v in a.values()) * sum(v**2 for v in b.values()))

    return value


@every_kernel
def test_equals_its_definition(kernel: NGrams) -> None:
    X, Z = words(30, seed=1), ["", "a", "abc", *words(20, seed=2)]
    K = fitted(kernel, X)(X, Z)
    assert (K.shape, K.dtype) == ((30, 23), np.dtype(np.float64))
    assert_allclose(K, matrix(by_definition(kernel, X), X, Z), rtol=TERMS * EPS)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text(max_size=9), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 3))
def test_any_strings_whatever(X: list[str], least: int, more: int) -> None:
    for kind in ("cosine", "counts", "min"):
        kernel = NGrams(lengths=(least, least + more), kind=kind)
        assert_allclose(kernel(X), matrix(by_definition(kernel), X, X), rtol=8 * EPS)
        check_symmetry(kernel, X)


@every_kernel
def test_compiled_or_not_the_bits_are_the_same(
    kernel: NGrams, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Z = words(40), words(30, seed=1)
    kernel, found = fitted(kernel, X), []
    for compiled in (False, True):
        monkeypatch.setattr(_counts, "pays", lambda loop, seconds, answer=compiled: answer)
        found.append(kernel(X, Z))
    assert found[0].any()
    assert_array_equal(*found)


def test_values_by_hand() -> None:
    """ "aab" has a twice, b, aa and ab; "ab" has a, b and ab."""
    for kind, value in {"counts": 4.0, "min": 3.0, "cosine": 4 / sqrt(7 * 3)}.items():
        assert NGrams(lengths=(1, 2), kind=kind)(["aab"], ["ab"])[0, 0] == pytest.approx(value)
    assert NGrams(lengths=(2, 2))(["ab"], ["ba"])[0, 0] == 0.0
    assert NGrams(lengths=(2, 2))(["abab"], ["ab"])[0, 0] == pytest.approx(2 / sqrt(5))


def test_n_grams_that_differ_have_hashes_that_differ() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzäöüßéèçñ ,.'-01"
    triples = ["".join(t) for t in product(letters, repeat=3)]
    counts = ngrams_of(letters_of(triples, 0, len(triples), None), 1, 3)
    assert len(np.unique(counts.part)) == sum(len(letters) ** l for l in (1, 2, 3))


@pytest.mark.parametrize("lengths", [(1, 4), (2, 3), (3, 3)])
def test_cosines_of_counts_are_those_of_scikit_learn(lengths: tuple[int, int]) -> None:
    X, Z = words(60, seed=3, longest=30), words(25, seed=4, longest=30)
    X, Z = [x for x in X if len(x) >= lengths[0]], [z for z in Z if len(z) >= lengths[0]]
    vectorizer = CountVectorizer(analyzer="char", ngram_range=lengths, lowercase=False)
    vectorizer.fit([*X, *Z])
    expected = cosine_similarity(vectorizer.transform(X), vectorizer.transform(Z))
    assert_allclose(NGrams(lengths=lengths)(X, Z), expected, rtol=TERMS * EPS, atol=EPS)


@pytest.mark.parametrize("sublinear", [False, True])
def test_inverse_document_frequencies_are_those_of_scikit_learn(sublinear: bool) -> None:
    X = [x for x in words(80, seed=5, longest=30) if x]
    vectorizer = TfidfVectorizer(
        analyzer="char", ngram_range=(1, 4), lowercase=False, sublinear_tf=sublinear
    )
    V = vectorizer.fit_transform(X)
    kernel = fitted(NGrams(idf=True, sublinear=sublinear), X)
    assert_allclose(kernel(X), (V @ V.T).toarray(), rtol=TERMS * EPS, atol=EPS)
    assert len(kernel.ngrams_) == len(kernel.idf_) - 1 == V.shape[1]
    assert_allclose(np.sort(kernel.idf_[:-1]), np.sort(vectorizer.idf_), rtol=4 * EPS)
    assert kernel.idf_[-1] == pytest.approx(1 + log(1 + len(X)))  # of an n-gram that is not there


def test_frequencies_are_those_of_evenly_spaced_objects() -> None:
    n = 2 * TILE - 1
    X = [f"{i:04d}" for i in range(n)]
    all_of_them, some = (fitted(NGrams(idf=True), rows) for rows in (X, X[::2]))
    assert len(X[::2]) == TILE
    assert_array_equal(all_of_them.ngrams_, some.ngrams_)
    assert_array_equal(all_of_them.idf_, some.idf_)


# As a kernel


@every_kernel
def test_exactly_symmetric_and_positive(kernel: NGrams) -> None:
    X = words(200, letters="abc", seed=6)
    kernel = fitted(kernel, X)
    check_symmetry(kernel, X)
    K = kernel(X)
    assert np.linalg.eigvalsh(K).min() >= -len(X) * EPS * np.linalg.norm(K, 2)


@every_kernel
def test_pieces_threads_and_copies_change_no_bit(kernel: NGrams) -> None:
    A, Z = words(40, seed=7), words(17, seed=8)
    check_pieces(fitted(kernel, A), A, Z)
    check_copies(fitted(kernel, A), A, Z)


def test_the_cosine_of_a_string_and_itself_is_one() -> None:
    X = [*words(200, seed=9, longest=40), "a" * 1000]
    for more in ({}, {"sublinear": True}, {"idf": True}):
        kernel = fitted(NGrams(lengths=(2, 4), **more), X)
        expected = np.array([1.0 if len(x) >= 2 else 0.0 for x in X])
        assert_array_equal(np.diag(kernel(X, X)), expected)
        assert_array_equal(kernel.diagonal(X), expected)
    assert not NGrams()([""], ["", "a"]).any()  # no n-grams, nothing in common
    assert NGrams()([], ["a"]).shape == (0, 1)


def test_counts_divided_by_sizes_are_cosines() -> None:
    X = ["ab", "abc", "bca", "cabb"]
    divided = normalized(NGrams(kind="counts")).fit(X, np.random.default_rng(0))
    assert_allclose(divided(X), NGrams()(X), rtol=4 * EPS)


def test_bytes_and_tokens_are_as_strings() -> None:
    X = words(30, "abc", seed=10)
    for kernel in KERNELS:
        K = fitted(kernel, X)(X)
        for form in (
            str.encode,
            list,
            tuple,
            lambda x: np.array(list(x), dtype="<U1"),
            lambda x: [ord(c) - 2**63 for c in x],
            lambda x: np.array([ord(c) for c in x], dtype=np.uint8),
        ):
            same = [form(x) for x in X]
            assert_allclose(fitted(kernel, same)(same), K, rtol=TERMS * EPS)


def test_tokens_equal_the_definition() -> None:
    rng = np.random.default_rng(11)
    vocabulary = ["to", "be", "or", "not", "", 3, -3, 2**70, "3"]
    X = [[vocabulary[i] for i in rng.integers(9, size=k)] for k in rng.integers(0, 9, 20)]
    for kernel in KERNELS:
        expected = matrix(by_definition(kernel, X), X, X)
        assert_allclose(fitted(kernel, X)(X), expected, rtol=TERMS * EPS)


def test_other_columns_and_halves_of_characters() -> None:
    X = ["\ud800a", "a\ud800", "\U0010ffff", "\0", "\0\0"]
    kernel = NGrams(kind="counts")
    assert_array_equal(kernel(X), matrix(by_definition(kernel), X, X))
    tokens = [[x] for x in X]
    assert_array_equal(kernel(tokens), np.eye(5))


HASHED = """
from kreinlearn.kernels import NGrams
import numpy as np
X = [["to", "be", 3], ["not", "to", "be"]]
kernel = NGrams(idf=True).fit(X, np.random.default_rng(0))
print(kernel.ngrams_.tolist(), kernel(X).tolist())
"""


def test_every_process_has_the_same_hashes() -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # another than that of here
    elsewhere = subprocess.run(
        [sys.executable, "-c", HASHED], env=os.environ | {"PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE, text=True, check=True, timeout=300,
    ).stdout  # fmt: skip
    here = io.StringIO()
    with redirect_stdout(here):
        exec(HASHED, {})
    assert here.getvalue() == elsewhere


# Through an estimator


def two_kinds(n: int, seed: int) -> tuple[list[str], Any]:
    """Words whose first half is of other letters."""
    y = np.arange(n) % 2
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("aab" if k else "cca"), 6)) + "xyz" for k in y], y


@every_kernel
def test_an_estimator_does_as_with_the_matrix(kernel: NGrams) -> None:
    X, y = two_kinds(24, seed=12)
    objects = np.empty(len(X), dtype=object)
    objects[:] = X
    forms = [objects, np.array(X), pd.Series(X), pl.Series(X)]
    check_estimator(kernel, X, y, two_kinds(9, seed=13)[0], forms)


@pytest.mark.parametrize("idf", [False, True])
def test_a_model_file_knows_the_frequencies(idf: bool, tmp_path: Path) -> None:
    (X, y), (new, _) = two_kinds(40, seed=14), two_kinds(9, seed=15)
    kernel = NGrams(idf=idf, sublinear=True)
    model = KreinRidgeClassifier(kernel, landmarks=10, random_state=0).fit(X, y)
    model.save(tmp_path / "model.krein")
    found = load(tmp_path / "model.krein")
    assert_array_equal(found.decision_function(new), model.decision_function(new))
    assert_array_equal(found.kernel_.idf_, model.kernel_.idf_)


@pytest.mark.parametrize("idf", [False, True])
def test_threads_and_remembered_values_change_no_bit(idf: bool) -> None:
    X, y = words(700, seed=16), np.random.default_rng(17).normal(size=700)
    model = KreinRidge("ngrams", kernel_params={"idf": idf}, landmarks=30, random_state=0)
    expected = clone(model).fit(X, y).predict(X)
    assert_array_equal(clone(model).set_params(n_jobs=2).fit(X, y).predict(X), expected)
    with remembering():
        for _ in range(2):
            assert_array_equal(clone(model).fit(X, y).predict(X), expected)


def test_the_name() -> None:
    kernel = resolve("ngrams", {"lengths": [2, 3]})
    assert isinstance(kernel, NGrams)
    assert (kernel.domain, kernel.is_dissimilarity, kernel.threads) == (Objects(), False, True)
    assert_array_equal(kernel(["abcd"], ["bcd"]), NGrams(lengths=(2, 3))(["abcd"], ["bcd"]))


# What is refused


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (["ab", ""], None, r"is NoneType None; allowed are str, bytes, or a list"),
        (["ab", ""], ["a", "b"], r"is list \['a', 'b'\], the others are of kind str"),
        ([["a"], ["b"]], "ab", r"is str 'ab', the others are of kind list"),
        ([["a"], [1]], ["a", 2.5], r"holds float 2.5; tokens whose n-grams are counted are texts"),
        ([["a"], [1]], [1, 1.0], r"holds float 1.0; .* turn others into texts"),
        ([["a"], [1]], [("a", "b")], r"holds tuple \('a', 'b'\)"),
        ([["a"], [1]], [["b"]], r"holds list \['b'\], which is not hashable"),
    ],
)
def test_what_is_no_sequence_is_named(good: list[Any], bad: Any, message: str) -> None:
    check_bad_object(NGrams(), good, bad, message)


def test_one_string_is_not_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match=r"a list of strings is wanted, got str 'abc'"):
        NGrams()("abc")


@pytest.mark.parametrize(
    "lengths", [(0, 2), (3, 2), (1,), (1, 2, 3), 3, None, "14", (1.0, 2.0), (True, 2)]
)
def test_lengths_that_are_none(lengths: Any) -> None:
    kernel = NGrams(lengths=lengths)
    for act in (lambda: kernel(["a"]), lambda: kernel.fit(["a"], np.random.default_rng(0))):
        with pytest.raises(ValueError, match=r"lengths=.* must be two whole numbers.*\(1, 4\)"):
            act()


def test_a_kind_that_is_unknown() -> None:
    message = r"kind='max' is unknown; pass one of \('cosine', 'counts', 'min'\)"
    kernel = NGrams(kind="max")
    for act in (lambda: kernel(["a"]), lambda: kernel.fit(["a"], np.random.default_rng(0))):
        with pytest.raises(ValueError, match=message):
            act()


def test_frequencies_need_a_fit() -> None:
    with pytest.raises(NotFittedError):
        NGrams(idf=True)(["a"], ["b"])
