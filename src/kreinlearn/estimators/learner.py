"""What all learners share: from parameters and data to a model, and from a model to attributes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kreinlearn._warnings import warn
from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator
from kreinlearn.data.validation import TargetLike, WeightLike, checked_weights
from kreinlearn.distributed.entrance import column_of, lazy_result, scored
from kreinlearn.estimators.base import (
    KreinEstimator,
    feature_attributes,
    require_rank,
)
from kreinlearn.estimators.calibration import probabilities
from kreinlearn.kernels import Kernel, resolve
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.kernels.dissimilarity import TRANSFORMS
from kreinlearn.kernels.precomputed import Precomputed
from kreinlearn.learn.coding import Classes, Coding, Encoded, Regression, class_scores
from kreinlearn.learn.fit import LearnSpec, Model, Solved, fit_model
from kreinlearn.learn.folds import FoldSpec
from kreinlearn.learn.incremental import Sums
from kreinlearn.learn.losses import Loss
from kreinlearn.learn.search import Tuned, Unknowns
from kreinlearn.learn.similarity import SimilaritySpec
from kreinlearn.learn.size import Size, landmarks_by_cost
from kreinlearn.nystrom.core import FeatureKind, KreinFeatures
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.evaluate import pair_seconds
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows
from kreinlearn.sums.parallel import serial_blas

MOST_LANDMARKS = 1000  # of landmarks="auto", where not all rows are at hand
PENALTY = [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]


class Learner(KreinEstimator):
    """An estimator with targets; a subclass says which loss, coding and features it has."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinEstimator._parameter_constraints,
        "kernel_params": [dict, list, StrOptions({"auto"}), None],
        "similarity": [StrOptions({"auto", *TRANSFORMS})],
        "lambda_plus": PENALTY,
        "lambda_minus": [*PENALTY, StrOptions({"equal"})],
        "cv": ["cv_object", StrOptions({"loo"})],
        "scoring": [str, callable, None],
        "fit_intercept": ["boolean"],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *KreinEstimator._fitted, "coef_", "dual_coef_", "intercept_", "lambda_plus_",
        "lambda_minus_", "cv_loss_", "cv_score_", "cv_trials_", "folds_", "similarity_",
        "kernel_params_", "choices_", "decision_", "signature_", "eigenvalues_", "rank_", "_map",
        "_intercept", "_shift", "_one_output", "_sums",
    )  # fmt: skip

    _works_elsewhere: ClassVar[bool] = True
    _kind: ClassVar[FeatureKind] = KreinFeatures()
    _keeps_held_out: ClassVar[bool] = False  # scores of training objects by models without them
    _sums: Sums  # what partial_fit goes on from

    # What a subclass says

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _coding(self) -> Coding:
        raise NotImplementedError

    def _seconds(self) -> float | None:
        """Seconds of one core that a fit may take if landmarks="auto"; None is the default."""

    # From parameters to a specification

    def _tolerance(self) -> None:
        """Learners have a given number of landmarks."""

    def _named_params(self) -> dict[str, Any] | None:
        if isinstance(self.kernel_params, list):
            return next((params for params in self.kernel_params if isinstance(params, dict)), None)
        return None if isinstance(self.kernel_params, str) else self.kernel_params

    def _resolved_kernel(self) -> Kernel:
        kernel = super()._resolved_kernel()
        if isinstance(kernel, Precomputed) and kernel.of_dissimilarities:
            return Precomputed(is_dissimilarity=True)  # transformed by learners, not by the kernel
        return kernel

    def _spec(
        self, rows: Rows, encoded: Encoded, kernel: Kernel, rng: np.random.Generator,
        *, part: bool = False,
    ) -> LearnSpec:  # fmt: skip
        """All choices that are not made from the data; ``part`` if more rows will come later."""
        rank = self._landmarks.rank
        size = self._default_size(rows, encoded, kernel, part=part)
        spec = self._map_spec(rows, kernel, rank, max(size.n_landmarks, rank or 0))
        require_rank(rank, spec, len(rows))
        if size.reason:
            spec = replace(spec, reason=size.reason)
        return self._spec_with(spec, kernel, rng)

    def _default_size(self, rows: Rows, encoded: Encoded, kernel: Kernel, *, part: bool) -> Size:
        """How many landmarks "auto" stands for: all, if a fit can do that in reasonable time."""
        n, wanted = len(rows), self._landmarks
        loss = self._loss()
        unpenalised = 0 in self._penalties().fixed
        exact = loss.diagonal and rows.here and not part and not unpenalised
        exact = exact and self.scoring is None
        automatic = isinstance(wanted.n, str) and not wanted.rank and not wanted.core
        if not exact or not automatic:
            return Size(min(n, MOST_LANDMARKS), "")
        memory = budget_bytes(self._resources.memory_budget)
        pair = pair_seconds(kernel, rows.X)
        return landmarks_by_cost(
            n, encoded.Y.shape[1], pair, memory, machines=loss.iterates, seconds=self._seconds()
        )

    def _spec_with(self, spec: MapSpec, kernel: Kernel, rng: np.random.Generator) -> LearnSpec:
        return LearnSpec(
            kernel, spec, self._similarities_to_try(kernel, rng), self._kind, self._loss(),
            self._coding(), self._penalties(), FoldSpec(self.cv), self.scoring, self.fit_intercept,
            held_out=self._keeps_held_out,
        )  # fmt: skip

    def _penalties(self) -> Unknowns:
        """Penalties as the user gives them; None where they are tuned."""
        plus, minus = (
            None if isinstance(value, str) else float(value)
            for value in (self.lambda_plus, self.lambda_minus)
        )
        equal = self.lambda_minus == "equal"
        return Unknowns((plus, plus if equal else minus), equal)

    def _similarities_to_try(self, kernel: Kernel, rng: np.random.Generator) -> SimilaritySpec:
        first = self._named_params()

        def made(params: dict[str, Any], pairs: Pairs) -> Kernel:
            other = resolve(self.kernel, params).with_processes(pairs.kernel.jobs, pairs.kernel)
            return other.fit(pairs.rows.X, rng)

        kernels = [
            (params, None if params is first else partial(made, params))
            for params in self._kernel_grid(kernel)
        ]
        equal, unknown = self.lambda_minus == "equal", self._penalties().fixed == (None, None)
        return SimilaritySpec(self.similarity, kernels, equal=equal, tunes=unknown)

    def _kernel_grid(self, kernel: Kernel) -> list[dict[str, Any]]:
        """Parameters of the kernel to choose from; none: the kernel is used as it is."""
        if isinstance(self.kernel_params, dict | None):
            return []
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

    # Fitting

    def _fit(self, X: Objects, y: TargetLike, sample_weight: WeightLike) -> None:
        with self._fitting(X, y, sample_weight):
            if self._is_single:
                result = self._coarsely(partial(self._learned, X, y, sample_weight))
            else:
                result = self._learned(X, y, sample_weight, self._resources.dtype)
            self._keep(*result)

    def _learned(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, dtype: str | None
    ) -> tuple[Rows, Model]:
        """Rows and targets checked, then the model of ``learn.fit``."""
        rng = as_generator(self.random_state)
        rows, encoded, weights, kernel = self._checked(X, y, sample_weight, dtype, rng)
        spec = self._spec(rows, encoded, kernel, rng)
        rows = rows.with_outside(spec.map.outside)
        with self._session(kernel, rows, spec.map, dtype) as session, serial_blas():
            return rows, fit_model(rows, encoded, weights, spec, session, rng)

    def _checked(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, dtype: str | None,
        rng: np.random.Generator, classes: ArrayLike | None = None,
    ) -> tuple[Rows, Encoded, Any, Kernel]:  # fmt: skip
        """Rows, targets, weights and the fitted kernel."""
        self._forget()
        if isinstance(y, str):  # the name of a column of X, or of a file
            X, y = with_target(X, y)
        rows, kernel = self._received(X, dtype, rng)
        part = classes is not None
        encoded, weights = self._targets(rows, y, sample_weight, classes, part=part)
        coding = self._coding()
        encoded = coding.shifted(rows, encoded, weights, intercept=self.fit_intercept)
        return rows, encoded, weights, kernel

    def _targets(
        self,
        rows: Rows,
        y: TargetLike,
        sample_weight: WeightLike,
        classes: ArrayLike | None = None,
        *,
        part: bool = False,
    ) -> tuple[Encoded, Any]:
        """Encoded targets and weights; a ``part`` of the rows may lack classes and weight."""
        coding, name = self._coding(), type(self).__name__
        if y is None:
            raise ValueError(
                f"This {name} estimator requires y to be passed, but the target y is None."
            )
        y = column_of(y, rows, partial(coding.check, estimator=name), "y")
        encoded = coding.encode(rows, y, classes)
        check = partial(checked_weights, n=len(rows), all_zero=part, block=False)
        w = None
        if sample_weight is not None:
            w = column_of(sample_weight, rows, check, "sample_weight")
            rows.require_weight(rows.column_sums(w, w).without)
        return encoded, coding.weights(rows, encoded, w, part=part)

    def _keep(self, rows: Rows, model: Model) -> None:
        """Copy the model to the attributes of the estimator, and warn of what it says."""
        self._keep_landmarks(model.kernel, rows, model.sample)
        self._keep_solution(model.solved)
        self.folds_ = model.folds
        if model.reason:
            self.decision_ = model.reason
        for name in ("kernel_params", "similarity", "choices"):
            value = getattr(model.chosen, name)
            if value is not None:
                setattr(self, f"{name}_", value)
        for name, value in feature_attributes(model.map).items():
            if self._kind.signed or name in ("rank_", "_map"):
                setattr(self, name, value)
        self._keep_columns(model.columns)
        if self.rank_ == 0:
            warn("no dimension is left, rank_ is 0: the kernel is zero, or the same for all pairs")

    def _keep_solution(self, solved: Solved) -> None:
        """Coefficients and penalties, which a further part of the data changes."""
        encoded, solution = solved.encoded, solved.solution
        self._one_output, self._shift = encoded.one_output, encoded.shift
        self.coef_ = self._shaped(solved.coef.T)
        self.dual_coef_ = self._shaped(solved.dual.T).T
        self._intercept = solved.intercept
        self.intercept_ = self._shaped(self._intercept)
        self._keep_penalties(solved.tuned, solved.penalties, solved.root)
        for name, value in solution.attributes.items():
            setattr(self, name, value)
        if solution.singular:
            warn(
                "the penalty is zero and the Gram matrix singular: the solution of smallest norm "
                "is taken; give positive lambda_plus and lambda_minus"
            )
        if not solution.converged:
            warn(
                f"Newton's method did not converge in max_iter={self.max_iter} steps; "
                "increase max_iter, or the penalties",
                ConvergenceWarning,
            )

    def _keep_penalties(self, tuned: Tuned, penalties: Array, root: float) -> None:
        self.lambda_plus_ = float(penalties[0])
        if self._kind.signed:
            self.lambda_minus_ = float(penalties[1])
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

    def _shaped(self, values: Array) -> Array:
        """As scikit-learn has it: without the axis of outputs where y has none."""
        return values[0] if self._one_output else values

    # Using

    def _check_block(self, y: ArrayLike) -> Array:
        """Targets of a few rows, checked."""
        return self._coding().check(y, type(self).__name__, block=True)

    def _scores(self, X: Objects) -> Array:  # (n, q)
        check_is_fitted(self)
        scores = self._projected(
            *self._new_rows(X), self.dual_coef_.reshape(len(self.dual_coef_), -1)
        )
        scores += self._intercept.astype(scores.dtype)
        return scores


