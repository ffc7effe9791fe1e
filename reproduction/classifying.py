"""Classifiers on stratified folds: the paper's scheme, ours, and methods without approximation.

All methods see the same folds of a set; those of the paper's scheme also share their landmarks.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import kreinlearn
from reproduction import sets
from reproduction.matrix_free import Array, nystroem
from reproduction.paired import ALL, ByTarget, Cell, Cells, Figure, errors_by_cell
from reproduction.reading import rows_of
from reproduction.scale import Scale
from reproduction.sets import LearningSet, Split, centred_squares
from reproduction.tasks import Measurements, Row, Task

LSM, VC, SVM, SF = "krein lsm", "krein vc-lsm", "krein sh-svm", "sf-lsm"
LEARNERS = {
    LSM: kreinlearn.KreinRidgeClassifier,
    VC: kreinlearn.KreinVCRidgeClassifier,
    SVM: kreinlearn.KreinSVC,
    SF: kreinlearn.SimilarityRidgeClassifier,
}
FLIP, NEAREST = "flip svm", "1-nn"
OURS = (SVM, LSM)  # what is compared with the best figure of the paper
PAPER, DEFAULTS, FEW, EXACT = "paper", "defaults", "few landmarks", "exact"
LARGE = 2000  # objects above which only OURS are run at their defaults
EXACT_METHODS = (LSM, VC, SVM, FLIP)
EXACT_MOST = 1000  # most objects of a set for the methods without approximation
PROBE = 8  # polygons that are made to learn what such a set is like
CHOSEN = ("similarity_", "lambda_plus_", "lambda_minus_", "relative_C_", "C_")
DISSIMILARITIES = "precomputed_dissimilarity"


def classifier(
    method: str, seed: int, landmarks: int | str | Array | None = "auto",
    kernel: str = DISSIMILARITIES, **settings: Any,
) -> Any:  # fmt: skip
    """The learner of a method; every one of the reproduction is built here.

    ``landmarks`` is their number, None for all objects, or an array of row numbers.
    """
    if method == FLIP:
        return kreinlearn.SpectrumSVC(kernel, spectrum="flip", random_state=seed, **settings)
    return LEARNERS[method](kernel, landmarks=landmarks, random_state=seed, **settings)


# One set, one fold


class Place(NamedTuple):
    """A set of n objects, as one part of the reproduction uses it."""

    name: str
    scale: Scale
    n: int
    n_classes: int
    folds: int

    def fold(self, number: int) -> Fold:
        data = at_most(sets.learning_set(self.name, self.scale), self.n, self.scale.seed)
        splits = data.splits(self.scale.folds, self.scale.seed)
        return Fold(data, next(islice(splits, number, None)), number, self)


def place(name: str, scale: Scale, most: int | None = None) -> Place:
    """The set with at most ``most`` objects; the matrix of a generated set is not made yet."""
    data = sets.learning_set(name, replace(scale, polygons=PROBE))
    n = scale.polygons if len(data) == PROBE else len(data)
    n = n if most is None or data.given is not None else min(n, most)
    return Place(name, scale, n, len(data.classes), data.n_folds(scale.folds))


def at_most(data: LearningSet, n: int, seed: int) -> LearningSet:
    """The set itself, or n of its objects with all classes in proportion."""
    if len(data) <= n:
        return data
    every = np.arange(len(data))
    rows = np.sort(train_test_split(every, train_size=n, stratify=data.y, random_state=seed)[0])
    return replace(data, M=data.M[np.ix_(rows, rows)], y=data.y[rows])


@dataclass(frozen=True)
class Fold:
    """One split of a set into training and test objects."""

    data: LearningSet
    split: Split
    number: int
    place: Place

    def targets(self, apart: bool) -> list[str]:
        """Each class that is set against the rest (``apart``), or all classes at once."""
        return [str(c) for c in self.data.classes] if apart else [ALL]

    def measured(
        self, cell: Cell, model: Any, target: str, matrices: tuple[Array, Array] | None = None
    ) -> Row:
        """Fit and time the model, and count the test objects that it misclassifies."""
        y, y_test, base = self.split.y_train, self.split.y_test, None
        if target != ALL:
            y, y_test = y == int(target), y_test == int(target)
            share = float(np.mean(self.data.y == int(target)))
            base = min(share, 1 - share)
        M, M_test = matrices or (self.split.M_train, self.split.M_test)
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
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


def chosen(model: object) -> str:
    """What a fitted model chose for itself, in one line of words without blanks."""
    values = {name: getattr(model, name, None) for name in CHOSEN}
    return " ".join(
        f"{name[:-1]}={value.replace(' ', '') if isinstance(value, str) else format(value, '.3g')}"
        for name, value in values.items()
        if value is not None
    )


# What is measured on one fold


def scheme(where: Place, fold: int, ranks: Sequence[int], apart: bool) -> list[Row]:
    """The paper's scheme: k landmarks by its kernel k-means++ on the features of a uniform sketch,
    the plain core, centred squares, one-vs-rest."""
    here, seed, rows = where.fold(fold), where.scale.seed, []
    D = here.split.M_train
    matrices = centred_squares(D, here.split.M_test)
    for k in (k for k in ranks if k < len(D)):
        sketch = nystroem(DISSIMILARITIES, k, scheme="kmeans++", core="plain", seed=seed)
        Z = np.asarray(sketch.fit(D).landmark_indices_)
        for target in here.targets(apart):
            for method in LEARNERS:  # their core is plain by default
                model = classifier(method, seed, Z, "precomputed")
                rows.append(here.measured(Cell(method, PAPER, k), model, target, matrices))
    return rows


def few(where: Place, fold: int, apart: bool) -> list[Row]:
    """Ours with no more landmarks than the paper and defaults otherwise; and 1-NN."""
    here, k, seed, rows = where.fold(fold), where.scale.ranks[-1], where.scale.seed, []
    nearest = KNeighborsClassifier(1, metric="precomputed")
    for target in here.targets(apart):
        for method in OURS:
            model = classifier(method, seed, k)
            rows.append(here.measured(Cell(method, FEW, k), model, target))
        rows.append(here.measured(Cell(NEAREST, NEAREST), nearest, target))
    return rows


def defaults(where: Place, fold: int, method: str) -> list[Row]:
    """A learner of ours with all parameters at their defaults."""
    model = classifier(method, where.scale.seed)
    return [where.fold(fold).measured(Cell(method, DEFAULTS), model, ALL)]


def exact(where: Place, fold: int, method: str) -> list[Row]:
    """Every training object is a landmark; FLIP is the Krein SVM of Loosli and others."""
    model = classifier(method, where.scale.seed, None, similarity="squared")
    return [where.fold(fold).measured(Cell(method, EXACT), model, ALL)]


# Tasks


def scheme_tasks(where: Place, ranks: Sequence[int] | None = None) -> Iterator[Task]:
    """The paper's scheme with all classes at once, at all ranks or at those given."""
    at = where.scale.ranks if ranks is None else tuple(ranks)
    what = "scheme" if ranks is None else f"scheme at {at}"
    yield from _each_fold(where, what, partial(scheme, ranks=at, apart=False), len(at))


