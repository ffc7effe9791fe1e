"""Figures in the paper's layout: rows of small panels with our curves and the paper's points."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reproduction.report import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colours of Okabe and Ito, which colour-blind readers can tell apart; in grey the marks differ.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00", "#7f6000")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
FENCE = 3.0  # a panel ends so many quartile ranges beyond the quartiles
FEW = 6  # different numbers on an axis that all get a label
SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text, and can be searched
    "svg.hashsalt": "kreinlearn",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "lines.linewidth": 1.3,
    "lines.markersize": 4.2,
    "legend.frameon": False,
}
PRINTED: dict[str, Any] = {
    "linestyle": ":", "linewidth": 0.8, "markersize": 5.5, "markerfacecolor": "none",
}  # fmt: skip


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


def drawn(
    name: str, panels: Sequence[Panel], *, caption: str, alt: str, xlabel: str, ylabel: str,
    columns: int = 5, xlog: bool = False, ylog: bool = False,
) -> Picture | str:  # fmt: skip
    """A picture with one legend for all panels, or a sentence if matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
    except ImportError:
        return f'The figure "{caption}" is not drawn: it needs matplotlib.'
    columns = max(1, min(columns, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    looks: dict[str, Any] = {
        label: {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
        for i, label in enumerate(labels)
    }
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS}):
        size = min(10.0, 0.4 + 3.2 * columns), 2.0 * rows + 0.9
        figure, file = Figure(size, layout="constrained"), io.StringIO()
        for panel, axes in zip_longest(panels, figure.subplots(rows, columns, squeeze=False).flat):
            if panel is None:
                axes.remove()
            else:
                _draw(axes, panel, looks, xlog, ylog)
        figure.supxlabel(xlabel, fontsize=9)
        figure.supylabel(ylabel, fontsize=9)
        entries = [Line2D([], [], label=label, **look) for label, look in looks.items()]
        if any(line.printed for panel in panels for line in panel.lines):
            entries.append(
                Line2D([], [], color="#555555", marker="o", label="the paper", **PRINTED)
            )
        columns = min(len(entries), 2 * columns)
        figure.legend(handles=entries, loc="outside upper center", ncols=columns)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    return Picture(name, caption, alt, file.getvalue())


def _draw(axes: Axes, panel: Panel, looks: dict[str, Any], xlog: bool, ylog: bool) -> None:
    """Draw one panel; carets at its edge stand for points that are far from the rest."""
    axes.set_title(panel.title)
    curves = [(line, *drawable(line, xlog, ylog)) for line in panel.lines]
    xs, ys = (np.concatenate([[], *(curve[i] for curve in curves)]) for i in (1, 2))
    if not len(xs):
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
        return
    axes.set(xscale="log" if xlog else "linear", yscale="log" if ylog else "linear")
    low, high = limits(ys, ylog)
    axes.set_ylim(low, high)
    for line, x, y in curves:
        look = looks[line.label]
        axes.plot(
            x, y, **(PRINTED if line.printed else {"ls": "--" if line.dashed else "-"}), **look
        )
        for edge, beyond, caret in ((high, y > high, 6), (low, y < low, 7)):
            at = x[beyond], np.full(beyond.sum(), edge)
            axes.plot(*at, ls="", marker=caret, clip_on=False, in_layout=False, color=look["color"])
    if xlog and len(ticks := np.unique(xs)) <= FEW:
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)


def drawable(line: Line, xlog: bool, ylog: bool) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line that can be drawn."""
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    good = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not xlog)) & ((y > 0) | (not ylog))
    return x[good], y[good]


def limits(y: np.ndarray, log: bool) -> tuple[float, float]:
    """The ends of an axis: a margin around y, without values that are far from the rest."""
    y = np.log(y) if log else y
    first, third = np.quantile(y, (0.25, 0.75))
    reach = FENCE * (third - first) or np.inf  # where half of the values are equal, all are shown
    inner = y[(y >= first - reach) & (y <= third + reach)]
    margin = 0.06 * (np.ptp(inner) or abs(inner[0]) or 1.0)
    low, high = inner.min() - margin, inner.max() + margin
    return (math.exp(low), math.exp(high)) if log else (float(low), float(high))
