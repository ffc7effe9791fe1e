"""Estimators on objects of every kind, from every container: the same fit, bit for bit."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing

from kreinlearn import (
    KreinNystroem,
    KreinPCA,
    KreinRidgeClassifier,
    KreinSVC,
    SpectrumSVC,
    dissimilarity,
    indefiniteness,
    pairwise,
)
from kreinlearn.datasets import Graph

N = 18
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 3
WORDS = [f"{i:05b}"[: 2 + i % 3] + "abc"[i % 3] * 2 for i in range(N)]
SAME_LENGTH = [f"{i:04b}" + "abc"[i % 3] for i in range(N)]
SERIES = [np.sin(np.arange(6 + i % 4) * (1 + i % 3)) + 0.1 * RNG.normal() for i in range(N)]
SAME_TIMES = np.stack([x[:6] for x in SERIES])
CHANNELS = [np.stack([x, -x], axis=1) for x in SERIES]
POINTS = [RNG.normal(size=(4, 2)) + 3 * (i % 3) for i in range(N)]
GRAPHS = [Graph([0, 0, i % 3, 1], [(0, 1), (1, 2), (2, 3 * (i % 2))]) for i in range(N)]
BAGS = [{i % 3, 10 + i % 3, 20 + i % 5} for i in range(N)]
ROWS = [(i % 3 + 0.1 * i, "abc"[i % 3], i % 2 == 0) for i in range(N)]


class Own:
    """A person's own class of objects."""

    def __init__(self, word: str) -> None:
        self.word = word


def unlike(a: Own, b: Own) -> float:
    return float(len({*a.word} ^ {*b.word}))


def nearness(a: Any, b: Any) -> float:
    return float(np.exp(-np.sum((np.asarray(a) - np.asarray(b)) ** 2)))


