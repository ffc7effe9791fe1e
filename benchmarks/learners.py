"""The compared methods: our learners in several settings, and what they are compared with.

Each has ``fit(M_train, y)`` and ``predict(M_test)`` on rows of dissimilarities or similarities to
the training objects, and looks for its parameters in the training part alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import kreinlearn
from reproduction.sets import centred_squares

Array = NDArray[Any]
RELATIVE_C = 10.0 ** np.arange(-2, 7)  # times 1 / mean |k(x, x)|
INNER_FOLDS = 5
MOST_STEPS = 100_000  # of libsvm, which need not end on an indefinite matrix
SPECTRA = ("flip", "clip", "shift", "square")
KREIN = ("KreinRidge", "KreinVCRidge", "KreinSVC")
CLASSES = {
    "Krein": "KreinClassifier",
    "KreinRidge": "KreinRidgeClassifier",
    "KreinVCRidge": "KreinVCRidgeClassifier",
    "KreinSVC": "KreinSVC",
    "SimilarityRidge": "SimilarityRidgeClassifier",
    "SpectrumSVC": "SpectrumSVC",
}
LEARNERS = (*KREIN, "SimilarityRidge")
PAPER_LANDMARKS = 100
PAPER_WAY = {"similarity": "squared"}
ONE_LAMBDA = {"lambda_minus": "equal"}


class Method(NamedTuple):
    """A method by name; ``make`` raises AttributeError if the library does not have it."""

    name: str
    make: Callable[[bool, int], Any]  # (of dissimilarities?, seed) -> unfitted
    ours: str = ""  # "front": the estimator to try first; "auto" or "landmarks": one of our three

    @property
    def exists(self) -> bool:
        try:
            self.make(True, 0)
        except AttributeError:
            return False
        return True


# Our learners


def _learner(learner: str, name: str, params: dict[str, Any], ours: str = "") -> Method:
    def make(dissimilarity: bool, seed: int) -> Any:
        kernel = "precomputed_dissimilarity" if dissimilarity else "precomputed"
        estimator = getattr(kreinlearn, CLASSES[learner])
        return estimator(kernel=kernel, random_state=seed, n_jobs=1, **params)

    return Method(f"{learner} {name}", make, ours)


def _learners(landmarks: int) -> Iterator[Method]:
    few: dict[str, Any] = {"landmarks": landmarks}
    paper = {"landmarks": kreinlearn.Landmarks(landmarks, "uniform"), **PAPER_WAY}
    yield _learner("Krein", "auto", {}, "front")
    for learner in LEARNERS:
        mine = learner in KREIN
        yield _learner(learner, f"{landmarks}", few, "landmarks" * mine)
        yield _learner(learner, "auto", {}, "auto" * mine)
        yield _learner(learner, f"{landmarks} paper", paper)
    for learner in ("KreinRidge", "KreinSVC"):
        for name, params in ((f"{landmarks}", few), ("auto", {}), (f"{landmarks} paper", paper)):
            yield _learner(learner, f"{name} one lambda", {**params, **ONE_LAMBDA})


# What they are compared with


@dataclass
class NearestNeighbour:
    """The class of the nearest training object, or of the most similar one."""

    dissimilarity: bool

    def fit(self, M: Array, y: Array) -> Self:
        self.y_ = y
        return self

    def predict(self, M: Array) -> Array:
        return np.asarray(self.y_[np.argmin(M if self.dissimilarity else -M, axis=1)])


@dataclass
class RawSVC:
    """scikit-learn's support vector machine on the matrix as it is; inner folds choose C."""

    dissimilarity: bool
    seed: int
    relative_C_: float = field(default=np.nan, init=False)

    def fit(self, M: Array, y: Array) -> Self:
        self.relative_C_ = self._searched(M, y)
        self._train = M
        K = self._similarities(M, M)
        self._model = _svc(self.relative_C_ / _scale(K)).fit(K, y)
        return self

    def predict(self, M: Array) -> Array:
        return np.asarray(self._model.predict(self._similarities(M, self._train)))

    def _similarities(self, M: Array, M_train: Array) -> Array:
        return centred_squares(M_train, M)[1] if self.dissimilarity else M

    def _searched(self, M: Array, y: Array) -> float:
        """The smallest C of fewest errors, divided by the scale of the matrix."""
        folds = max(2, min(INNER_FOLDS, int(np.unique(y, return_counts=True)[1].min())))
        wrong = np.zeros(len(RELATIVE_C))
        cut = StratifiedKFold(folds, shuffle=True, random_state=self.seed)
        for train, valid in cut.split(M, y):
            M_train = M[np.ix_(train, train)]
            K = self._similarities(M_train, M_train)
            K_valid = self._similarities(M[np.ix_(valid, train)], M_train)
            for i, c in enumerate(RELATIVE_C):
                model = _svc(c / _scale(K)).fit(K, y[train])
                wrong[i] += np.sum(model.predict(K_valid) != y[valid])
        return float(RELATIVE_C[np.argmin(wrong)])


def _svc(C: float) -> SVC:
    return SVC(C=C, kernel="precomputed", max_iter=MOST_STEPS)


def _scale(K: Array) -> float:
    return float(np.abs(np.diagonal(K)).mean()) or 1.0


def _baselines() -> Iterator[Method]:
    yield Method("1-NN", lambda dissimilarity, seed: NearestNeighbour(dissimilarity))
    yield Method("SVC raw", RawSVC)
    for spectrum in SPECTRA:
        yield _learner("SpectrumSVC", spectrum, {"spectrum": spectrum})


def methods(landmarks: int = PAPER_LANDMARKS) -> dict[str, Method]:
    return {method.name: method for method in (*_learners(landmarks), *_baselines())}


class Comparison(NamedTuple):
    """Two methods by name: a must not be worse than b, which ``what`` describes."""

    what: str
    a: str
    b: str


def two_lambdas(landmarks: int) -> list[Comparison]:
    settings = (f"{landmarks}", "auto", f"{landmarks} paper")
    return [
        Comparison("one lambda", f"{learner} {s}", f"{learner} {s} one lambda")
        for learner in ("KreinRidge", "KreinSVC")
        for s in settings
    ]


def features(landmarks: int) -> list[Comparison]:
    settings = (f"{landmarks}", "auto", f"{landmarks} paper")
    return [
        Comparison("similarity features", f"{learner} {s}", f"SimilarityRidge {s}")
        for s in settings
        for learner in KREIN
    ]


def fitted_quietly(model: Any, M: Array, y: Array, **params: Any) -> Any:
    """The fitted model, without warnings about convergence or spectra."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ConvergenceWarning is one
        return model.fit(M, y, **params)
