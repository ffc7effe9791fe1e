"""A learning problem of sixty rows, for tests of tasks, similarities and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.kernels import DeltaGauss, Precomputed
from kreinlearn.learn.task import Task
from kreinlearn.nystrom.core import KreinFeatures
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.rows import Rows, Session
from tests import oracles

Array = NDArray[Any]
RNG = np.random.default_rng(51)
N, K_FOLDS = 60, 4
X = RNG.normal(size=(N, 3))
OUTSIDE = RNG.normal(size=(40, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 2
W = RNG.uniform(0.3, 2, N)
NUMBERS = RNG.permutation(N) % K_FOLDS
K = oracles.delta_gauss(X, X, 6.0, 4.0)
FEW, MOST = np.sort(RNG.permutation(N)[:12]), np.sort(RNG.permutation(N)[:40])
DISTANCES = np.abs(X[:, None] - X[None]).sum(2) ** 0.8
LAMBDAS = (0.003, 0.05)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def opened(
    kernel: Any, objects: Any, landmarks: Any, rows: Any = None, outside: Any = None,
    budget: int = 10**9,
) -> tuple[Pairs, Any]:  # fmt: skip
    """Pairs, and a sample of rows with landmarks."""
    rows = np.arange(len(objects)) if rows is None else rows
    if outside is not None:
        rows = np.concatenate([np.arange(-len(outside), 0), rows])
    pairs = Pairs(kernel.fit(objects, rng()), Rows(objects, outside), Session(budget=budget))
    return pairs, pairs.with_reference(pairs.grown(pairs.sample(rows), landmarks))


def task_of(
    pairs: Pairs, sample: Any, *, w: Any = None, folds: Any = NUMBERS, intercept: bool = True,
    seed: int = 0, targets: Any = Y, kind: Any = None,
) -> Task:  # fmt: skip
    """A task as ``learn.fit.make_task`` makes it, with folds that are given."""
    weighted = pairs.rows.weighted_rows(w)
    spec = MapSpec(len(sample.landmarks), given=sample.landmarks, eligible=weighted)
    kind = KreinFeatures() if kind is None else kind
    task = Task(pairs, sample, spec, kind, rng(seed), targets, w, folds, K_FOLDS, intercept)
    return task if task.honest else task.with_landmarks_trained()


def of_vectors(landmarks: Any, budget: int = 10**9, **params: Any) -> Task:
    return task_of(*opened(DeltaGauss(6.0, 4.0), X, landmarks, budget=budget), **params)


def of_distances(
    landmarks: Any, D: Array = DISTANCES, similarity: str = "squared", **params: Any
) -> Task:
    """A dissimilarity that is transformed by all landmarks."""
    pairs, sample = opened(Precomputed(is_dissimilarity=True), D, landmarks)
    return task_of(pairs, sample.referring_to_all(), **params).using(similarity)


def parts(k: int, numbers: Array = NUMBERS) -> tuple[Array, Array]:
    """Training and validation rows of a fold."""
    return np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)


def averaged(folds: Any, lambdas: Any) -> float:
    """The squared error of all folds per unit of validated weight."""
    losses = [fold.loss_and_gradient(np.array(lambdas))[0] for fold in folds]
    return float(sum(losses) / sum(fold.n_valid for fold in folds))


def one_pass(loss, task, *, by_fold):
    """The pass over all rows as ``fit_model`` makes it: the task, its features, what was kept."""
    kept = loss.keeping(task, by_fold=by_fold, often=True)
    return *task.swept(by_fold=by_fold, keep=kept), kept
