"""From objects and targets to the terms that solvers and the search for penalties take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import Source, row_blocks
from kreinlearn.kernels.base import Array, Objects, symmetrised
from kreinlearn.kernels.dissimilarity import TRANSFORMS, refit
from kreinlearn.learn.folds import (
    TRAINING,
    FoldRows,
    as_groups,
    downdated,
    terms_by_one_map,
    with_fold,
)
from kreinlearn.learn.search import Objective, Tuned
from kreinlearn.nystrom.approximation import Fitted
from kreinlearn.nystrom.core import FeatureMap, one_shot
from kreinlearn.nystrom.sweep import Plan, moments_pass
from kreinlearn.pairs.columns import LandmarkColumns
from kreinlearn.pairs.evaluate import evaluate, over
from kreinlearn.pairs.panel import Panel
from kreinlearn.solvers.least_squares import leave_one_out
from kreinlearn.solvers.result import Fold
from kreinlearn.sums.gram import Gram
from kreinlearn.sums.moments import Moments, Targets, Terms, total_terms
from kreinlearn.sums.parallel import map_blocks

POWER_STEPS = 30  # of the iteration for the largest eigenvalue
FEW_ROWS = 4  # to a landmark: features are formed then, and not only summed
ABSENT = -2  # the fold of rows that are left out of everything

MapOf = Callable[[Array, float], tuple[Array, Array]]  # K_ZZ, eps -> W, S


@dataclass
class Problem:
    """What is to be learned, from which rows, and how the rows are split to tune it."""

    panel: Panel
    plan: Plan
    rng: np.random.Generator
    y: Any  # as given: arrays, or rows on workers
    Y: Any  # (n, q)
    weights: Any  # (n,), none if all are 1
    folds: Any  # (n,) fold numbers
    n_folds: int
    intercept: bool
    map_of: MapOf
    transform: str = "squared"  # of a dissimilarity
    tuned: Tuned | None = None  # by least squares on all rows, while the similarity was chosen

    def __post_init__(self) -> None:
        rows = self.panel.landmarks[self.panel.landmarks >= 0]
        self.honest = 2 * len(rows) > self.n_weighted  # each fold makes a map of its own
        if not self.honest:  # a landmark row is no test of the map it made
            self.folds = with_fold(self.folds, rows, TRAINING)

    @property
    def n_weighted(self) -> int:
        """Rows that weigh anything; those that are elsewhere all do."""
        if self.weights is None or isinstance(self.weights, Source):
            return len(self.Y)
        return int(np.count_nonzero(self.weights))

    @property
    def inside(self) -> Array:
        """Places in the panel of the rows of X."""
        return np.flatnonzero(self.panel.rows >= 0)

    @property
    def rows(self) -> Array:
        return np.asarray(self.panel.rows[self.inside])

    def targets(self, *, by_fold: bool, folds: Any = None) -> Targets:
        """Of all rows; by fold, the last group is in every training part."""
        if not by_fold:
            return Targets(self.Y, self.weights)
        groups = as_groups(self.folds if folds is None else folds, self.n_folds)
        return Targets(self.Y, self.weights, groups, self.n_folds + 1)

    def held(self) -> tuple[Array, Array | None]:
        """Targets and weights of the rows in the panel."""
        return Targets(self.Y, self.weights).of(self.rows)

    def split_rows(
        self, feature_map: FeatureMap | None = None, *, columns: bool = False
    ) -> list[FoldRows]:
        """Features of the panel's rows for every fold, by a map its validation had no part in.

        With ``columns`` the kernel values and the map they come from are kept beside them.
        """
        numbers = self.folds[self.rows]
        present = [k for k in range(self.n_folds) if 0 < np.sum(numbers == k) < len(numbers)]
        if self.honest:
            self._require_room(len(present))
            return [self._rebuilt(k, columns) for k in present]
        unit = self.panel.unit
        C = over(self.panel.C[self.inside], unit)
        if feature_map is None:
            W, S = self.cut(C, *self.map_of(self.panel.K_ZZ / unit, self.panel.eps))
        else:
            W, S = feature_map.W, feature_map.S
        kept, Phi = (C, W) if columns else None, C @ W
        return [
            FoldRows(Phi, S, np.flatnonzero(numbers != k), np.flatnonzero(numbers == k), kept)
            for k in present
        ]

    def sampled(
        self, splits: list[FoldRows], most: int, rng: np.random.Generator | None = None
    ) -> list[FoldRows]:
        """The same splits of at most so many rows, drawn at random."""
        n = len(self.rows)
        if n <= most:
            return splits
        drawn = np.zeros(n, dtype=bool)
        drawn[(rng or self.rng).choice(n, most, replace=False)] = True
        return [
            replace(
                split, train=split.train[drawn[split.train]], valid=split.valid[drawn[split.valid]]
            )
            for split in splits
        ]

    def _require_room(self, k: int) -> None:
        n, m = len(self.rows), len(self.panel.landmarks)
        require_memory(
            8 * k * m * (n + 2 * m), self.plan.budget,
            f"tuning on {k} folds, each with a map of {m} of the {n} objects,",
            "lower n_landmarks or cv, raise memory_budget, or give the penalties",
        )  # fmt: skip

    def thinned(self, most: int, rng: np.random.Generator) -> Problem:
        """The same of fewer rows, where folds make maps of all of them: cheaper to look at."""
        n = len(self.rows)
        if not self.honest or n <= most:
            return self
        left_out = rng.choice(self.rows, n - most, replace=False)
        return replace(self, folds=with_fold(self.folds, left_out, ABSENT))

    def _trained(self, rows: Array, k: int) -> Array:
        """Places of the rows that are in the training part of a fold; those outside X are."""
        folds = self.folds[rows]
        return np.flatnonzero((rows < 0) | ((folds != k) & (folds != ABSENT)))

    def _rebuilt(self, k: int, columns: bool) -> FoldRows:
        panel = self.panel
        C, K_ZZ = self._similarities(k)
        unit = panel.unit
        C = over(C[self.inside], unit)
        train, valid = self._trained(self.rows, k), np.flatnonzero(self.folds[self.rows] == k)
        W, S = self.cut(C[train], *self.map_of(K_ZZ / unit, panel.eps))
        return FoldRows(C @ W, S, train, valid, (C, W) if columns else None)

    def cut(self, C: Array, W: Array, S: Array) -> tuple[Array, Array]:
        """The map cut to the rank asked for, as that of all rows will be."""
        if self.plan.rank is None or self.plan.rank >= len(S):
            return W, S
        cut = FeatureMap(W, S, *one_shot(C.T @ C, W, S)).cut(self.plan.rank)
        return cut.W, cut.S

    def _similarities(self, k: int) -> tuple[Array, Array]:
        """C and K_ZZ of a fold's own landmarks; a dissimilarity is transformed by them alone."""
        panel = self.panel
        kept = self._trained(panel.landmarks, k)
        if panel.transform is None:
            C, at = panel.C[:, kept], panel.positions(panel.landmarks[kept])
            return C, symmetrised(C[at])
        trained = self._trained(panel.columns[: panel.transform.n_reference], k)
        places = kept if panel.places is None else panel.places[kept]
        make = TRANSFORMS[self.transform]
        return refit(panel.raw, places, trained, panel.positions(panel.columns), make)

    def use(self, transform: str) -> None:
        self.transform = transform
        self.panel.use(transform)