class KreinRegressorBase(RegressorMixin, MultiOutputMixin, Learner):
    """Targets of one or more dimensions."""

    def _coding(self) -> Regression:
        return Regression()

    def predict(self, X: Objects) -> Any:
        """Predict the target of each object.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects. A matrix of (dis)similarities has one column per training object, or one
            per landmark.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The predictions; a lazy dask array if X is a dask collection.
        """
        if (lazy := lazy_result(self, "predict", X)) is not None:
            return lazy
        scores = self._scores(X)
        return scores[:, 0] if self._one_output else scores

    def score(self, X: Objects, y: TargetLike, sample_weight: WeightLike = None) -> float:
        """The coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Their targets, or the name of the column of a table X that holds them.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object.

        Returns
        -------
        float
            R^2, the mean over outputs.
        """
        check_is_fitted(self)
        return scored(self, X, y, sample_weight, self._check_block, super().score, self._shift)


class KreinClassifierBase(ClassifierMixin, Learner):
    """Labels as targets +-1; of many classes one column per class, or per pair of classes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Learner._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "multi_class": [StrOptions({"auto", "ovr", "ovo"})],
        "probability": ["boolean"],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *Learner._fitted, "classes_", "multi_class_", "multi_class_errors_", "_calibration",
        "_n_chosen",
    )  # fmt: skip

    classes_: Array
    multi_class_: str

    def _coding(self) -> Coding:
        return Classes(self.multi_class, self.class_weight)

    def _targets(
        self,
        rows: Rows,
        y: TargetLike,
        sample_weight: WeightLike,
        classes: ArrayLike | None = None,
        *,
        part: bool = False,
    ) -> tuple[Encoded, Any]:
        encoded, weights = super()._targets(rows, y, sample_weight, classes, part=part)
        assert encoded.classes is not None
        self.classes_ = encoded.classes
        return encoded, weights

    def _keep_solution(self, solved: Solved) -> None:
        super()._keep_solution(solved)
        self.multi_class_ = str(solved.multi_class)
        if solved.multi_class_errors is not None:
            self.multi_class_errors_ = solved.multi_class_errors

    def _keep(self, rows: Rows, model: Model) -> None:
        self._n_chosen = model.n_chosen
        super()._keep(rows, model)

    def predict(self, X: Objects) -> Any:
        """Predict the class of each object.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects. A matrix of (dis)similarities has one column per training object, or one
            per landmark.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels; a lazy dask array if X is a dask collection.
        """
        if (lazy := lazy_result(self, "predict", X)) is not None:
            return lazy
        scores = class_scores(self._scores(X), len(self.classes_), self.multi_class_)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[np.argmax(scores, axis=1)]

    def decision_function(self, X: Objects) -> Any:
        """Scores of the classes.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of two classes one score, which is positive for the second class; of more classes one
            score per class.
        """
        if (lazy := lazy_result(self, "decision_function", X)) is not None:
            return lazy
        return class_scores(self._scores(X), len(self.classes_), self.multi_class_)

    @available_if(lambda self: self.probability)
    def predict_proba(self, X: Objects) -> Any:
        """Probabilities of the classes, which rise with their decision values.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One probability per class.
        """
        check_is_fitted(self)
        if (lazy := lazy_result(self, "predict_proba", X)) is not None:
            return lazy
        return probabilities(self._calibration, self, X)

    def score(self, X: Objects, y: TargetLike, sample_weight: WeightLike = None) -> float:
        """The accuracy of the predictions.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        y : array-like of shape (n_samples,), or str
            Their labels, or the name of the column of a table X that holds them.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object.

        Returns
        -------
        float
            The share of the weight whose class is predicted.
        """
        return scored(self, X, y, sample_weight, self._check_block, super().score)
