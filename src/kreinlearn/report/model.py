"""A document: sections of paragraphs, tables and pictures, with claims that were checked."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
NUMBER = re.compile(r"[-+(−<>≤≥~≈±\s]*\d|nan\b")  # how a number begins
LONG = 24  # characters of a cell that is a text, and may wrap


def _mostly_numbers(cells: Sequence[str]) -> bool:
    numbers = sum(NUMBER.match(cell) is not None for cell in cells)
    return 2 * numbers > len(cells) and max(map(len, cells)) <= LONG


@dataclass
class Table:
    """Cells as text; the first column names the row."""

    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, and are so set to the right."""
        columns = [[row[j] for row in self.rows if row[j]] for j in range(1, len(self.header))]
        return [False, *map(_mostly_numbers, columns)]

    def show(self, console: Any) -> None:
        from kreinlearn.report.terminal import show_table

        show_table(self, console)

    def markdown(self, level: int = 2) -> str:
        from kreinlearn.report.markdown import grid

        return "\n".join(["#" * level + f" {self.title}", "", grid(self), "", *self.notes, ""])


@dataclass(frozen=True)
class Picture:
    """A drawing, by the name of its file; ``alt`` says in words what it shows."""

    name: str
    caption: str
    alt: str
    svg: str
    fluid: bool = False  # as wide as the page, on a phone too; else it scrolls there


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

    @property
    def cells(self) -> list[str]:
        return [self.what, self.verdict, self.found, self.limit]


class Verdict(str):
    """The sentence that a reader who reads but one should read."""


# A text is a paragraph, or a list where every line begins with "- "; `code` may stand in both, and
# \\` is a backtick.
Block = str | Table | Picture


def listed(text: str) -> list[str]:
    """The items of a text that is a list; nothing where it is a paragraph."""
    lines = text.strip().splitlines()
    return [line[2:] for line in lines] if all(line.startswith("- ") for line in lines) else []


def runs(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of a text, and whether they are code."""
    for i, piece in enumerate(re.split(r"(?<!\\)`([^`]+)(?<!\\)`", text)):
        if piece:
            yield piece.replace(r"\`", "`"), i % 2 == 1


def literal(text: str) -> str:
    """A text that is shown as it is, whatever a person has put in it."""
    return text.replace("`", r"\`")


@dataclass
class Section:
    title: str
    blocks: list[Block] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)  # by name, for comparison with ranges

    @property
    def checked(self) -> Table:
        rows = [check.cells for check in self.checks]
        return Table("Checks", ("claim", "verdict", "found", "limit"), rows)


@dataclass
class Document:
    title: str
    lead: list[Block] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @property
    def blocks(self) -> Iterator[Block]:
        yield from self.lead
        for section in self.sections:
            yield from section.blocks

    @property
    def pictures(self) -> Iterator[Picture]:
        return (block for block in self.blocks if isinstance(block, Picture))

    @property
    def checked(self) -> Table:
        """All checks of all sections, each with the number of its section."""
        numbered = enumerate(self.sections, 1)
        rows = [[*check.cells, str(i)] for i, section in numbered for check in section.checks]
        return Table("Checks", ("claim", "verdict", "found", "limit", "section"), rows)

    @property
    def numbers(self) -> dict[int, int]:
        """By id of the block: tables are counted, and pictures are."""
        kinds = [[b for b in self.blocks if isinstance(b, kind)] for kind in (Table, Picture)]
        return {id(block): i for blocks in kinds for i, block in enumerate(blocks, 1)}


# What made it


def versions(own: str) -> dict[str, str]:
    """Of what the results depend on; ``own`` is kreinlearn's."""
    packages = {name: version(name) for name in PACKAGES}
    return {"kreinlearn": own, "Python": platform.python_version(), **packages}


def provenance(command: str, versions: dict[str, str]) -> str:
    """When, with what and on what kind of machine a result was found: a list."""
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    return "\n".join(
        [
            f"- date: {datetime.now(UTC):%Y-%m-%d}",
            f"- versions: {named}",
            f"- machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            f"- command: `{command}`",
        ]
    )
