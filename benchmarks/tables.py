"""What the benchmarks share: jobs in processes, and tables on the terminal, as Markdown and CSV."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import joblib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.timing import load_average
from kreinlearn.report.model import Table
from reproduction.report import commit, provenance

COMMIT = commit()  # before anything is measured, as files may change meanwhile
LOAD = load_average()  # likewise
WIDTH = 190  # characters of a console that is no terminal
T = TypeVar("T")
VERDICTS = {True: "PASS", False: "MISS", None: "not measured"}


class Check(NamedTuple):
    """A claim, what was measured, what was required, and whether it holds (None: unknown)."""

    what: str
    found: str
    limit: str
    holds: bool | None


def checked(checks: Iterable[Check]) -> Table:
    """The table of what was checked."""
    rows = [[one.what, VERDICTS[one.holds], one.found, one.limit] for one in checks]
    return Table("Checks", ("claim", "verdict", "found", "limit"), rows)


def results_of(jobs: Sequence[Callable[[], T]], names: Sequence[str], n_jobs: int) -> Iterator[T]:
    """Run jobs in processes with one thread each, and yield their results in order.

    A bar on stderr shows the progress, with the name of the job that has ended.
    """
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with (
        Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar,
        joblib.parallel_config("loky", inner_max_num_threads=1),
    ):
        task = bar.add_task("", total=len(jobs))
        pool = joblib.Parallel(n_jobs=min(n_jobs, max(len(jobs), 1)), return_as="generator")
        ended = pool(joblib.delayed(job)() for job in jobs)
        for name, result in zip(names, ended, strict=True):
            bar.update(task, advance=1, description=name)
            yield result


def console() -> Console:
    """The standard output, wide enough for the tables if it is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def command_line(module: str, arguments: Sequence[str] | None) -> str:
    """The command as it was given (None: to this process), without the folders of files."""
    words = sys.argv[1:] if arguments is None else arguments
    named = [Path(word).name if Path(word).is_absolute() else word for word in words]
    return shlex.join(["python", "-m", module, *named])


def about(command: str, commits: Iterable[str] = ()) -> str:
    """A list that says when, at which commit, with what, where and how a page was measured.

    The load average tells whether the machine was idle.

    The commit is that of this code, unless others have measured the figures.
    """
    load = f"- load average when this command began: {LOAD}"
    return f"{provenance(command, list(commits) or [COMMIT])}\n{load}"


def write_markdown(
    path: Path, heading: str, command: str, tables: Iterable[Table], commits: Iterable[str] = ()
) -> None:
    """Write tables under a heading, with the commit, versions and machine that made them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lead = about(command, commits)
    parts = [f"# {heading}", "", lead, "", *(table.markdown() for table in tables)]
    path.write_text("\n".join(parts), encoding="utf8")


def write_csv(path: Path, figures: Sequence[Any], *, more: bool = False) -> None:
    """One line per figure, with the commit of this code; figures are named tuples of one kind.

    ``more`` adds them to a file that is there already.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not (more and path.exists())
    with open(path, "w" if new else "a", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow((*figures[0]._fields, "commit") if figures else ())
        writer.writerows((*figure, COMMIT) for figure in figures)


def read_csv(path: Path, kind: Any) -> list[tuple[Any, str]]:
    """The figures that a run wrote, as named tuples of ``kind``, and their commits."""
    types = ["True".__eq__ if t is bool else t for t in get_type_hints(kind).values()]
    with open(path, encoding="utf8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows)) != (*kind._fields, "commit"):
            raise ValueError(f"{path.name} was written by another version of this benchmark")
        return [
            (kind(*(t(v) for t, v in zip(types, values, strict=True))), commit)
            for *values, commit in rows
        ]
