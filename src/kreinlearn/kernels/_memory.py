"""Values of kernels on objects, kept while parameters are searched: ``remembering``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from kreinlearn._warnings import warn
from kreinlearn.data.memory import budget_bytes, in_words
from kreinlearn.data.tiles import length
from kreinlearn.kernels.base import Array, Kernel, Objects
from kreinlearn.kernels.keys import Key, key_of, keys_of
from kreinlearn.kernels.missing import block_at, fill, fill_square, part_of

Evaluate = Callable[[Objects, Objects], Array]  # rows, columns -> values
EvaluateSquare = Callable[[Objects, Array], Array]  # objects, k(z, z) with NaN where not known
GROWTH = 1.25  # a table that is too small grows at least by this factor


@contextmanager
def remembering(limit: int | float | str | None = "1GB") -> Iterator[None]:
    """Inside ``with remembering():`` kernels on objects and own functions evaluate no pair twice.

    What was evaluated serves every fit and copy with an equal kernel, in all threads: a grid over
    ``lambda_plus``, ``n_landmarks`` or the weights of a combination evaluates no more pairs than
    there are, one over ``kernel__window`` as many for each window. At the end all is freed.

    limit : memory for values, in bytes or as "500MB"; what is beyond it is evaluated each time

    It pays for kernels that take more than 0.1 microseconds a pair. A kernel is known by its
    class, its parameters and what it was fitted to, an own function by identity. Strings, numbers,
    arrays, and lists, tuples, sets or dicts of them are known by what is in them, other objects by
    identity: these, and what functions depend on, must not change inside the block. k(x, z) stands
    for k(z, x), and a fit still evaluates some pairs of own functions anew, to see whether that
    holds. A block inside another, or beside it in a thread, uses the memory that is there.

    ``GridSearchCV(n_jobs=2)`` runs in processes, which do not share it: give ``n_jobs`` to the
    estimator instead.

    >>> from sklearn.model_selection import GridSearchCV
    >>> from kreinlearn import KreinRidgeClassifier
    >>> from kreinlearn.kernels import Levenshtein, remembering
    >>> model = KreinRidgeClassifier(Levenshtein(), lambda_minus=1.0)
    >>> grid = GridSearchCV(model, {"lambda_plus": [0.1, 1.0]}, cv=2)
    >>> with remembering():
    ...     grid = grid.fit(["see", "sea", "oboe", "hobo"], [0, 0, 1, 1])
    >>> grid.predict(["seen", "bob"])
    array([0, 1])
    """
    global _active
    n_bytes = _bytes_of(limit)
    with _lock:
        memory = _active = _Memory(n_bytes) if _active is None else _active
        memory.blocks += 1
    try:
        yield
    finally:
        with _lock:
            memory.blocks -= 1
            if not memory.blocks:
                _active = None
                memory.tables.clear()


def _bytes_of(limit: Any) -> int:
    try:
        return budget_bytes(limit)
    except (TypeError, ValueError):
        raise ValueError(
            f'limit={limit!r} is not understood; pass bytes, or a text such as "500MB"'
        ) from None


def remembered(kernel: Kernel, A: Objects, Z: Objects, evaluate: Evaluate) -> Array:  # (a, z)
    """k(A, Z) from what is remembered; ``evaluate(A', Z')`` gives what is not.

    Outside ``remembering()``, and for sparse rows, just ``evaluate(A, Z)``.
    """
    memory = _active
    if memory is None or sp.issparse(A) or sp.issparse(Z):
        return evaluate(A, Z)
    table, a, z = memory.table(kernel), keys_of(A), keys_of(Z)
    K = memory.known(table, a, z)
    if np.isnan(K).any():
        fill(K, lambda i, j: table.seen(evaluate(part_of(A, i), part_of(Z, j))))
        memory.keep(table, a, z, K)
    return K.astype(table.dtype, copy=False)


def remembered_square(
    kernel: Kernel,
    Z: Objects,
    evaluate: Evaluate,
    evaluate_square: EvaluateSquare,
    diagonal: Array | None = None,
) -> Array:  # (z, z)
    """k(Z, Z), each pair once: ``evaluate_square(Z', k(z, z))`` where no pair is known.

    ``evaluate(A', Z')`` gives rectangles; ``diagonal`` has the k(z, z) given, NaN for others.
    """
    memory, own = _active, np.full(length(Z), np.nan) if diagonal is None else diagonal
    if memory is None or sp.issparse(Z):
        return evaluate_square(Z, own)
    table, z = memory.table(kernel), keys_of(Z)
    K = memory.known(table, z, z)
    for given in (memory.known_own(table, z), own):
        np.fill_diagonal(K, np.where(np.isnan(given), np.diagonal(K), given))
    if np.isnan(K).any():
        fill_square(
            K,
            lambda i, j: table.seen(evaluate(part_of(Z, i), part_of(Z, j))),
            lambda i: table.seen(evaluate_square(part_of(Z, i), np.diagonal(K)[i])),
        )
        memory.keep(table, z, z, K)
        memory.keep_own(table, z, np.diagonal(K))
    return K.astype(table.dtype, copy=False)


def remembered_diagonal(
    kernel: Kernel, A: Objects, evaluate: Callable[[Objects], Array]
) -> Array:  # (a,)
    """k(x, x) of each object; ``evaluate(A')`` gives those that are not remembered."""
    memory = _active
    if memory is None or sp.issparse(A):
        return evaluate(A)
    table, a = memory.table(kernel), keys_of(A)
    own = memory.known_own(table, a)
    missing = np.flatnonzero(np.isnan(own))
    if len(missing):
        own[missing] = table.seen(evaluate(part_of(A, missing)))
        memory.keep_own(table, a, own)
    return own.astype(table.dtype, copy=False)


# The memory


class _Table:
    """Values of one kernel: rows x columns that have met, NaN where they have not.

    Row 0 and column 0 are those of objects that are not in it.
    """

    def __init__(self) -> None:
        self.rows: dict[Key, int] = {}
        self.columns: dict[Key, int] = {}
        self.values = np.full((1, 1), np.nan)
        self.own: dict[Key, float] = {}
        self.dtype: np.dtype[Any] = np.dtype(np.float32)  # until a block comes in another

    def seen(self, K: Array) -> Array:
        if K.dtype != np.float32:
            self.dtype = np.dtype(np.float64)
        return K

    def block(self, a: list[Key], z: list[Key]) -> Array:
        i, j = _places(self.rows, a), _places(self.columns, z)
        if not i.any() or not j.any():
            return np.full((len(a), len(z)), np.nan)
        return np.array(self.values[block_at(i, j)])

    def grow(self, n_rows: int, n_columns: int, room: int) -> bool:
        """Whether there is a place for each, in ``room`` bytes."""
        old = self.values
        needed = max(n_rows, old.shape[0]), max(n_columns, old.shape[1])
        if needed == old.shape:
            return True
        ample = tuple(
            max(n, int(GROWTH * had)) if n > had else had
            for n, had in zip(needed, old.shape, strict=True)
        )
        for shape in (ample, needed):
            if old.itemsize * shape[0] * shape[1] <= room:
                self.values = np.full(shape, np.nan)
                self.values[: old.shape[0], : old.shape[1]] = old
                return True
        return False


def _places(numbers: dict[Key, int], keys: list[Key]) -> Array:
    return np.array([numbers.get(key, 0) for key in keys], dtype=np.intp)


def _added(numbers: dict[Key, int], keys: list[Key]) -> dict[Key, int]:
    """Places for keys that have none yet."""
    new = (key for key in dict.fromkeys(keys) if key not in numbers)
    return {key: i for i, key in enumerate(new, len(numbers) + 1)}


class _Memory:
    """Tables by kernel; the lock is held while they are read or written, not while kernels run."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.blocks = 0  # of ``remembering()`` that are open
        self.full = False
        self.tables: dict[Key, _Table] = {}

    def table(self, kernel: Kernel) -> _Table:
        key = key_of(kernel)
        with _lock:
            return self.tables.setdefault(key, _Table())

    def known(self, table: _Table, a: list[Key], z: list[Key]) -> Array:
        """Values by either order of a pair; NaN where it was met in none."""
        with _lock:
            K = table.block(a, z)
            missing = np.isnan(K)
            if missing.any():
                np.copyto(K, table.block(z, a).T, where=missing)
        return K

    def keep(self, table: _Table, a: list[Key], z: list[Key], K: Array) -> None:
        with _lock:
            rows, columns = _added(table.rows, a), _added(table.columns, z)
            others = sum(t.values.nbytes for t in self.tables.values() if t is not table)
            shape = (len(table.rows) + len(rows) + 1, len(table.columns) + len(columns) + 1)
            fits = table.grow(*shape, self.limit - others)
            if fits:
                table.rows |= rows
                table.columns |= columns
                table.values[block_at(_places(table.rows, a), _places(table.columns, z))] = K
            first = not fits and not self.full
            self.full = self.full or not fits
        if first:
            warn(
                f"remembering(limit={in_words(self.limit)!r}) is full: values of further pairs are "
                "evaluated each time they are needed; raise limit"
            )

    def known_own(self, table: _Table, a: list[Key]) -> Array:
        with _lock:
            return np.array([table.own.get(key, np.nan) for key in a], dtype=np.float64)

    def keep_own(self, table: _Table, a: list[Key], own: Array) -> None:
        with _lock:
            table.own.update(zip(a, own.tolist(), strict=True))


_lock = threading.Lock()
_active: _Memory | None = None
