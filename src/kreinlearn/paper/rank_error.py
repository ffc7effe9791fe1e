"""Figure 1 and its appendix: error of an approximation against its rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from kreinlearn.paper import approximating, comparing, figures
from kreinlearn.paper.approximating import (
    DEFAULT,
    EQUAL,
    OPTIMUM,
    PAPER,
    PAPER_RULES,
    PRINTED_KERNEL,
    RULES,
    TRUNCATED,
    WIDTH,
    WIDTHS,
)
from kreinlearn.paper.comparing import NAMES, OURS, Cell, Found, number, pairs, shown
from kreinlearn.paper.matrix_free import DENSE, SETTLED
from kreinlearn.paper.scale import KERNELS, Scale
from kreinlearn.paper.tasks import Measurements
from kreinlearn.report import Block, Check, Section, Table

tasks = approximating.tasks
NEAR_OPTIMUM = 1.3
SAME_LANDMARKS = {rule: rule for rule in PAPER_RULES}
TRUNCATED_CORE = {"k ln n": TRUNCATED}
COLUMNS = [  # of tables: name, scheme, rule and core
    *((f"ours, {rule}", DEFAULT, rule, "ls") for rule in RULES),
    *((f"{scheme}, {rule}", scheme, rule, "plain") for rule in PAPER_RULES for scheme in PAPER),
]


def section(scale: Scale, measurements: Measurements) -> Section:
    found = comparing.read(scale, measurements)
    what = Section("Error against rank (Figure 1)")
    what.blocks += [_opening(scale), _kernels(), *comparing.absences(scale, measurements)]
    what.blocks += _widths(found, scale)
    for kernel in found.kernels:
        what.blocks.append(_figure(found, kernel, scale))
        if kernel == PRINTED_KERNEL:
            what.blocks += [_beside_paper(found, scale), *_agreement(found, scale)]
        what.blocks.append(_ratios(found, kernel, scale))
    if found.kernels:
        what.blocks += [_at_equal_values(found, scale), *_conclusions(found, scale)]
    what.checks = _checks(found, scale)
    what.numbers = _numbers(found, scale)
    return what


def _opening(scale: Scale) -> str:
    rows = "all rows" if scale.rows is None else f"at most {scale.rows:,} rows"
    seeds, fewer = scale.repetitions, len(approximating.seeds("sigmoid", scale))
    others = f" ({fewer} for the kernels without printed numbers)" if fewer < seeds else ""
    return (
        f"Kernel matrices of the paper's vectorial sets ({rows}, columns standardised) are "
        f"approximated at rank {', '.join(map(str, scale.ranks))}. The paper's schemes draw "
        "landmarks uniformly, by leverage scores or by k-means++ seeds of a uniform sketch of k "
        "columns, invert K_ZZ and keep the k largest eigenvalues: (k | l) is rank k from l "
        "landmarks, l = k or k ln n. Our default chooses medoids and greedy k-means++ centres and "
        "fits the least-squares core. Every error is the Frobenius norm over all pairs, K "
        f"evaluated tile by tile; figures are medians over {seeds} seeds of the landmarks{others}. "
        "The optimum comes from the eigenvalues largest in magnitude: all of them up to "
        f"{DENSE:,} rows, else by a block iteration that starts from our own eigenvectors and "
        "random columns; its errors come down to the optimum from above, until none falls by more "
        f"than {100 * SETTLED:g} %."
    )


def _kernels() -> str:
    return (
        "The widths of the paper's kernels are not known. With M the median squared distance and d "
        f"the number of columns, delta-gauss has here the widths {WIDTH} M and {WIDTH // 4} M, "
        "Epanechnikov the width M, sigmoid the gain 1 / d and the bias -1. Numbers of the paper "
        "are at hand for delta-gauss alone: none for sigmoid and Epanechnikov. The paper also "
        'plots an "RL-Sigmoid", whose definition was not to be had: it is left out.'
    )


# The width


def _widths(found: Found, scale: Scale) -> Iterator[Block]:
    """How far errors fall at several widths of delta-gauss, beside the paper's."""
    names = dict.fromkeys(cell.set for cell in found if "@" in cell.kernel)
    first, *later = scale.ranks
    for name in names:
        header = ["width / M", "", f"rank {first}: ln error", *(f"fall to {k}" for k in later)]
        table = Table(f"{shown(name)}, delta-gauss: fall of the logarithm of the error", header)
        logs = {}
        for factor, core in ((f, c) for f in WIDTHS for c in ("", "plain", "truncated")):
            ways = (OPTIMUM, "") if not core else ("kmeans++", "k ln n")
            cells = [Cell(name, f"{PRINTED_KERNEL}@{factor}", k, *ways, core) for k in scale.ranks]
            logs[factor, core] = np.log([found.median(cell) for cell in cells])
            said = f"kmeans++, {core} core" if core else OPTIMUM
            table.rows.append([str(factor), said, *_falls(logs[factor, core])])
        theirs = np.array(comparing.printed_logs(name, "kmeans++", "k ln n", scale.ranks))
        yield table
        if not np.isnan(theirs).any():
            table.rows.append(["", "kmeans++, the paper", *_falls(theirs)])
            gaps = {f: _gap(logs[f, "truncated"], theirs) for f in WIDTHS}
            yield (
                f"Among these widths the falls of k-means++ with k ln n landmarks are nearest to "
                f"the printed ones at {min(gaps, key=lambda f: gaps[f])} M (truncated core, mean "
                f"distance {min(gaps.values()):.2f}); {WIDTH} M was taken for all sets."
            )


