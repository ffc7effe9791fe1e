"""Krein squared-hinge support vector machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn.data.memory import Resources
from kreinlearn.estimators.learner import KreinClassifierBase
from kreinlearn.estimators.ridge import RandomState
from kreinlearn.learn.coding import Classes
from kreinlearn.learn.fit import Recipe
from kreinlearn.learn.losses.hinge import SquaredHinge
from kreinlearn.learn.losses.sparse import SparseHinge


class KreinSVC(KreinClassifierBase):
    """Squared-hinge support vector machine in a Krein space.

    For classification with two or more classes, by a finite Newton method.
    Labels become targets +-1; of more than two classes each is learned against all others. The
    estimator minimises

    ``mean(max(0, 1 - y f(x)) ** 2) + lambda_plus |f_+|^2 + lambda_minus |f_-|^2``

    where ``f_+`` and ``f_-`` are the parts of f in the positive and the negative space of the
    kernel. With ``lambda_l1``, the term ``lambda_l1 * sum_j |a_j|`` is added, where a_j is the
    coefficient of landmark z_j in units in which k(x, z_j) has mean square 1: few landmarks remain,
    and prediction is fast. With ``lambda_plus=0`` and ``lambda_minus=0`` it is the only penalty.

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
        ``Landmarks(...)``. "auto" takes all objects if a fit takes at most 40 seconds then (about
        4,000 of two classes), and otherwise fewer.
    similarity : str, default="auto"
        From a dissimilarity to a similarity: "squared" (centred, the paper's), "linear", "exp",
        "narrow_exp", "gauss", "inverse", "local1", "local3", "local7", "local_exp1", "local_exp3",
        "local_exp7", "local_inverse1", "local_inverse3", "rank1", "rank3", "rank10" or
        "rank_inverse3"; ``SimilarityOf`` defines them. "auto" blends all
        but "inverse", with weights by their cross-validated errors, if all objects are landmarks;
        otherwise it takes the best one.
    lambda_plus : float or "auto", default="auto"
        Penalty on the part of f in the positive space, at least 0. "auto" tunes it by
        cross-validation.
    lambda_minus : float, "auto" or "equal", default="auto"
        Penalty on the part of f in the negative space, at least 0. "auto" tunes it by
        cross-validation; "equal" uses the same value as ``lambda_plus``.
    lambda_l1 : float, "auto" or None, default=None
        Penalty on the sum of the absolute coefficients of the landmarks, above 0; landmarks without
        a coefficient are dropped. None: no such penalty. "auto" takes the largest value whose
        cross-validated loss is within one standard error of the smallest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as {label: weight}. "balanced" gives all classes the same total
        weight; None leaves the weights of the objects as they are. Probabilities stay those of
        the data, so that ``predict`` may prefer another class than the most probable one.
    probability : bool, default=False
        Whether ``predict_proba`` is available. No object is compared twice for it, and nothing is
        fitted again but machines of folds of the features: a sigmoid, or of more than two classes
        one temperature, is fitted to the scores of objects that were left out. Probabilities are
        those of the data, weighted by ``sample_weight`` and not by ``class_weight``. With
        ``class_weight``, and of two classes in any case, the class of the largest probability need
        not be that of ``predict``.
    cv : int, splitter, iterable or None, default=None
        The folds of cross-validation: their number, a splitter of scikit-learn, or (train, test)
        pairs that test each object at most once. None draws 5 folds, or fewer if a class is
        smaller.
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
        Coefficients of the features; with an l1 penalty those of the landmarks. There is one column
        for two classes, and otherwise one for each class or label.
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
    lambda_l1_ : float
        The l1 penalty that was used. Exists with an l1 penalty.
    l1_path_ : ndarray of shape (n_trials, 3)
        What was tried: l1 penalty, cross-validated loss, its standard error; no rows if
        ``lambda_l1`` is a number. Exists with an l1 penalty.
    n_active_landmarks_ : int
        The number of landmarks with a coefficient. Exists with an l1 penalty.
    n_iter_ : int
        The number of Newton steps, the largest of all columns.
    cv_loss_ : float
        The cross-validated squared hinge loss, if a penalty was tuned.
    cv_trials_ : ndarray of shape (n_trials, 3)
        Everything that was tried: both penalties, and the loss. If there are many more
        objects than landmarks, the trials are on some of the objects, and the penalties of all
        objects are those of the best trial times a factor. Exists if a penalty was tuned.
    folds_ : array-like of shape (n_samples,) or (n_samples, 2)
        The fold of each training object, in two rounds if these are few; -1 if it is in every
        training part. ``np.asarray`` makes
        an array of it. A saved model does not have it.
    decision_ : str
        How many objects are landmarks, and why. Exists if ``landmarks`` is "auto" and the objects
        are in memory.
    similarity_ : str
        How the dissimilarity was turned into a similarity. Exists for dissimilarities.
    kernel_params_ : dict
        The kernel parameters that were chosen. Exists if ``kernel_params`` is a list or "auto".
    choices_ : list of Choice
        The similarities that were compared, the best one first: (kernel_params, similarity, loss,
        tuned). Exists if there was more than one; a saved model does not have it.
    signature_ : ndarray of shape (rank_,)
        The sign of each feature, 1 or -1. Exists without an l1 penalty.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the approximate kernel matrix of the training objects, by decreasing absolute
        value; those that are zero up to rounding are left out. Exists without an l1 penalty.
    rank_ : int
        The number of features.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The landmarks; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,) or None
        Row numbers of the landmarks in the training data; None if they were given as objects.
    n_landmarks_ : int
        The number of landmarks; with an l1 penalty, of those that are left.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinRidgeClassifier : The squared error instead of the squared hinge loss; faster.
    SpectrumSVC : The usual machine on a matrix made positive definite.

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
        self.lambda_l1 = lambda_l1
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
        if self.lambda_l1 is None:
            return Recipe(SquaredHinge(), Classes(self.class_weight))
        strength = None if isinstance(self.lambda_l1, str) else float(self.lambda_l1)
        return Recipe(SparseHinge(strength), Classes(self.class_weight))
