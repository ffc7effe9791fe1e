"""Few objects: errors, what is said about them, and what a choice costs: python -m benchmarks.few

Training sets of 16 to 600 objects are drawn from every set, at most 60 % of it, and at least two
objects for each class; at most 400 of the others are for the test. The front door,
`KreinClassifier` or `KreinRegressor`, gets the matrices of all kernels that `kernel="auto"`
compares, or the one matrix that there is; it is compared with itself on each kernel alone. The
draws depend on no learner, so that two versions of the library see the same objects.

Errors of classes are percentages. Errors of a regression are roots of mean squares, divided by the
standard deviation of the target in the whole set. The best kernel of a set and a number of
objects is the one with the smallest mean error over all draws, which nobody knows beforehand, and
regret is the error of the front door less the error with that kernel. Both are told for sets with
several kernels. The ratio is the geometric mean of (e + 1 / n_test) / (best + 1 / n_test). Where
the kernels alone were measured at one of two commits, those are taken for both.

What was expected is `expected_error_`, and its bias is the expected error less the test error. A
fit explodes if its error on training or on test objects is more than two standard deviations of the
target. Predictions count as clipped if several are exactly the largest of all, or the smallest.
Standard errors come from the draws of each set, and those of a mean over sets take the sets as
given; differences of two commits are paired, draw by draw. Seconds are medians of the CPU seconds
of a fit in one thread, whose kernel values are known.

These sets are no independent evidence: which eight transformations of a distance are blended, and
on how many objects, was chosen by some of them, among ten ways in one round (five lists of
transformations, three sizes of e, two numbers of objects). How sharp weights become, and how
kernels are added to the blend of many objects, was chosen in the last round, among four largest
powers and six ways to add (three shares, three margins), by these sets and by cross-validation in
the training parts of three sets of benchmarks.objects. Earlier rounds were not counted.

`--source FOLDER` measures another checkout as "before", in a process of its own. Every figure
is journalled under the commit that it belongs to, and is not measured again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from benchmarks import few_sets, tables
from benchmarks.learners import fitted_quietly
from benchmarks.tables import Check
from kreinlearn import KreinClassifier, KreinRegressor
from kreinlearn.kernels import GivenMatrix
from kreinlearn.report.model import Table
from reproduction.report import commit, versions
from reproduction.tasks import Journal, Outcome, Task, outcome

Array = NDArray[Any]
FOLDER = Path(__file__).parent / "results"
RESULTS, JOURNAL = FOLDER / "few.md", FOLDER / "few.jsonl"
HEADING = "Few objects"
SIZES = {16: 40, 24: 60, 40: 20, 70: 20, 120: 20, 200: 20, 400: 5, 600: 5}  # n: draws
SHARE, TEST, EACH = 0.6, 400, 2  # of a set; test objects; objects for each class
FRONT, ALONE = "front", "alone"
FEW, MANY = 40, 120  # objects up to which, and from which on, a limit holds
RATIO, REGRET, BETTER = 1.12, 6.0, 0.2  # points
BIAS, BIAS_ERROR, LOG_LOSS = 2.5, 0.8, 0.78
EXPLODED, FITS = 2.0, 500  # standard deviations; fits that are counted
NOISE, QUICK = "noise labels", ["noise labels"]


# Measuring


@lru_cache(maxsize=1)
def kept(name: str, folder: Path) -> few_sets.Kept:
    return few_sets.load(name, folder)


def drawn(y: Array, is_regression: bool, n: int, draw: int) -> tuple[Array, Array]:
    """Training objects, of two classes or more with two objects, and test objects."""
    rng = np.random.default_rng([n, draw])
    while True:
        order = rng.permutation(len(y))
        counts = np.unique(y[order[:n]], return_counts=True)[1]
        if is_regression or np.sum(counts >= EACH) >= EACH:
            return np.sort(order[:n]), np.sort(order[n : n + TEST])


def measured(name: str, folder: Path, n: int, draw: int, method: str) -> list[dict[str, Any]]:
    """One fit, and its errors."""
    one = kept(name, folder)
    train, test = drawn(one.y, one.is_regression, n, draw)
    both = np.r_[train, test]
    used = [(m, M[np.ix_(both, both)]) for k, m, M in one.matrices if method in (FRONT, k)]
    if len(used) > 1:
        kernel: Any = [GivenMatrix(M, is_dissimilarity=m) for m, M in used]
        X, X_test = np.arange(n), np.arange(n, len(both))
    else:
        ((m, M),) = used
        kernel = "precomputed_dissimilarity" if m else "precomputed"
        X, X_test = M[:n, :n], M[n:, :n]
    learner = KreinRegressor if one.is_regression else KreinClassifier
    model = learner(kernel, random_state=draw, n_jobs=1)
    cpu = time.process_time()
    fitted_quietly(model, X, one.y[train])
    row = {"cpu": time.process_time() - cpu, "n_test": len(test)}
    judge = _numbers if one.is_regression else _labels
    return [row | judge(model, X, one.y[train], X_test, one.y[test], float(one.y.std()))]


def _labels(model: Any, X: Any, y: Array, X_test: Any, y_test: Array, _: float) -> dict[str, Any]:
    P, classes = model.predict_proba(X_test), list(model.classes_)
    own = [p[classes.index(c)] if c in classes else 0.0 for p, c in zip(P, y_test, strict=True)]
    return {
        "error": 100 * float(np.mean(model.predict(X_test) != y_test)),
        "expected": 100 * model.expected_error_,
        "std": 100 * model.expected_error_std_,
        "log_loss": -float(np.mean(np.log(np.maximum(own, 1e-12)))),
    }


def _numbers(model: Any, X: Any, y: Array, X_test: Any, y_test: Array, unit: float) -> Any:
    fit, new = model.predict(X), model.predict(X_test)
    ends = [np.sum(new == end) for end in (new.min(), new.max())] if np.ptp(new) else [0]
    return {
        "error": float(np.sqrt(np.mean(np.square(new - y_test)))) / unit,
        "expected": model.expected_error_ / unit,
        "std": model.expected_error_std_ / unit,
        "train": float(np.sqrt(np.mean(np.square(fit - y)))) / unit,
        "clipped": float(sum(k for k in ends if k > 1) / len(new)),
    }


class Cell(NamedTuple):
    """A set and a number of training objects."""

    name: str
    n: int
    draws: int
    is_regression: bool
    labels: list[str]  # of its kernels, if there are several

    def methods(self, methods: Sequence[str]) -> list[str]:
        """The front door, and the labels of the kernels."""
        return [FRONT] * (FRONT in methods) + self.labels * (ALONE in methods)


def cells(
    names: Sequence[str], sizes: Sequence[int], draws: int | None, folder: Path
) -> list[Cell]:
    made = []
    for name in names:
        one = kept(name, folder)
        labels = [label for label, *_ in one.matrices] if len(one.matrices) > 1 else []
        least = 0 if one.is_regression else EACH * len(np.unique(one.y))
        for n in sizes:
            if least <= n <= SHARE * len(one.y):
                few = min(draws or SIZES[n], SIZES[n])
                made.append(Cell(name, n, few, one.is_regression, labels))
    return sorted(made, key=lambda cell: cell.n)


def key(code: str, cell: Cell, draw: int, method: str) -> str:
    return f"{code}/{cell.name}/n {cell.n}/draw {draw}/{method}"


def _outcomes(tasks: Sequence[Task]) -> list[Outcome]:
    return [outcome(task) for task in tasks]


def run(journal: Journal, code: str, wanted: Sequence[Cell], options: argparse.Namespace) -> None:
    """Measure what is not in the journal, a cell at a time."""
    work = []
    for cell in wanted:
        tasks = [
            Task(key(code, cell, d, m), partial(measured, cell.name, options.folder, cell.n, d, m))
            for d in range(cell.draws)
            for m in cell.methods(options.methods)
        ]
        tasks = [task for task in tasks if task.key not in journal.outcomes]
        work += [joblib.delayed(_outcomes)(tasks)] * bool(tasks)
    pool = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered", batch_size=1)
    for done, ended in enumerate(pool(work), 1):
        for one in ended:
            if one.failed:
                print(one.key, one.failed, sep="\n", file=sys.stderr)
            else:
                journal.add(one)
        where, seconds = ended[0].key.rpartition("/draw")[0], sum(one.cpu for one in ended)
        print(f"{done} of {len(work)}, {where}: {seconds:.1f} s", file=sys.stderr, flush=True)


# Summing up

Values = dict[str, Array]  # by the field; one for each draw, NaN where nothing was measured


class Found(NamedTuple):
    """What a cell has at one commit."""

    cell: Cell
    front: Values
    alone: dict[str, Values]  # by the kernel; empty if there is one, or they were not measured

    def mean(self, field: str = "error") -> float:
        return float(np.nanmean(self.front[field]))

    @property
    def best(self) -> tuple[float, str]:
        """The smallest mean error of a kernel alone, and the kernel."""
        return min((float(np.nanmean(own["error"])), label) for label, own in self.alone.items())

    @property
    def regret(self) -> float:
        return self.mean() - self.best[0]

    @property
    def ratio(self) -> float:
        least = 0 if self.cell.is_regression else 100 / self.mean("n_test")
        return (self.mean() + least) / (self.best[0] + least)

    @property
    def bias(self) -> Mean:
        return mean_of(self.front["expected"] - self.front["error"])


class Mean(NamedTuple):
    """A mean and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"

    @property
    def interval(self) -> tuple[float, float]:
        return self.value - 1.96 * self.error, self.value + 1.96 * self.error