def _falls(logs: Sequence[float] | np.ndarray) -> list[str]:
    return [f"{logs[0]:.2f}", *(f"{logs[0] - value:.2f}" for value in logs[1:])]


def _gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.mean(np.abs((ours - ours[0]) - (theirs - theirs[0]))[1:]))


# Figure and tables


def _figure(found: Found, kernel: str, scale: Scale) -> Block:
    names = found.sets(kernel)
    panels = [figures.Panel(shown(name), _lines(found, name, kernel, scale)) for name in names]
    paper = "No numbers of the paper are at hand."
    if kernel == PRINTED_KERNEL:
        paper = (
            "Hollow marks on dotted lines: the paper's, of a colour the upper for k and the lower "
            "for k ln n landmarks" + (", of all rows." if scale.rows else ".")
        )
    return figures.drawn(
        f"rank-error-{kernel}", panels, xlog=True,
        xlabel="rank", ylabel="ln Frobenius error",
        caption=f"{NAMES[kernel]}: logarithm of the error against the rank. Solid: (k | k ln n); "
        f"dashed: (k | k). {paper}",
        alt=f"One panel a set: the natural logarithm of the Frobenius error of {NAMES[kernel]} "
        "against the rank, for three landmark schemes of the paper, our default and the optimum.",
    )  # fmt: skip


def _lines(found: Found, name: str, kernel: str, scale: Scale) -> list[figures.Line]:
    def line(label: str, cells: Sequence[Cell], dashed: bool = False) -> figures.Line:
        y = [math.log(error) if error > 0 else math.nan for error in map(found.median, cells)]
        return figures.Line(label, scale.ranks, y, dashed=dashed)

    lines = []
    for rule in reversed(PAPER_RULES):
        for label, scheme, core in ((OURS, DEFAULT, "ls"), *((s, s, "plain") for s in PAPER)):
            cells = [Cell(name, kernel, k, scheme, rule, core) for k in scale.ranks]
            lines.append(line(label, cells, dashed=rule == "k"))
            points = comparing.printed_logs(name, scheme, rule, scale.ranks)
            if kernel == PRINTED_KERNEL and not np.isnan(points).all():
                lines.append(figures.Line(label, scale.ranks, points, printed=True))
    optima = [Cell(name, kernel, k, OPTIMUM, core="") for k in scale.ranks]
    return [*lines, line(OPTIMUM, optima)]


