"""Which method classifies best from a matrix of dissimilarities: python -m benchmarks.learning

All learners, and the methods they are compared with, are cross-validated on the same stratified
folds; parameters come from the training folds only. The tables then say whether ours are within one
standard error of the best.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import tables, verdicts
from benchmarks.learners import Method, features, fitted_quietly, methods, two_lambdas
from benchmarks.learning_sets import SETS, learning_set
from reproduction.classifying import chosen
from reproduction.paired import ALL, Figure
from reproduction.sets import LearningSet

RESULTS = Path(__file__).parent / "results" / "learning.md"
HEADING = "Learning from dissimilarities and similarities"
QUICK_SETS, QUICK_FOLDS = ("balls3d_fresh", "polydism57"), 3


class Job(NamedTuple):
    """One cell: a method on one fold of a set, for all classes or one against the rest."""

    set: str
    size: str
    target: str
    method: str
    landmarks: int
    folds: int
    seed: int
    fold: int

    def cell(self, data: LearningSet) -> tuple[Any, ...]:
        n_folds = data.n_folds(self.folds)
        return data.name, self.target, self.method, n_folds, self.seed, self.fold


def cell_of(figure: Figure) -> tuple[Any, ...]:
    """What is computed only once."""
    return figure[0], *figure[2:7]  # set, target, method, folds, seed, fold


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    add = parser.add_argument
    add("--sets", nargs="+", choices=SETS, metavar="SET", help=f"some of {', '.join(SETS)}")
    add(
        "--methods",
        nargs="+",
        default=[],
        metavar="TEXT",
        help="names of methods, or parts of names",
    )
    add("--landmarks", type=int, default=100, help="for the learners that do not take all objects")
    add("--folds", type=int, help=f"the number of folds (10; {QUICK_FOLDS} with --quick)")
    add("--seed", type=int, default=0, help="the seed of folds, learners and generated sets")
    add("--one-vs-rest", action="store_true", help="also set every class against the rest")
    add("--full", action="store_true", help="2 x 2000 polygons instead of 2 x 500")
    add("--quick", action="store_true", help="small generated sets, few folds")
    add(
        "--jobs",
        type=int,
        default=1,
        help="the number of processes; more than one blurs the seconds",
    )
    add("--csv", type=Path, metavar="FILE", help="append every figure to this file at once")
    add(
        "--read",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="use the figures of earlier runs",
    )
    add(
        "--report-only", action="store_true", help="measure nothing: only tables of what --read has"
    )
    add(
        "--write",
        nargs="?",
        type=Path,
        const=RESULTS,
        metavar="FILE",
        help="write the tables as Markdown",
    )
    options = parser.parse_args(arguments)
    options.folds = options.folds or (QUICK_FOLDS if options.quick else 10)
    options.sets = options.sets or list(QUICK_SETS if options.quick else SETS)
    options.size = "small" if options.quick else "full" if options.full else "usual"
    if options.csv and options.csv.exists() and options.csv not in options.read:
        parser.error(
            f"{options.csv.name} exists; continue it with --read {options.csv.name}, or move it"
        )
    return options


# Planning


def available(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The sets that are there, and one sentence for each that is not."""
    there, missing = [], []
    for name in options.sets:
        try:
            learning_set(name, options.size, options.seed)
        except FileNotFoundError as error:
            missing.append(f"MISSING set {name}: {error}")
        else:
            there.append(name)
    return there, missing


def wanted(options: argparse.Namespace) -> list[Method]:
    """The methods asked for: an exact name is one method, a part of a name all that contain it."""
    known = methods(options.landmarks)
    if not options.methods:
        return list(known.values())
    names = [
        name
        for text in options.methods
        for name in ([text] if text in known else [name for name in known if text in name])
    ]
    return [known[name] for name in known if name in names]


def planned(options: argparse.Namespace, sets: Sequence[str], measured: set[Any]) -> Iterator[Job]:
    """The cells that are not measured yet, set by set, then method by method."""
    present = [method for method in wanted(options) if method.exists]
    for name in sets:
        data = learning_set(name, options.size, options.seed)
        for target in _targets(data, options.one_vs_rest):
            for method in present:
                for fold in range(data.n_folds(options.folds)):
                    job = Job(
                        name, options.size, target, method.name, options.landmarks,
                        options.folds, options.seed, fold,
                    )  # fmt: skip
                    if job.cell(data) not in measured:
                        yield job


