"""Old names of checks, for modules that still use them; deleted when they no longer do."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from kreinlearn._warnings import warn
from kreinlearn.data.border import Border
from kreinlearn.data.memory import budget_bytes
from kreinlearn.data.validation import (
    asymmetry_of,
    is_condensed,
    is_frame,
    is_table,
    looks_like_distances,
    precision,
    require_finite_matrix,
    require_numbers,
    require_one_dimension,
    require_square,
    square_from_condensed,
)
from kreinlearn.data.validation import list_of_objects as _as_list
from kreinlearn.data.validation import numbers_as_array as _as_array
from kreinlearn.kernels import Kernel
from kreinlearn.nystrom.landmarks import VECTORS_ONLY

__all__ = [
    "_as_array",
    "_as_list",
    "are_row_numbers",
    "as_objects",
    "asymmetry_of",
    "checked_row_numbers",
    "is_condensed",
    "is_frame",
    "is_table",
    "landmark_count",
    "looks_like_distances",
    "precision",
    "require_apart",
    "require_finite_matrix",
    "require_numbers",
    "require_same_count",
    "require_square",
    "scheme_for",
    "square_of_condensed",
]


def border_of(estimator: Any) -> Border:
    budget = budget_bytes(estimator.memory_budget)
    return Border(estimator, estimator._dtypes, estimator._dtype, budget)


def require_apart(X: Any, kernel: Kernel) -> None:
    if not (kernel.domain.is_vectors or kernel.domain.is_records):
        require_one_dimension(X)


def as_objects(estimator: Any, X: Any, kernel: Kernel, *, reset: bool) -> list[Any]:
    objects: list[Any] = kernel.domain._checked(X, border_of(estimator), reset=reset)
    return objects


def square_of_condensed(X: Any, kernel: Kernel) -> Any:
    return square_from_condensed(X, dissimilarities=kernel.of_dissimilarities)


# Landmarks


def are_row_numbers(landmarks: Any) -> bool:
    """Integers in one dimension; anything else is a sequence of objects."""
    if isinstance(landmarks, str) or is_frame(landmarks):
        return False
    if isinstance(landmarks, np.ndarray):
        return landmarks.ndim == 1 and landmarks.dtype.kind in "iu"
    return all(_is_integer(i) for i in landmarks)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def checked_row_numbers(landmarks: Any, n: int) -> Any:
    numbers = np.asarray(landmarks, dtype=np.intp)
    repeats = len(numbers) - len(np.unique(numbers))
    if not len(numbers) or numbers.min() < 0 or numbers.max() >= n or repeats:
        given = f"{numbers.min()}..{numbers.max()}" if len(numbers) else "none"
        raise ValueError(
            f"landmarks must be distinct row numbers in 0..{n - 1}, got {given} with "
            f"{repeats} repeats"
        )
    return numbers


def landmark_count(n_landmarks: Any, n: int, auto: int) -> int:
    """How many landmarks a number, a fraction, "auto" or None (all) comes to."""
    if n_landmarks is None:
        return n
    if isinstance(n_landmarks, str):
        return min(n, auto)
    if isinstance(n_landmarks, float | np.floating):
        return max(1, round(float(n_landmarks) * n))
    if n_landmarks > n:
        warn(f"n_landmarks={n_landmarks} exceeds n_samples={n}; all {n} are used")
    return min(n, int(n_landmarks))


def require_same_count(n_landmarks: Any, n: int, given: int) -> None:
    """ValueError if landmarks are given and another number of them is asked for."""
    if isinstance(n_landmarks, str):  # "auto"
        return
    wanted = n_landmarks
    if not isinstance(n_landmarks, Integral):
        wanted = landmark_count(n_landmarks, n, given)
    if wanted != given:
        raise ValueError(
            f"n_landmarks={n_landmarks} but {given} landmarks are given (n_samples={n}); leave "
            "n_landmarks out, or let a scheme choose the landmarks"
        )


def scheme_for(landmarks: str, vectors: bool) -> str:
    if landmarks in VECTORS_ONLY and not vectors:
        raise ValueError(
            f"landmarks={landmarks!r} needs dense vectors; "
            'pass "greedy_kmeans++" for objects, matrices or sparse data'
        )
    default = "medoids+greedy" if vectors else "greedy_kmeans++"
    return default if landmarks == "auto" else landmarks
