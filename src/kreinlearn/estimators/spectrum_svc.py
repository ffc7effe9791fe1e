"""The support vector machine on a matrix whose spectrum is corrected: the usual baselines."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function

from kreinlearn._warnings import warn
from kreinlearn.data.memory import Resources
from kreinlearn.data.opening import with_target
from kreinlearn.data.validation import TargetLike, WeightLike
from kreinlearn.estimators.base import KreinEstimator
from kreinlearn.estimators.learner import Keep, KreinClassifierBase, SimilarityNames
from kreinlearn.estimators.ridge import RandomState
from kreinlearn.kernels.base import Objects
from kreinlearn.kernels.dissimilarity import AUTO_TRANSFORMS, TRANSFORMS
from kreinlearn.learn.coding import Classes, Encoded, read_targets, require_two
from kreinlearn.learn.combination import compared_on
from kreinlearn.learn.comparison import ALMOST_ALL, COMPARED
from kreinlearn.learn.exact import evenly
from kreinlearn.learn.fit import Recipe
from kreinlearn.learn.folds import are_drawn, draw_folds, warn_of_rare
from kreinlearn.learn.losses.hinge import SquaredHinge
from kreinlearn.learn.search import Unknowns
from kreinlearn.nystrom.landmarks import Landmarks, MapSpec, open_sample, select_landmarks
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.solvers.spectrum import (
    CORRECTIONS,
    SpectrumCorrection,
    correct,
    power_of_two_scale,
    signed_eigh,
)

Array = NDArray[Any]

C_GRID = np.logspace(-2, 4, 7)  # over the mean self-similarity of the corrected matrix
TOL = 1e-3  # SVC's own; below 1e-4 libsvm, whose kernel values are float32, may never end
FOLD_STEPS, STEPS = 10**5, 10**6  # most iterations: the same holds where C is large
TIE_RTOL = 1e-12  # accuracies that count as equal
MATRICES = 9  # n x n, held at once while a fit is at its largest
BOX = (1e-300, 1e300)  # what libsvm takes as C
USED = "of a training pair one order or the mean counts, k(x, z) with z a training object"


class SpectrumSVC(KreinClassifierBase):
    """scikit-learn's SVC on all training objects, with the negative eigenvalues corrected.

    For comparison with ``KreinSVC``, on data that are small enough for all pairs. The dual problem
    is to maximise

    ``sum(a) - 1/2 a' y H y a`` for ``0 <= a <= C`` and ``a'y = 0``

    with H made of ``K = U D U'``: ``U |D| U'`` ("flip", the Krein SVM of Loosli et al.),
    ``U max(D, 0) U'`` ("clip"), ``U D^2 U'`` ("square") or ``K - min(D) I`` ("shift"). A new object
    has the row that goes with H: ``k_x U diag(gain) U'``, where the gain is ``sign(D)``, ``D > 0``
    or ``D``; a shift leaves the row as it is. Weights of objects have the effect of repeating them.
    With more than two classes, each pair of classes has a machine, and the machines vote.

    Parameters
    ----------
    kernel : str, callable, Kernel or dict, default="gaussian"
        The similarity: a name such as "gaussian" or "levenshtein", a function k(A, B) that returns
        a matrix, ``pairwise(f)`` of a function of two objects, ``dissimilarity(...)``, or an object
        of ``kreinlearn.kernels``. "precomputed" and "precomputed_dissimilarity" take a matrix as X.
        A dict from fields of records to kernels is the sum of ``columns(...)``.
    kernel_params : dict or None, default=None
        Parameters of the kernel, by name; None leaves its own defaults.
    spectrum : {"flip", "clip", "shift", "square"}, default="flip"
        What the eigenvalues D of K are replaced by: ``|D|``, ``max(D, 0)``, ``D - min(D)`` or
        ``D^2``.
    C : float or "auto", default="auto"
        Weight of the errors, above 0. "auto" tries seven values, from 0.01 to 10,000 divided by the
        mean self-similarity, and takes the one with the best cross-validated accuracy; the smallest
        of equals.
    similarity : str, default="squared"
        From a dissimilarity to a similarity: "squared" (centred, the paper's), another one that
        ``SimilarityOf`` defines, or a mean of several as in "0.7 exp + 0.3 rank3". "auto" blends
        all but "inverse" as ``KreinRidgeClassifier`` does, by the squared error of least squares. A
        similarity is used as it is.
    class_weight : dict, "balanced" or None, default=None
        Weights of the errors of the classes, as {label: weight}. "balanced" gives all classes the
        same total weight; None leaves the weights of the objects as they are. H does not depend on
        it.
    cv : int, splitter, iterable, "loo" or None, default=None
        The folds by which C is chosen: their number, a splitter of scikit-learn, (train, test)
        pairs, or "loo" (leave one out). None draws 5 folds, or fewer if a class is smaller. Each
        fold corrects the spectrum of its own training part.
    resources : Resources or None, default=None
        Memory, and a store of kernel values on disk, as ``Resources(...)``. None is
        ``Resources()``: a quarter of the free memory, and no store.
    n_jobs : int or None, default=None
        Number of threads, or of processes for kernels that are Python functions; -1 is one for each
        core. None: as many threads as BLAS uses, and no further processes.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random choice of folds. An int gives the same result at every call.
    verbose : int or bool, default=0
        If positive, a run that takes long is announced, and its progress is shown on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    similarity_ : str
        How the dissimilarity was turned into a similarity. Exists for dissimilarities.
    dual_coef_ : ndarray of shape (n_landmarks_, n_pairs)
        Coefficients of the training objects, one column for each pair of classes: the decision
        values of pairs are ``k(x, landmarks_) @ dual_coef_ + intercept_``, positive for the second
        class.
    intercept_ : ndarray of shape (n_pairs,)
        The constant term of each pair of classes.
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors. All objects are needed to predict, except with "shift".
    C_ : float
        The C that was used, given or tuned.
    C_grid_ : ndarray of shape (7,)
        The values of C that were tried. Exists if C was tuned.
    cv_scores_ : ndarray of shape (7,)
        Their cross-validated accuracies. Exists if C was tuned.
    folds_ : ndarray of shape (n_landmarks_,)
        The fold of each object of ``landmark_indices_``; -1 if it is in every training part. Exists
        if C was tuned.
    n_iter_ : int
        The number of steps of the solver, the largest of all pairs of classes.
    landmarks_ : ndarray, sparse matrix or list of length n_landmarks_
        The training objects of positive weight; with a precomputed kernel their row numbers.
    landmark_indices_ : ndarray of shape (n_landmarks_,)
        Row numbers of these objects.
    n_landmarks_ : int
        The number of these objects.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_ : int
        The number of columns of X. Exists for vectors, tables and matrices.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns of X, if they are all strings.

    See Also
    --------
    KreinSVC : A machine in the Krein space itself, for data of any size.
    sklearn.svm.SVC : The machine that is used, for positive definite kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import SpectrumSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> SpectrumSVC("delta_gauss", C=10.0).fit(X, y).predict(X[::60])
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: KreinEstimator._parameter_constraints[name]
            for name in (
                "kernel",
                "kernel_params",
                "resources",
                "n_jobs",
                "random_state",
                "verbose",
            )
        },
        **{
            name: KreinClassifierBase._parameter_constraints[name]
            for name in ("class_weight", "cv")
        },
        "spectrum": [StrOptions(set(CORRECTIONS))],
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "similarity": [SimilarityNames({"auto", *TRANSFORMS})],
    }
    _fitted: ClassVar[tuple[str, ...]] = (
        *KreinEstimator._fitted, "classes_", "dual_coef_", "intercept_", "_intercept", "support_",
        "similarity_",
        "n_iter_", "C_", "C_grid_", "cv_scores_", "folds_", "_conformal", "_local",
        "_own_similarities",
    )  # fmt: skip

    # What other classifiers leave open: every object is a landmark.
    landmarks = Landmarks(None, "uniform")
    probability = multilabel_ = False
    _works_elsewhere: ClassVar[bool] = False
    _takes_label_sets: ClassVar[bool] = False

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kernel_params: dict[str, Any] | None = None,
        spectrum: str = "flip",
        C: float | str = "auto",
        similarity: str = "squared",
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = None,
        resources: Resources | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int | bool = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.spectrum = spectrum
        self.C = C
        self.similarity = similarity
        self.class_weight = class_weight
        self.cv = cv
        self.resources = resources
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # Fitting

    @property
    def _recipe(self) -> Recipe:
        return Recipe(SquaredHinge(), Classes(self.class_weight))

    def _fit(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike,
        groups: ArrayLike | None = None, also: Keep | None = None,
    ) -> None:  # fmt: skip
        """Evaluate all pairs, correct the spectrum, choose C, solve."""
        with self._fitting(X, y, sample_weight):
            pairs, sample = self._fit_all_pairs(X, y, sample_weight, groups)
            if also is not None:
                also(pairs, sample)

    def _fit_all_pairs(
        self, X: Objects, y: TargetLike, sample_weight: WeightLike, groups: ArrayLike | None
    ) -> tuple[Pairs, Sample]:
        rng = self._generator()
        seed = int(rng.integers(2**63))
        X, y = with_target(X, y)
        name = type(self).__name__
        first = np.random.default_rng(seed)
        rows, kernel, y, given = self._received(X, y, sample_weight, first)
        recipe = self._suited(self._recipe, y)
        encoded = read_targets(
            recipe.coding, rows, y, given, name, intercept=True,
            budget=self._budget(),
        )  # fmt: skip
        encoded = self._grouped(encoded, rows, kernel, groups)
        assert encoded.labels is not None
        assert encoded.classes is not None
        self.classes_ = encoded.classes
        numbers, w, errors = self._row_weights(rows, encoded, given)
        if len(numbers) < len(rows) and not kernel.domain.is_matrix:  # as if they were not there
            kernel.fit(rows.take(numbers), np.random.default_rng(seed))
        tuned = isinstance(self.C, str)
        folds = self._row_folds(rows, encoded, numbers, rng) if tuned else None
        machine = Machine(self.spectrum, encoded.labels[numbers], w, errors, len(self.classes_))
        spec = MapSpec(len(numbers), "uniform", eligible=numbers)
        with self._pairs(kernel, rows, rng) as pairs:
            sample = self._all_pairs(pairs, spec, rng)
            if sample.transform is not None:
                self.similarity_ = self._similarity_of(pairs, sample, encoded)
                sample = sample.using(self.similarity_)
            whole = machine.corrected(sample.K_ZZ, slice(None))
            tune = partial(self._best, sample, machine, whole, pairs.session)
            box = tune(*folds) if folds else whole.box(float(self.C))
            solution = machine.solve(whole.H, slice(None), box, STEPS)
        self._keep_machine(pairs, sample, whole, box, solution)
        return pairs, sample

    def _row_weights(
        self, rows: Rows, encoded: Encoded, sample_weight: WeightLike
    ) -> tuple[Array, Array, Array]:
        """The rows that count, their weights as objects, and the weights of their errors."""
        labels, errors = encoded.labels, encoded.weights
        assert labels is not None
        if errors is None:
            ones = np.ones(len(rows))
            return np.arange(len(rows)), ones, ones
        numbers = np.flatnonzero(errors > 0)
        require_two(self.classes_[np.unique(labels[numbers])], " of positive weight")
        w = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        return numbers, w[numbers], errors[numbers]

    def _all_pairs(self, pairs: Pairs, spec: MapSpec, rng: np.random.Generator) -> Sample:
        n = spec.n_landmarks
        pairs.require_memory(
            8 * MATRICES * n * n, f"the spectrum of all {n} x {n} pairs",
            "raise Resources(memory_budget=...), or fit KreinSVC or KreinRidgeClassifier, which "
            "take landmarks",
        )  # fmt: skip
        sample = select_landmarks(pairs, open_sample(pairs, spec, rng), spec, rng)
        pairs.probe(sample, USED)
        return sample

    def _similarity_of(self, pairs: Pairs, sample: Sample, encoded: Encoded) -> str:
        """The similarity that is named; or the blend of least squares, on some of the objects."""
        if self.similarity != "auto":
            return str(self.similarity)
        numbers = sample.landmarks
        places = evenly(encoded.Y[numbers], COMPARED, ALMOST_ALL)
        values = sample.raw[np.ix_(places, places)]
        compared = compared_on(pairs, encoded, numbers[places], [values]).with_rounds()
        blended = compared.blended([AUTO_TRANSFORMS], Unknowns((None, None)))
        return str(blended.judged.terms[0].transform)

    def _keep_machine(
        self, pairs: Pairs, sample: Sample, whole: Corrected, C: float, solution: Solution
    ) -> None:
        """All that predicts."""
        self._keep_landmarks(pairs, sample)
        self.support_ = sample.landmarks[solution.alpha.any(axis=1)]
        self.n_iter_ = solution.n_iter
        self.C_ = float(self.C) if not isinstance(self.C, str) else whole.unboxed(C)
        if isinstance(self.C, str):
            self.C_grid_ = np.array([whole.unboxed(value) for value in C_GRID])
        self.dual_coef_ = whole.dual(solution.alpha)
        self.intercept_ = self._intercept = solution.intercept
        self._keep_columns(pairs.evaluator(sample))
        if not whole.H.any():
            warn("the corrected matrix is zero: the larger of two classes is predicted")
        if not solution.converged:
            remedy = f"lower C={self.C_:.3g}" if not isinstance(self.C, str) else self._lower_C()
            warn(f"the machine has not converged in {STEPS} steps; {remedy}", ConvergenceWarning)

    def _lower_C(self) -> str:
        """What to do where C was tuned: take the next smaller one, and what that costs."""
        at = int(np.argmin(np.abs(self.C_grid_ - self.C_)))
        tuned = f"cross-validation chose C={self.C_:.3g}"
        if at == 0:
            return f"{tuned}, the smallest that it tried: pass a smaller one"
        lower, score, best = self.C_grid_[at - 1], self.cv_scores_[at - 1], self.cv_scores_[at]
        return (
            f"{tuned} with an accuracy of {best:.1%}. Pass C={lower:.3g}, which is solved more "
            f"easily and had {score:.1%}"
        )

    # Pairs of classes

    def _class_scores(self, X: Objects) -> Array:
        return votes_of_pairs(self._scores(X), len(self.classes_))

    def _explained(self) -> tuple[Array, Array]:
        """Of many classes, the sums of the values of all pairs that each class is in."""
        W, b = super()._explained()
        k = len(self.classes_)
        if k == 2:
            return W, b
        signs = np.zeros((len(b), k))
        for p, (first, second) in enumerate(pairs_of(k)):
            signs[p, first], signs[p, second] = -1.0, 1.0
        return W @ signs, b @ signs

    def _beside_explained(self, K: Array, scores: Array) -> dict[str, Array]:
        """What the votes of pairs add to the sums of their values."""
        k = len(self.classes_)
        if k == 2:
            return {}
        return {"votes": votes_of_pairs(K @ self.dual_coef_ + self._intercept, k) - scores}

    # Choosing C

    def _row_folds(
        self, rows: Rows, encoded: Encoded, numbers: Array, rng: np.random.Generator
    ) -> tuple[Array, int]:
        """Folds of the rows that count; a splitter splits all rows, as it was made for them."""
        assert encoded.labels is not None
        if are_drawn(self.cv) or isinstance(self.cv, str):
            found, present, counts = np.unique(
                encoded.labels[numbers], return_inverse=True, return_counts=True
            )
            groups = None if encoded.groups is None else encoded.groups[numbers]
            few = encoded._replace(
                labels=present, counts=counts, classes=self.classes_[found], groups=groups
            )
            folds, n_folds = draw_folds(self.cv, Rows(numbers), few, rng)
            if are_drawn(self.cv):
                warn_of_rare(few, n_folds)
            return np.asarray(folds), n_folds
        folds, n_folds = draw_folds(self.cv, rows, encoded, rng)
        return folds[numbers], n_folds

    def _best(
        self, sample: Sample, machine: Machine, whole: Corrected, session: Session, folds: Array,
        n_folds: int,
    ) -> float:  # fmt: skip
        """The entry of C_GRID whose machines classify most of what their folds leave out."""
        sizes = np.bincount(folds[folds >= 0], minlength=n_folds)
        used = np.flatnonzero((sizes > 0) & (sizes < len(folds)))
        if not len(used):
            raise ValueError(f"n_samples={len(folds)} leaves no fold to choose C on; give C or cv")
        right, progress = np.zeros(len(C_GRID)), session.progress
        with progress.step("tested", int(sizes[used].sum())):
            for k in used:
                right += self._right(sample, machine, whole, folds == k)
                progress.add(int(sizes[k]))
        self.cv_scores_ = right / machine.errors[np.isin(folds, used)].sum()
        self.folds_ = folds
        best = self.cv_scores_ >= (1 - TIE_RTOL) * self.cv_scores_.max()
        return float(C_GRID[np.argmax(best)])

    def _right(self, sample: Sample, machine: Machine, whole: Corrected, tested: Array) -> Array:
        """Weight of the tested rows that are classified rightly, for every C of all objects."""
        train, valid = np.flatnonzero(~tested), np.flatnonzero(tested)
        K_ZZ, K_valid = sample.split(getattr(self, "similarity_", ""), train, valid)
        part = machine.corrected(K_ZZ, train)
        right = np.zeros(len(C_GRID))
        for g, C in enumerate(part.boxes(whole)):
            solution = machine.solve(part.H, train, C, FOLD_STEPS)
            scores = K_valid @ part.dual(solution.alpha) + solution.intercept
            hit = machine.decided(scores) == machine.labels[valid]
            right[g] = machine.errors[valid][hit].sum()
        return right


