"""Figures 1 and 2: errors of approximations against their rank and against their seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from reproduction import approximating, printed
from reproduction.approximating import EQUAL, PAPER, PAPER_RULES, PRINTED_KERNEL, RULES
from reproduction.figures import Line, Panel, drawn
from reproduction.matrix_free import DENSE, SETTLED
from reproduction.reading import rows_of, say, table
from reproduction.report import Block, Check, Section, Table
from reproduction.scale import Scale
from reproduction.sets import VECTORIAL, vectorial_names
from reproduction.tasks import Measurements, Row

NAMES = {"delta_gauss": "delta-gauss", "sigmoid": "sigmoid", "epanechnikov": "Epanechnikov"}
OURS = "our default"  # the name of approximating.DEFAULT in figures and tables
SCHEMES = (OURS, *PAPER)
WAYS = [*product([OURS], RULES), *product(PAPER, PAPER_RULES)]
HEADER = [", ".join(way) for way in WAYS]
TRUNCATED = {"k ln n": f"{approximating.TRUNCATED}, truncated"}
NEAR_OPTIMUM = 1.3


class Cell(NamedTuple):
    """What is measured with several seeds."""

    set: str
    kernel: str
    k: int
    scheme: str
    rule: str = ""  # "..., truncated" with the truncated core


class Results(dict[Cell, list[Row]]):
    """The rows of every cell, by increasing seed."""

    def __init__(self, scale: Scale, measurements: Measurements) -> None:
        self.sets, self.scale = vectorial_names(scale), scale
        for row in rows_of(approximating.tasks(scale), measurements):
            scheme = OURS if row["scheme"] == approximating.DEFAULT else row["scheme"]
            rule = row["rule"] + ", truncated" * (row["core"] == "truncated")
            cell = Cell(row["set"], row["kernel"], row["k"], scheme, rule)
            self.setdefault(cell, []).append(row)

    def median(self, cell: Cell, what: str = "error") -> float:
        return float(np.median([row[what] for row in self[cell]]))

    def optimum(self, cell: Cell) -> float:
        return self.median(cell._replace(scheme=approximating.OPTIMUM, rule=""))

    def ratio(self, cell: Cell) -> float:
        """The median error, divided by the optimum."""
        return self.median(cell) / self.optimum(cell)


def printed_points(
    name: str, scheme: str, rule: str, ranks: Iterable[int]
) -> tuple[list[float], list[float]]:
    """The paper's logarithms of seconds and of errors, delta-gauss; NaN where there are none."""
    keys = [(VECTORIAL[name].printed, scheme, rule, k) for k in ranks]
    points = [printed.approximation().get(key, (math.nan, math.nan)) for key in keys]
    return [seconds for seconds, _ in points], [error for _, error in points]


def lines(results: Results, name: str, kernel: str, *, against_seconds: bool) -> list[Line]:
    """Our curves and the paper's: log errors against the rank, or against log CPU seconds."""
    made, ranks = [], results.scale.ranks
    for rule, scheme in product(reversed(PAPER_RULES), SCHEMES):
        cells = [Cell(name, kernel, k, scheme, rule) for k in ranks]
        x = [log(results.median(cell, "cpu")) for cell in cells] if against_seconds else ranks
        y = [log(results.median(cell)) for cell in cells]
        made.append(Line(scheme, x, y, dashed=rule == "k"))
        seconds, errors = printed_points(name, scheme, rule, ranks)
        if kernel == PRINTED_KERNEL and not np.isnan(errors).all():
            made.append(Line(scheme, seconds if against_seconds else ranks, errors, printed=True))
    return made


def shown(name: str) -> str:
    """A set as the paper names it."""
    return VECTORIAL[name].printed or f"{name} (not in the paper)"


def log(value: float) -> float:
    """The natural logarithm; NaN of what has none."""
    return math.log(value) if value > 0 else math.nan


def number(value: float) -> str:
    """Two decimals for numbers near one, else three figures; nothing for NaN."""
    if math.isnan(value):
        return ""
    return f"{value:.2f}" if 0.1 <= value < 100 else f"{value:.3g}"


# Figure 1


