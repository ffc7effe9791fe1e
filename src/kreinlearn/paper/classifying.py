"""Classifiers on stratified folds: the paper's scheme, ours, and methods without approximation.

All methods of a set see the same folds; those of the paper's scheme the same landmarks, too.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kreinlearn import (
    KreinNystroem,
    KreinRidgeClassifier,
    KreinSVC,
    KreinVCRidgeClassifier,
    SimilarityRidgeClassifier,
    SpectrumSVC,
)
from kreinlearn.kernels.base import symmetrised
from kreinlearn.kernels.dissimilarity import Centring
from kreinlearn.paper import sets
from kreinlearn.paper.paired import ALL, Cell, Cells, Figure, Found, found
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.sets import LearningSet, Split
from kreinlearn.paper.tasks import Measurements, Row, Task

Array = NDArray[Any]
LSM, VC, SVM, SF = "krein lsm", "krein vc-lsm", "krein sh-svm", "sf-lsm"
LEARNERS = {
    LSM: KreinRidgeClassifier,
    VC: KreinVCRidgeClassifier,
    SVM: KreinSVC,
    SF: SimilarityRidgeClassifier,
}
FLIP, NEAREST = "flip svm", "1-nn"
OURS = (SVM, LSM)  # what is held against the paper's best figure
PAPER, DEFAULTS, FEW, EXACT = "paper", "defaults", "few landmarks", "exact"
LARGE = 2000  # objects above which only OURS are run at their defaults
EXACT_MOST = 1000  # objects of a set that methods without approximation are run on
PROBE = 8  # polygons, to learn what such a set is like
CHOSEN = ("similarity_", "multi_class_", "lambda_plus_", "lambda_minus_", "C_")
DISSIMILARITIES: dict[str, Any] = {"kernel": "precomputed_dissimilarity"}


# One set, one fold


class Place(NamedTuple):
    """A set of n objects, as a part of the reproduction looks at it."""

    name: str
    scale: Scale
    n: int
    n_classes: int
    folds: int

    def data(self) -> LearningSet:
        return at_most(sets.learning_set(self.name, self.scale), self.n, self.scale.seed)

    def fold(self, number: int) -> Fold:
        data = self.data()
        splits = data.splits(self.scale.folds, self.scale.seed)
        return Fold(data, next(islice(splits, number, None)), number, self)


def place(name: str, scale: Scale, most: int | None = None) -> Place:
    """Looked up without the matrix of a generated set."""
    data = sets.learning_set(name, replace(scale, polygons=PROBE))
    n = scale.polygons if len(data) == PROBE else len(data)
    n = n if most is None or data.given is not None else min(n, most)
    return Place(name, scale, n, len(data.classes), data.n_folds(scale.folds))


def at_most(data: LearningSet, n: int, seed: int) -> LearningSet:
    """As it is, or n of its objects with all classes in proportion."""
    if len(data) <= n:
        return data
    kept, _ = train_test_split(
        np.arange(len(data)), train_size=n, stratify=data.y, random_state=seed
    )
    kept.sort()
    return replace(data, M=data.M[np.ix_(kept, kept)], y=data.y[kept])


@dataclass(frozen=True)
class Fold:
    data: LearningSet
    split: Split
    number: int
    place: Place

    def targets(self, apart: bool) -> list[str]:
        """All classes at once, or each that is set against the rest."""
        return [str(c) for c in self.data.classes] if apart else [ALL]

    def measured(
        self, cell: Cell, model: Any, target: str, matrices: tuple[Array, Array] | None = None
    ) -> Row:
        """One fit, timed, and the test objects it gets wrong."""
        y, y_test, base = self.split.y_train, self.split.y_test, None
        if target != ALL:
            y, y_test = y == int(target), y_test == int(target)
            share = float(np.mean(self.data.y == int(target)))
            base = min(share, 1 - share)
        M, M_test = matrices or (self.split.M_train, self.split.M_test)
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(M, y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        wrong = np.flatnonzero(model.predict(M_test) != y_test)
        figure = Figure(
            self.data.name, len(self.data), target, cell.method, self.place.folds,
            self.place.scale.seed, self.number, len(y), len(y_test), len(wrong), wall, cpu,
            " ".join(map(str, wrong)), chosen(model), "",
        )  # fmt: skip
        more = {"variant": cell.variant, "rank": cell.rank, "origin": self.data.origin}
        return {**figure._asdict(), **more, "base": base}


def chosen(model: Any) -> str:
    """What a fitted model found for itself, in one line."""
    values = {name: getattr(model, name, None) for name in CHOSEN}
    return " ".join(
        f"{name[:-1]}={value if isinstance(value, str) else format(value, '.3g')}"
        for name, value in values.items()
        if value is not None
    )


# What is measured


def centred_squares(split: Split) -> tuple[Array, Array]:
    """-1/2 J (D o D) J of the training objects, and the rows of the others that go with it."""
    centring = Centring.on(split.M_train)
    a, a_test = centring.offsets(split.M_train), centring.offsets(split.M_test)
    K = symmetrised(centring.similarity(split.M_train, a, a))
    return K, centring.similarity(split.M_test, a_test, a)


def paper_landmarks(D: Array, k: int, seed: int) -> Array:
    """The paper's kernel k-means++ on the features of a uniform sketch: row numbers."""
    scheme = KreinNystroem(
        **DISSIMILARITIES, landmarks="kmeans++", core="plain", n_landmarks=k, random_state=seed
    )
    return np.asarray(scheme.fit(D).landmark_indices_)


