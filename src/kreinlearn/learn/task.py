"""What is to be learned, from which rows, and how the rows are split to tune it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.data.tiles import take
from kreinlearn.kernels.base import Array, symmetrised
from kreinlearn.kernels.dissimilarity import make_transform, refit
from kreinlearn.learn.folds import TRAINING, as_groups, with_fold
from kreinlearn.learn.search import HeldOutLoss, MeanLoss, Tuned, Unknowns
from kreinlearn.nystrom.core import FeatureKind, FeatureMap, one_shot, sweep
from kreinlearn.nystrom.landmarks import MapSpec
from kreinlearn.pairs.evaluate import LandmarkColumns, places_of, scaled
from kreinlearn.pairs.pairs import Pairs, Sample
from kreinlearn.pairs.rows import Rows
from kreinlearn.solvers.exact import Eigenbasis
from kreinlearn.solvers.least_squares import Fold, LeaveOneOut, sign_groups
from kreinlearn.sums.moments import (
    Centred,
    FeatureMoments,
    Gram,
    Moments,
    Targets,
    total_gram,
    total_moments,
)
from kreinlearn.sums.parallel import map_in_threads

if TYPE_CHECKING:
    from kreinlearn.learn.comparison import Judged

POWER_STEPS = 30  # of the iteration for the largest eigenvalue
FEW_ROWS = 4  # rows per landmark up to which features are formed, and not only summed
TUNED_OUTPUTS = 4  # outputs, of many, whose hinge loss is looked at
ABSENT = -2  # the fold of rows that are left out of everything


@dataclass(frozen=True)
class Features:
    """All that solvers see of the rows: sums over groups of rows, and the map of features."""

    groups: list[Moments]  # of C / unit
    columns: LandmarkColumns
    unit: float
    map: FeatureMap  # of C / unit
    exact_terms: Sequence[FeatureMoments] | None = None  # from the features, where they are formed
    basis: Eigenbasis | None = None  # if all objects are landmarks; there are no sums then

    @property
    def terms(self) -> Sequence[FeatureMoments]:
        """Sums over the features of each group."""
        if self.exact_terms is not None:
            return self.exact_terms
        return [group.terms(self.map.W) for group in self.groups]

    @property
    def gram(self) -> Gram:
        """The Gram matrix of C / unit, summed over all rows."""
        return total_gram(self.groups)

    def whole(self, *, intercept: bool) -> Centred:
        """The sums over all rows, about the means if there is an intercept."""
        return total_moments(self.terms).centred(intercept=intercept)

    def scale(self, *, intercept: bool) -> float:
        """The largest eigenvalue of the Gram matrix of the features over the weight of all rows."""
        if self.basis is not None:
            return self.basis.scale
        whole = self.whole(intercept=intercept)
        return gram_scale(whole.G, whole.n)


@dataclass(frozen=True)
class Linear:
    """A model that is linear in the features of C / unit, and how it was found."""

    coef: Array  # (r, q)
    intercept: Array  # (q,)
    n_iter: int = 0  # steps of an iterative solver, the most over the outputs
    converged: bool = True
    singular: bool = False  # the solution of smallest norm, as there are many
    attributes: Mapping[str, Any] = field(default_factory=dict)  # what the loss adds to the model
    landmarks: Array | None = None  # places of the landmarks that have a coefficient; None: all


def gram_scale(G: Array, n: float) -> float:
    """The largest eigenvalue of a Gram matrix over n, by a power iteration; 1 if it is zero."""
    v = np.sqrt(np.maximum(np.diagonal(G) / n, 0.0))
    size = float(np.linalg.norm(v))
    for _ in range(POWER_STEPS):
        if size == 0:
            return 1.0
        v = G @ (v / size) / n
        size = float(np.linalg.norm(v))
    return size


# The two parts of a split


def fold_of(
    train: FeatureMoments, valid: FeatureMoments, S: Array,
    *, intercept: bool, groups: Array | None = None,
) -> Fold:  # fmt: skip
    """The fold of two parts, with features and targets centred by the means of the training part.

    ``groups`` (r,) are those of the penalties; by default there is one for each sign of S.
    """
    part = train.centred(intercept=intercept)
    mean, ybar = part.mean, part.ybar
    cross = np.outer(valid.s, mean)
    G_valid = valid.G - cross - cross.T + valid.n * np.outer(mean, mean)
    B_valid = valid.B - np.outer(valid.s, ybar) - np.outer(mean, valid.t - valid.n * ybar)
    yy_valid = valid.yy - 2 * ybar * valid.t + valid.n * ybar**2
    groups = sign_groups(S) if groups is None else groups
    return Fold(part.G, part.B, part.n, S, G_valid, B_valid, yy_valid, valid.n, groups)


def downdated(
    parts: Sequence[FeatureMoments], S: Array, *, intercept: bool, groups: Array | None = None,
    workers: int = 1,
) -> list[Fold]:  # fmt: skip
    """One fold for each part but the last, which is in every training part.

    The moments of a training part are those of all rows minus those of the validation part.
    """
    total = total_moments(parts)

    def without(part: FeatureMoments) -> Fold:
        return fold_of(total.minus(part), part, S, intercept=intercept, groups=groups)

    tested = [part for part in parts[:-1] if 0 < part.n < total.n]
    return map_in_threads(without, tested, workers)


@dataclass(frozen=True)
class FoldRows:
    """Features of the rows of one split, by a map that was made without the validation rows."""

    Phi: Array  # (n, r)
    S: Array  # (r,)
    train: Array  # places of rows
    valid: Array
    columns: tuple[Array, Array] | None = None  # C (n, m) and W with Phi = C W, where wanted
    groups: Array = field(default_factory=lambda: np.empty(0, int))  # (r,); by default sign_groups
    rows: Array | None = None  # (n,) places in the sample; None: all rows of the sample

    def __post_init__(self) -> None:
        if not len(self.groups):
            object.__setattr__(self, "groups", sign_groups(self.S))

    def terms(self, Y: Array, w: Array | None, *, intercept: bool) -> Fold:
        """The moments of this split."""
        shift = intercept and len(self.train)  # by a mean: large features would lose digits
        Phi = self.Phi - self.Phi[self.train].mean(axis=0) if shift else self.Phi
        train, valid = (_moments_at(Phi, Y, w, part) for part in (self.train, self.valid))
        return fold_of(train, valid, self.S, intercept=intercept, groups=self.groups)


def terms_by_one_map(
    splits: Sequence[FoldRows], Y: Array, w: Array | None, *, intercept: bool
) -> list[Fold]:
    """The moments of splits that share their features: each row is summed only once."""
    Phi, first = splits[0].Phi, splits[0]
    parts = [split.valid for split in splits]
    parts.append(np.setdiff1d(first.train, np.concatenate(parts)))  # in every training part
    if intercept:
        Phi = Phi - Phi[np.concatenate(parts)].mean(axis=0)
    moments = [_moments_at(Phi, Y, w, part) for part in parts]
    return downdated(moments, first.S, intercept=intercept, groups=first.groups)


def _moments_at(Phi: Array, Y: Array, w: Array | None, places: Array) -> FeatureMoments:
    return FeatureMoments.of_rows(Phi[places], Y[places], None if w is None else w[places])


# The problem


@dataclass(frozen=True)
class Task:
    """One learning problem: rows with kernel values, targets, weights and folds."""

    pairs: Pairs
    sample: Sample
    spec: MapSpec
    kind: FeatureKind
    rng: np.random.Generator
    Y: Any  # (n, q) targets; they may be elsewhere, as the rows may
    weights: Any  # (n,), or None if all are 1
    folds: Any  # (n,) fold numbers
    n_folds: int
    intercept: bool
    similarity: str = "squared"  # made of a dissimilarity
    tuned: Tuned | None = None  # least-squares penalties, if the choice of a similarity found them
    rounds: tuple[Any, ...] = ()  # (n,) folds, where all are landmarks; none: one object at a time
    labels: Array | None = None  # (n,) numbers of classes, if rows are here
    groups: Array | None = None  # (n,) numbers of groups that are left out together
    equal: Array | None = None  # (n,) numbers of distinct objects, if some are equal
    basis: Eigenbasis | None = None  # of all objects, if the choice of a similarity decomposed them
    tuning: HeldOutLoss | None = None  # the loss of all objects by which it was tuned then

    @cached_property
    def honest(self) -> bool:
        """Whether each fold makes a map of its own, because landmarks are most of the rows."""
        return 2 * int(np.sum(self.sample.landmarks >= 0)) > self.n_weighted

    @cached_property
    def exact(self) -> bool:
        """Whether all objects are landmarks, and the features are those of all of them."""
        spec, sample = self.spec, self.sample
        every = len(sample.landmarks) == len(sample.rows) == self.n_weighted
        here = self.rows.here and bool(sample.rows[0] >= 0)
        return every and here and spec.core == "plain" and spec.rank is None

    @property
    def n_weighted(self) -> int:
        """How many rows have a positive weight."""
        return self.n if self.spec.eligible is None else len(self.spec.eligible)

    @property
    def rows(self) -> Rows:
        return self.pairs.rows

    @property
    def n(self) -> int:
        """The number of all rows."""
        return self.pairs.n

    @property
    def numbers(self) -> Array:
        """Row numbers of the sample that belong to X."""
        return np.asarray(self.sample.rows[self.sample.inside])

    def with_landmarks_trained(self) -> Task:
        """Landmark rows are in every training part: a row is no test of a map that it made."""
        landmarks = self.sample.landmarks[self.sample.landmarks >= 0]
        return replace(self, folds=with_fold(self.folds, landmarks, TRAINING))

    def targets(self, *, by_fold: bool) -> Targets:
        """Targets and weights of all rows.

        With ``by_fold`` rows are grouped by fold, and a last group is in every training part.
        """
        if not by_fold:
            return Targets(self.Y, self.weights)
        groups = as_groups(self.folds, self.n_folds)
        return Targets(self.Y, self.weights, groups, self.n_folds + 1)

    def sampled_targets(self, splits: Sequence[FoldRows] = ()) -> tuple[Array, Array]:
        """Targets and weights of the rows of the sample, or of those that splits are made of."""
        return weighted(*self._targets_of(splits))

    def _targets_of(self, splits: Sequence[FoldRows]) -> tuple[Array, Array | None]:
        rows = splits[0].rows if splits else None
        numbers = self.numbers if rows is None else self.numbers[rows]
        return Targets(self.Y, self.weights).of(numbers)

    # Splits of the sample

    def splits(
        self, feature_map: FeatureMap | None = None, *, columns: bool = False,
        most: int | None = None, rng: np.random.Generator | None = None,
    ) -> list[FoldRows]:  # fmt: skip
        """Features of the sampled rows for every fold, by a map its validation had no part in.

        With ``columns`` the kernel values and the map are kept beside the features. With ``most``
        the splits are of at most so many rows, drawn at random.
        """
        folds = self.folds[self.numbers]
        drawn = np.ones(len(folds), dtype=bool)
        if most is not None and most < len(folds):
            drawn[:] = False
            drawn[(rng or self.rng).choice(len(folds), most, replace=False)] = True
        counts = [np.sum(drawn & (folds == k)) for k in range(self.n_folds)]
        present = [k for k, count in enumerate(counts) if 0 < count < drawn.sum()]
        if self.honest:
            self._require_room(len(present))
            return [self._rebuilt(k, columns, drawn) for k in present]
        sample, unit = self.sample, self.sample.unit
        if feature_map is None:
            C = take(sample.scaled, sample.inside)
            W, S = self.cut(C, *self.kind.map_of(sample.K_ZZ / unit, self.spec))
        else:
            W, S = feature_map.W, feature_map.S
        rows = np.flatnonzero(drawn)
        C, folds = take(sample.scaled, sample.inside[rows]), folds[rows]
        Phi, kept = C @ W, (C, W) if columns else None
        return [
            FoldRows(
                Phi, S, np.flatnonzero(folds != k), np.flatnonzero(folds == k), kept, rows=rows
            )
            for k in present
        ]  # fmt: skip

    def thinned(self, most: int, rng: np.random.Generator) -> Task:
        """The same task of fewer rows, where folds make maps of all of them."""
        n = len(self.numbers)
        if not self.honest or n <= most:
            return self
        left_out = rng.choice(self.numbers, n - most, replace=False)
        return replace(self, folds=with_fold(self.folds, left_out, ABSENT))

    def _require_room(self, k: int) -> None:
        n, m = len(self.numbers), len(self.sample.landmarks)
        self.pairs.require_memory(
            8 * k * m * (n + 2 * m),
            f"tuning on {k} folds, each with a map of {m} of the {n} objects,",
            "use fewer landmarks or folds, raise Resources(memory_budget=...), or give penalties",
        )

    def _trained(self, rows: Array, k: int) -> Array:
        """Places of the rows that are in the training part of a fold; those outside X are."""
        folds = self.folds[rows]
        return np.flatnonzero((rows < 0) | ((folds != k) & (folds != ABSENT)))

    def _rebuilt(self, k: int, columns: bool, drawn: Array) -> FoldRows:
        """A fold with a map of its own, made of all its training rows, and those that are drawn."""
        sample, unit = self.sample, self.sample.unit
        C, K_ZZ = self._similarities(k)
        C = scaled(C[sample.inside], unit)
        numbers = self.numbers
        train, valid = self._trained(numbers, k), np.flatnonzero(self.folds[numbers] == k)
        landmarks = sample.landmarks[self._trained(sample.landmarks, k)]
        root = self._root(numbers[train])
        W, S = self.cut(root * C[train], *self._map_of(K_ZZ / unit, landmarks))
        train, valid = train[drawn[train]], valid[drawn[valid]]
        return FoldRows(C @ W, S, train, valid, (C, W) if columns else None)

    def _root(self, numbers: Array) -> Array | float:  # (k, 1)
        """Square roots of the weights of rows."""
        return 1.0 if self.weights is None else np.sqrt(self.weights[numbers])[:, None]

    def _map_of(self, K_ZZ: Array, landmarks: Array) -> tuple[Array, Array]:
        """W and S of landmarks; if these are all objects, their weights are numbers of copies."""
        root = self._root(landmarks) if self.exact else 1.0
        W, S = self.kind.map_of(root * K_ZZ * np.transpose(root), self.spec)
        return root * W, S

    def cut(self, C: Array, W: Array, S: Array) -> tuple[Array, Array]:
        """The map cut to the rank asked for, as that of all rows will be."""
        if self.spec.rank is None or self.spec.rank >= len(S):
            return W, S
        cut = FeatureMap(W, S, *one_shot(C.T @ C, W, S)).cut(self.spec.rank)
        return cut.W, cut.S

    def _similarities(self, k: int) -> tuple[Array, Array]:
        """C and K_ZZ of a fold's own landmarks; a dissimilarity is transformed by them alone."""
        sample = self.sample
        mine = self._trained(sample.landmarks, k)
        if sample.transform is None:
            C, at = sample.C[:, mine], sample.positions(sample.landmarks[mine])
            return C, symmetrised(C[at])
        reference = self._trained(sample.columns[: sample.transform.n_reference], k)
        places = places_of(sample.landmarks[mine], sample.columns)
        at = sample.positions(sample.columns)
        return refit(sample.raw, places, reference, at, partial(make_transform, self.similarity))

    def using(self, similarity: str) -> Task:
        """The same task with another similarity of the same distances."""
        return replace(self, similarity=similarity, sample=self.sample.using(similarity))

    def judged(self, judged: Judged) -> Task:
        """The same task, of which the eigenbasis and least-squares penalties are known."""
        return replace(self, basis=judged.basis, tuning=judged.loss, tuned=judged.tuned)

    def referring_to_all(self) -> Task:
        """The same task with dissimilarities transformed by all columns evaluated so far."""
        return replace(self, sample=self.sample.referring_to_all())

    # All rows

    def swept(self, *, by_fold: bool, keep: Any = None) -> tuple[Task, Features]:
        """One pass over all rows, then the feature map; the sample may have gained rows.

        ``keep.target`` takes the kernel values of all rows, if they are to be kept.
        """
        targets, n = self.targets(by_fold=by_fold), self.n
        target = None if keep is None else keep.target
        swept = sweep(self.pairs, self.sample, self.spec, self.rng, targets, target)
        task = replace(self, sample=swept.sample)
        feature_map = self.kind.core(self.pairs, swept, self.spec, self.rng)
        if self.exact and self.weights is not None:
            W, S = self._map_of(swept.sample.K_ZZ / swept.unit, swept.sample.landmarks)
            feature_map = replace(feature_map, W=W, S=S)
        features = Features(swept.groups, swept.columns, swept.unit, feature_map)
        if len(task.numbers) == n <= FEW_ROWS * len(self.sample.landmarks):
            terms = task._terms_of_rows(targets, feature_map)
        else:
            of_group = partial(Moments.terms, W=feature_map.W)
            terms = map_in_threads(of_group, swept.groups, self.pairs.workers)
        return task, replace(features, exact_terms=terms)

    def _terms_of_rows(self, targets: Targets, feature_map: FeatureMap) -> list[FeatureMoments]:
        """From the features themselves: W'(C'C)W would square the condition of an exact map."""
        Phi = self.sampled_features(feature_map)
        every, grouped = np.arange(len(Phi)), targets.groups
        group = np.zeros_like(every) if grouped is None else grouped[every]
        return [
            FeatureMoments.of_rows(Phi[group == g], *targets.of(np.flatnonzero(group == g)))
            for g in range(targets.n_groups)
        ]

    def sampled_features(self, feature_map: FeatureMap) -> Array:
        """Phi of the rows of the sample that belong to X."""
        return self.sample.scaled[self.sample.inside] @ feature_map.W

    def tuned_before(self, unknowns: Unknowns) -> Tuned | None:
        """Least-squares penalties, if the choice of the similarity has found them already."""
        return self.tuned if unknowns.fixed == (None, None) else None

    def folds_of(self, features: Features) -> list[Fold]:
        """The terms of all folds: by maps of their own, or by down-dating the sums.

        ValueError says that there is no fold.
        """
        if self.honest:
            folds = self.terms_of(self.splits())
        else:
            S, workers = features.map.S, self.pairs.workers
            folds = downdated(features.terms, S, intercept=self.intercept, workers=workers)
        if not folds:
            raise self.nothing_left_out()
        return folds

    def nothing_left_out(self) -> ValueError:
        """The error if penalties are to be tuned, and no object can be left out."""
        return ValueError(
            f"n_samples={self.n_weighted} of positive weight leaves no fold to tune the "
            "penalties on; give lambda_plus and lambda_minus, or another cv"
        )

    def terms_of(self, splits: Sequence[FoldRows]) -> list[Fold]:
        Y, w = self._targets_of(splits)
        if splits and not self.honest:
            return terms_by_one_map(splits, Y, w, intercept=self.intercept)
        return [split.terms(Y, w, intercept=self.intercept) for split in splits]

    def leave_one_out(self, features: Features) -> MeanLoss:
        """Leave-one-out of the sampled rows, by one map; a landmark row is not tested."""
        Phi, groups = self.sampled_features(features.map), sign_groups(features.map.S)
        Y, w = self.sampled_targets()
        tested = self.folds[self.numbers] != TRAINING
        return MeanLoss([LeaveOneOut(Phi, Y, w, tested, groups, intercept=self.intercept)])


def weighted(Y: Array, w: Array | None) -> tuple[Array, Array]:
    """Targets and their weights, which are ones where none are given."""
    return Y, np.ones(len(Y)) if w is None else w


def some_outputs(Y: Array) -> Array:
    """A few of many outputs, those that vary most: they make up most of the loss."""
    return np.sort(np.argsort(-Y.var(axis=0), kind="stable")[:TUNED_OUTPUTS])
