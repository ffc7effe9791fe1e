"""Figure 8 and the count of operations: seconds of approximations, and how they grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.linalg

from kreinlearn.kernels import DeltaGauss
from reproduction import printed
from reproduction.approximating import kernel_of
from reproduction.figures import Line, Panel, drawn
from reproduction.matrix_free import fewer_dimensions, nystroem
from reproduction.reading import at_most, rows_of, say, table
from reproduction.report import Block, Check, Section, Table
from reproduction.scale import Scale
from reproduction.sets import vectorial_names, vectors
from reproduction.tasks import Measurements, Row, Task

Array = np.ndarray
T = TypeVar("T")
DIMENSIONS = 20  # of generated vectors
ENOUGH = 0.2  # CPU seconds that all timings of one work take together
LINEAR = 1.15  # an exponent up to which growth counts as linear
PRINTED = "printed"
Pair = tuple[Array, Array]
CORE_RTOL, WHITEN_RTOL = 1e-10, 1e-6  # as in the library, of K_ZZ and of C
NEAR = 0.7  # the share of the predicted ratio that the largest size has to reach
ROWS, DECADES, STEPS = 600, 12, 2  # of a matrix with known eigenvalues, STEPS of them per decade
RIGHT = 0.01  # largest relative error of an eigenvalue that counts as right
SHOWN = (0, 2, 4, 6, 8)  # decades
# How each way makes an approximation: landmarks per unit of rank, and everything else.
WAYS = {
    "paper's scheme by SVD": (1, partial(nystroem, scheme="kmeans++", core="plain", method="svd")),
    "paper's scheme by Gram": (1, partial(nystroem, scheme="kmeans++", core="plain")),
    "our default": (2, partial(nystroem)),
}


def size_tasks(scale: Scale) -> list[Task]:
    """One task per set and per number of generated vectors."""
    names = [*vectorial_names(scale), *(f"normal {n}" for n in scale.timed_rows)]
    at = f"size-time/{scale.name}"
    return [Task(f"{at}/{name}", partial(_timed, name, scale), 5.0, alone=True) for name in names]


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


def objects(name: str, scale: Scale) -> Array:
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
            row = {"set": name, "n": len(X), "d": X.shape[1], "way": way, "k": k}
            rows.append({**row, **spent._asdict()})
    return rows


def size_time(scale: Scale, measurements: Measurements) -> Section:
    """Figure 8: how the seconds grow, beside the paper's."""
    rows, most = rows_of(size_tasks(scale), measurements), max(scale.ranks)
    points: dict[tuple[str, int], list[tuple[int, float]]] = {}  # by way and rank
    for row in sorted(rows, key=lambda row: (row["n"], row["cpu"])):
        points.setdefault((row["way"], row["k"]), []).append((row["n"], row["cpu"]))
    for (k, n), seconds in sorted(printed.seconds().items()):
        points.setdefault((PRINTED, k), []).append((n, seconds))
    exponents = {key: exponent(grown) for key, grown in points.items()}
    ours = {(way, k): p for (way, k), p in exponents.items() if way != PRINTED}
    panels = [
        Panel(way, [
            Line(f"rank {k}", [n for n, _ in points[kind, k]], [t for _, t in points[kind, k]],
                 printed=kind == PRINTED)
            for k in scale.ranks for kind in (way, PRINTED) if (kind, k) in points
        ])
        for way in WAYS
    ]  # fmt: skip
    figure = drawn(
        "size-time", panels, columns=3, xlog=True, ylog=True, xlabel="objects n", ylabel="seconds",
        caption=say("size-time.caption"), alt=say("size-time.alt"),
    )  # fmt: skip
    grown = []
    for k in scale.ranks:
        found = [exponents.get((way, k)) for way in (PRINTED, *WAYS)]
        grown.append([str(k), *("" if p is None else f"{p:.2f}" for p in found)])
    sizes = ", ".join(f"{n:,}" for n in scale.timed_rows)
    opening = say("size-time.opening", repeats=scale.repeats, d=DIMENSIONS, sizes=sizes)
    blocks = [opening, figure, table("size-time.exponents", grown, WAYS)]
    blocks += [say("size-time.conclusion"), _seconds(rows, most)]
    what = "exponent at the largest rank, "
    checks = [at_most(what + way, [ours[way, most]], LINEAR, ".2f", str(LINEAR)) for way in WAYS]
    numbers = {f"size-time/{way}/k={k}/exponent": p for (way, k), p in ours.items()}
    return Section("Seconds against the number of objects (Figure 8)", blocks, checks, numbers)


