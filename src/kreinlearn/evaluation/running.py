"""The function ``evaluate``: fit every learner on every fold and compare their errors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils._param_validation import StrOptions, validate_params

from kreinlearn.data.memory import Resources, budget_bytes
from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator, take
from kreinlearn.distributed.entrance import require_in_memory
from kreinlearn.estimators.base import N_LANDMARKS
from kreinlearn.evaluation.learners import Learner, Settings, Wanted, learners_for
from kreinlearn.evaluation.result import Evaluation, Score
from kreinlearn.evaluation.targets import Targets, targets_of
from kreinlearn.inspection.arguments import CHECKS, Array, KernelLike, KernelParams, Objects, Seed
from kreinlearn.inspection.prepared import Prepared, described, prepare
from kreinlearn.kernels import remembering, resolve
from kreinlearn.kernels.keys import key_of
from kreinlearn.learn.folds import random_folds
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.nystrom.schemes import SCHEMES
from kreinlearn.pairs.evaluate import pairs_among
from kreinlearn.progress import Progress, time_in_words

REMEMBERED = "1GB"  # of kernel values, unless memory_budget says otherwise
MOST_NOTED = 6  # warnings that are quoted
Folds = list[tuple[Array, Array]]  # row numbers to train on, and to test on
CrossValidation: TypeAlias = int | Iterable[tuple[Array, Array]] | BaseCrossValidator | None
Report = Callable[[int, int, str], None]  # called with (done, total, name of the learner)


@validate_params(
    {
        **CHECKS,
        "learners": [str, "array-like"],
        "cv": ["cv_object"],
        "landmarks": [*N_LANDMARKS, StrOptions({"auto", *SCHEMES}), Landmarks],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "resources": [Resources, None],
        "progress": [callable, None],
    },
    prefer_skip_nested_validation=True,
)
def evaluate(
    X: Objects, y: ArrayLike | str, kernel: KernelLike = "gaussian", *,
    kernel_params: KernelParams = None, learners: str | Iterable[Wanted] = "auto",
    cv: CrossValidation = 5, landmarks: Landmarks | float | str | None = "auto",
    task: str = "auto", resources: Resources | None = None, n_jobs: int | None = None,
    random_state: Seed = None, verbose: int | bool = 0, progress: Report | None = None,
) -> Evaluation:  # fmt: skip
    """Find out which learner has the smallest error on these objects.

    All learners are cross-validated on the same folds, with their default parameters: the Krein
    learners, ridge regression on similarities, support vector machines on a corrected spectrum,
    nearest neighbours, and a constant. A learner that fails gets a row that says why.

    Nearest neighbours are found by the dissimilarity, by the squared distance
    k(x, x) + k(z, z) - 2 k(x, z) or, for vectors, by the Euclidean distance; their number is
    chosen by leave-one-out.

    A kernel on objects, or a function, evaluates no pair twice as long as its values fit into
    the memory budget of ``resources`` (1 GB by default). If all pairs fit they are evaluated first,
    and the seconds of the learners do not include that time.

    Parameters
    ----------
    X : array-like or sequence of objects
        Objects, vectors or a square matrix, as the learners take them.
    y : array-like or str
        Labels or numbers, one per object, or the name of their column if X is a table.
    kernel : str, callable or Kernel, default="gaussian"
        The similarity or dissimilarity: a registered name, a function of two blocks of objects,
        or a kernel object.
    kernel_params : dict or None, default=None
        Parameters of the kernel.
    learners : "auto" or list, default="auto"
        The learners to compare: their names as they are shown, or pairs (name, estimator).
    cv : int, splitter, iterable or None, default=5
        The number of folds, of which there are at most as many as the smallest class has objects;
        or a splitter of scikit-learn. None means 5.
    landmarks : int, float, str, Landmarks or None, default="auto"
        How the learners that use landmarks choose them: their number, as an integer or as a
        fraction of the objects; the name of a scheme; or both, as ``Landmarks(n, scheme)``. None
        means that all objects are landmarks. Row numbers and objects are not accepted, because
        every fold has landmarks of its own.
    task : {"auto", "classification", "regression"}, default="auto"
        What to learn. By default it follows from y.
    resources : Resources or None, default=None
        The memory that fits and kernel values may use, and the type of their numbers. A store on
        disk is not accepted, because every fold would need one of its own.
    n_jobs : int or None, default=None
        The number of processes for a Python function, and of threads for other kernels.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator for folds and landmarks.
    verbose : int or bool, default=0
        If it is 1, a progress bar is shown on a terminal.
    progress : callable or None, default=None
        Called as ``progress(done, total, name)`` each time a learner has been fitted on a fold.

    Returns
    -------
    Evaluation
        Errors, differences and a verdict; print it, or read the attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> names = ["KreinRidgeClassifier", "k nearest neighbours"]
    >>> result = evaluate(X, y, "delta_gauss", learners=names, random_state=0)
    >>> sorted(score.name for score in result.scores), result.n_folds
    (['KreinRidgeClassifier', 'k nearest neighbours'], 5)
    """
    rng = as_generator(random_state)
    require_in_memory(
        X,
        "evaluate cuts folds by row number, and takes no dask collection; pass a sample of its "
        "rows, computed",
    )
    settings = Settings(kernel, kernel_params, landmarks, n_jobs, resources)
    _require_for_all_folds(settings)
    budget = (resources and resources.memory_budget) or REMEMBERED
    X, y = with_target(X, y)
    with warnings.catch_warnings(record=True) as caught:  # every fit warns: they are quoted once
        warnings.simplefilter("always")
        prepared = prepare(X, rng=rng, verbose=verbose, **settings.parameters("landmarks"))
        n = prepared.n
        targets = targets_of(y, n, task)
        folds = _folds(targets, cv, n, rng)
        chosen, left_out = learners_for(targets.task, learners, n)
        bar, seed = Progress(verbose, kernel), int(rng.integers(2**31))
        run = Run(prepared, targets, folds, settings, seed, bar)
        with remembering(budget) if prepared.kernel.costly else nullcontext():
            pairs = _evaluate_all_pairs(run, budget_bytes(budget))
            scores = run.scores(chosen, progress)
    scores.sort(key=lambda score: (score.failed is not None, score.mean))
    ratio = float(np.mean([len(test) / len(train) for train, test in folds]))
    notes = (*targets.notes, *left_out, *pairs, *_distinct(caught))
    name = described(kernel, kernel_params)
    return Evaluation(targets.task, targets.metric, n, len(folds), ratio, name, scores, notes)


def _require_for_all_folds(settings: Settings) -> None:
    """Raise a ValueError for what one fold could use, but not all of them."""
    wanted = settings.landmarks
    if isinstance(wanted, Landmarks) and not isinstance(wanted.n, Real | str | None):
        raise ValueError(
            "evaluate chooses landmarks for every fold; pass landmarks= a number or a scheme, not "
            "the landmarks themselves"
        )
    if settings.resources is not None and settings.resources.store is not None:
        raise ValueError(
            "evaluate fits every fold to other rows, and each would need a store of its own; leave "
            "store out of resources"
        )


def _folds(targets: Targets, cv: CrossValidation, n: int, rng: np.random.Generator) -> Folds:
    """Row numbers of each fold; where there are classes, each fold gets its share of each."""
    labels = targets.labels
    if cv is not None and not isinstance(cv, int | np.integer):
        splits = check_cv(cv, targets.y, classifier=labels is not None)
        return list(splits.split(np.zeros(n), targets.y))
    k = max(2, min(5 if cv is None else int(cv), targets.most_folds))
    numbers = random_folds(n, k, rng, labels)
    return [(np.flatnonzero(numbers != j), np.flatnonzero(numbers == j)) for j in range(k)]


def _evaluate_all_pairs(run: Run, most_bytes: int) -> list[str]:
    """Evaluate all pairs once, if their values fit into memory and the folds will ask for them.

    Returns a sentence about it, or nothing.
    """
    prepared, kernel, n = run.prepared, run.prepared.kernel, run.prepared.n
    if not kernel.costly or 8 * (n + 1) ** 2 > most_bytes or not _same_for_folds(run):
        return []
    start = time.perf_counter()
    prepared.all_pairs(prepared.X, np.arange(n), run.bar, "pairs")
    spent = time.perf_counter() - start
    duration = f"about {time_in_words(spent)}" if spent >= 2 else f"{spent:.2g} s"
    return [
        f"All {pairs_among(kernel, n):,} pairs were evaluated once, in {duration}; the seconds of "
        "learners are without that."
    ]


def _same_for_folds(run: Run) -> bool:
    """Whether the kernel stays the same when it is fitted to a part of the objects."""
    X, (train, _) = run.prepared.X, run.folds[0]
    whole, part = (
        resolve(run.settings.kernel, run.settings.kernel_params).fit(Z, np.random.default_rng(0))
        for Z in (X, take(X, train))
    )
    return bool(key_of(whole) == key_of(part))


@dataclass(frozen=True)
class Run:
    """Everything that the fits of all learners share."""

    prepared: Prepared
    targets: Targets
    folds: Folds
    settings: Settings
    seed: int
    bar: Progress

    def scores(self, learners: list[Learner], progress: Report | None) -> list[Score]:
        total, done, scores = len(learners) * len(self.folds), 0, []
        with self.bar.step("fits", total):
            for learner in learners:
                fits: list[tuple[Array, float, float]] = []
                failed: str | None = None
                for fold in range(len(self.folds)):
                    if failed is None:
                        try:
                            fits.append(self._fit(learner, fold))
                        except Exception as error:  # its row says so, and the others go on
                            text = " ".join(str(error).split())
                            failed = f"failed, {type(error).__name__}: {text}"
                    done += 1
                    self.bar.add(1)
                    if progress is not None:
                        progress(done, total, learner.name)
                scores.append(_score(learner, fits, failed))
        return scores

    def _fit(self, learner: Learner, fold: int) -> tuple[Array, float, float]:
        """The losses of the test objects, and the seconds of the fit and of the prediction."""
        train, test = self.folds[fold]
        model = learner.make(self.settings, self.seed + fold)
        start = time.perf_counter()
        model.fit(self.prepared.part(train, train), self.targets.y[train])
        fitted = time.perf_counter()
        predicted = model.predict(self.prepared.part(test, train))
        end = time.perf_counter()
        return self.targets.losses(predicted, test), fitted - start, end - fitted


def _score(learner: Learner, fits: list[tuple[Array, float, float]], failed: str | None) -> Score:
    if failed is not None:
        return Score(learner.name, learner.kind, np.empty(0), np.nan, np.nan, failed)
    losses, fitting, predicting = zip(*fits, strict=True)
    errors = np.array([part.mean() for part in losses])
    seconds = float(np.mean(fitting)), float(np.mean(predicting))
    return Score(learner.name, learner.kind, errors, *seconds, losses=np.concatenate(losses))


def _distinct(caught: list[warnings.WarningMessage]) -> list[str]:
    """Each warning once, up to a number of them."""
    texts = list(dict.fromkeys(_quoted(str(warning.message)) for warning in caught))
    left = len(texts) - MOST_NOTED
    return texts[:MOST_NOTED] + ([f"{left} further warnings of fits."] if left > 0 else [])


def _quoted(message: str) -> str:
    if message.startswith("remembering("):
        return "Values of pairs exceed memory_budget: some were evaluated more than once."
    return f"Warning: {message}"
