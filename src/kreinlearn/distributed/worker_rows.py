"""The rows of a fit on other machines: they answer the same questions as ``pairs.rows.Rows``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import gen_batches

from kreinlearn._compat import require_some_weight
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Check, ColumnLike, Delayed
from kreinlearn.distributed.hinge import ValuesOnWorkers, room
from kreinlearn.distributed.rows import DaskRows, rows_of, spread
from kreinlearn.distributed.sums import Span, mapped_tiles
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.vector_columns import evenly
from kreinlearn.pairs.rows import Rows, Session, ValueWork, Work, joined
from kreinlearn.sums.moments import Targets
from kreinlearn.sums.parallel import COLUMN_SPANS, ColumnSums, Tally, spans_of

if TYPE_CHECKING:
    from kreinlearn.pairs.store.evaluation import Stored

AT_ONCE = 2**26  # bytes of results for single rows that come here at a time
AT_LEAST = 16  # spans that the workers of a cluster evaluate at a time, so that all are busy


class WorkerRows(Rows):
    """Rows of a dask collection, which stay on the workers with their targets and weights."""

    here = False
    X: DaskRows

    def fetch(self, numbers: Array) -> None:
        self.X.take(numbers[numbers >= 0])

    def fit_kernel(self, kernel: Kernel, n_jobs: int | None, rng: np.random.Generator) -> Kernel:
        """Fit kernels on objects to a sample of them; every object is checked on its worker."""
        if not kernel.domain.is_objects:
            return kernel.fit(self.X, rng)
        return kernel.fit(self.X.take(evenly(len(self))), rng)

    def sum(
        self, work: Work, targets: Targets, left_out: Array, *, workers: int = 1,
        keep: ValuesOnWorkers | None = None, seen: Callable[[Array, Array], None] | None = None,
    ) -> Any:  # fmt: skip
        """The sum of ``work`` over all rows that are not left out; only the total is sent here.

        ``keep``, if given, may leave the kernel values of the pass on the workers.
        """
        total_of = delayed.task(Span.total) if keep is None else keep.total_of_span
        totals = [total_of(span) for span in self._spans(work, left_out, targets)]
        return (delayed if keep is None else keep).compute(delayed.merged(totals))

    def _spans(self, work: Work, left_out: Array, targets: Targets | None = None) -> Iterator[Span]:
        """The fixed spans of rows that are not all left out, whose parts are delayed."""
        Y, w, groups = (None, None, None) if targets is None else _columns_of(targets)
        shared_work, shared_groups = delayed.constant(work), delayed.constant(groups)
        for start, stop in spans_of(len(self)):
            without = left_out[slice(*np.searchsorted(left_out, [start, stop]))]
            if len(without) < stop - start:
                pieces = (_parts(column, start, stop) for column in (self.X, Y, w))
                yield Span(shared_work, start, stop, without, shared_groups, *pieces)

    def map(
        self, work: ValueWork, function: Callable[[Array], Array], out: Array, left_out: Array, *,
        workers: int = 1, keep: ValuesOnWorkers | None = None,
        seen: Callable[[Array, Array], None] | None = None,
    ) -> None:  # fmt: skip
        """Write ``function(values)`` of all rows that are not left out to ``out``, by number.

        If ``keep`` has the values of an earlier pass over the same rows, none is evaluated again.
        """
        spans, shared_function = list(self._spans(work, left_out)), delayed.constant(function)
        if keep is None or not keep.spans:
            results = [delayed.task(Span.mapped)(span, shared_function) for span in spans]
        else:
            of_tiles = delayed.task(mapped_tiles)
            results = [of_tiles(keep.work, tiles, shared_function) for tiles in keep.spans]
        gather(results, [span.numbers for span in spans], out)

    def column(  # type: ignore[override]
        self, values: ColumnLike, check: Callable[..., Array], name: str
    ) -> DaskRows:
        return column_on_workers(values, self.X, partial(check, block=True), name)

    def mapped(  # type: ignore[override]
        self, column: DaskRows, function: Callable[[Array], Array], dtype: DTypeLike,
        width: int | None,
    ) -> DaskRows:  # fmt: skip
        return column.mapped(function, dtype, width)

    def require_memory(self, n_bytes: int, budget: float, what: str, remedy: str) -> None:
        """Nothing is required for targets, which stay on the workers.

        The few options that collect targets or weights ask for that memory themselves.
        """

    def tally(self, labels: DaskRows, weights: DaskRows | None) -> Tally:  # type: ignore[override]
        return _total_of_columns(Tally.of, labels, weights)

    def rows_of_classes(  # type: ignore[override]
        self, labels: DaskRows, wanted: Array
    ) -> tuple[Array, Array]:
        """The numbers and labels of the rows of some classes; only these are sent here."""
        of_block = delayed.task(_rows_of_classes)
        each = zip(labels.blocks, labels.starts[:-1].tolist(), strict=True)
        parts = [of_block(block, start, wanted) for block, start in each]
        numbers, found = zip(*delayed.compute(delayed.task(list)(parts)), strict=True)
        return np.concatenate(numbers), np.concatenate(found)

    def column_sums(  # type: ignore[override]
        self, column: DaskRows, weights: DaskRows | None
    ) -> ColumnSums:
        return _total_of_columns(ColumnSums.of, column, weights)

    def weights_by_class(  # type: ignore[override]
        self, labels: DaskRows, weights: DaskRows | None, classes: Array, of_classes: Array
    ) -> DaskRows:
        given = [None] * len(labels.blocks) if weights is None else weights.blocks
        of_block = delayed.task(Rows([]).weights_by_class)
        pairs = zip(labels.blocks, given, strict=True)
        blocks = [of_block(y, w, classes, of_classes) for y, w in pairs]
        by_class = DaskRows(blocks, labels.lengths, labels.shape[:1], np.float64)
        by_class.beside = self.X
        return by_class

    def weighted_rows(self, weights: DaskRows | None) -> Array | None:  # type: ignore[override]
        """The rows of positive weight; of blocks with others, one bit for each row is sent here."""
        if weights is None:
            return None
        packed = list(map(delayed.task(_packed), weights.blocks))
        bits = delayed.compute(delayed.task(list)(packed))
        if all(of_block is None for of_block in bits):
            return None
        counted = [
            np.ones(n, bool) if of_block is None else np.unpackbits(of_block, count=n)
            for of_block, n in zip(bits, weights.lengths, strict=True)
        ]
        numbers = np.flatnonzero(np.concatenate(counted))
        require_some_weight(bool(len(numbers)))
        return numbers

    def store(self, path: Any, kernel: Kernel) -> AbstractContextManager[Stored]:
        """The kernel values of the rows on disk, in shards that the workers write."""
        from kreinlearn.distributed.shards import store_of

        return store_of(path, kernel, self)

    def value_store(self, n_bytes: int, session: Session) -> ValuesOnWorkers:
        left = room(session.budget, given=session.budget_given) - self.X.kept_bytes
        return ValuesOnWorkers(keep=n_bytes <= left)


def column_on_workers(values: ColumnLike, X: DaskRows, check: Check, name: str) -> DaskRows:
    """Targets or weights, given as a dask collection or in memory, in the blocks of X."""
    from kreinlearn.distributed.entrance import is_dask

    column: DaskRows | Array
    if is_dask(values):
        column = rows_of(values, partial(_checked, check=check), keep=True)
    else:
        column = check(values)
    if len(column) != len(X):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[len(X), len(column)]}, of X and {name}"
        )
    on_workers = column.with_blocks_of(X) if isinstance(column, DaskRows) else spread(column, X)
    kept = on_workers.persisted()  # several passes ask for them
    kept.beside = X
    return kept


def _checked(block: Objects, check: Check) -> Array:
    """A block of targets or weights; an empty block needs no check."""
    block = delayed.with_length(block)
    return check(block) if len(block) else np.asarray(block)


def gather(results: Sequence[Delayed], numbers: Sequence[Array], out: Array) -> None:
    """Write delayed results for rows to ``out`` by number; at most AT_ONCE bytes come at a time.

    Spans that have more bytes than that wait in the memory of the workers.
    """
    most, start = max(AT_ONCE // max(out[:1].nbytes, 1), 1), 0  # rows at a time
    fewest = AT_LEAST if delayed.on_cluster() else 1
    while start < len(results):
        ends = np.cumsum([len(each) for each in numbers[start:]])
        stop = start + max(fewest, int(np.searchsorted(ends, most, "right")))
        some, places = results[start:stop], numbers[start:stop]
        if sum(map(len, places)) <= most:
            out[np.concatenate(places)] = delayed.compute(delayed.task(joined)(list(some)))
        else:
            kept, _ = delayed.persist(some, delayed.constant(None))
            for result, their in zip(kept, places, strict=True):
                for part in gen_batches(len(their), most):
                    out[their[part]] = delayed.compute(delayed.task(getitem)(result, part))
        start = stop


def _columns_of(targets: Targets) -> tuple[Any, Any, Any]:
    return targets.Y, targets.weights, targets.groups


def _rows_of_classes(labels: Array, start: int, wanted: Array) -> tuple[Array, Array]:
    """The same of a block."""
    places, found = Rows([]).rows_of_classes(labels, wanted)
    return places + start, found


def _packed(weights: Array) -> Array | None:
    """One bit for each row, whether it has a weight, or None if all rows of a block have one."""
    has = weights > 0
    return None if has.all() else np.packbits(has)


def _piece(column: DaskRows | Array | None, start: int, stop: int) -> Delayed | Array | None:
    """The rows start..stop of a column."""
    if isinstance(column, DaskRows):
        return column.piece(start, stop)
    return None if column is None else column[start:stop]


def _parts(column: DaskRows | Array | None, start: int, stop: int) -> list[Any] | None:
    """The same in parts, which a task joins."""
    if isinstance(column, DaskRows):
        return column.parts(start, stop)
    return None if column is None else [column[start:stop]]


def _total_of_columns(function: Callable[..., Any], y: DaskRows, w: DaskRows | None) -> Any:
    """The sum of ``function`` over fixed spans of rows of targets and their weights."""
    of_span = delayed.task(function)
    spans = spans_of(len(y), *COLUMN_SPANS)
    results = [of_span(y.piece(*span), _piece(w, *span)) for span in spans]
    return delayed.compute(delayed.merged(results))
