"""The demonstration: a metric that is no kernel is inspected, approximated and learned from."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from rich.console import Console
from rich.progress import track
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

import kreinlearn
from kreinlearn import Inspection, KreinNystroem, Landmarks, inspect
from kreinlearn.datasets import make_polygons
from kreinlearn.kernels import Hausdorff, double_centre
from kreinlearn.plotting import SpectrumDisplay
from reproduction.figures import COLOURS, MARKS, SETTINGS
from reproduction.reading import table
from reproduction.report import Table

Array = np.ndarray
RANKS = (5, 10, 25, 50, 100)
PER_RANK, REPEATS = 2, 3  # landmarks, and draws of them
SMALLEST, LARGEST = PER_RANK * RANKS[1], 5000  # polygons
LEARNED = 600  # most polygons to learn from: exact learners decompose matrices of that size
LANDMARKS, FOLDS = 100, 5
SCHEMES = [(name, "ls") for name in ("uniform", "leverage", "kmeans++", "greedy_kmeans++")]
SCHEMES += [("leverage", "plain"), ("kmeans++", "plain")]  # landmarks, core
RELATIVE_C = np.logspace(-2, 4, 7)  # C times the mean self-similarity, as in SpectrumSVC
MOST_STEPS = 100_000  # of libsvm, which may never end on an indefinite matrix


# How well it is approximated


class Findings(NamedTuple):
    """The eigenvalues of K up to a factor, and errors divided by the smallest possible error."""

    eigenvalues: Array  # (r,), by decreasing magnitude
    ranks: list[int]
    optimal: list[float]  # relative to the norm of K
    ratios: dict[tuple[str, str], Array]  # (landmarks, core) -> (ranks, REPEATS)


def findings(X: Sequence[Array], K: Array, eigenvalues: Array, seed: int) -> Findings:
    """Run every scheme at every rank."""
    ranks, squares = [k for k in RANKS if PER_RANK * k <= len(X)], np.square(eigenvalues)
    optimal = [float(np.sqrt(squares[k:].sum() / squares.sum())) for k in ranks]
    ratios = {scheme: np.empty((len(ranks), REPEATS)) for scheme in SCHEMES}
    for (scheme, core), own in track(ratios.items(), "approximating", transient=True):
        for k, repeat in np.ndindex(own.shape):
            model = KreinNystroem(
                "hausdorff", landmarks=Landmarks(PER_RANK * ranks[k], scheme, core),
                rank=ranks[k], random_state=seed + repeat,
            )  # fmt: skip
            approximate = model.fit(X).approximate(X)  # its origin is the mean of the landmarks
            error = np.linalg.norm(K - KernelCenterer().fit_transform(approximate))
            own[k, repeat] = error / (np.linalg.norm(K) * optimal[k])
    return Findings(eigenvalues, ranks, optimal, ratios)


def inspected(y: Array, inspection: Inspection) -> Table:
    """What the polygons and their similarity K = -1/2 J (D o D) J are like."""
    sides, counts = np.unique(y, return_counts=True)
    classes = ", ".join(f"{count} with {k} sides" for k, count in zip(sides, counts, strict=True))
    return table("demo.polygons", [("classes", classes), *inspection.rows()])


def approximated(found: Findings) -> Table:
    """One row per scheme, one column per rank."""

    def shown(ratio: float) -> str:
        return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"

    rows = [
        [*scheme, *map(shown, np.median(ratios, axis=1)), shown(ratios.max())]
        for scheme, ratios in found.ratios.items()
    ]
    rows.append(["smallest error", "", *(f"{share:.1%}" for share in found.optimal), ""])
    columns = [*(f"k = {k}" for k in found.ranks), "worst"]
    return table("demo.approximated", rows, columns, per_rank=PER_RANK, repeats=REPEATS)


# Pentagon or heptagon?


class NearestNeighbour(BaseEstimator):
    """The class of the nearest training polygon."""

    def fit(self, X: Sequence[Array], y: Array) -> Self:
        self._X, self._y, self.n_landmarks_ = X, y, len(X)
        return self

    def predict(self, X: Sequence[Array]) -> Array:
        return np.asarray(self._y[np.argmin(Hausdorff()(X, self._X), axis=1)])


class RawSVC(BaseEstimator):
    """scikit-learn's SVC on the indefinite centred squares; cross-validation chooses C."""

    similarity = "squared"

    def fit(self, X: Sequence[Array], y: Array) -> Self:
        self._X, self.n_landmarks_ = X, len(X)
        self._centerer = KernelCenterer()
        K = self._centerer.fit_transform(-0.5 * np.square(Hausdorff()(X)))
        machine = SVC(kernel="precomputed", max_iter=MOST_STEPS)
        grid = {"C": RELATIVE_C / np.abs(np.diagonal(K)).mean()}
        self._search = GridSearchCV(machine, grid, cv=FOLDS).fit(K, y)
        return self

    def predict(self, X: Sequence[Array]) -> Array:
        K = self._centerer.transform(-0.5 * np.square(Hausdorff()(X, self._X)))
        return np.asarray(self._search.predict(K))


