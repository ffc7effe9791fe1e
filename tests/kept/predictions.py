"""Predictions of every estimator on 13 kinds of objects, of their options, and of every kernel."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import kreinlearn
from kreinlearn import Blocks, Landmarks, dissimilarity, normalized, pairwise, similarity_of
from kreinlearn.datasets import Graph
from kreinlearn.kernels import Field, Gaussian, Levenshtein, Product, Sigmoid, registered, resolve

N, NEW = 42, 5
LETTERS, RESIDUES = "abcdefgh", "ACDEFGHIKLMNPQRSTVWY"
CLASSES = np.arange(N + NEW) % 3
AMOUNTS = np.random.default_rng(1).random(N + NEW)  # what a regression is about, beside the class
NAMES = np.array(["blue", "green", "red"])[CLASSES[:N]]
NUMBERS = CLASSES[:N] + 2 * AMOUNTS[:N] + 0.2 * np.random.default_rng(2).normal(size=N)
METHODS = ("predict", "decision_function", "predict_proba", "transform", "approximate")
UNSIGNED = ("transform",)  # features are determined up to a sign


# Objects of class c that have t of something


def vectors(c: int, t: float, rng: np.random.Generator) -> Any:
    return np.array([c, 2 * t, c * t, 0.0]) + 0.4 * rng.normal(size=4)


def counts(c: int, t: float, rng: np.random.Generator) -> Any:
    return rng.poisson([1 + 3 * (c == k) + 2 * t for k in range(3)] * 3).astype(float)


def text(letters: str, length: int | None = None) -> Callable[..., str]:
    """A maker of texts whose letters tell the class, and their number or order the amount."""

    def made(c: int, t: float, rng: np.random.Generator) -> str:
        weights = 1.0 + 4 * (np.arange(len(letters)) % 3 == c)
        n = length or 4 + int(9 * t)
        begin = letters[0] * int((length or 0) * t)
        return begin + "".join(rng.choice(list(letters), n - len(begin), p=weights / weights.sum()))

    return made


def series(c: int, t: float, rng: np.random.Generator) -> Any:
    time = np.linspace(0, 1, 12 + int(rng.integers(5)))
    return (1 + t) * np.sin(2 * np.pi * (c + 1) * time**1.2) + 0.2 * rng.normal(size=len(time))


def points(c: int, t: float, rng: np.random.Generator) -> Any:
    return rng.normal(size=(int(rng.integers(4, 8)), 2)) * [1 + c, 0.5 + 2 * t]


def contours(c: int, t: float, rng: np.random.Generator) -> Any:
    angles = np.arange(12) * np.pi / 6
    radius = 1 + 0.4 * np.cos((c + 2) * angles) + 0.05 * rng.normal(size=12)
    return np.column_stack([radius * np.cos(angles), (0.5 + t) * radius * np.sin(angles)])


def graphs(c: int, t: float, rng: np.random.Generator) -> Graph:
    n = 4 + int(5 * t)
    ends = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    chords = np.array([(i, i + 2) for i in range(0, n - 2, 3 - c)]).reshape(-1, 2)
    return Graph(np.minimum(rng.integers(3 + c, size=n), 3), np.vstack([ends, chords]))


def attributed(c: int, t: float, rng: np.random.Generator) -> Graph:
    _, edges = graph = graphs(c, t, rng)
    return Graph(rng.normal([c, t], size=(len(graph[0]), 2)), edges)


def sets(c: int, t: float, rng: np.random.Generator) -> set[str]:
    odd = str(rng.choice(list(LETTERS)))
    return {LETTERS[(3 * c + i) % 8] for i in range(2 + int(4 * t))} ^ {odd}


def records(c: int, t: float, rng: np.random.Generator) -> dict[str, Any]:
    colour = ["red", "blue", "grey"][(c + int(rng.random() < 0.2)) % 3]
    size, word = float(t + 0.1 * rng.normal()), text(LETTERS)(c, t, rng)
    return {"size": size, "colour": colour, "word": word}


def distances(X: Any) -> Any:
    """Of all objects to the first N, by a metric that has no inner product, with noise."""
    D = np.abs(np.array(X)[:, None] - np.array(X)[None]).sum(axis=2) ** 1.3
    noise = np.random.default_rng(5).random(D.shape) * 0.2
    return (D + np.where(np.eye(len(D)) > 0, 0, noise + noise.T))[:, :N]


class Kind(NamedTuple):
    """How objects are made, what holds all of them, and the kernels that they are given."""

    make: Callable[..., Any]
    hold: Callable[[Any], Any]
    kernel: Any
    params: dict[str, Any] | None = None
    auto: bool = True  # whether kernel="auto" finds the kernels by itself


KINDS = {
    "vectors": Kind(vectors, np.array, "sigmoid"),
    "sparse vectors": Kind(counts, lambda X: sp.csr_array(np.array(X)), "gaussian"),
    "distances": Kind(vectors, distances, "precomputed_dissimilarity", auto=False),
    "strings": Kind(text(LETTERS), list, "levenshtein"),
    "words of one length": Kind(text(LETTERS, 9), list, "weighted_degree"),
    "proteins": Kind(text(RESIDUES, 22), list, "smith_waterman", {"normalized": True}),
    "series": Kind(series, list, "dtw", {"window": 0.2}),
    "points": Kind(points, list, "hausdorff"),
    "contours": Kind(contours, list, "procrustes", {"reflect": True}),
    "graphs": Kind(graphs, list, "wl_distance", {"metric": "bray_curtis"}),
    "attributed graphs": Kind(attributed, list, "sliced_wl"),
    "sets": Kind(sets, list, "jaccard_sets"),
    "records": Kind(records, list, "gower"),
}  # fmt: skip


def objects(kind: str) -> tuple[Any, Any]:
    """N objects to learn from, and some new ones."""
    rng, made = np.random.default_rng(0), KINDS[kind].make
    X = KINDS[kind].hold([made(c, t, rng) for c, t in zip(CLASSES, AMOUNTS, strict=True)])
    return X[:N], X[N:]


# Estimators with their parameters

FRONT = ("KreinClassifier", "KreinRegressor")
REGRESSORS = ("KreinRegressor", "KreinRidge", "KreinVCRidge", "SimilarityRidge")
CLASSIFIERS = ("KreinClassifier", "KreinRidgeClassifier", "KreinVCRidgeClassifier", "KreinSVC",
               "SimilarityRidgeClassifier", "SpectrumSVC")  # fmt: skip
MAPS = ("KreinNystroem", "KreinPCA", "KreinKMeans")
ESTIMATORS = (*REGRESSORS, *CLASSIFIERS, *MAPS)
FEW = {"landmarks": Landmarks(14, "uniform")}
GIVEN = {"lambda_plus": 0.01, "lambda_minus": 0.1}
SPARSE = {"lambda_plus": 0, "lambda_minus": 0, "lambda_l1": 0.01}
SECOND = np.column_stack([NUMBERS, AMOUNTS[:N] ** 2])
WEIGHTS = 0.5 + np.random.default_rng(3).random(N)
LABELS = [{name for name in "ab" if (ord(name) + i) % 3} for i in range(N)]
SEVERAL = [Levenshtein(), Levenshtein(normalized=True), dissimilarity("jaro")]
FIELDS = Field("size", "gaussian") + similarity_of(Field("word", "levenshtein"))


def apart(a: str, b: str) -> float:
    return float(abs(len(a) - len(b)) + sum(abs(a.count(x) - b.count(x)) for x in LETTERS))


OWN = dissimilarity(pairwise(apart))
DIFFERENCE = Gaussian() - 0.5 * Gaussian(width=0.3)
NORMED = normalized(similarity_of("levenshtein"))
SCHEMES = ["uniform", "leverage", "kmeans++", "greedy_kmeans++", "medoids", "medoids+greedy"]
# name: estimators, kind of objects, parameters, what fit is given beside X and y
OPTIONS: dict[str, tuple[tuple[str, ...], str, dict[str, Any], dict[str, Any]]] = {
    "few landmarks": ((*ESTIMATORS[:-5], *MAPS), "strings", FEW, {}),
    "few landmarks of vectors": (ESTIMATORS[:-4], "vectors", {"landmarks": 12}, {}),
    "penalties": ((*REGRESSORS[1:3], *CLASSIFIERS[1:4]), "series", GIVEN, {}),
    "radius": (("KreinVCRidge", "KreinVCRidgeClassifier"), "strings", {"radius": 0.5}, {}),
    "weights": (("KreinRegressor", *CLASSIFIERS[:4]), "strings", {}, {"sample_weight": WEIGHTS}),
    "groups": (("KreinRegressor", "KreinSVC"), "strings", {}, {"groups": np.arange(N) // 3}),
    "balanced": (CLASSIFIERS, "strings", {"class_weight": "balanced"}, {}),
    "probability": (("KreinRidgeClassifier", "KreinSVC"), "strings", {"probability": True}, {}),
    "folds": (("KreinRidge", "KreinSVC"), "vectors", {"cv": 3}, {}),
    "no intercept": (("KreinRidge", "KreinSVC"), "strings", {"fit_intercept": False}, {}),
    "one similarity": (("KreinRidge", "KreinSVC"), "strings", {"similarity": "squared"}, {}),
    "sparse": (("KreinSVC",), "strings", SPARSE, {}),
    "sparse tuned": (("KreinSVC",), "vectors", {"lambda_l1": "auto"}, {}),
    "several": (FRONT, "strings", {"kernel": SEVERAL}, {}),
    "fields": (("KreinRidge", "KreinRidgeClassifier"), "records", {"kernel": FIELDS}, {}),
    "sum": (("KreinRidge", "KreinNystroem"), "vectors", {"kernel": DIFFERENCE}, {}),
    "product": (("KreinRidge",), "vectors", {"kernel": Product([Gaussian(), Sigmoid()])}, {}),
    "normalized": (("KreinRidge",), "strings", {"kernel": NORMED}, {}),
    "metric": (("KreinRidge", "KreinSVC"), "vectors", {"kernel": "cityblock"}, {}),
    "own function": (("KreinRidge", *FRONT), "strings", {"kernel": OWN}, {}),
    "split": ((*FRONT, "KreinSVC"), "strings", {}, {"conformal": "split"}),
    "cv+": (("KreinRegressor", "KreinRidgeClassifier"), "strings", {}, {"conformal": "cv+"}),
    "two targets": (("KreinRegressor", "KreinRidge"), "strings", {}, {"y": SECOND}),
    "sets of labels": (("KreinClassifier", "KreinSVC"), "strings", {}, {"y": LABELS}),
    "two classes": (CLASSIFIERS, "strings", {}, {"y": NAMES == "red"}),
    "parts": (("KreinRidge", "KreinRidgeClassifier"), "vectors", {**GIVEN, **FEW}, {"partial": 3}),
    "to a tolerance": (("KreinNystroem",), "vectors", {"tol": 0.1, "rank": "auto"}, {}),
    "clusters": (("KreinKMeans",), "strings", {"n_clusters": "auto", "spectrum": "flip"}, {}),
    "file": (("KreinRegressor", "KreinRidge", "KreinSVC"), "vectors", FEW, {"as": "file"}),
    "blocks": (("KreinRidge", "KreinSVC"), "vectors", FEW, {"as": "blocks"}),
    **{
        f"spectrum {way}": (("SpectrumSVC",), "distances", {"spectrum": way}, {})
        for way in ("flip", "clip", "shift", "square")
    },
    **{
        f"{way} {core}": (MAPS[:1], "vectors", {"landmarks": Landmarks(9, way, core)}, {})
        for core in ("ls", "truncated", "plain")
        for way in SCHEMES
    },
}  # fmt: skip
FAST = ("strings", "vectors", "sets", "distances")  # kinds of a test that takes seconds
# Rounding decides between two answers: on another processor they are not compared.
UNSTEADY = {
    "contours": ["KreinSVC"],
    "graphs": ["KreinKMeans"],
    "proteins, auto": ["KreinClassifier"],
    "attributed graphs, auto": ["KreinClassifier"],
}


def answers(name: str, kind: str, params: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What an estimator says of new objects, by all of its methods."""
    (X, new), given = objects(kind), dict(given)
    model = getattr(kreinlearn, name)(n_jobs=1, random_state=0)
    known = model.get_params()
    wanted = {"kernel": KINDS[kind].kernel, "kernel_params": KINDS[kind].params, **params}
    if "kernel" in params:
        wanted["kernel_params"] = None
    if "multi_class" in known:
        wanted["multi_class"] = "ovr"
    model.set_params(**{key: value for key, value in wanted.items() if key in known})
    y = None if name in MAPS else given.pop("y", NUMBERS if name in REGRESSORS else NAMES)
    source, parts = given.pop("as", None), given.pop("partial", 0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        if source == "file":
            np.save(Path(folder) / "X.npy", X)
            X = Path(folder) / "X.npy"
        elif source == "blocks":
            X = Blocks([X[:20], X[20:21], X[21:]])
        for part in np.array_split(np.arange(N), parts) if parts else ():
            model.partial_fit(X[part], y[part])
        if not parts:
            model.fit(X, *([] if y is None else [y]), **given)
        found = {way: getattr(model, way)(new) for way in METHODS if hasattr(model, way)}
        if "conformal" in given:
            sets = "predict_interval" if name in REGRESSORS else "predict_set"
            found |= {sets: getattr(model, sets)(new, 0.8), "novelty": model.novelty(new)}
    return {way: plain(abs(v) if way in UNSIGNED else v) for way, v in found.items()}


def plain(values: Any) -> Any:
    """Twelve digits of numbers, texts and truths as they are."""
    if isinstance(values, set | frozenset):
        return sorted(values)
    if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.ndim):
        return [plain(one) for one in values]
    value = values.item() if hasattr(values, "item") else values
    return float(f"{value:.12g}") if isinstance(value, float) else value


