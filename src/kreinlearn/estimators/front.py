"""The estimators to try first: they decide everything that the data can decide."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.distributed.entrance import lazy_result
from kreinlearn.estimators.learner import KreinClassifierBase, KreinRegressorBase, Learner
from kreinlearn.estimators.ridge import RandomState
from kreinlearn.kernels.base import Array, Kernel, Objects, resolve
from kreinlearn.kernels.candidates import AUTO, candidates_for
from kreinlearn.kernels.combine import alike
from kreinlearn.kernels.fields import columns
from kreinlearn.kernels.several import Several
from kreinlearn.kernels.vectors import Gaussian
from kreinlearn.learn.coding import Classes, Coding, Regression
from kreinlearn.learn.combination import Combination
from kreinlearn.learn.decision import Decision, expected_class_error, expected_square
from kreinlearn.learn.fit import Model, Recipe
from kreinlearn.learn.groups import equal_in_words
from kreinlearn.learn.losses.squared import SquaredError
from kreinlearn.learn.neighbours import NEIGHBOURS, LabelNeighbours, NeighbourScores
from kreinlearn.learn.stack import probabilities

SHARED = ("kernel", "kernel_params", "landmarks", "resources", "n_jobs", "random_state", "verbose")
CONSTRAINTS: dict[str, list[Any]] = {
    **{name: Learner._parameter_constraints[name] for name in SHARED},
    "kernel": [*Learner._parameter_constraints["kernel"], list, tuple],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
}


class FrontDoor(Learner):
    """What both estimators share: least squares, and no choice that the user has to make."""

    similarity = lambda_plus = lambda_minus = "auto"
    cv = None
    fit_intercept = True
    _fitted: ClassVar[tuple[str, ...]] = (
        "expected_error_", "expected_error_std_",
        *(f"kernel_{name}_" for name in Combination._fields), "_sum",
    )  # fmt: skip

    time_limit: float | None
    expected_error_: float
    expected_error_std_: float

    def _resolved_kernel(self) -> Kernel:
        """One kernel, or several of which a sum is learned; equal ones count once."""
        if self._is_automatic:
            return Gaussian()  # until there are objects
        if not isinstance(self.kernel, list | tuple | dict):
            return super()._resolved_kernel()
        self._require_no_params(f"a {type(self.kernel).__name__}")
        distinct, kernels = list[Any](), list[Kernel]()
        for spec in columns(self.kernel) if isinstance(self.kernel, dict) else self.kernel:
            kernel = resolve(spec)
            if not any(alike(kernel, other) for other in kernels):
                distinct.append(spec)
                kernels.append(kernel)
        return kernels[0] if len(kernels) == 1 else Several(distinct).sound()

    def _require_no_params(self, what: str) -> None:
        if self.kernel_params is not None:
            raise ValueError(
                f"kernel_params={self.kernel_params!r} belong to one kernel, and kernel is {what}; "
                "give each kernel its own parameters, as in DTW(window=0.1)"
            )

    @property
    def _is_automatic(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == AUTO

    def _kernel_for(self, X: Objects) -> Kernel:
        if not self._is_automatic:
            return self._resolved_kernel()
        self._require_no_params('"auto"')
        kernels = candidates_for(X)
        return kernels[0] if isinstance(kernels[0], Gaussian) else Several(kernels).sound()

    def _made_of(self, coding: Coding, *, near: bool) -> Recipe:
        seconds = None if self.time_limit is None else float(self.time_limit)
        return Recipe(SquaredError(), coding, seconds=seconds, held_out=True, near=near)


class KreinRegressor(FrontDoor, KreinRegressorBase):
    """Regression with any similarity or dissimilarity: the estimator to try first.

    It converts distances into a similarity, decides whether all objects can be landmarks or how
    many of them, and tunes both penalties of least squares in a Krein space. All of this is decided
    by the prediction of objects that are left out, and the attributes say what was decided.
    ``KreinRidge`` is the same learner with all its parameters.

    Parameters
    ----------
    kernel : str, callable, Kernel, list of these or dict, default="auto"
        The similarity or dissimilarity: a name such as "gaussian" or "levenshtein", a function
        k(A, B) that returns a matrix, ``pairwise(f)`` of a function of two objects,
        ``dissimilarity(...)``, or an object of ``kreinlearn.kernels``. "precomputed" and
        "precomputed_dissimilarity" take a matrix as X. Given a list of kernels, or of matrices, a
        weighted sum is learned. A dict from fields to kernels is ``columns(...)``. "auto" compares
        a few kernels that suit the kind of objects: see "Several similarities" in the manual.
    kernel_params : dict, list of dict, "auto" or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults. Given a list of dicts, the
        one with the smallest squared error is used. "auto" tries five widths. Kernels of a list
        have their own parameters.
    landmarks : int, float, None, str, callable, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them or
        a function ``f(rows, m, rng)``, their row numbers, the objects themselves, or
        ``Landmarks(...)``. "auto" takes all objects if the time and the memory allow it, and
        otherwise as many as they allow; for rows that stay on Dask workers it takes 1,000.
    time_limit : float or None, default=None
        About how many seconds of one core a fit may take; by it "auto" decides on the number of
        landmarks, of which it takes at least 20. None means 40 seconds (more for very large data),
        enough to use all of about 5,000 objects as landmarks if the similarity is cheap.
    resources : Resources or None, default=None
        Memory, and a store of kernel values on disk, as ``Resources(...)``. None is
        ``Resources()``: a quarter of the free memory, and no store.
    n_jobs : int or None, default=None
        Number of threads, or of processes for kernels that are Python functions; -1 is one for each
        core. None: as many threads as BLAS uses, and no further processes.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random choices: landmarks, samples and folds. An int gives the same result at
        every call.
    verbose : int or bool, default=0
        If positive, a run that takes long is announced, and its progress is shown on a terminal.

    Attributes
    ----------
    expected_error_ : float
        The root of the mean squared error to expect of new objects, after everything that was
        chosen: it is found anew without a third of the objects, three times (of more than 240
        objects, with 200 of them).
    expected_error_std_ : float
        The standard error of ``expected_error_``.
    decision_ : str
        How many landmarks were decided on, and why. Exists if ``landmarks`` is "auto" and the
        objects are in memory.
    similarity_ : str
        How the dissimilarity was turned into a similarity, often by a weighted mean such as
        "0.7 exp + 0.3 rank3". Exists for one dissimilarity.
    kernel_weights_ : dict
        The weight of each kernel in the sum, on one scale; they add up to one. This and the
        following attributes exist for several kernels.
    kernel_similarities_ : dict
        How each dissimilarity with a weight was turned into a similarity.
    kernel_losses_ : dict
        The cross-validated squared error of each kernel alone, with the best of its similarities,
        on the objects on which kernels were compared.
    kernel_seconds_ : dict
        How long the values of each kernel took, on the objects on which kernels were compared.
    choices_ : list of Choice
        The similarities that were compared, the best one first: (kernel_params, similarity, loss,
        tuned). Exists if there was more than one; a saved model does not have it.
    kernel_params_ : dict
        The kernel parameters that were chosen. Exists if ``kernel_params`` is a list or "auto".
    lambda_plus_ : float
        The penalty of the positive space.
    lambda_minus_ : float
        The penalty of the negative space.
    cv_loss_ : float
        The mean squared error of objects that were left out, by which the penalties were tuned.
    cv_trials_ : ndarray of shape (n_trials, 3)
        Everything that was tried: both penalties, and the loss.
    folds_ : array-like of shape (n_samples,) or (n_samples, 2)
        The fold of each training object, in two rounds if there are at most 300 objects. With more
        than 700, all of which are landmarks, it is not used. A saved model does not have it.
    coef_ : ndarray of shape (rank_,) or (n_outputs, rank_)
        Coefficients of the features.
    dual_coef_ : ndarray of shape (n_landmarks_,) or (n_landmarks_, n_outputs)
        Coefficients of the landmarks: predictions are
        ``k(x, landmarks_) @ dual_coef_ + intercept_``.
    intercept_ : float or ndarray of shape (n_outputs,)
        The constant term.
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the kernel matrix of the training objects, by decreasing absolute value.
    rank_ : int
        The number of features.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The landmarks; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,) or None
        Row numbers of the landmarks in the training data; None if they were given as objects.
    n_landmarks_ : int
        The number of landmarks.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinRidge : The same learner, with all its parameters.
    KreinClassifier : The estimator to try first for classes.

    Examples
    --------
    >>> from kreinlearn import KreinRegressor
    >>> words = ["a", "ab", "abc", "abcd", "abcde", "abcdef", "b", "bc", "bcd", "bcde"]
    >>> model = KreinRegressor("levenshtein", random_state=0)
    >>> model.fit(words, [len(word) for word in words]).n_landmarks_
    10
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    _fitted: ClassVar[tuple[str, ...]] = (*KreinRegressorBase._fitted, *FrontDoor._fitted)

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        time_limit: float | None = None,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.time_limit = time_limit
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _recipe(self) -> Recipe:
        return self._made_of(Regression(), near=False)

    def _keep_beside(self, model: Model) -> None:
        assert model.held_out is not None
        held = model.held_out.found_anew()
        if len(held.scores):
            mean, std, _ = expected_square(held)
            root, unit = float(np.sqrt(mean)), model.solved.encoded.unit
            self.expected_error_ = root * unit
            self.expected_error_std_ = std / (2 * root) * unit if mean else 0.0
            if (other := held.regrouped()) is not None:
                say_equal(model, self.expected_error_, np.sqrt(expected_square(other).outer) * unit)


