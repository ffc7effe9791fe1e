"""Kernel values of the rows of a fit: the only caller of a kernel."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import TILE, Scratch
from kreinlearn.data.validation import asymmetry_of
from kreinlearn.kernels.base import Array, Kernel, Objects, symmetrised
from kreinlearn.kernels.dissimilarity import check_dissimilarities
from kreinlearn.pairs.evaluate import (
    LandmarkColumns,
    evaluate,
    evaluate_square,
    neighbouring_spans,
    pairs_among,
    places_of,
    rows_per_block,
    spans_of,
)
from kreinlearn.pairs.rows import Rows, Session
from kreinlearn.pairs.sample import KnownPairs, Sample
from kreinlearn.sums.parallel import map_blocks


class Pairs:
    """From row numbers to kernel values; no pair of a costly kernel is evaluated twice.

    A sample is grown by columns into a new sample, which holds their values. Pairs that belong to
    no column are remembered here.
    """

    def __init__(self, kernel: Kernel, rows: Rows, session: Session) -> None:
        self.kernel, self.rows, self.session = kernel, rows, session
        self.workers = session.workers if kernel.threads else 1
        self.known = KnownPairs()

    @property
    def n(self) -> int:
        """The number of all rows."""
        return len(self.rows)

    def require_memory(self, n_bytes: int, what: str, remedy: str) -> None:
        """Raise MemoryError before an allocation that does not fit the budget."""
        require_memory(n_bytes, self.session.budget, what, remedy)

    def sample(self, rows: Array, pool: Array | None = None) -> Sample:
        """A sample of these rows, with no column yet."""
        self.rows.fetch(rows)
        return Sample.empty(rows, pool)

    def with_reference(self, sample: Sample) -> Sample:
        """The columns so far become the reference set of a dissimilarity, unless it has one."""
        if self.kernel.is_dissimilarity and sample.transform is None:
            return sample.referring_to_all()
        return sample

    # Columns

    def grown(self, sample: Sample, new: Array) -> Sample:
        """The sample with the rows ``new`` as further landmarks."""
        new = np.asarray(new, dtype=np.intp)
        landmarks = np.concatenate([sample.landmarks, new])
        missing = new[~np.isin(new, sample.columns)]
        if not len(missing):
            return sample.with_landmarks(landmarks)
        if not len(sample.columns) and np.array_equal(missing, sample.rows):
            return self._complete(sample, landmarks)
        k, others = len(missing), len(sample.rows) - len(sample.columns) - len(missing)
        cost = others * k + pairs_among(self.kernel, k)
        at, before = sample.positions(missing), sample.positions(sample.columns)
        fresh = np.ones(len(sample.rows), dtype=bool)
        fresh[at] = fresh[before] = False
        block = np.empty((len(sample.rows), k))
        with self.session.progress.step("landmarks", others + k, cost):
            block[before] = sample.raw[at].T  # pairs with older columns are mirrored
            block[at] = square = self.square(missing)
            self._fill_unknown(block, sample.rows, np.flatnonzero(fresh), missing)
        raw = np.hstack([sample.raw, block]) if len(sample.columns) else block
        columns = np.concatenate([sample.columns, missing])
        return sample.with_columns(columns, raw, square.dtype).with_landmarks(landmarks)

    def _complete(self, sample: Sample, landmarks: Array) -> Sample:
        """The sample with all its rows as landmarks; the matrix of their pairs is not copied."""
        rows = sample.rows
        with self.session.progress.step(
            "landmarks", len(rows), pairs_among(self.kernel, len(rows))
        ):
            square = self.square(rows)
        raw = square.astype(np.float64, copy=False)
        return sample.with_columns(rows, raw, square.dtype).with_landmarks(landmarks)

    def _fill_unknown(self, block: Array, rows: Array, places: Array, new: Array) -> None:
        """block[places] = k(rows[places], new); pairs that are known are not evaluated."""
        if not self.known.squares:
            return self._fill(block, rows, places, new)
        mine = self.known.memberships(rows[places])
        for bits in np.unique(theirs := self.known.memberships(new)):
            which = np.flatnonzero(theirs == bits)
            part = np.empty((len(block), len(which)))
            self._fill(part, rows, places[(mine & bits) == 0], new[which])
            for shared in np.unique(mine[(mine & bits) != 0] & bits):
                here = places[(mine & bits) == shared]
                part[here] = self.known.between(rows[here], new[which], int(shared))
            block[np.ix_(places, which)] = part[places]

    def _fill(self, block: Array, rows: Array, places: Array, new: Array) -> None:
        """block[places] = k(rows[places], new), written in place where the kernel can do that."""
        columns, direct = self.columns(new), self.kernel.writes_in_place

        def one_part(here: Any) -> None:
            numbers = rows[here]
            A = self.rows.take(numbers)
            out = block[here] if direct and getattr(A, "dtype", None) == block.dtype else None
            K = evaluate(partial(columns.raw_of_rows, numbers), A, numbers, new, out)
            if self.kernel.is_dissimilarity:
                check_dissimilarities(K)
            if out is None:
                block[here] = K
            self.session.progress.add(len(numbers), K.size)

        if direct:
            parts: list[Any] = [slice(*span) for span in neighbouring_spans(places, TILE)]
        else:
            spans = spans_of(len(places), rows_per_block(self.kernel))
            parts = [places[slice(*span)] for span in spans]
        map_blocks(one_part, parts, workers=self.workers)

    def columns(self, numbers: Array) -> LandmarkColumns:
        """Values to the rows ``numbers``, by way of the store if there is one."""
        Z = self._as_columns(numbers)
        columns, store = self.kernel.columns(Z), self.session.store
        stored = None if store is None else store.columns(columns, Z, numbers)
        return LandmarkColumns(columns, stored=stored, objects=Z)

    def _as_columns(self, numbers: Array) -> Objects:
        """What the kernel takes as columns: objects, or column numbers of a given matrix."""
        if self.kernel.domain.is_matrix:
            return self.kernel.select(self.rows.X, numbers)
        return self.rows.take(numbers)

    def evaluator(self, sample: Sample) -> LandmarkColumns:
        """What predicts: from any objects to their similarities to the landmarks."""
        used = sample.columns[sample.used]
        columns = self.columns(used)
        if sample.transform is None:
            return columns
        a = sample.offsets
        assert a is not None
        all_of_them = np.array_equal(sample.landmarks, used)
        return replace(
            columns,
            landmarks=None if all_of_them else places_of(sample.landmarks, used),
            transform=sample.transform,
            offsets=a[sample.positions(sample.landmarks)],
        )

    def scratch(self) -> Scratch:
        """Buffers for the values of a tile, where rows and landmarks are of one float type."""
        both = (self.rows.X, self.rows.outside)
        types = {getattr(objects, "dtype", None) for objects in both if objects is not None}
        return Scratch(useful=self.kernel.writes_in_place and len(types) == 1)

    # Squares

    def square(self, numbers: Array) -> Array:
        """Values among rows; those that are not known are evaluated."""
        bits = self.known.memberships(numbers)
        if not bits.any():
            return self._evaluated_square(numbers)
        K = np.empty((len(numbers), len(numbers)))
        groups = [np.flatnonzero(bits == g) for g in np.unique(bits)]
        for i, A in enumerate(groups):
            for B in groups[i:]:
                shared = int(bits[A[0]] & bits[B[0]])
                K[np.ix_(A, B)] = part = self._between(numbers[A], numbers[B], shared)
                K[np.ix_(B, A)] = part.T
        return K

    def _between(self, A: Array, B: Array, shared: int) -> Array:
        """Values of two groups of rows, each with one membership in the known squares."""
        if shared:
            return self.known.between(A, B, shared)
        if np.array_equal(A, B):
            return self._evaluated_square(A)
        K = evaluate(partial(self.columns(B).raw_of_rows, A), self.rows.take(A), A, B)
        self.session.progress.add(len(A), K.size)
        return K

    def _evaluated_square(self, numbers: Array) -> Array:
        objects, kernel = self.rows.take(numbers), self.kernel
        if kernel.domain.is_matrix:
            K = kernel.columns(self._as_columns(numbers))(objects)
            K = symmetrised(K) if asymmetry_of(K) else K
        else:
            own = self.known.self_similarities(numbers)
            K = evaluate_square(kernel, objects, numbers, own, self.session)
        if kernel.is_dissimilarity:
            check_dissimilarities(K, np.diagonal(K))
        return K

    def similarities(self, sample: Sample, numbers: Array) -> Array:
        """K among rows of a sample; pairs with a column of the sample are read off."""
        raw = sample.raw[sample.positions(numbers)]
        known = np.isin(numbers, sample.columns)
        K = np.empty((len(numbers), len(numbers)))
        K[:, known] = raw[:, places_of(numbers[known], sample.columns)]
        K[known] = K[:, known].T
        if not known.all():
            rest = numbers[~known]
            with self.session.progress.step(
                "sampled pairs", len(rest), pairs_among(self.kernel, len(rest))
            ):
                K[np.ix_(~known, ~known)] = square = self.square(rest)
            if self.kernel.costly:
                self.known.add(rest, square)
        if sample.transform is None:
            return K
        a = sample.transform.offsets(raw)
        return symmetrised(sample.transform.similarity(K, a, a))

    def diagonal(self, sample: Sample) -> Array:
        """k(x, x) of every row of a sample."""
        if sample.transform is not None:
            a = sample.offsets
            assert a is not None
            return sample.transform.diagonal(a)
        at = sample.positions(sample.columns)
        own = self.known.self_similarities(sample.rows)
        own[at] = sample.raw[at, np.arange(len(at))]
        unknown = np.flatnonzero(np.isnan(own))
        if len(unknown):
            own[unknown] = self._evaluated_diagonal(sample.rows[unknown])
        self.known.own.update(zip(sample.rows.tolist(), own.tolist(), strict=True))
        return own

    def _evaluated_diagonal(self, numbers: Array) -> Array:
        if self.kernel.domain.is_matrix:
            return self.kernel.diagonal(numbers)
        values, store = self._own_values, self.session.store
        if store is not None:
            values = partial(store.diagonal, numbers)
        return evaluate(values, self.rows.take(numbers), numbers, np.array(["itself"]))[:, 0]

    def _own_values(self, objects: Objects) -> Array:
        return self.kernel.diagonal(objects)[:, None]
