"""How near a low-rank approximation comes to the best one: python -m benchmarks.approximation

The Frobenius error over the optimal rank-k error for every core and landmark scheme, the share
of pairs evaluated, and the paper's schemes at equal evaluations. Other methods stand beside it
in benchmarks/peers.py. (The paper's own five vectorial sets: python -m reproduction rank-error.)
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import measure, summary, tables
from benchmarks.cases import DEFINITE, KNOWN, OBJECTS, UNSEEN
from benchmarks.measure import Figure
from kreinlearn.datasets import VARIABLE

RESULTS = Path(__file__).parent / "results"
SECTIONS = ("default", "objects", "grid", "equal", "unseen")
QUICK = ("gaussian10/delta_gauss", "breast_cancer/epanechnikov", "blobs/sigmoid", "woody", "wine")
QUICK_RANKS = (25,)
UNSEEN_SEED, UNSEEN_REPETITIONS = 100, 5

Job = Callable[[], list[Figure]]


class Page(NamedTuple):
    """What a command measures, and where it writes that."""

    module: str
    about: str
    heading: str
    sections: Sequence[str]
    report: Callable[[Sequence[Figure]], list[tables.Table]]

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.module.rpartition('.')[2]}.md"


def parsed(arguments: Sequence[str] | None, page: Page) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {page.module}", description=page.about)
    add = parser.add_argument
    add("--quick", action="store_true", help="a few cases at rank 25, two repetitions")
    add(
        "--cases",
        nargs="+",
        default=[],
        metavar="TEXT",
        help="only cases whose name contains a TEXT",
    )
    add("--sections", nargs="+", default=list(page.sections), choices=page.sections)
    add("--repetitions", type=int, help="the number of seeds per case (10; 2 with --quick)")
    add("--seed", type=int, default=0, help="the first seed")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="the number of processes")
    add("--csv", type=Path, help="write every figure that is measured to this file")
    add(
        "--read",
        nargs="+",
        type=Path,
        metavar="CSV",
        help="report figures of earlier runs, and measure nothing",
    )
    add("--markdown", type=Path, help="write the tables to this file")
    add("--write", action="store_true", help=f"write the tables to {page.path.name} in results/")
    options = parser.parse_args(arguments)
    if options.csv and options.read:
        parser.error("--csv is for figures that are measured, and --read measures nothing")
    options.repetitions = options.repetitions or (2 if options.quick else 10)
    if options.quick:
        options.cases = options.cases or list(QUICK)
    return options


def planned(options: argparse.Namespace) -> list[Job]:
    """One job per section, case and rank."""
    have_data = bool(os.environ.get(VARIABLE))
    names = {
        "default": KNOWN,
        "grid": KNOWN,
        "equal": KNOWN,
        "peers": KNOWN,
        "definite": DEFINITE,
        "objects": OBJECTS if have_data else [],
        "unseen": [name for name in UNSEEN if _available(name, options.quick)],
    }
    seeds = range(options.seed, options.seed + options.repetitions)
    jobs: list[Job] = []
    for section in options.sections:
        here = seeds
        if section == "unseen":
            first = options.seed + UNSEEN_SEED
            here = range(first, first + min(UNSEEN_REPETITIONS, options.repetitions))
        for name in filter(partial(_wanted, options.cases), names[section]):
            ranks = QUICK_RANKS if options.quick else measure.ranks(name)
            jobs += [partial(measure.run, section, name, k, list(here)) for k in ranks]
    return jobs


def _available(name: str, quick: bool) -> bool:
    """Whether an unseen case can be run: quick runs only use wine; covertype needs its data."""
    if quick:
        return name.startswith("wine")
    return bool(os.environ.get(VARIABLE)) or not name.startswith("covertype")


def _wanted(texts: Sequence[str], name: str) -> bool:
    return not texts or any(text in name for text in texts)


def run(jobs: Sequence[Job], n_jobs: int) -> list[Figure]:
    """All figures, in the order of the jobs."""
    results = tables.results_of(jobs, ["cases"] * len(jobs), n_jobs)
    return [figure for figures in results for figure in figures]


def report(figures: Sequence[Figure]) -> list[tables.Table]:
    rule_titles = {
        "default": "Defaults: half medoids, then greedy k-means++; least-squares core",
        "objects": "Objects only: greedy k-means++; least-squares core",
        "unseen": "Cases, widths, gains and seeds the recipe was not found on (no targets)",
    }
    by_rule = [summary.rule_table(figures, section, t) for section, t in rule_titles.items()]
    made = [
        summary.check_table(summary.checks(figures)),
        *by_rule[:2],
        *summary.grid_tables(figures),
        summary.equal_table(figures),
        by_rule[2],
    ]
    return [table for table in made if table.rows]


PAGE = Page(
    "benchmarks.approximation", __doc__ or "", "Low-rank approximation of indefinite kernels",
    SECTIONS, report,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None, page: Page = PAGE) -> list[Figure]:
    options = parsed(arguments, page)
    if options.read:
        stored = [one for path in options.read for one in tables.read_csv(path, Figure)]
        figures, commits = [figure for figure, _ in stored], {commit for _, commit in stored}
    else:
        figures, commits = run(planned(options), options.jobs), {tables.COMMIT}
    made = page.report(figures)
    console = tables.console()
    for table in made:
        table.show(console)
    if not os.environ.get(VARIABLE):
        console.print(f"{VARIABLE} is not set: dissimilarities and covertype are left out")
    if options.csv:
        tables.write_csv(options.csv, figures)
    command = tables.command_line(page.module, arguments)
    for path in (options.markdown, page.path if options.write else None):
        if path:
            tables.write_markdown(path, page.heading, command, made, commits)
    return figures


if __name__ == "__main__":
    main()
