"""How rows are split into training and validation parts, and the moments of each split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.model_selection import check_cv

from kreinlearn.data.tiles import TILE, among
from kreinlearn.solvers import Array
from kreinlearn.solvers.least_squares import Fold, sign_groups
from kreinlearn.sums.moments import FeatureMoments, total_moments

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded
    from kreinlearn.pairs.rows import Rows

MAX_FOLDS = 5
MANY_ROWS = 8192  # beyond which folds are drawn tile by tile, and classes are one against the rest
TRAINING = -1  # the fold of rows that are in every training part


def fold_count(n: int, counts: Array | None) -> int:
    """The default number of folds: at most 5, at most the smallest class, and at least 2."""
    smallest = n if counts is None else int(counts.min())
    return max(2, min(MAX_FOLDS, smallest))


def random_folds(n: int, k: int, rng: np.random.Generator, labels: Array | None = None) -> Array:
    """One fold number per row: equal parts of all rows, or of each class if there are labels."""
    folds = np.empty(n, dtype=np.intp)
    order = rng.permutation(n)
    if labels is not None:  # one class after the other, each in random order
        order = order[np.argsort(labels[order], kind="stable")]
    folds[order] = np.arange(n) % k
    return folds


@dataclass(frozen=True)
class TileFolds:
    """Fold numbers of many rows, drawn one tile at a time and only where they are asked for.

    ``folds[numbers]`` gives the folds of some rows, and ``np.asarray(folds)`` those of all rows.
    """

    n: int
    k: int
    seed: int
    apart: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # sorted row numbers
    fold: int = TRAINING  # the fold of the rows ``apart``

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, numbers: Array) -> Array:
        numbers = np.asanyarray(numbers)
        folds = np.empty(len(numbers), dtype=np.intp)
        for tile, places in places_by_tile(numbers):
            folds[places] = self._of_tile(tile)[numbers[places] - tile * TILE]
        folds[among(numbers, self.apart)] = self.fold
        return folds

    def _of_tile(self, tile: int) -> Array:
        size = min(TILE, self.n - tile * TILE)
        return np.random.default_rng([self.seed, tile]).permutation(np.arange(size) % self.k)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[np.arange(self.n)], dtype)


def places_by_tile(numbers: Array) -> list[tuple[int, Array]]:
    """Each tile among row numbers, and the places of its rows: one sort, and no pass per tile."""
    tiles = numbers // TILE
    order = np.argsort(tiles, kind="stable")
    present, starts = np.unique(tiles[order], return_index=True)
    return list(zip(present.tolist(), np.split(order, starts[1:]), strict=False))


Folds = TypeVar("Folds", Array, TileFolds)  # fold numbers of all rows


def with_fold(folds: Folds, rows: Array, fold: int) -> Folds:
    """The same folds, except that some rows are all in ``fold``."""
    if isinstance(folds, TileFolds):
        return replace(folds, apart=np.union1d(folds.apart, rows), fold=fold)
    folds = folds.copy()
    folds[rows] = fold
    return folds


def as_groups(folds: Folds, k: int) -> Folds:
    """The group in which each row is summed: its fold, or k if it is in every training part."""
    if isinstance(folds, TileFolds):
        return replace(folds, fold=k)
    return np.where(folds == TRAINING, k, folds)


def given_folds(n: int, splits: Sequence[tuple[Array, Array]]) -> Array:
    """Fold numbers from (train, test) pairs; rows that are never tested get ``TRAINING``."""
    folds = np.full(n, TRAINING, dtype=np.intp)
    for number, (train, test) in enumerate(splits):
        train, test = _as_numbers(train), _as_numbers(test)
        parts = len(train) + len(test) == len(np.union1d(train, test)) == n
        if (folds[test] != TRAINING).any() or not parts:
            raise ValueError(
                "cv must split the rows into parts, each tested once and used for training in all "
                "other splits; pass an int, a splitter such as KFold, or such (train, test) pairs"
            )
        folds[test] = number
    return folds


def _as_numbers(rows: Array) -> Array:
    """Row numbers from numbers or from a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


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
    parts: Sequence[FeatureMoments], S: Array, *, intercept: bool, groups: Array | None = None
) -> list[Fold]:
    """One fold for each part but the last, which is in every training part.

    The moments of a training part are those of all rows minus those of the validation part.
    """
    total = total_moments(parts)
    return [
        fold_of(total.minus(part), part, S, intercept=intercept, groups=groups)
        for part in parts[:-1]
        if 0 < part.n < total.n
    ]


@dataclass(frozen=True)
class FoldRows:
    """Features of the rows of one split, by a map that was made without the validation rows."""

    Phi: Array  # (n, r)
    S: Array  # (r,)
    train: Array  # places of rows
    valid: Array
    columns: tuple[Array, Array] | None = None  # C (n, m) and W with Phi = C W, where wanted
    groups: Array = field(default_factory=lambda: np.empty(0, int))  # (r,); by default sign_groups

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


def are_drawn(cv: Any) -> bool:
    """Whether the parameter ``cv`` asks for folds that are drawn at random."""
    return cv is None or isinstance(cv, Integral)


def draw_folds(cv: Any, rows: Rows, encoded: Encoded, rng: np.random.Generator) -> tuple[Any, int]:
    """One fold number for each row, and how many folds there are.

    ``cv`` is a number of folds, a splitter, "loo", or None for the default.
    """
    n = rows.n
    if are_drawn(cv):
        k = min(fold_count(n, encoded.counts) if cv is None else int(cv), n)
        if n <= MANY_ROWS:
            return random_folds(n, k, rng, encoded.labels), k
        return rows.fold_numbers(TileFolds(n, k, int(rng.integers(2**63)))), k
    if isinstance(cv, str):  # "loo"
        return np.arange(n), n
    splitter = check_cv(cv, encoded.y, classifier=encoded.classes is not None)
    splits = list(splitter.split(rows.X, encoded.y))
    return given_folds(n, splits), len(splits)
