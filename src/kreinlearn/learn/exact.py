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
from kreinlearn.learn.search import FoldLosses, MeanLoss
from kreinlearn.learn.task import Features, Linear, Task, weighted
from kreinlearn.nystrom.core import CORE_RTOL, FeatureMap, identity_map
from kreinlearn.pairs.evaluate import scaled
from kreinlearn.pairs.sample import unit_of
from kreinlearn.solvers.exact import Eigenbasis, ExactFold, Projected
from kreinlearn.solvers.resolvent import ACCURACY, LeaveOneOutLoss
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import threaded_blas

LARGE = 1500  # objects from which on several threads decompose their matrix


def decomposed(task: Task, places: Array | None = None) -> Eigenbasis:
    """The eigenbasis of the similarities of all objects, or of those at some places."""
    K = similarities(task, places)
    w = None if task.weights is None else np.asarray(task.weights)[chosen_numbers(task, places)]
    return _basis(task, K, w)


def _basis(task: Task, K: Array, w: Array | None) -> Eigenbasis:
    rtol = max(CORE_RTOL, len(K) * task.sample.eps)
    with threaded_blas(task.pairs.session.workers if len(K) >= LARGE else 1):
        return Eigenbasis.of(K, w, signed=task.kind.signed, rtol=rtol)


def chosen_numbers(task: Task, places: Array | None) -> Array:
    """Row numbers of all objects, or of those at some places."""
    return task.numbers if places is None else task.numbers[places]


def similarities(task: Task, places: Array | None = None) -> Array:
    """Similarities among objects over their unit; a transformation is made of them alone."""
    sample = task.sample
    if places is None:
        return scaled(sample.K_ZZ, sample.unit)
    raw = sample.raw[np.ix_(places, places)]
    if sample.transform is not None:
        transform = TRANSFORMS[task.similarity](raw)
        a = transform.offsets(raw)
        raw = transform.similarity(raw, a, a)
    return scaled(symmetrised(raw), unit_of(raw))


def spread_out(task: Task, size: int) -> Array:
    """Sorted places of at most so many objects, with all targets in proportion.

    They are drawn at random among equal targets, and are the same at every call.
    """
    n = len(task.numbers)
    if n <= size:
        return np.arange(n)
    order = np.random.default_rng(n).permutation(n)
    Y = np.asarray(task.Y)[task.numbers[order]]
    order = order[np.lexsort(Y.T[::-1])]
    return np.sort(order[np.arange(size) * n // size])


def tuning_loss(
    task: Task,
    places: Array | None = None,
    basis: Eigenbasis | None = None,
    accuracy: float = ACCURACY,
) -> FoldLosses:
    """The loss by which penalties are tuned: one object left out at a time, or the user's folds."""
    if not task.leaves_one_out:
        return MeanLoss(exact_folds(task, places))
    basis = decomposed(task, places) if basis is None else basis
    Y = task.Y[chosen_numbers(task, places)]
    return LeaveOneOutLoss(basis, Y, intercept=task.intercept, accuracy=accuracy)


def exact_folds(task: Task, places: Array | None = None) -> list[ExactFold]:
    """The user's folds, each with a transformation and an eigenbasis of its training part."""
    places = np.arange(len(task.numbers)) if places is None else places
    numbers = task.numbers[places]
    folds, (Y, w) = task.folds[numbers], weighted(*Targets(task.Y, task.weights).of(numbers))
    made = []
    for k in range(task.n_folds):
        train, valid = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
        if len(train) and len(valid):
            K, K_valid = _split_similarities(task, places[train], places[valid])
            basis = _basis(task, K, w[train])
            parts = Y[train], K_valid, Y[valid], w[valid]
            made.append(ExactFold(basis, *parts, intercept=task.intercept))
    return made


def _split_similarities(task: Task, train: Array, valid: Array) -> tuple[Array, Array]:
    """Similarities among the training part, and of the validation part to it."""
    sample, unit = task.sample, task.sample.unit
    raw, rows = sample.raw[np.ix_(train, train)], sample.raw[np.ix_(valid, train)]
    if sample.transform is not None:
        transform = TRANSFORMS[task.similarity](raw)
        a, a_rows = transform.offsets(raw), transform.offsets(rows)
        raw, rows = transform.similarity(raw, a, a), transform.similarity(rows, a_rows, a)
    return scaled(symmetrised(raw), unit), scaled(rows, unit)


def exact_features(task: Task) -> tuple[Task, Features]:
    """The feature map of all objects, from their eigenbasis."""
    if task.basis is None:
        task = replace(task, basis=decomposed(task))
    basis = task.basis
    assert basis is not None
    columns, unit = task.pairs.evaluator(task.sample), task.sample.unit
    return task, Features([], columns, unit, eigenbasis_map(basis), basis=basis)


def eigenbasis_map(basis: Eigenbasis) -> FeatureMap:
    """Features U |D|^1/2 of objects from their similarities to all objects."""
    if not basis.signed:
        return identity_map(len(basis.root))
    D = basis.spectrum.D
    W = basis.root[:, None] * basis.spectrum.U * (basis.spectrum.S / np.sqrt(np.abs(D)))
    return FeatureMap(W, basis.spectrum.S, W[:, :0], D)


def solve_exact(task: Task, basis: Eigenbasis, values: Array) -> Linear:
    """The model of all objects at given penalties, which must be positive."""
    coefficients, constant = Projected(basis, task.Y[task.numbers], intercept=task.intercept).solve(
        values
    )
    if basis.signed:  # from eigenvectors to features
        scale = basis.spectrum.S * np.sqrt(np.abs(basis.spectrum.D))
        return Linear(scale[:, None] * coefficients, constant)
    return Linear(basis.root[:, None] * (basis.spectrum.U @ coefficients), constant)
