"""What the sections of the report share: their words, their rows and their checks."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from reproduction.report import Check, Table
from reproduction.tasks import Measurements, Row, Task


@cache
def words(file: str) -> dict[str, dict[str, Any]]:
    """The contents of a TOML file of this folder."""
    return tomllib.loads((Path(__file__).parent / file).read_text("utf8"))


def say(entry: str, **values: object) -> str:
    """A paragraph of ``prose.toml``, such as "flops.opening", with its values filled in."""
    part, _, key = entry.partition(".")
    return " ".join(words("prose.toml")[part][key].split()).format(**values)


def table(
    entry: str, rows: Iterable[Sequence[str]], columns: Iterable[str] = (), *,
    notes: Iterable[str] = (), **values: object,
) -> Table:  # fmt: skip
    """A table of ``tables.toml`` with these rows, and further columns."""
    part, _, key = entry.partition(".")
    found = words("tables.toml")[part][key]
    texts = found["title"], *found["header"], found.get("note", "")
    title, *header, note = (text.format(**values) for text in texts)
    below = [*notes, *([" ".join(note.split())] if note else [])]
    return Table(title, [*header, *columns], [list(row) for row in rows], below)


def rows_of(tasks: Iterable[Task], measurements: Measurements) -> list[Row]:
    """The rows of those tasks that have been measured, in the order of the tasks."""
    return [row for task in tasks for row in measurements.get(task.key, [])]


def at_most(what: str, values: Iterable[float], limit: float, style: str, shown: str) -> Check:
    """The claim that no value exceeds the limit.

    The largest value is written in the format ``style``, and the limit as the text ``shown``.
    """
    largest = max(values)
    return Check(what, f"{largest:{style}}", f"<= {shown}", largest <= limit)
