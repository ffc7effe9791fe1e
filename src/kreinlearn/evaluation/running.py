"""The function ``evaluate``: fit every learner on every fold and compare their errors."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from kreinlearn._warnings import NotRemembered, RareClasses
from kreinlearn.data.memory import Resources, budget_bytes
from kreinlearn.data.opening import with_target
from kreinlearn.data.tiles import take
from kreinlearn.data.validation import as_generator
from kreinlearn.distributed.entrance import require_in_memory
from kreinlearn.estimators.base import N_LANDMARKS
from kreinlearn.evaluation.fits import Folds, Report, Run
from kreinlearn.evaluation.learners import (
    Learner,
    Settings,
    Wanted,
    learners_for,
    one_for_all,
    one_or_several,
)
from kreinlearn.evaluation.mistakes import (
    ClassErrors,
    Mistakes,
    class_errors,
    number_errors,
    shortly,
)
from kreinlearn.evaluation.result import Evaluation, Score
from kreinlearn.evaluation.targets import Targets, spread, targets_of
from kreinlearn.inspection.arguments import CHECKS, Array, KernelLike, KernelParams, Objects, Seed
from kreinlearn.inspection.prepared import described, prepare
from kreinlearn.kernels import Kernel, remembering, resolve
from kreinlearn.kernels.candidates import AUTO
from kreinlearn.kernels.keys import key_of
from kreinlearn.kernels.several import Several
from kreinlearn.learn.folds import are_drawn, fold_count, random_folds, splits_of
from kreinlearn.learn.groups import SOME_EQUAL, equal_in_words, groups_for, n_equal
from kreinlearn.nystrom.landmarks import Landmarks
from kreinlearn.nystrom.schemes import SCHEMES
from kreinlearn.pairs.evaluate import pair_seconds, pairs_among
from kreinlearn.pairs.rows import Rows
from kreinlearn.progress import Progress, time_in_words

MOST = 2000  # objects by which all learners are compared
ON_PAIRS = 50.0  # seconds that similarities may take
LEAST = 20  # objects, whatever they cost
REMEMBERED = "1GB"  # of kernel values, unless memory_budget says otherwise
MOST_NOTED = 6  # warnings that are quoted
CrossValidation: TypeAlias = int | Iterable[tuple[Array, Array]] | BaseCrossValidator | None


@validate_params(
    {
        **CHECKS,
        "kernel": [str, callable, Kernel, list, dict],
        "learners": [str, "array-like"],
        "cv": ["cv_object"],
        "landmarks": [*N_LANDMARKS, StrOptions({"auto", *SCHEMES}), Landmarks],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "resources": [Resources, None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "progress": [callable, None],
    },
    prefer_skip_nested_validation=True,
)
def evaluate(
    X: Objects, y: ArrayLike | str, kernel: KernelLike | list[Any] = "auto", *,
    kernel_params: KernelParams = None, learners: str | Iterable[Wanted] = "auto",
    cv: CrossValidation = 5, landmarks: Landmarks | float | str | None = "auto",
    task: str = "auto", resources: Resources | None = None, n_jobs: int | None = None,
    random_state: Seed = None, time_limit: float | None = None, verbose: int | bool = 0,
    progress: Report | None = None, groups: ArrayLike | None = None,
) -> Evaluation:  # fmt: skip
    """Find out which learner has the smallest error on these objects.

    All learners are cross-validated on the same folds, with their default parameters:
    ``KreinClassifier`` or ``KreinRegressor``, the learners of the paper, ridge regression on
    similarities, support vector machines on a corrected spectrum, nearest neighbours, and a
    constant. A learner that fails gets a row that says why.

    All learners are compared by at most 2,000 objects, of which a note says how they were drawn;
    learners that are named in ``learners`` are fitted to all.

    Nearest neighbours are found by the dissimilarity, by the squared distance
    k(x, x) + k(z, z) - 2 k(x, z) or, for vectors, by the Euclidean distance; their number is
    chosen by leave-one-out.

    A kernel on objects, or a function, evaluates no pair twice as long as its values fit into
    the memory budget of ``resources`` (1 GB if none is given). If all pairs fit, they are evaluated
    first, and the seconds of the learners do not include that time.

    From a list of kernels ``KreinClassifier`` or ``KreinRegressor`` learn a weighted sum. Learners
    that take one kernel get a row that says so; to compare them, evaluate the kernels one by one.
    With "auto", which stands for the list of kernels that suit the kind of objects, they are given
    one kernel that a note names: "gaussian" for vectors, "gower" for records, and otherwise the
    first kernel of the list.

    Parameters
    ----------
    X : array-like or sequence of objects
        Objects, vectors or a square matrix, as the learners take them.
    y : array-like or str
        Labels or numbers, one per object, or the name of their column if X is a table.
    kernel : str, callable, Kernel, list of these or dict, default="auto"
        The similarity or dissimilarity: a registered name, a function of two blocks of objects,
        or a kernel object; or several of them. "auto" compares the kernels that suit the kind of
        objects, as ``KreinClassifier`` does by itself.
    kernel_params : dict or None, default=None
        Parameters of the kernel.
    learners : "auto" or list, default="auto"
        The learners to compare: their names as they are shown, the short names of the command
        line ("krein", "ridge", "neighbours", ...), or pairs (name, estimator).
    cv : int, splitter, iterable or None, default=5
        The number of folds, or a splitter of scikit-learn. None means 5. The objects of a class
        are spread over the folds; a note names classes with fewer objects than folds.
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
    time_limit : float or None, default=None
        How many seconds each learner may take for its fits and predictions, and as long may
        similarities that take long. After that no further fit of it begins, and its row says so;
        the first fit always ends. By default there is no limit.
    verbose : int or bool, default=0
        If it is 1, a progress bar is shown on a terminal.
    progress : callable or None, default=None
        Called as ``progress(done, total, name)`` each time a learner has been fitted on a fold.
    groups : array-like of shape (n_samples,), default=None
        The group of each object. Objects of one group are in one fold, and are left out together
        wherever a learner of this library tunes anything. By default equal objects are a group, if
        they are texts, series, graphs or long records, and there are not many of each.

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
    X, y = with_target(X, y)
    is_automatic = isinstance(kernel, str) and kernel == AUTO
    kernel = one_or_several(kernel, kernel_params, X)
    single = one_for_all(kernel) if is_automatic and isinstance(kernel, list) else None
    settings = Settings(kernel, kernel_params, landmarks, n_jobs, resources)
    _require_for_all_folds(settings)
    name = described(kernel, kernel_params)
    budget = (resources and resources.memory_budget) or REMEMBERED
    every = isinstance(learners, str) and learners == "auto"
    with warnings.catch_warnings(record=True) as caught:  # every fit warns: they are quoted once
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", RareClasses)  # a note says it of all objects
        given = {**settings.parameters("landmarks"), "kernel": _as_one(kernel)}
        prepared = prepare(X, rng=rng, verbose=verbose, **given)
        targets = targets_of(y, prepared.n, task)
        numbers, equal = groups_for(groups, Rows(prepared.X), prepared.kernel)
        targets = replace(targets, groups=numbers)
        if equal is not None and n_equal(equal) >= SOME_EQUAL * len(equal):
            where = "the fold of these" if numbers is not None else "any fold"
            said = f"{equal_in_words(equal)}, and are put into {where}; groups would change that."
            targets = replace(targets, notes=(*targets.notes, said))
        chosen, refused = _able(learners_for(targets.task, learners), kernel, single)
        pair = pair_seconds(prepared.kernel, prepared.X) if prepared.kernel.costly else 0.0
        sampled, numbers = list[str](), np.arange(prepared.n)
        if (every or time_limit is not None) and are_drawn(cv):
            rows, sampled = _sampled(prepared.n, targets, pair, time_limit, every, rng)
            if rows is not None:
                numbers = rows
                prepared, targets = prepared.of_part(rows, rng), targets.of_part(rows)
        folds, bar = _folds(targets, cv, prepared.n, rng), Progress(verbose, name)
        seed, memory = int(rng.integers(2**31)), budget_bytes(budget)
        run = Run(prepared, targets, folds, settings, seed, bar, memory, time_limit or math.inf)
        with remembering(budget) if prepared.kernel.costly else nullcontext():
            known = _evaluate_all_pairs(run)
            scores, n_folds = run.scores(chosen, progress)
    scores += refused
    limited = [*sampled, *_limited_in_words(run, n_folds)]
    scores.sort(key=lambda score: (score.failed is not None, score.mean))
    ratio = float(np.mean([len(test) / len(train) for train, test in folds]))
    rare = targets.rare_in_words(len(folds)) if are_drawn(cv) else []
    kernels = [*_single_in_words(chosen, single), *_weights_in_words(scores)]
    notes = (*targets.notes, *rare, *kernels, *limited, *known, *_distinct(caught))
    mistakes = _mistakes(scores[0], run, n_folds, numbers)
    return Evaluation(
        targets.task, targets.metric, prepared.n, n_folds, ratio, name, scores, notes, mistakes
    )


