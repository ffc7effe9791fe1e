"""Labels or numbers, and what an error is."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from kreinlearn.estimators._classifier import require_two
from kreinlearn.estimators._dask import checked_labels, checked_numbers

Array = NDArray[Any]
MANY_CLASSES = 20  # numbers with more values may measure something
FEW = 5  # objects a class, below which integers measure something


@dataclass(frozen=True)
class Targets:
    task: str
    y: Array
    labels: Array | None  # number of the class of each object
    most_folds: int
    notes: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        return "1 - R^2" if self.labels is None else "error, %"

    def losses(self, predicted: Array, rows: Array) -> Array:  # (len(rows),)
        """100 if a label is wrong; of numbers the squared error over the variance of all."""
        if self.labels is not None:
            return 100.0 * (np.asarray(predicted) != self.y[rows])
        squares = np.square(np.asarray(predicted, dtype=np.float64) - self.y[rows])
        by_object = squares.reshape(len(rows), -1).mean(axis=1)
        return np.asarray(by_object / self.y.var(axis=0).mean())


def targets_of(y: Any, n: int, task: str) -> Targets:
    if y is None:
        raise ValueError("evaluate compares predictions with y, which is None; pass the targets")
    if np.shape(y)[:1] != (n,):
        check_consistent_length(np.zeros(n), y)
    if task == "auto":
        task, notes = _task_of(y, n)
    else:
        notes = ()
    found = _numbers(y, n) if task == "regression" else _classes(y)
    return replace(found, notes=(*notes, *found.notes))


def _task_of(y: Any, n: int) -> tuple[str, tuple[str, ...]]:
    """Labels are classes; so are numbers of few values, or of many objects each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of many classes: that is seen to here
        if type_of_target(y, input_name="y").startswith("continuous"):
            return "regression", ()
    values = np.asarray(y)
    count = len(np.unique(values)) if values.dtype.kind in "iuf" else 0
    if count <= MANY_CLASSES:
        return "classification", ()
    task = "regression" if values.dtype.kind == "f" or n < FEW * count else "classification"
    other = "classification" if task == "regression" else "regression"
    said = f"y has {count} values and was taken for {task}; if that is wrong pass task={other!r}."
    return task, (said,)


def _numbers(y: Any, n: int) -> Targets:
    y = checked_numbers(y, "evaluate")
    if not np.ptp(y):
        raise ValueError(f"y is {y.flat[0]:g} for every object: there is nothing to learn")
    return Targets("regression", y, None, n)


def _classes(y: Any) -> Targets:
    y = checked_labels(y, "evaluate")
    classes, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    require_two(classes)
    several = counts[counts > 1]
    if len(several) < 2:
        raise ValueError(
            f"{len(several)} of {len(classes)} classes have two objects or more, one to learn from "
            'and one to test: two classes need them; pass task="regression" if y are numbers'
        )
    notes = []
    if len(several) < len(classes):
        alone = [str(c) for c in classes[counts == 1]]
        shown = ", ".join(alone[:5]) + (", ..." if len(alone) > 5 else "")
        what = "One class has" if len(alone) == 1 else f"{len(alone)} classes have"
        notes.append(
            f"{what} one object only ({shown}): when it is left out no learner can know its class."
        )
    return Targets("classification", y, labels, int(several.min()), tuple(notes))
