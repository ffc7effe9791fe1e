"""All objects are landmarks: one eigendecomposition serves the tuning and the solution.

Every least-squares problem is diagonal in the eigenbasis of the kernel matrix, see
``solvers.exact``. Penalties are tuned by leaving out one object at a time (``solvers.resolvent``),
or on the folds that the user asks for, each of which is decomposed once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.kernels.dissimilarity import TRANSFORMS
from kreinlearn.learn.search import FoldLosses, MeanLoss, Tuned, Unknowns, tune_apart
from kreinlearn.learn.size import MATRICES, exact_bytes
from kreinlearn.learn.task import Features, Linear, Task, weighted
from kreinlearn.nystrom.core import CORE_RTOL, FeatureMap, identity_map
from kreinlearn.pairs.evaluate import scaled
from kreinlearn.pairs.pairs import unit_of
from kreinlearn.solvers.exact import Eigenbasis, ExactFold, Projected
from kreinlearn.solvers.resolvent import ACCURACY, LeaveOneOutLoss
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import threaded_blas

SHARES = tuple(10.0 ** np.arange(-9, 0.5, 1.5))  # of the scale: penalties that are tried first
SKETCHED = 8  # sums of targets by which penalties are tuned, if there are more targets
LARGE = 1500  # objects from which on several threads decompose their matrix


def decomposed(task: Task, places: Array | None = None) -> Eigenbasis:
    """The eigenbasis of the similarities of all objects, or of those at some places."""
    if places is None:
        n = len(task.sample.landmarks)
        _require_room(task, MATRICES * 8 * n * n, f"a decomposition of {n} x {n} similarities")
    K = similarities(task, places)
    w = None if task.weights is None else np.asarray(task.weights)[chosen_numbers(task, places)]
    unit = unit_of(K)
    return _basis(task, scaled(K, unit), w, unit)


def _require_room(task: Task, n_bytes: int, what: str) -> None:
    """Raise MemoryError if something of all objects does not fit the budget."""
    remedy = "use fewer landmarks, or raise Resources(memory_budget=...)"
    task.pairs.require_memory(n_bytes, what, remedy)


def _basis(task: Task, K: Array, w: Array | None, unit: float) -> Eigenbasis:
    """Decompose similarities over their unit; their memory is used for something else."""
    rtol = max(CORE_RTOL, len(K) * task.sample.eps)
    with threaded_blas(task.pairs.session.workers if len(K) >= LARGE else 1):
        return Eigenbasis.of(K, w, signed=task.kind.signed, rtol=rtol, unit=unit, overwrite=True)


def chosen_numbers(task: Task, places: Array | None) -> Array:
    """Row numbers of all landmarks, in their order, or of those at some places."""
    landmarks = task.sample.landmarks
    return np.asarray(landmarks if places is None else landmarks[places])


def similarities(task: Task, places: Array | None = None) -> Array:
    """Similarities among objects, in memory of their own.

    A transformation is made of the objects at these places alone.
    """
    if places is not None:
        return _similarities_at(task, places)
    sample = task.sample
    if not sample.is_square or sample.transform is None:
        return sample.K_ZZ
    a = sample.offsets  # not by way of sample.C, which would keep another matrix
    assert a is not None
    return symmetrised(sample.transform.similarity(sample.raw, a, a))


def unit_at(task: Task, places: Array | None) -> float:
    """The unit of ``similarities``, which all folds of the same objects share."""
    if places is None:
        return task.sample.unit
    return unit_of(_similarities_at(task, places))


def _similarities_at(task: Task, places: Array) -> Array:
    """Similarities among the objects at some places, by a transformation that is made of them."""
    sample = task.sample
    raw = sample.raw[np.ix_(sample.positions(sample.landmarks[places]), places)]
    if sample.transform is None:
        return symmetrised(raw)
    transform = TRANSFORMS[task.similarity](raw)
    a = transform.offsets(raw)
    return symmetrised(transform.similarity(raw, a, a))


def spread_out(task: Task, size: int) -> Array:
    """Sorted places of at most so many objects, with all targets in proportion.

    They are drawn at random among equal targets, and are the same at every call.
    """
    numbers = chosen_numbers(task, None)
    n = len(numbers)
    if n <= size:
        return np.arange(n)
    order = np.random.default_rng(n).permutation(n)
    Y = np.asarray(task.Y)[numbers[order]]
    order = order[np.lexsort(Y.T[::-1])]
    return np.sort(order[np.arange(size) * n // size])


def has_folds(task: Task, places: Array | None = None) -> bool:
    """Whether a fold has both a training and a validation part."""
    folds = task.folds[chosen_numbers(task, places)]
    return bool((folds >= 0).any() and (folds != folds[0]).any())


def can_be_tuned(task: Task, places: Array | None = None) -> bool:
    """Whether penalties can be judged by objects that are left out."""
    if task.leaves_one_out:
        return len(chosen_numbers(task, places)) > 1
    return has_folds(task, places)


def tuning_loss(
    task: Task,
    places: Array | None = None,
    basis: Eigenbasis | None = None,
    accuracy: float = ACCURACY,
    *,
    sketched: bool = False,
) -> FoldLosses:
    """The loss by which penalties are tuned: one object left out at a time, or the user's folds.

    If ``sketched``, many targets are replaced by a few sums of them with random signs, whose
    squared errors are those of all targets on average.
    """
    if not can_be_tuned(task, places):
        raise task.nothing_left_out()
    n, q = len(task.sample.landmarks), task.Y.shape[1]
    if not task.leaves_one_out:
        if places is None:
            n_bytes = 2 * 8 * task.n_folds * n * n
            _require_room(task, n_bytes, f"tuning on {task.n_folds} folds of {n} objects")
        return MeanLoss(exact_folds(task, places))
    if places is None:
        q = min(q, SKETCHED) if sketched else q
        _require_room(task, exact_bytes(n, q), f"leaving out each of {n} objects")
    basis = decomposed(task, places) if basis is None else basis
    Y = task.Y[chosen_numbers(task, places)]
    if sketched and Y.shape[1] > SKETCHED:
        Y = Y @ random_signs(Y.shape[1])
    return LeaveOneOutLoss(basis, Y, intercept=task.intercept, accuracy=accuracy)


def tune_exactly(task: Task, basis: Eigenbasis, unknowns: Unknowns) -> tuple[Tuned, FoldLosses]:
    """The penalties of smallest loss, and the loss of all targets at any penalties."""
    loss = few = tuning_loss(task, basis=basis)
    q = task.Y.shape[1]
    if isinstance(loss, LeaveOneOutLoss) and q > SKETCHED:
        few = loss.combined(random_signs(q))
    tuned = tune_apart(few, basis.scale, unknowns, shares=SHARES)
    return (tuned if few is loss else replace(tuned, loss=loss(tuned.values)[0])), loss


def random_signs(q: int) -> Array:  # (q, SKETCHED)
    """Sums of q targets whose squared errors are those of all targets on average."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (q, SKETCHED)) / np.sqrt(SKETCHED)


