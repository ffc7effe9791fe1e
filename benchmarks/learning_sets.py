"""The matrices of the learning benchmark: from the data folder, and generated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from reproduction.sets import LearningSet, balls3d, coilyork_partial, polygons, stored

POLYGONS = {"small": 120, "usual": 1000, "full": 4000}  # both classes together
BALLS = {"small": 40, "usual": 100, "full": 100}  # a class


def _stored(path: str, size: str, seed: int) -> LearningSet:
    return stored(path)


def _coilyork(size: str, seed: int) -> LearningSet:
    return replace(coilyork_partial(), name="coilyork_partial")


def _sized(name: str, size: str) -> str:
    return name if size == "usual" else f"{name}_{size}"


def _balls(size: str, seed: int) -> LearningSet:
    return replace(balls3d(BALLS[size], seed), name=_sized("balls3d_fresh", size))


def _polygons(name: str, distance: str, size: str, seed: int) -> LearningSet:
    return polygons(_sized(name, size), distance, POLYGONS[size], seed)


SETS: dict[str, Callable[[str, int], LearningSet]] = {
    "balls3d": partial(_stored, "dissimilarity/balls3d"),
    "protein": partial(_stored, "dissimilarity/protein"),
    "woodyplants50": partial(_stored, "dissimilarity/woodyplants50"),
    "chickenpieces_20_60": partial(_stored, "dissimilarity/chickenpieces_20_60"),
    "coilyork_partial": _coilyork,
    "protein_chen": partial(_stored, "similarity/protein_chen"),
    "voting": partial(_stored, "similarity/voting"),
    "balls3d_fresh": _balls,
    "polydish57": partial(_polygons, "polydish57", "hausdorff"),
    "polydism57": partial(_polygons, "polydism57", "modified_hausdorff"),
}


@lru_cache(maxsize=2)
def learning_set(name: str, size: str = "usual", seed: int = 0) -> LearningSet:
    """The set of a name in ``SETS``; FileNotFoundError if it is not in the data folder."""
    return SETS[name](size, seed)
