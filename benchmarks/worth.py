"""Coverage of intervals and sets, and novelty: python -m benchmarks.worth [--quick] [--write]

First, coverage. Each of N random splits takes two thirds of at most 600 objects for the fit and the
others for the test. Sets of classes are those of KreinRidgeClassifier with similarity="local3" and
one-vs-rest targets on the same distances for all methods (on the given similarities of voting), and
intervals those of KreinRidge with a Gaussian kernel on standardised features; the penalties are
tuned in each fit. The width of an interval is divided by the standard deviation of y, and a set
counts its classes, of which the predicted one is always in it. The cost is the CPU time of one
thread over that of a plain fit to the same objects; the distances of a matrix are known in advance.

Second, novelty. Of up to eight classes one after the other is left out: half of the objects of the
other classes are for the fit, the other half is the test, together with all objects of the unseen
class. The area under the ROC curve says how well these are told apart, by the p-values of
`novelty`, by the distance to the nearest object, and by LocalOutlierFactor(novelty=True) of
scikit-learn, with its 20 neighbours, on the same distances. An area of 0.5 is chance, and 1 is
perfect.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import tables
from benchmarks.clusters import distances_of
from benchmarks.learners import fitted_quietly
from benchmarks.tables import Check
from benchmarks.timing import timed
from kreinlearn import KreinRidge, KreinRidgeClassifier
from kreinlearn.datasets import load_dataset
from kreinlearn.report.model import Table
from kreinlearn.solvers.conformal import METHODS

Array = NDArray[Any]
T = TypeVar("T")
RESULTS = Path(__file__).parent / "results" / "worth.md"
HEADING = "What a prediction is worth"
CLASSES = (
    *("chickenpieces_20_60", "protein", "woodyplants50", "voting", "chromosomes"),
    *("amp_ampscanner", "mpeg7_contours", "JapaneseVowels", "PROTEINS", "ENZYMES"),
)
NUMBERS = ("ailerons", "cal_housing", "elevators", "parkinsons", "pole")
NOVEL = ("chromosomes", "mpeg7_contours", "JapaneseVowels")
COVERAGES = (0.8, 0.9, 0.95)
BELOW = 0.02  # how far the mean coverage of "split" may be below the nominal one
COST = 1.2  # of "split", in plain fits
LEFT_OUT = 8  # classes of a set
GIVEN: dict[str, Any] = {"random_state": 0, "n_jobs": 1}


class Problem(NamedTuple):
    """Objects with classes or numbers, and a learner for them."""

    X: Array  # (n, n): a matrix of the kernel; or (n, d): rows
    y: Array
    is_matrix: bool
    learner: Callable[[], Any]

    def part(self, rows: Array, train: Array) -> Array:
        """Some objects, as a learner takes them that is fitted to those of ``train``."""
        return self.X[np.ix_(rows, train)] if self.is_matrix else self.X[rows]


class Size(NamedTuple):
    """How many objects are used, of which sets, and how often they are divided."""

    classes: Sequence[str]
    numbers: Sequence[str]
    novel: Sequence[str]
    most: int  # objects of a set whose coverage is measured
    most_novel: int
    splits: int

    def only(self, sets: Sequence[str]) -> Size:
        """The same with some of the sets."""
        classes, numbers, novel = (
            [name for name in names if name in sets]
            for names in (self.classes, self.numbers, self.novel)
        )
        return self._replace(classes=classes, numbers=numbers, novel=novel)


class Figure(NamedTuple):
    """What one method gives on one set, over all splits and test objects."""

    covered: Array  # (3,): the shares at the nominal coverages
    sizes: Array  # (3,): mean widths, or numbers of classes
    cost: float  # in plain fits; of one split, in CPU seconds


# Coverage


def problem(name: str, most: int) -> Problem:
    """At most so many objects of a set, drawn at random."""
    if name == "voting":
        data = load_dataset("similarity/voting")
        learner = partial(KreinRidgeClassifier, "precomputed", **GIVEN)
        return Problem(*_drawn_matrix(np.asarray(data.K), data.y, most), True, learner)
    if name in NUMBERS or name == "waves":
        X, y = _waves(most) if name == "waves" else _rows(name, most)
        return Problem(X, y, False, partial(KreinRidge, "gaussian", **GIVEN))
    return Problem(*distances_of(name, most), True, classifier)


def classifier() -> KreinRidgeClassifier:
    return KreinRidgeClassifier("precomputed_dissimilarity", similarity="local3", **GIVEN)


def _drawn_matrix(K: Array, y: Array, most: int) -> tuple[Array, Array]:
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
    return K[np.ix_(some, some)], y[some]


def _rows(name: str, most: int) -> tuple[Array, Array]:
    data = load_dataset(f"vectorial/{name}")
    some = np.sort(np.random.default_rng(0).permutation(len(data.y))[:most])
    return np.asarray(StandardScaler().fit_transform(data.X[some])), data.y[some]


def _waves(most: int) -> tuple[Array, Array]:
    """Made data, with noise that has heavy tails."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(most, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(3, size=most)