def _targets(data: LearningSet, one_vs_rest: bool) -> list[str]:
    each = one_vs_rest and len(data.classes) > 2
    return [ALL, *(str(c) for c in data.classes if each)]


# Running


def measured(job: Job) -> Figure:
    """One fit with its seconds and errors; a method that fails does not stop the others."""
    data = learning_set(job.set, job.size, job.seed)
    M, y, M_test, y_test = list(data.splits(job.folds, job.seed))[job.fold]
    if job.target != ALL:
        y, y_test = y == int(job.target), y_test == int(job.target)
    of = partial(
        Figure, data.name, len(data), job.target, job.method, data.n_folds(job.folds), job.seed,
        job.fold, len(y), len(y_test),
    )  # fmt: skip
    model = methods(job.landmarks)[job.method].make(data.dissimilarity, job.seed)
    with threadpool_limits(1):
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            model = fitted_quietly(model, M, y)
            seconds = time.perf_counter() - wall, time.process_time() - cpu
            wrong = np.flatnonzero(model.predict(M_test) != y_test)
        except Exception as error:  # a result of the benchmark, shown in its tables
            return of(len(y_test), np.nan, np.nan, "", "", f"{type(error).__name__}: {error}")
    return of(len(wrong), *seconds, " ".join(map(str, wrong)), chosen(model), "")


def run(jobs: Sequence[Job], n_jobs: int, path: Path | None) -> Iterator[Figure]:
    """All figures, each written to the file as soon as it is there."""
    names = [f"{job.set}, {job.method}" for job in jobs]
    for figure in tables.results_of([partial(measured, job) for job in jobs], names, n_jobs):
        if path:
            tables.write_csv(path, [figure], more=True)
        yield figure


def read(paths: Sequence[Path], folds: int) -> tuple[list[Figure], set[str]]:
    """The figures of earlier runs with as many folds, and the commits that have measured them.

    Of each cell it is the last one that did not fail.
    """
    latest: dict[tuple[Any, ...], tuple[Figure, str]] = {}
    for path in paths:
        for figure, commit in tables.read_csv(path, Figure) if path.exists() else []:
            if not figure.failed and figure.folds in (1, folds):
                latest[cell_of(figure)] = figure, commit
    return [figure for figure, _ in latest.values()], {commit for _, commit in latest.values()}


# Reporting


def report(figures: Sequence[Figure], landmarks: int) -> list[tables.Table]:
    known, results = methods(landmarks), verdicts.complete(figures)
    two, others = two_lambdas(landmarks), features(landmarks)
    against = "never significantly worse than"
    made = [
        verdicts.check_table(results, known, landmarks),
        *verdicts.error_tables(results, figures, known),
        verdicts.within_table(results, known),
        verdicts.difference_table(results, f"Two lambdas: {against} one", two),
        verdicts.help_table(results, two),
        verdicts.difference_table(results, f"Ours: {against} similarity features", others),
        verdicts.chosen_table(figures, known),
    ]
    return [table for table in made if table.rows]


def said(options: argparse.Namespace, missing: Sequence[str]) -> Iterator[str]:
    """How the figures were measured, and what is missing."""
    yield (
        f"{options.folds}-fold stratified cross-validation, the same folds for all methods (seed "
        f"{options.seed}); parameters from the training folds only. Error: mean over folds. "
        "Seconds: median of a fit with its search, one thread. 'auto': all objects; "
        f"'paper': {options.landmarks} uniform landmarks, centred squares, one-vs-rest. 'one "
        "against the rest': every class, the mean over classes."
    )
    yield "Beside the paper's own figures: python -m reproduction table1."
    yield from missing
    for method in wanted(options):
        if not method.exists:
            yield f"MISSING method {method.name}: not in this version of the library"


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    options = parsed(arguments)
    figures, commits = read(options.read, options.folds)
    missing: list[str] = []
    if not options.report_only:
        sets, missing = available(options)
        jobs = list(planned(options, sets, set(map(cell_of, figures))))
        figures += run(jobs, options.jobs, options.csv)
        commits |= {tables.COMMIT} if jobs else set()
    made = report(figures, options.landmarks)
    if made:
        made[0].notes += said(options, missing)
    console = tables.console()
    for table in made:
        table.show(console)
    command = tables.command_line("benchmarks.learning", arguments)
    if options.write:
        tables.write_markdown(options.write, HEADING, command, made, commits)
    return figures


if __name__ == "__main__":
    main()
