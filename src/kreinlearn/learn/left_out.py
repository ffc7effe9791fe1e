"""Scores of training objects by models without them, from kernel values that are there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kreinlearn.kernels.base import Array
from kreinlearn.learn.folds import MAX_FOLDS, TRAINING, random_folds
from kreinlearn.learn.task import FoldRows, Task


class LeftOut(NamedTuple):
    """Rows, and what models without them say of them."""

    numbers: Array  # (k,)
    scores: Array  # (k, q)


def joined_by_number(found: Sequence[LeftOut], q: int) -> LeftOut:
    """The scores of several folds, by the numbers of their rows."""
    numbers = np.concatenate([np.empty(0, dtype=np.intp), *(one.numbers for one in found)])
    scores = np.concatenate([np.empty((0, q)), *(one.scores for one in found)])
    order = np.argsort(numbers)
    return LeftOut(numbers[order], scores[order])


ScoreSplit = Callable[[FoldRows, Array, Array], Array]  # a split, Y, w -> scores of its valid rows


def left_out_of_splits(task: Task, splits: Sequence[FoldRows], score: ScoreSplit) -> LeftOut:
    """Scores of the sampled rows, each by the split that validates it."""
    Y, w = task.sampled_targets(splits)
    tested = [split.valid for split in splits]
    if not tested:
        return LeftOut(task.numbers[:0], np.empty((0, Y.shape[1])))
    scores = np.concatenate([score(split, Y, w) for split in splits])
    places = np.concatenate(tested)
    order = np.argsort(places, kind="stable")
    return LeftOut(task.numbers[places[order]], scores[order])


def with_few_folds(task: Task) -> Task:
    """The same task with at most five folds, if every row was a fold of its own."""
    if task.n_folds <= MAX_FOLDS or task.n_folds < task.n:
        return task
    rng = np.random.default_rng(task.n)
    folds = random_folds(task.n, MAX_FOLDS, rng, groups=task.groups)
    folds[np.asarray(task.folds) == TRAINING] = TRAINING
    return replace(task, folds=folds, n_folds=MAX_FOLDS)
