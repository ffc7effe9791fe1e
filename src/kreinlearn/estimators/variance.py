"""Krein variance-constrained least squares: the spread of the predictions is given."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn._warnings import warn
from kreinlearn.estimators._classifier import KreinClassifier
from kreinlearn.estimators._learner import KreinLearner
from kreinlearn.estimators.ridge import KreinRegressor, LeastSquares, LeastSquaresClassifier
from kreinlearn.learn.learning import MeanLoss, Problem, Statistics, statistics_scale
from kreinlearn.learn.search import Tuned, Unknowns, one_penalty, tune, tune_apart
from kreinlearn.solvers.least_squares import ridge_fold
from kreinlearn.solvers.result import Fold, Solution, signed_penalty
from kreinlearn.solvers.span import in_span
from kreinlearn.solvers.variance import variance_constrained, variance_fold
from kreinlearn.sums.moments import Centred, Terms, total_terms

POSITIVE = [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
CONSTRAINTS: dict[str, list[Any]] = {
    "lambda_plus": POSITIVE,
    "lambda_minus": [*POSITIVE, StrOptions({"equal"})],
    "radius": [
        Interval(Real, 0, None, closed="neither"),
        "array-like",
        StrOptions({"auto", "tuned"}),
    ],
}


class VarianceConstrained(LeastSquares):
    """``radius`` is the root mean square of f about its mean, on the training objects."""

    def _observe(self, statistics: Statistics) -> None:
        whole = total_terms(statistics.terms()).centred(intercept=self.fit_intercept)
        self.radius_ = self._radii(whole)

    def _radii(self, whole: Centred) -> Any:  # (q,)
        deviation = np.sqrt(np.maximum(whole.yy, 0) / whole.n)
        size = np.sqrt(np.maximum(whole.yy / whole.n, 0) + (whole.ybar + self._shift) ** 2)
        if (deviation <= 1e-12 * size).any():
            raise ValueError(
                f"the target is constant (n_samples={whole.n:g}): the variance constraint is "
                "undefined; drop that output, or use KreinRidge"
            )
        if isinstance(self.radius, str):
            return deviation
        given = np.asarray(self.radius, dtype=np.float64)
        if given.shape not in ((), (1,), deviation.shape):
            raise ValueError(
                f"radius={self.radius!r} has shape {given.shape}; pass a number, or one for each "
                f"of {len(deviation)} outputs"
            )
        radii = np.broadcast_to(given, deviation.shape)
        if not (radii > 0).all() or not np.isfinite(radii).all():
            raise ValueError(f"radius={self.radius!r} must be positive and finite")
        return radii.copy()

    def _unknowns(self, root: float) -> Unknowns:
        penalties = super()._unknowns(root)
        factor = None if isinstance(self.radius, str) and self.radius == "tuned" else 1.0
        return Unknowns((*penalties.fixed, factor), penalties.equal)

    def _searched(self, problem: Problem, statistics: Statistics, unknowns: Unknowns) -> Tuned:
        """From the penalties of least squares, which are cheap to find, on to its own."""
        scale = statistics_scale(statistics, intercept=self.fit_intercept)
        folds = self._fold_terms(problem, statistics)
        first = Unknowns(unknowns.fixed[:2], unknowns.equal)
        start = self._tuned_before(problem, first)
        if start is None:
            start = tune_apart(MeanLoss(folds, ridge_fold), scale, first)
        if not start.apart:
            first = one_penalty(start.values)
        unknowns = Unknowns((*first.fixed, *unknowns.fixed[2:]), first.equal)
        return tune(
            MeanLoss(folds, self._fold_loss), scale, unknowns, start=np.append(start.values, 1.0),
            restarts=self.n_restarts, rng=problem.rng,
        )  # fmt: skip

    def _keep(self, tuned: Tuned, root: float) -> None:
        super()._keep(tuned, root)
        self.radius_ = self.radius_ * tuned.values[2]

    def _fold_loss(self, fold: Fold, *values: float) -> tuple[float, Any]:
        lambda_plus, lambda_minus, factor = values
        radii = factor * self.radius_ * np.sqrt(fold.n)
        return variance_fold(fold, lambda_plus, lambda_minus, radii)

    def _solve(self, whole: Centred, S: Any, values: Any) -> Solution:
        penalty = whole.n * signed_penalty(S, *values[:2])
        radii = self.radius_ * np.sqrt(whole.n)
        solution = variance_constrained(whole.G, whole.B, penalty, radii)
        if not solution.converged and len(S):
            warn("the variance constraint cannot be met: the features do not vary")
        return solution

    def _solve_rows(self, Phi: Any, Y: Any, w: Any, penalty: Any) -> tuple[Any, Any]:
        F, unit, back = in_span(Phi, penalty)
        part = Terms.of_rows(F, Y, w).centred(intercept=self.fit_intercept)
        radii = np.sqrt(np.maximum(part.yy, 0))  # of a pair of classes, its own
        if Y.shape[1] == len(self.radius_):
            radii = self.radius_ * np.sqrt(part.n)
        elif isinstance(self.radius, Real):
            radii = np.full(Y.shape[1], float(self.radius) * np.sqrt(part.n))
        solution = variance_constrained(part.G, part.B, unit, radii)
        return back @ solution.coef, part.intercept(solution.coef)


class KreinVCRidge(VarianceConstrained, KreinRegressor):
    """Variance-constrained least squares in a Krein space.

    Minimises ``lambda_plus |f_+|^2 + lambda_minus |f_-|^2 - 2 mean(y f)`` over all f whose
    predictions on the training objects have root mean square ``radius`` about their mean.

    Parameters
    ----------
    radius : "auto": the deviation of y; "tuned": a multiple of it found by cross-validation; a
        number, or one for each output.
    others : as in ``KreinRidge``.

    Attributes
    ----------
    radius_ : (n_outputs,) used.
    others : as in ``KreinRidge``.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinVCRidge
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.sin(X[:, 0])
    >>> f = KreinVCRidge("sigmoid", random_state=0).fit(X, y).predict(X)
    >>> bool(np.isclose(f.std(), y.std()))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinLearner._parameter_constraints,
        **CONSTRAINTS,
    }

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
        radius: Any = "auto",
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
        self.radius = radius
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
        """Choose landmarks, pass once over the data, tune the penalties, solve."""
        self._fit(X, y, sample_weight)
        return self


class KreinVCRidgeClassifier(VarianceConstrained, LeastSquaresClassifier):
    """Variance-constrained least squares on targets +-1.

    Parameters
    ----------
    radius : as in ``KreinVCRidge``; with ``multi_class="ovo"`` pairs have their own deviation.
    others : as in ``KreinRidgeClassifier``.

    Attributes
    ----------
    radius_ : (n_outputs,) used.
    others : as in ``KreinRidgeClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinVCRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KreinVCRidgeClassifier("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinClassifier._parameter_constraints,
        **CONSTRAINTS,
    }

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
        radius: Any = "auto",
        class_weight: Any = None,
        multi_class: str = "auto",
        probability: bool = False,
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
        self.radius = radius
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.probability = probability
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
        """Choose landmarks, pass once over the data, tune the penalties, solve."""
        self._fit(X, y, sample_weight)
        return self
