"""Krein least squares: mean squared error plus lambda_plus |f_+|^2 + lambda_minus |f_-|^2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from kreinlearn.data.memory import Resources
from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator
from kreinlearn.distributed.entrance import require_in_memory
from kreinlearn.estimators.learner import KreinClassifierBase, KreinRegressorBase, Learner
from kreinlearn.estimators.refusals import refuse
from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.fit import Model
from kreinlearn.learn.incremental import first_part, next_part
from kreinlearn.learn.losses import Loss, SquaredError
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.rows import Rows
from kreinlearn.progress import fit_task
from kreinlearn.sums.parallel import serial_blas

RandomState = int | np.random.RandomState | np.random.Generator | None


class Incremental(Learner):
    """Learners whose sums over rows add up, so that they can learn from one part after another."""

    def _loss(self) -> Loss:
        return SquaredError()

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        require_in_memory(
            X, "partial_fit takes parts in memory; give fit the whole dask collection"
        )
        with fit_task(self, X, y, sample_weight):
            if hasattr(self, "_sums"):
                self._next_part(X, y, sample_weight, classes)
            else:
                refuse(self, "partial_fit")
                learned = partial(self._first_part, X, y, sample_weight, classes)
                rows, model = self._in_precision(learned)
                self._keep(rows, model)
                self._sums = model.sums
        return self

    def _first_part(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, dtype: str | None
    ) -> tuple[Rows, Model]:
        rng = as_generator(self.random_state)
        rows, encoded, weights, kernel = self._checked(X, y, sample_weight, dtype, rng, classes)
        spec = self._spec(rows, kernel, rng)
        rows = rows.with_outside(spec.map.outside)
        with self._session(kernel, rows, spec.map, dtype) as session, serial_blas():
            return rows, first_part(rows, encoded, weights, spec, session, rng)

    def _next_part(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
        check_is_fitted(self)
        X, y = with_target(X, y)
        X, columns = self._new_rows(X)
        rows, classes = Rows(X), self._known_classes(classes)
        encoded, weights = self._targets(rows, y, sample_weight, classes, part=True)
        encoded = self._like_first_part(rows, encoded)
        spec = self._spec_with(MapSpec(self.n_landmarks_), self.kernel_, self._sums.rng)
        with self._session(self.kernel_, rows, spec.map, self._dtype) as session, serial_blas():
            self._sums, solved = next_part(
                rows, encoded, weights, spec, session, self._sums, columns
            )
        self._keep_solution(solved)

    def _like_first_part(self, rows: Rows, encoded: Encoded) -> Encoded:
        q = len(self._sums.groups[0].y_sums)
        if encoded.Y.shape[1] != q:
            raise ValueError(f"y has {encoded.Y.shape[1]} outputs, but the first part had {q}")
        return encoded

    def _known_classes(self, classes: Any) -> Any:
        return None


class IncrementalRegressor(KreinRegressorBase, Incremental):
    """Targets of one or more dimensions, in parts."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a further part of the data; landmarks are those of the first part.

        Parameters
        ----------
        X : array-like or list of objects
            Training objects, which need not be kept afterwards.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object.

        Returns
        -------
        self : object
            The estimator, fitted to all parts so far.
        """
        return self._partial_fit(X, y, sample_weight)

    def _like_first_part(self, rows: Rows, encoded: Encoded) -> Encoded:
        encoded = super()._like_first_part(rows, encoded)._replace(one_output=self._one_output)
        return self._coding().shifted_by(rows, encoded, self._shift)


class IncrementalClassifier(KreinClassifierBase, Incremental):
    """Labels, in parts."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a further part of the data; landmarks are those of the first part.

        Parameters
        ----------
        X : array-like or list of objects
            Training objects, which need not be kept afterwards.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will come; needed at the first part, if that does not have them all.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object.

        Returns
        -------
        self : object
            The estimator, fitted to all parts so far.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _known_classes(self, classes: Any) -> Any:
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} differ from those of the first part, {self.classes_}"
            )
        return self.classes_


class KreinRidge(IncrementalRegressor):
    """Least squares in a Krein space, from any symmetric similarity or dissimilarity.

    @DOC:KreinRidge@

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
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        lambda_minus: float | str = "auto",
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
        self.lambda_minus = lambda_minus
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


class KreinRidgeClassifier(IncrementalClassifier):
    """Least-squares classification in a Krein space: targets +-1, one factorisation for all.

    @DOC:KreinRidgeClassifier@

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
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        lambda_minus: float | str = "auto",
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
        self.lambda_minus = lambda_minus
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
