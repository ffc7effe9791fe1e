"""Pentagon or heptagon? Our learners and the usual baselines on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

import kreinlearn
from kreinlearn.kernels import Hausdorff
from kreinlearn.report.model import Table

Array = np.ndarray
LARGEST = 600  # most polygons to learn from: exact learners decompose matrices of that size
LANDMARKS = 100
FOLDS = 5
RELATIVE_C = np.logspace(-2, 4, 7)  # C times the mean self-similarity, as in SpectrumSVC
MOST_STEPS = 100_000  # of libsvm, which may never end on an indefinite matrix


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


def methods(n: int, seed: int) -> dict[str, BaseEstimator]:
    """The classifiers, not yet fitted; fewer polygons have fewer landmarks."""

    def made(name: str, **settings: object) -> BaseEstimator:
        model: BaseEstimator = getattr(kreinlearn, name)("hausdorff", random_state=seed, **settings)
        return model

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


class Choice(NamedTuple):
    """What a fitted method uses, whether it was chosen or given."""

    landmarks: int
    similarity: str
    lambda_plus: float | None
    lambda_minus: float | None


@dataclass(frozen=True)
class Score:
    """The errors of a method on the folds, and what it chose in the first of them."""

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
    models: dict[str, BaseEstimator], X: Sequence[Array], y: Array, seed: int,
    tick: Callable[[str], object],
) -> list[Score]:  # fmt: skip
    """Every method on the same folds; ``tick`` is called with each method that is done."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    results = []
    for name, model in models.items():
        # They come from libsvm, for some of the C that are tried.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            fits = cross_validate(
                model, X, y, cv=folds, scoring="accuracy", return_estimator=True,
                error_score="raise",
            )  # fmt: skip
        chosen = choice(fits["estimator"][0])
        results.append(Score(name, 1 - fits["test_score"], fits["fit_time"], chosen))
        tick(name)
    return results


def choice(model: BaseEstimator) -> Choice:
    """What a fitted method uses."""
    similarity = str(getattr(model, "similarity_", getattr(model, "similarity", "")))
    if "+" in similarity:  # their names would fill a line
        similarity = f"sum of {len(similarity.split('+'))}"
    penalties = (getattr(model, name, None) for name in ("lambda_plus_", "lambda_minus_"))
    return Choice(model.n_landmarks_, similarity, *penalties)


NOTE = (
    "The same folds for all. KreinClassifier decides everything itself. m: landmarks; %: error; "
    "s.e.: its standard error over folds; s: median seconds of a fit. From the first fold: the "
    "similarity made of the distances, or how many are added (chosen, but given to d^2 and the "
    "SVCs), lambda plus and lambda minus (a large lambda minus leaves the negative part out). SVC "
    "raw is not convex: no optimum is promised."
)


def table_of(results: Sequence[Score], n: int) -> Table:
    """One row per method."""
    title = f"Pentagons or heptagons? The first {n} polygons, {FOLDS}-fold cross-validated error"
    header = ["method", "m", "%", "s.e.", "s", "similarity", "plus", "minus"]
    rows = [
        [
            row.method, str(row.chosen.landmarks), f"{100 * row.mean:.1f}",
            f"{100 * row.standard_error:.1f}", f"{np.median(row.seconds):.2f}",
            row.chosen.similarity, *map(penalty, row.chosen[2:]),
        ]
        for row in results
    ]  # fmt: skip
    return Table(title, header, rows, [NOTE])


def penalty(value: float | None) -> str:
    """A penalty, or nothing for a method that has none."""
    return "" if value is None else f"{value:.0e}"
