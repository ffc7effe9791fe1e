"""Kernel values of the rows of a fit: the only caller of a kernel.

``Pairs`` evaluates them, and ``Sample`` is the frozen value that the phases of a fit hand on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from kreinlearn.data.memory import Resources
from kreinlearn.data.tiles import Scratch, is_everything
from kreinlearn.data.validation import asymmetry_of
from kreinlearn.kernels.base import Array, Kernel, Objects, symmetrised
from kreinlearn.kernels.dissimilarity import (
    OfDistanceAlone,
    Transform,
    check_dissimilarities,
    make_transform,
)
from kreinlearn.pairs.evaluate import (
    LandmarkColumns,
    announce,
    diagonal,
    evaluate,
    evaluate_square,
    pair_seconds,
    pairs_among,
    places_of,
    rows_per_block,
    scaled,
    spans_of,
)
from kreinlearn.pairs.packed import SHARE, PackedRows
from kreinlearn.pairs.probe import COUNTED, warn_of_probe
from kreinlearn.pairs.rows import Rows, Session, open_session
from kreinlearn.progress import Progress
from kreinlearn.sums.parallel import map_blocks

SAFE_EXPONENT = 100  # kernels within 4^+-50 need no scaling before they are squared
NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Sample:
    """Kernel values of some rows to some columns, and which of the columns are landmarks.

    ``raw`` holds what the kernel gives, ``C`` the similarities of the rows to the landmarks. A
    dissimilarity is transformed by its reference set, which are the first ``n_reference`` columns.
    Every column is also one of the rows, so that K_ZZ can be read off.
    """

    rows: Array  # (r,) sorted row numbers; those below zero are landmarks from outside X
    pool: Array  # row numbers: a uniform sample of all rows
    columns: Array  # (c,) row numbers of all evaluated columns
    raw: Array  # (r, c)
    landmarks: Array  # (m,) row numbers, in the order of the columns
    transform: Transform | None = None
    streams: bool = False  # landmarks are chosen among all rows, which are evaluated as a stream
    salt: int = 0  # of the keys by which rows were drawn for the pool
    least: int = 0  # rows that are looked at for the first landmarks, if there are as many

    @classmethod
    def empty(cls, rows: Array, pool: Array | None = None) -> Sample:
        """These rows, and no column yet."""
        return cls(rows, rows if pool is None else pool, NONE, np.empty((len(rows), 0)), NONE)

    # Values

    @cached_property
    def offsets(self) -> Array | None:
        """a(x) of every row, which a transform needs beside the distance."""
        return None if self.transform is None else self.transform.offsets(self.raw)

    @cached_property
    def C(self) -> Array:  # (r, m)
        """Similarities of the rows to the landmarks."""
        picked = self.raw
        if not np.array_equal(self.landmarks, self.columns):
            picked = self.raw[:, places_of(self.landmarks, self.columns)]
        if self.transform is None:
            return picked
        a = self.offsets
        assert a is not None
        return self.transform.similarity(picked, a, a[self.positions(self.landmarks)])

    @property
    def K_ZZ(self) -> Array:  # (m, m)
        return symmetrised(self.C[self.positions(self.landmarks)])

    @cached_property
    def unit(self) -> float:
        """A power of four near the size of C, and 1 unless squares might over- or underflow."""
        return unit_of(self.C)

    @property
    def scaled(self) -> Array:  # (r, m)
        """C / unit; C itself if the unit is 1."""
        return scaled(self.C, self.unit)

    @property
    def is_square(self) -> bool:
        """Whether the rows, the columns and the landmarks are the same objects in one order."""
        same = np.array_equal(self.rows, self.columns)
        return same and np.array_equal(self.columns, self.landmarks)

    def positions(self, numbers: Array) -> Array:
        """The positions in ``rows`` of rows with the given numbers."""
        return np.searchsorted(self.rows, numbers)

    @property
    def inside(self) -> Array:
        """Positions of the rows that belong to X."""
        return np.flatnonzero(self.rows >= 0)

    @cached_property
    def used(self) -> Array:  # (c,) bool
        """The columns that a prediction needs: the landmarks and a reference set."""
        used = np.isin(self.columns, self.landmarks)
        if self.transform is not None:
            used[: self.transform.n_reference] = True
        return used

    # Values among landmarks, by a transformation that is made of some of them alone

    def square(self, name: str, places: Array | None = None) -> Array:
        """Similarities among the landmarks, or among those at some places; not shared memory.

        Of some places the dissimilarities are transformed as ``name`` says.
        """
        if places is not None:
            raw = self.raw[np.ix_(self.positions(self.landmarks[places]), places)]
            return similarities_among(raw, None if self.transform is None else name)
        if not self.is_square or self.transform is None:
            return self.K_ZZ
        offsets = self.offsets  # not by way of C, which would keep another matrix
        assert offsets is not None
        return symmetrised(self.transform.similarity(self.raw, offsets, offsets))

    def split(self, name: str, train: Array, valid: Array) -> tuple[Array, Array]:
        """Similarities among the landmarks of a training part, and of a validation part to it."""
        at, at_valid = (self.positions(self.landmarks[part]) for part in (train, valid))
        raw, rows = self.raw[np.ix_(at, train)], self.raw[np.ix_(at_valid, train)]
        return similarities_of_parts(raw, rows, None if self.transform is None else name)

    # Other samples made of this one

    def with_landmarks(self, landmarks: Array) -> Sample:
        """The same values with other landmarks, all of which are evaluated columns."""
        return replace(self, landmarks=self.columns[np.isin(self.columns, landmarks)])

    def without_other_columns(self) -> Sample:
        """The columns of the landmarks alone, if similarities to them are made of nothing else."""
        here, transform = np.isin(self.columns, self.landmarks), self.transform
        if isinstance(transform, OfDistanceAlone):
            transform = replace(transform, n_reference=int(here.sum()))
        elif transform is not None:
            return self
        return replace(self, columns=self.columns[here], raw=self.raw[:, here], transform=transform)

    def referring_to_all(self, name: str = "squared") -> Sample:
        """A dissimilarity transformed by all columns evaluated so far."""
        return replace(self, transform=make_transform(name, self._among_columns(len(self.columns))))

    def using(self, name: str) -> Sample:
        """Another similarity of the same distances, by the same reference set."""
        assert self.transform is not None, "only a dissimilarity has transformations"
        D_RR = self._among_columns(self.transform.n_reference)
        return replace(self, transform=make_transform(name, D_RR))

    def _among_columns(self, n: int) -> Array:
        """Values among the first n columns: a view if they are also the first rows."""
        at = self.positions(self.columns[:n])
        return self.raw[:n, :n] if is_everything(at, n) else self.raw[at, :n]

    def restricted(self, rows: Array) -> Sample:
        """Fewer rows."""
        return replace(self, rows=rows, raw=self.raw[self.positions(rows)])

    def with_rows(self, numbers: Array, raw: Array) -> Sample:
        """More rows, whose values to the used columns were evaluated elsewhere."""
        order = np.argsort(numbers)
        at = self.positions(numbers[order])
        return replace(
            self,
            rows=np.insert(self.rows, at, numbers[order]),
            raw=np.insert(self.raw[:, self.used], at, raw[order], axis=0),
            columns=self.columns[self.used],
        )


def similarities_among(raw: Array, name: str | None) -> Array:
    """What a transformation, if one is named, makes of the values among some objects alone."""
    if name is None:
        return symmetrised(raw)
    transform = make_transform(name, raw)
    a = transform.offsets(raw)
    return symmetrised(transform.similarity(raw, a, a))


def similarities_of_parts(raw: Array, rows: Array, name: str | None) -> tuple[Array, Array]:
    """The same, and what it makes of the values of other objects to these; not shared memory."""
    if name is None:
        return symmetrised(raw), np.array(rows)
    transform = make_transform(name, raw)
    a, a_rows = transform.offsets(raw), transform.offsets(rows)
    K, K_rows = transform.similarity(raw, a, a), transform.similarity(rows, a_rows, a)
    return symmetrised(K), K_rows


def unit_of(C: Array) -> float:
    """A power of four near the largest magnitude, and 1 unless squares might over- or underflow."""
    return unit_near(max(np.max(C, initial=0.0), -np.min(C, initial=0.0)))


def unit_near(largest: float) -> float:
    """A power of four near a magnitude, and 1 unless its square might over- or underflow."""
    exponent = int(np.frexp(largest)[1])
    return 1.0 if abs(exponent) <= SAFE_EXPONENT else 2.0 ** (2 * (exponent // 2))


def over_unit(K: Array, unit: float | None = None) -> tuple[Array, float]:
    """K / unit, and the unit; by default it is that of K itself."""
    unit = unit_of(K) if unit is None else unit
    return scaled(K, unit), unit


class Square(NamedTuple):
    """The kernel values among some rows."""

    numbers: Array  # (k,) sorted
    values: Array  # (k, k)


class KnownPairs:
    """Kernel values among sets of rows: a pair is known if one of the sets contains both rows.

    The membership of a row is a number whose bits say which sets contain it, so that two rows
    form a known pair exactly if their memberships have a bit in common.
    """

    def __init__(self) -> None:
        self.squares: list[Square] = []
        self.own = dict[int, float]()  # k(x, x) by row number

    def add(self, numbers: Array, values: Array) -> None:
        order = np.argsort(numbers)
        self.squares.append(Square(numbers[order], values[np.ix_(order, order)]))

    def memberships(self, numbers: Array) -> Array:
        bits = np.zeros(len(numbers), dtype=np.int64)
        for i, square in enumerate(self.squares):
            bits |= np.isin(numbers, square.numbers).astype(np.int64) << i
        return bits

    def between(self, A: Array, B: Array, shared: int) -> Array:
        """The values of A x B, whose memberships all contain one of the ``shared`` bits."""
        square = self.squares[(shared & -shared).bit_length() - 1]
        at = np.ix_(np.searchsorted(square.numbers, A), np.searchsorted(square.numbers, B))
        return np.asarray(square.values[at])

    def self_similarities(self, numbers: Array) -> Array:
        """k(x, x) of each row, NaN where it is not known."""
        return np.array([self.own.get(i, np.nan) for i in numbers.tolist()])


@contextmanager
def open_pairs(
    kernel: Kernel, rows: Rows, resources: Resources, n_jobs: int | None, progress: Progress,
    rng: np.random.Generator,
) -> Iterator[Pairs]:  # fmt: skip
    """The kernel values of one fit, whose store is closed at the end; see ``open_session``."""
    with open_session(kernel, rows, resources, n_jobs, progress, rng) as session:
        yield Pairs(kernel, rows, session)


class Pairs:
    """From row numbers to kernel values; no pair of a costly kernel is evaluated twice.

    A sample is grown by columns into a new sample, which holds their values. Pairs that belong to
    no column are remembered here.
    """

    def __init__(self, kernel: Kernel, rows: Rows, session: Session) -> None:
        self.kernel, self.rows, self.session = kernel, rows, session
        self.workers = session.workers if kernel.threads else 1
        self.known = KnownPairs()
        packers = kernel.packers if session.store is None else []  # which may have all values
        self.packed = PackedRows(packers, rows, SHARE * session.budget)
        self.n = rows.n  # the number of all rows
        self.is_matrix = kernel.domain.is_matrix  # the values are given
        self.in_place = kernel.writes_in_place  # the kernel writes to buffers

    def require_memory(self, n_bytes: int, what: str, remedy: str) -> None:
        """Raise MemoryError before an allocation that does not fit the budget."""
        self.session.require_memory(n_bytes, what, remedy)

    # What values cost, and whether they can be trusted

    def among(self, n: int) -> int:
        """How many evaluations the pairs among n objects take."""
        return pairs_among(self.kernel, n)

    @property
    def budget(self) -> int:
        """Bytes for a fit, beside the values of each kernel that a sum is made of."""
        return self.session.budget - 8 * self.n**2 * len(self.kernel.inner)

    def seconds(self, *, of_each: bool = False) -> float:
        """About how long one value takes; ``of_each`` kernel in a sum, on average."""
        seconds = pair_seconds(self.kernel, self.rows.X)
        return seconds / max(len(self.kernel.inner), 1) if of_each else seconds

    def announce(self, count: int, at_least: str = "") -> None:
        """Say beforehand how long so many values of a costly kernel will take, if that is long."""
        X, session = self.rows.X, self.session
        announce(session.progress, self.kernel, X, X, count, session.workers, at_least)

    def probe(self, sample: Sample, used: str = COUNTED) -> None:
        """Warn of what is wrong with a user's own functions in the kernel."""
        if self.kernel.untrusted:
            own = np.random.default_rng(0)  # folds are those that a matrix of these values gets
            Z = self.rows.take(sample.landmarks)
            warn_of_probe(self.kernel, Z, sample.K_ZZ, own, used)

    def sample(self, rows: Array, pool: Array | None = None) -> Sample:
        """A sample of these rows, with no column yet."""
        self.rows.fetch(rows)
        self.packed.add(rows, self.workers)
        return Sample.empty(rows, pool)

    def with_reference(self, sample: Sample) -> Sample:
        """The columns so far become the reference set of a dissimilarity, unless it has one."""
        if self.kernel.is_dissimilarity and sample.transform is None:
            return sample.referring_to_all()
        return sample

    def take(self, numbers: Array) -> Objects:
        """The objects of rows."""
        return self.rows.take(numbers)

    def _objects(self, numbers: Array) -> Objects:
        """The same for the kernel, with the features of those that are packed."""
        return self.packed.of(numbers, self.rows.take(numbers))

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
        cost = others * k + self.among(k)
        at, before = sample.positions(missing), sample.positions(sample.columns)
        fresh = np.ones(len(sample.rows), dtype=bool)
        fresh[at] = fresh[before] = False
        raw = np.empty((len(sample.rows), len(sample.columns) + k))
        raw[:, :-k], block = sample.raw, raw[:, -k:]
        with self.session.progress.step("landmarks", others + k, cost):
            block[before] = sample.raw[at].T  # pairs with older columns are mirrored
            block[at] = self.square(missing)
            self._fill_unknown(block, sample.rows, np.flatnonzero(fresh), missing)
        columns = np.concatenate([sample.columns, missing])
        return replace(sample, columns=columns, raw=raw).with_landmarks(landmarks)

    def _complete(self, sample: Sample, landmarks: Array) -> Sample:
        """The sample with all its rows as landmarks; the matrix of their pairs is not copied."""
        rows = sample.rows
        with self.session.progress.step("landmarks", len(rows), self.among(len(rows))):
            raw = self.square(rows) if self.known.squares else self._evaluated_square(rows)
        return replace(sample, columns=rows, raw=raw).with_landmarks(landmarks)

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
        """block[places] = k(rows[places], new)."""
        columns, scratch = self.columns(new), self.scratch()

        def one_part(span: tuple[int, int]) -> None:
            here = places[slice(*span)]
            numbers = rows[here]
            A = self._objects(numbers)
            values, room = partial(columns.raw_of_rows, numbers), scratch.get(A, len(new))
            K = evaluate(values, A, numbers, new, room, self.session.progress)
            if self.kernel.is_dissimilarity:
                check_dissimilarities(K)
            block[here] = K

        spans = spans_of(len(places), rows_per_block(self.kernel))
        map_blocks(one_part, spans, workers=self.workers)

    def columns(self, numbers: Array) -> LandmarkColumns:
        """Values to the rows ``numbers``, by way of the store if there is one."""
        Z = self._as_columns(numbers)
        columns, store = self.kernel.columns(self.packed.of(numbers, Z)), self.session.store
        stored = None if store is None else store.columns(columns, Z, numbers)
        return LandmarkColumns(columns, stored=stored, objects=Z)

    def _as_columns(self, numbers: Array) -> Objects:
        """What the kernel takes as columns: objects, or column numbers of a given matrix."""
        if self.is_matrix:
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
        """Buffers for the values of a tile, if the kernel writes to them."""
        return Scratch(useful=self.in_place)

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
        values, progress = partial(self.columns(B).raw_of_rows, A), self.session.progress
        return evaluate(values, self._objects(A), A, B, progress=progress)

    def _evaluated_square(self, numbers: Array) -> Array:
        objects, kernel = self._objects(numbers), self.kernel
        if self.is_matrix:
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
            cost = self.among(len(rest))
            with self.session.progress.step("sampled pairs", len(rest), cost):
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
        if self.is_matrix:
            return self.kernel.diagonal(numbers)
        store = self.session.store
        values = partial(store.diagonal, numbers) if store else partial(diagonal, self.kernel)
        return evaluate(values, self._objects(numbers), numbers, np.array(["itself"]))[:, 0]