class Statistics(NamedTuple):
    """All that solvers see of the rows: sums of C / unit a group, and the map of features."""

    groups: list[Moments]
    columns: LandmarkColumns
    unit: float
    map: FeatureMap  # of C / unit
    known: list[Terms] | None = None  # of features, a group

    def terms(self) -> list[Terms]:
        if self.known is not None:
            return self.known
        return [group.terms(self.map.W) for group in self.groups]

    def gram(self) -> Gram:
        return whole_gram(self.groups)

    def fitted(self, panel: Panel) -> Fitted:
        gram = self.gram()
        return Fitted(panel, self.columns, gram, self.unit, self.map.rescaled(self.unit))


CoreOf = Callable[[Panel, Gram, float, int, Plan, np.random.Generator], FeatureMap]


def gather(
    problem: Problem,
    core: CoreOf,
    *,
    by_fold: bool,
    folds: Array | None = None,
    hold: Any = None,
) -> Statistics:
    """One pass over all rows, then the feature map; ``hold`` takes in C / unit."""
    targets = problem.targets(by_fold=by_fold, folds=folds)
    panel, plan = problem.panel, problem.plan
    columns = panel.evaluator()
    moments, unit = moments_pass(panel, columns, plan, problem.rng, targets, hold)
    n = len(problem.Y)
    feature_map = core(panel, whole_gram(moments), unit, n, plan, problem.rng)
    found = Statistics(moments, columns, unit, feature_map)
    if len(problem.rows) == n <= FEW_ROWS * len(panel.landmarks):
        return found._replace(known=_terms_of_rows(problem, targets, unit, feature_map))
    return found._replace(known=found.terms())


