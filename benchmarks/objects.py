"""Which method classifies strings, series, shapes and graphs best: python -m benchmarks.objects

Every set has one distance, fixed in benchmarks/object_sets.py. All methods get the same distances
and choose their parameters from the training part alone. Errors are those on the test parts.
Standard errors are paired: over the objects of a given split, or over random splits.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from benchmarks import object_sets, tables
from benchmarks.learners import NearestNeighbour, RawSVC, fitted_quietly
from benchmarks.object_sets import ALL_SETS, QUICK_SETS, SETS, available, matrices, n_splits
from benchmarks.verdicts import best_of
from kreinlearn import KreinClassifier, KreinRidgeClassifier, KreinSVC, SpectrumSVC
from kreinlearn.paper.classifying import chosen
from kreinlearn.paper.paired import ALL, Errors, Figure, difference, errors_of
from kreinlearn.paper.tasks import Journal, Outcome, Task, outcome
from kreinlearn.report.model import Check, Section, Table, versions

FOLDER = Path(__file__).parent / "results"
RESULTS, JOURNAL = FOLDER / "objects.md", FOLDER / "objects.jsonl"
HEADING = "Learning on objects"
FRONT = "KreinClassifier"
OURS = (FRONT, "KreinRidgeClassifier", "KreinSVC")
NEIGHBOUR = "1-NN"
NEIGHBOURS = (1, 3, 5, 7, 9, 15, 25)
MATRIX = {"kernel": "precomputed_dissimilarity", "random_state": 0, "n_jobs": 1}
BEATS, WITHIN = 11, 11  # of the 13 sets


# The methods: (name of the set, seed, split) -> unfitted


class Split(NamedTuple):
    name: str
    seed: int
    number: int


def _tuned_neighbours(split: Split) -> Any:
    """Nearest neighbours, whose number and weights are chosen by inner folds."""
    smallest = int(np.unique(matrices(*split).y, return_counts=True)[1].min())
    folds = StratifiedKFold(max(2, min(5, smallest)), shuffle=True, random_state=0)
    k = [k for k in NEIGHBOURS if k <= len(matrices(*split).y) // 2]
    grid = {"n_neighbors": k, "weights": ["uniform", "distance"]}
    return GridSearchCV(KNeighborsClassifier(metric="precomputed"), grid, cv=folds)


@cache
def _similarity(split: Split) -> str:
    """The similarity that KreinRidgeClassifier chooses; the baselines use it, too."""
    M = matrices(*split)
    return str(fitted_quietly(KreinRidgeClassifier(**MATRIX), M.D, M.y).similarity_)


def _spectrum(spectrum: str, split: Split) -> Any:
    return SpectrumSVC(spectrum=spectrum, similarity=_similarity(split), **MATRIX)


METHODS = {
    FRONT: lambda split: KreinClassifier(**MATRIX),
    "KreinRidgeClassifier": lambda split: KreinRidgeClassifier(**MATRIX),
    "KreinSVC": lambda split: KreinSVC(**MATRIX),
    NEIGHBOUR: lambda split: NearestNeighbour(dissimilarity=True),
    "k-NN tuned": _tuned_neighbours,
    "SpectrumSVC flip": partial(_spectrum, "flip"),
    "SpectrumSVC clip": partial(_spectrum, "clip"),
    "SVC raw": lambda split: RawSVC(dissimilarity=True, seed=0),
}


# Measuring


def measured(split: Split, method: str) -> list[dict[str, Any]]:
    """One fit and its predictions from given distances, timed together."""
    M = matrices(*split)
    model = METHODS[method](split)
    wall, cpu = time.perf_counter(), time.process_time()
    model = fitted_quietly(model, M.D, M.y)
    wrong = np.flatnonzero(model.predict(M.D_test) != M.y_test)
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    figure = Figure(
        split.name, len(M.y) + len(M.y_test), ALL, method, n_splits(split.name, split.seed),
        split.seed, split.number, len(M.y), len(M.y_test), len(wrong), *seconds,
        " ".join(map(str, wrong)), chosen(model), "",
    )  # fmt: skip
    return [{**figure._asdict(), "distances": M.cpu}]


def key(split: Split, method: str) -> str:
    return f"{split.name}/seed {split.seed}/split {split.number}/{method}"


def _outcomes(split: Split, methods: Sequence[str]) -> list[Outcome]:
    """All methods on one split, one after the other; its distances are evaluated once."""
    return [outcome(Task(key(split, m), partial(measured, split, m))) for m in methods]


def run(journal: Journal, splits: Sequence[Split], methods: Sequence[str], n_jobs: int) -> None:
    missing = [(s, [m for m in methods if key(s, m) not in journal.outcomes]) for s in splits]
    pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    for found in pool(joblib.delayed(_outcomes)(s, wanted) for s, wanted in missing if wanted):
        for one in found:
            if one.failed:
                print(one.key, one.failed, sep="\n", file=sys.stderr)
            else:
                journal.add(one)
                print(f"{one.key}: {one.cpu:.1f} s", file=sys.stderr)


# Reporting


class Found(NamedTuple):
    """The errors of every method on one set, and the CPU seconds of the distances per split."""

    errors: dict[str, Errors]
    figures: dict[str, list[Figure]]
    distances: float


def found(journal: Journal, splits: Sequence[Split]) -> dict[str, Found]:
    results: dict[str, Found] = {}
    for name in dict.fromkeys(split.name for split in splits):
        mine = [split for split in splits if split.name == name]
        figures, seconds = {}, [np.nan]
        for method in METHODS:
            rows = [row for s in mine for row in journal.measurements([key(s, method)]).values()]
            if len(rows) == len(mine):
                figures[method] = [Figure(**{f: r[f] for f in Figure._fields}) for (r,) in rows]
                seconds = [row["distances"] for (row,) in rows]
        errors = {method: errors_of(rows) for method, rows in figures.items()}
        results[name] = Found(errors, figures, float(np.median(seconds)))
    return results


def error_table(results: dict[str, Found]) -> Table:
    table = Table("Test error, %", ("set", "distance", "training / test objects", *METHODS))
    for name, one in results.items():
        first = next(iter(one.figures.values()))[0]
        errors = [f"{one.errors[m].mean:.2f}" if m in one.errors else "" for m in METHODS]
        sizes = f"{first.n_train} / {first.n_test}" + (
            f", {first.folds} splits" * (first.folds > 1)
        )
        table.rows.append([name, ALL_SETS[name].distance, sizes, *errors])
    return table


def seconds_table(results: dict[str, Found]) -> Table:
    title = "CPU seconds of a fit with its search and of predicting the test part"
    table = Table(title, ("set", "all distances", *METHODS))
    for name, one in results.items():
        seconds = [f"{one.errors[m].cpu:.2f}" if m in one.errors else "" for m in METHODS]
        table.rows.append([name, f"{one.distances:.1f}", *seconds])
    table.notes.append("One thread; of several splits the median. Distances are not in the others.")
    return table


def difference_table(results: dict[str, Found]) -> Table:
    header = (
        "set",
        *(f"{m} less {NEIGHBOUR}" for m in OURS),
        "best of all",
        f"{FRONT} less best",
    )
    title = "Differences of errors, percentage points ± paired standard error"
    table = Table(title, header)
    for name, one in results.items():
        if not {*OURS, NEIGHBOUR} <= set(one.errors):
            continue
        best = best_of(one.errors, METHODS) or FRONT
        cells = [str(difference(one.errors[m], one.errors[NEIGHBOUR])) for m in OURS]
        gap = difference(one.errors[FRONT], one.errors[best])
        table.rows.append([name, *cells, best, str(gap)])
    return table


def checks(results: dict[str, Found]) -> Iterator[Check]:
    complete = {name: one for name, one in results.items() if set(METHODS) <= set(one.errors)}
    n, whole = len(complete), len(complete) == len(SETS)
    for mine in OURS:
        gaps = {
            name: difference(one.errors[mine], one.errors[NEIGHBOUR])
            for name, one in complete.items()
        }
        below = sum(gap.mean < 0 for gap in gaps.values())
        worse = [name for name, gap in gaps.items() if gap.mean > gap.standard_error]
        yield Check(
            f"{mine} beats {NEIGHBOUR}", f"on {below} of {n} sets",
            f"at least {BEATS} of {len(SETS)}", below >= BEATS if whole else None,
        )  # fmt: skip
        yield Check(
            f"{mine} is never worse than {NEIGHBOUR} by more than a standard error",
            ", ".join(worse) or "never", "never", not worse if whole else None,
        )  # fmt: skip
    close = [name for name, one in complete.items() if _within(one)]
    yield Check(
        f"{FRONT} is within a standard error of the best of all",
        f"on {len(close)} of {n} sets", f"at least {WITHIN} of {len(SETS)}",
        len(close) >= WITHIN if whole else None,
    )  # fmt: skip


def _within(one: Found) -> bool:
    gap = difference(one.errors[FRONT], one.errors[str(best_of(one.errors, METHODS))])
    return gap.mean <= gap.standard_error


def chosen_table(results: dict[str, Found]) -> Table:
    table = Table("What was chosen on the first split", ("set", *METHODS))
    for name, one in results.items():
        found = {m: rows[0].chosen for m, rows in one.figures.items()}
        table.rows.append([name, *(found.get(m, "") for m in METHODS)])
    return table


# The command


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.objects", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--sets", nargs="+", choices=ALL_SETS, metavar="SET", help=f"of {', '.join(ALL_SETS)}")
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    add("--quick", action="store_true", help="small generated sets")
    add("--seed", type=int, default=0, help="of random splits and generated sets")
    add("--jobs", type=int, default=1, help="processes; more than one blurs the seconds")
    add("--journal", type=Path, default=JOURNAL, metavar="FILE", help="measurements, gone on with")
    add("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE", help="tables as Markdown")
    options = parser.parse_args(arguments)
    options.sets = options.sets or list(QUICK_SETS if options.quick else SETS)
    return options


def main(arguments: Sequence[str] | None = None) -> dict[str, Found]:
    options = parsed(arguments)
    sets, missing = available(options.sets, options.seed)
    splits = [
        Split(name, options.seed, i) for name in sets for i in range(n_splits(name, options.seed))
    ]
    with Journal(options.journal, versions()) as journal:
        run(journal, splits, options.methods, options.jobs)
        results = found(journal, splits)
    section = Section(HEADING, checks=list(checks(results)))
    made = [section.checked, error_table(results), difference_table(results)]
    made += [seconds_table(results), chosen_table(results)]
    made[0].notes += [
        *missing,
        *__doc__.splitlines()[2:],
        *(object_sets.__doc__ or "").splitlines()[2:],
    ]
    for table in made:
        table.show(tables.console())
    words = sys.argv[1:] if arguments is None else arguments
    if options.write:
        command = tables.command_line("benchmarks.objects", words)
        tables.write_markdown(options.write, HEADING, command, made)
    return results


if __name__ == "__main__":
    main()
