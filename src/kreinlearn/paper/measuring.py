"""Run the tasks that are not yet measured, with a progress bar or, elsewhere, one line per part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kreinlearn.paper.tasks import Journal, Outcome, Task, distinct, outcomes

if TYPE_CHECKING:
    from rich.console import Console

Tick = Callable[[Outcome], None]


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
                for outcome in outcomes(todo, n_jobs):
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
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    costs, began = {task.key: max(task.cost, 0.01) for task in todo}, time.monotonic()
    columns = [BarColumn(), TaskProgressColumn(), TimeElapsedColumn()]
    # It is drawn twice a second only, so that timings are not disturbed.
    with Progress(
        *columns, TextColumn("{task.description}"), console=console, refresh_per_second=2
    ) as bar:
        shown = bar.add_task(f"0/{len(todo)} measurements", total=sum(costs.values()))
        done: list[str] = []

        def tick(outcome: Outcome) -> None:
            done.append(outcome.key)
            share = sum(costs[key] for key in done) / sum(costs.values())
            left = (time.monotonic() - began) * (1 - share) / share
            text = f"{len(done)}/{len(todo)} measurements, about {duration(left)} left"
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
                    console.print(f"{name}: measured, {duration(spent[name])} of CPU")

    return tick


def duration(seconds: float) -> str:
    """A time in words, such as 12 s, 3 min or 1 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
