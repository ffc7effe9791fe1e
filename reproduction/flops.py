"""The discussion's count of operations: one-shot 3 m^2 n + 3 m^3, SGT 7 m^2 n + 2 m^3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import scipy.linalg

from kreinlearn.kernels import resolve
from kreinlearn.report.model import Block, Check, Section, Table
from reproduction.reading import rows_of, say
from reproduction.scale import Scale
from reproduction.size_time import DIMENSIONS, fastest
from reproduction.tasks import Measurements, Row, Task

Array = np.ndarray
Pair = tuple[Array, Array]
CORE_RTOL, WHITEN_RTOL = 1e-10, 1e-6  # as in the library, of K_ZZ and of C
NEAR = 0.7  # the share of the predicted ratio that the largest size has to reach
ROWS, DECADES, STEPS = 600, 12, 2  # of a matrix with known eigenvalues, STEPS of them per decade
RIGHT = 0.01  # largest relative error of an eigenvalue that counts as right
SHOWN = (0, 2, 4, 6, 8)  # decades


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


# Measuring


def tasks(scale: Scale) -> list[Task]:
    """One timing per size, and the accuracy of the routes."""
    at = f"flops/{scale.name}"
    timings = [
        Task(f"{at}/n {n} m {m}", partial(_timed, n, m, scale), 8e-9 * n * m * m, alone=True)
        for n, m in scale.flop_sizes
    ]
    return [*timings, Task(f"{at}/known eigenvalues", partial(_accuracy, scale.seed), 0.5)]


def _timed(n: int, m: int, scale: Scale) -> list[Row]:
    rng = np.random.default_rng(scale.seed)
    X = rng.normal(size=(n, DIMENSIONS))
    C = np.asarray(resolve("delta_gauss").fit(X, rng)(X, X[:m]))
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


# Reading


def section(scale: Scale, measurements: Measurements) -> Section:
    """The seconds of the routes beside the count, and which eigenvalues they find."""
    rows = rows_of(tasks(scale), measurements)
    timed, known = [r for r in rows if "n" in r], [r for r in rows if "route" in r]
    blocks: list[Block] = [say("flops.opening", d=DIMENSIONS, repeats=scale.repeats)]
    blocks += [_times(timed), _conclusion(timed)] if timed else []
    smallest = {name: smallest_found(known, name) for name in ROUTES} if known else {}
    blocks += [_errors(known), say("flops.lost", **smallest)] if known else []
    blocks += [] if rows else ["Nothing of it has been measured."]
    numbers = {}
    for row in timed:
        name = f"flops/n={row['n']}/m={row['m']}/SGT over one-shot"
        numbers[name] = row["sgt"] / row["gram"]
    for name, size in smallest.items():
        numbers[f"flops/known eigenvalues/{name}/decades"] = float(-np.log10(size))
    return Section("Operations of the eigendecomposition", blocks, _checks(timed), numbers)


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
    table.notes = ["rate: counted operations per nanosecond, in the order of the routes."]
    return table


def _conclusion(rows: list[Row]) -> str:
    gram, svd = ([row["sgt"] / row[key] for row in rows] for key in ("gram", "svd"))
    counted = [predicted(row["n"], row["m"]) for row in rows]
    apart = [max(row[f"{key} apart"] for row in rows) for key in ("gram", "sgt")]
    faster = sum(ratio > 1 for ratio in svd)
    texts = ["times", *(["slower"] if faster < len(rows) else [])]
    texts += ["holds"] if faster < len(rows) and min(gram) > 1 else []
    values = {
        "least": min(gram), "most": max(gram), "least_counted": min(counted),
        "most_counted": max(counted), "faster": faster, "total": len(rows), "least_svd": min(svd),
        "most_svd": max(svd), "gram": apart[0], "sgt": apart[1],
    }  # fmt: skip
    return " ".join(say(f"flops.{text}", **values) for text in [*texts, "agree"])


def smallest_found(rows: list[Row], route: str) -> float:
    """The size of the last eigenvalue, from the largest down, before the first that is wrong."""
    own = (row for row in rows if row["route"] == route)
    right = takewhile(lambda row: row["apart"] <= RIGHT, own)
    return min((row["size"] for row in right), default=1.0)


def _errors(rows: list[Row]) -> Table:
    header = ["route", *(f"at 1e-{e}" if e else "at 1" for e in SHOWN), "found down to"]
    lines = []
    for name, route in ROUTES.items():
        apart = [row["apart"] for row in rows if row["route"] == name]
        cells = [f"{apart[STEPS * e]:.0e}" for e in SHOWN]
        lines.append([route.what, *cells, f"{smallest_found(rows, name):.0e}"])
    note = say("flops.note", n=ROWS, m=STEPS * DECADES + 1, decades=DECADES, right=RIGHT)
    return Table("Relative error of known eigenvalues, by their size", header, lines, [note])


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
