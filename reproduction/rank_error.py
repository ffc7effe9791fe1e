"""Figure 1 and its appendix: error of an approximation against its rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from kreinlearn.report.model import Block, Check, Section, Table
from reproduction import approximating, comparing, figures
from reproduction.approximating import DEFAULT, OPTIMUM, PAPER, PAPER_RULES, PRINTED_KERNEL
from reproduction.comparing import NAMES, WAYS, Cell, Results, cell_of, log, number, pairs
from reproduction.matrix_free import DENSE, SETTLED
from reproduction.reading import say
from reproduction.scale import KERNELS, Scale
from reproduction.tasks import Measurements

tasks = approximating.tasks
EQUAL, WIDTH, WIDTHS = approximating.EQUAL, approximating.WIDTH, approximating.WIDTHS
NEAR_OPTIMUM = 1.3
SAME_LANDMARKS = {rule: rule for rule in PAPER_RULES}
TRUNCATED_CORE = {"k ln n": approximating.TRUNCATED}
HEADER = [f"{label}, {rule}" for label, rule in WAYS]


def section(scale: Scale, measurements: Measurements) -> Section:
    """Figure 1, with the tables, the claims and the numbers that belong to it."""
    results = comparing.read(scale, measurements)
    blocks: list[Block] = [_opening(scale), say("rank-error.kernels", width=WIDTH, less=WIDTH // 4)]
    blocks += [*comparing.absences(scale, measurements), *_widths(results, scale)]
    for kernel in results.kernels:
        blocks.append(_figure(results, kernel, scale))
        if kernel == PRINTED_KERNEL:
            blocks += [_beside_paper(results, scale), *_agreement(results, scale)]
        blocks.append(_ratios(results, kernel, scale))
    if results.kernels:
        blocks += [_at_equal_values(results, scale), *_conclusions(results, scale)]
    checks, numbers = _checks(results, scale), _numbers(results, scale)
    return Section("Error against rank (Figure 1)", blocks, checks, numbers)


def _opening(scale: Scale) -> str:
    seeds, fewer = scale.repetitions, len(approximating.seeds("sigmoid", scale))
    others = f" ({fewer} for the kernels without printed numbers)" if fewer < seeds else ""
    rows = "all rows" if scale.rows is None else f"at most {scale.rows:,} rows"
    ranks, optimum = ", ".join(map(str, scale.ranks)), {"dense": DENSE, "settled": 100 * SETTLED}
    return say("rank-error.opening", rows=rows, ranks=ranks, seeds=seeds, others=others, **optimum)


# The width


def _widths(results: Results, scale: Scale) -> Iterator[Block]:
    """How far errors fall at several widths of delta-gauss, beside the paper's."""
    first, *later = scale.ranks
    header = ["width / M", "", f"rank {first}: ln error", *(f"fall to {k}" for k in later)]
    for name in dict.fromkeys(cell.set for cell in results if "@" in cell.kernel):
        title = f"{comparing.shown(name)}, delta-gauss: fall of the logarithm of the error"
        table, logs = Table(title, header), {}
        for factor, core in product(WIDTHS, ("", "plain", "truncated")):
            way = ("kmeans++", "k ln n") if core else (OPTIMUM, "")
            cells = [Cell(name, f"{PRINTED_KERNEL}@{factor}", k, *way, core) for k in scale.ranks]
            logs[factor, core] = np.log([results.median(cell) for cell in cells])
            label = f"kmeans++, {core} core" if core else OPTIMUM
            table.rows.append([str(factor), label, *_falls(logs[factor, core])])
        theirs = np.array(comparing.printed_points(name, "kmeans++", "k ln n", scale.ranks)[1])
        yield table
        if not np.isnan(theirs).any():
            table.rows.append(["", "kmeans++, the paper", *_falls(theirs)])
            gaps = {f: _gap(logs[f, "truncated"], theirs) for f in WIDTHS}
            nearest = min(gaps, key=lambda f: gaps[f])
            yield say("rank-error.widths", nearest=nearest, gap=gaps[nearest], width=WIDTH)


def _falls(logs: np.ndarray) -> list[str]:
    return [f"{logs[0]:.2f}", *(f"{logs[0] - value:.2f}" for value in logs[1:])]


