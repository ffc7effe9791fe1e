"""Parts of the rows of any collection, which may be in memory or on workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kreinlearn.data.memory import require_memory
from kreinlearn.data.tiles import length
from kreinlearn.distributed import delayed
from kreinlearn.distributed.delayed import Collection
from kreinlearn.distributed.entrance import ROWS_SHARE, is_dask
from kreinlearn.distributed.hinge import room
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.pairs.rows import joined


def collected(values: Any, name: str, n: int, budget: float) -> Any:
    """Targets or weights of n rows in memory, wherever they were."""
    if not is_dask(values):
        return values
    blocks, _, width, dtype = delayed.blocks_of(values)
    size = 8 if dtype is None else max(dtype.itemsize, 8)
    require_memory(
        n * (width or 1) * size, budget, f"{name} of {n} rows, which conformal brings here,",
        "raise Resources(memory_budget=...), or pass conformal=None",
    )  # fmt: skip
    as_arrays = list(map(delayed.task(_as_array), blocks))
    return delayed.compute(delayed.task(joined)(as_arrays))


def kept_on_workers(
    X: Objects | Collection, budget: int, *, given: bool
) -> tuple[Any, list[int] | None]:
    """Rows for several fits, and the lengths of their blocks, which are None for rows in memory.

    Rows of a dask collection that has room on the workers are read now, and stay there.
    """
    if not is_dask(X):
        return X, None
    lengths, n_bytes = _sizes_of(X)
    if n_bytes is None or n_bytes > ROWS_SHARE / 2 * room(budget, given=given):
        return X, lengths  # each fit has a part of them a second time
    blocks = map(delayed.task(delayed.with_length), delayed.blocks_of(X).blocks)
    kept, _ = delayed.persist(list(blocks), delayed.constant(None))
    return _collection_like(X, kept, lengths), lengths


def _sizes_of(X: Collection) -> tuple[list[int], int | None]:
    """The number of rows of each block, and the bytes of all, if that is known.

    If X does not tell the number of rows, all blocks are read once.
    """
    blocks, lengths, width, dtype = delayed.blocks_of(X)
    if lengths is None:
        counted = [delayed.task(_size)(block) for block in blocks]
        sizes = delayed.compute(delayed.task(list)(counted))
        return [n for n, _ in sizes], sum(n_bytes for _, n_bytes in sizes)
    if dtype is None or dtype.hasobject:
        return lengths, None
    return lengths, sum(lengths) * (width or 1) * max(dtype.itemsize, 8)


def rows_but(X: Objects | Collection, left_out: Array, lengths: list[int] | None) -> Any:
    """All rows but some, in a collection of the same kind; a dask collection stays lazy."""
    if lengths is None:
        return _safe_indexing(X, np.delete(np.arange(length(X)), left_out))
    places = _by_block(left_out, lengths)
    each = zip(delayed.blocks_of(X).blocks, places, strict=True)
    blocks = [delayed.task(_deleted)(block, at) for block, at in each]
    return _collection_like(X, blocks, [n - len(at) for n, at in zip(lengths, places, strict=True)])


def some_rows(X: Objects | Collection, numbers: Array, lengths: list[int] | None) -> Objects:
    """Rows of sorted numbers, in memory, as a part of X would be."""
    if lengths is None:
        return _safe_indexing(X, numbers)
    each = zip(delayed.blocks_of(X).blocks, _by_block(numbers, lengths), strict=True)
    parts = [delayed.task(_picked)(block, places) for block, places in each if len(places)]
    return _joined(delayed.compute(delayed.task(list)(parts)))


def of_each_row(X: Objects | Collection, function: Callable[[Objects], Array]) -> Array:
    """``function`` of all rows, one value for each."""
    if not is_dask(X):
        return function(X)
    blocks = [delayed.task(function)(block) for block in delayed.blocks_of(X).blocks]
    return np.asarray(delayed.compute(delayed.task(joined)(blocks)))


def _by_block(numbers: Array, lengths: list[int]) -> list[Array]:
    """Sorted row numbers as places in each block."""
    ends = np.cumsum(lengths, dtype=np.intp)
    parts = np.split(numbers, np.searchsorted(numbers, ends[:-1]))
    return [part - end + n for part, end, n in zip(parts, ends, lengths, strict=True)]


def _collection_like(X: Collection, blocks: list[Any], lengths: list[int]) -> Collection:
    """Delayed blocks as a collection of the kind of X."""
    if hasattr(X, "chunks"):
        import dask.array as da

        each = zip(blocks, lengths, strict=True)
        parts = [da.from_delayed(block, (n, *X.shape[1:]), X.dtype) for block, n in each]
        return da.concatenate(parts)
    if hasattr(X, "_meta"):
        import dask.dataframe as dd

        return dd.from_delayed(blocks, meta=X._meta, verify_meta=False)
    if hasattr(X, "to_delayed"):
        import dask.bag as db

        return db.from_delayed(blocks)
    return blocks


# Tasks


def _as_array(block: Objects) -> Array:
    return np.asarray(delayed.with_length(block))


def _size(block: Objects) -> tuple[int, int]:
    """The number of rows and of bytes of a block."""
    layout = delayed.layout_of(delayed.with_length(block))
    return layout.n, layout.n_bytes


def _picked(block: Objects, places: Array) -> Objects:
    block = delayed.with_length(block)
    if hasattr(block, "iloc"):
        return block.iloc[places]
    return block[places] if hasattr(block, "dtype") else [block[int(i)] for i in places]


def _deleted(block: Objects, places: Array) -> Objects:
    block = delayed.with_length(block)
    return _picked(block, np.delete(np.arange(length(block)), places))


def _joined(parts: list[Objects]) -> Objects:
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return joined(parts)
