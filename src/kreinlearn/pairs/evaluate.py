"""Evaluating a block of kernel values, with errors that name the rows they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from kreinlearn.data.tiles import TILE, Scratch, first_not_finite, length, take
from kreinlearn.kernels.base import Array, Columns, Kernel, Objects, product, symmetrised
from kreinlearn.kernels.dissimilarity import Transform, check_dissimilarities
from kreinlearn.pairs.rows import STORED, Session
from kreinlearn.progress import TIMED_ROWS, Progress, seconds_a_pair
from kreinlearn.sums.parallel import map_blocks, serial_blas

TIMED_SHARE = 50  # one pair in so many is evaluated to say how long all of them will take
TIMED_COLUMNS = 1024
MEASURED_PAIRS = 256  # of a user's own function, to find out what a pair costs
NOTHING_KEPT = "; nothing of this fit was kept, which Resources(store=path) would do"


@contextmanager
def naming(numbers: Array, n_landmarks: int) -> Iterator[None]:
    """Add a note with the row numbers to any error that is raised inside."""
    try:
        yield
    except Exception as error:
        stored = getattr(error, STORED, False)
        error.add_note(
            f"while evaluating the kernel on rows {numbers.min()}..{numbers.max()} "
            f"against {n_landmarks} landmarks{'' if stored else NOTHING_KEPT}"
        )
        raise


def evaluate(
    function: Callable[..., Array], objects: Objects, numbers: Array, against: Array,
    out: Array | None = None, progress: Progress | None = None,
) -> Array:  # fmt: skip
    """The values that ``function`` gives for numbered rows, checked to be finite."""
    with naming(numbers, len(against)):
        K = function(objects) if out is None else function(objects, out)
    require_finite(K, numbers, against)
    if progress is not None:
        progress.add(len(numbers), K.size)
    return np.asarray(K, dtype=np.float64)


def diagonal(kernel: Kernel, objects: Objects) -> Array:  # (n, 1)
    """k(x, x) of each object."""
    return kernel.diagonal(objects)[:, None]


def require_finite(K: Array, numbers: Array, against: Array) -> None:
    """Raise ValueError naming the first row and landmark whose value is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(K.sum()):
            return
    bad = first_not_finite(K)
    if bad is not None:
        i, j, what = bad
        raise ValueError(
            f"kernel produced {what} for row {numbers[i]} "
            f"(block {numbers.min()}..{numbers.max()}) and landmark row {against[j]}; "
            "scale the data or fix the kernel"
        )


def scaled(C: Array, unit: float) -> Array:
    """C / unit, without a copy where the unit is 1."""
    return C if unit == 1.0 else C / unit


def places_of(numbers: Array, columns: Array) -> Array:
    """The position of each number in an unsorted array that contains it."""
    sorter = np.argsort(columns)
    return np.asarray(sorter[np.searchsorted(columns, numbers, sorter=sorter)])


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

    def symmetric(here: slice) -> Callable[[Objects], Array]:
        if store is not None:
            return partial(store.square, numbers[here], own[here])
        return partial(kernel.symmetric, own=own[here])

    def one_strip(span: tuple[int, int]) -> None:
        here, after = slice(*span), slice(span[1], n)
        A, height = objects[here], span[1] - span[0]
        K[here, here] = evaluate(symmetric(here), A, numbers[here], numbers[here])
        if span[1] < n:
            Z = objects[after]
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
        K = evaluate(symmetric(slice(None)), objects, numbers, numbers)
        session.progress.add(n, pairs_among(kernel, n))
    return K


