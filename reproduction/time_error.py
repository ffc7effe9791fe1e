"""Figure 2: error of an approximation against its seconds, and where the seconds go."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from kreinlearn.report.model import Block, Section, Table
from reproduction import approximating, comparing, figures
from reproduction.approximating import PAPER, PAPER_RULES, PRINTED_KERNEL, RULES
from reproduction.comparing import OURS, SCHEMES, WAYS, Cell, Results, number, shown
from reproduction.reading import say
from reproduction.scale import Scale
from reproduction.tasks import Measurements

tasks = approximating.tasks


def section(scale: Scale, measurements: Measurements) -> Section:
    """Figure 2, with the tables of what the fits cost."""
    results = comparing.read(scale, measurements)
    what = Section("Error against seconds (Figure 2)")
    what.blocks += [say("time-error.opening"), *comparing.absences(scale, measurements)]
    if names := results.sets(PRINTED_KERNEL):
        k = max(scale.ranks)
        what.blocks += [_figure(results, scale), _seconds(results, k), _landmarks_cost(results, k)]
        what.blocks += [_shares(results, k), *_at_equal_time(results, k)]
        what.numbers = {
            f"time-error/{name}/k={k}/{label}, {rule}/share of choosing": share
            for name, (label, rule) in product(names, WAYS)
            if not math.isnan(share := choosing(results, cell_of(name, k, label, rule)))
        }
    return what


def cell_of(name: str, k: int, label: str, rule: str) -> Cell:
    """The cell of a scheme with the kernel that the paper prints numbers for."""
    return comparing.cell_of(name, PRINTED_KERNEL, k, label, rule)


def _figure(results: Results, scale: Scale) -> Block:
    panels = [
        figures.Panel(
            shown(name),
            comparing.lines(results, name, PRINTED_KERNEL, scale.ranks, against_seconds=True),
        )
        for name in results.sets(PRINTED_KERNEL)
    ]
    return figures.drawn(
        "time-error", panels, xlabel="ln CPU seconds", ylabel="ln Frobenius error",
        caption=say("time-error.caption"), alt=say("time-error.alt"),
    )  # fmt: skip


# Tables


def _by_way(results: Results, title: str, k: int, text: Callable[[Cell], str], note: str) -> Table:
    """One row per scheme and rule, one column per set."""
    names = results.sets(PRINTED_KERNEL)
    rows = [[", ".join(way), *(text(cell_of(name, k, *way)) for name in names)] for way in WAYS]
    return Table(f"Rank {k}: {title}", ["scheme, landmarks", *map(shown, names)], rows, [note])


def _seconds(results: Results, k: int) -> Table:
    def text(cell: Cell) -> str:
        return f"{results.median(cell, 'cpu'):.2f} s, {number(results.ratio(cell)) or '?'}"

    note = "Medians over seeds of seconds and of errors."
    return _by_way(results, "CPU seconds, and the error over the optimum", k, text, note)


def _shares(results: Results, k: int) -> Table:
    def text(cell: Cell) -> str:
        share = choosing(results, cell)
        return "" if math.isnan(share) else f"{share:.0%}"

    title = "share of the CPU seconds spent on choosing landmarks"
    return _by_way(results, title, k, text, say("time-error.shares"))


def choosing(results: Results, cell: Cell) -> float:
    """Share of the CPU seconds that choosing the landmarks takes; NaN where it was not measured."""
    rows = [row for row in results.get(cell, []) if not math.isnan(row["cpu_given"])]
    return max(0.0, 1 - rows[0]["cpu_given"] / rows[0]["cpu"]) if rows else math.nan


def _landmarks_cost(results: Results, k: int) -> Table:
    """What k ln n landmarks instead of k change: ratios, which do not depend on the machine."""
    rows = []
    for name, label in product(results.sets(PRINTED_KERNEL), SCHEMES):
        few, many = (cell_of(name, k, label, rule) for rule in PAPER_RULES)
        ours = (
            results.median(many, "cpu") / results.median(few, "cpu"),
            results.median(few) / results.median(many),
        )
        (s_few, e_few), (s_many, e_many) = (
            [values[0] for values in comparing.printed_points(name, label, rule, [k])]
            for rule in PAPER_RULES
        )
        theirs = [number(math.exp(gap)) for gap in (s_many - s_few, e_few - e_many)]
        cells = [number(o) + (f" ({t})" if t else "") for o, t in zip(ours, theirs, strict=True)]
        rows.append([shown(name), label, *cells])
    title = f"Rank {k}: k ln n landmarks instead of k, in brackets the paper's"
    return Table(title, ["set", "scheme", "seconds times", "error divided by"], rows)


def _at_equal_time(results: Results, k: int) -> list[Block]:
    """Our best fit that takes no longer than each of the paper's with k ln n landmarks."""
    title = f"Rank {k}: our default in no more CPU seconds than the paper's schemes (k | k ln n)"
    table = Table(title, ["set", "scheme", "its seconds", "ours", "our landmarks", "error, times"])
    gains, slower = [], []
    for name, scheme in product(results.sets(PRINTED_KERNEL), PAPER):
        ours = [cell_of(name, k, OURS, rule) for rule in RULES]
        other = cell_of(name, k, scheme, "k ln n")
        seconds = results.median(other, "cpu")
        slower.append(results.median(ours[-1], "cpu") / seconds)
        if within := [cell for cell in ours if results.median(cell, "cpu") <= seconds]:
            best = min(within, key=results.median)
            gains.append(results.median(other) / results.median(best))
            cells = [f"{results.median(best, 'cpu'):.2f}", best.rule, number(gains[-1])]
            table.rows.append([shown(name), scheme, f"{seconds:.2f}", *cells])
    table.notes = ["The last column: error of the scheme over that of our default."]
    text = say("time-error.slower", least=min(slower), most=max(slower))
    if not gains:
        return [text]
    least, most, better = number(min(gains)), number(max(gains)), sum(gain > 1 for gain in gains)
    gain = say("time-error.gains", least=least, most=most, better=better, total=len(slower))
    return [table, f"{text} {gain}"]
