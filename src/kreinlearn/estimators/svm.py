"""Krein squared-hinge support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn.data.memory import Resources
from kreinlearn.estimators.learner import KreinClassifierBase
from kreinlearn.estimators.refusals import refuse
from kreinlearn.estimators.ridge import RandomState
from kreinlearn.kernels import Kernel
from kreinlearn.learn.coding import Classes, Coding
from kreinlearn.learn.fit import LearnSpec, Model, Solved
from kreinlearn.learn.losses import Loss, SparseHinge, SquaredHinge
from kreinlearn.pairs.rows import Rows


class KreinSVC(KreinClassifierBase):
    """Squared-hinge support vector machine in a Krein space.

    @DOC:KreinSVC@

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KreinSVC("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinClassifierBase._parameter_constraints,
        "cv": ["cv_object"],  # leaving each row out of a machine cannot be done at once
        "lambda_l1": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *KreinClassifierBase._fitted, "n_iter_", "lambda_l1_", "l1_path_", "n_active_landmarks_",
    )  # fmt: skip

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        lambda_minus: float | str = "auto",
        lambda_l1: float | str | None = None,
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "auto",
        probability: bool = False,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
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
        self.lambda_minus = lambda_minus
        self.lambda_l1 = lambda_l1
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.probability = probability
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
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

    def _loss(self) -> Loss:
        if self.lambda_l1 is None:
            return SquaredHinge(self.max_iter)
        strength = None if isinstance(self.lambda_l1, str) else float(self.lambda_l1)
        return SparseHinge(self.max_iter, strength)

    def _coding(self) -> Coding:
        if self.lambda_l1 is None:
            return super()._coding()
        return Classes("ovr", self.class_weight)

    def _spec(self, rows: Rows, kernel: Kernel, rng: np.random.Generator) -> LearnSpec:
        if self.lambda_l1 is not None:
            refuse(self, "an l1 penalty", n_classes=len(self.classes_))
        return super()._spec(rows, kernel, rng)

    def _keep(self, rows: Rows, model: Model) -> None:
        super()._keep(rows, model)
        if self.lambda_l1 is not None:  # coefficients are those of landmarks, not of features
            self.coef_ = self.dual_coef_.T
            del self.signature_, self.eigenvalues_

    def _keep_solution(self, solved: Solved) -> None:
        super()._keep_solution(solved)
        self.n_iter_ = solved.solution.n_iter
