"""Similarity features: ridge regression on the similarities to landmarks, whatever their sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from sklearn.base import _fit_context

from kreinlearn.data.memory import Resources
from kreinlearn.estimators.learner import KreinClassifierBase, Learner
from kreinlearn.estimators.ridge import IncrementalClassifier, IncrementalRegressor, RandomState
from kreinlearn.nystrom.core import FeatureKind, SimilarityFeatures


def _without_minus(constraints: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: allowed for name, allowed in constraints.items() if name != "lambda_minus"}


class SimilarityRidge(IncrementalRegressor):
    """Ridge regression on similarities to landmarks (SF-LSM), a baseline.

    @DOC:SimilarityRidge@

    Examples
    --------
    >>> import numpy as np
    >>> from kreinlearn import SimilarityRidge
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> SimilarityRidge("sigmoid", random_state=0).fit(X, np.sin(X[:, 0])).predict(X).shape
    (200,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _without_minus(
        Learner._parameter_constraints
    )
    _kind: ClassVar[FeatureKind] = SimilarityFeatures()
    lambda_minus = "equal"  # there is one penalty

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        fit_intercept: bool = True,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.similarity = similarity
        self.lambda_plus = lambda_plus
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose landmarks, pass once over the data, tune the penalties, solve.

        Parameters
        ----------
        X : array-like, list of objects, path, table or dask collection
            The training objects. With a precomputed kernel a square matrix, or the columns of
            landmarks that are given by row number.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            The targets, or the name of the column of a table X that holds them.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object, none of them negative.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self


class SimilarityRidgeClassifier(IncrementalClassifier):
    """Ridge classification on similarities to landmarks (SF-LSM), a baseline.

    @DOC:SimilarityRidgeClassifier@

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import SimilarityRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SimilarityRidgeClassifier("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _without_minus(
        KreinClassifierBase._parameter_constraints
    )
    _kind: ClassVar[FeatureKind] = SimilarityFeatures()
    lambda_minus = "equal"  # there is one penalty

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "auto",
        probability: bool = False,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        fit_intercept: bool = True,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.similarity = similarity
        self.lambda_plus = lambda_plus
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.probability = probability
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose landmarks, pass once over the data, tune the penalties, solve.

        Parameters
        ----------
        X : array-like, list of objects, path, table or dask collection
            The training objects. With a precomputed kernel a square matrix, or the columns of
            landmarks that are given by row number.
        y : array-like of shape (n_samples,), or str
            The labels, or the name of the column of a table X that holds them.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object, none of them negative.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self
