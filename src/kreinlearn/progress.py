"""Progress of kernel evaluations: a bar on a terminal, a word before a long run, else nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from statistics import median
from typing import Any, Protocol

from kreinlearn._parts import Count, counting

LONG_RUN = 10.0  # seconds that are worth a word beforehand
PERIODS = ((86400, "days"), (3600, "h"), (60, "min"))  # each from two of them on
TIMED_SECONDS = 0.03  # what took that long is believed
TIMED_ROWS = 5  # of which the median counts: a process may have to wait its turn


class Tasks(Protocol):
    """Somebody else who shows steps, of so many rows or pairs."""

    def step(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]: ...


class Progress:
    """What the evaluations of a fit report to; silent unless ``verbose`` or with ``tasks``."""

    def __init__(
        self, verbose: int | bool = 0, kernel: Any = "kernel", tasks: Tasks | None = None
    ) -> None:
        self.verbose, self.kernel, self.tasks = verbose, kernel, tasks
        self._add: Count | None = None
        self._ahead = (0, 0)  # rows and pairs shown already of what ``add`` will report

    @contextmanager
    def step(self, what: str, rows: int, pairs: int = 0) -> Iterator[None]:
        """A task while inside, if callbacks want them, or a bar on a terminal.

        A step within a step is part of it.
        """
        shown = self.tasks is not None or (self.verbose and _terminal())
        if self._add is not None or not shown:
            yield
            return
        count = _bar if self.tasks is None else partial(_task, self.tasks)
        with count(what, rows, pairs) as self._add, counting(self._part):
            try:
                yield
            finally:
                self._add, self._ahead = None, (0, 0)

    def add(self, rows: int, pairs: int = 0) -> None:
        """So many are done; any thread may say so."""
        if (add := self._add) is not None:
            ahead, self._ahead = self._ahead, (0, 0)
            add(rows - ahead[0], pairs - ahead[1])

    def _part(self, rows: int, pairs: int) -> None:
        """A part is done; ``add`` reports the whole of it, in this thread, as the only one."""
        assert self._add is not None
        self._add(rows, pairs)
        self._ahead = (self._ahead[0] + rows, self._ahead[1] + pairs)

    def announce(self, pairs: int, seconds: float, cores: int = 1, at_least: str = "") -> None:
        """What a run of ``seconds`` will come to, if it is long: also where no bar is shown."""
        if self.verbose and seconds >= LONG_RUN and sys.stderr is not None:
            cost = cost_in_words(pairs, seconds, cores)
            print(f"{name_of(self.kernel)}: {at_least}{cost}", file=sys.stderr, flush=True)


def _terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _task(tasks: Tasks, what: str, rows: int, pairs: int) -> Iterator[Count]:
    with tasks.step(what, pairs or rows) as add:
        yield lambda more_rows, more_pairs: add(more_pairs if pairs else more_rows)


@contextmanager
def _bar(what: str, rows: int, pairs: int) -> Iterator[Count]:
    """A bar that goes when it is done, or given up."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Numbers(ProgressColumn):
        def render(self, task: Task) -> Text:
            done, elapsed = int(task.completed), task.elapsed or 0.0
            return Text(state_in_words(task.fields["rows"], rows, done, pairs, elapsed))

    layout = (TextColumn("{task.description}"), BarColumn(bar_width=20), Numbers())
    console, lock = Console(stderr=True), threading.Lock()
    aside = sys.stdout is not None and sys.stdout.isatty()  # else it may be a file
    with Bars(*layout, console=console, transient=True, redirect_stdout=aside) as bars:
        task = bars.add_task(what, total=pairs or rows, rows=0)

        def add(more_rows: int, more_pairs: int) -> None:
            with lock:
                so_far = bars.tasks[0].fields["rows"] + more_rows
                bars.update(task, advance=more_pairs if pairs else more_rows, rows=so_far)

        yield add


# In words


def state_in_words(rows: int, all_rows: int, done: int, pairs: int, elapsed: float) -> str:
    """``done`` are pairs, or rows where no pairs are counted."""
    unit, total = ("pairs", pairs) if pairs else ("rows", all_rows)
    counted = f", {count_in_words(done)}/{count_in_words(pairs)} pairs" if pairs else ""
    said = f"{rows:,}/{all_rows:,} rows{counted}"
    if not done or not elapsed:
        return said
    rate = done / elapsed
    left = time_in_words(max(total - done, 0) / rate)
    return f"{said}, {count_in_words(rate)} {unit}/s, {left} left"


def cost_in_words(pairs: int, seconds: float, cores: int) -> str:
    on = f"{cores} cores" if cores > 1 else "1 core"
    return f"{count_in_words(pairs)} pairs, about {time_in_words(seconds)} on {on}"


def time_in_words(seconds: float) -> str:
    """ "40 s", "3 min", "2 h", "5 days": a quarter more or less is as good for an estimate."""
    for period, unit in PERIODS:
        if seconds >= 2 * period:
            return f"{seconds / period:.0f} {unit}"
    return f"{seconds:.0f} s"


def count_in_words(count: float) -> str:
    """In full up to a million, then two digits: "45,150", "1.2e9"."""
    if count < 999_999.5:
        return f"{count:,.0f}"
    mantissa, _, exponent = f"{count:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def name_of(kernel: Any) -> str:
    """A kernel's name, or that of the function it calls, or of its class."""
    if isinstance(kernel, str):
        return kernel
    function = getattr(kernel, "func", kernel)
    return str(getattr(function, "__name__", type(kernel).__name__))


# What a pair takes


def seconds_a_pair(columns: Callable[[int], Callable[[int], Any]], most: int) -> float | None:
    """``columns(k)(i)`` evaluates row i against k columns: k grows until it takes a while.

    Of at most ``most`` pairs; None if these are too few to say. The first call may compile.
    """
    k, found, spent = 1, None, 0.0
    columns(1)(0)
    while spent < TIMED_SECONDS and 2 * TIMED_ROWS * k <= most:
        row, times = columns(k), list[float]()
        for i in range(TIMED_ROWS):
            start = time.perf_counter()
            row(i)
            times.append(time.perf_counter() - start)
            if sum(times) > 3 * TIMED_SECONDS:
                break
        found, spent, k = median(times) / k, sum(times), 4 * k
    return found
