"""Python functions in other processes: function and objects go there once, then by number."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from kreinlearn.kernels._base import Array, Objects
from kreinlearn.reduce import serial_blas

PART = 256  # objects a file


class Processes:
    """The ``jobs`` processes of a fit; all its kernels share the objects that were sent there."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._fit: Shelf | None = None
        self._functions: weakref.WeakKeyDictionary[Any, Shelf] = weakref.WeakKeyDictionary()

    def __reduce__(self) -> Any:  # a copy, or a model that is loaded, has sent nothing
        return Processes, (self.jobs,)

    def begin_fit(self, kernel: Any, X: Objects) -> None:
        """Send both: what cannot be sent is an error before any work."""
        self._function(kernel).ticket()
        if isinstance(X, list) and X and (self._fit is None or self._fit.objects is not X):
            self._fit = Shelf(X, "the objects")
            self._fit.ticket()

    def end_fit(self) -> None:
        """Let go of the objects of the fit; what predicts is sent again when it is used."""
        self._remove()
        self._fit = None

    def packed(self, A: Objects) -> Any:
        """A ticket for objects of the fit; others as they are, to be sent with the call."""
        return (self._fit and self._fit.found(A)) or A

    def map(
        self, kernel: Any, method: str, calls: Iterable[tuple[Any, ...]], Z: Shelf
    ) -> list[Array]:
        """kernel.method(*call, Z) for all calls, in order; if one fails, no file is left."""
        try:
            function = self._function(kernel).ticket()
            columns = (self._fit and self._fit.found(Z.objects)) or Z.ticket()
            parallel = joblib.Parallel(n_jobs=self.jobs, backend="loky", max_nbytes=None)
            return list(
                parallel(joblib.delayed(_called)(function, method, call, columns) for call in calls)
            )
        except BaseException as error:
            self._remove()
            Z.remove()
            if isinstance(error, BrokenProcessPool):
                error.add_note(
                    f"a process died while it evaluated {kernel.func!r}; n_jobs=1 evaluates here"
                )
            raise

    def _function(self, kernel: Any) -> Shelf:
        given = (type(kernel), kernel.func, kernel.params)
        known = self._functions.get(kernel)
        if known is None or any(a is not b for a, b in zip(known.objects, given, strict=True)):
            known = self._functions[kernel] = Shelf(given, f"the kernel function {kernel.func!r}")
        return known

    def _remove(self) -> None:
        for shelf in [*self._functions.values(), *filter(None, [self._fit])]:
            shelf.remove()


class Shelf:
    """Objects in a folder of their own, written when first asked for; it goes with the shelf."""

    def __init__(self, objects: Objects, what: str = "the objects") -> None:
        self.objects, self.what = objects, what  # held: an id stays that of its object
        self._removal: Any = None
        self._ids: tuple[Array, Array] | None = None  # and what sorts them

    def __reduce__(self) -> Any:
        return Shelf, (self.objects, self.what)

    def ticket(self) -> Ticket:
        """For all of it."""
        whole = not isinstance(self.objects, list)
        return Ticket(self._folder(), None if whole else range(len(self.objects)))

    def found(self, A: Objects) -> Ticket | None:
        """For these objects; None if one of them is not here."""
        if not isinstance(A, list):
            return None
        if self._ids is None:
            known = _ids(self.objects)
            self._ids = known, np.argsort(known)
        known, order = self._ids
        wanted = _ids(A)
        at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
        return Ticket(self._folder(), at) if np.array_equal(known[at], wanted) else None

    def remove(self) -> None:
        if self._removal is not None:
            self._removal()

    def _folder(self) -> str:
        if self._removal is None or not self._removal.alive:
            self.folder = tempfile.mkdtemp(prefix="kreinlearn-")
            self._removal = weakref.finalize(self, _remove, self.folder, os.getpid())
            try:
                self._write()
            except BaseException:
                self.remove()
                raise
        return self.folder

    def _write(self) -> None:
        objects = self.objects
        parts = [objects]
        if isinstance(objects, list):
            parts = [objects[i : i + PART] for i in range(0, len(objects), PART)]
        try:
            for i, part in enumerate(parts):
                sealed = joblib.wrap_non_picklable_objects(part, keep_wrapper=False)
                with Path(self.folder, str(i)).open("wb") as file:
                    pickle.dump(sealed, file, pickle.HIGHEST_PROTOCOL)
        except OSError as error:
            error.add_note(
                f"{self.what} go to other processes by way of {self.folder}; TMPDIR names another "
                "place, and n_jobs=1 writes nothing"
            )
            raise
        except Exception as error:
            raise TypeError(
                f"{self.what} cannot be sent to other processes ({error}); pass n_jobs=1, or "
                "a function defined at the top of a module and objects that hold only data"
            ) from error


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def _ids(objects: list[Any]) -> Array:
    return np.fromiter(map(id, objects), np.uint64, len(objects))


# In the other process


class Ticket(NamedTuple):
    """Objects on a shelf by number; None: what is there, as it is."""

    folder: str
    numbers: range | Array | None

    def objects(self) -> Any:
        if self.numbers is None:
            return self._part(0)
        return [self._part(i // PART)[i % PART] for i in map(int, self.numbers)]

    def _part(self, i: int) -> Any:
        parts = _READ.setdefault(self.folder, {})
        if i not in parts:
            with Path(self.folder, str(i)).open("rb") as file:
                parts[i] = pickle.load(file)
        return parts[i]


_READ: dict[str, dict[int, Any]] = {}  # what was read of each folder


def _called(function: Ticket, method: str, call: tuple[Any, ...], columns: Ticket) -> Array:
    for folder in [folder for folder in _READ if not Path(folder).exists()]:
        del _READ[folder]
    kind, func, params = function.objects()
    given = [item.objects() if isinstance(item, Ticket) else item for item in call]
    try:
        with serial_blas():
            return np.asarray(getattr(kind(func, params), method)(*given, columns.objects()))
    except Exception as error:
        raise _sendable(error) from None


def _sendable(error: Exception) -> Exception:
    """The error itself, or one that says the same if it would not survive the way back."""
    try:
        pickle.loads(pickle.dumps(joblib.wrap_non_picklable_objects(error)))
    except Exception:
        said = RuntimeError(f"{type(error).__name__}: {error}")
        said.__notes__ = getattr(error, "__notes__", [])
        return said
    return error
