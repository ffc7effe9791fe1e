"""evaluate: cut folds, evaluate pairs once, fit every learner on every fold, compare."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import as_generator, length, take
from kreinlearn.distributed import DaskRows
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.evaluation.findings import Evaluation, Score
from kreinlearn.evaluation.learners import Common, Learner, learners_for
from kreinlearn.evaluation.targets import Targets, targets_of
from kreinlearn.inspection.findings import described
from kreinlearn.kernels import Kernel, remembering
from kreinlearn.kernels.keys import key_of
from kreinlearn.learn.folds import random_folds
from kreinlearn.nystrom.sweep import announce
from kreinlearn.pairs.evaluate import evaluate_square, pairs_among
from kreinlearn.progress import Progress, time_in_words
from kreinlearn.sums.parallel import serial_blas, worker_count

Array = NDArray[Any]
REMEMBERED = "1GB"  # of kernel values, unless memory_budget says otherwise
MOST_NOTED = 6  # warnings that are told


@dataclass(frozen=True)
class Data:
    """Objects as they were validated, once; ``square`` is a matrix, cut on both sides."""

    X: Any
    square: bool

    def part(self, rows: Array, columns: Array) -> Any:
        return self.X[np.ix_(rows, columns)] if self.square else take(self.X, rows)


@validate_params(
    {
        "kernel": [str, callable, Kernel],
        "kernel_params": [dict, None],
        "learners": [str, "array-like"],
        "cv": ["cv_object"],
        "n_landmarks": [Integral, float, None, StrOptions({"auto"})],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "n_jobs": [Integral, None],
        "memory_budget": [Interval(Integral, 1, None, closed="left"), float, str, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "progress": [callable, None],
    },
    prefer_skip_nested_validation=True,
)
def evaluate(
    X: Any,
    y: Any,
    kernel: Any = "gaussian",
    *,
    kernel_params: Any = None,
    learners: Any = "auto",
    cv: Any = 5,
    n_landmarks: Any = "auto",
    task: str = "auto",
    n_jobs: int | None = None,
    memory_budget: Any = None,
    random_state: Any = None,
    verbose: int | bool = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> Evaluation:
    """Which learner errs least on these objects? Cross-validated, all on the same folds.

    Every learner is at its defaults: the Krein learners, ridge regression on similarities, support
    vector machines on a corrected spectrum, nearest neighbours, and a constant. One that fails is
    a row that says why. Neighbours are those by the dissimilarity, by the squared distance
    k(x, x) + k(z, z) - 2 k(x, z) or, of vectors, by the Euclidean distance; their number is chosen
    by leave-one-out.

    A kernel on objects, or a function, evaluates no pair twice as long as ``memory_budget`` (1 GB
    by default) holds the values; where it holds all pairs they are evaluated first, and the
    seconds of learners are without them.

    Parameters
    ----------
    X : objects, vectors or a square matrix, as the learners take them.
    y : labels or numbers, or the name of their column in a table X.
    kernel, kernel_params, n_landmarks, n_jobs, memory_budget : as in ``KreinRidge``.
    learners : "auto", or a list of names as they are shown, and of pairs (name, estimator).
    cv : folds, at most the objects of the smallest class; or a splitter of scikit-learn.
    task : "classification", "regression", or "auto": by y.
    random_state : int, RandomState, Generator or None, for folds and landmarks.
    verbose : 1 shows a bar on a terminal.
    progress : called as ``progress(done, total, name)`` when a learner has been fitted on a fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kreinlearn import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> names = ["KreinRidgeClassifier", "k nearest neighbours"]
    >>> found = evaluate(X, y, "delta_gauss", learners=names, random_state=0)
    >>> sorted(score.name for score in found.scores), found.n_folds
    (['KreinRidgeClassifier', 'k nearest neighbours'], 5)
    """
    rng = as_generator(random_state)
    common = Common(kernel, kernel_params, n_landmarks, n_jobs, memory_budget)
    X, y = with_target(X, y)
    with recorded() as said:
        model = KreinNystroem(verbose=verbose, **common.parameters(0))
        data, fitted = _prepared(model, X, rng)
        n = length(data.X)
        targets = targets_of(y, n, task)
        folds = _folds(targets, cv, n, rng)
        chosen, left_out = learners_for(targets.task, learners, n)
        run = Run(data, targets, folds, common, int(rng.integers(2**31)), Progress(verbose, kernel))
        memory = remembering(memory_budget or REMEMBERED) if fitted.costly else nullcontext()
        with memory:
            told = _all_pairs(model, data, fitted, run)
            scores = run.scores(chosen, progress)
    scores.sort(key=lambda score: (score.failed is not None, score.mean))
    ratio = float(np.mean([len(test) / len(train) for train, test in folds]))
    notes = (*targets.notes, *left_out, *told, *_distinct(said))
    return Evaluation(
        targets.task,
        targets.metric,
        n,
        len(folds),
        ratio,
        described(kernel, kernel_params),
        scores,
        notes,
    )


def _prepared(model: KreinNystroem, X: Any, rng: np.random.Generator) -> tuple[Data, Kernel]:
    validated, kernel = model._prepared(X, rng)
    if isinstance(validated, DaskRows):
        raise TypeError(
            "evaluate cuts folds by row number, and takes no dask collection; pass a sample of "
            "its rows, computed"
        )
    return Data(validated, kernel.domain.is_matrix), kernel


def _folds(targets: Targets, cv: Any, n: int, rng: np.random.Generator) -> list[tuple[Array, Any]]:
    """(train, test) row numbers: of each class its share, where there are classes."""
    labels = targets.labels
    if cv is not None and not isinstance(cv, Integral):
        splits = check_cv(cv, targets.y, classifier=labels is not None)
        return list(splits.split(np.zeros(n), targets.y))
    k = max(2, min(5 if cv is None else int(cv), targets.most_folds))
    numbers = random_folds(n, k, rng, labels)
    return [(np.flatnonzero(numbers != j), np.flatnonzero(numbers == j)) for j in range(k)]


def _all_pairs(model: KreinNystroem, data: Data, kernel: Kernel, run: Run) -> list[str]:
    """Into the memory of kernel values, if they fit, and if folds will ask for the same ones."""
    n, limit = length(data.X), budget_bytes(run.common.memory_budget or REMEMBERED)
    if not kernel.costly or 8 * (n + 1) ** 2 > limit or not _same_for_folds(model, data, run):
        return []
    start, pairs = time.perf_counter(), pairs_among(kernel, n)
    workers = worker_count(model.n_jobs) if kernel.threads else 1
    announce(run.bar, kernel, data.X, data.X, pairs, workers)
    unknown, numbers = np.full(n, np.nan), np.arange(n)
    try:
        with serial_blas(), run.bar.step("pairs", n, pairs):
            evaluate_square(kernel, data.X, numbers, unknown, workers, run.bar)
    finally:
        model._keep_kernel(kernel)
    spent = time.perf_counter() - start
    said = f"about {time_in_words(spent)}" if spent >= 2 else f"{spent:.2g} s"
    return [
        f"All {pairs:,} pairs were evaluated once, in {said}; the seconds of learners are "
        "without that."
    ]


def _same_for_folds(model: KreinNystroem, data: Data, run: Run) -> bool:
    """Whether the kernel is the same when it is fitted to a part of the objects."""
    whole, part = (
        model._resolved_kernel().fit(X, np.random.default_rng(0))
        for X in (data.X, take(data.X, run.folds[0][0]))
    )
    return bool(key_of(whole) == key_of(part))


# Fits


@dataclass(frozen=True)
class Run:
    data: Data
    targets: Targets
    folds: list[tuple[Array, Array]]
    common: Common
    seed: int
    bar: Progress

    def scores(self, learners: list[Learner], progress: Any) -> list[Score]:
        total, done, found = len(learners) * len(self.folds), 0, []
        with self.bar.step("fits", total):
            for learner in learners:
                fits, failed = [], None
                for fold in range(len(self.folds)):
                    if failed is None:
                        fit = self._one(learner, fold)
                        failed = fit if isinstance(fit, str) else None
                        fits.append(fit)
                    done += 1
                    self.bar.add(1)
                    if progress is not None:
                        progress(done, total, learner.name)
                found.append(_score(learner, fits, failed))
        return found

    def _one(self, learner: Learner, fold: int) -> tuple[Array, float, float] | str:
        """Losses of objects and seconds, or why there are none."""
        train, test = self.folds[fold]
        try:
            model = learner.make(self.common, self.seed + fold)
            start = time.perf_counter()
            model.fit(self.data.part(train, train), self.targets.y[train])
            fitted = time.perf_counter()
            predicted = model.predict(self.data.part(test, train))
            end = time.perf_counter()
            return self.targets.losses(predicted, test), fitted - start, end - fitted
        except Exception as error:  # a row says so, and the others go on
            return f"failed, {type(error).__name__}: {' '.join(str(error).split())}"


def _score(learner: Learner, fits: list[Any], failed: str | None) -> Score:
    if failed is not None:
        return Score(learner.name, learner.kind, np.empty(0), np.nan, np.nan, failed)
    losses, fitting, predicting = zip(*fits, strict=True)
    errors = np.array([part.mean() for part in losses])
    seconds = float(np.mean(fitting)), float(np.mean(predicting))
    return Score(learner.name, learner.kind, errors, *seconds, losses=np.concatenate(losses))


@contextmanager
def recorded() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings are kept: the same ones come from every fit, and are told once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said


def _distinct(said: list[warnings.WarningMessage]) -> list[str]:
    texts = list(dict.fromkeys(_told(str(w.message)) for w in said))
    left = len(texts) - MOST_NOTED
    return texts[:MOST_NOTED] + ([f"{left} further warnings of fits."] if left > 0 else [])


def _told(message: str) -> str:
    if message.startswith("remembering("):
        return "Values of pairs exceed memory_budget: some were evaluated more than once."
    return f"Warning: {message}"
