"""Figure 8: seconds of an approximation against the number of objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from kreinlearn.report.model import Block, Section, Table
from reproduction import figures, printed
from reproduction.approximating import kernel_of
from reproduction.matrix_free import fewer_dimensions, nystroem
from reproduction.reading import at_most, rows_of, say
from reproduction.scale import Scale
from reproduction.sets import vectorial_names, vectors
from reproduction.tasks import Measurements, Row, Task

T = TypeVar("T")
DIMENSIONS = 20  # of generated vectors
ENOUGH = 0.2  # CPU seconds that all timings of one work take together
LINEAR = 1.15  # an exponent up to which growth counts as linear


# How each way makes an approximation: landmarks per unit of rank, and everything else.
WAYS = {
    "paper's scheme by SVD": (1, partial(nystroem, scheme="kmeans++", core="plain", method="svd")),
    "paper's scheme by Gram": (1, partial(nystroem, scheme="kmeans++", core="plain")),
    "our default": (2, partial(nystroem)),
}


def tasks(scale: Scale) -> list[Task]:
    """One task per set and per number of generated vectors."""
    names = [*vectorial_names(scale), *(f"normal {n}" for n in scale.timed_rows)]
    cost = 0.1 * len(WAYS) * len(scale.ranks) * (scale.repeats + 1)
    return [
        Task(f"size-time/{scale.name}/{name}", partial(_timed, name, scale), cost, alone=True)
        for name in names
    ]


# Measuring


class Seconds(NamedTuple):
    """The time that some work took."""

    cpu: float
    wall: float


def fastest(work: Callable[[], T], repeats: int) -> tuple[T, Seconds]:
    """The result of some work, and the least of its CPU seconds and of its wall seconds.

    The first run does not count, and short work is repeated more often.
    """
    result = work()
    spent: list[Seconds] = []
    while len(spent) < repeats or sum(one.cpu for one in spent) < ENOUGH:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        spent.append(Seconds(time.process_time() - cpu, time.perf_counter() - wall))
    return result, Seconds(*map(min, zip(*spent, strict=True)))


def objects(name: str, scale: Scale) -> np.ndarray:
    """The rows of a set; "normal 400" are 400 standard normal vectors."""
    kind, _, n = name.partition(" ")
    if kind != "normal":
        return vectors(name, scale)
    return np.random.default_rng(scale.seed).normal(size=(int(n), DIMENSIONS))


def _timed(name: str, scale: Scale) -> list[Row]:
    X, rows = objects(name, scale), []
    kernel = kernel_of("delta_gauss", X)
    for way, (per_rank, make) in WAYS.items():
        for k in scale.ranks:
            model = make(kernel, per_rank * k, k, seed=scale.seed)
            with fewer_dimensions():
                _, spent = fastest(partial(model.fit, X), scale.repeats)
            rows.append({"set": name, "n": len(X), "d": X.shape[1], "way": way, "k": k})
            rows[-1] |= spent._asdict()
    return rows


# Reading


class Growth(NamedTuple):
    """The seconds of one way and rank, by increasing n."""

    n: list[int]
    seconds: list[float]

    @property
    def exponent(self) -> float:
        """p of seconds = c n^p, by least squares of logarithms; NaN if there is only one size."""
        if len(set(self.n)) < 2:
            return float("nan")
        return float(np.polyfit(np.log(self.n), np.log(self.seconds), 1)[0])


PRINTED = "printed"
COLUMNS = (PRINTED, *WAYS)
Grown = dict[tuple[str, int], Growth]  # by way and rank


def grown(points: Sequence[tuple[str, int, int, float]]) -> Grown:
    """Points (way, k, n, seconds) by way and rank."""
    growths: Grown = {}
    for way, k, n, seconds in sorted(points):
        growth = growths.setdefault((way, k), Growth([], []))
        growth.n.append(n)
        growth.seconds.append(seconds)
    return growths


def section(scale: Scale, measurements: Measurements) -> Section:
    """Figure 8: how the seconds grow, beside the paper's."""
    rows = rows_of(tasks(scale), measurements)
    paper = [(PRINTED, k, n, t) for (k, n), t in printed.seconds().items() if k in scale.ranks]
    growths = grown(paper + [(r["way"], r["k"], r["n"], r["cpu"]) for r in rows])
    sizes = ", ".join(f"{n:,}" for n in scale.timed_rows)
    blocks: list[Block] = [
        say("size-time.opening", repeats=scale.repeats, d=DIMENSIONS, sizes=sizes)
    ]
    if rows:
        blocks += [_figure(growths, scale), _exponents(growths, scale), _conclusion(growths, scale)]
        blocks.append(_seconds(rows, max(scale.ranks)))
    else:
        blocks.append("Nothing of it has been measured.")
    exponents = {key: growth.exponent for key, growth in growths.items() if key[0] != PRINTED}
    checks = []
    for way in WAYS:
        p = exponents.get((way, max(scale.ranks)), np.nan)
        what, values = f"exponent at the largest rank, {way}", [] if np.isnan(p) else [p]
        checks.append(at_most(what, values, LINEAR, ".2f", str(LINEAR)))
    numbers = {f"size-time/{way}/k={k}/exponent": p for (way, k), p in exponents.items()}
    title = "Seconds against the number of objects (Figure 8)"
    return Section(title, blocks, checks, numbers)


