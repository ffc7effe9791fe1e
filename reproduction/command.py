"""Measure what is not yet measured, and report all that is measured."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import joblib
from rich.console import Console

from reproduction import (
    approximating,
    approximation,
    classification,
    indefiniteness,
    printed,
    propositions,
    timing,
)
from reproduction.reading import say
from reproduction.report import (
    Block,
    Check,
    Document,
    Section,
    Table,
    bulleted,
    provenance,
    to_markdown,
    versions,
)
from reproduction.scale import FOLDER, NAMES, QUICK, RESULTS, Scale
from reproduction.sets import is_there, missing, stand_ins
from reproduction.tasks import Journal, JournalError, Measurements, Task, measure

JOURNAL, FIGURES, FAILURES = "measurements.jsonl", "figures", "failures.txt"
WIDTH = 160  # characters of a console that is no terminal
TITLE = "Scalable learning in reproducing kernel Krein spaces: the experiments, run again"


class Part(NamedTuple):
    """Tasks to run, and a section made of their rows."""

    tasks: Callable[[Scale], list[Task]]
    section: Callable[[Scale, Measurements], Section]


PARTS = {
    "indefiniteness": Part(indefiniteness.tasks, indefiniteness.section),
    "rank-error": Part(approximating.tasks, approximation.rank_error),
    "time-error": Part(approximating.tasks, approximation.time_error),
    "rank-classification": Part(classification.rank_tasks, classification.rank_error),
    "table1": Part(classification.table1_tasks, classification.table1),
    "table2": Part(classification.table2_tasks, classification.table2),
    "size-time": Part(timing.size_tasks, timing.size_time),
    "flops": Part(timing.flop_tasks, timing.flops),
    "propositions": Part(propositions.tasks, propositions.section),
}


def reproduce(
    names: Sequence[str], scale: Scale, output: Path = FOLDER, n_jobs: int | None = None, *,
    fresh: bool = False, report_only: bool = False, command: str = "python -m reproduction",
    parts: Mapping[str, Part] = PARTS,
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
    parts : mapping of str to Part, default=PARTS
        The parts by name.

    Returns
    -------
    status : int
        The exit status: 0; 1 after a failure or with a number outside its range; 130 after Ctrl-C.
    """
    journal = _opened(output / JOURNAL, fresh)
    tasks = {name: part.tasks(scale) for name, part in parts.items()}
    failures: dict[str, str] = {}
    if not report_only:
        asked = [task for name in names for task in tasks[name]]
        try:
            failures = measure(asked, journal, n_jobs or joblib.cpu_count(), fresh)
        except KeyboardInterrupt:
            kept = len(Journal(journal.path, versions()).measurements(task.key for task in asked))
            print(f"interrupted: {kept} measurements are kept; the same command without --fresh "
                  "goes on", file=sys.stderr)  # fmt: skip
            return 130
    keys = {name: [task.key for task in own] for name, own in tasks.items()}
    shown = [name for name in parts if name in names or journal.measurements(keys[name])]
    document = Document(TITLE)
    for name in shown:
        try:
            found = journal.measurements(keys[name])
            document.sections.append(_section(parts[name], scale, found, keys[name], name))
        except Exception:
            failures[f"section {name}"] = traceback.format_exc()
    holds = True
    if scale == QUICK and set(names) == set(NAMES):
        numbers = {k: v for section in document.sections for k, v in section.numbers.items()}
        checks = compared(numbers, printed.ranges(), is_there)
        holds = not any(check.holds is False for check in checks)
        document.sections.append(compared_section(checks))
    document.lead = _lead(journal, dict.fromkeys(k for n in shown for k in keys[n]), command, scale)
    last_lines = [f"{what}: {text.strip().splitlines()[-1]}" for what, text in failures.items()]
    document.lead += _listed(f"These failed (more in {FAILURES}):", last_lines)
    _written(document, failures, output)
    document.show(Console() if sys.stdout.isatty() else Console(width=WIDTH))
    for failure in last_lines:
        print(f"failed: {failure}", file=sys.stderr)
    if not holds:
        print("numbers: some are outside the ranges of a quick run (MISS in the last table)")
    print(f"report: {(output / RESULTS).absolute()}")
    return int(bool(failures) or not holds)


def _opened(path: Path, fresh: bool) -> Journal:
    try:
        return Journal(path, versions())
    except JournalError:
        if not fresh:
            raise
        path.replace(path.with_suffix(".old"))  # perhaps hours of work: it is not deleted
        return Journal(path, versions())


def _section(
    part: Part, scale: Scale, found: Measurements, keys: Iterable[str], name: str
) -> Section:
    """The section of a part, or what it lacks."""
    if left := [key for key in keys if key not in found]:
        return Section(
            NAMES.get(name, name), [say("command.left", name=name, n=len(left)), bulleted(left)]
        )
    return part.section(scale, found)


def _lead(journal: Journal, keys: Iterable[str], command: str, scale: Scale) -> list[Block]:
    """Where the results come from, what they cost, and what is missing."""
    made = [journal.outcomes[key] for key in keys if key in journal.outcomes]
    cpu, wall = (f"{sum(getattr(o, name) for o in made) / 60:.1f} min" for name in ("cpu", "wall"))
    warned = {text: sum(text in o.warned for o in made) for o in made for text in o.warned}
    return [
        say("command.what"),
        provenance(command, {one.commit for one in made}),
        say("command.effort", made=len(made), cpu=cpu, wall=wall),
        *_listed(say("command.warned"), [f"{text} ({n})" for text, n in warned.items()]),
        *_listed(say("command.missing"), missing(scale)),
        *_listed(say("command.stand_ins"), stand_ins(scale)),
    ]


def _listed(opening: str, items: Iterable[str]) -> list[Block]:
    """An opening and a list, or nothing where there are no items."""
    text = bulleted(items)
    return [opening, text] if text else []


def _written(document: Document, failures: Mapping[str, str], output: Path) -> None:
    """Write the report, its figures and what failed; each file is replaced as a whole."""
    texts = {f"{FIGURES}/{one.name}.svg": one.svg for one in document.pictures}
    texts[RESULTS] = to_markdown(document, FIGURES)
    if failures:
        texts[FAILURES] = "\n".join(f"{what}\n{text}" for what, text in failures.items())
    (output / FIGURES).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        temporary = output / f"{name}.part"
        temporary.write_text(text, encoding="utf8")
        temporary.replace(output / name)


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
    rows = Document("", [], [Section("", [], list(checks))]).checked(1).rows
    rows = [[what, found, limit, verdict] for what, verdict, found, limit in rows]
    table = Table("The quick run's numbers", ("number", "found", "range", "verdict"), rows)
    return Section("Comparison with stored ranges", [text, table])