class KreinClassifier(FrontDoor, KreinClassifierBase):
    """Classification with any similarity or dissimilarity: the estimator to try first.

    It converts distances into a similarity, decides whether all objects can be landmarks or how
    many of them, tunes least squares in a Krein space, and adds the scores of the nearest
    neighbours of each class with weights that cannot be negative. All of this is decided by the
    prediction of objects that are left out, and the attributes say what was decided. The combined
    score is a conditional logit model, so probabilities come at no further cost.

    ``KreinRidgeClassifier`` and ``KreinSVC`` are the learners of the paper: one similarity, one
    loss, and no neighbours.

    Parameters
    ----------
    kernel : str, callable, Kernel, list of these or dict, default="auto"
        The similarity or dissimilarity: a name such as "gaussian" or "levenshtein", a function
        k(A, B) that returns a matrix, ``pairwise(f)`` of a function of two objects,
        ``dissimilarity(...)``, or an object of ``kreinlearn.kernels``. "precomputed" and
        "precomputed_dissimilarity" take a matrix as X. Given a list of kernels, or of matrices, a
        weighted sum is learned. A dict from fields to kernels is ``columns(...)``. "auto" compares
        a few kernels that suit the kind of objects: see "Several similarities" in the manual.
    kernel_params : dict, list of dict, "auto" or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults. Given a list of dicts, the
        one with the smallest squared error is used. "auto" tries five widths. Kernels of a list
        have their own parameters.
    landmarks : int, float, None, str, callable, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them or
        a function ``f(rows, m, rng)``, their row numbers, the objects themselves, or
        ``Landmarks(...)``. "auto" takes all objects if the time and the memory allow it, and
        otherwise as many as they allow; for rows that stay on Dask workers it takes 1,000.
        Neighbours are looked for among the landmarks.
    time_limit : float or None, default=None
        About how many seconds of one core a fit may take; by it "auto" decides on the number of
        landmarks, of which it takes at least 20. None means 40 seconds (more for very large data),
        enough to use all of about 5,000 objects as landmarks if the similarity is cheap.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as {label: weight}. "balanced" gives all classes the same total
        weight; None leaves the weights of the objects as they are. Probabilities are those of
        the weighted data, and the class of the largest one is always predicted.
    resources : Resources or None, default=None
        Memory, and a store of kernel values on disk, as ``Resources(...)``. None is
        ``Resources()``: a quarter of the free memory, and no store.
    n_jobs : int or None, default=None
        Number of threads, or of processes for kernels that are Python functions; -1 is one for each
        core. None: as many threads as BLAS uses, and no further processes.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random choices: landmarks, samples and folds. An int gives the same result at
        every call.
    verbose : int or bool, default=0
        If positive, a run that takes long is announced, and its progress is shown on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; 0, 1, ... if y is an indicator matrix.
    part_weights_ : dict
        The weights of the parts of the decision: "krein", the least-squares scores, and
        "neighbours_1", "neighbours_3" and "neighbours_10", the logarithms of the mean distance to
        so many nearest landmarks of each class. Landmarks that are given as objects have no
        classes; then "krein" is the only part. If no part predicts objects that are left out, for
        instance if there is one object per class, all probabilities are about equal, and one part
        has a weight of 1e-6 and decides: the nearest landmark if every class has one.
    expected_error_ : float
        The error rate to expect of new objects, after everything that was chosen: it is found anew
        without a third of the objects, three times (of more than 240 objects, with 200 of them).
        For multilabel targets, the share of objects with at least one wrong label.
    expected_error_std_ : float
        The standard error of ``expected_error_``.
    decision_ : str
        How many landmarks were decided on, and why. Exists if ``landmarks`` is "auto" and the
        objects are in memory.
    similarity_ : str
        How the dissimilarity was turned into a similarity, often by a weighted mean such as
        "0.7 exp + 0.3 rank3". Exists for one dissimilarity.
    kernel_weights_ : dict
        The weight of each kernel in the sum, on one scale; they add up to one. This and the
        following attributes exist for several kernels.
    kernel_similarities_ : dict
        How each dissimilarity with a weight was turned into a similarity.
    kernel_losses_ : dict
        The cross-validated squared error of each kernel alone, with the best of its similarities,
        on the objects on which kernels were compared.
    kernel_seconds_ : dict
        How long the values of each kernel took, on the objects on which kernels were compared.
    choices_ : list of Choice
        The similarities that were compared, the best one first: (kernel_params, similarity, loss,
        tuned). Exists if there was more than one; a saved model does not have it.
    kernel_params_ : dict
        The kernel parameters that were chosen. Exists if ``kernel_params`` is a list or "auto".
    multilabel_ : bool
        Whether objects have sets of labels.
    lambda_plus_ : float
        The penalty of the positive space.
    lambda_minus_ : float
        The penalty of the negative space.
    cv_loss_ : float
        The mean squared error of objects that were left out, by which the penalties were tuned.
    cv_trials_ : ndarray of shape (n_trials, 3)
        Everything that was tried: both penalties, and the loss.
    folds_ : array-like of shape (n_samples,) or (n_samples, 2)
        The fold of each training object, in two rounds if there are at most 300 objects. With more
        than 700, all of which are landmarks, it is not used. A saved model does not have it.
    coef_ : ndarray of shape (n_columns, rank_)
        Coefficients of the features for the least-squares scores.
    dual_coef_ : ndarray of shape (n_landmarks_, n_columns)
        Coefficients of the landmarks: the least-squares scores are
        ``k(x, landmarks_) @ dual_coef_ + intercept_``.
    intercept_ : ndarray of shape (n_columns,)
        The constant term of each column.
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the kernel matrix of the training objects, by decreasing absolute value.
    rank_ : int
        The number of features.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The landmarks; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,) or None
        Row numbers of the landmarks in the training data; None if they were given as objects.
    n_landmarks_ : int
        The number of landmarks.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinRidgeClassifier : Least squares alone, with all its parameters.
    KreinSVC : The squared hinge loss of support vector machines.
    KreinRegressor : The estimator to try first for numbers.

    Examples
    --------
    >>> from kreinlearn import KreinClassifier
    >>> words = ["hat", "cat", "rat", "mat", "house", "mouse", "louse", "rouse"]
    >>> model = KreinClassifier("levenshtein", random_state=0).fit(words, [0] * 4 + [1] * 4)
    >>> model.predict(["bat", "douse"])
    array([0, 1])
    """

    probability = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "class_weight": KreinClassifierBase._parameter_constraints["class_weight"],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *KreinClassifierBase._fitted, *FrontDoor._fitted, "part_weights_", "_neighbours", "_range",
    )  # fmt: skip

    part_weights_: dict[str, float]
    _neighbours: NeighbourScores | LabelNeighbours
    _range: Array

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        time_limit: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.landmarks = landmarks
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _recipe(self) -> Recipe:
        return self._made_of(Classes(self.class_weight), near=True)

    def _keep_beside(self, model: Model) -> None:
        """Weigh the parts by the log loss of objects that were left out."""
        assert model.held_out is not None
        held, several = model.held_out.found_anew(), model.solved.encoded.multilabel
        similarities = not model.pairs.kernel.is_dissimilarity
        decision = Decision.of(held, several=several, similarities=similarities)
        self._range = decision.range
        if decision.neighbours is not None:
            self._neighbours = decision.neighbours
        names = ["krein", *(f"neighbours_{k}" for k in NEIGHBOURS)]
        self.part_weights_ = dict(zip(names, decision.weights.tolist(), strict=False))
        expect = partial(expected_class_error, decision=decision, similarities=similarities)
        self.expected_error_, self.expected_error_std_, _ = expect(held)
        if (other := held.regrouped()) is not None:
            say_equal(model, self.expected_error_, expect(other).outer)

    # Using

    def _stacked(self, X: Objects) -> Array:  # (n, n_classes)
        """The sum of all parts for every class, or for the odds of every label."""
        self._require_fitted()
        objects, columns = self._new_rows(X)
        decision = Decision(
            np.array(list(self.part_weights_.values())), self._range,
            getattr(self, "_neighbours", None), self.multilabel_,
        )  # fmt: skip

        def scores(raw: Array, products: Array) -> Array:
            values = raw if columns.landmarks is None else raw[:, columns.landmarks]
            return decision.sums(products + self._intercept, values)

        return self._projected(objects, columns, self.dual_coef_, scores, len(self.classes_))

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
        scores = self._stacked(X)
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
        return self.classes_[np.argmax(scores, axis=1)]

    def decision_function(self, X: Objects) -> Any:
        """Scores of the classes: logarithms of their probabilities, up to a constant per object.

        Parameters
        ----------
        X : array-like, list of objects, or any other input that ``fit`` takes
            The objects.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the logarithm of the odds of the second class, for more classes one
            score per class, and for sets of labels the logarithm of the odds of each label.
        """
        if (lazy := lazy_result(self, "decision_function", X)) is not None:
            return lazy
        scores = self._stacked(X)
        two = scores.shape[1] == 2 and not self.multilabel_
        return scores[:, 1] - scores[:, 0] if two else scores

    def predict_proba(self, X: Objects) -> Any:
        """Probabilities of the classes or labels.

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
        scores = self._stacked(X)
        return expit(scores) if self.multilabel_ else probabilities(scores)


def say_equal(model: Model, error: float, other: float) -> None:
    """Warn of equal objects, with the errors to expect if they are left out together or not."""
    encoded = model.solved.encoded
    assert encoded.equal is not None
    some = equal_in_words(encoded.equal)
    if encoded.groups is not None:
        warn(
            f"{some}: equal ones were left out together, and the expected error is {error:.2g}; it "
            f"would be about {other:.2g} if new objects were equal to known ones as often, for "
            "which pass groups=range(n)"
        )
    else:
        warn(
            f"{some}: the expected error of {error:.2g} counts on new objects that are equal to "
            f"known ones as often; for others it is about {other:.2g}, for which pass groups with "
            "one number for equal objects"
        )
