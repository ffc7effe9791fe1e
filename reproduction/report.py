"""A document of sections with paragraphs, tables, pictures and checks, as Markdown."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

import kreinlearn

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
CODE = (":/src", ":/reproduction", ":/benchmarks", ":(top,exclude)benchmarks/results")
NUMBER = re.compile(r"[-+(−<>≤≥~≈±\s]*\d|nan\b")  # how a number begins
# What Markdown would take for markup; an underscore inside a word (delta_gauss) is none.
SPECIAL = re.compile(r"[\\*<\[\]|$]|(?<!\w)_|_(?!\w)|^(?:[-+#>]|\d+[.)])(?=\s)")
LONG = 24  # a cell with more characters is a text
VERDICTS = {True: "PASS", False: "MISS", None: "not measured"}


@dataclass
class Table:
    """A table of texts, whose first column contains the names of the rows."""

    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def numeric(self, j: int) -> bool:
        """Whether a column contains numbers, which are aligned to the right."""
        cells = [row[j] for row in self.rows if row[j]]
        numbers = sum(NUMBER.match(cell) is not None for cell in cells)
        return j > 0 and 2 * numbers > len(cells) and max(map(len, cells)) <= LONG

    def show(self, console: Console) -> None:
        """Print the table on a console of rich."""
        grid = Grid(title=Text(self.title), title_justify="left")
        for j, name in enumerate(self.header):
            side = "right" if self.numeric(j) else "left"
            grid.add_column(Text(name), justify=side, overflow="fold")  # type: ignore[arg-type]
        for row in self.rows:
            grid.add_row(*map(Text, row))
        console.print(grid)
        for note in self.notes:
            console.print(Text(note))

    def grid(self) -> str:
        """The table as Markdown, without its title and notes."""
        rule = ["---:" if self.numeric(j) else "---" for j in range(len(self.header))]
        rows = [list(map(inline, row)) for row in (self.header, *self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


class Picture(NamedTuple):
    """A drawing: the name of its file, the text below it, what it shows, and the drawing."""

    name: str
    caption: str
    alt: str
    svg: str


Block = str | Table | Picture  # a text is a paragraph, or a list of lines that begin with "- "


class Check(NamedTuple):
    """A claim, what was measured, what was required, and whether it holds (None: unknown)."""

    what: str
    found: str
    limit: str
    holds: bool | None


@dataclass
class Section:
    """A title, paragraphs, tables and pictures, claims, and results by name."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass
class Document:
    """A title, what comes before the first section, and sections."""

    title: str
    lead: list[Block] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @property
    def blocks(self) -> list[Block]:
        """All paragraphs, tables and pictures."""
        return [*self.lead, *(block for section in self.sections for block in section.blocks)]

    @property
    def pictures(self) -> list[Picture]:
        """All pictures."""
        return [block for block in self.blocks if isinstance(block, Picture)]

    def checked(self, number: int | None = None) -> Table:
        """The checks of the section of that number, or all of them with their sections."""
        rows = [
            [check.what, VERDICTS[check.holds], check.found, check.limit, str(i)]
            for i, section in enumerate(self.sections, 1)
            for check in section.checks
            if number in (None, i)
        ]
        header = ("claim", "verdict", "found", "limit", "section")
        end = 5 if number is None else 4
        return Table("Summary of checks", header[:end], [row[:end] for row in rows])

    def show(self, console: Console) -> None:
        """Print all tables."""
        for table in (block for block in self.blocks if isinstance(block, Table)):
            table.show(console)
        self.checked().show(console)


# Markdown


def inline(text: str) -> str:
    """A text on one line, in which markup is escaped."""
    line = " ".join(text.split())
    return SPECIAL.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", line)  # "1." -> "1\."


def bulleted(items: Iterable[str]) -> str:
    """The text that is a list of these items."""
    return "\n".join(f"- {' '.join(item.split())}" for item in items)


def to_markdown(document: Document, pictures: str = "figures") -> str:
    """The document; pictures are links to ``<pictures>/<name>.svg``."""
    tables, drawn = count(1), count(1)

    def texts(blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            if isinstance(block, Table):
                yield f"**Table {next(tables)}.** {inline(block.title)}"
                yield from (block.grid(), *map(inline, block.notes))
            elif isinstance(block, Picture):
                yield f"![{inline(block.alt)}]({pictures}/{block.name}.svg)"
                yield f"**Figure {next(drawn)}.** {inline(block.caption)}"
            elif block.startswith("- "):
                yield bulleted(inline(line[2:]) for line in block.splitlines())
            else:
                yield inline(block)

    parts = [f"# {inline(document.title)}", *texts(document.lead)]
    if document.checked().rows:
        parts += ["## Summary of checks", document.checked().grid()]
    for i, section in enumerate(document.sections, 1):
        parts += [f"## {i}. {inline(section.title)}", *texts(section.blocks)]
        if section.checks:
            parts += [f"**Checks of section {i}.**", document.checked(i).grid()]
    return "\n\n".join(parts) + "\n"


# Where results come from


def versions() -> dict[str, str]:
    """The versions of everything that results depend on."""
    own = {"kreinlearn": kreinlearn.__version__, "Python": platform.python_version()}
    return {**own, **{package: version(package) for package in PACKAGES}}


def provenance(command: str, commits: Iterable[str] = ()) -> str:
    """A list that says when, with what and on what kind of machine a result was computed."""
    named = set(commits)
    found = ", ".join(one or "unknown" for one in sorted(named)) if any(named) else ""
    return bulleted([
        f"date: {datetime.now(UTC):%Y-%m-%d}",
        *([f"commit: {found}"] * bool(found)),
        f"versions: {', '.join(f'{name} {number}' for name, number in versions().items())}",
        f"machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        f"command: `{command}`",
    ])  # fmt: skip


@cache
def commit(folder: Path = Path(__file__).parent) -> str:
    """The commit of the code in a folder, and whether code has changed since; "" if unknown."""
    asked = ("ls-files --error-unmatch .", "status --porcelain --", "rev-parse --short HEAD")
    git = ["git", "--no-optional-locks", "-C", str(folder)]
    try:
        _, changes, head = (
            subprocess.run(
                [*git, *words.split(), *(CODE if words.endswith("--") else ())],
                capture_output=True, text=True, check=True,
            ).stdout.strip()
            for words in asked
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} with changes" if changes else head
