"""How rows are split into training and validation parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from sklearn.model_selection import check_cv

from kreinlearn._warnings import RareClasses, warn
from kreinlearn.data.tiles import among
from kreinlearn.nystrom.core import row_keys
from kreinlearn.solvers import Array

if TYPE_CHECKING:
    from kreinlearn.learn.coding import Encoded
    from kreinlearn.pairs.rows import Rows

MAX_FOLDS = 5
FEW = 300  # objects up to which folds are drawn twice
SOME = 700  # up to which folds are drawn; of more, if all are landmarks, one is left out at a time
BY_FOLDS = 150  # up to which folds judge every similarity; of more, the closed form screens them
ROUNDS = 2
EACH = 1.2  # times as many models may be fitted to leave out each object by itself
REFITS = 150  # objects up to which "loo" makes a similarity anew without each of them
MANY_ROWS = 8192  # beyond which folds are not drawn for each row
NAMED_CLASSES = 5  # that a warning names
TRAINING = -1  # the fold of rows that are in every training part


def fold_count(n: int, wanted: int | None = None, groups: Array | None = None) -> int:
    """How many folds are wanted, 5 by default; at most one per row or group, and at least 2."""
    most = n if groups is None else len(np.unique(groups))
    return max(2, min(MAX_FOLDS if wanted is None else wanted, most))


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


def random_folds(
    n: int, k: int, rng: np.random.Generator, labels: Array | None = None,
    groups: Array | None = None,
) -> Array:  # fmt: skip
    """One fold number per row: equal parts of all rows, or of each class if there are labels.

    Rows of one group are in one fold.
    """
    if groups is not None:
        return _folds_of_groups(groups, k, rng, labels)
    folds = np.empty(n, dtype=np.intp)
    order = rng.permutation(n)
    if labels is not None:  # one class after the other, each in random order
        order = order[np.argsort(labels[order], kind="stable")]
    folds[order] = np.arange(n) % k
    return folds


def _folds_of_groups(
    groups: Array, k: int, rng: np.random.Generator, labels: Array | None
) -> Array:
    """Large groups first, each into the fold that has least of its classes, and least of all."""
    numbers = np.unique(groups, return_inverse=True)[1]
    classes = (
        np.zeros_like(numbers) if labels is None else np.unique(labels, return_inverse=True)[1]
    )
    counts = np.zeros((numbers.max() + 1, classes.max() + 1))
    np.add.at(counts, (numbers, classes), 1)
    held, fold_of_group = np.zeros((k, counts.shape[1])), np.empty(len(counts), dtype=np.intp)
    order = rng.permutation(len(counts))
    for group in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        same = held @ counts[group]
        fold = np.lexsort((held.sum(axis=1), same))[0]
        held[fold] += counts[group]
        fold_of_group[group] = fold
    return np.asarray(fold_of_group[numbers])


def rounds_of_folds(
    n: int, labels: Array | None, groups: Array | None, count: int | None = None,
    k: int = MAX_FOLDS,
) -> list[Array]:  # fmt: skip
    """Fold numbers of n objects, drawn ``count`` times: by default twice if objects are few.

    Each object, or group, is a fold by itself if that takes about as many models or fewer. The
    folds are the same at every call, so that a fit to all objects does not depend on chance.
    """
    rng = np.random.default_rng(n)
    count = (ROUNDS if n <= FEW else 1) if count is None else count
    n_groups = n if groups is None else len(np.unique(groups))
    if n_groups <= EACH * count * k:
        return [np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]]
    return [random_folds(n, k, rng, labels, groups) for _ in range(count)]


@dataclass(frozen=True, eq=False)
class DrawnFolds(NDArrayOperatorsMixin):
    """Fold numbers of many rows, each of which is a function of the number of its row.

    Nothing is kept for a row, except for the few that are put into a fold. ``folds[numbers]`` gives
    the folds of some rows, and ``np.asarray(folds)`` those of all rows.
    """

    n: int
    k: int
    seed: int
    apart: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # sorted row numbers
    of_apart: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # and their folds

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, numbers: Array) -> Array:
        if not isinstance(numbers, np.ndarray) or numbers.dtype == bool:  # a slice, a mask, a list
            return np.asarray(np.asarray(self)[numbers])
        folds = part_of_key(row_keys(numbers, self.seed), self.k)
        if len(self.apart) and len(numbers):
            here = slice(*np.searchsorted(self.apart, (numbers.min(), numbers.max() + 1)))
            if here.start < here.stop:  # few tiles have any of them
                apart, of_apart = self.apart[here], self.of_apart[here]
                inside = among(numbers, apart)
                folds[inside] = of_apart[np.searchsorted(apart, numbers[inside])]
        return folds

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """Comparisons and arithmetic, as of an array."""
        arrays = [np.asarray(one) if isinstance(one, DrawnFolds) else one for one in given]
        return getattr(ufunc, method)(*arrays, **options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[np.arange(self.n)], dtype)

    def placed(self, rows: Array, folds: Array | int) -> DrawnFolds:
        """The same folds, except that these rows, which are distinct, are in the given ones."""
        apart = np.union1d(self.apart, rows)
        of_apart = np.empty(len(apart), dtype=np.intp)
        of_apart[np.searchsorted(apart, self.apart)] = self.of_apart
        of_apart[np.searchsorted(apart, rows)] = folds
        return replace(self, apart=apart, of_apart=of_apart)


def part_of_key(keys: Array, k: int) -> Array:  # (n,) uint64 -> (n,)
    """The part that each key falls into, if the range of all keys is cut into k equal parts."""
    half = np.uint64(32)  # bits: the others would make no difference that is worth the room
    return (((keys >> half) * np.uint64(k)) >> half).astype(np.intp)


Folds = TypeVar("Folds", Array, DrawnFolds)  # fold numbers of all rows


def with_fold(folds: Folds, rows: Array, fold: Array | int) -> Folds:
    """The same folds, except that some rows are all in ``fold``."""
    if isinstance(folds, DrawnFolds):
        return folds.placed(rows, fold)
    folds = folds.copy()
    folds[rows] = fold
    return folds


def as_groups(folds: Folds, k: int) -> Folds:
    """The group in which each row is summed: its fold, or k if it is in every training part."""
    if isinstance(folds, DrawnFolds):
        return replace(folds, of_apart=np.where(folds.of_apart == TRAINING, k, folds.of_apart))
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
        k = fold_count(n, cv, encoded.groups)
        if n <= MANY_ROWS or encoded.groups is not None:
            return random_folds(n, k, rng, encoded.labels, encoded.groups), k
        folds = DrawnFolds(n, k, int(rng.integers(2**63)))
        return _with_rare_spread(folds, k, rows, encoded, rng), k
    if isinstance(cv, str):  # "loo"
        each = np.arange(n) if encoded.groups is None else encoded.groups
        return each, int(each.max()) + 1
    splitter = check_cv(cv, encoded.y, classifier=encoded.classes is not None)
    groups = encoded.groups if encoded.equal is None else None  # copies are named by nobody
    splits = splits_of(splitter, rows.X, encoded.y, groups)
    given = given_folds(n, splits)
    if groups is not None:
        require_whole_groups(given, groups)
    return given, len(splits)


def splits_of(splitter: Any, X: Any, y: Any, groups: Array | None) -> list[tuple[Array, Array]]:
    """What a splitter makes of objects; it gets groups if there are any, and may ignore them."""
    if groups is None:
        return list(splitter.split(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it ignores them
        return list(splitter.split(X, y, groups))


def require_whole_groups(folds: Array, groups: Array) -> None:
    """Raise ValueError if the rows of a group are in more than one fold."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    cut = np.flatnonzero(folds != folds[first][group])
    if len(cut):
        raise ValueError(
            f"cv puts rows {first[group[cut[0]]]} and {cut[0]}, which are of one group, into two "
            "folds; pass a number of folds or a splitter for groups, such as GroupKFold(5)"
        )


