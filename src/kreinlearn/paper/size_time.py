"""Figure 8: seconds of an approximation against the number of objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kreinlearn import KreinNystroem
from kreinlearn.kernels import Kernel
from kreinlearn.paper import figures, printed
from kreinlearn.paper.approximating import kernel_of
from kreinlearn.paper.matrix_free import fewer_dimensions
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.sets import vectorial_names, vectors
from kreinlearn.paper.tasks import Measurements, Row, Task
from kreinlearn.report import Check, Section, Table

Array = NDArray[Any]
T = TypeVar("T")
DIMENSIONS = 20  # of generated vectors
ENOUGH = 0.2  # CPU seconds of timings together
LINEAR = 1.15  # an exponent up to which growth counts as linear


class Way(NamedTuple):
    """A way to approximate that is timed."""

    landmarks: str
    per_rank: int  # landmarks to a unit of rank
    core: str
    method: str

    def model(self, kernel: Kernel, k: int, seed: int) -> KreinNystroem:
        return KreinNystroem(
            kernel, n_landmarks=self.per_rank * k, rank=k, landmarks=self.landmarks,
            core=self.core, method=self.method, random_state=seed, n_jobs=1,
        )  # fmt: skip


WAYS = {
    "paper's scheme by SVD": Way("kmeans++", 1, "plain", "svd"),
    "paper's scheme by Gram": Way("kmeans++", 1, "plain", "gram"),
    "our default": Way("auto", 2, "ls", "gram"),
}


def tasks(scale: Scale) -> list[Task]:
    names = [*vectorial_names(scale), *(f"normal {n}" for n in scale.timed_rows)]
    cost = 0.1 * len(WAYS) * len(scale.ranks) * (scale.repeats + 1)
    return [
        Task(f"size-time/{scale.name}/{name}", partial(_timed, name, scale), cost, alone=True)
        for name in names
    ]


# Measuring


class Seconds(NamedTuple):
    cpu: float
    wall: float


def fastest(work: Callable[[], T], repeats: int) -> tuple[T, Seconds]:
    """What it gives, and the least of each kind of seconds, after a run that does not count.

    Short work is repeated more often.
    """
    result = work()
    found: list[Seconds] = []
    while len(found) < repeats or sum(spent.cpu for spent in found) < ENOUGH:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append(Seconds(time.process_time() - cpu, time.perf_counter() - wall))
    return result, Seconds(*map(min, zip(*found, strict=True)))


def objects(name: str, scale: Scale) -> Array:
    """A set, or as many standard normal vectors as its name says."""
    kind, _, n = name.partition(" ")
    if kind != "normal":
        return vectors(name, scale)
    return np.random.default_rng(scale.seed).normal(size=(int(n), DIMENSIONS))


def _timed(name: str, scale: Scale) -> list[Row]:
    X, rows = objects(name, scale), []
    kernel = kernel_of("delta_gauss", X)
    for way, make in WAYS.items():
        for k in scale.ranks:
            model = make.model(kernel, k, scale.seed)
            with fewer_dimensions():
                _, spent = fastest(partial(model.fit, X), scale.repeats)
            rows.append({"set": name, "n": len(X), "d": X.shape[1], "way": way, "k": k})
            rows[-1] |= spent._asdict()
    return rows


# Reading


class Growth(NamedTuple):
    """Seconds of one way and rank, by increasing n."""

    n: list[int]
    seconds: list[float]

    @property
    def exponent(self) -> float:
        """p of seconds = c n^p, by least squares of logarithms; NaN of one size."""
        if len(set(self.n)) < 2:
            return float("nan")
        x, y = np.log(self.n), np.log(self.seconds)
        x -= x.mean()
        return float(x @ y / (x @ x))


PRINTED = "printed"
Grown = dict[tuple[str, int], Growth]  # by way and rank


def grown(points: Sequence[tuple[str, int, int, float]]) -> Grown:
    """From points (way, k, n, seconds)."""
    found: Grown = {}
    for way, k, n, seconds in sorted(points):
        growth = found.setdefault((way, k), Growth([], []))
        growth.n.append(n)
        growth.seconds.append(seconds)
    return found


def section(scale: Scale, measurements: Measurements) -> Section:
    rows = [row for task in tasks(scale) for row in measurements.get(task.key, [])]
    what = Section("Seconds against the number of objects (Figure 8)")
    paper = [(PRINTED, k, n, t) for (k, n), t in printed.seconds().items() if k in scale.ranks]
    found = grown(paper + [(r["way"], r["k"], r["n"], r["cpu"]) for r in rows])
    what.blocks.append(_opening(scale))
    if rows:
        what.blocks += [_figure(found, scale), _exponents(found, scale), _conclusion(found, scale)]
        what.blocks.append(_seconds(rows, max(scale.ranks)))
    else:
        what.blocks.append("Nothing of it has been measured.")
    for way in WAYS:
        what.checks.append(_check(way, found.get((way, max(scale.ranks)))))
        what.numbers |= {
            f"size-time/{way}/k={k}/exponent": found[way, k].exponent
            for k in scale.ranks
            if (way, k) in found
        }
    return what


def _opening(scale: Scale) -> str:
    return (
        "An approximation of rank k costs of the order of k^2 n: linear in n. The paper's Figure 8 "
        "has the seconds of its five vectorial sets with delta-gauss. Its machine is not known, "
        "nor what exactly was timed: exponents p of seconds = c n^p are compared, not seconds. "
        "Here whole fits are timed, kernel values and choice of landmarks included, with one "
        f"thread and nothing beside them: the least CPU seconds of {scale.repeats} fits or more, "
        "after a first that does not count. "
        "The paper's scheme takes k landmarks by k-means++ and inverts K_ZZ; its "
        "eigendecomposition is run both by the paper's thin SVD and from the Gram matrix, as "
        "elsewhere in this report. The default takes 2k landmarks and the least-squares core. To "
        f"the sets come standard normal vectors, d = {DIMENSIONS}, "
        f"{', '.join(f'{n:,}' for n in scale.timed_rows)} of them."
    )


def _figure(found: Grown, scale: Scale) -> Any:
    panels = [
        figures.Panel(way, [
            figures.Line(f"rank {k}", *found[kind, k], printed=kind == PRINTED)
            for k in scale.ranks for kind in (way, PRINTED) if (kind, k) in found
        ])
        for way in WAYS
    ]  # fmt: skip
    return figures.drawn(
        "size-time", panels, columns=3, xlog=True, ylog=True, xlabel="objects n", ylabel="seconds",
        caption="Seconds of an approximation against the number of objects, by rank.",
        alt="Three panels, a scheme each: CPU seconds against the number of objects on logarithmic "
        "axes, one line a rank; the paper's points are the same in all three.",
    )  # fmt: skip


def _said(p: float) -> str:
    return "" if np.isnan(p) else f"{p:.2f}"


def _exponents(found: Grown, scale: Scale) -> Table:
    ways = (PRINTED, *WAYS)
    table = Table("Exponent p of seconds = c n^p", ["rank", *ways])
    for k in scale.ranks:
        cells = [_said(found[way, k].exponent) if (way, k) in found else "" for way in ways]
        table.rows.append([str(k), *cells])
    table.notes = ["Least squares of logarithms over all sizes; in theory 1."]
    return table


def _conclusion(found: Grown, scale: Scale) -> str:
    k = max(scale.ranks)
    said = [
        f"{way} {found[way, k].exponent:.2f}"
        for way in (PRINTED, *WAYS)
        if (way, k) in found and not np.isnan(found[way, k].exponent)
    ]
    doublings = [
        f"{way} {growth.seconds[-1] / growth.seconds[-2]:.2f}"
        for way in WAYS
        if (growth := found.get((way, k))) and growth.n[-2:-1] == [growth.n[-1] / 2]
    ]
    text = (
        f"At rank {k} the exponents are: {'; '.join(said)}. Where one is "
        "below 1 there is a part that does not grow with n: of ours the eigendecompositions of "
        "the core and the fixed costs of a fit, of the default also its choice among a bounded "
        "pool of candidates. The sets differ in dimension, too, which the fit does not know."
    )
    if doublings:
        text += f" The last doubling of n multiplies the seconds by: {'; '.join(doublings)}."
    return text


def _seconds(rows: list[Row], k: int) -> Table:
    """At the largest rank, beside what is printed."""
    header = ["data", "n", "d", "printed", *(f"{way}: CPU, wall" for way in WAYS)]
    table = Table(f"Seconds at rank {k}", header)
    cells = {(row["set"], row["way"]): row for row in rows if row["k"] == k}
    sizes = {row["set"]: (row["n"], row["d"]) for row in rows}
    for name, (n, d) in sorted(sizes.items(), key=lambda item: item[1]):
        paper = printed.seconds().get((k, n))
        ours = [cells[name, way] for way in WAYS]
        table.rows.append([
            name.partition(" ")[0], f"{n:,}", str(d), "" if paper is None else f"{paper:.2f}",
            *(f"{row['cpu']:.3f}, {row['wall']:.3f}" for row in ours),
        ])  # fmt: skip
    table.notes = ["printed: seconds on the paper's machine, not to be compared with ours."]
    return table


def _check(way: str, growth: Growth | None) -> Check:
    what, limit = f"exponent at the largest rank, {way}", f"<= {LINEAR}"
    if growth is None or np.isnan(growth.exponent):
        return Check(what, "", limit, None)
    return Check(what, f"{growth.exponent:.2f}", limit, growth.exponent <= LINEAR)
