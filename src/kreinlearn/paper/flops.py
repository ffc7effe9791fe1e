"""The discussion's count of operations: one-shot 3 m^2 n + 3 m^3, SGT 7 m^2 n + 2 m^3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kreinlearn.kernels import resolve
from kreinlearn.nystrom.core import landmark_map, one_shot, one_shot_svd, pivot_rows, squared_route
from kreinlearn.paper.scale import Scale
from kreinlearn.paper.size_time import DIMENSIONS, fastest
from kreinlearn.paper.tasks import Measurements, Row, Task
from kreinlearn.report import Check, Section, Table
from kreinlearn.sums.moments import gram_of

Array = NDArray[Any]
NEAR = 0.7  # of the predicted ratio that is to be reached at the largest size
ROWS, DECADES, STEPS = 600, 12, 2  # of a matrix with known eigenvalues; steps to a decade
RIGHT = 0.01  # relative error of an eigenvalue that is found
SHOWN = (0, 2, 4, 6, 8)  # decades


# The routes: from C = k(X, Z) and K_ZZ to eigenvalues and eigenvectors on all objects


class Route(NamedTuple):
    what: str
    run: Callable[[Array, Array], Array]  # C (n, m), K_ZZ -> eigenvalues
    n_terms: int  # claimed operations: n_terms m^2 n + m_terms m^3
    m_terms: int

    def operations(self, n: int, m: int) -> int:
        return self.n_terms * m * m * n + self.m_terms * m**3


def by_gram(C: Array, K_ZZ: Array) -> Array:
    W, S = landmark_map(K_ZZ)
    E, Lambda = one_shot(gram_of(C).matrix, W, S)
    C @ E  # the eigenvectors
    return Lambda


def by_svd(C: Array, K_ZZ: Array) -> Array:
    E, Lambda = one_shot_svd(C, *landmark_map(K_ZZ))
    C @ E
    return Lambda


def by_squares(C: Array, K_ZZ: Array) -> Array:
    return squared_route(C, K_ZZ)[1]  # it forms the eigenvectors C E on its way


ROUTES = {
    "gram": Route("one-shot, Gram matrix", by_gram, 3, 3),
    "svd": Route("one-shot, thin SVD", by_svd, 3, 3),
    "sgt": Route("SGT", by_squares, 7, 2),
}


def predicted(n: int, m: int) -> float:
    """Operations of SGT over those of one-shot."""
    return ROUTES["sgt"].operations(n, m) / ROUTES["gram"].operations(n, m)


# Measuring


def tasks(scale: Scale) -> list[Task]:
    at = f"flops/{scale.name}"
    timings = [
        Task(f"{at}/n {n} m {m}", partial(_timed, n, m, scale), 8e-9 * n * m * m, alone=True)
        for n, m in scale.flop_sizes
    ]
    return [*timings, Task(f"{at}/known eigenvalues", partial(_accuracy, scale.seed), 0.5)]


def _timed(n: int, m: int, scale: Scale) -> list[Row]:
    rng = np.random.default_rng(scale.seed)
    X = rng.normal(size=(n, DIMENSIONS))
    C = np.asarray(resolve("delta_gauss").fit(X, rng).columns(X[:m])(X))
    row: Row = {"n": n, "m": m}
    found: dict[str, Array] = {}
    for name, route in ROUTES.items():
        found[name], spent = fastest(partial(route.run, C, C[:m]), scale.repeats)
        row[name] = spent.cpu
    row |= {f"{name} apart": float(nearest(found[name], found["svd"]).max()) for name in ROUTES}
    return [row]


def nearest(found: Array, exact: Array) -> Array:
    """Relative distance of every exact eigenvalue to the nearest that was found."""
    return np.asarray(np.abs(found - exact[:, None]).min(axis=1) / np.abs(exact))


def prescribed(seed: int) -> tuple[Array, Array, Array]:
    """C, K_ZZ of a matrix of rank m, which m of its columns determine, and its eigenvalues."""
    m = STEPS * DECADES + 1
    U = np.linalg.qr(np.random.default_rng(seed).normal(size=(ROWS, m)))[0]
    Lambda = 10.0 ** (-np.arange(m) / STEPS) * (-1.0) ** np.arange(m)
    Z = pivot_rows(U, m)
    C = (U * Lambda) @ U[Z].T
    return C, 0.5 * (C[Z] + C[Z].T), Lambda


def _accuracy(seed: int) -> list[Row]:
    C, K_ZZ, Lambda = prescribed(seed)
    return [
        {"route": name, "size": abs(size), "apart": apart}
        for name, route in ROUTES.items()
        for size, apart in zip(
            Lambda.tolist(), nearest(route.run(C, K_ZZ), Lambda).tolist(), strict=True
        )
    ]


# Reading


def section(scale: Scale, measurements: Measurements) -> Section:
    rows = [row for task in tasks(scale) for row in measurements.get(task.key, [])]
    timed, known = [r for r in rows if "n" in r], [r for r in rows if "route" in r]
    what = Section("Operations of the eigendecomposition", [_opening(scale)])
    if timed:
        what.blocks += [_times(timed), _conclusion(timed)]
    if known:
        what.blocks += [_errors(known), _lost(known)]
    if not rows:
        what.blocks.append("Nothing of it has been measured.")
    what.checks += _checks(timed)
    what.numbers |= {
        f"flops/n={r['n']}/m={r['m']}/SGT over one-shot": r["sgt"] / r["gram"] for r in timed
    }
    what.numbers |= {
        f"flops/known eigenvalues/{name}/decades": float(-np.log10(smallest_found(known, name)))
        for name in ROUTES
        if known
    }
    return what


def _opening(scale: Scale) -> str:
    return (
        "The paper's discussion counts 3 m^2 n + 3 m^3 operations for its one-shot "
        "eigendecomposition from m landmarks, and 7 m^2 n + 2 m^3 for that of Schleif, "
        "Gisbrecht and Tino (SGT): for n much larger than m a ratio of 7/3. Here the routes of "
        "the library are timed, one thread, kernel values given: from C = k(X, Z) and K_ZZ to the "
        "eigenvalues and the eigenvectors on all n objects, delta-gauss on standard normal "
        f"vectors, d = {DIMENSIONS}; least CPU seconds of {scale.repeats} runs or more. One-shot "
        "is run from the Gram matrix C'C, which the library does, and by the thin SVD of "
        "C U |D|^-1/2, which the paper describes."
    )


def _times(rows: list[Row]) -> Table:
    names = [route.what for route in ROUTES.values()]
    header = ["n", "m", *names, "SGT / Gram", "counted", "SGT / SVD", "rate of each"]
    table = Table("CPU seconds of the eigendecomposition, and ratios", header)
    for row in rows:
        n, m = row["n"], row["m"]
        rates = [route.operations(n, m) / row[key] / 1e9 for key, route in ROUTES.items()]
        table.rows.append([
            f"{n:,}", str(m), *(f"{row[key]:.3f}" for key in ROUTES),
            f"{row['sgt'] / row['gram']:.2f}", f"{predicted(n, m):.2f}",
            f"{row['sgt'] / row['svd']:.2f}", ", ".join(f"{rate:.1f}" for rate in rates),
        ])  # fmt: skip
    table.notes = ["rate: counted operations a nanosecond, in the order of the routes."]
    return table


def _conclusion(rows: list[Row]) -> str:
    gram, svd = ([row["sgt"] / row[key] for row in rows] for key in ("gram", "svd"))
    counted = [predicted(row["n"], row["m"]) for row in rows]
    apart = [max(row[f"{key} apart"] for row in rows) for key in ("gram", "sgt")]
    faster = sum(ratio > 1 for ratio in svd)
    text = (
        f"SGT takes {min(gram):.2f} to {max(gram):.2f} times as long as one-shot from the Gram "
        f"matrix, where {min(counted):.2f} to {max(counted):.2f} are counted. By the thin SVD "
        f"one-shot is faster than SGT at {faster} of {len(rows)} sizes (SGT / SVD {min(svd):.2f} "
        f"to {max(svd):.2f})"
    )
    if faster < len(rows):
        text += (
            ": by its count the SVD runs at a lower rate than the other routes, that is, it is "
            "more work than it is counted as"
        )
    if faster < len(rows) and min(gram) > 1:
        text += (
            ". The claim holds for the one-shot decomposition from the Gram matrix, not for its "
            "description by an SVD"
        )
    return text + (
        ". The eigenvalues of these matrices agree: against the thin SVD they differ by "
        f"{apart[0]:.0e} (Gram matrix) and {apart[1]:.0e} (SGT) of their size at most."
    )


def smallest_found(rows: list[Row], route: str) -> float:
    """Size of the last eigenvalue, from the largest down, before one is missed."""
    size = 1.0
    for row in rows:
        if row["route"] == route:
            if row["apart"] > RIGHT:
                break
            size = row["size"]
    return size


def _errors(rows: list[Row]) -> Table:
    header = ["route", *(f"at 1e-{e}" if e else "at 1" for e in SHOWN), "found down to"]
    table = Table("Relative error of known eigenvalues, by their size", header)
    for name, route in ROUTES.items():
        apart = [row["apart"] for row in rows if row["route"] == name]
        cells = [f"{apart[STEPS * e]:.0e}" for e in SHOWN]
        table.rows.append([route.what, *cells, f"{smallest_found(rows, name):.0e}"])
    table.notes = [
        f"n = {ROWS}, rank m = {STEPS * DECADES + 1}, alternating signs, sizes from 1 to "
        f"1e-{DECADES}; found: up to {RIGHT:.0%}, and all larger ones too. 1 or more: lost."
    ]
    return table


def _lost(rows: list[Row]) -> str:
    found = {name: smallest_found(rows, name) for name in ROUTES}
    return (
        "Small eigenvalues are another matter. Where they are known, SGT, which squares the "
        f"matrix, finds them down to {found['sgt']:.0e} of the largest; one-shot from "
        f"the Gram matrix down to {found['gram']:.0e}, and by the thin SVD to {found['svd']:.0e}."
    )


def _checks(rows: list[Row]) -> list[Check]:
    faster = "SGT over one-shot (Gram matrix), least of all sizes"
    near = "SGT over one-shot (Gram matrix), at the largest m^2 n"
    if not rows:
        return [Check(faster, "", "> 1", None), Check(near, "", "", None)]
    least = min(row["sgt"] / row["gram"] for row in rows)
    last = max(rows, key=lambda row: row["n"] * row["m"] ** 2)
    ratio, counted = last["sgt"] / last["gram"], predicted(last["n"], last["m"])
    limit = f">= {NEAR} x {counted:.2f} = {NEAR * counted:.2f}"
    return [
        Check(faster, f"{least:.2f}", "> 1", least > 1),
        Check(near, f"{ratio:.2f}", limit, ratio >= NEAR * counted),
    ]
