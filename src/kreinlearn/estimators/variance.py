"""Krein variance-constrained least squares: the spread of the predictions is given."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn.data.memory import Resources
from kreinlearn.estimators.learner import KreinClassifierBase, Learner
from kreinlearn.estimators.ridge import IncrementalClassifier, IncrementalRegressor, RandomState
from kreinlearn.learn.coding import Classes, Regression
from kreinlearn.learn.fit import Recipe
from kreinlearn.learn.losses.variance import VarianceConstrained

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


class KreinVCRidge(IncrementalRegressor):
    """Variance-constrained least squares in a Krein space.

    For regression with predictions that vary as much as the targets do, where penalties would
    shrink them. The estimator minimises

    ``lambda_plus |f_+|^2 + lambda_minus |f_-|^2 - 2 mean(y f(x))``

    over all f whose predictions on the training objects have root mean square ``radius`` about
    their mean; ``f_+`` and ``f_-`` are the parts of f in the positive and the negative space of the
    kernel. The penalties are tuned by cross-validation unless they are given.

    Parameters
    ----------
    kernel : str, callable, Kernel or dict, default="gaussian"
        The similarity: a name such as "gaussian" or "levenshtein", a function k(A, B) that returns
        a matrix, ``pairwise(f)`` of a function of two objects, ``dissimilarity(...)``, or an object
        of ``kreinlearn.kernels``. "precomputed" and "precomputed_dissimilarity" take a matrix as X.
        A dict from fields of records to kernels is the sum of ``columns(...)``.
    kernel_params : dict, list of dict, "auto" or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults. Given a list of dicts, the
        one with the smallest cross-validated squared error is used. "auto" tries five widths, from
        1/16 to 16 times that which the kernel takes from the data.
    landmarks : int, float, None, str, callable, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them or
        a function ``f(rows, m, rng)``, their row numbers, the objects themselves, or
        ``Landmarks(...)``. "auto" takes all objects up to 1000.
    similarity : str, default="auto"
        From a dissimilarity to a similarity: "squared" (centred, the paper's), "linear", "exp",
        "narrow_exp", "gauss", "inverse", "local1", "local3", "local7", "local_exp1", "local_exp3",
        "local_exp7", "local_inverse1", "local_inverse3", "rank1", "rank3", "rank10" or
        "rank_inverse3"; ``SimilarityOf`` defines them. "auto" blends all
        but "inverse", with weights by their cross-validated errors, if all objects are landmarks;
        otherwise it takes the best one.
    lambda_plus : float or "auto", default="auto"
        Penalty on the part of f in the positive space, above 0. "auto" tunes it by
        cross-validation.
    lambda_minus : float, "auto" or "equal", default="auto"
        Penalty on the part of f in the negative space, above 0. "auto" tunes it by
        cross-validation; "equal" uses the same value as ``lambda_plus``.
    radius : float, array-like of shape (n_outputs,), "auto" or "tuned", default="auto"
        The root mean square of the predictions about their mean, for all outputs or for each.
        "auto" is the standard deviation of y; "tuned" is a multiple of it found by
        cross-validation.
    cv : int, splitter, iterable, "loo" or None, default=None
        The folds of cross-validation: their number, a splitter of scikit-learn, (train, test) pairs
        that test each object at most once, or "loo" (leave one out), if landmarks are more than
        half of the objects. None draws 5 folds.
    fit_intercept : bool, default=True
        Whether f has a constant term, which is not penalised.
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
    coef_ : ndarray of shape (rank_,) or (n_outputs, rank_)
        Coefficients of the features.
    dual_coef_ : ndarray of shape (n_landmarks_,) or (n_landmarks_, n_outputs)
        Coefficients of the landmarks: predictions are
        ``k(x, landmarks_) @ dual_coef_ + intercept_``.
    intercept_ : float or ndarray of shape (n_outputs,)
        The constant term of each output.
    lambda_plus_ : float
        The penalty of the positive space that was used, given or tuned.
    lambda_minus_ : float
        The penalty of the negative space that was used, given or tuned.
    radius_ : ndarray of shape (n_outputs,)
        The radius of each output that was used.
    cv_loss_ : float
        The cross-validated squared error, if a penalty or the radius was tuned.
    cv_trials_ : ndarray of shape (n_trials, 4)
        Everything that was tried: both penalties, the multiple of the radius, and the loss or
        score. Exists if one of them was tuned.
    folds_ : array-like of shape (n_samples,) or (n_samples, 2)
        The fold of each training object, in two rounds if these are few; -1 if it is in every
        training part. ``np.asarray`` makes
        an array of it. A saved model does not have it.
    similarity_ : str
        How the dissimilarity was turned into a similarity. Exists for dissimilarities.
    kernel_params_ : dict
        The kernel parameters that were chosen. Exists if ``kernel_params`` is a list or "auto".
    choices_ : list of Choice
        The similarities that were compared, the best one first: (kernel_params, similarity, loss,
        tuned). Exists if there was more than one; a saved model does not have it.
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the approximate kernel matrix of the training objects, by decreasing absolute
        value; those that are zero up to rounding are left out.
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
    KreinRidge : Least squares without the constraint.
    KreinVCRidgeClassifier : The same for classes.

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
        **Learner._parameter_constraints,
        **CONSTRAINTS,
    }
    _fitted: ClassVar[tuple[str, ...]] = (*IncrementalRegressor._fitted, "radius_")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        lambda_minus: float | str = "auto",
        radius: float | str | Sequence[float] = "auto",
        cv: Any = None,
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
        self.radius = radius
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _recipe(self) -> Recipe:
        return Recipe(VarianceConstrained(self.radius), Regression(), in_parts=True)


