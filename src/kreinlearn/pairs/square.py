"""Kernel values among numbered objects, each pair once: in strips, where threads can share them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kreinlearn.data.tiles import TILE, rows
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.callables import PairwiseKernel
from kreinlearn.kernels.graphs import _CountKernel
from kreinlearn.kernels.object_kernel import ObjectKernel
from kreinlearn.kernels.shapes import _Contour
from kreinlearn.pairs.evaluate import evaluate
from kreinlearn.progress import Progress
from kreinlearn.sums.parallel import map_blocks

STRIPS = 16  # enough for a few workers, few enough to pack the columns anew for each
STRIP_ROWS = (16, 256)  # the fewest and the most
WHOLE = (_CountKernel, _Contour)  # packing objects anew for each strip costs more than it saves


def pairs_among(kernel: Kernel, n: int) -> int:
    """Evaluations of a square: each pair once, unless the kernel is a function of whole blocks."""
    once = kernel.takes in ("objects", "records") or isinstance(kernel, PairwiseKernel)
    return n * (n + 1) // 2 if once else n * n


def process_count(kernel: Kernel) -> int:
    """Processes in which a kernel that holds the GIL is evaluated; 1: in line."""
    return int(getattr(getattr(kernel, "processes", None), "jobs", 1))


def by_pairs(kernel: Kernel) -> bool:
    """Whether a square may be evaluated in parts."""
    on_objects = isinstance(kernel, ObjectKernel) and not isinstance(kernel, WHOLE)
    return on_objects or isinstance(kernel, PairwiseKernel)


def rows_a_part(kernel: Kernel) -> int:
    """Rows that a worker evaluates at a time: fewer than a tile of a kernel on objects.

    Processes want more: they share them, and report what is done.
    """
    fine = kernel.on_objects and (kernel.threads or by_pairs(kernel))
    in_line = kernel.threads or process_count(kernel) == 1
    return STRIP_ROWS[1] if fine and in_line else TILE


def parts_of(n: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def strips(n: int) -> list[tuple[int, int]]:
    """Rows 0..n in parts that depend on n alone."""
    return parts_of(n, int(np.clip(-(-n // STRIPS), *STRIP_ROWS)))


def evaluate_square(
    kernel: Kernel, objects: Objects, numbers: Array, own: Array, workers: int, progress: Progress,
    store: Any = None,
) -> Array:  # (n, n)  # fmt: skip
    """As ``kernel.symmetric``; ``own`` are the k(x, x) that are known, for a pairwise kernel.

    Each strip of rows is evaluated by itself and against all later columns.
    """
    n = len(numbers)

    def square(A: Objects, here: slice) -> Array:
        known = {"diagonal": own[here]} if isinstance(kernel, PairwiseKernel) else {}
        symmetric = partial(kernel.symmetric, **known)
        if store is not None:
            symmetric = partial(store.square, numbers[here], own[here])
        return evaluate(symmetric, A, numbers[here], numbers[here])

    def one_strip(span: tuple[int, int]) -> None:
        here, after = slice(*span), slice(span[1], n)
        A, h = rows(objects, *span), span[1] - span[0]
        K[here, here] = square(A, here)
        if span[1] < n:
            Z = rows(objects, span[1], n)
            columns: Any = kernel.columns(Z)
            if store is not None:
                columns = partial(store.columns(columns, Z, numbers[after]), numbers[here])
            K[here, after] = evaluate(columns, A, numbers[here], numbers[after])
            K[after, here] = K[here, after].T
        progress.add(h, pairs_among(kernel, h) + h * (n - span[1]))

    if by_pairs(kernel) and (store is not None or process_count(kernel) == 1):
        K = np.empty((n, n))
        map_blocks(one_strip, strips(n), workers=workers)
    else:
        K = square(objects, slice(None))
        progress.add(n, pairs_among(kernel, n))
    return K
