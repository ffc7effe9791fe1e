"""Table 1: errors at the largest rank, the paper's scheme and our defaults on the same folds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from kreinlearn.report.model import Block, Check, Section, Table
from reproduction import classifying, printed, sets
from reproduction.classifying import DEFAULTS, FEW, LEARNERS, NEAREST, OURS, PAPER, Measured
from reproduction.paired import ALL, ONE_VS_REST, Cell, Cells, Errors, difference
from reproduction.reading import say
from reproduction.scale import Scale
from reproduction.sets import DISSIMILARITY
from reproduction.tasks import Measurements, Task

NAMES = {method: learner.__name__ for method, learner in LEARNERS.items()}
PRINTED_DIGITS = 0.005  # the paper's means have two decimals
PRINTED_RANK, PRINTED_FOLDS = 100, 10
ROWS = {name: entry.table for name, entry in DISSIMILARITY.items() if entry.table}


def tasks(scale: Scale) -> list[Task]:
    """The paper's scheme, and ours with few landmarks and at their defaults."""
    kinds = classifying.scheme_tasks, classifying.rest_tasks, classifying.few_tasks
    return classifying.tasks_of(scale, *kinds, classifying.default_tasks)


def section(scale: Scale, measurements: Measurements) -> Section:
    """Table 1 beside our numbers, and whether ours are as good."""
    here = classifying.measured(scale, tasks(scale), measurements)
    blocks: list[Block] = [_setting(here), say("table1.unknown"), _labels(here)]
    blocks += [_scheme_table(here), *_agreement(here), _ours_table(here), _best_table(here)]
    blocks += [_paired_table(here), _chosen_table(here), *_rest_tables(here), *here.absences]
    shown = [block for block in blocks if not isinstance(block, Table) or block.rows]
    numbers = classifying.mean_errors(here, "table1", (ALL, ONE_VS_REST))
    return Section("Classification error at one rank (Table 1)", shown, [*_checks(here)], numbers)


# What was done


def _setting(here: Measured) -> str:
    ours = " and ".join(NAMES[method] for method in OURS)
    sizes = {"k": here.k, "large": classifying.LARGE, "rank": PRINTED_RANK}
    return say("table1.setting", folds=here.scale.folds, seed=here.scale.seed, ours=ours, **sizes)


def _labels(here: Measured) -> str:
    name = "woodyplants50"
    woody = [printed.table1()["woody50", method].mean for method in LEARNERS]
    bases = [row["base"] for row in here.rows if row["set"] == name and row["base"]]
    base = f"{100 * max(bases):.1f}" if bases else "about 8"
    text = say("table1.labels", least=min(woody), most=max(woody), base=base)
    cells = here.cells(name, ONE_VS_REST)
    apart = [cells[cell].mean for cell in scheme_cells(here.k) if cell in cells]
    if not apart:
        return text
    return f"{text} {say('table1.apart', least=min(apart), most=max(apart), k=here.k)}"


# Tables


def scheme_cells(k: int) -> list[Cell]:
    """The four methods of the paper's scheme at rank k."""
    return [Cell(method, PAPER, k) for method in LEARNERS]


def _shown_sets(here: Measured) -> list[str]:
    """The sets of the paper's table, and others that were measured."""
    return [name for name in DISSIMILARITY if name in ROWS or here.cells(name)]


def _texts(cells: Cells, columns: dict[str, Cell]) -> list[str]:
    """The errors of some cells, and nothing for those that are missing."""
    return [str(cells.get(cell, "")) for cell in columns.values()]


def _few_columns(here: Measured) -> dict[str, Cell]:
    """The columns of ours with few landmarks and of 1-NN."""
    ours = {f"{NAMES[m]}, {here.k} landmarks": Cell(m, FEW, here.k) for m in OURS}
    return {**ours, "1-NN": Cell(NEAREST, NEAREST)}


def _scheme_table(here: Measured) -> Table:
    """All rows of the paper, measured or not, and the sets that the paper does not have."""
    header = ["set", "n", *(f"{m}, {whose}" for m in LEARNERS for whose in ("ours", "paper"))]
    rows = []
    for name in _shown_sets(here):
        cells, cited = here.cells(name), printed.table1()
        row = [name, str(here.sets[name]["n"]) if cells else sets.state(name, here.scale)]
        for cell in scheme_cells(here.k):
            row += [str(cells.get(cell, "")), str(cited.get((ROWS.get(name, ""), cell.method), ""))]
        rows.append(row)
    origins = {name: row["origin"] for name, row in here.sets.items()}
    notes = [f"{name}: {origin}." for name, origin in origins.items() if origin != sets.SAME]
    title = f"The paper's scheme at rank {here.k}, all classes at once"
    return Table(title, header, rows, notes)


def _agreement(here: Measured) -> Iterator[str]:
    """How many numbers of the scheme are near those that the paper prints for the same rank."""
    if here.k != PRINTED_RANK:
        return
    gaps: dict[str, list[float]] = {}
    near = 0
    for name, table in ROWS.items():
        for cell in (c for c in scheme_cells(here.k) if c in here.cells(name)):
            cited = printed.table1()[table, cell.method]
            gap = here.cells(name)[cell].mean - cited.mean
            near += abs(gap) <= cited.deviation + PRINTED_DIGITS
            gaps.setdefault(name, []).append(gap)
    apart = "; ".join(f"{name} {min(g):+.1f} to {max(g):+.1f}" for name, g in gaps.items())
    if gaps:
        yield say("table1.agreement", near=near, total=sum(map(len, gaps.values())), apart=apart)


