"""Which method classifies strings, series, shapes and graphs best: python -m benchmarks.objects

Every set has one distance, fixed in benchmarks/object_sets.py. All methods get the same distances
and choose their parameters from the training part alone. Errors are those on the test parts.
Standard errors are paired: over the objects of a given split, or over random splits.

Two methods get the objects themselves, and their seconds include whatever they evaluate:
"KreinClassifier auto" is `KreinClassifier("auto")`, which compares several kernels and adds up
those that help, and "alternative" is what one would take for objects of that kind instead of a
distance, see benchmarks/alternatives.py. The best of all is looked for among the others.

These sets are no independent evidence: how `KreinClassifier` blends and adds up similarities was
chosen by cross-validation inside the training parts of nine of them. Of about thirty ways to make
one similarity of several kernels (up to six sets), and of nine ways to blend those of one distance
(nine sets), one each was taken, by the sum of the errors. The limits for four of the sets were
known before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from benchmarks import alternatives, object_sets, tables
from benchmarks.alternatives import alternative
from benchmarks.learners import NearestNeighbour, RawSVC, fitted_quietly
from benchmarks.object_sets import (
    ALL_SETS,
    QUICK_SETS,
    SETS,
    Objects,
    available,
    matrices,
    n_splits,
    objects_of_split,
)
from benchmarks.tables import Check
from benchmarks.verdicts import best_of, difference
from kreinlearn import KreinClassifier, KreinRidgeClassifier, KreinSVC, SpectrumSVC
from kreinlearn.data.tiles import take
from kreinlearn.evaluation.paired import Difference
from kreinlearn.report.model import Table
from reproduction.classifying import chosen
from reproduction.paired import ALL, Errors, Figure, errors_of
from reproduction.report import versions
from reproduction.tasks import Journal, Outcome, Task, outcome

FOLDER = Path(__file__).parent / "results"
RESULTS, JOURNAL = FOLDER / "objects.md", FOLDER / "objects.jsonl"
HEADING = "Learning on objects"
FRONT = "KreinClassifier"
OURS = (FRONT, "KreinRidgeClassifier", "KreinSVC")
AUTO, OTHER = f"{FRONT} auto", "alternative"
NEIGHBOUR = "1-NN"
NEIGHBOURS = (1, 3, 5, 7, 9, 15, 25)
MATRIX = {"kernel": "precomputed_dissimilarity", "random_state": 0, "n_jobs": 1}
BEATS, WITHIN = 11, 11  # of the 13 sets
AUTO_BEATS, AUTO_WITHIN = 9, 9
AUTO_ERRORS = {"ArrowHead": 15.0, "ItalyPowerDemand": 3.4, "OSULeaf": 13.0, "PLAID": 8.0}  # %
FEW = 3  # objects of each class that a method is tried on before it is timed


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


BY_DISTANCES: dict[str, Callable[[Split], Any]] = {
    FRONT: lambda split: KreinClassifier(**MATRIX),
    "KreinRidgeClassifier": lambda split: KreinRidgeClassifier(**MATRIX),
    "KreinSVC": lambda split: KreinSVC(**MATRIX),
    NEIGHBOUR: lambda split: NearestNeighbour(dissimilarity=True),
    "k-NN tuned": _tuned_neighbours,
    "SpectrumSVC flip": partial(_spectrum, "flip"),
    "SpectrumSVC clip": partial(_spectrum, "clip"),
    "SVC raw": lambda split: RawSVC(dissimilarity=True, seed=0),
}
BY_OBJECTS: dict[str, Callable[[str, Any], Any]] = {  # (kind of objects, labels) -> unfitted
    AUTO: lambda kind, y: KreinClassifier("auto", random_state=0, n_jobs=1),
    OTHER: alternative,
}
METHODS = (*BY_DISTANCES, *BY_OBJECTS)
FIRST = (FRONT, AUTO, NEIGHBOUR, OTHER)  # what a reader compares first
COLUMNS = (*FIRST, *(method for method in METHODS if method not in FIRST))


# Measuring


def measured(split: Split, method: str) -> list[dict[str, Any]]:
    """One fit and its predictions, from given distances or from the objects, timed together."""
    if method in BY_OBJECTS:
        here, model, distances = _by_objects(split, method)
    else:
        M = matrices(*split)
        here, distances = Objects(M.D, M.y, M.D_test, M.y_test), M.cpu
        model = BY_DISTANCES[method](split)
    wall, cpu = time.perf_counter(), time.process_time()
    model = fitted_quietly(model, here.X, here.y)
    wrong = np.flatnonzero(model.predict(here.X_test) != here.y_test)
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    figure = Figure(
        split.name, len(here.y) + len(here.y_test), ALL, method, n_splits(split.name, split.seed),
        split.seed, split.number, len(here.y), len(here.y_test), len(wrong), *seconds,
        " ".join(map(str, wrong)), _chosen(model), "",
    )  # fmt: skip
    return [{**figure._asdict(), "distances": distances}]


def _by_objects(split: Split, method: str) -> tuple[Objects, Any, None]:
    """The objects of a split and an unfitted model; all that it calls is compiled already."""
    here, kind = objects_of_split(*split), ALL_SETS[split.name].kind
    few = np.concatenate([np.flatnonzero(here.y == c)[:FEW] for c in np.unique(here.y)])
    tried = fitted_quietly(BY_OBJECTS[method](kind, here.y[few]), take(here.X, few), here.y[few])
    tried.predict(take(here.X_test, np.arange(FEW)))
    return here, BY_OBJECTS[method](kind, here.y), None


def _chosen(model: Any) -> str:
    """What a fitted model chose for itself, in one line."""
    weights = getattr(model, "kernel_weights_", {})
    values = {**getattr(model, "best_params_", {}), **{k: w for k, w in weights.items() if w}}
    shown = {k: v if isinstance(v, str) else f"{v:.3g}" for k, v in values.items()}
    return " ".join([chosen(model), *(f"{k}: {v}" for k, v in shown.items())]).strip()


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
                if method in BY_DISTANCES:
                    seconds = [row["distances"] for (row,) in rows]
        errors = {method: errors_of(rows) for method, rows in figures.items()}
        if figures:
            results[name] = Found(errors, figures, float(np.median(seconds)))
    return results


def error_table(results: dict[str, Found]) -> Table:
    table = Table("Test error, %", ("set", *COLUMNS, "distance", "training / test objects"))
    for name, one in results.items():
        first = next(iter(one.figures.values()))[0]
        errors = [f"{one.errors[m].mean:.2f}" if m in one.errors else "" for m in COLUMNS]
        sizes = f"{first.n_train} / {first.n_test}" + (
            f", {first.folds} splits" * (first.folds > 1)
        )
        table.rows.append([name, *errors, ALL_SETS[name].distance, sizes])
    return table


def seconds_table(results: dict[str, Found]) -> Table:
    title = "CPU seconds of a fit with its search and of predicting the test part"
    table = Table(title, ("set", *COLUMNS, "all distances"))
    for name, one in results.items():
        seconds = [f"{one.errors[m].cpu:.2f}" if m in one.errors else "" for m in COLUMNS]
        distances = "" if np.isnan(one.distances) else f"{one.distances:.1f}"
        table.rows.append([name, *seconds, distances])
    table.notes.append(
        f"One thread; of several splits the median. {AUTO} and {OTHER} include what they evaluate "
        "of the objects; the distances are not in the others."
    )
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
        best = best_of(one.errors, BY_DISTANCES) or FRONT
        cells = [str(difference(one.errors[m], one.errors[NEIGHBOUR])) for m in OURS]
        gap = difference(one.errors[FRONT], one.errors[best])
        table.rows.append([name, *cells, best, str(gap)])
    return table


def auto_table(results: dict[str, Found]) -> Table:
    others = (FRONT, OTHER)
    title = "Differences of errors of several kernels, percentage points ± paired standard error"
    table = Table(title, ("set", *(f"{AUTO} less {other}" for other in others)))
    for name, one in results.items():
        if AUTO in one.errors and (FRONT in one.errors or OTHER in one.errors):
            table.rows.append([name, *(str(_gap(one, AUTO, m) or "") for m in others)])
    return table


def _gap(one: Found, a: str, b: str) -> Difference | None:
    """The errors of one method less those of another; None if one was not measured."""
    return difference(one.errors[a], one.errors[b]) if {a, b} <= set(one.errors) else None


def checks(results: dict[str, Found]) -> Iterator[Check]:
    complete = {name: one for name, one in results.items() if set(BY_DISTANCES) <= set(one.errors)}
    for mine in OURS:
        gaps = [(name, difference(one.errors[mine], one.errors[NEIGHBOUR]))
                for name, one in complete.items()]  # fmt: skip
        yield from _compared(gaps, mine, NEIGHBOUR, BEATS)
    close = [name for name, one in complete.items() if _within(one)]
    yield _counted(f"{FRONT} is within a standard error of the best of all", len(close),
                   len(complete), WITHIN)  # fmt: skip
    yield from auto_checks(results)


def auto_checks(results: dict[str, Found]) -> Iterator[Check]:
    """What the sum of several kernels must reach."""
    single, other = (
        [(name, gap) for name, one in results.items() if (gap := _gap(one, AUTO, m)) is not None]
        for m in (FRONT, OTHER)
    )
    yield from _compared(single, AUTO, FRONT, AUTO_BEATS)
    close = sum(not _is_worse(gap) for _, gap in other)
    what = f"{AUTO} is better than the {OTHER} or within a standard error of it"
    yield _counted(what, close, len(other), AUTO_WITHIN)
    for name, limit in AUTO_ERRORS.items():
        measured = name in results and AUTO in results[name].errors
        error = results[name].errors[AUTO].mean if measured else np.nan
        yield Check(
            f"error of {AUTO} on {name}", f"{error:.2f} %" if measured else "",
            f"at most {limit:g} %", bool(error <= limit) if measured else None,
        )  # fmt: skip


def where_it_is_behind(results: dict[str, Found]) -> Iterator[str]:
    """A sentence on the sets on which the alternative errs less by more than a standard error."""
    behind = []
    for name, one in results.items():
        gap = _gap(one, AUTO, OTHER)
        if gap is not None and _is_worse(gap):
            theirs, ours = (one.errors[method].mean for method in (OTHER, AUTO))
            behind.append(f"{name} ({theirs:.1f} against {ours:.1f} %)")
    if behind:
        yield f"The {OTHER} is ahead of {AUTO} on {', '.join(behind)}."


def _compared(
    gaps: Sequence[tuple[str, Difference]], a: str, b: str, limit: int
) -> Iterator[Check]:
    """On how many sets a has fewer errors than b, and where it is worse."""
    yield _counted(f"{a} beats {b}", sum(gap.mean < 0 for _, gap in gaps), len(gaps), limit)
    worse = [name for name, gap in gaps if _is_worse(gap)]
    yield Check(
        f"{a} is never worse than {b} by more than a standard error",
        ", ".join(worse) or "never", "never", not worse if len(gaps) == len(SETS) else None,
    )  # fmt: skip


def _counted(what: str, count: int, n: int, limit: int) -> Check:
    found, wanted = f"on {count} of {n} sets", f"at least {limit} of {len(SETS)}"
    return Check(what, found, wanted, count >= limit if n == len(SETS) else None)


def _is_worse(gap: Difference) -> bool:
    return gap.mean > gap.standard_error


def _within(one: Found) -> bool:
    best = str(best_of(one.errors, BY_DISTANCES))
    return not _is_worse(difference(one.errors[FRONT], one.errors[best]))


def chosen_table(results: dict[str, Found]) -> Table:
    table = Table("What was chosen on the first split", ("set", *COLUMNS))
    for name, one in results.items():
        found = {m: rows[0].chosen for m, rows in one.figures.items()}
        table.rows.append([name, *(found.get(m, "") for m in COLUMNS)])
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
        shown = (key(split, method) for split in splits for method in METHODS)
        commits = {journal.outcomes[one].commit for one in shown if one in journal.outcomes}
    made = [tables.checked(checks(results)), error_table(results), difference_table(results)]
    made += [auto_table(results), seconds_table(results), chosen_table(results)]
    made[0].notes += [*missing, *where_it_is_behind(results)]
    for text in (__doc__, object_sets.__doc__, alternatives.__doc__):
        made[0].notes += (text or "").splitlines()[2:]
    for table in made:
        table.show(tables.console())
    words = sys.argv[1:] if arguments is None else arguments
    if options.write:
        command = tables.command_line("benchmarks.objects", words)
        tables.write_markdown(options.write, HEADING, command, made, commits)
    return results


if __name__ == "__main__":
    main()
