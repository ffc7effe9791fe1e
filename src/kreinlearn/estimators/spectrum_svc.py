"""The support vector machine on a matrix whose spectrum is corrected: the usual baselines."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval, StrOptions

from kreinlearn._warnings import warn
from kreinlearn.data.memory import budget_bytes, require_memory
from kreinlearn.data.sources import with_target
from kreinlearn.data.tiles import as_generator, length, take
from kreinlearn.estimators._base import KreinEstimator
from kreinlearn.estimators._callbacks import reported
from kreinlearn.estimators._classifier import KreinClassifier, class_scores, pairs_of, require_two
from kreinlearn.estimators._learner import KreinLearner
from kreinlearn.estimators._storing import storing
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.base import symmetrised
from kreinlearn.kernels.dissimilarity import TRANSFORMS, refit
from kreinlearn.nystrom.approximation import grow_landmarks, open_panel
from kreinlearn.pairs.panel import Panel
from kreinlearn.solvers.spectrum import CORRECTIONS, SpectrumCorrection, correct, power_of_two_scale
from kreinlearn.sums.parallel import serial_blas

Array = NDArray[Any]

C_GRID = np.logspace(-2, 4, 7)  # over the mean self-similarity of the corrected matrix
TOL = 1e-3  # SVC's own; below 1e-4 libsvm, whose kernel values are float32, may never end
FOLD_STEPS, STEPS = 10**5, 10**6  # most iterations: the same holds where C is large
TIE_RTOL = 1e-12  # accuracies that count as equal
MATRICES = 9  # n x n, held at once while a fit is at its largest
BOX = (1e-300, 1e300)  # what libsvm takes as C


class SpectrumSVC(KreinClassifier):
    """scikit-learn's SVC on all training objects, with the negative eigenvalues corrected.

    Maximises ``sum(a) - 1/2 a' y H y a`` for ``0 <= a <= C``, ``a'y = 0``, with H made of
    K = U D U': U |D| U' ("flip", the Krein SVM of Loosli et al.), U max(D, 0) U' ("clip"),
    U D^2 U' ("square") or K - min(D) I ("shift"). New objects have the rows that go with H:
    k_x U diag(gain) U' with gain sign(D), D > 0 or D; a shift leaves them as they are.

    Weights of samples enter as repetitions do: H is made of the weighted matrix.

    Parameters
    ----------
    spectrum : "flip", "clip", "shift" or "square".
    C : weight of the errors, or "auto": of seven values from 0.01 to 10,000 over the mean
        self-similarity the one of the best cross-validated accuracy, the smaller one if equal.
    similarity : from a dissimilarity to a similarity, by the training objects: "squared" (centred
        squares, the paper's), "linear", "exp", "narrow_exp", "inverse", "local1", "local3",
        "local7", "local_exp1", "local_exp3", "local_exp7", "local_inverse1", "local_inverse3".
    class_weight : dict, "balanced" or None: weights of the errors; H does not depend on it.
    cv : folds that tune: an int, a splitter, "loo", or None: 5. Each fold corrects the spectrum
        of its own training part.
    kernel, kernel_params, symmetrize, dtype, memory_budget, store, n_jobs, random_state, verbose :
        as in ``KreinNystroem``.

    Attributes
    ----------
    classes_ : labels; with more than two, pairs of them are separated and vote.
    dual_coef_, intercept_ : of training objects (n, pairs) and constants (pairs,): decisions on
        pairs are k(x, X) @ dual_coef_ + intercept_, positive for the second class of a pair.
    support_ : rows of the support vectors; flip, clip and square need all rows to predict.
    n_iter_ : the most steps that a pair of classes took.
    C_, C_grid_, cv_scores_ : the C used, those tried and their accuracies.
    folds_ : fold of each row in ``landmark_indices_``, -1 if it is in every training part.
    landmarks_, landmark_indices_, n_landmarks_, kernel_ : the training objects of positive weight.

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
                *("kernel", "kernel_params", "symmetrize", "dtype"),
                *("memory_budget", "store", "n_jobs", "random_state", "verbose"),
            )
        },
        **{name: KreinClassifier._parameter_constraints[name] for name in ("class_weight", "cv")},
        "spectrum": [StrOptions(set(CORRECTIONS))],
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "similarity": [StrOptions(set(TRANSFORMS))],
    }

    # What other estimators leave open: every object is a landmark.
    n_landmarks = None
    landmarks = "uniform"
    core = "plain"
    precomputed_columns = "all"

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        spectrum: str = "flip",
        C: Any = "auto",
        similarity: str = "squared",
        class_weight: Any = None,
        cv: Any = None,
        kernel_params: Any = None,
        symmetrize: str = "average",
        dtype: Any = None,
        memory_budget: Any = None,
        store: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.spectrum = spectrum
        self.C = C
        self.similarity = similarity
        self.class_weight = class_weight
        self.cv = cv
        self.kernel_params = kernel_params
        self.symmetrize = symmetrize
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.store = store
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Evaluate all pairs, correct the spectrum, choose C, solve."""
        self._fit(X, y, sample_weight)
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores (n,) of two classes, positive for the second; (n, n_classes) of more."""
        return class_scores(self._decision(X), len(self.classes_), "ovo")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    # Fitting

    @reported
    @storing
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        rng = as_generator(self.random_state)
        seed = int(rng.integers(2**63))
        X, y = with_target(X, y)
        X, kernel = self._prepared(X, np.random.default_rng(seed))
        self._require_targets(X, y)
        y, _, labels = self._encoded(y)
        rows, w, errors = self._row_weights(sample_weight, X, labels)
        if len(rows) < length(X) and kernel.takes != "precomputed":  # as if not there
            kernel.fit(take(X, rows), np.random.default_rng(seed))
        tuned = isinstance(self.C, str)
        folds = self._row_folds(X, y, labels, rows, rng) if tuned else None
        machine = Machine(self.spectrum, labels[rows], w, errors, len(self.classes_))
        with serial_blas():
            panel = self._all_pairs(X, kernel, rows, rng)
            C = self._best(panel, machine, *folds) if folds else None
            whole = machine.corrected(panel.K_ZZ, slice(None))
            box = whole.box(self.C) if C is None else C
            solution = machine.solve(whole.H, slice(None), box, STEPS)
        self._keep_machine(panel, whole, box, solution)

    def _row_weights(self, sample_weight: Any, X: Any, labels: Any) -> tuple[Any, Any, Any]:
        """The rows that count, their weights as objects, and the weights of their errors."""
        w = KreinLearner._weights(self, sample_weight, X, labels)
        errors = self._weights(sample_weight, X, labels)
        if errors is None:
            ones = np.ones(len(labels))
            return np.arange(len(labels)), ones, ones
        rows = np.flatnonzero(errors > 0)
        require_two(self.classes_[np.unique(labels[rows])], " of positive weight")
        return rows, np.ones(len(rows)) if w is None else w[rows], errors[rows]

    def _all_pairs(self, X: Any, kernel: Kernel, rows: Any, rng: np.random.Generator) -> Panel:
        n = len(rows)
        require_memory(
            8 * MATRICES * n * n, budget_bytes(self.memory_budget),
            f"the spectrum of all {n} x {n} pairs",
            "raise memory_budget, or fit KreinSVC or KreinRidgeClassifier, which take landmarks",
        )  # fmt: skip
        plan = replace(self._plan(X, kernel, None), eligible=rows, n_landmarks=n)
        panel = open_panel(kernel, X, plan, rng)
        grow_landmarks(panel, plan, rng)
        if kernel.is_dissimilarity:
            panel.use(self.similarity)
        used = "of a training pair one order or the mean counts, k(x, z) with z a training object"
        self._probe_landmarks(panel, used)
        return panel

    def _keep_machine(self, panel: Panel, whole: Corrected, C: float, solution: Solution) -> None:
        """All that predicts; ``_columns`` comes last and makes the estimator fitted."""
        given = panel.kernel.takes == "precomputed"
        self._keep_kernel(panel.kernel)
        self.landmark_indices_ = panel.landmarks
        self.landmarks_ = panel.landmarks if given else panel.X.take(panel.landmarks)
        self.n_landmarks_ = len(panel.landmarks)
        self.support_ = panel.landmarks[solution.alpha.any(axis=1)]
        self.n_iter_ = solution.n_iter
        self.C_ = float(self.C) if not isinstance(self.C, str) else whole.unboxed(C)
        if isinstance(self.C, str):
            self.C_grid_ = np.array([whole.unboxed(value) for value in C_GRID])
        self.dual_coef_ = whole.dual(solution.alpha)
        self.intercept_ = self._intercept = solution.intercept
        self._columns = replace(panel.evaluator(), stored=None)
        if not whole.H.any():
            warn("the corrected matrix is zero: the larger of two classes is predicted")
        if not solution.converged:
            message = f"the machine has not converged in {STEPS} steps; lower C={self.C_:.3g}"
            warn(message, ConvergenceWarning)

    # Choosing C

    def _row_folds(
        self, X: Any, y: Any, labels: Any, rows: Any, rng: np.random.Generator
    ) -> tuple[Any, int]:
        """Folds of the rows that count; a splitter splits all rows, as it was made for them."""
        if self.cv is None or isinstance(self.cv, Integral | str):
            _, present = np.unique(labels[rows], return_inverse=True)
            return self._folds(len(rows), X, y, present, rng)
        folds, n_folds = self._folds(len(labels), X, y, labels, rng)
        return folds[rows], n_folds

    def _best(self, panel: Panel, machine: Machine, folds: Any, n_folds: int) -> float:
        """The entry of C_GRID whose machines classify most of what their folds leave out."""
        sizes = np.bincount(folds[folds >= 0], minlength=n_folds)
        used = np.flatnonzero((sizes > 0) & (sizes < len(folds)))
        if not len(used):
            raise ValueError(f"n_samples={len(folds)} leaves no fold to choose C on; give C or cv")
        right, progress = np.zeros(len(C_GRID)), self._progress()
        with progress.step("tested", int(sizes[used].sum())):
            for k in used:
                right += self._right(panel, machine, folds == k)
                progress.add(int(sizes[k]))
        self.cv_scores_ = right / machine.errors[np.isin(folds, used)].sum()
        self.folds_ = folds
        best = self.cv_scores_ >= (1 - TIE_RTOL) * self.cv_scores_.max()
        return float(C_GRID[np.argmax(best)])

    def _right(self, panel: Panel, machine: Machine, tested: Any) -> Any:
        """Weight of the tested rows that are classified rightly, for every C."""
        train, valid = np.flatnonzero(~tested), np.flatnonzero(tested)
        C_XZ, K_ZZ = similarities_of(panel, train, self.similarity)
        part = machine.corrected(K_ZZ, train)
        right = np.zeros(len(C_GRID))
        for g, C in enumerate(C_GRID):
            solution = machine.solve(part.H, train, C, FOLD_STEPS)
            scores = C_XZ[valid] @ part.dual(solution.alpha) + solution.intercept
            hit = machine.decided(scores) == machine.labels[valid]
            right[g] = machine.errors[valid][hit].sum()
        return right


def similarities_of(panel: Panel, train: Array, name: str) -> tuple[Array, Array]:
    """C of all rows to the training part and K_ZZ; distances are transformed by that part alone."""
    if panel.transform is None:
        C = panel.C[:, train]
        return C, symmetrised(C[train])
    return refit(panel.raw, train, train, np.arange(len(panel.rows)), TRANSFORMS[name])


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
        """C of the kernel as it is, for H."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.clip(C * self.size * np.float64(self.unit) ** self.degree, *BOX))

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
        correction = correct(A / unit, self.spectrum)
        H = correction.train / root / root.T
        size = float(np.mean(np.abs(np.diagonal(H)))) or 1.0
        degree = 2 if self.spectrum == "square" else 1
        return Corrected(H / size, unit, size, degree, root, correction)

    def solve(self, H: Array, rows: Any, C: float, steps: int) -> Solution:
        """Of all pairs of classes; a class without rows loses against all others."""
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
        scores = class_scores(scores, self.n_classes, "ovo")
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)


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