@dataclass(frozen=True)
class Corrected:
    """H of weighted objects in a unit in which its mean diagonal is 1, and its map of new rows."""

    H: Array  # (n, n)
    unit: float  # of the kernel
    size: float  # of H, as a multiple of unit ** degree
    degree: int
    root: Array  # (n, 1), square roots of the weights
    correction: SpectrumCorrection

    def dual(self, alpha: Array) -> Array:  # (n, q) -> (n, q)
        """From coefficients of mapped rows to those of kernel rows: h_x' alpha = k_x' dual."""
        mapped = self.correction.map((alpha / self.root).T).T * self.root
        return mapped / self.size / self.unit

    def box(self, C: float) -> float:
        """The box constraint for H that corresponds to C for the kernel itself."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.clip(C * self.size * np.float64(self.unit) ** self.degree, *BOX))

    def boxes(self, whole: Corrected) -> Array:
        """The box constraints for H that are C_GRID for the H of all objects."""
        with np.errstate(over="ignore", under="ignore"):
            unit = self.size / whole.size * np.float64(self.unit / whole.unit) ** self.degree
            return np.clip(C_GRID * unit, *BOX)

    def unboxed(self, C: float) -> float:
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return float(C / self.size / np.float64(self.unit) ** self.degree)


class Solution(NamedTuple):
    alpha: Array  # (n, pairs)
    intercept: Array  # (pairs,)
    n_iter: int  # the most of any pair
    converged: bool


@dataclass(frozen=True)
class Machine:
    """One-vs-one machines of classes 0, 1, ...; rows of all arrays are objects."""

    spectrum: str
    labels: Array  # (n,)
    weights: Array  # (n,), of objects
    errors: Array  # (n,), weights of errors
    n_classes: int

    def corrected(self, K: Array, rows: Any) -> Corrected:
        """H = w^-1/2 f(w^1/2 K w^1/2) w^-1/2: what K of repeated objects gives, once for each."""
        root = np.sqrt(self.weights[rows])[:, None]
        A = K * root * root.T
        unit = power_of_two_scale(A)
        A /= unit
        spectrum = signed_eigh(A)
        correction = correct(A, self.spectrum, spectrum)
        H = correction.train  # in whose memory it stays
        H /= root
        H /= root.T
        size = float(np.average(np.abs(np.diagonal(H)), weights=root[:, 0] ** 2)) or 1.0
        degree = 2 if self.spectrum == "square" else 1
        H /= size
        return Corrected(H, unit, size, degree, root, correction)

    def solve(self, H: Array, rows: Any, C: float, steps: int) -> Solution:
        """The machines of all pairs of classes; a class without rows loses against all others."""
        labels, errors = self.labels[rows], self.errors[rows]
        present, pairs = set(labels.tolist()), pairs_of(self.n_classes)
        alpha = np.zeros((len(labels), len(pairs)))
        intercept = np.array([float(b in present) - float(a in present) for a, b in pairs])
        if len(present) == 1:
            return Solution(alpha, intercept, 0, True)
        svc = SVC(C=C, kernel="precomputed", tol=TOL, max_iter=steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(H, labels, sample_weight=errors)
        at = [p for p, pair in enumerate(pairs) if present.issuperset(pair)]
        alpha[np.ix_(svc.support_, at)], intercept[at] = unpacked(svc)
        return Solution(alpha, intercept, int(np.max(svc.n_iter_)), svc.fit_status_ == 0)

    def decided(self, scores: Array) -> Array:
        """Numbers of classes from the scores of pairs."""
        scores = votes_of_pairs(scores, self.n_classes)
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Numbers of the classes of each pair; the second is the positive one."""
    return list(combinations(range(n_classes), 2))


def votes_of_pairs(scores: Array, n_classes: int) -> Array:  # (n, pairs) -> (n,) or (n, n_classes)
    """How many pairs each class wins, and less than half a vote by which sums break ties."""
    if n_classes == 2:
        return scores[:, 0]
    return np.asarray(_ovr_decision_function(scores > 0, scores, n_classes))


def unpacked(svc: SVC) -> tuple[Array, Array]:
    """Coefficients (support vectors, pairs) and constants, positive for the second of a pair.

    libsvm packs them: row b - 1 holds those of class a against b, row a those of b against a.
    """
    k = len(svc.n_support_)
    of_class = np.repeat(np.arange(k), svc.n_support_)
    coef = np.zeros((len(of_class), k * (k - 1) // 2))
    for p, (a, b) in enumerate(pairs_of(k)):
        coef[of_class == a, p] = svc.dual_coef_[b - 1, of_class == a]
        coef[of_class == b, p] = svc.dual_coef_[a, of_class == b]
    sign = 1.0 if k == 2 else -1.0  # only with two classes scikit-learn has turned it round
    return sign * coef, sign * svc.intercept_
