"""Intervals, sets of classes and novelty: fits that keep objects to compare new ones with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kreinlearn._compat import check_sample_weight
from kreinlearn._warnings import warn
from kreinlearn.data.opening import opened, with_target
from kreinlearn.data.tiles import TILE, length, take
from kreinlearn.data.validation import (
    TargetLike,
    WeightLike,
    are_label_sets,
    is_condensed,
    square_from_condensed,
)
from kreinlearn.distributed.entrance import lazy_result
from kreinlearn.distributed.selecting import (
    collected,
    kept_on_workers,
    of_each_row,
    rows_but,
    some_rows,
)
from kreinlearn.kernels.base import Array, Kernel, Objects, symmetrised
from kreinlearn.learn.folds import TRAINING
from kreinlearn.learn.groups import groups_for, of_part
from kreinlearn.learn.stack import two_columns
from kreinlearn.nystrom.landmarks import are_row_numbers
from kreinlearn.pairs.evaluate import places_of
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows
from kreinlearn.solvers.conformal import METHODS, Conformal, LeftOut, behind
from kreinlearn.solvers.novelty import LocalDistances, distances_from

if TYPE_CHECKING:
    from kreinlearn.estimators.learner import KreinClassifierBase, Learner

SHARE = 4  # one object in so many is set aside
MOST = 5000  # objects that new ones are compared with
FOLDS = 5


@dataclass(frozen=True)
class Training:
    """Objects, targets and weights of a fit, of which some objects can be left out.

    Objects of a dask collection stay on the workers; targets and weights are here.
    """

    X: Any
    y: Array
    weights: Array
    given: bool  # whether the user has given weights
    divisible: bool  # whether parts of X can be taken; otherwise some objects have no weight
    lengths: list[int] | None = None  # of the blocks of a dask collection
    groups: Array | None = None  # numbers of groups, or of copies, which are left out together
    named: bool = False  # whether the user has given groups; copies are found again by every fit

    def in_order(self, numbers: Array) -> Array:
        """The place of each object's group in the order of these objects."""
        if self.groups is None:
            return np.arange(len(numbers))
        _, first, group = np.unique(self.groups[numbers], return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[group])

    def fit_without(self, model: Learner, left_out: Array) -> None:
        """Fit to all other objects, as if these were not there."""
        self.require_classes(model, left_out)
        w = self.weights if self.given else None
        if self.divisible:
            others = np.delete(np.arange(len(self.y)), left_out)
            X, w = rows_but(self.X, left_out, self.lengths), None if w is None else w[others]
            groups = of_part(self.groups, others) if self.named else None
            model._fit(X, self.y[others], w, groups, also=keep_distances(model))
            for name in ("landmark_indices_", "support_"):  # rows of all objects, not of these
                if (rows := vars(model).get(name)) is not None:
                    setattr(model, name, others[rows])
            if (folds := vars(model).get("folds_")) is not None:
                model.folds_ = np.full((len(self.y), *np.shape(folds)[1:]), TRAINING)
                model.folds_[others] = np.asarray(folds)
        else:
            w, y = self.weights.copy(), self.y.copy()
            w[left_out] = 0.0
            y[left_out] = y[np.flatnonzero(w)[0]]  # nothing is learned from their own targets
            some = of_part(self.groups, np.flatnonzero(w)) if self.named else None
            groups = None if some is None else self.groups
            model._fit(self.X, y, w, groups, also=keep_distances(model))

    def require_classes(self, model: Learner, left_out: Array) -> None:
        """Raise ValueError if all objects of other classes than one are left out."""
        w = self.weights.copy()
        w[left_out] = 0.0
        if hasattr(model, "predict_set") and len(np.unique(self.y[w > 0])) < 2:
            classes, counts = np.unique(self.y[self.weights > 0], return_counts=True)
            rare = classes[np.argmin(counts)]
            raise ValueError(
                f"class {rare!r} has {counts.min()} object(s), and without those that are left out "
                "only one class remains; pass more objects of it, or conformal=None"
            )

    def objects(self, model: Learner, numbers: Array) -> Objects:
        """Some of the objects, as a fitted model takes them."""
        if self.divisible or self.lengths is not None:
            return some_rows(self.X, numbers, self.lengths)
        return take(model._new_rows(self.X)[0], numbers)


