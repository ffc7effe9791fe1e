"""Figures 3 and 7 and Tables 1 and 2: errors of classifiers, the paper's scheme and ours."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from reproduction import classifying, printed, sets
from reproduction.classifying import (
    DEFAULTS,
    EXACT,
    EXACT_METHODS,
    EXACT_MOST,
    FEW,
    FLIP,
    LEARNERS,
    NEAREST,
    OURS,
    PAPER,
    SVM,
    Measured,
)  # fmt: skip
from reproduction.figures import Line, Panel, drawn
from reproduction.paired import ALL, ONE_VS_REST, Cell, Cells, Errors, difference
from reproduction.reading import say, table
from reproduction.report import Block, Check, Section, Table
from reproduction.scale import Scale
from reproduction.sets import DISSIMILARITY
from reproduction.tasks import Measurements, Task

NAMES = {method: learner.__name__ for method, learner in LEARNERS.items()}
CURVES = [name for name, entry in DISSIMILARITY.items() if entry.curve]
ROWS = {name: entry.table for name, entry in DISSIMILARITY.items() if entry.table}
PRINTED_DIGITS = 0.005  # the paper's means have two decimals
PRINTED_RANK, PRINTED_FOLDS = 100, 10


# Figures 3 and 7


def rank_tasks(scale: Scale) -> list[Task]:
    """The paper's scheme at all ranks, and KreinSVC at its defaults."""
    reference = partial(classifying.default_tasks, methods=[SVM])
    kinds = classifying.scheme_tasks, classifying.rest_tasks, reference
    return classifying.tasks_of(scale, *kinds)


def rank_error(scale: Scale, measurements: Measurements) -> Section:
    """Figures 3 and 7, and the same numbers as tables."""
    here = classifying.measured(scale, rank_tasks(scale), measurements)
    blocks: list[Block] = [say("rank-classification.setting", folds=scale.folds)]
    blocks += _figure_and_table(here, "rank-classification", CURVES, ALL, "all")
    if names := here.names(ONE_VS_REST):
        file = "rank-classification-one-against-the-rest"
        blocks.append(say("rank-classification.apart"))
        blocks += _figure_and_table(here, file, names, ONE_VS_REST, "rest")
    numbers = {
        f"rank-classification/{name}/{method}/k={k} median": error
        for name, method in product(DISSIMILARITY, LEARNERS)
        for k, error in curve(here, name, method).items()
    }
    title = "Classification error against rank (Figures 3 and 7)"
    return Section(title, blocks, numbers=numbers)


def curve(here: Measured, name: str, method: str, target: str = ALL) -> dict[int, float]:
    """The medians of the paper's scheme by rank."""
    cells = here.cells(name, target)
    wanted = {k: Cell(method, PAPER, k) for k in here.scale.ranks}
    return {k: cells[cell].median for k, cell in wanted.items() if cell in cells}


def printed_curve(name: str, method: str, target: str = ALL) -> dict[int, float]:
    """The medians that the paper prints, by rank, which are of all classes at once."""
    points, of = sorted(printed.classification().items()), (DISSIMILARITY[name].curve, method)
    return {key[2]: error for key, error in points if key[:2] == of and target == ALL}


def _figure_and_table(
    here: Measured, file: str, names: list[str], target: str, words: str
) -> Iterator[Block]:
    panels, rows, ranks = [], [], here.scale.ranks
    for name in names:
        lines = [
            Line(method, list(points), list(points.values()), printed=of is printed_curve)
            for of in (partial(curve, here), printed_curve)
            for method in LEARNERS
            if (points := of(name, method, target))
        ]
        if best := here.cells(name, target).get(Cell(SVM, DEFAULTS)):
            ends = [ranks[0], ranks[-1]]
            lines.append(Line("KreinSVC, defaults", ends, [best.median] * 2, dashed=True))
        title = name if here.cells(name) else f"{name} ({sets.state(name, here.scale)})"
        panels.append(Panel(title, lines))
    yield drawn(
        file, panels, xlog=True, xlabel="rank", ylabel="error, %",
        caption=say(f"rank-classification.caption_{words}"), alt=say("rank-classification.alt"),
    )  # fmt: skip
    for name, method in product(DISSIMILARITY, LEARNERS):
        ours, theirs = curve(here, name, method, target), printed_curve(name, method, target)
        if ours or theirs:
            rows.append([name, method, *_both(ours, theirs, ranks)])
    yield table(f"rank-classification.{words}", rows, [f"k = {k}" for k in ranks])


