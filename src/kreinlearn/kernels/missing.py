"""Missing kernel values, NaN in a matrix, evaluated in as few blocks as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.data.tiles import length, take

if TYPE_CHECKING:
    from kreinlearn.kernels.base import Array, Objects


def fill(K: Array, evaluate: Callable[[Array, Array], Array]) -> None:
    """Replace every NaN in K: ``evaluate(i, j)`` gives the values of rows i and columns j."""
    for i, j in _rectangles(np.isnan(K)):
        K[block_at(i, j)] = evaluate(i, j)


def fill_square(
    K: Array,
    evaluate: Callable[[Array, Array], Array],
    evaluate_square: Callable[[Array], Array],
) -> None:
    """Replace every NaN in a symmetric matrix, each pair once.

    ``evaluate_square(i)`` is called for objects i no two of which have a known value. A value that
    is known on one side of the diagonal is copied to the other.
    """
    one_side = np.isnan(K) & ~np.isnan(K.T)
    K[one_side] = K.T[one_side]
    squares, order = _squares(np.isnan(K))
    for i in squares:
        K[block_at(i, i)] = evaluate_square(i)
    for i, j in _rectangles(np.triu(np.isnan(K)[np.ix_(order, order)])):
        part = evaluate(order[i], order[j])
        K[block_at(order[i], order[j])] = part
        K[block_at(order[j], order[i])] = part.T


def part_of(X: Objects, numbers: Array) -> Objects:
    """Objects by number; X itself if all of them are asked for."""
    return X if len(numbers) == length(X) else take(X, numbers)


def block_at(i: Array, j: Array) -> Any:
    """An index for the block of rows i and columns j: slices if both are runs of neighbours."""
    runs = [slice(k[0], k[-1] + 1) for k in (i, j) if len(k) and (np.diff(k) == 1).all()]
    return tuple(runs) if len(runs) == 2 else np.ix_(i, j)


def _alike(M: Array) -> list[Array]:
    """Groups of the numbers of equal columns of a boolean matrix."""
    groups: dict[bytes, list[int]] = {}
    for j, column in enumerate(np.packbits(M, axis=0).T):
        groups.setdefault(column.tobytes(), []).append(j)
    return [np.array(group) for group in groups.values()]


def _rectangles(missing: Array) -> Iterator[tuple[Array, Array]]:
    """Rows and columns of blocks that hold exactly the missing entries, each of them once."""
    for columns in _alike(missing):
        rows = np.flatnonzero(missing[:, columns[0]])
        if len(rows):
            yield rows, columns


def _squares(missing: Array) -> tuple[list[Array], Array]:
    """Groups of objects no two of which have a known value, and all objects with like beside like.

    The groups include each single object of which nothing but k(z, z) is missing.
    """
    off = missing & ~np.eye(len(missing), dtype=bool)
    # groups in which no pair is known, and whose objects have the same known pairs outside
    groups = _alike(off | np.eye(len(off), dtype=bool))
    single = np.array([group[0] for group in groups if len(group) == 1], dtype=np.intp)
    several = [group for group in groups if len(group) > 1]
    order = [*several, *(single[same] for same in _alike(off[:, single]))]
    lonely = [np.array([i]) for i in single if missing[i, i]]
    return several + lonely, np.concatenate([np.empty(0, dtype=np.intp), *order])
