"""Tables of results: on the terminal, as Markdown, as CSV, with what made them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from rich.console import Console

import kreinlearn
from kreinlearn.report import Table, provenance, versions

WIDTH = 190  # of a console that is no terminal


def console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def command_line(module: str, arguments: Sequence[str]) -> str:
    """The command as it was given, files by their names only."""
    named = [Path(word).name if Path(word).is_absolute() else word for word in arguments]
    return " ".join(["python", "-m", module, *named])


def write_markdown(path: Path, heading: str, command: str, tables: Iterable[Table]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = provenance(command, versions(kreinlearn.__version__))
    parts = [f"# {heading}", "", about, "", *(table.markdown() for table in tables)]
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