def mean_of(values: Array) -> Mean:
    known = values[np.isfinite(values)]
    error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
    return Mean(float(known.mean()), float(error))


def over_sets(means: Sequence[Mean]) -> Mean:
    """The mean over sets, with the standard error for these sets."""
    error = np.sqrt(np.sum([one.error**2 for one in means])) / len(means)
    return Mean(float(np.mean([one.value for one in means])), float(error))


Results = dict[tuple[str, int], Found]


def found(journal: Journal, code: str, wanted: Sequence[Cell]) -> Results:
    results: Results = {}
    for cell in wanted:
        methods = {m: _values(journal, code, cell, m) for m in cell.methods((FRONT, ALONE))}
        front = methods.pop(FRONT)
        if front:
            results[cell.name, cell.n] = Found(
                cell, front, methods if all(methods.values()) else {}
            )
    return results


def _values(journal: Journal, code: str, cell: Cell, method: str) -> Values:
    keys = [key(code, cell, draw, method) for draw in range(cell.draws)]
    rows = [row for (row,) in journal.measurements(keys).values()]
    return {
        field: np.array(
            [journal.outcomes[k].rows[0][field] if k in journal.outcomes else np.nan for k in keys]
        )
        for field in (rows[0] if rows else ())
    }


def with_kernels_of(a: Results, b: Results) -> Results:
    """The kernels alone that only the other commit has."""
    return {
        at: one._replace(alone=one.alone or b[at].alone) if at in b else one
        for at, one in a.items()
    }


