"""How many landmarks a learner takes by default: what a fit would cost decides.

The costs are rough figures for one core of today's machines. They are constants, so that the same
data have the same landmarks everywhere; only the cost of a user's own function is measured, and
rounded to a power of ten.
"""

from __future__ import annotations

from typing import NamedTuple

SECONDS = 40.0  # of one core, which a fit at its defaults may take
DECOMPOSE = 2e-10  # seconds for each n^3: an eigendecomposition
LEAVE_OUT = 1.0e-8  # for each n^2 and target: leave-one-out of all penalties
MACHINES, MACHINE = 3e-10, 4e-11  # for each n^3, and for each output of it: the squared hinge
FACTOR = 3e-8  # for each m^3: similarities that are compared, and penalties tuned on folds
NEWTON = 4e-9  # for each n m^2 and output: Newton's method with m landmarks
SUM_UP = 1e-10  # for each n m^2: sums over all rows
FEW, PAST = 1000, 100_000  # landmarks of similarities that cost nothing, beyond so many rows
GROWTH = 0.1  # the power of the number of rows by which they grow
SLOW = 1e-4  # seconds of a similarity from which on its cost decides, however many rows there are
LEAST = 20  # landmarks, whatever they cost
MATRICES = 7  # n x n matrices that are held at once if all objects are landmarks
NODES = 320  # numbers for each object and target that leave-one-out holds beside them


class Size(NamedTuple):
    """A number of landmarks, and why it is that."""

    n_landmarks: int
    reason: str


def landmarks_by_cost(
    n: int, n_outputs: int, pair: float, memory: int, *, machines: bool,
    seconds: float | None = None,
) -> Size:  # fmt: skip
    """All objects if that takes at most ``seconds`` and fits the memory, or else fewer.

    ``pair`` are the seconds that one value of the similarity takes, and ``machines`` says that
    every output needs an iterative solver. If ``seconds`` is None, they are ``SECONDS``, and more
    where rows are so many that the usual number of landmarks takes longer.
    """
    limit = SECONDS if seconds is None else seconds
    exact = exact_seconds(n, n_outputs, pair, machines=machines)
    needed = exact_bytes(n, n_outputs)
    if exact <= limit and needed <= memory:
        reason = f"all {n} objects are landmarks: that takes about {_rounded(exact)} of one core"
        return Size(n, reason)
    why = f"all {n} would take about {_rounded(exact)} of one core"
    m = _affordable(n, pair, limit, n_outputs if machines else 0)
    if seconds is None:
        m = max(m, _usual(n, pair))
    else:
        why += f", and the limit is {_rounded(limit)}"
    m = min(m, n // 2)  # of more, every fold would make its own map
    if exact <= limit:
        needs, has = (f"{size / 2**20:.0f} MiB" for size in (needed, memory))
        why = f"all {n} would take {needs}, and the budget is {has}"
        m = min(m, memory // (MATRICES * 8 * n))
    m = min(max(m, LEAST), n)
    return Size(m, f"{m} of {n} objects are landmarks: {why}")


def exact_seconds(n: int, n_outputs: int, pair: float, *, machines: bool) -> float:
    """An estimate of the time of a fit with all objects as landmarks."""
    own = (MACHINES + MACHINE * n_outputs) * n**3 if machines else 0.0
    pairs = pair * n * (n + 1) / 2
    return pairs + DECOMPOSE * n**3 + LEAVE_OUT * n**2 * (n_outputs + 2) + own


def exact_bytes(n: int, n_outputs: int) -> int:
    """An estimate of the memory of a fit with all objects as landmarks."""
    return 8 * n * (MATRICES * n + NODES * (n_outputs + 1))


def landmark_seconds(n: int, m: int, pair: float, machines: int = 0) -> float:
    """An estimate of the time of a fit with m landmarks, and so many outputs of machines."""
    sums = (SUM_UP + NEWTON * machines) * n * m**2
    return pair * n * m + sums + FACTOR * m**3


def _affordable(n: int, pair: float, seconds: float, machines: int) -> int:
    """The landmarks that the time allows, by bisection."""
    low, high = LEAST, max(n, LEAST)
    while high - low > 1:
        middle = (low + high) // 2
        fits = landmark_seconds(n, middle, pair, machines) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return low


def _usual(n: int, pair: float) -> int:
    """The landmarks of many rows, whatever sums take; none if the similarity itself is slow."""
    return 0 if pair >= SLOW else int(FEW * max(n / PAST, 1.0) ** GROWTH)


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.2g} min"
