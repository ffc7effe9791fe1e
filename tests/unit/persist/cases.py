"""Data and kernels of every kind, for tests of model files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kreinlearn import (
    KreinNystroem,
    KreinPCA,
    KreinSVC,
    Landmarks,
    SpectrumSVC,
    dissimilarity,
    normalized,
    similarity_of,
)
from kreinlearn.datasets import Graph
from kreinlearn.kernels import (
    DTW,
    Field,
    Gaussian,
    LinearCombination,
    Product,
    Sigmoid,
    Tversky,
    registered,
    resolve,
)
from tests.models import FRONT, LEARNERS, penalised

N = 24


def vectors(rng: np.random.Generator) -> Any:
    return rng.normal(size=(N, 3))


def strings(rng: np.random.Generator) -> list[str]:
    letters = list("abcdefgé€")
    return ["".join(rng.choice(letters, size=rng.integers(1, 8))) for _ in range(N)]


def words(rng: np.random.Generator) -> list[str]:
    return ["".join(rng.choice(list("abcdefgé€"), size=6)) for _ in range(N)]


def series(rng: np.random.Generator) -> list[Any]:
    return [rng.normal(size=rng.integers(5, 9)) for _ in range(N)]


def points(rng: np.random.Generator) -> list[Any]:
    return [rng.normal(size=(rng.integers(3, 6), 2)) for _ in range(N)]


def sets(rng: np.random.Generator) -> list[set[str]]:
    return [set(rng.choice(list("abcdefgh"), size=rng.integers(1, 6))) for _ in range(N)]


def graphs(rng: np.random.Generator) -> list[Graph]:
    found = []
    for _ in range(N):
        k = int(rng.integers(2, 6))
        edges = np.array([(i, i + 1) for i in range(k - 1)])
        found.append(Graph(rng.integers(3, size=k), edges))
    return found


def networks(rng: np.random.Generator) -> list[Any]:
    import networkx as nx

    found = []
    for labels, edges in graphs(rng):
        graph = nx.Graph(name="a graph")
        graph.add_nodes_from((f"n{i}", {"label": f"l{one}"}) for i, one in enumerate(labels))
        graph.add_edges_from((f"n{i}", f"n{j}", {"weight": 0.5}) for i, j in edges)
        found.append(graph)
    return found


def places(rng: np.random.Generator) -> list[Graph]:
    """Graphs whose nodes have coordinates."""
    return [Graph(rng.normal(size=(len(x.node_labels), 2)), x.edges) for x in graphs(rng)]


def records(rng: np.random.Generator) -> list[dict[str, Any]]:
    rows = zip(rng.normal(size=N), rng.choice(["red", "blue"], size=N), strict=True)
    found: list[dict[str, Any]] = [{"x": float(x), "colour": str(c)} for x, c in rows]
    found[3]["x"] = None
    return found


def frame(rng: np.random.Generator) -> Any:
    import pandas as pd

    colours = pd.Series(rng.choice(["red", "blue"], size=N), dtype="category")
    numbers = pd.Series(rng.choice([1, 2, 3], size=N), dtype="category")
    return pd.DataFrame({"x": rng.normal(size=N), "colour": colours, "number": numbers})


def rows(rng: np.random.Generator) -> list[tuple[Any, ...]]:
    return [(int(i), str(c)) for i, c in zip(rng.integers(9, size=N), "ab" * N, strict=False)]


def sparse_rows(n: int, d: int, rng: np.random.Generator) -> Any:
    """Rows of which half of the entries are zero; scipy names its generator by its version."""
    return sp.csr_array(np.where(rng.random((n, d)) < 0.5, rng.random((n, d)), 0.0))


def sparse(rng: np.random.Generator) -> Any:
    return sparse_rows(N, 6, rng)


def similarities(rng: np.random.Generator) -> Any:
    A = rng.normal(size=(N, N))
    return A + A.T


def distances(rng: np.random.Generator) -> Any:
    D = np.abs(similarities(rng))
    np.fill_diagonal(D, 0)
    return D


class Kind(NamedTuple):
    """Training objects, and what an estimator is given beside them."""

    X: Callable[[np.random.Generator], Any]
    kernel: Any
    params: dict[str, Any] = {}


KINDS: dict[str, Kind] = {
    "vectors": Kind(vectors, "sigmoid"),
    "vectors_few": Kind(vectors, "delta_gauss", {"landmarks": 7}),
    "metric_few": Kind(vectors, "cityblock", {"landmarks": 7}),
    "sparse": Kind(sparse, "rbf"),
    "strings": Kind(strings, "levenshtein"),
    "strings_few": Kind(strings, "damerau_levenshtein", {"landmarks": 7}),
    "series": Kind(series, DTW(window=0.5)),
    "points": Kind(points, "hausdorff", {"landmarks": 9}),
    "sets": Kind(sets, Tversky(alpha=0.3)),
    "graphs": Kind(graphs, "weisfeiler_lehman", {"kernel_params": {"h": 2}}),
    "networks": Kind(networks, "wl_distance"),
    "places": Kind(places, "sliced_wl"),
    "records": Kind(records, "gower"),
    "frame": Kind(frame, "gower"),
    "rows": Kind(rows, "gower", {"kernel_params": {"categorical": [0]}}),
    "fields": Kind(frame, Field("x", "gaussian") + similarity_of(Field("number", "gower"))),
    "fields_few": Kind(rows, Field(1, "levenshtein"), {"landmarks": 7}),
    "sum": Kind(vectors, Gaussian() - 0.5 * Gaussian(width=0.3) + Gaussian()),
    "product": Kind(vectors, Product([Gaussian(), Sigmoid(), "rbf"])),
    "of_distances": Kind(strings, similarity_of("levenshtein", "local3", n_reference=9)),
    "normalized": Kind(strings, normalized(similarity_of("levenshtein", "squared"))),
    "mixed": Kind(strings, LinearCombination(["levenshtein", dissimilarity("jaro")], [1, 2.5])),
    "given": Kind(similarities, "precomputed"),
    "given_few": Kind(similarities, "precomputed", {"landmarks": 7}),
    "given_distances": Kind(distances, "precomputed_dissimilarity"),
    "given_columns": Kind(
        distances, "precomputed_dissimilarity",
        {"landmarks": Landmarks(np.arange(2, 15), core="plain")},
    ),
}  # fmt: skip

MODELS: dict[str, Callable[..., Any]] = {
    "KreinNystroem": lambda **params: KreinNystroem(random_state=0, **params),
    "KreinPCA": lambda **params: KreinPCA(random_state=0, **params),
    **{
        learner.__name__: lambda learner=learner, **params: penalised(learner, **params)
        for learner in LEARNERS
    },
    **{
        learner.__name__: lambda learner=learner, **params: learner(random_state=0, **params)
        for learner in FRONT
    },
    "sparse KreinSVC": lambda **params: KreinSVC(
        lambda_plus=0, lambda_minus=0, lambda_l1=0.01, random_state=0, **params
    ),
    "SpectrumSVC": lambda **params: SpectrumSVC(C=1.0, random_state=0, **params),
}


def model_of(name: str, kind: str, **more: Any) -> tuple[Any, Any, Any]:
    """An estimator that is not fitted, its rows and its targets."""
    given = KINDS[kind]
    params = {**given.params, **more}
    if name == "SpectrumSVC":
        params.pop("landmarks", None)
    if "similarity" in MODELS[name]().get_params() and kind != "strings":
        params.setdefault("similarity", "squared")  # others take long to choose from
    rng = np.random.default_rng(7)
    y: Any = np.arange(N) % 3
    if name.endswith(("Ridge", "Regressor")):
        y = np.column_stack([np.cos(y + 0.1 * np.arange(N)), np.sin(np.arange(N))])
    X = given.X(rng)
    if isinstance(wanted := params.get("landmarks"), Landmarks):
        X = X[:, wanted.n]  # columns of the landmarks alone
    return MODELS[name](kernel=given.kernel, **params), X, y


METHODS = ("predict", "decision_function", "predict_proba", "transform", "approximate")
METHODS = (*METHODS, "eigenvectors")


def answers(model: Any, X: Any) -> dict[str, Any]:
    """What all methods say of rows."""
    return {name: getattr(model, name)(X) for name in METHODS if hasattr(model, name)}


BY_NAME: dict[str, Callable[[np.random.Generator], Any]] = {
    **dict.fromkeys(("levenshtein", "damerau_levenshtein", "indel", "lcs", "jaro"), strings),
    **dict.fromkeys(("jaro_winkler", "hamming_strings", "ngrams"), strings),
    **dict.fromkeys(("dtw", "ddtw", "derivative_dtw", "wdtw", "shape_dtw", "msm", "erp"), series),
    **dict.fromkeys(("adtw", "twe", "edr", "lcss", "wtk", "convolutions"), series),
    **dict.fromkeys(("hausdorff", "modified_hausdorff", "chamfer", "earth_mover", "emd"), points),
    **dict.fromkeys(("procrustes", "turning"), points),
    **dict.fromkeys(("jaccard_sets", "tversky"), sets),
    **dict.fromkeys(("weisfeiler_lehman", "wl_assignment", "wl_distance"), graphs),
    **dict.fromkeys(("shortest_path", "graph_edit"), networks),
    **dict.fromkeys(("sliced_wl", "wasserstein_wl"), places),
    "weighted_degree": words,
    "gower": records,
    "precomputed": similarities,
    "precomputed_dissimilarity": distances,
}


def objects_for(name: str) -> Any:
    """Rows that a registered kernel takes."""
    rng = np.random.default_rng(3)
    if name in ("smith_waterman", "needleman_wunsch"):
        return ["".join(rng.choice(list("ACDEFGHIKL"), size=12)) for _ in range(N)]
    if name == "procrustes":
        return list(rng.normal(size=(N, 5, 2)))
    if name == "turning":
        return [_polygon(rng) for _ in range(N)]
    if resolve(name).domain.is_vectors:
        return vectors(rng)
    return BY_NAME[name](rng)


def _polygon(rng: np.random.Generator) -> Any:
    angles = np.sort(rng.uniform(0, 2 * np.pi, size=6))
    return np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(0.5, 2)


# Elastic distances differ in a function that is compiled for a second: two of them stand for all.
SAME = {"derivative_dtw", "ddtw", "wdtw", "adtw", "shape_dtw", "msm", "erp", "twe", "edr"}
REGISTERED = [name for name in registered() if name not in SAME]