class Summary(NamedTuple):
    """One number of training objects and one kind of targets, at both commits or at one."""

    n: int
    before: list[Found]  # of the same sets, or none
    now: list[Found]

    @property
    def change(self) -> Mean:
        pairs = zip(self.now, self.before, strict=True)
        return over_sets([mean_of(a.front["error"] - b.front["error"]) for a, b in pairs])


def summaries(now: Results, before: Results, is_regression: bool) -> Iterator[Summary]:
    for n in sorted({n for _, n in now}):
        mine = {at: one for at, one in now.items() if at[1] == n and (not before or at in before)}
        both = {at: o for at, o in mine.items() if o.cell.is_regression == is_regression}
        if both:
            yield Summary(n, [before[at] for at in both] if before else [], list(both.values()))


def several(some: Sequence[Found]) -> list[Found]:
    return [one for one in some if one.alone]


def ratio(some: Sequence[Found]) -> float:
    return float(np.exp(np.mean([np.log(one.ratio) for one in several(some)])))


def worst(some: Sequence[Found]) -> tuple[float, str]:
    """The largest mean regret of a set over numbers of objects."""
    regrets: dict[str, list[float]] = {}
    for one in several(some):
        regrets.setdefault(one.cell.name, []).append(one.regret)
    return max(((float(np.mean(own)), name) for name, own in regrets.items()), default=(np.nan, ""))


def exploded(some: Sequence[Found]) -> tuple[int, int]:
    fits = np.concatenate(
        [[0.0], *(np.fmax(one.front["error"], one.front["train"]) for one in some)]
    )
    return int(np.sum(fits > EXPLODED)), int(np.isfinite(fits).sum()) - 1


def noise(some: Sequence[Found]) -> list[float]:
    """The log loss on noise."""
    return [one.mean("log_loss") for one in some if one.cell.name == NOISE]


# Reporting

