"""Table 2: methods that approximate nothing against rank k, on the same folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kreinlearn.evaluation.paired import Difference
from kreinlearn.paper import sets
from kreinlearn.paper.classifying import (
    EXACT,
    EXACT_COST,
    EXACT_MOST,
    FLIP,
    PAPER,
    SVM,
    Measured,
    Place,
    exact_tasks,
    measured,
    not_at_hand,
    place,
    scheme_tasks,
)
from kreinlearn.paper.paired import ALL, Cell, Errors, difference
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.sets import DISSIMILARITY
from kreinlearn.paper.tasks import Measurements, Task
from kreinlearn.report import Block, Section, Table


def tasks(scale: Scale) -> list[Task]:
    made: list[Task] = []
    for name in sets.there(scale):
        where = _small(name, scale)
        whole = where.n == place(name, scale).n  # then it is measured for Table 1 already
        made += scheme_tasks(where, None if whole else scale.ranks[-1:])
        made += exact_tasks(where)
    return made


def _small(name: str, scale: Scale) -> Place:
    return place(name, replace(scale, polygons=scale.exact_polygons), EXACT_MOST)


def section(scale: Scale, measurements: Measurements) -> Section:
    here = measured(scale, tasks(scale), measurements)
    blocks: list[Block] = [_setting(scale), *_read(here)]
    table = _table(here)
    blocks += [table] if table.rows else []
    blocks += [*here.unmeasured, *not_at_hand(scale)]
    return Section("Classification without approximation (Table 2)", blocks, [], _numbers(here))


def _setting(scale: Scale) -> str:
    k = scale.ranks[-1]
    return (
        "What is lost by the approximation? Krein least squares, its variance-constrained form and "
        "the Krein squared-hinge machine with every training object a landmark, and the support "
        "vector machine on the matrix whose negative eigenvalues are flipped (the Krein SVM of "
        "Loosli et al.; with many classes it separates pairs of them, which vote), stand against "
        f"the paper's scheme with {k} landmarks: centred squares, the same {scale.folds} folds, "
        "all classes at once, all parameters from the training part. Sets have at most "
        f"{EXACT_MOST} objects here, generated polygons {scale.exact_polygons}. No numbers of the "
        "paper's Table 2 are at hand, so there are none to compare with."
    )


# In figures


def pairs(here: Measured, name: str) -> Iterator[tuple[str, Errors, Errors, Difference]]:
    """Method, exact, at rank k, and the difference; the flipped SVM against the Krein machine."""
    cells = here.cells(name)
    for method in EXACT_COST:
        whole = cells.get(Cell(method, EXACT))
        cut = cells.get(Cell(SVM if method == FLIP else method, PAPER, here.k))
        if whole is not None and cut is not None:
            yield method, whole, cut, difference(whole, cut)


def _table(here: Measured) -> Table:
    header = ["set", "n", "method", "exact", f"rank {here.k}", "difference", "s, exact", "s, rank"]
    table = Table(f"Errors in percent without approximation and at rank {here.k}", header)
    for name in DISSIMILARITY:
        for method, whole, cut, gap in pairs(here, name):
            seconds = [f"{errors.cpu:.2f}" for errors in (whole, cut)]
            n = str(here.sets[name]["n"])
            table.rows.append([name, n, method, str(whole), str(cut), str(gap), *seconds])
    table.notes.append(
        "Mean ± standard deviation over folds; difference, exact less rank, ± its paired standard "
        "error. Seconds: median CPU time of a fit with its search for parameters. The flipped SVM "
        "is set against the Krein squared-hinge machine."
    )
    return table


def _read(here: Measured) -> Iterator[str]:
    """How often the approximation costs more than the noise."""
    found = [(name, *pair) for name in DISSIMILARITY for pair in pairs(here, name)]
    if not found:
        return
    better = [f"{name} ({m})" for name, m, *_, gap in found if gap.mean < -gap.standard_error]
    worse = [f"{name} ({m})" for name, m, *_, gap in found if gap.mean > gap.standard_error]
    yield (
        f"Of {len(found)} pairs the exact method errs less by more than a paired standard error in "
        f"{len(better)}{_listed(better)}, more in {len(worse)}{_listed(worse)}."
    )


def _listed(names: list[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _numbers(here: Measured) -> dict[str, float]:
    return {
        f"table2/{name}/{ALL}/{cell.variant}/{cell.method}": errors.mean
        for name in DISSIMILARITY
        for cell, errors in here.cells(name).items()
        if cell.rank in (None, here.k)
    }
