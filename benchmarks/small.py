"""The first five thousand objects: python -m benchmarks.small [--only NAME] [--quick] [--write]

Each case runs once, at the defaults of the learners, in a process of its own with one thread. The
CPU seconds of a fit are divided by those of GridSearchCV(SVC(kernel="precomputed")) with six values
of C and five folds, on exp(-d / median) of the same distances in the same process; for vectors, SVC
has its own Gaussian kernel, and boosted trees stand beside it. Words are German and Italian. Errors
are those on objects that were held out. Peaks are of the resident memory of the whole process, data
included.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError, TimeoutExpired
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.small_cases import (
    BARE_IMPORTS,
    BOUND,
    CASES,
    CLASSES,
    FEWEST,
    MOST,
    PEER,
    Figure,
)
from benchmarks.timing import load_average, said_by
from kreinlearn.report.model import Table

RESULTS = Path(__file__).parent / "results" / "small.md"
HEADING = "The first five thousand objects"
LONGEST = 3600.0  # seconds of one case
SERIAL = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
UNITS = {"cpu": "s CPU", "wall": "s wall", "peak": "MB", "size": "MB"}


class Limit(NamedTuple):
    """What a figure of a case, or its ratio to another figure of the case, must not exceed."""

    case: str
    what: str
    most: float
    over: str | None = None
    measure: str = "cpu"
    before: str = ""  # measured when the limit was set

    @property
    def claim(self) -> str:
        other = f" over {self.over}" if self.over else ""
        memory = ", peak of memory" if self.measure == "peak" else ""
        return f"{self.case}: {self.what}{other}{memory}"

    @property
    def unit(self) -> str:
        return "x" if self.over else UNITS[self.measure]


LARGEST_RATIOS = {500: (3.0, "13 x"), 1000: (2.5, "20 x"), 2000: (2.5, "9 x"), 5000: (4.0, "")}
LIMITS = (
    *(
        Limit(f"words {n}", learner, most, PEER, before=before)
        for n, (most, before) in LARGEST_RATIOS.items()
        for learner in CLASSES
    ),
    *(Limit("words 5000", learner, 1500, measure="peak") for learner in CLASSES),
    Limit("words 2000", "KreinSVC", 2.0, "KreinRidgeClassifier", before="1.3 to 1.5 x"),
    Limit("chromosomes", "KreinClassifier", 8, before="36.5 s (KreinRidgeClassifier)"),
    Limit("mpeg7", "KreinRidgeClassifier", 3, before="10.8 s"),
    Limit("mpeg7", "KreinSVC", 8, before="71.4 s"),
    Limit("vectors", "KreinRidgeClassifier", 2.5, before="5.3 s"),
    Limit("vectors", "KreinSVC", 5, before="12.5 s"),
    Limit("names evaluate", "kreinlearn evaluate", 120, before="21.5 min"),
    Limit("names fit", "kreinlearn fit", 12, before="39 s"),
    Limit("first use", "first fit of 200 strings", 1.5, BARE_IMPORTS, before="1.75 x"),
    Limit("all cores", "KreinRidge", 1.4, BOUND, "wall", before="2.6 x"),
    Limit("many rows", MOST, 9, FEWEST, before="57 x"),
)


# Running


def run(name: str, quick: bool) -> list[Figure]:
    """The figures of a case; a case that fails has one figure, which says so."""
    words = ["--one", name, *(["--quick"] if quick else [])]
    env = SERIAL if CASES[name].serial else None
    try:
        found: list[Figure] = said_by("benchmarks.small", *words, timeout=LONGEST, env=env)
    except (CalledProcessError, TimeoutExpired) as error:
        return [{"what": "the whole case", "absent": f"failed: {type(error).__name__}"}]
    return found


def measured_here(name: str, quick: bool) -> list[Figure]:
    case = CASES[name]
    return case.quick() if quick else case.whole()


# Tables


def judged(limit: Limit, found: dict[str, list[Figure]], whole: bool) -> list[str]:
    """The row of a limit: the claim, the verdict, and what was found."""
    figures = {figure["what"]: figure for figure in found.get(limit.case, [])}
    needed = [figures.get(what, {}) for what in (limit.what, limit.over) if what]
    shown, verdict = "", "not measured"
    if all(limit.measure in figure for figure in needed):
        value = needed[0][limit.measure] / (needed[1][limit.measure] if limit.over else 1)
        shown = f"{value:,.0f} {limit.unit}" if value >= 100 else f"{value:.3g} {limit.unit}"
        verdict = ("PASS" if value <= limit.most else "MISS") if whole else "too small to judge"
    elif found.get(limit.case):
        absent = [f["absent"] for f in [*needed, *figures.values()] if "absent" in f]
        verdict = absent[0] if absent else "not yet"
    return [limit.claim, verdict, shown, f"{limit.most:g} {limit.unit}", limit.before]


def limits_table(
    found: dict[str, list[Figure]], whole: bool, limits: Sequence[Limit] = LIMITS
) -> Table:
    header = ["figure", "verdict", "measured", "limit", "before"]
    rows = [judged(limit, found, whole) for limit in limits if limit.case in found]
    notes = [
        f"One run; load average of the machine at its end: {load_average()}.",
        '"before" was measured when the limits were set.',
    ]
    return Table("Limits", header, rows, notes)


def figures_table(found: dict[str, list[Figure]]) -> Table:
    header = ["case", "what", "CPU s", "wall s", "over SVC", "peak, MB", "error, %"]
    rows = [cells(case, one, figures) for case, figures in found.items() for one in figures]
    return Table("Figures", header, rows, [" ".join((__doc__ or "").split("\n\n")[1].split())])


def cells(case: str, figure: Figure, figures: Sequence[Figure]) -> list[str]:
    if "absent" in figure:
        return [case, f"{figure['what']}: {figure['absent']}", "", "", "", "", ""]
    peer = next((one for one in figures if one["what"] == PEER), None)
    ratio = f"{figure['cpu'] / peer['cpu']:.2f}" if peer else ""
    times = [f"{figure[key]:.2f}" if key in figure else "" for key in ("cpu", "wall")]
    peak = f"{figure['peak']:.0f}" if "peak" in figure else ""
    error = f"{100 * figure['error']:.1f}" if "error" in figure else ""
    return [case, figure["what"], *times, ratio, peak, error]


def main(arguments: Sequence[str] | None = None) -> dict[str, list[Figure]]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.small", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a tenth of the objects, no verdicts")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE")
    options: Any = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measured_here(options.one, options.quick)))
        return {}
    found: dict[str, list[Figure]] = {}
    made: list[Table] = []
    command = tables.command_line("benchmarks.small", arguments)
    for name in options.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found[name] = run(name, options.quick)
        made = [limits_table(found, not options.quick), figures_table(found)]
        if options.write:  # after every case, so that a run that is stopped leaves what it has
            tables.write_markdown(options.write, HEADING, command, made)
    for table in made:
        table.show(tables.console())
    return found


if __name__ == "__main__":
    main()
