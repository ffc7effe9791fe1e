"""What a long computation found, as one document: on the terminal, as Markdown, as HTML."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from typing import Any

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass
class Table:
    """Cells as text; the first column names the row."""

    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def show(self, console: Any) -> None:
        from rich.table import Table as RichTable

        shown = RichTable(title=self.title, title_justify="left", title_style="bold")
        for i, name in enumerate(self.header):
            shown.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
        for row in self.rows:
            shown.add_row(*(_coloured(cell) for cell in row))
        console.print(shown)
        for note in self.notes:
            console.print(note, style="dim", markup=False)

    def markdown(self, level: int = 2) -> str:
        rule = ["---"] + ["---:"] * (len(self.header) - 1)
        lines = [_line(cells) for cells in (self.header, rule, *self.rows)]
        return "\n".join(["#" * level + f" {self.title}", "", *lines, "", *self.notes, ""])


@dataclass(frozen=True)
class Picture:
    """A drawing, by the name of its file; ``alt`` says in words what it shows."""

    name: str
    caption: str
    alt: str
    svg: str


@dataclass(frozen=True)
class Check:
    """A claim and what was found; ``holds`` is None where it could not be measured."""

    what: str
    found: str
    limit: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        return {True: "PASS", False: "MISS", None: "not measured"}[self.holds]


Block = str | Table | Picture  # a text is a paragraph


@dataclass
class Section:
    title: str
    blocks: list[Block] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)  # by name, for comparison with ranges


@dataclass
class Document:
    title: str
    lead: list[Block] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @property
    def pictures(self) -> Iterator[Picture]:
        for section in self.sections:
            yield from (block for block in section.blocks if isinstance(block, Picture))