@dataclass(frozen=True)
class LandmarkColumns:
    """x -> k(x, Z): kernel values to the landmarks, transformed if they are dissimilarities."""

    raw: Columns  # values to all evaluated columns: the reference set of a transform, landmarks
    landmarks: Array | None = None  # their places among the evaluated columns; None: all, in order
    transform: Transform | None = None
    offsets: Array | None = None  # a(z) of each landmark, for the transform
    stored: Callable[..., Array] | None = None  # numbers, rows -> raw, by way of a store
    objects: Objects = None  # those of the evaluated columns

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        """The similarities of any objects."""
        return self.transformed(self.raw(A, out))

    def of_rows(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        """The similarities of rows of the fit, read from its store where it has one."""
        return self.transformed(self.raw_of_rows(numbers, A, out))

    def raw_of_rows(self, numbers: Array, A: Objects, out: Array | None = None) -> Array:
        return self.raw(A, out) if self.stored is None else self.stored(numbers, A, out)

    def transformed(self, raw: Array) -> Array:
        """Similarities to the landmarks from the values of all evaluated columns."""
        if self.transform is None:
            return raw
        check_dissimilarities(raw)
        assert self.offsets is not None
        a = self.transform.offsets(raw)
        picked = raw if self.landmarks is None else raw[:, self.landmarks]
        return self.transform.similarity(picked, a, self.offsets)

    def n_evaluated(self, m: int) -> int:
        """How many columns are evaluated for m landmarks: a reference set may add some."""
        if self.landmarks is None or self.transform is None:
            return m
        return max(self.transform.n_reference, int(self.landmarks.max(initial=-1)) + 1)


# New objects


def project(
    X: Objects, columns: LandmarkColumns, W: Array, out: Array, workers: int, *,
    buffered: bool = False, n_rows: int = TILE, progress: Progress | None = None,
    scores: Callable[[Array, Array], Array] | None = None,
) -> Array:  # fmt: skip
    """out = k(X, Z) @ W, ``n_rows`` at a time; ``buffered`` if the kernel writes to buffers.

    With ``scores`` the result is a function of the kernel values of each row to all evaluated
    columns, and of these products.
    """
    scratch = Scratch(useful=buffered and columns.transform is None)
    progress = Progress() if progress is None else progress
    n, width = length(X), columns.n_evaluated(len(W))

    def one_part(span: tuple[int, int]) -> None:
        numbers, here = np.arange(*span), out[slice(*span)]
        with naming(numbers, len(W)), np.errstate(over="ignore", invalid="ignore"):
            A = X[slice(*span)]
            raw = columns.raw(A, scratch.get(A, len(W)))
            C = columns.transformed(raw)
            if scores is None:
                product(C, W, here)
            else:
                here[:] = scores(raw, product(C, W))
        if not np.isfinite(here).all():
            require_finite(C, numbers, np.arange(len(W)))
        progress.add(len(here), len(here) * width)

    limit = serial_blas() if n > 1 else nullcontext()  # to set it takes longer than one object
    with progress.step("new rows", n, n * width), limit:
        if n <= n_rows:
            one_part((0, n))
        else:
            map_blocks(one_part, spans_of(n, n_rows), workers=workers)
    return out


def announce(
    progress: Progress, kernel: Kernel, A: Objects, Z: Objects, pairs: int, workers: int,
    at_least: str = "",
) -> None:  # fmt: skip
    """Say beforehand how long so many pairs of a costly kernel will take, if that is long."""
    if not progress.verbose or not kernel.costly:
        return
    with suppress(Exception):  # it will come again, with the number of the row
        most = min(pairs // TIMED_SHARE, 2 * TIMED_ROWS * TIMED_COLUMNS)
        seconds = _timed(kernel, A, Z, most)
        cores = workers if kernel.threads else kernel.jobs
        if seconds is not None:
            progress.announce(pairs, pairs * seconds / cores, cores, at_least)


def _timed(kernel: Kernel, A: Objects, Z: Objects, most: int) -> float | None:
    """Seconds that one pair takes, measured with at most so many pairs; None if these are few."""
    own = np.random.default_rng(0)  # what is fitted does not depend on what is measured
    a, z = own.integers(length(A), size=TIMED_ROWS), own.integers(length(Z), size=TIMED_COLUMNS)

    def columns(k: int) -> Callable[[int], Array]:
        evaluate = kernel.columns(take(Z, z[:k]))
        return lambda i: evaluate(take(A, a[i : i + 1]))

    return seconds_a_pair(columns, most)


def pair_seconds(kernel: Kernel, X: Objects) -> float:
    """About how long one value takes: as declared, or measured and rounded to a power of ten.

    Of a kernel that is made of others, each part is measured by itself.
    """
    if kernel.pair_seconds is not None:
        return kernel.pair_seconds
    if kernel.inner:
        return sum(pair_seconds(part, X) for part in kernel.inner)
    seconds = None
    with suppress(Exception):  # it will come again, with the number of the row
        seconds = _timed(kernel, X, X, MEASURED_PAIRS)
    return 1e-6 if not seconds else float(10.0 ** np.round(np.log10(seconds)))


def true_similarities(
    kernel: Kernel, X: Objects, numbers: Array, columns: LandmarkColumns
) -> Array:
    """The similarities among some rows of X, evaluated anew and transformed as by ``columns``."""
    A, transform = take(X, numbers), columns.transform
    matrix = kernel.domain.is_matrix
    K = symmetrised(kernel.columns(numbers)(A)) if matrix else kernel.symmetric(A)
    if transform is None:
        return K
    a = transform.offsets(columns.raw(A))
    return symmetrised(transform.similarity(K, a, a))