def _ours_table(here: Measured) -> Table:
    methods = dict.fromkeys([*OURS, *LEARNERS])
    columns = {NAMES[m]: Cell(m, DEFAULTS) for m in methods} | _few_columns(here)
    rows = []
    for name in _shown_sets(here):
        best = f"{best_printed(ROWS[name]).mean:.2f}" if name in ROWS else sets.SIBLING
        texts = _texts(here.cells(name), columns)
        if not here.cells(name):
            texts[0] = sets.state(name, here.scale)
        rows.append([name, best, *texts])
    return Table("Ours at defaults, all classes at once", ["set", "paper's best", *columns], rows)


class Best(NamedTuple):
    """The best number of the paper for a set, in percent."""

    mean: float
    standard_error: float
    method: str


def best_printed(table: str) -> Best:
    """The smallest mean that the paper has for a set."""
    cited = {m: printed.table1()[table, m] for m in LEARNERS}
    return min(Best(p.mean, p.deviation / math.sqrt(PRINTED_FOLDS), m) for m, p in cited.items())


def _ours(cells: Cells) -> dict[str, Errors]:
    """Our learners at their defaults, by method."""
    return {m: cells[Cell(m, DEFAULTS)] for m in OURS if Cell(m, DEFAULTS) in cells}


def _best_table(here: Measured) -> Table:
    header = ["set", "matrix", "ours", "error", "paper's best", "by", "difference"]
    rows = []
    for name, of in ROWS.items():
        best = best_printed(of)
        for method, ours in _ours(here.cells(name)).items():
            both = math.hypot(ours.standard_error, best.standard_error)
            origin = here.sets[name]["origin"].split(":")[0]
            rows.append([
                name, origin, NAMES[method], f"{ours.mean:.2f} ± {ours.standard_error:.2f}",
                f"{best.mean:.2f} ± {best.standard_error:.2f}", best.method,
                f"{ours.mean - best.mean:+.2f} ± {both:.2f}",
            ])  # fmt: skip
    title = "Ours at defaults against the best figure of the paper"
    return Table(title, header, rows, [say("table1.best")])


def _paired_table(here: Measured) -> Table:
    header = ["set", "ours", *(f"less {method}" for method in LEARNERS)]
    title = f"Ours at defaults against the paper's scheme at rank {here.k}, fold by fold"
    rows = []
    for name in DISSIMILARITY:
        others = [here.cells(name).get(cell) for cell in scheme_cells(here.k)]
        for method, ours in _ours(here.cells(name)).items():
            gaps = [str(difference(ours, other)) if other else "" for other in others]
            rows.append([name, NAMES[method], *gaps])
    note = "Difference of errors in percent ± its standard error over the same folds."
    return Table(title, header, rows, [note])


def _chosen_table(here: Measured) -> Table:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in here.rows:
        if row["variant"] == DEFAULTS:
            values = dict(word.split("=", 1) for word in row["chosen"].split())
            counts[row["set"], row["method"]][values.get("similarity", "")] += 1
    texts = {k: ", ".join(f"{s} {n}" for s, n in c.most_common()) for k, c in counts.items()}
    rows = [[name, *(texts.get((name, method), "") for method in OURS)] for name in DISSIMILARITY]
    rows, header = [row for row in rows if any(row[1:])], ["set", *(NAMES[m] for m in OURS)]
    note = "The number of folds; 'squared' means the paper's centred squares."
    return Table("Similarities that cross-validation chose", header, rows, [note])


def _rest_tables(here: Measured) -> Iterator[Table]:
    """One table per set: every class against the rest, and the mean over classes."""
    columns = {cell.method: cell for cell in scheme_cells(here.k)} | _few_columns(here)
    for name in (name for name in DISSIMILARITY if here.cells(name, ONE_VS_REST)):
        bases = {
            row["target"]: 100 * row["base"]
            for row in here.rows
            if row["set"] == name and row["target"] != ALL
        }
        bases[ONE_VS_REST] = sum(bases.values()) / len(bases)
        labels = {ONE_VS_REST: "mean over classes"}
        rows = [
            [labels.get(of, of), f"{base:.2f}", *_texts(here.cells(name, of), columns)]
            for of, base in bases.items()
        ]
        header, note = ["class", "base rate", *columns], say("table1.rest", k=here.k)
        yield Table(f"{name}: each class against the rest", header, rows, [note])


# Claims


def _checks(here: Measured) -> Iterator[Check]:
    """One claim per set and learner, if as much was run as in the paper: fewer data err more."""
    for name, of in ROWS.items() if here.scale.folds == PRINTED_FOLDS else ():
        best, ours = best_printed(of), _ours(here.cells(name))
        limit = f"{best.mean:.2f} ({best.method}, s.e. {best.standard_error:.2f})"
        for method, errors in ours.items():
            origin = here.sets[name]["origin"].split(":")[0]
            what = f"{name} ({origin}): error of {NAMES[method]} at defaults, percent"
            holds = errors.mean <= best.mean + PRINTED_DIGITS
            yield Check(what, f"{errors.mean:.2f} (s.e. {errors.standard_error:.2f})", limit, holds)
        if not ours:
            what = f"{name}: error at defaults, percent"
            yield Check(what, sets.state(name, here.scale), limit, None)