def rest_tasks(where: Place) -> Iterator[Task]:
    """The paper's scheme with each class against the rest, for more than two classes."""
    if where.n_classes > 2:
        run = partial(scheme, ranks=where.scale.ranks, apart=True)
        cost = where.n_classes * len(where.scale.ranks)
        yield from _each_fold(where, "scheme, one against the rest", run, cost)


def few_tasks(where: Place) -> Iterator[Task]:
    """Ours with few landmarks, all classes at once and each against the rest."""
    yield from _each_fold(where, "few landmarks", partial(few, apart=False), where.n_classes)
    if where.n_classes > 2:
        what, run = "few landmarks, one against the rest", partial(few, apart=True)
        yield from _each_fold(where, what, run, 2 * where.n_classes)


def default_tasks(where: Place, methods: Iterable[str] | None = None) -> Iterator[Task]:
    """Our learners at their defaults; on a large set only OURS, if no methods are named."""
    for method in methods or (LEARNERS if where.n <= LARGE else OURS):
        yield from _each_fold(where, f"defaults, {method}", partial(defaults, method=method), 10)


def exact_tasks(where: Place) -> Iterator[Task]:
    """The methods that approximate nothing."""
    for method in EXACT_METHODS:
        yield from _each_fold(where, f"exact, {method}", partial(exact, method=method), 5)


def _each_fold(
    where: Place, what: str, run: Callable[[Place, int], list[Row]], weight: float
) -> Iterator[Task]:
    scale, of = where.scale, f"{sets.called(where.name)} of {where.n}"
    for fold in range(where.folds):
        key = f"classifying/{scale.name}/{of}/{what}/fold {fold}/seed {scale.seed}"
        yield Task(key, partial(run, where, fold), weight * (0.1 + where.n / 1000))


def tasks_of(scale: Scale, *kinds: Callable[[Place], Iterable[Task]]) -> list[Task]:
    """The tasks of these kinds for all sets that are there."""
    places = [place(name, scale) for name in sets.there(scale)]
    return [task for where in places for kind in kinds for task in kind(where)]


# What was measured


class Measured(NamedTuple):
    """The rows of some tasks and the errors in them."""

    scale: Scale
    rows: list[Row]
    errors: ByTarget

    @property
    def k(self) -> int:
        """The rank of the paper's tables."""
        return self.scale.ranks[-1]

    @property
    def sets(self) -> dict[str, Row]:
        """One row of each set, for its size and origin."""
        return {row["set"]: row for row in self.rows}

    def cells(self, name: str, target: str = ALL) -> Cells:
        return self.errors.get((name, target), {})

    def names(self, target: str = ALL) -> list[str]:
        """The sets that were measured."""
        return [name for name in sets.DISSIMILARITY if self.cells(name, target)]

    def means(self, part: str, targets: Sequence[str] = (ALL,)) -> dict[str, float]:
        """The mean errors of a part by name, for the comparison with stored ranges."""
        return {
            f"{part}/{name}/{target}/{cell.variant}/{cell.method}": errors.mean
            for (name, target), cells in self.errors.items()
            for cell, errors in cells.items()
            if target in targets and cell.rank in (None, self.k)
        }


def measured(scale: Scale, tasks: Sequence[Task], measurements: Measurements) -> Measured:
    """What the measurements say about the tasks."""
    rows = rows_of(tasks, measurements)
    return Measured(scale, rows, errors_by_cell(rows))
