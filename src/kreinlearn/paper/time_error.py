"""Figure 2: error of an approximation against its seconds, and where the seconds go."""

from __future__ import annotations

import math
from itertools import product

from kreinlearn.paper import approximating, figures, printed
from kreinlearn.paper.approximating import DEFAULT, PAPER, PAPER_RULES, PRINTED_KERNEL, RULES
from kreinlearn.paper.comparing import OURS, Cell, Found, absences, number, read, shown
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.sets import VECTORIAL
from kreinlearn.paper.tasks import Measurements
from kreinlearn.report import Block, Section, Table

tasks = approximating.tasks
SCHEMES = {OURS: (DEFAULT, "ls"), **{scheme: (scheme, "plain") for scheme in PAPER}}
WAYS = [
    *((OURS, rule) for rule in RULES),
    *((scheme, rule) for scheme in PAPER for rule in PAPER_RULES),
]


def section(scale: Scale, measurements: Measurements) -> Section:
    found = read(scale, measurements)
    what = Section("Error against seconds (Figure 2)")
    what.blocks += [_opening(), *absences(scale, measurements)]
    if found.sets(PRINTED_KERNEL):
        k = max(scale.ranks)
        what.blocks += [_figure(found, scale), _seconds(found, k), _landmarks_cost(found, k)]
        what.blocks += [_shares(found, k), *_at_equal_time(found, k)]
        what.numbers = {
            f"time-error/{name}/k={k}/{label}, {rule}/share of choosing": share
            for name, (label, rule) in product(found.sets(PRINTED_KERNEL), WAYS)
            if not math.isnan(share := choosing(found, cell_of(name, k, label, rule)))
        }
    return what


def cell_of(name: str, k: int, label: str, rule: str) -> Cell:
    scheme, core = SCHEMES[label]
    return Cell(name, PRINTED_KERNEL, k, scheme, rule, core)


def _opening() -> str:
    return (
        "The fits of the section before with delta-gauss, drawn against their CPU seconds: "
        "landmarks, kernel values, core and eigendecomposition, with one thread a fit. Another fit "
        "may run beside it on another core. Of the paper neither the machine is known nor whether "
        "its seconds hold the evaluation of the kernel, so that its points stand in the panels for "
        "their shape: how much time further landmarks cost, and what they gain."
    )


# Figure


def _figure(found: Found, scale: Scale) -> Block:
    names = found.sets(PRINTED_KERNEL)
    panels = [figures.Panel(shown(name), _lines(found, name, scale)) for name in names]
    return figures.drawn(
        "time-error", panels, xlabel="ln CPU seconds", ylabel="ln Frobenius error",
        caption="Delta-gauss: logarithm of the error against the logarithm of the CPU seconds, one "
        "mark a rank. Solid: (k | k ln n); dashed: (k | k). Hollow marks on dotted lines: the "
        "paper's, of a colour the left for k and the right for k ln n landmarks.",
        alt="One panel a set: the natural logarithm of the Frobenius error against that of the "
        "CPU seconds, for three landmark schemes of the paper and our default.",
    )  # fmt: skip


def _lines(found: Found, name: str, scale: Scale) -> list[figures.Line]:
    lines, points = [], printed.approximation()
    for rule, label in product(reversed(PAPER_RULES), SCHEMES):
        cells = [cell_of(name, k, label, rule) for k in scale.ranks]
        x = [math.log(found.median(cell, "cpu")) for cell in cells]
        y = [math.log(found.median(cell)) for cell in cells]
        lines.append(figures.Line(label, x, y, dashed=rule == "k"))
        keys = [(VECTORIAL[name].printed, label, rule, k) for k in scale.ranks]
        if theirs := [points[key] for key in keys if key in points]:
            x, y = [p.log_seconds for p in theirs], [p.log_error for p in theirs]
            lines.append(figures.Line(label, x, y, printed=True))
    return lines


# Tables


