"""What a running fit tells its user: a progress bar, a word of warning, or a callback.

Three audiences are served. On a terminal, ``verbose`` draws one bar per long step. Before a run
that will take a while, ``verbose`` prints how long it is expected to take. Callbacks of
scikit-learn, if the estimator has any, are told of the fit, of its long steps, and of up to
``PARTS`` parts of each step; they then take the place of the bar.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from kreinlearn._compat import CallbackSupportMixin

LONG_RUN = 10.0  # seconds; a run that takes longer is announced beforehand
PARTS = 50  # a step is reported to callbacks in at most so many parts
PERIODS = ((86400, "days"), (3600, "h"), (60, "min"))  # each is used from two of them on
TIMED_SECONDS = 0.03  # a measurement that took this long is trusted
SLOW_PAIR = 1.0  # seconds of a row of one pair that are taken for those of the pair
TIMED_ROWS = 5  # rows per measurement; their median counts, as a process may have to wait its turn

Count: TypeAlias = Callable[[int, int], None]  # is told how many more rows and pairs are done


# Parts of a block, reported by whoever evaluates them

_count: ContextVar[Count | None] = ContextVar("count", default=None)


@contextmanager
def counting(count: Count) -> Iterator[None]:
    """Within this block, and in this thread only, ``part_done`` calls ``count``."""
    before = _count.set(count)
    try:
        yield
    finally:
        _count.reset(before)


def part_done(rows: int, pairs: int) -> None:
    """Report that part of a block is evaluated, to whoever is counting in this thread."""
    if (count := _count.get()) is not None:
        count(rows, pairs)


# Steps of a fit


class Progress:
    """Where the steps of a fit report how far they are.

    Nothing is shown unless ``verbose`` is set and standard error is a terminal, or ``tasks`` are
    given, which then take the place of the bar.
    """

    def __init__(
        self, verbose: int | bool = 0, kernel: object = "kernel", tasks: Tasks | None = None
    ) -> None:
        self.verbose, self.kernel, self.tasks = verbose, kernel, tasks
        self._add: Count | None = None
        self._ahead = (0, 0)  # rows and pairs of the next ``add`` that are shown already

    @contextmanager
    def step(self, what: str, rows: int, pairs: int = 0, seconds: float = 0.0) -> Iterator[None]:
        """Show one step, with its number of rows and pairs, while this block runs.

        A step within a step is part of the outer one and is not shown by itself. If it is known
        that the step will take some ``seconds``, what it does are jobs of unequal length and not
        rows: ``pairs`` are then parts of that time.
        """
        shown = self.tasks is not None or (self.verbose and _is_terminal(sys.stderr))
        if self._add is not None or not shown:
            yield
            return
        count = partial(_bar, seconds=seconds) if self.tasks is None else self.tasks.step
        with count(what, rows, pairs) as self._add, counting(self._part):
            try:
                yield
            finally:
                self._add, self._ahead = None, (0, 0)

    def add(self, rows: int, pairs: int = 0) -> None:
        """Report that further rows and pairs are done; any thread may call this."""
        if (add := self._add) is not None:
            ahead, self._ahead = self._ahead, (0, 0)
            add(rows - ahead[0], pairs - ahead[1])

    def _part(self, rows: int, pairs: int) -> None:
        """Show a part at once, and subtract it from the block that ``add`` reports later.

        Parts are evaluated by the thread that counts, while no other thread calls ``add``.
        """
        assert self._add is not None
        self._add(rows, pairs)
        self._ahead = (self._ahead[0] + rows, self._ahead[1] + pairs)

    def say(self, text: str) -> None:
        """Print a line, also where no bar can be shown."""
        if self.verbose and sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)

    def announce(self, pairs: int, seconds: float, cores: int = 1, at_least: str = "") -> None:
        """Print how long a run will take, if it is long; also where no bar can be shown."""
        if seconds >= LONG_RUN:
            cost = cost_in_words(pairs, seconds, cores)
            self.say(f"{name_of(self.kernel)}: {at_least}{cost}")


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


@contextmanager
def _bar(what: str, rows: int, pairs: int, seconds: float = 0.0) -> Iterator[Count]:
    """Draw a bar that disappears when the step ends or fails."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Numbers(ProgressColumn):
        def render(self, task: Task) -> Text:
            done, elapsed = int(task.completed), task.elapsed or 0.0
            if seconds:
                share = done / (pairs or rows)
                return Text(jobs_in_words(task.fields["rows"], rows, share, elapsed, seconds))
            return Text(state_in_words(task.fields["rows"], rows, done, pairs, elapsed))

    layout = (TextColumn("{task.description}"), BarColumn(bar_width=20), Numbers())
    console, lock = Console(stderr=True), threading.Lock()
    redirect = _is_terminal(sys.stdout)  # what is printed to a file must reach the file
    with Bars(*layout, console=console, transient=True, redirect_stdout=redirect) as bars:
        task = bars.add_task(what, total=pairs or rows, rows=0)

        def add(more_rows: int, more_pairs: int) -> None:
            with lock:
                so_far = bars.tasks[0].fields["rows"] + more_rows
                bars.update(task, advance=more_pairs if pairs else more_rows, rows=so_far)

        yield add


# Callbacks of scikit-learn, whose interface is experimental


