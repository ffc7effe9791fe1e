"""From rows and targets to a model: the picture of ARCHITECTURE.md, one line per arrow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from kreinlearn.kernels.base import Array, Kernel
from kreinlearn.kernels.several import Several
from kreinlearn.learn.coding import Coding, Encoded
from kreinlearn.learn.combination import Combination
from kreinlearn.learn.exact import exact_features, exact_sums, landmarks_by_cost
from kreinlearn.learn.folds import MAX_FOLDS, are_drawn, draw_folds, rounds_of, warn_of_rare
from kreinlearn.learn.held_out import HeldOut, held_out
from kreinlearn.learn.losses.base import Loss
from kreinlearn.learn.neighbours import NEIGHBOURS
from kreinlearn.learn.search import Tuned, Unknowns, given
from kreinlearn.learn.similarity import (
    Chosen,
    SimilaritySpec,
    SumOfKernels,
    choose_similarity,
    compared_on_landmarks,
    kernels_to_try,
)
from kreinlearn.learn.stack import stack_bytes
from kreinlearn.learn.task import Features, Linear, Task
from kreinlearn.nystrom.core import FeatureKind, FeatureMap, KreinFeatures, identity_map
from kreinlearn.nystrom.landmarks import (
    Landmarks,
    MapSpec,
    map_spec,
    open_sample,
    select_landmarks,
)
from kreinlearn.pairs.evaluate import LandmarkColumns
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.sums.moments import FeatureMoments, Moments, total_moments

KREIN = KreinFeatures()
MOST_LANDMARKS = 1000  # of landmarks="auto", where not all rows are at hand


class Parameters(Protocol):
    """The parameters that every learner has, as its constructor names them."""

    kernel: Any
    kernel_params: Any
    landmarks: Any
    similarity: str
    lambda_plus: Any
    lambda_minus: Any
    cv: Any
    fit_intercept: bool


class Recipe(NamedTuple):
    """What differs between learners beside their parameters."""

    loss: Loss
    coding: Coding
    kind: FeatureKind = KREIN
    seconds: float | None = None  # of one core that a fit may take; None is the default
    held_out: bool = False  # whether scores of objects by models without them are kept
    near: bool = False  # and the kernel values of these objects, for their neighbours
    in_parts: bool = False  # whether partial_fit may go on from a fit


@dataclass(frozen=True)
class LearnSpec:
    """What is asked for, with parameters as numbers for the rows at hand."""

    map: MapSpec
    loss: Loss
    penalties: Unknowns  # as given by the user; None where they are tuned
    similarity: SimilaritySpec
    kind: FeatureKind
    cv: Any = None  # a number of folds, a splitter, "loo", or None for the default
    intercept: bool = True
    held_out: bool = False  # whether scores of objects by models without them are kept
    near: bool = False  # and the kernel values of these objects, for their neighbours
    in_parts: bool = False  # whether partial_fit may go on from a fit

    @property
    def loo(self) -> bool:
        return isinstance(self.cv, str)

    def unknowns(self, unit: float) -> Unknowns:
        """What is tuned, in the units of the features of C / unit."""
        root = self.kind.root(unit)
        fixed = (None if value is None else value / root / root for value in self.penalties.fixed)
        return self.loss.unknowns(replace(self.penalties, fixed=tuple(fixed)))

    def is_exact(self, task: Task) -> bool:
        """Whether the problem is solved in the eigenbasis of all objects."""
        positive = all(value is None or value > 0 for value in self.penalties.fixed)
        return task.exact and self.loss.diagonal and positive

    @property
    def tunes(self) -> bool:
        """Whether anything is found by cross-validation."""
        return bool(self.unknowns(1.0).free)

    def wants_pool(self, kernel: Kernel) -> bool:
        """Whether rows beside the landmarks are looked at before the pass over all rows."""
        transforms = kernel.is_dissimilarity and self.similarity.name == "auto"
        left_out = self.loo and self.tunes
        searches = self.loss.needs_pool and self.tunes
        chooses = transforms or bool(self.similarity.kernels)
        return bool(chooses or left_out or searches or self.held_out)


def make_spec(
    asked: Parameters, recipe: Recipe, pairs: Pairs, encoded: Encoded,
    *, part: bool = False, known: MapSpec | None = None,
) -> LearnSpec:  # fmt: skip
    """Parameters as numbers for the rows at hand.

    ``part`` says that more rows will come later; if some came before, their landmarks are known.
    """
    plus, minus = (
        None if isinstance(value, str) else float(value)
        for value in (asked.lambda_plus, asked.lambda_minus)
    )
    equal = asked.lambda_minus == "equal"
    fixed = (plus, plus if equal else minus)
    wanted = Landmarks.of(asked.landmarks)
    exact = recipe.loss.diagonal and 0 not in fixed and not part
    return LearnSpec(
        known or _map_spec(pairs, wanted, encoded, recipe, exact=exact),
        recipe.loss,
        Unknowns(fixed, equal),
        SimilaritySpec(
            asked.similarity,
            kernels_to_try(asked.kernel, asked.kernel_params, pairs.kernel, pairs.session.rng),
            equal=equal,
            tunes=fixed == (None, None),
            sketched=recipe.loss.iterates,
        ),
        recipe.kind,
        asked.cv,
        asked.fit_intercept,
        recipe.held_out,
        recipe.near,
        recipe.in_parts,
    )


def _map_spec(
    pairs: Pairs, wanted: Landmarks, encoded: Encoded, recipe: Recipe, *, exact: bool
) -> MapSpec:
    """ "auto" is all objects, if a fit can do that in reasonable time."""
    default, reason = min(pairs.n, MOST_LANDMARKS), ""
    automatic = isinstance(wanted.n, str) and not wanted.rank and not wanted.core
    if automatic and exact and pairs.rows.here:
        pair = pairs.seconds(of_each=recipe.seconds is None)
        default, reason = landmarks_by_cost(
            pairs.n, encoded.Y.shape[1], pair, pairs.budget,
            machines=recipe.loss.iterates, seconds=recipe.seconds,
            compares=pairs.kernel.is_dissimilarity,
            n_folds=0 if encoded.groups is None else MAX_FOLDS,
        )  # fmt: skip
    core, rank = wanted.core or "plain", wanted.rank
    default = max(default, rank or 0)
    return map_spec(pairs, wanted, core=core, rank=rank, default=default, reason=reason)


@dataclass(frozen=True)
class Solved:
    """Penalties and coefficients, which a further part of the data changes."""

    coef: Array  # (r, q), of the features of the kernel itself; of landmarks, if these are few
    dual: Array  # (m, q), of the landmarks
    intercept: Array  # (q,)
    tuned: Tuned  # in the units of C / unit
    penalties: Array  # as the user gives them
    root: float  # the unit of the features
    encoded: Encoded
    solution: Linear


@dataclass
class Sums:
    """What is kept between parts: one group per fold, and a last one always trained on."""

    groups: list[Moments]
    map: FeatureMap  # of C / unit
    unit: float
    rng: np.random.Generator
    values: Array  # penalties last used, in the units of C / unit


@dataclass(frozen=True)
class FitSums:
    """What a fit leaves for parts that come later: sums over the features of its rows."""

    gram: Array  # of Phi' w Phi: the diagonal (r,), if that is all; or else the upper triangle
    s: Array  # (r,): Phi' w 1
    B: Array  # (r, q): Phi' w Y
    t: Array  # (q,): 1' w Y
    yy: Array  # (q,): Y' w Y
    weight: float
    unit: float  # of the kernel values
    values: Array  # penalties, in the units of C / unit

    @property
    def terms(self) -> FeatureMoments:
        r = len(self.s)
        G = np.zeros((r, r))
        at = np.diag_indices(r) if self.gram.shape == (r,) else np.triu_indices(r)
        G[at] = G[at[::-1]] = self.gram
        return FeatureMoments(G, self.s, self.B, self.t, self.yy, self.weight)


@dataclass(frozen=True)
class Model:
    """Everything that a fit has found; an estimator copies it to its attributes."""

    pairs: Pairs
    sample: Sample
    columns: LandmarkColumns
    map: FeatureMap  # of the kernel itself
    solved: Solved
    folds: Array
    n_chosen: int  # landmarks that were asked for, of which a sparse model keeps some
    chosen: Chosen  # the similarity
    signed: bool  # whether coefficients are those of features with signs
    reason: str = ""  # why there are so many landmarks
    held_out: HeldOut | None = None
    sums: Sums | FitSums | None = None  # what partial_fit goes on from
    combination: Combination | None = None  # of several kernels, and what was found out about each
    sum: Several | None = None  # the sum of them, not fitted


def fit_model(
    pairs: Pairs, encoded: Encoded, spec: LearnSpec, sum_of_kernels: SumOfKernels | None = None
) -> Model:
    """From rows and targets to a model: the picture of ARCHITECTURE.md, one line per arrow."""
    task = make_task(pairs, encoded, spec)  # rows -> landmarks, folds
    if spec.near:
        require_room_for_stack(task, several=encoded.multilabel)
    chosen = choose_similarity(task, spec.similarity, sum_of_kernels)
    by_fold = (spec.tunes or spec.held_out) and not chosen.task.honest and not spec.loo
    kept = None
    if not spec.is_exact(chosen.task):
        kept = spec.loss.keeping(chosen.task, by_fold=by_fold, often=spec.held_out)
    task, features = make_features(chosen.task, spec, by_fold=by_fold, keep=kept)
    loss = spec.loss.prepared(features, encoded, intercept=spec.intercept)
    tuned = tune_penalties(task, features, loss, spec)  # folds -> penalties
    loss = loss.settled(tuned.values)
    solution = loss.solve(task, features, tuned.values, kept)
    model = make_model(task, features, spec, encoded, tuned, solution, chosen)
    if spec.in_parts:
        model = replace(model, sums=fit_sums(task, features, tuned.values))
    if not spec.held_out:
        return model
    left_out = loss.left_out(task, features, tuned.values, kept, solution)
    compared = chosen.compared or compared_on_landmarks(task, spec.similarity)
    return replace(model, held_out=held_out(task, left_out, compared, near=spec.near))


def make_task(pairs: Pairs, encoded: Encoded, spec: LearnSpec) -> Task:
    """Landmarks chosen and rows split."""
    rng, weighted = pairs.session.rng, encoded.weighted
    of_map = replace(spec.map, wants_pool=spec.wants_pool(pairs.kernel))
    if weighted is not None:
        m = min(of_map.n_landmarks, len(weighted))
        of_map = replace(of_map, eligible=weighted, n_landmarks=m)
    sample = select_landmarks(pairs, open_sample(pairs, of_map, rng), of_map, rng)
    pairs.probe(sample)
    folds, n_folds = draw_folds(spec.cv, pairs.rows, encoded, rng)
    task = Task(
        pairs, sample, of_map, spec.kind, rng, encoded.Y, encoded.weights, folds,
        n_folds, spec.intercept, labels=encoded.labels, groups=encoded.groups,
        equal=encoded.equal,
    )  # fmt: skip
    if task.exact:
        transforms = pairs.kernel.is_dissimilarity
        task = replace(task, rounds=rounds_of(spec.cv, folds, encoded, transforms=transforms))
    if spec.tunes and are_drawn(spec.cv) and (spec.cv is not None or not spec.is_exact(task)):
        warn_of_rare(encoded, n_folds)
    if task.honest or task.groups is not None:  # the mates of a landmark would know its target
        return task
    return task.with_landmarks_trained()


def require_room_for_stack(task: Task, *, several: bool) -> None:
    """Raise MemoryError if the scores of all parts, for every class, do not fit in the budget."""
    n, q = len(task.numbers), max(task.Y.shape[1], 2)
    task.pairs.require_memory(
        stack_bytes(1 + len(NEIGHBOURS), n, q, several=several),
        f"weighing the scores of {n} objects for {q} {'labels' if several else 'classes'}",
        "raise Resources(memory_budget=...), merge rare ones, or use KreinRidgeClassifier",
    )


def make_features(
    task: Task, spec: LearnSpec, *, by_fold: bool, keep: Any = None
) -> tuple[Task, Features]:
    """Features from sums over all rows; or from all pairs, if all objects are landmarks."""
    if spec.is_exact(task):
        return exact_features(task)
    return task.swept(by_fold=by_fold, keep=keep)


def tune_penalties(task: Task, features: Features, loss: Loss, spec: LearnSpec) -> Tuned:
    """The penalties that are given, or those of the smallest loss."""
    unknowns = spec.unknowns(features.unit)
    if not unknowns.free:
        return given(unknowns)
    return loss.tune(task, features, unknowns, loo=spec.loo)


def make_model(
    task: Task, features: Features, spec: LearnSpec, encoded: Encoded, tuned: Tuned,
    solution: Linear, chosen: Chosen,
) -> Model:  # fmt: skip
    """The solution in the units of the kernel, with only the landmarks that it needs."""
    sample, columns, feature_map = task.sample, features.columns, features.map
    needed = solution.landmarks
    if needed is not None:
        sample = sample.with_landmarks(sample.landmarks[needed]).without_other_columns()
        columns, feature_map = task.pairs.evaluator(sample), identity_map(len(needed))
        solution = replace(solution, coef=solution.coef[needed])
    return Model(
        pairs=task.pairs,
        sample=sample,
        columns=columns,
        map=feature_map.rescaled(features.unit),
        solved=solved(features.unit, feature_map, spec, encoded, tuned, solution),
        folds=folds_of(task, spec),
        n_chosen=task.spec.n_landmarks,
        chosen=chosen,
        signed=spec.kind.signed and needed is None,
        reason=task.spec.reason,
    )


def folds_of(task: Task, spec: LearnSpec) -> Any:
    """The folds by which penalties were judged: numbers of all rows, one column for each round."""
    rounds = task.rounds if spec.is_exact(task) else ()
    return np.column_stack(rounds) if len(rounds) > 1 else (*rounds, task.folds)[0]


def fit_sums(task: Task, features: Features, values: Array) -> FitSums:
    """The sums over all rows of a fit."""
    if features.basis is None:
        moments = total_moments(features.terms)
        gram = moments.G[np.triu_indices(len(moments.s))]
    else:
        gram, moments = exact_sums(task, features.basis)
    return FitSums(gram, *moments[1:5], float(moments.n), features.unit, values)


def solved(
    unit: float, feature_map: FeatureMap, spec: LearnSpec, encoded: Encoded, tuned: Tuned,
    solution: Linear,
) -> Solved:  # fmt: skip
    """Coefficients and penalties in the units of the kernel itself."""
    root, of_targets = spec.kind.root(unit), encoded.unit
    dual = feature_map.W @ solution.coef / unit * of_targets
    with np.errstate(over="ignore"):  # of squared similarities they may be out of range
        penalties = tuned.values[:2] * root * root
    return Solved(
        coef=solution.coef / root * of_targets if solution.landmarks is None else dual,
        dual=dual,
        intercept=solution.intercept * of_targets + encoded.shift,
        tuned=tuned,
        penalties=penalties,
        root=root,
        encoded=encoded,
        solution=solution,
    )
