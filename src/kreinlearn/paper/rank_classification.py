"""Figures 3 and 7: median error against rank, four methods on the paper's sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kreinlearn.paper import printed, sets
from kreinlearn.paper.classifying import (
    DEFAULTS,
    PAPER,
    SVM,
    Measured,
    default_tasks,
    measured,
    not_at_hand,
    place,
    rest_tasks,
    scheme_tasks,
)
from kreinlearn.paper.figures import Line, Panel, drawn
from kreinlearn.paper.paired import ALL, ONE_VS_REST, Cell
from kreinlearn.paper.printed import METHODS
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.sets import DISSIMILARITY
from kreinlearn.paper.tasks import Measurements, Task
from kreinlearn.report import Block, Picture, Section, Table

REFERENCE = "KreinSVC, defaults"


def tasks(scale: Scale) -> list[Task]:
    made: list[Task] = []
    for where in (place(name, scale) for name in sets.there(scale)):
        made += [*scheme_tasks(where), *rest_tasks(where), *default_tasks(where, [SVM])]
    return made


def section(scale: Scale, measurements: Measurements) -> Section:
    here = measured(scale, tasks(scale), measurements)
    blocks: list[Block] = [_setting(scale), _figure(here), *_read(here), _table(here, ALL)]
    blocks += [*_apart(here), *here.unmeasured, *not_at_hand(scale)]
    return Section(
        "Classification error against rank (Figures 3 and 7)", blocks, [], _numbers(here)
    )


def _setting(scale: Scale) -> str:
    return (
        "The paper plots the median error over ten folds against the rank for Krein least squares "
        "(krein lsm), its variance-constrained form (krein vc-lsm), the Krein squared-hinge "
        "machine (krein sh-svm) and ridge regression on similarities to landmarks (sf-lsm). We "
        f"run its scheme on {scale.folds} stratified folds: rank k is k landmarks, chosen once "
        "for each fold and rank by the paper's kernel k-means++ and given to all four methods; "
        "K = -1/2 J (D o D) J of the training objects; the plain core; one output a class; "
        "penalties tuned on the training part of each fold. The paper does not say which landmarks "
        "it took here. The dashed line is KreinSVC with nothing given but the matrix. coilyork "
        "is there as one split, of which the error itself is drawn."
    )


# Curves


def curve(here: Measured, name: str, method: str, target: str = ALL) -> dict[int, float]:
    """Medians of the paper's scheme by rank."""
    cells = here.cells(name, target)
    wanted = {k: Cell(method, PAPER, k) for k in here.scale.ranks}
    return {k: cells[cell].median for k, cell in wanted.items() if cell in cells}


def printed_curve(name: str, method: str) -> dict[int, float]:
    label = DISSIMILARITY[name].curve
    return {
        k: error
        for (of, m, k), error in sorted(printed.classification().items())
        if (of, m) == (label, method)
    }


def _lines(here: Measured, name: str, target: str) -> Iterator[Line]:
    for method in METHODS:
        ours = curve(here, name, method, target)
        if ours:
            yield Line(method, list(ours), list(ours.values()))
    for method in METHODS if target == ALL else ():
        theirs = printed_curve(name, method)
        if theirs:
            yield Line(method, list(theirs), list(theirs.values()), printed=True)
    best = here.cells(name, target).get(Cell(SVM, DEFAULTS))
    if best is not None:
        ends = [here.scale.ranks[0], here.scale.ranks[-1]]
        yield Line(REFERENCE, ends, [best.median] * 2, dashed=True)


def _panel(here: Measured, name: str, target: str = ALL) -> Panel:
    title = name if here.cells(name) else f"{name} ({sets.state(name, here.scale)})"
    return Panel(title, list(_lines(here, name, target)))


