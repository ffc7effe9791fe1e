"""From rows and targets to a model: the picture of ARCHITECTURE.md, one line per arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.learn.coding import Coding, Decided, Encoded
from kreinlearn.learn.exact import exact_features
from kreinlearn.learn.folds import FoldSpec
from kreinlearn.learn.held_out import HeldOut, held_out
from kreinlearn.learn.incremental import Sums
from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.precision import require_learned
from kreinlearn.learn.scoring import cross_validated_score
from kreinlearn.learn.search import Tuned, Unknowns, given, pattern_search
from kreinlearn.learn.similarity import Chosen, SimilaritySpec, choose_similarity
from kreinlearn.learn.task import Features, Linear, Task
from kreinlearn.nystrom.core import FeatureKind, FeatureMap, identity_map
from kreinlearn.nystrom.landmarks import MapSpec, open_sample, select_landmarks
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows, Session


@dataclass(frozen=True)
class LearnSpec:
    """What an estimator asks for: every choice that is not made from the data."""

    kernel: Kernel  # fitted
    map: MapSpec
    similarity: SimilaritySpec
    kind: FeatureKind
    loss: Loss
    coding: Coding
    penalties: Unknowns  # as given by the user; None where they are tuned
    folds: FoldSpec
    scoring: Any = None
    intercept: bool = True
    held_out: bool = False  # whether scores of objects by models without them are kept

    def unknowns(self, unit: float) -> Unknowns:
        """What is tuned, in the units of the features of C / unit."""
        root = self.kind.root(unit)
        fixed = (None if value is None else value / root / root for value in self.penalties.fixed)
        return self.loss.unknowns(replace(self.penalties, fixed=tuple(fixed)))

    def is_exact(self, task: Task) -> bool:
        """Whether the problem is solved in the eigenbasis of all objects."""
        positive = all(value is None or value > 0 for value in self.penalties.fixed)
        return task.exact and self.loss.diagonal and self.scoring is None and positive

    @property
    def tunes(self) -> bool:
        """Whether anything is found by cross-validation."""
        return bool(self.unknowns(1.0).free)

    def wants_pool(self, encoded: Encoded) -> bool:
        """Whether rows beside the landmarks are looked at before the pass over all rows."""
        transforms = self.kernel.is_dissimilarity and self.similarity.name == "auto"
        left_out = self.folds.loo and self.tunes
        searches = self.loss.needs_pool and self.tunes
        chooses = transforms or bool(self.similarity.kernels) or self.coding.compares(encoded)
        scores = self.scoring is not None or self.held_out
        return bool(chooses or left_out or searches or scores)


@dataclass(frozen=True)
class Solved:
    """Penalties and coefficients, which a further part of the data changes."""

    coef: Array  # (r, q), of the features of the kernel itself
    dual: Array  # (m, q), of the landmarks
    intercept: Array  # (q,)
    tuned: Tuned  # in the units of C / unit
    penalties: Array  # as the user gives them
    root: float  # the unit of the features
    encoded: Encoded
    solution: Linear
    multi_class: str | None = None
    multi_class_errors: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Model:
    """Everything that a fit has found; an estimator copies it to its attributes."""

    kernel: Kernel
    sample: Sample
    columns: LandmarkColumns
    map: FeatureMap  # of the kernel itself
    solved: Solved
    folds: Array
    n_chosen: int  # landmarks that were asked for, of which a sparse model keeps some
    chosen: Chosen  # the similarity
    reason: str = ""  # why there are so many landmarks
    held_out: HeldOut | None = None
    sums: Sums | None = None  # what partial_fit goes on from


def fit_model(
    rows: Rows, encoded: Encoded, weights: Any, spec: LearnSpec, session: Session,
    rng: np.random.Generator,
) -> Model:  # fmt: skip
    """From rows and targets to a model: the picture of ARCHITECTURE.md, one line per arrow."""
    task = make_task(rows, encoded, weights, spec, session, rng)  # rows -> landmarks, folds
    chosen = choose_similarity(task, spec.similarity)
    by_fold = spec.tunes and not chosen.task.honest and not spec.folds.loo
    kept = None
    if not spec.is_exact(chosen.task):
        kept = spec.loss.keeping(chosen.task, by_fold=by_fold)
    task, features = make_features(chosen.task, spec, by_fold=by_fold, keep=kept)
    loss = spec.loss.prepared(features, encoded.shift, intercept=spec.intercept)
    tuned = tune_penalties(task, features, loss, spec, encoded)  # folds -> penalties
    decided = spec.coding.finish(task, features, loss.settled(tuned.values), tuned.values, kept)
    if session.single:
        require_learned(task, tuned.values)
    model = make_model(task, features, spec, encoded, tuned, decided, chosen)
    if not spec.held_out:
        return model
    return replace(model, held_out=held_out(task, features, loss, tuned.values))


def make_task(
    rows: Rows, encoded: Encoded, weights: Any, spec: LearnSpec, session: Session,
    rng: np.random.Generator,
) -> Task:  # fmt: skip
    """Landmarks chosen and rows split."""
    map_spec = replace(spec.map, wants_pool=session.single or spec.wants_pool(encoded))
    weighted = rows.weighted_rows(weights)
    if weighted is not None:
        m = min(map_spec.n_landmarks, len(weighted))
        map_spec = replace(map_spec, eligible=weighted, n_landmarks=m)
    pairs = Pairs(spec.kernel, rows, session)
    sample = select_landmarks(pairs, open_sample(pairs, map_spec, rng), map_spec, rng)
    pairs.probe(sample)
    folds, n_folds = spec.folds.draw(rows, encoded, rng)
    task = Task(
        pairs, sample, map_spec, spec.kind, rng, encoded.y, encoded.Y, weights, folds, n_folds,
        spec.intercept, leaves_one_out=spec.folds.leaves_one_out,
    )  # fmt: skip
    return task if task.honest else task.with_landmarks_trained()


def make_features(
    task: Task, spec: LearnSpec, *, by_fold: bool, keep: Any = None
) -> tuple[Task, Features]:
    """Features from sums over all rows; or from all pairs, if all objects are landmarks."""
    if spec.is_exact(task):
        return exact_features(task)
    return task.swept(by_fold=by_fold, keep=keep)


def tune_penalties(
    task: Task, features: Features, loss: Loss, spec: LearnSpec, encoded: Encoded
) -> Tuned:
    """The penalties that are given, or those of the smallest loss or of the best score."""
    unknowns = spec.unknowns(features.unit)
    if not unknowns.free:
        return given(unknowns)
    tuned = loss.tune(task, features, unknowns, loo=spec.folds.loo)
    if spec.scoring is None:
        return tuned
    fixed = (*unknowns.fixed[:2], *tuned.values[2:])
    solve = partial(loss.settled(tuned.values).solve_rows, intercept=spec.intercept)
    model = partial(spec.coding.fold_model, encoded)
    score = cross_validated_score(task, task.splits(features.map), spec.scoring, solve, model)
    scale = features.scale(intercept=spec.intercept)
    return pattern_search(score, scale, replace(unknowns, fixed=fixed), tuned.values)


def make_model(
    task: Task, features: Features, spec: LearnSpec, encoded: Encoded, tuned: Tuned,
    decided: Decided, chosen: Chosen,
) -> Model:  # fmt: skip
    """The solution in the units of the kernel, with only the landmarks that it needs."""
    sample, columns, feature_map = task.sample, features.columns, features.map
    needed = decided.model.landmarks
    if needed is not None:
        sample = sample.with_landmarks(sample.landmarks[needed])
        columns, feature_map = task.pairs.evaluator(sample), identity_map(len(needed))
        coef = decided.model.coef[needed]
        decided = decided._replace(model=replace(decided.model, coef=coef))
    return Model(
        kernel=task.pairs.kernel,
        sample=sample,
        columns=columns,
        map=feature_map.rescaled(features.unit),
        solved=solved(features.unit, feature_map, spec, encoded, tuned, decided),
        folds=task.folds,
        n_chosen=task.spec.n_landmarks,
        chosen=chosen,
        reason=task.spec.reason,
    )


def solved(
    unit: float, feature_map: FeatureMap, spec: LearnSpec, encoded: Encoded, tuned: Tuned,
    decided: Decided,
) -> Solved:  # fmt: skip
    """Coefficients and penalties in the units of the kernel itself."""
    solution, root = decided.model, spec.kind.root(unit)
    with np.errstate(over="ignore"):  # of squared similarities they may be out of range
        penalties = tuned.values[:2] * root * root
    return Solved(
        coef=solution.coef / root,
        dual=feature_map.W @ solution.coef / unit,
        intercept=solution.intercept + encoded.shift,
        tuned=tuned,
        penalties=penalties,
        root=root,
        encoded=encoded,
        solution=solution,
        multi_class=decided.multi_class,
        multi_class_errors=decided.errors,
    )
