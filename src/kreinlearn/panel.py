"""Kernel values between a pool of rows and a growing list of columns; no pair evaluated twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kreinlearn.blocks import length, take, tiles
from kreinlearn.kernels._base import Array, Columns, Kernel, Objects, symmetrised
from kreinlearn.kernels.dissimilarity import Centring, check_dissimilarities
from kreinlearn.reduce import map_blocks

POOL_ROWS = 8192
POOL_PER_LANDMARK = 10


def pool_size(n: int, n_landmarks: int) -> int:
    """Rows whose kernel values are held while landmarks are chosen and the core is fitted."""
    return min(n, max(POOL_ROWS, POOL_PER_LANDMARK * n_landmarks))


@dataclass(frozen=True)
class LandmarkColumns:
    """x -> k(x, Z): the evaluated columns, centred if they are dissimilarities."""

    raw: Columns
    landmarks: Array | None = None  # their places among the evaluated columns; None: all, in order
    centring: Centring | None = None
    offsets: Array | None = None  # a(z)

    def __call__(self, A: Objects, out: Array | None = None) -> Array:
        return self.finish(self.raw(A, out))

    def finish(self, raw: Array) -> Array:
        """Similarities to the landmarks from the values of all evaluated columns."""
        if self.centring is None:
            return raw
        check_dissimilarities(raw)
        assert self.offsets is not None
        picked = raw if self.landmarks is None else raw[:, self.landmarks]
        return self.centring.similarity(picked, self.centring.offsets(raw), self.offsets)


class Rows(NamedTuple):
    """The objects of a fit by row number; numbers below zero are objects from outside X."""

    X: Objects
    outside: Objects | None = None

    def take(self, numbers: Array) -> Objects:
        if self.outside is None or numbers.min(initial=0) >= 0:
            return take(self.X, numbers)
        away = numbers < 0  # sorted: these come first
        return _concatenate(take(self.outside, numbers[away]), take(self.X, numbers[~away]))


def _concatenate(A: Objects, B: Objects) -> Objects:
    if sp.issparse(A):
        return sp.vstack([A, B], format="csr")
    return np.concatenate([A, B]) if isinstance(A, np.ndarray) else [*A, *B]


class Panel:
    """Rows x columns of kernel values; ``C`` are similarities of the rows to the landmarks.

    ``raw`` holds what the kernel gives; a dissimilarity is centred on the columns present when
    ``freeze`` is called. Every column is one of the rows, so K_ZZ is read off, never evaluated.
    """

    def __init__(
        self, kernel: Kernel, X: Rows, rows: Array, *, pool: Array | None = None, workers: int = 1
    ) -> None:
        self.kernel, self.X, self.rows = kernel, X, rows
        self.pool = rows if pool is None else pool  # a uniform sample of all rows
        self.workers = workers if kernel.threads else 1
        self.columns = np.empty(0, dtype=np.intp)
        self.raw = np.empty((len(rows), 0))
        self.landmarks = np.empty(0, dtype=np.intp)  # row numbers
        self.centring: Centring | None = None
        self._diagonal: Array | None = None

    def positions(self, numbers: Array) -> Array:
        return np.searchsorted(self.rows, numbers)

    def grow(self, new: Array) -> None:
        """Evaluate the columns of rows ``new``; pairs with older columns are mirrored."""
        new = np.asarray(new, dtype=np.intp)
        missing = new[~np.isin(new, self.columns)]
        if len(missing):
            self.raw = np.hstack([self.raw, self._evaluate(missing)])
            self.columns = np.concatenate([self.columns, missing])
        self.landmarks = np.concatenate([self.landmarks, new])

    def _evaluate(self, new: Array) -> Array:
        at, before = self.positions(new), self.positions(self.columns)
        fresh = np.ones(len(self.rows), dtype=bool)
        fresh[at] = fresh[before] = False
        block = np.empty((len(self.rows), len(new)))
        block[before] = self.raw[at].T
        block[at] = self.square(new)
        self._fill(block, np.flatnonzero(fresh), new)
        return block

    def _fill(self, block: Array, places: Array, new: Array) -> None:
        columns = self.kernel.columns(self._as_columns(new))

        def one_tile(span: tuple[int, int]) -> None:
            here = places[slice(*span)]
            K = evaluate(columns, self.X.take(self.rows[here]), self.rows[here], new)
            if self.kernel.is_dissimilarity:
                check_dissimilarities(K)
            block[here] = K

        map_blocks(one_tile, tiles(len(places)), workers=self.workers)

    def _as_columns(self, numbers: Array) -> Objects:
        if self.kernel.takes == "precomputed":
            return self.kernel.select(self.X.X, numbers)
        return self.X.take(numbers)

    def square(self, numbers: Array) -> Array:
        """Raw values among rows ``numbers``, each pair evaluated once."""
        objects = self.X.take(numbers)
        if self.kernel.takes == "precomputed":
            K = symmetrised(self.kernel.columns(self._as_columns(numbers))(objects))
        else:
            K = evaluate(self.kernel.symmetric, objects, numbers, numbers)
        if self.kernel.is_dissimilarity:
            check_dissimilarities(K, np.diagonal(K))
        return K

    def freeze(self) -> None:
        """Centre a dissimilarity on the columns evaluated so far, from now on."""
        if self.kernel.is_dissimilarity and self.centring is None:
            self.centring = Centring.on(self.raw[self.positions(self.columns)])

    def replace(self, landmarks: Array) -> None:
        """Other landmarks instead of the present ones; a reference set stays evaluated."""
        keep = np.isin(self.columns, landmarks)
        if self.centring is not None:
            keep[: self.centring.n_reference] = True
        self.columns, self.raw = self.columns[keep], self.raw[:, keep]
        if len(self.rows) > len(self.pool):  # too many rows to hold all landmarks for
            self._restrict(np.union1d(np.union1d(self.pool, landmarks), self.columns))
        self.landmarks = np.empty(0, dtype=np.intp)
        self.grow(landmarks)

    def _restrict(self, rows: Array) -> None:
        self.raw, self.rows = self.raw[self.positions(rows)], rows
        self._diagonal = None

    def add_rows(self, numbers: Array, raw: Array) -> None:
        """Take in rows whose values to all columns were found elsewhere."""
        order = np.argsort(np.concatenate([self.rows, numbers]), kind="stable")
        self.rows = np.concatenate([self.rows, numbers])[order]
        self.raw = np.concatenate([self.raw, raw])[order]
        self._diagonal = None

    @property
    def places(self) -> Array | None:
        """Where the landmarks are among the columns; None if they are the columns, in order."""
        if np.array_equal(self.landmarks, self.columns):
            return None
        return self._place_of(self.landmarks)

    def _place_of(self, numbers: Array) -> Array:
        sorter = np.argsort(self.columns)
        return sorter[np.searchsorted(self.columns, numbers, sorter=sorter)]

    @property
    def offsets(self) -> Array | None:  # a(x) of every row
        return None if self.centring is None else self.centring.offsets(self.raw)

    @property
    def C(self) -> Array:  # (len(rows), m)
        picked = self.raw if self.places is None else self.raw[:, self.places]
        if self.centring is None:
            return picked
        a = self.offsets
        assert a is not None
        return self.centring.similarity(picked, a, a[self.positions(self.landmarks)])

    @property
    def K_ZZ(self) -> Array:
        return symmetrised(self.C[self.positions(self.landmarks)])

    def similarities(self, numbers: Array) -> Array:
        """K among rows of the panel; only pairs without a column of the panel are evaluated."""
        at = self.positions(numbers)
        known = np.isin(numbers, self.columns)
        K = np.empty((len(numbers), len(numbers)))
        K[:, known] = self.raw[np.ix_(at, self._place_of(numbers[known]))]
        K[known] = K[:, known].T
        if not known.all():
            K[np.ix_(~known, ~known)] = self.square(numbers[~known])
        if self.centring is None:
            return K
        a = self.centring.offsets(self.raw[at])
        return symmetrised(self.centring.similarity(K, a, a))

    @property
    def diagonal(self) -> Array:
        """k(x, x) of every row."""
        if self._diagonal is None:
            if self.centring is not None:
                a = self.offsets
                assert a is not None
                self._diagonal = self.centring.diagonal(a)
            else:
                self._diagonal = self._evaluate_diagonal()
        return self._diagonal

    def _evaluate_diagonal(self) -> Array:
        at = self.positions(self.columns)
        diagonal = np.empty(len(self.rows))
        diagonal[at] = self.raw[at, np.arange(len(at))]
        rest = np.setdiff1d(np.arange(len(self.rows)), at)
        if self.kernel.takes == "precomputed":
            diagonal[rest] = self.kernel.diagonal(self.rows[rest])
        elif len(rest):
            diagonal[rest] = self.kernel.diagonal(self.X.take(self.rows[rest]))
        return diagonal

    def evaluator(self) -> LandmarkColumns:
        """What predicts: from any rows of objects to their similarities to the landmarks."""
        columns = self.kernel.columns(self._as_columns(self.columns))
        if self.centring is None:
            return LandmarkColumns(columns)
        a = self.offsets
        assert a is not None
        offsets = a[self.positions(self.landmarks)]
        return LandmarkColumns(columns, self.places, self.centring, offsets)


def evaluate(function: Any, objects: Objects, numbers: Array, against: Array) -> Array:
    """Kernel values of numbered rows; errors and non-finite values name the rows."""
    if not length(objects):
        return np.empty((0, len(against)))
    try:
        K = function(objects)
    except Exception as error:
        error.add_note(
            f"while evaluating the kernel on rows {numbers[0]}..{numbers[-1]} "
            f"against {len(against)} landmarks; no result of this block was kept"
        )
        raise
    require_finite(K, numbers, against)
    return np.asarray(K)


def require_finite(K: Array, numbers: Array, against: Array) -> None:
    """ValueError that names the first row and landmark whose value is NaN or infinite."""
    if np.isfinite(K.sum()) or np.isfinite(K).all():
        return
    i, j = np.argwhere(~np.isfinite(K))[0]
    what = "NaN" if np.isnan(K[i, j]) else "inf"
    raise ValueError(
        f"kernel produced {what} for row {numbers[i]} (block {numbers[0]}..{numbers[-1]}) and "
        f"landmark row {against[j]}; scale the data or mend the kernel"
    )
