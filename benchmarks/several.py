"""Several similarities at once, what they bring and what they cost: python -m benchmarks.several

Three things are measured. First, tables whose truth is known: records with a text, a series and
three numbers, of which exactly two carry the class; which two, and everything else, is drawn anew
for each seed. The other fields have classes of their own, which say nothing. Second, chromosomes,
whose strings are differences of grey levels: the strings and the levels themselves, both compared
by the Levenshtein distance. Third, the CPU seconds of `KreinClassifier("auto")` beside those of
`KreinClassifier` with the kernel that has the smallest loss, and of the bare values of all pairs.
All seconds are those of one thread.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks import tables
from benchmarks.learners import fitted_quietly
from benchmarks.tables import Check
from benchmarks.timing import Timing, interleaved
from kreinlearn import KreinClassifier, columns
from kreinlearn.data.tiles import take
from kreinlearn.datasets import load_dataset, make_graphs, make_noisy_strings, make_warped_series
from kreinlearn.evaluation.paired import Difference, paired_difference
from kreinlearn.kernels import Kernel
from kreinlearn.kernels.candidates import candidates_for
from kreinlearn.kernels.fields import Field
from kreinlearn.kernels.series import DTW
from kreinlearn.kernels.several import label_of
from kreinlearn.report.model import Table

Array = NDArray[Any]
RESULTS = Path(__file__).parent / "results" / "several.md"
HEADING = "Several similarities"
CLASSES = 4
ALL, TRUE, AUTO = "all fields", "the two true fields", 'kernel="auto"'
TOP_SEEDS, TRUE_POINTS = 0.9, 1.0  # share of seeds; percentage points above the two true fields


class Objects(NamedTuple):
    """Training objects and test objects with their classes."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array


class Fitted(NamedTuple):
    """What one fit gave: where it errs, the weights of its kernels, and its CPU seconds."""

    wrong: Array  # (n_test,) of bool
    weights: dict[str, float]  # by the name of the field
    cpu: float

    @property
    def error(self) -> float:
        return 100 * float(self.wrong.mean())


def fitted(here: Objects, kernel: Any) -> Fitted:
    """KreinClassifier with these kernels, in one thread."""
    cpu = time.process_time()
    model = KreinClassifier(kernel, random_state=0, n_jobs=1)
    fitted_quietly(model, here.X, here.y)
    wrong = model.predict(here.X_test) != here.y_test
    cpu = time.process_time() - cpu
    fields = kernel if isinstance(kernel, list) else []
    weights = getattr(model, "kernel_weights_", {})
    return Fitted(wrong, {field.name: weights[label_of(field)] for field in fields}, cpu)


# Tables whose truth is known


def _texts(labels: Array, seed: int) -> list[Any]:
    X, own = make_noisy_strings(len(labels), n_classes=CLASSES, noise=18, random_state=seed)
    return _dealt(X, own, labels)


def _curves(labels: Array, seed: int) -> list[Any]:
    X, own = make_warped_series(
        len(labels), n_classes=CLASSES, length=40, noise=2.0, random_state=seed
    )
    return _dealt(X, own, labels)


def _numbers(labels: Array, seed: int) -> list[float]:
    noise = np.random.default_rng(seed).normal(0, 0.55, len(labels))
    return [float(value) for value in labels + noise]


def _dealt(X: Sequence[Any], own: Array, labels: Array) -> list[Any]:
    """The objects in an order in which their classes are the labels; classes are of equal size."""
    given: list[Any] = [None] * len(labels)
    places, numbers = (np.argsort(of, kind="stable") for of in (labels, own))
    for place, number in zip(places, numbers, strict=True):
        given[place] = X[number]
    return given


MAKERS: dict[str, Callable[[Array, int], list[Any]]] = {
    "text": _texts, "series": _curves, "a": _numbers, "b": _numbers, "c": _numbers,
}  # fmt: skip
KERNELS = {
    "text": "levenshtein", "series": DTW(window=0.1), "a": "manhattan", "b": "manhattan",
    "c": "manhattan",
}  # fmt: skip


