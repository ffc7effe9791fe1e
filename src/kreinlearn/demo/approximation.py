"""How well a metric that is no kernel is approximated, beside the smallest error possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.nystrom.schemes import SELECTORS, VECTORS_ONLY
from kreinlearn.solvers.spectrum import indefiniteness_of

Array = NDArray[Any]
RANKS = (5, 10, 25, 50, 100)
LANDMARKS_PER_RANK = 2
REPEATS = 3
TRIPLES = 200_000  # drawn for the triangle inequality
TRIANGLE_RTOL = 1e-12
PAPER = ("leverage", "kmeans++")  # shown with the paper's core too
SCHEMES = [(name, "ls") for name in SELECTORS if name not in VECTORS_ONLY]
SCHEMES += [(name, "plain") for name in PAPER]


@dataclass(frozen=True)
class Findings:
    """Eigenvalues by decreasing magnitude, and the error over the optimum of every run."""

    eigenvalues: Array  # (r,)
    ranks: tuple[int, ...]
    optimal: Array  # (ranks,), relative to the norm of K
    ratios: dict[tuple[str, str], Array]  # (landmarks, core) -> (ranks, REPEATS)


def best_errors(eigenvalues: Array, ranks: Sequence[int]) -> Array:
    """Frobenius error of the best approximation of each rank: the root of the squares left out."""
    squares = np.square(eigenvalues)
    return np.sqrt([squares[k:].sum() for k in ranks])


def triangle_violations(D: Array, rng: np.random.Generator) -> float:
    """Share of random triples with d(i, k) > d(i, j) + d(j, k)."""
    i, j, k = rng.integers(len(D), size=(3, TRIPLES))
    return float(np.mean(D[i, k] > (D[i, j] + D[j, k]) * (1 + TRIANGLE_RTOL)))


def centred(K: Array) -> Array:
    """J K J: a model's origin lies amid its landmarks, here it is moved amid all objects."""
    means = K.mean(axis=1)
    return np.asarray(K - means[:, None] - means + means.mean())


def findings(
    X: Sequence[Array], K: Array, eigenvalues: Array, seed: int, tick: Callable[[str], object]
) -> Findings:
    """Every scheme at every rank, over the smallest error; ``tick`` is called after each run."""
    ranks = usable_ranks(len(X))
    best = best_errors(eigenvalues, ranks)
    errors = approximate(X, K, seed, tick)
    ratios = {scheme: table / best[:, None] for scheme, table in errors.items()}
    return Findings(eigenvalues, ranks, best / np.linalg.norm(K), ratios)


def n_runs(n: int) -> int:
    return len(SCHEMES) * len(usable_ranks(n)) * REPEATS


def approximate(
    X: Sequence[Array], K: Array, seed: int, tick: Callable[[str], object]
) -> dict[tuple[str, str], Array]:
    """Frobenius errors (ranks, repeats) for each pair of landmark scheme and core."""
    ranks = usable_ranks(len(X))
    errors = {scheme: np.empty((len(ranks), REPEATS)) for scheme in SCHEMES}
    for (landmarks, core), table in errors.items():
        for at in np.ndindex(table.shape):
            model = KreinNystroem(
                kernel="hausdorff",
                n_landmarks=LANDMARKS_PER_RANK * ranks[at[0]],
                rank=ranks[at[0]],
                landmarks=landmarks,
                core=core,
                random_state=seed + at[1],
            )
            table[at] = np.linalg.norm(K - centred(model.fit(X).approximate(X)))
            tick("approximating")
    return errors


def usable_ranks(n: int) -> tuple[int, ...]:
    return tuple(k for k in RANKS if LANDMARKS_PER_RANK * k <= n)


def inspected(y: Array, eigenvalues: Array, violations: float) -> Table:
    sides, counts = np.unique(y, return_counts=True)
    classes = ", ".join(f"{count} with {k} sides" for k, count in zip(sides, counts, strict=True))
    positive, negative = int(np.sum(eigenvalues > 0)), int(np.sum(eigenvalues < 0))
    table = Table.grid(padding=(0, 3))
    table.title, table.title_justify = "Polygons under the Hausdorff distance", "left"
    table.add_row("objects", f"{len(y)}: {classes}")
    share = f"{violations:.2%} of" if violations else "none in"
    table.add_row("triangle violations", f"{share} {TRIPLES:,} triples")
    table.add_row("similarity", "K = -1/2 J (D o D) J")
    table.add_row("eigenvalues", f"{positive} positive, {negative} negative")
    table.add_row("indefiniteness", f"{indefiniteness_of(eigenvalues):.1%} of their magnitude")
    return table


def compared(found: Findings) -> Table:
    table = Table(
        title=f"Error / smallest possible at rank k, {LANDMARKS_PER_RANK} k landmarks",
        caption=f"medians of {REPEATS}; core ls: least squares, the default; plain: the paper's",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("landmarks", no_wrap=True)
    table.add_column("core", no_wrap=True)
    for k in found.ranks:
        table.add_column(f"k = {k}", justify="right", no_wrap=True)
    table.add_column("worst", justify="right", no_wrap=True)
    for (landmarks, core), ratios in found.ratios.items():
        medians = [in_figures(value) for value in np.median(ratios, axis=1)]
        table.add_row(landmarks, core, *medians, in_figures(ratios.max()))
    table.add_section()
    table.add_row("smallest error", "", *(f"{share:.1%}" for share in found.optimal), "")
    return table


def in_figures(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"
