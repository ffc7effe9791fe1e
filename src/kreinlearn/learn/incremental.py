"""partial_fit: landmarks are those of the first part, and sums of later parts are added to it.

The first part may be all rows of a ``fit``, of which only sums over the features are kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.fit import (
    FitSums,
    LearnSpec,
    Model,
    Solved,
    Sums,
    make_model,
    make_task,
    solved,
    tune_penalties,
)
from kreinlearn.learn.folds import MAX_FOLDS
from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.search import Tuned, given, tune_apart
from kreinlearn.learn.similarity import choose_similarity
from kreinlearn.learn.task import Features, Linear, downdated, gram_scale
from kreinlearn.nystrom.core import FeatureMap, RowWork
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.sums.moments import Moments, Targets, spare_for

LEAST_VALIDATED = 0.2  # of all weight, for penalties to be tuned anew


def going_on(
    pairs: Pairs,
    fitted: FitSums,
    feature_map: FeatureMap,
    spec: LearnSpec,
    rng: np.random.Generator,
) -> Sums:
    """Sums without any rows yet, for parts that come after a fit with this map."""
    m, q = len(feature_map.W), len(fitted.t)
    k = 1
    if spec.tunes:
        k += MAX_FOLDS if spec.cv is None else int(spec.cv)
    pairs.require_memory(
        8 * (2 * k + 1) * m * m, f"adding rows to a fit of {m} landmarks",
        "fit with fewer landmarks, or raise Resources(memory_budget=...)",
    )  # fmt: skip
    groups = [Moments.zeros(m, q) for _ in range(k)]
    return Sums(groups, feature_map.rescaled(1 / fitted.unit), fitted.unit, rng, fitted.values)


def first_part(pairs: Pairs, encoded: Encoded, spec: LearnSpec) -> Model:
    """The model of the first part of the data, with the sums that later parts are added to."""
    chosen = choose_similarity(make_task(pairs, encoded, spec), spec.similarity)
    task = chosen.task
    swept, features = task.with_landmarks_trained().swept(by_fold=spec.tunes)
    task = replace(task, sample=swept.sample)
    loss = spec.loss.prepared(features, encoded, intercept=spec.intercept)
    tuned = tune_penalties(task, features, loss, spec)
    solution = _solution(features, loss, spec, tuned)
    model = make_model(task, features, spec, encoded, tuned, solution, chosen)
    rng = pairs.session.rng
    sums = Sums(features.groups, features.map, features.unit, rng, tuned.values)
    return replace(model, sums=sums)


def next_part(
    pairs: Pairs, encoded: Encoded, spec: LearnSpec, sums: Sums, columns: LandmarkColumns,
    fitted: FitSums | None = None,
) -> tuple[Sums, Solved]:  # fmt: skip
    """The sums with a further part of the data, and the solution that follows from them.

    ``fitted`` are the sums of a fit that came before the first part, if there was one.
    """
    groups = _added(pairs, Targets(encoded.Y, encoded.weights), sums, columns)
    features = Features(groups, columns, sums.unit, sums.map)
    if fitted is not None:
        *parts, last = features.terms
        features = replace(features, exact_terms=[*parts, last.plus(fitted.terms)])
    loss = spec.loss.prepared(features, encoded, intercept=spec.intercept)
    tuned = _tuned_again(features, loss, spec, sums, pairs.workers)
    solution = _solution(features, loss, spec, tuned)
    sums = replace(sums, groups=groups, values=tuned.values)
    return sums, solved(sums.unit, sums.map, spec, encoded, tuned, solution)


def _solution(features: Features, loss: Loss, spec: LearnSpec, tuned: Tuned) -> Linear:
    whole = features.whole(intercept=spec.intercept)
    return loss.settled(tuned.values).solve_sums(whole, features.map.S, tuned.values)


def _added(pairs: Pairs, targets: Targets, sums: Sums, columns: LandmarkColumns) -> list[Moments]:
    """The moments of new rows, each in a random fold, added to those of the rows before."""
    k, m, n, session = len(sums.groups), len(sums.map.W), pairs.n, pairs.session
    if k > 1:
        targets = replace(targets, groups=sums.rng.integers(k - 1, size=n), n_groups=k)
    width, progress = columns.n_evaluated(m), session.progress
    work = RowWork(
        columns, np.arange(m), sums.unit, targets.Y.shape[1], k, m,
        spare=spare_for(m, k, session.workers),
    )  # fmt: skip

    def seen(numbers: Array, _: Array) -> None:
        progress.add(len(numbers), len(numbers) * width)

    nothing = np.empty(0, dtype=np.intp)
    with progress.step("new rows", n, n * width):
        total = pairs.rows.sum(work, targets, nothing, workers=session.workers, seen=seen)
    for new, before in zip(total.groups, sums.groups, strict=True):
        new += before
    groups: list[Moments] = total.groups
    return groups


def _tuned_again(
    features: Features, loss: Loss, spec: LearnSpec, sums: Sums, workers: int
) -> Tuned:
    """Penalties tuned on the folds so far, or those of before while there are too few rows."""
    unknowns = spec.unknowns(features.unit)
    if not unknowns.free:
        return given(unknowns)
    whole = features.whole(intercept=spec.intercept)
    S, intercept = features.map.S, spec.intercept
    folds = downdated(features.terms, S, intercept=intercept, workers=workers)
    if sum(fold.n_valid for fold in folds) < LEAST_VALIDATED * whole.n:
        return replace(given(unknowns), values=sums.values)
    return tune_apart(loss.objective(folds, workers), gram_scale(whole.G, whole.n), unknowns)
