"""The bare work no fit can do without: thin product, exponentials in cache, one SYRK."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from kreinlearn.kernels import _fused
from kreinlearn.sums.moments import add_gram
from kreinlearn.sums.parallel import serial_blas

ROWS = 1024  # of a block of the product and the SYRK
CACHED_ROWS = 32  # of the block the exponentials are taken of
BLOCKS = 8


class Bound(NamedTuple):
    """CPU seconds, one BLAS thread, for n rows."""

    product: float
    exponentials: float
    syrk: float

    @property
    def total(self) -> float:
        return self.product + self.exponentials + self.syrk


def bound(n: int, m: int, d: int, dtype: type = np.float64) -> Bound:
    """Measured on 8192 rows, scaled to n: X Z', exp - exp, and K'K of n x m kernel values."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, d)).astype(dtype)
    Zt = rng.standard_normal((d, m)).astype(dtype)
    K = rng.standard_normal((ROWS, m)).astype(dtype)
    cached = rng.random((CACHED_ROWS, m)).astype(dtype)
    triangle = np.zeros((m, m), dtype, order="F")
    scale = n / (ROWS * BLOCKS)
    with serial_blas():
        return Bound(
            scale * _seconds(lambda: np.matmul(X, Zt, out=K), BLOCKS),
            scale
            * _seconds(
                lambda: _fused.gaussians(cached, (1.0, -1.0), (0.02, 0.1)),
                BLOCKS * ROWS // CACHED_ROWS,
            ),
            scale * _seconds(lambda: add_gram(K, triangle), BLOCKS),
        )


def _seconds(work, times: int) -> float:
    work()
    start = time.thread_time()
    for _ in range(times):
        work()
    return time.thread_time() - start