Column = Callable[[list[Found]], str]  # of what was measured at one commit
EITHER: dict[str, Column] = {
    "error": lambda some: _mean([one.mean() for one in some]),
    "mean regret": lambda some: _mean([one.regret for one in several(some)]),
    "worst regret of a set": lambda some: (
        "{:.2f} ({})".format(*worst(some)) if several(some) else ""
    ),
    "ratio": lambda some: f"{ratio(some):.3f}" if several(some) else "",
    "bias": lambda some: str(over_sets([one.bias for one in some])),
    "mean size of it": lambda some: _mean([abs(one.bias.value) for one in some]),
    "CPU s": lambda some: _mean([float(np.nanmedian(one.front["cpu"])) for one in some]),
}
LABELS = EITHER | {"log loss on noise": lambda some: _mean(noise(some), 3)}
NUMBERS = EITHER | {
    "explosions": lambda some: "{} of {}".format(*exploded(some)),
    "clipped, %": lambda some: _mean([100 * one.mean("clipped") for one in some]),
}


def _mean(values: Sequence[float], digits: int = 2) -> str:
    return f"{np.mean(values):.{digits}f}" if len(values) else ""


def table_of(made: Sequence[Summary], title: str, columns: dict[str, Column]) -> Table:
    """One row for each number of objects; a figure has two columns if there are two commits."""
    sides = [side for side in ("before", "now") if any(getattr(s, side) for s in made)]
    names = [f"{name}, {side}" for name in columns for side in sides]
    table = Table(title, ("n", "sets", "now less before", "best kernel alone", *names))
    for s in made:
        best = _mean([one.best[0] for one in several(s.now)])
        cells = [column(getattr(s, side)) for column in columns.values() for side in sides]
        table.rows.append(
            [str(s.n), str(len(s.now)), str(s.change) if s.before else "", best, *cells]
        )
    return table


def set_table(now: Results, before: Results) -> Table:
    header = ("set", "n", "before", "now", "now less before", "best kernel alone", "its error",
              "regret", "bias before", "bias now", "CPU s")  # fmt: skip
    table = Table("Every set", header)
    for (name, n), one in sorted(now.items()):
        row, then = [name, str(n), "", _mean([one.mean()]), ""], before.get((name, n))
        if then:
            row[2] = _mean([then.mean()])
            row[4] = str(mean_of(one.front["error"] - then.front["error"]))
        best = [one.best[1], f"{one.best[0]:.2f}", f"{one.regret:+.2f}"] if one.alone else [""] * 3
        bias = [str(then.bias) if then else "", str(one.bias)]
        table.rows.append([*row, *best, *bias, EITHER["CPU s"]([one])])
    return table


def checks(labels: Sequence[Summary], numbers: Sequence[Summary], whole: bool) -> Iterator[Check]:
    """What must hold; it is judged if all sets and numbers were measured."""

    def at_every_n(
        what: str, limit: str, found: dict[int, Mean], holds: Callable[[Mean], bool]
    ) -> Check:
        misses = [f"n = {n}: {one}" for n, one in found.items() if not holds(one)]
        said = "; ".join(misses) or ("at every n" if found else "")
        return Check(what, said, limit, not misses if whole and found else None)

    def at_most(what: str, found: float, shown: str, limit: float, unit: str = "") -> Check:
        return Check(what, shown, f"at most {limit:g}{unit}", found <= limit if whole else None)

    changes = [{s.n: s.change for s in made if s.before} for made in (labels, numbers)]
    for what, change in zip(("classes", "regressions"), changes, strict=True):
        yield at_every_n(f"mean error of {what}, now less before", "at most a standard error",
                         change, lambda d: d.value <= d.error)  # fmt: skip
    yield at_every_n(f"the same of classes from {MANY} objects on",
                     f"at most {BETTER:g} and a standard error",
                     {n: d for n, d in changes[0].items() if n >= MANY},
                     lambda d: d.value <= BETTER + d.error)  # fmt: skip
    few = [one for s in labels if s.n <= FEW for one in several(s.now)]
    if few:
        kernel, (regret, name) = ratio(few), worst(few)
        yield at_most(f"up to {FEW} objects: ratio to the best kernel", kernel, f"{kernel:.3f}",
                      RATIO)  # fmt: skip
        yield at_most(f"up to {FEW} objects: worst mean regret of a set", regret,
                      f"{regret:.2f} ({name})", REGRET, " points")  # fmt: skip
    biases = {s.n: over_sets([one.bias for one in s.now]) for s in labels}
    yield at_every_n("95 % interval of the bias of expected_error_", f"within {BIAS:g} points",
                     biases, lambda d: max(map(abs, d.interval)) <= BIAS)  # fmt: skip
    yield at_every_n("standard error of this bias", f"at most {BIAS_ERROR:g} points", biases,
                     lambda d: d.error <= BIAS_ERROR)  # fmt: skip
    count, fits = exploded([one for s in numbers for one in s.now])
    yield Check("explosions of regressions", f"{count} of {fits}", f"0 of at least {FITS}",
                count == 0 if whole and fits >= FITS else None)  # fmt: skip
    losses = [(loss, s.n) for s in labels for loss in noise(s.now)]
    if losses:
        high, n = max(losses)
        yield at_most("largest log loss on noise labels", high, f"{high:.3f} (n = {n})", LOG_LOSS)


