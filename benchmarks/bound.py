"""The work that no fit can avoid: a thin product, exponentials in cache, and one SYRK."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from kreinlearn._native import add_gram
from kreinlearn.kernels import _fused
from kreinlearn.sums.parallel import serial_blas

ROWS = 1024  # of a block for the product and the SYRK
CACHED_ROWS = 32  # of a block for the exponentials
BLOCKS = 8


class Bound(NamedTuple):
    """CPU seconds for n rows with one BLAS thread."""

    product: float
    exponentials: float
    syrk: float

    @property
    def total(self) -> float:
        return self.product + self.exponentials + self.syrk


def bound(n: int, m: int, d: int, dtype: type = np.float64) -> Bound:
    """Seconds of X Z', exp - exp and K'K for n x m kernel values, measured on 8192 rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, d)).astype(dtype)
    Zt = rng.standard_normal((d, m)).astype(dtype)
    K = rng.standard_normal((ROWS, m)).astype(dtype)
    cached = rng.random((CACHED_ROWS, m)).astype(dtype)
    triangle = np.zeros((m, m), dtype, order="F")
    scale = n / (ROWS * BLOCKS)
    exponentials = partial(_fused.gaussians, cached, (1.0, -1.0), (0.02, 0.1))
    with serial_blas():
        return Bound(
            scale * _seconds(lambda: np.matmul(X, Zt, out=K), BLOCKS),
            scale * _seconds(exponentials, BLOCKS * ROWS // CACHED_ROWS),
            scale * _seconds(lambda: add_gram(K, triangle), BLOCKS),
        )


def _seconds(work: Callable[[], object], times: int) -> float:
    work()
    start = time.thread_time()
    for _ in range(times):
        work()
    return time.thread_time() - start
