"""How well a metric that is no kernel is approximated, beside the smallest error possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kreinlearn import KreinNystroem, Landmarks
from kreinlearn.report import Table

Array = np.ndarray
RANKS = (5, 10, 25, 50, 100)
LANDMARKS_PER_RANK = 2
REPEATS = 3
TRIPLES = 200_000  # random triples that are tried against the triangle inequality
RTOL = 1e-12  # relative size of a rounding error
PAPER = ("leverage", "kmeans++")  # these are shown with the paper's core, too
SCHEMES = [(name, "ls") for name in ("uniform", *PAPER, "greedy_kmeans++")]  # landmarks, core
SCHEMES += [(name, "plain") for name in PAPER]


@dataclass(frozen=True)
class Findings:
    """The eigenvalues of K, and all errors divided by the smallest possible error."""

    eigenvalues: Array  # (r,), by decreasing magnitude
    ranks: tuple[int, ...]
    optimal: Array  # (ranks,), relative to the norm of K
    ratios: dict[tuple[str, str], Array]  # (landmarks, core) -> (ranks, REPEATS)


def spectrum(K: Array) -> Array:
    """The eigenvalues of K by decreasing magnitude, without those that are rounding errors."""
    D = np.linalg.eigvalsh(K)
    D = D[np.argsort(-np.abs(D), kind="stable")]
    return D[np.abs(D) > max(RTOL, len(K) * np.finfo(float).eps) * np.abs(D[0])]


def best_errors(eigenvalues: Array, ranks: Sequence[int]) -> Array:
    """The Frobenius error of the best approximation of each rank."""
    squared = np.square(eigenvalues)
    return np.sqrt([squared[k:].sum() for k in ranks])


def triangle_violations(D: Array, rng: np.random.Generator) -> float:
    """The share of random triples with d(i, k) > d(i, j) + d(j, k)."""
    i, j, k = rng.integers(len(D), size=(3, TRIPLES))
    return float(np.mean(D[i, k] > (D[i, j] + D[j, k]) * (1 + RTOL)))


def centred(K: Array) -> Array:
    """J K J: moves the origin from the mean of the landmarks to the mean of all objects."""
    means = K.mean(axis=1)
    return np.asarray(K - means[:, None] - means + means.mean())


def findings(
    X: Sequence[Array], K: Array, eigenvalues: Array, seed: int, tick: Callable[[str], object]
) -> Findings:
    """Run every scheme at every rank; ``tick`` is called after each run."""
    ranks = usable_ranks(len(X))
    best, errors = best_errors(eigenvalues, ranks), approximate(X, K, seed, tick)
    ratios = {scheme: table / best[:, None] for scheme, table in errors.items()}
    return Findings(eigenvalues, ranks, best / np.linalg.norm(K), ratios)


def n_runs(n: int) -> int:
    """The number of approximations of n polygons."""
    return len(SCHEMES) * len(usable_ranks(n)) * REPEATS


def approximate(
    X: Sequence[Array], K: Array, seed: int, tick: Callable[[str], object]
) -> dict[tuple[str, str], Array]:
    """The Frobenius errors (ranks, repeats) of each pair of landmark scheme and core."""
    ranks = usable_ranks(len(X))
    errors = {scheme: np.empty((len(ranks), REPEATS)) for scheme in SCHEMES}
    for (scheme, core), table in errors.items():
        for at in np.ndindex(table.shape):
            k, repeat = at
            landmarks = Landmarks(LANDMARKS_PER_RANK * ranks[k], scheme, core)
            model = KreinNystroem(
                "hausdorff", landmarks=landmarks, rank=ranks[k], random_state=seed + repeat
            )
            table[at] = np.linalg.norm(K - centred(model.fit(X).approximate(X)))
            tick("approximating")
    return errors


def usable_ranks(n: int) -> tuple[int, ...]:
    """The ranks for which n polygons have enough landmarks."""
    return tuple(k for k in RANKS if LANDMARKS_PER_RANK * k <= n)


def inspected(y: Array, eigenvalues: Array, violations: float) -> Table:
    """What the polygons and their similarity are like."""
    sides, counts = np.unique(y, return_counts=True)
    classes = ", ".join(f"{count} with {k} sides" for k, count in zip(sides, counts, strict=True))
    positive, negative = int(np.sum(eigenvalues > 0)), int(np.sum(eigenvalues < 0))
    iota = -eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum()
    share = f"{violations:.2%} of" if violations else "none in"
    rows = [
        ["objects", f"{len(y)}: {classes}"],
        ["triangle violations", f"{share} {TRIPLES:,} triples"],
        ["similarity", "K = -1/2 J (D o D) J"],
        ["eigenvalues", f"{positive} positive, {negative} negative"],
        ["indefiniteness", f"{iota:.1%} of their magnitude"],
    ]
    return Table("Polygons under the Hausdorff distance", ["finding", "value"], rows)


def compared(findings: Findings) -> Table:
    """One row per scheme, one column per rank."""
    rows = [
        [*scheme, *map(in_figures, np.median(ratios, axis=1)), in_figures(ratios.max())]
        for scheme, ratios in findings.ratios.items()
    ]
    rows.append(["smallest error", "", *(f"{share:.1%}" for share in findings.optimal), ""])
    title = f"Error / smallest possible at rank k, {LANDMARKS_PER_RANK} k landmarks"
    header = ["landmarks", "core", *(f"k = {k}" for k in findings.ranks), "worst"]
    note = f"medians of {REPEATS}; core ls: least squares, the default; plain: the paper's"
    return Table(title, header, rows, [note])


def in_figures(ratio: float) -> str:
    """About three figures of a ratio of errors."""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"