def _beside_paper(found: Found, scale: Scale) -> Table:
    columns = [(OPTIMUM, OPTIMUM, "", ""), *COLUMNS]
    title = "delta-gauss: natural logarithm of the error, in brackets the paper's"
    table = Table(title, ["set", "k", *(name for name, *_ in columns)])
    for name in found.sets(PRINTED_KERNEL):
        for k in scale.ranks:
            cells = []
            for _, scheme, rule, core in columns:
                ours = math.log(found.median(Cell(name, PRINTED_KERNEL, k, scheme, rule, core)))
                (theirs,) = comparing.printed_logs(name, scheme, rule, [k])
                cells.append(_log(ours) + (f" ({_log(theirs)})" if _log(theirs) else ""))
            table.rows.append([shown(name), str(k), *cells])
    if scale.rows is not None:
        table.notes = ["The paper's are of all rows: compare how they fall."]
    return table


def _log(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _agreement(found: Found, scale: Scale) -> Iterator[str]:
    """How near the paper's schemes come to what it prints, where the rows are the same."""
    for rule in PAPER_RULES if scale.rows is None else ():
        gaps = []
        for name, scheme in ((n, s) for n in found.sets(PRINTED_KERNEL) for s in PAPER):
            cells = [Cell(name, PRINTED_KERNEL, k, scheme, rule) for k in scale.ranks]
            ours = np.log([found.median(cell) for cell in cells])
            gaps.append(ours - comparing.printed_logs(name, scheme, rule, scale.ranks))
        gap = np.array(gaps)[~np.isnan(gaps)]
        if gap.size:
            yield (
                f"With l = {rule} the {gap.size} logarithms of the paper's schemes differ from the "
                f"printed ones by {np.median(gap):+.2f} in the median; "
                f"{np.mean(np.abs(gap) <= 0.5):.0%} lie within 0.5, {np.mean(gap > 0.5):.0%} above."
            )


def _ratios(found: Found, kernel: str, scale: Scale) -> Table:
    title = f"{NAMES[kernel]}: error over the optimal error of the same rank"
    table = Table(title, ["set", "k", "optimum / |K|", *(name for name, *_ in COLUMNS)])
    for name in found.sets(kernel):
        for k in scale.ranks:
            first = found.default(Cell(name, kernel, k, ""), "k")
            share = found.optimum(first) / found.median(first, "norm")
            cells = [found.ratio(Cell(name, kernel, k, *rest)) for _, *rest in COLUMNS]
            table.rows.append([shown(name), str(k), *map(number, (share, *cells))])
    table.notes = ["Medians over seeds; the paper's schemes as it has them: K_ZZ inverted whole."]
    return table


# The default against the paper's schemes


def _at_equal_values(found: Found, scale: Scale) -> Table:
    title = "Error of our default over those of the paper's schemes at as many kernel values"
    table = Table(title, ["kernel", "set", "2k", "k ln n", "k ln n, truncated core"])
    groups = [({rule: EQUAL[rule]}, "plain") for rule in EQUAL] + [(TRUNCATED_CORE, "truncated")]
    lists = [list(pairs(found, scale, *group)) for group in groups]
    for kernel in found.kernels:
        for name in found.sets(kernel):
            here = [[p.ratio for p in ps if p.other[:2] == (name, kernel)] for ps in lists]
            cells = [f"{number(min(values))} to {number(max(values))}" for values in here]
            table.rows.append([NAMES[kernel], shown(name), *cells])
    table.notes = [
        "Least to largest over ranks and schemes; below 1 the default is better. 2k and k ln n are "
        "its landmarks. The paper's schemes have the fewest landmarks that cost at least as many "
        "kernel values, their sketch included; that sketch is counted once, though rows that are "
        "streamed are compared with it more than once. Truncated core: of K_ZZ only the k largest "
        "|eigenvalues| are inverted."
    ]
    return table


def _conclusions(found: Found, scale: Scale) -> Iterator[str]:
    """What the numbers say, in words."""
    kernels = found.kernels
    plain = [c for c in found if (c.core, c.kernel in kernels) == ("plain", True)]
    plain = [cell for cell in plain if cell.rule in PAPER_RULES]
    larger = [cell for cell in plain if found.median(cell) > found.median(cell, "norm")]
    falls, steps = comparing.printed_falls()
    yield (
        f"Of the {len(plain)} median errors of the paper's schemes {len(larger)} are larger than "
        "|K|, the error of no approximation at all: an indefinite K_ZZ may be nearly singular "
        "though K is not, and the eigenvalues its inverse inflates are the ones that rank k keeps. "
        f"The paper's own errors rise in {steps - falls} of {steps} steps from one rank to the "
        "next, which may be the same. Whether the paper cuts small "
        "eigenvalues of K_ZZ is not known: the schemes were therefore also run with only the k "
        'largest |eigenvalues| of K_ZZ inverted (core="truncated").'
    )
    groups = [pairs(found, scale, {rule: EQUAL[rule]}) for rule in EQUAL]
    groups.append(pairs(found, scale, TRUNCATED_CORE, "truncated"))
    medians = [np.median([pair.ratio for pair in group]) for group in groups]
    yield (
        "At as many kernel values the default's error is, in the median over sets, kernels, ranks "
        f"and schemes, {medians[0]:.2f} times theirs from 2k landmarks and {medians[1]:.2f} times "
        f"from k ln n; {medians[2]:.2f} times where K_ZZ is truncated."
    )


def _checks(found: Found, scale: Scale) -> list[Check]:
    equal = list(pairs(found, scale, EQUAL))
    same = list(pairs(found, scale, SAME_LANDMARKS))
    cut = list(pairs(found, scale, TRUNCATED_CORE, "truncated"))
    enough = [seed for pair in equal for seed in pair.enough]
    said, holds = f"{sum(enough)} of {len(enough)} fits", all(enough) if enough else None
    of = len(scale.vectorial) * len(KERNELS) * len(scale.ranks) * len(PAPER)
    return [
        comparing.not_above("the paper's schemes at as many kernel values", equal, of * len(EQUAL)),
        comparing.not_above(
            "the paper's schemes at as many landmarks, sketch apart", same, of * len(SAME_LANDMARKS)
        ),
        comparing.not_above(
            "the same with K_ZZ truncated, at as many kernel values", cut, of * len(TRUNCATED_CORE)
        ),
        Check("The paper's schemes had at least the default's kernel values", said, "all", holds),
        _near_optimum(found, scale),
    ]


def _near_optimum(found: Found, scale: Scale) -> Check:
    k = max(scale.ranks)
    what = f"Our default at rank {k} from k ln n landmarks over the optimum: every set and kernel"
    cells = [c for c in found if (c.scheme, c.rule, c.k) == (DEFAULT, "k ln n", k)]
    ratios = {cell: found.ratio(cell) for cell in cells if not math.isnan(found.ratio(cell))}
    if not ratios:
        return Check(what, "", f"<= {NEAR_OPTIMUM}", None)
    worst = max(ratios, key=lambda cell: ratios[cell])
    said = f"worst {ratios[worst]:.3f} ({shown(worst.set)}, {NAMES[worst.kernel]})"
    holds: bool | None = ratios[worst] <= NEAR_OPTIMUM
    if holds and len(ratios) < (of := len(scale.vectorial) * len(KERNELS)):
        said, holds = f"{said}; {len(ratios)} of {of}", None
    return Check(what, said, f"<= {NEAR_OPTIMUM}", holds)


def _numbers(found: Found, scale: Scale) -> dict[str, float]:
    """Of the default and the optimum; errors of the plain core vary by orders of magnitude."""
    numbers: dict[str, float] = {}
    for cell in (cell for cell in found if cell.scheme == DEFAULT):
        name = f"rank-error/{cell.set}/{cell.kernel}/k={cell.k}"
        numbers[f"{name}/default {cell.rule} over optimum"] = found.ratio(cell)
        numbers[f"{name}/optimum over |K|"] = found.optimum(cell) / found.median(cell, "norm")
    worst = max((p.ratio for p in pairs(found, scale, EQUAL)), default=math.nan)
    numbers["rank-error/default over paper's, as many values, worst"] = worst
    return {name: value for name, value in numbers.items() if not math.isnan(value)}
