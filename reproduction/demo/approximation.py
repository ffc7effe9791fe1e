"""How well a metric that is no kernel is approximated, beside the smallest error possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import KernelCenterer

from kreinlearn import Inspection, KreinNystroem, Landmarks
from kreinlearn.plotting.ranks import smallest_errors
from kreinlearn.report.model import Table

Array = np.ndarray
RANKS = (5, 10, 25, 50, 100)
LANDMARKS_PER_RANK = 2
REPEATS = 3
PAPER = ("leverage", "kmeans++")  # these are shown with the paper's core, too
SCHEMES = [(name, "ls") for name in ("uniform", *PAPER, "greedy_kmeans++")]  # landmarks, core
SCHEMES += [(name, "plain") for name in PAPER]


@dataclass(frozen=True)
class Findings:
    """The eigenvalues of K up to a factor, and errors divided by the smallest possible error."""

    eigenvalues: Array  # (r,), by decreasing magnitude
    ranks: tuple[int, ...]
    optimal: Array  # (ranks,), relative to the norm of K
    ratios: dict[tuple[str, str], Array]  # (landmarks, core) -> (ranks, REPEATS)


def findings(
    X: Sequence[Array], K: Array, eigenvalues: Array, seed: int, tick: Callable[[str], object]
) -> Findings:
    """Run every scheme at every rank; ``tick`` is called after all runs of a scheme."""
    ranks = tuple(k for k in RANKS if LANDMARKS_PER_RANK * k <= len(X))
    optimal = smallest_errors(eigenvalues, ranks)
    ratios = {scheme: np.empty((len(ranks), REPEATS)) for scheme in SCHEMES}
    for (scheme, core), table in ratios.items():
        for k, repeat in np.ndindex(table.shape):
            landmarks = Landmarks(LANDMARKS_PER_RANK * ranks[k], scheme, core)
            model = KreinNystroem(
                "hausdorff", landmarks=landmarks, rank=ranks[k], random_state=seed + repeat
            )
            approximate = model.fit(X).approximate(X)  # its origin is the mean of the landmarks
            error = np.linalg.norm(K - KernelCenterer().fit_transform(approximate))
            table[k, repeat] = error / (np.linalg.norm(K) * optimal[k])
        tick("approximating")
    return Findings(eigenvalues, ranks, optimal, ratios)


def inspected(y: Array, inspection: Inspection) -> Table:
    """What the polygons and their similarity K = -1/2 J (D o D) J are like."""
    sides, counts = np.unique(y, return_counts=True)
    classes = ", ".join(f"{count} with {k} sides" for k, count in zip(sides, counts, strict=True))
    rows = [["classes", classes], *map(list, inspection.rows())]
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
