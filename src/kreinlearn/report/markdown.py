"""A document as Markdown in the dialect of GitHub, with pictures as files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kreinlearn.report.model import Block, Document, Picture, Table, listed, pieces

# Characters that are markup; an underscore inside a word (delta_gauss) is not.
SPECIAL = re.compile(r"[\\*<\[\]|$`]|(?<!\w)_|_(?!\w)|^(?:[-+#>]|\d+[.)])(?=\s)")


def to_markdown(document: Document, pictures: str = "figures") -> str:
    """The Markdown text of a document.

    Parameters
    ----------
    document : Document
        The document.
    pictures : str, default="figures"
        The folder of the pictures, which are links to ``<pictures>/<name>.svg``.

    Returns
    -------
    str
        The text.
    """
    numbers = document.numbers
    lines = [f"# {inline(document.title)}"]
    lines += _blocks(numbers, document.lead, pictures)
    if document.checked.rows:
        lines += ["## Summary of checks", grid(document.checked)]
    for i, section in enumerate(document.sections, 1):
        lines.append(f"## {i}. {inline(section.title)}")
        lines += _blocks(numbers, section.blocks, pictures)
        if section.checks:
            lines += [f"**Checks of section {i}.**", grid(section.checked)]
    return "\n\n".join(lines) + "\n"


def _blocks(numbers: dict[int, int], blocks: Iterable[Block], pictures: str) -> Iterator[str]:
    for block in blocks:
        number = numbers.get(id(block))
        if isinstance(block, Table):
            yield f"**Table {number}.** {inline(block.title)}"
            yield grid(block)
            yield from map(inline, block.notes)
        elif isinstance(block, Picture):
            yield f"![{inline(block.alt)}]({pictures}/{block.name}.svg)"
            yield f"**Figure {number}.** {inline(block.caption)}"
        else:
            items = listed(block)
            yield "\n".join(f"- {inline(item)}" for item in items) if items else inline(block)


def grid(table: Table) -> str:
    """A table without its title and notes."""
    rule = ["---:" if numeric else "---" for numeric in table.numeric]
    rows = [[inline(cell, cell=True) for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))


def inline(text: str, cell: bool = False) -> str:
    """A text on one line, in which markup is escaped except in `code`.

    In the ``cell`` of a table a bar is escaped in code, too.
    """
    line = []
    for piece, code in pieces(" ".join(text.split())):
        if code:
            line.append(f"`{piece.replace('|', chr(92) + '|') if cell else piece}`")
        else:  # "1." -> "1\."
            line.append(SPECIAL.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", piece))
    return "".join(line)