def divisions(n: int, splits: int) -> Iterator[tuple[Array, Array]]:
    """Row numbers for the fit and for the test, which are exchangeable."""
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(n)
        yield np.sort(order[: 2 * n // 3]), np.sort(order[2 * n // 3 :])


def measured(task: Problem, splits: int) -> dict[str, Figure]:
    """Coverage, sizes and cost of both methods on one set."""
    runs: dict[str, list[Figure]] = {method: [] for method in METHODS}
    plain = 0.0
    for train, test in divisions(len(task.y), splits):
        X, X_test = task.part(train, train), task.part(test, train)
        y, y_test = task.y[train], task.y[test]
        if not plain:
            fitted_quietly(task.learner(), X, y)  # what is compiled or imported does not count
        plain += timed(partial(fitted_quietly, task.learner(), X, y)).cpu
        for method in METHODS:
            model = task.learner()
            cpu = timed(partial(fitted_quietly, model, X, y, conformal=method)).cpu
            at = [covered(model, X_test, y_test, coverage) for coverage in COVERAGES]
            shares, sizes = np.array(at).T
            runs[method].append(Figure(shares, sizes, cpu))
    return {
        method: Figure(
            np.mean([one.covered for one in each], axis=0),
            np.mean([one.sizes for one in each], axis=0),
            sum(one.cost for one in each) / plain,
        )
        for method, each in runs.items()
    }


def covered(model: Any, X: Array, y: Array, coverage: float) -> tuple[float, float]:
    """The share of objects whose truth is covered, and the mean size of what covers it."""
    if hasattr(model, "predict_set"):
        sets = model.predict_set(X, coverage)
        inside = sets & (y[:, None] == model.classes_)
        return float(inside.any(axis=1).mean()), float(sets.sum(axis=1).mean())
    low, high = model.predict_interval(X, coverage).T
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low) / np.std(y))


def coverage_table(title: str, size: str, found: dict[str, dict[str, Figure]]) -> Table:
    shown = [f"{100 * coverage:g} %" for coverage in COVERAGES]
    header = [
        *("set", "method"), *(f"covered at {one}" for one in shown),
        *(f"{size} at {one}" for one in shown), "cost, fits",
    ]  # fmt: skip
    table = Table(title, header)
    for name, figures in found.items():
        for method, one in figures.items():
            shares = [f"{100 * share:.1f}" for share in one.covered]
            sizes = [f"{value:.2f}" for value in one.sizes]
            table.rows.append([name, method, *shares, *sizes, f"{one.cost:.2f}"])
    for method in METHODS:
        all_of = [figures[method] for figures in found.values()]
        means = [np.mean([getattr(one, what) for one in all_of], axis=0) for what in Figure._fields]
        shares = [f"{100 * share:.1f}" for share in means[0]]
        table.rows.append(
            ["mean", method, *shares, *(f"{value:.2f}" for value in means[1]), f"{means[2]:.2f}"]
        )
    return table


def coverage_checks(what: str, found: dict[str, dict[str, Figure]], judged: bool) -> list[Check]:
    """The promises, with what was measured; without a verdict on few objects."""

    def check(claim: str, value: str, limit: str, holds: bool) -> Check:
        return Check(f"{what}, {claim}", value, limit, bool(holds) if judged else None)

    checks = []
    for j, nominal in enumerate(COVERAGES):
        mean = np.mean([one["split"].covered[j] for one in found.values()])
        least, shown = nominal - BELOW, f'"split" at {100 * nominal:g} %: mean of all'
        limit = f"at least {100 * least:g} %"
        checks.append(check(shown, f"{100 * mean:.1f} %", limit, mean >= least))
    for j, nominal in enumerate(COVERAGES):
        lowest, name = min((one["cv+"].covered[j], name) for name, one in found.items())
        least, shown = 1 - 2 * (1 - nominal), f'"cv+" at {100 * nominal:g} %: lowest of a set'
        limit = f"at least {100 * least:g} %"
        checks.append(check(shown, f"{100 * lowest:.1f} % ({name})", limit, lowest >= least))
    cost, name = max((one["split"].cost, name) for name, one in found.items())
    shown, limit = 'cost of "split": most of a set', f"at most {COST} fits"
    checks.append(check(shown, f"{cost:.2f} fits ({name})", limit, cost <= COST))
    return checks


