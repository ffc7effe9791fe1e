"""Similarity features: ridge regression on the similarities to landmarks, whatever their sign."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context

from kreinlearn.estimators._classifier import KreinClassifier
from kreinlearn.estimators._learner import KreinLearner
from kreinlearn.estimators.ridge import KreinRegressor, LeastSquares, LeastSquaresClassifier
from kreinlearn.learn.search import Unknowns
from kreinlearn.nystrom.core import FeatureMap

NOT_HERE = ("core", "rank", "lambda_minus")


def _without(constraints: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: allowed for name, allowed in constraints.items() if name not in NOT_HERE}


class SimilarityFeatures(LeastSquares):
    """The features of x are k(x, Z) themselves: one penalty, no signature."""

    core, rank = "plain", None
    lambda_minus = "equal"

    def _unknowns(self, root: float) -> Unknowns:
        value = None if isinstance(self.lambda_plus, str) else self.lambda_plus / root / root
        return Unknowns((value, value), equal=True)

    def _root(self, unit: float) -> float:
        return unit

    def _map_of(self, plan: Any) -> Any:
        return lambda K_ZZ, eps: (np.eye(len(K_ZZ)), np.ones(len(K_ZZ)))

    def _core(self, panel: Any, *args: Any) -> FeatureMap:
        m = len(panel.landmarks)
        return FeatureMap(np.eye(m), np.ones(m), np.empty((m, 0)), np.empty(0))

    def _store(self, fitted: Any, feature_map: FeatureMap) -> None:
        super()._store(fitted, feature_map)
        del self.signature_, self.eigenvalues_, self.lambda_minus_


class SimilarityRidge(SimilarityFeatures, KreinRegressor):
    """Ridge regression on similarities to landmarks (SF-LSM), a baseline.

    Minimises ``mean((y - f(x)) ** 2) + lambda_plus |a|^2`` over ``f(x) = k(x, Z) a + b``.

    Parameters
    ----------
    lambda_plus : the penalty, or "auto": tuned.
    others : as in ``KreinRidge``.

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import SimilarityRidge
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> SimilarityRidge("sigmoid", random_state=0).fit(X, np.sin(X[:, 0])).predict(X).shape
    (200,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _without(
        KreinLearner._parameter_constraints
    )

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        n_landmarks: Any = "auto",
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: Any = "auto",
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
        self.lambda_plus = lambda_plus
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
        """Choose landmarks, pass once over the data, tune the penalty, solve."""
        self._fit(X, y, sample_weight)
        return self


class SimilarityRidgeClassifier(SimilarityFeatures, LeastSquaresClassifier):
    """Ridge classification on similarities to landmarks (SF-LSM), a baseline.

    Parameters
    ----------
    lambda_plus : the penalty, or "auto": tuned.
    others : as in ``KreinRidgeClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import SimilarityRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SimilarityRidgeClassifier("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _without(
        KreinClassifier._parameter_constraints
    )

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        n_landmarks: Any = "auto",
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: Any = "auto",
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
        self.lambda_plus = lambda_plus
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
        """Choose landmarks, pass once over the data, tune the penalty, solve."""
        self._fit(X, y, sample_weight)
        return self
