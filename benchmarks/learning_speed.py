"""Speed of the learners: tuned against untuned, against the bare bound, and against LinearSVC.

python -m benchmarks.learning_speed [--quick]: ratios of CPU seconds, medians of interleaved
repetitions; wall seconds stand beside them. The page of benchmarks.scale has these tables.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from benchmarks import tables
from benchmarks.bound import bound
from benchmarks.core import KERNEL, D, data, given_landmarks
from benchmarks.timing import Row, Timing, interleaved, spent, table_of
from kreinlearn import KreinNystroem, KreinRidge, KreinRidgeClassifier, KreinSVC, Landmarks
from kreinlearn.kernels import DeltaGauss
from kreinlearn.nystrom.core import landmark_map

M = 500
LAMBDA = 1e-6


def targets(X: Any) -> Any:
    """A smooth function of some coordinates, with noise."""
    noise = np.random.default_rng(1).standard_normal(len(X))
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * noise


def labels(X: Any, n_classes: int) -> Any:
    """Classes of equal size, cut along the noisy function, so that neighbouring classes overlap."""
    y = targets(X)
    return np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)


def kernel() -> DeltaGauss:
    return DeltaGauss(**KERNEL)


def over(what: str, part: Timing, base: Timing, limit: float) -> Row:
    ratio = part.cpu / base.cpu
    shown = f"{ratio:.2f} x (wall {part.wall / base.wall:.2f} x; {spent(part)})"
    return Row(what, shown, f"<= {limit}", ratio <= limit)


def least_squares(n: int, repetitions: int) -> list[Row]:
    """Whole fits with default and with given landmarks: tuned divided by untuned."""
    X = data(n)
    y, two, ten = targets(X), labels(X, 2), labels(X, 10)
    fixed = {"lambda_plus": LAMBDA, "lambda_minus": LAMBDA}

    def fit(model: Any, y: Any) -> Any:
        return lambda: model.set_params(kernel=kernel(), random_state=0).fit(X, y)

    Z = given_landmarks(n, M)
    works = {
        "untuned": fit(KreinRidge(landmarks=M, **fixed), y),
        "tuned": fit(KreinRidge(landmarks=M), y),
        "untuned, Z": fit(KreinRidge(landmarks=Z, **fixed), y),
        "tuned, Z": fit(KreinRidge(landmarks=Z), y),
        "two": fit(KreinRidgeClassifier(landmarks=M), two),
        "ten": fit(KreinRidgeClassifier(landmarks=M), ten),
    }
    t = interleaved(works, repetitions)
    size = f"n = {n:.0e}, m = {M}"
    return [
        Row(f"KreinRidge, penalties given, {size}", spent(t["untuned"])),
        over("KreinRidge, tuned, over the fit with given penalties", t["tuned"], t["untuned"], 1.6),
        over("the same with given landmarks", t["tuned, Z"], t["untuned, Z"], 1.6),
        over("ten classes over two, tuned, one-vs-rest", t["ten"], t["two"], 1.5),
    ]


def machine(n: int, repetitions: int) -> list[Row]:
    """KreinSVC with given penalties and landmarks divided by the bound, and LinearSVC beside it."""
    X = data(n)
    y, Z = labels(X, 2), given_landmarks(n, M)
    params = {"landmarks": Z, "lambda_plus": LAMBDA, "lambda_minus": LAMBDA, "random_state": 0}
    features = KreinNystroem(kernel(), landmarks=Landmarks(Z, core="plain"), random_state=0)
    C = 1 / (n * LAMBDA)

    def theirs() -> None:
        Phi = features.fit_transform(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            LinearSVC(loss="squared_hinge", dual=False, C=C).fit(Phi, y)

    floors: list[float] = []
    works = {
        "bound": lambda: floors.append(bound(n, M, D).total),
        "ours": lambda: KreinSVC(kernel(), **params).fit(X, y),
        "LinearSVC": theirs,
    }
    t = interleaved(works, repetitions)
    floor = float(np.median(floors))
    ratio, gain = t["ours"].cpu / floor, t["LinearSVC"].cpu / t["ours"].cpu
    size = f"n = {n:.0e}, m = {M}"
    return [
        Row(f"bare bound, {size}", f"{floor:.2f} s CPU"),
        Row(f"KreinSVC over the bound, {size}", f"{ratio:.2f} x ({spent(t['ours'])})", "<= 3.5",
            ratio <= 3.5),
        Row("features + LinearSVC over KreinSVC", f"{gain:.1f} x ({spent(t['LinearSVC'])})",
            ">= 3", gain >= 3, f"wall {t['LinearSVC'].wall / t['ours'].wall:.1f} x"),
    ]  # fmt: skip


def pipeline(n: int, repetitions: int) -> list[Row]:
    """KreinRidge with given penalties and landmarks, and the same with scikit-learn alone."""
    X, Z = data(n), given_landmarks(n, M)
    y = targets(X)
    W = landmark_map(kernel().fit(X, np.random.default_rng(0)).symmetric(X[Z]))[0]

    def theirs() -> Any:
        Phi = (rbf_kernel(X, X[Z], 0.02) - rbf_kernel(X, X[Z], 0.1)) @ W
        return Ridge(alpha=n * LAMBDA, solver="cholesky").fit(Phi, y)

    fixed = {"landmarks": Z, "lambda_plus": LAMBDA, "lambda_minus": LAMBDA, "random_state": 0}
    works = {"ours": lambda: KreinRidge(kernel(), **fixed).fit(X, y), "theirs": theirs}
    floors: list[float] = []
    works = {"bound": lambda: floors.append(bound(n, M, D).total), **works}
    t = interleaved(works, repetitions)
    floor, size = float(np.median(floors)), f"n = {n:.0e}, m = {M}"
    names = {"ours": "KreinRidge", "theirs": "scikit-learn kernels, features and Ridge"}
    return [
        Row(f"{label}, penalties given, {size}, over the bound",
            f"{t[key].cpu / floor:.1f} x ({spent(t[key])})")
        for key, label in names.items()
    ]  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="2e4 rows and two repetitions")
    options = parser.parse_args(argv)
    n, repetitions = (20_000, 2) if options.quick else (100_000, 5)
    rows = least_squares(n, repetitions)
    rows += [*machine(n, min(repetitions, 3)), *pipeline(n, min(repetitions, 3))]
    table_of(rows, "Speed of the learners").show(tables.console())


if __name__ == "__main__":
    main()
