"""Blocks of a dask collection as delayed objects, and tasks that cut, pick and join their rows."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp

from kreinlearn.data.tiles import length, take
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.progress import name_of
from kreinlearn.sums.parallel import FAN_IN, serial_blas


class Blocks(NamedTuple):
    """Delayed blocks of rows, their lengths and what is known of all rows."""

    blocks: list[Any]
    lengths: list[int] | None  # None: not known yet
    width: int | None = None  # columns; None: one dimension, or not known yet
    dtype: Any = None


def blocks_of(X: Any) -> Blocks:
    """The blocks of a dask array, frame, series or bag, or of a list of delayed blocks."""
    if isinstance(X, list | tuple):
        return Blocks(list(X), None)
    if hasattr(X, "chunks"):
        if X.ndim > 1 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1}, method="tasks")  # p2p would start again when a worker dies
        lengths = None if np.isnan(X.chunks[0]).any() else [int(c) for c in X.chunks[0]]
        width = int(X.shape[1]) if X.ndim == 2 else None
        return Blocks(X.to_delayed().ravel().tolist(), lengths, width, X.dtype)
    if not hasattr(X, "to_delayed"):
        return Blocks([X], None)
    single = is_frame(X) and all(one == np.float32 for one in X.dtypes)
    return Blocks(X.to_delayed(), None, None, np.dtype(np.float32) if single else None)


def is_frame(X: Any) -> bool:
    """A dask frame; a series is none."""
    return hasattr(X, "columns") and X.ndim == 2


def task(function: Any) -> Any:
    """A function of which a call is a task, its key new with every call."""
    import dask

    return dask.delayed(function, pure=False, traverse=False)


def constant(value: Any) -> Any:
    """A value that many tasks share: part of the graph, so that it is not lost with a worker."""
    import dask

    return dask.delayed(value, pure=False, traverse=False)


def computed(result: Any) -> Any:
    """The value of a delayed result, by whatever scheduler is in use."""
    import dask

    with warnings.catch_warnings(), serial_blas():
        warnings.filterwarnings("ignore", message="Sending large graph")
        return dask.compute(result, traverse=False, optimize_graph=True)[0]


def require_sendable(kernel: Any) -> None:
    """TypeError for a kernel that cannot go to the workers of the scheduler in use."""
    from dask.base import get_scheduler
    from dask.local import get_sync
    from dask.threaded import get as get_threaded

    if get_scheduler() in (None, get_sync, get_threaded):  # of this process
        return
    try:
        pickle.dumps(joblib.wrap_non_picklable_objects(kernel, keep_wrapper=False))
    except Exception as error:
        raise TypeError(
            f"the kernel {name_of(kernel)} cannot be sent to workers in other processes ({error}); "
            'define it without what cannot be pickled, or use dask.config.set(scheduler="threads")'
        ) from error


def tree(results: Sequence[Any], merge: Any) -> Any:
    """One delayed result of many, merged FAN_IN at a time, neighbours first: a fixed tree."""
    results, merged = list(results), task(merge)
    while len(results) > 1:
        spans = range(0, len(results), FAN_IN)
        results = [merged(results[i : i + FAN_IN]) for i in spans]
    return results[0]


# Tasks


def added(totals: Sequence[Any]) -> Any:
    """Their sum; a task may be run again, so what it is given stays as it is."""
    total = copy.deepcopy(totals[0])
    for other in totals[1:]:
        total += other
    return total


def chained(block: Any, steps: Sequence[Any]) -> Any:
    for step in steps:
        block = step(block)
    return block


def cut(block: Objects, start: int, stop: int) -> Objects:
    return block[start:stop]


def picked(block: Objects, numbers: Array) -> Objects:
    return take(block, numbers)


def joined(parts: Sequence[Objects]) -> Objects:
    """Rows one after the other; lists stay lists."""
    if len(parts) == 1:
        return parts[0]
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [x for part in parts for x in part]


class Seen(NamedTuple):
    """What a block that has been read looks like."""

    n: int
    width: int | None
    dtype: Any


def looked_at(block: Objects) -> list[Seen]:
    width = int(block.shape[1]) if getattr(block, "ndim", 1) == 2 else None
    return [Seen(length(block), width, getattr(block, "dtype", np.dtype(object)))]


def listed(parts: Sequence[list[Seen]]) -> list[Seen]:
    return [seen for part in parts for seen in part]
