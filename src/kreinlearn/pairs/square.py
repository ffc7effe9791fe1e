"""Kernel values among numbered objects, each pair once, in strips that threads can share."""

from __future__ import annotations

from functools import partial

import numpy as np

from kreinlearn.data.tiles import TILE, rows
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.pairs.evaluate import evaluate
from kreinlearn.pairs.session import Session
from kreinlearn.sums.parallel import map_blocks

STRIPS = 16  # enough for a few workers, few enough to pack the columns anew for each
STRIP_ROWS = (16, 256)  # the fewest and the most rows of a strip


def pairs_among(kernel: Kernel, n: int) -> int:
    """How many evaluations the pairs among n objects take."""
    return n * (n + 1) // 2 if kernel.pairs_once else n * n


def rows_per_block(kernel: Kernel) -> int:
    """Rows that one worker evaluates at a time: fewer than a tile for kernels on objects.

    Processes get whole tiles, which they share among themselves.
    """
    fine = kernel.costly and (kernel.threads or kernel.splits_squares)
    in_line = kernel.threads or kernel.jobs == 1
    return STRIP_ROWS[1] if fine and in_line else TILE


def spans_of(n: int, size: int) -> list[tuple[int, int]]:
    """Rows 0..n in spans of at most ``size``."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def strips(n: int) -> list[tuple[int, int]]:
    """Rows 0..n in spans that depend on n alone."""
    return spans_of(n, int(np.clip(-(-n // STRIPS), *STRIP_ROWS)))


def evaluate_square(
    kernel: Kernel, objects: Objects, numbers: Array, own: Array, session: Session
) -> Array:  # (n, n)
    """k(x, z) among objects; ``own`` holds the k(x, x) that are known, and NaN for the others.

    Where the kernel allows it, each strip of rows is evaluated against itself and against all
    later columns.
    """
    n, store = len(numbers), session.store

    def square(A: Objects, here: slice) -> Array:
        symmetric = partial(kernel.symmetric, own=own[here])
        if store is not None:
            symmetric = partial(store.square, numbers[here], own[here])
        return evaluate(symmetric, A, numbers[here], numbers[here])

    def one_strip(span: tuple[int, int]) -> None:
        here, after = slice(*span), slice(span[1], n)
        A, height = rows(objects, *span), span[1] - span[0]
        K[here, here] = square(A, here)
        if span[1] < n:
            Z = rows(objects, span[1], n)
            columns = kernel.columns(Z)
            if store is not None:
                columns = partial(store.columns(columns, Z, numbers[after]), numbers[here])
            K[here, after] = evaluate(columns, A, numbers[here], numbers[after])
            K[after, here] = K[here, after].T
        session.progress.add(height, pairs_among(kernel, height) + height * (n - span[1]))

    if kernel.splits_squares and (store is not None or kernel.jobs == 1):
        K = np.empty((n, n))
        map_blocks(one_strip, strips(n), workers=session.workers if kernel.threads else 1)
    else:
        K = square(objects, slice(None))
        session.progress.add(n, pairs_among(kernel, n))
    return K
