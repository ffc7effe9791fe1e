"""Krein least squares: mean squared error plus lambda_plus |f_+|^2 + lambda_minus |f_-|^2."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context

from kreinlearn.distributed import DaskRows, lazily, r_squared
from kreinlearn.estimators._classifier import KreinClassifier
from kreinlearn.estimators._dask import (
    as_columns,
    checked_numbers,
    less,
    mean_of,
    scored,
)
from kreinlearn.estimators._incremental import Incremental
from kreinlearn.estimators._learner import Linear
from kreinlearn.estimators._scoring import FoldRegressor
from kreinlearn.learn.learning import (
    MeanLoss,
    Problem,
    Statistics,
    leave_one_out_of,
    statistics_scale,
)
from kreinlearn.learn.search import Tuned, Unknowns, given, tune, tune_apart
from kreinlearn.solvers.least_squares import ridge, ridge_fold, ridge_rows
from kreinlearn.solvers.result import Fold, Solution, signed_penalty
from kreinlearn.sums.moments import Centred, Terms, total_terms


class LeastSquares(Incremental):
    """Learners that need no more of the rows than sums of squares and products."""

    _takes_dask = True

    def _learn(self, problem: Problem, statistics: Statistics) -> Linear:
        return self._finished(problem, statistics, self._found(problem, statistics))

    def _found(self, problem: Problem, statistics: Statistics) -> Any:
        """The penalties, given or tuned, and kept."""
        root = self._root(statistics.unit)
        self._observe(statistics)
        tuned = self._tuned(problem, statistics, root)
        self._keep(tuned, root)
        return tuned.values

    def _observe(self, statistics: Statistics) -> None:
        """What a method wants to know of the targets first."""

    def _tuned(self, problem: Problem, statistics: Statistics, root: float) -> Tuned:
        unknowns = self._unknowns(root)
        if not unknowns.free:
            return given(unknowns)
        tuned = self._tuned_before(problem, unknowns)
        if tuned is None:
            tuned = self._searched(problem, statistics, unknowns)
        return self._for_score(problem, statistics, unknowns, tuned)

    def _searched(self, problem: Problem, statistics: Statistics, unknowns: Unknowns) -> Tuned:
        scale = statistics_scale(statistics, intercept=self.fit_intercept)
        more: dict[str, Any] = {"restarts": self.n_restarts, "rng": problem.rng}
        if self.cv == "loo" and not problem.honest:
            return tune(leave_one_out_of(problem, statistics), scale, unknowns, **more)
        folds = self._fold_terms(problem, statistics)
        return tune_apart(MeanLoss(folds, self._fold_loss), scale, unknowns, **more)

    def _finished(self, problem: Problem, statistics: Statistics, values: Any) -> Linear:
        return self._finished_ovr(problem, statistics, values)

    def _finished_ovr(self, problem: Problem, statistics: Statistics, values: Any) -> Linear:
        whole = total_terms(statistics.terms()).centred(intercept=self.fit_intercept)
        solution = self._solve(whole, statistics.map.S, values)
        if solution.singular:
            self._warn_singular()
        return Linear(solution.coef, whole.intercept(solution.coef))

    def _fold_loss(self, fold: Fold, *values: float) -> tuple[float, Any]:
        return ridge_fold(fold, *values)

    def _solve(self, whole: Centred, S: Any, values: Any) -> Solution:
        return ridge(whole.G, whole.B, whole.n * signed_penalty(S, *values[:2]))

    def _solve_rows(self, Phi: Any, Y: Any, w: Any, penalty: Any) -> tuple[Any, Any]:
        if penalty.all():
            return ridge_rows(Phi, Y, w, penalty, intercept=self.fit_intercept)
        part = Terms.of_rows(Phi, Y, w).centred(intercept=self.fit_intercept)
        solution = ridge(part.G, part.B, penalty)
        if solution.singular:
            self._warn_singular()
        return solution.coef, part.intercept(solution.coef)


class KreinRegressor(RegressorMixin, MultiOutputMixin, LeastSquares):
    """Targets of one or more dimensions."""

    _check_targets = staticmethod(checked_numbers)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a further part of the data; landmarks are those of the first part."""
        self._partial_fit(X, y, sample_weight)
        return self

    def _encoded(self, y: Any, classes: Any = None) -> tuple[Any, Any, None]:
        if not isinstance(y, DaskRows):
            y = checked_numbers(y, type(self).__name__)
        self._one_output = y.ndim == 1
        return y, as_columns(y), None

    def _shifted(self, Y: Any, w: Any) -> Any:
        """Less their mean, which would drown what is learned when they are squared."""
        if not hasattr(self, "_sums"):
            self._shift = mean_of(Y, w) * self.fit_intercept
        return less(Y, self._shift)

    def _shaped(self, values: Any) -> Any:
        return values[0] if self._one_output else values

    def _fold_model(self, coef: Any, intercept: Any) -> FoldRegressor:
        return FoldRegressor(coef, intercept + self._shift, self._one_output)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on objects X with targets y, which may be a column of a table X."""
        return scored(self, X, y, sample_weight, r_squared, super().score)

    @lazily
    def predict(self, X: Any) -> Any:
        """The target of each object."""
        scores = self._decision(X)
        return scores[:, 0] if self._one_output else scores


class KreinRidge(KreinRegressor):
    """Least squares in a Krein space, from any symmetric similarity or dissimilarity.

    Minimises ``mean((y - f(x)) ** 2) + lambda_plus |f_+|^2 + lambda_minus |f_-|^2`` where f_+ and
    f_- are the parts of f in the positive and the negative space of the kernel.

    Parameters
    ----------
    kernel, landmarks, precomputed_columns, symmetrize, dtype, memory_budget, store, n_jobs,
    random_state, verbose : as in ``KreinNystroem``.
    kernel_params : parameters of the kernel; a list of such dicts, or "auto", a small grid of
        widths, are searched by cross-validated squared error.
    n_landmarks : int, a fraction, None (all objects: exact) or "auto": all up to 1000.
    similarity : from a dissimilarity to a similarity: "squared" (centred squares, the paper's),
        "linear" (centred), "exp", "narrow_exp", "inverse", "local1", "local3", "local7",
        "local_exp1", "local_exp3", "local_exp7", "local_inverse1", "local_inverse3" (see
        ``kernels.similarity_of``), or "auto": the best but for "inverse" by cross-validated
        squared error.
    rank : keep this many dimensions; None keeps all.
    core : "plain", "truncated" or "ls".
    lambda_plus, lambda_minus : penalties, or "auto": tuned. lambda_minus="equal" ties both.
    cv : folds that tune: an int, a splitter, "loo", or None: 5.
    scoring : a scorer of scikit-learn (a name or callable) to tune the penalties for; None is the
        squared error.
    n_restarts : further searches for penalties, from random starts.
    fit_intercept : whether f has a constant that is not penalised.

    Attributes
    ----------
    coef_, dual_coef_, intercept_ : of features, of landmarks, and the constant.
    lambda_plus_, lambda_minus_ : the penalties used.
    cv_loss_, cv_trials_ : cross-validated squared error, and every (penalties, loss) tried.
    cv_score_ : with ``scoring``, instead of ``cv_loss_``.
    folds_ : fold of each training row, -1 if it is in every training part.
    similarity_, kernel_params_ : what was chosen, and
    choices_ : every (kernel_params, similarity, loss, penalties) tried, best first.
    dtype_ : in which vectors are held and evaluated.
    signature_, eigenvalues_, rank_, n_landmarks_, landmarks_, landmark_indices_, kernel_ : as in
        ``KreinNystroem``.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import KreinRidge
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = KreinRidge("sigmoid", random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.predict(X).shape, model.lambda_plus_ > 0
    ((200,), True)
    """

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


class LeastSquaresClassifier(KreinClassifier, LeastSquares):
    """Labels as targets, one factorisation for all classes."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a further part of the data; ``classes``: all labels, at the first part."""
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all labels at once; pass a dict, or sample_weight'
            )
        if self.multi_class == "ovo":
            raise ValueError('partial_fit learns a column a class; pass multi_class="ovr"')
        if self.probability:
            raise ValueError("partial_fit keeps no rows to calibrate on; pass probability=False")
        self._partial_fit(X, y, sample_weight, classes)
        self.multi_class_ = "ovr"
        return self

    def _known_classes(self, classes: Any) -> Any:
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} differ from those of the first part, {self.classes_}"
            )
        return self.classes_


class KreinRidgeClassifier(LeastSquaresClassifier):
    """Least-squares classification in a Krein space; targets +-1, one factorisation for all.

    Parameters
    ----------
    class_weight : dict, "balanced" or None.
    multi_class : "ovr" (a column a class), "ovo" (a pair of classes), or "auto": by the folds, and
        "ovr" of more than 8192 objects.
    probability : whether ``predict_proba`` is wanted: scikit-learn's ``CalibratedClassifierCV``
        fits a sigmoid to decision values of left-out objects, at the price of further fits.
    others : as in ``KreinRidge``.

    Attributes
    ----------
    classes_ : the labels, in order.
    multi_class_ : "ovr" or "ovo".
    multi_class_errors_ : of both, in the folds, where they decided.
    others : as in ``KreinRidge``; a column of ``dual_coef_`` is a class or a pair of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KreinRidgeClassifier("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

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
