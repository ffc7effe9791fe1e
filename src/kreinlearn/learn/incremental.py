"""partial_fit: landmarks are those of the first part, and sums of later parts are added to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.coding import Encoded
from kreinlearn.learn.folds import downdated
from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.precision import require_learned
from kreinlearn.learn.search import Tuned, given, tune_apart
from kreinlearn.learn.task import Features, gram_scale
from kreinlearn.nystrom.core import FeatureMap, RowWork
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.sums.moments import Moments, Targets, spare_for

if TYPE_CHECKING:
    from kreinlearn.learn.fit import Decided, LearnSpec, Model, Solved

LEAST_VALIDATED = 0.2  # of all weight, for penalties to be tuned anew


@dataclass
class Sums:
    """What is kept between parts: one group per fold, and a last one that is always trained on."""

    groups: list[Moments]
    map: FeatureMap  # of C / unit
    unit: float
    rng: np.random.Generator
    values: Array  # penalties last used, in the units of C / unit


def first_part(pairs: Pairs, encoded: Encoded, spec: LearnSpec) -> Model:
    """The model of the first part of the data, with the sums that later parts are added to."""
    from kreinlearn.learn.fit import make_model, make_task, tune_penalties
    from kreinlearn.learn.similarity import choose_similarity

    chosen = choose_similarity(make_task(pairs, encoded, spec), spec.similarity)
    task = chosen.task
    swept, features = task.with_landmarks_trained().swept(by_fold=spec.tunes)
    task = replace(task, sample=swept.sample)
    loss = spec.loss.prepared(features, encoded.shift, intercept=spec.intercept)
    tuned = tune_penalties(task, features, loss, spec, encoded)
    if pairs.session.single:
        require_learned(task, tuned.values)
    decided = _decided(features, loss, spec, encoded, tuned)
    model = make_model(task, features, spec, encoded, tuned, decided, chosen)
    rng = pairs.session.rng
    sums = Sums(features.groups, features.map, features.unit, rng, tuned.values)
    return replace(model, sums=sums)


def next_part(
    pairs: Pairs, encoded: Encoded, spec: LearnSpec, sums: Sums, columns: LandmarkColumns
) -> tuple[Sums, Solved]:
    """The sums with a further part of the data, and the solution that follows from them."""
    from kreinlearn.learn.fit import solved

    groups = _added(pairs, Targets(encoded.Y, encoded.weights), sums, columns)
    features = Features(groups, columns, sums.unit, sums.map)
    loss = spec.loss.prepared(features, encoded.shift, intercept=spec.intercept)
    tuned = _tuned_again(features, loss, spec, sums)
    decided = _decided(features, loss, spec, encoded, tuned)
    sums = replace(sums, groups=groups, values=tuned.values)
    return sums, solved(sums.unit, sums.map, spec, encoded, tuned, decided)


def _decided(
    features: Features, loss: Loss, spec: LearnSpec, encoded: Encoded, tuned: Tuned
) -> Decided:
    from kreinlearn.learn.fit import Decided

    whole = features.whole(intercept=spec.intercept)
    model = loss.settled(tuned.values).solve_sums(whole, features.map.S, tuned.values)
    return Decided(model, None if encoded.classes is None else "ovr")


def _added(pairs: Pairs, targets: Targets, sums: Sums, columns: LandmarkColumns) -> list[Moments]:
    """The moments of new rows, each in a random fold, added to those of the rows before."""
    k, m, n, session = len(sums.groups), len(sums.map.W), pairs.n, pairs.session
    if k > 1:
        targets = replace(targets, groups=sums.rng.integers(k - 1, size=n), n_groups=k)
    width, progress = columns.n_evaluated(m), session.progress
    work = RowWork(
        columns, np.arange(m), sums.unit, targets.Y.shape[1], k, m, single=session.single,
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


def _tuned_again(features: Features, loss: Loss, spec: LearnSpec, sums: Sums) -> Tuned:
    """Penalties tuned on the folds so far, or those of before while there are too few rows."""
    unknowns = spec.unknowns(features.unit)
    if not unknowns.free:
        return given(unknowns)
    whole = features.whole(intercept=spec.intercept)
    folds = downdated(features.terms, features.map.S, intercept=spec.intercept)
    if sum(fold.n_valid for fold in folds) < LEAST_VALIDATED * whole.n:
        return replace(given(unknowns), values=sums.values)
    return tune_apart(loss.objective(folds), gram_scale(whole.G, whole.n), unknowns)
