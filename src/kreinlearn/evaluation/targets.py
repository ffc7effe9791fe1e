"""Labels or numbers to be predicted, and how the error of a prediction is measured."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from kreinlearn.data.validation import are_label_sets, checked_labels, checked_numbers
from kreinlearn.inspection.arguments import Array
from kreinlearn.learn.coding import require_two
from kreinlearn.learn.folds import rare_in_words

MANY_CLASSES = 20  # if there are more distinct numbers they may be measurements
FEW = 5  # objects per class; if there are fewer, integers are taken for measurements

SEVERAL_LABELS = (
    "evaluate compares classes or numbers, and y has several labels per object; take "
    'cross_validate of scikit-learn, with scoring="f1_micro" for instance'
)


@dataclass(frozen=True)
class Targets:
    """Validated targets; ``labels`` are the numbers of the classes, or None for numbers."""

    y: Array
    labels: Array | None
    classes: Array | None = None
    notes: tuple[str, ...] = ()
    groups: Array | None = None  # (n,) numbers of groups that are in one fold

    @property
    def task(self) -> str:
        return "regression" if self.labels is None else "classification"

    @property
    def n_outputs(self) -> int:
        """Columns of targets: those of numbers, or one per class if there are more than two."""
        if self.labels is None:
            return 1 if self.y.ndim == 1 else int(self.y.shape[1])
        n_classes = int(self.labels.max()) + 1
        return n_classes if n_classes > 2 else 1

    @property
    def metric(self) -> str:
        return "1 - R^2" if self.labels is None else "error, %"

    def of_part(self, rows: Array) -> Targets:
        """The targets of some of the objects, with what there is to note about all of them."""
        part = targets_of(self.y[rows], len(rows), self.task)
        groups = None if self.groups is None else self.groups[rows]
        return replace(part, notes=(*self.notes, *part.notes), groups=groups)

    def rare_in_words(self, k: int) -> list[str]:
        """What is to be said about classes with fewer objects than there are folds."""
        if self.labels is None or self.classes is None:
            return []
        said = rare_in_words(self.classes, np.bincount(self.labels), k)
        return [f"{said[0].upper()}{said[1:]}."] if said else []

    def losses(self, predicted: Array, rows: Array) -> Array:  # (len(rows),)
        """The loss of each predicted object.

        It is 100 for a wrong label, and for numbers the squared error divided by the variance of
        all targets.
        """
        if self.labels is not None:
            return 100.0 * (np.asarray(predicted) != self.y[rows])
        squares = np.square(np.asarray(predicted, dtype=np.float64) - self.y[rows])
        per_object = squares.reshape(len(rows), -1).mean(axis=1)
        return np.asarray(per_object / self.y.var(axis=0).mean())


def targets_of(y: ArrayLike | None, n: int, task: str) -> Targets:
    """Validate the targets of n objects; ``task`` may be "auto"."""
    if y is None:
        raise ValueError("evaluate compares predictions with y, which is None; pass the targets")
    if are_label_sets(y) and not _are_numbers(y):
        raise ValueError(SEVERAL_LABELS)
    if np.shape(y)[:1] != (n,):
        check_consistent_length(np.zeros(n), y)
    notes: tuple[str, ...] = ()
    if task == "auto":
        task, notes = _task_of(y, n)
    if task == "classification" and are_label_sets(y):
        raise ValueError(SEVERAL_LABELS)
    return _numbers(y, notes) if task == "regression" else _classes(y, notes)


def _are_numbers(y: ArrayLike) -> bool:
    """Whether targets are rows of numbers that are all as long."""
    try:
        return bool(np.asarray(y, dtype=np.float64).ndim == 2)
    except (TypeError, ValueError):
        return False


def _task_of(y: ArrayLike, n: int) -> tuple[str, tuple[str, ...]]:
    """Labels are classes; so are numbers that have few values, or many objects per value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about many classes: they are checked here
        try:
            numbers = type_of_target(y, input_name="y").startswith("continuous")
        except TypeError:  # labels that cannot be sorted: a check of classes says why
            numbers = False
        if numbers:
            return "regression", ()
    values = np.asarray(y)
    count = len(np.unique(values)) if values.dtype.kind in "iuf" else 0
    if count <= MANY_CLASSES:
        return "classification", ()
    tasks = ("regression", "classification")
    task, other = tasks if values.dtype.kind == "f" or n < FEW * count else tasks[::-1]
    note = f"y has {count} values and was taken for {task}; if that is wrong pass task={other!r}."
    return task, (note,)


def _numbers(y: ArrayLike, notes: tuple[str, ...]) -> Targets:
    numbers: Array = checked_numbers(y, "evaluate")
    if not np.ptp(numbers):
        raise ValueError(f"y is {numbers.flat[0]:g} for every object: there is nothing to learn")
    return Targets(numbers, None, notes=notes)


def _classes(y: ArrayLike, notes: tuple[str, ...]) -> Targets:
    given: Array = checked_labels(y, "evaluate")
    classes, labels, counts = np.unique(given, return_inverse=True, return_counts=True)
    require_two(classes)
    several = counts[counts > 1]
    if len(several) < 2:
        raise ValueError(
            f"{len(several)} of {len(classes)} classes have two objects or more, one to learn from "
            'and one to test: two classes need them; pass task="regression" if y are numbers'
        )
    if alone := [str(c) for c in classes[counts == 1]]:
        shown = ", ".join(alone[:5]) + (", ..." if len(alone) > 5 else "")
        what = "One class has" if len(alone) == 1 else f"{len(alone)} classes have"
        note = (
            f"{what} one object only ({shown}): when it is left out no learner can know its class."
        )
        notes = (*notes, note)
    return Targets(given, labels, classes, notes)


def spread(rows: Array, labels: Array | None, size: int, rng: np.random.Generator) -> Array:
    """Some of the rows in their order, with all classes in proportion and at least once."""
    if size >= len(rows):
        return rows
    order = rng.permutation(len(rows))
    if labels is None:
        return rows[np.sort(order[:size])]
    of_class = labels[rows[order]]
    order = order[np.argsort(of_class, kind="stable")]
    _, first = np.unique(labels[rows[order]], return_index=True)
    rest = np.setdiff1d(np.arange(len(rows)), first)
    more = max(size - len(first), 0)
    chosen = np.concatenate([first, rest[np.arange(more) * len(rest) // max(more, 1)]])
    return rows[np.sort(order[chosen])]