# Novelty


def novelty_scores(D: Array, y: Array, D_test: Array) -> dict[str, Array]:
    """How unlike the training objects those of the test part are: the larger, the more."""
    found = {}
    for method in METHODS:
        model = fitted_quietly(classifier(), D, y, conformal=method)
        found[f'novelty, "{method}"'] = -model.novelty(D_test)
    found["nearest object"] = D_test.min(axis=1)
    neighbours = min(20, len(D) - 1)
    factor = LocalOutlierFactor(n_neighbors=neighbours, novelty=True, metric="precomputed")
    found["LocalOutlierFactor"] = -factor.fit(D).score_samples(D_test)
    return found


def novelty_areas(D: Array, y: Array) -> dict[str, list[float]]:
    """The area under the curve of each method, for each class that is left out."""
    rng, found = np.random.default_rng(0), dict[str, list[float]]()
    for unseen in rng.permutation(np.unique(y))[:LEFT_OUT]:
        known = rng.permutation(np.flatnonzero(y != unseen))
        train = np.sort(known[: len(known) // 2])
        test = np.append(known[len(known) // 2 :], np.flatnonzero(y == unseen))
        scores = novelty_scores(D[np.ix_(train, train)], y[train], D[np.ix_(test, train)])
        for method, values in scores.items():
            found.setdefault(method, []).append(roc_auc_score(y[test] == unseen, values))
    return found


def novelty_table(found: dict[str, dict[str, list[float]]]) -> Table:
    methods = list(next(iter(found.values())))
    table = Table("Area under the ROC curve, an unseen class against seen ones",
                  ["set", "classes left out", *methods])  # fmt: skip
    for name, areas in found.items():
        cells = [f"{np.mean(one):.3f} ± {np.std(one):.3f}" for one in areas.values()]
        table.rows.append([name, str(len(areas[methods[0]])), *cells])
    table.notes.append(
        "Means and standard deviations over the classes. LocalOutlierFactor and the nearest object "
        'use all objects of the fit; "split" measures by three quarters of them.'
    )
    return table


# The command

SIZES = {
    False: Size(CLASSES, NUMBERS, NOVEL, 600, 1000, 20),
    True: Size(("noisy strings", "polygons"), ("waves",), ("noisy strings",), 120, 120, 2),
}
PARTS = ("coverage", "novelty")


def measure(parts: Sequence[str], size: Size, judged: bool) -> tuple[list[Check], list[Table]]:
    """The checks and the tables of some parts."""
    checks, made = list[Check](), list[Table]()
    for what, unit, names in (
        ("sets of classes", "classes", size.classes),
        ("intervals", "width", size.numbers),
    ):
        found = each(
            names if "coverage" in parts else (),
            lambda name: measured(problem(name, size.most), size.splits),
        )
        if found:
            checks += coverage_checks(what, found, judged)
            made.append(
                coverage_table(f"Coverage of {what}, {size.splits} splits of each set", unit, found)
            )
    areas = each(
        size.novel if "novelty" in parts else (),
        lambda name: novelty_areas(*distances_of(name, size.most_novel)),
    )
    if areas:
        made.append(novelty_table(areas))
    return checks, made


def each(names: Sequence[str], measure: Callable[[str], T]) -> dict[str, T]:
    """What is measured on each set; those that are not in the data folder are named."""
    found = {}
    for name in names:
        try:
            start = time.perf_counter()
            found[name] = measure(name)
            print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        except FileNotFoundError as error:
            print(f"MISSING set {name}: {error}", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> list[Table]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worth", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these")
    parser.add_argument("--splits", type=int, metavar="N", help="of each set; 20 unless told")
    parser.add_argument("--quick", action="store_true", help="made data, in seconds")
    parser.add_argument("--write", nargs="?", type=Path, const=RESULTS, metavar="FILE")
    options: Any = parser.parse_args(arguments)
    size = SIZES[options.quick]
    size = size._replace(splits=options.splits or size.splits)
    if options.sets:
        known = {*size.classes, *size.numbers, *size.novel}
        if unknown := set(options.sets) - known:
            parser.error(f"--sets: there is no {', '.join(sorted(unknown))}")
        size = size.only(options.sets)
    with threadpool_limits(1):
        checks, made = measure(options.parts, size, not options.quick)
    made.insert(0, tables.checked(checks))
    made[0].notes += [" ".join(part.split()) for part in (__doc__ or "").split("\n\n")[1:]]
    for table in made:
        table.show(tables.console())
    if options.write:
        command = tables.command_line("benchmarks.worth", arguments)
        tables.write_markdown(options.write, HEADING, command, made)
    return made


if __name__ == "__main__":
    main()
