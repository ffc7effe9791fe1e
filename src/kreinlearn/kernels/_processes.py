"""Python functions in other processes: function and objects go there once, then by number."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib

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
        """A function that cannot be sent is an error before any work; objects go when needed."""
        self._function(kernel).ticket()
        if self._fit is None or self._fit.objects is not X:
            self._fit = Shelf(X)

    def end_fit(self) -> None:
        """Let go of the objects of the fit; what predicts is sent again when it is used."""
        self._remove()
        self._fit = None

    def packed(self, A: Objects) -> Any:
        """A ticket for objects of the fit; others as they are, to be sent with the call."""
        return (self._fit and self._fit.find(A)) or A

    def map(
        self, kernel: Any, method: str, calls: Iterable[tuple[Any, ...]], Z: Shelf
    ) -> list[Array]:
        """kernel.method(*call, Z) for all calls, in order; if one fails, no file is left."""
        try:
            function = self._function(kernel).ticket()
            columns = (self._fit and self._fit.find(Z.objects)) or Z.ticket()
            todo = (joblib.delayed(_called)(function, method, call, columns) for call in calls)
            return list(joblib.Parallel(n_jobs=self.jobs, backend="loky", max_nbytes=None)(todo))
        except BaseException:
            self._remove()
            Z.remove()
            raise

    def _function(self, kernel: Any) -> Shelf:
        given, known = (type(kernel), kernel.func, kernel.params), self._functions.get(kernel)
        if known is None or any(a is not b for a, b in zip(known.objects, given, strict=True)):
            known = self._functions[kernel] = Shelf(given, f"the kernel function {kernel.func!r}")
        return known

    def _remove(self) -> None:
        for shelf in filter(None, [*self._functions.values(), self._fit]):
            shelf.remove()


class Shelf:
    """Objects in a folder of their own, written when first asked for; it goes with the shelf."""

    def __init__(self, objects: Objects, what: str = "the objects") -> None:
        self.objects, self.what = objects, what  # held: an id stays that of its object
        self._removal: Any = None
        self._places: dict[int, int] = {}

    def __reduce__(self) -> Any:
        return Shelf, (self.objects, self.what)

    def ticket(self) -> Ticket:
        """For all that is here."""
        numbers = range(len(self.objects)) if isinstance(self.objects, list) else None
        return Ticket(self._folder(), numbers)

    def find(self, A: Objects) -> Ticket | None:
        """For these objects; None if they are not here one by one."""
        if not isinstance(A, list) or not isinstance(self.objects, list):
            return None
        self._places = self._places or {id(x): i for i, x in enumerate(self.objects)}
        numbers = [self._places.get(id(a), -1) for a in A]
        return None if -1 in numbers else Ticket(self._folder(), numbers)

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
    """Objects on a shelf by number; None: what is there, as it is."""

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
    kind, func, params = function.objects()
    given = [item.objects() if isinstance(item, Ticket) else item for item in call]
    try:
        with serial_blas():
            K: Array = getattr(kind(func, params), method)(*given, columns.objects())
    except Exception as error:
        raise _sendable(error) from None
    return K


def _sendable(error: Exception) -> Exception:
    """The error, or one that says the same if it would not survive the way back."""
    try:
        pickle.loads(pickle.dumps(joblib.wrap_non_picklable_objects(error)))
        return error
    except Exception:
        said = RuntimeError(f"{type(error).__name__}: {error}")
        said.__notes__ = getattr(error, "__notes__", [])
        return said
