"""Measurements as tasks: run side by side, written down one by one, never run twice."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

Row = dict[str, Any]  # values of JSON
Measurements = dict[str, list[Row]]  # by key of the task


class Task(NamedTuple):
    """Something to be measured; ``run`` can be pickled and needs nothing but its arguments."""

    key: str  # "approximating/all/cal_housing/delta_gauss/seed 0"
    run: Callable[[], list[Row]]
    cost: float = 1.0  # CPU seconds, roughly: the longest are begun first
    alone: bool = False  # a timing: nothing runs beside it
    first: bool = False  # before all others


class Outcome(NamedTuple):
    key: str
    rows: list[Row]
    wall: float
    cpu: float
    failed: str = ""  # the traceback
    warned: Sequence[str] = ()  # distinct warnings


class JournalError(Exception):
    """A journal that cannot be gone on with."""


class MixedMeasurements(JournalError):
    """A journal that other versions, or something else, have written."""


class Journal:
    """A file of outcomes, one a line; what a killed run has written counts in the next.

    Reading it changes nothing; within ``with`` it is held, and outcomes may be added.
    """

    def __init__(self, path: Path, versions: dict[str, str]) -> None:
        self.path, self.versions = path, versions
        self.outcomes: dict[str, Outcome] = {}
        self._file: BinaryIO | None = None
        if path.exists():
            self._read()

    def _read(self) -> int:
        """The number of bytes that count: a torn last line is measured again."""
        whole = self.path.read_bytes()
        complete = whole[: whole.rfind(b"\n") + 1]
        self.outcomes = {}
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, AttributeError):
                raise MixedMeasurements(
                    f"line {number} of {self.path} is no measurement; pass --fresh to measure "
                    "everything again, or another --output"
                ) from None
        return len(complete)

    def _take(self, line: dict[str, Any]) -> None:
        if "versions" in line:
            self._compare(line["versions"])
        elif "forgotten" in line:
            for key in line["forgotten"]:
                self.outcomes.pop(key, None)
        else:
            outcome = Outcome(**line)
            self.outcomes[outcome.key] = outcome

    def _compare(self, versions: dict[str, str]) -> None:
        if versions != self.versions:
            raise MixedMeasurements(
                f"{self.path} was written with {_differing(versions, self.versions)}, this is "
                f"{_differing(self.versions, versions)}; pass --fresh to measure everything "
                "again, or another --output"
            )

    def __enter__(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "ab")
        try:
            _lock(self._file)
            size = self._read()
            self._file.truncate(size)
            if not size:
                self._append({"versions": self.versions})
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _append(self, line: dict[str, Any]) -> None:
        assert self._file is not None
        text = json.dumps(line, default=_plain)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._take(json.loads(text))  # as the next run will read it

    def add(self, outcome: Outcome) -> None:
        self._append(outcome._asdict())

    def forget(self, keys: Iterable[str]) -> None:
        self._append({"forgotten": [key for key in keys if key in self.outcomes]})

    def measurements(self, keys: Iterable[str]) -> Measurements:
        return {key: self.outcomes[key].rows for key in keys if key in self.outcomes}


def _lock(file: BinaryIO) -> None:
    """Held until the file is closed; two runs would spoil each other's timings."""
    with suppress(ImportError):  # not on Windows
        from fcntl import LOCK_EX, LOCK_NB, flock

        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise JournalError(
                f"another run is writing {file.name}; wait for its end, or pass another --output"
            ) from None


def _plain(value: Any) -> Any:
    return value.item()  # a scalar of numpy


def _differing(versions: dict[str, str], others: dict[str, str]) -> str:
    differing = {k: v for k, v in versions.items() if others.get(k) != v}
    return ", ".join(f"{name} {number}" for name, number in differing.items()) or "no versions"


# Running


def distinct(tasks: Iterable[Task]) -> list[Task]:
    """Each key once: several tables may be made of one measurement."""
    return list({task.key: task for task in tasks}.values())


def outcomes(tasks: Sequence[Task], n_jobs: int) -> Iterator[Outcome]:
    """In the order they end: first those that may run side by side, then the timings."""
    import joblib

    beside = sorted((t for t in tasks if not t.alone), key=lambda t: (not t.first, -t.cost))
    if n_jobs > 1 and len(beside) > 1:
        with joblib.parallel_config("loky", inner_max_num_threads=1, initializer=_deaf):
            pool = joblib.Parallel(
                n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
            )
            with _not_heard():
                ending = pool(joblib.delayed(outcome)(task) for task in beside)
            yield from ending
    else:
        yield from map(outcome, beside)
    yield from (outcome(task) for task in tasks if task.alone)


@contextmanager
def _not_heard() -> Iterator[None]:
    """Ctrl-C is ignored while workers start, and so by them before they can be told to."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _deaf() -> None:
    """Ctrl-C is for the process that started the workers: it ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def outcome(task: Task) -> Outcome:
    """Run in one thread, timed; a failure is an outcome, too, and is not kept."""
    from threadpoolctl import threadpool_limits

    wall, cpu = time.perf_counter(), time.process_time()
    rows, failed = [], ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            with threadpool_limits(1):
                rows = task.run()
        except Exception:
            failed = traceback.format_exc()
    warned = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Outcome(task.key, rows, wall, cpu, failed, list(warned))