class KreinVCRidgeClassifier(IncrementalClassifier):
    """Variance-constrained least squares in a Krein space, on targets +-1.

    For classification with two or more classes, with decision values that vary as much as the
    targets do. Labels become targets +-1; of more than two classes each is learned against
    all others. The estimator minimises

    ``lambda_plus |f_+|^2 + lambda_minus |f_-|^2 - 2 mean(y f(x))``

    over all f whose values on the training objects have root mean square ``radius`` about their
    mean; ``f_+`` and ``f_-`` are the parts of f in the positive and the negative space of the
    kernel. The penalties are tuned by cross-validation unless they are given.

    Parameters
    ----------
    kernel : str, callable, Kernel or dict, default="gaussian"
        The similarity: a name such as "gaussian" or "levenshtein", a function k(A, B) that returns
        a matrix, ``pairwise(f)`` of a function of two objects, ``dissimilarity(...)``, or an object
        of ``kreinlearn.kernels``. "precomputed" and "precomputed_dissimilarity" take a matrix as X.
        A dict from fields of records to kernels is the sum of ``columns(...)``.
    kernel_params : dict, list of dict, "auto" or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults. Given a list of dicts, the
        one with the smallest cross-validated squared error is used. "auto" tries five widths, from
        1/16 to 16 times that which the kernel takes from the data.
    landmarks : int, float, None, str, callable, array-like or Landmarks, default="auto"
        The objects by which all others are described: how many (a number, or a fraction of the
        training objects; None takes all, which is exact), the name of a scheme that chooses them or
        a function ``f(rows, m, rng)``, their row numbers, the objects themselves, or
        ``Landmarks(...)``. "auto" takes all objects up to 1000.
    similarity : str, default="auto"
        From a dissimilarity to a similarity: "squared" (centred, the paper's), "linear", "exp",
        "narrow_exp", "gauss", "inverse", "local1", "local3", "local7", "local_exp1", "local_exp3",
        "local_exp7", "local_inverse1", "local_inverse3", "rank1", "rank3", "rank10" or
        "rank_inverse3"; ``SimilarityOf`` defines them. "auto" blends all
        but "inverse", with weights by their cross-validated errors, if all objects are landmarks;
        otherwise it takes the best one.
    lambda_plus : float or "auto", default="auto"
        Penalty on the part of f in the positive space, above 0. "auto" tunes it by
        cross-validation.
    lambda_minus : float, "auto" or "equal", default="auto"
        Penalty on the part of f in the negative space, above 0. "auto" tunes it by
        cross-validation; "equal" uses the same value as ``lambda_plus``.
    radius : float, array-like of shape (n_outputs,), "auto" or "tuned", default="auto"
        The root mean square of the decision values about their mean, for all columns or for each.
        "auto" is the standard deviation of the targets +-1; "tuned" is a multiple of it found by
        cross-validation.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as {label: weight}. "balanced" gives all classes the same total
        weight; None leaves the weights of the objects as they are. Probabilities stay those of
        the data, so that ``predict`` may prefer another class than the most probable one.
    probability : bool, default=False
        Whether ``predict_proba`` is available. No object is compared twice for it, and nothing is
        fitted again but least squares in folds of the features: a sigmoid, or of more than two
        classes one temperature, is fitted to the scores of objects that were left out.
        Probabilities are those of the data, weighted by ``sample_weight`` and not by
        ``class_weight``. With ``class_weight``, and of two classes in any case, the class of the
        largest probability need not be that of ``predict``.
    cv : int, splitter, iterable, "loo" or None, default=None
        The folds of cross-validation: their number, a splitter of scikit-learn, (train, test) pairs
        that test each object at most once, or "loo" (leave one out), if landmarks are more than
        half of the objects. None draws 5 folds, or fewer if a class is smaller.
    fit_intercept : bool, default=True
        Whether f has a constant term, which is not penalised.
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
    coef_ : ndarray of shape (n_columns, rank_)
        Coefficients of the features. There is one column for two classes, and otherwise one for
        each class or label.
    dual_coef_ : ndarray of shape (n_landmarks_, n_columns)
        Coefficients of the landmarks: the decision values of the columns are
        ``k(x, landmarks_) @ dual_coef_ + intercept_``.
    intercept_ : ndarray of shape (n_columns,)
        The constant term of each column.
    multilabel_ : bool
        Whether objects have sets of labels.
    lambda_plus_ : float
        The penalty of the positive space that was used, given or tuned.
    lambda_minus_ : float
        The penalty of the negative space that was used, given or tuned.
    radius_ : ndarray of shape (n_columns,)
        The radius of each column that was used.
    cv_loss_ : float
        The cross-validated squared error, if a penalty or the radius was tuned.
    cv_trials_ : ndarray of shape (n_trials, 4)
        Everything that was tried: both penalties, the multiple of the radius, and the loss or
        score. Exists if one of them was tuned.
    folds_ : array-like of shape (n_samples,) or (n_samples, 2)
        The fold of each training object, in two rounds if these are few; -1 if it is in every
        training part. ``np.asarray`` makes
        an array of it. A saved model does not have it.
    similarity_ : str
        How the dissimilarity was turned into a similarity. Exists for dissimilarities.
    kernel_params_ : dict
        The kernel parameters that were chosen. Exists if ``kernel_params`` is a list or "auto".
    choices_ : list of Choice
        The similarities that were compared, the best one first: (kernel_params, similarity, loss,
        tuned). Exists if there was more than one; a saved model does not have it.
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the approximate kernel matrix of the training objects, by decreasing absolute
        value; those that are zero up to rounding are left out.
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
    KreinRidgeClassifier : Least squares without the constraint.
    KreinVCRidge : The same for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import KreinVCRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KreinVCRidgeClassifier("delta_gauss", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KreinClassifierBase._parameter_constraints,
        **CONSTRAINTS,
    }
    _fitted: ClassVar[tuple[str, ...]] = (*IncrementalClassifier._fitted, "radius_")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        landmarks: Any = "auto",
        similarity: str = "auto",
        lambda_plus: float | str = "auto",
        lambda_minus: float | str = "auto",
        radius: float | str | Sequence[float] = "auto",
        class_weight: dict[Any, float] | str | None = None,
        probability: bool = False,
        cv: Any = None,
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
        self.radius = radius
        self.class_weight = class_weight
        self.probability = probability
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _recipe(self) -> Recipe:
        coding = Classes(self.class_weight)
        return Recipe(VarianceConstrained(self.radius), coding, in_parts=True)