def exponent(points: list[tuple[int, float]]) -> float:
    """p of seconds = c n^p, by least squares of logarithms."""
    n, seconds = zip(*points, strict=True)
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def _seconds(rows: list[Row], k: int) -> Table:
    """At the largest rank, beside what is printed."""
    times = {(r["set"], r["way"]): f"{r['cpu']:.3f}, {r['wall']:.3f}" for r in rows if r["k"] == k}
    lines = []
    for n, d, name in sorted({(row["n"], row["d"], row["set"]) for row in rows}):
        paper = printed.seconds().get((k, n))
        sizes = [name.partition(" ")[0], f"{n:,}", str(d), "" if paper is None else f"{paper:.2f}"]
        lines.append([*sizes, *(times[name, way] for way in WAYS)])
    return table("size-time.seconds", lines, [f"{way}: CPU, wall" for way in WAYS], k=k)


# The routes: from C = k(X, Z) and K_ZZ to eigenvalues and eigenvectors on all objects


class Route(NamedTuple):
    """A way to the eigendecomposition, and the operations that are claimed for it."""

    what: str
    run: Callable[[Array, Array], Array]  # C (n, m), K_ZZ -> eigenvalues
    n_terms: int  # claimed operations: n_terms m^2 n + m_terms m^3
    m_terms: int

    def operations(self, n: int, m: int) -> int:
        return self.n_terms * m * m * n + self.m_terms * m**3


def leading(A: Array, rtol: float = 0.0) -> Pair:
    """The eigenvalues of A that exceed ``rtol`` times the largest in magnitude, and vectors."""
    D, U = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    large = np.abs(D) > rtol * np.abs(D).max()
    return D[large], U[:, large]


def one_shot(C: Array, K_ZZ: Array, singular: Callable[[Array, Array], Pair]) -> Array:
    """The eigenvalues of K~ = (C W) S (C W)' from singular values and right vectors of C W."""
    D, U = leading(K_ZZ, CORE_RTOL)
    W, S = U / np.sqrt(np.abs(D)), np.sign(D)
    sigma, B = singular(C, W)
    Lambda, P = leading((B * sigma).T @ (S[:, None] * B * sigma))
    C @ (W @ ((B / sigma) @ P))  # the eigenvectors
    return Lambda


def by_gram(C: Array, W: Array) -> Pair:
    """From C'C, as the library does by default."""
    squared, B = leading(W.T @ (C.T @ C) @ W, WHITEN_RTOL**2)
    return np.sqrt(squared[squared > 0]), B[:, squared > 0]


def by_svd(C: Array, W: Array) -> Pair:
    """By a thin singular value decomposition, as the paper describes it."""
    _, sigma, Bt = scipy.linalg.svd(C @ W, full_matrices=False)
    large = sigma > WHITEN_RTOL * sigma.max()
    return sigma[large], Bt[large].T


def by_squares(C: Array, K_ZZ: Array) -> Array:
    """SGT: the eigenvectors of K~ K~ = (C B)(C B)', then the eigenvalues U~' K~ U~."""
    D, U = leading(K_ZZ, CORE_RTOL)
    inverse = (U / D) @ U.T
    D, U = leading(C.T @ C, WHITEN_RTOL**2)
    B = inverse @ (U * np.sqrt(np.maximum(D, 0))) @ U.T
    CB = C @ B
    D, U = leading(CB.T @ CB, WHITEN_RTOL**2)
    CU = C.T @ (C @ (B @ (U / np.sqrt(D))))
    return np.asarray(np.einsum("ij,ij->j", CU, inverse @ CU))


ROUTES = {
    "gram": Route("one-shot, Gram matrix", partial(one_shot, singular=by_gram), 3, 3),
    "svd": Route("one-shot, thin SVD", partial(one_shot, singular=by_svd), 3, 3),
    "sgt": Route("SGT", by_squares, 7, 2),
}


def predicted(n: int, m: int) -> float:
    """The operations of SGT divided by those of one-shot."""
    return ROUTES["sgt"].operations(n, m) / ROUTES["gram"].operations(n, m)


def flop_tasks(scale: Scale) -> list[Task]:
    """One timing per size, and the accuracy of the routes."""
    at = f"flops/{scale.name}"
    timings = [
        Task(f"{at}/n {n} m {m}", partial(_routes_timed, n, m, scale), 8e-9 * n * m * m, alone=True)
        for n, m in scale.flop_sizes
    ]
    return [*timings, Task(f"{at}/known eigenvalues", partial(_accuracy, scale.seed), 0.5)]


def _routes_timed(n: int, m: int, scale: Scale) -> list[Row]:
    rng = np.random.default_rng(scale.seed)
    X = rng.normal(size=(n, DIMENSIONS))
    C = np.asarray(DeltaGauss().fit(X, rng)(X, X[:m]))
    runs = {
        name: fastest(partial(route.run, C, C[:m]), scale.repeats) for name, route in ROUTES.items()
    }
    exact = runs["svd"][0]
    apart = {f"{name} apart": float(nearest(D, exact).max()) for name, (D, _) in runs.items()}
    return [{"n": n, "m": m, **{name: spent.cpu for name, (_, spent) in runs.items()}, **apart}]


