"""The demonstration: a metric that is no kernel, looked at and approximated; make demo runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kreinlearn.blocks import as_generator
from kreinlearn.datasets import make_polygons
from kreinlearn.estimators.transformer import KreinNystroem
from kreinlearn.kernels.dissimilarity import double_centre
from kreinlearn.kernels.objects import Hausdorff
from kreinlearn.landmarks import SELECTORS, VECTORS_ONLY
from kreinlearn.spectrum import indefiniteness_of, signed_eigh

Array = NDArray[Any]
RANKS = (5, 10, 25, 50, 100)
LANDMARKS_PER_RANK = 2
REPEATS = 3
LARGEST = 5000  # polygons
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


def approximate(
    X: Sequence[Array], K: Array, seed: int, tick: Callable[[], object]
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
            tick()
    return errors


def usable_ranks(n: int) -> tuple[int, ...]:
    return tuple(k for k in RANKS if LANDMARKS_PER_RANK * k <= n)


def run(n: int, seed: int, console: Console) -> Findings:
    """Make the polygons, print what they are like, approximate them, print how well it went."""
    X, y = make_polygons(n, random_state=seed)
    D = Hausdorff()(X)
    K = double_centre(D)
    eigenvalues = signed_eigh(K).D
    console.print(inspected(y, eigenvalues, triangle_violations(D, as_generator(seed))))
    ranks = usable_ranks(n)
    best = best_errors(eigenvalues, ranks)
    layout = (TextColumn("approximating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*layout, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(SCHEMES) * len(ranks) * REPEATS)
        errors = approximate(X, K, seed, lambda: progress.advance(task))
    ratios = {scheme: table / best[:, None] for scheme, table in errors.items()}
    found = Findings(eigenvalues, ranks, best / np.linalg.norm(K), ratios)
    console.print(compared(found))
    return found


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


def draw(found: Findings, output: Path) -> None:
    """Two panels: the signed spectrum, and the error over the optimum against the rank."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    _draw_spectrum(left, found.eigenvalues)
    _draw_ratios(right, found)
    figure.savefig(output, format="png", dpi=150)


def _draw_spectrum(axes: Any, eigenvalues: Array) -> None:
    styles = {
        "positive": (eigenvalues[eigenvalues > 0], "#08306b", "-", "o", "#08306b"),
        "negative": (-eigenvalues[eigenvalues < 0], "#e6550d", "--", "s", "white"),
    }
    for sign, (values, colour, line, marker, face) in styles.items():
        number = np.arange(1, len(values) + 1)
        shown = np.unique(np.geomspace(1, len(values), 25).astype(int)) - 1
        axes.plot(
            number, values, line, color=colour, marker=marker, markerfacecolor=face,
            markevery=shown.tolist(), markersize=5, linewidth=1.2, label=f"{sign} ({len(values)})",
        )  # fmt: skip
    axes.set(
        xscale="log", yscale="log", xlabel="position among those of its sign", ylabel="|eigenvalue|"
    )
    axes.set_title(f"Signed spectrum: indefiniteness {indefiniteness_of(eigenvalues):.1%}")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")


def _draw_ratios(axes: Any, found: Findings) -> None:
    colours = ("#08306b", "#2171b5", "#6baed6", "#000000", "#a63603", "#fd8d3c")
    for at, ((landmarks, core), ratios) in enumerate(found.ratios.items()):
        middle = np.median(ratios, axis=1)
        aside = 1.025 ** (at - (len(found.ratios) - 1) / 2)  # so that marks do not hide each other
        axes.errorbar(
            aside * np.array(found.ranks), middle, np.abs(middle - [ratios.min(1), ratios.max(1)]),
            linestyle="-" if core == "ls" else "--", color=colours[at % len(colours)],
            marker="osD^xP"[at % 6], markersize=5, linewidth=1.2, elinewidth=0.8, capsize=2,
            label=f"{landmarks}, {core}",
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle=":", label="smallest possible")
    axes.set(xscale="log", yscale="log", xlabel="rank k", ylabel="error / smallest possible")
    axes.set_xticks(found.ranks, [str(k) for k in found.ranks])
    low, high = axes.get_ylim()
    ticks = [t * d for d in 10.0 ** np.arange(12) for t in (1, 2, 5) if low <= t * d <= high]
    axes.set_yticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.minorticks_off()
    axes.set_title(f"Approximation from {LANDMARKS_PER_RANK}k landmarks (bars: {REPEATS} draws)")
    axes.grid(alpha=0.3)
    axes.legend(title="landmarks, core", loc="center left", bbox_to_anchor=(1.0, 0.5))


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m kreinlearn.demo",
        description="A metric that is no kernel, looked at and approximated.",
        allow_abbrev=False,
    )
    result.add_argument("--n", type=int, default=1000, help="number of polygons (1000)")
    result.add_argument("--seed", type=int, default=0, help="of polygons and landmarks (0)")
    result.add_argument(
        "--output", type=Path, default=Path("demo.png"), help="the picture (demo.png)"
    )
    return result


def checked(argv: Sequence[str] | None) -> argparse.Namespace:
    commands = parser()
    options = commands.parse_args(argv)
    smallest = LANDMARKS_PER_RANK * RANKS[1]
    if not smallest <= options.n <= LARGEST:
        commands.error(f"--n {options.n}: from {smallest} to {LARGEST}, as K is formed to compare")
    if options.seed < 0:
        commands.error(f"--seed {options.seed}: a seed is not negative")
    if not options.output.absolute().parent.is_dir():
        commands.error(f"--output {options.output}: there is no such folder")
    return options


def saved(found: Findings, output: Path) -> int:
    try:
        draw(found, output)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print('no picture: matplotlib is missing; pip install "kreinlearn[plot]"', file=sys.stderr)
        return 1
    except OSError as error:
        print(f"no picture: {error}", file=sys.stderr)
        return 1
    print(f"picture: {output.absolute()}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; the exit status is 0, 1 without a picture, 130 after Ctrl-C."""
    options = checked(argv)
    try:
        return saved(run(options.n, options.seed, Console()), options.output)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
