"""Millions of rows on one small machine: python -m benchmarks.scale

Every case runs in a process of its own, from files on disk, and is written to a journal, so that
a run can be made in parts. Seconds of a fit include the choice of landmarks and the tuning; they
are compared with the bare bound (benchmarks/bound.py) measured in the same process. Memory is the
peak of resident memory above that before the fit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import scale_fit, scale_parts, scale_report, scale_sets, tables
from benchmarks.scale_sets import SETS
from benchmarks.timing import load_of_a_minute, said_by
from kreinlearn.datasets import list_datasets
from reproduction.report import versions
from reproduction.tasks import Journal, Outcome

FOLDER = Path(__file__).parent / "results"
RESULTS, JOURNAL = FOLDER / "scale.md", FOLDER / "scale.jsonl"
LANDMARKS, TEST = (500, 1000), 50_000
ROWS = (100_000, 300_000, 1_000_000, 3_000_000)
QUICK_LANDMARKS, QUICK_TEST, QUICK_ROWS = (50,), 5_000, (5_000, 20_000)
PIECES = {"parquet": (500, (10_000_000,)), "npy": (30, (2_500_000, 25_000_000))}  # m, rows
QUICK_PIECES = {"parquet": (50, (20_000,)), "npy": (30, (5_000, 50_000))}
LONGEST = 1800.0  # seconds of one case


class Case(NamedTuple):
    """A fit of one learner, or a part of the table of targets."""

    key: str
    data: tuple[str, int | None] | None = None  # name and training rows of the set; None: all
    words: tuple[str, ...] = ()  # for the process that measures it

    @property
    def folder(self) -> str:
        assert self.data is not None
        return f"{self.data[0]}-{self.data[1] or 'all'}"


def fits(quick: bool) -> Iterator[Case]:
    """The cases: small ones first, and least squares before KreinSVC."""
    sets: list[tuple[str, int | None]] = [("synthetic", n) for n in (QUICK_ROWS if quick else ROWS)]
    if not quick:
        sets += [(name, None) for name in SETS if SETS[name].stored]
    for learner in scale_fit.LEARNERS:
        for name, n in sets:
            for m in QUICK_LANDMARKS if quick else LANDMARKS:
                if learner in SETS[name].learners:
                    key = f"fit/{name}/{n or 'all'}/m={m}/{learner}"
                    yield Case(key, (name, n), (name, str(m), learner, scale_fit.HERE))


def millions(quick: bool) -> Iterator[Case]:
    """Fits of sets that are made in pieces, in this process and, from Parquet, on Dask."""
    for name, (m, sizes) in (QUICK_PIECES if quick else PIECES).items():
        places = (scale_fit.HERE, scale_fit.DASK) if name == "parquet" else (scale_fit.HERE,)
        for learner in SETS[name].learners:
            for n in sizes:
                for where in places:
                    key = f"fit/{name}/{n}/m={m}/{learner}"
                    key += "/dask" if where == scale_fit.DASK else ""
                    yield Case(key, (name, n), (name, str(m), learner, where))


def cases(quick: bool) -> list[Case]:
    speed = "quick" if quick else "full"
    parts = [Case(f"part/{speed}/{p}", words=(p, speed)) for p in scale_parts.PARTS]
    return [*fits(quick), *millions(quick), *parts]


def available(wanted: Sequence[Case]) -> tuple[list[Case], list[str]]:
    """The cases whose data are there, and one sentence for each set that is missing."""
    try:
        there = set(list_datasets())
    except FileNotFoundError:
        there = set()
    names = {case.data[0] for case in wanted if case.data is not None}
    missing = sorted(name for name in names if SETS[name].stored and SETS[name].stored not in there)
    words = [f"{name} is missing: KREINLEARN_DATA names no folder with it." for name in missing]
    return [c for c in wanted if c.data is None or c.data[0] not in missing], words


# Measuring


def run(journal: Journal, wanted: Sequence[Case], n_test: int, folder: Path | None = None) -> None:
    """Run what is not in the journal; the files of a set are written before its first case.

    They stay in ``folder``, if one is given, and are not made again there.
    """
    with scratch_folder(folder) as scratch:
        for case in wanted:
            if case.key in journal.outcomes:
                continue
            wall, cpu, load = time.perf_counter(), _cpu_of_children(), load_of_a_minute()
            try:
                rows = _measured(case, Path(scratch), n_test)
            except subprocess.SubprocessError as error:  # the others are measured nevertheless
                print(f"{case.key}: {error}", file=sys.stderr)
                continue
            wall, cpu = time.perf_counter() - wall, _cpu_of_children() - cpu
            journal.add(Outcome(case.key, rows, wall, cpu, load=load))
            print(f"{case.key}: {wall:.1f} s, {cpu:.1f} s CPU", file=sys.stderr)


def scratch_folder(folder: Path | None) -> AbstractContextManager[str | Path]:
    """The folder that is given, or one that is deleted at the end."""
    if folder is None:
        return tempfile.TemporaryDirectory(prefix="kreinlearn-scale-")
    return nullcontext(folder)


def _cpu_of_children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def _measured(case: Case, scratch: Path, n_test: int) -> list[dict[str, Any]]:
    if case.data is None:
        return list(said_by("benchmarks.scale", "--part", *case.words, timeout=LONGEST))
    folder, (name, n) = scratch / case.folder, case.data
    if not (folder / scale_sets.ABOUT).exists():  # which is written last
        make = ("--make", name, str(n or 0), str(n_test), str(folder))
        said_by("benchmarks.scale", *make, timeout=LONGEST)
    words = ("--fit", str(folder), *case.words)
    return [said_by("benchmarks.scale", *words, timeout=LONGEST)]


def measured_here(options: argparse.Namespace) -> Any:
    """Run one case; called in a process of its own."""
    if options.make:
        name, n, n_test, folder = options.make
        scale_sets.write(name, int(n) or None, int(n_test), Path(folder))
        return folder
    if options.fit:
        folder, name, m, learner, where = options.fit
        return scale_fit.measured(Path(folder), name, int(m), learner, where)
    part, speed = options.part
    return scale_parts.measured(part, scale_parts.QUICK if speed == "quick" else scale_parts.FULL)


# The command


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--only", nargs="+", default=["*"], metavar="NAME", help='cases, such as "fit/*/KreinSVC"')
    add("--quick", action="store_true", help="few rows and landmarks")
    add("--list", action="store_true", help="the names of the cases")
    add("--again", action="store_true", help="measure what the journal has already, too")
    add("--report-only", action="store_true", help="of what the journal has; nothing is measured")
    add("--journal", type=Path, default=JOURNAL, metavar="FILE", help="measurements, gone on with")
    add("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE", help="page and drawing")
    add("--make", nargs=4, help=argparse.SUPPRESS)
    add("--folder", type=Path, metavar="DIR", help="keeps the sets, up to 2 GB each; by default "
        "they are in a temporary folder that is deleted")  # fmt: skip
    add("--fit", nargs=5, help=argparse.SUPPRESS)
    add("--part", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    if options.make or options.fit or options.part:
        print(json.dumps(measured_here(options)))
        return
    whole = cases(options.quick)
    if options.list:
        print("\n".join(case.key for case in whole))
        return
    there, missing = available(whole)
    wanted = [c for c in there if any(fnmatch(c.key, pattern) for pattern in options.only)]
    with Journal(options.journal, versions()) as journal:
        if options.again:
            for case in wanted:  # what is measured now takes their place
                journal.outcomes.pop(case.key, None)
        if not options.report_only:
            run(journal, wanted, QUICK_TEST if options.quick else TEST, options.folder)
        found = [journal.outcomes[c.key] for c in whole if c.key in journal.outcomes]
        first = next((one for one in journal.outcomes.values() if one in found), None)
    left = [case.key for case in there if case.key not in {one.key for one in found}]
    missing += [f"Not measured yet: {', '.join(left)}."] if left else []
    words = sys.argv[1:] if arguments is None else arguments
    command = tables.command_line("benchmarks.scale", words)
    document = scale_report.document(found, command, missing, whole=not options.quick, first=first)
    scale_report.show(document)
    if options.write:
        scale_report.write(document, options.write)


if __name__ == "__main__":
    main()
