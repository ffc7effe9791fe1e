"""Figures in the paper's layout: a row of small panels, ours and the paper's points together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kreinlearn.report import Picture


class Line(NamedTuple):
    """One curve; ``printed`` are the paper's own points, drawn hollow in the colour of the label."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    printed: bool = False
    dashed: bool = False
    low: Sequence[float] | None = None  # of the spread
    high: Sequence[float] | None = None


class Panel(NamedTuple):
    title: str
    lines: Sequence[Line]


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
    raise NotImplementedError
