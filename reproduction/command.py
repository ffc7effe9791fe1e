"""python -m reproduction: measure what is not yet measured, and report all that is measured."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from kreinlearn.data.writing import replacing
from kreinlearn.plotting.style import MISSING
from kreinlearn.progress import time_in_words
from kreinlearn.report import model
from kreinlearn.report.html import to_html
from kreinlearn.report.markdown import to_markdown
from kreinlearn.report.model import Block, Check, Document, Section, Table
from kreinlearn.report.terminal import show
from reproduction import printed
from reproduction.reading import say
from reproduction.scale import FOLDER, NAMES, QUICK, REPORT, RESULTS, Scale
from reproduction.tasks import Journal, Measurements, MixedMeasurements, Task, measure

if TYPE_CHECKING:
    from rich.console import Console

JOURNAL, FIGURES, FAILURES = "measurements.jsonl", "figures", "failures.txt"
WIDTH = 160  # characters of a console that is no terminal
TITLE = "Scalable learning in reproducing kernel Krein spaces: the experiments, run again"


class Part(Protocol):
    """What the module of each part offers: tasks to run, and a section made of their rows."""

    def tasks(self, scale: Scale, /) -> list[Task]: ...

    def section(self, scale: Scale, measurements: Measurements, /) -> Section: ...


def all_parts() -> dict[str, Part]:
    """The parts by name; the part "rank-error" is the module ``rank_error``."""
    modules = {name: name.replace("-", "_") for name in NAMES}
    return {k: cast(Part, import_module(f"reproduction.{m}")) for k, m in modules.items()}


@dataclass
class Run:
    """What is to be reported, and what went wrong."""

    parts: Mapping[str, Part]
    scale: Scale
    command: str
    tasks: dict[str, list[Task]]  # of the parts that are asked for, or were measured before
    whole: bool  # all parts were asked for
    failures: dict[str, str] = field(default_factory=dict)  # tracebacks

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys(task.key for tasks in self.tasks.values() for task in tasks))


def reproduce(
    names: Sequence[str], scale: Scale, output: Path = FOLDER, n_jobs: int | None = None, *,
    fresh: bool = False, report_only: bool = False, command: str = "python -m reproduction",
    console: Console | None = None, registry: Mapping[str, Part] | None = None,
) -> int:  # fmt: skip
    """Run parts of the reproduction and write the report.

    Parameters
    ----------
    names : sequence of str
        The parts to measure, by the names of ``reproduction.scale.NAMES``.
    scale : Scale
        How much is measured: ``ALL`` or ``QUICK``.
    output : Path, default="kreinlearn-paper"
        The folder of the journal, the report and its figures.
    n_jobs : int or None, default=None
        The number of processes; None takes all cores.
    fresh : bool, default=False
        Whether to measure again what the journal already has.
    report_only : bool, default=False
        Whether to write the report from the journal and measure nothing.
    command : str, default="python -m reproduction"
        The command line that the report quotes.
    console : rich.console.Console or None, default=None
        Where the report is shown; None is the standard output.
    registry : mapping of str to Part or None, default=None
        The parts by name; None takes those of the paper.

    Returns
    -------
    status : int
        The exit status: 0; 1 after a failure or with a number outside its range; 130 after Ctrl-C.
    """
    import joblib

    parts = registry or all_parts()
    journal = _opened(output / JOURNAL, fresh)
    every = {name: part.tasks(scale) for name, part in parts.items()}
    asked = {name: tasks for name, tasks in every.items() if name in names}
    before = {k: v for k, v in every.items() if journal.measurements(task.key for task in v)}
    tasks = {name: every[name] for name in parts if name in asked or name in before}
    run = Run(parts, scale, command, tasks, whole=asked.keys() == NAMES.keys())
    if report_only:
        if not journal.measurements(run.keys):
            print(f"{output} holds no measurement of it: omit --report-only", file=sys.stderr)
            return 1
    else:
        try:
            run.failures = measure(asked, journal, n_jobs or joblib.cpu_count(), fresh)
        except KeyboardInterrupt:
            kept = _opened(output / JOURNAL, fresh=False)  # read again, as the next run reads it
            n, total = len(kept.measurements(run.keys)), len(run.keys)
            again = f"the same command{' without --fresh' if fresh else ''} goes on"
            print(f"interrupted: {n} of {total} measurements are kept; {again}", file=sys.stderr)
            return 130
    return _reported(run, journal, output, console or _console())


def _opened(path: Path, fresh: bool) -> Journal:
    try:
        return Journal(path, model.versions())
    except MixedMeasurements:
        if not fresh:
            raise
        path.replace(path.with_suffix(".old"))  # perhaps hours of work: it is not deleted
        return Journal(path, model.versions())


def _console() -> Console:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


# The report


def _reported(run: Run, journal: Journal, output: Path, console: Console) -> int:
    """Write and show the report; returns the exit status."""
    document, holds = documented(run, journal)
    written(document, output)
    if run.failures:
        _write(output / FAILURES, "\n".join(f"{k}\n{v}" for k, v in run.failures.items()))
    show(document, console)
    if find_spec("matplotlib") is None:
        print(f"no figures: {MISSING}", file=sys.stderr)
    for failure in _last_lines(run.failures):
        print(f"failed: {failure}", file=sys.stderr)
    verdicts = [check.holds for section in document.sections for check in section.checks]
    hold, fail, unknown = (verdicts.count(verdict) for verdict in (True, False, None))
    print(f"checks: {hold} hold, {fail} do not, {unknown} could not be measured")
    if not holds:
        print("numbers: some are outside the ranges of a quick run (MISS in the last table)")
    print(f"report: {(output / REPORT).absolute()}")
    return int(bool(run.failures) or not holds)


def documented(run: Run, journal: Journal) -> tuple[Document, bool]:
    """The report, and whether the numbers of a whole quick run are within their ranges."""
    from reproduction.sets import is_there, missing, stand_ins

    document = Document(TITLE, sections=[_section(run, journal, name) for name in run.tasks])
    holds = True
    if run.scale == QUICK and run.whole:
        numbers = {k: v for section in document.sections for k, v in section.numbers.items()}
        checks = compared(numbers, printed.ranges(), is_there)
        holds = not any(check.holds is False for check in checks)
        document.sections.append(compared_section(checks))
    document.lead = [
        say("command.what"),
        model.provenance(run.command, _commits(run, journal)),
        *_effort(run, journal),
        *_listed(say("command.missing"), missing(run.scale)),
        *_listed(say("command.stand_ins"), stand_ins(run.scale)),
        *_listed(f"These failed (more in {FAILURES}):", _last_lines(run.failures)),
    ]
    return document, holds


def _commits(run: Run, journal: Journal) -> set[str]:
    """The commits of the code that has made the measurements."""
    return {journal.outcomes[key].commit for key in run.keys if key in journal.outcomes}


def _section(run: Run, journal: Journal, name: str) -> Section:
    """The section of one part; if it fails, the others are written all the same."""
    measurements = journal.measurements(task.key for task in run.tasks[name])
    try:
        return run.parts[name].section(run.scale, measurements)
    except Exception:
        run.failures[f"section {name}"] = traceback.format_exc()
        return Section(name, ["This section could not be made of what was measured."])


def _effort(run: Run, journal: Journal) -> list[Block]:
    """What the measurements cost, and which warnings they gave."""
    made = [journal.outcomes[key] for key in run.keys if key in journal.outcomes]
    cpu, wall = (time_in_words(sum(getattr(o, name) for o in made)) for name in ("cpu", "wall"))
    warned = {text: sum(text in o.warned for o in made) for o in made for text in o.warned}
    return [
        say("command.effort", total=len(run.keys), made=len(made), cpu=cpu, wall=wall),
        *_listed(
            "Warnings that came up, with the number of measurements that gave them:",
            (f"{text} ({n})" for text, n in warned.items()),
        ),
    ]


def _listed(opening: str, items: Iterable[str]) -> list[Block]:
    """An opening and a list, or nothing where there are no items."""
    text = model.bulleted(items)
    return [opening, text] if text else []


def _last_lines(failures: Mapping[str, str]) -> list[str]:
    """Each failure with the last line of its traceback."""
    return [f"{what}: {text.strip().splitlines()[-1]}" for what, text in failures.items()]


# The numbers of the quick run


def compared(
    numbers: Mapping[str, float], ranges: Iterable[printed.Range], is_there: Callable[[str], bool]
) -> list[Check]:
    """One check per range; a number that is missing although its data are there fails.

    Where the data are not there the number, if any, belongs to something that stands in for them,
    and nothing can be said.
    """
    checks = []
    for name, low, high, needs in ranges:
        value = numbers.get(name)
        shown = "-" if value is None else f"{value:.4g}"
        holds = value is not None and low <= value <= high
        skipped = needs != "" and not is_there(needs)
        checks.append(Check(name, shown, f"{low:g} to {high:g}", None if skipped else holds))
    return checks


def compared_section(checks: Sequence[Check]) -> Section:
    """The comparison as a section of the report."""
    verdicts = [check.holds for check in checks]
    within, outside, skipped = (verdicts.count(holds) for holds in (True, False, None))
    text = say("ranges.summary", total=len(checks), within=within, outside=outside, skipped=skipped)
    rows = [[check.what, check.found, check.limit, check.verdict] for check in checks]
    table = Table("The quick run's numbers", ("number", "found", "range", "verdict"), rows)
    return Section("Comparison with stored ranges", [text, table] if rows else [text])


# Files


def written(document: Document, output: Path) -> None:
    """Write the report and its figures; each file is replaced as a whole."""
    (output / FIGURES).mkdir(parents=True, exist_ok=True)
    for picture in document.pictures:
        _write(output / FIGURES / f"{picture.name}.svg", picture.svg)
    _write(output / RESULTS, to_markdown(document, FIGURES))
    _write(output / REPORT, to_html(document))


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf8")