def _terms_of_rows(
    problem: Problem, targets: Targets, unit: float, feature_map: FeatureMap
) -> list[Terms]:
    """From the features themselves: W'(C'C)W would square the condition of an exact map."""
    Phi = over(problem.panel.C[problem.inside], unit) @ feature_map.W
    group = np.zeros(len(Phi), dtype=np.intp) if targets.groups is None else targets.groups
    return [
        Terms.of_rows(Phi[group == g], *targets.of(np.flatnonzero(group == g)))
        for g in range(targets.n_groups)
    ]


def whole_gram(groups: list[Moments]) -> Gram:
    if len(groups) == 1:
        return groups[0].gram
    total = Gram.zeros(len(groups[0].gram.sums))
    for group in groups:
        total += group.gram
    return total


def folds_of(problem: Problem, statistics: Statistics) -> list[Fold]:
    """The terms of all folds: by maps rebuilt from the rows held, or by down-dating the sums."""
    if not problem.honest:
        return downdated(statistics.terms(), statistics.map.S, intercept=problem.intercept)
    return terms_of(problem, problem.split_rows())


def terms_of(problem: Problem, splits: list[FoldRows]) -> list[Fold]:
    Y, w = problem.held()
    if splits and not problem.honest:
        return terms_by_one_map(splits, Y, w, intercept=problem.intercept)
    return [split.terms(Y, w, intercept=problem.intercept) for split in splits]


class MeanLoss:
    """The loss of all folds a unit of validated weight, and its gradient."""

    def __init__(self, folds: list[Fold], fold_loss: Callable[..., tuple[float, Array]]) -> None:
        self.folds, self.fold_loss = folds, fold_loss
        self.weight = sum(fold.n_valid for fold in folds)

    def __call__(self, values: Array) -> tuple[float, Array]:
        found = [self.fold_loss(fold, *values) for fold in self.folds]
        losses, gradients = zip(*found, strict=True)
        return sum(losses) / self.weight, np.sum(gradients, axis=0) / self.weight

    def per_fold(self, values: Array) -> Array:
        return np.array([self.fold_loss(fold, *values)[0] / fold.n_valid for fold in self.folds])


def gram_scale(G: Array, n: float) -> float:
    """The largest eigenvalue of a Gram matrix over n, by a power iteration; 1 if it is zero."""
    v = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    size = float(np.linalg.norm(v))
    for _ in range(POWER_STEPS):
        if size == 0:
            return 1.0
        v = G @ (v / size)
        size = float(np.linalg.norm(v))
    return size / n


def statistics_scale(statistics: Statistics, *, intercept: bool) -> float:
    whole = total_terms(statistics.terms()).centred(intercept=intercept)
    return gram_scale(whole.G, whole.n)


def features_of(problem: Problem, statistics: Statistics) -> Array:
    """Phi of all rows, held in memory: rows of the panel are not evaluated again."""
    panel, plan = problem.panel, problem.plan
    n, r = len(problem.Y), len(statistics.map.S)
    remedy = 'pass multi_class="ovr", or raise memory_budget'
    require_memory(8 * n * r, plan.budget, f"one-vs-one holds features, {n} x {r}, and", remedy)
    Phi = np.empty((n, r))
    Phi[problem.rows] = over(panel.C[problem.inside], statistics.unit) @ statistics.map.W

    def one_block(block: tuple[Array, Objects]) -> None:
        numbers, A = block
        values = partial(statistics.columns.of_rows, numbers)
        C = evaluate(values, A, numbers, panel.landmarks)
        Phi[numbers] = over(C, statistics.unit) @ statistics.map.W
        plan.progress.add(len(numbers), len(numbers) * width)

    width, others = len(panel.columns), n - len(problem.rows)
    with plan.progress.step("rows again", others, others * width):
        map_blocks(one_block, row_blocks(panel.X.X, problem.rows), workers=panel.workers)
    return Phi


def leave_one_out_of(problem: Problem, statistics: Statistics) -> Objective:
    """Leave-one-out of the rows held, by one map; a landmark row is not tested."""
    Phi = over(problem.panel.C[problem.inside], statistics.unit) @ statistics.map.W
    Y, w = problem.held()
    w = np.ones(len(Y)) if w is None else w
    tested = problem.folds[problem.rows] != TRAINING
    rows, weight = (Phi, Y, w, tested), w[tested].sum()

    def objective(values: Array) -> tuple[float, Array]:
        S, intercept = statistics.map.S, problem.intercept
        loss, gradient = leave_one_out(rows, S, intercept, *values)
        return loss / weight, gradient / weight

    return objective
