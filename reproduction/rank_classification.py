"""Figures 3 and 7: median error against rank, four methods on the paper's sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, product

from kreinlearn.report.model import Block, Section, Table
from reproduction import classifying, printed, sets
from reproduction.classifying import DEFAULTS, LEARNERS, PAPER, SVM, Measured
from reproduction.figures import Line, Panel, drawn
from reproduction.paired import ALL, ONE_VS_REST, Cell
from reproduction.reading import say
from reproduction.scale import Scale
from reproduction.sets import DISSIMILARITY
from reproduction.tasks import Measurements, Task

REFERENCE = "KreinSVC, defaults"
PRINTED = [name for name, entry in DISSIMILARITY.items() if entry.curve]


def tasks(scale: Scale) -> list[Task]:
    """The paper's scheme at all ranks, and KreinSVC at its defaults."""
    reference = partial(classifying.default_tasks, methods=[SVM])
    kinds = classifying.scheme_tasks, classifying.rest_tasks, reference
    return classifying.tasks_of(scale, *kinds)


def section(scale: Scale, measurements: Measurements) -> Section:
    """Figures 3 and 7, and the same numbers as tables."""
    here = classifying.measured(scale, tasks(scale), measurements)
    blocks = [say("rank-classification.setting", folds=scale.folds), _figure(here), *_read(here)]
    blocks += [_table(here, ALL), *_apart(here), *here.absences]
    numbers = {
        f"rank-classification/{name}/{method}/k={k} median": error
        for name, method in product(DISSIMILARITY, LEARNERS)
        for k, error in curve(here, name, method).items()
    }
    title = "Classification error against rank (Figures 3 and 7)"
    return Section(title, blocks, numbers=numbers)


# Curves


def curve(here: Measured, name: str, method: str, target: str = ALL) -> dict[int, float]:
    """The medians of the paper's scheme by rank."""
    cells = here.cells(name, target)
    wanted = {k: Cell(method, PAPER, k) for k in here.scale.ranks}
    return {k: cells[cell].median for k, cell in wanted.items() if cell in cells}


def printed_curve(name: str, method: str) -> dict[int, float]:
    """The medians that the paper prints, by rank."""
    label, points = DISSIMILARITY[name].curve, sorted(printed.classification().items())
    return {k: error for (of, m, k), error in points if (of, m) == (label, method)}


def _panel(here: Measured, name: str, target: str = ALL) -> Panel:
    title = name if here.cells(name) else f"{name} ({sets.state(name, here.scale)})"
    lines = []
    for method in LEARNERS:
        if ours := curve(here, name, method, target):
            lines.append(Line(method, list(ours), list(ours.values())))
    for method in LEARNERS if target == ALL else ():
        if theirs := printed_curve(name, method):
            lines.append(Line(method, list(theirs), list(theirs.values()), printed=True))
    if best := here.cells(name, target).get(Cell(SVM, DEFAULTS)):
        ends = [here.scale.ranks[0], here.scale.ranks[-1]]
        lines.append(Line(REFERENCE, ends, [best.median] * 2, dashed=True))
    return Panel(title, lines)


def _figure(here: Measured) -> Block:
    names = ", ".join(name for name in PRINTED if here.cells(name)) or "none"
    return drawn(
        "rank-classification", [_panel(here, name) for name in PRINTED], xlog=True,
        xlabel="rank", ylabel="error, %", caption=say("rank-classification.caption"),
        alt=say("rank-classification.alt", total=len(PRINTED), names=names),
    )  # fmt: skip


def _apart(here: Measured) -> Iterator[Block]:
    """One class against the rest: the other way to read the paper's labels."""
    if names := [name for name in DISSIMILARITY if here.cells(name, ONE_VS_REST)]:
        yield say("rank-classification.apart")
        yield drawn(
            "rank-classification-one-against-the-rest",
            [_panel(here, name, ONE_VS_REST) for name in names], xlog=True,
            xlabel="rank", ylabel="error, %",
            caption="The same with each class against the rest, mean over classes.",
            alt=f"Error against rank for four methods on {', '.join(names)}.",
        )  # fmt: skip
        yield _table(here, ONE_VS_REST)


# Numbers


def _table(here: Measured, target: str) -> Table:
    way = "all classes at once" if target == ALL else "each class against the rest, mean"
    header = ["set", "method", *(f"k = {k}" for k in here.scale.ranks)]
    rows = []
    for name, method in product(DISSIMILARITY, LEARNERS):
        ours = curve(here, name, method, target)
        theirs = printed_curve(name, method) if target == ALL else {}
        if ours or theirs:
            cells = [_cell(ours.get(k), theirs.get(k)) for k in here.scale.ranks]
            rows.append([name, method, *cells])
    notes = ["Ours, then the paper's in brackets."] if target == ALL else []
    return Table(f"Median error in percent, {way}", header, rows, notes)


def _cell(ours: float | None, theirs: float | None) -> str:
    mine = "" if ours is None else f"{ours:.1f}"
    return mine if theirs is None else f"{mine} ({theirs:.1f})".strip()


def _read(here: Measured) -> Iterator[str]:
    """What the curves say at the largest rank, and how often they fall."""
    spans = []
    for name in PRINTED:
        ours = [curve(here, name, method).get(here.k) for method in LEARNERS]
        theirs = [printed_curve(name, method).get(here.k) for method in LEARNERS]
        if None not in ours and None not in theirs:
            spans.append(f"{name} {_between(ours)} (paper {_between(theirs)})")
    if spans:
        yield say("rank-classification.medians", k=here.k, spans="; ".join(spans))
    curves = [list(curve(here, *of).values()) for of in product(DISSIMILARITY, LEARNERS)]
    if steps := [b <= a for errors in curves for a, b in pairwise(errors)]:
        yield say("rank-classification.steps", falls=sum(steps), total=len(steps))


def _between(values: Sequence[float | None]) -> str:
    there = [value for value in values if value is not None]
    low, high = f"{min(there):.1f}", f"{max(there):.1f}"
    return low if low == high else f"{low} to {high}"