def fit_conformal(
    model: Learner, X: Objects, y: TargetLike, sample_weight: WeightLike,
    groups: ArrayLike | None, method: str,
) -> None:  # fmt: skip
    """Fit a model, and keep the scores of objects that had no part in it."""
    if method not in METHODS:
        raise ValueError(f"conformal={method!r} is not among {', '.join(map(repr, METHODS))}, None")
    with model._fitting(X, y, sample_weight):
        data = training(model, X, y, sample_weight, method)
        numbers = candidates(model, data)
        if groups is not None or data.lengths is None:  # nothing is looked for on workers
            rows = Rows(data.X if groups is None else data.y)
            of_each, _ = groups_for(groups, rows, model._resolved_kernel(), numbers)
            data = replace(data, groups=of_each, named=groups is not None)
        fit = fit_split if method == "split" else fit_folds
        conformal = fit(model, data, model._generator().permutation(numbers))
        model._conformal = conformal


def training(
    model: Learner, X: Objects, y: TargetLike, sample_weight: WeightLike, method: str
) -> Training:
    """The data of a fit, checked as far as is needed to divide them."""
    X, y = with_target(X, y)
    source, kernel = opened(X), model._resolved_kernel()
    if source is not None:
        X = source
    elif kernel.domain.is_matrix and is_condensed(X):
        X = square_from_condensed(X, dissimilarities=kernel.of_dissimilarities)
    if hasattr(model, "predict_set") and are_label_sets(y):
        raise ValueError(
            f"conformal={method!r} makes sets of classes for objects that have one class, and y "
            "has several labels per object; pass conformal=None"
        )
    budget, given = model._budget(), model._resources.memory_budget is not None
    X, lengths = kept_on_workers(X, budget, given=given)
    n = length(X) if lengths is None else sum(lengths)
    y = collected(y, "y", n, budget)
    y = model._recipe.coding.check(y, type(model).__name__)
    check_consistent_length(y, np.empty(n))
    sample_weight = collected(sample_weight, "sample_weight", n, budget)
    weights = check_sample_weight(sample_weight, y, all_zero=False)
    require_suitable(model, kernel, X)
    by_number = are_row_numbers(model._landmarks.given)
    stored = model._resources.store is not None  # the values of all rows, for all models
    divisible = not (source or stored or kernel.domain.is_matrix or by_number)
    return Training(X, y, weights, sample_weight is not None, divisible, lengths)


def require_suitable(model: Any, kernel: Kernel, X: Any) -> None:
    """Raise ValueError for options that name rows, of which some will be left out."""
    cv = getattr(model, "cv", None)
    if cv is not None and not isinstance(cv, Integral | str) and not hasattr(cv, "split"):
        raise ValueError(
            "cv is a list of row numbers, and conformal leaves some of these rows out; pass a "
            "number of folds or a splitter as cv, or conformal=None"
        )
    similarities = kernel.domain.is_matrix and not kernel.of_dissimilarities
    if similarities and np.ndim(X) == 2 and X.shape[0] != X.shape[1]:
        raise ValueError(
            "conformal needs the similarity of each object with itself, and X has the columns of "
            "landmarks alone; pass the whole matrix, or conformal=None"
        )


def candidates(model: Learner, data: Training) -> Array:
    """Numbers of the objects that may be left out: those that count, and are no given landmarks."""
    numbers = np.flatnonzero(data.weights > 0)
    given = model._landmarks.given
    if are_row_numbers(given):
        numbers = np.setdiff1d(numbers, np.asarray(given) % len(data.y))
    elif given is not None and data.divisible:
        are_given = partial(are_among, known={*keys_of(given)})
        numbers = np.setdiff1d(numbers, np.flatnonzero(of_each_row(data.X, are_given)))
    if len(numbers) < 2 * SHARE:
        raise ValueError(
            f"conformal needs at least {2 * SHARE} objects that may be left out, got "
            f"{len(numbers)}; pass more objects, or conformal=None"
        )
    return numbers


def keys_of(X: Any) -> list[Any]:
    """What equal objects have in common: the bytes of numbers, a text itself, or the identity."""
    if sp.issparse(X):
        X = X.toarray()
    if hasattr(X, "columns"):  # a frame
        X = np.asarray(X)
    return [key_of(x) for x in X]


def are_among(X: Any, known: set[Any]) -> Array:  # (n,) bool
    """Which objects are among those whose keys are known."""
    return np.array([key in known for key in keys_of(X)], dtype=bool)


def key_of(x: Any) -> Any:
    if isinstance(x, str | bytes):
        return x
    if not isinstance(x, np.ndarray) or x.dtype == object:
        return id(x)
    return x.shape, (x.astype(np.float64) if x.dtype.kind in "fiub" else x).tobytes()


