"""Krein squared-hinge support vector machine."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn._warnings import warn
from kreinlearn.distributed import DaskMargins, DaskRows, KernelRuns, room
from kreinlearn.estimators._classifier import KreinClassifier
from kreinlearn.estimators._learner import Linear
from kreinlearn.estimators._sparse import fit_sparse
from kreinlearn.learn.feature_rows import FeatureRows, Kept, Known, with_constant
from kreinlearn.learn.hinge import HingeObjective
from kreinlearn.learn.learning import (
    MeanLoss,
    Problem,
    Statistics,
    gather,
    statistics_scale,
    terms_of,
)
from kreinlearn.learn.search import Tuned, Unknowns, given, one_penalty, tune, tune_apart
from kreinlearn.nystrom.core import FeatureMap
from kreinlearn.pairs.evaluate import over
from kreinlearn.solvers.least_squares import ridge, ridge_fold
from kreinlearn.solvers.margins import DenseRows, Margins, RowMargins
from kreinlearn.solvers.result import signed_penalty
from kreinlearn.solvers.span import in_span, scaling
from kreinlearn.solvers.squared_hinge import newton
from kreinlearn.sums.moments import Targets, total_terms

TUNED_ROWS = 4096  # rows that the penalties of the hinge loss are tuned on
KEPT = 0.125  # of the budget, for kernel values of rows on the move where not all are held
TUNED_OUTPUTS = 4  # classes, of many, whose loss is looked at
ROW_NUMBERS = 6  # of a row and output: targets, weights, decisions now and next, their margins


class KreinSVC(KreinClassifier):
    """Squared-hinge support vector machine in a Krein space.

    Minimises ``mean(max(0, 1 - y f(x)) ** 2) + lambda_plus |f_+|^2 + lambda_minus |f_-|^2`` by a
    finite Newton method with exact line search.

    Parameters
    ----------
    penalty : "l2" (the Krein norms), "l1" or "elasticnet": ``lambda_l1 * sum_j |a_j|`` of the
        coefficients a of landmarks, in units in which k(x, z_j) has mean square 1, instead of the
        norms or beside them. Landmarks with no coefficient are dropped, and never evaluated again
        (but for those that centre or scale a dissimilarity).
    lambda_l1 : strength of the l1 penalty, or "auto": the largest whose cross-validated loss is
        within one standard error of the smallest.
    max_iter : Newton steps at most.
    others : as in ``KreinRidgeClassifier``.

    Attributes
    ----------
    n_iter_ : Newton steps taken, the largest over the binary problems.
    lambda_l1_, l1_path_ : strength, and (strength, loss, standard error) of those tried.
    n_active_landmarks_ : with an l1 penalty, how many landmarks have a coefficient.
    others : as in ``KreinRidgeClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KreinSVC("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinClassifier._parameter_constraints,
        "cv": ["cv_object"],  # leaving each row out of a machine is not done at once
        "penalty": [StrOptions({"l2", "l1", "elasticnet"})],
        "lambda_l1": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _takes_dask = True

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        n_landmarks: Any = "auto",
        landmarks: Any = "auto",
        similarity: str = "auto",
        rank: int | None = None,
        core: str = "plain",
        lambda_plus: Any = "auto",
        lambda_minus: Any = "auto",
        penalty: str = "l2",
        lambda_l1: Any = "auto",
        class_weight: Any = None,
        multi_class: str = "auto",
        probability: bool = False,
        max_iter: int = 1000,
        cv: Any = None,
        scoring: Any = None,
        n_restarts: int = 0,
        fit_intercept: bool = True,
        kernel_params: Any = None,
        precomputed_columns: str = "all",
        symmetrize: str = "average",
        dtype: Any = None,
        memory_budget: Any = None,
        store: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.similarity = similarity
        self.rank = rank
        self.core = core
        self.lambda_plus = lambda_plus
        self.lambda_minus = lambda_minus
        self.penalty = penalty
        self.lambda_l1 = lambda_l1
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.probability = probability
        self.max_iter = max_iter
        self.cv = cv
        self.scoring = scoring
        self.n_restarts = n_restarts
        self.fit_intercept = fit_intercept
        self.kernel_params = kernel_params
        self.precomputed_columns = precomputed_columns
        self.symmetrize = symmetrize
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.store = store
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose landmarks, pass over the data, tune the penalties, solve."""
        try:
            self._fit(X, y, sample_weight)
        finally:
            for name in ("_held", "_known"):  # however it ended
                self.__dict__.pop(name, None)
        return self

    def _chooses(self, kernel: Any) -> bool:
        strength = self.penalty != "l2" and self.lambda_l1 == "auto"
        return super()._chooses(kernel) or self._tunes() or strength

    def _unknowns(self, root: float) -> Unknowns:
        return Unknowns((0.0, 0.0)) if self.penalty == "l1" else super()._unknowns(root)

    def _statistics(self, problem: Problem) -> Statistics:
        """Kernel values of all rows are held if the budget has room for them."""
        n, m, q = len(problem.Y), len(problem.panel.landmarks), problem.Y.shape[1]
        size, budget = 8 * n * (m + ROW_NUMBERS * q), problem.plan.budget
        if isinstance(problem.Y, DaskRows):
            there = room(budget, given=self.memory_budget is not None)
            self._held: Any = KernelRuns(keep=size <= there)
        else:
            self._held = np.empty((n, m)) if size <= budget else None
        self._known = problem.rows  # a core may take in others
        return gather(problem, self._core, by_fold=self._by_fold(problem), hold=self._held)

    def _by_fold(self, problem: Problem) -> bool:
        return self._tunes() and not problem.honest

    def _learn(self, problem: Problem, statistics: Statistics) -> Linear:
        root = self._root(statistics.unit)
        unknowns = self._unknowns(root)
        free = bool(unknowns.free)
        tuned = self._tuned(problem, statistics, unknowns) if free else given(unknowns)
        self._keep(tuned, root)
        self.n_iter_ = 0
        if self.penalty == "l2":
            return self._finished(problem, statistics, tuned.values)
        return self._sparse(problem, statistics, tuned.values)

    def _tuned(self, problem: Problem, statistics: Statistics, unknowns: Unknowns) -> Tuned:
        """Least squares first, as it is cheap; the hinge loss from there, on rows in memory."""
        scale = statistics_scale(statistics, intercept=self.fit_intercept)
        of_all = self._tuned_before(problem, unknowns)
        if of_all is None:
            folds = self._fold_terms(problem, statistics)
            of_all = tune_apart(MeanLoss(folds, ridge_fold), scale, unknowns)
        if not of_all.apart:  # what does not pay there is not looked for here
            unknowns = one_penalty(of_all.values)
        splits = problem.split_rows(statistics.map)
        few = problem.sampled(splits, TUNED_ROWS)
        start, growth = of_all.values, np.ones(2)
        if few is not splits or len(problem.rows) < len(problem.Y):
            of_few = tune(MeanLoss(terms_of(problem, few), ridge_fold), scale, unknowns)
            start = of_few.values
            growth = np.divide(of_all.values, start, out=growth, where=start > 0)
        Y, w = weighted(*problem.held())
        outputs = some_outputs(Y)
        objective = HingeObjective(few, Y[:, outputs], w, intercept=self.fit_intercept)
        tuned = tune(
            objective, scale, unknowns, start=start, restarts=self.n_restarts, rng=problem.rng
        )
        tuned = replace(tuned, values=tuned.values * growth)
        self.n_iter_ = 0
        return self._for_score(problem, statistics, unknowns, tuned)

    def _finished_ovr(self, problem: Problem, statistics: Statistics, values: Any) -> Linear:
        total = total_terms(statistics.terms())
        scale, unit = scaling(total.n * signed_penalty(statistics.map.S, *values))
        if not unit.all() and singular(statistics, unit, intercept=self.fit_intercept):
            self._warn_singular()
        margins = self._margins(problem, statistics, statistics.map.W * scale, total.n)
        gram = with_constant(total.rescaled(scale), self.fit_intercept)
        model = self._newton(margins, unit, gram)
        return Linear(scale[:, None] * model.coef, model.intercept)

    def _margins(self, problem: Problem, statistics: Statistics, W: Any, total: float) -> Margins:
        """Where the rows are."""
        held, q = self._held, problem.Y.shape[1]
        if isinstance(held, KernelRuns):
            Y, w = weighted(*Targets(problem.Y, problem.weights).of(held.numbers))
            return DaskMargins(held, Y, w, W, self.fit_intercept, [total] * q)
        rows = self._rows(problem, statistics).with_map(W)
        return RowMargins(rows, *weighted(problem.Y, problem.weights))

    def _rows(self, problem: Problem, statistics: Statistics) -> FeatureRows:
        panel, n, unit = problem.panel, len(problem.Y), statistics.unit
        known = kept = None
        if self._held is None:
            left = max(problem.plan.budget - 8 * ROW_NUMBERS * problem.Y.size, 0)
            kept = Kept(int(KEPT * left / (8 * len(panel.landmarks))))
            values = over(panel.C[panel.positions(self._known)], unit)
            order = problem.targets(by_fold=self._by_fold(problem)).by_group
            known = Known(self._known, values, order)
        return FeatureRows(
            panel.X.X, statistics.columns, panel.landmarks, unit, statistics.map.W, n,
            self.fit_intercept, self._held, known, panel.kernel.takes == "vectors", kept,
            panel.workers, problem.plan.progress,
        )  # fmt: skip

    def _sparse(self, problem: Problem, statistics: Statistics, values: Any) -> Linear:
        """Coefficients of landmarks, not of features, most of them zero."""
        if self.multi_class == "ovo" and len(self.classes_) > 2:
            raise ValueError(
                f'penalty="{self.penalty}" learns a column a class; pass multi_class="ovr"'
            )
        if self.scoring is not None:
            raise ValueError(
                f'scoring={self.scoring!r} tunes lambda_plus and lambda_minus of penalty="l2"; '
                f'penalty="{self.penalty}" takes its strength by the hinge loss, pass scoring=None'
            )
        self.multi_class_ = "ovr"
        rows = self._rows(problem, statistics)
        strength = None if self.lambda_l1 == "auto" else float(self.lambda_l1)
        norms = None if self.penalty == "l1" else values
        outputs = some_outputs(problem.held()[0])
        found = fit_sparse(problem, statistics, rows, strength, norms, outputs, self.max_iter)
        self.lambda_l1_, self.l1_path_ = found.strength, found.trials
        self._keep_steps(found.n_iter, found.converged)
        return Linear(found.dual, found.intercept)

    def _keep_model(self, problem: Problem, statistics: Statistics, model: Linear) -> None:
        if self.penalty == "l2":
            return super()._keep_model(problem, statistics, model)
        active = np.flatnonzero(model.coef.any(axis=1))
        self.n_active_landmarks_ = len(active)
        panel = problem.panel
        kept = active if len(active) else np.zeros(1, dtype=np.intp)
        if panel.transform is not None and self.precomputed_columns == "landmarks":
            kept = np.arange(len(panel.landmarks))  # all of them transform a distance
        k = len(kept)
        panel.keep(panel.landmarks[kept])
        direct = FeatureMap(np.eye(k), np.ones(k), np.empty((k, 0)), np.empty(0))
        statistics = statistics._replace(columns=panel.evaluator(), map=direct)
        super()._keep_model(problem, statistics, Linear(model.coef[kept], model.intercept))
        self.coef_ = self.dual_coef_.T
        del self.signature_, self.eigenvalues_

    def _solve_rows(self, Phi: Any, Y: Any, w: Any, penalty: Any) -> tuple[Any, Any]:
        F, unit, back = in_span(Phi, penalty)
        if self.fit_intercept:
            F = np.column_stack([F, np.ones(len(F))])
        model = self._newton(RowMargins(DenseRows(F), Y, w), unit)
        return back @ model.coef, model.intercept

    def _newton(self, margins: Margins, penalty: Any, gram: Any = None) -> Linear:
        r = len(penalty)
        padded = np.append(penalty, np.zeros(margins.p - r))
        found = newton(margins, padded, gram=gram, max_iter=self.max_iter)
        self._keep_steps(found.n_iter, found.converged)
        constant = found.coef[r] if margins.p > r else np.zeros(found.coef.shape[1])
        return Linear(found.coef[:r], constant)

    def _keep_steps(self, n_iter: int, converged: bool) -> None:
        self.n_iter_ = max(self.n_iter_, n_iter)
        if not converged:
            warn(
                f"Newton's method did not converge in max_iter={self.max_iter} steps; "
                "increase max_iter, or the penalties",
                ConvergenceWarning,
            )


def weighted(Y: Any, w: Any) -> tuple[Any, Any]:
    """Targets and their weights, also where all are 1."""
    return Y, np.ones(len(Y)) if w is None else w


def some_outputs(Y: Any) -> Any:
    """A few of many outputs, those that vary most: they make up most of the loss."""
    return np.sort(np.argsort(-Y.var(axis=0), kind="stable")[:TUNED_OUTPUTS])


def singular(statistics: Statistics, penalty: Any, *, intercept: bool) -> bool:
    whole = total_terms(statistics.terms()).centred(intercept=intercept)
    return ridge(whole.G, whole.B, whole.n * penalty).singular