def rank_error(scale: Scale, measurements: Measurements) -> Section:
    """Figure 1, with the tables, the claims and the numbers that belong to it."""
    results = Results(scale, measurements)
    rows = "all rows" if scale.rows is None else f"at most {scale.rows:,} rows"
    ranks, fewer = ", ".join(map(str, scale.ranks)), len(approximating.seeds("sigmoid", scale))
    sizes = {"seeds": scale.repetitions, "fewer": fewer, "dense": DENSE, "settled": 100 * SETTLED}
    blocks: list[Block] = [say("rank-error.opening", rows=rows, ranks=ranks, **sizes)]
    blocks.append(
        say("rank-error.kernels", width=approximating.WIDTH, less=approximating.WIDTH // 4)
    )
    blocks += [say("approximation.digits")] if "digits" in results.sets else []
    blocks.append(_widths(results))
    for kernel in NAMES:
        blocks.append(_by_rank(results, kernel))
        blocks += [_beside_paper(results)] if kernel == PRINTED_KERNEL else []
        blocks.append(_ratios(results, kernel))
    blocks += [_at_equal_values(results), say("rank-error.larger")]
    title = "Error against rank (Figure 1)"
    return Section(title, blocks, [*_checks(results)], dict(_numbers(results)))


def _widths(results: Results) -> Table:
    """How far errors fall at several widths of delta-gauss, beside the paper's."""
    first, *later = ranks = results.scale.ranks
    (name,) = {cell.set for cell in results if "@" in cell.kernel}
    ways = {
        "optimum": (approximating.OPTIMUM, ""),
        "kmeans++, plain core": ("kmeans++", "k ln n"),
        "kmeans++, truncated core": ("kmeans++", "k ln n, truncated"),
    }
    logs = {
        (str(factor), label): [log(results.median(Cell(name, kernel, k, *way))) for k in ranks]
        for factor in approximating.WIDTHS
        for kernel in [f"{PRINTED_KERNEL}@{factor}"]
        for label, way in ways.items()
    }
    theirs = printed_points(name, "kmeans++", "k ln n", ranks)[1]
    logs |= {} if np.isnan(theirs).any() else {("", "kmeans++, the paper"): theirs}
    rows = [
        [*of, f"{start:.2f}", *(f"{start - end:.2f}" for end in ends)]
        for of, (start, *ends) in logs.items()
    ]
    columns = [f"fall to {k}" for k in later]
    return table("rank-error.widths", rows, columns, name=shown(name), first=first)


def _by_rank(results: Results, kernel: str) -> Block:
    panels, ranks = [], results.scale.ranks
    for name in results.sets:
        optima = [log(results.optimum(Cell(name, kernel, k, ""))) for k in ranks]
        curves = lines(results, name, kernel, against_seconds=False)
        panels.append(Panel(shown(name), [*curves, Line("optimum", ranks, optima)]))
    points = say("rank-error.printed" if kernel == PRINTED_KERNEL else "rank-error.no_points")
    return drawn(
        f"rank-error-{kernel}", panels, xlog=True, xlabel="rank", ylabel="ln Frobenius error",
        caption=say("rank-error.caption", kernel=NAMES[kernel], points=points),
        alt=say("rank-error.alt", kernel=NAMES[kernel]),
    )  # fmt: skip


def _beside_paper(results: Results) -> Table:
    def text(cell: Cell) -> str:
        (theirs,) = printed_points(cell.set, cell.scheme, cell.rule, [cell.k])[1]
        ours = f"{log(results.median(cell)):.2f}"
        return ours if math.isnan(theirs) else f"{ours} ({theirs:.2f})"

    rows = []
    for name, k in product(results.sets, results.scale.ranks):
        cells = [Cell(name, PRINTED_KERNEL, k, *way) for way in WAYS]
        optimum = f"{log(results.optimum(cells[0])):.2f}"
        rows.append([shown(name), str(k), optimum, *map(text, cells)])
    notes = ["The paper's are for all rows: compare how they fall."] if results.scale.rows else []
    return table("rank-error.paper", rows, HEADER, notes=notes)


def _ratios(results: Results, kernel: str) -> Table:
    rows = []
    for name, k in product(results.sets, results.scale.ranks):
        cells = [Cell(name, kernel, k, *way) for way in WAYS]
        share = results.optimum(cells[0]) / results.median(cells[0], "norm")
        rows.append([shown(name), str(k), *map(number, [share, *map(results.ratio, cells)])])
    return table("rank-error.ratios", rows, HEADER, kernel=NAMES[kernel])


class Pair(NamedTuple):
    """The errors of our default and of one of the paper's schemes."""

    other: Cell
    rule: str  # of the default
    ratio: float  # median error of the default, divided by that of the other
    seeds: list[bool]  # for each seed, whether the default is not above the other
    enough: list[bool]  # for each seed, whether the other had at least as many kernel values


def pairs(results: Results, rules: dict[str, str]) -> Iterator[Pair]:
    """The default by each rule against the three schemes by the rule that belongs to it."""
    for kernel, name, k in product(NAMES, results.sets, results.scale.ranks):
        for (rule, its), scheme in product(rules.items(), PAPER):
            other, mine = Cell(name, kernel, k, scheme, its), Cell(name, kernel, k, OURS, rule)
            both = list(zip(results[mine], results[other], strict=True))
            yield Pair(
                other, rule, results.median(mine) / results.median(other),
                [a["error"] <= b["error"] for a, b in both],
                [b["evaluations"] >= a["evaluations"] for a, b in both],
            )  # fmt: skip


def _at_equal_values(results: Results) -> Table:
    """The default against the paper's schemes at as many kernel values."""
    groups = [*({rule: its} for rule, its in EQUAL.items()), TRUNCATED]
    compared = [list(pairs(results, group)) for group in groups]
    rows = []
    for kernel, name in product(NAMES, results.sets):
        here = [[p.ratio for p in group if p.other[:2] == (name, kernel)] for group in compared]
        cells = [f"{number(min(ratios))} to {number(max(ratios))}" for ratios in here]
        rows.append([NAMES[kernel], shown(name), *cells])
    return table("rank-error.equal_values", rows)


def _checks(results: Results) -> Iterator[Check]:
    scale = results.scale
    sets, most = len(scale.vectorial) * len(NAMES), max(scale.ranks)
    claims = {
        "the paper's schemes at as many kernel values": EQUAL,
        "the paper's schemes at as many landmarks, sketch apart": {
            rule: rule for rule in PAPER_RULES
        },
        "the same with K_ZZ truncated, at as many kernel values": TRUNCATED,
    }
    for whom, rules in claims.items():
        yield not_above(whom, [*pairs(results, rules)], sets * len(scale.ranks) * 3 * len(rules))
    enough = [seed for pair in pairs(results, EQUAL) for seed in pair.enough]
    what = "The paper's schemes had at least the default's kernel values"
    yield Check(what, f"{sum(enough)} of {len(enough)} fits", "all", all(enough))
    cells = [Cell(name, kernel, most, OURS, "k ln n") for name in results.sets for kernel in NAMES]
    worst = max(cells, key=results.ratio)
    holds, lacks = results.ratio(worst) <= NEAR_OPTIMUM, len(cells) < sets
    what = (
        f"Our default at rank {most} from k ln n landmarks over the optimum: every set and kernel"
    )
    text = f"worst {results.ratio(worst):.3f} ({shown(worst.set)}, {NAMES[worst.kernel]})"
    yield Check(what, text, f"<= {NEAR_OPTIMUM}", None if holds and lacks else holds)


def not_above(whom: str, compared: Sequence[Pair], of: int) -> Check:
    """The claim that no ratio exceeds 1; it is not made where some of the ``of`` are missing."""
    worst = max(compared, key=lambda pair: pair.ratio)
    good, seeds = sum(p.ratio <= 1 for p in compared), [s for p in compared for s in p.seeds]
    other, lacks = worst.other, good == len(compared) < of
    text = (
        f"worst {worst.ratio:.3g} ({shown(other.set)}, {NAMES[other.kernel]}, rank {other.k}, "
        f"{other.scheme}, our l = {worst.rule}); {good} of {len(compared)} medians, {sum(seeds)} "
        f"of {len(seeds)} single seeds{f'; {of} are asked for' if lacks else ''}"
    )
    what = f"Our default's error is not above {whom}: every set, kernel and rank"
    return Check(what, text, "ratio <= 1", None if lacks else good == len(compared))


def _numbers(results: Results) -> Iterator[tuple[str, float]]:
    """Of the default and the optimum; errors of the plain core vary by orders of magnitude."""
    for cell in (cell for cell in results if cell.scheme == OURS):
        name = f"rank-error/{cell.set}/{cell.kernel}/k={cell.k}"
        yield f"{name}/default {cell.rule} over optimum", results.ratio(cell)
        yield f"{name}/optimum over |K|", results.optimum(cell) / results.median(cell, "norm")
    worst = max(pair.ratio for pair in pairs(results, EQUAL))
    yield "rank-error/default over paper's, as many values, worst", worst


# Figure 2


def time_error(scale: Scale, measurements: Measurements) -> Section:
    """Figure 2, with the tables of what the fits cost."""
    results, k = Results(scale, measurements), max(scale.ranks)

    def seconds(cell: Cell) -> str:
        return f"{results.median(cell, 'cpu'):.2f} s, {number(results.ratio(cell))}"

    def share(cell: Cell) -> float:
        """Of the CPU seconds of the first seed, for choosing the landmarks."""
        row = next(row for row in results[cell] if not math.isnan(row["cpu_given"]))
        return max(0.0, 1 - row["cpu_given"] / row["cpu"])

    def by_way(name: str, text: Callable[[Cell], str]) -> Table:
        """One row per scheme and rule, one column per set."""
        rows = [
            [label, *(text(Cell(of, PRINTED_KERNEL, k, *way)) for of in results.sets)]
            for label, way in zip(HEADER, WAYS, strict=True)
        ]
        return table(name, rows, map(shown, results.sets), k=k)

    curves = partial(lines, results, kernel=PRINTED_KERNEL, against_seconds=True)
    figure = drawn(
        "time-error", [Panel(shown(name), curves(name)) for name in results.sets],
        xlabel="ln CPU seconds", ylabel="ln Frobenius error",
        caption=say("time-error.caption"), alt=say("time-error.alt"),
    )  # fmt: skip
    blocks = [
        say("time-error.opening"), figure, by_way("time-error.seconds", seconds),
        _landmarks_cost(results, k),
        by_way("time-error.shares", lambda cell: f"{share(cell):.0%}"), _at_equal_time(results, k),
    ]  # fmt: skip
    numbers = {
        f"time-error/{name}/k={k}/{label}/share of choosing": share(
            Cell(name, PRINTED_KERNEL, k, *way)
        )
        for name in results.sets
        for label, way in zip(HEADER, WAYS, strict=True)
    }
    return Section("Error against seconds (Figure 2)", blocks, numbers=numbers)


def _landmarks_cost(results: Results, k: int) -> Table:
    """What k ln n landmarks instead of k change: ratios, which do not depend on the machine."""
    rows = []
    for name, scheme in product(results.sets, SCHEMES):
        few, many = (Cell(name, PRINTED_KERNEL, k, scheme, rule) for rule in PAPER_RULES)
        ours = [results.median(many, "cpu") / results.median(few, "cpu")]
        ours.append(results.median(few) / results.median(many))
        (s_few, e_few), (s_many, e_many) = (
            [values[0] for values in printed_points(name, scheme, rule, [k])]
            for rule in PAPER_RULES
        )
        theirs = [number(math.exp(gap)) for gap in (s_many - s_few, e_few - e_many)]
        cells = [number(o) + (f" ({t})" if t else "") for o, t in zip(ours, theirs, strict=True)]
        rows.append([shown(name), scheme, *cells])
    return table("time-error.landmarks", rows, k=k)


def _at_equal_time(results: Results, k: int) -> Table:
    """Our best fit that takes no longer than each of the paper's with k ln n landmarks."""
    rows = []
    for name, scheme in product(results.sets, PAPER):
        other = Cell(name, PRINTED_KERNEL, k, scheme, "k ln n")
        seconds = results.median(other, "cpu")
        ours = [Cell(name, PRINTED_KERNEL, k, OURS, rule) for rule in RULES]
        if within := [cell for cell in ours if results.median(cell, "cpu") <= seconds]:
            best = min(within, key=results.median)
            gain = number(results.median(other) / results.median(best))
            cells = [f"{seconds:.2f}", f"{results.median(best, 'cpu'):.2f}", best.rule, gain]
            rows.append([shown(name), scheme, *cells])
    return table("time-error.equal_time", rows, k=k)