def fit_split(model: Learner, data: Training, numbers: Array) -> Conformal:
    """A model of three quarters of the objects, and the scores of the others."""
    count, place = min(len(numbers) // SHARE, MOST), data.in_order(numbers)
    within = np.cumsum(np.bincount(place)) <= count  # whole groups, and at least one
    left_out = np.sort(numbers[within[place] | (place == 0)])
    data.fit_without(model, left_out)
    return Conformal("split", scores_of([model], data, [left_out]))


def fit_folds(model: Learner, data: Training, numbers: Array) -> Conformal:
    """A model of all objects, and one without each fold, by the same procedure from its start."""
    place = data.in_order(numbers)
    k = min(FOLDS, int(place.max()) + 1)
    folds = [np.sort(numbers[place % k == j]) for j in range(k)]
    models = [clone(model).set_callbacks() for _ in folds]
    for one, left_out in zip(models, folds, strict=True):
        fit_fold(one, data, left_out)
    data.fit_without(model, np.empty(0, dtype=np.intp))
    some = numbers[:MOST]
    few = [np.sort(some[place[:MOST] % k == j]) for j in range(k)]  # of each fold
    return Conformal("cv+", scores_of(models, data, few), tuple(models))


@_fit_context(prefer_skip_nested_validation=True)
def fit_fold(model: Learner, data: Training, left_out: Array) -> None:
    """Fit the model of a fold, which is a fit of its own to scikit-learn."""
    data.fit_without(model, left_out)


def scores_of(models: list[Any], data: Training, numbers: list[Array]) -> LeftOut:
    """The scores of objects by the models without them."""
    scores, novelty = [], []
    for model, left_out in zip(models, numbers, strict=True):
        X = data.objects(model, left_out)
        own = None
        if needs_diagonal(model):
            own = np.asarray(model.kernel_.diagonal(left_out))
        scores.append(own_scores(model, X, data.y[left_out]))
        novelty.append(novelty_of(model, X, own))
    return LeftOut(
        np.concatenate(scores),
        np.concatenate(novelty),
        np.concatenate([data.weights[one] for one in numbers]),
        np.repeat(np.arange(len(numbers)), [len(one) for one in numbers]),
    )


def own_scores(model: Any, X: Objects, y: Array) -> Array:  # (b, q)
    """How badly a model predicts the targets of objects."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return np.asarray(np.abs(model._scores(X) - y.reshape(len(y), -1)))
    place = np.searchsorted(classes, y)
    known = classes[np.minimum(place, len(classes) - 1)] == y
    scores = np.full((len(y), 1), np.inf)  # of a class that the model has never seen
    scores[known, 0] = class_scores(model, X, classes)[known, place[known]]
    return scores


def class_scores(model: KreinClassifierBase, X: Objects, classes: Array) -> Array:  # (b, c)
    """How far each class is behind the others; infinitely, if the model does not know it."""
    values = np.asarray(model.decision_function(X))
    values = two_columns(values[:, None]) if values.ndim == 1 else values
    scores = np.full((len(values), len(classes)), np.inf)
    scores[:, np.searchsorted(classes, model.classes_)] = behind(values)
    return scores


# Using


def models_in(model: Any) -> list[Any]:
    """A fitted model, and those of its folds, if it has kept them."""
    found: Conformal | None = getattr(model, "_conformal", None)
    return [model, *(() if found is None else found.models)]


def kept(model: Learner, method: str) -> Conformal:
    """What a fit has kept; the error says how to have it kept."""
    check_is_fitted(model)
    found: Conformal | None = getattr(model, "_conformal", None)
    if found is None:
        raise ValueError(
            f"{method} needs objects that had no part in the model, and this one has kept none; "
            'fit it with fit(X, y, conformal="split"), or conformal="cv+"'
        )
    return found


def checked_coverage(found: Conformal, coverage: float, what: str) -> float:
    """A coverage between 0 and 1, with a warning if there are too few objects for it."""
    if not isinstance(coverage, float | np.floating) or not 0 < coverage < 1:
        raise ValueError(
            f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9: the share of "
            "objects whose true value is to be covered"
        )
    if not found.left_out.is_enough(coverage):
        least = int(np.ceil(coverage / (1 - coverage) * (1 - 1e-12)))
        warn(
            f"coverage={coverage:g} needs at least {least} objects that were left out, and there "
            f"are {found.left_out.total:g}: {what}; ask for less, or fit more objects"
        )
    return float(coverage)


def intervals(model: Any, X: Objects, coverage: float) -> Array:  # (n, 2) or (n, q, 2)
    """Intervals that cover the targets of new objects."""
    found = kept(model, "predict_interval")
    coverage = checked_coverage(found, coverage, "all intervals are infinite")
    if (lazy := lazy_result(model, "predict_interval", X, coverage=coverage)) is not None:
        return lazy
    predicted = np.stack([one._scores(X) for one in found.models or (model,)])
    ends = found.left_out.intervals(predicted, coverage)
    return np.asarray(ends[:, 0] if model._one_output else ends)


def class_sets(model: Any, X: Objects, coverage: float) -> Array:  # (n, c) of bool
    """Sets of classes that cover those of new objects; the predicted class is always in them."""
    if getattr(model, "multilabel_", False):
        raise ValueError(
            "predict_set makes sets of classes for objects that have one class, and this model was "
            "fitted to several labels per object; predict gives their labels"
        )
    found = kept(model, "predict_set")
    coverage = checked_coverage(found, coverage, "every set has all classes")
    if (lazy := lazy_result(model, "predict_set", X, coverage=coverage)) is not None:
        return lazy
    scores = [class_scores(one, X, model.classes_) for one in found.models or (model,)]
    sets = found.left_out.sets(np.stack(scores), coverage)
    predicted = scores[0] if not found.models else class_scores(model, X, model.classes_)
    sets[np.arange(len(sets)), np.argmin(predicted, axis=1)] = True
    return sets


def p_values(model: Any, X: Objects, diagonal: Any = None) -> Array:  # (n,)
    """How likely training objects are as unlike the others as new objects are."""
    found = kept(model, "novelty")
    if needs_diagonal(model):
        diagonal = checked_diagonal(diagonal, X)
    elif diagonal is not None:
        raise ValueError(
            "diagonal belongs to a matrix of similarities; of other kernels it is known, leave it "
            "out"
        )
    elif (lazy := lazy_result(model, "novelty", X)) is not None:
        return lazy
    scores = [novelty_of(one, X, diagonal) for one in found.models or (model,)]
    return found.left_out.p_values(np.stack(scores))


# Novelty


def keep_distances(model: Learner) -> Any:
    """Let a fit keep how far its landmarks are from each other."""

    def keep(pairs: Pairs, sample: Sample) -> None:
        at, places = sample.positions(sample.landmarks), places_of(sample.landmarks, sample.columns)
        values = sample.raw if sample.is_square else sample.raw[np.ix_(at, places)]
        if not pairs.kernel.is_dissimilarity:
            own = np.diagonal(values).astype(np.float64)
            values = distances_from(symmetrised(values), own, own)
            model._own_similarities = own
        model._local = LocalDistances.of_landmarks(values)

    return keep


def needs_diagonal(model: Learner) -> bool:
    """Whether k(x, x) of a new object cannot be had from the kernel."""
    kernel = model.kernel_
    return bool(kernel.domain.is_matrix and not kernel.is_dissimilarity)


def checked_diagonal(diagonal: Any, X: Objects) -> Array:
    """The similarities of new objects with themselves."""
    if diagonal is None:
        raise ValueError(
            "the novelty of a precomputed similarity needs diagonal=..., the similarity of each "
            "object with itself: np.ones(len(X)) if it is 1 for all objects"
        )
    values = np.asarray(diagonal, dtype=np.float64)
    if values.shape != (length(X),) or not np.isfinite(values).all():
        raise ValueError(
            f"diagonal must have one finite number for each of {length(X)} objects, got an array "
            f"of shape {values.shape}"
        )
    return values


def novelty_of(model: Any, X: Objects, diagonal: Array | None = None) -> Array:  # (n,)
    """How unlike the landmarks objects are, by their distances to them."""
    found = [np.empty(0)]
    for rows, A, raw, columns in blocks(model, X):
        if model.kernel_.is_dissimilarity:
            D = raw if columns.landmarks is None else raw[:, columns.landmarks]
        else:
            own = model.kernel_.diagonal(A) if diagonal is None else diagonal[rows]
            D = distances_from(raw, np.asarray(own), model._own_similarities)
        found.append(model._local.novelty(D))
    return np.concatenate(found)


def blocks(model: Any, X: Objects) -> Iterator[tuple[slice, Any, Array, Any]]:
    """Rows, objects and kernel values of one block after the other."""
    objects, columns = model._new_rows(X)
    for start in range(0, length(objects), TILE):
        rows = slice(start, min(start + TILE, length(objects)))
        A = objects[rows]
        yield rows, A, columns.raw(A), columns
