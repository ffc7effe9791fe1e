"""Kernels that hold Python's global lock, evaluated in other processes.

The kernel and the objects are sent there once, by way of files, and then named by number.
"""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
import tempfile
import traceback
import weakref
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Self

import joblib
import numpy as np

from kreinlearn.data.tiles import length, objects_of
from kreinlearn.kernels.base import (
    SQUARE,
    Array,
    Columns,
    Kernel,
    ObjectColumns,
    ObjectKernel,
    Objects,
    mirrored,
)
from kreinlearn.progress import part_done
from kreinlearn.sums.parallel import serial_blas

PART = 256  # objects per file
CHUNKS_PER_JOB = 4  # the least number of parts of an evaluation, per process
CHUNKS = 64  # the largest number of parts; progress is reported after each
CHUNK_PAIRS = 256  # a part has at least so many pairs, if there may be fewer parts
FEWEST_ROWS = 32  # in a part: the columns are packed anew for every part
OWNER_ONLY = 0o700  # the mode of a folder that nobody else may read or write


class ProcessKernel(Kernel):
    """A kernel that holds Python's global lock, so that processes are faster than threads."""

    processes: Processes | None = None  # None: values are evaluated in this process

    @property
    def jobs(self) -> int:
        return 1 if self.processes is None else self.processes.jobs

    def with_processes(self, n: int, like: Kernel | None = None) -> Self:
        fresh = Processes(n) if n > 1 else None
        self.processes = fresh if like is None else getattr(like, "processes", None)
        return self

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        super().fit(X, rng)
        if self.processes is not None:
            self.processes.begin_fit(self, X)
        return self

    def end_fit(self) -> None:
        if self.processes is not None:
            self.processes.end_fit()