def scheme(where: Place, fold: int, ranks: Sequence[int], apart: bool) -> list[Row]:
    """The paper's: k landmarks, a plain core, centred squares, one class against the rest."""
    here, seed, rows = where.fold(fold), where.scale.seed, []
    matrices = centred_squares(here.split)
    for k in (k for k in ranks if k < len(here.split.y_train)):
        Z = paper_landmarks(here.split.M_train, k, seed)
        for target in here.targets(apart):
            for method, learner in LEARNERS.items():  # their core is plain unless said otherwise
                model = learner(
                    kernel="precomputed", landmarks=Z, multi_class="ovr", random_state=seed
                )
                rows.append(here.measured(Cell(method, PAPER, k), model, target, matrices))
    return rows


def few(where: Place, fold: int, apart: bool) -> list[Row]:
    """Ours with no more landmarks than the paper, all else at defaults; and neighbours."""
    here, scale, rows = where.fold(fold), where.scale, []
    k = scale.ranks[-1]
    nearest = KNeighborsClassifier(1, metric="precomputed")
    for target in here.targets(apart):
        for method in OURS:
            model = LEARNERS[method](**DISSIMILARITIES, n_landmarks=k, random_state=scale.seed)
            rows.append(here.measured(Cell(method, FEW, k), model, target))
        rows.append(here.measured(Cell(NEAREST, NEAREST), nearest, target))
    return rows


def defaults(where: Place, fold: int, method: str) -> list[Row]:
    model = LEARNERS[method](**DISSIMILARITIES, random_state=where.scale.seed)
    return [where.fold(fold).measured(Cell(method, DEFAULTS), model, ALL)]


def exact(where: Place, fold: int, method: str) -> list[Row]:
    """Every training object a landmark, centred squares; flip: the Krein SVM of Loosli et al."""
    setting = {**DISSIMILARITIES, "similarity": "squared", "random_state": where.scale.seed}
    if method == FLIP:
        model = SpectrumSVC(spectrum="flip", **setting)
    else:
        model = LEARNERS[method](n_landmarks=None, multi_class="ovr", **setting)
    return [where.fold(fold).measured(Cell(method, EXACT), model, ALL)]


# Tasks; what they cost was measured

