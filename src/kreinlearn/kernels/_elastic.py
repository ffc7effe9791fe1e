"""Elastic distances as one banded recursion, compiled for what the steps of each of them cost.

The distance of x and z is the cost of the cheapest way from their beginnings to their ends. A step
takes a point of x and one of z, or a point of one of them alone. What it costs is said by a
function ``steps(x, z, i, j, part, numbers)``, which returns the costs of the pair (x_i, z_j), of
x_i alone and of z_j alone. All of them treat x and z alike, so that distances are symmetric to the
bit. Series are arrays of shape (length, width), whose last columns may be what a function needs to
know about a point. ``numbers`` are the parameters of a distance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from kreinlearn.kernels._compiled import Compiled, cached_njit, compiled
from kreinlearn.kernels.base import Array

Costs = tuple[float, float, float]  # of a pair, of a point of x, of a point of z
Steps = Callable[[Array, Array, int, int, int, Array], Costs]


def _squared(x: Array, z: Array, i: int, j: int, first: int, stop: int) -> float:
    """|x_i - z_j|^2 over some columns; only here sums may be reordered, for speed."""
    total = 0.0
    for c in range(first, stop):
        total += (x[i, c] - z[j, c]) ** 2
    return total


squared = Compiled(_squared, {"error_model": "numpy", "fastmath": {"contract", "reassoc"}})


@compiled
def norm(x: Array, z: Array, i: int, j: int, first: int, stop: int) -> float:
    if stop - first == 1:
        return float(abs(x[i, first] - z[j, first]))
    return float(np.sqrt(squared(x, z, i, j, first, stop)))


def warp(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """The squared distance, and a penalty unless both series advance."""
    pair = squared(x, z, i, j, 0, x.shape[1])
    return pair, pair + numbers[0], pair + numbers[0]


def weighted(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """The squared distance times the weight of 2 |i - j| - L, for which ``numbers`` has a table."""
    place = 2 * abs(i - j) - max(len(x), len(z)) + len(numbers) // 2
    pair = squared(x, z, i, j, 0, x.shape[1]) * numbers[place]
    return pair, pair, pair


def gaps(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """The distance, or the last column: what it costs to leave a point out."""
    own = x.shape[1] - 1
    return norm(x, z, i, j, 0, own), x[i, own], z[j, own]


def edits(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """The distances of two points and of those before them, which are columns, too."""
    w = x.shape[1] // 2
    pair = norm(x, z, i, j, 0, w) + norm(x, z, i, j, w, 2 * w) + numbers[0] * abs(i - j)
    return pair, x[i, 2 * w], z[j, 2 * w]


def matches(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """One pair of numbers if points are closer than the last column says, and another if not."""
    own = x.shape[1] - 1
    place = 0 if norm(x, z, i, j, 0, own) < max(x[i, own], z[j, own]) else 2
    return numbers[place], numbers[place + 1], numbers[place + 1]


def moves(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """Of one channel: how far a point is from the stretch between its two neighbours, plus c.

    The second half of the columns says how far each point is from the one before it.
    """
    k = x.shape[1] // 2 + part
    gap, of_x, of_z = x[i, part] - z[j, part], x[i, k], z[j, k]
    outside_x = max(0.0, min(gap, of_x), -max(gap, of_x))
    outside_z = max(0.0, min(-gap, of_z), -max(-gap, of_z))
    return abs(gap), numbers[0] + outside_x, numbers[0] + outside_z


def joint_moves(x: Array, z: Array, i: int, j: int, part: int, numbers: Array) -> Costs:
    """The same in all channels at once, where a ball stands for the stretch.

    A point is in the ball around the middle of a and b if it sees them at an obtuse angle.
    """
    pair = before_x = before_z = angle_x = angle_z = 0.0
    w = x.shape[1] // 2
    for c in range(w):
        gap, of_x, of_z = x[i, c] - z[j, c], x[i, w + c], z[j, w + c]
        pair, before_x, before_z = pair + gap * gap, before_x + of_x * of_x, before_z + of_z * of_z
        angle_x, angle_z = angle_x + gap * of_x, angle_z - gap * of_z
    outside_x = 0.0 if angle_x <= 0.0 else min(pair, before_x)
    outside_z = 0.0 if angle_z <= 0.0 else min(pair, before_z)
    return pair, numbers[0] + outside_x, numbers[0] + outside_z


def _along_row(
    x: Array, points: Array, start: Array, parts: int, numbers: Array,
    window: float, edge: float, outside: float, first: int, rows: Array, out: Array,
) -> None:  # fmt: skip
    """The distances of one series from all columns from ``first`` on.

    ``edge`` is the cost of any beginning but that of both series, and ``outside`` that of a place
    outside of the band. The band is ``window`` times the shorter length on either side of the
    diagonal, which joins the ends of the series. ``rows`` is room for two of the shorter length
    and one more; to allocate it here would make each compilation a third longer.
    """
    for k in range(first, len(start) - 1):
        a, b = x, points[start[k] : start[k + 1]]
        if len(a) < len(b):
            a, b = b, a
        n, m = len(a), len(b)
        reach = int(window * m)
        out[k] = 0.0
        for part in range(parts):
            last, row = rows[0], rows[1]
            last[: m + 1], row[: m + 1] = outside, outside
            last[0], last[1 : reach + 2] = 0.0, edge
            for i in range(n):
                middle = int((i + 1) / (n + 1) * m)
                low, high = max(0, middle - reach), min(m, middle + reach + 1)
                row[low] = least = edge if low == 0 else outside
                for j in range(low, high):
                    pair, of_a, of_b = steps(a, b, i, j, part, numbers)  # type: ignore[name-defined]  # noqa: F821
                    least = min(min(last[j] + pair, last[j + 1] + of_a), least + of_b)
                    row[j + 1] = least
                last, row = row, last
            out[k] += last[m]


@cache
def row_of(steps: Steps) -> Callable[..., None]:
    """``_along_row`` compiled for some costs, and cached on disk under their name."""
    from numba import njit

    inside: Any = njit(error_model="numpy", fastmath={"contract"}, inline="always")(steps)
    row = FunctionType(_along_row.__code__, {"__name__": __name__, "np": np, "steps": inside})
    row.__qualname__ = f"row_of_{steps.__name__}"
    return cached_njit(row, error_model="numpy")
