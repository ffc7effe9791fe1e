"""Who tells pentagons from heptagons: our learners and the usual baselines on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from kreinlearn import (
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidgeClassifier,
    SimilarityRidgeClassifier,
    SpectrumSVC,
)
from kreinlearn.kernels.dissimilarity import Centring
from kreinlearn.kernels.objects import Hausdorff

Array = NDArray[Any]
LARGEST = 600  # polygons learned from, as the exact learners decompose matrices of that size
LANDMARKS = 100
FOLDS = 5
RELATIVE_C = np.logspace(-2, 4, 7)  # over the mean self-similarity, as SpectrumSVC has it
MOST_STEPS = 100_000  # of libsvm, which need not end on an indefinite matrix


class NearestNeighbour:
    """The class of the nearest training polygon."""

    def fit(self, X: Sequence[Array], y: Array) -> Self:
        self._columns, self._y, self.n_landmarks_ = Hausdorff().columns(X), y, len(X)
        return self

    def predict(self, X: Sequence[Array]) -> Array:
        return np.asarray(self._y[np.argmin(self._columns(X), axis=1)])


class RawSVC:
    """scikit-learn's SVC on centred squared distances as they are, C by cross-validation."""

    similarity = "squared"

    def fit(self, X: Sequence[Array], y: Array) -> Self:
        self._columns, self.n_landmarks_ = Hausdorff().columns(X), len(X)
        D = self._columns(X)
        self._centring = Centring.on(D)
        self._offsets = self._centring.offsets(D)
        K = self._similarities(D)
        machine = SVC(kernel="precomputed", max_iter=MOST_STEPS)
        grid = {"C": RELATIVE_C / np.abs(np.diagonal(K)).mean()}
        self._search = GridSearchCV(machine, grid, cv=FOLDS).fit(K, y)
        return self

    def predict(self, X: Sequence[Array]) -> Array:
        return np.asarray(self._search.predict(self._similarities(self._columns(X))))

    def _similarities(self, D: Array) -> Array:
        return self._centring.similarity(D, self._centring.offsets(D), self._offsets)


def methods(n: int, seed: int) -> dict[str, Any]:
    """Unfitted classifiers of lists of polygons; fewer landmarks where there are few polygons."""
    exact: dict[str, Any] = {"kernel": "hausdorff", "random_state": seed}
    few = {**exact, "n_landmarks": min(LANDMARKS, n // 4)}
    return {
        "KreinRidge": KreinRidgeClassifier(**few),
        "KreinVCRidge": KreinVCRidgeClassifier(**few),
        "KreinSVC": KreinSVC(**few),
        "KreinRidge exact": KreinRidgeClassifier(**exact, n_landmarks=None),
        "KreinRidge d^2": KreinRidgeClassifier(**exact, n_landmarks=None, similarity="squared"),
        "SimilarityRidge": SimilarityRidgeClassifier(**few),
        "SpectrumSVC flip": SpectrumSVC(**exact, spectrum="flip"),
        "SpectrumSVC clip": SpectrumSVC(**exact, spectrum="clip"),
        "SVC raw": RawSVC(),
        "1-NN": NearestNeighbour(),
    }


class Choice(NamedTuple):
    """What a fitted method uses, chosen by itself or given."""

    landmarks: int
    similarity: str
    lambda_plus: float | None
    lambda_minus: float | None


@dataclass(frozen=True)
class Score:
    """A method over the folds, and its choice in the first of them."""

    method: str
    errors: Array  # (folds,), shares
    seconds: Array  # (folds,)
    chosen: Choice

    @property
    def mean(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        return float(self.errors.std(ddof=1)) / len(self.errors) ** 0.5


def scores(
    models: dict[str, Any], X: Sequence[Array], y: Array, seed: int, tick: Callable[[str], object]
) -> list[Score]:
    """Every method on the same folds; ``tick`` is told the method after each fit."""
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y))
    found = []
    for name, model in models.items():
        runs = []
        for train, test in folds:
            runs.append(run(model, X, y, train, test))
            tick(name)
        errors, seconds, chosen = zip(*runs, strict=True)
        found.append(Score(name, np.array(errors), np.array(seconds), chosen[0]))
    return found


def run(
    model: Any, X: Sequence[Array], y: Array, train: Array, test: Array
) -> tuple[float, float, Choice]:
    """Error, seconds of the fit, and what was chosen."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of libsvm, for some C that are tried
        model.fit([X[i] for i in train], y[train])
    seconds = time.perf_counter() - start
    error = float(np.mean(model.predict([X[i] for i in test]) != y[test]))
    return error, seconds, choice(model)


def choice(model: Any) -> Choice:
    similarity = str(getattr(model, "similarity_", getattr(model, "similarity", "")))
    penalties = (getattr(model, name, None) for name in ("lambda_plus_", "lambda_minus_"))
    return Choice(model.n_landmarks_, similarity, *penalties)


CAPTION = (
    "the same folds for all; s.e.: standard error over folds; s/fit: median. Of the first fold: "
    "similarity of the distances (chosen; given to d^2 and the SVCs), lambda plus and minus "
    "(minus large: the negative part is left out). SVC raw: not convex, no optimum is promised"
)


def table_of(found: Sequence[Score], n: int) -> Table:
    """A row a method."""
    table = Table(
        title=f"Pentagons or heptagons? The first {n} polygons, {FOLDS}-fold cross-validated error",
        caption=CAPTION,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    for name in ("land-\nmarks", "error\n%", "s.e.", "s/fit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("similarity", no_wrap=True)
    for name in ("plus", "minus"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found:
        chosen = row.chosen
        table.add_row(
            row.method, str(chosen.landmarks), f"{100 * row.mean:.1f}",
            f"{100 * row.standard_error:.1f}", f"{np.median(row.seconds):.2f}", chosen.similarity,
            penalty(chosen.lambda_plus), penalty(chosen.lambda_minus),
        )  # fmt: skip
    return table


def penalty(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"
