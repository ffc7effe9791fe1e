"""partial_fit: landmarks are those of the first part, sums of later parts are added to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator, blocks_to_read, length
from kreinlearn.distributed import is_dask
from kreinlearn.estimators._callbacks import reported
from kreinlearn.estimators._learner import KreinLearner
from kreinlearn.learn.folds import TRAINING, downdated, with_fold
from kreinlearn.learn.learning import MeanLoss, Problem, Statistics, gather, gram_scale
from kreinlearn.learn.precision import guarded, require_learned
from kreinlearn.learn.search import Tuned, given, tune_apart
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.nystrom.sweep import RowWork, n_evaluated, sum_groups
from kreinlearn.sums.moments import Moments, Targets, total_terms
from kreinlearn.sums.parallel import serial_blas, worker_count

LEAST_VALIDATED = 0.2  # of all weight, for penalties to be tuned anew


@dataclass
class Sums:
    """What is kept between parts: a group a fold, the last of rows that are always trained on."""

    groups: list[Moments]
    map: FeatureMap  # of C / unit
    unit: float
    rng: np.random.Generator
    values: Any  # penalties last used, in scaled features


class Incremental(KreinLearner):
    """Least squares whose statistics add up."""

    @reported
    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> None:
        if is_dask(X):
            raise TypeError("partial_fit takes parts in memory; give fit the whole dask collection")
        if hasattr(self, "_sums"):
            self._next_part(X, y, sample_weight, classes)
        else:
            self._first_part(X, y, sample_weight, classes)

    @guarded
    def _first_part(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
        if not (self.cv is None or isinstance(self.cv, Integral)):
            raise ValueError(f"partial_fit draws its folds: cv={self.cv!r} must be an int or None")
        if self.scoring is not None:
            raise ValueError(
                f"partial_fit tunes for the squared error, got scoring={self.scoring!r}; "
                "pass scoring=None, or fit all data at once"
            )
        rng = as_generator(self.random_state)
        with serial_blas():
            problem = self._prepared_problem(X, y, sample_weight, rng, classes)
            statistics = gather(problem, self._core, by_fold=self._tunes(), folds=_apart(problem))
            values = self._found(problem, statistics)
            require_learned(problem, values)
            model = self._finished_ovr(problem, statistics, values)
        self._keep_model(problem, statistics, model)
        self._sums = Sums(statistics.groups, statistics.map, statistics.unit, rng, values)

    def _next_part(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
        check_is_fitted(self)
        X, y = with_target(X, y)
        X = self._validated(X, self.kernel_, reset=False)
        self._require_targets(X, y)
        shape = vars(self).get("_one_output")
        _, Y, labels = self._encoded(y, self._known_classes(classes))
        if shape is not None:
            self._one_output = shape  # as in the first part
        q = len(self._sums.groups[0].y_sums)
        if Y.shape[1] != q:
            raise ValueError(f"y has {Y.shape[1]} outputs, but the first part had {q}")
        w = self._weights(sample_weight, X, labels, part=True)
        with serial_blas():
            self._add(X, self._shifted(Y, w), w)
            sums = self._sums
            statistics = Statistics(sums.groups, self._columns, sums.unit, sums.map)
            self._observe(statistics)
            tuned = self._tuned_again(statistics)
            sums.values = tuned.values
            self._keep(tuned, self._root(sums.unit))
            model = self._finished_ovr(None, statistics, tuned.values)
        self._keep_coefficients(statistics, model)

    def _known_classes(self, classes: Any) -> Any:
        return None

    def _add(self, X: Any, Y: Any, w: Any) -> None:
        """The moments of new rows, each in a random fold."""
        sums, n = self._sums, length(X)
        groups, k = None, len(sums.groups)
        if k > 1:
            groups = sums.rng.integers(k - 1, size=n)
        targets = Targets(Y, w, groups, k)
        workers = worker_count(self.n_jobs) if self.kernel_.threads else 1
        nothing, m = np.empty(0, dtype=np.intp), len(sums.map.W)
        work = RowWork(
            self._columns, np.arange(m), sums.unit, Y.shape[1], k, m,
            single=self._dtype == "float32",
        )  # fmt: skip
        progress, width = self._progress(), n_evaluated(self._columns, m)
        with progress.step("new rows", n, n * width):
            total = sum_groups(
                blocks_to_read(X, nothing, targets.by_group), work, targets, n, workers=workers,
                look_at=lambda numbers, _: progress.add(len(numbers), len(numbers) * width),
            )  # fmt: skip
        for mine, new in zip(sums.groups, total.groups, strict=True):
            mine += new

    def _tuned_again(self, statistics: Statistics) -> Tuned:
        unknowns = self._unknowns(self._root(statistics.unit))
        if not unknowns.free:
            return given(unknowns)
        terms = statistics.terms()
        whole = total_terms(terms).centred(intercept=self.fit_intercept)
        folds = downdated(terms, statistics.map.S, intercept=self.fit_intercept)
        if sum(fold.n_valid for fold in folds) < LEAST_VALIDATED * whole.n:
            return replace(given(unknowns), values=self._sums.values)
        objective = MeanLoss(folds, self._fold_loss)
        return tune_apart(objective, gram_scale(whole.G, whole.n), unknowns)


def _apart(problem: Problem) -> Any:
    """Folds of the first part for later use: landmarks are always trained on."""
    inside = problem.panel.landmarks[problem.panel.landmarks >= 0]
    return with_fold(problem.folds, inside, TRAINING)
