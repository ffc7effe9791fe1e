"""From targets to columns of numbers and back: regression, classes and sets of labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.class_weight import compute_class_weight

from kreinlearn.data.labels import checked_indicator, label_names
from kreinlearn.data.tiles import TILE
from kreinlearn.data.validation import (
    are_label_sets,
    checked_labels,
    checked_numbers,
    checked_weights,
    labels_of_block,
)
from kreinlearn.kernels.base import Array
from kreinlearn.pairs.pairs import unit_near
from kreinlearn.pairs.rows import Rows
from kreinlearn.sums.moments import target_bytes

AT_ONCE = 2**16  # labels that are looked up at a time: what is made on the way takes little room
EXTREME = 200  # powers of two: weights beyond are divided by one, others are used as they are


class Encoded(NamedTuple):
    """Targets as a learner takes them."""

    y: Any  # as given, checked
    Y: Any  # (n, q)
    labels: Array | None = None  # numbers of classes, where the rows are here
    counts: Array | None = None  # rows of each class
    classes: Array | None = None
    shift: Array | float = 0.0  # taken from the targets before anything is learned
    unit: float = 1.0  # a power of two by which they are divided then, so that they can be squared
    one_output: bool = False  # y has one dimension, and so have coefficients
    weights: Any = None  # (n,), or None if all are 1
    weighted: Array | None = None  # the rows of positive weight; None if all rows have one
    class_weights: Array | None = None  # factors of the classes that are part of the weights
    multilabel: bool = False  # whether the classes are labels, of which an object has any number
    groups: Array | None = None  # (n,) numbers of groups of rows that are left out together
    equal: Array | None = None  # (n,) numbers of distinct objects, if some are equal


class Coding(Protocol):
    """What differs between regressors and classifiers."""

    def suited(self, y: Any, classes: Any = None) -> Coding:
        """The coding of these targets; ``classes`` are all labels, if they are known."""

    def check(self, y: Any, estimator: str, *, block: bool = False) -> Array:
        """Targets checked as scikit-learn does; ``block`` if they are those of a few rows."""

    def encode(self, rows: Rows, y: Any, classes: Any = None, budget: float = np.inf) -> Encoded:
        """Checked targets as columns, within a memory budget in bytes.

        ``classes`` are all labels, if they are known.
        """

    def weights(
        self, rows: Rows, encoded: Encoded, w: Any, *, part: bool = False
    ) -> tuple[Any, Array | None]:
        """The weights of the rows, and the factors of their classes that are in them, if any.

        ``part`` says that other rows were seen before.
        """

    def shifted(self, rows: Rows, encoded: Encoded, w: Any, *, intercept: bool) -> Encoded:
        """Targets about a mean that would drown what is learned when they are squared."""

    def shifted_by(
        self, rows: Rows, encoded: Encoded, shift: Array | float, unit: float
    ) -> Encoded:
        """The same about the mean and in the unit of other rows, which were seen before."""


@dataclass(frozen=True)
class Regression:
    """Targets of one or more dimensions."""

    def suited(self, y: Any, classes: Any = None) -> Coding:
        return self

    def check(self, y: Any, estimator: str, *, block: bool = False) -> Array:
        return checked_numbers(y, estimator)

    def encode(self, rows: Rows, y: Any, classes: Any = None, budget: float = np.inf) -> Encoded:
        one = y.ndim == 1
        return Encoded(y, rows.mapped(y, as_columns, y.dtype, 1) if one else y, one_output=one)

    def weights(
        self, rows: Rows, encoded: Encoded, w: Any, *, part: bool = False
    ) -> tuple[Any, Array | None]:
        return w, None

    def shifted(self, rows: Rows, encoded: Encoded, w: Any, *, intercept: bool) -> Encoded:
        sums, q = rows.column_sums(encoded.Y, w), encoded.Y.shape[1]
        shift = sums.targets / sums.weight if intercept else np.zeros(q)
        return self.shifted_by(rows, encoded, shift, unit_near(sums.largest))

    def shifted_by(
        self, rows: Rows, encoded: Encoded, shift: Array | float, unit: float
    ) -> Encoded:
        change = partial(less, shift=shift, unit=unit)
        Y = rows.mapped(encoded.Y, change, np.float64, encoded.Y.shape[1])
        return encoded._replace(Y=Y, shift=shift, unit=unit)


@dataclass(frozen=True)
class Classes:
    """Labels as targets +-1: one column per class, against all others; of two classes one."""

    class_weight: Any = None

    def suited(self, y: Any, classes: Any = None) -> Coding:
        if not are_label_sets(y):
            return self
        return Labels(names=label_names(y, classes))

    def check(self, y: Any, estimator: str, *, block: bool = False) -> Array:
        return (labels_of_block if block else checked_labels)(y, estimator)

    def encode(self, rows: Rows, y: Any, classes: Any = None, budget: float = np.inf) -> Encoded:
        tally = rows.tally(y, None)
        every = tally.labels if classes is None else np.unique(classes)
        unknown = np.setdiff1d(tally.labels, every)
        if len(unknown):
            raise ValueError(f"y has labels {unknown} that are not among classes={classes!r}")
        require_two(every)
        k = len(every)
        rows.require_memory(
            rows.n * k + target_bytes(min(rows.n, TILE), k, stored=1), budget,
            f"{rows.n} x {k} targets, one for each object and class,",
            "raise Resources(memory_budget=...), or merge rare classes; numbers are predicted by a "
            "regressor",
        )  # fmt: skip
        Y = rows.mapped(y, partial(targets_of, classes=every), np.int8, 1 if k == 2 else k)
        labels = rows.mapped(y, partial(numbers_of, classes=every), type_of_numbers(k), None)
        counts = np.zeros(k, dtype=np.intp)
        counts[np.searchsorted(every, tally.labels)] = tally.counts
        return Encoded(y, Y, labels, counts, every)

    def weights(
        self, rows: Rows, encoded: Encoded, w: Any, *, part: bool = False
    ) -> tuple[Any, Array | None]:
        classes, of_classes = encoded.classes, None
        assert classes is not None
        if self.class_weight is None and w is None:
            return None, None
        tally = rows.tally(encoded.y, w)
        totals = np.zeros(len(classes))
        totals[np.searchsorted(classes, tally.labels)] = tally.weights
        if self.class_weight is not None:
            of_classes = self._class_weights(classes, totals)
            totals = totals * of_classes
            w = rows.weights_by_class(encoded.y, w, classes, of_classes)
        if not part and np.count_nonzero(totals) < 2:
            require_two(classes[totals > 0], " of positive weight")
        return w, of_classes

    def _class_weights(self, classes: Array, totals: Array) -> Array:
        """class_weight as numbers, from the weight of each class; 0 if its rows weigh nothing."""
        if isinstance(self.class_weight, str):  # "balanced"
            with np.errstate(divide="ignore"):
                weights = totals.sum() / (len(classes) * totals)
        else:
            weights = compute_class_weight(self.class_weight, classes=classes, y=classes)
        weights[totals == 0] = 0.0
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(f"class_weight={self.class_weight!r} must be finite and not negative")
        return np.asarray(weights)

    def shifted(self, rows: Rows, encoded: Encoded, w: Any, *, intercept: bool) -> Encoded:
        return encoded

    def shifted_by(
        self, rows: Rows, encoded: Encoded, shift: Array | float, unit: float
    ) -> Encoded:
        return encoded


@dataclass(frozen=True)
class Labels(Classes):
    """Sets of labels as targets +-1: one column per label, whether an object has it."""

    names: Array | None = None  # of the labels; None if the columns of a matrix have only numbers

    def suited(self, y: Any, classes: Any = None) -> Coding:
        return self

    def check(self, y: Any, estimator: str, *, block: bool = False) -> Array:
        return checked_indicator(y, self.names)

    def encode(self, rows: Rows, y: Any, classes: Any = None, budget: float = np.inf) -> Encoded:
        q = int(y.shape[1])
        rows.require_memory(
            rows.n * q, budget, f"{rows.n} x {q} targets, one for each object and label,",
            "raise Resources(memory_budget=...), or leave out rare labels",
        )  # fmt: skip
        Y = rows.mapped(y, signs_of, np.int8, q)
        every = np.arange(q) if self.names is None else self.names
        return Encoded(y, Y, classes=every, multilabel=True)

    def weights(
        self, rows: Rows, encoded: Encoded, w: Any, *, part: bool = False
    ) -> tuple[Any, Array | None]:
        return w, None


def read_targets(
    coding: Coding, rows: Rows, y: Any, sample_weight: Any, estimator: str,
    *, intercept: bool, classes: Any = None, part: bool = False,
    before: tuple[Array | float, float] | None = None, budget: float = np.inf,
) -> Encoded:  # fmt: skip
    """Targets and weights checked, and as a learner takes them.

    A ``part`` of the rows may lack classes and weight. If other rows came ``before``, that is the
    mean and the unit of their targets.
    """
    if y is None:
        raise ValueError(
            f"This {estimator} estimator requires y to be passed, but the target y is None."
        )
    y = rows.column(y, partial(coding.check, estimator=estimator), "y")
    encoded, w = coding.encode(rows, y, classes, budget), None
    if sample_weight is not None:
        check = partial(checked_weights, n=rows.n, all_zero=part, block=False)
        w = rows.column(sample_weight, check, "sample_weight")
        w = w if part or not isinstance(w, np.ndarray) else without_extremes(w)
    w, of_classes = coding.weights(rows, encoded, w, part=part)
    encoded = encoded._replace(weights=w, weighted=rows.weighted_rows(w), class_weights=of_classes)
    if before is not None:
        return coding.shifted_by(rows, encoded, *before)
    return coding.shifted(rows, encoded, w, intercept=intercept)


def as_columns(y: Array) -> Array:  # (n,) or (n, q) -> (n, q)
    return y.reshape(len(y), -1)


def without_extremes(w: Array) -> Array:
    """Weights over a power of two, if products of them could overflow or vanish."""
    exponent = int(np.frexp(w.max(initial=0.0))[1])
    return w if abs(exponent) < EXTREME else np.ldexp(w, -exponent)


def less(Y: Array, shift: Array | float, unit: float) -> Array:
    """(Y - shift) / unit, with room for one copy."""
    Y = np.asarray(Y - shift, dtype=np.float64)
    Y /= unit
    return Y


def require_two(classes: Array, which: str = "") -> None:
    """Raise ValueError if there are fewer than two classes."""
    if len(classes) < 2:
        raise ValueError(
            f"a classifier needs at least two classes{which}, got one class: {classes.tolist()}"
        )


def type_of_numbers(k: int) -> np.dtype[Any]:
    """The smallest type of signed integers that has room for the numbers of k classes."""
    return np.min_scalar_type(-max(k, 1))


def numbers_of(y: Array, classes: Array) -> Array:
    """Labels as numbers of classes."""
    numbers = np.empty(len(y), type_of_numbers(len(classes)))
    for part in gen_batches(len(y), AT_ONCE):
        numbers[part] = np.searchsorted(classes, y[part])
    return numbers


def targets_of(y: Array, classes: Array) -> Array:
    """+-1 of labels: one column per class, against the rest; of two classes + for the second."""
    k = len(classes)
    Y = np.full((len(y), 1 if k == 2 else k), -1, np.int8)
    for part in gen_batches(len(y), AT_ONCE):
        numbers = numbers_of(y[part], classes)
        if k == 2:
            Y[part, 0] = 2 * numbers - 1
        else:
            np.put_along_axis(Y[part], numbers[:, None], 1, axis=1)
    return Y


def signs_of(indicator: Array) -> Array:
    """+-1 of 1 and 0, as small integers."""
    return np.asarray(2 * indicator - 1, dtype=np.int8)
