"""What kernels declare: their domain, how it validates X, and what evaluating them costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator
from sklearn.utils import InputTags

from kreinlearn import KreinClassifier, dissimilarity, normalized, pairwise, similarity_of, table
from kreinlearn.data.tiles import Part, Source
from kreinlearn.data.validation import Border
from kreinlearn.kernels import Gaussian, Kernel, Levenshtein, Sigmoid, registered, resolve
from kreinlearn.kernels.base import ObjectKernel
from kreinlearn.kernels.domains import Anything, Domain, Matrix, Objects, Records, Vectors
from kreinlearn.kernels.processes import Processes
from kreinlearn.kernels.scikit import SET_METRICS, sklearn_kernel_names, sklearn_metric_names
from kreinlearn.kernels.shapes import Turning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
WORDS = [f"{i:b}-{'abcdef'[i % 6 :]}" for i in range(40)]
VECTORS = ["delta_gauss", "epanechnikov", "gaussian", "gaussian_combination", "multiquadric"]
VECTORS += ["sigmoid", "truncated_l1", *sklearn_kernel_names(), *sklearn_metric_names()]


def border(estimator: Any = None) -> Border:
    return Border(BaseEstimator() if estimator is None else estimator, 10**9)


def common(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


def products(A: Any, B: Any) -> Any:
    return np.asarray(A) @ np.asarray(B).T


class Counted(ObjectKernel):
    """The letters that two words share; counts the pairs that it evaluates."""

    def __init__(self) -> None:
        self.pairs = 0

    def packed(self, X: Any, first: int = 0, n: int = 0, like: Any = None) -> Any:
        return list(X)

    def values(self, A: Any, Z: Any) -> Any:
        self.pairs += len(A) * len(Z)
        return np.array([[common(a, z) for z in Z] for a in A]).reshape(len(A), len(Z))


CALLS: list[tuple[str, str]] = []


def noted(a: str, b: str) -> float:
    CALLS.append((a, b))
    return common(a, b)


# Which domain


@pytest.mark.parametrize("name", sorted({*registered(), *VECTORS}))
def test_every_kernel_declares_a_domain(name: str) -> None:
    kernel = resolve(name)
    given, rows = name.startswith("precomputed"), name == "gower"
    kind = Matrix if given else Records if rows else Vectors if name in VECTORS else Objects
    assert type(kernel.domain) is kind
    flags = [kernel.domain.is_vectors, kernel.domain.is_objects]
    flags += [kernel.domain.is_records, kernel.domain.is_matrix]
    assert flags == [kind is one for one in (Vectors, Objects, Records, Matrix)]
    assert kernel.costly == (kind in (Objects, Records))
    assert kernel.writes_in_place == (kind is Vectors)
    assert kernel.of_dissimilarities == (name == "precomputed_dissimilarity")
    assert (kernel.jobs, kernel.diagonal_cost) == (1, 1)


@pytest.mark.parametrize(
    ("kernel", "domain"),
    [
        (resolve(products), Anything()),
        (pairwise(common), Anything()),
        (Gaussian() + pairwise(common), Vectors(True)),
        (Gaussian() + resolve("chi2"), Vectors(False)),
        (pairwise(common) + normalized("smith_waterman"), Objects()),
        (similarity_of("gower"), Records()),
        (similarity_of("cityblock"), Vectors(True)),
        (dissimilarity("euclidean"), Vectors(True)),
        (resolve("precomputed_dissimilarity"), Matrix(True)),
    ],
)
def test_a_combination_derives_its_domain(kernel: Kernel, domain: Domain) -> None:
    assert kernel.domain == domain


def test_domains_have_an_intersection() -> None:
    assert Vectors(True).intersection(Anything(False)) == Vectors(False)
    assert Anything().intersection(Anything(False)) == Anything(False)
    for domain in (Objects(), Records(), Matrix()):
        assert Anything().intersection(domain) == domain == domain.intersection(Anything())
        assert domain.intersection(domain) == domain
        assert Vectors().intersection(domain) is None is domain.intersection(Vectors())


@pytest.mark.parametrize(
    ("kernel", "on"),
    [
        ("gaussian", {"sparse"}),
        ("truncated_l1", set()),
        ("levenshtein", {"string"}),
        ("gower", {"string", "categorical", "allow_nan"}),
        (products, {"sparse", "string"}),
        ("precomputed", {"pairwise"}),
        ("precomputed_dissimilarity", {"pairwise", "positive_only"}),
    ],
)
def test_tags_say_what_the_domain_takes(kernel: Any, on: set[str]) -> None:
    tags, resolved = InputTags(), resolve(kernel)
    resolved.domain.tags(tags, resolved)
    names = {"pairwise", "positive_only", "sparse", "string", "categorical", "allow_nan"}
    assert {name for name in names if getattr(tags, name)} == on


# X at the border


def test_vectors_become_floats_and_their_columns_are_remembered() -> None:
    model, frame = BaseEstimator(), pd.DataFrame(X, columns=["a", "b", "c"])
    assert_array_equal(Vectors().validate(frame, border(model), reset=True), X)
    assert (model.n_features_in_, list(model.feature_names_in_)) == (3, ["a", "b", "c"])
    with pytest.raises(ValueError, match="feature names should match"):
        Vectors().validate(frame[["b", "a", "c"]], border(model), reset=False)
    known = BaseEstimator()
    known.n_features_in_ = 3
    with pytest.raises(ValueError, match="3 features"):
        Vectors().validate(X[:, :2], border(known), reset=False)
    small = X.astype(np.float32)
    read = Vectors().validate(small, border(), reset=True)
    assert isinstance(read, Source)  # rows are converted as they are read
    assert read[2:7].dtype == read.take([5, 1]).dtype == np.float64
    assert_array_equal(read[2:7], small[2:7])


def test_sparse_rows_are_taken_where_the_domain_says_so() -> None:
    rows = sp.coo_array(X)
    for domain in (Vectors(True), Anything()):
        assert domain.validate(rows, border(), reset=True).format == "csr"
    for domain in (Vectors(False), Anything(False)):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            domain.validate(rows, border(), reset=True)


def test_objects_are_a_list() -> None:
    for given in (WORDS, np.array(WORDS), pd.Series(WORDS), tuple(WORDS)):
        for domain in (Objects(), Anything()):
            assert domain.validate(given, border(), reset=True) == WORDS
    rows = Objects().validate(pd.DataFrame(X), border(), reset=True)
    assert isinstance(rows, list)
    assert_array_equal(rows, X)
    for domain in (Objects(), Anything()):
        with pytest.raises(ValueError, match="in two dimensions"):
            domain.validate(np.array([WORDS, WORDS]), border(), reset=True)
    with pytest.raises(TypeError, match="pass a list with one entry per object"):
        Objects().validate({"a": 1}, border(), reset=True)


def test_anything_stays_what_it_was_in_fit() -> None:
    model = BaseEstimator()
    assert isinstance(Anything().validate(X, border(model), reset=True), np.ndarray)
    with pytest.raises(ValueError, match=r"could not convert|dtype='numeric'"):
        Anything().validate(WORDS, border(model), reset=False)
    assert isinstance(Anything().validate(X.tolist(), border(model), reset=False), np.ndarray)
    assert isinstance(Anything().validate(X.tolist(), border(), reset=False), list)


def test_records_are_dicts_if_columns_have_names() -> None:
    frame, model = pd.DataFrame({"a": [1, 2], "b": ["x", None]}), BaseEstimator()
    rows = Records().validate(frame, border(model), reset=True)
    assert rows[0] == {"a": 1, "b": "x"}
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert Records().validate([(3, "y")], border(model), reset=False) == [{"a": 3, "b": "y"}]
    assert Records().validate([(3, "y")], border(), reset=True) == [(3, "y")]


def test_a_matrix_may_be_condensed_if_it_holds_distances() -> None:
    D = squareform(pdist(X))
    assert_array_equal(Matrix(True).validate(pdist(X), border(), reset=True), D)
    with pytest.raises(ValueError, match="condensed vector has no self-similarities"):
        Matrix(False).validate(pdist(X), border(), reset=True)
    with pytest.raises(ValueError, match="Expected 2D array"):
        Matrix(True).validate(pdist(X), border(), reset=False)
    with pytest.raises(ValueError, match="Negative values"):
        Matrix(True).validate(-D, border(), reset=True)
    with pytest.raises(ValueError, match="diagonal"):
        Matrix(True).validate(D + 1, border(), reset=True)
    assert_array_equal(Matrix(False).validate(-D - 1, border(), reset=True), -D - 1)
    D[2, 1] = np.inf
    with pytest.raises(ValueError, match="infinity at row 2, column 1"):
        Matrix().validate(D, border(), reset=True)


@pytest.mark.parametrize("domain", [Vectors(), Anything()])
def test_memory_maps_and_files_of_vectors_are_read_when_wanted(
    domain: Domain, tmp_path: Path
) -> None:
    np.save(tmp_path / "X.npy", X)
    model = BaseEstimator()
    for given in (tmp_path / "X.npy", np.load(tmp_path / "X.npy", mmap_mode="r")):
        source = domain.validate(given, border(model), reset=True)
        assert isinstance(source, Source)
        assert_array_equal(source[0:30], X)
        assert model.n_features_in_ == 3
    assert_array_equal(Matrix().validate(tmp_path / "X.npy", border(), reset=True), X)
    rows = Objects().validate(tmp_path / "X.npy", border(), reset=True)
    assert_array_equal(rows[3:5], X[3:5])
    assert isinstance(rows[3:5], list)


def test_the_column_of_a_table_is_remembered_and_found_again(tmp_path: Path) -> None:
    frame = pd.DataFrame({"word": WORDS, "n": range(len(WORDS))})
    frame.to_parquet(tmp_path / "words.parquet")
    frame.assign(other="x").to_parquet(tmp_path / "more.parquet")
    for domain in (Objects(), Anything()):
        model = BaseEstimator()
        given = table(tmp_path / "words.parquet", columns="word")
        assert domain.validate(given, border(model), reset=True)[0:40] == WORDS
        assert model._column == "word"
        again = domain.validate(tmp_path / "more.parquet", border(model), reset=False)
        assert again[0:40] == WORDS
    rows = Records().validate(tmp_path / "words.parquet", border(), reset=True)
    assert rows[1] == {"word": WORDS[1], "n": 1}


def test_a_part_is_not_validated_again() -> None:
    part = Part(X, 3, 5)
    for domain in (Vectors(), Objects(), Records(), Anything(), Matrix()):
        assert domain.validate(part, border(), reset=False) is part


def test_what_a_model_file_holds_is_of_its_domain() -> None:
    for domain in (Vectors(), Anything(False)):
        assert domain.holds(X, 3)
        assert not domain.holds(X, 2)
        assert not domain.holds(X, None)
        assert not domain.holds(X * np.nan, 3)
        assert not domain.holds(X.astype(int), 3)
        assert not domain.holds(sp.csr_array(X), 3)
        assert not domain.holds(X.astype(np.float32), 3)
        assert domain.holds(WORDS, None) == (domain == Anything(False))
    assert Vectors(True).holds(sp.csr_array(X), 3)
    for listed in (Objects(), Records()):
        assert listed.holds(WORDS, None)
        assert not listed.holds(X, 3)


# Costs


@pytest.mark.parametrize("n", [2, 17, 40])
def test_pairs_once_means_so_many_calls(n: int) -> None:
    once = n * (n + 1) // 2
    for kernel in (pairwise(noted), 2 * pairwise(noted), normalized(pairwise(noted))):
        kernel.fit(WORDS, np.random.default_rng(0))
        CALLS.clear()
        kernel.symmetric(WORDS[:n])
        assert kernel.pairs_once
        assert len(CALLS) == once
    objects = Counted()
    objects.symmetric(WORDS[:n])
    small = 16  # squares of so many objects are evaluated as a whole
    assert objects.pairs_once
    assert once <= objects.pairs <= once + n * small
    for several in (
        Gaussian(),
        resolve(products),
        similarity_of("levenshtein") + resolve(products),
    ):
        assert not several.pairs_once


def test_known_self_similarities_are_not_evaluated() -> None:
    n, kernel = 10, pairwise(noted)
    CALLS.clear()
    own = np.where(np.arange(n) % 2, np.nan, 7.0)
    K = kernel.symmetric(WORDS[:n], own)
    assert len(CALLS) == n * (n - 1) // 2 + n // 2
    assert_array_equal(np.diagonal(K)[::2], 7.0)
    for other in (Gaussian(width=1.0), Sigmoid(gain=1.0), resolve(products), similarity_of("l1")):
        other.fit(X, np.random.default_rng(0))
        assert_array_equal(other.symmetric(X, np.full(30, 7.0)), other.symmetric(X))
    for words in (Levenshtein(), Counted(), 2 * pairwise(common)):
        words.fit(WORDS, np.random.default_rng(0))
        assert_array_equal(words.symmetric(WORDS, np.full(40, 7.0)), words.symmetric(WORDS))


@pytest.mark.parametrize("name", VECTORS)
def test_kernels_on_vectors_write_in_place(name: str) -> None:
    A = np.abs(X[:, :2])
    A = np.column_stack([np.ones(30), A > 0.5]) if name in SET_METRICS else A
    kernel = resolve(name)
    for one in (kernel, 2 * kernel):
        one = one.fit(A, np.random.default_rng(0))
        out = np.full((30, 7), np.nan)
        K = one.columns(A[:7])(A, out)
        assert one.writes_in_place
        assert np.shares_memory(K, out)
        assert_array_equal(out, one.columns(A[:7])(A))


@pytest.mark.parametrize("kernel", [Levenshtein(), pairwise(common), Counted()])
def test_a_square_that_is_split_has_the_same_values(kernel: Kernel) -> None:
    assert kernel.splits_squares
    assert kernel.rows_per_call == 1
    K = kernel.symmetric(WORDS)
    assert_array_equal(K[:9, 9:], kernel.columns(WORDS[9:])(WORDS[:9]))
    assert_array_equal(K[9:, 9:], kernel.symmetric(WORDS[9:]))
    for i, word in enumerate(WORDS):
        assert_array_equal(K[[i]], kernel.columns(WORDS)([word]))


def test_what_is_packed_as_a_whole_is_not_split() -> None:
    whole = [resolve("wl_distance"), Turning(), Gaussian(), resolve(products), 2 * Levenshtein()]
    assert not any(kernel.splits_squares for kernel in whole)


def test_rows_per_call_are_those_of_the_part_that_needs_most() -> None:
    block, pair = resolve(products), pairwise(common)
    assert (block.rows_per_call, pair.rows_per_call, Gaussian().rows_per_call) == (128, 1, 0)
    assert (block + pair).rows_per_call == 128
    assert (pair - pair).rows_per_call == 1
    assert (Gaussian() + block).rows_per_call == 0


def test_a_combination_is_costly_if_a_part_is() -> None:
    assert (Gaussian() + pairwise(common)).costly
    assert not (Gaussian() + Sigmoid()).costly
    assert similarity_of("levenshtein").costly
    assert not similarity_of("l1").costly


def test_the_cost_of_the_diagonal_is_the_number_of_pairs() -> None:
    sizes: list[int] = []

    def block(A: Any, B: Any) -> Any:
        sizes.append(len(A) * len(B))
        return products(A, B)

    kernel, n = resolve(block), 24
    kernel.diagonal(X[:n])
    assert sum(sizes) == n * kernel.diagonal_cost
    assert (kernel - Gaussian()).diagonal_cost == kernel.diagonal_cost
    assert pairwise(common).diagonal_cost == 1


def test_only_kernels_of_python_functions_have_processes() -> None:
    assert Gaussian().with_processes(3).jobs == 1
    Gaussian().end_fit()
    first, second = pairwise(common).with_processes(3), pairwise(common)
    assert first.jobs == 3
    assert isinstance(first.processes, Processes)
    assert second.with_processes(1, like=first).processes is first.processes
    assert second.with_processes(1).jobs == 1
    assert second.with_processes(3, like=Gaussian()).jobs == 1
    first.end_fit()
    words = (Levenshtein() + Levenshtein()).with_processes(3)
    assert words.fit(WORDS, np.random.default_rng(0)).jobs == 1


def test_texts_for_a_kernel_on_vectors_get_the_name_of_one_on_texts() -> None:
    with pytest.raises(ValueError, match=r"string to float: 'ab'; .* kernel=\"levenshtein\""):
        KreinClassifier("gaussian").fit(["ab", "cd", "ef", "gh"], [0, 0, 1, 1])
