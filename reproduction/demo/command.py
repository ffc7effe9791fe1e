"""The demonstration: inspect polygons, approximate their similarity, learn from it, draw it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kreinlearn import inspect
from kreinlearn.datasets import make_polygons
from kreinlearn.kernels import Hausdorff, double_centre
from kreinlearn.plotting.style import MISSING
from reproduction.demo import approximation, learning, picture
from reproduction.demo.approximation import LANDMARKS_PER_RANK, RANKS, Findings
from reproduction.demo.learning import Score

SMALLEST, LARGEST = LANDMARKS_PER_RANK * RANKS[1], 5000  # polygons


def run(n: int, seed: int, console: Console) -> tuple[Findings, list[Score]]:
    """Make the polygons, print what they are like, then approximate and classify them."""
    X, y = make_polygons(n, random_state=seed)
    D = Hausdorff()(X)
    K = double_centre(D)
    inspection = inspect(D, "precomputed_dissimilarity", y=y, n_samples=n, random_state=seed)
    approximation.inspected(y, inspection).show(console)
    learned = min(n, learning.LARGEST)
    models = learning.methods(learned, seed)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task("approximating", total=len(approximation.SCHEMES) + len(models))

        def tick(what: str) -> None:
            progress.update(task, advance=1, description=what)

        findings = approximation.findings(X, K, inspection.eigenvalues, seed, tick)
        approximation.compared(findings).show(console)
        scores = learning.scores(models, X[:learned], y[:learned], seed, tick)
    learning.table_of(scores, learned).show(console)
    return findings, scores


def parser(prog: str) -> argparse.ArgumentParser:
    """The options of the command."""
    result = argparse.ArgumentParser(
        prog=prog,
        description="A metric that is no kernel is inspected, approximated and learned from.",
        allow_abbrev=False,
    )
    result.add_argument(
        "--n", type=int, default=1000, help="the number of polygons (default: 1000)"
    )
    result.add_argument(
        "--seed", type=int, default=0, help="the seed of polygons, landmarks and folds (default: 0)"
    )
    output = "the file of the picture (default: demo.png)"
    result.add_argument("--output", type=Path, default=Path("demo.png"), help=output)
    return result


def checked(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    """The options, or an error message and the end of the program."""
    commands = parser(prog)
    options = commands.parse_args(argv)
    if not SMALLEST <= options.n <= LARGEST:
        commands.error(f"--n {options.n}: from {SMALLEST} to {LARGEST} polygons are possible")
    if options.seed < 0:
        commands.error(f"--seed {options.seed}: a seed is not negative")
    if not options.output.absolute().parent.is_dir():
        commands.error(f"--output {options.output}: there is no such folder")
    return options


def saved(findings: Findings, scores: Sequence[Score], output: Path) -> int:
    """Write the picture; returns the exit status."""
    try:
        picture.draw(findings, scores, output)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print(f"no picture: {MISSING}", file=sys.stderr)
        return 0  # all else was shown, and nobody asked for an extra
    except OSError as error:
        print(f"no picture: {error}", file=sys.stderr)
        return 1
    print(f"picture: {output.absolute()}")
    return 0


def main(argv: Sequence[str] | None = None, prog: str = "python -m reproduction demo") -> int:
    """Run the demonstration; the status is 0, 1 if no file can be written, 130 after Ctrl-C."""
    options = checked(argv, prog)
    try:
        return saved(*run(options.n, options.seed, Console()), options.output)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