def _mistakes(best: Score, run: Run, n_folds: int, numbers: Array) -> Mistakes | None:
    """Where the best learner errs; ``numbers`` are those of the rows among all that were given."""
    if best.failed is not None:
        return None
    tested = np.concatenate([test for _, test in run.folds[:n_folds]])
    y, X = run.targets.y[tested], run.prepared.X
    errors = class_errors if run.targets.labels is not None else number_errors
    found = errors(best.name, y, best.predicted, tested, {})
    if isinstance(found, ClassErrors):
        wanted = {one.row for pair in found.pairs for one in pair.examples}
    else:
        wanted = {one.row for one in found.worst}
    given = run.prepared.kernel.domain.is_matrix  # objects that are not here
    shown = {} if given else {i: shortly(take(X, np.array([i]))[0]) for i in wanted}
    by_number = {int(numbers[i]): text for i, text in shown.items()}
    return errors(best.name, y, best.predicted, numbers[tested], by_number)


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


def _as_one(kernel: KernelLike | list[Any]) -> KernelLike:
    """The kernel by which objects are checked; of a list, all of its kernels."""
    return Several(kernel) if isinstance(kernel, list) else kernel


def _able(
    learners: list[Learner], kernel: KernelLike | list[Any], single: Any
) -> tuple[list[Learner], list[Score]]:
    """The learners that take what was given as kernel, and scores that say so of the others.

    If there is a ``single`` kernel, they are given that.
    """
    if not isinstance(kernel, list):
        return learners, []
    if single is not None:
        return [one.given(single) if one.one_kernel else one for one in learners], []
    able = [learner for learner in learners if not learner.one_kernel]
    if not able:
        raise ValueError(
            f"{', '.join(learner.name for learner in learners)}: each takes one kernel, and "
            f"{len(kernel)} were given; add KreinClassifier or KreinRegressor to learners, or pass "
            "one kernel"
        )
    others = [learner for learner in learners if learner.one_kernel]
    return able, [
        Score(one.name, one.kind, np.empty(0), math.nan, math.nan, "takes one kernel")
        for one in others
    ]