def _gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.mean(np.abs((ours - ours[0]) - (theirs - theirs[0]))[1:]))


# Figure and tables


def _figure(results: Results, kernel: str, scale: Scale) -> Block:
    panels = [
        figures.Panel(comparing.shown(name), _lines(results, name, kernel, scale.ranks))
        for name in results.sets(kernel)
    ]
    key = "printed" if kernel == PRINTED_KERNEL else "no_points"
    points = say(f"rank-error.{key}", rows=", for all rows" if scale.rows else "")
    return figures.drawn(
        f"rank-error-{kernel}", panels, xlog=True, xlabel="rank", ylabel="ln Frobenius error",
        caption=say("rank-error.caption", kernel=NAMES[kernel], points=points),
        alt=say("rank-error.alt", kernel=NAMES[kernel]),
    )  # fmt: skip


def _lines(results: Results, name: str, kernel: str, ranks: Sequence[int]) -> list[figures.Line]:
    optima = [log(results.optimum(Cell(name, kernel, k, ""))) for k in ranks]
    curves = comparing.lines(results, name, kernel, ranks, against_seconds=False)
    return [*curves, figures.Line(OPTIMUM, ranks, optima)]


def _beside_paper(results: Results, scale: Scale) -> Table:
    def cell(name: str, k: int, label: str, rule: str) -> str:
        ours = log(results.median(cell_of(name, PRINTED_KERNEL, k, label, rule)))
        (theirs,) = comparing.printed_points(name, label, rule, [k])[1]
        return _decimals(ours) + ("" if math.isnan(theirs) else f" ({theirs:.2f})")

    rows = []
    for name, k in product(results.sets(PRINTED_KERNEL), scale.ranks):
        optimum = log(results.optimum(Cell(name, PRINTED_KERNEL, k, "")))
        cells = [cell(name, k, label, rule) for label, rule in WAYS]
        rows.append([comparing.shown(name), str(k), _decimals(optimum), *cells])
    title = "delta-gauss: natural logarithm of the error, in brackets the paper's"
    notes = ["The paper's are for all rows: compare how they fall."] if scale.rows else []
    return Table(title, ["set", "k", OPTIMUM, *HEADER], rows, notes)