OF_NUMBERS = pairwise(nearness)
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "words": ("levenshtein", WORDS),
    "tokens": ("indel", [[*word] for word in WORDS]),
    "series": ("dtw", SERIES),
    "channels": ("dtw", CHANNELS),
    "points": ("hausdorff", POINTS),
    "graphs": ("weisfeiler_lehman", GRAPHS),
    "sets": ("jaccard_sets", BAGS),
    "rows": ("gower", ROWS),
    "own": (dissimilarity(pairwise(unlike)), [Own(word) for word in WORDS]),
}
FIXED = {"lambda_plus": 0.01, "lambda_minus": 0.01, "random_state": 0}
MODELS: dict[str, Callable[..., Any]] = {
    "KreinRidgeClassifier": lambda k: KreinRidgeClassifier(k, similarity="squared", **FIXED),
    "KreinSVC": lambda k: KreinSVC(k, similarity="squared", **FIXED),
    "KreinNystroem": lambda k: KreinNystroem(k, landmarks=9, random_state=0),
    "KreinPCA": lambda k: KreinPCA(kernel=k, random_state=0),
    "SpectrumSVC": lambda k: SpectrumSVC(k, C=1.0, random_state=0),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
kinds = pytest.mark.parametrize("kind", KINDS)


def output(fitted: Any, X: Any) -> Any:
    return fitted.transform(X) if hasattr(fitted, "transform") else fitted.decision_function(X)


def boxed(objects: Any) -> Any:
    """A 1-D array of objects, of equal length or not."""
    box = np.empty(len(objects), dtype=object)
    for i, x in enumerate(objects):
        box[i] = x
    return box


def lists(series: Any) -> list[Any]:
    return [np.asarray(x).tolist() for x in series]


# Containers


def arrow(values: Any, **kind: Any) -> Any:
    return pytest.importorskip("pyarrow").array(values, **kind)


def arrow_of_size(X: Any) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.array(lists(X), type=pa.list_(pa.float64(), len(X[0])))


Make = Callable[[Any], Any]
ANY: dict[str, Make] = {
    "tuple": tuple,
    "deque": deque,
    "array of objects": boxed,
    "pandas": lambda X: pd.Series(boxed(X), index=range(5, 5 + len(X))),
    "polars": lambda X: pl.Series([*X], dtype=pl.Object),
}
TEXTS: dict[str, Make] = {
    "array of texts": np.array,
    "array of texts of any length": lambda X: np.array(X, dtype=np.dtypes.StringDType()),
    "pandas texts": pd.Series,
    "pandas categories": lambda X: pd.Series(X, dtype="category"),
    "pandas index": pd.Index,
    "polars texts": pl.Series,
    "polars categories": lambda X: pl.Series(X, dtype=pl.Categorical),
    "pyarrow texts": arrow,
    "pyarrow dictionary": lambda X: arrow(X).dictionary_encode(),
}
LISTS: dict[str, Make] = {
    "lists": lists,
    "array of lists": lambda X: boxed(lists(X)),
    "polars lists": lambda X: pl.Series(lists(X)),
    "pyarrow lists": lambda X: arrow(lists(X)),
    "read only": lambda X: [np.frombuffer(x.tobytes()).reshape(x.shape) for x in X],
}
EQUAL_LENGTHS: dict[str, Make] = {
    "array": np.array,
    "array in columns": np.asfortranarray,
    "array of numbers as objects": lambda X: np.array(X).astype(object),
    "array with one channel": lambda X: np.array(X)[:, :, None],
    "pandas frame": pd.DataFrame,
    "polars frame": lambda X: pl.DataFrame(X, schema=[f"t{j}" for j in range(X.shape[1])]),
    "polars arrays": lambda X: pl.Series(X, dtype=pl.Array(pl.Float64, X.shape[1])),
    "pyarrow": arrow_of_size,
}
FORMS = [
    *(("levenshtein", WORDS, *form) for form in TEXTS.items()),
    *(("hamming_strings", SAME_LENGTH, *form) for form in (ANY | TEXTS).items()),
    *(("dtw", SERIES, *form) for form in LISTS.items()),
    *(("dtw", CHANNELS, *form) for form in LISTS.items()),
    *(("dtw", SAME_TIMES, *form) for form in (ANY | LISTS | EQUAL_LENGTHS).items()),
    *(("hausdorff", POINTS, *form) for form in LISTS.items()),
    ("hausdorff", POINTS, "array", np.stack),
    *((OF_NUMBERS, SAME_TIMES, *form) for form in (ANY | LISTS).items()),
    *((OF_NUMBERS, SAME_TIMES, name, EQUAL_LENGTHS[name]) for name in ("polars arrays", "pyarrow")),
    ("weisfeiler_lehman", GRAPHS, "networkx", lambda X: [*map(as_networkx, X)]),
    ("indel", [tuple(word) for word in SAME_LENGTH], "lists", lambda X: [*map(list, X)]),
    *((kernel, X, *form) for kernel, X in KINDS.values() for form in ANY.items()),
]


def as_networkx(graph: Graph) -> Any:
    made = pytest.importorskip("networkx").Graph()
    made.add_nodes_from((v, {"label": label}) for v, label in enumerate(graph[0]))
    made.add_edges_from(graph[1])
    return made


@pytest.fixture(scope="module")
def from_list() -> Callable[[str, Any, Any], Any]:
    """What a model fitted on a plain list says of its first five objects."""
    known: dict[Any, Any] = {}

    def find(model: str, kernel: Any, X: Any) -> Any:
        key = model, str(kernel), id(X)
        if key not in known:
            known[key] = output(MODELS[model](kernel).fit([*X], LABELS), [*X[:5]])
        return known[key]

    return find


@pytest.mark.parametrize(
    ("kernel", "X", "name", "make"), FORMS, ids=[f"{form[0]!s:.20}-{form[2]}" for form in FORMS]
)
def test_containers_change_no_bit(
    kernel: Any, X: Any, name: str, make: Make, from_list: Callable[..., Any]
) -> None:
    for model, made in MODELS.items():
        fitted = made(kernel).fit(make(X), LABELS)
        assert_array_equal(output(fitted, make(X[:5])), from_list(model, kernel, X), model)


@models
def test_a_fit_on_one_container_predicts_from_another(model: Callable[..., Any]) -> None:
    fitted = model("levenshtein").fit(pd.Series(WORDS), LABELS)
    expected = output(fitted, WORDS)
    for make in (ANY | TEXTS).values():
        assert_array_equal(output(fitted, make(WORDS)), expected)


def test_objects_are_not_copied_nor_changed() -> None:
    _, X = KINDS["own"]
    fitted = MODELS["KreinNystroem"](KINDS["own"][0]).fit(boxed(X))
    assert all(any(z is x for x in X) for z in fitted.landmarks_)
    assert not hasattr(fitted, "n_features_in_")


# The tools of scikit-learn


@kinds
@pytest.mark.parametrize("model", ["KreinRidgeClassifier", "KreinSVC", "SpectrumSVC"])
def test_cross_validate(kind: str, model: str) -> None:
    """By hand and from every container the same scores."""
    kernel, X = KINDS[kind]
    splits = [(np.flatnonzero(np.arange(N) % 2 != k), np.flatnonzero(np.arange(N) % 2 == k))
              for k in (0, 1)]  # fmt: skip
    expected = [
        MODELS[model](kernel)
        .fit([X[i] for i in train], LABELS[train])
        .score([X[i] for i in test], LABELS[test])
        for train, test in splits
    ]
    for make in (list, tuple, boxed, ANY["pandas"]):
        found = cross_validate(MODELS[model](kernel), make(X), LABELS, cv=splits)
        assert_array_equal(found["test_score"], expected)


def test_cross_validate_on_frames_and_columns() -> None:
    frame = pd.DataFrame(ROWS, columns=["size", "kind", "flag"])
    wide = pd.DataFrame(SAME_TIMES, columns=[f"t{j}" for j in range(6)])
    for kernel, X, forms in (
        ("gower", ROWS, [frame, pl.DataFrame(frame), frame.to_numpy(dtype=object)]),
        ("dtw", [*SAME_TIMES], [wide, pl.DataFrame(wide), SAME_TIMES]),
        ("levenshtein", WORDS, [pl.Series(WORDS), pd.Series(WORDS), np.array(WORDS), arrow(WORDS)]),
    ):
        model = MODELS["KreinRidgeClassifier"](kernel)
        expected = cross_validate(model, X, LABELS, cv=3)["test_score"]
        if kernel == "levenshtein" and isinstance(_safe_indexing(arrow(WORDS), [0]), list):
            forms.pop()  # this scikit-learn makes lists of pyarrow's own scalars
        for form in forms:
            assert_array_equal(cross_validate(model, form, LABELS, cv=3)["test_score"], expected)


@kinds
def test_grid_search(kind: str) -> None:
    kernel, X = KINDS[kind]
    grid = {"lambda_plus": [0.01, 100.0], "similarity": ["squared", "exp"]}
    if kind == "graphs":  # a similarity
        del grid["similarity"]
    search = GridSearchCV(KreinRidgeClassifier(kernel, **FIXED), grid, cv=3).fit(boxed(X), LABELS)
    refitted = clone(search.best_estimator_).fit(X, LABELS)
    assert search.best_score_ > 0.6
    assert_array_equal(search.predict(X), refitted.predict(boxed(X)))


@kinds
def test_pipelines(kind: str) -> None:
    kernel, X = KINDS[kind]
    first = FunctionTransformer(lambda objects: [*objects][::-1])
    for name, model in MODELS.items():
        piped = make_pipeline(first, model(kernel)).fit(X, LABELS)
        expected = output(model(kernel).fit(X[::-1], LABELS), X[4::-1])
        assert_array_equal(output(piped, X[:5]), expected, name)
    features = MODELS["KreinNystroem"](kernel)
    piped = make_pipeline(features, RidgeClassifier()).fit(boxed(X), LABELS)
    by_hand = RidgeClassifier().fit(features.fit_transform(X), LABELS)
    assert_allclose(
        piped.decision_function(X), by_hand.decision_function(features.transform(X)), atol=1e-10
    )


@kinds
@models
def test_clones_and_pickles(kind: str, model: Callable[..., Any]) -> None:
    kernel, X = KINDS[kind]
    fitted = model(kernel).fit(X, LABELS)
    expected = output(fitted, X)
    assert_array_equal(output(clone(fitted).fit(X, LABELS), X), expected)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(output(again, boxed(X)), expected)
    assert len(again.landmarks_) == len(fitted.landmarks_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_by_their_kernels(frame: Callable[..., Any]) -> None:
    """Texts by one kernel, the rows of other columns by another, side by side."""
    size, kind, _ = zip(*ROWS, strict=True)
    rows = frame({"word": WORDS, "size": size, "kind": kind})
    parts = ColumnTransformer(
        [
            ("words", MODELS["KreinPCA"]("levenshtein"), "word"),
            ("rows", MODELS["KreinPCA"]("gower"), ["size", "kind"]),
        ]
    )
    found = parts.fit_transform(rows)
    words = MODELS["KreinPCA"]("levenshtein").fit_transform(WORDS)
    others = MODELS["KreinPCA"]("gower").fit_transform([*zip(size, kind, strict=True)])
    assert_allclose(found, np.hstack([words, others]), atol=1e-12)
    names = ["words__kreinpca0", "words__kreinpca1", "rows__kreinpca0", "rows__kreinpca1"]
    assert_array_equal(parts.get_feature_names_out(), names)


@kinds
@pytest.mark.parametrize("name", ["KreinNystroem", "KreinPCA"])
def test_names_of_features(kind: str, name: str) -> None:
    kernel, X = KINDS[kind]
    fitted = MODELS[name](kernel).fit(X)
    names = [f"{name.lower()}{j}" for j in range(fitted.rank_)]
    assert_array_equal(fitted.get_feature_names_out(), names)
    expected = fitted.transform(X)
    table = fitted.set_output(transform="pandas").transform(X)
    assert_array_equal(table.columns, names)
    assert_array_equal(table.to_numpy(), expected)


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series])
def test_indefiniteness_of_objects(make: Make) -> None:
    expected = indefiniteness(WORDS, kernel="levenshtein")
    assert indefiniteness(make(WORDS), kernel="levenshtein") == expected > 0