def mixed_records(n: int, seed: int) -> tuple[Objects, list[str]]:
    """2 n records, a half of them for the test, and the names of the two fields that matter."""
    rng = np.random.default_rng(seed)
    two = rng.choice(list(MAKERS), 2, replace=False)
    true = [name for name in MAKERS if name in two]
    balanced = np.arange(2 * n) % CLASSES
    y = rng.permutation(balanced)
    fields = {}
    for name, make in MAKERS.items():
        labels = y if name in true else rng.permutation(balanced)
        fields[name] = make(labels, int(rng.integers(2**31)))
    records = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
    return Objects(records[:n], y[:n], records[n:], y[n:]), true


class Tried(NamedTuple):
    """One seed: the fields that matter, and what was fitted to which fields."""

    seed: int
    true: list[str]
    fits: dict[str, Fitted]

    @property
    def error(self) -> dict[str, float]:
        return {name: one.error for name, one in self.fits.items()}


def tried(n: int, seed: int) -> Tried:
    here, true = mixed_records(n, seed)
    kernels: dict[str, Any] = {
        ALL: columns(KERNELS), TRUE: columns({name: KERNELS[name] for name in true}), AUTO: "auto",
        **{name: Field(name, kernel) for name, kernel in KERNELS.items()},
    }  # fmt: skip
    return Tried(seed, true, {name: fitted(here, kernel) for name, kernel in kernels.items()})


def better_alone(one: Tried) -> float:
    """The error of the better of the two fields that matter."""
    return min(one.error[name] for name in one.true)


def gaps(found: Sequence[Tried]) -> dict[str, Difference]:
    """Differences of errors over seeds."""
    every, true = ([one.error[name] for one in found] for name in (ALL, TRUE))
    others = {
        f"{ALL} less the better true field alone": (every, list(map(better_alone, found))),
        f"{ALL} less {TRUE}": (every, true),
        f"{AUTO} less {TRUE}": ([one.error[AUTO] for one in found], true),
    }
    return {k: paired_difference(np.array(a), np.array(b), 1.0) for k, (a, b) in others.items()}


def names_the_true(one: Tried) -> bool:
    """Whether the two fields that matter have the two largest weights, both above zero."""
    weights = one.fits[ALL].weights
    top = sorted(weights, key=lambda name: -weights[name])[:2]
    return set(top) == set(one.true) and all(weights[name] > 0 for name in top)


def mixed_tables(found: Sequence[Tried]) -> Iterator[Table]:
    weights = Table("Weights of the fields of tables", ("seed", "true fields", *MAKERS))
    errors = Table("Test error on tables, %", ("seed", "true fields", *found[0].fits))
    for one in found:
        start = [str(one.seed), " and ".join(one.true)]
        learned = one.fits[ALL].weights
        weights.rows.append([*start, *(f"{learned[name]:.2f}" for name in MAKERS)])
        errors.rows.append([*start, *(f"{error:.1f}" for error in one.error.values())])
    means = [np.mean([one.error[name] for one in found]) for name in found[0].fits]
    errors.rows.append(["mean", "", *(f"{mean:.1f}" for mean in means)])
    cpu = {name: np.median([one.fits[name].cpu for one in found]) for name in (ALL, TRUE, AUTO)}
    shown = ", ".join(f"{seconds:.2f} s for {name}" for name, seconds in cpu.items())
    errors.notes.append(f"The last five columns are single fields. Median CPU seconds: {shown}.")
    yield from (weights, errors)
    title = "Differences of errors on tables, percentage points ± paired standard error over seeds"
    yield Table(title, ("what", "difference"), [[k, str(gap)] for k, gap in gaps(found).items()])