def _both(ours: dict[int, float], theirs: dict[int, float], ranks: tuple[int, ...]) -> list[str]:
    """Ours, then the paper's in brackets."""
    left = [f"{ours[k]:.1f}" if k in ours else "" for k in ranks]
    right = [f"({theirs[k]:.1f})" if k in theirs else "" for k in ranks]
    return [f"{a} {b}".strip() for a, b in zip(left, right, strict=True)]


# Table 1


def table1_tasks(scale: Scale) -> list[Task]:
    """The paper's scheme, and ours with few landmarks and at their defaults."""
    kinds = classifying.scheme_tasks, classifying.rest_tasks, classifying.few_tasks
    return classifying.tasks_of(scale, *kinds, classifying.default_tasks)


def table1(scale: Scale, measurements: Measurements) -> Section:
    """Table 1 beside our numbers, and whether ours are as good."""
    here = classifying.measured(scale, table1_tasks(scale), measurements)
    sizes = {"folds": scale.folds, "seed": scale.seed, "k": here.k, "rank": PRINTED_RANK}
    setting = say("table1.setting", large=classifying.LARGE, **sizes)
    blocks: list[Block] = [setting, say("table1.unknown"), say("table1.labels")]
    blocks += [_scheme_table(here), _ours_table(here), _best_table(here), _paired_table(here)]
    blocks += [_chosen_table(here), *_rest_tables(here)]
    numbers = here.means("table1", (ALL, ONE_VS_REST))
    title = "Classification error at one rank (Table 1)"
    return Section(title, blocks, [*_checks(here)], numbers)


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
    columns = [f"{m}, {whose}" for m in LEARNERS for whose in ("ours", "paper")]
    origins = {name: row["origin"] for name, row in here.sets.items()}
    notes = [f"{name}: {origin}." for name, origin in origins.items() if origin != sets.SAME]
    rows = []
    for name in _shown_sets(here):
        cells, cited = here.cells(name), printed.table1()
        row = [name, str(here.sets[name]["n"]) if cells else sets.state(name, here.scale)]
        for cell in scheme_cells(here.k):
            row += [str(cells.get(cell, "")), str(cited.get((ROWS.get(name, ""), cell.method), ""))]
        rows.append(row)
    return table("table1.scheme", rows, columns, notes=notes, k=here.k)


def _ours_table(here: Measured) -> Table:
    methods = dict.fromkeys([*OURS, *LEARNERS])
    columns, rows = {NAMES[m]: Cell(m, DEFAULTS) for m in methods} | _few_columns(here), []
    for name in _shown_sets(here):
        best = f"{best_printed(ROWS[name])[0]:.2f}" if name in ROWS else sets.SIBLING
        texts = _texts(here.cells(name), columns)
        rows.append([name, best, texts[0] or sets.state(name, here.scale), *texts[1:]])
    return table("table1.ours", rows, columns)


def best_printed(of: str) -> tuple[float, float, str]:
    """The smallest mean that the paper has for a set, its standard error, and the method."""
    cited = {m: printed.table1()[of, m] for m in LEARNERS}
    return min((p.mean, p.deviation / math.sqrt(PRINTED_FOLDS), m) for m, p in cited.items())


def _ours(cells: Cells) -> dict[str, Errors]:
    """Our learners at their defaults, by method."""
    return {m: cells[Cell(m, DEFAULTS)] for m in OURS if cells}


def _origin(here: Measured, name: str) -> str:
    return str(here.sets[name]["origin"].split(":")[0])


def _best_table(here: Measured) -> Table:
    rows = []
    for name, of in ROWS.items():
        mean, error, by = best_printed(of)
        for method, ours in _ours(here.cells(name)).items():
            gap = f"{ours.mean - mean:+.2f} ± {math.hypot(ours.standard_error, error):.2f}"
            both = f"{ours.mean:.2f} ± {ours.standard_error:.2f}", f"{mean:.2f} ± {error:.2f}"
            rows.append([name, _origin(here, name), NAMES[method], *both, by, gap])
    return table("table1.best", rows)


