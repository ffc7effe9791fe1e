"""How rows are split into training and validation parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
from sklearn.model_selection import check_cv

from kreinlearn._warnings import RareClasses, warn
from kreinlearn.data.tiles import TILE, among
from kreinlearn.solvers import Array

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded
    from kreinlearn.pairs.rows import Rows

MAX_FOLDS = 5
MANY_ROWS = 8192  # beyond which folds are drawn tile by tile, and classes are one against the rest
NAMED_CLASSES = 5  # that a warning names
TRAINING = -1  # the fold of rows that are in every training part


def fold_count(n: int) -> int:
    """The default number of folds: at most 5, at most one per row, and at least 2."""
    return max(2, min(MAX_FOLDS, n))


def rare_in_words(classes: Array, counts: Array, k: int) -> str:
    """The classes with fewer objects than there are folds, in a sentence; nothing without any."""
    rare = np.flatnonzero((counts > 0) & (counts < k))
    rare = rare[np.argsort(counts[rare], kind="stable")]
    if not len(rare):
        return ""
    named = ", ".join(f"{classes[c]} ({counts[c]})" for c in rare[:NAMED_CLASSES])
    what = "one class has" if len(rare) == 1 else f"{len(rare)} classes have"
    more = f" and {len(rare) - NAMED_CLASSES} more" * (len(rare) > NAMED_CLASSES)
    return (
        f"{what} fewer objects than there are folds, {k}: {named}{more}; their objects are spread "
        "over the folds, and what is found about these classes is uncertain"
    )


def warn_of_rare(encoded: Encoded, k: int) -> None:
    """Warn once, by their names, of classes with fewer objects than there are folds."""
    if encoded.classes is not None and encoded.counts is not None:
        said = rare_in_words(encoded.classes, encoded.counts, k)
        if said:
            warn(said, RareClasses)


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


def are_drawn(cv: Any) -> TypeGuard[int | None]:
    """Whether the parameter ``cv`` asks for folds that are drawn at random."""
    return cv is None or isinstance(cv, Integral)


def draw_folds(cv: Any, rows: Rows, encoded: Encoded, rng: np.random.Generator) -> tuple[Any, int]:
    """One fold number for each row, and how many folds there are.

    ``cv`` is a number of folds, a splitter, "loo", or None for the default.
    """
    n = rows.n
    if are_drawn(cv):
        k = min(fold_count(n) if cv is None else int(cv), n)
        if n <= MANY_ROWS:
            return random_folds(n, k, rng, encoded.labels), k
        folds = rows.fold_numbers(TileFolds(n, k, int(rng.integers(2**63))))
        return _with_rare_spread(folds, k, encoded, rng), k
    if isinstance(cv, str):  # "loo"
        return np.arange(n), n
    splitter = check_cv(cv, encoded.y, classifier=encoded.classes is not None)
    splits = list(splitter.split(rows.X, encoded.y))
    return given_folds(n, splits), len(splits)


def _with_rare_spread(folds: Any, k: int, encoded: Encoded, rng: np.random.Generator) -> Any:
    """The same folds, in which no fold has all objects of a small class, where the rows are here.

    Classes of more than 2 k objects are spread by chance.
    """
    if encoded.counts is None or not isinstance(encoded.labels, np.ndarray):
        return folds
    rare = np.flatnonzero(encoded.counts[encoded.labels] <= 2 * k)
    folds[rare] = random_folds(len(rare), k, rng, encoded.labels[rare])
    return folds
