"""The blocks of a dask collection as delayed objects, and tasks that read, join and add them."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import joblib
import numpy as np
from numpy.typing import ArrayLike

from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.progress import name_of
from kreinlearn.sums.parallel import FAN_IN, serial_blas

Delayed: TypeAlias = Any  # an object of dask.delayed, which is not imported for its name
Collection: TypeAlias = Any  # a dask array, frame, series or bag, or a list of delayed blocks
ColumnLike: TypeAlias = Collection | ArrayLike  # targets or weights, as given to an estimator
Check: TypeAlias = Callable[[Objects], Array]  # validates a block of them as it was given

SMALL = 2**15  # bytes that are sent with every task


class DelayedBlocks(NamedTuple):
    """The delayed blocks of a collection, and what is known of their rows without computing."""

    blocks: list[Delayed]
    lengths: list[int] | None  # rows of each block; None if unknown
    width: int | None = None  # number of columns; None for one dimension, or if unknown
    dtype: np.dtype[Any] | None = None


def blocks_of(X: Collection) -> DelayedBlocks:
    """The blocks of a dask array, frame, series or bag, or of a list of delayed blocks."""
    if isinstance(X, list | tuple):
        return DelayedBlocks(list(X), None)
    if hasattr(X, "chunks"):
        if X.ndim > 1 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1}, method="tasks")  # p2p would start again when a worker dies
        lengths = None if np.isnan(X.chunks[0]).any() else [int(c) for c in X.chunks[0]]
        width = int(X.shape[1]) if X.ndim == 2 else None
        return DelayedBlocks(X.to_delayed().ravel().tolist(), lengths, width, X.dtype)
    if not hasattr(X, "to_delayed"):
        return DelayedBlocks([X], None)
    return DelayedBlocks(X.to_delayed(), None)


def is_frame(X: Collection) -> bool:
    """Whether X is a dask frame; a series is not one."""
    return hasattr(X, "columns") and X.ndim == 2


def task(function: Callable[..., Any]) -> Callable[..., Delayed]:
    """A function whose calls are delayed; each call is a task with a key of its own.

    Delayed objects may be anywhere in lists, tuples and dataclasses among the arguments. They are
    handed to dask side by side, as dask takes milliseconds for each that is inside of something.
    """
    import dask
    from dask.delayed import Delayed as DelayedObject
    from dask.utils import funcname

    def call(*arguments: Any, **named: Any) -> Delayed:
        parts = list[Delayed]()

        def taken_out(value: Any) -> Any:
            if isinstance(value, DelayedObject):
                parts.append(value)
                return Place(len(parts) - 1)
            return value

        called = Call(function, _with_leaves(arguments, taken_out), named)
        key = f"{funcname(function)}-{uuid4().hex}"
        return dask.delayed(called, pure=False, traverse=False)(*parts, dask_key_name=key)

    return call


class Place(int):
    """Stands for the delayed object of this number in the arguments of a task."""


@dataclass(frozen=True)
class Call:
    """A function and its arguments, in which delayed objects are replaced by places."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def __call__(self, *parts: Any) -> Any:
        def put_in(value: Any) -> Any:
            return parts[value] if isinstance(value, Place) else value

        return self.function(*_with_leaves(self.arguments, put_in), **self.named)


