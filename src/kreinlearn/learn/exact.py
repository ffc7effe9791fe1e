"""All objects are landmarks: what that costs, and how one eigendecomposition serves everything.

Every least-squares problem is diagonal in the eigenbasis of the kernel matrix, see
``solvers.exact``, and ``learn.comparison`` judges penalties in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kreinlearn.data.memory import in_words
from kreinlearn.kernels.base import Array
from kreinlearn.kernels.several import Term
from kreinlearn.learn.comparison import SKETCHED, Comparison, Judged, RoundsLoss
from kreinlearn.learn.search import HeldOutLoss, Unknowns
from kreinlearn.learn.task import Features, Linear, Task
from kreinlearn.nystrom.core import FeatureMap, identity_map
from kreinlearn.pairs.pairs import over_unit
from kreinlearn.progress import time_in_words
from kreinlearn.solvers.exact import Eigenbasis, Projected
from kreinlearn.sums.moments import FeatureMoments, Targets

# What a fit costs: rough figures for one core of today's machines. They are constants, so that the
# same data have the same landmarks everywhere; only the cost of a user's own function is measured,
# and rounded to a power of ten.
SECONDS = 40.0  # of one core, which a fit at its defaults may take
DECOMPOSE = 2e-10  # seconds for each n^3: an eigendecomposition
LEAVE_OUT = 1.0e-8  # for each n^2 and target: leave-one-out of all penalties
MACHINES, MACHINE = 3e-10, 4e-11  # for each n^3, and for each output of it: the squared hinge
FACTOR = 3e-8  # for each m^3: similarities that are compared, and penalties tuned on folds
NEWTON = 4e-9  # for each n m^2 and output: Newton's method with m landmarks
SUM_UP = 1e-10  # for each n m^2: sums over all rows
FEW, PAST = 1000, 100_000  # landmarks of similarities that cost nothing, beyond so many rows
GROWTH = 0.1  # the power of the number of rows by which they grow
SLOW = 1e-4  # seconds of a similarity from which on its cost decides, however many rows there are
CLEARLY = 3.0  # times the time of all objects, from which on landmarks are not worth it
COMPARE, COMPARE_OUTPUT = 0.2, 0.08  # seconds: similarities on a sample, and for each output
LEAST = 20  # landmarks, whatever they cost
MATRICES = 7  # n x n matrices that are held at once if all objects are landmarks
NODES = 400  # numbers for each object and output, real and imaginary, of rows and of sums


def comparison_of(task: Task, places: Array | None = None) -> Comparison:
    """All landmarks, in their order, or those at some places, by which similarities are judged."""
    sample, session = task.sample, task.pairs.session
    numbers, raw = chosen_numbers(task, places), sample.raw
    if places is not None or not sample.is_square:
        at = sample.positions(numbers)
        raw = raw[at] if places is None else raw[np.ix_(at, places)]
    Y, weights = Targets(task.Y, task.weights).of(numbers)
    labels, groups, equal = (
        None if each is None else each[numbers] for each in (task.labels, task.groups, task.equal)
    )
    return Comparison(
        [raw], np.asarray(Y, dtype=np.float64), weights,
        tuple(np.asarray(folds)[numbers] for folds in task.rounds), labels, groups, equal,
        task.kind.signed, task.intercept, session.workers,
    )  # fmt: skip


def terms_of(task: Task) -> tuple[Term, ...]:
    """The similarity of a task."""
    return (Term(0, None if task.sample.transform is None else task.similarity, 1.0),)


def decomposed(task: Task) -> Eigenbasis:
    """The eigenbasis of the similarities of all objects."""
    n = len(task.sample.landmarks)
    _require_room(task, MATRICES * 8 * n * n, f"a decomposition of {n} x {n} similarities")
    K, unit = over_unit(task.sample.square(task.similarity))
    comparison = comparison_of(task)
    return comparison.basis(K, comparison.w, unit)


def _require_room(task: Task, n_bytes: int, what: str) -> None:
    """Raise MemoryError if something of all objects does not fit the budget."""
    remedy = "use fewer landmarks, or raise Resources(memory_budget=...)"
    task.pairs.require_memory(n_bytes, what, remedy)


def chosen_numbers(task: Task, places: Array | None) -> Array:
    """Row numbers of all landmarks, in their order, or of those at some places."""
    landmarks = task.sample.landmarks
    return np.asarray(landmarks if places is None else landmarks[places])


def spread_out(task: Task, size: int, almost: float = 1.0) -> Array:
    """Sorted places of at most so many objects, with all targets in proportion.

    They are drawn at random among equal targets, and are the same at every call. If there are not
    ``almost`` times more objects, they are all objects.
    """
    Y, _ = Targets(task.Y, task.weights).of(chosen_numbers(task, None))
    return evenly(np.asarray(Y), size, almost)


def evenly(Y: Array, size: int, almost: float) -> Array:
    """Sorted places of at most so many targets, with all values in proportion."""
    n = len(Y)
    if n <= almost * size:
        return np.arange(n)
    order = np.random.default_rng(n).permutation(n)
    order = order[np.lexsort(Y[order].T[::-1])]
    return np.sort(order[np.arange(size) * n // size])


def has_folds(task: Task, places: Array | None = None) -> bool:
    """Whether a fold has both a training and a validation part."""
    folds = task.folds[chosen_numbers(task, places)]
    return bool((folds >= 0).any() and (folds != folds[0]).any())


def can_be_tuned(task: Task, places: Array | None = None) -> bool:
    """Whether penalties can be judged by objects that are left out."""
    if not task.rounds:
        return len(chosen_numbers(task, places)) > 1
    return has_folds(task, places)


def by_folds(task: Task, places: Array | None = None) -> RoundsLoss:
    """The loss of folds, also where least squares leaves out one object at a time."""
    comparison = comparison_of(task if task.rounds else replace(task, rounds=(task.folds,)), places)
    unit = task.sample.unit if places is None else over_unit(comparison.among(terms_of(task)))[1]
    return comparison.folds(terms_of(task), unit)


def tuning_loss(task: Task, basis: Eigenbasis) -> HeldOutLoss:
    """The loss by which penalties are tuned: of folds, or of one object left out at a time."""
    return comparison_of(task).loss(terms_of(task), basis)


def tune_exactly(
    task: Task, basis: Eigenbasis, unknowns: Unknowns, *, sketched: bool = False
) -> Judged:
    """The penalties of smallest loss, and the loss at any penalties.

    If ``sketched``, the loss is that of a few sums of many targets. The penalties are the same.
    """
    if not can_be_tuned(task):
        raise task.nothing_left_out()
    n, q = len(task.sample.landmarks), task.Y.shape[1]
    if task.rounds:
        k = sum(int(np.max(folds)) + 1 for folds in task.rounds)
        _require_room(task, fold_bytes(n, k), f"tuning on {k} folds of {n} objects")
    else:
        q = min(q, SKETCHED) if sketched else q
        _require_room(task, exact_bytes(n, q), f"leaving out each of {n} objects")
    return comparison_of(task).tuned(terms_of(task), unknowns, basis, sketched=sketched)


def exact_features(task: Task) -> tuple[Task, Features]:
    """The feature map of all objects, from their eigenbasis."""
    if task.basis is None:
        task = replace(task, basis=decomposed(task))
    basis = task.basis
    assert basis is not None
    columns = task.pairs.evaluator(task.sample)
    return task, Features([], columns, basis.unit, eigenbasis_map(basis), basis=basis)


def eigenbasis_map(basis: Eigenbasis) -> FeatureMap:
    """Features U |D|^1/2 of objects from their similarities to all objects."""
    if not basis.signed:
        return identity_map(len(basis.root))
    D, S = basis.spectrum.D, np.sign(basis.spectrum.D)
    W = basis.spectrum.U * (S / np.sqrt(np.abs(D)))
    W *= basis.root[:, None]
    return FeatureMap(W, S, W[:, :0], D)


def solve_exact(task: Task, basis: Eigenbasis, values: Array) -> Linear:
    """The model of all objects at given penalties, which must be positive."""
    Y = task.Y[chosen_numbers(task, None)]
    coefficients, constant = Projected(basis, Y, intercept=task.intercept).solve(values)
    if basis.signed:  # from eigenvectors to features
        D = basis.spectrum.D
        scale = np.sign(D) * np.sqrt(np.abs(D))
        return Linear(scale[:, None] * coefficients, constant)
    return Linear(basis.root[:, None] * (basis.spectrum.U @ coefficients), constant)


def exact_sums(task: Task, basis: Eigenbasis) -> tuple[Array, FeatureMoments]:
    """The Gram matrix of the features of all objects, and their other sums.

    With K = U D U' the Gram matrix of Krein features is diagonal, and its diagonal is returned; of
    other features the upper triangle is.
    """
    U, D, root = basis.spectrum.U, basis.spectrum.D, basis.root[:, None]
    Y = np.asarray(task.Y[task.sample.landmarks], dtype=np.float64)
    wY = root * Y
    ones, cross = U.T @ basis.root, U.T @ wY
    t, yy = basis.root @ wY, np.square(wY).sum(axis=0)
    if basis.signed:  # root Phi = U |D|^1/2
        size = np.sqrt(np.abs(D))
        s, B, gram = size * ones, size[:, None] * cross, np.abs(D)
    else:  # Phi = K, and root K = U D U' / root
        back = (U * D) / root
        s, B = back @ ones, back @ cross
        gram = (back @ back.T)[np.triu_indices(len(s))]
    return gram, FeatureMoments(np.empty(0), s, B, t, yy, basis.n)


# How many landmarks a learner takes by default


class Size(NamedTuple):
    """A number of landmarks, and why it is that."""

    n_landmarks: int
    reason: str


def landmarks_by_cost(
    n: int, n_outputs: int, pair: float, memory: int, *, machines: bool,
    seconds: float | None = None, compares: bool = False, n_folds: int = 0,
) -> Size:  # fmt: skip
    """All objects if that takes at most ``seconds`` and fits the memory, or else fewer.

    ``pair`` are the seconds that one value of the similarity takes, and ``machines`` says that
    every output needs an iterative solver. If ``seconds`` is None, they are ``SECONDS``, and more
    where rows are so many that the usual number of landmarks takes longer. ``compares`` says that
    similarities are compared before one is chosen, and so many folds judge, if any.
    """
    limit = SECONDS if seconds is None else seconds
    exact = exact_seconds(n, n_outputs, pair, machines=machines)
    exact += comparing_seconds(n_outputs) if compares else 0.0
    exact += n_folds * DECOMPOSE * n**3
    needed = exact_bytes(n, n_outputs) + fold_bytes(n, n_folds)
    if exact <= limit and needed <= memory:
        reason = f"all {n} objects are landmarks: that takes about {_rounded(exact)} of one core"
        return Size(n, reason)
    why = f"all {n} would take about {_rounded(exact)} of one core"
    if seconds is None and pair < SLOW:
        m = _usual(n)
    else:
        m = _affordable(n, pair, limit, n_outputs if machines else 0)
    if seconds is not None:
        why += f", and the limit is {_rounded(limit)}"
    outputs = n_outputs if machines else 0
    if needed <= memory and landmark_seconds(n, m, pair, outputs) > CLEARLY * max(exact, limit):
        about = f"that takes about {_rounded(exact)} of one core, and {m} landmarks take longer"
        return Size(n, f"all {n} objects are landmarks: {about}")
    m = min(m, n // 2)  # of more, every fold would make its own map
    if exact <= limit:
        why = f"all {n} would take {in_words(needed)}, and the budget is {in_words(memory)}"
        m = min(m, memory // (MATRICES * 8 * n))
    if m < LEAST <= n:
        why += f"; {LEAST} is the least"
    m = min(max(m, LEAST), n)
    return Size(m, f"{m} of {n} objects are landmarks: {why}")


def exact_seconds(n: int, n_outputs: int, pair: float, *, machines: bool) -> float:
    """An estimate of the time of a fit with all objects as landmarks."""
    own = (MACHINES + MACHINE * n_outputs) * n**3 if machines else 0.0
    pairs = pair * n * (n + 1) / 2
    return pairs + DECOMPOSE * n**3 + LEAVE_OUT * n**2 * (n_outputs + 2) + own


def comparing_seconds(n_outputs: int) -> float:
    """An estimate of the time in which similarities of one distance are compared on a sample."""
    return COMPARE + COMPARE_OUTPUT * min(n_outputs, SKETCHED)


def exact_bytes(n: int, n_outputs: int) -> int:
    """An estimate of the memory of a fit with all objects as landmarks."""
    return 8 * n * (MATRICES * n + NODES * (n_outputs + 1))


def fold_bytes(n: int, n_folds: int) -> int:
    """An estimate of the memory of folds that judge a fit with all objects as landmarks."""
    return 2 * 8 * n_folds * n * n


def landmark_seconds(n: int, m: int, pair: float, machines: int = 0) -> float:
    """An estimate of the time of a fit with m landmarks, and so many outputs of machines."""
    sums = (SUM_UP + NEWTON * machines) * n * m**2
    return pair * n * m + sums + FACTOR * m**3


def _affordable(n: int, pair: float, seconds: float, machines: int) -> int:
    """The landmarks that the time allows, by bisection."""
    low, high = LEAST, max(n, LEAST)
    while high - low > 1:
        middle = (low + high) // 2
        fits = landmark_seconds(n, middle, pair, machines) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return low


def _usual(n: int) -> int:
    """The landmarks of many rows if a similarity costs little, whatever sums take."""
    return int(FEW * max(n / PAST, 1.0) ** GROWTH)


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else time_in_words(seconds)