def cases() -> Iterator[tuple[str, str, str, dict[str, Any], dict[str, Any]]]:
    """Group, estimator, kind, parameters, and what fit is given."""
    for kind, about in KINDS.items():
        for name in ESTIMATORS:
            yield kind, name, kind, {}, {}
        if about.auto:
            yield f"{kind}, auto", "KreinClassifier", kind, {"kernel": "auto"}, {}
    for option, (names, kind, params, given) in OPTIONS.items():
        for name in names:
            yield option, name, kind, params, given


def predictions(fast: bool = False) -> dict[str, Any]:
    """By group and estimator; fast ones are of some kinds, with the kernels that they are given."""
    found: dict[str, Any] = {}
    for group, name, kind, params, given in cases():
        if fast and group not in FAST:
            continue
        try:
            said: Any = answers(name, kind, params, given)
        except Exception as error:  # so that one that is refused does not hide all others
            said = type(error).__name__
        found.setdefault(group, {})[name] = said
    return found


def looks() -> dict[str, Any]:
    """What is said of a similarity, of learners on folds, and of the reasons for a prediction."""
    (X, new), about = objects("strings"), {"kernel": "levenshtein", "random_state": 0}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        seen = kreinlearn.inspect(X, y=NAMES, **about)
        found: dict[str, Any] = {
            "indefiniteness": plain(list(seen.indefiniteness.values())),
            "eigenvalues": plain(seen.eigenvalues[:9]),
            "label signal": plain(seen.label_signal),
        }
        for y in (NAMES, NUMBERS):
            judged = kreinlearn.evaluate(X, y, cv=3, n_jobs=1, **about)
            found[judged.task] = {s.name: plain(s.errors) for s in judged.scores}
        for name, y in (("KreinClassifier", NAMES), ("KreinRidge", NUMBERS)):
            model = getattr(kreinlearn, name)(**about).fit(X, y)
            found[f"reasons of {name}"] = [
                [plain(one.value), [plain(reason.contribution) for reason in one.reasons]]
                for one in model.explain(new, 3)
            ]
    return found


# Kernels

PREFERRED = {
    **dict.fromkeys(("procrustes", "turning"), "contours"),
    **dict.fromkeys(("sliced_wl", "wasserstein_wl"), "attributed graphs"),
    **dict.fromkeys(("smith_waterman", "needleman_wunsch"), "proteins"),
}
TRIED = ["records", "graphs", "sets", "strings", "words of one length", "series", "points"]
TRIED += ["vectors"]


def values() -> dict[str, Any]:
    """Of every registered kernel on the first kind of objects that it takes."""
    found: dict[str, Any] = {}
    for name in (name for name in registered() if not name.startswith("precomputed")):
        for kind in [PREFERRED[name]] if name in PREFERRED else TRIED:
            X, new = objects(kind)
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                try:
                    kernel = resolve(name)
                    kernel.fit(X, np.random.default_rng(0))
                    found[name] = {kind: plain(kernel(X[:4], new))}
                except Exception as error:  # as these are objects of another kind
                    found[name] = type(error).__name__
                    continue
            break
    return found