class Processes:
    """The ``jobs`` processes of a fit; all its kernels share the objects that were sent there."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._fit: list[Shelf] = []  # the objects of the fit; one shelf per field of records
        self._functions: weakref.WeakKeyDictionary[Any, Shelf] = weakref.WeakKeyDictionary()

    def __reduce__(self) -> Any:  # a copy has not sent anything
        return Processes, (self.jobs,)

    def begin_fit(self, kernel: Kernel, X: Objects) -> None:
        """Raise an error before any work if the kernel cannot be sent; objects are sent when
        needed.
        """
        self._function(kernel).ticket()
        if not any(shelf.holds(X) for shelf in self._fit):
            self._fit.append(Shelf(X))

    def end_fit(self) -> None:
        """Forget the objects of the fit; those for predictions are sent again when they are
        used.
        """
        self._remove()
        self._fit = []

    def _ticket(self, A: Objects) -> Ticket | None:
        """A ticket for objects of the fit; None if some of them are others."""
        found = (shelf.find(A) for shelf in self._fit)
        return next((ticket for ticket in found if ticket is not None), None)

    def rectangle(
        self, kernel: Kernel, A: Objects, Z: Shelf, spans: Sequence[tuple[int, int]]
    ) -> Array:
        """k(A, Z), where every call evaluates one of the ``spans`` of rows.

        Rows of the fit are sent as tickets, others as they are.
        """
        blocks = (A[slice(*span)] for span in spans)
        calls = ((self._ticket(block) or block,) for block in blocks)
        pairs = np.full(length(A), length(Z.objects))
        return self._map(kernel, "anew", calls, Z, spans, pairs)

    def square(self, kernel: Kernel, Z: Objects, *known: Array, fewest: int = 1) -> Array:
        """k(Z, Z) from ``kernel.upper_rows(*known, start, stop, Z)``, zeros below its diagonal."""
        pairs = np.arange(length(Z), 0, -1)
        spans = chunks(pairs, self.jobs, fewest)
        calls = [(*known, *span) for span in spans]
        return mirrored(self._map(kernel, "upper_rows", calls, Shelf(Z), spans, pairs))

    def _map(
        self,
        kernel: Kernel,
        method: str,
        calls: Iterable[tuple[Any, ...]],
        Z: Shelf,
        spans: Sequence[tuple[int, int]],
        pairs: Array,
    ) -> Array:
        """kernel.method(*call, Z) of all calls, one below the other; no file is left if one fails.

        Every call evaluates one of the ``spans`` of rows; ``pairs`` are those of each row.
        """
        found = list[Array]()
        try:
            function = self._function(kernel).ticket()
            columns = self._ticket(Z.objects) or Z.ticket()
            todo = (joblib.delayed(_called)(function, method, call, columns) for call in calls)
            how = {"backend": "loky", "max_nbytes": None, "return_as": "generator"}
            with closing(joblib.Parallel(n_jobs=self.jobs, **how)(todo)) as parts:
                for (start, stop), part in zip(spans, parts, strict=True):
                    found.append(part)
                    n_pairs, sharing = int(pairs[start:stop].sum()), self._sharing()
                    part_done((stop - start) // sharing, n_pairs // sharing)
        except BaseException:
            self._remove()
            Z.remove()
            raise
        return np.concatenate(found)

    def _function(self, kernel: Kernel) -> Shelf:
        known = self._functions.get(kernel)
        params, learned = kernel.get_params(deep=False), learned_by(kernel)
        if known is None or not _same(known.objects[1:], (params, learned)):
            what = f"the kernel {getattr(kernel, 'func', kernel)!r}"
            known = self._functions[kernel] = Shelf((type(kernel), params, learned), what)
        return known

    def _sharing(self) -> int:
        """The number of kernels that evaluate the same pairs, as parts of a combination do."""
        return len({(type(k), getattr(k, "func", None)) for k in self._functions}) or 1

    def _remove(self) -> None:
        for shelf in [*self._functions.values(), *self._fit]:
            shelf.remove()


def learned_by(kernel: Kernel) -> dict[str, Any]:
    """What a kernel has learned from data."""
    return {name: value for name, value in vars(kernel).items() if name.endswith("_")}


def _same(known: Sequence[dict[str, Any]], here: Sequence[dict[str, Any]]) -> bool:
    """Whether dicts have the same keys and refer to the same values."""
    return all(
        old.keys() == new.keys() and all(old[name] is new[name] for name in new)
        for old, new in zip(known, here, strict=True)
    )


def chunks(pairs: Array, jobs: int, fewest: int = 1) -> list[tuple[int, int]]:
    """Spans of rows with about the same number of pairs each, of at least ``fewest`` rows if
    possible.

    ``pairs`` is the number of pairs of each row.
    """
    n, ends = len(pairs), np.cumsum(pairs)
    wanted = min(int(pairs.sum()) // CHUNK_PAIRS, n // fewest, CHUNKS)
    shares = np.linspace(0, pairs.sum(), max(wanted, CHUNKS_PER_JOB * jobs) + 1)[1:-1]
    cuts = np.unique([0, *np.minimum(np.searchsorted(ends, shares) + 1, n), n])
    return list(itertools.pairwise(cuts.astype(int).tolist()))


class Shelf:
    """Objects in a folder of their own, written when first needed and removed with the shelf."""

    def __init__(self, objects: Objects, what: str = "the objects") -> None:
        self.objects, self.what = objects, what  # objects that are referred to keep their id
        self._removal: Any = None
        self._places: dict[int, int] = {}

    def __reduce__(self) -> Any:
        return Shelf, (self.objects, self.what)

    def ticket(self) -> Ticket:
        """A ticket for all objects on the shelf."""
        numbers = range(len(self.objects)) if isinstance(self.objects, list) else None
        return Ticket(self._folder(), numbers)

    def holds(self, A: Objects) -> bool:
        """Whether all of these objects are on the shelf."""
        return A is self.objects or self._numbers(A) is not None

    def find(self, A: Objects) -> Ticket | None:
        """A ticket for these objects; None if some of them are not on the shelf."""
        numbers = self._numbers(A)
        return None if numbers is None else Ticket(self._folder(), numbers)

    def _numbers(self, A: Objects) -> list[int] | None:
        if not isinstance(A, list) or not isinstance(self.objects, list):
            return None
        self._places = self._places or {id(x): i for i, x in enumerate(self.objects)}
        numbers = [self._places.get(id(a), -1) for a in A]
        return None if -1 in numbers else numbers

    def remove(self) -> None:
        if self._removal is not None:
            self._removal()

    def _folder(self) -> str:
        """The folder with all objects; it is removed also if a signal comes while it is made."""
        if self._removal is None or not self._removal.alive:
            self.folder = os.path.join(tempfile.gettempdir(), f"kreinlearn-{token_hex(8)}")
            try:
                self._removal = weakref.finalize(self, _remove, self.folder, os.getpid())
                os.mkdir(self.folder, OWNER_ONLY)
                self._write()
            except BaseException:
                self.remove()
                raise
        return self.folder

    def _write(self) -> None:
        X, parts = self.objects, [self.objects]
        if isinstance(X, list):
            parts = [X[i : i + PART] for i in range(0, len(X), PART)]
        for i, part in enumerate(parts):
            try:
                sealed = pickle.dumps(joblib.wrap_non_picklable_objects(part, keep_wrapper=False))
            except Exception as error:
                raise TypeError(
                    f"{self.what} cannot be sent to other processes ({error}); pass n_jobs=1, or "
                    "a function defined at the top of a module and objects that hold only data"
                ) from error
            Path(self.folder, str(i)).write_bytes(sealed)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


# In the other process

_READ: dict[str, dict[int, Any]] = {}  # what was read of each folder


class Ticket(NamedTuple):
    """Objects on a shelf by number; without numbers everything on the shelf, as it is."""

    folder: str
    numbers: Sequence[int] | None

    def objects(self) -> Any:
        if self.numbers is None:
            return self._part(0)
        return [self._part(i // PART)[i % PART] for i in self.numbers]

    def _part(self, i: int) -> Any:
        parts = _READ.setdefault(self.folder, {})
        if i not in parts:
            parts[i] = pickle.loads(Path(self.folder, str(i)).read_bytes())
        return parts[i]


def _called(function: Ticket, method: str, call: tuple[Any, ...], columns: Ticket) -> Array:
    for folder in [folder for folder in _READ if not Path(folder).exists()]:
        del _READ[folder]
    kind, params, learned = function.objects()
    kernel = kind(**params)
    vars(kernel).update(learned)
    given = [item.objects() if isinstance(item, Ticket) else item for item in call]
    try:
        with serial_blas():
            K: Array = getattr(kernel, method)(*given, columns.objects())
    except Exception as error:
        raise _sendable(error) from None
    return K


def _sendable(error: Exception) -> Exception:
    """The error, or one that says the same if it could not be sent back from another process."""
    try:
        sealed = joblib.wrap_non_picklable_objects(error, keep_wrapper=False)
        back = pickle.loads(pickle.dumps(sealed))
        if _said(back) == _said(error):
            return error
    except Exception:  # the class of an error may raise anything
        pass
    text = "".join(traceback.format_exception(error)).rstrip()
    return RuntimeError(
        f"the kernel raised {type(error).__name__}: {error}; such an error cannot come back from "
        f"another process, where it was:\n{text}"
    )


def _said(error: Exception) -> tuple[str, str, Any]:
    return type(error).__name__, str(error), getattr(error, "__notes__", None)


# Kernels on objects


class SlowKernel(ProcessKernel, ObjectKernel):
    """A kernel whose blocks and squares may be evaluated in other processes, with the same bits."""

    threads = False
    pair_seconds = None  # it depends on the size of the objects by orders of magnitude

    def columns(self, Z: Objects) -> Columns:
        return SlowColumns(self, objects_of(Z))

    def square(self, Z: Objects) -> Array:
        if self.processes is None or len(Z) <= SQUARE:
            return super().square(Z)
        return self.processes.square(self, Z, fewest=FEWEST_ROWS)

    def upper_rows(self, start: int, stop: int, Z: Objects) -> Array:
        """Rows start..stop of the upper triangle of k(Z, Z), with zeros to the left of it."""
        here, part = Z[start:stop], np.zeros((stop - start, len(Z)))
        part[:, start:stop] = self.symmetric(here)
        if stop < len(Z):
            part[:, stop:] = self.anew(here, Z[stop:])
        return part


class SlowColumns(ObjectColumns):
    kernel: SlowKernel

    def __init__(self, kernel: SlowKernel, Z: Objects) -> None:
        super().__init__(kernel, Z)
        self.shelf = Shelf(Z)

    def evaluate(self, A: Objects, Z: Objects) -> Array:
        """k(A, Z); all rows are checked first, so that an error names their numbers in A."""
        processes, pairs = self.kernel.processes, np.full(length(A), length(Z))
        if processes is None or len(spans := chunks(pairs, processes.jobs, FEWEST_ROWS)) < 2:
            return super().evaluate(A, Z)
        self.kernel.packed(A, like=self.packed)
        shelf = self.shelf if Z is self.Z else Shelf(Z)
        return processes.rectangle(self.kernel, A, shelf, spans)