def folds_judge(n: int, groups: Array | None) -> bool:
    """Whether folds judge n objects, all of which are landmarks, and not a closed form."""
    return n <= SOME or groups is not None


def closed_form_screens(n: int, groups: Array | None) -> bool:
    """Whether the closed form looks at similarities first, of which folds judge the best."""
    return n > BY_FOLDS and groups is None


def rounds_of(cv: Any, folds: Any, encoded: Encoded, *, transforms: bool) -> tuple[Array, ...]:
    """The folds that judge a fit with all objects as landmarks; none: one object at a time.

    Leaving out one object at a time takes a closed form, which cannot make similarities anew: of
    ``transforms`` of a few objects each is a fold by itself instead.
    """
    n = len(folds) if encoded.weighted is None else len(encoded.weighted)
    if isinstance(cv, str):  # "loo"
        refits = encoded.groups is not None or (transforms and n <= REFITS)
        return (np.asarray(folds),) if refits else ()
    if cv is not None:
        return (np.asarray(folds),)
    if not folds_judge(n, encoded.groups):
        return ()
    labels, groups = encoded.labels, encoded.groups
    if encoded.weighted is None:
        return tuple(rounds_of_folds(n, labels, groups))
    rounds, rows = [], encoded.weighted  # other rows are as if they were absent
    labels, groups = (None if each is None else each[rows] for each in (labels, groups))
    for of_weighted in rounds_of_folds(n, labels, groups):
        rounds.append(with_fold(np.full(len(folds), TRAINING), rows, of_weighted))
    return tuple(rounds)


def _with_rare_spread(
    folds: DrawnFolds, k: int, rows: Rows, encoded: Encoded, rng: np.random.Generator
) -> DrawnFolds:
    """The same folds, in which no fold has all objects of a small class.

    Classes of more than 2 k objects are spread by chance.
    """
    if encoded.counts is None or encoded.labels is None:
        return folds
    small = (encoded.counts > 0) & (encoded.counts <= 2 * k)
    if not small.any():
        return folds
    rare, labels = rows.rows_of_classes(encoded.labels, small)
    return folds.placed(rare, random_folds(len(rare), k, rng, labels))