def exact_folds(task: Task, places: Array | None = None) -> list[ExactFold]:
    """The user's folds, each with a transformation and an eigenbasis of its training part."""
    numbers, unit = chosen_numbers(task, places), unit_at(task, places)
    places = np.arange(len(numbers)) if places is None else places
    folds, (Y, w) = task.folds[numbers], weighted(*Targets(task.Y, task.weights).of(numbers))
    made = []
    for k in range(task.n_folds):
        train, valid = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
        if len(train) and len(valid):
            K, K_valid = _split_similarities(task, places[train], places[valid])
            basis = _basis(task, scaled(K, unit), w[train], unit)
            parts = Y[train], scaled(K_valid, unit), Y[valid], w[valid]
            made.append(ExactFold(basis, *parts, intercept=task.intercept))
    return made


def _split_similarities(task: Task, train: Array, valid: Array) -> tuple[Array, Array]:
    """Similarities among the training part, and of the validation part to it."""
    sample = task.sample
    at, at_valid = (sample.positions(sample.landmarks[part]) for part in (train, valid))
    raw, rows = sample.raw[np.ix_(at, train)], sample.raw[np.ix_(at_valid, train)]
    if sample.transform is not None:
        transform = TRANSFORMS[task.similarity](raw)
        a, a_rows = transform.offsets(raw), transform.offsets(rows)
        raw, rows = transform.similarity(raw, a, a), transform.similarity(rows, a_rows, a)
    return symmetrised(raw), rows


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
    D, S = basis.spectrum.D, basis.spectrum.S
    W = basis.spectrum.U * (S / np.sqrt(np.abs(D)))
    W *= basis.root[:, None]
    return FeatureMap(W, S, W[:, :0], D)


def solve_exact(task: Task, basis: Eigenbasis, values: Array) -> Linear:
    """The model of all objects at given penalties, which must be positive."""
    Y = task.Y[chosen_numbers(task, None)]
    coefficients, constant = Projected(basis, Y, intercept=task.intercept).solve(values)
    if basis.signed:  # from eigenvectors to features
        scale = basis.spectrum.S * np.sqrt(np.abs(basis.spectrum.D))
        return Linear(scale[:, None] * coefficients, constant)
    return Linear(basis.root[:, None] * (basis.spectrum.U @ coefficients), constant)