def _decimals(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _agreement(results: Results, scale: Scale) -> Iterator[str]:
    """How near the paper's schemes come to what it prints, where the rows are the same."""
    for rule in PAPER_RULES if scale.rows is None else ():
        gaps = []
        for name, scheme in product(results.sets(PRINTED_KERNEL), PAPER):
            cells = [Cell(name, PRINTED_KERNEL, k, scheme, rule) for k in scale.ranks]
            ours = np.log([results.median(cell) for cell in cells])
            gaps.append(ours - comparing.printed_points(name, scheme, rule, scale.ranks)[1])
        gap = np.array(gaps)[~np.isnan(gaps)]
        if gap.size:
            near, above = np.mean(np.abs(gap) <= 0.5), np.mean(gap > 0.5)
            yield say("rank-error.agreement", rule=rule, size=gap.size, median=np.median(gap),
                      near=near, above=above)  # fmt: skip


def _ratios(results: Results, kernel: str, scale: Scale) -> Table:
    title = f"{NAMES[kernel]}: error over the optimal error of the same rank"
    rows = []
    for name, k in product(results.sets(kernel), scale.ranks):
        first = cell_of(name, kernel, k, comparing.OURS, "k")
        share = results.optimum(first) / results.median(first, "norm")
        cells = [results.ratio(cell_of(name, kernel, k, *way)) for way in WAYS]
        rows.append([comparing.shown(name), str(k), *map(number, (share, *cells))])
    return Table(title, ["set", "k", "optimum / |K|", *HEADER], rows, [say("rank-error.ratios")])


# The default against the paper's schemes


def _groups(results: Results, scale: Scale) -> list[list[comparing.Pair]]:
    """Comparisons at as many kernel values: from 2k and k ln n landmarks, and truncated."""
    groups = [({rule: EQUAL[rule]}, "plain") for rule in EQUAL] + [(TRUNCATED_CORE, "truncated")]
    return [list(pairs(results, scale, *group)) for group in groups]


def _at_equal_values(results: Results, scale: Scale) -> Table:
    title = "Error of our default over those of the paper's schemes at as many kernel values"
    header = ["kernel", "set", "2k", "k ln n", "k ln n, truncated core"]
    rows, groups = [], _groups(results, scale)
    for kernel, name in ((k, s) for k in results.kernels for s in results.sets(k)):
        here = [[p.ratio for p in group if p.other[:2] == (name, kernel)] for group in groups]
        cells = [f"{number(min(ratios))} to {number(max(ratios))}" for ratios in here]
        rows.append([NAMES[kernel], comparing.shown(name), *cells])
    return Table(title, header, rows, [say("rank-error.equal_values")])


def _conclusions(results: Results, scale: Scale) -> Iterator[str]:
    """What the numbers say, in words."""
    kernels = results.kernels
    plain = [c for c in results if c.core == "plain" and c.kernel in kernels]
    plain = [cell for cell in plain if cell.rule in PAPER_RULES]
    larger = sum(results.median(cell) > results.median(cell, "norm") for cell in plain)
    falls, steps = comparing.printed_falls()
    yield say("rank-error.larger", total=len(plain), larger=larger, rise=steps - falls, steps=steps)
    medians = [np.median([pair.ratio for pair in group]) for group in _groups(results, scale)]
    yield say("rank-error.medians", **dict(zip(("few", "many", "cut"), medians, strict=True)))


def _checks(results: Results, scale: Scale) -> list[Check]:
    of = len(scale.vectorial) * len(KERNELS) * len(scale.ranks) * len(PAPER)
    claims = {
        "the paper's schemes at as many kernel values": (EQUAL, "plain"),
        "the paper's schemes at as many landmarks, sketch apart": (SAME_LANDMARKS, "plain"),
        "the same with K_ZZ truncated, at as many kernel values": (TRUNCATED_CORE, "truncated"),
    }
    compared = {whom: list(pairs(results, scale, *group)) for whom, group in claims.items()}
    enough = [seed for pair in next(iter(compared.values())) for seed in pair.enough]
    text, holds = f"{sum(enough)} of {len(enough)} fits", all(enough) if enough else None
    checks = [
        comparing.not_above(whom, compared[whom], of * len(rules))
        for whom, (rules, _) in claims.items()
    ]
    what = "The paper's schemes had at least the default's kernel values"
    return [*checks, Check(what, text, "all", holds), _near_optimum(results, scale)]


def _near_optimum(results: Results, scale: Scale) -> Check:
    k = max(scale.ranks)
    what = f"Our default at rank {k} from k ln n landmarks over the optimum: every set and kernel"
    cells = [c for c in results if (c.scheme, c.rule, c.k) == (DEFAULT, "k ln n", k)]
    ratios = {cell: results.ratio(cell) for cell in cells if not math.isnan(results.ratio(cell))}
    if not ratios:
        return Check(what, "", f"<= {NEAR_OPTIMUM}", None)
    worst = max(ratios, key=lambda cell: ratios[cell])
    text = f"worst {ratios[worst]:.3f} ({comparing.shown(worst.set)}, {NAMES[worst.kernel]})"
    holds: bool | None = ratios[worst] <= NEAR_OPTIMUM
    if holds and len(ratios) < (of := len(scale.vectorial) * len(KERNELS)):
        text, holds = f"{text}; {len(ratios)} of {of}", None
    return Check(what, text, f"<= {NEAR_OPTIMUM}", holds)


def _numbers(results: Results, scale: Scale) -> dict[str, float]:
    """Of the default and the optimum; errors of the plain core vary by orders of magnitude."""
    numbers: dict[str, float] = {}
    for cell in (cell for cell in results if cell.scheme == DEFAULT):
        name = f"rank-error/{cell.set}/{cell.kernel}/k={cell.k}"
        numbers[f"{name}/default {cell.rule} over optimum"] = results.ratio(cell)
        numbers[f"{name}/optimum over |K|"] = results.optimum(cell) / results.median(cell, "norm")
    worst = max((p.ratio for p in pairs(results, scale, EQUAL)), default=math.nan)
    numbers["rank-error/default over paper's, as many values, worst"] = worst
    return {name: value for name, value in numbers.items() if not math.isnan(value)}
