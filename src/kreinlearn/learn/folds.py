"""Splits of the rows, and the least-squares terms of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kreinlearn.data.tiles import TILE, among
from kreinlearn.solvers.result import Fold
from kreinlearn.sums.moments import Terms, total_terms

Array = NDArray[Any]

MAX_FOLDS = 5
TRAINING = -1  # the fold of rows that are in every training part


def fold_count(n: int, counts: Array | None) -> int:
    """min(5, smallest class), or min(5, n); never below 2."""
    smallest = n if counts is None else int(counts.min())
    return max(2, min(MAX_FOLDS, smallest))


def random_folds(n: int, k: int, rng: np.random.Generator, labels: Array | None = None) -> Array:
    """A fold number for each row: equal parts, of each class if there are labels."""
    folds = np.empty(n, dtype=np.intp)
    order = rng.permutation(n)
    if labels is not None:  # classes one after the other, each in random order
        order = order[np.argsort(labels[order], kind="stable")]
    folds[order] = np.arange(n) % k
    return folds


@dataclass(frozen=True)
class TileFolds:
    """Folds of many rows: drawn a tile at a time, so that any rows' are known without the rest.

    ``folds[numbers]`` gives them, ``np.asarray(folds)`` those of all rows.
    """

    n: int
    k: int
    seed: int
    apart: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # sorted row numbers
    fold: int = TRAINING  # of the rows apart

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, numbers: Array) -> Array:
        numbers = np.asarray(numbers)
        found = np.empty(len(numbers), dtype=np.intp)
        for tile in np.unique(numbers // TILE):
            here = numbers // TILE == tile
            found[here] = self._of_tile(int(tile))[numbers[here] - tile * TILE]
        found[among(numbers, self.apart)] = self.fold
        return found

    def _of_tile(self, tile: int) -> Array:
        size = min(TILE, self.n - tile * TILE)
        return np.random.default_rng([self.seed, tile]).permutation(np.arange(size) % self.k)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[np.arange(self.n)], dtype)


def with_fold(folds: Any, rows: Array, fold: int) -> Any:
    """The same folds but for some rows, which are all in ``fold``."""
    if isinstance(folds, TileFolds):
        return replace(folds, apart=np.union1d(folds.apart, rows), fold=fold)
    folds = folds.copy()
    folds[rows] = fold
    return folds


def as_groups(folds: Any, k: int) -> Any:
    """Groups to be summed in: those of the folds, and a last one that is in every training part."""
    if isinstance(folds, TileFolds):
        return replace(folds, fold=k)
    return np.where(folds == TRAINING, k, folds)


def given_folds(n: int, splits: Sequence[tuple[Array, Array]]) -> Array:
    """Fold numbers from (train, test) pairs; rows that are never tested are always trained on."""
    folds = np.full(n, TRAINING, dtype=np.intp)
    for number, (train, test) in enumerate(splits):
        train, test = _as_numbers(train, n), _as_numbers(test, n)
        parts = len(train) + len(test) == len(np.union1d(train, test)) == n
        if (folds[test] != TRAINING).any() or not parts:
            raise ValueError(
                "cv must split the rows into parts, each tested once and trained on otherwise; "
                "pass an int, a KFold-like splitter or such (train, test) pairs"
            )
        folds[test] = number
    return folds


def _as_numbers(rows: Any, n: int) -> Array:
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


def fold_of(train: Terms, valid: Terms, S: Array, *, intercept: bool) -> Fold:
    """The terms of a split, features and targets less their training means."""
    part = train.centred(intercept=intercept)
    cross = np.outer(valid.s, part.mean)
    return Fold(
        part.G,
        part.B,
        part.n,
        S,
        valid.G - cross - cross.T + valid.n * np.outer(part.mean, part.mean),
        valid.B - np.outer(valid.s, part.ybar) - np.outer(part.mean, valid.t - valid.n * part.ybar),
        valid.yy - 2 * part.ybar * valid.t + valid.n * part.ybar**2,
        valid.n,
    )


def downdated(groups: Sequence[Terms], S: Array, *, intercept: bool) -> list[Fold]:
    """Folds from the terms of each part; the last group is in every training part."""
    total = total_terms(groups)
    return [
        fold_of(total.minus(part), part, S, intercept=intercept)
        for part in groups[:-1]
        if 0 < part.n < total.n
    ]


@dataclass(frozen=True)
class FoldRows:
    """Features of the rows of one split, by a map that the validation rows had no part in."""

    Phi: Array  # (n, r)
    S: Array  # (r,)
    train: Array  # places of rows
    valid: Array
    columns: tuple[Array, Array] | None = None  # C (n, m) and W with Phi = C W, where wanted

    def terms(self, Y: Array, w: Array | None, *, intercept: bool) -> Fold:
        def of(rows: Array) -> Terms:
            return Terms.of_rows(Phi[rows], Y[rows], None if w is None else w[rows])

        Phi = self.Phi  # less a mean: what is left over of it is centred by its terms
        if intercept and len(self.train):
            Phi = Phi - Phi[self.train].mean(axis=0)
        return fold_of(of(self.train), of(self.valid), self.S, intercept=intercept)


def terms_by_one_map(
    splits: Sequence[FoldRows], Y: Array, w: Array | None, *, intercept: bool
) -> list[Fold]:
    """The terms of splits that share their features: those of every row are summed once."""
    Phi, S = splits[0].Phi, splits[0].S
    parts = [split.valid for split in splits]
    parts.append(np.setdiff1d(splits[0].train, np.concatenate(parts)))  # in every training part
    if intercept:
        Phi = Phi - Phi[np.concatenate(parts)].mean(axis=0)
    groups = [Terms.of_rows(Phi[rows], Y[rows], None if w is None else w[rows]) for rows in parts]
    return downdated(groups, S, intercept=intercept)
