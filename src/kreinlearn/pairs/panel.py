"""Kernel values between a pool of rows and a growing list of columns; no pair evaluated twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kreinlearn.data.tiles import TILE, Scratch, length, row_blocks, tiles
from kreinlearn.kernels.base import Array, Kernel, Objects, symmetrised
from kreinlearn.kernels.dissimilarity import TRANSFORMS, Transform, check_dissimilarities
from kreinlearn.pairs.columns import LandmarkColumns
from kreinlearn.pairs.evaluate import KnownSquares, Rows, evaluate, over, places_of, runs
from kreinlearn.pairs.square import evaluate_square, pairs_among, parts_of, rows_a_part
from kreinlearn.progress import Progress
from kreinlearn.sums.gram import Gram
from kreinlearn.sums.parallel import map_blocks, sum_over_blocks

SAFE_EXPONENT = 100  # kernels within 4^+-50 need no scaling before they are squared
POOL_ROWS = 8192
POOL_PER_LANDMARK = 10


def pool_size(n: int, n_landmarks: int) -> int:
    """Rows whose kernel values are held while landmarks are chosen and the core is fitted."""
    return min(n, max(POOL_ROWS, POOL_PER_LANDMARK * n_landmarks))


class Dropped(NamedTuple):
    """Columns that are no landmarks any more, and their values to all rows of a panel."""

    columns: Array
    raw: Array


class Panel:
    """Rows x columns of kernel values; ``C`` are similarities of the rows to the landmarks.

    ``raw`` holds what the kernel gives; a dissimilarity is transformed, by the columns present
    at ``freeze`` as reference set. Every column is one of the rows, so K_ZZ is only read off.
    """

    def __init__(
        self, kernel: Kernel, X: Rows, rows: Array, *, pool: Array | None = None, workers: int = 1,
        progress: Progress | None = None, store: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.X, self.store = kernel, X, store
        self.progress = Progress() if progress is None else progress
        self.pool = rows if pool is None else pool  # a uniform sample of all rows
        self.workers = workers if kernel.threads else 1
        self.eps = float(np.finfo(np.float64).eps)  # of the kernel values
        self.transform: Transform | None = None
        self.whole = False  # selectors look at all rows of X, streaming those not held
        self._open(rows)

    def _open(self, rows: Array) -> None:
        """Hold these rows, and no column of them yet."""
        self.X.hold(rows)
        self.rows, self.raw = rows, np.empty((len(rows), 0))
        self.columns = self.landmarks = np.empty(0, dtype=np.intp)  # row numbers
        self.dropped = Dropped(self.columns, self.raw)
        self.squares = KnownSquares()  # pairs evaluated that are in no column
        self._diagonal = np.full(len(rows), np.nan)  # k(x, x) where it is known

    def look_at_all_rows(self) -> None:
        """Selectors may choose any row of X: vectors are streamed, values of objects are held."""
        if self.kernel.takes == "vectors":
            self.whole = True
        else:
            self._open(np.arange(length(self.X.X)))

    def positions(self, numbers: Array) -> Array:
        return np.searchsorted(self.rows, numbers)

    def grow(self, new: Array) -> None:
        """Evaluate the columns of rows ``new``; pairs with older columns are mirrored."""
        new = np.asarray(new, dtype=np.intp)
        self._take_back()
        missing = new[~np.isin(new, self.columns)]
        if k := len(missing):
            others = len(self.rows) - len(self.columns) - k
            pairs = others * k + pairs_among(self.kernel, k)
            with self.progress.step("landmarks", others + k, pairs):
                block = self._evaluate(missing)
            self.raw = np.hstack([self.raw, block]) if len(self.columns) else block
            self.columns = np.concatenate([self.columns, missing])
        self.keep(np.concatenate([self.landmarks, new]))

    def _take_back(self) -> None:
        """Columns dropped before are columns again: pairs with them are known."""
        if len(self.dropped.columns):
            self.columns = np.concatenate([self.columns, self.dropped.columns])
            self.raw = np.hstack([self.raw, self.dropped.raw])
            self.dropped = Dropped(self.columns[:0], self.raw[:, :0])

    def keep(self, landmarks: Array) -> None:
        """Drop the columns that are neither landmarks nor in the reference set."""
        wanted = np.isin(self.columns, landmarks)
        self.landmarks = self.columns[wanted]
        if self.transform is not None:
            wanted[: self.transform.n_reference] = True
        if not wanted.all():
            self.dropped = Dropped(self.columns[~wanted], self.raw[:, ~wanted])
            self.columns, self.raw = self.columns[wanted], self.raw[:, wanted]

    def _evaluate(self, new: Array) -> Array:
        at, before = self.positions(new), self.positions(self.columns)
        fresh = np.ones(len(self.rows), dtype=bool)
        fresh[at] = fresh[before] = False
        block = np.empty((len(self.rows), len(new)))
        block[before] = self.raw[at].T
        block[at] = self.square(new)
        if not self.squares.sets:
            self._fill(block, np.flatnonzero(fresh), new)
        else:
            self._fill_unknown(block, np.flatnonzero(fresh), new)
        return block

    def _fill_unknown(self, block: Array, places: Array, new: Array) -> None:
        """The same, where some pairs are known from squares evaluated before."""
        mine = self.squares.memberships(self.rows[places])
        for bits in np.unique(theirs := self.squares.memberships(new)):
            which = np.flatnonzero(theirs == bits)
            part = np.empty((len(block), len(which)))
            self._fill(part, places[(mine & bits) == 0], new[which])
            for shared in np.unique(mine[(mine & bits) != 0] & bits):
                here = places[(mine & bits) == shared]
                part[here] = self.squares.between(self.rows[here], new[which], int(shared))
            block[np.ix_(places, which)] = part[places]

    def _fill(self, block: Array, places: Array, new: Array) -> None:
        """block[places] = k(rows[places], new), straight into runs of neighbours if vectors."""
        columns = self._columns(new)
        direct = self.kernel.takes == "vectors"

        def one_part(here: Any) -> None:
            numbers = self.rows[here]
            A = self.X.take(numbers)
            out = block[here] if direct and getattr(A, "dtype", None) == block.dtype else None
            K = evaluate(partial(columns.of_rows, numbers), A, numbers, new, out)
            if self.kernel.is_dissimilarity:
                check_dissimilarities(K)
            if out is None:
                block[here] = K
            self.progress.add(len(numbers), K.size)

        if direct:
            parts: list[Any] = [slice(*run) for run in runs(places, TILE)]
        else:
            spans = parts_of(len(places), rows_a_part(self.kernel))
            parts = [places[slice(*span)] for span in spans]
        map_blocks(one_part, parts, workers=self.workers)

    def _columns(self, numbers: Array) -> LandmarkColumns:
        """Raw values to rows ``numbers``, by way of the store if there is one."""
        Z = self._as_columns(numbers)
        columns = self.kernel.columns(Z)
        stored = None if self.store is None else self.store.columns(columns, Z, numbers)
        return LandmarkColumns(columns, stored=stored, objects=Z)

    def _as_columns(self, numbers: Array) -> Objects:
        if self.kernel.takes == "precomputed":
            return self.kernel.select(self.X.X, numbers)
        return self.X.take(numbers)

    def square(self, numbers: Array) -> Array:
        """Raw values among rows ``numbers``; pairs not known from a square are evaluated once."""
        bits = self.squares.memberships(numbers)
        if not bits.any():
            return self._evaluate_square(numbers)
        K = np.empty((len(numbers), len(numbers)))
        groups = [np.flatnonzero(bits == g) for g in np.unique(bits)]
        for i, A in enumerate(groups):
            for B in groups[i:]:
                shared = int(bits[A[0]] & bits[B[0]])
                K[np.ix_(A, B)] = part = self._between(numbers[A], numbers[B], shared)
                K[np.ix_(B, A)] = part.T
        return K

    def _between(self, A: Array, B: Array, shared: int) -> Array:
        """Raw values of two groups of rows that are alike in what is known of them."""
        if shared:
            return self.squares.between(A, B, shared)
        if np.array_equal(A, B):
            return self._evaluate_square(A)
        K = evaluate(partial(self._columns(B).of_rows, A), self.X.take(A), A, B)
        self.progress.add(len(A), K.size)
        return K

    def _evaluate_square(self, numbers: Array) -> Array:
        objects = self.X.take(numbers)
        if self.kernel.takes == "precomputed":
            K = symmetrised(self.kernel.columns(self._as_columns(numbers))(objects))
        else:
            own = self._diagonal[self.positions(numbers)]
            K = evaluate_square(
                self.kernel, objects, numbers, own, self.workers, self.progress, self.store
            )
        if K.dtype == np.float32:
            self.eps = float(np.finfo(np.float32).eps)
        if self.kernel.is_dissimilarity:
            check_dissimilarities(K, np.diagonal(K))
        return K

    def freeze(self) -> None:
        """The columns evaluated so far are the reference set of a dissimilarity, from now on."""
        if self.kernel.is_dissimilarity and self.transform is None:
            self.transform = TRANSFORMS["squared"](self.raw[self.positions(self.columns)])

    def refreeze(self) -> None:
        """All columns evaluated by now are the reference set."""
        self.transform = None
        self.freeze()

    def use(self, name: str) -> None:
        """Another similarity of the same distances, by the same reference set."""
        assert self.transform is not None, "only a frozen dissimilarity has transformations"
        n = self.transform.n_reference
        self.transform = TRANSFORMS[name](self.raw[self.positions(self.columns[:n]), :n])

    def replace(self, landmarks: Array) -> None:
        """Other landmarks instead of the present ones; a reference set stays evaluated."""
        if self.whole:
            self._reopen(landmarks)
        elif len(self.rows) > len(self.pool):  # too many rows to hold all landmarks for
            self._restrict(np.union1d(np.union1d(self.pool, landmarks), self.columns))
        self.landmarks = self.landmarks[:0]
        self.grow(landmarks)

    def _reopen(self, landmarks: Array) -> None:
        """Hold the rows of streamed landmarks too; a reference set is evaluated anew."""
        reference = self.columns if self.transform is not None else self.columns[:0]
        self.whole = False
        self._open(np.union1d(self.rows, landmarks))
        self.grow(reference)

    def _restrict(self, rows: Array) -> None:
        at = self.positions(rows)
        self.raw, self.rows, self._diagonal = self.raw[at], rows, self._diagonal[at]

    def add_rows(self, numbers: Array, raw: Array) -> None:
        """Take in rows whose values to all columns were found elsewhere."""
        order = np.argsort(numbers)
        at = self.positions(numbers[order])
        self.rows = np.insert(self.rows, at, numbers[order])
        self.raw = np.insert(self.raw, at, raw[order], axis=0)
        self.dropped = Dropped(self.columns[:0], np.empty((len(self.rows), 0)))
        self._diagonal = np.insert(self._diagonal, at, np.nan)

    @property
    def places(self) -> Array | None:
        """Where the landmarks are among the columns; None if they are the columns, in order."""
        if np.array_equal(self.landmarks, self.columns):
            return None
        return places_of(self.landmarks, self.columns)

    @property
    def offsets(self) -> Array | None:  # a(x) of every row
        return None if self.transform is None else self.transform.offsets(self.raw)

    @property
    def C(self) -> Array:  # (len(rows), m)
        picked = self.raw if self.places is None else self.raw[:, self.places]
        if self.transform is None:
            return picked
        a = self.offsets
        assert a is not None
        return self.transform.similarity(picked, a, a[self.positions(self.landmarks)])

    @property
    def unit(self) -> float:
        """A power of four near the size of C, 1 unless its squares might over- or underflow."""
        C = self.C
        exponent = int(np.frexp(max(np.max(C, initial=0.0), -np.min(C, initial=0.0)))[1])
        return 1.0 if abs(exponent) <= SAFE_EXPONENT else 2.0 ** (2 * (exponent // 2))

    @property
    def candidates(self) -> Array:
        """Numbers of the rows that selectors look at."""
        return np.arange(length(self.X.X)) if self.whole else self.rows

    def gram(self) -> Gram:
        """C'C over the candidates, of C / unit."""
        load, blocks, m = *self._loader(), len(self.landmarks)

        def add(total: Gram, block: Any) -> None:
            total.add(load(block)[1])

        with self._streaming():
            n, zero = len(self.candidates), lambda: Gram.zeros(m)
            return sum_over_blocks(add, blocks, zero, n, workers=self.workers)

    def map_rows(self, function: Callable[[Array], Array], out: Array) -> Array:
        """out = function(C / unit) over the candidates, a tile at a time."""
        load, blocks = self._loader()

        def one_tile(block: Any) -> None:
            here, C = load(block)
            out[here] = function(C)

        with self._streaming():
            map_blocks(one_tile, blocks, workers=self.workers)
        return out

    def _streaming(self) -> AbstractContextManager[None]:
        """A step of all rows, if their values are not held."""
        n = length(self.X.X) if self.whole else 0
        return self.progress.step("landmarks", n, n * len(self.columns)) if n else nullcontext()

    def _loader(self) -> tuple[Callable[[Any], tuple[slice, Array]], Iterable[Any]]:
        """From a block of candidates to their places and C / unit; and all the blocks."""
        unit = self.unit
        if not self.whole:
            C = over(self.C, unit)
            return lambda span: (slice(*span), C[slice(*span)]), tiles(len(C))
        columns, scratch = self.evaluator(), self.scratch()

        def load(block: tuple[Array, Objects]) -> tuple[slice, Array]:
            numbers, A = block
            values, room = partial(columns.of_rows, numbers), scratch.get(A, len(self.columns))
            C = evaluate(values, A, numbers, self.landmarks, room)
            self.progress.add(len(numbers), len(numbers) * len(self.columns))
            return slice(numbers[0], numbers[-1] + 1), over(C, unit)

        return load, row_blocks(self.X.X, self.rows[:0])

    def scratch(self) -> Scratch:
        """Buffers for a kernel that writes to one of the type of X: landmarks are of that type."""
        types = {getattr(objects, "dtype", None) for objects in self.X if objects is not None}
        return Scratch(useful=self.kernel.takes == "vectors" and len(types) == 1)

    @property
    def K_ZZ(self) -> Array:
        return symmetrised(self.C[self.positions(self.landmarks)])

    def similarities(self, numbers: Array) -> Array:
        """K among rows of the panel; only pairs without a column of the panel are evaluated."""
        at = self.positions(numbers)
        columns = np.concatenate([self.columns, self.dropped.columns])
        raw = np.hstack([self.raw[at], self.dropped.raw[at]])
        known = np.isin(numbers, columns)
        K = np.empty((len(numbers), len(numbers)))
        K[:, known] = raw[:, places_of(numbers[known], columns)]
        K[known] = K[:, known].T
        if not known.all():
            n = int(np.count_nonzero(~known))
            with self.progress.step("sampled pairs", n, pairs_among(self.kernel, n)):
                K[np.ix_(~known, ~known)] = square = self.square(numbers[~known])
            if self.kernel.on_objects:  # worth remembering
                self.squares.add(numbers[~known], square)
        if self.transform is None:
            return K
        a = self.transform.offsets(raw)
        return symmetrised(self.transform.similarity(K, a, a))

    @property
    def diagonal(self) -> Array:
        """k(x, x) of every row."""
        if self.transform is not None:
            a = self.offsets
            assert a is not None
            return self.transform.diagonal(a)
        at = self.positions(self.columns)
        self._diagonal[at] = self.raw[at, np.arange(len(at))]
        unknown = np.flatnonzero(np.isnan(self._diagonal))
        if len(unknown):
            self._diagonal[unknown] = self._evaluate_diagonal(self.rows[unknown])
        return self._diagonal

    def _evaluate_diagonal(self, numbers: Array) -> Array:
        if self.kernel.takes == "precomputed":
            return self.kernel.diagonal(numbers)
        values = self._own_values
        if self.store is not None:
            values = partial(self.store.diagonal, numbers)
        return evaluate(values, self.X.take(numbers), numbers, np.array(["itself"]))[:, 0]

    def _own_values(self, objects: Objects) -> Array:
        return self.kernel.diagonal(objects)[:, None]

    def evaluator(self) -> LandmarkColumns:
        """What predicts: from any rows of objects to their similarities to the landmarks."""
        columns = self._columns(self.columns)
        if self.transform is None:
            return columns
        a = self.offsets
        assert a is not None
        offsets = a[self.positions(self.landmarks)]
        return replace(columns, landmarks=self.places, transform=self.transform, offsets=offsets)