def nearest(computed: Array, exact: Array) -> Array:
    """The relative distance of every exact eigenvalue to the nearest computed one."""
    return np.asarray(np.abs(computed - exact[:, None]).min(axis=1) / np.abs(exact))


def prescribed(seed: int) -> tuple[Array, Array, Array]:
    """C and K_ZZ of a matrix of rank m that m of its columns determine, and its eigenvalues."""
    m = STEPS * DECADES + 1
    U = np.linalg.qr(np.random.default_rng(seed).normal(size=(ROWS, m)))[0]
    Lambda = 10.0 ** (-np.arange(m) / STEPS) * (-1.0) ** np.arange(m)
    Z = scipy.linalg.qr(U.T, mode="r", pivoting=True)[1][:m]  # rows of U that span it best
    C = (U * Lambda) @ U[Z].T
    return C, 0.5 * (C[Z] + C[Z].T), Lambda


def _accuracy(seed: int) -> list[Row]:
    C, K_ZZ, Lambda = prescribed(seed)
    errors = {name: nearest(route.run(C, K_ZZ), Lambda) for name, route in ROUTES.items()}
    return [
        {"route": name, "size": abs(size), "apart": apart}
        for name, apart_from in errors.items()
        for size, apart in zip(Lambda.tolist(), apart_from.tolist(), strict=True)
    ]


def flops(scale: Scale, measurements: Measurements) -> Section:
    """The seconds of the routes beside the count, and which eigenvalues they find."""
    rows = rows_of(flop_tasks(scale), measurements)
    timed, known = [r for r in rows if "n" in r], [r for r in rows if "route" in r]
    apart = {name: max(row[f"{name} apart"] for row in timed) for name in ("gram", "sgt")}
    opening = say("flops.opening", d=DIMENSIONS, repeats=scale.repeats)
    blocks: list[Block] = [
        opening,
        _times(timed),
        say("flops.conclusion"),
        say("flops.agree", **apart),
    ]
    blocks += [_errors(known), say("flops.lost")]
    numbers = {
        f"flops/n={row['n']}/m={row['m']}/SGT over one-shot": row["sgt"] / row["gram"]
        for row in timed
    }
    for name in ROUTES:
        decades = float(-np.log10(smallest_found(known, name)))
        numbers[f"flops/known eigenvalues/{name}/decades"] = decades
    return Section("Operations of the eigendecomposition", blocks, [*_checks(timed)], numbers)


def _times(rows: list[Row]) -> Table:
    names = [route.what for route in ROUTES.values()]
    cells = []
    for row in rows:
        n, m = row["n"], row["m"]
        rates = [route.operations(n, m) / row[key] / 1e9 for key, route in ROUTES.items()]
        ratios = row["sgt"] / row["gram"], predicted(n, m), row["sgt"] / row["svd"]
        seconds = [f"{row[key]:.3f}" for key in ROUTES]
        shown = [*(f"{ratio:.2f}" for ratio in ratios), ", ".join(f"{rate:.1f}" for rate in rates)]
        cells.append([f"{n:,}", str(m), *seconds, *shown])
    columns = [*names, "SGT / Gram", "counted", "SGT / SVD", "rate of each"]
    return table("flops.times", cells, columns)


def smallest_found(rows: list[Row], route: str) -> float:
    """The size of the last eigenvalue, from the largest down, before the first that is wrong."""
    own = (row for row in rows if row["route"] == route)
    right = takewhile(lambda row: row["apart"] <= RIGHT, own)
    return min((row["size"] for row in right), default=1.0)


def _errors(rows: list[Row]) -> Table:
    cells = []
    for name, route in ROUTES.items():
        apart = [row["apart"] for row in rows if row["route"] == name]
        errors = [f"{apart[STEPS * e]:.0e}" for e in SHOWN]
        cells.append([route.what, *errors, f"{smallest_found(rows, name):.0e}"])
    columns = [*(f"at 1e-{e}" if e else "at 1" for e in SHOWN), "found down to"]
    m = STEPS * DECADES + 1
    return table("flops.errors", cells, columns, n=ROWS, m=m, decades=DECADES, right=RIGHT)


def _checks(rows: list[Row]) -> Iterator[Check]:
    least = min(row["sgt"] / row["gram"] for row in rows)
    what = "SGT over one-shot (Gram matrix)"
    yield Check(f"{what}, least of all sizes", f"{least:.2f}", "> 1", least > 1)
    last = max(rows, key=lambda row: row["n"] * row["m"] ** 2)
    ratio, counted = last["sgt"] / last["gram"], predicted(last["n"], last["m"])
    limit = f">= {NEAR} x {counted:.2f} = {NEAR * counted:.2f}"
    yield Check(f"{what}, at the largest m^2 n", f"{ratio:.2f}", limit, ratio >= NEAR * counted)