def _single_in_words(learners: list[Learner], single: Any) -> list[str]:
    """Which kernel those learners have that take one only, in a sentence."""
    limited = [one.name for one in learners if one.one_kernel]
    if single is None or not limited:
        return []
    others = "All learners" if len(limited) == len(learners) else "Learners that take one kernel"
    name = single if isinstance(single, str) else Several([single]).labels[0]
    return [f"{others} were given {name}; to compare them by another one, pass kernel=..."]


def _weights_in_words(scores: list[Score]) -> list[str]:
    """The weights of several kernels in a sentence, the largest one first."""
    found = next((one for one in scores if one.kernel_weights), None)
    if found is None or found.kernel_weights is None:
        return []
    by_weight = sorted(found.kernel_weights.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {weight:.2g}" for name, weight in by_weight if weight)
    without = sum(weight == 0 for _, weight in by_weight)
    rest = f"; {without} of {len(by_weight)} kernels are without weight" if without else ""
    return [f"Weights of the kernels of {found.name} on the first fold: {shown}{rest}."]


def _folds(targets: Targets, cv: CrossValidation, n: int, rng: np.random.Generator) -> Folds:
    """Row numbers of each fold; where there are classes, each fold gets its share of each."""
    labels = targets.labels
    if not are_drawn(cv):
        splits = check_cv(cv, targets.y, classifier=labels is not None)
        return splits_of(splits, np.zeros(n), targets.y, targets.groups)
    k = fold_count(n, cv, targets.groups)
    numbers = random_folds(n, k, rng, labels, targets.groups)
    return [(np.flatnonzero(numbers != j), np.flatnonzero(numbers == j)) for j in range(k)]


def _evaluate_all_pairs(run: Run) -> list[str]:
    """Evaluate all pairs once, if their values fit into memory and the folds will ask for them.

    Returns a sentence about it, or nothing.
    """
    prepared, kernel, n = run.prepared, run.prepared.kernel, run.prepared.n
    if isinstance(kernel, Several):  # most values of those that get no weight are never needed
        return []
    if not kernel.costly or 8 * (n + 1) ** 2 > run.memory or not _same_for_folds(run):
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


# How many objects there is time for


def _sampled(
    n: int, targets: Targets, pair: float, time_limit: float | None, every: bool,
    rng: np.random.Generator,
) -> tuple[Array | None, list[str]]:  # fmt: skip
    """The rows of a sample if there are too many objects, and a sentence about it.

    ``every`` says that all learners are compared, which take long on many objects; ``pair`` are the
    seconds of one similarity.
    """
    size, allowed = min(n, MOST) if every else n, time_limit or ON_PAIRS
    why = "all learners are compared; name those that are to learn from all objects"
    if pair and pair * size**2 / 2 > allowed:
        size = max(int(np.sqrt(2 * allowed / pair)), min(LEAST, n))
        why = f"one similarity takes about {pair:.0e} s; a larger time_limit allows more of them"
    if size >= n:
        return None, []
    rows = spread(np.arange(n), targets.labels, size, rng)
    return rows, [f"This is about {size:,} of the {n:,} objects, drawn at random, as {why}."]


def _limited_in_words(run: Run, n_folds: int) -> list[str]:
    """Which folds were not done for lack of time."""
    if n_folds == len(run.folds):
        return []
    done = "One fold was" if n_folds == 1 else f"{n_folds} folds were"
    return [f"{done} done of {len(run.folds)}, as time_limit={run.time_limit:g} was reached."]


def _distinct(caught: list[warnings.WarningMessage]) -> list[str]:
    """Each warning once, up to a number of them."""
    texts = list(dict.fromkeys(map(_quoted, caught)))
    left = len(texts) - MOST_NOTED
    return texts[:MOST_NOTED] + ([f"{left} further warnings of fits."] if left > 0 else [])


def _quoted(warning: warnings.WarningMessage) -> str:
    if issubclass(warning.category, NotRemembered):
        return "Values of pairs exceed memory_budget: some were evaluated more than once."
    return f"Warning: {warning.message}"
