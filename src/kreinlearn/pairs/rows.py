"""The numbered objects of a fit, with their targets, and how the work on them is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length

from kreinlearn.data.memory import Resources, budget_bytes, require_memory
from kreinlearn.data.tiles import Part, Read, Source, blocks_to_read, length, row_bytes, take
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.progress import Progress
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import (
    ColumnSums,
    Tally,
    map_blocks,
    serial_blas,
    spans_of,
    sum_over_blocks,
    sums_of_columns,
    tally_of,
    worker_count,
)

if TYPE_CHECKING:
    from kreinlearn.pairs.store.evaluation import Stored

STORED = "is_kept_in_store"  # an attribute of errors after which a store has the finished values


class Work(Protocol):
    """What a pass does with one block of rows; it is the same in every thread and process."""

    @property
    def spare(self) -> int:
        """How many sums may wait for those of earlier rows."""

    @property
    def block_rows(self) -> int:
        """How many rows are evaluated at once: those of one tile, or of several."""

    @property
    def zero(self) -> Callable[[], Any]:
        """Makes an empty sum."""

    @property
    def scratch(self) -> Callable[[], Any]:
        """Makes buffers, which threads do not share."""

    @property
    def add(self) -> Callable[..., Array]:
        """Adds a block to a sum: ``add(total, numbers, objects, targets, scratch)``."""


class ValueWork(Work, Protocol):
    """The same, where the values of a block can be had without a sum."""

    @property
    def values(self) -> Callable[..., Array]:
        """Values of a block: ``values(numbers, objects, scratch)``."""


class Rows:
    """Objects by row number; numbers below zero are landmarks from outside X.

    The targets and weights that belong to the rows are arrays here. Rows on other machines keep
    theirs beside the rows, and answer the same questions (see ``distributed.rows``).
    """

    here = True  # whether the rows are in this process

    def __init__(self, X: Objects, outside: Objects | None = None) -> None:
        self.X, self.outside = X, outside
        self.n = length(X)
        self.are_dense_vectors = isinstance(X, np.ndarray | Source) and X.ndim == 2

    def __len__(self) -> int:
        return self.n

    @property
    def row_bytes(self) -> int:
        """Bytes of one row that is copied when it is read."""
        return row_bytes(self.X)

    def with_outside(self, outside: Objects | None) -> Rows:
        """The same rows, with landmarks from outside X, if any, numbered from -len(outside) on."""
        return self if outside is None else type(self)(self.X, outside)

    def fetch(self, numbers: Array) -> None:
        """Bring rows here that will be asked for a few at a time."""

    def take(self, numbers: Array) -> Objects:
        """Objects in the order of the numbers, of which those below zero come first."""
        away = numbers < 0
        if not away.any():
            return take(self.X, numbers)
        assert self.outside is not None, "numbers below zero are landmarks from outside X"
        return joined([take(self.outside, numbers[away]), take(self.X, numbers[~away])])

    def fit_kernel(self, kernel: Kernel, n_jobs: int | None, rng: np.random.Generator) -> Kernel:
        """The kernel adapted to the rows, to be evaluated in so many processes."""
        jobs = 1 if n_jobs is None else worker_count(n_jobs)
        if jobs > 1:
            kernel = kernel.with_processes(jobs)
        return kernel.fit(self.X, rng)

    def sum(
        self, work: Work, targets: Targets, left_out: Array, *, workers: int = 1,
        keep: Any = None, seen: Callable[[Array, Array], None] | None = None,
    ) -> Any:  # fmt: skip
        """The sum of ``work`` over all rows that are not left out.

        ``keep[numbers]`` takes the values that ``work`` returns for each block, and ``seen`` is
        called with them.
        """
        scratch = work.scratch()

        def add(total: Any, block: tuple[int, Read, Targets]) -> None:
            _, read, of_span = block
            numbers, objects = read()
            values = work.add(total, numbers, objects, of_span, scratch)
            if keep is not None:
                keep[numbers] = values
            if seen is not None:
                seen(numbers, values)

        def blocks() -> Iterator[tuple[int, Read, Targets]]:
            for start, stop in spans_of(len(self)):
                rows, of_span = Part(self.X, start, stop), targets.between(start, stop)
                order, size = of_span.by_group, work.block_rows
                for first, read in blocks_to_read(rows, left_out, order, start, size):
                    yield first, read, of_span

        return sum_over_blocks(
            add, blocks(), work.zero, len(self), workers=workers, spare=work.spare
        )

    def map(
        self, work: ValueWork, function: Callable[[Array], Array], out: Array, left_out: Array, *,
        workers: int = 1, keep: Any = None, seen: Callable[[Array, Array], None] | None = None,
    ) -> None:  # fmt: skip
        """Write ``function(values)`` of all rows that are not left out to ``out``, by number.

        The values are those of ``work``. Rows on other machines may have kept them in ``keep``.
        """
        scratch = work.scratch()

        def one_tile(block: tuple[int, Read]) -> None:
            numbers, A = block[1]()
            values = work.values(numbers, A, scratch)
            out[numbers] = function(values)
            if seen is not None:
                seen(numbers, values)

        map_blocks(one_tile, blocks_to_read(self.X, left_out), workers=workers)

    # Targets and weights

    def column(self, values: Any, check: Callable[..., Array], name: str) -> Array:
        """Targets or weights, one for each row, as ``check`` returns them."""
        if name == "y":
            check_consistent_length(self, values)
        return check(values)

    def mapped(
        self, column: Array, function: Callable[[Array], Array], dtype: Any, width: int | None
    ) -> Array:
        """``function`` applied to targets.

        Rows on other machines need to know the type and the number of columns of the result.
        """
        return function(column)

    def require_memory(self, n_bytes: int, budget: float, what: str, remedy: str) -> None:
        """Raise MemoryError before something of all rows that does not fit the budget here."""
        require_memory(n_bytes, budget, what, remedy)

    def tally(self, labels: Array, weights: Array | None) -> Tally:
        """The labels that occur, how often, and their weight."""
        return tally_of(labels, weights)

    def rows_of_classes(self, labels: Array, wanted: Array) -> tuple[Array, Array]:
        """The numbers and labels of the rows of some classes; ``wanted`` has a bool for each."""
        numbers = np.flatnonzero(wanted[labels])
        return numbers, labels[numbers]

    def column_sums(self, column: Array, weights: Array | None) -> ColumnSums:
        """Weighted sums of targets or weights."""
        return sums_of_columns(column, weights)

    def weights_by_class(
        self, labels: Array, weights: Array | None, classes: Array, of_classes: Array
    ) -> Array:
        """The weight of each row times that of its class."""
        by_class = of_classes[np.searchsorted(classes, labels)]
        return by_class if weights is None else by_class * weights

    def weighted_rows(self, weights: Array | None) -> Array | None:
        """The rows of positive weight; None if all rows have one."""
        if weights is None or np.all(weights):
            return None
        return np.flatnonzero(weights)

    def store(self, path: Any, kernel: Kernel) -> AbstractContextManager[Stored]:
        """The kernel values of the rows on disk."""
        from kreinlearn.pairs.store.opening import stored

        return stored(path, kernel, self.X, self.outside)

    def value_store(self, n_bytes: int, session: Session) -> Any:
        """Where kernel values of all rows are kept between the steps of a solver.

        None says that this is up to the solver, as the rows are in this process.
        """


def joined(parts: Sequence[Objects]) -> Objects:
    """Rows one after the other; lists stay lists."""
    if len(parts) == 1:
        return parts[0]
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [x for part in parts for x in part]


@dataclass(frozen=True)
class Session:
    """Threads, memory, store and progress of one fit."""

    workers: int = 1
    budget: int = field(default_factory=lambda: budget_bytes(None))  # bytes
    budget_given: bool = False  # whether the budget is the user's, or a share of the free memory
    progress: Progress = field(default_factory=Progress)
    store: Stored | None = None  # of kernel values on disk
    rng: np.random.Generator = field(default_factory=np.random.default_rng)  # of all draws

    def require_memory(self, n_bytes: int, what: str, remedy: str) -> None:
        """Raise MemoryError before an allocation that does not fit the budget."""
        require_memory(n_bytes, self.budget, what, remedy)


@contextmanager
def open_session(
    kernel: Kernel, rows: Rows, resources: Resources, n_jobs: int | None, progress: Progress,
    rng: np.random.Generator,
) -> Iterator[Session]:  # fmt: skip
    """How the work of one fit is done; a store is closed at the end.

    BLAS has one thread inside, as our workers are the threads.
    """
    workers = worker_count(n_jobs)  # as many as BLAS may have, before it is limited below
    store: Any = nullcontext()
    if resources.store is not None:
        store = rows.store(resources.store, kernel)
    with store as opened, serial_blas():
        yield Session(
            workers,
            budget_bytes(resources.memory_budget),
            resources.memory_budget is not None,
            progress,
            opened,
            rng=rng,
        )
