"""What all learners share: parameters, targets, splits, the choice of a similarity, prediction."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
)

from kreinlearn._warnings import warn
from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator, length
from kreinlearn.distributed import DaskRows, sums
from kreinlearn.estimators._base import KreinEstimator
from kreinlearn.estimators._callbacks import reported
from kreinlearn.estimators._dask import beside, checked_weights, class_counts, require_weight
from kreinlearn.estimators._scoring import cross_validated_score
from kreinlearn.estimators._storing import storing
from kreinlearn.kernels import resolve
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS, TRANSFORMS
from kreinlearn.kernels.precomputed import Precomputed, PrecomputedDissimilarity
from kreinlearn.learn.folds import TileFolds, fold_count, given_folds, random_folds
from kreinlearn.learn.learning import Problem, Statistics, folds_of, gather, statistics_scale
from kreinlearn.learn.precision import guarded, require_learned
from kreinlearn.learn.search import Tuned, Unknowns, pattern_search
from kreinlearn.learn.similarity import Candidate, choose_similarity, with_kernel
from kreinlearn.nystrom.approximation import fit_core, grow_landmarks, open_panel
from kreinlearn.nystrom.core import OVERSAMPLING, FeatureMap, landmark_map
from kreinlearn.pairs.panel import POOL_ROWS
from kreinlearn.solvers.result import Fold, signed_penalty
from kreinlearn.sums.parallel import serial_blas

MOST_LANDMARKS = 1000  # of n_landmarks="auto"
PENALTY = [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]


class Linear(NamedTuple):
    """A model that is linear in the scaled features."""

    coef: Any  # (r, q)
    intercept: Any  # (q,)


class KreinLearner(KreinEstimator):
    """From validated data to statistics and tuned penalties; subclasses solve and predict."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinEstimator._parameter_constraints,
        "kernel_params": [dict, list, StrOptions({"auto"}), None],
        "similarity": [StrOptions({"auto", *TRANSFORMS})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "lambda_plus": PENALTY,
        "lambda_minus": [*PENALTY, StrOptions({"equal"})],
        "cv": ["cv_object", StrOptions({"loo"})],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "scoring": [str, callable, None],
        "fit_intercept": ["boolean"],
    }

    _shift: Any = 0.0  # of the targets, before anything is learned of them

    def _resolved_kernel(self) -> Any:
        kernel = super()._resolved_kernel()
        if isinstance(kernel, PrecomputedDissimilarity):  # transformed here, not by the kernel
            return Precomputed(is_dissimilarity=True)
        return kernel

    def _auto_landmarks(self, n: int, rank: int | None) -> int:
        return max(MOST_LANDMARKS, rank or 0)

    # Targets and weights

    def _weights(self, sample_weight: Any, X: Any, labels: Any, *, part: bool = False) -> Any:
        """Weights of the rows, or None if all are 1; ``part``: other rows were seen before."""
        if sample_weight is None:
            return None
        if isinstance(sample_weight, DaskRows):
            require_weight(sums(sample_weight, sample_weight).without)
            return sample_weight
        return _check_sample_weight(
            sample_weight, np.empty((length(X), 1)), dtype=np.float64, ensure_non_negative=True,
            allow_all_zero_weights=part,
        )  # fmt: skip

    def _require_targets(self, X: Any, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        check_consistent_length(X, y)

    def _folds(self, n: int, X: Any, y: Any, labels: Any, rng: np.random.Generator) -> Any:
        """A fold number for each row, and how many folds there are."""
        if self.cv is None or isinstance(self.cv, Integral):
            k = min(fold_count(n, class_counts(labels)) if self.cv is None else int(self.cv), n)
            if n <= POOL_ROWS:
                return random_folds(n, k, rng, labels), k
            folds = TileFolds(n, k, int(rng.integers(2**63)))
            return folds if isinstance(X, DaskRows) else np.asarray(folds), k
        if isinstance(X, DaskRows):
            raise ValueError(
                f"folds of a dask collection are drawn, got cv={self.cv!r}; pass an int"
            )
        if isinstance(self.cv, str):  # "loo"
            return np.arange(n), n
        splits = list(check_cv(self.cv, y, classifier=labels is not None).split(X, y))
        return given_folds(n, splits), len(splits)

    def _tuned_before(self, problem: Problem, unknowns: Unknowns) -> Tuned | None:
        """Penalties of least squares, if they were found when the similarity was chosen."""
        alike = unknowns.fixed == (None, None) and self.cv != "loo" and not self.n_restarts
        return problem.tuned if alike else None

    def _fold_terms(self, problem: Problem, statistics: Statistics) -> list[Fold]:
        folds = folds_of(problem, statistics)
        if not folds:
            raise ValueError(
                f"n_samples={problem.n_weighted} of positive weight leaves no fold to tune the "
                "penalties on; give lambda_plus and lambda_minus, or another cv"
            )
        return folds

    # Fitting

    def _problem(
        self, X: Any, kernel: Any, y: Any, Y: Any, w: Any, labels: Any, rng: np.random.Generator
    ) -> Problem:
        """Landmarks chosen, rows split, and the similarity found."""
        rank = getattr(self, "rank", None)
        plan = self._plan(X, kernel, rank)
        if w is not None and not isinstance(w, DaskRows) and not w.all():
            eligible = np.flatnonzero(w)
            m = min(plan.n_landmarks, len(eligible))
            plan = replace(plan, eligible=eligible, n_landmarks=m)
        if self._chooses(kernel):
            plan = replace(plan, sample=True)
        panel = open_panel(kernel, X, plan, rng)
        grow_landmarks(panel, plan, rng)
        self._probe_landmarks(panel)
        folds, n_folds = self._folds(length(X), X, y, labels, rng)
        problem = Problem(
            panel, plan, rng, y, Y, w, folds, n_folds, self.fit_intercept, self._map_of(plan)
        )
        return self._with_similarity(problem)

    def _chooses(self, kernel: Any) -> bool:
        """Whether rows beside the landmarks are looked at before the pass over all of them."""
        of_dissimilarity = kernel.is_dissimilarity and self.similarity == "auto"
        of_kernels = not isinstance(self.kernel_params, dict | None)
        left_out = self.cv == "loo" and self._tunes()
        return bool(of_dissimilarity or of_kernels or left_out or self.scoring is not None)

    def _named_params(self) -> Any:
        if isinstance(self.kernel_params, list):
            return next((params for params in self.kernel_params if isinstance(params, dict)), None)
        return None if isinstance(self.kernel_params, str) else self.kernel_params

    def _with_similarity(self, problem: Problem) -> Problem:
        """The kernel's parameters and the transformation of a dissimilarity, given or chosen."""
        candidates = self._candidates(problem)
        best = candidates[0]
        if len(candidates) > 1:
            # by least squares with tuned penalties, whatever is learned afterwards
            unknowns = Unknowns((None, None), equal=self.lambda_minus == "equal")
            best, self.choices_ = choose_similarity(candidates, unknowns)
            if len(problem.rows) == len(problem.Y):
                best.problem.tuned = self.choices_[0].tuned
        if best.kernel_params is not None:
            self.kernel_params_ = best.kernel_params
        if best.transform is not None:
            self.similarity_ = best.transform
        return best.chosen()

    def _candidates(self, problem: Problem) -> list[Candidate]:
        found, first = [], self._named_params()
        for params in self._grid(problem.panel.kernel):
            seen = problem
            if params is not None and params is not first:
                kernel = self._with_processes(resolve(self.kernel, params), problem.panel.kernel)
                seen = with_kernel(problem, kernel.fit(problem.panel.X.X, problem.rng))
            names: tuple[str | None, ...] = (None,)
            if seen.panel.transform is not None:
                seen.panel.refreeze()  # on all landmarks, not on those of the first draw
                names = AUTO_TRANSFORMS if self.similarity == "auto" else (self.similarity,)
            found += [Candidate(seen, params, name) for name in names]
        return found

    def _grid(self, kernel: Any) -> list[dict[str, Any] | None]:
        """Parameters of the kernel to choose from; None: the kernel as it is."""
        if isinstance(self.kernel_params, dict | None):
            return [None]
        if isinstance(self.kernel_params, list):
            if not self.kernel_params or not all(isinstance(p, dict) for p in self.kernel_params):
                raise ValueError(
                    f"kernel_params={self.kernel_params!r} is no list of dicts to choose from"
                )
            return list(self.kernel_params)
        grid = kernel.grid()
        if not grid:
            raise ValueError(
                f'kernel_params="auto" has no parameters to try for kernel={self.kernel!r}; '
                "pass a dict, or a list of dicts to choose from"
            )
        return list(grid)

    def _map_of(self, plan: Any) -> Any:
        """W and S from K_ZZ, for the maps that folds rebuild."""
        k = plan.rank
        if plan.core == "truncated" and k is None:
            k = max(1, int(plan.n_landmarks / OVERSAMPLING))

        def of(K_ZZ: Any, eps: float) -> tuple[Any, Any]:
            return landmark_map(K_ZZ, k if plan.core == "truncated" else None, eps)

        return of

    def _core(self, *args: Any) -> FeatureMap:
        plan = args[4]
        feature_map = fit_core(*args)
        return feature_map.cut(plan.rank)

    def _statistics(self, problem: Problem) -> Statistics:
        by_fold = self._tunes() and not problem.honest and self.cv != "loo"
        return gather(problem, self._core, by_fold=by_fold)

    @reported
    @guarded
    @storing
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        rng = as_generator(self.random_state)
        try:
            with serial_blas():
                problem = self._prepared_problem(X, y, sample_weight, rng)
                statistics = self._statistics(problem)
                model = self._learn(problem, statistics)
                root = self._root(statistics.unit)
                penalties = np.array([self.lambda_plus_, self.lambda_minus_]) / root / root
                require_learned(problem, penalties)
            self._keep_model(problem, statistics, model)
        except BaseException:
            self._forget()
            raise

    def _prepared_problem(
        self, X: Any, y: Any, sample_weight: Any, rng: np.random.Generator, classes: Any = None
    ) -> Problem:
        X, y = with_target(X, y)
        X, kernel = self._prepared(X, rng)
        y, sample_weight = self._beside(X, y, sample_weight)
        self._require_targets(X, y)
        y, Y, labels = self._encoded(y, classes)
        w = self._weights(sample_weight, X, labels, part=classes is not None)
        return self._problem(X, kernel, y, self._shifted(Y, w), w, labels, rng)

    def _beside(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Targets and weights where the rows are."""
        check = partial(self._check_targets, estimator=type(self).__name__)
        y = beside(X, y, check, "y")
        return y, beside(X, sample_weight, checked_weights, "sample_weight")

    def _shifted(self, Y: Any, w: Any) -> Any:
        return Y

    def _keep_model(self, problem: Problem, statistics: Statistics, model: Linear) -> None:
        fitted = statistics.fitted(problem.panel)
        self._n_chosen = problem.plan.n_landmarks
        self._keep_coefficients(statistics, model)
        self.folds_ = problem.folds
        self._store(fitted, fitted.map)
        if self.rank_ == 0:
            warn("no dimension is left, rank_ is 0: the kernel is zero, or the same for all pairs")

    def _keep_coefficients(self, statistics: Statistics, model: Linear) -> None:
        """Coefficients of features and of landmarks, in the unit of the kernel."""
        root = self._root(statistics.unit)
        self.coef_ = self._shaped((model.coef / root).T)
        self.dual_coef_ = self._shaped((statistics.map.W @ model.coef / statistics.unit).T).T
        self._intercept = model.intercept + self._shift
        self.intercept_ = self._shaped(self._intercept)

    def _shaped(self, values: Any) -> Any:
        """As scikit-learn has it: without the axis of outputs where y has none."""
        return values

    def _root(self, unit: float) -> float:
        """The unit of features: penalties scale with its square."""
        return float(np.sqrt(unit))

    def _decision(self, X: Any) -> Any:  # (n, q)
        check_is_fitted(self)
        scores = self._project(X, self.dual_coef_.reshape(len(self.dual_coef_), -1))
        scores += self._intercept.astype(scores.dtype)
        return scores

    # Penalties

    def _tunes(self) -> bool:
        return bool(self._unknowns(1.0).free)

    def _unknowns(self, root: float) -> Unknowns:
        """Penalties in the scaled features, whose unit is ``root``; None where they are tuned."""

        def given(value: Any) -> float | None:
            return None if isinstance(value, str) else value / root / root

        equal = self.lambda_minus == "equal"
        plus = given(self.lambda_plus)
        return Unknowns((plus, plus if equal else given(self.lambda_minus)), equal)

    def _keep(self, tuned: Tuned, root: float) -> None:
        self.lambda_plus_ = float(tuned.values[0]) * root * root
        self.lambda_minus_ = float(tuned.values[1]) * root * root
        if not len(tuned.trials):
            return
        self.cv_trials_ = tuned.trials.copy()
        with np.errstate(over="ignore"):  # of squared similarities it may be out of range
            self.cv_trials_[:, :2] *= root
            self.cv_trials_[:, :2] *= root
        if self.scoring is None:
            self.cv_loss_ = tuned.loss
        else:
            self.cv_trials_[:, -1] *= -1
            self.cv_score_ = -tuned.loss

    def _for_score(
        self, problem: Problem, statistics: Statistics, unknowns: Unknowns, tuned: Tuned
    ) -> Tuned:
        """From the penalties of the smallest loss on to those of the best score."""
        if self.scoring is None:
            return tuned
        fixed = (*unknowns.fixed[:2], *tuned.values[2:])
        score = cross_validated_score(
            problem, problem.split_rows(statistics.map), self.scoring,
            self._fold_model, self._solve_rows,
            lambda values, S: signed_penalty(S, values[0], values[1]),
        )  # fmt: skip
        scale = statistics_scale(statistics, intercept=self.fit_intercept)
        return pattern_search(score, scale, replace(unknowns, fixed=fixed), tuned.values)

    def _warn_singular(self) -> None:
        warn(
            "the penalty is zero and the Gram matrix singular: the solution of smallest norm is "
            "taken; give positive lambda_plus and lambda_minus"
        )
