"""Measurements as tasks: run side by side, written down one by one, never run twice."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]  # values of JSON
Measurements = dict[str, list[Row]]  # by key of the task


class Task(NamedTuple):
    """Something to be measured; ``run`` can be pickled and needs nothing but its arguments."""

    key: str  # "approximating/all/cal_housing/delta_gauss/seed 0"
    run: Callable[[], list[Row]]
    cost: float = 1.0  # CPU seconds, roughly: the longest are begun first
    alone: bool = False  # a timing: nothing runs beside it


class Outcome(NamedTuple):
    key: str
    rows: list[Row]
    wall: float
    cpu: float
    failed: str = ""


class MixedMeasurements(Exception):
    """A journal that other versions have written."""


class Journal:
    """A file of outcomes, one a line; what a killed run has written counts in the next."""

    def __init__(self, path: Path, versions: dict[str, str]) -> None:
        self.path, self.versions = path, versions
        self.outcomes: dict[str, Outcome] = {}
        if path.exists():
            self._read()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append({"versions": versions})

    def _read(self) -> None:
        whole = self.path.read_bytes()
        complete = whole[: whole.rfind(b"\n") + 1]  # a torn last line is measured again
        if complete != whole:
            with open(self.path, "r+b") as file:
                file.truncate(len(complete))
        first, *lines = map(json.loads, complete.decode("utf8").splitlines() or ["{}"])
        if first.get("versions") != self.versions:
            raise MixedMeasurements(
                f"{self.path} was written with {_said(first.get('versions', {}))}, this is "
                f"{_said(self.versions)}; pass --fresh to measure everything again, or another "
                "--output"
            )
        self.outcomes = {line["key"]: Outcome(**line) for line in lines}

    def _append(self, line: dict[str, Any]) -> None:
        with open(self.path, "a", encoding="utf8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def add(self, outcome: Outcome) -> None:
        self._append(outcome._asdict())
        self.outcomes[outcome.key] = outcome

    def measurements(self, keys: Iterable[str]) -> Measurements:
        return {key: self.outcomes[key].rows for key in keys if key in self.outcomes}


def _said(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items()) or "no versions"


# Running


def distinct(tasks: Iterable[Task]) -> list[Task]:
    """Each key once: several tables may be made of one measurement."""
    return list({task.key: task for task in tasks}.values())


def outcomes(tasks: Sequence[Task], n_jobs: int) -> Iterator[Outcome]:
    """In the order they end: first those that may run side by side, then the timings."""
    import joblib

    beside = sorted((t for t in tasks if not t.alone), key=lambda task: -task.cost)
    if n_jobs > 1 and len(beside) > 1:
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)  # fmt: skip # noqa: E501
            yield from pool(joblib.delayed(outcome)(task) for task in beside)
    else:
        yield from map(outcome, beside)
    yield from (outcome(task) for task in tasks if task.alone)


def outcome(task: Task) -> Outcome:
    """Run in one thread, timed; a failure is an outcome, too, and is not kept."""
    from threadpoolctl import threadpool_limits

    wall, cpu = time.perf_counter(), time.process_time()
    rows, failed = [], ""
    try:
        with threadpool_limits(1):
            rows = task.run()
    except Exception:
        failed = traceback.format_exc()
    return Outcome(
        task.key, rows, time.perf_counter() - wall, time.process_time() - cpu, failed
    )
