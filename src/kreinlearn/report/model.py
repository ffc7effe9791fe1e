"""A document: sections of paragraphs, tables and pictures, and of claims that were checked."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
NUMBER = re.compile(r"[-+(−<>≤≥~≈±\s]*\d|nan\b")  # how a number begins
CLAIMS = ("claim", "verdict", "found", "limit")  # the header of a table of checks
LONG = 24  # a cell with more characters is a text, and may be wrapped


def _mostly_numbers(cells: Sequence[str]) -> bool:
    numbers = sum(NUMBER.match(cell) is not None for cell in cells)
    return 2 * numbers > len(cells) and max(map(len, cells)) <= LONG


@dataclass
class Table:
    """A table of texts, whose first column contains the names of the rows.

    Attributes
    ----------
    title : str
        The title.
    header : sequence of str
        The names of the columns.
    rows : list of list of str
        The cells, row by row.
    notes : list of str
        Paragraphs below the table.
    """

    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> list[bool]:
        """Which columns contain numbers and are aligned to the right."""
        columns = [[row[j] for row in self.rows if row[j]] for j in range(1, len(self.header))]
        return [False, *map(_mostly_numbers, columns)]

    def show(self, console: Console) -> None:
        """Print the table on a console of rich."""
        from kreinlearn.report.terminal import show_table

        show_table(self, console)

    def markdown(self, level: int = 2) -> str:
        """The table as Markdown, with its title as a heading of this level."""
        from kreinlearn.report.markdown import grid

        return "\n".join(["#" * level + f" {self.title}", "", grid(self), "", *self.notes, ""])


@dataclass(frozen=True)
class Picture:
    """A drawing.

    Attributes
    ----------
    name : str
        The name of its file, without the extension.
    caption : str
        The text below it.
    alt : str
        What it shows, in words.
    svg : str
        The drawing itself.
    fluid : bool
        Whether it is as wide as the page on a phone, too; otherwise it can be scrolled there.
    """

    name: str
    caption: str
    alt: str
    svg: str
    fluid: bool = False


@dataclass(frozen=True)
class Check:
    """A claim that was checked.

    Attributes
    ----------
    what : str
        The claim.
    found : str
        What was measured.
    limit : str
        What was required.
    holds : bool or None
        Whether the claim holds; None if it could not be measured.
    """

    what: str
    found: str
    limit: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """PASS, MISS or "not measured"."""
        return {True: "PASS", False: "MISS", None: "not measured"}[self.holds]

    @property
    def cells(self) -> list[str]:
        """The row of a table of checks."""
        return [self.what, self.verdict, self.found, self.limit]


class Verdict(str):
    """The one paragraph that everybody should read."""


# A text is a paragraph, or a list if every line begins with "- ". Both may contain `code`, and \\`
# is a backtick.
Block = str | Table | Picture


def listed(text: str) -> list[str]:
    """The items of a text that is a list; none if it is a paragraph."""
    lines = text.strip().splitlines()
    return [line[2:] for line in lines] if all(line.startswith("- ") for line in lines) else []


def bulleted(items: Iterable[str]) -> str:
    """The text that is a list of these items."""
    return "\n".join(f"- {' '.join(item.split())}" for item in items)


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, and whether each of them is code."""
    for i, piece in enumerate(re.split(r"(?<!\\)`([^`]+)(?<!\\)`", text)):
        if piece:
            yield piece.replace(r"\`", "`"), i % 2 == 1


def literal(text: str) -> str:
    """A text from a user that is shown as it is, without any code in it."""
    return text.replace("`", r"\`")


@dataclass
class Section:
    """A section of a document.

    Attributes
    ----------
    title : str
        The title.
    blocks : list of str, Table or Picture
        The paragraphs, tables and pictures.
    checks : list of Check
        The claims that were checked.
    numbers : dict
        Results by name, which are compared with expected ranges.
    """

    title: str
    blocks: list[Block] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def checked(self) -> Table:
        """The table of the checks."""
        return Table("Checks", CLAIMS, [check.cells for check in self.checks])


@dataclass
class Document:
    """A title, paragraphs, tables and pictures before the first section, and sections.

    Attributes
    ----------
    title : str
        The title.
    lead : list of str, Table or Picture
        What comes before the first section.
    sections : list of Section
        The sections.
    """

    title: str
    lead: list[Block] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @property
    def blocks(self) -> Iterator[Block]:
        """All paragraphs, tables and pictures."""
        yield from self.lead
        for section in self.sections:
            yield from section.blocks

    @property
    def pictures(self) -> Iterator[Picture]:
        """All pictures."""
        return (block for block in self.blocks if isinstance(block, Picture))

    @property
    def checked(self) -> Table:
        """All checks of all sections, each with the number of its section."""
        numbered = enumerate(self.sections, 1)
        rows = [[*check.cells, str(i)] for i, section in numbered for check in section.checks]
        return Table("Checks", (*CLAIMS, "section"), rows)

    @property
    def numbers(self) -> dict[int, int]:
        """The numbers of tables and of pictures, each counted from 1, by the id of the block."""
        kinds = [[b for b in self.blocks if isinstance(b, kind)] for kind in (Table, Picture)]
        return {id(block): i for blocks in kinds for i, block in enumerate(blocks, 1)}


def versions() -> dict[str, str]:
    """The versions of everything that results depend on."""
    own = {"kreinlearn": import_module("kreinlearn").__version__}
    return {**own, "Python": platform.python_version(), **{p: version(p) for p in PACKAGES}}


def made_by() -> dict[str, str]:
    """The date and the versions with which a result is computed, in words."""
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "versions": numbers}
