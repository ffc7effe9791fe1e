"""Measurements as tasks: they run in parallel and are written to a journal, so none runs twice."""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from operator import methodcaller
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import joblib
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from reproduction.report import commit

Row = dict[str, Any]  # one measurement; its values can be written as JSON
Measurements = dict[str, list[Row]]  # the rows of each task, by its key


class Task(NamedTuple):
    """Something to be measured; ``run`` can be pickled, so that another process can call it."""

    key: str  # "approximating/all/cal_housing/delta_gauss/seed 0"
    run: Callable[[], list[Row]]
    cost: float = 1.0  # rough CPU seconds: the longest tasks start first
    alone: bool = False  # True for a timing: nothing else runs at the same time


class Outcome(NamedTuple):
    """What a task gave, how long it took and what went wrong."""

    key: str
    rows: list[Row]
    wall: float
    cpu: float
    failed: str = ""  # the traceback, if it failed
    warned: Sequence[str] = ()  # the distinct warnings that were given
    commit: str = ""  # of the code that measured it, if it is known
    load: float | None = None  # of the machine before it began, if that was noted


class JournalError(Exception):
    """A journal that other versions, or another program, have written."""


class Journal:
    """A file with one outcome per line, which a later run reads and continues.

    Reading it changes nothing. Within ``with`` outcomes can be added.
    """

    _file: BinaryIO

    def __init__(self, path: Path, versions: dict[str, str]) -> None:
        self.path, self.versions = path, versions
        self.outcomes: dict[str, Outcome] = {}
        if path.exists():
            self._read()

    def _read(self) -> int:
        """Read all complete lines and return their length in bytes; a torn last line is dropped."""
        whole = self.path.read_bytes()
        complete = whole[: whole.rfind(b"\n") + 1]
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, AttributeError):
                raise JournalError(
                    f"line {number} of {self.path} is no measurement of these versions "
                    f"({self.versions}); pass --fresh to measure again, or another --output"
                ) from None
        return len(complete)

    def _take(self, line: dict[str, Any]) -> None:
        if "versions" not in line:
            self.outcomes[line["key"]] = Outcome(**line)
        elif line["versions"] != self.versions:
            raise ValueError

    def __enter__(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "ab")
        size = self._read()
        self._file.truncate(size)
        if not size:
            self._append({"versions": self.versions})
        commit()  # which is remembered: code may change while it runs
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _append(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, default=methodcaller("item"))  # scalars of numpy
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._take(json.loads(text))  # exactly as the next run will read it

    def add(self, outcome: Outcome) -> None:
        """Write an outcome, with the commit of this code."""
        self._append(outcome._replace(commit=commit())._asdict())

    def measurements(self, keys: Iterable[str]) -> Measurements:
        return {key: self.outcomes[key].rows for key in keys if key in self.outcomes}


# Running


def outcomes(tasks: Sequence[Task], n_jobs: int) -> Generator[Outcome, None, None]:
    """Run the tasks and yield outcomes as they end: parallel ones first, then the timings."""
    parallel = sorted((task for task in tasks if not task.alone), key=lambda task: -task.cost)
    with joblib.parallel_config("loky", inner_max_num_threads=1, initializer=_ignore_interrupts):
        pool = joblib.Parallel(
            n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
        )
        ending = pool(joblib.delayed(outcome)(task) for task in parallel)
        try:
            for one in ending:  # noqa: UP028, which would close them before this sees it
                yield one
        finally:  # joblib warns of tasks that it cancels, as is wanted here
            with warnings.catch_warnings(action="ignore"):
                ending.close()
    yield from (outcome(task) for task in tasks if task.alone)


def _ignore_interrupts() -> None:
    """Make a worker ignore Ctrl-C: the process that started it ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def outcome(task: Task) -> Outcome:
    """Run a task in one thread and time it; a failure is an outcome as well."""
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


def measure(
    tasks: Iterable[Task], journal: Journal, n_jobs: int, fresh: bool = False
) -> dict[str, str]:
    """Run every task that is not in the journal; returns the tracebacks of failures by key."""
    distinct = {task.key: task for task in tasks}  # parts may share measurements
    todo = [task for key, task in distinct.items() if fresh or key not in journal.outcomes]
    console, failures = Console(stderr=True), dict[str, str]()
    console.print(f"{len(todo)} measurements to make, {len(distinct) - len(todo)} are kept")
    with journal, Progress(console=console, refresh_per_second=2) as bar:
        shown = bar.add_task("measuring", total=sum(task.cost for task in todo))
        try:
            with closing(outcomes(todo, n_jobs)) as ending:
                for one in ending:
                    if one.failed:
                        failures[one.key] = one.failed
                    else:
                        journal.add(one)
                    bar.advance(shown, distinct[one.key].cost)
        except BrokenProcessPool as error:  # a worker was killed, for its memory perhaps
            failures["a worker process"] = f"{error}\nIt ended; --jobs 1 needs the least memory"
    return failures