# The command


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.few", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    names = ", ".join(few_sets.SETS)
    add("--sets", nargs="+", choices=few_sets.SETS, metavar="SET", help=f"of {names}")
    add("--sizes", nargs="+", type=int, choices=SIZES, metavar="N", help="training objects")
    add("--draws", type=int, metavar="D", help="at most so many for each set and number")
    add("--methods", nargs="+", choices=(FRONT, ALONE), default=[FRONT, ALONE])
    add("--quick", action="store_true", help="one simulated set, 16 and 24 objects, 2 draws")
    add("--jobs", type=int, default=1, help="processes")
    add("--source", type=Path, metavar="FOLDER", help='another checkout, which is "before"')
    add("--commit", default=commit(), help="under which this code is journalled; its own")
    add("--folder", type=Path, default=few_sets.FOLDER, help="of the kernel values")
    add("--journal", type=Path, default=JOURNAL, metavar="FILE", help="measurements, gone on with")
    add("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE", help="tables as Markdown")
    options = parser.parse_args(arguments)
    options.sets = options.sets or (QUICK if options.quick else list(few_sets.SETS))
    options.sizes = options.sizes or ([16, 24] if options.quick else list(SIZES))
    options.draws = options.draws or (2 if options.quick else max(SIZES.values()))
    return options


def measure_elsewhere(options: argparse.Namespace) -> None:
    """Fill the journal in a process that imports the library of the other checkout."""
    lists = {"--sets": options.sets, "--sizes": options.sizes, "--methods": options.methods}
    words = [word for name, values in lists.items() for word in (name, *map(str, values))]
    words += [f"--{one}={getattr(options, one)}" for one in ("draws", "jobs", "folder", "journal")]
    path = [str((options.source / "src").resolve()), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    words.append(f"--commit={commit(options.source / 'src')}")
    command = [sys.executable, "-m", "benchmarks.few", *words]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str] | None = None) -> Results:
    options = parsed(arguments)
    missing = few_sets.fill(options.sets, options.folder, options.jobs)
    if options.source:
        measure_elsewhere(options)
    there = [name for name in options.sets if name not in missing]
    wanted, before = cells(there, options.sizes, options.draws, options.folder), Results()
    with Journal(options.journal, versions()) as journal:
        run(journal, options.commit, wanted, options)
        now = found(journal, options.commit, wanted)
        codes = [commit(options.source / "src")] if options.source else []
        for code in codes:
            before = found(journal, code, wanted)
        shown = {key(code, cell, draw, FRONT) for code in (*codes, options.commit)
                 for cell in wanted for draw in range(cell.draws)}  # fmt: skip
        commits = {one.commit for at, one in journal.outcomes.items() if at in shown}
    now, before = with_kernels_of(now, before), with_kernels_of(before, now)
    labels, numbers = (list(summaries(now, before, of)) for of in (False, True))
    whole = (set(there), set(options.sizes)) == (set(few_sets.SETS), set(SIZES))
    whole &= len(now) == len(wanted)
    whole &= all(np.isfinite(one.front["error"]).all() for one in now.values())
    made = [tables.checked(checks(labels, numbers, whole)),
            table_of(labels, "Classes; errors in percent", LABELS),
            table_of(numbers, "Regressions; errors in standard deviations", NUMBERS),
            set_table(now, before)]  # fmt: skip
    made[0].notes += [
        *missing.values(),
        *(f"Before is {code}, now is {options.commit}." for code in codes),
        "",
    ]
    for text in (__doc__, few_sets.__doc__):
        made[0].notes += [*(text or "").splitlines()[2:], ""]
    made = [table for table in made if table.rows]
    for table in made:
        table.show(tables.console())
    if options.write:
        words = sys.argv[1:] if arguments is None else arguments
        command = tables.command_line("benchmarks.few", words)
        tables.write_markdown(options.write, HEADING, command, made, commits)
    return now


if __name__ == "__main__":  # workers of joblib find functions by the name of their module
    from benchmarks.few import main as named

    named()
