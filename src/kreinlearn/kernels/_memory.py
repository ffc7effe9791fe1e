"""Values of costly kernels that are remembered while parameters are searched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from kreinlearn._warnings import NotRemembered, warn
from kreinlearn.data.memory import budget_bytes, in_words
from kreinlearn.data.tiles import length
from kreinlearn.kernels.keys import Key, key_of, keys_of
from kreinlearn.kernels.missing import block_at, fill, fill_square, part_of

if TYPE_CHECKING:
    from kreinlearn.kernels.base import Array, Kernel, Objects

    Evaluate = Callable[[Objects, Objects], Array]  # rows, columns -> values
    EvaluateSquare = Callable[[Objects, Array], Array]  # objects, known k(z, z) or NaN -> values

GROWTH = 1.25  # a table that is too small grows at least by this factor


@contextmanager
def remembering(limit: int | float | str | None = "1GB") -> Iterator[None]:
    """A context in which costly kernels evaluate no pair of objects twice.

    Values serve every fit and copy with an equal kernel, in all threads. So a grid search over
    ``lambda_plus`` or over the weights of a combination evaluates every pair once, and one over
    ``kernel__window`` once per window. When the context ends, all values are freed.

    Parameters
    ----------
    limit : int, float or str, default="1GB"
        Memory for the values, in bytes or as a text such as "500MB". Values for which there is no
        room are evaluated each time.

    Notes
    -----
    This pays for kernels that take more than 0.1 microseconds per pair. Two kernels are equal if
    their class, their parameters and what they were fitted to are equal; functions are compared by
    identity. Strings, numbers, arrays, and lists, tuples, sets or dicts of them are compared by
    their content, other objects by identity. Such objects, and whatever functions depend on, must
    not change inside the context. A value of k(x, z) is used for k(z, x) too; every fit evaluates
    some pairs of functions again, to see whether that is right. A context inside another one, or in
    another thread at the same time, uses the memory that is there.

    ``GridSearchCV(n_jobs=2)`` works in processes, which do not share the memory: pass ``n_jobs`` to
    the estimator instead.

    Examples
    --------
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
    global active
    n_bytes = _bytes_of(limit)
    with _lock:
        memory = active = _Memory(n_bytes) if active is None else active
        memory.blocks += 1
    try:
        yield
    finally:
        with _lock:
            memory.blocks -= 1
            if not memory.blocks:
                active = None
                memory.tables.clear()


def _bytes_of(limit: int | float | str | None) -> int:
    try:
        return budget_bytes(limit)
    except (TypeError, ValueError):
        raise ValueError(
            f'limit={limit!r} is not understood; pass bytes, or a text such as "500MB"'
        ) from None


def remembered(kernel: Kernel, A: Objects, Z: Objects, evaluate: Evaluate) -> Array:  # (a, z)
    """k(A, Z) from remembered values; ``evaluate(A', Z')`` gives the others.

    Outside ``remembering()``, and for sparse rows, this is just ``evaluate(A, Z)``.
    """
    memory = active
    if memory is None or sp.issparse(A) or sp.issparse(Z):
        return evaluate(A, Z)
    table, a, z = memory.table(kernel), keys_of(A), keys_of(Z)
    K = memory.known(table, a, z)
    if np.isnan(K).any():
        fill(K, lambda i, j: evaluate(part_of(A, i), part_of(Z, j)))
        memory.keep(table, a, z, K)
    return K


def remembered_square(
    kernel: Kernel,
    Z: Objects,
    evaluate: Evaluate,
    evaluate_square: EvaluateSquare,
    diagonal: Array | None = None,
) -> Array:  # (z, z)
    """k(Z, Z) from remembered values, and each of the others evaluated once.

    ``evaluate(A', Z')`` gives rectangles, ``evaluate_square(Z', k(z, z))`` squares of which no pair
    is remembered. ``diagonal`` holds the k(z, z) that are known, NaN for the others.
    """
    memory, own = active, np.full(length(Z), np.nan) if diagonal is None else diagonal
    if memory is None or sp.issparse(Z):
        return evaluate_square(Z, own)
    table, z = memory.table(kernel), keys_of(Z)
    K = memory.known(table, z, z)
    for given in (memory.known_own(table, z), own):
        np.fill_diagonal(K, np.where(np.isnan(given), np.diagonal(K), given))
    if np.isnan(K).any():
        fill_square(
            K,
            lambda i, j: evaluate(part_of(Z, i), part_of(Z, j)),
            lambda i: evaluate_square(part_of(Z, i), np.diagonal(K)[i]),
        )
        memory.keep(table, z, z, K)
        memory.keep_own(table, z, np.diagonal(K))
    return K


def remembered_diagonal(
    kernel: Kernel, A: Objects, evaluate: Callable[[Objects], Array]
) -> Array:  # (a,)
    """k(x, x) of each object; ``evaluate(A')`` gives those that are not remembered."""
    memory = active
    if memory is None or sp.issparse(A):
        return evaluate(A)
    table, a = memory.table(kernel), keys_of(A)
    own = memory.known_own(table, a)
    missing = np.flatnonzero(np.isnan(own))
    if len(missing):
        own[missing] = evaluate(part_of(A, missing))
        memory.keep_own(table, a, own)
    return own


# The memory


class _Table:
    """Remembered values of one kernel: rows x columns, with NaN for pairs that were not evaluated.

    Row 0 and column 0 stand for objects that are not in the table.
    """

    def __init__(self) -> None:
        self.rows: dict[Key, int] = {}
        self.columns: dict[Key, int] = {}
        self.values = np.full((1, 1), np.nan)
        self.own: dict[Key, float] = {}

    def block(self, a: list[Key], z: list[Key]) -> Array:
        i, j = _places(self.rows, a), _places(self.columns, z)
        if not i.any() or not j.any():
            return np.full((len(a), len(z)), np.nan)
        return np.array(self.values[block_at(i, j)])

    def grow(self, n_rows: int, n_columns: int, room: int) -> bool:
        """Whether the table has room for so many rows and columns in ``room`` bytes, growing if
        need be.
        """
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
    """The tables of all kernels; a lock protects them, but is not held while kernels are
    evaluated.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.blocks = 0  # contexts that are open
        self.full = False
        self.tables: dict[Key, _Table] = {}

    def table(self, kernel: Kernel) -> _Table:
        key = key_of(kernel)
        with _lock:
            return self.tables.setdefault(key, _Table())

    def known(self, table: _Table, a: list[Key], z: list[Key]) -> Array:
        """Values that were evaluated in either order of the pair, NaN elsewhere."""
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
                "evaluated each time they are needed; raise limit",
                NotRemembered,
            )

    def known_own(self, table: _Table, a: list[Key]) -> Array:
        with _lock:
            return np.array([table.own.get(key, np.nan) for key in a], dtype=np.float64)

    def keep_own(self, table: _Table, a: list[Key], own: Array) -> None:
        with _lock:
            table.own.update(zip(a, own.tolist(), strict=True))


_lock = threading.Lock()
active: _Memory | None = None  # that of the open contexts of ``remembering``
