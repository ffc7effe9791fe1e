"""What a page is made of: tables of texts, pictures, paragraphs and lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

NUMBER = re.compile(r"[-+(−<>≤≥~≈±\s]*\d|nan\b")  # how a number begins
LONG = 24  # a cell with more characters is a text, and may be wrapped
# Characters that are markup in Markdown; an underscore inside a word (delta_gauss) is not.
SPECIAL = re.compile(r"[\\*<\[\]|$`]|(?<!\w)_|_(?!\w)|^(?:[-+#>]|\d+[.)])(?=\s)")


def in_markdown(text: str) -> str:
    """A text on one line, in which whatever Markdown would take for markup is escaped."""
    return SPECIAL.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", " ".join(text.split()))


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

    def grid(self) -> str:
        """The table as Markdown, without its title and notes."""
        rule = ["---:" if numeric else "---" for numeric in self.numeric]
        rows = [list(map(in_markdown, row)) for row in (self.header, *self.rows)]
        return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))

    def markdown(self, level: int = 2) -> str:
        """The table as Markdown, with its title as a heading of this level."""
        return "\n".join(["#" * level + f" {self.title}", "", self.grid(), "", *self.notes, ""])


class Picture(NamedTuple):
    """A drawing as SVG, with the text below it and what it shows in words."""

    caption: str
    alt: str
    svg: str


Block = str | list[str] | Table | Picture  # a paragraph, a list, a table, a picture


class Page(NamedTuple):
    """A title, the one paragraph that everybody should read, and blocks by their headings."""

    title: str
    verdict: str
    sections: dict[str, list[Block]]