@contextmanager
def fit_task(
    estimator: CallbackSupportMixin, X: object = None, y: object = None,
    sample_weight: object = None,
) -> Iterator[None]:  # fmt: skip
    """Tell the callbacks of an estimator that a fit begins, and that it has ended.

    A fit within a fit (of the folds of a calibration, say) is part of the outer one. A fit that
    fails has no end, as in the estimators of scikit-learn, whose own context of ``fit`` takes the
    callbacks down in either case. A callback that asks to stop is ignored: no step of a fit can be
    left out.
    """
    if hasattr(estimator, "_callback_fit_ctx"):
        yield
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    task = estimator._init_callback_context(max_subtasks=None)
    task.call_on_fit_task_begin(**data)
    yield
    task.call_on_fit_task_end(**data, reconstruction_attributes=dict)


def tasks_of(estimator: CallbackSupportMixin) -> Tasks | None:
    """The place where the steps of a fit are reported, or None if no callback is listening."""
    context = getattr(estimator, "_callback_fit_ctx", None)
    return Tasks(estimator, context) if context and hasattr(estimator, "_skl_callbacks") else None


class Tasks:
    """Reports each step of a fit to callbacks, as a task below the task of the fit."""

    def __init__(self, estimator: CallbackSupportMixin, context: Any) -> None:
        self.estimator, self.context = estimator, context

    @contextmanager
    def step(self, what: str, rows: int, pairs: int = 0) -> Iterator[Count]:
        """Report one step, measured in pairs, or in rows where no pairs are counted.

        The task ends only if the step is complete: otherwise a bar would show a step that failed
        as done.
        """
        total = pairs or rows
        parts = min(total, PARTS)
        task, lock = self.context.subcontext(task_name=what, max_subtasks=parts), threading.Lock()
        task.call_on_fit_task_begin(estimator=self.estimator)
        done = ended = 0

        def add(more_rows: int, more_pairs: int) -> None:
            nonlocal done, ended
            with lock:
                done += more_pairs if pairs else more_rows
                while ended < min(parts, done * parts // total):
                    part = task.subcontext(task_name="part")
                    part.call_on_fit_task_begin(estimator=self.estimator)
                    part.call_on_fit_task_end(estimator=self.estimator)
                    ended += 1

        yield add
        task.call_on_fit_task_end(estimator=self.estimator)


# Numbers in words


def state_in_words(rows: int, all_rows: int, done: int, pairs: int, elapsed: float) -> str:
    """Rows, pairs, rate and time left; ``done`` counts pairs, or rows if there are no pairs."""
    unit, total = ("pairs", pairs) if pairs else ("rows", all_rows)
    counted = f", {count_in_words(done)}/{count_in_words(pairs)} pairs" if pairs else ""
    state = f"{rows:,}/{all_rows:,} rows{counted}"
    if not done or not elapsed:
        return state
    rate = done / elapsed
    left = time_in_words(max(total - done, 0) / rate)
    return f"{state}, {count_in_words(rate)} {unit}/s, {left} left"


def jobs_in_words(jobs: int, all_jobs: int, share: float, elapsed: float, seconds: float) -> str:
    """Fits and time left; the time is the one expected, until a share of the work is done."""
    left = seconds - elapsed if not share else elapsed / share * (1 - share)
    return f"{jobs:,}/{all_jobs:,} fits, {time_in_words(max(left, 0.0))} left"


def cost_in_words(pairs: int, seconds: float, cores: int) -> str:
    """The number of pairs and the time they take, as in "1.2e9 pairs, about 3 min on 2 cores"."""
    on = f"{cores} cores" if cores > 1 else "1 core"
    return f"{count_in_words(pairs)} pairs, about {time_in_words(seconds)} on {on}"


def time_in_words(seconds: float) -> str:
    """A rough duration: "40 s", "3 min", "2 h", "5 days"."""
    for period, unit in PERIODS:
        if seconds >= 2 * period:
            return f"{seconds / period:.0f} {unit}"
    return f"{seconds:.0f} s"


def count_in_words(count: float) -> str:
    """A count in full up to a million, then with two digits: "45,150", "1.2e9"."""
    if count < 999_999.5:
        return f"{count:,.0f}"
    mantissa, _, exponent = f"{count:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def name_of(kernel: object) -> str:
    """The name of a kernel, of the function that it calls, or of its class."""
    if isinstance(kernel, str):
        return kernel
    function = getattr(kernel, "func", kernel)
    return str(getattr(function, "__name__", type(kernel).__name__))


# The time that one pair takes


def seconds_a_pair(columns: Callable[[int], Callable[[int], object]], most: int) -> float | None:
    """Measure the time of one pair, with at most ``most`` pairs; None if these are too few.

    ``columns(k)(i)`` evaluates row i against k columns. The number of columns grows until a row
    takes long enough to be measured, beyond what a row of one column takes: that may be the price
    of a call. The first call is not counted, as it may compile.
    """
    k, each, first, spent = 1, None, 0.0, 0.0
    columns(1)(0)
    while spent < TIMED_SECONDS and 2 * TIMED_ROWS * k <= most:
        row, times = columns(k), list[float]()
        for i in range(TIMED_ROWS):
            start = time.perf_counter()
            row(i)
            times.append(time.perf_counter() - start)
            if sum(times) > 3 * TIMED_SECONDS:
                break
        now = median(times)
        if k == 1:
            first = each = now
            spent = now if now > SLOW_PAIR else 0.0
        else:
            each = max(now - first, 0.0) / (k - 1) or now / k
            spent = len(times) * max(now - first, 0.0)
        k *= 4
    return each
