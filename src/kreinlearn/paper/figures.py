"""Figures in the paper's layout: rows of small panels with our curves and the paper's points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kreinlearn.plotting.style import COLOURS, MARKS, SETTINGS, log_ticks, mark, short
from kreinlearn.report import Picture
from kreinlearn.report.svg import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

PAPER = "the paper"
FENCE = 3.0  # a panel ends so many quartile ranges beyond the quartiles
# Sizes in inches: of the figure, of a row of panels and of the widest panel;
WIDTH, HEIGHT, WIDEST = 10.0, 2.0, 3.2
# and the room at the left, below, above and between panels, and for one line of the legend.
LEFT, BOTTOM, ABOVE, BESIDE, LEGEND = 0.65, 0.55, 0.28, 0.36, 0.19


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


class Look(NamedTuple):
    """The colour and the mark of a label, which are the same in all panels."""

    colour: str
    mark: str


def drawn(
    name: str, panels: Sequence[Panel], *, caption: str, alt: str, xlabel: str, ylabel: str,
    columns: int = 5, xlog: bool = False, ylog: bool = False,
) -> Picture | str:  # fmt: skip
    """A picture with one legend for all panels, or a sentence if matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return (
            f'The figure "{caption}" is not drawn: matplotlib is missing '
            '(`pip install "kreinlearn[plot]"`).'
        )
    looks = looks_of(panels)
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS}):
        columns = max(1, min(columns, len(panels)))
        rows = max(1, math.ceil(len(panels) / columns))
        entries = entries_of(panels, looks)
        width = LEFT + columns * min(WIDEST, (WIDTH - LEFT) / columns)
        abreast = legend_columns(entries, width)
        bottom = BOTTOM + LEGEND * math.ceil(len(entries) / abreast)
        figure = Figure(figsize=(width, bottom + rows * HEIGHT))
        FigureCanvasSVG(figure)
        for panel, axes in zip_longest(panels, _axes(figure, rows, columns, bottom)):
            if panel is None:
                axes.remove()
            else:
                _draw(axes, panel, looks, xlog, ylog)
        _label(figure, bottom, xlabel, ylabel)
        figure.legend(handles=entries, loc="lower center", ncols=abreast, borderaxespad=0.2)
        return Picture(name, caption, alt, drawing(figure))


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """The look of every label, in the order in which they occur."""
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    return {
        label: Look(COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)])
        for i, label in enumerate(labels)
    }


# One panel


def drawable(line: Line, xlog: bool, ylog: bool) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line that can be drawn."""
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    good = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not xlog)) & ((y > 0) | (not ylog))
    return x[good], y[good]


def _axes(figure: Figure, rows: int, columns: int, bottom: float) -> Iterator[Axes]:
    """A grid of axes with room for the titles above and the ticks below and beside them."""
    width, height = figure.get_size_inches()
    panel, above = (width - LEFT) / columns, ABOVE + 0.2
    gaps = {"wspace": BESIDE / (panel - BESIDE), "hspace": above / (HEIGHT - above)}
    ends = {"left": LEFT / width, "right": 1 - (BESIDE - 0.3) / width}
    ends |= {"bottom": bottom / height, "top": 1 - ABOVE / height}
    return iter(figure.subplots(rows, columns, squeeze=False, gridspec_kw=ends | gaps).flat)


def _label(figure: Figure, bottom: float, xlabel: str, ylabel: str) -> None:
    """Name the axes, once for all panels."""
    width, height = figure.get_size_inches()
    middle, across = (bottom + height - ABOVE) / 2 / height, (LEFT / width + 1) / 2
    figure.text(0.12 / width, middle, ylabel, rotation=90, ha="center", va="center", fontsize=9)
    figure.text(across, (bottom - 0.38) / height, xlabel, ha="center", va="center", fontsize=9)


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look], xlog: bool, ylog: bool) -> None:
    width = axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]
    axes.set_title(panel.title, fontsize=fitting(panel.title, width))
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
        colour = looks[line.label].colour
        for edge, beyond, caret in ((high, y > high, 6), (low, y < low, 7)):
            at = x[beyond], np.full(beyond.sum(), edge)
            axes.plot(*at, linestyle="", marker=caret, clip_on=False, color=colour)
    if xlog:
        mark(axes.xaxis, rank_ticks(xs))
    if ylog:
        mark(axes.yaxis, log_ticks(low, high))


def style(line: Line, looks: dict[str, Look]) -> dict[str, Any]:
    """How a curve and its entry in the legend are drawn."""
    colour, mark = looks[line.label]
    if line.printed:
        return {**_PRINTED, "color": colour, "marker": mark}
    return {"linestyle": "--" if line.dashed else "-", "color": colour, "marker": mark}


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


def legend_columns(entries: Sequence[Line2D], width: float) -> int:
    """The number of columns with which the legend is no wider than the figure, and even."""
    longest = max((len(str(entry.get_label())) for entry in entries), default=0)
    fitting = max(1, int(width / (0.5 + 0.075 * longest)))
    lines = math.ceil(len(entries) / fitting) or 1
    return math.ceil(len(entries) / lines) or 1
