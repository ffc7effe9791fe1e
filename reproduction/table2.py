"""Table 2: methods that approximate nothing against rank k, on the same folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kreinlearn.evaluation.paired import Difference
from kreinlearn.report.model import Block, Section, Table
from reproduction import classifying, sets
from reproduction.classifying import EXACT, EXACT_COST, EXACT_MOST, FLIP, PAPER, SVM, Measured
from reproduction.paired import Cell, Errors, difference
from reproduction.reading import say
from reproduction.scale import Scale
from reproduction.sets import DISSIMILARITY
from reproduction.tasks import Measurements, Task


def tasks(scale: Scale) -> list[Task]:
    """The exact methods, and the paper's scheme on the same sets."""
    made: list[Task] = []
    for name in sets.there(scale):
        where = classifying.place(name, replace(scale, polygons=scale.exact_polygons), EXACT_MOST)
        # Table 1 measures the scheme at all ranks on a set that is not made smaller here.
        whole = where.n == classifying.place(name, scale).n
        made += classifying.scheme_tasks(where, None if whole else scale.ranks[-1:])
        made += classifying.exact_tasks(where)
    return made


def section(scale: Scale, measurements: Measurements) -> Section:
    """Table 2: what the approximation costs."""
    here = classifying.measured(scale, tasks(scale), measurements)
    sizes = {"k": here.k, "folds": scale.folds}
    limits = {"most": EXACT_MOST, "polygons": scale.exact_polygons}
    blocks: list[Block] = [say("table2.setting", **sizes, **limits), *_read(here)]
    table = _table(here)
    blocks += [table] if table.rows else []
    blocks += here.absences
    title = "Classification without approximation (Table 2)"
    return Section(title, blocks, numbers=classifying.mean_errors(here, "table2"))


def pairs(here: Measured, name: str) -> Iterator[tuple[str, Errors, Errors, Difference]]:
    """Method, exact, at rank k, and the difference; FLIP is compared with the Krein machine."""
    cells = here.cells(name)
    for method in EXACT_COST:
        exact = cells.get(Cell(method, EXACT))
        low_rank = cells.get(Cell(SVM if method == FLIP else method, PAPER, here.k))
        if exact is not None and low_rank is not None:
            yield method, exact, low_rank, difference(exact, low_rank)


def _table(here: Measured) -> Table:
    header = ["set", "n", "method", "exact", f"rank {here.k}", "difference", "s, exact", "s, rank"]
    rows = []
    for name in DISSIMILARITY:
        for method, *both, gap in pairs(here, name):
            seconds = [f"{errors.cpu:.2f}" for errors in both]
            n = str(here.sets[name]["n"])
            rows.append([name, n, method, *map(str, both), str(gap), *seconds])
    title = f"Errors in percent without approximation and at rank {here.k}"
    return Table(title, header, rows, [say("table2.note")])


def _read(here: Measured) -> Iterator[str]:
    """How often the approximation costs more than the noise."""
    gaps = [(f"{name} ({m})", gap) for name in DISSIMILARITY for m, _, _, gap in pairs(here, name)]
    better = [name for name, gap in gaps if gap.mean < -gap.standard_error]
    worse = [name for name, gap in gaps if gap.mean > gap.standard_error]
    if gaps:
        yield say("table2.read", total=len(gaps), better=_counted(better), worse=_counted(worse))


def _counted(names: list[str]) -> str:
    return f"{len(names)}: {', '.join(names)}" if names else "0"
