"""How well groups are found without labels: python -m benchmarks.clusters

Every method gets the same distances and the true number of groups, apart from HDBSCAN, which finds
its own. The adjusted Rand index compares groups with classes: 1 is perfect, 0 is chance. Methods
that draw at random are run with several seeds. SpectralClustering gets exp(-(d / median)^2).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from benchmarks import tables
from benchmarks.object_sets import ALL_SETS, QUICK_SETS
from kreinlearn import KreinKMeans
from kreinlearn.data.tiles import take
from kreinlearn.datasets import load_dataset, make_balls3d, make_noisy_strings

Array = NDArray[Any]
RESULTS = Path(__file__).parent / "results" / "clusters.md"
OBJECTS = ("chromosomes", "mpeg7_contours", "JapaneseVowels", "MUTAG", "ENZYMES")
MATRICES = ("chickenpieces_20_60", "protein", "woodyplants50")
MOST = 800  # objects of a set
SEEDS = 3
LARGE = 100_000  # strings


def distances_of(name: str, most: int) -> tuple[Array, Array]:
    """The distances among at most so many objects, and their classes."""
    if name in ALL_SETS:
        X, y, _ = ALL_SETS[name].parts(0)
        chosen = _drawn(len(y), most)
        X, y = take(X, chosen), y[chosen]
        return ALL_SETS[name].kernel.fit(X, np.random.default_rng(0)).symmetric(X), y
    if name == "balls":
        return make_balls3d((40, 40), random_state=0)
    data = load_dataset(f"dissimilarity/{name}")
    chosen = _drawn(len(data.y), most)
    D = np.asarray(data.D, np.float64)[np.ix_(chosen, chosen)]
    return (D + D.T) / 2, data.y[chosen]


def _drawn(n: int, most: int) -> Array:
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def krein(spectrum: str, landmarks: int | None) -> Callable[..., Array]:
    def labels(D: Array, k: int, seed: int) -> Array:
        model = KreinKMeans(
            k, kernel="precomputed_dissimilarity", spectrum=spectrum,
            landmarks=None if landmarks is None else min(landmarks, len(D)), random_state=seed,
        )  # fmt: skip
        return np.asarray(model.fit(D).labels_)

    return labels


def spectral(D: Array, k: int, seed: int) -> Array:
    affinity = np.exp(-np.square(D / np.median(D[D > 0])))
    model = SpectralClustering(k, affinity="precomputed", random_state=seed)
    return np.asarray(model.fit_predict(affinity))


def agglomerative(D: Array, k: int, seed: int) -> Array:
    model = AgglomerativeClustering(k, metric="precomputed", linkage="average")
    return np.asarray(model.fit_predict(D))


def hdbscan(D: Array, k: int, seed: int) -> Array:
    return np.asarray(HDBSCAN(metric="precomputed", copy=True).fit_predict(D))


METHODS: dict[str, Callable[..., Array]] = {
    "shift": krein("shift", None),
    "flip": krein("flip", None),
    "shift, 100 landmarks": krein("shift", 100),
    "flip, 100 landmarks": krein("flip", 100),
    "SpectralClustering": spectral,
    "Agglomerative, average": agglomerative,
    "HDBSCAN": hdbscan,
}
ONCE = {"Agglomerative, average", "HDBSCAN"}  # nothing is drawn


def row_of(name: str, most: int, seeds: int) -> list[str]:
    """A set: its size, the adjusted Rand index of each method, and the numbers "auto" takes."""
    D, y = distances_of(name, most)
    k, cells = len(np.unique(y)), []
    for method, labels in METHODS.items():
        runs = range(1 if method in ONCE else seeds)
        scores = [adjusted_rand_score(y, labels(D, k, seed)) for seed in runs]
        cells.append(
            f"{np.mean(scores):.2f}" + (f" ± {np.std(scores):.2f}" if len(scores) > 1 else "")
        )
        print(f"{name}: {method} {cells[-1]}", flush=True)
    auto = KreinKMeans(
        "auto", kernel="precomputed_dissimilarity", landmarks=min(100, len(D)), random_state=0
    )
    auto.fit(D)
    chosen = f"{auto.n_clusters_} ({adjusted_rand_score(y, auto.labels_):.2f})"
    return [name, str(len(y)), str(k), *cells, chosen]


def timed(n: int) -> str:
    """How long groups of n strings take."""
    X, y = make_noisy_strings(n, n_classes=10, random_state=0)
    start = time.perf_counter()
    model = KreinKMeans(10, kernel="levenshtein", random_state=0).fit(X)
    fitted = time.perf_counter() - start
    model.predict(X[:10_000])
    seconds = time.perf_counter() - start - fitted
    score = adjusted_rand_score(y, model.labels_)
    return (
        f"{n:,} strings of about 20 letters, 10 groups, {model.n_landmarks_} landmarks: `fit` "
        f"takes {fitted:.1f} s (adjusted Rand index {score:.2f}), `predict` of "
        f"{min(n, 10_000):,} of them {seconds:.2f} s."
    )


def report(names: tuple[str, ...], most: int, seeds: int, large: int) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row_of(name, most, seeds) for name in names]
    header = ["set", "objects", "classes", *METHODS, "auto: groups (index)"]
    lines = [header, ["---"] * 3 + ["---:"] * (len(header) - 3), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    means = [np.mean([float(row[3 + j].split()[0]) for row in rows]) for j in range(len(METHODS))]
    mean = ", ".join(f"{name} {value:.2f}" for name, value in zip(METHODS, means, strict=True))
    text = (__doc__ or "").partition("\n\n")[2]
    about = tables.about("python -m benchmarks.clusters --write")
    parts = ["# Groups without labels", about, f"{text}\n{table}", f"Means: {mean}.", timed(large)]
    return "\n\n".join(parts) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters")
    parser.add_argument("--quick", action="store_true", help="made data, in seconds")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args(argv)
    if options.quick:
        found = report((*QUICK_SETS, "balls"), 80, 1, 2000)
    else:
        found = report((*OBJECTS, *MATRICES), MOST, SEEDS, LARGE)
    print(found)
    if options.write:
        RESULTS.write_text(found, encoding="utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
