"""What all classifiers share: classes, one-vs-rest or one-vs-one, decisions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.opening import opened, with_target
from kreinlearn.distributed import (
    DaskRows,
    accuracy,
    class_totals,
    is_dask,
    lazily,
    tally,
    weighted_by_class,
)
from kreinlearn.estimators._calibration import calibration_of, probabilities
from kreinlearn.estimators._callbacks import reported
from kreinlearn.estimators._dask import (
    Labels,
    checked_labels,
    labels_of_block,
    require_weight,
    scored,
)
from kreinlearn.estimators._learner import KreinLearner, Linear
from kreinlearn.estimators._scoring import FoldClassifier
from kreinlearn.estimators._validation import (
    are_row_numbers,
    is_condensed,
    square_of_condensed,
)
from kreinlearn.learn.folds import FoldRows
from kreinlearn.learn.learning import Problem, Statistics, features_of
from kreinlearn.pairs.panel import POOL_ROWS
from kreinlearn.solvers.result import signed_penalty

PART = 0.7  # of the rows, at least, in a part that calibrates
WAY_ROWS = 4096  # that "ovr" or "ovo" is chosen by, at the most
SolveRows = Callable[[Any, Any, Any, Any], tuple[Any, Any]]  # Phi, Y, w, penalty -> coef, intercept


class KreinClassifier(ClassifierMixin, KreinLearner):
    """Labels as targets +-1; with many classes a column a class, or a pair of classes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinLearner._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "multi_class": [StrOptions({"auto", "ovr", "ovo"})],
        "probability": ["boolean"],
    }

    probability = False  # unless it is a parameter
    _check_targets = staticmethod(labels_of_block)

    def _encoded(self, y: Any, classes: Any = None) -> tuple[Any, Any, Any]:
        """y, targets +-1 (n, q), and the number of each row's class."""
        if isinstance(y, DaskRows):
            return self._encoded_there(y)
        y = checked_labels(y, type(self).__name__)
        found, labels = np.unique(y, return_inverse=True)
        self.classes_ = found if classes is None else np.unique(classes)
        if classes is not None:
            unknown = np.setdiff1d(found, self.classes_)
            if len(unknown):
                raise ValueError(f"y has labels {unknown} that are not among classes={classes!r}")
            labels = np.searchsorted(self.classes_, y)
        require_two(self.classes_)
        return y, one_vs_rest(labels, len(self.classes_), np.int8), labels

    def _encoded_there(self, y: DaskRows) -> tuple[Any, Any, Labels]:
        """The same of labels on workers: they are counted there, and stay there."""
        found = Labels(y, tally(y, None))
        self.classes_ = found.tally.labels
        require_two(self.classes_)
        k = len(self.classes_)
        encode = partial(targets_of, classes=self.classes_)
        return y, y.mapped(encode, np.int8, 1 if k == 2 else k), found

    def _weights(self, sample_weight: Any, X: Any, labels: Any, *, part: bool = False) -> Any:
        w = super()._weights(sample_weight, X, labels, part=part)
        if isinstance(labels, Labels):
            return self._weights_there(w, labels)
        if self.class_weight is not None:
            of_classes = self._of_classes(class_totals(labels, w, len(self.classes_)))
            w = of_classes[labels] * (1.0 if w is None else w)
        if w is not None and not part:
            left = np.unique(labels[w > 0])
            if len(left) < 2:
                require_two(self.classes_[left], " of positive weight")
        return w

    def _weights_there(self, w: Any, labels: Labels) -> Any:
        if self.class_weight is None:
            return w
        totals = labels.tally if w is None else tally(labels.y, w)
        of_classes = self._of_classes(totals.weights)
        require_weight(int(totals.counts[of_classes == 0].sum()))
        return weighted_by_class(labels.y, w, self.classes_, of_classes)

    def _of_classes(self, totals: Any) -> Any:
        """class_weight, as numbers, from the weight of each class; 0 if its rows weigh nothing."""
        classes, given = self.classes_, self.class_weight
        with np.errstate(divide="ignore"):
            found = compute_class_weight(given, classes=classes, y=classes, sample_weight=totals)
        found[totals == 0] = 0.0
        if not (np.isfinite(found) & (found >= 0)).all():
            raise ValueError(f"class_weight={self.class_weight!r} must be finite and not negative")
        return found

    @lazily
    def predict(self, X: Any) -> Any:
        """The class of each object."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[np.argmax(scores, axis=1)]

    @lazily
    def decision_function(self, X: Any) -> Any:
        """Scores (n,) of two classes, positive for the second; (n, n_classes) of more."""
        return class_scores(self._decision(X), len(self.classes_), self.multi_class_)

    def _chooses(self, kernel: Any) -> bool:
        ways = self.multi_class == "auto" and len(self.classes_) > 2
        return bool(ways or super()._chooses(kernel))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on objects X with labels y, which may be a column of a table X."""
        return scored(self, X, y, sample_weight, accuracy, super().score)

    @reported
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.probability:
            if is_dask(X):
                raise TypeError(
                    "probability=True fits parts of the rows again, and takes no dask collection; "
                    "pass probability=False"
                )
            X, y = with_target(X, y)
            X = self._sliceable(X)
        super()._fit(X, y, sample_weight)
        if not self.probability:
            return
        fitted = self._map
        del self._map  # unfitted until it is calibrated
        y = np.asarray(y).ravel()
        self._calibration = calibration_of(self._fixed(), X, y, sample_weight)
        self._map = fitted

    def _sliceable(self, X: Any) -> Any:
        """X of which scikit-learn can take parts; a vector of distances as a matrix."""
        if opened(X) is not None and not isinstance(X, np.memmap):
            raise TypeError(
                f"probability=True fits parts of the rows again, which are taken from memory; got "
                f"a {type(X).__name__}: pass an array or list, or probability=False"
            )
        kernel = self._resolved_kernel()
        if kernel.takes == "precomputed" and is_condensed(X):
            X = square_of_condensed(X, kernel)
        if self.precomputed_columns == "landmarks":
            raise ValueError(
                "probability=True fits parts of the rows, which landmark columns are not enough "
                'for; pass precomputed_columns="all", or probability=False'
            )
        return X

    def _fixed(self) -> Any:
        """A model like this one for parts of the rows, with everything that was found given."""
        found: dict[str, Any] = {
            "probability": False, "multi_class": self.multi_class_, "cv": None, "scoring": None,
        }  # fmt: skip
        for name in ("lambda_plus", "lambda_minus", "lambda_l1", "similarity", "kernel_params"):
            if hasattr(self, f"{name}_"):
                found[name] = getattr(self, f"{name}_")
        by_number = are_row_numbers(self.landmarks)
        if by_number and self.kernel_.takes != "precomputed":
            found |= {"landmarks": self.landmarks_, "n_landmarks": "auto"}
        elif by_number or isinstance(self.landmarks, str):
            share = self._n_chosen / len(self.folds_)  # of a part there are fewer, and others
            found["n_landmarks"] = None if share == 1 else share
            found["landmarks"] = "auto" if by_number else self.landmarks
        if getattr(self, "rank", None) is not None and self.rank > PART * self._n_chosen:
            found["rank"] = None  # more than a part's landmarks may have
        return clone(self).set_callbacks().set_params(**found)

    @available_if(lambda self: self.probability)
    @lazily
    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, n_classes); they rise with the decision values of a class."""
        check_is_fitted(self)
        return probabilities(self._calibration, self, X)

    def _fold_model(self, coef: Any, intercept: Any) -> FoldClassifier:
        return FoldClassifier(coef, intercept, self.classes_)

    def _finished(self, problem: Problem, statistics: Statistics, values: Any) -> Linear:
        """The model of the penalties found, by a column a class or a pair of classes."""
        n_classes = len(self.classes_)
        self.multi_class_ = self._way(problem, statistics, values) if n_classes > 2 else "ovr"
        if self.multi_class_ == "ovr":
            return self._finished_ovr(problem, statistics, values)
        return self._paired(problem, statistics, values)

    def _way(self, problem: Problem, statistics: Statistics, values: Any) -> str:
        """ "ovr" or "ovo": as asked for, or as the folds say; ties go to "ovr"."""
        if isinstance(problem.Y, DaskRows):
            if self.multi_class == "ovo":
                raise ValueError(
                    'multi_class="ovo" holds features of all rows, those of a dask collection are '
                    'not held; pass multi_class="ovr"'
                )
            return "ovr"
        if self.multi_class != "auto":
            return str(self.multi_class)
        if len(problem.Y) > POOL_ROWS:
            return "ovr"  # which streams, here and on workers
        splits = problem.sampled(problem.split_rows(statistics.map), WAY_ROWS)
        labels = np.argmax(problem.Y[problem.rows], axis=1)
        self.multi_class_errors_ = cross_validated_errors(
            problem, splits, labels, len(self.classes_), self._solve_rows, self._penalties(values)
        )
        return min(self.multi_class_errors_, key=lambda name: self.multi_class_errors_[name])

    def _paired(self, problem: Problem, statistics: Statistics, values: Any) -> Linear:
        labels = np.argmax(problem.Y, axis=1)
        w = np.ones(len(labels)) if problem.weights is None else problem.weights
        penalty = w.sum() * self._penalties(values)(statistics.map.S)
        Phi = features_of(problem, statistics)
        solve, n_classes = self._solve_rows, len(self.classes_)
        return Linear(*one_vs_one(Phi, labels, w, penalty, solve, n_classes))

    def _penalties(self, values: Any) -> Callable[[Any], Any]:
        return lambda S: signed_penalty(S, values[0], values[1])


def require_two(classes: Any, which: str = "") -> None:
    if len(classes) < 2:
        raise ValueError(
            f"a classifier needs at least two classes{which}, got one class: {classes.tolist()}"
        )


def one_vs_rest(labels: Any, n_classes: int, dtype: Any = np.float64) -> Any:
    """+-1, a column a class; one column, + for the second, if there are two."""
    numbers = np.arange(n_classes) if n_classes > 2 else np.array([1])
    return np.where(labels[:, None] == numbers, dtype(1), dtype(-1))


def targets_of(y: Any, classes: Any) -> Any:
    """+-1 of labels, as small integers."""
    return one_vs_rest(np.searchsorted(classes, y), len(classes), np.int8)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_classes), 2))


def class_scores(scores: Any, n_classes: int, multi_class: str) -> Any:
    """Decision values a class, from a column a class or a pair of classes."""
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovr":
        return scores
    return _ovr_decision_function(scores > 0, scores, n_classes)


def one_vs_one(
    Phi: Any, labels: Any, w: Any, penalty: Any, solve: SolveRows, n_classes: int
) -> tuple[Any, Any]:
    """Coefficients (r, pairs) and intercepts; of a pair the second class is the positive one."""
    members = [np.flatnonzero((labels == c) & (w > 0)) for c in range(n_classes)]
    pairs = pairs_of(n_classes)
    coef, intercept = np.zeros((Phi.shape[1], len(pairs))), np.zeros(len(pairs))
    for p, (a, b) in enumerate(pairs):
        rows = np.concatenate([members[a], members[b]])
        if len(rows):
            y = np.repeat([-1.0, 1.0], [len(members[a]), len(members[b])])[:, None]
            coef[:, [p]], intercept[[p]] = solve(Phi[rows], y, w[rows], penalty)
    return coef, intercept


def cross_validated_errors(
    problem: Problem,
    splits: list[FoldRows],
    labels: Any,
    n_classes: int,
    solve: SolveRows,
    penalties: Callable[[Any], Any],
) -> dict[str, float]:
    """Share of the validated rows that each way of using binary problems gets wrong."""
    w = problem.held()[1]
    w = np.ones(len(labels)) if w is None else w
    wrong, total = {"ovr": 0.0, "ovo": 0.0}, 0.0
    for split in splits:
        train, valid = split.train, split.valid
        penalty = w[train].sum() * penalties(split.S)
        given = split.Phi[train], labels[train], w[train]
        models = {
            "ovr": solve(given[0], one_vs_rest(given[1], n_classes), given[2], penalty),
            "ovo": one_vs_one(*given, penalty, solve, n_classes),
        }
        total += w[valid].sum()
        for name, (coef, intercept) in models.items():
            scores = class_scores(split.Phi[valid] @ coef + intercept, n_classes, name)
            missed = np.argmax(scores, axis=1) != labels[valid]
            wrong[name] += w[valid][missed].sum()
    return {name: value / total for name, value in wrong.items()}