def _figure(growths: Grown, scale: Scale) -> Block:
    panels = [
        figures.Panel(way, [
            figures.Line(f"rank {k}", *growths[kind, k], printed=kind == PRINTED)
            for k in scale.ranks for kind in (way, PRINTED) if (kind, k) in growths
        ])
        for way in WAYS
    ]  # fmt: skip
    return figures.drawn(
        "size-time", panels, columns=3, xlog=True, ylog=True, xlabel="objects n", ylabel="seconds",
        caption="Seconds of an approximation against the number of objects, by rank.",
        alt=say("size-time.alt"),
    )  # fmt: skip


def _at_rank(growths: Grown, k: int) -> dict[str, str]:
    """The exponents at one rank, by way; empty where there is none."""
    exponents = {w: growths[w, k].exponent if (w, k) in growths else np.nan for w in COLUMNS}
    return {way: "" if np.isnan(p) else f"{p:.2f}" for way, p in exponents.items()}


def _exponents(growths: Grown, scale: Scale) -> Table:
    rows = [[str(k), *_at_rank(growths, k).values()] for k in scale.ranks]
    note = "Least squares of logarithms over all sizes; in theory 1."
    return Table("Exponent p of seconds = c n^p", ["rank", *COLUMNS], rows, [note])


def _conclusion(growths: Grown, scale: Scale) -> str:
    k = max(scale.ranks)
    exponents = "; ".join(f"{way} {p}" for way, p in _at_rank(growths, k).items() if p)
    doublings = [
        f"{way} {growth.seconds[-1] / growth.seconds[-2]:.2f}"
        for way in WAYS
        if (growth := growths.get((way, k))) and growth.n[-2:-1] == [growth.n[-1] / 2]
    ]
    text = say("size-time.conclusion", k=k, exponents=exponents)
    if doublings:
        text += f" The last doubling of n multiplies the seconds by: {'; '.join(doublings)}."
    return text


def _seconds(rows: list[Row], k: int) -> Table:
    """At the largest rank, beside what is printed."""
    header = ["data", "n", "d", "printed", *(f"{way}: CPU, wall" for way in WAYS)]
    times = {(r["set"], r["way"]): f"{r['cpu']:.3f}, {r['wall']:.3f}" for r in rows if r["k"] == k}
    lines = []
    for n, d, name in sorted({(row["n"], row["d"], row["set"]) for row in rows}):
        paper = printed.seconds().get((k, n))
        sizes = [name.partition(" ")[0], f"{n:,}", str(d), "" if paper is None else f"{paper:.2f}"]
        lines.append([*sizes, *(times[name, way] for way in WAYS)])
    note = "printed: seconds on the paper's machine, not to be compared with ours."
    return Table(f"Seconds at rank {k}", header, lines, [note])