def _with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value, with everything changed that is in its lists, tuples and dataclasses."""
    if isinstance(value, list):
        return [_with_leaves(one, change) for one in value]
    if isinstance(value, tuple):
        items = [_with_leaves(one, change) for one in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
        return replace(value, **{n: _with_leaves(getattr(value, n), change) for n in names})
    return change(value)


def constant(value: object) -> Delayed:
    """A value that many tasks share; as a part of the graph it is not lost with a worker."""
    import dask

    return dask.delayed(value, pure=False, traverse=False)


def shared(value: object) -> Any:
    """The same, unless it is small: then it goes along with every task, which has not to wait."""
    from dask.sizeof import sizeof

    return value if sizeof(value) <= SMALL else constant(value)


def compute(result: Delayed) -> Any:
    """The value of a delayed result, computed by the scheduler that is in use."""
    import dask

    with _scheduling():
        return dask.compute(result, traverse=False, optimize_graph=True)[0]


def persist(results: Sequence[Delayed], total: Delayed) -> tuple[list[Delayed], Any]:
    """Delayed results that stay in the memory of the workers, and the value of ``total``.

    One graph computes them all, so that what they have in common is computed once.
    """
    import dask

    with _scheduling():
        *results, total = dask.persist(*results, total, traverse=False, optimize_graph=True)
        return list(results), dask.compute(total, traverse=False)[0]


@contextmanager
def _scheduling() -> Iterator[None]:
    """One BLAS thread per task, no warning about the size of the graph, and an error in words."""
    client = _client()
    with warnings.catch_warnings(), serial_blas():
        warnings.filterwarnings("ignore", message="Sending large graph")
        try:
            yield
        except Exception as error:
            cut_off = client is not None and client.status not in ("running", "connecting")
            if not cut_off and not isinstance(error, CancelledError):
                raise
            raise RuntimeError(
                "the Dask client was closed, or its tasks were cancelled, before the result was "
                f"there ({error!s:.200}); keep the client open until the call returns"
            ) from error


def _client() -> Any:
    """The client of distributed whose scheduler is in use, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def on_cluster() -> bool:
    """Whether workers of distributed compute what is delayed, in a memory of their own."""
    import dask.base

    return getattr(dask.base.get_scheduler(), "__self__", None) is not None


def require_sendable(kernel: Kernel) -> None:
    """Raise TypeError for a kernel that cannot be sent to the workers of the scheduler in use."""
    from dask.base import get_scheduler
    from dask.local import get_sync
    from dask.threaded import get as get_threaded

    if get_scheduler() in (None, get_sync, get_threaded):  # these stay in this process
        return
    try:
        pickle.dumps(joblib.wrap_non_picklable_objects(kernel, keep_wrapper=False))
    except Exception as error:
        raise TypeError(
            f"the kernel {name_of(kernel)} cannot be sent to workers in other processes ({error}); "
            "define it without objects that cannot be pickled, or use "
            'dask.config.set(scheduler="threads")'
        ) from error


def added(totals: Sequence[Any]) -> Any:
    """The sum of several totals, which are not changed: a task may be run again."""
    total = copy.deepcopy(totals[0])
    for other in totals[1:]:
        total += other
    return total


def merged(results: list[Delayed], merge: Callable[[Sequence[Any]], Any] = added) -> Delayed:
    """One delayed result from many: neighbours are merged, FAN_IN at a time, in a fixed tree."""
    merge_task = task(merge)
    while len(results) > 1:
        starts = range(0, len(results), FAN_IN)
        results = [merge_task(results[i : i + FAN_IN]) for i in starts]
    return results[0]


# Tasks that read blocks


def chained(block: Objects, steps: Sequence[Callable[[Objects], Objects]]) -> Objects:
    """The result of several functions, applied one after the other."""
    for step in steps:
        block = step(block)
    return block


def with_length(block: Objects) -> Objects:
    """A block whose rows can be counted: an iterator becomes a list."""
    return block if hasattr(block, "__len__") else list(block)


class Layout(NamedTuple):
    """The number of rows, the number of columns, the type and the size of a block."""

    n: int
    width: int | None
    dtype: np.dtype[Any]
    n_bytes: int


def layout_of(block: Objects) -> Layout:
    """The layout of one block."""
    from dask.sizeof import sizeof

    width = int(block.shape[1]) if getattr(block, "ndim", 1) == 2 else None
    dtype = getattr(block, "dtype", np.dtype(object))
    return Layout(length(block), width, dtype, sizeof(block))
