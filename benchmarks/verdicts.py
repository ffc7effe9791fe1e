"""Tables and verdicts of the learning benchmark, from errors on folds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.learners import Comparison, Method, features, two_lambdas
from benchmarks.tables import Table
from kreinlearn.evaluation.paired import LEVEL, Difference, paired_difference
from reproduction.paired import ALL, ONE_VS_REST, Errors, Figure, errors_of

# Errors of a prototype with 100 uniform landmarks, all classes at once: the least and the largest.
TARGETS = {
    "protein": (0.0, 0.0),
    "chickenpieces_20_60": (9.4, 10.3),
    "woodyplants50": (10.1, 11.3),
}
ROUNDING = 0.05  # of the targets
SETTINGS = {
    "front": "to try first, KreinClassifier,",
    "auto": "at its defaults",
    "landmarks": "at {} landmarks",
}
MULTICLASS = "multiclass"
Results = dict[tuple[str, str], dict[str, Errors]]  # by set and way, then by method


def way_of(figure: Figure) -> str:
    """Whether all classes are told apart at once, or each from the rest."""
    return MULTICLASS if figure.target == ALL else ONE_VS_REST


def complete(figures: Iterable[Figure]) -> Results:
    """The errors of the methods that have all folds of a set."""
    groups: dict[tuple[str, str], dict[str, list[Figure]]] = defaultdict(lambda: defaultdict(list))
    for f in figures:
        if not f.failed:
            groups[f.set, way_of(f)][f.method].append(f)
    results: Results = {}
    for key, by_method in groups.items():
        most = max(map(len, by_method.values()))
        whole = {name: group for name, group in by_method.items() if len(group) == most}
        results[key] = {name: errors_of(group) for name, group in whole.items()}
    return results


def best_of(errors: dict[str, Errors], names: Iterable[str]) -> str | None:
    """The first method of the smallest mean error; None if none of them was measured."""
    there = [name for name in names if name in errors]
    return min(there, key=lambda name: errors[name].mean) if there else None


def difference(a: Errors, b: Errors) -> Difference:
    """The paired difference of two methods on the same folds; one split has no corrected test."""
    if a.units != b.units:
        raise ValueError("the two methods were not measured on the same folds")
    gap = paired_difference(a.values, b.values, a.ratio)
    return gap._replace(p_corrected=math.nan) if a.one_split else gap


# Errors


def error_tables(
    results: Results, figures: Sequence[Figure], methods: dict[str, Method]
) -> Iterator[Table]:
    header = ["method", "error %", "deviation", "standard error", "wall s", "CPU s"]
    for (name, way), by_method in results.items():
        here = [f for f in figures if (f.set, way_of(f)) == (name, way)]
        table = Table(f"{name}, n = {here[0].n}, {way}", header)
        for method in (m for m in methods if m in by_method):
            table.rows.append([method, *_cells(by_method[method])])
        first = next(iter(by_method.values()))
        if first.one_split:
            table.notes.append("One given split: the standard error is over its objects.")
        table.notes += _left_out(here, by_method)
        yield table


def _cells(errors: Errors) -> list[str]:
    deviation = "" if errors.one_split else f"{errors.deviation:.2f}"
    others = (errors.standard_error, errors.wall, errors.cpu)
    return [f"{errors.mean:.2f}", deviation, *(f"{value:.2f}" for value in others)]


def _left_out(here: Sequence[Figure], by_method: dict[str, Errors]) -> Iterator[str]:
    failed = {f.method: f.failed for f in here if f.failed}
    for method, error in failed.items():
        yield f"FAILED: {method}: {error}"
    for method in dict.fromkeys(f.method for f in here):
        if method not in by_method and method not in failed:
            yield f"Not complete yet, left out: {method}"


def chosen_table(figures: Sequence[Figure], methods: dict[str, Method]) -> Table:
    """Which similarities our defaults chose, with numbers of fits."""
    table = Table("What our learners chose", ["set", "method", "similarity"])
    groups: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for f in figures:
        if (
            not f.failed
            and way_of(f) == MULTICLASS
            and f.method in methods
            and methods[f.method].ours
        ):
            values = dict(word.split("=", 1) for word in f.chosen.split())
            groups[f.set, f.method].append(values)
    for (name, method), found in groups.items():
        table.rows.append([name, method, _counted(v.get("similarity", "") for v in found)])
    return table


def _counted(values: Iterable[str]) -> str:
    counts = Counter(value for value in values if value)
    return ", ".join(f"{value} {count}" for value, count in counts.most_common())


# Verdicts


class Gap(NamedTuple):
    """One of our learners compared with the best of some methods, on one set."""

    set: str
    way: str
    ours: str
    best: str
    found: Difference
    own: float  # standard error of the best

    @property
    def within_own(self) -> bool:
        return self.found.mean <= self.own + 1e-9

    @property
    def within_paired(self) -> bool:
        return self.found.mean <= self.found.standard_error + 1e-9


def gaps(
    results: Results, ours: Sequence[str], others: Sequence[str], *, each: bool = False
) -> Iterator[Gap]:
    """The gaps of our best learner on every set, or of each of our learners."""
    for (name, way), by_method in results.items():
        mine, best = best_of(by_method, ours), best_of(by_method, others)
        if mine is None or best is None:
            continue
        for method in [m for m in ours if m in by_method] if each else [mine]:
            found = difference(by_method[method], by_method[best])
            yield Gap(name, way, method, best, found, by_method[best].standard_error)


def mine(methods: dict[str, Method], setting: str) -> list[str]:
    return [name for name, method in methods.items() if method.ours == setting]


def within_table(results: Results, methods: dict[str, Method]) -> Table:
    header = ["set", "way", "ours", "error %", "best of all", "error %", "gap", "its s.e.", ""]
    table = Table("Within one standard error of the best", [*header, "paired s.e.", ""])
    for setting in SETTINGS:
        for gap in gaps(results, mine(methods, setting), list(methods), each=True):
            by_method = results[gap.set, gap.way]
            a, b = by_method[gap.ours].mean, by_method[gap.best].mean
            row = [gap.set, gap.way, gap.ours, f"{a:.2f}", gap.best, f"{b:.2f}"]
            row += [signed(gap.found.mean), f"{gap.own:.2f}", verdict(gap.within_own)]
            row += [f"{gap.found.standard_error:.2f}", verdict(gap.within_paired)]
            table.rows.append(row)
    table.notes.append(
        "Gap: ours less the best of all compared methods, our own other settings included; its "
        "standard error over folds, then that of the paired difference."
    )
    return table


def signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"  # never -0.00


def verdict(holds: bool) -> str:
    return "PASS" if holds else "MISS"


def compared(
    results: Results, pairs: Sequence[Comparison]
) -> Iterator[tuple[str, str, Comparison, Difference]]:
    for (name, way), by_method in results.items():
        for pair in pairs:
            if pair.a in by_method and pair.b in by_method:
                yield name, way, pair, difference(by_method[pair.a], by_method[pair.b])


def worse(p: float) -> bool:
    return p < LEVEL  # never where p is NaN


def difference_table(results: Results, title: str, pairs: Sequence[Comparison]) -> Table:
    header = ["set", "way", "ours", "against", "difference", "s.e.", "p, folds", ""]
    table = Table(title, [*header, "p, corrected", ""])
    for name, way, pair, found in compared(results, pairs):
        row = [name, way, pair.a, pair.b, signed(found.mean), f"{found.standard_error:.2f}"]
        for p in (found.p, found.p_corrected):
            row += ["", ""] if math.isnan(p) else [f"{p:.3f}", verdict(not worse(p))]
        table.rows.append(row)
    table.notes.append(
        "Difference in percent, negative where ours errs less. p: one-sided, of being worse; MISS "
        f"below {LEVEL:g}. 'folds' takes the folds as independent, 'corrected' is the resampled t "
        "of Nadeau and Bengio (variance 1/J + n_test/n_train). No correction for their number."
    )
    return table


def help_table(results: Results, pairs: Sequence[Comparison]) -> Table:
    header = ["set", "way", "learner", "difference", "s.e.", "p, folds", "p, corrected"]
    table = Table("Where two lambdas help", header)
    for name, way, pair, found in compared(results, pairs):
        if found.mean < -max(found.standard_error, 1e-9):
            ps = (found.p_better, found.p_corrected_better)
            cells = ["" if math.isnan(p) else f"{p:.3f}" for p in ps]
            row = [name, way, pair.a, signed(found.mean), f"{found.standard_error:.2f}"]
            table.rows.append([*row, *cells])
    if table.rows:
        table.notes.append(
            "Sets and learners whose error falls by more than one paired standard error; p: "
            "one-sided, of being better."
        )
    return table


# All targets in one table


def check_table(results: Results, methods: dict[str, Method], landmarks: int) -> Table:
    table = Table("Targets", ["what", "found", "limit", ""])
    rows: list[list[str]] = []
    for way in dict.fromkeys(way for _, way in results):
        here = {key: value for key, value in results.items() if key[1] == way}
        rows += [*_within_rows(here, methods, landmarks, way)]
        for pairs in (two_lambdas(landmarks), features(landmarks)):
            rows += [*_difference_rows(here, pairs, way)]
    rows += [*_target_rows(results, methods, landmarks)]
    table.rows += [row[:4] for row in rows]
    table.notes += [
        f"- MISS, {what}: {where}" for what, _, _, found, where in rows if found == "MISS"
    ]
    table.notes.append(
        "\nThe best of KreinRidge, KreinVCRidge and KreinSVC is taken set by set, after the fact; "
        "each of them stands in a table below. 'others': 1-NN, SVC raw, SpectrumSVC and "
        "SimilarityRidge. 'equal': the same errors in every fold."
    )
    return table


def _within_rows(
    results: Results, methods: dict[str, Method], landmarks: int, way: str
) -> Iterator[list[str]]:
    rivals = {
        "all": list(methods),
        "the others": [name for name in methods if not name.startswith("Krein")],
    }
    kinds: dict[str, Callable[[Gap], bool]] = {
        "its": lambda gap: gap.within_own,
        "a paired": lambda gap: gap.within_paired,
    }
    budget = [name for name in methods if f" {landmarks}" in name]
    for setting, text in SETTINGS.items():
        equal = {f"those with {landmarks}": budget} if setting == "landmarks" else {}
        for whose, names in (rivals | equal).items():
            found = list(gaps(results, mine(methods, setting), names))
            for kind, holds in kinds.items():
                missed = [gap for gap in found if not holds(gap)]
                what = f"{way}: our best {text.format(landmarks)} within {kind} s.e. of the best"
                where = "; ".join(f"{g.set} {signed(g.found.mean)} ({g.best})" for g in missed)
                if found:
                    good = f"{len(found) - len(missed)} of {len(found)} sets"
                    yield [f"{what} of {whose}", good, "all", verdict(not missed), where]


def _difference_rows(
    results: Results, pairs: Sequence[Comparison], way: str
) -> Iterator[list[str]]:
    found = list(compared(results, pairs))
    for test in ("p", "p_corrected"):
        missed = [one for one in found if worse(getattr(one[3], test))]
        where = "; ".join(f"{name} {pair.a} {signed(d.mean)}" for name, _, pair, d in missed)
        by = "folds" if test == "p" else "corrected"
        what = f"{way}: significantly worse than {pairs[0].what} ({by} t)"
        same = sum(d.mean == d.standard_error == 0 for *_, d in found)
        count = f"{len(missed)} of {len(found)}, {same} equal"
        if found:
            yield [what, count, "0", verdict(not missed), where]


def _target_rows(
    results: Results, methods: dict[str, Method], landmarks: int
) -> Iterator[list[str]]:
    for name, (low, high) in TARGETS.items():
        by_method = results.get((name, MULTICLASS), {})
        for setting, text in SETTINGS.items():
            best = best_of(by_method, mine(methods, setting))
            if best:
                error = by_method[best].mean
                limit = f"{low:g}-{high:g}" if high > low else f"{high:g}"
                what = f"{name}: error % of our best {text.format(landmarks)}"
                holds = verdict(error <= high + ROUNDING)
                yield [what, f"{error:.2f}", limit, holds, best]
