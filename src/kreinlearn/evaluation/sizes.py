"""How many training objects each learner can be given, by what its fits would cost.

The costs are rough figures for one core, as in ``learn.exact``. They are constants, so that the
same data are evaluated in the same way everywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from kreinlearn.inspection.arguments import Array
from kreinlearn.learn.exact import (
    SECONDS,
    comparing_seconds,
    exact_seconds,
    landmark_seconds,
    landmarks_by_cost,
)

ALLOWED = 100.0  # seconds of one core, which an evaluation at its defaults may take
FEWEST = 400  # training objects of limited learners, before more learners are limited
LEAST = 20  # training objects, whatever they cost
ON_PAIRS = 0.5  # the part of the time that similarities may take
MEMORY = 2**62  # bytes; whether a fit fits into memory is for the fit to say


class Problem(NamedTuple):
    """What decides on the cost of a fit."""

    n_outputs: int  # 1 for two classes
    pair: float  # seconds that a similarity takes which is not known yet
    landmarks: int | None = None  # None: as many as the time of a fit allows


class Cost(Protocol):
    """The seconds of one core that a fit to n objects takes, with its predictions."""

    def __call__(self, n: int, problem: Problem) -> float: ...


def _least_squares(n: int, problem: Problem, *, machines: bool = False) -> float:
    q, pair, given = problem
    m = given or landmarks_by_cost(n, q, pair, MEMORY, machines=machines).n_landmarks
    if m >= n:
        return 2.2 * exact_seconds(n, q, pair, machines=False)
    return 3 * landmark_seconds(n, m, pair)


def stacked(n: int, problem: Problem) -> float:
    """KreinClassifier and KreinRegressor."""
    return comparing_seconds(problem.n_outputs) + _least_squares(n, problem)


def repeated(n: int, problem: Problem) -> float:
    """KreinRidge, which shares what KreinRegressor has found if all objects are landmarks."""
    return 0.2 * stacked(n, problem)


def similarity_features(n: int, problem: Problem) -> float:
    return 0.3 + 8e-8 * n**2 * problem.n_outputs + _least_squares(n, problem) / 2


def variance_constrained(n: int, problem: Problem) -> float:
    m = min(n, problem.landmarks or 1000)
    pairs = problem.pair * n * m
    return pairs + 0.1 * problem.n_outputs + 1e-9 * n * m**2 * problem.n_outputs


def machines(n: int, problem: Problem) -> float:
    """KreinSVC, which is slow with many classes if it cannot have all objects as landmarks."""
    q = problem.n_outputs
    shared = comparing_seconds(q) + _least_squares(n, problem, machines=True)
    if exact_seconds(n, q, problem.pair, machines=True) <= SECONDS and not problem.landmarks:
        return shared + 1.5e-10 * n**3 * q
    m = min(n, problem.landmarks or 1000)
    return shared + 4e-9 * n * m**2 * q


def corrected_spectrum(n: int, problem: Problem) -> float:
    """SpectrumSVC: six eigendecompositions, and 36 fits of libsvm."""
    return 1.2e-9 * n**3 + 4e-7 * n**2 + problem.pair * n**2


def same_spectrum(n: int, problem: Problem) -> float:
    """SpectrumSVC with another correction, which shares the eigendecompositions."""
    return corrected_spectrum(n, problem) / 2


def all_neighbours(n: int, problem: Problem) -> float:
    return (1.5e-7 + problem.pair) * n**2


def nothing(n: int, problem: Problem) -> float:
    return 0.0


class Plan(NamedTuple):
    """The training objects of each learner, and the seconds that one of its fits will take."""

    sizes: Mapping[str, int]
    seconds: Mapping[str, float]
    first: str = ""  # the learner that is limited last
    first_limited: float = 0.0  # its seconds if it is fitted to as few objects as limited learners


def planned(
    costs: Mapping[str, Cost], first: str, n: int, folds: int, problem: Problem,
    allowed: float,
) -> Plan:  # fmt: skip
    """Give all n objects to as many learners as the time allows, and the others a part of them.

    The learners that take longest are limited, all of them to the same number of objects; the
    ``first`` learner only if that of all others is not enough.
    """

    def seconds(size: int, limited: set[str]) -> dict[str, float]:
        return {name: cost(size if name in limited else n, problem) for name, cost in costs.items()}

    def of_first(size: int) -> float:
        return costs[first](size, problem) if first in costs else 0.0

    def too_long(size: int) -> bool:
        again = of_first(size) if limited and first not in limited else 0.0
        return folds * (again + sum(seconds(size, limited).values())) > allowed

    def largest() -> int:
        """The largest size up to n that there is time for; 0 if there is none."""
        return bisect_left(range(1, n + 1), True, key=too_long) if too_long(n) else n

    full = seconds(n, set())
    limited: set[str] = set()
    if n <= FEWEST:  # a part of so few objects saves no time that is worth its error
        return Plan(dict.fromkeys(costs, n), full, first, of_first(n))
    size = largest()
    for name in sorted(costs, key=lambda name: (name == first, -full[name])):
        if size >= FEWEST:
            break
        limited.add(name)
        size = largest()
    size = size if size >= n else _two_digits(max(size, min(LEAST, n)))
    sizes = {name: size if name in limited else n for name in costs}
    return Plan(sizes, seconds(size, limited), first, of_first(size))


def affordable_objects(n: int, pair: float, allowed: float) -> int:
    """How many objects can all be compared with each other in the time for similarities."""
    most = np.sqrt(2 * ON_PAIRS * allowed / pair) if pair else np.inf
    return n if n <= most else max(_two_digits(int(most)), min(LEAST, n))


def _two_digits(size: int) -> int:
    """Rounded down to two digits."""
    unit = 10 ** max(len(str(size)) - 2, 0)
    return size // unit * unit


def spread(rows: Array, labels: Array | None, size: int, rng: np.random.Generator) -> Array:
    """Some of the rows in their order, with all classes in proportion and at least once."""
    if size >= len(rows):
        return rows
    order = rng.permutation(len(rows))
    if labels is None:
        return rows[np.sort(order[:size])]
    of_class = labels[rows[order]]
    order = order[np.argsort(of_class, kind="stable")]
    _, first = np.unique(labels[rows[order]], return_index=True)
    rest = np.setdiff1d(np.arange(len(rows)), first)
    more = max(size - len(first), 0)
    chosen = np.concatenate([first, rest[np.arange(more) * len(rest) // max(more, 1)]])
    return rows[np.sort(order[chosen])]