def mixed_checks(found: Sequence[Tried], whole: bool) -> Iterator[Check]:
    named, n = sum(map(names_the_true, found)), len(found)
    wanted = math.ceil(TOP_SEEDS * n)
    alone, true, _ = gaps(found).values()
    yield Check("tables: the two true fields have the two largest weights", f"{named} of {n} seeds",
                f"at least {wanted}", named >= wanted if whole else None)  # fmt: skip
    yield Check(f"tables: {ALL} err less often than the better true field alone", str(alone),
                "by more than a standard error",
                bool(alone.mean < -alone.standard_error) if whole else None)  # fmt: skip
    yield Check(f"tables: {ALL} less {TRUE}", str(true), f"at most {TRUE_POINTS:g}",
                bool(true.mean <= TRUE_POINTS) if whole else None)  # fmt: skip


# Chromosomes


def levels(string: str) -> str:
    """The grey levels along a chromosome: "=" is no change, "A" one up, "a" one down, and so on."""
    changes = [(letter.isupper() - letter.islower()) * (ord(letter) & 31) for letter in string]
    return "".join(chr(ord("0") + level) for level in np.cumsum(changes).tolist())


def chromosomes(n: int | None) -> Objects:
    """The given halves, or the first n of each in a random order."""
    data = load_dataset("strings/chromosomes")
    records = [{"string": s, "levels": levels(s)} for s in data.s.tolist()]
    order = np.random.default_rng(0).permutation(len(records))
    train, test = (order[data.file_b[order] == half][:n] for half in (False, True))
    return Objects(take(records, train), data.y[train], take(records, test), data.y[test])


def on_chromosomes(n: int | None) -> dict[str, Fitted]:
    here = chromosomes(n)
    string, level = both = columns({"string": "levenshtein", "levels": "levenshtein"})
    kernels = {"string": string, "levels": level, "both": both}
    return {name: fitted(here, kernel) for name, kernel in kernels.items()}


def _chromosome_gaps(found: dict[str, Fitted]) -> dict[str, Difference]:
    both = 100.0 * found["both"].wrong
    return {
        name: paired_difference(both, 100.0 * found[name].wrong, 1.0)
        for name in ("string", "levels")
    }


def chromosome_table(found: dict[str, Fitted]) -> Table:
    header = ("fields", "error, %", "both less this", "CPU s", "weights")
    table = Table("Chromosomes, two encodings", header)
    differences = {name: str(gap) for name, gap in _chromosome_gaps(found).items()}
    for name, one in found.items():
        weights = ", ".join(f"{field} {weight:.2f}" for field, weight in one.weights.items())
        row = [name, f"{one.error:.2f}", differences.get(name, ""), f"{one.cpu:.1f}", weights]
        table.rows.append(row)
    half = len(found["both"].wrong)
    table.notes.append(f"{half} test objects; standard errors are paired over them.")
    return table


def chromosome_checks(found: dict[str, Fitted], whole: bool) -> Iterator[Check]:
    for name, gap in _chromosome_gaps(found).items():
        yield Check(f"chromosomes: both encodings less {name} alone", str(gap),
                    "at most a standard error above",
                    bool(gap.mean <= gap.standard_error) if whole else None)  # fmt: skip


# Costs


class Cost(NamedTuple):
    """Seconds on one kind of objects, and the kernels that were compared and used."""

    what: str
    compared: int
    used: list[str]
    best: str  # the kernel of the smallest loss
    seconds: dict[str, Timing]  # of "auto", "best", "bare best" and "bare all"


