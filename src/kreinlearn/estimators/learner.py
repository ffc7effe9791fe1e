"""What all learners share: from parameters and data to a model, and from a model to attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import update_wrapper
from numbers import Real
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn._warnings import warn
from kreinlearn.data.opening import with_target
from kreinlearn.data.validation import TargetLike, WeightLike, are_label_sets
from kreinlearn.distributed.entrance import lazy_result, require_in_memory, scored
from kreinlearn.estimators.base import KreinEstimator, feature_attributes
from kreinlearn.estimators.refusals import refuse
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.dissimilarity import PLUS, TRANSFORMS, shares_of
from kreinlearn.kernels.several import Several
from kreinlearn.learn.calibration import calibration_of
from kreinlearn.learn.coding import Encoded, Labels, read_targets
from kreinlearn.learn.combination import SCREENING, learn_combination
from kreinlearn.learn.fit import (
    FitSums,
    LearnSpec,
    Model,
    Recipe,
    Solved,
    Sums,
    fit_model,
    make_spec,
)
from kreinlearn.learn.groups import groups_for
from kreinlearn.learn.incremental import first_part, going_on, next_part
from kreinlearn.learn.similarity import SumOfKernels
from kreinlearn.nystrom.landmarks import MapSpec, are_row_numbers
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows
from kreinlearn.progress import fit_task
from kreinlearn.solvers.probabilities import Calibration
from kreinlearn.sums.parallel import serial_blas

if TYPE_CHECKING:
    from kreinlearn.estimators.explaining import Explanations

T = TypeVar("T")
Keep = Callable[[Pairs, Sample], None]  # looks at what a fit has evaluated
LARGEST_TARGET = 2.0**500  # in the unit of those before
PENALTY = [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]


class SimilarityNames(StrOptions):
    """One of the names, or a mean of several, as in "exp + rank3" or "0.7 exp + 0.3 rank3"."""

    def is_satisfied_by(self, val: object) -> bool:
        if not isinstance(val, str) or PLUS not in val:
            return bool(super().is_satisfied_by(val))
        try:
            return bool(shares_of(val))
        except ValueError:
            return False


class Learner(KreinEstimator):
    """An estimator with targets; a subclass says which loss, coding and features it has."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinEstimator._parameter_constraints,
        "kernel_params": [dict, list, StrOptions({"auto"}), None],
        "similarity": [SimilarityNames({"auto", *TRANSFORMS})],
        "lambda_plus": PENALTY,
        "lambda_minus": [*PENALTY, StrOptions({"equal"})],
        "cv": ["cv_object", StrOptions({"loo"})],
        "fit_intercept": ["boolean"],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *KreinEstimator._fitted, "coef_", "dual_coef_", "intercept_", "lambda_plus_",
        "lambda_minus_", "cv_loss_", "cv_trials_", "folds_", "similarity_",
        "kernel_params_", "choices_", "decision_", "signature_", "eigenvalues_", "rank_", "_map",
        "_intercept", "_shift", "_one_output", "_sums", "_fit_sums",
        "_target_unit", "_conformal", "_local", "_own_similarities",
        "_landmark_targets",
    )  # fmt: skip

    _works_elsewhere: ClassVar[bool] = True
    _transforms = True
    _sums: Sums  # what partial_fit goes on from
    _sum: Several  # of several kernels, before it was fitted: with numbers of those in a list
    _fit_sums: FitSums  # the same of a fit before
    _target_unit: float = 1.0  # by which targets are divided before they are summed
    _n_chosen: int
    classes_: Array
    multilabel_: bool

    @property
    def _recipe(self) -> Recipe:
        """What the learner is made of: its loss, its coding and its features."""
        raise NotImplementedError

    @property
    def _fit_recipe(self) -> Recipe:
        """The same for a fit, which may keep more than a part of one."""
        return self._recipe

    # Fitting

    def _fit_conformal(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, groups: ArrayLike | None,
        method: str,
    ) -> None:  # fmt: skip
        """Learn, and keep the scores of objects that were left out."""
        from kreinlearn.estimators.conformal import fit_conformal  # few fits need it

        fit_conformal(self, X, y, sample_weight, groups, method)

    def _fit(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike,
        groups: ArrayLike | None = None, also: Keep | None = None,
    ) -> None:  # fmt: skip
        """Learn, and set the attributes; ``also`` keeps more of the kernel values."""
        with self._fitting(X, y, sample_weight):
            recipe = self._fit_recipe
            model = self._learned(X, y, sample_weight, recipe, fit_model, groups=groups)
            with serial_blas():  # as in the session of the fit, which has ended
                self._keep_beside(model)
                if also is not None:
                    also(model.pairs, model.sample)
                self._keep(model)
            if isinstance(model.sums, FitSums):
                self._fit_sums = model.sums

    def _learned(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, recipe: Recipe,
        learn: Callable[[Pairs, Encoded, LearnSpec], T],
        *, classes: ArrayLike | None = None, part: bool = False, groups: ArrayLike | None = None,
    ) -> T:  # fmt: skip
        """What a function of ``learn`` makes of checked rows and targets.

        It is one ``part`` of the rows if more will come later; then ``classes`` may be all labels.
        """
        rng, name = self._generator(), type(self).__name__
        if isinstance(y, str):  # the name of a column of X, or of a file
            X, y = with_target(X, y)
        rows, kernel, y, w = self._received(X, y, sample_weight, rng)
        recipe = self._suited(recipe, y, classes)
        encoded = read_targets(
            recipe.coding, rows, y, w, name,
            intercept=self.fit_intercept, classes=classes, part=classes is not None,
            budget=self._budget(),
        )  # fmt: skip
        if not part:
            encoded = self._grouped(encoded, rows, kernel, groups)
        if recipe.held_out:
            _require_two(rows, encoded, name)
        if isinstance(kernel, Several):
            return cast("T", self._model_of_several(rows, kernel, encoded, recipe, rng))
        with self._pairs(kernel, rows, rng) as pairs:
            return learn(pairs, encoded, make_spec(self, recipe, pairs, encoded, part=part))

    def _grouped(
        self, encoded: Encoded, rows: Rows, kernel: Kernel, groups: ArrayLike | None
    ) -> Encoded:
        """Targets with the groups that are given; or with equal objects, if these are copies."""
        numbers, equal = groups_for(groups, rows, kernel, encoded.weighted)
        return encoded._replace(groups=numbers, equal=equal)

    def _suited(self, recipe: Recipe, y: TargetLike, classes: ArrayLike | None = None) -> Recipe:
        """The recipe for these targets: sets of labels have a coding of their own."""
        coding = recipe.coding.suited(y, classes)
        if coding is recipe.coding:
            return recipe
        refuse(self, "several labels")
        return recipe._replace(coding=coding)

    def _model_of_several(
        self, rows: Rows, several: Several, encoded: Encoded, recipe: Recipe,
        rng: np.random.Generator,
    ) -> Model:  # fmt: skip
        """The model of a list of kernels, of which a sum is made first."""
        given, listed = self._landmarks.given, isinstance(self.kernel, list | tuple | dict)
        with self._pairs(several, rows, rng, stored=False) as pairs:
            among = np.asarray(given) if are_row_numbers(given) else None
            limit = None if listed else SCREENING  # nobody has asked for each kernel of "auto"
            if limit is not None and recipe.seconds is not None:
                limit = recipe.seconds / len(several.kernels)
            found = learn_combination(pairs, several, encoded, among, limit=limit)
            of_sum = Pairs(found.on_sample(), rows, pairs.session)  # it says what values cost
            spec = make_spec(self, recipe, of_sum, encoded)
            learned = found.learned(spec.map, rng, chosen=self._landmarks.scheme != "auto")
        with self._pairs(learned.kernel, rows, rng) as pairs:
            pairs.known.add(learned.numbers, learned.values)
            known = SumOfKernels(found.compared, learned.judged)
            model = fit_model(pairs, encoded, replace(spec, map=learned.map), known)
        kernels = [s.number if listed else several.kernels[s.number] for s in found.used]
        unfitted = Several(kernels, learned.kernel.terms)
        return replace(model, combination=found.combination, sum=unfitted)

    def _partial_fit(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, recipe: Recipe,
        classes: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Learn from a further part of the data; landmarks are those of the first part or fit."""
        require_in_memory(
            X, "partial_fit takes parts in memory; give fit the whole dask collection"
        )
        refuse(self, "partial_fit")
        if hasattr(self, "_columns"):
            with fit_task(self, X, y, sample_weight):
                self._next_part(X, y, sample_weight, recipe, classes)
            return
        with self._fitting(X, y, sample_weight):
            model = self._learned(
                X, y, sample_weight, recipe, first_part, classes=classes, part=True
            )
            self._keep(model)
            assert isinstance(model.sums, Sums)
            self._sums = model.sums

    def _next_part(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, recipe: Recipe,
        classes: ArrayLike | None,
    ) -> None:  # fmt: skip
        fitted = getattr(self, "_fit_sums", None)
        if fitted is None and not hasattr(self, "_sums"):
            raise ValueError(
                "this model was saved by a version of kreinlearn that kept no sums of a fit, so "
                "that partial_fit cannot go on from it; fit it again, or clone it and begin with "
                "partial_fit"
            )
        X, y = with_target(X, y)
        X, columns = self._new_rows(X)
        known: Any = getattr(self, "classes_", None)
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={classes!r} differ from those of the first part, {known}")
        rows, recipe = Rows(X), self._recipe_as_before(recipe, y)
        encoded = read_targets(
            recipe.coding, rows, y, sample_weight, type(self).__name__,
            intercept=self.fit_intercept, classes=known, part=True,
            before=(self._shift, self._target_unit),
        )  # fmt: skip
        q = len(self._sums.groups[0].y_sums if fitted is None else fitted.t)
        if encoded.Y.shape[1] != q:
            raise ValueError(f"y has {encoded.Y.shape[1]} outputs, but the first part had {q}")
        encoded = encoded._replace(one_output=self._one_output)
        if self._target_unit != 1:
            _require_near(encoded.Y, self._target_unit)
        rng = self._sums.rng if hasattr(self, "_sums") else self._generator()
        with self._pairs(self.kernel_, rows, rng) as pairs:
            known_map = MapSpec(self.n_landmarks_)
            spec = make_spec(self, recipe, pairs, encoded, known=known_map)
            sums = getattr(self, "_sums", None)
            if sums is None:
                assert fitted is not None
                sums = going_on(pairs, fitted, self._map, spec, rng)
            self._sums, solved = next_part(pairs, encoded, spec, sums, columns, fitted)
        self.__dict__.pop("_conformal", None)  # it is of the parts before
        self._keep_solution(solved)

    def _recipe_as_before(self, recipe: Recipe, y: TargetLike) -> Recipe:
        """The recipe of a fitted model: sets of labels stay sets of labels, and classes classes."""
        if getattr(self, "multilabel_", False):
            return recipe._replace(coding=Labels(names=self.classes_))
        if hasattr(self, "classes_") and are_label_sets(y):
            raise ValueError(
                "y has several labels per object, and the model was fitted to one class per "
                "object; pass one class per object, or fit a new model"
            )
        return recipe

    # Attributes

    def _keep_beside(self, model: Model) -> None:
        """Set the attributes that a learner has beside those of all learners."""

    def _keep(self, model: Model) -> None:
        """Copy the model to the attributes of the estimator, and warn of what it says."""
        self._keep_landmarks(model.pairs, model.sample)
        if self.landmark_indices_ is not None and model.pairs.rows.here:
            self._landmark_targets = np.asarray(model.solved.encoded.y)[self.landmark_indices_]
        self._keep_solution(model.solved)
        self.folds_ = model.folds
        if "_n_chosen" in self._fitted:
            self._n_chosen = model.n_chosen
        if model.reason:
            self.decision_ = model.reason
        for name in ("kernel_params", "similarity"):
            value = getattr(model.chosen, name)
            if value is not None:
                setattr(self, f"{name}_", value)
        if model.chosen.choices is not None:
            square = self._target_unit * self._target_unit
            self.choices_ = [one._replace(loss=one.loss * square) for one in model.chosen.choices]
        if model.combination is not None and model.sum is not None:
            for name, value in model.combination._asdict().items():
                setattr(self, f"kernel_{name}_", value)
            self._sum = model.sum
        for name, value in feature_attributes(model.map).items():
            if model.signed or name in ("rank_", "_map"):
                setattr(self, name, value)
        self._keep_columns(model.columns)
        if self.rank_ == 0:
            warn("no dimension is left, rank_ is 0: the kernel is zero, or the same for all pairs")

    def _keep_solution(self, solved: Solved) -> None:
        """Coefficients and penalties, which a further part of the data changes."""
        encoded, solution = solved.encoded, solved.solution
        self._one_output, self._shift = encoded.one_output, encoded.shift
        if encoded.unit != 1:
            self._target_unit = encoded.unit
        self.coef_ = self._shaped(solved.coef.T)
        self.dual_coef_ = self._shaped(solved.dual.T).T
        self._intercept = solved.intercept
        self.intercept_ = self._shaped(self._intercept)
        self._keep_penalties(solved)
        for name, value in solution.attributes.items():
            setattr(self, name, value)
        if encoded.classes is not None:
            self.classes_, self.multilabel_ = encoded.classes, encoded.multilabel
        if "n_iter_" in self._fitted:
            self.n_iter_ = solution.n_iter
        if solution.singular:
            warn(
                "the penalty is zero and the Gram matrix singular: the solution of smallest norm "
                "is taken; give positive lambda_plus and lambda_minus"
            )
        if not solution.converged:
            warn(
                f"Newton's method did not converge in {solution.n_iter} steps; increase the "
                "penalties",
                ConvergenceWarning,
            )

    def _keep_penalties(self, solved: Solved) -> None:
        tuned, root, unit = solved.tuned, solved.root, solved.encoded.unit
        self.lambda_plus_ = float(solved.penalties[0])
        if "lambda_minus_" in self._fitted:
            self.lambda_minus_ = float(solved.penalties[1])
        if not len(tuned.trials):
            return
        self.cv_trials_ = tuned.trials.copy()
        with np.errstate(over="ignore", under="ignore"):  # squares may be out of range
            self.cv_trials_[:, :2] *= root
            self.cv_trials_[:, :2] *= root
            self.cv_trials_[:, -1] *= unit
            self.cv_trials_[:, -1] *= unit
        self.cv_loss_ = float(tuned.loss * unit * unit)

    def _shaped(self, values: Array) -> Array:
        """As scikit-learn has it: without the axis of outputs where y has none."""
        return values[0] if self._one_output else values

    # Using

    def explain(self, X: Objects, n: int = 5, *, target: Any = None) -> Explanations:
        """The landmarks that speak most for a decision, and those that speak most against it.

        A decision value is a sum over landmarks, each of which contributes its similarity to the
        object times its coefficient.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``predict`` takes
            A few objects.
        n : int, default=5
            How many landmarks are shown on each side.
        target : label or int, default=None
            The class, or the number of the output, whose decision value is explained. None is the
            class that is predicted, or the only output.

        Returns
        -------
        Explanations
            A sequence with one explanation per object: ``value``, ``parts`` that add up to it, and
            ``reasons``, each with the landmark, its label, similarity and contribution. As text it
            is a table, and ``to_frame()`` makes one for pandas.
        """
        from kreinlearn.estimators.explaining import explain

        return explain(self, X, n, target)

    def novelty(self, X: Objects, *, diagonal: ArrayLike | None = None) -> Array:
        """How unlike the training objects each object is, as a p-value.

        It is the share of the training objects that are at least as far from the landmarks near
        them as the object is, compared with how far these landmarks are from each other. If the
        object is one like those, all values between 0 and 1 are equally likely, and at most 5 % of
        such objects have a value of 0.05 or less. An object unlike all of them has a small value.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        diagonal : array-like of shape (n_samples,), default=None
            With a precomputed similarity, the similarity of each object with itself.

        Returns
        -------
        ndarray of shape (n_samples,)
            One p-value per object. The model must be fitted with ``conformal="split"``, which
            keeps the promise exactly, or with "cv+".
        """
        from kreinlearn.estimators.conformal import p_values

        return p_values(self, X, diagonal)

    def _check_block(self, y: TargetLike) -> Array:
        """Targets of a few rows, checked."""
        return self._recipe_as_before(self._recipe, y).coding.check(
            y, type(self).__name__, block=True
        )

    def _scores(self, X: Objects) -> Array:  # (n, q)
        self._require_fitted()
        scores = self._projected(
            *self._new_rows(X), self.dual_coef_.reshape(len(self.dual_coef_), -1)
        )
        scores += self._intercept
        return scores

    def _explained(self) -> tuple[Array, Array]:  # (m, c), (c,)
        """Coefficients of the landmarks, and constants, that ``explain`` explains."""
        W = np.asarray(self.dual_coef_).reshape(self.n_landmarks_, -1)
        return W, np.asarray(self._intercept, dtype=np.float64)

    def _beside_explained(self, K: Array, scores: Array) -> dict[str, Array]:
        """What decision values have beside these sums ``scores`` (b, c) over the landmarks."""
        return {}


def _require_two(rows: Rows, encoded: Encoded, name: str) -> None:
    """Raise ValueError if no object could be left out."""
    n = rows.n if encoded.weighted is None else len(encoded.weighted)
    if n < 2:
        raise ValueError(
            f"n_samples={n} of positive weight, and {name} decides by objects that are left out; "
            "pass at least two, or take KreinRidge and give its penalties"
        )


def _require_near(Y: Array, unit: float) -> None:
    """Raise ValueError if targets over the unit of earlier ones are too large to be squared."""
    largest = float(np.max(np.abs(Y), initial=0.0))
    if largest > LARGEST_TARGET:
        raise ValueError(
            f"y is as large as {largest * unit:.2g}, and the targets before were about "
            f"{unit:.2g}, which is too far apart for sums; fit all rows at once"
        )


class KreinRegressorBase(RegressorMixin, MultiOutputMixin, Learner):
    """Targets of one or more dimensions."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike = None,
        groups: ArrayLike | None = None, *, conformal: str | None = None,
    ) -> Self:  # fmt: skip
        """Choose a similarity and landmarks, pass once over the data, tune the penalties, solve.

        Parameters
        ----------
        X : array-like, list of objects, path, table or dask collection
            The training objects. With a precomputed kernel a square matrix, or the columns of
            landmarks that are given by row number.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            The targets, or the name of the column of a table X that holds them.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object, none of them negative. With a given similarity and given
            penalties, a weight of 2 is an object that is there twice.
        groups : array-like of shape (n_samples,), default=None
            The group of each object, by any name or number. Objects of one group are left out
            together wherever anything is tuned or judged. By default equal objects are a group,
            if they are texts, series, graphs or long records, and there are not many of each.
        conformal : {"split", "cv+"} or None, default=None
            What is kept for ``predict_interval`` and ``novelty``. "split" sets a quarter of the
            objects aside before anything is chosen, at most 5,000, and learns from the others; its
            promise is exact. "cv+" learns from all objects, and then from all but each of five
            folds. None keeps nothing.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if conformal is None:
            self._fit(X, y, sample_weight, groups)
        else:
            self._fit_conformal(X, y, sample_weight, groups, conformal)
        return self

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
            The predictions; a lazy dask array if X is a dask collection. That of a frame does not
            know its number of rows: ``p = predict(X).persist().compute_chunk_sizes()`` counts them,
            after which ``p[:5]`` is possible.
        """
        if (lazy := lazy_result(self, "predict", X)) is not None:
            return lazy
        scores = self._scores(X)
        return scores[:, 0] if self._one_output else scores

    def predict_interval(self, X: Objects, coverage: float = 0.9) -> Array:
        """An interval for the target of each object.

        The model must be fitted with ``conformal``. After "split" the intervals cover at least the
        stated share of targets, on average over training sets and new objects that are
        exchangeable with them. After "cv+" of n objects at least 1 - 2 (1 - coverage) - sqrt(2 / n)
        is proven, and the share is usually near ``coverage``. Several outputs are covered one by
        one.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        coverage : float, default=0.9
            The share of targets that the intervals are to cover, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            The lower and the upper end of each interval. They are infinite, with a warning, if
            too few objects were left out for this coverage.
        """
        from kreinlearn.estimators.conformal import intervals

        return intervals(self, X, coverage)

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
        self._require_fitted()
        return scored(self, X, y, sample_weight, self._check_block, super().score, self._shift)


