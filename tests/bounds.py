"""Bounds with a reason: rounding errors from the number of terms, times from a reference.

What one machine gave is no bound. An error is compared with what the arithmetic allows on any
machine, and a time with that of other work in the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np


def rounding(terms: int) -> float:
    """The largest relative error of a sum of so many terms, of the sum of their absolute values.

    This is n u / (1 - n u) with the unit roundoff u = eps / 2. It holds for sums and for sums of
    products in any order, with or without fused multiplication, and so for every BLAS.
    """
    error = terms * float(np.finfo(np.float64).eps) / 2
    return error / (1 - error)


def left_out_error(loss: float, Y: Any, accuracy: float = 1e-4) -> float:
    """The largest error of a leave-one-out loss whose predictions have errors of their own.

    ``solvers.exact`` promises ``accuracy`` of the largest prediction, which is taken to be that
    of the largest target. Errors of at most d in each of q outputs change a root mean square by at
    most d sqrt(q).
    """
    Y = np.asarray(Y, dtype=np.float64).reshape(len(Y), -1)
    change = accuracy * float(np.abs(Y).max()) * np.sqrt(Y.shape[1])
    return float(change * (2 * np.sqrt(loss) + change))


def least_cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds of this process, the least of several times: other processes do not count."""
    return min(_cpu_seconds(work) for _ in range(times))


def _cpu_seconds(work: Callable[[], object]) -> float:
    """Of one call, or the mean of the calls until the clock moves: on Windows it does so rarely."""
    calls, spent, before = 0, 0.0, time.process_time()
    while not spent:
        work()
        calls, spent = calls + 1, time.process_time() - before
    return spent / calls
