"""The picture of the demonstration: spectrum, approximation and learning; readable in grey."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kreinlearn.plotting import SpectrumDisplay
from kreinlearn.plotting.comparison import draw_errors
from kreinlearn.plotting.style import log_ticks, mark, tidy
from reproduction.demo.approximation import LANDMARKS_PER_RANK, REPEATS, Findings
from reproduction.demo.learning import FOLDS, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(findings: Findings, scores: Sequence[Score], output: Path) -> None:
    """Draw the spectrum and the approximations above, the errors and seconds of methods below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 8.4), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.2), height_ratios=(1.15, 1))
    SpectrumDisplay(findings.eigenvalues, relative=True).plot(figure.add_subplot(grid[0, 0]))
    _draw_ratios(figure.add_subplot(grid[0, 1]), findings)
    lower = grid[1, :].subgridspec(1, 2, width_ratios=(1.4, 1))
    errors = figure.add_subplot(lower[0])
    _draw_errors(errors, scores)
    _draw_seconds(figure.add_subplot(lower[1], sharey=errors), scores)
    figure.savefig(output, format="png", dpi=150)


def _draw_ratios(axes: Axes, findings: Findings) -> None:
    colours = ("#08306b", "#2171b5", "#6baed6", "#000000", "#a63603", "#fd8d3c")
    for at, ((landmarks, core), ratios) in enumerate(findings.ratios.items()):
        middle = np.median(ratios, axis=1)
        # Marks stand beside each other, so that none hides another.
        x = np.array(findings.ranks) * 1.025 ** (at - (len(findings.ratios) - 1) / 2)
        axes.errorbar(
            x, middle, np.abs(middle - [ratios.min(1), ratios.max(1)]),
            linestyle="-" if core == "ls" else "--", color=colours[at % len(colours)],
            marker="osD^xP"[at % 6], markersize=5, linewidth=1.2, elinewidth=0.8, capsize=2,
            label=f"{landmarks}, {core}",
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle=":", label="smallest possible")
    axes.set(xscale="log", yscale="log", xlabel="rank k", ylabel="error / smallest possible")
    mark(axes.xaxis, list(findings.ranks))
    mark(axes.yaxis, log_ticks(*axes.get_ylim()))
    axes.set_title(f"Approximation from {LANDMARKS_PER_RANK}k landmarks (bars: {REPEATS} draws)")
    tidy(axes)
    axes.legend(title="landmarks, core", loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_errors(axes: Axes, scores: Sequence[Score]) -> None:
    means = [100 * score.mean for score in scores]
    errors = [100 * score.standard_error for score in scores]
    names = [f"{score.method}, {score.chosen.landmarks}" for score in scores]
    draw_errors(axes, names, means, errors, [_is_krein(score) for score in scores])
    axes.set_xlim(left=0)
    axes.set(ylabel="method, landmarks", xlabel=f"% wrong in {FOLDS} folds (bars: standard error)")
    axes.set_title("Pentagon or heptagon? (filled: Krein learners)")
    tidy(axes)


def _draw_seconds(axes: Axes, scores: Sequence[Score]) -> None:
    for row, score in enumerate(scores):
        seconds = float(np.median(score.seconds))
        face = "black" if _is_krein(score) else "white"
        axes.plot(seconds, row, "o", color="black", markerfacecolor=face, markersize=6)
    axes.tick_params(labelleft=False)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds of a fit, including tuning (median)")
    axes.set_title("What it takes")
    tidy(axes)


def _is_krein(score: Score) -> bool:
    return score.method.startswith("Krein")
