"""Table 1: errors at the largest rank, the paper's scheme and our defaults on the same folds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kreinlearn.paper import classifying, printed, sets
from kreinlearn.paper.classifying import DEFAULTS, FEW, LEARNERS, NEAREST, OURS, PAPER, Measured
from kreinlearn.paper.paired import ALL, ONE_VS_REST, Cell, Cells, Errors, difference
from kreinlearn.paper.printed import METHODS
from kreinlearn.paper.reading import say
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.sets import DISSIMILARITY
from kreinlearn.paper.tasks import Measurements, Task
from kreinlearn.report import Block, Check, Section, Table

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
    woody = [printed.table1()["woody50", method].mean for method in METHODS]
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
    return [Cell(method, PAPER, k) for method in METHODS]


def _texts(cells: Cells, columns: list[Cell]) -> list[str]:
    """The errors of some cells, and nothing for those that are missing."""
    return [str(cells.get(cell, "")) for cell in columns]


def _few_columns(here: Measured) -> dict[str, Cell]:
    """The columns of ours with few landmarks and of 1-NN."""
    ours = {f"{NAMES[m]}, {here.k} landmarks": Cell(m, FEW, here.k) for m in OURS}
    return {**ours, "1-NN": Cell(NEAREST, NEAREST)}


def _scheme_table(here: Measured) -> Table:
    """All rows of the paper, measured or not, and the sets that the paper does not have."""
    header = ["set", "n", *(f"{m}, {whose}" for m in METHODS for whose in ("ours", "paper"))]
    table = Table(f"The paper's scheme at rank {here.k}, all classes at once", header)
    for name, entry in DISSIMILARITY.items():
        cells = here.cells(name)
        if not entry.table and not cells:
            continue
        row = [name, str(here.sets[name]["n"]) if cells else sets.state(name, here.scale)]
        for cell in scheme_cells(here.k):
            cited = printed.table1().get((entry.table, cell.method))
            paper = f"{cited.mean:.2f} ± {cited.deviation:.2f}" if cited else ""
            row += [str(cells.get(cell, "")), paper]
        table.rows.append(row)
    table.notes += [
        f"{name}: {row['origin']}." for name, row in here.sets.items() if row["origin"] != sets.SAME
    ]
    return table


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
    columns = {
        **{NAMES[m]: Cell(m, DEFAULTS) for m in (*OURS, *(m for m in METHODS if m not in OURS))},
        **_few_columns(here),
    }
    table = Table("Ours at defaults, all classes at once", ["set", "paper's best", *columns])
    for name, entry in DISSIMILARITY.items():
        cells = here.cells(name)
        if cells or entry.table:
            best = f"{best_printed(entry.table).mean:.2f}" if entry.table else sets.SIBLING
            table.rows.append([name, best, *_texts(cells, list(columns.values()))])
            if not cells:
                table.rows[-1][2] = sets.state(name, here.scale)
    return table


class Best(NamedTuple):
    """The best number of the paper for a set, in percent."""

    method: str
    mean: float
    standard_error: float


def best_printed(table: str) -> Best:
    """The smallest mean that the paper has for a set."""
    cited = {m: printed.table1()[table, m] for m in METHODS}
    method = min(cited, key=lambda m: cited[m].mean)
    return Best(method, cited[method].mean, cited[method].deviation / math.sqrt(PRINTED_FOLDS))


def _ours(cells: Cells) -> dict[str, Errors]:
    """Our learners at their defaults, by method."""
    return {m: cells[Cell(m, DEFAULTS)] for m in OURS if Cell(m, DEFAULTS) in cells}


def _best_table(here: Measured) -> Table:
    header = ["set", "matrix", "ours", "error", "paper's best", "by", "difference"]
    table = Table("Ours at defaults against the best figure of the paper", header)
    for name, of in ROWS.items():
        best = best_printed(of)
        for method, ours in _ours(here.cells(name)).items():
            both = math.hypot(ours.standard_error, best.standard_error)
            origin = here.sets[name]["origin"].split(":")[0]
            table.rows.append([
                name, origin, NAMES[method], f"{ours.mean:.2f} ± {ours.standard_error:.2f}",
                f"{best.mean:.2f} ± {best.standard_error:.2f}", best.method,
                f"{ours.mean - best.mean:+.2f} ± {both:.2f}",
            ])  # fmt: skip
    table.notes.append(say("table1.best"))
    return table


def _paired_table(here: Measured) -> Table:
    header = ["set", "ours", *(f"less {method}" for method in METHODS)]
    title = f"Ours at defaults against the paper's scheme at rank {here.k}, fold by fold"
    table = Table(title, header)
    for name in DISSIMILARITY:
        cells = here.cells(name)
        for method, ours in _ours(cells).items():
            others = [cells.get(cell) for cell in scheme_cells(here.k)]
            gaps = [str(difference(ours, other)) if other else "" for other in others]
            table.rows.append([name, NAMES[method], *gaps])
    table.notes.append("Difference of errors in percent ± its standard error over the same folds.")
    return table


def _chosen_table(here: Measured) -> Table:
    table = Table("Similarities that cross-validation chose", ["set", *(NAMES[m] for m in OURS)])
    for name in DISSIMILARITY:
        counts = {method: Counter[str]() for method in OURS}
        for row in here.rows:
            if row["set"] == name and row["variant"] == DEFAULTS and row["method"] in OURS:
                values = dict(word.split("=", 1) for word in row["chosen"].split())
                counts[row["method"]][values["similarity"]] += 1
        if any(counts.values()):
            cells = [", ".join(f"{s} {n}" for s, n in c.most_common()) for c in counts.values()]
            table.rows.append([name, *cells])
    table.notes.append("The number of folds; 'squared' means the paper's centred squares.")
    return table


def _rest_tables(here: Measured) -> Iterator[Table]:
    """One table per set: every class against the rest, and the mean over classes."""
    columns = {cell.method: cell for cell in scheme_cells(here.k)} | _few_columns(here)
    for name in (name for name in DISSIMILARITY if here.cells(name, ONE_VS_REST)):
        bases = {
            row["target"]: 100 * row["base"]
            for row in here.rows
            if row["set"] == name and row["target"] != ALL
        }
        table = Table(f"{name}: each class against the rest", ["class", "base rate", *columns])
        for target in [*bases, ONE_VS_REST]:
            base = bases.get(target, sum(bases.values()) / len(bases))
            label = "mean over classes" if target == ONE_VS_REST else target
            cells = _texts(here.cells(name, target), list(columns.values()))
            table.rows.append([label, f"{base:.2f}", *cells])
        table.notes.append(say("table1.rest", k=here.k))
        yield table


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
            yield Check(
                f"{name}: error at defaults, percent", sets.state(name, here.scale), limit, None
            )
