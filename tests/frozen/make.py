"""Makes the frozen model files of the present format: python -m tests.frozen.make.

Files of a format are made once, when it is new, and never again: that later versions read them,
and say what is in expected.json, is what the tests beside this show.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from kreinlearn import (
    KreinNystroem,
    KreinPCA,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    SpectrumSVC,
    normalized,
    similarity_of,
)
from kreinlearn.kernels import Gaussian, Sigmoid
from kreinlearn.persist.header import VERSION

FOLDER = Path(__file__).parent
METHODS = ("predict", "decision_function", "predict_proba", "transform")


def words(rng: np.random.Generator) -> list[str]:
    return ["".join(rng.choice(list("abcdé"), size=rng.integers(1, 7))) for _ in range(18)]


def networks(rng: np.random.Generator) -> list[Any]:
    found = []
    for _ in range(12):
        graph = nx.path_graph(int(rng.integers(2, 6)))
        nx.set_node_attributes(graph, {v: "ab"[int(rng.integers(2))] for v in graph}, "label")
        found.append(graph)
    return found


def models() -> dict[str, tuple[Any, Any]]:
    """Fitted models and the rows they are asked about, as JSON has them."""
    rng = np.random.default_rng(0)
    X, text, graphs = rng.normal(size=(16, 2)), words(rng), networks(rng)
    D = np.abs(np.subtract.outer(X[:, 0], X[:, 0]))
    three = np.array(["one", "two", "three"])[np.arange(18) % 3]
    sets = [set(word) for word in text]
    pairs = [[["a", "b"], [[0, 1]]], [["b", "b", "a"], [[0, 1], [1, 2]]]]
    inside = normalized(similarity_of("levenshtein", "local3", n_reference=8))
    chosen: dict[str, Any] = {"landmarks": 8, "random_state": 0}
    classifier = KreinRidgeClassifier("levenshtein", probability=True, **chosen)
    penalties = {"lambda_plus": 0.1, "lambda_minus": 0.2}
    sparse: dict[str, Any] = {"lambda_l1": "auto", "lambda_plus": 0, "lambda_minus": 0}
    given = KreinRidge("precomputed_dissimilarity", **penalties, **chosen)
    return {
        "nystroem": (KreinNystroem("delta_gauss", landmarks=6, random_state=0).fit(X), X[:4]),
        "pca": (KreinPCA(kernel=Gaussian() - 0.5 * Sigmoid(), random_state=0).fit(X), X[:4]),
        "classifier": (classifier.fit(text, three), text[:4]),
        "inside": (KreinRidge(inside, random_state=0).fit(text, np.arange(18.0)), text[:4]),
        "given": (given.partial_fit(D, X[:, 1]), D[:4]),
        "machine": (SpectrumSVC("jaccard_sets", C=1.0).fit(sets, three), ["ab", "c", ""]),
        "graphs": (
            KreinSVC("wl_distance", **sparse, random_state=0).fit(graphs, np.arange(12) % 2),
            pairs,
        ),
    }  # fmt: skip


def rows(name: str, X: Any) -> Any:
    """From JSON to what the model takes."""
    if name == "graphs":
        return [tuple(pair) for pair in X]
    return [set(one) for one in X] if name == "machine" else X


def answers(model: Any, X: Any) -> dict[str, Any]:
    return {name: getattr(model, name)(X).tolist() for name in METHODS if hasattr(model, name)}


def main() -> None:
    folder = FOLDER / f"format{VERSION}"
    folder.mkdir()  # frozen: what is there is not made again
    expected = {}
    for name, (model, X) in models().items():
        model.save(folder / f"{name}.krein")
        given = X.tolist() if isinstance(X, np.ndarray) else X
        expected[name] = {"rows": given, "answers": answers(model, rows(name, given))}
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (folder / "expected.json").write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
