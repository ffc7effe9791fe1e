"""The learners that are compared, each at its defaults, by the name that is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from kreinlearn.estimators.baselines import SimilarityRidge, SimilarityRidgeClassifier
from kreinlearn.estimators.ridge import KreinRidge, KreinRidgeClassifier
from kreinlearn.estimators.spectrum_svc import SpectrumSVC
from kreinlearn.estimators.svm import KreinSVC
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.estimators.variance import KreinVCRidge, KreinVCRidgeClassifier
from kreinlearn.evaluation.findings import BASELINE, KREIN, TRIVIAL
from kreinlearn.evaluation.neighbours import NearestNeighbours

NEIGHBOURS = "k nearest neighbours"
ALL_PAIRS = {"SpectrumSVC flip": 3000, "SpectrumSVC clip": 3000, NEIGHBOURS: 20_000}  # objects


class Common(NamedTuple):
    """What every learner is given."""

    kernel: Any
    kernel_params: Any
    n_landmarks: Any
    n_jobs: int | None
    memory_budget: Any

    def parameters(self, seed: int) -> dict[str, Any]:
        found = {**self._asdict(), "random_state": seed}
        del found["n_landmarks"]
        return found


class Learner(NamedTuple):
    name: str
    kind: str
    make: Callable[[Common, int], Any]  # an unfitted one, by a seed


def _by_landmarks(estimator: Any, common: Common, seed: int) -> Any:
    return estimator(n_landmarks=common.n_landmarks, **common.parameters(seed))


def _by_spectrum(spectrum: str, common: Common, seed: int) -> Any:
    return SpectrumSVC(spectrum=spectrum, **common.parameters(seed))


def _by_neighbours(classifies: bool, common: Common, seed: int) -> Any:
    return NearestNeighbours(KreinNystroem(**common.parameters(seed)), classifies=classifies)


def _constant(estimator: Any, common: Common, seed: int) -> Any:
    return estimator()


def _given(estimator: Any, common: Common, seed: int) -> Any:
    return clone(estimator)


def _named(kind: str, *estimators: Any) -> list[Learner]:
    return [Learner(e.__name__, kind, partial(_by_landmarks, e)) for e in estimators]


KNOWN = {
    "classification": [
        *_named(KREIN, KreinRidgeClassifier, KreinVCRidgeClassifier, KreinSVC),
        *_named(BASELINE, SimilarityRidgeClassifier),
        *[
            Learner(f"SpectrumSVC {name}", BASELINE, partial(_by_spectrum, name))
            for name in ("flip", "clip")
        ],
        Learner(NEIGHBOURS, BASELINE, partial(_by_neighbours, True)),
        Learner("always the most frequent class", TRIVIAL, partial(_constant, DummyClassifier)),
    ],
    "regression": [
        *_named(KREIN, KreinRidge, KreinVCRidge),
        *_named(BASELINE, SimilarityRidge),
        Learner(NEIGHBOURS, BASELINE, partial(_by_neighbours, False)),
        Learner("always the mean", TRIVIAL, partial(_constant, DummyRegressor)),
    ],
}


def learners_for(task: str, wanted: Any, n: int) -> tuple[list[Learner], list[str]]:
    """The learners, and a sentence on each that is left out as there are too many objects."""
    known = {learner.name: learner for learner in KNOWN[task]}
    if not isinstance(wanted, str):
        return [_one(item, known, task) for item in _listed(wanted)], []
    if wanted != "auto":
        return [_one(wanted, known, task)], []
    large = [name for name in known if n > ALL_PAIRS.get(name, n)]
    said = [
        f"{name} is left out: it compares all {n:,} objects with one another; name it in "
        "`learners` to have it all the same."
        for name in large
    ]
    return [learner for name, learner in known.items() if name not in large], said


def _listed(wanted: Any) -> Iterable[Any]:
    found = list(wanted)
    if not found:
        raise ValueError('learners is empty; pass "auto", or names of learners')
    return found


def _one(item: Any, known: dict[str, Learner], task: str) -> Learner:
    if isinstance(item, str):
        if item not in known:
            raise ValueError(
                f"learner {item!r} is not known for {task}; known are {list(known)}, and a pair "
                "(name, estimator) adds one of your own"
            )
        return known[item]
    if isinstance(item, tuple) and len(item) == 2 and hasattr(item[1], "fit"):
        return Learner(str(item[0]), BASELINE, partial(_given, item[1]))
    raise TypeError(f"a learner is a name or a pair (name, estimator), got {item!r}")