def methods(n: int, seed: int) -> dict[str, Any]:
    """The classifiers, not yet fitted; fewer polygons have fewer landmarks."""

    def made(name: str, **settings: Any) -> Any:
        return getattr(kreinlearn, name)("hausdorff", random_state=seed, **settings)

    few, ridge = {"landmarks": min(LANDMARKS, n // 4)}, "KreinRidgeClassifier"
    return {
        "KreinClassifier": made("KreinClassifier"),
        "KreinRidge": made(ridge, **few),
        "KreinVCRidge": made("KreinVCRidgeClassifier", **few),
        "KreinSVC": made("KreinSVC", **few),
        "KreinRidge exact": made(ridge, landmarks=None),
        "KreinRidge d^2": made(ridge, landmarks=None, similarity="squared"),
        "SimilarityRidge": made("SimilarityRidgeClassifier", **few),
        "SpectrumSVC flip": made("SpectrumSVC", spectrum="flip"),
        "SpectrumSVC clip": made("SpectrumSVC", spectrum="clip"),
        "SVC raw": RawSVC(),
        "1-NN": NearestNeighbour(),
    }


class Score(NamedTuple):
    """The errors of a method on the folds in percent, and what it chose in the first of them."""

    method: str
    mean: float
    standard_error: float
    seconds: float  # median over folds
    landmarks: int
    similarity: str
    penalties: list[str]


def scored(name: str, model: Any, X: Sequence[Array], y: Array, seed: int) -> Score:
    """A method on the folds that all methods have."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    # The warnings come from libsvm, for some of the C that are tried.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        fits = cross_validate(
            model, X, y, cv=folds, scoring="accuracy", return_estimator=True, error_score="raise"
        )
    first, errors = fits["estimator"][0], 100 * (1 - fits["test_score"])
    similarity = str(getattr(first, "similarity_", getattr(first, "similarity", "")))
    if "+" in similarity:  # their names would fill a line
        similarity = f"sum of {len(similarity.split('+'))}"
    values = [getattr(first, name, None) for name in ("lambda_plus_", "lambda_minus_")]
    penalties = ["" if value is None else f"{value:.0e}" for value in values]
    error, seconds = float(errors.std(ddof=1)) / FOLDS**0.5, float(np.median(fits["fit_time"]))
    return Score(name, errors.mean(), error, seconds, first.n_landmarks_, similarity, penalties)


def learned(scores: Sequence[Score], n: int) -> Table:
    """One row per method."""
    rows = [
        [one.method, str(one.landmarks), f"{one.mean:.1f}", f"{one.standard_error:.1f}",
         f"{one.seconds:.2f}", one.similarity, *one.penalties]
        for one in scores
    ]  # fmt: skip
    return table("demo.learned", rows, n=n, folds=FOLDS)


# The picture


def draw(found: Findings, scores: Sequence[Score], output: Path) -> None:
    """The spectrum and the approximations above, the errors and seconds of methods below."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**SETTINGS, "lines.linewidth": 1.2}):
        figure = Figure((11.5, 8.4), layout="constrained")
        (spectrum, ratios), (errors, seconds) = figure.subplots(2, 2)
        SpectrumDisplay(found.eigenvalues, relative=True).plot(spectrum)
        for j, ((landmarks, core), own) in enumerate(found.ratios.items()):
            middle = np.median(own, axis=1)
            x = np.array(found.ranks) * 1.025 ** (j - len(SCHEMES) / 2)  # none hides another
            ratios.errorbar(
                x, middle, np.abs(middle - [own.min(1), own.max(1)]), capsize=2, color=COLOURS[j],
                linestyle="-" if core == "ls" else "--", marker=MARKS[j],
                label=f"{landmarks}, {core}",
            )  # fmt: skip
        title = f"Approximation from {PER_RANK}k landmarks (bars: {REPEATS} draws)"
        ratios.set(xscale="log", yscale="log", xlabel="rank k", title=title)
        ratios.set(ylabel="error / smallest possible")
        ratios.set_xticks(found.ranks, map(str, found.ranks))
        ratios.set_xticks([], minor=True)
        ratios.legend(title="landmarks, core")
        for row, one in enumerate(scores):
            face = "black" if one.method.startswith("Krein") else "white"
            look = {"color": "black", "marker": "o", "markerfacecolor": face, "markersize": 6}
            errors.errorbar(one.mean, row, xerr=one.standard_error, capsize=3, **look)
            seconds.plot(one.seconds, row, **look)
        names = [f"{one.method}, {one.landmarks}" for one in scores]
        for axes, labels in ((errors, names), (seconds, [""] * len(names))):
            axes.set_yticks(range(len(names)), labels)
            axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, None))
        what = f"% wrong in {FOLDS} folds (bars: standard error)"
        errors.set(xlabel=what, title="Pentagon or heptagon? (filled: Krein learners)")
        seconds.set(xlabel="seconds of a fit, including tuning (median)", title="What it takes")
        figure.savefig(output, format="png", dpi=150)


