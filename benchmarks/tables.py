"""Tables of results: on the terminal, as Markdown, as CSV, with what made them."""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_type_hints

from rich.console import Console
from rich.table import Table as RichTable

import kreinlearn

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
WIDTH = 190  # of a console that is no terminal


@dataclass
class Table:
    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def show(self, console: Console) -> None:
        shown = RichTable(title=self.title, title_justify="left", title_style="bold")
        for i, name in enumerate(self.header):
            shown.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
        for row in self.rows:
            shown.add_row(*(_coloured(cell) for cell in row))
        console.print(shown)
        for note in self.notes:
            console.print(note, style="dim", markup=False)

    def markdown(self) -> str:
        rule = ["---"] + ["---:"] * (len(self.header) - 1)
        lines = [_line(cells) for cells in (self.header, rule, *self.rows)]
        return "\n".join([f"## {self.title}", "", *lines, "", *self.notes, ""])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _coloured(cell: str) -> str:
    colour = {"PASS": "green", "MISS": "red"}.get(cell)
    return f"[{colour}]{cell}[/]" if colour else cell


def console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def provenance(command: str) -> str:
    """When, with what and on what kind of machine a result was found."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return "\n".join(
        [
            f"- date: {datetime.now(UTC):%Y-%m-%d}",
            f"- versions: kreinlearn {kreinlearn.__version__}, "
            f"Python {platform.python_version()}, {packages}",
            f"- machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            f"- command: `{command}`",
            "",
        ]
    )


def command_line(module: str, arguments: Sequence[str]) -> str:
    """The command as it was given, files by their names only."""
    named = [Path(word).name if Path(word).is_absolute() else word for word in arguments]
    return " ".join(["python", "-m", module, *named])


def write_markdown(path: Path, heading: str, command: str, tables: Iterable[Table]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [f"# {heading}", "", provenance(command), *(table.markdown() for table in tables)]
    path.write_text("\n".join(parts), encoding="utf8")


def write_csv(path: Path, figures: Sequence[Any]) -> None:
    """One line a figure; figures are named tuples of one kind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(figures[0]._fields if figures else ())
        writer.writerows(figures)


def read_csv(path: Path, kind: Any) -> list[Any]:
    """The figures a run wrote: named tuples of ``kind``, whose annotations say the types."""
    types = ["True".__eq__ if t is bool else t for t in get_type_hints(kind).values()]
    with open(path, encoding="utf8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows)) != kind._fields:
            raise ValueError(f"{path.name} was written by another version of this benchmark")
        return [kind(*(t(v) for t, v in zip(types, row, strict=True))) for row in rows]