def _paired_table(here: Measured) -> Table:
    rows = []
    for name in here.names():
        others = [here.cells(name)[cell] for cell in scheme_cells(here.k)]
        for method, ours in _ours(here.cells(name)).items():
            rows.append([name, NAMES[method], *(str(difference(ours, one)) for one in others)])
    return table("table1.paired", rows, [f"less {method}" for method in LEARNERS], k=here.k)


def _chosen_table(here: Measured) -> Table:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in here.rows:
        if row["variant"] == DEFAULTS:
            values = dict(word.split("=", 1) for word in row["chosen"].split())
            counts[row["set"], row["method"]][values.get("similarity", "")] += 1
    texts = {k: ", ".join(f"{s} {n}" for s, n in c.most_common()) for k, c in counts.items()}
    rows = [[name, *(texts[name, method] for method in OURS)] for name in here.names()]
    return table("table1.chosen", rows, [NAMES[method] for method in OURS])


def _rest_tables(here: Measured) -> Iterator[Table]:
    """One table per set: every class against the rest, and the mean over classes."""
    columns = {cell.method: cell for cell in scheme_cells(here.k)} | _few_columns(here)
    for name in here.names(ONE_VS_REST):
        own = (row for row in here.rows if row["set"] == name and row["target"] != ALL)
        bases = {row["target"]: 100 * row["base"] for row in own}
        bases[ONE_VS_REST] = sum(bases.values()) / len(bases)
        rows = [
            ["mean over classes" if of == ONE_VS_REST else of, f"{base:.2f}",
             *_texts(here.cells(name, of), columns)]
            for of, base in bases.items()
        ]  # fmt: skip
        yield table("table1.rest", rows, columns, name=name, k=here.k)


def _checks(here: Measured) -> Iterator[Check]:
    """One claim per set and learner, if as much was run as in the paper: fewer data err more."""
    for name, of in ROWS.items() if here.scale.folds == PRINTED_FOLDS else ():
        (mean, error, by), ours = best_printed(of), _ours(here.cells(name))
        limit = f"{mean:.2f} ({by}, s.e. {error:.2f})"
        for method, errors in ours.items():
            what = f"{name} ({_origin(here, name)}): error of {NAMES[method]} at defaults, percent"
            found = f"{errors.mean:.2f} (s.e. {errors.standard_error:.2f})"
            yield Check(what, found, limit, errors.mean <= mean + PRINTED_DIGITS)
        if not ours:
            what = f"{name}: error at defaults, percent"
            yield Check(what, sets.state(name, here.scale), limit, None)


# Table 2


def table2_tasks(scale: Scale) -> list[Task]:
    """The exact methods, and the paper's scheme on the same sets."""
    made: list[Task] = []
    for name in sets.there(scale):
        where = classifying.place(name, replace(scale, polygons=scale.exact_polygons), EXACT_MOST)
        # Table 1 measures the scheme at all ranks on a set that is not made smaller here.
        whole = where.n == classifying.place(name, scale).n
        made += classifying.scheme_tasks(where, None if whole else scale.ranks[-1:])
        made += classifying.exact_tasks(where)
    return made


def table2(scale: Scale, measurements: Measurements) -> Section:
    """Table 2: what the approximation costs; the flipped SVM is beside the Krein machine."""
    here = classifying.measured(scale, table2_tasks(scale), measurements)
    sizes, rows = {"most": EXACT_MOST, "polygons": scale.exact_polygons}, []
    for name, method in product(here.names(), EXACT_METHODS):
        low = Cell(SVM if method == FLIP else method, PAPER, here.k)
        both = [here.cells(name)[cell] for cell in (Cell(method, EXACT), low)]
        seconds = [f"{errors.cpu:.2f}" for errors in both]
        cells = [*map(str, both), str(difference(*both)), *seconds]
        rows.append([name, str(here.sets[name]["n"]), method, *cells])
    setting = say("table2.setting", k=here.k, folds=scale.folds, **sizes)
    title, numbers = "Classification without approximation (Table 2)", here.means("table2")
    return Section(title, [setting, table("table2.errors", rows, k=here.k)], numbers=numbers)