# The command


def checked(argv: Sequence[str]) -> argparse.Namespace:
    """The options, or an error message and the end of the program."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction demo", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--n", type=int, default=1000, help="the number of polygons (1000)")
    add("--seed", type=int, default=0, help="of polygons, landmarks and folds (0)")
    add("--output", type=Path, default=Path("demo.png"), help="the picture (demo.png)")
    options = parser.parse_args(argv)
    if not SMALLEST <= options.n <= LARGEST:
        parser.error(f"--n {options.n}: from {SMALLEST} to {LARGEST} polygons are possible")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: a seed is not negative")
    if not options.output.absolute().parent.is_dir():
        parser.error(f"--output {options.output}: there is no such folder")
    return options


def main(argv: Sequence[str]) -> int:
    """Make polygons, print what they are like, approximate, classify and draw."""
    options, console = checked(argv), Console()
    n, seed = options.n, options.seed
    X, y = make_polygons(n, random_state=seed)
    D = Hausdorff()(X)
    found = inspect(D, "precomputed_dissimilarity", y=y, n_samples=n, random_state=seed)
    inspected(y, found).show(console)
    approximations = findings(X, double_centre(D), found.eigenvalues, seed)
    approximated(approximations).show(console)
    few = min(n, LEARNED)
    every = track(methods(few, seed).items(), "learning", transient=True)
    scores = [scored(*method, X[:few], y[:few], seed) for method in every]
    learned(scores, few).show(console)
    try:
        draw(approximations, scores, options.output)
    except ImportError as error:
        print(f'no picture ({error}): pip install "kreinlearn[plot]"', file=sys.stderr)
        return 0  # all else was shown, and nobody asked for an extra
    print(f"picture: {options.output.absolute()}")
    return 0
