"""kreinlearn reproduce: measure what is not yet measured, write the report, say what was found."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kreinlearn.paper import ranges
from kreinlearn.paper.measuring import duration, measure
from kreinlearn.paper.names import FOLDER, NAMES, REPORT, RESULTS
from kreinlearn.paper.scale import QUICK, Scale
from kreinlearn.paper.tasks import Journal, MixedMeasurements, Task
from kreinlearn.report import (
    Block,
    Document,
    Section,
    provenance,
    show,
    to_html,
    to_markdown,
    versions,
)

if TYPE_CHECKING:
    from rich.console import Console

    from kreinlearn.paper.parts import Part

JOURNAL, FIGURES, FAILURES = "measurements.jsonl", "figures", "failures.txt"
WIDTH = 160  # of a console that is no terminal
TITLE = "Scalable learning in reproducing kernel Krein spaces: the experiments, run again"
WHAT = (
    "These are the experiments of D. Oglic and T. Gaertner, “Scalable Learning in Reproducing "
    "Kernel Krein Spaces”, ICML 2019, run again with kreinlearn, the paper's numbers beside ours. "
    "Those were read off its tables and figures; where none are at hand, the section says so. The "
    "kernel that the paper calls RL-Sigmoid is undefined in the source at hand, and is not among "
    "these experiments."
)


@dataclass
class Run:
    """What is asked for, and what went wrong."""

    parts: Mapping[str, Part]
    scale: Scale
    command: str
    versions: dict[str, str]
    tasks: dict[str, list[Task]]
    whole: bool  # all parts were asked for
    failures: dict[str, str] = field(default_factory=dict)  # tracebacks

    @property
    def keys(self) -> list[str]:
        return list({task.key: None for tasks in self.tasks.values() for task in tasks})


def reproduce(
    names: Sequence[str],
    scale: Scale,
    output: Path = FOLDER,
    n_jobs: int | None = None,
    *,
    fresh: bool = False,
    report_only: bool = False,
    command: str = "kreinlearn reproduce",
    console: Console | None = None,
    registry: Mapping[str, Part] | None = None,
) -> int:
    """The exit status: 0; 1 after a failure or a number outside its range; 130 after Ctrl-C."""
    import joblib

    from kreinlearn import __version__

    known = registry or _parts()
    tasks = {name: part.tasks(scale) for name, part in known.items() if name in names}
    journal = _opened(output / JOURNAL, versions(__version__), fresh)
    before = _measured_before(known, names, scale, journal)
    parts = {name: part for name, part in known.items() if name in {*tasks, *before}}
    every = {**tasks, **before}
    run = Run(parts, scale, command, journal.versions, every, whole=tasks.keys() == NAMES.keys())
    if report_only:
        if not journal.measurements(run.keys):
            print(f"{output} holds no measurement of it: omit --report-only", file=sys.stderr)
            return 1
    else:
        try:
            run.failures = measure(tasks, journal, n_jobs or joblib.cpu_count(), fresh)
        except KeyboardInterrupt:
            print(_interrupted(run, journal, fresh), file=sys.stderr)
            return 130
    return _reported(run, journal, output, console or _console())


def _parts() -> Mapping[str, Part]:
    from kreinlearn.paper.parts import PARTS

    return PARTS


def _measured_before(
    known: Mapping[str, Part], names: Sequence[str], scale: Scale, journal: Journal
) -> dict[str, list[Task]]:
    """Parts that are not asked for now but were once: they stay in the report."""
    others = {name: part.tasks(scale) for name, part in known.items() if name not in names}
    return {
        name: tasks
        for name, tasks in others.items()
        if tasks and journal.measurements(task.key for task in tasks)
    }


def _opened(path: Path, versions: dict[str, str], fresh: bool) -> Journal:
    try:
        return Journal(path, versions)
    except MixedMeasurements:
        if not fresh:
            raise
        path.replace(path.with_suffix(".old"))  # hours of work, perhaps: not deleted
        return Journal(path, versions)


def _interrupted(run: Run, journal: Journal, fresh: bool) -> str:
    kept = len(journal.measurements(run.keys))
    again = "the same command without --fresh" if fresh else "the same command"
    return f"interrupted: {kept} of {len(run.keys)} measurements are kept; {again} goes on"


def _console() -> Console:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


# The report


def _reported(run: Run, journal: Journal, output: Path, console: Console) -> int:
    document, holds = documented(run, journal)
    written(document, output)
    if run.failures:
        _write(output / FAILURES, "\n".join(f"{k}\n{v}" for k, v in run.failures.items()))
    show(document, console)
    if find_spec("matplotlib") is None:
        print('no figures: matplotlib is missing; pip install "kreinlearn[plot]"', file=sys.stderr)
    for what, failure in run.failures.items():
        print(f"failed: {what}: {_last_line(failure)}", file=sys.stderr)
    print(_verdicts(document))
    print(f"report: {(output / REPORT).absolute()}")
    return int(bool(run.failures) or not holds)


def _verdicts(document: Document) -> str:
    held = [check.holds for section in document.sections for check in section.checks]
    return (
        f"checks: {held.count(True)} hold, {held.count(False)} do not, {held.count(None)} could "
        "not be measured"
    )


def documented(run: Run, journal: Journal) -> tuple[Document, bool]:
    """Also whether the numbers of a whole quick run are in their ranges."""
    from kreinlearn.paper.sets import is_there

    document = Document(TITLE, sections=[_section(run, journal, name) for name in run.parts])
    holds = True
    if run.scale == QUICK and run.whole:
        numbers = {k: v for section in document.sections for k, v in section.numbers.items()}
        comparisons = ranges.compared(numbers, ranges.stored(), is_there)
        holds = not any(comparison.holds is False for comparison in comparisons)
        document.sections.append(ranges.section(comparisons))
    document.lead = [WHAT, provenance(run.command, run.versions), *_effort(run, journal)]
    document.lead += _missing(run.scale) + _failed(run.failures)
    return document, holds


def _section(run: Run, journal: Journal, name: str) -> Section:
    """A part that cannot be read does not take the others with it."""
    measurements = journal.measurements(task.key for task in run.tasks[name])
    try:
        return run.parts[name].section(run.scale, measurements)
    except Exception:
        run.failures[f"section {name}"] = traceback.format_exc()
        return Section(name, ["This section could not be made of what was measured."])


def _effort(run: Run, journal: Journal) -> list[Block]:
    kept = [journal.outcomes[key] for key in run.keys if key in journal.outcomes]
    cpu, wall = (duration(sum(getattr(o, name) for o in kept)) for name in ("cpu", "wall"))
    said: list[Block] = [
        f"Of {len(run.keys)} measurements {len(kept)} were made; they took {cpu} of CPU and, added "
        f"up, {wall} by the clock."
    ]
    warned = {text: sum(text in o.warned for o in kept) for o in kept for text in o.warned}
    if warned:
        said.append("Warnings that came up, with the number of measurements that gave them:")
        said.append("\n".join(f"- {' '.join(text.split())} ({n})" for text, n in warned.items()))
    return said


def _missing(scale: Scale) -> list[Block]:
    from kreinlearn.paper.sets import missing, stand_ins

    said: list[Block] = []
    for opening, sentences in (
        ("Not at hand and not measured; where they are, the same command measures them, too:",
         missing(scale)),
        ("Measured on something else, as the paper's own matrix is not at hand:",
         stand_ins(scale)),
    ):  # fmt: skip
        if sentences:
            said += [opening, "\n".join(f"- {sentence}" for sentence in sentences)]
    return said


def _failed(failures: Mapping[str, str]) -> list[Block]:
    if not failures:
        return []
    items = (f"- {what}: {_last_line(failure)}" for what, failure in failures.items())
    return [f"These failed (more in {FAILURES}):", "\n".join(items)]


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


# Files


def written(document: Document, output: Path) -> None:
    """Each file whole, or as it was before."""
    (output / FIGURES).mkdir(parents=True, exist_ok=True)
    for picture in document.pictures:
        _write(output / FIGURES / f"{picture.name}.svg", picture.svg)
    _write(output / RESULTS, to_markdown(document, FIGURES))
    _write(output / REPORT, to_html(document))


def _write(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
