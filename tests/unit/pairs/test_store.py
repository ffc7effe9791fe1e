"""The block store: no pair is evaluated twice, results are bit for bit those without it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kreinlearn import (
    KreinNystroem,
    KreinPCA,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidge,
    Landmarks,
    Resources,
    SimilarityRidge,
    SpectrumSVC,
)
from kreinlearn.kernels import pairwise, resolve
from kreinlearn.kernels.base import ObjectKernel
from kreinlearn.kernels.processes import Processes
from kreinlearn.pairs.store import blocks as blocks_module
from kreinlearn.pairs.store.blocks import StoredBlocks
from kreinlearn.pairs.store.evaluation import grain_of
from kreinlearn.pairs.store.fingerprints import description, fingerprint
from kreinlearn.pairs.store.folder import Folder
from kreinlearn.pairs.store.index import as_spans, from_spans

pytest.importorskip("zarr")

MET: Counter[tuple[float, float]] = Counter()  # pairs evaluated, either order


class Met(ObjectKernel):
    """sqrt |a - b| of numbers, which remembers what it was asked."""

    is_dissimilarity = True

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def packed(self, X: Any, first: int = 0, n: int = 0, like: Any = None) -> Any:
        return np.array(X, dtype=float)

    def values(self, A: Any, Z: Any) -> Any:
        MET.update((min(a, z), max(a, z)) for a, z in product(A.tolist(), Z.tolist()))
        return self.scale * np.sqrt(np.abs(A[:, None] - Z))


class MetSimilarity(Met):
    is_dissimilarity = False

    def values(self, A: Any, Z: Any) -> Any:
        return 2.0 - super().values(A, Z)


def numbers(n: int, seed: int = 0) -> list[float]:
    return np.random.default_rng(seed).permutation(10 * n)[:n].astype(float).tolist()


def small(**others: Any) -> dict[str, Any]:
    return {"kernel": Met(), "random_state": 0, **others}


GIVEN = {"lambda_plus": 0.1, "lambda_minus": 0.1, "landmarks": 10}
MODELS: dict[str, Any] = {
    "ridge": partial(KreinRidge, **small(**GIVEN)),
    "tuned": partial(KreinRidge, **small(landmarks=10)),
    "exact": partial(KreinRidge, **small(landmarks=None)),
    "similarity": partial(KreinRidge, **{**small(**GIVEN), "kernel": MetSimilarity()}),
    "classifier": partial(KreinRidgeClassifier, **small(**GIVEN)),
    "machine": partial(KreinSVC, **small(**GIVEN)),
    "variance": partial(KreinVCRidge, **small(**GIVEN)),
    "baseline": partial(SimilarityRidge, **small(landmarks=10)),
    "spectrum": partial(SpectrumSVC, **small(C=1.0)),
    "nystroem": partial(KreinNystroem, **small(landmarks=10)),
    "tolerance": partial(KreinNystroem, **small(tol=0.2)),
    "svd": partial(KreinNystroem, **small(landmarks=Landmarks(10, core="plain"), method="svd")),
    "leverage": partial(KreinNystroem, **small(landmarks=Landmarks(10, "leverage"))),
    "pca": partial(KreinPCA, **small()),
}


def result(model: Any) -> bytes:
    found = getattr(model, "dual_coef_", None)
    return np.asarray(model._map.W if found is None else found).tobytes()


def fitted(name: str, X: Any, store: Any, **others: Any) -> Any:
    y = np.array([float(x) % 7 > 3 for x in X])
    y = y if name in ("classifier", "machine", "spectrum") else y + 0.1 * np.arange(len(y)) % 1
    MET.clear()
    return MODELS[name](resources=Resources(store=store), **others).fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_a_second_fit_evaluates_nothing_and_gives_the_same(name: str, tmp_path: Path) -> None:
    X = numbers(90)
    alone = result(fitted(name, X, None))
    asked = Counter(MET)
    first = result(fitted(name, X, tmp_path / "values"))
    assert set(MET) == set(asked)
    second = result(fitted(name, X, tmp_path / "values"))
    assert not MET
    assert alone == first == second


@pytest.mark.parametrize("core", ["ls", "plain"])
@pytest.mark.parametrize("kernel", [Met(), MetSimilarity()], ids=["distance", "similarity"])
def test_more_landmarks_evaluate_only_new_pairs(kernel: Any, core: str, tmp_path: Path) -> None:
    X, y, met = numbers(300), np.arange(300.0), Counter[Any]()
    given = {"kernel": kernel, "lambda_plus": 1.0, "lambda_minus": 1.0}
    given |= {"resources": Resources(store=tmp_path / "values")}
    for seed, m in ((0, 8), (0, 16), (1, 12), (1, 4)):
        MET.clear()
        landmarks = Landmarks(m, core=core, pool=40)  # most rows are streamed
        KreinRidge(**given, landmarks=landmarks, random_state=seed).fit(X, y)
        for own in [pair for pair in MET if pair[0] == pair[1]]:
            MET.pop(own)  # k(x, x) comes with small squares
        assert not set(met) & set(MET)
        met |= MET
    assert max(met.values()) <= 2  # small squares are evaluated whole, at one time


def test_more_rows_evaluate_only_pairs_with_new_rows(tmp_path: Path) -> None:
    X, store = numbers(400), tmp_path / "values"
    common = {"landmarks": np.arange(10)}
    fitted("ridge", X[:250], store, **common)
    grown = fitted("ridge", X, store, **common)
    assert set(MET) == {(min(a, z), max(a, z)) for a, z in product(X[250:], X[:10])}
    assert result(grown) == result(fitted("ridge", X, None, **common))
    again = fitted("ridge", X + numbers(30, seed=5), store, **common)
    assert len(MET) == 300
    assert again.n_landmarks_ == 10


def test_tiles_of_rows_grow_and_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kreinlearn.pairs.store.opening.TILE", 64)
    X, store = numbers(300), tmp_path / "values"
    for n in (100, 130, 300):
        fitted("ridge", X[:n], store, landmarks=np.arange(10))
    for changed, span in ((70, "64..99"), (128, "128..129"), (250, "192..255")):
        with pytest.raises(ValueError, match=f"rows {span} of X differ"):
            fitted("ridge", [*X[:changed], -1.0, *X[changed + 1 :]], store)
    with pytest.raises(ValueError, match="X has 299 rows and the store 300"):
        fitted("ridge", X[:-1], store)


def test_landmarks_that_are_no_rows_are_known_by_what_they_are(tmp_path: Path) -> None:
    X, store = numbers(80), tmp_path / "values"
    outside = [[-1.0, -2.0, -3.0], [-3.0, -4.0, -1.0], [-2.0, -1.0, -3.0]]
    for given, new in zip(outside, ([-1.0, -2.0, -3.0], [-4.0], []), strict=True):
        alone = fitted("ridge", X, None, landmarks=given)
        kept = fitted("ridge", X, store, landmarks=given)
        assert {pair[0] for pair in MET if pair[1] in X} == set(new)
        assert result(alone) == result(kept)


@pytest.mark.parametrize("scheme", ["uniform", "leverage", "greedy_kmeans++"])
def test_vectors_bit_for_bit(scheme: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    for dtype, n_jobs in (("float64", 1), ("float32", 2), ("float64", 2)):
        X, y = rows.astype(dtype), np.sin(rows[:, 0])
        landmarks = Landmarks(20, scheme, pool=300)
        common: dict[str, Any] = {"landmarks": landmarks, "random_state": 0, "n_jobs": n_jobs}
        common |= {"lambda_plus": 0.1, "lambda_minus": 0.1}
        alone, kept = (
            KreinRidge("delta_gauss", **common, resources=Resources(store=store))
            for store in (None, tmp_path / dtype)
        )
        alone.fit(X, y)
        kept.fit(X, y)
        assert result(alone) == result(kept)
        assert np.array_equal(alone.predict(X[:50]), kept.predict(X[:50]))


def product_of_blocks(A: Any, B: Any) -> Any:
    return np.tanh(A @ B.T)


def test_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kreinlearn.pairs.store.evaluation.PIECE", 0.01)
    monkeypatch.setattr(blocks_module, "WAIT", (0.0, 0.0))
    X, landmarks = numbers(3000), Landmarks(10, pool=100)

    def fit(store: Path | None, n_jobs: int) -> bytes:
        return result(fitted("tuned", X, store, landmarks=landmarks, n_jobs=n_jobs))

    found = {fit(None, 1)}
    for n_jobs in (1, 3):
        found.add(fit(tmp_path / str(n_jobs), n_jobs))
    found.add(fit(tmp_path / "3", 2))
    assert not MET
    assert len(found) == 1


def gap(a: str, b: str, weight: float = 1.0) -> float:
    return -weight * abs(len(a) - len(b)) - float(a[:1] != b[:1])


WORDS = ["a" * (1 + i % 5) + "b" * (i % 3) + str(i) for i in range(60)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_functions_in_processes(n_jobs: int, tmp_path: Path) -> None:
    y = np.arange(60.0)
    common = {"landmarks": 8, "lambda_plus": 1.0, "lambda_minus": 1.0, "random_state": 0}
    alone = KreinRidge(pairwise(gap), **common).fit(WORDS, y)
    for _ in range(2):
        resources = Resources(store=tmp_path)
        kept = KreinRidge(pairwise(gap), **common, n_jobs=n_jobs, resources=resources)
        kept.fit(WORDS, y)
        assert result(kept) == result(alone)


def test_rows_that_stay_together_in_a_call() -> None:
    own = pairwise(gap)
    assert [grain_of(resolve("gaussian")), grain_of(Met()), grain_of(own)] == [0, 1, 1]
    assert grain_of(resolve(lambda A, B: A @ B.T)) == 128  # as without a store
    own.processes = Processes(3)
    assert grain_of(own) >= 2 * 3  # or some would have nothing to do


def test_a_second_fit_calls_a_function_only_to_see_whether_it_is_the_same(tmp_path: Path) -> None:
    calls: list[Any] = []

    def counted(a: str, b: str) -> float:
        calls.append((a, b))
        return gap(a, b)

    counts = []
    for _ in range(2):
        calls.clear()
        model = KreinRidge(pairwise(counted), landmarks=None, resources=Resources(store=tmp_path))
        model.fit(WORDS, np.arange(60.0))
        counts.append(len(calls))
    assert counts[0] >= 60 * 61 / 2
    assert counts[1] <= 2 * 50 + 8 + 8


# Refusals


def refused(why: str, X: Any, store: Path, **others: Any) -> None:
    model = KreinRidge(**{**small(**GIVEN), **others}, resources=Resources(store=store))
    with pytest.raises(ValueError, match=why) as caught:
        model.fit(X, np.arange(float(len(X))))
    assert repr(str(store))[1:-1] in str(caught.value)


def test_what_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, store = numbers(50), tmp_path / "values"
    fitted("ridge", X, store)
    refused("rows 0..49 of X differ", X[::-1], store)
    refused("rows 0..49 of X differ", [int(x) for x in X], store)
    refused(
        "kernel is tests.*MetSimilarity here and tests.*Met in", X, store, kernel=MetSimilarity()
    )
    refused(r"kernel's scale is 2.0 here and 1.0 in", X, store, kernel=Met(2.0))
    monkeypatch.setattr("kreinlearn.pairs.store.fingerprints.metadata.version", lambda name: "99")
    refused("version of kreinlearn is 99 here and", X, store)


def test_all_that_differs_is_named_the_kernel_first(tmp_path: Path) -> None:
    X, store = numbers(70), tmp_path / "values"
    for n in (50, 70):
        fitted("ridge", X[:n], store)
    rows, other = "X has 50 rows and the store 70", "kernel is tests.*MetSimilarity here .*"
    refused(other + rows, X[:50], store, kernel=MetSimilarity())
    refused(r"kernel's scale is 2.0 here and 1.0 in the store; " + rows, X[:50], store,
            kernel=Met(2.0))  # fmt: skip
    refused(other + "rows 0..49 of X differ", X[::-1], store, kernel=MetSimilarity())
    refused(rows, X[:50], store)


def test_parameters_found_in_the_data_are_part_of_the_kernel(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    resources = Resources(store=tmp_path)
    model = KreinNystroem("gaussian", landmarks=5, random_state=0, resources=resources)
    model.fit(X)
    with pytest.raises(ValueError, match=r"kernel's .*_ is .* here and .* in the store"):
        model.fit(np.vstack([X, 100 * X]))


def test_a_function_that_was_changed(tmp_path: Path) -> None:
    def once(a: str, b: str) -> float:
        return gap(a, b)

    def changed(a: str, b: str) -> float:
        return 2 * gap(a, b)

    changed.__qualname__ = once.__qualname__
    for f, why in ((once, None), (changed, "kernel's func .* has changed")):
        model = KreinRidge(pairwise(f), landmarks=5, resources=Resources(store=tmp_path))
        if why is None:
            model.fit(WORDS, np.arange(60.0))
        else:
            with pytest.raises(ValueError, match=why):
                model.fit(WORDS, np.arange(60.0))


def test_a_function_whose_values_have_changed_for_landmarks_from_outside(tmp_path: Path) -> None:
    factor = {"is": 1.0}

    def scaled(a: str, b: str) -> float:
        return factor["is"] * (1.0 + gap(a, b))

    resources = Resources(store=tmp_path)
    model = KreinRidge(pairwise(scaled), landmarks=["a", "bbbb", "cc"], resources=resources)
    model.fit(WORDS, np.arange(60.0))
    factor["is"] = 2.0
    with pytest.raises(ValueError, match=r"and landmark \d the kernel gives \S+ now, and \S+ is"):
        model.fit(WORDS, np.arange(60.0))


def test_a_warning_of_damage_names_the_line_of_the_fit(tmp_path: Path) -> None:
    """Also of a block that is met when the store is opened, to see whether the function is same."""
    model = KreinRidge(pairwise(gap), landmarks=5, resources=Resources(store=tmp_path))
    model.fit(WORDS, np.arange(60.0))
    for chunk in (tmp_path / "values" / "c").iterdir():
        chunk.write_bytes(chunk.read_bytes()[:10])
    with pytest.warns(UserWarning, match="is damaged or gone") as said:
        model.fit(WORDS, np.arange(60.0))
    assert {Path(one.filename).name for one in said} == {"test_store.py"}


def test_where_a_store_makes_no_sense(tmp_path: Path) -> None:
    y, kept = np.arange(20.0), {"resources": Resources(store=tmp_path)}
    with pytest.raises(ValueError, match="precomputed matrix holds them already"):
        KreinRidge("precomputed", **kept).fit(np.eye(20), y)
    with pytest.raises(ValueError, match="tries several"):
        KreinRidge(Met(), kernel_params=[{"scale": 1.0}, {"scale": 2.0}], **kept).fit(
            numbers(20), y
        )
    with pytest.raises(ValueError, match="partial_fit counts them anew"):
        KreinRidge(Met(), **kept).partial_fit(numbers(20), y)
    with pytest.raises(ValueError, match="The 'store' parameter"):
        KreinRidge(Met(), resources=Resources(store=3)).fit(numbers(20), y)


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"kreinlearn\[scale\]"):
        fitted("ridge", numbers(30), tmp_path)


def test_a_fitted_model_needs_no_store(tmp_path: Path) -> None:
    X, store = numbers(60), tmp_path / "values"
    model = fitted("classifier", X, store)
    shutil.rmtree(store)
    MET.clear()
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert sum(MET.values()) >= 2 * 60 * 10
    assert not store.exists()


# Fingerprints


class Thing:
    def __init__(self, *content: Any) -> None:
        self.content = content

    def __call__(self, a: Any, b: Any) -> float:
        return 1.0


def things() -> list[Any]:
    import networkx as nx

    graph = nx.path_graph(4)
    graph.nodes[0]["label"] = "x"
    return [
        "a", b"a", 1, 1.0, True, None, float("nan"), (1, 2), [1, 2], {1, 2}, {"b": 1, "a": 2},
        {"a": 2, "b": 1}, frozenset("hello world"), np.arange(3), np.arange(3.0), np.array([["a"]]),
        np.array([None, "a"], dtype=object), Thing(1, {"x", "y", "z"}), Thing(2), graph,
        nx.path_graph(4), gap, partial(gap, weight=2.0), partial(gap, weight=3.0),
        Thing(1).__call__, Met(), Met(2.0), MetSimilarity(), range(3), "", [], [[]],
        ["", ""], ["a", "b"], ["ab"],
    ]  # fmt: skip


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process_and_differ_between_things() -> None:
    code = "from tests.unit.pairs.test_store import *; print([fingerprint([x]) for x in things()])"
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # another than that of here
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parents[3],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
    ).stdout  # fmt: skip
    marks = [fingerprint([x]) for x in things()]
    assert str(marks) == elsewhere.strip()
    assert len(set(marks)) == len(marks)


def test_a_graph_is_the_same_after_use() -> None:
    import networkx as nx

    graph = nx.path_graph(4)
    before = fingerprint([graph])
    _ = graph.adj, graph.edges, graph.degree
    assert fingerprint([graph]) == before


def test_objects_that_cannot_be_recognised() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for x in ((i for i in range(3)), endless):
        with pytest.raises(TypeError, match=r"cannot recognise a .* in a later process"):
            fingerprint([x])


def test_versions_of_libraries() -> None:
    from kreinlearn.kernels import Levenshtein

    combined = Levenshtein() + Levenshtein()
    combined.fit(["a", "b"], np.random.default_rng(0))
    for kernel in (Levenshtein(), combined):
        assert description(kernel)["versions"].keys() == {"kreinlearn", "rapidfuzz"}
    assert "python" in description(pairwise(gap))["versions"]


# Values by pairs of numbers, against a dict


def test_values_are_found_both_ways_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "CHUNK", 64)
    rng, oracle = np.random.default_rng(0), dict[tuple[int, int], float]()
    for _ in range(6):
        folder = Folder(tmp_path)
        blocks = StoredBlocks(folder, folder.entries())
        for _ in range(8):
            a, z = (rng.choice(80, rng.integers(1, 15), replace=False) - 5 for _ in range(2))
            expected = [[oracle.get((i, j), np.nan) for j in z] for i in a]
            either = [[oracle.get((i, j), oracle.get((j, i), np.nan)) for j in z] for i in a]
            for mirror, K in ((False, expected), (True, either)):
                known = blocks.read(a, z, mirror=mirror)
                if known is None:
                    known = np.full((len(a), len(z)), np.nan)
                assert np.array_equal(np.isnan(known), np.isnan(K))
                if not mirror:
                    assert np.array_equal(known, K, equal_nan=True)
            if np.isnan(expected).all():
                K = rng.normal(size=(len(a), len(z)))
                blocks.add(a, z, K)
                oracle |= {(i, j): K[p, q] for p, i in enumerate(a) for q, j in enumerate(z)}
            if rng.random() < 0.3:
                blocks.commit()
        blocks.close()
    assert len(oracle) > 300


def test_spans_of_numbers_for_json() -> None:
    for given in ([3], [1, 2, 3, 7, 9, 10], [5, 4, 3], [-3, -2, -1, 0], []):
        spans = as_spans(np.array(given, dtype=np.int64)) if given else []
        assert from_spans(spans).tolist() == given
    assert as_spans(np.array([1, 2, 3, 7])) == [[1, 4], 7]