DEFAULT_COST = {LSM: 6.0, VC: 9.0, SVM: 14.0, SF: 3.0}  # seconds of a fit to 800 objects
EXACT_COST = {LSM: 2.5, VC: 7.0, SVM: 10.0, FLIP: 1.0}  # to 900


def scheme_tasks(where: Place, ranks: Sequence[int] | None = None) -> Iterator[Task]:
    """All classes at once, at all ranks or at some."""
    at = where.scale.ranks if ranks is None else tuple(ranks)
    what = "scheme" if ranks is None else f"scheme at {at}"
    cost = len(at) * (0.35 + where.n / 3000)
    yield from _each_fold(where, what, partial(scheme, ranks=at, apart=False), cost)


def rest_tasks(where: Place) -> Iterator[Task]:
    if where.n_classes > 2:
        ranks = where.scale.ranks
        run = partial(scheme, ranks=ranks, apart=True)
        cost = where.n_classes * len(ranks) * (0.2 + where.n / 5000)
        yield from _each_fold(where, "scheme, one against the rest", run, cost)


def few_tasks(where: Place) -> Iterator[Task]:
    yield from _each_fold(where, "few landmarks", partial(few, apart=False), 0.3 * where.n_classes)
    if where.n_classes > 2:
        run, cost = partial(few, apart=True), 0.65 * where.n_classes
        yield from _each_fold(where, "few landmarks, one against the rest", run, cost)


def default_tasks(where: Place, methods: Iterable[str]) -> Iterator[Task]:
    for method in methods:
        cost = DEFAULT_COST[method] * (min(where.n, 1000) / 800) ** 2 * max(1, where.n / 2000)
        yield from _each_fold(where, f"defaults, {method}", partial(defaults, method=method), cost)


def default_methods(where: Place) -> tuple[str, ...]:
    return tuple(LEARNERS) if where.n <= LARGE else OURS


def exact_tasks(where: Place) -> Iterator[Task]:
    for method, seconds in EXACT_COST.items():
        cost = seconds * (where.n / 900) ** 2
        yield from _each_fold(where, f"exact, {method}", partial(exact, method=method), cost)


def _each_fold(where: Place, what: str, run: Any, cost: float) -> Iterator[Task]:
    scale, of = where.scale, f"{sets.called(where.name)} of {where.n}"
    for fold in range(where.folds):
        key = f"classifying/{scale.name}/{of}/{what}/fold {fold}/seed {scale.seed}"
        yield Task(key, partial(run, where, fold), cost)


# What was measured


class Measured(NamedTuple):
    """The rows of some tasks and the errors in them."""

    scale: Scale
    rows: list[Row]
    errors: Found
    unmeasured: list[str]  # a sentence where tasks were not run, or failed

    @property
    def k(self) -> int:
        """The rank of the paper's tables."""
        return self.scale.ranks[-1]

    @property
    def sets(self) -> dict[str, Row]:
        """A row of each set, for its size and origin."""
        return {row["set"]: row for row in self.rows}

    def cells(self, name: str, target: str = ALL) -> Cells:
        return self.errors.get((name, target), {})


def measured(scale: Scale, tasks: Sequence[Task], measurements: Measurements) -> Measured:
    rows = [row for task in tasks for row in measurements.get(task.key, [])]
    left = [task.key for task in tasks if task.key not in measurements]
    said = [
        f"{len(left)} of {len(tasks)} measurements are not there ({left[0]} is the first of them): "
        "figures that lack a fold are left out."
    ] if left else []  # fmt: skip
    return Measured(scale, rows, found(rows), said)


def not_at_hand(scale: Scale) -> list[str]:
    """A sentence, unless all sets of dissimilarities are there; the report's lead says more."""
    names = [name for name in scale.dissimilarity if name not in sets.there(scale)]
    if not names:
        return []
    return [f"Not at hand: {', '.join(names)}; what to download is said at the beginning."]
