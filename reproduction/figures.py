"""Figures in the paper's layout: rows of small panels with our curves and the paper's points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kreinlearn.plotting.style import COLOURS, MARKS, MISSING, log_ticks, mark, short
from kreinlearn.report.model import Picture
from kreinlearn.report.svg import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

PAPER = "the paper"
FENCE = 3.0  # a panel ends so many quartile ranges beyond the quartiles
# Inches: the widths of the figure and of the widest panel, the height of a row of panels,
WIDTH, WIDEST, HEIGHT = 10.0, 3.2, 2.0
# the room beside all panels, below them and between two, and a line of the legend.
LEFT, BOTTOM, BESIDE, LEGEND = 0.4, 0.35, 0.36, 0.19


class Line(NamedTuple):
    """One curve; ``printed`` points are the paper's and hollow, in the colour of the label."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    printed: bool = False
    dashed: bool = False


class Panel(NamedTuple):
    """A small picture with several curves."""

    title: str
    lines: Sequence[Line]


Look = tuple[str, str]  # the colour and the mark of a label, which are the same in all panels


def drawn(
    name: str, panels: Sequence[Panel], *, caption: str, alt: str, xlabel: str, ylabel: str,
    columns: int = 5, xlog: bool = False, ylog: bool = False,
) -> Picture | str:  # fmt: skip
    """A picture with one legend for all panels, or a sentence if matplotlib is missing."""
    looks = looks_of(panels)
    columns = max(1, min(columns, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    panel_width = min(WIDEST, (WIDTH - LEFT) / columns)
    width = LEFT + columns * panel_width
    abreast = legend_columns([*looks, PAPER], width)
    legend = LEGEND * math.ceil((len(looks) + 1) / abreast)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for panel, axes in zip_longest(panels, grid):
            if panel is None:
                axes.remove()
            else:
                axes.set_title(panel.title, fontsize=fitting(panel.title, panel_width - BESIDE))
                _draw(axes, panel, looks, xlog, ylog)
        figure.supxlabel(xlabel, fontsize=9)
        figure.supylabel(ylabel, fontsize=9)
        figure.legend(handles=entries_of(panels, looks), loc="outside upper center", ncols=abreast)

    try:
        svg = drawing((width, legend + rows * HEIGHT + BOTTOM), draw)
    except ImportError:
        return f'The figure "{caption}" is not drawn: {MISSING}.'
    return Picture(name, caption, alt, svg)


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """The look of every label, in the order in which they occur."""
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    return {
        label: (COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]) for i, label in enumerate(labels)
    }


# One panel


def drawable(line: Line, xlog: bool, ylog: bool) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line that can be drawn."""
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    good = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not xlog)) & ((y > 0) | (not ylog))
    return x[good], y[good]


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look], xlog: bool, ylog: bool) -> None:
    curves = [(line, *drawable(line, xlog, ylog)) for line in panel.lines]
    xs, ys = (np.concatenate([[], *(c[i] for c in curves)]) for i in (1, 2))
    if not len(xs):
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
        return
    axes.set(xscale="log" if xlog else "linear", yscale="log" if ylog else "linear")
    low, high = limits(ys, ylog)
    axes.set_ylim(low, high)
    for line, x, y in curves:
        axes.plot(x, y, **style(line, looks))
        colour, _ = looks[line.label]
        for edge, beyond, caret in ((high, y > high, 6), (low, y < low, 7)):
            at = x[beyond], np.full(beyond.sum(), edge)
            axes.plot(*at, linestyle="", marker=caret, clip_on=False, in_layout=False, color=colour)
    if xlog:
        mark(axes.xaxis, rank_ticks(xs))
    if ylog:
        mark(axes.yaxis, log_ticks(low, high))


def style(line: Line, looks: dict[str, Look]) -> dict[str, Any]:
    """How a curve and its entry in the legend are drawn."""
    colour, mark = looks[line.label]
    kind = _PRINTED if line.printed else {"linestyle": "--" if line.dashed else "-"}
    return {**kind, "color": colour, "marker": mark}


_PRINTED: dict[str, Any] = {
    "linestyle": ":", "linewidth": 0.8, "markersize": 5.5, "markerfacecolor": "none",
    "markeredgewidth": 0.8,
}  # fmt: skip


def limits(y: np.ndarray, log: bool) -> tuple[float, float]:
    """The ends of an axis: a margin around y, without values that are far from the rest."""
    y = np.log(y) if log else y
    first, third = np.quantile(y, (0.25, 0.75))
    reach = FENCE * (third - first) or np.inf  # where half of the values are equal, all are shown
    inner = y[(y >= first - reach) & (y <= third + reach)]
    margin = 0.06 * (np.ptp(inner) or abs(inner[0]) or 1.0)
    low, high = inner.min() - margin, inner.max() + margin
    return (math.exp(low), math.exp(high)) if log else (float(low), float(high))


def rank_ticks(x: np.ndarray) -> list[float]:
    """The values themselves if there is room for their labels, else round numbers."""
    values = np.unique(x).tolist()
    room = math.log(values[-1] / values[0])
    widest = max(len(short(value)) for value in values)
    if all(math.log(b / a) > 0.05 * widest * room for a, b in pairwise(values)):
        return values
    return log_ticks(values[0], values[-1])


def fitting(title: str, width: float) -> float:
    """The font size, in points, at which a title fits into a width in inches."""
    return min(9.0, 9.0 * (width + 0.1) / (0.066 * max(1, len(title))))


# The legend


def entries_of(panels: Sequence[Panel], looks: dict[str, Look]) -> list[Line2D]:
    """The entries of the legend: one per label, and one for the paper's points."""
    from matplotlib.lines import Line2D

    lines = [line for panel in panels for line in panel.lines]
    lines.sort(key=lambda line: line.printed)
    firsts = {label: next(l for l in lines if l.label == label) for label in looks}
    entries = [Line2D([], [], label=label, **style(l, looks)) for label, l in firsts.items()]
    if lines and lines[-1].printed:
        entries.append(Line2D([], [], **_PRINTED, color="#555555", marker="o", label=PAPER))
    return entries


def legend_columns(labels: Sequence[str], width: float) -> int:
    """The number of columns with which the legend is no wider than the figure, and even."""
    fitting = max(1, int(width / (0.5 + 0.075 * max(map(len, labels)))))
    return math.ceil(len(labels) / math.ceil(len(labels) / fitting))