def _figure(here: Measured) -> Picture | str:
    names = [name for name, entry in DISSIMILARITY.items() if entry.curve]
    measured_sets = [name for name in names if here.cells(name)]
    return drawn(
        "rank-classification",
        [_panel(here, name) for name in names],
        caption="Median error in percent against rank, all classes at once. Filled: our run of the "
        "paper's scheme; hollow: the paper's points.",
        alt=f"A panel for each of the paper's {len(names)} sets, the median error of four methods "
        f"against the rank; measured here: {', '.join(measured_sets) or 'none'}.",
        xlabel="rank",
        ylabel="error, %",
        xlog=True,
    )


def _apart(here: Measured) -> Iterator[Block]:
    """One class against the rest: the other way to read the paper's labels."""
    names = [name for name in DISSIMILARITY if here.cells(name, ONE_VS_REST)]
    if not names:
        return
    yield (
        "The paper says that sets of many classes are reduced to one class against all others; its "
        "errors are too large for that (see the next section), and which class it took is not "
        "known. Here every class is set against the rest in turn, on the same folds and landmarks; "
        "drawn is the median over folds of the mean over classes."
    )
    yield drawn(
        "rank-classification-one-against-the-rest",
        [_panel(here, name, ONE_VS_REST) for name in names],
        caption="The same with each class against the rest, mean over classes.",
        alt=f"Error against rank for four methods on {', '.join(names)}.",
        xlabel="rank",
        ylabel="error, %",
        xlog=True,
    )
    yield _table(here, ONE_VS_REST)


# In figures


def _table(here: Measured, target: str) -> Table:
    way = "all classes at once" if target == ALL else "each class against the rest, mean"
    header = ["set", "method", *(f"k = {k}" for k in here.scale.ranks)]
    table = Table(f"Median error in percent, {way}", header)
    for name in DISSIMILARITY:
        for method in METHODS:
            ours = curve(here, name, method, target)
            theirs = printed_curve(name, method) if target == ALL else {}
            if ours or theirs:
                cells = [_cell(ours.get(k), theirs.get(k)) for k in here.scale.ranks]
                table.rows.append([name, method, *cells])
    if target == ALL:
        table.notes.append("Ours, then the paper's in brackets.")
    return table


def _cell(ours: float | None, theirs: float | None) -> str:
    mine = "" if ours is None else f"{ours:.1f}"
    return mine if theirs is None else f"{mine} ({theirs:.1f})".strip()


def _read(here: Measured) -> Iterator[str]:
    """What the curves say, set by set, at the largest rank."""
    said = []
    for name in (name for name, entry in DISSIMILARITY.items() if entry.curve):
        ours = [curve(here, name, method).get(here.k) for method in METHODS]
        theirs = [printed_curve(name, method).get(here.k) for method in METHODS]
        if None not in ours and None not in theirs:
            said.append(f"{name} {_between(ours)} (paper {_between(theirs)})")
    if said:
        yield (
            f"At rank {here.k} the medians of the four methods lie, in percent, on "
            f"{'; '.join(said)}."
        )
    steps = [_falls(here, name) for name in DISSIMILARITY if here.cells(name)]
    total = sum(count for _, count in steps)
    if total:
        yield (
            f"From one rank to the next the median falls or stays in {sum(f for f, _ in steps)} of "
            f"{total} steps of our curves."
        )


def _between(values: Sequence[float | None]) -> str:
    there = [value for value in values if value is not None]
    low, high = f"{min(there):.1f}", f"{max(there):.1f}"
    return low if low == high else f"{low} to {high}"


def _falls(here: Measured, name: str) -> tuple[int, int]:
    """Steps of the four curves that do not rise, and all steps."""
    curves = [list(curve(here, name, method).values()) for method in METHODS]
    steps = [b <= a for c in curves for a, b in pairwise(c)]
    return sum(steps), len(steps)


def _numbers(here: Measured) -> dict[str, float]:
    numbers = {}
    for name in DISSIMILARITY:
        for method in METHODS:
            for k, error in curve(here, name, method).items():
                numbers[f"rank-classification/{name}/{method}/k={k} median"] = error
    return numbers