def cost(what: str, X: Any, y: Array, repetitions: int) -> Cost:
    """Fits and bare values of all pairs, one after the other in every round."""
    model = _fit("auto", X, y)
    kernels = {label_of(kernel): kernel for kernel in candidates_for(X)}
    best = min(model.kernel_losses_, key=model.kernel_losses_.__getitem__)
    seconds = interleaved(
        {
            "auto": lambda: _fit("auto", X, y),
            "best": lambda: _fit(kernels[best], X, y),
            "bare best": lambda: _values([kernels[best]], X),
            "bare all": lambda: _values(list(kernels.values()), X),
        },
        repetitions,
    )
    used = [label for label, weight in model.kernel_weights_.items() if weight > 0]
    return Cost(what, len(kernels), used, best, seconds)


def _fit(kernel: Any, X: Any, y: Array) -> Any:
    return fitted_quietly(KreinClassifier(kernel, random_state=0, n_jobs=1), X, y)


def _values(kernels: Sequence[Kernel], X: Any) -> None:
    """The values of all pairs, each once."""
    for kernel in kernels:
        kernel.fit(X, np.random.default_rng(0)).symmetric(X)


def costs(quick: bool) -> list[Cost]:
    many, series, graphs, repetitions = (120, 40, 60, 1) if quick else (1000, 300, 600, 3)
    made: dict[str, Callable[..., Any]] = {
        f"{many} strings": partial(make_noisy_strings, many),
        f"{series} series of length 150": partial(make_warped_series, series, length=150),
        f"{graphs} graphs": partial(make_graphs, graphs),
    }
    found = []
    for name, make in made.items():
        X, y = make(random_state=0)
        found.append(cost(name, X, y, repetitions))
    return found


def cost_table(found: Sequence[Cost]) -> Table:
    header = (
        "objects", "auto, CPU s", "best kernel alone", "all pairs of the best",
        "all pairs of all kernels", "auto / best alone", "auto / all pairs of all", "compared",
        "best kernel", "in the sum",
    )  # fmt: skip
    table = Table("CPU seconds of a fit", header)
    for one in found:
        auto, best, bare, every = (timing.cpu for timing in one.seconds.values())
        table.rows.append([
            one.what, *(f"{seconds:.3f}" for seconds in (auto, best, bare, every)),
            f"{auto / best:.1f}", f"{auto / every:.1f}", str(one.compared), one.best,
            ", ".join(one.used),
        ])  # fmt: skip
    table.notes.append(
        "Medians; in every round all four follow one another. Pairs are those of the training "
        "objects, each once, without a fit. Not every kernel is evaluated on all pairs by auto."
    )
    return table


# The command

PARTS = ("tables", "chromosomes", "costs")


def measured(parts: Sequence[str], quick: bool, seeds: int) -> tuple[list[Check], list[Table]]:
    """The checks and the tables of some parts."""
    checks: list[Check] = []
    made: list[Table] = []
    if "tables" in parts:
        found = [tried(60 if quick else 300, seed) for seed in range(seeds)]
        checks += mixed_checks(found, not quick)
        made += mixed_tables(found)
    if "chromosomes" in parts:
        try:
            ours = on_chromosomes(100 if quick else None)
        except FileNotFoundError as error:
            checks.append(Check("chromosomes", f"MISSING: {error}", "", None))
        else:
            checks += chromosome_checks(ours, not quick)
            made.append(chromosome_table(ours))
    if "costs" in parts:
        made.append(cost_table(costs(quick)))
    return checks, made


def main(arguments: Sequence[str] | None = None) -> list[Table]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.several", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="few objects, 2 seeds")
    parser.add_argument("--seeds", type=int, metavar="N", help="tables; 10 unless told")
    parser.add_argument("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE")
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        seeds = options.seeds or (2 if options.quick else 10)
        checks, made = measured(options.parts, options.quick, seeds)
    made.insert(0, tables.checked(checks))
    made[0].notes += (__doc__ or "").splitlines()[2:]
    for table in made:
        table.show(tables.console())
    if options.write:
        words = sys.argv[1:] if arguments is None else arguments
        command = tables.command_line("benchmarks.several", words)
        tables.write_markdown(options.write, HEADING, command, made)
    return made


if __name__ == "__main__":
    main()
