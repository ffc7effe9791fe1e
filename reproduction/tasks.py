"""Measurements as tasks: they run in parallel and are written to a journal, so none runs twice."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from itertools import count
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from kreinlearn._system import lock_file
from kreinlearn.progress import time_in_words
from kreinlearn.report.model import commit

if TYPE_CHECKING:
    from rich.console import Console

Row = dict[str, Any]  # one measurement; its values can be written as JSON
Measurements = dict[str, list[Row]]  # the rows of each task, by its key


class Task(NamedTuple):
    """Something to be measured; ``run`` can be pickled, so that another process can call it."""

    key: str  # "approximating/all/cal_housing/delta_gauss/seed 0"
    run: Callable[[], list[Row]]
    cost: float = 1.0  # rough CPU seconds: the longest tasks start first
    alone: bool = False  # True for a timing: nothing else runs at the same time
    first: bool = False  # True: it starts before all others


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


Tick = Callable[[Outcome], None]  # called with each outcome, to show the progress


class JournalError(Exception):
    """A journal that cannot be continued."""


class MixedMeasurements(JournalError):
    """A journal that other versions, or another program, have written."""


class Journal:
    """A file with one outcome per line, which a later run reads and continues.

    Reading it changes nothing. Within ``with`` the file is locked, and outcomes can be added.
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
            then = [f"{k} {v}" for k, v in versions.items() if self.versions.get(k) != v]
            now = [f"{k} {v}" for k, v in self.versions.items() if versions.get(k) != v]
            raise MixedMeasurements(
                f"{self.path} was written with {', '.join(then) or 'no versions'}, this is "
                f"{', '.join(now) or 'no versions'}; pass --fresh to measure everything again, "
                "or another --output"
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
            commit()  # which is remembered: code may change while it runs
        except BaseException:
            self._file.close()
            raise
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

    def forget(self, keys: Iterable[str]) -> None:
        self._append({"forgotten": [key for key in keys if key in self.outcomes]})

    def measurements(self, keys: Iterable[str]) -> Measurements:
        return {key: self.outcomes[key].rows for key in keys if key in self.outcomes}


def _lock(file: BinaryIO) -> None:
    """Lock the file until it is closed: two runs at once would spoil each other's timings."""
    try:
        lock_file(file.fileno())
    except BlockingIOError:
        raise JournalError(
            f"another run is writing {file.name}; wait until it ends, or pass another --output"
        ) from None


# Running


def distinct(tasks: Iterable[Task]) -> list[Task]:
    """The tasks with each key once: several parts may use the same measurement."""
    return list({task.key: task for task in tasks}.values())


def outcomes(tasks: Sequence[Task], n_jobs: int) -> Generator[Outcome, None, None]:
    """Run the tasks and yield outcomes as they end: parallel ones first, then the timings."""
    import joblib

    parallel = sorted((t for t in tasks if not t.alone), key=lambda t: (not t.first, -t.cost))
    if n_jobs > 1 and len(parallel) > 1:
        with joblib.parallel_config(
            "loky", inner_max_num_threads=1, initializer=_ignore_interrupts
        ):
            pool = joblib.Parallel(
                n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
            )
            with _interrupts_ignored():
                ending = pool(joblib.delayed(outcome)(task) for task in parallel)
            try:
                for one in ending:  # noqa: UP028, which would close them before this sees it
                    yield one
            except GeneratorExit:  # joblib warns of tasks that it cancels, as is wanted here
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ending.close()
                raise
    else:
        yield from map(outcome, parallel)
    yield from (outcome(task) for task in tasks if task.alone)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C while workers start; they inherit that until their initializer has run."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _ignore_interrupts() -> None:
    """Make a worker ignore Ctrl-C: the process that started it ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def outcome(task: Task) -> Outcome:
    """Run a task in one thread and time it; a failure is an outcome as well."""
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


# Progress


def measure(
    by_part: Mapping[str, Sequence[Task]], journal: Journal, n_jobs: int, fresh: bool = False
) -> dict[str, str]:
    """Run every task that is not in the journal; returns the tracebacks of failures by key."""
    tasks = distinct(task for own in by_part.values() for task in own)
    failures: dict[str, str] = {}
    with journal:
        if fresh:
            journal.forget(task.key for task in tasks)
        todo = [task for task in tasks if task.key not in journal.outcomes]
        with progress(by_part, todo, len(tasks)) as tick:
            try:
                with closing(outcomes(todo, n_jobs)) as ending:
                    for outcome in ending:
                        if outcome.failed:
                            failures[outcome.key] = outcome.failed
                        else:
                            journal.add(outcome)
                        tick(outcome)
            except BrokenProcessPool as error:  # a worker was killed, for its memory perhaps
                failures["a worker process"] = f"{error}\nIt ended; --jobs 1 needs the least memory"
    return failures


@contextmanager
def progress(
    by_part: Mapping[str, Sequence[Task]], todo: Sequence[Task], n_all: int
) -> Iterator[Tick]:
    """A function to be called with each outcome, which reports the progress on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    earlier = f", {n_all - len(todo)} are kept from before" if len(todo) < n_all else ""
    console.print(f"{len(todo)} measurements to make{earlier}", highlight=False)
    if console.is_terminal and todo:
        with _bar(todo, console) as tick:
            yield tick
    else:
        yield _lines(by_part, todo, console)


@contextmanager
def _bar(todo: Sequence[Task], console: Console) -> Iterator[Tick]:
    """A bar whose share and remaining time follow from the costs of the tasks."""
    from rich.progress import Progress, TimeElapsedColumn

    costs, ended = {task.key: max(task.cost, 0.01) for task in todo}, count(1)
    columns = *Progress.get_default_columns(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, refresh_per_second=2, speed_estimate_period=1e9)
    with bar:  # drawn twice a second only, so that timings are not disturbed
        shown = bar.add_task(f"0/{len(todo)} measurements", total=sum(costs.values()))

        def tick(outcome: Outcome) -> None:
            text = f"{next(ended)}/{len(todo)} measurements"
            bar.update(shown, advance=costs[outcome.key], description=text)

        yield tick


def _lines(by_part: Mapping[str, Sequence[Task]], todo: Sequence[Task], console: Console) -> Tick:
    """Print one line whenever all tasks of a part have ended."""
    waiting = {task.key for task in todo}
    left = {name: waiting & {task.key for task in tasks} for name, tasks in by_part.items()}
    spent = dict.fromkeys(by_part, 0.0)

    def tick(outcome: Outcome) -> None:
        for name, keys in left.items():
            if outcome.key in keys:
                keys.remove(outcome.key)
                spent[name] += outcome.cpu
                if not keys:
                    console.print(f"{name}: measured, {time_in_words(spent[name])} of CPU")

    return tick