def _seconds(found: Found, k: int) -> Table:
    names = found.sets(PRINTED_KERNEL)
    title = f"Rank {k}: CPU seconds, and the error over the optimum"
    table = Table(title, ["scheme, landmarks", *map(shown, names)])
    for label, rule in WAYS:
        cells = [cell_of(name, k, label, rule) for name in names]
        said = [f"{found.median(c, 'cpu'):.2f} s, {number(found.ratio(c)) or '?'}" for c in cells]
        table.rows.append([f"{label}, {rule}", *said])
    table.notes = ["Medians over seeds of seconds and of errors."]
    return table


def _landmarks_cost(found: Found, k: int) -> Table:
    """k ln n landmarks instead of k: ratios, which do not depend on the machine."""
    title = f"Rank {k}: k ln n landmarks instead of k, in brackets the paper's"
    table = Table(title, ["set", "scheme", "seconds times", "error divided by"])
    points = printed.approximation()
    for name, label in product(found.sets(PRINTED_KERNEL), SCHEMES):
        few, many = (cell_of(name, k, label, rule) for rule in PAPER_RULES)
        ours = [
            number(found.median(many, "cpu") / found.median(few, "cpu")),
            number(found.median(few) / found.median(many)),
        ]
        keys = [(VECTORIAL[name].printed, label, rule, k) for rule in PAPER_RULES]
        if all(key in points for key in keys):
            a, b = (points[key] for key in keys)
            theirs = b.log_seconds - a.log_seconds, a.log_error - b.log_error
            ours = [f"{o} ({number(math.exp(t))})" for o, t in zip(ours, theirs, strict=True)]
        table.rows.append([shown(name), label, *ours])
    return table


def choosing(found: Found, cell: Cell) -> float:
    """Share of the CPU seconds that choosing the landmarks takes; NaN where it was not measured."""
    rows = [row for row in found.get(cell, []) if not math.isnan(row["cpu_given"])]
    return max(0.0, 1 - rows[0]["cpu_given"] / rows[0]["cpu"]) if rows else math.nan


def _shares(found: Found, k: int) -> Table:
    names = found.sets(PRINTED_KERNEL)
    title = f"Rank {k}: share of the CPU seconds spent on choosing landmarks"
    table = Table(title, ["scheme, landmarks", *map(shown, names)])
    for label, rule in WAYS:
        shares = [choosing(found, cell_of(name, k, label, rule)) for name in names]
        cells = ["" if math.isnan(share) else f"{share:.0%}" for share in shares]
        table.rows.append([f"{label}, {rule}", *cells])
    table.notes = [
        "Of the first seed: what is saved where the same landmarks are given. Values that the "
        "choice evaluates and the rest of the fit uses again count as the rest's."
    ]
    return table


def _at_equal_time(found: Found, k: int) -> list[Block]:
    """Our best fit that takes no longer than each of the paper's with k ln n landmarks."""
    title = f"Rank {k}: our default in no more CPU seconds than the paper's schemes (k | k ln n)"
    table = Table(title, ["set", "scheme", "its seconds", "ours", "our landmarks", "error, times"])
    gains, slower = [], []
    for name in found.sets(PRINTED_KERNEL):
        ours = [cell_of(name, k, OURS, rule) for rule in RULES]
        for scheme in PAPER:
            other = cell_of(name, k, scheme, "k ln n")
            seconds = found.median(other, "cpu")
            slower.append(found.median(ours[-1], "cpu") / seconds)
            within = [cell for cell in ours if found.median(cell, "cpu") <= seconds]
            if within:
                best = min(within, key=found.median)
                gains.append(found.median(other) / found.median(best))
                said = [f"{found.median(best, 'cpu'):.2f}", best.rule, number(gains[-1])]
                table.rows.append([shown(name), scheme, f"{seconds:.2f}", *said])
    table.notes = ["The last column: error of the scheme over that of our default."]
    text = (
        f"From k ln n landmarks the default takes {min(slower):.1f} to {max(slower):.1f} times the "
        "seconds of the paper's schemes, all by the Gram matrix: what differs is choosing "
        "landmarks and fitting the core. "
    )
    if gains:
        text += (
            "With fewer landmarks, in no more seconds than theirs from k ln n, their errors are "
            f"{number(min(gains))} to {number(max(gains))} times its own: above 1 in "
            f"{sum(gain > 1 for gain in gains)} of {len(slower)} comparisons."
        )
    return [table, text] if gains else [text]