class WithProbability:
    """A method of classifiers with ``probability=True``; the error of others says how to get it.

    Scikit-learn's ``available_if`` does the same, but hides the reason behind a message of its own.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        update_wrapper(cast("Any", self), method)
        self.method = method

    def __get__(self, one: KreinClassifierBase | None, owner: type | None = None) -> Any:
        if one is None:
            return self.method
        if one.probability:
            return MethodType(self.method, one)
        name, needs = type(one).__name__, "predict_proba needs"
        given = f"{name}(probability=True, ...), which is to be given before fit"
        if "probability" not in one.get_params(deep=False):
            needs, given = f"{name} has no predict_proba; take", "KreinSVC(probability=True, ...)"
        raise AttributeError(
            f"{needs} {given}; KreinClassifier has probabilities without being asked",
            name="predict_proba",
            obj=one,
        )


class KreinClassifierBase(ClassifierMixin, Learner):
    """Labels as targets +-1: one column per class, or per label; of two classes one column."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Learner._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "probability": ["boolean"],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *Learner._fitted, "classes_", "multilabel_", "_calibration", "_n_chosen",
    )  # fmt: skip

    _calibration: Calibration
    _takes_label_sets: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self._takes_label_sets
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike = None,
        groups: ArrayLike | None = None, *, conformal: str | None = None,
    ) -> Self:  # fmt: skip
        """Choose a similarity and landmarks, pass once over the data, tune the penalties, solve.

        Parameters
        ----------
        X : array-like, list of objects, path, table or dask collection
            The training objects. With a precomputed kernel a square matrix, or the columns of
            landmarks that are given by row number.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), list of lists, or str
            The class of each object, or the name of the column of a table X that holds them. If
            objects have any number of labels, a dense or sparse matrix of 0 and 1 with one column
            per label, or a list, tuple or set of labels for each object. Lists of zeros and ones
            that are all as long are rows of such a matrix.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object, none of them negative. With a given similarity and given
            penalties, a weight of 2 is an object that is there twice.
        groups : array-like of shape (n_samples,), default=None
            The group of each object, by any name or number. Objects of one group are left out
            together wherever anything is tuned or judged. By default equal objects are a group,
            if they are texts, series, graphs or long records, and there are not many of each.
        conformal : {"split", "cv+"} or None, default=None
            What is kept for ``predict_set`` and ``novelty``. "split" sets a quarter of the
            objects aside before anything is chosen, at most 5,000, and learns from the others; its
            promise is exact. "cv+" learns from all objects, and then from all but each of five
            folds. None keeps nothing.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if conformal is None:
            self._fit(X, y, sample_weight, groups)
        else:
            self._fit_conformal(X, y, sample_weight, groups, conformal)
        return self

    @property
    def _fit_recipe(self) -> Recipe:
        return self._recipe._replace(held_out=True) if self.probability else self._recipe

    def _keep_beside(self, model: Model) -> None:
        if self.probability:
            self._calibration = calibration_of(model)

    def predict(self, X: Objects) -> Any:
        """Predict the class of each object, or its labels.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects. A matrix of (dis)similarities has one column per training object, or one
            per landmark.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            The classes. If the model was fitted to sets of labels, 1 for each label of
            ``classes_`` that the object has, and 0 for the others. A lazy dask array if X is a
            dask collection. That of a frame does not know its number of rows:
            ``p = predict(X).persist().compute_chunk_sizes()`` counts them, after which ``p[:5]`` is
            possible.
        """
        if (lazy := lazy_result(self, "predict", X)) is not None:
            return lazy
        scores = self._class_scores(X)
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
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
            score per class. Of sets of labels one score per label, which is positive if the object
            has it.
        """
        if (lazy := lazy_result(self, "decision_function", X)) is not None:
            return lazy
        return self._class_scores(X)

    def _class_scores(self, X: Objects) -> Array:  # (n,) or (n, c)
        """One score per class or label; of two classes that of the second."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 and not self.multilabel_ else scores

    @WithProbability
    def predict_proba(self, X: Objects) -> Any:
        """Probabilities of the classes or labels, which rise with their decision values.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One probability per class; or one per label, and these do not add up to one.
        """
        self._require_fitted()
        if (lazy := lazy_result(self, "predict_proba", X)) is not None:
            return lazy
        return self._calibration.of(self.decision_function(X))

    def predict_set(self, X: Objects, coverage: float = 0.9) -> Array:
        """A set of classes for each object.

        The model must be fitted with ``conformal``. After "split" the sets contain the class of at
        least the stated share of objects, on average over training sets and new objects that are
        exchangeable with them. After "cv+" of n objects at least 1 - 2 (1 - coverage) - sqrt(2 / n)
        is proven, and the share is usually near ``coverage``.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        coverage : float, default=0.9
            The share of objects whose class is to be in its set, between 0 and 1.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Whether each class of ``classes_`` is in the set. The predicted class always is.
        """
        from kreinlearn.estimators.conformal import class_sets

        return class_sets(self, X, coverage)

    def score(self, X: Objects, y: TargetLike, sample_weight: WeightLike = None) -> float:
        """The accuracy of the predictions.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), list of lists, or str
            Their classes or sets of labels, as ``fit`` takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            One weight per object.

        Returns
        -------
        float
            The share of the weight whose class is predicted. Of sets of labels, that of the objects
            whose labels are all predicted, and no others.
        """
        return scored(self, X, y, sample_weight, self._check_block, self._accuracy)

    def _accuracy(self, X: Objects, y: TargetLike, sample_weight: WeightLike = None) -> float:
        self._require_fitted()
        return float(super().score(X, self._check_block(y), sample_weight))
