"""Figures in the paper's layout: a row of small panels, ours and the paper's points together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kreinlearn.plotting._style import COLOURS, MARKS, SETTINGS, log_ticks, mark, short
from kreinlearn.report import Picture
from kreinlearn.report.svg import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Array = NDArray[Any]

PAPER = "the paper"
FENCE = 3.0  # quartile ranges beyond the quartiles at which a panel ends
# Inches: of the figure, of a row of panels, of a panel in a row of few
WIDTH, HEIGHT, WIDEST = 10.0, 2.0, 3.2
# and the room for what stands at the left, below, above and between panels, and a line of legend.
LEFT, BOTTOM, ABOVE, BESIDE, LEGEND = 0.65, 0.55, 0.28, 0.36, 0.19


class Line(NamedTuple):
    """One curve; ``printed``: the paper's own points, drawn hollow in the colour of the label."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    printed: bool = False
    dashed: bool = False


class Panel(NamedTuple):
    title: str
    lines: Sequence[Line]


class Look(NamedTuple):
    """Of a label, the same in all panels."""

    colour: str
    mark: str


def drawn(
    name: str,
    panels: Sequence[Panel],
    *,
    caption: str,
    alt: str,
    xlabel: str,
    ylabel: str,
    columns: int = 5,
    xlog: bool = False,
    ylog: bool = False,
) -> Picture | str:
    """A picture with one legend for all panels; a sentence where matplotlib is missing."""
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
        grid = _axes(figure, rows, columns, bottom)
        for panel, axes in zip_longest(panels, grid):
            if panel is None:
                axes.remove()
            else:
                _draw(axes, panel, looks, xlog, ylog)
        _label(figure, bottom, xlabel, ylabel)
        figure.legend(handles=entries, loc="lower center", ncols=abreast, borderaxespad=0.2)
        return Picture(name, caption, alt, drawing(figure))


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """By label, in the order they come."""
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    return {
        label: Look(COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)])
        for i, label in enumerate(labels)
    }


# One panel


class Curve(NamedTuple):
    """What of a line can be drawn."""

    line: Line
    x: Array
    y: Array

    @classmethod
    def of(cls, line: Line, xlog: bool, ylog: bool) -> Curve:
        x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
        drawable = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not xlog)) & ((y > 0) | (not ylog))
        return cls(line, x[drawable], y[drawable])


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look], xlog: bool, ylog: bool) -> None:
    width = axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]
    axes.set_title(panel.title, fontsize=fitting(panel.title, width))
    curves = [Curve.of(line, xlog, ylog) for line in panel.lines]
    if not any(len(curve.x) for curve in curves):
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
        return
    axes.set(xscale="log" if xlog else "linear", yscale="log" if ylog else "linear")
    low, high = limits(np.concatenate([curve.y for curve in curves]), ylog)
    axes.set_ylim(low, high)
    for curve in curves:
        axes.plot(curve.x, curve.y, **style(curve.line, looks))
        colour = looks[curve.line.label].colour
        for edge, beyond, caret in ((high, curve.y > high, 6), (low, curve.y < low, 7)):
            x = curve.x[beyond]
            axes.plot(
                x, np.full(len(x), edge), linestyle="", marker=caret, clip_on=False, color=colour
            )
    if xlog:
        mark(axes.xaxis, rank_ticks(np.concatenate([curve.x for curve in curves])))
    if ylog:
        mark(axes.yaxis, log_ticks(low, high))


def style(line: Line, looks: dict[str, Look]) -> dict[str, Any]:
    """Of a curve and of its entry in the legend."""
    colour, mark = looks[line.label]
    if line.printed:
        return {**_PRINTED, "color": colour, "marker": mark}
    return {"linestyle": "--" if line.dashed else "-", "color": colour, "marker": mark}


_PRINTED: dict[str, Any] = {
    "linestyle": ":", "linewidth": 0.8, "markersize": 5.5, "markerfacecolor": "none",
    "markeredgewidth": 0.8,
}  # fmt: skip


def limits(y: Array, log: bool) -> tuple[float, float]:
    """All of y and a margin, but not what lies far from the rest: that is marked at the edge."""
    y = np.log(y) if log else y
    first, third = np.quantile(y, (0.25, 0.75))
    reach = FENCE * (third - first) or np.inf  # half of them one value: all are shown
    inner = y[(y >= first - reach) & (y <= third + reach)]
    margin = 0.06 * (np.ptp(inner) or abs(inner[0]) or 1.0)
    low, high = inner.min() - margin, inner.max() + margin
    return (math.exp(low), math.exp(high)) if log else (float(low), float(high))


def rank_ticks(x: Array) -> list[float]:
    """The values themselves where there is room for their labels."""
    values = np.unique(x).tolist()
    room = math.log(values[-1] / values[0])
    widest = max(len(short(value)) for value in values)
    if all(math.log(b / a) > 0.05 * widest * room for a, b in pairwise(values)):
        return values
    return log_ticks(values[0], values[-1])


def fitting(title: str, width: float) -> float:
    """The size, in points, at which a title takes no more than so many inches."""
    return min(9.0, 9.0 * (width + 0.1) / (0.066 * max(1, len(title))))


# The whole


def _axes(figure: Figure, rows: int, columns: int, bottom: float) -> list[Axes]:
    """A grid whose gaps leave room for the titles above and the ticks below and beside."""
    width, height = figure.get_size_inches()
    panel = (width - LEFT) / columns
    grid = figure.subplots(
        rows, columns, squeeze=False,
        gridspec_kw={
            "left": LEFT / width, "right": 1 - (BESIDE - 0.3) / width,
            "bottom": bottom / height, "top": 1 - ABOVE / height,
            "wspace": BESIDE / (panel - BESIDE), "hspace": (ABOVE + 0.2) / (HEIGHT - ABOVE - 0.2),
        },
    )  # fmt: skip
    return list(grid.flat)


def _label(figure: Figure, bottom: float, xlabel: str, ylabel: str) -> None:
    width, height = figure.get_size_inches()
    middle = (bottom + height - ABOVE) / 2 / height
    figure.text(0.12 / width, middle, ylabel, rotation=90, ha="center", va="center", fontsize=9)
    across = (LEFT / width + 1) / 2
    figure.text(across, (bottom - 0.38) / height, xlabel, ha="center", va="center", fontsize=9)


def entries_of(panels: Sequence[Panel], looks: dict[str, Look]) -> list[Line2D]:
    """Of the legend: each label as its own curve is drawn, and the paper's points once."""
    from matplotlib.lines import Line2D

    lines = [line for panel in panels for line in panel.lines]
    lines.sort(key=lambda line: line.printed)
    firsts = {label: next(l for l in lines if l.label == label) for label in looks}
    entries = [Line2D([], [], label=label, **style(l, looks)) for label, l in firsts.items()]
    if lines and lines[-1].printed:
        entries.append(Line2D([], [], **_PRINTED, color="#555555", marker="o", label=PAPER))
    return entries


def legend_columns(entries: Sequence[Line2D], width: float) -> int:
    """So many that lines of the legend are filled evenly and none is wider than the figure."""
    longest = max((len(str(entry.get_label())) for entry in entries), default=0)
    fitting = max(1, int(width / (0.5 + 0.075 * longest)))
    lines = math.ceil(len(entries) / fitting) or 1
    return math.ceil(len(entries) / lines) or 1
